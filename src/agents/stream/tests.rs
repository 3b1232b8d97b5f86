//! Each client's stream in small frames (a file written, a command that destroys), and frames that no client prints.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Returns what a stream tells, an event a line; or why a frame was passed over.
fn read(client: Client, frames: &[&str]) -> Vec<String> {
    let mut reader = StreamReader::new(client, "x").unwrap();
    let mut out = Vec::new();
    for frame in frames {
        match reader.read(frame.as_bytes()) {
            Ok(events) => out.extend(events.iter().map(super::super::tests::told)),
            Err((fault, error)) => {
                assert!(error.hint_text().is_some(), "{error}");
                out.push(format!("{} {}", fault.as_str(), error.code().as_str()));
            }
        }
    }
    out
}

fn check(client: Client, frames: &[&str], expected: &[&str]) {
    assert_eq!(read(client, frames), expected, "{}", client.name());
}

const CLAUDE: &[&str] = &[
    r#"{"type":"system","subtype":"hook_started","session_id":"s","hook_name":"SessionStart"}"#,
    r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s","tools":["Bash","Write"],"model":"m"}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_start"},"session_id":"s"}"#,
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"},"uuid":"1","session_id":"s"}"#,
    r#"{"type":"command_lifecycle","command_uuid":"1","state":"started","uuid":"2","session_id":"s"}"#,
    r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I write."},{"type":"tool_use","id":"u1","name":"Write","input":{"file_path":"/w/a","content":"x"}}]},"parent_tool_use_id":null,"session_id":"s"}"#,
    r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"u1","type":"tool_result","content":"done"}]},"session_id":"s"}"#,
    r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"u2","name":"Bash","input":{"command":"rm -rf out"}},{"type":"tool_use","id":"u3","name":"Bash","input":{"command":"ls"}}]},"session_id":"s"}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"u2","content":"no","is_error":true}]},"session_id":"s"}"#,
    r#"{"type":"user","message":{"role":"user","content":"a prompt that is told again"},"session_id":"s"}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#,
    r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#,
    r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"s"}"#,
];

#[test]
fn claude_code() {
    let expected = [
        "s x-1 /w: turn \"\"",
        "s x-1 /w: tool u1 Write []",
        "s x-1 /w: ok u1",
        "s x-1 /w: shell u2 [\"rm -rf out\"]",
        "s x-1 /w: shell u3 [\"ls\"]",
        "s x-1 /w: failed u2",
        "s x-1 /w: turn over",
        "s x-2 /w: turn \"\"",
    ];
    check(Client::ClaudeCode, CLAUDE, &expected);
}

const QWEN: &[&str] = &[
    r#"{"type":"system","subtype":"init","uuid":"1","session_id":"s","cwd":"/w","tools":["run_shell_command"]}"#,
    r#"{"type":"assistant","uuid":"2","session_id":"s","message":{"id":"2","content":[{"type":"tool_use","id":"c1","name":"run_shell_command","input":{"command":"rm -rf out","is_background":false}}]}}"#,
    r#"{"type":"user","uuid":"3","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"c1","is_error":false,"content":""}]}}"#,
    r#"{"type":"result","subtype":"success","session_id":"s","is_error":false}"#,
];

const CODEX: &[&str] = &[
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"i0","type":"reasoning","text":"hm"}}"#,
    r#"{"type":"item.started","item":{"id":"i1","type":"file_change","changes":[{"path":"/w/a","kind":"add"},{"path":"/w/b","kind":"delete"}],"status":"in_progress"}}"#,
    r#"{"type":"item.completed","item":{"id":"i1","type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"completed"}}"#,
    r#"{"type":"item.started","item":{"id":"i2","type":"command_execution","command":"/bin/bash -lc 'rm -r out'","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
    r#"{"type":"item.completed","item":{"id":"i2","type":"command_execution","command":"/bin/bash -lc 'rm -r out'","aggregated_output":"","exit_code":1,"status":"failed"}}"#,
    r#"{"type":"item.started","item":{"id":"i3","type":"mcp_tool_call","server":"fs","tool":"write_file","arguments":{"path":"c"},"status":"in_progress"}}"#,
    r#"{"type":"turn.completed","usage":{"input_tokens":1}}"#,
];

