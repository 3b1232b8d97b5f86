//! The answers that git gets to its question which files have changed: paths, or everything, and why.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::checkpoint::Home;
use crate::doors::socket::Link;
use crate::protocol::GitChangedReply;

/// The longest wait for an answer of the daemon.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says why git is told that everything may have changed, in a work tree where the settings want the changed paths; `None` where it is
/// told those.
pub(super) fn doubt(home: &Home, top: &Path) -> Option<String> {
    let ask = |token: &str| -> Option<GitChangedReply> {
        let until = Instant::now() + PATIENCE;
        // A daemon that is away or silent has no answer, which is what is said then.
        Link::to_running_by(home, until).ok()??.git_changed(top, token, until)
    };
    let Some(first) = ask("") else { return Some("no daemon is watching; the next git commands start one".to_owned()) };
    let Some(token) = first.token else { return first.everything };
    ask(&token).map_or_else(|| Some("the daemon does not answer".to_owned()), |second| second.everything)
}
