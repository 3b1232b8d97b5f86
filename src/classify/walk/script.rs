//! Scripts and tasks of the workspace that a line runs: `sh x.sh`, `./x.py`, `npm run x`, `make x`, `just x`.
//!
//! The walk never looks at the disk: it names the files that it would read (`Walk::scripts`), and whoever may look judges the
//! line again with their texts. They are read one level deep, as a lower bound: their effects count, and they stay opaque.

use std::path::PathBuf;
use std::sync::Arc;

use super::dispatch::Invocation;
use super::tasks;
use super::{MAX_PAYLOADS, Stream, Walk};
use crate::classify::expand::{Arg, Shell, TextOrigin};
use crate::classify::found::place;
use crate::classify::names;
use crate::classify::rules::Interpreter;
use crate::classify::rules::dialect::CodeLanguage;
use crate::classify::shell::{Span, TextPlace, scan};
use crate::model::effect::Certainty;

/// Most files that one line asks for.
const MAX_SCRIPTS: usize = 8;

/// Files of tasks, by the programs that read them; the first that is there counts.
const TASK_FILES: [(&[&str], &[&str]); 3] = [
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
];

impl Walk<'_> {
    /// Runs text as shell code; its effects are at the argument's place.
    pub(super) fn payload(&mut self, code: &Arg, input: Stream, shell: &mut Shell) -> Stream {
        if self.payloads >= MAX_PAYLOADS || !self.bounds.enter() {
            self.bounds.overflow = true;
            return Stream::Opaque;
        }
        self.payloads += 1;
        // The text of `"$(cat x.sh)"` is not known.
        self.opaque |= code.is_unseen() && code.origin != TextOrigin::Setup;
        self.downloads_code(&code.text, code.span);
        let outer = std::mem::take(&mut self.bounds.heredocs);
        let script = scan(&code.text, TextPlace::Within(code.span), &mut self.bounds);
        self.texts_near_piton(&code.text);
        let defined = self.functions.len();
        let output = self.script(&script, input, shell);
        self.uncalled(defined, shell);
        self.bounds.heredocs = outer;
        self.payloads -= 1;
        self.bounds.leave();
        output
    }

    /// Reads a script that an interpreter runs. `rest` has the script and its arguments.
    pub(super) fn script_of(&mut self, interpreter: &Interpreter, program: &str, rest: &[Arg], shell: &Shell) {
        let Some(text) = rest.first().and_then(|file| self.script_text(file, shell)) else { return };
        self.run_script(Some((interpreter, program)), &text, rest, shell);
    }

    /// Reads a script that is a command by itself: its first line names the interpreter.
    pub(super) fn own_script(&mut self, first: &Arg, args: &[Arg], shell: &Shell) {
        let Some(text) = self.script_text(first, shell) else { return };
        let rest: Vec<Arg> = std::iter::once(first).chain(args).cloned().collect();
        match announced(&text).map(names::program) {
            Some(program) => {
                let rules = self.rules;
                let interpreter = rules.interpreters(&program).next();
                // Nobody knows how another program reads it.
                if let Some(interpreter) = interpreter {
                    self.run_script(Some((interpreter, &program)), &text, &rest, shell);
                }
            }
            None => self.run_script(None, &text, &rest, shell),
        }
    }

    /// Reads the task that a runner is told to run.
    pub(super) fn task(&mut self, call: &Invocation<'_>, shell: &Shell) {
        let Some((programs, files)) = TASK_FILES.iter().find(|(programs, _)| programs.contains(&call.program)) else {
            return;
        };
        let named = call.args.windows(2).find(|pair| matches!(pair[0].text.as_str(), "-f" | "--file" | "--makefile"));
        let files: Vec<Arg> = match named {
            Some(pair) => vec![pair[1].clone()],
            None => files.iter().map(|name| Arg::literal(*name, call.span)).collect(),
        };
        let Some(text) = files.iter().find_map(|file| self.script_text(file, shell)) else { return };
        let words: Option<Vec<&str>> = call.args.iter().map(Arg::exact).collect();
        let Some(words) = words else { return };
        let lines = match programs[0] {
            "make" => tasks::of_makefile(&text, &words),
            "just" => tasks::of_justfile(&text, &words),
            _ => tasks::of_package(&text, call.program, &words),
        };
        self.look_into(shell, |walk, own| {
            for line in lines {
                walk.own_shell(&Arg::literal(line, call.span), own.clone());
            }
        });
    }

    /// Returns the text of a file of the workspace, and asks for it if nobody has looked yet.
    fn script_text(&mut self, file: &Arg, shell: &Shell) -> Option<Arc<str>> {
        let path = place(file, shell, &self.site, self.context).path?;
        path.starts_with(&self.context.workspace).then(|| self.file_text(path))?
    }

    /// Returns the text of a file, and asks for it if nobody has looked yet.
    pub(super) fn file_text(&mut self, path: PathBuf) -> Option<Arc<str>> {
        if self.is_script || self.site.elsewhere {
            return None;
        }
        if let Some((_, text)) = self.context.files.iter().find(|(known, _)| *known == path) {
            return text.clone();
        }
        if self.scripts.len() < MAX_SCRIPTS && !self.scripts.contains(&path) {
            self.scripts.push(path);
        }
        None
    }

    fn run_script(&mut self, by: Option<(&Interpreter, &str)>, text: &str, rest: &[Arg], shell: &Shell) {
        let span: Span = rest.first().map_or(self.span, |file| file.span);
        let is_python = by.is_some_and(|(interpreter, _)| interpreter.spec.language == CodeLanguage::Python);
        let code = Arg::literal(if is_python { on_load(text) } else { text.to_owned() }, span);
        let path = rest.first().and_then(|file| place(file, shell, &self.site, self.context).path);
        let dir = path.and_then(|path| Some(path.parent()?.to_string_lossy().into_owned()));
        let first = self.found.len();
        self.look_into(shell, |walk, own| {
            walk.script_dir = dir;
            super::function::set_positional(own, rest.get(1..).unwrap_or_default().to_vec());
            match by {
                Some((interpreter, program)) => _ = walk.run_code(interpreter, program, &code, own),
                None => _ = walk.own_shell(&code, own.clone()),
            }
        });
        if let Some((_, program)) = by.filter(|(interpreter, _)| interpreter.spec.language != CodeLanguage::Shell) {
            self.code_hides_near_piton(text, program, first, span);
        }
    }

    /// Reads text in a walk of its own, so that nothing in it changes how the line itself is read. Its effects count here.
    fn look_into(&mut self, shell: &Shell, read: impl FnOnce(&mut Walk<'_>, &mut Shell)) {
        let mut inner = Walk::new(self.rules, self.context);
        (inner.is_script, inner.root, inner.span) = (true, self.root, self.span);
        let mut own = Shell { cwd: shell.cwd.clone(), ..inner.shell() };
        read(&mut inner, &mut own);
        inner.uncalled(0, &own);
        let likely = inner.found.into_iter().map(|mut found| {
            found.certainty = found.certainty.max(Certainty::Likely);
            found
        });
        self.found.extend(likely);
        let new_dirs: Vec<PathBuf> = inner.blind.into_iter().filter(|dir| !self.blind.contains(dir)).collect();
        self.blind.extend(new_dirs);
        self.mentioned.extend(inner.mentioned);
        self.tops.extend(inner.tops);
        self.checkouts.extend(inner.checkouts);
        self.repositories.extend(inner.repositories);
        self.losses.extend(inner.losses);
        self.leaves |= inner.leaves;
        self.deletes_saved |= inner.deletes_saved;
    }
}

