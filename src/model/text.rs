//! Text for people and logs: nothing that came from outside reaches a terminal unescaped.

use std::ffi::OsStr;

/// Escapes control characters (terminal sequences, newlines, bidirectional overrides) so that the text is harmless on a
/// terminal and stays on one line.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => out.extend(c.escape_default()),
            c if is_format(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// True for characters that change how a terminal shows others, and are not seen themselves.
fn is_format(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns a file's name as git quotes it: as it is, or, if it holds what no line shows, in double quotes with git's escapes.
pub fn git_quoted(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\u{7}' => out.push_str("\\a"),
                '\u{8}' => out.push_str("\\b"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\u{b}' => out.push_str("\\v"),
                '\u{c}' => out.push_str("\\f"),
                '\r' => out.push_str("\\r"),
                c if c.is_control() || is_format(c) => octal(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    if out.as_bytes() == name { out } else { format!("\"{out}\"") }
}

fn octal(out: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| out.push_str(&format!("\\{byte:03o}")));
}

/// Returns a file's name as one word that a person copies into a shell; one that no line shows is written with escapes (`$'…'`).
pub fn shell_name(name: &[u8]) -> String {
    let plain = std::str::from_utf8(name).ok().filter(|text| !text.chars().any(|c| c.is_control() || is_format(c)));
    if let Some(text) = plain {
        return shell_word(text);
    }
    let escaped: String = name
        .iter()
        .map(|byte| match byte {
            b'\'' | b'\\' => format!("\\{}", *byte as char),
            b'\n' => "\\n".to_owned(),
            b'\t' => "\\t".to_owned(),
            b' '..=b'~' => (*byte as char).to_string(),
            byte => format!("\\{byte:03o}"),
        })
        .collect();
    format!("$'{escaped}'")
}

/// Returns the columns that a text takes on a terminal.
pub fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Fills a text with blanks up to so many columns of a terminal.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Returns a text that takes at most so many columns of a terminal, with `…` at its end where something was cut.
pub fn fitted(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |letter: &char| {
        taken += unicode_width::UnicodeWidthChar::width(*letter).unwrap_or_default();
        taken < columns
    };
    format!("{}…", text.chars().take_while(fits).collect::<String>())
}

/// Breaks a text between words into lines of at most so many columns of a terminal. A longer word has a line of its own; an empty text
/// has none.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// As [`printable`], but lines stay lines and tabs tabs.
pub fn printable_lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Cuts after `max` characters, with `…` when something was cut.
pub fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Returns a word for a shell: as it is where no shell, and no client that only splits at blanks, reads anything into
/// it; else in single quotes.
pub fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./+,@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns the words of a command as one line, as a shell reads it: quoted only where that is needed. Bytes that are no text are
/// replaced.
pub fn shell_line<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> String {
    let plain = |(at, byte): (usize, u8)| {
        byte.is_ascii_alphanumeric() || b"-_./:,@%+".contains(&byte) || (at > 0 && b"=~^".contains(&byte))
    };
    let quoted = |(at, word): (usize, W)| {
        let word = word.as_ref().to_string_lossy().into_owned();
        // An assignment before a command is no word of it, and a home directory stands behind some signs too.
        let is_special = at == 0 && word.contains('=') || ["=~", ":~"].iter().any(|home| word.contains(home));
        let is_plain = !word.is_empty() && word.bytes().enumerate().all(plain) && !is_special;
        if is_plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    words.into_iter().enumerate().map(quoted).collect::<Vec<_>>().join(" ")
}

/// `1 file`, `2 files`.
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns bytes for people: `812 B`, `1.5 MB` (powers of 1,000).
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_between_words() {
        let lines = |columns| wrapped("one two, 日本 three-is-long", columns).join("|");
        assert_eq!(
            [lines(8), lines(12), lines(99)],
            ["one two,|日本|three-is-long", "one two,|日本|three-is-long", "one two, 日本 three-is-long"]
        );
        assert_eq!((lines(0).as_str(), wrapped("", 3)), ("one|two,|日本|three-is-long", Vec::<String>::new()));
    }

    #[test]
    fn escapes_are_shown_not_sent() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(printable("naïve 日本"), "naïve 日本");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn a_line_is_quoted_only_where_it_must() {
        for (words, line) in [
            (&["git", "reset", "--hard", "HEAD~1", "x^"][..], "git reset --hard HEAD~1 x^"),
            (&["git", "commit", "-m", "it's"], "git commit -m 'it'\\''s'"),
            (&["A=1", "--a=1", "", "~", "--a=~/b", "a b", "$x"], "'A=1' --a=1 '' '~' '--a=~/b' 'a b' '$x'"),
        ] {
            assert_eq!(shell_line(words), line);
        }
    }

    #[test]
    fn names_are_quoted_as_git_does_and_only_where_they_must() {
        let table: [(&[u8], &str, &str); 7] = [
            (b"a b.txt", "a b.txt", "'a b.txt'"),
            ("日本.txt".as_bytes(), "日本.txt", "'日本.txt'"),
            (b"it's", "it's", "'it'\\''s'"),
            (b"q\"u", "\"q\\\"u\"", "'q\"u'"),
            (b"n\nl\\", "\"n\\nl\\\\\"", "$'n\\nl\\\\'"),
            (b"\xff'\x1b", "\"\\377'\\033\"", "$'\\377\\'\\033'"),
            ("a\u{202e}b".as_bytes(), "\"a\\342\\200\\256b\"", "$'a\\342\\200\\256b'"),
        ];
        for (name, quoted, word) in table {
            assert_eq!((git_quoted(name).as_str(), shell_name(name).as_str()), (quoted, word));
        }
    }

    #[test]
    fn columns_count_as_a_terminal_shows_them() {
        assert_eq!((width("日本.txt"), width("e\u{301}")), (8, 1));
        assert_eq!(padded("日本", 6), "日本  ");
    }

    #[test]
    fn sizes_and_counts() {
        for (n, text) in [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (142_300_000, "142.3 MB")] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!((count(1, "file"), count(2, "file")), ("1 file".into(), "2 files".into()));
        assert_eq!(cut("abcdef", 3), "abc…");
    }
}
