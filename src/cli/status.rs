//! `piton status`.

use std::path::Path;
use std::time::{Duration, Instant};

use super::context::Context;
use super::exit::Exit;
use super::guards;
use super::print;
use super::protection::protection_of;
use super::unguarded;
use crate::checkpoint::Workspace;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::upkeep::forget::unfinished;
use crate::doors::socket::Link;
use crate::doors::{protection as words, replies};
use crate::engine::workspace::why_off;
use crate::error::Result;
use crate::model::text::{count, printable};
use crate::protocol::{
    Body, Interrupted, OpenReply, StatusDocument, StatusFacts, WatcherWord, WatchingQuery, spelling,
};
use crate::settings::{Effective, Mistake};

/// Of each list, the newest that are shown.
const SHOWN: usize = 10;

/// The time that a daemon may take to tell of its watcher.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the state of the watcher of a workspace: that of the daemon, if it has it open. Also why it does not cover all that it should.
fn watcher(context: &Context, workspace: &Workspace) -> (WatcherWord, Option<String>) {
    if at_work(&guard_mark(&workspace.dir)) != AtWork::Now {
        return (WatcherWord::None, None);
    }
    let told = Link::to_running(&context.home).ok().flatten().and_then(|mut link| {
        let query = WatchingQuery { workspace: workspace.path.to_string_lossy().into_owned() };
        let until = Instant::now() + PATIENCE;
        let id = link.send(&Body::Watching(query), until).ok()?;
        link.reply::<OpenReply>(id, until).ok().flatten()
    });
    // A daemon that cannot be asked is one process among others.
    let told = told.filter(|reply| reply.open).map(|reply| (reply.watcher, reply.degraded));
    told.unwrap_or((WatcherWord::Elsewhere, None))
}

fn watcher_text(watcher: WatcherWord) -> String {
    match watcher {
        WatcherWord::None => "none".to_owned(),
        WatcherWord::Elsewhere => "runs in a sidecar or proxy process, which cannot be queried from here".to_owned(),
        word => format!("{} (the daemon's)", spelling(&word)),
    }
}

fn copy_text(has_second_copy: bool) -> &'static str {
    if has_second_copy { "has a second copy" } else { "no second copy: if this disk fails, the checkpoints are lost" }
}

/// Prints the state of the protection.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn status(context: &mut Context) -> Result<Exit> {
    let mut timeline = context.timeline_to_read()?;
    let look = timeline.catalog().look_for_damages()?;
    let extent = look.extent();
    let facts = replies::status(&mut timeline, look.found)?;
    let settings = context.settings()?;
    let unwritable = timeline.catalog().try_writing().err();
    let workspace = timeline.workspace().clone();
    let guard_off = why_off(settings.policy.guard, &workspace.dir, &settings.origin("guard"));
    let left = unfinished(&context.home);
    let (watcher, degraded) = watcher(context, timeline.workspace());
    let facts = StatusFacts {
        protection: protection_of(context, (&workspace.path, Some(&workspace)), &settings, unwritable.as_ref()),
        guard_off: guard_off.or_else(|| unwritable.as_ref().map(words::unwritable)),
        warnings: settings.faults().into_iter().chain(left.clone()).collect(),
        watcher,
        degraded,
        ..facts
    };
    let exit = match (facts.broken.is_empty(), unwritable) {
        (false, _) => Exit::Damaged,
        (true, Some(_)) => Exit::Failed,
        (true, None) => Exit::Done,
    };
    if context.json {
        let settings = settings.policy.sources.iter().map(|path| path.display().to_string()).collect();
        print::json(&StatusDocument { facts, settings })?;
    } else {
        print::data(&text(&facts, &settings, &extent, left.as_deref(), &unguarded::removal(&workspace)))?;
    }
    Ok(exit)
}

fn text(facts: &StatusFacts, settings: &Effective, looked: &str, left: Option<&str>, removal: &str) -> String {
    let workspace = &facts.workspace;
    let mut text = format!("{}\n", guards::headline(Path::new(&workspace.path), &facts.protection));
    text.push_str(&guards::table(&facts.protection));
    text.push('\n');
    for (name, value) in [
        ("workspace", printable(&workspace.path)),
        ("scope", spelling(&workspace.scope)),
        ("since", print::local_time(workspace.since.as_deref().unwrap_or_default())),
        ("guard", facts.guard.text()),
        ("watcher", watcher_text(facts.watcher)),
        ("store", printable(&facts.store)),
        ("", copy_text(facts.second_copy).to_owned()),
        ("checkpoints", facts.checkpoints.to_string()),
    ] {
        add_line!(text, "{name:<12} {value}");
    }
    if facts.broken.is_empty() {
        add_line!(text, "{:<12} {looked}", "checked");
    }
    if let Some(last) = &facts.last {
        let (time, reason) = (print::local_time(&last.time), printable(&last.reason));
        add_line!(text, "{:<12} {} at {time}: {reason}", "last", last.n);
    }
    if let Some(why) = &facts.guard_off {
        add_line!(text, "{:<12} {}", "guard off", printable(why));
    }
    if let Some(why) = &facts.degraded {
        add_line!(text, "{:<12} {}", "degraded", printable(why));
    }
    if let Some(cap) = &facts.cap {
        add_line!(text, "{:<12} {}", "cap", printable(cap));
    }
    // A mistake that is not corrected is listed among the settings, and not once more as a fault.
    let known: Vec<String> = settings.mistakes.iter().map(Mistake::noted).collect();
    let is_told = |line: &String| Some(line.as_str()) == left || known.iter().any(|head| line.contains(head));
    if let Some(left) = left {
        add_line!(text, "{:<12} {}", "forget", printable(left));
    }
    let shown = |restore: &Interrupted| format!("restore {} was interrupted: {}", restore.operation, restore.next);
    let interrupted: Vec<String> = facts.interrupted.iter().map(shown).collect();
    for item in facts.unguarded.iter().rev().take(SHOWN) {
        add_line!(text, "{:<12} {}", "unguarded", unguarded::line(item));
    }
    if !facts.unguarded.is_empty() {
        let number = count(facts.unguarded.len() as u64, "action");
        add_line!(text, "{:<12} {number} ran without a checkpoint; after you have reviewed them, run: {removal}", "");
    }
    let lists = [
        ("interrupted", &interrupted),
        ("broken", &facts.broken),
        ("settings", &facts.warnings),
        ("mishap", &facts.mishaps),
    ];
    for (name, list) in lists {
        for item in list.iter().filter(|item| !is_told(item)).rev().take(SHOWN) {
            let shown = if name == "mishap" { print::mishap(item) } else { printable(item) };
            add_line!(text, "{name:<12} {shown}");
        }
    }
    text
}
