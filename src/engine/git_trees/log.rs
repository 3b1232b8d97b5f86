//! The log of changed paths, by the numbers of the looks that found them. Pure.

use std::collections::BTreeMap;

use crate::model::change::Reach;
use crate::model::path::RelPath;

/// The most paths that are kept one by one.
const MOST: usize = 20_000;

/// Changed paths: for each, the last look that found it changed at all, and the last one that found its whole subtree changed.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    looks: u64,
    paths: BTreeMap<RelPath, (u64, u64)>,
}

impl ChangeLog {
    /// Returns the number of looks.
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    /// Notes a look; `false` if it has become too long.
    pub(super) fn note<'p>(&mut self, found: impl Iterator<Item = (&'p RelPath, Reach)>) -> bool {
        self.looks += 1;
        for (path, reach) in found {
            let known = self.paths.entry(path.clone()).or_default();
            known.0 = self.looks;
            if reach == Reach::Subtree {
                known.1 = self.looks;
            }
        }
        self.paths.len() <= MOST
    }

    /// Returns the paths that later looks than this one have found.
    pub(super) fn since(&self, look: u64) -> impl Iterator<Item = (&RelPath, Reach)> {
        self.paths.iter().filter(move |(_, (any, _))| *any > look).map(move |(path, (_, wide))| {
            let reach = if *wide > look { Reach::Subtree } else { Reach::Entry };
            (path, reach)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn shown(log: &ChangeLog, look: u64) -> String {
        log.since(look).map(|(path, reach)| format!("{} {reach:?}", path.display())).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn each_token_is_told_of_what_came_after_it_however_often_it_asks() {
        let mut log = ChangeLog::default();
        assert!(log.note([(&path("a"), Reach::Subtree), (&path("b"), Reach::Entry)].into_iter()));
        let first = log.looks();
        assert!(log.note([(&path("a"), Reach::Entry)].into_iter()));
        for _ in 0..2 {
            assert_eq!(shown(&log, 0), "a Subtree, b Entry");
            assert_eq!(shown(&log, first), "a Entry");
            assert_eq!(shown(&log, log.looks()), "");
        }
        let many: Vec<RelPath> = (0..=MOST).map(|n| path(&format!("f{n}"))).collect();
        assert!(!log.note(many.iter().map(|path| (path, Reach::Entry))), "it is too long");
    }
}
