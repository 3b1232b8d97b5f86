//! Clients' own JSON streams: a recorded one, piped into the built binary over a real workspace. The client's actions
//! are done between the frames, as soon as the turn's checkpoint is reported: a stream promises no more.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar};

/// A client's frames: what begins a turn, an action in it that deletes a file, what ends it.
struct Shape {
    client: &'static str,
    begin: &'static [&'static str],
    delete: &'static [&'static str],
    end: &'static str,
}

const SHAPES: [Shape; 8] = [
    Shape {
        client: "claude-code",
        begin: &[r#"{"type":"system","subtype":"init","session_id":"S","cwd":"/gone"}"#],
        delete: &[
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"u1","name":"Bash","input":{"command":"rm a.txt"}}]},"session_id":"S"}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"u1","is_error":false}]},"session_id":"S"}"#,
        ],
        end: r#"{"type":"result","subtype":"success","session_id":"S"}"#,
    },
    Shape {
        client: "codex",
        begin: &[r#"{"type":"thread.started","thread_id":"S"}"#, r#"{"type":"turn.started"}"#],
        delete: &[
            r#"{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"/bin/bash -lc 'rm a.txt'","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"/bin/bash -lc 'rm a.txt'","exit_code":0,"status":"completed"}}"#,
        ],
        end: r#"{"type":"turn.completed","usage":{}}"#,
    },
    Shape {
        client: "gemini-cli",
        begin: &[
            r#"{"type":"init","session_id":"S","model":"m"}"#,
            r#"{"type":"message","role":"user","content":"tidy"}"#,
        ],
        delete: &[
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"rm a.txt"}}"#,
            r#"{"type":"tool_result","tool_id":"t1","status":"success","output":""}"#,
        ],
        end: r#"{"type":"result","status":"success"}"#,
    },
    Shape {
        client: "opencode",
        begin: &[r#"{"type":"step_start","sessionID":"S","part":{"type":"step-start"}}"#],
        delete: &[
            r#"{"type":"tool_use","sessionID":"S","part":{"callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"rm a.txt"}}}}"#,
        ],
        end: r#"{"type":"step_finish","sessionID":"S","part":{"reason":"stop"}}"#,
    },
    Shape {
        client: "copilot-cli",
        begin: &[r#"{"type":"user.message","data":{"content":"tidy","interactionId":"i"}}"#],
        delete: &[
            r#"{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"bash","arguments":{"command":"rm a.txt"}}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true}}"#,
        ],
        end: r#"{"type":"result","sessionId":"S"}"#,
    },
    Shape {
        client: "qwen-code",
        begin: &[r#"{"type":"system","subtype":"init","session_id":"S","cwd":"/gone"}"#],
        delete: &[
            r#"{"type":"assistant","session_id":"S","message":{"content":[{"type":"tool_use","id":"u1","name":"run_shell_command","input":{"command":"rm a.txt"}}]}}"#,
        ],
        end: r#"{"type":"result","session_id":"S"}"#,
    },
    Shape {
        client: "cline",
        begin: &[
            r#"{"type":"hook_event","hookName":"agent_start","taskId":"S"}"#,
            r#"{"type":"agent_event","event":{"type":"iteration_start"}}"#,
        ],
        delete: &[
            r#"{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolCallId":"c1","toolName":"run_commands","input":{"commands":["rm a.txt"]}}}"#,
            r#"{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolCallId":"c1","toolName":"run_commands"}}"#,
        ],
        end: r#"{"type":"agent_event","event":{"type":"done"}}"#,
    },
    Shape {
        client: "pi",
        begin: &[r#"{"type":"session","id":"S","cwd":"/gone"}"#, r#"{"type":"agent_start"}"#],
        delete: &[
            r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"rm a.txt"}}"#,
            r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","isError":false}"#,
        ],
        end: r#"{"type":"agent_end"}"#,
    },
];

fn send(sidecar: &mut Sidecar, frames: &[&str]) {
    frames.iter().for_each(|frame| sidecar.send_raw(format!("{frame}\n").as_bytes()));
}

/// The answer to a request of piton's own that a frame became.
fn told(sidecar: &mut Sidecar, kind: &str) -> Value {
    sidecar.answer(|value| value["type"] == kind)
}

#[test]
fn each_turn_of_each_client_has_its_checkpoint_before_it_edits() {
    for shape in &SHAPES {
        let lab = Lab::new();
        lab.write("a.txt", "one\n");
        let mut sidecar = Sidecar::start(&lab, &["--from", shape.client]);
        for (turn, content) in [(1, "one\n"), (2, "two\n")] {
            lab.write("a.txt", content);
            send(&mut sidecar, shape.begin);
            let start = told(&mut sidecar, "turn.start");
            assert_eq!(start["checkpoint"]["status"], "taken", "{}: {start}", shape.client);
            let n = start["checkpoint"]["n"].as_u64().unwrap();
            std::fs::remove_file(lab.work.join("a.txt")).unwrap();
            send(&mut sidecar, shape.delete);
            let seen = told(&mut sidecar, "shell.before");
            assert_eq!(seen["checkpoint"]["status"], "held", "{}, turn {turn}: {seen}", shape.client);
            assert_eq!((&seen["checkpoint"]["n"], &seen["turn"]), (&json!(n), &start["turn"]));
            send(&mut sidecar, &[shape.end]);
            assert_eq!(lab.piton(&["show", &format!("{n}:a.txt")]).stdout, content, "{}", shape.client);
        }
        // A turn before which nothing changed costs nothing.
        send(&mut sidecar, shape.begin);
        let third = told(&mut sidecar, "turn.start");
        assert_eq!(third["checkpoint"]["status"], "taken", "the file is gone since: {third}");
        send(&mut sidecar, &[shape.end]);
        send(&mut sidecar, shape.begin);
        assert_eq!(told(&mut sidecar, "turn.start")["checkpoint"]["status"], "unchanged", "{}", shape.client);
        assert_eq!(sidecar.finish(), 0);
        let ended = sidecar.notice(|notice| notice["notice"] == "stream.ended");
        assert_eq!((&ended["turns"], &ended["actions"], &ended["skipped"]), (&json!(4), &json!(2), &json!({})));
        let listed = lab.piton(&["list", "--json"]).json();
        let rows = listed["checkpoints"].as_array().unwrap();
        assert_eq!(rows.len(), 3, "{}: {listed}", shape.client);
        assert!(
            rows.iter()
                .all(|row| row["reason"] == "skipped at the start of a turn, because no client reads this stream then"),
            "{listed}"
        );
    }
}

#[test]
fn what_comes_after_the_start_of_a_turn_is_not_told_as_if_it_were_before() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &["--from", "gemini-cli"]);
    let frame = |command: &str| json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t", "parameters": {"command": command}});
    sidecar.send(json!({"type": "message", "role": "user"}));
    told(&mut sidecar, "turn.start");
    // Changed since the start: what stands there now is kept too, and said to be perhaps too late.
    lab.write("a.txt", "two\n");
    sidecar.send(frame("rm a.txt"));
    let late = told(&mut sidecar, "shell.before");
    assert_eq!(late["checkpoint"]["status"], "taken", "{late}");
    // It is not the turn's: the next action is measured by the one from the start.
    lab.write("a.txt", "one\n");
    sidecar.send(frame("rm a.txt; psql -c 'DROP TABLE t'"));
    let next = told(&mut sidecar, "shell.before");
    assert_eq!((&next["checkpoint"]["status"], &next["checkpoint"]["n"]), (&json!("held"), &json!(1)), "{next}");
    assert_eq!(next["warnings"][0]["class"], "database", "{next}");
    // Without a turn too.
    sidecar.send(json!({"type": "result"}));
    sidecar.send(frame("rm a.txt"));
    assert_eq!(told(&mut sidecar, "shell.before")["checkpoint"]["status"], "taken");
    assert_eq!(sidecar.finish(), 0);
    let listed = lab.piton(&["list", "--json", "--steps"]).json();
    let reasons: Vec<&str> =
        listed["checkpoints"].as_array().unwrap().iter().map(|row| row["reason"].as_str().unwrap()).collect();
    let start = "skipped at the start of a turn, because no client reads this stream then";
    assert_eq!(reasons, ["possibly too late for shell: rm a.txt", "possibly too late for shell: rm a.txt", start]);
    assert!(listed.to_string().contains("database"), "the effect is noted: {listed}");
}

