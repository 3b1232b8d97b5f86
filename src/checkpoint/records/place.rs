//! The place of a workspace's directory in the file system, as it was when the directory was seen last.
//!
//! It is the evidence by which a directory that is gone is called deleted, moved or not mounted. A freed inode is given to
//! another file soon, so its birth counts too, where the file system keeps it. The number of a device may change at each
//! start of the machine, so the volume counts too.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::sys::mount::{Mount, MountTable};

/// The most directories above the workspace that are recorded.
const MAX_ABOVE: usize = 32;

/// The facts by which a directory is known again on its volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirNode {
    /// The inode.
    pub ino: u64,
    /// Nanoseconds since 1970 at which the inode was made; 0 where the file system does not tell.
    pub born: i64,
}

impl DirNode {
    /// Reads the facts of a directory.
    pub fn of(facts: &Metadata) -> DirNode {
        let born = facts.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()); // not all know it
        let born = born.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        DirNode { ino: facts.ino(), born }
    }

    /// Returns true if both may be the same directory of one volume.
    pub fn matches(&self, other: &DirNode) -> bool {
        self.ino == other.ino && (self.born == other.born || self.born == 0 || other.born == 0)
    }
}

/// The place of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The device.
    pub dev: u64,
    /// The directory itself.
    pub node: DirNode,
    /// The directories above it on the same mount, the nearest first.
    pub above: Vec<DirNode>,
    /// The directory that its file system is mounted on; empty when unknown.
    pub mount: String,
    /// The file system, as it is known again after a restart; empty when unknown.
    pub volume: String,
}

impl Place {
    /// Looks at the place of a directory whose own facts are known.
    pub fn of(path: &Path, facts: &Metadata) -> Place {
        // Without a table of mounts there is no proof, which costs an orphan its end and nothing else.
        let table = MountTable::read().unwrap_or_default();
        let mount = table.under(path);
        let point = mount.map_or(path, |mount| &mount.point);
        let above = path.ancestors().skip(1).take_while(|dir| dir.starts_with(point)).take(MAX_ABOVE);
        // From a directory that cannot be looked at on, none counts.
        let above = above.map_while(|dir| dir.symlink_metadata().ok()).map(|facts| DirNode::of(&facts)).collect();
        Place {
            dev: facts.dev(),
            node: DirNode::of(facts),
            above,
            mount: mount.map_or_else(String::new, |mount| mount.point.to_string_lossy().into_owned()),
            volume: mount.map_or_else(String::new, Mount::volume),
        }
    }

    /// Returns true if both are certainly the same directory, wherever it lies now.
    pub fn is_surely(&self, other: &Place) -> bool {
        let is_there = self.node == other.node && self.node.born != 0;
        is_there && !self.volume.is_empty() && self.volume == other.volume && self.mount == other.mount
    }

    /// Returns true if a directory was recorded with such facts. The device is not compared, for its number may change at
    /// each start of the machine.
    pub fn is_of(&self, facts: &Metadata) -> bool {
        self.node == DirNode::of(facts)
    }
}
