//! Adoptions: a history goes to another directory, or a directory becomes a part of the workspace above it.
//!
//! A directory that has a history of its own keeps one: that of the directory it was. Its own checkpoints stay beside it,
//! like fetched ones: they are found by id, and restores take from them.
//!
//! *Invariant:* no id changes, and nothing is dropped. Killed in between, the same adoption goes on.

use std::path::{Path, PathBuf};

use super::clear::refuse_at_work;
use super::orphans::remove_records;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::identity::{self, AddingLock};
use crate::checkpoint::records::leftovers::sweep_removed;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::records::workspace::{Workspace, canonical_dir, refuse_own};
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::model::policy::Policy;

/// An adoption, as it is planned.
#[derive(Debug)]
pub struct Adoption {
    /// The workspace whose history it is.
    pub of: Workspace,
    /// The directory that it goes to, or becomes a part of.
    pub to: PathBuf,
    /// The change.
    pub change: AdoptionChange,
    /// The number of its checkpoints, without base captures.
    pub checkpoints: u64,
    /// True if the directory that it comes from is still there, and begins a history of its own.
    pub is_split: bool,
}

/// The change of an adoption.
#[derive(Debug)]
pub enum AdoptionChange {
    /// The history goes to the directory; with the workspace that was there, and the number of its checkpoints.
    Moves(Option<(Box<Workspace>, u64)>),
    /// The directory becomes a part of the workspace above it.
    Joins,
    /// The last adoption is undone: the history goes back.
    GoesBack,
    /// The last adoption is undone: the directory is a workspace of its own again.
    Leaves,
}

fn absolute(path: &Path) -> PathBuf {
    // A directory that is gone is found by the name that it had; its parents may be reached through links.
    let above = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(above).unwrap_or_else(|| path.to_owned())
}

fn with_history(known: &[Workspace], path: &Path) -> Result<Workspace> {
    known.iter().find(|workspace| workspace.path == path).cloned().ok_or_else(|| {
        Error::new(Code::WorkspaceGone, "piton has no history of this directory")
            .path(path)
            .hint("`piton store list` lists all")
    })
}

impl Adoption {
    /// Plans the adoption of the history of one directory by another.
    ///
    /// # Errors
    /// `workspace-gone` for a directory without a history, or one that does not exist; `bad-path`, `workspace-refused`;
    /// `conflict` if somebody is at work in one of them.
    pub fn plan(home: &Home, from: &Path, to: &Path, policy: &Policy) -> Result<Adoption> {
        let known = Workspace::known(home)?;
        let ((to, _), from) = (canonical_dir(to)?, absolute(from));
        refuse_own(home, &to)?;
        let of = with_history(&known, &from)?;
        if of.path == to {
            return Err(Error::new(Code::BadPath, "both are the same directory").path(&to).hint("name two"));
        }
        let is_there = from.is_dir();
        let checkpoints = shown(home, &of, policy)?;
        refuse_at_work(&of)?;
        if is_there && from.starts_with(&to) {
            return Ok(Adoption { of, to, change: AdoptionChange::Joins, checkpoints, is_split: false });
        }
        let there = known.into_iter().find(|workspace| workspace.path == to);
        let there = match there {
            None => None,
            Some(there) => {
                refuse_at_work(&there)?;
                let own = shown(home, &there, policy)?;
                Some((Box::new(there), own))
            }
        };
        Ok(Adoption { of, to, change: AdoptionChange::Moves(there), checkpoints, is_split: is_there })
    }

    /// Plans the way back.
    ///
    /// # Errors
    /// `conflict` if there was no adoption, or if another history is at the former place; else as [`Adoption::plan`].
    pub fn plan_back(home: &Home, at: &Path, policy: &Policy) -> Result<Adoption> {
        let known = Workspace::known(home)?;
        let of = with_history(&known, &absolute(at))?;
        refuse_at_work(&of)?;
        let checkpoints = shown(home, &of, policy)?;
        let nothing = || {
            Error::new(Code::Conflict, "this history was not adopted").path(&of.path).hint("there is nothing to undo")
        };
        let (to, change) = match (&of.part_of, &of.was) {
            (Some(_), _) => (of.path.clone(), AdoptionChange::Leaves),
            (None, Some(was)) => (was.clone(), AdoptionChange::GoesBack),
            (None, None) => return Err(nothing()),
        };
        if matches!(change, AdoptionChange::GoesBack) && known.iter().any(|other| other.path == to) {
            return Err(Error::new(Code::Conflict, "this directory has another history now")
                .path(&to)
                .hint("first adopt that history elsewhere, or clear it"));
        }
        Ok(Adoption { of, to, change, checkpoints, is_split: false })
    }

