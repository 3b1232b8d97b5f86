//! Lines as they are written: version, type, id, and the fields of a message.

use serde::Serialize;
use serde_json::{Map, Value};

use super::events::Interrupted;
use super::notices::{NoticeBody, NoticeLine};
use super::request::{Body, Id, VERSION};

/// A line: the fields of every line, and its own.
#[derive(Serialize)]
struct Envelope<'l> {
    v: u64,
    #[serde(rename = "type")]
    name: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'l Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(flatten)]
    body: &'l Map<String, Value>,
}

/// One line: version, type, id, `ok` where there is one, and the fields of `body`, none of which bears one of these names.
pub(super) fn line(name: &str, id: Option<&Id>, ok: Option<bool>, body: &impl Serialize) -> Vec<u8> {
    write(name, id, ok, &fields(body))
}

/// Returns the line of a reply. As long as a restore waits to be ended, every reply says so.
pub fn reply_line(name: &str, id: &Id, body: &impl Serialize, waiting: &[Interrupted]) -> Vec<u8> {
    let mut body = fields(body);
    if !waiting.is_empty() {
        body.insert("interrupted".to_owned(), fields_of(&waiting));
    }
    write(name, Some(id), Some(true), &body)
}

/// Returns the line of a notice.
pub fn notice_line(seq: u64, body: NoticeBody) -> Vec<u8> {
    line("notice", None, None, &NoticeLine { seq, body })
}

/// Returns the line of a request, or of an event if it has no id. Absent fields are left out.
pub fn request_line(id: Option<&Id>, body: &Body) -> Vec<u8> {
    let mut own = fields(body);
    own.retain(|_, value| !value.is_null());
    write(body.name(), id, None, &own)
}

/// Returns the fields of a message. Every one is a struct, or stands for no field: it serialises to an object, or to `null`.
fn fields(body: &impl Serialize) -> Map<String, Value> {
    match fields_of(body) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn fields_of(body: &impl Serialize) -> Value {
    serde_json::to_value(body).unwrap_or_default()
}

fn write(name: &str, id: Option<&Id>, ok: Option<bool>, body: &Map<String, Value>) -> Vec<u8> {
    let (id, raw) = match id {
        Some(Id::Value(value)) => (Some(value), None),
        Some(Id::Number(raw)) => (None, Some(raw)),
        None => (None, None),
    };
    // A struct of words, numbers and objects always serialises.
    let mut bytes = serde_json::to_vec(&Envelope { v: VERSION, name, id, ok, body }).unwrap_or_default();
    if let Some(raw) = raw {
        // Behind the brace: a number that no reader of ours keeps goes out as it came in.
        bytes.splice(1..1, format!("\"id\":{raw},").into_bytes());
    }
    bytes.push(b'\n');
    bytes
}
