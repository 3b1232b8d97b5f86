use proptest::prelude::*;

use super::*;

fn list(id: u64, cursor: Option<&str>) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"cursor": cursor}}).to_string().into_bytes()
}

fn listed(id: u64, tools: Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, "result": {"tools": tools}}).to_string().into_bytes()
}

fn call(tool: &str) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": tool, "arguments": {"path": "a"}}})
        .to_string()
        .into_bytes()
}

/// `r`: passes, `w`: is held, `x`: and reaches out.
fn word(tools: &mut Tools, tool: &str) -> &'static str {
    match tools.from_client(&call(tool)).as_slice() {
        [] => "r",
        [call] if call.external => "x",
        [call] => {
            assert_eq!(
                (call.tool.as_str(), &call.arguments, &call.id),
                (tool, &json!({"path": "a"}), &Some(json!("c")))
            );
            "w"
        }
        more => panic!("{more:?}"),
    }
}

#[test]
fn tools_write_until_the_server_says_otherwise() {
    let mut tools = Tools::default();
    assert_eq!(word(&mut tools, "read"), "w");
    // No request asked for this list.
    tools.from_server(&listed(1, json!([{"name": "read", "annotations": {"readOnlyHint": true}}])));
    assert_eq!(word(&mut tools, "read"), "w");
    assert_eq!(tools.from_client(&list(1, None)), []);
    // The server's own request with the same id is no answer.
    tools.from_server(
        br#"{"id":1,"method":"roots/list","result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}}"#,
    );
    assert_eq!(word(&mut tools, "read"), "w");
    let first = json!([
        {"name": "read", "annotations": {"readOnlyHint": true, "openWorldHint": true}},
        {"name": "bare"},
        {"name": "odd", "annotations": {"readOnlyHint": "yes"}},
        {"name": "both", "annotations": {"readOnlyHint": true, "destructiveHint": true}},
        {"name": 5}, 7,
        {"name": "add", "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true}},
        {"name": "send", "annotations": {"openWorldHint": true}},
    ]);
    tools.from_server(&listed(1, first));
    for (tool, expected) in
        [("read", "r"), ("bare", "w"), ("odd", "w"), ("both", "w"), ("add", "w"), ("send", "x"), ("?", "w")]
    {
        assert_eq!(word(&mut tools, tool), expected, "{tool}");
    }
    // A further page adds, a first page replaces, and a change forgets.
    tools.from_client(&list(2, Some("next")));
    tools.from_server(&listed(2, json!([{"name": "look", "annotations": {"readOnlyHint": true}}])));
    assert_eq!((word(&mut tools, "read"), word(&mut tools, "look")), ("r", "r"));
    tools.from_client(&list(3, None));
    tools.from_server(br#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}"#);
    assert_eq!(word(&mut tools, "read"), "r");
    tools.from_client(&list(4, None));
    tools.from_server(&listed(4, json!([{"name": "look", "annotations": {"readOnlyHint": true}}])));
    assert_eq!((word(&mut tools, "read"), word(&mut tools, "look")), ("w", "r"));
    tools.from_client(&list(5, None));
    tools.from_server(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    tools.from_server(&listed(5, json!([{"name": "look", "annotations": {"readOnlyHint": true}}])));
    assert_eq!(word(&mut tools, "look"), "w", "the list is from before the change");
}

#[test]
fn batches_and_refusals() {
    let mut tools = Tools::default();
    let batch = br#" [{"id":1,"method":"tools/call","params":{"name":"a"}},5,{"method":"tools/call","params":{}},{"id":2,"method":"ping"}]"#;
    let names: Vec<String> = tools.from_client(batch).into_iter().map(|call| call.tool).collect();
    assert_eq!(names, ["a", "?"]);
    let answer: Value = serde_json::from_slice(&refusal(batch, "no").unwrap()).unwrap();
    let failed =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "no"}], "isError": true}});
    assert_eq!(answer, json!([failed, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "no"}}]));
    let marked = [b"\xef\xbb\xbf", &batch[..]].concat();
    assert_eq!(refusal(&marked, "no"), refusal(batch, "no"), "a mark of the byte order changes nothing");
    let one: Value = serde_json::from_slice(&refusal(&call("a"), "no").unwrap()).unwrap();
    assert_eq!((&one["id"], &one["result"]["isError"]), (&json!("c"), &json!(true)));
    assert_eq!(refusal(br#"{"method":"tools/call","params":{"name":"a"}}"#, "no"), None);
    // Of a call that breaks off little is known, and the server may read more into it.
    let torn = tools.from_client(b"{\"method\":\"tools/call\",\"params\":{\"name\":\"a\"");
    assert!(torn.len() == 1 && torn[0].doubt && torn[0].tool == "a", "{torn:?}");
    let cut = tools.from_client(br#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"\ud83d"}}}"#);
    assert!(cut.len() == 1 && cut[0].doubt && cut[0].arguments["x"] == "\u{fffd}", "{cut:?}");
    assert_eq!(tools.from_client(b"{\"method\":\"tools/ca"), []);
}

proptest! {
    #[test]
    fn nothing_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
        method in "(tools/list|tools/call|notifications/tools/list_changed|ping)",
        params in "(null|5|\\[\\]|\\{\\}|\\{\"name\":5\\}|\\{\"name\":\"a\",\"arguments\":\\[\\]\\}|\\{\"cursor\":\\{\\}\\})",
        id in "(null|5|\"x\"|\\{\\}|\\[1\\])",
    ) {
        let mut tools = Tools::default();
        let text = format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params},\"result\":{params}}}");
        for line in [&bytes[..], text.as_bytes(), &text.as_bytes()[..text.len() / 2]] {
            tools.from_server(line);
            let calls = tools.from_client(line);
            prop_assert!(calls.is_empty() || method == "tools/call");
            tools.from_server(line);
            if let Some(answer) = refusal(line, "no") {
                prop_assert!(answer.ends_with(b"\n"));
            }
        }
    }
}
