//! The file systems under paths: their kinds, on some of which the kernel does not see every change, and where they are
//! mounted.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{IoContext, Result};

/// File systems whose files can change without this kernel, or that report changes unreliably.
const FOREIGN: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x6573_5546, "fuse"), // sshfs and the like; virtiofs too
    (0x0102_1997, "9p"),   // WSL's /mnt/c, many sandboxes
    (0x00C3_6400, "ceph"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "kafs"),
    (0x7375_7245, "coda"),
    (0x564C, "ncp"),
    (0x0BD0_0BD0, "lustre"),
    (0x0BD0_0BD3, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636F, "ocfs2"),
    (0x19AC_0202, "hmdfs"),
    (0x786F_4256, "vboxsf"),
    (0xBACB_ACBC, "vmhgfs"),
    (0x0000_9FA0, "proc"),
    (0x6265_6572, "sysfs"),
];

/// Returns the name of the file system under `path`, if it is one whose changes this kernel does not all see.
///
/// # Errors
/// When it cannot be asked.
pub fn foreign(path: &Path) -> Result<Option<&'static str>> {
    let kind = kind(path)?;
    Ok(FOREIGN.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers have 32 bits")]
fn kind(path: &Path) -> Result<u32> {
    Ok(rustix::fs::statfs(path).at("reading the file system of", path)?.f_type as u32)
}

/// The table of mounts.
const TABLE: &str = "/proc/self/mountinfo";

/// Kinds whose servers may never answer. A look at a directory of theirs could wait for ever.
const REMOTE: &[&str] =
    &["autofs", "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "afs", "coda", "lustre", "gpfs", "fuse.sshfs"];

/// Kinds whose directories are those of another machine, or of a program. Their inodes prove nothing.
const BORROWED: &[&str] = &["9p", "virtiofs", "vboxsf", "hmdfs", "fuseblk"];

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The directory that it is mounted on.
    pub point: PathBuf,
    /// The name of its kind, such as `ext4`.
    pub kind: String,
    /// The kernel's id of the mount.
    number: u32,
    /// Checksum of its source and options.
    made_of: u32,
}

impl Mount {
    /// Returns true if a look at one of its directories could wait for ever.
    pub fn is_remote(&self) -> bool {
        REMOTE.contains(&self.kind.as_str())
    }

    /// Returns true if device and inode of a directory are a proof there.
    pub fn has_sure_inodes(&self) -> bool {
        !self.is_remote() && !BORROWED.contains(&self.kind.as_str()) && !self.kind.starts_with("fuse.")
    }

    /// Returns a text by which the file system is known again after a restart. It asks the file system.
    ///
    /// The number of a container's root is often that of its host, so its layers tell which one it is.
    pub fn volume(&self) -> String {
        let number = match self.kind.as_str() {
            "overlay" | "aufs" => Some(u64::from(self.made_of)),
            // Without a number, the device alone has to tell.
            _ => rustix::fs::statvfs(&self.point).ok().map(|facts| facts.f_fsid),
        };
        number.map_or_else(String::new, |number| format!("{} {number:x}", self.kind))
    }
}

/// The mounts that this process sees.
#[derive(Clone, Debug, Default)]
pub struct MountTable(HashMap<PathBuf, Mount>);

impl MountTable {
    /// Reads the table.
    ///
    /// # Errors
    /// When the system has none.
    pub fn read() -> Result<MountTable> {
        Ok(MountTable::parse(&std::fs::read(TABLE).at("reading", Path::new(TABLE))?))
    }

    fn parse(text: &[u8]) -> MountTable {
        let lines = text.split(|byte| *byte == b'\n').filter_map(mount);
        // A later mount on the same directory hides the earlier one.
        MountTable(lines.map(|mount| (mount.point.clone(), mount)).collect())
    }

    /// Returns the mount that a path lies on.
    pub fn under(&self, path: &Path) -> Option<&Mount> {
        path.ancestors().find_map(|dir| self.0.get(dir))
    }

    /// Returns true if something is mounted on exactly this directory.
    pub fn has(&self, point: &Path) -> bool {
        self.0.contains_key(point)
    }
}

/// Watches the mounts below a directory. `poll` on an open table of mounts reports that the table changed (`proc(5)`).
#[derive(Debug)]
pub struct MountsBelow {
    root: PathBuf,
    table: File,
    known: HashMap<PathBuf, Mount>,
}

impl MountsBelow {
    /// Starts with the present mounts.
    ///
    /// # Errors
    /// When the system has no table of mounts.
    pub fn new(root: &Path) -> Result<MountsBelow> {
        let table = File::open(TABLE).at("opening", Path::new(TABLE))?;
        let mut mounts = MountsBelow { root: root.to_owned(), table, known: HashMap::new() };
        mounts.known = mounts.read()?;
        Ok(mounts)
    }

    /// Returns true if a file system was mounted or unmounted below the directory since the last call.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub fn have_changed(&mut self) -> Result<bool> {
        let mut asked = [PollFd::new(&self.table, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&at_once)).at("subscribing to changes of", Path::new(TABLE))?;
        if !asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR) {
            return Ok(false);
        }
        let now = self.read()?;
        let has_changed = now != self.known;
        self.known = now;
        Ok(has_changed)
    }

    /// Reads the mounts below the directory.
    fn read(&mut self) -> Result<HashMap<PathBuf, Mount>> {
        let mut text = Vec::new();
        self.table.rewind().and_then(|()| self.table.read_to_end(&mut text)).at("reading", Path::new(TABLE))?;
        let MountTable(mut mounts) = MountTable::parse(&text);
        mounts.retain(|point, _| *point != self.root && point.starts_with(&self.root));
        Ok(mounts)
    }
}

