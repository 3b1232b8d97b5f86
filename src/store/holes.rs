//! Finds objects that checkpoints name and the store does not hold.

use std::collections::{HashMap, HashSet};

use super::repository::Store;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::model::tree::{self, Mode};

/// The most bytes of a tree that is looked into: a directory of some five million names.
const LARGEST_TREE: u64 = 256 << 20;

/// The most noted objects that a bounded look reads again.
const MOST_PROVED: usize = 1000;

/// The most bytes of them.
const MOST_PROVED_BYTES: u64 = 16 << 20;

/// A look for holes. Each tree is looked at once, however many checkpoints share it.
pub struct Holes<'s> {
    store: &'s Store,
    /// The store's epoch when the look began; `None` if it could not be read.
    epoch: Option<String>,
    /// Objects that are there and were read as damaged.
    rotten: HashSet<ObjectId>,
    /// Trees below which nothing is missing.
    whole: HashSet<ObjectId>,
    /// Trees below which something is missing, with a sentence on the first hole.
    torn: HashMap<ObjectId, String>,
}

impl Store {
    /// Begins to look for holes. Every object that was noted as damaged is read again.
    pub fn holes(&self) -> Holes<'_> {
        self.holes_among(&mut |id| !self.objects.proves(id))
    }

    /// As [`Store::holes`], in bounded time: it reads the first noted objects, and takes the notes' word for the others.
    pub fn holes_soon(&self) -> Holes<'_> {
        let (mut objects, mut bytes) = (MOST_PROVED, MOST_PROVED_BYTES);
        self.holes_among(&mut |id| {
            // One without a readable size is proved at once.
            let size = self.objects.describe(id).map_or(0, |(_, size)| size);
            if objects == 0 || size > bytes {
                return true;
            }
            (objects, bytes) = (objects - 1, bytes - size);
            !self.objects.proves(id)
        })
    }

    fn holes_among(&self, is_rotten: &mut dyn FnMut(&ObjectId) -> bool) -> Holes<'_> {
        // Notes that cannot be read are none: what is damaged is noted again when it is read.
        let noted = self.objects.noted().unwrap_or_default();
        let rotten = noted.into_iter().filter(|id| self.objects.has(id).unwrap_or(false) && is_rotten(id));
        Holes {
            store: self,
            epoch: self.epoch().ok(),
            rotten: rotten.collect(),
            whole: HashSet::new(),
            torn: HashMap::new(),
        }
    }

    /// Returns true if objects may be missing that checkpoints name: packs disappeared, or objects were found damaged.
    /// Only a look for holes can tell.
    pub fn is_suspect(&self) -> bool {
        self.objects.is_suspect()
    }
}

impl Holes<'_> {
    /// Takes back the suspicion that objects are missing, after this look at everything has found none.
    pub fn trust(&self) {
        let Some(epoch) = &self.epoch else { return };
        if let Err(error) = self.store.objects.trust(epoch) {
            tracing::warn!(%error, "could not record that no object is missing");
        }
    }

    /// Returns the first missing or damaged path below a tree, and why; `None` if all of it is there. Trees are read
    /// and proved, contents are looked up by name.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn below(&mut self, root: ObjectId) -> Result<Option<String>> {
        // A tree counts as whole once everything below it does, so its children are behind it on the stack.
        let mut pending = vec![(root, String::new(), false)];
        let mut hole: Option<String> = None;
        while let Some((id, path, is_done)) = pending.pop() {
            if is_done {
                match &hole {
                    None => _ = self.whole.insert(id),
                    Some(hole) => _ = self.torn.entry(id).or_insert_with(|| hole.clone()),
                }
                continue;
            }
            if hole.is_some() || self.whole.contains(&id) {
                continue;
            }
            if let Some(known) = self.torn.get(&id) {
                hole = Some(known.clone());
                continue;
            }
            let shown = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            let entries =
                match self.store.tree_content_within(&id, LARGEST_TREE).and_then(|content| tree::decode(&content)) {
                    Ok(entries) => entries,
                    Err(error) => {
                        hole = Some(format!(
                            "the directory `{}`: {}",
                            if path.is_empty() { "." } else { &path },
                            error.fact()
                        ));
                        continue;
                    }
                };
            pending.push((id, path.clone(), true));
            for entry in entries {
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                if entry.mode == Mode::Dir {
                    pending.push((entry.id, shown(&name), false));
                } else if !self.store.objects.has_expected(&entry.id)? {
                    hole = Some(format!("`{}`: object {} is missing", shown(&name), entry.id));
                    break;
                } else if self.rotten.contains(&entry.id) {
                    hole = Some(format!("`{}`: object {} is damaged", shown(&name), entry.id));
                    break;
                }
            }
        }
        Ok(hole)
    }
}
