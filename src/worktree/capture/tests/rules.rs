//! Rules that leave something out, and what overrules them.

use super::*;

#[test]
fn ignore_files_hold_and_are_themselves_captured() {
    let bench = Bench::with(&["a.o", "a.c", "out/x", "sub/a.o", "sub/keep.o", "sub/out/y", "all/x", "all/deep/y"]);
    bench.write(".gitignore", "*.o\nout/\n");
    bench.write("sub/.gitignore", "!keep.o\n");
    bench.write("all/.gitignore", "*\n");
    let sink = MemorySink::default();
    let capture = bench.capture_into(&sink);
    assert_eq!(shown(&capture), ".gitignore a.c all/ all/.gitignore sub/ sub/.gitignore sub/keep.o");
    assert_eq!(sink.content(&capture, "all/.gitignore"), b"*\n");
    assert_eq!(gaps(&capture), "");
}

#[test]
fn a_linked_ignore_file_is_a_link_and_no_rule() {
    let bench = Bench::with(&["rules", "a.o"]);
    bench.write("rules", "*.o\n");
    bench.link(".gitignore", "rules");
    assert_eq!(files(&bench.capture()), ".gitignore a.o rules");
}

#[test]
fn info_exclude_is_weak_recorded_and_relative_to_its_repository() {
    let bench = Bench::with(&["a.o", "keep.o", "n/a.x", "n/deep/b.x", "c.x"]);
    bench.write(".git/info/exclude", "# comment\n\n*.o\n");
    bench.write("n/.git/info/exclude", "/a.x\n");
    bench.write(".gitignore", "!keep.o\n");
    let capture = bench.capture();
    assert_eq!(files(&capture), ".gitignore c.x keep.o n/deep/b.x");
    let recorded: Vec<(String, &str)> =
        capture.coverage.excludes.iter().map(|pattern| (pattern.base.display(), pattern.text.as_str())).collect();
    assert_eq!(recorded, [(".".to_owned(), "*.o"), ("n".to_owned(), "/a.x")]);
}

#[test]
fn configured_excludes_overrule_everything_but_targets() {
    let mut bench = Bench::with(&["big/a", "big/b", "x.tmp", "node_modules/m/i.js", "package.json"]);
    bench.advance();
    bench.exclude = vec!["/big/".into(), "*.tmp".into(), "!node_modules".into()];
    bench.write(".gitignore", "!big/\n!*.tmp\n");
    bench.target("big/a", false);
    let capture = bench.capture();
    assert_eq!(files(&capture), ".gitignore big/a node_modules/m/i.js package.json");
    assert_eq!(capture.coverage.configured, bench.exclude);
    assert_eq!(capture.stats.targeted, 1);
    assert!(capture.known.get(&path("big/a")).is_none());
}

#[test]
fn an_invalid_exclude_is_said() {
    let mut bench = Bench::with(&["a", "b.o"]);
    bench.exclude = vec!["[z-a]".into(), "*.o".into()];
    let capture = bench.capture();
    assert_eq!(files(&capture), "a");
    assert!(capture.warnings.len() == 1 && capture.warnings[0].contains("`[z-a]`"), "{:?}", capture.warnings);
}

#[test]
fn generated_directories_are_left_out_with_their_maker_only() {
    let bench = Bench::with(&[
        "js/package.json",
        "js/node_modules/m/i.js",
        "js/src/node_modules.ts",
        "plain/node_modules/mine.js",
        "rust/Cargo.toml",
        "rust/target/debug/x",
        "docs/target/audience.md",
        "py/.venv/pyvenv.cfg",
        "py/.venv/lib/x.py",
        "py/env/settings.ini",
        "py/__pycache__/x.pyc",
        "js/dist/bundle.js",
        "js/build/x",
        "cache/CACHEDIR.TAG",
        "cache/x",
        "fake/CACHEDIR.TAG",
    ]);
    bench.write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n# by x\n");
    let capture = bench.capture();
    assert_eq!(
        files(&capture),
        "docs/target/audience.md fake/CACHEDIR.TAG js/build/x js/dist/bundle.js js/package.json \
         js/src/node_modules.ts plain/node_modules/mine.js py/env/settings.ini rust/Cargo.toml"
    );
    assert!(!capture.manifest.contains(&path("js/node_modules")) && !capture.manifest.contains(&path("cache")));
}

