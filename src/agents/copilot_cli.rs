//! Copilot CLI (1.0.102, payloads captured). Payloads do not name their event; any exit code but 0 blocks.

use serde_json::{Value, json};

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::payload::Payload;
use super::reply::{Decision, object};
use super::shape::{CLAUDE, Shape, Step};

/// A file of piton's own: the client reads all of a directory.
const HOOKS: Content = Content::Json(Hooks {
    style: Style::Copilot,
    unit: Unit::Seconds,
    hooks: &[
        Hook { event: "sessionStart", seconds: 10 },
        Hook { event: "userPromptSubmitted", seconds: 10 },
        Hook { event: "preToolUse", seconds: 10 },
        Hook { event: "postToolUse", seconds: 10 },
        Hook { event: "postToolUseFailure", seconds: 10 },
        Hook { event: "agentStop", seconds: 10 },
        Hook { event: "sessionEnd", seconds: 10 },
    ],
});

pub const DOOR: Door = Door {
    name: "copilot-cli",
    title: "Copilot CLI",
    captured: true,
    program: "copilot",
    place: Spot { env: Some("COPILOT_HOME"), dir: ".copilot", path: "" },
    shape: Shape {
        steps: &[
            ("sessionStart", Step::SessionStart),
            ("sessionEnd", Step::SessionEnd),
            ("userPromptSubmitted", Step::TurnStart),
            ("agentStop", Step::TurnEnd),
            ("preToolUse", Step::Before),
            ("postToolUse", Step::After),
            ("postToolUseFailure", Step::Failed),
            ("permissionRequest", Step::Unused),
            ("notification", Step::Unused),
            ("errorOccurred", Step::Unused),
            ("preCompact", Step::Unused),
            ("subagentStart", Step::Unused),
            ("subagentStop", Step::Unused),
        ],
        echo: &["/hookName"],
        session: &["/sessionId"],
        turn: &[],
        tool: &["/toolName"],
        input: &["/toolArgs", "/toolInput"],
        action: &[],
        shells: &["bash"],
        writers: &["create"],
        answers: false,
        outcome,
        ..CLAUDE
    },
    reply,
    hears: |step| step == Step::Before,
    user: &[File {
        spot: Spot { env: Some("COPILOT_HOME"), dir: ".copilot", path: "hooks/piton.json" },
        content: HOOKS,
    }],
    project: &[File { spot: Spot { env: None, dir: ".github", path: "hooks/piton.json" }, content: HOOKS }],
    commands: &[],
    advice: None,
};

fn reply(_event: &str, step: Step, decision: &Decision) -> Option<Value> {
    let before = step == Step::Before;
    let deny = decision.deny.as_ref().filter(|_| before);
    object([
        ("permissionDecision", deny.map(|_| json!("deny"))),
        ("permissionDecisionReason", deny.map(|reason| json!(reason))),
        ("additionalContext", decision.notes().filter(|_| before).map(Value::String)),
    ])
}

fn outcome(payload: &Payload) -> Outcome {
    let told = payload.at(&["/toolResult/resultType"]).and_then(Value::as_str);
    Outcome { ok: told.map(|told| told == "success"), exit: None }
}
