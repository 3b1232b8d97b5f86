//! Failures of other tools, tried here; each test names the report it comes from.

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, git, tree};

fn shell(command: &str) -> Value {
    json!({"type": "shell.before", "command": command})
}

fn size_of(lab: &Lab) -> u64 {
    tree(&lab.home).values().map(|(_, _, bytes)| bytes.len() as u64).sum()
}

/// opencode#33940: undoing session A took back what session B and the user had done.
#[test]
fn two_sessions_on_one_workspace_keep_to_their_own_paths() {
    let lab = Lab::new();
    for (path, text) in [("a/one", "a1"), ("b/one", "b1"), ("mine", "m1")] {
        lab.write(path, text);
    }
    let (mut first, mut second) = (Sidecar::start(&lab, &[]), Sidecar::start(&lab, &[]));
    first.ask(json!({"type": "run.start", "run": "first"}));
    second.ask(json!({"type": "run.start", "run": "second"}));
    for (sidecar, command) in [(&mut first, "rm a/one"), (&mut second, "rm b/one")] {
        sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
        let reply = sidecar.ask(shell(command));
        assert!(["taken", "unchanged"].contains(&reply["checkpoint"]["status"].as_str().unwrap()), "{reply}");
        lab.sh(command);
    }
    lab.write("mine", "m2");
    lab.write("b/new", "b2");
    let listed = first.ask(json!({"type": "checkpoint.list"}));
    let id = listed["checkpoints"].as_array().unwrap().last().unwrap()["id"].clone();
    let done = first.ask(json!({"type": "restore", "sha": id, "paths": ["a"]}));
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!([lab.read("a/one"), lab.read("mine"), lab.read("b/new")], ["a1", "m2", "b2"]);
    assert!(!lab.work.join("b/one").exists());
    let after = tree(&lab.work);
    lab.write("b/new", "b3");
    assert_eq!(first.ask(json!({"type": "undo"}))["ok"], true);
    assert!(!lab.work.join("a/one").exists());
    assert_eq!([lab.read("mine"), lab.read("b/new")], ["m2", "b3"], "others go on in between");
    lab.write("b/new", "b2");
    assert_eq!(first.ask(json!({"type": "redo"}))["ok"], true);
    assert_eq!(tree(&lab.work), after);
    assert_eq!((first.finish(), second.finish()), (0, 0));
}

/// opencode#10287, #32529: undoing a turn without changes went back weeks.
#[test]
fn a_turn_without_changes_has_nothing_to_undo() {
    let lab = Lab::new();
    lab.write("a", "1");
    if git(&lab, &["init", "-q"]).is_none() {
        return;
    }
    git(&lab, &["add", "-A"]);
    git(&lab, &["commit", "-qm", "one"]);
    let mut sidecar = Sidecar::start(&lab, &[]);
    for turn in ["t1", "t2"] {
        sidecar.ask(json!({"type": "turn.start", "turn": turn}));
        assert_eq!(sidecar.ask(shell("ls -l"))["checkpoint"]["status"], "none");
        sidecar.ask(json!({"type": "turn.end", "turn": turn}));
        lab.write("a", turn);
        git(&lab, &["commit", "-qam", turn]);
        let before = tree(&lab.work);
        let undone = sidecar.ask(json!({"type": "undo"}));
        assert_eq!((&undone["ok"], &undone["operation"]), (&json!(true), &Value::Null), "{undone}");
        assert!(undone["message"].as_str().unwrap().contains("nothing"), "{undone}");
        assert_eq!(tree(&lab.work), before);
    }
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 3);
}

