//! Rounds that are disturbed: stopped, killed, on a full disk, with writers and damage between. Nothing that a ref reaches is ever
//! lost, and an undisturbed round leaves nothing else.
//!
//! `PITON_ROUNDS=full` kills 200 times, and fails every system call that writes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Instant;

use proptest::prelude::*;

use super::mark::Marks;
use super::upkeep::{History, SMALL};
use super::*;
use crate::store::upkeep::Upkept;

/// Names the store that a process of its own keeps up.
const HOME: &str = "PITON_KEEP_UP";

/// Asks that process to keep to the sizes of the store, not to small ones.
const REAL: &str = "PITON_KEEP_UP_REAL";

fn is_full() -> bool {
    std::env::var_os("PITON_ROUNDS").is_some_and(|rounds| rounds == "full")
}

fn marks(store: &Store) -> Marks {
    Marks::of(store, Vec::new(), &|| Flow::Continue).unwrap()
}

/// Does a round within small sizes.
fn round(store: &mut Store) -> Upkept {
    let mut marks = marks(store);
    store.keep_up_within(&|_| SMALL, &mut marks, &|| Flow::Continue).unwrap()
}

/// Keeps a store up if this process was started for that; else it is no test.
#[test]
fn in_a_process_of_its_own() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let mut store = Store::open(Path::new(&home)).unwrap();
    let mut marks = marks(&store);
    // For `benches/size.py --maintain`.
    let is_real = std::env::var_os(REAL).is_some();
    let choose = |sizes| if is_real { sizes } else { SMALL };
    let done = store.keep_up_within(&choose, &mut marks, &|| Flow::Continue);
    println!("{done:?}");
}

/// Returns the command that keeps a store up in a process of its own.
fn command(program: &str, args: &[&str], home: &Path) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(if program.is_empty() { own.as_os_str() } else { program.as_ref() });
    command.args(args).env(HOME, home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !program.is_empty() {
        command.arg(own);
    }
    command.args(["--exact", "store::tests::rounds::in_a_process_of_its_own"]);
    command
}

/// A history with a bit of everything: loose objects, packs, light ones, dropped refs, and long-lasting packs.
fn everything() -> (History, BTreeSet<usize>) {
    let mut history = History::new(80, 40);
    history.store.pack_full = SMALL.young;
    (0..4).for_each(|_| history.change(10));
    assert_eq!(round(&mut history.store).left, None);
    history.replace(80, 60);
    (0..4).for_each(|_| history.change(10));
    history.store.light_from = 0;
    history.replace(70, 60);
    history.store.light_from = u64::MAX;
    let mut alive: BTreeSet<usize> = (0..history.commits.len()).collect();
    for number in [1, 2, 5, 7] {
        history.drop_ref(number);
        alive.remove(&number);
    }
    (history, alive)
}

#[test]
fn killed_at_random_moments_with_writers_beside() {
    let (mut history, mut alive) = everything();
    let home = history.store.home().to_owned();
    let begun = Instant::now();
    let copy = tempfile::tempdir().unwrap();
    copy_all(&home, copy.path());
    assert!(command("", &[], copy.path()).status().unwrap().success());
    let whole = begun.elapsed().as_micros() as usize;
    let (rounds, mut cut) = (if is_full() { 200 } else { 20 }, 0);
    for n in 0..rounds {
        let mut child = command("", &[], &home).spawn().unwrap();
        let until = Instant::now() + Duration::from_micros((history.dice() % whole) as u64);
        while Instant::now() < until {
            let count = 1 + history.dice() % 12;
            history.change(count);
            alive.insert(history.commits.len() - 1);
        }
        // It may have ended before.
        cut += u32::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        while alive.len() > 8 {
            let number = *alive.iter().nth(history.dice() % (alive.len() - 1)).unwrap();
            alive.remove(&number);
            history.drop_ref(number);
        }
        history.are_whole(alive.iter().copied());
        if n % 10 == 9 {
            history.holds(alive.iter().copied());
        }
    }
    println!("{cut} of {rounds} rounds were killed at work");
    assert!(cut > rounds / 4);
    forget_orphans(&history.store);
    assert_eq!(round(&mut history.store).left, None);
    history.holds(alive.iter().copied());
    history.is_small();
}

