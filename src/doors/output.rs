//! The writer. A thread of its own writes lines that cannot be written at once, so that a client that does not read
//! never stops the guard.

use std::io::{ErrorKind, Write, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::protocol::{NoticeBody, notice_line};
use crate::sys::pipe::Ready;

/// The most bytes of unread replies. More are dropped, with a line on stderr: the client has stopped reading.
const MAX_QUEUED: usize = 64 << 20;

/// The least time that the writer has for the remaining lines.
const LEAST: Duration = Duration::from_millis(200);

/// Lines on their way to a client.
pub struct Output {
    /// `None` once it is closed.
    sender: Mutex<Option<Sender<Vec<u8>>>>,
    queued: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
    /// The way for lines that can be written at once; the thread takes those that would have to wait.
    ready: Option<Ready>,
    /// The number of the last notice. Locked until the notice is on its way.
    sequence: Mutex<u64>,
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
                // Counted down after the write, so that `send` does not write into the middle of a line.
                counter.fetch_sub(line.len(), Ordering::SeqCst);
            }
        });
        Output { sender: Mutex::new(Some(sender)), queued, thread, ready: None, sequence: Mutex::default() }
    }

    /// Starts the writer of stdout, where it can be seen in advance if a write would wait.
    pub fn to_stdout() -> Output {
        Output { ready: Ready::of(stdout()), ..Output::start(stdout()) }
    }

    /// Sends a whole line.
    pub fn send(&self, line: Vec<u8>) {
        // Held to the end, or a line of another thread could be queued between the look and the write, and this one would
        // land in the middle of it.
        let sender = locked(&self.sender);
        let Some(sender) = &*sender else { return };
        let queued = self.queued.load(Ordering::SeqCst);
        // Only with an empty queue, or this line would overtake the waiting ones.
        if queued == 0 && self.ready.as_ref().is_some_and(|ready| ready.write(&line)) {
            return;
        }
        if queued + line.len() > MAX_QUEUED {
            tracing::warn!("the client does not read its replies; one was dropped");
            return;
        }
        self.queued.fetch_add(line.len(), Ordering::SeqCst);
        if sender.send(line).is_err() {
            tracing::warn!("the writer has ended");
        }
    }

    /// Sends a notice with the next sequence number.
    pub fn notice(&self, body: NoticeBody) {
        // Held until the line is sent: numbers have to arrive in their order.
        let mut sequence = locked(&self.sequence);
        *sequence += 1;
        self.send(notice_line(*sequence, body));
    }

    /// Waits until everything is written, at most until `deadline`; a client that does not read is not waited for.
    pub fn close(&self, deadline: Instant) {
        locked(&self.sender).take();
        let deadline = deadline.max(Instant::now() + LEAST);
        // A join would wait without an end for a client that does not read.
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes and flushes; `false` when the reader is gone. The guard keeps working without it.
fn write_line(out: &mut impl Write, line: &[u8]) -> bool {
    match out.write_all(line).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != ErrorKind::BrokenPipe {
                tracing::warn!(%error, "replies cannot be written; guarding continues");
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};

    use super::*;

    #[test]
    fn lines_of_two_threads_come_whole() {
        const LINES: usize = 2000;
        let (reader, writer) = pipe().unwrap();
        let output = Arc::new(Output { ready: Ready::of(&writer), ..Output::start(writer) });
        // Long lines fill the pipe, and short ones are written at once where there is room.
        let threads: Vec<_> = [(b'l', 30_000), (b's', 20)]
            .into_iter()
            .map(|(byte, length)| {
                let output = Arc::clone(&output);
                std::thread::spawn(move || {
                    for _ in 0..LINES {
                        let mut line = vec![byte; length];
                        line.push(b'\n');
                        output.send(line);
                    }
                })
            })
            .collect();
        let mut lines = BufReader::with_capacity(1 << 12, reader).split(b'\n');
        for _ in 0..2 * LINES {
            let line = lines.next().unwrap().unwrap();
            let length = if line.first() == Some(&b'l') { 30_000 } else { 20 };
            assert!(line.len() == length && line.iter().all(|byte| *byte == line[0]), "a torn line");
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        output.close(Instant::now());
        output.send(b"after the end\n".to_vec());
        drop(output);
        assert!(lines.next().is_none());
    }
}
