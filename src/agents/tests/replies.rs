//! The replies to each client.

use serde_json::Value;

use super::*;

fn decisions() -> Vec<Decision> {
    let text = |text: &str| Some(text.to_owned());
    let empty = Decision::default();
    vec![
        empty.clone(),
        Decision { deny: text("no \"quotes\"\n\u{1b}"), ..empty.clone() },
        Decision { context: vec!["first".into(), "second".into()], ..empty.clone() },
        Decision { message: text("piton has failed"), ..empty.clone() },
        Decision { answer: text("3 checkpoints"), ..empty.clone() },
        Decision {
            deny: text("no"),
            context: vec!["note".into()],
            message: text("piton has failed"),
            answer: text("3 checkpoints"),
            awaits_end: true,
            variables: vec![("A".into(), "b".into())],
        },
    ]
}

/// Says no to a tool or a prompt.
fn refuses(reply: &Value) -> bool {
    let no = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|word| matches!(word, "deny" | "block"));
    no(reply.get("permissionDecision"))
        || no(reply.get("decision"))
        || no(reply.get("permission"))
        || no(reply.pointer("/hookSpecificOutput/permissionDecision"))
        || reply.get("deny").is_some()
        || reply.get("answer").is_some()
        || reply.get("cancel") == Some(&Value::Bool(true))
        || reply.get("continue") == Some(&Value::Bool(false))
}

#[test]
fn every_reply_is_json_and_refuses_only_what_is_refused() {
    for client in Client::ALL {
        for event in client.events() {
            let step = profile(client).shape.step(event).unwrap();
            for decision in decisions() {
                let reply = client.reply(event, &decision);
                let shown = format!("{} {event} {decision:?} {reply:?}", client.name());
                let Some(reply) = reply else {
                    let told = decision.deny.is_some() && step == Moment::Before
                        || decision.answer.is_some() && step == Moment::TurnStart && client.answers()
                        || !decision.context.is_empty() && client.reaches_model(event);
                    assert!(!told, "{shown}");
                    continue;
                };
                let value: Value = serde_json::from_str(&reply).unwrap();
                assert!(value.is_object() && !reply.contains('\n'), "{shown}");
                assert_ne!(decision, Decision::default(), "{shown}");
                let may = decision.deny.is_some() && matches!(step, Moment::Before | Moment::Line)
                    || decision.answer.is_some() && matches!(step, Moment::TurnStart | Moment::Ask);
                assert_eq!(refuses(&value), may && refuses_here(client, step), "{shown}");
                assert!(!reply.contains("\"allow\"") && !reply.contains("\"approve\""), "{shown}");
            }
        }
        assert_eq!(client.reply("no such event", &decisions()[5]), None);
    }
}

fn refuses_here(client: Client, step: Moment) -> bool {
    step == Moment::Before || client.answers()
}

