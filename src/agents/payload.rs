//! A payload as it comes: foreign bytes, read without trust.

use serde_json::Value;

use crate::error::{Code, Error, Result};
use crate::model::json;

/// The longest payload. A tool that writes a file sends its whole content; a longer payload is cut.
pub const MAX_PAYLOAD: usize = 32 << 20;

/// A payload's object.
#[derive(Debug)]
pub(super) struct Payload {
    value: Value,
    is_doubtful: bool,
}

impl Payload {
    /// Reads the bytes; what is almost JSON with replacement.
    ///
    /// # Errors
    /// `line-too-long`, `bad-utf8`, `bad-json`.
    pub(super) fn read(bytes: &[u8]) -> Result<Payload> {
        let hint = "the client's hook may have been cut short, or another program calls `piton hook`";
        if bytes.len() > MAX_PAYLOAD {
            let message = format!("the hook's payload is longer than {MAX_PAYLOAD} bytes");
            return Err(Error::new(Code::LineTooLong, message).hint(hint));
        }
        let read = json::read(bytes);
        if read.fault.is_some() && !read.is_utf8 {
            return Err(Error::new(Code::BadUtf8, "the hook's payload is neither UTF-8 nor JSON").hint(hint));
        }
        if let Some(fault) = read.fault {
            return Err(Error::new(Code::BadJson, format!("the hook's payload is not JSON: {fault}")).hint(hint));
        }
        if read.value.is_object() {
            return Ok(Payload { value: read.value, is_doubtful: read.is_doubtful });
        }
        Err(Error::new(Code::BadJson, "the hook's payload is not a JSON object").hint(hint))
    }

    /// Reads as much of the bytes as can be read.
    pub(super) fn torn(bytes: &[u8]) -> Payload {
        Payload { value: json::read(bytes).value, is_doubtful: true }
    }

    /// Returns true if some of it may have another meaning than the one that was read.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Returns a part of a payload that was read.
    pub(super) fn of(value: Value) -> Payload {
        Payload { value, is_doubtful: false }
    }

    /// Returns the first of these places (JSON pointers) that holds anything.
    pub(super) fn at(&self, places: &[&str]) -> Option<&Value> {
        places.iter().filter_map(|place| self.value.pointer(place)).find(|value| !value.is_null())
    }

    /// Returns the text at the first of these places that holds anything.
    ///
    /// # Errors
    /// `bad-request` if something else than text is there.
    pub(super) fn text(&self, places: &[&str]) -> Result<Option<&str>> {
        match self.at(places) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(foreign(places, "is not text")),
        }
    }

    /// Text that must be there.
    ///
    /// # Errors
    /// `bad-request` if it is not.
    pub(super) fn required(&self, places: &[&str]) -> Result<&str> {
        self.text(places)?.filter(|text| !text.is_empty()).ok_or_else(|| foreign(places, "is missing"))
    }
}

fn foreign(places: &[&str], what: &str) -> Error {
    let field = places.first().map_or("", |place| place.trim_start_matches('/'));
    Error::new(Code::BadRequest, format!("the hook's payload does not have this client's format: `{field}` {what}"))
        .field(field)
        .hint("check that `piton hook` is called with this client's name, as `piton install` writes it")
}
