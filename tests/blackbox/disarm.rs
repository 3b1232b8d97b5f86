//! A net that would switch itself off: by a mistake in the settings, by what a client's JSON lacks, by descriptors that it keeps.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Lab, Output, Sidecar, WAIT, lacking};

fn shell(command: &str) -> Value {
    json!({ "type": "shell.before", "command": command })
}

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

/// A hook of Claude Code before a command.
fn payload(lab: &Lab, turn: &str, command: &str) -> String {
    json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": turn, "cwd": lab.work, "tool_name": "Bash",
        "tool_input": { "command": command }, "tool_use_id": "u" })
    .to_string()
}

fn hook(lab: &Lab, payload: &[u8], env: &[(&str, &str)]) -> Value {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["hook", "claude-code", "PreToolUse", "--no-daemon"]).envs(env.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    if text.trim().is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
}

/// The `auto` checkpoints there are.
fn autos(lab: &Lab) -> usize {
    let list = lab.piton(&["list", "--json", "--kind", "auto"]);
    if list.code == 3 { 0 } else { list.json()["checkpoints"].as_array().unwrap().len() }
}

fn settles_at(lab: &Lab, count: usize) {
    let began = Instant::now();
    while autos(lab) != count {
        assert!(began.elapsed() < WAIT, "{} checkpoints, not {count}: {}", autos(lab), lab.piton(&["status"]).stdout);
    }
}

// ---- settings

/// Asserts that a broken file stops nothing that guards and brings back.
fn nothing_is_disarmed(lab: &Lab, shown: &str, says: &str, env: &[(&str, &str)]) {
    // A machine that stands still makes nothing late.
    let env = &[env, &[("PITON_DEADLINE_MS", "60000")]].concat();
    let mut sidecar = Sidecar::start_with(lab, &[], env);
    let hello = sidecar.ask(json!({ "type": "hello" }));
    assert_eq!(hello["guard"], "turn", "{shown}: {hello}");
    assert!(hello["faults"].to_string().contains(says), "{shown}: {hello}");
    lab.write("a.txt", format!("sidecar {shown}"));
    let reply = sidecar.ask(shell("rm a.txt"));
    assert_eq!((&reply["proceed"], status(&reply)), (&json!(true), "taken"), "{shown}: {reply}");
    let errors = |sidecar: &Sidecar| {
        sidecar.notices.iter().filter(|line| line["type"] == "error" && line.to_string().contains(says)).count()
    };
    sidecar.ask(json!({ "type": "status" }));
    assert_eq!(errors(&sidecar), 1, "{shown}: told once: {:?}", sidecar.notices);
    assert_eq!(sidecar.finish(), 0);
    let before = autos(lab);
    lab.write("a.txt", format!("hook {shown}"));
    hook(lab, payload(lab, shown, "rm a.txt").as_bytes(), env);
    settles_at(lab, before + 1);
    let run = |args: &[&str]| -> Output {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let output = command.args(args).envs(env.iter().copied()).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    };
    for args in [
        &["restore", "1", "--yes"][..],
        &["undo", "--yes"],
        &["redo", "--yes"],
        &["undo", "--yes"],
        &["list"],
        &["show", "1"],
        &["diff", "1"],
        &["find", "a.txt"],
        &["status"],
        &[],
    ] {
        let output = run(args);
        assert_eq!(output.code, 0, "{shown} {args:?}: {output:?}");
        assert!(output.stderr.contains(says), "{shown} {args:?}: {output:?}");
    }
    assert!(run(&["status"]).stdout.contains(says) && run(&[]).stdout.contains(says), "{shown}");
    let doctor = run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains(says), "{shown}: {doctor:?}");
}

/// A workspace with a checkpoint.
fn taken() -> Lab {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.take("first");
    lab
}

#[test]
fn a_mistake_in_the_users_settings_disarms_nothing() {
    let place = |at: &str| format!("config.yaml:{at}");
    for (text, says) in [
        (&b"gaurd: turn\n"[..], place("1:8")),
        (b"deadline_ms: 60000\nlimits: {file_mb: big}\n", place("2:19")),
        (b"guard: offf\n", place("1:8")),
        (b"rules:\n  - {id: x, program: y, klass: z}\n", place("2:5")),
        (b"policy: {cloud: dney}\n", place("1:17")),
        (b"retention: {auto_per_run: lots}\nexclude: 5\n", place("2:10")),
    ] {
        let lab = taken();
        std::fs::write(lab.user_file(), text).unwrap();
        nothing_is_disarmed(&lab, &String::from_utf8_lossy(text), &says, &[]);
    }
    nothing_is_disarmed(&taken(), "environment", "$PITON_GUARD", &[("PITON_GUARD", "offf")]);
    nothing_is_disarmed(&taken(), "misspelt", "PITON_GAURD", &[("PITON_GAURD", "off")]);
}

