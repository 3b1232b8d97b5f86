//! The places outside of a workspace to which its links lead.
//!
//! A program that piton cannot read may delete through such a link, although no line names what lies behind it. So these places are saved
//! before an opaque action. The capture of the workspace itself finds the links, so the places are captured after it.
//!
//! *Invariant:* a place is only looked at if a look cannot wait for ever. *Invariant:* each place that may hold files of a person is
//! saved or listed. Limits: links in directories that no capture enters (`node_modules`), links behind another link, and all after
//! the first 4,096 that lead outside.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use super::event::Action;
use super::reach::{is_passed_over, normalise};
use crate::checkpoint::records::workspace::{Scope, scope_of};
use crate::model::effect::Verdict;
use crate::model::path::RelPath;
use crate::sys::mount::{Mount, MountTable};

/// The most links that are followed for one action, and so the most places that are listed.
const MAX_LINKS: usize = 4096;

/// The most places that are saved for one action; further ones are listed.
const MAX_PLACES: usize = 1000;

/// An opaque action, which may also change files behind the links of its workspace.
pub(super) struct OpaqueAction {
    pub action: Action,
    /// The classifier's answer, without warnings.
    pub verdict: Verdict,
    /// The directory in which it runs, by its real name.
    pub cwd: PathBuf,
    /// The time at which the event came.
    pub asked: Instant,
}

/// The places outside of a workspace to which its links lead, by their real names. None is below another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LinkedPlaces {
    /// The places that are saved.
    pub saved: Vec<PathBuf>,
    /// The places that are too broad, too many, or on a server that may not answer.
    pub left_out: Vec<PathBuf>,
}

impl LinkedPlaces {
    /// Follows the links of a workspace. `home` is piton's own directory, which is not among the places.
    pub(super) fn behind(root: &Path, links: &[RelPath], home: &Path) -> LinkedPlaces {
        // Most workspaces have no such link, and then the table is not read.
        let mounts = LazyCell::new(|| MountTable::read().unwrap_or_default());
        let (mut found, mut left_out) = (BTreeSet::new(), BTreeSet::new());
        for link in links.iter().filter_map(|link| outward(root, link)).take(MAX_LINKS) {
            if mounts.under(&link.lexical).is_some_and(Mount::is_remote) {
                left_out.insert(link.lexical);
                continue;
            }
            // Nothing can be deleted through a link that leads nowhere, in a circle, or where this user may not look.
            let Ok(real) = link.path.canonicalize() else { continue };
            let is_some_files = || real.symlink_metadata().is_ok_and(|facts| facts.is_dir() || facts.is_file());
            if real.starts_with(root) || real.starts_with(home) || is_passed_over(&real) || !is_some_files() {
                continue;
            }
            let is_broad = root.starts_with(&real) || scope_of(&real) == Scope::TargetsOnly;
            if is_broad { &mut left_out } else { &mut found }.insert(real);
        }
        let mut saved: Vec<PathBuf> = Vec::new();
        for place in found {
            // In their order, a directory comes before everything below it.
            if !saved.last().is_some_and(|last| place.starts_with(last)) {
                saved.push(place);
            }
        }
        left_out.extend(saved.split_off(saved.len().min(MAX_PLACES)));
        LinkedPlaces { saved, left_out: left_out.into_iter().collect() }
    }

    /// Returns true if there is no such place.
    pub(super) fn is_nothing(&self) -> bool {
        self.saved.is_empty() && self.left_out.is_empty()
    }
}

/// A link whose text may lead outside of its workspace.
struct OutwardLink {
    path: PathBuf,
    /// The place that its text names, without a look at the disk.
    lexical: PathBuf,
}

/// Returns a link if its text may lead outside. One that leads inside by its text, and outside through another link, leads where that
/// other link leads.
fn outward(root: &Path, link: &RelPath) -> Option<OutwardLink> {
    let path = link.under(root);
    let text = path.read_link().ok()?; // it is gone, or no link any more
    let full = path.parent()?.join(&text);
    let mut is_up_later = text.components().skip_while(|part| *part == Component::ParentDir);
    // `a/..` is another place than `.` if `a` is a link.
    let is_unsure = is_up_later.any(|part| part == Component::ParentDir);
    let lexical = normalise(&full);
    (is_unsure || !lexical.starts_with(root)).then_some(OutwardLink { path, lexical })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the links below a directory.
    fn links(root: &Path, dir: &Path) -> Vec<RelPath> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_symlink() {
                found.push(RelPath::from_path(entry.strip_prefix(root).unwrap()).unwrap());
            } else if entry.is_dir() {
                found.extend(links(root, &entry));
            }
        }
        found.sort();
        found
    }

    /// Returns the places behind links from names in the workspace `w`, in a directory that is not temporary; `~/` stands for it.
    fn behind(table: &[(&str, &str)]) -> Option<(String, String)> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        if ["/tmp", "/var/tmp"].iter().any(|temp| target.starts_with(temp)) {
            return None; // piton saves nothing there
        }
        let scratch = tempfile::tempdir_in(target).unwrap();
        let top = scratch.path().canonicalize().unwrap();
        let root = top.join("w");
        for dir in ["w/sub/deep", "far/near", "piton/store.git", "closed"] {
            std::fs::create_dir_all(top.join(dir)).unwrap();
        }
        std::fs::write(top.join("file"), "x").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
        for (link, to) in table {
            let to = to.strip_prefix("~/").map_or_else(|| PathBuf::from(to), |below| top.join(below));
            symlink(to, root.join(link)).unwrap();
        }
        let found = LinkedPlaces::behind(&root, &links(&root, &root), &top.join("piton"));
        let shown = |paths: &[PathBuf]| {
            let texts = paths.iter().map(|path| path.strip_prefix(&top).unwrap_or(path).display().to_string());
            texts.collect::<Vec<_>>().join(" ")
        };
        Some((shown(&found.saved), shown(&found.left_out)))
    }

    #[test]
    fn links_are_followed_as_far_as_they_lead_outside() {
        for (table, saved, left_out) in [
            (&[][..], "", ""),
            (&[("a", "sub"), ("b", "sub/deep/../x"), ("sub/c", "../a"), ("d", "~/w/sub"), ("e", ".")], "", ""),
            (&[("a", "~/far")], "far", ""),
            (&[("a", "../far"), ("b", "../far/near"), ("sub/c", "../../file")], "far file", ""),
            (&[("a", "b"), ("b", "sub/c"), ("sub/c", "~/far")], "far", ""),
            // Only the disk shows that this one leads outside.
            (&[("a", "~/far/near"), ("b", "a/../../file")], "far/near file", ""),
            (&[("loop", "loop"), ("one", "two"), ("two", "one"), ("none", "~/none"), ("ear", "~/socket")], "", ""),
            (&[("own", "~/piton"), ("store", "~/piton/store.git")], "", ""),
            (&[("tool", "/usr/bin/env"), ("temp", "/tmp"), ("null", "/dev/null")], "", ""),
            (&[("up", ".."), ("all", "/"), ("a", "~/far")], "far", "/ "),
        ] {
            let Some((found, listed)) = behind(table) else { return };
            assert_eq!((found.as_str(), listed.trim_end()), (saved, left_out.trim_end()), "{table:?}");
        }
    }
}
