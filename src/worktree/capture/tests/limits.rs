//! Size cap, count guard, budgets, what cannot be read.

use super::*;
use crate::worktree::{SPARING_BYTES, SPARING_FILES, TARGET_BYTES, TARGET_FILES};

#[test]
fn large_files_are_listed_and_return_when_they_shrink() {
    let mut bench = Bench::with(&["a", "b", "out/c"]);
    bench.advance();
    bench.limits.file_bytes = 10;
    bench.write(".gitignore", "out/\n");
    bench.write("a", "x".repeat(10));
    bench.write("b", "x".repeat(11));
    bench.write("out/c", "x".repeat(11));
    let capture = bench.advance();
    assert_eq!(files(&capture), ".gitignore a");
    assert_eq!(capture.coverage.skipped[&path("b")], SkipReason::TooLarge(11));
    assert_eq!(gaps(&capture), "b:too-large out/c:too-large");
    assert!(capture.coverage.is_partial());
    bench.write("b", "small");
    bench.write("out/c", "small");
    let capture = bench.advance();
    assert_eq!((files(&capture), gaps(&capture)), (".gitignore a b out/c".to_owned(), String::new()));
    bench.write("b", "x".repeat(11));
    bench.target("b", false);
    let capture = bench.advance();
    assert_eq!((files(&capture), gaps(&capture)), (".gitignore a b out/c".to_owned(), String::new()));
}

#[test]
fn the_count_guard_keeps_the_known_then_the_tracked_then_the_first() {
    let mut bench = Bench::with(&["z/known", "m/tracked"]);
    if !bench.git(&["init", "-q"]) {
        return;
    }
    bench.git(&["add", "m/tracked"]);
    std::fs::rename(bench.at("m"), bench.at("away")).unwrap();
    bench.advance();
    std::fs::rename(bench.at("away"), bench.at("m")).unwrap();
    for name in ["a/1", "a/2", "b/deep/3", "b/4", "m/5", "z/6", "w"] {
        bench.write(name, name);
    }
    bench.target("z/6", false);
    // Directories that are met when the guard has struck are listed whole.
    let table = [
        (3, "a/1 m/tracked z/6 z/known", "a/2 b m w z"),
        (2, "m/tracked z/6 z/known", "a b m w z"),
        (1, "z/6 z/known", "a b m w z"),
        (5, "a/1 a/2 b/4 m/tracked z/6 z/known", "b/deep m/5 w z"),
    ];
    for (limit, taken, over) in table {
        bench.limits.files = limit;
        let capture = bench.capture();
        assert_eq!(
            (files(&capture), gaps(&capture).replace(":over-count", "")),
            (taken.to_owned(), over.to_owned()),
            "limit {limit}"
        );
        assert!(capture.coverage.is_partial());
    }
    bench.limits.files = 9;
    assert_eq!(gaps(&bench.capture()), "");
}

#[test]
fn many_files_over_the_guard_are_listed_as_their_directory() {
    let mut bench = Bench::new();
    (0..250).for_each(|n| bench.write(&format!("flat/{n:03}"), "x"));
    bench.limits.files = 20;
    let capture = bench.capture();
    assert_eq!((capture.stats.files, gaps(&capture).as_str()), (20, "flat:over-count"));
    assert!(capture.manifest.contains(&path("flat/019")));
}

#[test]
fn targets_have_a_budget_unless_told_otherwise() {
    let mut bench = Bench::with(&["out/a"]);
    bench.write(".gitignore", "out/\n");
    let huge = std::fs::File::create(bench.at("out/huge")).unwrap();
    huge.set_len(TARGET_BYTES + 1).unwrap();
    bench.target("out", true);
    let capture = bench.capture();
    assert_eq!((files(&capture).as_str(), gaps(&capture).as_str()), (".gitignore out/a", "out/huge:over-budget"));
    huge.set_len(20 << 20).unwrap();
    assert_eq!(gaps(&bench.capture()), "");
    assert_eq!(TARGET_FILES, 20_000);
}

