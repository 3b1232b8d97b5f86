//! Judges the changes before and after a capture within a turn.

use std::collections::BTreeSet;
use std::path::Path;

use super::attribution::{Judge, JudgedTurn, TICK};
use super::turn_clock::TurnClock;
use crate::agents::{Client, ReportedEnds};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::records::action_window::ActionWindow;
use crate::checkpoint::records::windows::{Interval, OpenTurn, Windows};
use crate::model::id::ObjectId;
use crate::model::manifest::ManifestEntry;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;

/// The inputs for judging the changes of a turn, or of a part of it.
pub(super) struct TurnTime<'w> {
    pub(super) turn: &'w OpenTurn,
    pub(super) windows: &'w Windows,
    /// The end of the turn, or the present moment, since the start of the machine.
    pub(super) until: i64,
    /// True if the turn has ended.
    pub(super) is_over: bool,
    pub(super) clock: &'w TurnClock,
    /// The root of the workspace.
    pub(super) root: &'w Path,
    /// Returns true if a command of git of the turn left a path with this blob in the index.
    pub(super) is_staged: &'w dyn Fn(&RelPath, ObjectId) -> bool,
}

impl TurnTime<'_> {
    /// Returns the judge of everything since the turn's beginning.
    pub(super) fn judge(&self) -> Judge<'_> {
        let restored = self.turn.restored.iter().cloned().collect();
        Judge::new(&self.part(self.turn.since, self.until), self.windows, restored)
    }

    /// Returns a part of the turn's time.
    fn part(&self, since: i64, until: i64) -> JudgedTurn<'_> {
        let client = self.turn.client.as_deref().and_then(|name| Client::named(name).ok()); // others are not in the table
        let reports_ends = client.map(|client| client.reported_ends() != ReportedEnds::Never);
        JudgedTurn { actor: &self.turn.actor, since, until, is_over: self.is_over, reports_ends }
    }

    /// Returns the turn's share in the change of a path from `before` to `after`.
    pub(super) fn share(
        &self,
        judge: &Judge<'_>,
        path: &RelPath,
        before: Option<&ManifestEntry>,
        after: Option<&ManifestEntry>,
    ) -> Attribution {
        let share = judge.share(path, |path, since| self.clock.is_later(self.root, path, since));
        // git did not write a file whose content is unchanged.
        let after = after.filter(|after| before.is_none_or(|before| before.id != after.id));
        let is_staged = || after.is_some_and(|entry| (self.is_staged)(path, entry.id));
        // A deleted path has no time of its own, and the time of its directory may be that of a later change.
        let may_have_deleted = || judge.may_have_deleted_later(path) || judge.may_have_deleted_unwatched(path);
        // Files that a checkout, reset or merge of the turn has written are as git has them in its index.
        match self.clock.doubted(share.who) {
            Attribution::Likely if share.is_gits && is_staged() => Attribution::Sure,
            // Restoring an absent path overwrites nothing.
            Attribution::Outside if may_have_deleted() && is_absent(self.root, path) => Attribution::Likely,
            who => who,
        }
    }

    /// Returns the judge of who wrote what a capture contains. The action that the capture was taken for begins after it, and had changed
    /// nothing yet. `writers` are the windows without actions that only delete.
    pub(super) fn judge_before<'j>(&'j self, capture: &Checkpoint, writers: &'j Windows) -> Judge<'j> {
        let restored = self.turn.restored.iter().cloned().collect();
        Judge::new(&self.part(self.turn.since, self.moment_of(capture)), writers, restored)
            .with_ended_by(self.beginning_of(capture).saturating_add(TICK), writers)
    }

    /// Returns the judge of what changed after a capture.
    pub(super) fn judge_after(&self, capture: &Checkpoint) -> Judge<'_> {
        self.judge_since(self.moment_of(capture))
    }

    /// As [`TurnTime::judge_after`], and includes changes that may have happened during the capture.
    pub(super) fn judge_from(&self, capture: &Checkpoint) -> Judge<'_> {
        self.judge_since(known_at(self.windows, self.beginning_of(capture)))
    }

    fn judge_since(&self, moment: i64) -> Judge<'_> {
        Judge::new(&self.part(moment, self.until), self.windows, BTreeSet::new())
    }

    /// Returns the moment at which a capture began, since the start of the machine; up to one [`TICK`] too early.
    fn beginning_of(&self, capture: &Checkpoint) -> i64 {
        capture.record.looked.unwrap_or_default().saturating_sub(self.clock.offset())
    }

    /// Returns the moment up to which a capture contains all changes.
    fn moment_of(&self, capture: &Checkpoint) -> i64 {
        answered_at(self.windows, &self.turn.actor, self.beginning_of(capture), capture.record.ordinal())
    }
}

