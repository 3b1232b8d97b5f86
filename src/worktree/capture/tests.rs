//! Captures of real directories.

mod limits;
mod moving;
mod rules;
mod scope;
mod warm;

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::*;
use crate::model::coverage::Extent;
use crate::model::id::ObjectKind;
use crate::model::policy::{Ignored, Limits, Secrets};
use crate::model::sink::{ObjectSink, hash_stream};
use crate::worktree::{Spare, Target, TargetBudget};

/// A workspace and everything a request needs.
struct Bench {
    temp: tempfile::TempDir,
    known: Arc<KnownPaths>,
    sticky: BTreeSet<RelPath>,
    targets: Vec<Target>,
    unlimited: bool,
    budget: TargetBudget,
    extent: Extent,
    limits: Limits,
    secrets: Secrets,
    exclude: Vec<String>,
    never: Vec<PathBuf>,
    defaults: Option<Defaults>,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            temp: tempfile::tempdir().unwrap(),
            known: Arc::default(),
            sticky: BTreeSet::new(),
            targets: Vec::new(),
            unlimited: false,
            budget: TargetBudget::Wide,
            extent: Extent::Tree,
            limits: Limits {
                file_bytes: 10_000_000,
                files: 1_000_000,
                line_bytes: 1 << 20,
                memory: 192_000_000,
                git_copy: 0,
                told_tokens: 0,
                ignored: Ignored::NONE,
            },
            secrets: Secrets::OnTarget,
            exclude: Vec::new(),
            never: Vec::new(),
            defaults: None,
        }
    }

    /// With these files, each holding its own name.
    fn with(names: &[&str]) -> Bench {
        let bench = Bench::new();
        names.iter().for_each(|name| bench.write(name, name));
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        self.dir(name.rsplit_once('/').map_or("", |(dir, _)| dir));
        std::fs::write(self.at(name), content).unwrap();
    }

    fn dir(&self, name: &str) {
        std::fs::create_dir_all(self.at(name)).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        symlink(target, self.at(name)).unwrap();
    }

    fn chmod(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.at(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn target(&mut self, name: &str, recursive: bool) {
        self.targets.push(Target { path: path(name), recursive });
    }

    fn request(&self) -> Request<'_> {
        Request {
            root: self.temp.path(),
            known: &self.known,
            sticky: &self.sticky,
            private: &crate::worktree::NonePrivate,
            targets: &self.targets,
            unlimited_targets: self.unlimited,
            budget: self.budget,
            extent: self.extent.clone(),
            limits: self.limits,
            secrets: self.secrets,
            exclude: &self.exclude,
            never: &self.never,
            defaults: self.defaults,
            wanted_targets: false,
            dates: false,
            spare: match self.extent {
                Extent::Tree => Spare::among(&self.limits.ignored, &self.known),
                Extent::Paths(_) => Spare::default(),
            },
            early: None,
            progress: &crate::sys::progress::Progress::NONE,
            is_deleted: false,
        }
    }

    fn capture(&self) -> Capture {
        self.capture_into(&MemorySink::default())
    }

    fn capture_into(&self, sink: &dyn ObjectSink) -> Capture {
        let mut capture = capture(&self.request(), both(sink, &|| Ok(sink)), &|| Flow::Continue).unwrap();
        assert_parents(&capture.manifest);
        if self.limits.ignored == Ignored::NONE {
            // Without private files by rule, only targets are in the private part.
            for (path, entry) in capture.private.manifest.iter() {
                capture.manifest.insert(path.clone(), *entry);
            }
            capture.coverage.skipped.retain(|path, _| !capture.private.manifest.contains(path));
            capture.coverage.targeted.extend(capture.private.coverage.targeted.iter().cloned());
        }
        capture
    }

    /// Captures and hands the outcome on to the next capture.
    fn advance(&mut self) -> Capture {
        let capture = self.capture();
        self.known.clone_from(&capture.known);
        capture
    }

    /// Runs git in the workspace; false when there is none.
    fn git(&self, args: &[&str]) -> bool {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@y"]).args(args);
        command.current_dir(self.temp.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("HOME", self.temp.path()).env_remove("GIT_DIR");
        match command.output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                true
            }
            Err(_) => {
                assert!(std::env::var_os("CI").is_none(), "git is needed in CI");
                eprintln!("skipped: no git");
                false
            }
        }
    }
}

