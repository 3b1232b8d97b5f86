//! The writer: what cannot be written at once is written by a thread of its own, so that a client that does not read never stops
//! the guard.

use std::io::{ErrorKind, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::line;
use crate::sys::pipe::Ready;

/// Unread replies above this many bytes are dropped, said on stderr: the client has stopped reading.
const MAX_QUEUED: usize = 64 << 20;

/// Lines on their way to a client.
pub struct Output {
    sender: Option<Sender<Vec<u8>>>,
    queued: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
    /// For what can be written at once; the thread is for what would have to wait.
    ready: Option<Ready>,
    sequence: u64,
    /// The last notice.
    farewell: Option<(&'static str, Value)>,
}

impl Output {
    /// Starts the writer.
    pub fn start(mut out: impl Write + Send + 'static) -> Output {
        let (sender, receiver) = mpsc::channel::<Vec<u8>>();
        let queued = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&queued);
        let thread = std::thread::spawn(move || {
            let mut open = true;
            for line in receiver {
                if open {
                    open = write_line(&mut out, &line);
                }
                counter.fetch_sub(line.len(), Ordering::SeqCst);
            }
        });
        Output { sender: Some(sender), queued, thread, ready: None, sequence: 0, farewell: None }
    }

    /// Starts the writer of stdout, which can tell whether it would have to wait.
    pub fn to_stdout() -> Output {
        Output { ready: Ready::of(stdout()), ..Output::start(stdout()) }
    }

    /// Sends a whole line.
    pub fn send(&self, line: Vec<u8>) {
        let queued = self.queued.load(Ordering::SeqCst);
        if queued == 0 && self.ready.as_ref().is_some_and(|ready| ready.write(&line)) {
            return;
        }
        if queued + line.len() > MAX_QUEUED {
            tracing::warn!("the client does not read its replies; one was dropped");
            return;
        }
        self.queued.fetch_add(line.len(), Ordering::SeqCst);
        if let Some(sender) = &self.sender
            && sender.send(line).is_err()
        {
            tracing::warn!("the writer has ended");
        }
    }

    /// Sends a notice with the next sequence number.
    pub fn notice(&mut self, name: &str, body: &impl Serialize) {
        self.sequence += 1;
        let mut object = Map::new();
        object.insert("seq".to_owned(), self.sequence.into());
        object.insert("notice".to_owned(), name.into());
        if let Ok(Value::Object(fields)) = serde_json::to_value(body) {
            object.extend(fields);
        }
        self.send(line("notice", None, true, &object));
    }

    /// Keeps a notice for the end.
    pub fn at_the_end(&mut self, name: &'static str, body: Value) {
        self.farewell = Some((name, body));
    }

    /// Waits until everything is written, at most until `deadline`; a client that does not read is not waited for.
    pub fn close(mut self, deadline: Instant) {
        if let Some((name, body)) = self.farewell.take() {
            self.notice(name, &body);
        }
        self.sender = None;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Writes and flushes; `false` when nobody reads any more. The guard goes on all the same.
fn write_line(out: &mut impl Write, line: &[u8]) -> bool {
    match out.write_all(line).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                tracing::warn!(%error, "replies cannot be written; guarding goes on");
            }
            false
        }
    }
}
