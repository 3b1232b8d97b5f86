//! The worker's part behind the checkpoint of an event: notes, and the facts for the answer.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::actions::ActionNote;
use super::collisions::CollisionQuestion;
use super::deadlines::Outcome;
use super::links::LinkedPlaces;
use super::protect::{self, Protected};
use super::reach;
use super::record::NewRecord;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::history::turn_end::TurnName;
use crate::error::Result;
use crate::model::effect::Verdict;
use crate::sys::interrupt::Flow;

/// The work behind a checkpoint that was taken for an event, or that failed.
pub(super) struct Finish {
    /// The checkpoint that was asked for.
    pub take: Take,
    /// True if the action may destroy more than its targets.
    pub reaches_all: bool,
    /// Paths that are known before to be in no checkpoint.
    pub beyond: Vec<Gap>,
    /// The verdict on the action, and where it runs.
    pub judged: Option<(Verdict, PathBuf)>,
    /// The root of a workspace that is captured as a whole. In a directory that is too broad, a repository is a workspace of its own.
    pub tree: Option<PathBuf>,
    /// The note that the action begins.
    pub note: Option<ActionNote>,
    /// The record of the action.
    pub record: Option<NewRecord>,
    /// The turn that begins with the checkpoint.
    pub begins: Option<TurnName>,
    /// The question for the work of others that the action would destroy.
    pub question: Option<CollisionQuestion>,
    /// The time at which the client is answered without the checkpoint.
    pub deadline: Instant,
    /// The time of the event on the file system's clock.
    pub since: i64,
    /// True if the links of the workspace are followed.
    pub follows_links: bool,
}

impl Finish {
    /// Does the work, and returns the result for the answer.
    pub(super) fn outcome(self, timeline: &mut Timeline, protected: Result<Protected>) -> Outcome {
        if let (Some(turn), Ok(base)) = (&self.begins, &protected) {
            protect::begin_turn(timeline, turn, base);
        }
        let mut scanned = Duration::ZERO;
        if let Some(mut note) = self.note {
            let files = protected.as_ref().ok().map(Protected::checkpoint);
            note.action.checkpoint = files.map(|files| files.record.ordinal());
            if matches!(protected, Ok(Protected::Held(_))) {
                scanned = note.take_extra_step(timeline, self.deadline);
            }
            note.write(timeline, Instant::now() > self.deadline, files.map(|files| files.id), &|| Flow::Continue);
        }
        if let Some(record) = self.record {
            record.write(timeline, &protected, Instant::now() > self.deadline);
        }
        let linked = match self.tree.as_ref().filter(|_| self.follows_links) {
            Some(root) => LinkedPlaces::behind(root, &timeline.links(), timeline.home().path()),
            None => LinkedPlaces::default(),
        };
        let judged = self.judged.as_ref();
        let repositories = self.tree.zip(judged).map(|(root, (verdict, cwd))| reach::repositories(&root, cwd, verdict));
        // Looked up only for a client that was answered `late`: a timely answer has no use for it.
        let is_late = Instant::now() > self.deadline;
        let touched = if is_late { timeline.touched_since(self.since) } else { Vec::new() };
        let reach = (self.reaches_all, repositories.as_deref().unwrap_or_default());
        let found = protected.as_ref().map(|done| protect::not_held(timeline, done, &self.take, reach));
        let not_held = found.unwrap_or_default().into_iter().chain(self.beyond).collect();
        let asked = self.question.as_ref().zip(protected.as_ref().ok());
        let collisions = asked.map(|(question, held)| question.ask(timeline, held.checkpoint()));
        Outcome { protected, touched, not_held, collisions: collisions.unwrap_or_default(), linked, scanned }
    }
}
