//! The fault harness: every system call that changes something fails, or is the process's last.
//!
//! `strace` injects the fault into the real binary: the Nth call of a kind ends with an error, or with SIGKILL. So each
//! point at which a checkpoint, a restore or an undo can be cut short is met, libgit2's among them, without a line of
//! test code in the product. After each round everything that was ever acknowledged must still be there.
//!
//! `PITON_ROUNDS=full cargo test --test blackbox faults` runs every point with every error; without it a sample. With it,
//! `PITON_FAULT=SIGKILL` (or the name of an error) runs every point with this fault alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::support::{Lab, Output, Tree, lacking, not_allowed, tree};

/// Calls that change files, or make changes durable.
pub(crate) const CALLS: &str = "write,pwrite64,writev,fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,unlink,unlinkat,\
                     mkdir,mkdirat,rmdir,symlink,symlinkat,ftruncate,fallocate,fchmod,fchmodat,?fchmodat2,utimensat,fchown";
/// Calls that open files, for reading or to make them.
const OPENS: &str = "open,openat,openat2,creat";

/// Returns whether every point is tried.
pub(crate) fn full() -> bool {
    std::env::var_os("PITON_ROUNDS").is_some_and(|rounds| rounds == "full")
}

/// Returns whether strace is here and may be used; said aloud where not.
pub(crate) fn strace() -> bool {
    match Command::new("strace").args(["-o", "/dev/null", "true"]).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => not_allowed(&format!("tracing ({})", String::from_utf8_lossy(&output.stderr))),
        Err(error) => lacking(&format!("strace ({error})")),
    }
    false
}

/// Runs piton under strace, perhaps with a fault: its output, with code -1 if it was killed, and how often the busiest thread made one
/// of `calls`.
pub(crate) fn traced(lab: &Lab, cwd: &Path, (calls, fault): (&str, Option<&str>), args: &[&str]) -> (Output, usize) {
    let log = lab.root().join("strace.log");
    let mut command = lab.command("strace", cwd);
    // With it, strace 6.1 injects errors only, and no signals.
    command.args((!fault.is_some_and(|fault| fault.contains(SIGKILL))).then_some("--seccomp-bpf"));
    command.args(["-f", "-qq", "-o"]).arg(&log).arg("-e").arg(format!("trace={calls}"));
    command.args(fault.into_iter().flat_map(|fault| ["-e", fault]));
    let output = command.arg(env!("CARGO_BIN_EXE_piton")).args(args).output().unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in String::from_utf8_lossy(&std::fs::read(log).unwrap()).lines().filter(|line| line.contains('(')) {
        // strace counts each call of each thread by itself.
        *counts.entry(line.split('(').next().unwrap_or("").to_owned()).or_default() += 1;
    }
    let output = Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    (output, counts.into_values().max().unwrap_or_default())
}

/// A lab with two checkpoints, and everything that was acknowledged so far.
struct Scene {
    lab: Lab,
    taken: BTreeMap<u64, Tree>,
}

impl Scene {
    fn new() -> Scene {
        let mut scene = Scene { lab: Lab::new(), taken: BTreeMap::new() };
        first_state(&scene.lab);
        scene.take();
        scene.lab.sh("rm -r sub; ln -sfn b link; printf changed > a; chmod 600 a; mkdir new; printf n > new/file");
        scene
    }

    fn take(&mut self) {
        let n = self.lab.take("acknowledged");
        self.taken.insert(n, tree(&self.lab.work));
    }

    /// Runs piton with a fault; the reply, if it came, and whether it was killed.
    fn run(&self, args: &[&str], fault: &str) -> Output {
        traced(&self.lab, &self.lab.work, (&format!("{CALLS},{OPENS}"), Some(fault)), args).0
    }

