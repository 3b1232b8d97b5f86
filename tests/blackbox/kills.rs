//! SIGKILL at random moments, of the command line and of a sidecar at work, on one workspace that goes on living.
//!
//! `PITON_ROUNDS=full` runs 500 rounds, otherwise 40. The moments are drawn from a fixed seed; where they fall in the
//! process is the machine's business, so that every run meets others.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::faults::full;
use super::support::{Lab, Sidecar, Tree, git, tree};

/// Small, fast, the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// All files of a directory, with their bytes: for the user's `.git`.
fn bytes_below(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else {
                all.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    all
}

/// A process that is killed after a while, if it has not ended by then.
fn killed_after(mut command: Command, input: &[u8], after: Duration) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // It may be dead before it has read everything.
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(input);
    // The moment is the test's subject, not its synchronisation.
    std::thread::sleep(after);
    let _ = child.kill();
    child.wait().unwrap();
    drop(stdin);
}

fn edit(lab: &Lab, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let (dir, file) = (random.below(4), random.below(12));
        let path = lab.work.join(format!("d{dir}/f{file}"));
        match random.below(5) {
            0 => drop(std::fs::remove_file(&path)),
            1 => drop(std::fs::remove_dir_all(path.parent().unwrap())),
            _ => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, format!("{}", random.below(1 << 40))).unwrap();
            }
        }
    }
}

/// Every listed checkpoint comes back; those that were acknowledged, with the very bytes.
fn all_come_back(lab: &Lab, taken: &BTreeMap<u64, Tree>, round: u64) {
    let list = lab.piton(&["list", "--limit", "1000", "--json"]);
    assert_eq!(list.code, 0, "round {round}: {list:?}");
    for entry in list.json()["checkpoints"].as_array().unwrap() {
        let n = entry["n"].as_u64().unwrap();
        let out = lab.root().join("out");
        let _ = std::fs::remove_dir_all(&out);
        let done = lab.piton(&["restore", &n.to_string(), "--to", out.to_str().unwrap(), "--yes", "--json"]);
        assert!(done.code == 0, "round {round}: {n}: {done:?}");
        if let Some(expected) = taken.get(&n) {
            assert_eq!(&tree(&out), expected, "round {round}: checkpoint {n}");
        }
    }
    if let Some(said) = lab.store_git(&["fsck", "--full", "--strict", "--no-dangling"]) {
        assert!(!said.contains("error") && !said.contains("missing"), "round {round}: {said}");
    }
}

#[test]
fn at_random_moments() {
    let rounds = if full() { 500 } else { 40 };
    let lab = Lab::new();
    let mut random = Random(0x5eed_1e55);
    if git(&lab, &["init", "-q"]).is_none() {
        return;
    }
    lab.write("d0/f0", "first");
    git(&lab, &["add", "-A"]);
    git(&lab, &["commit", "-qm", "one"]);
    let users = bytes_below(&lab.work.join(".git"));
    let mut taken = BTreeMap::new();
    let (mut interrupted, mut ways) = (0, [0, 0]);
    for round in 0..rounds {
        edit(&lab, &mut random);
        let n = lab.take("acknowledged");
        let before = tree(&lab.work);
        taken.insert(n, before.clone());
        edit(&lab, &mut random);
        let now = tree(&lab.work);
        let target = *taken.keys().nth(random.below(taken.len() as u64) as usize).unwrap();
        let known = lab.piton(&["show", &target.to_string()]).code == 0;
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let mut input = Vec::new();
        let restores = match random.below(4) {
            0 => {
                command.args(["checkpoint", "to be killed"]);
                false
            }
            1 if known => {
                command.args(["restore", &target.to_string(), "--yes"]);
                true
            }
            2 => {
                command.args(["undo", "--yes"]);
                true
            }
            _ => {
                command.arg("sidecar");
                for id in 0..20 {
                    let event =
                        json!({"id": id, "type": "shell.before", "command": "rm -rf d0", "turn": format!("t{id}")});
                    input.extend(
                        format!("{}\n{event}\n", json!({"type": "turn.start", "turn": format!("t{id}")})).bytes(),
                    );
                }
                false
            }
        };
        killed_after(command, &input, Duration::from_micros(random.below(12_000)));
        let status = lab.piton(&["status", "--json"]);
        assert_eq!(status.code, 0, "round {round}: {status:?}");
        // Nothing that a kill leaves behind is called damage.
        for look in [&["list"][..], &["doctor", "--refs"]] {
            let said = lab.piton(look);
            assert_eq!(said.code, 0, "round {round}: {look:?} {said:?}");
        }
        if status.json()["interrupted"].as_array().is_some_and(|list| !list.is_empty()) {
            assert!(restores, "round {round}: {status:?}");
            interrupted += 1;
            let way = random.below(2) as usize;
            ways[way] += 1;
            let done = lab.piton(&["restore", ["--continue", "--abort"][way], "--yes", "--json"]);
            assert_eq!(done.code, 0, "round {round}: {done:?}");
            if way == 1 {
                assert_eq!(tree(&lab.work), now, "round {round}: aborted");
            }
        } else if !restores {
            assert_eq!(tree(&lab.work), now, "round {round}: only a restore changes the workspace");
        }
        // Retention lets old ones go; those that are listed count.
        if round % 20 == 19 || round + 1 == rounds {
            all_come_back(&lab, &taken, round);
        }
    }
    assert_eq!(bytes_below(&lab.work.join(".git")), users, "the user's repository");
    println!("kills: {rounds} rounds, {interrupted} interrupted restores ({} continued, {} aborted)", ways[0], ways[1]);
}

