//! Reads tokens of inline code: assignments, imports, loops over literals, and every call with the values of its arguments.
//!
//! No parser of five languages: whatever is not understood is passed over, and its value is unknown. Each token is read once,
//! but for the body of a comprehension, which is read again when its variable is known. Nesting is bounded.

use std::collections::{HashMap, HashSet};

use super::lex::{Piece, Token, TokenKind};
use super::value::{Value, computed, method, path_of};
use crate::classify::rules::dialect::CodeLanguage;

/// Deepest nesting of expressions.
const MAX_DEPTH: usize = 48;

/// Most calls that are noted.
const MAX_CALLS: usize = 1000;

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The full name, as imports and aliases tell it (`os.path.join`); of a method on a value only its own (`.unlink`).
    pub name: String,
    /// The value that a method is called on.
    pub receiver: Option<Value>,
    /// Values by position.
    pub args: Vec<Value>,
    /// Values by name.
    pub named: Vec<(String, Value)>,
    /// The directory that the code has gone to; `None` within if nobody knows.
    pub dir: Option<Option<String>>,
    /// The place of the call in the code.
    pub from: usize,
    pub to: usize,
}

impl Call {
    /// Returns a value by its name or its position.
    pub(super) fn value(&self, at: usize, name: &str) -> Option<&Value> {
        let named = self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        named.or_else(|| self.args.get(at))
    }

    /// Returns the value of an option: by name, or in a map.
    pub(super) fn option(&self, name: &str) -> Option<&Value> {
        let named = self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        named.or_else(|| self.args.iter().find_map(|arg| arg.field(name)))
    }
}

/// Reads calls out of tokens.
pub(super) struct Reader<'c, 'k> {
    tokens: &'c [Token<'c>],
    at: usize,
    language: CodeLanguage,
    home: Option<&'k str>,
    /// Tells the calls that need no brackets.
    is_command: &'k dyn Fn(&str) -> bool,
    variables: HashMap<String, Value>,
    /// Variables that have several values, one of them not in every run.
    unsure: HashSet<&'c str>,
    dir: Option<Option<String>>,
    depth: usize,
    is_again: bool,
    calls: Vec<Call>,
}

/// Words before a value that do not change it.
const TRANSPARENT: [&str; 8] = ["await", "new", "return", "yield", "void", "my", "our", "local"];

/// Words that are no values.
const WORDS: [&str; 44] = [
    "if", "elsif", "elif", "else", "unless", "while", "until", "do", "end", "then", "and", "or", "not", "in", "of",
    "is", "as", "def", "class", "function", "sub", "lambda", "try", "except", "finally", "rescue", "ensure", "catch",
    "raise", "throw", "pass", "break", "continue", "next", "last", "begin", "with", "assert", "del", "global", "case",
    "when", "async", "from",
];

/// Functions that change the directory.
pub(super) const CHANGES: [&str; 5] = ["os.chdir", "chdir", "process.chdir", "Dir.chdir", "Deno.chdir"];

/// Methods that call a function for each item.
const EACH: [&str; 5] = ["each", "forEach", "map", "each_with_index", "flatMap"];

