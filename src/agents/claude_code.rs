//! Claude Code (2.1.329, payloads captured).

use super::Door;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::shape::CLAUDE;

/// One command file for both scopes; `/undo` is the client's own word for its rewind.
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback.md"));

pub const HOOKS: &[Hook] = &[
    Hook { event: "SessionStart", seconds: 10 },
    Hook { event: "UserPromptSubmit", seconds: 60 },
    Hook { event: "PreToolUse", seconds: 10 },
    Hook { event: "PostToolUse", seconds: 10 },
    Hook { event: "PostToolUseFailure", seconds: 10 },
    Hook { event: "Stop", seconds: 10 },
    Hook { event: "SessionEnd", seconds: 10 },
];

const SETTINGS: Content = Content::Json(Hooks { style: Style::Groups, unit: Unit::Seconds, hooks: HOOKS });

pub const DOOR: Door = Door {
    name: "claude-code",
    title: "Claude Code",
    captured: true,
    program: "claude",
    place: Spot { env: Some("CLAUDE_CONFIG_DIR"), dir: ".claude", path: "" },
    shape: CLAUDE,
    reply: super::reply::claude,
    hears: super::hears_claude,
    user: &[
        File {
            spot: Spot { env: Some("CLAUDE_CONFIG_DIR"), dir: ".claude", path: "settings.json" },
            content: SETTINGS,
        },
        File {
            spot: Spot { env: Some("CLAUDE_CONFIG_DIR"), dir: ".claude", path: "commands/rollback.md" },
            content: ROLLBACK,
        },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".claude", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".claude", path: "commands/rollback.md" }, content: ROLLBACK },
    ],
    commands: &["rollback"],
    advice: None,
};
