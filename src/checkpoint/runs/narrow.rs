//! The files that typed checkpoints record: those that the patterns in force track, and those that were recorded before.
//!
//! Nothing else is ever narrowed, so that a narrow pattern loses nothing: `auto`, `manual` and `pre-restore`
//! checkpoints see the whole workspace. The patterns are recorded with the checkpoint: they tell which absences count,
//! and they are the run's patterns if its state is lost.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::run::{NO_CODON, Run};
use crate::checkpoint::capture::request::{Draft, Take};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::Present;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::rules::ManifestView;
use crate::error::{Code, Result};
use crate::filter::{CaptureJudge, Tracked, Verdict, literal_roots};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::settings::WORKSPACE_FILE;
use crate::sys::clock::rfc3339;
use crate::worktree::{Target, files_below};

/// The files to which a typed checkpoint of a run is narrowed.
pub(crate) struct Narrowing {
    /// The patterns, compiled.
    tracked: Tracked,
    /// The patterns that select files, in the dialect of `.gitignore`.
    patterns: Vec<String>,
    /// The patterns of inputs that are left out.
    read_only: Vec<String>,
    /// The files of the run's last typed checkpoint: once recorded, a file stays recorded while it exists.
    kept: HashSet<RelPath>,
}

/// The files that patterns match in the workspace as it is.
#[derive(Clone, Debug)]
pub struct TrackedNow {
    /// The patterns in force, in the dialect of `.gitignore`.
    pub patterns: Vec<String>,
    /// Files that typed checkpoints record.
    pub matched: Vec<RelPath>,
    /// Files that were made during the run and that no pattern covers: no typed checkpoint has them.
    pub missed: Vec<RelPath>,
}

/// The most by which a file system's times may be behind the clock.
const TICK_MS: i64 = 10;

/// Returns the checkpoint that shows best which files a run found when it began. That is its own first one if that saw
/// everything, else the last earlier one that did, else the run's first one that did.
fn found_by<'a>(run: &str, all: &'a [Checkpoint]) -> Option<&'a Checkpoint> {
    let own = |c: &&Checkpoint| c.record.run == run;
    let first = all.iter().find(own)?;
    let before = all.iter().rev().filter(|c| c.record.ordinal <= first.record.ordinal);
    before.chain(all.iter().filter(own)).find(|c| c.record.is_whole())
}

impl Narrowing {
    /// Returns true if the narrowing can leave nothing out; `exists` tells which inputs there are.
    pub(crate) fn spares(&self, exists: &dyn Fn(&RelPath) -> bool) -> bool {
        let there =
            |root: &String| RelPath::parse(root.as_bytes()).map_or(true, |root| root.is_root() || exists(&root));
        self.tracked.is_all_but_inputs() && !literal_roots(&self.read_only).iter().any(there)
    }

    /// Leaves out files that are not recorded, and directories without recorded ones, and notes that in the coverage. Returns false
    /// where nothing is left out.
    pub(crate) fn apply(&self, manifest: &mut Manifest, coverage: &mut Coverage) -> bool {
        let recorded = |path: &RelPath| self.tracked.matches(path) || self.kept.contains(path);
        let left_out = |path: &RelPath, entry: &ManifestEntry| entry.kind != EntryKind::Dir && !recorded(path);
        if self.patterns.is_empty() && !manifest.iter().any(|(path, entry)| left_out(path, entry)) {
            return false;
        }
        let files = manifest.iter().filter(|(path, entry)| entry.kind != EntryKind::Dir && recorded(path));
        let mut narrowed: Manifest = files.map(|(path, entry)| (path.clone(), *entry)).collect();
        for (dir, entry) in manifest.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir) {
            if narrowed.inside(dir).next().is_some() {
                narrowed.insert(dir.clone(), *entry);
            }
        }
        *manifest = narrowed;
        (coverage.tracked, coverage.read_only) = (self.patterns.clone(), self.read_only.clone());
        true
    }
}

impl Catalog {
    /// Returns the files to which a checkpoint is narrowed; `None` when it is not.
    pub(crate) fn narrowing(&self, draft: &Draft) -> Result<Option<Narrowing>> {
        if !draft.kind.is_typed() {
            return Ok(None);
        }
        let patterns = self.patterns_for(draft)?;
        let read_only = self.policy.read_only.clone();
        let tracked = Tracked::new(&patterns, &read_only)?;
        if tracked.is_everything() {
            return Ok(None);
        }
        let kept = if patterns.is_empty() { Ok(HashSet::new()) } else { self.recorded_before(&draft.run, &read_only) };
        let kept = match kept {
            // The earlier record cannot be read: everything is recorded, so that nothing is missed.
            Err(error) if matches!(error.code(), Code::StoreDamaged | Code::NoSuchCheckpoint) => return Ok(None),
            kept => kept?,
        };
        Ok(Some(Narrowing { tracked, patterns, read_only, kept }))
    }

    /// Returns the patterns that a typed checkpoint records by. A checkpoint without a codon is the end of its run.
    fn patterns_for(&self, draft: &Draft) -> Result<Vec<String>> {
        let at_end =
            draft.codon.as_ref().is_none_or(|codon| draft.kind == CheckpointKind::Exit && codon.id == NO_CODON);
        self.patterns_of(&draft.run, at_end)
    }

