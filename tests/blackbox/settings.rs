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
    lab.set_only("guard: off\ndeadline_ms: 1\n");
    assert_eq!(turn(&mut sidecar, "2"), "off");
    assert_eq!(sidecar.notice(|notice| notice["notice"] == "config.reloaded")["warnings"], json!([]));
    // The command line is stronger still.
    let hello = sidecar.ask(json!({ "type": "hello" }));
    assert_eq!(hello["limits"]["deadline_ms"], 20000, "{hello}");
    lab.set_only("guard: action\n");
    assert_eq!(turn(&mut sidecar, "3"), "taken");
    lab.write("a.txt", "3, again");
    assert_eq!(status(&sidecar.ask(shell("rm other"))), "taken", "each action of a turn");
    // A mistake: told, once, and the previous settings stay in force.
    std::fs::write(&file, "guard: of\n").unwrap();
    for name in ["4", "5"] {
        assert_eq!(turn(&mut sidecar, name), "taken");
        lab.write("a.txt", "again");
        assert_eq!(status(&sidecar.ask(shell("rm other"))), "taken", "{name}: still each action");
    }
    let told = sidecar.notice(is_mistake);
    assert!(
        told["error"]["message"].as_str().unwrap().contains("the previous settings stay in force: `action`"),
        "{told}"
    );
    let faults = sidecar.ask(json!({ "type": "status" }));
    assert!(faults["faults"].to_string().contains("config.yaml:1"), "{faults}");
    assert!(faults["mishaps"].to_string().contains("settings: "), "{faults}");
    assert!(!sidecar.notices.iter().any(is_mistake), "{:?}", sidecar.notices);
    // No file is the defaults.
    std::fs::remove_file(&file).unwrap();
    lab.trust();
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
        let deadline = 100_000 + round;
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
    assert!(!hook("turn-2") && !hook("turn-3"), "nothing is saved");
    lab.set("guard: turn # again\n");
    assert!(hook("turn-4"));
    lab.set("guard: [turn\n");
    assert!(hook("turn-5") && hook("turn-6"), "a mistake disarms nothing");
    lab.set("");
    let mishaps = lab.piton(&["status", "--json"]).json()["mishaps"].to_string();
    assert_eq!(mishaps.matches("the previous settings stay in force").count(), 1, "{mishaps}");
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
        let is_told = ["config.yaml:", "`rules`", "it is ignored"].iter().all(|part| status.contains(part));
        assert!(is_told, "{bad}: {status}");
    }
}

