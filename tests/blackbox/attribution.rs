//! Attribution: what an undo replaces, deletes and restores after a turn in which others worked too.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::support::{Lab, Output, WAIT, commit_all, git, tree};
use super::turns::ticks_pass;

/// A session of a client whose hooks call piton, with the daemon's watcher running.
struct Session {
    lab: Lab,
    client: &'static str,
    calls: u32,
    /// Options of each hook.
    options: &'static [&'static str],
}

/// A call of a tool that a client has asked for.
struct Call {
    fields: Value,
}

impl Session {
    fn claude(files: &[&str]) -> Session {
        Session::new("claude-code", files)
    }

    fn new(client: &'static str, files: &[&str]) -> Session {
        let lab = Lab::new();
        files.iter().for_each(|file| lab.write(file, format!("{file} 0\n")));
        let mut session = Session { lab, client, calls: 0, options: &[] };
        session.prompt("first");
        let until = Instant::now() + WAIT;
        while session.lab.piton(&["status", "--json"]).json()["watcher"] != "warm" {
            assert!(Instant::now() < until, "never warm");
            std::thread::yield_now();
        }
        session
    }

    /// A session of Claude Code in a repository in which all files are committed; `None` without git.
    fn in_repository(files: &[&str]) -> Option<Session> {
        let session = Session::claude(files);
        commit_all(&session.lab)?;
        // A blob that is made just before a turn may be one that the turn has added.
        ticks_pass();
        Some(session)
    }

    fn hook(&self, event: &str, fields: Value) {
        let mut payload = match self.client {
            "copilot-cli" => json!({"sessionId": "s", "cwd": self.lab.work}),
            _ => json!({"session_id": "s", "cwd": self.lab.work, "hook_event_name": event}),
        };
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut command = self.lab.command(env!("CARGO_BIN_EXE_piton"), &self.lab.work);
        command.args(["hook", self.client, event]).args(self.options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
    }

    fn prompt(&mut self, text: &str) {
        let event = if self.client == "copilot-cli" { "userPromptSubmitted" } else { "UserPromptSubmit" };
        self.hook(event, json!({"prompt": text}));
    }

    fn stop(&self) {
        let event = if self.client == "copilot-cli" { "agentStop" } else { "Stop" };
        self.hook(event, json!({}));
    }

    /// Asks for a tool, as the client does before it asks the person.
    fn before(&mut self, tool: &str, input: Value) -> Call {
        self.calls += 1;
        let id = format!("u{}", self.calls);
        let fields = match self.client {
            "copilot-cli" => json!({"toolName": tool, "toolArgs": input}),
            _ => json!({"tool_name": tool, "tool_input": input, "tool_use_id": id}),
        };
        let event = if self.client == "copilot-cli" { "preToolUse" } else { "PreToolUse" };
        self.hook(event, fields.clone());
        Call { fields }
    }

    fn bash(&mut self, command: &str) -> Call {
        let tool = if self.client == "copilot-cli" { "bash" } else { "Bash" };
        self.before(tool, json!({"command": command}))
    }

    fn after(&self, call: &Call) {
        let event = if self.client == "copilot-cli" { "postToolUse" } else { "PostToolUse" };
        self.hook(event, call.fields.clone());
    }

    /// Runs a command as the agent does.
    fn runs(&mut self, command: &str) {
        let call = self.bash(command);
        self.lab.sh(command);
        self.after(&call);
    }

    /// Runs a command that piton cannot see into, and what it does.
    fn script(&mut self, work: impl FnOnce(&Lab)) {
        let call = self.bash("./generate");
        work(&self.lab);
        self.after(&call);
    }

    fn undo(&self, args: &[&str]) -> Output {
        self.lab.piton(&[&["undo", "--yes", "--json"], args].concat())
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.lab.work.join(path)).unwrap();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.lab.piton(&["daemon", "stop"]);
    }
}

