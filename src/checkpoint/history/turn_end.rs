//! The end of a turn: what changed since its beginning, and what of that is its own, in one line of the journal.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::after_end::left_processes;
use super::attribution::Judge;
use super::destroyed::{TurnCaptures, TurnChanges};
use super::journal::{Journal, Line, LoggedEntry, MissedChange, TurnChange, TurnEnd, quoted};
use super::operations::{History, OF_TURN, UndoStep};
use super::turn_clock::TurnClock;
use super::turn_git::WrittenByGit;
use super::turn_time::TurnTime;
use crate::checkpoint::capture::request::{Selection, Take};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::selector::Selector;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::windows::OpenTurn;
use crate::checkpoint::records::workspace::Scope;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::{Coverage, Extent, SkipReason};
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::sys::clock::{ms_of, now_ms, rfc3339, wall_clock_offset};
use crate::sys::interrupt::Flow;
use crate::worktree::{HeadMove, Target, head_moves};

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
        let base_of = |turn: &OpenTurn| self.catalog.checkpoint_of(turn.base).ok(); // one that is gone tells nothing
        let bases = turns.iter().filter_map(|turn| Some((turn, base_of(turn)?)));
        let captures = bases.map(|(turn, base)| self.catalog.captures_of(turn, base)).collect::<Result<Vec<_>>>()?;
        let take = of_turn(first, "end of a turn", self.catalog.selection_at_end(&captures)?);
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
                tracing::warn!(
                    turn = turn.turn,
                    "the checkpoint at the beginning of the turn is no longer kept, so its changes are unknown"
                );
                return Ok(None);
            }
            base => base?,
        };
        let captures = self.catalog.captures_of(turn, base)?;
        let base = &captures.base;
        let catalog = &*self.catalog;
        let TurnChanges { changes, mut missed, deleted_by_others, may_have_left_work, switched_from } =
            catalog.changes_of(turn, &captures, capture, state)?;
        let running = match state {
            TurnState::Open => Vec::new(),
            TurnState::Ended | TurnState::Interrupted => {
                left_processes(turn, catalog.windows.borrow_mut().known_windows()?, catalog)
            }
        };
        let history = catalog.history()?;
        let known = line_so_far(&history, turn);
        if may_have_left_work || !running.is_empty() {
            for path in &deleted_by_others {
                let why = "deleted during the turn, possibly by a process that one of its actions started".to_owned();
                let (quoted, saved) = (quote(path.as_bytes()), Some(base.id));
                let change = MissedChange { path: quoted, why, who: Attribution::Likely, saved };
                missed.entry(path.clone()).or_insert(change);
            }
        }
        // A turn of several workspaces has a line in each of them, so that undo offers it in each.
        let is_alone = turn.places.len() < 2;
        let is_nothing = changes.is_empty() && missed.is_empty() && running.is_empty();
        if !deleted_by_others.is_empty() && !may_have_left_work {
            self.add_to_earlier_turn(turn, &deleted_by_others, base.id)?;
        }
        if is_nothing && known.is_none() && is_alone {
            return Ok(None);
        }
        let (deleted, secrets) = (deleted_paths(&changes), changed_secrets(&changes));
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
            changes: changes.into_values().collect(),
            missed: missed.into_values().collect(),
            is_passed: false,
            switched_from,
            running,
        });
        let line = as_passed(line, known.and_then(|step| step.turn.as_deref()));
        let is_news = history.turns.iter().all(|known| !is_same(known, &line));
        if is_news {
            self.append(&[Line::Turn(Box::new(TurnEnd::clone(&line)))])?;
            let kept = self.catalog.history()?.turns.iter().map(|turn| turn.op.clone()).collect();
            Journal::in_dir(&self.catalog.workspace.dir).shorten(&kept, &self.lock)?;
        }
        Ok(Some(EndedTurn { end: line, deleted, secrets }))
    }
}

