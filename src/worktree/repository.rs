//! Keeps the data of a git repository (`.git`) that an action is about to destroy, and brings it back where it is gone.
//!
//! git never changes a file of its object store in place. So such a file gets a second name, a hard link, which costs no bytes. Where
//! the action may change files in place, and on another file system, it is copied, as all other files are (the kernel lets copies
//! share blocks where the file system can). Copies keep to a budget: references, the index and settings come first, then loose
//! objects, then packs, the newest first. An object beyond the budget is linked all the same, and counts as exposed.
//!
//! *Invariant:* nothing is opened through a symbolic link, and nothing in the repository is changed. A link moves the link count and
//! the ctime of an object file; that is the one exception to "nothing ever writes into a `.git`".

use std::cmp::Reverse;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Stat, linkat, readlinkat};
use rustix::io::Errno;

use super::beneath::{Root, names_in};
use super::stopped::unless_stopped;
use crate::error::{Code, Error, IoContext, Result};
use crate::filter::verdict::TEMPORARY_PREFIX;
use crate::model::coverage::Weight;
use crate::model::path::RelPath;
use crate::sys::fs::durable::{sync_dir, unique_suffix};
use crate::sys::fs::space::DiskSpace;
use crate::sys::interrupt::Interrupt;

/// Most files and directories that are kept of one repository.
const MOST_ENTRIES: usize = 200_000;

/// The way in which files of an object store are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// By a second name, where that is possible.
    Linked,
    /// By a copy: somebody may change them in place.
    Copied,
}

/// The most paths that are named of those that were left out.
const MOST_NAMED: usize = 100;

/// The files that a kept repository lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of files and directories.
    pub count: u64,
    /// Their weight, as far as it is known.
    pub weight: Weight,
    /// The first of them, as paths of the workspace.
    pub paths: Vec<RelPath>,
}

/// The amount that was kept of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files and links.
    pub files: u64,
    /// The bytes of those that were copied.
    pub copied: u64,
    /// The weight of objects that are only linked although the action may change them: copies would be over the budget.
    pub at_risk: Option<Weight>,
    /// The files that were left out; `None` if everything was kept.
    pub left: Option<LeftOut>,
}

impl Kept {
    /// Returns the weight of what an action may destroy for good; `None` if everything is kept.
    pub fn exposed(&self) -> Option<Weight> {
        let left = self.left.as_ref().map(|left| left.weight);
        left.zip(self.at_risk).map(|(one, other)| one.plus(other)).or(left).or(self.at_risk)
    }

    fn leave(&mut self, path: &RelPath, weight: Weight) {
        let left = self.left.get_or_insert_default();
        (left.count, left.weight) = (left.count + 1, left.weight.plus(weight));
        left.paths.extend((left.paths.len() < MOST_NAMED).then(|| path.clone()));
    }
}

struct RepositoryPart {
    path: RelPath,
    stat: Stat,
}

impl RepositoryPart {
    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    /// Sorts what is needed most, and what no remote has, first.
    fn order(&self) -> (u8, Reverse<i64>) {
        let is_packed = self.path.components().any(|name| name == b"pack");
        (u8::from(is_object(&self.path)) + u8::from(is_packed), Reverse(self.stat.st_mtime))
    }
}

/// Returns true for a file that git never changes in place.
fn is_object(path: &RelPath) -> bool {
    let names: Vec<&[u8]> = path.components().collect();
    let is_hex = |name: &[u8]| name.iter().all(u8::is_ascii_hexdigit);
    match names.as_slice() {
        [.., objects, fan, name] if *objects == b"objects" => match *fan {
            b"pack" => name.starts_with(b"pack-") && !name.ends_with(b".keep"),
            fan => fan.len() == 2 && is_hex(fan) && name.len() >= 38 && is_hex(name),
        },
        _ => false,
    }
}

