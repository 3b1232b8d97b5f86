//! From a manifest to tree objects and back.
//!
//! A checkpoint's root tree holds the workspace's entries under their stored names ([`super::name`]) and, when there is
//! something that trees cannot hold, the entry `.piton` ([`super::meta`]). A tree that is read back is untrusted: it
//! may come from anywhere.

use std::collections::{BTreeMap, HashMap};

use super::coverage::Coverage;
use super::id::{ObjectId, ObjectKind};
use super::manifest::{EntryKind, Manifest, ManifestEntry};
use super::meta;
use super::name;
use super::path::RelPath;
use super::tree::{self, Mode, TreeEntry};
use super::weight::{self, Meter};
use crate::error::{Code, Error, Result};

/// Deepest nesting that is read back; no file system path is deeper.
pub(crate) const MAX_DEPTH: usize = 2048;

/// Takes each object that was built, children before parents.
pub type Emit<'a> = &'a mut dyn FnMut(ObjectKind, ObjectId, &[u8]) -> Result<()>;

/// Gives the entries of a tree.
pub type ReadTree<'a> = &'a dyn Fn(&ObjectId) -> Result<Vec<TreeEntry>>;

/// Gives the content of a blob.
pub type ReadBlob<'a> = &'a dyn Fn(&ObjectId) -> Result<Vec<u8>>;

/// Builds all trees of a checkpoint and returns the root's id.
///
/// # Errors
/// Returns the errors of `emit`.
pub fn build(manifest: &Manifest, coverage: &Coverage, emit: Emit<'_>) -> Result<ObjectId> {
    let mut records = Vec::new();
    for (names, content) in meta::encode(manifest, coverage) {
        let id = ObjectId::of(ObjectKind::Blob, &content)?;
        emit(ObjectKind::Blob, id, &content)?;
        records.push((names, id));
    }
    let mut forest = Forest::new(manifest.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir).count());
    for (path, entry) in manifest.iter() {
        forest.add(path, entry);
    }
    let own = records_entry(records, emit)?;
    forest.emit(own, emit)
}

/// Returns the root's entry for piton's own records, from where their blobs stand; `None` without any.
///
/// # Errors
/// Returns the errors of `emit`.
pub fn records_entry(
    blobs: impl IntoIterator<Item = (Vec<Vec<u8>>, ObjectId)>,
    emit: Emit<'_>,
) -> Result<Option<TreeEntry>> {
    let mut records = TreeDraft::default();
    for (names, id) in blobs {
        records.leaf(&names, Mode::File, id);
    }
    match records.dirs.pop_first() {
        None => Ok(None),
        Some((name, node)) => Ok(Some(TreeEntry { name, mode: Mode::Dir, id: node.emit(emit)? })),
    }
}

/// The directories of a manifest, parents before children.
///
/// A manifest's order is nearly the order of its directories: only names like `a.b` stand between `a` and `a/x`. So the
/// directory of the last path is tried first, and looked up when that is another one.
struct Forest<'m> {
    /// Parent's place, own stored name, entries; the root's parent is itself.
    dirs: Vec<(usize, Vec<u8>, Vec<TreeEntry>)>,
    places: HashMap<&'m [u8], usize>,
    last: (&'m [u8], usize),
}

impl<'m> Forest<'m> {
    fn new(dirs: usize) -> Forest<'m> {
        let mut forest =
            Forest { dirs: Vec::with_capacity(dirs + 1), places: HashMap::with_capacity(dirs + 1), last: (b"", 0) };
        forest.dirs.push((0, Vec::new(), Vec::new()));
        forest.places.insert(b"", 0);
        forest
    }

    fn add(&mut self, path: &'m RelPath, entry: &ManifestEntry) {
        let name = path.name();
        let bytes = path.as_bytes();
        let parent = self.place(&bytes[..(bytes.len() - name.len()).saturating_sub(1)]);
        let name = name::to_stored(name, parent == 0);
        match entry.kind {
            EntryKind::Dir => {
                self.places.insert(bytes, self.dirs.len());
                self.dirs.push((parent, name, Vec::new()));
            }
            EntryKind::File | EntryKind::Link => {
                self.dirs[parent].2.push(TreeEntry { name, mode: entry.mode(), id: entry.id });
            }
        }
    }

    /// Returns the place of a directory; one that the manifest leaves out is made.
    fn place(&mut self, dir: &'m [u8]) -> usize {
        if self.last.0 == dir {
            return self.last.1;
        }
        let place = match self.places.get(dir) {
            Some(place) => *place,
            None => {
                let cut = dir.iter().rposition(|byte| *byte == b'/');
                let parent = self.place(cut.map_or(b"", |cut| &dir[..cut]));
                let name = cut.map_or(dir, |cut| &dir[cut + 1..]);
                self.places.insert(dir, self.dirs.len());
                self.dirs.push((parent, name::to_stored(name, parent == 0), Vec::new()));
                self.dirs.len() - 1
            }
        };
        self.last = (dir, place);
        place
    }

    fn emit(mut self, own: Option<TreeEntry>, emit: Emit<'_>) -> Result<ObjectId> {
        while self.dirs.len() > 1 {
            let Some((parent, name, entries)) = self.dirs.pop() else { break };
            let id = emit_tree(entries, emit)?;
            self.dirs[parent].2.push(TreeEntry { name, mode: Mode::Dir, id });
        }
        let (_, _, mut entries) = self.dirs.swap_remove(0);
        entries.extend(own);
        emit_tree(entries, emit)
    }
}

