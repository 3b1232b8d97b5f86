//! The record of a checkpoint, and its commit message.
//!
//! First line after Hankweave: `{status}:{codonId} [run:{runId}] {codonName}`; other kinds put the turn in the place of
//! the codon and the reason in the place of its name. Then `Codon:`, `Status:`, `Timestamp:`, `Duration:` lines, then
//! git trailers. Every value is one line: control characters are escaped before they are written.

use serde::{Deserialize, Serialize};

use std::fmt;

use super::effect::Class;
use super::number::Number;
use super::redact::redact;
use super::text::{cut, printable};

/// The reason for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointKind {
    /// Before the first destructive action of a turn.
    Auto,
    /// Base capture at the start of a session or turn.
    Turn,
    /// Asked for by a person or a client.
    Manual,
    /// Watch mode.
    Autosave,
    /// Of the present files, before a restore or rollback changes them; undo goes back to it.
    PreRestore,
    /// Of a codon: its preparation is done, and its work begins.
    RigSetup,
    /// Of a codon, or of a run's end: it succeeded.
    Completed,
    /// Of a codon, or of a run's end: it failed.
    Error,
    /// Of a codon that was passed over.
    Skipped,
    /// Of a run whose client went away while the run was open or a codon was at work.
    Exit,
    /// Before a later action of a turn whose first one got an `auto`, where anything that it may reach has changed since.
    Step,
}

impl CheckpointKind {
    /// All kinds.
    pub const ALL: [CheckpointKind; 11] = [
        CheckpointKind::Auto,
        CheckpointKind::Turn,
        CheckpointKind::Manual,
        CheckpointKind::Autosave,
        CheckpointKind::PreRestore,
        CheckpointKind::RigSetup,
        CheckpointKind::Completed,
        CheckpointKind::Error,
        CheckpointKind::Skipped,
        CheckpointKind::Exit,
        CheckpointKind::Step,
    ];

    /// Returns the spelling in refs, messages and on the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckpointKind::Auto => "auto",
            CheckpointKind::Turn => "turn",
            CheckpointKind::Manual => "manual",
            CheckpointKind::Autosave => "autosave",
            CheckpointKind::PreRestore => "pre-restore",
            CheckpointKind::RigSetup => "rig-setup",
            CheckpointKind::Completed => "completed",
            CheckpointKind::Error => "error",
            CheckpointKind::Skipped => "skipped",
            CheckpointKind::Exit => "exit",
            CheckpointKind::Step => "step",
        }
    }

    /// From its spelling.
    pub fn parse(text: &str) -> Option<CheckpointKind> {
        CheckpointKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns true for checkpoints that lists show by themselves: no base captures, and no steps, which stand below their turn.
    pub fn is_listed(self) -> bool {
        !matches!(self, CheckpointKind::Turn | CheckpointKind::Step)
    }

    /// Returns true for those that an action of a turn gets before it runs.
    pub fn is_of_turn(self) -> bool {
        matches!(self, CheckpointKind::Auto | CheckpointKind::Step)
    }

    /// Typed checkpoints form the chain of a run branch; all others are leaves.
    pub fn is_typed(self) -> bool {
        match self {
            CheckpointKind::Auto
            | CheckpointKind::Step
            | CheckpointKind::Turn
            | CheckpointKind::Manual
            | CheckpointKind::Autosave
            | CheckpointKind::PreRestore => false,
            CheckpointKind::RigSetup
            | CheckpointKind::Completed
            | CheckpointKind::Error
            | CheckpointKind::Skipped
            | CheckpointKind::Exit => true,
        }
    }
}

/// The flag of a checkpoint that was not finished when the client was answered: its action may have begun by then.
pub const LATE: &str = "late";

/// The flag of a step before an action that needed no checkpoint. The reply to the action does not name it.
pub const QUIET: &str = "quiet";

/// The reason of a checkpoint that was asked for without a label.
pub const BY_HAND: &str = "by hand";