/// Keeps what stands at `path` of a workspace in the directory `to`, which is there and empty, under the name `data`. `how` has the
/// way of its objects, and the most bytes that are copied. Nothing there is an error.
///
/// # Errors
/// `disk-full`, `permission`; errors of reading the directory itself. A file that cannot be read is left out.
pub fn keep(root: &Path, path: &RelPath, to: &Path, how: (Objects, u64), control: Interrupt<'_>) -> Result<Kept> {
    let root = Root::open(root)?;
    let shown = path.under(root.path());
    let stat = root.lstat(path).at("checking", &shown)?;
    let mut entries = vec![RepositoryPart { path: path.clone(), stat }];
    let (mut kept, mut at, mut buffer) = (Kept::default(), 0, Box::<[u8]>::new_uninit_slice(64 << 10).into_vec());
    while at < entries.len() {
        unless_stopped(control)?;
        if entries[at].kind() == FileType::Directory {
            let dir = entries[at].path.clone();
            let found = children(&root, &dir, &mut buffer);
            match found {
                Ok(found) if entries.len() + found.len() <= MOST_ENTRIES => entries.extend(found),
                Ok(_) | Err(_) => kept.leave(&dir, Weight { bytes: 0, is_least: true }),
            }
        }
        at += 1;
    }
    let data = to.join("data");
    let place = |entry: &RepositoryPart| below(&data, path, &entry.path);
    for dir in entries.iter().filter(|entry| entry.kind() == FileType::Directory) {
        let place = place(dir);
        make_dir(&place, dir.mode()).at("keeping a repository", &place)?;
    }
    entries.retain(|entry| entry.kind() != FileType::Directory);
    entries.sort_by_key(RepositoryPart::order);
    for entry in &entries {
        unless_stopped(control)?;
        keep_one(&root, entry, &place(entry), how, &mut kept)?;
    }
    sync_dir(to)?;
    Ok(kept)
}

fn children(
    root: &Root,
    dir: &RelPath,
    buffer: &mut [MaybeUninit<u8>],
) -> std::result::Result<Vec<RepositoryPart>, Errno> {
    let names = names_in(root.open_dir(dir)?.as_fd(), buffer)?;
    let found = names.iter().filter_map(|name| {
        let path = dir.join(name);
        // A name that is gone again is none.
        root.lstat(&path).ok().map(|stat| RepositoryPart { path, stat })
    });
    Ok(found.collect())
}

/// Returns the place of a path of the repository `of` below a directory.
fn below(dir: &Path, of: &RelPath, path: &RelPath) -> PathBuf {
    let mut names = path.components();
    of.components().for_each(|_| _ = names.next());
    names.fold(dir.to_owned(), |dir, name| dir.join(std::ffi::OsStr::from_bytes(name)))
}

fn keep_one(
    root: &Root,
    entry: &RepositoryPart,
    place: &Path,
    (objects, budget): (Objects, u64),
    kept: &mut Kept,
) -> Result<()> {
    let parent = root.open_dir(&entry.path.parent().unwrap_or_default());
    let (Ok(parent), name) = (parent, entry.path.name()) else {
        kept.leave(&entry.path, Weight::whole(entry.size()));
        return Ok(());
    };
    match entry.kind() {
        FileType::Symlink => {
            if let Ok(target) = readlinkat(&parent, name, Vec::new()) {
                symlink(std::ffi::OsStr::from_bytes(target.as_bytes()), place).at("keeping a link", place)?;
                kept.files += 1;
            }
        }
        FileType::RegularFile => {
            let may_link = is_object(&entry.path);
            let link = || may_link && linkat(&parent, name, CWD, place, AtFlags::empty()).is_ok();
            if objects == Objects::Linked && link() {
                kept.files += 1;
                return Ok(());
            }
            if kept.copied.saturating_add(entry.size()) > budget {
                if objects == Objects::Copied && link() {
                    // Better than nothing: most actions only remove it.
                    kept.files += 1;
                    kept.at_risk = Some(kept.at_risk.unwrap_or_default().plus(Weight::whole(entry.size())));
                    return Ok(());
                }
                kept.leave(&entry.path, Weight::whole(entry.size()));
                return Ok(());
            }
            match root.open_file(&entry.path).map(File::from) {
                Ok(mut file) => {
                    if kept.copied == 0 {
                        DiskSpace::at(place.parent().unwrap_or(place))?.require_floor(place)?;
                    }
                    kept.copied += copy(&mut file, place, entry.mode())?;
                    kept.files += 1;
                }
                Err(Errno::NOENT) => {}
                Err(_) => kept.leave(&entry.path, Weight::whole(entry.size())),
            }
        }
        // Sockets and the like are no data.
        _ => {}
    }
    Ok(())
}

