//! `piton watch`: changes are saved, whoever makes them.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, WAIT};

/// A `piton watch` at work, whose lines are read. Its daemon ends with it.
struct Watching<'l> {
    lab: &'l Lab,
    child: Child,
    lines: Receiver<String>,
}

impl Watching<'_> {
    fn start<'l>(lab: &'l Lab, args: &[&str]) -> Watching<'l> {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["watch", "--json"]).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, lines) = channel();
        for stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            let to = to.clone();
            std::thread::spawn(move || {
                BufReader::new(stream).lines().map_while(Result::ok).all(|l| to.send(l).is_ok())
            });
        }
        Watching { lab, child, lines }
    }

    /// Waits for a line.
    fn line(&self, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + WAIT;
        let mut seen = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|error| panic!("{error} after {seen:?}"));
            if wanted(&line) {
                return line;
            }
            seen.push(line);
        }
    }

    /// Waits for the next save.
    fn save(&self) -> Value {
        let line = self.line(|line| line.contains("checkpoint.autosaved"));
        serde_json::from_str::<Value>(&line).unwrap()["checkpoint"].clone()
    }

    fn end(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lab.piton(&["daemon", "stop"]);
    }
}

fn kinds(lab: &Lab) -> Vec<String> {
    let listed = lab.piton(&["list", "--json", "-n", "100"]).json();
    let all = listed["checkpoints"].as_array().unwrap();
    all.iter().map(|one| one["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_uninstall_ends_it_and_names_a_run() {
    let (lab, other) = (Lab::new(), Lab::new());
    let (mut here, mut elsewhere) = (Watching::start(&lab, &[]), Watching::start(&other, &[]));
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["run", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    for watching in [&here, &elsewhere] {
        watching.line(|line| line.contains("watching"));
    }
    let said = BufReader::new(run.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(said.contains("piton takes a checkpoint before commands"), "{said}");
    let gone = lab.piton(&["uninstall", "--all"]);
    assert_eq!(gone.code, 0, "{gone:?}");
    assert!(gone.stdout.contains(&format!("`piton watch` (pid {}) has ended.", here.child.id())), "{gone:?}");
    assert!(gone.stderr.contains(&format!("`piton run` (pid {}) continues", run.id())), "{gone:?}");
    assert_eq!(here.child.wait().unwrap().signal(), Some(15));
    assert!(elsewhere.child.try_wait().unwrap().is_none() && run.try_wait().unwrap().is_none());
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
    // Nothing is left to end, nor a note of it.
    let again = lab.piton(&["uninstall", "--all"]);
    assert!(!again.stdout.contains("piton watch") && !again.stderr.contains("piton run"), "{again:?}");
    assert_eq!(std::fs::read_dir(lab.home.join("piton/at-work")).unwrap().count(), 0);
}

#[test]
fn a_burst_of_deletions_without_any_agent_loses_nothing_that_was_saved() {
    let lab = Lab::new();
    for n in 0..500 {
        lab.write(&format!("src/f{n}"), format!("content {n}"));
    }
    let watching = Watching::start(&lab, &[]);
    let first = watching.save();
    assert_eq!(first["kind"], json!("autosave"), "{first}");
    lab.write("src/f7", "newer");
    let second = watching.save();
    assert_eq!(second["changed"], json!(1), "{second}");
    std::fs::remove_dir_all(lab.work.join("src")).unwrap();
    let third = watching.save();
    assert_eq!(third["changed"], json!(500), "{third}");
    lab.restore(second["n"].as_u64().unwrap(), &[]);
    assert_eq!((lab.read("src/f7"), lab.read("src/f499")), ("newer".to_owned(), "content 499".to_owned()));
    let status = lab.piton(&["status"]);
    assert!(status.stdout.contains("  autosaves (piton watch)  ok  last event"), "{status:?}");
}

#[test]
fn what_changed_last_is_saved_when_the_watch_ends() {
    let lab = Lab::new();
    lab.write("a", "one");
    assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
    let mut watching = Watching::start(&lab, &[]);
    watching.save();
    lab.write("a", "two");
    watching.end();
    // The daemon notices the end, and ends itself only when all is done.
    lab.piton(&["daemon", "stop"]);
    let found = lab.piton(&["find", "a", "--json"]);
    assert_eq!(kinds(&lab), ["autosave", "autosave"], "{found:?}");
    lab.write("a", "three");
    lab.restore(2, &["a"]);
    assert_eq!(lab.read("a"), "two");
}

#[test]
fn a_daemon_that_ends_is_followed_by_another() {
    let lab = Lab::new();
    lab.write("a", "one");
    assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
    let watching = Watching::start(&lab, &[]);
    watching.save();
    // One that was too busy to greet in time was not asked.
    lab.piton(&["daemon", "stop"]);
    lab.write("a", "two");
    let saved = watching.save();
    assert_eq!(saved["n"], json!(2), "{saved}");
}

#[test]
fn while_the_guard_is_off_nothing_is_saved_and_then_everything() {
    let lab = Lab::new();
    lab.write("a", "one");
    let watching = Watching::start(&lab, &[]);
    watching.save();
    assert_eq!(lab.piton(&["off"]).code, 0);
    lab.write("a", "two");
    // Another session's checkpoint shows the order of things: had there been a save of it, this one would be equal to it.
    let mut other = Sidecar::start(&lab, &[]);
    other.ask(json!({"type":"hello","cwd":lab.work}));
    assert_eq!(lab.piton(&["on"]).code, 0);
    let saved = watching.save();
    assert_eq!((saved["n"].clone(), saved["changed"].clone()), (json!(2), json!(1)), "{saved}");
}

#[test]
fn without_a_watcher_the_tree_is_looked_at_again_and_again() {
    let lab = Lab::new();
    lab.set("watcher: none\n");
    lab.write("a", "one");
    let watching = Watching::start(&lab, &[]);
    watching.save();
    lab.write("a", "two");
    assert_eq!(watching.save()["n"], json!(2));
}

#[test]
fn a_file_that_changes_through_its_other_name_is_saved() {
    let lab = Lab::new();
    lab.write("a", "one");
    std::fs::hard_link(lab.work.join("a"), lab.root().join("elsewhere")).unwrap();
    let watching = Watching::start(&lab, &[]);
    watching.save();
    // That name is in no watched directory.
    std::fs::write(lab.root().join("elsewhere"), "two").unwrap();
    let saved = watching.save();
    assert_eq!((saved["n"].clone(), saved["changed"].clone()), (json!(2), json!(1)), "{saved}");
}

#[test]
fn several_directories_are_watched_and_one_that_is_too_broad_is_refused() {
    let lab = Lab::new();
    let (one, two) = (lab.root().join("one"), lab.root().join("two"));
    for dir in [&one, &two] {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("a"), "one").unwrap();
    }
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let watching = Watching::start(&lab, &[&text(&one), &text(&two)]);
    watching.save();
    watching.save();
    std::fs::write(two.join("a"), "two").unwrap();
    watching.save();
    let listed = lab.piton_in(&two, &["list", "--json"]).json();
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 2, "{listed}");
    let refused = lab.piton(&["watch", "--json", &text(&lab.home)]);
    assert_eq!((refused.code, refused.error()), (5, "workspace-refused".to_owned()), "{refused:?}");
    let missing = lab.piton(&["watch", "--json", "/nowhere"]);
    assert_ne!(missing.code, 0, "{missing:?}");
    let flagged = lab.piton(&["watch", "--json", "--set", "guard=off"]);
    assert_eq!(flagged.error(), "bad-request", "{flagged:?}");
}

#[test]
fn a_save_that_fails_is_said_and_tried_again() {
    let lab = Lab::new();
    lab.write("a", "one");
    let watching = Watching::start(&lab, &[]);
    watching.save();
    let away = lab.root().join("away");
    std::fs::rename(&lab.work, &away).unwrap();
    let failed = watching.line(|line| line.contains("checkpoint.failed"));
    assert!(failed.contains("autosave") && failed.contains("reason"), "{failed}");
    std::fs::write(away.join("a"), "two").unwrap();
    std::fs::rename(&away, &lab.work).unwrap();
    assert_eq!(watching.save()["n"], json!(2));
}