    /// Returns how often the busiest thread makes one of `calls` in an undisturbed run.
    fn count(args: &[&str], prepare: fn() -> Scene, calls: &str) -> usize {
        let scene = prepare();
        let (output, count) = traced(&scene.lab, &scene.lab.work, (calls, None), args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
        count
    }

    /// Everything that was acknowledged is there, byte for byte, and git finds no fault with the store.
    fn check(&mut self, round: &str) {
        let list = self.lab.piton(&["list", "--all", "--json"]);
        assert!(list.code == 0 || (list.code == 3 && self.taken.is_empty()), "{round}: {list:?}");
        let listed: Vec<u64> = numbers(&list.json());
        for (n, expected) in &self.taken {
            assert!(listed.contains(n), "{round}: checkpoint {n} is gone: {listed:?}");
            let out = self.lab.root().join("out");
            let _ = std::fs::remove_dir_all(&out);
            let to = out.to_str().unwrap();
            let done = self.lab.piton(&["restore", &n.to_string(), "--to", to, "--yes", "--json"]);
            assert_eq!(done.code, 0, "{round}: {done:?}");
            assert_eq!(&tree(&out), expected, "{round}: checkpoint {n}");
        }
        for n in listed.iter().filter(|n| !self.taken.contains_key(n)) {
            // Recorded but never acknowledged: whole all the same.
            let shown = self.lab.piton(&["show", &n.to_string(), "--json"]);
            assert_eq!(shown.code, 0, "{round}: {shown:?}");
        }
        if let Some(said) = self.lab.store_git(&["fsck", "--full", "--strict", "--no-dangling"]) {
            assert!(!said.contains("error") && !said.contains("missing"), "{round}: {said}");
        }
    }

    /// All goes on: a new checkpoint, and nothing temporary left behind.
    fn goes_on(&mut self, round: &str) {
        self.lab.write("later", round);
        self.take();
        let left = temporary(&self.lab.home.join("piton/store.git/objects"));
        assert!(left.is_empty(), "{round}: {left:?}");
        assert!(temporary(&self.lab.work).is_empty(), "{round}: {:?}", temporary(&self.lab.work));
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    list["checkpoints"].as_array().unwrap().iter().map(|entry| entry["n"].as_u64().unwrap()).collect()
}

fn first_state(lab: &Lab) {
    lab.sh("mkdir -p sub/deep empty; printf one > a; printf two > b; printf x > sub/x; printf y > sub/deep/y; \
            ln -s a link; chmod 750 sub/deep/y; chmod 700 empty");
}

/// Names that only a killed writer leaves.
fn temporary(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("tmp_") || name.starts_with(".piton-tmp") {
                found.push(path.display().to_string());
            }
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            }
        }
    }
    found
}

pub(crate) const SIGKILL: &str = "signal=SIGKILL";
const ERRORS: [&str; 5] = ["error=ENOSPC", "error=EDQUOT", "error=EIO", "error=EACCES", "error=EROFS"];

/// The rounds of one operation: which calls, which fault, the how-many-eth.
fn rounds(args: &[&str], prepare: fn() -> Scene) -> Vec<String> {
    let (writes, opens) = (Scene::count(args, prepare, CALLS), Scene::count(args, prepare, OPENS));
    let mut rounds = Vec::new();
    for n in 1..=writes {
        for fault in std::iter::once(SIGKILL).chain(ERRORS) {
            rounds.push(format!("inject={CALLS}:{fault}:when={n}"));
        }
    }
    for n in 1..=opens {
        for fault in ["error=EMFILE", "error=EIO", "error=EACCES", "error=ENOSPC"] {
            rounds.push(format!("inject={OPENS}:{fault}:when={n}"));
        }
    }
    if full() {
        let only = std::env::var("PITON_FAULT").unwrap_or_default();
        rounds.retain(|round| round.contains(&only));
        return rounds;
    }
    // A sample that meets every call and every fault once in a while.
    let step = rounds.len().div_ceil(24) | 1;
    rounds.into_iter().step_by(step).collect()
}

/// Returns the same fault at half the number of calls; `None` for the first call.
fn earlier(fault: &str) -> Option<String> {
    let (calls, when) = fault.rsplit_once('=')?;
    let half = when.parse::<usize>().ok()? / 2;
    (half > 0).then(|| format!("{calls}={half}"))
}

