//! Names paths that an action destroys and no checkpoint holds: in the answer, in lists, and at a restore.

use std::collections::BTreeMap;
use std::path::Path;

use super::checkpoint::Checkpoint;
use super::open::Catalog;
use crate::checkpoint::records::repositories::{self, KeptRepository};
use crate::error::Result;
use crate::model::coverage::{Coverage, Extent, SkipReason, Weight, not_held};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::text::shell_word;
use crate::worktree::{Target, is_linked_worktree};

/// A path that an action named and the checkpoint leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The path that is missing: the named one, or something below or above it.
    pub path: RelPath,
    /// Its weight, if that was counted.
    pub weight: Option<Weight>,
    /// The reason why it was left out.
    pub why: SkipReason,
}

/// Says which paths are not saved; `None` without gaps.
pub fn sentence(gaps: &[Gap]) -> Option<String> {
    not_held(gaps.iter().map(|gap| (gap.path.display(), gap.weight)))
}

/// Lists the paths that an action names, that a checkpoint leaves out, and that a person may miss.
pub fn of_targets(coverage: &Coverage, targets: &[Target]) -> Vec<Gap> {
    let mut found = BTreeMap::new();
    for (path, why) in coverage.skipped.iter().filter(|(_, why)| why.is_loss()) {
        // A named path in a linked worktree is captured although the rest of that worktree is not.
        let is_near = |target: &&Target| {
            path.starts_with(&target.path) || (target.path.starts_with(path) && *why != SkipReason::LinkedWorktree)
        };
        let Some(target) = targets.iter().find(is_near) else { continue };
        // Single files over the budget are many: they are listed as the path that was named.
        let at = match why {
            SkipReason::OverBudget(_) if target.path.is_root() => top(path),
            SkipReason::OverBudget(_) => target.path.clone(),
            _ => path.clone(),
        };
        add(&mut found, at, *why);
    }
    found.into_values().collect()
}

/// Lists the paths that a checkpoint leaves out although a person may miss them: an action that may reach anything may destroy
/// them. Directories that tools made and can make again are not among them.
pub fn beyond(coverage: &Coverage) -> Vec<Gap> {
    let beyond = coverage.skipped.iter().filter(|(_, why)| why.is_missed());
    beyond.map(|(path, why)| Gap { path: path.clone(), weight: why.weight(), why: *why }).collect()
}

/// Lists the paths that the checkpoint's own action named and the checkpoint leaves out.
pub fn recorded(coverage: &Coverage) -> Vec<Gap> {
    let mut found = BTreeMap::new();
    for (path, why) in coverage.skipped.iter().filter(|(_, why)| why.is_of_target()) {
        // Where only some paths were looked at, they are those that the action named.
        let named = || match &coverage.extent {
            Extent::Paths(paths) => paths.iter().find(|named| path.starts_with(named)).cloned(),
            Extent::Tree => None,
        };
        let is_over = matches!(why, SkipReason::OverBudget(_));
        let at = if is_over { named().unwrap_or_else(|| top(path)) } else { path.clone() };
        add(&mut found, at, *why);
    }
    found.into_values().collect()
}

fn add(found: &mut BTreeMap<RelPath, Gap>, path: RelPath, why: SkipReason) {
    let weight = why.weight();
    match found.get_mut(&path) {
        Some(gap) => gap.weight = gap.weight.zip(weight).map(|(a, b)| a.plus(b)).or(gap.weight).or(weight),
        None => _ = found.insert(path.clone(), Gap { path, weight, why }),
    }
}

/// Returns the first component of a path.
fn top(path: &RelPath) -> RelPath {
    path.components().next().map_or_else(RelPath::root, |name| RelPath::root().join(name))
}

