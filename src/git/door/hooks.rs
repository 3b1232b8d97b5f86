//! The hooks by which git asks piton: the texts that are put into the directory of hooks. Bytes in, bytes out.
//!
//! A hook that a shell runs gets lines of piton's below its first line: it keeps its name, which many of them look at, and a manager
//! that wrote it still knows it. Any other hook is moved aside as it is, and piton's own script runs it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::unquoted;
use crate::git::quote::sh;

/// A hook by which git asks piton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitHook {
    /// Called before refs move.
    ReferenceTransaction,
    /// Called before refs are sent to a server.
    PrePush,
}

/// The directory of hooks that were moved aside, in the directory of hooks.
pub const ASIDE: &str = "piton-next";

/// The small program that git calls most (`hooks/git/hook.rs`); empty on a machine for which `build.rs` makes none.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/git-hook"));

/// The bytes in it before the place of piton's path, and the length of that place with a NUL at its end.
const MARK: &[u8] = b"piton git-door program: ";
const MAX_PATH: usize = 4096;

const WHOLE: &str = include_str!("../../../hooks/git/hook.sh");
const WITHIN: &str = include_str!("../../../hooks/git/within.sh");

/// The beginning of a program.
const ELF: &[u8] = b"\x7fELF";

/// The beginning of piton's own script.
const HEAD: &[u8] = b"#!/bin/sh\n# Written by `piton install git`";
/// The beginning of the first and of the last of piton's lines in another script.
const BEGIN: &[u8] = b"# piton begin";
const END: &[u8] = b"# piton end";

/// The text on both sides of the program in both scripts.
const ASKED: (&[u8], &[u8]) = (b"if [ -x ", b" ] && [ ! -t 0 ]");

/// Shells that understand piton's lines.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "mksh"];

impl GitHook {
    /// All of them.
    pub const ALL: [GitHook; 2] = [GitHook::ReferenceTransaction, GitHook::PrePush];

    /// Returns the name of its file.
    pub fn name(self) -> &'static str {
        match self {
            GitHook::ReferenceTransaction => "reference-transaction",
            GitHook::PrePush => "pre-push",
        }
    }

    /// Returns the hook of a file's name.
    pub fn named(name: &OsStr) -> Option<GitHook> {
        GitHook::ALL.into_iter().find(|hook| hook.name() == name)
    }

    /// Returns piton's own script, which runs the hook that was moved aside.
    pub fn script(self, program: &OsStr) -> Vec<u8> {
        self.filled(WHOLE, program)
    }

    /// Returns the hook as a program that needs no shell; `None` where there is none for this hook, this machine or so long a path.
    pub fn program(self, program: &OsStr) -> Option<Vec<u8>> {
        if self == GitHook::ReferenceTransaction { small(program) } else { None }
    }

    /// Returns another script with piton's lines. Lines that are there are renewed. `None` if no shell runs it.
    pub fn with_lines(self, program: &OsStr, text: &[u8]) -> Option<Vec<u8>> {
        let text = without_lines(text);
        let first = match text.split_inclusive(|byte| *byte == b'\n').next() {
            Some(line) if line.starts_with(b"#!") => is_of_shell(line).then_some(line.len())?,
            // git has a shell run a text that the system cannot run.
            _ => (!text.contains(&0) && std::str::from_utf8(&text).is_ok()).then_some(0)?,
        };
        let (first, rest) = text.split_at(first);
        Some([first, &self.filled(WITHIN, program), rest].concat())
    }

    fn filled(self, template: &str, program: &OsStr) -> Vec<u8> {
        let quoted = sh(program);
        // The path comes last, so that nothing in it is taken for a place.
        let text = template.replace("@EVENT@", self.name());
        let parts: Vec<&[u8]> = text.split("'@PITON@'").map(str::as_bytes).collect();
        parts.join(quoted.as_slice())
    }
}

/// Returns the small program, which is this hook and may be called by the setting; `None` where there is none for this machine or so
/// long a path.
pub fn small(program: &OsStr) -> Option<Vec<u8>> {
    let path = program.as_bytes();
    let place = mark_end(PROGRAM).filter(|_| path.len() < MAX_PATH)?;
    let mut made = PROGRAM.to_vec();
    made.get_mut(place..place + path.len())?.copy_from_slice(path);
    Some(made)
}

