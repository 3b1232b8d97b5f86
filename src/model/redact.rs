//! Takes secrets out of commands before they are recorded or shown.
//!
//! Three readers look at a text and name spans. `position` knows options and arguments of programs. `names` knows names that
//! say secret (`TOKEN=…`, `"password": …`). `forms` knows the forms of secrets themselves (prefixes of tokens, URLs, headers, keys).
//! Redaction lowers the risk and does not remove it: a secret that no reader recognises stays. `tests/data/secrets.txt` holds the shapes, each
//! with a harmless twin.
//!
//! *Invariant:* the time is linear in the text, and the text is bounded. *Invariant:* masks are no secrets: what was redacted holds none
//! of the shapes of the table.

pub mod content;
mod forms;
mod generated;
mod names;
mod position;
mod shape;
mod words;

use shape::Spans;

/// The text in the place of a secret.
pub const MASK: &str = "***";

/// Bytes of a text that are looked at. No command is shown as long as this; what follows is left out.
const LONGEST: usize = 32 << 10;

/// Returns the text without its secrets.
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

/// Returns true if the text holds what [`redact`] would take out.
pub fn holds_secret(text: &str) -> bool {
    !found(bounded(text)).is_empty()
}

fn bounded(text: &str) -> &str {
    if text.len() <= LONGEST { text } else { &text[..text.floor_char_boundary(LONGEST)] }
}

/// Returns the secrets, in order; none touches another.
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

#[cfg(test)]
mod tests;
