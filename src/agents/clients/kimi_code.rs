//! Kimi Code (2.1.0, payloads captured). A prompt comes as an array of parts. Only the reply to a prompt carries a note, and shows it to
//! the person too; what follows a tool is not waited for.

use serde_json::{Value, json};

use crate::agents::edit::json::Style;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

/// The client takes a table with any other field for a mistake in the whole file.
const SETTINGS: FileContent = FileContent::Toml(Hooks {
    style: Style::Flat,
    unit: Unit::Seconds,
    runner: Runner::Shell,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "UserPromptSubmit", seconds: 60 },
        Hook { event: "PreToolUse", seconds: 10 },
        Hook { event: "PostToolUse", seconds: 10 },
        Hook { event: "PostToolUseFailure", seconds: 10 },
        Hook { event: "StopFailure", seconds: 10 },
        Hook { event: "Interrupt", seconds: 10 },
        Hook { event: "SessionEnd", seconds: 10 },
    ],
});

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "kimi",
    marks: &[],
    directory: Spot { env: Some("KIMI_CODE_HOME"), dir: ".kimi-code", path: "" },
    shape: Shape {
        steps: &[
            ("SessionStart", Moment::SessionStart),
            ("SessionEnd", Moment::SessionEnd),
            ("UserPromptSubmit", Moment::TurnStart),
            ("PreToolUse", Moment::Before),
            ("PostToolUse", Moment::After),
            ("PostToolUseFailure", Moment::Failed),
            // At the end of each sub-agent too, which nothing tells apart: a turn lasts to the next prompt.
            ("Stop", Moment::Unused),
            ("StopFailure", Moment::TurnEnd),
            ("Interrupt", Moment::TurnEnd),
            ("PermissionRequest", Moment::Unused),
            ("PermissionResult", Moment::Unused),
            ("UserPromptQueued", Moment::Unused),
            ("TurnStarted", Moment::Unused),
            ("SessionHeartbeat", Moment::Unused),
            ("SubagentStart", Moment::Unused),
            ("SubagentStop", Moment::Unused),
            ("TaskStarted", Moment::Unused),
            ("PreCompact", Moment::Unused),
            ("PostCompact", Moment::Unused),
            ("Notification", Moment::Unused),
        ],
        turn: &[],
        action: &["/tool_call_id"],
        ..CLAUDE
    },
    reply,
    reaches_model: |step| step == Moment::TurnStart,
    user: &[HookFile {
        spot: Spot { env: Some("KIMI_CODE_HOME"), dir: ".kimi-code", path: "config.toml" },
        content: SETTINGS,
    }],
    project: &[],
    commands: &[],
    rewind: None,
    advice: None,
};

/// Without anything else: JSON that the client does not know would go to the model as it is.
fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    let no = deny.or(decision.answer.as_ref().filter(|_| step == Moment::TurnStart));
    object([
        (
            "hookSpecificOutput",
            no.map(|reason| json!({ "permissionDecision": "deny", "permissionDecisionReason": reason })),
        ),
        ("message", decision.notes().filter(|_| step == Moment::TurnStart && no.is_none()).map(Value::String)),
    ])
}
