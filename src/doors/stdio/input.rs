//! Lines and signals, on their way to a session.

use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::requests;
use crate::checkpoint::Home;
use crate::doors::output::Output;
use crate::engine::Engine;
use crate::engine::connection::{Connection, Wake};
use crate::engine::session::{Root, Session, Tell};
use crate::error::{Code, Error, Result};
use crate::protocol::LineReader;

/// The settings with which the sidecar is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// piton's own directory.
    pub home: Home,
    /// The session's workspace; absent: found from the working directory, or said by `hello`.
    pub workspace: Option<PathBuf>,
    /// Settings from the command line.
    pub flags: Vec<(String, String)>,
    /// The time that pending work may take once the input has ended.
    pub grace: Duration,
    /// True if an agent started it: requests that take saved content away for good are refused.
    pub is_agents: bool,
}

/// The end of the sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All pending work was done.
    Clean,
    /// A second signal, or the grace period, cut pending work off.
    Forced,
}

/// Runs a session whose events come from a thread that `read` starts, with the longest line that it may read. Calls
/// `end` after the last answer.
///
/// # Errors
/// When the signals cannot be watched.
pub fn attend(
    options: Options,
    output: &Output,
    tell: Tell,
    (read, end): (impl FnOnce(Arc<Connection>, usize), impl FnOnce()),
) -> Result<Ended> {
    let engine = Arc::new(Engine::new(options.home.clone(), options.flags.clone()));
    let (connection, wakes) = Connection::new(Arc::clone(&engine), Root::of_process(options.workspace), tell);
    watch_signals(connection.waker())?;
    connection.with(Session::tells_alone);
    if options.is_agents {
        connection.with(Session::keep_content);
    }
    // The limit is asked for before the reader starts, because the first line needs it.
    if let Some(limit) = connection.with(|session| session.line_limit()) {
        read(Arc::clone(&connection), limit);
    }
    connection.serve(&wakes);
    let deadline = Instant::now() + options.grace;
    let closed = connection.finish(&wakes, deadline) && engine.close(deadline);
    // Closed before the output, so that no worker sends an answer after its end.
    connection.close();
    end();
    output.close(deadline);
    Ok(if closed { Ended::Clean } else { Ended::Forced })
}

/// Reads lines in a thread of its own. Each line is acted upon before the next is read, so that a fast client has to
/// wait.
pub(super) fn read_lines(
    input: impl Read + Send + 'static,
    connection: Arc<Connection>,
    output: Arc<Output>,
    limit: usize,
) {
    std::thread::spawn(move || {
        let mut reader = LineReader::new(BufReader::with_capacity(1 << 16, input), limit);
        loop {
            match reader.next_line() {
                Ok(Some(line)) => {
                    if connection.ask(|session| requests::line(session, &output, line)) != Some(true) {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the input can no longer be read");
                    break;
                }
            }
        }
        // If the clock's thread has ended, there is no one to wake.
        let _ = connection.wake(Wake::End);
    });
}

/// Has SIGTERM, SIGINT and SIGHUP wake the clock.
fn watch_signals(waker: SyncSender<Wake>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Error::new(Code::Internal, format!("signals cannot be watched: {error}")).caused_by(error))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if waker.send(Wake::Signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}
