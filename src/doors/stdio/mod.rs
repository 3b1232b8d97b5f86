//! The sidecar: the line protocol on stdin and stdout (rank 5).
//!
//! A session is shared by its reader, the workers and a clock, each of which does what it has for it under the session's
//! lock. Under that nobody waits for a worker or for the client: a checkpoint that is not there by its deadline is answered
//! `late`, and the agent goes on.

mod actions;
mod answers;
mod calls;
pub(super) mod conversation;
mod input;
mod notes;
pub(super) mod output;
mod pending;
mod runs;
mod session;
mod settled;
mod turns;
mod words;

use std::io::{Read, Write, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::checkpoint::Home;
use crate::engine::Engine;
use crate::error::Result;
use answers::Answer;
use conversation::{Conversation, News, hear};
use output::Output;
use session::{Root, Session};

/// An engine that several clients share.
pub type Shared = Arc<Engine<Answer>>;

/// How long pending work may take at the end, unless more is asked for.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long a client's pending work may take where nobody waits for the end.
const LONG: Duration = Duration::from_secs(3600);

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
    guard(options, Output::to_stdout(), |conversation, limit| input::read_lines(stdin(), conversation, limit))
}

/// Runs a session whose lines come from a thread that `read` starts.
pub(super) fn guard(options: Options, output: Output, read: impl FnOnce(Arc<Conversation>, usize)) -> Result<Ended> {
    let engine = Arc::new(Engine::new(options.home.clone(), options.flags.clone()));
    let root = Root::of_process(options.workspace);
    let (conversation, told) = Conversation::new(Arc::clone(&engine), output, root);
    input::watch_signals(conversation.news())?;
    begin(&conversation, read);
    serve(&told, &conversation);
    let deadline = Instant::now() + options.grace;
    let closed = finish(&told, &conversation, deadline) && engine.close(deadline);
    conversation.close(deadline);
    Ok(if closed { Ended::Clean } else { Ended::Forced })
}

/// Serves one of several clients that share an engine: until its input ends, and nothing it asked for is pending any more.
pub fn converse(engine: Shared, input: impl Read + Send + 'static, output: impl Write + Send + 'static) {
    let (conversation, told) = Conversation::new(engine, Output::start(output), Root::Unknown);
    begin(&conversation, |conversation, limit| input::read_lines(input, conversation, limit));
    serve(&told, &conversation);
    finish(&told, &conversation, Instant::now() + LONG);
    conversation.close(Instant::now());
}

fn begin(conversation: &Arc<Conversation>, read: impl FnOnce(Arc<Conversation>, usize)) {
    if let Some(limit) = conversation.with(|session| session.line_limit()) {
        read(Arc::clone(conversation), limit);
    }
}

/// Keeps the deadlines until the end is asked for.
fn serve(told: &Receiver<News>, conversation: &Conversation) {
    let mut gates = Vec::new();
    loop {
        let open_gates = |session: &mut Session| {
            if !session.is_starting() {
                gates.clear();
            }
            (!gates.is_empty(), ())
        };
        let Some(((), next)) = conversation.look(open_gates) else { return };
        match hear(told, next) {
            Some(News::Gate(gate)) => gates.push(gate),
            Some(News::Look) => {}
            Some(News::End | News::Signal) | None => return,
        }
    }
}

/// Ends in order: the `exit` checkpoint of an open run, then whatever is pending, until the deadline. A second signal
/// forces. Says whether all was done.
fn finish(told: &Receiver<News>, conversation: &Conversation, deadline: Instant) -> bool {
    conversation.end();
    loop {
        match conversation.look(|session| (true, session.is_pending())) {
            Some((false, _)) => return true,
            Some((true, next)) if Instant::now() < deadline => {
                let next = next.map_or(deadline, |next| next.min(deadline));
                if matches!(hear(told, Some(next)), Some(News::Signal) | None) {
                    return false;
                }
            }
            Some((true, _)) | None => return false,
        }
    }
}

/// How the domain stands in replies: `--json` of the command line is the same.
pub mod shared {
    pub use super::answers::rolled_back;
    pub use super::answers::{block, over, preview, restored, stat, status};
    pub use super::calls::{foreign, inside, list_reply};
    pub use super::runs::{list as run_list, status_word};
    pub use super::words::{guard_word, run_id, why_off};
}