/// Returns the branch or commit that HEAD was on before the turn's first switch. Only moves of HEAD that no other client can have made
/// count. `head` is the commit of HEAD when the turn began, where that is known.
fn switched_from(
    judge: &Judge<'_>,
    clock: &TurnClock,
    turn: &OpenTurn,
    root: &Path,
    head: Option<&str>,
) -> Option<String> {
    let began = ms_of(&turn.began)?.div_euclid(1000);
    let mut moves = head_moves(root);
    // Moves up to the commit at which the turn began came before it.
    let is_before = |one: &HeadMove| one.seconds <= began && head == Some(one.id.as_str());
    if let Some(last) = moves.iter().rposition(is_before) {
        moves.drain(..=last);
    }
    let is_own = |one: &&HeadMove| {
        // git logs whole seconds.
        let second = one.seconds.saturating_mul(1_000_000_000).saturating_sub(clock.offset());
        one.switched_from().is_some() && judge.has_moved_head(second, second.saturating_add(1_000_000_000))
    };
    // A switch in the turn's first second may have come before the turn.
    let mut own = moves.iter().filter(is_own).peekable();
    let last_of_first = std::iter::from_fn(|| own.next_if(|one| one.seconds <= began)).last();
    own.next().or(last_of_first)?.switched_from().map(str::to_owned)
}

/// Counts the paths that were there before a turn and not after it.
fn deleted_paths(changes: &BTreeMap<RelPath, TurnChange>) -> usize {
    changes.values().filter(|change| change.before.is_some() && change.after.is_none()).count()
}

/// Returns the first secret that a turn changed, and the number of them.
fn changed_secrets(changes: &BTreeMap<RelPath, TurnChange>) -> Option<(RelPath, usize)> {
    let is_secret = |path: &RelPath| crate::filter::secret::is_secret(path.as_bytes());
    let secrets = changes.iter().filter(|(path, change)| change.before.is_some() && is_secret(path));
    let secrets: Vec<&RelPath> = secrets.map(|(path, _)| path).collect();
    secrets.first().map(|first| ((*first).clone(), secrets.len()))
}

/// Returns the line of an open turn so far, which a newer one replaces. `None` if it was undone: then this is another part of the turn.
/// The log of actions may not have its name yet: another process may just have written it.
fn line_so_far<'h>(history: &'h History, turn: &OpenTurn) -> Option<&'h UndoStep> {
    let is_line = |line: &TurnEnd| line.key == turn.key && line.base == turn.base;
    let line = history.undo.iter().rev().find(|step| step.turn.as_deref().is_some_and(is_line));
    line.filter(|step| !step.passed && step.undone.is_empty() && step.undone_in_hunks.is_empty())
}

/// Returns the request for a capture at an end of a turn.
fn of_turn(turn: &OpenTurn, reason: &str, selection: Selection) -> Take {
    let mut take = Take { selection, ..Take::of(CheckpointKind::Turn, &turn.run, reason) };
    take.draft.turn = Some(turn.turn.clone());
    take
}

