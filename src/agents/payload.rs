//! A payload as it comes: foreign bytes, read without trust.

use serde_json::Value;

use crate::error::{Code, Error, Result};

/// Longest payload. A tool that writes a file sends its whole content; what is longer was not meant to be read.
pub const MAX_PAYLOAD: usize = 32 << 20;

/// A payload's object.
#[derive(Debug)]
pub struct Payload(Value);

impl Payload {
    /// Reads the bytes.
    ///
    /// # Errors
    /// `line-too-long`, `bad-utf8`, `bad-json`.
    pub fn read(bytes: &[u8]) -> Result<Payload> {
        let hint = "the client's hook may have been cut short, or another program calls `piton hook`";
        if bytes.len() > MAX_PAYLOAD {
            let message = format!("the hook's payload is longer than {MAX_PAYLOAD} bytes");
            return Err(Error::new(Code::LineTooLong, message).hint(hint));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::new(Code::BadUtf8, "the hook's payload is not UTF-8").hint(hint))?;
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            Error::new(Code::BadJson, format!("the hook's payload is not JSON: {error}")).hint(hint)
        })?;
        if value.is_object() {
            return Ok(Payload(value));
        }
        Err(Error::new(Code::BadJson, "the hook's payload is not a JSON object").hint(hint))
    }

    /// A part of a payload that was read.
    pub fn of(value: Value) -> Payload {
        Payload(value)
    }

    /// The first of these places (JSON pointers) that holds anything.
    pub fn at(&self, places: &[&str]) -> Option<&Value> {
        places.iter().filter_map(|place| self.0.pointer(place)).find(|value| !value.is_null())
    }

    /// The text at the first of these places that holds anything.
    ///
    /// # Errors
    /// `bad-request` if something else than text is there.
    pub fn text(&self, places: &[&str]) -> Result<Option<&str>> {
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
    pub fn required(&self, places: &[&str]) -> Result<&str> {
        self.text(places)?.filter(|text| !text.is_empty()).ok_or_else(|| foreign(places, "is missing"))
    }
}

fn foreign(places: &[&str], what: &str) -> Error {
    let field = places.first().map_or("", |place| place.trim_start_matches('/'));
    Error::new(Code::BadRequest, format!("the hook's payload is not what this client sends: `{field}` {what}"))
        .field(field)
        .hint("look whether `piton hook` is called with this client's own name: `piton install` writes it")
}