/// Makes a directory with a mode, whatever the umask; its owner may always write into it.
fn make_dir(place: &Path, mode: u32) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(place)?;
    std::fs::set_permissions(place, Permissions::from_mode(mode & 0o7777 | 0o700))
}

/// Copies a file, durably, and returns its length.
fn copy(from: &mut File, place: &Path, mode: u32) -> Result<u64> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place).at("keeping", place)?;
    let length = std::io::copy(from, &mut file).at("keeping", place)?;
    file.set_permissions(Permissions::from_mode(mode)).at("keeping", place)?;
    file.sync_data().at("keeping", place)?;
    Ok(length)
}

/// A repository that was brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BroughtBack {
    /// The number of its files.
    pub files: u64,
    /// Files of its object store that do not hold what their names say; as paths in it.
    pub damaged: Vec<RelPath>,
}

/// Brings kept data back to `path` of a workspace, where nothing may stand. `from` is the directory that [`keep`] filled; it stays
/// as it is. `is_whole` tells whether a file of an object store holds what its name says.
///
/// # Errors
/// `conflict` if something stands there, or the directory that contained it no longer exists; `disk-full`, `permission`.
pub fn bring_back(from: &Path, root: &Path, path: &RelPath, is_whole: &dyn Fn(&Path) -> bool) -> Result<BroughtBack> {
    put_in_place(root, path, &|aside| copy_tree(&from.join("data"), aside, is_whole))
}

/// Writes a `.git` file with this content to `path` of a workspace, where nothing may stand.
///
/// # Errors
/// As [`bring_back`].
pub fn write_file(content: &[u8], root: &Path, path: &RelPath) -> Result<BroughtBack> {
    put_in_place(root, path, &|aside| {
        let written = File::create_new(aside).and_then(|mut file| {
            file.write_all(content)?;
            file.set_permissions(Permissions::from_mode(0o644))?;
            file.sync_all()
        });
        written.at("bringing a repository back", aside)?;
        Ok(BroughtBack { files: 1, damaged: Vec::new() })
    })
}

/// Has `make` make something aside, and gives it its name, which nothing may have.
fn put_in_place(root: &Path, path: &RelPath, make: &dyn Fn(&Path) -> Result<BroughtBack>) -> Result<BroughtBack> {
    let open = Root::open(root)?;
    let (place, parent) = (path.under(root), path.parent().unwrap_or_default());
    let refused = |text: &str, hint: &str| Err(Error::new(Code::Conflict, text).path(&place).hint(hint.to_owned()));
    if open.lstat(path).is_ok() {
        return refused("piton never writes into an existing `.git`", "move it away first, then repeat the command");
    }
    if open.open_dir(&parent).is_err() {
        return refused(
            "the directory that contained it no longer exists",
            "restore that directory first, then repeat the command",
        );
    }
    let name = [TEMPORARY_PREFIX, unique_suffix().as_bytes()].concat();
    let aside = parent.join(&name).under(root);
    let back = make(&aside).and_then(|back| {
        sync_dir(&parent.under(root))?;
        std::fs::rename(&aside, &place).at("bringing a repository back", &place)?;
        Ok(back)
    });
    if back.is_err() {
        // The first error is the one to report.
        let _ = std::fs::remove_dir_all(&aside).or_else(|_| std::fs::remove_file(&aside));
    }
    sync_dir(&parent.under(root))?;
    back
}

