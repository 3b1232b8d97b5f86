//! Collisions: an action that would destroy the uncommitted work of another run, or of a person, names it first.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Lab, Output, Sidecar, WAIT, git, lacking};

/// An agent that speaks the protocol, in a turn, with a watcher at work.
struct Agent {
    sidecar: Sidecar,
    actions: u64,
}

impl Agent {
    fn new(lab: &Lab, session: &str) -> Agent {
        Agent::of(lab, json!({"session": session, "client": "tester"}))
    }

    /// Begins a session, with further fields of its `hello`, and its first turn.
    fn of(lab: &Lab, mut hello: Value) -> Agent {
        let mut sidecar = Sidecar::start(lab, &[]);
        hello["type"] = json!("hello");
        let reply = sidecar.ask(hello);
        assert_eq!(reply["ok"], true, "{reply}");
        let until = Instant::now() + WAIT;
        // A session that goes on captures nothing before its first action.
        while reply["baseline"] != "none" && sidecar.ask(json!({"type": "status"}))["watcher"] != "warm" {
            assert!(Instant::now() < until, "never warm");
            std::thread::yield_now();
        }
        let mut agent = Agent { sidecar, actions: 0 };
        agent.start("one");
        agent
    }

    fn ask(&mut self, request: Value) -> Value {
        self.sidecar.ask(request)
    }

    fn start(&mut self, turn: &str) {
        let reply = self.ask(json!({"type": "turn.start", "turn": turn}));
        assert_eq!(reply["ok"], true, "{reply}");
    }

    fn end(&mut self) {
        let reply = self.ask(json!({"type": "turn.end"}));
        assert_eq!(reply["ok"], true, "{reply}");
    }

    fn action(&mut self) -> String {
        self.actions += 1;
        format!("a{}", self.actions)
    }

    /// Writes a file with a tool that names it.
    fn write(&mut self, lab: &Lab, path: &str, content: &str) {
        let reply = self.call("Write", json!({"file_path": lab.work.join(path), "content": content}));
        assert_eq!(reply["proceed"], true, "{reply}");
        lab.write(path, content);
        let action = format!("a{}", self.actions);
        self.ask(json!({"type": "tool.after", "action": action}));
    }

    /// Tells of a tool, and not of its end.
    fn call(&mut self, tool: &str, input: Value) -> Value {
        let action = self.action();
        self.ask(json!({"type": "tool.before", "tool": tool, "action": action, "input": input}))
    }

    /// Tells of a command that then does not run.
    fn line(&mut self, command: &str) -> Value {
        let action = self.action();
        let reply = self.ask(json!({"type": "shell.before", "command": command, "action": action}));
        self.ask(json!({"type": "shell.after", "action": action}));
        reply
    }
}

/// A workspace that is a repository with some committed files; `None` without a git.
fn repository() -> Option<Lab> {
    committed(Lab::new())
}

fn committed(lab: Lab) -> Option<Lab> {
    git(&lab, &["init", "-q"])?;
    for name in ["f", "g", "dir/h"] {
        lab.write(name, "committed\n");
    }
    lab.write(".gitignore", "*.log\n");
    commit(&lab);
    Some(lab)
}

fn commit(lab: &Lab) {
    git(lab, &["add", "."]);
    git(lab, &["commit", "-qm", "c"]);
}

/// The collisions of a reply: each owner with the files.
fn collisions(reply: &Value) -> Vec<String> {
    let all = reply["collisions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |item: &Value| {
        let owner = item["run"].as_str().unwrap_or_else(|| item["owner"].as_str().unwrap());
        let items = item["paths"]["items"].as_array().unwrap().iter();
        let paths: Vec<&str> = items.map(|item| item["path"].as_str().unwrap()).collect();
        assert_eq!(item["paths"]["total"], paths.len(), "{item}");
        format!("{owner}: {}", paths.join(" "))
    };
    all.iter().map(one).collect()
}

fn message(reply: &Value) -> String {
    let all = reply["warnings"].as_array().unwrap().iter();
    let found =
        all.filter(|warning| warning["code"] == "collision").map(|warning| warning["message"].as_str().unwrap());
    found.collect::<Vec<_>>().join("; ")
}

