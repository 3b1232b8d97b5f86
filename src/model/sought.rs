//! A secret that is to be taken out of all checkpoints, or a pattern of such secrets.
//!
//! It is found in content as it is, and in records as they spell it: percent-quoted, as JSON, with control characters
//! escaped. *Invariant:* neither an error nor `Debug` shows it.

use std::io::Write;

use regex::bytes::{Regex, RegexBuilder};

use super::meta::quote;
use super::text::printable;
use crate::error::{Code, Error, Result};

/// The fewest bytes of a secret: shorter ones stand in much that is harmless.
const SHORTEST: usize = 4;

/// The most bytes of a secret, and of a match across two pieces of a large file.
const LONGEST: usize = 64 << 10;

/// The bytes of a large file that are searched at once.
const WINDOW: usize = 1 << 20;

/// The text in the place of a secret.
const MASK: &str = "***";

/// The bytes that are sought.
pub struct SecretPattern(Regex);

fn refused(text: &str, hint: &str) -> Error {
    Error::new(Code::BadRequest, text).hint(hint)
}

impl SecretPattern {
    /// Returns the pattern of these very bytes, in each spelling in which piton may have recorded them.
    ///
    /// # Errors
    /// `bad-request` for a secret that is too short or too long.
    pub fn literal(bytes: &[u8]) -> Result<SecretPattern> {
        if bytes.len() < SHORTEST {
            return Err(refused(
                "the secret has fewer than four bytes",
                "so short a text also occurs in harmless files",
            ));
        }
        if bytes.len() > LONGEST {
            return Err(refused(
                "the secret has more than 64 KB",
                "give a part of the secret, or the path of the file",
            ));
        }
        let text = String::from_utf8_lossy(bytes);
        let json = serde_json::to_string(&text).unwrap_or_default(); // a text is always valid JSON
        let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or_default();
        let spelt = [quote(bytes), json.to_owned(), printable(&text).trim().to_owned()];
        let mut all: Vec<Vec<u8>> = spelt.into_iter().map(String::into_bytes).collect();
        all.push(bytes.to_vec());
        // Of two that begin alike the longer one is to be found.
        all.sort_by(|a, b| (b.len(), b).cmp(&(a.len(), a)));
        all.dedup();
        let exact = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let spelt: Vec<String> = all.iter().filter(|bytes| bytes.len() >= SHORTEST).map(exact).collect();
        SecretPattern::compiled(&format!("(?-u:{})", spelt.join("|")))
    }

    /// Returns the pattern that a regular expression on bytes is.
    ///
    /// # Errors
    /// `bad-request` for another text, and for an expression that matches nothing at all.
    pub fn regex(text: &str) -> Result<SecretPattern> {
        let pattern = SecretPattern::compiled(text)?;
        match pattern.is_in(b"") {
            true => Err(refused("the expression matches the empty string", "write one that matches only secrets")),
            false => Ok(pattern),
        }
    }

    fn compiled(text: &str) -> Result<SecretPattern> {
        // The library's own error would repeat the secret.
        let refusal = |_| refused("this is not a regular expression", "use the syntax of the Rust crate `regex`");
        RegexBuilder::new(text).multi_line(true).build().map(SecretPattern).map_err(refusal)
    }

    /// Returns true if the bytes hold it.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    /// Returns true if the bytes of a record hold it, also percent-quoted.
    pub fn is_in_record(&self, bytes: &[u8]) -> bool {
        self.is_in(bytes) || unquoted(bytes).is_some_and(|bytes| self.is_in(&bytes))
    }

    /// Returns a text without it; `None` if the text does not hold it.
    pub fn redacted(&self, text: &str) -> Option<String> {
        if self.is_in(text.as_bytes()) {
            let redacted = self.0.replace_all(text.as_bytes(), MASK.as_bytes());
            return Some(String::from_utf8_lossy(&redacted).into_owned());
        }
        self.is_in_record(text.as_bytes()).then(|| MASK.to_owned())
    }

    /// Returns bytes of the same number with `*` in its place; `None` if they do not hold it.
    pub fn masked(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut masked = bytes.to_vec();
        for found in self.0.find_iter(bytes) {
            masked[found.range()].fill(b'*');
        }
        (masked != bytes).then_some(masked)
    }

