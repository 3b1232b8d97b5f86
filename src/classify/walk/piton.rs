//! Commands that are aimed at piton itself: its processes, its own verbs, its store and its settings.

use std::path::PathBuf;

use super::Walk;
use super::dispatch::Invocation;
use super::git_settings::texts;
use crate::classify::context::{NearPiton, resolve};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::{FoundEffect, pattern, place};
use crate::classify::rules::args::Parsed;
use crate::classify::shell::Span;
use crate::model::effect::{Class, Severity};
use crate::model::words::GIT_READS;

impl Walk<'_> {
    /// Commands against piton: its switch, its store, its processes.
    pub(crate) fn aimed_at_piton(&mut self, call: &Invocation<'_>) -> bool {
        let words: Vec<&str> =
            call.args.iter().map(|arg| arg.text.as_str()).filter(|text| !text.starts_with('-')).collect();
        let names = call.args.iter().any(|arg| arg.text.contains("piton"));
        if matches!(call.program, "pgrep" | "pidof" | "ps" | "grep" | "lsof") && names {
            self.sought_piton = true;
        }
        let kills = matches!(call.program, "kill" | "killall" | "pkill" | "fuser" | "taskkill")
            && (names || self.sought_piton && call.args.iter().any(|arg| !arg.is_exact()));
        let stops = matches!(call.program, "systemctl" | "launchctl" | "service" | "brew" | "cargo")
            && words.iter().any(|word| *word == "piton" || word.starts_with("piton.") || *word == "piton-daemon")
            && words
                .iter()
                .any(|word| matches!(*word, "stop" | "disable" | "mask" | "kill" | "unload" | "remove" | "uninstall"));
        let switches = call.program == "piton" && switches_off(&words);
        let drops =
            |words: &[&str]| words.iter().any(|word| matches!(*word, "-i" | "-u" | "--unset" | "--ignore-environment"));
        let all: Vec<&str> = call.args.iter().map(|arg| arg.text.as_str()).collect();
        self.leaves |= LEAVING.contains(&call.program) || call.program == "env" && drops(&all);
        if kills || stops || switches {
            let found = FoundEffect::new(Class::Piton, call.program, "piton", call.span);
            self.found.push(FoundEffect {
                severity: Some(Severity::High),
                target: words.first().map(|word| (*word).to_owned()),
                ..found
            });
            return true;
        }
        false
    }

    /// Reports a line that has piton delete saved content where piton cannot recognize the agent: in another session with an empty
    /// environment, in a terminal's server, or at another time.
    pub(super) fn deletes_from_afar(&mut self, line: &str) {
        if self.leaves && (self.deletes_saved || line.contains("piton") && deletes_saved(line)) {
            self.reaches_own_files("piton", self.span);
        }
    }

    /// Notes a script that has piton delete saved content.
    pub(super) fn texts_near_piton(&mut self, text: &str) {
        self.deletes_saved |= text.contains("piton") && deletes_saved(text);
    }

    /// Reports a program without rules that names piton's own files: it may write to them.
    pub(crate) fn touches_piton(&mut self, call: &Invocation<'_>, shell: &Shell) {
        if self.site.elsewhere || matches!(call.program, "piton" | "find") || self.rules.knows(call.program) {
            return;
        }
        if call.args.iter().any(|arg| arg.text.contains('/') && self.is_inside_piton(arg, shell)) {
            self.reaches_own_files(call.program, call.span);
        }
    }

    /// Returns true if a word is the path of a file of piton's own.
    fn is_inside_piton(&self, arg: &Arg, shell: &Shell) -> bool {
        let path = place(arg, shell, &self.site, self.context).path;
        let path = path.or_else(|| pattern(arg, shell, &self.site, self.context));
        path.and_then(|path| self.near_piton(&path)) == Some(NearPiton::Inside)
    }

    /// Reports links by `cp`, and hard links, to piton's own files: what is written through them later names none of these.
    pub(crate) fn links_to_piton(&mut self, call: &Invocation<'_>, shell: &Shell) {
        let is_link = |arg: &Arg| {
            let letters = arg.text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
            matches!(arg.text.as_str(), "--link" | "--symbolic-link") || letters.contains(['l', 's'])
        };
        let is_symbolic = |arg: &Arg| arg.text == "--symbolic" || arg.text.starts_with("-s");
        let makes = match call.program {
            "cp" => call.args.iter().any(is_link),
            "ln" => !call.args.iter().any(is_symbolic),
            _ => false,
        };
        if makes && !self.site.elsewhere && call.args.iter().any(|arg| self.is_inside_piton(arg, shell)) {
            self.reaches_own_files(call.program, call.span);
        }
    }

    /// Reports a git that works on piton's store or sends something there, unless it only reads. `words` begin with the verb.
    pub(crate) fn works_on_store(&mut self, options: &Parsed, words: &[Arg], shell: &Shell) {
        let verb = &words[0];
        let given =
            options.flags.iter().rev().find(|flag| flag.name == "--git-dir").and_then(|flag| flag.value.clone());
        let given = given.or_else(|| texts(shell, "GIT_DIR", verb.span).last());
        let at =
            |text: &str| shell.cwd.as_deref().map(|cwd| resolve(cwd, text.strip_prefix("file://").unwrap_or(text)));
        let dir = given.map_or_else(|| shell.cwd.clone(), |dir| dir.exact().and_then(at));
        // A link may lead there. Verbs that change files ask for the directory themselves.
        let is_in_workspace = |dir: &&PathBuf| **dir != self.context.cwd && dir.starts_with(&self.context.workspace);
        if let Some(dir) = dir.as_ref().filter(is_in_workspace).filter(|_| OF_REPOSITORY.contains(&verb.text.as_str()))
        {
            self.top_of(dir);
        }
        let is_inside = |dir: PathBuf| self.near_piton(&dir) == Some(NearPiton::Inside);
        let sends = matches!(verb.text.as_str(), "push" | "bundle" | "send-pack" | "archive");
        let reaches = |word: &Arg| word.text.contains('/') && word.exact().and_then(at).is_some_and(is_inside);
        let is_reached = match reads(words) {
            _ if sends => dir.is_some_and(is_inside) || words[1..].iter().any(reaches),
            true => false,
            false => dir.is_some_and(is_inside),
        };
        if is_reached && !self.site.elsewhere {
            self.reaches_own_files(&format!("git {}", verb.text), verb.span);
        }
    }

    /// Reports what `tar --remove-files` deletes of piton's own files in the directories that `-C` names.
    pub(super) fn tar_removes(&mut self, call: &Invocation<'_>, shell: &Shell) {
        let is_removing = call.program.ends_with("tar") && call.args.iter().any(|arg| arg.text == "--remove-files");
        let has_dir = |arg: &Arg| arg.text.starts_with("-C") || arg.text.starts_with("--directory");
        if !is_removing || !call.args.iter().any(has_dir) {
            return;
        }
        let (mut there, mut args) = (shell.clone(), call.args.iter());
        // The old form has its letters without a dash: `tar cf x.tar`.
        if call.args.first().is_some_and(|arg| !arg.text.starts_with('-')) {
            args.nth(usize::from(call.args[0].text.contains('f')));
        }
        while let Some(arg) = args.next() {
            let text = arg.text.as_str();
            let attached = text.strip_prefix("--directory=").or_else(|| text.strip_prefix("-C")).map(str::len);
            let dir = match attached {
                Some(0) => args.next().cloned(),
                Some(length) => Some(arg.skip(text.len() - length)),
                None if text == "--directory" => args.next().cloned(),
                None => None,
            };
            if let Some(dir) = dir {
                there.cwd = dir.exact().and_then(|text| Some(resolve(there.cwd.as_deref()?, text)));
                // A link may lead there.
                there.cwd.iter().for_each(|dir| drop(self.top_of(dir)));
            } else if TAR_VALUES.contains(&text) || (is_short(text) && text.ends_with(['f', 'T', 'X', 'I', 'b', 'H'])) {
                args.next();
            } else if !text.starts_with('-') && self.is_near(arg, &there) {
                let found = FoundEffect::new(Class::FileDelete, "tar --remove-files", "tar-remove", call.span);
                self.report(found, Some(arg), &there);
            }
        }
    }

    /// Records an unknown effect on piton's own files.
    pub(super) fn reaches_own_files(&mut self, verb: &str, span: Span) {
        let found = FoundEffect::new(Class::Piton, verb, "piton-store", span);
        let (near_piton, severity) = (Some(NearPiton::Inside), Some(Severity::High));
        self.found.push(FoundEffect { near_piton, severity, ..found });
    }

    /// Clears the mark of effects from `first` on whose targets only contain piton's own files.
    pub(super) fn spare_piton(&mut self, first: usize) {
        for mut found in self.found.split_off(first) {
            let is_around = found.near_piton == Some(NearPiton::Around);
            if is_around && found.class == Class::Piton {
                continue;
            }
            found.near_piton = found.near_piton.filter(|_| !is_around);
            self.found.push(found);
        }
    }
}

