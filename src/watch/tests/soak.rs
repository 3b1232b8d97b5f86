//! Random edits by several threads. A reader that looks only where the watcher says must agree with a full look at
//! every barrier.
//!
//! `PITON_ROUNDS=full cargo test --release --lib watch::tests::soak` runs the long form.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::dice::Dice;

const WRITERS: u64 = 4;

/// Facts of `lstat` about everything the rules admit: inode, mode, size, times.
type Look = BTreeMap<RelPath, (u64, u32, u64, i64, i64)>;

/// Looks at a path, and at the paths below it if `deep`.
fn look(root: &Path, top: &RelPath, deep: bool, found: &mut Look) {
    let base = crate::sys::fs::dir::Dir::open_root(root).unwrap();
    let mut stack = vec![(top.clone(), deep)];
    while let Some((path, deep)) = stack.pop() {
        // A path that cannot be seen is left out; at a barrier nothing changes, so this is exact.
        let Ok(Some(dir)) = base.find_dir(path.parent().unwrap_or_default().to_path()) else { continue };
        let facts = if path.is_root() { dir.stat_self().ok() } else { dir.stat(path.name()).ok().flatten() };
        let Some(facts) = facts else { continue };
        let is_dir = facts.kind == crate::sys::fs::stat::FileKind::Dir;
        if is_dir && !path.is_root() && !rules(&path) {
            continue;
        }
        // The times and the size of a directory change with its entries, and those are reported by themselves.
        let of_file = |value: i64| if is_dir { 0 } else { value };
        let size = if is_dir { 0 } else { facts.size };
        found.insert(path.clone(), (facts.ino, facts.mode, size, of_file(facts.mtime), of_file(facts.ctime)));
        if is_dir && deep {
            let names = base.find_dir(path.to_path()).ok().flatten().and_then(|dir| dir.names().ok());
            stack.extend(names.into_iter().flatten().map(|name| (path.join(&name), true)));
        }
    }
}

/// Updates the knowledge of a reader that looks only where the watcher says.
fn follow(root: &Path, changes: &Changes, known: &mut Look) {
    let whole = [(RelPath::root(), Reach::Subtree)];
    let dirty: Vec<(RelPath, Reach)> = match changes {
        Changes::Everything(_) => whole.to_vec(),
        Changes::Paths(dirty) => dirty.iter().map(|(path, reach)| (path.clone(), reach)).collect(),
    };
    for (top, reach) in dirty {
        let deep = reach == Reach::Subtree;
        known.retain(|path, _| *path != top && !(deep && path.starts_with(&top)));
        let mut above = top.clone();
        let admitted = std::iter::from_fn(|| above.parent().inspect(|parent| above = parent.clone()));
        if admitted.filter(|dir| !dir.is_root()).all(|dir| rules(&dir)) {
            look(root, &top, deep, known);
        }
    }
}

/// Returns a path of few names, so that writers meet.
fn some_path(dice: &mut Dice, root: &Path) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..=dice.roll(4) {
        path.push(dice.of(&["a", "b", "c", "d", "closed", "e"]));
    }
    path
}

/// Makes one random edit.
fn edit(dice: &mut Dice, root: &Path, outside: &Path) {
    let (one, two) = (some_path(dice, root), some_path(dice, root));
    let aside = outside.join(format!("o{}", dice.roll(6)));
    let size = dice.roll(100) as usize;
    // Many edits cannot be done, such as a move of a path that does not exist.
    let _ = match dice.roll(16) {
        0..=3 => fs::write(&one, vec![b'x'; size]),
        4 | 5 => fs::create_dir_all(&one),
        6 => fs::create_dir_all(&one).and_then(|()| fs::write(one.join("at-once"), "x")),
        7 | 8 => fs::rename(&one, &two),
        9 => fs::rename(&one, &aside),
        10 => fs::rename(&aside, &one),
        11 => fs::remove_file(&one),
        12 if dice.roll(3) == 0 => fs::remove_dir_all(&one),
        13 => symlink(["a", "../b", "no/such/place"][dice.roll(3) as usize], &one),
        14 => fs::set_permissions(&one, fs::Permissions::from_mode(0o700 + dice.roll(8) as u32)),
        15 => fs::rename(&one, one.with_file_name("f")),
        _ => {
            fs::File::options().append(true).open(&one).and_then(|mut file| std::io::Write::write_all(&mut file, b"y"))
        }
    };
}

/// Returns the inodes that the process's inotify instances watch.
fn watched_inodes() -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc/self/fdinfo").unwrap().flatten() {
        // A descriptor that was closed meanwhile watches nothing.
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("inotify ")) {
            let ino = line.split_whitespace().find_map(|word| word.strip_prefix("ino:")).unwrap();
            found.insert(u64::from_str_radix(ino, 16).unwrap());
        }
    }
    found
}

