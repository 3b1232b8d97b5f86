//! All checkpoints of a workspace, as its refs name them: listed once, and again only where somebody else has moved one.

use std::sync::Arc;

use super::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Record;
use crate::model::id::ObjectId;
use crate::store::{RefEntry, RefMarks};

/// All checkpoints, oldest first, and what is wrong with refs that could not be read.
#[derive(Clone, Default)]
pub(super) struct All {
    pub(super) checkpoints: Vec<Checkpoint>,
    broken: Vec<String>,
}

/// Refs as they were listed or written.
pub(super) struct Listing {
    entries: Vec<RefEntry>,
    marks: RefMarks,
}

impl Timeline {
    /// The refs whose names begin with `prefix`. What was listed before holds as long as nobody else had the lock and the
    /// directories stand as they were: an ordinary git at work is noticed by them.
    pub(super) fn refs(&self, prefix: &str) -> Result<Vec<RefEntry>> {
        let mut listings = self.listings.borrow_mut();
        if let Some(listing) = listings.get(prefix).filter(|listing| listing.marks.stand()) {
            return Ok(listing.entries.clone());
        }
        self.all.take();
        let (entries, marks) = self.store.refs_marked(prefix)?;
        listings.insert(prefix.to_owned(), Listing { entries: entries.clone(), marks });
        Ok(entries)
    }

    /// Whether nobody else has moved such refs since they were listed.
    fn stands(&self, prefix: &str) -> bool {
        self.listings.borrow().get(prefix).is_some_and(|listing| listing.marks.stand())
    }

    /// Before a ref is written: the marks taken after it tell nothing of what others did before, another capture beside this
    /// one for example.
    pub(super) fn forget_moved(&self) {
        self.listings.borrow_mut().retain(|_, listing| listing.marks.stand());
    }

    pub(super) fn note_ref(&self, name: &str, target: Option<ObjectId>) {
        self.all.take();
        let mut listings = self.listings.borrow_mut();
        for (_, listing) in listings.iter_mut().filter(|(prefix, _)| name.starts_with(prefix.as_str())) {
            let at = listing.entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
            match (at, target) {
                (Ok(at), Some(id)) => listing.entries[at].target = Ok(id),
                (Err(at), Some(id)) => {
                    listing.entries.insert(at, RefEntry { name: name.to_owned(), target: Ok(id) });
                }
                (Ok(at), None) => _ = listing.entries.remove(at),
                (Err(_), None) => {}
            }
            listing.marks = listing.marks.after(self.store.git_dir(), name);
        }
    }

    /// All checkpoints, oldest first, and what is wrong with refs that could not be read.
    ///
    /// # Errors
    /// When the store cannot be listed. Single broken refs are reported, not fatal.
    pub fn checkpoints(&mut self) -> Result<(Vec<Checkpoint>, Vec<String>)> {
        let all = self.all()?;
        Ok((all.checkpoints.clone(), all.broken.clone()))
    }

    /// As [`Timeline::checkpoints`], at the price of a few looks where nothing has moved.
    pub(super) fn all(&mut self) -> Result<Arc<All>> {
        let known = self.all.borrow().clone();
        match known.filter(|_| self.stands(&self.leaf_prefix()) && self.stands(&self.branch_prefix())) {
            Some(all) => Ok(all),
            None => {
                let all = Arc::new(self.read_all()?);
                *self.all.borrow_mut() = Some(Arc::clone(&all));
                Ok(all)
            }
        }
    }

    fn read_all(&mut self) -> Result<All> {
        let mut all = Vec::new();
        let mut broken = Vec::new();
        for leaf in self.refs(&self.leaf_prefix())? {
            match self.tip_of(&leaf).and_then(|id| self.read(id, &leaf.name)) {
                Ok(checkpoint) => all.push(checkpoint),
                Err(error) => broken.push(format!("{}: {}", leaf.name, error.text())),
            }
        }
        for branch in self.refs(&self.branch_prefix())? {
            if let Err(error) = self.tip_of(&branch).and_then(|tip| self.chain(tip, &branch.name, &mut all)) {
                broken.push(format!("{}: {}", branch.name, error.text()));
            }
        }
        all.sort_by_key(|checkpoint| checkpoint.record.ordinal);
        all.dedup_by_key(|checkpoint| checkpoint.id);
        Ok(All { checkpoints: all, broken })
    }

    /// Adds a leaf that was just recorded to all that were known before it.
    pub(super) fn add(&mut self, mut all: Arc<All>, leaf: &Checkpoint) {
        let Checkpoint { id, tree, parents, record, .. } = leaf.clone();
        self.cache.insert(id, (tree, parents, record));
        Arc::make_mut(&mut all).checkpoints.push(leaf.clone());
        *self.all.borrow_mut() = Some(all);
    }

    pub(super) fn tip_of(&self, entry: &RefEntry) -> Result<ObjectId> {
        entry.target.clone().map_err(|what| Error::new(Code::StoreDamaged, format!("a broken ref: {what}")))
    }

    /// Follows first parents from a branch's tip; parents of another branch are included once (sorted out later).
    fn chain(&mut self, tip: ObjectId, name: &str, all: &mut Vec<Checkpoint>) -> Result<()> {
        let mut next = Some(tip);
        while let Some(id) = next {
            let checkpoint = self.read(id, name)?;
            next = checkpoint.parents.first().copied().filter(|_| checkpoint.record.kind.is_typed());
            if checkpoint.record.kind.is_typed() && !all.iter().any(|known| known.id == id) {
                all.push(checkpoint);
            }
        }
        Ok(())
    }

    fn read(&mut self, id: ObjectId, name: &str) -> Result<Checkpoint> {
        let own = self.workspace.id.clone();
        self.read_of(id, name, &own)
    }

    /// A checkpoint that must be of the workspace with this id.
    pub(super) fn read_of(&mut self, id: ObjectId, name: &str, workspace: &str) -> Result<Checkpoint> {
        if !self.cache.contains_key(&id) {
            let commit = self.store.read_commit(&id)?;
            let record = Record::parse(&commit.message).ok_or_else(|| {
                Error::new(Code::NotACheckpoint, format!("commit {} was not made by piton", id.short()))
            })?;
            self.cache.insert(id, (commit.tree, commit.parents, record));
        }
        let (tree, parents, record) = self.cache[&id].clone();
        if record.workspace != workspace {
            return Err(Error::new(Code::OtherWorkspace, format!("checkpoint {} is of another workspace", id.short())));
        }
        Ok(Checkpoint { id, tree, parents, record, name: name.to_owned() })
    }
}