/// Builds and hands over one tree; the entries may be in any order.
///
/// # Errors
/// Returns the errors of `emit`.
pub fn emit_tree(entries: Vec<TreeEntry>, emit: Emit<'_>) -> Result<ObjectId> {
    let bytes = tree::encode(entries);
    let id = ObjectId::of(ObjectKind::Tree, &bytes)?;
    emit(ObjectKind::Tree, id, &bytes)?;
    Ok(id)
}

/// Returns the stored names of a path's components.
fn stored_components(path: &RelPath) -> Vec<Vec<u8>> {
    path.components().enumerate().map(|(i, component)| name::to_stored(component, i == 0)).collect()
}

/// Returns the path under which the content of `path` stands in a checkpoint's tree, for `git show ID:PATH`.
pub fn stored_path(path: &RelPath) -> Vec<u8> {
    stored_components(path).join(&b'/')
}

/// The tree of piton's own records under construction.
#[derive(Default)]
struct TreeDraft {
    leaves: Vec<TreeEntry>,
    dirs: BTreeMap<Vec<u8>, TreeDraft>,
}

impl TreeDraft {
    fn dir(&mut self, names: &[Vec<u8>]) -> &mut TreeDraft {
        let mut node = self;
        for name in names {
            if !node.dirs.contains_key(name) {
                node.dirs.insert(name.clone(), TreeDraft::default());
            }
            node = node.dirs.entry(name.clone()).or_default();
        }
        node
    }

    fn leaf(&mut self, names: &[Vec<u8>], mode: Mode, id: ObjectId) {
        if let Some((last, parents)) = names.split_last() {
            self.dir(parents).leaves.push(TreeEntry { name: last.clone(), mode, id });
        }
    }

    fn emit(self, emit: Emit<'_>) -> Result<ObjectId> {
        let mut entries = self.leaves;
        for (name, node) in self.dirs {
            entries.push(TreeEntry { name, mode: Mode::Dir, id: node.emit(emit)? });
        }
        emit_tree(entries, emit)
    }
}

/// Reads a checkpoint back: its manifest (sizes are zero, trees do not know them) and its coverage.
///
/// `wanted` is asked for each path, directories included; what it refuses is not read. A tree that would take more than `memory`
/// bytes is refused before its paths are listed, as [`weight::check`] says.
///
/// # Errors
/// `store-damaged` for trees or records piton would not have written; `too-large`; errors of the readers.
pub fn load(
    root: &ObjectId,
    wanted: &dyn Fn(&RelPath) -> bool,
    memory: u64,
    read_tree: ReadTree<'_>,
    read_blob: ReadBlob<'_>,
) -> Result<(Manifest, Coverage)> {
    let mut manifest = Manifest::new();
    let mut own = None;
    let mut meter = Meter::new(memory);
    let mut pending = vec![(RelPath::root(), *root, 0usize)];
    while let Some((dir, id, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(weight::too_deep(root));
        }
        for entry in read_tree(&id)? {
            if dir.is_root() && entry.name == name::RESERVED_ROOT {
                own = Some(entry);
                continue;
            }
            let path = dir.join(&name::from_stored(&entry.name, dir.is_root()));
            if !wanted(&path) {
                continue;
            }
            if meter.add(path.as_bytes().len()) {
                weight::check(root, memory, read_tree)?;
            }
            // Stored names that piton would not have made stand for themselves, and so may meet one that it made.
            if manifest.contains(&path) {
                return Err(
                    Error::new(Code::StoreDamaged, "a checkpoint's tree contains a path twice").path(path.to_path())
                );
            }
            if entry.mode == Mode::Dir {
                pending.push((path.clone(), entry.id, depth + 1));
            }
            manifest.insert(path, plain_entry(&entry));
        }
    }
    let coverage = match own {
        None => Coverage::default(),
        Some(entry) => meta::load(&entry, &mut manifest, memory, (read_tree, read_blob))?,
    };
    Ok((manifest, coverage))
}

