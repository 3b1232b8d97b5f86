//! The changes of a turn, and the undo of them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use piton::sys::clock::file_clock;
use serde_json::{Value, json};

use super::dice::Dice;
use super::faults::{CALLS, SIGKILL, full, strace, traced};
use super::support::{Asking, Lab, Sidecar, WAIT, code, commit_all, git, mode, tree};

/// A session whose sidecar's watcher is at work.
pub(super) struct Agent {
    sidecar: Sidecar,
    pub(super) actions: u64,
}

impl Agent {
    pub(super) fn new(lab: &Lab, session: &str) -> Agent {
        let mut agent = Agent::cold(lab, &lab.work, session);
        agent.warm();
        agent
    }

    fn cold(lab: &Lab, dir: &Path, session: &str) -> Agent {
        let mut sidecar = Sidecar::start_in(lab, dir, &[]);
        let reply = sidecar.ask(json!({"type": "hello", "session": session, "client": "tester", "workspace": dir}));
        assert_eq!(reply["ok"], true, "{reply}");
        Agent { sidecar, actions: 0 }
    }

    fn warm(&mut self) {
        let until = Instant::now() + WAIT;
        while self.ask(json!({"type": "status"}))["watcher"] != "warm" {
            assert!(Instant::now() < until, "never warm");
            std::thread::yield_now();
        }
    }

    pub(super) fn ask(&mut self, request: Value) -> Value {
        self.sidecar.ask(request)
    }

    pub(super) fn start(&mut self, turn: &str) -> Value {
        self.ask(json!({"type": "turn.start", "turn": turn}))
    }

    pub(super) fn end(&mut self) -> Value {
        self.ask(json!({"type": "turn.end"}))
    }

    /// Begins a command of which nobody knows what it does.
    fn begin(&mut self, dir: &Path) -> String {
        self.actions += 1;
        let action = format!("a{}", self.actions);
        let reply = self.ask(json!({"type": "shell.before", "command": "./generate", "action": action, "cwd": dir}));
        assert_eq!(reply["proceed"], true, "{reply}");
        action
    }

    pub(super) fn after(&mut self, action: &str) {
        self.ask(json!({"type": "shell.after", "action": action}));
    }

    /// Does something within a command.
    pub(super) fn shell(&mut self, lab: &Lab, work: impl FnOnce()) {
        let action = self.begin(&lab.work);
        work();
        self.after(&action);
    }

    /// Writes a file with a tool that names it.
    pub(super) fn edit(&mut self, lab: &Lab, path: &str, content: &str) {
        self.actions += 1;
        let (action, file) = (format!("a{}", self.actions), lab.work.join(path));
        let input = json!({"file_path": file, "content": content});
        self.ask(json!({"type": "tool.before", "tool": "Write", "action": action, "input": input}));
        lab.write(path, content);
        self.ask(json!({"type": "tool.after", "action": action}));
    }
}

pub(super) fn undo(lab: &Lab, args: &[&str]) -> Value {
    let (flags, paths): (Vec<&str>, Vec<&str>) =
        args.iter().partition(|word| word.starts_with('-') || word.starts_with("t-"));
    // Changes of scripts are undone too: these tests are about the way back.
    let mut all = vec!["undo", "--yes", "--json", "--include=likely"];
    all.extend(flags);
    if !paths.is_empty() {
        all.push("--");
        all.extend(paths);
    }
    let output = lab.piton(&all);
    assert!([0, 3, 4].contains(&output.code), "{output:?}");
    output.json()
}

pub(super) fn redo(lab: &Lab) {
    let output = lab.piton(&["redo", "--yes"]);
    assert_eq!(output.code, 0, "{output:?}");
}

/// The paths of a list of a reply, each with its reason.
pub(super) fn listed(list: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| (text(&item["path"]), text(&item["why"]))).collect()
}

/// The paths that a step has changed.
pub(super) fn changed(done: &Value) -> BTreeSet<String> {
    ["created", "replaced", "deleted"].iter().flat_map(|kind| listed(&done["done"][kind]).into_keys()).collect()
}

/// The shares of a turn in its changes, by path.
fn shares(lab: &Lab, turn: &str) -> BTreeMap<String, String> {
    let output = lab.piton(&["diff", "--turn", turn, "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    let reply = output.json();
    let mut all = listed(&reply["files"]);
    all.extend(listed(&reply["directories"]));
    all.into_iter().map(|(path, why)| (path, why.rsplit(", ").next().unwrap().to_owned())).collect()
}

fn some(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(path, share)| ((*path).to_owned(), (*share).to_owned())).collect()
}

pub(super) fn words(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

pub(super) fn lab_with(files: &[&str]) -> Lab {
    let lab = Lab::new();
    files.iter().for_each(|file| lab.write(file, format!("{file} 0\n")));
    lab
}

/// opencode#33940, and what users of all such tools ask for: undo what this agent did, and keep mine.
#[test]
fn an_undo_leaves_what_others_wrote() {
    let lab = lab_with(&["a", "b", "mine", "d"]);
    let (mut one, mut two) = (Agent::new(&lab, "one"), Agent::new(&lab, "two"));
    one.start("t1");
    two.start("t2");
    one.shell(&lab, || lab.write("a", "a of one\n"));
    lab.write("mine", "mine 1\n");
    two.edit(&lab, "b", "b of two\n");
    one.edit(&lab, "new/x", "x of one\n");
    mode(&lab, "mine", 0o600);
    two.shell(&lab, || std::fs::remove_file(lab.work.join("d")).unwrap());
    one.end();
    two.end();
    assert_eq!(shares(&lab, "t1"), some(&[("a", "likely"), ("new", "sure"), ("new/x", "sure")]));
    assert_eq!(shares(&lab, "t2"), some(&[("b", "sure"), ("d", "likely")]));
    let before = tree(&lab.work);
    // It says beforehand what it will touch, and does just that.
    let preview = lab.piton(&["undo", "--include=likely", "--turn", "t1", "--preview", "--json"]).json();
    assert_eq!(
        (&preview["over"]["turn"]["turn"], listed(&preview["plan"]["replace"])),
        (&json!("t1"), some(&[("a", "likely")]))
    );
    let done = undo(&lab, &["--turn=t1"]);
    assert_eq!(changed(&done), words(&["a", "new", "new/x"]), "{done}");
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("mine")], ["a 0\n", "b of two\n", "mine 1\n"]);
    assert!(!lab.work.join("new").exists() && !lab.work.join("d").exists());
    redo(&lab);
    assert_eq!(tree(&lab.work), before);
    let listing = lab.piton(&["turns", "--json"]).json();
    let names: Vec<&str> =
        listing["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_str().unwrap()).collect();
    assert_eq!(names, ["t2", "t1"]);
    assert_eq!(listing["turns"][1]["client"], "tester");
}

#[test]
fn a_person_inside_of_a_window_is_shown_and_saved() {
    let lab = lab_with(&["a", "mine"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || {
        lab.write("a", "a 1\n");
        lab.write("mine", "a day of work\n");
    });
    agent.end();
    assert_eq!(shares(&lab, "t1"), some(&[("a", "likely"), ("mine", "likely")]));
    let done = undo(&lab, &[]);
    assert_eq!(lab.read("mine"), "mine 0\n");
    let saved = done["preRestore"].as_str().unwrap();
    assert_eq!(lab.piton(&["restore", saved, "mine", "--yes"]).code, 0);
    assert_eq!((lab.read("mine").as_str(), lab.read("a").as_str()), ("a day of work\n", "a 0\n"));
}

#[test]
fn a_file_that_is_written_again_in_the_open_turn_stays_unless_it_is_asked_for() {
    let lab = lab_with(&["a", "b"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "a", "a 1\n");
    agent.edit(&lab, "b", "b 1\n");
    lab.write("a", "a 1 formatted\n");
    agent.end();
    assert_eq!(shares(&lab, "t1"), some(&[("a", "touched"), ("b", "sure")]));
    let done = undo(&lab, &[]);
    assert_eq!((changed(&done), listed(&done["done"]["kept"]).contains_key("a")), (words(&["b"]), true), "{done}");
    assert_eq!(lab.read("a"), "a 1 formatted\n");
    redo(&lab);
    let done = undo(&lab, &["--include=touched"]);
    assert_eq!(changed(&done), words(&["a", "b"]), "{done}");
    assert_eq!(lab.read("a"), "a 0\n");
}

/// Makes a repository of the workspace, with a branch `other` that is not checked out; false, said aloud, without git.
fn has_branches(lab: &Lab) -> bool {
    if git(lab, &["init", "-q"]).is_none() {
        return false;
    }
    let commit = |what: &str| {
        git(lab, &["add", "-A"]);
        git(lab, &["commit", "-qm", what]);
    };
    commit("one");
    git(lab, &["checkout", "-qb", "other"]);
    lab.write("b", "b of other\n");
    lab.write("c", "c of other\n");
    commit("two");
    git(lab, &["checkout", "-q", "-"]);
    true
}

#[test]
fn a_branch_that_a_person_switches_is_not_the_turns() {
    let lab = lab_with(&["a", "b"]);
    if !has_branches(&lab) {
        return;
    }
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "a", "a 1\n");
    // Inside of an action that cannot have done it, and of one of which nobody knows.
    let input = json!({"file_path": lab.work.join("d"), "content": "d\n"});
    agent.ask(json!({"type": "tool.before", "tool": "Write", "action": "x", "input": input}));
    git(&lab, &["checkout", "-q", "other"]);
    lab.write("d", "d\n");
    agent.ask(json!({"type": "tool.after", "action": "x"}));
    git(&lab, &["checkout", "-q", "-"]);
    // The watcher reports the switch back before the capture that precedes the last action.
    agent.edit(&lab, "a", "a 2\n");
    agent.shell(&lab, || _ = git(&lab, &["checkout", "-q", "other"]));
    agent.end();
    // A path that a tool named is not surely the turn's either, where another git moved HEAD meanwhile. The first switch counts for
    // nothing: before the last action all was as at the beginning.
    assert_eq!(shares(&lab, "t1"), some(&[("a", "sure"), ("b", "likely"), ("c", "likely"), ("d", "likely")]));
    let undone = lab.piton(&["undo", "--yes"]);
    assert!(undone.code == 4 && undone.stdout.contains("--include likely"), "{undone:?}");
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("c")], ["a 0\n", "b of other\n", "c of other\n"]);
}

