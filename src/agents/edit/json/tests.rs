use proptest::prelude::*;

use super::*;

fn entry(command: &str) -> NewValue {
    let handler = vec![("type", NewValue::Text("command".into())), ("command", NewValue::Text(command.into()))];
    NewValue::Map(vec![("hooks", NewValue::List(vec![NewValue::Map(handler)]))])
}

fn wanted(program: &str) -> Vec<(&'static str, NewValue)> {
    ["SessionStart", "PreToolUse", "Stop"].map(|event| (event, entry(&format!("{program} hook {event}")))).into()
}

fn ours(command: &str) -> bool {
    command.contains("piton hook ")
}

/// Put in, put in again, taken out: the very text.
fn round(text: &str) -> String {
    let merged = merge(Some(text), &wanted("piton"), Style::Groups, &ours).unwrap();
    let again = merge(Some(&merged), &wanted("piton"), Style::Groups, &ours).unwrap();
    assert_eq!(again, merged, "twice is once");
    let root = scan(&merged).unwrap();
    for (event, node) in wanted("piton") {
        let list = root.get("hooks").and_then(|hooks| hooks.get(event)).unwrap();
        assert_eq!(list.items().iter().filter(|entry| entry.value.value() == node.value()).count(), 1, "{merged}");
    }
    assert_eq!(remove(&merged, Style::Groups, &ours).unwrap().as_deref(), Some(text), "{merged}");
    merged
}

#[test]
fn samples_come_back() {
    let theirs = r#"{"matcher":"Bash","hooks":[{"type":"command","command":"theirs"}]}"#;
    let samples = [
        "{}".to_owned(),
        "{}\n".to_owned(),
        "{ }".to_owned(),
        "{\n}\n".to_owned(),
        "\u{feff}{\n  // nothing yet\n}".to_owned(),
        "{\"a\":1}".to_owned(),
        "{ \"a\": 1 }\n".to_owned(),
        "{ /* c */ \"a\": 1, }".to_owned(),
        "{\n  \"a\": 1\n}\n".to_owned(),
        "{\n  \"a\": 1,\n}".to_owned(),
        "{\r\n\t\"a\": 1, // why\r\n\t\"b\": [1, 2,], /* c */\r\n}\r\n".to_owned(),
        "{ // the head   \n  // about a\n  \"a\": {} // tail\n  // the end\n}\n\n".to_owned(),
        "{ // one\r\n  /* two\n lines */ \"a\": 1}".to_owned(),
        "{\"hooks\":{}}".to_owned(),
        "{\n    \"hooks\": {}\n}\n".to_owned(),
        "{\n  \"hooks\": {\n  }\n}\n".to_owned(),
        "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n".to_owned(),
        "{\n  \"hooks\": {\n    \"Stop\": [\n    ],\n    \"PreToolUse\": [ ]\n  }\n}\n".to_owned(),
        format!("{{\n  \"hooks\": {{\n    \"PreToolUse\": [\n      {theirs}\n    ]\n  }},\n  \"model\": \"x\"\n}}\n"),
        format!("{{\"hooks\":{{\"Notification\":[{theirs}],\"Stop\":[{theirs},{theirs}]}},\"b\":[]}}"),
        format!("{{\n\t\"hooks\": {{ // mine\n\t\t\"Stop\": [ // first\n\t\t\t{theirs}, // last\n\t\t],\n\t}},\n}}"),
    ];
    for sample in samples {
        round(&sample);
    }
}

#[test]
fn what_a_merge_looks_like() {
    let merged = round("{\n  // the theme\n  \"theme\": \"dark\" // I like it\n}\n");
    assert!(
        merged.starts_with("{\n  \"hooks\": {\n    \"SessionStart\": [\n      {\n        \"hooks\": [\n"),
        "{merged}"
    );
    assert!(merged.ends_with("    ]\n  },\n  // the theme\n  \"theme\": \"dark\" // I like it\n}\n"), "{merged}");
    let one_line = round("{ \"a\": 1 }");
    assert!(one_line.starts_with("{ \"hooks\": { \"SessionStart\": [ {") && !one_line.contains('\n'), "{one_line}");
    let crlf = round("{\r\n\t\"a\": 1\r\n}");
    assert!(crlf.contains("\r\n\t\t\"Stop\": [\r\n\t\t\t{\r\n") && !crlf.replace("\r\n", "").contains('\n'), "{crlf}");
    assert_eq!(round("{}").lines().next(), Some("{\"hooks\": {"));
}

