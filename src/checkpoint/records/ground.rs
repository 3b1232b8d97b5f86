//! Looks at the places of workspaces, for [`standing`](crate::checkpoint::upkeep::standing) to judge. One value looks at
//! many, and reads mounts and directories once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use super::place::{DirNode, Place};
use crate::checkpoint::upkeep::standing::{FoundNode, JudgedStanding, PlaceLook, judge};
use crate::sys::mount::{Mount, MountTable};

/// The most names of a directory among which a moved one is looked for.
const MAX_NAMES: usize = 10_000;

/// The names of a directory, by inode.
type NamesByInode = HashMap<u64, OsString>;

/// The ground on which workspaces stand: mounts, and directories that were read.
#[derive(Default)]
pub struct Ground {
    mounts: MountTable,
    /// The volumes of mounts that were asked for.
    volumes: RefCell<HashMap<PathBuf, String>>,
    /// The directories among whose names a moved one was looked for.
    listed: RefCell<HashMap<PathBuf, NamesByInode>>,
    /// The recorded places of all workspaces, by inode.
    known: HashMap<u64, Vec<(PathBuf, Place)>>,
}

impl Ground {
    /// Returns the ground as it is now. `known` are the paths and places of all workspaces, to one of which a directory may
    /// have moved.
    pub fn now<'w>(known: impl Iterator<Item = (&'w Path, Option<&'w Place>)>) -> Ground {
        // Without a table of mounts nothing is proved, and everything that is there is still seen.
        let mut ground = Ground { mounts: MountTable::read().unwrap_or_default(), ..Ground::default() };
        for (path, place) in known {
            if let Some(place) = place {
                ground.known.entry(place.node.ino).or_default().push((path.to_owned(), place.clone()));
            }
        }
        ground
    }

    /// Judges how a workspace stands.
    pub fn standing(&self, path: &Path, recorded: Option<&Place>) -> JudgedStanding {
        judge(recorded, &self.look(path, recorded))
    }

    /// Returns true if a directory that is missing may be made again at its path: what it was on is mounted, and it was not moved.
    pub fn may_be_made_again(&self, path: &Path, recorded: Option<&Place>) -> bool {
        let look = self.look(path, recorded);
        let is_missing = match &look.root {
            FoundNode::Missing => true,
            // The file system of another machine, which is not asked here.
            FoundNode::Failed(_) => self.mounts.under(path).is_some_and(Mount::is_remote),
            FoundNode::Dir(_) | FoundNode::Link(_) | FoundNode::Other => false,
        };
        let volume = recorded.map_or("", |place| &place.volume);
        let is_other = !volume.is_empty() && !look.volume.is_empty() && volume != look.volume;
        is_missing && look.is_mounted && look.elsewhere.is_none() && !is_other
    }

    fn look(&self, path: &Path, recorded: Option<&Place>) -> PlaceLook {
        let mount = self.mounts.under(path);
        let unsure_kind = mount.filter(|mount| !mount.has_sure_inodes()).map(|mount| mount.kind.clone());
        let is_mounted = recorded.is_none_or(|place| self.mounts.has(Path::new(&place.mount)));
        let mut look = PlaceLook {
            root: FoundNode::Missing,
            above: (0, FoundNode::Missing),
            unsure_kind,
            is_mounted,
            volume: String::new(),
            elsewhere: None,
        };
        if let Some(remote) = mount.filter(|mount| mount.is_remote()) {
            look.root = FoundNode::Failed(format!("piton does not query a network file system ({})", remote.kind));
            return look;
        }
        look.root = found(path);
        if look.root != FoundNode::Missing {
            return look;
        }
        let nearest = path.ancestors().skip(1).map(found).enumerate().find(|(_, found)| *found != FoundNode::Missing);
        look.above = nearest.unwrap_or((0, FoundNode::Missing));
        look.volume = mount.map_or_else(String::new, |mount| self.volume(mount));
        look.elsewhere = recorded.and_then(|place| self.elsewhere(path, place, look.above.0));
        look
    }

    fn volume(&self, mount: &Mount) -> String {
        let mut volumes = self.volumes.borrow_mut();
        volumes.entry(mount.point.clone()).or_insert_with(|| mount.volume()).clone()
    }

    /// Finds where a directory lies whose nearest directory above is the one `at` so many steps up: in a directory beside
    /// the one that is missing, or at the path of another workspace.
    fn elsewhere(&self, path: &Path, place: &Place, at: usize) -> Option<PathBuf> {
        let gone = path.ancestors().nth(at)?;
        let node = if at == 0 { &place.node } else { place.above.get(at - 1)? };
        let beside = self.beside(gone.parent()?, node).map(|dir| dir.join(path.strip_prefix(gone).unwrap_or(path)));
        let others = self.known.get(&place.node.ino).into_iter().flatten();
        let others =
            others.filter(|(other, theirs)| other != path && theirs.is_surely(place)).map(|(other, _)| other.clone());
        let is_it = |dir: &PathBuf| matches!(found(dir), FoundNode::Dir(node) if node.matches(&place.node));
        // `join` of an empty rest leaves a slash at the end.
        beside.into_iter().map(|dir| dir.components().collect()).chain(others).find(is_it)
    }

    /// Finds the name in a directory that a directory has now.
    fn beside(&self, dir: &Path, node: &DirNode) -> Option<PathBuf> {
        let mut listed = self.listed.borrow_mut();
        let names = listed.entry(dir.to_owned()).or_insert_with(|| {
            // One that cannot be listed holds nothing that could be named.
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_NAMES);
            entries.map(|entry| (entry.ino(), entry.file_name())).collect()
        });
        Some(dir.join(names.get(&node.ino)?)).filter(|dir| matches!(found(dir), FoundNode::Dir(it) if it.matches(node)))
    }
}

/// Looks at a path, and follows no link at its end.
fn found(path: &Path) -> FoundNode {
    match path.symlink_metadata() {
        Ok(facts) if facts.is_dir() => FoundNode::Dir(DirNode::of(&facts)),
        Ok(facts) if facts.is_symlink() => FoundNode::Link(path.canonicalize().ok().filter(|to| to.is_dir())),
        Ok(_) => FoundNode::Other,
        Err(error) if error.kind() == ErrorKind::NotFound => FoundNode::Missing,
        Err(error) if error.kind() == ErrorKind::NotADirectory => FoundNode::Other,
        Err(error) => FoundNode::Failed(format!("it cannot be checked: {error}")),
    }
}
