//! Losses of a turn that only a capture of its actions has saved: undone, or named with the command that restores them.

use std::time::Instant;

use serde_json::json;

use super::support::{Lab, WAIT, git};
use super::turns::{Agent, changed, lab_with, listed, redo, undo, words};

/// A file over the limit of these labs.
fn large(fill: u8) -> Vec<u8> {
    vec![fill; 3 << 20]
}

/// Runs a command that an action of the agent has announced.
fn run(agent: &mut Agent, lab: &Lab, command: &str) {
    agent.actions += 1;
    let action = format!("a{}", agent.actions);
    let reply = agent.ask(json!({"type": "shell.before", "command": command, "action": action, "cwd": lab.work}));
    assert_eq!(reply["proceed"], true, "{reply}");
    lab.sh(command);
    agent.after(&action);
}

#[test]
fn a_named_file_that_the_turns_beginning_left_out_is_undone_and_redone() {
    for (path, command) in [
        ("data", "rm data"),
        ("data", "echo x > data"),
        ("big.log", "rm big.log"),
        ("big.log", "echo x > big.log"),
        ("disk.iso", "rm disk.iso"),
    ] {
        // Elsewhere `rm` takes nothing that a person could miss.
        let Some(lab) = Lab::lasting() else { return };
        lab.write("f", "f 0\n");
        lab.set("limits: {file_mb: 1}\nignored: {file_mb: 1}\nexclude: ['*.iso']\n");
        lab.write(".gitignore", "*.log\n");
        ["data", "big.log", "disk.iso"].iter().for_each(|name| lab.write(name, large(b'x')));
        let mut agent = Agent::new(&lab, "s");
        agent.start("t1");
        agent.edit(&lab, "f", "accepted\n");
        agent.end();
        agent.start("t2");
        run(&mut agent, &lab, command);
        agent.end();
        let after = std::fs::read(lab.work.join(path)).ok();
        let done = undo(&lab, &[]);
        assert_eq!(changed(&done), words(&[path]), "{command}: {done}");
        assert!(std::fs::read(lab.work.join(path)).unwrap() == large(b'x'), "{command}");
        assert_eq!(lab.read("f"), "accepted\n", "{command}");
        redo(&lab);
        assert_eq!(std::fs::read(lab.work.join(path)).ok(), after, "{command}");
        undo(&lab, &[]);
        assert_eq!(changed(&undo(&lab, &[])), words(&["f"]), "{command}: the older turn comes next");
    }
}

#[test]
fn the_end_of_a_turn_lists_what_it_lost_outside_of_all_workspaces() {
    // Elsewhere `rm` takes nothing that a person could miss.
    let Some(lab) = Lab::lasting() else { return };
    lab.set("secrets: never\n");
    let outside = lab.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in [".env", "plain"] {
        std::fs::write(outside.join(name), "x").unwrap();
    }
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    run(&mut agent, &lab, &format!("rm '{}'", outside.join("plain").display()));
    let ended = agent.ask(json!({"type": "turn.end"}));
    assert_eq!(ended.get("notices"), None, "it is saved: {ended}");
    agent.start("t2");
    run(&mut agent, &lab, &format!("rm '{}'", outside.join(".env").display()));
    let ended = agent.ask(json!({"type": "turn.end"}));
    let said = ended["notices"][0].as_str().unwrap_or_default();
    assert!(said.contains("not saved") && said.contains("outside/.env"), "{ended}");
}

#[test]
fn a_persons_edit_of_mid_turn_comes_back_where_the_turn_destroyed_it() {
    let lab = lab_with(&["f", "notes"]);
    let (Some(_), Some(_), Some(_)) =
        (git(&lab, &["init"]), git(&lab, &["add", "."]), git(&lab, &["commit", "-m", "one"]))
    else {
        return;
    };
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "f", "of the agent\n");
    lab.write("notes", "of a person\n");
    run(&mut agent, &lab, "rm notes");
    agent.end();
    let done = undo(&lab, &[]);
    assert_eq!(changed(&done), words(&["f", "notes"]), "{done}");
    assert_eq!([lab.read("f"), lab.read("notes")], ["f 0\n", "of a person\n"]);
    // Created by a person in mid-turn.
    agent.start("t2");
    agent.edit(&lab, "f", "again\n");
    lab.write("draft", "a draft\n");
    run(&mut agent, &lab, "rm draft");
    agent.end();
    let diff = lab.piton(&["diff", "--turn", "t2"]);
    assert!(diff.stdout.contains("draft") && diff.stdout.contains("-a draft"), "{diff:?}");
    undo(&lab, &[]);
    assert_eq!(lab.read("draft"), "a draft\n");
}

