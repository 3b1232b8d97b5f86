//! The guard of the MCP proxy: a session of the engine, asked before each call that writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::proxy::Proxied;
use crate::checkpoint::Home;
use crate::checkpoint::records::action_window::EndedCall;
use crate::doors::aloud;
use crate::doors::output::Output;
use crate::doors::stdio::GRACE;
use crate::engine::Engine;
use crate::engine::connection::{Connection, Wake};
use crate::engine::decision::{Decision, Stance};
use crate::engine::event::{Action, Doing, Event, Opening, Tool};
use crate::engine::session::Root;
use crate::error::Result;
use crate::mcp::Call;
use crate::model::door::Door;
use crate::sys::clock::now_ms;

/// The time that an answer may take beyond its deadline before the guard counts as gone.
const SLACK: Duration = Duration::from_secs(1);

/// The deadline until the session has told its own.
const DEADLINE: Duration = Duration::from_secs(3);

/// The longest arguments that are shown to the classifier.
const MAX_ARGUMENTS: usize = 4 << 20;

/// The most values of a call's arguments that are looked at for paths.
const MAX_VALUES: usize = 1000;

/// The pause between two calls that ends a turn.
const TURN_PAUSE: Duration = Duration::from_mins(1);

/// Returns the pause between two calls that ends a turn. Builds for debugging read `PITON_TEST_TURN_PAUSE_MS`, for tests.
fn turn_pause() -> Duration {
    let named = cfg!(debug_assertions).then(|| std::env::var("PITON_TEST_TURN_PAUSE_MS").ok()).flatten();
    named.and_then(|text| text.parse().ok()).map_or(TURN_PAUSE, Duration::from_millis)
}

/// The ends of calls, as the guard's session hears of them.
pub(super) struct CallEnds {
    connection: Arc<Connection>,
    output: Arc<Output>,
}

impl CallEnds {
    /// Notes that a call was answered. Nobody waits for that.
    pub(super) fn note(&self, call: String) {
        let output = Arc::clone(&self.output);
        let said = move |decision: &Result<Decision>| match decision {
            Ok(decision) => aloud::speak(&output, aloud::of_decision(decision)),
            Err(error) => tracing::warn!(%error, "could not record the end of a call"),
        };
        let event = Event::After { call: EndedCall { action: Some(call), call: None }, ended: None };
        self.connection.on(event, Box::new(move |_, decision| said(&decision)));
    }
}

/// The guard of a server's calls.
pub(super) struct Guard {
    connection: Arc<Connection>,
    output: Arc<Output>,
    deadline: Duration,
    /// The workspace of the session.
    root: Option<PathBuf>,
    ending: Option<Ending>,
}

/// The end of a session, at which pending work is finished.
pub(super) struct Ending {
    connection: Arc<Connection>,
    engine: Arc<Engine>,
    output: Arc<Output>,
    clock: JoinHandle<()>,
}

impl Guard {
    /// Opens the session, and begins its base capture.
    pub(super) fn start(home: &Home, options: &Proxied, output: Arc<Output>) -> Guard {
        let engine = Arc::new(Engine::new(home.clone(), options.flags.clone()));
        let (connection, wakes) = Connection::new(Arc::clone(&engine), Root::Unknown, aloud::teller(&output));
        let kept = Arc::clone(&connection);
        let clock = std::thread::spawn(move || {
            kept.serve(&wakes);
            // Pending work may take as long as the end of the session is waited for.
            kept.finish(&wakes, Instant::now() + GRACE);
        });
        let ending = Some(Ending { connection: Arc::clone(&connection), engine, output: Arc::clone(&output), clock });
        let mut guard = Guard { connection, output, deadline: DEADLINE, root: None, ending };
        guard.open(options);
        guard
    }

    fn open(&mut self, options: &Proxied) {
        let opening = Opening {
            client: Some("mcp-proxy".to_owned()),
            session: Some(format!("mcp-{}-{}", now_ms(), std::process::id())),
            cwd: std::env::current_dir().ok().filter(|_| options.workspace.is_none()),
            workspace: options.workspace.clone(),
            // The proxy ends with its client.
            pid: Some(std::process::id()),
            door: Some(Door::McpProxy),
            turn_pause: Some(turn_pause()),
            ..Opening::default()
        };
        if let Some(Ok(Decision::Opened(facts))) = self.ask(Event::Opened(opening)) {
            self.deadline = facts.deadline;
            self.root = Some(facts.workspace.path);
        }
    }

    /// Returns what is to be ended; once.
    pub(super) fn ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// Returns the way to note the ends of calls.
    pub(super) fn call_ends(&self) -> CallEnds {
        CallEnds { connection: Arc::clone(&self.connection), output: Arc::clone(&self.output) }
    }

