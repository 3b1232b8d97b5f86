//! The client of a run: the same by every door, below the run of its agent, and over with its process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, WAIT};

/// A lab whose daemon ends with it.
struct ClientLab(Lab);

impl ClientLab {
    fn new() -> ClientLab {
        let lab = Lab::new();
        lab.sh("printf old > a; mkdir out; printf product > out/x");
        ClientLab(lab)
    }

    /// Runs a hook as the client's own child. Returns its output.
    fn hook(&self, client: &str, event: &str, payload: &Value) -> String {
        let mut command = self.0.command(env!("CARGO_BIN_EXE_piton"), &self.0.work);
        let mut child =
            command.args(["hook", client, event]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success());
        String::from_utf8(done.stdout).unwrap()
    }

    fn runs(&self) -> Vec<Value> {
        self.0.piton(&["runs", "--json"]).json()["runs"].as_array().unwrap().clone()
    }

    fn run(&self, run: &str) -> Value {
        let runs = self.runs();
        runs.iter().find(|item| item["run"] == run).cloned().unwrap_or_else(|| panic!("{run}: {runs:?}"))
    }

    /// Waits until a run is in a state.
    fn comes_to(&self, run: &str, status: &str) {
        let began = Instant::now();
        while self.run(run)["status"] != status {
            assert!(began.elapsed() < WAIT, "{run} is not {status}: {}", self.run(run));
        }
    }
}

impl Drop for ClientLab {
    fn drop(&mut self) {
        self.0.piton(&["daemon", "stop"]);
    }
}

/// A tool of Claude Code that is about to run, as its hook tells.
fn bash(lab: &Lab, session: &str, command: &str) -> Value {
    json!({ "hook_event_name": "PreToolUse", "session_id": session, "prompt_id": "p", "cwd": lab.work, "tool_name": "Bash",
        "tool_input": { "command": command }, "tool_use_id": "u", "permission_mode": "default" })
}

#[test]
fn a_session_is_one_run_by_its_hooks_and_by_its_stream() {
    let here = ClientLab::new();
    let lab = &here.0;
    here.hook("claude-code", "PreToolUse", &bash(lab, "6c8c9265", "rm a"));
    let mut stream = Sidecar::start(lab, &["--from", "claude-code"]);
    stream.send(json!({ "type": "system", "subtype": "init", "session_id": "6c8c9265", "cwd": lab.work, "tools": [] }));
    let turn = stream.answer(|line| line["type"] == "turn.start");
    assert_eq!(turn["ok"], true, "{turn}");
    stream.send(json!({ "type": "result", "subtype": "success", "session_id": "6c8c9265" }));
    assert_eq!(stream.finish(), 0);
    let runs = here.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let (run, client) = (&runs[0]["run"], &runs[0]["client"]);
    assert_eq!((run, client), (&json!("claude-code.6c8c9265"), &json!("claude-code")));
    // Nobody hears of the stream's client any more.
    here.comes_to("claude-code.6c8c9265", "exit");
}

/// The program `timeout` stands for a client: it runs a shell, the shell runs the hook, and then both wait.
fn client(lab: &Lab, payload: &Value, hook: &str) -> Child {
    std::fs::write(lab.root().join("payload"), payload.to_string()).unwrap();
    let script = format!("'{}' {hook} < ../payload; echo told; read wait", env!("CARGO_BIN_EXE_piton"));
    let mut command = lab.command("timeout", &lab.work);
    let mut child =
        command.args(["600", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("told")));
    child
}

