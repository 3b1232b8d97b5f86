//! Finds content that a turn destroyed and that a capture has saved while the turn was open.
//!
//! The checkpoint of a turn's beginning leaves out large and excluded files, and it is older than what a person wrote in mid-turn.
//! The checkpoints before the turn's actions have both. For each path the search looks for the last content that the turn destroyed
//! and had not written itself: an undo restores that version. A saved version that an undo does not restore is reported with its
//! checkpoint, so that a command can name it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::attribution::Judge;
use super::journal::{LoggedEntry, MissedChange, TurnChange};
use super::turn_time::{TurnTime, is_absent};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::Change;
use crate::checkpoint::catalog::find::Presence;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::windows::OpenTurn;
use crate::error::Result;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::manifest::ManifestEntry;
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::model::stamp::is_before;
use crate::model::tree::Mode;
use crate::model::turn::Attribution;

/// The longest time by which the checkpoint before a turn's first action is older than the capture of its beginning, in nanoseconds.
const AROUND_BEGINNING: i64 = 10_000_000_000;

/// The most captures of a turn that are searched for uncertain paths, newest first.
const MAX_SEARCHED: usize = 50;

/// The captures that were taken while a turn was open.
pub(super) struct TurnCaptures {
    /// The checkpoint of its beginning.
    pub(super) base: Checkpoint,
    /// The later ones with other content, the oldest first.
    pub(super) later: Vec<Checkpoint>,
    /// The ordinal of the turn's first capture, if that capture was late: the turn's first action had already started.
    pub(super) late_from: Option<u64>,
}

/// The changes of one turn, by their paths.
#[derive(Default)]
pub(super) struct TurnChanges {
    /// The changes that an undo can take back.
    pub(super) changes: BTreeMap<RelPath, TurnChange>,
    /// The others.
    pub(super) missed: BTreeMap<RelPath, MissedChange>,
    /// The paths that were deleted during the turn and that none of its actions can have deleted.
    pub(super) deleted_by_others: Vec<RelPath>,
    /// True if a process that the turn started may have done that all the same.
    pub(super) may_have_left_work: bool,
    /// The branch or commit that HEAD was on before the turn switched branches.
    pub(super) switched_from: Option<String>,
}

/// One version of a path that a capture has saved and that is not there any more.
#[derive(Clone, Copy, Debug)]
struct SavedVersion {
    /// The place of the capture among the turn's later ones.
    capture: usize,
    entry: ManifestEntry,
    /// The entry at the end of the turn.
    after: Option<ManifestEntry>,
    /// The time of the file's last change, if the capture recorded it.
    changed: Option<i64>,
}

/// The changes of a path between the turn's beginning and a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Earlier {
    /// Nothing, or somebody else changed it.
    NotTurns,
    /// The turn alone changed it.
    Turns,
    /// It changed while the turn ran something that may change any file.
    MaybeTurns,
    /// The turn may have changed it, and others too.
    Mixed,
}

impl TurnCaptures {
    /// Returns the paths that a capture has only because an action named them, as far as the end of the turn has to check them.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(super) fn targeted(&self, catalog: &Catalog) -> Result<BTreeSet<RelPath>> {
        let mut targeted = BTreeSet::new();
        for capture in std::iter::once(&self.base).chain(&self.later).filter(|one| is_targeted(one)) {
            targeted.extend(catalog.own_coverage(capture)?.targeted);
        }
        Ok(targeted)
    }
}

/// Returns true if a checkpoint has paths that only a target brings in.
fn is_targeted(checkpoint: &Checkpoint) -> bool {
    checkpoint.record.flags.iter().any(|flag| flag == "targeted")
}

