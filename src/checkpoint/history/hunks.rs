//! Single hunks of a turn: the pieces in which a file changed, and a checkpoint that lacks only some of them.
//!
//! A chosen part of a file's changes is in no checkpoint. So one is made, of the turn's beginning with those files as they are to
//! become. The undo goes back to that as to any other: its proofs, its interruption and its redo need nothing of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::journal::{LoggedEntry, TurnChange, TurnEnd};
use super::turns::path_of;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::{Change, LiveSide};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::timeline::Timeline;
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

/// The largest file of which single hunks can be chosen, in bytes.
const LARGEST: u64 = 8_000_000;

/// A piece in which a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Its lines as a patch has them, the heading first.
    pub text: String,
    /// Its lines before the turn, counted from 0.
    old: Range<usize>,
    /// Its lines at the end of the turn.
    new: Range<usize>,
}

/// A file of a turn whose hunks can be chosen.
pub struct HunkedFile {
    /// The path.
    pub path: RelPath,
    /// The hunks, in order; empty where the file can only be chosen as a whole.
    pub hunks: Vec<Hunk>,
    /// The whole patch.
    pub patch: String,
    /// The permissions before the turn and at its end, where these differ.
    pub permissions: Option<(u16, u16)>,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Kind and permissions at the end of the turn.
    entry: Option<ManifestEntry>,
}

impl HunkedFile {
    /// Has the permissions go back with the hunks that are chosen.
    pub fn take_permissions_back(&mut self) {
        if let (Some(entry), Some((before, _))) = (&mut self.entry, self.permissions.take()) {
            entry.perm = before;
        }
    }

    /// Returns the content without the hunks that `is_taken_back` names by their places.
    fn without(&self, is_taken_back: &dyn Fn(usize) -> bool) -> Vec<u8> {
        let lines = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect() };
        let (before, after): (Vec<&[u8]>, Vec<&[u8]>) = (lines(&self.before), lines(&self.after));
        let (mut content, mut at) = (Vec::new(), 0);
        for (_, hunk) in self.hunks.iter().enumerate().filter(|(place, _)| is_taken_back(*place)) {
            content.extend(after[at..hunk.new.start].concat());
            content.extend(before[hunk.old.clone()].concat());
            at = hunk.new.end;
        }
        content.extend(after[at..].concat());
        content
    }
}

impl Catalog {
    /// Lists the changed files of a turn, each with its hunks. Files that are private, new, gone, large, or no text have none: they are
    /// chosen as a whole. Directories are left out.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn hunked_files<'c>(
        &self,
        turn: &TurnEnd,
        changes: impl Iterator<Item = &'c TurnChange>,
    ) -> Result<Vec<HunkedFile>> {
        let mut private = self.private_part(&self.checkpoint_of(turn.base)?)?.manifest.clone();
        for end in turn.named_checkpoints().chain([turn.end]).collect::<BTreeSet<_>>() {
            for (path, entry) in self.private_part(&self.checkpoint_of(end)?)?.manifest.iter() {
                private.insert(path.clone(), *entry);
            }
        }
        let mut files = Vec::new();
        for change in changes {
            let path = path_of(change)?;
            let [before, after] = [change.before, change.after].map(|side| side.map(|LoggedEntry(entry)| entry));
            let is_dir = |side: Option<ManifestEntry>| side.is_none_or(|entry| entry.kind == EntryKind::Dir);
            if is_dir(before) && is_dir(after) {
                continue;
            }
            let side = |side: Option<ManifestEntry>| side.map(|entry| (entry.mode(), entry.id));
            let patch =
                self.patch_of(&Change { path: path.clone(), old: side(before), new: side(after) }, LiveSide::Neither)?;
            let is_file = |side: Option<ManifestEntry>| side.is_some_and(|entry| entry.kind == EntryKind::File);
            let is_text = !patch.binary && is_file(before) && is_file(after) && !private.contains(&path);
            let read = |side: Option<ManifestEntry>| match side.filter(|_| is_text) {
                Some(entry) => self.store_of(&entry.id).read_blob_within(&entry.id, LARGEST),
                None => Ok(Vec::new()),
            };
            let hunks = if is_text { hunks(&patch.text) } else { Vec::new() };
            let perms = before.zip(after).map(|(before, after)| (before.perm, after.perm));
            let permissions = perms.filter(|(before, after)| before != after);
            let (before, content) = (read(before)?, read(after)?);
            files.push(HunkedFile {
                path,
                hunks,
                patch: patch.text,
                permissions,
                before,
                after: content,
                entry: after,
            });
        }
        Ok(files)
    }
}

impl Timeline {
    /// Makes a checkpoint of a turn's beginning with some files as they are at its end but for chosen hunks: by the path, the places of
    /// the hunks that go back.
    ///
    /// # Errors
    /// `no-such-checkpoint`, `store-damaged`, `store-locked`, `disk-full`.
    pub fn without_hunks(&mut self, turn: &TurnEnd, chosen: &[(HunkedFile, Vec<usize>)]) -> Result<Checkpoint> {
        let contents: BTreeMap<RelPath, (ManifestEntry, Vec<u8>)> = chosen
            .iter()
            .filter_map(|(file, places)| {
                let content = file.without(&|place| places.contains(&place));
                Some((file.path.clone(), (file.entry?, content)))
            })
            .collect();
        self.lock("choosing hunks")?.compose(turn.base, contents, &turn.turn)
    }
}

impl Locked<'_> {
    fn compose(
        &mut self,
        base: ObjectId,
        contents: BTreeMap<RelPath, (ManifestEntry, Vec<u8>)>,
        turn: &str,
    ) -> Result<Checkpoint> {
        let catalog = &*self.catalog;
        let _shared = catalog.store.lock_shared("choosing hunks", LOCK_WAIT)?;
        let (known, base) = (catalog.all()?, catalog.checkpoint_of(base)?);
        let (mut manifest, coverage) = catalog.load(&base.tree, &|_| true)?;
        let batch = catalog.store.batch()?;
        for (path, (entry, content)) in contents {
            let id = ObjectId::of(ObjectKind::Blob, &content)?;
            put(&batch, ObjectKind::Blob, id, &content)?;
            manifest.insert(path, ManifestEntry { id, size: content.len() as u64, ..entry });
        }
        let tree = build(&manifest, &coverage, &mut |kind, id, bytes| put(&batch, kind, id, bytes))?;
        let ordinal = catalog.next_ordinal(&known);
        let record = Record {
            kind: CheckpointKind::Turn,
            number: Number::NONE,
            ordinal,
            reason: format!("without chosen hunks of turn {turn}"),
            time: rfc3339(now_ms()),
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
            path: RelPath::parse(b"f").unwrap(),
            hunks: hunks(&patch),
            permissions: None,
            patch,
            before: before.into(),
            after: after.into(),
            entry: None,
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
        let without = |places: &[usize]| String::from_utf8(file.without(&|place| places.contains(&place))).unwrap();
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
            prop_assert_eq!(file.without(&|_| true), before.into_bytes());
            prop_assert_eq!(file.without(&|_| false), after.into_bytes());
        }
    }
}