#[test]
fn an_action_over_anothers_uncommitted_work_names_it() {
    let Some(lab) = repository() else { return };
    let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
    b.write(&lab, "f", "of b\n");
    b.write(&lab, "n", "new of b\n");
    b.write(&lab, "dir/m.log", "ignored of b\n");
    a.write(&lab, "g", "of a\n");
    let reply = a.line("git reset --hard");
    assert_eq!((&reply["ok"], &reply["proceed"]), (&json!(true), &json!(true)), "{reply}");
    assert_eq!((&reply["needs"], reply.get("answer")), (&json!("both"), None), "{reply}");
    assert_eq!(collisions(&reply), ["b: f"], "{reply}");
    assert_eq!(reply["collisions"][0]["client"], "tester", "{reply}");
    assert_eq!(reply["collisions"][0]["turn"], "one", "{reply}");
    let said = message(&reply);
    assert!(said.contains("this would destroy uncommitted work of tester, run `b`, turn `one` (`f`)"), "{said}");
    assert!(said.contains("piton list --turns") && said.contains("policy.collision"), "{said}");
    let absolute = lab.work.join("f").display().to_string();
    for (line, expected) in [
        ("git clean -fd", "b: n"),
        ("git clean -fdx", "b: dir/m.log n"),
        ("git stash", "b: f"),
        ("git stash -u", "b: f n"),
        ("git checkout -f", "b: f"),
        ("git checkout -- f", "b: f"),
        ("git checkout -- g", ""),
        ("git restore .", "b: f"),
        ("cd dir && git restore .", ""),
        ("git restore dir g", ""),
        ("sh -c 'git reset --hard'", "b: f"),
        ("git checkout -- . ':!f'", ""),
        ("git checkout -- ':!g'", "b: f"),
        ("git restore . ':(exclude)f'", ""),
        ("cd dir && git restore . ../f ':^../f'", ""),
        ("git stash push -- . ':(top,exclude)f'", ""),
        ("git checkout -- ':(icase)F'", "b: f"),
        ("git clean -fd -e n", ""),
        ("cd dir && git clean -fd", ""),
        ("rm f", "b: f"),
        ("rm f g n", "b: f n"),
        ("rm -rf dir", "b: dir/m.log"),
        ("rm -rf .", "b: dir/m.log f n"),
        ("rm -rf *", "b: dir/m.log f n"),
        ("find . -name m.log -delete", "b: dir/m.log"),
        ("rm [fgn]", "b: f n"),
        ("echo x > f", "b: f"),
        ("echo x >> f", ""),
        ("cp g f", "b: f"),
        ("mv g f", "b: f"),
        ("mv f elsewhere", ""),
        (&format!("rm {absolute}"), "b: f"),
        ("sed -i s/a/b/ f", ""),
        ("git reset", ""),
        ("git commit -am x", ""),
        ("./script", ""),
        ("rm g dir/h .gitignore", ""),
    ] {
        assert_eq!(collisions(&a.line(line)).join(", "), expected, "{line}");
    }
    assert!(message(&a.line("git stash")).contains("this would stash away uncommitted work"));
    for (tool, input, expected) in [
        ("Write", json!({"file_path": lab.work.join("f"), "content": "x"}), "b: f"),
        ("Edit", json!({"file_path": lab.work.join("f"), "old_string": "of", "new_string": "by"}), ""),
        ("delete_file", json!({"path": "f"}), "b: f"),
    ] {
        let reply = a.call(tool, input);
        let action = format!("a{}", a.actions);
        a.ask(json!({"type": "tool.after", "action": action}));
        assert_eq!(collisions(&reply).join(", "), expected, "{tool}: {reply}");
    }
    // The owner itself is not warned, and neither is anybody of work that a commit has.
    assert_eq!(collisions(&b.line("git reset --hard")), ["a: g"]);
    commit(&lab);
    assert_eq!(collisions(&a.line("git reset --hard; rm f n")), [""; 0]);
    // Changed behind the commit, and only in the index.
    b.write(&lab, "f", "once more of b\n");
    git(&lab, &["add", "f"]);
    for (line, expected) in
        [("git reset --hard", "b: f"), ("git checkout -- f", ""), ("git checkout HEAD -- f", "b: f")]
    {
        assert_eq!(collisions(&a.line(line)).join(", "), expected, "{line}");
    }
    // An ended turn is no end of the run.
    b.end();
    let reply = a.line("git reset --hard");
    assert_eq!(collisions(&reply), ["b: f"], "{reply}");
    assert_eq!(reply["collisions"][0]["operation"], "t-1", "{reply}");
    b.ask(json!({"type": "run.end"}));
    assert_eq!(collisions(&a.line("git reset --hard")), [""; 0], "the run has ended");
}

