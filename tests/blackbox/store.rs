//! The store: a plain git repository that nobody's own `.git` knows of.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::{Lab, git};

/// Every file below a directory with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { pending.push(path) } else { _ = all.insert(path.clone(), std::fs::read(path).unwrap()) }
        }
    }
    all
}

fn packs(lab: &Lab) -> usize {
    files(&lab.store().join("objects/pack")).keys().filter(|path| path.extension().is_some_and(|e| e == "pack")).count()
}

#[test]
fn ordinary_git_reads_it() {
    let lab = Lab::new();
    lab.write("src/a.txt", "first\n");
    lab.take("one");
    lab.write("src/a.txt", "second\n");
    lab.take("two");
    let Some(log) = lab.store_git(&["log", "--all", "--format=%s"]) else { return };
    assert!(log.contains("manual:- [run:local] one") && log.contains("manual:- [run:local] two"), "{log}");
    let id = lab.piton(&["show", "1", "--json"]).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.store_git(&["show", &format!("{id}:src/a.txt")]).unwrap(), "first\n");
    let message = lab.store_git(&["show", "-s", "--format=%B", &id]).unwrap();
    for line in ["Status: manual", "Ordinal: 1", "Kind: manual", "Timestamp: 2"] {
        assert!(message.contains(line), "{line} is not in {message}");
    }
    let fsck = lab.store_git(&["fsck", "--full", "--strict"]).unwrap();
    assert!(!fsck.contains("error") && !fsck.contains("warning") && !fsck.contains("missing"), "{fsck}");
}

#[test]
fn the_first_checkpoint_is_one_pack_and_small_ones_are_loose() {
    let lab = Lab::new();
    for i in 0..200 {
        lab.write(&format!("d{}/f{i}", i % 9), format!("content {i}"));
    }
    lab.take("first");
    assert_eq!(packs(&lab), 1);
    lab.write("d1/f1", "changed");
    lab.take("second");
    assert_eq!(packs(&lab), 1);
    let before = files(&lab.store()).len();
    for _ in 0..5 {
        assert_eq!(lab.piton(&["checkpoint", "--json"]).json()["checkpoint"]["status"], "unchanged");
    }
    assert_eq!(files(&lab.store()).len(), before, "unchanged checkpoints grow the store");
    if let Some(text) = lab.store_git(&["verify-pack", "-v", &first_index(&lab)]) {
        assert!(text.contains("blob"), "{text}");
    }
}

fn first_index(lab: &Lab) -> String {
    let all = files(&lab.store().join("objects/pack"));
    all.keys().find(|path| path.extension().is_some_and(|e| e == "idx")).unwrap().display().to_string()
}

#[test]
fn the_users_repository_is_never_written() {
    let lab = Lab::new();
    if git(&lab, &["init", "-q", "."]).is_none() {
        return;
    }
    lab.write("a", "1");
    git(&lab, &["add", "."]);
    git(&lab, &["commit", "-qm", "c"]);
    git(&lab, &["init", "-q", "nested"]);
    lab.write("nested/f", "x");
    let before = (files(&lab.work.join(".git")), files(&lab.work.join("nested/.git")));
    for i in 0..15 {
        lab.write("a", format!("{i}"));
        lab.write("nested/f", format!("{i}"));
        let n = lab.take(&format!("round {i}"));
        lab.sh("rm -f a nested/f");
        lab.restore(n, &[]);
        lab.piton(&["undo", "--yes"]);
        lab.piton(&["redo", "--yes"]);
        assert_eq!(lab.read("a"), format!("{i}"));
    }
    assert_eq!((files(&lab.work.join(".git")), files(&lab.work.join("nested/.git"))), before);
}

#[test]
fn it_is_private_and_shared_by_all_workspaces() {
    let lab = Lab::new();
    let content: String = (0..5000).map(|i| format!("{i} ")).collect();
    lab.write("shared", &content);
    lab.take("one");
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("copy"), &content).unwrap();
    let before = files(&lab.store().join("objects")).values().map(Vec::len).sum::<usize>();
    assert_eq!(lab.piton_in(&other, &["checkpoint", "two"]).code, 0);
    let after = files(&lab.store().join("objects")).values().map(Vec::len).sum::<usize>();
    assert!(after - before < 1000, "the same content was stored twice: {before} {after}");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(lab.store().parent().unwrap()), mode(&lab.store())), (0o700, 0o700));
}

#[test]
fn numbers_are_never_used_twice_and_old_checkpoints_go() {
    let lab = Lab::new();
    let few = ["--set", "retention.labelled=3"];
    for i in 1..=6 {
        lab.write("a", format!("{i}"));
        let taken = lab.piton(&[&["checkpoint", "x", "--json"][..], &few].concat()).json();
        assert_eq!(taken["checkpoint"]["n"], i);
    }
    let listed = lab.piton(&["list", "--json"]).json();
    let numbers: Vec<u64> =
        listed["checkpoints"].as_array().unwrap().iter().map(|c| c["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [6, 5, 4]);
    let pruned = lab.piton(&["show", "2", "--json"]);
    assert_eq!((pruned.code, pruned.error().as_str()), (3, "pruned"));
    std::fs::remove_file(lab.home.join("piton/workspaces").join(workspace(&lab)).join("state.json")).unwrap();
    lab.write("a", "later");
    assert_eq!(lab.take("after the state was lost"), 7);
}

fn workspace(lab: &Lab) -> String {
    lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn parts_that_somebody_removed_are_mended_and_broken_refs_are_said() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    std::fs::remove_dir_all(lab.store().join("refs/heads")).unwrap();
    std::fs::remove_file(lab.store().join("HEAD")).unwrap();
    lab.write("a", "2");
    let second = lab.take("two");
    lab.restore(1, &[]);
    assert_eq!(lab.read("a"), "1");
    let leaf = lab.store().join(format!("refs/piton/{}/manual/{second}", workspace(&lab)));
    std::fs::write(&leaf, "").unwrap();
    let listed = lab.piton(&["list"]);
    assert_eq!(listed.code, 6);
    assert!(listed.stderr.contains("the ref is empty") && listed.stdout.contains("one"), "{listed:?}");
    std::fs::remove_dir_all(lab.home.join("piton/workspaces").join(workspace(&lab)).join("stamps")).unwrap_err();
    std::fs::write(lab.home.join("piton/workspaces").join(workspace(&lab)).join("stamps"), "torn").unwrap();
    lab.write("a", "3");
    lab.take("after the stamps were torn");
}
