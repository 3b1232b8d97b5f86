//! Claude Code (2.1.332, payloads captured).

use super::commands::ROLLBACK;
use crate::agents::edit::json::Style;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply;
use crate::agents::shape::{CLAUDE, Shape};

/// The hooks of Claude Code, which Qwen Code takes too.
pub(super) const HOOKS: &[Hook] = &[
    Hook { event: "SessionStart", seconds: 10 },
    Hook { event: "UserPromptSubmit", seconds: 60 },
    Hook { event: "PreToolUse", seconds: 10 },
    Hook { event: "PostToolUse", seconds: 10 },
    Hook { event: "PostToolUseFailure", seconds: 10 },
    Hook { event: "SubagentStop", seconds: 10 },
    Hook { event: "Stop", seconds: 10 },
    Hook { event: "SessionEnd", seconds: 10 },
];

const SETTINGS: FileContent =
    FileContent::Json(Hooks { style: Style::Groups, unit: Unit::Seconds, runner: Runner::VetoShell, hooks: HOOKS });

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "claude",
    marks: &["CLAUDECODE"],
    directory: Spot { env: Some("CLAUDE_CONFIG_DIR"), dir: ".claude", path: "" },
    shape: Shape { agent: &["/agent_id"], agent_kind: &["/agent_type"], ..CLAUDE },
    reply: reply::claude,
    reaches_model: reply::claude_reaches_model,
    user: &[
        HookFile {
            spot: Spot { env: Some("CLAUDE_CONFIG_DIR"), dir: ".claude", path: "settings.json" },
            content: SETTINGS,
        },
        HookFile {
            spot: Spot { env: Some("CLAUDE_CONFIG_DIR"), dir: ".claude", path: "commands/rollback.md" },
            content: ROLLBACK,
        },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".claude", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".claude", path: "commands/rollback.md" }, content: ROLLBACK },
    ],
    // `/undo` is the client's own word for its rewind.
    commands: &["rollback"],
    rewind: Some("/rewind"),
    advice: None,
};
