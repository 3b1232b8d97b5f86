//! Stands between an MCP client and its server. Every message passes unchanged, both ways. A call of a tool that writes
//! passes when its checkpoint exists, or its deadline is over.
//!
//! One thread serves each direction and holds at most one message. A side that does not read stops only the thread that
//! writes to it. The guard is a session of the engine in this process.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write, stderr, stdin, stdout};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::guard::{CallEnds, Guard};
use crate::checkpoint::Home;
use crate::doors::aloud;
use crate::doors::output::Output;
use crate::error::{Code, Error, Result};
use crate::mcp::notice::{announces_logging, log_message};
use crate::mcp::{Call, Tools, refusal};
use crate::sys::child;
use crate::sys::fs::durable::with_callers_umask;

/// The longest message that is read; a longer one passes in pieces, and counts as a call that writes.
const MAX_MESSAGE: usize = 8 << 20;

/// The guard of the calls.
#[derive(Clone, Debug)]
pub enum Guarding {
    /// An engine over this home.
    By(Home),
    /// There is no guard, and why: every message passes.
    Nobody(String),
}

/// The settings with which the proxy is started.
#[derive(Clone, Debug)]
pub struct Proxied {
    /// The guard of the calls, or the reason why there is none.
    pub guarding: Guarding,
    /// The workspace; if absent, it is found from the working directory, or from the paths of a call.
    pub workspace: Option<PathBuf>,
    /// Settings from the command line.
    pub flags: Vec<(String, String)>,
    /// The server and its arguments.
    pub command: Vec<OsString>,
}

/// Runs the server until it ends and all that it wrote is passed on. Returns its exit code.
///
/// # Errors
/// When the server cannot be started, or the signals cannot be watched.
pub fn proxy(options: Proxied) -> Result<u8> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Error::new(Code::Internal, format!("signals cannot be watched: {error}")).caused_by(error))?;
    let (server, input, output) = Server::start(&options.command)?;
    let handed = Arc::clone(&server);
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if !handed.signal(signal) {
                // The server is gone, and a process that inherited its streams keeps them open: waiting for their end
                // could last forever.
                std::process::exit(128 + signal);
            }
        }
    });
    let waited = server.await_end();
    let unguarded = match &options.guarding {
        Guarding::By(_) => None,
        Guarding::Nobody(why) => Some(format!("NOT GUARDED: calls that write run without a checkpoint: {why}")),
    };
    // A client that does not read stderr, or a stopped terminal, must not hold the messages up.
    let said = Arc::new(Output::start(stderr()));
    aloud::speak(&said, unguarded.iter().cloned().collect());
    let mut guard = match &options.guarding {
        Guarding::By(home) => Some(Guard::start(home, &options, Arc::clone(&said))),
        Guarding::Nobody(_) => None,
    };
    let ending = guard.as_mut().and_then(Guard::ending);
    let ends = guard.as_ref().map(Guard::call_ends);
    let shared = Arc::new(Shared { tools: Mutex::default(), out: Mutex::default(), ends });
    let mut up = Up { shared: Arc::clone(&shared), said: Arc::clone(&said), guard, server: input };
    std::thread::spawn(move || up.run(BufReader::with_capacity(1 << 16, stdin())));
    down(output, &shared, unguarded);
    // Closed now, so that the client sees the end of the stream even if the server keeps running.
    if let Err(error) = child::close_stdout() {
        tracing::warn!(%error, "cannot close the client's input after the server closed its output");
    }
    let status = waited.join().ok().flatten();
    if let Some(ending) = ending {
        ending.finish();
    }
    said.close(Instant::now());
    Ok(status.map_or(1, code))
}

/// Returns the code by which a shell tells how a process ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's process.
struct Server {
    id: u32,
    child: Mutex<Child>,
}

