//! The choice of what an undo or redo steps over: a turn, a run, paths and patterns.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::journal::TurnChange;
use crate::error::{Code, Error, Result};
use crate::filter::PathLimits;
use crate::model::path::RelPath;
use crate::model::text::printable;
use crate::model::turn::Attribution;

/// The choice of a person of what to step over.
#[derive(Clone, Debug, Default)]
pub struct StepChoice {
    /// A turn: its name in the journal (`t-3`), or the client's name of it.
    pub turn: Option<String>,
    /// The id of the run of that turn.
    pub run: Option<String>,
    /// The paths of the turn that count, each with all below it; all when empty.
    pub paths: Vec<RelPath>,
    /// Patterns of further paths, and paths that stay.
    pub limits: Arc<PathLimits>,
    /// The shares that go back too, in addition to what is surely the turn's, and to what it may have deleted.
    pub include: Vec<Attribution>,
    /// The runs of the session that asks: without a name, its step is the newest of these. `None` for the command line.
    pub session: Option<BTreeSet<String>>,
}

impl StepChoice {
    /// Returns true if it is the next step, whatever that is.
    pub fn names_nothing(&self) -> bool {
        self.turn.is_none() && self.run.is_none() && self.is_of_all_paths()
    }

    /// Returns true if it chooses no paths: then all of a step counts, in all its workspaces.
    pub fn is_of_all_paths(&self) -> bool {
        self.paths.is_empty() && self.limits.is_none()
    }

    /// Returns true if it names paths, or has patterns of them.
    pub(super) fn names_paths(&self) -> bool {
        !self.paths.is_empty() || !self.limits.patterns.is_empty()
    }

    /// Returns true if the undo includes a change.
    pub(super) fn takes(&self, change: &TurnChange) -> bool {
        change.is_undone_by_default() || self.include.contains(&change.who)
    }

    /// Returns true if a path that exists is left as it is although the turn may have changed it: only `sure` changes are replaced or
    /// deleted unless the path was named or its share included.
    pub(super) fn creates_only(&self, path: &RelPath, share: Attribution) -> bool {
        share != Attribution::Sure && !self.include.contains(&share) && !self.paths.contains(path)
    }

    /// Returns true if a path of the turn counts.
    pub(super) fn chooses(&self, path: &RelPath) -> bool {
        self.limits.selects(&self.paths, path)
    }

    /// Refuses a pattern that matches nothing that a turn has changed: it is mostly a typing mistake.
    ///
    /// # Errors
    /// `no-such-path`.
    pub(super) fn refuse_unmatched(&self, turn: &str, changed: &[RelPath]) -> Result<()> {
        self.limits.unmatched(&changed.iter().collect::<Vec<_>>()).map_or(Ok(()), |pattern| {
            let text = format!("turn {turn} has not changed anything that matches `{}`", printable(pattern));
            Err(Error::new(Code::NoSuchPath, text).hint(format!("`piton diff {turn}` shows its changes")))
        })
    }

    /// Says that no turn has changed what was chosen.
    pub(super) fn no_such_change(&self) -> Error {
        let pattern = self.limits.patterns.texts().first();
        match (self.paths.first(), &self.run) {
            (Some(path), _) => {
                let text = "no turn that can be undone has changed that path";
                Error::new(Code::NoSuchPath, text)
                    .path(path.to_path())
                    .hint("`piton restore PATH` restores its newest version that differs; `piton list --turns` lists the turns")
            }
            (None, _) if !self.is_of_all_paths() => {
                let what = pattern
                    .map_or("other paths".to_owned(), |text| format!("a path that `{}` matches", printable(text)));
                Error::new(Code::NoSuchPath, format!("no turn that can be undone has changed {what}"))
                    .hint("`piton list --turns` lists the turns; `piton diff --turn` shows their changes")
            }
            (None, run) => {
                let run = printable(run.as_deref().unwrap_or_default());
                Error::new(Code::NoSuchTurn, format!("no turn of run `{run}` that can be undone has changed files"))
                    .field("run")
                    .hint("`piton list --turns` lists the turns")
            }
        }
    }
}
