//! Hermes Agent (0.19.0, payloads captured). Its `on_session_end` comes at the end of every turn; the end of the session is
//! `on_session_finalize`.

use serde_json::{Value, json};

use crate::agents::edit::json::Style;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

const SETTINGS: FileContent = FileContent::Yaml(Hooks {
    style: Style::Flat,
    unit: Unit::Seconds,
    runner: Runner::Verbatim,
    hooks: &[
        Hook { event: "on_session_start", seconds: 10 },
        Hook { event: "pre_llm_call", seconds: 10 },
        Hook { event: "pre_tool_call", seconds: 10 },
        Hook { event: "post_tool_call", seconds: 10 },
        Hook { event: "subagent_start", seconds: 10 },
        Hook { event: "subagent_stop", seconds: 10 },
        Hook { event: "on_session_end", seconds: 10 },
        Hook { event: "on_session_finalize", seconds: 10 },
    ],
});

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "hermes",
    marks: &[],
    directory: Spot { env: Some("HERMES_HOME"), dir: ".hermes", path: "" },
    shape: Shape {
        steps: &[
            ("on_session_start", Moment::SessionStart),
            ("on_session_finalize", Moment::SessionEnd),
            ("pre_llm_call", Moment::TurnStart),
            ("on_session_end", Moment::TurnEnd),
            ("pre_tool_call", Moment::Before),
            ("post_tool_call", Moment::After),
            ("post_llm_call", Moment::Unused),
            ("subagent_start", Moment::SessionStart),
            ("subagent_stop", Moment::SessionEnd),
        ],
        // In these two events `session_id` is the agent's, whose sub-agent has a session of its own.
        session: &["/extra/child_session_id", "/session_id"],
        parent: &["/session_id"],
        turn: &["/extra/turn_id"],
        prompt: &["/extra/user_message"],
        action: &["/extra/tool_call_id"],
        shells: &["terminal"],
        answers: false,
        outcome,
        is_background,
        ..CLAUDE
    },
    reply,
    reaches_model: |step| step == Moment::TurnStart,
    user: &[HookFile {
        spot: Spot { env: Some("HERMES_HOME"), dir: ".hermes", path: "config.yaml" },
        content: SETTINGS,
    }],
    project: &[],
    commands: &[],
    rewind: None,
    advice: Some("At its first start in a terminal, Hermes Agent asks whether piton's hooks may run. Answer yes."),
};

fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let deny = decision.deny.as_ref().filter(|_| step == Moment::Before);
    object([
        ("decision", deny.map(|_| json!("block"))),
        ("reason", deny.map(|reason| json!(reason))),
        ("context", decision.notes().filter(|_| step == Moment::TurnStart).map(Value::String)),
    ])
}

/// The beginning of the prompts with which Hermes reviews a conversation after a turn.
const REVIEW: &str = "Review the conversation above";

/// Returns true for the review that Hermes runs after some turns, in the background and under the id of the session. Its turns have a
/// task of their own. Some sessions of a person have that too, so a prompt is recognized by its text; the calls of the others go on in the
/// turn that their prompt has begun.
fn is_background(payload: &Payload) -> bool {
    let at = |place: &'static str| payload.at(&[place]).and_then(Value::as_str);
    let has_own_task = at("/extra/task_id").is_some_and(|task| at("/session_id") != Some(task));
    match at("/hook_event_name") {
        Some("pre_llm_call") => has_own_task && at("/extra/user_message").is_some_and(|text| text.starts_with(REVIEW)),
        Some("pre_tool_call" | "post_tool_call") => has_own_task,
        _ => false,
    }
}

/// Returns the status, and the exit code out of the result, which is JSON in a text.
fn outcome(payload: &Payload) -> ActionOutcome {
    let status = payload.at(&["/extra/status"]).and_then(Value::as_str);
    let result = payload.at(&["/extra/result"]).and_then(Value::as_str).unwrap_or_default();
    // Other tools answer with plain text, which tells nothing more.
    let exit = serde_json::from_str::<Value>(result).ok().and_then(|result| result.get("exit_code")?.as_i64());
    ActionOutcome { ok: status.map(|status| status == "ok" && exit.is_none_or(|exit| exit == 0)), exit }
}