#[test]
fn files_in_a_directory_and_behind_links_are_named() {
    let Some(lab) = repository() else { return };
    lab.write("h", "another h");
    lab.write("more/h.c", "of the start");
    std::os::unix::fs::symlink("dir/h", lab.work.join("link")).unwrap();
    std::os::unix::fs::symlink("dir", lab.work.join("dirlink")).unwrap();
    let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
    b.write(&lab, "dir/h", "of b");
    b.write(&lab, "dir/h.c", "of b");
    for (line, expected) in [
        ("cp h dir/", "b: dir/h"),
        ("cp g h dir", "b: dir/h"),
        ("cp -t dir h", "b: dir/h"),
        ("cp more/*.c dir", "b: dir/h.c"),
        ("cp h dirlink", "b: dir/h"),
        ("cp g dir", ""),
        ("cp -n h dir", ""),
        ("mv h dir", "b: dir/h"),
        ("mv -t dir g h", "b: dir/h"),
        ("mv g dir", ""),
        ("install -m 644 h dir", "b: dir/h"),
        ("ln -f h dir", "b: dir/h"),
        ("ln -s h dir", ""),
        ("echo x > link", "b: dir/h"),
        ("echo x > dirlink/h", "b: dir/h"),
        ("cp g link", "b: dir/h"),
        ("mv g link", ""),
        ("ln -sf g link", ""),
        ("rm link", ""),
        ("rm dirlink/h", "b: dir/h"),
    ] {
        assert_eq!(collisions(&a.line(line)).join(", "), expected, "{line}");
    }
    let reply = a.call("Write", json!({"file_path": lab.work.join("link"), "content": "x"}));
    assert_eq!(collisions(&reply), ["b: dir/h"], "{reply}");
}

#[test]
fn the_users_own_ignore_file_counts() {
    let Some(lab) = repository() else { return };
    let config = lab.home.join("config/git");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("ignore"), "*.tmp\n").unwrap();
    let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
    b.write(&lab, "x.tmp", "of b");
    for (line, expected) in [("git clean -fd", ""), ("git clean -fdx", "b: x.tmp"), ("git clean -fdX", "b: x.tmp")] {
        assert_eq!(collisions(&a.line(line)).join(", "), expected, "{line}");
    }
}

#[test]
fn without_a_repository_each_change_of_another_is_uncommitted() {
    let lab = Lab::new();
    lab.write("old", "old");
    let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
    b.write(&lab, "f", "of b");
    a.write(&lab, "g", "of a");
    assert_eq!(collisions(&a.line("rm -rf f g old")), ["b: f"]);
    assert_eq!(collisions(&a.line("git reset --hard")), [""; 0]);
    // A file is of the one that changed it last.
    b.end();
    a.end();
    a.start("two");
    a.write(&lab, "f", "of a");
    assert_eq!(collisions(&a.line("rm f")), [""; 0]);
    assert_eq!(collisions(&b.line("rm f")), ["a: f"]);
}

#[test]
fn the_policy_answers() {
    for (policy, answer) in [("warn", None), ("ask", Some("ask")), ("deny", Some("deny")), ("allow", None)] {
        let Some(lab) = repository() else { return };
        lab.set(&format!("policy: {{collision: {policy}}}\n"));
        let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
        b.write(&lab, "f", "of b\n");
        let reply = a.line("git reset --hard");
        assert_eq!(reply["answer"].as_str(), answer, "{policy}: {reply}");
        assert_eq!(reply["proceed"], answer.is_none(), "{policy}: {reply}");
        assert_eq!(collisions(&reply).is_empty(), policy == "allow", "{policy}: {reply}");
        assert_eq!(!message(&reply).is_empty(), policy == "warn", "said once: {policy}: {reply}");
        let reason = reply["reason"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("uncommitted work of tester, run `b`"), answer.is_some(), "{policy}: {reply}");
        // Work of one's own is nobody's concern.
        assert_eq!(b.line("git reset --hard")["proceed"], true);
    }
}

