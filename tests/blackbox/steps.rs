//! Numbers of checkpoints: a turn's first one has a number of its own, the further ones are steps of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::faults::full;
use crate::support::{Lab, Sidecar, git, number_of};

/// Has a turn begin, change a file and run something that nobody sees into, so many times.
fn turn(lab: &Lab, sidecar: &mut Sidecar, name: &str, actions: usize) -> Vec<String> {
    sidecar.ask(json!({"type": "turn.start", "turn": name}));
    let act = |action| {
        lab.write("a", format!("{name} {action}\n"));
        let reply = sidecar.ask(json!({"type": "shell.before", "command": "make"}));
        assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
        let kind = if action == 0 { "auto" } else { "step" };
        assert_eq!(reply["checkpoint"]["kind"], kind, "{reply}");
        number_of(&reply)
    };
    (0..actions).map(act).collect()
}

fn listed(lab: &Lab, args: &[&str]) -> Vec<(String, u64)> {
    let all: Vec<&str> = ["list", "--json"].iter().chain(args).copied().collect();
    let list = lab.piton(&all).json();
    let row = |row: &Value| {
        let number = row["n"].as_str().map_or_else(|| row["n"].to_string(), str::to_owned);
        (number, row["steps"].as_u64().unwrap_or(0))
    };
    list["checkpoints"].as_array().unwrap().iter().map(row).collect()
}

fn numbers(lab: &Lab, args: &[&str]) -> Vec<String> {
    listed(lab, args).into_iter().map(|(number, _)| number).collect()
}

#[test]
fn a_new_list_reads_one_two_three_and_steps_stand_below_their_turn() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    assert_eq!(turn(&lab, &mut sidecar, "t1", 3), ["1", "1.1", "1.2"]);
    assert_eq!(turn(&lab, &mut sidecar, "t2", 1), ["2"]);
    let held = sidecar.ask(json!({"type": "shell.before", "command": "make"}));
    assert_eq!((&held["checkpoint"]["status"], &held["checkpoint"]["n"]), (&json!("held"), &json!(2)), "{held}");
    // Another process of the session goes on in the same turn.
    assert_eq!(sidecar.finish(), 0);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    lab.write("a", "t2 late\n");
    let step = sidecar.ask(json!({"type": "shell.before", "command": "make"}));
    assert_eq!(number_of(&step), "2.1", "{step}");
    assert_eq!(lab.take("by hand"), 3);
    assert_eq!(sidecar.finish(), 0);

    assert_eq!(listed(&lab, &[]), [("3".into(), 0), ("2".into(), 1), ("1".into(), 2)]);
    assert_eq!(numbers(&lab, &["--steps"]), ["3", "2.1", "2", "1.2", "1.1", "1"]);
    assert_eq!(numbers(&lab, &["--kind", "step"]), ["2.1", "1.2", "1.1"]);
    let all = numbers(&lab, &["--all"]);
    assert!(all.iter().any(|number| number == "null"), "a base capture has no number: {all:?}");
    for (selector, content) in [("1", "t1 0\n"), ("1.1", "t1 1\n"), ("#1.2", "t1 2\n"), ("@{1}", "t2 0\n")] {
        assert_eq!(lab.piton(&["show", &format!("{selector}:a")]).stdout, content, "{selector}");
    }
    // The row of a turn tells of all that happened in it.
    let folded = lab.piton(&["list", "--json"]).json();
    assert_eq!(folded["checkpoints"][2]["stat"]["files"], 1, "{folded}");
    lab.restore("1.1", &[]);
    assert_eq!(lab.read("a"), "t1 1\n");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(lab.read("a"), "t2 late\n");
}

#[test]
fn a_line_that_names_a_saved_file_gets_a_step_without_a_watcher_too() {
    for line in ["ssh-agent rm notes.txt > log.txt", "rm -f log.txt; ssh-agent rm notes.txt", "ssh-agent rm notes.txt"]
    {
        let lab = Lab::new();
        lab.write("log.txt", "log\n");
        let mut sidecar = Sidecar::start(&lab, &["--set", "watcher=none"]);
        sidecar.ask(json!({"type": "hello", "session": "s"}));
        sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
        sidecar.ask(json!({"type": "shell.before", "command": "make", "action": "1"}));
        sidecar.ask(json!({"type": "shell.after", "action": "1"}));
        lab.write("notes.txt", "work of the turn\n");
        sidecar.ask(json!({"type": "shell.before", "command": line, "action": "2"}));
        lab.sh("rm -f notes.txt");
        sidecar.ask(json!({"type": "shell.after", "action": "2"}));
        assert_eq!(sidecar.finish(), 0);
        let found = lab.piton(&["find", "notes.txt"]);
        assert!(found.stdout.contains("in checkpoint"), "{line}: {found:?}");
    }
}

