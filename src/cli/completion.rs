//! Completions for bash, zsh, fish, elvish, PowerShell and Nushell: verbs, options, and the names in this workspace's records.
//!
//! A shell's script, which `COMPLETE=bash piton` prints, calls `COMPLETE=bash piton -- WORDS…` for each completion. Such a call only
//! reads: it makes neither a home nor a workspace, and prints no errors, because they would end up in the middle of a typed line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, Elvish, Fish, Powershell, Shells, Zsh};

use super::context::{Context, GlobalArgs};
use super::exit::Exit;
use super::help;
use super::nushell::Nushell;
use super::print;
use crate::checkpoint::records::workspace::real_path;
use crate::checkpoint::{Checkpoint, Home, Timeline};
use crate::model::text::{cut, printable};
use crate::model::tree::Mode;

/// The variable that names the shell.
const SHELL: &str = "COMPLETE";

/// The shells.
const SHELLS: Shells<'_> = Shells(&[&Bash, &Zsh, &Fish, &Elvish, &Powershell, &Nushell]);

/// The newest checkpoints and turns that are offered.
const OFFERED: usize = 200;

/// The most files of a checkpoint whose paths are offered: to read more takes longer than a person waits for a key.
const MAX_FILES: u64 = 20_000;

/// Characters of a reason or prompt that a shell shows next to a name.
const SHOWN: usize = 60;

/// A kind of name in the workspace's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordedName {
    /// A number, an id, a label or a turn.
    Checkpoint,
    /// A checkpoint, or a path.
    CheckpointOrPath,
    /// A turn, or a path.
    TurnOrPath,
    Turn,
    Run,
    Path,
}

