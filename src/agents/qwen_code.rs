//! Qwen Code (0.24.4, payloads captured). After every tool it sends an empty prompt with the same `prompt_id`: no new turn.

use super::Door;
use super::install::{Content, File, Hooks, Spot, Style, Unit};
use super::shape::{CLAUDE, Shape};

const SETTINGS: Content =
    Content::Json(Hooks { style: Style::Groups, unit: Unit::Milliseconds, hooks: super::claude_code::HOOKS });
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback.md"));
const UNDO: Content = Content::Whole(include_str!("../../hooks/undo.md"));

pub const DOOR: Door = Door {
    name: "qwen-code",
    title: "Qwen Code",
    captured: true,
    program: "qwen",
    place: Spot { env: None, dir: ".qwen", path: "" },
    shape: Shape { shells: &["run_shell_command"], ..CLAUDE },
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
    advice: None,
};
