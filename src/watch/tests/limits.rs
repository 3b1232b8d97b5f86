//! Changes that cannot be reported path by path are reported as everything, or as whole subtrees. The watcher keeps
//! working.

use super::*;

#[test]
fn an_overflow_is_everything_and_the_next_answer_is_exact() {
    let mut scene = Scene::new(&["d/a"]);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    // Nothing is read while this is held: notify's thread waits for it with the first event.
    let shared = Arc::clone(&scene.watcher.shared);
    let stalled = shared.lock();
    let (one, two) = (fs::File::create(scene.at("d/a")).unwrap(), fs::File::create(scene.at("d/b")).unwrap());
    for _ in 0..limit {
        // By turns: the kernel drops an event that equals the last one.
        std::os::unix::fs::FileExt::write_all_at(&one, b"x", 0).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&two, b"x", 0).unwrap();
    }
    fs::create_dir_all(scene.at("n/m")).unwrap();
    fs::write(scene.at("n/m/lost"), "x").unwrap();
    drop(stalled);
    assert_eq!(scene.sync(), Changes::Everything(Why::Overflow));
    let stats = scene.watcher.stats();
    assert_eq!((stats.overflows, stats.restarts, stats.watches), (1, 1, 4));
    drop((one, two));
    scene.sync();
    fs::write(scene.at("n/m/lost"), "y").unwrap();
    assert_eq!(scene.reported(), "n/m/lost");
}

#[test]
fn over_the_limit_directories_are_always_dirty() {
    let mut scene = Scene::with(&["a"], |options| options.max_watches = 3);
    for dir in ["d", "d/e", "d/e/f", "g"] {
        fs::create_dir(scene.at(dir)).unwrap();
    }
    scene.sync();
    let stats = scene.watcher.stats();
    assert_eq!(stats.watches, 3);
    assert!(stats.uncovered.iter().all(|(_, why)| *why == Uncovered::Limit), "{stats:?}");
    for _ in 0..2 {
        let changes = scene.sync();
        for file in ["d/e/f/x", "d/e/x", "g/x"] {
            let dir = path(file).parent().unwrap();
            let watched = stats.uncovered.iter().all(|(top, _)| !dir.starts_with(top));
            assert_eq!(changes.covers(&path(file)), !watched, "{file} {changes:?}");
        }
        assert!(!changes.covers(&path("a")));
    }
    fs::remove_dir_all(scene.at("d")).unwrap();
    fs::remove_dir_all(scene.at("g")).unwrap();
    scene.sync();
    assert_eq!((scene.reported(), scene.watcher.stats().uncovered), (String::new(), vec![]));
    fs::create_dir(scene.at("h")).unwrap();
    assert_eq!(scene.reported(), "h/**");
    fs::write(scene.at("h/x"), "x").unwrap();
    assert_eq!(scene.reported(), "h/x");
}

#[test]
fn watches_that_miss_the_deadline_are_placed_later_and_nothing_is_lost() {
    // More directories below one than are removed one by one.
    let files: Vec<String> = (0..900).map(|n| format!("d/e{n}/f")).collect();
    let mut scene = Scene::with(&files.iter().map(String::as_str).collect::<Vec<_>>(), |options| {
        options.start_within = Duration::from_nanos(1);
    });
    // The first sync had time. Now all are looked at again, always without time for more than one batch.
    let watches = scene.watcher.stats().watches;
    assert_eq!(watches, 902);
    assert!(scene.watcher.places.as_ref().unwrap().patience() < 900);
    scene.watcher.rewatch(&RelPath::root(), &rules, Instant::now());
    let (clock, changes) = scene.watcher.sync(scene.clock, &rules, soon());
    scene.clock = clock;
    assert!(changes.covers(&path("d/e0/f")) && matches!(changes, Changes::Paths(_)), "{changes:?}");
    scene.watcher.rewatch(&RelPath::root(), &rules, Instant::now());
    let mut rounds = 0;
    while scene.watcher.settle(&rules, Instant::now()) {
        rounds += 1;
        assert!(rounds < 1000);
    }
    scene.sync();
    fs::write(scene.at("d/e1/f"), "y").unwrap();
    assert_eq!(scene.reported(), "d/e1/f");
    let stats = scene.watcher.stats();
    assert_eq!((stats.watches, stats.restarts), (902, 0));
}

#[test]
fn without_a_watch_for_the_root_there_is_no_watcher() {
    let temp = tempfile::tempdir().unwrap();
    let mut options = Options::new(temp.path().join("cookies"));
    options.max_watches = 0;
    let refused = |root: &Path, options: &Options| Watcher::start(root, &rules, options.clone()).err().unwrap();
    assert_eq!(refused(temp.path(), &options), Refusal::Root(Uncovered::Limit));
    options.max_watches = 10;
    assert_eq!(refused(Path::new("/proc/self"), &options), Refusal::Foreign("proc"));
    assert!(matches!(refused(&temp.path().join("none"), &options), Refusal::Unusable(_)));
}