const GEMINI: &[&str] = &[
    r#"{"type":"init","timestamp":"2026-11-21T00:00:00Z","session_id":"s","model":"m"}"#,
    r#"{"type":"message","role":"user","content":"tidy up"}"#,
    r#"{"type":"message","role":"assistant","content":"I do","delta":true}"#,
    r#"{"type":"tool_use","tool_name":"write_file","tool_id":"w1","parameters":{"file_path":"a","content":"x"}}"#,
    r#"{"type":"tool_result","tool_id":"w1","status":"success","output":""}"#,
    r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"r1","parameters":{"command":"rm -rf out","dir_path":"sub"}}"#,
    r#"{"type":"tool_result","tool_id":"r1","status":"error","output":"no"}"#,
    r#"{"type":"result","status":"success","stats":{}}"#,
];

const OPENCODE: &[&str] = &[
    r#"{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"id":"p0","messageID":"m1","type":"step-start","snapshot":"ab"}}"#,
    r#"{"type":"tool_use","sessionID":"ses_1","part":{"id":"p1","type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"rm -rf out"},"metadata":{"exit":0}}}}"#,
    r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","type":"step-finish"}}"#,
    r#"{"type":"step_start","sessionID":"ses_1","part":{"messageID":"m2","type":"step-start"}}"#,
    r#"{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"done"}}"#,
    r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","type":"step-finish"}}"#,
];

const COPILOT: &[&str] = &[
    r#"{"type":"session.start","data":{"sessionId":"s","context":{"cwd":"/w"}},"id":"e0","parentId":null}"#,
    r#"{"type":"user.message","data":{"content":"tidy up","interactionId":"i1"},"id":"e1"}"#,
    r#"{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"e2"}"#,
    r#"{"type":"model.call_start","data":{"turnId":"0","model":"m"},"ephemeral":true,"id":"e3","parentId":"e2"}"#,
    r#"{"type":"model.call_finished","data":{"outcome":"success"},"ephemeral":true,"id":"e4"}"#,
    r#"{"type":"assistant.tool_call_delta","data":{"toolCallId":"c1","toolName":"bash","inputDelta":"{"},"ephemeral":true}"#,
    r#"{"type":"permission.requested","data":{"requestId":"p"},"ephemeral":true}"#,
    r#"{"type":"elicitation.requested","data":{"requestId":"q"},"ephemeral":true}"#,
    r#"{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"bash","arguments":{"command":"rm -rf out","description":"d"},"shellToolInfo":{"possiblePaths":["out"],"hasWriteFileRedirection":false}}}"#,
    r#"{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":""}}}"#,
    r#"{"type":"tool.execution_start","data":{"toolCallId":"c2","toolName":"apply_patch","arguments":"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n"}}"#,
    r#"{"type":"assistant.turn_end","data":{"turnId":"0"}}"#,
    r#"{"type":"session.usage_checkpoint","data":{"totalNanoAiu":9}}"#,
    r#"{"type":"result","sessionId":"s","exitCode":0}"#,
];

const PI: &[&str] = &[
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-11-21T00:00:00Z","cwd":"/w"}"#,
    r#"{"type":"agent_start"}"#,
    r#"{"type":"turn_start","turnIndex":0}"#,
    r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"rm -rf out"}}"#,
    r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[]},"isError":true}"#,
    r#"{"type":"turn_end"}"#,
    r#"{"type":"agent_end","messages":[]}"#,
];

