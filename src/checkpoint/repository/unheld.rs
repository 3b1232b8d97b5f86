//! Files that a command of git may destroy and that no checkpoint holds: the settings exclude them, or they are over a limit. They are
//! looked at before the command and after it, so that `piton git-undo` can say which of them it does not bring back.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::log::{GitOperation, UnheldFile, WRITING_VERBS};
use super::operations::NewGitOperation;
use super::plan::{KeptPart, first_named};
use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::git::user_repository::UserRepository;
use crate::model::coverage::SkipReason;
use crate::model::id::ObjectId;
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;

/// The most files that are looked at for one command.
const MOST: usize = 1000;

/// The reason of a file that the settings exclude.
const EXCLUDED: &str = "no checkpoint contains it, because `exclude` in the settings matches it";

/// The reason of a file that is over a limit.
const OVER: &str = "no checkpoint contains it, because it is over a limit of the settings or could not be read";

/// Returns the moment at which a file has changed last; `None` where there is none.
fn changed_at(place: &Path) -> Option<i64> {
    let facts = place.symlink_metadata().ok()?; // gone
    Some(facts.ctime().saturating_mul(1_000_000_000).saturating_add(facts.ctime_nsec()))
}

impl Catalog {
    /// Returns the files that a command may destroy and that the checkpoint before it does not hold. A list that cannot be made is empty:
    /// it only serves to tell more.
    pub(super) fn unheld_before(
        &self,
        new: &NewGitOperation,
        verbs: &[String],
        files: Option<ObjectId>,
    ) -> Vec<UnheldFile> {
        let Some(files) = files.filter(|_| verbs.iter().any(|verb| WRITING_VERBS.contains(&verb.as_str()))) else {
            return Vec::new();
        };
        let found = self.excluded_files(new).and_then(|excluded| Ok((excluded, self.skipped_files(files)?)));
        let (excluded, skipped) = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "files that no checkpoint contains are not listed");
            Default::default()
        });
        let mut all: BTreeMap<RelPath, bool> = skipped.into_iter().map(|path| (path, false)).collect();
        all.extend(excluded.into_iter().map(|path| (path, true)));
        let unheld = |(path, excluded): (RelPath, bool)| {
            let changed = changed_at(&path.under(&self.workspace.path))?;
            Some(UnheldFile { path: quote(path.as_bytes()), changed, excluded })
        };
        all.into_iter().filter_map(unheld).take(MOST).collect()
    }

    /// Returns the files in the work tree that the settings exclude, tracked or not.
    fn excluded_files(&self, new: &NewGitOperation) -> Result<Vec<RelPath>> {
        let place = new.before.place();
        // Patterns count from the root of the workspace, and git counts from the top of the work tree.
        let is_top = place.top == self.workspace.path;
        let is_anchored = |pattern: &&String| pattern.trim_end_matches('/').contains('/');
        let patterns: Vec<&String> =
            self.policy.exclude.iter().filter(|pattern| is_top || !is_anchored(pattern)).collect();
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let found = UserRepository::at(&place.dir, &place.common).matching(&place.top, &patterns)?;
        let inside = |path: Vec<u8>| {
            let path = RelPath::parse(path.strip_suffix(b"/").unwrap_or(&path)).ok()?; // a name that piton does not take
            RelPath::from_path(path.under(&place.top).strip_prefix(&self.workspace.path).ok()?).ok() // above it
        };
        Ok(found.into_iter().filter_map(inside).collect())
    }

    /// Returns the files that a checkpoint has left out although a person may miss them.
    fn skipped_files(&self, files: ObjectId) -> Result<Vec<RelPath>> {
        let checkpoint = self.checkpoint_of(files)?;
        if checkpoint.record.skipped == 0 {
            return Ok(Vec::new());
        }
        let is_unheld =
            |why: &SkipReason| why.makes_partial() || matches!(why, SkipReason::Secret | SkipReason::Beyond(_));
        let skipped = self.own_coverage(&checkpoint)?.skipped.into_iter();
        Ok(skipped.filter(|(_, why)| is_unheld(why)).map(|(path, _)| path).collect())
    }

    /// Returns the files of an operation that are gone by now, or that have changed.
    pub(super) fn unheld_after(&self, begin: &GitOperation) -> Vec<UnheldFile> {
        let is_other = |one: &&UnheldFile| {
            let path = unquote(&one.path).and_then(|bytes| RelPath::parse(&bytes));
            path.is_ok_and(|path| changed_at(&path.under(&self.workspace.path)) != Some(one.changed))
        };
        begin.unheld.iter().filter(is_other).cloned().collect()
    }
}

/// Returns files that no checkpoint holds as parts that stay.
pub(super) fn parts(files: &[UnheldFile]) -> Vec<KeptPart> {
    let named = |one: &UnheldFile| {
        let path = unquote(&one.path).and_then(|bytes| RelPath::parse(&bytes)).map(|path| path.display());
        let why = if one.excluded { EXCLUDED } else { OVER };
        KeptPart { what: format!("`{}`", path.unwrap_or_default()), why: why.to_owned() }
    };
    first_named(files.iter().map(named).collect(), "files", "no checkpoint contains them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_named_and_the_rest_is_counted() {
        let files: Vec<UnheldFile> =
            (0..12).map(|n| UnheldFile { path: format!("a%20{n}"), changed: 0, excluded: n == 0 }).collect();
        let told = parts(&files);
        assert_eq!((told[0].what.as_str(), told[0].why.as_str()), ("`a 0`", EXCLUDED));
        assert_eq!((told[1].what.as_str(), told[1].why.as_str()), ("`a 1`", OVER));
        assert_eq!((told.len(), told[10].what.as_str()), (11, "2 more files"));
        assert_eq!(parts(&files[..10]).len(), 10);
    }
}
