//! Requests and events: parsed once, into types that cannot be wrong.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::VERSION;
use super::runs::{CodonEnd, CodonStart, Rollback, RunEnd, RunFork, RunStart};
use crate::error::{Code, Error};
use crate::model::checkpoint::CheckpointKind;
use crate::model::json;

/// Longest `id`, in bytes.
const MAX_ID: usize = 128;

/// A client's own id of a request: a string or a number, echoed as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Id {
    Value(Value),
    /// A number that is not the same after it was read, as it was written.
    Number(String),
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Absent for events, which are not answered.
    pub id: Option<Id>,
    pub body: Body,
}

/// A line that is no request, with the id to answer to when that could be read.
#[derive(Debug)]
pub struct Failure {
    pub id: Option<Id>,
    pub error: Error,
}

/// The start of a session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Hello {
    pub client: Option<String>,
    pub client_version: Option<String>,
    pub pid: Option<u64>,
    pub workspace: Option<PathBuf>,
    /// Absolute; the session's workspace is the one of this directory, unless `workspace` names it.
    pub cwd: Option<PathBuf>,
    pub session: Option<String>,
    /// True if replies on this connection reach the model. Where not, what is to be told is kept for a later one.
    #[serde(alias = "hears")]
    pub reaches_model: Option<bool>,
    /// True if the client waits for the answer before it acts. One that does not is protected at the start of a turn.
    pub waits: Option<bool>,
}

/// A turn begins or ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Turn {
    /// Without it, `turn.end` ends the open one.
    #[serde(default)]
    pub turn: String,
    #[serde(default)]
    pub run: Option<String>,
    #[serde(default)]
    pub prompt: Option<String>,
}

/// A tool is about to run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ToolBefore {
    #[serde(default)]
    pub action: Option<String>,
    pub tool: String,
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub paths: Vec<String>,
    #[serde(default)]
    pub writes: Option<bool>,
    #[serde(default)]
    pub external: Option<bool>,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// True if this is not exactly what is about to run: text was lost on its way.
    #[serde(default)]
    pub doubt: bool,
}

/// A shell command is about to run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ShellBefore {
    #[serde(default)]
    pub action: Option<String>,
    pub command: String,
    #[serde(default)]
    pub shell: Option<String>,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// As of [`ToolBefore`].
    #[serde(default)]
    pub doubt: bool,
}

/// An action has ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct After {
    pub action: Option<String>,
    pub ok: Option<bool>,
    pub exit: Option<i64>,
    pub signal: Option<i64>,
}

/// A checkpoint by hand.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Create {
    pub label: Option<String>,
    pub paths: Option<Vec<String>>,
    pub pin: bool,
}

/// The checkpoints to list.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ListQuery {
    pub run: Option<String>,
    pub kind: Option<String>,
    pub path: Option<String>,
    pub limit: Option<u64>,
    /// Only older ones than this ordinal or id.
    pub before: Option<Value>,
}

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Show {
    pub sha: String,
}

/// Two states to compare; `to` absent is the work tree now.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Diff {
    pub from: String,
    #[serde(default)]
    pub to: Option<String>,
    #[serde(default)]
    pub paths: Option<Vec<String>>,
}

/// A step back or forth.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Step {
    pub run: Option<String>,
    pub turn: Option<String>,
    pub paths: Option<Vec<String>>,
    /// The operation that must be the next one, as a preview named it.
    pub operation: Option<String>,
    pub preview: bool,
    /// The digest of the plan that was agreed to; if it would be another one now, nothing is done.
    pub plan: Option<String>,
}

/// A command to be classified.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Classify {
    pub command: String,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Hello(Hello),
    RunStart(RunStart),
    RunEnd(RunEnd),
    TurnStart(Turn),
    TurnEnd(Turn),
    ToolBefore(ToolBefore),
    ToolAfter(After),
    ShellBefore(ShellBefore),
    ShellAfter(After),
    RunFork(RunFork),
    RunList,
    CodonStart(CodonStart),
    CodonRigSetup(CodonEnd),
    CodonComplete(CodonEnd),
    CodonFail(CodonEnd),
    CodonSkip(CodonEnd),
    Create(Create),
    List(ListQuery),
    Show(Show),
    Diff(Diff),
    Preview(Rollback),
    Rollback(Rollback),
    ToCodon(Rollback),
    ToLastSuccess(Rollback),
    Restore(Rollback),
    Undo(Step),
    Redo(Step),
    Classify(Classify),
    Status,
    Ping,
    ConfigReload,
    Shutdown,
}

