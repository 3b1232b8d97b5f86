//! The judge of silence: from the clues of a client's work, the changes of files, and the last event, to a verdict. No clock, no files.
//!
//! *Invariant:* a client that works with its hooks is never called silent, and neither is one that waits, reads or answers. An act of
//! which a session's file tells is the strong clue. Growth of files and commands at work are weak ones: an action that is open, and
//! may run for hours, explains both.

use crate::agents::Client;

/// The time by which an event may be noted before the act that it tells of: clocks of files count in steps, and marks in seconds.
pub(super) const SLACK: i64 = 5_000;

/// The time after which the event of several acts must have come.
const SEVERAL: i64 = 10_000;

/// The same for a single act. A client may refuse its own model an act without asking a hook.
const SINGLE: i64 = 30_000;

/// The time after which an act is history.
pub(super) const HISTORY: i64 = 24 * 3_600_000;

/// The time for which a client's files grow after its last event before that counts. A model may think, and a person may look at its
/// question.
const GROWTH: i64 = 180_000;

/// The time for which a client's command runs before it counts.
const COMMAND: i64 = 3_000;

/// The time after its start in which a client starts servers and helpers, by shells too.
const BEGINNING: i64 = 30_000;

/// The step of the coarsest clock of files.
const STEP: i64 = 2_000;

/// The time before the last growth of a client's files in which changes are its own.
const NEAR: i64 = 120_000;

/// The clues of one client's work in one workspace. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientClues {
    /// The client.
    pub client: Client,
    /// The time up to which nothing is missed: of its last event here, or of what has begun its story anew.
    pub heard: Option<i64>,
    /// The start of its oldest process at work here.
    pub began: Option<i64>,
    /// The acts that its sessions tell of, in any order.
    pub acts: Vec<i64>,
    /// The last growth of its files, where these tell nothing more, and are of this workspace alone.
    pub grown: Option<i64>,
    /// The starts of the commands that its processes have at work.
    pub commands: Vec<i64>,
}

impl ClientClues {
    /// Returns clues that tell of no work.
    pub fn none(client: Client) -> ClientClues {
        ClientClues { client, heard: None, began: None, acts: Vec::new(), grown: None, commands: Vec::new() }
    }
}

/// A client that is at work without events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The client.
    pub client: Client,
    /// The time since which it is, in milliseconds since the epoch.
    pub since: i64,
}

/// A client that seems to work without events; files that changed are still to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The time since which the client would be silent.
    pub since: i64,
    /// The times from which on, and until which, changes would be its own.
    pub changed: (i64, i64),
    /// The number of changes, each some seconds from the next, that prove it.
    pub changes: usize,
    /// True if an action that is open explains it.
    pub is_weak: bool,
}

/// Returns the suspicion that the clues raise.
pub fn suspicion(clues: &ClientClues, now: i64) -> Option<Suspicion> {
    let heard = clues.heard.unwrap_or(i64::MIN);
    let is_missed = |at: &i64| *at > heard.saturating_add(SLACK) && *at > now - HISTORY;
    let acts: Vec<i64> = clues.acts.iter().copied().filter(is_missed).collect();
    if let Some(first) = acts.iter().min().copied() {
        let patience = if acts.len() > 1 { SEVERAL } else { SINGLE };
        if now - first >= patience {
            return Some(Suspicion::from(first));
        }
    }
    let is_helper = |at: i64| clues.began.is_none_or(|began| at < began + BEGINNING);
    let commands = clues.commands.iter().copied().filter(is_missed);
    if let Some(first) = commands.filter(|at| now - at >= COMMAND && !is_helper(*at)).min() {
        return Some(Suspicion { is_weak: true, ..Suspicion::from(first) });
    }
    // Without a process, somebody else may have written to the files.
    let since = clues.heard.max(clues.began).filter(|_| clues.began.is_some())?;
    let grown = clues.grown.filter(|grown| *grown - since >= GROWTH && *grown > now - HISTORY)?;
    let changed = (grown - NEAR, grown + STEP);
    Some(Suspicion { since: changed.0, changed, changes: 2, is_weak: true })
}

impl Suspicion {
    fn from(first: i64) -> Suspicion {
        Suspicion { since: first, changed: (first - STEP, i64::MAX), changes: 1, is_weak: false }
    }

    /// Returns the verdict: `changes` are the times at which files of the workspace changed, and `is_open` tells of an action of the
    /// client that has not ended.
    pub fn verdict(&self, client: Client, changes: &[i64], is_open: bool) -> Option<Silence> {
        if self.is_weak && is_open {
            return None;
        }
        let (from, until) = self.changed;
        let mut its_own: Vec<i64> = changes.iter().copied().filter(|at| (from..=until).contains(at)).collect();
        its_own.sort_unstable();
        // A checkout changes many files at once.
        its_own.dedup_by(|later, earlier| *later - *earlier < SLACK);
        let first = *its_own.first()?;
        let since = if self.is_weak { self.since.max(first) } else { self.since };
        (its_own.len() >= self.changes).then_some(Silence { client, since })
    }
}

#[cfg(test)]
mod tests;