#[test]
fn a_settings_file_that_cannot_be_read_disarms_nothing() {
    let place = |at: &str| format!("config.yaml:{at}");
    for (text, says) in [
        (&b"guard: [\n"[..], place("1:8")),
        (b"guard: turn\nguard: off\n", place("2:1")),
        (b"- guard: off\n", place("1:1")),
        (b"guard: \"\xff\"\n", "is not UTF-8".to_owned()),
    ] {
        let lab = taken();
        std::fs::write(lab.user_file(), text).unwrap();
        nothing_is_disarmed(&lab, &String::from_utf8_lossy(text), &says, &[]);
    }
    for make in ["mkdir F", "mkfifo F", "ln -s F F", "head -c 3000000 /dev/zero > F", "ln -s /dev/zero F"] {
        let lab = taken();
        let file = lab.user_file();
        lab.sh(&format!("rm -rf {0}; {1}", file.display(), make.replace('F', file.to_str().unwrap())));
        nothing_is_disarmed(&lab, make, "config.yaml", &[]);
    }
}

#[test]
fn what_is_sound_beside_a_mistake_holds() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.set(
        "guard: action\nlimits: {file_mb: big}\npolicy:\n  cloud: ask\n  database: {severity: hihg, answer: deny}\n",
    );
    let mut sidecar = Sidecar::start(&lab, &[]);
    let hello = sidecar.ask(json!({ "type": "hello" }));
    assert_eq!(hello["guard"], "action", "{hello}");
    let faults = hello["faults"].to_string();
    assert!(faults.contains("config.yaml:3:19") && faults.contains("`10` (default)"), "{faults}");
    assert!(faults.contains("config.yaml:6:24"), "{faults}");
    // The model of a client is told, once, by whatever process comes first.
    let notes = |reply: &Value| reply["notices"].to_string().matches("mistake in piton's settings").count();
    for (command, told) in [("kubectl delete pod x", 2), ("psql -c 'DROP TABLE t'", 0)] {
        let reply = sidecar.ask(shell(command));
        assert_eq!((&reply["proceed"], notes(&reply)), (&json!(false), told), "{command}: {reply}");
    }
    assert_eq!(sidecar.finish(), 0);
    let check = lab.piton(&["config", "check"]);
    assert_eq!(check.code, 2, "{check:?}");
    // On the command line it is a mistake in the command.
    assert_eq!(lab.piton(&["--set", "guard=offf", "list"]).code, 2);
}

#[test]
fn rules_are_read_as_they_are_documented() {
    let page = include_str!("../../docs/CLASSIFY.md");
    let example = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(example.starts_with("rules:\n  - id: acme-deploy"), "{example}");
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.set(example);
    let check = lab.piton(&["config", "check"]);
    assert_eq!((check.code, check.stderr.as_str()), (0, ""), "{check:?}");
    let verdict = |line: &str| lab.piton(&["classify", "--json", line]).json();
    let rule = |line: &str| verdict(line)["effects"][0]["rule"].clone();
    assert_eq!(rule("acme app delete prod mutation x: -f"), "acme-deploy");
    // A map of sections, and a rule that cannot be: it is dropped alone, and said.
    let own = "rules:\n  disable: git-clean\n  rules:\n    - {id: bad, program: x, class: nonsense}\n    - {id: own, program: frob, class: cloud}\n";
    lab.set(own);
    assert_eq!((rule("frob now"), verdict("git clean -fd")["effects"].clone()), (json!("own"), json!([])));
    let check = lab.piton(&["config", "check"]);
    assert!(check.code == 2 && check.stderr.contains("config.yaml:5:7"), "{check:?}");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let reply = sidecar.ask(shell("frob now; rm a.txt"));
    assert_eq!((status(&reply), &reply["warnings"][0]["code"]), ("taken", &json!("external-cloud")), "{reply}");
    // In a process that runs the previous rule stays in force.
    lab.set(&own.replace("class: cloud", "class: clowd"));
    let reply = sidecar.ask(shell("frob now"));
    assert_eq!(reply["warnings"][0]["code"], "external-cloud", "{reply}");
    assert_eq!(sidecar.finish(), 0);
}

// ---- JSON that clients send