fn left(reply: &Value) -> Vec<&str> {
    let items = reply["left"]["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item["path"].as_str().unwrap()).collect()
}

#[test]
fn what_a_person_edits_at_a_permission_prompt_stays() {
    for (tool, input) in [
        ("Bash", json!({"command": "./deploy"})),
        ("Bash", json!({"command": "rm a"})),
        ("Bash", json!({"command": "sed -i s/0/1/ a"})),
        ("Write", json!({"file_path": "a", "content": "x"})),
    ] {
        let mut session = Session::claude(&["a", "notes.md"]);
        session.prompt("do it");
        session.before(tool, input.clone());
        session.lab.write("notes.md", "the person's work\n");
        session.stop();
        session.undo(&[]);
        assert_eq!(session.lab.read("notes.md"), "the person's work\n", "{tool} {input}");
        assert_eq!(session.lab.read("a"), "a 0\n", "{tool} {input}");
    }
}

#[test]
fn a_person_owns_a_path_that_a_call_names_which_waits_or_was_denied() {
    for (tool, input, others) in [
        ("Write", json!({"file_path": "a", "content": "x"}), false),
        ("Write", json!({"file_path": "new", "content": "x"}), false),
        ("Write", json!({"file_path": "a", "content": "x"}), true),
        ("Bash", json!({"command": "sed -i s/0/1/ a && rm b"}), true),
    ] {
        let mut session = Session::claude(&["a", "b", "c"]);
        session.prompt("do it");
        session.before(tool, input.clone());
        if others {
            let write = session.before("Write", json!({"file_path": "c", "content": "c 1"}));
            session.lab.write("c", "c 1");
            session.after(&write);
        }
        for file in ["a", "new"] {
            session.lab.write(file, "the person's work\n");
        }
        // The turn is open.
        session.undo(&[]);
        for file in ["a", "new"] {
            assert_eq!(session.lab.read(file), "the person's work\n", "{tool} {input} {others}");
        }
        assert_eq!(session.lab.read("c"), "c 0\n", "{tool} {input} {others}");
    }
}

#[test]
fn a_person_owns_a_path_that_a_denied_call_names_where_no_daemon_serves() {
    let mut session = Session::claude(&["a", "c"]);
    session.lab.piton(&["daemon", "stop"]);
    session.options = &["--no-daemon"];
    session.prompt("do it");
    session.before("Write", json!({"file_path": "a", "content": "x"}));
    session.lab.write("a", "the person's work\n");
    let write = session.before("Write", json!({"file_path": "c", "content": "c 1"}));
    session.lab.write("c", "c 1");
    session.after(&write);
    session.stop();
    session.undo(&[]);
    assert_eq!([session.lab.read("a"), session.lab.read("c")], ["the person's work\n", "c 0\n"]);
}

#[test]
fn a_change_of_ignore_rules_makes_no_other_change_of_the_turn_doubtful() {
    for (first, second) in [("f", ".gitignore"), (".gitignore", "f"), ("f", ".git/info/exclude")] {
        let Some(mut session) = Session::in_repository(&["f", "src/g", "x.log"]) else { return };
        session.lab.write(".gitignore", "*.log\n");
        session.prompt("do it");
        for path in [first, second] {
            let edit = session.before("Write", json!({"file_path": path, "content": "x"}));
            session.lab.write(path, "*.tmp\n");
            session.after(&edit);
        }
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!(session.lab.read("f"), "f 0\n", "{first} {second}: {undone:?}");
    }
}

#[test]
fn what_git_wrote_is_the_turns_where_no_daemon_serves() {
    for line in ["git restore .", "git reset -q --hard", "git stash -q"] {
        let Some(mut session) = Session::in_repository(&["f", "g"]) else { return };
        session.lab.piton(&["daemon", "stop"]);
        session.options = &["--no-daemon"];
        session.lab.write("f", "mine\n");
        session.prompt("do it");
        session.runs(line);
        assert_eq!(session.lab.read("f"), "f 0\n", "{line}");
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!((undone.code, session.lab.read("f").as_str()), (0, "mine\n"), "{line}: {undone:?}");
    }
}

/// The second file of a program has a name that no word spells out.
#[test]
fn the_second_files_of_programs_are_the_turns() {
    for (line, made, there) in [
        ("sed -i.bak s/0/1/ f", "f.bak", true),
        ("sed -i.bak s/0/1/ f", "f.bak", false),
        ("perl -i.bak -pe s/0/1/ f", "f.bak", true),
        ("gzip -f f", "f.gz", true),
        ("gzip -k f", "f.gz", false),
        ("cp -b g f", "f~", true),
        ("mv -b g f", "f~", false),
        ("echo x >link", "made", false),
    ] {
        let mut session = Session::claude(&["f", "g"]);
        session.lab.sh("ln -s made link");
        if there {
            session.lab.write(made, "mine\n");
        }
        let before = tree(&session.lab.work);
        session.prompt("do it");
        session.runs(line);
        session.stop();
        assert_ne!(tree(&session.lab.work), before, "{line}");
        let undone = session.undo(&[]);
        assert_eq!(tree(&session.lab.work), before, "{line} {there}: {undone:?}");
    }
}

/// git logs whole seconds: the switch and the beginning of the turn have the same one.
#[test]
fn a_switch_just_before_a_turn_is_none_of_the_turns() {
    let Some(mut session) = Session::in_repository(&["f", "g"]) else { return };
    git(&session.lab, &["checkout", "-q", "-b", "side"]);
    session.lab.write("g", "side\n");
    git(&session.lab, &["commit", "-qam", "side"]);
    // A second that has just begun has room for all of it.
    let second = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let now = second();
    while second() == now {
        std::thread::yield_now();
    }
    git(&session.lab, &["checkout", "-q", "-"]);
    // The turn begins with a capture of its own.
    session.lab.write("h", "new\n");
    session.prompt("do it");
    // This action may move HEAD, and runs in the second of the switch.
    session.runs("git restore .");
    let edit = session.before("Write", json!({"file_path": "f", "content": "x"}));
    session.lab.write("f", "1\n");
    session.after(&edit);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, session.lab.read("f").as_str()), (0, "f 0\n"), "{undone:?}");
}

