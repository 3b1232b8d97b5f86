//! Judges which changes are a turn's own: who was at work when a path changed. Pure.
//!
//! A watcher answers at the beginning and the end of each action, so that each answer tells of a span of time in which the same
//! actions were at work. Where several processes watch, a change lies in the spans of all of them, and so in what these have in
//! common. *Invariant:* in doubt a change is not the turn's own.

use std::collections::BTreeSet;

use crate::checkpoint::records::action_window::ActionWindow;
use crate::checkpoint::records::windows::{Interval, Windows};
use crate::model::change::{Changes, Why};
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;

/// The time by which a file's own times may lie behind the moment of its change, in nanoseconds: the kernel stamps files by a clock
/// of ticks.
pub(super) const TICK: i64 = 8_000_000;

/// A span of time in which a path may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ChangeSpan {
    from: i64,
    to: i64,
    /// True if HEAD moved meanwhile.
    head_moved: bool,
    /// True if the watcher named no single path.
    is_vague: bool,
}

/// The part of a turn that is judged: its actor, its span of time, and what is known of the ends of its actions.
#[derive(Clone, Debug)]
pub(crate) struct JudgedTurn<'t> {
    /// The name under which the turn's actions are recorded.
    pub(crate) actor: &'t str,
    /// The beginning of the turn, or of its part after a restore.
    pub(crate) since: i64,
    /// The end of the turn, or the present moment.
    pub(crate) until: i64,
    /// True if the turn has ended: then an action without a reported end does not run any more.
    pub(crate) is_over: bool,
    /// True if its client reports the end of each action that ran; `None` if that is not known of the client.
    pub(crate) reports_ends: Option<bool>,
}

impl<'t> JudgedTurn<'t> {
    /// Returns the part of a turn that goes on.
    pub(crate) fn open(actor: &'t str, since: i64, until: i64) -> JudgedTurn<'t> {
        JudgedTurn { actor, since, until, is_over: false, reports_ends: None }
    }
}

/// An action of the turn's time, with the end that counts.
#[derive(Clone, Copy, Debug)]
struct RunningAction<'w> {
    window: &'w ActionWindow,
    to: i64,
    /// True if it certainly ran. An action without a reported end may have been denied.
    has_run: bool,
}

impl RunningAction<'_> {
    fn overlaps(&self, from: i64, to: i64) -> bool {
        self.window.from < to && self.to > from
    }

    /// Returns true if it certainly ran. An action whose client has gone has no known end.
    fn is_certain(&self) -> bool {
        self.has_run && !self.window.is_cut
    }

    fn covers(&self, span: ChangeSpan) -> bool {
        self.window.from <= span.from && self.to >= span.to
    }
}

/// The share of a turn in a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TurnShare {
    /// The share.
    pub(crate) who: Attribution,
    /// True if, of all actions, only commands of git can have made the change.
    pub(crate) is_gits: bool,
}

impl TurnShare {
    fn of(who: Attribution) -> TurnShare {
        TurnShare { who, is_gits: false }
    }

    fn then(self, later: TurnShare) -> TurnShare {
        TurnShare { who: self.who.then(later.who), is_gits: self.is_gits && later.is_gits }
    }
}

/// Judges the changes of one turn in one workspace.
pub(crate) struct Judge<'w> {
    actor: &'w str,
    /// The actions of the turn's time, of all runs.
    actions: Vec<RunningAction<'w>>,
    seen: Vec<&'w Interval>,
    /// Watcher reports that ended before the judged time. A later report of another process may describe the same change.
    before: Vec<&'w Interval>,
    since: i64,
    until: i64,
    /// The paths that this restore changed (percent-quoted).
    restored: BTreeSet<String>,
}

