//! Turns, and steps over them, in the words of the protocol.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::actions::{actions, unguarded};
use super::restores::{preview, restored};
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::diff::{Change, LiveSide, Side};
use crate::checkpoint::history::group::{StepDone, StepPreview};
use crate::checkpoint::history::journal::{LoggedEntry, TurnEnd};
use crate::checkpoint::history::operations::{History, UndoStep};
use crate::checkpoint::history::request::{Preview, Restored};
use crate::checkpoint::history::turns::path_of;
use crate::checkpoint::records::action_log::ActionRecord;
use crate::error::{Code, Result};
use crate::model::manifest::EntryKind;
use crate::model::meta::unquote;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::protocol::{
    LeftChanges, List, OtherDone, OtherPreview, PreviewReply, RestoreReply, ShareCounts, StepBlock, TurnBlock,
    TurnDiffReply, TurnItem, TurnListReply,
};

/// The longest patch of a turn in a reply, in bytes.
const MAX_PATCH: usize = 256 << 10;

/// Counts the changes of a turn by its share in them.
fn shares(turn: &TurnEnd) -> ShareCounts {
    let mut counts = ShareCounts { missed: turn.missed.len(), ..ShareCounts::default() };
    for change in &turn.changes {
        match change.who {
            Attribution::Sure => counts.sure += 1,
            Attribution::Likely => counts.likely += 1,
            Attribution::Touched => counts.touched += 1,
            Attribution::Shared => counts.shared += 1,
            Attribution::Unknown => counts.unknown += 1,
            // Such a change is none of the turn's, and no line has it.
            Attribution::Outside => {}
        }
    }
    counts
}

/// Returns the operation that a step goes over; `is_open` says that it is a turn which goes on.
fn over((step, is_open): (&UndoStep, bool)) -> StepBlock {
    let run = step.moved.as_ref().map(|(run, _)| run.clone());
    let turn = step.turn.as_ref().map(|turn| TurnBlock {
        turn: turn.turn.clone(),
        prompt: turn.prompt.clone(),
        run: turn.run.clone(),
        client: turn.client.clone(),
        shares: shares(turn),
        open: is_open,
    });
    StepBlock { operation: step.op.clone(), kind: step.kind.into(), time: step.time.clone(), run, turn }
}

/// Returns a turn of a workspace, as lists have it.
fn item(turn: &TurnEnd, history: &History, timeline: &Timeline, recorded: &[ActionRecord]) -> Result<TurnItem> {
    let own = &timeline.workspace().path;
    let others = turn.members.iter().filter(|root| **root != *own);
    let undone = history.undo_of(&turn.op).filter(|step| step.is_undone());
    let of_turn = recorded.iter().filter(|action| action.key.as_ref() == Some(&turn.key));
    let listed = timeline.catalog().actions_of(turn, of_turn.cloned().collect());
    Ok(TurnItem {
        operation: turn.op.clone(),
        turn: turn.turn.clone(),
        prompt: turn.prompt.clone(),
        run: turn.run.clone(),
        client: turn.client.clone(),
        began: turn.began.clone(),
        ended: turn.time.clone(),
        open: timeline.catalog().is_turn_open(&turn.key)?,
        interrupted: turn.is_interrupted,
        undone: undone.is_some(),
        stayed: undone.map_or(0, UndoStep::own_left),
        paths: turn.changes.len(),
        shares: shares(turn),
        others: others.map(|root| root.to_string_lossy().into_owned()).collect(),
        actions: actions(timeline, listed)?,
    })
}

/// Lists the turns of a workspace, the newest first; perhaps only those of one run, or those that changed a path.
///
/// # Errors
/// When the journal cannot be read.
pub fn turns(timeline: &Timeline, run: Option<&str>, path: Option<&RelPath>, limit: usize) -> Result<TurnListReply> {
    let history = timeline.catalog().history()?;
    let chosen = timeline.catalog().changing_turns(run)?;
    let recorded = timeline.catalog().recorded_actions()?;
    let is_listed = |turn: &&Arc<TurnEnd>| path.is_none_or(|path| turn.has_changed_at(path));
    let turns = chosen
        .iter()
        .filter(is_listed)
        .take(limit)
        .map(|turn| item(turn, &history, timeline, &recorded))
        .collect::<Result<_>>()?;
    Ok(TurnListReply { turns, unguarded: unguarded(timeline)? })
}

