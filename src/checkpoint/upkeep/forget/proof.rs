//! The proof that content is gone: everything below piton's home is read, packed objects inflated and deltas resolved.

use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::records::{listed, open};
use crate::checkpoint::catalog::dropped::Ledger;
use crate::checkpoint::records::home::Home;
use crate::error::{IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::sought::{SecretPattern, SecretSearch};
use crate::model::tree;
use crate::store::{Marks, Store};
use crate::sys::progress::{Amount, Progress, Stage};

/// The most places that are told.
const MOST_TOLD: usize = 100;

/// The sign by which something is known that must be gone.
pub(super) enum Trace<'t> {
    /// A secret. Objects and directories that are spared are of other workspaces.
    Secret { pattern: &'t SecretPattern, spared: Option<&'t (Marks, Vec<PathBuf>)> },
    /// Contents, by their ids.
    Contents(&'t HashSet<ObjectId>),
    /// A workspace, by its id, which may be in the spared places.
    Workspace { id: &'t str, spared: &'t [&'t Path] },
}

/// The result of a search through everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgetProof {
    /// The copies of objects that were read.
    pub objects: u64,
    /// The other files that were read.
    pub files: u64,
    /// The bytes that were searched, inflated.
    pub bytes: u64,
    /// The places where it still is, or that could not be read.
    pub left: Vec<String>,
}

/// Counts what is read, and passes it on to a search.
struct Counted<'c> {
    search: Option<SecretSearch<'c>>,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.bytes += piece.len() as u64;
        self.search.as_mut().map_or(Ok(piece.len()), |search| search.write(piece))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Trace<'_> {
    /// Returns true if an object is one that must be gone, or holds what must be gone. Adds the bytes that were read.
    fn is_in_object(
        &self,
        id: &ObjectId,
        kind: ObjectKind,
        content: &mut dyn Read,
        bytes: &mut u64,
    ) -> std::io::Result<bool> {
        let mut whole = Vec::new();
        match self {
            Trace::Contents(ids) => Ok(ids.contains(id)),
            Trace::Workspace { id, .. } => {
                if kind == ObjectKind::Commit {
                    content.read_to_end(&mut whole)?;
                    *bytes += whole.len() as u64;
                }
                let line = format!("\nWorkspace: {id}\n");
                Ok(whole.windows(line.len()).any(|part| part == line.as_bytes()))
            }
            Trace::Secret { pattern, spared } => {
                let is_spared = spared.as_ref().is_some_and(|(marks, _)| marks.contains(id));
                let mut counted = Counted { search: None, bytes: 0 };
                let found = match kind {
                    ObjectKind::Blob => {
                        counted.search = Some(SecretSearch::new(pattern));
                        std::io::copy(content, &mut counted)?;
                        counted.search.is_some_and(SecretSearch::finish)
                    }
                    ObjectKind::Commit | ObjectKind::Tree => {
                        content.read_to_end(&mut whole)?;
                        counted.bytes = whole.len() as u64;
                        match (kind, tree::decode(&whole)) {
                            // The ids among a tree's bytes are no text.
                            (ObjectKind::Tree, Ok(entries)) => {
                                entries.iter().any(|entry| pattern.is_in_record(&entry.name))
                            }
                            _ => pattern.is_in(&whole),
                        }
                    }
                };
                *bytes += counted.bytes;
                Ok(found && !is_spared)
            }
        }
    }

    /// Returns true if the bytes of a file, or its name, have it.
    fn is_in_file(&self, path: &Path, bytes: &[u8]) -> bool {
        let name = path.file_name().unwrap_or_default().as_bytes();
        match self {
            Trace::Contents(_) => false,
            Trace::Secret { pattern, .. } => pattern.is_in_record(bytes) || pattern.is_in_record(name),
            Trace::Workspace { id, .. } => [bytes, name].iter().any(|text| holds(text, id.as_bytes())),
        }
    }

    fn spares(&self, dir: &Path) -> bool {
        match self {
            Trace::Contents(_) => false,
            Trace::Secret { spared, .. } => spared.is_some_and(|(_, dirs)| dirs.iter().any(|it| it == dir)),
            Trace::Workspace { spared, .. } => spared.contains(&dir),
        }
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Reads everything below piton's home.
///
/// # Errors
/// When something cannot be listed. A copy or file that cannot be read is among the places that are left.
pub(super) fn prove(home: &Home, trace: &Trace<'_>, progress: &Progress) -> Result<ForgetProof> {
    let mut proof = ForgetProof::default();
    let mut left: BTreeSet<String> = BTreeSet::new();
    let store = Store::open(home.path())?;
    let local = if Store::has_local(home.path()) { Some(Store::open_local(home.path())?) } else { None };
    let stores: Vec<&Store> = [Some(&store), local.as_ref()].into_iter().flatten().collect();
    let mut unread = Vec::new();
    progress.begin(Stage::Proving, Amount::UNKNOWN);
    for store in &stores {
        unread.extend(store.copies(&mut |path, id, kind, content| {
            proof.objects += 1;
            let before = proof.bytes;
            let is_found = trace.is_in_object(id, kind, content, &mut proof.bytes)?;
            progress.add(1, proof.bytes - before);
            if is_found {
                left.insert(format!("the {} {id} in {}", kind.as_str(), path.display()));
            }
            Ok(())
        })?);
    }
    left.extend(unread.into_iter().map(|what| format!("not readable: {what}")));
    let mut pending = vec![home.path().to_owned()];
    while let Some(dir) = pending.pop() {
        if let Trace::Secret { pattern, .. } = trace
            && pattern.is_in(dir.file_name().unwrap_or_default().as_bytes())
        {
            left.insert(format!("the name of {}", dir.display()));
        }
        for path in listed(&dir)? {
            let Ok(facts) = path.symlink_metadata() else { continue }; // it went meanwhile
            if facts.is_dir() {
                // Objects were read already.
                let is_objects = stores.iter().any(|store| path == store.git_dir().join("objects"));
                pending.extend(Some(path).filter(|path| !is_objects && !trace.spares(path)));
            } else if facts.is_file() && !trace.spares(&path) && is_in_file(trace, &path, &mut proof)? {
                left.insert(path.display().to_string());
            }
        }
    }
    let workspaces = listed(&home.workspaces())?.into_iter().filter(|dir| !trace.spares(dir));
    let ledgers = workspaces.map(|dir| Ledger::of_workspace(&dir)).chain([Ledger::of_home(home.path())]);
    for (path, lines) in ledgers.flat_map(|ledger| ledger.packed_lines().collect::<Vec<_>>()) {
        proof.bytes += lines.len() as u64;
        if trace.is_in_file(&path, lines.as_bytes()) {
            left.insert(path.display().to_string());
        }
    }
    let more = left.len().saturating_sub(MOST_TOLD);
    proof.left = left.into_iter().take(MOST_TOLD).collect();
    proof.left.extend((more > 0).then(|| format!("{more} more places")));
    Ok(proof)
}

/// Reads a file, and returns true if it has what must be gone.
fn is_in_file(trace: &Trace<'_>, path: &Path, proof: &mut ForgetProof) -> Result<bool> {
    let mut bytes = Vec::new();
    let Some(mut file) = open(path)? else { return Ok(false) };
    file.read_to_end(&mut bytes).at("reading", path)?;
    proof.files += 1;
    proof.bytes += bytes.len() as u64;
    Ok(trace.is_in_file(path, &bytes))
}
