//! The repositories (`.git`) that were kept before an action destroyed them, in the directory `repositories` of a workspace's records.
//!
//! Each is a directory `<ordinal>-<k>`: `data` is what stood there, `path` says where, `node` which inode it had, and `left` what was
//! left out, if anything was.
//! Of a linked worktree, `administration` is the directory in which its repository keeps its HEAD and index, and `administration-of` the
//! place of that. It is made aside and gets its name when its
//! checkpoint has its own. It goes with its checkpoint, and of one path the newest [`MOST_OF_A_PATH`] stay.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::lock::WorkspaceLock;
use super::place::DirNode;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::coverage::{Coverage, Weight};
use crate::model::path::RelPath;
use crate::store::foreign_objects::is_whole;
use crate::sys::fs::aside::Aside;
use crate::sys::fs::durable::{create_private_dir, replace_file, sync_dir};
use crate::sys::interrupt::Interrupt;
use crate::worktree::administration_of;
use crate::worktree::repository::{self, BroughtBack, Kept, LeftOut, Objects, keep};

/// The most copies of the repository at one path.
pub const MOST_OF_A_PATH: usize = 5;

/// The name of the directory.
pub(crate) const NAME: &str = "repositories";

/// The directory of what a repository knows of a linked worktree.
const ADMINISTRATION: &str = "administration";

/// The file that says where that stood, from the root of the file system.
const ADMINISTRATION_OF: &str = "administration-of";

/// The file that names what was left out.
const LEFT: &str = "left";

/// The file that says which inode it had.
const NODE: &str = "node";

/// A repository that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRepository {
    /// The place of its checkpoint in the sequence.
    pub ordinal: u64,
    /// The place where it stood.
    pub path: RelPath,
    /// The place where its data is.
    pub data: KeptData,
    /// The files that were left out.
    pub left: Option<LeftOut>,
}

/// The data of a kept repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptData {
    /// The directory that has it.
    Dir(PathBuf),
    /// The content of a `.git` that is a file.
    File(Vec<u8>),
}

impl KeptRepository {
    /// Lists the `.git` files below the root of a workspace that the coverage of a checkpoint contains.
    pub fn files_in(coverage: &Coverage, ordinal: u64) -> impl Iterator<Item = KeptRepository> {
        let files = coverage.repositories.iter().filter(|(_, content)| !content.is_empty());
        files.map(move |(path, content)| {
            let (path, data) = (path.clone(), KeptData::File(content.clone()));
            KeptRepository { ordinal, path, data, left: None }
        })
    }

    /// Returns true if what was kept is still at its place: the same directory, or a file with the same content.
    pub fn is_in_place(&self, root: &Path) -> bool {
        let place = self.path.under(root);
        let Ok(facts) = place.symlink_metadata() else { return false };
        // A file that cannot be read is not known to be the same.
        let is_same = |kept: &[u8]| facts.is_file() && std::fs::read(&place).is_ok_and(|there| there == kept);
        match &self.data {
            KeptData::File(content) => is_same(content),
            KeptData::Dir(dir) => {
                // A copy of an older build does not say it.
                let node = std::fs::read_to_string(dir.join(NODE)).ok();
                node.is_none_or(|node| node == node_of(&facts))
                    || std::fs::read(dir.join("data")).is_ok_and(|kept| is_same(&kept))
            }
        }
    }

    /// Returns true if its data still exists.
    pub fn has_data(&self) -> bool {
        match &self.data {
            KeptData::Dir(dir) => dir.is_dir(),
            KeptData::File(_) => true,
        }
    }

    /// Returns true if anything is at its place.
    pub fn is_occupied(&self, root: &Path) -> bool {
        self.path.under(root).symlink_metadata().is_ok()
    }
}

/// Returns the text by which a directory or file is recognised.
fn node_of(facts: &Metadata) -> String {
    let DirNode { ino, born } = DirNode::of(facts);
    format!("{ino} {born}")
}

/// A repository that is kept, and whose checkpoint has no name yet. Dropped, it is left to the sweep of leftovers.
#[derive(Debug)]
pub struct Staged(Aside);

