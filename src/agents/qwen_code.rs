//! Qwen Code (0.24.4, payloads captured). After every tool it sends an empty prompt with the same `prompt_id`: no new turn.

use super::Door;
use super::install::{Content, File, Hooks, Spot, Style, Unit};
use super::shape::{CLAUDE, Shape};

const SETTINGS: Content =
    Content::Json(Hooks { style: Style::Groups, unit: Unit::Milliseconds, hooks: super::claude_code::HOOKS });
/// Its placeholder is that of Gemini CLI, in a file of the form of Claude Code.
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback-qwen.md"));
const UNDO: Content = Content::Whole(include_str!("../../hooks/undo.md"));

pub const DOOR: Door = Door {
    name: "qwen-code",
    title: "Qwen Code",
    captured: true,
    program: "qwen",
    place: Spot { env: None, dir: ".qwen", path: "" },
    // What was typed, where the prompt is the text of a custom command.
    shape: Shape { shells: &["run_shell_command"], prompt: &["/submitted_prompt", "/prompt"], ..CLAUDE },
    reply: super::reply::claude,
    hears: super::hears_claude,
    user: &[
        File { spot: Spot { env: None, dir: ".qwen", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".qwen", path: "commands/rollback.md" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".qwen", path: "commands/undo.md" }, content: UNDO },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".qwen", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".qwen", path: "commands/rollback.md" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".qwen", path: "commands/undo.md" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    advice: None,
};