#[test]
fn a_removed_root_is_reported_and_a_new_one_is_watched() {
    let mut scene = Scene::new(&["d/a"]);
    fs::rename(scene.at(""), scene.outside("elsewhere")).unwrap();
    assert_eq!(scene.sync(), Changes::Everything(Why::RootMoved));
    assert_eq!(scene.sync(), Changes::Everything(Why::RootMoved));
    fs::create_dir_all(scene.at("d")).unwrap();
    assert!(matches!(scene.sync(), Changes::Everything(_)));
    fs::write(scene.outside("elsewhere/d/a"), "x").unwrap();
    assert_eq!(scene.reported(), "");
    fs::write(scene.at("d/a"), "x").unwrap();
    assert_eq!(scene.reported(), "d/a");
    fs::remove_dir_all(scene.at("")).unwrap();
    assert_eq!(scene.sync(), Changes::Everything(Why::RootMoved));
}

#[test]
fn a_parent_of_the_root_that_moves_is_noticed() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("p/w")).unwrap();
    let options = Options::new(temp.path().join("cookies"));
    let mut watcher = Watcher::start(&temp.path().join("p/w"), &rules, options).unwrap();
    let (clock, _) = watcher.sync(Clock::default(), &rules, soon());
    fs::rename(temp.path().join("p"), temp.path().join("q")).unwrap();
    fs::create_dir_all(temp.path().join("p/w")).unwrap();
    let (clock, changes) = watcher.sync(clock, &rules, soon());
    assert_eq!(changes, Changes::Everything(Why::RootMoved));
    fs::write(temp.path().join("p/w/x"), "x").unwrap();
    let (_, changes) = watcher.sync(clock, &rules, soon());
    assert_eq!(changes, Changes::Paths(Dirty::new([(path("x"), Reach::Entry)])));
}

#[test]
fn a_missed_deadline_is_everything_and_loses_nothing() {
    let mut scene = Scene::new(&["a"]);
    fs::write(scene.at("a"), "x").unwrap();
    let before = scene.clock;
    // No event comes while this is held.
    let shared = Arc::clone(&scene.watcher.shared);
    let (held, hold) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let stalling = std::thread::spawn(move || {
        // Events of this instance are ignored for now, as if the kernel were late.
        let mut pending = shared.lock();
        pending.instance += 1;
        drop(pending);
        held.send(()).unwrap();
        released.recv().unwrap();
        shared.lock().instance -= 1;
    });
    hold.recv().unwrap();
    let deadline = Instant::now() + Duration::from_millis(30);
    let (late, changes) = scene.watcher.sync(scene.clock, &rules, deadline);
    assert_eq!(changes, Changes::Everything(Why::Late));
    release.send(()).unwrap();
    stalling.join().unwrap();
    fs::write(scene.at("b"), "x").unwrap();
    scene.clock = before;
    assert!(scene.sync().covers(&path("b")));
    assert_ne!(late, scene.clock);
}

