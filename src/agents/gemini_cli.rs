//! Gemini CLI (0.61.0, payloads captured). No ids of turns and calls; what a hook before a tool tells reaches the person, not
//! the model.

use serde_json::{Value, json};

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::payload::Payload;
use super::reply::{Decision, object};
use super::shape::{CLAUDE, Shape, Step};

const SETTINGS: Content = Content::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Milliseconds,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "BeforeAgent", seconds: 60 },
        Hook { event: "BeforeTool", seconds: 10 },
        Hook { event: "AfterTool", seconds: 10 },
        Hook { event: "AfterAgent", seconds: 10 },
        Hook { event: "SessionEnd", seconds: 10 },
    ],
});
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback.toml"));
const UNDO: Content = Content::Whole(include_str!("../../hooks/undo.toml"));

pub const DOOR: Door = Door {
    name: "gemini-cli",
    title: "Gemini CLI",
    captured: true,
    program: "gemini",
    place: Spot { env: None, dir: ".gemini", path: "" },
    shape: Shape {
        steps: &[
            ("SessionStart", Step::SessionStart),
            ("SessionEnd", Step::SessionEnd),
            ("BeforeAgent", Step::TurnStart),
            ("AfterAgent", Step::TurnEnd),
            ("BeforeTool", Step::Before),
            ("AfterTool", Step::After),
            ("PreCompress", Step::Unused),
            ("Notification", Step::Unused),
            ("BeforeModel", Step::Unused),
            ("AfterModel", Step::Unused),
            ("BeforeToolSelection", Step::Unused),
        ],
        turn: &[],
        action: &[],
        shells: &["run_shell_command"],
        outcome,
        ..CLAUDE
    },
    reply,
    hears: |step| matches!(step, Step::After | Step::TurnStart | Step::SessionStart),
    user: &[
        File { spot: Spot { env: None, dir: ".gemini", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".gemini", path: "commands/rollback.toml" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".gemini", path: "commands/undo.toml" }, content: UNDO },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".gemini", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".gemini", path: "commands/rollback.toml" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".gemini", path: "commands/undo.toml" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    advice: Some("Gemini CLI runs a project's hooks only in folders you trust."),
};

fn reply(event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Step::Before);
    let answer = decision.answer.as_ref().filter(|_| step == Step::TurnStart);
    let says_no = deny.or(answer);
    let (hears, notes) = ((DOOR.hears)(step), decision.notes());
    let context = notes.clone().filter(|_| hears && answer.is_none());
    // A refusal reaches the model by its reason; else the person at least is told what the model is not.
    let shown: Vec<String> =
        decision.message.clone().into_iter().chain(notes.filter(|_| step == Step::Before && deny.is_none())).collect();
    object([
        ("decision", says_no.map(|_| json!("deny"))),
        ("reason", says_no.map(|reason| json!(reason))),
        ("hookSpecificOutput", context.map(|context| json!({ "hookEventName": event, "additionalContext": context }))),
        ("systemMessage", (!shown.is_empty()).then(|| json!(shown.join("\n")))),
    ])
}

fn outcome(payload: &Payload) -> Outcome {
    Outcome { ok: Some(payload.at(&["/tool_response/error"]).is_none()), exit: None }
}
