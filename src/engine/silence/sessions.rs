//! The files in which clients keep their sessions, read as far as the judge needs: their ends alone, and few of them.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::agents::Client;
use crate::agents::trail::{Trace, TrailLevel, directory, may_tell};

/// The most directories of one level that are looked at, the newest first.
const MOST_DIRS: usize = 128;

/// The most entries of a directory that are looked at.
const MOST_ENTRIES: usize = 4096;

/// The most directories that are listed for one client.
const MOST_LISTED: usize = 256;

/// The most sessions of one client that are read, the newest first.
const MOST_FILES: usize = 16;

/// The part of a session that is read, from its end.
const TAIL: u64 = 256 << 10;

/// The part of a session that is read for the directory of its client.
const HEAD: u64 = 32 << 10;

/// The file in which Gemini CLI notes the directory of a project's sessions, beside their own directory.
const ROOT_FILE: &str = ".project_root";

/// The workspace whose sessions are looked for.
pub(super) struct Place<'p> {
    /// The home directory of the user.
    pub(super) home: &'p Path,
    /// The root of the workspace.
    pub(super) root: &'p Path,
    /// Tells whether a directory belongs to the workspace.
    pub(super) belongs: &'p dyn Fn(&Path) -> bool,
    /// A variable of the environment.
    pub(super) variable: &'p dyn Fn(&str) -> Option<PathBuf>,
}

impl Place<'_> {
    /// Returns the acts of a client after a time, of which its sessions in this workspace tell.
    pub(super) fn acts(&self, client: Client, after: i64) -> Vec<i64> {
        let mut files = Vec::new();
        for trace in client.traces() {
            if let Trace::Sessions(spot, levels) = trace {
                let mut search = Search { root: self.root.to_string_lossy(), after, listed: 0, found: Vec::new() };
                search.below(&spot.below(self.home, self.variable), levels, false);
                files.extend(search.found);
            }
        }
        files.sort_by_key(|file| std::cmp::Reverse(file.written));
        files.iter().take(MOST_FILES).flat_map(|file| self.acts_in(client, file, after)).collect()
    }

    fn acts_in(&self, client: Client, file: &SessionFile, after: i64) -> Vec<i64> {
        let Some(tail) = read_part(&file.path, TAIL, true) else { return Vec::new() };
        let is_here = |dir: Option<PathBuf>| dir.map(|dir| (self.belongs)(&dir));
        let mut is_own = None;
        let mut acts = Vec::new();
        for line in tail.split(|byte| *byte == b'\n').filter(|line| may_tell(line)) {
            let told = client.acts(line);
            if told.iter().all(|at| *at <= after) {
                continue;
            }
            // A client may have changed into another project within its session.
            let here = is_here(directory(line)).or_else(|| {
                *is_own.get_or_insert_with(|| is_here(first_directory(&file.path)).or(file.is_exact.then_some(true)))
            });
            if here == Some(true) {
                acts.extend(told.into_iter().filter(|at| *at > after));
            }
        }
        acts
    }

    /// Returns the last growth of a client's files that tell no more than that. Those for all projects count if `is_alone`.
    pub(super) fn grown(&self, client: Client, is_alone: bool) -> Option<i64> {
        let file = |trace: &Trace| match trace {
            Trace::UserFile(spot) => is_alone.then(|| spot.below(self.home, self.variable)),
            Trace::ProjectFile(spot) => Some(spot.below(self.root, |_| None)),
            Trace::Sessions(..) => None,
        };
        let files = client.traces().iter().filter_map(file);
        files.filter_map(|file| Some(written(&file.symlink_metadata().ok()?))).max()
    }
}

/// A file of a session.
struct SessionFile {
    path: PathBuf,
    /// The time of the last write.
    written: i64,
    /// True if its directory has the very name of the workspace's root.
    is_exact: bool,
}

/// A search for the files of sessions.
struct Search<'r> {
    root: std::borrow::Cow<'r, str>,
    /// The time after which a file must have been written.
    after: i64,
    /// The directories that were listed so far.
    listed: usize,
    found: Vec<SessionFile>,
}

impl Search<'_> {
    fn below(&mut self, dir: &Path, levels: &[TrailLevel], is_exact: bool) {
        let Some((level, rest)) = levels.split_first() else { return };
        match level {
            TrailLevel::Named(name) => self.below(&dir.join(name), rest, is_exact),
            TrailLevel::Any => {
                for (path, _) in self.newest(dir, &|_, facts| facts.is_dir()) {
                    self.below(&path, rest, is_exact);
                }
            }
            TrailLevel::Project(rule) => {
                let name = rule(&self.root);
                for (path, found) in self.newest(dir, &|found, facts| facts.is_dir() && found.starts_with(&name)) {
                    let is_exact = found.trim_end_matches('-') == name.trim_end_matches('-');
                    self.below(&path, rest, is_exact);
                }
            }
            TrailLevel::Files(ending) => {
                let after = self.after;
                let is_new =
                    |name: &str, facts: &Metadata| name.ends_with(ending) && facts.is_file() && written(facts) > after;
                for (path, _) in self.newest(dir, &is_new) {
                    let Ok(facts) = path.symlink_metadata() else { continue };
                    self.found.push(SessionFile { path, written: written(&facts), is_exact });
                }
            }
        }
    }

    /// Lists the wanted entries of a directory with their names, the newest first.
    fn newest(&mut self, dir: &Path, is_wanted: &dyn Fn(&str, &Metadata) -> bool) -> Vec<(PathBuf, String)> {
        if self.listed >= MOST_LISTED {
            return Vec::new();
        }
        self.listed += 1;
        let mut found: Vec<(i64, PathBuf, String)> = Vec::new();
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_ENTRIES) {
            let (name, Ok(facts)) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()) else {
                continue;
            };
            if is_wanted(&name, &facts) {
                found.push((written(&facts), entry.path(), name));
            }
        }
        found.sort_by(|one, other| other.cmp(one));
        found.into_iter().take(MOST_DIRS).map(|(_, path, name)| (path, name)).collect()
    }
}

/// Returns the time of the last write, in milliseconds since the epoch.
pub(super) fn written(facts: &Metadata) -> i64 {
    facts.mtime().saturating_mul(1000).saturating_add(facts.mtime_nsec() / 1_000_000)
}

/// Returns the directory that a session begins in: by one of its first lines, or by a file beside its own directory.
fn first_directory(session: &Path) -> Option<PathBuf> {
    let head = read_part(session, HEAD, false)?;
    let told = head.split(|byte| *byte == b'\n').find_map(directory);
    told.or_else(|| {
        let noted = std::fs::read_to_string(session.parent()?.parent()?.join(ROOT_FILE)).ok()?;
        Some(PathBuf::from(noted.trim())).filter(|dir| dir.is_absolute())
    })
}

/// Reads the first or the last part of a file; a line that is cut off is no JSON.
fn read_part(path: &Path, length: u64, is_end: bool) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    if is_end && size > length {
        file.seek(SeekFrom::Start(size - length)).ok()?;
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