/// A checkpoint of another process has the path as it was when the turn began. A person writes it after that.
#[test]
fn a_capture_of_another_process_hides_no_edit_that_comes_after_it() {
    let lab = lab_with(&["x", "z"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "x", "first\n");
    agent.edit(&lab, "x", "x 0\n");
    ticks_pass();
    lab.write("z", "z 1\n");
    assert_eq!(lab.piton(&["checkpoint", "of a person"]).code, 0);
    ticks_pass();
    lab.write("x", "x 0\nof a person\n");
    ticks_pass();
    agent.edit(&lab, "x", "x 0\nof a person\nof the agent\n");
    agent.end();
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!(lab.read("x"), "x 0\nof a person\nof the agent\n", "{undone:?}");
    assert_eq!(undone.code, 4, "{undone:?}");
}

#[test]
fn a_change_of_permissions_beside_git_is_not_surely_the_turns() {
    let lab = lab_with(&["x", "z"]);
    if commit_all(&lab).is_none() {
        return;
    }
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    lab.sh("chmod 755 x");
    ticks_pass();
    agent.edit(&lab, "y", "y\n");
    lab.sh("chmod 644 x; echo 1 > z");
    ticks_pass();
    agent.ask(json!({"type": "shell.before", "command": "git reset -q --hard", "action": "reset"}));
    git(&lab, &["reset", "-q", "--hard"]);
    lab.sh("chmod 755 x");
    ticks_pass();
    agent.after("reset");
    agent.end();
    let undone = lab.piton(&["undo", "--yes"]);
    let mode = std::fs::metadata(lab.work.join("x")).unwrap().mode();
    assert_eq!((undone.code, mode & 0o777), (4, 0o755), "{undone:?}");
}

#[test]
fn a_later_edit_of_a_shared_path_is_a_persons() {
    let lab = lab_with(&["x", "q"]);
    let (mut one, mut two) = (Agent::new(&lab, "one"), Agent::new(&lab, "two"));
    one.start("t1");
    two.start("t2");
    let (first, second) = (one.begin(&lab.work), two.begin(&lab.work));
    lab.write("x", "of a script\n");
    lab.write("q", "of a script\n");
    one.after(&first);
    two.after(&second);
    ticks_pass();
    lab.write("x", "of a person\n");
    ticks_pass();
    one.edit(&lab, "y", "y\n");
    one.end();
    assert_eq!(shares(&lab, "t1"), some(&[("q", "shared"), ("x", "touched"), ("y", "sure")]));
    let undone = lab.piton(&["undo", "--turn", "t1", "--yes", "--json"]).json();
    let command = undone["left"]["items"][0]["command"].as_str().unwrap();
    assert_eq!((undone["left"]["total"].as_u64(), command), (Some(1), "piton undo --turn t-1 --include shared"));
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    assert_eq!(lab.piton(&words).code, 0);
    assert_eq!([lab.read("x"), lab.read("q")], ["of a person\n", "q 0\n"]);
}

/// Two connections of one session are processes of their own. The second one ends with the turn open, and so interrupts it.
#[test]
fn a_turn_that_another_connection_has_interrupted_goes_on_in_a_new_part() {
    for says_start in [true, false] {
        let lab = lab_with(&["x"]);
        let mut first = Agent::new(&lab, "s");
        first.start("t1");
        first.edit(&lab, "o", "o\n");
        let mut second = Agent::cold(&lab, &lab.work, "s");
        if says_start {
            second.start("t1");
        } else {
            second.edit(&lab, "b", "b\n");
        }
        assert_eq!(second.sidecar.finish(), 0);
        first.edit(&lab, "x", "new\n");
        first.ask(json!({"type": "turn.end", "turn": "t1"}));
        assert_eq!(first.sidecar.finish(), 0);
        let undone = lab.piton(&["undo", "--yes"]);
        assert_eq!((undone.code, lab.read("x")), (0, "x 0\n".to_owned()), "{says_start}: {undone:?}");
    }
}

#[test]
fn what_several_were_at_work_on_is_kept_and_said() {
    let lab = lab_with(&["a", "b", "c"]);
    let (mut one, mut two) = (Agent::new(&lab, "one"), Agent::new(&lab, "two"));
    one.start("t1");
    two.start("t2");
    let (first, second) = (one.begin(&lab.work), two.begin(&lab.work));
    lab.write("a", "whose?\n");
    std::fs::remove_file(lab.work.join("c")).unwrap();
    one.after(&first);
    two.after(&second);
    one.shell(&lab, || lab.write("b", "b 1\n"));
    one.end();
    two.end();
    assert_eq!(shares(&lab, "t1"), some(&[("a", "shared"), ("b", "likely"), ("c", "shared")]));
    assert_eq!(shares(&lab, "t2"), some(&[("a", "shared"), ("c", "shared")]));
    // A file that either may have deleted comes back with the first undo.
    let done = undo(&lab, &["--turn=t1"]);
    assert_eq!(changed(&done), words(&["b", "c"]));
    assert!(listed(&done["done"]["kept"])["a"].starts_with("shared"), "{done}");
    let stuck = lab.piton(&["undo", "--turn", "t2", "--yes"]);
    assert!(stuck.code == 4 && stuck.stdout.contains("--include"), "{stuck:?}");
    let done = undo(&lab, &["--turn=t2", "--include=shared"]);
    assert_eq!((changed(&done), lab.read("a")), (words(&["a"]), "a 0\n".to_owned()));
}

#[test]
fn a_path_that_has_changed_since_is_kept_until_that_is_undone() {
    let lab = lab_with(&["f"]);
    let mut agent = Agent::new(&lab, "s");
    for (turn, content) in [("t1", "f 1\n"), ("t2", "f 2\n")] {
        agent.start(turn);
        agent.edit(&lab, "f", content);
        agent.end();
    }
    let kept = lab.piton(&["undo", "--turn", "t1", "--yes"]);
    let said = ["it has changed since", "`piton restore "].map(|words| kept.stdout.contains(words));
    assert_eq!((kept.code, said), (4, [true; 2]), "{kept:?}");
    assert_eq!(lab.read("f"), "f 2\n");
    assert_eq!(undo(&lab, &[])["over"]["turn"]["turn"], "t2");
    let undone = undo(&lab, &[]);
    assert_eq!(undone["over"]["turn"]["turn"], "t1");
    assert_eq!(lab.read("f"), "f 0\n", "{undone}");
    assert!(lab.piton(&["undo", "--yes"]).stdout.contains("nothing to undo"));
    redo(&lab);
    redo(&lab);
    assert_eq!(lab.read("f"), "f 2\n");
    assert_eq!(lab.piton(&["redo", "--yes"]).code, 3);
}

#[test]
fn what_stayed_of_an_undone_turn_can_be_undone_later() {
    let lab = lab_with(&["f", "g"]);
    let mut agent = Agent::new(&lab, "s");
    for (turn, paths) in [("a", &["f", "g"][..]), ("b", &["f"])] {
        agent.start(turn);
        paths.iter().for_each(|path| agent.edit(&lab, path, &format!("{path} of {turn}\n")));
        agent.end();
    }
    let of = |list: &Value, turn: &str| {
        let turns = list["turns"].as_array().unwrap().iter();
        { turns }
            .find(|item| item["turn"] == turn)
            .map(|item| [item["undone"].clone(), item["stayed"].clone()])
            .unwrap()
    };
    assert_eq!(changed(&undo(&lab, &["--turn=a"])), words(&["g"]));
    assert_eq!(of(&lab.piton(&["turns", "--json"]).json(), "a"), [json!(true), json!(1)]);
    // The next one is the other turn, and then nothing is left that nobody names.
    assert_eq!(undo(&lab, &[])["over"]["turn"]["turn"], "b");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 3);
    assert_eq!(changed(&undo(&lab, &["--turn=a"])), words(&["f"]));
    assert_eq!([lab.read("f"), lab.read("g")], ["f 0\n", "g 0\n"]);
    assert_eq!(of(&lab.piton(&["turns", "--json"]).json(), "a"), [json!(true), Value::Null]);
    let refused = lab.piton(&["undo", "--turn=a", "--yes", "--json"]);
    assert_eq!(refused.error(), "stale-selection", "{refused:?}");
    for content in [["f of a\n", "g 0\n"], ["f of b\n", "g 0\n"], ["f of b\n", "g of a\n"]] {
        redo(&lab);
        assert_eq!([lab.read("f"), lab.read("g")], content);
    }
    assert_eq!(of(&lab.piton(&["turns", "--json"]).json(), "a"), [json!(false), Value::Null]);
    assert_eq!(undo(&lab, &[])["over"]["turn"]["turn"], "b");
}

