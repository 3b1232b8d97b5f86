//! The session of an agent in which this process may run. Finding it needs the clients, which are of a higher rank: so the program
//! registers the way at its start. Without one, no process is an agent's.

use std::sync::OnceLock;

/// Returns the start of the agent's session in which this process runs, in nanoseconds since 1970; `None` outside of all sessions.
pub type FindSession = fn() -> Option<i64>;

static FIND: OnceLock<FindSession> = OnceLock::new();

/// Registers the way to find the session. Only the first call counts.
pub fn find_by(find: FindSession) {
    // The program calls it once.
    let _ = FIND.set(find);
}

/// Returns the start of the agent's session in which this process runs; `None` outside of all sessions.
pub fn since() -> Option<i64> {
    FIND.get().and_then(|find| find())
}