/// Without a daemon each hook watches for a moment only. The directory of the deleted path changes again after the deletion.
#[test]
fn all_deletions_of_a_turn_come_back_where_no_daemon_serves() {
    for (line, later) in
        [("rm -rf d", "rm b"), ("rm -rf d", "sed -i s/0/1/ b"), ("./clean", "rm b"), ("rm -rf d", "rm -f none")]
    {
        let mut session = Session::claude(&["d/a", "b", "c"]);
        session.lab.piton(&["daemon", "stop"]);
        session.options = &["--no-daemon"];
        session.prompt("do it");
        let remove = session.bash(line);
        session.lab.sh("rm -rf d");
        session.after(&remove);
        ticks_pass();
        let other = session.bash(later);
        session.lab.sh("echo 1 >b.new; mv b.new b");
        session.after(&other);
        session.remove("c");
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!(session.lab.read("d/a"), "d/a 0\n", "{line} {later}: {undone:?}");
        // A script may have deleted any file.
        assert_eq!(session.lab.work.join("c").exists(), line == "./clean", "{line} {later}: {undone:?}");
    }
}

#[test]
fn a_deletion_of_a_process_that_the_turn_left_at_work_is_listed() {
    for (line, ends, is_listed) in [
        ("(sleep 1; rm -rf d) &", true, true),
        ("nohup ./job >/dev/null 2>&1", true, true),
        ("ls && echo a 2>&1 >&2", true, false),
        ("./job # in the background", true, true),
        // A call without an end may be at work still, although its sibling has ended.
        ("./job", false, true),
        ("rm c", false, false),
    ] {
        let attempt = || {
            let mut session = Session::claude(&["d/a", "c", "e"]);
            session.prompt("first");
            let write = session.before("Write", json!({"file_path": "e", "content": "e 1"}));
            session.lab.write("e", "e 1");
            session.after(&write);
            session.stop();
            session.prompt("second");
            let in_background = line.contains("background");
            let job = session.before("Bash", json!({"command": line, "run_in_background": in_background}));
            if ends {
                session.after(&job);
            }
            let sibling = session.bash("ls");
            session.after(&sibling);
            session.remove("d/a");
            session.stop();
            let undone = session.undo(&[]);
            (session, undone, ())
        };
        let (session, undone, ()) = if is_listed { attempt() } else { undisturbed(&attempt) };
        assert_eq!(undone.stdout.contains("d/a"), is_listed, "{line}: {}", undone.stdout);
        let earlier = if is_listed { "e 1" } else { "e 0\n" };
        assert_eq!(session.lab.read("e"), earlier, "{line}: undo stops at the turn of the loss: {}", undone.stdout);
    }
}

#[test]
fn a_repository_that_an_opaque_program_deletes_is_listed() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    session.prompt("do it");
    session.script(|lab| std::fs::remove_dir_all(lab.work.join(".git")).unwrap());
    session.stop();
    let undone = session.undo(&[]);
    assert!(undone.code == 4 && undone.stdout.contains("\".git\""), "{undone:?}");
}