/// Returns the end of watcher coverage for a capture of an actor that began at `began`, or up to one [`TICK`] later, and became the
/// checkpoint `ordinal`. The watcher answered after the capture began and before the action that the capture protects.
fn answered_at(windows: &Windows, actor: &str, began: i64, ordinal: u64) -> i64 {
    let latest = began.saturating_add(TICK);
    // An action within the tick began before the capture if an older checkpoint protects the action.
    let is_earlier =
        |action: &ActionWindow| action.from <= latest && action.checkpoint.is_some_and(|older| older < ordinal);
    let own = windows.actions.iter().filter(|action| action.actor == actor && action.from >= began);
    let action = own.filter(|action| !is_earlier(action)).map(|action| action.from).min().unwrap_or(i64::MAX);
    let is_around = |interval: &&Interval| {
        let is_before_action = interval.from <= began || interval.to <= action;
        is_before_action && interval.from <= latest && began <= interval.to
    };
    windows.seen.iter().filter(is_around).map(|interval| interval.to).max().unwrap_or(began)
}

/// Returns the first watcher answer within two [`TICK`]s after a capture began; without one, its beginning.
fn known_at(windows: &Windows, began: i64) -> i64 {
    let latest = began.saturating_add(2 * TICK);
    let answers = windows.seen.iter().map(|interval| interval.to);
    answers.filter(|answer| (began..=latest).contains(answer)).min().unwrap_or(began)
}

/// Returns true if nothing is at a path below a root. A path that cannot be checked may exist.
pub(super) fn is_absent(root: &Path, path: &RelPath) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let checked = path.under(root).symlink_metadata();
    checked.is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::change::{Changes, Why};

    #[test]
    fn the_answer_for_a_capture_is_the_last_one_before_its_action() {
        let tick = TICK;
        for (answers, action, expected, why) in [
            (&[][..], 50 * tick, 10 * tick, "no watcher"),
            (&[9 * tick, 12 * tick], 50 * tick, 12 * tick, "the capture began in the second span"),
            (&[9 * tick, 10 * tick + 1, 14 * tick], 50 * tick, 14 * tick, "it began up to a tick later"),
            (&[9 * tick, 10 * tick + 1, 10 * tick + 5, 11 * tick], 10 * tick + 5, 10 * tick + 5, "the action is short"),
            (&[9 * tick, 10 * tick + 1, 12 * tick + 1, 30 * tick], 10 * tick + 1, 10 * tick + 1, "it began at once"),
        ] {
            let spans = [0].iter().chain(answers).zip(answers);
            let span = |(from, to): (&i64, &i64)| Interval {
                by: "p".into(),
                since: 0,
                from: *from,
                to: *to,
                changes: Changes::Everything(Why::Overflow),
                head_moved: false,
            };
            let window = |actor: &str, from: i64| ActionWindow { actor: actor.into(), from, ..ActionWindow::default() };
            let actions = vec![window("a", 2 * tick), window("b", 10 * tick + 2), window("a", action)];
            let mut windows = Windows { actions, seen: spans.map(span).collect(), ..Windows::default() };
            assert_eq!(answered_at(&windows, "a", 10 * tick, 5), expected, "{why}");
            // An older checkpoint protects the inserted action. The capture protects the last one.
            windows.actions[2].checkpoint = Some(5);
            let before = ActionWindow { checkpoint: Some(4), ..window("a", 10 * tick + 1) };
            windows.actions.insert(2, before);
            assert_eq!(answered_at(&windows, "a", 10 * tick, 5), expected, "{why}, behind an action");
            // Another process that watches answered long after the capture began.
            let late = Interval { by: "q".into(), ..span((&(2 * tick), &(40 * tick))) };
            windows.seen = vec![late];
            assert_eq!(known_at(&windows, 10 * tick), 10 * tick);
            windows.seen.push(span((&(9 * tick), &(11 * tick))));
            assert_eq!(known_at(&windows, 10 * tick), 11 * tick);
        }
    }
}
