//! The identity of each workspace, kept twice: it tells to which directory a history belongs.
//!
//! `workspaces/<id>/workspace.json` names the directory of a history; `workspaces.index` in piton's home has a line
//! with the same for each workspace. Both have a checksum, so that a damaged path is not taken for another workspace's.
//! A record without one, from an older build or a person, counts if the directory confirms it, and gets one. A lost or
//! damaged copy is written anew from the other. If both are lost, the view of an ordinary git may still name the
//! directory ([`is_of`]). *Invariant:* a history is never given to a directory without evidence; histories without an
//! owner are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::home::Home;
use super::lock::{LOCK_WAIT, WorkspaceLock};
use super::mishaps;
use super::place::Place;
use super::workspace::{Workspace, scope_of};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::text::shell_word;
use crate::store::Store;
use crate::sys::fs::durable::{create_private_dir, replace_file};
use crate::sys::fs::lock::{FileLock, Mode};

/// The lock under which workspaces are added, and their records changed.
pub(crate) struct AddingLock(#[expect(dead_code, reason = "locked for its life")] FileLock);

impl AddingLock {
    /// Takes it.
    ///
    /// # Errors
    /// `store-locked`, `permission`.
    pub(crate) fn acquire(home: &Home) -> Result<AddingLock> {
        let path = home.path().join("workspaces.lock");
        let wait = std::time::Duration::from_secs(10);
        FileLock::acquire(&path, Mode::Exclusive, "adding a workspace", wait).map(AddingLock)
    }
}

/// Holds the content of an identity record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The workspace's id, 16 lowercase hex digits.
    id: String,
    /// The canonical path; bytes that are not UTF-8 are replaced.
    path: String,
    /// The same, percent-quoted; only where the path is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_quoted: Option<String>,
    /// RFC 3339, when the workspace was first seen; empty in records of older builds.
    #[serde(default)]
    since: String,
    /// The device of the directory; 0 when unknown.
    #[serde(default)]
    dev: u64,
    /// The inode of the directory; 0 when unknown.
    #[serde(default)]
    ino: u64,
    /// The place of the directory; older builds and people wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    /// The permission bits of the directory; older builds and people wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    /// The path before an adoption, percent-quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<String>,
    /// The id of the workspace above, which this directory is a part of since an adoption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part_of: Option<String>,
    /// CRC-32 of the rest; older builds and people wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum: Option<String>,
}

impl Identity {
    /// Makes the identity of a workspace. `facts` are those of its directory.
    pub(crate) fn new(id: String, path: &Path, since: String, facts: &Metadata) -> Identity {
        let empty = Identity { id, since, ..Identity::default() };
        empty.at(path, Some(facts))
    }

    /// Returns the same at another place. `facts` are those of the directory there; `None` keeps nothing but the permissions.
    fn at(self, path: &Path, facts: Option<&Metadata>) -> Identity {
        let path_quoted = path.to_str().is_none().then(|| quoted(path));
        let place = facts.map(|facts| Place::of(path, facts));
        let mode = facts.map(permissions).or(self.mode);
        let (dev, ino) = place.as_ref().map_or((0, 0), |place| (place.dev, place.node.ino));
        Identity { path: path.to_string_lossy().into_owned(), path_quoted, dev, ino, place, mode, ..self }.sealed()
    }

    fn sealed(mut self) -> Identity {
        self.sum = Some(self.summed());
        self
    }

    fn summed(&self) -> String {
        let Identity { id, path, path_quoted, since, dev, ino, place, mode, was, part_of, sum: _ } = self;
        let mut text = format!("{id}\n{path}\n{path_quoted:?}\n{since}\n{dev}\n{ino}");
        // Records of earlier builds have none of these, and their checksums hold.
        if place.is_some() || was.is_some() || part_of.is_some() {
            text.push_str(&format!("\n{place:?}\n{was:?}\n{part_of:?}"));
        }
        if let Some(mode) = mode {
            text.push_str(&format!("\n{mode:o}"));
        }
        format!("{:08x}", crc32fast::hash(text.as_bytes()))
    }

