//! Each kind of change, and the paths that are reported for it.

use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

use super::*;
use crate::model::change::is_rule_file;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn files() {
    let mut scene = Scene::new(&["a", "d/b", "d/e/c"]);
    fs::write(scene.at("new"), "x").unwrap();
    assert_eq!(scene.reported(), "new");
    fs::write(scene.at("d/e/c"), "longer").unwrap();
    assert_eq!(scene.reported(), "d/e/c");
    fs::File::options().write(true).open(scene.at("d/b")).unwrap().set_len(0).unwrap();
    assert_eq!(scene.reported(), "d/b");
    chmod(&scene.at("a"), 0o600);
    assert_eq!(scene.reported(), "a");
    fs::rename(scene.at("a"), scene.at("d/a")).unwrap();
    assert_eq!(scene.reported(), "a/** d/a/**");
    fs::rename(scene.at("d/a"), scene.outside("a")).unwrap();
    assert_eq!(scene.reported(), "d/a/**");
    fs::rename(scene.outside("a"), scene.at("d/e/a")).unwrap();
    assert_eq!(scene.reported(), "d/e/a/**");
    fs::remove_file(scene.at("d/e/a")).unwrap();
    assert_eq!(scene.reported(), "d/e/a");
    fs::read(scene.at("d/b")).unwrap();
    fs::read_dir(scene.at("d")).unwrap().count();
    assert_eq!(scene.reported(), "");
    let file = fs::File::options().write(true).open(scene.at("d/b")).unwrap();
    assert_eq!(scene.reported(), "");
    file.write_all_at(b"x", 0).unwrap();
    assert_eq!(scene.reported(), "d/b");
    file.write_all_at(b"y", 0).unwrap();
    assert_eq!(scene.reported(), "d/b");
    drop(file);
    assert_eq!(scene.reported(), "d/b", "the close of a writer counts: a mapping may have been written");
}

#[test]
fn a_name_that_came_as_a_file_is_watched_once_it_is_a_directory() {
    let mut scene = Scene::new(&["d/a"]);
    fs::write(scene.outside("x"), "x").unwrap();
    fs::rename(scene.outside("x"), scene.at("d/x")).unwrap();
    assert_eq!(scene.reported(), "d/x/**");
    assert_eq!(scene.watcher.stats().watches, 2);
    fs::remove_file(scene.at("d/x")).unwrap();
    fs::create_dir(scene.at("d/x")).unwrap();
    assert_eq!(scene.reported(), "d/x/**");
    assert_eq!(scene.watcher.stats().watches, 3);
    fs::write(scene.at("d/x/y"), "y").unwrap();
    assert_eq!(scene.reported(), "d/x/y");
    // The same for a file, replaced in one step.
    fs::create_dir(scene.outside("dir")).unwrap();
    fs::rename(scene.outside("dir"), scene.at("d/dir")).unwrap();
    fs::remove_file(scene.at("d/a")).unwrap();
    fs::rename(scene.at("d/dir"), scene.at("d/a")).unwrap();
    assert_eq!(scene.reported(), "d/a/** d/dir/**");
    fs::write(scene.at("d/a/z"), "z").unwrap();
    assert_eq!(scene.reported(), "d/a/z");
}

#[test]
fn directories() {
    let mut scene = Scene::new(&["d/e/f"]);
    fs::create_dir_all(scene.at("n/m")).unwrap();
    fs::write(scene.at("n/m/x"), "x").unwrap();
    assert_eq!(scene.reported(), "n/**");
    assert_eq!(scene.watcher.stats().watches, 5);
    fs::write(scene.at("n/m/y"), "x").unwrap();
    fs::write(scene.at("n/z"), "x").unwrap();
    assert_eq!(scene.reported(), "n/m/y n/z");
    chmod(&scene.at("n"), 0o700);
    assert_eq!(scene.reported(), "n/**");
    fs::remove_dir_all(scene.at("n/m")).unwrap();
    assert_eq!(scene.reported(), "n/m/**");
    assert_eq!(scene.watcher.stats().watches, 4);
    // Deleted and made again under the same name.
    fs::remove_dir_all(scene.at("d")).unwrap();
    fs::create_dir_all(scene.at("d/e")).unwrap();
    assert_eq!(scene.reported(), "d/**");
    fs::write(scene.at("d/e/f"), "x").unwrap();
    assert_eq!(scene.reported(), "d/e/f");
}