#[test]
fn a_run_ends_with_the_process_of_its_client() {
    for alone in ["", " --no-daemon"] {
        let here = ClientLab::new();
        let lab = &here.0;
        let hook = format!("hook claude-code PreToolUse{alone}");
        let mut first = client(lab, &bash(lab, "s", "rm a"), &hook);
        here.comes_to("claude-code.s", "open");
        lab.sh("rm a");
        // A killed client tells of no end, neither of its run nor of its turn.
        first.kill().unwrap();
        first.wait().unwrap();
        assert_eq!(here.run("claude-code.s")["status"], "exit", "{alone}");
        let turns = lab.piton(&["turns", "--json"]).json()["turns"].as_array().unwrap().clone();
        assert!(turns.iter().all(|turn| turn["open"] == false), "{alone} {turns:?}");
        let shown = lab.piton(&["runs"]).stdout;
        assert!(shown.contains("claude-code.s  exit  claude-code  1 checkpoint"), "{shown}");
        // The session goes on in another process, and ends by its own word.
        let mut second = client(lab, &bash(lab, "s", "rm -r out"), &hook);
        assert_eq!(here.run("claude-code.s")["status"], "open", "{alone}");
        here.hook(
            "claude-code",
            "SessionEnd",
            &json!({ "hook_event_name": "SessionEnd", "session_id": "s",
            "cwd": lab.work, "reason": "other" }),
        );
        assert_eq!(here.run("claude-code.s")["status"], "completed", "{alone}");
        second.kill().unwrap();
        second.wait().unwrap();
        assert_eq!(here.run("claude-code.s")["status"], "completed", "{alone}");
    }
}

/// A shell's run ends with the shell, whose number comes in `hello`; bash tells of no end.
#[test]
fn a_run_ends_with_the_shell_that_was_killed() {
    let here = ClientLab::new();
    let lab = &here.0;
    let mut shell = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut sidecar = Sidecar::start(lab, &[]);
    let hello = json!({ "type": "hello", "client": "bash", "session": "bash.1", "pid": shell.id(), "cwd": lab.work });
    assert_eq!(sidecar.ask(hello)["run"], "bash.1");
    sidecar.ask(json!({ "type": "turn.start", "turn": "1: rm a" }));
    sidecar.ask(json!({ "type": "shell.before", "command": "rm a", "cwd": lab.work }));
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(here.run("bash.1")["status"], "open", "its connection was for one line");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert_eq!(here.run("bash.1")["status"], "exit");
}

/// Claude Code runs a sub-agent in the session of its agent: its checkpoints are of its own run, and its changes of the agent's turn.
#[test]
fn a_sub_agent_in_its_agents_session_is_a_run_too() {
    let here = ClientLab::new();
    let lab = &here.0;
    let by = |mut payload: Value, agent: &str| {
        (payload["agent_id"], payload["agent_type"]) = (json!(agent), json!("general-purpose"));
        payload
    };
    let after = |tool: &str| {
        json!({ "hook_event_name": "PostToolUse", "session_id": "s", "prompt_id": "p", "cwd": lab.work,
        "tool_name": "Bash", "tool_input": {}, "tool_response": {}, "tool_use_id": tool })
    };
    here.hook(
        "claude-code",
        "UserPromptSubmit",
        &json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s",
        "prompt_id": "p", "cwd": lab.work, "prompt": "tidy up" }),
    );
    here.hook("claude-code", "PreToolUse", &bash(lab, "s", "rm a"));
    lab.sh("rm a");
    here.hook("claude-code", "PostToolUse", &after("u"));
    // The agent's checkpoint protects the first sub-agent, and not the second one: something has changed since.
    here.hook("claude-code", "PreToolUse", &by(bash(lab, "s", "rm -r out"), "a1"));
    here.hook("claude-code", "PostToolUse", &by(after("u"), "a1"));
    here.hook(
        "claude-code",
        "SubagentStop",
        &by(
            json!({ "hook_event_name": "SubagentStop", "session_id": "s",
        "prompt_id": "p", "cwd": lab.work, "stop_hook_active": false }),
            "a1",
        ),
    );
    lab.write("b", "new");
    here.hook("claude-code", "PreToolUse", &by(bash(lab, "s", "rm -r out b"), "a2"));
    lab.sh("rm -r out b");
    here.hook("claude-code", "PostToolUse", &by(after("u"), "a2"));
    let tree = lab.piton(&["runs", "--tree"]).stdout;
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with("claude-code.s  open  claude-code  1 checkpoint"), "{tree}");
    assert!(lines[1].starts_with("  claude-code.s.a"), "{tree}");
    let (first, second) = (here.run("claude-code.s.a1"), here.run("claude-code.s.a2"));
    let facts =
        |run: &Value| (run["status"].clone(), run["parent"].clone(), run["goal"].clone(), run["checkpoints"].clone());
    let (above, kind) = (json!("claude-code.s"), json!("general-purpose"));
    assert_eq!(facts(&first), (json!("completed"), above.clone(), kind.clone(), json!(0)), "{first}");
    assert_eq!(facts(&second), (json!("open"), above, kind, json!(1)), "{second}");
    // The end of the prompt is the end of one turn, which one step takes back.
    here.hook(
        "claude-code",
        "Stop",
        &json!({ "hook_event_name": "Stop", "session_id": "s", "prompt_id": "p",
        "cwd": lab.work, "stop_hook_active": false }),
    );
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert_eq!((lab.read("a"), lab.read("out/x")), ("old".to_owned(), "product".to_owned()));
}

