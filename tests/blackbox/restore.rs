//! Bringing files back: exactly what was chosen, nothing else, and never without a way back.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{Lab, Output, Sidecar, Tree, git, id_of, mode, tree};

/// The paths of one list of a reply.
fn paths(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    items.iter().map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}

fn value(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The stable code of the error that `--json` printed.
fn code(output: &Output) -> String {
    value(output)["error"]["code"].as_str().unwrap_or_default().to_owned()
}

fn put(lab: &Lab, path: &str, content: impl AsRef<[u8]>) {
    let path = lab.work.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn get(lab: &Lab, path: &str) -> String {
    std::fs::read_to_string(lab.work.join(path)).unwrap_or_else(|error| format!("<{error}>"))
}

/// Runs a shell script in the workspace.
fn sh(lab: &Lab, script: &str) {
    let output = std::process::Command::new("/bin/sh").args(["-ec", script]).current_dir(&lab.work).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A tree with every kind of thing.
fn every_kind(lab: &Lab) {
    put(lab, "a.txt", "one\n");
    put(lab, "bin/tool", "#!/bin/sh\necho hi\n");
    put(lab, "src/deep/er/mod.rs", "fn main() {}\r\n");
    put(lab, "raw.bin", [0u8, 255, 10, 13, 0, 128]);
    put(lab, "empty", "");
    put(lab, "private", "mine");
    put(lab, "odd name\nwith line", "odd");
    mode(lab, "bin/tool", 0o755);
    mode(lab, "private", 0o600);
    mode(lab, "raw.bin", 0o444);
    std::fs::create_dir_all(lab.work.join("hollow/inner")).unwrap();
    mode(lab, "hollow", 0o750);
    symlink("a.txt", lab.work.join("link")).unwrap();
    symlink("nowhere", lab.work.join("dangling")).unwrap();
}

/// Destroys most of it.
fn wreck(lab: &Lab) {
    sh(
        lab,
        "rm -rf src hollow link; rm -f private raw.bin; echo two > a.txt; chmod 600 bin/tool; rm empty; mkdir empty; \
         echo x > empty/x; rm dangling; echo file > dangling; mkdir new; echo new > new/n; ln -s a.txt newlink",
    );
}

#[test]
fn the_whole_tree_comes_back_exactly_and_undo_brings_the_other_back() {
    let lab = Lab::new();
    every_kind(&lab);
    let before = tree(&lab.work);
    let n = lab.take("all");
    wreck(&lab);
    let wrecked = tree(&lab.work);
    assert_ne!(before, wrecked);
    let done = lab.restore(n, &[]);
    assert_eq!(tree(&lab.work), before);
    for (list, path) in [("created", "private"), ("replaced", "a.txt"), ("deleted", "new/n"), ("created", "hollow")] {
        assert!(paths(&done["done"][list]).contains(&path.to_owned()), "{path} in {list}: {done}");
    }
    assert_eq!(done["done"]["failed"]["total"], 0, "{done}");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(tree(&lab.work), wrecked);
    assert_eq!(lab.piton(&["redo", "--yes"]).code, 0);
    assert_eq!(tree(&lab.work), before);
    let again = lab.piton(&["restore", &n.to_string(), "--yes", "--json"]);
    assert_eq!(again.code, 3, "nothing is left to do: {again:?}");
}

#[test]
fn single_files_and_directories_leave_the_rest_alone() {
    let lab = Lab::new();
    put(&lab, "one/a", "a1");
    put(&lab, "one/sub/b", "b1");
    put(&lab, "two/c", "c1");
    put(&lab, "deep/er/est/d", "d1");
    mode(&lab, "deep/er", 0o700);
    let n = lab.take("start");
    sh(&lab, "rm -rf deep; echo 2 > one/a; rm -r one/sub; echo 2 > two/c; echo new > one/new; echo top > top");
    // One file, whose parents are gone.
    let done = lab.restore(n, &["deep/er/est/d"]);
    assert_eq!((get(&lab, "deep/er/est/d"), get(&lab, "two/c")), ("d1".into(), "2\n".into()));
    assert_eq!(lab.work.join("deep/er").metadata().unwrap().mode() & 0o7777, 0o700, "a missing parent has its mode");
    assert!(paths(&done["done"]["created"]).contains(&"deep/er/est/d".to_owned()));
    // One file that is there.
    lab.restore(n, &["one/a"]);
    assert_eq!((get(&lab, "one/a"), lab.work.join("one/sub").exists()), ("a1".into(), false));
    // A directory: everything in it, and what was created in it since goes.
    let done = lab.restore(n, &["one"]);
    assert_eq!(get(&lab, "one/sub/b"), "b1");
    assert_eq!(paths(&done["done"]["deleted"]), ["one/new"]);
    assert_eq!((get(&lab, "two/c"), get(&lab, "top")), ("2\n".into(), "top\n".into()));
    // From a sub-directory, paths are meant from there.
    let inside = lab.work.join("two");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_piton"))
        .args(["restore", &n.to_string(), "c", "--yes"])
        .current_dir(inside)
        .env_clear()
        .envs([("HOME", &lab.home), ("PITON_HOME", &piton_home(&lab))])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!((get(&lab, "two/c"), get(&lab, "top")), ("c1".into(), "top\n".into()));
}

/// Returns where the lab's store is.
fn piton_home(lab: &Lab) -> PathBuf {
    let status = value(&lab.piton(&["status", "--json"]));
    Path::new(status["store"].as_str().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn unchanged_files_keep_inode_and_time() {
    let lab = Lab::new();
    let year_2001 = SystemTime::UNIX_EPOCH + Duration::from_secs(981_173_106);
    for i in 0..300 {
        put(&lab, &format!("d{}/f{i}", i % 7), format!("file {i}\n"));
        let file = std::fs::File::options().write(true).open(lab.work.join(format!("d{}/f{i}", i % 7))).unwrap();
        file.set_modified(year_2001).unwrap();
    }
    let facts = || -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let all = tree(&lab.work).into_keys().filter(|path| lab.work.join(path).is_file());
        all.map(|path| {
            let facts = lab.work.join(&path).metadata().unwrap();
            (path, (facts.ino(), facts.mtime(), facts.mtime_nsec()))
        })
        .collect()
    };
    let before = facts();
    let n = lab.take("old");
    put(&lab, "d3/f3", "changed\n");
    let done = lab.restore(n, &[]);
    assert_eq!(paths(&done["done"]["replaced"]), ["d3/f3"]);
    assert_eq!(get(&lab, "d3/f3"), "file 3\n");
    let differing: Vec<PathBuf> =
        facts().into_iter().filter(|(path, fact)| before[path] != *fact).map(|(path, _)| path).collect();
    assert_eq!(differing, [PathBuf::from("d3/f3")]);
}

#[test]
fn the_users_repository_is_never_touched() {
    let lab = Lab::new();
    put(&lab, "a", "1\n");
    if git(&lab, &["init", "-q"]).is_none() {
        return;
    }
    let git = |args: &[&str]| git(&lab, args).unwrap();
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let n = lab.take("first");
    put(&lab, "a", "2\n");
    git(&["commit", "-qam", "second"]);
    put(&lab, "a", "stashed\n");
    git(&["stash", "-q"]);
    put(&lab, "staged", "s\n");
    git(&["add", "staged"]);
    let words = || {
        ["rev-parse HEAD", "for-each-ref", "reflog", "stash list", "count-objects -v", "ls-files -s"]
            .map(|line| git(&line.split(' ').collect::<Vec<_>>()))
    };
    let (said, bytes) = (words(), tree(&lab.work.join(".git")));
    lab.restore(n, &[]);
    assert_eq!(get(&lab, "a"), "1\n");
    assert_eq!(tree(&lab.work.join(".git")), bytes);
    assert_eq!(words(), said);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(get(&lab, "staged"), "s\n");
    assert_eq!(tree(&lab.work.join(".git")).len(), bytes.len());
}

#[test]
fn files_created_since_go_and_come_back_or_are_kept() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("start");
    put(&lab, "a", "2");
    put(&lab, "output/big.jsonl", "results\n");
    let done = lab.restore(n, &["--keep-new"]);
    assert_eq!((get(&lab, "a"), get(&lab, "output/big.jsonl")), ("1".into(), "results\n".into()));
    assert!(paths(&done["done"]["kept"]).contains(&"output/big.jsonl".to_owned()), "{done}");
    assert_eq!(done["done"]["deleted"]["total"], 0);
    let done = lab.restore(n, &[]);
    assert!(!lab.work.join("output").exists(), "without --keep-new it goes");
    assert!(paths(&done["done"]["deleted"]).contains(&"output/big.jsonl".to_owned()), "{done}");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(get(&lab, "output/big.jsonl"), "results\n");
}

#[test]
fn what_is_ignored_now_survives_although_the_rule_goes() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("no rule");
    put(&lab, ".gitignore", "data/\n");
    put(&lab, "data/x", "precious");
    put(&lab, "a", "2");
    lab.restore(n, &[]);
    assert_eq!((get(&lab, "a"), get(&lab, "data/x")), ("1".into(), "precious".into()));
}

#[test]
fn what_was_never_covered_survives() {
    let lab = Lab::new();
    put(&lab, ".gitignore", "*.log\n/private/\n");
    put(&lab, "package.json", "{}");
    put(&lab, "node_modules/p/index.js", "old");
    put(&lab, "a", "1");
    let n = lab.take("start");
    put(&lab, "a", "2");
    put(&lab, "today.log", "log");
    put(&lab, "private/p", "p");
    put(&lab, "node_modules/p/index.js", "new");
    put(&lab, "node_modules/q/index.js", "q");
    put(&lab, ".env", "TOKEN=1");
    lab.restore(n, &[]);
    assert_eq!(get(&lab, "a"), "1");
    for (path, content) in [
        ("today.log", "log"),
        ("private/p", "p"),
        ("node_modules/p/index.js", "new"),
        ("node_modules/q/index.js", "q"),
        (".env", "TOKEN=1"),
    ] {
        assert_eq!(get(&lab, path), content, "{path}");
    }
}

#[test]
fn a_checkpoint_that_misses_content_is_refused_before_anything_changes() {
    let lab = Lab::new();
    put(&lab, "a", "1\n");
    lab.take("first");
    put(&lab, "b", "what will be lost\n");
    put(&lab, "c", "other\n");
    let n = lab.take("second");
    let shown = value(&lab.piton(&["show", &format!("{n}:b"), "--json"]));
    let id = shown["id"].as_str().unwrap();
    let object = piton_home(&lab).join("store.git/objects").join(&id[..2]).join(&id[2..]);
    sh(&lab, "rm b c; echo 2 > a; echo new > d");
    let before = tree(&lab.work);
    std::fs::remove_file(&object).expect("a small later checkpoint writes loose objects");
    let refused = lab.piton(&["restore", &n.to_string(), "--yes", "--json"]);
    assert_eq!((refused.code, code(&refused).as_str()), (6, "incomplete-checkpoint"), "{refused:?}");
    assert_eq!(tree(&lab.work), before);
    // Not an interrupted one either; and what is whole can be chosen.
    assert_eq!(lab.piton(&["restore", &n.to_string(), "c", "--yes"]).code, 0);
    assert_eq!(get(&lab, "c"), "other\n");
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Random changes, of kinds too.
fn mutate(lab: &Lab, random: &mut Random) {
    for _ in 0..6 {
        let path = lab.work.join(format!("p{}", random.below(6)));
        let is_dir = path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
        if is_dir {
            std::fs::remove_dir_all(&path).unwrap();
        } else if path.symlink_metadata().is_ok() {
            std::fs::remove_file(&path).unwrap();
        }
        let permissions = std::fs::Permissions::from_mode([0o644, 0o755, 0o600, 0o444][random.below(4) as usize]);
        match random.below(6) {
            0 => {}
            1 => symlink(format!("p{}", random.below(6)), &path).unwrap(),
            2 => std::fs::create_dir_all(path.join("empty")).unwrap(),
            3 => {
                std::fs::create_dir_all(path.join("in")).unwrap();
                std::fs::write(path.join("in/side"), format!("{}", random.below(3))).unwrap();
                let closed = std::fs::Permissions::from_mode([0o755, 0o700, 0o750][random.below(3) as usize]);
                std::fs::set_permissions(path.join("in"), closed).unwrap();
            }
            _ => {
                std::fs::write(&path, format!("content {}\n", random.below(4))).unwrap();
                std::fs::set_permissions(&path, permissions).unwrap();
            }
        }
    }
}

#[test]
fn twenty_random_steps_return_to_every_recorded_tree() {
    for seed in [1, 7] {
        let lab = Lab::new();
        let mut random = Random(seed);
        let mut recorded: Vec<(u64, Tree)> = Vec::new();
        for k in 0..4 {
            mutate(&lab, &mut random);
            recorded.push((lab.take(&format!("state {k}")), tree(&lab.work)));
        }
        let (mut undo, mut redo): (Vec<Tree>, Vec<Tree>) = (Vec::new(), Vec::new());
        for step in 0..20 {
            let now = tree(&lab.work);
            let (said, expected) = match random.below(3) {
                0 => {
                    let (n, wanted) = recorded[random.below(4) as usize].clone();
                    if wanted != now {
                        undo.push(now.clone());
                        redo.clear();
                    }
                    (lab.piton(&["restore", &n.to_string(), "--yes"]), wanted)
                }
                1 => match undo.pop() {
                    Some(wanted) => {
                        redo.push(now.clone());
                        (lab.piton(&["undo", "--yes"]), wanted)
                    }
                    None => (lab.piton(&["undo", "--yes"]), now.clone()),
                },
                _ => match redo.pop() {
                    Some(wanted) => {
                        undo.push(now.clone());
                        (lab.piton(&["redo", "--yes"]), wanted)
                    }
                    None => (lab.piton(&["redo", "--yes"]), now.clone()),
                },
            };
            let code = if expected == now { 3 } else { 0 };
            assert_eq!(tree(&lab.work), expected, "seed {seed}, step {step}: {said:?}");
            assert_eq!(said.code, code, "seed {seed}, step {step}: {said:?}");
        }
    }
}

#[test]
fn redo_is_refused_after_something_new_and_names_the_way() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("one");
    put(&lab, "a", "2");
    lab.restore(n, &[]);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(get(&lab, "a"), "2");
    put(&lab, "a", "3");
    lab.take("new");
    let refused = lab.piton(&["redo", "--yes"]);
    assert_eq!((refused.code, get(&lab, "a")), (5, "3".into()), "{refused:?}");
    let (_, named) = refused.stderr.split_once("`piton restore ").unwrap_or_else(|| panic!("{refused:?}"));
    let instead: u64 = named.split('`').next().unwrap().parse().unwrap();
    lab.restore(instead, &[]);
    assert_eq!(get(&lab, "a"), "1", "the checkpoint named instead holds what redo would have brought");
}

#[test]
fn an_undo_makes_the_directories_that_somebody_removed_since() {
    let lab = Lab::new();
    put(&lab, "dir/sub/a", "1");
    lab.take("one");
    put(&lab, "dir/sub/a", "2");
    lab.restore(1, &[]);
    lab.sh("rm -r dir");
    let undone = lab.piton(&["undo", "--yes", "--json"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(get(&lab, "dir/sub/a"), "2");
}

#[test]
fn undo_with_nothing_names_the_checkpoint_before_the_last_destructive_turn() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let none = lab.piton(&["undo", "--yes"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert_eq!(lab.piton(&["redo", "--yes"]).code, 3);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "turn.start", "turn": "t1"}));
    sidecar.send(json!({"id": 2, "type": "shell.before", "command": "rm a"}));
    let n = sidecar.reply(2)["checkpoint"]["n"].as_u64().unwrap();
    assert_eq!(sidecar.finish(), 0);
    let none = lab.piton(&["undo", "--yes"]);
    assert_eq!(none.code, 3);
    assert!(none.stdout.contains(&format!("piton restore {n}")), "{none:?}");
    assert_eq!(get(&lab, "a"), "1");
}

#[test]
fn without_a_terminal_and_a_yes_nothing_happens() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("one").to_string();
    put(&lab, "a", "2");
    put(&lab, "new", "n");
    let before = tree(&lab.work);
    let refused = lab.piton(&["restore", &n]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(
        refused.stdout.contains("  replace   a  +1 -1\n") && refused.stdout.contains("  delete    new  -1\n"),
        "{refused:?}"
    );
    let refused = lab.piton(&["restore", &n, "--json"]);
    assert_eq!((refused.code, paths(&value(&refused)["plan"]["delete"])), (5, vec!["new".to_owned()]));
    let looked = lab.piton(&["restore", &n, "--preview", "--json"]);
    assert_eq!((looked.code, paths(&value(&looked)["plan"]["replace"])), (0, vec!["a".to_owned()]));
    assert_eq!(lab.piton(&["restore", &n, "--preview", "--yes"]).code, 0, "a preview stays one");
    assert_eq!(tree(&lab.work), before);
    let list = value(&lab.piton(&["list", "--json"]));
    assert_eq!(list["total"], 1, "looking leaves no checkpoint behind: {list}");
    lab.restore(&n, &[]);
    let restored = tree(&lab.work);
    assert_eq!(lab.piton(&["undo"]).code, 5);
    assert_eq!(lab.piton(&["undo", "--preview"]).code, 0);
    assert_eq!(tree(&lab.work), restored);
}

#[test]
fn into_another_directory() {
    let lab = Lab::new();
    every_kind(&lab);
    let before = tree(&lab.work);
    let n = lab.take("all").to_string();
    wreck(&lab);
    let wrecked = tree(&lab.work);
    let out = lab.home.parent().unwrap().join("out");
    let to = |dir: &Path, more: &[&str]| {
        let args: Vec<&str> =
            ["restore", &n, "--to", dir.to_str().unwrap(), "--json"].into_iter().chain(more.iter().copied()).collect();
        lab.piton(&args)
    };
    assert_eq!(to(&out.join("absent/below"), &[]).code, 0);
    assert_eq!(tree(&out.join("absent/below")), before);
    std::fs::create_dir(out.join("empty")).unwrap();
    assert_eq!(to(&out.join("empty"), &["src"]).code, 0);
    assert_eq!(tree(&out.join("empty/src")).len(), 3);
    assert!(!out.join("empty/a.txt").exists());
    let full = tree(&out.join("empty"));
    let refused = to(&out.join("empty"), &[]);
    assert_eq!((refused.code, code(&refused).as_str()), (5, "conflict"), "{refused:?}");
    assert_eq!(tree(&out.join("empty")), full);
    // A link as DIR: what it leads to is never filled behind the user's back when something is there.
    symlink("empty", out.join("link")).unwrap();
    assert_ne!(to(&out.join("link"), &[]).code, 0);
    assert_eq!(tree(&out.join("empty")), full);
    symlink("gone", out.join("dangling")).unwrap();
    let refused = to(&out.join("dangling"), &[]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(!out.join("gone").exists());
    assert_eq!(tree(&lab.work), wrecked, "the workspace itself is not touched");
}

#[test]
fn what_could_not_be_saved_stays_and_is_said() {
    let lab = Lab::new();
    put(&lab, "pipe", "file");
    put(&lab, "data", "file");
    put(&lab, "other", "1");
    let n = lab.take("files").to_string();
    sh(&lab, "rm pipe data; mkfifo pipe; mkdir data; echo x > data/x; echo data/ > .gitignore; echo 2 > other");
    let done = lab.piton(&["restore", &n, "--yes", "--json"]);
    assert_eq!(done.code, 4, "{done:?}");
    let failed = paths(&value(&done)["done"]["failed"]);
    assert!(failed.contains(&"pipe".to_owned()) && failed.contains(&"data".to_owned()), "{done:?}");
    assert_eq!((get(&lab, "data/x"), get(&lab, "other")), ("x\n".into(), "1".into()));
    assert_eq!(tree(&lab.work)[Path::new("pipe")].0, '?');
    // Only conflicts are left.
    assert_eq!(lab.piton(&["restore", &n, "--yes"]).code, 4);
}

#[test]
fn nothing_outside_changes_through_a_link() {
    let lab = Lab::new();
    let outside = lab.home.parent().unwrap().join("outside");
    std::fs::create_dir_all(outside.join("sub")).unwrap();
    std::fs::write(outside.join("f"), "outside").unwrap();
    std::fs::write(outside.join("extra"), "extra").unwrap();
    std::fs::write(outside.join("sub/g"), "g").unwrap();
    let safe = tree(&outside);
    put(&lab, "dir/f", "inside");
    put(&lab, "dir/sub/g", "inside g");
    let as_dir = (lab.take("directory"), tree(&lab.work));
    std::fs::remove_dir_all(lab.work.join("dir")).unwrap();
    symlink(&outside, lab.work.join("dir")).unwrap();
    let as_link = (lab.take("link"), tree(&lab.work));
    // One file below what is a link now: the way is blocked.
    let single = lab.piton(&["restore", &as_dir.0.to_string(), "dir/f", "--yes", "--json"]);
    assert_eq!(single.code, 4, "{single:?}");
    assert_eq!((tree(&outside), tree(&lab.work)), (safe.clone(), as_link.1.clone()));
    for _ in 0..2 {
        for (n, wanted) in [&as_dir, &as_link] {
            lab.restore(*n, &[]);
            assert_eq!(tree(&lab.work), *wanted);
            assert_eq!(tree(&outside), safe);
        }
    }
    // dir → file → dir, and a change of case alone.
    sh(&lab, "rm dir; echo file > dir; echo c > Case");
    let as_file = (lab.take("file"), tree(&lab.work));
    sh(&lab, "mv Case case");
    let other_case = (lab.take("case"), tree(&lab.work));
    for (n, wanted) in [&as_dir, &as_file, &as_link, &other_case, &as_file, &as_dir] {
        lab.restore(*n, &[]);
        assert_eq!(tree(&lab.work), *wanted);
        assert_eq!(tree(&outside), safe);
    }
}

#[test]
fn paths_that_make_no_sense_are_refused() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("one").to_string();
    put(&lab, "a", "2");
    let table = [("../x", 2, "bad-path"), ("/etc/passwd", 2, "bad-path"), ("sub/../../x", 2, "bad-path")];
    for (path, exit, word) in table.into_iter().chain([("no/such", 3, "no-such-path")]) {
        let refused = lab.piton(&["restore", &n, path, "--yes", "--json"]);
        assert_eq!((refused.code, code(&refused).as_str()), (exit, word), "{path}: {refused:?}");
    }
    assert_eq!(get(&lab, "a"), "2");
    let absolute = lab.work.join("a");
    assert_eq!(lab.piton(&["restore", &n, absolute.to_str().unwrap(), "--yes"]).code, 0, "absolute and inside is well");
    assert_eq!(get(&lab, "a"), "1");
}

/// A restore of two files that died after the first.
fn interrupted() -> (Lab, Tree, Tree) {
    let lab = Lab::new();
    put(&lab, "a", "a1");
    put(&lab, "b", "b1");
    let target = lab.take("target");
    let old = tree(&lab.work);
    put(&lab, "a", "a2");
    put(&lab, "b", "b2");
    put(&lab, "c", "c2");
    let pre_restore = lab.take("stands for the safety checkpoint");
    let new = tree(&lab.work);
    let id = value(&lab.piton(&["status", "--json"]))["workspace"]["id"].as_str().unwrap().to_owned();
    let line = json!({
        "event": "restoring", "op": "o-1", "kind": "restore", "run": "local", "target": id_of(&lab, target),
        "pre_restore": id_of(&lab, pre_restore), "paths": [], "only": null, "planned": ["a", "b", "c"],
        "keep_new": false, "over": null, "time": "2026-01-01T00:00:00.000Z",
    })
    .to_string();
    let journal = piton_home(&lab).join("workspaces").join(id).join("journal");
    let mut file = std::fs::File::options().append(true).create(true).open(journal).unwrap();
    file.write_all(format!("{:08x} {line}\n", crc32fast::hash(line.as_bytes())).as_bytes()).unwrap();
    put(&lab, "a", "a1");
    (lab, old, new)
}

#[test]
fn an_interrupted_restore_is_said_by_every_verb_and_stops_others() {
    let (lab, _, _) = interrupted();
    let half = tree(&lab.work);
    for args in [&[][..], &["status"], &["list"], &["diff", "1"], &["show", "1"], &["find", "a"], &["checkpoint"]] {
        let said = lab.piton(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(all.contains("interrupted") && all.contains("--continue"), "{args:?}: {said:?}");
    }
    for args in [&["restore", "1", "--yes", "--json"][..], &["undo", "--yes", "--json"], &["redo", "--yes", "--json"]] {
        let refused = lab.piton(args);
        assert_eq!((refused.code, code(&refused).as_str()), (5, "rollback-in-progress"), "{args:?}: {refused:?}");
    }
    assert_eq!(tree(&lab.work), half);
    put(&lab, "more", "m");
    let n = lab.take("checkpoints go on");
    let shown = lab.piton(&["show", &format!("{n}:more")]);
    assert_eq!(shown.stdout, "m");
    put(&lab, "more", "written since");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "hello"}));
    assert_eq!(sidecar.reply(1)["interrupted"][0]["operation"], "o-1");
    sidecar.send(json!({"id": 2, "type": "shell.before", "command": "rm more"}));
    assert_eq!(sidecar.reply(2)["checkpoint"]["status"], "taken");
    sidecar.send(json!({"id": 3, "type": "restore", "sha": "1"}));
    assert_eq!(sidecar.reply(3)["error"]["code"], "rollback-in-progress");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn an_interrupted_restore_is_finished() {
    let (lab, old, new) = interrupted();
    let done = lab.piton(&["restore", "--continue"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(tree(&lab.work), old);
    assert_eq!(lab.piton(&["restore", "--continue"]).code, 3, "it is over");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((undone.code, tree(&lab.work)), (0, new), "{undone:?}");
}

#[test]
fn an_interrupted_restore_is_given_up() {
    let (lab, _, new) = interrupted();
    let done = lab.piton(&["restore", "--abort"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(tree(&lab.work), new);
    assert_eq!(lab.piton(&["restore", "--abort"]).code, 3, "it is over");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 3, "it never was");
}

#[test]
fn what_came_after_the_crash_is_not_taken_along() {
    for (way, content) in [("--continue", "a1"), ("--abort", "a2")] {
        let (lab, _, _) = interrupted();
        // `a` is as the restore left it, `b` as it was before; `c` is edited, `d` is new.
        put(&lab, "c", "edited since");
        put(&lab, "d", "created since");
        let done = lab.piton(&["restore", way, "--json"]);
        assert_eq!(done.code, 4, "{way}: {done:?}");
        let b = content.replace('a', "b");
        assert_eq!((get(&lab, "a"), get(&lab, "b")), (content.to_owned(), b), "{way}: {done:?}");
        assert_eq!((get(&lab, "c"), get(&lab, "d")), ("edited since".into(), "created since".into()), "{way}");
        assert_eq!(paths(&value(&done)["done"]["failed"]), ["c"], "{way}: {done:?}");
        assert_eq!(lab.piton(&["restore", way]).code, 3, "it is over");
        // Nobody was shown a plan, and so none is spoken of.
        let (lab, _, _) = interrupted();
        put(&lab, "c", "edited since");
        let told = lab.piton(&["restore", way]).stdout;
        assert!(told.contains("c  (it changed after the restore was planned)"), "{told}");
        assert!(!told.contains("agreed") && !told.contains("shown"), "{told}");
    }
}

#[test]
fn nothing_is_written_among_pitons_own_files_nor_into_git() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("start").to_string();
    sh(&lab, "mkdir .git other");
    let (home, root) = (piton_home(&lab), lab.root());
    symlink(&home, root.join("link")).unwrap();
    symlink(home.join("workspaces"), lab.work.join("to-workspaces")).unwrap();
    let own = tree(&home);
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let places = [
        text(home.clone()),
        text(home.join("new")),
        text(home.join("new/deeper")),
        text(home.join("store.git/new")),
        text(root.join("link/new")),
        text(root.join("none/../link/new")),
        text(lab.work.join("to-workspaces/../new")),
        text(home.parent().unwrap().to_owned()),
        text(lab.home.join("config/piton")),
        text(lab.home.join("config/piton/new")),
        text(lab.home.join("config")),
        "other/../../home/piton/new".to_owned(),
        ".git/new".to_owned(),
        text(lab.work.join(".git/hooks/new")),
    ];
    for place in &places {
        let refused = lab.piton(&["restore", &n, "--to", place, "--json"]);
        assert_eq!((refused.code, code(&refused).as_str()), (2, "bad-path"), "{place}: {refused:?}");
        let said = lab.piton(&["restore", &n, "--to", place]).stderr;
        assert!(said.contains("piton's own files are there") || said.contains("never writes into a `.git`"), "{said}");
    }
    let new: Vec<PathBuf> = tree(&home).into_keys().filter(|path| !own.contains_key(path)).collect();
    assert!(new.is_empty(), "{new:?}");
    assert!(std::fs::read_dir(lab.work.join(".git")).unwrap().next().is_none());
    // Elsewhere it works as ever, by a link and `..` too.
    sh(&lab, "ln -s other by-link");
    for place in ["by-link/../out", "by-link/sub", "../outside"] {
        let written = lab.piton(&["restore", &n, "--to", place]);
        assert_eq!(written.code, 0, "{place}: {written:?}");
        assert_eq!(std::fs::read_to_string(lab.work.join(place).join("a")).unwrap(), "1", "{place}");
    }
}

#[test]
fn a_deleted_workspace_is_written_elsewhere() {
    let lab = Lab::new();
    every_kind(&lab);
    let before = tree(&lab.work);
    let n = lab.take("all").to_string();
    std::fs::remove_dir_all(&lab.work).unwrap();
    let out = lab.home.join("out");
    let (work, to) = (lab.work.to_str().unwrap().to_owned(), out.to_str().unwrap());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_piton"))
        .args(["restore", &n, "--to", to, "--workspace", &work])
        .current_dir(&lab.home)
        .env_clear()
        .envs([("HOME", lab.home.clone()), ("PITON_HOME", find_home(&lab.home))])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(tree(&out), before);
}

/// The directory that holds the store, wherever the lab put it.
fn find_home(home: &Path) -> PathBuf {
    let mut dirs = vec![home.to_owned()];
    while let Some(dir) = dirs.pop() {
        if dir.join("store.git").is_dir() {
            return dir;
        }
        let below = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        dirs.extend(below.filter(|path| path.is_dir()));
    }
    panic!("there is no store below {}", home.display());
}

#[test]
fn a_secret_that_was_a_target_comes_back_and_goes_again() {
    let lab = Lab::new();
    put(&lab, ".env", "TOKEN=abc\n");
    put(&lab, "a", "1");
    mode(&lab, ".env", 0o600);
    let before = tree(&lab.work);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "shell.before", "command": "rm .env"}));
    let n = sidecar.reply(1)["checkpoint"]["n"].as_u64().unwrap();
    assert_eq!(sidecar.finish(), 0);
    sh(&lab, "rm .env");
    let gone = tree(&lab.work);
    let done = lab.restore(n, &[]);
    assert_eq!(paths(&done["done"]["created"]), [".env"]);
    assert_eq!(tree(&lab.work), before);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(tree(&lab.work), gone);
}