#[test]
fn no_mistake_and_no_workspace_takes_the_answer_away() {
    let Some(lab) = repository() else { return };
    lab.set("policy: {collision: perhaps, database: ask}\n");
    let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
    b.write(&lab, "f", "of b\n");
    assert!(message(&a.line("rm f")).contains("run `b`"), "the default holds");
    assert_eq!(lab.piton(&["config", "check"]).code, 2);
    lab.set("policy: {collision: deny, database: ask}\n");
    lab.write(".piton.yaml", "policy: {collision: allow}\n");
    let reply = a.line("rm f");
    assert_eq!((&reply["answer"], &reply["proceed"]), (&json!("deny"), &json!(false)), "{reply}");
    // A workspace may ask for more than its user.
    lab.set("");
    lab.write(".piton.yaml", "policy: {collision: ask}\n");
    assert_eq!(a.line("rm f")["answer"], "ask");
}

#[test]
fn a_persons_work_between_the_turns_counts() {
    let Some(lab) = repository() else { return };
    lab.write("before", "there before the first turn");
    lab.write("dir/h", "changed before the first turn");
    let mut a = Agent::new(&lab, "a");
    a.write(&lab, "f", "of a\n");
    // While a turn is open, and no action is at work.
    lab.write("g", "of a person\n");
    let reply = a.line("git reset --hard");
    assert_eq!(collisions(&reply), ["person: dir/h g"], "{reply}");
    assert!(message(&reply).contains("work of a person, changed while no agent was active (`dir/h`, `g`)"), "{reply}");
    commit(&lab);
    a.write(&lab, "f", "of a again\n");
    a.end();
    // Between two turns; an ignored file is mostly a tool's.
    lab.write("g", "of a person once more\n");
    lab.write("n", "new of a person\n");
    lab.write("x.log", "a server's\n");
    a.start("two");
    for (line, expected) in [
        ("git reset --hard", "person: g"),
        ("git clean -fdx", "person: n"),
        ("rm -rf n dir before x.log f", "person: n"),
        ("git checkout -- f", ""),
    ] {
        assert_eq!(collisions(&a.line(line)).join(", "), expected, "{line}");
    }
    // A person may do so, with the own work at least.
    let mut shell = Agent::of(&lab, json!({"session": "bash.1", "client": "bash", "door": "shell"}));
    assert_eq!(collisions(&shell.line("git reset --hard")), ["a: f"]);
    // Files that a person's shell has made are a person's.
    shell.write(&lab, "by-shell", "of a person");
    assert_eq!(collisions(&a.line("rm by-shell")), ["person: by-shell"]);
    assert_eq!(collisions(&shell.line("rm by-shell n g")), [""; 0]);
}

#[test]
fn an_agent_and_its_sub_agents_are_one() {
    let Some(lab) = repository() else { return };
    let mut a = Agent::new(&lab, "a");
    let mut sub = Agent::of(&lab, json!({"session": "sub", "client": "tester", "parent": "a"}));
    let mut other = Agent::of(&lab, json!({"session": "other", "client": "tester", "parent": "a"}));
    let mut shared =
        Agent::of(&lab, json!({"session": "shared", "client": "tester", "parent": "a", "shares_turn": true}));
    sub.write(&lab, "f", "of the sub-agent\n");
    a.write(&lab, "g", "of a\n");
    for (name, agent) in [("a", &mut a), ("sub", &mut sub), ("other", &mut other), ("shared", &mut shared)] {
        assert_eq!(collisions(&agent.line("git reset --hard; rm f")), [""; 0], "{name}");
    }
    let mut stranger = Agent::new(&lab, "stranger");
    assert_eq!(collisions(&stranger.line("git reset --hard")), ["a: g", "sub: f"]);
}

/// An answer in one millisecond is late, as good as always: then the sentence comes with a later reply.
#[test]
fn collisions_that_are_found_late_are_told_each_in_its_words() {
    let Some(lab) = repository() else { return };
    let (mut a, mut b) = (Agent::new(&lab, "a"), Agent::new(&lab, "b"));
    b.write(&lab, "f", "of b\n");
    b.write(&lab, "g", "of b too\n");
    lab.set_only("deadline_ms: 1\n");
    for (line, expected) in [
        ("git stash push f", "stash away uncommitted work of tester, run `b`, turn `one` (`f`)"),
        ("git checkout -- f", "destroy uncommitted work of tester, run `b`, turn `one` (`f`)"),
        ("git checkout -- g", "destroy uncommitted work of tester, run `b`, turn `one` (`g`)"),
    ] {
        let reply = a.line(line);
        let mut said = message(&reply);
        if reply["checkpoint"]["status"] == "late" {
            let pending = reply["checkpoint"]["pending"].clone();
            a.sidecar.notice(|notice| notice["notice"] == "checkpoint.settled" && notice["pending"] == pending);
            said = a.line("ls")["notices"].to_string();
            let did = expected.replace("stash away", "stashed away").replace("destroy", "destroyed");
            assert!(said.contains(&format!("the last action {did}; saved in ")), "{line}: {said}");
            continue;
        }
        assert!(said.contains(expected), "{line}: {said}");
    }
}