/// Types of this version.
const TYPES: &[&str] = &[
    "hello",
    "run.start",
    "run.end",
    "turn.start",
    "turn.end",
    "tool.before",
    "tool.after",
    "shell.before",
    "shell.after",
    "checkpoint.create",
    "checkpoint.list",
    "checkpoint.show",
    "checkpoint.diff",
    "rollback.preview",
    "rollback.toCheckpoint",
    "restore",
    "undo",
    "redo",
    "classify",
    "status",
    "ping",
    "config.reload",
    "shutdown",
    "run.fork",
    "run.list",
    "codon.start",
    "codon.rigSetup",
    "codon.complete",
    "codon.fail",
    "codon.skip",
    "rollback.toCodon",
    "rollback.toLastSuccess",
];

/// Types that later versions bring.
const LATER: &[&str] = &["state.put", "state.get"];

impl Body {
    /// True if it changes the user's files.
    fn brings_back(&self) -> bool {
        matches!(
            self,
            Body::Rollback(_)
                | Body::ToCodon(_)
                | Body::ToLastSuccess(_)
                | Body::Restore(_)
                | Body::Undo(_)
                | Body::Redo(_)
        )
    }

    /// The `type` that replies carry.
    pub fn name(&self) -> &'static str {
        let at = match self {
            Body::Hello(_) => 0,
            Body::RunStart(_) => 1,
            Body::RunEnd(_) => 2,
            Body::TurnStart(_) => 3,
            Body::TurnEnd(_) => 4,
            Body::ToolBefore(_) => 5,
            Body::ToolAfter(_) => 6,
            Body::ShellBefore(_) => 7,
            Body::ShellAfter(_) => 8,
            Body::Create(_) => 9,
            Body::List(_) => 10,
            Body::Show(_) => 11,
            Body::Diff(_) => 12,
            Body::Preview(_) => 13,
            Body::Rollback(_) => 14,
            Body::Restore(_) => 15,
            Body::Undo(_) => 16,
            Body::Redo(_) => 17,
            Body::Classify(_) => 18,
            Body::Status => 19,
            Body::Ping => 20,
            Body::ConfigReload => 21,
            Body::Shutdown => 22,
            Body::RunFork(_) => 23,
            Body::RunList => 24,
            Body::CodonStart(_) => 25,
            Body::CodonRigSetup(_) => 26,
            Body::CodonComplete(_) => 27,
            Body::CodonFail(_) => 28,
            Body::CodonSkip(_) => 29,
            Body::ToCodon(_) => 30,
            Body::ToLastSuccess(_) => 31,
        };
        TYPES[at]
    }
}

/// Parses a line. A line that is almost JSON is read with replacement where that is safe: a guarding request is
/// answered, with doubt, and a restoring one is refused.
///
/// # Errors
/// `bad-utf8`, `bad-json`, `bad-request` naming the field, `unsupported-version`, `unknown-type`.
pub fn parse(line: &[u8], number: u64) -> Result<Request, Box<Failure>> {
    let fail = |id, error: Error| Box::new(Failure { id, error: error.line(number) });
    let read = json::read(line);
    let not_utf8 = || Error::new(Code::BadUtf8, "the line is not UTF-8").hint("send UTF-8 JSON, one object a line");
    let bad_json = |why: &str| Error::new(Code::BadJson, why).hint("send one JSON object a line");
    let Value::Object(map) = read.value else {
        let error = match read.fault {
            _ if !read.is_utf8 => not_utf8(),
            Some(fault) => bad_json(&format!("the line is not JSON: {fault}")),
            None => bad_json("the line is not a JSON object"),
        };
        return Err(fail(None, error));
    };
    if let Some(fault) = read.fault {
        // The client is told which of its requests it was, if that much could be read.
        let id = read_id(&map, line).ok().flatten();
        let error = if read.is_utf8 { bad_json(&format!("the line is not JSON: {fault}")) } else { not_utf8() };
        return Err(fail(id, error));
    }
    let id = read_id(&map, line).map_err(|error| fail(None, error))?;
    let mut body = read_version(&map).and_then(|()| read_body(map)).map_err(|error| fail(id.clone(), error))?;
    if read.is_doubtful {
        match &mut body {
            Body::ToolBefore(tool) => tool.doubt = true,
            Body::ShellBefore(shell) => shell.doubt = true,
            Body::TurnStart(_) | Body::TurnEnd(_) | Body::ToolAfter(_) | Body::ShellAfter(_) => {}
            _ if !read.is_utf8 => return Err(fail(id, not_utf8())),
            body if body.brings_back() => {
                let error = bad_json("a text in the line was cut in the middle of a character");
                return Err(fail(id, error.hint("what changes files must be told exactly")));
            }
            _ => {}
        }
    }
    Ok(Request { id, body })
}