/// Returns a script without piton's lines.
pub fn without_lines(text: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut left = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let end = lines[at..].iter().position(|line| line.starts_with(END));
        match end.filter(|_| line.starts_with(BEGIN)) {
            Some(end) => at += end + 1,
            None => {
                left.extend_from_slice(line);
                at += 1;
            }
        }
    }
    left
}

/// Returns true for a hook that is piton's as a whole: its script, or its program.
pub fn is_own(text: &[u8]) -> bool {
    text.starts_with(HEAD) || mark_end(text).is_some()
}

/// Returns the end of the mark in a program.
fn mark_end(program: &[u8]) -> Option<usize> {
    let at = program.starts_with(ELF).then(|| program.windows(MARK.len()).position(|window| window == MARK))?;
    Some(at? + MARK.len())
}

/// Returns the program that a hook asks, if it is piton's own script or program, or has lines of piton's.
pub fn program_of(text: &[u8]) -> Option<OsString> {
    if let Some(place) = mark_end(text) {
        let path = text.get(place..)?.split(|byte| *byte == 0).next()?;
        return (!path.is_empty()).then(|| OsStr::from_bytes(path).to_owned());
    }
    if !is_own(text) && without_lines(text) == text {
        return None;
    }
    let find = |text: &[u8], part: &[u8]| text.windows(part.len()).position(|window| window == part);
    let from = find(text, ASKED.0)? + ASKED.0.len();
    let length = find(&text[from..], ASKED.1)?;
    unquoted(&text[from..from + length])
}

/// Returns true for the first line of a script that a shell runs.
fn is_of_shell(line: &[u8]) -> bool {
    let Some(line) = line.strip_suffix(b"\n").and_then(|line| line.strip_prefix(b"#!")) else { return false };
    let Ok(line) = std::str::from_utf8(line) else { return false };
    if line.ends_with('\r') {
        return false;
    }
    let mut words = line.split_ascii_whitespace();
    let name = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let mut program = words.next().map(name).unwrap_or_default();
    if program == "env" {
        program = words.find(|word| *word != "-S").map(name).unwrap_or_default();
    }
    SHELLS.contains(&program.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_in_and_out_again() {
        let program = OsStr::new("/opt/it's/piton");
        let scripts: [&[u8]; 7] = [
            b"",
            b"exit 0\n",
            b"#!/bin/sh\nexit 3",
            b"#!/usr/bin/env bash\n# File generated by pre-commit\nexec x\n",
            b"#! /bin/dash -e\n",
            b"#!/usr/bin/env -S bash -eu\n\xff\n",
            b"#!/bin/sh\n# piton begin a new life\n",
        ];
        for text in scripts {
            for hook in GitHook::ALL {
                let with = hook.with_lines(program, text).unwrap();
                assert_eq!(program_of(&with).as_deref(), Some(program));
                assert_eq!(hook.with_lines(program, &with).unwrap(), with, "twice is once");
                assert_eq!(without_lines(&with), text);
                assert_eq!((without_lines(text), program_of(text)), (text.to_vec(), None));
            }
        }
        if cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
            let small = GitHook::ReferenceTransaction.program(program).unwrap();
            assert_eq!((program_of(&small).as_deref(), is_own(&small)), (Some(program), true));
            assert_eq!((program_of(PROGRAM), GitHook::PrePush.program(program)), (None, None));
        }
        let others: [&[u8]; 6] =
            [b"\xff\n", b"#!/bin/sh", b"#!/bin/sh\r\n", b"#!/usr/bin/python3\n", b"\x7fELF\0", b"#!/usr/bin/env\n"];
        for text in others {
            assert_eq!(GitHook::PrePush.with_lines(program, text), None, "{}", String::from_utf8_lossy(text));
        }
        for hook in GitHook::ALL {
            let script = hook.script(program);
            let shown = String::from_utf8_lossy(&script);
            assert!(is_own(&script) && !shown.contains("@PITON@") && !shown.contains("@EVENT@"), "{shown}");
            assert_eq!(program_of(&script).as_deref(), Some(program));
            assert_eq!(GitHook::named(OsStr::new(hook.name())), Some(hook));
            assert!(hook.program(OsStr::new(&"x".repeat(MAX_PATH))).is_none());
        }
    }
}