#[test]
fn effects_outside_are_listed_before_and_after() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let old = lab.take("before all").to_string();
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "shell.before", "command": "psql -c 'DELETE FROM users'"}));
    let warned = sidecar.reply(1);
    assert_eq!(warned["warnings"][0]["class"], "database", "{warned}");
    assert_eq!(sidecar.finish(), 0);
    put(&lab, "a", "2");
    let later = lab.take("after it").to_string();
    put(&lab, "a", "3");
    let said =
        |warnings: &Value| warnings.as_array().unwrap().iter().any(|warning| warning["code"] == "external-database");
    let preview = value(&lab.piton(&["restore", &old, "--preview", "--json"]));
    assert!(said(&preview["warnings"]), "{preview}");
    let text = lab.piton(&["restore", &old, "--preview"]).stdout;
    assert!(text.contains("piton cannot undo"), "{text}");
    let unconcerned = value(&lab.piton(&["restore", &later, "--preview", "--json"]));
    assert!(!said(&unconcerned["warnings"]), "it came before that checkpoint: {unconcerned}");
    let done = lab.restore(old, &[]);
    assert!(said(&done["warnings"]), "{done}");
}

#[test]
fn checkpoints_are_found_by_every_name() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let first = lab.take("first label");
    put(&lab, "a", "2");
    let second = lab.take("second");
    let id = id_of(&lab, first);
    let found = |selector: &str| value(&lab.piton(&["show", selector, "--json"]))["n"].as_u64();
    for selector in [first.to_string(), format!("#{first}"), format!("id:{}", &id[..12]), id.clone(), "@{1}".into()] {
        assert_eq!(found(&selector), Some(first), "{selector}");
    }
    assert_eq!((found("first label"), found("@{0}")), (Some(first), Some(second)));
    assert_eq!(value(&lab.piton(&["show", "--json"]))["n"], second);
    let refused = |selector: &str, exit: i32, word: &str| {
        let output = lab.piton(&["restore", selector, "--yes", "--json"]);
        assert_eq!((output.code, code(&output).as_str()), (exit, word), "{selector}: {output:?}");
        value(&output)["error"]["candidates"].as_array().map_or(0, Vec::len)
    };
    refused("99", 3, "no-such-checkpoint");
    refused("no such label", 3, "no-such-checkpoint");
    refused("id:ffffffffffff", 3, "no-such-checkpoint");
    refused("@{x}", 2, "bad-request");
    let shown = value(&lab.piton(&["show", &format!("{first}:a"), "--json"]));
    refused(&format!("id:{}", shown["id"].as_str().unwrap()), 2, "not-a-checkpoint");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "checkpoint.show", "sha": id}));
    let tree_id = sidecar.reply(1)["checkpoint"]["tree"].as_str().unwrap().to_owned();
    assert_eq!(sidecar.finish(), 0);
    refused(&format!("id:{tree_id}"), 2, "not-a-checkpoint");
    put(&lab, "a", "3");
    lab.take("second");
    put(&lab, "a", "4");
    let output = lab.piton(&["restore", "second", "--yes", "--json"]);
    assert_eq!((output.code, get(&lab, "a").as_str()), (0, "3"), "of equal labels the newest: {output:?}");
}