    fn parse(text: &[u8]) -> Option<Identity> {
        let identity: Identity = serde_json::from_slice(text).ok()?;
        let is_whole = identity.sum.as_ref().is_none_or(|sum| *sum == identity.summed());
        (is_whole && is_id(&identity.id) && identity.path.starts_with('/')).then_some(identity)
    }

    /// Reads the record in a workspace's directory; `None` if it is lost, damaged, or of another. A confirmed record
    /// without a checksum is written anew with one.
    fn read(dir: &Path) -> Option<Identity> {
        let mut identity = Identity::parse(&std::fs::read(dir.join("workspace.json")).ok()?)?;
        if dir.file_name()? != identity.id.as_str() || (identity.sum.is_none() && !identity.is_borne_out(dir)) {
            return None;
        }
        if identity.sum.is_none() {
            identity = identity.sealed();
            if let Err(error) = identity.write(dir) {
                tracing::warn!(%error, "could not compute the checksum of a workspace's record");
            }
        }
        Some(identity)
    }

    /// Returns true if the named directory is the one for which the record was written: by its inode, or by the view of
    /// an ordinary git. The device is not compared, for its number may change at each start. A record that a person
    /// wrote has no inode.
    fn is_borne_out(&self, dir: &Path) -> bool {
        let Some(path) = self.path() else { return false };
        let facts = std::fs::metadata(&path).ok().filter(Metadata::is_dir);
        let stands = |facts: Metadata| self.ino == 0 || facts.ino() == self.ino;
        facts.is_some_and(stands) || (self.ino != 0 && is_of(dir, &path))
    }

    fn path(&self) -> Option<PathBuf> {
        match &self.path_quoted {
            Some(quoted) => unquoted(quoted),
            None => Some(PathBuf::from(&self.path)),
        }
    }

    /// Writes the record into a workspace's directory.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(unwritable)?;
        replace_file(&dir.join("workspace.json"), &text)
    }

    /// Returns the workspace whose records stand in `dir`.
    pub(crate) fn workspace(self, dir: PathBuf) -> Option<Workspace> {
        let path = self.path()?;
        let scope = scope_of(&path);
        let was = self.was.as_deref().and_then(unquoted);
        let Identity { id, since, place, mode, part_of, .. } = self;
        Some(Workspace { id, path, scope, since, dir, place, mode, was, part_of })
    }
}

/// Returns the permission bits of a directory.
pub(crate) fn permissions(facts: &Metadata) -> u32 {
    facts.mode() & 0o7777
}

fn quoted(path: &Path) -> String {
    crate::model::meta::quote(path.as_os_str().as_bytes())
}