/// Runs piton as an agent's command does.
fn agents(lab: &Lab, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.args(args).env("PITON_SESSION", "1").envs(environment.iter().copied()).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the value of a key, as an agent's command reads it.
fn value(lab: &Lab, key: &str, environment: &[(&str, &str)]) -> Value {
    let shown = agents(lab, &["config", "show", "--json"], environment).json();
    shown["settings"].as_array().unwrap().iter().find(|item| item["key"] == key).unwrap()["value"].clone()
}

#[test]
fn an_agents_edit_that_keeps_less_changes_nothing_until_a_person_trusts_it() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &["--set", "deadline_ms=60000"]);
    let turn = |sidecar: &mut Sidecar, name: &str| {
        lab.write("a.txt", name);
        sidecar.ask(json!({ "type": "turn.start", "turn": name }));
        status(&sidecar.ask(shell("rm a.txt"))).to_owned()
    };
    assert_eq!(turn(&mut sidecar, "0"), "taken");
    let autos = || lab.piton(&["list", "--json", "--all"]).stdout.matches("\"auto\"").count();
    let names = |text: &str| {
        ["guard", "retention.auto_per_run"]
            .iter()
            .all(|key| text.contains(&format!("`{key}` would guard or keep less")))
    };
    let before = autos();
    std::fs::write(lab.user_file(), "deadline_ms: 60000\nguard: off\nretention: {auto_per_run: 1, days: 30}\n")
        .unwrap();
    for name in ["1", "2", "3"] {
        assert_eq!(turn(&mut sidecar, name), "taken");
    }
    assert_eq!(autos(), before + 3, "none is dropped");
    assert_eq!(value(&lab, "retention.days", &[]), 30, "a change that keeps more counts at once");
    // Said once in the stream, and by every verb.
    sidecar.ask(json!({ "type": "ping" }));
    let told = |line: &Value| line["type"] == "error" && line.to_string().contains("would guard or keep less");
    assert_eq!(sidecar.notices.iter().filter(|line| told(line)).count(), 2, "one a key: {:?}", sidecar.notices);
    for verb in [&["list"][..], &["status"], &["config", "check"], &["prune", "--dry-run"], &[]] {
        let said = lab.piton(verb);
        let text = said.stdout + &said.stderr;
        assert!(names(&text) && text.contains("piton config trust"), "{verb:?}: {text}");
    }
    let doctor = lab.piton(&["doctor"]);
    assert!(names(&doctor.stdout), "{doctor:?}");
    assert_eq!(lab.piton(&["prune", "--yes"]).code & 1, 0);
    assert_eq!(autos(), before + 3, "a prune keeps them too");
    let refused = agents(&lab, &["config", "trust"], &[]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert_eq!(turn(&mut sidecar, "4"), "taken");
    let trusted = lab.piton(&["config", "trust"]);
    assert!(
        trusted.code == 0 && trusted.stdout.contains("In force now: guard, retention.auto_per_run."),
        "{trusted:?}"
    );
    assert_eq!(turn(&mut sidecar, "5"), "off");
    assert_eq!(lab.piton(&["list"]).stderr, "");
    // A line that is taken out keeps less too.
    lab.set("guard: action\n");
    std::fs::remove_file(lab.user_file()).unwrap();
    assert_eq!(value(&lab, "guard", &[]), "action");
    assert!(lab.piton(&["list"]).stderr.contains("`guard` is no longer set"), "{:?}", lab.piton(&["list"]));
    assert_eq!(lab.piton(&["config", "trust"]).code, 0);
    assert_eq!(value(&lab, "guard", &[]), "turn");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_file_at_first_sight_is_in_force_unless_an_agent_may_have_written_it() {
    let text = "guard: off\nretention: {days: 3}\n";
    let own = Lab::new();
    std::fs::write(own.user_file(), text).unwrap();
    // A verb that only looks records nothing in an empty home.
    own.write("a.txt", "one\n");
    own.take("first");
    let shown = own.piton(&["config", "show"]);
    assert!(shown.stdout.contains("config.yaml:1") && shown.stderr.is_empty(), "{shown:?}");
    assert_eq!(value(&own, "guard", &[]), "off", "it was in force before the agent came");
    // The client is younger than the file here.
    let before = Lab::new();
    std::fs::write(before.user_file(), text).unwrap();
    // The start of a process is known to 10 ms.
    let written = std::fs::metadata(before.user_file()).unwrap().modified().unwrap();
    while written.elapsed().unwrap().as_millis() < 30 {
        std::thread::yield_now();
    }
    let client = |lab: &Lab, script: &str| {
        let mut command = lab.command("bash", &lab.work);
        let script = format!("{} {script}; :", env!("CARGO_BIN_EXE_piton"));
        let output = command.args(["-c", "exec -a claude bash -c \"$1\"", "x", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let shown = client(&before, "config show");
    assert!(shown.contains("config.yaml:1") && !shown.contains("piton config trust"), "{shown}");
    // And older here.
    let after = Lab::new();
    let file = after.user_file();
    let shown = client(
        &after,
        &format!("--version; printf 'guard: off\\n' > {}; {} config show", file.display(), env!("CARGO_BIN_EXE_piton")),
    );
    assert!(shown.contains("`guard` would guard or keep less"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("guard ") && line.contains(" turn ")), "{shown}");
    assert_eq!(after.piton(&["config", "trust"]).code, 0);
    assert_eq!(value(&after, "guard", &[]), "off");
}

#[test]
fn a_process_with_another_configuration_directory_replaces_no_record() {
    let lab = Lab::new();
    lab.write("a", "a\n");
    lab.take("first");
    lab.set("retention: {auto_per_run: 2}\n");
    assert_eq!(lab.piton(&["config", "trust"]).code, 0);
    assert_eq!(value(&lab, "retention.auto_per_run", &[]), 2);
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    // Nothing of the person's is set there, and a value that keeps less than theirs does not count.
    let there = [("XDG_CONFIG_HOME", other.to_str().unwrap())];
    assert_ne!(value(&lab, "retention.auto_per_run", &there), 2);
    std::fs::create_dir(other.join("piton")).unwrap();
    std::fs::write(other.join("piton/config.yaml"), "retention: {auto_per_run: 1}\n").unwrap();
    assert_eq!(value(&lab, "retention.auto_per_run", &there), 2);
    // A file that is gone for a moment.
    let file = lab.user_file();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    value(&lab, "retention.auto_per_run", &[]);
    std::fs::write(&file, text).unwrap();
    assert_eq!(value(&lab, "retention.auto_per_run", &[]), 2);
}

#[test]
fn a_variable_that_keeps_less_counts_for_a_person_only() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.take("first");
    let less = [("PITON_GUARD", "off"), ("PITON_RETENTION_AUTO_PER_RUN", "1"), ("PITON_RETENTION_DAYS", "30")];
    assert_eq!(value(&lab, "guard", &less), "turn");
    assert_eq!(value(&lab, "retention.auto_per_run", &less), 20);
    assert_eq!(value(&lab, "retention.days", &less), 30);
    let said = agents(&lab, &["list"], &less);
    assert!(said.code == 0 && said.stderr.contains("$PITON_GUARD: `guard` would guard or keep less"), "{said:?}");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let person = command.args(["config", "show"]).envs(less).output().unwrap();
    assert!(String::from_utf8_lossy(&person.stdout).contains("$PITON_GUARD"), "{person:?}");
    // A hook is a process of the session, and so is the engine that it starts.
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "cwd": lab.work,
        "tool_name": "Bash", "tool_input": { "command": "rm a.txt" }, "tool_use_id": "u" });
    lab.write("a.txt", "two\n");
    for way in [&["--no-daemon"][..], &[]] {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["hook", "claude-code", "PreToolUse"]).args(way).env("CLAUDECODE", "1").envs(less);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        let listed = lab.piton(&["list", "--json"]).stdout;
        assert!(listed.contains("rm a.txt"), "{way:?}: {listed}");
        lab.write("a.txt", "three\n");
    }
    lab.piton(&["daemon", "stop"]);
}
