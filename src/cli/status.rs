//! `piton status`.

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::doors::replies;
use crate::engine::workspace::why_off;
use crate::error::Result;
use crate::model::text::printable;
use crate::protocol::{Interrupted, StatusDocument, StatusFacts, spelling};
use crate::settings::{Effective, Mistake};

/// Of each list, the newest that are shown.
const SHOWN: usize = 10;

/// Prints the state of the protection.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn status(context: &mut Context) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let facts = replies::status(&mut timeline)?;
    let settings = context.settings()?;
    let facts = StatusFacts {
        guard_off: why_off(settings.policy.guard, &timeline.workspace().dir, &settings.origin("guard")),
        warnings: settings.faults(),
        ..facts
    };
    let exit = if facts.broken.is_empty() { Exit::Done } else { Exit::Damaged };
    if context.json {
        let settings = settings.policy.sources.iter().map(|path| path.display().to_string()).collect();
        print::json(&StatusDocument { facts, settings })?;
    } else {
        print::data(&text(&facts, &settings))?;
    }
    Ok(exit)
}

fn text(facts: &StatusFacts, settings: &Effective) -> String {
    let mut text = String::new();
    let workspace = &facts.workspace;
    for (name, value) in [
        ("workspace", printable(&workspace.path)),
        ("scope", spelling(&workspace.scope)),
        ("since", print::local_time(workspace.since.as_deref().unwrap_or_default())),
        ("guard", facts.guard.text()),
        ("watcher", spelling(&facts.watcher)),
        ("store", printable(&facts.store)),
        ("checkpoints", facts.checkpoints.to_string()),
    ] {
        add_line!(text, "{name:<12} {value}");
    }
    if let Some(last) = &facts.last {
        let (time, reason) = (print::local_time(&last.time), printable(&last.reason));
        add_line!(text, "{:<12} {} at {time}: {reason}", "last", last.n);
    }
    if let Some(why) = &facts.guard_off {
        add_line!(text, "{:<12} {}", "guard off", printable(why));
    }
    // A mistake that is not corrected is listed among the settings, and not once more as a fault.
    let known: Vec<String> = settings.mistakes.iter().map(Mistake::noted).collect();
    let is_told = |line: &String| known.iter().any(|head| line.contains(head));
    let shown = |restore: &Interrupted| serde_json::to_value(restore).unwrap_or_default().to_string();
    let interrupted: Vec<String> = facts.interrupted.iter().map(shown).collect();
    let lists = [
        ("interrupted", &interrupted),
        ("broken", &facts.broken),
        ("settings", &facts.warnings),
        ("mishap", &facts.mishaps),
    ];
    for (name, list) in lists {
        for item in list.iter().filter(|item| !is_told(item)).rev().take(SHOWN) {
            add_line!(text, "{name:<12} {}", printable(item));
        }
    }
    text
}
