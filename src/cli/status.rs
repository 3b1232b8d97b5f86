//! `piton status`.

use serde_json::Value;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::doors::replies;
use crate::engine::workspace::why_off;
use crate::error::Result;
use crate::model::text::printable;
use crate::settings::Mistake;

/// Of each list, the newest that are shown.
const SHOWN: usize = 10;

/// Prints the state of the protection.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn status(context: &mut Context) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let mut status = replies::status(&mut timeline)?;
    let broken = status["broken"].as_array().is_some_and(|broken| !broken.is_empty());
    let settings = context.settings()?;
    let off = why_off(settings.policy.guard, &timeline.workspace().dir, &settings.origin("guard"));
    if let Value::Object(fields) = &mut status {
        fields
            .insert("settings".into(), settings.policy.sources.iter().map(|path| path.display().to_string()).collect());
        fields.insert("warnings".into(), settings.faults().into());
        fields.insert("guardOff".into(), off.into());
    }
    if context.json {
        print::json(&status)?;
    } else {
        let mut text = String::new();
        let local = |value: &Value| value.as_str().map_or_else(|| value.to_string(), print::local_time);
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), printable);
        for (name, value) in [
            ("workspace", &status["workspace"]["path"]),
            ("scope", &status["workspace"]["scope"]),
            ("since", &status["workspace"]["since"]),
            ("guard", &status["guard"]),
            ("watcher", &status["watcher"]),
            ("store", &status["store"]),
            ("checkpoints", &status["checkpoints"]),
        ] {
            let shown = if name == "since" { local(value) } else { word(value) };
            add_line!(text, "{name:<12} {shown}");
        }
        if let Some(last) = status["last"].as_object() {
            add_line!(text, "{:<12} {} at {}: {}", "last", last["n"], local(&last["time"]), word(&last["reason"]));
        }
        if let Some(why) = status["guardOff"].as_str() {
            add_line!(text, "{:<12} {}", "guard off", printable(why));
        }
        let lists = ["interrupted", "broken", "settings", "mishap"]
            .into_iter()
            .zip(["interrupted", "broken", "warnings", "mishaps"])
            .map(|(name, field)| (name, &status[field]));
        // A mistake that still stands is told among the settings, and not once more as what happened.
        let known: Vec<String> = settings.mistakes.iter().map(Mistake::noted).collect();
        let is_told = |line: &Value| line.as_str().is_some_and(|line| known.iter().any(|head| line.contains(head)));
        for (name, list) in lists {
            for item in list.as_array().into_iter().flatten().filter(|item| !is_told(item)).rev().take(SHOWN) {
                add_line!(text, "{name:<12} {}", word(item));
            }
        }
        print::data(&text)?;
    }
    Ok(if broken { Exit::Damaged } else { Exit::Done })
}
