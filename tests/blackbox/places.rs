//! One prompt is one turn, wherever it acts: files outside every workspace, other repositories, linked worktrees. And whose turn an
//! undo means.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, WAIT, git};

/// A session of an agent, by the line protocol.
struct Agent {
    sidecar: Sidecar,
    actions: u64,
}

impl Agent {
    fn new(lab: &Lab, dir: &Path, session: &str) -> Agent {
        let mut sidecar = Sidecar::start_in(lab, dir, &[]);
        let reply = sidecar.ask(json!({"type": "hello", "session": session, "client": "tester", "cwd": dir}));
        assert_eq!(reply["ok"], true, "{reply}");
        Agent { sidecar, actions: 0 }
    }

    fn ask(&mut self, request: Value) -> Value {
        self.sidecar.ask(request)
    }

    fn start(&mut self, turn: &str) {
        self.ask(json!({"type": "turn.start", "turn": turn}));
    }

    fn end(&mut self) -> Value {
        self.ask(json!({"type": "turn.end"}))
    }

    /// Runs a command in a directory, between its two events.
    fn run(&mut self, lab: &Lab, dir: &Path, command: &str) -> Value {
        self.actions += 1;
        let action = format!("a{}", self.actions);
        let reply = self.ask(json!({"type": "shell.before", "command": command, "action": action, "cwd": dir}));
        assert_eq!(reply["proceed"], true, "{reply}");
        let done = lab.command("/bin/sh", dir).args(["-ec", command]).output().unwrap();
        assert!(done.status.success(), "{command}: {done:?}");
        self.ask(json!({"type": "shell.after", "action": action}));
        reply
    }

    /// Writes a file with a tool that names it.
    fn write(&mut self, path: &Path, content: &str) {
        self.actions += 1;
        let action = format!("a{}", self.actions);
        let input = json!({"file_path": path, "content": content});
        let reply = self.ask(json!({"type": "tool.before", "tool": "Write", "action": action, "input": input}));
        assert_eq!(reply["proceed"], true, "{reply}");
        std::fs::write(path, content).unwrap();
        self.ask(json!({"type": "tool.after", "action": action}));
    }
}

