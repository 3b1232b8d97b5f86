//! Many processes at once, on one workspace and on many, while somebody edits; and stores that somebody has damaged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::ends::Ends;
use super::faults::full;
use super::support::{Lab, tree};

const PROCESSES: usize = 16;

/// Checkpoints of each process.
fn each() -> usize {
    if full() { 50 } else { 6 }
}

fn keep_everything(lab: &Lab) {
    let dir = lab.home.join("config/piton");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.yaml"), "retention: {enabled: false}\n").unwrap();
}

/// A shell that does one thing after another and stops at the first failure.
fn worker(lab: &Lab, cwd: &Path, script: &str) -> Child {
    let mut command = lab.command("/bin/sh", cwd);
    command.args(["-euc", script]).env("PITON", env!("CARGO_BIN_EXE_piton"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Gives the numbers that were acknowledged.
fn all_end_well(workers: Vec<Child>) -> BTreeSet<u64> {
    let mut acknowledged = BTreeSet::new();
    for (n, child) in workers.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "process {n}: {:?}: {said}", output.status);
        let numbers = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("\"n\": ")?.trim_end_matches(',').parse::<u64>().ok());
        acknowledged.extend(numbers);
    }
    acknowledged
}

/// Numbers of all listed checkpoints; each of them can be restored.
fn all_come_back(lab: &Lab, cwd: &Path) -> BTreeSet<u64> {
    let list = lab.piton_in(cwd, &["list", "--limit", "5000", "--json"]);
    assert_eq!(list.code, 0, "{list:?}");
    let numbers: Vec<u64> =
        list.json()["checkpoints"].as_array().unwrap().iter().map(|entry| entry["n"].as_u64().unwrap()).collect();
    let unique: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(unique.len(), numbers.len(), "a number was given twice");
    let out = lab.root().join("out");
    for n in &unique {
        let _ = std::fs::remove_dir_all(&out);
        let done = lab.piton_in(cwd, &["restore", &n.to_string(), "--to", out.to_str().unwrap(), "--yes", "--json"]);
        assert_eq!(done.code, 0, "{n}: {done:?}");
    }
    unique
}

fn fsck(lab: &Lab) {
    if let Some(said) = lab.store_git(&["fsck", "--full", "--strict", "--no-dangling"]) {
        assert!(!said.contains("error") && !said.contains("missing"), "{said}");
    }
}

#[test]
fn on_one_workspace_while_somebody_edits() {
    let lab = Lab::new();
    keep_everything(&lab);
    lab.sh("mkdir a b; for i in 1 2 3 4 5 6 7 8; do echo $i > a/$i; echo $i > b/$i; done");
    lab.take("first");
    let done = AtomicBool::new(false);
    let mut acknowledged = BTreeSet::new();
    std::thread::scope(|scope| {
        let _ends = Ends(&done);
        scope.spawn(|| {
            let mut round = 0u64;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                let path = lab.work.join(format!("{}/{}", ["a", "b", "c"][round as usize % 3], round % 8 + 1));
                match round % 5 {
                    0 => drop(std::fs::remove_file(path)),
                    _ => {
                        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                        // A restore may delete the directory in between: then there is no such edit.
                        if let Err(error) = std::fs::write(path, format!("edit {round}")) {
                            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
                        }
                    }
                }
            }
        });
        // Conflicts with the editor (4), nothing to undo (3) and an operation that another process undid first (5, and nothing is
        // done) are answers, not failures.
        let undoing = r#"[ $((i % 9)) = 4 ] && { "$PITON" restore 1 --yes >/dev/null || [ $? = 4 ] || exit 1; }
                         [ $((i % 9)) = 7 ] && { "$PITON" undo --yes >/dev/null || [ $? = 3 ] || [ $? = 4 ] || exit 2; }"#;
        let workers = (0..PROCESSES)
            .map(|n| {
                let between = if n % 4 == 0 { undoing } else { "" };
                let script = format!(
                    "i=0; while [ $i -lt {} ]; do i=$((i+1)); \"$PITON\" checkpoint p{n} --json; {between}\ndone; true",
                    each()
                );
                worker(
                    &lab,
                    &lab.work,
                    &script.replace("[ $? = 3 ] || [ $? = 4 ]", "case $? in 3|4|5) true;; *) false;; esac"),
                )
            })
            .collect();
        acknowledged = all_end_well(workers);
    });
    let numbers = all_come_back(&lab, &lab.work);
    let lost: Vec<&u64> = acknowledged.difference(&numbers).collect();
    assert!(lost.is_empty() && acknowledged.len() > each(), "acknowledged and gone: {lost:?}");
    fsck(&lab);
    println!("crowd: {PROCESSES} processes x {} on one workspace: {} checkpoints", each(), numbers.len());
}

#[test]
fn on_many_workspaces_of_one_store() {
    let lab = Lab::new();
    keep_everything(&lab);
    let dirs: Vec<PathBuf> = (0..PROCESSES).map(|n| lab.root().join(format!("w{n}"))).collect();
    let mut workers = Vec::new();
    for (n, dir) in dirs.iter().enumerate() {
        std::fs::create_dir(dir).unwrap();
        // Half of what they write is the same everywhere: the store shares it.
        let script = format!(
            "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo $i > same; echo {n} $i > own; \"$PITON\" checkpoint --json; done",
            each()
        );
        workers.push(worker(&lab, dir, &script));
    }
    assert_eq!(all_end_well(workers).len(), each(), "every workspace counts for itself");
    for dir in &dirs {
        assert_eq!(all_come_back(&lab, dir).len(), each());
    }
    fsck(&lab);
    println!("crowd: {PROCESSES} workspaces x {} checkpoints in one store", each());
}

