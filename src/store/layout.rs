//! Making, mending and opening the repository.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use git2::{ConfigLevel, Repository, RepositoryOpenFlags};

use super::git_error;
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::durable::{create_private_dir, replace_file, sync_dir, unique_suffix};

/// The format this version reads and writes.
const FORMAT: u32 = 1;

/// Configuration for libgit2 alone: it syncs refs only by a key that git itself calls deprecated, aloud, at every run.
const LIBGIT_CONFIG: &str = "piton-libgit.config";

const HEAD: &str = "ref: refs/heads/local\n";

/// Findings of `git fsck` about the *content* of user files; they say nothing of the store.
const FSCK_IGNORED: &[&str] = &[
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

/// The store's whole configuration.
fn config_text() -> String {
    let mut text = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tlogAllRefUpdates = false\n\
         \tfsync = all\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
         [piton]\n\tformat = {FORMAT}\n[fsck]\n"
    );
    for name in FSCK_IGNORED {
        text.push_str(&format!("\t{name} = ignore\n"));
    }
    text
}

/// Makes sure that the repository exists and is whole enough to open; gives its path.
pub fn prepare(home: &Path) -> Result<PathBuf> {
    create_private_dir(home)?;
    let git_dir = home.join("store.git");
    if git_dir.join("config").symlink_metadata().is_err() {
        if git_dir.join("objects").is_dir() {
            // Somebody removed the configuration; the objects are all there.
            replace_file(&git_dir.join("config"), config_text().as_bytes())?;
        } else {
            create(home, &git_dir)?;
        }
    }
    mend(&git_dir)?;
    Ok(git_dir)
}

/// Builds a new repository aside and renames it, so that nobody ever sees a half-made one.
fn create(home: &Path, git_dir: &Path) -> Result<()> {
    let aside = home.join(format!("store.git.tmp-{}", unique_suffix()));
    create_private_dir(&aside)?;
    for dir in ["objects/pack", "objects/info", "refs/heads", "refs/piton", "info"] {
        create_private_dir(&aside.join(dir))?;
    }
    // Now, so that no checkpoint has to wait for one.
    for first in 0..=255u8 {
        create_private_dir(&aside.join(format!("objects/{first:02x}")))?;
    }
    replace_file(&aside.join("config"), config_text().as_bytes())?;
    replace_file(&aside.join("HEAD"), HEAD.as_bytes())?;
    replace_file(&aside.join("description"), b"Checkpoints kept by piton; see `piton list`.\n")?;
    replace_file(&aside.join("piton-epoch"), new_epoch()?.as_bytes())?;
    match std::fs::rename(&aside, git_dir) {
        Ok(()) => sync_dir(home),
        Err(_) if git_dir.join("config").exists() => {
            // Another process made it first; ours is not needed, and holds nothing.
            let _ = std::fs::remove_dir_all(&aside);
            Ok(())
        }
        Err(error) => Err(Error::io(error, "renaming the new store", &aside)),
    }
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
    if !git_dir.join("HEAD").is_file() {
        replace_file(&git_dir.join("HEAD"), HEAD.as_bytes())?;
    }
    if !git_dir.join(LIBGIT_CONFIG).is_file() {
        replace_file(&git_dir.join(LIBGIT_CONFIG), b"[core]\n\tfsyncObjectFiles = true\n")?;
    }
    if !git_dir.join("piton-epoch").is_file() {
        replace_file(&git_dir.join("piton-epoch"), new_epoch()?.as_bytes())?;
    }
    Ok(())
}

fn new_epoch() -> Result<String> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0u8; 8];
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).at("reading", source)?;
    Ok(format!("{:016x}\n", u64::from_le_bytes(bytes)))
}

/// When packs last came or went.
pub fn packs_changed(git_dir: &Path) -> Result<(i64, i64)> {
    let dir = git_dir.join("objects/pack");
    let facts = dir.metadata().at("looking at", &dir)?;
    Ok((facts.mtime(), facts.mtime_nsec()))
}

/// The store's epoch.
pub fn epoch(git_dir: &Path) -> Result<String> {
    let path = git_dir.join("piton-epoch");
    std::fs::read_to_string(&path).map(|text| text.trim().to_owned()).at("reading", &path)
}

/// Opens the repository with nothing but its own configuration.
pub fn open_repository(git_dir: &Path) -> Result<Repository> {
    isolate();
    let flags = RepositoryOpenFlags::BARE | RepositoryOpenFlags::NO_SEARCH;
    let none: [&std::ffi::OsStr; 0] = [];
    let repo = Repository::open_ext(git_dir, flags, none).map_err(|error| {
        Error::new(Code::StoreDamaged, format!("the store is not a repository any more: {}", error.message()))
            .path(git_dir)
            .hint("move it away to start a new one; its objects stay readable with git")
    })?;
    let mut config = git2::Config::new().map_err(git_error)?;
    config.add_file(&git_dir.join("config"), ConfigLevel::Local, true).map_err(|error| {
        Error::new(Code::StoreDamaged, format!("the store's configuration cannot be read: {}", error.message()))
            .path(git_dir.join("config"))
    })?;
    config.add_file(&git_dir.join(LIBGIT_CONFIG), ConfigLevel::App, true).map_err(git_error)?;
    let format = config.get_i32("piton.format").unwrap_or(FORMAT as i32);
    if format > FORMAT as i32 {
        return Err(Error::new(Code::StoreDamaged, format!("the store has format {format}, made by a newer piton"))
            .path(git_dir)
            .hint("update piton; nothing was changed"));
    }
    repo.set_config(&config).map_err(git_error)?;
    Ok(repo)
}

/// Empties libgit2's search paths for user and system configuration, once for the process.
pub(super) fn isolate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for level in [ConfigLevel::System, ConfigLevel::Global, ConfigLevel::XDG, ConfigLevel::ProgramData] {
            #[expect(unsafe_code, reason = "git2 marks process-wide options unsafe")]
            // SAFETY: called once, before this process opens its first repository; no other thread is inside libgit2.
            let set = unsafe { git2::opts::set_search_path(level, "") };
            if let Err(error) = set {
                tracing::warn!(%error, "git configuration outside of the store could not be switched off");
            }
        }
        #[expect(unsafe_code, reason = "git2 marks process-wide options unsafe")]
        // SAFETY: as above.
        let set = unsafe { git2::opts::set_verify_owner_validation(false) };
        if let Err(error) = set {
            tracing::warn!(%error, "the owner check of libgit2 could not be switched off");
        }
    });
}