#[test]
fn the_words_of_each_client() {
    let all = decisions();
    let (deny, context, message, answer) = (&all[1], &all[2], &all[3], &all[4]);
    let no = r#""no \"quotes\"\n\u001b""#;
    let specific =
        |event: &str, inner: &str| format!(r#"{{"hookSpecificOutput":{{{inner},"hookEventName":"{event}"}}}}"#);
    let claude_no = format!(r#""permissionDecision":"deny","permissionDecisionReason":{no}"#);
    let claude_note = r#""additionalContext":"first\nsecond""#;
    let block = r#"{"decision":"block","reason":"3 checkpoints"}"#.to_owned();
    let shown = r#"{"systemMessage":"piton has failed"}"#.to_owned();
    let none = String::new;
    let table: Vec<(Client, &str, &Decision, String)> = vec![
        (Client::ClaudeCode, "PreToolUse", deny, specific("PreToolUse", &claude_no)),
        (Client::ClaudeCode, "PostToolUse", deny, none()),
        (Client::ClaudeCode, "PostToolUse", context, specific("PostToolUse", claude_note)),
        (Client::ClaudeCode, "UserPromptSubmit", answer, block.clone()),
        (Client::ClaudeCode, "Stop", message, shown.clone()),
        (Client::ClaudeCode, "Stop", answer, none()),
        (Client::Codex, "PreToolUse", context, specific("PreToolUse", claude_note)),
        (Client::QwenCode, "UserPromptSubmit", answer, block),
        (Client::QwenCode, "PreToolUse", context, none()),
        (Client::QwenCode, "PostToolUseFailure", context, specific("PostToolUseFailure", claude_note)),
        (Client::Droid, "PreToolUse", context, none()),
        (Client::Droid, "PostToolUse", context, specific("PostToolUse", claude_note)),
        (Client::Droid, "PreToolUse", deny, specific("PreToolUse", &claude_no)),
        (Client::GeminiCli, "BeforeTool", deny, format!(r#"{{"decision":"deny","reason":{no}}}"#)),
        (Client::GeminiCli, "BeforeTool", context, r#"{"systemMessage":"first\nsecond"}"#.into()),
        (Client::GeminiCli, "AfterTool", context, specific("AfterTool", claude_note)),
        (Client::GeminiCli, "BeforeAgent", answer, r#"{"decision":"deny","reason":"3 checkpoints"}"#.into()),
        (Client::CopilotCli, "preToolUse", deny, format!("{{{claude_no}}}")),
        (Client::CopilotCli, "preToolUse", context, format!("{{{claude_note}}}")),
        (Client::CopilotCli, "userPromptSubmitted", answer, none()),
        (Client::Cline, "PreToolUse", deny, format!(r#"{{"cancel":true,"errorMessage":{no}}}"#)),
        (Client::Cline, "PostToolUse", context, r#"{"cancel":false,"contextModification":"first\nsecond"}"#.into()),
        (Client::HermesAgent, "pre_tool_call", deny, format!(r#"{{"decision":"block","reason":{no}}}"#)),
        (Client::HermesAgent, "pre_tool_call", context, none()),
        (Client::HermesAgent, "pre_llm_call", context, r#"{"context":"first\nsecond"}"#.into()),
        (Client::Opencode, "tool.execute.before", deny, format!(r#"{{"deny":{no}}}"#)),
        (Client::Opencode, "tool.execute.before", context, none()),
        (Client::Pi, "tool_result", context, r#"{"context":"first\nsecond"}"#.into()),
        (Client::Pi, "input", answer, r#"{"answer":"3 checkpoints"}"#.into()),
        (
            Client::Cursor,
            "preToolUse",
            deny,
            format!(r#"{{"agent_message":{no},"permission":"deny","user_message":{no}}}"#),
        ),
        (Client::Cursor, "beforeSubmitPrompt", answer, r#"{"continue":false,"user_message":"3 checkpoints"}"#.into()),
        (Client::Crush, "PreToolUse", context, r#"{"context":"first\nsecond","version":1}"#.into()),
        (Client::Goose, "PreToolUse", context, none()),
        (Client::KimiCode, "PreToolUse", deny, format!(r#"{{"hookSpecificOutput":{{{claude_no}}}}}"#)),
        (Client::KimiCode, "PostToolUse", context, none()),
        (Client::KimiCode, "UserPromptSubmit", context, r#"{"message":"first\nsecond"}"#.into()),
        (Client::KimiCode, "UserPromptSubmit", message, none()),
        (
            Client::KimiCode,
            "UserPromptSubmit",
            answer,
            r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"3 checkpoints"}}"#.into(),
        ),
        (Client::Goose, "PreToolUse", deny, format!(r#"{{"decision":"block","reason":{no}}}"#)),
    ];
    for (client, event, decision, expected) in table {
        let reply = client.reply(event, decision).unwrap_or_default();
        let (reply, expected): (Value, Value) =
            (serde_json::from_str(&reply).unwrap_or_default(), serde_json::from_str(&expected).unwrap_or_default());
        assert_eq!(reply, expected, "{} {event}", client.name());
    }
}
