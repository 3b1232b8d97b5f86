//! Judges whether the directory of a workspace is there, was deleted or moved, or lies on a file system that is not mounted.
//!
//! *Invariant:* it is pure. *Invariant:* a directory is called deleted only by proof. Its file system is mounted, the
//! nearest directory above that is left is the recorded one, and the name below it is missing. In doubt it is `unknown`,
//! and nothing of its history goes for that.

use std::path::PathBuf;

use crate::checkpoint::records::place::{DirNode, Place};

/// The state of a workspace's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is there.
    Live,
    /// It was deleted, or moved to a place that nobody knows; this is proved.
    Orphan,
    /// Its file system is not mounted.
    Unmounted,
    /// It lies at another place.
    Moved(PathBuf),
    /// Nothing is proved.
    Unknown,
}

impl Standing {
    /// Returns the word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Standing::Live => "live",
            Standing::Orphan => "orphan",
            Standing::Unmounted => "unmounted",
            Standing::Moved(_) => "moved",
            Standing::Unknown => "unknown",
        }
    }
}

/// A state and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedStanding {
    /// The state.
    pub standing: Standing,
    /// The reason, as a part of a sentence.
    pub reason: String,
    /// True if it is proved that the directory is not at its place any more.
    pub is_proved_gone: bool,
}

/// The object that a look at a path finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundNode {
    /// A directory.
    Dir(DirNode),
    /// A symbolic link; with the directory that it leads to, if it does.
    Link(Option<PathBuf>),
    /// Another object.
    Other,
    /// Nothing: the name does not exist.
    Missing,
    /// The look failed, with the reason.
    Failed(String),
}

/// Facts about the place of a workspace, as they are found now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLook {
    /// The object at the path itself.
    pub root: FoundNode,
    /// The nearest directory above that is there, counted from the parent (0), and the object found there.
    pub above: (usize, FoundNode),
    /// The kind of the file system, if it is one whose inodes prove nothing.
    pub unsure_kind: Option<String>,
    /// True if something is mounted where the file system of the workspace was.
    pub is_mounted: bool,
    /// The volume that lies there now; empty when unknown.
    pub volume: String,
    /// The place at which the very directory was found.
    pub elsewhere: Option<PathBuf>,
}

/// Judges by the recorded place and by the facts that were found.
pub fn judge(recorded: Option<&Place>, look: &PlaceLook) -> JudgedStanding {
    let because =
        |standing, reason: &str| JudgedStanding { standing, reason: reason.to_owned(), is_proved_gone: false };
    let unknown = |reason: &str| because(Standing::Unknown, reason);
    let is_recorded = |node: &DirNode| recorded.is_some_and(|place| place.node.matches(node));
    let mount = recorded.map_or("", |place| &place.mount);
    let is_unmounted = !mount.is_empty() && !look.is_mounted;
    match &look.root {
        FoundNode::Dir(node) if is_unmounted && !is_recorded(node) => {
            because(Standing::Unmounted, &format!("nothing is mounted at {mount}"))
        }
        FoundNode::Dir(node) if recorded.is_some() && !is_recorded(node) => {
            because(Standing::Live, "the directory was created again")
        }
        FoundNode::Dir(_) => because(Standing::Live, "the directory is there"),
        FoundNode::Failed(why) => unknown(why),
        FoundNode::Missing | FoundNode::Link(_) | FoundNode::Other if is_unmounted => {
            because(Standing::Unmounted, &format!("nothing is mounted at {mount}"))
        }
        FoundNode::Link(Some(to)) => because(Standing::Moved(to.clone()), "a symbolic link is in its place"),
        FoundNode::Link(None) => unknown("a symbolic link that leads to no directory is in its place"),
        FoundNode::Other => unknown("something other than a directory is in its place"),
        FoundNode::Missing => {
            let proof = proof_of_end(recorded, look);
            let standing = match (&look.elsewhere, &proof) {
                (Some(to), _) => Standing::Moved(to.clone()),
                (None, Ok(_)) => Standing::Orphan,
                (None, Err(_)) => Standing::Unknown,
            };
            let reason = match (&standing, &proof) {
                (Standing::Moved(_), _) => "a directory with its device and inode is there",
                (_, Ok(reason) | Err(reason)) => reason,
            };
            JudgedStanding { standing, reason: reason.to_owned(), is_proved_gone: proof.is_ok() }
        }
    }
}

