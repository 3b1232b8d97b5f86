use proptest::prelude::*;

use super::*;

fn wanted(program: &str) -> Vec<(&'static str, NewValue)> {
    let entry = |event: &str| {
        let command = NewValue::Text(format!("{program} hook {event}"));
        NewValue::Map(vec![("command", command), ("timeout", NewValue::Number(10))])
    };
    ["on_session_start", "pre_tool_call"].map(|event| (event, entry(event))).into()
}

fn ours(command: &str) -> bool {
    command.contains("piton hook ")
}

fn round(text: &str) -> String {
    let merged = merge(Some(text), &wanted("piton"), &ours).unwrap();
    assert_eq!(merge(Some(&merged), &wanted("piton"), &ours).unwrap(), merged, "twice is once");
    assert_eq!(remove(&merged, &ours).unwrap().as_deref(), Some(text), "{merged}");
    merged
}

#[test]
fn samples_come_back() {
    for sample in [
        "model: x\n",
        "model: x",
        "# only this\n",
        "---\nmodel: x # why\n\n# the end\n",
        "model: x\r\nlist:\r\n- a\r\n- b\r\n",
        "hooks: {}\n",
        "hooks: {}   # none yet\nmodel: x\n",
        "hooks:\nmodel: x\n",
        "hooks: null",
        "hooks: ~ # none\n",
        "hooks:\n  pre_tool_call:\n    - matcher: terminal\n      command: theirs\nmodel: x\n",
        "hooks:\n  # theirs\n  pre_tool_call:\n  # why\n  - command: theirs\n\n  other:\n  - command: theirs\n# model\nmodel: x",
        "hooks:\n    pre_tool_call: []\n    on_session_start: []  # none\n    other:\n        - command: theirs\n",
        "text: |\n  hooks:\n    none\nhooks:\n  other: [{command: theirs}]\n",
    ] {
        round(sample);
    }
}

#[test]
fn what_a_merge_looks_like() {
    assert_eq!(
        round("model: x\n"),
        "model: x\nhooks:\n  on_session_start:\n    - command: \"piton hook on_session_start\"\n      timeout: 10\n  \
         pre_tool_call:\n    - command: \"piton hook pre_tool_call\"\n      timeout: 10\n"
    );
    assert!(round("hooks: {} # none\n").starts_with("hooks: #piton# {} # none\n  on_session_start:\n"));
    assert!(round("a: 1\r\n").contains("hooks:\r\n  on_session_start:\r\n"));
}

#[test]
fn an_older_installation_is_replaced() {
    let old = merge(Some("a: 1\n"), &wanted("/old/piton"), &ours).unwrap();
    let new = merge(Some(&old), &wanted("/new/piton"), &ours).unwrap();
    assert!(!new.contains("/old/") && new.matches("/new/piton").count() == 2);
    assert_eq!(remove(&new, &ours).unwrap().as_deref(), Some("a: 1\n"));
}

/// The client writes its file anew now and then: sorted, without comments, other quotes, long lines broken.
#[test]
fn only_ours_goes() {
    let table = [
        (
            "hooks:\n  pre_tool_call:\n  - command: /opt/piton hook\n      pre_tool_call\n    timeout: 10\n  - command: theirs\nmodel: x\n",
            Some("hooks:\n  pre_tool_call:\n  - command: theirs\nmodel: x\n"),
        ),
        ("hooks:\n  pre_tool_call:\n  - timeout: 10\n    command: 'piton hook pre_tool_call'\n", None),
        (
            "hooks: #piton# {}\n  pre_tool_call:\n    - command: piton hook pre_tool_call\n  mine:\n    - command: theirs\n",
            Some("hooks: #piton# {}\n  mine:\n    - command: theirs\n"),
        ),
        ("model: x\n", Some("model: x\n")),
    ];
    for (text, expected) in table {
        assert_eq!(remove(text, &ours).unwrap().as_deref(), expected, "{text}");
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    let table = [
        ("a: [1\n", Code::BadRequest),
        ("a: 1\n---\nb: 2\n", Code::BadRequest),
        ("{a: 1}\n", Code::Conflict),
        ("\"hooks\": {}\n", Code::Conflict),
        ("hooks: {pre_tool_call: []}\n", Code::Conflict),
        ("hooks: [1]\n", Code::Conflict),
        ("hooks: text\n", Code::Conflict),
        ("hooks:\n- 1\n", Code::Conflict),
        ("hooks:\n  pre_tool_call: {a: 1}\n", Code::Conflict),
        ("hooks: &x {}\n", Code::Conflict),
        ("a: 1\nb: 2\r\nc: 3\n", Code::Conflict),
        ("text\n", Code::Conflict),
    ];
    for (text, code) in table {
        let error = merge(Some(text), &wanted("piton"), &ours).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {}", error.text());
        let hint = error.hint_text().unwrap_or_default();
        assert!(code == Code::BadRequest || hint.contains("hooks:\n  on_session_start:\n"), "{text}: {hint}");
    }
    let flow = "hooks: {pre_tool_call: [{command: piton hook pre_tool_call}]}\n";
    assert_eq!(remove(flow, &ours).unwrap_err().code(), Code::Conflict);
}

/// Lines as a configuration has them, in any order.
fn yaml() -> impl Strategy<Value = String> {
    let line = "(# c|  # d|||model: x|nested:\n  a: 1\n  b:\n    - c\n    - d|list:\n- 1\n- 2)";
    let hooks = "(hooks:|hooks: \\{\\}|hooks:  ~ # e|hooks:\n  # f\n  pre_tool_call:\n    - command: theirs\n      timeout: 1|\
        hooks:\n    other:\n    - command: theirs\n    pre_tool_call: \\[\\]\n\n|)";
    let lines = proptest::collection::vec(line, 0..3);
    (lines.clone(), hooks, lines, any::<bool>(), any::<bool>()).prop_map(|(before, hooks, after, ends, crlf)| {
        let mut lines = before;
        lines.push(hooks);
        lines.extend(after);
        let mut seen = Vec::new();
        // A name is there once.
        lines.retain(|line| {
            line.trim().is_empty()
                || line.contains('#')
                || !seen.contains(line) && {
                    seen.push(line.clone());
                    true
                }
        });
        let mut text = lines.join("\n");
        if ends {
            text.push('\n');
        }
        if crlf { text.replace('\n', "\r\n") } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_text_comes_back(text in yaml()) {
        match merge(Some(&text), &wanted("piton"), &ours) {
            Ok(merged) if !text.trim().is_empty() => {
                prop_assert_eq!(remove(&merged, &ours).unwrap(), Some(text), "{}", merged);
            }
            Ok(merged) => prop_assert_eq!(remove(&merged, &ours).unwrap(), None),
            Err(error) => prop_assert!(matches!(error.code(), Code::Conflict | Code::BadRequest)),
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[a-c:{}\\[\\]\"'#&|> \n\t-]{0,40}(hooks:)?[a-c: \n-]{0,10}") {
        if let Ok(merged) = merge(Some(&text), &wanted("piton"), &ours) && !text.trim().is_empty() {
            prop_assert_eq!(remove(&merged, &ours).unwrap(), Some(text));
        }
    }
}
