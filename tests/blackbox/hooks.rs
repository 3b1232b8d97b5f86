//! `piton hook` and the daemon behind it: every client's conversation, and everything that can be wrong with either.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::conversations::ALL;
use super::dice::Dice;
use super::faults::full;
use super::support::{Lab, Output, Sidecar, WAIT};

/// A lab whose daemon ends with it.
struct Hooked {
    lab: Lab,
    alone: bool,
}

impl Hooked {
    fn new(alone: bool) -> Hooked {
        let lab = Lab::new();
        lab.sh("printf old > a; mkdir out; printf product > out/x");
        Hooked { lab, alone }
    }

    fn command(&self, client: &str, event: &str) -> Command {
        let mut command = self.lab.command(env!("CARGO_BIN_EXE_piton"), &self.lab.work);
        command.args(["hook", client, event]);
        if self.alone {
            command.arg("--no-daemon");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, client: &str, event: &str, payload: &[u8]) -> Child {
        let mut child = self.command(client, event).spawn().unwrap();
        // A hook that has seen enough may close its input.
        let _ = child.stdin.take().unwrap().write_all(payload);
        child
    }

    /// Answers as every hook has to: code 0, and nothing or one JSON value.
    fn hook(&self, client: &str, event: &str, payload: impl AsRef<[u8]>) -> Value {
        let output = self.start(client, event, payload.as_ref()).wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{client} {event}: {output:?}");
        match stdout.trim() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap_or_else(|error| panic!("{client} {event}: {error}: {text}")),
        }
    }

    /// A command of Claude Code is about to run.
    fn bash(&self, turn: &str, command: &str) -> Value {
        self.shell("claude-code", turn, command)
    }

    /// A command of a client with Claude Code's events is about to run.
    fn shell(&self, client: &str, turn: &str, command: &str) -> Value {
        let tool = if client == "claude-code" { "Bash" } else { "run_shell_command" };
        self.hook(
            client,
            "PreToolUse",
            json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": turn, "cwd": self.lab.work,
                "tool_name": tool, "tool_input": { "command": command }, "tool_use_id": "u" })
            .to_string(),
        )
    }

    /// Reports the end of that command.
    fn shell_end(&self, client: &str, turn: &str, command: &str) {
        let tool = if client == "claude-code" { "Bash" } else { "run_shell_command" };
        let payload = json!({ "hook_event_name": "PostToolUse", "session_id": "s", "prompt_id": turn, "cwd": self.lab.work,
            "tool_name": tool, "tool_input": { "command": command }, "tool_use_id": "u" });
        self.hook(client, "PostToolUse", payload.to_string());
    }

    fn rows(&self) -> Vec<Value> {
        let list = self.lab.piton(&["list", "--json", "--kind", "auto"]);
        let list = if list.code == 3 { json!({ "checkpoints": [] }) } else { list.json() };
        list["checkpoints"].as_array().unwrap().clone()
    }

    fn checkpoints(&self) -> Vec<u64> {
        self.rows().iter().map(|row| row["n"].as_u64().unwrap()).collect()
    }

    /// Waits until there are so many.
    fn settles_at(&self, count: usize) -> Vec<u64> {
        let began = Instant::now();
        loop {
            let all = self.checkpoints();
            if all.len() == count {
                return all;
            }
            assert!(began.elapsed() < WAIT, "{all:?}, not {count}");
        }
    }

    /// All of them, once there are only those of the whole workspace: see [`Hooked::settles_at`].
    fn whole(&self) -> Vec<u64> {
        let began = Instant::now();
        loop {
            let rows = self.rows();
            if !rows.iter().any(|row| row["flags"].as_array().unwrap().contains(&json!("partial"))) {
                return rows.iter().map(|row| row["n"].as_u64().unwrap()).collect();
            }
            assert!(began.elapsed() < WAIT, "{rows:?}");
        }
    }

    /// The checkpoint that holds the session's turn, as it was acknowledged.
    fn held(&self) -> String {
        let kept = std::fs::read(self.lab.home.join("piton/sessions/claude-code.s")).unwrap();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        let slots = kept["turns"]["slots"].as_object().unwrap();
        slots.values().next().unwrap()["id"].as_str().unwrap().to_owned()
    }

    fn mishaps(&self) -> String {
        self.lab.piton(&["status", "--json"]).json()["mishaps"].to_string()
    }

    fn dir(&self) -> PathBuf {
        self.lab.home.join("piton/daemon")
    }

    fn daemon(&self, verb: &str) -> Output {
        self.lab.piton(&["daemon", verb, "--json"])
    }

    /// The daemon's process, if one serves.
    fn pid(&self) -> Option<i64> {
        self.daemon("status").json()["daemon"]["pid"].as_i64()
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        self.lab.piton(&["daemon", "stop"]);
    }
}