/// A lab with two checkpoints: one in a pack, one of loose objects.
fn two() -> (Lab, [super::support::Tree; 2]) {
    let lab = Lab::new();
    lab.sh("mkdir many; for i in $(seq 90); do echo $i > many/$i; done");
    lab.take("in a pack");
    let first = tree(&lab.work);
    lab.write("loose", "objects");
    lab.take("loose");
    let second = tree(&lab.work);
    (lab, [first, second])
}

#[test]
fn what_somebody_does_to_the_store() {
    let first = "$(ls $S/objects/pack/*.idx)";
    let table = [
        ("empty directories go", "rmdir $S/refs/heads $S/objects/info; rm $S/HEAD", true),
        ("packed refs", "git --git-dir=$S pack-refs --all", true),
        ("repacked by git", "git --git-dir=$S repack -adq", true),
        ("collected by git", "git --git-dir=$S gc -q --prune=now", true),
        (
            "a commit-graph and a bitmap",
            "git --git-dir=$S commit-graph write --reachable; git --git-dir=$S repack -adbq",
            true,
        ),
        (
            "stale locks",
            "for f in HEAD config packed-refs index; do : > $S/$f.lock; done; \
                         for k in manual auto pre-restore; do mkdir -p $S/refs/piton/$W/$k; : > $S/refs/piton/$W/$k/3.lock; done",
            true,
        ),
        ("a torn index", &*format!("chmod +w {first}; truncate -s 100 {first}"), true),
        ("a missing index", &*format!("rm -f {first}"), false),
        ("a missing pack", "rm -f $S/objects/pack/*", false),
        ("a missing ref directory", "rm -r $S/refs", false),
        ("missing loose objects", "rm -rf $S/objects/[0-9a-f][0-9a-f]", false),
        ("no configuration", "rm $S/config", true),
        ("no epoch", "rm $S/piton-epoch", true),
        ("no workspace state", "rm -f $H/workspaces/$W/state* $H/workspaces/$W/stamps", true),
    ];
    for (name, damage, whole) in table {
        let (lab, [one, two]) = two();
        let id = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
        let home = lab.home.join("piton");
        lab.sh(&format!("H={}; S=$H/store.git; W={id}; export GIT_CONFIG_GLOBAL=/dev/null\n{damage}", home.display()));
        let list = lab.piton(&["list", "--json"]);
        if whole {
            assert_eq!(list.code, 0, "{name}: {list:?}");
        } else {
            assert!([0, 3, 6].contains(&list.code), "{name}: {list:?}");
        }
        lab.write("after", name);
        let taken = lab.piton(&["checkpoint", "--json"]);
        assert_eq!(taken.code, 0, "{name}: {taken:?}");
        let n = taken.json()["checkpoint"]["n"].as_u64().unwrap();
        assert!(n > 2 || !whole, "{name}: {taken:?}");
        // The new one is whole, whatever was lost: nothing was taken for stored that is not.
        let now = tree(&lab.work);
        let comes_back = |n: u64| {
            let out = lab.root().join("out");
            let _ = std::fs::remove_dir_all(&out);
            let done = lab.piton(&["restore", &n.to_string(), "--to", out.to_str().unwrap(), "--yes", "--json"]);
            (done.code == 0).then(|| tree(&out)).ok_or(done)
        };
        assert_eq!(comes_back(n).as_ref(), Ok(&now), "{name}");
        for (n, expected) in [(1, &one), (2, &two)] {
            match comes_back(n) {
                Ok(tree) => assert_eq!(&tree, expected, "{name}: {n}"),
                Err(done) => {
                    assert!(!whole, "{name}: {n}: {done:?}");
                    let code = done.error();
                    let known = ["incomplete-checkpoint", "store-damaged", "no-such-checkpoint", "pruned"];
                    assert!(known.contains(&code.as_str()), "{name}: {n}: {done:?}");
                }
            }
        }
        // In place, a damaged one changes nothing, or all of it.
        let before = tree(&lab.work);
        let done = lab.piton(&["restore", "1", "--yes", "--json"]);
        let after = tree(&lab.work);
        assert!(after == before || (done.code == 0 && after == one), "{name}: {done:?}");
        assert!(!whole || after == one, "{name}: {done:?}");
    }
}

#[test]
fn a_store_of_a_newer_piton_is_left_alone() {
    let (lab, [one, _]) = two();
    let config = lab.store().join("config");
    let text = std::fs::read_to_string(&config).unwrap();
    // Without the sum that proves this version's own.
    let newer = text.replace("format = 3", "format = 4");
    std::fs::write(&config, &newer[..newer.find("# piton: sum").unwrap()]).unwrap();
    let before = tree(&lab.store());
    for args in [&["list", "--json"][..], &["checkpoint", "--json"], &["restore", "1", "--yes", "--json"]] {
        let refused = lab.piton(args);
        assert_eq!((refused.code, refused.error().as_str()), (6, "store-damaged"), "{args:?}: {refused:?}");
        assert!(refused.stdout.contains("newer piton"), "{refused:?}");
    }
    assert_eq!(tree(&lab.store()), before);
    std::fs::write(&config, text).unwrap();
    lab.restore(1, &[]);
    assert_eq!(tree(&lab.work), one);
}
