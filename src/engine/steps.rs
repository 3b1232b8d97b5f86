//! Steps before actions that need no checkpoint, or whose named files are saved already.
//!
//! A command that names nothing to destroy may still destroy: `git commit` runs hooks, `npm ci` runs scripts. If something changed since
//! the last capture, a step is taken before each action, unless all programs that can run are readers ([`Verdict::only_reads`]). No reply
//! and no list shows these steps. `rm f` destroys another file than the one that the classifier names if a `cd` of the same line did not
//! happen: so it gets a step, too.
//!
//! In a workspace that is not watched, the step is a scan. It is taken while scans have used a small part of the session's time.

use std::time::{Duration, Instant};

use super::actions::{ActionNote, note_mishap};
use super::decision::Protection;
use super::scan_time::since_boot;
use super::session::Session;
use super::state::SessionState;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Code;
use crate::filter::database::is_restless;
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::{Programs, Verdict};
use crate::model::id::ObjectId;
use crate::sys::clock::file_clock;
use crate::sys::interrupt::{Flow, Interrupt};

/// The reason in replies to actions that get no step any more, because each would cost a scan.
const UNWATCHED: &str = "changes are not watched here, and scans have used a tenth of the session's time: changes since the \
                                    last checkpoint are saved only before actions that piton takes for destructive";

/// The time after which a step is taken although only files changed that change all the time.
const RESTLESS: i64 = 2_000_000_000;

/// The time before the deadline of a reply at which an extra step is given up.
const BEFORE_DEADLINE: Duration = Duration::from_millis(250);

/// A step to take before an action, in case that something changed.
#[derive(Clone)]
pub(super) struct Step {
    take: Box<Take>,
    /// True if it may be a scan.
    may_scan: bool,
}

impl SessionState {
    /// Counts the time of a scan for a step; none where nothing was scanned.
    pub(super) fn has_scanned(&mut self, used: Duration) {
        if !used.is_zero() {
            self.scans.add(used, since_boot());
            self.keep();
        }
    }
}

/// Returns true if a step of a moment ago has everything as it is now, except files that change all the time.
fn only_restless(timeline: &mut Timeline) -> bool {
    let newest = |timeline: &Timeline| timeline.catalog().all().ok()?.newest_whole().cloned(); // without it a step is taken
    let Some(looked) =
        newest(timeline).filter(|newest| newest.record.is_quiet()).and_then(|newest| newest.record.looked)
    else {
        return false;
    };
    if !(0..RESTLESS).contains(&file_clock().saturating_sub(looked)) {
        return false;
    }
    let touched = timeline.touched_since(looked);
    !touched.is_empty() && touched.iter().all(|path| is_restless(path.name()))
}

impl ActionNote {
    /// Takes the step and notes the action, on the worker's thread. `files` is the checkpoint that holds the files as they are before the
    /// action, if there is one. After `deadline` the action may have begun. Returns the time for which a workspace was scanned that is not
    /// watched.
    pub(super) fn step_and_write(
        mut self,
        timeline: &mut Timeline,
        files: Option<ObjectId>,
        deadline: Instant,
        control: Interrupt<'_>,
    ) -> Duration {
        let mut scanned = Duration::ZERO;
        let files = self.take_step(timeline, &mut scanned, control).or(files);
        self.write(timeline, Instant::now() > deadline, files, control);
        scanned
    }

    /// Takes the step before an action whose named files a checkpoint has already, which stays the action's checkpoint. Gives up
    /// shortly before `deadline`. Returns the time for which a workspace was scanned that is not watched.
    pub(super) fn take_extra_step(&mut self, timeline: &mut Timeline, deadline: Instant) -> Duration {
        let (mut scanned, held) = (Duration::ZERO, self.action.checkpoint);
        let control = || if Instant::now() + BEFORE_DEADLINE < deadline { Flow::Continue } else { Flow::Stop };
        self.take_step(timeline, &mut scanned, &control);
        self.action.checkpoint = held;
        scanned
    }

    /// Takes the step. Returns the checkpoint that has the files as they are now. `scanned` is the time that it took where the workspace
    /// is not watched.
    fn take_step(
        &mut self,
        timeline: &mut Timeline,
        scanned: &mut Duration,
        control: Interrupt<'_>,
    ) -> Option<ObjectId> {
        let (is_live, began) = (timeline.is_live(), Instant::now());
        let step = self.step.take().filter(|step| if is_live { !only_restless(timeline) } else { step.may_scan })?;
        let taken = timeline.take(&step.take, control);
        if !is_live {
            *scanned = began.elapsed();
        }
        match taken {
            Ok(taken) => {
                self.action.checkpoint = Some(taken.checkpoint.record.ordinal());
                Some(taken.checkpoint.id)
            }
            Err(error) if error.code() == Code::ShuttingDown => None,
            Err(error) => {
                let text = format!("no step was taken before an action: {}", error.text());
                note_mishap(timeline.home(), &text);
                None
            }
        }
    }
}

impl Session {
    /// Adds the step to the note of an action that calls for no checkpoint. Returns the answer to the client if it is left out, because it
    /// would be one scan too many.
    pub(super) fn add_step(
        &self,
        note: &mut ActionNote,
        open: &OpenWorkspace,
        verdict: &Verdict,
        reason: &str,
    ) -> Option<Protection> {
        note.step = self.step_before(open, verdict, reason);
        let is_scan = |_: &&Step| !open.worker.watcher().warm;
        let step = note.step.as_ref().filter(|step| !step.may_scan).filter(is_scan);
        step.map(|_| Protection::NotNeeded(Some(UNWATCHED.to_owned())))
    }

    /// Adds the step to the note of an action that names the files that it destroys. It is taken if a checkpoint has them already. Where
    /// other programs may run, everything is compared with the last checkpoint anyway.
    pub(super) fn add_extra_step(
        &self,
        note: Option<&mut ActionNote>,
        open: &OpenWorkspace,
        verdict: &Verdict,
        reason: &str,
    ) {
        if let Some(note) = note.filter(|_| verdict.programs == Programs::Writers) {
            note.step = self.step_before(open, verdict, reason);
        }
    }

    /// Returns the step to take before an action; `None` where it only reads. If the turn has no checkpoint yet, the step is a base capture.
    fn step_before(&self, open: &OpenWorkspace, verdict: &Verdict, reason: &str) -> Option<Step> {
        if verdict.only_reads() || open.workspace.scope != Scope::Tree {
            return None;
        }
        let (run, turn) = self.recording();
        let main = self.state().turns.checkpoint(&open.workspace.id).and_then(|main| main.id.parse().ok()); // a damaged id is none
        let mut take = Take::of(CheckpointKind::Step, &run, reason);
        (take.draft.turn, take.draft.standing, take.draft.soon) = (turn, main, true);
        let may_scan = self.state().scans.allows(since_boot());
        Some(Step { take: Box::new(take), may_scan })
    }
}
