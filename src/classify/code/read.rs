//! Reads tokens of inline code: assignments, imports, loops over literals, and every call with the values of its arguments.
//!
//! No parser of five languages: whatever is not understood is passed over, and its value is unknown. Each token is read once,
//! but for the body of a comprehension, which is read again when its variable is known. Nesting is bounded.

use std::collections::{HashMap, HashSet};

use super::found::{Call, Directory, Import, Origin};
use super::lex::{Token, TokenKind};
use super::unsure::unsure;
use super::value::Value;
use crate::classify::rules::dialect::CodeLanguage;

/// Deepest nesting of expressions.
pub(super) const MAX_DEPTH: usize = 48;

/// Reads calls out of tokens.
pub(super) struct Reader<'c, 'k> {
    pub tokens: &'c [Token<'c>],
    pub at: usize,
    pub language: CodeLanguage,
    pub origin: Origin<'k>,
    /// Tells the calls that need no brackets.
    pub is_command: &'k dyn Fn(&str) -> bool,
    pub variables: HashMap<String, Value>,
    /// Variables that have several values, one of them not in every run.
    pub unsure: HashSet<&'c str>,
    pub dir: Directory,
    pub depth: usize,
    pub is_again: bool,
    pub calls: Vec<Call>,
    pub imports: Vec<Import<'c>>,
}

impl<'c, 'k> Reader<'c, 'k> {
    /// Begins to read. `is_command` tells the calls that need no brackets.
    pub(super) fn new(
        tokens: &'c [Token<'c>],
        language: CodeLanguage,
        origin: Origin<'k>,
        is_command: &'k dyn Fn(&str) -> bool,
    ) -> Reader<'c, 'k> {
        Reader {
            tokens,
            unsure: unsure(tokens, language),
            at: 0,
            language,
            origin,
            is_command,
            variables: HashMap::new(),
            dir: Directory::First,
            depth: 0,
            is_again: false,
            calls: Vec::new(),
            imports: Vec::new(),
        }
    }

    /// Returns all calls in the order in which they end, and what is imported.
    pub(super) fn read(mut self) -> (Vec<Call>, Vec<Import<'c>>) {
        while self.at < self.tokens.len() {
            self.statement();
        }
        (self.calls, self.imports)
    }

    /// Returns true if the code is in one of these languages.
    pub(super) fn is(&self, languages: &[CodeLanguage]) -> bool {
        languages.contains(&self.language)
    }

    /// Returns the kind of a token ahead.
    pub(super) fn kind(&self, ahead: usize) -> Option<&'c TokenKind<'c>> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    /// Returns true if a token ahead is this sign.
    pub(super) fn is_sign(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.kind(ahead), Some(TokenKind::Sign(found)) if *found == sign)
    }

    /// Returns the name that a token ahead is.
    pub(super) fn name_at(&self, ahead: usize) -> Option<&'c str> {
        match self.kind(ahead) {
            Some(TokenKind::Name(name)) => Some(name),
            _ => None,
        }
    }

    /// Passes over a sign, if it comes next.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(0, sign);
        self.at += usize::from(is_there);
        is_there
    }

    /// Passes over ends of lines.
    pub(super) fn pass_lines(&mut self) {
        while matches!(self.kind(0), Some(TokenKind::Line)) {
            self.at += 1;
        }
    }
}
