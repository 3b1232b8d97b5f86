//! Judges which changes are a turn's own: who was at work when a path changed. Pure.
//!
//! A watcher answers at the beginning and the end of each action, so that each answer tells of a span of time in which the same
//! actions were at work. Where several processes watch, a change lies in the spans of all of them, and so in what these have in
//! common. *Invariant:* in doubt a change is not the turn's own.

use std::collections::BTreeSet;

use crate::checkpoint::records::windows::{ActionWindow, Interval, Windows};
use crate::model::change::Changes;
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

/// Judges the changes of one turn in one workspace.
pub(crate) struct Judge<'w> {
    actor: &'w str,
    /// The actions of the turn's time, of all runs.
    actions: Vec<&'w ActionWindow>,
    seen: Vec<&'w Interval>,
    /// The beginning of the turn, or of its part behind a restore.
    since: i64,
    /// The end of the turn, or the present moment.
    until: i64,
    /// The paths that this restore changed (percent-quoted).
    restored: BTreeSet<String>,
}

impl<'w> Judge<'w> {
    /// Judges for an actor what changed between two moments.
    pub(crate) fn new(
        actor: &'w str,
        (since, until): (i64, i64),
        windows: &'w Windows,
        restored: BTreeSet<String>,
    ) -> Judge<'w> {
        let overlaps = |from: i64, to: i64| from < until && to > since;
        let actions = windows.actions.iter().filter(|window| overlaps(window.from, window.to.unwrap_or(i64::MAX)));
        let seen = windows.seen.iter().filter(|interval| overlaps(interval.from, interval.to));
        Judge { actor, actions: actions.collect(), seen: seen.collect(), since, until, restored }
    }

    /// Returns the moment up to which a watcher told of all changes; `None` where nobody watched.
    pub(crate) fn watched_until(&self) -> Option<i64> {
        self.seen.iter().map(|interval| interval.to).max()
    }

    /// Returns the share of the turn in the change of a path. `is_later` says whether it changed after the last answer of a
    /// watcher.
    pub(crate) fn share(&self, path: &RelPath, is_later: impl Fn(&RelPath, i64) -> bool) -> Attribution {
        let mut shares: Vec<Attribution> = Vec::new();
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
            None => return self.unseen(path),
            Some(watched) => {
                let rest = ChangeSpan { from: watched, to: self.until, head_moved: false, is_vague: false };
                if watched < self.until && self.may_have_changed(rest, &later) {
                    shares.push(self.unwatched(path, self.in_span(path, rest)));
                }
            }
        }
        shares.into_iter().reduce(Attribution::then).unwrap_or_else(|| self.unseen(path))
    }

    /// Returns true if no action of anybody else was at work in that time.
    pub(crate) fn is_alone(&self) -> bool {
        self.actions.iter().all(|window| window.actor == self.actor)
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
        let mut spans = Vec::new();
        for interval in &told {
            let is_vague = matches!(interval.changes, Changes::Everything(_));
            let own = ChangeSpan { from: interval.from, to: interval.to, head_moved: interval.head_moved, is_vague };
            let others = told.iter().filter(|other| other.by != interval.by);
            let common = others.filter(|other| other.from < own.to && other.to > own.from).map(|other| ChangeSpan {
                from: other.from.max(own.from),
                to: other.to.min(own.to),
                head_moved: other.head_moved || own.head_moved,
                is_vague: own.is_vague && matches!(other.changes, Changes::Everything(_)),
            });
            let known = spans.len();
            spans.extend(common);
            if spans.len() == known {
                spans.push(own);
            } else {
                let others = told.iter().filter(|other| other.by != interval.by).map(|other| other.by.as_str());
                let others: BTreeSet<&str> = others.collect();
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
        let is_at_work = |window: &&&ActionWindow| window.from < span.to && window.to.is_none_or(|to| to > span.from);
        let is_doubtful = self.actions.iter().filter(is_at_work).any(|window| window.actor != self.actor);
        is_later(if is_doubtful { span.from.saturating_sub(2 * TICK) } else { span.from })
    }

    /// Judges a change in a span.
    fn in_span(&self, path: &RelPath, span: ChangeSpan) -> Attribution {
        let at_work = |window: &&&ActionWindow| window.from < span.to && window.to.is_none_or(|to| to > span.from);
        let (own, others): (Vec<&ActionWindow>, Vec<&ActionWindow>) =
            self.actions.iter().filter(at_work).partition(|window| window.actor == self.actor);
        let is_moved = span.head_moved && !own.iter().chain(&others).any(|window| window.moves_head);
        if own.is_empty() {
            return Attribution::Outside;
        }
        if is_moved {
            let may_have_moved = own.iter().any(|window| window.is_opaque);
            return if may_have_moved { Attribution::Unknown } else { Attribution::Outside };
        }
        let names = |windows: &[&ActionWindow]| windows.iter().any(|window| window.names(path));
        let is_inside = own.iter().any(|window| window.from <= span.from && window.to.is_none_or(|to| to >= span.to));
        match (names(&own), names(&others), others.is_empty()) {
            (true, true, _) | (false, false, false) => Attribution::Shared,
            (false, true, _) => Attribution::Outside,
            (true, false, _) if is_inside && !span.is_vague => Attribution::Sure,
            (true, false, _) => Attribution::Likely,
            (false, false, true) if is_inside && !span.is_vague => Attribution::Likely,
            (false, false, true) => Attribution::Unknown,
        }
    }

    /// Judges a change behind the last answer of a watcher: an action may have ended without a word, and a person gone on.
    fn unwatched(&self, path: &RelPath, share: Attribution) -> Attribution {
        match share {
            Attribution::Sure | Attribution::Likely => self.unseen(path),
            other => other,
        }
    }

    /// Judges a change of which no watcher told.
    fn unseen(&self, path: &RelPath) -> Attribution {
        let (mut own, mut others) = (false, false);
        for window in self.actions.iter().filter(|window| window.names(path)) {
            *(if window.actor == self.actor { &mut own } else { &mut others }) = true;
        }
        match (own, others) {
            (true, false) => Attribution::Likely,
            (true, true) => Attribution::Shared,
            (false, _) => Attribution::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::change::{Dirty, Reach, Why};

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    /// Reads `run:from-to:names…`, with `^` behind the run where it names git, `?` where it is opaque, and without an end while it is at work.
    fn action(text: &str) -> ActionWindow {
        let mut parts = text.split(':');
        let run = parts.next().unwrap();
        let (from, to) = parts.next().unwrap().split_once('-').unwrap();
        ActionWindow {
            actor: run.trim_end_matches(['^', '?']).to_owned(),
            action: None,
            named: parts
                .next()
                .unwrap_or_default()
                .split(' ')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            moves_head: run.ends_with('^'),
            is_opaque: run.ends_with('?'),
            by: None,
            from: from.parse().unwrap(),
            to: to.parse().ok(),
        }
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
    fn a_change_is_of_those_who_were_at_work() {
        use Attribution::{Likely, Outside, Shared, Sure, Touched, Unknown};
        for (actions, seen, expected, why) in [
            ("a:10-20:x", "p:0-10,p:10-20:x,p:20-100", Sure, "named while it ran"),
            ("a:10-20:y", "p:0-10,p:10-20:x,p:20-100", Likely, "only this run was at work"),
            ("a:10-20", "p:0-10:x,p:10-20,p:20-100", Outside, "before the action"),
            ("a:10-20:x", "p:0-10,p:10-20:x,p:20-100:x", Touched, "written again later"),
            ("a:10-20:x", "p:0-10:x,p:10-20:x,p:20-100", Shared, "somebody's before the turn's"),
            ("a:10-20,b:12-30", "p:0-10,p:10-12,p:12-20:x,p:20-100", Shared, "two runs at work"),
            ("a:10-20:x,b:12-30", "p:0-10,p:10-12,p:12-20:x,p:20-100", Sure, "one of two names it"),
            ("a:10-20,b:12-30:x", "p:0-10,p:10-12,p:12-20:x,p:20-100", Outside, "the other one names it"),
            ("a:10-20:x,b:12-30:x", "p:0-10,p:10-12,p:12-20:x,p:20-100", Shared, "both name it"),
            ("b:10-20", "p:0-10,p:10-20:x,p:20-100", Outside, "another run's"),
            ("a:10-20,a:15-25", "p:0-10,p:10-15,p:15-20:x,p:20-100", Likely, "two actions of one run"),
            ("a:10-20", "p:0-10,p^:10-20:x,p:20-100", Outside, "somebody moved HEAD"),
            ("a^:10-20", "p:0-10,p^:10-20:x,p:20-100", Likely, "the action moved HEAD"),
            ("a?:10-20", "p:0-10,p^:10-20:x,p:20-100", Unknown, "the action may have moved HEAD"),
            ("a:10-20", "p:0-10,p:10-20:*,p:20-100", Unknown, "the watcher lost track"),
            ("a:10-20:x", "p:0-10,p:10-20:*,p:20-100", Likely, "the same of a named path"),
            ("a:10-20:x", "", Likely, "nobody watched"),
            ("a:10-20", "", Unknown, "nobody watched, and nothing named it"),
            ("a:10-20:x,b:30-40:x", "", Shared, "nobody watched, and two name it"),
            ("a:10-20:y", "p:0-100", Unknown, "no event told of it"),
            ("a:10-20", "p:0-10,p:10-20:x,p:20-100,q:5-15,q:15-50:x", Likely, "two watchers agree"),
            ("a:10-20", "p:0-10,p:10-20:x,p:20-100,q:5-12:x,q:12-50", Likely, "narrowed to 10-12"),
            ("a:10-20", "p:0-100:x,q:0-10,q:10-20:x,q:20-100", Likely, "the other watcher knows better"),
            ("a:10-20", "p:0-100:x,q:0-10,q:10-20,q:20-100:x", Outside, "the same, after the action"),
            ("a:10-20", "p:0-100:x", Unknown, "a watcher that asked too seldom"),
            ("a:10-:x", "p:0-10,p:10-50:x", Sure, "it is at work still"),
        ] {
            let windows = windows(actions, seen);
            let judge = Judge::new("a", (0, 100), &windows, BTreeSet::new());
            assert_eq!(judge.share(&path("x"), |_, _| false), expected, "{why}: {actions} | {seen}");
        }
    }

    #[test]
    fn directories_tell_of_what_was_in_them_and_the_disk_of_the_last_moments() {
        let table = windows("a:10-20", "p:0-10,p:10-20:d/ e,p:20-60");
        let judge = Judge::new("a", (0, 100), &table, BTreeSet::new());
        for (name, is_later, expected) in [
            ("d/x", false, Attribution::Likely),
            ("e/x", false, Attribution::Likely),
            ("d/x", true, Attribution::Touched),
            ("f", true, Attribution::Outside),
            ("f", false, Attribution::Unknown),
        ] {
            let asked = |_: &RelPath, since: i64| is_later && since == 60;
            assert_eq!(judge.share(&path(name), asked), expected, "{name} {is_later}");
        }
        // Changes before the turn and after it do not count.
        let table = windows("a:10-20:x,b:40-50:x", "p:0-10,p:10-20:x,p:20-100:x");
        let judge = Judge::new("a", (5, 20), &table, BTreeSet::new());
        assert_eq!(judge.share(&path("x"), |_, _| true), Attribution::Sure);
        // A restore at 30 is reported with what came behind it.
        let table = windows("a:40-50:x", "p:0-40:x y,p:40-50:x,p:50-100");
        let judge = Judge::new("a", (30, 100), &table, BTreeSet::from(["x".to_owned()]));
        assert_eq!(judge.share(&path("x"), |_, _| false), Attribution::Sure);
        assert_eq!(judge.share(&path("y"), |_, _| false), Attribution::Outside);
    }

    #[test]
    fn a_watcher_that_has_not_answered_since_proves_nothing() {
        let table = windows("a:10-40:y,b:20-50:x", "p:0-10,p:10-40:x,q:0-15:x,q:15-20");
        let judge = Judge::new("a", (0, 40), &table, BTreeSet::new());
        assert_eq!(judge.share(&path("x"), |_, since| since < 20), Attribution::Touched);
        assert_eq!(judge.share(&path("x"), |_, _| false), Attribution::Likely);
        // Times near the last answer count while somebody else is at work.
        let table = windows("a:10-20,b:25-90:x", "p:0-10,p:10-20:x,p:20-30");
        let judge = Judge::new("a", (0, 60), &table, BTreeSet::new());
        assert_eq!(judge.share(&path("x"), |_, since| since < 30), Attribution::Touched);
        assert_eq!(judge.share(&path("x"), |_, _| false), Attribution::Likely);
    }
}
