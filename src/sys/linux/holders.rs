//! The processes that have files open.
//!
//! Limits: processes of other users are skipped without the rights to look at them, and so is a file that is only mapped, whose
//! descriptor was closed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{DirEntry, read, read_dir, read_link};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

/// Device and inode: the identity of a file, whatever its name is.
pub type FileIdentity = (u64, u64);

/// A process that has a file open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHolder {
    /// The file.
    pub file: FileIdentity,
    /// The number of the process.
    pub pid: u32,
    /// Its command line, words separated by blanks; its name where it has none.
    pub command: String,
}

/// The most descriptors that are looked at: a busy machine has tens of thousands.
const MOST_DESCRIPTORS: usize = 200_000;

/// Finds the processes that have one of these files open, each process once for each file. Processes of this very program do not
/// count: they open files to capture them.
pub fn holders(files: &BTreeSet<FileIdentity>) -> Vec<FileHolder> {
    let mut found = Vec::new();
    if files.is_empty() {
        return found;
    }
    // Where it cannot be read, a process of piton's own may be named too: better one too many than none.
    let own = read_link("/proc/self/exe").ok();
    let mut rest = MOST_DESCRIPTORS;
    for (pid, process) in numbered(Path::new("/proc")) {
        let process = process.path();
        let mut seen = BTreeSet::new();
        // The process may have ended, or belong to another user: it is skipped.
        for (_, descriptor) in numbered(&process.join("fd")).take(rest) {
            rest -= 1;
            seen.extend(identity(&descriptor.path()).filter(|file| files.contains(file)));
        }
        if seen.is_empty() || (own.is_some() && read_link(process.join("exe")).ok() == own) {
            continue;
        }
        let command = command(&process);
        found.extend(seen.into_iter().map(|file| FileHolder { file, pid, command: command.clone() }));
    }
    found
}

/// Lists the entries of a directory whose names are numbers; none where it cannot be read.
fn numbered(dir: &Path) -> impl Iterator<Item = (u32, DirEntry)> {
    let entries = read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry)))
}

/// Returns what a descriptor has open. The file system is not asked for fresh facts: a server that is gone would block it.
fn identity(descriptor: &Path) -> Option<FileIdentity> {
    let facts = statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, StatxFlags::INO).ok()?;
    Some((makedev(facts.stx_dev_major, facts.stx_dev_minor), facts.stx_ino))
}

fn command(process: &Path) -> String {
    let line = read(process.join("cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let text = match words.is_empty() {
        true => read(process.join("comm")).unwrap_or_default(),
        false => words.join(&b' '),
    };
    OsStr::from_bytes(text.trim_ascii()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_open_file_names_its_process() {
        let temp = tempfile::tempdir().unwrap();
        let identity = |name: &str| {
            let path = temp.path().join(name);
            std::fs::write(&path, "x").unwrap();
            let facts = path.metadata().unwrap();
            (facts.dev(), facts.ino())
        };
        let files = [identity("held"), identity("free")];
        let mut process = Command::new("sh");
        process.args(["-c", "exec 3<>held; echo ready; read word"]).current_dir(temp.path());
        let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
        let mine = std::fs::File::open(temp.path().join("free")).unwrap();
        let found = holders(&files.into());
        drop(mine);
        drop(process.stdin.take());
        process.wait().unwrap();
        let pid = process.id();
        let command = "sh -c exec 3<>held; echo ready; read word".to_owned();
        assert_eq!(found, [FileHolder { file: files[0], pid, command }]);
        assert_eq!(holders(&BTreeSet::new()), []);
    }
}