fn run_all(name: &str, args: &[&str], prepare: fn() -> Scene, judge: fn(&mut Scene, &Output, &Tree, &str)) {
    if !strace() {
        return;
    }
    let rounds = rounds(args, prepare);
    let (mut kills, mut killed) = (0, 0);
    for fault in &rounds {
        kills += usize::from(fault.contains(SIGKILL));
        let mut next = Some(fault.clone());
        while let Some(fault) = next.take() {
            let mut scene = prepare();
            let before = tree(&scene.lab.work);
            let output = scene.run(args, &fault);
            killed += usize::from(output.code == -1);
            let round = format!("{name} {fault}");
            judge(&mut scene, &output, &before, &round);
            scene.check(&round);
            scene.goes_on(&round);
            // A sample has few kills: one at a call that this run did not make is tried again at an earlier call.
            next = (!full() && fault.contains(SIGKILL) && output.code != -1).then(|| earlier(&fault)).flatten();
        }
    }
    // The last calls are made in some runs only, by one thread or by several.
    assert!(2 * killed >= kills, "{name}: of {kills} kills only {killed} came");
    println!("faults: {name}: {} rounds with {killed} kills, all well", rounds.len());
}

/// A failure says what to do, with a stable code; what was killed says nothing.
fn is_said(output: &Output, round: &str) {
    if output.stdout.trim().is_empty() {
        return;
    }
    // A report whose own writing failed may be cut.
    if let Ok(value) = serde_json::from_str::<Value>(&output.stdout)
        && output.code != 0
        && value["error"].is_object()
    {
        let code = value["error"]["code"].as_str().unwrap_or_default();
        assert!(
            !code.is_empty() && code != "internal" || round.contains("EIO") || round.contains("EMFILE"),
            "{round}: {output:?}"
        );
    }
}

/// Returns which way out of an interrupted restore a round takes: both, by turns.
fn forward(round: &str) -> bool {
    round.bytes().map(u32::from).sum::<u32>().is_multiple_of(2)
}

fn path_of(item: &Value) -> &str {
    item["path"].as_str().or(item.as_str()).unwrap()
}

fn judge_take(scene: &mut Scene, output: &Output, before: &Tree, round: &str) {
    assert_eq!(&tree(&scene.lab.work), before, "{round}: taking a checkpoint changed the workspace");
    is_said(output, round);
    if let Ok(value) = serde_json::from_str::<Value>(&output.stdout)
        && let Some(n) = value["checkpoint"]["n"].as_u64()
    {
        assert_eq!(output.code, 0, "{round}: {output:?}");
        // A file that could not be opened is listed as a gap, and nothing else is missing.
        let gaps: Vec<&str> = value["checkpoint"]["skipped"]["items"].as_array().unwrap().iter().map(path_of).collect();
        let held = before.iter().filter(|(path, _)| !gaps.iter().any(|gap| path.starts_with(gap)));
        scene.taken.insert(n, held.map(|(path, what)| (path.clone(), what.clone())).collect());
    }
}

#[test]
fn a_small_checkpoint() {
    run_all("small checkpoint", &["checkpoint", "--json"], Scene::new, judge_take);
}

#[test]
fn a_checkpoint_with_a_pack() {
    fn prepare() -> Scene {
        let scene = Scene::new();
        scene.lab.sh("mkdir many; for i in $(seq 80); do printf $i > many/$i; done");
        scene
    }
    run_all("checkpoint with a pack", &["checkpoint", "--json"], prepare, judge_take);
}

#[test]
fn the_very_first_checkpoint() {
    fn prepare() -> Scene {
        let scene = Scene { lab: Lab::new(), taken: BTreeMap::new() };
        first_state(&scene.lab);
        scene
    }
    run_all("first checkpoint", &["checkpoint", "--json"], prepare, judge_take);
}

/// A store with a checkpoint that was deleted, so that maintenance has something to delete and to pack.
fn with_garbage() -> Scene {
    let mut scene = Scene::new();
    scene.lab.sh("for i in $(seq 40); do printf $i > new/$i; done");
    scene.lab.take("to be deleted");
    scene.lab.sh("rm -r new; printf more > b");
    scene.take();
    assert_eq!(scene.lab.piton(&["delete", "2", "--yes"]).code, 0);
    scene
}

fn judge_upkeep(scene: &mut Scene, output: &Output, before: &Tree, round: &str) {
    assert_eq!(&tree(&scene.lab.work), before, "{round}: maintenance changed the workspace");
    is_said(output, round);
    // The next one does what is left, and leaves nothing temporary.
    let next = scene.lab.piton(&["prune", "--yes", "--json"]);
    assert!([0, 3].contains(&next.code), "{round}: {next:?}");
    let left = temporary(&scene.lab.home.join("piton/store.git/objects"));
    assert!(left.is_empty(), "{round}: {left:?}");
}