impl<'w> Judge<'w> {
    /// Judges a turn by the log of actions. `restored` are the paths that the restore before it changed (percent-quoted).
    pub(crate) fn new(turn: &JudgedTurn<'w>, windows: &'w Windows, restored: BTreeSet<String>) -> Judge<'w> {
        let (since, until) = (turn.since, turn.until);
        let actions = windows.actions.iter().map(|window| running(turn, window, &windows.actions));
        let actions = actions.filter(|action| action.overlaps(since, until)).collect();
        let in_time = windows.seen.iter().filter(|interval| interval.from < until);
        let (seen, before) = in_time.partition(|interval| interval.to > since);
        Judge { actor: turn.actor, actions, seen, before, since, until, restored }
    }

    /// Adds the actions that began after the judged time and ended by `moment`: where the end of that time is known to a tick only,
    /// they were within it.
    pub(crate) fn with_ended_by(mut self, moment: i64, windows: &'w Windows) -> Judge<'w> {
        let later = windows.actions.iter().filter(|window| window.from >= self.until);
        let ended = later.filter_map(|window| Some((window, window.to.filter(|to| *to <= moment)?)));
        self.actions.extend(ended.map(|(window, to)| RunningAction { window, to, has_run: true }));
        self
    }

    /// Returns the moment up to which a watcher told of all changes; `None` where nobody watched.
    pub(crate) fn watched_until(&self) -> Option<i64> {
        self.seen.iter().map(|interval| interval.to).max()
    }

    /// Returns the share of the turn in the change of a path. `is_later` says whether it changed after the last answer of a
    /// watcher.
    pub(crate) fn share(&self, path: &RelPath, is_later: impl Fn(&RelPath, i64) -> bool) -> TurnShare {
        let mut shares: Vec<TurnShare> = Vec::new();
        let later = |since: i64| is_later(path, since);
        let mut spans = self.spans(&|changes| changes.covers(path), &later);
        // Of a path that the restore before has changed, a report that begins before it tells of the restore.
        if self.restored.contains(&quote(path.as_bytes())) {
            spans.retain(|span| span.from >= self.since);
        }
        if spans.is_empty() {
            // The directory tells of all that was in it when it went.
            let above: Vec<RelPath> = std::iter::successors(path.parent(), RelPath::parent).collect();
            spans = self.spans(&|changes| above.iter().any(|dir| !dir.is_root() && changes.covers(dir)), &later);
        }
        shares.extend(spans.iter().map(|span| self.in_span(path, *span)));
        match self.watched_until() {
            None => return self.unwatched_turn(path, &later),
            Some(watched) => {
                let rest = ChangeSpan { from: watched, to: self.until, head_moved: false, is_vague: false };
                if watched < self.until && self.may_have_changed(rest, &later) {
                    shares.push(self.unwatched(path, self.in_span(path, rest), &later));
                }
            }
        }
        let share = shares.into_iter().reduce(TurnShare::then).unwrap_or_else(|| self.unseen(path));
        // A watcher that asked too seldom for the action's beginning or end leaves the file's own time.
        let is_written = !spans.iter().any(|span| span.head_moved) && self.was_written_last(path, &later);
        if share.who == Attribution::Likely && is_written { TurnShare::of(Attribution::Sure) } else { share }
    }

    /// Returns true if no action of anybody else was at work in that time.
    pub(crate) fn is_alone(&self) -> bool {
        self.actions.iter().all(|action| action.window.actor == self.actor)
    }

    /// Returns true if an action of the turn names a path and reported no end. The action may have run later than its window says.
    pub(crate) fn may_have_deleted_later(&self, path: &RelPath) -> bool {
        let mut own = self.actions.iter().filter(|action| action.window.actor == self.actor && !action.has_run);
        own.any(|action| action.window.names(path))
    }

    /// Returns true if an action of the turn may have deleted a path while no process watched.
    pub(crate) fn may_have_deleted_unwatched(&self, path: &RelPath) -> bool {
        let own = self.actions.iter().filter(|action| action.window.actor == self.actor);
        let mut own = own.filter(|action| action.window.may_change(path));
        own.any(|action| !self.is_watched(action.window.from.max(self.since), action.to.min(self.until)))
    }

    /// Returns true if watchers answered for all of a span.
    fn is_watched(&self, from: i64, to: i64) -> bool {
        let mut answered: Vec<&Interval> = self.seen.iter().chain(&self.before).copied().collect();
        answered.sort_unstable_by_key(|interval| interval.from);
        let until = |at: i64, interval: &Interval| if interval.from <= at { at.max(interval.to) } else { at };
        answered.into_iter().fold(from, until) >= to
    }

    /// Returns true if a process of the turn may still run after its actions ended: a background job, or an opaque action without a
    /// reported end.
    pub(crate) fn may_have_left_work(&self) -> bool {
        let is_unreported = |window: &ActionWindow| window.to.is_none() && window.and_others && !window.by_git;
        let mut own = self.actions.iter().filter(|action| action.window.actor == self.actor);
        own.any(|action| action.window.leaves_work || is_unreported(action.window))
    }

    /// Returns true if an action of the turn that names git ran between two moments, and no such action of another client did.
    pub(crate) fn has_moved_head(&self, from: i64, to: i64) -> bool {
        let running = self.actions.iter().filter(|action| action.window.moves_head && action.overlaps(from, to));
        let mut actors = running.map(|action| action.window.actor.as_str()).peekable();
        actors.peek().is_some() && actors.all(|actor| actor == self.actor)
    }

    /// Returns true if a watcher named a path among the changes of that time.
    pub(crate) fn saw(&self, path: &RelPath) -> bool {
        let names = |changes: &Changes| matches!(changes, Changes::Paths(_)) && changes.covers(path);
        self.seen.iter().any(|interval| names(&interval.changes))
    }

    /// Returns the spans in which something changed, in order. Each is narrowed to what all watchers have in common, and to the time
    /// for which one of them has not answered.
    fn spans(&self, covers: &dyn Fn(&Changes) -> bool, is_later: &dyn Fn(i64) -> bool) -> Vec<ChangeSpan> {
        let told: Vec<&&Interval> = self.seen.iter().filter(|interval| covers(&interval.changes)).collect();
        let before: Vec<&&Interval> = self.before.iter().filter(|interval| covers(&interval.changes)).collect();
        let mut spans = Vec::new();
        for interval in &told {
            let is_vague = is_vague(interval);
            let own = ChangeSpan { from: interval.from, to: interval.to, head_moved: interval.head_moved, is_vague };
            let others: Vec<&Interval> =
                told.iter().chain(&before).filter(|other| other.by != interval.by).map(|other| **other).collect();
            let common = common_spans(own, &others);
            if common.is_empty() {
                spans.push(own);
            } else {
                // Overlaps that end before the judged time are not part of it.
                spans.extend(common.into_iter().filter(|span| span.to > self.since));
                let others: BTreeSet<&str> = others.iter().map(|other| other.by.as_str()).collect();
                spans.extend(others.into_iter().flat_map(|by| self.unanswered(by, own, is_later)));
            }
        }
        spans.sort_unstable();
        spans.dedup();
        spans
    }

    /// Returns the parts of a span in the turn for which a watcher has no answer, and in which the path may have changed.
    fn unanswered(&self, by: &str, span: ChangeSpan, is_later: &dyn Fn(i64) -> bool) -> Vec<ChangeSpan> {
        let mut answered: Vec<&&Interval> = self.seen.iter().filter(|interval| interval.by == by).collect();
        answered.sort_unstable_by_key(|interval| interval.from);
        let (mut at, end) = (span.from.max(self.since), span.to.min(self.until));
        let mut parts = Vec::new();
        for interval in answered {
            if interval.from > at && at < end {
                parts.push(ChangeSpan { from: at, to: interval.from.min(end), ..span });
            }
            at = at.max(interval.to);
        }
        let rest = ChangeSpan { from: at, to: end, ..span };
        if at < end && self.may_have_changed(rest, is_later) {
            parts.push(rest);
        }
        parts
    }

    /// Returns true if a path may have changed in a span for which a watcher has no answer yet, by its times. Where somebody else is at
    /// work, a time near the last answer is late enough.
    fn may_have_changed(&self, span: ChangeSpan, is_later: &dyn Fn(i64) -> bool) -> bool {
        let mut running = self.actions.iter().filter(|action| action.overlaps(span.from, span.to));
        let is_doubtful = running.any(|action| action.window.actor != self.actor);
        is_later(if is_doubtful { span.from.saturating_sub(2 * TICK) } else { span.from })
    }

    /// Judges a change in a span. Only actions that name the path, or that may change what they do not name, can have made it.
    fn in_span(&self, path: &RelPath, span: ChangeSpan) -> TurnShare {
        let running: Vec<&RunningAction<'_>> =
            self.actions.iter().filter(|action| action.overlaps(span.from, span.to)).collect();
        let may_change = running.iter().copied().filter(|action| action.window.may_change(path));
        let (own, others): (Vec<&RunningAction<'_>>, Vec<&RunningAction<'_>>) =
            may_change.partition(|action| action.window.actor == self.actor);
        if own.is_empty() {
            return TurnShare::of(Attribution::Outside);
        }
        let names = |actions: &[&RunningAction<'_>]| actions.iter().any(|action| action.window.names(path));
        let is_inside = own.iter().any(|action| action.covers(span));
        let is_certain =
            own.iter().any(|action| action.is_certain() && action.covers(span) && action.window.names(path));
        // A checkout, reset or merge of a git that no action ran may have written the path too.
        let is_others_checkout = span.head_moved && !running.iter().any(|action| action.window.moves_head);
        let who = match (names(&own), names(&others), others.is_empty()) {
            (true, true, _) | (false, false, false) => Attribution::Shared,
            (false, true, _) => Attribution::Outside,
            (true, false, _) if is_certain && !span.is_vague && !is_others_checkout => Attribution::Sure,
            (true, false, _) => Attribution::Likely,
            (false, false, true) if is_inside => Attribution::Likely,
            (false, false, true) => Attribution::Unknown,
        };
        let is_gits = who.is_own() && is_inside && !is_others_checkout && own.iter().all(|action| action.window.by_git);
        TurnShare { who, is_gits }
    }

    /// Judges a change after the last answer of a watcher: an action may have ended without a report, and a person gone on.
    fn unwatched(&self, path: &RelPath, share: TurnShare, is_later: &dyn Fn(i64) -> bool) -> TurnShare {
        match share.who {
            who if who.is_own() => self.unseen(path),
            Attribution::Unknown => self.within_last(path, is_later).unwrap_or(share),
            _ => share,
        }
    }

    /// Judges a path whose last change lies, by the file's time, in actions of the turn that may change it, and in no others.
    fn within_last(&self, path: &RelPath, is_later: &dyn Fn(i64) -> bool) -> Option<TurnShare> {
        let is_around =
            |action: &&RunningAction<'_>| is_later(action.window.from.saturating_sub(2 * TICK)) && !is_later(action.to);
        let around = self.actions.iter().filter(|action| action.window.may_change(path)).filter(is_around);
        let around: Vec<&RunningAction<'_>> = around.collect();
        let is_own = |action: &&RunningAction<'_>| action.window.actor == self.actor && action.is_certain();
        if around.is_empty() || !around.iter().all(is_own) {
            return None;
        }
        let is_gits = around.iter().all(|action| action.window.by_git);
        Some(TurnShare { who: Attribution::Likely, is_gits })
    }

    /// Judges a change in a turn that no watcher saw. A path whose last change lies in an action that names it is the turn's.
    fn unwatched_turn(&self, path: &RelPath, is_later: &dyn Fn(i64) -> bool) -> TurnShare {
        let share = self.unseen(path);
        let is_written = share.who == Attribution::Likely && self.was_written_last(path, is_later);
        if is_written { TurnShare::of(Attribution::Sure) } else { share }
    }

    /// Returns true if the last change of a path lies, by the file's time, in an action of the turn that names it and certainly ran.
    fn was_written_last(&self, path: &RelPath, is_later: &dyn Fn(i64) -> bool) -> bool {
        self.actions.iter().any(|action| {
            let is_own = action.window.actor == self.actor && action.is_certain() && action.window.names(path);
            is_own && is_later(action.window.from.saturating_sub(2 * TICK)) && !is_later(action.to)
        })
    }

    /// Judges a change that no watcher reported. It is the turn's where none but its own actions can have made it.
    fn unseen(&self, path: &RelPath) -> TurnShare {
        let (mut own, mut others, mut own_names, mut others_name) = (false, false, false, false);
        for action in self.actions.iter().filter(|action| action.window.may_change(path)) {
            let (may, name) = match action.window.actor == self.actor {
                true => (&mut own, &mut own_names),
                false => (&mut others, &mut others_name),
            };
            *may = true;
            *name |= action.window.names(path);
        }
        TurnShare::of(match (own_names, others_name) {
            (true, true) => Attribution::Shared,
            (true, false) => Attribution::Likely,
            _ if !own => Attribution::Outside,
            (false, true) => Attribution::Unknown,
            (false, false) if others => Attribution::Shared,
            (false, false) => Attribution::Likely,
        })
    }
}

/// Returns true if a report names no single path. The report of a deleted root names every path that was below it.
fn is_vague(interval: &Interval) -> bool {
    matches!(&interval.changes, Changes::Everything(why) if *why != Why::RootMoved)
}

/// Returns the overlaps of a span with the reports of other processes about the same path.
fn common_spans(own: ChangeSpan, others: &[&Interval]) -> Vec<ChangeSpan> {
    let overlapping = others.iter().filter(|other| other.from < own.to && other.to > own.from);
    let common = overlapping.map(|other| ChangeSpan {
        from: other.from.max(own.from),
        to: other.to.min(own.to),
        head_moved: other.head_moved || own.head_moved,
        is_vague: own.is_vague && is_vague(other),
    });
    common.collect()
}

/// Returns an action with the end that counts for a turn.
fn running<'w>(turn: &JudgedTurn<'_>, window: &'w ActionWindow, all: &[ActionWindow]) -> RunningAction<'w> {
    let is_own = window.actor == turn.actor;
    if let Some(to) = window.to {
        return RunningAction { window, to, has_run: true };
    }
    if !is_own {
        return RunningAction { window, to: window.left.unwrap_or(i64::MAX), has_run: true };
    }
    let reports_none = || !all.iter().any(|other| other.actor == window.actor && other.to.is_some());
    let never_reports = turn.reports_ends.map_or_else(reports_none, |reports| !reports);
    if window.is_cut || never_reports {
        return RunningAction { window, to: i64::MAX, has_run: true };
    }
    // The user may have denied it. In an open turn it may still run.
    let end = if turn.is_over { turn.until } else { i64::MAX };
    RunningAction { window, to: window.left.unwrap_or(end), has_run: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::change::{Dirty, Reach};

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    /// Reads `run:from-to:names…`. Marks after the run: `^` where it names git, `g` where it changes others by git alone, `?` where
    /// it may change others. The end is missing while none is reported, or is `left` as in `a:10-~20`.
    fn action(text: &str) -> ActionWindow {
        let mut parts = text.split(':');
        let run = parts.next().unwrap();
        let (from, to) = parts.next().unwrap().split_once('-').unwrap();
        let marks = |mark: char| run[1..].contains(mark);
        let names = parts.next().unwrap_or_default();
        ActionWindow {
            actor: run[..1].to_owned(),
            named: names.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            moves_head: marks('^') || marks('g'),
            and_others: marks('?') || marks('g'),
            by_git: marks('g'),
            is_cut: marks('!'),
            from: from.parse().unwrap(),
            to: to.parse().ok(),
            left: to.strip_prefix('~').map(|left| left.parse().unwrap()),
            ..ActionWindow::default()
        }
    }

    /// The turn of `a` from one moment to another, over and with all ends reported.
    fn turn(since: i64, until: i64) -> JudgedTurn<'static> {
        JudgedTurn { actor: "a", since, until, is_over: true, reports_ends: Some(true) }
    }

    /// Reads `process:from-to:paths…`, with `^` behind the process where HEAD moved, `dir/` for subtrees and `*` for anything.
    fn interval(text: &str) -> Interval {
        let mut parts = text.split(':');
        let by = parts.next().unwrap();
        let (from, to) = parts.next().unwrap().split_once('-').unwrap();
        let names = parts.next().unwrap_or_default();
        let changes = match names {
            "*" => Changes::Everything(Why::Overflow),
            names => Changes::Paths(Dirty::new(names.split(' ').filter(|name| !name.is_empty()).map(|name| {
                match name.strip_suffix('/') {
                    Some(dir) => (path(dir), Reach::Subtree),
                    None => (path(name), Reach::Entry),
                }
            }))),
        };
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let head_moved = by.ends_with('^');
        Interval { by: by.trim_end_matches('^').to_owned(), since: 0, from, to, changes, head_moved }
    }

    fn windows(actions: &str, seen: &str) -> Windows {
        let list =
            |text: &str| text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let (actions, seen): (Vec<String>, Vec<String>) = (list(actions), list(seen));
        Windows {
            turns: Vec::new(),
            actions: actions.iter().map(|text| action(text)).collect(),
            seen: seen.iter().map(|text| interval(text)).collect(),
            ..Windows::default()
        }
    }

    #[test]
    fn without_a_watcher_the_time_of_a_file_tells_which_action_changed_it() {
        use Attribution::{Likely, Shared, Unknown};
        for (actions, expected, is_gits, why) in [
            ("ag:10000000-30000000", Likely, true, "its only action"),
            ("a?:10000000-30000000", Likely, false, "a script"),
            ("ag:10000000-12000000", Unknown, false, "it ended before the file changed"),
            ("ag:10000000-~90000000", Unknown, false, "it may have been denied"),
            ("ag:10000000-30000000,b?:12000000-30000000", Shared, false, "another one ran beside it"),
        ] {
            let windows = windows(actions, "p:8000000-9999999");
            let judge = Judge::new(&turn(0, 100_000_000), &windows, BTreeSet::new());
            // The file changed at 20 ms.
            let share = judge.share(&path("x"), |_, since| since < 20_000_000);
            assert_eq!((share.who, share.is_gits), (expected, is_gits), "{why}: {actions}");
        }
    }

    #[test]
    fn only_actions_that_were_not_watched_may_have_deleted_unseen() {
        for (actions, seen, expected, why) in [
            ("a:10-20:x,a:60-70:y", "p:9-10,q:59-60", true, "each hook watches on its own"),
            ("a?:10-20,a:60-70:y", "p:9-10,q:59-60", true, "the same, of an unnamed path"),
            ("a:10-20:y,a:60-70:y", "p:9-10,q:59-60", false, "no action may change it"),
            ("a:10-20:x", "p:0-10,p:10-20,p:20-100", false, "watched all the time"),
            ("a:10-20:x", "p:0-10,p:10-14,q:12-30", false, "two watchers, one after the other"),
            ("a:10-20:x", "p:0-10,p:10-14,q:16-30", true, "a gap between two watchers"),
            ("b:10-20:x", "p:9-10,q:59-60", false, "another run's action"),
        ] {
            let windows = windows(actions, seen);
            let judge = Judge::new(&turn(0, 100), &windows, BTreeSet::new());
            assert_eq!(judge.may_have_deleted_unwatched(&path("x")), expected, "{why}: {actions} | {seen}");
        }
    }

    #[test]
    fn a_change_is_of_the_actions_that_may_have_made_it() {
        use Attribution::{Likely, Outside, Shared, Sure, Touched, Unknown};
        for (actions, seen, expected, why) in [
            ("a:10-20:x", "p:0-10,p:10-20:x,p:20-100", Sure, "named while it ran"),
            ("a:10-20:y", "p:0-10,p:10-20:x,p:20-100", Outside, "it names another path"),
            ("a:10-20", "p:0-10,p:10-20:x,p:20-100", Outside, "it writes nothing"),
            ("a?:10-20:y", "p:0-10,p:10-20:x,p:20-100", Likely, "it may change others, and only this run was active"),
            ("a?:10-20", "p:0-10:x,p:10-20,p:20-100", Outside, "before the action"),
            ("a:10-20:x", "p:0-10,p:10-20:x,p:20-100:x", Touched, "written again later"),
            ("a:10-20:x", "p:0-10:x,p:10-20:x,p:20-100", Shared, "another change before the turn's"),
            ("a?:10-20,b?:12-30", "p:0-10,p:10-12,p:12-20:x,p:20-100", Shared, "two runs that may change it"),
            ("a?:10-20,b:12-30:y", "p:0-10,p:10-12,p:12-20:x,p:20-100", Likely, "the other run cannot have changed it"),
            ("a:10-20:x,b:12-30", "p:0-10,p:10-12,p:12-20:x,p:20-100", Sure, "one of two names it"),
            ("a?:10-20,b:12-30:x", "p:0-10,p:10-12,p:12-20:x,p:20-100", Outside, "the other one names it"),
            ("a:10-20:x,b:12-30:x", "p:0-10,p:10-12,p:12-20:x,p:20-100", Shared, "both name it"),
            ("b?:10-20", "p:0-10,p:10-20:x,p:20-100", Outside, "another run's"),
            ("a?:10-20,a?:15-25", "p:0-10,p:10-15,p:15-20:x,p:20-100", Likely, "two actions of one run"),
            ("a?:10-20", "p:0-10,p^:10-20:x,p:20-100", Likely, "another git moved HEAD meanwhile"),
            ("a:10-20:x", "p:0-10,p^:10-20:x,p:20-100", Likely, "the same, of a named path"),
            ("ag:10-20", "p:0-10,p^:10-20:x,p:20-100", Likely, "its own git moved HEAD"),
            ("a?:10-20", "p:0-10,p:10-20:*,p:20-100", Likely, "the watcher lost track"),
            ("a:10-20", "p:0-10,p:10-20:*,p:20-100", Outside, "the same, of an action that cannot have changed it"),
            ("a:10-20:x", "p:0-10,p:10-20:*,p:20-100", Likely, "the same of a named path"),
            ("a:10-20:x", "", Likely, "no watcher"),
            ("a?:10-20", "", Likely, "no watcher, and the session was alone"),
            ("a:10-20", "", Outside, "no watcher, and it cannot have changed it"),
            ("a:10-20:x,b:30-40:x", "", Shared, "no watcher, and two name it"),
            ("a?:10-20,b?:30-40", "", Shared, "no watcher, and two may have changed it"),
            ("a:10-20:y", "p:0-100", Outside, "no event reported it"),
            ("a?:10-20", "p:0-10,p:10-20:x,p:20-100,q:5-15,q:15-50:x", Likely, "two watchers agree"),
            ("a?:10-20", "p:0-10,p:10-20:x,p:20-100,q:5-12:x,q:12-50", Likely, "narrowed to 10-12"),
            ("a?:10-20", "p:0-100:x,q:0-10,q:10-20:x,q:20-100", Likely, "the other watcher knows better"),
            ("a?:10-20", "p:0-100:x,q:0-10,q:10-20,q:20-100:x", Outside, "the same, after the action"),
            ("a?:10-20", "p:0-100:x", Unknown, "a watcher that asked too seldom"),
            ("a:10-~40:x,a:30-40:y", "p:0-10,p:10-30:x,p:30-40,p:40-100", Likely, "it may have been denied"),
            ("a?:10-~40,a:30-40:y", "p:0-10,p:10-30:x,p:30-40,p:40-100", Likely, "the same, of an unnamed path"),
            ("a?:10-~40,a:30-40:y", "p:0-10,p:10-30,p:30-40,p:40-100:x", Outside, "after its session's next event"),
            ("a!:10-~40:x", "p:0-10,p:10-50:x,p:50-100", Likely, "its client is gone, so it had begun"),
        ] {
            let windows = windows(actions, seen);
            let judge = Judge::new(&turn(0, 100), &windows, BTreeSet::new());
            assert_eq!(judge.share(&path("x"), |_, _| false).who, expected, "{why}: {actions} | {seen}");
        }
    }

    #[test]
    fn a_change_before_the_turn_that_another_watcher_reports_later_does_not_count() {
        use Attribution::{Outside, Shared, Sure};
        let actions = "b:5-15:x,a:30-40:x";
        for (seen, expected, why) in [
            (
                "p:0-20:x,p:20-30,p:30-40:x,p:40-100,q:3-28:x,q:28-100:x",
                Sure,
                "one watcher answered when the turn began",
            ),
            ("p:0-20,p:20-30,p:30-40:x,p:40-100,q:3-28:x,q:28-100:x", Shared, "that watcher did not see it"),
            ("p:0-20:x,p:22-30,p:30-40:x,p:40-100,q:3-28:x,q:28-100:x", Shared, "it did not watch all the time"),
            ("p:0-20:x,p:20-30:x,p:30-100,q:3-28:x,q:28-100", Outside, "it changed again, before the action"),
        ] {
            let windows = windows(actions, seen);
            let judge = Judge::new(&turn(20, 100), &windows, BTreeSet::new());
            assert_eq!(judge.share(&path("x"), |_, _| true).who, expected, "{why}");
        }
    }

    #[test]
    fn an_action_without_a_reported_end_counts_as_its_client_allows() {
        use Attribution::{Likely, Sure};
        let turns = |reports_ends, is_over| JudgedTurn { is_over, reports_ends, ..turn(0, 100) };
        for (actions, judged, expected, why) in [
            ("a:10-:x", turns(Some(true), false), Likely, "the turn goes on: it may wait for permission"),
            ("a:10-:x", turns(Some(false), false), Sure, "the turn goes on, and the client reports no ends"),
            ("a:10-:x", turns(Some(true), true), Likely, "it may have been denied"),
            ("a:10-:x", turns(Some(false), true), Sure, "the client reports no ends"),
            ("a:10-:x", turns(None, true), Sure, "the client has reported none"),
            ("a:10-:x,a:5-8:y", turns(None, true), Likely, "the client has reported another"),
        ] {
            let windows = windows(actions, "p:0-10,p:10-50:x,p:50-100");
            let judge = Judge::new(&judged, &windows, BTreeSet::new());
            assert_eq!(judge.share(&path("x"), |_, _| false).who, expected, "{why}");
        }
    }

    #[test]
    fn without_a_watcher_the_time_of_the_last_change_decides() {
        use Attribution::{Likely, Outside, Sure};
        for (actions, changed_at, expected) in [
            ("a:10-20:x", 15_000_000_000, Sure),
            ("a:10-20:x", 30_000_000_000, Likely),
            ("a?:10-20", 15_000_000_000, Likely),
            ("a:10-20:y", 15_000_000_000, Outside),
            ("a:10-~20:x", 15_000_000_000, Likely),
        ] {
            let mut windows = windows(actions, "");
            for window in &mut windows.actions {
                window.from *= 1_000_000_000;
                window.to = window.to.map(|to| to * 1_000_000_000);
                window.left = window.left.map(|left| left * 1_000_000_000);
            }
            let judge = Judge::new(&turn(0, 100_000_000_000), &windows, BTreeSet::new());
            let share = judge.share(&path("x"), |_, since| changed_at >= since);
            assert_eq!(share.who, expected, "{actions} {changed_at}");
        }
    }

    #[test]
    fn what_git_alone_can_have_changed_is_known() {
        for (actions, is_gits) in [
            ("ag:10-20", true),
            ("ag:10-20,a?:12-18", false),
            ("ag:10-20,b?:30-40", true),
            ("ag:10-20,b?:15-40", false),
            ("a?:10-20", false),
        ] {
            let windows = windows(actions, "p:0-10,p^:10-20:x,p:20-100");
            let judge = Judge::new(&turn(0, 100), &windows, BTreeSet::new());
            assert_eq!(judge.share(&path("x"), |_, _| false).is_gits, is_gits, "{actions}");
        }
    }

    #[test]
    fn directories_tell_of_what_was_in_them_and_the_disk_of_the_last_moments() {
        let table = windows("a?:10-20", "p:0-10,p:10-20:d/ e,p:20-60");
        let judge = Judge::new(&turn(0, 100), &table, BTreeSet::new());
        for (name, is_later, expected) in [
            ("d/x", false, Attribution::Likely),
            ("e/x", false, Attribution::Likely),
            ("d/x", true, Attribution::Touched),
            ("f", true, Attribution::Outside),
            ("f", false, Attribution::Likely),
        ] {
            let asked = |_: &RelPath, since: i64| is_later && since == 60;
            assert_eq!(judge.share(&path(name), asked).who, expected, "{name} {is_later}");
        }
        // Changes before the turn and after it do not count.
        let table = windows("a:10-20:x,b:40-50:x", "p:0-10,p:10-20:x,p:20-100:x");
        let judge = Judge::new(&turn(5, 20), &table, BTreeSet::new());
        assert_eq!(judge.share(&path("x"), |_, _| true).who, Attribution::Sure);
        // A restore at 30 is reported with what came behind it.
        let table = windows("a:40-50:x", "p:0-40:x y,p:40-50:x,p:50-100");
        let judge = Judge::new(&turn(30, 100), &table, BTreeSet::from(["x".to_owned()]));
        assert_eq!(judge.share(&path("x"), |_, _| false).who, Attribution::Sure);
        assert_eq!(judge.share(&path("y"), |_, _| false).who, Attribution::Outside);
    }

    #[test]
    fn an_action_within_the_last_tick_of_the_judged_time_counts_once_it_has_ended() {
        for (actions, expected) in [
            ("a:12-14:x", Attribution::Likely),
            ("a:12-18:x", Attribution::Outside),
            ("a:12-:x", Attribution::Outside),
            ("b:12-14:x", Attribution::Outside),
        ] {
            let table = windows(actions, "");
            let judge = Judge::new(&turn(0, 10), &table, BTreeSet::new()).with_ended_by(17, &table);
            assert_eq!(judge.share(&path("x"), |_, _| false).who, expected, "{actions}");
        }
    }

    #[test]
    fn a_watcher_that_has_not_answered_since_proves_nothing() {
        let table = windows("a?:10-40:y,b:20-50:x", "p:0-10,p:10-40:x,q:0-15:x,q:15-20");
        let judge = Judge::new(&turn(0, 40), &table, BTreeSet::new());
        assert_eq!(judge.share(&path("x"), |_, since| since < 20).who, Attribution::Touched);
        assert_eq!(judge.share(&path("x"), |_, _| false).who, Attribution::Likely);
        // Times near the last answer count while somebody else is at work.
        let table = windows("a?:10-20,b:25-90:x", "p:0-10,p:10-20:x,p:20-30");
        let judge = Judge::new(&turn(0, 60), &table, BTreeSet::new());
        assert_eq!(judge.share(&path("x"), |_, since| since < 30).who, Attribution::Touched);
        assert_eq!(judge.share(&path("x"), |_, _| false).who, Attribution::Likely);
    }
}
