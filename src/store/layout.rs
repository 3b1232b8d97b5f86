//! Making and mending the repository.
//!
//! The files beside objects and refs are derived: configuration, HEAD, epoch. A missing or damaged one is written anew
//! and is never a reason to stop. Only a store of a newer format is refused: its configuration is whole, as its last
//! line proves, and says so.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::inventory::Inventory;
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::aside::Aside;
use crate::sys::fs::durable::{create_private_dir, replace_cache, replace_file, sync_dir};

/// The format that this version writes. It reads all older ones: 1 had no steps and no numbers beside the ordinals, 2 no private layers.
const FORMAT: u32 = 3;

/// The beginning of a configuration's last line; the CRC-32 of the text before it follows.
const SUM: &str = "# piton: sum ";

const HEAD: &str = "ref: refs/heads/local\n";

/// Findings of `git fsck` about the *content* of user files; they say nothing of the store.
pub const FSCK_IGNORED: &[&str] = &[
    "gitmodulesBlob",
    "gitmodulesLarge",
    "gitmodulesMissing",
    "gitmodulesName",
    "gitmodulesParse",
    "gitmodulesPath",
    "gitmodulesSymlink",
    "gitmodulesUpdate",
    "gitmodulesUrl",
    "gitattributesBlob",
    "gitattributesLarge",
    "gitattributesLineLength",
    "gitattributesMissing",
    "gitattributesSymlink",
    "gitignoreSymlink",
    "mailmapSymlink",
    "largePathname",
];

/// Returns the store's whole configuration.
fn config_text() -> String {
    let mut text = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tlogAllRefUpdates = false\n\
         \tfsync = all\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
         [piton]\n\tformat = {FORMAT}\n[fsck]\n"
    );
    for name in FSCK_IGNORED {
        text.push_str(&format!("\t{name} = ignore\n"));
    }
    let sum = crc32fast::hash(text.as_bytes());
    text.push_str(&format!("{SUM}{sum:08x}\n"));
    text
}

/// Returns the format that a configuration states, unless it is damaged. A configuration without a sum is from an older
/// piton, or from a newer one that proves it in another way.
fn format_of(config: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(config).ok()?;
    let body = match text.trim_end().rsplit_once(SUM) {
        Some((body, sum)) => Some(body).filter(|body| sum == format!("{:08x}", crc32fast::hash(body.as_bytes())))?,
        None => text,
    };
    let section = body.split("[piton]").nth(1)?;
    let line = section.lines().map(str::trim).take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "format").then(|| value.trim())
    });
    line?.parse().ok()
}

/// Writes this version's configuration if the file has another one.
///
/// # Errors
/// `store-damaged` for a store that a newer piton made.
fn configure(git_dir: &Path) -> Result<()> {
    let path = git_dir.join("config");
    let wanted = config_text();
    let known = content(&path)?;
    if known.as_deref() == Some(wanted.as_bytes()) {
        return Ok(());
    }
    let format = known.as_deref().and_then(format_of);
    if let Some(format) = format.filter(|format| *format > FORMAT) {
        return Err(Error::new(Code::StoreDamaged, format!("the store has format {format}, which a newer piton made"))
            .path(git_dir)
            .hint("update piton; nothing was changed"));
    }
    if known.is_some() && format.is_none_or(|format| format == FORMAT) {
        tracing::warn!(path = %path.display(), "the store's configuration was changed by another program; piton wrote it again");
    }
    replace_file(&path, wanted.as_bytes())
}

/// Returns the bytes of a small file; `None` if nothing can be read in its place.
fn content(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => Ok(None),
        Err(error) => Err(Error::io(error, "reading", path)),
    }
}

/// Makes sure that the repository exists and is whole enough to open; gives its path.
pub(super) fn prepare(home: &Path, name: &str) -> Result<PathBuf> {
    create_private_dir(home)?;
    let git_dir = home.join(name);
    if git_dir.join("config").symlink_metadata().is_err() && !git_dir.join("objects").is_dir() {
        create(home, &git_dir)?;
    }
    configure(&git_dir)?;
    mend(&git_dir)?;
    Ok(git_dir)
}

/// Builds a new repository aside and renames it, so that no process ever sees a half-made one.
fn create(home: &Path, git_dir: &Path) -> Result<()> {
    let made = Aside::dir(git_dir)?;
    let aside = &made.path;
    for dir in ["objects/pack", "objects/info", "refs/heads", "refs/piton", "info"] {
        create_private_dir(&aside.join(dir))?;
    }
    // All fan-out directories are made now, so that no checkpoint has to wait for one.
    for first in 0..=255u8 {
        create_private_dir(&aside.join(format!("objects/{first:02x}")))?;
    }
    replace_file(&aside.join("config"), config_text().as_bytes())?;
    replace_file(&aside.join("HEAD"), HEAD.as_bytes())?;
    replace_file(&aside.join("description"), b"Checkpoints kept by piton; see `piton list`.\n")?;
    replace_file(&aside.join("piton-epoch"), new_epoch()?.as_bytes())?;
    Inventory::default().save(aside)?;
    match made.put(git_dir) {
        Ok(()) => sync_dir(home),
        Err(_) if git_dir.join("config").exists() => {
            // Another process made it first. This copy is not needed and is empty; if it stays, it does no harm.
            let _ = std::fs::remove_dir_all(aside);
            Ok(())
        }
        Err(error) => Err(Error::io(error, "renaming the new store", aside)),
    }
}

/// Configuration and HEAD of a repository beside the store.
pub(super) fn configure_aside(git_dir: &Path) -> Result<()> {
    replace_cache(&git_dir.join("config"), config_text().as_bytes())?;
    replace_cache(&git_dir.join("HEAD"), HEAD.as_bytes())
}

/// git removes directories that become empty, `refs/heads` among them, and does not take a directory without them for a
/// repository any more.
fn mend(git_dir: &Path) -> Result<()> {
    for dir in ["objects/pack", "objects/info", "refs/heads", "refs/piton", "info"] {
        let path = git_dir.join(dir);
        if !path.is_dir() {
            create_private_dir(&path)?;
        }
    }
    if content(&git_dir.join("HEAD"))?.as_deref() != Some(HEAD.as_bytes()) {
        replace_file(&git_dir.join("HEAD"), HEAD.as_bytes())?;
    }
    let is_epoch = |epoch: Vec<u8>| epoch.len() == 17 && epoch[..16].iter().all(u8::is_ascii_hexdigit);
    if !content(&git_dir.join("piton-epoch"))?.is_some_and(is_epoch) {
        change_epoch(git_dir)?;
    }
    Ok(())
}

/// Gives the store another epoch, so that all knowledge of its content is looked up again.
pub(super) fn change_epoch(git_dir: &Path) -> Result<()> {
    replace_file(&git_dir.join("piton-epoch"), new_epoch()?.as_bytes())
}

fn new_epoch() -> Result<String> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0u8; 8];
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).at("reading", source)?;
    Ok(format!("{:016x}\n", u64::from_le_bytes(bytes)))
}

/// Returns the store's epoch.
pub(super) fn epoch(git_dir: &Path) -> Result<String> {
    let path = git_dir.join("piton-epoch");
    let bytes = std::fs::read(&path).at("reading", &path)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
