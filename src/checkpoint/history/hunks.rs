//! Single hunks of a change: the pieces in which a file changed, and a checkpoint that has only some of them taken back.
//!
//! A chosen part of a file's changes is in no checkpoint. So one is made: the target of the restore, with those files as they are to
//! become. The restore takes these files from there. Its proofs, its interruption and its redo need nothing of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::chosen::PlannedChange;
use super::request::Preview;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::{Change, LiveSide};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::error::Result;
use crate::model::build::build;
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::store::NewCommit;
use crate::sys::clock::{now_ms, rfc3339};
use crate::worktree::read_small;

/// The largest file of which single hunks can be chosen, in bytes.
const LARGEST: u64 = 8_000_000;

/// A piece in which a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Its lines as a patch has them, the heading first.
    pub text: String,
    /// Its lines in the version to restore, counted from 0.
    old: Range<usize>,
    /// Its lines in the present version.
    new: Range<usize>,
}

/// A changed path with its hunks. The patch leads from the version to restore to the present one.
pub struct HunkedFile {
    /// The hunks, in order; empty where the path can only be chosen as a whole.
    pub hunks: Vec<Hunk>,
    /// The whole patch.
    pub patch: String,
    /// True if no line of its content can be shown.
    pub is_binary: bool,
    /// The permissions to restore and the present ones, where these differ and the content can be chosen without them.
    pub permissions: Option<(u16, u16)>,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl HunkedFile {
    /// Returns the number of parts that can be chosen one by one; 0 where it can only be chosen as a whole.
    pub fn parts(&self) -> usize {
        match self.hunks.len() + usize::from(self.permissions.is_some()) {
            1 => 0,
            parts => parts,
        }
    }

    /// Returns the present content without the hunks that have these places.
    pub(super) fn without(&self, taken_back: &BTreeSet<usize>) -> Vec<u8> {
        let lines = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect() };
        let (before, after): (Vec<&[u8]>, Vec<&[u8]>) = (lines(&self.before), lines(&self.after));
        let (mut content, mut at) = (Vec::new(), 0);
        for (_, hunk) in self.hunks.iter().enumerate().filter(|(place, _)| taken_back.contains(place)) {
            content.extend(after[at..hunk.new.start].concat());
            content.extend(before[hunk.old.clone()].concat());
            at = hunk.new.end;
        }
        content.extend(after[at..].concat());
        content
    }
}

impl Catalog {
    /// Reads a change of a plan with its hunks. A path has none if it is private, new, deleted, no regular file, large, or no text.
    ///
    /// # Errors
    /// `stale-plan` if the file has changed since the plan was made; `store-damaged`; I/O errors of the work tree.
    pub fn hunked(&self, change: &PlannedChange, preview: &Preview) -> Result<HunkedFile> {
        let side = |side: Option<ManifestEntry>| side.map(|entry| (entry.mode(), entry.id));
        let (then, now) = (change.then, change.now);
        let both = Change { path: change.path.clone(), old: side(then), new: side(now) };
        let patch = self.patch_of(&both, LiveSide::New)?;
        let mut file = HunkedFile {
            hunks: Vec::new(),
            patch: patch.text,
            is_binary: patch.binary,
            permissions: None,
            before: Vec::new(),
            after: Vec::new(),
        };
        let is_file = |entry: &ManifestEntry| entry.kind == EntryKind::File;
        let (Some(then), Some(now)) = (then.filter(is_file), now.filter(is_file)) else { return Ok(file) };
        if patch.binary || then.id == now.id || preview.private.contains(&change.path) || !self.may_compose(preview)? {
            return Ok(file);
        }
        file.before = self.store_of(&then.id).read_blob_within(&then.id, LARGEST)?;
        file.after = self.present_content(&change.path, &now)?;
        file.hunks = hunks(&file.patch);
        file.permissions = Some((then.perm, now.perm)).filter(|(then, now)| then != now);
        Ok(file)
    }

    /// Returns true if a checkpoint can be made of the target of a restore: one of this workspace that is whole by itself.
    fn may_compose(&self, preview: &Preview) -> Result<bool> {
        Ok(!self.is_foreign(&preview.target) && self.whole_beside(&preview.target)?.is_none())
    }

    /// Reads the content that a plan has found in a file.
    fn present_content(&self, path: &RelPath, entry: &ManifestEntry) -> Result<Vec<u8>> {
        let store = self.store_of(&entry.id);
        if store.has(&entry.id)? {
            return store.read_blob_within(&entry.id, LARGEST);
        }
        let content = read_small(&self.workspace.path, path, LARGEST)?.unwrap_or_default();
        if ObjectId::of(ObjectKind::Blob, &content)? == entry.id { Ok(content) } else { Err(super::chosen::changed()) }
    }
}

/// The files of a checkpoint that is made of chosen hunks.
#[derive(Default)]
pub(super) struct ComposedFiles {
    /// The states of all of them.
    pub(super) entries: BTreeMap<RelPath, ManifestEntry>,
    /// The contents that no checkpoint has.
    pub(super) contents: Vec<(ObjectId, Vec<u8>)>,
}

