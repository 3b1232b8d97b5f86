//! What reaches a session from outside: lines and signals.

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::conversation::{Conversation, News};
use crate::error::{Code, Error, Result};
use crate::protocol::LineReader;

/// Reads lines in a thread of its own, and does what each asks before the next one is read: that is the back pressure.
pub(super) fn read_lines(input: impl Read + Send + 'static, conversation: Arc<Conversation>, limit: usize) {
    std::thread::spawn(move || {
        let mut reader = LineReader::new(BufReader::with_capacity(1 << 16, input), limit);
        loop {
            match reader.next_line() {
                Ok(Some(line)) => {
                    if !conversation.line(line) {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read any more");
                    break;
                }
            }
        }
        // A clock that is gone needs no end.
        let _ = conversation.tell(News::End);
    });
}

/// Turns SIGTERM, SIGINT and SIGHUP into news.
pub(super) fn watch_signals(news: SyncSender<News>) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Error::new(Code::Internal, format!("signals cannot be watched: {error}")).caused_by(error))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if news.send(News::Signal).is_err() {
                return;
            }
        }
    });
    Ok(())
}