/// Keeps what stands at `path` of the workspace `root`, whose records are in `dir`.
///
/// # Errors
/// As [`keep`].
pub(crate) fn stage(
    dir: &Path,
    root: &Path,
    path: &RelPath,
    how: (Objects, u64),
    control: Interrupt<'_>,
) -> Result<(Staged, Kept)> {
    let all = dir.join(NAME);
    create_private_dir(&all)?;
    let aside = Aside::dir(&all.join("kept"))?;
    let mut kept = keep(root, path, &aside.path, how, control)?;
    keep_administration(&path.under(root), &aside.path, how, &mut kept, control)?;
    if let Some(left) = &kept.left {
        replace_file(&aside.path.join(LEFT), &written(left))?;
    }
    if let Ok(facts) = path.under(root).symlink_metadata() {
        replace_file(&aside.path.join(NODE), node_of(&facts).as_bytes())?;
    }
    replace_file(&aside.path.join("path"), path.as_bytes())?;
    Ok((Staged(aside), kept))
}

/// Keeps the directory in which a repository has its facts of a linked worktree, if `pointer` is the `.git` of one.
fn keep_administration(
    pointer: &Path,
    aside: &Path,
    how: (Objects, u64),
    kept: &mut Kept,
    control: Interrupt<'_>,
) -> Result<()> {
    let is_pointer = pointer.file_name().is_some_and(|name| name == ".git");
    let found = pointer.parent().filter(|_| is_pointer).and_then(administration_of);
    let Some(Ok(place)) = found.map(|place| RelPath::from_path(place.strip_prefix("/").unwrap_or(&place))) else {
        return Ok(());
    };
    let to = aside.join(ADMINISTRATION);
    create_private_dir(&to)?;
    match keep(Path::new("/"), &place, &to, how, control) {
        Ok(further) => {
            (kept.files, kept.copied) = (kept.files + further.files, kept.copied + further.copied);
            kept.left = kept.left.take().or(further.left);
            kept.at_risk = kept.at_risk.or(further.at_risk);
            replace_file(&aside.join(ADMINISTRATION_OF), place.as_bytes())
        }
        Err(error) if error.code() == Code::ShuttingDown => Err(error),
        Err(error) => {
            tracing::warn!(%error, "the git data of a linked worktree was not saved");
            Ok(())
        }
    }
}

/// Brings a kept repository back to where it stood in the workspace `root`. The administration of a linked worktree comes back
/// too, where it is gone.
///
/// # Errors
/// As [`repository::bring_back`]; `conflict` if the repository of a linked worktree is gone.
pub(crate) fn bring_back(kept: &KeptRepository, root: &Path) -> Result<BroughtBack> {
    let dir = match &kept.data {
        KeptData::Dir(dir) => dir,
        KeptData::File(content) => return repository::write_file(content, root, &kept.path),
    };
    let place = std::fs::read(dir.join(ADMINISTRATION_OF)).ok().and_then(|path| RelPath::parse(&path).ok());
    let top = Path::new("/");
    let gone = place.filter(|place| place.under(top).symlink_metadata().is_err());
    let around = gone.as_ref().and_then(RelPath::parent).map(|around| around.under(top));
    if let Some(around) = around.filter(|around| !around.is_dir()) {
        // git removes it with its last worktree.
        make_as_above(&around).map_err(|error| {
            Error::new(Code::Conflict, "the repository of this linked worktree is gone")
                .path(around.parent().unwrap_or(&around))
                .hint("restore that first, then repeat the command")
                .caused_by(error)
        })?;
    }
    let mut back = repository::bring_back(dir, root, &kept.path, &is_whole)?;
    if let Some(place) = gone {
        back.files += repository::bring_back(&dir.join(ADMINISTRATION), top, &place, &is_whole)?.files;
    }
    if let Ok(facts) = kept.path.under(root).symlink_metadata()
        && let Err(error) = replace_file(&dir.join(NODE), node_of(&facts).as_bytes())
    {
        tracing::warn!(%error, "a repository that was restored will be treated as a new one");
    }
    Ok(back)
}

/// Makes a directory with the mode of the one around it.
fn make_as_above(dir: &Path) -> std::io::Result<()> {
    let around = dir.parent().unwrap_or(dir).metadata()?;
    std::fs::create_dir(dir)?;
    std::fs::set_permissions(dir, around.permissions())
}

