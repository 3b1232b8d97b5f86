//! Expressions: texts, lists, dictionaries, and what operators make of them.

use super::lex::TokenKind;
use super::read::{MAX_DEPTH, Reader};
use super::text::Piece;
use super::value::{Value, one_of};
use super::words::{TRANSPARENT, WORDS};
use crate::classify::rules::dialect::CodeLanguage;

impl Reader<'_, '_> {
    /// Reads an expression, and returns its value.
    pub(super) fn expression(&mut self) -> Value {
        if self.depth >= MAX_DEPTH {
            self.at += 1;
            return Value::Unknown;
        }
        self.depth += 1;
        let mut value = self.unary();
        while let Some(sign) = self.operator() {
            let is_dot_joined = self.is(&[CodeLanguage::Perl, CodeLanguage::Php]);
            match sign {
                "+" if !is_dot_joined => value = self.combined(&value, matches!(value, Value::Path(_))),
                "|" => {
                    self.at += 1;
                    self.pass_lines();
                    value = match (value, self.unary()) {
                        (Value::Module(one), Value::Module(other)) if one.len() < 200 => {
                            Value::Module(format!("{one}|{other}"))
                        }
                        _ => Value::Unknown,
                    };
                }
                "." if is_dot_joined => value = self.combined(&value, false),
                "/" if matches!(value, Value::Path(_)) => value = self.combined(&value, true),
                "=>" if self.is(&[CodeLanguage::Javascript]) => {
                    self.at += 1;
                    self.pass_lines();
                    if self.is_sign(0, "{") {
                        self.unary();
                    } else {
                        self.expression();
                    }
                    value = Value::Unknown;
                }
                "?" => {
                    self.at += 1;
                    self.pass_lines();
                    let first = self.expression();
                    self.pass_lines();
                    value = match self.takes(":") {
                        true => one_of([first, self.expression()]),
                        false => Value::Unknown,
                    };
                }
                // Python's `a if c else b`.
                "if" => {
                    self.at += 1;
                    self.expression();
                    if self.name_at(0) == Some("else") {
                        self.at += 1;
                        value = one_of([value, self.expression()]);
                    }
                }
                "and" | "or" | "&&" | "||" | "??" => {
                    self.at += 1;
                    self.pass_lines();
                    value = one_of([value, self.expression()]);
                }
                "-" | "*" | "/" | "%" | "**" | "//" | "==" | "===" | "!=" | "!==" | "<" | ">" | "<=" | ">=" | "<=>"
                | "=~" | "!~" | "&" | "<<" => {
                    value = self.combined(&value, false);
                    value = Value::Unknown.joined(&value, false);
                }
                _ => break,
            }
        }
        self.depth -= 1;
        value
    }

