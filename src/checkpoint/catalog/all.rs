//! All checkpoints of a workspace, as its refs name them: listed once, and again only where somebody else has moved one.

use std::sync::Arc;

use super::commits::{Commits, Said};
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::store::{RefEntry, RefMarks};

/// All checkpoints, oldest first, and what is wrong with refs that could not be read.
#[derive(Clone, Default)]
pub(in crate::checkpoint) struct All {
    pub(in crate::checkpoint) checkpoints: Vec<Checkpoint>,
    pub(in crate::checkpoint) broken: Vec<String>,
}

/// Refs as they were listed or written.
pub(in crate::checkpoint) struct Listing {
    entries: Vec<RefEntry>,
    marks: RefMarks,
}

impl Timeline {
    /// The refs whose names begin with `prefix`. What was listed before holds as long as nobody else had the lock and the
    /// directories stand as they were: an ordinary git at work is noticed by them.
    pub(in crate::checkpoint) fn refs(&self, prefix: &str) -> Result<Vec<RefEntry>> {
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
    pub(in crate::checkpoint) fn forget_moved(&self) {
        self.listings.borrow_mut().retain(|_, listing| listing.marks.stand());
    }

    pub(in crate::checkpoint) fn note_ref(&self, name: &str, target: Option<ObjectId>) {
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
    pub(in crate::checkpoint) fn all(&self) -> Result<Arc<All>> {
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

    /// Forgets what was read of commits and refs: objects went.
    pub(in crate::checkpoint) fn forget_commits(&self) {
        *self.all.borrow_mut() = None;
        self.listings.borrow_mut().clear();
        *self.commits.borrow_mut() = Commits::default();
    }

    /// Adds one that was just recorded to all that were known before it.
    pub(in crate::checkpoint) fn add(&mut self, mut all: Arc<All>, newest: &Checkpoint) {
        let Checkpoint { id, tree, parents, record, .. } = newest.clone();
        self.commits.get_mut().put(id, Said { tree, parents, record });
        Arc::make_mut(&mut all).checkpoints.push(newest.clone());
        *self.all.borrow_mut() = Some(all);
    }
}
