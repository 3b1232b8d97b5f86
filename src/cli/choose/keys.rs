//! Keys, from the bytes that a terminal sends for them.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPress {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, the end of the input.
    EndOfInput,
    /// A letter, a digit, a sign or a space.
    Letter(char),
}

/// Reads keys, whose bytes may arrive in pieces.
///
/// The escape key alone is no key here: its byte is also the first of other keys, and over a slow connection the two look the same.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    /// The beginning of a key whose end has not arrived.
    begun: Vec<u8>,
}

/// The most bytes of one key; a longer sequence is none.
const LONGEST: usize = 32;

const ESCAPE: u8 = 0x1b;

impl KeyReader {
    /// Returns the keys that are whole with these bytes. Those that mean nothing here are left out.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<KeyPress> {
        let mut keys = Vec::new();
        for byte in bytes {
            keys.extend(self.add(*byte));
        }
        keys
    }

    fn add(&mut self, byte: u8) -> Option<KeyPress> {
        match self.begun.as_slice() {
            [] | [ESCAPE] if byte == ESCAPE => self.begun = vec![ESCAPE],
            [] => return plain(byte),
            [ESCAPE] if b"[O".contains(&byte) => self.begun.push(byte),
            // The escape key, and then another one.
            [ESCAPE] => {
                self.begun.clear();
                return plain(byte);
            }
            // Parameters, and signs between them and the last byte.
            [_, b'[', ..] if (0x20..0x40).contains(&byte) && self.begun.len() < LONGEST => self.begun.push(byte),
            [_, _, parameters @ ..] => {
                let key = sequence(parameters, byte);
                self.begun.clear();
                return key;
            }
            [_] => self.begun.clear(),
        }
        None
    }
}

fn plain(byte: u8) -> Option<KeyPress> {
    match byte {
        0x03 => Some(KeyPress::Interrupt),
        0x04 => Some(KeyPress::EndOfInput),
        b'\r' | b'\n' => Some(KeyPress::Enter),
        b' '..=b'~' => Some(KeyPress::Letter(byte as char)),
        _ => None,
    }
}

/// Returns the key of a sequence by its parameters and its last byte.
fn sequence(parameters: &[u8], last: u8) -> Option<KeyPress> {
    match (parameters, last) {
        (_, b'A') => Some(KeyPress::Up),
        (_, b'B') => Some(KeyPress::Down),
        (_, b'C') => Some(KeyPress::Right),
        (_, b'D') => Some(KeyPress::Left),
        (_, b'H') | (b"1" | b"7", b'~') => Some(KeyPress::Home),
        (_, b'F') | (b"4" | b"8", b'~') => Some(KeyPress::End),
        (b"5", b'~') => Some(KeyPress::PageUp),
        (b"6", b'~') => Some(KeyPress::PageDown),
        (_, b'M') => Some(KeyPress::Enter), // of the digits' block
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_whatever_pieces_they_arrive() {
        use KeyPress::{Down, End, EndOfInput, Enter, Home, Interrupt, Left, Letter, PageDown, PageUp, Right, Up};
        let sent =
            b"\x1b[A\x1bOB\x1b[C\x1b[1;5D\x1b[5~\x1b[6~\x1b[H\x1b[4~ a\r\x1bq\x1b\x1b[Aq\x03\x04\x1b[200~\xc3\xa4\x01";
        let keys = [
            Up,
            Down,
            Right,
            Left,
            PageUp,
            PageDown,
            Home,
            End,
            Letter(' '),
            Letter('a'),
            Enter,
            Letter('q'),
            Up,
            Letter('q'),
            Interrupt,
            EndOfInput,
        ];
        for size in 1..=sent.len() {
            let mut reader = KeyReader::default();
            let read: Vec<KeyPress> = sent.chunks(size).flat_map(|chunk| reader.read(chunk)).collect();
            assert_eq!(read, keys, "in pieces of {size}");
        }
    }

    #[test]
    fn no_sequence_swallows_all_that_follows() {
        let mut reader = KeyReader::default();
        let endless = [b"\x1b[".as_slice(), &[b'1'; 100]].concat();
        let read = reader.read(&endless);
        assert!(read.len() > 60 && read.iter().all(|key| *key == KeyPress::Letter('1')), "{read:?}");
        assert_eq!(reader.read(b"q"), [KeyPress::Letter('q')]);
    }
}