const CLINE: &[&str] = &[
    r#"{"type":"hook_event","hookEventName":"agent_start","agentId":"agent_1","taskId":"conv_1","parentAgentId":null,"workspaceRoots":["/w"]}"#,
    r#"{"type":"agent_event","event":{"type":"iteration_start","iteration":1}}"#,
    r#"{"type":"agent_event","event":{"type":"content_start","contentType":"reasoning"}}"#,
    r#"{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolCallId":"c1","toolName":"run_commands","input":{"commands":["rm -rf out","ls"]}}}"#,
    r#"{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolCallId":"c1","toolName":"run_commands","error":"no"}}"#,
    r#"{"type":"agent_event","event":{"type":"iteration_end","iteration":1}}"#,
    r#"{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolCallId":"c2","toolName":"editor","input":{"path":"/w/a","new_text":"x"}}}"#,
    r#"{"type":"agent_event","event":{"type":"done","reason":"completed"}}"#,
    r#"{"type":"hook_event","hookEventName":"agent_end","agentId":"agent_1","taskId":"conv_1","parentAgentId":null}"#,
];

#[test]
fn the_others() {
    let over = |text: &str| format!("{text}: turn over");
    check(
        Client::QwenCode,
        QWEN,
        &["s x-1 /w: turn \"\"", "s x-1 /w: shell c1 [\"rm -rf out\"]", "s x-1 /w: ok c1", &over("s x-1 /w")],
    );
    let codex = [
        "t - -: session",
        "t x-1 -: turn \"\"",
        "t x-1 -: tool i1 file_change [\"/w/a\", \"/w/b\"] writes",
        "t x-1 -: ok i1",
        "t x-1 -: shell i2 [\"/bin/bash -lc 'rm -r out'\"] somewhere",
        "t x-1 -: failed i2 exit 1",
        "t x-1 -: tool i3 write_file []",
        "t x-1 -: turn over",
    ];
    check(Client::Codex, CODEX, &codex);
    let gemini = [
        "s - -: session",
        "s x-1 -: turn \"tidy up\"",
        "s x-1 -: tool w1 write_file []",
        "s x-1 -: ok w1",
        "s x-1 -: shell r1 [\"rm -rf out\"] in sub",
        "s x-1 -: failed r1",
        "s x-1 -: turn over",
    ];
    check(Client::GeminiCli, GEMINI, &gemini);
    let opencode = [
        "ses_1 x-1 -: turn \"\"",
        "ses_1 x-1 -: shell c1 [\"rm -rf out\"]",
        "ses_1 x-1 -: ok c1 exit 0",
        &over("ses_1 x-1 -"),
    ];
    check(Client::Opencode, OPENCODE, &opencode);
    let copilot = [
        "s - /w: session",
        "s x-1-i1 /w: turn \"tidy up\"",
        "s x-1-i1 /w: shell c1 [\"rm -rf out\"]",
        "s x-1-i1 /w: ok c1",
        "s x-1-i1 /w: tool c2 apply_patch [\"a\"]",
        "s x-1-i1 /w: turn over",
    ];
    check(Client::CopilotCli, COPILOT, &copilot);
    let pi = ["s - /w: session", "s x-1 /w: turn \"\"", "s x-1 /w: shell c1 [\"rm -rf out\"]", "s x-1 /w: failed c1"];
    check(Client::Pi, PI, &[&pi[..], &[&over("s x-1 /w")]].concat());
    let cline = [
        "agent_1 - /w: session",
        "agent_1 x-1 /w: turn \"\"",
        "agent_1 x-1 /w: shell c1 [\"rm -rf out\", \"ls\"] somewhere",
        "agent_1 x-1 /w: failed c1",
        "agent_1 x-1 /w: tool c2 editor [] writes",
        "agent_1 x-1 /w: turn over",
        "agent_1 - /w: session",
    ];
    check(Client::Cline, CLINE, &cline);
}

const ALL: [(Client, &[&str]); 8] = [
    (Client::ClaudeCode, CLAUDE),
    (Client::Codex, CODEX),
    (Client::GeminiCli, GEMINI),
    (Client::Opencode, OPENCODE),
    (Client::CopilotCli, COPILOT),
    (Client::QwenCode, QWEN),
    (Client::Cline, CLINE),
    (Client::Pi, PI),
];

