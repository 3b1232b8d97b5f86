//! The names that people and agents give to a checkpoint. Pure.
//!
//! All digits: always the permanent number (`12`, `#12`). Four or more hex digits: the beginning of an id (`id:1234` also with
//! digits alone), or a label. `@{0}` is the newest, `@{1}` the one before; both pass over `pre-restore` checkpoints, which
//! `undo` is for. `run:codon[:type]` is a codon's checkpoint (`start` and `end` are types too); `run` is the client's own name
//! or piton's. Anything else is a label (of equal labels the newest), or one of the words in `words`.

use super::checkpoint::Checkpoint;
use super::words::is_word;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record, recorded};
use crate::model::number::Number;
use crate::model::redact::redact;
use crate::model::run::run_id;
use crate::model::text::{cut, printable};

/// One of the checkpoints of a codon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The beginning: `rig-setup`, else the first of the others.
    Start,
    /// Selects `completed`, else `error`, else `skipped`. Never selects `rig-setup`.
    End,
    /// The newest one of this kind; only typed kinds have a spelling.
    Of(CheckpointKind),
}

impl Point {
    /// The spellings.
    pub const WORDS: [&'static str; 6] = ["start", "end", "rig-setup", "completed", "error", "skipped"];

    /// Parses a spelling.
    pub fn parse(word: &str) -> Option<Point> {
        match word {
            "start" => Some(Point::Start),
            "end" => Some(Point::End),
            _ => CheckpointKind::parse(word).filter(|_| Point::WORDS.contains(&word)).map(Point::Of),
        }
    }

    /// Returns the spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Point::Start => "start",
            Point::End => "end",
            Point::Of(kind) => kind.as_str(),
        }
    }

    /// Returns the kinds that it can mean, the preferred one first.
    pub(crate) fn kinds(self) -> Vec<CheckpointKind> {
        match self {
            Point::Start => vec![
                CheckpointKind::RigSetup,
                CheckpointKind::Completed,
                CheckpointKind::Error,
                CheckpointKind::Skipped,
            ],
            Point::End => vec![CheckpointKind::Completed, CheckpointKind::Error, CheckpointKind::Skipped],
            Point::Of(kind) => vec![kind],
        }
    }
}

/// A parsed selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A permanent number.
    Number(Number),
    /// Lowercase hex, 4 to 40 digits.
    Prefix(String),
    /// Hex digits as they were typed, 4 to 40: the beginning of an id, or a label.
    Hex(String),
    /// Steps back from the newest.
    Back(usize),
    /// A checkpoint of a codon, written `run:codon` or `run:codon:point`.
    Codon {
        /// The id of the run, as piton spells it.
        run: String,
        /// The id of the codon in that run, as it is recorded.
        codon: String,
        /// The newest of any type when absent.
        point: Option<Point>,
        /// The text as it was typed: an old label may look like this.
        typed: String,
    },
    /// Any other text: a label that a person gave.
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
            Err(Error::new(Code::BadRequest, format!("`{}` {why}", shown(text))).hint(
                "give a checkpoint by number (12, 12.1), id (4270a8c), label, time (10m, 13:20), turn (t-3), `latest` or \
                 run:codon; `piton list` shows them",
            ))
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
        if let Some(digits) = text.strip_prefix('#') {
            let number = Number::parse(digits).or_else(|| digits.parse().ok().map(Number::of));
            return number.map_or_else(|| bad("is not a number"), |number| Ok(Selector::Number(number)));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse() {
                // A whole id, which a client repeats.
                _ if text.len() == 40 => Ok(Selector::Prefix(text.to_owned())),
                Ok(n) => Ok(Selector::Number(Number::of(n))),
                // No checkpoint ever has so large a number.
                Err(_) => Ok(Selector::Number(Number::of(u64::MAX))),
            };
        }
        if let Some(number) = Number::parse(text) {
            return Ok(Selector::Number(number));
        }
        Ok(if is_hex(text) { Selector::Hex(text.to_owned()) } else { named(text) })
    }

    /// Returns a label as it is recorded. Refuses one that a selector would read as something else, and one that is no
    /// line of text: neither could be found again.
    ///
    /// # Errors
    /// `bad-request`.
    pub fn new_label(label: &str) -> Result<String> {
        let label = label.trim();
        let refused = |why: &str, hint: &str| {
            let text = format!("the label `{}` {why}", shown(&redact(label)));
            Err(Error::new(Code::BadRequest, text).field("label").hint(hint.to_owned()))
        };
        if label.is_empty() {
            return refused("is empty", "give the checkpoint, or omit the label");
        }
        if label.chars().any(char::is_control) {
            return refused("contains a control character", "write one line of plain text");
        }
        match Selector::parse(label) {
            Ok(Selector::Label(_)) if is_word(label) => refused(
                "looks like a turn, an operation, a time or `latest`",
                "add a word to it, for example `release of 13:20`",
            ),
            Ok(Selector::Label(_)) => Ok(redact(label)),
            Ok(Selector::Codon { .. }) => {
                refused("looks like the codon of a run", "write a space after the colon, for example `fix: the parser`")
            }
            Ok(_) | Err(_) => {
                refused("looks like the number or id of a checkpoint", "add a word to it, for example `release 12`")
            }
        }
    }

    /// Returns the label that is meant, if one can be.
    pub(super) fn label(&self) -> Option<&str> {
        match self {
            Selector::Label(label) | Selector::Hex(label) | Selector::Codon { typed: label, .. } => Some(label),
            Selector::Number(_) | Selector::Prefix(_) | Selector::Back(_) => None,
        }
    }

    /// Returns the same selector read as an id only; `None` if it cannot be one.
    pub(super) fn as_id(&self) -> Option<Selector> {
        match self {
            Selector::Hex(hex) => Some(Selector::Prefix(hex.to_lowercase())),
            Selector::Prefix(_) => Some(self.clone()),
            Selector::Number(_) | Selector::Back(_) | Selector::Codon { .. } | Selector::Label(_) => None,
        }
    }

    /// Returns the number that is meant, if one can be.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Selector::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// Returns a selector as messages repeat it.