#[test]
fn directories_that_move() {
    let mut scene = Scene::new(&["d/e/f", "k/l"]);
    fs::rename(scene.at("d"), scene.at("k/d")).unwrap();
    fs::write(scene.at("k/d/e/f"), "under its new name").unwrap();
    let changes = scene.sync();
    assert!(
        changes.covers(&path("d/e/f")) && changes.covers(&path("k/d/e/f")) && !changes.covers(&path("k/l")),
        "{changes:?}"
    );
    fs::write(scene.at("k/d/e/g"), "x").unwrap();
    assert_eq!(scene.reported(), "k/d/e/g");
    // Moved back, and a new directory takes the other name: the watches follow.
    fs::rename(scene.at("k/d"), scene.at("d")).unwrap();
    fs::create_dir_all(scene.at("k/d/e")).unwrap();
    assert!(scene.sync().covers(&path("k/d/e/x")));
    fs::write(scene.at("k/d/e/x"), "x").unwrap();
    fs::write(scene.at("d/e/x"), "x").unwrap();
    assert_eq!(scene.reported(), "d/e/x k/d/e/x");
    // Out, changed there, and in again.
    fs::rename(scene.at("d"), scene.outside("d")).unwrap();
    assert_eq!(scene.reported(), "d/**");
    fs::write(scene.outside("d/e/x"), "changed outside").unwrap();
    assert_eq!(scene.reported(), "");
    assert_eq!(scene.watcher.stats().watches, 4);
    fs::rename(scene.outside("d"), scene.at("in")).unwrap();
    assert_eq!(scene.reported(), "in/**");
    fs::write(scene.at("in/e/x"), "x").unwrap();
    assert_eq!(scene.reported(), "in/e/x");
    // Two that change places.
    fs::rename(scene.at("in"), scene.at("t")).unwrap();
    fs::rename(scene.at("k"), scene.at("in")).unwrap();
    fs::rename(scene.at("t"), scene.at("k")).unwrap();
    let changes = scene.sync();
    assert!(changes.covers(&path("in/d/e/x")) && changes.covers(&path("k/e/x")), "{changes:?}");
    fs::write(scene.at("in/d/e/x"), "x").unwrap();
    fs::write(scene.at("k/e/x"), "x").unwrap();
    assert_eq!(scene.reported(), "in/d/e/x k/e/x");
}

#[test]
fn links_are_not_followed() {
    let mut scene = Scene::new(&["d/f", "e/f"]);
    fs::create_dir_all(scene.outside("o/p")).unwrap();
    symlink(scene.outside("o"), scene.at("out")).unwrap();
    symlink("d", scene.at("in")).unwrap();
    assert_eq!(scene.reported(), "in out");
    fs::write(scene.outside("o/p/x"), "x").unwrap();
    fs::write(scene.outside("o/x"), "x").unwrap();
    assert_eq!(scene.reported(), "");
    fs::write(scene.at("in/f"), "through the link").unwrap();
    assert_eq!(scene.reported(), "d/f");
    // A directory is swapped for a link to another, and back.
    fs::rename(scene.at("e"), scene.outside("e")).unwrap();
    symlink("d", scene.at("e")).unwrap();
    assert_eq!(scene.reported(), "e/**");
    fs::write(scene.at("d/f"), "x").unwrap();
    assert_eq!(scene.reported(), "d/f");
    fs::remove_file(scene.at("e")).unwrap();
    fs::rename(scene.outside("e"), scene.at("e")).unwrap();
    assert_eq!(scene.reported(), "e/**");
    fs::write(scene.at("e/f"), "x").unwrap();
    assert_eq!(scene.reported(), "e/f");
}

