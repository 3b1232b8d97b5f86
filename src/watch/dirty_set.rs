//! The dirty set: paths by the tick in which they changed, and the tick since which nothing can be said. Pure.
//!
//! *Invariant:* a path marked after [`DirtySet::cut`] returned a tick is answered for that tick, whatever was asked in
//! between. *Invariant:* what is not kept any more (forgotten, too much, lost) is answered as everything, never as less.

use std::collections::BTreeMap;

use crate::model::change::{Reach, Why};
use crate::model::path::RelPath;

/// Paths and when they changed.
pub(super) struct DirtySet {
    /// The tick of what happens now.
    now: u64,
    /// Marks of this tick and before are forgotten.
    floor: u64,
    /// The last tick of which not everything is known.
    lost: Option<(u64, Why)>,
    /// The last ticks in which each changed at all, and as a whole subtree (0: never).
    paths: BTreeMap<RelPath, (u64, u64)>,
    cap: usize,
}

impl DirtySet {
    /// No marks; keeps at most `cap`.
    pub(super) fn new(cap: usize) -> DirtySet {
        DirtySet { now: 1, floor: 0, lost: None, paths: BTreeMap::new(), cap }
    }

    /// A path changed now.
    pub(super) fn mark(&mut self, path: RelPath, reach: Reach) {
        if self.is_lost() {
            return; // whoever may ask for this tick is answered everything
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

    /// Something changed now, and nobody knows what.
    pub(super) fn lose(&mut self, why: Why) {
        if !self.is_lost() {
            self.lost = Some((self.now, why));
            self.paths.clear();
        }
    }

    /// Tells whether what happens now is lost already.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some_and(|(tick, _)| tick == self.now)
    }

    /// Returns what changed after `tick`. Forgets what changed until then: nobody asks for an older tick again.
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

    /// Ends the tick and returns it: what is marked from now on is later.
    pub(super) fn cut(&mut self) -> u64 {
        self.now += 1;
        self.now - 1
    }

    /// Tells whether a path is marked in the tick of now.
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
    fn what_changed_is_told_until_a_later_tick_is_asked_for() {
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
    fn what_is_lost_is_everything_and_only_until_then() {
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
        /// Against the whole history: an answer is never less than what happened after the tick.
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
                                let path = path.as_ref().expect("what is lost is never told as paths");
                                prop_assert!(paths.iter().any(|(told, _)| told == path), "{path:?} is missing");
                            }
                        }
                    }
                }
                prop_assert!(marks.len() <= cap);
            }
        }
    }
}
