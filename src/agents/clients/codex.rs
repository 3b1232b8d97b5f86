//! Codex (0.171.0, payloads captured). Edits come as patch text in the field `command`; the directory of a shell command is
//! kept from hooks.

use serde_json::Value;

use super::commands::ROLLBACK;
use crate::agents::edit::json::Style;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::payload::Payload;
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply;
use crate::agents::shape::{CLAUDE, Shape};

/// A file of hooks alone: `config.toml` is not touched. Its root takes no other field than these.
const SETTINGS: FileContent = FileContent::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Seconds,
    runner: Runner::Verbatim,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "UserPromptSubmit", seconds: 60 },
        Hook { event: "PreToolUse", seconds: 10 },
        Hook { event: "PostToolUse", seconds: 10 },
        Hook { event: "SubagentStop", seconds: 10 },
        Hook { event: "Stop", seconds: 10 },
        // Cut to this anyway.
        Hook { event: "SessionEnd", seconds: 3 },
    ],
});

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "codex",
    marks: &["CODEX_THREAD_ID", "CODEX_SANDBOX"],
    directory: Spot { env: Some("CODEX_HOME"), dir: ".codex", path: "" },
    shape: Shape {
        turn: &["/turn_id"],
        agent: &["/agent_id"],
        agent_kind: &["/agent_type"],
        cwd_told: false,
        outcome,
        ..CLAUDE
    },
    reply: reply::claude,
    reaches_model: reply::claude_reaches_model,
    user: &[
        HookFile { spot: Spot { env: Some("CODEX_HOME"), dir: ".codex", path: "hooks.json" }, content: SETTINGS },
        HookFile {
            spot: Spot { env: Some("CODEX_HOME"), dir: ".codex", path: "prompts/rollback.md" },
            content: ROLLBACK,
        },
    ],
    project: &[HookFile { spot: Spot { env: None, dir: ".codex", path: "hooks.json" }, content: SETTINGS }],
    commands: &["rollback"],
    rewind: None,
    advice: Some("Codex silently ignores hooks until you trust them. Open `/hooks` in Codex and trust piton's hooks."),
};

/// Reads the exit code from the first line of the text for the model.
fn outcome(payload: &Payload) -> ActionOutcome {
    let text = payload.at(&["/tool_response"]).and_then(Value::as_str).unwrap_or_default();
    let exit = text.strip_prefix("Exit code: ").and_then(|text| text.lines().next()?.trim().parse().ok());
    ActionOutcome { ok: exit.map(|exit: i64| exit == 0).or(Some(true)), exit }
}