#[test]
fn what_git_tracks_is_captured_though_ignored() {
    let mut bench =
        Bench::with(&["out/tracked", "out/new", "out/other/x", "node_modules/m/patched.js", "package.json"]);
    if !bench.git(&["init", "-q"]) {
        return;
    }
    bench.write("node_modules/m/other.js", "x");
    bench.git(&["add", "out/tracked", "node_modules/m/patched.js"]);
    bench.write("n/out/tracked", "x");
    bench.write("n/out/new", "x");
    bench.git(&["init", "-q", "n"]);
    bench.git(&["-C", "n", "add", "out/tracked"]);
    bench.write(".gitignore", "out/\n");
    // None of them is in a commit yet: they are private.
    assert_eq!(files(&bench.capture()), ".gitignore package.json");
    bench.limits.ignored = Ignored { file_bytes: 1000, total_bytes: 10_000, files: 10 };
    let private = bench.capture().private.manifest.clone();
    for staged in ["out/tracked", "node_modules/m/patched.js", "n/out/tracked"] {
        assert!(private.contains(&path(staged)), "{staged}");
    }
    bench.limits.ignored = Ignored::NONE;
    for repository in [".", "n"] {
        let author = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        bench.git(&[&["-C", repository][..], &author, &["commit", "-qm", "one"]].concat());
    }
    let capture = bench.capture();
    assert_eq!(
        shown(&capture),
        ".gitignore n/ n/out/ n/out/tracked node_modules/ node_modules/m/ node_modules/m/patched.js out/ \
         out/tracked package.json"
    );
    bench.write(".git/index", "damaged");
    let capture = bench.capture();
    assert!(capture.warnings[0].contains("git index"), "{:?}", capture.warnings);
    assert_eq!(files(&capture), ".gitignore n/out/tracked package.json");
}

#[test]
fn what_was_captured_stays_captured_whatever_ignore_rule_appears() {
    let mut bench = Bench::with(&["data/a", "data/deep/b", "x.log"]);
    bench.advance();
    bench.write(".gitignore", "data/\n*.log\n");
    bench.write("data/new", "new");
    bench.write("data/deep/new", "new");
    bench.write("y.log", "new");
    assert_eq!(files(&bench.advance()), ".gitignore data/a data/deep/b x.log");
    std::fs::remove_file(bench.at("data/a")).unwrap();
    std::fs::remove_dir_all(bench.at("data/deep")).unwrap();
    let capture = bench.advance();
    assert_eq!((shown(&capture), gaps(&capture)), (".gitignore x.log".to_owned(), String::new()));
    bench.write("data/a", "back");
    assert_eq!(files(&bench.advance()), ".gitignore x.log");
    bench.sticky = [path("data/a"), path("data/empty"), path("data/gone")].into();
    bench.dir("data/empty");
    assert_eq!(shown(&bench.advance()), ".gitignore data/ data/a data/empty/ x.log");
}

