//! The trail of a client's work beside its events: its process, and the files in which it keeps its sessions.
//!
//! Only uses of tools that change files or run commands count: a client that reads and answers changes nothing. Lines that are not
//! understood tell nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::client::Client;
use super::clients::profile;
use super::install::Spot;
use crate::sys::clock::ms_of;
use crate::sys::running::file_name;

/// The programs that run a client's script.
const RUNNERS: &[&str] = &["bun", "deno", "node", "nodejs", "python", "python3", "uv"];

/// A level below a client's directory, on the way to the files of its sessions.
#[derive(Clone, Copy, Debug)]
pub enum TrailLevel {
    /// A directory of this name.
    Named(&'static str),
    /// Any directory. The last names come first, since dates sort.
    Any,
    /// A directory named after the path of a project, by this rule. Behind the name, a path below it may follow.
    Project(fn(&str) -> String),
    /// Files whose names end so.
    Files(&'static str),
}

/// A trace of a client's work.
#[derive(Clone, Copy, Debug)]
pub enum Trace {
    /// Files of sessions, with a line of JSON for each step.
    Sessions(Spot, &'static [TrailLevel]),
    /// A file that grows while the client works: for the user, whatever the project.
    UserFile(Spot),
    /// The same in each project.
    ProjectFile(Spot),
}

/// The trail of one client.
struct Trail {
    traces: &'static [Trace],
    /// The tools that change files or run commands, as the session's lines name them.
    tools: &'static [&'static str],
    /// The part of its script's path that no other program has.
    package: Option<&'static str>,
}

const NOTHING: Trail = Trail { traces: &[], tools: &[], package: None };

const fn spot(env: Option<&'static str>, dir: &'static str, path: &'static str) -> Spot {
    Spot { env, dir, path }
}

const CLAUDE_CODE: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(Some("CLAUDE_CONFIG_DIR"), ".claude", ""),
        &[TrailLevel::Named("projects"), TrailLevel::Project(dashed), TrailLevel::Files(".jsonl")],
    )],
    tools: &["Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"],
    package: Some("@anthropic-ai/claude-code/"),
};

const CODEX: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(Some("CODEX_HOME"), ".codex", ""),
        &[
            TrailLevel::Named("sessions"),
            TrailLevel::Any,
            TrailLevel::Any,
            TrailLevel::Any,
            TrailLevel::Files(".jsonl"),
        ],
    )],
    tools: &["apply_patch", "exec_command", "local_shell_call", "shell", "shell_command"],
    package: Some("@openai/codex/"),
};

const GEMINI_CLI: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(None, ".gemini", ""),
        &[TrailLevel::Named("tmp"), TrailLevel::Any, TrailLevel::Named("chats"), TrailLevel::Files(".jsonl")],
    )],
    tools: &["replace", "run_shell_command", "write_file"],
    package: Some("@google/gemini-cli/"),
};

const QWEN_CODE: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(None, ".qwen", ""),
        &[
            TrailLevel::Named("projects"),
            TrailLevel::Project(dashed),
            TrailLevel::Named("chats"),
            TrailLevel::Files(".jsonl"),
        ],
    )],
    tools: &["edit", "replace", "run_shell_command", "write_file"],
    package: Some("@qwen-code/qwen-code/"),
};

const DROID: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(None, ".factory", ""),
        &[TrailLevel::Named("sessions"), TrailLevel::Project(dashed), TrailLevel::Files(".jsonl")],
    )],
    tools: &["ApplyPatch", "Create", "Edit", "Execute", "MultiEdit"],
    package: None,
};

const COPILOT_CLI: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(Some("COPILOT_HOME"), ".copilot", ""),
        &[TrailLevel::Named("session-state"), TrailLevel::Any, TrailLevel::Files("events.jsonl")],
    )],
    tools: &["apply_patch", "bash", "create", "edit"],
    package: Some("@github/copilot/"),
};

const PI: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(Some("PI_CODING_AGENT_DIR"), ".pi/agent", ""),
        &[TrailLevel::Named("sessions"), TrailLevel::Project(dashed_between), TrailLevel::Files(".jsonl")],
    )],
    tools: &["bash", "edit", "write"],
    package: Some("/pi-coding-agent/"),
};

