//! Holds a restore to the plan that was shown and agreed to.
//!
//! A preview gives its plan and the plan's digest. On a terminal that very plan comes back with the answer: a path that
//! changed since is a conflict, and a new path stays. A client of the protocol sends the digest: if the fresh plan has
//! another one, nothing is done. The limits of `restore --continue` and `--abort` were agreed to when the restore
//! began.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::journal::{OperationStart, quoted};
use super::logged_limits::LoggedLimits;
use super::request::{Preview, Restore};
use crate::checkpoint::catalog::open::Catalog;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::worktree::probe;
use crate::worktree::restore::{Agreement, ConflictReason, KeepReason, Plan};

/// Limits what a restore may do.
#[derive(Clone, Debug, Default)]
pub enum Agreed {
    /// Any plan that is made at the moment of the restore.
    #[default]
    Anything,
    /// The plan of this digest, or nothing at all.
    Digest(String),
    /// The changes of this plan, each as long as its path is as it was.
    Plan(Arc<Plan>),
    /// Finishes or takes back an interrupted restore.
    Rest(Arc<Rest>),
}

impl Agreed {
    /// Returns the limit for a client that sends this digest; without one, anything is allowed.
    pub fn by_digest(digest: Option<&str>) -> Agreed {
        digest.map_or(Agreed::Anything, |digest| Agreed::Digest(digest.to_owned()))
    }

    /// Judges one change.
    pub(crate) fn on(&self, path: &RelPath, from: Option<&ManifestEntry>, to: Option<&ManifestEntry>) -> Agreement {
        match self {
            // The digest is compared when the plan is whole.
            Agreed::Anything | Agreed::Digest(_) => Agreement::Given,
            Agreed::Plan(plan) => plan.agreement(path, from, to),
            Agreed::Rest(rest) => rest.on(path, from),
        }
    }

    /// Returns the paths that were agreed to be deleted, by a restore to `target`.
    fn deletions<'a>(&'a self, target: &'a Manifest) -> Box<dyn Iterator<Item = &'a RelPath> + 'a> {
        match self {
            Agreed::Anything | Agreed::Digest(_) => Box::new(std::iter::empty()),
            Agreed::Plan(plan) => Box::new(plan.delete.iter().map(|(path, _)| path)),
            Agreed::Rest(rest) => Box::new(rest.planned.iter().filter(|path| !target.contains(path))),
        }
    }
}

impl Restore {
    /// Returns the same restore, limited to the changes of this preview.
    #[must_use]
    pub fn agreeing(self, preview: &Preview) -> Restore {
        Restore { agreed: Agreed::Plan(Arc::clone(&preview.plan)), ..self }
    }

    /// Returns the digest of a plan: of the target, the options, and each path that it changes, with what is there and
    /// what comes.
    ///
    /// Leaves out the paths that stay: otherwise every new line in a log file would make another plan.
    pub(crate) fn digest(&self, plan: &Plan) -> Result<String> {
        let mut text =
            format!("piton plan 1\ntarget {}\nkeep-new {}\nlocal {}\n", self.target, self.keep_new, self.local);
        for path in quoted(&self.paths) {
            text.push_str(&format!("path {path}\n"));
        }
        for line in LoggedLimits::of(&self.limits).iter().flat_map(LoggedLimits::lines) {
            text.push_str(&format!("{line}\n"));
        }
        // The operation decides which paths count, and which run moves along.
        if let Some(over) = &self.over {
            text.push_str(&format!("over {over}\n"));
        }
        let mut add = |word: &str, path: &RelPath, entries: &[&ManifestEntry]| {
            text.push_str(&format!("{word} {}", quote(path.as_bytes())));
            for entry in entries {
                text.push_str(&format!(" {:?} {:o} {}", entry.kind, entry.perm, entry.id));
            }
            text.push('\n');
        };
        plan.create.iter().for_each(|(path, to)| add("create", path, &[to]));
        plan.replace.iter().for_each(|(path, from, to)| add("replace", path, &[from, to]));
        plan.delete.iter().for_each(|(path, from)| add("delete", path, &[from]));
        ObjectId::of(ObjectKind::Blob, text.as_bytes()).map(|id| id.to_string())
    }

