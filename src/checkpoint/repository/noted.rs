//! The state of the repository at each checkpoint.
//!
//! A line of `states_log` names the state of a checkpoint by a number, and `refs/piton/<workspace>/git/at-<number>` leads to that.
//! Checkpoints between which nothing has moved name the same one. Marks of the repository's files tell whether it has to be read.
//! Writing the state, and confirming cheap marks by all marks, may take time: both are done after the answer.
//!
//! *Invariant:* no checkpoint gets the state of another moment. Where that is in doubt, its state is not known.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::operations::{RepositoryNow, stages_alike};
use super::states_log::{StateLine, append, last_line, length, lines, rewrite};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::{Catalog, PendingState, StandingRepository};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::pins::Pins;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::repository::RepositoryState;
use crate::worktree::repository_marks::StandingMark;
use crate::worktree::repository_state::RepositoryPlace;

/// The newest states that are kept at least.
const KEPT: u64 = 50;

/// The most bytes of indexes in the states that are kept, but for the newest state and those of pinned checkpoints.
const MOST_BYTES: u64 = 256 << 20;

/// The size in bytes from which on the file is written anew.
const LONG: u64 = 256 << 10;

/// The longest wait of a process that ends for the workspace's lock.
const PATIENCE: Duration = Duration::from_millis(300);

/// The times that a repository which moves is read again.
const TRIES: usize = 3;

/// The time that a look may take. After one that has failed and taken longer, none is tried for a while.
const QUICK: Duration = Duration::from_millis(200);

/// The time for which none is tried then.
const REST: Duration = Duration::from_mins(1);

/// The repository as a checkpoint finds it.
pub(crate) enum FoundRepository {
    /// By a cheap look, nothing has moved since the last line.
    Stands,
    /// Nothing has moved since the last line. The mark is for cheap looks from now on.
    Same(StateLine, RepositoryPlace, Option<StandingMark>),
    /// Something may have moved.
    Moved(PendingState),
    /// It could not be read.
    Unread(Error),
}

/// The state of the repository at a checkpoint.
pub struct NotedState {
    /// The state. Its index is left out where nobody asked for it.
    pub state: Arc<RepositoryState>,
    /// The identity of the repository, where one was known.
    pub(crate) identity: Option<String>,
}

impl Catalog {
    /// Looks at the repository around the workspace; `None` where there is none, or where the workspace is too broad to be captured.
    pub(crate) fn find_repository(&self) -> Option<FoundRepository> {
        let place = self.repository_place()?;
        let stands = |known: &StandingRepository| known.place == place && known.mark.holds();
        if self.standing.borrow().as_ref().is_some_and(stands) {
            return Some(FoundRepository::Stands);
        }
        let began = Instant::now();
        if self.rests_until.get().is_some_and(|until| began < until) {
            return None;
        }
        Some(self.read_repository(&place).unwrap_or_else(|error| {
            self.rests_until.set((began.elapsed() > QUICK).then(|| Instant::now() + REST));
            FoundRepository::Unread(error)
        }))
    }

    /// Returns the repository whose state checkpoints note.
    pub(super) fn repository_place(&self) -> Option<RepositoryPlace> {
        RepositoryPlace::around(&self.workspace.path).filter(|_| self.workspace.scope == Scope::Tree)
    }

    fn read_repository(&self, place: &RepositoryPlace) -> Result<FoundRepository> {
        // First, so that it does not hold if something moves meanwhile.
        let standing = place.standing_mark()?;
        let mark = place.mark()?;
        let is_same = |last: &StateLine| last.state.is_some() && mark.is_some() && last.mark == mark;
        if let Some(last) = last_line(&self.workspace.dir)?.filter(is_same) {
            return Ok(FoundRepository::Same(last, place.clone(), standing));
        }
        let read = || RepositoryNow::at(place.clone()).map(|now| Arc::clone(now.state()));
        let mut state = read()?;
        // A mark from before a change meanwhile would stand for the state from after it.
        let is_still = mark.is_some() && place.mark()? == mark;
        if !is_still {
            // The state that was read may have parts of two moments.
            let again = (0..TRIES).find_map(|_| match read() {
                Ok(now) if now == state => Some(Ok(now)),
                Ok(now) => {
                    state = now;
                    None
                }
                Err(error) => Some(Err(error)),
            });
            let moves = || Error::new(Code::Busy, "the repository keeps changing").path(&place.dir);
            state = again.ok_or_else(moves)??;
        }
        let (mark, standing) = (mark.filter(|_| is_still), standing.filter(|_| is_still));
        let place = place.clone();
        Ok(FoundRepository::Moved(PendingState { place, state, mark, standing, checkpoints: Vec::new() }))
    }

