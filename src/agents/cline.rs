//! Cline CLI (3.0.65, payloads captured). One hook is one executable named after the event; commands come as an array, and a
//! directory only as one of the workspace's.

use serde_json::{Value, json};

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Spot};
use super::payload::Payload;
use super::reply::{Decision, object};
use super::shape::{Shape, Step};

const fn script(path: &'static str, event: &'static str) -> File {
    File { spot: Spot { env: None, dir: ".cline", path }, content: Content::Script { event } }
}

const fn project_script(path: &'static str, event: &'static str) -> File {
    File { spot: Spot { env: None, dir: ".clinerules", path }, content: Content::Script { event } }
}

pub const DOOR: Door = Door {
    name: "cline",
    title: "Cline",
    captured: true,
    program: "cline",
    place: Spot { env: None, dir: ".cline", path: "" },
    shape: Shape {
        steps: &[
            ("TaskStart", Step::TurnStart),
            ("TaskResume", Step::TurnStart),
            ("UserPromptSubmit", Step::TurnStart),
            ("PreToolUse", Step::Before),
            ("PostToolUse", Step::After),
            ("TaskComplete", Step::TurnEnd),
            ("TaskCancel", Step::TurnEnd),
            ("PreCompact", Step::Unused),
        ],
        // Its `hookName` is of another vocabulary (`tool_call`).
        echo: &[],
        session: &["/taskId"],
        turn: &[],
        cwd: &["/workspaceRoots/0", "/workspaceInfo/rootPath"],
        prompt: &["/userPromptSubmit/prompt"],
        tool: &["/tool_call/name", "/preToolUse/toolName"],
        input: &["/tool_call/input", "/preToolUse/parameters"],
        action: &["/tool_call/id", "/tool_result/id"],
        command: &[],
        shells: &["run_commands", "execute_command"],
        writers: &["editor"],
        cwd_told: false,
        answers: true,
        outcome,
    },
    reply,
    hears: |step| matches!(step, Step::Before | Step::After | Step::TurnStart),
    user: &[
        script("hooks/TaskStart", "TaskStart"),
        script("hooks/TaskResume", "TaskResume"),
        script("hooks/UserPromptSubmit", "UserPromptSubmit"),
        script("hooks/PreToolUse", "PreToolUse"),
        script("hooks/PostToolUse", "PostToolUse"),
        script("hooks/TaskComplete", "TaskComplete"),
        script("hooks/TaskCancel", "TaskCancel"),
    ],
    project: &[
        project_script("hooks/TaskStart", "TaskStart"),
        project_script("hooks/TaskResume", "TaskResume"),
        project_script("hooks/UserPromptSubmit", "UserPromptSubmit"),
        project_script("hooks/PreToolUse", "PreToolUse"),
        project_script("hooks/PostToolUse", "PostToolUse"),
        project_script("hooks/TaskComplete", "TaskComplete"),
        project_script("hooks/TaskCancel", "TaskCancel"),
    ],
    commands: &[],
    advice: None,
};

fn reply(_event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Step::Before);
    let no = deny.or(decision.answer.as_ref().filter(|_| step == Step::TurnStart));
    let context = decision.notes().filter(|_| no.is_none() && (DOOR.hears)(step));
    object([
        ("cancel", (no.is_some() || context.is_some()).then(|| json!(no.is_some()))),
        ("errorMessage", no.map(|reason| json!(reason))),
        ("contextModification", context.map(Value::String)),
    ])
}

fn outcome(payload: &Payload) -> Outcome {
    Outcome { ok: payload.at(&["/postToolUse/success"]).and_then(Value::as_bool), exit: None }
}
