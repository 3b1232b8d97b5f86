//! Tells what a tree costs in memory once all its paths are listed, without listing them.
//!
//! Tree objects share subtrees: ten small objects, each naming the next one ten times, are ten thousand million paths.
//! A [`Scale`] reads each distinct tree once and adds up. A function that lists paths counts them with a [`Meter`], and
//! has the whole tree weighed before the list becomes long.
//!
//! *Invariant:* weighing takes memory for the distinct trees only, and no sum overflows.

use std::collections::HashMap;

use super::build::{MAX_DEPTH, ReadTree};
use super::id::ObjectId;
use super::text::bytes;
use super::tree::Mode;
use crate::error::{Code, Error, Result};

/// Bytes that a listed path takes beside its name: its entry, its share of the map, the allocator's part.
const A_PATH: u64 = 128;

/// Paths that a stored checkpoint may have for each entry that its trees hold. A captured tree was on a disk, path by
/// path, so its directories share little.
const SHARING: u64 = 16;

/// The part of the memory from which on a list of paths is long.
const LONG: u64 = 8;

/// Sums up all paths of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// The number of files, links and directories, each counted as often as trees name it.
    pub paths: u64,
    /// Bytes of their names, each from the root of this tree on.
    names: u64,
}

impl Weight {
    /// Returns bytes of memory that a list of them takes.
    pub fn bytes(&self) -> u64 {
        self.names.saturating_add(self.paths.saturating_mul(A_PATH))
    }

    /// Adds an entry with a name of `length` bytes and what stands below it.
    fn add(&mut self, length: u64, below: Weight) {
        let paths = below.paths.saturating_add(1);
        self.paths = self.paths.saturating_add(paths);
        let names = paths.saturating_mul(length + 1).saturating_add(below.names);
        self.names = self.names.saturating_add(names);
    }
}

/// Weighs trees. A tree that was weighed once is known when it is met again, in another tree too.
#[derive(Default)]
pub struct Scale {
    known: HashMap<ObjectId, Weight>,
    /// Entries of all trees that were read.
    entries: u64,
}

/// A tree of which some subtrees are not weighed yet.
struct UnweighedTree {
    id: ObjectId,
    /// The lengths of their names, and which they are.
    dirs: Vec<(u64, ObjectId)>,
    sum: Weight,
}

impl Scale {
    /// Weighs a tree that may come from anywhere.
    ///
    /// # Errors
    /// `too-large` when it is nested too deeply; those of `read`.
    pub fn weigh(&mut self, root: &ObjectId, read: ReadTree<'_>) -> Result<Weight> {
        let mut open = Vec::new();
        if !self.known.contains_key(root) {
            open.push(self.open(*root, read)?);
        }
        while let Some(top) = open.last_mut() {
            let Some((length, id)) = top.dirs.last().copied() else {
                self.known.insert(top.id, top.sum);
                open.pop();
                continue;
            };
            if let Some(below) = self.known.get(&id) {
                top.sum.add(length, *below);
                top.dirs.pop();
            } else if open.len() > MAX_DEPTH {
                return Err(too_deep(root));
            } else {
                open.push(self.open(id, read)?);
            }
        }
        Ok(self.known.get(root).copied().unwrap_or_default())
    }

    fn open(&mut self, id: ObjectId, read: ReadTree<'_>) -> Result<UnweighedTree> {
        let (mut dirs, mut sum) = (Vec::new(), Weight::default());
        for entry in read(&id)? {
            self.entries += 1;
            let length = entry.name.len() as u64;
            match entry.mode {
                Mode::Dir => dirs.push((length, entry.id)),
                _ => sum.add(length, Weight::default()),
            }
        }
        Ok(UnweighedTree { id, dirs, sum })
    }

    /// Refuses a tree from elsewhere that takes more than `memory`.
    ///
    /// # Errors
    /// `too-large`; those of `read`.
    pub fn admit(&mut self, root: &ObjectId, memory: u64, read: ReadTree<'_>) -> Result<()> {
        // The known weights only save time, and are bounded too.
        if self.known.len() as u64 > memory / A_PATH {
            self.known.clear();
        }
        let weight = self.weigh(root, read)?;
        if weight.bytes() > memory { Err(too_large(root, weight.paths, weight.bytes(), memory)) } else { Ok(()) }
    }
}

