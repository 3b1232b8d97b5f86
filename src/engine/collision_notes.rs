//! Collisions in the words for a model. Its client passes a note on with the tool's result, so the note says what the action destroyed
//! and where that is saved.

use std::path::Path;

use super::decision::{ActionDecision, Protection};
use super::told::{Note, Subject};
use crate::checkpoint::history::collision::{Collision, WorkOwner};
use crate::model::effect::{Class, Effect};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::redact::redact;
use crate::model::text::{cut, printable, shell_line, shell_word};

/// The code of the warning.
pub(super) const CODE: &str = "collision";

/// The files that a sentence names.
const NAMED: usize = 3;

/// The longest name of a turn in a sentence, in characters.
const MAX_TURN: usize = 40;

/// A part of an action that destroys the work of others, in one workspace.
#[derive(Clone, Copy)]
pub(super) struct CollisionPart<'a> {
    /// The root of the workspace, if that is not the session's own.
    pub root: Option<&'a Path>,
    /// The work.
    pub collisions: &'a [Collision],
    /// The checkpoint before the action.
    pub protection: &'a Protection,
}

impl CollisionPart<'_> {
    /// Returns the parts of an action with collisions.
    pub(super) fn all(action: &ActionDecision) -> Vec<CollisionPart<'_>> {
        let own = CollisionPart { root: None, collisions: &action.collisions, protection: &action.protection };
        let others = action.others.iter().map(|other| CollisionPart {
            root: Some(&other.root),
            collisions: &other.collisions,
            protection: &other.protection,
        });
        std::iter::once(own).chain(others).filter(|part| !part.collisions.is_empty()).collect()
    }

    /// Returns the subject of a note: what is done to the work, the owners and the files. The same is named in full once in a session.
    pub(super) fn subject(&self, is_stash: bool) -> Subject {
        Subject::Warning(format!("{CODE} {} {}", does(is_stash), sentence(self.collisions, self.root)))
    }

    /// Returns the note. `action` names the action for the reader.
    pub(super) fn note(&self, action: &str, is_stash: bool) -> Note {
        let (work, saved) = (sentence(self.collisions, self.root), self.saved());
        let saved = saved.unwrap_or_else(|| "it is in no checkpoint".to_owned());
        Note::of(self.subject(is_stash), &format!("piton: {action} {} {work}; {saved}", does(is_stash)))
    }

    /// Says in which checkpoint the work is, with the command that restores it; `None` if it is in none.
    pub(super) fn saved(&self) -> Option<String> {
        let number = match self.protection {
            Protection::Taken(taken) => taken.checkpoint.record.number,
            Protection::Held(held) => held.number,
            Protection::NotNeeded(_) | Protection::Off(_) | Protection::Late { .. } | Protection::Failed(_) => {
                return None;
            }
        };
        Some(format!("saved in {number}: `{}`", self.command(number)))
    }

    fn command(&self, number: Number) -> String {
        let paths: Vec<&RelPath> = self.collisions.iter().flat_map(|collision| &collision.paths).take(NAMED).collect();
        let (option, paths): (String, Vec<_>) = match self.root {
            // The files outside every workspace have the root `/`.
            Some(root) if root.parent().is_none() => {
                ("--outside ".to_owned(), paths.iter().map(|path| path.under(root)).collect())
            }
            Some(root) => (
                format!("--workspace {} ", shell_word(&root.to_string_lossy())),
                paths.iter().map(|path| path.to_path().to_owned()).collect(),
            ),
            None => (String::new(), paths.iter().map(|path| path.to_path().to_owned()).collect()),
        };
        format!("piton restore {option}{number} {}", shell_line(paths))
    }
}

fn does(is_stash: bool) -> &'static str {
    if is_stash { "stashed away" } else { "destroyed" }
}

/// Returns the notes of the collisions of an action.
pub(super) fn notes(action: &ActionDecision) -> Vec<Note> {
    let is_stash = is_stash(&action.effects);
    CollisionPart::all(action).iter().map(|part| part.note("this action", is_stash)).collect()
}

/// Returns true if all that an action with these effects takes away is put into a stash.
pub(super) fn is_stash(effects: &[Effect]) -> bool {
    let mut losing = effects.iter().filter(|effect| is_losing(effect.class)).peekable();
    losing.peek().is_some() && losing.all(|effect| effect.verb == "git stash")
}

/// Returns true for an effect that takes work away.
pub(super) fn is_losing(class: Class) -> bool {
    matches!(class, Class::VcsDiscard | Class::FileDelete | Class::FileOverwrite | Class::FileMove)
}

/// Says whose uncommitted work collisions are about, and names some files; absolute ones below `root`.
pub(super) fn sentence(collisions: &[Collision], root: Option<&Path>) -> String {
    let of_owner = |collision: &Collision| {
        let shown = |path: &RelPath| root.map_or_else(|| path.display(), |root| path.under(root).display().to_string());
        let named = collision.paths.iter().take(NAMED).map(|path| format!("`{}`", printable(&shown(path))));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = collision.paths.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} ({named}{more})", who(&collision.owner))
    };
    let all: Vec<String> = collisions.iter().map(of_owner).collect();
    redact(&format!("uncommitted work of {}", all.join(" and of ")))
}

/// Names an owner.
fn who(owner: &WorkOwner) -> String {
    match owner {
        WorkOwner::Person => "a person, changed while no agent was active".to_owned(),
        WorkOwner::Run { run, client, turn, operation } => {
            let turn = operation.clone().unwrap_or_else(|| cut(&printable(turn), MAX_TURN));
            let turn = if turn.is_empty() { String::new() } else { format!(", turn `{turn}`") };
            match client {
                Some(client) => format!("{}, run `{}`{turn}", printable(client), printable(run)),
                None => format!("run `{}`{turn}", printable(run)),
            }
        }
    }
}