/// Returns the interpreter that the first line of a script names (`#!/usr/bin/env python3`).
fn announced(text: &str) -> Option<&str> {
    let mut words = text.strip_prefix("#!")?.lines().next()?.split_ascii_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return Some(first);
    }
    words.find(|word| !word.starts_with('-') && !word.contains('='))
}

/// Returns the lines of Python that run when the file does: those outside of functions and classes, and those of `main`.
fn on_load(text: &str) -> String {
    let (mut kept, mut is_definition) = (String::with_capacity(text.len()), false);
    for line in text.split_inclusive('\n') {
        let is_outer = !line.starts_with([' ', '\t', '#', '\n', '\r', ')', ']', '}', '"', '\'']);
        if is_outer {
            let head = line.strip_prefix("async ").unwrap_or(line);
            is_definition =
                ["def ", "class "].iter().any(|word| head.starts_with(word)) && !head.starts_with("def main");
        }
        if !is_definition {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_interpreter() {
        for (text, name) in [
            ("#!/bin/sh\nrm x\n", Some("/bin/sh")),
            ("#!/usr/bin/env -S FOO=1 python3 -u\n", Some("python3")),
            ("#! /bin/bash -e", Some("/bin/bash")),
            ("rm x", None),
            ("#!", None),
            ("#!/usr/bin/env", None),
        ] {
            assert_eq!(announced(text), name, "{text}");
        }
    }

    #[test]
    fn only_what_runs_by_itself_is_kept() {
        let text = "import os\ndef wipe():\n    os.remove('a')\n\nclass A:\n  def b(self):\n    os.remove('b')\nos.remove('c')\n\
                    def main():\n    os.remove('d')\nif __name__ == '__main__':\n    main()\n";
        let kept = on_load(text);
        let is_kept = |name: &str| kept.contains(&format!("os.remove('{name}')"));
        assert_eq!(["a", "b", "c", "d"].map(is_kept), [false, false, true, true], "{kept}");
    }
}
