//! The end of a turn: what changed since its beginning, and what of that is its own, in one line of the journal.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::attribution::{Judge, JudgedTurn};
use super::journal::{Journal, Line, LoggedEntry, MissedChange, TurnChange, TurnEnd, quoted};
use super::operations::OF_TURN;
use super::turn_clock::{TurnClock, clock_offset};
use crate::agents::{Client, ReportedEnds};
use crate::checkpoint::capture::request::{Selection, Take};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::selector::Selector;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::windows::OpenTurn;
use crate::checkpoint::records::workspace::Scope;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::{Extent, SkipReason};
use crate::model::id::ObjectId;
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Flow;
use crate::worktree::{git_dir_of, git_index};

/// The names of a turn.
#[derive(Clone, Debug)]
pub struct TurnName {
    /// The turn's own name, the same in all its workspaces.
    pub key: String,
    /// The id of its run.
    pub run: String,
    /// The name under which its actions are noted.
    pub actor: String,
    /// The client's name of it.
    pub turn: String,
    /// The first words of its prompt, without secrets.
    pub prompt: Option<String>,
    /// The name of the client.
    pub client: Option<String>,
    /// True if the client has a name that belongs to a person's doors, and is an agent all the same.
    pub is_agents: bool,
    /// The roots of all workspaces in which it acts.
    pub places: Vec<PathBuf>,
    /// The process that has the connection with which the turn ends, by its name in the log of actions.
    pub held_by: Option<String>,
}

/// The state in which a turn is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnState {
    /// It goes on.
    Open,
    /// The client has ended it.
    Ended,
    /// Its client or its connection ended within it.
    Interrupted,
}

/// A turn that has ended in one workspace, and what is known of it.
#[derive(Debug)]
pub struct EndedTurn {
    /// The line of the journal.
    pub end: Arc<TurnEnd>,
    /// The paths that were there at its beginning and are gone, as far as the turn may have deleted them.
    pub deleted: usize,
    /// The first secret that it changed, and the number of them.
    pub secrets: Option<(RelPath, usize)>,
}

/// A capture with which turns are compared that end, or that are written down so far.
pub(super) struct TurnCapture {
    checkpoint: Checkpoint,
    /// The moment of the capture.
    at: i64,
}

/// The changes of a turn, with its share in each.
struct TurnChanges {
    changes: Vec<(RelPath, TurnChange)>,
    /// Changes that the checkpoint at one of its ends does not contain.
    missed: Vec<MissedChange>,
}

impl Locked<'_> {
    /// Ends open turns, and writes down what they have changed.
    pub(super) fn end_turns(
        &mut self,
        turns: &[OpenTurn],
        state: TurnState,
        control: &dyn Fn() -> Flow,
    ) -> Result<Vec<Option<EndedTurn>>> {
        let open: Vec<OpenTurn> = {
            let mut log = self.catalog.windows.borrow_mut();
            let windows = log.windows()?;
            // Another process may have ended some of them before this one had the lock.
            turns.iter().filter_map(|turn| windows.turn(&turn.key).cloned()).collect()
        };
        let Some(capture) = self.capture_turns(&open, control)? else { return Ok(Vec::new()) };
        let mut ended = Vec::new();
        for turn in open {
            ended.push(self.write_down(&turn, &capture, state)?);
            self.catalog.windows.borrow_mut().end_turn(&turn.key)?;
        }
        Ok(ended)
    }

    /// Captures what some turns may have changed; one capture serves all of them.
    pub(super) fn capture_turns(
        &mut self,
        turns: &[OpenTurn],
        control: &dyn Fn() -> Flow,
    ) -> Result<Option<TurnCapture>> {
        let Some(first) = turns.first() else { return Ok(None) };
        let bases = turns.iter().filter_map(|turn| self.catalog.checkpoint_of(turn.base).ok()); // one that is gone tells nothing
        let bases = bases.collect::<Vec<_>>();
        let take = of_turn(first, "end of a turn", self.catalog.looked_at(&bases)?);
        let (taken, _) = self.take(&take, control)?;
        let at = self.capturer.seen().asked();
        let seen = self.capturer.seen().take();
        self.catalog.windows.borrow_mut().note_seen(&seen)?;
        Ok(Some(TurnCapture { checkpoint: taken.checkpoint, at }))
    }

    /// Writes down what a turn has changed; `None` if that is nothing.
    pub(super) fn write_down(
        &mut self,
        turn: &OpenTurn,
        capture: &TurnCapture,
        state: TurnState,
    ) -> Result<Option<EndedTurn>> {
        let base = match self.catalog.checkpoint_of(turn.base) {
            Err(error) if error.code() == Code::NoSuchCheckpoint => {
                tracing::warn!(turn = turn.turn, "the beginning of a turn is not kept, so its changes are not known");
                return Ok(None);
            }
            base => base?,
        };
        let catalog = &*self.catalog;
        let TurnChanges { changes, missed } = catalog.changes_of(turn, &base, capture, state)?;
        let history = catalog.history()?;
        // The line so far is replaced, unless it was undone: then this is another part of the turn.
        let known =
            turn.op.as_deref().and_then(|op| history.undo_of(op)).filter(|step| !step.passed && step.undone.is_empty());
        if changes.is_empty() && missed.is_empty() && known.is_none() {
            return Ok(None);
        }
        let deleted = changes.iter().filter(|(_, change)| change.before.is_some() && change.after.is_none()).count();
        let is_secret = |(path, change): &&(RelPath, TurnChange)| {
            change.before.is_some() && crate::filter::secret::is_secret(path.as_bytes())
        };
        let secrets: Vec<&RelPath> = changes.iter().filter(is_secret).map(|(path, _)| path).collect();
        let secrets = secrets.first().map(|first| ((*first).clone(), secrets.len()));
        let line = Arc::new(TurnEnd {
            op: known.map_or_else(|| format!("{OF_TURN}{}", history.next_turn), |step| step.op.clone()),
            key: turn.key.clone(),
            run: turn.run.clone(),
            turn: turn.turn.clone(),
            prompt: turn.prompt.clone(),
            client: turn.client.clone(),
            is_agents: turn.is_agents,
            base: base.id,
            end: capture.checkpoint.id,
            began: turn.began.clone(),
            time: rfc3339(now_ms()),
            ordinal: catalog.newest_ordinal()?,
            is_interrupted: state == TurnState::Interrupted,
            is_later_part: turn.is_later_part,
            members: if turn.places.len() > 1 { turn.places.clone() } else { Vec::new() },
            changes: changes.into_iter().map(|(_, change)| change).collect(),
            missed,
        });
        let is_news = history.turns.iter().all(|known| !is_same(known, &line));
        if is_news {
            self.append(&[Line::Turn(Box::new(TurnEnd::clone(&line)))])?;
            let kept = self.catalog.history()?.turns.iter().map(|turn| turn.op.clone()).collect();
            Journal::in_dir(&self.catalog.workspace.dir).shorten(&kept, &self.lock)?;
        }
        Ok(Some(EndedTurn { end: line, deleted, secrets }))
    }
}