const OPENCODE: Trail = Trail {
    traces: &[Trace::UserFile(spot(Some("XDG_DATA_HOME"), ".local/share", "opencode/opencode.db-wal"))],
    package: Some("/opencode-ai/"),
    ..NOTHING
};

const GOOSE: Trail = Trail {
    traces: &[Trace::UserFile(spot(Some("XDG_DATA_HOME"), ".local/share", "goose/sessions/sessions.db-wal"))],
    ..NOTHING
};

const HERMES_AGENT: Trail =
    Trail { traces: &[Trace::UserFile(spot(Some("HERMES_HOME"), ".hermes", "state.db-wal"))], ..NOTHING };

const CLINE: Trail = Trail { traces: &[Trace::UserFile(spot(None, ".cline", "data/db/sessions.db-wal"))], ..NOTHING };

const KIMI_CODE: Trail = Trail {
    traces: &[Trace::Sessions(
        spot(Some("KIMI_CODE_HOME"), ".kimi-code", ""),
        &[
            TrailLevel::Named("sessions"),
            TrailLevel::Any,
            TrailLevel::Any,
            TrailLevel::Named("agents"),
            TrailLevel::Any,
            TrailLevel::Files("wire.jsonl"),
        ],
    )],
    tools: &["Bash", "Edit", "Write"],
    package: Some("@moonshot-ai/kimi-code/"),
};

const CRUSH: Trail = Trail { traces: &[Trace::ProjectFile(spot(None, ".crush", "crush.db-wal"))], ..NOTHING };

fn trail(client: Client) -> &'static Trail {
    match client {
        Client::ClaudeCode => &CLAUDE_CODE,
        Client::Codex => &CODEX,
        Client::GeminiCli => &GEMINI_CLI,
        Client::QwenCode => &QWEN_CODE,
        Client::Droid => &DROID,
        Client::CopilotCli => &COPILOT_CLI,
        Client::Pi => &PI,
        Client::Opencode => &OPENCODE,
        Client::Goose => &GOOSE,
        Client::HermesAgent => &HERMES_AGENT,
        Client::Crush => &CRUSH,
        Client::Cline => &CLINE,
        Client::KimiCode => &KIMI_CODE,
        // By its process alone.
        Client::Cursor => &NOTHING,
    }
}

/// Names a project as Claude Code, Qwen Code and droid do.
fn dashed(path: &str) -> String {
    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Names a project as pi does, all but the end.
fn dashed_between(path: &str) -> String {
    format!("--{}", path.trim_start_matches('/').replace(['/', ':'], "-"))
}

impl Client {
    /// Returns the traces of the client's work.
    pub fn traces(self) -> &'static [Trace] {
        trail(self).traces
    }

    /// Returns true if a process is the client, by its program or by the script that it runs.
    pub fn runs_as(self, words: &[String], program: Option<&Path>) -> bool {
        // Some give their process a title of their own.
        let own = [profile(self).program, self.name()];
        let named = |path: &str| own.contains(&file_name(path));
        let Some(first) = words.first() else { return false };
        if named(first) || program.and_then(Path::to_str).is_some_and(named) {
            return true;
        }
        let runner = file_name(first).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let script = words.iter().skip(1).find(|word| !word.starts_with('-'));
        let package = trail(self).package;
        RUNNERS.contains(&runner)
            && script.is_some_and(|script| named(script) || package.is_some_and(|package| script.contains(package)))
    }

    /// Returns the times, in milliseconds since the epoch, of the uses of tools that a line of a session tells of: those that change
    /// files or run commands.
    pub fn acts(self, line: &[u8]) -> Vec<i64> {
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return Vec::new() };
        let tools = trail(self).tools;
        let text = |value: &Value| value.get("timestamp").and_then(Value::as_str).and_then(ms_of);
        let time = |value: &Value| text(value).or_else(|| value.get("time")?.as_i64());
        let used = uses(&line).filter(|(name, _)| tools.contains(name));
        used.filter_map(|(_, of)| time(of).or_else(|| time(&line))).collect()
    }
}