fn kill(pid: i64) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn every_client_gets_one_checkpoint_before_the_loss() {
    for alone in [false, true] {
        for (client, conversation) in ALL {
            let hooked = Hooked::new(alone);
            let work = hooked.lab.work.to_str().unwrap().to_owned();
            let mut has_turns = false;
            for (event, payload, meaning) in *conversation {
                let payload = payload.replace("\"/w\"", &format!("{work:?}")).replace("/w/", &format!("{work}/"));
                let reply = hooked.hook(client, event, payload);
                // A prompt for piton itself does not reach the model: some clients call it denied.
                let refused = !meaning.contains(": ask ") && reply.to_string().contains("deny");
                assert!(!refused, "{client} {event}: {reply}");
                has_turns |= meaning.contains(": turn ");
                if meaning.contains("rm -rf out") {
                    hooked.lab.sh("rm -rf out");
                }
            }
            // A client that never tells of turns gets one before every action that finds something changed.
            let taken = if has_turns { hooked.settles_at(1) } else { hooked.whole() };
            // The documentation's own examples destroy something else.
            hooked.lab.sh("rm -rf out");
            hooked.lab.restore(*taken.last().unwrap(), &[]);
            assert_eq!(hooked.lab.read("out/x"), "product", "{client}");
        }
    }
}

#[test]
fn a_turn_is_the_same_with_and_without_the_daemon() {
    let mut hooked = Hooked::new(false);
    assert_eq!(hooked.bash("t1", "rm -rf out"), Value::Null);
    hooked.lab.sh("rm -rf out");
    hooked.settles_at(1);
    // The turn is held, whoever answers.
    hooked.alone = true;
    assert_eq!(hooked.bash("t1", "rm nothing"), Value::Null);
    hooked.settles_at(1);
    // And a turn that begins without the daemon is held by it.
    assert_eq!(hooked.bash("t2", "rm -rf a"), Value::Null);
    hooked.lab.sh("rm a");
    hooked.alone = false;
    assert_eq!(hooked.bash("t2", "rm nothing"), Value::Null);
    hooked.settles_at(2);
    assert_eq!(hooked.mishaps(), "[]");
}

#[test]
fn what_is_brought_back_and_what_cannot_be_is_told_to_the_model() {
    let hooked = Hooked::new(false);
    let told = hooked.bash("t1", "rm -rf out; psql -c 'drop table x'");
    assert!(told["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("psql"), "{told}");
    hooked.lab.sh("rm -rf out");
    let prompt = |text: &str| {
        hooked.hook(
            "claude-code",
            "UserPromptSubmit",
            json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "q", "cwd": hooked.lab.work,
                "prompt": text })
            .to_string(),
        )
    };
    let n = hooked.settles_at(1)[0];
    let listed = prompt("/rollback");
    assert!(listed["reason"].as_str().unwrap().contains(&format!("{n}  ")), "{listed}");
    let diff = prompt(&format!("/rollback diff {n}"));
    assert!(diff["reason"].as_str().unwrap().contains("-product"), "{diff}");
    let restored = prompt(&format!("/rollback {n} out/x"));
    assert!(restored["decision"] == "block" && hooked.lab.read("out/x") == "product", "{restored}");
    let undone = prompt("/undo");
    assert!(!hooked.lab.work.join("out/x").exists(), "{undone}");
    let said = prompt("/rollback 4711");
    assert!(said["reason"].as_str().unwrap().contains("4711"), "{said}");
    // Nothing of this cost a turn; the next one is told.
    let told = prompt("go on");
    let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("out/x") && context.contains("undone"), "{told}");
    assert_eq!(prompt("go on again"), Value::Null);
}