#[test]
fn every_client_with_a_stream_is_here_and_opencode_alone_tells_nothing_before() {
    let names: Vec<&str> = ALL.iter().map(|(client, _)| client.name()).collect();
    assert_eq!(StreamReader::names(), names);
    for (client, frames) in ALL {
        let told = read(client, frames);
        let at =
            |what: &str| told.iter().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {told:?}"));
        assert!(at("turn \"") < at("shell"), "{told:?}");
        let done = clients::stream(client).unwrap().frames.iter().any(|(_, means)| *means == FrameMeaning::Done);
        assert_eq!(done, client == Client::Opencode);
    }
    let refused = StreamReader::new(Client::Goose, "x").err().unwrap();
    assert!(refused.text().contains("claude-code"), "{refused}");
}

#[test]
fn what_no_client_prints_is_passed_over() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check(
        Client::ClaudeCode,
        &[
            "",
            "null",
            "[{}]",
            "{\"type\":\"assis",
            &deep,
            "{}",
            r#"{"type":5}"#,
            r#"{"type":"item.started"}"#,
            "\u{feff}{}",
        ],
        &[
            "malformed bad-json",
            "malformed bad-json",
            "malformed bad-json",
            "malformed bad-json",
            "malformed bad-json",
            "unknown-type unknown-type",
            "unknown-type unknown-type",
            "unknown-type unknown-type",
            "unknown-type unknown-type",
        ],
    );
    let odd = [
        r#"{"type":"tool_use","parameters":{}}"#,
        r#"{"type":"tool_use","tool_name":[],"parameters":{}}"#,
        r#"{"type":"tool_use","tool_name":"x","tool_id":{}}"#,
        r#"{"type":"tool_use","tool_name":"x"}"#,
    ];
    check(
        Client::GeminiCli,
        &odd,
        &["foreign bad-request", "foreign bad-request", "foreign bad-request", "- - -: tool x []"],
    );
    let mut reader = StreamReader::new(Client::Codex, "x").unwrap();
    assert_eq!(reader.read(b"\xff{}").unwrap_err().1.code(), Code::BadUtf8);
    // Parts that are none, and a content that is no list.
    let parts = [
        r#"{"type":"assistant","message":{"content":[5,{"type":"tool_use","name":"Read","id":"u"},{"type":[]}]}}"#,
        r#"{"type":"assistant","message":{"content":{"type":"tool_use"}}}"#,
        r#"{"type":"assistant"}"#,
    ];
    check(Client::ClaudeCode, &parts, &["- - -: tool u Read []"]);
    // Ids that are none, or far too long, are not taken for one.
    let long = format!(r#"{{"type":"session","id":"{}"}}"#, "i".repeat(500));
    check(Client::Pi, &[r#"{"type":"session","id":[]}"#, &long], &["- - -: session", "- - -: session"]);
}

proptest! {
    #[test]
    fn nothing_panics(
        (at, frame) in (0..ALL.len()).prop_flat_map(|at| (Just(at), 0..ALL[at].1.len())),
        of in 0..ALL.len(),
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        cut in 0.0..1.0f64,
        place in 0.0..1.0f64,
        byte in any::<u8>(),
        swap in "(null|5|\\[\\]|\\{\\}|\"\"|true)",
    ) {
        let mut reader = StreamReader::new(ALL[of].0, "x").unwrap();
        let text = ALL[at].1[frame];
        let mut changed = text.as_bytes().to_vec();
        let index = (place * changed.len() as f64) as usize;
        changed[index] = byte;
        // One of its texts replaced by something else.
        let pieces: Vec<&str> = text.split('"').collect();
        let odd = ((place * (pieces.len() / 2) as f64) as usize) * 2 + 1;
        let other: String = pieces.iter().enumerate().map(|(n, piece)| match n % 2 {
            1 if n == odd => swap.clone(),
            1 => json!(piece.replace("\\n", "\n")).to_string(),
            _ => (*piece).to_owned(),
        }).collect();
        let end = (cut * text.len() as f64) as usize;
        for line in [&bytes[..], &changed, &text.as_bytes()[..end], other.as_bytes(), text.as_bytes()] {
            match reader.read(line) {
                Ok(events) => prop_assert!(events.iter().all(|event| event.client == ALL[of].0)),
                Err((_, error)) => prop_assert!(!error.text().is_empty()),
            }
        }
    }
}
