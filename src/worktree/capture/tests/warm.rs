//! A warm tree that gets all changes holds what a whole capture holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::*;
use crate::dice::Dice;
use crate::filter::generated;
use crate::model::build::build;
use crate::model::change::{Dirty, Reach};
use crate::worktree::{Renewed, Warm};

type Facts = (u32, u64, u64, i64, i64, i64);

/// Facts of the disk about everything below a directory.
fn disk(root: &Path) -> BTreeMap<RelPath, Facts> {
    let mut all = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let meta = entry.path().symlink_metadata().unwrap();
            let is_dir = meta.is_dir();
            // A directory's own times move with its names, of which the names tell.
            let times = if is_dir { (0, 0) } else { (meta.size(), meta.mtime_nsec().cast_unsigned()) };
            let changed = if is_dir { 0 } else { meta.ctime_nsec() };
            let path = RelPath::from_path(entry.path().strip_prefix(root).unwrap()).unwrap();
            all.insert(
                path,
                (meta.mode(), meta.ino(), times.0, times.1.cast_signed(), changed, meta.nlink().cast_signed()),
            );
            if is_dir {
                pending.push(entry.path());
            }
        }
    }
    all
}

/// Returns what an ideal watcher tells: each name that changed, and directories that are new or changed as a whole.
fn dirty(before: &BTreeMap<RelPath, Facts>, after: &BTreeMap<RelPath, Facts>) -> Dirty {
    let is_dir = |facts: &Facts| facts.0 & libc::S_IFMT == libc::S_IFDIR;
    let links =
        |facts: &Facts, other: &Facts| is_dir(facts) && is_dir(other) && (facts.0, facts.1) == (other.0, other.1);
    let changed = after.iter().filter_map(|(path, facts)| match before.get(path) {
        Some(known) if known == facts || links(known, facts) => None,
        _ if is_dir(facts) => Some((path.clone(), Reach::Subtree)),
        _ => Some((path.clone(), Reach::Entry)),
    });
    let gone = before.keys().filter(|path| !after.contains_key(*path)).map(|path| (path.clone(), Reach::Entry));
    Dirty::new(changed.chain(gone))
}

/// Returns the number of seeds: more of them for a soak.
fn rounds() -> u64 {
    std::env::var("PITON_ROUNDS").map_or(12, |text| text.parse().unwrap_or(1000))
}

/// Makes one random edit; some cannot be done.
fn edit(dice: &mut Dice, root: &Path, step: u64) {
    let dir = dice.of(&["", "", "a", "a/b", "c", "c/node_modules", "c/venv", "a/target", "ig", "ig/deep", "n"]);
    let file = dice.of(&[
        "f",
        "g",
        ".env",
        "big",
        "x.log",
        "keep.log",
        ".gitignore",
        "package.json",
        "pyvenv.cfg",
        "b",
        "venv",
    ]);
    let path = root.join(dir).join(file);
    let other = root.join(dice.of(&["a/b", "c", "n", "ig/deep", "a/f", "f2", "n/n"]));
    let _ = match dice.roll(18) {
        0..=4 => fs::write(&path, format!("{step} {}", dice.roll(3))),
        5 => fs::create_dir_all(root.join(dir)),
        6 => fs::remove_file(&path),
        7 if dice.roll(3) == 0 => fs::remove_dir_all(root.join(dir).join(file)).or_else(|_| fs::remove_dir_all(&other)),
        8 => fs::rename(&path, &other),
        9 => fs::rename(&other, &path),
        10 => fs::set_permissions(&path, PermissionsExt::from_mode(0o600 + dice.roll(128) as u32)),
        11 => symlink("f", &path),
        12 => fs::hard_link(&path, &other),
        13 => fs::write(&path, vec![b'x'; 3000]),
        14 => fs::write(
            root.join(dir).join(".gitignore"),
            dice.of(&["*.log\n", "ig\n", "!keep.log\n*.log\n", "", "b\n/f\n"]),
        ),
        15 => fs::create_dir_all(&path),
        16 => fs::write(root.join(dir).join("package.json"), "{}")
            .and_then(|()| fs::create_dir_all(root.join(dir).join("node_modules/m"))),
        _ => fs::remove_file(root.join(dir).join(dice.of(&["package.json", ".gitignore", "pyvenv.cfg"]))),
    };
}

