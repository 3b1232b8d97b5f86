//! Factory droid (0.215.0; `PreToolUse` captured, the rest from documentation). Prompts are not told in `droid exec`.

use super::Door;
use super::event::Outcome;
use super::install::{Content, File, Hook, Hooks, Spot, Style, Unit};
use super::shape::{CLAUDE, Shape};

const SETTINGS: Content = Content::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Seconds,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "UserPromptSubmit", seconds: 60 },
        Hook { event: "PreToolUse", seconds: 10 },
        Hook { event: "PostToolUse", seconds: 10 },
        Hook { event: "Stop", seconds: 10 },
        Hook { event: "SessionEnd", seconds: 10 },
    ],
});
const ROLLBACK: Content = Content::Whole(include_str!("../../hooks/rollback.md"));
const UNDO: Content = Content::Whole(include_str!("../../hooks/undo.md"));

pub const DOOR: Door = Door {
    name: "droid",
    title: "Factory droid",
    captured: true,
    program: "droid",
    place: Spot { env: None, dir: ".factory", path: "" },
    shape: Shape {
        turn: &[],
        shells: &["Execute"],
        writers: &["Create"],
        // What is sent after a failure was not seen.
        outcome: |_| Outcome::default(),
        ..CLAUDE
    },
    reply: super::reply::claude,
    hears: super::hears_claude,
    user: &[
        File { spot: Spot { env: None, dir: ".factory", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".factory", path: "commands/rollback.md" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".factory", path: "commands/undo.md" }, content: UNDO },
    ],
    project: &[
        File { spot: Spot { env: None, dir: ".factory", path: "settings.json" }, content: SETTINGS },
        File { spot: Spot { env: None, dir: ".factory", path: "commands/rollback.md" }, content: ROLLBACK },
        File { spot: Spot { env: None, dir: ".factory", path: "commands/undo.md" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    advice: None,
};