#[test]
fn what_is_no_frame_is_counted_and_told_once_a_sort() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &["--from", "gemini-cli"]);
    let long = format!("{{\"type\":\"message\",\"x\":\"{}\"}}\n", "y".repeat(9 << 20));
    let lines: [&[u8]; 9] = [
        b"not json\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"{\"type\":\"system\",\"subtype\":\"init\"}\n",
        b"{\"type\":\"item.started\"}\n",
        b"{\"type\":\"tool_use\",\"tool_name\":5}\n",
        b"{\"type\":\"tool_use\"}\n",
        long.as_bytes(),
        b"\r\n",
    ];
    lines.iter().for_each(|line| sidecar.send_raw(line));
    for code in ["bad-json", "unknown-type", "bad-request", "line-too-long"] {
        let error = sidecar.notice(|value| value["type"] == "error");
        assert_eq!((&error["error"]["code"], error["error"]["line"].is_u64()), (&json!(code), true), "{error}");
    }
    sidecar.send(json!({"type": "message", "role": "user"}));
    assert_eq!(told(&mut sidecar, "turn.start")["checkpoint"]["status"], "taken", "guarding went on");
    sidecar.send_raw(b"{\"type\":\"tool_u");
    assert_eq!(sidecar.finish(), 0);
    let ended = sidecar.notice(|notice| notice["notice"] == "stream.ended");
    let expected = json!({"malformed": 4, "unknown-type": 2, "foreign": 2, "too-long": 1});
    assert_eq!((&ended["skipped"], &ended["turns"]), (&expected, &json!(1)), "{ended}");
    let rest: Vec<&Value> = sidecar.notices.iter().filter(|value| value["type"] == "error").collect();
    assert!(rest.is_empty(), "{rest:?}");
}