    /// Carries it out, and returns the workspace as it is now.
    ///
    /// # Errors
    /// `conflict` if somebody is at work there by now; those of locks and of writing.
    pub fn carry_out(&self, home: &Home, policy: &Policy) -> Result<Workspace> {
        refuse_at_work(&self.of)?;
        sweep_removed(home.path())?;
        match &self.change {
            AdoptionChange::Joins => {
                // Before the lock is taken: it may be no workspace yet.
                let above = Workspace::open(home, &self.to)?;
                identity::join(home, &self.of, Some(above.id), &AddingLock::acquire(home)?)
            }
            AdoptionChange::Leaves => identity::join(home, &self.of, None, &AddingLock::acquire(home)?),
            AdoptionChange::GoesBack => {
                let facts = self.to.metadata().ok().filter(std::fs::Metadata::is_dir); // it may be gone
                identity::adopt(home, &self.of, (&self.to, facts.as_ref()), &AddingLock::acquire(home)?)
            }
            AdoptionChange::Moves(there) => {
                let adding = AddingLock::acquire(home)?;
                if let Some((there, _)) = there {
                    refuse_at_work(there)?;
                    self.keep_beside(home, there, policy)?;
                    remove_records(home, there, &adding)?;
                }
                let (path, facts) = canonical_dir(&self.to)?;
                identity::adopt(home, &self.of, (&path, Some(&facts)), &adding)
            }
        }
    }

    /// Puts the checkpoints of the workspace that is there beside the history, and takes them away from it.
    fn keep_beside(&self, home: &Home, there: &Workspace, policy: &Policy) -> Result<()> {
        let refs = {
            let mut timeline = Timeline::open(home, there.clone(), policy.clone())?;
            let locked = timeline.lock("adopting")?;
            locked.refuse_interrupted()?;
            locked.flush()?;
            refs(locked.catalog)?
        };
        let beside = format!("refs/piton-remotes/{}/", self.of.id);
        {
            let mut timeline = Timeline::open(home, self.of.clone(), policy.clone())?;
            let locked = timeline.lock("adopting")?;
            let _shared = locked.catalog.store.lock_shared("adopting", LOCK_WAIT)?;
            for (name, target) in &refs {
                locked.catalog.store.put_ref(&format!("{beside}{}", name_beside(&there.id, name)), *target)?;
            }
        }
        let mut timeline = Timeline::open(home, there.clone(), policy.clone())?;
        let locked = timeline.lock("adopting")?;
        // A checkpoint that came meanwhile is in no list yet, and stays where it is.
        if self::refs(locked.catalog)? != refs {
            return Err(Error::new(Code::Conflict, "a checkpoint was taken there in the meantime").hint("try again"));
        }
        locked.drop_refs(&refs).map(drop)
    }
}

/// Returns all refs of a workspace.
fn refs(catalog: &Catalog) -> Result<Vec<(String, ObjectId)>> {
    let mut refs = Vec::new();
    for prefix in [catalog.leaf_prefix(), catalog.branch_prefix(), catalog.foreign_prefix()] {
        for entry in catalog.refs(&prefix)? {
            let damaged = |what: String| Error::new(Code::StoreDamaged, format!("the ref `{}`: {what}", entry.name));
            refs.push((entry.name.to_string(), entry.target.clone().map_err(damaged)?));
        }
    }
    Ok(refs)
}

/// Returns the name of a workspace's ref beside another history: below the workspace's id, as if it was fetched.
fn name_beside(id: &str, name: &str) -> String {
    let rest = |prefix: &str| name.strip_prefix(prefix)?.strip_prefix(id)?.strip_prefix('/');
    match (rest("refs/heads/"), rest("refs/piton/"), rest("refs/piton-remotes/")) {
        (Some(run), ..) => format!("{id}/heads/{run}"),
        (_, Some(leaf), _) => format!("{id}/{leaf}"),
        (_, _, fetched) => fetched.unwrap_or(name).to_owned(),
    }
}

fn shown(home: &Home, workspace: &Workspace, policy: &Policy) -> Result<u64> {
    let catalog = Catalog::open(home, workspace.clone(), policy.clone())?;
    let all = catalog.all()?;
    Ok(all.checkpoints.iter().filter(|one| one.record.kind().is_listed()).count() as u64)
}
