//! Text for people and logs: nothing that came from outside reaches a terminal unescaped.

/// Escapes control characters (terminal sequences, newlines, bidirectional overrides) so that the text is harmless on a
/// terminal and stays on one line.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                out.extend(c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
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
    fn escapes_are_shown_not_sent() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(printable("naïve 日本"), "naïve 日本");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
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
