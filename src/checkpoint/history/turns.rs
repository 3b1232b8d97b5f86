//! Turns as a person sees them: their list, the choice of what to undo, and the steps over them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agreed::Agreed;
use super::journal::{LoggedEntry, MissedChange, TurnChange, TurnEnd, unquoted};
use super::operations::{History, KEPT_TURNS, UndoStep};
use super::request::{Expected, OutsideEdit, Restore};
use super::step_choice::StepChoice;
use super::undo::Direction;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::windows::OpenTurn;
use crate::checkpoint::runs::client::RunClient;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::Coverage;
use crate::model::door::Door;
use crate::model::id::ObjectId;
use crate::model::manifest::{Manifest, ManifestEntry};
use crate::model::meta::{quote, unquote};
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::text::{printable, shell_word};
use crate::model::turn::Attribution;
use crate::worktree::restore::Plan;

impl Catalog {
    /// Returns the newest turn of a name: the journal's (`t-3`), or the client's, perhaps of one run.
    ///
    /// # Errors
    /// `no-such-turn`, naming the turns that there are.
    pub fn turn_named(&self, name: &str, run: Option<&str>) -> Result<Arc<TurnEnd>> {
        let history = self.history()?;
        let of_run = |turn: &&Arc<TurnEnd>| run.is_none_or(|run| turn.run == run);
        let mut turns = history.turns.iter().rev().filter(of_run);
        let found = turns.clone().find(|turn| turn.op == name).or_else(|| turns.find(|turn| turn.turn == name));
        found.cloned().ok_or_else(|| {
            let text = format!("no turn `{}` has changed files here, or it is too old", printable(name));
            let known = history.turns.iter().rev().map(|turn| turn.op.clone()).collect();
            Error::new(Code::NoSuchTurn, text)
                .field("turn")
                .hint(format!("`piton list --turns` lists the newest {KEPT_TURNS}"))
                .candidates(known)
        })
    }

    /// Returns a named turn; without a name, the newest.
    ///
    /// # Errors
    /// As [`Catalog::turn_named`].
    pub fn turn_or_newest(&self, name: Option<&str>, run: Option<&str>) -> Result<Arc<TurnEnd>> {
        if let Some(name) = name {
            return self.turn_named(name, run);
        }
        self.changing_turns(run)?.into_iter().next().ok_or_else(|| {
            Error::new(Code::NoSuchTurn, "no agent's turn has changed files in this workspace")
                .hint("`piton list` lists the checkpoints")
        })
    }

    /// Returns true if a turn is open in this workspace.
    ///
    /// # Errors
    /// When the log of actions cannot be read.
    pub fn is_turn_open(&self, key: &str) -> Result<bool> {
        Ok(self.windows.borrow_mut().windows()?.turn(key).is_some())
    }

