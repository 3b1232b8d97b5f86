//! The stamps file: what the last capture of a workspace knew, kept between processes.
//!
//! A cache and nothing more: when it is missing, torn, of another version or of another epoch, the next capture reads
//! every file again. Layout: magic, version, CRC-32 of the body, body. The body holds numbers as LEB128 and paths with
//! the length they share with their predecessor. The directories of the known files come before these, so that they can
//! be read from the disk while the rest is decoded.

use std::path::Path;
use std::sync::Arc;

use super::git_dir::read_regular;
use super::walk::dirs_of;
use crate::error::{IoContext, Result};
use crate::model::binary::{BAD, BinaryReader, CUT, put, put_bytes};
use crate::model::coverage::Defaults;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::stamp::{KnownFile, KnownPaths, Stamp};
use crate::sys::fs::durable;

const MAGIC: &[u8; 8] = b"PTNSTAMP";
const VERSION: u32 = 4;
const HEADER: usize = 16;
/// Largest file that is read: some ten million paths.
const CAP: u64 = 1 << 30;

/// The content of a stamps file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The store's epoch: ids of another one must be checked against the store first.
    pub epoch: String,
    /// The kernel's boot id.
    pub boot: String,
    /// The device of the workspace's root.
    pub dev: u64,
    /// The inode of the workspace's root.
    pub ino: u64,
    /// The usual permission bits of the last checkpoint.
    pub defaults: Option<Defaults>,
    /// The trees that were built from `known`.
    pub built: Option<Built>,
    /// The facts of every captured file and link.
    pub known: Arc<KnownPaths>,
}

/// A root tree, and what beside the known files it was built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// SHA-1 of the directories, their permissions and the coverage.
    pub shape: [u8; 20],
    /// The tree's id, an object of the store.
    pub root: ObjectId,
}

/// The outcome of reading a stamps file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StampsRead {
    /// The file was whole, and of this version.
    Found(Stamps),
    /// There is no such file: this is the first capture, or the file was removed.
    Missing,
    /// Torn, damaged or of another version; the reason, for logs.
    Unusable(&'static str),
}

/// A listener to the directories of the known files, in the order of a walk, as soon as they are decoded.
pub type OnDirs<'b> = &'b mut dyn FnMut(Vec<RelPath>);

/// Reads the stamps, if there are usable ones.
///
/// # Errors
/// When the file exists and cannot be read.
pub fn load(file: &Path, begin: OnDirs<'_>) -> Result<Option<Stamps>> {
    match read(file, begin)? {
        StampsRead::Found(stamps) => Ok(Some(stamps)),
        StampsRead::Missing | StampsRead::Unusable(_) => Ok(None),
    }
}

/// As [`load`], telling why there are none.
///
/// # Errors
/// As [`load`].
pub fn read(file: &Path, begin: OnDirs<'_>) -> Result<StampsRead> {
    let Some(bytes) = read_regular(file, CAP).at("reading the stamps", file)? else {
        return Ok(StampsRead::Missing);
    };
    Ok(match decode_with(&bytes, begin) {
        Ok(stamps) => StampsRead::Found(stamps),
        Err(why) => StampsRead::Unusable(why),
    })
}

/// Writes the stamps in place of the old ones, without waiting for the disk: after a power cut there may be none.
///
/// # Errors
/// `disk-full`, `permission`; the old file is untouched then.
pub fn save(file: &Path, stamps: &Stamps) -> Result<()> {
    durable::replace_cache(file, &encode(stamps))
}

