//! Objects of a repository of the user: the ones that a command of git leaves without a name are kept in a pack, and come back with it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::missing;
use super::user_repository::{TemporaryIndex, UserRepository};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::durable::{create_private_dir, unique_suffix};

/// The size of a pack's header, which ends with the number of objects. Source: gitformat-pack(5).
const HEADER: usize = 12;

/// The mode of a submodule in an index.
const SUBMODULE: &str = "160000";

/// Returns the ids of the contents that entries of an index name, in the form of [`UserRepository::index_entries`]. Those of submodules
/// are in other repositories.
pub fn contents(entries: &[u8]) -> Vec<String> {
    // `MODE ID STAGE<tab>PATH`: all before the path is text.
    let id = |entry: &[u8]| {
        let head = entry.split(|byte| *byte == b'\t').next()?;
        let mut words = std::str::from_utf8(head).ok()?.split(' ');
        words.next().filter(|mode| *mode != SUBMODULE).and(words.next()).map(str::to_owned)
    };
    entries.split(|byte| *byte == 0).filter_map(id).collect()
}

/// Returns the lines by which git passes over what commits lead to.
fn passed_over(named: &[String]) -> String {
    named.iter().map(|id| format!("^{id}\n")).collect()
}

/// A directory of objects beside those of a repository, for as long as a plan is made.
#[derive(Debug)]
pub struct ObjectsAside(PathBuf);

impl ObjectsAside {
    /// Makes it, empty, with the temporary files.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn new() -> Result<ObjectsAside> {
        let dir = std::env::temp_dir().join(format!("piton-objects-{}", unique_suffix()));
        create_private_dir(&dir)?;
        Ok(ObjectsAside(dir))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ObjectsAside {
    fn drop(&mut self) {
        // One that stays is removed with the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl UserRepository {
    /// Returns a pack of some objects and all that they lead to, without what the commits of `named` lead to; `None` where nothing is
    /// left. Objects that are gone count for nothing.
    ///
    /// # Errors
    /// `too-large` for a pack of more than `most` bytes; `conflict` with git's own words.
    pub fn pack_of(&self, ids: &[String], named: &[String], most: u64) -> Result<Option<Vec<u8>>> {
        let gone = self.lacking(ids)?;
        let roots: String = ids.iter().filter(|id| !gone.contains(id)).map(|id| format!("{id}\n")).collect();
        if roots.is_empty() {
            return Ok(None);
        }
        let input = roots + &passed_over(named);
        let mut command = self.command();
        // An object that a partial clone lacks is not fetched for this.
        command.args(["-c", "pack.threads=1", "pack-objects", "--revs", "--stdout", "-q", "--missing=allow-any"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(missing)?;
        let (pipe, printed) = (child.stdin.take(), child.stdout.take());
        let mut pack = Vec::new();
        let read = std::thread::scope(|scope| {
            if let Some(mut pipe) = pipe {
                // A git that ends before it has read everything says so by its exit code.
                scope.spawn(move || drop(pipe.write_all(input.as_bytes())));
            }
            printed.map_or(Ok(0), |printed| printed.take(most + 1).read_to_end(&mut pack))
        });
        let is_over = pack.len() as u64 > most;
        if is_over || read.is_err() {
            // It has ended already where this fails.
            let _ = child.kill();
        }
        let status = child.wait().at("waiting for", "git")?;
        read.at("reading from", "git")?;
        if is_over {
            let text = format!("packed, the objects have more than {most} bytes");
            return Err(Error::new(Code::TooLarge, text).path(&self.common));
        }
        if !status.success() {
            return Err(Error::new(Code::Conflict, "`git pack-objects` failed").path(&self.common));
        }
        let is_empty = pack.get(HEADER - 4..HEADER).is_none_or(|number| number == [0; 4]);
        Ok((!is_empty).then_some(pack))
    }

    /// Returns the contents that an index has staged beside those of a commit, of a repository with that HEAD; all of them where
    /// there is no commit yet.
    ///
    /// # Errors
    /// As [`UserRepository::index_entries`].
    pub fn staged(&self, index: &[u8], head: Option<&str>) -> Result<Vec<String>> {
        let Some(head) = head else { return Ok(contents(&self.index_entries(Some(index))?)) };
        let file = TemporaryIndex::of(index)?;
        let mut command = self.command();
        command.args(["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", head, "--"]);
        let told = self.ask(command.env("GIT_INDEX_FILE", file.path()), None)?;
        let id = |text: &[u8]| {
            // `:MODE MODE ID ID STATUS`, and then a path.
            let mut words = std::str::from_utf8(text.strip_prefix(b":")?).ok()?.split(' ');
            let mode = words.nth(1).filter(|mode| *mode != SUBMODULE);
            let id = mode.and(words.nth(1))?;
            id.bytes().any(|byte| byte != b'0').then(|| id.to_owned())
        };
        Ok(told.split(|byte| *byte == 0).step_by(2).filter_map(id).collect())
    }

    /// Returns the ones of some commits that are not here as a whole: with all that they lead to, and that the commits of `named` do not
    /// lead to.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub fn torn(&self, ids: &[String], named: &[String]) -> Result<Vec<String>> {
        let gone = self.lacking(ids)?;
        let here: Vec<&String> = ids.iter().filter(|id| !gone.contains(id)).collect();
        let passed_over = passed_over(named);
        let is_whole = |ids: &[&String]| {
            let input = ids.iter().map(|id| format!("{id}\n")).collect::<String>() + &passed_over;
            let words = ["rev-list", "--objects", "--quiet", "--ignore-missing", "--stdin"];
            self.ask(self.command().args(words), Some(input.as_bytes())).is_ok()
        };
        if here.is_empty() || is_whole(&here) {
            return Ok(gone);
        }
        let torn = here.into_iter().filter(|id| !is_whole(&[id])).cloned();
        Ok(gone.into_iter().chain(torn).collect())
    }

    /// Writes the objects of a pack.
    ///
    /// # Errors
    /// `conflict` with git's own words.
    pub fn unpack(&self, pack: &[u8]) -> Result<()> {
        self.ask(self.command().args(["unpack-objects", "-q"]), Some(pack)).map(drop)
    }
}