#[test]
fn an_undo_stops_once_at_a_turn_that_it_cannot_restore() {
    let lab = lab_with(&["f"]);
    lab.set("limits: {file_mb: 1}\n");
    lab.write("data", large(b'x'));
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "f", "f 1\n");
    agent.end();
    agent.start("t2");
    agent.shell(&lab, || std::fs::remove_file(lab.work.join("data")).unwrap());
    agent.end();
    for _ in 0..2 {
        let preview = lab.piton(&["undo", "--preview"]);
        assert!(preview.stdout.contains("`piton recover data`"), "a preview passes nothing: {preview:?}");
    }
    let stopped = lab.piton(&["undo", "--yes", "--json"]);
    assert_eq!((stopped.code, lab.read("f")), (4, "f 1\n".into()), "{stopped:?}");
    let named = listed(&stopped.json()["plan"]["conflict"]);
    assert!(named["data"].contains("`piton recover data`"), "{named:?}");
    let next = lab.piton(&["undo", "--yes"]);
    assert_eq!((next.code, lab.read("f")), (0, "f 0\n".into()), "{next:?}");
    assert!(next.stdout.contains("`piton diff --turn t-2`"), "{next:?}");
    let turns = lab.piton(&["turns", "--json"]).json();
    assert_eq!(turns["turns"][0]["undone"], false, "{turns}");
}

/// A background job that deletes `src` when the test writes to its FIFO.
struct Job {
    fifo: std::path::PathBuf,
    command: String,
}

impl Job {
    fn new(lab: &Lab) -> Job {
        let fifo = lab.root().join("go");
        lab.sh(&format!("mkfifo '{}'", fifo.display()));
        // It holds none of the test's own streams.
        let command = format!("(read word < '{}'; rm -r src) < /dev/null > /dev/null 2>&1 &", fifo.display());
        Job { fifo, command }
    }

    fn deletes(&self, lab: &Lab) {
        std::fs::write(&self.fifo, "go\n").unwrap();
        let until = Instant::now() + WAIT;
        while lab.work.join("src").exists() {
            assert!(Instant::now() < until, "the job does nothing");
            std::thread::yield_now();
        }
    }
}

#[test]
fn deletions_of_a_job_after_its_turn_are_listed_with_a_command() {
    // The turn has changed a file or none; the job goes on at once, or during a later turn.
    for (edits, is_later) in [(true, false), (false, false), (true, true)] {
        let lab = lab_with(&["f", "src/a", "src/b"]);
        let job = Job::new(&lab);
        let mut agent = Agent::new(&lab, "s");
        agent.start("t1");
        if edits {
            agent.edit(&lab, "f", "f 1\n");
        }
        run(&mut agent, &lab, &job.command);
        agent.end();
        if is_later {
            agent.start("t2");
        }
        job.deletes(&lab);
        if is_later {
            agent.edit(&lab, "g", "g\n");
            agent.end();
            assert_eq!(changed(&undo(&lab, &[])), words(&["g"]));
        }
        let restore = "deleted after the end of the turn, while `sh` from the turn was still running";
        let diff = lab.piton(&["diff", "--turn", "t1"]);
        assert!(diff.stdout.contains(restore) && diff.stdout.contains("piton restore"), "{edits} {is_later}: {diff:?}");
        let undone = lab.piton(&["undo", "--yes"]);
        assert_eq!(undone.code, 4, "{edits} {is_later}: {undone:?}");
        assert_eq!(lab.read("f"), "f 0\n", "{undone:?}");
        let command = undone.stdout.split('`').find(|part| part.starts_with("piton restore")).map(str::to_owned);
        let command = command.unwrap_or_else(|| panic!("no command: {undone:?}"));
        assert!(!lab.work.join("src").exists());
        let mut args: Vec<&str> = command.split(' ').skip(1).collect();
        args.push("--yes");
        let restored = lab.piton(&args);
        assert_eq!((restored.code, lab.read("src/a"), lab.read("src/b")), (0, "src/a 0\n".into(), "src/b 0\n".into()));
        let more = lab.piton(&["undo", "--yes", "--json"]).json();
        assert_eq!(more["over"]["kind"], "restore", "nothing of the turn is left: {more}");
    }
}

#[test]
fn a_persons_deletion_after_a_turn_without_a_job_is_not_listed() {
    let lab = lab_with(&["f", "src/a"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "f", "f 1\n");
    run(&mut agent, &lab, "sh -c :");
    agent.end();
    lab.sh("rm -r src");
    let undone = lab.piton(&["undo", "--yes"]);
    assert!(undone.code == 0 && !undone.stdout.contains("src"), "{undone:?}");
}