/// Returns the bytes of a stamps file.
pub fn encode(stamps: &Stamps) -> Vec<u8> {
    let mut body = Vec::with_capacity(64 + stamps.known.entries().len() * 90);
    put_bytes(&mut body, stamps.epoch.as_bytes());
    put_bytes(&mut body, stamps.boot.as_bytes());
    put(&mut body, stamps.dev);
    put(&mut body, stamps.ino);
    match stamps.defaults {
        None => body.push(0),
        Some(Defaults { file, executable, dir }) => {
            body.push(1);
            [file, executable, dir].into_iter().for_each(|perm| put(&mut body, perm.into()));
        }
    }
    match stamps.built {
        None => body.push(0),
        Some(Built { shape, root }) => {
            body.push(1);
            body.extend(shape);
            body.extend(root.as_bytes());
        }
    }
    let dirs = dirs_of(&stamps.known);
    put(&mut body, dirs.len() as u64);
    let mut previous: &[u8] = &[];
    for dir in &dirs {
        put_path(&mut body, &mut previous, dir);
    }
    put(&mut body, stamps.known.entries().len() as u64);
    previous = &[];
    for (path, known) in stamps.known.entries() {
        put_path(&mut body, &mut previous, path);
        put_known(&mut body, known);
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.append(&mut body);
    bytes
}

fn put_path<'p>(body: &mut Vec<u8>, previous: &mut &'p [u8], path: &'p RelPath) {
    let path = path.as_bytes();
    let shared = path.iter().zip(*previous).take_while(|(a, b)| a == b).count();
    put(body, shared as u64);
    put_bytes(body, &path[shared..]);
    *previous = path;
}

fn put_known(body: &mut Vec<u8>, known: &KnownFile) {
    let KnownFile { stamp, id, proven, private } = known;
    let Stamp { size, mtime, ctime, dev, ino, mode, links } = *stamp;
    body.push(u8::from(*proven) | (u8::from(*private) << 1));
    body.extend(id.as_bytes());
    body.extend(mtime.to_le_bytes());
    body.extend(ctime.to_le_bytes());
    [size, dev, ino, mode.into(), links].into_iter().for_each(|number| put(body, number));
}

/// Returns the inverse of [`encode`].
///
/// # Errors
/// Why they are of no use, for logs.
pub fn decode(bytes: &[u8]) -> Result<Stamps, &'static str> {
    decode_with(bytes, &mut |_| ())
}

fn decode_with(bytes: &[u8], begin: OnDirs<'_>) -> Result<Stamps, &'static str> {
    let (header, body) = bytes.split_at_checked(HEADER).ok_or(CUT)?;
    if header[..8] != *MAGIC {
        return Err("is not a file of stamps");
    }
    if header[8..12] != VERSION.to_le_bytes() {
        return Err("has another version");
    }
    if header[12..] != crc32fast::hash(body).to_le_bytes() {
        return Err("has a wrong checksum");
    }
    decode_body(&mut StampReader(BinaryReader(body)), begin)
}

fn decode_body(reader: &mut StampReader<'_>, begin: OnDirs<'_>) -> Result<Stamps, &'static str> {
    let mut stamps = Stamps {
        epoch: reader.0.text()?,
        boot: reader.0.text()?,
        dev: reader.0.number()?,
        ino: reader.0.number()?,
        defaults: reader.defaults()?,
        built: reader.built()?,
        known: Arc::default(),
    };
    let mut name: Vec<u8> = Vec::new();
    let count = reader.0.number()?;
    let mut dirs = Vec::with_capacity((reader.0.0.len() / 2).min(count as usize));
    for _ in 0..count {
        dirs.push(reader.path(&mut name)?);
    }
    begin(dirs);
    name.clear();
    let count = reader.0.number()?;
    let mut entries = Vec::with_capacity((reader.0.0.len() / 64).min(count as usize));
    for _ in 0..count {
        let path = reader.path(&mut name)?;
        entries.push((path, reader.known()?));
    }
    if !reader.0.0.is_empty() {
        return Err(BAD);
    }
    stamps.known = Arc::new(KnownPaths::new(entries));
    Ok(stamps)
}

/// Reads what stamps consist of.
struct StampReader<'a>(BinaryReader<'a>);

