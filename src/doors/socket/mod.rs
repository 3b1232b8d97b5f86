//! The daemon: the line protocol on a socket, for many workspaces and any number of clients (rank 5).
//!
//! An accelerator and nothing more: it keeps watchers and warm trees between hooks. Without it the same engine runs in a process
//! of its own ([`Link::alone`]), with the same results and the same turn state. `$PITON_HOME/daemon` (0700) holds the socket, the lock
//! that a daemon holds for its life, and its log.
//!
//! The accept loop greets each client at once with one line, however busy the workers are. A client that got it waits
//! to its deadline and starts no second engine. Each connection is a session on a thread of its own, so that a
//! workspace whose disk hangs holds up nobody else's answers.

mod link;
mod serve;

pub use link::{Link, Probe, Served, probe};
pub use serve::{Ended, run};

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::checkpoint::Home;
use crate::sys::pipe;

/// The time for which the daemon stays without a client, unless another time is given.
pub const IDLE: Duration = Duration::from_mins(10);

/// The time to wait for a daemon: for its greeting, and for a place in its queue.
const HANDSHAKE: Duration = Duration::from_millis(250);

/// The time to wait for a daemon that is just starting, as long as its process lives. Without it, a turn could begin in one process and end in another, which may be
/// the first to write it down.
const STARTING: Duration = Duration::from_secs(2);

/// The longest path of a socket that every system takes.
const MAX_SOCKET_PATH: usize = 100;

/// Returns the daemon's own directory.
pub fn dir(home: &Home) -> PathBuf {
    home.path().join("daemon")
}

/// Returns a path of the socket `name` that is short enough, and a descriptor that must stay open while the path is
/// used.
fn address(dir: &Path, name: &str) -> std::io::Result<(Option<std::fs::File>, PathBuf)> {
    let direct = dir.join(name);
    if direct.as_os_str().len() <= MAX_SOCKET_PATH {
        return Ok((None, direct));
    }
    let open = std::fs::File::open(dir)?;
    let short = crate::sys::descriptor::path(open.as_fd()).join(name);
    Ok((Some(open), short))
}

/// Connects to the daemon's socket.
fn connect(dir: &Path) -> std::io::Result<UnixStream> {
    let (_open, path) = address(dir, "socket")?;
    pipe::connect(&path, HANDSHAKE)
}