#[test]
fn the_other_name_of_a_file_that_the_turn_changed_goes_back_too() {
    let mut session = Session::claude(&["a"]);
    session.lab.sh("ln a hl; cp a copy");
    session.prompt("do it");
    let call = session.bash("echo x > a");
    session.lab.sh("echo x > a");
    session.after(&call);
    // A person writes the same into another file.
    session.lab.sh("echo x > copy");
    session.stop();
    let undone = session.undo(&[]);
    let now = ["a", "hl", "copy"].map(|name| session.lab.read(name));
    assert_eq!(now, ["a 0\n", "a 0\n", "x\n"], "{}", undone.stdout);
}

#[test]
fn an_older_version_that_undo_leaves_is_named_with_its_command() {
    let mut session = Session::claude(&["a", "b"]);
    session.prompt("do it");
    let call = session.bash("rm a b");
    session.remove("a");
    session.remove("b");
    session.after(&call);
    session.stop();
    session.lab.write("a", "the person's work\n");
    let undone = session.lab.piton(&["undo", "--yes"]);
    assert_eq!(undone.code, 4, "{undone:?}");
    let line = undone.stdout.lines().find(|line| line.contains("as it was before the turn")).unwrap_or_default();
    let command = line.split('`').nth(1).unwrap_or_default();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    let restored = session.lab.piton(&words);
    assert_eq!([session.lab.read("a"), session.lab.read("b")], ["a 0\n", "b 0\n"], "{undone:?} {restored:?}");
}

#[test]
fn what_a_person_wrote_in_mid_turn_and_the_turn_destroyed_is_listed() {
    // In the time of a deletion: a person's file, which undo restores. In that of a script: maybe the script's, so it is named.
    for (line, is_restored) in [("rm -rf d", true), ("./generate", false)] {
        let mut session = Session::claude(&["d/a", "b"]);
        session.prompt("do it");
        let call = session.bash(line);
        session.remove("d/a");
        session.lab.write("d/mine", "the person's work\n");
        session.after(&call);
        session.script(|lab| std::fs::remove_dir_all(lab.work.join("d")).unwrap());
        session.stop();
        let undone = session.undo(&[]);
        assert!(undone.stdout.contains("d/mine"), "{line}: {}", undone.stdout);
        assert_eq!(session.lab.work.join("d/mine").exists(), is_restored, "{line}: {}", undone.stdout);
    }
}

#[test]
fn what_a_person_stages_while_git_applies_commits_is_not_gits() {
    for command in ["rebase", "merge", "cherry-pick"] {
        let Some(mut session) = Session::in_repository(&["a", "b", "c"]) else { return };
        // In a work tree of its own, so that HEAD does not move here.
        git(&session.lab, &["worktree", "add", "-q", "-b", "other", "../other"]);
        session.lab.sh("echo c of other > ../other/c");
        git(&session.lab, &["-C", "../other", "commit", "-qam", "two"]);
        session.lab.write("a", "a of main\n");
        git(&session.lab, &["commit", "-qam", "three"]);
        session.prompt("do it");
        let call = session.bash(&format!("git {command} -q other"));
        let words = if command == "cherry-pick" { vec![command, "other"] } else { vec![command, "-q", "other"] };
        git(&session.lab, &words);
        session.lab.write("mine", "the person's work\n");
        session.lab.write("b", "the person's work\n");
        git(&session.lab, &["add", "mine", "b"]);
        session.after(&call);
        session.stop();
        let undone = session.undo(&[]);
        let now = ["mine", "b"].map(|name| session.lab.read(name));
        assert_eq!(now, ["the person's work\n"; 2], "{command}: {}", undone.stdout);
        assert_eq!(session.lab.read("c"), "c 0\n", "{command} wrote it: {}", undone.stdout);
    }
}

#[test]
fn a_deletion_of_an_interrupted_action_is_restored_although_its_sibling_ended() {
    for ignored in ["", "d/\n"] {
        let mut session = Session::claude(&["d/a", "notes.md"]);
        session.lab.write(".gitignore", ignored);
        session.prompt("do it");
        session.bash("sleep 1; rm -rf d; sleep 30");
        let sibling = session.bash("ls");
        session.after(&sibling);
        session.remove("d/a");
        session.lab.write("notes.md", "the person's work\n");
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!(undone.code, 0, "ignored: {ignored:?}: {}", undone.stdout);
        assert_eq!(session.lab.read("d/a"), "d/a 0\n", "ignored: {ignored:?}");
        assert_eq!(session.lab.read("notes.md"), "the person's work\n", "ignored: {ignored:?}");
    }
}

