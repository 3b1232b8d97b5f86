//! Lines that a person types in the terminal of an agent client, in the midst of the agent's turn: saved, and the person's.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::support::{Lab, Output, lacking};

/// A client at work, with a turn that is open.
struct ClientAtWork {
    lab: Lab,
    client: &'static str,
}

impl ClientAtWork {
    fn new(client: &'static str) -> ClientAtWork {
        let lab = Lab::new();
        for name in ["agents.txt", "mine.txt"] {
            lab.write(name, "work\n");
        }
        let at_work = ClientAtWork { lab, client };
        match client {
            "pi" => {
                at_work.hook("session_start", json!({}));
                at_work.hook("before_agent_start", json!({ "prompt": "tidy up" }));
            }
            _ => {
                at_work.hook("SessionStart", json!({ "source": "startup" }));
                at_work.hook("UserPromptSubmit", json!({ "prompt": "tidy up" }));
            }
        }
        at_work
    }

    fn env_file(&self) -> PathBuf {
        self.lab.root().join("env")
    }

    fn transcript(&self) -> PathBuf {
        self.lab.root().join("transcript")
    }

    fn hook(&self, event: &str, more: Value) -> Value {
        let mut payload = match self.client {
            "pi" => json!({ "type": event, "session": "s", "cwd": self.lab.work }),
            _ => json!({ "hook_event_name": event, "session_id": "s", "prompt_id": "p", "cwd": self.lab.work,
                "transcript_path": self.transcript() }),
        };
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut command = self.lab.command(env!("CARGO_BIN_EXE_piton"), &self.lab.work);
        command.env("CLAUDE_ENV_FILE", self.env_file()).args(["hook", self.client, event]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Runs a line by a shell as Claude Code does, for its agent and for a person.
    fn shell(&self, shell: &str, line: &str) -> Output {
        let env = std::fs::read_to_string(self.env_file()).unwrap();
        let quoted = line.replace('\'', r#"'"'"'"#);
        let (here, set_up) = (self.lab.root().join("cwd"), r"{ \builtin unalias -- 'which'; } >/dev/null 2>&1 || true");
        let command = format!(
            "source /dev/null 2>/dev/null || true && {env}\n: && {set_up} && eval '{quoted}' < /dev/null && pwd -P >| '{}'",
            here.display()
        );
        let mut child = self.lab.command(shell, &self.lab.work);
        child.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s").args(["-c", &command]);
        output(child)
    }

    /// Has the agent run a command: its hooks, and the shell between.
    fn agent(&self, shell: &str, command: &str, id: &str) {
        let call = json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": id });
        self.hook("PreToolUse", call.clone());
        let done = self.shell(shell, command);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{command}");
        self.hook("PostToolUse", call);
    }

    /// The turns, the oldest first: each client with the number of paths that its turn has changed.
    fn turns(&self) -> Vec<String> {
        let all = self.lab.piton(&["turns", "--json"]).json();
        let one = |turn: &Value| format!("{} {}", turn["client"].as_str().unwrap(), turn["paths"]);
        all["turns"].as_array().unwrap().iter().rev().map(one).collect()
    }

    fn checkpoints(&self) -> usize {
        self.lab.piton(&["list", "--steps", "--json"]).json()["checkpoints"].as_array().unwrap().len()
    }

    fn undo(&self, turn: &str) {
        let undone = self.lab.piton(&["undo", "--turn", turn, "--yes"]);
        assert_eq!(undone.code, 0, "{undone:?}");
    }

    fn has(&self, name: &str) -> bool {
        self.lab.work.join(name).exists()
    }
}

impl Drop for ClientAtWork {
    fn drop(&mut self) {
        self.lab.piton(&["daemon", "stop"]);
    }
}

fn output(mut command: Command) -> Output {
    let output = command.output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The shells by which Claude Code runs lines.
fn shells() -> Vec<&'static str> {
    let is_there = |shell: &&str| {
        let found = Command::new(shell).args(["-c", ":"]).status().is_ok();
        if !found {
            lacking(shell);
        }
        found
    };
    ["bash", "zsh"].into_iter().filter(is_there).collect()
}

#[test]
fn a_line_in_claude_code_is_the_persons_and_the_agents_commands_are_not() {
    for shell in shells() {
        let at_work = ClientAtWork::new("claude-code");
        at_work.agent(shell, "rm agents.txt", "u1");
        let before = at_work.checkpoints();
        let done = at_work.shell(shell, "rm mine.txt && echo 'it'\"'\"'s' gone");
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "it's gone\n", ""), "{shell}");
        assert_eq!(at_work.checkpoints(), before + 1, "{shell}");
        at_work.agent(shell, "echo new > new.txt", "u2");
        at_work.hook("Stop", json!({}));
        assert_eq!(at_work.turns(), ["claude-code-lines 1", "claude-code 2"], "{shell}: the line ended first");
        at_work.undo("t-2");
        assert!(at_work.has("agents.txt") && !at_work.has("new.txt"), "{shell}");
        assert!(!at_work.has("mine.txt"), "{shell}: the turn did not delete it");
        at_work.undo("t-1");
        assert_eq!(at_work.lab.read("mine.txt"), "work\n", "{shell}");
        let status = at_work.lab.piton(&["status"]).stdout;
        assert!(!status.contains("mishap"), "{status}");
    }
}

#[test]
fn a_line_after_a_call_that_the_person_refused_is_the_persons() {
    let at_work = ClientAtWork::new("claude-code");
    let call = json!({ "tool_name": "Bash", "tool_input": { "command": "rm agents.txt" }, "tool_use_id": "u1" });
    at_work.hook("PreToolUse", call);
    // No event reports the refusal.
    std::fs::write(at_work.transcript(), r#"{"content":[{"tool_use_id":"u1","type":"tool_result"}]}"#).unwrap();
    assert_eq!(at_work.shell("bash", "rm mine.txt").code, 0);
    at_work.hook("Stop", json!({}));
    assert_eq!(at_work.turns(), ["claude-code-lines 1"]);
}

#[test]
fn the_guard_changes_nothing_of_a_line() {
    for shell in shells() {
        let at_work = ClientAtWork::new("claude-code");
        for (line, code, stdout) in [
            ("rm -f x; echo out; echo error >&2; false", 1, "out\n"),
            ("rm -f x; exit 7", 7, ""),
            ("rm -f x; trap 'echo own' EXIT; exit 3", 3, "own\n"),
            ("rm -f x; exec sh -c 'echo other; exit 4'", 4, "other\n"),
            ("rm -f x; (exit 5)", 5, ""),
            ("ls mine.txt", 0, "mine.txt\n"),
            ("if", 1, ""),
        ] {
            let done = at_work.shell(shell, line);
            let is_code = done.code == code || (line == "if" && done.code != 0);
            assert!(is_code && done.stdout == stdout, "{shell}: {line}: {done:?}");
            let is_own = matches!(done.stderr.as_str(), "" | "error\n") || line == "if";
            assert!(is_own, "{shell}: {line}: {done:?}");
        }
        // Without a session, and without piton, nothing is called.
        let env = std::fs::read_to_string(at_work.env_file()).unwrap();
        let run = |text: &str| {
            let mut command = at_work.lab.command(shell, &at_work.lab.work);
            command.args(["-c", &format!("{text}\necho done")]);
            output(command)
        };
        assert_eq!(run(&env).stdout, "done\n");
        let gone = env.replace(env!("CARGO_BIN_EXE_piton"), "/nowhere/piton");
        let done = run(&format!("export CLAUDE_CODE_SESSION_ID=s\n{gone}"));
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("done\n", ""), "{shell}");
    }
}

#[test]
fn a_policy_stops_a_line() {
    for answer in ["deny", "ask"] {
        for shell in shells() {
            let at_work = ClientAtWork::new("claude-code");
            at_work.lab.set(&format!("policy: {{file-delete: {answer}}}\n"));
            let done = at_work.shell(shell, "rm mine.txt");
            assert!(done.code == 126 && at_work.has("mine.txt"), "{shell} {answer}: {done:?}");
            assert!(done.stderr.contains("the line was not run"), "{done:?}");
        }
        let at_work = ClientAtWork::new("pi");
        at_work.lab.set(&format!("policy: {{file-delete: {answer}}}\n"));
        let reply = at_work.hook("user_bash", json!({ "command": "rm mine.txt", "line": 1 }));
        assert!(reply["deny"].as_str().unwrap().contains("the line was not run"), "{reply}");
    }
}

#[test]
fn a_line_in_pi_is_the_persons() {
    let at_work = ClientAtWork::new("pi");
    let rm = |event: &str, name: &str| {
        let call = json!({ "toolName": "bash", "toolCallId": "c", "input": { "command": format!("rm {name}") } });
        at_work.hook(event, call)
    };
    rm("tool_call", "agents.txt");
    at_work.lab.sh("rm agents.txt");
    rm("tool_result", "agents.txt");
    assert_eq!(at_work.hook("user_bash", json!({ "command": "ls", "line": 1 })), Value::Null);
    let reply = at_work.hook("user_bash", json!({ "command": "rm mine.txt", "line": 2 }));
    assert_eq!(reply, json!({ "end": true }));
    at_work.lab.sh("rm mine.txt");
    at_work.hook("user_bash_end", json!({ "line": 2 }));
    let reply = at_work.hook("user_bash", json!({ "command": "psql -c 'drop table t'", "line": 3 }));
    assert!(reply["message"].as_str().unwrap().contains("psql"), "{reply}");
    at_work.hook("user_bash_end", json!({ "line": 3 }));
    at_work.hook("agent_end", json!({}));
    assert_eq!(at_work.turns(), ["pi-lines 1", "pi 1"], "the line ended first");
    at_work.undo("t-2");
    assert!(at_work.has("agents.txt") && !at_work.has("mine.txt"));
    let status = at_work.lab.piton(&["status"]).stdout;
    assert!(!status.contains("mishap"), "{status}");
}
