//! The guard of the MCP proxy: a session of the sidecar's own protocol, asked before each call that writes.

use std::io::{BufRead, BufReader, Write, stderr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::super::aloud::{Aloud, say};
use super::super::stdio::{GRACE, Shared, converse};
use super::proxy::Proxied;
use crate::checkpoint::Home;
use crate::engine::Engine;
use crate::error::{Code, Error, Result};
use crate::mcp::Call;
use crate::sys::clock::now_ms;

/// How long an answer may take beyond its deadline before the guard counts as gone.
const SLACK: Duration = Duration::from_secs(1);

/// The deadline until the session has told its own.
const DEADLINE_MS: u64 = 3000;

/// Longest arguments that are shown to the classifier.
const MAX_ARGUMENTS: usize = 4 << 20;

/// Most values of a call's arguments that are looked at for paths.
const MAX_VALUES: usize = 1000;

/// What becomes of a call.
pub enum Answer {
    Pass,
    /// The policy denies it, with the reason.
    Deny(String),
}

/// The asking end.
pub struct Holds {
    session: UnixStream,
    replies: Receiver<Value>,
    known: Arc<Known>,
    count: u64,
    ending: Option<Ending>,
}

/// What the session told of itself.
struct Known {
    deadline_ms: AtomicU64,
    root: OnceLock<PathBuf>,
}

/// The end of a session: what is pending is finished.
pub struct Ending {
    session: UnixStream,
    engine: Shared,
    thread: JoinHandle<()>,
}

impl Holds {
    /// Opens the session; its base capture begins.
    ///
    /// # Errors
    /// When there is no socket to be had.
    pub fn start(home: &Home, options: &Proxied) -> Result<Holds> {
        let engine: Shared = Arc::new(Engine::new(home.clone(), options.flags.clone()));
        let socket = |error| Error::new(Code::Internal, format!("no socket for the guard: {error}")).caused_by(error);
        let (ours, theirs) = UnixStream::pair().map_err(socket)?;
        ours.set_write_timeout(Some(SLACK)).map_err(socket)?;
        let (reading, ended, writing) =
            (ours.try_clone().map_err(socket)?, ours.try_clone().map_err(socket)?, theirs.try_clone().map_err(socket)?);
        let shared = Arc::clone(&engine);
        let thread = std::thread::spawn(move || converse(shared, theirs, writing));
        let known = Arc::new(Known { deadline_ms: AtomicU64::new(DEADLINE_MS), root: OnceLock::new() });
        let (sender, replies) = channel();
        let told = Arc::clone(&known);
        std::thread::spawn(move || listen(reading, &told, &sender));
        let ending = Some(Ending { session: ended, engine, thread });
        let mut holds = Holds { session: ours, replies, known, count: 0, ending };
        let session = format!("mcp-{}-{}", now_ms(), std::process::id());
        let mut hello = object(json!({ "client": "mcp-proxy", "session": session }));
        if let Some(root) = &options.workspace {
            hello.insert("workspace".into(), root.to_string_lossy().into());
        } else if let Ok(cwd) = std::env::current_dir() {
            hello.insert("cwd".into(), cwd.to_string_lossy().into());
        }
        holds.send("hello", hello);
        Ok(holds)
    }

    /// What is to be ended; once.
    pub fn ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// Waits until a call's checkpoint is there, at most for the deadline. Whatever fails, the call passes, and it is said.
    pub fn before(&mut self, call: &Call) -> Answer {
        let mut body =
            object(json!({ "tool": call.tool, "writes": true, "external": call.external, "doubt": call.doubt }));
        if call.arguments.to_string().len() <= MAX_ARGUMENTS {
            body.insert("input".into(), call.arguments.clone());
        }
        if let Some(cwd) = place(&call.arguments, self.known.root.get().map(PathBuf::as_path)) {
            body.insert("cwd".into(), cwd.to_string_lossy().into());
        }
        let id = self.send("tool.before", body);
        let wait = Duration::from_millis(self.known.deadline_ms.load(Ordering::SeqCst)) + SLACK;
        let until = Instant::now() + wait;
        loop {
            match self.replies.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(reply) if reply["id"] == id => return judged(&reply, &call.tool),
                Ok(_) => {}
                Err(_) => {
                    say(&format!("no answer of the guard: `{}` passes without a checkpoint", call.tool));
                    return Answer::Pass;
                }
            }
        }
    }

    fn send(&mut self, name: &str, mut body: Map<String, Value>) -> u64 {
        self.count += 1;
        body.insert("type".into(), name.into());
        body.insert("id".into(), self.count.into());
        let line = format!("{}\n", Value::Object(body));
        if let Err(error) = self.session.write_all(line.as_bytes()) {
            tracing::warn!(%error, "the guard cannot be asked");
        }
        self.count
    }
}