    /// Returns the operator that comes next: a sign, or a word that joins two values of Python.
    fn operator(&self) -> Option<&'static str> {
        const SIGNS: [&str; 27] = [
            "+", "|", ".", "/", "=>", "?", "-", "*", "%", "**", "//", "==", "===", "!=", "!==", "<", ">", "<=", ">=",
            "<=>", "=~", "!~", "&&", "||", "??", "&", "<<",
        ];
        match self.kind(0) {
            Some(TokenKind::Sign(sign)) => SIGNS.iter().find(|known| *known == sign).copied(),
            Some(TokenKind::Name(word)) if self.is(&[CodeLanguage::Python]) => {
                ["if", "and", "or"].iter().find(|known| *known == word).copied()
            }
            _ => None,
        }
    }

    /// Reads the second operand behind an operator, and joins both.
    pub(super) fn combined(&mut self, value: &Value, as_path: bool) -> Value {
        self.at += 1;
        self.pass_lines();
        let other = self.unary();
        value.joined(&other, as_path)
    }

    /// Reads a value with what stands before and behind it.
    pub(super) fn unary(&mut self) -> Value {
        let from = self.at;
        let value = match self.kind(0) {
            Some(TokenKind::Sign("!" | "-" | "~" | "+")) => {
                self.at += 1;
                self.unary_below();
                Value::Unknown
            }
            Some(TokenKind::Sign("*" | "**" | "..." | "\\" | "&")) => {
                self.at += 1;
                let value = self.unary_below();
                // Ruby's `files.each(&:unlink)`.
                if let Value::Module(name) = &value
                    && let Some(method) = name.strip_prefix(':').filter(|_| self.is(&[CodeLanguage::Ruby]))
                    && (self.is_command)(&format!(".{method}"))
                {
                    self.note("eval".to_owned(), None, (vec![Value::Unknown], Vec::new()), 0);
                }
                value
            }
            Some(TokenKind::Name(name)) if TRANSPARENT.contains(name) => {
                self.at += 1;
                self.unary_below()
            }
            _ => self.primary(),
        };
        self.at = self.at.max(from + 1);
        value
    }

    /// Reads a value one level deeper.
    pub(super) fn unary_below(&mut self) -> Value {
        if self.depth >= MAX_DEPTH {
            return Value::Unknown;
        }
        self.depth += 1;
        let value = self.unary();
        self.depth -= 1;
        value
    }

    /// Reads a value without what stands before it.
    pub(super) fn primary(&mut self) -> Value {
        let from = self.tokens.get(self.at).map_or(0, |token| token.from);
        match self.kind(0) {
            Some(TokenKind::Number) => {
                self.at += 1;
                self.suffixes(Value::Number, from)
            }
            Some(TokenKind::Text(text)) => {
                self.at += 1;
                let mut value = self.text(text);
                // Neighbours are one text.
                while let (Some(TokenKind::Text(text)), true) =
                    (self.kind(0), self.is(&[CodeLanguage::Python, CodeLanguage::Ruby]))
                {
                    self.at += 1;
                    value = value.joined(&self.text(text), false);
                }
                self.suffixes(value, from)
            }
            Some(TokenKind::Shell(text)) => {
                self.at += 1;
                let text = self.text(text);
                self.note("`".to_owned(), None, (vec![text], Vec::new()), from);
                Value::Unknown
            }
            Some(TokenKind::Words(words)) => {
                self.at += 1;
                let list = Value::List(words.iter().cloned().map(Value::Text).collect());
                self.suffixes(list, from)
            }
            Some(TokenKind::Sign("[")) => {
                let (mut items, named) = self.list("]");
                items.extend(named.into_iter().map(|(_, value)| value));
                self.suffixes(Value::List(items), from)
            }
            Some(TokenKind::Sign("(")) => {
                let (mut items, _) = self.list(")");
                let value = if items.len() == 1 && !self.is(&[CodeLanguage::Perl]) {
                    items.remove(0)
                } else {
                    Value::List(items)
                };
                self.suffixes(value, from)
            }
            Some(TokenKind::Sign("{")) => self.braces(),
            // A symbol of Ruby: the name of something, never a path.
            Some(TokenKind::Sign(":")) if self.is(&[CodeLanguage::Ruby]) && self.name_at(1).is_some() => {
                let name = self.name_at(1).unwrap_or_default();
                self.at += 2;
                Value::Module(format!(":{name}"))
            }
            // Perl's `do FILE` runs it; `do {…}` is a block.
            Some(TokenKind::Name(name))
                if WORDS.contains(name)
                    && !self.variables.contains_key(*name)
                    && !(*name == "do" && matches!(self.kind(1), Some(TokenKind::Text(_)))) =>
            {
                self.at += 1;
                Value::Unknown
            }
            Some(TokenKind::Name(_)) => self.named(from),
            _ => {
                self.at += 1;
                Value::Unknown
            }
        }
    }

    /// Returns the value of a text with what is filled in.
    pub(super) fn text(&self, pieces: &[Piece]) -> Value {
        let piece = |piece: &Piece| match piece {
            Piece::Plain(text) => Value::Text(text.clone()),
            Piece::Filled(name) => match name.as_ref().and_then(|name| self.variables.get(name)) {
                Some(Value::Path(Some(path))) => Value::Text(path.clone()),
                Some(value @ (Value::Text(_) | Value::Partial(_) | Value::Any(_))) => value.clone(),
                _ => Value::Unknown,
            },
        };
        let mut pieces = pieces.iter().map(piece);
        let first = pieces.next().unwrap_or(Value::Text(String::new()));
        pieces.fold(first, |joined, piece| joined.joined(&piece, false))
    }

    /// Reads a dictionary or a block.
    pub(super) fn braces(&mut self) -> Value {
        self.at += 1;
        let mut fields = Vec::new();
        while self.kind(0).is_some() && !self.takes("}") {
            self.pass_lines();
            let key = match self.kind(0) {
                Some(TokenKind::Name(name)) => Some((*name).to_owned()),
                Some(TokenKind::Text(text)) => self.text(text).text().map(str::to_owned),
                _ => None,
            };
            if let Some(key) = key.filter(|_| self.is_sign(1, ":") || self.is_sign(1, "=>")) {
                self.at += 2;
                self.pass_lines();
                let value = self.expression();
                fields.push((key, value));
            } else if !self.is_sign(0, "}") && self.kind(0).is_some() {
                if self.depth >= MAX_DEPTH {
                    return Value::Unknown;
                }
                self.depth += 1;
                self.statement();
                self.depth -= 1;
            }
        }
        if fields.is_empty() { Value::Unknown } else { Value::Map(fields) }
    }

    /// Reads values in brackets: those by position and those by name.
    pub(super) fn list(&mut self, close: &str) -> (Vec<Value>, Vec<(String, Value)>) {
        self.at += 1;
        let (start, calls) = (self.at, self.calls.len());
        let (mut items, mut named) = (Vec::new(), Vec::new());
        loop {
            self.pass_lines();
            if self.kind(0).is_none() || self.takes(close) {
                break;
            }
            let before = self.at;
            self.item(&mut items, &mut named);
            if self.name_at(0) == Some("for") && self.is(&[CodeLanguage::Python]) {
                let is_first = !std::mem::replace(&mut self.is_again, true);
                self.for_loop();
                if is_first {
                    // The variable is known now: what stands before is read again.
                    let end = self.at;
                    self.calls.truncate(calls);
                    self.at = start;
                    items.clear();
                    self.item(&mut items, &mut named);
                    self.at = end;
                    self.is_again = false;
                }
                continue;
            }
            if !self.takes(",") && self.at == before {
                self.at += 1;
            }
            if matches!(self.kind(0), Some(TokenKind::Sign(sign)) if [")", "]", "}"].contains(sign) && *sign != close) {
                break;
            }
        }
        (items, named)
    }

    /// Reads one value of a list.
    pub(super) fn item(&mut self, items: &mut Vec<Value>, named: &mut Vec<(String, Value)>) {
        if let Some(name) = self.name_at(0)
            && (self.is_sign(1, "=") || (self.is_sign(1, ":") && self.is(&[CodeLanguage::Ruby, CodeLanguage::Php])))
        {
            self.at += 2;
            let value = self.expression();
            return named.push((name.trim_start_matches('$').to_owned(), value));
        }
        // `f(*args)`: each of them.
        if self.is_sign(0, "*") && self.is(&[CodeLanguage::Python, CodeLanguage::Ruby]) {
            match self.expression() {
                Value::List(values) => items.extend(values),
                other => items.push(other),
            }
            return;
        }
        // `x => …`, `(x) => …`: functions of one line.
        let before = self.at;
        let is_key = matches!(self.kind(0), Some(TokenKind::Name(_))) && self.is_sign(1, "=>");
        if is_key && !self.is(&[CodeLanguage::Javascript]) {
            let name = self.name_at(0).unwrap_or_default().to_owned();
            self.at += 2;
            let value = self.expression();
            return named.push((name, value));
        }
        let value = self.expression();
        if self.at > before && self.is_sign(0, "=>") && !self.is(&[CodeLanguage::Javascript]) {
            self.at += 1;
            let field = self.expression();
            match value.text() {
                Some(name) => named.push((name.trim_start_matches(':').to_owned(), field)),
                None => items.push(field),
            }
            return;
        }
        items.push(value);
    }
}
