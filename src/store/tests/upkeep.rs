//! Keeping the store small: what nothing reaches goes, the rest is packed densely, and nothing that a ref reaches is lost.

use std::collections::BTreeMap;

use super::mark::{Marks, Root};
use super::*;
use crate::store::upkeep::Upkept;
use crate::sys::interrupt::Flow;

/// A history of files in directories, with a ref for each commit.
struct History {
    _home: tempfile::TempDir,
    store: Store,
    files: BTreeMap<(usize, usize), Vec<u8>>,
    commits: Vec<ObjectId>,
    seed: u32,
}

const DIRS: usize = 10;

impl History {
    /// Makes a first commit of `files` files with `lines` lines each.
    fn new(files: usize, lines: usize) -> History {
        let (home, store) = store();
        let mut history = History { _home: home, store, files: BTreeMap::new(), commits: Vec::new(), seed: 7 };
        for n in 0..files {
            let text: String = (0..lines).map(|_| history.line()).collect();
            history.files.insert((n % DIRS, n), text.into_bytes());
        }
        history.commit();
        history
    }

    fn dice(&mut self) -> usize {
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.seed >> 8) as usize
    }

    fn line(&mut self) -> String {
        format!("let value_{} = compute({}, \"{:x}\");\n", self.dice() % 50, self.dice() % 1000, self.dice())
    }

    /// Appends a line to some files, and commits.
    fn change(&mut self, count: usize) {
        for _ in 0..count {
            let (n, line) = (self.dice() % self.files.len(), self.line());
            let at = *self.files.keys().nth(n).unwrap();
            self.files.get_mut(&at).unwrap().extend(line.into_bytes());
        }
        self.commit();
    }

    fn commit(&mut self) {
        let batch = self.store.batch().unwrap();
        let put = |entries: Vec<TreeEntry>| {
            let bytes = encode(entries);
            let id = ObjectId::of(ObjectKind::Tree, &bytes).unwrap();
            if !batch.contains(&id).unwrap() {
                batch.write(ObjectKind::Tree, id, &bytes).unwrap();
            }
            id
        };
        let mut dirs: BTreeMap<usize, Vec<TreeEntry>> = BTreeMap::new();
        for ((dir, n), content) in &self.files {
            let id = ObjectId::of(ObjectKind::Blob, content).unwrap();
            if !batch.contains(&id).unwrap() {
                batch.write(ObjectKind::Blob, id, content).unwrap();
            }
            dirs.entry(*dir).or_default().push(TreeEntry { name: format!("f{n}").into(), mode: TreeMode::File, id });
        }
        let top = dirs.into_iter().map(|(dir, entries)| {
            let id = put(entries);
            TreeEntry { name: format!("d{dir}").into(), mode: TreeMode::Dir, id }
        });
        let top: Vec<TreeEntry> = top.collect();
        let tree = put(top);
        let number = self.commits.len();
        let message = format!("number {number}\n");
        let id = batch.put_commit(&NewCommit { tree, parents: &[], message: &message, time_ms: 0 }).unwrap();
        batch.finish().unwrap();
        self.store.update_ref(&Self::name(number), None, id).unwrap();
        self.commits.push(id);
    }

    fn name(number: usize) -> String {
        format!("refs/piton/w/auto/{number}")
    }

    fn drop_ref(&mut self, number: usize) {
        self.store.delete_ref(&Self::name(number), self.commits[number]).unwrap();
    }

    fn marks(&self) -> Marks {
        let refs = self.store.refs("refs/").unwrap();
        let roots = refs.into_iter().rev().map(|entry| Root { commit: entry.target.unwrap(), owner: 0 }).collect();
        Marks::of(&self.store, roots, &|| Flow::Continue).unwrap()
    }

    fn keep_up(&mut self) -> Upkept {
        let mut marks = self.marks();
        self.store.keep_up(&mut marks, &|| Flow::Continue).unwrap()
    }

    /// Fails unless every object of these commits is there and whole.
    fn holds(&self, commits: impl Iterator<Item = usize>) {
        let fresh = Store::open(self.store.home()).unwrap();
        for number in commits {
            let commit = fresh.read_commit(&self.commits[number]).unwrap();
            for dir in fresh.read_tree(&commit.tree).unwrap() {
                for file in fresh.read_tree(&dir.id).unwrap() {
                    assert!(fresh.objects.proves(&file.id), "{number}: {}", file.id);
                }
            }
        }
        if let Some((clean, text)) = git(&self.store, &["fsck", "--full", "--strict", "--no-dangling"]) {
            assert!(clean && !text.contains("warning") && !text.contains("error"), "{text}");
        }
    }

    fn bytes(&self) -> u64 {
        let mut open = vec![self.store.git_dir().join("objects")];
        let mut sum = 0;
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let facts = entry.metadata().unwrap();
                if facts.is_dir() {
                    open.push(entry.path());
                } else {
                    sum += facts.len().div_ceil(4096) * 4096;
                }
            }
        }
        sum
    }
}

