//! The way back over a switch of branches. git writes the files and the index of the other branch first and tells of its command after
//! that, so the state before it has the wrong files and the wrong index. A second switch, in the other direction, is the way back.

use std::path::Path;

use super::log::GitOperation;
use super::plan::{IndexEntries, KeptPart, RepositoryPlan};
use crate::git::user_repository::{TreeSwitch, UserRepository};
use crate::model::repository::{HEAD, RepositoryState};

/// The verbs of commands that switch branches.
const SWITCHES: &[&str] = &["checkout", "switch"];

/// The files and the index, for people.
const FILES_AND_INDEX: &str = "the files and the index";

impl GitOperation {
    /// Returns true if its command may switch branches.
    pub fn may_switch(&self) -> bool {
        SWITCHES.iter().any(|verb| self.has_verb(verb))
    }
}

impl RepositoryPlan {
    /// Adds the switch of files to the way back over a command that has switched branches and told of it too late. Where uncommitted changes
    /// are in its way, HEAD stays too. `before` and `after` are the states as they were told.
    pub(super) fn add_switch(
        &mut self,
        command: &GitOperation,
        (before, after): (&RepositoryState, &RepositoryState),
        index: &IndexEntries,
        (repository, top): (&UserRepository, &Path),
    ) {
        let is_late = index.after.as_ref() == Some(&index.before);
        let Some((from, to)) = after.head_commit().zip(before.head_commit()).filter(|(from, to)| is_late && from != to)
        else {
            return;
        };
        if !command.may_switch() || !self.refs.iter().any(|one| one.name == HEAD) {
            return;
        }
        let switch = TreeSwitch { from: from.to_owned(), to: to.to_owned() };
        match repository.try_switch(top, &switch) {
            Ok(()) => self.switch = Some(switch),
            Err(error) => {
                self.refs.retain(|one| one.name != HEAD);
                self.kept.push(KeptPart {
                    what: format!("`HEAD`, with {FILES_AND_INDEX}"),
                    why: error.message().to_owned(),
                });
            }
        }
    }
}
