//! `piton` alone: the state of the protection in a few lines.

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::checkpoint::capture::request::listed_skips;
use crate::engine::workspace::why_off;
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::text::{count, printable};

/// `piton` alone: a few lines.
pub(super) fn overview(context: &mut Context) -> Result<Exit> {
    if context.json {
        return super::status::status(context);
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
    let timeline = context.timeline()?;
    let known = timeline.catalog().all()?;
    let (all, mut broken) = (known.checkpoints.as_slice(), known.broken.clone());
    broken.extend(timeline.catalog().damages()?);
    let shown: Vec<_> = all.iter().filter(|checkpoint| checkpoint.record.kind != CheckpointKind::Turn).collect();
    let settings = context.settings()?;
    let off = why_off(settings.policy.guard, &workspace.dir, &settings.origin("guard"));
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
            // A damaged one is reported below.
            let contents = timeline.catalog().contents(last);
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
    if let Err(error) = timeline.catalog().refuse_interrupted() {
        add_line!(text, "{}", error.text());
    }
    broken.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    text.push_str("\n  piton list · piton diff N · piton restore N · piton undo\n");
    print::data(&text)?;
    Ok(if broken.is_empty() { Exit::Done } else { Exit::Damaged })
}