#[test]
fn single_hunks_of_a_turn_are_chosen_on_a_terminal() {
    let lab = lab_with(&["a", "b"]);
    let lines = |changed: &[usize]| -> String {
        (0..40).map(|n| format!("line {n}{}\n", if changed.contains(&n) { " of the agent" } else { "" })).collect()
    };
    lab.write("text", lines(&[]));
    mode(&lab, "text", 0o644);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || {
        lab.write("text", lines(&[3, 30]));
        mode(&lab, "text", 0o755);
        lab.write("a", "a 1\n");
        lab.write("new", "n\n");
    });
    agent.end();
    let after = tree(&lab.work);
    let answers = [
        ("a: undo this hunk", "n"),
        ("new as a whole", "y"),
        ("(1/2) text: undo this hunk", "y"),
        ("(2/2) text: undo this hunk", "n"),
        ("text: its permissions changed from 0644 to 0755", "n"),
        ("[y/N]", "y"),
    ];
    let done = Asking::answer_all(&lab, &["undo", "--hunk"], &answers);
    assert_eq!((done.code, lab.read("text"), lab.read("a")), (0, lines(&[30]), "a 1\n".to_owned()), "{done:?}");
    assert!(!lab.work.join("new").exists(), "{done:?}");
    assert_eq!(std::fs::metadata(lab.work.join("text")).unwrap().mode() & 0o777, 0o755, "{done:?}");
    redo(&lab);
    assert_eq!(tree(&lab.work), after);
    // All hunks of a file, with its permissions.
    let answers = [
        ("a: undo this hunk", "n"),
        ("new as a whole", "n"),
        ("(1/2) text: undo this hunk", "a"),
        ("its permissions", "y"),
        ("[y/N]", "y"),
    ];
    let done = Asking::answer_all(&lab, &["undo", "--hunk"], &answers);
    assert_eq!((done.code, lab.read("text"), lab.read("new")), (0, lines(&[]), "n\n".to_owned()), "{done:?}");
    assert_eq!(std::fs::metadata(lab.work.join("text")).unwrap().mode() & 0o777, 0o644, "{done:?}");
}

/// After one hunk of a turn was undone, the turn is not undone: its rest can be undone, as long as the file is as that undo has left it.
#[test]
fn the_rest_of_a_turn_can_be_undone_after_some_of_its_hunks() {
    let lab = lab_with(&["a", "b"]);
    let lines = |changed: &[usize]| -> String {
        (0..40).map(|n| format!("line {n}{}\n", if changed.contains(&n) { " of the agent" } else { "" })).collect()
    };
    lab.write("text", lines(&[]));
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "text", &lines(&[3, 30]));
    agent.end();
    let one_hunk = |undone: bool| {
        let answers = [("(1/2) text: undo", "y"), ("(2/2) text: undo", "n"), ("[y/N]", "y")];
        let done = Asking::answer_all(&lab, &["undo", "--hunk"], &answers);
        assert_eq!((done.code, lab.read("text")), (0, lines(&[30])), "{done:?}");
        assert!(done.stdout.contains("Undid part of turn"), "{done:?}");
        let listed = lab.piton(&["list", "--turns"]).stdout;
        assert_eq!(listed.contains("undone"), undone, "{listed}");
    };
    one_hunk(false);
    let done = lab.piton(&["undo", "t-1", "--yes"]);
    assert_eq!((done.code, lab.read("text")), (0, lines(&[])), "{done:?}");
    // Each of both can be redone.
    for text in [lines(&[30]), lines(&[3, 30])] {
        redo(&lab);
        assert_eq!(lab.read("text"), text);
    }
    // The path alone, which undo finds by itself.
    one_hunk(false);
    let done = lab.piton(&["undo", "text", "--yes"]);
    assert_eq!((done.code, lab.read("text")), (0, lines(&[])), "{done:?}");
    (0..2).for_each(|_| redo(&lab));
    // A person's edit after the hunk stays.
    one_hunk(false);
    let edited = lines(&[30]) + "mine\n";
    lab.write("text", &edited);
    let done = lab.piton(&["undo", "t-1", "--yes"]);
    assert!(done.code != 0 && lab.read("text") == edited, "{done:?}");
}