    /// Waits for a call's checkpoint, at most until the deadline; returns the reason if the policy denies the call. On
    /// any failure the call passes, and a line on stderr says so.
    pub(super) fn refusal(&mut self, call: &Call) -> Option<String> {
        let is_short = call.arguments.to_string().len() <= MAX_ARGUMENTS;
        let tool = Tool {
            name: call.tool.clone(),
            input: if is_short { call.arguments.clone() } else { Value::Null },
            paths: Vec::new(),
            writes: Some(true),
            external: Some(call.external),
        };
        let cwd = place(&call.arguments, self.root.as_deref());
        let action = Action {
            id: call.name(),
            what: Doing::Tool(tool),
            cwd,
            wait: None,
            doubt: call.doubt,
            in_background: false,
        };
        match self.ask(Event::Before(action)) {
            Some(Ok(Decision::Action(decision))) => {
                let reason = refused(&decision.stance, &call.tool, &self.output);
                if let Some(name) = call.name().filter(|_| reason.is_some()) {
                    self.call_ends().note(name);
                }
                reason
            }
            Some(_) => None,
            None => {
                let told = format!("the guard did not answer, so `{}` runs without a checkpoint", call.tool);
                aloud::speak(&self.output, vec![told]);
                None
            }
        }
    }

    /// Asks the session; `None` without an answer in time. Prints the notices that are for a person.
    fn ask(&self, event: Event) -> Option<Result<Decision>> {
        let (sender, answers) = channel();
        let reply = Box::new(move |_: &mut _, decision| {
            // The caller may have given up.
            let _ = sender.send(decision);
        });
        if !self.connection.on(event, reply) {
            return None;
        }
        let answer = match answers.recv_timeout(self.deadline + SLACK) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        let sentences = match &answer {
            Ok(decision) => aloud::of_decision(decision),
            Err(error) => vec![error.text()],
        };
        aloud::speak(&self.output, sentences);
        Some(answer)
    }
}

/// Returns why a call is refused: only where policy denies it.
fn refused(stance: &Stance, tool: &str, output: &Output) -> Option<String> {
    match stance {
        Stance::Proceed => None,
        Stance::Ask(_) => {
            aloud::speak(output, vec![format!("`{tool}` runs, because no person can answer here")]);
            None
        }
        Stance::Deny(reason) => Some(format!("piton: {reason}")),
    }
}

/// Returns the directory of a call, where its arguments name paths: its own workspace is guarded, not only the
/// session's.
fn place(arguments: &Value, root: Option<&Path>) -> Option<PathBuf> {
    let mut paths = Vec::new();
    collect(arguments, "", &mut paths, &mut 0);
    let inside = |path: &Path| root.is_some_and(|root| path.starts_with(root));
    let cwd = std::env::current_dir().ok().filter(|cwd| inside(cwd));
    match paths.first() {
        Some(first) if !paths.iter().any(|path| inside(path)) => {
            first.ancestors().skip(1).find(|dir| dir.is_dir()).map(Path::to_owned)
        }
        // Relative paths are the server's, which has the same working directory as the proxy.
        _ => cwd,
    }
}

/// Collects absolute paths in fields that are called as such.
fn collect(value: &Value, name: &str, paths: &mut Vec<PathBuf>, count: &mut usize) {
    *count += 1;
    if *count > MAX_VALUES {
        return;
    }
    match value {
        Value::String(text) => {
            let name = name.to_ascii_lowercase();
            let named = ["path", "file", "dir", "source", "dest", "uri", "root", "cwd", "target"];
            let text = text.strip_prefix("file://").unwrap_or(text);
            if text.starts_with('/') && text.len() < 4096 && named.iter().any(|part| name.contains(part)) {
                paths.push(PathBuf::from(text));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, name, paths, count)),
        Value::Object(map) => map.iter().for_each(|(name, item)| collect(item, name, paths, count)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Ending {
    /// Ends the session and waits for what is pending, as long as the sidecar does.
    pub(super) fn finish(self) {
        let deadline = Instant::now() + GRACE;
        if !self.connection.wake(Wake::End) {
            tracing::debug!("the guard has ended before");
        }
        while !self.clock.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !self.engine.close(deadline) {
            tracing::warn!("pending work was cut off");
        }
        self.connection.close();
        self.output.close(deadline);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_guarded_where_its_paths_are() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for dir in ["w", "other/deep"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        let work = root.join("w");
        let found = |arguments: Value| place(&arguments, Some(&work));
        let other = root.join("other");
        assert_eq!(found(json!({"path": other.join("a")})), Some(other.clone()));
        assert_eq!(found(json!({"nested": {"files": [other.join("gone/a")]}})), Some(other.clone()));
        assert_eq!(
            found(json!({"uri": format!("file://{}", other.join("deep/a").display())})),
            Some(other.join("deep"))
        );
        // Neither text that is no path, nor a relative one, nor a call that touches the session's own workspace too.
        assert_eq!(found(json!({"content": other.join("a"), "path": "a"})), None);
        assert_eq!(found(json!({"source": other.join("a"), "destination": work.join("a")})), None);
        let many: Vec<Value> = (0..5000).map(|_| json!({"x": 1})).collect();
        assert_eq!(found(json!({"a": many, "path": other.join("a")})), None);
    }

    #[test]
    fn only_what_policy_denies_is_refused() {
        let output = Output::start(std::io::sink());
        let refused = |stance| refused(&stance, "t", &output);
        assert_eq!(
            refused(Stance::Deny("the policy denies it".into())).as_deref(),
            Some("piton: the policy denies it")
        );
        assert_eq!(refused(Stance::Ask("no checkpoint could be taken".into())), None);
        assert_eq!(refused(Stance::Proceed), None);
    }
}