/// Reads a line of the table: `id parent device root POINT options optional… - KIND SOURCE OPTIONS`.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let number = std::str::from_utf8(words.next()?).ok()?.parse().ok()?; // a line without one describes no mount
    let point = PathBuf::from(OsStr::from_bytes(&unescaped(words.nth(3)?)));
    let kind = String::from_utf8_lossy(words.by_ref().skip_while(|word| *word != b"-").nth(1)?).into_owned();
    let made_of = crc32fast::hash(&words.collect::<Vec<_>>().join(&b' '));
    Some(Mount { point, kind, number, made_of })
}

/// Returns a word of the table without its escapes: `\040` is a space.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut plain, mut at) = (Vec::new(), 0);
    while let Some(byte) = word.get(at) {
        let digits = word.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let escaped = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 4 } else { 1 };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_is_read() {
        let text = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
            30 27 0:9 / /mnt/a\\040b rw shared:1 master:2 - nfs4 host:/x rw,addr=1\n\
            31 27 0:8 / /c rw - overlay overlay rw,upperdir=/1\nbroken\n";
        let table = MountTable::parse(text);
        let kind = |path: &str| table.under(Path::new(path)).unwrap().kind.clone();
        assert_eq!(
            (kind("/mnt/a b/c/d"), kind("/mnt/ab"), kind("/c")),
            ("nfs4".into(), "ext4".into(), "overlay".into())
        );
        assert!(table.has(Path::new("/mnt/a b")) && !table.has(Path::new("/mnt")));
        let remote = table.under(Path::new("/mnt/a b")).unwrap();
        assert!(remote.is_remote() && !remote.has_sure_inodes());
        let layers = |text: &str| table_of(text).under(Path::new("/")).unwrap().volume();
        let (one, other) =
            ("27 1 0:9 / / rw - overlay o rw,upperdir=/1\n", "27 1 0:9 / / rw - overlay o rw,upperdir=/2\n");
        assert!(layers(one) == layers(one) && layers(one) != layers(other));
        let here = MountTable::read().unwrap();
        assert_eq!(here.under(Path::new("/none/at/all")).unwrap().point, Path::new("/"));
    }

    fn table_of(text: &str) -> MountTable {
        MountTable::parse(text.as_bytes())
    }

    #[test]
    fn file_systems_are_told_apart() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(foreign(temp.path()).unwrap(), None);
        assert_eq!(foreign(Path::new("/proc")).unwrap(), Some("proc"));
        assert!(foreign(&temp.path().join("none")).is_err());
    }
}