    /// Returns the client's name of the first turn that a return to a checkpoint takes back: the checkpoint's own, else the next one.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub fn turn_from(&self, target: &Checkpoint) -> Result<Option<String>> {
        if self.is_foreign(target) {
            return Ok(None);
        }
        let known = self.all()?;
        let later = known.checkpoints.iter().filter(|one| one.record.ordinal() >= target.record.ordinal());
        let mut named = later.filter(|one| one.record.kind().is_of_turn() || one.record.kind() == CheckpointKind::Turn);
        Ok(named.find_map(|one| one.record.turn.clone()))
    }

    /// Lists the turns of a run that can be undone and have a change that goes back, the newest first, by the journal's names.
    ///
    /// # Errors
    /// `no-such-turn` if there is none.
    pub fn turns_to_undo(&self, run: &str, choice: &StepChoice) -> Result<Vec<String>> {
        let history = self.history()?;
        let mut turns = Vec::new();
        for step in history.undo.iter().rev() {
            let Some(turn) = step.turn.as_ref().filter(|turn| turn.run == run) else { continue };
            let goes_back = |change: &TurnChange| choice.takes(change) && !step.undone.contains(&change.path);
            if turn.changes.iter().any(goes_back) || self.chooses_elsewhere(step, choice)? {
                turns.push(step.op.clone());
            }
        }
        if turns.is_empty() {
            Err(only_others(&history, run).unwrap_or_else(|| choice.no_such_change()))
        } else {
            Ok(turns)
        }
    }

    /// Returns the step that a person wants to take; `None` when there is nothing to do.
    ///
    /// # Errors
    /// `no-such-turn`, `no-such-run`, `no-such-path` for what no turn has changed; those of [`Catalog::next_step`].
    pub fn chosen_step(&self, direction: Direction, choice: &StepChoice) -> Result<Option<UndoStep>> {
        let history = self.history()?;
        if direction == Direction::Redo {
            let Some(name) = &choice.turn else { return self.next_step_for(direction, choice.session.as_ref()) };
            let turn = self.turn_named(name, choice.run.as_deref())?;
            let redo = match history.redo_of(&turn.op) {
                Some(redo) => Some(redo.clone()),
                None => self.redo_elsewhere(&history, &turn)?,
            };
            return redo.map(Some).ok_or_else(|| {
                Error::new(Code::StaleSelection, format!("turn {} is not undone", turn.op)).field("turn")
            });
        }
        if let Some(name) = &choice.turn {
            let turn = self.turn_named(name, choice.run.as_deref())?;
            let known = history.undo_of(&turn.op);
            let left = match known.filter(|step| step.is_anything_left()) {
                Some(step) => Some(step.clone()),
                None => match known {
                    Some(step) if self.chooses_elsewhere(step, choice)? => Some(step.clone()),
                    _ => None,
                },
            };
            return left.map(Some).ok_or_else(|| {
                Error::new(Code::StaleSelection, format!("turn {} has already been undone", turn.op))
                    .field("turn")
                    .hint(format!("to redo it, run `piton redo --turn {}`", turn.op))
            });
        }
        if choice.run.is_none() && choice.is_of_all_paths() {
            return self.next_step_for(direction, choice.session.as_ref());
        }
        let changes_chosen = |step: &UndoStep| {
            let Some(turn) = &step.turn else { return false };
            // A named path is answered, whatever the turn's share in it; of a run, turns are passed over of which nothing goes back.
            let counts = |change: &TurnChange| choice.names_paths() || choice.takes(change);
            let is_left = |change: &TurnChange| {
                !step.undone.contains(&change.path) && is_chosen(change, choice) && counts(change)
            };
            choice.run.as_ref().is_none_or(|run| turn.run == *run) && turn.changes.iter().any(is_left)
        };
        for step in history.undo.iter().rev() {
            let is_of_run = choice.run.is_none() || step.turn.as_ref().map(|turn| &turn.run) == choice.run.as_ref();
            if changes_chosen(step) || (is_of_run && self.chooses_elsewhere(step, choice)?) {
                return Ok(Some(step.clone()));
            }
        }
        Err(choice.no_such_change())
    }

    /// Returns the restore that steps over an operation or a turn.
    ///
    /// # Errors
    /// `store-damaged` when the journal spells its paths wrongly.
    pub fn stepping(&self, direction: Direction, step: &UndoStep, choice: &StepChoice, run: &str) -> Result<Restore> {
        let plain = Restore {
            target: step.to,
            kind: match direction {
                Direction::Undo => OperationKind::Undo,
                Direction::Redo => OperationKind::Redo,
            },
            run: run.to_owned(),
            paths: Vec::new(),
            limits: Arc::default(),
            only: Some(unquoted(&step.changed)?),
            keep_new: false,
            local: false,
            over: Some(step.op.clone()),
            partial: step.partial,
            from: BTreeMap::new(),
            composed: None,
            expected: None,
            repositories: Vec::new(),
            agreed: Agreed::Anything,
        };
        let Some(turn) = &step.turn else { return Ok(plain) };
        match direction {
            Direction::Undo => {
                let rest = self.after_hunks(undo_of_turn(plain, step, turn, choice)?, step)?;
                let saved = self.with_saved(rest, turn)?;
                self.with_repositories(saved, turn)
            }
            Direction::Redo => {
                let left_at = step.left_at.unwrap_or(turn.base);
                let mut states = self.entries_at(&self.checkpoint_of(left_at)?, plain.only.iter().flatten())?;
                for change in turn.changes.iter().filter(|change| change.from.is_some() && left_at == turn.base) {
                    let before = change.before.map(|LoggedEntry(entry)| entry);
                    states.entry(path_of(change)?).and_modify(|state| *state = before);
                }
                let expected = Some(Arc::new(Expected { states, ..Expected::default() }));
                Ok(Restore { expected, ..plain })
            }
        }
    }

    /// Lists the paths that a plan replaces or deletes although the run that asks has not left them as they are: changes of other
    /// runs, and of nobody's turn. Nothing is said of what stood there already when the oldest known turn began, and of what the newest
    /// restore has brought back.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn outside_edits(&self, plan: &Plan, run: &str) -> Result<Vec<OutsideEdit>> {
        let history = self.history()?;
        if history.turns.is_empty() {
            return Ok(Vec::new());
        }
        let replaced = plan.replace.iter().map(|(path, from, _)| (path, from));
        let going = replaced.chain(plan.delete.iter().map(|(path, from)| (path, from)));
        let mut known: BTreeMap<String, Vec<(&TurnEnd, &TurnChange)>> = BTreeMap::new();
        for turn in history.turns.iter().rev() {
            for change in &turn.changes {
                known.entry(change.path.clone()).or_default().push((turn, change));
            }
        }
        let (mut edits, mut beginning) = (Vec::new(), None);
        for (path, now) in going {
            let of_path = known.get(&quote(path.as_bytes())).map(Vec::as_slice).unwrap_or_default();
            let mut edit = whose(of_path, now, run);
            if of_path.is_empty() {
                let then = match &beginning {
                    Some(then) => then,
                    None => beginning.insert(self.contents(&self.checkpoint_of(history.turns[0].base)?)?),
                };
                edit = (!stood_there(then, path, now)).then(|| "changed by no known turn".to_owned());
            }
            edits.extend(edit.map(|whose| (OutsideEdit { path: path.clone(), whose }, now)));
        }
        // piton's own work is nobody's edit. Of a checkpoint that is gone, nothing is known.
        let newest = history.brought.as_ref().filter(|_| !edits.is_empty());
        if let Some((Ok(target), paths)) = newest.map(|(target, paths)| (self.checkpoint_of(*target), paths)) {
            let brought: BTreeSet<RelPath> = unquoted(paths)?.into_iter().collect();
            let named = edits.iter().map(|(edit, _)| &edit.path).filter(|path| brought.contains(path));
            let states = self.entries_at(&target, named)?;
            let is_others = |(edit, now): &(OutsideEdit, &ManifestEntry)| {
                let then = states.get(&edit.path).and_then(Option::as_ref);
                !then.is_some_and(|then| then.same(now))
            };
            edits.retain(is_others);
        }
        Ok(edits.into_iter().map(|(edit, _)| edit).collect())
    }

    /// Says of each turn of another run that is open that it is at work while files are restored.
    ///
    /// # Errors
    /// When the log of actions cannot be read.
    pub fn live_warnings(&self, run: &str) -> Result<Vec<String>> {
        let mut log = self.windows.borrow_mut();
        // A command of git reads nothing that it would write again.
        let is_gits = |turn: &OpenTurn| turn.client.as_deref() == Some(Door::Git.as_str()) && !turn.is_agents;
        let windows = log.windows()?;
        // One whose client is gone does not go on.
        let client =
            |turn: &OpenTurn| RunClient::load(&self.workspace.dir, &turn.run).and_then(|client| client.is_alive());
        let is_live = |turn: &OpenTurn| {
            let alive = client(turn);
            alive != Some(false) && !windows.is_abandoned(turn, || alive)
        };
        let open = windows.turns.iter().filter(|turn| turn.run != run && !is_gits(turn) && is_live(turn));
        let sentence = |turn: &OpenTurn| {
            let client = turn.client.as_deref().unwrap_or("an agent");
            format!(
                "turn `{}` of {} (run {}) is still open, so its agent might write these files again",
                printable(&turn.turn),
                printable(client),
                printable(&turn.run)
            )
        };
        Ok(open.map(sentence).collect())
    }
}