/// Returns the name of each tool that a line tells the use of, with the value that may have its own time.
fn uses(line: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let message = line.get("message");
    // Claude Code and droid; pi.
    let content = items(message.and_then(|message| message.get("content"))).iter();
    let content = content.filter(|item| matches!(item["type"].as_str(), Some("tool_use" | "toolCall")));
    // Qwen Code.
    let parts = items(message.and_then(|message| message.get("parts"))).iter();
    let parts = parts.filter_map(|part| part.get("functionCall"));
    // Gemini CLI.
    let calls = items(line.get("toolCalls")).iter();
    let named = content.chain(parts).chain(calls).filter_map(|item| Some((item.get("name")?.as_str()?, item)));
    // Codex.
    let payload = line.get("payload").filter(|_| line["type"] == "response_item");
    let called = payload.and_then(|payload| match payload["type"].as_str() {
        Some("function_call" | "custom_tool_call") => Some((text(payload, "name")?, payload)),
        Some("local_shell_call") => Some(("local_shell_call", payload)),
        _ => None,
    });
    // Copilot CLI.
    let data = line.get("data").filter(|_| line["type"] == "tool.execution_start");
    let started = data.and_then(|data| Some((text(data, "toolName")?, data)));
    // Kimi Code.
    let event = line.get("event").filter(|event| event["type"] == "tool.call");
    let looped = event.and_then(|event| Some((text(event, "name")?, event)));
    named.chain(called).chain(started).chain(looped)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field)?.as_str()
}

/// Returns true if a line may tell of the use of a tool; most do not, and need no reading.
pub fn may_tell(line: &[u8]) -> bool {
    const MARKS: &[&str] =
        &["tool_use", "toolCall", "functionCall", "tool_call", "function_call", "shell_call", "tool.exec", "tool.call"];
    MARKS.iter().any(|mark| memchr::memmem::find(line, mark.as_bytes()).is_some())
}

