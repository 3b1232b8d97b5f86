//! Statements: assignments, imports, loops, and the heads of functions.

use super::lex::TokenKind;
use super::read::Reader;
use super::value::Value;
use crate::classify::rules::dialect::CodeLanguage;

impl<'c> Reader<'c, '_> {
    /// Reads one statement, or as much as is understood of it: always at least a token.
    pub(super) fn statement(&mut self) {
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
        let is_plain = self.is_sign(sign, "=") || self.is_sign(sign, ":=");
        self.at += sign + 1;
        self.pass_lines();
        let value = self.expression();
        self.assign(name, if is_plain { value } else { Value::Unknown });
        true
    }

    /// Gives a variable its value.
    pub(super) fn assign(&mut self, name: &'c str, value: Value) {
        // Each use copies it.
        let is_known = value.is_small() && !self.unsure.contains(name);
        self.variables.insert(name.to_owned(), if is_known { value } else { Value::Unknown });
    }

    /// `import os, shutil as s`; `import fs from 'fs'`; `import {rm as r} from 'fs'`.
    pub(super) fn import(&mut self) {
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

    pub(super) fn import_of_script(&mut self) {
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
    pub(super) fn renamed(&mut self, word: &str) -> Vec<(&'c str, &'c str)> {
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
    pub(super) fn unpacked(&mut self) {
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
    pub(super) fn import_from(&mut self) {
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

    /// Reads `a.b.c` where it is only a name.
    pub(super) fn dotted(&mut self) -> Option<String> {
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
}

/// Returns the name of a module as the rules write it: `node:fs/promises` is `fs.promises`.
pub(super) fn canonical(module: &str) -> String {
    let module = module.strip_prefix("node:").unwrap_or(module);
    match module {
        "fs-extra" | "graceful-fs" => "fs".to_owned(),
        module => module.replace('/', "."),
    }
}