/// An argument whose values are completed from the records.
struct Completed {
    /// The verb, and the verb below it or an empty text.
    verb: [&'static str; 2],
    argument: &'static str,
    name: RecordedName,
}

const fn completed(verb: &'static str, argument: &'static str, name: RecordedName) -> Completed {
    Completed { verb: [verb, ""], argument, name }
}

const COMPLETED: [Completed; 31] = [
    completed("show", "what", RecordedName::Checkpoint),
    completed("diff", "what", RecordedName::CheckpointOrPath),
    completed("diff", "turn", RecordedName::Turn),
    completed("diff", "run", RecordedName::Run),
    completed("diff", "paths", RecordedName::Path),
    completed("list", "run", RecordedName::Run),
    completed("list", "path", RecordedName::Path),
    completed("restore", "checkpoint", RecordedName::CheckpointOrPath),
    completed("restore", "paths", RecordedName::Path),
    completed("rollback", "target", RecordedName::Checkpoint),
    completed("rollback", "run", RecordedName::Run),
    completed("restore", "only", RecordedName::Path),
    completed("restore", "except", RecordedName::Path),
    completed("undo", "except", RecordedName::Path),
    completed("undo", "what", RecordedName::TurnOrPath),
    completed("undo", "turn", RecordedName::Turn),
    completed("undo", "run", RecordedName::Run),
    completed("undo", "paths", RecordedName::Path),
    completed("redo", "what", RecordedName::Turn),
    completed("redo", "turn", RecordedName::Turn),
    completed("find", "path", RecordedName::Path),
    completed("recover", "path", RecordedName::Path),
    completed("forget", "paths", RecordedName::Path),
    completed("git-undo", "to", RecordedName::Checkpoint),
    completed("pin", "checkpoints", RecordedName::Checkpoint),
    completed("unpin", "checkpoints", RecordedName::Checkpoint),
    completed("delete", "checkpoints", RecordedName::Checkpoint),
    completed("turns", "run", RecordedName::Run),
    completed("push", "run", RecordedName::Run),
    Completed { verb: ["store", "delete"], argument: "checkpoints", name: RecordedName::Checkpoint },
    Completed { verb: ["config", "check"], argument: "run", name: RecordedName::Run },
];

/// Returns true if a shell calls for its script or for completions. Another program that happens to set the variable calls a verb.
pub(super) fn is_asked(first: Option<&OsStr>) -> bool {
    let is_set = std::env::var_os(SHELL).is_some_and(|shell| !shell.is_empty() && shell != "0");
    is_set && first.is_none_or(|word| word == "--")
}

/// Prints the script of the shell, or the completions of a line.
pub(super) fn complete() -> ExitCode {
    let is_for_script = std::env::args_os().len() == 1;
    // Without a working directory, the engine completes no paths.
    let current_dir = std::env::current_dir().ok();
    // The engine removes the variable before it calls for the grammar.
    let shell = std::env::var_os(SHELL).unwrap_or_default();
    let is_bash = Path::new(&shell).file_stem() == Some(OsStr::new("bash"));
    let engine = CompleteEnv::with_factory(|| command(is_bash)).shells(SHELLS);
    match engine.try_complete(std::env::args_os(), current_dir.as_deref()) {
        Ok(_) => Exit::Done.into(),
        Err(error) if is_for_script => {
            print::say(&format!("piton: {}", error.to_string().trim()));
            Exit::Usage.into()
        }
        // A line that cannot be completed has no completions.
        Err(_) => Exit::Done.into(),
    }
}

/// Returns the grammar with completers.
fn command(is_bash: bool) -> Command {
    let mut command = help::command();
    for Completed { verb: [verb, below], argument, name } in COMPLETED {
        let completer = RecordCompleter { name, is_bash };
        let add = |verb: Command| verb.mut_arg(argument, |arg| arg.add(ArgValueCompleter::new(completer)));
        command = command.mut_subcommand(verb, |verb| match below {
            "" => add(verb),
            _ => verb.mut_subcommand(below, add),
        });
    }
    command
}

/// Completes one argument from the records.
#[derive(Clone, Copy)]
struct RecordCompleter {
    name: RecordedName,
    /// bash quotes no candidate, so that those with a space would be two words.
    is_bash: bool,
}

impl ValueCompleter for RecordCompleter {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let Some(typed) = current.to_str() else { return Vec::new() };
        let records = Records::open();
        let records = records.as_ref();
        let mut found = match self.name {
            RecordedName::Checkpoint => records.map(|records| records.checkpoints(typed)).unwrap_or_default(),
            RecordedName::CheckpointOrPath => {
                let mut found = records.map(|records| records.checkpoints(typed)).unwrap_or_default();
                found.extend(paths(records, typed));
                found
            }
            RecordedName::TurnOrPath => {
                let mut found = records.map(|records| records.turns(typed)).unwrap_or_default();
                found.extend(paths(records, typed));
                found
            }
            RecordedName::Turn => records.map(|records| records.turns(typed)).unwrap_or_default(),
            RecordedName::Run => records.map(|records| records.runs(typed)).unwrap_or_default(),
            RecordedName::Path => paths(records, typed),
        };
        let is_one_word =
            |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || "-_./@{}+,=:#%".contains(letter));
        found.retain(|one| !self.is_bash || one.get_value().to_str().is_some_and(is_one_word));
        let number = |(at, one): (usize, CompletionCandidate)| one.display_order(Some(at));
        found.into_iter().enumerate().map(number).collect()
    }
}

/// Returns the paths that a typed text begins: those on the disk and those in the newest checkpoint.
fn paths(records: Option<&Records>, typed: &str) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(OsStr::new(typed));
    let present: BTreeSet<OsString> = found.iter().map(|one| one.get_value().to_owned()).collect();
    let saved = records.map(|records| records.paths(typed)).unwrap_or_default();
    let is_new = |path: &String| !present.contains(OsStr::new(path));
    found.extend(saved.into_iter().filter(is_new).map(|path| candidate(&path, "saved, not on the disk")));
    found
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(cut(&printable(help), SHOWN).into()))
}

/// The records of the workspace around the working directory.
struct Records {
    timeline: Timeline,
    /// The working directory as a path of the workspace.
    below: PathBuf,
}