impl Catalog {
    /// Lists the paths that an action names now and an earlier checkpoint leaves out.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn gaps_of(&self, checkpoint: &Checkpoint, targets: &[Target]) -> Result<Vec<Gap>> {
        // Most checkpoints leave nothing out, which their record shows without a look at the coverage.
        if checkpoint.record.skipped == 0 || targets.is_empty() {
            return Ok(Vec::new());
        }
        let mut gaps = of_targets(&self.own_coverage(checkpoint)?, targets);
        gaps.retain(|gap| self.is_there(&gap.path));
        Ok(gaps)
    }

    /// Lists the paths that an earlier checkpoint leaves out although a person may miss them, as far as they are there.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn beyond_at(&self, checkpoint: &Checkpoint) -> Result<Vec<Gap>> {
        if checkpoint.record.skipped == 0 {
            return Ok(Vec::new());
        }
        let mut gaps = beyond(&self.own_coverage(checkpoint)?);
        gaps.retain(|gap| self.is_there(&gap.path));
        Ok(gaps)
    }

    /// Returns those nested repositories of which a checkpoint holds nothing.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn repositories_left_out(&self, checkpoint: &Checkpoint, repositories: &[RelPath]) -> Result<Vec<Gap>> {
        let mut gaps = Vec::new();
        for path in repositories {
            if self.entry_at(&self.whole(checkpoint)?, path)?.is_none() {
                let why = match is_linked_worktree(&path.under(&self.workspace.path)) {
                    true => SkipReason::LinkedWorktree,
                    false => SkipReason::IgnoredRepository,
                };
                gaps.push(Gap { path: path.clone(), weight: None, why });
            }
        }
        Ok(gaps)
    }

    /// Lists the paths that the action of a checkpoint named and the checkpoint does not hold.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn gaps_at(&self, checkpoint: &Checkpoint) -> Result<Vec<Gap>> {
        Ok(recorded(&self.coverage_of(checkpoint)?))
    }

    /// Returns the warnings for a person before a restore to a checkpoint, as far as it is about the paths.
    pub(crate) fn target_warnings(&self, coverage: &Coverage, is_about: &dyn Fn(&RelPath) -> bool) -> Vec<String> {
        let skips = &coverage.skipped;
        let is_partial = |reason: &SkipReason| reason.makes_partial() && !reason.is_of_target();
        let left_out = || skips.iter().filter(|(path, reason)| is_partial(reason) && is_about(path));
        let partial = || left_out().filter(|(path, _)| self.is_there(path));
        let mut warnings = Vec::new();
        if partial().next().is_some() {
            let first: Vec<String> =
                partial().take(3).map(|(path, reason)| format!("{} ({reason})", path.display())).collect();
            let paths = crate::model::text::count(partial().count() as u64, "path");
            warnings
                .push(format!("this checkpoint does not contain {paths}, which are not changed: {}", first.join(", ")));
        }
        let mut gone = recorded(coverage);
        gone.extend(left_out().map(|(path, why)| Gap { path: path.clone(), weight: why.weight(), why: *why }));
        // A path that still exists was not destroyed.
        gone.retain(|gap| is_about(&gap.path));
        gone.retain(|gap| !self.is_there(&gap.path) || matches!(gap.why, SkipReason::OverBudget(_)));
        warnings.extend(sentence(&gone).map(|text| format!("{text}: this checkpoint cannot restore that")));
        warnings
    }

    /// Lists the repositories that were kept with a checkpoint, or with a step of the same turn after it: of each path the
    /// first one.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn repositories_of(&self, checkpoint: &Checkpoint) -> Result<Vec<KeptRepository>> {
        self.repositories_with(checkpoint, &self.coverage(&checkpoint.tree)?)
    }

    /// As [`Catalog::repositories_of`], with the coverage of the checkpoint, which contains `.git` files.
    fn repositories_with(&self, checkpoint: &Checkpoint, coverage: &Coverage) -> Result<Vec<KeptRepository>> {
        // Records of another machine are untrusted input.
        let is_own = !self.is_foreign(checkpoint);
        let files = KeptRepository::files_in(coverage, checkpoint.record.ordinal()).filter(|_| is_own);
        let kept = repositories::of(&self.workspace.dir);
        if kept.is_empty() {
            return Ok(files.collect());
        }
        let (all, own) = (self.all()?, checkpoint.record.number);
        let serves = |kept: &KeptRepository| {
            let of = all.checkpoints.iter().find(|one| one.record.ordinal() == kept.ordinal);
            of.is_some_and(|of| of.id == checkpoint.id || (of.record.number.main == own.main && of.record.number > own))
        };
        let mut found: Vec<KeptRepository> = Vec::new();
        for kept in kept.into_iter().filter(serves).chain(files) {
            if found.iter().all(|known| known.path != kept.path) {
                found.push(kept);
            }
        }
        Ok(found)
    }

    /// Says which of the selected repositories a restore does not bring back by itself.
    pub(crate) fn repository_warnings(
        &self,
        checkpoint: &Checkpoint,
        coverage: &Coverage,
        selects: &dyn Fn(&RelPath) -> bool,
    ) -> Result<Vec<String>> {
        let all = self.gone(checkpoint, self.repositories_with(checkpoint, coverage)?, selects);
        Ok(all.iter().map(|(path, command)| format!("`{path}` was saved; to restore it, run `{command}`")).collect())
    }

    /// Returns the repositories that were kept with a checkpoint and are gone, each with the command that brings it back.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn repositories_gone(&self, checkpoint: &Checkpoint) -> Result<Vec<(String, String)>> {
        Ok(self.gone(checkpoint, self.repositories_of(checkpoint)?, &|_| true))
    }

    fn gone(
        &self,
        checkpoint: &Checkpoint,
        kept: Vec<KeptRepository>,
        selects: &dyn Fn(&RelPath) -> bool,
    ) -> Vec<(String, String)> {
        let is_missing = |kept: &KeptRepository| selects(&kept.path) && !self.is_there(&kept.path);
        let gone = kept.into_iter().filter(is_missing);
        gone.map(|kept| (self.shown(&kept.path), self.restore_command_at(checkpoint, &kept.path))).collect()
    }

    /// Returns a path as a person reads it: absolute outside every workspace.
    pub(crate) fn shown(&self, path: &RelPath) -> String {
        let leading = if self.is_outside() { "/" } else { "" };
        format!("{leading}{}", path.display())
    }

    /// Returns the command that restores one path of a checkpoint, which may have no number.
    pub fn restore_command_at(&self, checkpoint: &Checkpoint, path: &RelPath) -> String {
        let option = if self.is_outside() { "--outside " } else { "" };
        format!("piton restore {option}{} {}", checkpoint.shown(), shell_word(&self.shown(path)))
    }

    /// Returns the command that restores the newest other version of a path.
    pub(crate) fn recover_command(&self, path: &RelPath) -> String {
        let option = if self.is_outside() { "--outside " } else { "" };
        format!("piton recover {option}{}", shell_word(&self.shown(path)))
    }

    /// Returns the command that brings one path of a checkpoint back.
    pub(crate) fn restore_command(&self, number: Number, path: &RelPath) -> String {
        let option = if self.is_outside() { "--outside " } else { "" };
        format!("piton restore {option}{number} {}", self.shown(path))
    }

    /// Returns true if the workspace is that of files outside of all others.
    fn is_outside(&self) -> bool {
        self.workspace.path == Path::new("/")
    }

    /// Returns true if a checkpoint records each of these gaps.
    pub(crate) fn admits_gaps(&self, held: &Checkpoint, present: &Coverage) -> Result<bool> {
        let mut gaps = present.skipped.iter().filter(|(_, why)| why.is_of_target()).peekable();
        if gaps.peek().is_none() {
            return Ok(true);
        }
        let recorded = self.own_coverage(held)?;
        // No checkpoint tells whether a repository is still as it was kept.
        let is_repository = |why: &SkipReason| matches!(why, SkipReason::Repository(_));
        Ok(gaps.all(|(path, why)| {
            !is_repository(why) && recorded.skipped.get(path).is_some_and(|known| known.as_str() == why.as_str())
        }))
    }

    fn is_there(&self, path: &RelPath) -> bool {
        path.under(&self.workspace.path).symlink_metadata().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn gaps_are_told_by_what_was_named() {
        let mut coverage = Coverage::default();
        let least = Weight { bytes: 2_000_000, is_least: true };
        for (at, why) in [
            ("cache/a/x", SkipReason::OverBudget(Weight::whole(10))),
            ("cache/b", SkipReason::OverBudget(Weight::whole(5))),
            ("cache/pipe", SkipReason::Special),
            ("vendor/.git", SkipReason::Repository(least)),
            ("other/big", SkipReason::TooLarge(9)),
            ("tree", SkipReason::LinkedWorktree),
        ] {
            coverage.skipped.insert(path(at), why);
        }
        let told = |names: &[&str]| {
            let targets: Vec<Target> = names.iter().map(|name| Target { path: path(name), recursive: true }).collect();
            sentence(&of_targets(&coverage, &targets))
        };
        assert_eq!(told(&["cache"]).unwrap(), "not saved: cache (15 B)");
        assert_eq!(told(&["vendor"]).unwrap(), "not saved: vendor/.git (2.0 MB or more)");
        assert_eq!(told(&["vendor/.git/config"]).unwrap(), "not saved: vendor/.git (2.0 MB or more)");
        assert_eq!(told(&["src"]), None);
        assert_eq!(told(&["tree/a"]), None, "what is named in another worktree is captured");
        let all = Target { path: RelPath::root(), recursive: true };
        let paths: Vec<String> = of_targets(&coverage, &[all]).iter().map(|gap| gap.path.display()).collect();
        assert_eq!(paths, ["cache", "other/big", "tree", "vendor/.git"]);
        assert_eq!(recorded(&coverage).len(), 2, "what no action named stays as it is");
    }
}
