//! The recorded actions of a workspace, and what each of them destroyed.

use std::collections::{BTreeSet, HashSet};

use super::journal::{External, LoggedEntry, TurnChange, TurnEnd};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::{Change, is_file_change};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::action_log::{ActionLog, ActionRecord, ExternalEffect, KeptActions};
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::model::manifest::EntryKind;
use crate::model::meta::quote;
use crate::model::tree::Side;

/// An action of a list, with what it destroyed.
#[derive(Clone, Debug)]
pub struct ListedAction {
    /// Its record.
    pub record: ActionRecord,
    /// The number of paths whose content was deleted or replaced by it; `None` if that is not known.
    pub lost: Option<usize>,
}

impl ListedAction {
    /// Returns true if the action destroyed something, as far as anybody can tell.
    pub fn has_destroyed(&self) -> bool {
        let is_known = self.lost.is_some_and(|lost| lost > 0);
        is_known || !self.record.is_opaque || !self.record.external.is_empty()
    }
}

/// The last action that may destroy anything, among those that one checkpoint protects.
struct WideAction {
    checkpoint: Option<ObjectId>,
    at: usize,
}

impl Timeline {
    /// Records an action, without waiting for the disk.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed or the record cannot be written: the action will not be listed.
    pub fn record_action(&mut self, record: ActionRecord) -> Result<()> {
        let catalog = self.catalog();
        let after = catalog.newest_ordinal()?;
        ActionLog::in_dir(&catalog.workspace.dir).append(&ActionRecord { after, ..record })
    }
}

impl Locked<'_> {
    /// Removes the records of actions whose checkpoints and turns are gone.
    ///
    /// # Errors
    /// When checkpoints or turns cannot be listed, and those of writing.
    pub(crate) fn shorten_actions(&self) -> Result<()> {
        let all = self.catalog.all()?;
        let open = self.catalog.windows.borrow_mut().windows()?.turns.clone();
        let ended = &self.catalog.history()?.turns;
        let kept = KeptActions {
            checkpoints: all.checkpoints.iter().map(|one| one.id).collect(),
            places: all.checkpoints.iter().map(|one| one.record.ordinal()).collect(),
            turns: open.into_iter().map(|turn| turn.key).chain(ended.iter().map(|turn| turn.key.clone())).collect(),
        };
        ActionLog::in_dir(&self.catalog.workspace.dir).shorten(&kept, &self.lock)
    }
}

impl Catalog {
    /// Returns the recorded actions in the order in which they ran; effects that earlier versions wrote into the journal come first.
    ///
    /// # Errors
    /// When the journal or the record cannot be read.
    pub fn recorded_actions(&self) -> Result<Vec<ActionRecord>> {
        let mut actions: Vec<ActionRecord> = self.history()?.externals.iter().map(of_effect).collect();
        actions.extend(ActionLog::in_dir(&self.workspace.dir).read()?);
        Ok(actions)
    }

    /// Says what each of some actions destroyed of these paths (percent-quoted). A path counts for the last action that names it. The
    /// others count for actions that may destroy anything: for the last one before a checkpoint in which the path has changed.
    fn charged(&self, actions: Vec<ActionRecord>, destroyed: &BTreeSet<String>) -> Vec<ListedAction> {
        let mut lost = vec![0; actions.len()];
        let mut rest: HashSet<&str> = HashSet::new();
        for path in destroyed {
            match actions.iter().rposition(|action| action.names(path)) {
                Some(at) => lost[at] += 1,
                None => _ = rest.insert(path),
            }
        }
        let wide = wide_actions(&actions);
        for (one, next) in wide.iter().zip(wide.iter().skip(1)) {
            if !rest.is_empty() {
                let between = self.destroyed_between(one.checkpoint, next.checkpoint);
                lost[one.at] += between.iter().filter(|path| rest.remove(path.as_str())).count();
            }
        }
        if let Some(last) = wide.last() {
            lost[last.at] += rest.len();
        }
        let listed = |(record, lost)| ListedAction { record, lost: Some(lost) };
        actions.into_iter().zip(lost).map(listed).collect()
    }

    /// Returns the recorded actions of a turn, each with what it destroyed.
    pub fn actions_of(&self, turn: &TurnEnd, actions: Vec<ActionRecord>) -> Vec<ListedAction> {
        let content = |side: Option<LoggedEntry>| side.map(|LoggedEntry(entry)| entry.id);
        let is_file = |side: Option<LoggedEntry>| side.is_some_and(|LoggedEntry(entry)| entry.kind != EntryKind::Dir);
        let is_lost = |change: &&TurnChange| is_file(change.before) && content(change.before) != content(change.after);
        let lost = turn.changes.iter().filter(is_lost).map(|change| &change.path);
        let missed = turn.missed.iter().map(|missed| &missed.path);
        self.charged(actions, &lost.chain(missed).cloned().collect())
    }