fn tee(lab: &Lab, client: &str) -> Child {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["sidecar", "--from", client, "--tee"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_stream_is_passed_on_byte_for_byte() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut stream = b"\r\nno frame\n\xff\n".to_vec();
    for frame in SHAPES[0].begin.iter().chain(SHAPES[0].delete) {
        stream.extend(frame.replace("rm a.txt", "rm a.txt; psql -c 'DROP TABLE t'").bytes().chain(*b"\r\n"));
    }
    stream.extend(std::iter::repeat_n(b'x', 9 << 20));
    stream.extend(b"\n{\"type\":\"result\"}");
    let mut child = tee(&lab, "claude-code");
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let copy = std::thread::spawn(move || {
        let mut copy = Vec::new();
        output.read_to_end(&mut copy).map(|_| copy)
    });
    input.write_all(&stream).unwrap();
    drop(input);
    assert!(copy.join().unwrap().unwrap() == stream, "the copy differs");
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{said}");
    for part in ["might change a database", "not JSON", "more than the limit", "2 malformed, 1 too-long"] {
        assert!(said.contains(part), "no `{part}`: {said}");
    }
    assert_eq!(lab.piton(&["show", "1:a.txt"]).stdout, "one\n");
}

#[test]
fn a_reader_of_the_copy_that_goes_away_does_not_stop_the_guard() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut child = tee(&lab, "codex");
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    for frame in SHAPES[1].begin.iter().chain(SHAPES[1].delete) {
        writeln!(input, "{frame}").unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(lab.piton(&["list"]).stdout.contains("at the start of a turn"));
}

#[test]
fn a_stream_without_a_client_or_with_another_ones_is_told() {
    let lab = Lab::new();
    for (client, part) in [("claud", "there is no client `claud`"), ("goose", "does not know a JSON stream of goose")] {
        let refused = lab.piton(&["sidecar", "--from", client]);
        assert!(
            refused.code == 2 && refused.stderr.contains(part) && refused.stderr.contains("gemini-cli"),
            "{refused:?}"
        );
    }
    assert_eq!(lab.piton(&["sidecar", "--tee"]).code, 2);
    let mut child = tee(&lab, "pi");
    child.stdin.take().unwrap().write_all(SHAPES[0].begin[0].as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains("nothing was guarded"), "{said}");
}

#[test]
fn a_stream_chooses_its_workspace_unless_one_is_named() {
    let lab = Lab::new();
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("b"), "b").unwrap();
    lab.write("a", "a");
    let frame = json!({"type": "session", "id": "s", "cwd": other});
    for (args, root) in
        [(&["--from", "pi"][..], &other), (&["--from", "pi", "-w", lab.work.to_str().unwrap()], &lab.work)]
    {
        let mut sidecar = Sidecar::start(&lab, args);
        sidecar.send(frame.clone());
        let hello = told(&mut sidecar, "hello");
        assert_eq!((&hello["workspace"]["path"], &hello["run"]), (&json!(root), &json!("pi.s")), "{hello}");
        sidecar.send(json!({"type": "agent_start"}));
        assert_eq!(told(&mut sidecar, "turn.start")["checkpoint"]["files"], 1);
        assert_eq!(sidecar.finish(), 0);
    }
}