#[test]
fn a_person_owns_what_changes_while_an_action_reads() {
    let mut session = Session::claude(&["a", "notes.md"]);
    session.prompt("look around");
    for (n, command) in ["ls", "cat a", "sleep 2", "git status", "grep -r x ."].iter().enumerate() {
        let call = session.bash(command);
        session.lab.write("notes.md", format!("edit {n}\n"));
        session.after(&call);
    }
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!(undone.code, 3, "{}", undone.stdout);
    assert_eq!(session.lab.read("notes.md"), "edit 4\n");
}

#[test]
fn an_exact_action_owns_only_what_it_names() {
    for (command, path, content) in [
        ("rm a", "a", None),
        ("sed -i s/0/1/ a", "a", Some("a 1\n")),
        ("echo x >> a", "a", Some("a 0\nx\n")),
        ("mkdir -p d/e && touch d/e/new", "d/e/new", Some("")),
        ("cp b c", "c", Some("b 0\n")),
    ] {
        let mut session = Session::claude(&["a", "b", "d/mine", "mine"]);
        session.prompt("do it");
        let before = tree(&session.lab.work);
        let call = session.bash(command);
        session.lab.write("mine", "the person's work\n");
        session.lab.write("d/mine", "more of it\n");
        match content {
            Some(content) => session.lab.write(path, content),
            None => session.remove(path),
        }
        session.after(&call);
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!(undone.code, 0, "{command}: {}", undone.stdout);
        assert_eq!(session.lab.read("mine"), "the person's work\n", "{command}");
        assert_eq!(session.lab.read("d/mine"), "more of it\n", "{command}");
        session.lab.write("mine", "mine 0\n");
        session.lab.write("d/mine", "d/mine 0\n");
        assert_eq!(tree(&session.lab.work), before, "{command}");
    }
}

#[test]
fn what_a_script_may_have_changed_is_restored_where_it_is_absent_and_left_where_it_is_there() {
    let mut session = Session::claude(&["a", "b", "mine"]);
    session.prompt("do it");
    let before = tree(&session.lab.work);
    session.script(|lab| {
        lab.write("a", "a 1\n");
        lab.write("new", "of the script\n");
        std::fs::remove_file(lab.work.join("b")).unwrap();
    });
    session.stop();
    let after = tree(&session.lab.work);
    let undone = session.undo(&[]);
    assert_eq!((undone.code, left(&undone.json())), (4, vec!["a", "new"]), "{}", undone.stdout);
    assert_eq!([session.lab.read("a"), session.lab.read("b")], ["a 1\n", "b 0\n"]);
    let command = undone.json()["left"]["items"][0]["command"].as_str().unwrap().to_owned();
    assert_eq!(command, "piton undo --turn t-1 --include likely");
    assert_eq!(session.lab.piton(&["redo", "--yes"]).code, 0);
    assert_eq!(tree(&session.lab.work), after, "the redo");
    let said = session.lab.piton(&["undo", "--yes"]);
    assert!(said.stdout.contains("Kept 2 paths that the turn might have changed: a, new."), "{}", said.stdout);
    assert_eq!(said.stdout.matches(&command).count(), 1, "{}", said.stdout);
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    let rest = session.lab.piton(&words);
    assert_eq!(rest.code, 0, "{rest:?}");
    assert_eq!(tree(&session.lab.work), before);
}

