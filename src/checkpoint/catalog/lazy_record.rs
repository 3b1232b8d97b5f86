//! Records of checkpoints as they stand in the file of commits: most are never looked at beyond their heads, so the rest
//! is decoded when somebody asks for it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use crate::model::binary::{BAD, BinaryReader, put, put_bytes, put_option};
use crate::model::checkpoint::{CheckpointKind, Layer, Record, parse_class};
use crate::model::number::Number;

/// A record that may not be decoded yet. Its methods read its head; everything else decodes it, once. A copy of it costs no
/// memory.
#[derive(Clone)]
pub struct LazyRecord(Source);

#[derive(Clone)]
enum Source {
    Decoded(Arc<Record>),
    /// The one with this index.
    Kept(Arc<KeptRecords>, u32),
}

/// The records of one file, with their heads read. They share one allocation, because there are thousands.
#[derive(Default)]
pub(super) struct KeptRecords {
    /// The content of the file.
    file: Vec<u8>,
    heads: Vec<RecordHead>,
}

struct RecordHead {
    kind: CheckpointKind,
    is_whole: bool,
    ordinal: u64,
    workspace: Range<u32>,
    run: Range<u32>,
    /// Everything after the head.
    rest: Range<u32>,
    /// In a box: thousands are never decoded.
    record: OnceLock<Box<Record>>,
}

impl KeptRecords {
    /// Takes the content of a file, of whose records none is known yet.
    pub(super) fn of(file: Vec<u8>) -> KeptRecords {
        KeptRecords { file, heads: Vec::new() }
    }

    /// Returns the content of the file.
    pub(super) fn file(&self) -> &[u8] {
        &self.file
    }

    /// Adds the record that fills `place` of the file, and returns its index. Only its head is read.
    ///
    /// # Errors
    /// Returns what is wrong with the head.
    pub(super) fn add(&mut self, place: Range<u32>) -> Result<u32, &'static str> {
        let mut reader = BinaryReader(self.bytes(&place).ok_or(BAD)?);
        let kind = *CheckpointKind::ALL.get(usize::from(reader.take(1)?[0])).ok_or(BAD)?;
        let (ordinal, is_whole) = (reader.number()?, reader.flag()?);
        let mut text = || -> Result<Range<u32>, &'static str> {
            let length = reader.bytes()?.len() as u32;
            let to = place.end - reader.0.len() as u32;
            Ok(to - length..to)
        };
        let (workspace, run) = (text()?, text()?);
        let rest = place.end - reader.0.len() as u32..place.end;
        let index = u32::try_from(self.heads.len()).map_err(|_| BAD)?;
        self.heads.push(RecordHead { kind, is_whole, ordinal, workspace, run, rest, record: OnceLock::new() });
        Ok(index)
    }

    /// Returns the record with an index that [`KeptRecords::add`] has given.
    pub(super) fn record(self: &Arc<KeptRecords>, index: u32) -> LazyRecord {
        LazyRecord(Source::Kept(Arc::clone(self), index))
    }

    fn bytes(&self, place: &Range<u32>) -> Option<&[u8]> {
        self.file.get(place.start as usize..place.end as usize)
    }

    fn text(&self, place: &Range<u32>) -> Option<&str> {
        std::str::from_utf8(self.bytes(place)?).ok()
    }

    fn decode(&self, head: &RecordHead) -> Result<Record, &'static str> {
        let mut reader = BinaryReader(self.bytes(&head.rest).ok_or(BAD)?);
        let mut record = Record::bare(head.kind, head.ordinal);
        record.number = Number { main: reader.number()?, step: u32::try_from(reader.number()?).map_err(|_| BAD)? };
        record.workspace = self.text(&head.workspace).ok_or(BAD)?.to_owned();
        record.run = self.text(&head.run).ok_or(BAD)?.to_owned();
        (record.files, record.bytes, record.skipped) = (reader.number()?, reader.number()?, reader.number()?);
        (record.reason, record.time) = (reader.text()?, reader.text()?);
        (record.turn, record.codon_id, record.codon_name) = (reader.option()?, reader.option()?, reader.option()?);
        record.duration_ms = if reader.flag()? { Some(reader.number()?) } else { None };
        record.pinned = reader.flag()?;
        record.layer = match reader.number()? {
            0 => None,
            1 => Some(Layer::None),
            sequence => Some(Layer::Sequence(sequence - 2)),
        };
        record.looked = i64::try_from(reader.number()?).ok().filter(|looked| *looked > 0);
        record.follows = Some(reader.number()?).filter(|follows| *follows > 0);
        record.whole = Some(reader.number()?).filter(|whole| *whole > 0);
        for _ in 0..reader.number()? {
            record.effects.push(parse_class(reader.str()?).ok_or(BAD)?);
        }
        for _ in 0..reader.number()? {
            record.flags.push(reader.text()?);
        }
        Ok(record)
    }
}

impl LazyRecord {
    /// Returns the reason for the checkpoint.
    pub fn kind(&self) -> CheckpointKind {
        match &self.0 {
            Source::Decoded(record) => record.kind,
            Source::Kept(kept, at) => kept.heads[*at as usize].kind,
        }
    }

    /// Returns its place in the sequence of its workspace.
    pub fn ordinal(&self) -> u64 {
        match &self.0 {
            Source::Decoded(record) => record.ordinal,
            Source::Kept(kept, at) => kept.heads[*at as usize].ordinal,
        }
    }