#[test]
fn a_sparing_walk_has_a_small_budget_below_recursive_targets() {
    let mut bench = Bench::new();
    for dir in ["a", "b/deep", "c"] {
        (0..2200).for_each(|n| bench.write(&format!("big/{dir}/{n:04}"), "x"));
    }
    bench.write("big/z/late", "x");
    bench.write("named", "x");
    bench.target("big", true);
    bench.target("named", true);
    (bench.budget, bench.extent) = (TargetBudget::Sparing, Extent::Paths(vec![path("big"), path("named")]));
    let capture = bench.capture();
    // `big`, `a`, `b`, `deep` and `c` count too.
    assert_eq!(capture.stats.files, SPARING_FILES - 5 + 1, "and the file that is named itself");
    assert_eq!(gaps(&capture), "big/c:over-budget big/z:over-budget");
    let weight = |name: &str| capture.coverage.skipped.get(&path(name)).and_then(|why| why.weight()).unwrap();
    assert_eq!((weight("big/c").bytes, weight("big/z").bytes), (2200 * 3 - (SPARING_FILES - 5), 1));
    let mut bench = Bench::with(&["big/a", "big/c/d"]);
    let huge = std::fs::File::create(bench.at("big/b")).unwrap();
    huge.set_len(SPARING_BYTES).unwrap();
    bench.target("big", true);
    (bench.budget, bench.extent) = (TargetBudget::Sparing, Extent::Paths(vec![path("big")]));
    let capture = bench.capture();
    assert_eq!((files(&capture).as_str(), gaps(&capture).as_str()), ("big/a big/c/d", "big/b:over-budget"));
}

/// Makes a file of so many bytes.
fn sized(bench: &Bench, name: &str, size: u64) {
    std::fs::File::create(bench.at(name)).unwrap().set_len(size).unwrap();
}

#[test]
fn what_is_captured_first_keeps_to_one_budget() {
    let mut bench = Bench::with(&["small", "other", "d/f"]);
    sized(&bench, "large", SPARING_BYTES - 100);
    sized(&bench, "huge", SPARING_BYTES + 1);
    let named = ["d", "huge", "large", "small"];
    named.iter().for_each(|name| bench.target(name, true));
    (bench.budget, bench.extent) = (TargetBudget::First, Extent::Paths(named.map(path).to_vec()));
    let capture = bench.capture();
    assert_eq!((files(&capture).as_str(), gaps(&capture).as_str()), ("d/f large small", "huge:over-budget"));
    sized(&bench, "d/g", 200);
    let capture = bench.capture();
    assert_eq!(
        (files(&capture).as_str(), gaps(&capture).as_str()),
        ("d/f large small", "d/g:over-budget huge:over-budget")
    );
}

#[test]
fn each_place_behind_a_link_has_a_budget_of_its_own_for_small_files() {
    let mut bench = Bench::with(&["one/a", "two/a", "single", "three/deep/a"]);
    bench.limits.ignored.file_bytes = 5_000_000;
    // Each directory alone keeps to its budget, and both together do not.
    for n in 0..10 {
        sized(&bench, &format!("one/{n}"), 4_900_000);
        sized(&bench, &format!("two/{n}"), 4_900_000);
    }
    sized(&bench, "three/large", 5_000_001);
    sized(&bench, "alone", 5_000_001);
    let places = ["one", "two", "single", "three", "alone"];
    places.iter().for_each(|place| bench.target(place, true));
    (bench.budget, bench.extent) = (TargetBudget::Linked, Extent::Paths(places.map(path).to_vec()));
    let capture = bench.capture();
    assert_eq!(gaps(&capture), "alone:over-budget three/large:over-budget");
    assert_eq!(capture.stats.files, 24);
    for n in 10..20 {
        sized(&bench, &format!("two/{n}"), 4_900_000);
    }
    let capture = bench.capture();
    let weight: u64 = capture.coverage.skipped.values().filter_map(|why| why.weight()).map(|weight| weight.bytes).sum();
    let over = weight - 2 * 5_000_001;
    assert!(20 * 4_900_000 - over <= SPARING_BYTES && over <= 7 * 4_900_000, "{}", gaps(&capture));
}