/// Returns the request for a capture at an end of a turn.
fn of_turn(turn: &OpenTurn, reason: &str, selection: Selection) -> Take {
    let mut take = Take { selection, ..Take::of(CheckpointKind::Turn, &turn.run, reason) };
    take.draft.turn = Some(turn.turn.clone());
    take
}

/// Returns true if two lines of a turn say the same, but for the moment.
fn is_same(known: &TurnEnd, line: &TurnEnd) -> bool {
    *known == TurnEnd { time: known.time.clone(), ordinal: known.ordinal, ..line.clone() }
}

impl Locked<'_> {
    /// Writes down what the open turns have changed so far.
    ///
    /// # Errors
    /// Returns the errors of the capture, of the journal and of the log of actions.
    pub(crate) fn settle_turns(&mut self, control: &dyn Fn() -> Flow) -> Result<()> {
        let open = self.catalog.windows.borrow_mut().windows()?.turns.clone();
        self.capturer.mark_moment(&self.catalog.workspace.path);
        let seen = self.capturer.seen().take();
        self.catalog.windows.borrow_mut().note_seen(&seen)?;
        let Some(capture) = self.capture_turns(&open, control)? else { return Ok(()) };
        for turn in open {
            let ended = self.write_down(&turn, &capture, TurnState::Open)?;
            if let Some(ended) = ended.filter(|ended| turn.op.as_ref() != Some(&ended.end.op)) {
                self.catalog.windows.borrow_mut().note_written(&turn.key, &ended.end.op)?;
            }
        }
        Ok(())
    }

    /// Begins the open turns anew after a restore: what they change from now on is another part of theirs, and what the restore has
    /// changed is not theirs.
    ///
    /// # Errors
    /// As [`Locked::settle_turns`].
    pub(super) fn cut_turns(&mut self, changed: &[RelPath], control: &dyn Fn() -> Flow) -> Result<()> {
        let open = self.catalog.windows.borrow_mut().windows()?.turns.clone();
        let Some(first) = open.first() else { return Ok(()) };
        let bases = open.iter().filter_map(|turn| self.catalog.checkpoint_of(turn.base).ok()); // one that is gone tells nothing
        let take = of_turn(first, "base capture", self.catalog.looked_at(&bases.collect::<Vec<_>>())?);
        let (taken, _) = self.take(&take, control)?;
        let since = self.capturer.seen().asked();
        let mut seen = self.capturer.seen().take();
        let restored = quoted(changed);
        for turn in open {
            let (base, restored) = (taken.checkpoint.id, restored.clone());
            let clock = Some(clock_offset());
            let part = OpenTurn { base, since, clock, op: None, is_later_part: true, restored, ..turn };
            self.catalog.windows.borrow_mut().begin_turn(&part, &std::mem::take(&mut seen))?;
        }
        Ok(())
    }
}