/// Writes a file below the lab, beside its workspace.
fn beside(lab: &Lab, path: &str, content: &str) -> PathBuf {
    let path = lab.root().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

fn content(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Makes a repository of what is in a directory; false, said aloud, without git.
fn repository(lab: &Lab, dir: &Path) -> bool {
    let dir = dir.to_str().unwrap();
    let steps = [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]];
    steps.iter().all(|step| git(lab, &[&["-C", dir], *step].concat()).is_some())
}

/// The names of the turns that are listed in a directory.
fn turns(lab: &Lab, dir: &Path) -> Vec<String> {
    let listing = lab.piton_in(dir, &["turns", "--json"]).json();
    listing["turns"].as_array().unwrap().iter().map(|turn| turn["turn"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_turn_that_changes_only_files_outside_is_undone_and_not_the_one_before() {
    let Some(lab) = Lab::lasting() else { return };
    let (notes, more, earlier) =
        (beside(&lab, "notes.txt", "mine\n"), beside(&lab, "dir/more.txt", "more\n"), lab.work.join("earlier.txt"));
    let mut agent = Agent::new(&lab, &lab.work, "s");
    agent.start("one");
    agent.write(&earlier, "accepted\n");
    agent.end();
    agent.start("two");
    agent.run(&lab, &lab.work, "rm ../notes.txt");
    agent.run(&lab, &lab.work, "rm -r ../dir");
    let ended = agent.end();
    assert_eq!(ended["notices"], Value::Null, "undo restores all of it: {ended}");
    assert_eq!(turns(&lab, &lab.work), ["two", "one"]);
    let preview = lab.piton(&["undo", "--preview"]);
    assert!(preview.stdout.contains("Outside of all workspaces:"), "{preview:?}");
    assert!(preview.stdout.contains(&*notes.to_string_lossy()), "{preview:?}");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    let back = (content(&notes), content(&more), content(&earlier));
    assert_eq!(back, (Some("mine\n".into()), Some("more\n".into()), Some("accepted\n".into())), "{undone:?}");
    // Forward again, from the same place and from outside.
    let redone = lab.piton(&["redo", "--yes"]);
    assert_eq!((redone.code, content(&notes), content(&more)), (0, None, None), "{redone:?}");
    let undone = lab.piton(&["undo", "--outside", "--yes"]);
    assert_eq!((undone.code, content(&notes).as_deref()), (0, Some("mine\n")), "{undone:?}");
    let redone = lab.piton(&["redo", "--turn", "two", "--yes"]);
    assert_eq!((redone.code, content(&notes)), (0, None), "{redone:?}");
    assert_eq!(lab.piton(&["undo", "--turn", "two", "--yes"]).code, 0);
    assert_eq!(content(&notes).as_deref(), Some("mine\n"));
    let next = lab.piton(&["undo", "--yes"]);
    assert_eq!((next.code, content(&earlier)), (0, None), "{next:?}");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 3);
    assert_eq!(agent.sidecar.finish(), 0);
}

#[test]
fn an_undo_stops_once_at_a_turn_whose_outside_file_has_changed_since() {
    let Some(lab) = Lab::lasting() else { return };
    let (notes, earlier) = (beside(&lab, "notes.txt", "mine\n"), lab.work.join("earlier.txt"));
    let mut agent = Agent::new(&lab, &lab.work, "s");
    agent.start("one");
    agent.write(&earlier, "accepted\n");
    agent.end();
    agent.start("two");
    agent.run(&lab, &lab.work, "rm ../notes.txt");
    agent.end();
    std::fs::write(&notes, "new\n").unwrap();
    let stopped = lab.piton(&["undo", "--yes"]);
    assert!(stopped.stdout.contains("it has changed since"), "{stopped:?}");
    assert_eq!((content(&notes).as_deref(), content(&earlier).as_deref()), (Some("new\n"), Some("accepted\n")));
    let next = lab.piton(&["undo", "--yes"]);
    assert_eq!((next.code, content(&earlier)), (0, None), "{next:?}");
    assert_eq!(content(&notes).as_deref(), Some("new\n"));
    assert_eq!(agent.sidecar.finish(), 0);
}

#[test]
fn an_open_turn_is_undone_outside_too_and_what_was_not_saved_is_said() {
    let Some(lab) = Lab::lasting() else { return };
    let notes = beside(&lab, "notes.txt", "mine\n");
    let mut agent = Agent::new(&lab, &lab.work, "s");
    agent.start("one");
    agent.run(&lab, &lab.work, "rm ../notes.txt");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((undone.code, content(&notes).as_deref()), (0, Some("mine\n")), "{undone:?}");
    assert_eq!(agent.end()["notices"], Value::Null);
    // Too much for a checkpoint: said at the end of the turn.
    agent.start("two");
    agent.ask(json!({"type": "shell.before", "command": "rm -rf /", "action": "x"}));
    let ended = agent.end();
    let said = ended["notices"].to_string();
    assert!(said.contains("turn `two`") && said.contains("cannot restore: `/`"), "{ended}");
    assert_eq!(agent.sidecar.finish(), 0);
}

#[test]
fn targets_in_the_same_repository_and_in_another_one_are_of_the_turn() {
    let Some(lab) = Lab::lasting() else { return };
    let (web, api) = (lab.work.join("packages/web"), lab.work.join("packages/api"));
    lab.write("packages/web/package.json", "{}\n");
    lab.write("packages/web/a.ts", "a\n");
    lab.write("packages/api/b.ts", "b\n");
    let (other, sub) = (beside(&lab, "other/f", "f\n"), beside(&lab, "other/sub/g", "g\n"));
    let dir = other.parent().unwrap().to_owned();
    if !repository(&lab, &lab.work) || !repository(&lab, &dir) {
        return;
    }
    let mut agent = Agent::new(&lab, &web, "s");
    agent.start("one");
    agent.write(&web.join("a.ts"), "changed\n");
    agent.end();
    agent.start("two");
    agent.run(&lab, &web, "rm -r ../api");
    let reply = agent.run(&lab, &web, "rm ../../../other/f");
    assert_eq!(reply["others"][0]["workspace"], dir.to_string_lossy().as_ref(), "{reply}");
    agent.run(&lab, &web, "git -C ../../../other rm -q sub/g");
    agent.end();
    assert_eq!(turns(&lab, &web), ["two", "one"]);
    assert_eq!(turns(&lab, &dir), ["two"], "the other repository is a workspace of its own");
    // From there, all of it.
    let undone = lab.piton_in(&dir, &["undo", "--yes"]);
    let back = (content(&api.join("b.ts")), content(&other), content(&sub), content(&web.join("a.ts")));
    let expected = (Some("b\n".into()), Some("f\n".into()), Some("g\n".into()), Some("changed\n".into()));
    assert_eq!((undone.code, back), (0, expected), "{undone:?}");
    let redone = lab.piton_in(&web, &["redo", "--yes"]);
    assert_eq!((redone.code, content(&other), api.exists()), (0, None, false), "{redone:?}");
    let undone = lab.piton_in(&web, &["undo", "--yes"]);
    assert_eq!((undone.code, content(&other).as_deref()), (0, Some("f\n")), "{undone:?}");
    assert_eq!(content(&api.join("b.ts")).as_deref(), Some("b\n"), "{undone:?}");
    assert_eq!(agent.sidecar.finish(), 0);
}

/// Calls a hook of Claude Code as the client does; without a daemon, each event is a process.
fn hook(lab: &Lab, flags: &[&str], event: &str, dir: &Path, facts: Value) {
    let mut payload = json!({"hook_event_name": event, "session_id": "s", "prompt_id": "p", "cwd": dir});
    payload.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), dir);
    command.args(["hook", "claude-code", event]).args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn a_sub_agent_in_a_linked_worktree_works_in_the_turn_of_its_agent() {
    for flags in [&["--no-daemon"][..], &[]] {
        let Some(lab) = Lab::lasting() else { return };
        lab.write("a", "a\n");
        if !repository(&lab, &lab.work) {
            return;
        }
        let tree = lab.work.join(".claude/worktrees/agent");
        git(&lab, &["worktree", "add", "-q", "-b", "agent", tree.to_str().unwrap()]);
        let tool = |dir: &Path, agent: Option<&str>, file: &Path, id: &str| {
            let input = json!({"file_path": file, "content": "new\n"});
            let facts = json!({"tool_name": "Write", "tool_input": input, "tool_use_id": id, "agent_id": agent});
            hook(&lab, flags, "PreToolUse", dir, facts.clone());
            std::fs::write(file, "new\n").unwrap();
            hook(&lab, flags, "PostToolUse", dir, facts);
        };
        hook(&lab, flags, "UserPromptSubmit", &lab.work, json!({"prompt": "work"}));
        tool(&lab.work, None, &lab.work.join("own"), "u1");
        tool(&tree, Some("x"), &tree.join("of agent"), "u2");
        tool(&lab.work, None, &lab.work.join("a"), "u3");
        hook(&lab, flags, "SubagentStop", &tree, json!({"agent_id": "x"}));
        hook(&lab, flags, "Stop", &lab.work, json!({}));
        assert_eq!((turns(&lab, &lab.work).len(), turns(&lab, &tree).len()), (1, 1), "{flags:?}");
        let undone = lab.piton(&["undo", "--yes"]);
        let left = (lab.work.join("own").exists(), tree.join("of agent").exists(), lab.read("a"));
        assert_eq!((undone.code, left), (0, (false, false, "a\n".to_owned())), "{flags:?}: {undone:?}");
        lab.piton(&["daemon", "stop"]);
    }
}

#[test]
fn the_undo_of_a_session_is_about_its_own_run() {
    let lab = Lab::new();
    let (mut one, mut two) = (Agent::new(&lab, &lab.work, "one"), Agent::new(&lab, &lab.work, "two"));
    let path = |name: &str| lab.work.join(name);
    for (agent, turn, file) in [(&mut one, "t1", "a"), (&mut two, "t2", "b")] {
        agent.start(turn);
        agent.write(&path(file), "new\n");
        agent.end();
    }
    // A run below the session's own is part of it.
    let mut below = Agent::new(&lab, &lab.work, "below");
    let run = below.ask(json!({"type": "run.start", "run": "below", "parent": "one"}));
    assert_eq!(run["ok"], true, "{run}");
    below.start("t3");
    below.write(&path("c"), "new\n");
    below.end();
    let here = || ["a", "b", "c"].map(|name| path(name).exists());
    let undone = one.ask(json!({"type": "undo"}));
    assert_eq!((&undone["over"]["turn"]["turn"], here()), (&json!("t3"), [true, true, false]), "{undone}");
    let undone = one.ask(json!({"type": "undo"}));
    assert_eq!((&undone["over"]["turn"]["turn"], here()), (&json!("t1"), [false, true, false]), "{undone}");
    let none = one.ask(json!({"type": "undo"}));
    assert_eq!((&none["operation"], here()), (&Value::Null, [false, true, false]), "{none}");
    let said = none["message"].as_str().unwrap();
    assert!(said.contains("in this session") && said.contains("`piton undo --turn t-2`"), "{said}");
    // The other one has undone nothing, so it has nothing to redo.
    assert_eq!(two.ask(json!({"type": "redo"}))["operation"], Value::Null);
    let redone = one.ask(json!({"type": "redo"}));
    assert_eq!((&redone["over"]["turn"]["turn"], here()), (&json!("t1"), [true, true, false]), "{redone}");
    // A person's is the newest, and says whose it is.
    let undone = lab.piton(&["undo", "--yes"]);
    assert!(undone.stdout.contains("turn `t2`") && undone.stdout.contains("tester, run two"), "{undone:?}");
    assert_eq!(here(), [true, false, false]);
    for mut agent in [one, two, below] {
        assert_eq!(agent.sidecar.finish(), 0);
    }
}

/// Waits until a turn of a directory is as it should be.
fn comes_to(lab: &Lab, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + WAIT;
    loop {
        let listing = lab.piton(&["turns", "--json"]).json();
        if wanted(&listing["turns"]) {
            return listing["turns"].clone();
        }
        assert!(Instant::now() < until, "{listing}");
    }
}

/// A server of one tool, which writes a file.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        open(message["params"]["arguments"]["path"], "w").write("new\n")
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}), flush=True)
"#;