#[test]
fn a_named_path_is_undone_though_it_is_only_likely() {
    let mut session = Session::claude(&["a", "b"]);
    session.prompt("do it");
    session.script(|lab| ["a", "b"].iter().for_each(|file| lab.write(file, "of the script\n")));
    session.stop();
    let undone = session.lab.piton(&["undo", "--yes", "--", "a"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!([session.lab.read("a"), session.lab.read("b")], ["a 0\n", "of the script\n"]);
}

/// Repeats a turn until no other test starts a program meanwhile. The client is the test process, so that program counts as left by
/// the turn.
fn undisturbed<T>(attempt: &dyn Fn() -> (Session, Output, T)) -> (Session, Output, T) {
    let is_alone = |undone: &Output| !undone.stdout.contains("possibly by a process that one of its actions started");
    let found = (0..20).map(|_| attempt()).find(|(_, undone, _)| is_alone(undone));
    found.expect("each turn left a process")
}

#[test]
fn an_end_without_an_id_ends_the_call_that_it_repeats() {
    let attempt = |order: [usize; 2]| {
        let mut session = Session::new("copilot-cli", &["a", "b", "c"]);
        session.prompt("do it");
        let before = tree(&session.lab.work);
        let calls = [session.bash("./first"), session.bash("./second")];
        session.remove("a");
        session.after(&calls[order[0]]);
        session.remove("b");
        session.after(&calls[order[1]]);
        session.remove("c");
        session.stop();
        let undone = session.undo(&[]);
        (session, undone, before)
    };
    for order in [[0, 1], [1, 0]] {
        let (session, undone, before) = undisturbed(&|| attempt(order));
        assert_eq!(undone.code, 0, "{}", undone.stdout);
        session.lab.write("c", "c 0\n");
        assert_eq!(tree(&session.lab.work), before, "{order:?}: c was deleted when no call was running");
    }
}

#[test]
fn a_script_that_commits_keeps_its_turn() {
    let Some(mut session) = Session::in_repository(&["a", "b", "c"]) else { return };
    session.prompt("do it");
    session.script(|lab| {
        std::fs::remove_file(lab.work.join("a")).unwrap();
        lab.write("b", "b 1\n");
        git(lab, &["commit", "-qam", "two"]);
    });
    let call = session.bash("rm c");
    session.remove("c");
    git(&session.lab, &["commit", "-qam", "of a person in another terminal"]);
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, left(&undone.json())), (4, vec!["b"]), "{}", undone.stdout);
    assert_eq!(["a", "b", "c"].map(|file| session.lab.read(file)), ["a 0\n", "b 1\n", "c 0\n"]);
}

#[test]
fn what_the_turns_own_reset_wrote_is_the_turns() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    session.lab.write("a", "uncommitted work\n");
    session.prompt("do it");
    let call = session.bash("git reset --hard");
    git(&session.lab, &["reset", "-q", "--hard"]);
    session.lab.write("b", "an edit of a person meanwhile\n");
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, left(&undone.json())), (4, vec!["b"]), "{}", undone.stdout);
    assert_eq!(session.lab.read("a"), "uncommitted work\n");
    assert_eq!(session.lab.read("b"), "an edit of a person meanwhile\n");
}

#[test]
fn what_the_same_line_adds_before_a_checkout_was_not_written_by_it() {
    for line in ["git add -A && git checkout -q -- a", "git add -A && git stash -q && git stash pop -q --index"] {
        let Some(mut session) = Session::in_repository(&["a"]) else { return };
        session.lab.write("b", "old\n");
        git(&session.lab, &["add", "-A"]);
        git(&session.lab, &["commit", "-qm", "b"]);
        session.prompt("do it");
        // The call waits for the person's agreement.
        let call = session.bash(line);
        session.lab.write("b", "a person's edit\n");
        session.lab.write("mine", "a person's file\n");
        session.lab.sh(line);
        session.after(&call);
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!(session.lab.read("b"), "a person's edit\n", "{line}: {undone:?}");
        assert_eq!(session.lab.read("mine"), "a person's file\n", "{line}: {undone:?}");
    }
}

#[test]
fn permissions_that_a_person_changes_during_a_checkout_are_kept() {
    let Some(mut session) = Session::in_repository(&["a"]) else { return };
    session.lab.write("b", "old\n");
    git(&session.lab, &["add", "-A"]);
    git(&session.lab, &["commit", "-qm", "b"]);
    session.lab.write("a", "uncommitted\n");
    session.prompt("do it");
    let call = session.bash("git checkout -q -- a");
    session.lab.sh("chmod 755 b; git checkout -q -- a");
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!(session.lab.read("a"), "uncommitted\n", "{undone:?}");
    session.lab.sh("test -x b");
}

#[test]
fn files_of_a_directory_that_the_turn_recreates_are_restored() {
    for again in ["mkdir d", "mkdir d && echo n > d/new"] {
        let Some(mut session) = Session::in_repository(&["a"]) else { return };
        session.lab.sh("mkdir d; echo 1 > d/1; echo 2 > d/2");
        session.prompt("do it");
        for line in ["rm -rf d", again] {
            let call = session.bash(line);
            session.lab.sh(line);
            session.after(&call);
        }
        session.stop();
        let undone = session.undo(&[]);
        let back = ["d/1", "d/2"].map(|path| std::fs::read_to_string(session.lab.work.join(path)).ok());
        assert_eq!(back, [Some("1\n".to_owned()), Some("2\n".to_owned())], "{again}: {undone:?}");
    }
}