#[test]
fn excluded_directories_have_no_watch_and_changed_rules_are_reported() {
    let mut scene = Scene::new(&["node_modules/a/b", "s/closed/x", "s/t", ".git/index", ".git/info/exclude", ".git/x"]);
    // The root, `s`, `.git` and `.git/info`.
    assert_eq!(scene.watcher.stats().watches, 4);
    fs::write(scene.at("node_modules/a/c"), "x").unwrap();
    fs::write(scene.at(".git/x"), "y").unwrap();
    assert_eq!(scene.reported(), "");
    fs::write(scene.at("s/.gitignore"), "t").unwrap();
    let Changes::Paths(dirty) = scene.sync() else { panic!() };
    assert_eq!(dirty.rule_files().collect::<Vec<_>>(), [&path("s/.gitignore")]);
    assert!(!dirty.covers(&path("s/t")) && dirty.with_ruled().covers(&path("s/t")));
    fs::write(scene.at(".git/index.lock"), "y").unwrap();
    fs::rename(scene.at(".git/index.lock"), scene.at(".git/index")).unwrap();
    let Changes::Paths(dirty) = scene.sync() else { panic!() };
    assert_eq!(dirty.rule_files().collect::<Vec<_>>(), [&path(".git/index")]);
    assert!(is_rule_file(&path(".git/info/exclude")));
    fs::write(scene.at(".git/info/exclude"), "t").unwrap();
    let Changes::Paths(dirty) = scene.sync() else { panic!() };
    assert!(!dirty.covers(&path("s/t")) && dirty.with_ruled().covers(&path("s/t")));
    // New rules open what was closed, and close what was open.
    let other = |path: &RelPath| path.name() != b"s";
    scene.watcher.rewatch(&RelPath::root(), &other, soon());
    let changes = scene.watcher.sync(scene.clock, &other, soon());
    assert_eq!(changes.1, Changes::Paths(Dirty::default()), "the caller of `rewatch` looks by itself");
    fs::write(scene.at("node_modules/a/c"), "x").unwrap();
    fs::write(scene.at("s/t"), "x").unwrap();
    let (_, changes) = scene.watcher.sync(changes.0, &other, soon());
    assert_eq!(changes, Changes::Paths(Dirty::new([(path("node_modules/a/c"), Reach::Entry)])));
}

#[test]
fn paths_whose_changes_give_no_event_are_always_dirty() {
    let mut scene = Scene::new(&["h", "base.db"]);
    fs::hard_link(scene.at("h"), scene.outside("h")).unwrap();
    fs::write(scene.outside("h"), "through another name").unwrap();
    assert_eq!(scene.reported(), "", "a known limit: neither the new name nor the write is reported");
    scene.watcher.set_always_dirty([path("h")]);
    assert_eq!((scene.reported(), scene.reported()), ("h".to_owned(), "h".to_owned()));
    scene.watcher.set_always_dirty([]);
    fs::write(scene.at("base.db-wal"), "x").unwrap();
    assert_eq!(scene.reported(), "base.db base.db-wal");
}

#[test]
fn clocks_may_be_asked_again_until_a_later_one_is() {
    let mut scene = Scene::new(&["a"]);
    let first = scene.clock;
    fs::write(scene.at("a"), "x").unwrap();
    assert_eq!(scene.reported(), "a");
    scene.clock = first;
    assert_eq!(scene.reported(), "a");
    assert_eq!(scene.reported(), "");
    scene.clock = first;
    assert_eq!(scene.sync(), Changes::Everything(Why::Forgotten));
    let other = Scene::new(&[]);
    scene.clock = other.clock;
    assert_eq!(scene.sync(), Changes::Everything(Why::OtherWatcher));
    assert_eq!(scene.reported(), "");
}