fn tree_of(capture: &Capture) -> ObjectId {
    build(&capture.manifest, &capture.coverage, &mut |_, _, _| Ok(())).unwrap()
}

/// One capture and the tree that is kept of it.
fn start(bench: &mut Bench) -> Warm {
    let capture = bench.capture();
    bench.defaults = Some(capture.coverage.defaults);
    let mut warm = Warm::new(&bench.request(), &capture, &capture.private).unwrap().unwrap();
    assert_eq!(warm.build(&mut |_, _, _| Ok(())).unwrap(), tree_of(&capture));
    bench.known = capture.known;
    warm
}

/// Compares with a whole capture that knows the same.
fn compare(bench: &Bench, warm: &mut Warm, step: &str) {
    let whole = bench.capture();
    assert_eq!(warm.manifest(), whole.manifest, "{step}");
    assert_eq!(**warm.coverage(), whole.coverage, "{step}");
    let paths =
        |known: &KnownPaths| known.entries().iter().map(|(path, known)| (path.clone(), known.id)).collect::<Vec<_>>();
    assert_eq!(paths(&warm.known()), paths(&whole.known), "{step}");
    assert_eq!(warm.totals(), whole.manifest.totals(), "{step}");
    if bench.limits.ignored != Ignored::NONE {
        let private = warm.private();
        assert_eq!(private.manifest, whole.private.manifest, "{step}");
        assert_eq!(private.coverage, whole.private.coverage, "{step}");
        let built = whole.private.build(&mut |_, _, _| Ok(())).unwrap();
        assert_eq!(warm.build_private(&mut |_, _, _| Ok(())).unwrap(), built, "{step}");
        let room = |warm: &Warm| warm.spare();
        assert_eq!(room(warm), Spare::among(&bench.limits.ignored, &whole.known), "{step}");
    }
    assert_eq!(warm.build(&mut |_, _, _| Ok(())).unwrap(), tree_of(&whole), "{step}");
    assert_eq!(warm.built(), Some(tree_of(&whole)), "{step}");
}

fn soak(seed: u64, steps: u64, git: bool) -> (u64, u64) {
    let mut bench = Bench::with(&["a/b/f", "a/f", "c/f", "ig/deep/f", "f"]);
    bench.limits.file_bytes = 2000;
    if !seed.is_multiple_of(4) {
        bench.limits.ignored = Ignored { file_bytes: 1500, total_bytes: 1 << 30, files: 10_000 };
        bench.secrets = Secrets::Local;
    }
    let git = git && bench.git(&["init", "-q"]);
    let mut dice = Dice(seed);
    let mut warm = start(&mut bench);
    let (mut renewed, mut rescans) = (0, 0);
    for step in 0..steps {
        let before = disk(bench.temp.path());
        for _ in 0..=dice.roll(4) {
            edit(&mut dice, bench.temp.path(), step);
        }
        if git && dice.roll(4) == 0 {
            // A directory that git cannot read does not matter here.
            let path = dice.of(&["f", "a", "ig", "c", "n"]);
            let mut add = Command::new("git");
            let _ = add.args(["add", "-f", "--ignore-errors", path]).current_dir(bench.temp.path()).output();
        }
        if git && dice.roll(8) == 0 {
            // Without a change there is nothing to commit.
            let mut commit = Command::new("git");
            commit.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one"]);
            let _ = commit.current_dir(bench.temp.path()).output();
        }
        if dice.roll(20) == 0 {
            let own = bench.at("sub");
            let _ = if own.exists() { fs::remove_dir_all(own) } else { fs::create_dir_all(own.join(".git/info")) };
        }
        let dirty = dirty(&before, &disk(bench.temp.path()));
        bench.known = Arc::new(warm.known());
        let told = warm.renew(&bench.request(), &dirty, Sinks::nowhere(), &|| Flow::Continue).unwrap();
        match told {
            Renewed::Done { .. } => renewed += 1,
            Renewed::Rescan(_) => {
                rescans += 1;
                warm = start(&mut bench);
                continue;
            }
        }
        compare(&bench, &mut warm, &format!("seed {seed}, step {step}: {dirty:?}"));
    }
    (renewed, rescans)
}