/// Codex gives a sub-agent in its agent's session turns of its own, while the agent's goes on: all is one turn.
#[test]
fn a_sub_agents_own_turn_is_its_agents() {
    let here = ClientLab::new();
    let lab = &here.0;
    let told = |event: &str, turn: &str, fields: Value| {
        let mut payload = json!({ "hook_event_name": event, "session_id": "s", "turn_id": turn, "cwd": lab.work });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        here.hook("codex", event, &payload);
    };
    let call =
        |command: &str| json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": command });
    let by = |mut fields: Value| {
        (fields["agent_id"], fields["agent_type"]) = (json!("a1"), json!("default"));
        fields
    };
    told("UserPromptSubmit", "t", json!({ "prompt": "tidy up" }));
    told("PreToolUse", "t", call("rm a"));
    lab.sh("rm a");
    told("PostToolUse", "t", call("rm a"));
    told("PreToolUse", "own", by(call("rm -r out")));
    told("PreToolUse", "t", call("touch b"));
    lab.sh("rm -r out; touch b");
    told("PostToolUse", "own", by(call("rm -r out")));
    told("PostToolUse", "t", call("touch b"));
    told("SubagentStop", "own", by(json!({ "stop_hook_active": false })));
    let tree = lab.piton(&["runs", "--tree"]).stdout;
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with("codex.s  open  codex"), "{tree}");
    assert!(lines[1].starts_with("  codex.s.a1  completed  codex"), "{tree}");
    told("Stop", "t", json!({ "stop_hook_active": false }));
    let turns = lab.piton(&["turns", "--json"]).json()["turns"].as_array().unwrap().clone();
    assert_eq!(turns.len(), 1, "{turns:?}");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((lab.read("a"), lab.read("out/x")), ("old".to_owned(), "product".to_owned()));
    assert!(undone.code == 0 && !lab.work.join("b").exists(), "{undone:?}");
}

/// `droid exec` tells of no prompt: the first action begins the turn, and `Stop` ends it.
#[test]
fn a_turn_begins_with_the_first_action_where_no_prompt_was_told() {
    let here = ClientLab::new();
    let lab = &here.0;
    let told = |event: &str, fields: Value| {
        let mut payload = json!({ "hook_event_name": event, "session_id": "s", "cwd": lab.work });
        payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        here.hook("droid", event, &payload);
    };
    let call = |command: &str| json!({ "tool_name": "Execute", "tool_input": { "command": command } });
    for commands in [["rm a", "touch b"], ["rm -r out", "touch c"]] {
        for command in commands {
            told("PreToolUse", call(command));
            lab.sh(command);
            told("PostToolUse", call(command));
        }
        told("Stop", json!({ "stop_hook_active": false }));
    }
    let turns = lab.piton(&["turns", "--json"]).json()["turns"].as_array().unwrap().clone();
    assert_eq!(turns.iter().map(|turn| turn["open"].clone()).collect::<Vec<_>>(), [false, false], "{turns:?}");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((undone.code, lab.read("out/x").as_str()), (0, "product"), "{undone:?}");
    let are_there = ["a", "b", "c"].map(|name| lab.work.join(name).exists());
    assert_eq!(are_there, [false, true, false], "{undone:?}");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(lab.read("a"), "old");
}