fn both<'s>(shared: &'s dyn ObjectSink, local: &'s dyn Fn() -> Result<&'s dyn ObjectSink>) -> Sinks<'s> {
    Sinks { shared, local }
}

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

fn assert_parents(manifest: &Manifest) {
    for (path, _) in manifest.iter() {
        let parent = path.parent().unwrap();
        assert!(
            parent.is_root() || manifest.get(&parent).is_some_and(|entry| entry.kind == EntryKind::Dir),
            "{path:?} has no parent"
        );
    }
}

/// Captured paths in one line, directories with a slash at their end.
fn shown(capture: &Capture) -> String {
    let paths = capture.manifest.iter();
    let texts = paths.map(|(path, entry)| {
        let slash = if entry.kind == EntryKind::Dir { "/" } else { "" };
        format!("{}{slash}", path.display())
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Captured files and links in one line.
fn files(capture: &Capture) -> String {
    let entries = capture.manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir);
    entries.map(|(path, _)| path.display()).collect::<Vec<_>>().join(" ")
}

/// Returns what was left out, in one line.
fn gaps(capture: &Capture) -> String {
    let gaps = capture.coverage.skipped.iter();
    let texts = gaps.map(|(path, reason)| format!("{}:{}", path.display(), reason.as_str()));
    texts.collect::<Vec<_>>().join(" ")
}

/// Known paths in one line.
fn known(capture: &Capture) -> String {
    capture.known.entries().iter().map(|(path, _)| path.display()).collect::<Vec<_>>().join(" ")
}

/// Keeps everything in memory.
#[derive(Default)]
struct MemorySink {
    blobs: Mutex<HashMap<ObjectId, Vec<u8>>>,
    writes: Mutex<u64>,
}

impl MemorySink {
    fn content(&self, capture: &Capture, name: &str) -> Vec<u8> {
        let entry = capture.manifest.get(&path(name)).unwrap();
        self.blobs.lock().unwrap()[&entry.id].clone()
    }
}

impl ObjectSink for MemorySink {
    fn contains(&self, id: &ObjectId) -> Result<bool> {
        Ok(self.blobs.lock().unwrap().contains_key(id))
    }

    fn write(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        assert_eq!(ObjectId::of(kind, content).unwrap(), id);
        *self.writes.lock().unwrap() += 1;
        self.blobs.lock().unwrap().insert(id, content.to_vec());
        Ok(())
    }

    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        let mut content = Vec::new();
        let id = hash_stream(size, source, &mut |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        self.blobs.lock().unwrap().insert(id, content);
        Ok(id)
    }
}

/// Repeats `attempt` until it says true; fails after ten seconds.
fn eventually(mut attempt: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !attempt() {
        assert!(Instant::now() < deadline, "did not happen in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn bytes_permissions_links_and_empty_directories_are_exact() {
    let bench = Bench::new();
    for (name, mode) in [("plain", 0o644), ("private", 0o600), ("read-only", 0o444), ("run", 0o750), ("set", 0o4755)] {
        bench.write(name, format!("{name}\r\n\0"));
        bench.chmod(name, mode);
    }
    bench.dir("empty/inner");
    bench.chmod("empty", 0o1777);
    bench.chmod("empty/inner", 0o700);
    bench.link("link", "plain");
    bench.link("broken", "no\\where/..");
    bench.link("out", "/etc");
    let sink = MemorySink::default();
    let capture = bench.capture_into(&sink);
    assert_eq!(shown(&capture), "broken empty/ empty/inner/ link out plain private read-only run set");
    let perm = |name: &str| capture.manifest.get(&path(name)).unwrap().perm;
    assert_eq!(
        ["plain", "private", "read-only", "run", "set", "empty", "empty/inner", "link"].map(perm),
        [0o644, 0o600, 0o444, 0o750, 0o4755, 0o1777, 0o700, 0o777]
    );
    for (name, content) in [("plain", "plain\r\n\0"), ("link", "plain"), ("broken", "no\\where/.."), ("out", "/etc")] {
        assert_eq!(sink.content(&capture, name), content.as_bytes(), "{name}");
    }
    assert_eq!(capture.manifest.get(&path("link")).unwrap().kind, EntryKind::Link);
    assert!(!capture.coverage.is_partial() && capture.warnings.is_empty());
    assert_eq!((capture.stats.files, capture.stats.dirs), (8, 2));
}

#[test]
fn odd_names_are_captured() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::with(&["with space", "new\nline", ".GIT/x", "git~1", "a.b", "a/x", "a0", "-n"]);
    std::fs::write(bench.temp.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "x").unwrap();
    let capture = bench.capture();
    for name in ["with space", "new\nline", ".GIT/x", "git~1", "a.b", "a/x", "a0", "-n"] {
        assert!(capture.manifest.contains(&path(name)), "{name:?}");
    }
    assert!(capture.manifest.contains(&RelPath::parse(b"\xff\xfe").unwrap()));
}

#[test]
fn repositories_inside_are_plain_files_without_their_git() {
    let bench = Bench::with(&[
        ".git/config",
        "nested/.git/HEAD",
        "nested/a",
        "module/b",
        "linked/c",
        "deep/er/.git/x",
        "deep/er/d",
        ".git/worktrees/linked/HEAD",
        ".git/modules/module/HEAD",
    ]);
    bench.write("module/.git", "gitdir: ../.git/modules/module\n");
    bench.write("linked/.git", format!("gitdir: {}\n", bench.at(".git/worktrees/linked").display()));
    bench.write(".git/worktrees/linked/commondir", "../..\n");
    bench.write(".piton-tmp-1-2", "x");
    let capture = bench.capture();
    assert_eq!(shown(&capture), "deep/ deep/er/ deep/er/d module/ module/b nested/ nested/a");
    assert_eq!(gaps(&capture), "linked:linked-worktree");
    let mut inner = Bench::new();
    inner.extent = Extent::Tree;
    let request = Request { root: &bench.at("linked"), ..inner.request() };
    let own = super::capture(&request, both(&MemorySink::default(), &|| Ok(&crate::model::sink::HashOnly)), &|| {
        Flow::Continue
    })
    .unwrap();
    assert_eq!((files(&own), gaps(&own)), ("c".to_owned(), String::new()));
}

#[test]
fn proven_stamps_save_the_reading_and_changes_are_seen() {
    let mut bench = Bench::with(&["a", "b", "dir/c"]);
    bench.link("link", "a");
    bench.link(".gitignore", "a");
    let first = bench.advance();
    assert_eq!((first.stats.reused, first.stats.hashed), (0, 5));
    eventually(|| bench.advance().stats.reused == 5);
    let sink = MemorySink::default();
    let again = bench.capture_into(&sink);
    assert_eq!((again.stats.hashed, *sink.writes.lock().unwrap()), (0, 0));
    assert_eq!(again.manifest, first.manifest);
    bench.write("b", "B");
    bench.chmod("a", 0o600);
    let changed = bench.advance();
    assert_eq!((changed.stats.reused, changed.stats.hashed), (3, 2));
    assert_eq!(changed.manifest.get(&path("a")).unwrap().perm, 0o600);
    assert_ne!(changed.manifest.get(&path("b")), first.manifest.get(&path("b")));
    // Within the racy window the same size and time prove nothing.
    bench.write("b", "C");
    assert_ne!(bench.advance().manifest.get(&path("b")), changed.manifest.get(&path("b")));
}

#[test]
fn contents_that_are_there_are_not_written_again() {
    let bench = Bench::with(&["a", "b"]);
    bench.write("b", "a");
    let sink = MemorySink::default();
    bench.capture_into(&sink);
    bench.capture_into(&sink);
    assert!(*sink.writes.lock().unwrap() <= 2);
    assert_eq!(sink.blobs.lock().unwrap().len(), 1);
}

#[test]
fn usual_permissions_are_the_majority() {
    let mut bench = Bench::with(&["a", "b", "c", "x", "y"]);
    for (name, mode) in [("a", 0o600), ("b", 0o600), ("c", 0o644), ("x", 0o700), ("y", 0o755)] {
        bench.chmod(name, mode);
    }
    let standard = Defaults::STANDARD;
    let expected = Defaults { file: 0o600, ..standard };
    assert_eq!(bench.capture().coverage.defaults, expected);
    let previous = Defaults { dir: 0o711, ..standard };
    bench.defaults = Some(previous);
    assert_eq!(bench.capture().coverage.defaults, previous);
    assert_eq!(Bench::new().capture().coverage.defaults, standard);
}
