//! TOML, read for single keys: each value with the path of its key. It is only read, never edited.
//!
//! It knows comments, tables, dotted and quoted keys, inline tables, arrays and all kinds of strings, so that a key in a string or
//! a comment is none. Numbers and dates are passed over. A text that is no TOML is an error, never an answer.

use crate::error::{Code, Error, Result};

/// Deepest nesting. Configurations are flat.
const MAX_DEPTH: usize = 64;

/// A value without its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TomlScalar {
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    Text(String),
    /// A number, a date or a time.
    Other,
}

/// All values of a text, in their order. The elements of an array have the array's path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TomlValues(Vec<(Vec<String>, TomlScalar)>);

impl TomlValues {
    /// Reads a whole text.
    ///
    /// # Errors
    /// `bad-request` with the line.
    pub(crate) fn read(text: &str) -> Result<TomlValues> {
        let mut reader = TomlReader { text, at: 0, found: Vec::new() };
        reader.at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        reader.document()?;
        Ok(TomlValues(reader.found))
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// `bad-request` if it is there twice.
    pub(crate) fn get(&self, path: &[&str]) -> Result<Option<&TomlScalar>> {
        let mut all = self.0.iter().filter(|(key, _)| key == path);
        let first = all.next().map(|(_, value)| value);
        match all.next() {
            None => Ok(first),
            Some(_) => Err(Error::new(Code::BadRequest, format!("`{}` is there twice", path.join(".")))),
        }
    }

    /// Returns the values below a table, each with the rest of its path.
    pub(crate) fn below(&self, table: &[&str]) -> impl Iterator<Item = (&[String], &TomlScalar)> {
        let depth = table.len();
        let inner =
            self.0.iter().filter(move |(key, _)| key.len() > depth && key.iter().zip(table).all(|(a, b)| a == b));
        inner.map(move |(key, value)| (&key[depth..], value))
    }
}

struct TomlReader<'t> {
    text: &'t str,
    at: usize,
    found: Vec<(Vec<String>, TomlScalar)>,
}