#[test]
fn it_holds_what_a_whole_capture_holds() {
    let mut sums = (0, 0);
    for seed in 1..=rounds() {
        let (renewed, rescans) = soak(seed * 0x9E37_79B9, 60, seed % 2 == 0);
        sums = (sums.0 + renewed, sums.1 + rescans);
    }
    assert!(sums.0 > sums.1, "{} renewed, {} looked at whole", sums.0, sums.1);
}

#[test]
fn what_targets_add_is_known() {
    let mut bench = Bench::with(&["a/f", "a/x.log", "b/f", ".gitignore", "b/c/f", ".env"]);
    bench.write(".gitignore", "*.log\nhidden/\n");
    bench.write("hidden/f", "x");
    let warm = start(&mut bench);
    for (name, recursive, held) in [
        ("a/f", false, true),
        ("a/f", true, true),
        ("a/x.log", false, false),
        ("a", false, true),
        ("a", true, false),
        ("b", true, true),
        ("nothing", true, true),
        ("hidden", true, false),
        ("hidden/f", false, false),
        (".env", false, false),
    ] {
        let target = Target { path: path(name), recursive };
        assert_eq!(warm.holds(bench.temp.path(), &target), held, "{name} {recursive}");
        bench.targets = vec![target];
        assert_eq!(bench.capture().stats.targeted == 0, held, "{name} {recursive}");
        bench.targets.clear();
    }
}

#[test]
fn a_second_name_has_the_first_looked_at_too() {
    let mut bench = Bench::with(&["a/f", "a/g", "b/f"]);
    let mut warm = start(&mut bench);
    assert_eq!(warm.take_eventless().map(BTreeSet::len), Some(0));
    // No event comes for the first name, neither for the new name nor for the changed content.
    fs::hard_link(bench.at("a/f"), bench.at("b/name")).unwrap();
    bench.write("b/name", "through the second name");
    let dirty = Dirty::new([(path("b/name"), Reach::Entry)]);
    let told = warm.renew(&bench.request(), &dirty, Sinks::nowhere(), &|| Flow::Continue).unwrap();
    assert!(matches!(told, Renewed::Done { stats: Stats { hashed: 2, .. }, .. }), "{told:?}");
    compare(&bench, &mut warm, "after the write");
    let both: BTreeSet<RelPath> = [path("a/f"), path("b/name")].into();
    assert_eq!(warm.take_eventless(), Some(&both), "from now on both are looked at each time");
}

#[test]
fn rules_that_change_while_their_files_are_looked_at_are_followed_the_next_time() {
    type Change = fn(&Path);
    let table: &[(&str, Change)] = &[
        (".gitignore", |file| fs::write(file, "y.log\n").unwrap()),
        (".gitignore", |file| fs::remove_file(file).unwrap()),
        ("package.json", |file| fs::remove_file(file).unwrap()),
        ("target/CACHEDIR.TAG", |file| fs::write(file, generated::CACHE_SIGNATURE).unwrap()),
    ];
    for (name, change) in table {
        let files = ["in/.gitignore", "in/package.json", "in/x.log", "in/node_modules/f", "in/target/CACHEDIR.TAG"];
        let mut bench = Bench::with(&files);
        bench.write("in/.gitignore", "x.log\n");
        let mut warm = start(&mut bench);
        let rel = path(&format!("in/{name}"));
        let file = bench.at(&format!("in/{name}"));
        // Touched, so that it is looked at again; and changed between the look at what it says and the look at itself.
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        let pending = std::cell::Cell::new(true);
        let meanwhile = || {
            if pending.replace(false) {
                change(&file);
            }
            Flow::Continue
        };
        let dirty = || Dirty::new([(rel.clone(), Reach::Entry)]);
        warm.renew(&bench.request(), &dirty(), Sinks::nowhere(), &meanwhile).unwrap();
        assert!(!pending.get(), "{name}");
        bench.known = Arc::new(warm.known());
        let told = warm.renew(&bench.request(), &dirty(), Sinks::nowhere(), &|| Flow::Continue).unwrap();
        assert!(matches!(told, Renewed::Done { .. }), "{name}: {told:?}");
        compare(&bench, &mut warm, name);
    }
}

