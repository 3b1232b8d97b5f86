//! The moment of a checkpoint: what its own capture holds, and what it did not look at and another capture holds of the same moment.
//!
//! A checkpoint before an action leaves out what is too large or generated. The checkpoint before a later action of the turn holds such
//! a file if that action names it. If the file had not changed since before the first one looked (by its ctime), that version is the
//! first one's too. The same must be so of the directories above it, for a renamed one takes its files along. Otherwise nobody knows,
//! and the path is listed.
//!
//! A narrowed checkpoint leaves out what its patterns do not cover, which a base capture of the same moment holds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::layers::{CheckpointMoment, Moments};
use super::open::Catalog;
use super::rules::ManifestView;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Result;
use crate::filter::{CaptureJudge, Verdict};
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::stamp::is_before;
use crate::worktree::PrivatePart;

/// The paths that one sentence names.
const NAMED: usize = 5;

/// One file that a step holds and its turn's checkpoint does not.
struct Found {
    entry: ManifestEntry,
    /// The time of its last change, where the step recorded that.
    changed: Option<i64>,
    step: Number,
    /// True if the step holds it in its own tree, as no private file.
    is_shared: bool,
}

impl Catalog {
    /// Returns the private part of a checkpoint's moment.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn private_part(&self, checkpoint: &Checkpoint) -> Result<Arc<PrivatePart>> {
        Ok(Arc::clone(&self.moment(checkpoint)?.part))
    }

    /// Returns the part of a checkpoint's moment that no git command shows.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn hidden_part(&self, checkpoint: &Checkpoint) -> Result<PrivatePart> {
        let moment = self.moment(checkpoint)?;
        let hidden = moment.part.manifest.iter().filter(|(path, _)| !moment.shared.contains(path));
        let manifest = hidden.map(|(path, entry)| (path.clone(), *entry)).collect();
        Ok(PrivatePart { manifest, coverage: moment.part.coverage.clone() })
    }

    /// Returns the tree of a checkpoint's moment. It lacks the records of private files, which [`Catalog::contents`] has.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn whole(&self, checkpoint: &Checkpoint) -> Result<ObjectId> {
        match self.moment(checkpoint)?.root {
            Some(private) => self.whole_of(checkpoint.tree, private),
            None => Ok(checkpoint.tree),
        }
    }

    /// Loads the manifest and coverage of a checkpoint's moment.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn contents(&self, checkpoint: &Checkpoint) -> Result<(Manifest, Coverage)> {
        self.contents_with(checkpoint, &self.moment(checkpoint)?.part)
    }

    /// Loads the coverage of a checkpoint's moment.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn coverage_of(&self, checkpoint: &Checkpoint) -> Result<Coverage> {
        self.coverage_with(checkpoint, &self.moment(checkpoint)?.part)
    }

    /// Returns the moment of a checkpoint.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn moment(&self, checkpoint: &Checkpoint) -> Result<Arc<CheckpointMoment>> {
        let followers = self.followers_of(checkpoint)?;
        let own = || -> Result<CheckpointMoment> {
            let (part, root) = (self.own_part(checkpoint)?, self.layer_root(checkpoint)?);
            Ok(CheckpointMoment { part, root, ..CheckpointMoment::default() })
        };
        if followers.is_empty() {
            return own().map(Arc::new);
        }
        if let Some(known) = self.layers.borrow().moments.known.get(&checkpoint.id) {
            return Ok(Arc::clone(known));
        }
        let found = self.found_later(checkpoint, followers)?;
        let moment = Arc::new(if found.is_empty() { own()? } else { self.moment_with(checkpoint, found)? });
        self.layers.borrow_mut().moments.known.insert(checkpoint.id, Arc::clone(&moment));
        Ok(moment)
    }

    /// Lists the files that checkpoints before later actions hold and the checkpoint itself does not: the earliest version of each.
    /// In a workspace of single paths the shared files are among them.
    fn found_later(&self, checkpoint: &Checkpoint, followers: Vec<Checkpoint>) -> Result<BTreeMap<RelPath, Found>> {
        let mut found = BTreeMap::new();
        let own = self.own_part(checkpoint)?;
        let mut layers = HashSet::from([self.layer_root(checkpoint)?]);
        for follower in followers {
            // Most layers are those before.
            let is_new = layers.insert(self.layer_root(&follower)?);
            let part = if is_new { self.own_part(&follower)? } else { Arc::default() };
            let step = follower.record.number;
            let mut add = |path: &RelPath, entry: &ManifestEntry, coverage: &Coverage, is_shared: bool| {
                let counts = is_shared || entry.kind != EntryKind::Dir;
                if counts && !own.manifest.contains(path) && !found.contains_key(path) {
                    let changed = coverage.changed.get(path).copied();
                    found.insert(path.clone(), Found { entry: *entry, changed, step, is_shared });
                }
            };
            part.manifest.iter().for_each(|(path, entry)| add(path, entry, &part.coverage, false));
            if self.workspace.scope == Scope::TargetsOnly {
                let (manifest, coverage) = self.load(&follower.tree, &|_| true)?;
                manifest.iter().for_each(|(path, entry)| add(path, entry, &coverage, true));
            }
        }
        Ok(found)
    }

    /// Returns the checkpoints before later actions that follow one, oldest first: of the same turn, and of a turn that began with it.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub(crate) fn followers_of(&self, checkpoint: &Checkpoint) -> Result<Vec<Checkpoint>> {
        if self.is_foreign(checkpoint) {
            return Ok(Vec::new());
        }
        let all = self.all()?;
        let all = &all.checkpoints;
        let mut layers = self.layers.borrow_mut();
        let moments = &mut layers.moments;
        let of = (all.len(), all.last().map(|newest| newest.id));
        if moments.of != of {
            *moments = Moments { of, ..Moments::default() };
        }
        let followers = moments.followers.get_or_insert_with(|| {
            let mut followers: HashMap<u64, Vec<usize>> = HashMap::new();
            for (at, one) in all.iter().enumerate().filter(|(_, one)| one.record.kind().is_of_turn()) {
                one.record.follows.into_iter().for_each(|first| followers.entry(first).or_default().push(at));
            }
            followers
        });
        let (mut found, mut next) = (BTreeSet::new(), vec![checkpoint.record.ordinal()]);
        while let Some(sequence) = next.pop() {
            // Every follower is later than what it follows, whatever a damaged record says.
            let later =
                followers.get(&sequence).into_iter().flatten().filter(|at| all[**at].record.ordinal() > sequence);
            next.extend(later.filter(|at| found.insert(**at)).map(|at| all[*at].record.ordinal()));
        }
        Ok(found.into_iter().map(|at| all[at].clone()).collect())
    }

    /// Puts a moment together from a checkpoint's own part and what steps hold.
    fn moment_with(&self, checkpoint: &Checkpoint, found: BTreeMap<RelPath, Found>) -> Result<CheckpointMoment> {
        let own = self.own_part(checkpoint)?;
        let (manifest, coverage) = self.contents_with(checkpoint, &own)?;
        let view = ManifestView { catalog: self, manifest: &manifest };
        let judge = CaptureJudge::new(&coverage, &view);
        let looked = checkpoint.record.looked;
        let mut moment = CheckpointMoment { part: Arc::clone(&own), ..CheckpointMoment::default() };
        let mut part = PrivatePart::clone(&own);
        for (path, Found { entry, changed, step, is_shared }) in found {
            // Where the checkpoint looked and found nothing, nothing was.
            if manifest.contains(&path) || judge.of_both(&path, &entry) == Verdict::Yes {
                continue;
            }
            let is_older = changed.zip(looked).is_some_and(|(changed, looked)| is_before(changed, looked));
            if !is_older {
                if entry.kind != EntryKind::Dir {
                    moment.later.insert(path, step);
                }
                continue;
            }
            part.manifest.insert(path.clone(), entry);
            part.coverage.skipped.remove(&path);
            part.coverage.targeted.push(path.clone());
            if is_shared {
                moment.shared.insert(path.clone());
            }
            moment.from.insert(path, step);
        }
        if moment.from.is_empty() {
            moment.root = self.layer_root(checkpoint)?;
            return Ok(moment);
        }
        part.coverage.targeted.sort_unstable();
        part.coverage.changed.clear();
        moment.root = self.keep_part(part.clone())?;
        moment.part = Arc::new(part);
        Ok(moment)
    }

    /// Says which files of a moment come from steps, and which ones a step holds only as they were later.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn moment_notes(
        &self,
        checkpoint: &Checkpoint,
        selects: &dyn Fn(&RelPath) -> bool,
    ) -> Result<Vec<String>> {
        let moment = self.moment(checkpoint)?;
        let number = checkpoint.record.number;
        let mut notes = Vec::new();
        for (step, paths) in by_step(&moment.from, selects) {
            notes.push(format!(
                "{} from {step}: checkpoint {number} did not look there, and nothing had changed until then",
                self.some_named(&paths)
            ));
        }
        for (step, paths) in by_step(&moment.later, selects) {
            let command = paths.first().map(|path| self.restore_command(step, path)).unwrap_or_default();
            notes.push(format!(
                "checkpoint {number} did not check {}, which {step} has as it was later: `{command}` restores that",
                self.some_named(&paths)
            ));
        }
        Ok(notes)
    }

    /// Names the first of some paths, and the number of the others.
    fn some_named(&self, paths: &[&RelPath]) -> String {
        let first: Vec<String> = paths.iter().take(NAMED).map(|path| format!("`{}`", self.shown(path))).collect();
        let more = paths.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", first.join(", "))
    }

    /// Returns the base capture that holds the whole workspace at the moment of a narrowed checkpoint, where it is still there.
    ///
    /// # Errors
    /// When the store cannot be listed.
    pub(crate) fn whole_beside(&self, checkpoint: &Checkpoint) -> Result<Option<Checkpoint>> {
        let Some(sequence) = checkpoint.record.whole.filter(|_| !self.is_foreign(checkpoint)) else { return Ok(None) };
        let all = self.all()?;
        Ok(all.checkpoints.iter().find(|one| one.record.ordinal() == sequence && one.record.is_whole()).cloned())
    }
}

/// Returns the selected paths by their steps.
fn by_step<'p>(
    paths: &'p BTreeMap<RelPath, Number>,
    selects: &dyn Fn(&RelPath) -> bool,
) -> BTreeMap<Number, Vec<&'p RelPath>> {
    let mut steps: BTreeMap<Number, Vec<&RelPath>> = BTreeMap::new();
    for (path, step) in paths.iter().filter(|(path, _)| selects(path)) {
        steps.entry(*step).or_default().push(path);
    }
    steps
}