impl<'c, 'k> Reader<'c, 'k> {
    /// Begins to read. `is_command` tells the calls that need no brackets.
    pub(super) fn new(
        tokens: &'c [Token<'c>],
        language: CodeLanguage,
        home: Option<&'k str>,
        is_command: &'k dyn Fn(&str) -> bool,
    ) -> Reader<'c, 'k> {
        Reader {
            tokens,
            unsure: unsure(tokens, language),
            at: 0,
            language,
            home,
            is_command,
            variables: HashMap::new(),
            dir: None,
            depth: 0,
            is_again: false,
            calls: Vec::new(),
        }
    }

    /// Returns all calls, in the order in which they end.
    pub(super) fn read(mut self) -> Vec<Call> {
        while self.at < self.tokens.len() {
            self.statement();
        }
        self.calls
    }

    fn is(&self, languages: &[CodeLanguage]) -> bool {
        languages.contains(&self.language)
    }

    fn kind(&self, ahead: usize) -> Option<&'c TokenKind<'c>> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    fn is_sign(&self, ahead: usize, sign: &str) -> bool {
        matches!(self.kind(ahead), Some(TokenKind::Sign(found)) if *found == sign)
    }

    fn name_at(&self, ahead: usize) -> Option<&'c str> {
        match self.kind(ahead) {
            Some(TokenKind::Name(name)) => Some(name),
            _ => None,
        }
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_there = self.is_sign(0, sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn pass_lines(&mut self) {
        while matches!(self.kind(0), Some(TokenKind::Line)) {
            self.at += 1;
        }
    }

    /// Reads one statement, or as much as is understood of it: always at least a token.
    fn statement(&mut self) {
        let from = self.at;
        match self.name_at(0) {
            Some("import") => self.import(),
            Some("from") if self.is(&[CodeLanguage::Python]) => self.import_from(),
            Some("for" | "foreach") => self.for_loop(),
            Some("def" | "function" | "sub" | "fn") => self.definition(),
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
                Some(TokenKind::Sign("(" | "[" | "{"))
                | Some(TokenKind::Text(_) | TokenKind::Words(_) | TokenKind::Shell(_)) => {
                    self.expression();
                }
                _ => self.at += 1,
            },
        }
        self.at = self.at.max(from + 1);
    }

    /// `NAME = value`, also `NAME: type = value`. Returns false if it is none.
    fn assignment(&mut self) -> bool {
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
        let is_plain = self.is_sign(sign, "=") || self.is_sign(sign, ":=");
        self.at += sign + 1;
        self.pass_lines();
        let value = self.expression();
        self.assign(name, if is_plain { value } else { Value::Unknown });
        true
    }

    /// Gives a variable its value.
    fn assign(&mut self, name: &'c str, value: Value) {
        // Each use copies it.
        let is_known = value.is_small() && !self.unsure.contains(name);
        self.variables.insert(name.to_owned(), if is_known { value } else { Value::Unknown });
    }

    /// `import os, shutil as s`; `import fs from 'fs'`; `import {rm as r} from 'fs'`.
    fn import(&mut self) {
        self.at += 1;
        if self.is(&[CodeLanguage::Javascript]) {
            return self.import_of_script();
        }
        while let Some(name) = self.dotted() {
            let (known, module) = match self.name_at(0) {
                Some("as") => {
                    self.at += 1;
                    let known = self.name_at(0);
                    self.at += usize::from(known.is_some());
                    (known, name)
                }
                _ => (None, name),
            };
            if let Some(known) = known {
                self.variables.insert(known.to_owned(), Value::Module(module));
            }
            if !self.takes(",") {
                break;
            }
        }
    }

    fn import_of_script(&mut self) {
        let (mut names, mut whole) = (Vec::new(), None);
        loop {
            if let Some(name) = self.name_at(0) {
                self.at += 1;
                match name {
                    "from" => break,
                    "as" => {}
                    name => whole = Some(name),
                }
            } else if self.is_sign(0, "{") {
                names = self.renamed("as");
            } else if self.is_sign(0, "*") || self.is_sign(0, ",") {
                self.at += 1;
            } else {
                break;
            }
        }
        if let Some(TokenKind::Text(module)) = self.kind(0) {
            self.at += 1;
            let module = canonical(self.text(module).text().unwrap_or_default());
            if let Some(whole) = whole {
                self.variables.insert(whole.to_owned(), Value::Module(module.clone()));
            }
            for (name, known) in names {
                self.variables.insert(known.to_owned(), Value::Module(format!("{module}.{name}")));
            }
        }
    }

    /// Reads `{a, b: c}`, or with another word in the place of the colon.
    fn renamed(&mut self, word: &str) -> Vec<(&'c str, &'c str)> {
        let mut names = Vec::new();
        self.at += 1;
        while let Some(kind) = self.kind(0) {
            self.at += 1;
            match kind {
                TokenKind::Sign("}") => break,
                TokenKind::Name(name) => {
                    let is_renamed = self.is_sign(0, word) || self.name_at(0) == Some(word);
                    let known = self.name_at(1).filter(|_| is_renamed);
                    self.at += if known.is_some() { 2 } else { 0 };
                    names.push((*name, known.unwrap_or(name)));
                }
                _ => {}
            }
        }
        names
    }

    /// `const {rmSync: r} = require('fs')`.
    fn unpacked(&mut self) {
        let names = self.renamed(":");
        if !self.takes("=") {
            return;
        }
        let value = self.expression();
        for (name, known) in names {
            let value = match &value {
                Value::Module(module) => Value::Module(format!("{module}.{name}")),
                value => value.field(name).cloned().unwrap_or(Value::Unknown),
            };
            self.variables.insert(known.to_owned(), value);
        }
    }

    /// `from os import remove as rm, path`.
    fn import_from(&mut self) {
        self.at += 1;
        let Some(module) = self.dotted() else { return };
        if self.name_at(0) != Some("import") {
            return;
        }
        self.at += 1;
        let is_bracketed = self.takes("(");
        loop {
            if is_bracketed {
                self.pass_lines();
            }
            let Some(name) = self.name_at(0) else { break };
            self.at += 1;
            let mut known = name;
            if self.name_at(0) == Some("as") {
                known = self.name_at(1).unwrap_or(name);
                self.at += 2;
            }
            self.variables.insert(known.to_owned(), Value::Module(format!("{module}.{name}")));
            if !self.takes(",") {
                break;
            }
        }
    }

    /// `for x in list:`, `for (const x of list)`, `for my $x (list)`, `foreach (list as $x)`.
    fn for_loop(&mut self) {
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

    fn bind(&mut self, ahead: usize, list: &Value) {
        if let Some(name) = self.name_at(ahead) {
            self.bind_name(name, list);
        }
    }

    /// Makes a variable each of the items of a list.
    fn bind_name(&mut self, name: &'c str, list: &Value) {
        let value = match list {
            Value::List(items) if !items.is_empty() && list.is_small() => Value::Any(items.clone()),
            _ => Value::Unknown,
        };
        self.variables.insert(name.to_owned(), value);
    }

    /// The head of a function: nobody knows its parameters.
    fn definition(&mut self) {
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

    /// Reads `a.b.c` where it is only a name.
    fn dotted(&mut self) -> Option<String> {
        let mut name = self.name_at(0)?.to_owned();
        self.at += 1;
        while self.is_sign(0, ".")
            && let Some(part) = self.name_at(1)
        {
            name.push('.');
            name.push_str(part);
            self.at += 2;
        }
        Some(name)
    }

    /// Reads an expression, and returns its value.
    fn expression(&mut self) -> Value {
        if self.depth >= MAX_DEPTH {
            self.at += 1;
            return Value::Unknown;
        }
        self.depth += 1;
        let mut value = self.unary();
        while let Some(TokenKind::Sign(sign)) = self.kind(0) {
            let is_dot_joined = self.is(&[CodeLanguage::Perl, CodeLanguage::Php]);
            match *sign {
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
                    self.expression();
                    if self.takes(":") {
                        self.expression();
                    }
                    value = Value::Unknown;
                }
                "-" | "*" | "/" | "%" | "**" | "//" | "==" | "===" | "!=" | "!==" | "<" | ">" | "<=" | ">=" | "<=>"
                | "=~" | "!~" | "&&" | "||" | "??" | "&" | "<<" => {
                    value = self.combined(&value, false);
                    value = Value::Unknown.joined(&value, false);
                }
                _ => break,
            }
        }
        self.depth -= 1;
        value
    }

    fn combined(&mut self, value: &Value, as_path: bool) -> Value {
        self.at += 1;
        self.pass_lines();
        let other = self.unary();
        value.joined(&other, as_path)
    }

    /// Reads a value with what stands before and behind it.
    fn unary(&mut self) -> Value {
        let from = self.at;
        let value = match self.kind(0) {
            Some(TokenKind::Sign("!" | "-" | "~" | "+")) => {
                self.at += 1;
                self.unary_below();
                Value::Unknown
            }
            Some(TokenKind::Sign("*" | "**" | "..." | "\\" | "&")) => {
                self.at += 1;
                self.unary_below()
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

    fn unary_below(&mut self) -> Value {
        if self.depth >= MAX_DEPTH {
            return Value::Unknown;
        }
        self.depth += 1;
        let value = self.unary();
        self.depth -= 1;
        value
    }

    fn primary(&mut self) -> Value {
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
            Some(TokenKind::Name(name)) if WORDS.contains(name) => {
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
    fn text(&self, pieces: &[Piece]) -> Value {
        let piece = |piece: &Piece| match piece {
            Piece::Plain(text) => Value::Text(text.clone()),
            Piece::Filled(name) => match name.as_ref().and_then(|name| self.variables.get(name)) {
                Some(Value::Path(Some(path))) => Value::Text(path.clone()),
                Some(value @ (Value::Text(_) | Value::Any(_))) => value.clone(),
                _ => Value::Unknown,
            },
        };
        let mut pieces = pieces.iter().map(piece);
        let first = pieces.next().unwrap_or(Value::Text(String::new()));
        pieces.fold(first, |joined, piece| joined.joined(&piece, false))
    }

    /// Reads a dictionary or a block.
    fn braces(&mut self) -> Value {
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
    fn list(&mut self, close: &str) -> (Vec<Value>, Vec<(String, Value)>) {
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
    fn item(&mut self, items: &mut Vec<Value>, named: &mut Vec<(String, Value)>) {
        if let Some(name) = self.name_at(0)
            && (self.is_sign(1, "=") || (self.is_sign(1, ":") && self.is(&[CodeLanguage::Ruby, CodeLanguage::Php])))
        {
            self.at += 2;
            let value = self.expression();
            return named.push((name.trim_start_matches('$').to_owned(), value));
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

    /// Reads a name with its parts, its arguments, and what follows.
    fn named(&mut self, from: usize) -> Value {
        let Some(first) = self.name_at(0) else { return Value::Unknown };
        self.at += 1;
        let value = match self.variables.get(first) {
            Some(Value::Module(module)) => Value::Module(module.clone()),
            Some(value) => {
                let value = value.clone();
                return self.suffixes(value, from);
            }
            None => Value::Module(first.to_owned()),
        };
        self.suffixes(value, from)
    }

    /// Returns true if a part of the value follows, and passes over its sign.
    fn dot(&mut self) -> bool {
        let is_dot = match self.kind(0) {
            Some(TokenKind::Sign("::" | "->" | "?." | "&.")) => true,
            Some(TokenKind::Sign(".")) => !self.is(&[CodeLanguage::Perl, CodeLanguage::Php]),
            _ => false,
        };
        // A chain goes on in the next line.
        let mut ahead = 0;
        while matches!(self.kind(ahead), Some(TokenKind::Line)) {
            ahead += 1;
        }
        let goes_on = ahead > 0 && self.is_sign(ahead, ".") && self.is(&[CodeLanguage::Javascript, CodeLanguage::Ruby]);
        if goes_on {
            self.at += ahead + 1;
        }
        self.at += usize::from(is_dot);
        is_dot || goes_on
    }

    /// Reads `.name`, `(…)` and `[…]` behind a value.
    fn suffixes(&mut self, mut value: Value, from: usize) -> Value {
        // The last part, as long as it was not called.
        let mut part: Option<(Value, &'c str)> = None;
        for _ in 0..MAX_CALLS {
            if let Some(name) =
                (!self.is_sign(0, "(")).then(|| self.dot()).filter(|is| *is).and_then(|_| self.name_at(0))
            {
                self.at += 1;
                let whole = match &value {
                    Value::Module(module) => Value::Module(format!("{module}.{name}")),
                    Value::Path(_) if name == "parent" => Value::Path(None),
                    Value::Map(_) => value.field(name).cloned().unwrap_or(Value::Unknown),
                    _ => Value::Unknown,
                };
                part = Some((std::mem::replace(&mut value, whole), name));
                continue;
            }
            let is_close =
                self.tokens.get(self.at).is_some_and(|token| !token.is_apart || !self.is(&[CodeLanguage::Ruby]));
            if self.is_sign(0, "(") && is_close {
                let (args, named) = self.loop_args(part.as_ref().map(|(of, _)| of));
                value = self.called(&value, part.take(), (args, named), from);
                continue;
            }
            if self.is_sign(0, "[") && is_close {
                let (keys, _) = self.list("]");
                let is_home = keys.first().and_then(Value::text) == Some("HOME");
                let is_environment = matches!(&value, Value::Module(name) if ["os.environ", "ENV", "process.env", "$_ENV", "$_SERVER"].contains(&name.as_str()));
                let part_of = |module: &str, key: &Value| Some(Value::Module(format!("{module}.{}", key.text()?)));
                value = match (&value, self.home.filter(|_| is_home && is_environment), keys.first()) {
                    (_, Some(home), _) => Value::Text(home.to_owned()),
                    (Value::Module(module), _, Some(key)) if self.is(&[CodeLanguage::Javascript]) => {
                        part_of(module, key).unwrap_or(Value::Unknown)
                    }
                    _ => Value::Unknown,
                };
                part = None;
                continue;
            }
            if self.is_sign(0, "{")
                && self.is(&[CodeLanguage::Perl])
                && matches!(&value, Value::Module(name) if name == "$ENV")
            {
                let is_home = self.name_at(1) == Some("HOME") && self.is_sign(2, "}");
                self.at += if is_home { 3 } else { 1 };
                value = self.home.filter(|_| is_home).map_or(Value::Unknown, |home| Value::Text(home.to_owned()));
                continue;
            }
            if let Some((of, name)) = &part
                && EACH.contains(name)
            {
                let of = of.clone();
                self.block_parameter(&of);
                return Value::Unknown;
            }
            break;
        }
        match (&value, &part) {
            (Value::Module(name), _) if name == "process.env.HOME" => {
                self.home.map_or(Value::Unknown, |home| Value::Text(home.to_owned()))
            }
            (Value::Module(name), None | Some((Value::Module(_), _))) if self.begins_arguments(name) => {
                let args = self.bare_arguments();
                let part = part.clone();
                self.called(&value, part, args, from)
            }
            (Value::Module(name), None)
                if self.is(&[CodeLanguage::Perl])
                    && matches!(self.name_at(0), Some("for" | "foreach"))
                    && (self.is_command)(name) =>
            {
                // `unlink for qw(a b)`: each of them.
                let name = name.clone();
                self.at += 1;
                let each = match self.expression() {
                    Value::List(items) => Value::Any(items),
                    _ => Value::Unknown,
                };
                self.note(name, None, (vec![each], Vec::new()), from);
                Value::Unknown
            }
            (Value::Module(name), _)
                if ["os.sep", "path.sep", "File.SEPARATOR", "DIRECTORY_SEPARATOR"].contains(&name.as_str()) =>
            {
                Value::Text("/".to_owned())
            }
            (Value::Module(_), None) => value,
            (_, Some((of, name))) if !matches!(of, Value::Module(_)) => {
                let of = of.clone();
                // Ruby calls methods without brackets.
                if self.is(&[CodeLanguage::Ruby]) {
                    self.note(format!(".{name}"), Some(of.clone()), (Vec::new(), Vec::new()), from);
                }
                method(&of, name, &[], self.home).unwrap_or(value)
            }
            (Value::Module(name), _) => computed(name, &[], self.home).unwrap_or(value),
            _ => value,
        }
    }

    /// Reads arguments in brackets. A function among them that is called for each item gets the items.
    fn loop_args(&mut self, of: Option<&Value>) -> (Vec<Value>, Vec<(String, Value)>) {
        if let Some(of) = of {
            let ahead = 1 + usize::from(self.is_sign(1, "("));
            let is_function = self.is_sign(ahead + 1, "=>")
                || (ahead == 2 && matches!(self.kind(3), Some(TokenKind::Sign(")" | ","))));
            if is_function && self.is(&[CodeLanguage::Javascript]) {
                let of = of.clone();
                self.bind(ahead, &of);
            }
        }
        self.list(")")
    }

    /// `{ |f| …`, `do |f| …`.
    fn block_parameter(&mut self, of: &Value) {
        let is_block = self.is_sign(0, "{") || self.name_at(0) == Some("do");
        if is_block && self.is_sign(1, "|") {
            self.bind(2, of);
            self.at += 3;
            while self.kind(0).is_some() && !self.takes("|") {
                self.at += 1;
            }
        }
    }

    /// Returns true if what follows a name are its arguments, though no bracket opens them.
    fn begins_arguments(&self, name: &str) -> bool {
        let Some(token) = self.tokens.get(self.at) else { return false };
        let is_language = self.is(&[CodeLanguage::Ruby, CodeLanguage::Perl]) || name == "$";
        let begins = match &token.kind {
            TokenKind::Text(_) | TokenKind::Words(_) | TokenKind::Number => true,
            TokenKind::Sign("[" | "(") => self.is(&[CodeLanguage::Ruby]),
            TokenKind::Sign("\\" | "<" | "*") => self.is(&[CodeLanguage::Perl, CodeLanguage::Ruby]),
            TokenKind::Name(word) => {
                !WORDS.contains(word) && !["if", "unless", "for", "foreach", "x", "eq"].contains(word)
            }
            TokenKind::Shell(_) => name == "$",
            _ => false,
        };
        (token.is_apart || name == "$") && is_language && begins && (self.is_command)(name)
    }

    /// Reads arguments up to the end of the statement.
    fn bare_arguments(&mut self) -> (Vec<Value>, Vec<(String, Value)>) {
        let (mut items, mut named) = (Vec::new(), Vec::new());
        loop {
            let before = self.at;
            self.item(&mut items, &mut named);
            if self.at == before || !self.takes(",") {
                return (items, named);
            }
            self.pass_lines();
        }
    }

    /// Notes a call, and returns its value.
    fn called(
        &mut self,
        value: &Value,
        part: Option<(Value, &'c str)>,
        (args, named): (Vec<Value>, Vec<(String, Value)>),
        from: usize,
    ) -> Value {
        let (name, receiver) = match (value, part) {
            (Value::Module(name), _) => (name.clone(), None),
            (_, Some((of, name))) => (format!(".{name}"), Some(of)),
            _ => return Value::Unknown,
        };
        if self.is(&[CodeLanguage::Php]) {
            match (name.as_str(), args.first().and_then(Value::text)) {
                ("array", _) => {
                    return Value::List(args.into_iter().chain(named.into_iter().map(|(_, value)| value)).collect());
                }
                ("define", Some(constant)) => {
                    let value = args.get(1).cloned().unwrap_or(Value::Unknown);
                    self.variables.insert(constant.to_owned(), value);
                }
                ("array_map" | "array_walk" | "call_user_func", Some(function)) => {
                    let function = function.to_owned();
                    let each = args.get(1).cloned().unwrap_or(Value::Unknown);
                    self.note(function, None, (vec![each], Vec::new()), from);
                }
                _ => {}
            }
        }
        if name == "require" || name == "__import__" || name == "importlib.import_module" {
            let module = args.first().and_then(Value::text).map(canonical);
            self.note(name, None, (args, named), from);
            return module.map_or(Value::Unknown, Value::Module);
        }
        let made = match &receiver {
            None => computed(&name, &args, self.home),
            Some(of) => method(of, name.trim_start_matches('.'), &args, self.home),
        };
        if let Some(of) = &receiver
            && EACH.contains(&name.trim_start_matches('.'))
        {
            self.block_parameter(of);
        }
        let before = self.dir.clone();
        let is_block = name == "Dir.chdir" && (self.is_sign(0, "{") || self.name_at(0) == Some("do"));
        self.note(name, receiver, (args, named), from);
        if is_block && self.is_sign(0, "{") {
            self.braces();
            self.dir = before;
        } else if is_block {
            // Nobody sees where it ends.
            self.dir = Some(None);
        }
        made.unwrap_or(Value::Unknown)
    }

    fn note(
        &mut self,
        name: String,
        receiver: Option<Value>,
        (args, named): (Vec<Value>, Vec<(String, Value)>),
        from: usize,
    ) {
        if ["contextlib.chdir", "os.fchdir"].contains(&name.as_str()) {
            self.dir = Some(None);
        }
        if CHANGES.contains(&name.as_str()) {
            let to = args.first().and_then(Value::text);
            self.dir = Some(match (&self.dir, to) {
                (None, Some(to)) => Some(to.to_owned()),
                (Some(Some(dir)), Some(to)) => Some(path_of(dir, to)),
                _ => None,
            });
        }
        let to = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(from, |token| token.to);
        if self.calls.len() < MAX_CALLS {
            self.calls.push(Call { name, receiver, args, named, dir: self.dir.clone(), from, to });
        }
    }
}

/// Returns the name of a module as the rules write it: `node:fs/promises` is `fs.promises`.
fn canonical(module: &str) -> String {
    let module = module.strip_prefix("node:").unwrap_or(module);
    match module {
        "fs-extra" | "graceful-fs" => "fs".to_owned(),
        module => module.replace('/', "."),
    }
}

/// Returns the variables that are assigned several times, one of them where not every run comes by: what they hold is not known.
fn unsure<'c>(tokens: &'c [Token<'c>], language: CodeLanguage) -> HashSet<&'c str> {
    let is_indented_language = matches!(language, CodeLanguage::Python | CodeLanguage::Ruby);
    let (mut counts, mut unsure): (HashMap<&str, usize>, HashSet<&str>) = (HashMap::new(), HashSet::new());
    let (mut depth, mut is_plain_line) = (0_usize, true);
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &tokens[before].kind);
        if matches!(before, None | Some(TokenKind::Line)) {
            let is_word = matches!(token.kind, TokenKind::Name(name) if WORDS.contains(&name) || ["for", "foreach"].contains(&name));
            let starts = at == 0 || tokens[at - 1].to == token.from;
            is_plain_line = !is_word && (starts || !is_indented_language);
            // A condition may stand in the line before.
            let behind = at.checked_sub(2).map(|behind| &tokens[behind].kind);
            is_plain_line &= !matches!(behind, Some(TokenKind::Sign(")") | TokenKind::Name("else")));
        }
        match token.kind {
            TokenKind::Sign("{") => depth += 1,
            TokenKind::Sign("}") => depth = depth.saturating_sub(1),
            TokenKind::Name(name) => {
                let assigns = tokens.get(at + 1).is_some_and(|next| matches!(next.kind, TokenKind::Sign("=" | ":=")));
                if !assigns {
                    continue;
                }
                *counts.entry(name).or_default() += 1;
                let is_begun = match before {
                    None | Some(TokenKind::Line | TokenKind::Sign(";" | "}" | ",")) => true,
                    Some(TokenKind::Name(word)) => ["const", "let", "var", "my", "our", "local"].contains(word),
                    _ => false,
                };
                // `p = 'b' if c`.
                let line =
                    tokens[at..].iter().take_while(|next| !matches!(next.kind, TokenKind::Line | TokenKind::Sign(";")));
                let is_conditional = line
                    .take(64)
                    .any(|next| matches!(next.kind, TokenKind::Name("if" | "unless" | "while" | "until" | "for")));
                if depth > 0 || !is_begun || !is_plain_line || is_conditional {
                    unsure.insert(name);
                }
            }
            _ => {}
        }
    }
    unsure.retain(|name| counts.get(name).is_some_and(|count| *count > 1));
    unsure
}
