//! Maintenance of the store that is killed, runs out of space, or has many writers beside it: nothing that is listed is
//! lost.
//!
//! `PITON_ROUNDS=full` kills it 200 times, otherwise 12; and has 16 writers take 50 checkpoints each, otherwise 4 take 12.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dice::Dice;
use super::faults::full;
use super::support::{Lab, Sidecar};

/// A writer: a workspace of its own with a sidecar, and the content of a file by the number of the checkpoint that has it.
struct Writer {
    dir: PathBuf,
    sidecar: Sidecar,
    dice: Dice,
    taken: BTreeMap<u64, String>,
}

impl Writer {
    fn start(lab: &Lab, name: &str, seed: u64) -> Writer {
        let dir = lab.root().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        // The same in every workspace: what one drops, another needs.
        for n in 0..20 {
            std::fs::write(dir.join(format!("common{n}")), format!("common {n}\n").repeat(50)).unwrap();
        }
        let sidecar = Sidecar::start_in(lab, &dir, &[]);
        Writer { dir, sidecar, dice: Dice(seed), taken: BTreeMap::new() }
    }

    fn take(&mut self) -> Duration {
        let text: String = (0..400).map(|_| char::from(b'a' + self.dice.roll(26) as u8)).collect();
        std::fs::write(self.dir.join("state"), &text).unwrap();
        std::fs::write(self.dir.join(format!("common{}", self.dice.roll(20))), &text[..20]).unwrap();
        let from = Instant::now();
        let reply = self.sidecar.ask(json!({"type": "checkpoint.create"}));
        let took = from.elapsed();
        assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
        self.taken.insert(reply["checkpoint"]["n"].as_u64().unwrap(), text);
        took
    }

    /// Fails unless every listed checkpoint has the content that it was taken with.
    fn check(&self, lab: &Lab, fewest: usize) {
        let listed = lab.piton_in(&self.dir, &["list", "--json", "-n", "1000"]).json();
        let listed: Vec<u64> =
            listed["checkpoints"].as_array().unwrap().iter().filter_map(|row| row["n"].as_u64()).collect();
        let known: Vec<&u64> = listed.iter().filter(|n| self.taken.contains_key(n)).collect();
        assert!(known.len() >= fewest.min(self.taken.len()), "{listed:?} of {}", self.taken.len());
        for n in known {
            let shown = lab.piton_in(&self.dir, &["show", &format!("{n}:state")]);
            assert_eq!(shown.stdout, self.taken[n], "checkpoint {n} of {}: {shown:?}", self.dir.display());
        }
    }
}

fn temporary(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            temporary(&path, found);
        } else if name.starts_with("tmp_") || name.contains(".tmp-") {
            found.push(path);
        }
    }
}

