//! The scanner's state, its limits, and the small steps everything else is built from.

use super::tree::{Script, Span, Word};

/// Deepest nesting of constructs, payloads included.
pub(super) const MAX_DEPTH: usize = 64;
/// Most words of one line, payloads included.
pub(super) const MAX_WORDS: usize = 10_000;
/// The distance of looking ahead to tell `((…))` from nested parentheses.
const LOOKAHEAD: usize = 4096;

/// The state that all scans of one line share: limits used up, flags raised, heredoc bodies found.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    /// Nesting right now.
    pub depth: usize,
    /// Words seen so far.
    pub words: usize,
    /// Something was not shell, or did not end.
    pub partial: bool,
    /// A limit was passed; what follows was not read.
    pub overflow: bool,
    /// Bodies of heredocs, by index.
    pub heredocs: Vec<Word>,
}

impl Bounds {
    /// Goes one level deeper; `false` when that would pass the limit.
    pub(crate) fn enter(&mut self) -> bool {
        if self.depth >= MAX_DEPTH {
            self.overflow = true;
            return false;
        }
        self.depth += 1;
        true
    }

    /// Comes back from a level that [`Bounds::enter`] allowed.
    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Counts a word.
    pub(crate) fn word(&mut self) {
        self.words += 1;
        if self.words > MAX_WORDS {
            self.overflow = true;
        }
    }
}

/// The place of the scanned text in the original line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPlace {
    /// It is a slice that starts there.
    At(usize),
    /// It was made from this range (unescaped, expanded): everything inside has this span.
    Within(Span),
}

/// Scans a text into a tree.
pub(crate) fn scan(source: &str, place: TextPlace, bounds: &mut Bounds) -> Script {
    let mut scanner = Scanner::new(source, place, bounds);
    let script = scanner.list();
    if scanner.position < source.len() && !scanner.bounds.overflow {
        scanner.bounds.partial = true;
    }
    script
}

/// The innermost open construct, for closers that have no opener.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenConstructs {
    pub parens: usize,
    pub braces: usize,
    pub keywords: usize,
    pub cases: usize,
    /// True in `${ …; }`, whose brace may have anything after it.
    pub is_value: bool,
}

/// A heredoc whose body has not been reached yet.
pub(super) struct PendingHeredoc {
    pub index: usize,
    pub delimiter: String,
    pub expands: bool,
    pub strip_tabs: bool,
}

/// A text and the position up to which it is read.
pub(super) struct Scanner<'a, 'b> {
    pub source: &'a str,
    pub bytes: &'a [u8],
    pub position: usize,
    pub place: TextPlace,
    pub bounds: &'b mut Bounds,
    pub open: OpenConstructs,
    pub pending: Vec<PendingHeredoc>,
}

impl<'a, 'b> Scanner<'a, 'b> {
    /// Begins at the start of a text.
    pub(super) fn new(source: &'a str, place: TextPlace, bounds: &'b mut Bounds) -> Self {
        let (bytes, open, pending) = (source.as_bytes(), OpenConstructs::default(), Vec::new());
        Scanner { source, bytes, position: 0, place, bounds, open, pending }
    }

    /// Returns the byte at the position, if any is left.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    /// Returns the byte some places ahead.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.position + ahead).copied()
    }

    /// Returns whether the rest starts with a text.
    pub(super) fn starts_with(&self, text: &str) -> bool {
        self.bytes[self.position.min(self.bytes.len())..].starts_with(text.as_bytes())
    }

    /// Steps over `text` if it is next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.position += text.len();
        }
        found
    }

    /// Steps over one character, whatever its length.
    pub(super) fn step(&mut self) {
        self.position += 1;
        while self.position < self.bytes.len() && !self.source.is_char_boundary(self.position) {
            self.position += 1;
        }
    }

    /// Returns the span from a start to the position.
    pub(super) fn span_from(&self, start: usize) -> Span {
        match self.place {
            TextPlace::At(offset) => (offset + start, offset + self.position.min(self.bytes.len())),
            TextPlace::Within(span) => span,
        }
    }

    /// Something here is not shell.
    pub(super) fn broken(&mut self) {
        self.bounds.partial = true;
    }

    /// Goes one level deeper, or ends the scan.
    pub(super) fn enter(&mut self) -> bool {
        let entered = self.bounds.enter();
        if !entered {
            self.position = self.bytes.len();
        }
        entered
    }

    /// Leaves a level of nesting.
    pub(super) fn leave(&mut self) {
        self.bounds.leave();
    }

    /// Counts a word, or ends the scan.
    pub(super) fn count_word(&mut self) {
        self.bounds.word();
        if self.bounds.overflow {
            self.position = self.bytes.len();
        }
    }

    /// Steps over blanks and continued lines; a carriage return in front of a line feed is a blank.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.position += 1,
                Some(b'\r') if matches!(self.peek_at(1), Some(b'\n') | None) => self.position += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.position += 2,
                Some(b'\\') if self.peek_at(1) == Some(b'\r') && self.peek_at(2) == Some(b'\n') => self.position += 3,
                _ => return,
            }
        }
    }

    /// Steps over blanks, line ends and comments; reads the heredoc bodies that begin at a line end.
    pub(super) fn space(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline(),
                Some(b'#') => self.comment(),
                _ => return,
            }
        }
    }

    /// Steps over a newline, and over the bodies of heredocs behind it.
    pub(super) fn newline(&mut self) {
        self.position += 1;
        if !self.pending.is_empty() {
            self.heredoc_bodies();
        }
    }

    /// Steps over a comment.
    pub(super) fn comment(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.position += 1;
        }
    }

    /// Returns the end (after it) of `((…))` that starts at the position, if it is one and is near.
    pub(super) fn arithmetic_end(&self) -> Option<usize> {
        let limit = self.bytes.len().min(self.position + LOOKAHEAD);
        let mut depth = 0usize;
        let mut at = self.position;
        while at < limit {
            match self.bytes[at] {
                b'\\' => at += 1,
                b'(' => depth += 1,
                b')' if depth == 2 => {
                    return (self.bytes.get(at + 1) == Some(&b')')).then_some(at + 2);
                }
                b')' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at += 1;
        }
        None
    }
}

/// Returns whether a byte ends a word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Returns whether a text is a variable's name.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}