/// Returns the line of a turn, passed by an undo if the line before was, which has the same changes.
fn as_passed(line: Arc<TurnEnd>, known: Option<&TurnEnd>) -> Arc<TurnEnd> {
    let is_passed =
        known.is_some_and(|known| known.is_passed && known.changes == line.changes && known.missed == line.missed);
    if is_passed { Arc::new(TurnEnd { is_passed, ..TurnEnd::clone(&line) }) } else { line }
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
            let clock = Some(wall_clock_offset());
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
        captures: &TurnCaptures,
        capture: &TurnCapture,
        state: TurnState,
    ) -> Result<TurnChanges> {
        let (base, end) = (&captures.base, &capture.checkpoint);
        let mut log = self.windows.borrow_mut();
        let windows = log.known_windows()?;
        let root = &self.workspace.path;
        let staged = LazyCell::new(|| {
            self.written_by_git(turn).unwrap_or_else(|error| {
                tracing::warn!(%error, "could not read git's indexes, so fewer changes are certain");
                WrittenByGit::default()
            })
        });
        let clock = TurnClock::since(turn.clock);
        let time = TurnTime {
            turn,
            windows,
            until: capture.at,
            is_over: state != TurnState::Open,
            clock: &clock,
            root,
            is_staged: &|path, id| staged.has(root, path, id),
        };
        let (judge, mut found) = (time.judge(), TurnChanges::default());
        let mut others = Vec::new();
        for (path, before, after) in self.changed_entries(base, end)? {
            // In a workspace of single paths a checkpoint contains a directory only if it contains something in it.
            if before.is_some_and(|entry| entry.kind == EntryKind::Dir) && after.is_none() && !self.is_gone(&path) {
                continue;
            }
            let who = time.share(&judge, &path, before.as_ref(), after.as_ref());
            if who != Attribution::Outside {
                let [before, after] = [before, after].map(|entry| entry.map(LoggedEntry));
                let change = TurnChange { path: quote(path.as_bytes()), before, after, who, from: None };
                found.changes.insert(path, change);
            } else if after.is_none() {
                found.deleted_by_others.push(path);
            } else {
                others.push((path, before, after));
            }
        }
        self.judge_uncertain(&mut found, captures, &time)?;
        for (path, before, after) in others {
            self.add_other_name(&mut found, &path, [before, after]);
        }
        self.add_saved(&mut found, captures, end, &time)?;
        self.add_lost_before(&mut found, captures, &time)?;
        found.may_have_left_work = judge.may_have_left_work();
        // A repository that was not noted leaves the seconds of its log.
        let noted = self.noted_state(base, false).ok().flatten();
        let head = noted.as_ref().and_then(|noted| noted.state.head_commit());
        found.switched_from = switched_from(&judge, &clock, turn, root, head);
        let coverage = self.coverage_of(base)?;
        let share = |path: &RelPath| time.share(&judge, path, None, None);
        for lost in self.lost_repositories(turn, base, &coverage, &share)? {
            found.missed.insert(RelPath::parse(&unquote(&lost.path)?)?, lost);
        }
        for (path, why) in self.left_out(&coverage, end)? {
            if !found.changes.contains_key(&path) && !found.missed.contains_key(&path) && judge.saw(&path) {
                let who = time.share(&judge, &path, None, None);
                let missed = MissedChange { path: quote(path.as_bytes()), why, who, saved: None };
                found.missed.extend(who.is_own().then_some((path, missed)));
            }
        }
        Ok(found)
    }

    /// Adds a changed path that no action names, if it is another name of a file that the turn changed in the same way.
    fn add_other_name(&self, found: &mut TurnChanges, path: &RelPath, entries: [Option<ManifestEntry>; 2]) {
        let root = &self.workspace.path;
        let identity =
            |path: &RelPath| path.under(root).symlink_metadata().ok().map(|facts| (facts.dev(), facts.ino()));
        let [before, after] = entries.map(|entry| entry.map(LoggedEntry));
        // Without a look at the disk most others are ruled out.
        let same = found.changes.iter().filter(|(_, change)| change.before == before && change.after == after);
        let is_name = |name: &RelPath| identity(name).is_some_and(|known| identity(path) == Some(known));
        let Some(who) = same.filter(|(name, _)| is_name(name)).map(|(_, change)| change.who).next() else { return };
        let change = TurnChange { path: quote(path.as_bytes()), before, after, who, from: None };
        found.changes.insert(path.clone(), change);
    }

    /// Returns what the capture at the end of turns looks at: all that the rules admit, and what actions of the turns have named.
    fn selection_at_end(&self, turns: &[TurnCaptures]) -> Result<Selection> {
        let captures = turns.iter().flat_map(|turn| std::iter::once(&turn.base).chain(&turn.later));
        let mut selection = self.looked_at(captures)?;
        let mut known: BTreeSet<RelPath> = selection.targets.iter().map(|target| target.path.clone()).collect();
        for turn in turns {
            let named = turn.targeted(self)?.into_iter().filter(|path| known.insert(path.clone()));
            selection.targets.extend(named.map(|path| Target { path, recursive: false }));
        }
        Ok(selection)
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
                // Ignored files that an action named are private ones.
                let private = self.own_part(&one)?;
                let files = private.manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir);
                looked.extend(files.map(|(path, _)| path.clone()));
            }
        }
        Ok(Selection::of_extent(&Extent::Paths(looked.into_iter().collect())))
    }

    /// Lists the single files that one of two checkpoints does not hold although it looked there, each with the reason.
    fn left_out(&self, base: &Coverage, end: &Checkpoint) -> Result<BTreeMap<RelPath, String>> {
        let is_single = |why: &SkipReason| {
            matches!(
                why,
                SkipReason::TooLarge(_) | SkipReason::Unreadable | SkipReason::Special | SkipReason::Collision
            )
        };
        // Ignored files change all the time: only a loss of all of one counts.
        let is_lost = |path: &RelPath, why: &SkipReason| why.is_missed() && self.is_gone(path);
        let mut found = BTreeMap::new();
        for (one, when) in [(base, "when the turn began"), (&self.coverage_of(end)?, "when the turn ended")] {
            let counted = one.skipped.iter().filter(|(path, why)| is_single(why) || is_lost(path, why));
            found.extend(counted.map(|(path, why)| (path.clone(), format!("not saved {when}: {why}"))));
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