impl Catalog {
    /// Returns the captures that were taken since the beginning of a turn, each content once.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub(super) fn captures_of(&self, turn: &OpenTurn, base: Checkpoint) -> Result<TurnCaptures> {
        let all = self.all()?;
        let mut known = HashSet::from([(base.tree, self.layer_root(&base)?)]);
        let mut later = Vec::new();
        // The beginning of a turn may be captured just after the checkpoint before its first action.
        let is_of_turn = |one: &Checkpoint| {
            let (its, bases) = (&one.record, &base.record);
            let is_just_before =
                its.looked.zip(bases.looked).is_some_and(|(its, bases)| bases - its < AROUND_BEGINNING);
            !turn.is_later_part
                && its.kind().is_of_turn()
                && its.turn.as_deref() == Some(turn.turn.as_str())
                && its.run == bases.run
                && is_just_before
        };
        let since =
            all.checkpoints.iter().filter(|one| one.record.ordinal() > base.record.ordinal() || is_of_turn(one));
        let mut first = &base;
        for capture in since.filter(|one| !self.is_foreign(one)) {
            if is_of_turn(capture) && capture.record.ordinal() < first.record.ordinal() {
                first = capture;
            }
            if known.insert((capture.tree, self.layer_root(capture)?)) {
                later.push(capture.clone());
            }
        }
        later.sort_by_key(|one| one.record.ordinal());
        let late_from = first.record.is_late().then(|| first.record.ordinal());
        Ok(TurnCaptures { base, later, late_from })
    }

    /// Judges uncertain changes again. If a later capture contains the same version of a path as the turn's beginning, changes
    /// before that capture are ignored. This does not apply if a third version was captured after it, since undo would skip
    /// that version.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(super) fn judge_uncertain(
        &self,
        found: &mut TurnChanges,
        captures: &TurnCaptures,
        time: &TurnTime<'_>,
    ) -> Result<()> {
        let mut open: BTreeMap<&RelPath, &mut TurnChange> =
            found.changes.iter_mut().filter(|(_, change)| !change.who.is_own()).collect();
        // Captures record wall-clock times, and actions monotonic ones.
        let searched = if time.clock.was_set() { 0 } else { MAX_SEARCHED };
        for capture in captures.later.iter().rev().take(searched) {
            if open.is_empty() {
                break;
            }
            let then = self.states_at(capture, open.keys().copied())?;
            let judge = time.judge_from(capture);
            open.retain(|path, change| {
                let (before, after) = (change.before.map(|it| it.0), change.after.map(|it| it.0));
                let is_as = |side: Option<ManifestEntry>| match side {
                    Some(side) => then.held[*path].is_some_and(|held| held.same(&side)),
                    None => then.absent.contains(*path),
                };
                if is_as(before) {
                    match time.share(&judge, path, before.as_ref(), after.as_ref()) {
                        who if who.is_own() => change.who = who,
                        // The last change is someone else's.
                        Attribution::Outside => change.who = Attribution::Touched,
                        _ => {}
                    }
                    return false;
                }
                is_as(after)
            });
        }
        Ok(())
    }

    /// Adds what the turn destroyed and a later capture has saved.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(super) fn add_saved(
        &self,
        found: &mut TurnChanges,
        captures: &TurnCaptures,
        end: &Checkpoint,
        time: &TurnTime<'_>,
    ) -> Result<()> {
        self.add_gone_targets(found, &captures.base, end, time)?;
        let versions = self.saved_versions(captures, end)?;
        if versions.is_empty() {
            return Ok(());
        }
        let used: BTreeSet<usize> = versions.values().flatten().map(|version| version.capture).collect();
        let captures_used = || used.iter().map(|at| (*at, &captures.later[*at]));
        let mut writers = time.windows.clone();
        writers.actions.retain(|action| !action.only_deletes);
        let before: BTreeMap<usize, Judge<'_>> =
            captures_used().map(|(at, capture)| (at, time.judge_before(capture, &writers))).collect();
        let after: BTreeMap<usize, Judge<'_>> =
            captures_used().map(|(at, capture)| (at, time.judge_after(capture))).collect();
        let base = self.states_at(&captures.base, versions.keys())?;
        for (path, versions) in &versions {
            let earlier = |version: &SavedVersion| base.earlier(path, version, &before[&version.capture]);
            let later = |version: &SavedVersion| {
                time.share(&after[&version.capture], path, Some(&version.entry), version.after.as_ref())
            };
            let from = |version: &SavedVersion| captures.later[version.capture].id;
            let change = |version: &SavedVersion, who| TurnChange {
                path: quote(path.as_bytes()),
                before: Some(LoggedEntry(version.entry)),
                after: version.after.map(LoggedEntry),
                who,
                from: Some(from(version)),
            };
            let untouched = |version: &&SavedVersion| earlier(version) == Earlier::NotTurns && later(version).is_own();
            let (Some(newest), best) = (versions.last(), versions.iter().rev().find(untouched)) else { continue };
            let (version, who) = match best {
                Some(best) => (best, later(best)),
                None => (newest, later(newest)),
            };
            if who == Attribution::Outside {
                continue;
            }
            let is_mixed = best.is_none() && earlier(newest) == Earlier::Mixed;
            let is_turns = matches!(earlier(newest), Earlier::Turns | Earlier::MaybeTurns);
            let is_others = !who.is_own() && !found.changes.contains_key(path) && !is_turns;
            if best.is_some() || is_others || (who.may_have_deleted() && is_mixed && newest.after.is_none()) {
                found.changes.insert(path.clone(), change(version, who));
            } else if let Some(why) = base.why_missed(path, earlier(newest)).filter(|_| who.is_own()) {
                let missed = MissedChange { path: quote(path.as_bytes()), why, who, saved: Some(from(version)) };
                found.missed.insert(path.clone(), missed);
            }
        }
        self.add_directories(found, captures)
    }

    /// Adds the files that the turn's beginning has only because an action named them, and that are gone: the end of the turn did not
    /// look for them.
    fn add_gone_targets(
        &self,
        found: &mut TurnChanges,
        base: &Checkpoint,
        end: &Checkpoint,
        time: &TurnTime<'_>,
    ) -> Result<()> {
        if !is_targeted(base) && self.moment(base)?.from.is_empty() {
            return Ok(());
        }
        let judge = time.judge();
        let gone = self.changes(self.whole(base)?, self.whole(end)?, &HashMap::new())?.into_iter();
        let gone = gone.filter(|change| change.new.is_none() && self.is_gone(&change.path)).map(|change| change.path);
        let gone: BTreeSet<RelPath> = gone.filter(|path| !found.changes.contains_key(path)).collect();
        for (path, entry) in self.entries_at(base, gone.iter())? {
            let who = time.share(&judge, &path, None, None);
            if entry.is_some() && who != Attribution::Outside {
                let (quoted, before) = (quote(path.as_bytes()), entry.map(LoggedEntry));
                found.changes.insert(path, TurnChange { path: quoted, before, after: None, who, from: None });
            }
        }
        Ok(())
    }

    /// Adds the files that were deleted before the turn's first capture, if that capture was late. An older checkpoint contains them, but a
    /// person may have changed them since then.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(super) fn add_lost_before(
        &self,
        found: &mut TurnChanges,
        captures: &TurnCaptures,
        time: &TurnTime<'_>,
    ) -> Result<()> {
        let (base, Some(first)) = (&captures.base, captures.late_from) else { return Ok(()) };
        let all = self.all()?;
        let is_older = |one: &&Checkpoint| one.record.ordinal() < first && !self.is_foreign(one);
        let Some(older) = all.checkpoints.iter().rev().find(is_older) else { return Ok(()) };
        // The action may have ended before that late capture.
        let judge = time.judge_after(older);
        for Change { path, old, new } in self.changes(self.whole(older)?, self.whole(base)?, &HashMap::new())? {
            let is_file = old.is_some_and(|(mode, _)| mode != Mode::Dir);
            if !is_file || new.is_some() || found.changes.contains_key(&path) || !self.is_gone(&path) {
                continue;
            }
            let who = time.share(&judge, &path, None, None);
            if who.may_have_deleted() {
                let why =
                    "deleted before the turn's first checkpoint; an older checkpoint may contain an older version";
                let missed =
                    MissedChange { path: quote(path.as_bytes()), why: why.to_owned(), who, saved: Some(older.id) };
                found.missed.entry(path).or_insert(missed);
            }
        }
        Ok(())
    }

    /// Lists the files of later captures that the turn's beginning has not, or has otherwise, and that its end has otherwise too.
    fn saved_versions(
        &self,
        captures: &TurnCaptures,
        end: &Checkpoint,
    ) -> Result<BTreeMap<RelPath, Vec<SavedVersion>>> {
        let mut found: BTreeMap<RelPath, Vec<SavedVersion>> = BTreeMap::new();
        let whole = self.whole(&captures.base)?;
        for (capture, checkpoint) in captures.later.iter().enumerate() {
            let changes = self.changes(whole, self.whole(checkpoint)?, &HashMap::new())?.into_iter();
            let is_file = |side: Option<(Mode, ObjectId)>| side.is_some_and(|(mode, _)| mode != Mode::Dir);
            let paths: BTreeSet<RelPath> =
                changes.filter(|change| is_file(change.new)).map(|change| change.path).collect();
            if paths.is_empty() {
                continue;
            }
            let (then, now) = (self.entries_at(checkpoint, paths.iter())?, self.entries_at(end, paths.iter())?);
            let is_lost = |path: &RelPath, entry: &ManifestEntry, after: Option<ManifestEntry>| {
                after.map_or_else(|| self.is_gone(path), |after| !after.same(entry))
            };
            let lost = then.into_iter().filter_map(|(path, entry)| {
                let (entry, after) = (entry?, now.get(&path).copied().flatten());
                is_lost(&path, &entry, after).then_some((path, entry, after))
            });
            let mut lost = lost.peekable();
            if lost.peek().is_none() {
                continue;
            }
            let (coverage, part) = (self.own_coverage(checkpoint)?, self.own_part(checkpoint)?);
            for (path, entry, after) in lost {
                let changed = part.coverage.changed.get(&path).or_else(|| coverage.changed.get(&path)).copied();
                found.entry(path).or_default().push(SavedVersion { capture, entry, after, changed });
            }
        }
        Ok(found)
    }

    /// Adds the directories that are gone with files of later captures, for their permissions.
    fn add_directories(&self, found: &mut TurnChanges, captures: &TurnCaptures) -> Result<()> {
        for capture in &captures.later {
            let mut dirs: BTreeMap<RelPath, Attribution> = BTreeMap::new();
            for (path, change) in found.changes.iter().filter(|(_, change)| change.from == Some(capture.id)) {
                let above = std::iter::successors(path.parent(), RelPath::parent).filter(|dir| !dir.is_root());
                let gone = above.take_while(|dir| self.is_gone(dir));
                dirs.extend(gone.map(|dir| (dir, change.who)));
            }
            dirs.retain(|dir, _| !found.changes.contains_key(dir));
            for (path, entry) in self.entries_at(capture, dirs.keys())? {
                let Some(entry) = entry else { continue };
                let (who, before, from) = (dirs[&path], Some(LoggedEntry(entry)), Some(capture.id));
                let change = TurnChange { path: quote(path.as_bytes()), before, after: None, who, from };
                found.changes.insert(path, change);
            }
        }
        Ok(())
    }

    /// Loads the states of some paths in a capture.
    fn states_at<'p>(
        &self,
        base: &Checkpoint,
        paths: impl Iterator<Item = &'p RelPath> + Clone,
    ) -> Result<CaptureStates> {
        let held = self.entries_at(base, paths.clone())?;
        let absent = self.judging(base, &mut |in_base| {
            let is_absent = |path: &&RelPath| held[*path].is_none() && in_base(path, Mode::File) == Presence::Absent;
            Ok(paths.clone().filter(is_absent).cloned().collect())
        })?;
        Ok(CaptureStates { held, absent, coverage: self.coverage_of(base)?, looked: base.record.looked })
    }

    /// Returns true if nothing is at a path. One that cannot be checked may be there.
    pub(super) fn is_gone(&self, path: &RelPath) -> bool {
        is_absent(&self.workspace.path, path)
    }
}

