//! Gemini CLI (0.61.0, payloads captured). No ids of turns and calls; what a hook before a tool tells reaches the person, not
//! the model.

use serde_json::{Value, json};

use crate::agents::edit::json::Style;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

const SETTINGS: FileContent = FileContent::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Milliseconds,
    runner: Runner::Shell,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "BeforeAgent", seconds: 60 },
        Hook { event: "BeforeTool", seconds: 10 },
        Hook { event: "AfterTool", seconds: 10 },
        Hook { event: "AfterAgent", seconds: 10 },
        Hook { event: "SessionEnd", seconds: 10 },
    ],
});
const ROLLBACK: FileContent = FileContent::Whole(include_str!("../../../hooks/rollback.toml"));
const UNDO: FileContent = FileContent::Whole(include_str!("../../../hooks/undo.toml"));

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "gemini",
    marks: &["GEMINI_CLI"],
    directory: Spot { env: None, dir: ".gemini", path: "" },
    shape: Shape {
        steps: &[
            ("SessionStart", Moment::SessionStart),
            ("SessionEnd", Moment::SessionEnd),
            ("BeforeAgent", Moment::TurnStart),
            ("AfterAgent", Moment::TurnEnd),
            ("BeforeTool", Moment::Before),
            ("AfterTool", Moment::After),
            ("PreCompress", Moment::Unused),
            ("Notification", Moment::Unused),
            ("BeforeModel", Moment::Unused),
            ("AfterModel", Moment::Unused),
            ("BeforeToolSelection", Moment::Unused),
        ],
        turn: &[],
        action: &[],
        shells: &["run_shell_command"],
        outcome,
        ..CLAUDE
    },
    reply,
    reaches_model: |step| matches!(step, Moment::After | Moment::TurnStart | Moment::SessionStart),
    user: &[
        HookFile { spot: Spot { env: None, dir: ".gemini", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".gemini", path: "commands/rollback.toml" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".gemini", path: "commands/undo.toml" }, content: UNDO },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".gemini", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".gemini", path: "commands/rollback.toml" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".gemini", path: "commands/undo.toml" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    rewind: Some("/rewind"),
    advice: Some("Gemini CLI runs a project's hooks only in folders you trust."),
};

fn reply(event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    let answer = decision.answer.as_ref().filter(|_| step == Moment::TurnStart);
    let says_no = deny.or(answer);
    let (reaches_model, notes) = ((PROFILE.reaches_model)(step), decision.notes());
    let context = notes.clone().filter(|_| reaches_model && answer.is_none());
    // A refusal reaches the model by its reason. Other notes at least reach the person.
    let shown: Vec<String> = decision
        .message
        .clone()
        .into_iter()
        .chain(notes.filter(|_| step == Moment::Before && deny.is_none()))
        .collect();
    object([
        ("decision", says_no.map(|_| json!("deny"))),
        ("reason", says_no.map(|reason| json!(reason))),
        ("hookSpecificOutput", context.map(|context| json!({ "hookEventName": event, "additionalContext": context }))),
        ("systemMessage", (!shown.is_empty()).then(|| json!(shown.join("\n")))),
    ])
}

fn outcome(payload: &Payload) -> ActionOutcome {
    ActionOutcome { ok: Some(payload.at(&["/tool_response/error"]).is_none()), exit: None }
}
