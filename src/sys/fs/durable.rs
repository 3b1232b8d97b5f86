//! Files that survive a crash: they are written aside, synced and renamed, and the directory is synced.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::aside::Aside;
use crate::error::{IoContext, Result};

/// The umask of this process before [`make_private`], plus one; 0 where it was not called.
static CALLERS_UMASK: AtomicU32 = AtomicU32::new(0);

/// Makes every new file of this process private, whatever the user's umask. Restored files get their modes explicitly.
pub fn make_private() {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // The first call knows the user's.
    let _ = CALLERS_UMASK.compare_exchange(0, before.bits() + 1, Ordering::SeqCst, Ordering::SeqCst);
}

/// Does something under the user's umask: starting a program of the user's, whose files are no business of this process. No
/// other thread may make files meanwhile.
pub fn with_callers_umask<T>(act: impl FnOnce() -> T) -> T {
    let Some(callers) = CALLERS_UMASK.load(Ordering::SeqCst).checked_sub(1) else { return act() };
    let private = rustix::process::umask(rustix::fs::Mode::from_raw_mode(callers));
    let done = act();
    rustix::process::umask(private);
    done
}

static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Returns a name for a temporary file that no other thread or process uses at the same time.
pub fn unique_suffix() -> String {
    format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

/// Creates a private directory (0700) and its missing parents.
///
/// # Errors
/// `permission`, `disk-full`, `internal`.
pub fn create_private_dir(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).at("creating the directory", path)
}

/// Replaces `path` by a private file (0600) with `content`: readers see the old or the new content, never a part.
///
/// # Errors
/// `permission`, `disk-full`, `internal`; the old file is untouched then.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    replace_with_mode(path, content, 0o600)
}

/// As [`replace_file`], with these permission bits, whatever the umask.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_with_mode(path: &Path, content: &[u8], mode: u32) -> Result<()> {
    replace(path, content, mode, true)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

/// Replaces a user's file that is there, described by `facts`, with its mode, owner and other attributes. A file with several names,
/// or one whose attributes a new file cannot have, is written in place: a crash then may leave a part of it.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_kept(path: &Path, content: &[u8], facts: &Metadata) -> Result<()> {
    let mode = facts.permissions().mode() & 0o7777;
    if facts.nlink() == 1 && !has_attributes(path) {
        let mut aside = Aside::file(path)?;
        let there = aside.file.metadata().at("checking", &aside.path)?;
        let is_kept = (there.uid(), there.gid()) == (facts.uid(), facts.gid())
            || fchown(&aside.file, Some(facts.uid()), Some(facts.gid())).is_ok();
        let done = is_kept
            .then(|| write(&mut aside, content, mode, true).and_then(|()| aside.put(path).at("renaming", &aside.path)));
        if !matches!(done, Some(Ok(()))) {
            // No other process uses the temporary file.
            let _ = std::fs::remove_file(&aside.path);
        }
        if let Some(done) = done {
            return done.and_then(|()| sync_dir(path.parent().unwrap_or(Path::new("."))));
        }
    }
    let mut file = OpenOptions::new().write(true).open(path).at("opening", path)?;
    file.write_all(content).and_then(|()| file.set_len(content.len() as u64)).at("writing", path)?;
    file.sync_all().at("syncing", path)
}

/// Returns true for a file with extended attributes or an ACL. Labels that the system gives to each file do not count.
fn has_attributes(path: &Path) -> bool {
    let mut names = vec![0u8; 65536];
    let listed = rustix::fs::listxattr(path, &mut names).unwrap_or(0);
    names[..listed].split(|byte| *byte == 0).any(|name| !name.is_empty() && !name.starts_with(b"security."))
}

/// As [`replace_file`], without waiting for the disk, for files that can be made again. A power cut may leave the old
/// content, the new, or a torn file.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_cache(path: &Path, content: &[u8]) -> Result<()> {
    replace(path, content, 0o600, false)
}

fn replace(path: &Path, content: &[u8], mode: u32, synced: bool) -> Result<()> {
    let mut aside = Aside::file(path)?;
    let written = write(&mut aside, content, mode, synced).and_then(|()| aside.put(path).at("renaming", &aside.path));
    if written.is_err() {
        // No other process uses the temporary file; if it cannot be removed either, the first error is the one to
        // report.
        let _ = std::fs::remove_file(&aside.path);
    }
    written
}

/// Opens a private file to read it and to write in it, with the content that it has. Makes it if it is missing.
///
/// # Errors
/// I/O errors.
pub fn open_private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Opens a private file whose end is written to, whoever else writes there. Makes it if it is missing.
///
/// # Errors
/// I/O errors.
pub fn append_private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn write(Aside { path, file }: &mut Aside, content: &[u8], mode: u32, synced: bool) -> Result<()> {
    let path = path.as_path();
    file.write_all(content).at("writing", path)?;
    // Set explicitly, because the umask limits the mode of a new file.
    if mode != 0o600 {
        file.set_permissions(Permissions::from_mode(mode)).at("setting the mode of", path)?;
    }
    if synced { file.sync_all().at("syncing", path) } else { Ok(()) }
}

/// Makes renames and creations in a directory durable.
///
/// # Errors
/// `internal`, `disk-full`.
pub fn sync_dir(path: &Path) -> Result<()> {
    let dir = File::open(path).at("opening the directory", path)?;
    dir.sync_all().at("syncing the directory", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_leaves_one_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state");
        for content in ["one", "two"] {
            replace_file(&file, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        }
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_users_file_keeps_its_mode_and_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("a"), dir.path().join("b"));
        let facts = || std::fs::metadata(&file).unwrap();
        std::fs::write(&file, "one, and more").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let before = facts().ino();
        replace_kept(&file, b"two", &facts()).unwrap();
        assert_eq!((facts().permissions().mode() & 0o7777, facts().ino() == before), (0o640, false));
        std::fs::hard_link(&file, &other).unwrap();
        replace_kept(&file, b"3", &facts()).unwrap();
        assert_eq!((std::fs::read_to_string(&other).unwrap(), facts().nlink()), ("3".to_owned(), 2));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