impl Records {
    /// Opens them for reading; `None` where there are none, or where they cannot be read.
    fn open() -> Option<Records> {
        // Errors are no completions.
        if !Home::place().ok()?.is_dir() {
            return None;
        }
        let context = Context::new(&GlobalArgs::default()).ok()?;
        let workspace = context.known_workspace().ok()??;
        let policy = context.settings().ok()?.policy;
        let here = real_path(&std::env::current_dir().ok()?);
        let below = here.strip_prefix(&workspace.path).map(Path::to_owned).unwrap_or_default();
        let timeline = Timeline::open(&context.home, workspace, policy).ok()?;
        Some(Records { timeline, below })
    }

    /// Numbers and labels, the newest first; ids once a part of one is typed.
    fn checkpoints(&self, typed: &str) -> Vec<CompletionCandidate> {
        // Unreadable records have no completions.
        let Ok(all) = self.timeline.catalog().all() else { return Vec::new() };
        let newest = || all.checkpoints.iter().rev().take(OFFERED);
        let about = |one: &Checkpoint| format!("{} {}", print::local_time(&one.record.time), one.record.reason);
        let mut found: Vec<CompletionCandidate> =
            newest().map(|one| candidate(&one.record.number.to_string(), &about(one))).collect();
        let labelled = newest().filter(|one| one.record.is_labelled());
        found.extend(labelled.map(|one| candidate(&one.record.reason, &print::local_time(&one.record.time))));
        if !typed.is_empty() {
            found.extend(newest().map(|one| candidate(&one.shown_id(), &about(one))));
        }
        found.extend(self.turns(typed));
        let mut seen = BTreeSet::new();
        found.retain(|one| begins(one, typed) && seen.insert(one.get_value().to_owned()));
        found
    }

    fn turns(&self, typed: &str) -> Vec<CompletionCandidate> {
        // Unreadable records have no completions.
        let turns = self.timeline.catalog().changing_turns(None).unwrap_or_default();
        let newest = turns.iter().take(OFFERED);
        let found = newest.map(|turn| candidate(&turn.op, turn.prompt.as_deref().unwrap_or(&turn.turn)));
        found.filter(|one| begins(one, typed)).collect()
    }

    fn runs(&self, typed: &str) -> Vec<CompletionCandidate> {
        // Unreadable records have no completions.
        let Ok((runs, _)) = self.timeline.runs() else { return Vec::new() };
        let found = runs.iter().rev().map(|run| candidate(&run.run, run.state.goal.as_deref().unwrap_or_default()));
        found.filter(|one| begins(one, typed)).collect()
    }

    /// Returns the paths of the newest checkpoint from the working directory on, cut after the directory that comes next.
    fn paths(&self, typed: &str) -> BTreeSet<String> {
        let catalog = self.timeline.catalog();
        // Unreadable records have no completions.
        let Ok(all) = catalog.all() else { return BTreeSet::new() };
        let newest = all.checkpoints.last().filter(|newest| newest.record.files <= MAX_FILES);
        let Some((manifest, _)) = newest.and_then(|newest| catalog.contents(newest).ok()) else {
            return BTreeSet::new();
        };
        let files = manifest.iter().filter(|(_, entry)| entry.mode() != Mode::Dir);
        let shown = files.filter_map(|(path, _)| path.to_path().strip_prefix(&self.below).ok()?.to_str());
        let matching = shown.filter(|path| path.len() > typed.len() && path.starts_with(typed));
        matching.map(|path| up_to_directory(path, typed.len()).to_owned()).collect()
    }
}

fn begins(candidate: &CompletionCandidate, typed: &str) -> bool {
    candidate.get_value().to_str().is_some_and(|value| value.starts_with(typed))
}

/// Returns a path up to the first directory that ends after `typed` bytes.
fn up_to_directory(path: &str, typed: usize) -> &str {
    path[typed..].find(MAIN_SEPARATOR).map_or(path, |at| &path[..=typed + at])
}