#[test]
fn a_file_of_another_workspace_counts_too() {
    // Work in directories of temporary files counts for nothing outside of its own workspace.
    let Some(lab) = Lab::lasting().and_then(committed) else { return };
    let beside = lab.root().join("beside");
    std::fs::create_dir(&beside).unwrap();
    let (mut a, mut b) = (Agent::of(&lab, json!({"session": "a", "workspace": beside})), Agent::new(&lab, "b"));
    b.write(&lab, "f", "of b\n");
    let file = lab.work.join("f").display().to_string();
    let reply = a.line(&format!("rm {file}"));
    assert_eq!(collisions(&reply), [format!("b: {file}")], "{reply}");
    assert!(message(&reply).contains(&file), "{reply}");
    // A stash gives it back.
    let work = lab.work.display();
    for (line, does) in
        [(format!("git -C {work} stash"), "stash away"), (format!("git -C {work} reset --hard"), "destroy")]
    {
        let reply = a.line(&line);
        assert_eq!(collisions(&reply), [format!("b: {file}")], "{reply}");
        assert!(message(&reply).contains(&format!("this would {does} uncommitted work")), "{reply}");
    }
}

/// Hooks of two clients, whose daemon ends with it.
struct Hooked(Lab);

impl Hooked {
    fn new() -> Option<Hooked> {
        repository().map(Hooked)
    }

    fn hook(&self, client: &str, event: &str, payload: &Value) -> Value {
        let mut command = self.0.command(env!("CARGO_BIN_EXE_piton"), &self.0.work);
        command.args(["hook", client, event]);
        answered(command, payload)
    }

    /// Codex writes a file by a patch.
    fn codex_writes(&self, path: &str, content: &str) {
        let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-committed\n+{content}\n*** End Patch");
        let payload = |event: &str| {
            json!({ "hook_event_name": event, "session_id": "c-1", "turn_id": "7", "cwd": self.0.work,
                "tool_name": "apply_patch", "tool_input": { "command": patch }, "tool_use_id": "p" })
        };
        self.hook("codex", "PreToolUse", &payload("PreToolUse"));
        self.0.write(path, content);
        self.hook("codex", "PostToolUse", &payload("PostToolUse"));
    }

    fn payload(&self, event: &str, command: &str) -> Value {
        json!({ "hook_event_name": event, "session_id": "s", "prompt_id": "p", "cwd": self.0.work,
            "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": "u" })
    }

    fn claude(&self, event: &str, command: &str) -> Value {
        self.hook("claude-code", event, &self.payload(event, command))
    }

    /// The same of a Claude Code that is another process than Codex.
    fn other_claude(&self, event: &str, command: &str) -> Value {
        let mut hook = self.0.command("timeout", &self.0.work);
        hook.args(["60", env!("CARGO_BIN_EXE_piton"), "hook", "claude-code", event]);
        answered(hook, &self.payload(event, command))
    }