/// Gives kept repositories to a checkpoint.
///
/// # Errors
/// Returns the errors of renaming.
pub(crate) fn settle(dir: &Path, staged: &[Staged], ordinal: u64, _lock: &WorkspaceLock) -> Result<()> {
    if staged.is_empty() {
        return Ok(());
    }
    let all = dir.join(NAME);
    let mut next = of(dir).len();
    for Staged(aside) in staged {
        let mut place = all.join(format!("{ordinal}-{next}"));
        while place.exists() {
            next += 1;
            place = all.join(format!("{ordinal}-{next}"));
        }
        aside.put(&place).at("keeping a repository", &place)?;
    }
    sync_dir(&all)
}

/// Lists the kept repositories, the oldest checkpoint first. One that cannot be read is passed over.
pub fn of(dir: &Path) -> Vec<KeptRepository> {
    let Ok(listing) = std::fs::read_dir(dir.join(NAME)) else { return Vec::new() };
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let (ordinal, k) = name.to_str()?.split_once('-')?;
        let path = RelPath::parse(&std::fs::read(entry.path().join("path")).ok()?).ok()?;
        let order = (ordinal.parse::<u64>().ok()?, k.parse::<u64>().ok()?);
        Some((
            order,
            KeptRepository { ordinal: order.0, path, left: left_of(&entry.path()), data: KeptData::Dir(entry.path()) },
        ))
    };
    let mut all: Vec<_> = listing.flatten().filter_map(read).collect();
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, kept)| kept).collect()
}

/// Returns what was left out as its file has it: two numbers, and paths, each with a zero behind it.
fn written(left: &LeftOut) -> Vec<u8> {
    let mut text =
        format!("{}\0{}{}\0", left.count, left.weight.bytes, if left.weight.is_least { "+" } else { "" }).into_bytes();
    left.paths.iter().for_each(|path| text.extend(path.as_bytes().iter().chain(&[0])));
    text
}

/// Returns what was left out of a kept repository. A file that cannot be read tells of something, and not of what.
fn left_of(dir: &Path) -> Option<LeftOut> {
    let text = match std::fs::read(dir.join(LEFT)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(_) => Vec::new(),
    };
    let mut fields = text.split(|byte| *byte == 0);
    let mut next = || fields.next().and_then(|field| std::str::from_utf8(field).ok()).unwrap_or_default();
    let (count, bytes) = (next().parse().unwrap_or(0), next());
    let weight = Weight { bytes: bytes.trim_end_matches('+').parse().unwrap_or(0), is_least: bytes.ends_with('+') };
    let paths = fields.filter(|path| !path.is_empty()).filter_map(|path| RelPath::parse(path).ok()).collect();
    Some(LeftOut { count, weight, paths })
}

/// Removes those whose checkpoint is gone, and of each path all but the newest ones.
///
/// # Errors
/// Returns the errors of removing.
pub(crate) fn thin_out(dir: &Path, is_there: &dyn Fn(u64) -> bool, _lock: &WorkspaceLock) -> Result<()> {
    let mut counts: BTreeMap<RelPath, usize> = BTreeMap::new();
    for kept in of(dir).into_iter().rev() {
        let count = counts.entry(kept.path.clone()).or_default();
        *count += usize::from(is_there(kept.ordinal));
        if !is_there(kept.ordinal) || *count > MOST_OF_A_PATH {
            remove(&kept)?;
        }
    }
    Ok(())
}

/// Removes those whose path is chosen, and returns their number.
///
/// # Errors
/// Returns the errors of removing.
pub(crate) fn clear(dir: &Path, goes: &dyn Fn(&RelPath) -> bool, _lock: &WorkspaceLock) -> Result<usize> {
    let all: Vec<_> = of(dir).into_iter().filter(|kept| goes(&kept.path)).collect();
    all.iter().try_for_each(remove)?;
    Ok(all.len())
}

/// Removes a directory, also one whose own directories may not be written to.
fn remove(kept: &KeptRepository) -> Result<()> {
    let KeptData::Dir(dir) = &kept.data else { return Ok(()) };
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&path) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            // Whether it helps shows when it is removed.
            let _ = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o700));
            pending.push(entry.path());
        }
    }
    std::fs::remove_dir_all(dir).at("removing a kept repository", dir)
}
