//! Settings that are edited while a sidecar or a daemon runs: obeyed from the next request on, and a mistake disarms nothing.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::*;

fn shell(command: &str) -> Value {
    json!({ "type": "shell.before", "command": command })
}

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

fn is_mistake(value: &Value) -> bool {
    value["type"] == "error" && value["error"]["message"].as_str().is_some_and(|text| text.contains("config.yaml:1"))
}

#[test]
fn a_running_sidecar_obeys_an_edit() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let file = lab.user_file();
    let mut sidecar = Sidecar::start(&lab, &["--set", "deadline_ms=20000"]);
    let turn = |sidecar: &mut Sidecar, name: &str| {
        lab.write("a.txt", name);
        assert_eq!(sidecar.ask(json!({ "type": "turn.start", "turn": name }))["ok"], true);
        status(&sidecar.ask(shell("rm a.txt"))).to_owned()
    };
    assert_eq!(turn(&mut sidecar, "1"), "taken");
    std::fs::write(&file, "guard: off\ndeadline_ms: 1\n").unwrap();
    assert_eq!(turn(&mut sidecar, "2"), "off");
    assert_eq!(sidecar.notice(|notice| notice["notice"] == "config.reloaded")["warnings"], json!([]));
    // The command line is stronger still.
    let hello = sidecar.ask(json!({ "type": "hello" }));
    assert_eq!(hello["limits"]["deadline_ms"], 20000, "{hello}");
    std::fs::write(&file, "guard: action\n").unwrap();
    assert_eq!(turn(&mut sidecar, "3"), "taken");
    lab.write("a.txt", "3, again");
    assert_eq!(status(&sidecar.ask(shell("rm other"))), "taken", "each action of a turn");
    // A mistake: told, once, and what was in force stays.
    std::fs::write(&file, "guard: of\n").unwrap();
    for name in ["4", "5"] {
        assert_eq!(turn(&mut sidecar, name), "taken");
        lab.write("a.txt", "again");
        assert_eq!(status(&sidecar.ask(shell("rm other"))), "taken", "{name}: still each action");
    }
    let told = sidecar.notice(is_mistake);
    assert!(told["error"]["message"].as_str().unwrap().contains("what was in force stays: `action`"), "{told}");
    let faults = sidecar.ask(json!({ "type": "status" }));
    assert!(faults["faults"].to_string().contains("config.yaml:1"), "{faults}");
    assert!(faults["mishaps"].to_string().contains("settings: "), "{faults}");
    assert!(!sidecar.notices.iter().any(is_mistake), "{:?}", sidecar.notices);
    // No file is the defaults.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(turn(&mut sidecar, "6"), "taken");
    lab.write("a.txt", "6, again");
    assert_eq!(status(&sidecar.ask(shell("rm other"))), "held", "one a turn");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_workspaces_own_file_and_its_trust_are_followed() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let warnings = |sidecar: &mut Sidecar| sidecar.ask(json!({ "type": "status" }))["warnings"].to_string();
    assert_eq!(warnings(&mut sidecar), "[]");
    lab.write(".piton.yaml", "exclude: [a.txt]\n");
    assert!(warnings(&mut sidecar).contains("config trust"));
    let files = |sidecar: &mut Sidecar| {
        sidecar.ask(json!({ "type": "checkpoint.create", "label": "x" }))["checkpoint"]["files"].clone()
    };
    assert_eq!(files(&mut sidecar), 2);
    assert_eq!(lab.piton(&["config", "trust"]).code, 0);
    assert_eq!(warnings(&mut sidecar), "[]");
    assert_eq!(files(&mut sidecar), 1, "what was trusted holds for the captures as well");
    lab.write(".piton.yaml", "exclude: [b.txt]\n");
    assert!(warnings(&mut sidecar).contains("config trust"), "another content");
    assert_eq!(files(&mut sidecar), 2);
    assert_eq!(sidecar.finish(), 0);
}

