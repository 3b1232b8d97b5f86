//! The first checkpoint of a workspace, and the command that brings a file back from it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::checkpoint::capture::request::Take;
use crate::checkpoint::records::workspace::{Scope, scope_of};
use crate::checkpoint::{Checkpoint, Timeline};
use crate::cli::context::Context;
use crate::cli::install::word;
use crate::cli::print;
use crate::cli::stop;
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::manifest::{EntryKind, Manifest};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::text::{shell_name, shell_word};

/// Says why there is no checkpoint in a directory that is too broad.
pub(super) const BROAD: &str =
    "This directory is too broad for a full checkpoint. To take one, run `piton checkpoint` in a project.\n";

/// The newest checkpoint of the workspace.
pub(super) struct First {
    pub number: Number,
    /// A command that brings a file back from it; `None` where it holds none.
    pub command: Option<String>,
    /// All of that for people.
    pub text: String,
}

/// Takes the first checkpoint of the workspace, or finds the newest one that is there. `None` where the directory is too broad.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn first_checkpoint(context: &Context) -> Result<Option<First>> {
    if scope_of(&context.root()?) == Scope::TargetsOnly {
        return Ok(None);
    }
    let mut timeline = context.timeline()?;
    let is_shown = |checkpoint: &&Checkpoint| {
        checkpoint.record.kind != CheckpointKind::Turn && checkpoint.record.kind().is_listed()
    };
    let there = timeline.catalog().all()?.checkpoints.iter().rfind(is_shown).cloned();
    let (checkpoint, says) = match there {
        Some(checkpoint) => (checkpoint, "The newest checkpoint here is"),
        None => (first(&mut timeline)?, "The first checkpoint of this directory is"),
    };
    let number = checkpoint.record.number;
    let (manifest, _) = timeline.catalog().contents(&checkpoint)?;
    let root = timeline.workspace().path.clone();
    let cwd = context.below_cwd(Path::new("")).canonicalize().unwrap_or_else(|_| root.clone());
    let example = example(&manifest, cwd.strip_prefix(&root).ok());
    let mut text = format!("{says} {number}. ");
    let program = shell_word(&word()?);
    let command = example.map(|(shown, typed)| {
        let command = format!("{program} restore {number} {}", shell_name(&typed));
        text.push_str(&format!(
            "If {} is lost, this command restores it:\n\n  {}\n",
            shown.display(),
            print::bold(&command)
        ));
        command
    });
    if command.is_none() {
        text.push_str(&format!("To restore its files, run `{program} restore {number}`.\n"));
    }
    Ok(Some(First { number, command, text }))
}

fn first(timeline: &mut Timeline) -> Result<Checkpoint> {
    let taken = timeline.take(&Take::by_hand("local", Some("piton init"), Vec::new(), false)?, &stop::flow)?;
    print::settled(timeline.leave());
    Ok(taken.checkpoint)
}

/// Returns a file of a checkpoint, and the path by which a person names it from a directory of the workspace. A file there comes
/// first, and one that is not hidden.
fn example(manifest: &Manifest, cwd: Option<&Path>) -> Option<(RelPath, Vec<u8>)> {
    let cwd = cwd.unwrap_or(Path::new(""));
    let files = manifest.iter().filter(|(_, entry)| entry.kind == EntryKind::File).map(|(path, _)| path);
    let rank = |path: &&RelPath| {
        let path = path.to_path();
        let is_hidden = path.components().any(|part| part.as_os_str().as_bytes().starts_with(b"."));
        (!path.starts_with(cwd), is_hidden, path.components().count())
    };
    let path = files.min_by_key(rank)?;
    let typed = match path.to_path().strip_prefix(cwd) {
        Ok(below) => below.to_owned(),
        Err(_) => cwd.components().map(|_| Path::new("..")).collect::<std::path::PathBuf>().join(path.to_path()),
    };
    let typed = typed.as_os_str().as_bytes();
    // It would be taken for an option.
    let typed = if typed.starts_with(b"-") { [b"./", typed].concat() } else { typed.to_vec() };
    Some((path.clone(), typed))
}