#[test]
fn an_ambiguous_prefix_names_its_candidates() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("one");
    let id = id_of(&lab, n);
    let store = piton_home(&lab).join("store.git").to_str().unwrap().to_owned();
    let Some(text) = git(&lab, &["--git-dir", &store, "cat-file", "commit", &id]) else { return };
    let name = git(&lab, &["--git-dir", &store, "for-each-ref", "--format=%(refname)", "--points-at", &id]).unwrap();
    // The same commit at other times, until the first four digits are the same.
    let committer = text.lines().find(|line| line.starts_with("committer ")).unwrap().to_owned();
    let at: u64 = committer.split(' ').rev().nth(1).unwrap().parse().unwrap();
    let twin = (1..2_000_000u64)
        .map(|more| text.replace(&committer, &committer.replace(&at.to_string(), &(at + more).to_string())))
        .find(|twin| {
            use sha1_checked::Digest;
            let object = format!("commit {}\0{twin}", twin.len());
            let hash = sha1_checked::Sha1::digest(object.as_bytes());
            id.starts_with(&format!("{:02x}{:02x}", hash[0], hash[1]))
        })
        .unwrap();
    let file = lab.home.join("twin");
    std::fs::write(&file, twin).unwrap();
    let args = ["--git-dir", &store, "hash-object", "-t", "commit", "-w", file.to_str().unwrap()];
    let twin = git(&lab, &args).unwrap().trim().to_owned();
    git(&lab, &["--git-dir", &store, "update-ref", &format!("{}-twin", name.trim()), &twin]);
    let output = lab.piton(&["restore", &format!("id:{}", &id[..4]), "--yes", "--json"]);
    assert_eq!((output.code, code(&output).as_str()), (2, "ambiguous-checkpoint"), "{output:?}");
    let candidates = value(&output)["error"]["candidates"].clone();
    let candidates: Vec<&str> = candidates.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(candidates.contains(&id.as_str()) && candidates.contains(&twin.as_str()), "{candidates:?}");
}

