//! What reaches the loop: lines, signals, finished jobs.

use std::io::{BufReader, Read};
use std::sync::mpsc::{Sender, SyncSender};

use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::answers::Answer;
use crate::error::{Code, Error, Result};
use crate::protocol::{Line, LineReader};

/// One thing for the loop.
pub enum Input {
    Line(Line),
    /// Dropped as soon as no checkpoint of a turn's start is waited for: whoever holds the other end may go on.
    Gate(Sender<()>),
    /// What went wrong with the input, and is no request's error.
    Fault(Error),
    /// A notice for the end, of whoever reads the input.
    Farewell(&'static str, Value),
    /// The input has ended, or cannot be read any more.
    End,
    Signal,
    Finished(u64, Option<Answer>),
    /// A deadline has passed.
    Tick,
}

/// Reads lines in a thread of its own. The bounded channel is the back pressure.
pub fn read_lines(input: impl Read + Send + 'static, sender: SyncSender<Input>, limit: usize) {
    std::thread::spawn(move || {
        let mut reader = LineReader::new(BufReader::with_capacity(1 << 16, input), limit);
        loop {
            match reader.next_line() {
                Ok(Some(line)) => {
                    if sender.send(Input::Line(line)).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read any more");
                    break;
                }
            }
        }
        // A loop that is gone needs no end.
        let _ = sender.send(Input::End);
    });
}

/// Turns SIGTERM, SIGINT and SIGHUP into inputs.
pub fn watch_signals(sender: SyncSender<Input>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Error::new(Code::Internal, format!("signals cannot be watched: {error}")).caused_by(error))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if sender.send(Input::Signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}