#[test]
fn an_older_installation_is_replaced() {
    let text = "{\n  \"a\": 1\n}\n";
    let old = merge(Some(text), &wanted("/old/piton")[1..], Style::Groups, &ours).unwrap();
    let new = merge(Some(&old), &wanted("/new/piton"), Style::Groups, &ours).unwrap();
    assert!(!new.contains("/old/") && new.matches("/new/piton").count() == 3);
    assert_eq!(remove(&new, Style::Groups, &ours).unwrap().as_deref(), Some(text));
    assert_eq!(remove(&old, Style::Groups, &ours).unwrap().as_deref(), Some(text));
}

/// Everything else that changed in between stays.
#[test]
fn only_ours_goes() {
    let merged = merge(None, &wanted("piton"), Style::Groups, &ours).unwrap();
    let beside = r#"{ "type": "command", "command": "theirs" }"#;
    let edits: [(&str, &str, &str); 4] = [
        ("{\n  \"hooks\"", "{\n  \"model\": 1,\n  \"hooks\"", "{\n  \"model\": 1\n}\n"),
        ("\n  }\n}\n", "\n  },\n  \"model\": 1\n}\n", "{\n  \"model\": 1\n}\n"),
        // Theirs in our group, and after it.
        (
            "            \"command\": \"piton hook Stop\"\n          }",
            &format!("            \"command\": \"piton hook Stop\"\n          }},\n          {beside}"),
            &format!(
                "{{\n  \"hooks\": {{\n    \"Stop\": [\n      {{\n        \"hooks\": [\n          {beside}\n        ]\n      }}\n    ]\n  }}\n}}\n"
            ),
        ),
        ("\"Stop\": [", "\"Stop\": [7, ", "{\n  \"hooks\": {\n    \"Stop\": [7\n    ]\n  }\n}\n"),
    ];
    for (from, to, expected) in edits {
        let changed = merged.replacen(from, to, 1);
        assert_ne!(changed, merged);
        assert_eq!(remove(&changed, Style::Groups, &ours).unwrap().as_deref(), Some(expected), "{changed}");
    }
    // Written anew by a tool that sorts and squeezes.
    let squeezed = scan(&merged).unwrap().value().to_string();
    assert_eq!(merge(Some(&squeezed), &wanted("piton"), Style::Groups, &ours).unwrap(), squeezed, "it is there");
    assert!(!remove(&squeezed, Style::Groups, &ours).unwrap().unwrap_or_default().contains("piton"));
}

#[test]
fn other_styles() {
    let flat: Vec<_> = ["stop"]
        .map(|event| (event, NewValue::Map(vec![("command", NewValue::Text("piton hook stop".into()))])))
        .into();
    let made = merge(None, &flat, Style::FlatVersioned, &ours).unwrap();
    assert!(made.starts_with("{\n  \"version\": 1,\n  \"hooks\": {"));
    assert_eq!(remove(&made, Style::FlatVersioned, &ours).unwrap(), None);
    for text in [
        "{\n  \"version\": 1\n}\n",
        "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n",
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"theirs\" }]\n  }\n}\n",
    ] {
        let merged = merge(Some(text), &flat, Style::FlatVersioned, &ours).unwrap();
        assert_eq!(remove(&merged, Style::FlatVersioned, &ours).unwrap().as_deref(), Some(text), "{merged}");
    }
}

