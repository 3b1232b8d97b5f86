//! Codons: the named steps of a run, each with its typed checkpoints.
//!
//! Crash order: objects → ref → run state. A run's file may still name a codon that is recorded already, which does no
//! harm. A codon counts as running only while a process holds the run's lock, which the kernel frees with that process.

use super::at_work::clients_of;
use super::run::{NO_CODON, Run, RunEnding, Running, dir};
use crate::checkpoint::capture::request::{CodonTag, Take, Taken};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::marks::AtWork;
use crate::error::{Code, Error, Result};
use crate::filter::Tracked;
use crate::model::checkpoint::CheckpointKind;
use crate::model::text::printable;
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::fs::durable::create_private_dir;
use crate::sys::interrupt::Flow;

/// The longest id of a codon, in bytes.
const MAX_ID: usize = 128;

/// The longest name of a codon, in characters.
const MAX_NAME: usize = 200;

/// A codon that begins.
#[derive(Clone, Debug)]
pub struct NewCodon {
    /// `build`, or `build#2` in a loop.
    pub id: String,
    /// The name for people; `None` has the id stand for it.
    pub name: Option<String>,
    /// Patterns that are tracked from now on.
    pub tracked: Vec<String>,
    /// The client of this process that begins it.
    pub client: u64,
}

/// An event of a codon that is recorded.
#[derive(Clone, Debug)]
pub struct CodonMark {
    /// `rig-setup`, `completed`, `error` or `skipped`.
    pub kind: CheckpointKind,
    /// The id; absent for the running one.
    pub id: Option<String>,
    /// The name of a codon that is skipped before it began; `None` has its id stand for it. A running one keeps its own.
    pub name: Option<String>,
    /// One line for people, already redacted.
    pub reason: Option<String>,
    /// The client's name of the open turn; `None` outside of turns.
    pub turn: Option<String>,
}

/// A client of a run that disconnects.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The client, as [`NewCodon::client`] names it.
    pub client: u64,
    /// True if it had the run open.
    pub was_open: bool,
}

impl NewCodon {
    /// Refuses a malformed id or pattern.
    pub(crate) fn check(&self) -> Result<()> {
        checked_id(&self.id)?;
        Tracked::new(&self.tracked, &[]).map_err(|error| error.field("trackedFiles")).map(drop)
    }
}

