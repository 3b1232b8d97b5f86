//! Losses of a turn that only a capture of its actions has saved: undone, or named with the command that restores them.

use serde_json::json;

use super::support::{Lab, git};
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
