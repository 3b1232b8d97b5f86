//! Extents, targets, and directories that are never captured.

use super::*;

#[test]
fn a_partial_extent_looks_at_its_paths_only() {
    let mut bench = Bench::with(&["a/x", "a/y.o", "b/c/z", "b/c/z.o", "b/other", "top", "b/skip/q"]);
    bench.write(".gitignore", "*.o\n");
    bench.write("b/.gitignore", "/skip/\n");
    bench.extent = Extent::Paths(vec![path("b/c"), path("a/x"), path("b/skip"), path("missing/x")]);
    let capture = bench.capture();
    assert_eq!(shown(&capture), "a/ a/x b/ b/c/ b/c/z");
    assert_eq!(capture.coverage.extent, bench.extent);
    assert_eq!(known(&capture), "a/x b/c/z");
    let recorded: Vec<&str> = capture.coverage.excludes.iter().map(|pattern| pattern.text.as_str()).collect();
    assert_eq!(recorded, ["*.o", "/skip/"]);
    assert!(capture.coverage.is_partial());
}

#[test]
fn targets_are_captured_whatever_rules_say_and_are_not_sticky() {
    let mut bench = Bench::with(&[
        "out/a",
        "out/deep/b",
        "out/.env",
        "out/.git/config",
        "out/.piton-tmp-1",
        "logs/x.log",
        "logs/y.log",
        "src/main.rs",
        "node_modules/m/i.js",
        "package.json",
    ]);
    bench.dir("out/empty");
    bench.write(".gitignore", "out/\n*.log\n");
    assert_eq!(shown(&bench.advance()), ".gitignore logs/ package.json src/ src/main.rs");
    bench.target("out", true);
    bench.target("logs/x.log", false);
    bench.target("node_modules", false);
    bench.target("src/main.rs", false);
    let capture = bench.advance();
    assert_eq!(
        shown(&capture),
        ".gitignore logs/ logs/x.log node_modules/ out/ out/.env out/a out/deep/ out/deep/b out/empty/ package.json \
         src/ src/main.rs"
    );
    assert_eq!(known(&capture), ".gitignore package.json src/main.rs");
    assert_eq!(capture.stats.targeted, 4);
    bench.targets.clear();
    assert_eq!(shown(&bench.advance()), ".gitignore logs/ package.json src/ src/main.rs");
}

#[test]
fn targets_add_to_a_partial_extent() {
    let mut bench = Bench::with(&["a/x", "b/y", "c/z"]);
    bench.extent = Extent::Paths(Vec::new());
    bench.target("b", true);
    assert_eq!(shown(&bench.capture()), "b/ b/y");
    bench.target("", true);
    assert_eq!(files(&bench.capture()), "a/x b/y c/z");
}

#[test]
fn targets_out_of_reach_are_said() {
    let mut bench = Bench::with(&["dir/a", ".git/config"]);
    bench.link("link", "dir");
    bench.target("link/a", false);
    bench.target(".git", true);
    let capture = bench.capture();
    assert_eq!(files(&capture), "dir/a link");
    assert_eq!(capture.warnings.len(), 2, "{:?}", capture.warnings);
}

#[test]
fn a_linked_worktree_is_captured_as_a_target() {
    let mut bench = Bench::with(&["linked/a", ".git/worktrees/linked/HEAD"]);
    bench.write("linked/.git", format!("gitdir: {}\n", bench.at(".git/worktrees/linked").display()));
    bench.write(".git/worktrees/linked/commondir", "../..\n");
    bench.target("linked", true);
    let capture = bench.capture();
    // Its `.git`, which says where it belongs, goes with it and is never captured.
    assert_eq!((files(&capture).as_str(), gaps(&capture).as_str()), ("linked/a", "linked/.git:repository"));
    bench.unlimited = true;
    assert_eq!(gaps(&bench.capture()), "", "a restore destroys none");
}

#[test]
fn the_store_is_never_captured() {
    let mut bench = Bench::with(&["a", "deep/home/store.git/x", "deep/b"]);
    let aside = tempfile::tempdir().unwrap();
    symlink(bench.at("deep"), aside.path().join("way")).unwrap();
    bench.link("shortcut", "deep/home");
    for never in [bench.at("deep/home"), aside.path().join("way/home"), bench.at("shortcut")] {
        bench.never = vec![aside.path().join("missing"), never];
        bench.target("deep", true);
        let capture = bench.capture();
        assert_eq!(files(&capture), "a deep/b shortcut");
        assert_eq!(gaps(&capture), "deep/home:store");
    }
    for root in ["deep/home", "deep/home/store.git"] {
        let request = Request { root: &bench.at(root), ..bench.request() };
        let refused =
            capture(&request, both(&MemorySink::default(), &|| Ok(&crate::model::sink::HashOnly)), &|| Flow::Continue);
        assert_eq!(refused.unwrap_err().code(), Code::WorkspaceRefused);
    }
}

#[test]
fn a_missing_root_is_said() {
    let bench = Bench::with(&["file"]);
    for root in ["missing", "file"] {
        let request = Request { root: &bench.at(root), ..bench.request() };
        let gone =
            capture(&request, both(&MemorySink::default(), &|| Ok(&crate::model::sink::HashOnly)), &|| Flow::Continue);
        assert_eq!(gone.unwrap_err().code(), Code::WorkspaceGone, "{root}");
    }
}

#[test]
fn directories_files_and_links_may_change_places() {
    let mut bench = Bench::with(&["d/x", "f"]);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    bench.advance();
    std::fs::remove_dir_all(bench.at("d")).unwrap();
    symlink(outside.path(), bench.at("d")).unwrap();
    std::fs::remove_file(bench.at("f")).unwrap();
    bench.write("f/now/dir", "x");
    assert_eq!(shown(&bench.advance()), "d f/ f/now/ f/now/dir");
    std::fs::remove_file(bench.at("d")).unwrap();
    bench.write("d/x", "x");
    std::fs::remove_dir_all(bench.at("f")).unwrap();
    bench.write("f", "x");
    assert_eq!(shown(&bench.advance()), "d/ d/x f");
}

#[test]
fn deep_trees_end_in_a_listed_gap() {
    let bench = Bench::new();
    let mut dir =
        rustix::fs::open(bench.temp.path(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o755);
    for _ in 0..1030 {
        rustix::fs::mkdirat(&dir, "long-name", mode).unwrap();
        dir = rustix::fs::openat(&dir, "long-name", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    }
    let capture = bench.capture();
    assert_eq!(capture.stats.dirs, 1024);
    assert_eq!(capture.coverage.skipped.len(), 1);
}

#[test]
fn what_a_tool_made_is_no_target() {
    let mut bench = Bench::with(&[
        "package.json",
        "node_modules/m/i.js",
        "old/.venv/pyvenv.cfg",
        "old/.venv/lib/x.py",
        "old/notes",
        "node_modules.bak/x",
    ]);
    bench.write(".gitignore", "old/\nnode_modules/\nnode_modules.bak/\n");
    bench.target("node_modules", true);
    bench.target("node_modules.bak", true);
    bench.target("old", true);
    assert_eq!(files(&bench.capture()), ".gitignore node_modules.bak/x old/notes package.json");
    bench.target("node_modules/m/i.js", false);
    assert!(bench.capture().manifest.contains(&path("node_modules/m/i.js")));
}