/// Refuses a stored tree that takes more than `memory`, unless it is large by itself and not by what it shares: then a capture may
/// have recorded it, and what was captured is never refused.
///
/// # Errors
/// `too-large`; those of `read`.
pub fn check(root: &ObjectId, memory: u64, read: ReadTree<'_>) -> Result<()> {
    let mut scale = Scale::default();
    let weight = scale.weigh(root, read)?;
    if weight.bytes() > memory && weight.paths > scale.entries.saturating_mul(SHARING) {
        return Err(too_large(root, weight.paths, weight.bytes(), memory));
    }
    Ok(())
}

/// Counts what a list of paths takes while it grows.
pub struct Meter {
    held: u64,
    long: u64,
    looked: bool,
}

impl Meter {
    /// For a list that may take `memory`.
    pub fn new(memory: u64) -> Meter {
        Meter { held: 0, long: memory / LONG, looked: false }
    }

    /// Counts a path of `length` bytes. True once, when the list is long enough that its trees are to be weighed.
    pub fn add(&mut self, length: usize) -> bool {
        self.held += A_PATH + length as u64;
        let looks = self.held > self.long && !self.looked;
        self.looked |= looks;
        looks
    }

    /// Counts `bytes` of something that no tree tells of, and refuses more than `memory` of it.
    ///
    /// # Errors
    /// `too-large`.
    pub fn take(&mut self, bytes: usize, root: &ObjectId, memory: u64) -> Result<()> {
        self.held = self.held.saturating_add(bytes as u64);
        if self.held > memory { Err(too_large(root, 0, self.held, memory)) } else { Ok(()) }
    }
}

fn too_large(root: &ObjectId, paths: u64, size: u64, memory: u64) -> Error {
    let what = match paths {
        0 => "has records".to_owned(),
        paths => format!("names {paths} paths, which take"),
    };
    let (size, memory) = (bytes(size), bytes(memory));
    let text = format!("the tree {} {what} {size} of memory or more; `limits.memory_mb` allows {memory}", root.short());
    Error::new(Code::TooLarge, text)
        .hint("nothing was changed; raise `limits.memory_mb` if this tree is meant to be so large")
}

/// Says that one object is larger than what is read into memory.
pub fn object_too_large(id: &ObjectId, size: u64, most: u64) -> Error {
    let text = format!("the object {} has {}; at most {} are read into memory", id.short(), bytes(size), bytes(most));
    Error::new(Code::TooLarge, text).hint("nothing was changed; `limits.memory_mb` sets what is read into memory")
}

