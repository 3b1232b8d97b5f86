//! Splits a command into words, as a shell would roughly: spans of the text, nothing is unquoted.

use std::ops::Range;

/// One part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Range<usize>),
    Pipe,
    /// The end of a simple command.
    End,
    /// `<<<`
    HereString,
    /// `<<` or `<<-`
    HereDoc,
}

/// Returns the tokens of a text, in one pass.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    // A quote that is not closed is an apostrophe; once there is none, there is none further on.
    let mut closed = [true, true];
    let mut at = 0;
    while at < bytes.len() {
        let (token, next) = match bytes[at] {
            b' ' | b'\t' | b'\r' => (None, at + 1),
            b'|' if bytes.get(at + 1) == Some(&b'|') => (Some(Token::End), at + 2),
            b'|' => (Some(Token::Pipe), at + 1),
            b'\n' | b';' | b'&' | b'(' | b')' | b'`' => (Some(Token::End), at + 1),
            b'<' if bytes[at..].starts_with(b"<<<") => (Some(Token::HereString), at + 3),
            b'<' if bytes[at..].starts_with(b"<<") => {
                (Some(Token::HereDoc), at + 2 + usize::from(bytes.get(at + 2) == Some(&b'-')))
            }
            b'<' | b'>' => (None, at + 1),
            _ => {
                let end = word_end(bytes, at, &mut closed);
                (Some(Token::Word(at..end)), end)
            }
        };
        out.extend(token);
        at = next;
    }
    out
}

fn word_end(bytes: &[u8], start: usize, closed: &mut [bool; 2]) -> usize {
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b' ' | b'\t' | b'\r' | b'\n' | b'|' | b';' | b'<' | b'>' | b'`' => break,
            b'&' if !is_in_address(&bytes[start..at]) => break,
            b')' => break,
            b'(' if at > start && bytes[at - 1] != b'$' => break,
            b'\\' => at += 2,
            quote @ (b'\'' | b'"') => {
                let kind = usize::from(quote == b'"');
                let close = closed[kind].then(|| closing(bytes, at + 1, quote)).flatten();
                closed[kind] = close.is_some();
                at = close.map_or(at + 1, |close| close + 1);
            }
            _ => at += 1,
        }
    }
    at.clamp(start + 1, bytes.len())
}

/// `&` parts the fields of an address, which people leave unquoted.
fn is_in_address(word: &[u8]) -> bool {
    word.windows(3).any(|three| three == b"://")
}

/// Returns where a quote is closed.
pub(super) fn closing(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote => return Some(at),
            _ => at += 1,
        }
    }
    None
}

/// Returns a word without the quotes around it.
pub(super) fn inner(text: &str, word: &Range<usize>) -> Range<usize> {
    let raw = text[word.clone()].as_bytes();
    match raw {
        [quote @ (b'\'' | b'"'), .., last] if quote == last && raw.len() >= 2 => word.start + 1..word.end - 1,
        _ => word.clone(),
    }
}