/// A call is refused only where policy denies it.
fn judged(reply: &Value, tool: &str) -> Answer {
    let reason = reply["reason"].as_str().unwrap_or_default();
    if reply["proceed"] == false && reason.starts_with("the policy denies") {
        return Answer::Deny(format!("piton: {reason}"));
    }
    if reply["proceed"] == false {
        say(&format!("`{tool}` passes all the same: nobody can be asked here"));
    }
    Answer::Pass
}

/// Hears the session: says what a person is to know, and hands replies on.
fn listen(session: UnixStream, known: &Known, replies: &Sender<Value>) {
    let mut aloud = Aloud::new(stderr());
    for line in BufReader::new(session).split(b'\n').map_while(std::io::Result::ok) {
        // Nobody may be there any more to be told.
        let _ = aloud.write_all(&line);
        let Ok(value) = serde_json::from_slice::<Value>(&line) else { continue };
        if let Some(ms) = value["limits"]["deadline_ms"].as_u64() {
            known.deadline_ms.store(ms, Ordering::SeqCst);
        }
        if let (Some("hello"), Some(root)) = (value["type"].as_str(), value["workspace"]["path"].as_str()) {
            // Told once.
            let _ = known.root.set(PathBuf::from(root));
        }
        if value.get("id").is_some() && replies.send(value).is_err() {
            return;
        }
    }
}

/// The directory of a call, where its arguments name paths: its own workspace is guarded, not only the session's.
fn place(arguments: &Value, root: Option<&Path>) -> Option<PathBuf> {
    let mut paths = Vec::new();
    collect(arguments, "", &mut paths, &mut 0);
    let inside = |path: &Path| root.is_some_and(|root| path.starts_with(root));
    let cwd = std::env::current_dir().ok().filter(|cwd| inside(cwd));
    match paths.first() {
        Some(first) if !paths.iter().any(|path| inside(path)) => {
            first.ancestors().skip(1).find(|dir| dir.is_dir()).map(Path::to_owned)
        }
        // Relative paths are those of the server, which stands where the proxy does.
        _ => cwd,
    }
}

/// Absolute paths in fields that are called as such.
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

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

impl Ending {
    /// Ends the session and waits for what is pending, as long as the sidecar does.
    pub fn finish(self) {
        let deadline = Instant::now() + GRACE;
        if let Err(error) = self.session.shutdown(std::net::Shutdown::Write) {
            tracing::debug!(%error, "the guard has ended before");
        }
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !self.engine.close(deadline) {
            tracing::warn!("pending work was cut off");
        }
    }
}

#[cfg(test)]
mod tests {
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
        // What is no path, or relative; and a call that touches the session's own workspace too.
        assert_eq!(found(json!({"content": other.join("a"), "path": "a"})), None);
        assert_eq!(found(json!({"source": other.join("a"), "destination": work.join("a")})), None);
        let many: Vec<Value> = (0..5000).map(|_| json!({"x": 1})).collect();
        assert_eq!(found(json!({"a": many, "path": other.join("a")})), None);
    }

    #[test]
    fn only_what_policy_denies_is_refused() {
        let refused = |reply: Value| matches!(judged(&reply, "t"), Answer::Deny(_));
        assert!(refused(json!({"proceed": false, "reason": "the policy denies file-overwrite"})));
        assert!(!refused(json!({"proceed": false, "reason": "the policy asks before file-overwrite"})));
        assert!(!refused(json!({"proceed": false, "reason": "no checkpoint could be taken"})));
        assert!(!refused(json!({"proceed": true, "reason": null})));
        assert!(!refused(json!({"type": "error", "error": {"code": "internal"}})));
    }
}