impl Catalog {
    /// Returns what changed between the beginning of a turn and a capture, as far as the turn may have changed it.
    fn changes_of(
        &self,
        turn: &OpenTurn,
        base: &Checkpoint,
        capture: &TurnCapture,
        state: TurnState,
    ) -> Result<TurnChanges> {
        let TurnCapture { checkpoint: end, at: until } = capture;
        let mut log = self.windows.borrow_mut();
        let windows = log.known_windows()?;
        let restored = turn.restored.iter().cloned().collect();
        let client = turn.client.as_deref().and_then(|name| Client::named(name).ok()); // others are not in the table
        let reports_ends = client.map(|client| client.reported_ends() != ReportedEnds::Never);
        let is_over = state != TurnState::Open;
        let judged = JudgedTurn { actor: &turn.actor, since: turn.since, until: *until, is_over, reports_ends };
        let judge = Judge::new(&judged, windows, restored);
        let root = &self.workspace.path;
        let staged = LazyCell::new(|| staged_in(root));
        let clock = TurnClock::since(turn.clock);
        let is_later = |path: &RelPath, since: i64| clock.is_later(root, path, since);
        let mut changes = Vec::new();
        for (path, before, after) in self.changed_entries(base, end)? {
            let share = judge.share(&path, is_later);
            let is_staged = || after.is_some_and(|entry| staged.get(&path) == Some(&entry.id));
            // What a checkout, reset or merge of the turn has written is as git has it in its index.
            let who = match clock.doubted(share.who) {
                Attribution::Likely if share.is_gits && is_staged() => Attribution::Sure,
                who => who,
            };
            if who != Attribution::Outside {
                let [before, after] = [before, after].map(|entry| entry.map(LoggedEntry));
                changes.push((path.clone(), TurnChange { path: quote(path.as_bytes()), before, after, who }));
            }
        }
        let known: BTreeSet<&RelPath> = changes.iter().map(|(path, _)| path).collect();
        let mut missed = Vec::new();
        for (path, why) in self.left_out(base, end)? {
            if !known.contains(&path) && judge.saw(&path) {
                let who = clock.doubted(judge.share(&path, is_later).who);
                missed.extend(who.is_own().then(|| MissedChange { path: quote(path.as_bytes()), why, who }));
            }
        }
        Ok(TurnChanges { changes, missed })
    }

    /// Returns all that turns with these bases may have changed: everything, but in a workspace of single paths what the checkpoints
    /// before their actions have looked at.
    fn looked_at<'b>(&self, bases: impl IntoIterator<Item = &'b Checkpoint>) -> Result<Selection> {
        if self.workspace.scope == Scope::Tree {
            return Ok(Selection::default());
        }
        let mut looked = BTreeSet::new();
        for base in bases {
            for one in std::iter::once(base.clone()).chain(self.followers_of(base)?) {
                if let Extent::Paths(paths) = self.coverage(&one.tree)?.extent {
                    looked.extend(paths);
                }
            }
        }
        Ok(Selection::of_extent(&Extent::Paths(looked.into_iter().collect())))
    }

    /// Lists the single files that one of two checkpoints does not hold although it looked there, each with the reason.
    fn left_out(&self, base: &Checkpoint, end: &Checkpoint) -> Result<BTreeMap<RelPath, String>> {
        let is_single = |why: &SkipReason| {
            matches!(
                why,
                SkipReason::TooLarge(_) | SkipReason::Unreadable | SkipReason::Special | SkipReason::Collision
            )
        };
        let mut found = BTreeMap::new();
        for (one, when) in [(base, "when the turn began"), (end, "when the turn ended")] {
            let skipped = self.coverage_of(one)?.skipped.into_iter().filter(|(_, why)| is_single(why));
            found.extend(skipped.map(|(path, why)| (path, format!("not held {when}: {why}"))));
        }
        Ok(found)
    }

    /// Returns the checkpoint of an id, or the one that a forget has put in its place: it may have been killed before it came to the
    /// records.
    ///
    /// # Errors
    /// `no-such-checkpoint`.
    pub(crate) fn checkpoint_of(&self, id: ObjectId) -> Result<Checkpoint> {
        let all = self.all()?;
        let found = all.checkpoints.iter().rev().find(|one| one.id == id).cloned();
        let found = found.or_else(|| self.replacement(&Selector::Prefix(id.to_string()), &all.checkpoints, &[]));
        found.ok_or_else(|| {
            Error::new(Code::NoSuchCheckpoint, format!("checkpoint {} is not in this workspace", id.short()))
        })
    }
}

/// Returns the blobs that the index of a work tree stages; none where it cannot be read.
fn staged_in(root: &Path) -> BTreeMap<RelPath, ObjectId> {
    let staged = git_dir_of(root).map(|dir| git_index::staged(&dir));
    staged.and_then(Result::ok).unwrap_or_default() // without it fewer changes are sure
}

/// Returns true if what stands at a path, or the directory in which nothing stands there, changed at or after a moment of the
/// file system's clock.
pub(crate) fn changed_after(root: &Path, path: &RelPath, since: i64) -> bool {
    let mut at = Some(path.clone());
    while let Some(place) = at {
        if let Ok(facts) = place.under(root).symlink_metadata() {
            let changed = facts.ctime().saturating_mul(1_000_000_000).saturating_add(facts.ctime_nsec());
            return changed >= since;
        }
        at = place.parent();
    }
    true
}