/// Waits until a pack that a killed process left without an index is no coming one any more.
fn forget_orphans(store: &Store) {
    let files = std::fs::read_dir(store.git_dir().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let is_orphan =
        |path: PathBuf| path.extension().is_some_and(|kind| kind == "pack") && !path.with_extension("idx").exists();
    if files.into_iter().any(is_orphan) {
        std::thread::sleep(Duration::from_millis(1100));
    }
}

fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Calls that write, or make files durable or visible.
const CALLS: &str = "write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,linkat,unlink,unlinkat";

#[test]
fn every_call_that_writes_may_fail_or_be_the_last() {
    let (history, alive) = everything();
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("log");
    let traced = |name: &str, more: &[&str]| {
        let home = scratch.path().join(name);
        std::fs::create_dir(&home).unwrap();
        copy_all(history.store.home(), &home);
        let trace = format!("trace={CALLS}");
        let mut args = vec!["-f", "-qq", "-o", log.to_str().unwrap(), "-e", &trace];
        args.extend(more);
        let ended = command("strace", &args, &home).status();
        (home, ended.is_ok_and(|status| status.success()))
    };
    let (_, is_traced) = traced("count", &[]);
    if !is_traced {
        assert!(std::env::var_os("CI").is_none(), "strace is required under CI");
        println!("skipped: no strace");
        return;
    }
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains('(')) {
        let call = line.split('(').next().unwrap_or("").split_whitespace().last().unwrap_or("").to_owned();
        *counts.entry(call).or_default() += 1;
    }
    println!("{counts:?}");
    let most = counts.values().max().copied().unwrap();
    let step = if is_full() { 1 } else { most / 8 + 1 };
    for (n, fault) in (1..=most).step_by(step).flat_map(|n| [(n, "error=ENOSPC"), (n, "signal=SIGKILL")]) {
        let inject = format!("inject={CALLS}:{fault}:when={n}{}", if fault.starts_with('e') { "+" } else { "" });
        let (home, _) = traced("copy", &["-e", &inject]);
        let mut copy = history.over(&home);
        copy.are_whole(alive.iter().copied());
        forget_orphans(&copy.store);
        assert_eq!(round(&mut copy.store).left, None, "{inject}");
        copy.holds(alive.iter().copied());
        copy.is_small();
        std::fs::remove_dir_all(home).unwrap();
    }
}

/// A commit of the tree that a dropped one had, if all of it is there still, as a writer sees it.
fn again(store: &mut Store, commits: &[ObjectId], name: &str) -> Option<ObjectId> {
    let _shared = store.lock_shared("writing", Duration::ZERO).ok()?;
    store.renew().unwrap();
    let whole = |id: &ObjectId| {
        let tree = store.has(id).unwrap().then(|| store.read_commit(id).ok()).flatten()?.tree;
        store.holes().below(tree).unwrap().is_none().then_some(tree)
    };
    let tree = commits.iter().find_map(whole)?;
    let batch = store.batch().unwrap();
    let commit = NewCommit { tree, parents: &[], message: name, time_ms: 0 };
    let id = batch.put_commit(&commit).unwrap();
    batch.finish().unwrap();
    store.update_ref(name, None, id).unwrap();
    Some(id)
}

/// Makes a second copy of an object, in a loose file, and damages one of the copies.
fn second_copy(history: &History, number: usize, nth: usize, damage: usize) {
    let store = Store::open(history.store.home()).unwrap();
    let tree = store.read_commit(&history.commits[number]).unwrap().tree;
    let dirs = store.read_tree(&tree).unwrap();
    let dir = &dirs[nth % dirs.len()];
    let files = store.read_tree(&dir.id).unwrap();
    let id = files[nth % files.len()].id;
    let path = loose::path_of(store.git_dir(), &id);
    let content = store.read_blob(&id).unwrap();
    let Some((pack, offset)) = packed(&store, &id) else { return };
    match damage {
        // A loose copy may be the only whole one by now.
        0 if !path.exists() => std::fs::write(&path, b"nothing").unwrap(),
        1 => {
            loose::put_back(store.git_dir(), &id, &loose::compress(ObjectKind::Blob, &content).unwrap()).unwrap();
            let mut bytes = std::fs::read(&pack).unwrap();
            bytes[offset as usize + 4] ^= 0x55;
            std::fs::remove_file(&pack).unwrap();
            std::fs::write(&pack, bytes).unwrap();
        }
        0 => {}
        _ => loose::put_back(store.git_dir(), &id, &loose::compress(ObjectKind::Blob, &content).unwrap()).unwrap(),
    }
}