fn read_id(map: &Map<String, Value>, line: &[u8]) -> Result<Option<Id>, Error> {
    let raw = || json::raw_number(line, "id").filter(|raw| raw.len() <= MAX_ID).map(Id::Number);
    match map.get("id") {
        None => Ok(None),
        // Out of range, or nothing at all.
        Some(Value::Null) => Ok(raw()),
        Some(Value::String(text)) if text.len() <= MAX_ID => Ok(Some(Id::Value(text.clone().into()))),
        Some(Value::Number(number)) if number.is_f64() => Ok(raw().or_else(|| Some(Id::Value(number.clone().into())))),
        Some(Value::Number(number)) => Ok(Some(Id::Value(number.clone().into()))),
        Some(_) => {
            Err(Error::new(Code::BadRequest, "`id` must be a number, or a string of at most 128 bytes").field("id"))
        }
    }
}

fn read_version(map: &Map<String, Value>) -> Result<(), Error> {
    match map.get("v") {
        None => Ok(()),
        Some(version) if version.as_u64() == Some(VERSION) => Ok(()),
        Some(version) => Err(Error::new(Code::UnsupportedVersion, format!("version {version} is not spoken here"))
            .field("v")
            .hint("speak version 1")),
    }
}

fn read_body(mut map: Map<String, Value>) -> Result<Body, Error> {
    let Some(Value::String(name)) = map.remove("type") else {
        return Err(Error::new(Code::UnknownType, "`type` is missing or not a string").field("type"));
    };
    Ok(match name.as_str() {
        "hello" => Body::Hello(fields(map)?),
        "run.start" => Body::RunStart(fields(map)?),
        "run.end" => Body::RunEnd(fields(map)?),
        "turn.start" => Body::TurnStart(fields(map)?),
        "turn.end" => Body::TurnEnd(fields(map)?),
        "tool.before" => Body::ToolBefore(fields(map)?),
        "tool.after" => Body::ToolAfter(fields(map)?),
        "shell.before" => Body::ShellBefore(fields(map)?),
        "shell.after" => Body::ShellAfter(fields(map)?),
        "checkpoint.create" => Body::Create(fields(map)?),
        "checkpoint.list" => Body::List(checked_list(fields(map)?)?),
        "checkpoint.show" => Body::Show(fields(map)?),
        "checkpoint.diff" => Body::Diff(fields(map)?),
        "run.fork" => Body::RunFork(fields(map)?),
        "run.list" => Body::RunList,
        "codon.start" => Body::CodonStart(fields(map)?),
        "codon.rigSetup" => Body::CodonRigSetup(fields(map)?),
        "codon.complete" => Body::CodonComplete(fields(map)?),
        "codon.fail" => Body::CodonFail(fields(map)?),
        "codon.skip" => Body::CodonSkip(fields(map)?),
        "rollback.preview" => Body::Preview(Rollback::aimed(fields(map)?)?),
        "rollback.toCheckpoint" => Body::Rollback(Rollback::at_checkpoint(fields(map)?)?),
        "rollback.toCodon" => Body::ToCodon(Rollback::at_codon(fields(map)?)?),
        "rollback.toLastSuccess" => Body::ToLastSuccess(Rollback::at_last_success(fields(map)?)),
        "restore" => Body::Restore(Rollback::at_checkpoint(fields(map)?)?),
        "undo" => Body::Undo(fields(map)?),
        "redo" => Body::Redo(fields(map)?),
        "classify" => Body::Classify(fields(map)?),
        "status" => Body::Status,
        "ping" => Body::Ping,
        "config.reload" => Body::ConfigReload,
        "shutdown" => Body::Shutdown,
        other => return Err(unknown(other)),
    })
}

fn unknown(name: &str) -> Error {
    let shown = crate::model::text::cut(&crate::model::text::printable(name), 60);
    if LATER.contains(&name) {
        return Error::new(Code::UnknownType, format!("`{shown}` is not in this version yet")).field("type");
    }
    Error::new(Code::UnknownType, format!("there is no type `{shown}`"))
        .field("type")
        .hint(format!("the types are: {}", TYPES.join(", ")))
}

fn checked_list(query: ListQuery) -> Result<ListQuery, Error> {
    match &query.kind {
        Some(kind) if CheckpointKind::parse(kind).is_none() => {
            let kinds: Vec<&str> = CheckpointKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Err(Error::new(Code::BadRequest, "`kind` is not a kind of checkpoint")
                .field("kind")
                .hint(format!("the kinds are: {}", kinds.join(", "))))
        }
        _ => Ok(query),
    }
}

