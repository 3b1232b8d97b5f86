//! Undoes a switch of branches. git writes the files and the index of the other branch before it calls piton, so the state that piton
//! recorded as the one before the command already contains them. git therefore switches back from one commit to the other.

use super::log::GitOperation;
use super::operations::RepositoryNow;
use super::plan::{IndexEntries, KeptPart, RepositoryPlan};
use crate::git::user_repository::TreeSwitch;
use crate::model::repository::{HEAD, RepositoryState};

/// The verbs of commands that switch branches.
const SWITCHES: &[&str] = &["checkout", "switch"];

/// The parts that a switch changes, as a preview lists them.
const SWITCHED: &str = "`HEAD`, with the files and the index";

impl GitOperation {
    /// Returns true if its command may switch branches.
    pub fn may_switch(&self) -> bool {
        SWITCHES.iter().any(|verb| self.has_verb(verb))
    }
}

impl RepositoryPlan {
    /// Adds the switch of files to the plan that undoes `command`, if the command switched branches before piton recorded the state `before`.
    /// `after` is the recorded state after the command. If the switch would overwrite uncommitted changes, HEAD is kept too.
    pub(super) fn add_switch(
        &mut self,
        command: &GitOperation,
        before: &RepositoryState,
        after: &RepositoryState,
        index: &IndexEntries,
        found: &RepositoryNow,
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
        match found.repository().try_switch(&found.place().top, &switch) {
            Ok(()) => self.switch = Some(switch),
            Err(error) => {
                self.refs.retain(|one| one.name != HEAD);
                self.kept.push(KeptPart { what: SWITCHED.to_owned(), why: error.message().to_owned() });
            }
        }
    }
}
