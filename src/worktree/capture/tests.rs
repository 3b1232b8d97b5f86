use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::sink::HashOnly;

/// A workspace on disk and the state between two captures.
struct Work {
    dir: tempfile::TempDir,
    known: BTreeMap<RelPath, Known>,
    targets: Vec<Target>,
    never: Vec<PathBuf>,
    limits: Limits,
    exclude: Vec<String>,
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

impl Work {
    fn new(files: &[(&str, &str)]) -> Work {
        let work = Work {
            dir: tempfile::tempdir().unwrap(),
            known: BTreeMap::new(),
            targets: vec![],
            never: vec![],
            limits: Limits { file_bytes: 1000, files: 1_000_000, line_bytes: 1 },
            exclude: vec![],
        };
        files.iter().for_each(|(name, content)| work.write(name, content));
        work
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let file = self.at(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn capture(&mut self) -> Capture {
        let sticky = BTreeSet::new();
        let request = Request {
            root: self.dir.path(),
            known: &self.known,
            sticky: &sticky,
            targets: &self.targets,
            unlimited_targets: false,
            extent: Extent::Tree,
            limits: self.limits,
            secrets: Secrets::OnTarget,
            exclude: &self.exclude,
            never: &self.never,
            defaults: None,
        };
        let capture = capture(&request, &HashOnly, &|| Flow::Continue).unwrap();
        self.known = capture.known.clone();
        capture
    }

    /// Names of captured files and links.
    fn files(&mut self) -> Vec<String> {
        let capture = self.capture();
        let files = capture.manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir);
        files.map(|(path, _)| path.display()).collect()
    }
}

fn skips(capture: &Capture) -> Vec<(String, &'static str)> {
    capture.coverage.skipped.iter().map(|(path, why)| (path.display(), why.as_str())).collect()
}

#[test]
fn kinds_modes_links_and_empty_directories() {
    let mut work = Work::new(&[("a/file", "x"), ("a/run", "#!/bin/sh")]);
    fs::set_permissions(work.at("a/run"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(work.at("a/file"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(work.at("empty")).unwrap();
    symlink("/nowhere/at all", work.at("link")).unwrap();
    let capture = work.capture();
    let entry = |name: &str| *capture.manifest.get(&path(name)).unwrap();
    assert_eq!((entry("a/run").perm, entry("a/file").perm), (0o4750, 0o600));
    assert_eq!(entry("empty").kind, EntryKind::Dir);
    assert_eq!(entry("link").id, ObjectId::of(ObjectKind::Blob, b"/nowhere/at all").unwrap());
    assert_eq!(entry("link").kind, EntryKind::Link);
}

#[test]
fn ignore_rules_and_what_is_captured_all_the_same() {
    let mut work = Work::new(&[
        (".gitignore", "*.log\n/out/\n"),
        ("keep.txt", ""),
        ("a.log", ""),
        ("out/x", ""),
        ("sub/.gitignore", "*\n"),
        ("sub/hidden", ""),
        (".env", "SECRET=1"),
        (".env.example", "SECRET="),
    ]);
    let capture = work.capture();
    assert_eq!(skips(&capture), [(".env".to_owned(), "secret")]);
    assert_eq!(work.files(), [".env.example", ".gitignore", "keep.txt", "sub/.gitignore"]);
    work.exclude = vec!["keep.txt".into()];
    work.known.clear();
    assert_eq!(work.files(), [".env.example", ".gitignore", "sub/.gitignore"]);
}

#[test]
fn a_path_once_captured_stays_captured_while_it_exists() {
    let mut work = Work::new(&[("data/one", "1"), ("data/deep/two", "2"), ("keep", "")]);
    assert_eq!(work.files().len(), 3);
    work.write(".gitignore", "data/\n");
    work.write("data/new", "not captured");
    assert_eq!(work.files(), [".gitignore", "data/deep/two", "data/one", "keep"]);
    fs::remove_file(work.at("data/one")).unwrap();
    assert_eq!(work.files(), [".gitignore", "data/deep/two", "keep"]);
}

#[test]
fn directories_known_by_their_maker_are_left_out() {
    let mut work = Work::new(&[
        ("package.json", "{}"),
        ("node_modules/x/index.js", ""),
        ("rust/Cargo.toml", ""),
        ("rust/target/debug/bin", ""),
        ("plain/target/notes", ""),
        ("plain/node_modules/mine", ""),
        ("venv/pyvenv.cfg", ""),
        ("venv/lib/x.py", ""),
        ("build/out.bin", ""),
        ("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        ("cache/x", ""),
        ("mine/CACHEDIR.TAG", "something else"),
    ]);
    let expected = [
        "build/out.bin",
        "mine/CACHEDIR.TAG",
        "package.json",
        "plain/node_modules/mine",
        "plain/target/notes",
        "rust/Cargo.toml",
    ];
    assert_eq!(work.files(), expected);
}

#[test]
fn caps_special_files_and_own_store_are_listed() {
    let mut work = Work::new(&[("big", &"x".repeat(1001)), ("store/objects/x", ""), ("ok", ""), (".piton-tmp-1", "")]);
    rustix::fs::mknodat(rustix::fs::CWD, work.at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    work.never = vec![work.at("store")];
    symlink(work.at("store"), work.at("link-to-store")).unwrap();
    let capture = work.capture();
    let expected = [("big", "too-large"), ("fifo", "special"), ("store", "store")];
    assert_eq!(skips(&capture), expected.map(|(name, why)| (name.to_owned(), why)));
    assert!(capture.coverage.is_partial());
    assert_eq!(work.files(), ["link-to-store", "ok"]);
    work.write("big", "small now");
    assert_eq!(work.files(), ["big", "link-to-store", "ok"]);
    work.write("big", &"y".repeat(2000));
    assert_eq!(skips(&work.capture())[0], ("big".to_owned(), "too-large"));
}

#[test]
fn the_count_guard_prefers_what_was_captured_before() {
    let mut work = Work::new(&[("z/old", "")]);
    work.capture();
    for name in ["a/1", "a/2", "b/deep/3"] {
        work.write(name, "");
    }
    work.limits.files = 2;
    let capture = work.capture();
    assert_eq!(skips(&capture), [("a/2".to_owned(), "over-count"), ("b".to_owned(), "over-count")]);
    assert_eq!(work.files(), ["a/1", "z/old"]);
}

#[test]
fn targets_are_captured_whatever_the_rules_say() {
    let mut work = Work::new(&[
        (".gitignore", "ignored/\n"),
        ("ignored/deep/x", ""),
        ("ignored/y", ""),
        (".env", "S=1"),
        ("big", &"x".repeat(2000)),
        ("package.json", ""),
        ("node_modules/z", ""),
    ]);
    let target = |name: &str, recursive| Target { path: path(name), recursive };
    work.targets =
        vec![target("node_modules", true), target("ignored", true), target(".env", false), target("big", false)];
    let capture = work.capture();
    assert_eq!(capture.stats.targeted, 4);
    assert!(capture.coverage.skipped.is_empty(), "{:?}", capture.coverage.skipped);
    assert!(capture.manifest.contains(&path("ignored/deep/x")) && !capture.manifest.contains(&path("node_modules/z")));
    work.targets.clear();
    assert_eq!(work.files(), [".gitignore", "package.json"]);
}

#[test]
fn stamps_prove_unchanged_files_and_nothing_else() {
    let mut work = Work::new(&[("a", "1"), ("b", "2")]);
    // Files of the same moment are racy; make them old.
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    for name in ["a", "b"] {
        fs::File::options().write(true).open(work.at(name)).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(work.capture().stats.hashed, 2);
    // Their ctime is still now: at first they are read again, whatever their mtime says.
    let deadline = Instant::now() + std::time::Duration::from_secs(10);
    while work.capture().stats.reused < 2 {
        assert!(Instant::now() < deadline, "stamps never became proof");
    }
    fs::write(work.at("a"), "3").unwrap();
    fs::File::options().write(true).open(work.at("a")).unwrap().set_modified(old).unwrap();
    let capture = work.capture();
    assert_eq!((capture.stats.hashed, capture.stats.reused), (1, 1));
    assert_eq!(capture.manifest.get(&path("a")).unwrap().id, ObjectId::of(ObjectKind::Blob, b"3").unwrap());
}

#[test]
fn links_are_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "outside").unwrap();
    let mut work = Work::new(&[("dir/f", "inside")]);
    work.capture();
    fs::remove_dir_all(work.at("dir")).unwrap();
    symlink(outside.path(), work.at("dir")).unwrap();
    let capture = work.capture();
    assert_eq!(capture.manifest.get(&path("dir")).unwrap().kind, EntryKind::Link);
    assert!(!capture.manifest.contains(&path("dir/f")));
}

#[test]
fn many_files_are_read_by_threads_in_order() {
    let mut work = Work::new(&[]);
    for i in 0..200 {
        work.write(&format!("d{}/f{i}", i % 7), &format!("content {i}"));
    }
    let capture = work.capture();
    assert_eq!(capture.stats.hashed, 200);
    for i in 0..200 {
        let id = ObjectId::of(ObjectKind::Blob, format!("content {i}").as_bytes()).unwrap();
        assert_eq!(capture.manifest.get(&path(&format!("d{}/f{i}", i % 7))).unwrap().id, id);
    }
}

#[test]
fn a_capture_can_be_stopped() {
    let work = Work::new(&[("a", "1")]);
    let (known, sticky) = (BTreeMap::new(), BTreeSet::new());
    let request = Request {
        root: work.dir.path(),
        known: &known,
        sticky: &sticky,
        targets: &[],
        unlimited_targets: false,
        extent: Extent::Tree,
        limits: work.limits,
        secrets: Secrets::OnTarget,
        exclude: &[],
        never: &[],
        defaults: None,
    };
    let stopped = capture(&request, &HashOnly, &|| Flow::Stop).unwrap_err();
    assert_eq!(stopped.code(), crate::error::Code::ShuttingDown);
    assert!(Path::new(work.dir.path()).exists());
}