/// Reads the fields of one type. The field at fault is named: the last one looked at, as serde does not tell.
fn fields<T: DeserializeOwned>(map: Map<String, Value>) -> Result<T, Error> {
    let mut last = None;
    let entries = map.into_iter().inspect(|(name, _)| last = Some(name.clone()));
    let read: serde_json::Result<T> = T::deserialize(MapDeserializer::new(entries));
    read.map_err(|error| {
        let text = error.to_string();
        let missing = text.split('`').nth(1).filter(|_| text.starts_with("missing field")).map(str::to_owned);
        let hint = "see docs/PROTOCOL.md";
        match missing.or(last) {
            Some(field) => Error::new(Code::BadRequest, format!("`{field}`: {text}")).hint(hint).field(field),
            None => Error::new(Code::BadRequest, text).hint(hint),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_and_events() {
        let request =
            parse(br#"{"v":1,"id":7,"type":"shell.before","command":"rm x","cwd":"/w","extra":[]}"#, 1).unwrap();
        assert_eq!(request.id, Some(Id::Value(7.into())));
        assert!(matches!(request.body, Body::ShellBefore(ref shell) if shell.command == "rm x"));
        assert_eq!(request.body.name(), "shell.before");
        assert_eq!(parse(br#"{"type":"ping"}"#, 1).unwrap().id, None);
        for name in TYPES {
            let full = serde_json::json!({"type": name, "turn": "t", "tool": "x", "command": "c", "sha": "1", "from": "1",
                "codonId": "c"});
            let mut full = full;
            if *name == "rollback.preview" {
                full["codonId"] = Value::Null;
            }
            assert_eq!(parse(full.to_string().as_bytes(), 1).unwrap().body.name(), *name);
        }
    }

    #[test]
    fn failures_have_codes_and_places() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let long_id = format!(r#"{{"id":"{}","type":"ping"}}"#, "x".repeat(129));
        let table: &[(&[u8], Code, Option<&str>)] = &[
            (b"\xff", Code::BadUtf8, None),
            (b"{", Code::BadJson, None),
            (b"[1]", Code::BadJson, None),
            (deep.as_bytes(), Code::BadJson, None),
            (br#"{"v":2,"type":"ping"}"#, Code::UnsupportedVersion, Some("v")),
            (br#"{"type":"pong"}"#, Code::UnknownType, Some("type")),
            (br#"{"type":"state.put"}"#, Code::UnknownType, Some("type")),
            (br#"{"type":"codon.start"}"#, Code::BadRequest, Some("codonId")),
            (br#"{"type":"rollback.toCheckpoint"}"#, Code::BadRequest, Some("sha")),
            (br#"{"type":"rollback.toCodon","checkpointType":"end"}"#, Code::BadRequest, Some("codonId")),
            (
                br#"{"type":"rollback.toCodon","codonId":"c","checkpointType":"exit"}"#,
                Code::BadRequest,
                Some("checkpointType"),
            ),
            (br#"{"type":"rollback.preview"}"#, Code::BadRequest, Some("sha")),
            (br#"{"type":"rollback.preview","sha":"1","lastSuccess":true}"#, Code::BadRequest, Some("sha")),
            (br"{}", Code::UnknownType, Some("type")),
            (long_id.as_bytes(), Code::BadRequest, Some("id")),
            (br#"{"id":{},"type":"ping"}"#, Code::BadRequest, Some("id")),
            (br#"{"type":"shell.before"}"#, Code::BadRequest, Some("command")),
            (br#"{"type":"shell.before","command":5}"#, Code::BadRequest, Some("command")),
            (br#"{"type":"run.end","status":"maybe"}"#, Code::BadRequest, Some("status")),
            (br#"{"type":"checkpoint.list","kind":"x"}"#, Code::BadRequest, Some("kind")),
            (br#"{"type":"tool.before","tool":"w","paths":"a"}"#, Code::BadRequest, Some("paths")),
        ];
        for (line, code, field) in table {
            let failure = parse(line, 3).unwrap_err();
            assert_eq!(failure.error.code(), *code, "{}", String::from_utf8_lossy(&line[..line.len().min(80)]));
            assert_eq!((failure.error.field_name(), failure.error.line_number()), (*field, Some(3)));
        }
        assert_eq!(parse(br#"{"id":"a","type":"pong"}"#, 1).unwrap_err().id, Some(Id::Value("a".into())));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), text in "\\{\"type\":\"[a-z.]{0,12}\"[\\PC]{0,30}\\}") {
            // Only the absence of a panic is of interest.
            let _ = parse(&bytes, 1);
            let _ = parse(text.as_bytes(), 1);
        }
    }
}
