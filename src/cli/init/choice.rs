//! The questions of `piton init`: what to guard, with what is found here as the default.

use std::path::Path;

use crate::agents::Client;
use crate::cli::install::git::is_open;
use crate::cli::install::place::GIT;
use crate::cli::install::startup::StartupFiles;
use crate::cli::install::{Target, home, is_there, variable};
use crate::cli::print;
use crate::error::{Code, Error, Result};
use crate::shell::HookedShell;

/// The clients and shells to guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub clients: Vec<Client>,
    pub shells: Vec<HookedShell>,
    /// The name of git, if it is to ask piton in the repository of this directory; `None` without one.
    pub git: Option<Vec<&'static str>>,
}

const CLIENTS: &str = "Which agent clients should piton guard?";
const SHELLS: &str = "In which shells should piton guard the commands that you type?";
const COMMANDS: &str = "Guard git commands that destroy something in this repository?";

impl Choice {
    /// Returns the clients that are here, the login shell, the shells that have a startup file, and git where `dir` is in a repository
    /// in which it asks nobody else.
    ///
    /// # Errors
    /// `bad-path` where no home directory is known.
    pub(super) fn found(dir: &Path) -> Result<Choice> {
        let home = home()?;
        let login = variable("SHELL").and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let has_file = |shell: HookedShell| match StartupFiles::of(shell) {
            Ok(files) => files.is_there(),
            // Where only zsh can tell its directory, it is in use.
            Err(_) => true,
        };
        let is_used = |shell: &HookedShell| login.as_deref() == Some(shell.name()) || has_file(*shell);
        Ok(Choice {
            clients: installable().filter(|client| is_there(*client, &home)).collect(),
            shells: HookedShell::ALL.into_iter().filter(is_used).collect(),
            git: is_open(dir).then(|| vec![GIT]),
        })
    }

    /// Asks on the terminal; `None` where the person ends the input.
    pub(super) fn asked(self) -> Option<Choice> {
        let clients = ask(("1. ", CLIENTS), &self.clients, &installable().collect::<Vec<_>>(), Client::name)?;
        let shells = ask(("2. ", SHELLS), &self.shells, &HookedShell::ALL, HookedShell::name)?;
        let git = match self.git {
            None => None,
            Some(found) => Some(ask(("3. ", COMMANDS), &found, &[GIT], |name| name)?),
        };
        Some(Choice { clients, shells, git })
    }

    /// Returns the error where there is nobody to ask.
    pub(super) fn unasked(&self) -> Error {
        let (clients, shells) = (shown(&self.clients, Client::name), shown(&self.shells, HookedShell::name));
        let git = self.git.as_ref().map(|git| format!(" {COMMANDS} [{}]", shown(git, |name| name))).unwrap_or_default();
        let what =
            format!("there is no terminal to ask these questions on: {CLIENTS} [{clients}] {SHELLS} [{shells}]{git}");
        Error::new(Code::BadRequest, what)
            .hint("nothing was changed; to use the answers in brackets, run `piton init --yes`")
    }

    /// Returns all of them.
    pub(super) fn targets(&self) -> impl Iterator<Item = Target> {
        let clients = self.clients.iter().map(|client| Target::Client(*client));
        let git = self.git.iter().flatten().map(|_| Target::Git);
        clients.chain(self.shells.iter().map(|shell| Target::Shell(*shell))).chain(git)
    }
}

/// Returns the clients that have hooks for the user.
fn installable() -> impl Iterator<Item = Client> {
    Client::ALL.into_iter().filter(|client| !client.files(false).is_empty())
}

/// Returns the name of an item on the command line.
type NameOf<T> = fn(T) -> &'static str;

fn shown<T: Copy>(items: &[T], name: NameOf<T>) -> String {
    let names: Vec<&str> = items.iter().map(|item| name(*item)).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

/// Asks one question until the answer is understood.
fn ask<T: Copy>(question: (&str, &str), found: &[T], all: &[T], name: NameOf<T>) -> Option<Vec<T>> {
    let (number, question) = question;
    let indent = " ".repeat(number.len());
    let help = format!("Press Return to accept the answer in brackets, or type any of: {}; or none", shown(all, name));
    print::say(&format!("{number}{question}\n{indent}{help}"));
    loop {
        let answer = print::answer(&format!("{indent}[{}] ", shown(found, name)))?;
        match understood(&answer, found, all, name) {
            Ok(chosen) => return Some(chosen),
            Err(word) => print::say(&format!("{indent}There is no `{word}`.")),
        }
    }
}

/// Returns the items that an answer names, each once.
///
/// # Errors
/// Returns the first word that names none.
fn understood<T: Copy>(answer: &str, found: &[T], all: &[T], name: NameOf<T>) -> std::result::Result<Vec<T>, String> {
    let answer = answer.to_lowercase();
    let words: Vec<&str> = answer.split([' ', ',', '\t']).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] | ["y" | "yes"] => return Ok(found.to_vec()),
        ["none" | "n" | "no"] => return Ok(Vec::new()),
        ["all"] => return Ok(all.to_vec()),
        _ => {}
    }
    match words.iter().find(|word| !all.iter().any(|item| name(*item) == **word)) {
        Some(unknown) => Err((*unknown).to_owned()),
        None => Ok(all.iter().copied().filter(|item| words.contains(&name(*item))).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        use HookedShell::{Bash, Fish, Zsh};
        let table: [(&str, std::result::Result<&[HookedShell], &str>); 10] = [
            ("", Ok(&[Zsh])),
            ("yes", Ok(&[Zsh])),
            ("none", Ok(&[])),
            ("n", Ok(&[])),
            ("bash", Ok(&[Bash])),
            ("Fish, bash", Ok(&[Bash, Fish])),
            ("zsh zsh", Ok(&[Zsh])),
            ("all", Ok(&[Bash, Zsh, Fish])),
            ("tcsh", Err("tcsh")),
            ("bash none", Err("none")),
        ];
        for (answer, wanted) in table {
            let understood = understood(answer, &[Zsh], &HookedShell::ALL, HookedShell::name);
            assert_eq!(understood, wanted.map(<[HookedShell]>::to_vec).map_err(str::to_owned), "{answer}");
        }
        assert_eq!(shown(&HookedShell::ALL[..2], HookedShell::name), "bash zsh");
        assert_eq!(shown(&[], Client::name), "none");
    }
}