#[test]
fn other_workspaces_and_pruned_checkpoints_are_named_as_such() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    let n = lab.take("mine");
    let id = id_of(&lab, n);
    let other = lab.home.parent().unwrap().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("o"), "o").unwrap();
    let named = ["--workspace", other.to_str().unwrap()];
    let output = lab.piton(&["restore", &format!("id:{id}"), "--yes", "--json", named[0], named[1]]);
    assert_eq!((output.code, code(&output).as_str()), (2, "other-workspace"), "{output:?}");
    for k in 2..6 {
        put(&lab, "a", k.to_string());
        let args = ["checkpoint", &format!("state {k}"), "--set", "retention.labelled=2"];
        assert_eq!(lab.piton(&args).code, 0);
    }
    for selector in [n.to_string(), format!("id:{id}")] {
        let output = lab.piton(&["restore", &selector, "--yes", "--json"]);
        assert_eq!((output.code, code(&output).as_str()), (3, "pruned"), "{selector}: {output:?}");
    }
    assert_eq!(get(&lab, "a"), "5");
}

#[test]
fn an_empty_list_of_paths_names_nothing() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    lab.take("start");
    put(&lab, "a", "2");
    let id = id_of(&lab, 1);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "protocol": 1, "client": "test"}));
    for verb in ["rollback.preview", "restore", "rollback.toCheckpoint", "checkpoint.diff"] {
        let reply = sidecar.ask(json!({"type": verb, "sha": id, "from": id, "paths": []}));
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["field"]),
            (&json!("bad-request"), &json!("paths")),
            "{reply}"
        );
    }
    assert_eq!(get(&lab, "a"), "2");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn what_cannot_be_undone_or_redone_is_said_as_it_is() {
    let lab = Lab::new();
    put(&lab, "a", "1");
    lab.take("start");
    let told = |verb: &str| lab.piton(&[verb, "--yes"]).stdout;
    assert!(told("undo").contains("nothing was restored"), "{}", told("undo"));
    assert!(told("redo").contains("nothing was undone in this workspace"), "{}", told("redo"));
    put(&lab, "a", "2");
    assert_eq!(lab.piton(&["restore", "1", "--yes"]).code, 0);
    assert!(told("redo").contains("nothing was undone since the last restore"), "{}", told("redo"));
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    let said = told("undo");
    assert!(
        said.contains("every turn and restore has already been undone") && !said.contains("nothing was restored"),
        "{said}"
    );
    assert_eq!(lab.piton(&["redo", "--yes"]).code, 0);
    assert!(told("redo").contains("has already been redone"), "{}", told("redo"));
}
