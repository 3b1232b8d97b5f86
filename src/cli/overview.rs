//! `piton` alone: the state of the protection in a few lines.

use super::context::Context;
use super::exit::Exit;
use super::guards;
use super::print;
use super::protection::{protection_of, unwritable};
use super::unguarded;
use crate::checkpoint::capture::request::listed_skips;
use crate::checkpoint::records::workspace::{Scope, scope_of};
use crate::checkpoint::{Checkpoint, Timeline, Workspace};
use crate::doors::{protection as words, replies};
use crate::error::{Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::text::{count, printable};
use crate::protocol::{ProtectionBlock, ProtectionState};

/// The step where nothing guards.
const INSTALL: &str = "  piton install --all                   guard the agent clients of this machine\n";

/// Says what is done in a directory that is too broad to be captured as a whole.
const BROAD: &str = "This directory is too broad for full checkpoints. A checkpoint here contains only files that an action is about \
                     to destroy, or that you list (`piton checkpoint LABEL -- PATH`). Projects below it get full checkpoints.\n";

/// `piton` alone: a few lines.
pub(super) fn overview(context: &mut Context) -> Result<Exit> {
    if context.json {
        return super::status::status(context);
    }
    let Some(workspace) = context.known_workspace()? else {
        return unknown(context);
    };
    let timeline = context.timeline_to_read()?;
    let known = timeline.catalog().all()?;
    let mut broken = timeline.catalog().broken(&known)?;
    for damage in timeline.catalog().look_for_damages()?.found {
        if !broken.contains(&damage) {
            broken.push(damage);
        }
    }
    let shown: Vec<_> =
        known.checkpoints.iter().filter(|checkpoint| checkpoint.record.kind != CheckpointKind::Turn).collect();
    let unwritable = timeline.catalog().try_writing().err();
    let mut text = state(context, &workspace, unwritable.as_ref())?;
    let listed = shown.iter().filter(|checkpoint| checkpoint.record.kind().is_listed()).count();
    match shown.last() {
        None => text.push_str("No checkpoint yet.\n"),
        Some(last) => text.push_str(&newest(&timeline, last, listed)),
    }
    text.push_str(&unguarded::section(&replies::unguarded(&timeline)?));
    if let Err(error) = timeline.catalog().refuse_interrupted() {
        add_line!(text, "{}", error.text());
    }
    broken.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    if let Some(cap) = replies::unmet_cap(&context.home, timeline.policy().retention.total_bytes) {
        add_line!(text, "{}.", cap);
    }
    text.push_str("\n  piton list · piton diff N · piton restore N · piton undo\n");
    print::data(&text)?;
    Ok(match (broken.is_empty(), unwritable) {
        (false, _) => Exit::Damaged,
        (true, Some(_)) => Exit::Failed,
        (true, None) => Exit::Done,
    })
}

fn unknown(context: &Context) -> Result<Exit> {
    let (root, settings) = (context.root()?, context.settings()?);
    settings.faults().iter().for_each(|fault| print::warning(fault));
    let unwritable = unwritable(context, None);
    let protection = protection_of(context, (&root, None), &settings, unwritable.as_ref());
    let is_broad = scope_of(&root) == Scope::TargetsOnly;
    let mut text = format!("{}. No checkpoint was taken yet.\n", guards::headline(&root, &protection));
    text.push_str(&guards::table(&protection));
    if is_broad {
        text.push_str(BROAD);
    }
    text.push('\n');
    if is_nobody(&protection) {
        text.push_str(INSTALL);
    }
    if !is_broad {
        text.push_str("  piton checkpoint \"before the agent\"   take one now\n");
    }
    text.push_str("  piton demo                            see how it works\n");
    print::data(&text)?;
    Ok(if unwritable.is_some() { Exit::Failed } else { Exit::Nothing })
}

/// Returns true if the reason is that nobody guards at all.
fn is_nobody(protection: &ProtectionBlock) -> bool {
    protection.reasons.iter().any(|reason| reason.text == words::NOBODY)
}

/// Says whether the workspace is protected, and by whom.
fn state(context: &Context, workspace: &Workspace, unwritable: Option<&Error>) -> Result<String> {
    let settings = context.settings()?;
    let protection = protection_of(context, (&workspace.path, Some(workspace)), &settings, unwritable);
    let since = print::local_time(&workspace.since);
    let mut text = format!("{}; known since {since}.\n", guards::headline(&workspace.path, &protection));
    text.push_str(&guards::table(&protection));
    if let Some(last) = words::last_seen(&protection).filter(|_| protection.state != ProtectionState::Protected) {
        add_line!(text, "{last}");
    }
    if workspace.scope == Scope::TargetsOnly {
        text.push_str(BROAD);
    }
    for mistake in &settings.mistakes {
        add_line!(text, "Settings: {}.", printable(&mistake.text()));
    }
    Ok(text)
}

fn newest(timeline: &Timeline, last: &Checkpoint, number: usize) -> String {
    let mut text = String::new();
    add_line!(
        text,
        "{}; the last: {} ({}, {}).",
        count(number as u64, "checkpoint"),
        last.record.number,
        print::local_time(&last.record.time),
        printable(&last.record.reason)
    );
    // A damaged one is told among the damages.
    let contents = timeline.catalog().contents(last);
    let skips = contents.map(|(_, coverage)| listed_skips(&coverage)).unwrap_or_default();
    if !skips.is_empty() {
        let names: Vec<String> =
            skips.iter().take(3).map(|(path, why)| format!("{} ({why})", path.display())).collect();
        let more = if skips.len() > 3 { ", …" } else { "" };
        add_line!(text, "Left out: {}: {}{more}", count(skips.len() as u64, "path"), names.join(", "));
    }
    text
}
