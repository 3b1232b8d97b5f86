//! Refs in memory, as they were listed or written.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::model::id::ObjectId;
use crate::store::{RefEntry, RefMarks};

/// Refs by the prefixes under which they were listed.
#[derive(Default)]
pub(super) struct RefCache(BTreeMap<String, RefListing>);

/// The refs of one prefix, and the marks that show a move by another process.
struct RefListing {
    /// The refs in byte order of their names, broken ones among them.
    entries: Arc<Vec<RefEntry>>,
    /// The marks of the files and directories that were read for it.
    marks: RefMarks,
}

impl RefCache {
    /// Returns the refs of a prefix if none has moved since they were listed.
    pub(super) fn standing(&self, prefix: &str) -> Option<&Arc<Vec<RefEntry>>> {
        self.0.get(prefix).filter(|listing| listing.marks.stand()).map(|listing| &listing.entries)
    }

    /// Remembers the refs below a prefix, and returns them.
    pub(super) fn put(&mut self, prefix: &str, entries: Vec<RefEntry>, marks: RefMarks) -> Arc<Vec<RefEntry>> {
        let entries = Arc::new(entries);
        self.0.insert(prefix.to_owned(), RefListing { entries: Arc::clone(&entries), marks });
        entries
    }

    /// Forgets listings that another process has made stale. Must run before our own ref write: the marks after it
    /// would hide the other change.
    pub(super) fn forget_moved(&mut self) {
        self.0.retain(|_, listing| listing.marks.stand());
    }

    /// Notes that a ref was written, or deleted.
    pub(super) fn note(&mut self, git_dir: &Path, name: &str, target: Option<ObjectId>) {
        for (_, listing) in self.0.iter_mut().filter(|(prefix, _)| name.starts_with(prefix.as_str())) {
            let at = listing.entries.binary_search_by(|entry| (*entry.name).cmp(name));
            let entries = Arc::make_mut(&mut listing.entries);
            match (at, target) {
                (Ok(at), Some(id)) => entries[at].target = Ok(id),
                (Err(at), Some(id)) => entries.insert(at, RefEntry { name: name.into(), target: Ok(id) }),
                (Ok(at), None) => _ = entries.remove(at),
                (Err(_), None) => {}
            }
            listing.marks = listing.marks.after(git_dir, name);
        }
    }

    /// Notes that refs were deleted.
    pub(super) fn note_gone(&mut self, git_dir: &Path, names: &[String]) {
        let gone: HashSet<&str> = names.iter().map(String::as_str).collect();
        for listing in self.0.values_mut() {
            let before = listing.entries.len();
            Arc::make_mut(&mut listing.entries).retain(|entry| !gone.contains(&*entry.name));
            if let Some(name) = names.first().filter(|_| listing.entries.len() < before) {
                listing.marks = listing.marks.after(git_dir, name);
            }
        }
    }

    /// Notes that refs were packed: they are where they were.
    pub(super) fn note_packed(&mut self, git_dir: &Path, prefix: &str) {
        self.0.values_mut().for_each(|listing| listing.marks = listing.marks.after(git_dir, prefix));
    }

    /// Forgets all refs.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