/// Programs that run a line apart from the session in which they are called.
const LEAVING: [&str; 12] = [
    "at",
    "batch",
    "byobu",
    "crontab",
    "daemonize",
    "dtach",
    "launchctl",
    "screen",
    "setsid",
    "systemd-run",
    "tmux",
    "zellij",
];

/// Verbs of git that change nothing but the repository.
const OF_REPOSITORY: [&str; 9] =
    ["branch", "gc", "pack-refs", "prune", "reflog", "repack", "symbolic-ref", "tag", "update-ref"];

/// Returns true if a text has a call of piton that deletes saved content.
fn deletes_saved(text: &str) -> bool {
    let words =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c))).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let is_call = |at: usize| words[at].rsplit('/').next() == Some("piton");
    (0..words.len()).filter(|at| is_call(*at)).any(|at| {
        let mut behind = words[at + 1..].iter().skip_while(|word| word.starts_with('-'));
        match behind.next() {
            Some(&("adopt" | "forget" | "delete" | "unpin" | "prune")) => true,
            Some(&"daemon") => behind.next() == Some(&"run"),
            Some(&"store") => behind.next().is_some_and(|verb| ["adopt", "clear", "delete", "prune"].contains(verb)),
            Some(&"pin") => behind.any(|word| *word == "--remove"),
            Some(&"config") => behind.next() == Some(&"trust"),
            _ => false,
        }
    })
}

