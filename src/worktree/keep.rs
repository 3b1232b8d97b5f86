//! Sorted paths that are wanted although the rules would not show the way to them.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::names::Names;
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;

/// An element of a list, which stands there for its path.
pub(super) trait Listed: Clone {
    fn path(&self) -> &RelPath;
}

impl Listed for RelPath {
    fn path(&self) -> &RelPath {
        self
    }
}

impl Listed for &RelPath {
    fn path(&self) -> &RelPath {
        self
    }
}

impl Listed for (RelPath, KnownFile) {
    fn path(&self) -> &RelPath {
        &self.0
    }
}

/// A sorted list of paths, asked for members and for what lies below a directory.
pub(super) struct PathList<'a, P: Clone>(Cow<'a, [P]>);

impl<'a, P: Listed> PathList<'a, P> {
    /// From paths in any order.
    pub(super) fn new(paths: impl IntoIterator<Item = P>) -> PathList<'a, P> {
        let mut list: Vec<P> = paths.into_iter().collect();
        if !list.is_sorted_by(|a, b| a.path() <= b.path()) {
            list.sort_unstable_by(|a, b| a.path().cmp(b.path()));
        }
        PathList(Cow::Owned(list))
    }

    /// From paths that are sorted.
    pub(super) fn sorted(list: &'a [P]) -> PathList<'a, P> {
        PathList(Cow::Borrowed(list))
    }

    /// Tells whether the path itself is listed.
    pub(super) fn contains(&self, path: &RelPath) -> bool {
        self.0.binary_search_by(|listed| listed.path().cmp(path)).is_ok()
    }

    /// Returns those of it that are not in `other`.
    pub(super) fn not_in<'s>(&'s self, other: &'s PathList<'_, P>) -> impl Iterator<Item = &'s RelPath> {
        self.0.iter().map(Listed::path).filter(|path| !other.contains(path))
    }

    /// Tells whether something strictly below `dir` is listed.
    pub(super) fn any_below(&self, dir: &RelPath) -> bool {
        !self.below(dir).is_empty()
    }

    /// Adds the names in `dir` through which listed paths are reached; may repeat a name.
    pub(super) fn names_in(&self, dir: &RelPath, names: &mut Names) {
        let skip = if dir.is_root() { 0 } else { dir.as_bytes().len() + 1 };
        let mut last: &[u8] = b"";
        for path in self.below(dir) {
            let rest = &path.path().as_bytes()[skip..];
            let name = rest.split(|byte| *byte == b'/').next().unwrap_or(rest);
            if last != name {
                names.push(name);
                last = name;
            }
        }
    }

    fn below(&self, dir: &RelPath) -> &[P] {
        if dir.is_root() {
            let from = self.0.partition_point(|path| path.path().is_root());
            return &self.0[from..];
        }
        let from = self.0.partition_point(|path| side(path.path(), dir).is_lt());
        let to = from + self.0[from..].partition_point(|path| side(path.path(), dir).is_le());
        &self.0[from..to]
    }
}

/// Returns where `path` stands to the paths strictly below `dir`: before, among or behind them.
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
            let mut names = Names::default();
            list.names_in(&RelPath::parse(dir.as_bytes()).unwrap(), &mut names);
            let names: Vec<&str> = names.iter().map(|name| std::str::from_utf8(name).unwrap()).collect();
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
