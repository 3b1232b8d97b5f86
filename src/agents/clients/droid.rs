//! Factory droid (0.215.0, payloads of `droid exec` captured). Of prompts it tells nothing there, and of a tool that failed no end.

use super::commands::{ROLLBACK, UNDO};
use crate::agents::edit::json::Style;
use crate::agents::event::ActionOutcome;
use crate::agents::install::{FileContent, Hook, HookFile, Hooks, Runner, Spot, Unit};
use crate::agents::profile::{Profile, ReportedEnds};
use crate::agents::reply;
use crate::agents::shape::{CLAUDE, Moment, Shape};

const SETTINGS: FileContent = FileContent::Json(Hooks {
    style: Style::Groups,
    unit: Unit::Seconds,
    runner: Runner::Shell,
    hooks: &[
        Hook { event: "SessionStart", seconds: 10 },
        Hook { event: "UserPromptSubmit", seconds: 60 },
        Hook { event: "PreToolUse", seconds: 10 },
        Hook { event: "PostToolUse", seconds: 10 },
        Hook { event: "Stop", seconds: 10 },
        Hook { event: "SessionEnd", seconds: 10 },
    ],
});

/// The client's profile.
pub(super) const PROFILE: Profile = Profile {
    captured: true,
    ends: ReportedEnds::OnSuccess,
    program: "droid",
    marks: &[],
    directory: Spot { env: None, dir: ".factory", path: "" },
    shape: Shape {
        turn: &[],
        shells: &["Execute"],
        writers: &["Create"],
        // The payload after a failure was not seen.
        outcome: |_| ActionOutcome::default(),
        ..CLAUDE
    },
    reply: |event, step, decision| reply::envelope(event, step, decision, reaches_model(step)),
    reaches_model,
    user: &[
        HookFile { spot: Spot { env: None, dir: ".factory", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".factory", path: "commands/rollback.md" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".factory", path: "commands/undo.md" }, content: UNDO },
    ],
    project: &[
        HookFile { spot: Spot { env: None, dir: ".factory", path: "settings.json" }, content: SETTINGS },
        HookFile { spot: Spot { env: None, dir: ".factory", path: "commands/rollback.md" }, content: ROLLBACK },
        HookFile { spot: Spot { env: None, dir: ".factory", path: "commands/undo.md" }, content: UNDO },
    ],
    commands: &["rollback", "undo"],
    rewind: None,
    advice: None,
};

/// Notes reach the model after a tool that went well, and at the start of a session (0.215.0, measured). Of prompts it is not known:
/// `droid exec` tells of none.
fn reaches_model(step: Moment) -> bool {
    matches!(step, Moment::After | Moment::SessionStart)
}