/// Same length, same inode, as fast as it goes: file systems' clocks do not tell these edits apart.
#[test]
fn quick_edits_are_all_obeyed() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let file = lab.user_file();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let mut open = std::fs::File::create(&file).unwrap();
    for round in 0..300 {
        let deadline = 1000 + round;
        std::os::unix::fs::FileExt::write_all_at(&open, format!("deadline_ms: {deadline}\n").as_bytes(), 0).unwrap();
        open.flush().unwrap();
        let hello = sidecar.ask(json!({ "type": "hello" }));
        // The first one opens the workspace.
        assert_eq!(hello["limits"]["deadline_ms"], deadline, "round {round}: {hello}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_running_daemon_obeys_an_edit() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let hook = |turn: &str| {
        lab.write("a.txt", turn);
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": turn, "cwd": lab.work,
            "tool_name": "Bash", "tool_input": { "command": "rm a.txt" }, "tool_use_id": "u" });
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["hook", "claude-code", "PreToolUse"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        // Whether a checkpoint holds the turn, as it was acknowledged.
        let kept = std::fs::read(lab.home.join("piton/sessions/claude-code.s")).unwrap();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        assert!(kept.to_string().contains(&format!("\"{turn}\"")), "{kept}");
        !kept["turns"]["slots"].as_object().unwrap().is_empty()
    };
    assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
    let pid = || lab.piton(&["daemon", "status", "--json"]).json()["daemon"]["pid"].clone();
    let first = pid();
    assert!(hook("turn-1"));
    lab.set("guard: off\n");
    assert!(!hook("turn-2") && !hook("turn-3"), "nothing is captured");
    lab.set("guard: turn # again\n");
    assert!(hook("turn-4"));
    lab.set("guard: [turn\n");
    assert!(hook("turn-5") && hook("turn-6"), "a mistake disarms nothing");
    lab.set("");
    let mishaps = lab.piton(&["status", "--json"]).json()["mishaps"].to_string();
    assert_eq!(mishaps.matches("what was in force stays").count(), 1, "{mishaps}");
    assert_eq!(pid(), first, "it is the same daemon");
    assert_eq!(lab.piton(&["daemon", "stop"]).code, 0);
}

#[test]
fn the_command_line_sets_the_longest_line() {
    let lab = Lab::new();
    let mut sidecar = Sidecar::start(&lab, &["--set", "limits.line_bytes=2000"]);
    let line = |length: usize| json!({ "type": "ping", "padding": "x".repeat(length) });
    assert_eq!(sidecar.ask(line(1800))["ok"], true);
    sidecar.send(line(2500));
    let told = sidecar.notice(|value| value["type"] == "error");
    assert_eq!(told["error"]["code"], "line-too-long", "{told}");
    assert_eq!(sidecar.ask(line(10))["ok"], true);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_mistake_is_told_once_by_status() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({ "type": "hello", "protocol": 1, "client": "test" }));
    std::fs::write(lab.user_file(), "guard: of\n").unwrap();
    sidecar.ask(json!({ "type": "turn.start", "turn": "1" }));
    sidecar.ask(shell("rm a.txt"));
    assert_eq!(sidecar.finish(), 0);
    let text = lab.piton(&["status"]).stdout;
    assert_eq!(text.matches("`guard` wants").count(), 1, "{text}");
    // Once it is mended, it is something that happened.
    std::fs::write(lab.user_file(), "guard: turn\n").unwrap();
    let text = lab.piton(&["status"]).stdout;
    assert_eq!(text.matches("`guard` wants").count(), 1, "{text}");
}

#[test]
fn a_bad_section_of_the_rules_costs_no_other() {
    let lab = Lab::new();
    let good = "  rules:\n    - {id: own, program: frobnicate, class: cloud, severity: high}\n";
    for bad in
        ["  disable: [git-push]\n", "  quiet: {a: 1}\n", "  nonsense: {a: 1}\n", "  wrappers: [{program: 1, b: 2}]\n"]
    {
        lab.set(&format!("rules:\n{bad}{good}"));
        let judged = lab.piton(&["classify", "--json", "frobnicate x"]);
        assert!(judged.stdout.contains("\"own\""), "{bad}: {judged:?}");
        let status = lab.piton(&["status"]).stdout;
        let is_told = ["config.yaml:", "`rules`", "passed over"].iter().all(|part| status.contains(part));
        assert!(is_told, "{bad}: {status}");
    }
}
