//! Names the processes that have databases open which a restore replaces or deletes. Such a process goes on with the old file: it
//! does not see the restored content, and its later writes are lost.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::filter::database::is_database;
use crate::model::manifest::EntryKind;
use crate::model::path::RelPath;
use crate::model::redact::redact;
use crate::model::text::{cut, printable};
use crate::sys::holders::{FileIdentity, holders};
use crate::worktree::restore::Plan;

/// The most files, and processes of one file, that a warning names.
const MOST_NAMED: usize = 3;

/// The most characters of a command line that a warning shows.
const COMMAND: usize = 60;

/// Warns of processes that have a database open which the plan replaces or deletes, below a root.
pub(super) fn warnings(plan: &Plan, root: &Path) -> Vec<String> {
    let files: HashMap<FileIdentity, &RelPath> = databases(plan)
        .filter_map(|path| {
            let facts = path.under(root).symlink_metadata().ok()?;
            Some(((facts.dev(), facts.ino()), path))
        })
        .collect();
    let mut processes: BTreeMap<&RelPath, Vec<(u32, String)>> = BTreeMap::new();
    for holder in holders(&files.keys().copied().collect()) {
        if let Some(path) = files.get(&holder.file) {
            processes.entry(path).or_default().push((holder.pid, holder.command));
        }
    }
    // A database and its journals are mostly open in the same processes.
    let mut groups: BTreeMap<Vec<(u32, String)>, Vec<&RelPath>> = BTreeMap::new();
    for (path, mut holders) in processes {
        holders.sort_unstable();
        groups.entry(holders).or_default().push(path);
    }
    groups.iter().map(|(holders, paths)| sentence(paths, holders)).collect()
}

/// Lists the databases whose content a plan replaces or deletes.
fn databases(plan: &Plan) -> impl Iterator<Item = &RelPath> {
    let replaced = plan.replace.iter().filter(|(_, from, to)| (from.kind, from.id) != (to.kind, to.id));
    let replaced = replaced.map(|(path, from, _)| (path, from));
    let gone = replaced.chain(plan.delete.iter().map(|(path, from)| (path, from)));
    gone.filter(|(path, from)| from.kind == EntryKind::File && is_database(path.name())).map(|(path, _)| path)
}

fn sentence(paths: &[&RelPath], holders: &[(u32, String)]) -> String {
    let named = paths.iter().map(|path| format!("`{}`", path.display()));
    let (files, verb) = (listed(named), if paths.len() == 1 { "is" } else { "are" });
    let named = holders.iter().map(|(pid, command)| format!("`{}` (pid {pid})", shown(command)));
    let (processes, them) = (listed(named), if holders.len() == 1 { "it" } else { "them" });
    let file = if paths.len() == 1 { "the old file" } else { "the old files" };
    let they = if holders.len() == 1 { "it" } else { "they" };
    format!("{files} {verb} open in {processes}; stop {them} first, or {they} might write into {file}")
}

/// Returns a command line without secrets, short and on one line.
fn shown(command: &str) -> String {
    cut(&printable(&redact(command)), COMMAND)
}

fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let rest = items.len().saturating_sub(MOST_NAMED);
    let named = items.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    if rest == 0 { named } else { format!("{named} and {rest} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_files_and_processes() {
        let path = |text: &str| RelPath::parse(text.as_bytes()).unwrap();
        let (one, wal) = (path("dev.sqlite"), path("dev.sqlite-wal"));
        let node = (123, "node server.js".to_owned());
        assert_eq!(
            sentence(&[&one], std::slice::from_ref(&node)),
            "`dev.sqlite` is open in `node server.js` (pid 123); stop it first, or it might write into the old file"
        );
        let many: Vec<(u32, String)> = (0..5).map(|pid| (pid, format!("psql --password=hunter{pid}two"))).collect();
        let said = sentence(&[&one, &wal], &many);
        assert!(said.starts_with("`dev.sqlite`, `dev.sqlite-wal` are open in `psql"), "{said}");
        assert!(said.ends_with("and 2 more; stop them first, or they might write into the old files"), "{said}");
        assert!(!said.contains("hunter"), "{said}");
        assert_eq!(shown(&"x\n".repeat(50)).chars().count(), COMMAND + 1);
    }
}
