//! Errors on the wire.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::line::line;
use super::request::Id;
use super::restores::PreviewReply;
use super::words::Word;
use crate::error::{Code, Error};

/// An error, as its line has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The stable code.
    pub code: Word<Code>,
    /// A sentence for people.
    pub message: String,
    /// The number of the input line at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<NonZeroU64>,
    /// The field at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The checkpoints that an ambiguous name could mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The present plan, where the agreed one is stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Box<PreviewReply>>,
    /// True if the same request may succeed later by itself.
    pub retry: bool,
}

impl ErrorBody {
    /// Returns true if the code is this one.
    pub fn is(&self, code: Code) -> bool {
        self.code.known() == Some(code)
    }
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> ErrorBody {
        // It was made of the very type that it is read as.
        let preview = error.fresh_preview().and_then(|preview| PreviewReply::deserialize(preview).ok());
        ErrorBody {
            code: error.code().into(),
            message: error.text(),
            line: error.line_number().and_then(NonZeroU64::new),
            field: error.field_name().map(str::to_owned),
            candidates: error.candidate_list().to_vec(),
            preview: preview.map(Box::new),
            retry: error.code().retry(),
        }
    }
}

impl From<Error> for ErrorBody {
    fn from(error: Error) -> ErrorBody {
        ErrorBody::from(&error)
    }
}

impl From<ErrorBody> for Error {
    fn from(body: ErrorBody) -> Error {
        Error::new(body.code.known().unwrap_or(Code::Internal), body.message)
    }
}

/// An error, as a reply or (without an id) as a notice-like line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorReply {
    /// The error.
    pub error: ErrorBody,
}

impl ErrorReply {
    /// Returns the whole line.
    pub fn line(id: Option<&Id>, error: &Error) -> Vec<u8> {
        line("error", id, Some(false), &ErrorReply { error: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn errors_carry_everything_a_client_needs() {
        let error =
            Error::new(Code::AmbiguousCheckpoint, "two\nmatch").hint("give more").candidates(vec!["a".into()]).line(4);
        let bytes = ErrorReply::line(None, &error);
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["error"]["code"], "ambiguous-checkpoint");
        assert_eq!((&value["ok"], &value["error"]["line"]), (&json!(false), &json!(4)));
        assert_eq!(value["error"]["candidates"], json!(["a"]));
    }

    #[test]
    fn a_stale_plan_carries_the_fresh_preview() {
        let preview = PreviewReply::default();
        let error = Error::new(Code::StalePlan, "no").preview(serde_json::to_value(&preview).unwrap());
        let read: ErrorReply = serde_json::from_slice(&ErrorReply::line(None, &error)).unwrap();
        assert_eq!(read.error.preview.as_deref(), Some(&preview));
        assert!(read.error.is(Code::StalePlan) && !read.error.is(Code::Busy));
    }
}