#[test]
fn what_is_malformed_is_refused() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let table = [
        ("{", Code::BadJson, "line 1"),
        ("{\n  \"a\": 1\n  \"b\": 2\n}", Code::BadJson, "line 3"),
        ("{\n  \"a\": ,\n}", Code::BadJson, "line 2"),
        ("{a: 1}", Code::BadJson, "name in quotes"),
        ("{\"a\" 1}", Code::BadJson, "colon"),
        ("{\"a\": \"x\n\"}", Code::BadJson, "misspelt"),
        ("{\"a\": \"x}", Code::BadJson, "no end"),
        ("{} /* x", Code::BadJson, "comment"),
        ("{}{}", Code::BadJson, "after the end"),
        (deep.as_str(), Code::BadJson, "deeply"),
        ("[]", Code::Conflict, "root"),
        ("{\"hooks\": []}", Code::Conflict, "not an object"),
        ("{\"hooks\": {}, \"hooks\": {}}", Code::Conflict, "twice"),
        ("{\"hooks\": {\"Stop\": [], \"Stop\": []}}", Code::Conflict, "twice"),
    ];
    for (text, code, part) in table {
        for error in [
            merge(Some(text), &wanted("piton"), Style::Groups, &ours).unwrap_err(),
            remove(text, Style::Groups, &ours).unwrap_err(),
        ] {
            assert_eq!(error.code(), code, "{text}");
            assert!(error.text().contains(part), "{text}: {}", error.text());
            assert!(error.hint_text().is_some_and(|hint| hint.contains("not changed")));
        }
    }
}

/// Switches beside the events stay; in place of an event's list they are refused.
#[test]
fn other_things_under_hooks() {
    round("{\n  \"hooks\": {\n    \"enabled\": true,\n    \"disabled\": []\n  }\n}\n");
    round("{\"hooks\": {\"theirs\": {\"command\": \"piton hook Stop\"}}}");
    let error = merge(Some("{\"hooks\": {\"Stop\": {}}}"), &wanted("piton"), Style::Groups, &ours).unwrap_err();
    assert!(error.code() == Code::Conflict && error.text().contains("`Stop`"), "{}", error.text());
}

/// Objects as people write them: blanks, comments and trailing commas anywhere.
fn json() -> impl Strategy<Value = String> {
    let blank = || "(|| |\n|\r\n\t|  // c \n| /\\* d \\*/ |\n\n  )";
    let leaf = prop_oneof![Just("1".to_owned()), Just("\"t // \\\" x\"".to_owned()), Just("null".to_owned())];
    let value = leaf.prop_recursive(3, 16, 3, move |inner| {
        let list = (proptest::collection::vec((blank(), inner.clone()), 0..3), blank(), any::<bool>());
        list.prop_map(|(items, end, comma)| joined('[', items, ']', &end, comma))
    });
    let theirs = Just(r#"{ "hooks": [ {"command": "theirs"}]}"#.to_owned());
    let list = (proptest::collection::vec((blank(), theirs), 0..3), blank(), any::<bool>());
    let list = list.prop_map(|(items, end, comma)| joined('[', items, ']', &end, comma));
    let events = proptest::collection::btree_map("(Stop|PreToolUse|Other)", (blank(), list), 0..3);
    let hooks = (events, blank(), any::<bool>()).prop_map(|(events, end, comma)| {
        let items = events.into_iter().map(|(event, (lead, list))| (lead, format!("\"{event}\": {list}"))).collect();
        joined('{', items, '}', &end, comma)
    });
    let members = proptest::collection::btree_map("[a-g]", (blank(), value), 0..4);
    (members, proptest::option::of((blank(), hooks)), 0..4usize, blank(), any::<bool>(), blank()).prop_map(
        |(members, hooks, at, end, comma, tail)| {
            let mut items: Vec<_> =
                members.into_iter().map(|(key, (lead, value))| (lead, format!("\"{key}\":{value}"))).collect();
            if let Some((lead, hooks)) = hooks {
                items.insert(at.min(items.len()), (lead, format!("\"hooks\" : {hooks}")));
            }
            joined('{', items, '}', &end, comma) + &tail
        },
    )
}

fn joined(open: char, items: Vec<(String, String)>, close: char, end: &str, comma: bool) -> String {
    let some = !items.is_empty() && comma;
    let items: Vec<String> = items.into_iter().map(|(lead, item)| lead + &item).collect();
    format!("{open}{}{}{end}{close}", items.join(","), if some { "," } else { "" })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_text_comes_back(text in json()) {
        round(&text);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[{}\\[\\]\",:/* \n\\\\a1é]{0,40}") {
        if let Ok(merged) = merge(Some(&text), &wanted("piton"), Style::Groups, &ours) {
            prop_assert!(scan(&merged).is_ok());
            if !text.trim().is_empty() {
                prop_assert_eq!(remove(&merged, Style::Groups, &ours).unwrap(), Some(text));
            }
        }
    }
}
