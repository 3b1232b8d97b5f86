//! The numbers of packs, loose objects and refs, from names and sizes alone: no file is opened but the packed refs.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::repository::Store;
use crate::error::Result;

/// Numbers about the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The number of packs.
    pub packs: u64,
    /// Bytes of packs and of what belongs to them.
    pub pack_bytes: u64,
    /// The number of loose objects.
    pub loose: u64,
    /// Bytes of these.
    pub loose_bytes: u64,
    /// The refs of each workspace, by its id.
    pub refs: BTreeMap<String, RefCounts>,
}

/// The refs of one workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefCounts {
    /// Checkpoints beside the branches, without base captures.
    pub leaves: u64,
    /// Branches of runs.
    pub branches: u64,
    /// Refs that were fetched from other machines, or adopted.
    pub fetched: u64,
}

impl Store {
    /// Counts what the store has.
    ///
    /// # Errors
    /// When the packed refs cannot be read. A directory that cannot be listed has nothing that could be counted.
    pub fn census(&self) -> Result<Census> {
        let mut census = Census::default();
        for fan in 0..=255u8 {
            let dir = self.git_dir().join(format!("objects/{fan:02x}"));
            each_file(&dir, &mut |_, bytes| {
                (census.loose, census.loose_bytes) = (census.loose + 1, census.loose_bytes + bytes());
            });
        }
        each_file(&self.git_dir().join("objects/pack"), &mut |name, bytes| {
            census.packs += u64::from(name.ends_with(".pack"));
            census.pack_bytes += bytes();
        });
        let mut names = self.packed_names()?;
        loose_names(self.git_dir(), "refs", &mut names);
        for name in names {
            let mut parts = name.split('/').skip(1);
            let (Some(of), Some(id)) = (parts.next(), parts.next()) else { continue };
            let counts = census.refs.entry(id.to_owned()).or_default();
            match of {
                "heads" => counts.branches += 1,
                "piton" => counts.leaves += u64::from(parts.next() != Some("turn")),
                "piton-remotes" => counts.fetched += 1,
                _ => {}
            }
        }
        Ok(census)
    }
}

/// Calls `see` with the name of each file of a directory, and with a way to its size.
fn each_file(dir: &Path, see: &mut dyn FnMut(&str, &dyn Fn() -> u64)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        // One that is gone by now takes no room.
        see(&entry.file_name().to_string_lossy(), &|| entry.metadata().map_or(0, |facts| facts.len()));
    }
}

/// Adds the names of the refs below a directory that have files of their own.
fn loose_names(git_dir: &Path, dir: &str, names: &mut HashSet<String>) {
    for entry in std::fs::read_dir(git_dir.join(dir)).into_iter().flatten().flatten() {
        let name = format!("{dir}/{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => loose_names(git_dir, &name, names),
            // A lock is no ref, and one that is gone by now neither.
            Ok(_) if !name.ends_with(".lock") => _ = names.insert(name),
            _ => {}
        }
    }
}