/// Everything a reply says to the model.
fn to_model(reply: &Value) -> String {
    reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
}

/// The person sees the warnings that reach the model too, and nothing of ordinary checkpoints.
#[test]
fn a_person_sees_warnings_and_no_ordinary_checkpoints() {
    let hooked = Hooked::new(true);
    hooked.lab.sh("truncate -s 20M big; printf big > .gitignore");
    for client in ["claude-code", "codex"] {
        let seen = |turn: &str, command: &str| {
            let reply = hooked.shell(client, turn, command);
            reply["systemMessage"].as_str().unwrap_or_default().to_owned()
        };
        for command in ["ls", "rm a", "echo x > a", "git status", "rm -r out"] {
            assert_eq!(seen("t", command), "", "{client}: {command}");
        }
        assert!(seen("t", "psql -c 'drop table t'").contains("psql"), "{client}");
        assert!(seen("t", "sh ./clean.sh").contains("not saved: big"), "{client}");
    }
    hooked.lab.set("policy: {database: deny}\n");
    let refused = hooked.bash("u", "psql -c 'drop table t'");
    assert_eq!(
        (refused["hookSpecificOutput"]["permissionDecision"].as_str(), refused.get("systemMessage")),
        (Some("deny"), None)
    );
}

/// A reply before an action does not reach the model of every client: then the warning waits for one that does, and is told once.
#[test]
fn a_warning_waits_for_an_event_that_reaches_the_model() {
    for alone in [false, true] {
        for client in ["qwen-code", "droid"] {
            let hooked = Hooked::new(alone);
            let tool = if client == "droid" { "Execute" } else { "run_shell_command" };
            let event = |session: &str, event: &str, command: &str| {
                let payload = json!({ "hook_event_name": event, "session_id": session, "prompt_id": "t",
                    "cwd": hooked.lab.work, "tool_name": tool, "tool_input": { "command": command }, "tool_use_id": "u" });
                hooked.hook(client, event, payload.to_string())
            };
            for n in 1..=4 {
                let before = event("s", "PreToolUse", &format!("psql -c 'drop table t{n}'"));
                assert_eq!(to_model(&before), "", "{client}: {before}");
                assert!(before["systemMessage"].as_str().unwrap().contains("psql"), "{client}: {before}");
            }
            assert_eq!(to_model(&event("other", "PostToolUse", "ls")), "", "another session is told nothing");
            let told = to_model(&event("s", "PostToolUse", "psql"));
            assert!(told.contains("psql") && told.contains("(3 more of this kind)"), "{client}: {told}");
            assert_eq!(to_model(&event("s", "PostToolUse", "psql")), "", "told once");
            // A kind that was told in full is only counted from then on.
            event("s", "PreToolUse", "psql -c 'drop table t5'");
            assert_eq!(to_model(&event("s", "PostToolUse", "psql")), "piton: 1 more of the kind `database`");
        }
    }
}

/// Hooks of one session at the same time are processes of their own: one of them tells.
#[test]
fn hooks_at_the_same_time_tell_a_warning_once() {
    for alone in [false, true] {
        let hooked = Hooked::new(alone);
        let payload = |event: &str| {
            json!({ "hook_event_name": event, "session_id": "s", "prompt_id": "t", "cwd": hooked.lab.work,
                "tool_name": "run_shell_command", "tool_input": { "command": "psql -c 'drop table t'" },
                "tool_use_id": "u" })
            .to_string()
        };
        hooked.hook("qwen-code", "PreToolUse", payload("PreToolUse"));
        let after = payload("PostToolUse");
        let all: Vec<Child> = (0..8).map(|_| hooked.start("qwen-code", "PostToolUse", after.as_bytes())).collect();
        let told = all.into_iter().map(|child| child.wait_with_output().unwrap());
        let told = told.filter(|output| String::from_utf8_lossy(&output.stdout).contains("psql")).count();
        assert_eq!(told, 1, "alone: {alone}");
    }
}