/// Starts a sidecar whose workspace is watched, within a turn.
fn in_turn(lab: &Lab) -> Sidecar {
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s", "workspace": lab.work}));
    sidecar.await_warm();
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    sidecar
}

/// Returns true if piton has saved a file of the workspace with this content; `None` without git.
fn is_saved(lab: &Lab, content: &str) -> Option<bool> {
    let file = lab.root().join("content");
    std::fs::write(&file, content).unwrap();
    let id = git(lab, &["hash-object", "--no-filters", file.to_str().unwrap()])?;
    let mut asked = lab.command("git", &lab.work);
    asked.arg("--git-dir").arg(lab.store()).args(["cat-file", "-e", id.trim()]);
    Some(asked.output().unwrap().status.success())
}

#[test]
fn a_step_is_taken_before_each_action_that_may_start_more_than_readers() {
    for (line, is_step) in [
        ("gcc a.c -of", true),
        ("npm init -y", true),
        ("npm ci", true),
        ("git commit -qm x", true),
        ("git status", true),
        ("strace -o f ls", true),
        ("ssh-agent ls", true),
        ("tar -I ./compress -cf /dev/null a.c", true),
        ("BASH_ENV=./x ls", true),
        ("./ls", true),
        ("for PATH in ./bin; do ls; done", true),
        ("printf -v PATH ./bin; ls", true),
        ("[ -v 'x[$(mytool)]' ]", true),
        ("[[ 'x[$(mytool)]' -eq 1 ]]", true),
        ("ls & wait -n -p 'x[$(mytool)]'", true),
        ("echo ${ mytool; }", true),
        ("for x in 'y[$(mytool)]'; do echo $((x)); done", true),
        ("for x in y*; do [[ $x -eq 0 ]]; done", true),
        ("echo x < f > /dev/stdin", true),
        ("zsh -c 'ls >&! f'", true),
        ("echo ${HOME@P}", true),
        ("bash -ic ls", true),
        ("ls() { cat f; }; ls", true),
        ("for i in 1 2; do echo $(mytool $i); done", true),
        ("bash -c 'mytool'", true),
        ("bash --rcfile ./x -ic ls", true),
        ("/bin/bash -lc '/usr/bin/ls -la | grep c'", false),
        ("ls -la | grep c && cat a.c", false),
        ("ls & wait", false),
        ("ls > /dev/null 2> /dev/stderr; [[ -f f && 1 -eq 1 ]]", false),
        ("cd . && find . -name f 2>/dev/null; [ -f f ]", false),
        ("for i in 1 2; do echo $(wc -l a.c); done", false),
    ] {
        let lab = Lab::new();
        lab.write("a.c", "int main;\n");
        let mut sidecar = in_turn(&lab);
        sidecar.ask(json!({"type": "shell.before", "command": "touch begun", "action": "a"}));
        sidecar.ask(json!({"type": "shell.after", "action": "a"}));
        let Some(is_saved) = saves_what_it_destroys(&lab, sidecar, line) else { return };
        assert_eq!(is_saved, is_step, "{line}");
    }
}

/// Writes `f`, announces a line and deletes `f` as the line does. Returns true if the content was saved; `None` without git.
fn saves_what_it_destroys(lab: &Lab, mut sidecar: Sidecar, line: &str) -> Option<bool> {
    let content = format!("made before {line}\n");
    lab.write("f", &content);
    let reply = sidecar.ask(json!({"type": "shell.before", "command": line, "action": "b"}));
    assert_eq!(reply["proceed"], true, "{line}: {reply}");
    lab.sh("rm f");
    sidecar.ask(json!({"type": "shell.after", "action": "b"}));
    assert_eq!(sidecar.finish(), 0, "{line}");
    is_saved(lab, &content)
}