    /// Returns a pattern in the `.gitignore` dialect for a path with it in a name; `None` for another path. A `*` stands
    /// for the secret. A name below such a directory is not needed.
    pub fn glob(&self, path: &[u8]) -> Option<String> {
        let mut glob = String::new();
        for name in path.split(|byte| *byte == b'/') {
            glob.push('/');
            let mut from = 0;
            for found in self.0.find_iter(name) {
                literally(&name[from..found.start()], &mut glob);
                glob.push('*');
                from = found.end();
            }
            literally(&name[from..], &mut glob);
            if from > 0 {
                return Some(glob);
            }
        }
        None
    }
}

/// Adds the pattern of a part of a name.
fn literally(part: &[u8], glob: &mut String) {
    for letter in String::from_utf8_lossy(part).chars() {
        match letter {
            '*' | '?' | '[' | ']' | '\\' | '!' | '#' | ' ' => glob.extend(['\\', letter]),
            char::REPLACEMENT_CHARACTER => glob.push('*'),
            letter => glob.push(letter),
        }
    }
}

/// Returns percent-quoted bytes as they were; `None` without any.
fn unquoted(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.contains(&b'%') {
        return None;
    }
    let (mut plain, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(quoted) => {
                plain.push(quoted);
                rest = &after[2..];
            }
            None => {
                plain.push(*byte);
                rest = after;
            }
        }
    }
    Some(plain)
}

/// A search through content that comes piece by piece.
pub struct SecretSearch<'p> {
    pattern: &'p SecretPattern,
    window: Vec<u8>,
    has_found: bool,
}

impl<'p> SecretSearch<'p> {
    /// Begins a search.
    pub fn new(pattern: &'p SecretPattern) -> SecretSearch<'p> {
        SecretSearch { pattern, window: Vec::new(), has_found: false }
    }

    /// Returns true if the content held it.
    pub fn finish(self) -> bool {
        self.has_found || self.pattern.is_in(&self.window)
    }
}

impl Write for SecretSearch<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !self.has_found {
            self.window.extend_from_slice(bytes);
            if self.window.len() >= WINDOW {
                self.has_found = self.pattern.is_in(&self.window);
                self.window.drain(..self.window.len() - LONGEST);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_as_it_is_and_as_records_spell_it() {
        let secret = SecretPattern::literal(b"pa ss\"w\n\xc3\xa9").unwrap();
        for text in ["x pa ss\"w\n\u{e9} y", "pa%20ss\"w%0A%C3%A9", "{\"a\":\"pa ss\\\"w\\n\u{e9}\"}"] {
            assert!(secret.is_in(text.as_bytes()), "{text}");
        }
        assert!(!secret.is_in(b"pa ss\"w"));
        assert_eq!(secret.redacted("a pa ss\"w\n\u{e9} b").unwrap(), "a *** b");
        assert_eq!(secret.redacted("a"), None);
        let token = SecretPattern::literal(b"t0ken").unwrap();
        assert_eq!(token.masked(b"a t0ken t0ken").unwrap(), b"a ***** *****");
        let [short, long] = [&b"abc"[..], &[b'a'; LONGEST + 1]].map(SecretPattern::literal);
        assert!(short.is_err() && long.is_err());
    }

    #[test]
    fn expressions_see_quoted_names_and_match_something() {
        let secret = SecretPattern::regex("key [0-9]+").unwrap();
        assert!(secret.is_in(b"\xff key 12") && secret.is_in_record(b"skip key%2012") && !secret.is_in(b"key%2012"));
        assert!(SecretPattern::regex("a*").is_err());
        let error = SecretPattern::regex("hunter2(").err().unwrap();
        assert!(!error.text().contains("hunter2"), "{}", error.text());
    }

    #[test]
    fn a_name_becomes_a_pattern_without_the_secret() {
        let secret = SecretPattern::literal(b"t0ken").unwrap();
        assert_eq!(secret.glob(b"a/b*c-t0ken.txt").unwrap(), "/a/b\\*c-*.txt");
        assert_eq!(secret.glob(b"t0ken/x/y").unwrap(), "/*");
        assert_eq!(secret.glob(b"a/b"), None);
    }

    #[test]
    fn a_search_finds_a_secret_across_pieces() {
        let secret = SecretPattern::literal(b"t0ken").unwrap();
        for at in [0, WINDOW - 3, WINDOW, 3 * WINDOW - 1] {
            let mut content = vec![b'x'; at];
            content.extend_from_slice(b"t0ken");
            content.extend(vec![b'x'; 100_000]);
            let mut search = SecretSearch::new(&secret);
            content.chunks(7777).for_each(|piece| search.write_all(piece).unwrap());
            assert!(search.finish(), "{at}");
        }
        assert!(!SecretSearch::new(&secret).finish());
    }
}
