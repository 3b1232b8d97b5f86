//! The terminal while a program draws the whole screen: each key arrives at once and is not shown.
//!
//! Keys, changes of the size and the signals that end a process are all waited for in one place, so that the caller can restore the
//! screen before the process ends. A terminal that hangs up ends the wait too.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::low_level::{emulate_default_handler, pipe, unregister};

/// The signals that end a process which does not handle them.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The terminal on stdin in raw mode. Dropping it restores the earlier settings, and what signals do by default.
pub struct RawTerminal {
    before: Termios,
    is_closed: Arc<AtomicBool>,
    signals: Vec<(i32, UnixStream)>,
    registered: Vec<SigId>,
}

/// The next event of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalEvent {
    /// The person pressed keys: their bytes, perhaps only a part of the last one's.
    Typed(Vec<u8>),
    /// The terminal has another size.
    Resized,
    /// This signal asks the process to end.
    Signal(i32),
    /// The terminal was closed.
    HungUp,
}

impl RawTerminal {
    /// Puts the terminal on stdin into raw mode.
    ///
    /// # Errors
    /// The system's error, as for a file that is no terminal.
    pub fn open() -> io::Result<RawTerminal> {
        let before = tcgetattr(stdin())?;
        let mut terminal =
            RawTerminal { before, is_closed: Arc::default(), signals: Vec::new(), registered: Vec::new() };
        for signal in ENDING {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&terminal.is_closed))?;
        }
        for signal in ENDING.into_iter().chain([SIGWINCH]) {
            let (receiver, sender) = UnixStream::pair()?;
            receiver.set_nonblocking(true)?;
            terminal.registered.push(pipe::register(signal, sender)?);
            terminal.signals.push((signal, receiver));
        }
        let mut raw = terminal.before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(terminal)
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&mut self) -> io::Result<TerminalEvent> {
        let keyboard = stdin();
        let receivers = self.signals.iter().map(|(_, receiver)| PollFd::new(receiver, PollFlags::IN));
        let mut waiting: Vec<PollFd<'_>> = receivers.chain([PollFd::new(&keyboard, PollFlags::IN)]).collect();
        while let Err(error) = poll(&mut waiting, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let ready = waiting.iter().position(|one| !one.revents().is_empty());
        if let Some((signal, receiver)) = ready.and_then(|at| self.signals.get_mut(at)) {
            // Several signals of a kind count as one. The pipe is not blocking, so an empty one is an error without meaning.
            let _ = receiver.read(&mut [0; 64]);
            return Ok(if *signal == SIGWINCH { TerminalEvent::Resized } else { TerminalEvent::Signal(*signal) });
        }
        let mut typed = vec![0; 1024];
        match read(stdin(), &mut typed) {
            Ok(0) | Err(Errno::IO) => Ok(TerminalEvent::HungUp),
            Ok(length) => {
                typed.truncate(length);
                Ok(TerminalEvent::Typed(typed))
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(TerminalEvent::Typed(Vec::new())),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads one line from the terminal on stdin without showing it. Backspace and Ctrl-U edit it. Ctrl-C and the signals that end a process
/// end it after the terminal was restored; Ctrl-D and a closed terminal end the line.
///
/// # Errors
/// The system's error, as for a file that is no terminal.
pub fn read_hidden_line() -> io::Result<Vec<u8>> {
    let mut terminal = RawTerminal::open()?;
    let mut line = Vec::new();
    let signal = loop {
        let typed = match terminal.wait()? {
            TerminalEvent::Typed(typed) => typed,
            TerminalEvent::Resized => continue,
            TerminalEvent::Signal(signal) => break Some(signal),
            TerminalEvent::HungUp => break None,
        };
        match edit_line(&mut line, &typed) {
            LineState::Open => {}
            LineState::Whole => break None,
            LineState::Interrupted => break Some(SIGINT),
        }
    };
    drop(terminal);
    signal.into_iter().for_each(end_by);
    Ok(line)
}

/// The state of a line after typed keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Open,
    Whole,
    Interrupted,
}

/// Adds typed keys to a line, as the terminal itself edits one.
fn edit_line(line: &mut Vec<u8>, typed: &[u8]) -> LineState {
    for &key in typed {
        match key {
            b'\r' | b'\n' | 0x04 => return LineState::Whole,
            0x03 => return LineState::Interrupted,
            0x15 => line.clear(),
            0x08 | 0x7f => {
                // A character of several bytes goes as a whole.
                while line.pop().is_some_and(|last| (last & 0xc0) == 0x80) {}
            }
            key => line.push(key),
        }
    }
    LineState::Open
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A closed terminal has no settings.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
        self.is_closed.store(true, Ordering::SeqCst);
        self.registered.drain(..).for_each(|registered| _ = unregister(registered));
    }
}

/// Ends this process by a signal, as if it had not been handled.
pub fn end_by(signal: i32) {
    if emulate_default_handler(signal).is_err() {
        std::process::exit(128 + signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_line_is_edited_as_on_a_terminal() {
        let mut line = Vec::new();
        assert_eq!(edit_line(&mut line, "wrong\u{15}secrät".as_bytes()), LineState::Open);
        assert_eq!(edit_line(&mut line, b"\x7f\x7fet"), LineState::Open);
        assert_eq!(edit_line(&mut line, b"\rrest"), LineState::Whole);
        assert_eq!(line, b"secret");
        assert_eq!(edit_line(&mut line, b"more\x03"), LineState::Interrupted);
    }
}
