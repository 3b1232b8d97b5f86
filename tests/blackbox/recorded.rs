//! The record of what happened: actions with their commands and losses, and turns by the words of their prompts.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{Lab, Sidecar};

/// A secret by its form, which no file of piton's may contain.
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// Claude Code, whose hooks come one after the other.
struct Claude<'l> {
    lab: &'l Lab,
    is_alone: bool,
    calls: u64,
}

impl Claude<'_> {
    fn hook(&self, event: &str, fields: Value) {
        let mut command = self.lab.command(env!("CARGO_BIN_EXE_piton"), &self.lab.work);
        command.args(["hook", "claude-code", event]);
        if self.is_alone {
            command.arg("--no-daemon");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut payload =
            json!({ "hook_event_name": event, "session_id": "s", "prompt_id": "p-1", "cwd": self.lab.work });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
    }

    /// Runs a command, which does what the shell of the test is told.
    fn bash(&mut self, command: &str, work: &str) {
        self.calls += 1;
        let call = json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": format!("u{}", self.calls) });
        self.hook("PreToolUse", call.clone());
        self.lab.sh(work);
        self.hook("PostToolUse", call);
    }
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.sh("mkdir src; printf one > src/a; printf two > src/b; printf kept > kept");
    lab
}

/// The actions of an item: command and loss.
fn actions(item: &Value) -> Vec<(String, Option<u64>)> {
    let items = item["actions"].as_array().unwrap();
    items.iter().map(|action| (action["command"].as_str().unwrap().to_owned(), action["lost"].as_u64())).collect()
}

fn some(actions: &[(&str, u64)]) -> Vec<(String, Option<u64>)> {
    actions.iter().map(|(command, lost)| ((*command).to_owned(), Some(*lost))).collect()
}

/// The records of actions, as they are in piton's home.
fn record(lab: &Lab) -> String {
    let workspaces = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap();
    workspaces.filter_map(|dir| std::fs::read_to_string(dir.unwrap().path().join("actions")).ok()).collect()
}

/// True if a file of piton's home has these bytes.
fn is_kept(lab: &Lab, text: &str) -> bool {
    let home = lab.home.join("piton");
    lab.command("grep", &home).args(["-rqaF", text, "."]).status().unwrap().success()
}

/// Checks that the turn of the test below is named by the words of its prompt, wherever a person meets it.
fn check_turn(lab: &Lab, n: &Value) {
    let turns = lab.piton(&["turns", "--json"]).json();
    let turn = &turns["turns"][0];
    assert_eq!(turn["prompt"], "Clean up the tests, TOKEN=*** please", "{turns}");
    assert_eq!(actions(turn), some(&[("shell: npm test", 0), ("shell: rm -rf src # TOKEN=***", 2)]), "{turns}");
    assert!(lab.piton(&["turns"]).stdout.contains("\"Clean up the tests, TOKEN=*** please\""));
    let shown = lab.piton(&["show", &n.to_string()]).stdout;
    assert!(shown.contains("\"Clean up the tests") && shown.contains("then     shell: rm -rf src"), "{shown}");
    let preview = lab.piton(&["undo", "--preview"]);
    assert!(preview.stdout.contains("turn \"Clean up the tests"), "{preview:?}");
}

#[test]
fn an_action_is_recorded_though_an_earlier_checkpoint_covers_it() {
    for is_alone in [true, false] {
        let lab = lab();
        let mut claude = Claude { lab: &lab, is_alone, calls: 0 };
        claude.hook("UserPromptSubmit", json!({ "prompt": format!("Clean up\n the tests, TOKEN={TOKEN} please") }));
        claude.bash("npm test", "true");
        claude.bash(&format!("rm -rf src # TOKEN={TOKEN}"), "rm -rf src");
        claude.hook("Stop", json!({}));
        let list = lab.piton(&["list", "--json"]).json();
        let row = &list["checkpoints"][0];
        assert_eq!(row["reason"], "before shell: npm test", "{list}");
        assert_eq!(actions(row), some(&[("shell: rm -rf src # TOKEN=***", 2)]), "{list}");
        let action = &row["actions"][0];
        assert_eq!((action["status"].as_str(), &action["n"]), (Some("held"), &row["n"]), "{action}");
        assert_eq!(
            (action["turn"].as_str(), action["effects"].clone()),
            (Some("p-1"), json!(["file-delete"])),
            "{action}"
        );
        let text = lab.piton(&["list"]).stdout;
        assert!(text.contains("before npm test; then rm -rf src"), "{text}");
        // Without a watcher, a turn may know of no change of its own.
        if !is_alone {
            check_turn(&lab, &row["n"]);
        }
        assert!(!is_kept(&lab, TOKEN));
        lab.piton(&["daemon", "stop"]);
    }
}