    /// Returns true if a repository is in another state than at a checkpoint, or if that one's is not known.
    pub(crate) fn has_repository_moved(&self, checkpoint: &Checkpoint, found: Option<&FoundRepository>) -> bool {
        // Lines that cannot be read tell of no state.
        let noted = self.state_number(checkpoint).ok().flatten().map(|(state, _)| state);
        match found {
            None | Some(FoundRepository::Unread(_)) => false,
            Some(FoundRepository::Same(line, ..)) => noted != line.state,
            Some(FoundRepository::Stands) => {
                self.standing.borrow().as_ref().is_some_and(|standing| noted != standing.line.state)
            }
            Some(FoundRepository::Moved(pending)) => {
                // A state that is damaged is not known.
                let noted = noted.and_then(|noted| self.kept_state(&self.noted_ref(noted), true).ok().flatten());
                noted.is_none_or(|noted| !is_same(&noted, &pending.state))
            }
        }
    }

    /// Returns the state of the repository at a checkpoint; `None` where that is not known or not kept any more. A large index is read
    /// only with `index`.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub fn noted_state(&self, checkpoint: &Checkpoint, index: bool) -> Result<Option<NotedState>> {
        let Some((state, identity)) = self.state_number(checkpoint)? else { return Ok(None) };
        let state = self.kept_state(&self.noted_ref(state), index)?;
        Ok(state.map(|state| NotedState { state, identity }))
    }

    /// Returns the number of a checkpoint's state, and the identity of the repository.
    fn state_number(&self, checkpoint: &Checkpoint) -> Result<Option<(u64, Option<String>)>> {
        if self.is_foreign(checkpoint) {
            return Ok(None);
        }
        let ordinal = checkpoint.record.ordinal();
        let line = lines(&self.workspace.dir)?.into_iter().rev().find(|line| line.checkpoints.contains(&ordinal));
        Ok(line.and_then(|line| Some((line.state?, line.repository))))
    }
}

impl Timeline {
    /// Writes the state of the repository that the last checkpoints have found, if that is not done yet. Called once whoever wanted them
    /// has the answer. Where another process is at work, the next call does it.
    pub fn keep_repository(&mut self) {
        self.keep_repository_within(Duration::ZERO);
    }

    /// As [`Timeline::keep_repository`], for a process that is about to end.
    pub(crate) fn keep_repository_at_end(&mut self) {
        self.keep_repository_within(PATIENCE);
    }

    fn keep_repository_within(&mut self, wait: Duration) {
        let catalog = self.catalog();
        let is_unproved = |standing: &StandingRepository| !standing.unproved.is_empty();
        if catalog.pending_state.borrow().is_none() && !catalog.standing.borrow().as_ref().is_some_and(is_unproved) {
            return;
        }
        let locked = if wait.is_zero() { self.lock_if_free("git") } else { self.lock_within("git", wait).map(Some) };
        let kept = locked.and_then(|locked| locked.map_or(Ok(()), |locked| locked.keep_states_and_tidy()));
        if let Err(error) = kept {
            not_known(self.catalog(), &error);
        }
    }
}

