//! Here-documents: their operators are read with the command, their bodies at the next line end.

use super::scanner::{Bounds, PendingHeredoc, Scanner, TextPlace};
use super::tree::{Part, Redirect, RedirectKind, Word};
use super::word::push_literal;

impl Scanner<'_, '_> {
    /// Reads the delimiter after `<<` and queues the body.
    pub(super) fn heredoc(&mut self, start: usize) -> Redirect {
        let strip_tabs = self.eat("-");
        self.blanks();
        let word = self.word();
        let expands = word.parts.iter().all(|part| !matches!(part, Part::Literal { quoted: true, .. }));
        let delimiter = plain_text(&word);
        let index = self.bounds.heredocs.len();
        self.bounds.heredocs.push(Word::default());
        self.pending.push(PendingHeredoc { index, delimiter, expands, strip_tabs });
        Redirect {
            kind: RedirectKind::Heredoc(index),
            target: Word::default(),
            stderr: false,
            span: self.span_from(start),
        }
    }

    /// Reads the bodies of all queued heredocs; the position is at the start of a line.
    pub(super) fn heredoc_bodies(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.position;
            let end = self.body_end(&pending);
            let body = self.body(start, end, &pending);
            self.bounds.heredocs[pending.index] = body;
        }
    }

    /// Finds the delimiter's line, moves behind it, and gives the end of the body.
    fn body_end(&mut self, pending: &PendingHeredoc) -> usize {
        while self.position < self.bytes.len() {
            let line_start = self.position;
            let rest = &self.bytes[line_start..];
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = &self.source[line_start..line_start + length];
            let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { line };
            if line.trim_end_matches('\r') == pending.delimiter {
                self.position = (line_start + length + 1).min(self.bytes.len());
                return line_start;
            }
            if let Some(rest) = line.strip_prefix(pending.delimiter.as_str())
                && self.open.parens > 0
                && !pending.delimiter.is_empty()
                && rest.starts_with([')', '`'])
            {
                self.position = line_start + length - rest.len();
                return line_start;
            }
            self.position = (line_start + length + 1).min(self.bytes.len());
        }
        self.bytes.len()
    }

    fn body(&mut self, start: usize, end: usize, pending: &PendingHeredoc) -> Word {
        let mut parts = Vec::new();
        let text = &self.source[start..end];
        if !pending.expands || !self.bounds.enter() {
            push_literal(&mut parts, text, true);
        } else {
            let place = match self.place {
                TextPlace::At(offset) => TextPlace::At(offset + start),
                within @ TextPlace::Within(_) => within,
            };
            let broken_before = self.bounds.partial;
            let mut inner = Scanner::new(text, place, &mut *self.bounds);
            inner.expanding(&mut parts, None);
            self.bounds.leave();
            // Text is text: an unbalanced `${` in a document is no broken command line.
            self.bounds.partial = broken_before;
        }
        Word { parts, span: self.body_span(start, end) }
    }

    fn body_span(&self, start: usize, end: usize) -> (usize, usize) {
        match self.place {
            TextPlace::At(offset) => (offset + start, offset + end),
            TextPlace::Within(span) => span,
        }
    }
}

impl Bounds {
    /// Returns the body of a heredoc.
    pub(crate) fn heredoc(&self, index: usize) -> Option<&Word> {
        self.heredocs.get(index)
    }
}

/// Returns the text of a delimiter, whatever its quoting.
fn plain_text(word: &Word) -> String {
    let mut text = String::new();
    for part in &word.parts {
        match part {
            Part::Literal { text: piece, .. } => text.push_str(piece),
            Part::Variable { name, .. } => {
                text.push('$');
                text.push_str(name);
            }
            Part::Command { .. }
            | Part::Process { .. }
            | Part::Elements { .. }
            | Part::Array { .. }
            | Part::Unknown { .. } => {}
        }
    }
    text
}