/// Warnings take no more of a session's context than the settings say; what is lost or brought back is always told.
#[test]
fn warnings_keep_to_a_budget() {
    let hooked = Hooked::new(true);
    hooked.lab.set("limits: {told_tokens: 40}\n");
    hooked.lab.sh("truncate -s 20M big; printf big > .gitignore");
    let mut all = String::new();
    for command in ["psql -c 'drop table t'", "aws s3 rm s3://b/k", "kubectl delete ns x", "psql -c 'drop table u'"] {
        all.push_str(&to_model(&hooked.bash("t", command)));
    }
    assert_eq!(all.matches("used up their 40 tokens").count(), 1, "{all}");
    assert!(all.contains("psql") && !all.contains("kubectl"), "{all}");
    let lost = to_model(&hooked.bash("t", "sh ./clean.sh; psql -c 'drop table v'"));
    assert!(lost.contains("not saved: big") && !lost.contains("database"), "{lost}");
}

/// Returns what a prompt of a client that speaks Claude Code's words is answered.
fn answered(hooked: &Hooked, client: &str, prompt: &str) -> String {
    let reply = hooked.hook(
        client,
        "UserPromptSubmit",
        json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "q", "cwd": hooked.lab.work,
            "prompt": prompt })
        .to_string(),
    );
    assert_eq!(reply["decision"], "block", "{prompt}: {reply}");
    reply["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_prompt_is_answered_as_the_terminal_is() {
    for client in ["claude-code", "qwen-code"] {
        let hooked = Hooked::new(false);
        let lab = &hooked.lab;
        let files = "rm -rf out; echo more >> a; echo n > new";
        let command = format!("{files}; psql -c 'drop table accounts'");
        hooked.shell(client, "t1", &command);
        lab.sh(files);
        hooked.shell_end(client, "t1", &command);
        let n = hooked.settles_at(1)[0];
        let undo = if client == "qwen-code" { "`/undo`" } else { "`/rollback undo`" };
        let listed = answered(&hooked, client, "/rollback");
        for part in ["after it 3 files, +2/-2", "then database (piton cannot undo this)", "/rollback diff N", undo] {
            assert!(listed.contains(part), "{client} {part}: {listed}");
        }
        // The terminal's preview, then what was done.
        let preview = lab.piton(&["restore", &n.to_string(), "--preview"]).stdout;
        // Only to others is it news that the session's own turn is open.
        let is_news = |line: &&str| !line.contains(" is still open, so ");
        let preview: String = preview.lines().filter(is_news).map(|line| format!("{line}\n")).collect();
        let said = answered(&hooked, client, &format!("/rollback {n}"));
        assert!(said.starts_with(&preview), "{client}: {said}\nnot as\n{preview}");
        for part in [
            "piton cannot undo: ",
            "psql -c 'drop table accounts'",
            "3 files, +2/-2",
            "replaced 1 file, deleted 1 file",
            undo,
        ] {
            assert!(said.contains(part), "{client} {part}: {said}");
        }
        assert_eq!((lab.read("out/x").as_str(), lab.read("a").as_str()), ("product", "old"));
        // Once more it changes nothing, says so and offers nothing to take back.
        let nothing = answered(&hooked, client, &format!("/rollback {n}"));
        let terminal = lab.piton(&["restore", &n.to_string(), "--yes"]);
        assert_eq!((terminal.code, terminal.stdout.trim()), (3, nothing.trim()), "{client}");
        assert!(nothing.contains("Nothing to do.") && !nothing.to_lowercase().contains("undo` "), "{nothing}");
        assert!(!nothing.contains("reverse this"), "{nothing}");
        // An undo says which operation it takes back: it is the older one.
        let undone = answered(&hooked, client, "/undo");
        assert!(undone.starts_with("Undo the restore of "), "{undone}");
        assert!(undone.contains(&format!("before restore to checkpoint {n}")), "{undone}");
        assert_eq!(undone.contains("`/rewind`"), client == "claude-code", "{undone}");
        assert!(!lab.work.join("out/x").exists() && lab.read("new") == "n\n", "{undone}");
        // Older than the restore is what the turn did.
        let turn = answered(&hooked, client, "/rollback undo");
        assert!(turn.starts_with(&format!("Undo turn `t1` (t-1, {client}, run ")), "{turn}");
        assert!(lab.work.join("out/x").exists() && !lab.work.join("new").exists(), "{turn}");
        let none = answered(&hooked, client, "/rollback undo");
        assert!(none.contains("nothing to undo"), "{none}");
        let redone = answered(&hooked, client, "/rollback redo");
        assert!(redone.starts_with(&format!("Redo turn `t1` (t-1, {client}, run ")), "{redone}");
        assert!(!lab.work.join("out/x").exists() && lab.read("new") == "n\n", "{redone}");
        // A path that is nowhere is refused with the terminal's words and its code.
        let before = hooked.checkpoints();
        let refused = answered(&hooked, client, &format!("/rollback {n} no/such"));
        let terminal = lab.piton(&["restore", &n.to_string(), "no/such", "--yes"]);
        assert!(terminal.code == 3 && terminal.stderr.contains("does not contain that path"), "{terminal:?}");
        assert!(refused.starts_with(terminal.stderr.trim()) && refused.ends_with("(no-such-path)"), "{refused}");
        let outside = answered(&hooked, client, &format!("/rollback {n} ../../elsewhere"));
        assert!(outside.ends_with("(bad-path)"), "{outside}");
        assert_eq!(hooked.checkpoints(), before);
        // One file, through `..` as it was typed.
        let one = answered(&hooked, client, &format!("/rollback {n} out/../out/x"));
        assert!(
            one.contains("Restored 1 file and 1 directory from checkpoint ") && lab.read("out/x") == "product",
            "{one}"
        );
        assert_eq!(lab.read("new"), "n\n");
    }
}

