//! How people and agents name a checkpoint. Pure.
//!
//! All digits: the permanent number (`12`, `#12`). Four or more hex digits: an id prefix (`id:1234` when all digits).
//! `@{0}` is the newest, `@{1}` the one before. `run:codon[:type]` is a codon's checkpoint (`start` and `end` are types too). Anything else is a label.

use crate::checkpoint::runs::rollback::Point;
use crate::checkpoint::timeline::Checkpoint;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Kind;
use crate::model::text::{cut, printable};

/// A parsed selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    Ordinal(u64),
    /// Lowercase hex, 4 to 40 digits.
    Prefix(String),
    /// Steps back from the newest.
    Back(usize),
    Codon {
        run: String,
        codon: String,
        /// The newest of any type when absent.
        point: Option<Point>,
    },
    Label(String),
}

impl Selector {
    /// Parses what was typed.
    ///
    /// # Errors
    /// `bad-request` for an empty text, a number out of range or a bad `id:`, `#` or `@{}` form.
    pub fn parse(text: &str) -> Result<Selector> {
        let text = text.trim();
        let bad = |why: &str| {
            Err(Error::new(Code::BadRequest, format!("`{}` {why}", shown(text)))
                .hint("name a checkpoint by number (12), id (4270a8c), @{0}, run:codon or label; see `piton list`"))
        };
        if text.is_empty() {
            return bad("names no checkpoint");
        }
        if let Some(hex) = text.strip_prefix("id:") {
            return if is_hex(hex) { Ok(Selector::Prefix(hex.to_lowercase())) } else { bad("is not an id") };
        }
        if let Some(back) = text.strip_prefix("@{").and_then(|rest| rest.strip_suffix('}')) {
            return back.parse().map_or_else(|_| bad("is not a number of steps"), |steps| Ok(Selector::Back(steps)));
        }
        let digits = text.strip_prefix('#').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            // 40 digits are an id that happens to hold no letter.
            if digits.len() == 40 {
                return Ok(Selector::Prefix(digits.to_owned()));
            }
            return digits.parse().map_or_else(|_| bad("is too large a number"), |n| Ok(Selector::Ordinal(n)));
        }
        if text.starts_with('#') {
            return bad("is not a number");
        }
        Ok(if is_hex(text) { Selector::Prefix(text.to_lowercase()) } else { named(text) })
    }
}

/// A selector as messages repeat it.
pub fn shown(text: &str) -> String {
    cut(&printable(text), 80)
}

fn is_hex(text: &str) -> bool {
    (4..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn named(text: &str) -> Selector {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [run, codon] if !run.is_empty() && !codon.is_empty() && !codon.starts_with(' ') => {
            Selector::Codon { run: (*run).to_owned(), codon: (*codon).to_owned(), point: None }
        }
        [run, codon, word] if Point::parse(word).is_some() => {
            Selector::Codon { run: (*run).to_owned(), codon: (*codon).to_owned(), point: Point::parse(word) }
        }
        _ => Selector::Label(text.to_owned()),
    }
}

/// The checkpoints that match, `all` being ordered from oldest to newest; the result keeps that order.
pub fn matches<'c>(selector: &Selector, all: &'c [Checkpoint]) -> Vec<&'c Checkpoint> {
    match selector {
        Selector::Ordinal(n) => all.iter().filter(|checkpoint| checkpoint.record.ordinal == *n).collect(),
        Selector::Prefix(hex) => {
            all.iter().filter(|checkpoint| checkpoint.id.to_string().starts_with(hex.as_str())).collect()
        }
        Selector::Back(steps) => {
            let mut visible = all.iter().rev().filter(|checkpoint| checkpoint.record.kind != Kind::Turn);
            visible.nth(*steps).into_iter().collect()
        }
        Selector::Codon { run, codon, point } => {
            let of_codon = || {
                let of_run = all.iter().rev().filter(|checkpoint| checkpoint.record.run == *run);
                of_run.filter(|checkpoint| checkpoint.record.codon_id.as_deref() == Some(codon))
            };
            let found = match point {
                None => of_codon().next(),
                Some(point) => point.kinds().iter().find_map(|kind| of_codon().find(|c| c.record.kind == *kind)),
            };
            found.into_iter().chain(labelled(all, selector)).take(1).collect()
        }
        Selector::Label(_) => labelled(all, selector).collect(),
    }
}

fn labelled<'c>(all: &'c [Checkpoint], selector: &Selector) -> impl Iterator<Item = &'c Checkpoint> {
    let label = match selector {
        Selector::Label(label) => label.clone(),
        Selector::Codon { run, codon, point: None } => format!("{run}:{codon}"),
        _ => String::new(),
    };
    all.iter().filter(move |checkpoint| checkpoint.record.kind == Kind::Manual && checkpoint.record.reason == label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let prefix = |text: &str| Selector::Prefix(text.into());
        let codon = |point| Selector::Codon { run: "r-1".into(), codon: "build#2".into(), point };
        let table = [
            ("12", Selector::Ordinal(12)),
            ("#12", Selector::Ordinal(12)),
            ("4270a8c", prefix("4270a8c")),
            ("ABCD", prefix("abcd")),
            ("id:1234", prefix("1234")),
            ("@{0}", Selector::Back(0)),
            ("r-1:build#2", codon(None)),
            ("r-1:build#2:completed", codon(Some(Point::Of(Kind::Completed)))),
            ("r-1:build#2:start", codon(Some(Point::Start))),
            ("r-1:build#2:auto", Selector::Label("r-1:build#2:auto".into())),
            ("before the refactor", Selector::Label("before the refactor".into())),
            ("abc", Selector::Label("abc".into())),
        ];
        for (text, expected) in table {
            assert_eq!(Selector::parse(text).unwrap(), expected, "{text}");
        }
        for bad in ["", "#x", "id:12", "id:zz", "@{x}", "99999999999999999999999"] {
            assert_eq!(Selector::parse(bad).unwrap_err().code(), Code::BadRequest, "{bad}");
        }
    }
}
