//! The line in a configuration file of git by which git asks piton: found, put in, taken out. Bytes in, bytes out.
//!
//! The line goes below the first `[core]`, where no later change by git itself takes it for its own. A file without that section gets
//! one at its end. The form of the added text tells what was there before, so that taking it out gives back the very bytes.

use std::ffi::OsStr;

use crate::error::{Code, Error, Result};
use crate::git::quote::config_value;

/// The comment behind a line of piton's.
const MARK: &[u8] = b" # piton install git";

/// The comment behind a section that was put after a last line without an end.
const JOINED: &[u8] = b" # piton install git; the line above had no end before";

/// The head of the section, as piton writes it.
const SECTION: &[u8] = b"[core]";

/// The first part of the line.
const FIRST: &[u8] = b"\tfsmonitor = \"";

/// Returns the file's text with the line, which has this value. A line that is there is renewed.
///
/// # Errors
/// `conflict` where nothing can be added, since the last line goes on behind the end of the file.
pub fn with_line(value: &OsStr, text: &[u8]) -> Result<Vec<u8>> {
    let text = without_line(text);
    let lines = scanned(&text);
    let line = [b"\tfsmonitor = ", config_value(value).as_slice(), MARK].concat();
    if let Some(head) = lines.iter().position(|line| line.is_core && !line.end().is_empty()) {
        let end = lines[head].end();
        let (before, after) = (&lines[..=head], &lines[head + 1..]);
        let added = [line.as_slice(), end].concat();
        return Ok(joined(before).into_iter().chain(added).chain(joined(after)).collect());
    }
    if lines.last().is_some_and(|line| line.goes_on) {
        return Err(
            Error::new(Code::Conflict, "its last line ends with a backslash").hint("fix that line and try again")
        );
    }
    let end: &[u8] = if lines.iter().any(|line| line.end() == b"\r\n") { b"\r\n" } else { b"\n" };
    let is_joined = lines.last().is_some_and(|line| line.end().is_empty());
    let (before, mark) = if is_joined { (end, JOINED) } else { (&b""[..], MARK) };
    Ok([&text, before, SECTION, mark, end, &line, end].concat())
}

/// Returns the file's text without piton's lines.
pub fn without_line(text: &[u8]) -> Vec<u8> {
    let lines = scanned(text);
    let mut left: Vec<u8> = Vec::with_capacity(text.len());
    // The length of the line end that was added in front of the section.
    let mut added = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.is_own_key() {
            continue;
        }
        let Some(mark) = line.own_section() else {
            left.extend(line.text);
            added = 0;
            continue;
        };
        // Another program may have put keys of its own into the section.
        let mut rest = lines[at + 1..].iter().filter(|line| !line.is_own_key() && !line.is_blank());
        if rest.next().is_none_or(ConfigLine::is_section) {
            added = if mark == JOINED { line.end().len() } else { 0 };
        } else {
            left.extend([SECTION, line.end()].concat());
            added = 0;
        }
    }
    left.truncate(left.len().saturating_sub(added));
    left
}

/// Returns true if piton's line is in the file.
pub fn has_line(text: &[u8]) -> bool {
    scanned(text).iter().any(ConfigLine::is_own_key)
}

/// A line of a configuration file.
struct ConfigLine<'t> {
    text: &'t [u8],
    /// True if it begins in the line above.
    is_rest: bool,
    /// True if it goes on in the line below.
    goes_on: bool,
    /// True for the head of a section `core`, with nothing else in the line.
    is_core: bool,
}

impl<'t> ConfigLine<'t> {
    fn end(&self) -> &'t [u8] {
        let length = match self.text {
            [.., b'\r', b'\n'] => 2,
            [.., b'\n'] => 1,
            _ => 0,
        };
        &self.text[self.text.len() - length..]
    }

    fn body(&self) -> &'t [u8] {
        &self.text[..self.text.len() - self.end().len()]
    }

    fn is_own_key(&self) -> bool {
        !self.is_rest && self.body().starts_with(FIRST) && self.body().ends_with(MARK)
    }

    /// Returns the comment behind the head of a section that piton has made.
    fn own_section(&self) -> Option<&'static [u8]> {
        let comment = self.body().strip_prefix(SECTION).filter(|_| !self.is_rest)?;
        [MARK, JOINED].into_iter().find(|mark| *mark == comment)
    }

    fn is_blank(&self) -> bool {
        matches!(self.body().trim_ascii(), [] | [b'#' | b';', ..])
    }

    fn is_section(&self) -> bool {
        !self.is_rest && self.body().trim_ascii_start().starts_with(b"[")
    }
}