/// One edit of what no rule speaks of.
fn plain_edit(dice: &mut Dice, root: &Path) {
    let place = |dice: &mut Dice| {
        let dir = root.join(dice.of(&["", "a", "a/b", "c", "c/d"]));
        dir.join(dice.of(&["f", "g", "h", "b", "d", "n"]))
    };
    let (one, two) = (place(dice), place(dice));
    let _ = match dice.roll(9) {
        0..=2 => fs::write(&one, format!("{}", dice.roll(1000))),
        3 => fs::create_dir_all(&one).and_then(|()| fs::write(one.join("f"), "new")),
        4 => fs::rename(&one, &two),
        5 => fs::hard_link(&one, &two),
        6 => symlink("f", &one),
        7 => fs::set_permissions(&one, PermissionsExt::from_mode(0o700 + dice.roll(64) as u32)),
        _ => fs::remove_file(&one).or_else(|_| fs::remove_dir_all(&one)),
    };
}

#[test]
fn what_is_named_is_found_although_nothing_is_told() {
    let (mut compared, mut moved) = (0, 0);
    for seed in 1..=rounds() {
        let mut bench = Bench::with(&["a/b/f", "a/f", "c/f", "c/d/g", "f"]);
        let mut dice = Dice(seed * 0x9E37_79B9);
        let mut warm = start(&mut bench);
        for step in 0..40 {
            for _ in 0..=dice.roll(3) {
                plain_edit(&mut dice, bench.temp.path());
            }
            let names: Vec<&str> = (0..=dice.roll(3))
                .map(|_| dice.of(&["a", "a/b", "c", "c/d", "f", "a/f", "c/d/g", "a/b/n", ""]))
                .collect();
            let targets: Vec<Target> = names.iter().map(|name| Target { path: path(name), recursive: true }).collect();
            let dirty = warm.inspect(&bench.request(), &targets, &|| Flow::Continue).unwrap();
            moved += dirty.len();
            bench.known = Arc::new(warm.known());
            let told = warm.renew(&bench.request(), &dirty, Sinks::nowhere(), &|| Flow::Continue).unwrap();
            let when = format!("seed {seed}, step {step}, {names:?}: {dirty:?}");
            if let Renewed::Rescan(_) = told {
                warm = start(&mut bench);
                continue;
            }
            let again = warm.inspect(&bench.request(), &targets, &|| Flow::Continue).unwrap();
            // Written a moment ago, so that it is read again: nothing else is left.
            let unproven = |path: &RelPath| warm.known_of(path).is_some_and(|known| !known.proven);
            assert!(again.iter().all(|(path, _)| unproven(path)), "{when}, then {again:?}");
            bench.targets = targets.clone();
            let whole = bench.capture();
            bench.targets.clear();
            for target in targets.iter().filter(|target| warm.holds(bench.temp.path(), target)) {
                let inside = |manifest: &Manifest| -> Vec<(RelPath, ManifestEntry)> {
                    let all = manifest.iter().filter(|(path, _)| path.starts_with(&target.path));
                    all.map(|(path, entry)| (path.clone(), *entry)).collect()
                };
                assert_eq!(inside(&warm.manifest()), inside(&whole.manifest), "{when}, {:?}", target.path);
                compared += 1;
            }
        }
    }
    assert!(compared > 100 && moved > 100, "{compared} compared, {moved} moved");
}

#[test]
fn what_rules_leave_out_below_a_name_is_noticed_although_nothing_is_told() {
    for (name, named) in [("a/x.log", "a"), ("a/b/x.log", "a"), ("a/b/x.log", ""), ("a/ig/f", "a"), ("x.log", "")] {
        let mut bench = Bench::with(&["a/b/f", "a/f", "c/f"]);
        bench.write(".gitignore", "*.log\nig/\n");
        let mut warm = start(&mut bench);
        let target = Target { path: path(named), recursive: true };
        assert!(warm.holds(bench.temp.path(), &target), "{name}");
        bench.write(name, "left out");
        let dirty = warm.inspect(&bench.request(), std::slice::from_ref(&target), &|| Flow::Continue).unwrap();
        match warm.renew(&bench.request(), &dirty, Sinks::nowhere(), &|| Flow::Continue).unwrap() {
            Renewed::Done { .. } => assert!(!warm.holds(bench.temp.path(), &target), "{name}: {dirty:?}"),
            Renewed::Rescan(_) => assert!(named.is_empty(), "{name}: {dirty:?}"),
        }
    }
}

