//! The repositories (`.git`) that were kept before an action destroyed them, in the directory `repositories` of a workspace's records.
//!
//! Each is a directory `<ordinal>-<k>`: `data` is what stood there, `path` says where, `left` what was left out, if anything was. It is made aside and gets its name when its
//! checkpoint has its own. It goes with its checkpoint, and of one path the newest [`MOST_OF_A_PATH`] stay.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::lock::WorkspaceLock;
use crate::error::{IoContext, Result};
use crate::model::coverage::Weight;
use crate::model::path::RelPath;
use crate::sys::fs::aside::Aside;
use crate::sys::fs::durable::{create_private_dir, replace_file, sync_dir};
use crate::sys::interrupt::Interrupt;
use crate::worktree::repository::{Kept, LeftOut, Objects, keep};

/// The most copies of the repository at one path.
pub const MOST_OF_A_PATH: usize = 5;

/// The name of the directory.
pub(crate) const NAME: &str = "repositories";

/// The file that names what was left out.
const LEFT: &str = "left";

/// A repository that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRepository {
    /// The place of its checkpoint in the sequence.
    pub ordinal: u64,
    /// The place where it stood.
    pub path: RelPath,
    /// The directory that has it.
    pub dir: PathBuf,
    /// The part that was left out.
    pub left: Option<LeftOut>,
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
    let kept = keep(root, path, &aside.path, how, control)?;
    if let Some(left) = &kept.left {
        replace_file(&aside.path.join(LEFT), &written(left))?;
    }
    replace_file(&aside.path.join("path"), path.as_bytes())?;
    Ok((Staged(aside), kept))
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
        Some((order, KeptRepository { ordinal: order.0, path, left: left_of(&entry.path()), dir: entry.path() }))
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
        let count = counts.entry(kept.path).or_default();
        *count += usize::from(is_there(kept.ordinal));
        if !is_there(kept.ordinal) || *count > MOST_OF_A_PATH {
            remove(&kept.dir)?;
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
    all.iter().try_for_each(|kept| remove(&kept.dir))?;
    Ok(all.len())
}

/// Removes a directory, also one whose own directories may not be written to.
fn remove(dir: &Path) -> Result<()> {
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
