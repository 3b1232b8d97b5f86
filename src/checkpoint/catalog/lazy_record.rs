//! Records of checkpoints as they stand in the file of commits: most are never looked at beyond their heads, so the rest
//! is decoded when somebody asks for it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use crate::model::binary::{BAD, BinaryReader, put, put_bytes, put_option};
use crate::model::checkpoint::{CheckpointKind, Record, parse_class};

/// A record that may not be decoded yet. Its methods read its head; everything else decodes it, once. A copy of it costs no
/// memory.
#[derive(Clone)]
pub struct LazyRecord(Arc<Kept>);

struct Kept {
    kind: CheckpointKind,
    ordinal: u64,
    is_whole: bool,
    /// The bytes that it is decoded from; `None` if it never was encoded.
    encoded: Option<Encoded>,
    /// In a box: thousands are never decoded.
    record: OnceLock<Box<Record>>,
}

/// A stretch of a file in memory that holds a record.
struct Encoded {
    file: Arc<Vec<u8>>,
    workspace: Range<u32>,
    run: Range<u32>,
    /// Everything after the head.
    rest: Range<u32>,
}

impl Encoded {
    fn bytes(&self, place: &Range<u32>) -> Option<&[u8]> {
        self.file.get(place.start as usize..place.end as usize)
    }
}

impl LazyRecord {
    /// Returns the reason for the checkpoint.
    pub fn kind(&self) -> CheckpointKind {
        self.0.kind
    }

    /// Returns its number.
    pub fn ordinal(&self) -> u64 {
        self.0.ordinal
    }

    /// Returns true if it saw the whole workspace and recorded all that it saw.
    pub fn is_whole(&self) -> bool {
        self.0.is_whole
    }

    /// As [`Record::looked_everywhere`].
    pub fn looked_everywhere(&self) -> bool {
        self.0.is_whole || self.whole().looked_everywhere()
    }

    /// Returns the id of its run.
    pub fn run(&self) -> &str {
        self.head_text(|at| &at.run).unwrap_or_else(|| &self.whole().run)
    }

    /// Returns the id of its workspace.
    pub fn workspace(&self) -> &str {
        self.head_text(|at| &at.workspace).unwrap_or_else(|| &self.whole().workspace)
    }

    fn head_text(&self, place: impl Fn(&Encoded) -> &Range<u32>) -> Option<&str> {
        let at = self.0.encoded.as_ref()?;
        std::str::from_utf8(at.bytes(place(at))?).ok()
    }

    fn whole(&self) -> &Record {
        self.0.record.get_or_init(|| {
            let decoded = self.0.encoded.as_ref().ok_or(BAD).and_then(|at| self.decode_rest(at));
            let decoded = decoded.unwrap_or_else(|why| {
                // Its checksum was right, so that only a mistake of its writer leads here.
                tracing::warn!(n = self.0.ordinal, "a kept record {why}: run `piton doctor`");
                Record::bare(self.0.kind, self.0.ordinal)
            });
            decoded.into()
        })
    }