    /// Refuses a plan of another digest than the one that was agreed to.
    ///
    /// # Errors
    /// `stale-plan`.
    pub(crate) fn refuse_stale(&self, plan: &Plan) -> Result<()> {
        match &self.agreed {
            Agreed::Digest(digest) if self.digest(plan)? != *digest => Err(stale()),
            Agreed::Anything | Agreed::Digest(_) | Agreed::Plan(_) | Agreed::Rest(_) => Ok(()),
        }
    }
}

/// Returns the refusal of a plan that is not the present one.
pub(super) fn stale() -> Error {
    Error::new(Code::StalePlan, "the files have changed since that plan was shown; nothing was done")
        .field("plan")
        .hint("check the new preview and send the digest of its plan")
}

/// Names the paths that an interrupted restore announced, and their entries before and after it.
#[derive(Debug)]
pub struct Rest {
    /// Every path that the announcement names.
    planned: BTreeSet<RelPath>,
    /// Before and after; `None` if one of them cannot be read any more.
    ends: Option<[Manifest; 2]>,
}

impl Rest {
    /// Judges a path. It may change if it is as it was before the restore, or as the restore leaves it: then nobody has edited it since.
    fn on(&self, path: &RelPath, from: Option<&ManifestEntry>) -> Agreement {
        let is_planned = self.planned.contains(path);
        let held = || self.ends.iter().flatten().filter_map(|end| end.get(path));
        let is_known = match from {
            None => is_planned,
            _ if self.ends.is_none() => is_planned,
            // The restore itself makes new directories private, and makes directories writable in which it works.
            Some(dir) if dir.kind == EntryKind::Dir => {
                is_planned || held().any(|end| end.kind == EntryKind::Dir && dir.perm == end.perm | 0o700)
            }
            Some(leaf) => is_planned && held().any(|end| end.same(leaf)),
        };
        match (is_known, is_planned) {
            (true, _) => Agreement::Given,
            (false, true) => Agreement::Other,
            (false, false) => Agreement::Missing,
        }
    }
}

impl Catalog {
    /// Makes a conflict of each path that was agreed to be deleted, that is still there, and that the fresh plan leaves alone.
    ///
    /// A new rule file or a new size may hide such a path from the capture. A path that the target holds cannot be
    /// hidden: the capture before a restore takes it by name.
    ///
    /// # Errors
    /// When the file system cannot be looked at.
    pub(crate) fn name_left_out(&self, plan: &mut Plan, agreed: &Agreed, target: &Manifest) -> Result<()> {
        let mut left_out = BTreeSet::new();
        for path in agreed.deletions(target) {
            if plan.delete.binary_search_by(|(at, _)| at.cmp(path)).is_ok()
                || plan.conflict.binary_search_by(|(at, _)| at.cmp(path)).is_ok()
            {
                continue;
            }
            let kept = plan.keep.binary_search_by(|(at, _)| at.cmp(path)).ok().map(|at| &plan.keep[at].1);
            let stays = match kept {
                // It stays because of another path, which is listed.
                Some(KeepReason::NotEmpty(_) | KeepReason::InsideBlocked(_)) => false,
                Some(_) => true,
                None => probe(&self.workspace.path, path)?.is_some(),
            };
            if stays {
                left_out.insert(path.clone());
            }
        }
        plan.keep.retain(|(path, _)| !left_out.contains(path));
        plan.conflict.extend(left_out.into_iter().map(|path| (path, ConflictReason::LeftOut)));
        plan.conflict.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(())
    }

    /// Returns the rest of an interrupted restore.
    pub(crate) fn rest_of(&self, begin: &OperationStart, planned: BTreeSet<RelPath>) -> Rest {
        let end = |id: ObjectId| {
            let manifest = self.load_end(id)?;
            let counts = |path: &RelPath, entry: &ManifestEntry| entry.kind == EntryKind::Dir || planned.contains(path);
            let entries = manifest.iter().filter(|(path, entry)| counts(path, entry));
            Ok::<Manifest, Error>(entries.map(|(path, entry)| (path.clone(), *entry)).collect())
        };
        // The chosen end is read again later, and its error is reported then.
        let ends = end(begin.pre_restore).and_then(|before| Ok([before, end(begin.target)?])).ok();
        Rest { planned, ends }
    }
}