    /// Returns the recorded actions after a checkpoint, up to the next one that lists show, as far as they destroyed something.
    ///
    /// # Errors
    /// When the checkpoints or the record cannot be read.
    pub fn actions_after(&self, checkpoint: &Checkpoint) -> Result<Vec<ListedAction>> {
        if self.is_foreign(checkpoint) {
            return Ok(Vec::new());
        }
        let (from, known) = (checkpoint.record.ordinal(), self.all()?);
        let is_shown = |one: &&Checkpoint| one.record.kind().is_listed() && one.record.ordinal() > from;
        let next = known.checkpoints.iter().find(is_shown);
        let until = next.map_or(u64::MAX, |next| next.record.ordinal());
        let mut actions = self.recorded_actions()?;
        actions.retain(|action| (from..until).contains(&action.after));
        let changes = next.and_then(|next| self.changes_between(checkpoint, next).ok()); // a damaged one leaves it open
        Ok(self.destroying(actions, changes.map(|changes| destroyed(&changes)).as_ref()))
    }

    /// Returns those of some actions that destroyed something, each with what it destroyed. `destroyed` is `None` where that is not known.
    pub(crate) fn destroying(
        &self,
        actions: Vec<ActionRecord>,
        destroyed: Option<&BTreeSet<String>>,
    ) -> Vec<ListedAction> {
        let mut listed = match destroyed {
            Some(destroyed) => self.charged(actions, destroyed),
            None => actions.into_iter().map(|record| ListedAction { record, lost: None }).collect(),
        };
        listed.retain(ListedAction::has_destroyed);
        listed
    }

    /// Returns the first words of the prompt of a checkpoint's turn, if they are recorded.
    ///
    /// # Errors
    /// When the journal or the log of actions cannot be read.
    pub fn prompt_of(&self, checkpoint: &Checkpoint) -> Result<Option<String>> {
        let Some(name) = checkpoint.record.turn.as_ref().filter(|_| !self.is_foreign(checkpoint)) else {
            return Ok(None);
        };
        let history = self.history()?;
        let ended = history.turns.iter().rev().find(|turn| turn.turn == *name && turn.run == checkpoint.record.run);
        if let Some(prompt) = ended.and_then(|turn| turn.prompt.clone()) {
            return Ok(Some(prompt));
        }
        let mut log = self.windows.borrow_mut();
        let open = log.windows()?.turns.iter().find(|turn| turn.turn == *name && turn.run == checkpoint.record.run);
        Ok(open.and_then(|turn| turn.prompt.clone()))
    }

    /// Returns the paths that were destroyed between two checkpoints; none if one of them is gone or cannot be read.
    fn destroyed_between(&self, from: Option<ObjectId>, to: Option<ObjectId>) -> BTreeSet<String> {
        let changes = || {
            let (from, to) = from.zip(to)?;
            let (from, to) = (self.checkpoint_of(from).ok()?, self.checkpoint_of(to).ok()?); // pruned: who destroyed what is less certain
            self.changes_between(&from, &to).ok() // so it is where one is damaged
        };
        changes().map(|changes| destroyed(&changes)).unwrap_or_default()
    }
}

/// Returns the files among changes whose content is gone (percent-quoted).
pub(crate) fn destroyed(changes: &[Change]) -> BTreeSet<String> {
    let is_lost = |change: &&Change| {
        let content = |side: Side| side.map(|(_, id)| id);
        is_file_change(change) && change.old.is_some() && content(change.old) != content(change.new)
    };
    changes.iter().filter(is_lost).map(|change| quote(change.path.as_bytes())).collect()
}

/// Returns the last action that may destroy anything of each checkpoint.
fn wide_actions(actions: &[ActionRecord]) -> Vec<WideAction> {
    let mut wide: Vec<WideAction> = Vec::new();
    for (at, action) in actions.iter().enumerate().filter(|(_, action)| action.is_wide) {
        match wide.last_mut() {
            Some(last) if last.checkpoint == action.checkpoint => last.at = at,
            _ => wide.push(WideAction { checkpoint: action.checkpoint, at }),
        }
    }
    wide
}

/// Returns an effect that an earlier version wrote as the action that had it.
fn of_effect(effect: &External) -> ActionRecord {
    let External { after, class, severity, message, action, run, turn, time } = effect.clone();
    ActionRecord {
        after,
        command: action.unwrap_or_else(|| message.clone()),
        effects: vec![class],
        external: vec![ExternalEffect { class, severity, message, is_saved: false }],
        run,
        turn,
        time,
        ..ActionRecord::default()
    }
}

/// Returns the effects of an action that a restore in its workspace does not undo; for the undo of its whole turn, without those that
/// the undo takes back elsewhere.
pub(super) fn effects_of(action: &ActionRecord, is_of_turn: bool) -> impl Iterator<Item = External> {
    action.external.iter().filter(move |effect| !(is_of_turn && effect.is_saved)).map(|effect| External {
        after: action.after,
        class: effect.class,
        severity: effect.severity,
        message: effect.message.clone(),
        action: Some(action.command.clone()),
        run: action.run.clone(),
        turn: action.turn.clone(),
        time: action.time.clone(),
    })
}