#[test]
fn what_the_agent_adds_after_a_reset_was_not_written_by_it() {
    let Some(mut session) = Session::in_repository(&["a"]) else { return };
    session.lab.write("a", "uncommitted work\n");
    session.prompt("do it");
    let call = session.bash("git reset --hard");
    git(&session.lab, &["reset", "-q", "--hard"]);
    session.lab.write("b", "made by a person meanwhile\n");
    session.after(&call);
    let call = session.bash("git add -A && git commit -qm two");
    git(&session.lab, &["add", "-A"]);
    git(&session.lab, &["commit", "-qm", "two"]);
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, left(&undone.json())), (4, vec!["b"]), "{}", undone.stdout);
    assert_eq!(session.lab.read("a"), "uncommitted work\n");
    assert_eq!(session.lab.read("b"), "made by a person meanwhile\n");
}

#[test]
fn a_deleted_repository_is_no_moved_head() {
    let Some(mut session) = Session::in_repository(&["src/a", "b"]) else { return };
    session.prompt("do it");
    session.script(|lab| {
        std::fs::remove_dir_all(lab.work.join(".git")).unwrap();
        std::fs::remove_dir_all(lab.work.join("src")).unwrap();
    });
    session.stop();
    session.undo(&[]);
    assert_eq!(session.lab.read("src/a"), "src/a 0\n");
}

#[test]
fn a_turn_that_switched_branches_offers_the_command_of_git_first() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    git(&session.lab, &["checkout", "-q", "-b", "other"]);
    session.lab.write("a", "a of other\n");
    git(&session.lab, &["commit", "-qam", "two"]);
    session.prompt("do it");
    let before = tree(&session.lab.work);
    let call = session.bash("git checkout -f main && rm b");
    git(&session.lab, &["checkout", "-q", "-f", "main"]);
    session.remove("b");
    session.after(&call);
    session.stop();
    let first = session.undo(&[]);
    let message = first.json()["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!((first.code, session.lab.work.join("b").exists()), (4, false), "{}", first.stdout);
    assert!(message.contains("`piton undo g-1`") && message.contains("`piton undo --turn t-1`"), "{message}");
    assert_eq!(session.lab.piton(&["git-undo", "g-1", "--yes"]).code, 0);
    let rest = session.lab.piton(&["undo", "--turn", "t-1", "--yes"]);
    assert!([0, 3].contains(&rest.code), "what git-undo left, if anything: {rest:?}");
    assert_eq!(tree(&session.lab.work), before);
}

#[test]
fn without_the_git_door_a_turn_that_switched_branches_offers_the_way_back() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    git(&session.lab, &["checkout", "-q", "-b", "other"]);
    session.lab.write("a", "a of other\n");
    git(&session.lab, &["commit", "-qam", "two"]);
    git(&session.lab, &["checkout", "-q", "main"]);
    session.prompt("do it");
    let call = session.bash("git checkout -q other && echo x > b");
    git(&session.lab, &["checkout", "-q", "other"]);
    session.lab.write("b", "x\n");
    session.after(&call);
    session.stop();
    let first = session.undo(&[]);
    let message = first.json()["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!((first.code, session.lab.read("b").as_str()), (4, "x\n"), "{}", first.stdout);
    assert!(message.contains("`git checkout main`") && message.contains("`piton undo --turn t-1`"), "{message}");
    git(&session.lab, &["checkout", "-q", "main"]);
    let back = session.undo(&["--include", "likely"]);
    assert_eq!((back.code, session.lab.read("b").as_str()), (0, "b 0\n"), "{}", back.stdout);
    assert_eq!(session.lab.read("a"), "a 0\n");
}

#[test]
fn a_branch_that_the_turn_made_where_it_was_is_no_switch() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    session.prompt("do it");
    let call = session.bash("git checkout -q -b feature && rm b");
    git(&session.lab, &["checkout", "-q", "-b", "feature"]);
    session.remove("b");
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, session.lab.read("b").as_str()), (0, "b 0\n"), "{}", undone.stdout);
}

#[test]
fn a_switch_by_a_person_is_not_the_turns() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    git(&session.lab, &["checkout", "-q", "-b", "other"]);
    session.lab.write("c", "c of other\n");
    git(&session.lab, &["add", "c"]);
    git(&session.lab, &["commit", "-qm", "two"]);
    git(&session.lab, &["checkout", "-q", "main"]);
    session.prompt("do it");
    let call = session.bash("rm b");
    session.remove("b");
    session.after(&call);
    git(&session.lab, &["checkout", "-q", "other"]);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, session.lab.read("b").as_str()), (0, "b 0\n"), "{}", undone.stdout);
}