    /// Returns true if it saw the whole workspace and recorded all that it saw.
    pub fn is_whole(&self) -> bool {
        match &self.0 {
            Source::Decoded(record) => record.is_whole(),
            Source::Kept(kept, at) => kept.heads[*at as usize].is_whole,
        }
    }

    /// As [`Record::looked_everywhere`].
    pub fn looked_everywhere(&self) -> bool {
        self.is_whole() || self.whole().looked_everywhere()
    }

    /// Returns the id of its run.
    pub fn run(&self) -> &str {
        self.head_text(|head| &head.run).unwrap_or_else(|| &self.whole().run)
    }

    /// Returns the id of its workspace.
    pub fn workspace(&self) -> &str {
        self.head_text(|head| &head.workspace).unwrap_or_else(|| &self.whole().workspace)
    }

    fn head_text(&self, place: impl Fn(&RecordHead) -> &Range<u32>) -> Option<&str> {
        match &self.0 {
            Source::Decoded(_) => None,
            Source::Kept(kept, at) => kept.text(place(&kept.heads[*at as usize])),
        }
    }

    fn whole(&self) -> &Record {
        let (kept, head) = match &self.0 {
            Source::Decoded(record) => return record,
            Source::Kept(kept, at) => (kept, &kept.heads[*at as usize]),
        };
        head.record.get_or_init(|| {
            let decoded = kept.decode(head).unwrap_or_else(|why| {
                // Its checksum was right, so that only a mistake of its writer leads here.
                tracing::warn!(n = head.ordinal, "a saved record {why}; run `piton doctor`");
                Record::bare(head.kind, head.ordinal)
            });
            decoded.into()
        })
    }

    /// Appends the record: its head first.
    pub(super) fn encode(&self, content: &mut Vec<u8>) {
        let record = self.whole();
        content.push(CheckpointKind::ALL.iter().position(|kind| *kind == record.kind).unwrap_or_default() as u8);
        put(content, record.ordinal);
        content.push(u8::from(record.is_whole()));
        put_bytes(content, record.workspace.as_bytes());
        put_bytes(content, record.run.as_bytes());
        [record.number.main, u64::from(record.number.step)].into_iter().for_each(|number| put(content, number));
        [record.files, record.bytes, record.skipped].into_iter().for_each(|number| put(content, number));
        put_bytes(content, record.reason.as_bytes());
        put_bytes(content, record.time.as_bytes());
        for text in [&record.turn, &record.codon_id, &record.codon_name] {
            put_option(content, text.as_deref());
        }
        content.push(u8::from(record.duration_ms.is_some()));
        record.duration_ms.into_iter().for_each(|duration| put(content, duration));
        content.push(u8::from(record.pinned));
        put(
            content,
            match record.layer {
                None => 0,
                Some(Layer::None) => 1,
                Some(Layer::Sequence(sequence)) => sequence.saturating_add(2),
            },
        );
        put(content, record.looked.and_then(|looked| u64::try_from(looked).ok()).unwrap_or(0));
        put(content, record.follows.unwrap_or(0));
        put(content, record.whole.unwrap_or(0));
        put(content, record.effects.len() as u64);
        record.effects.iter().for_each(|class| put_bytes(content, class.as_str().as_bytes()));
        put(content, record.flags.len() as u64);
        record.flags.iter().for_each(|flag| put_bytes(content, flag.as_bytes()));
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
        LazyRecord(Source::Decoded(record.into()))
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
            record.number = Number { main: n as u64 / 2, step: n as u32 % 2 };
            record.flags = vec![["targeted", "paths", "tracked"][n % 3].to_owned()];
            record.effects = vec![crate::model::effect::Class::FileDelete];
            record.duration_ms = (n % 2 == 0).then_some(7);
            (record.looked, record.whole) = ((n % 3 == 0).then_some(77), (n % 3 == 1).then_some(5));
            record.follows = (n % 2 == 1).then_some(6);
            let mut content = b"before".to_vec();
            LazyRecord::from(record.clone()).encode(&mut content);
            let to = content.len();
            content.extend(b"after");
            let mut kept = KeptRecords::of(content);
            let index = kept.add(6..to as u32).unwrap();
            let kept = Arc::new(kept);
            let lazy = kept.record(index);
            assert_eq!((lazy.kind(), lazy.ordinal(), lazy.run(), lazy.workspace()), (kind, n as u64, "a run", "w"));
            assert_eq!(lazy.is_whole(), record.is_whole());
            assert!(kept.heads[0].record.get().is_none(), "its head is enough for these");
            assert_eq!(*lazy, record);
        }
    }

    #[test]
    fn a_cut_head_is_refused_and_a_cut_rest_leaves_the_head() {
        let mut content = Vec::new();
        checkpoint(5, CheckpointKind::Auto, "r").record.encode(&mut content);
        let cut = |to| {
            let mut kept = KeptRecords::of(content.clone());
            let index = kept.add(0..to)?;
            Ok::<_, &'static str>(Arc::new(kept).record(index))
        };
        assert!((0..7).all(|to| cut(to).is_err()));
        let length = content.len() as u32;
        let short = cut(length - 1).unwrap();
        assert_eq!((short.ordinal, short.reason.as_str()), (5, ""));
        assert!(cut(length + 1).is_err());
    }
}
