//! Verbs about the protection itself: the overview, status, off, on.

use serde_json::Value;

use super::verbs::OffArgs;
use super::{Context, Exit, print};
use crate::checkpoint::capture::take::listed_skips;
use crate::doors::stdio::shared;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Kind;
use crate::model::policy::Guard;
use crate::model::text::{count, printable};
use crate::settings::Mistake;
use crate::sys::clock::{local_minute, now_ms};

/// `piton` alone: a few lines.
pub fn overview(context: &mut Context) -> Result<Exit> {
    if context.json {
        return status(context);
    }
    let Some(workspace) = context.known_workspace()? else {
        let root = context.root()?;
        context.settings()?.faults().iter().for_each(|fault| print::warning(fault));
        print::data(&format!(
            "{} is not protected yet: no agent was guarded here and no checkpoint taken.\n\n\
             \x20 piton checkpoint \"before the agent\"   take one now\n\
             \x20 piton sidecar                         guard an agent (docs/PROTOCOL.md)\n\
             \x20 piton demo                            see it at work\n",
            printable(&root.to_string_lossy())
        ))?;
        return Ok(Exit::Nothing);
    };
    let mut timeline = context.timeline()?;
    let (all, mut broken) = timeline.checkpoints()?;
    broken.extend(timeline.damages()?);
    let shown: Vec<_> = all.iter().filter(|checkpoint| checkpoint.record.kind != Kind::Turn).collect();
    let settings = context.settings()?;
    let off = shared::why_off(&settings.policy, &workspace.dir, &settings.origin("guard"));
    let mut text = String::new();
    let state = if off.is_some() { "is known, but NOT protected now" } else { "is protected" };
    let root = printable(&workspace.path.to_string_lossy());
    add_line!(text, "{} {state}, since {}.", print::bold(&root), print::local_time(&workspace.since));
    if let Some(why) = off {
        add_line!(text, "No checkpoint is taken before a loss: {}.", printable(&why));
    }
    for mistake in &settings.mistakes {
        add_line!(text, "Settings: {}.", printable(&mistake.text()));
    }
    match shown.last() {
        None => text.push_str("No checkpoint yet.\n"),
        Some(last) => {
            add_line!(
                text,
                "{}; the last: {} ({}, {}).",
                count(shown.len() as u64, "checkpoint"),
                last.record.ordinal,
                print::local_time(&last.record.time),
                printable(&last.record.reason)
            );
            // A damaged one is told below.
            let contents = timeline.contents(last);
            let skips = contents.map(|(_, coverage)| listed_skips(&coverage)).unwrap_or_default();
            if !skips.is_empty() {
                let names: Vec<String> =
                    skips.iter().take(3).map(|(path, why)| format!("{} ({why})", path.display())).collect();
                add_line!(
                    text,
                    "Left out: {}: {}{}",
                    count(skips.len() as u64, "path"),
                    names.join(", "),
                    if skips.len() > 3 { ", …" } else { "" }
                );
            }
        }
    }
    if let Err(error) = timeline.refuse_interrupted() {
        add_line!(text, "{}", error.text());
    }
    broken.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    text.push_str("\n  piton list · piton diff N · piton restore N · piton undo\n");
    print::data(&text)?;
    Ok(if broken.is_empty() { Exit::Done } else { Exit::Damaged })
}

/// Of each list, the newest that are shown.
const SHOWN: usize = 10;

pub fn status(context: &mut Context) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let mut status = shared::status(&mut timeline)?;
    let broken = status["broken"].as_array().is_some_and(|broken| !broken.is_empty());
    let settings = context.settings()?;
    let off = shared::why_off(&settings.policy, &timeline.workspace().dir, &settings.origin("guard"));
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
            add_line!(text, "{name:<12} {}", word(value));
        }
        if let Some(last) = status["last"].as_object() {
            add_line!(text, "{:<12} {} at {}: {}", "last", last["n"], word(&last["time"]), word(&last["reason"]));
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

pub fn off(context: &mut Context, args: &OffArgs) -> Result<Exit> {
    let now = now_ms();
    let until = match &args.span {
        None => i64::MAX,
        Some(text) => now.saturating_add(span_ms(text)?),
    };
    let timeline = context.timeline()?;
    timeline.change_state(|state| {
        state.off_until = Some(until);
        state.off_since = args.span.as_ref().map(|_| now);
    })?;
    let how_long = match until {
        i64::MAX => "until `piton on`".to_owned(),
        until => format!("until {}, or until `piton on`", local_minute(until)),
    };
    print::data(&format!(
        "The guard of {} is off {how_long}. Its checkpoints stay.\n",
        print::path(&timeline.workspace().path)
    ))?;
    Ok(Exit::Done)
}

fn span_ms(text: &str) -> Result<i64> {
    let bad = || {
        Error::new(Code::BadRequest, format!("`{}` is not a length of time", printable(text)))
            .field("for")
            .hint("for example 30m, 1h, 2 days")
    };
    let span: jiff::Span = text.parse().map_err(|_| bad())?;
    let ms = span.total((jiff::Unit::Millisecond, jiff::SpanRelativeTo::days_are_24_hours())).map_err(|_| bad())?;
    if ms > 0.0 && ms < 1e14 { Ok(ms as i64) } else { Err(bad()) }
}

pub fn on(context: &mut Context) -> Result<Exit> {
    let timeline = context.timeline()?;
    timeline.change_state(|state| {
        state.off_until = None;
        state.off_since = None;
    })?;
    let (root, settings) = (print::path(&timeline.workspace().path), context.settings()?);
    if settings.policy.guard == Guard::Off {
        let place = printable(&settings.origin("guard"));
        print::data(&format!(
            "The switch of {root} is on, but nothing is guarded: the settings say `guard: off` ({place}).\n\
             Change that to `guard: turn`, or take it out; `piton status` then says `turn`.\n"
        ))?;
        return Ok(Exit::Part);
    }
    print::data(&format!("The guard of {root} is on.\n"))?;
    Ok(Exit::Done)
}
