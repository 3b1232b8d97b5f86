//! Stamps: what the file system said of a file when its content was last hashed.

use super::id::ObjectId;
use super::path::RelPath;

/// Facts of `lstat` that move when a file's content may have moved. Times in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes of content; of a link, of its target's text.
    pub size: u64,
    /// The moment of the last write of content.
    pub mtime: i64,
    /// The moment of the last change of content, name or attributes.
    pub ctime: i64,
    /// The device that the file stands on.
    pub dev: u64,
    /// The file's inode on that device.
    pub ino: u64,
    /// The whole `st_mode`, file type included.
    pub mode: u32,
    /// The number of its names (hard links).
    pub links: u64,
}

/// The bits of a mode that hold the kind of file, and those of a symbolic link (`inode(7)`).
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Coarsest timestamp step of a local file system, in nanoseconds: one jiffy at 100 Hz, doubled.
const FINE_STEP: i64 = 20_000_000;
/// The step to assume where times carry no fraction of a second (FAT: two seconds).
const COARSE_STEP: i64 = 2_000_000_000;

impl Stamp {
    /// git's racy rule, ctime included: whether a later write would surely have moved this stamp, given that the content
    /// was read no earlier than `read_at` (the file system's clock, nanoseconds).
    pub fn proves_content_read_at(&self, read_at: i64) -> bool {
        times_prove(self.mtime, self.ctime, read_at)
    }
}

/// Applies git's racy rule to the times of a file: tells whether a later write would surely have moved them.
pub fn times_prove(mtime: i64, ctime: i64, read_at: i64) -> bool {
    let newest = mtime.max(ctime);
    let coarse = mtime % 1_000_000_000 == 0 && ctime % 1_000_000_000 == 0;
    newest.saturating_add(if coarse { COARSE_STEP } else { FINE_STEP }) < read_at
}

/// Tells whether a file changed last before a moment, by its ctime. Both are of the clock of file times, in nanoseconds since 1970.
/// A clock of whole seconds may be behind.
pub fn is_before(ctime: i64, moment: i64) -> bool {
    let step = if ctime % 1_000_000_000 == 0 { COARSE_STEP } else { 0 };
    ctime.saturating_add(step) < moment
}

/// The facts of a captured file after the last capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    /// The facts that the file had when it was read.
    pub stamp: Stamp,
    /// The blob of its content as it was read then.
    pub id: ObjectId,
    /// True if an equal stamp proves equal content (see [`Stamp::proves_content_read_at`]).
    pub proven: bool,
    /// True if the file is private: its content is in the store of private files only.
    pub private: bool,
}

impl KnownFile {
    /// Returns true for a symbolic link.
    pub fn is_link(&self) -> bool {
        self.stamp.mode & KIND == LINK
    }
}

/// The facts of all captured files after the last capture, in byte order of their paths.
#[derive(Clone, Debug, Default)]
pub struct KnownPaths(Vec<(RelPath, KnownFile)>);

impl PartialEq for KnownPaths {
    fn eq(&self, other: &KnownPaths) -> bool {
        let same = |((a, known), (b, other)): (&(RelPath, KnownFile), &(RelPath, KnownFile))| {
            known == other && (a.shares_bytes(b) || a == b)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Eq for KnownPaths {}

impl KnownPaths {
    /// From entries in any order; of several with the same path the first counts.
    pub fn new(mut entries: Vec<(RelPath, KnownFile)>) -> KnownPaths {
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.dedup_by(|(later, _), (kept, _)| later == kept);
        }
        KnownPaths(entries)
    }

    /// Returns what is known of a path.
    pub fn get(&self, path: &RelPath) -> Option<&KnownFile> {
        let at = self.0.binary_search_by(|(known, _)| known.cmp(path)).ok()?;
        Some(&self.0[at].1)
    }

    /// Returns all of it, in byte order of the paths.
    pub fn entries(&self) -> &[(RelPath, KnownFile)] {
        &self.0
    }

    /// Returns the symbolic links among them.
    pub fn links(&self) -> impl Iterator<Item = &RelPath> {
        self.0.iter().filter(|(_, known)| known.is_link()).map(|(path, _)| path)
    }

    /// Returns the stretch in which `top` and everything below it stand; other paths may stand between them.
    pub fn below(&self, top: &RelPath) -> &[(RelPath, KnownFile)] {
        let from = self.0.partition_point(|(path, _)| path < top);
        let length = self.0[from..].partition_point(|(path, _)| path.as_bytes().starts_with(top.as_bytes()));
        &self.0[from..from + length]
    }

    /// Returns the same, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut KnownFile> {
        self.0.iter_mut().map(|(_, known)| known)
    }

    /// Has a file read by the next capture, whatever its stamp says.
    pub fn distrust(&mut self, path: &RelPath) {
        if let Ok(at) = self.0.binary_search_by(|(known, _)| known.cmp(path)) {
            self.0[at].1.proven = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_proves_nothing_within_one_step_of_the_reading() {
        let stamp = |time: i64| Stamp { size: 1, mtime: time, ctime: time, dev: 1, ino: 1, mode: 0o100_644, links: 1 };
        let table = [
            (1_500_000_001, 1_500_000_001 + FINE_STEP, false),
            (1_500_000_001, 1_500_000_002 + FINE_STEP, true),
            (1_000_000_000, 2_000_000_000, false),
            (1_000_000_000, 3_000_000_001, true),
            (9_000_000_001, 5_000_000_000, false),
        ];
        for (time, read_at, expected) in table {
            assert_eq!(stamp(time).proves_content_read_at(read_at), expected, "{time} {read_at}");
        }
    }
}
