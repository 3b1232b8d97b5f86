//! A step of undo or redo in all workspaces of its turn.
//!
//! They are done one after another, each with its own checkpoint and its own proof, and the workspace in which somebody asks comes
//! last: killed in between, the same command goes on where it was.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::agreed::Agreed;
use super::chosen::{ChosenPart, ChosenPlan};
use super::interrupted::interrupted;
use super::journal::{Journal, OperationStart};
use super::operations::{History, UndoStep};
use super::request::{Expected, Preview, Restore, Restored};
use super::step_choice::StepChoice;
use super::undo::Direction;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::operation::OperationKind;
use crate::model::text::printable;
use crate::sys::interrupt::Interrupt;
use crate::worktree::restore::KeepReason;

/// A step that was chosen, in all workspaces in which it is to be taken.
pub struct Stepping {
    /// The step in the workspace in which somebody asks.
    pub step: UndoStep,
    /// True if it steps over a turn that is open.
    pub is_open: bool,
    /// True if it is what a bare undo takes: where that can restore nothing, the next one takes an older step.
    is_bare_undo: bool,
    restore: Restore,
    others: Vec<OtherStep>,
}

/// The part of a step in another workspace of its turn.
struct OtherStep {
    root: PathBuf,
    /// The open workspace with its restore, or what keeps it from being done there.
    member: Result<Box<(Timeline, Restore)>>,
}

/// The preview of a step.
pub struct StepPreview {
    /// Of the workspace in which somebody asks.
    pub own: Preview,
    /// Of the other workspaces, by their roots; or what keeps it from being done there.
    pub others: Vec<(PathBuf, Result<Preview>)>,
    /// The digest of all plans together.
    pub digest: String,
}

impl StepPreview {
    /// Returns true if no file would change anywhere.
    pub fn changes_nothing(&self) -> bool {
        let others = self.others.iter().filter_map(|(_, preview)| preview.as_ref().ok());
        others.chain([&self.own]).all(Preview::changes_nothing)
    }
}

impl StepPreview {
    /// Returns true if it leaves paths as they are although the turn may have changed them.
    pub fn leaves_any(&self) -> bool {
        let others = self.others.iter().filter_map(|(_, preview)| preview.as_ref().ok());
        let mut kept = others.chain([&self.own]).flat_map(|preview| &preview.plan.keep);
        kept.any(|(_, why)| matches!(why, KeepReason::NotOwn(_)))
    }

    /// Returns true if it leaves a part of the step undone; with `counts_changed` also for paths of the turn that have changed since.
    pub fn leaves_part(&self, counts_changed: bool) -> bool {
        let others = self.others.iter().filter_map(|(_, preview)| preview.as_ref().ok());
        let mut all = others.chain([&self.own]);
        let keeps_changed = counts_changed && all.any(|preview| preview.plan.changed_since().next().is_some());
        !self.own.plan.conflict.is_empty() || self.leaves_any() || keeps_changed
    }
}

/// A step that was taken.
pub struct StepDone {
    /// In the workspace in which somebody asked.
    pub own: Restored,
    /// In the other workspaces, by their roots; or what kept it from being done there.
    pub others: Vec<(PathBuf, Result<Restored>)>,
}

impl Stepping {
    /// Chooses a step, and finds the other workspaces of its turn; `None` when there is nothing to step over. The changes of open
    /// turns so far are written down first.
    ///
    /// # Errors
    /// As [`crate::checkpoint::catalog::open::Catalog::chosen_step`]; `rollback-in-progress` while an interrupted restore waits.
    pub fn choose(
        timeline: &mut Timeline,
        direction: Direction,
        choice: &StepChoice,
        run: &str,
        control: Interrupt<'_>,
    ) -> Result<Option<Stepping>> {
        timeline.catalog().refuse_interrupted()?;
        if direction == Direction::Undo {
            timeline.settle_group(control)?;
        }
        let Some(step) = timeline.catalog().chosen_step(direction, choice)? else { return Ok(None) };
        if choice.is_of_all_paths() {
            timeline.refuse_interrupted_member(&step)?;
        }
        Stepping::over(timeline, direction, step, choice, run, control).map(Some)
    }