#[test]
fn text_that_was_cut_is_answered_and_guarded() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let table: Vec<(Vec<u8>, bool)> = vec![
        (br#""type":"shell.before","command":"echo \ud83d"}"#.to_vec(), true),
        (br#""type":"tool.before","tool":"web_search","input":{"query":"\ude00 x"}}"#.to_vec(), true),
        (b"\"type\":\"shell.before\",\"command\":\"echo \xff\"}".to_vec(), true),
        (format!(r#""type":"tool.before","tool":"web_search","input":{{"x":{deep}}}}}"#).into_bytes(), true),
        (br#""type":"shell.before","command":"rm a.txt","deadline_ms":NaN}"#.to_vec(), false),
        (br#""type":"shell.before","command":"ls","command":"rm a.txt"}"#.to_vec(), false),
        (b"\"type\":\"shell.before\",\"command\":\"rm\ta.txt\"}\0".to_vec(), false),
    ];
    for (at, (rest, is_doubtful)) in table.iter().enumerate() {
        lab.write("a.txt", format!("{at}"));
        let shown = String::from_utf8_lossy(&rest[..rest.len().min(80)]).into_owned();
        sidecar.send_raw(&[format!("{{\"id\":{at},").as_bytes(), rest, b"\n"].concat());
        let reply = sidecar.reply(at);
        assert_eq!((&reply["ok"], status(&reply)), (&json!(true), "taken"), "{shown}: {reply}");
        assert_eq!(reply["confidence"] == "opaque", *is_doubtful, "{shown}: {reply}");
        assert!(["checkpoint", "both"].contains(&reply["needs"].as_str().unwrap()), "{shown}: {reply}");
    }
    // A restoring request has to be exact; a line that is no JSON is answered with its id.
    for (line, code) in [
        (&br#"{"id":"x","type":"restore","sha":"1","paths":["a\ud83d"]}"#[..], "bad-json"),
        (br#"{"id":"x","type":"restore","sha":"1","#, "bad-json"),
        (b"{\"id\":\"x\",\"type\":\"ping\",\"x\":\"\xff\"}", "bad-utf8"),
    ] {
        sidecar.send_raw(&[line, b"\n"].concat());
        assert_eq!(sidecar.reply("x")["error"]["code"], code, "{}", String::from_utf8_lossy(line));
    }
    sidecar.send_raw(b"\xef\xbb\xbf{\"id\":\"bom\",\"type\":\"ping\",\"x\":\"\\ud83d\"}\n");
    assert_eq!(sidecar.reply("bom")["ok"], true);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn an_id_of_any_size_comes_back_as_it_was() {
    let lab = Lab::new();
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.arg("sidecar").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let ids = ["1e400", "123456789012345678901234567890", "-0.10", "18446744073709551615"];
    let mut input = child.stdin.take().unwrap();
    for id in ids {
        writeln!(input, "{{\"id\": {id}, \"type\": \"ping\"}}").unwrap();
    }
    drop(input);
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    for id in ids {
        assert!(text.contains(&format!("\"id\":{id},")), "{id}: {text}");
    }
}

#[test]
fn hooks_and_proxies_read_what_clients_send() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let cut = payload(&lab, "1", "echo CUT").replace("CUT", "\\ud83d");
    hook(&lab, cut.as_bytes(), &[]);
    settles_at(&lab, 1);
    // A payload that breaks off is an action of which little is known.
    lab.write("a.txt", "two\n");
    let torn = payload(&lab, "2", "rm a.txt");
    let reply = hook(&lab, &torn.as_bytes()[..torn.len() - 40], &[]);
    assert!(reply.to_string().contains("not JSON"), "{reply}");
    settles_at(&lab, 2);
    assert!(lab.piton(&["status"]).stdout.contains("not JSON"));
    // A stream, and a call through the MCP proxy, whose bytes pass as they are.
    lab.write("a.txt", "three\n");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["mcp-proxy", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"a.txt","text":"\ud83d"}}}"#;
    child.stdin.take().unwrap().write_all(&[call, &b"\n"[..]].concat()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, [call, &b"\n"[..]].concat());
    settles_at(&lab, 3);
    let mut sidecar = Sidecar::start(&lab, &["--from", "claude-code"]);
    let tool = r#"{"type":"assistant","session_id":"x","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"echo \ud83d"}}]}}"#;
    sidecar.send_raw(format!("{tool}\n").as_bytes());
    let reply = sidecar.answer(|reply| reply["type"] == "shell.before");
    assert_eq!(reply["confidence"], "opaque", "{reply}");
    assert_eq!(sidecar.finish(), 0);
}

// ---- descriptors

/// Ends the lab's daemon.
struct Daemon<'l>(&'l Lab);

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.0.piton(&["daemon", "stop"]);
    }
}

#[test]
fn what_goes_on_behind_keeps_nothing_of_whoever_started_it() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let _daemon = Daemon(&lab);
    std::fs::write(lab.root().join("payload"), payload(&lab, "t", "rm a.txt")).unwrap();
    let piton = env!("CARGO_BIN_EXE_piton");
    for option in ["", "--no-daemon"] {
        let line = format!("'{piton}' hook claude-code PreToolUse {option} < ../payload");
        let script = format!("x=$( {{ {line}; }} 3>&1 4>&1 9>&1 ) && printf 'came back: %s' \"$x\"");
        let output = lab.command("timeout", &lab.work).args(["30", "bash", "-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.starts_with("came back"), "{option}: {output:?}");
        // A lock that the shell held is free once the shell is gone.
        let lock = format!("exec 9> ../lock-file && flock -n 9 && {line}");
        let output = lab.command("timeout", &lab.work).args(["30", "bash", "-c", &lock]).output().unwrap();
        if output.status.code() == Some(127) {
            lacking("flock");
            return;
        }
        assert!(output.status.success(), "{option}: {output:?}");
        let free = lab.command("flock", &lab.work).args(["-n", "../lock-file", "true"]).status().unwrap();
        assert!(free.success(), "{option}: the lock is still held");
    }
    assert_eq!(lab.piton(&["daemon", "status"]).code, 0, "it serves all the same");
}

/// A hook with a pipe that stays open.
fn open_hook(lab: &Lab, client: &str, event: &str, payload: &[u8]) -> (Child, ChildStdin) {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["hook", client, event]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(payload).unwrap();
    (child, input)
}

#[test]
fn a_client_that_never_closes_the_pipe_is_answered() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let _daemon = Daemon(&lab);
    let (whole, torn) = (payload(&lab, "1", "rm a.txt"), payload(&lab, "2", "rm a.txt"));
    // All that there is to say was said: it is not waited for more. Of what breaks off, until the deadline.
    for (turn, bytes) in [(1, whole.as_bytes()), (2, &torn.as_bytes()[..torn.len() - 30])] {
        lab.write("a.txt", format!("{turn}"));
        let (mut child, input) = open_hook(&lab, "claude-code", "PreToolUse", bytes);
        let began = Instant::now();
        let ended = loop {
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            assert!(began.elapsed() < WAIT, "{turn}: it waits for its client");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(ended.success() && input.as_raw_fd() > 2, "{turn}");
        settles_at(&lab, turn);
    }
}

// ---- off and on

#[test]
fn off_says_until_when_and_on_says_what_is_so() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.take("first");
    let off = lab.piton(&["off", "--for", "1h"]);
    let when = off.stdout.split("is off until ").nth(1).unwrap_or_else(|| panic!("{off:?}"));
    let when = when.split(',').next().unwrap().to_owned();
    assert!(off.code == 0 && when.starts_with("20") && when.len() == "2026-01-01 10:00".len(), "{off:?}");
    assert!(lab.piton(&["status"]).stdout.contains(&when));
    assert!(lab.piton(&[]).stdout.contains(&when));
    assert!(lab.piton(&["status", "--json"]).json()["guardOff"].as_str().unwrap().contains(&when));
    let mut sidecar = Sidecar::start(&lab, &[]);
    let reply = sidecar.ask(shell("rm a.txt"));
    assert!(reply["checkpoint"]["reason"].as_str().unwrap().contains(&when), "{reply}");
    assert!(sidecar.ask(json!({ "type": "status" }))["guardOff"].as_str().unwrap().contains(&when));
    let on = lab.piton(&["on"]);
    assert!(on.code == 0 && on.stdout.ends_with("is on.\n"), "{on:?}");
    assert_eq!(lab.piton(&["status", "--json"]).json()["guardOff"], Value::Null);
    // No switch changes the settings.
    lab.set("guard: off\n");
    let on = lab.piton(&["on"]);
    assert_eq!(on.code, 4, "{on:?}");
    assert!(on.stdout.contains("nothing is guarded") && on.stdout.contains("config.yaml:2"), "{on:?}");
    let reply = sidecar.ask(shell("rm a.txt"));
    let reason = reply["checkpoint"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("guard: off") && reason.contains("config.yaml:2") && !reason.contains("piton on"),
        "{reply}"
    );
    assert!(lab.piton(&[]).stdout.contains("is not guarded"));
    assert_eq!(sidecar.finish(), 0);
}
