//! The content of a checkpoint: each kind of thing goes away and comes back exactly, or is listed as left out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::support::{Lab, Sidecar, git, mode, tree};

/// Paths that checkpoint `n` lists as left out, with the reasons.
fn skipped(lab: &Lab, n: u64) -> Vec<(String, String)> {
    let shown = lab.piton(&["show", &n.to_string(), "--json"]).json();
    let items = shown["skipped"]["items"].as_array().unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    items.iter().map(|item| (text(&item["path"]), text(&item["why"]))).collect()
}

/// Paths that checkpoint `n` holds.
fn held(lab: &Lab, n: u64) -> Vec<String> {
    let shown = lab.piton(&["show", &n.to_string(), "--json"]).json();
    let shared = shown["paths"]["items"].as_array().unwrap().iter().filter(|item| item["why"] != "private");
    shared.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}

fn holds(lab: &Lab, n: u64, path: &str) -> bool {
    held(lab, n).iter().any(|held| held == path)
}

/// Takes a checkpoint, does `damage`, restores, and wants everything back as it was.
fn comes_back(lab: &Lab, damage: impl FnOnce(&Lab)) {
    let before = tree(&lab.work);
    let n = lab.take("whole");
    damage(lab);
    assert_ne!(tree(&lab.work), before, "the damage did nothing");
    lab.restore(n, &[]);
    assert_eq!(tree(&lab.work), before);
}

fn wipe(lab: &Lab) {
    lab.sh("find . -mindepth 1 -maxdepth 1 ! -name .git ! -name .gitignore -exec rm -rf {} +; echo new > created");
}

#[test]
fn modes_links_and_empty_directories() {
    let lab = Lab::new();
    for (name, bits) in [("a", 0o600), ("b", 0o750), ("c", 0o444), ("d", 0o4755), ("e", 0o664), ("f", 0o777)] {
        lab.write(name, name);
        mode(&lab, name, bits);
    }
    lab.write("dir/inner/file", "x");
    mode(&lab, "dir/inner", 0o700);
    mode(&lab, "dir", 0o751);
    std::fs::create_dir_all(lab.work.join("empty/deeper")).unwrap();
    symlink("/nowhere/at/all", lab.work.join("dangling")).unwrap();
    symlink("dir", lab.work.join("to-dir")).unwrap();
    symlink(&lab.home, lab.work.join("to-outside")).unwrap();
    comes_back(&lab, wipe);
    comes_back(&lab, |lab| {
        mode(lab, "a", 0o644);
        mode(lab, "dir", 0o700);
        lab.sh("rm dangling && echo x > dangling && rmdir empty/deeper");
    });
}

#[test]
fn names_that_git_does_not_take() {
    let lab = Lab::new();
    let names: [&[u8]; 12] = [
        b"a b",
        b"new\nline",
        b"\xff\xfe",
        b".GIT",
        b"git~1",
        b"a\\.git",
        b".piton",
        b".piton~",
        b"~piton~x",
        b"%41",
        b"-dash",
        b"\x1b[31mred",
    ];
    for name in names {
        std::fs::write(lab.work.join(OsStr::from_bytes(name)), name).unwrap();
    }
    lab.write("sub/.Git/config", "x");
    lab.write("sub/.piton", "x");
    comes_back(&lab, wipe);
    let shown = lab.piton(&["list"]).stdout + &lab.piton(&["show"]).stdout;
    assert!(!shown.contains('\x1b'), "a name reached the terminal as it is");
    if let Some(fsck) = lab.store_git(&["fsck", "--full", "--strict", "--no-dangling"]) {
        assert!(!fsck.contains("warning") && !fsck.contains("error"), "{fsck}");
    }
}

