//! Cursor, editor and command line. **From documentation alone.** Shell commands may come twice, as `preToolUse` and as
//! `beforeShellExecution`: older versions know only the second.

use serde_json::{Value, json};

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::payload::Payload;
use super::reply::{Decision, object};
use super::shape::{CLAUDE, Shape, Step};

const SETTINGS: Content = Content::Json(Hooks {
    style: Style::FlatVersioned,
    unit: Unit::Seconds,
    hooks: &[
        Hook { event: "sessionStart", seconds: 10 },
        Hook { event: "beforeSubmitPrompt", seconds: 60 },
        Hook { event: "preToolUse", seconds: 10 },
        Hook { event: "beforeShellExecution", seconds: 10 },
        Hook { event: "postToolUse", seconds: 10 },
        Hook { event: "postToolUseFailure", seconds: 10 },
        Hook { event: "stop", seconds: 10 },
        Hook { event: "sessionEnd", seconds: 10 },
    ],
});
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback.md"));
const UNDO: Content = Content::Whole(include_str!("../../hooks/undo.md"));

pub const DOOR: Door = Door {
    name: "cursor",
    title: "Cursor",
    captured: false,
    program: "cursor-agent",
    place: Spot { env: None, dir: ".cursor", path: "" },
    shape: Shape {
        steps: &[
            ("sessionStart", Step::SessionStart),
            ("sessionEnd", Step::SessionEnd),
            ("beforeSubmitPrompt", Step::TurnStart),
            ("stop", Step::TurnEnd),
            ("preToolUse", Step::Before),
            ("beforeShellExecution", Step::Before),
            ("postToolUse", Step::After),
            ("postToolUseFailure", Step::Failed),
            ("afterShellExecution", Step::Unused),
            ("afterFileEdit", Step::Unused),
            ("beforeReadFile", Step::Unused),
            ("beforeMCPExecution", Step::Unused),
            ("afterMCPExecution", Step::Unused),
            ("preCompact", Step::Unused),
        ],
        session: &["/conversation_id", "/session_id"],
        turn: &["/generation_id"],
        cwd: &["/cwd", "/workspace_roots/0"],
        shells: &["Shell"],
        // `beforeShellExecution` names no tool.
        command: &["/command"],
        outcome: |_: &Payload| Outcome { ok: Some(true), exit: None },
        ..CLAUDE
    },
    reply,
    hears: |step| matches!(step, Step::After | Step::SessionStart),
    user: &[
        File { spot: Spot { env: None, dir: ".cursor", path: "hooks.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".cursor", path: "commands/rollback.md" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".cursor", path: "commands/undo.md" }, content: UNDO },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".cursor", path: "hooks.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".cursor", path: "commands/rollback.md" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".cursor", path: "commands/undo.md" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    advice: None,
};

/// Without `permission`, which would approve what the person was to be asked.
fn reply(_event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Step::Before);
    let answer = decision.answer.as_ref().filter(|_| step == Step::TurnStart);
    object([
        ("permission", deny.map(|_| json!("deny"))),
        ("agent_message", deny.map(|reason| json!(reason))),
        ("continue", answer.map(|_| json!(false))),
        ("user_message", deny.or(answer).map(|text| json!(text))),
        ("additional_context", decision.notes().filter(|_| (DOOR.hears)(step)).map(Value::String)),
    ])
}
