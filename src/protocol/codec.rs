//! Lines in bounded memory: a line over the limit is skipped up to its newline without being kept.

use std::io::{self, BufRead};

/// One line of input, its 1-based number with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its newline (LF or CRLF). The last line of the input may lack one.
    Text(Vec<u8>, u64),
    /// Longer than the limit; its bytes, newline included.
    TooLong(u64, u64),
}

/// Reads lines.
pub struct LineReader<R> {
    input: R,
    limit: usize,
    number: u64,
}

impl<R: BufRead> LineReader<R> {
    /// Returns a reader that keeps at most `limit` bytes of a line.
    pub fn new(input: R, limit: usize) -> LineReader<R> {
        LineReader { input, limit, number: 0 }
    }

    /// Returns the next line; `None` at the end. Blank lines are passed over.
    ///
    /// # Errors
    /// Returns the errors of the input.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            self.number += 1;
            match self.read_line()? {
                None => return Ok(None),
                Some(Line::Text(text, _)) if text.iter().all(u8::is_ascii_whitespace) => {}
                Some(line) => return Ok(Some(line)),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        // `None` over the limit: what was kept is of no use any more.
        let mut text = Some(Vec::new());
        let mut length = 0u64;
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if buffer.is_empty() {
                return Ok((length > 0).then(|| self.finish(text, length)));
            }
            let newline = buffer.iter().position(|byte| *byte == b'\n');
            let used = newline.map_or(buffer.len(), |at| at + 1);
            let content = newline.unwrap_or(buffer.len());
            length += used as u64;
            text = text.filter(|text| text.len() + content <= self.limit);
            if let Some(text) = &mut text {
                text.extend_from_slice(&buffer[..content]);
            }
            self.input.consume(used);
            if newline.is_some() {
                return Ok(Some(self.finish(text, length)));
            }
        }
    }

    fn finish(&self, text: Option<Vec<u8>>, length: u64) -> Line {
        let Some(mut text) = text else {
            return Line::TooLong(length, self.number);
        };
        if text.last() == Some(&b'\r') {
            text.pop();
        }
        Line::Text(text, self.number)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use proptest::prelude::*;

    use super::*;

    fn all(input: &[u8], limit: usize) -> Vec<Line> {
        let mut reader = LineReader::new(BufReader::with_capacity(7, input), limit);
        std::iter::from_fn(|| reader.next_line().unwrap()).collect()
    }

    #[test]
    fn endings_blanks_and_limits() {
        let text = |text: &str, number| Line::Text(text.into(), number);
        assert_eq!(all(b"a\nbb\r\n\n  \nlast", 100), [text("a", 1), text("bb", 2), text("last", 5)]);
        assert_eq!(all(b"12345\n123456789\nx\n", 5), [text("12345", 1), Line::TooLong(10, 2), text("x", 3)]);
        // The end of the input, one byte behind the piece that passed the limit.
        assert_eq!(all(b"123456712", 7), [Line::TooLong(9, 1)]);
        assert_eq!(all(b"123451234\nx", 8), [Line::TooLong(10, 1), text("x", 2)]);
        assert_eq!(all(b"", 5), []);
        assert_eq!(all(b"a\0b\n", 5), [Line::Text(b"a\0b".to_vec(), 1)]);
    }

    #[test]
    fn a_hundred_megabytes_leave_no_trace() {
        let long = io::repeat(b'x').take(100_000_000).chain(&b"\nnext\n"[..]);
        let mut reader = LineReader::new(BufReader::new(long), 1 << 20);
        assert_eq!(reader.next_line().unwrap(), Some(Line::TooLong(100_000_001, 1)));
        assert_eq!(reader.next_line().unwrap(), Some(Line::Text(b"next".to_vec(), 2)));
    }

    proptest! {
        #[test]
        fn it_always_finds_the_next_line(garbage in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut input = garbage;
            input.extend(b"\nend");
            let lines = all(&input, 16);
            let is_end = matches!(lines.last(), Some(Line::Text(text, _)) if text == b"end");
            prop_assert!(is_end);
        }
    }
}
