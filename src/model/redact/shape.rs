//! The shapes of texts that may be secrets, and of those that are none.

use std::ops::Range;

use crate::model::words::{PATH_ENDS, PATH_ROOTS};

/// Bytes of a text that hold secrets.
pub(super) type Spans = Vec<Range<usize>>;

/// Prefixes of password hashes. No variable begins like this.
const HASHES: &[&str] = &["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"];

/// Returns true for text in the place of a value that is none: a variable, a command's output, a placeholder.
pub(super) fn is_reference(value: &str) -> bool {
    // A cut value may end within a mask.
    let plain = value.trim_end_matches('…').trim_matches(['\'', '"', '\\', '`']);
    plain.is_empty()
        || (plain.starts_with('$') && !HASHES.iter().any(|hash| plain.starts_with(hash)))
        || plain.starts_with("{{")
        || plain.starts_with('<')
        || plain.starts_with("%(")
        || is_format(plain)
        || plain.len() > 2 && plain.starts_with('%') && plain.ends_with('%')
        || plain.bytes().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'-' | b'_' | b',' | b')'))
}

/// Returns true for a place of `printf`, which another word fills: `%s`.
fn is_format(value: &str) -> bool {
    let rest = ["%s", "%d", "%q", "%b"].iter().find_map(|format| value.strip_prefix(format));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Returns true for a path: it says where a secret lies and is none.
pub(super) fn is_path(value: &str) -> bool {
    let plain = value.trim_matches(['\'', '"', '\\']);
    PATH_ROOTS.iter().any(|root| plain.starts_with(root)) || PATH_ENDS.iter().any(|end| plain.ends_with(end))
}

/// Returns true for a run of letters and digits as generators make them: long, or mixed.
pub(super) fn is_dense(value: &str) -> bool {
    value.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        run.len() >= 16 || (run.len() >= 8 && digits >= 2 && digits < run.len())
    })
}