#[test]
fn nothing_reachable_goes_and_all_else_does() {
    let mut history = History::new(60, 30);
    (0..20).for_each(|_| history.change(5));
    let before = history.bytes();
    let kept: Vec<usize> = (0..21).filter(|n| n % 3 == 0).collect();
    (0..21).filter(|n| n % 3 != 0).for_each(|n| history.drop_ref(n));
    let epoch = history.store.epoch().unwrap();
    let done = history.keep_up();
    assert!(done.left.is_none() && done.deleted > 20, "{done:?}");
    assert_ne!(history.store.epoch().unwrap(), epoch);
    history.holds(kept.into_iter());
    for n in (0..21).filter(|n| n % 3 != 0) {
        assert!(!Store::open(history.store.home()).unwrap().has(&history.commits[n]).unwrap(), "{n}");
    }
    assert!(history.bytes() < before / 2, "{} of {before}", history.bytes());
    // Nothing is left to do, and nothing is done.
    let epoch = history.store.epoch().unwrap();
    assert_eq!(history.keep_up(), Upkept::default());
    assert_eq!(history.store.epoch().unwrap(), epoch);
}

#[test]
fn a_history_takes_hardly_more_than_in_a_repository_that_git_packs() {
    let mut history = History::new(600, 60);
    (0..100).for_each(|_| history.change(10));
    let before = history.bytes();
    let done = history.keep_up();
    assert_eq!(done.left, None);
    history.holds([0, 50, 100].into_iter());
    let copy = tempfile::tempdir().unwrap();
    let at = copy.path().to_str().unwrap();
    let Some((cloned, text)) = git(&history.store, &["clone", "--mirror", "--no-local", "-q", ".", at]) else { return };
    assert!(cloned, "{text}");
    let pack = |dir: &Path| {
        let files =
            std::fs::read_dir(dir.join("objects/pack")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        files.sum::<u64>()
    };
    let packed = Command::new("git").args(["-C", at, "repack", "-adfq"]).output().unwrap();
    assert!(packed.status.success());
    let (ours, gits) = (history.bytes(), pack(copy.path()));
    println!("{before} bytes before, {ours} after, {gits} by git");
    assert!(ours * 10 <= gits * 11, "{ours} and {gits}");
}

#[test]
fn a_checkpoint_that_came_after_the_marks_keeps_what_it_took_for_stored() {
    let mut history = History::new(40, 30);
    history.change(3);
    let old = history.files.clone();
    (0..5).for_each(|_| history.change(3));
    (0..6).for_each(|n| history.drop_ref(n));
    let mut marks = history.marks();
    // The same files as before once more: nothing but the commit is new.
    history.files = old;
    history.commit();
    let done = history.store.keep_up(&mut marks, &|| Flow::Continue).unwrap();
    assert!(done.deleted > 0 && done.left.is_none(), "{done:?}");
    history.holds([6, 7].into_iter());
}

#[test]
fn nothing_is_deleted_while_an_object_of_a_checkpoint_is_missing() {
    let mut history = History::new(40, 30);
    history.change(3);
    history.drop_ref(0);
    let tree = history.store.read_commit(&history.commits[1]).unwrap().tree;
    std::fs::remove_file(loose::path_of(history.store.git_dir(), &tree)).unwrap();
    let done = history.keep_up();
    assert!(done.left.is_some_and(|why| why.contains("cannot be read")) && done.deleted == 0);
    assert!(history.store.has(&history.commits[0]).unwrap());
}

#[test]
fn a_round_may_be_stopped_anywhere() {
    let mut history = History::new(60, 30);
    (0..12).for_each(|_| history.change(5));
    (0..13).filter(|n| n % 2 == 1).for_each(|n| history.drop_ref(n));
    let mut stopped = 0;
    for steps in (0..400).step_by(7) {
        let (mut marks, calls) = (history.marks(), std::cell::Cell::new(0));
        let control = || {
            calls.set(calls.get() + 1);
            if calls.get() > steps { Flow::Stop } else { Flow::Continue }
        };
        stopped += u32::from(history.store.keep_up(&mut marks, &control).unwrap().left.is_some());
        assert_eq!(temporaries(&history.store), 0);
    }
    assert!(stopped > 3);
    history.holds((0..13).filter(|n| n % 2 == 0));
    assert_eq!(history.keep_up().left, None);
    history.holds((0..13).filter(|n| n % 2 == 0));
}
