//! The scripts by which an interactive shell asks piton before a line runs (rank 2). `hooks/shell/` has their text.
//!
//! A script answers by itself for lines that only read, by their first word. Every other line goes to `piton shell`.
//! *Invariant:* the classifier calls every line harmless that a script answers for (a test of this module).

pub mod evaluated;
pub mod line;
pub mod zdotdir;

#[cfg(test)]
mod tests;

use crate::error::{Code, Error, Result};
use crate::sys::runtime::note_for_sh;

/// A shell that has a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookedShell {
    /// GNU bash from 4.4 on.
    Bash,
    /// zsh.
    Zsh,
    /// fish from 3.0 on.
    Fish,
}

/// Words that only read, whatever their arguments are but for `--output` and its like. `git-log` stands for `git log`.
pub const READS: &[&str] = &[
    "cd",
    "pwd",
    "ls",
    "echo",
    "cat",
    "head",
    "tail",
    "wc",
    "man",
    "which",
    "type",
    "df",
    "du",
    "free",
    "ps",
    "id",
    "whoami",
    "uname",
    "uptime",
    "clear",
    "exit",
    "jobs",
    "grep",
    "egrep",
    "fgrep",
    "stat",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "true",
    "false",
    "pushd",
    "popd",
    "dirs",
    "git-status",
    "git-log",
    "git-diff",
    "git-show",
];

impl HookedShell {
    /// All shells with scripts.
    pub const ALL: [HookedShell; 3] = [HookedShell::Bash, HookedShell::Zsh, HookedShell::Fish];

    /// Returns the shell's name.
    pub fn name(self) -> &'static str {
        match self {
            HookedShell::Bash => "bash",
            HookedShell::Zsh => "zsh",
            HookedShell::Fish => "fish",
        }
    }

    /// Returns the shell of a name.
    ///
    /// # Errors
    /// `bad-request` for a shell without a script.
    pub fn named(name: &str) -> Result<HookedShell> {
        let found = HookedShell::ALL.into_iter().find(|shell| shell.name() == name);
        found.ok_or_else(|| Error::new(Code::BadRequest, format!("there is no script for the shell `{name}`")))
    }

    /// Returns the script. `program` is quoted for this shell; `stamp` tells two shells of one process id apart. Without
    /// `reads` every line goes to piton.
    pub fn script(self, program: &str, stamp: &str, reads: &[&str]) -> String {
        let template = match self {
            HookedShell::Bash => include_str!("../../hooks/shell/piton.bash"),
            HookedShell::Zsh => include_str!("../../hooks/shell/piton.zsh"),
            HookedShell::Fish => include_str!("../../hooks/shell/piton.fish"),
        };
        let note = note_for_sh(&format!("{} line", self.name()));
        let fill =
            |text: &str| text.replace("@STAMP@", stamp).replace("@READS@", &reads.join(" ")).replace("@NOTE@", &note);
        // The program's path comes last, so that nothing in it is taken for a place.
        template.split("'@PROGRAM@'").map(fill).collect::<Vec<_>>().join(program)
    }
}
