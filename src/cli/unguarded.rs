//! Actions that ran without a checkpoint, as the verbs of the terminal show them.

use std::os::unix::ffi::OsStrExt;

use super::print;
use crate::agents::Act;
use crate::checkpoint::records::unguarded;
use crate::checkpoint::records::workspace::root_for;
use crate::checkpoint::{Home, Workspace};
use crate::model::text::{count, printable, shell_name};
use crate::protocol::ActionItem;

/// The most actions that are listed, the newest.
const SHOWN: usize = 10;

/// Brings actions that wait in a runtime directory into the records of a workspace, as far as that can be done now.
pub(super) fn bring_in(home: &Home, workspace: &Workspace) {
    if !unguarded::are_waiting(workspace) {
        return;
    }
    // Where the workspaces cannot be listed, the next process looks again.
    let known = Workspace::known(home).unwrap_or_default();
    unguarded::claim(workspace, |cwd| cwd.starts_with(&workspace.path) && root_for(cwd, &known) == workspace.path);
    if let Err(error) = unguarded::settle(workspace) {
        tracing::debug!(%error, "unguarded actions could not be recorded");
    }
}

/// Returns one line: the time of an action, the action, its turn, and why it had no checkpoint.
pub(super) fn line(item: &ActionItem) -> String {
    let turn = item.turn.as_deref().map(|turn| format!(" (turn {})", printable(turn))).unwrap_or_default();
    let why = item.reason.as_deref().unwrap_or("no reason is known");
    format!("{} {}{turn}: {}", print::local_time(&item.time), printable(&item.command), printable(why))
}

/// Returns a section of the actions; empty without any.
pub(super) fn section(items: &[ActionItem]) -> String {
    let mut text = String::new();
    if items.is_empty() {
        return text;
    }
    let left_out = items.len().saturating_sub(SHOWN);
    add_line!(text, "Not protected: {} ran without a checkpoint.", count(items.len() as u64, "action"));
    if left_out > 0 {
        add_line!(text, "  … and {left_out} older");
    }
    items.iter().skip(left_out).for_each(|item| add_line!(text, "  {}", line(item)));
    text
}

/// Returns the command that removes the record of the actions once a person has read them.
pub(super) fn removal(workspace: &Workspace) -> String {
    format!("rm {}", shell_name(unguarded::file(workspace).as_os_str().as_bytes()))
}

/// Returns the same as a sentence, after the sections of lists; empty without actions.
pub(super) fn removal_hint(items: &[ActionItem], workspace: &Workspace) -> String {
    match items.is_empty() {
        true => String::new(),
        false => {
            format!("\nAfter you have reviewed the actions that were not protected, run `{}`\n", removal(workspace))
        }
    }
}

/// Returns an action of a client in words.
pub(super) fn in_words(act: &Act) -> String {
    match act {
        Act::Shell { commands, .. } => format!("shell: {}", commands.join("; ")),
        Act::Tool { name, .. } => name.clone(),
    }
}