#[test]
fn nested_repositories_are_plain_files_without_their_git() {
    let lab = Lab::new();
    if git(&lab, &["init", "-q", "."]).is_none() {
        return;
    }
    lab.write("nested/file", "n");
    lab.write("unborn/file", "u");
    git(&lab, &["init", "-q", "nested"]);
    git(&lab, &["-C", "nested", "add", "."]);
    git(&lab, &["-C", "nested", "commit", "-qm", "c"]);
    git(&lab, &["init", "-q", "unborn"]);
    lab.write("submodule/.git", "gitdir: ../.git/modules/submodule\n");
    lab.write("submodule/file", "s");
    let outside = lab.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, lab.work.join("to-repo")).unwrap();
    let own = tree(&lab.work.join("nested/.git"));
    let pointer = lab.read("submodule/.git");
    comes_back(&lab, |lab| {
        lab.sh("echo changed > nested/file; rm unborn/file submodule/file; echo y > unborn/other");
    });
    assert_eq!(tree(&lab.work.join("nested/.git")), own);
    assert_eq!(lab.read("submodule/.git"), pointer);
}

#[test]
fn linked_worktrees_are_listed_and_are_workspaces_of_their_own() {
    let lab = Lab::new();
    if git(&lab, &["init", "-q", "."]).is_none() {
        return;
    }
    lab.write("a", "1");
    git(&lab, &["add", "."]);
    git(&lab, &["commit", "-qm", "c"]);
    git(&lab, &["worktree", "add", "-q", "linked"]);
    let n = lab.take("with a worktree");
    assert!(skipped(&lab, n).iter().any(|(path, why)| path == "linked" && why.contains("worktree")));
    assert!(!held(&lab, n).iter().any(|path| path.starts_with("linked")));
    let inside = lab.piton_in(&lab.work.join("linked"), &["checkpoint", "own", "--json"]).json();
    assert_eq!((&inside["checkpoint"]["n"], &inside["checkpoint"]["files"]), (&json!(1), &json!(1)));
}

#[test]
fn what_git_tracks_is_captured_though_ignored_and_the_global_ignore_never_counts() {
    let lab = Lab::new();
    if git(&lab, &["init", "-q", "."]).is_none() {
        return;
    }
    lab.write("tracked.log", "t");
    lab.write("plain.log", "p");
    lab.write("deep/tracked/file", "t");
    lab.write("globally", "g");
    git(&lab, &["add", "tracked.log", "deep/tracked/file"]);
    git(&lab, &["commit", "-qm", "c"]);
    lab.write(".gitignore", "*.log\ndeep/\n");
    lab.write("excluded", "e");
    std::fs::write(lab.work.join(".git/info/exclude"), "excluded\n").unwrap();
    std::fs::create_dir_all(lab.home.join("config/git")).unwrap();
    std::fs::write(lab.home.join("config/git/ignore"), "globally\n").unwrap();
    let n = lab.take("rules");
    assert_eq!(held(&lab, n), [".gitignore", "deep", "deep/tracked", "deep/tracked/file", "globally", "tracked.log"]);
}

#[test]
fn a_path_once_captured_stays_captured() {
    let lab = Lab::new();
    lab.write("data/one", "1");
    lab.take("before the rule");
    lab.write(".gitignore", "data/\n");
    lab.write("data/new", "private");
    lab.write("data/one", "2");
    let n = lab.take("after the rule");
    assert!(holds(&lab, n, "data/one") && !holds(&lab, n, "data/new"));
    lab.write("data/one", "3");
    lab.restore(n, &[]);
    assert_eq!((lab.read("data/one").as_str(), lab.read("data/new").as_str()), ("2", "private"));
}