#[test]
fn a_checkout_of_files_switches_no_branch() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    session.lab.write("a", "uncommitted work\n");
    session.prompt("do it");
    let call = session.bash("git checkout .");
    git(&session.lab, &["checkout", "-q", "."]);
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, session.lab.read("a")), (0, "uncommitted work\n".to_owned()), "{}", undone.stdout);
}

/// A turn of one command, whose undo restores every file.
fn undoes_all_of(command: &str, files: &[&str]) {
    let mut session = Session::claude(files);
    session.prompt("do it");
    let before = tree(&session.lab.work);
    let call = session.bash(command);
    session.lab.sh(command);
    session.after(&call);
    session.stop();
    let undone = session.undo(&[]);
    assert_eq!((undone.code, tree(&session.lab.work)), (0, before), "{command}: {}", undone.stdout);
}

#[test]
fn the_files_of_a_loop_over_a_pattern_are_named() {
    for command in ["for f in src/*; do : > \"$f\"; done", "for f in src/*; do sed -i s/0/1/ $f; done"] {
        undoes_all_of(command, &["src/a", "src/b", "c"]);
    }
}

#[test]
fn a_name_that_is_no_text_is_part_of_the_turn() {
    for command in ["rm top*", "rm $'top\\xe9'", "rm $'top\\351'"] {
        let mut session = Session::claude(&["a"]);
        let name = session.lab.work.join(OsStr::from_bytes(b"top\xe9"));
        std::fs::write(&name, "precious").unwrap();
        session.prompt("do it");
        let call = session.bash(command);
        std::fs::remove_file(&name).unwrap();
        session.after(&call);
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!((undone.code, std::fs::read_to_string(&name).ok().as_deref()), (0, Some("precious")), "{command}");
    }
}

#[test]
fn a_commit_just_before_the_prompt_is_none_of_the_turn() {
    let Some(mut session) = Session::in_repository(&["a", "b"]) else { return };
    session.lab.write("b", "the person's work\n");
    // git's log has whole seconds. The commit and the prompt are to be in the same one.
    while SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_millis() > 200 {
        std::thread::yield_now();
    }
    git(&session.lab, &["commit", "-qam", "mine"]);
    // The times of files may lie a tick of the kernel's clock behind.
    let committed = Instant::now();
    while committed.elapsed() < Duration::from_millis(50) {
        std::thread::yield_now();
    }
    session.prompt("do it");
    let call = session.bash("git commit -qm own --allow-empty && rm a");
    git(&session.lab, &["commit", "-qm", "own", "--allow-empty"]);
    session.remove("a");
    session.after(&call);
    session.stop();
    let undone = session.lab.piton(&["undo", "--yes"]);
    assert!(undone.stdout.contains(" own") && !undone.stdout.contains(" mine"), "{undone:?}");
}

#[test]
fn what_a_hook_of_git_changed_may_be_the_turns() {
    for has_hook in [true, false] {
        let Some(mut session) = Session::in_repository(&["a", "b", "c"]) else { return };
        session.prompt("commit it");
        let write = session.before("Write", json!({"file_path": session.lab.work.join("b")}));
        session.lab.write("b", "the agent's b\n");
        session.after(&write);
        if has_hook {
            let hook = ".git/hooks/pre-commit";
            session.lab.write(hook, "#!/bin/sh\nrm c\necho formatted > b\n");
            session.lab.sh(&format!("chmod +x {hook}"));
        }
        let call = session.bash("git commit -qm own -- b");
        // Without a hook it is a person who does the same meanwhile.
        if !has_hook {
            session.lab.sh("rm c; echo formatted > b");
        }
        session.lab.sh("git -c user.name=a -c user.email=a@example.org commit -qm own -- b");
        assert!(!session.lab.work.join("c").exists());
        session.after(&call);
        session.stop();
        let undone = session.undo(&[]);
        assert_eq!(session.lab.work.join("c").exists(), has_hook, "{undone:?}");
    }
}

#[test]
fn files_behind_a_link_that_the_same_line_made_are_named() {
    let lines = [
        "ln -s d lnk; rm lnk/1",
        "ln -s d lnk && rm -rf lnk/*",
        "ln -sfn d lnk; echo x > lnk/1",
        "mkdir n && ln -s ../d n/l && sed -i s/0/1/ n/l/1",
        "cd e && ln -s ../d && rm d/1 && cd ..",
    ];
    for command in lines {
        undoes_all_of(command, &["d/1", "d/2", "e/3"]);
    }
}
