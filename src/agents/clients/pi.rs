//! pi (1.6.0, payloads captured): the payloads of the extension `hooks/pi.ts`. A turn of pi is one call of the model;
//! a turn of piton lasts from `before_agent_start` to `agent_end`.

use serde_json::Value;

use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, HookFile, Spot};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply;
use crate::agents::shape::{Moment, Shape};

const EXTENSION: FileContent = FileContent::Shim(include_str!("../../../hooks/pi.ts"));

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "pi",
    marks: &["PI_CODING_AGENT"],
    directory: Spot { env: Some("PI_CODING_AGENT_DIR"), dir: ".pi/agent", path: "" },
    shape: Shape {
        steps: &[
            ("session_start", Moment::SessionStart),
            ("session_shutdown", Moment::SessionEnd),
            ("input", Moment::Ask),
            ("before_agent_start", Moment::TurnStart),
            ("agent_end", Moment::TurnEnd),
            ("tool_call", Moment::Before),
            ("tool_result", Moment::After),
            ("user_bash", Moment::Line),
            // The extension's own: pi reports no end of a line.
            ("user_bash_end", Moment::LineEnd),
            ("agent_start", Moment::Unused),
            ("turn_start", Moment::Unused),
            ("turn_end", Moment::Unused),
            ("tool_execution_start", Moment::Unused),
            ("tool_execution_end", Moment::Unused),
        ],
        echo: &["/type"],
        session: &["/session"],
        parent: &[],
        agent: &[],
        agent_kind: &[],
        turn: &[],
        cwd: &["/cwd"],
        prompt: &["/prompt", "/text"],
        tool: &["/toolName"],
        input: &["/input"],
        action: &["/toolCallId"],
        command: &["/command"],
        shells: &["bash"],
        writers: &[],
        cwd_told: true,
        answers: true,
        outcome,
        is_background: |_| false,
    },
    reply: reply::shim,
    reaches_model: reply::shim_reaches_model,
    user: &[HookFile {
        spot: Spot { env: Some("PI_CODING_AGENT_DIR"), dir: ".pi/agent", path: "extensions/piton.ts" },
        content: EXTENSION,
    }],
    project: &[HookFile { spot: Spot { env: None, dir: ".pi", path: "extensions/piton.ts" }, content: EXTENSION }],
    commands: &["rollback", "undo"],
    rewind: None,
    advice: None,
};

fn outcome(payload: &Payload) -> ActionOutcome {
    ActionOutcome { ok: payload.at(&["/isError"]).and_then(Value::as_bool).map(|error| !error), exit: None }
}