#[test]
fn bad_payloads_are_said_and_never_a_veto() {
    let hooked = Hooked::new(false);
    let huge = format!("{{\"session_id\":\"{}\"}}", "x".repeat(33 << 20));
    let foreign = json!({ "hook_event_name": "PostToolUse", "session_id": "s" }).to_string();
    let table: [(&str, &str, &[u8], &str); 6] = [
        ("claude-code", "PreToolUse", b"{\"session_id\": \"s", "not JSON"),
        ("claude-code", "PreToolUse", b"\xff\xfe", "UTF-8"),
        ("claude-code", "PreToolUse", huge.as_bytes(), "long"),
        ("claude-code", "PreToolUse", foreign.as_bytes(), "PostToolUse"),
        ("gemini-cli", "BeforeTool", b"", "hook"),
        ("nobody", "PreToolUse", b"{}", "there is no client"),
    ];
    for (client, event, payload, said) in table {
        let reply = hooked.hook(client, event, payload);
        assert!(client == "nobody" || reply.to_string().contains("piton"), "{client} {event}: {reply}");
        assert!(hooked.mishaps().contains(said), "{client} {event} {said}: {}", hooked.mishaps());
    }
    let bare = hooked.lab.piton(&["hook"]);
    assert_eq!((bare.code, bare.stdout.as_str()), (0, ""), "{bare:?}");
}

#[test]
fn ten_at_once_start_one_daemon() {
    let hooked = Hooked::new(false);
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "t", "cwd": hooked.lab.work,
        "tool_name": "Bash", "tool_input": { "command": "rm -rf out" }, "tool_use_id": "u" })
    .to_string();
    let all: Vec<Child> = (0..10).map(|_| hooked.start("claude-code", "PreToolUse", payload.as_bytes())).collect();
    for child in all {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
    assert!(hooked.pid().is_some());
    // Those that came too late to serve have seen it, and ended.
    let home = hooked.lab.home.join("piton");
    let wanted = format!("PITON_HOME={}\0", home.display());
    let running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|process| {
                let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
                let (line, environment) = (read("cmdline"), read("environ"));
                String::from_utf8_lossy(&line).contains("daemon\0run")
                    && String::from_utf8_lossy(&environment).contains(&wanted)
            })
            .count()
    };
    let began = Instant::now();
    while running() != 1 {
        assert!(began.elapsed() < WAIT, "{} daemons", running());
        std::thread::yield_now();
    }
    assert_eq!(hooked.mishaps(), "[]");
}

