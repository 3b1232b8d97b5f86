//! Content that is taken out of the store: every copy of every object is read to prove it gone, and the refs of rewritten
//! checkpoints move together.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::Fault;
use super::loose;
use super::objects::{ObjectPlace, STEPS};
use super::refs::loose_target;
use super::repository::Store;
use crate::error::Result;
use crate::model::id::{ObjectId, ObjectKind};

/// The number of readings after which packs that came meanwhile are not waited for any more.
const READINGS: usize = 5;

/// Takes a copy of an object: its file, its id, its kind, and its content.
pub type EachCopy<'e> = dyn FnMut(&Path, &ObjectId, ObjectKind, &mut dyn Read) -> std::io::Result<()> + 'e;

impl Store {
    /// Gives every copy of every object to `each`: in packs, with and without deltas, in loose files and in logs. Some are
    /// given twice. Returns a sentence for each copy that cannot be read.
    ///
    /// # Errors
    /// When packs, loose objects or logs cannot be listed.
    pub fn copies(&self, each: &mut EachCopy<'_>) -> Result<Vec<String>> {
        let mut unread = Vec::new();
        for _ in 0..READINGS {
            let set = self.objects.look_again()?;
            unread.clear();
            for pack in &set.packs {
                let path = pack.stem.with_extension("pack");
                for entry in pack.index.entries() {
                    let place = ObjectPlace::Packed(pack, entry.offset);
                    unread.extend(self.copy_at(place, &entry.id, &path, each));
                }
            }
            for id in loose::list(&self.git_dir)? {
                let path = loose::path_of(&self.git_dir, &id);
                unread.extend(self.copy_at(ObjectPlace::Alone(&path), &id, &path, each));
            }
            // Another process may have packed loose objects that were not read yet.
            if Arc::ptr_eq(&set, &self.objects.refresh()?) {
                break;
            }
        }
        let logs = self.home.join("workspaces");
        for (id, bytes) in self.logged()?.0.into_iter().flat_map(|record| record.objects) {
            let read = match loose::decode(&bytes, &id, u64::MAX) {
                Some((kind, content)) => each(&logs, &id, kind, &mut &content[..]).map_err(|error| error.to_string()),
                None => Err("it is damaged".to_owned()),
            };
            unread.extend(read.err().map(|why| format!("{id} in a log: {why}")));
        }
        Ok(unread)
    }

    /// Gives one copy to `each`, and says why it cannot be read. One that went meanwhile is passed over.
    fn copy_at(&self, place: ObjectPlace<'_>, id: &ObjectId, path: &Path, each: &mut EachCopy<'_>) -> Option<String> {
        let mut take = |kind, _, content: &mut dyn Read| Ok(each(path, id, kind, content)?);
        let why = match self.objects.stream(place, &Cell::new(STEPS), &mut take) {
            Ok(()) => return None,
            Err(Fault::System(error)) if loose::is_absent(&error) => return None,
            Err(Fault::System(error)) => error.to_string(),
            Err(Fault::Damaged(why)) => why.to_owned(),
            Err(Fault::Refused(error)) => error.text(),
        };
        Some(format!("{id} in {}: {why}", path.display()))
    }

    /// Moves refs from their first commit to their second one, durably, with few waits for the disk. The caller holds the
    /// lock of their workspace, and the store's shared.
    ///
    /// # Errors
    /// `conflict` when a ref is elsewhere; `disk-full`, `permission`. The refs before it have moved then.
    pub fn move_refs(&self, moves: &[(String, ObjectId, ObjectId)]) -> Result<()> {
        let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
        for (name, old, new) in moves {
            let path = self.git_dir.join(name);
            if loose_target(&path).is_ok_and(|target| target.is_some()) {
                self.swap_ref(name, Some(*old), *new, false)?;
                paths.insert(path);
            }
        }
        loose::sync_files(&paths)?;
        loose::sync_files(&paths.iter().filter_map(|path| path.parent()).map(PathBuf::from).collect())?;
        // Also the packed entry of a loose one: it would still name the old commit, which goes.
        self.repoint(&moves.iter().map(|(name, _, new)| (name.as_str(), *new)).collect())
    }
}
