//! Copilot CLI (1.0.102, payloads captured). Payloads do not name their event; any exit code but 0 blocks.

use serde_json::{Value, json};

use crate::agents::edit::json::Style;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply::{Decision, object};
use crate::agents::shape::{CLAUDE, Moment, Shape};

/// A file of piton's own: the client reads all of a directory.
const HOOKS: FileContent = FileContent::Json(Hooks {
    style: Style::Copilot,
    unit: Unit::Seconds,
    runner: Runner::Shell,
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

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "copilot",
    marks: &["COPILOT_CLI"],
    directory: Spot { env: Some("COPILOT_HOME"), dir: ".copilot", path: "" },
    shape: Shape {
        steps: &[
            ("sessionStart", Moment::SessionStart),
            ("sessionEnd", Moment::SessionEnd),
            ("userPromptSubmitted", Moment::TurnStart),
            ("agentStop", Moment::TurnEnd),
            ("preToolUse", Moment::Before),
            ("postToolUse", Moment::After),
            ("postToolUseFailure", Moment::Failed),
            ("permissionRequest", Moment::Unused),
            ("notification", Moment::Unused),
            ("errorOccurred", Moment::Unused),
            ("preCompact", Moment::Unused),
            ("subagentStart", Moment::Unused),
            ("subagentStop", Moment::Unused),
        ],
        echo: &["/hookName"],
        // A sub-agent has a session of its own, and names the agent above it.
        session: &["/parentAgentId", "/sessionId"],
        agent: &["/agentId"],
        agent_kind: &["/agentType"],
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
    reaches_model: |step| step == Moment::Before,
    user: &[HookFile {
        spot: Spot { env: Some("COPILOT_HOME"), dir: ".copilot", path: "hooks/piton.json" },
        content: HOOKS,
    }],
    project: &[HookFile { spot: Spot { env: None, dir: ".github", path: "hooks/piton.json" }, content: HOOKS }],
    commands: &[],
    rewind: Some("/rewind"),
    advice: None,
};

fn reply(_event: &str, step: Moment, decision: &Decision) -> Option<Value> {
    let before = step == Moment::Before;
    let deny = decision.deny.as_ref().filter(|_| before);
    object([
        ("permissionDecision", deny.map(|_| json!("deny"))),
        ("permissionDecisionReason", deny.map(|reason| json!(reason))),
        ("additionalContext", decision.notes().filter(|_| before).map(Value::String)),
    ])
}

fn outcome(payload: &Payload) -> ActionOutcome {
    let told = payload.at(&["/toolResult/resultType"]).and_then(Value::as_str);
    ActionOutcome { ok: told.map(|told| told == "success"), exit: None }
}