impl Locked<'_> {
    /// Notes what some new checkpoints have found. A failure costs them nothing but this.
    pub(crate) fn note_repository(&self, checkpoints: &[u64], found: Option<FoundRepository>) {
        let noted = match found {
            None => Ok(()),
            Some(FoundRepository::Stands) => {
                if let Some(standing) = self.catalog.standing.borrow_mut().as_mut() {
                    standing.unproved.extend_from_slice(checkpoints);
                }
                Ok(())
            }
            Some(FoundRepository::Same(line, place, mark)) => {
                self.stand(place, mark, &line);
                self.note_lines(&StateLine { checkpoints: checkpoints.to_vec(), ..line })
            }
            Some(FoundRepository::Unread(error)) => {
                not_known(self.catalog, &error);
                Ok(())
            }
            Some(FoundRepository::Moved(pending)) => self.note_pending(checkpoints, pending),
        };
        noted.unwrap_or_else(|error| not_known(self.catalog, &error));
    }

    /// Remembers how the repository stands at a line. Without a mark, the next look reads all marks.
    fn stand(&self, place: RepositoryPlace, mark: Option<StandingMark>, line: &StateLine) {
        let mark = mark.filter(|_| line.mark.is_some());
        let standing = mark.map(|mark| StandingRepository { place, mark, line: line.clone(), unproved: Vec::new() });
        *self.catalog.standing.borrow_mut() = standing;
    }

    fn note_pending(&self, checkpoints: &[u64], mut pending: PendingState) -> Result<()> {
        let same = |known: &PendingState| known.mark.is_some() && known.mark == pending.mark;
        if let Some(known) = self.catalog.pending_state.borrow_mut().as_mut().filter(|known| same(known)) {
            known.checkpoints.extend_from_slice(checkpoints);
            return Ok(());
        }
        // One state at most waits in memory.
        let kept = self.keep_states();
        pending.checkpoints.extend_from_slice(checkpoints);
        *self.catalog.pending_state.borrow_mut() = Some(pending);
        kept
    }

    /// Writes the state that waits in memory, and proves what a cheap look has seen.
    fn keep_states(&self) -> Result<()> {
        let proved = self.prove_standing();
        self.keep_pending().and(proved)
    }

    fn keep_states_and_tidy(&self) -> Result<()> {
        self.keep_states()?;
        let newest = last_line(&self.catalog.workspace.dir)?.map_or(0, |last| last.newest);
        // Each new state is a reason to look, once.
        let is_new = self.catalog.states_counted.replace(newest) != newest;
        if is_new && self.has_many_states()? { self.shorten_states() } else { Ok(()) }
    }

    fn keep_pending(&self) -> Result<()> {
        let catalog = &*self.catalog;
        let Some(pending) = catalog.pending_state.borrow_mut().take() else { return Ok(()) };
        let last = last_line(&catalog.workspace.dir)?;
        let newest = last.as_ref().map_or(0, |last| last.newest);
        let known = last.and_then(|last| Some((last.state?, last.bytes)));
        // One that is damaged is none to share.
        let standing = known.and_then(|(state, _)| catalog.kept_state(&catalog.noted_ref(state), true).ok().flatten());
        let same = known.filter(|_| standing.is_some_and(|standing| is_same(&standing, &pending.state)));
        let (state, bytes) = match same {
            Some(same) => same,
            None => {
                (self.keep_new_state(newest, &pending.state)?, pending.state.index.as_ref().map_or(0, Vec::len) as u64)
            }
        };
        let line = StateLine {
            checkpoints: pending.checkpoints,
            state: Some(state),
            newest: newest.max(state),
            bytes,
            mark: pending.mark,
            repository: pending.place.identity(),
        };
        self.note_lines(&line)?;
        self.stand(pending.place, pending.standing, &line);
        Ok(())
    }

    /// Keeps a state under a number that none has had, and returns that. `newest` is the highest one that is known.
    fn keep_new_state(&self, newest: u64, now: &Arc<RepositoryState>) -> Result<u64> {
        let (catalog, mut state) = (&*self.catalog, newest + 1);
        // The line that has told of a higher one may be damaged.
        while catalog.local()?.target_of(&catalog.noted_ref(state))?.is_some() {
            state += 1;
        }
        let message = format!("the repository at checkpoints ({state})\n");
        self.keep_state_as((&catalog.noted_ref(state), &message), now, false)?;
        Ok(state)
    }

    /// Looks at all marks, where checkpoints were taken after a cheap look alone, and notes their state if they hold. If they do not,
    /// a program has written into a file of a ref, or git has moved something by now: then that state is not known.
    fn prove_standing(&self) -> Result<()> {
        let found = self.catalog.standing.borrow_mut().take_if(|standing| !standing.unproved.is_empty());
        let Some(StandingRepository { place, mark, line, unproved }) = found else { return Ok(()) };
        let is_proved = place.mark()?.is_some_and(|now| line.mark == Some(now));
        let (state, seen) = (line.state.filter(|_| is_proved), line.mark.filter(|_| is_proved));
        self.note_lines(&StateLine { checkpoints: unproved, state, mark: seen, ..line.clone() })?;
        if is_proved {
            self.stand(place, Some(mark), &line);
        }
        Ok(())
    }

    fn note_lines(&self, line: &StateLine) -> Result<()> {
        append(&self.catalog.workspace.dir, line, &self.lock)
    }

    /// Writes the file anew if it is long. Called in idle time.
    pub(crate) fn tidy_states(&self) -> Result<()> {
        if length(&self.catalog.workspace.dir) > LONG { self.shorten_states() } else { Ok(()) }
    }

    /// Drops the states of checkpoints that are gone.
    pub(crate) fn drop_states_of_gone(&self) -> Result<()> {
        let known = lines(&self.catalog.workspace.dir)?;
        let there = self.ordinals(&|_| true)?;
        let is_there = |line: &StateLine| line.checkpoints.iter().all(|checkpoint| there.contains(checkpoint));
        if known.iter().all(is_there) { Ok(()) } else { self.shorten_states() }
    }

    fn ordinals(&self, is_kept: &dyn Fn(&Checkpoint) -> bool) -> Result<HashSet<u64>> {
        let all = self.catalog.all()?;
        Ok(all.checkpoints.iter().filter(|one| is_kept(one)).map(|one| one.record.ordinal()).collect())
    }

    /// Returns true if there are many more states than are kept.
    fn has_many_states(&self) -> Result<bool> {
        let lines = lines(&self.catalog.workspace.dir)?.into_iter();
        let sizes: BTreeMap<u64, u64> = lines.filter_map(|line| Some((line.state?, line.bytes))).collect();
        Ok(sizes.len() as u64 >= 2 * KEPT || sizes.values().sum::<u64>() > 2 * MOST_BYTES)
    }

    /// Drops what is noted of checkpoints that are gone, and the oldest states that no pinned checkpoint has.
    fn shorten_states(&self) -> Result<()> {
        let dir = &self.catalog.workspace.dir;
        let (pins, known) = (Pins::load(dir)?, lines(dir)?);
        let Some(mut last) = known.last().cloned() else { return Ok(()) };
        let (there, pinned) = (self.ordinals(&|_| true)?, self.ordinals(&|one| pins.holds(&one.record))?);
        last.checkpoints.retain(|checkpoint| there.contains(checkpoint));
        if last.checkpoints.is_empty() {
            // Its number stays used.
            last = StateLine { state: None, mark: None, ..last };
        }
        // The later one of two lines counts.
        let of: BTreeMap<u64, &StateLine> =
            known.iter().flat_map(|line| line.checkpoints.iter().map(move |checkpoint| (*checkpoint, line))).collect();
        let mut kept: BTreeMap<u64, StateLine> = BTreeMap::new();
        for (checkpoint, line) in of.into_iter().filter(|(checkpoint, _)| there.contains(checkpoint)) {
            let Some(state) = line.state else { continue };
            let entry = kept.entry(state).or_insert_with(|| StateLine { checkpoints: Vec::new(), ..line.clone() });
            entry.checkpoints.push(checkpoint);
        }
        let (mut bytes, mut count) = (0, 0);
        for state in kept.keys().rev().copied().collect::<Vec<_>>() {
            let line = &kept[&state];
            let is_new = count < KEPT && (bytes + line.bytes <= MOST_BYTES || count == 0);
            let is_pinned = line.checkpoints.iter().any(|checkpoint| pinned.contains(checkpoint));
            if is_new || is_pinned {
                (bytes, count) = (bytes + line.bytes, count + u64::from(!is_pinned));
            } else {
                kept.remove(&state);
            }
        }
        let left: BTreeSet<u64> = kept.keys().copied().chain(last.state).collect();
        let old: BTreeSet<u64> =
            known.iter().filter_map(|line| line.state).filter(|state| !left.contains(state)).collect();
        *self.catalog.standing.borrow_mut() = None;
        // Before their lines: one that is left behind would be found by nobody.
        self.catalog.drop_kept(old.iter().map(|state| self.catalog.noted_ref(*state)))?;
        // The last line stays where it is: it has the mark.
        let lines: Vec<&StateLine> = kept.values().chain([&last]).collect();
        rewrite(dir, &lines, &self.lock)
    }
}

