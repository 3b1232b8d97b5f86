//! Bytes that no client sends.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::Code;

#[test]
fn failures_have_codes() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let huge = vec![b' '; MAX_PAYLOAD + 1];
    let table: &[(&str, &[u8], Code)] = &[
        ("PreToolUse", b"", Code::BadJson),
        ("PreToolUse", b"{\"tool_name\":\"Ba", Code::BadJson),
        ("PreToolUse", b"null", Code::BadJson),
        ("PreToolUse", b"[{}]", Code::BadJson),
        ("PreToolUse", b"\xff{}", Code::BadUtf8),
        ("PreToolUse", deep.as_bytes(), Code::BadJson),
        ("PreToolUse", &huge, Code::LineTooLong),
        ("PreToolUse", b"{}", Code::BadRequest),
        ("PreToolUse", br#"{"tool_name":5}"#, Code::BadRequest),
        ("PreToolUse", br#"{"tool_name":""}"#, Code::BadRequest),
        ("PreToolUse", br#"{"session_id":[],"tool_name":"Bash"}"#, Code::BadRequest),
        ("PreToolUse", br#"{"hook_event_name":"Stop","tool_name":"Bash"}"#, Code::BadRequest),
        // Another client's.
        ("PreToolUse", br#"{"sessionId":"s","toolName":"bash","toolArgs":{"command":"rm x"}}"#, Code::BadRequest),
    ];
    for (event, payload, code) in table {
        let error = Client::ClaudeCode.parse(event, payload).unwrap_err();
        assert_eq!(error.code(), *code, "{}", String::from_utf8_lossy(&payload[..payload.len().min(80)]));
        assert!(error.hint_text().is_some());
    }
    assert_eq!(Client::named("claud").unwrap_err().code(), Code::BadRequest);
    assert_eq!(Client::named("claude").unwrap(), Client::ClaudeCode);
    for client in Client::ALL {
        assert_eq!(Client::named(client.name()).unwrap(), client);
    }
}

#[test]
fn odd_payloads_are_read() {
    let table = [
        // A shell tool without a line is a tool like any other: what it does is not known.
        (r#"{"tool_name":"Bash","tool_input":{"command":null}}"#, "- - -: tool Bash []"),
        (r#"{"tool_name":"Bash"}"#, "- - -: tool Bash []"),
        (r#"{"tool_name":"Bash","tool_input":"rm x"}"#, "- - -: tool Bash []"),
        (r#"{"tool_name":"Bash","tool_input":{"command":["a","b"]},"cwd":"relative"}"#, "- - -: shell [\"a\", \"b\"]"),
        ("\u{feff}{\"tool_name\":\"Bash\",\"session_id\":null}", "- - -: tool Bash []"),
    ];
    for (payload, expected) in table {
        assert_eq!(told(&Client::ClaudeCode.parse("PreToolUse", payload.as_bytes()).unwrap()), expected);
    }
    let unknown = Client::Codex.parse("Weird\u{1b}Event", b"{}").unwrap();
    let EventKind::Unused(why) = unknown.kind else { panic!("an unknown event is of no use") };
    assert!(why.contains("Codex") && why.contains("Weird\\u{1b}Event"), "{why}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "(\\[\"[a-z ]{0,9}\"\\]|/rollback [0-9]|/w/[a-z]{1,4}|Exit code: [0-9x]{1,3})".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let names = "(command|commands|input|output|args|prompt|tool_name|id|name|parts|text|error|info)";
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// The names at the root of all clients' payloads.
const NAMES: &str = "(session_id|sessionId|cwd|tool_name|toolName|tool_input|toolArgs|input|output|prompt|extra|tool_call|\
    tool_result|postToolUse|preToolUse|workspaceRoots|toolResult|tool_response|command|type|text|isError|directory)";

proptest! {
    #[test]
    fn nothing_panics(
        at in 0..Client::ALL.len(),
        event in 0..20usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        fields in proptest::collection::btree_map(NAMES, value(), 0..8),
    ) {
        let client = Client::ALL[at];
        let event = client.events().cycle().nth(event).unwrap();
        let text = json!(fields).to_string();
        for payload in [&bytes[..], text.as_bytes(), &text.as_bytes()[..text.len() / 2]] {
            if let Err(error) = client.parse(event, payload) {
                prop_assert!(!error.message().is_empty());
            }
        }
    }
}
