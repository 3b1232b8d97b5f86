//! What the store holds, read at once: for a batch that would ask for very many objects one by one.
//!
//! Taken when the batch begins, under its lock. What others add meanwhile is written twice, which costs space only;
//! nothing goes meanwhile.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::{index, loose, pack};
use crate::error::{IoContext, Result};
use crate::model::id::ObjectId;

/// Larger indexes are not read: memory is bounded.
const MOST: u64 = 8 << 20;

/// Ids of objects, in their order.
pub struct Present(Vec<ObjectId>);

impl From<Vec<ObjectId>> for Present {
    fn from(mut ids: Vec<ObjectId>) -> Present {
        ids.sort_unstable();
        Present(ids)
    }
}

impl Present {
    /// Reads all indexes and the names of all loose objects; `None` where there is too much or more than these, so that
    /// libgit2 must be asked.
    pub fn read(git_dir: &Path) -> Result<Option<Present>> {
        if git_dir.join("objects/info/alternates").exists() {
            return Ok(None);
        }
        let dir = git_dir.join("objects/pack");
        let mut ids = Vec::new();
        let mut left = MOST;
        for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
            let path = entry.at("listing", &dir)?.path();
            if path.extension().is_none_or(|kind| kind != "idx") || !path.with_extension("pack").is_file() {
                continue;
            }
            let mut bytes = Vec::new();
            let file = File::open(&path).at("opening", &path)?;
            file.take(left + 1).read_to_end(&mut bytes).at("reading", &path)?;
            if bytes.len() as u64 > left {
                return Ok(None);
            }
            left -= bytes.len() as u64;
            // What a torn pack held is written again.
            if !pack::is_of(&path.with_extension("pack"), &bytes)? {
                continue;
            }
            ids.extend(index::parse(&bytes).unwrap_or_default().iter().map(|entry| entry.id));
        }
        ids.extend(loose::list(git_dir)?);
        Ok(Some(Present::from(ids)))
    }

    /// Whether an object was there.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.0.binary_search(id).is_ok()
    }
}