    /// Prepares the step that was chosen.
    fn over(
        timeline: &Timeline,
        direction: Direction,
        step: UndoStep,
        choice: &StepChoice,
        run: &str,
        control: Interrupt<'_>,
    ) -> Result<Stepping> {
        let restore = timeline.catalog().stepping(direction, &step, choice, run)?;
        // Paths are those of one workspace.
        let members = step.turn.as_ref().map(|turn| turn.members.as_slice()).unwrap_or_default();
        let members = members.iter().filter(|root| choice.is_of_all_paths() && **root != timeline.workspace().path);
        let mut others = Vec::new();
        for root in members {
            let member = other(timeline, root, (direction, &step), (choice, run), control);
            if let Some(member) = member.transpose() {
                others.push(OtherStep { root: root.clone(), member: member.map(Box::new) });
            }
        }
        let key = step.turn.as_ref().map(|turn| turn.key.as_str());
        let is_open = key.map_or(Ok(false), |key| timeline.catalog().is_turn_open(key))?;
        let is_bare_undo = direction == Direction::Undo && choice.turn.is_none() && choice.is_of_all_paths();
        Ok(Stepping { step, is_open, is_bare_undo, restore, others })
    }

    /// Says which command of git to take back first: a turn that switched branches is not undone file by file unless it was named.
    ///
    /// # Errors
    /// When the operations of git cannot be read.
    pub fn git_first(&self, timeline: &Timeline, choice: &StepChoice) -> Result<Option<String>> {
        let Some(turn) = self.step.turn.as_ref().filter(|_| choice.names_nothing()) else { return Ok(None) };
        if self.restore.kind != OperationKind::Undo {
            return Ok(None);
        }
        let op = &turn.op;
        let first = match timeline.catalog().branch_switch_of(turn)? {
            Some(one) => {
                format!(" with `{}`. Undo that first: `piton undo {}`", printable(&one.begin.command), one.begin.name())
            }
            None => match timeline.catalog().way_back_from_switch(turn)? {
                Some(command) => format!(". Switch back first: `{command}`"),
                None => return Ok(None),
            },
        };
        let rest = format!("To undo only its files on the current branch: `piton undo --turn {op}`");
        Ok(Some(format!("turn {op} switched branches{first}. {rest}")))
    }

    /// Limits it to a chosen part of its plan in this workspace. The other workspaces of its turn and kept repositories are left out.
    /// Returns the plan that is left.
    ///
    /// # Errors
    /// As [`Timeline::choose`].
    pub fn choose_part(
        &mut self,
        timeline: &mut Timeline,
        preview: &StepPreview,
        part: &ChosenPart,
    ) -> Result<ChosenPlan> {
        let (restore, plan) = timeline.choose(self.restore.clone(), &preview.own, part)?;
        self.others.clear();
        self.restore = Restore { partial: true, repositories: Vec::new(), ..restore };
        Ok(plan)
    }

    /// Returns true if it undoes only some paths of a turn.
    pub fn is_of_part(&self) -> bool {
        self.restore.partial
    }

    /// Returns true if it leaves changes alone that are not the turn's alone, and that somebody may want undone all the same.
    pub fn leaves_others(&self) -> bool {
        let leaves = |restore: &Restore| {
            let is_left = |expected: &Expected| !expected.others.is_empty() || !expected.created_only.is_empty();
            restore.expected.as_deref().is_some_and(is_left)
        };
        let others = self.others.iter().filter_map(|other| other.member.as_ref().ok());
        others.map(|member| &member.1).chain([&self.restore]).any(leaves)
    }

    /// Shows what it would do; nothing is stored or touched.
    ///
    /// # Errors
    /// As [`Timeline::preview`], of the workspace in which somebody asks.
    pub fn preview(&mut self, timeline: &mut Timeline, control: Interrupt<'_>) -> Result<StepPreview> {
        let own = timeline.preview(&self.restore, control)?;
        let mut others = Vec::new();
        for OtherStep { root, member } in &mut self.others {
            let preview = match member {
                Ok(member) => member.0.preview(&member.1, control),
                Err(error) => Err(again(error)),
            };
            others.push((root.clone(), preview));
        }
        let digests = others.iter().filter_map(|(_, preview)| preview.as_ref().ok()).map(|preview| &*preview.digest);
        let digest = digest_of(&own.digest, digests)?;
        Ok(StepPreview { own, others, digest })
    }