impl Locked<'_> {
    /// Makes a checkpoint of another one, with some files in other states.
    ///
    /// # Errors
    /// `no-such-checkpoint`, `store-damaged`, `store-locked`, `disk-full`.
    pub(super) fn compose(&mut self, base: ObjectId, files: ComposedFiles, reason: String) -> Result<Checkpoint> {
        let catalog = &*self.catalog;
        let _shared = catalog.store.lock_shared("choosing hunks", LOCK_WAIT)?;
        let (known, base) = (catalog.all()?, catalog.checkpoint_of(base)?);
        let (mut manifest, coverage) = catalog.load(&base.tree, &|_| true)?;
        let batch = catalog.store.batch()?;
        for (id, content) in files.contents {
            put(&batch, ObjectKind::Blob, id, &content)?;
        }
        for (path, entry) in files.entries {
            manifest.insert(path, entry);
        }
        let tree = build(&manifest, &coverage, &mut |kind, id, bytes| put(&batch, kind, id, bytes))?;
        let ordinal = catalog.next_ordinal(&known);
        let record = Record {
            kind: CheckpointKind::Turn,
            number: Number::NONE,
            ordinal,
            reason,
            time: rfc3339(now_ms()),
            effects: Vec::new(),
            pinned: false,
            codon_id: None,
            codon_name: None,
            duration_ms: None,
            follows: None,
            whole: None,
            ..Record::clone(&base.record)
        };
        let commit = NewCommit { tree, parents: &[], message: &record.message(), time_ms: now_ms() };
        let id = batch.put_commit(&commit)?;
        let name = format!("{}{}/{ordinal}", catalog.leaf_prefix(), record.kind.as_str());
        self.land(batch, &name, None, id, true)?;
        catalog.give(ordinal, Number::NONE);
        let composed = Checkpoint { id, tree, parents: Vec::new(), record: record.into(), name: name.into() };
        catalog.add(known, &[&composed]);
        Ok(composed)
    }
}

fn put(batch: &dyn ObjectSink, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Result<()> {
    if batch.contains(&id)? { Ok(()) } else { batch.write(kind, id, bytes) }
}

/// Reads the hunks of a unified patch.
fn hunks(patch: &str) -> Vec<Hunk> {
    let mut found: Vec<Hunk> = Vec::new();
    for line in patch.split_inclusive('\n') {
        match heading(line) {
            Some((old, new)) => found.push(Hunk { text: line.to_owned(), old, new }),
            None => {
                if let Some(hunk) = found.last_mut() {
                    hunk.text.push_str(line);
                }
            }
        }
    }
    found
}

/// Reads the line ranges of `@@ -1,3 +1,4 @@`, counted from 0.
fn heading(line: &str) -> Option<(Range<usize>, Range<usize>)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
        // An empty range stands behind the line that it names.
        let start = if count == 0 { start } else { start.checked_sub(1)? };
        Some(start..start + count)
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    thread_local! {
        /// One store for all cases of a test, because creating a store is slow.
        static STORE: (tempfile::TempDir, crate::store::Store) = {
            let dir = tempfile::tempdir().unwrap();
            let store = crate::store::Store::open(&dir.path().join("home")).unwrap();
            (dir, store)
        };
    }

    fn file(before: &str, after: &str) -> HunkedFile {
        let patch = |(_, store): &(_, crate::store::Store)| {
            store.patch(Some(before.as_bytes()), Some(after.as_bytes()), b"f").unwrap().text
        };
        let patch = STORE.with(patch);
        HunkedFile {
            hunks: hunks(&patch),
            permissions: None,
            is_binary: false,
            patch,
            before: before.into(),
            after: after.into(),
        }
    }

    #[test]
    fn each_hunk_goes_back_by_itself() {
        let lines = |changes: &[(usize, &str)]| -> String {
            let line = |n: usize| {
                changes.iter().find(|(at, _)| *at == n).map_or(format!("{n}\n"), |(_, text)| (*text).to_owned())
            };
            (0..40).map(line).collect()
        };
        let (before, after) = (lines(&[]), lines(&[(2, "two\n"), (20, ""), (39, "39\nmore\nlast")]));
        let file = file(&before, &after);
        assert_eq!(file.hunks.len(), 3, "{}", file.patch);
        let without = |places: &[usize]| String::from_utf8(file.without(&places.iter().copied().collect())).unwrap();
        assert_eq!(without(&[]), after);
        assert_eq!(without(&[0]), lines(&[(20, ""), (39, "39\nmore\nlast")]));
        assert_eq!(without(&[1]), lines(&[(2, "two\n"), (39, "39\nmore\nlast")]));
        assert_eq!(without(&[2]), lines(&[(2, "two\n"), (20, "")]));
        assert_eq!(without(&[0, 1, 2]), before);
        assert!(file.hunks[1].text.contains("-20\n") && file.hunks[1].text.starts_with("@@ -18,7 +18,6 @@"));
    }

    proptest! {
        #[test]
        fn all_hunks_together_are_the_whole_change(
            before in proptest::collection::vec(0..4_u8, 0..60),
            after in proptest::collection::vec(0..4_u8, 0..60),
            is_whole in any::<bool>(),
        ) {
            let text = |lines: &[u8]| {
                let all: String = lines.iter().map(|line| format!("{line}\n")).collect();
                if is_whole { all } else { all.trim_end().to_owned() }
            };
            let (before, after) = (text(&before), text(&after));
            let file = file(&before, &after);
            prop_assert_eq!(file.without(&(0..file.hunks.len()).collect()), before.into_bytes());
            prop_assert_eq!(file.without(&BTreeSet::new()), after.into_bytes());
        }
    }
}