#[test]
fn the_turns_that_changed_a_path_are_listed() {
    let lab = lab_with(&["a", "b"]);
    let mut agent = Agent::new(&lab, "s");
    for (turn, path) in [("t1", "a"), ("t2", "b"), ("t3", "sub/deep")] {
        agent.start(turn);
        agent.edit(&lab, path, turn);
        agent.end();
    }
    let listed = |path: &str| {
        let reply = lab.piton(&["list", "--turns", path, "--json"]).json();
        let turns = reply["turns"].as_array().unwrap().iter();
        turns.map(|turn| turn["turn"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((listed("a"), listed("b"), listed("sub")), (vec!["t1".into()], vec!["t2".into()], vec!["t3".into()]));
    assert_eq!(listed("c"), Vec::<String>::new());
    let none = lab.piton(&["list", "--turns", "c"]);
    assert!(none.stdout.contains("No turn has changed c"), "{none:?}");
}

#[test]
fn all_turns_of_a_run_go_back_in_one_command() {
    let lab = lab_with(&["a", "b", "mine"]);
    let mut agent = Agent::new(&lab, "s");
    for turn in ["t1", "t2", "t3"] {
        agent.start(turn);
        agent.edit(&lab, "a", &format!("a {turn}\n"));
        agent.edit(&lab, if turn == "t2" { "new" } else { "b" }, &format!("{turn}\n"));
        agent.end();
    }
    lab.write("mine", "of a person\n");
    let over = |document: &Value| -> Vec<String> {
        let steps = document["steps"].as_array().unwrap_or_else(|| panic!("{document}")).iter();
        steps.map(|step| step["over"]["turn"]["turn"].as_str().unwrap().to_owned()).collect()
    };
    let preview = lab.piton(&["undo", "--include=likely", "--run", "s", "--preview", "--json"]).json();
    assert_eq!(over(&preview), ["t3", "t2", "t1"]);
    let text = lab.piton(&["undo", "--include=likely", "--run", "s", "--preview"]);
    assert!(text.code == 0 && text.stdout.contains("3 turns of run s"), "{text:?}");
    assert_eq!(lab.read("a"), "a t3\n", "a preview changes nothing");
    let done = lab.piton(&["undo", "--include=likely", "--run", "s", "--yes", "--json"]);
    assert_eq!((done.code, over(&done.json())), (0, over(&preview)));
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("mine")], ["a 0\n", "b 0\n", "of a person\n"]);
    assert!(!lab.work.join("new").exists());
    assert_eq!(lab.piton(&["undo", "--run", "s", "--yes", "--json"]).error(), "no-such-turn");
    (0..3).for_each(|_| redo(&lab));
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("new")], ["a t3\n", "t3\n", "t2\n"]);
}