    /// Limits it to the changes of a preview that was agreed to.
    pub fn agree(&mut self, preview: &StepPreview) {
        let agreed = |preview: &Preview| Agreed::Plan(std::sync::Arc::clone(&preview.plan));
        self.restore.agreed = agreed(&preview.own);
        for (other, (_, preview)) in self.others.iter_mut().zip(&preview.others) {
            if let (Ok(member), Ok(preview)) = (&mut other.member, preview) {
                member.1.agreed = agreed(preview);
            }
        }
    }

    /// Limits it to the plans of a digest.
    ///
    /// # Errors
    /// `stale-plan` where the present plans of several workspaces have another one; those of [`Stepping::preview`].
    pub fn agree_to_digest(
        &mut self,
        timeline: &mut Timeline,
        digest: Option<&str>,
        control: Interrupt<'_>,
    ) -> Result<()> {
        let Some(digest) = digest else { return Ok(()) };
        if self.others.is_empty() {
            self.restore.agreed = Agreed::Digest(digest.to_owned());
            return Ok(());
        }
        let preview = self.preview(timeline, control)?;
        if preview.digest != digest {
            return Err(super::agreed::stale());
        }
        self.agree(&preview);
        Ok(())
    }

    /// Takes the step. A failure in another workspace is part of the result.
    ///
    /// # Errors
    /// As [`Timeline::restore`], of the workspace in which somebody asks.
    pub fn take(mut self, timeline: &mut Timeline, control: Interrupt<'_>) -> Result<StepDone> {
        let mut others = Vec::new();
        for OtherStep { root, member } in std::mem::take(&mut self.others) {
            let done = member.and_then(|member| {
                let (mut timeline, restore) = *member;
                let done = timeline.restore(&restore, control)?;
                if let Err(error) = timeline.leave() {
                    tracing::warn!(%error, "the writes that may be late are left to another process");
                }
                Ok(done)
            });
            others.push((root, done));
        }
        let own = timeline.restore(&self.restore, control).map_err(|error| interrupted_first(&mut others, error))?;
        let is_idle = |done: &Restored| done.operation.is_none() && done.outcome.failed.is_empty();
        // The preview listed the changes that are kept here, and the other parts are undone.
        if is_idle(&own) && others.iter().all(|(_, done)| done.is_ok()) {
            self.pass(timeline)?;
        }
        Ok(StepDone { own, others })
    }

    /// Notes that a bare undo has stopped at a turn that it cannot undo at all: the next one takes an older step.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn pass(&self, timeline: &mut Timeline) -> Result<()> {
        match &self.step.turn {
            Some(turn) if self.is_bare_undo => timeline.pass_turn(&turn.op),
            _ => Ok(()),
        }
    }
}

/// Returns the error of a step that was stopped: that of another workspace, where it was stopped in the middle, comes first.
fn interrupted_first(others: &mut Vec<(PathBuf, Result<Restored>)>, error: Error) -> Error {
    let is_open = |done: &Result<Restored>| done.as_ref().is_err_and(|error| error.code() == Code::RollbackInProgress);
    match others.iter().position(|(_, done)| is_open(done)) {
        Some(at) if error.code() == Code::ShuttingDown => others.swap_remove(at).1.err().unwrap_or(error),
        _ => error,
    }
}

/// Opens another workspace of a step's turn, with the same step; `None` where it is not to be taken any more.
fn other(
    timeline: &Timeline,
    root: &Path,
    (direction, step): (Direction, &UndoStep),
    (choice, run): (&StepChoice, &str),
    control: Interrupt<'_>,
) -> Result<Option<(Timeline, Restore)>> {
    let mut other = timeline.beside(root)?;
    if direction == Direction::Undo {
        other.settle_turns(control)?;
    }
    let history = other.catalog().history()?;
    let steps = if direction == Direction::Undo { &history.undo } else { &history.redo };
    let key = step.turn.as_ref().map(|turn| &turn.key);
    // Where the turn was stepped over before, its rest goes back only if that is what is asked for here too.
    let is_open = |same: &&UndoStep| match direction {
        Direction::Undo if step.passed => same.is_anything_left(),
        Direction::Undo => !same.is_undone(),
        Direction::Redo => true,
    };
    let mut same = steps.iter().rev().filter(|step| step.turn.as_ref().map(|turn| &turn.key) == key);
    let has_part = |same: &&UndoStep| same.turn.as_ref().is_some_and(|turn| turn.has_changed()) && is_open(same);
    let Some(same) = same.find(has_part).cloned() else { return Ok(None) };
    let restore = other.catalog().stepping(direction, &same, choice, run)?;
    Ok(Some((other, restore)))
}

