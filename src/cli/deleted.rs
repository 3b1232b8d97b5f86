//! Workspaces whose directories were deleted, and the commands that restore them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::context::Context;
use crate::checkpoint::Workspace;
use crate::checkpoint::history::undo::may_restore_deleted;
use crate::error::Result;
use crate::model::text::{printable, shell_word};

/// The most deleted workspaces that are listed.
const MOST: usize = 3;

/// Lists the workspaces in question that were deleted, each as a line with the command that restores it: those in the working
/// directory and in the workspace around it, the one used last first.
///
/// # Errors
/// When the known workspaces cannot be listed.
pub(super) fn offers(context: &Context) -> Result<String> {
    Ok(inside(context)?.iter().filter_map(line).take(MOST).map(|line| line + "\n").collect())
}

/// Returns the path of the deleted workspace that a bare undo means where its own workspace has nothing to undo: the only one in the
/// working directory whose newest turn deleted files.
///
/// # Errors
/// When the known workspaces cannot be listed.
pub(super) fn only(context: &Context) -> Result<Option<PathBuf>> {
    let deleted = inside(context)?;
    Ok(match deleted.as_slice() {
        [one] if may_restore_deleted(one) => Some(one.path.clone()),
        _ => None,
    })
}

/// Returns the workspaces in question that were deleted, the one used last first.
fn inside(context: &Context) -> Result<Vec<Workspace>> {
    let root = context.root()?;
    let is_inside = |path: &Path| path != root && (path.starts_with(&root) || context.is_above(path));
    let known = Workspace::known(&context.home)?.into_iter().filter(|known| is_inside(&known.path));
    let mut deleted: Vec<Workspace> = known.filter(Workspace::is_deleted).collect();
    deleted.sort_by_key(|workspace| std::cmp::Reverse(last_used(workspace)));
    Ok(deleted)
}

/// Returns the line for a workspace; `None` if nothing is saved of it.
fn line(workspace: &Workspace) -> Option<String> {
    let path = workspace.path.to_string_lossy();
    let verb = match may_restore_deleted(workspace) {
        true => "undo",
        false => Some("restore").filter(|_| workspace.dir.join("ordinal").exists())?,
    };
    let word = shell_word(&path);
    Some(format!("{} was deleted. Restore it with `piton {verb} --workspace {word}`.", printable(&path)))
}

/// Returns when piton last wrote a record of a workspace.
pub(super) fn last_used(workspace: &Workspace) -> Option<SystemTime> {
    let records = std::fs::read_dir(&workspace.dir).into_iter().flatten().flatten();
    records.filter_map(|record| record.metadata().ok()?.modified().ok()).max()
}
