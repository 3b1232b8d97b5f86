//! Cline CLI (3.0.65, payloads captured). One hook is one executable named after the event; commands come as an array, and a
//! directory only as one of the workspace's.

use serde_json::{Value, json};

use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, HookFile, Spot};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{Moment, Shape};

const fn script(path: &'static str, event: &'static str) -> HookFile {
    HookFile { spot: Spot { env: None, dir: ".cline", path }, content: FileContent::Script { event } }
}

const fn project_script(path: &'static str, event: &'static str) -> HookFile {
    HookFile { spot: Spot { env: None, dir: ".clinerules", path }, content: FileContent::Script { event } }
}

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "cline",
    marks: &["CLINE_ACTIVE"],
    directory: Spot { env: None, dir: ".cline", path: "" },
    shape: Shape {
        steps: &[
            ("TaskStart", Moment::TurnStart),
            ("TaskResume", Moment::TurnStart),
            ("UserPromptSubmit", Moment::TurnStart),
            ("PreToolUse", Moment::Before),
            ("PostToolUse", Moment::After),
            ("TaskComplete", Moment::TurnEnd),
            ("TaskCancel", Moment::TurnEnd),
            ("PreCompact", Moment::Unused),
        ],
        // Its `hookName` is of another vocabulary (`tool_call`).
        echo: &[],
        // A sub-agent has a task of its own, and names the agent above it.
        session: &["/parent_agent_id", "/agent_id", "/taskId"],
        parent: &[],
        agent: &["/agent_id"],
        agent_kind: &[],
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
        is_background: |_| false,
    },
    reply,
    reaches_model: |step| matches!(step, Moment::Before | Moment::After | Moment::TurnStart),
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
    rewind: None,
    advice: None,
};

fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    let no = deny.or(decision.answer.as_ref().filter(|_| step == Moment::TurnStart));
    let context = decision.notes().filter(|_| no.is_none() && (PROFILE.reaches_model)(step));
    object([
        ("cancel", (no.is_some() || context.is_some()).then(|| json!(no.is_some()))),
        ("errorMessage", no.map(|reason| json!(reason))),
        ("contextModification", context.map(Value::String)),
    ])
}

fn outcome(payload: &Payload) -> ActionOutcome {
    ActionOutcome { ok: payload.at(&["/postToolUse/success"]).and_then(Value::as_bool), exit: None }
}
