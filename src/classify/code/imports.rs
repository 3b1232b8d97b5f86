//! Imports: the modules that code uses, and the names that it gives them.

use super::found::Import;
use super::lex::TokenKind;
use super::read::Reader;
use super::value::Value;
use crate::classify::rules::dialect::CodeLanguage;

impl<'c> Reader<'c, '_> {
    /// Notes that a module is imported.
    pub(super) fn note_import(&mut self, module: Option<String>, known_as: Option<&'c str>) {
        if !self.is_again {
            self.imports.push(Import { module, known_as, end: self.at });
        }
    }

    /// `import os, shutil as s`; `import fs from 'fs'`; `import {rm as r} from 'fs'`.
    pub(super) fn import(&mut self) {
        self.at += 1;
        if self.is(&[CodeLanguage::Javascript]) {
            return self.import_of_script();
        }
        loop {
            let first = self.name_at(0);
            let Some(name) = self.dotted() else { break };
            let (known, module) = match self.name_at(0) {
                Some("as") => {
                    self.at += 1;
                    let known = self.name_at(0);
                    self.at += usize::from(known.is_some());
                    (known, name)
                }
                _ => (None, name),
            };
            self.note_import(Some(module.clone()), known.or_else(|| first.filter(|first| module == *first)));
            if let Some(known) = known {
                self.variables.insert(known.to_owned(), Value::Module(module));
            }
            if !self.takes(",") {
                break;
            }
        }
    }

    /// Reads the rest of JavaScript's `import`.
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
            self.note_import(Some(module.clone()), whole.filter(|_| names.is_empty()));
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
            self.note_import(Some(format!("{module}.{name}")), Some(known));
            self.variables.insert(known.to_owned(), Value::Module(format!("{module}.{name}")));
            if !self.takes(",") {
                break;
            }
        }
    }

    /// Perl's `use File::Path qw(rmtree)`.
    pub(super) fn used_module(&mut self) {
        self.at += 1;
        let Some(first) = self.name_at(0) else { return };
        self.at += 1;
        let mut module = first.to_owned();
        while self.takes("::")
            && let Some(part) = self.name_at(0)
        {
            module.push('.');
            module.push_str(part);
            self.at += 1;
        }
        self.note_import(Some(module), None);
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
