//! File systems that stand still or crawl: events are answered on time, and what is finished behind is told.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, lacking, not_allowed};

/// Runs a program of the system's; `None`, said aloud, where it is not there or not allowed.
fn system(program: &str, args: &[&str]) -> Option<()> {
    match Command::new(program).args(args).output() {
        Ok(output) if output.status.success() => Some(()),
        Ok(output) => {
            not_allowed(&format!("`{program}` ({})", String::from_utf8_lossy(&output.stderr).trim()));
            None
        }
        Err(error) => {
            lacking(&format!("{program} ({error})"));
            None
        }
    }
}

/// A file system of its own, which can be made to stand still; it goes on and is unmounted at the end, whatever happens.
struct Freezable(PathBuf);

impl Freezable {
    fn mount(image: &Path, at: &Path) -> Option<Freezable> {
        let file = std::fs::File::create(image).unwrap();
        file.set_len(400 << 20).unwrap();
        system("mkfs.ext4", &["-q", image.to_str().unwrap()])?;
        system("mount", &["-o", "loop", image.to_str().unwrap(), at.to_str().unwrap()])?;
        Some(Freezable(at.to_owned()))
    }

    fn freeze(&self) -> Option<()> {
        system("fsfreeze", &["-f", self.0.to_str().unwrap()])
    }

    fn thaw(&self) {
        let _ = Command::new("fsfreeze").args(["-u", self.0.to_str().unwrap()]).output();
    }
}

impl Drop for Freezable {
    fn drop(&mut self) {
        self.thaw();
        let _ = Command::new("umount").args(["-l", self.0.to_str().unwrap()]).output();
    }
}

fn before(sidecar: &mut Sidecar, turn: &str, command: &str) -> Value {
    sidecar.ask(json!({"type": "turn.start", "turn": turn}));
    sidecar.ask(json!({"type": "shell.before", "command": command, "deadline_ms": 250}))
}

/// Until the clock on which piton notes a request, which moves in ticks, is past the time of the file: what was written within one
/// tick of a request counts as written after it. A file that was looked at is stamped finer than by that clock.
fn past_its_tick(file: &Path) {
    let facts = file.metadata().unwrap();
    let written = facts.ctime() * 1_000_000_000 + facts.ctime_nsec();
    while piton::sys::clock::file_clock() <= written {
        std::thread::yield_now();
    }
}

fn is_settled(notice: &Value) -> bool {
    notice["notice"] == "checkpoint.settled"
}

#[test]
fn a_store_that_stands_still_makes_a_checkpoint_late_and_no_answer() {
    let lab = Lab::new();
    let Some(disk) = Freezable::mount(&lab.root().join("disk.img"), &lab.home) else { return };
    lab.write("f", "before");
    lab.write("g", "before");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
    let first = sidecar.ask(json!({"type": "shell.before", "command": "rm f"}));
    assert_eq!(first["checkpoint"]["status"], "taken", "{first}");
    // The turn's own work is done before the disk stands still.
    sidecar.ask(json!({"type": "status"}));
    for (n, touched) in [None, Some("g")].into_iter().enumerate() {
        lab.write("f", format!("changed {n}"));
        past_its_tick(&lab.work.join("f"));
        if disk.freeze().is_none() {
            return;
        }
        let late = before(&mut sidecar, &format!("late-{n}"), "rm f");
        let status = late["checkpoint"]["status"].clone();
        if let Some(name) = touched {
            lab.write(name, "while it was late");
        }
        // Everything else is answered too.
        let harmless = sidecar.ask(json!({"type": "shell.before", "command": "ls"}));
        disk.thaw();
        assert_eq!((status, &late["proceed"]), (json!("late"), &json!(true)), "{late}");
        assert_eq!(harmless["checkpoint"]["status"], "none");
        let settled = sidecar.notice(is_settled);
        assert_eq!(settled["pending"], late["checkpoint"]["pending"], "{settled}");
        let dirty: Vec<&str> =
            settled["dirty"].as_array().unwrap().iter().filter_map(|item| item["path"].as_str()).collect();
        assert_eq!(dirty, touched.into_iter().collect::<Vec<_>>(), "{settled}");
        let id = settled["checkpoint"]["id"].as_str().unwrap();
        if let Some(stored) = lab.store_git(&["show", &format!("{id}:f")]) {
            assert_eq!(stored, format!("changed {n}"));
        }
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_workspace_that_crawls_makes_a_checkpoint_late_and_no_answer() {
    let lab = Lab::new();
    std::fs::write(lab.user_file(), "watcher: none\n").unwrap();
    (0..6).for_each(|n| lab.write(&format!("d{n}/f"), "x"));
    lab.take("so that only looking is slow");
    // Each listing of a directory waits for a fifth of a second.
    let slowly = ["-f", "-o", "/dev/null", "-e", "trace=getdents64", "-e", "inject=getdents64:delay_enter=200000"];
    let Some(mut sidecar) = Sidecar::start_traced(&lab, &slowly) else { return };
    sidecar.ask(json!({"type": "hello"}));
    let late = before(&mut sidecar, "t1", "rm d0/f");
    assert_eq!(late["checkpoint"]["status"], "late", "{late}");
    let settled = sidecar.notice(is_settled);
    assert_eq!((&settled["pending"], &settled["dirty"]), (&late["checkpoint"]["pending"], &json!([])), "{settled}");
    assert_eq!(sidecar.finish(), 0);
}