/// Limits a step back over a turn to the chosen paths, and to the changes that are the turn's own or were asked for.
fn undo_of_turn(plain: Restore, step: &UndoStep, turn: &TurnEnd, choice: &StepChoice) -> Result<Restore> {
    let paths = turn.changes.iter().map(path_of).collect::<Result<Vec<RelPath>>>()?;
    choice.refuse_unmatched(&turn.op, &paths)?;
    let (mut expected, mut only, mut is_part) = (Expected::default(), BTreeSet::new(), false);
    for change in turn.changes.iter().filter(|change| !step.undone.contains(&change.path)) {
        let path = path_of(change)?;
        if !choice.chooses(&path) {
            is_part |= change.is_undone_by_default();
            continue;
        }
        if !choice.takes(change) {
            expected.others.insert(path.clone(), change.who);
        }
        if choice.creates_only(&path, change.who) {
            expected.created_only.insert(path.clone());
        }
        expected.shares.insert(path.clone(), change.who);
        expected.states.insert(path.clone(), change.after.map(|LoggedEntry(entry)| entry));
        only.insert(path);
    }
    for missed in &turn.missed {
        let path = RelPath::parse(&unquote(&missed.path)?)?;
        if choice.chooses(&path) {
            expected.missed.insert(path, missed.why.clone());
        }
    }
    Ok(Restore { only: Some(only), partial: is_part, expected: Some(Arc::new(expected)), ..plain })
}

