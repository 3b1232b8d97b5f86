//! The reasons why a workspace is not watched. None is an error: every capture then scans.

use std::fmt;

use notify::ErrorKind;

use super::Uncovered;
use crate::error::Error;

/// "Too many open files", which also means: too many instances of inotify.
const EMFILE: i32 = 24;

/// The reason why a workspace is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It (or the cookies' directory) is on a file system whose changes this kernel does not all see.
    Foreign(&'static str),
    /// The root can have no watch.
    Root(Uncovered),
    /// As many workspaces as one process takes are watched already.
    Share(u64),
    /// Anything else that the operating system said.
    Unusable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Foreign(name) => write!(f, "this machine does not see all changes on {name} file systems"),
            Refusal::Root(Uncovered::Limit) => {
                f.write_str("no watches are left; to allow more, raise fs.inotify.max_user_watches")
            }
            Refusal::Root(Uncovered::Unreadable) => f.write_str("the root cannot be read"),
            Refusal::Root(Uncovered::Foreign(name)) => write!(f, "the root is on a {name} file system"),
            Refusal::Root(Uncovered::Twin) => f.write_str("the root is mounted twice"),
            Refusal::Share(most) => write!(
                f,
                "{most} other workspaces are watched, and more would take the watchers of other programs; raise \
                 fs.inotify.max_user_instances to have more"
            ),
            Refusal::Unusable(text) => f.write_str(text),
        }
    }
}

impl From<notify::Error> for Refusal {
    fn from(error: notify::Error) -> Refusal {
        match &error.kind {
            ErrorKind::MaxFilesWatch => Refusal::Root(Uncovered::Limit),
            ErrorKind::Io(cause) if matches!(cause.raw_os_error(), Some(EMFILE)) => Refusal::Unusable(
                "no inotify instances are left; to allow more, raise fs.inotify.max_user_instances".to_owned(),
            ),
            _ => Refusal::Unusable(error.to_string()),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Unusable(error.text())
    }
}