impl TomlReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Passes over a text if it is here.
    fn takes(&mut self, wanted: &str) -> bool {
        let is_here = self.rest().starts_with(wanted);
        self.at += if is_here { wanted.len() } else { 0 };
        is_here
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn wrong(&self, what: &str) -> Error {
        let line = self.text[..self.at].matches('\n').count() + 1;
        Error::new(Code::BadRequest, format!("it is no TOML: {what} in line {line}"))
    }

    fn spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// Passes over spaces, comments and ends of lines.
    fn blank(&mut self) {
        loop {
            self.spaces();
            let rest = self.rest();
            if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with(['\n', '\r']) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    /// Requires that nothing but a comment follows in this line.
    fn line_end(&mut self) -> Result<()> {
        self.spaces();
        match self.peek() {
            None | Some('\n' | '\r' | '#') => Ok(()),
            Some(_) => Err(self.wrong("something follows a value")),
        }
    }

    fn document(&mut self) -> Result<()> {
        let mut table = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                None => return Ok(()),
                Some('[') => table = self.header()?,
                Some(_) => self.pair(&table, 0)?,
            }
            self.line_end()?;
        }
    }

    fn header(&mut self) -> Result<Vec<String>> {
        let (open, close) = if self.rest().starts_with("[[") { ("[[", "]]") } else { ("[", "]") };
        self.at += open.len();
        let table = self.key()?;
        if self.takes(close) { Ok(table) } else { Err(self.wrong("a table's name does not end")) }
    }

    /// Reads a key and its value.
    fn pair(&mut self, table: &[String], depth: usize) -> Result<()> {
        let path = [table, &self.key()?].concat();
        if !self.takes("=") {
            return Err(self.wrong("a key has no value"));
        }
        self.spaces();
        self.value(&path, depth)
    }

    /// Reads a key of one or more parts, with the spaces around it.
    fn key(&mut self) -> Result<Vec<String>> {
        let mut parts = Vec::new();
        loop {
            self.spaces();
            parts.push(match self.peek() {
                Some('"') => self.basic()?,
                Some('\'') => self.literal()?,
                _ => self.bare()?,
            });
            self.spaces();
            if !self.takes(".") {
                return Ok(parts);
            }
        }
    }

    fn bare(&mut self) -> Result<String> {
        let rest = self.rest();
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let end = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        if word.is_empty() { Err(self.wrong("a key is missing")) } else { Ok(word) }
    }

    fn value(&mut self, path: &[String], depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("too deep a value"));
        }
        let value = match self.peek() {
            Some('[') => return self.array(path, depth),
            Some('{') => return self.inline_table(path, depth),
            Some('"') if self.rest().starts_with("\"\"\"") => TomlScalar::Text(self.lines("\"\"\"", true)?),
            Some('\'') if self.rest().starts_with("'''") => TomlScalar::Text(self.lines("'''", false)?),
            Some('"') => TomlScalar::Text(self.basic()?),
            Some('\'') => TomlScalar::Text(self.literal()?),
            _ => self.word()?,
        };
        self.found.push((path.to_owned(), value));
        Ok(())
    }

    fn array(&mut self, path: &[String], depth: usize) -> Result<()> {
        self.at += 1;
        loop {
            self.blank();
            if self.takes("]") {
                return Ok(());
            }
            self.value(path, depth + 1)?;
            self.blank();
            if !self.takes(",") && self.peek() != Some(']') {
                return Err(self.wrong("an array does not end"));
            }
        }
    }

    fn inline_table(&mut self, path: &[String], depth: usize) -> Result<()> {
        self.at += 1;
        loop {
            self.blank();
            if self.takes("}") {
                return Ok(());
            }
            self.pair(path, depth + 1)?;
            self.blank();
            if !self.takes(",") && self.peek() != Some('}') {
                return Err(self.wrong("an inline table does not end"));
            }
        }
    }

    /// Reads a value without quotes.
    fn word(&mut self) -> Result<TomlScalar> {
        let rest = self.rest();
        let end = rest.find([',', ']', '}', '#', '\n', '\r']).unwrap_or(rest.len());
        let word = rest[..end].trim_end();
        let is_number = word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'))
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | ':' | '_' | ' '));
        let value = match word {
            "true" => TomlScalar::Bool(true),
            "false" => TomlScalar::Bool(false),
            "inf" | "nan" => TomlScalar::Other,
            _ if is_number => TomlScalar::Other,
            _ => return Err(self.wrong("something that is no value")),
        };
        self.at += word.len();
        Ok(value)
    }

    fn literal(&mut self) -> Result<String> {
        self.at += 1;
        let end = self.rest().find(['\'', '\n']).filter(|end| self.rest()[*end..].starts_with('\''));
        let Some(end) = end else { return Err(self.wrong("a string does not end")) };
        let text = self.rest()[..end].to_owned();
        self.at += end + 1;
        Ok(text)
    }

    fn basic(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                None | Some('\n') => return Err(self.wrong("a string does not end")),
                Some(other) => text.push(other),
            }
        }
    }

    /// Reads a string of several lines.
    fn lines(&mut self, quotes: &str, escapes: bool) -> Result<String> {
        self.at += quotes.len();
        if !self.takes("\r\n") {
            self.takes("\n");
        }
        let mut text = String::new();
        loop {
            if self.takes(quotes) {
                // Up to two quotes before the closing ones belong to the text.
                while self.rest().starts_with(&quotes[..1]) && !text.ends_with(&quotes[..2]) {
                    self.at += 1;
                    text.push_str(&quotes[..1]);
                }
                return Ok(text);
            }
            match self.next() {
                None => return Err(self.wrong("a string does not end")),
                Some('\\') if escapes && self.rest().trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) => {
                    let rest = self.rest();
                    self.at += rest.len() - rest.trim_start().len();
                }
                Some('\\') if escapes => text.push(self.escape()?),
                Some(other) => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let code = |reader: &mut Self, digits: usize| {
            let hex = reader.rest().get(..digits).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let read = hex.and_then(|hex| char::from_u32(u32::from_str_radix(hex, 16).ok()?));
            reader.at += if read.is_some() { digits } else { 0 };
            read
        };
        let read = match self.next() {
            Some('b') => Some('\u{8}'),
            Some('t') => Some('\t'),
            Some('n') => Some('\n'),
            Some('f') => Some('\u{c}'),
            Some('r') => Some('\r'),
            Some('e') => Some('\u{1b}'),
            Some(same @ ('"' | '\\')) => Some(same),
            Some('x') => code(self, 2),
            Some('u') => code(self, 4),
            Some('U') => code(self, 8),
            _ => None,
        };
        read.ok_or_else(|| self.wrong("an escape that there is not"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_found_wherever_toml_lets_it_stand() {
        let yes = [
            "allow = true",
            "\u{feff}allow = true",
            "# allow = false\nallow=true # yes",
            "\"allow\" = true\n[t]\nallow = false",
            "'allow' = true\r\nx = 'a # b'\r\n",
            "x = \"\"\"\nallow = false\n\"\"\"\nallow = true",
            "x = '''\nallow = false'''\nallow = true",
            "x = [1, 2, # allow = false\n  \"]\",]\nallow = true",
            "x = { allow = false, y = [ { z = 1 } ] }\nallow = true",
            "at = 1979-05-27 07:32:00Z\nallow = true",
            "[[a]]\nallow = false\n[[a]]\nallow = false",
        ];
        for (n, text) in yes.iter().enumerate() {
            let values = TomlValues::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let wanted = if n == yes.len() - 1 { None } else { Some(&TomlScalar::Bool(true)) };
            assert_eq!(values.get(&["allow"]).unwrap(), wanted, "{text}");
        }
        for text in
            ["[f]\nh = false", "f.h = false", "f = { h = false }", "[ f ]\n\"h\" = false", "[f.x]\n[f]\nh=false#no"]
        {
            let values = TomlValues::read(text).unwrap();
            assert_eq!(values.get(&["f", "h"]).unwrap(), Some(&TomlScalar::Bool(false)), "{text}");
        }
        let quoted = TomlValues::read("[h.state.\"/a b:\\u0070re:0\"]\nhash = \"sha\\n\"\nenabled = false").unwrap();
        let found: Vec<_> = quoted.below(&["h", "state"]).collect();
        assert_eq!(found[0].0, ["/a b:pre:0", "hash"]);
        assert_eq!(found[0].1, &TomlScalar::Text("sha\n".to_owned()));
    }

    #[test]
    fn a_text_that_is_no_toml_is_an_error() {
        for text in [
            "allow",
            "allow = ",
            "allow = yes",
            "allow = True",
            "= true",
            "[allow",
            "[[allow]\nx = 1",
            "allow = \"true",
            "allow = 'true\n'",
            "x = \"\"\"\nallow = true",
            "x = [1, 2\nallow = true",
            "x = { y = 1\nallow = true",
            "allow = true false",
            "allow = \"\\q\"",
            "{\"allow\": true}",
        ] {
            let error = TomlValues::read(text).expect_err(text);
            assert!(error.message().contains("it is no TOML"), "{text}: {error}");
        }
        assert!(TomlValues::read("a = true\na = false").unwrap().get(&["a"]).is_err());
        assert!(TomlValues::read(&format!("a = {}", "[".repeat(100_000))).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a\"'\\[\\]{}=.,#\\\\ \\n\u{e9}tue-]{0,60}") {
            let _ = TomlValues::read(&text);
        }
    }
}