fn joined(lines: &[ConfigLine<'_>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.text).copied().collect()
}

fn scanned(text: &[u8]) -> Vec<ConfigLine<'_>> {
    let mut found: Vec<ConfigLine<'_>> = Vec::new();
    let (mut is_rest, mut is_quoted) = (false, false);
    for text in text.split_inclusive(|byte| *byte == b'\n') {
        let mut line = ConfigLine { text, is_rest, goes_on: false, is_core: false };
        let mut body = line.body();
        if found.is_empty() {
            body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        }
        line.is_core = !is_rest && is_core(body);
        line.goes_on = goes_on(body, &mut is_quoted);
        is_rest = line.goes_on;
        found.push(line);
    }
    found
}

fn is_core(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let is_named = body.get(..SECTION.len()).is_some_and(|head| head.eq_ignore_ascii_case(SECTION));
    is_named && matches!(body[SECTION.len()..].trim_ascii_start(), [] | [b'#' | b';', ..])
}

/// Returns true if a value goes on in the next line. `is_quoted` is true within quotes.
fn goes_on(body: &[u8], is_quoted: &mut bool) -> bool {
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if bytes.next().is_none() => return true,
            b'"' => *is_quoted = !*is_quoted,
            b'#' | b';' if !*is_quoted => break,
            _ => {}
        }
    }
    *is_quoted = false;
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::door::value;

    #[test]
    fn the_very_bytes_come_back() {
        let texts: [&[u8]; 20] = [
            b"",
            b"\n",
            b"[core]\n\tbare = false\n",
            b"[core]\r\n\tbare = false\r\n[user]\r\n\tname = x\r\n",
            b"[user]\n\tname = x\n[CORE] ; mine\n\n\n",
            b"[user]\n\tname = x",
            b"[user]\r\n\tname = x",
            b"[core]",
            b"[core]\n",
            b"[core] bare = false\n[user]\n",
            b"[core] [user] name = x\n",
            b"[core \"sub\"]\n\ta = b\n",
            b"[a]\n\tb = \"c \\\n[core]\n\"\n[core]\n\tx = y\n",
            b"[a]\n\tb = c # \\\n[core]\n",
            b"\xef\xbb\xbf[core]\n\tx = y\n",
            b"\xef\xbb\xbf[user]\n",
            b"# caf\xe9 \xff\n[user]\n",
            b"[alias]\n\tx = \"!f() { \\\n git log; \\\n}; f\"\n",
            b"[include]\n\tpath = other\n[core]\n\teditor = vi",
            b"[user]\n\tname = x\n\n\n# last",
        ];
        for text in texts {
            let programs = ["/usr/bin/piton", "/opt/it's \"h\\ere\"/piton"].map(OsStr::new);
            for program in [value(programs[0], None), value(programs[1], Some(programs[1]))] {
                let with = with_line(&program, text).unwrap();
                let shown = String::from_utf8_lossy(&with).into_owned();
                assert!(has_line(&with) && !has_line(text), "{shown}");
                assert_eq!(with_line(&program, &with).unwrap(), with, "twice is once");
                let renewed = with_line(OsStr::new("/other"), &with).unwrap();
                assert_eq!(renewed, with_line(OsStr::new("/other"), text).unwrap(), "{shown}");
                assert_eq!(without_line(&with), text, "{shown}");
                assert_eq!(without_line(text), text);
            }
        }
        assert_eq!(with_line(OsStr::new("/p"), b"[a]\n\tb = c \\").unwrap_err().code(), Code::Conflict);
    }

    #[test]
    fn keys_that_came_later_stay_in_their_section() {
        let program = OsStr::new("/p");
        let with = with_line(program, b"[user]\n\tname = x").unwrap();
        let later = [with.as_slice(), b"\teditor = vi\n"].concat();
        assert_eq!(without_line(&later), b"[user]\n\tname = x\n[core]\n\teditor = vi\n");
        let later = [with.as_slice(), b"[user]\n\temail = y\n"].concat();
        assert_eq!(without_line(&later), b"[user]\n\tname = x\n[user]\n\temail = y\n");
        let with = with_line(program, b"[core]\n\ta = b\n").unwrap();
        let later = [with.as_slice(), b"\teditor = vi\n"].concat();
        assert_eq!(without_line(&later), b"[core]\n\ta = b\n\teditor = vi\n");
    }
}