#[test]
fn an_opaque_action_answers_for_what_no_other_names() {
    let lab = lab();
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "one", "client": "test"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t1", "prompt": "generate"}));
    let mut act = |command: &str, work: &str| {
        let reply =
            sidecar.ask(json!({"type": "shell.before", "command": command, "action": command, "cwd": lab.work}));
        assert_eq!(reply["ok"], true, "{reply}");
        lab.sh(work);
        sidecar.ask(json!({"type": "shell.after", "action": command}));
    };
    act("./first", "true");
    act("./second", "rm src/a");
    act("./third", "rm kept");
    act("rm src/b", "rm src/b");
    let turns = sidecar.ask(json!({"type": "turn.list"}));
    let turn = &turns["turns"][0];
    assert_eq!(turn["prompt"], "generate");
    let losses = [("shell: ./first", 0), ("shell: ./second", 1), ("shell: ./third", 1), ("shell: rm src/b", 1)];
    assert_eq!(actions(turn), some(&losses), "{turns}");
    let list = sidecar.ask(json!({"type": "checkpoint.list"}));
    assert_eq!(actions(&list["checkpoints"][0]), some(&losses[1..]), "{list}");
}

#[test]
fn no_prompt_is_recorded_where_the_settings_say_so() {
    let lab = lab();
    lab.set("record: {prompts: off}\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "one", "client": "test"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t1", "prompt": "unmistakable words"}));
    sidecar.ask(json!({"type": "shell.before", "command": "rm src/a", "action": "a", "cwd": lab.work}));
    lab.sh("rm src/a");
    sidecar.ask(json!({"type": "shell.after", "action": "a"}));
    sidecar.ask(json!({"type": "turn.end"}));
    let turns = sidecar.ask(json!({"type": "turn.list"}));
    assert_eq!(turns["turns"][0]["prompt"], Value::Null, "{turns}");
    assert_eq!(actions(&turns["turns"][0]), some(&[("shell: rm src/a", 1)]), "{turns}");
    assert!(!is_kept(&lab, "unmistakable"));
}

#[test]
fn an_action_is_removed_with_its_checkpoint_and_keeps_no_secret_that_is_forgotten() {
    let lab = lab();
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "client": "test"}));
    for path in ["src/a", "src/b"] {
        let reply = sidecar
            .ask(json!({"type": "shell.before", "command": format!("rm {path} # unmistakable"), "cwd": lab.work}));
        assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
        lab.sh(&format!("rm {path}"));
    }
    let list = sidecar.ask(json!({"type": "checkpoint.list"}));
    assert_eq!(actions(&list["checkpoints"][1]), some(&[("shell: rm src/a # unmistakable", 1)]), "{list}");
    drop(sidecar);
    let oldest = list["checkpoints"][1]["n"].to_string();
    assert_eq!(lab.piton(&["delete", &oldest, "--yes"]).code, 0);
    let left = lab.piton(&["list", "--json"]).json();
    assert!(!left.to_string().contains("rm src/a"), "{left}");
    let record = record(&lab);
    assert!(!record.contains("rm src/a") && record.contains("rm src/b # unmistakable"), "{record}");
    let forgotten = lab.piton(&["forget", "--secret", "unmistakable", "--yes"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert!(!is_kept(&lab, "unmistakable"), "{forgotten:?}");
}
