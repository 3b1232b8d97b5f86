//! Keeping the store small: what nothing reaches goes, the rest is packed densely, and nothing that a ref reaches is lost.

use std::collections::BTreeMap;

use super::damage::writing;
use super::levels::Sizes;
use super::log::{Log, Record};
use super::mark::{MarkedRoot, Marks};
use super::packing::Packing;
use super::stock::Stock;
use super::*;
use crate::store::upkeep::Upkept;

/// A history of files in directories, with a ref for each commit.
pub(super) struct History {
    _home: Option<tempfile::TempDir>,
    pub(super) store: Store,
    files: BTreeMap<(usize, usize), Vec<u8>>,
    pub(super) commits: Vec<ObjectId>,
    seed: u32,
}

const DIRS: usize = 10;

impl History {
    /// Makes a first commit of `files` files with `lines` lines each.
    pub(super) fn new(files: usize, lines: usize) -> History {
        let (home, store) = store();
        let mut history = History { _home: Some(home), store, files: BTreeMap::new(), commits: Vec::new(), seed: 7 };
        for n in 0..files {
            let text: String = (0..lines).map(|_| history.line()).collect();
            history.files.insert((n % DIRS, n), text.into_bytes());
        }
        history.commit();
        history
    }

    pub(super) fn dice(&mut self) -> usize {
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.seed >> 8) as usize
    }

    fn line(&mut self) -> String {
        format!("let value_{} = compute({}, \"{:x}\");\n", self.dice() % 50, self.dice() % 1000, self.dice())
    }

    /// Appends a line to some files, and commits.
    pub(super) fn change(&mut self, count: usize) {
        for _ in 0..count {
            let (n, line) = (self.dice() % self.files.len(), self.line());
            let at = *self.files.keys().nth(n).unwrap();
            self.files.get_mut(&at).unwrap().extend(line.into_bytes());
        }
        self.commit();
    }

    pub(super) fn commit(&mut self) {
        let _shared = self.store.lock_shared("writing", Duration::from_mins(1)).unwrap();
        self.store.renew().unwrap();
        let batch = self.store.batch().unwrap();
        batch.expect(self.files.len(), 1).unwrap();
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

    pub(super) fn name(number: usize) -> String {
        format!("refs/piton/w/auto/{number}")
    }

    pub(super) fn drop_ref(&mut self, number: usize) {
        self.store.delete_ref(&Self::name(number), self.commits[number]).unwrap();
    }

    pub(super) fn marks(&self) -> Marks {
        let refs = self.store.refs("refs/").unwrap();
        let roots =
            refs.into_iter().rev().map(|entry| MarkedRoot { commit: entry.target.unwrap(), owner: 0 }).collect();
        Marks::of(&self.store, roots, &|| Flow::Continue).unwrap()
    }

    pub(super) fn keep_up(&mut self) -> Upkept {
        let mut marks = self.marks();
        self.store.keep_up(&mut marks, &|| Flow::Continue).unwrap()
    }

    /// Returns the same history in another store.
    pub(super) fn over(&self, home: &Path) -> History {
        let store = Store::open(home).unwrap();
        History { _home: None, store, files: self.files.clone(), commits: self.commits.clone(), seed: self.seed }
    }

    /// Fails unless every object of these commits is there and whole, and git finds no fault with the store.
    pub(super) fn holds(&self, commits: impl Iterator<Item = usize>) {
        self.are_whole(commits);
        if let Some((clean, text)) = git(&self.store, &["fsck", "--full", "--strict", "--no-dangling"]) {
            assert!(clean && !text.contains("warning") && !text.contains("error"), "{text}");
        }
    }

    /// Fails unless every object of these commits is there and whole.
    pub(super) fn are_whole(&self, commits: impl Iterator<Item = usize>) {
        let fresh = Store::open(self.store.home()).unwrap();
        for number in commits {
            let commit = fresh.read_commit(&self.commits[number]).unwrap();
            for dir in fresh.read_tree(&commit.tree).unwrap() {
                for file in fresh.read_tree(&dir.id).unwrap() {
                    assert!(fresh.objects.proves(&file.id), "{number}: {}", file.id);
                }
            }
        }
    }

    /// Fails unless the store holds each object that a ref reaches once, and little else: no pack has more than a quarter of it.
    pub(super) fn is_small(&self) {
        let marks = self.marks();
        let stock = Stock::of(&Store::open(self.store.home()).unwrap(), &marks).unwrap();
        for pack in &stock.packs {
            assert!(pack.best > 0 && pack.surplus() <= pack.length / 4, "{} of {}", pack.surplus(), pack.length);
        }
        assert!(stock.loose.keys().all(|id| stock.best.get(id).is_some_and(|best| best.pack.is_none())));
        assert_eq!(temporaries(&self.store), 0);
    }

    /// Fails unless the store holds nothing but what refs reach.
    pub(super) fn has_nothing_else(&self) {
        let (marks, store) = (self.marks(), Store::open(self.store.home()).unwrap());
        let each = |id: ObjectId| marks.contains(&id);
        let mut all = true;
        store
            .objects
            .each(&mut |id| {
                all &= each(id);
                true
            })
            .unwrap();
        assert!(all, "an object that nothing reaches");
    }

    /// Gives some files content that nothing had before, and commits.
    pub(super) fn replace(&mut self, count: usize, lines: usize) {
        for n in 0..count {
            let text: String = (0..lines).map(|_| self.line()).collect();
            self.files.insert((n % DIRS, n), text.into_bytes());
        }
        self.commit();
    }

    pub(super) fn bytes(&self) -> u64 {
        Self::bytes_below(&self.store.git_dir().join("objects"))
    }

    fn bytes_below(dir: &Path) -> u64 {
        let mut open = vec![dir.to_owned()];
        let mut sum = 0;
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                // One may go meanwhile.
                let Ok(facts) = entry.metadata() else { continue };
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
    history.has_nothing_else();
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
    assert!(done.left.is_some_and(|why| why.contains("cannot read")) && done.deleted == 0);
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

/// The sizes of a store that may grow by a megabyte.
pub(super) const SMALL: Sizes = Sizes { extra: 1 << 20, pack: 128 << 10, young: 128 << 10, surplus: Some(4) };

#[test]
fn another_process_takes_a_round_for_no_loss() {
    let mut history = History::new(300, 30);
    (0..5).for_each(|_| history.change(100));
    let mut other = Store::open(history.store.home()).unwrap();
    writing(&mut other);
    (0..5).for_each(|n| history.drop_ref(n));
    assert!(history.keep_up().deleted > 100);
    let epoch = other.epoch().unwrap();
    assert!(!other.lacks_packs().unwrap());
    writing(&mut other);
    assert!(other.epoch().unwrap() == epoch && !other.objects.is_suspect());
    // A pack that somebody else removes is a loss as before.
    let dir = other.git_dir().join("objects/pack");
    for entry in std::fs::read_dir(&dir).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert!(other.lacks_packs().unwrap());
    writing(&mut other);
    assert!(other.epoch().unwrap() != epoch && other.objects.is_suspect());
}

#[test]
fn a_pack_that_is_made_once_more_stays() {
    let mut history = History::new(40, 30);
    history.change(3);
    let marks = history.marks();
    let mut stock = Stock::of(&history.store, &marks).unwrap();
    for round in 0..2 {
        let mut packing = Packing::new(pack::LONG, 1 << 30);
        for id in marks.ranked().into_keys().collect::<std::collections::BTreeSet<_>>() {
            let (kind, content) = history.store.objects.read(&id, 1 << 30).unwrap();
            let plain = deltas::Plain { id, kind: kind.unwrap(), content, path: marks.path(&id) };
            assert!(packing.add(&history.store, plain, &|| Flow::Continue).unwrap().is_none());
        }
        let made = packing.end(&history.store, &|| Flow::Continue).unwrap().unwrap();
        let (useless, loose) = stock.moved(&history.store, &made.name, &made.ids).unwrap();
        assert_eq!((useless.len(), loose.is_empty()), (0, false), "{round}");
    }
    assert_eq!(packs(&history.store), 1);
}

#[test]
fn a_checkpoint_that_only_a_log_has_is_whole_after_a_power_cut() {
    let mut history = History::new(40, 30);
    history.change(3);
    history.commit();
    // Killed between its record and its ref; what it shares with others is in the store and in no record.
    let (id, name) = (history.commits[2], History::name(9));
    let path = loose::path_of(history.store.git_dir(), &id);
    let workspaces = history.store.home().join("workspaces");
    std::fs::create_dir_all(workspaces.join("w")).unwrap();
    let mut log = Log::open(&workspaces.join("w/log")).unwrap();
    let objects = vec![(id, std::fs::read(&path).unwrap())];
    log.append(&Record { name, old: None, new: id, objects }, true).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(history.store.git_dir().join(History::name(2))).unwrap();
    (0..2).for_each(|n| history.drop_ref(n));
    let done = history.keep_up();
    assert!(done.left.is_none() && done.deleted > 0, "{done:?}");
    history.store.recover(&workspaces, "another boot").unwrap();
    assert_eq!(history.store.refs("refs/").unwrap().len(), 1);
    history.holds([2].into_iter());
}

#[test]
fn whoever_saw_an_object_that_goes_looks_again() {
    let mut history = History::new(60, 30);
    (0..10).for_each(|_| history.change(20));
    (0..10).for_each(|n| history.drop_ref(n));
    let going = history.commits[..10].to_vec();
    let seen = std::cell::RefCell::new(Vec::new());
    let (mut marks, other) = (history.marks(), Store::open(history.store.home()).unwrap());
    let control = || {
        // As a process does that looks without the lock: the epoch first, then the objects.
        let epoch = other.epoch().unwrap();
        if other.missing(&mut going.iter().copied()).unwrap().len() < going.len() {
            seen.borrow_mut().push(epoch);
        }
        Flow::Continue
    };
    history.store.keep_up(&mut marks, &control).unwrap();
    let last = history.store.epoch().unwrap();
    assert!(!seen.borrow().is_empty() && seen.borrow().iter().all(|epoch| *epoch != last));
}

#[test]
fn a_round_takes_no_more_room_than_it_may() {
    for light in [false, true] {
        let mut history = History::new(1, 1);
        history.store.pack_full = SMALL.young;
        if light {
            history.store.light_from = 0;
        }
        // Every path is in every pack, so that none of them is of no use before the end.
        (0..8).for_each(|_| history.replace(60, 400));
        assert!(packs(&history.store) > 8, "{} packs", packs(&history.store));
        for round in 0..3 {
            let (mut marks, dir) = (history.marks(), history.store.git_dir().to_owned());
            let (before, most) = (History::bytes_below(&dir.join("objects")), std::cell::Cell::new(0));
            let loose = before - History::bytes_below(&dir.join("objects/pack"));
            let control = || {
                // A round writes packs and nothing else.
                most.set(most.get().max(loose + History::bytes_below(&dir.join("objects/pack"))));
                Flow::Continue
            };
            let done = history.store.keep_up_within(&|_| SMALL, &mut marks, &control).unwrap();
            let extra = most.get().saturating_sub(before);
            println!("{light} {round}: {before} bytes, {extra} more, {done:?}");
            assert!(done.left.is_none() && extra <= SMALL.extra && done.extra <= SMALL.extra, "{extra} {done:?}");
            (0..3).for_each(|_| history.replace(30, 400));
            history.drop_ref(round + 1);
        }
        history.holds(4..history.commits.len());
    }
}
