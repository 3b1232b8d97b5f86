//! Qwen Code (0.24.4, payloads captured). After every tool it sends an empty prompt with the same `prompt_id`: no new turn.

use super::commands::UNDO;
use crate::agents::edit::json::Style;
use crate::agents::install::{FileContent, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply;
use crate::agents::shape::{CLAUDE, Moment, Shape};

const SETTINGS: FileContent = FileContent::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Milliseconds,
    runner: Runner::Shell,
    hooks: super::claude_code::HOOKS,
});
/// Its placeholder is that of Gemini CLI, in a file of the form of Claude Code.
const ROLLBACK: FileContent = FileContent::Whole(include_str!("../../../hooks/rollback-qwen.md"));

/// The client's profile.
pub(crate) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::Always,
    program: "qwen",
    marks: &["QWEN_CODE"],
    directory: Spot { env: None, dir: ".qwen", path: "" },
    // The typed text comes first: the prompt may be the text of a custom command.
    shape: Shape {
        agent: &["/agent_id"],
        agent_kind: &["/agent_type"],
        shells: &["run_shell_command"],
        prompt: &["/submitted_prompt", "/prompt"],
        ..CLAUDE
    },
    reply: |event, step, decision| reply::envelope(event, step, decision, reaches_model(step)),
    reaches_model,
    user: &[
        HookFile { spot: Spot { env: None, dir: ".qwen", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".qwen", path: "commands/rollback.md" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".qwen", path: "commands/undo.md" }, content: UNDO },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".qwen", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".qwen", path: "commands/rollback.md" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".qwen", path: "commands/undo.md" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    rewind: None,
    advice: None,
};

/// A note before a tool does not reach the model, and one behind a tool does (0.24.4, measured).
fn reaches_model(step: Moment) -> bool {
    step != Moment::Before && reply::claude_reaches_model(step)
}