#[test]
fn large_special_and_unwanted_files_are_listed() {
    let lab = Lab::new();
    lab.write("big", vec![b'x'; 1_000_001]);
    lab.write("ok", "x");
    lab.write(".env", "SECRET=1");
    lab.write("key.pem", "k");
    lab.write(".env.example", "SECRET=");
    lab.sh("mkfifo fifo");
    let _socket = std::os::unix::net::UnixListener::bind(lab.work.join("socket")).unwrap();
    let taken = lab.piton(&["checkpoint", "one", "--json", "--set", "limits.file_mb=1"]).json();
    assert_eq!(taken["checkpoint"]["flags"], json!(["partial"]));
    let names: Vec<String> = skipped(&lab, 1).into_iter().map(|(path, _)| path).collect();
    assert!(!names.iter().any(|name| name == ".env" || name == "key.pem"), "they are private: {names:?}");
    for name in ["big", "fifo", "socket"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not listed: {names:?}");
    }
    assert_eq!(held(&lab, 1), [".env.example", "ok"]);
    lab.write("big", "small now");
    lab.piton(&["checkpoint", "-m", "two", "--set", "limits.file_mb=1"]);
    assert!(holds(&lab, 2, "big"));
    lab.piton(&["show", "two"]);
    lab.write("big", vec![b'y'; 2_000_000]);
    lab.piton(&["checkpoint", "three", "--set", "limits.file_mb=1"]);
    assert!(skipped(&lab, 3).iter().any(|(path, why)| path == "big" && why.contains("too large")));
}

#[test]
fn the_count_guard_is_said() {
    let lab = Lab::new();
    for i in 0..10 {
        lab.write(&format!("d{}/f{i}", i / 5), "x");
    }
    let taken = lab.piton(&["checkpoint", "few", "--json", "--set", "limits.files=5"]).json();
    assert_eq!((&taken["checkpoint"]["files"], &taken["checkpoint"]["flags"]), (&json!(5), &json!(["partial"])));
    assert!(skipped(&lab, 1).iter().any(|(path, why)| path == "d1" && why.contains("limit")), "{:?}", skipped(&lab, 1));
    // A file that the guard left out is not taken for absent.
    lab.write("d0/f0", "changed");
    lab.write("d1/f9", "changed too");
    lab.restore(1, &[]);
    assert_eq!((lab.read("d0/f0").as_str(), lab.read("d1/f9").as_str()), ("x", "changed too"));
}

#[test]
fn default_excludes_need_their_maker() {
    let lab = Lab::new();
    for name in [
        "package.json",
        "node_modules/m/i.js",
        "rust/Cargo.toml",
        "rust/target/debug/x",
        "venv/pyvenv.cfg",
        "venv/lib/y",
        "p/__pycache__/z.pyc",
    ] {
        lab.write(name, "x");
    }
    for name in
        ["other/node_modules/mine", "other/target/mine", "build/a", "dist/b", "out/c", "lib.so", "x.tar.gz", "v.mp4"]
    {
        lab.write(name, "x");
    }
    let n = lab.take("defaults");
    for name in ["node_modules", "rust/target", "venv", "p/__pycache__"] {
        assert!(!held(&lab, n).iter().any(|path| path.starts_with(name)), "{name} was captured");
    }
    for name in
        ["other/node_modules/mine", "other/target/mine", "build/a", "dist/b", "out/c", "lib.so", "x.tar.gz", "v.mp4"]
    {
        assert!(holds(&lab, n, name), "{name} was left out");
    }
}

#[test]
fn configured_excludes_of_the_user_hold() {
    let lab = Lab::new();
    lab.set("exclude: [\"*.bin\", \"/data/\"]\n");
    for name in ["a.bin", "data/x", "sub/data/y", "z"] {
        lab.write(name, "x");
    }
    let n = lab.take("excluded");
    assert_eq!(held(&lab, n), ["sub", "sub/data", "sub/data/y", "z"]);
}

#[test]
fn an_action_aimed_at_a_secret_or_ignored_file_captures_it() {
    let lab = Lab::new();
    lab.write(".gitignore", "cache/\n");
    lab.write(".env", "SECRET=1");
    lab.write("cache/deep/x", "ignored");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let reply = sidecar.ask(json!({"type": "shell.before", "command": "rm -rf .env cache"}));
    let n = reply["checkpoint"]["n"].as_u64().unwrap();
    assert_eq!(reply["checkpoint"]["flags"], json!([]), "{reply}");
    assert_eq!(sidecar.finish(), 0);
    let before = tree(&lab.work);
    lab.sh("rm -rf .env cache");
    lab.restore(n, &[]);
    assert_eq!(tree(&lab.work), before);
    assert!(!holds(&lab, lab.take("later"), ".env"));
}