#[test]
fn what_only_the_base_capture_of_a_turn_saved_stays() {
    let lab = Lab::new();
    lab.write("f", "saved by the base capture\n");
    let mut sidecar = in_turn(&lab);
    // Nothing changed since that capture, so there is no step; the line names nothing, so the turn owns nothing.
    sidecar.ask(json!({"type": "shell.before", "command": "sed -f edit g", "action": "a"}));
    lab.sh("rm f");
    sidecar.ask(json!({"type": "shell.after", "action": "a"}));
    sidecar.ask(json!({"type": "turn.end", "turn": "t"}));
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(lab.piton(&["store", "prune", "--yes"]).code, 0);
    let Some(is_saved) = is_saved(&lab, "saved by the base capture\n") else { return };
    assert!(is_saved);
    let found = lab.piton(&["find", "f"]);
    assert!(found.stdout.contains("in checkpoint"), "{found:?}");
}

#[test]
fn a_line_that_destroys_another_file_than_it_seems_to_gets_a_step() {
    for line in [
        "true || cd src; rm f",
        "[ -d nowhere ] && cd src; rm f",
        "cd src; cd nowhere 2> /dev/null; rm ../f",
        "if [ -d nowhere ]; then cd src; fi; rm f",
        "cd src & wait; rm f",
        "while false; do cd src; done; rm f",
        "for x in f g; do break; done; rm $x",
        "rm -f {e..g}",
        "cd link/..; cd -P ../real/..; rm ../f",
    ] {
        let lab = Lab::new();
        lab.write("src/g", "unchanged\n");
        lab.write("real/deep/h", "unchanged\n");
        let mut sidecar = in_turn(&lab);
        sidecar.ask(json!({"type": "shell.before", "command": "rm src/g", "action": "a"}));
        lab.sh("rm src/g");
        sidecar.ask(json!({"type": "shell.after", "action": "a"}));
        let Some(is_saved) = saves_what_it_destroys(&lab, sidecar, line) else { return };
        assert!(is_saved, "{line}");
    }
}

/// Counts the waits for the disk in a trace.
fn syncs(trace: &Path) -> usize {
    let text = std::fs::read_to_string(trace).unwrap();
    text.lines().filter(|line| ["fsync(", "fdatasync(", "syncfs("].iter().any(|call| line.contains(call))).count()
}

#[test]
fn steps_that_no_reply_names_share_their_waits_for_the_disk() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let trace = lab.root().join("trace");
    let options = ["-f", "-e", "trace=fsync,fdatasync,syncfs", "-o", trace.to_str().unwrap()];
    let Some(mut sidecar) = Sidecar::start_traced(&lab, &options) else { return };
    sidecar.ask(json!({"type": "hello", "session": "s", "workspace": lab.work}));
    sidecar.await_warm();
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let act = |sidecar: &mut Sidecar, at: usize| {
        lab.write("a", format!("{at} in a turn\n"));
        let reply = sidecar.ask(json!({"type": "shell.before", "command": "cargo build", "action": "a"}));
        assert_eq!(reply["checkpoint"]["status"], "none", "{reply}");
        sidecar.ask(json!({"type": "shell.after", "action": "a"}));
    };
    // The first one makes the marks that recovery needs.
    act(&mut sidecar, 0);
    let (before, began) = (syncs(&trace), Instant::now());
    (1..=200).for_each(|at| act(&mut sidecar, at));
    let (count, most) = (syncs(&trace) - before, began.elapsed().as_millis() / 90 + 5);
    assert!(count as u128 <= most, "{count} of {most}");
    assert_eq!(sidecar.finish(), 0);
    let Some(is_saved) = is_saved(&lab, "17 in a turn\n") else { return };
    assert!(is_saved);
}