    /// Lists the files of the newest typed checkpoint on which a run stands.
    fn recorded_before(&self, run: &str, read_only: &[String]) -> Result<HashSet<RelPath>> {
        let (_, tip) = self.run_tip(run)?;
        let Some(tree) = self.typed_at(tip)?.map(|checkpoint| checkpoint.tree) else { return Ok(HashSet::new()) };
        let allowed = Tracked::new(&[], read_only)?;
        Ok(self.files_of(&tree)?.into_iter().filter(|path| allowed.matches(path)).collect())
    }

    /// Lists the files that a run made after `target`, although the patterns of `target` do not cover them. A later
    /// typed checkpoint of the run recorded them, and the last whole checkpoint before it shows that they were not
    /// there. Any other file that `target` did not look for may be a person's.
    pub(crate) fn made_since(
        &self,
        target: &Checkpoint,
        coverage: &Coverage,
        present: &Manifest,
    ) -> Result<HashSet<RelPath>> {
        if coverage.tracked.is_empty() {
            return Ok(HashSet::new());
        }
        let run = &target.record.run;
        let newest =
            self.all()?.checkpoints.iter().rev().find(|c| c.record.run == *run && c.record.kind.is_typed()).cloned();
        let mut recorded = self.recorded_before(run, &coverage.read_only)?;
        if let Some(newest) = newest {
            recorded.extend(self.files_of(&newest.tree)?);
        }
        let all = self.all()?;
        let before = |c: &&Checkpoint| c.record.ordinal < target.record.ordinal && c.record.is_whole();
        let Some(witness) = all.checkpoints.iter().rev().find(before) else { return Ok(HashSet::new()) };
        let (manifest, witnessed) = self.contents(witness)?;
        if !self.has_rules(&manifest)? {
            return Ok(HashSet::new());
        }
        let view = ManifestView { catalog: self, manifest: &manifest };
        let judge = CaptureJudge::new(&witnessed, &view);
        let made = present.iter().filter(|(path, entry)| {
            recorded.contains(*path) && !manifest.contains(path) && judge.verdict(path, entry) == Verdict::Yes
        });
        Ok(made.map(|(path, _)| path.clone()).collect())
    }

    fn files_of(&self, tree: &ObjectId) -> Result<Vec<RelPath>> {
        let (manifest, _) = self.load(tree, &|_| true)?;
        Ok(manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir).map(|(path, _)| path.clone()).collect())
    }

    /// Returns the files that a run's patterns match now, and those that they miss; `None` where everything is tracked.
    /// `present` is asked only if something is not.
    pub(crate) fn tracked_now(
        &self,
        run: &str,
        present: impl FnOnce() -> Result<Present>,
    ) -> Result<Option<TrackedNow>> {
        let patterns = self.patterns_of(run, false)?;
        if patterns.is_empty() {
            return Ok(None);
        }
        let tracked = Tracked::new(&patterns, &self.policy.read_only)?;
        let inputs = Tracked::new(&[], &self.policy.read_only)?;
        let present = present()?;
        let all = self.all()?;
        let found = found_by(run, &all.checkpoints).map(|found| self.load(&found.tree, &|_| true)).transpose()?;
        // A file in no earlier checkpoint may still be older than the run: then nothing has touched it since.
        let started = Run::load(&self.workspace.dir, run)?.and_then(|run| run.started).unwrap_or_default();
        let touched = |path: &RelPath| {
            let facts = path.under(&self.workspace.path).symlink_metadata();
            let ctime = |facts: std::fs::Metadata| facts.ctime() * 1000 + facts.ctime_nsec() / 1_000_000;
            facts.is_ok_and(|facts| rfc3339(ctime(facts) + TICK_MS) >= started)
        };
        let is_new = |path: &RelPath| found.as_ref().is_some_and(|(found, _)| !found.contains(path)) && touched(path);
        let mut now = TrackedNow { patterns, matched: Vec::new(), missed: Vec::new() };
        let is_shown = |path: &RelPath, entry: &ManifestEntry| {
            entry.kind != EntryKind::Dir && !present.private.manifest.contains(path)
        };
        for (path, _) in present.manifest.iter().filter(|(path, entry)| is_shown(path, entry)) {
            if tracked.matches(path) {
                now.matched.push(path.clone());
            } else if inputs.matches(path) && is_new(path) && path.to_path() != Path::new(WORKSPACE_FILE) {
                now.missed.push(path.clone());
            }
        }
        Ok(Some(now))
    }

    /// Returns the same request with the ignored files that patterns track, where the settings say that patterns beat
    /// ignore rules.
    pub(crate) fn widened(&self, take: &Take) -> Result<Option<Take>> {
        if !take.draft.kind.is_typed() || !self.policy.tracked_override {
            return Ok(None);
        }
        let patterns = self.patterns_for(&take.draft)?;
        if patterns.is_empty() {
            return Ok(None);
        }
        let tracked = Tracked::new(&patterns, &self.policy.read_only)?;
        let secret = |path: &RelPath| crate::filter::secret::is_secret(path.as_bytes());
        let wanted = |path: &RelPath| tracked.matches(path) && !secret(path);
        let mut widened = take.clone();
        widened.selection.wanted = true;
        let targets = &mut widened.selection.targets;
        for root in literal_roots(&patterns) {
            let root = RelPath::parse(root.as_bytes()).unwrap_or_default();
            let files = files_below(&self.workspace.path, &root)?.into_iter().filter(|path| wanted(path));
            targets.extend(files.map(|path| Target { path, recursive: false }));
        }
        targets.sort_by(|a, b| a.path.cmp(&b.path));
        targets.dedup();
        Ok(Some(widened))
    }
}
