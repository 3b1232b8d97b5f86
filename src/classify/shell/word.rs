//! Words: quoting, and what a word is made of.

use super::scanner::{Scanner, is_meta, is_name};
use super::tree::{Part, Word};

impl Scanner<'_, '_> {
    /// Reads the word at the position; empty parts when there is none.
    pub(super) fn word(&mut self) -> Word {
        let start = self.position;
        let mut parts = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => self.process(&mut parts),
                b'(' if self.after_extglob(start) => self.parenthesised(&mut parts),
                b'(' if self.after_array_name(start) => self.array(&mut parts),
                b'\r' if matches!(self.peek_at(1), Some(b'\n') | None) => break,
                _ if is_meta(byte) => break,
                _ => self.piece(&mut parts),
            }
        }
        if self.position > start {
            self.count_word();
        }
        Word { parts, span: self.span_from(start) }
    }

    fn piece(&mut self, parts: &mut Vec<Part>) {
        match self.peek() {
            Some(b'\'') => self.single_quoted(parts),
            Some(b'"') => {
                self.position += 1;
                self.double_quoted(parts);
            }
            Some(b'`') => self.backtick(parts, false),
            Some(b'$') => self.dollar(parts, false),
            Some(b'\\') => self.escaped(parts),
            _ => self.plain(parts),
        }
    }

    fn plain(&mut self, parts: &mut Vec<Part>) {
        let start = self.position;
        while let Some(byte) = self.peek() {
            if is_meta(byte) || matches!(byte, b'\'' | b'"' | b'`' | b'$' | b'\\' | b'\r') && self.position > start {
                break;
            }
            self.step();
        }
        push_literal(parts, &self.source[start..self.position], false);
    }

    fn escaped(&mut self, parts: &mut Vec<Part>) {
        self.position += 1;
        let start = self.position;
        match self.peek() {
            Some(b'\n') => self.position += 1,
            Some(_) => {
                self.step();
                push_literal(parts, &self.source[start..self.position], true);
            }
            None => push_literal(parts, "\\", true),
        }
    }

    fn single_quoted(&mut self, parts: &mut Vec<Part>) {
        self.position += 1;
        let start = self.position;
        while self.peek().is_some_and(|byte| byte != b'\'') {
            self.position += 1;
        }
        push_literal(parts, &self.source[start..self.position], true);
        if !self.eat("'") {
            self.broken();
        }
    }

    /// Reads to the closing double quote; the opening one has been read.
    pub(super) fn double_quoted(&mut self, parts: &mut Vec<Part>) {
        push_literal(parts, "", true);
        self.expanding(parts, Some(b'"'));
        if !self.eat("\"") {
            self.broken();
        }
    }

    /// Reads text in which only `$`, backticks and some backslashes count, up to `until` or the end.
    pub(super) fn expanding(&mut self, parts: &mut Vec<Part>, until: Option<u8>) {
        let mut start = self.position;
        while let Some(byte) = self.peek() {
            if Some(byte) == until {
                break;
            }
            match byte {
                b'\\' => {
                    push_literal(parts, &self.source[start..self.position], true);
                    self.escaped_in_quotes(parts);
                    start = self.position;
                }
                b'$' | b'`' => {
                    push_literal(parts, &self.source[start..self.position], true);
                    if byte == b'$' {
                        self.dollar(parts, true);
                    } else {
                        self.backtick(parts, true);
                    }
                    start = self.position;
                }
                _ => self.step(),
            }
        }
        push_literal(parts, &self.source[start.min(self.position)..self.position], true);
    }

    fn escaped_in_quotes(&mut self, parts: &mut Vec<Part>) {
        match self.peek_at(1) {
            Some(byte @ (b'$' | b'`' | b'"' | b'\\')) => {
                self.position += 2;
                push_literal(parts, char::from(byte).encode_utf8(&mut [0; 4]), true);
            }
            Some(b'\n') => self.position += 2,
            _ => {
                self.position += 1;
                push_literal(parts, "\\", true);
            }
        }
    }

    /// `?( *( +( @( !(` inside a word open an extended glob; at its start `!(` negates a subshell only as a command.
    fn after_extglob(&self, start: usize) -> bool {
        self.position > start && matches!(self.bytes[self.position - 1], b'?' | b'*' | b'+' | b'@' | b'!')
    }

    fn after_array_name(&self, start: usize) -> bool {
        let text = &self.source[start..self.position];
        text.strip_suffix('=').is_some_and(|name| is_name(name.strip_suffix('+').unwrap_or(name)))
    }

    fn parenthesised(&mut self, parts: &mut Vec<Part>) {
        let start = self.position;
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b'\\' => self.position += 1,
                _ => {}
            }
            self.step();
            if depth == 0 {
                break;
            }
        }
        self.position = self.position.min(self.bytes.len());
        if depth > 0 {
            self.broken();
        }
        push_literal(parts, &self.source[start..self.position], false);
    }

    /// `name=(words)`: the words are data.
    fn array(&mut self, parts: &mut Vec<Part>) {
        self.position += 1;
        let mut words = Vec::new();
        if self.enter() {
            loop {
                self.space();
                match self.peek() {
                    None | Some(b')') => break,
                    Some(byte) if is_meta(byte) && !(matches!(byte, b'<' | b'>') && self.peek_at(1) == Some(b'(')) => {
                        self.broken();
                        self.position += 1;
                    }
                    Some(_) => words.push(self.word()),
                }
            }
            self.leave();
        }
        if !self.eat(")") {
            self.broken();
        }
        parts.push(Part::Array { words });
    }
}

/// Adds text to the last literal of the same kind, or as a new one. Empty quotes are kept: they make an empty word.
pub(super) fn push_literal(parts: &mut Vec<Part>, text: &str, quoted: bool) {
    if let Some(Part::Literal { text: last, quoted: same }) = parts.last_mut()
        && *same == quoted
    {
        last.push_str(text);
        return;
    }
    if quoted || !text.is_empty() {
        parts.push(Part::Literal { text: text.to_owned(), quoted });
    }
}