#[test]
fn secrets_are_listed_unless_tracked_targeted_or_wanted() {
    let names = &[".env", ".env.example", "conf/server.pem", "tracked.key", "main.rs"];
    let mut bench = Bench::with(names);
    if !bench.git(&["init", "-q"]) {
        return;
    }
    bench.git(&["add", "tracked.key"]);
    let capture = bench.capture();
    assert_eq!(gaps(&capture), ".env:secret conf/server.pem:secret tracked.key:secret", "it is only staged");
    bench.git(&["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "one"]);
    let capture = bench.advance();
    assert_eq!(files(&capture), ".env.example main.rs tracked.key");
    assert_eq!(gaps(&capture), ".env:secret conf/server.pem:secret");
    bench.target(".env", false);
    let capture = bench.advance();
    assert_eq!(files(&capture), ".env .env.example main.rs tracked.key");
    assert_eq!(gaps(&capture), "conf/server.pem:secret");
    assert!(capture.known.get(&path(".env")).is_none() && !capture.coverage.secrets);
    bench.secrets = Secrets::Never;
    assert_eq!(gaps(&bench.advance()), ".env:secret conf/server.pem:secret");
    bench.unlimited = true;
    assert_eq!(gaps(&bench.advance()), "conf/server.pem:secret");
    bench.targets.clear();
    bench.secrets = Secrets::Local;
    bench.limits.ignored = Ignored { file_bytes: 1000, total_bytes: 10_000, files: 10 };
    let capture = bench.advance();
    assert_eq!(files(&capture), ".env.example main.rs tracked.key");
    let private: Vec<String> = capture.private.manifest.iter().map(|(path, _)| path.display()).collect();
    assert_eq!(private, [".env", "conf/server.pem"]);
    assert!(known(&capture).contains(".env"));
    bench.secrets = Secrets::OnTarget;
    assert_eq!(gaps(&bench.advance()), ".env:secret conf/server.pem:secret");
}

mod agreement {
    //! The walk and the question of a restore never disagree.

    use proptest::prelude::*;

    use super::*;
    use crate::filter::{CoverageView, Verdict, generated, would_capture};
    use crate::model::manifest::Manifest;

    const PATTERNS: &[&str] =
        &["*.o", "/a", "b/", "!a/x.o", "a/**/c", "!*.o", "*", "!*/", "node_modules", "!b", "\\#x"];
    const NAMES: &[&str] = &["a", "b", "x.o", "node_modules", "package.json", ".env", "c", "#x", "CACHEDIR.TAG"];

    fn patterns() -> impl Strategy<Value = String> {
        proptest::collection::vec(0..PATTERNS.len(), 0..4)
            .prop_map(|picks| picks.iter().map(|pick| format!("{}\n", PATTERNS[*pick])).collect())
    }

    fn names() -> impl Strategy<Value = Vec<String>> {
        let one = proptest::collection::vec(0..NAMES.len(), 1..4).prop_map(|picks| {
            let parts: Vec<&str> = picks.iter().map(|pick| NAMES[*pick]).collect();
            parts.join("/")
        });
        proptest::collection::vec(one, 1..14)
    }

    fn all_files(root: &Path, below: &RelPath, list: &mut Vec<RelPath>) {
        for entry in std::fs::read_dir(below.under(root)).unwrap() {
            let entry = entry.unwrap();
            let path = below.join(std::os::unix::ffi::OsStrExt::as_bytes(entry.file_name().as_os_str()));
            if entry.file_type().unwrap().is_dir() {
                all_files(root, &path, list);
            } else {
                list.push(path);
            }
        }
    }

    struct Captured<'a> {
        manifest: &'a Manifest,
        sink: &'a MemorySink,
    }

    impl CoverageView for Captured<'_> {
        fn gitignore(&self, dir: &RelPath) -> Option<Vec<u8>> {
            let entry = self.manifest.get(&dir.join(b".gitignore"))?;
            Some(self.sink.blobs.lock().unwrap()[&entry.id].clone())
        }

        fn exists(&self, path: &RelPath) -> bool {
            self.manifest.contains(path)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn verdict_and_walk_agree(names in names(), root in patterns(), sub in patterns(), info in patterns(), conf in patterns()) {
            let mut bench = Bench::new();
            for name in &names {
                // A file may stand where a directory is wanted, and the other way round.
                let parent = bench.at(name.rsplit_once('/').map_or("", |(dir, _)| dir));
                if std::fs::create_dir_all(parent).is_ok() { let _ = std::fs::write(bench.at(name), "x"); }
            }
            bench.write(".gitignore", root);
            if bench.at("a").is_dir() { bench.write("a/.gitignore", sub); }
            bench.write(".git/info/exclude", info);
            bench.exclude = conf.lines().filter(|line| *line != "*").map(str::to_owned).collect();
            let sink = MemorySink::default();
            let capture = bench.capture_into(&sink);
            let view = Captured { manifest: &capture.manifest, sink: &sink };
            let mut list = Vec::new();
            all_files(bench.temp.path(), &RelPath::root(), &mut list);
            for path in list {
                let entry = ManifestEntry { kind: EntryKind::File, perm: 0o644, id: ObjectId::EMPTY_TREE, size: 1 };
                let verdict = would_capture(&path, &entry, &capture.coverage, &view);
                let doubtful = verdict != Verdict::Yes && path.parent().is_some_and(|dir| {
                    // A tag without its signature is doubt for the verdict, and so is a mark that is ignored itself.
                    // Doubt keeps.
                    let doubt = |dir: RelPath| view.exists(&dir.join(b"CACHEDIR.TAG")) || generated::may_be_made(dir.name());
                    std::iter::successors(Some(dir), RelPath::parent).any(doubt)
                });
                prop_assert!(doubtful || (verdict == Verdict::Yes) == capture.manifest.contains(&path), "{path:?} {verdict:?}");
            }
        }
    }
}
