//! Codex (0.169.0, payloads captured). Edits come as patch text in the field `command`; the directory of a shell command is
//! kept from hooks.

use serde_json::Value;

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::payload::Payload;
use super::shape::{CLAUDE, Shape};

/// A file of hooks alone: `config.toml` is not touched. Its root takes no other field than these.
const SETTINGS: Content = Content::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Seconds,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "UserPromptSubmit", seconds: 60 },
        Hook { event: "PreToolUse", seconds: 10 },
        Hook { event: "PostToolUse", seconds: 10 },
        Hook { event: "Stop", seconds: 10 },
        // Cut to this anyway.
        Hook { event: "SessionEnd", seconds: 3 },
    ],
});

pub const DOOR: Door = Door {
    name: "codex",
    title: "Codex",
    captured: true,
    program: "codex",
    place: Spot { env: Some("CODEX_HOME"), dir: ".codex", path: "" },
    shape: Shape { turn: &["/turn_id"], cwd_told: false, outcome, ..CLAUDE },
    reply: super::reply::claude,
    hears: super::hears_claude,
    user: &[
        File { spot: Spot { env: Some("CODEX_HOME"), dir: ".codex", path: "hooks.json" }, content: SETTINGS },
        File {
            spot: Spot { env: Some("CODEX_HOME"), dir: ".codex", path: "prompts/rollback.md" },
            content: Content::Whole(include_str!("../../hooks/rollback.md")),
        },
    ],
    project: &[File { spot: Spot { env: None, dir: ".codex", path: "hooks.json" }, content: SETTINGS }],
    commands: &["rollback"],
    advice: Some("Codex runs no hook before you trust it, and says nothing: open `/hooks` in Codex and trust piton's."),
};

/// The first line of what the model is told holds the exit code.
fn outcome(payload: &Payload) -> Outcome {
    let text = payload.at(&["/tool_response"]).and_then(Value::as_str).unwrap_or_default();
    let exit = text.strip_prefix("Exit code: ").and_then(|text| text.lines().next()?.trim().parse().ok());
    Outcome { ok: exit.map(|exit: i64| exit == 0).or(Some(true)), exit }
}