/// The facts recorded with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The reason; also the middle part of the ref of a leaf.
    pub kind: CheckpointKind,
    /// Its place in the sequence of all checkpoints of its workspace, from 1, never used twice.
    pub ordinal: u64,
    /// The number by which people name it.
    pub number: Number,
    /// The id of its workspace, 16 lowercase hex digits.
    pub workspace: String,
    /// The id of its run; `local` for the person's own.
    pub run: String,
    /// The client's name of the open turn, redacted; `None` outside of turns.
    pub turn: Option<String>,
    /// The id of its codon (`build`, `build#2`), redacted; `None` if it is of no codon.
    pub codon_id: Option<String>,
    /// The codon's name for people, redacted.
    pub codon_name: Option<String>,
    /// One line for people: `before shell: rm -rf dir`, a label.
    pub reason: String,
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    /// Duration of the codon, milliseconds.
    pub duration_ms: Option<u64>,
    /// The effects of the action that caused it.
    pub effects: Vec<Class>,
    /// Captured files and links.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// The number of paths that were skipped and listed.
    pub skipped: u64,
    /// `partial`, `paths` (only some paths), `tracked` (only tracked files), `targeted`, `secrets`, `unstable`,
    /// `not-held`, `late`.
    pub flags: Vec<String>,
    /// True if retention never drops it.
    pub pinned: bool,
    /// Its private layer; `None` if private files were not looked for.
    pub layer: Option<Layer>,
    /// The moment that the capture shows: what changed earlier is in it. By the clock of file times, nanoseconds since 1970.
    pub looked: Option<i64>,
    /// Before a later action of a turn: the place in the sequence of the checkpoint that protected the turn until then.
    pub follows: Option<u64>,
    /// Of a narrowed one: the place in the sequence of the base capture that holds the whole workspace of the same moment.
    pub whole: Option<u64>,
}

/// The private layer of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// There was nothing private.
    None,
    /// The one that was made for the checkpoint with this place in the sequence.
    Sequence(u64),
}

impl Layer {
    /// Returns the layer of a field of a message.
    fn parse(text: &str) -> Option<Layer> {
        match text {
            "none" => Some(Layer::None),
            sequence => sequence.parse().ok().map(Layer::Sequence),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layer::None => f.write_str("none"),
            Layer::Sequence(sequence) => write!(f, "{sequence}"),
        }
    }
}

impl Record {
    /// Makes a record that says nothing but kind and place in the sequence, which is its number too.
    pub fn bare(kind: CheckpointKind, ordinal: u64) -> Record {
        let text = String::new;
        Record {
            kind,
            ordinal,
            number: Number::of(ordinal),
            workspace: text(),
            run: text(),
            turn: None,
            codon_id: None,
            codon_name: None,
            reason: text(),
            time: text(),
            duration_ms: None,
            effects: Vec::new(),
            files: 0,
            bytes: 0,
            skipped: 0,
            flags: Vec::new(),
            pinned: false,
            layer: None,
            looked: None,
            follows: None,
            whole: None,
        }
    }

    /// Returns true if the action that it was taken for may have begun before it.
    pub fn is_late(&self) -> bool {
        self.flags.iter().any(|flag| flag == LATE)
    }

    /// Returns the reason of one that was asked for; for most it is their label.
    pub fn by_hand(&self) -> Option<&str> {
        (self.kind == CheckpointKind::Manual).then_some(self.reason.as_str())
    }

    /// Returns true if somebody gave it a label.
    pub fn is_labelled(&self) -> bool {
        self.by_hand().is_some_and(|reason| reason != BY_HAND)
    }

    /// Returns the commit message.
    pub fn message(&self) -> String {
        let subject = self.codon_id.as_deref().or(self.turn.as_deref()).unwrap_or("-");
        let title =
            if self.kind.is_typed() { self.codon_name.as_deref().unwrap_or(&self.reason) } else { &self.reason };
        let (subject, run, title) = (one_line(subject), one_line(&self.run), one_line(title));
        let mut out = format!("{}:{subject} [run:{run}] {title}\n\n", self.kind.as_str());
        if let Some(name) = &self.codon_name {
            out.push_str(&format!("Codon: {}\n", one_line(name)));
        }
        out.push_str(&format!("Status: {}\nTimestamp: {}\n", self.kind.as_str(), one_line(&self.time)));
        if let Some(duration) = self.duration_ms {
            out.push_str(&format!("Duration: {duration}ms\n"));
        }
        out.push('\n');
        self.trailers(&mut out);
        out
    }