    fn decode_rest(&self, at: &Encoded) -> Result<Record, &'static str> {
        let mut reader = BinaryReader(at.bytes(&at.rest).ok_or(BAD)?);
        let mut record = Record::bare(self.0.kind, self.0.ordinal);
        record.workspace = self.head_text(|at| &at.workspace).ok_or(BAD)?.to_owned();
        record.run = self.head_text(|at| &at.run).ok_or(BAD)?.to_owned();
        (record.files, record.bytes, record.skipped) = (reader.number()?, reader.number()?, reader.number()?);
        (record.reason, record.time) = (reader.text()?, reader.text()?);
        (record.turn, record.codon_id, record.codon_name) = (reader.option()?, reader.option()?, reader.option()?);
        record.duration_ms = if reader.flag()? { Some(reader.number()?) } else { None };
        record.pinned = reader.flag()?;
        for _ in 0..reader.number()? {
            record.effects.push(parse_class(reader.str()?).ok_or(BAD)?);
        }
        for _ in 0..reader.number()? {
            record.flags.push(reader.text()?);
        }
        Ok(record)
    }

    /// Appends the record: its head first.
    pub(super) fn encode(&self, content: &mut Vec<u8>) {
        let record = self.whole();
        content.push(CheckpointKind::ALL.iter().position(|kind| *kind == record.kind).unwrap_or_default() as u8);
        put(content, record.ordinal);
        content.push(u8::from(record.is_whole()));
        put_bytes(content, record.workspace.as_bytes());
        put_bytes(content, record.run.as_bytes());
        [record.files, record.bytes, record.skipped].into_iter().for_each(|number| put(content, number));
        put_bytes(content, record.reason.as_bytes());
        put_bytes(content, record.time.as_bytes());
        for text in [&record.turn, &record.codon_id, &record.codon_name] {
            put_option(content, text.as_deref());
        }
        content.push(u8::from(record.duration_ms.is_some()));
        record.duration_ms.into_iter().for_each(|duration| put(content, duration));
        content.push(u8::from(record.pinned));
        put(content, record.effects.len() as u64);
        record.effects.iter().for_each(|class| put_bytes(content, class.as_str().as_bytes()));
        put(content, record.flags.len() as u64);
        record.flags.iter().for_each(|flag| put_bytes(content, flag.as_bytes()));
    }

    /// Returns the record that fills `place` of a file. Only its head is read.
    ///
    /// # Errors
    /// Returns what is wrong with the head.
    pub(super) fn within(file: &Arc<Vec<u8>>, place: Range<u32>) -> Result<LazyRecord, &'static str> {
        let mut reader = BinaryReader(file.get(place.start as usize..place.end as usize).ok_or(BAD)?);
        let kind = *CheckpointKind::ALL.get(usize::from(reader.take(1)?[0])).ok_or(BAD)?;
        let (ordinal, is_whole) = (reader.number()?, reader.flag()?);
        let mut text = || -> Result<Range<u32>, &'static str> {
            let length = reader.bytes()?.len() as u32;
            let to = place.end - reader.0.len() as u32;
            Ok(to - length..to)
        };
        let (workspace, run) = (text()?, text()?);
        let rest = place.end - reader.0.len() as u32..place.end;
        let encoded = Some(Encoded { file: Arc::clone(file), workspace, run, rest });
        Ok(LazyRecord(Arc::new(Kept { kind, ordinal, is_whole, encoded, record: OnceLock::new() })))
    }
}

impl Deref for LazyRecord {
    type Target = Record;

    fn deref(&self) -> &Record {
        self.whole()
    }
}

impl From<Record> for LazyRecord {
    fn from(record: Record) -> LazyRecord {
        let (kind, ordinal, is_whole) = (record.kind, record.ordinal, record.is_whole());
        LazyRecord(Arc::new(Kept { kind, ordinal, is_whole, encoded: None, record: Box::new(record).into() }))
    }
}

impl PartialEq for LazyRecord {
    fn eq(&self, other: &LazyRecord) -> bool {
        **self == **other
    }
}

impl Eq for LazyRecord {}

impl fmt::Debug for LazyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::catalog::checkpoint::tests::checkpoint;

    #[test]
    fn a_head_says_what_the_whole_record_says() {
        for (n, kind) in CheckpointKind::ALL.into_iter().enumerate() {
            let mut record = (*checkpoint(n as u64, kind, "a run").record).clone();
            record.turn = Some("t".into());
            record.flags = vec![["targeted", "paths", "tracked"][n % 3].to_owned()];
            record.effects = vec![crate::model::effect::Class::FileDelete];
            record.duration_ms = (n % 2 == 0).then_some(7);
            let mut content = b"before".to_vec();
            LazyRecord::from(record.clone()).encode(&mut content);
            let to = content.len();
            content.extend(b"after");
            let lazy = LazyRecord::within(&Arc::new(content), 6..to as u32).unwrap();
            assert_eq!((lazy.kind(), lazy.ordinal(), lazy.run(), lazy.workspace()), (kind, n as u64, "a run", "w"));
            assert_eq!(lazy.is_whole(), record.is_whole());
            assert!(lazy.0.record.get().is_none(), "its head is enough for these");
            assert_eq!(*lazy, record);
        }
    }

    #[test]
    fn a_cut_head_is_refused_and_a_cut_rest_leaves_the_head() {
        let mut content = Vec::new();
        checkpoint(5, CheckpointKind::Auto, "r").record.encode(&mut content);
        let content = Arc::new(content);
        let cut = |to| LazyRecord::within(&content, 0..to);
        assert!((0..7).all(|to| cut(to).is_err()));
        let length = content.len() as u32;
        let short = cut(length - 1).unwrap();
        assert_eq!((short.ordinal, short.reason.as_str()), (5, ""));
        assert!(cut(length + 1).is_err());
    }
}