#[test]
fn the_store_is_never_captured() {
    let lab = Lab::new();
    lab.write("file", "x");
    let home = lab.work.join("inside/piton-home");
    symlink("inside", lab.work.join("alias")).unwrap();
    let run = |home: &Path, label: &str| {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let output = command.env("PITON_HOME", home).args(["checkpoint", label, "--json"]).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["checkpoint"].clone()
    };
    let first = run(&home, "one");
    assert_eq!(first["files"], 2, "{first}");
    assert!(first["skipped"].to_string().contains("own store"), "{first}");
    for label in ["two", "three"] {
        let again = run(&lab.work.join("alias/piton-home"), label);
        assert_eq!((&again["files"], &again["changed"]), (&json!(2), &json!(0)), "{again}");
    }
}

#[test]
fn no_filter_ever_applies() {
    let lab = Lab::new();
    if git(&lab, &["init", "-q", "."]).is_none() {
        return;
    }
    git(&lab, &["config", "core.autocrlf", "true"]);
    git(&lab, &["config", "filter.lfs.clean", "echo pointer"]);
    lab.write(
        ".gitattributes",
        "* text=auto eol=crlf\n*.id ident\n*.lfs filter=lfs\n*.u16 working-tree-encoding=UTF-16LE\n*.merge merge=union\n",
    );
    lab.write("mixed.txt", "a\r\nb\nc\r");
    lab.write("x.id", "$Id$\n");
    lab.write("x.lfs", [0u8, 1, 2, 255]);
    lab.write("x.u16", [b'a', 0, b'\n', 0]);
    comes_back(&lab, wipe);
}

#[test]
fn the_environment_of_git_and_a_missing_git_change_nothing() {
    let lab = Lab::new();
    lab.write("a", "1");
    let run = |path: &str, args: &[&str]| {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let hostile = lab.root().join("hostile");
        command.env("PATH", path).env("GIT_DIR", &hostile).env("GIT_INDEX_FILE", hostile.join("index"));
        command.env("GIT_OBJECT_DIRECTORY", &hostile).env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "core.bare");
        command.env("GIT_CONFIG_VALUE_0", "nonsense").env("GIT_CONFIG_GLOBAL", &hostile).env("GIT_WORK_TREE", "/");
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert!(!hostile.exists());
    };
    run("/nonexistent", &["checkpoint", "one"]);
    lab.write("a", "2");
    run("/nonexistent", &["restore", "1", "--yes"]);
    run("/usr/bin:/bin", &["list"]);
    assert_eq!(lab.read("a"), "1");
    assert!(lab.store().join("HEAD").exists());
}

#[test]
fn changes_of_kind_between_checkpoints() {
    let lab = Lab::new();
    let outside = lab.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "outside").unwrap();
    let far = tree(&outside);
    lab.write("x/f", "dir");
    let mut states = vec![(lab.take("directory"), tree(&lab.work))];
    let target = outside.display().to_string();
    let steps = [
        format!("rm -rf x && ln -s {target} x"),
        "rm x && mkdir x && echo again > x/f".to_owned(),
        "rm -rf x && echo file > x".to_owned(),
        "rm x && mkdir -p x/deep && echo y > x/deep/f".to_owned(),
        "mv x X".to_owned(),
    ];
    for step in &steps {
        lab.sh(step);
        states.push((lab.take(step), tree(&lab.work)));
    }
    for (n, state) in states.iter().rev().chain(&states) {
        lab.piton(&["restore", &n.to_string(), "--yes"]);
        assert_eq!(tree(&lab.work), *state, "checkpoint {n}");
        assert_eq!(tree(&outside), far);
    }
}
