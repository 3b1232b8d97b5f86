//! The dirty set: paths by the tick in which they changed, and the last tick for which they are not known. Pure.
//!
//! *Invariant:* a path marked after [`DirtySet::cut`] returned a tick is in the answer for that tick, whatever was
//! asked in between. *Invariant:* if paths are not kept any more (forgotten, too many, lost), the answer is everything,
//! never less.

use std::collections::BTreeMap;

use crate::model::change::{Reach, Why};
use crate::model::path::RelPath;

/// Changed paths with the ticks of their changes.
pub(super) struct DirtySet {
    /// The current tick.
    now: u64,
    /// The last tick whose marks are forgotten.
    floor: u64,
    /// The last tick whose changes are not all known.
    lost: Option<(u64, Why)>,
    /// For each path, the last tick in which it changed at all, and the last in which its whole subtree did (0: never).
    paths: BTreeMap<RelPath, (u64, u64)>,
    cap: usize,
}

impl DirtySet {
    /// Makes a set without marks that keeps at most `cap` paths.
    pub(super) fn new(cap: usize) -> DirtySet {
        DirtySet { now: 1, floor: 0, lost: None, paths: BTreeMap::new(), cap }
    }

    /// Marks a path as changed now.
    pub(super) fn mark(&mut self, path: RelPath, reach: Reach) {
        if self.is_lost() {
            return; // the answer for this tick is everything anyway
        }
        let mark = self.paths.entry(path).or_default();
        mark.0 = self.now;
        if reach == Reach::Subtree {
            mark.1 = self.now;
        }
        if self.paths.len() > self.cap {
            self.lose(Why::TooManyPaths);
        }
    }

    /// Marks everything as changed now.
    pub(super) fn lose(&mut self, why: Why) {
        if !self.is_lost() {
            self.lost = Some((self.now, why));
            self.paths.clear();
        }
    }

    /// Tells whether everything is marked as changed in this tick.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some_and(|(tick, _)| tick == self.now)
    }

    /// Returns the paths that changed after `tick`. Forgets the earlier ones: no caller asks for an older tick again.
    ///
    /// # Errors
    /// The reason why that cannot be said.
    pub(super) fn since(&mut self, tick: u64) -> Result<Vec<(RelPath, Reach)>, Why> {
        if tick < self.floor {
            return Err(Why::Forgotten);
        }
        self.floor = tick;
        self.paths.retain(|_, (changed, _)| *changed > tick);
        match self.lost {
            Some((lost, why)) if lost > tick => Err(why),
            _ => {
                let reach = |wide: u64| if wide > tick { Reach::Subtree } else { Reach::Entry };
                Ok(self.paths.iter().map(|(path, (_, wide))| (path.clone(), reach(*wide))).collect())
            }
        }
    }

    /// Ends the tick and returns it. Later marks belong to the next tick.
    pub(super) fn cut(&mut self) -> u64 {
        self.now += 1;
        self.now - 1
    }

    /// Tells whether a path is marked in the current tick.
    pub(super) fn is_fresh(&self, path: &RelPath) -> bool {
        self.paths.get(path).is_some_and(|(tick, _)| *tick == self.now)
    }

    /// Counts the paths that are kept.
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn names(found: Result<Vec<(RelPath, Reach)>, Why>) -> Result<String, Why> {
        found.map(|paths| paths.iter().map(|(path, _)| path.display()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn changes_are_returned_until_a_later_tick_is_asked_for() {
        let mut marks = DirtySet::new(10);
        marks.mark(path("a"), Reach::Entry);
        let first = marks.cut();
        marks.mark(path("b"), Reach::Entry);
        assert_eq!(names(marks.since(0)), Ok("a b".to_owned()));
        assert_eq!(names(marks.since(first)), Ok("b".to_owned()));
        assert_eq!(names(marks.since(first)), Ok("b".to_owned()));
        assert_eq!(names(marks.since(0)), Err(Why::Forgotten));
    }

    #[test]
    fn a_lost_tick_is_everything_and_later_ticks_are_not() {
        let mut marks = DirtySet::new(2);
        marks.mark(path("a"), Reach::Entry);
        marks.lose(Why::Overflow);
        marks.mark(path("b"), Reach::Entry);
        assert_eq!(marks.len(), 0);
        assert_eq!(names(marks.since(0)), Err(Why::Overflow));
        let tick = marks.cut();
        assert_eq!(names(marks.since(tick)), Ok(String::new()));
        for name in ["a", "b", "c", "d"] {
            marks.mark(path(name), Reach::Entry);
        }
        assert_eq!((names(marks.since(tick)), marks.len()), (Err(Why::TooManyPaths), 0));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Mark(u8),
        Lose,
        Cut,
        Ask(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..12_u8).prop_map(Step::Mark),
            1 => Just(Step::Lose),
            4 => Just(Step::Cut),
            4 => (0..6_usize).prop_map(Step::Ask),
        ]
    }

    proptest! {
        /// Compares with the whole history: an answer is never less than the changes after the tick.
        #[test]
        fn no_answer_is_less_than_the_truth(steps in prop::collection::vec(step(), 1..60), cap in 1..12_usize) {
            let mut marks = DirtySet::new(cap);
            let (mut history, mut ticks) = (Vec::new(), vec![0]);
            for step in steps {
                match step {
                    Step::Mark(name) => {
                        let path = path(&format!("p{name}"));
                        history.push((ticks.len(), Some(path.clone())));
                        marks.mark(path, Reach::Entry);
                    }
                    Step::Lose => {
                        history.push((ticks.len(), None));
                        marks.lose(Why::Overflow);
                    }
                    Step::Cut => ticks.push(marks.cut()),
                    Step::Ask(back) => {
                        let at = ticks.len().saturating_sub(1 + back);
                        let after = history.iter().filter(|(when, _)| *when > at);
                        if let Ok(paths) = marks.since(ticks[at]) {
                            for (_, path) in after {
                                let path = path.as_ref().expect("a lost tick is never answered with paths");
                                prop_assert!(paths.iter().any(|(answered, _)| answered == path), "{path:?} is missing");
                            }
                        }
                    }
                }
                prop_assert!(marks.len() <= cap);
            }
        }
    }
}
