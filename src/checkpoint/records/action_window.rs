//! The window of one action in the log of actions: what it may change, and when it was running.

use serde::{Deserialize, Serialize};

use crate::model::meta::quote;
use crate::model::path::RelPath;

/// The time in which one action was running, as far as its session has reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionWindow {
    /// The name of the actor: of a run, or of a session whose run is shared.
    pub actor: String,
    /// The client's id of the action, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The digest of the tool and its arguments, by which the end of an action without an id is matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The paths that it names, with everything below them (percent-quoted).
    pub named: Vec<String>,
    /// The paths that it creates or appends to, without anything below them (percent-quoted).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<String>,
    /// True if it may move HEAD: it names git.
    pub moves_head: bool,
    /// True if it may change paths that it does not name.
    #[serde(default, alias = "is_opaque", skip_serializing_if = "std::ops::Not::not")]
    pub and_others: bool,
    /// True if it changes those by git alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_git: bool,
    /// True if it only deletes: content that is there was written by something else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_deletes: bool,
    /// True if it starts a background job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_work: bool,
    /// The process that alone could report its end, by its name among those that append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The moment at which the client asked for it.
    pub from: i64,
    /// The ordinal of the checkpoint that protects it, if that was taken before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// The moment at which it ended; `None` if the client has reported no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// The next event of its session after which it may have ended without a report; `None` if none has come. A later report of
    /// its end counts instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<i64>,
    /// True if its client's process has ended while it was the session's last action: then it had begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl ActionWindow {
    /// Returns true if the action names a path, a directory above it, or something in it: directories are made for named files.
    pub fn names(&self, path: &RelPath) -> bool {
        let quoted = quote(path.as_bytes());
        let is_below = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // One that names the root names everything in it.
        let root = quote(RelPath::root().as_bytes());
        self.named.iter().any(|named| *named == root || is_below(named, &quoted) || is_below(&quoted, named))
            || self.alone.iter().any(|named| is_below(&quoted, named))
    }

    /// Returns true if the action may have changed a path.
    pub fn may_change(&self, path: &RelPath) -> bool {
        self.and_others || self.names(path)
    }

    /// Returns true if the client has neither reported an end nor left it.
    pub fn is_open(&self) -> bool {
        self.to.is_none() && self.left.is_none()
    }

    /// Returns true if the action may still be running: no end was reported, and no later event of its session came.
    pub fn may_run(&self) -> bool {
        self.to.is_none() && (self.left.is_none() || self.is_cut)
    }
}

/// The report of an end, by which an open action is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedCall {
    /// The client's id of the action, if it has one.
    pub action: Option<String>,
    /// The digest of the tool and its arguments, where the report repeats them.
    pub call: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_names_paths_and_what_is_below_them() {
        let (named, alone) = (vec!["a".into(), "x%20y/z".into()], vec!["d/e".into()]);
        let window = ActionWindow { named, alone, ..ActionWindow::default() };
        for (path, is_named) in [
            ("a", true),
            ("a/b", true),
            ("ab", false),
            ("x y/z/q", true),
            ("x y", true),
            ("x", false),
            ("d", true),
            ("d/e", true),
            ("d/e/f", false),
        ] {
            assert_eq!(window.names(&RelPath::parse(path.as_bytes()).unwrap()), is_named, "{path}");
        }
        let everything = ActionWindow { named: vec![quote(RelPath::root().as_bytes())], ..ActionWindow::default() };
        assert!(everything.names(&RelPath::parse(b"any/where").unwrap()));
    }
}