#[test]
fn a_killed_daemon_loses_nothing() {
    let rounds = if full() { 50 } else { 5 };
    let hooked = Hooked::new(false);
    // More checkpoints than are kept: here each of them is asked for again.
    let settings = hooked.lab.home.join("config/piton");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.yaml"), "retention: {enabled: false}\n").unwrap();
    let mut dice = Dice(4711);
    let mut held: Vec<(String, String)> = Vec::new();
    for round in 0..rounds {
        hooked.lab.write("a", format!("round {round}"));
        hooked.lab.sh("mkdir -p out; for i in 1 2 3 4 5 6 7 8; do echo $i $RANDOM > out/$i; done");
        hooked.bash("warm", "ls");
        let pid = hooked.pid();
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": format!("t{round}"),
            "cwd": hooked.lab.work, "tool_name": "Bash", "tool_input": { "command": "rm a" }, "tool_use_id": "u" });
        let child = hooked.start("claude-code", "PreToolUse", payload.to_string().as_bytes());
        // Anywhere between the question and some time after the answer.
        for _ in 0..dice.roll(40_000) {
            std::hint::spin_loop();
        }
        if let Some(pid) = pid {
            kill(pid);
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // The next hook goes on.
        assert_eq!(hooked.bash(&format!("u{round}"), "rm a"), Value::Null, "{}", hooked.mishaps());
        held.push((hooked.held(), format!("round {round}")));
    }
    for (id, content) in &held {
        let shown = hooked.lab.piton(&["show", &format!("{id}:a")]);
        assert_eq!((shown.code, &shown.stdout), (0, content), "{id}: {}", shown.stderr);
    }
    if let Some(said) = hooked.lab.store_git(&["fsck", "--full", "--strict", "--no-dangling"]) {
        assert!(!said.contains("error") && !said.contains("missing"), "{said}");
    }
    println!("daemon killed: {rounds} rounds, all well");
}

/// Something that has taken the daemon's place; says `line` to whoever comes.
fn impostor(dir: &Path, line: Option<String>) -> UnixListener {
    std::fs::create_dir_all(dir).unwrap();
    let listener = UnixListener::bind(dir.join("socket")).unwrap();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for mut stream in accepting.incoming().flatten() {
            if let Some(line) = &line {
                // A client that hung up wants no more lines.
                let _ = writeln!(stream, "{line}");
            }
            silent.push(stream);
        }
    });
    listener
}

#[test]
fn without_a_daemon_that_answers_the_hook_answers_itself() {
    let greeting = |ok: bool, v: u32, built_at: i64, pid: u32| {
        json!({ "v": v, "type": "daemon", "ok": ok, "build": "another", "built_at": built_at, "pid": pid,
            "since": "2026-01-01T00:00:00.000Z", "clients": 1 })
        .to_string()
    };
    let mut old = Command::new("sleep").arg("60").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let table = [
        ("never greets", None),
        ("greets with nonsense", Some("hello".to_owned())),
        ("has too many clients", Some(greeting(false, 1, i64::MAX, 1))),
        ("speaks another protocol", Some(greeting(true, 2, i64::MAX, 1))),
        ("is an older piton", Some(greeting(true, 1, 0, old.id()))),
    ];
    for (name, line) in table {
        let hooked = Hooked::new(false);
        let _listener = impostor(&hooked.dir(), line);
        assert_eq!(hooked.bash("t", "rm -rf out"), Value::Null, "{name}: {}", hooked.mishaps());
        hooked.lab.sh("rm -rf out");
        hooked.settles_at(1);
        assert_eq!(hooked.mishaps(), "[]", "{name}");
    }
    // The older one was asked to end.
    assert!(!old.wait().unwrap().success());
}

#[test]
fn a_dead_socket_or_no_place_for_one_is_no_hindrance() {
    let hooked = Hooked::new(false);
    std::fs::create_dir_all(hooked.dir()).unwrap();
    drop(UnixListener::bind(hooked.dir().join("socket")).unwrap());
    assert_eq!(hooked.bash("t", "rm -rf out"), Value::Null);
    assert_eq!(hooked.daemon("start").code, 0);
    assert!(hooked.pid().is_some());
    assert_eq!(hooked.daemon("stop").code, 0);
    assert_eq!((hooked.daemon("stop").code, hooked.pid()), (3, None));
    std::fs::remove_dir_all(hooked.dir()).unwrap();
    std::fs::write(hooked.dir(), "not a directory").unwrap();
    hooked.lab.write("a", "newer");
    assert_eq!(hooked.bash("t2", "rm a"), Value::Null, "{}", hooked.mishaps());
    hooked.settles_at(2);
}