/// Returns the directory that a line of a session names as the client's own.
pub fn directory(line: &[u8]) -> Option<PathBuf> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let at = |place: &&str| line.pointer(place)?.as_str();
    let places = ["/cwd", "/payload/cwd", "/data/context/cwd", "/data/cwd", "/event/display/cwd"];
    // Kimi Code names the file that it writes.
    let file = || Path::new(at(&"/event/display/path")?).parent();
    let named = places.iter().find_map(at).map(Path::new).or_else(file)?;
    named.is_absolute().then(|| named.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-11-27T10:00:00.500Z";

    fn acts(client: Client, line: &str) -> Vec<i64> {
        let line = line.replace('@', TIME);
        assert!(may_tell(line.as_bytes()), "{line}");
        client.acts(line.as_bytes())
    }

    #[test]
    fn the_use_of_a_tool_is_read_from_each_clients_session() {
        let at = [ms_of(TIME).unwrap()];
        let told = [
            (
                Client::ClaudeCode,
                r#"{"type":"assistant","timestamp":"@","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"rm a"}}]}}"#,
            ),
            (
                Client::Codex,
                r#"{"timestamp":"@","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"}}"#,
            ),
            (
                Client::Codex,
                r#"{"timestamp":"@","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch"}}"#,
            ),
            (
                Client::Codex,
                r#"{"timestamp":"@","type":"response_item","payload":{"type":"local_shell_call","action":{}}}"#,
            ),
            (
                Client::GeminiCli,
                r#"{"id":"m","timestamp":"2020-01-01T00:00:00.000Z","type":"gemini","toolCalls":[{"id":"c","name":"write_file","args":{},"timestamp":"@"}]}"#,
            ),
            (
                Client::GeminiCli,
                r#"{"id":"m","timestamp":"@","type":"gemini","toolCalls":[{"id":"c","name":"replace","args":{}}]}"#,
            ),
            (
                Client::QwenCode,
                r#"{"type":"assistant","timestamp":"@","message":{"role":"model","parts":[{"functionCall":{"name":"run_shell_command","args":{}}}]}}"#,
            ),
            (
                Client::Droid,
                r#"{"type":"message","timestamp":"@","message":{"role":"assistant","content":[{"type":"tool_use","name":"Execute","input":{}}]}}"#,
            ),
            (
                Client::CopilotCli,
                r#"{"type":"tool.execution_start","timestamp":"@","data":{"toolCallId":"c","toolName":"bash","arguments":{}}}"#,
            ),
            (
                Client::KimiCode,
                r#"{"type":"context.append_loop_event","agentId":"main","event":{"type":"tool.call","toolCallId":"c","name":"Bash","args":{"command":"rm -rf out"},"display":{"kind":"command","cwd":"/w"}},"time":1795773600500}"#,
            ),
            (
                Client::Pi,
                r#"{"type":"message","timestamp":"@","message":{"role":"assistant","content":[{"type":"toolCall","name":"write","arguments":{}}]}}"#,
            ),
        ];
        for (client, line) in told {
            assert_eq!(acts(client, line), at, "{line}");
        }
        let untold = [
            // It only reads.
            (
                Client::ClaudeCode,
                r#"{"type":"assistant","timestamp":"@","message":{"content":[{"type":"tool_use","name":"Read","input":{}}]}}"#,
            ),
            (Client::CopilotCli, r#"{"type":"tool.execution_start","timestamp":"@","data":{"toolName":"view"}}"#),
            // The result of an action, a torn line, a text that speaks of one, and a line without a time.
            (
                Client::ClaudeCode,
                r#"{"type":"user","timestamp":"@","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#,
            ),
            (Client::ClaudeCode, r#"{"type":"assistant","timestamp":"@","message":{"content":[{"type":"tool_use","na"#),
            (Client::ClaudeCode, r#"{"type":"user","timestamp":"@","message":{"content":"a \"tool_use\" of Bash"}}"#),
            (Client::Codex, r#"{"type":"response_item","payload":{"type":"function_call","name":"shell"}}"#),
            (
                Client::Codex,
                r#"{"timestamp":"@","type":"event_msg","payload":{"type":"function_call","name":"shell"}}"#,
            ),
        ];
        for (client, line) in untold {
            assert_eq!(acts(client, line), [0; 0], "{line}");
        }
        assert!(!may_tell(br#"{"type":"user","message":{"content":"hello"}}"#));
    }

    #[test]
    fn a_client_is_known_by_its_program_or_script() {
        let runs = |client: Client, line: &str, program: Option<&str>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            client.runs_as(&words, program.map(Path::new))
        };
        for (client, line) in [
            (Client::ClaudeCode, "claude --resume"),
            (Client::ClaudeCode, "node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"),
            (Client::Codex, "/opt/codex/bin/codex exec x"),
            (Client::GeminiCli, "node --max-old-space-size=4096 /usr/local/bin/gemini -p x"),
            (Client::CopilotCli, "/usr/bin/node --no-warnings /usr/lib/node_modules/@github/copilot/index.js"),
            (Client::HermesAgent, "python3.12 /home/dev/.venv/bin/hermes"),
            (Client::Pi, "bun /usr/local/bin/pi"),
            (Client::KimiCode, "kimi-code"),
            (Client::KimiCode, "node /usr/lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs"),
        ] {
            assert!(runs(client, line, None), "{line}");
        }
        assert!(runs(Client::ClaudeCode, "2.1.330", Some("/home/dev/.local/bin/claude")));
        for (client, line) in [
            (Client::ClaudeCode, "vim claude"),
            (Client::ClaudeCode, "grep -r claude ."),
            (Client::Codex, "node server.js codex"),
            (Client::Pi, "python3 pi.py"),
            (Client::Codex, ""),
        ] {
            assert!(!runs(client, line, Some("/usr/bin/x")), "{line}");
        }
    }

    #[test]
    fn the_directory_of_a_session_is_read_from_its_lines() {
        for line in [
            r#"{"type":"user","cwd":"/w/a"}"#,
            r#"{"type":"session_meta","payload":{"id":"x","cwd":"/w/a"}}"#,
            r#"{"type":"session.start","data":{"context":{"cwd":"/w/a"}}}"#,
            r#"{"event":{"type":"tool.call","display":{"kind":"command","cwd":"/w/a"}}}"#,
            r#"{"event":{"type":"tool.call","display":{"kind":"file_io","path":"/w/a/b"}}}"#,
        ] {
            assert_eq!(directory(line.as_bytes()), Some(PathBuf::from("/w/a")), "{line}");
        }
        assert_eq!(directory(br#"{"cwd":"a"}"#), None);
        assert_eq!(dashed("/home/dev/my.app_2"), "-home-dev-my-app-2");
        assert_eq!(dashed_between("/home/dev/my.app"), "--home-dev-my.app");
    }
}
