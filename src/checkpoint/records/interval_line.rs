//! One answer of a watcher, as it stands in a line of the log of actions.

use serde::{Deserialize, Serialize};

use super::windows::Interval;
use crate::model::change::{Changes, Dirty, Reach, Why};
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;

/// The most paths of one answer of a watcher that are written; with more, everything counts as changed.
const MOST_PATHS: usize = 20_000;

/// An interval as it stands in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IntervalLine {
    by: String,
    since: i64,
    from: i64,
    to: i64,
    /// True if everything may have changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    all: bool,
    /// True if that is so because the root was moved or deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    head: bool,
    /// Changed entries (percent-quoted).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    /// Directories of which anything may have changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dirs: Vec<String>,
}

impl From<&Interval> for IntervalLine {
    fn from(interval: &Interval) -> IntervalLine {
        let Interval { by, since, from, to, changes, head_moved } = interval;
        let (mut paths, mut dirs, mut all) = (Vec::new(), Vec::new(), false);
        match changes {
            Changes::Paths(dirty) if dirty.len() <= MOST_PATHS => {
                for (path, reach) in dirty.iter() {
                    let list = if reach == Reach::Subtree { &mut dirs } else { &mut paths };
                    list.push(quote(path.as_bytes()));
                }
            }
            Changes::Paths(_) | Changes::Everything(_) => all = true,
        }
        let gone = *changes == Changes::Everything(Why::RootMoved);
        IntervalLine { by: by.clone(), since: *since, from: *from, to: *to, all, gone, head: *head_moved, paths, dirs }
    }
}

impl IntervalLine {
    /// Returns the interval; `None` for a line that cannot be read.
    pub(super) fn read(self) -> Option<Interval> {
        let IntervalLine { by, since, from, to, all, gone, head, paths, dirs } = self;
        // Why a path cannot be read does not matter: the whole line counts as damaged then, and tells of nothing.
        let parsed = |text: &String| RelPath::parse(&unquote(text).ok()?).ok();
        let changes = match all {
            true if gone => Changes::Everything(Why::RootMoved),
            true => Changes::Everything(Why::Forgotten),
            false => {
                let entries = paths.iter().map(|path| Some((parsed(path)?, Reach::Entry)));
                let subtrees = dirs.iter().map(|path| Some((parsed(path)?, Reach::Subtree)));
                Changes::Paths(Dirty::new(entries.chain(subtrees).collect::<Option<Vec<_>>>()?))
            }
        };
        Some(Interval { by, since, from, to, changes, head_moved: head })
    }
}