impl Server {
    fn start(command: &[OsString]) -> Result<(Arc<Server>, ChildStdin, ChildStdout)> {
        let missing = || Error::new(Code::BadRequest, "no server is given").hint("piton mcp-proxy -- SERVER ARGS…");
        let (program, arguments) = command.split_first().ok_or_else(missing)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawned = with_callers_umask(|| command.spawn());
        let mut child = spawned.map_err(|error| Error::io(error, "starting the MCP server", program.as_ref()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => {
                Ok((Arc::new(Server { id: child.id(), child: Mutex::new(child) }), input, output))
            }
            _ => Err(Error::new(Code::Internal, "the MCP server was started without its streams")),
        }
    }

    /// Waits for its end in a thread, so that no signal goes to another process that got its id.
    fn await_end(self: &Arc<Server>) -> JoinHandle<Option<ExitStatus>> {
        let server = Arc::clone(self);
        std::thread::spawn(move || {
            if let Err(error) = child::await_end(server.id) {
                tracing::warn!(%error, "cannot wait for the server");
            }
            locked(&server.child).wait().ok()
        })
    }

    /// Passes a signal on; `false` when the server has ended.
    fn signal(&self, number: i32) -> bool {
        let mut child = locked(&self.child);
        // Under the lock and before the signal: the id of a reaped child may belong to another process.
        if !matches!(child.try_wait(), Ok(None)) {
            return false;
        }
        if let Err(error) = child::signal(self.id, number) {
            tracing::warn!(%error, "cannot forward a signal");
        }
        true
    }
}

/// A message with its newline, if it has one. Of a message over the limit, only the beginning.
struct Message {
    bytes: Vec<u8>,
    whole: bool,
}

/// Reads the next message; `None` at the end, and after an error.
fn next(input: &mut impl BufRead) -> Option<Message> {
    let mut bytes = Vec::new();
    if let Err(error) = input.by_ref().take(MAX_MESSAGE as u64).read_until(b'\n', &mut bytes) {
        tracing::warn!(%error, "a stream of the MCP proxy can no longer be read");
    }
    let whole = bytes.len() < MAX_MESSAGE || bytes.ends_with(b"\n");
    (!bytes.is_empty()).then_some(Message { bytes, whole })
}

/// Passes on the rest of a message, piece by piece.
fn rest(input: &mut impl BufRead, mut out: impl Write) -> std::io::Result<()> {
    loop {
        let piece = match input.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let end = piece.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let length = end.unwrap_or(piece.len());
        out.write_all(&piece[..length])?;
        input.consume(length);
        if end.is_some() || length == 0 {
            return out.flush();
        }
    }
}

/// The state that both directions use.
struct Shared {
    tools: Mutex<Tools>,
    /// Held for a whole message to the client.
    out: Mutex<()>,
    /// The way to note the ends of calls; `None` without a guard.
    ends: Option<CallEnds>,
}

/// Passes messages from the server to the client, until one of them closes. Sends `notice` to the client as soon as the
/// server has said that it sends log messages.
fn down(output: ChildStdout, shared: &Shared, mut notice: Option<String>) {
    let mut output = BufReader::with_capacity(1 << 16, output);
    while let Some(message) = next(&mut output) {
        // Noted before the client has the message: its next call may use a tool that is listed here.
        if message.whole {
            let answered = locked(&shared.tools).from_server(&message.bytes);
            // Before the client has the answer: what changes from then on is not the call's.
            answered.into_iter().for_each(|call| shared.ends.iter().for_each(|ends| ends.note(call.clone())));
        }
        // Held for the whole message: a refusal by the other thread must not come into its middle.
        let alone = locked(&shared.out);
        let mut client = stdout().lock();
        let mut passed = client.write_all(&message.bytes).and_then(|()| client.flush());
        if !message.whole {
            passed = passed.and_then(|()| rest(&mut output, &mut client));
        } else if let Some(text) = notice.take_if(|_| announces_logging(&message.bytes)) {
            let told = log_message(&format!("piton: {text}"));
            passed = passed.and_then(|()| client.write_all(&told)).and_then(|()| client.flush());
        }
        drop(alone);
        if let Err(error) = passed {
            // The dropped output tells the server.
            tracing::debug!(%error, "the client no longer reads");
            return;
        }
    }
}

/// The direction from the client to the server.
struct Up {
    shared: Arc<Shared>,
    /// The sentences for people.
    said: Arc<Output>,
    /// `None` without a guard.
    guard: Option<Guard>,
    server: ChildStdin,
}

impl Up {
    /// Passes messages until one of them closes. The server sees the end when this is dropped.
    fn run(&mut self, mut client: impl BufRead) {
        while let Some(message) = next(&mut client) {
            let passed = match self.held(&message) {
                Some(reason) => self.refuse(&message, &reason, &mut client),
                None => self.pass(&message, &mut client),
            };
            if let Err(error) = passed {
                tracing::debug!(%error, "the server no longer reads");
                if let Err(error) = child::close_stdin() {
                    tracing::warn!(%error, "cannot close the server's input after the client closed its own");
                }
                return;
            }
        }
    }

    /// Waits for the checkpoints of a message's calls; the reason if policy denies one.
    fn held(&mut self, message: &Message) -> Option<String> {
        let calls = if message.whole {
            locked(&self.shared.tools).from_client(&message.bytes)
        } else {
            // Such a message cannot be parsed, so the worst is assumed: a call that may write anything.
            let tool = "a message too long to be read".to_owned();
            vec![Call { id: None, tool, arguments: serde_json::Value::Null, external: false, doubt: true }]
        };
        let Some(guard) = &mut self.guard else {
            let passing = calls.iter().map(|call| format!("not guarded: `{}` runs without a checkpoint", call.tool));
            aloud::speak(&self.said, passing.collect());
            return None;
        };
        calls.iter().find_map(|call| guard.refusal(call))
    }

    fn pass(&mut self, message: &Message, client: &mut impl BufRead) -> std::io::Result<()> {
        self.server.write_all(&message.bytes).and_then(|()| self.server.flush())?;
        if message.whole { Ok(()) } else { rest(client, &mut self.server) }
    }

    fn refuse(&self, message: &Message, reason: &str, client: &mut impl BufRead) -> std::io::Result<()> {
        if !message.whole {
            let told = "a message that is too long was neither forwarded nor answered, because the policy denies actions that piton cannot check";
            aloud::speak(&self.said, vec![told.to_owned()]);
            return rest(client, std::io::sink());
        }
        if let Some(answer) = refusal(&message.bytes, reason) {
            let _alone = locked(&self.shared.out);
            let mut out = stdout().lock();
            if let Err(error) = out.write_all(&answer).and_then(|()| out.flush()) {
                tracing::debug!(%error, "the client no longer reads");
            }
        }
        Ok(())
    }
}
