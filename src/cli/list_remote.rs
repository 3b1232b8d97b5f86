//! `piton list --remote`: what was fetched from other machines.

use super::context::Context;
use super::exit::Exit;
use super::list::ListArgs;
use super::print;
use crate::checkpoint::catalog::open::AllCheckpoints;
use crate::checkpoint::{Checkpoint, Timeline};
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::run::run_id;
use crate::model::text::printable;
use crate::protocol::{RemoteItem, RemoteListDocument};

/// `piton list --remote`.
///
/// # Errors
/// When refs cannot be listed.
pub(super) fn list(
    context: &Context,
    timeline: &mut Timeline,
    args: &ListArgs,
    kind: Option<CheckpointKind>,
) -> Result<Exit> {
    let AllCheckpoints { checkpoints: all, broken, .. } = timeline.catalog().foreign()?;
    broken.iter().for_each(|fault| print::warning(&format!("a checkpoint cannot be read: {fault}")));
    let run = args.run.as_deref().map(run_id);
    let wanted = |checkpoint: &&Checkpoint| {
        let record = &checkpoint.record;
        run.as_ref().is_none_or(|run| record.run == *run)
            && kind.is_none_or(|kind| record.kind == kind)
            && (args.all || kind == Some(CheckpointKind::Turn) || record.kind != CheckpointKind::Turn)
            && (args.steps || kind == Some(CheckpointKind::Step) || record.kind != CheckpointKind::Step)
    };
    let mut found: Vec<&Checkpoint> = all.iter().filter(wanted).collect();
    // Newest first; times of other machines' clocks are all that numbers of different workspaces have in common.
    found.sort_by(|a, b| (&b.record.time, b.record.ordinal).cmp(&(&a.record.time, a.record.ordinal)));
    let (total, empty) = (found.len(), found.is_empty());
    found.truncate(args.limit());
    if context.json {
        let checkpoints = found.iter().map(|checkpoint| item(checkpoint)).collect();
        print::json(&RemoteListDocument { total, checkpoints, faults: broken.clone() })?;
    } else if empty {
        print::data("No checkpoints of other machines. To fetch them, run `piton fetch REMOTE`.\n")?;
    } else {
        let mut text = String::new();
        for checkpoint in found {
            let record = &checkpoint.record;
            let (when, what) = (print::faint(&print::local_time(&record.time)), printable(&record.reason));
            let (of, n, id) = (&record.workspace, record.number, checkpoint.shown_id());
            add_line!(text, "  {of} {n:>4}  {id}  {when}  [{}] {what}", printable(&record.run));
        }
        print::data(&text)?;
    }
    Ok(match () {
        () if !broken.is_empty() => Exit::Damaged,
        () if empty => Exit::Nothing,
        () => Exit::Done,
    })
}

fn item(checkpoint: &Checkpoint) -> RemoteItem {
    let record = &checkpoint.record;
    RemoteItem {
        workspace: record.workspace.clone(),
        id: checkpoint.id.to_string(),
        n: record.number,
        kind: record.kind.into(),
        run: record.run.clone(),
        time: record.time.clone(),
        reason: record.reason.clone(),
        flags: record.flags.clone(),
        pinned: record.pinned,
    }
}