/// Copies a tree of kept data; files of an object store by a second name, where that is possible.
fn copy_tree(from: &Path, to: &Path, is_whole: &dyn Fn(&Path) -> bool) -> Result<BroughtBack> {
    let (mut pending, mut back) = (vec![PathBuf::new()], BroughtBack::default());
    while let Some(path) = pending.pop() {
        let (source, place) = (from.join(&path), to.join(&path));
        // Joining nothing would add a slash.
        let (source, place) =
            if path.as_os_str().is_empty() { (from.to_owned(), to.to_owned()) } else { (source, place) };
        let facts = source.symlink_metadata().at("reading the saved repository", &source)?;
        if facts.is_dir() {
            make_dir(&place, facts.permissions().mode()).at("bringing a repository back", &place)?;
            for entry in std::fs::read_dir(&source).at("reading the saved repository", &source)? {
                pending.push(path.join(entry.at("reading the saved repository", &source)?.file_name()));
            }
            continue;
        }
        back.files += 1;
        if facts.is_symlink() {
            let target = std::fs::read_link(&source).at("reading the saved repository", &source)?;
            symlink(target, &place).at("bringing a repository back", &place)?;
            continue;
        }
        let object = RelPath::parse(path.as_os_str().as_bytes()).ok().filter(is_object);
        let is_object = object.is_some();
        back.damaged.extend(object.filter(|_| !is_whole(&source)));
        match is_object.then(|| std::fs::hard_link(&source, &place)) {
            Some(Ok(())) => {}
            Some(Err(error)) if error.kind() == ErrorKind::StorageFull => {
                return Err(error).at("bringing a repository back", &place);
            }
            _ => {
                let mut file = File::open(&source).at("reading the saved repository", &source)?;
                copy(&mut file, &place, facts.permissions().mode() & 0o7777)?;
            }
        }
    }
    Ok(back)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::interrupt::Flow;

    #[test]
    fn objects_are_what_git_never_changes() {
        let id = "0123456789abcdef0123456789abcdef012345";
        for (path, expected) in [
            (format!("objects/ab/{id}"), true),
            (format!(".git/modules/x/objects/ab/{id}"), true),
            (".git/objects/pack/pack-1.pack".to_owned(), true),
            (".git/objects/pack/pack-1.idx".to_owned(), true),
            (".git/objects/pack/pack-1.keep".to_owned(), false),
            (".git/objects/info/alternates".to_owned(), false),
            (format!(".git/objects/xy/{id}"), false),
            (".git/objects/ab/short".to_owned(), false),
            (".git/index".to_owned(), false),
        ] {
            assert_eq!(is_object(&RelPath::parse(path.as_bytes()).unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn copies_keep_to_the_budget_and_what_is_needed_most_comes_first() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap().join("work");
        let object = format!("objects/ab/{}", "0".repeat(38));
        for (path, content) in
            [("HEAD", "ref: x\n"), ("refs/heads/main", "1\n"), ("logs/HEAD", "log\n"), (&object, "o")]
        {
            let path = root.join(".git").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        symlink("HEAD", root.join(".git/link")).unwrap();
        std::fs::set_permissions(root.join(".git/HEAD"), Permissions::from_mode(0o640)).unwrap();
        let git = RelPath::parse(b".git").unwrap();
        let kept = |name: &str, budget| {
            let to = scratch.path().join(name);
            std::fs::create_dir(&to).unwrap();
            (keep(&root, &git, &to, (Objects::Linked, budget), &|| Flow::Continue).unwrap(), to)
        };
        let (all, whole) = kept("whole", 1000);
        assert_eq!((all.files, &all.left), (5, &None), "{all:?}");
        let (some, part) = kept("part", 7);
        assert!(some.copied <= 7 && some.left.is_some(), "{some:?}");
        assert!(part.join("data").join(&object).exists(), "a link costs nothing");
        let to = scratch.path().join("risky");
        std::fs::create_dir(&to).unwrap();
        let risky = keep(&root, &git, &to, (Objects::Copied, 0), &|| Flow::Continue).unwrap();
        assert_eq!((risky.files, risky.at_risk), (2, Some(Weight::whole(1))), "an object, and a link: {risky:?}");
        assert!(risky.exposed() > risky.at_risk && to.join("data").join(&object).exists());
        assert_eq!(bring_back(&whole, &root, &git, &|_| true).unwrap_err().code(), Code::Conflict);
        std::fs::remove_dir_all(root.join(".git")).unwrap();
        assert_eq!(bring_back(&whole, &root, &git, &|_| true).unwrap().files, 5);
        assert_eq!(std::fs::read_link(root.join(".git/link")).unwrap(), Path::new("HEAD"));
        let head = root.join(".git/HEAD");
        assert_eq!(
            (std::fs::read(&head).unwrap(), head.metadata().unwrap().permissions().mode() & 0o777),
            (b"ref: x\n".to_vec(), 0o640)
        );
        let nested = RelPath::parse(b"gone/.git").unwrap();
        assert_eq!(bring_back(&whole, &root, &nested, &|_| true).unwrap_err().code(), Code::Conflict);
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 1, "nothing temporary is left");
    }
}