/// Returns the admitted directories that the kernel does not watch and that the watcher does not list as uncovered.
/// There must be none once all events are handled.
fn without_watch(scene: &Scene, truth: &Look) -> Vec<String> {
    let inodes = watched_inodes();
    let uncovered = scene.watcher.stats().uncovered;
    let is_bare = |path: &RelPath, inode: u64| {
        let is_dir = scene.at("").join(path.to_path()).symlink_metadata().is_ok_and(|facts| facts.is_dir());
        is_dir && !inodes.contains(&inode) && !uncovered.iter().any(|(top, _)| path.starts_with(top))
    };
    truth.iter().filter(|(path, facts)| is_bare(path, facts.0)).map(|(path, _)| path.display()).collect()
}

/// Returns the number of reported paths, and of answers that were everything.
fn soak(seed: u64, rounds: usize, edits: usize) -> (usize, usize) {
    let mut scene = Scene::new(&["a/b/c/d", "b/c/d", "c/d/e"]);
    let (root, outside) = (scene.at(""), scene.outside("o"));
    fs::create_dir(&outside).unwrap();
    let (start, pause, end) = (Barrier::new(5), Barrier::new(5), AtomicBool::new(false));
    let (mut dirty, mut everything) = (0, 0);
    let mut known = Look::new();
    look(&root, &RelPath::root(), true, &mut known);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (root, outside, start, pause, end) = (&root, &outside, &start, &pause, &end);
            let mut dice = Dice(seed * 31 + writer + 1);
            scope.spawn(move || {
                loop {
                    start.wait();
                    if end.load(Ordering::SeqCst) {
                        return;
                    }
                    (0..edits).for_each(|_| edit(&mut dice, root, outside));
                    pause.wait();
                }
            });
        }
        let mut outcome = Ok(());
        for round in 0..rounds {
            start.wait();
            let mut answers = Vec::new();
            for more in (0..=round % 5).rev() {
                if more == 0 {
                    pause.wait();
                }
                let changes = scene.sync();
                follow(&root, &changes, &mut known);
                match &changes {
                    Changes::Paths(paths) => dirty += paths.len(),
                    Changes::Everything(_) => everything += 1,
                }
                answers.push(changes);
            }
            let mut truth = Look::new();
            look(&root, &RelPath::root(), true, &mut truth);
            let bare = without_watch(&scene, &truth);
            if !bare.is_empty() {
                outcome = Err(format!("seed {seed}, round {round}: without a watch: {bare:?}; answers {answers:?}"));
                break;
            }
            let paths = known.keys().chain(truth.keys());
            let wrong: Vec<_> = paths.filter(|path| known.get(*path) != truth.get(*path)).collect();
            if !wrong.is_empty() {
                outcome = Err(format!("seed {seed}, round {round}: {wrong:?} not in {answers:?}"));
                break;
            }
        }
        end.store(true, Ordering::SeqCst);
        start.wait();
        outcome.unwrap();
    });
    (dirty, everything)
}

#[test]
fn changes_of_writers_are_reported() {
    let full = std::env::var_os("PITON_ROUNDS").is_some_and(|rounds| rounds == "full");
    let (seeds, rounds) = if full { (40, 400) } else { (2, 20) };
    let first = std::env::var("PITON_SEED").map_or(1, |text| text.parse().unwrap());
    for seed in first..first + seeds {
        let (dirty, everything) = soak(seed, rounds, 60);
        assert!(dirty > 0 && everything <= rounds / 20, "seed {seed}: {dirty} paths, {everything} times everything");
        if full {
            eprintln!("seed {seed}: {dirty} paths, {everything} times everything");
        }
    }
}

/// Chains of directories with files in them, made by four threads at once: none is missed, and all have their watches.
#[test]
fn deep_chains_made_at_once_are_reported() {
    let mut scene = Scene::new(&[]);
    let root = scene.at("");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let root = &root;
            scope.spawn(move || {
                for n in 0..20 {
                    let mut dir = root.join(format!("w{writer}-{n}"));
                    for depth in 0..8 {
                        dir.push(format!("d{depth}"));
                        fs::create_dir_all(&dir).unwrap();
                        fs::write(dir.join("file"), "x").unwrap();
                    }
                }
            });
        }
        // Answers in between must not lose anything.
        for _ in 0..10 {
            scene.sync();
        }
    });
    let chains = || (0..4).flat_map(|writer| (0..20).map(move |n| format!("w{writer}-{n}")));
    scene.sync();
    assert_eq!(scene.watcher.stats().watches, 1 + 4 * 20 * 9);
    for chain in chains() {
        let deepest = scene.at(&format!("{chain}/d0/d1/d2/d3/d4/d5/d6/d7/file"));
        fs::write(deepest, "again").unwrap();
    }
    let Changes::Paths(dirty) = scene.sync() else { panic!() };
    let expected: Vec<RelPath> = chains().map(|chain| path(&format!("{chain}/d0/d1/d2/d3/d4/d5/d6/d7/file"))).collect();
    let mut sorted = expected.clone();
    sorted.sort();
    assert_eq!(dirty.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), sorted);
}
