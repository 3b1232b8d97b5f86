//! The sidecar: the line protocol on stdin and stdout (rank 5).
//!
//! One loop thread owns all session state. Readers, signals and workers send to it; it sends to workers and to the
//! writer, and waits for none of them: a checkpoint that is not there by its deadline is answered `late`, and the agent
//! goes on.

mod actions;
mod aloud;
mod answers;
mod calls;
mod holds;
mod input;
mod notes;
mod output;
mod pending;
mod proxy;
mod runs;
mod session;
mod settled;
mod stream;
mod turns;
mod words;

use std::io::{Read, Write, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use crate::checkpoint::Home;
use crate::engine::Engine;
use crate::engine::worker::Finished;
use crate::error::Result;
use answers::Answer;
use input::Input;
use output::Output;
use session::{Root, Session};

pub use proxy::{Guarding, Proxied, proxy};
pub use stream::follow;

/// An engine that several clients share.
pub type Shared = Arc<Engine<Answer>>;

/// How long pending work may take at the end, unless more is asked for.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long a client's pending work may take where nobody waits for the end.
const LONG: Duration = Duration::from_secs(3600);
/// Inputs that may wait for the loop; few, because each may be a line as long as the limit.
const QUEUE: usize = 16;

/// How the sidecar is started.
#[derive(Clone, Debug)]
pub struct Options {
    pub home: Home,
    /// The session's workspace; absent: found from the working directory, or said by `hello`.
    pub workspace: Option<PathBuf>,
    /// Settings from the command line.
    pub flags: Vec<(String, String)>,
    /// How long pending work may take once the input has ended.
    pub grace: Duration,
}

/// How the sidecar ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All pending work was done.
    Clean,
    /// A second signal, or the grace period, cut pending work off.
    Forced,
}

/// Runs until the input ends, `shutdown` is asked or a signal comes.
///
/// # Errors
/// When the signals cannot be watched.
pub fn run(options: Options) -> Result<Ended> {
    guard(options, Output::to_stdout(), |sender, limit| input::read_lines(stdin(), sender, limit))
}

/// Runs a session whose lines come from a thread that `read` starts.
fn guard(options: Options, output: Output, read: impl FnOnce(SyncSender<Input>, usize)) -> Result<Ended> {
    let (sender, inputs) = mpsc::sync_channel::<Input>(QUEUE);
    input::watch_signals(sender.clone())?;
    let engine = Arc::new(Engine::new(options.home.clone(), options.flags.clone()));
    let root = Root::of_process(options.workspace);
    let mut session = Session::new(Arc::clone(&engine), told(&sender), output, root);
    read(sender, session.line_limit());
    let asked = serve(&inputs, &mut session);
    if asked == Asked::Force {
        return Ok(Ended::Forced);
    }
    let deadline = Instant::now() + options.grace;
    let finished = finish(&inputs, &mut session, deadline);
    let closed = finished && engine.close(deadline);
    session.close(deadline);
    Ok(if closed { Ended::Clean } else { Ended::Forced })
}

/// Serves one of several clients that share an engine: until its input ends, and nothing it asked for is pending any more.
pub fn converse(engine: Shared, input: impl Read + Send + 'static, output: impl Write + Send + 'static) {
    let (sender, inputs) = mpsc::sync_channel::<Input>(QUEUE);
    let mut session = Session::new(engine, told(&sender), Output::start(output), Root::Unknown);
    input::read_lines(input, sender, session.line_limit());
    serve(&inputs, &mut session);
    finish(&inputs, &mut session, Instant::now() + LONG);
    session.close(Instant::now());
}

/// By which workers tell a session what a job came to.
fn told(sender: &SyncSender<Input>) -> Finished<Answer> {
    let sender = sender.clone();
    // A session that is gone has nothing pending.
    Arc::new(move |ticket, answer| drop(sender.send(Input::Finished(ticket, answer))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    End,
    Force,
}

/// Serves until the end is asked for.
fn serve(inputs: &Receiver<Input>, session: &mut Session) -> Asked {
    let mut gates = Vec::new();
    loop {
        if !session.is_starting() {
            gates.clear();
        }
        match receive(inputs, session.next_deadline()) {
            Some(Input::Gate(gate)) => gates.push(gate),
            Some(Input::Fault(error)) => session.told_fault(&error),
            Some(Input::Farewell(name, body)) => session.output.at_the_end(name, body),
            Some(Input::Line(line)) => {
                if session.line(line) {
                    return Asked::End;
                }
            }
            Some(Input::End) | None => return Asked::End,
            Some(Input::Signal) => return Asked::End,
            Some(Input::Finished(ticket, answer)) => session.finished(ticket, answer),
            Some(Input::Tick) => session.deadlines(Instant::now()),
        }
    }
}

/// Ends in order: the `exit` checkpoint of an open run, then whatever is pending, until the deadline. A second signal
/// forces. Says whether all was done.
fn finish(inputs: &Receiver<Input>, session: &mut Session, deadline: Instant) -> bool {
    session.end();
    while session.is_pending() {
        let next = session.next_deadline().map_or(deadline, |next| next.min(deadline));
        match receive(inputs, Some(next)) {
            Some(Input::Finished(ticket, answer)) => session.finished(ticket, answer),
            Some(Input::Signal) => return false,
            Some(Input::Line(_) | Input::Gate(_) | Input::End) => {}
            Some(Input::Fault(error)) => session.told_fault(&error),
            Some(Input::Farewell(name, body)) => session.output.at_the_end(name, body),
            Some(Input::Tick) => session.deadlines(Instant::now()),
            None => break,
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
    true
}

/// The next input, or a tick at `deadline`; `None` when nobody can send any more.
fn receive(inputs: &Receiver<Input>, deadline: Option<Instant>) -> Option<Input> {
    let Some(deadline) = deadline else {
        return inputs.recv().ok();
    };
    match inputs.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(input) => Some(input),
        Err(RecvTimeoutError::Timeout) => Some(Input::Tick),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// How the domain stands in replies: `--json` of the command line is the same.
pub mod shared {
    pub use super::answers::rolled_back;
    pub use super::answers::{block, preview, restored, status};
    pub use super::calls::{list_reply, nothing};
    pub use super::runs::{list as run_list, status_word};
    pub use super::words::{guard_word, run_id};
}