/// opencode gives a sub-agent a session of its own; the plugin names the one at the top.
#[test]
fn a_sub_agent_is_a_run_below_its_agents() {
    let here = ClientLab::new();
    let lab = &here.0;
    let call = |session: &str, top: Option<&str>, command: &str| {
        let payload = json!({ "hook": "tool.execute.before", "directory": lab.work, "top": top,
            "input": { "tool": "bash", "sessionID": session, "callID": "c" }, "output": { "args": { "command": command } } });
        here.hook("opencode", "tool.execute.before", &payload);
        lab.sh(command);
    };
    call("ses_above", None, "rm a");
    call("ses_Below", Some("ses_above"), "rm -r out");
    let below = here.runs().into_iter().find(|item| item["named"] == "opencode.ses_abov.ses_Below").unwrap();
    let told = (&below["client"], &below["parent"], &below["status"]);
    assert_eq!(told, (&json!("opencode"), &json!("opencode.ses_above"), &json!("open")), "{below}");
    let tree = lab.piton(&["runs", "--tree"]).stdout;
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with("opencode.ses_above  open  opencode  1 checkpoint"), "{tree}");
    assert!(
        lines[1].starts_with("  s-") && lines[1].contains("opencode  named opencode.ses_abov.ses_Below  "),
        "{tree}"
    );
    let list = lab.piton(&["runs"]).stdout;
    assert!(list.contains("named opencode.ses_abov.ses_Below  below opencode.ses_above  "), "{list}");
}

/// Cline gives a sub-agent a task of its own. It begins no turn, and ends none.
#[test]
fn a_sub_agent_with_a_task_of_its_own_works_in_its_agents_turn() {
    let here = ClientLab::new();
    let lab = &here.0;
    let tell = |event: &str, agent: &str, above: Option<&str>, more: Value| {
        let mut payload = json!({ "taskId": format!("task of {agent}"), "workspaceRoots": [lab.work], "agent_id": agent,
            "parent_agent_id": above });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        here.hook("cline", event, &payload);
    };
    let call =
        |line: &str| json!({ "tool_call": { "id": "c", "name": "run_commands", "input": { "commands": [line] } } });
    let over = || json!({ "tool_result": { "id": "c" }, "postToolUse": { "success": true } });
    tell("TaskStart", "one", None, json!({}));
    tell("TaskStart", "two", Some("one"), json!({}));
    tell("PreToolUse", "two", Some("one"), call("rm a"));
    lab.sh("rm a");
    tell("PostToolUse", "two", Some("one"), over());
    tell("TaskComplete", "two", Some("one"), json!({}));
    tell("PreToolUse", "one", None, call("rm -r out"));
    lab.sh("rm -r out");
    tell("PostToolUse", "one", None, over());
    tell("TaskComplete", "one", None, json!({}));
    let agent = here.run("cline.one.two");
    assert_eq!((&agent["parent"], &agent["status"]), (&json!("cline.one"), &json!("completed")), "{agent}");
    lab.piton(&["undo", "--yes"]);
    assert_eq!((lab.read("a"), lab.read("out/x")), ("old".to_owned(), "product".to_owned()));
}