    fn trailers(&self, out: &mut String) {
        let mut add = |key: &str, value: String| out.push_str(&format!("{key}: {}\n", one_line(&value)));
        add("Workspace", self.workspace.clone());
        add("Ordinal", self.ordinal.to_string());
        add("Number", if self.number.is_none() { "none".to_owned() } else { self.number.to_string() });
        add("Kind", self.kind.as_str().to_owned());
        add("Run", self.run.clone());
        for (key, value) in [("Turn", &self.turn), ("Codon-Id", &self.codon_id)] {
            if let Some(value) = value {
                add(key, value.clone());
            }
        }
        add("Reason", self.reason.clone());
        if !self.effects.is_empty() {
            add("Effects", self.effects.iter().map(|class| class.as_str()).collect::<Vec<_>>().join(" "));
        }
        add("Files", self.files.to_string());
        add("Bytes", self.bytes.to_string());
        add("Skipped", self.skipped.to_string());
        if !self.flags.is_empty() {
            add("Flags", self.flags.join(" "));
        }
        if let Some(layer) = self.layer {
            add("Local", layer.to_string());
        }
        if let Some(looked) = self.looked {
            add("Looked", looked.to_string());
        }
        for (key, sequence) in [("Follows", self.follows), ("Whole", self.whole)] {
            if let Some(sequence) = sequence {
                add(key, sequence.to_string());
            }
        }
        if self.holds_secrets() {
            add("Secrets", "yes".to_owned());
        }
        if self.pinned {
            add("Pinned", "yes".to_owned());
        }
    }

    /// Returns whether it holds the whole workspace (as far as the rules let it in), not only some named paths.
    pub fn is_whole(&self) -> bool {
        !self.flags.iter().any(|flag| flag == "paths" || flag == "tracked")
    }

    /// Returns true if the capture looked at the whole workspace, also where patterns then narrowed what it recorded.
    pub fn looked_everywhere(&self) -> bool {
        !self.flags.iter().any(|flag| flag == "paths")
    }

    /// Returns true if it is a step before an action that needed no checkpoint.
    pub fn is_quiet(&self) -> bool {
        self.flags.iter().any(|flag| flag == QUIET)
    }

    /// Returns whether it holds files that are secrets.
    pub fn holds_secrets(&self) -> bool {
        self.flags.iter().any(|flag| flag == "secrets")
    }

    /// Reads a message back; `None` when it is not piton's. Of two fields of the same name the last one counts, because
    /// trailers come last.
    pub fn parse(message: &str) -> Option<Record> {
        let (_, body) = message.split_once("\n\n")?;
        let mut fields = [None; FIELDS];
        for line in body.lines() {
            // No name of a field has a colon in it.
            let Some((name, value)) = line.split_once(':') else { continue };
            if let (Some(at), Some(value)) = (field(name), value.strip_prefix(' ')) {
                fields[at] = Some(value);
            }
        }
        let [kind, _, workspace, run, turn, codon_id, codon, reason, time, duration, ..] = fields;
        let [.., effects, files, bytes, skipped, flags, pinned, named, layer, looked, whole, follows] = fields;
        let sequence = fields[1].and_then(|value| value.parse::<u64>().ok())?;
        let text = |field: Option<&str>| field.map(str::to_owned);
        let number = |field: Option<&str>| field.and_then(|value| value.parse::<u64>().ok());
        Some(Record {
            kind: CheckpointKind::parse(kind?)?,
            ordinal: sequence,
            number: match named {
                Some("none") => Number::NONE,
                Some(named) => Number::parse(named)?,
                // Until steps there was no other number.
                None => Number::of(sequence),
            },
            workspace: text(workspace)?,
            run: text(run)?,
            turn: text(turn),
            codon_id: text(codon_id),
            codon_name: text(codon),
            reason: text(reason).unwrap_or_default(),
            time: text(time)?,
            duration_ms: duration.and_then(|value| value.strip_suffix("ms")?.parse().ok()),
            effects: effects.unwrap_or("").split_whitespace().filter_map(parse_class).collect(),
            files: number(files).unwrap_or(0),
            bytes: number(bytes).unwrap_or(0),
            skipped: number(skipped).unwrap_or(0),
            flags: flags.unwrap_or("").split_whitespace().map(str::to_owned).collect(),
            pinned: pinned == Some("yes"),
            layer: layer.and_then(Layer::parse),
            looked: looked.and_then(|value| value.parse().ok()),
            follows: number(follows),
            whole: number(whole),
        })
    }
}