fn unquoted(text: &str) -> Option<PathBuf> {
    let bytes = crate::model::meta::unquote(text).ok()?; // a record that is no path is passed over
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Writes a changed record and its second copy, and returns the workspace. The caller holds the lock of adding workspaces.
fn rewrite(
    home: &Home,
    dir: &Path,
    _lock: &AddingLock,
    change: impl FnOnce(Identity) -> Identity,
) -> Result<Workspace> {
    let unreadable = || Error::new(Code::StoreDamaged, "a workspace's record cannot be read").path(dir);
    let identity = change(Identity::read(dir).ok_or_else(unreadable)?).sealed();
    identity.write(dir)?;
    keep(home, dir)?;
    identity.workspace(dir.to_owned()).ok_or_else(unreadable)
}

/// Records the place and the permissions of a workspace's directory again: it was made again, they changed, or none were recorded.
///
/// # Errors
/// `disk-full`, `permission`, `store-locked`.
pub(crate) fn renew(home: &Home, workspace: &Workspace, facts: &Metadata, lock: &AddingLock) -> Result<Workspace> {
    rewrite(home, &workspace.dir, lock, |old| old.at(&workspace.path, Some(facts)))
}

/// Gives a history to another directory, or to the one before if that is gone by now (`facts` are `None`). Other processes
/// that have the workspace open learn of it when they take its lock.
///
/// # Errors
/// `disk-full`, `permission`, `store-locked`.
pub(crate) fn adopt(
    home: &Home,
    workspace: &Workspace,
    (path, facts): (&Path, Option<&Metadata>),
    lock: &AddingLock,
) -> Result<Workspace> {
    let _lock = WorkspaceLock::acquire(&workspace.dir, "adopting", LOCK_WAIT)?;
    rewrite(home, &workspace.dir, lock, |old| {
        Identity { was: Some(quoted(&workspace.path)), part_of: None, ..old }.at(path, facts)
    })
}

/// Makes a directory a part of the workspace with the id `above`, or a workspace of its own again.
///
/// # Errors
/// `disk-full`, `permission`, `store-locked`.
pub(crate) fn join(home: &Home, workspace: &Workspace, above: Option<String>, lock: &AddingLock) -> Result<Workspace> {
    let _lock = WorkspaceLock::acquire(&workspace.dir, "joining", LOCK_WAIT)?;
    rewrite(home, &workspace.dir, lock, |old| Identity { part_of: above, ..old })
}

/// Refuses to work on for a directory whose history belongs to another one by now, or is gone. A record that cannot be
/// read says nothing.
///
/// # Errors
/// `workspace-gone`.
pub(crate) fn refuse_adopted(workspace: &Workspace) -> Result<()> {
    let gone = |text: &str| Error::new(Code::WorkspaceGone, text).hint("open the workspace again");
    let identity = match std::fs::read(workspace.dir.join("workspace.json")) {
        Ok(text) => Identity::parse(&text),
        Err(_) if !workspace.dir.exists() => return Err(gone("the history of this directory was cleared")),
        Err(_) => None,
    };
    match identity.and_then(|identity| identity.path()).filter(|path| *path != workspace.path) {
        None => Ok(()),
        Some(now) => Err(gone("the history of this directory was moved to another one").path(&now)),
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(Code::Internal, "writing a workspace record").caused_by(error)
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn index_file(home: &Home) -> PathBuf {
    home.path().join("workspaces.index")
}

/// Returns the whole lines of the index, by id.
fn index(home: &Home) -> BTreeMap<String, Identity> {
    let bytes = std::fs::read(index_file(home)).unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(Identity::parse);
    lines.filter(|line| line.sum.is_some()).map(|line| (line.id.clone(), line)).collect()
}

/// Returns the names of the directories of records.
fn listed(home: &Home) -> Result<Vec<PathBuf>> {
    let dir = home.workspaces();
    let listing = match std::fs::read_dir(&dir) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(error, "listing", &dir)),
    };
    let mut dirs =
        listing.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().at("listing", &dir)?;
    dirs.sort();
    Ok(dirs)
}

/// Returns every record with its directory. Lost ones are written anew if the index has them. Missing directories are
/// noticed if nothing else is known, or if the look is `thorough`.
///
/// # Errors
/// When the directory of workspaces cannot be listed.
pub(crate) fn all(home: &Home, thorough: bool) -> Result<Vec<(PathBuf, Identity)>> {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    for dir in listed(home)? {
        match Identity::read(&dir) {
            Some(identity) => found.push((dir, identity)),
            None => lost.push(dir),
        }
    }
    if lost.is_empty() && !found.is_empty() && !thorough {
        return Ok(found);
    }
    let index = index(home);
    // The directory of records may be gone while the history still exists.
    let known: BTreeSet<PathBuf> = found.iter().map(|(dir, _)| dir.clone()).chain(lost.iter().cloned()).collect();
    let gone = index.keys().map(|id| home.workspaces().join(id)).filter(|dir| !known.contains(dir));
    for dir in lost.into_iter().chain(gone.collect::<Vec<_>>()) {
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(identity) = index.get(&id) else {
            tracing::warn!(dir = %dir.display(), "a workspace record cannot be read");
            continue;
        };
        tracing::warn!(dir = %dir.display(), path = identity.path, "a workspace's record was lost; piton wrote it again");
        let written = create_private_dir(&dir).and_then(|()| identity.write(&dir));
        if let Err(error) = written {
            tracing::warn!(%error, "the record could not be written");
        }
        found.push((dir, identity.clone()));
    }
    Ok(found)
}

/// Adds a workspace with a whole record to the index.
///
/// # Errors
/// `disk-full`, `permission`.
pub(crate) fn keep(home: &Home, dir: &Path) -> Result<()> {
    let Some(identity) = Identity::read(dir) else { return Ok(()) };
    let mut lines = index(home);
    if lines.get(&identity.id) == Some(&identity) {
        return Ok(());
    }
    lines.insert(identity.id.clone(), identity);
    write_index(home, &lines)
}

/// Takes a workspace out of the index. Its record goes next, or it would be added again.
///
/// # Errors
/// `disk-full`, `permission`.
pub(crate) fn forget(home: &Home, id: &str) -> Result<()> {
    let mut lines = index(home);
    if lines.remove(id).is_none() {
        return Ok(());
    }
    write_index(home, &lines)
}

fn write_index(home: &Home, lines: &BTreeMap<String, Identity>) -> Result<()> {
    let mut text = Vec::new();
    for line in lines.values() {
        text.extend(serde_json::to_vec(line).map_err(unwritable)?);
        text.push(b'\n');
    }
    replace_file(&index_file(home), &text)
}

/// Returns the ids of histories without a record, from directories and from refs.
///
/// # Errors
/// When they cannot be listed.
pub(crate) fn unowned(home: &Home) -> Result<Vec<String>> {
    let owned: BTreeSet<String> = all(home, true)?.into_iter().map(|(_, identity)| identity.id).collect();
    let mut ids = BTreeSet::new();
    if home.path().join("store.git").is_dir() {
        for entry in Store::open(home.path())?.refs("refs/")? {
            let mut parts = entry.name.split('/').skip(1);
            let is_own = matches!(parts.next(), Some("piton" | "heads"));
            ids.extend(parts.next().filter(|id| is_own && is_id(id)).map(str::to_owned));
        }
    }
    let dirs = listed(home)?.into_iter().filter_map(|dir| Some(dir.file_name()?.to_str()?.to_owned()));
    ids.extend(dirs.filter(|id| is_id(id)));
    Ok(ids.into_iter().filter(|id| !owned.contains(id)).collect())
}

/// Returns true if the view of an ordinary git in a workspace's directory of records names `path` as its work tree.
pub(crate) fn is_of(dir: &Path, path: &Path) -> bool {
    let mut line = b"\tworktree = ".to_vec();
    line.extend(crate::git::config_value(path.as_os_str()));
    let config = std::fs::read(dir.join("view.git/config")).unwrap_or_default();
    config.split(|byte| *byte == b'\n').any(|known| known == line)
}

/// Notes that a history went with its directory.
pub(crate) fn tell_moved(home: &Home, from: &Path, to: &Path) {
    note(home, &format!("the directory {} was renamed to {}; its history moved with it", from.display(), to.display()));
}

/// Notes that a directory began a new history, and may be one that has a history already.
pub(crate) fn tell_unproved(home: &Home, from: &Path, to: &Path) {
    let words = [from, to].map(|path| shell_word(&path.to_string_lossy())).join(" ");
    let to = to.display();
    note(
        home,
        &format!(
            "{to} seems to be the former {}; to give it that history, run `piton store adopt {words}`",
            from.display()
        ),
    );
}

fn note(home: &Home, text: &str) {
    if let Err(error) = mishaps::note(home, text) {
        tracing::warn!(%error, text);
    }
}

/// Notes as a mishap that a workspace was taken for a new one although there are histories without an owner.
pub(crate) fn tell(home: &Home, path: &Path, unowned: &[String]) {
    let have = if unowned.len() == 1 { "a history has" } else { "histories have" };
    let text = format!(
        "{} is a workspace without a history, and {have} no owner ({}): `piton doctor` says how to give one to a workspace",
        path.display(),
        unowned.join(", ")
    );
    tracing::warn!("{text}");
    if let Err(error) = mishaps::note(home, &text) {
        tracing::warn!(%error, "could not record this");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_again_from_its_second_copy() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let project = scratch.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let first = Workspace::open(&home, &project).unwrap();
        let (record, index) = (first.dir.join("workspace.json"), index_file(&home));
        let (whole, copy) = (std::fs::read(&record).unwrap(), std::fs::read(&index).unwrap());
        for bit in 0..whole.len() * 8 {
            let mut wrong = whole.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&record, &wrong).unwrap();
            assert_eq!(Workspace::open(&home, &project).unwrap(), first, "bit {bit}");
        }
        std::fs::write(&record, &whole).unwrap();
        for bit in (0..copy.len() * 8).step_by(7) {
            let mut wrong = copy.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&index, &wrong).unwrap();
            assert_eq!(Workspace::open(&home, &project).unwrap(), first, "bit {bit} of the copy");
            assert_eq!(std::fs::read(&index).unwrap(), copy);
        }
        std::fs::remove_dir_all(&first.dir).unwrap();
        assert_eq!(Workspace::open(&home, &project).unwrap(), first);
        assert_eq!(std::fs::read(&record).unwrap(), whole);
    }

    #[test]
    fn a_record_without_a_checksum_counts_if_it_is_borne_out_and_gets_one() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let (project, other) = (scratch.path().join("project"), scratch.path().join("projecu"));
        std::fs::create_dir(&project).unwrap();
        std::fs::create_dir(&other).unwrap();
        let first = Workspace::open(&home, &project).unwrap();
        let record = first.dir.join("workspace.json");
        let whole = std::fs::read_to_string(&record).unwrap();
        let line = whole.lines().find(|line| line.contains("\"sum\"")).unwrap();
        let older = whole.replace(line, "").replace(",\n\n", "\n");
        let renamed = older.replace("project\"", "projecu\"");
        assert!(serde_json::from_str::<Identity>(&older).is_ok_and(|older| older.sum.is_none()) && renamed != older);
        let known = |text: &str| {
            std::fs::write(&record, text).unwrap();
            Workspace::known(&home).unwrap()
        };
        let index = std::fs::read(index_file(&home)).unwrap();
        for has_index in [true, false] {
            if has_index {
                std::fs::write(index_file(&home), &index).unwrap();
            } else {
                std::fs::remove_file(index_file(&home)).unwrap();
            }
            assert_eq!(known(&older), std::slice::from_ref(&first));
            assert_eq!(std::fs::read_to_string(&record).unwrap(), whole, "it has a checksum now");
            // The second copy decides; without one the right answer is not known.
            assert_eq!(known(&renamed), if has_index { vec![first.clone()] } else { vec![] });
            if has_index {
                assert_eq!(std::fs::read_to_string(&record).unwrap(), whole);
            }
        }
        // A directory that was made anew has another inode: the view of an ordinary git confirms it.
        std::fs::rename(&project, scratch.path().join("old")).unwrap();
        std::fs::create_dir(&project).unwrap();
        assert_eq!(known(&older), []);
        std::fs::create_dir(first.dir.join("view.git")).unwrap();
        let config = [b"\tworktree = ", crate::git::config_value(first.path.as_os_str()).as_slice(), b"\n"].concat();
        std::fs::write(first.dir.join("view.git/config"), config).unwrap();
        assert_eq!(known(&older), [first]);
    }

    #[test]
    fn a_history_without_an_owner_is_said_and_can_be_given_to_one() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let project = scratch.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        let first = Workspace::open(&home, &project).unwrap();
        std::fs::remove_file(first.dir.join("workspace.json")).unwrap();
        std::fs::remove_file(index_file(&home)).unwrap();
        let second = Workspace::open(&home, &project).unwrap();
        assert_ne!(second.id, first.id);
        assert!(mishaps::newest(&home).iter().any(|line| line.contains(&first.id)), "{:?}", mishaps::newest(&home));
        let text = format!("{{\"id\":\"{}\",\"path\":{:?}}}", first.id, project.to_str().unwrap());
        std::fs::write(first.dir.join("workspace.json"), text).unwrap();
        assert_eq!(Workspace::open(&home, &project).unwrap().id, first.id, "the older one counts");
    }
}