impl Timeline {
    /// Opens another workspace of the same home, by its own settings.
    ///
    /// # Errors
    /// `workspace-gone`; errors of the store and of the settings.
    pub fn beside(&self, root: &Path) -> Result<Timeline> {
        let home = self.home();
        let known = Workspace::known(home)?.into_iter().find(|known| known.path == root);
        let workspace = known
            .filter(|known| known.path.is_dir() || known.is_deleted())
            .ok_or_else(|| Error::new(Code::WorkspaceGone, "a workspace of that turn no longer exists").path(root))?;
        let policy = crate::settings::load(Some(root), home.path(), &[])?.policy;
        let mut timeline = Timeline::open(home, workspace, policy)?;
        if self.catalog().is_attended {
            timeline.attend(self.store().progress());
        }
        Ok(timeline)
    }

    /// Lists the roots of the workspaces in which a step over a turn was interrupted that this workspace shares.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub fn interrupted_members(&self) -> Result<Vec<PathBuf>> {
        let history = self.catalog().history()?;
        let keys: BTreeSet<&str> = history.turns.iter().map(|turn| turn.key.as_str()).collect();
        let mut shared = Vec::new();
        for (root, dir, begin) in self.interrupted_of(history.turns.iter().flat_map(|turn| &turn.members).collect())? {
            let there = History::of(Journal::in_dir(&dir).read()?);
            let over = there.turns.iter().find(|turn| Some(&turn.op) == begin.over.as_ref());
            // Another restore there is none of this workspace's business.
            if over.is_some_and(|turn| keys.contains(turn.key.as_str())) {
                shared.push(root);
            }
        }
        Ok(shared)
    }

    /// Refuses a step of which one part was interrupted in another workspace.
    fn refuse_interrupted_member(&self, step: &UndoStep) -> Result<()> {
        let members = step.turn.iter().flat_map(|turn| &turn.members).collect();
        let Some((root, ..)) = self.interrupted_of(members)?.into_iter().next() else { return Ok(()) };
        let text = "a restore was interrupted in another workspace of that turn";
        Err(Error::new(Code::RollbackInProgress, text)
            .path(root)
            .hint("first run `piton restore --continue` or `piton restore --abort`, then repeat this command"))
    }

    /// Returns the interrupted workspaces among some, without this one: root, records, and the restore that waits there.
    fn interrupted_of(&self, roots: BTreeSet<&PathBuf>) -> Result<Vec<(PathBuf, PathBuf, OperationStart)>> {
        if roots.is_empty() {
            return Ok(Vec::new());
        }
        let known = Workspace::known(self.home())?;
        let mut found = Vec::new();
        for root in roots.into_iter().filter(|root| **root != self.workspace().path) {
            let Some(known) = known.iter().find(|known| known.path == *root) else { continue };
            found.extend(interrupted(&known.dir)?.map(|begin| (root.clone(), known.dir.clone(), begin)));
        }
        Ok(found)
    }
}

/// Returns the digest of several plans together; of one, its own.
fn digest_of<'d>(own: &str, others: impl Iterator<Item = &'d str>) -> Result<String> {
    let all: Vec<&str> = others.collect();
    if all.is_empty() {
        return Ok(own.to_owned());
    }
    let text = format!("piton plans 1\n{own}\n{}\n", all.join("\n"));
    ObjectId::of(ObjectKind::Blob, text.as_bytes()).map(|id| id.to_string())
}

/// Returns the same error once more.
fn again(error: &Error) -> Error {
    Error::new(error.code(), error.text())
}