/// Has a file captured whose first page is dirty, and whose times prove what it holds.
fn mapped(bench: &mut Bench, name: &str) -> (Warm, crate::mapping::Mapping) {
    let mapping = crate::mapping::Mapping::of(&bench.at(name));
    // Earlier writes are synced, so that the time moves now.
    mapping.sync();
    mapping.store(0, b'1');
    let newest = |facts: fs::Metadata| facts.ctime() * 1_000_000_000 + facts.ctime_nsec();
    while crate::sys::clock::file_clock() < newest(mapping.facts()) + 100_000_000 {
        std::thread::yield_now();
    }
    let warm = start(bench);
    assert!(warm.known_of(&path(name)).unwrap().proven);
    (warm, mapping)
}

#[test]
fn a_store_that_moves_no_time_is_found_where_it_is_named_reported_or_looked_for() {
    let go_on = || Flow::Continue;
    for way in ["named", "below a name", "named, and the mapping is gone", "reported", "audited"] {
        let mut bench = Bench::with(&["a/f", "a/g", "b"]);
        let (mut warm, mapping) = mapped(&mut bench, "a/f");
        let before = warm.known_of(&path("a/f")).unwrap();
        mapping.store(1, b'2');
        let now = crate::worktree::probe(bench.temp.path(), &path("a/f")).unwrap().unwrap().stamp;
        if now != before.stamp {
            eprintln!("skipped: the page was written back meanwhile");
            continue;
        }
        let target = |name: &str| vec![Target { path: path(name), recursive: true }];
        let request = bench.request();
        let dirty = match way {
            "named" => warm.inspect(&request, &target("a/f"), &go_on).unwrap(),
            "below a name" => warm.inspect(&request, &target("a"), &go_on).unwrap(),
            "named, and the mapping is gone" => {
                drop(mapping);
                warm.inspect(&request, &target("a/f"), &go_on).unwrap()
            }
            "reported" => Dirty::new([(path("a/f"), Reach::Entry)]),
            _ => {
                let wrong = warm.recheck(&request, (before.stamp.mtime - 1, 0, 1), &go_on).unwrap();
                Dirty::new(wrong.into_iter().map(|path| (path, Reach::Entry)))
            }
        };
        assert_eq!(dirty, Dirty::new([(path("a/f"), Reach::Entry)]), "{way}");
        let told = warm.renew(&request, &dirty, Sinks::nowhere(), &go_on).unwrap();
        assert!(matches!(told, Renewed::Done { stats: Stats { hashed: 1, .. }, .. }), "{way}: {told:?}");
        let text = fs::read(bench.at("a/f")).unwrap();
        assert_eq!(warm.known_of(&path("a/f")).unwrap().id, ObjectId::of(ObjectKind::Blob, &text).unwrap(), "{way}");
        let quiet = warm.inspect(&bench.request(), &target("a"), &go_on).unwrap();
        assert!(quiet.is_empty(), "{way}: {quiet:?}");
    }
}

#[test]
fn what_was_written_last_is_audited_first() {
    let files: Vec<String> = (0..40).map(|n| format!("f{n:02}")).collect();
    let mut bench = Bench::with(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut warm, mapping) = mapped(&mut bench, "f39");
    let before = warm.known_of(&path("f39")).unwrap().stamp;
    mapping.store(1, b'2');
    if crate::worktree::probe(bench.temp.path(), &path("f39")).unwrap().unwrap().stamp != before {
        eprintln!("skipped: the page was written back meanwhile");
        return;
    }
    let audit =
        |warm: &mut Warm, since, from| warm.recheck(&bench.request(), (since, from, 4), &|| Flow::Continue).unwrap();
    // Turn and turn about, it is the 36th; of what was written lately, it is the first.
    assert_eq!(audit(&mut warm, i64::MAX, 0), []);
    assert_eq!(audit(&mut warm, 0, 0), [path("f39")]);
}