/// Returns what a turn has changed.
///
/// # Errors
/// `store-damaged`.
pub fn turn_diff(timeline: &Timeline, turn: &TurnEnd, chosen: &dyn Fn(&RelPath) -> bool) -> Result<TurnDiffReply> {
    let catalog = timeline.catalog();
    // The store of private files is asked only for what was read of their layers.
    for end in [turn.base, turn.end] {
        catalog.private_part(&catalog.resolve_own(&end.to_string())?)?;
    }
    for saved in turn.named_checkpoints().collect::<BTreeSet<_>>() {
        // Where it is pruned, the content is reported as missing below.
        if let Ok(saved) = catalog.checkpoint_of(saved) {
            catalog.private_part(&saved)?;
        }
    }
    let (mut files, mut dirs, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for change in &turn.changes {
        let path = path_of(change)?;
        if !chosen(&path) {
            continue;
        }
        let side = |entry: Option<LoggedEntry>| -> Side { entry.map(|LoggedEntry(entry)| (entry.mode(), entry.id)) };
        let (old, new) = (side(change.before), side(change.after));
        let fate = match (old, new) {
            (None, _) => "new",
            (_, None) => "deleted",
            (old, new) if old.map(|(_, id)| id) == new.map(|(_, id)| id) => "permissions changed",
            _ => "changed",
        };
        let why = format!("{fate}, {}", change.who.as_str());
        let is_dir = [change.before, change.after].iter().flatten().all(|LoggedEntry(at)| at.kind == EntryKind::Dir);
        match is_dir {
            true => dirs.push((path, why)),
            false => {
                files.push((path.clone(), why));
                changes.push(Change { path, old, new });
            }
        }
    }
    for missed in &turn.missed {
        let path = RelPath::parse(&unquote(&missed.path)?)?;
        if chosen(&path) {
            let way = catalog.way_back(missed, &path);
            files.push((path, way));
        }
    }
    let (mut patch, mut cut, mut readable) = (String::new(), false, Vec::new());
    for change in &changes {
        let text = match catalog.patch_of(change, LiveSide::Neither) {
            Ok(text) => text.text,
            // Forgotten, or damaged: the other files are shown all the same.
            Err(error) if matches!(error.code(), Code::StoreDamaged | Code::NoSuchCheckpoint) => {
                let path = change.path.display();
                patch.push_str(&format!("diff --git a/{path} b/{path}\nThe content is no longer in the store\n"));
                continue;
            }
            Err(error) => return Err(error),
        };
        readable.push(change.clone());
        if !cut {
            patch.push_str(&text);
        }
        if patch.len() > MAX_PATCH {
            let end = (0..=MAX_PATCH).rev().find(|at| patch.is_char_boundary(*at)).unwrap_or(0);
            patch.truncate(end);
            cut = true;
        }
    }
    let mut directories = List::of_reasons(dirs.iter().map(|(path, why)| (path, why.clone())));
    directories.items.iter_mut().for_each(|item| item.dir = true);
    Ok(TurnDiffReply {
        turn: item(turn, &*catalog.history()?, timeline, &catalog.recorded_actions()?)?,
        stat: super::stat(&catalog.stat(&readable, LiveSide::Neither)?),
        files: List::of_reasons(files.iter().map(|(path, why)| (path, why.clone()))),
        directories,
        patch,
        cut,
    })
}

/// Returns the preview of a step in all its workspaces.
pub fn step_preview(step: (&UndoStep, bool), shown: &StepPreview) -> PreviewReply {
    let mut reply = preview_over(step, &shown.own);
    reply.plan.digest.clone_from(&shown.digest);
    let others = shown.others.iter().map(|(root, preview)| of_other(step, root, preview));
    reply.others = others.collect();
    reply
}

fn of_other(step: (&UndoStep, bool), root: &Path, shown: &Result<Preview>) -> OtherPreview {
    OtherPreview {
        workspace: root.to_string_lossy().into_owned(),
        preview: shown.as_ref().ok().map(|shown| Box::new(preview_over(step, shown))),
        error: shown.as_ref().err().map(Into::into),
    }
}

/// Returns a step that was taken in all its workspaces.
pub fn step_done(step: (&UndoStep, bool), done: &StepDone) -> RestoreReply {
    let others = done.others.iter().map(|(root, done)| OtherDone {
        workspace: root.to_string_lossy().into_owned(),
        done: done.as_ref().ok().map(|done| Box::new(done_over(step, done))),
        error: done.as_ref().err().map(Into::into),
    });
    RestoreReply { others: others.collect(), ..done_over(step, &done.own) }
}

/// Returns the preview of a step in one workspace.
fn preview_over(step: (&UndoStep, bool), shown: &Preview) -> PreviewReply {
    let left = LeftChanges::of(&shown.plan.left(), &step.0.op);
    PreviewReply { over: Some(over(step)), left, ..preview(shown) }
}

/// Returns a step that was taken in one workspace.
fn done_over(step: (&UndoStep, bool), done: &Restored) -> RestoreReply {
    let left = LeftChanges::of(&done.left, &step.0.op);
    RestoreReply { over: Some(over(step)), left, ..restored(done) }
}
