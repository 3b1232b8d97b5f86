//! From checkpoints to replies: what one holds, and how two differ. `--json` of the command line is the same.

use super::replies;
use crate::checkpoint::catalog::diff::{Change, LiveSide, is_file_change};
use crate::checkpoint::{Checkpoint, Timeline};
use crate::error::Result;
use crate::model::coverage::Coverage;
use crate::model::manifest::Manifest;
use crate::model::repository::{HEAD, RepositoryState};
use crate::protocol::{ActionItem, DiffReply, List, RepositoryBlock, ShownCheckpoint};

/// The longest patch in a reply, in bytes.
const MAX_PATCH: usize = 256 << 10;

/// Returns a checkpoint with its place in the store; `damage` is a known one.
pub fn shown(
    timeline: &Timeline,
    checkpoint: &Checkpoint,
    contents: (&Manifest, &Coverage),
    damage: Option<&str>,
) -> ShownCheckpoint {
    let client = replies::client_of(timeline, &checkpoint.record.run);
    let mut facts = replies::facts(checkpoint, client, contents);
    facts.flags.extend(damage.map(|_| "damaged".to_owned()));
    ShownCheckpoint {
        facts,
        // A record that cannot be read is no part of the checkpoint either.
        prompt: timeline.catalog().prompt_of(checkpoint).unwrap_or_default(),
        actions: actions_after(timeline, checkpoint).unwrap_or_default(),
        parents: checkpoint.parents.iter().map(ToString::to_string).collect(),
        tree: checkpoint.tree.to_string(),
        faults: damage.map(str::to_owned).into_iter().collect(),
        // A state that is damaged is no part of the checkpoint.
        repository: timeline
            .catalog()
            .noted_state(checkpoint, false)
            .ok()
            .flatten()
            .map(|noted| repository(&noted.state)),
    }
}

fn actions_after(timeline: &Timeline, checkpoint: &Checkpoint) -> Result<Vec<ActionItem>> {
    replies::actions(timeline, timeline.catalog().actions_after(checkpoint)?)
}

/// Returns the facts about a repository.
fn repository(state: &RepositoryState) -> RepositoryBlock {
    RepositoryBlock {
        branch: state.branch().map(|name| String::from_utf8_lossy(name).into_owned()),
        commit: state.commit().map(str::to_owned),
        refs: state.refs.keys().filter(|name| *name != HEAD).count(),
        stashes: state.stashes(),
        in_progress: state.in_progress().map(str::to_owned),
    }
}

/// Returns the checkpoints of a comparison.
pub fn ends<'c>(from: &'c Checkpoint, to: Option<&'c Checkpoint>) -> Vec<&'c Checkpoint> {
    [from].into_iter().chain(to).collect()
}

/// Returns what became of a path, in a word.
pub fn fate(change: &Change) -> &'static str {
    match (&change.old, &change.new) {
        (None, _) => "new",
        (_, None) => "deleted",
        _ => "changed",
    }
}

/// Compares two checkpoints; without `to`, one with the files as they are now.
///
/// # Errors
/// `store-damaged`; I/O errors of the work tree.
pub fn diff(timeline: &Timeline, from: &Checkpoint, to: Option<&Checkpoint>, changes: &[Change]) -> Result<DiffReply> {
    let live = if to.is_some() { LiveSide::Neither } else { LiveSide::New };
    let (mut patch, mut cut) = (String::new(), false);
    for change in changes.iter().filter(|change| is_file_change(change)) {
        if patch.len() > MAX_PATCH {
            cut = true;
            break;
        }
        patch.push_str(&timeline.catalog().patch_of(change, live)?.text);
    }
    if patch.len() > MAX_PATCH {
        let end = (0..=MAX_PATCH).rev().find(|at| patch.is_char_boundary(*at)).unwrap_or(0);
        patch.truncate(end);
        cut = true;
    }
    let of = |is_file: bool| {
        let wanted = changes.iter().filter(move |change| is_file_change(change) == is_file);
        let mut list = List::of_reasons(wanted.map(|change| (&change.path, fate(change).to_owned())));
        list.items.iter_mut().for_each(|item| item.dir = !is_file);
        list
    };
    Ok(DiffReply {
        from: replies::target(from),
        to: to.map(replies::target),
        stat: replies::stat(&timeline.catalog().stat(changes, live)?),
        files: of(true),
        directories: of(false),
        patch,
        cut,
    })
}
