//! Statements: assignments, loops, and the heads of functions.

use super::lex::TokenKind;
use super::read::Reader;
use super::value::{Value, one_of};
use crate::classify::rules::dialect::CodeLanguage;

impl<'c> Reader<'c, '_> {
    /// Reads one statement, or as much as is understood of it: always at least a token.
    pub(super) fn statement(&mut self) {
        let from = self.at;
        match self.name_at(0) {
            Some("import") if !self.is_sign(1, "(") => self.import(),
            Some("from") if self.is(&[CodeLanguage::Python]) => self.import_from(),
            Some("use") if self.is(&[CodeLanguage::Perl]) => self.used_module(),
            Some("require" | "require_once" | "include" | "include_once") if self.is(&[CodeLanguage::Php]) => {
                self.at += 1;
                self.note_import(None, None);
            }
            Some("for" | "foreach") => self.for_loop(),
            Some(word @ ("def" | "function" | "sub" | "fn")) if self.defines(word) => self.definition(),
            Some("const" | "let" | "var" | "my" | "our" | "local") => {
                self.at += 1;
                loop {
                    if self.is_sign(0, "{") {
                        self.unpacked();
                    } else if !self.assignment() {
                        self.expression();
                    }
                    if !self.is(&[CodeLanguage::Javascript]) || !self.takes(",") {
                        break;
                    }
                    self.pass_lines();
                }
            }
            Some(_) => {
                if !self.assignment() {
                    self.expression();
                }
            }
            None => match self.kind(0) {
                Some(TokenKind::Line | TokenKind::Number) => self.at += 1,
                Some(
                    TokenKind::Sign("(" | "[" | "{") | TokenKind::Text(_) | TokenKind::Words(_) | TokenKind::Shell(_),
                ) => {
                    self.expression();
                }
                _ => self.at += 1,
            },
        }
        self.at = self.at.max(from + 1);
    }

    /// `NAME = value`, also `NAME: type = value`. Returns false if it is none.
    pub(super) fn assignment(&mut self) -> bool {
        let Some(name) = self.name_at(0) else { return false };
        let mut sign = 1;
        if self.is_sign(1, ":")
            && self.is(&[CodeLanguage::Python, CodeLanguage::Javascript])
            && self.name_at(2).is_some()
        {
            sign = 3;
        }
        if self.is_sign(1, ".")
            || !matches!(self.kind(sign), Some(TokenKind::Sign("=" | ":=" | "+=" | ".=" | "||=" | "??=")))
        {
            return false;
        }
        let before = self.at.checked_sub(1).map(|at| &self.tokens[at].kind);
        let is_second = self.is(&[CodeLanguage::Python]) && matches!(before, Some(TokenKind::Sign(",")));
        let is_plain = self.is_sign(sign, "=") || self.is_sign(sign, ":=");
        let is_added = self.is_sign(sign, "+=") || self.is_sign(sign, ".=");
        self.at += sign + 1;
        self.pass_lines();
        let calls = self.calls.len();
        let value = self.expression();
        match self.variables.get(name) {
            // `a, b = f, g`: nobody tells which one it is.
            _ if is_second => _ = self.variables.insert(name.to_owned(), Value::Unknown),
            _ if is_plain => self.assign(name, value, calls),
            // It may be added several times.
            Some(before @ (Value::Text(_) | Value::Partial(_) | Value::Any(_))) if is_added => {
                let both = one_of([before.joined(&value, false), Value::Unknown]);
                self.assign(name, both, calls);
            }
            _ => self.assign(name, Value::Unknown, calls),
        }
        true
    }

    /// Gives a variable its value. `calls` is the number of calls that were noted before the value was read.
    fn assign(&mut self, name: &'c str, value: Value, calls: usize) {
        let is_unsure = self.unsure.contains(name);
        if !is_unsure && let Value::Module(function) = &value {
            // The function has another name now: its calls are found by it.
            let is_named = self.calls.len() > calls
                && self.calls.last().is_some_and(|call| call.is_mention && call.name == *function);
            self.calls.truncate(self.calls.len() - usize::from(is_named));
        }
        let value = match self.variables.get(name) {
            Some(before) if is_unsure => one_of([before.clone(), value, Value::Unknown]),
            _ if is_unsure => one_of([value, Value::Unknown]),
            _ => value,
        };
        // Each use copies it.
        self.variables.insert(name.to_owned(), if value.is_small() { value } else { Value::Unknown });
    }

    /// `for x in list:`, `for (const x of list)`, `for my $x (list)`, `foreach (list as $x)`.
    pub(super) fn for_loop(&mut self) {
        self.at += 1;
        let is_bracketed = self.takes("(");
        while matches!(self.name_at(0), Some("my" | "our" | "const" | "let" | "var" | "await")) {
            self.at += 1;
        }
        if self.is(&[CodeLanguage::Php]) {
            let list = self.expression();
            if self.name_at(0) == Some("as") {
                self.at += 1;
                let key = self.name_at(0).filter(|_| self.is_sign(1, "=>"));
                if let Some(key) = key {
                    self.variables.insert(key.to_owned(), Value::Unknown);
                    self.at += 2;
                }
                self.bind(0, &list);
                self.at += 1;
            }
            return;
        }
        let Some(name) = self.name_at(0) else { return };
        match self.kind(1) {
            Some(TokenKind::Name("in" | "of")) => {
                self.at += 2;
                let list = self.expression();
                self.bind_name(name, &list);
            }
            Some(TokenKind::Sign("(")) if !is_bracketed && self.is(&[CodeLanguage::Perl]) => {
                self.at += 1;
                let list = self.expression();
                let list = if let Value::List(_) = list { list } else { Value::List(vec![list]) };
                self.bind_name(name, &list);
            }
            // `for a, b in …`, and loops that count.
            _ => {
                while let Some(name) = self.name_at(0).filter(|name| *name != "in") {
                    self.variables.insert(name.to_owned(), Value::Unknown);
                    self.at += 1;
                    if !self.takes(",") {
                        break;
                    }
                }
            }
        }
    }

    /// Makes the variable that a token ahead names each of the items of a list.
    pub(super) fn bind(&mut self, ahead: usize, list: &Value) {
        if let Some(name) = self.name_at(ahead) {
            self.bind_name(name, list);
        }
    }

    /// Makes a variable each of the items of a list.
    pub(super) fn bind_name(&mut self, name: &'c str, list: &Value) {
        let value = match list {
            Value::List(items) if !items.is_empty() && list.is_small() => Value::Any(items.clone()),
            _ => Value::Unknown,
        };
        self.variables.insert(name.to_owned(), value);
    }

    /// Returns true if a word begins the definition of a function, and is no name that the code has chosen.
    fn defines(&self, word: &str) -> bool {
        let languages: &[CodeLanguage] = match word {
            "def" => &[CodeLanguage::Python, CodeLanguage::Ruby],
            "function" => &[CodeLanguage::Javascript, CodeLanguage::Php],
            "sub" => &[CodeLanguage::Perl],
            _ => &[CodeLanguage::Php],
        };
        self.is(languages)
            && !self.variables.contains_key(word)
            && !matches!(self.kind(1), Some(TokenKind::Sign("=" | ".")))
    }

    /// The head of a function: nobody knows its parameters.
    pub(super) fn definition(&mut self) {
        self.at += 1;
        self.at += usize::from(self.name_at(0).is_some());
        if !self.takes("(") {
            return;
        }
        while let Some(kind) = self.kind(0) {
            self.at += 1;
            match kind {
                TokenKind::Name(name) => _ = self.variables.insert((*name).to_owned(), Value::Unknown),
                TokenKind::Sign(")") | TokenKind::Line => return,
                _ => {}
            }
        }
    }
}
