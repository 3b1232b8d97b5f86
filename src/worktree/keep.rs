//! Sorted paths that are wanted although the rules would not show the way to them.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::model::path::RelPath;

/// A sorted list of paths, asked for members and for what lies below a directory.
#[derive(Default)]
pub(super) struct PathList<P>(Vec<P>);

impl<P: Borrow<RelPath>> PathList<P> {
    /// From paths in any order.
    pub(super) fn new(paths: impl IntoIterator<Item = P>) -> PathList<P> {
        let mut list: Vec<P> = paths.into_iter().collect();
        if !list.is_sorted_by(|a, b| a.borrow() <= b.borrow()) {
            list.sort_unstable_by(|a, b| a.borrow().cmp(b.borrow()));
        }
        PathList(list)
    }

    /// Whether the path itself is listed.
    pub(super) fn contains(&self, path: &RelPath) -> bool {
        !self.0.is_empty() && self.0.binary_search_by(|listed| listed.borrow().cmp(path)).is_ok()
    }

    /// Whether something strictly below `dir` is listed.
    pub(super) fn any_below(&self, dir: &RelPath) -> bool {
        !self.below(dir).is_empty()
    }

    /// Adds the names in `dir` through which listed paths are reached; may repeat a name.
    pub(super) fn names_in(&self, dir: &RelPath, names: &mut Vec<Vec<u8>>) {
        let skip = if dir.is_root() { 0 } else { dir.as_bytes().len() + 1 };
        for path in self.below(dir) {
            let rest = &path.borrow().as_bytes()[skip..];
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or(rest);
            if names.last().is_none_or(|last| last != name) {
                names.push(name.to_vec());
            }
        }
    }

    fn below(&self, dir: &RelPath) -> &[P] {
        if dir.is_root() {
            let from = self.0.partition_point(|path| path.borrow().is_root());
            return &self.0[from..];
        }
        let from = self.0.partition_point(|path| side(path.borrow(), dir).is_lt());
        let to = from + self.0[from..].partition_point(|path| side(path.borrow(), dir).is_le());
        &self.0[from..to]
    }
}

/// Where `path` stands to the paths strictly below `dir`: before, among or behind them.
fn side(path: &RelPath, dir: &RelPath) -> Ordering {
    let (path, prefix) = (path.as_bytes(), dir.as_bytes());
    let head = &path[..path.len().min(prefix.len())];
    head.cmp(prefix).then_with(|| path.get(prefix.len()).map_or(Ordering::Less, |byte| byte.cmp(&b'/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_the_subtree() {
        let paths: Vec<RelPath> = ["a", "a.b", "a/x", "a/x/y", "a/z", "a0", "b/c/d"]
            .iter()
            .map(|text| RelPath::parse(text.as_bytes()).unwrap())
            .collect();
        let list = PathList::new(paths.iter().rev());
        let below = |dir: &str| {
            let mut names = Vec::new();
            list.names_in(&RelPath::parse(dir.as_bytes()).unwrap(), &mut names);
            let names: Vec<String> = names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
            names.join(" ")
        };
        assert_eq!(below(""), "a a.b a a0 b");
        assert_eq!(below("a"), "x z");
        assert_eq!(below("a/x"), "y");
        assert_eq!(below("a.b"), "");
        assert_eq!(below("b"), "c");
        assert!(list.contains(&paths[1]) && !list.any_below(&paths[1]));
        assert!(!list.contains(&RelPath::parse(b"b").unwrap()));
    }
}