#[test]
fn files_that_change_all_the_time_cause_no_step_each_time() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let mut sidecar = in_turn(&lab);
    let steps = || {
        let all = lab.piton(&["list", "--all", "--steps", "--json"]).json();
        all["checkpoints"].as_array().unwrap().len()
    };
    let mut act = |file: &str, content: &str| {
        lab.write(file, content);
        sidecar.ask(json!({"type": "shell.before", "command": "cargo build", "action": "a"}));
        sidecar.ask(json!({"type": "shell.after", "action": "a"}));
    };
    let began = Instant::now();
    act("a", "1\n");
    let first = steps();
    // The first one makes the file.
    (0..20).for_each(|at| act("dev.log", &format!("{at}\n")));
    let (many, most) = (steps() - first, began.elapsed().as_secs() / 2 + 1);
    assert!(many as u64 <= most, "{many} steps for 20 changes of a log, at most {most}");
    // Any other file has its step at once.
    act("b", "made\n");
    let Some(is_saved) = is_saved(&lab, "made\n") else { return };
    assert!(is_saved);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_program_that_a_line_starts_without_naming_it_may_write_any_file() {
    let hook = "#!/bin/sh\nrm -f victim\n";
    let package = "{\"scripts\": {\"prepare\": \"rm -f victim\"}}\n";
    for (line, files) in [
        ("git -c core.hooksPath=other commit -qm x", vec![("other/pre-commit", hook)]),
        ("git --git-dir=.git --work-tree=. commit -qm x", vec![(".git/hooks/pre-commit", hook)]),
        (
            "git add a",
            vec![(".gitattributes", "a filter=x\n"), (".git/config", "[filter \"x\"]\n\tclean = rm -f victim; cat\n")],
        ),
        ("npm ci", vec![("package.json", package)]),
        ("sudo npm --prefix . install", vec![("package.json", package)]),
    ] {
        let lab = Lab::new();
        if git(&lab, &["init", "-q"]).is_none() {
            return;
        }
        lab.write("victim", "v\n");
        for (path, text) in files {
            lab.write(path, text);
            lab.sh(&format!("chmod 755 {path}"));
        }
        let mut sidecar = in_turn(&lab);
        sidecar.ask(json!({"type": "shell.before", "command": line, "action": "a"}));
        lab.sh("rm victim");
        sidecar.ask(json!({"type": "shell.after", "action": "a"}));
        sidecar.ask(json!({"type": "turn.end"}));
        assert_eq!(sidecar.finish(), 0);
        let undone = lab.piton(&["undo", "--yes"]);
        assert!(lab.work.join("victim").exists(), "{line}: {undone:?}");
    }
}

