//! JSON with comments and trailing commas, read for its places: where each value, key and comma stands.

use serde_json::Value;

use crate::error::{Code, Error, Result};

/// Deepest nesting. Configurations are flat.
const MAX_DEPTH: usize = 64;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct ParsedValue {
    pub start: usize,
    pub end: usize,
    pub form: ParsedForm,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub(crate) enum ParsedForm {
    /// Text, number, `true`, `false`, `null`.
    Leaf(Value),
    List(Vec<ParsedItem>),
    Map(Vec<ParsedItem>),
}

/// An element of a list, or a member of an object.
#[derive(Clone, Debug)]
pub(crate) struct ParsedItem {
    /// Decoded; empty in a list.
    pub key: String,
    /// The end of the bracket, comma or comment before it.
    pub lead: usize,
    /// Its start: that of its key, if it has one.
    pub start: usize,
    pub value: ParsedValue,
    /// The position of the comma after it.
    pub comma: Option<usize>,
}

impl ParsedValue {
    /// Returns the members of an object.
    pub(crate) fn members(&self) -> Option<&[ParsedItem]> {
        match &self.form {
            ParsedForm::Map(items) => Some(items),
            ParsedForm::Leaf(_) | ParsedForm::List(_) => None,
        }
    }

    /// Returns the elements of a list.
    pub(crate) fn elements(&self) -> Option<&[ParsedItem]> {
        match &self.form {
            ParsedForm::List(items) => Some(items),
            ParsedForm::Leaf(_) | ParsedForm::Map(_) => None,
        }
    }

    /// Returns the members or elements.
    pub(crate) fn items(&self) -> &[ParsedItem] {
        match &self.form {
            ParsedForm::List(items) | ParsedForm::Map(items) => items,
            ParsedForm::Leaf(_) => &[],
        }
    }

    /// Returns the value of a member.
    pub(crate) fn get(&self, key: &str) -> Option<&ParsedValue> {
        self.members()?.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// Returns the text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.form {
            ParsedForm::Leaf(value) => value.as_str(),
            ParsedForm::List(_) | ParsedForm::Map(_) => None,
        }
    }

    /// Returns the value without its places.
    pub(crate) fn value(&self) -> Value {
        match &self.form {
            ParsedForm::Leaf(value) => value.clone(),
            ParsedForm::List(items) => items.iter().map(|item| item.value.value()).collect(),
            ParsedForm::Map(items) => {
                Value::Object(items.iter().map(|item| (item.key.clone(), item.value.value())).collect())
            }
        }
    }
}

/// Reads a whole text.
///
/// # Errors
/// `bad-json` with the line.
pub(crate) fn scan(text: &str) -> Result<ParsedValue> {
    let mut scanner = Scanner { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    scanner.blank()?;
    let root = scanner.value(0)?;
    scanner.blank()?;
    if scanner.at < text.len() { Err(scanner.wrong("text after the end")) } else { Ok(root) }
}

/// Returns the end of white space from `at` on.
pub(crate) fn space_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    at + rest.find(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).unwrap_or(rest.len())
}

/// Returns the end of a comment that begins at `at`; `at` where none does, nothing where it has no end.
pub(crate) fn comment_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        // The line's end is not the comment's.
        return Some(at + line.strip_suffix('\r').unwrap_or(line).len());
    }
    match rest.strip_prefix("/*") {
        Some(inner) => inner.find("*/").map(|end| at + end + 4),
        None => Some(at),
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn wrong(&self, what: &str) -> Error {
        let line = 1 + self.text[..self.at].matches('\n').count();
        Error::new(Code::BadJson, format!("the file is not JSON: line {line}: {what}"))
            .line(line as u64)
            .hint("fix the file first; it was not changed")
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes white space and comments; where the last comment ends, or nothing.
    fn blank(&mut self) -> Result<Option<usize>> {
        let mut last = None;
        loop {
            self.at = space_end(self.text, self.at);
            let end = comment_end(self.text, self.at).ok_or_else(|| self.wrong("a comment has no end"))?;
            if end == self.at {
                return Ok(last);
            }
            (self.at, last) = (end, Some(end));
        }
    }

    fn value(&mut self, depth: usize) -> Result<ParsedValue> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let start = self.at;
        let form = match self.peek() {
            Some(b'{') => ParsedForm::Map(self.items(depth, b'}')?),
            Some(b'[') => ParsedForm::List(self.items(depth, b']')?),
            Some(b'"') => ParsedForm::Leaf(Value::String(self.string()?)),
            Some(_) => {
                let rest = &self.text[start..];
                let word = &rest
                    [..rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len())];
                let leaf = serde_json::from_str(word).map_err(|_| self.wrong("a value is missing or misspelt"))?;
                self.at += word.len();
                ParsedForm::Leaf(leaf)
            }
            None => return Err(self.wrong("it ends too early")),
        };
        Ok(ParsedValue { start, end: self.at, form })
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        let mut escaped = false;
        let inner = self.text.as_bytes()[start + 1..].iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        let end = start + 2 + inner.ok_or_else(|| self.wrong("a string has no end"))?;
        let text = serde_json::from_str(&self.text[start..end]).map_err(|_| self.wrong("a text is misspelt"))?;
        self.at = end;
        Ok(text)
    }

    fn items(&mut self, depth: usize, close: u8) -> Result<Vec<ParsedItem>> {
        self.at += 1;
        let mut items: Vec<ParsedItem> = Vec::new();
        let mut lead = self.at;
        loop {
            lead = self.blank()?.unwrap_or(lead);
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(items);
            }
            if items.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.wrong("a comma or a closing bracket is missing"));
            }
            let start = self.at;
            let key = if close == b'}' { self.key()? } else { String::new() };
            let value = self.value(depth + 1)?;
            self.blank()?;
            let comma = (self.peek() == Some(b',')).then_some(self.at);
            items.push(ParsedItem { key, lead, start, value, comma });
            if let Some(comma) = comma {
                self.at = comma + 1;
                lead = self.at;
            }
        }
    }

    fn key(&mut self) -> Result<String> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a name in quotes is missing"));
        }
        let key = self.string()?;
        self.blank()?;
        if self.peek() != Some(b':') {
            return Err(self.wrong("a colon is missing"));
        }
        self.at += 1;
        self.blank()?;
        Ok(key)
    }
}