#[test]
fn modes_links_and_directories_go_back_exactly() {
    let lab = lab_with(&["a", "gone/x", "gone/deep/y", "kind", "run.sh"]);
    std::fs::create_dir(lab.work.join("empty")).unwrap();
    std::os::unix::fs::symlink("a", lab.work.join("link")).unwrap();
    mode(&lab, "run.sh", 0o755);
    lab.write("binary", [0, 159, 146, 150]);
    let before = tree(&lab.work);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || {
        lab.sh("rm -rf gone empty; mkdir -p new/dirs/in; echo n > new/n; chmod 600 a; chmod -x run.sh; rm kind; mkdir kind; echo k > kind/k");
        lab.sh("rm link; ln -s nowhere link; printf '\\001\\000' > binary; chmod 700 new");
    });
    agent.end();
    let after = tree(&lab.work);
    assert!(shares(&lab, "t1").values().all(|share| share == "likely"), "{:?}", shares(&lab, "t1"));
    undo(&lab, &[]);
    assert_eq!(tree(&lab.work), before);
    redo(&lab);
    assert_eq!(tree(&lab.work), after);
    undo(&lab, &[]);
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn single_paths_go_back_and_the_rest_later() {
    let lab = lab_with(&["a", "b", "dir/c"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || ["a", "b", "dir/c"].iter().for_each(|file| lab.write(file, "changed\n")));
    agent.end();
    let after = tree(&lab.work);
    let refused = lab.piton(&["undo", "--yes", "--json", "--", "nowhere"]);
    assert_eq!((refused.code, refused.error().as_str()), (3, "no-such-path"));
    assert_eq!(changed(&undo(&lab, &["dir"])), words(&["dir/c"]));
    let reply = agent.ask(json!({"type": "undo", "include": ["likely"], "paths": ["a"]}));
    assert_eq!(changed(&reply), words(&["a"]), "{reply}");
    assert_eq!(changed(&undo(&lab, &[])), words(&["b"]));
    assert_eq!([lab.read("a"), lab.read("b"), lab.read("dir/c")], ["a 0\n", "b 0\n", "dir/c 0\n"]);
    redo(&lab);
    redo(&lab);
    redo(&lab);
    assert_eq!(tree(&lab.work), after);
}

#[test]
fn the_protocol_does_the_plan_that_it_showed() {
    let lab = lab_with(&["a", "b"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || ["a", "b"].iter().for_each(|file| lab.write(file, "changed\n")));
    agent.end();
    let preview = agent.ask(json!({"type": "undo", "include": ["likely"], "preview": true}));
    lab.write("b", "mine\n");
    let stale = agent.ask(json!({"type": "undo", "include": ["likely"], "plan": preview["plan"]["digest"]}));
    assert_eq!(code(&stale), "stale-plan", "{stale}");
    let fresh = &stale["error"]["preview"];
    assert_eq!(listed(&fresh["plan"]["keep"]), some(&[("b", "it has changed since")]), "{fresh}");
    let done = agent.ask(json!({"type": "undo", "include": ["likely"], "plan": fresh["plan"]["digest"], "operation": "t-1", "rewind": true}));
    assert_eq!((changed(&done), &done["rewindTurn"]), (words(&["a"]), &json!("t1")), "{done}");
    assert_eq!(code(&agent.ask(json!({"type": "undo", "include": ["likely"], "turn": "t9"}))), "no-such-turn");
    let again = agent.ask(json!({"type": "undo", "include": ["likely"], "turn": "t1"}));
    assert_eq!((&again["operation"], lab.read("b")), (&Value::Null, "mine\n".to_owned()), "{again}");
    lab.write("b", "changed\n");
    let rest = agent.ask(json!({"type": "undo", "include": ["likely"], "turn": "t1"}));
    assert_eq!(changed(&rest), words(&["b"]), "{rest}");
    assert_eq!(code(&agent.ask(json!({"type": "undo", "include": ["likely"], "turn": "t1"}))), "stale-selection");
}

#[test]
fn an_open_turn_is_undone_so_far_and_goes_on() {
    let lab = lab_with(&["a", "b"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "a", "a 1\n");
    let done = undo(&lab, &[]);
    assert_eq!((&done["over"]["turn"]["open"], lab.read("a")), (&json!(true), "a 0\n".to_owned()), "{done}");
    // The agent does its work again, and more.
    agent.edit(&lab, "a", "a 2\n");
    agent.edit(&lab, "b", "b 2\n");
    agent.end();
    let turns = lab.piton(&["turns", "--json"]).json();
    assert_eq!((turns["turns"].as_array().unwrap().len(), &turns["turns"][1]["undone"]), (2, &json!(true)), "{turns}");
    assert_eq!(shares(&lab, "t-2"), some(&[("a", "sure"), ("b", "sure")]));
    assert_eq!(changed(&undo(&lab, &[])), words(&["a", "b"]));
    assert_eq!([lab.read("a"), lab.read("b")], ["a 0\n", "b 0\n"]);
}

#[test]
fn a_restore_in_an_open_turn_is_a_step_of_its_own() {
    let lab = lab_with(&["a", "b"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || lab.write("a", "a 1\n"));
    assert_eq!(lab.piton(&["restore", "1", "--yes"]).code, 0);
    agent.edit(&lab, "b", "b 1\n");
    agent.end();
    for (kind, a, b) in [("turn", "a 0\n", "b 0\n"), ("restore", "a 1\n", "b 0\n"), ("turn", "a 0\n", "b 0\n")] {
        let done = undo(&lab, &[]);
        assert_eq!(done["over"]["kind"], kind, "{done}");
        assert_eq!([lab.read("a"), lab.read("b")], [a, b], "{done}");
    }
}

/// Three repositories that one turn changes.
struct Three {
    lab: Lab,
    dirs: Vec<PathBuf>,
    agent: Agent,
}

impl Three {
    fn new() -> Three {
        let lab = Lab::new();
        let dirs: Vec<PathBuf> = ["one", "two", "three"].map(|name| lab.work.join(name)).to_vec();
        for dir in &dirs {
            std::fs::create_dir(dir).unwrap();
            std::fs::write(dir.join("a"), "a 0\n").unwrap();
            assert_eq!(lab.piton_in(dir, &["--workspace", ".", "checkpoint", "begin"]).code, 0);
        }
        let mut agent = Agent::cold(&lab, &dirs[0], "s");
        agent.warm();
        agent.start("t1");
        for dir in &dirs {
            let action = agent.begin(dir);
            std::fs::write(dir.join("a"), "a 1\n").unwrap();
            std::fs::write(dir.join("new"), "n\n").unwrap();
            agent.after(&action);
        }
        agent.end();
        Three { lab, dirs, agent }
    }

    fn is_at(&self, content: &str, has_new: bool) -> bool {
        let is = |dir: &PathBuf| {
            std::fs::read_to_string(dir.join("a")).unwrap() == content && dir.join("new").exists() == has_new
        };
        self.dirs.iter().all(is)
    }
}

#[test]
fn one_undo_covers_all_repositories_of_a_turn() {
    let mut three = Three::new();
    assert!(three.is_at("a 1\n", true));
    let preview = three.agent.ask(json!({"type": "undo", "include": ["likely"], "preview": true}));
    assert_eq!(preview["others"].as_array().unwrap().len(), 2, "{preview}");
    let stale = three.agent.ask(json!({"type": "undo", "include": ["likely"], "plan": "0".repeat(40)}));
    assert_eq!(code(&stale), "stale-plan", "{stale}");
    let done = three.agent.ask(json!({"type": "undo", "include": ["likely"], "plan": preview["plan"]["digest"]}));
    assert_eq!(done["others"].as_array().unwrap().len(), 2, "{done}");
    assert!(three.is_at("a 0\n", false), "{done}");
    let redone = three.lab.piton_in(&three.dirs[2], &["redo", "--yes"]);
    assert_eq!(redone.code, 0, "{redone:?}");
    assert!(three.is_at("a 1\n", true), "{redone:?}");
    // One of them that is gone is said, and the others go back.
    std::fs::rename(&three.dirs[1], three.lab.work.join("away")).unwrap();
    let output = three.lab.piton_in(&three.dirs[0], &["undo", "--include=likely", "--yes", "--json"]);
    assert_eq!(output.code, 4, "{output:?}");
    let others = output.json()["others"].clone();
    let codes: Vec<&str> =
        others.as_array().unwrap().iter().filter_map(|other| other["error"]["code"].as_str()).collect();
    assert_eq!(codes, ["workspace-gone"], "{others}");
}

#[test]
fn an_undo_that_was_killed_between_repositories_goes_on() {
    if !strace() {
        return;
    }
    let three = Three::new();
    let step = |at: usize, args: &[&str]| three.lab.piton_in(&three.dirs[at], args);
    let undo = |at: usize, fault: Option<&str>| {
        traced(&three.lab, &three.dirs[at], (CALLS, fault), &["undo", "--include=likely", "--yes"])
    };
    let (_, most) = undo(2, None);
    assert!(three.is_at("a 0\n", false));
    assert_eq!(step(0, &["redo", "--yes"]).code, 0);
    let (mut between, mut interrupted) = (0, 0);
    for n in (1..=most).step_by(if full() { 1 } else { most.div_ceil(12) }) {
        let at = n % 3;
        if undo(at, Some(&format!("inject={CALLS}:{SIGKILL}:when={n}"))).0.code != -1 {
            assert!(three.is_at("a 0\n", false), "call {n}");
        }
        between += usize::from(!three.is_at("a 0\n", false) && !three.is_at("a 1\n", true));
        let mut again = step(at, &["undo", "--include=likely", "--yes", "--json"]);
        if again.code == 5 {
            interrupted += 1;
            assert_eq!(again.error(), "rollback-in-progress", "call {n}: {again:?}");
            let way = if n % 2 == 0 { "--continue" } else { "--abort" };
            let ended = step(at, &["restore", way, "--yes"]);
            assert_eq!(ended.code, 0, "call {n}: {ended:?}");
            again = step(at, &["undo", "--include=likely", "--yes", "--json"]);
        }
        assert!([0, 3].contains(&again.code), "call {n}: {again:?}");
        assert!(three.is_at("a 0\n", false), "call {n} of {most}: {again:?}");
        let back = step((at + 1) % 3, &["redo", "--yes", "--json"]);
        assert!(back.code == 0 && three.is_at("a 1\n", true), "call {n} of {most}: {again:?}, then {back:?}");
    }
    println!("turns: {most} calls, cut off in between {between} times, {interrupted} interrupted restores");
    assert!(between > 0 && interrupted > 0, "{between} {interrupted}");
}

#[test]
fn an_interrupted_restore_of_another_workspace_is_left_alone() {
    if !strace() {
        return;
    }
    let three = Three::new();
    let is_interrupted = || {
        let status = three.lab.piton_in(&three.dirs[1], &["status", "--json"]).json();
        status["interrupted"].as_array().is_some_and(|list| !list.is_empty())
    };
    let args = ["restore", "1", "--yes"];
    let cut = |n: &usize| {
        let fault = format!("inject={CALLS}:{SIGKILL}:when={n}");
        traced(&three.lab, &three.dirs[1], (CALLS, Some(&fault)), &args).0.code == -1 && is_interrupted()
    };
    assert!((1..40).any(|n| cut(&n)), "no kill fell inside of the restore");
    // It is no part of a step that the workspaces share.
    let none = three.lab.piton_in(&three.dirs[0], &["restore", "--abort", "--json"]);
    assert_eq!((none.code, none.error().as_str()), (3, "no-such-checkpoint"), "{none:?}");
    assert!(is_interrupted());
    // But a step over the shared turn waits for its end, and says where that is.
    let refused = three.lab.piton_in(&three.dirs[0], &["undo", "--yes"]);
    assert!(refused.code == 5 && refused.stderr.contains(three.dirs[1].to_str().unwrap()), "{refused:?}");
    assert_eq!(three.lab.piton_in(&three.dirs[1], &["restore", "--abort", "--yes"]).code, 0);
    assert_eq!(three.lab.piton_in(&three.dirs[0], &["undo", "--yes", "--include", "likely"]).code, 0);
    assert!(three.is_at("a 0\n", false));
}

#[test]
fn each_session_is_told_once_what_changed_back() {
    let lab = lab_with(&["a", "b"]);
    let (mut one, mut two) = (Agent::new(&lab, "one"), Agent::new(&lab, "two"));
    let notices = |reply: &Value| -> Vec<String> {
        let all = reply["notices"].as_array().cloned().unwrap_or_default();
        all.iter().map(|notice| notice.as_str().unwrap().to_owned()).collect()
    };
    one.start("t1");
    one.edit(&lab, "a", "a 1\n");
    one.end();
    two.start("u1");
    two.end();
    undo(&lab, &[]);
    let told = notices(&one.start("t2"));
    assert!(told.len() == 1 && told[0].contains("turn `t1` was undone, and 1 path changed: a."), "{told:?}");
    assert_eq!(notices(&one.ask(json!({"type": "shell.before", "command": "ls"}))), Vec::<String>::new());
    // Kept over a restart until it is delivered, and what was taken back meanwhile is none.
    assert_eq!(two.sidecar.finish(), 0);
    redo(&lab);
    undo(&lab, &[]);
    let mut two = Agent::cold(&lab, &lab.work, "two");
    let told = notices(&two.start("u2"));
    assert!(told.len() == 1 && told[0].contains("turn `t1` was undone"), "{told:?}");
    assert_eq!(notices(&two.start("u3")), Vec::<String>::new());
}

#[test]
fn a_restore_says_whose_edits_it_would_take_along() {
    let lab = lab_with(&["a", "b", "mine"]);
    let (mut one, mut two) = (Agent::new(&lab, "one"), Agent::new(&lab, "two"));
    lab.take("begin");
    for (agent, turn, file) in [(&mut one, "t1", "a"), (&mut two, "u1", "b")] {
        agent.start(turn);
        agent.edit(&lab, file, "changed\n");
        agent.edit(&lab, "mine", &format!("{turn}\n"));
        agent.end();
    }
    lab.write("mine", "mine now\n");
    two.start("u2");
    two.shell(&lab, || ());
    let preview = one.ask(json!({"type": "rollback.preview", "sha": "begin"}));
    let edits = listed(&preview["outside_edits"]);
    assert_eq!(edits.keys().collect::<Vec<_>>(), ["b", "mine"], "{preview}");
    assert!(edits["b"].contains("run two, turn `u1`") && edits["mine"].contains("no known turn"), "{edits:?}");
    let is_open =
        |warning: &Value| warning["message"].as_str().unwrap().contains("turn `u2` of tester (run two) is still open");
    assert!(preview["warnings"].as_array().unwrap().iter().any(is_open), "{preview}");
    let done = one.ask(json!({"type": "restore", "sha": "begin", "rewind": true}));
    assert_eq!(done["rewindTurn"], "t1", "{done}");
    // The undo of that restore says nothing of the files as piton has left them.
    lab.write("mine", "mine again\n");
    let preview = lab.piton(&["undo", "--preview", "--json"]).json();
    let edits = listed(&preview["outside_edits"]);
    assert_eq!(edits.keys().collect::<Vec<_>>(), ["mine"], "{preview}");
}

#[test]
fn without_a_watcher_the_files_times_tell_what_an_action_wrote() {
    let lab = lab_with(&["a", "b"]);
    lab.set("watcher: none\n");
    let mut agent = Agent::cold(&lab, &lab.work, "s");
    agent.start("t1");
    agent.edit(&lab, "a", "a 1\n");
    agent.shell(&lab, || lab.write("b", "b 1\n"));
    agent.end();
    assert_eq!(shares(&lab, "t1"), some(&[("a", "sure"), ("b", "likely")]));
    let done = lab.piton(&["undo", "--yes", "--json"]);
    assert_eq!((done.code, changed(&done.json())), (4, words(&["a"])), "{done:?}");
    assert_eq!(lab.read("b"), "b 1\n");
}

/// Runs a command of an agent in the home directory.
fn run_at_home(lab: &Lab, agent: &mut Agent, command: &str) {
    agent.actions += 1;
    let action = format!("a{}", agent.actions);
    let reply = agent.ask(json!({"type": "shell.before", "command": command, "action": action, "cwd": lab.home}));
    assert_eq!(reply["proceed"], true, "{reply}");
    let mut shell = lab.command("/bin/sh", &lab.home);
    assert!(shell.args(["-c", command]).status().unwrap().success(), "{command}");
    agent.ask(json!({"type": "shell.after", "action": action}));
}

/// A directory that is too broad to capture: a turn there is what its actions name.
#[test]
fn a_turn_in_the_home_directory_is_undone() {
    let lab = Lab::new();
    for path in ["x/f", "x/in/g", "f", "g", "other"] {
        let at = lab.home.join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, path).unwrap();
    }
    std::fs::set_permissions(lab.home.join("x/in"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let present = || {
        let mut all = tree(&lab.home);
        all.retain(|path, _| !path.starts_with("piton"));
        all
    };
    let piton = |args: &[&str]| lab.piton_in(&lab.home, args);
    let mut agent = Agent::cold(&lab, &lab.home, "s");
    // Outside of turns nothing can be undone, and the checkpoint is named.
    run_at_home(&lab, &mut agent, "rm other");
    let none = piton(&["undo", "--yes"]);
    assert!(none.code == 3 && none.stdout.contains("`piton restore 1`"), "{none:?}");
    assert_eq!(piton(&["restore", "1", "--yes"]).code, 0);
    // A file that is younger than a tick of the clock may have come with the turn.
    ticks_pass();
    let before = present();
    agent.start("one");
    run_at_home(&lab, &mut agent, "rm g");
    // A later action names what the first one did not.
    run_at_home(&lab, &mut agent, "rm -r x; echo new > f");
    agent.end();
    let after = present();
    let undone = piton(&["undo", "--yes"]);
    assert!(undone.code == 0 && undone.stdout.contains("turn `one`"), "{undone:?}");
    assert_eq!(present(), before, "{undone:?}");
    let redone = piton(&["redo", "--yes"]);
    assert_eq!((redone.code, present()), (0, after), "{redone:?}");
    // The files of the later action are in no private layer.
    let newest = piton(&["list", "--json", "--kind", "auto"]).json()["checkpoints"][0]["n"].to_string();
    let shown = piton(&["show", &newest]);
    assert!(shown.stdout.contains("x/in/g\n") && !shown.stdout.contains("private"), "{shown:?}");
    assert_eq!(piton(&["undo", "--yes"]).code, 0);
    // A turn that is open.
    agent.start("two");
    run_at_home(&lab, &mut agent, "mv f moved");
    let undone = piton(&["undo", "--yes"]);
    assert_eq!((undone.code, present()), (0, before), "{undone:?}");
    assert_eq!(agent.sidecar.finish(), 0);
}

/// The workspaces around are named in which something can be undone.
#[test]
fn undo_names_the_workspaces_around() {
    let lab = lab_with(&["a"]);
    let (above, inner, idle) = (lab.root(), lab.work.join("in it"), lab.root().join("idle"));
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::create_dir_all(&idle).unwrap();
    let at = |dir: &Path, args: &[&str]| lab.piton_in(dir, &[&["-w", "."], args].concat());
    for dir in [&above, &inner, &idle] {
        let none = at(dir, &["undo", "--yes"]);
        assert!(none.code == 3 && !none.stdout.contains("another workspace"), "{none:?}");
    }
    std::fs::write(inner.join("b"), "old").unwrap();
    for dir in [&lab.work, &inner] {
        assert_eq!(at(dir, &["checkpoint"]).code, 0);
        std::fs::write(dir.join("b"), "new").unwrap();
        assert_eq!(at(dir, &["restore", "1", "--yes"]).code, 0);
    }
    let hint = |place: &str, dir: &str| {
        format!("Another workspace {place} this one has something to undo; run `piton undo --workspace {dir}`.\n")
    };
    let (work, quoted) = (lab.work.to_string_lossy().into_owned(), format!("'{}'", inner.to_string_lossy()));
    let told = at(&above, &["undo", "--yes"]);
    assert!(told.code == 3 && told.stdout.ends_with(&(hint("below", &work) + &hint("below", &quoted))), "{told:?}");
    assert_eq!(at(&inner, &["undo", "--yes"]).code, 0);
    let told = at(&inner, &["undo", "--yes"]);
    assert!(told.code == 3 && told.stdout.ends_with(&hint("above", &work)), "{told:?}");
    // A turn that is open there can be undone, too.
    assert_eq!(at(&lab.work, &["undo", "--yes"]).code, 0);
    let told = at(&inner, &["undo", "--yes"]);
    assert!(!told.stdout.contains("another workspace"), "{told:?}");
    let mut agent = Agent::cold(&lab, &lab.work, "s");
    agent.start("one");
    let action = agent.begin(&lab.work);
    let told = at(&inner, &["undo", "--yes"]);
    assert!(told.stdout.ends_with(&hint("above", &work)), "{told:?}");
    agent.ask(json!({"type": "shell.after", "action": action}));
    assert_eq!(agent.sidecar.finish(), 0);
}

#[test]
fn the_end_of_a_turn_says_what_a_person_should_look_at() {
    let lab = lab_with(&[".env"]);
    (0..25).for_each(|n| lab.write(&format!("d/{n}"), "x"));
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || lab.sh("rm -rf d; echo KEY=2 > .env"));
    let ended = agent.end();
    let told = ended["notices"][0].as_str().unwrap();
    assert!(told.contains("26 paths gone") && told.contains("`.env` changed and looks like a secret"), "{told}");
    agent.start("t2");
    agent.edit(&lab, "a", "a\n");
    assert_eq!(agent.end()["notices"], Value::Null);
}

#[test]
fn turns_outlive_what_retention_and_forget_take() {
    let lab = lab_with(&["a", "secret.txt"]);
    lab.set("retention: {per_workspace: 2, auto_per_run: 1, days: 1}\n");
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "a", "a 1\n");
    agent.edit(&lab, "secret.txt", "hunter2hunter2\n");
    agent.end();
    for n in 0..12 {
        lab.write("later", n.to_string());
        lab.take(&format!("later {n}"));
    }
    assert_eq!(agent.sidecar.finish(), 0);
    assert!([0, 3].contains(&lab.piton(&["prune", "--yes"]).code));
    lab.write("secret.txt", "clean\n");
    let forgotten = lab.piton(&["forget", "--secret", "hunter2hunter2", "--yes", "--json"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    let all = tree(&lab.home);
    assert!(all.values().all(|(_, _, bytes)| !bytes.windows(14).any(|part| part == b"hunter2hunter2")));
    assert_eq!(lab.piton(&["turns"]).code, 0);
    assert_eq!(shares(&lab, "t1").len(), 2);
    let done = undo(&lab, &[]);
    assert_eq!((lab.read("a"), lab.read("secret.txt")), ("a 0\n".to_owned(), "clean\n".to_owned()), "{done}");
}

#[test]
fn the_newest_turns_can_be_undone_and_redone_whatever_retention_drops() {
    let lab = lab_with(&["a", "b", "c"]);
    lab.set("retention: {per_workspace: 1, auto_per_run: 1, labelled: 1}\n");
    let mut agent = Agent::new(&lab, "s");
    let mut trees = vec![tree(&lab.work)];
    for name in ["a", "b", "c"] {
        agent.start(name);
        agent.edit(&lab, name, "of the agent\n");
        agent.shell(&lab, || lab.write(&format!("new/{name}"), "new\n"));
        agent.end();
        trees.push(tree(&lab.work));
    }
    let prune = || {
        for n in 0..10 {
            lab.write("person", n.to_string());
            assert!([0, 4].contains(&lab.piton(&["checkpoint"]).code));
        }
        assert!([0, 3].contains(&lab.piton(&["prune", "--yes"]).code));
        let mut now = tree(&lab.work);
        now.remove(Path::new("person"));
        now
    };
    assert_eq!(prune(), trees[3]);
    for at in [2, 1, 0] {
        undo(&lab, &[]);
        assert_eq!(prune(), trees[at], "undone to {at}");
    }
    for at in [1, 2, 3] {
        redo(&lab);
        assert_eq!(prune(), trees[at], "redone to {at}");
    }
    assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0);
}

#[test]
fn what_no_checkpoint_holds_is_named_and_no_older_turn_goes_in_its_place() {
    let lab = lab_with(&["f"]);
    lab.set("limits: {file_mb: 1}\n");
    lab.write("data", vec![b'x'; 3 << 20]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.edit(&lab, "f", "f 1\n");
    agent.end();
    agent.start("t2");
    agent.shell(&lab, || lab.write("data", "small\n"));
    agent.end();
    let turns = lab.piton(&["turns", "--json"]).json();
    assert_eq!(
        (&turns["turns"][0]["turn"], &turns["turns"][0]["shares"]["missed"]),
        (&json!("t2"), &json!(1)),
        "{turns}"
    );
    let stays = lab.piton(&["undo", "--yes"]);
    assert_eq!((stays.code, lab.read("f"), lab.read("data")), (4, "f 1\n".into(), "small\n".into()), "{stays:?}");
    assert!(
        stays.stdout.contains("data  (not saved when the turn began") && stays.stdout.contains("recover"),
        "{stays:?}"
    );
    assert_eq!(lab.piton(&["undo", "--turn", "t2", "--yes"]).code, 4);
    let diff = lab.piton(&["diff", "--turn", "t2"]);
    assert!(diff.stdout.contains("data"), "{diff:?}");
    assert_eq!(changed(&undo(&lab, &["--turn=t1"])), words(&["f"]));
}

#[test]
fn an_undo_that_changes_nothing_is_not_done() {
    let lab = lab_with(&["f", "g"]);
    let mut agent = Agent::new(&lab, "s");
    for (turn, path) in [("t1", "f"), ("t2", "g")] {
        agent.start(turn);
        agent.edit(&lab, path, "of the agent\n");
        agent.end();
    }
    // Out of their order, and then a person is in the way of the newest undo's redo.
    undo(&lab, &["--turn=t1"]);
    undo(&lab, &[]);
    lab.write("g", "of a person\n");
    let stuck = lab.piton(&["redo", "--yes"]);
    assert!(stuck.code == 3 && stuck.stdout.contains("piton redo --turn TURN"), "{stuck:?}");
    let one = lab.piton(&["redo", "--turn", "t1", "--yes"]);
    assert!(one.code == 0 && one.stdout.contains("To reverse this: `piton undo`"), "{one:?}");
    assert_eq!([lab.read("f"), lab.read("g")], ["of the agent\n", "of a person\n"]);
    lab.write("g", "g 0\n");
    assert_eq!(lab.piton(&["redo", "--turn", "t2", "--yes"]).code, 0);
    // A restore in between leaves the redo of a turn as it was.
    undo(&lab, &["--turn=t1"]);
    assert_eq!(lab.piton(&["recover", "g", "--yes"]).code, 0);
    let back = lab.piton(&["redo", "--yes"]);
    assert!(back.code == 0 && back.stdout.contains("To reverse this: `piton undo --turn t-1`"), "{back:?}");
    assert_eq!(lab.read("f"), "of the agent\n");
    // Nobody may write there: nothing is done, and the same command does it later.
    undo(&lab, &[]);
    mode(&lab, ".", 0o555);
    let failed = lab.piton(&["undo", "--turn", "t1", "--yes"]);
    mode(&lab, ".", 0o755);
    if lab.read("f") != "f 0\n" {
        assert_ne!(failed.code, 0, "{failed:?}");
        assert_eq!(changed(&undo(&lab, &["--turn=t1"])), words(&["f"]));
    }
}

#[test]
fn what_came_after_an_action_without_an_end_is_nobodys() {
    let lab = lab_with(&["f", "mine"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    let action = agent.begin(&lab.work);
    lab.write("f", "of the agent\n");
    // The next answer of the watcher tells of it; the action's end is never told.
    agent.edit(&lab, "named", "of the agent\n");
    let _ = action;
    lab.write("mine", "of a person\n");
    lab.write("notes", "of a person\n");
    let done = lab.piton(&["undo", "--yes", "--json"]);
    assert_eq!([lab.read("mine"), lab.read("notes")], ["of a person\n", "of a person\n"], "{done:?}");
}

#[test]
fn an_action_ends_with_the_sidecar_that_told_of_it() {
    for is_killed in [false, true] {
        let lab = lab_with(&["f"]);
        let (mut gone, mut other) = (Agent::new(&lab, "gone"), Agent::new(&lab, "other"));
        gone.start("t1");
        gone.begin(&lab.work);
        lab.write("f", "of the agent\n");
        match is_killed {
            true => {
                gone.sidecar.child.kill().unwrap();
                gone.sidecar.wait();
            }
            false => assert_eq!(gone.sidecar.finish(), 0),
        }
        // Another session watches on: what a person writes now is not of an action that nobody tells of any more.
        other.start("t2");
        other.edit(&lab, "x", "x\n");
        lab.write("mine", "of a person\n");
        other.edit(&lab, "y", "y\n");
        other.end();
        assert_eq!(shares(&lab, "t2"), some(&[("x", "sure"), ("y", "sure")]));
        let turns = lab.piton(&["turns", "--json"]).json();
        let of_gone = turns["turns"].as_array().unwrap().iter().find(|turn| turn["turn"] == "t1").unwrap();
        // The client of a killed sidecar may go on with the action. One that has closed its connection has ended the turn.
        let expected = if is_killed { (&json!(true), &Value::Null) } else { (&json!(false), &json!(true)) };
        assert_eq!((&of_gone["open"], &of_gone["interrupted"]), expected, "{turns}");
        // The action may go on without its sidecar, so that much is possible and nothing sure.
        assert_ne!(shares(&lab, "t1").get("mine").map(String::as_str), Some("sure"), "{:?}", shares(&lab, "t1"));
    }
}

#[test]
fn what_an_agent_writes_again_after_an_undo_is_its_own() {
    let lab = lab_with(&["a"]);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t");
    agent.edit(&lab, "a", "a 1\n");
    undo(&lab, &[]);
    agent.edit(&lab, "a", "a 2\n");
    agent.end();
    assert_eq!(shares(&lab, "t"), some(&[("a", "sure")]));
    undo(&lab, &[]);
    assert_eq!(lab.read("a"), "a 0\n");
}

#[test]
fn a_branch_switch_by_the_agent_is_its_own() {
    let lab = lab_with(&["a", "b"]);
    if !has_branches(&lab) {
        return;
    }
    let mut agent = Agent::new(&lab, "s");
    agent.start("t");
    let command = "git checkout -q other";
    agent.ask(json!({"type": "shell.before", "command": command, "action": "switch", "cwd": lab.work}));
    git(&lab, &["checkout", "-q", "other"]);
    agent.after("switch");
    agent.end();
    let first = lab.piton(&["undo", "--yes"]);
    assert!(first.code == 4 && first.stdout.contains("Switch back first: `git checkout "), "{first:?}");
    assert_eq!(changed(&undo(&lab, &["--turn=t"])), words(&["b", "c"]));
    assert_eq!((lab.read("b"), lab.work.join("c").exists()), ("b 0\n".to_owned(), false));
}

#[test]
fn the_newest_version_that_differs_is_recovered() {
    let lab = lab_with(&["a", "dir/x", "dir/y"]);
    lab.take("one");
    lab.write("a", "a 1\n");
    lab.take("two");
    lab.sh("rm dir/x; echo new > dir/z");
    assert_eq!(lab.piton(&["recover", "a", "--yes"]).code, 0);
    assert_eq!(lab.read("a"), "a 0\n");
    assert_eq!(lab.piton_in(&lab.work.join("dir"), &["recover", ".", "--yes"]).code, 0);
    assert_eq!([lab.read("dir/x"), lab.read("dir/z")], ["dir/x 0\n", "new\n"]);
    assert_eq!(lab.piton(&["recover", "dir", "--yes"]).code, 3);
    assert_eq!(lab.piton(&["recover", "nowhere", "--json"]).error(), "no-such-path");
    assert_eq!(lab.piton(&["restore", "2:a", "--yes"]).code, 0);
    assert_eq!(lab.read("a"), "a 1\n");
    // Patterns, bare names, times.
    let found = |args: &[&str]| -> Vec<String> {
        let output = lab.piton(&[&["find", "--json"], args].concat());
        let matches = output.json()["matches"].as_array().cloned().unwrap_or_default();
        matches.iter().map(|item| item["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found(&["*/x"]), ["dir/x"]);
    assert_eq!(found(&["y"]), ["dir/y"]);
    // Also what only the checkpoint before a restore holds.
    assert_eq!(found(&["?", "--since", "1h"]), ["a", "dir/x", "dir/y", "dir/z"]);
    assert_eq!(found(&["?", "--until", "2020-01-01"]), Vec::<String>::new());
    assert_eq!(lab.piton(&["find", "x", "--since", "yesterday-ish", "--json"]).error(), "bad-request");
}

/// One session of the random test.
struct Actor {
    agent: Agent,
    turn: Option<String>,
    turns: u64,
}

/// Waits until files that change now carry later times than those that an action has changed. The kernel stamps them by a clock of
/// ticks, and a change within a tick of an action's end counts as the action's.
pub(super) fn ticks_pass() {
    let until = file_clock() + 20_000_000;
    while file_clock() < until {
        std::thread::yield_now();
    }
}

/// The random test: three sessions and a person, and undos in between.
struct Play {
    lab: Lab,
    actors: Vec<Actor>,
    dice: Dice,
    count: u64,
    log: Vec<String>,
}

const FILES: [&str; 12] = ["a", "b", "c", "d1/a", "d1/b", "d1/c", "d2/a", "d2/b", "d2/c", "d2/deep/a", "d3/a", "d3/b"];

impl Play {
    fn new(seed: u64) -> Play {
        let lab = lab_with(&FILES);
        let actors = ["one", "two", "three"].map(|name| Actor { agent: Agent::new(&lab, name), turn: None, turns: 0 });
        Play { lab, actors: actors.into(), dice: Dice(seed * 7919 + 1), count: 0, log: Vec::new() }
    }

    /// Changes a file, in a way that shows who did it.
    fn change(&mut self, who: &str, path: &str) {
        self.count += 1;
        let (full, count) = (self.lab.work.join(path), self.count);
        match self.dice.roll(5) {
            0 if full.exists() => std::fs::remove_file(full).unwrap(),
            1 if full.exists() => mode(&self.lab, path, [0o600, 0o644, 0o755][self.dice.roll(3) as usize]),
            _ => self.lab.write(path, format!("{path} by {who} at {count}\n")),
        }
    }

    fn act(&mut self, at: usize) {
        let Some(turn) = self.actors[at].turn.clone() else {
            let actor = &mut self.actors[at];
            actor.turns += 1;
            let turn = format!("{at}-{}", actor.turns);
            actor.agent.start(&turn);
            actor.turn = Some(turn);
            return;
        };
        let new = format!("d9/n{}", self.count);
        let path = if self.dice.roll(8) == 0 { new } else { self.dice.of(&FILES).to_owned() };
        self.log.push(format!("{turn} changes {path}"));
        if self.dice.roll(2) == 0 {
            let action = self.actors[at].agent.begin(&self.lab.work.clone());
            self.change(&turn, &path);
            self.actors[at].agent.after(&action);
        } else {
            self.count += 1;
            let content = format!("{path} by {turn} at {}\n", self.count);
            self.actors[at].agent.edit(&self.lab, &path, &content);
        }
    }

    fn step(&mut self) {
        let at = self.dice.roll(3) as usize;
        match self.dice.roll(20) {
            0 => {
                if self.actors[at].turn.take().is_some() {
                    self.actors[at].agent.end();
                }
            }
            1..=12 => self.act(at),
            13..=15 => {
                let path = self.dice.of(&FILES).to_owned();
                self.log.push(format!("person changes {path}"));
                ticks_pass();
                self.change("person", &path);
            }
            _ => self.undo(),
        }
    }

    /// Undoes a turn, and checks that nothing else was taken.
    fn undo(&mut self) {
        let listing = self.lab.piton(&["turns", "--json"]).json();
        let open: Vec<Value> =
            listing["turns"].as_array().unwrap().iter().filter(|turn| turn["undone"] == false).cloned().collect();
        let mut args = vec![];
        let chosen = open.get(self.dice.roll(open.len().max(1) as u64) as usize);
        let name = chosen.map(|turn| format!("--turn={}", turn["operation"].as_str().unwrap()));
        args.extend(name.as_deref().filter(|_| self.dice.roll(3) > 0));
        let before = tree(&self.lab.work);
        // Without a person's answer nothing is replaced or deleted that someone else may have written.
        let output = self.lab.piton(&[&["undo", "--yes", "--json"], args.as_slice()].concat());
        assert!([0, 3, 4].contains(&output.code), "{output:?}");
        let done = output.json();
        let after = tree(&self.lab.work);
        let over = done["over"]["turn"]["turn"].as_str().unwrap_or_default().to_owned();
        self.log.push(format!("undo of {over}"));
        if done["done"].is_null() {
            assert_eq!(before, after, "{done}\n{:#?}", self.log);
            return;
        }
        let told = changed(&done);
        for path in before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)) {
            let name = path.to_string_lossy().into_owned();
            assert!(told.contains(&name), "{name} changed, and was not told: {done}\n{:#?}", self.log);
            let (then, now) = (before.get(path), after.get(path));
            let Some((_, _, content)) = then.filter(|then| now.is_none_or(|now| now.2 != then.2)) else { continue };
            let content = String::from_utf8_lossy(content);
            let is_own = content.is_empty() || content.contains(&format!(" by {over} at "));
            assert!(is_own, "{name} had `{content}`, and went with turn {over}\n{:#?}", self.log);
        }
        if done["operation"].is_string() && self.dice.roll(3) > 0 {
            redo(&self.lab);
            assert_eq!(tree(&self.lab.work), before, "redo of {over}\n{:#?}", self.log);
        }
    }
}

/// The full count is 20 seeds of 500 steps.
#[test]
fn random_turns_take_back_nothing_but_their_own() {
    let (seeds, steps) = if full() { (20, 500) } else { (2, 90) };
    for seed in 1..=seeds {
        let mut play = Play::new(seed);
        (0..steps).for_each(|_| play.step());
        println!("seed {seed}: {} changes", play.count);
    }
}