/// The states of some paths in the checkpoint of a turn's beginning.
struct CaptureStates {
    held: BTreeMap<RelPath, Option<ManifestEntry>>,
    /// The paths that were not there.
    absent: BTreeSet<RelPath>,
    coverage: Coverage,
    /// The moment of the checkpoint.
    looked: Option<i64>,
}

impl CaptureStates {
    /// Returns true if the checkpoint did not look at a path.
    fn lacks(&self, path: &RelPath) -> bool {
        self.held.get(path).is_some_and(Option::is_none) && !self.absent.contains(path)
    }

    /// Says why the version of a path is not restored that a later capture has; `None` if nobody misses it.
    fn why_missed(&self, path: &RelPath, earlier: Earlier) -> Option<String> {
        match earlier {
            Earlier::Mixed => return Some("changed by others and by the turn in turns".to_owned()),
            Earlier::MaybeTurns => return Some("written during the turn, possibly by someone else".to_owned()),
            Earlier::Turns | Earlier::NotTurns => {}
        }
        let skipped = self.coverage.skip_of(path).filter(|why| self.lacks(path) && why.is_missed());
        skipped.map(|why| format!("not saved when the turn began: {why}"))
    }

    /// Says what happened to a path between the turn's beginning and a capture.
    fn earlier(&self, path: &RelPath, version: &SavedVersion, judge: &Judge<'_>) -> Earlier {
        let is_older = version.changed.zip(self.looked).is_some_and(|(changed, looked)| is_before(changed, looked));
        if self.lacks(path) && is_older {
            return Earlier::NotTurns;
        }
        match judge.share(path, |_, _| false).who {
            Attribution::Sure => Earlier::Turns,
            Attribution::Likely => Earlier::MaybeTurns,
            Attribution::Outside => Earlier::NotTurns,
            // Nothing is known of a change.
            Attribution::Unknown if self.lacks(path) => Earlier::NotTurns,
            Attribution::Touched | Attribution::Shared | Attribution::Unknown => Earlier::Mixed,
        }
    }
}
