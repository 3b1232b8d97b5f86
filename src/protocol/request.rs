//! Requests and events: parsed once, into types that cannot be wrong.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};

use super::checkpoints::{Chosen, Create, Diff, ListQuery, Show};
use super::events::{After, Classify, Hello, ShellBefore, ToolBefore, Turn};
use super::git::GitChangedQuery;
use super::restores::{Rollback, Step};
use super::runs::{CodonEnd, CodonStart, RunEnd, RunFork, RunStart};
use super::status::WatchingQuery;
use super::turns::{TurnDiff, TurnQuery};
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

/// Makes the content of messages from one table: of each its name on the wire, its variant with the fields, and their
/// reader.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:literal $variant:ident $(($fields:ty) by $read:ident)?;)*) => {
        /// The content of a message.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Body {
            $($(#[$doc])* $variant $(($fields))?,)*
        }

        /// Types of this version.
        const TYPES: &[&str] = &[$($name),*];

        impl Body {
            /// Returns the `type` that lines carry.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Body::$variant { .. } => $name,)*
                }
            }
        }

        /// Reads the fields of a message of a type.
        fn read_fields(name: &str, map: Map<String, Value>) -> Result<Body, Error> {
            match name {
                $($name => Ok(Body::$variant $(($read(map)?))?),)*
                other => Err(unknown(other)),
            }
        }
    };
}

messages! {
    /// A session begins.
    "hello" Hello(Hello) by fields;
    /// A run begins.
    "run.start" RunStart(RunStart) by fields;
    /// The session's run ends.
    "run.end" RunEnd(RunEnd) by fields;
    /// A turn begins.
    "turn.start" TurnStart(Turn) by fields;
    /// A turn ends.
    "turn.end" TurnEnd(Turn) by fields;
    /// A tool is about to run.
    "tool.before" ToolBefore(ToolBefore) by fields;
    /// A tool has run.
    "tool.after" ToolAfter(After) by fields;
    /// A command is about to run.
    "shell.before" ShellBefore(ShellBefore) by fields;
    /// A command has run.
    "shell.after" ShellAfter(After) by fields;
    /// A checkpoint is to be taken.
    "checkpoint.create" Create(Create) by fields;
    /// Checkpoints are asked for.
    "checkpoint.list" List(ListQuery) by list_query;
    /// One checkpoint is asked for.
    "checkpoint.show" Show(Show) by fields;
    /// A comparison is asked for.
    "checkpoint.diff" Diff(Diff) by fields;
    /// Checkpoints are to be pinned.
    "checkpoint.pin" Pin(Chosen) by chosen;
    /// Checkpoints are to be unpinned.
    "checkpoint.unpin" Unpin(Chosen) by chosen;
    /// Checkpoints are to be deleted.
    "checkpoint.delete" Delete(Chosen) by chosen;
    /// The plan of a return is asked for.
    "rollback.preview" Preview(Rollback) by aimed;
    /// A run goes back to a checkpoint.
    "rollback.toCheckpoint" Rollback(Rollback) by at_checkpoint;
    /// Files are to be brought back.
    "restore" Restore(Rollback) by at_checkpoint;
    /// The newest operation is to be undone.
    "undo" Undo(Step) by fields;
    /// The newest undo is to be taken back.
    "redo" Redo(Step) by fields;
    /// Turns that changed files are asked for.
    "turn.list" TurnList(TurnQuery) by fields;
    /// The changes of a turn are asked for.
    "turn.diff" TurnDiff(TurnDiff) by fields;
    /// A command is to be judged.
    "classify" Classify(Classify) by fields;
    /// The state of the protection is asked for.
    "status" Status;
    /// An answer is asked for.
    "ping" Ping;
    /// The settings are to be read anew.
    "config.reload" ConfigReload;
    /// The sidecar is to end.
    "shutdown" Shutdown;
    /// A run is to be made from a checkpoint.
    "run.fork" RunFork(RunFork) by fields;
    /// The runs are asked for.
    "run.list" RunList;
    /// A codon begins.
    "codon.start" CodonStart(CodonStart) by fields;
    /// A codon's rig is set up.
    "codon.rigSetup" CodonRigSetup(CodonEnd) by fields;
    /// A codon did its work.
    "codon.complete" CodonComplete(CodonEnd) by fields;
    /// A codon failed.
    "codon.fail" CodonFail(CodonEnd) by fields;
    /// A codon is skipped.
    "codon.skip" CodonSkip(CodonEnd) by fields;
    /// A run goes back to a codon.
    "rollback.toCodon" ToCodon(Rollback) by at_codon;
    /// A run goes back to its last success.
    "rollback.toLastSuccess" ToLastSuccess(Rollback) by at_last_success;
    /// The watcher of a workspace is asked for, if it is open.
    "watching" Watching(WatchingQuery) by fields;
    /// The changed paths of a work tree of git are asked for.
    "git.changed" GitChanged(GitChangedQuery) by fields;
}

/// Types that later versions bring.
const LATER: &[&str] = &["state.put", "state.get"];

impl Body {
    /// Returns true if it changes the user's files, or deletes checkpoints.
    fn must_be_exact(&self) -> bool {
        matches!(
            self,
            Body::Delete(_)
                | Body::Rollback(_)
                | Body::ToCodon(_)
                | Body::ToLastSuccess(_)
                | Body::Restore(_)
                | Body::Undo(_)
                | Body::Redo(_)
        )
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
    let not_utf8 = || Error::new(Code::BadUtf8, "the line is not UTF-8").hint("send UTF-8 JSON, one object per line");
    let bad_json = |why: &str| Error::new(Code::BadJson, why).hint("send one JSON object per line");
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
            body if body.must_be_exact() => {
                let error = bad_json("a string in the line was cut in the middle of a character");
                return Err(fail(
                    id,
                    error
                        .hint("requests that change files or delete checkpoints are only accepted without such errors"),
                ));
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
    read_fields(&name, map)
}

fn aimed(map: Map<String, Value>) -> Result<Rollback, Error> {
    Rollback::aimed(fields(map)?)
}

fn at_checkpoint(map: Map<String, Value>) -> Result<Rollback, Error> {
    Rollback::at_checkpoint(fields(map)?)
}

fn at_codon(map: Map<String, Value>) -> Result<Rollback, Error> {
    Rollback::at_codon(fields(map)?)
}

fn at_last_success(map: Map<String, Value>) -> Result<Rollback, Error> {
    Ok(Rollback::at_last_success(fields(map)?))
}

fn unknown(name: &str) -> Error {
    let shown = crate::model::text::cut(&crate::model::text::printable(name), 60);
    if LATER.contains(&name) {
        return Error::new(Code::UnknownType, format!("`{shown}` is not supported by this version")).field("type");
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

fn chosen(map: Map<String, Value>) -> Result<Chosen, Error> {
    let chosen: Chosen = fields(map)?;
    match chosen.shas.is_empty() {
        true => Err(Error::new(Code::BadRequest, "`shas` is an empty list").field("shas")),
        false => Ok(chosen),
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
            let full = serde_json::json!({"type": name, "turn": "t", "tool": "x", "command": "c", "sha": "1", "from": "1", "shas": ["1"],
                "codonId": "c", "workspace": "/w", "top": "/w"});
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
            (br#"{"type":"checkpoint.delete"}"#, Code::BadRequest, Some("shas")),
            (br#"{"type":"checkpoint.delete","shas":[]}"#, Code::BadRequest, Some("shas")),
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