pub fn shown(text: &str) -> String {
    cut(&printable(text), 80)
}

fn is_hex(text: &str) -> bool {
    (4..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Reads a text that is no number and no id.
pub(super) fn named(text: &str) -> Selector {
    let with_point = text.rsplit_once(':').and_then(|(rest, word)| codon(text, rest, Some(Point::parse(word)?)));
    with_point.or_else(|| codon(text, text, None)).unwrap_or_else(|| Selector::Label(text.to_owned()))
}

/// Reads `run:codon`. A client's name of a run may have colons of its own; the id of a codon has none.
fn codon(typed: &str, text: &str, point: Option<Point>) -> Option<Selector> {
    let (run, codon) = text.rsplit_once(':')?;
    // Text with a colon in it, or an address, is more likely a label.
    let is_codon = !run.is_empty() && !codon.is_empty() && !codon.starts_with(' ') && !codon.starts_with("//");
    is_codon.then(|| Selector::Codon { run: run_id(run), codon: redact(codon), point, typed: typed.to_owned() })
}

/// Returns the checkpoints that match, `all` being ordered from oldest to newest; the result keeps that order.
pub fn matches<'c>(selector: &Selector, all: &'c [Checkpoint]) -> Vec<&'c Checkpoint> {
    match selector {
        Selector::Number(_) => {
            let numbered = |checkpoint: &&Checkpoint| Some(checkpoint.record.number) == selector.number();
            all.iter().filter(numbered).filter(|checkpoint| !checkpoint.record.number.is_none()).collect()
        }
        Selector::Prefix(hex) => {
            all.iter().filter(|checkpoint| checkpoint.id.to_string().starts_with(hex.as_str())).collect()
        }
        Selector::Hex(hex) => {
            let mut found = matches(&Selector::Prefix(hex.to_lowercase()), all);
            match labelled(all, selector) {
                Some(labelled) if found.iter().all(|one| one.id != labelled.id) => found.push(labelled),
                _ => {}
            }
            found
        }
        Selector::Back(steps) => all.iter().rev().filter(|one| is_counted(one)).nth(*steps).into_iter().collect(),
        Selector::Codon { run, codon, point, .. } => {
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
        Selector::Label(_) => labelled(all, selector).into_iter().collect(),
    }
}

/// Returns true for a checkpoint that `@{N}` counts. Base captures, steps and `pre-restore` checkpoints are passed over.
pub fn is_counted(checkpoint: &Checkpoint) -> bool {
    checkpoint.record.kind().is_listed() && checkpoint.record.kind() != CheckpointKind::PreRestore
}

/// Returns the newest checkpoint with the label that a selector may be.
fn labelled<'c>(all: &'c [Checkpoint], selector: &Selector) -> Option<&'c Checkpoint> {
    let label = selector.label()?;
    let recorded = recorded(label);
    let is_labelled = |record: &Record| {
        record.kind == CheckpointKind::Manual && (record.reason == label || record.reason == recorded)
    };
    all.iter().rev().find(|checkpoint| is_labelled(&checkpoint.record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let prefix = |text: &str| Selector::Prefix(text.into());
        let of = |run: &str, codon: &str, point, typed: &str| {
            let (run, codon, typed) = (run.to_owned(), codon.to_owned(), typed.to_owned());
            Selector::Codon { run, codon, point, typed }
        };
        let codon = |point: Option<Point>| {
            let word = point.map(|point| format!(":{}", point.as_str())).unwrap_or_default();
            of("r-1", "build#2", point, &format!("r-1:build#2{word}"))
        };
        let table = [
            ("12", Selector::Number(Number::of(12))),
            ("#12", Selector::Number(Number::of(12))),
            ("12.3", Selector::Number(Number { main: 12, step: 3 })),
            ("#12.3", Selector::Number(Number { main: 12, step: 3 })),
            ("12.0", Selector::Label("12.0".into())),
            ("4270a8c", Selector::Hex("4270a8c".into())),
            ("ABCD", Selector::Hex("ABCD".into())),
            ("1234567", Selector::Number(Number::of(1_234_567))),
            ("99999999999999999999999", Selector::Number(Number::of(u64::MAX))),
            ("1234567890123456789012345678901234567890", prefix("1234567890123456789012345678901234567890")),
            ("id:1234", prefix("1234")),
            ("@{0}", Selector::Back(0)),
            ("r-1:build#2", codon(None)),
            ("r-1:build#2:completed", codon(Some(Point::Of(CheckpointKind::Completed)))),
            ("r-1:build#2:start", codon(Some(Point::Start))),
            ("r-1:build#2:auto", of(&run_id("r-1:build#2"), "auto", None, "r-1:build#2:auto")),
            ("Big Run:build", of(&run_id("Big Run"), "build", None, "Big Run:build")),
            (
                "urn:x:build:error",
                of(&run_id("urn:x"), "build", Some(Point::Of(CheckpointKind::Error)), "urn:x:build:error"),
            ),
            ("r-1:error", of("r-1", "error", None, "r-1:error")),
            ("fix: the parser", Selector::Label("fix: the parser".into())),
            ("before the refactor", Selector::Label("before the refactor".into())),
            ("abc", Selector::Label("abc".into())),
        ];
        for (text, expected) in table {
            assert_eq!(Selector::parse(text).unwrap(), expected, "{text}");
        }
        for bad in ["", "#x", "#99999999999999999999999", "id:12", "id:zz", "@{x}"] {
            assert_eq!(Selector::parse(bad).unwrap_err().code(), Code::BadRequest, "{bad}");
        }
        let long = "12345678901234567890123456789012345678901";
        assert_eq!(
            Selector::parse(long).unwrap(),
            Selector::Number(Number::of(u64::MAX)),
            "a number that no checkpoint has"
        );
    }

    #[test]
    fn a_label_is_what_no_other_selector_is() {
        for good in [
            "before",
            "see https://example.org/1",
            "abc",
            "release 12",
            "12a",
            "a: b",
            "12.",
            "café",
            "t-x",
            &"x".repeat(500),
        ] {
            let label = Selector::new_label(good).unwrap_or_else(|error| panic!("{good}: {}", error.text()));
            assert_eq!(label, good);
        }
        assert_eq!(Selector::new_label(" release ").unwrap(), "release", "a selector loses the blanks around it too");
        let table = [
            "12",
            "#12",
            "1.2",
            "#1.2",
            "1234567",
            "id:abcd",
            "@{1}",
            "@{x}",
            "r:c:completed",
            " 7 ",
            "abcd",
            "DEADBEEF",
            "12ab",
            "t-3",
            "g-1",
            "latest",
            "yesterday",
            "10m",
            "13:20",
        ];
        for bad in table.into_iter().chain(["a:b", "a:b:c", "", "  ", "n\nl", "\u{1b}[31m", "a\tb", "a\u{7f}b"]) {
            assert_eq!(Selector::new_label(bad).unwrap_err().code(), Code::BadRequest, "{bad:?}");
        }
    }
}
