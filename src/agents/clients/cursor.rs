//! Cursor, editor and command line. **From documentation alone.** Shell commands may come twice, as `preToolUse` and as
//! `beforeShellExecution`: older versions know only the second.

use serde_json::{Value, json};

use super::commands::{ROLLBACK, UNDO};
use crate::agents::edit::json::Style;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

const SETTINGS: FileContent = FileContent::Json(Hooks {
    style: Style::FlatVersioned,
    unit: Unit::Seconds,
    runner: Runner::Shell,
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

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: false,
    ends: ReportedEnds::Always,
    program: "cursor-agent",
    marks: &["CURSOR_AGENT"],
    directory: Spot { env: None, dir: ".cursor", path: "" },
    shape: Shape {
        steps: &[
            ("sessionStart", Moment::SessionStart),
            ("sessionEnd", Moment::SessionEnd),
            ("beforeSubmitPrompt", Moment::TurnStart),
            ("stop", Moment::TurnEnd),
            ("preToolUse", Moment::Before),
            ("beforeShellExecution", Moment::Before),
            ("postToolUse", Moment::After),
            ("postToolUseFailure", Moment::Failed),
            ("afterShellExecution", Moment::Unused),
            ("afterFileEdit", Moment::Unused),
            ("beforeReadFile", Moment::Unused),
            ("beforeMCPExecution", Moment::Unused),
            ("afterMCPExecution", Moment::Unused),
            ("preCompact", Moment::Unused),
        ],
        session: &["/conversation_id", "/session_id"],
        turn: &["/generation_id"],
        cwd: &["/cwd", "/workspace_roots/0"],
        shells: &["Shell"],
        // `beforeShellExecution` names no tool.
        command: &["/command"],
        outcome: |_: &Payload| ActionOutcome { ok: Some(true), exit: None },
        ..CLAUDE
    },
    reply,
    reaches_model: |step| matches!(step, Moment::After | Moment::SessionStart),
    user: &[
        HookFile { spot: Spot { env: None, dir: ".cursor", path: "hooks.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".cursor", path: "commands/rollback.md" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".cursor", path: "commands/undo.md" }, content: UNDO },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".cursor", path: "hooks.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".cursor", path: "commands/rollback.md" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".cursor", path: "commands/undo.md" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    rewind: None,
    advice: None,
};

/// Without `permission`, which would approve what the person was to be asked.
fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    let answer = decision.answer.as_ref().filter(|_| step == Moment::TurnStart);
    object([
        ("permission", deny.map(|_| json!("deny"))),
        ("agent_message", deny.map(|reason| json!(reason))),
        ("continue", answer.map(|_| json!(false))),
        ("user_message", deny.or(answer).map(|text| json!(text))),
        ("additional_context", decision.notes().filter(|_| (PROFILE.reaches_model)(step)).map(Value::String)),
    ])
}