/// The number of fields for which a message is read.
const FIELDS: usize = 21;

/// Returns the place of a field in what [`Record::parse`] takes apart. Thousands of messages are read at once: no list
/// is searched.
fn field(name: &str) -> Option<usize> {
    Some(match name {
        "Kind" => 0,
        "Ordinal" => 1,
        "Workspace" => 2,
        "Run" => 3,
        "Turn" => 4,
        "Codon-Id" => 5,
        "Codon" => 6,
        "Reason" => 7,
        "Timestamp" => 8,
        "Duration" => 9,
        "Effects" => 10,
        "Files" => 11,
        "Bytes" => 12,
        "Skipped" => 13,
        "Flags" => 14,
        "Pinned" => 15,
        "Number" => 16,
        "Local" => 17,
        "Looked" => 18,
        "Whole" => 19,
        "Follows" => 20,
        _ => return None,
    })
}

/// Returns the class of this spelling.
pub fn parse_class(word: &str) -> Option<Class> {
    Class::ALL.into_iter().find(|class| class.as_str() == word)
}

/// Returns a text of a client as a message records it: without secrets, as one line.
pub fn recorded(text: &str) -> String {
    one_line(&redact(text))
}

/// One harmless line of at most 400 characters.
fn one_line(text: &str) -> String {
    let line = cut(printable(text).trim(), 400);
    if line.is_empty() { "-".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            kind: CheckpointKind::Auto,
            ordinal: 12,
            number: Number { main: 7, step: 2 },
            workspace: "9f00".into(),
            run: "r-1".into(),
            turn: Some("t1".into()),
            codon_id: None,
            codon_name: None,
            reason: "before shell: rm -rf dir".into(),
            time: "2026-01-01T00:00:00.000Z".into(),
            duration_ms: None,
            effects: vec![Class::FileDelete, Class::Database],
            files: 3,
            bytes: 40,
            skipped: 1,
            flags: vec!["partial".into(), "secrets".into()],
            pinned: false,
            layer: Some(Layer::Sequence(9)),
            looked: Some(1_767_225_600_000_000_001),
            follows: Some(10),
            whole: Some(11),
        }
    }

    #[test]
    fn messages_read_back() {
        let auto = record();
        assert_eq!(auto.message().lines().next(), Some("auto:t1 [run:r-1] before shell: rm -rf dir"));
        assert_eq!(Record::parse(&auto.message()).as_ref(), Some(&auto));
        let codon = Record {
            kind: CheckpointKind::Completed,
            codon_id: Some("build#2".into()),
            codon_name: Some("Build".into()),
            duration_ms: Some(45),
            ..record()
        };
        assert!(codon.message().starts_with("completed:build#2 [run:r-1] Build\n\nCodon: Build\nStatus: completed\n"));
        assert_eq!(Record::parse(&codon.message()), Some(codon));
    }

    #[test]
    fn a_reason_cannot_forge_a_trailer() {
        let forged = Record { reason: "x\nKind: manual\nOrdinal: 99".into(), ..record() };
        let back = Record::parse(&forged.message()).unwrap();
        assert_eq!((back.kind, back.ordinal), (CheckpointKind::Auto, 12));
        assert_eq!(Record::parse("Initial commit"), None);
        let old = record().message().replace("Number: 7.2\n", "");
        assert_eq!(Record::parse(&old).unwrap().number, Number::of(12), "as it was before steps");
        let base = Record { number: Number::NONE, ..record() };
        assert_eq!(Record::parse(&base.message()).unwrap(), base);
        let forged = Record { run: "r\n\nTurn: x".into(), time: "t\nTurn: x".into(), turn: None, ..record() };
        let back = Record::parse(&forged.message()).unwrap();
        assert_eq!((back.turn, back.run.as_str()), (None, "r\\n\\nTurn: x"));
    }
}