/// Says that a tree has more levels than any path can have.
pub(crate) fn too_deep(root: &ObjectId) -> Error {
    let text = format!("the tree {} is nested more than {MAX_DEPTH} directories deep", root.short());
    Error::new(Code::TooLarge, text).hint("nothing was changed; no file system has such paths")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::super::tree::TreeEntry;
    use super::*;

    fn id(n: usize) -> ObjectId {
        let mut bytes = [7; 20];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        ObjectId::from_bytes(bytes)
    }

    /// Tree `n` names tree `n - 1` so many times; tree 0 has one file.
    fn shared(times: usize) -> impl Fn(&ObjectId) -> Result<Vec<TreeEntry>> {
        move |of: &ObjectId| {
            let n = usize::from_be_bytes(of.as_bytes()[..8].try_into().unwrap());
            if n == 0 {
                return Ok(vec![TreeEntry { name: b"file".to_vec(), mode: Mode::File, id: id(0) }]);
            }
            let dir = |k: usize| TreeEntry { name: format!("{k:03}").into(), mode: Mode::Dir, id: id(n - 1) };
            Ok((0..times).map(dir).collect())
        }
    }

    #[test]
    fn shared_trees_are_weighed_in_as_many_steps_as_there_are_trees() {
        let reads = Cell::new(0);
        let ten = shared(10);
        let read = |of: &ObjectId| {
            reads.set(reads.get() + 1);
            ten(of)
        };
        let weight = Scale::default().weigh(&id(10), &read).unwrap();
        // Ten directories, a hundred, …, and a file in each of the last.
        assert_eq!((weight.paths, reads.get()), (11_111_111_110 + 10_000_000_000, 11));
        assert_eq!(weight.names, (1..=10).map(|n| 10_u64.pow(n) * 4 * u64::from(n)).sum::<u64>() + 10_000_000_000 * 45);
        let error = check(&id(10), 192_000_000, &ten).unwrap_err();
        assert_eq!(error.code(), Code::TooLarge);
        assert!(error.text().contains("names 21111111110 paths") && error.text().contains("memory_mb"), "{error}");
        assert!(Scale::default().weigh(&id(1000), &ten).unwrap().bytes() == u64::MAX, "sums end at the top");
    }

    #[test]
    fn what_is_large_by_itself_is_only_refused_from_elsewhere() {
        let wide = |of: &ObjectId| {
            let file = |k: usize| TreeEntry { name: format!("{k:07}").into(), mode: Mode::File, id: id(0) };
            Ok(if *of == id(1) { (0..300_000).map(file).collect() } else { Vec::new() })
        };
        assert!(check(&id(1), 192_000_000, &wide).is_ok());
        assert!(Scale::default().admit(&id(1), 192_000_000, &wide).is_ok(), "as many files as the defaults hold");
        assert!(check(&id(1), 32_000_000, &wide).is_ok());
        assert_eq!(Scale::default().admit(&id(1), 32_000_000, &wide).unwrap_err().code(), Code::TooLarge);
    }

    #[test]
    fn depth_is_bounded() {
        let one = shared(1);
        assert!(Scale::default().weigh(&id(MAX_DEPTH), &one).is_ok());
        assert_eq!(Scale::default().weigh(&id(MAX_DEPTH + 1), &one).unwrap_err().code(), Code::TooLarge);
        let endless = |_: &ObjectId| Ok(vec![TreeEntry { name: b"d".to_vec(), mode: Mode::Dir, id: id(5) }]);
        assert_eq!(Scale::default().weigh(&id(5), &endless).unwrap_err().code(), Code::TooLarge);
    }

    #[test]
    fn a_meter_speaks_once() {
        let mut meter = Meter::new(8 * 1000);
        let spoke: Vec<bool> = (0..20).map(|_| meter.add(72)).collect();
        assert_eq!(spoke.iter().position(|spoke| *spoke), Some(5));
        assert_eq!(spoke.iter().filter(|spoke| **spoke).count(), 1);
        assert!(meter.take(3000, &id(1), 8000).is_ok());
        assert_eq!(meter.take(3000, &id(1), 8000).unwrap_err().code(), Code::TooLarge);
    }

    proptest! {
        /// Against listing all paths.
        #[test]
        fn a_weight_is_that_of_the_list(trees in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 0..4), 1..6)) {
            let read = |of: &ObjectId| {
                let n = usize::from_be_bytes(of.as_bytes()[..8].try_into().unwrap());
                let entry = |(k, dir): (usize, &bool)| {
                    let is_dir = *dir && n > 0;
                    let (mode, below) = if is_dir { (Mode::Dir, id((n - 1).min(k))) } else { (Mode::File, id(99)) };
                    TreeEntry { name: "x".repeat(k + 1).into(), mode, id: below }
                };
                Ok(trees[n].iter().enumerate().map(entry).collect::<Vec<_>>())
            };
            let root = id(trees.len() - 1);
            let (mut pending, mut paths, mut names) = (vec![(0u64, root)], 0u64, 0u64);
            while let Some((prefix, of)) = pending.pop() {
                for entry in read(&of).unwrap() {
                    let length = prefix + entry.name.len() as u64 + 1;
                    (paths, names) = (paths + 1, names + length);
                    if entry.mode == Mode::Dir {
                        pending.push((length, entry.id));
                    }
                }
            }
            prop_assert_eq!(Scale::default().weigh(&root, &read).unwrap(), Weight { paths, names });
        }
    }
}
