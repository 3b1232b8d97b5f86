//! The contents of tool calls: command lines, queries, code, and other calls.

use serde_json::Value;

use super::names::{runs_code, takes_queries};
use crate::model::text::shell_word;

/// Most calls that one call carries.
const MAX_CALLS: usize = 64;

/// Returns the command line of a shell tool: a string, or an argument vector.
pub(super) fn command_line(input: &Value) -> Option<String> {
    // `local_shell` has its command in an action.
    let fields = input.get("action").filter(|action| action.is_object()).unwrap_or(input);
    let value = ["command", "cmd", "script", "commands", "CommandLine"].iter().find_map(|name| fields.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// Returns the calls that a call is a wrapper of: their tools and inputs.
pub(super) fn wrapped(tool: &str, input: &Value) -> Vec<(String, Value)> {
    let plain: String = tool.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let text =
        |value: &Value, names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_str()).map(str::to_owned);
    let inner = |call: &Value| {
        let name = text(call, &["recipient_name", "tool_name", "toolName", "tool", "name"])?;
        let server = text(call, &["server_name", "serverName", "server"]);
        let arguments = ["parameters", "arguments", "args", "input", "params"].iter().find_map(|name| call.get(name));
        let arguments = match arguments {
            // Some clients send JSON in a text.
            Some(Value::String(json)) => serde_json::from_str(json).unwrap_or(Value::Null),
            Some(value) => value.clone(),
            None => Value::Null,
        };
        Some((server.map_or(name.clone(), |server| format!("{server}__{name}")), arguments))
    };
    match plain.as_str() {
        "multitooluseparallel" | "parallel" | "batch" | "batchtool" | "invocations" => {
            let list =
                ["tool_uses", "tool_calls", "calls", "invocations"].iter().find_map(|name| input.get(name)?.as_array());
            list.into_iter().flatten().filter_map(inner).take(MAX_CALLS).collect()
        }
        "usemcptool" | "callmcptool" | "mcpcall" | "calltool" | "executetool" | "mcptoolcall" | "runmcp" => {
            inner(input).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the texts of queries: in fields that are named so, or in the field `query` of a tool of a database.
pub(super) fn queries<'i>(tool: &str, input: &'i Value) -> Vec<&'i str> {
    let mut names = vec!["sql", "sql_query", "sqlQuery", "sql_statement", "statements", "queries"];
    if takes_queries(tool) {
        names.extend(["query", "statement", "migration", "script"]);
    }
    let texts = |value: &'i Value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect::<Vec<_>>(),
    };
    names.iter().filter_map(|name| input.get(name)).flat_map(texts).collect()
}

/// Returns the command line that runs the code of a tool call, if the tool runs code.
pub(super) fn code(tool: &str, input: &Value) -> Option<String> {
    let code =
        ["code", "python_code", "source_code", "javascript"].iter().find_map(|name| input.get(name)?.as_str())?;
    if !runs_code(tool) {
        return None;
    }
    let said = ["language", "lang", "runtime", "kernel"].iter().find_map(|name| input.get(name)?.as_str());
    let language = said.unwrap_or(tool).to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| language.contains(name));
    let program = match () {
        () if is(&["javascript", "node", "typescript", "deno", "bun"]) || language == "js" || language == "ts" => {
            "node -e"
        }
        () if is(&["ruby"]) => "ruby -e",
        () if is(&["perl"]) => "perl -e",
        () if is(&["php"]) => "php -r",
        () if is(&["bash", "shell", "zsh"]) || language == "sh" => "bash -c",
        () => "python3 -c",
    };
    Some(format!("{program} {}", shell_word(code)))
}