/// Returns why it is proved that a missing directory is not at its place any more, or why it is not.
fn proof_of_end<'w>(recorded: Option<&Place>, look: &'w PlaceLook) -> Result<&'w str, &'w str> {
    let place = recorded.ok_or("its location was not recorded")?;
    if look.unsure_kind.is_some() {
        return Err("its file system is on another machine");
    }
    let (at, above) = &look.above;
    let node = match above {
        FoundNode::Dir(node) => node,
        FoundNode::Failed(why) => return Err(why),
        _ => return Err("one of its parent directories is not a directory now"),
    };
    if place.volume.is_empty() || place.volume != look.volume {
        return Err("another file system is mounted there");
    }
    match place.above.get(*at) {
        Some(before) if before.matches(node) => match at {
            0 => Ok("it was deleted or moved; its parent directory is unchanged"),
            _ => Ok("it was deleted or moved together with parent directories"),
        },
        Some(_) => Err("its parent directory is another one than before"),
        None => Err("its parent directories no longer exist either"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ino: u64) -> DirNode {
        DirNode { ino, born: 7 }
    }

    fn place() -> Place {
        let above = vec![node(10), node(9), node(2)];
        Place { dev: 1, node: node(11), above, mount: "/mnt".into(), volume: "ext4 5".into() }
    }

    fn look() -> PlaceLook {
        PlaceLook {
            root: FoundNode::Missing,
            above: (0, FoundNode::Dir(node(10))),
            unsure_kind: None,
            is_mounted: true,
            volume: "ext4 5".into(),
            elsewhere: None,
        }
    }

    fn word(look: &PlaceLook) -> (&'static str, bool) {
        let judged = judge(Some(&place()), look);
        assert!(!judged.reason.is_empty());
        (judged.standing.word(), judged.is_proved_gone)
    }

    #[test]
    fn an_end_needs_a_proof() {
        assert_eq!(word(&look()), ("orphan", true));
        let further = PlaceLook { above: (1, FoundNode::Dir(node(9))), ..look() };
        assert_eq!(word(&further), ("orphan", true), "with its parent");
        let reused = FoundNode::Dir(DirNode { ino: 10, born: 8 });
        for unproved in [
            PlaceLook { above: (0, FoundNode::Dir(node(12))), ..look() },
            PlaceLook { above: (0, reused), ..look() },
            PlaceLook { above: (1, FoundNode::Dir(node(10))), ..look() },
            PlaceLook { above: (3, FoundNode::Dir(node(2))), ..look() },
            PlaceLook { above: (0, FoundNode::Other), ..look() },
            PlaceLook { above: (0, FoundNode::Failed("permission".into())), ..look() },
            PlaceLook { root: FoundNode::Failed("no answer".into()), ..look() },
            PlaceLook { root: FoundNode::Other, ..look() },
            PlaceLook { root: FoundNode::Link(None), ..look() },
            PlaceLook { unsure_kind: Some("nfs".into()), ..look() },
            PlaceLook { volume: "ext4 6".into(), ..look() },
            PlaceLook { volume: String::new(), ..look() },
        ] {
            assert_eq!(word(&unproved), ("unknown", false), "{unproved:?}");
        }
        assert_eq!(judge(None, &look()).standing, Standing::Unknown);
        let volumeless = Place { volume: String::new(), ..place() };
        assert!(!judge(Some(&volumeless), &PlaceLook { volume: String::new(), ..look() }).is_proved_gone);
    }

    #[test]
    fn a_directory_that_is_there_is_live_also_if_it_was_made_anew() {
        for (ino, reason) in [(11, "the directory is there"), (12, "the directory was created again")] {
            let judged = judge(Some(&place()), &PlaceLook { root: FoundNode::Dir(node(ino)), ..look() });
            assert_eq!((judged.standing, judged.reason.as_str()), (Standing::Live, reason));
        }
        assert_eq!(judge(None, &PlaceLook { root: FoundNode::Dir(node(1)), ..look() }).standing, Standing::Live);
    }

    #[test]
    fn without_its_mount_nothing_is_gone() {
        let unmounted = PlaceLook { is_mounted: false, ..look() };
        assert_eq!(word(&unmounted), ("unmounted", false));
        // The directory below the mount shows.
        let root = |ino| PlaceLook { root: FoundNode::Dir(node(ino)), ..unmounted.clone() };
        assert_eq!((word(&root(3)), word(&root(11))), (("unmounted", false), ("live", false)));
    }

    #[test]
    fn a_moved_one_is_named_and_its_end_proved_apart() {
        let moved = PlaceLook { elsewhere: Some("/mnt/new".into()), ..look() };
        assert_eq!(judge(Some(&place()), &moved).standing, Standing::Moved("/mnt/new".into()));
        assert!(word(&moved).1);
        assert_eq!(word(&PlaceLook { volume: "ext4 6".into(), ..moved }), ("moved", false));
        let link = PlaceLook { root: FoundNode::Link(Some("/big/p".into())), ..look() };
        assert_eq!(word(&link), ("moved", false));
    }
}