#[test]
fn a_prune() {
    run_all("prune", &["prune", "--yes", "--json"], with_garbage, judge_upkeep);
}

#[test]
fn a_deletion() {
    fn prepare() -> Scene {
        let mut scene = Scene::new();
        scene.lab.take("to be deleted");
        scene.lab.sh("printf more > b");
        scene.take();
        scene
    }
    run_all("deletion", &["delete", "2", "--yes", "--json"], prepare, judge_upkeep);
}

/// A tree is wholly the one or the other, or the restore is reported as interrupted and both ways out end right.
fn judge_restore(scene: &mut Scene, output: &Output, before: &Tree, round: &str) {
    is_said(output, round);
    let target = scene.taken[&1].clone();
    let now = tree(&scene.lab.work);
    let status = scene.lab.piton(&["status", "--json"]);
    let interrupted = status.json()["interrupted"].as_array().is_some_and(|list| !list.is_empty());
    if interrupted {
        let forward = forward(round);
        let way = if forward { "--continue" } else { "--abort" };
        let done = scene.lab.piton(&["restore", way, "--yes", "--json"]);
        assert_eq!(done.code, 0, "{round}: {done:?}");
        let ended = tree(&scene.lab.work);
        assert_eq!(&ended, if forward { &target } else { before }, "{round}: {way}: {done:?}");
    } else {
        is_one_or_the_other(output, (&now, before, &target), round);
    }
    // The content from before is in a checkpoint in every case.
    if tree(&scene.lab.work) == target {
        let undone = scene.lab.piton(&["undo", "--yes", "--json"]);
        assert_eq!(undone.code, 0, "{round}: {undone:?}");
        assert_eq!(&tree(&scene.lab.work), before, "{round}: the undo");
    }
}

/// Done in part is only what is reported as such: every path that differs from the target is listed with its reason.
fn is_one_or_the_other(output: &Output, (now, before, target): (&Tree, &Tree, &Tree), round: &str) {
    if output.code == 4 {
        let report = output.json();
        let lists =
            [&report["done"]["kept"], &report["done"]["failed"], &report["plan"]["keep"], &report["plan"]["conflict"]];
        let listed: Vec<&str> =
            lists.iter().filter_map(|list| list["items"].as_array()).flatten().map(path_of).collect();
        let differing = now.keys().chain(target.keys()).filter(|path| now.get(*path) != target.get(*path));
        for path in differing {
            assert!(
                listed.iter().any(|known| path.starts_with(known)),
                "{round}: {} is not told: {report}",
                path.display()
            );
        }
        return;
    }
    assert!(now == before || now == target, "{round}: neither the old nor the new tree: {output:?}\n{now:#?}");
    if output.code == 0 && output.stdout.contains("\"operation\"") {
        assert_eq!(now, target, "{round}: {output:?}");
    }
}

#[test]
fn a_restore() {
    run_all("restore", &["restore", "1", "--yes", "--json"], Scene::new, judge_restore);
}

#[test]
fn an_undo() {
    /// Undoing a restore: the tree is at 1 and goes back to what was before.
    fn prepare() -> Scene {
        let mut scene = Scene::new();
        let before = tree(&scene.lab.work);
        scene.lab.restore(1, &[]);
        // The judge calls the aim `1`: here it is the state before the restore.
        scene.taken.insert(2, before);
        scene
    }
    fn judge(scene: &mut Scene, output: &Output, before: &Tree, round: &str) {
        let aim = scene.taken[&2].clone();
        is_said(output, round);
        let status = scene.lab.piton(&["status", "--json"]);
        if status.json()["interrupted"].as_array().is_some_and(|list| !list.is_empty()) {
            let forward = forward(round);
            let done = scene.lab.piton(&["restore", if forward { "--continue" } else { "--abort" }, "--yes", "--json"]);
            assert_eq!(done.code, 0, "{round}: {done:?}");
            assert_eq!(&tree(&scene.lab.work), if forward { &aim } else { before }, "{round}: {done:?}");
        } else {
            let now = tree(&scene.lab.work);
            is_one_or_the_other(output, (&now, before, &aim), round);
        }
    }
    run_all("undo", &["undo", "--yes", "--json"], prepare, judge);
}