#[test]
fn a_long_home_and_an_idle_end() {
    let hooked = Hooked::new(false);
    let home = hooked.lab.root().join("h".repeat(120)).join("i".repeat(60));
    let mut command = hooked.lab.command(env!("CARGO_BIN_EXE_piton"), &hooked.lab.work);
    command.args(["daemon", "run", "--idle", "1"]).env("PITON_HOME", &home).stderr(Stdio::piped());
    let mut daemon = command.spawn().unwrap();
    let status = || {
        let mut command = hooked.lab.command(env!("CARGO_BIN_EXE_piton"), &hooked.lab.work);
        command.args(["daemon", "status"]).env("PITON_HOME", &home).stdout(Stdio::null());
        command.status().unwrap().code()
    };
    let began = Instant::now();
    while status() != Some(0) {
        assert!(began.elapsed() < WAIT);
    }
    // It ends by itself.
    let mut said = String::new();
    BufReader::new(daemon.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(daemon.wait().unwrap().success() && said.is_empty(), "{said}");
    assert!(!home.join("daemon/socket").exists());
}

/// The steps of one turn: their effects, as the agent has them.
const STEPS: [(&str, &str); 3] = [
    ("write", "printf 'alpha\\nbeta\\n' > notes.txt"),
    ("edit", "printf 'gamma\\nbeta\\n' > notes.txt"),
    ("shell", "rm -rf out && sed -i s/old/new/ a"),
];

/// Plays the same turn in a client's own words, as they were captured, each step between its two events.
fn play(hooked: &Hooked, client: &str) {
    let (work, notes) = (&hooked.lab.work, hooked.lab.work.join("notes.txt"));
    let shell = STEPS[2].1;
    let [starts, before, after, ends] = match client {
        "gemini-cli" => ["BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"],
        _ => ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"],
    };
    let tool = |step: &str| match (client, step) {
        ("claude-code", "write") => ("Write", json!({"file_path": notes, "content": "alpha\\nbeta\\n"})),
        ("claude-code", "edit") => ("Edit", json!({"file_path": notes, "old_string": "alpha", "new_string": "gamma"})),
        ("codex", "write") => (
            "apply_patch",
            json!({"command": "*** Begin Patch\n*** Add File: notes.txt\n+alpha\n+beta\n*** End Patch\n"}),
        ),
        ("codex", "edit") => (
            "apply_patch",
            json!({"command": "*** Begin Patch\n*** Update File: notes.txt\n@@\n-alpha\n+gamma\n beta\n*** End Patch\n"}),
        ),
        ("gemini-cli", "write") => ("write_file", json!({"file_path": notes, "content": "alpha\\nbeta\\n"})),
        ("gemini-cli", "edit") => {
            ("replace", json!({"file_path": notes, "old_string": "alpha", "new_string": "gamma"}))
        }
        ("gemini-cli", _) => ("run_shell_command", json!({"command": shell, "is_background": false})),
        _ => ("Bash", json!({"command": shell})),
    };
    let send = |event: &str, more: &[(&str, Value)]| {
        let mut payload = json!({"session_id": "s", "cwd": work, "hook_event_name": event});
        match client {
            "claude-code" => payload["prompt_id"] = "p".into(),
            "codex" => payload["turn_id"] = "p".into(),
            _ => payload["timestamp"] = "2026-11-21T02:14:36.642Z".into(),
        }
        more.iter().for_each(|(key, value)| payload[*key] = value.clone());
        let reply = hooked.hook(client, event, payload.to_string());
        assert_eq!(reply, Value::Null, "{client} {event}");
    };
    send(starts, &[("prompt", "tidy up".into())]);
    for (at, (step, effect)) in STEPS.iter().enumerate() {
        let (name, input) = tool(step);
        let mut call = vec![("tool_name", name.into()), ("tool_input", input)];
        if client != "gemini-cli" {
            call.push(("tool_use_id", format!("u{at}").into()));
        }
        send(before, &call);
        hooked.lab.sh(effect);
        call.push(("tool_response", json!({"stdout": ""})));
        send(after, &call);
    }
    send(ends, &[]);
}

/// Plays it over the protocol.
fn play_protocol(lab: &Lab) {
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s", "client": "protocol"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "p"}));
    for (at, (step, effect)) in STEPS.iter().enumerate() {
        let kind = if *step == "shell" { "shell" } else { "tool" };
        let input = json!({"file_path": lab.work.join("notes.txt")});
        let mut event = json!({"type": format!("{kind}.before"), "action": at.to_string()});
        match kind {
            "shell" => event["command"] = (*effect).into(),
            _ => (event["tool"], event["input"]) = ("Write".into(), input),
        }
        assert_eq!(sidecar.ask(event)["proceed"], true);
        lab.sh(effect);
        sidecar.ask(json!({"type": format!("{kind}.after"), "action": at.to_string()}));
    }
    sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(sidecar.finish(), 0);
}

/// Leaves out what is different by nature: names, ids and times.
fn without_names(document: &mut Value) {
    match document {
        Value::Object(fields) => {
            let named = [
                "run",
                "turn",
                "client",
                "began",
                "ended",
                "time",
                "id",
                "digest",
                "target",
                "from",
                "to",
                "preRestore",
                // The client's own words.
                "prompt",
                "action",
                "command",
            ];
            fields.retain(|key, value| !named.contains(&key.as_str()) || value.is_object());
            fields.remove("target");
            fields.values_mut().for_each(without_names);
        }
        Value::Array(items) => items.iter_mut().for_each(without_names),
        _ => {}
    }
}

#[test]
fn the_same_turn_is_the_same_by_every_door() {
    let looks: [(&str, Value, &[&str]); 5] = [
        ("turns", json!({"type": "turn.list"}), &["turns"]),
        ("diff", json!({"type": "turn.diff"}), &["diff", "--turn"]),
        ("preview", json!({"type": "undo", "preview": true}), &["undo", "--preview"]),
        ("undo", json!({"type": "undo"}), &["undo", "--yes"]),
        ("redo", json!({"type": "redo"}), &["redo", "--yes"]),
    ];
    let mut all: Vec<(String, Vec<Value>)> = Vec::new();
    for client in ["protocol", "claude-code", "codex", "gemini-cli"] {
        for by_protocol in [false, true] {
            let hooked = Hooked::new(true);
            let lab = &hooked.lab;
            // Nobody watches, so that the shares do not depend on how fast a watcher is.
            lab.set("watcher: none\n");
            match client {
                "protocol" => play_protocol(lab),
                _ => play(&hooked, client),
            }
            assert!(!lab.work.join("out").exists() && lab.read("a") == "new", "{client}");
            let mut asking = by_protocol.then(|| Sidecar::start(lab, &[]));
            let mut answers = Vec::new();
            for (name, request, verb) in &looks {
                let mut answer = match &mut asking {
                    Some(sidecar) => sidecar.ask(request.clone()),
                    None => lab.piton(&[*verb, &["--json"]].concat()).json(),
                };
                for only in ["v", "type", "ok", "rewindTurn", "state"] {
                    answer.as_object_mut().unwrap().remove(only);
                }
                without_names(&mut answer);
                answers.push(answer);
                match *name {
                    "undo" => {
                        assert_eq!(["a", "out/x"].map(|path| lab.read(path)), ["old", "product"], "{client}");
                        assert!(!lab.work.join("notes.txt").exists(), "{client}: {answers:?}");
                    }
                    "redo" => assert_eq!(lab.read("notes.txt"), "gamma\nbeta\n", "{client}"),
                    _ => {}
                }
            }
            all.push((format!("{client}, {}", if by_protocol { "protocol" } else { "command line" }), answers));
        }
    }
    for (door, answers) in &all[1..] {
        for ((name, _, _), (answer, first)) in looks.iter().zip(answers.iter().zip(&all[0].1)) {
            assert_eq!(answer, first, "{name} by {door}, and by {}", all[0].0);
        }
    }
}