/// Names in the store's directory of packs that begin so and end so.
fn packs(lab: &Lab, begin: &str, end: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(lab.store().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let fits = |name: &str| name.starts_with(begin) && name.ends_with(end);
    found.filter(|path| fits(&path.file_name().unwrap().to_string_lossy())).collect()
}

/// Forty files of a megabyte, and the checkpoint that stores them uncompressed; as if taken an hour ago.
fn large(lab: &Lab, random: &mut Random) -> BTreeMap<u64, Tree> {
    for n in 0..40 {
        let lines: String = (0..50_000).map(|_| format!("{:<8} and so on\n", random.below(100_000))).collect();
        lab.write(&format!("large/f{n}"), lines);
    }
    let taken = BTreeMap::from([(lab.take("large"), tree(&lab.work))]);
    let light = packs(lab, "pack-light-", ".pack");
    assert!(!light.is_empty());
    for path in light {
        let file = std::fs::File::options().read(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_hours(1)).unwrap();
    }
    taken
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_checkpoint() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    let home = lab.home.join("piton");
    let workspace = std::fs::read_dir(home.join("workspaces")).unwrap().next().unwrap().unwrap().path();
    let mut left =
        ["usage", "store.git/piton-epoch", "store.git/piton-packs", "sessions/s"].map(|path| home.join(path));
    left.iter_mut().for_each(|path| path.as_mut_os_string().push(".tmp-1-1"));
    let mut left: Vec<PathBuf> = left.into();
    left.extend(["state.json.tmp-1-1", "runs/r.tmp-1-1"].map(|path| workspace.join(path)));
    left.extend(["store.git.tmp-1-1/objects/00/x", ".removed-0123456789abcdef/log"].map(|path| home.join(path)));
    left.push(workspace.join("fetch-1-1.git/objects/pack/x"));
    for path in &left {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "torn").unwrap();
    }
    lab.write("a", "2");
    lab.take("two");
    left.retain(|path| path.exists());
    assert_eq!(left, [] as [PathBuf; 0]);
}

#[test]
fn while_a_large_checkpoint_is_compressed() {
    let times = if full() { 10 } else { 1 };
    let lab = Lab::new();
    let mut random = Random(0x1197_7ac4);
    let mut taken = large(&lab, &mut random);
    let (mut round, mut done) = (0, 0);
    while done < times {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["checkpoint"]);
        killed_after(command, b"", Duration::from_millis(random.below(400)));
        if round % 5 == 4 {
            // Nobody kills this one: it goes on where the others were.
            lab.take("alive");
            all_come_back(&lab, &taken, round);
        }
        round += 1;
        if packs(&lab, "pack-light-", ".pack").is_empty() {
            done += 1;
            all_come_back(&lab, &taken, round);
            if done < times {
                std::fs::remove_dir_all(lab.work.join("large")).unwrap();
                taken.extend(large(&lab, &mut random));
            }
        }
        assert!(round < 1000, "it never ends");
    }
    lab.take("last");
    assert_eq!(packs(&lab, "tmp_", "").len(), 0);
    println!("kills: {round} rounds");
}

#[test]
fn a_sidecar_compresses_a_large_checkpoint_in_idle_time() {
    let lab = Lab::new();
    let taken = large(&lab, &mut Random(7));
    let size = |lab: &Lab| -> u64 { packs(lab, "pack-", "").iter().map(|path| path.metadata().unwrap().len()).sum() };
    let before = size(&lab);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "hello"}));
    let deadline = Instant::now() + Duration::from_mins(2);
    while !packs(&lab, "pack-light-", "").is_empty() {
        assert!(Instant::now() < deadline, "it is never compressed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(size(&lab) * 2 < before, "{} of {before}", size(&lab));
    drop(sidecar);
    all_come_back(&lab, &taken, 0);
}
