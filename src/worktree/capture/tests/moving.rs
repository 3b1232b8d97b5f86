//! Trees that change while they are captured.

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::model::change::{Dirty, Reach};
use crate::worktree::Warm;

#[path = "../../../../tests/blackbox/ends.rs"]
mod ends;

use ends::Ends;

/// Captures while `act` is done at the `nth` call of `control`.
fn capture_with(bench: &Bench, nth: u32, act: impl Fn()) -> Capture {
    let calls = Cell::new(0);
    let control = || {
        calls.set(calls.get() + 1);
        if calls.get() == nth {
            act();
        }
        Flow::Continue
    };
    let capture =
        capture(&bench.request(), both(&MemorySink::default(), &|| Ok(&crate::model::sink::HashOnly)), &control)
            .unwrap();
    assert!(calls.get() >= nth);
    capture
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x"), "outside").unwrap();
    // The first call comes before the root, the second before `sub`, the third between walk and reading.
    for nth in [2, 3] {
        let bench = Bench::with(&["sub/x", "a"]);
        let capture = capture_with(&bench, nth, || {
            std::fs::rename(bench.at("sub"), bench.at("moved")).unwrap();
            symlink(outside.path(), bench.at("sub")).unwrap();
        });
        assert_eq!(files(&capture), "a", "call {nth}");
        let expected = if nth == 2 { "sub:vanished" } else { "sub/x:vanished" };
        assert_eq!(gaps(&capture), expected);
    }
}

#[test]
fn a_file_swapped_for_a_fifo_or_link_is_not_read() {
    for fifo in [true, false] {
        let bench = Bench::with(&["a", "b"]);
        let capture = capture_with(&bench, 2, || {
            std::fs::remove_file(bench.at("a")).unwrap();
            if fifo {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(rustix::fs::CWD, bench.at("a"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
            } else {
                bench.link("a", "/etc/passwd");
            }
        });
        assert_eq!(files(&capture), "b");
        assert_eq!(gaps(&capture), if fifo { "a:special" } else { "a:vanished" });
    }
}

#[test]
fn what_vanishes_is_listed_only_when_it_was_targeted() {
    let mut bench = Bench::with(&["a", "b", "c"]);
    bench.target("b", false);
    bench.target("never-was", true);
    let capture = capture_with(&bench, 2, || {
        std::fs::remove_file(bench.at("a")).unwrap();
        std::fs::remove_file(bench.at("b")).unwrap();
    });
    assert_eq!((files(&capture).as_str(), gaps(&capture).as_str()), ("c", "b:vanished"));
}

#[test]
fn a_file_that_never_holds_still_is_captured_and_said_to_be_unstable() {
    // So large that the clock of the file system, which gives the times, moves on while it is read.
    const SIZE: u64 = (16 << 20) - 4;
    let mut bench = Bench::with(&["still"]);
    bench.limits.file_bytes = u64::MAX;
    bench.write("busy", vec![b'x'; SIZE as usize]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&stop);
        scope.spawn(|| {
            let mut file = std::fs::OpenOptions::new().append(true).open(bench.at("busy")).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"more").unwrap();
                file.set_len(SIZE).unwrap();
            }
        });
        eventually(|| {
            let sink = MemorySink::default();
            let capture = bench.capture_into(&sink);
            let Some(entry) = capture.manifest.get(&path("busy")) else { panic!("{:?}", capture.coverage.skipped) };
            assert_eq!(sink.content(&capture, "busy").len() as u64, entry.size);
            let unstable = capture.coverage.unstable == [path("busy")];
            assert!(unstable || capture.coverage.unstable.is_empty());
            assert!(!unstable || !capture.known.get(&path("busy")).unwrap().proven);
            unstable
        });
    });
}

/// Does something to the file each time a stream of it begins.
struct Meddling<'a>(&'a (dyn Fn() + Sync), MemorySink);

impl ObjectSink for Meddling<'_> {
    fn contains(&self, id: &ObjectId) -> Result<bool> {
        self.1.contains(id)
    }

    fn write(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        self.1.write(kind, id, content)
    }

    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        (self.0)();
        self.1.write_stream(size, source)
    }
}

#[test]
fn large_files_that_grow_or_shrink_under_the_reading() {
    let mut bench = Bench::new();
    bench.limits.file_bytes = u64::MAX;
    let size = 17u64 << 20;
    let large = std::fs::File::create(bench.at("large")).unwrap();
    large.set_len(size).unwrap();
    let grow = || large.set_len(large.metadata().unwrap().len() + 1).unwrap();
    let capture = bench.capture_into(&Meddling(&grow, MemorySink::default()));
    assert_eq!(capture.coverage.unstable, [path("large")]);
    assert_eq!(capture.manifest.get(&path("large")).unwrap().size, size + 2);
    let shrink = || large.set_len(large.metadata().unwrap().len() - 1).unwrap();
    let capture = bench.capture_into(&Meddling(&shrink, MemorySink::default()));
    assert_eq!(gaps(&capture), "large:vanished");
    large.set_len(size).unwrap();
    let cut = || large.set_len(5).unwrap();
    let capture = bench.capture_into(&Meddling(&cut, MemorySink::default()));
    assert_eq!((capture.manifest.get(&path("large")).unwrap().size, gaps(&capture).as_str()), (5, ""));
}

#[test]
fn control_can_stop_a_capture() {
    let bench = Bench::with(&["a", "dir/b"]);
    for nth in 1..4 {
        let calls = Cell::new(0);
        let control = || {
            calls.set(calls.get() + 1);
            if calls.get() == nth { Flow::Stop } else { Flow::Continue }
        };
        let stopped =
            capture(&bench.request(), both(&MemorySink::default(), &|| Ok(&crate::model::sink::HashOnly)), &control);
        assert_eq!(stopped.unwrap_err().code(), Code::ShuttingDown);
    }
}

#[test]
fn a_private_database_that_never_holds_still_is_said_to_be_unstable_too() {
    let mut bench = Bench::new();
    bench.write(".gitignore", "/app.db*\n");
    bench.limits.file_bytes = u64::MAX;
    bench.limits.ignored = Ignored { files: 10, file_bytes: u64::MAX, total_bytes: u64::MAX };
    // So large that it is read as a stream.
    let database = std::fs::File::create(bench.at("app.db")).unwrap();
    database.set_len(17 << 20).unwrap();
    bench.write("app.db-wal", "log");
    let grow = || database.set_len(database.metadata().unwrap().len() + 1).unwrap();
    let (busy, still) = (Meddling(&grow, MemorySink::default()), MemorySink::default());
    let capture = bench.capture_into(&busy);
    assert_eq!(
        (&capture.private.coverage.unstable[..], &capture.coverage.unstable[..]),
        (&[path("app.db")][..], &[][..])
    );
    let mut warm = Warm::new(&bench.request(), &capture, &capture.private).unwrap().unwrap();
    let mut renewed = |sink: &dyn ObjectSink| {
        let dirty = Dirty::new([(path("app.db-wal"), Reach::Entry)]);
        warm.renew(&bench.request(), &dirty, both(sink, &|| Ok(sink)), &|| Flow::Continue).unwrap();
        assert!(warm.coverage().unstable.is_empty());
        warm.private().coverage.unstable.clone()
    };
    assert_eq!(renewed(&still), []);
    grow();
    assert_eq!(renewed(&busy), [path("app.db")]);
}