/// Returns true if two states differ by nothing but what git knows of files on the disk.
fn is_same(one: &RepositoryState, other: &RepositoryState) -> bool {
    (&one.refs, &one.stash, &one.operation) == (&other.refs, &other.stash, &other.operation) && stages_alike(one, other)
}

/// Notes for `piton status` that the repository of a checkpoint is not known.
fn not_known(catalog: &Catalog, error: &Error) {
    let text = format!("the state of the repository at a checkpoint is unknown: {}", error.text());
    if let Err(error) = mishaps::note_once(&catalog.home, &text) {
        tracing::warn!(%error, "could not record a mishap");
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::checkpoint::records::home::Home;
    use crate::checkpoint::records::workspace::Workspace;
    use crate::checkpoint::{Selection, Take};
    use crate::model::checkpoint::CheckpointKind;
    use crate::sys::interrupt::Flow;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    /// A workspace in a repository, and the timeline of a process that stays.
    struct Place {
        root: PathBuf,
        count: u32,
        timeline: Timeline,
        _scratch: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            let scratch = tempfile::tempdir().unwrap();
            let (home, root) = (Home::at(&scratch.path().join("home")).unwrap(), scratch.path().join("work"));
            std::fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
            std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            let workspace = Workspace::open(&home, &root).unwrap();
            let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
            let place = Place {
                timeline: Timeline::open(&home, workspace, policy).unwrap(),
                root,
                count: 0,
                _scratch: scratch,
            };
            place.replace("main", A);
            place
        }

        fn main(&self) -> PathBuf {
            self.root.join(".git/refs/heads/main")
        }

        /// Moves a branch as git does.
        fn replace(&self, name: &str, value: &str) {
            let (lock, file) = (self.main().with_extension("lock"), self.main().with_file_name(name));
            std::fs::write(&lock, value).unwrap();
            std::fs::rename(lock, file).unwrap();
        }

        /// Takes a checkpoint; a file changes before, so that there is one to take.
        fn take(&mut self) -> Checkpoint {
            self.count += 1;
            std::fs::write(self.root.join("file"), self.count.to_string()).unwrap();
            let take = Take { selection: Selection::default(), ..Take::of(CheckpointKind::Manual, "local", "one") };
            self.timeline.take(&take, &|| Flow::Continue).unwrap().checkpoint
        }

        /// Takes checkpoints until the repository is known to stand as it is.
        fn stand(&mut self) {
            let until = Instant::now() + Duration::from_secs(20);
            while self.timeline.catalog().standing.borrow().is_none() {
                assert!(Instant::now() < until, "never from another time than just now");
                self.take();
                self.timeline.keep_repository();
            }
        }

        fn known(&self, checkpoint: &Checkpoint) -> Option<String> {
            let found = self.timeline.catalog().noted_state(checkpoint, false).unwrap();
            found.and_then(|found| found.state.commit().map(str::to_owned))
        }
    }

    #[test]
    fn a_checkpoint_by_a_cheap_look_has_the_state_of_its_moment() {
        let mut place = Place::new();
        place.stand();
        let first = place.take();
        let unproved = |place: &Place| {
            let standing = place.timeline.catalog().standing.borrow();
            standing.as_ref().map(|standing| standing.unproved.clone())
        };
        assert_eq!((unproved(&place), place.known(&first)), (Some(vec![first.record.ordinal()]), None));
        place.timeline.keep_repository();
        assert_eq!((unproved(&place), place.known(&first)), (Some(vec![]), Some(A.to_owned())));
        // One that is not proved before git moves something is not known.
        let doubtful = place.take();
        place.replace("main", B);
        let second = place.take();
        place.timeline.keep_repository();
        assert_eq!((place.known(&doubtful), place.known(&second)), (None, Some(B.to_owned())));
        assert_eq!(place.known(&first), Some(A.to_owned()));
    }

    #[test]
    fn a_ref_that_a_program_has_written_into_makes_no_wrong_state() {
        let mut place = Place::new();
        place.stand();
        let before = place.take();
        place.timeline.keep_repository();
        std::fs::write(place.main(), B).unwrap();
        let doubtful = place.take();
        place.timeline.keep_repository();
        assert_eq!((place.known(&before), place.known(&doubtful)), (Some(A.to_owned()), None));
        let after = place.take();
        place.timeline.keep_repository();
        assert_eq!(place.known(&after), Some(B.to_owned()));
    }

    #[test]
    fn a_doubt_about_one_checkpoint_is_none_about_the_next() {
        let mut place = Place::new();
        place.stand();
        let doubtful = place.take();
        // A git begins to move a ref, and gives up.
        let lock = place.main().with_extension("lock");
        std::fs::write(&lock, "").unwrap();
        place.timeline.keep_repository();
        std::fs::remove_file(&lock).unwrap();
        place.stand();
        let later = place.take();
        place.timeline.keep_repository();
        assert_eq!((place.known(&doubtful), place.known(&later)), (None, Some(A.to_owned())));
    }

    #[test]
    fn a_number_is_used_once_also_where_its_line_is_damaged() {
        let mut place = Place::new();
        let (c, mut all) = ("3".repeat(40), Vec::new());
        for (value, is_damaged) in [(A, false), (B, false), (A, true), (c.as_str(), false)] {
            let file = place.timeline.workspace().dir.join("git-states");
            if is_damaged {
                let text = std::fs::read_to_string(&file).unwrap();
                std::fs::write(&file, text.replace("\"newest\":2", "\"newest\":1")).unwrap();
            }
            place.replace("main", value);
            all.push(place.take());
            place.timeline.keep_repository();
        }
        let known: Vec<Option<String>> = all.iter().map(|one| place.known(one)).collect();
        assert_eq!(known, [Some(A.to_owned()), None, Some(A.to_owned()), Some(c)]);
        let last = last_line(&place.timeline.workspace().dir).unwrap().unwrap();
        assert_eq!((last.state, last.newest), (Some(3), 3), "2 is taken");
    }

    #[test]
    fn the_newest_states_stay_with_all_their_checkpoints_and_those_of_pinned_ones() {
        let mut place = Place::new();
        let states = |place: &Place| -> Vec<(u64, usize)> {
            let lines = lines(&place.timeline.workspace().dir).unwrap();
            let known = lines.iter().filter_map(|line| Some((line.state?, line.checkpoints.clone())));
            let mut all: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            known.for_each(|(state, checkpoints)| all.entry(state).or_default().extend(checkpoints));
            all.into_iter().map(|(state, checkpoints)| (state, checkpoints.len())).collect()
        };
        for n in 0..2 * KEPT {
            place.replace("main", &format!("{n:040}"));
            place.take();
            let taken = place.take();
            if n == 1 {
                let lock = place.timeline.lock("test").unwrap();
                let mut pins = Pins::load(&lock.catalog.workspace.dir).unwrap();
                pins.put(&taken.record, true);
                pins.save(&lock.catalog.workspace.dir, &lock.lock).unwrap();
            }
            place.timeline.keep_repository();
        }
        let expected: Vec<(u64, usize)> =
            std::iter::once(2).chain(KEPT + 1..=2 * KEPT).map(|state| (state, 2)).collect();
        assert_eq!(states(&place), expected);
        let dropped = place.timeline.catalog().kept_state(&place.timeline.catalog().noted_ref(3), false).unwrap();
        assert!(dropped.is_none());
    }
}