/// So do opencode and Copilot CLI, with a session of its own: a prompt is one turn.
#[test]
fn a_sub_agent_with_a_session_of_its_own_works_in_its_agents_turn() {
    for client in ["opencode", "copilot-cli"] {
        let here = ClientLab::new();
        let lab = &here.0;
        let is_copilot = client == "copilot-cli";
        let tell = |event: usize, agent: &str, above: Option<&str>, command: &str| {
            let names = if is_copilot {
                ["userPromptSubmitted", "preToolUse", "postToolUse", "agentStop"]
            } else {
                ["chat.message", "tool.execute.before", "tool.execute.after", "event.session.idle"]
            };
            let payload = if is_copilot {
                let mut payload = json!({ "sessionId": agent, "cwd": lab.work, "prompt": "a part", "toolName": "bash",
                    "toolArgs": { "command": command } });
                if let Some(above) = above {
                    payload["agentId"] = json!(agent);
                    payload["parentAgentId"] = json!(above);
                }
                payload
            } else {
                json!({ "hook": names[event], "directory": lab.work, "top": above, "prompt": "a part",
                    "input": { "tool": "bash", "sessionID": agent, "callID": "c", "properties": { "sessionID": agent } },
                    "output": { "args": { "command": command }, "message": { "id": format!("of {agent}") } } })
            };
            here.hook(client, names[event], &payload);
        };
        let work = |agent: &str, above: Option<&str>, command: &str| {
            tell(1, agent, above, command);
            lab.sh(command);
            tell(2, agent, above, command);
        };
        tell(0, "above", None, "");
        tell(0, "below", Some("above"), "");
        work("below", Some("above"), "rm a");
        tell(3, "below", Some("above"), "");
        work("above", None, "rm -r out");
        tell(3, "above", None, "");
        let below = here.run(&format!("{client}.above.below"));
        let told = (&below["client"], &below["parent"], &below["status"]);
        assert_eq!(told, (&json!(client), &json!(format!("{client}.above")), &json!("completed")), "{below}");
        assert_eq!(here.run(&format!("{client}.above"))["status"], "open");
        let undone = lab.piton(&["undo", "--yes"]);
        assert_eq!(
            (lab.read("a"), lab.read("out/x")),
            ("old".to_owned(), "product".to_owned()),
            "{client}: {undone:?}"
        );
    }
}

/// Hermes Agent tells once, and in the words of the agent, which session is a sub-agent's.
#[test]
fn a_sub_agent_with_a_session_of_its_own_is_below_its_agent() {
    let here = ClientLab::new();
    let lab = &here.0;
    let tell = |event: &str, session: &str, tool: Value, extra: Value| {
        let payload = json!({ "hook_event_name": event, "session_id": session, "cwd": lab.work, "tool_name": "terminal",
            "tool_input": tool, "extra": extra });
        here.hook("hermes-agent", event, &payload);
    };
    let (none, of) =
        (|| Value::Null, |session: &str| json!({ "turn_id": format!("turn of {session}"), "tool_call_id": "c" }));
    tell("on_session_start", "one", none(), json!({}));
    tell("pre_llm_call", "one", none(), of("one"));
    tell("subagent_start", "one", none(), json!({ "child_session_id": "two", "parent_turn_id": "turn of one" }));
    tell("on_session_start", "two", none(), json!({ "platform": "subagent" }));
    tell("pre_llm_call", "two", none(), of("two"));
    let act = |session: &str, command: &str| {
        tell("pre_tool_call", session, json!({ "command": command }), of(session));
        lab.sh(command);
        tell("post_tool_call", session, none(), of(session));
    };
    act("two", "rm -r out");
    assert_eq!(here.run("hermes-agent.two")["status"], "open");
    // A sub-agent of the sub-agent.
    tell("subagent_start", "two", none(), json!({ "child_session_id": "three" }));
    tell("pre_llm_call", "three", none(), of("three"));
    act("three", "rm a");
    assert_eq!(here.run("hermes-agent.three")["parent"], "hermes-agent.one");
    tell("on_session_end", "three", none(), of("three"));
    tell("on_session_end", "two", none(), json!({}));
    tell("subagent_stop", "one", none(), json!({ "child_session_id": "two" }));
    let agent = here.run("hermes-agent.two");
    assert_eq!((&agent["parent"], &agent["status"]), (&json!("hermes-agent.one"), &json!("completed")), "{agent}");
    assert_eq!(here.run("hermes-agent.one")["status"], "open");
    act("one", "touch made");
    tell("on_session_end", "one", none(), of("one"));
    let undone = lab.piton(&["undo", "--yes"]);
    let back = (lab.read("a"), lab.read("out/x"), lab.work.join("made").exists());
    assert_eq!(back, ("old".to_owned(), "product".to_owned(), false), "{undone:?}");
    // A session that was a sub-agent's has turns of its own from then on.
    tell("pre_llm_call", "two", none(), of("two"));
    act("two", "rm a");
    assert_eq!(here.run("hermes-agent.two")["status"], "open");
    let turns = lab.piton(&["turns", "--json"]).json();
    assert!(turns.to_string().contains("turn of two"), "{turns}");
}