fn sound(lab: &Lab) {
    if let Some(said) = lab.store_git(&["fsck", "--full", "--no-dangling"]) {
        assert!(!said.contains("missing") && !said.contains("error"), "{said}");
    }
    let doctor = lab.piton(&["doctor", "--refs"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    let mut left = Vec::new();
    temporary(&lab.home.join("piton"), &mut left);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn kills_of_maintenance_lose_nothing() {
    let rounds = if full() { 200 } else { 12 };
    let lab = Lab::new();
    lab.set("retention: {per_workspace: 12}\n");
    lab.write("a", "of the lab's own workspace");
    lab.take("first");
    let mut writers: Vec<Writer> = (0..2).map(|n| Writer::start(&lab, &format!("w{n}"), 70 + n)).collect();
    let (mut dice, mut ended, is_done) = (Dice(0xdead), 0, AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in &mut writers {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    writer.take();
                }
            });
        }
        // The longest moment follows what a prune takes beside the writers.
        let mut most = Duration::from_millis(200);
        for _ in 0..rounds {
            let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
            command.args(["prune", "--yes", "--json"]).stdout(Stdio::null()).stderr(Stdio::null());
            let (from, after) = (Instant::now(), most.mul_f64(f64::from(dice.roll(1000) as u32) / 900.0));
            let mut child = command.spawn().unwrap();
            // The moment is the test's subject.
            std::thread::sleep(after);
            if child.try_wait().unwrap().is_some() {
                ended += 1;
                most = (most + from.elapsed().min(after)) / 2;
            } else {
                most = (most * 9 + Duration::from_millis(500)) / 10;
                // It may have ended since.
                let _ = child.kill();
                child.wait().unwrap();
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for writer in &mut writers {
        // It never rested, so that retention has hundreds to drop.
        assert_eq!(writer.sidecar.finish(), 0);
        writer.check(&lab, 12);
    }
    assert!([0, 3].contains(&lab.piton(&["prune", "--yes"]).code));
    writers.iter().for_each(|writer| writer.check(&lab, 12));
    sound(&lab);
    let taken: usize = writers.iter().map(|writer| writer.taken.len()).sum();
    println!("maintenance: {} of {rounds} rounds killed, {taken} checkpoints beside them, all well", rounds - ended);
    assert!(ended < rounds, "no round was killed");
}

#[test]
fn many_writers_beside_maintenance_lose_nothing() {
    let (writers, each) = if full() { (16, 50) } else { (4, 12) };
    let lab = Lab::new();
    lab.set("retention: {enabled: false}\n");
    let (left, prunes) = (AtomicU64::new(writers), AtomicU64::new(0));
    let writers: Vec<(Writer, Duration)> = std::thread::scope(|scope| {
        let (lab, left, prunes) = (&lab, &left, &prunes);
        scope.spawn(move || {
            while left.load(Ordering::Relaxed) > 0 {
                let pruned = lab.piton(&["prune", "--yes", "--json"]);
                assert!([0, 3, 4].contains(&pruned.code), "{pruned:?}");
                prunes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let started: Vec<_> = (0..writers)
            .map(|n| {
                scope.spawn(move || {
                    let mut writer = Writer::start(lab, &format!("w{n}"), 1000 + n);
                    let slowest = (0..each).map(|_| writer.take()).max().unwrap();
                    assert_eq!(writer.sidecar.finish(), 0);
                    left.fetch_sub(1, Ordering::Relaxed);
                    (writer, slowest)
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    writers.iter().for_each(|(writer, _)| writer.check(&lab, each));
    sound(&lab);
    let slowest = writers.iter().map(|(_, slowest)| *slowest).max().unwrap();
    println!(
        "{} writers took {each} each beside {} prunes; the slowest checkpoint {slowest:?}",
        writers.len(),
        prunes.load(Ordering::Relaxed)
    );
}

/// Bytes of the files below a directory, as they lie on the disk.
fn objects(lab: &Lab) -> usize {
    let mut count = 0;
    let mut pending = vec![lab.store().join("objects")];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() { pending.push(entry.path()) } else { count += 1 }
        }
    }
    count
}

#[test]
fn lost_refs_delete_nothing() {
    let lab = Lab::new();
    for n in 0..3 {
        lab.write("a", format!("{n}"));
        lab.take(&format!("state {n}"));
    }
    std::fs::remove_dir_all(lab.store().join("refs/piton")).unwrap();
    let before = objects(&lab);
    let pruned = lab.piton(&["prune", "--yes", "--json"]);
    let text = format!("{}{}", pruned.stdout, pruned.stderr);
    assert!(text.contains("are lost") && text.contains("doctor --refs"), "{pruned:?}");
    assert_eq!(objects(&lab), before);
    // A checkpoint that a person has dropped is not lost.
    let lab = Lab::new();
    lab.write("a", "x");
    lab.take("only");
    let gone = lab.piton(&["delete", "1", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    let pruned = lab.piton(&["prune", "--yes", "--json"]);
    assert!(!format!("{}{}", pruned.stdout, pruned.stderr).contains("are lost"), "{pruned:?}");
    let _: Value = pruned.json();
}