#[test]
fn calls_through_the_mcp_proxy_are_turns() {
    let lab = Lab::new();
    if lab.command("python3", &lab.work).arg("--version").output().is_err() {
        return super::support::lacking("python3");
    }
    lab.write("a", "old\n");
    // A pause that no test outlasts, and one that is over at once.
    for (pause, is_over) in [("600000", false), ("1", true)] {
        let mut proxy = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        proxy.args(["mcp-proxy", "--", "python3", "-c", SERVER]).env("PITON_TEST_TURN_PAUSE_MS", pause);
        let mut proxy = proxy.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = proxy.stdin.take().unwrap();
        let mut answers = std::io::BufRead::lines(std::io::BufReader::new(proxy.stdout.take().unwrap()));
        for (id, name) in [(1, "a"), (2, "b")] {
            let params = json!({"name": "write", "arguments": {"path": lab.work.join(name)}});
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            writeln!(input, "{call}").unwrap();
            let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            assert_eq!(answer["id"], id, "{answer}");
            if is_over {
                // It ends while the connection goes on.
                comes_to(&lab, |turns| turns[0]["open"] == false);
            }
        }
        drop(input);
        assert!(proxy.wait().unwrap().success());
        let turns = comes_to(&lab, |turns| turns[0]["open"] == false && turns[0]["undone"] == false);
        let names: Vec<&Value> = turns.as_array().unwrap().iter().filter(|turn| turn["undone"] == false).collect();
        assert_eq!((names.len(), &names[0]["client"]), (1 + usize::from(is_over), &json!("mcp-proxy")), "{turns}");
        let diff = lab.piton(&["diff", "--turn", turns[0]["operation"].as_str().unwrap(), "--stat"]);
        assert!(diff.code == 0 && diff.stdout.contains('b'), "{diff:?}");
        for _ in &names {
            assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
        }
        assert_eq!((lab.read("a"), lab.work.join("b").exists()), ("old\n".to_owned(), false), "{turns}");
    }
}
