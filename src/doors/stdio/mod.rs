//! The line protocol on any pair of streams: lines become events and requests, decisions and results become lines.
//!
//! No thread waits for a worker or for the client while it holds the session's lock. A checkpoint that is not there by
//! its deadline is answered `late`, and the agent continues.

mod calls;
mod input;
mod requests;
mod steps;

use std::io::{Read, Write, stdin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::output::Output;
use super::replies;
use crate::engine::Engine;
use crate::engine::connection::Connection;
use crate::engine::decision::Notice;
use crate::engine::session::{Root, Session, Tell};
use crate::error::Result;
use crate::protocol::ErrorReply;

pub use calls::{foreign, inside, list_reply};
pub use input::{Ended, Options, attend};

/// The time that pending work may take at the end, unless more is asked for.
pub const GRACE: Duration = Duration::from_secs(10);

/// The time that a client's pending work may take where no process waits for the end.
const LONG: Duration = Duration::from_hours(1);

/// Runs until the input ends, `shutdown` is asked or a signal comes.
///
/// # Errors
/// When the signals cannot be watched.
pub fn run(options: Options) -> Result<Ended> {
    let output = Arc::new(Output::to_stdout());
    let lines = Arc::clone(&output);
    let read = |connection, limit| input::read_lines(stdin(), connection, lines, limit);
    attend(options, &output, teller(&output), (read, || ()))
}

/// Serves one of several clients that share an engine, until its input has ended and nothing that it asked for is
/// pending. Its requests may not take saved content away: the verbs of the command line do that without a daemon.
pub fn converse(engine: Arc<Engine>, input: impl Read + Send + 'static, output: impl Write + Send + 'static) {
    let output = Arc::new(Output::start(output));
    let (connection, wakes) = Connection::new(engine, Root::Unknown, teller(&output));
    connection.with(Session::keep_content);
    if let Some(limit) = connection.with(|session| session.line_limit()) {
        input::read_lines(input, Arc::clone(&connection), Arc::clone(&output), limit);
    }
    connection.serve(&wakes);
    connection.finish(&wakes, Instant::now() + LONG);
    connection.close();
    output.close(Instant::now());
}

/// Returns a closure that writes notices as lines.
pub fn teller(output: &Arc<Output>) -> Tell {
    let output = Arc::clone(output);
    Box::new(move |notice| match (replies::notice(&notice), notice) {
        (Some(body), _) => output.notice(body),
        (None, Notice::Fault(error)) => output.send(ErrorReply::line(None, &error)),
        (None, _) => {}
    })
}