    /// Runs a script as an agent's command does, with the first git of the system.
    fn sh(&self, script: &str) -> Output {
        let mut command = self.0.command("/bin/sh", &self.0.work);
        let output = command.args(["-c", script]).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a hook, and returns its answer.
fn answered(mut hook: Command, payload: &Value) -> Value {
    let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

impl Drop for Hooked {
    fn drop(&mut self) {
        self.0.piton(&["daemon", "stop"]);
    }
}

#[test]
fn hooks_of_two_clients_warn_each_other_and_keep_to_the_budget() {
    let Some(hooked) = Hooked::new() else { return };
    hooked.other_claude("PreToolUse", "ls");
    hooked.codex_writes("f", "of codex");
    let told = hooked.other_claude("PreToolUse", "git reset --hard").to_string();
    assert!(told.contains("uncommitted work of codex, run `codex.c-1`, turn `7` (`f`)"), "{told}");
    assert!(!told.contains("deny"), "{told}");
    hooked.other_claude("PostToolUse", "git reset --hard");
    // The second one of the kind is only counted.
    let again = hooked.other_claude("PreToolUse", "git checkout -- f").to_string();
    assert!(again.contains("1 more of the kind `collision`") && !again.contains("codex.c-1"), "{again}");
    hooked.other_claude("PostToolUse", "git checkout -- f");
    // Other work is told of in full.
    hooked.codex_writes("g", "of codex");
    let more = hooked.other_claude("PreToolUse", "git checkout -- g").to_string();
    assert!(more.contains("(`g`)"), "{more}");
    hooked.other_claude("PostToolUse", "git checkout -- g");
    // The model is told no more than the budget allows.
    hooked.0.set("limits: {told_tokens: 30}\n");
    let reply = hooked.other_claude("PreToolUse", "git checkout -f");
    let spent = reply["hookSpecificOutput"].to_string();
    assert!(spent.contains("used up their 30 tokens") && !spent.contains("codex.c-1"), "{spent}");
    // The budget is the model's.
    assert!(reply["systemMessage"].as_str().unwrap().contains("codex.c-1"), "{reply}");
}

/// The model reads a note with the result of the action: it says what was destroyed, and where it is. git within the action repeats nothing.
#[test]
fn a_collision_is_named_once_in_words_of_its_time() {
    let Some(hooked) = Hooked::new() else { return };
    let env = hooked.0.root().join("env");
    let mut start = hooked.0.command("timeout", &hooked.0.work);
    start.env("CLAUDE_ENV_FILE", &env).args(["60", env!("CARGO_BIN_EXE_piton"), "hook", "claude-code", "SessionStart"]);
    answered(start, &hooked.payload("SessionStart", ""));
    hooked.other_claude("PreToolUse", "ls");
    hooked.codex_writes("f", "of codex");
    let before = hooked.other_claude("PreToolUse", "git reset --hard");
    let work = "uncommitted work of codex, run `codex.c-1`, turn `7` (`f`); saved in ";
    let model = before["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(model.starts_with(&format!("piton: this action destroyed {work}")), "{before}");
    let person = before["systemMessage"].as_str().unwrap();
    assert!(person.starts_with(&format!("piton: this would destroy {work}")), "{before}");
    let export = std::fs::read_to_string(&env).unwrap().lines().next().unwrap().to_owned();
    let done = hooked.sh(&format!("{export}\ngit reset --hard"));
    assert!(done.code == 0 && !done.stderr.contains("codex"), "{done:?}");
    let after = hooked.other_claude("PostToolUse", "git reset --hard");
    assert!(!after.to_string().contains("collision") && !after.to_string().contains("codex"), "{after}");
    // The command of the note restores the work.
    let (_, command) = model.split_once("`piton ").unwrap();
    let words: Vec<&str> = command.trim_end_matches('`').split(' ').chain(["--yes"]).collect();
    assert_eq!(hooked.0.piton(&words).code, 0, "{model}");
    assert!(hooked.0.read("f").contains("of codex"));
}

/// Work that was there before the first turn is a person's, and named once in a session.
#[test]
fn uncommitted_work_from_before_the_first_session_is_named_once() {
    for (line, expected) in [
        ("git checkout .", "person: f"),
        ("git reset --hard", "person: f"),
        ("git stash", "person: f"),
        ("git stash -u", "person: dir/new f"),
        ("git clean -fd", "person: dir/new"),
        ("git clean -fdx", "person: dir/new"),
        ("rm -rf dir", "person: dir/new"),
        ("rm -rf out", ""),
        ("rm f", ""),
        ("git checkout -- g", ""),
    ] {
        let Some(lab) = repository() else { return };
        lab.write("f", "mine\n");
        lab.write("dir/new", "mine too\n");
        lab.sh("mkdir out; echo x > out/a.log; echo x > dir/h.log");
        let mut agent = Agent::new(&lab, "s");
        let reply = agent.line(line);
        assert_eq!(collisions(&reply).join(", "), expected, "{line}: {reply}");
        let again = agent.line(line);
        assert_eq!(collisions(&again).join(", "), "", "{line}: {again}");
    }
    let Some(lab) = repository() else { return };
    lab.set("policy: {collision: deny}\n");
    lab.write("f", "mine\n");
    let mut agent = Agent::new(&lab, "s");
    for _ in 0..2 {
        let reply = agent.line("git checkout .");
        assert_eq!(
            (&reply["proceed"], collisions(&reply).join("")),
            (&json!(false), "person: f".to_owned()),
            "{reply}"
        );
    }
}

/// Some clients run the hooks of another one beside their own: one agent is told of twice then.
#[test]
fn one_agent_with_the_hooks_of_two_clients_is_one() {
    let Some(hooked) = Hooked::new() else { return };
    hooked.0.set("policy: {collision: deny}\n");
    hooked.claude("PreToolUse", "ls");
    hooked.codex_writes("f", "of codex");
    let reply = hooked.claude("PreToolUse", "git reset --hard");
    assert!(!reply.to_string().contains("codex"), "{reply}");
    let reply = hooked.other_claude("PreToolUse", "git reset --hard");
    assert_eq!(reply["hookSpecificOutput"]["permissionDecision"], "deny", "{reply}");
}

#[test]
fn a_policy_that_denies_stops_the_hook() {
    let Some(hooked) = Hooked::new() else { return };
    hooked.0.set("policy: {collision: deny}\n");
    hooked.other_claude("PreToolUse", "ls");
    hooked.codex_writes("f", "of codex");
    let reply = hooked.other_claude("PreToolUse", "git reset --hard");
    let output = &reply["hookSpecificOutput"];
    assert_eq!(output["permissionDecision"], "deny", "{reply}");
    let reason = output["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("denies an action that would destroy uncommitted work of codex"), "{reason}");
    assert_eq!(hooked.other_claude("PreToolUse", "rm dir/h")["hookSpecificOutput"].get("permissionDecision"), None);
}

/// An agent at work under `piton run`. It ends with the test.
struct Run(Child);

impl Run {
    /// Returns the command of an agent that is the program of the first word.
    fn command(lab: &Lab, name: &str, agent: &[&str]) -> Command {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["run", "--quiet", "--name", name, "--"]).args(agent);
        command
    }

    /// Starts an agent that writes "up" once it has done its work, and waits then.
    fn start(lab: &Lab, name: &str, agent: &[&str]) -> Run {
        let mut command = Run::command(lab, name, agent);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        assert_eq!(&first, b"up\n", "{name}");
        Run(child)
    }

    /// Has it end on its own.
    fn finish(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_there(program: &str) -> bool {
    let is_there = ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !is_there {
        lacking(program);
    }
    is_there
}

/// The names of shells, and of git, are those of a person's clients too. The door tells them apart.
#[test]
fn agents_that_are_shells_or_git_are_no_persons() {
    const PYTHON: &str = "import subprocess,sys; sys.exit(subprocess.run(['bash','-c','git reset --hard']).returncode)";
    const SHELLS: [&str; 2] = ["zsh", "fish"];
    let work = "echo 'of a' >f; echo up; read go; true";
    let reset = "git reset --hard; true";
    for (shell, other) in [
        ("bash", &["bash", "-c", reset][..]),
        ("bash", &["python3", "-c", PYTHON]),
        ("bash", &["git", "reset", "--hard"]),
        ("bash", &["zsh", "-c", reset]),
        ("zsh", &["zsh", "-c", reset]),
        ("zsh", &["python3", "-c", PYTHON]),
        ("fish", &["bash", "-c", reset]),
    ] {
        if !is_there("bash") || !(is_there(other[0]) || SHELLS.contains(&other[0])) {
            continue;
        }
        let Some(hooked) = Hooked::new() else { return };
        let lab = &hooked.0;
        lab.set("policy: {collision: deny}\n");
        // Not each machine has all of them: bash stands in, and the name is what counts.
        let named = |name: &str| {
            let path = lab.root().join(name);
            if SHELLS.contains(&name) && !path.exists() {
                std::os::unix::fs::symlink("/bin/bash", &path).unwrap();
            }
            if path.exists() { path.display().to_string() } else { name.to_owned() }
        };
        let (a, b) = (named(shell), named(other[0]));
        let a = Run::start(lab, "run-a", &[&a, "-c", work]);
        let done = Run::command(lab, "run-b", &[&[b.as_str()], &other[1..]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let expected = format!("destroy uncommitted work of {shell}, run `run-a`, turn `");
        assert!(said.contains(&expected) && said.contains("(`f`)"), "{shell} {other:?}: {said}");
        assert_eq!((done.status.code(), lab.read("f")), (Some(126), "of a\n".to_owned()), "{shell} {other:?}: {said}");
        // A person is told of it as well, and its sessions are the person's still.
        let mut person = Agent::of(lab, json!({"session": "bash.1", "client": "bash", "door": "shell"}));
        assert_eq!(collisions(&person.line("git reset --hard")), ["run-a: f"], "{shell}");
        person.write(lab, "by-person", "of a person");
        let mut second = Agent::of(lab, json!({"session": "zsh.2", "client": "zsh", "door": "shell"}));
        assert_eq!(collisions(&second.line("rm by-person")), [""; 0], "{shell}");
        let mut agent = Agent::of(lab, json!({"session": "c", "client": "bash", "door": "run"}));
        assert_eq!(collisions(&agent.line("rm by-person f")), ["run-a: f", "person: by-person"], "{shell}");
        // The work of a run that has ended is nobody's.
        a.finish();
        assert_eq!(collisions(&agent.line("git reset --hard")), [""; 0], "{shell}");
        let done = Run::command(lab, "run-b", &["bash", "-c", reset]).output().unwrap();
        assert_eq!((done.status.code(), lab.read("f")), (Some(0), "committed\n".to_owned()), "{shell}: {done:?}");
    }
}

#[test]
fn a_shell_that_is_an_agent_may_destroy_its_own_work() {
    let Some(hooked) = Hooked::new() else { return };
    let lab = &hooked.0;
    if !is_there("bash") {
        return;
    }
    lab.set("policy: {collision: deny}\n");
    let _other = Run::start(lab, "run-a", &["bash", "-c", "echo 'of a' >g; echo up; read go; true"]);
    let script = "echo mine >f; bash -c 'git checkout -- f'; cat f; bash -c 'git checkout -- g'; cat g";
    let done = Run::command(lab, "run-b", &["bash", "-c", script]).output().unwrap();
    // Its own command line names both.
    assert_eq!((done.status.code(), lab.read("g")), (Some(126), "of a\n".to_owned()), "{done:?}");
    let script = "echo mine >f; bash -c 'git checkout -- f'; cat f";
    let done = Run::command(lab, "run-b", &["bash", "-c", script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "committed\n", "{done:?}");
}

#[test]
fn the_git_door_knows_agents_that_are_shells() {
    let Some(hooked) = Hooked::new() else { return };
    let lab = &hooked.0;
    if !is_there("bash") {
        return;
    }
    lab.set("policy: {collision: deny}\n");
    let installed = lab.piton(&["install", "git", "--yes"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let _a = Run::start(lab, "run-a", &["bash", "-c", "echo 'of a' >f; echo up; read go; true"]);
    // No shell of piton's sees into it.
    let script = lab.root().join("hidden");
    std::fs::write(&script, "git reset --hard\n").unwrap();
    let line = format!("sh {}; true", script.display());
    let done = Run::command(lab, "run-b", &["bash", "-c", &line]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("uncommitted work of bash, run `run-a`, turn `"), "{said}");
    assert_eq!(lab.read("f"), "of a\n", "{said}");
}

#[test]
fn the_git_door_stops_a_reset_that_no_hook_has_seen() {
    for (policy, runs) in [("warn", true), ("ask", false), ("deny", false)] {
        let Some(hooked) = Hooked::new() else { return };
        let lab = &hooked.0;
        lab.set(&format!("policy: {{collision: {policy}}}\n"));
        let installed = lab.piton(&["install", "git", "--yes"]);
        assert_eq!(installed.code, 0, "{installed:?}");
        let mut b = Agent::of(lab, json!({"session": "codex.c-1", "client": "codex"}));
        b.write(lab, "f", "of codex");
        // The agent that was at work last is the one whose script this is.
        hooked.claude("PreToolUse", "make");
        let done = hooked.sh("git reset --hard");
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains("uncommitted work of codex, run `codex.c-1`, turn `one` (`f`)"), "{policy}: {said}");
        assert_eq!(lab.read("f"), if runs { "committed\n" } else { "of codex" }, "{policy}: {said}");
        assert_eq!(done.code == 0, runs, "{policy}: {done:?}");
        assert_eq!(said.contains("git was stopped"), !runs, "{policy}: {said}");
    }
}