/// Options of `tar` that take the next word as their value.
const TAR_VALUES: [&str; 8] = [
    "--file",
    "--exclude",
    "--files-from",
    "--exclude-from",
    "--transform",
    "--use-compress-program",
    "--format",
    "--mode",
];

/// Returns true for short options, together in one word.
fn is_short(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Returns true if a verb of git with its arguments only reads.
fn reads(words: &[Arg]) -> bool {
    let is_change = |word: &Arg| !matches!(word.text.as_str(), "-a" | "-r" | "-v" | "-vv" | "--list" | "--all");
    match words[0].text.as_str() {
        "fsck" | "verify-pack" | "help" => true,
        "branch" => !words[1..].iter().any(is_change),
        verb => GIT_READS.contains(&verb),
    }
}

/// Verbs of piton that take the net away.
fn switches_off(words: &[&str]) -> bool {
    match words {
        ["off" | "disable" | "stop" | "uninstall" | "gc" | "delete" | "prune" | "forget" | "purge", ..] => true,
        [
            "daemon" | "hook" | "hooks" | "agent" | "shell" | "git-hooks",
            "stop" | "off" | "disable" | "uninstall" | "remove" | "kill",
            ..,
        ] => true,
        ["config", "edit" | "set" | "unset" | "trust", ..]
        | ["store", "adopt" | "clear" | "delete" | "move" | "prune", ..] => true,
        ["git", sub, ..] => !GIT_READS.contains(sub),
        _ => false,
    }
}