impl StampReader<'_> {
    /// Returns the next path; `name` holds the one before, and then this one.
    fn path(&mut self, name: &mut Vec<u8>) -> Result<RelPath, &'static str> {
        let shared = self.0.number()? as usize;
        if shared > name.len() {
            return Err(BAD);
        }
        name.truncate(shared);
        name.extend_from_slice(self.0.bytes()?);
        RelPath::parse(name).map_err(|_| BAD)
    }

    fn perm(&mut self) -> Result<u16, &'static str> {
        u16::try_from(self.0.number()?).ok().filter(|perm| *perm <= 0o7777).ok_or(BAD)
    }

    fn defaults(&mut self) -> Result<Option<Defaults>, &'static str> {
        if !self.0.flag()? {
            return Ok(None);
        }
        Ok(Some(Defaults { file: self.perm()?, executable: self.perm()?, dir: self.perm()? }))
    }

    fn built(&mut self) -> Result<Option<Built>, &'static str> {
        if !self.0.flag()? {
            return Ok(None);
        }
        Ok(Some(Built { shape: self.0.array()?, root: ObjectId::from_bytes(self.0.array()?) }))
    }

    fn known(&mut self) -> Result<KnownFile, &'static str> {
        let [flags] = self.0.array()?;
        let (proven, private) = (flags & 1 != 0, flags & 2 != 0);
        if flags > 3 {
            return Err(BAD);
        }
        let id = ObjectId::from_bytes(self.0.array()?);
        let mtime = i64::from_le_bytes(self.0.array()?);
        let ctime = i64::from_le_bytes(self.0.array()?);
        let stamp = Stamp {
            size: self.0.number()?,
            mtime,
            ctime,
            dev: self.0.number()?,
            ino: self.0.number()?,
            mode: u32::try_from(self.0.number()?).map_err(|_| BAD)?,
            links: self.0.number()?,
        };
        Ok(KnownFile { stamp, id, proven, private })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Stamps {
        let known = |n: u64, proven| KnownFile {
            stamp: Stamp {
                size: n,
                mtime: -5,
                ctime: i64::MAX,
                dev: u64::MAX,
                ino: n << 33,
                mode: 0o100_644,
                links: 2,
            },
            id: ObjectId::from_bytes([n as u8; 20]),
            proven,
            private: n == 1,
        };
        let paths: [&[u8]; 4] = [b"a", b"a/b", b"a/b\xff\nc", b"z"];
        Stamps {
            epoch: "e1".into(),
            boot: "boot".into(),
            dev: 3,
            ino: 1 << 40,
            defaults: Some(Defaults { file: 0o600, executable: 0o700, dir: 0o4700 }),
            built: Some(Built { shape: [7; 20], root: ObjectId::EMPTY_TREE }),
            known: Arc::new(KnownPaths::new(
                paths
                    .iter()
                    .enumerate()
                    .map(|(n, path)| (RelPath::parse(path).unwrap(), known(n as u64 * 200, n % 2 == 0)))
                    .collect(),
            )),
        }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("stamps");
        let load = |file: &Path| {
            let mut dirs = Vec::new();
            let stamps = load(file, &mut |told| dirs = told).unwrap();
            assert_eq!(dirs, stamps.as_ref().map_or_else(Vec::new, |stamps| dirs_of(&stamps.known)));
            stamps
        };
        assert_eq!(load(&file), None);
        for stamps in [sample(), Stamps::default()] {
            save(&file, &stamps).unwrap();
            assert_eq!(load(&file), Some(stamps));
        }
    }

    #[test]
    fn torn_changed_or_newer_files_count_as_none() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("stamps");
        let good = encode(&sample());
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            read(&file, &mut |_| ()).unwrap()
        };
        for cut in 0..good.len() {
            assert!(matches!(read(&good[..cut]), StampsRead::Unusable(_)), "cut at {cut}");
        }
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 0x41;
            assert!(matches!(read(&changed), StampsRead::Unusable(_)), "changed at {at}");
        }
        let body = |count: u64| {
            let mut body = vec![0; 7];
            put(&mut body, count);
            [&good[..12], &crc32fast::hash(&body).to_le_bytes(), &body].concat()
        };
        assert!(matches!(read(&body(0)), StampsRead::Found(_)));
        assert_eq!(read(&body(u64::MAX)), StampsRead::Unusable(CUT));
        let mut newer = good.clone();
        newer[8] = VERSION as u8 + 1;
        assert_eq!(read(&newer), StampsRead::Unusable("has another version"));
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend(VERSION.to_le_bytes());
            bytes.extend(crc32fast::hash(&body).to_le_bytes());
            bytes.extend(&body);
            // Only the absence of a panic is of interest for random bytes.
            let _ = decode(&bytes);
            let _ = decode(&body);
        }
    }
}