impl Catalog {
    /// Has a step back over a turn expect the state that an undo of some hunks has left, where there was one.
    fn after_hunks(&self, restore: Restore, step: &UndoStep) -> Result<Restore> {
        let mut expected = restore.expected.as_deref().cloned().unwrap_or_default();
        for (quoted, id) in &step.undone_in_hunks {
            let path = RelPath::parse(&unquote(quoted)?)?;
            let states = match self.checkpoint_of(*id) {
                Ok(hunks) => self.entries_at(&hunks, [&path].into_iter())?,
                // Without it, the file counts as changed since the turn, and is kept unless it is included.
                Err(error) if error.code() == Code::NoSuchCheckpoint => continue,
                Err(error) => return Err(error),
            };
            if let (Some(expected), Some(since)) = (expected.states.get_mut(&path), states.get(&path)) {
                *expected = *since;
            }
        }
        Ok(Restore { expected: Some(Arc::new(expected)), ..restore })
    }

    /// Has a step back over a turn restore what only other checkpoints have saved, and names the ways to restore what it cannot.
    fn with_saved(&self, restore: Restore, turn: &TurnEnd) -> Result<Restore> {
        let (from, mut only) = (saved_elsewhere(turn)?, restore.only.unwrap_or_default());
        let mut expected = restore.expected.as_deref().cloned().unwrap_or_default();
        for missed in &turn.missed {
            let path = RelPath::parse(&unquote(&missed.path)?)?;
            if let Some(way) = expected.missed.get_mut(&path) {
                *way = self.way_back(missed, &path);
            }
        }
        // Without its version such a path would count as absent before the turn.
        for path in self.lost_versions(&from)?.into_iter().filter(|path| only.remove(path)) {
            let way = format!("the checkpoint that saved it no longer contains it; `{}`", self.recover_command(&path));
            expected.missed.insert(path, format!("{way} restores an older version, if there is one"));
        }
        Ok(Restore { only: Some(only), from, expected: Some(Arc::new(expected)), ..restore })
    }