impl Locked<'_> {
    /// Begins a codon, and returns all patterns that are in force from now on. Records nothing. A codon that brings no patterns
    /// brings those of the configuration.
    ///
    /// # Errors
    /// `codon-running` while one of the run runs; `bad-request` for an id or a pattern that is none; those of the lock and
    /// of writing.
    pub(crate) fn start_codon(&mut self, run: &str, codon: &NewCodon) -> Result<Vec<String>> {
        let (catalog, workspace) = (&*self.catalog, &self.catalog.workspace.dir);
        self.codons.refuse_running(workspace, run)?;
        create_private_dir(&dir(workspace))?;
        self.codons.begin(workspace, run, codon.client)?;
        let name = codon.name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(&codon.id);
        let name = crate::model::text::cut(&printable(name), MAX_NAME);
        let brought = if codon.tracked.is_empty() { &catalog.policy.tracked_files } else { &codon.tracked };
        let changed = self.change_run(run, |state| {
            if let Some(cut_off) = &state.running {
                tracing::warn!(run, codon = cut_off.id, "a codon was interrupted, and its end was not recorded");
            }
            let tracked = state.tracked.get_or_insert_default();
            let new = brought.iter().filter(|pattern| !tracked.contains(pattern)).cloned().collect::<Vec<_>>();
            tracked.extend(new);
            state.running = Some(Running { id: codon.id.clone(), name, since: now_ms() });
            (state.ended, state.status) = (None, None);
        });
        if let Err(error) = changed {
            self.codons.end(run);
            return Err(error);
        }
        catalog.patterns_of(run, false)
    }

    /// Records an event of a codon, even when no file changed.
    ///
    /// # Errors
    /// `no-such-codon` when it does not run (only `skipped` is allowed for one that never began); `codon-running` when
    /// another process runs it; those of taking a checkpoint.
    pub(crate) fn mark_codon(&mut self, run: &str, mark: &CodonMark, control: &dyn Fn() -> Flow) -> Result<Taken> {
        if self.codons.client(run).is_none() {
            self.codons.refuse_running(&self.catalog.workspace.dir, run)?;
        }
        let running = self.catalog.run_state(run)?.running;
        let same = |running: &Running| mark.id.as_ref().is_none_or(|id| *id == running.id);
        let codon = match (running, &mark.id) {
            (Some(running), _) if same(&running) => running,
            (None, Some(id)) if mark.kind == CheckpointKind::Skipped => {
                checked_id(id)?;
                Running { id: id.clone(), name: mark.name.clone().unwrap_or_else(|| id.clone()), since: now_ms() }
            }
            (running, id) => return Err(not_running(run, id.as_deref(), running)),
        };
        let why = mark.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let reason = format!("codon {} {}{why}", codon.id, mark.kind.as_str());
        let mut take = Take::of(mark.kind, run, &reason);
        take.draft.turn.clone_from(&mark.turn);
        let taken = self.take_codon(&codon, take, control)?;
        if mark.kind != CheckpointKind::RigSetup {
            self.finish_codon(run)?;
        }
        Ok(taken)
    }

    /// Takes a checkpoint of a codon, with its name.
    fn take_codon(&mut self, codon: &Running, mut take: Take, control: &dyn Fn() -> Flow) -> Result<Taken> {
        let codon = CodonTag { id: codon.id.clone(), name: codon.name.clone(), since: Some(codon.since) };
        take.draft.codon = Some(codon);
        self.take(&take, control).map(|(taken, _)| taken)
    }

    fn finish_codon(&mut self, run: &str) -> Result<()> {
        self.codons.end(run);
        if Run::load(&self.catalog.workspace.dir, run)?.is_none_or(|state| state.running.is_none()) {
            return Ok(());
        }
        self.change_run(run, |state| state.running = None).map(drop)
    }

    /// Records that a client of a run disconnected while its codon ran, or while the run was open. The run ends with its
    /// last client.
    ///
    /// # Errors
    /// Returns the errors of taking a checkpoint and of writing.
    pub(crate) fn exit(
        &mut self,
        run: &str,
        departure: Departure,
        turn: Option<String>,
        control: &dyn Fn() -> Flow,
    ) -> Result<()> {
        let begun_by = self.codons.client(run);
        let is_own = begun_by == Some(departure.client);
        let state = Run::load(&self.catalog.workspace.dir, run)?;
        let is_open = |run: &Run| !matches!(run.status, Some(RunEnding::Completed | RunEnding::Error));
        // A run goes on with another client of it, and a codon with the client that began it.
        let is_last = clients_of(&self.catalog.workspace.dir, run) != AtWork::Now;
        let is_idle = begun_by.is_none() && is_last;
        if is_own || (departure.was_open && is_idle && state.as_ref().is_none_or(is_open)) {
            self.record_exit(run, turn, control)?;
        }
        if is_last && (is_own || is_idle) && state.is_some_and(|state| is_open(&state)) {
            let exit = (Some(rfc3339(now_ms())), Some(RunEnding::Exit));
            self.change_run(run, |run| (run.ended, run.status) = exit)?;
        }
        Ok(())
    }

    /// Records the checkpoint at the end of a client's stream.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(crate) fn record_exit(&mut self, run: &str, turn: Option<String>, control: &dyn Fn() -> Flow) -> Result<Taken> {
        let is_here = self.codons.client(run).is_some();
        let running = self.catalog.run_state(run)?.running.filter(|_| is_here);
        let taken = match running {
            Some(codon) => {
                let mut take =
                    Take::of(CheckpointKind::Exit, run, "the agent's stream ended while the codon was running");
                take.draft.turn = turn;
                self.take_codon(&codon, take, control)?
            }
            None => {
                let name = "The agent's stream ended".to_owned();
                let mut take = Take::of(CheckpointKind::Exit, run, "the agent's stream ended while the run was open");
                take.draft.codon = Some(CodonTag { id: NO_CODON.to_owned(), name, since: None });
                take.draft.turn = turn;
                self.take(&take, control)?.0
            }
        };
        self.finish_codon(run)?;
        Ok(taken)
    }
}

/// Checks an id that stands whole in a commit's first line and in `run:codon:type`.
fn checked_id(id: &str) -> Result<()> {
    let plain = !id.is_empty() && id.len() <= MAX_ID && id == printable(id) && id.trim() == id && !id.contains(':');
    if plain {
        return Ok(());
    }
    Err(Error::new(Code::BadRequest, "`codonId` must be 1 to 128 bytes of printable text without `:`").field("codonId"))
}

fn not_running(run: &str, id: Option<&str>, running: Option<Running>) -> Error {
    let named = id.map_or("no codon was given and none".to_owned(), |id| format!("codon `{}`", printable(id)));
    let error = Error::new(Code::NoSuchCodon, format!("{named} is not running in run `{run}`")).field("codonId");
    match running {
        Some(running) => error.hint(format!("`{}` is", running.id)).candidates(vec![running.id]),
        None => error.hint("say `codon.start` first"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Home, Timeline, Workspace};

    #[test]
    fn a_client_that_goes_away_cuts_off_its_own_codon_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a"), "1").unwrap();
        let home = Home::at(&dir.path().join("home")).unwrap();
        let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
        let mut timeline = Timeline::open(&home, Workspace::open(&home, &root).unwrap(), policy).unwrap();
        let go_on = || Flow::Continue;
        let codon = |client| NewCodon { id: "build".into(), name: None, tracked: Vec::new(), client };
        timeline.start_codon("r", &codon(1)).unwrap();
        assert_eq!(timeline.start_codon("r", &codon(2)).unwrap_err().code(), Code::CodonRunning);
        for (client, was_open, left, running) in
            [(2, false, 0, true), (2, true, 0, true), (1, false, 1, false), (1, true, 2, false)]
        {
            timeline.exit("r", Departure { client, was_open }, None, &go_on).unwrap();
            assert_eq!(timeline.catalog().all().unwrap().checkpoints.len(), left, "{client} {was_open}");
            assert_eq!(timeline.running_codon("r").unwrap().is_some(), running, "{client} {was_open}");
        }
    }
}
