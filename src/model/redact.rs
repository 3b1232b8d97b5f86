//! Takes secrets out of commands before they are recorded or shown.
//!
//! Three readers look at a text and name spans: `position` knows options and arguments of programs, `names` knows names that say
//! secret (`TOKEN=…`, `"password": …`), `forms` knows what secrets look like by themselves (prefixes of tokens, URLs, headers, keys).
//! Redaction lowers the risk and does not remove it: a secret that no reader recognises stays. `tests/data/secrets.txt` holds the shapes, each
//! with a harmless twin.
//!
//! *Invariant:* the time is linear in the text, and the text is bounded. *Invariant:* masks are no secrets: what was redacted holds none
//! of the shapes of the table.

mod forms;
mod names;
mod position;
mod table;
mod words;

use std::ops::Range;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// Bytes of a text that are looked at. No command is shown as long as this; what follows is left out.
const LONGEST: usize = 32 << 10;

/// Bytes of a text that hold secrets.
type Spans = Vec<Range<usize>>;

/// The text without its secrets.
pub fn redact(text: &str) -> String {
    let head = bounded(text);
    let mut out = String::with_capacity(head.len());
    let mut from = 0;
    for span in found(head) {
        out.push_str(&head[from..span.start]);
        out.push_str(MASK);
        from = span.end;
    }
    out.push_str(&head[from..]);
    if head.len() < text.len() {
        out.push('…');
    }
    out
}

/// True if the text holds what [`redact`] would take out.
pub fn holds_secret(text: &str) -> bool {
    !found(bounded(text)).is_empty()
}

fn bounded(text: &str) -> &str {
    if text.len() <= LONGEST { text } else { &text[..text.floor_char_boundary(LONGEST)] }
}

/// The secrets, in order; none touches another.
fn found(text: &str) -> Spans {
    let mut spans = Spans::new();
    position::find(text, 0, &mut spans);
    names::find(text, &mut spans);
    forms::find(text, &mut spans);
    spans.retain(|span| span.start < span.end && !is_masked(&text[span.clone()]));
    spans.sort_by_key(|span| (span.start, span.end));
    let mut merged = Spans::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

fn is_masked(value: &str) -> bool {
    value.trim_matches(['\'', '"', '\\']) == MASK || value.ends_with("***…")
}

/// Prefixes of password hashes. No variable begins like this.
const HASHES: &[&str] = &["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"];

/// True for what stands in the place of a value and is none: a variable, a command's output, a placeholder.
fn is_reference(value: &str) -> bool {
    // What was cut may end within a mask.
    let plain = value.trim_end_matches('…').trim_matches(['\'', '"', '\\', '`']);
    plain.is_empty()
        || (plain.starts_with('$') && !HASHES.iter().any(|hash| plain.starts_with(hash)))
        || plain.starts_with("{{")
        || plain.starts_with('<')
        || plain.starts_with("%(")
        || is_format(plain)
        || plain.len() > 2 && plain.starts_with('%') && plain.ends_with('%')
        || plain.bytes().all(|byte| matches!(byte, b'*' | b'.' | b'x' | b'X' | b'-' | b'_' | b',' | b')'))
}

/// True for a place of `printf`, which another word fills: `%s`.
fn is_format(value: &str) -> bool {
    let rest = ["%s", "%d", "%q", "%b"].iter().find_map(|format| value.strip_prefix(format));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// True for a path: it says where a secret lies and is none.
fn is_path(value: &str) -> bool {
    const ROOTS: &[&str] = &[
        "./",
        "../",
        "~/",
        "@",
        "/run/",
        "/etc/",
        "/home/",
        "/var/",
        "/tmp/",
        "/usr/",
        "/opt/",
        "/root/",
        "/dev/",
        "/proc/",
        "/mnt/",
        "/srv/",
        "/Users/",
        "/app/",
        "/data/",
        "/secrets/",
        "file:",
        "C:\\",
        "c:\\",
    ];
    const ENDS: &[&str] = &[".pem", ".key", ".txt", ".json", ".yaml", ".yml", ".p12", ".pfx", ".jks", ".crt", ".env"];
    let plain = value.trim_matches(['\'', '"', '\\']);
    ROOTS.iter().any(|root| plain.starts_with(root)) || ENDS.iter().any(|end| plain.ends_with(end))
}

/// True for a run of letters and digits as generators make them: long, or mixed.
fn is_dense(value: &str) -> bool {
    value.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        run.len() >= 16 || (run.len() >= 8 && digits >= 2 && digits < run.len())
    })
}

#[cfg(test)]
mod tests;