/// Returns an entry with standard permissions.
fn plain_entry(entry: &TreeEntry) -> ManifestEntry {
    let (kind, perm) = match entry.mode {
        Mode::File => (EntryKind::File, 0o644),
        Mode::Executable => (EntryKind::File, 0o755),
        Mode::Link => (EntryKind::Link, 0o777),
        Mode::Dir => return ManifestEntry::dir(0o755),
    };
    ManifestEntry { kind, perm, id: entry.id, size: 0 }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::coverage::{Defaults, Extent, Pattern, SkipReason, Weight};
    use super::*;

    const MEMORY: u64 = 192_000_000;

    fn round_trip(manifest: &Manifest, coverage: &Coverage) -> (Manifest, Coverage) {
        let objects = RefCell::new(HashMap::new());
        let root = build(manifest, coverage, &mut |_, id, bytes| {
            objects.borrow_mut().insert(id, bytes.to_vec());
            Ok(())
        })
        .unwrap();
        let objects = objects.into_inner();
        load(&root, &|_| true, MEMORY, &|id| tree::decode(&objects[id]), &|id| Ok(objects[id].clone())).unwrap()
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_trees_cannot_hold_comes_back() {
        let blob = ObjectId::of(ObjectKind::Blob, b"x").unwrap();
        let file = |perm| ManifestEntry { kind: EntryKind::File, perm, id: blob, size: 0 };
        let mut manifest = Manifest::new();
        for (text, entry) in [
            ("a", ManifestEntry::dir(0o700)),
            ("a/empty", ManifestEntry::dir(0o755)),
            ("a/secret", file(0o600)),
            ("a/run", file(0o750)),
            ("a/.GIT", file(0o644)),
            ("a/new\nline % x", file(0o4755)),
            (".piton", file(0o644)),
            ("link", ManifestEntry { kind: EntryKind::Link, perm: 0o777, id: blob, size: 0 }),
        ] {
            manifest.insert(path(text), entry);
        }
        let mut coverage = Coverage {
            extent: Extent::Paths(vec![path("a"), path("b c")]),
            file_cap: 99,
            secrets: true,
            excludes: vec![Pattern { base: path("a"), text: "*.o # x".into() }],
            configured: vec!["/big data/".into()],
            tracked: vec!["src/**/*.ts".into(), "!src/gen 1".into()],
            read_only: vec!["input/".into()],
            targeted: vec![path("a/secret")],
            unstable: vec![path("a/run")],
            defaults: Defaults { file: 0o640, executable: 0o755, dir: 0o755 },
            ..Coverage::default()
        };
        coverage.skipped.insert(path("a/big"), SkipReason::TooLarge(123));
        coverage.skipped.insert(path("b/c/fifo"), SkipReason::Special);
        coverage.skipped.insert(path("b/.git"), SkipReason::Repository(Weight { bytes: 7, is_least: true }));
        coverage.skipped.insert(path("b/node_modules"), SkipReason::Generated(Weight::whole(8)));
        coverage.skipped.insert(path("b/much"), SkipReason::OverBudget(Weight::whole(9)));
        coverage.repositories.insert(path("a/nested/.git"), Vec::new());
        coverage.repositories.insert(path("a b/.git"), b"gitdir: ../x y\n".to_vec());
        let (manifest_back, coverage_back) = round_trip(&manifest, &coverage);
        assert_eq!(manifest_back, manifest);
        assert_eq!(coverage_back, coverage);
    }

    #[test]
    fn a_plain_tree_has_no_entry_of_ours() {
        let mut manifest = Manifest::new();
        manifest.insert(path("dir"), ManifestEntry::dir(0o755));
        let mut count = 0;
        let root = build(&manifest, &Coverage::default(), &mut |_, _, _| {
            count += 1;
            Ok(())
        });
        assert_eq!((root.unwrap().to_string().len(), count), (40, 2));
    }

    #[test]
    fn two_stored_names_of_one_path_are_refused() {
        let entry = |name: &str| TreeEntry { name: name.into(), mode: Mode::File, id: ObjectId::EMPTY_TREE };
        for (one, other) in [("~piton~x", "~piton~~piton~x"), (".PITON", ".PITON~")] {
            let read_tree = |_: &ObjectId| Ok(vec![entry(one), entry(other)]);
            let read = load(&ObjectId::EMPTY_TREE, &|_| true, MEMORY, &read_tree, &|_| Ok(Vec::new()));
            assert_eq!(read.unwrap_err().code(), Code::StoreDamaged, "{one} {other}");
        }
    }

    #[test]
    fn records_of_repositories_lead_into_no_git_directory() {
        let read = |line: &str| {
            let name = |name: &str, mode| TreeEntry { name: name.into(), mode, id: ObjectId::from_bytes([7; 20]) };
            let read_tree = |id: &ObjectId| {
                Ok(vec![if *id == ObjectId::EMPTY_TREE { name(".piton", Mode::Dir) } else { name("info", Mode::File) }])
            };
            load(&ObjectId::EMPTY_TREE, &|_| true, MEMORY, &read_tree, &|_| Ok(format!("{line}\n").into_bytes()))
        };
        let long = format!("repository a/.git gitdir:{}", "x".repeat(5_000));
        for line in ["repository a/.git", "repository a/b/.git gitdir:%20../x%0A"] {
            assert_eq!(read(line).unwrap().1.repositories.len(), 1, "{line}");
        }
        for line in [
            "repository .git",
            "repository a",
            "repository .git/a/.git",
            "repository a/.GIT/b/.git",
            "repository a/.git/hooks/pre-commit gitdir:x",
            "repository ../a/.git gitdir:x",
            "repository a/.git x",
            &long,
        ] {
            assert_eq!(read(line).unwrap_err().code(), Code::StoreDamaged, "{line}");
        }
    }

    #[test]
    fn trees_without_end_are_refused() {
        let entry = |name: &str| TreeEntry { name: name.into(), mode: Mode::Dir, id: ObjectId::EMPTY_TREE };
        for trees in [vec!["d"], vec![".piton", "tree", "d-a"]] {
            let reads = std::cell::Cell::new(0);
            let read_tree = |_: &ObjectId| {
                let at = reads.replace(reads.get() + 1);
                assert!(at < 10_000, "it goes on for ever");
                Ok(vec![entry(trees[at.min(trees.len() - 1)])])
            };
            let read = load(&ObjectId::EMPTY_TREE, &|_| true, MEMORY, &read_tree, &|_| Ok(Vec::new()));
            assert_eq!(read.unwrap_err().code(), Code::TooLarge, "{trees:?}");
        }
    }

    /// A subtree shared again and again: in the tree itself, and in the records of `.piton`.
    #[test]
    fn shared_trees_are_refused_before_their_paths_are_listed() {
        let level = |n: u8| ObjectId::from_bytes([n; 20]);
        for (prefix, top, code) in [("d", vec![], Code::TooLarge), ("d-", vec![".piton", "tree"], Code::TooLarge)] {
            let reads = std::cell::Cell::new(0);
            let read_tree = |id: &ObjectId| {
                reads.set(reads.get() + 1);
                let n = id.as_bytes()[0];
                let dir = |name: String, n| TreeEntry { name: name.into(), mode: Mode::Dir, id: level(n) };
                Ok(match top.get(usize::from(100 - n)) {
                    Some(name) => vec![dir((*name).to_owned(), n - 1)],
                    None if n <= 88 => vec![],
                    None => (0..10).map(|k| dir(format!("{prefix}{k}"), n - 1)).collect(),
                })
            };
            let memory = 32_000_000;
            let read = load(&level(100), &|_| true, memory, &read_tree, &|_| Ok(Vec::new()));
            assert_eq!(read.unwrap_err().code(), code, "{prefix}");
            assert!(reads.get() < 300_000, "{} trees were read", reads.get());
        }
    }

    proptest! {
        #[test]
        fn any_manifest_comes_back(
            names in proptest::collection::btree_map("[a-c.~%]{1,3}(/[a-cG]{1,2}){0,2}", (0u16..0o7777, 0u8..3), 0..20),
        ) {
            let mut manifest = Manifest::new();
            for (text, (perm, kind)) in names {
                if text.split('/').any(|part| part == "." || part == "..") { continue; }
                let path = path(&text);
                let blocked = path.parent().is_some_and(|p| manifest.get(&p).is_some_and(|e: &ManifestEntry| e.kind != EntryKind::Dir));
                let grand = path.parent().and_then(|p| p.parent());
                let blocked = blocked || grand.is_some_and(|p| manifest.get(&p).is_some_and(|e| e.kind != EntryKind::Dir));
                if blocked { continue; }
                manifest.insert_parents(&path, 0o755);
                let has_children = manifest.inside(&path).next().is_some();
                let entry = match kind {
                    0 if !has_children => ManifestEntry { kind: EntryKind::File, perm, id: ObjectId::EMPTY_TREE, size: 0 },
                    1 if !has_children => ManifestEntry { kind: EntryKind::Link, perm: 0o777, id: ObjectId::EMPTY_TREE, size: 0 },
                    _ => ManifestEntry::dir(perm),
                };
                manifest.insert(path, entry);
            }
            let (back, _) = round_trip(&manifest, &Coverage::default());
            prop_assert_eq!(back, manifest);
        }
    }
}