/// A mapping that is written gives an event when its last close comes, and not before.
#[test]
fn mappings_give_an_event_when_they_are_closed() {
    let mut scene = Scene::new(&["m"]);
    let script = "import mmap, sys\n\
        file = open(sys.argv[1], 'r+b')\n\
        memory = mmap.mmap(file.fileno(), 0)\n\
        memory[0:1] = b'x'\n\
        print('written', flush=True)\n\
        sys.stdin.read()\n";
    let started = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(scene.at("m"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut writer) = started else {
        eprintln!("skipped: no python3 here");
        return;
    };
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(writer.stdout.take().unwrap()), &mut line).unwrap();
    assert_eq!(line, "written\n");
    assert_eq!(fs::read(scene.at("m")).unwrap(), b"x");
    assert_eq!(scene.reported(), "", "a known limit");
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert_eq!(scene.reported(), "m");
}

/// A directory may move into a new parent while that parent gets its watch. For a moment the directory then has one watch under
/// two names. Removing the watch of the old name must not remove that of the new one.
#[test]
fn directories_that_move_while_watches_are_placed() {
    type Moves = &'static [(&'static str, &'static str)];
    let table: &[(Moves, &[&str])] = &[
        (&[("a/x", "e/b")], &["e/b/f", "e/b/y/f", "e/b/y/z/f"]),
        (&[("a/x/y", "e/c"), ("a/x", "e/b")], &["e/b/f", "e/c/f", "e/c/z/f"]),
        (&[("a/x/y/z", "e/a"), ("a/x/y", "e/d"), ("a/x", "e/b")], &["e/a/f", "e/b/f", "e/d/f"]),
        (&[("a/x", "e/b"), ("e/b", "a/x")], &["a/x/f", "a/x/y/f"]),
        (&[("a/x", "e/b"), ("g", "a/x")], &["e/b/f", "a/x/f", "e/b/y/f"]),
        (&[("a/x", "e/b"), ("e/b/y", "a/x")], &["e/b/f", "a/x/f", "a/x/z/f"]),
    ];
    for (moves, later) in table {
        let mut scene = Scene::new(&["a/x/f", "a/x/y/f", "a/x/y/z/f", "g/f"]);
        fs::create_dir(scene.at("e")).unwrap();
        let is_done = std::cell::Cell::new(false);
        let root = scene.at("");
        let racing = |path: &RelPath| {
            if path.to_path() == Path::new("e") && !is_done.replace(true) {
                moves.iter().for_each(|(from, to)| fs::rename(root.join(from), root.join(to)).unwrap());
            }
            rules(path)
        };
        scene.clock = scene.watcher.sync(scene.clock, &racing, soon()).0;
        assert!(is_done.get(), "the moves were not made");
        scene.sync();
        scene.sync();
        for file in *later {
            fs::write(scene.at(file), "changed").unwrap();
            let reported = scene.reported();
            assert_eq!(reported, *file, "after {moves:?}");
        }
    }
}

/// The kernel reports the end of a directory when its last user closes it, perhaps after another directory has taken the name.
#[test]
fn a_late_removal_event_leaves_the_successor_watched() {
    let mut scene = Scene::new(&["a/b/f", "a/b/c/f", "a/d/f"]);
    for (name, syncs) in [("a/n0", 0), ("a/n1", 1), ("a/n2", 2), ("a/b", 0)] {
        fs::create_dir_all(scene.at(name).join("c")).unwrap();
        scene.sync();
        (0..syncs).for_each(|_| drop(scene.sync()));
        scene.watcher.shared.lock().gone.insert(path(name));
        assert_eq!(scene.reported(), format!("{name}/**"));
        for file in [format!("{name}/f"), format!("{name}/c/f"), "a/d/f".to_owned()] {
            fs::write(scene.at(&file), "changed").unwrap();
            assert_eq!(scene.reported(), file);
        }
    }
    // The same with a real event: a directory that this process holds open is replaced, and closed later.
    fs::create_dir(scene.at("empty")).unwrap();
    scene.sync();
    let held = fs::File::open(scene.at("empty")).unwrap();
    fs::rename(scene.at("a/b"), scene.at("empty")).unwrap();
    scene.sync();
    drop(held);
    scene.sync();
    fs::write(scene.at("empty/c/f"), "changed again").unwrap();
    assert_eq!(scene.reported(), "empty/c/f");
}