#[test]
fn without_a_watcher_steps_are_scans() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let mut sidecar = Sidecar::start(&lab, &["--set", "watcher=none"]);
    sidecar.ask(json!({"type": "hello", "session": "s", "workspace": lab.work}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let mut contents = Vec::new();
    for at in 0..5 {
        contents.push(format!("{at} without a watcher\n"));
        lab.write("a", &contents[at]);
        sidecar.ask(json!({"type": "shell.before", "command": "cargo build", "action": "a"}));
        sidecar.ask(json!({"type": "shell.after", "action": "a"}));
    }
    assert_eq!(sidecar.finish(), 0);
    for content in contents {
        let Some(is_saved) = is_saved(&lab, &content) else { return };
        assert!(is_saved, "{content}");
    }
}

#[test]
fn what_a_turn_made_and_destroyed_between_its_steps_is_restored() {
    let count = if full() { 200 } else { 12 };
    // The first action of a turn makes its checkpoint, or none.
    for first in ["rm keep", "touch keep"] {
        let lab = Lab::new();
        lab.write("keep", "k\n");
        let mut sidecar = in_turn(&lab);
        sidecar.ask(json!({"type": "shell.before", "command": first, "action": "first"}));
        sidecar.ask(json!({"type": "shell.after", "action": "first"}));
        let content = |at: usize| format!("content {at}\n");
        // The turn changes nothing in the end.
        for at in 0..count {
            for (command, work) in [("gcc a.c -of", format!("echo content {at} > f")), ("npm ci", "rm f".to_owned())] {
                let reply = sidecar.ask(json!({"type": "shell.before", "command": command, "action": command}));
                assert_eq!(reply["checkpoint"]["status"], "none", "{reply}");
                lab.sh(&work);
                sidecar.ask(json!({"type": "shell.after", "action": command}));
            }
        }
        sidecar.ask(json!({"type": "turn.end"}));
        for turn in ["t2", "t3"] {
            sidecar.ask(json!({"type": "turn.start", "turn": turn}));
            lab.write("keep", turn);
            sidecar.ask(json!({"type": "shell.before", "command": "gcc a.c -of"}));
            sidecar.ask(json!({"type": "turn.end"}));
        }
        assert_eq!(sidecar.finish(), 0);
        assert_eq!(lab.piton(&["prune", "--yes"]).code, 0);
        let rows = listed(&lab, &[]);
        assert_eq!(rows.len(), usize::from(first == "rm keep"), "such steps have no rows: {rows:?}");
        let found = lab.piton(&["list", "--all", "--steps", "--limit", "1000", "--json"]).json();
        let ids = found["checkpoints"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned());
        let shown = |id: String| (lab.piton(&["show", &format!("{id}:f")]).stdout, id);
        let held: BTreeMap<String, String> = ids.map(shown).collect();
        for at in 0..count {
            let Some(id) = held.get(&content(at)) else { panic!("{first}: `f` {at} is in no checkpoint: {held:?}") };
            lab.restore(id, &["f"]);
            assert_eq!(lab.read("f"), content(at), "{first}");
        }
    }
}

#[test]
fn a_checkpoint_that_holds_already_is_named_with_its_own_kind() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let block = |reply: &Value| {
        let checkpoint = &reply["checkpoint"];
        ["status", "kind"].map(|key| checkpoint[key].as_str().unwrap().to_owned())
    };
    assert_eq!(block(&sidecar.ask(json!({"type": "shell.before", "command": "rm a"}))), ["taken", "auto"]);
    lab.write("later", "1\n");
    lab.write("a", "2\n");
    // The checkpoint before the restore has `later` as it stands.
    assert_eq!(lab.piton(&["restore", "1", "a", "--yes"]).code, 0);
    assert_eq!(block(&sidecar.ask(json!({"type": "shell.before", "command": "rm later"}))), ["held", "pre-restore"]);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn numbers_of_dropped_checkpoints_are_explained_and_never_used_again() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&lab, &mut sidecar, "t1", 3);
    turn(&lab, &mut sidecar, "t2", 2);
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(lab.piton(&["delete", "1.1", "2", "2.1", "--yes"]).code, 0);
    for gone in ["1.1", "2", "2.1"] {
        let said = lab.piton(&["show", gone]);
        assert!(said.stderr.contains(&format!("checkpoint {gone} was pruned on")), "{said:?}");
    }
    let never = lab.piton(&["show", "1.9"]);
    assert!(never.code == 3 && never.stderr.contains("no checkpoint `1.9`"), "{never:?}");
    // Nothing remembers but the files of the workspace.
    let mut sidecar = Sidecar::start(&lab, &[]);
    assert_eq!(turn(&lab, &mut sidecar, "t3", 2), ["3", "3.1"]);
    assert_eq!(sidecar.finish(), 0);
    // Steps whose turn's checkpoint is gone stand by themselves.
    assert_eq!(lab.piton(&["delete", "1", "--yes"]).code, 0);
    assert_eq!(listed(&lab, &[]), [("3".into(), 1), ("1.2".into(), 0)]);
    assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0);
}

#[test]
fn a_store_from_before_steps_keeps_its_numbers() {
    let lab = Lab::new();
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/stores/before-steps.tar.gz");
    let aside = lab.root().join("unpacked");
    std::fs::create_dir(&aside).unwrap();
    let unpacked = Command::new("tar").args(["xzf", archive, "-C"]).arg(&aside).status().unwrap();
    assert!(unpacked.success());
    std::fs::rename(aside.join("home"), lab.home.join("piton")).unwrap();
    let adopted = lab.piton(&["adopt", "/tmp/fixture/work", lab.work.to_str().unwrap(), "--yes"]);
    assert_eq!(adopted.code, 0, "{adopted:?}");
    assert_eq!(numbers(&lab, &["--all"]), ["7", "6", "5", "4", "3", "2", "1"]);
    lab.restore(6, &[]);
    assert_eq!([lab.read("a"), lab.read("src/b"), lab.read("link")], ["four\n", "built\n", "four\n"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&lab.work.join("src/b").metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o750);
    let mut sidecar = Sidecar::start(&lab, &[]);
    // The restore has taken 8.
    assert_eq!(turn(&lab, &mut sidecar, "t9", 2), ["9", "9.1"]);
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(lab.piton(&["show", "3:a"]).stdout, "two\n");
    assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0);
}