#[test]
fn fifos_and_sockets_are_listed_and_never_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let bench = Bench::with(&["a"]);
    mknodat(CWD, bench.at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.at("socket")).unwrap();
    let capture = bench.capture();
    assert_eq!((files(&capture).as_str(), gaps(&capture).as_str()), ("a", "fifo:special socket:special"));
    bench.write(".gitignore", "fifo\nsocket\n");
    assert_eq!(gaps(&bench.capture()), "");
}

/// Root may read everything, so this runs itself once more as another user.
#[test]
fn unreadable_files_and_directories_are_listed() {
    const MARK: &str = "PITON_TEST_WITHOUT_ROOT";
    if rustix::process::geteuid().is_root() {
        let name = "worktree::capture::tests::limits::unreadable_files_and_directories_are_listed";
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let program = place.path().join("tests");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", name]).env(MARK, "1").env("TMPDIR", place.path());
        std::os::unix::process::CommandExt::uid(&mut command, 65_534);
        let output = command.current_dir("/").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let mut bench = Bench::with(&["a", "locked", "shut/inside", "shut/known", "blind/x"]);
    bench.advance();
    bench.chmod("locked", 0o000);
    bench.chmod("shut", 0o000);
    bench.chmod("blind", 0o400);
    let capture = bench.advance();
    assert_eq!(files(&capture), "a");
    assert_eq!(gaps(&capture), "blind/x:unreadable locked:unreadable shut:unreadable");
    assert!(known(&capture).contains("shut/known"), "{}", known(&capture));
    bench.chmod("shut", 0o700);
    bench.chmod("blind", 0o700);
    assert_eq!(files(&bench.advance()), "a blind/x shut/inside shut/known");
}

#[test]
fn large_files_are_streamed() {
    let mut bench = Bench::new();
    bench.limits.file_bytes = u64::MAX;
    let content: Vec<u8> = (0..17u32 << 20).map(|n| (n >> 7) as u8).collect();
    bench.write("large", &content);
    let sink = MemorySink::default();
    let capture = bench.capture_into(&sink);
    let entry = capture.manifest.get(&path("large")).unwrap();
    assert_eq!(entry.size, content.len() as u64);
    assert_eq!(entry.id, ObjectId::of(ObjectKind::Blob, &content).unwrap());
    assert_eq!(*sink.writes.lock().unwrap(), 0);
}

/// A sink that fails with one code.
struct Failing(Code);

impl ObjectSink for Failing {
    fn contains(&self, _id: &ObjectId) -> Result<bool> {
        Ok(false)
    }

    fn write(&self, _kind: ObjectKind, _id: ObjectId, _content: &[u8]) -> Result<()> {
        Err(Error::new(self.0, "the sink fails"))
    }

    fn write_stream(&self, _size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        std::io::copy(source, &mut std::io::sink()).unwrap();
        Err(Error::new(self.0, "the sink fails"))
    }
}

#[test]
fn a_failing_sink_fails_the_capture_and_a_collision_does_not() {
    let mut bench = Bench::with(&["a", "b", "c"]);
    for code in [Code::DiskFull, Code::Permission] {
        let failed =
            capture(&bench.request(), both(&Failing(code), &|| Ok(&crate::model::sink::HashOnly)), &|| Flow::Continue);
        assert_eq!(failed.unwrap_err().code(), code);
    }
    ["a", "b", "c"].iter().for_each(|name| std::fs::remove_file(bench.at(name)).unwrap());
    bench.limits.file_bytes = u64::MAX;
    let large = std::fs::File::create(bench.at("large")).unwrap();
    large.set_len(17 << 20).unwrap();
    let failed =
        capture(&bench.request(), both(&Failing(Code::DiskFull), &|| Ok(&crate::model::sink::HashOnly)), &|| {
            Flow::Continue
        });
    assert_eq!(failed.unwrap_err().code(), Code::DiskFull);
    let capture =
        capture(&bench.request(), both(&Failing(Code::Conflict), &|| Ok(&crate::model::sink::HashOnly)), &|| {
            Flow::Continue
        })
        .unwrap();
    assert_eq!(gaps(&capture), "large:collision");
}