    /// Lists the paths whose checkpoint is not there, or lacks them: it was pruned, or a person had them forgotten.
    pub(super) fn lost_versions(&self, from: &BTreeMap<RelPath, ObjectId>) -> Result<Vec<RelPath>> {
        let mut lost = Vec::new();
        for id in from.values().collect::<BTreeSet<_>>() {
            let paths = from.iter().filter(|(_, saved)| *saved == id).map(|(path, _)| path);
            match self.checkpoint_of(*id) {
                Ok(saved) => {
                    let entries = self.entries_at(&saved, paths)?.into_iter();
                    lost.extend(entries.filter(|(_, entry)| entry.is_none()).map(|(path, _)| path));
                }
                Err(error) if error.code() == Code::NoSuchCheckpoint => lost.extend(paths.cloned()),
                Err(error) => return Err(error),
            }
        }
        Ok(lost)
    }

    /// Says why an undo does not restore a path, and how it is restored.
    ///
    /// The command names a checkpoint that has saved what the turn destroyed, or searches for an older version.
    pub fn way_back(&self, missed: &MissedChange, path: &RelPath) -> String {
        let saved = missed.saved.and_then(|id| self.checkpoint_of(id).ok()); // a pruned one is not named
        match saved {
            Some(saved) => {
                let command = self.restore_command_at(&saved, path);
                format!("{}; `{command}` restores the saved version", missed.why)
            }
            None if path.name() == b".git" => match self.newest_kept(path) {
                Some(command) => format!("{}; `{command}` restores an older version", missed.why),
                None => missed.why.clone(),
            },
            None => {
                format!("{}; `{}` restores an older version, if there is one", missed.why, self.recover_command(path))
            }
        }
    }
}

/// Returns the checkpoints that have saved paths of a turn, where that of its beginning has not.
///
/// # Errors
/// `store-damaged` when the journal spells its paths wrongly.
pub(super) fn saved_elsewhere(turn: &TurnEnd) -> Result<BTreeMap<RelPath, ObjectId>> {
    let from = turn.changes.iter().filter_map(|change| Some((change, change.from?)));
    from.map(|(change, id)| Ok((path_of(change)?, id))).collect()
}

/// Says which changes of a run's turns are left, where none of them is the run's alone; `None` if none is left.
fn only_others(history: &History, run: &str) -> Option<Error> {
    let of_run = |step: &&UndoStep| step.turn.as_ref().is_some_and(|turn| turn.run == run);
    let left = |step: &UndoStep| -> Vec<Attribution> {
        let changes = step.turn.iter().flat_map(|turn| &turn.changes);
        changes.filter(|change| !step.undone.contains(&change.path)).map(|change| change.who).collect()
    };
    let shares: Vec<Attribution> = history.undo.iter().filter(of_run).flat_map(left).collect();
    let kinds: BTreeSet<Attribution> = shares.iter().copied().collect();
    let counted = kinds.iter().map(|kind| {
        let number = shares.iter().filter(|share| *share == kind).count();
        format!("{number} {}", kind.as_str())
    });
    let (counted, words): (Vec<String>, Vec<&str>) =
        (counted.collect(), kinds.iter().map(|kind| kind.as_str()).collect());
    (!shares.is_empty()).then(|| {
        let text = format!("not only run `{}` made these changes ({})", printable(run), counted.join(", "));
        let command = format!("`piton undo --run {} --include {}`", shell_word(run), words.join(","));
        Error::new(Code::NoSuchTurn, text).field("run").hint(format!("{command} undoes them too"))
    })
}

