//! pi (0.74.2, payloads captured): what the extension `hooks/pi.ts` sends. A turn of pi is one call of the model; a turn of
//! ours lasts from `before_agent_start` to `agent_end`.

use serde_json::Value;

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Spot};
use super::payload::Payload;
use super::shape::{Shape, Step};

const EXTENSION: Content = Content::Shim(include_str!("../../hooks/pi.ts"));

pub const DOOR: Door = Door {
    name: "pi",
    title: "pi",
    captured: true,
    program: "pi",
    place: Spot { env: None, dir: ".pi", path: "" },
    shape: Shape {
        steps: &[
            ("session_start", Step::SessionStart),
            ("session_shutdown", Step::SessionEnd),
            ("input", Step::Ask),
            ("before_agent_start", Step::TurnStart),
            ("agent_end", Step::TurnEnd),
            ("tool_call", Step::Before),
            ("tool_result", Step::After),
            ("agent_start", Step::Unused),
            ("turn_start", Step::Unused),
            ("turn_end", Step::Unused),
            ("tool_execution_start", Step::Unused),
            ("tool_execution_end", Step::Unused),
        ],
        echo: &["/type"],
        session: &["/session"],
        turn: &[],
        cwd: &["/cwd"],
        prompt: &["/prompt", "/text"],
        tool: &["/toolName"],
        input: &["/input"],
        action: &["/toolCallId"],
        command: &[],
        shells: &["bash"],
        writers: &[],
        cwd_told: true,
        answers: true,
        outcome,
    },
    reply: super::reply::shim,
    hears: super::reply::hears_shim,
    user: &[File { spot: Spot { env: None, dir: ".pi", path: "agent/extensions/piton.ts" }, content: EXTENSION }],
    project: &[File { spot: Spot { env: None, dir: ".pi", path: "extensions/piton.ts" }, content: EXTENSION }],
    commands: &["rollback", "undo"],
    advice: None,
};

fn outcome(payload: &Payload) -> Outcome {
    Outcome { ok: payload.at(&["/isError"]).and_then(Value::as_bool).map(|error| !error), exit: None }
}
