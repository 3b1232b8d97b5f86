//! Quoting for shells and for git's own configuration files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Returns a word for `sh`, `bash` and `zsh`: nothing in it is expanded. Bytes that are not text stay as they are.
pub fn sh(word: &OsStr) -> Vec<u8> {
    quoted(word, |byte| match byte {
        b'\'' => b"'\\''".to_vec(),
        other => vec![other],
    })
}

/// Returns a word for `fish`.
pub fn fish(word: &OsStr) -> Vec<u8> {
    quoted(word, |byte| match byte {
        b'\'' | b'\\' => vec![b'\\', byte],
        other => vec![other],
    })
}

fn quoted(word: &OsStr, each: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
    let inner = word.as_bytes().iter().flat_map(|byte| each(*byte));
    std::iter::once(b'\'').chain(inner).chain([b'\'']).collect()
}

/// Returns a value in a configuration file of git, or an entry of a list of directories in a variable of git.
pub fn config_value(value: &OsStr) -> Vec<u8> {
    let escaped = value.as_bytes().iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', *byte],
        b'\n' => b"\\n".to_vec(),
        b'\t' => b"\\t".to_vec(),
        other => vec![*other],
    });
    std::iter::once(b'"').chain(escaped).chain([b'"']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_quotes() {
        let word = OsStr::from_bytes(b"a'b\\c\"d\n$(e)\xff");
        assert_eq!(sh(word), b"'a'\\''b\\c\"d\n$(e)\xff'");
        assert_eq!(fish(word), b"'a\\'b\\\\c\"d\n$(e)\xff'");
        assert_eq!(config_value(word), b"\"a'b\\\\c\\\"d\\n$(e)\xff\"");
    }
}