/// Returns the path of a change.
///
/// # Errors
/// `store-damaged` for a spelling that the journal would not have made.
pub fn path_of(change: &TurnChange) -> Result<RelPath> {
    RelPath::parse(&unquote(&change.path)?)
}

fn is_chosen(change: &TurnChange, choice: &StepChoice) -> bool {
    // A spelling that is none is reported by the step itself.
    choice.is_of_all_paths() || path_of(change).is_ok_and(|path| choice.chooses(&path))
}

/// Returns true if a path was at a moment as it is now, or nothing is known of it at that moment.
fn stood_there((manifest, coverage): &(Manifest, Coverage), path: &RelPath, now: &ManifestEntry) -> bool {
    !coverage.extent.reaches(path)
        || manifest.get(path).map_or_else(|| coverage.skip_of(path).is_some(), |then| then.same(now))
}

/// Says whose the present state of a path is, where it is not the run's own; the newest change comes first.
fn whose(changes: &[(&TurnEnd, &TurnChange)], now: &ManifestEntry, run: &str) -> Option<String> {
    let is_now = |change: &TurnChange| change.after.is_some_and(|LoggedEntry(after)| after.same(now));
    match changes.iter().find(|(_, change)| is_now(change)) {
        Some((turn, _)) if turn.run == run => None,
        Some((turn, change)) if change.who.is_own() => {
            let client = turn.client.as_deref().map(|client| format!("{}, ", printable(client))).unwrap_or_default();
            Some(format!("changed by {client}run {}, turn `{}`", printable(&turn.run), printable(&turn.turn)))
        }
        Some((_, change)) => Some(format!("changed by several ({})", change.who.as_str())),
        // It was changed by a turn, and again by somebody since.
        None if !changes.is_empty() => Some("changed since by no known turn".to_owned()),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectKind;
    use crate::model::manifest::EntryKind;

    fn entry(text: &str) -> ManifestEntry {
        let id = ObjectId::of(ObjectKind::Blob, text.as_bytes()).unwrap();
        ManifestEntry { kind: EntryKind::File, perm: 0o644, id, size: 0 }
    }

    fn turn(op: &str, run: &str, after: &str, who: Attribution) -> TurnEnd {
        let id = entry("x").id;
        let change =
            TurnChange { path: "a".into(), before: None, after: Some(LoggedEntry(entry(after))), who, from: None };
        TurnEnd {
            op: op.into(),
            key: op.into(),
            run: run.into(),
            turn: op.into(),
            prompt: None,
            client: Some("claude-code".into()),
            is_agents: false,
            base: id,
            end: id,
            began: String::new(),
            time: String::new(),
            ordinal: 1,
            is_interrupted: false,
            is_later_part: false,
            members: Vec::new(),
            changes: vec![change],
            missed: Vec::new(),
            is_passed: false,
            switched_from: None,
            running: Vec::new(),
        }
    }

    #[test]
    fn the_present_state_is_of_whoever_left_it_so() {
        let turns = [turn("t-2", "b", "two", Attribution::Likely), turn("t-1", "a", "one", Attribution::Sure)];
        let changes: Vec<_> = turns.iter().map(|turn| (turn, &turn.changes[0])).collect();
        for (now, run, expected) in [
            ("one", "a", None),
            ("one", "b", Some("changed by claude-code, run a, turn `t-1`")),
            ("two", "a", Some("changed by claude-code, run b, turn `t-2`")),
            ("three", "a", Some("changed since by no known turn")),
        ] {
            assert_eq!(whose(&changes, &entry(now), run).as_deref(), expected, "{now} {run}");
        }
        assert_eq!(whose(&[], &entry("one"), "a"), None);
        let shared = turn("t-3", "b", "three", Attribution::Shared);
        let told = whose(&[(&shared, &shared.changes[0])], &entry("three"), "a");
        assert_eq!(told.as_deref(), Some("changed by several (shared)"));
    }
}
