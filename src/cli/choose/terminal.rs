//! The screen of the terminal while a choice is made on it.

use std::collections::VecDeque;
use std::io::{Write, stdout};

use super::super::print;
use super::keys::{KeyPress, KeyReader};
use super::layout::{RowStyle, ScreenRow};
use crate::error::{IoContext, Result};
use crate::sys::raw_terminal::{RawTerminal, TerminalEvent};
use crate::sys::terminal;

/// Saves the screen, hides the cursor and clears.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";

/// Shows the cursor and the saved screen.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The size of a screen that does not report it.
const UNKNOWN: (usize, usize) = (80, 24);

/// The next thing to do for the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenInput {
    Key(KeyPress),
    /// The picture has to be drawn again.
    Redraw,
    /// This signal asks the process to end.
    Signal(i32),
    /// The terminal was closed.
    HungUp,
}

/// The whole screen of the terminal. Dropping it restores the earlier screen and settings.
pub(super) struct WholeScreen {
    raw: RawTerminal,
    reader: KeyReader,
    pressed: VecDeque<KeyPress>,
    /// The picture on the screen.
    shown: Vec<ScreenRow>,
    size: (usize, usize),
}

impl WholeScreen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When it cannot be set or written to.
    pub(super) fn open() -> Result<WholeScreen> {
        let raw = RawTerminal::open().at("preparing", "the terminal")?;
        let screen = WholeScreen {
            raw,
            reader: KeyReader::default(),
            pressed: VecDeque::new(),
            shown: Vec::new(),
            size: (0, 0),
        };
        write(ENTER)?;
        Ok(screen)
    }

    /// Shows a picture. Only the rows that changed are written.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub(super) fn show(&mut self, picture: Vec<ScreenRow>) -> Result<()> {
        let size = screen_size();
        let mut text = String::new();
        if size != self.size {
            (self.size, self.shown) = (size, Vec::new());
            text.push_str("\x1b[0m\x1b[2J");
        }
        for (at, row) in picture.iter().enumerate().filter(|(at, row)| self.shown.get(*at) != Some(row)) {
            text.push_str(&format!("\x1b[{};1H\x1b[K{}", at + 1, styled(row)));
        }
        if picture.len() < self.shown.len() {
            text.push_str(&format!("\x1b[{};1H\x1b[J", picture.len() + 1));
        }
        self.shown = picture;
        write(&text)
    }

    /// Waits for a key, or for anything else that matters.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub(super) fn wait(&mut self) -> Result<ScreenInput> {
        loop {
            if let Some(key) = self.pressed.pop_front() {
                return Ok(ScreenInput::Key(key));
            }
            match self.raw.wait().at("reading", "the terminal")? {
                TerminalEvent::Typed(bytes) => self.pressed.extend(self.reader.read(&bytes)),
                TerminalEvent::Resized => return Ok(ScreenInput::Redraw),
                TerminalEvent::Signal(signal) => return Ok(ScreenInput::Signal(signal)),
                TerminalEvent::HungUp => return Ok(ScreenInput::HungUp),
            }
        }
    }
}

impl Drop for WholeScreen {
    fn drop(&mut self) {
        // A terminal that cannot be written to shows nothing.
        let _ = write(LEAVE);
    }
}

/// Returns the columns and rows of the screen.
pub(super) fn screen_size() -> (usize, usize) {
    let out = stdout();
    (terminal::columns(&out).unwrap_or(UNKNOWN.0), terminal::rows(&out).unwrap_or(UNKNOWN.1))
}

fn write(text: &str) -> Result<()> {
    stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()).at("writing", "the terminal")
}

fn styled(row: &ScreenRow) -> String {
    let code = match row.style {
        RowStyle::Plain => return row.text.clone(),
        RowStyle::Bold => "1",
        RowStyle::Faint => "2",
        RowStyle::AtCursor => "7",
        RowStyle::Added => "32",
        RowStyle::Removed => "31",
        RowStyle::Heading => "36",
    };
    if print::coloured() { format!("\x1b[{code}m{}\x1b[0m", row.text) } else { row.text.clone() }
}