#[test]
fn lost_cookies_are_made_again() {
    let mut scene = Scene::new(&["a"]);
    for entry in fs::read_dir(scene.outside("cookies")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let changes = scene.sync();
    assert_eq!(changes, Changes::Everything(Why::NoCookie));
    assert_eq!(scene.reported(), "");
    fs::remove_dir_all(scene.outside("cookies")).unwrap();
    assert_eq!(scene.sync(), Changes::Everything(Why::NoCookie));
    fs::write(scene.at("a"), "x").unwrap();
    assert_eq!(scene.reported(), "a");
    drop(scene.watcher);
    assert_eq!(fs::read_dir(scene.temp.path().join("cookies")).unwrap().count(), 0);
}

#[test]
fn more_paths_than_are_kept_are_everything() {
    let mut scene = Scene::with(&["a"], |options| options.max_paths = 10);
    for n in 0..11 {
        fs::write(scene.at(&format!("f{n}")), "x").unwrap();
    }
    assert_eq!(scene.sync(), Changes::Everything(Why::TooManyPaths));
    assert_eq!(scene.watcher.stats().dirty, 0);
    fs::write(scene.at("a"), "x").unwrap();
    assert_eq!(scene.reported(), "a");
}

#[test]
fn changes_before_a_late_watch_are_reported() {
    let mut scene = Scene::new(&["a"]);
    fs::create_dir_all(scene.at("k/l")).unwrap();
    // The cookie is in time, and so is one round of watches: that of `k`.
    scene.watcher.cookies.wait(&scene.watcher.shared, soon(), soon()).unwrap();
    scene.watcher.reconcile(&rules, Instant::now());
    let (clock, changes) = scene.watcher.answer(scene.clock, Ok(()));
    assert!(changes.covers(&path("k/l/x")));
    scene.clock = clock;
    fs::write(scene.at("k/l/x"), "before its watch").unwrap();
    assert_eq!((scene.reported(), scene.watcher.stats().watches), ("k/l/**".to_owned(), 3));
    fs::write(scene.at("k/l/x"), "after it").unwrap();
    assert_eq!(scene.reported(), "k/l/x");
    // Rules that changed, and no time to follow them.
    fs::create_dir_all(scene.at("closed/m")).unwrap();
    scene.sync();
    scene.watcher.rewatch(&path("closed"), &|_| true, Instant::now());
    fs::write(scene.at("closed/m/x"), "before its watch").unwrap();
    let (clock, changes) = scene.watcher.sync(scene.clock, &|_| true, soon());
    assert!(changes.covers(&path("closed/m/x")));
    fs::write(scene.at("closed/m/x"), "after it").unwrap();
    let (_, changes) = scene.watcher.sync(clock, &|_| true, soon());
    assert_eq!(changes, Changes::Paths(Dirty::new([(path("closed/m/x"), Reach::Entry)])));
}

/// Rules are asked between the listing of a directory and the watches of its entries: the moment of the races.
#[test]
fn changes_while_watches_are_placed_are_reported() {
    let mut scene = Scene::new(&["x"]);
    fs::create_dir_all(scene.at("a/s")).unwrap();
    let (root, outside, shared) = (scene.at(""), scene.outside("o"), Arc::clone(&scene.watcher.shared));
    fs::create_dir(&outside).unwrap();
    let done = std::cell::Cell::new(false);
    let swapping = |asked: &RelPath| {
        if *asked == path("a/s") && !done.replace(true) {
            // `a` is listed and watched. Another directory takes its name, and its event comes before the watch of
            // `a/s` is placed.
            fs::create_dir(root.join("a/late")).unwrap();
            fs::rename(root.join("a"), outside.join("1")).unwrap();
            fs::create_dir_all(root.join("a/s")).unwrap();
            while !shared.lock().came.contains(&path("a")) {
                std::thread::yield_now();
            }
        }
        true
    };
    let (clock, changes) = scene.watcher.sync(scene.clock, &swapping, soon());
    assert!(done.get() && changes.covers(&path("a/s/f")), "{changes:?}");
    // A third takes the name: the watch of the second's `s` must not pass for that of the third's.
    fs::rename(scene.at("a"), scene.outside("o/2")).unwrap();
    fs::create_dir_all(scene.at("a/s")).unwrap();
    let (clock, changes) = scene.watcher.sync(clock, &swapping, soon());
    assert!(changes.covers(&path("a/s/f")), "{changes:?}");
    fs::write(scene.at("a/s/f"), "x").unwrap();
    fs::write(scene.outside("o/1/s/f"), "x").unwrap();
    fs::write(scene.outside("o/2/s/f"), "x").unwrap();
    let (clock, changes) = scene.watcher.sync(clock, &swapping, soon());
    assert!(changes.covers(&path("a/s/f")), "{changes:?}");
    // A directory made after its parent was listed.
    fs::create_dir_all(scene.at("b/s")).unwrap();
    let making = |asked: &RelPath| {
        if *asked == path("b/s") {
            fs::create_dir_all(root.join("b/new")).unwrap();
        }
        true
    };
    let (clock, _) = scene.watcher.sync(clock, &making, soon());
    fs::write(scene.at("b/new/x"), "x").unwrap();
    let (_, changes) = scene.watcher.sync(clock, &making, soon());
    assert!(changes.covers(&path("b/new/x")), "{changes:?}");
}

/// Found by the soak test: the watch was placed on a file, which is a directory when it is listed.
#[test]
fn a_file_that_becomes_a_directory_while_watches_are_placed_is_watched() {
    let mut scene = Scene::new(&["x"]);
    fs::create_dir_all(scene.at("p/c")).unwrap();
    fs::rename(scene.at("x"), scene.at("q")).unwrap();
    let file = scene.at("q");
    let swapping = |asked: &RelPath| {
        // Both `p` and `q` have been given watches; `p` is listed first.
        if *asked == path("p/c") && file.is_file() {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
        }
        true
    };
    let (clock, _) = scene.watcher.sync(scene.clock, &swapping, soon());
    assert!(file.is_dir());
    let (clock, changes) = scene.watcher.sync(clock, &swapping, soon());
    assert!(changes.covers(&path("q/x")), "{changes:?}");
    fs::write(scene.at("q/x"), "x").unwrap();
    let (_, changes) = scene.watcher.sync(clock, &swapping, soon());
    assert!(changes.covers(&path("q/x")), "{changes:?}");
}

#[test]
fn an_unmounted_file_system_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let place = temp.path().join("w/m");
    fs::create_dir_all(&place).unwrap();
    let run = |line: &[&str]| {
        let done = std::process::Command::new(line[0]).args(&line[1..]).arg(&place).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !run(&["mount", "-t", "tmpfs", "none"]) {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    fs::create_dir(place.join("d")).unwrap();
    let options = Options::new(temp.path().join("cookies"));
    let started = Watcher::start(&temp.path().join("w"), &rules, options);
    let answers = started.map(|mut watcher| {
        let (clock, _) = watcher.sync(Clock::default(), &rules, soon());
        fs::write(place.join("d/x"), "x").unwrap();
        let (clock, inside) = watcher.sync(clock, &rules, soon());
        let gone = run(&["umount"]);
        let (clock, changes) = watcher.sync(clock, &rules, soon());
        fs::write(place.join("x"), "where it was mounted").unwrap();
        (gone, inside, changes, watcher.sync(clock, &rules, soon()).1)
    });
    let (gone, inside, changes, after) = answers.unwrap();
    assert!(gone && inside.covers(&path("m/d/x")), "{inside:?}");
    assert_eq!(changes, Changes::Everything(Why::Mounts));
    assert_eq!(after, Changes::Paths(Dirty::new([(path("m/x"), Reach::Entry)])));
}

#[test]
fn a_file_system_mounted_over_a_directory_is_reported() {
    let mut scene = Scene::new(&["m/d/e"]);
    fs::write(scene.at("m/old"), "hidden by the mount").unwrap();
    scene.sync();
    let run = |line: &[&str]| {
        let done = std::process::Command::new(line[0]).args(&line[1..]).arg(scene.at("m")).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !run(&["mount", "-t", "tmpfs", "none"]) {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    let place = scene.at("m");
    fs::write(place.join("x"), "on the mounted side").unwrap();
    let changes = scene.sync();
    fs::write(place.join("y"), "an event tells of it").unwrap();
    let after = scene.reported();
    let unmounted = std::process::Command::new("umount").arg(&place).status().is_ok_and(|status| status.success());
    assert!(unmounted);
    assert_eq!((changes, after.as_str()), (Changes::Everything(Why::Mounts), "m/y"));
    assert_eq!(scene.sync(), Changes::Everything(Why::Mounts));
    fs::write(scene.at("m/d/x"), "x").unwrap();
    assert_eq!(scene.reported(), "m/d/x");
}

#[test]
fn a_directory_mounted_twice_is_uncovered() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("w");
    fs::create_dir_all(root.join("d/e")).unwrap();
    fs::create_dir_all(root.join("twin")).unwrap();
    let mount = |arguments: &[&std::ffi::OsStr], program: &str| {
        std::process::Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let (from, to) = (root.join("d"), root.join("twin"));
    if !mount(&["--bind".as_ref(), from.as_ref(), to.as_ref()], "mount") {
        eprintln!("skipped: no bind mounts here");
        return;
    }
    let mut watcher = Watcher::start(&root, &rules, Options::new(temp.path().join("cookies"))).unwrap();
    let (clock, _) = watcher.sync(Clock::default(), &rules, soon());
    fs::write(root.join("twin/e/x"), "x").unwrap();
    let (clock, changes) = watcher.sync(clock, &rules, soon());
    let stats = watcher.stats();
    assert!(mount(&[to.as_ref()], "umount"));
    assert!(changes.covers(&path("d/e/x")) && changes.covers(&path("twin/e/x")), "{changes:?} {stats:?}");
    assert_eq!(stats.uncovered, [(path("d"), Uncovered::Twin), (path("twin"), Uncovered::Twin)]);
    fs::write(root.join("twin/x"), "no longer below the mount").unwrap();
    let (_, changes) = watcher.sync(clock, &rules, soon());
    assert!(changes.covers(&path("twin/x")), "{changes:?}");
}

#[test]
fn many_removed_directories_are_everything() {
    let mut scene = Scene::new(&["a"]);
    (0..1000).for_each(|n| fs::create_dir_all(scene.at(&format!("d{}/e{n}", n % 10))).unwrap());
    scene.sync();
    assert_eq!(scene.reported(), "");
    assert_eq!(scene.watcher.stats().watches, 1011);
    for n in 0..9 {
        fs::remove_dir_all(scene.at(&format!("d{n}"))).unwrap();
    }
    assert_eq!(scene.sync(), Changes::Everything(Why::ManyGone));
    assert_eq!(scene.watcher.stats().watches, 102);
    fs::write(scene.at("d9/e9/x"), "x").unwrap();
    assert_eq!(scene.reported(), "d9/e9/x");
}