#[test]
fn deltas_outlive_the_whole_copies_of_the_damaged_objects_below_them() {
    let mut history = History::new(70, 20);
    history.store.pack_full = SMALL.young;
    history.change(20);
    assert_eq!(round(&mut history.store).left, None);
    // Each object of the second commit is damaged in the pack, where most objects of the first one are deltas on them.
    (0..70).for_each(|nth| second_copy(&history, 1, nth, 1));
    history.are_whole(0..2);
    history.drop_ref(1);
    assert_eq!(round(&mut history.store).left, None);
    history.is_small();
    history.holds(0..1);
}

/// Returns the first pack that holds an object whole, and its place there.
fn packed(store: &Store, id: &ObjectId) -> Option<(PathBuf, u64)> {
    let set = store.objects.refresh().unwrap();
    set.packs.iter().find_map(|pack| Some((pack.stem.with_extension("pack"), pack.find(id)?)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if is_full() { 200 } else { 8 }, ..ProptestConfig::default() })]
    #[test]
    fn nothing_reachable_is_lost_whatever_happens(steps in proptest::collection::vec((0_usize..12, 0_usize..1000), 1..20)) {
        let mut history = History::new(70, 20);
        history.store.pack_full = SMALL.young;
        let (mut alive, mut dropped) = (BTreeSet::from([0_usize]), Vec::new());
        let mut other = Store::open(history.store.home()).unwrap();
        for (step, n) in steps {
            match step {
                0 | 1 => history.change(1 + n % 20),
                2 => history.replace(70, 10 + n % 40),
                3 => {
                    history.store.light_from = 0;
                    history.replace(70, 10 + n % 40);
                    history.store.light_from = u64::MAX;
                }
                4 | 5 if alive.len() > 1 => {
                    let number = *alive.iter().nth(n % alive.len()).unwrap();
                    alive.remove(&number);
                    history.drop_ref(number);
                    dropped.push(history.commits[number]);
                }
                6 => {
                    let bounds = Bounds { packs: n % 3, left: 1, bytes: 1 << 22, objects: 50 + n, loose: 10 };
                    history.store.consolidate(bounds, &|| Flow::Continue).unwrap();
                }
                7 => drop(history.store.recompress(IDLE, &|| Flow::Continue)),
                8 => second_copy(&history, *alive.iter().nth(n % alive.len()).unwrap(), n, n % 3),
                9 => {
                    let (mut marks, calls) = (marks(&history.store), std::cell::Cell::new(0));
                    let control = || if calls.replace(calls.get() + 1) > n { Flow::Stop } else { Flow::Continue };
                    history.store.keep_up_within(&|_| SMALL, &mut marks, &control).unwrap();
                }
                10 => {
                    let (mut marks, calls) = (marks(&history.store), std::cell::Cell::new(0));
                    let (name, writer) = (History::name(history.commits.len()), RefCell::new((&mut other, None)));
                    let control = || {
                        let (other, new) = &mut *writer.borrow_mut();
                        if calls.replace(calls.get() + 1) >= n % 60 && new.is_none() {
                            *new = again(other, &dropped, &name);
                        }
                        Flow::Continue
                    };
                    history.store.keep_up_within(&|_| SMALL, &mut marks, &control).unwrap();
                    let new = writer.into_inner().1;
                    history.commits.extend(new);
                }
                _ => {
                    if round(&mut history.store).left.is_none() {
                        history.is_small();
                    }
                }
            }
            // Every step adds a commit at most.
            alive.extend(Some(history.commits.len() - 1).filter(|last| !dropped.contains(&history.commits[*last])));
            history.are_whole(alive.iter().copied());
        }
        prop_assert_eq!(round(&mut history.store).left, None);
        history.is_small();
        let mut marks = marks(&history.store);
        prop_assert_eq!(history.store.purge(&mut marks, &|| Flow::Continue).unwrap().left, None);
        history.has_nothing_else();
        history.holds(alive.iter().copied());
    }
}