/// A client may go on behind what it has told as the end of a turn. A sub-agent of Kimi Code ends with the event of its agent. In other
/// clients a sub-agent in the background works on.
#[test]
fn what_follows_the_end_of_a_turn_can_be_undone() {
    for (client, prompt, before, after, end, turns) in [
        ("kimi-code", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", 1),
        ("droid", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", 2),
    ] {
        let here = ClientLab::new();
        let lab = &here.0;
        let tell = |event: &str, command: &str| {
            let payload = json!({ "hook_event_name": event, "session_id": "s", "cwd": lab.work, "prompt": "tidy up",
                "tool_name": if client == "droid" { "Execute" } else { "Bash" }, "tool_input": { "command": command },
                "tool_call_id": "c" });
            here.hook(client, event, &payload);
        };
        tell(prompt, "");
        for command in ["rm a", "rm -r out"] {
            tell(before, command);
            lab.sh(command);
            tell(after, command);
            tell(end, "");
        }
        for _ in 0..turns {
            let undone = lab.piton(&["undo", "--yes"]);
            assert_eq!(undone.code, 0, "{client}: {}", undone.stderr);
        }
        assert_eq!((lab.read("a"), lab.read("out/x")), ("old".to_owned(), "product".to_owned()), "{client}");
    }
}

/// The client tells of its turn with each action, which takes no note away.
#[test]
fn a_restore_in_the_middle_of_a_turn_is_told_to_the_model() {
    let here = ClientLab::new();
    let lab = &here.0;
    here.hook("claude-code", "PreToolUse", &bash(lab, "s", "rm a"));
    lab.sh("rm a");
    lab.piton(&["restore", "1", "a", "--yes"]);
    let told = here.hook("claude-code", "PreToolUse", &bash(lab, "s", "ls"));
    assert!(told.contains("additionalContext") && told.contains("files were restored"), "{told}");
}

/// Hermes Agent reviews a conversation after some turns: in the background, under the same session id, while the next turn may run.
#[test]
fn a_background_review_of_hermes_is_no_turn_and_takes_no_note() {
    let here = ClientLab::new();
    let lab = &here.0;
    let tell = |event: &str, task: &str, turn: &str, extra: Value| {
        let mut facts = json!({ "task_id": task, "turn_id": format!("s:{task}:{turn}"), "tool_call_id": "c" });
        facts.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let tool = json!({ "command": extra["command"] });
        let payload = json!({ "hook_event_name": event, "session_id": "s", "cwd": lab.work, "tool_name": "terminal",
            "tool_input": tool, "extra": facts });
        here.hook("hermes-agent", event, &payload)
    };
    let act = |task: &str, turn: &str, command: &str| {
        tell("pre_tool_call", task, turn, json!({ "command": command }));
        lab.sh(command);
        tell("post_tool_call", task, turn, json!({}));
    };
    let review = "5f0c1f0e-7a51-4a8e-9d8e-0d3d6b0a3c11";
    tell("pre_llm_call", "s", "one", json!({ "user_message": "tidy up" }));
    act("s", "one", "rm a");
    tell("on_session_end", "s", "one", json!({}));
    lab.piton(&["restore", "1", "a", "--yes"]);
    // The review begins, and the person goes on meanwhile.
    let prompt = "Review the conversation above and update two things:\n\n**Memory**: who the user is.";
    let said = tell("pre_llm_call", review, "two", json!({ "user_message": prompt }));
    assert!(!said.contains("restored"), "{said}");
    let said = tell("pre_llm_call", "s", "three", json!({ "user_message": "go on" }));
    assert!(said.contains("files were restored"), "{said}");
    act("s", "three", "rm -r out");
    act(review, "two", "touch learned");
    tell("on_session_end", review, "two", json!({}));
    act("s", "three", "touch made");
    let turns = lab.piton(&["turns", "--json"]).json();
    let open: Vec<&Value> = turns["turns"].as_array().unwrap().iter().filter(|turn| turn["open"] == true).collect();
    assert_eq!((open.len(), &open[0]["turn"]), (1, &json!("s:s:three")), "{turns}");
    tell("on_session_end", "s", "three", json!({}));
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((lab.read("out/x"), lab.work.join("made").exists()), ("product".to_owned(), false), "{undone:?}");
}
