//! Reads each client's own conversation.

use super::*;

#[path = "../../../tests/blackbox/conversations.rs"]
mod told_by_clients;

#[test]
fn every_client_is_understood() {
    let names: Vec<&str> = told_by_clients::ALL.iter().map(|(name, _)| *name).collect();
    assert!(Client::ALL.iter().all(|client| names.contains(&client.name())), "{names:?}");
    for (name, conversation) in told_by_clients::ALL {
        let client = Client::named(name).unwrap();
        for (event, payload, expected) in *conversation {
            let read = client.parse(event, payload.as_bytes());
            let read = read.map_or_else(|error| error.text(), |event| told(&event));
            assert_eq!(read, *expected, "{name} {event}");
        }
    }
}

#[test]
fn a_patch_is_a_patch() {
    let table = [
        (Client::Codex, "PreToolUse", r#"{"tool_name":"apply_patch","tool_input":{"command":"*** Add File: a"}}"#),
        (Client::CopilotCli, "preToolUse", r#"{"toolName":"apply_patch","toolArgs":"*** Add File: a"}"#),
        (
            Client::Opencode,
            "tool.execute.before",
            r#"{"input":{"tool":"apply_patch"},"output":{"args":{"patchText":"*** Add File: a"}}}"#,
        ),
    ];
    for (client, event, payload) in table {
        let EventKind::Before { act: Act::Tool { input, paths, .. }, .. } =
            client.parse(event, payload.as_bytes()).unwrap().kind
        else {
            panic!("{}", client.name());
        };
        assert_eq!((input["patch"].as_str(), paths), (Some("*** Add File: a"), vec!["a".to_owned()]));
    }
}