/// claude-code#10107: the tool took snapshots of its own snapshots; #20671: a moved file came back by itself.
#[test]
fn an_idle_sidecar_neither_grows_nor_writes() {
    let lab = Lab::new();
    let home = lab.work.join("inside");
    lab.write("a", "1");
    let mut sidecar = Sidecar::start_with(&lab, &[], &[("PITON_HOME", home.to_str().unwrap())]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    assert_eq!(sidecar.ask(shell("mv a b"))["checkpoint"]["files"], 1);
    lab.sh("mv a b");
    sidecar.ask(json!({"type": "turn.end", "turn": "t"}));
    let idle = |sidecar: &mut Sidecar| {
        for _ in 0..200 {
            assert_eq!(sidecar.ask(json!({"type": "ping"}))["ok"], true);
        }
    };
    sidecar.ask(json!({"type": "checkpoint.list"}));
    // A lock file names its last holder.
    let without_locks = || {
        let mut all = tree(&lab.work);
        all.retain(|path, _| !path.ends_with("lock"));
        all
    };
    // Work behind the answers comes to rest, and stays so.
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(2);
    // `ls`, because it does not mind files that go while it looks.
    let listed = || lab.command("ls", &lab.work).args(["-lRi", "--full-time", "-I", "*lock"]).output().unwrap().stdout;
    let (mut last, mut rests) = (listed(), 0);
    while rests < 5 {
        assert!(std::time::Instant::now() < deadline, "it never rests");
        idle(&mut sidecar);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let now = listed();
        rests = if now == last { rests + 1 } else { 0 };
        last = now;
    }
    let before = without_locks();
    idle(&mut sidecar);
    sidecar.ask(json!({"type": "checkpoint.list"}));
    let after = without_locks();
    let moved: Vec<_> =
        after.keys().chain(before.keys()).filter(|path| after.get(*path) != before.get(*path)).collect();
    assert!(moved.is_empty(), "nothing came back, nothing grew: {moved:?}");
    assert_eq!(sidecar.finish(), 0);
}

/// opencode#20548: a file over the limit was left out at first and back later, and restores mixed both.
#[test]
fn a_file_that_grows_over_the_limit_and_shrinks_again() {
    let lab = Lab::new();
    let take = |label: &str| {
        let taken = lab.piton(&["checkpoint", label, "--set", "limits.file_mb=1", "--json"]);
        assert_eq!(taken.code, 0, "{taken:?}");
        taken.json()["checkpoint"].clone()
    };
    lab.write("log", "small");
    lab.write("other", "1");
    take("small");
    lab.write("log", vec![b'x'; 1_500_000]);
    lab.write("other", "2");
    let large = take("large");
    assert_eq!(large["skipped"]["items"][0]["path"], "log", "{large}");
    lab.write("log", "small again");
    take("small again");
    // The large one was never saved: going back past it is told, and leaves the file alone.
    let back = lab.piton(&["restore", "2", "--yes", "--json"]);
    assert_eq!((lab.read("other").as_str(), lab.read("log").as_str()), ("2", "small again"), "{back:?}");
    assert!(back.stdout.contains("does not contain 1 path"), "{back:?}");
    lab.restore(1, &[]);
    assert_eq!((lab.read("other").as_str(), lab.read("log").as_str()), ("1", "small"));
    lab.write("log", vec![b'y'; 1_500_000]);
    // Its content is in no checkpoint yet, and is saved before it is replaced, whatever the limit.
    lab.restore(3, &[]);
    assert_eq!(lab.read("log"), "small again");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(std::fs::read(lab.work.join("log")).unwrap(), vec![b'y'; 1_500_000]);
}

/// hermes#83036, opencode#15977: what killed writers left filled disks for ever.
#[test]
fn remains_of_killed_writers_go_with_the_next_checkpoint() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    let before = size_of(&lab);
    for name in ["objects/tmp_obj_1-1", "objects/pack/tmp_pack_1-1", "objects/pack/tmp_idx_1-1"] {
        std::fs::write(lab.store().join(name), vec![0; 1_000_000]).unwrap();
    }
    lab.write("a", "2");
    lab.take("two");
    assert!(size_of(&lab) < before + 100_000, "{} bytes", size_of(&lab));
}
