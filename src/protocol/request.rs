//! Requests and events: parsed once, into types that cannot be wrong.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::checkpoints::{Create, Diff, ListQuery, Show};
use super::events::{After, Classify, Hello, ShellBefore, ToolBefore, Turn};
use super::restores::{Rollback, Step};
use super::runs::{CodonEnd, CodonStart, RunEnd, RunFork, RunStart};
use super::status::WatchingQuery;
use crate::error::{Code, Error};
use crate::model::checkpoint::CheckpointKind;
use crate::model::json;

/// The only version there is.
pub const VERSION: u64 = 1;

/// Longest `id`, in bytes.
const MAX_ID: usize = 128;

/// A client's own id of a request: a string or a number, echoed as it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Id {
    /// A string, or a number that stays the same when it is read.
    Value(Value),
    /// A number that is not the same after it was read, as it was written.
    Number(String),
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Absent for events, which are not answered.
    pub id: Option<Id>,
    /// The content.
    pub body: Body,
}

/// A line that is no request, with the id to answer to when that could be read.
#[derive(Debug)]
pub struct Failure {
    /// The id of the request, if that much could be read.
    pub id: Option<Id>,
    /// The reason why it is none.
    pub error: Error,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    /// A session begins.
    Hello(Hello),
    /// A run begins.
    RunStart(RunStart),
    /// The session's run ends.
    RunEnd(RunEnd),
    /// A turn begins.
    TurnStart(Turn),
    /// A turn ends.
    TurnEnd(Turn),
    /// A tool is about to run.
    ToolBefore(ToolBefore),
    /// A tool has run.
    ToolAfter(After),
    /// A command is about to run.
    ShellBefore(ShellBefore),
    /// A command has run.
    ShellAfter(After),
    /// A run is to be made from a checkpoint.
    RunFork(RunFork),
    /// The runs are asked for.
    RunList,
    /// A codon begins.
    CodonStart(CodonStart),
    /// A codon's rig is set up.
    CodonRigSetup(CodonEnd),
    /// A codon did its work.
    CodonComplete(CodonEnd),
    /// A codon failed.
    CodonFail(CodonEnd),
    /// A codon is skipped.
    CodonSkip(CodonEnd),
    /// A checkpoint is to be taken.
    Create(Create),
    /// Checkpoints are asked for.
    List(ListQuery),
    /// One checkpoint is asked for.
    Show(Show),
    /// A comparison is asked for.
    Diff(Diff),
    /// The plan of a return is asked for.
    Preview(Rollback),
    /// A run goes back to a checkpoint.
    Rollback(Rollback),
    /// A run goes back to a codon.
    ToCodon(Rollback),
    /// A run goes back to its last success.
    ToLastSuccess(Rollback),
    /// Files are to be brought back.
    Restore(Rollback),
    /// The newest operation is to be undone.
    Undo(Step),
    /// The newest undo is to be taken back.
    Redo(Step),
    /// A command is to be judged.
    Classify(Classify),
    /// The state of the protection is asked for.
    Status,
    /// The watcher of a workspace is asked for, if it is open.
    Watching(WatchingQuery),
    /// An answer is asked for.
    Ping,
    /// The settings are to be read anew.
    ConfigReload,
    /// The sidecar is to end.
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
    "watching",
];

/// Types that later versions bring.
const LATER: &[&str] = &["state.put", "state.get"];

impl Body {
    /// Returns true if it changes the user's files.
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

    /// Returns the `type` that replies carry.
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
            Body::Watching(_) => 32,
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
        // The error names the request's id, if that could be read.
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
        "checkpoint.list" => Body::List(list_query(map)?),
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
        "watching" => Body::Watching(fields(map)?),
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

/// Reads a query for a list; the hints name the words that there are.
fn list_query(map: Map<String, Value>) -> Result<ListQuery, Error> {
    if let Some(Value::String(kind)) = map.get("kind")
        && CheckpointKind::parse(kind).is_none()
    {
        let kinds: Vec<&str> = CheckpointKind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(Error::new(Code::BadRequest, "`kind` is not a kind of checkpoint")
            .field("kind")
            .hint(format!("the kinds are: {}", kinds.join(", "))));
    }
    match map.get("before") {
        None | Some(Value::Null | Value::String(_)) => {}
        Some(number) if number.is_u64() => {}
        Some(_) => {
            let text = "`before` must be the number of a checkpoint, or a selector";
            return Err(Error::new(Code::BadRequest, text).field("before"));
        }
    }
    fields(map)
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
                "codonId": "c", "workspace": "/w"});
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
