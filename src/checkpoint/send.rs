//! What `piton push` sends: this workspace's runs and checkpoints, under names that several machines can share a remote with.
//!
//! A run goes to `refs/heads/piton/<workspace>/<run>`, any other checkpoint to `refs/piton/<workspace>/<kind>/<ordinal>`. A workspace's
//! id is random: no two machines have the same. *Invariant:* nothing from which a checkpoint with secrets can be reached is
//! sent without being asked for.

use std::collections::HashMap;

use super::timeline::Timeline;
use super::view::is_ref_name;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{Kind, Record};
use crate::model::id::ObjectId;

/// What is to be sent.
#[derive(Debug, Default)]
pub struct Sending {
    /// Commits and the names they get at the remote.
    pub refs: Vec<(ObjectId, String)>,
    pub withheld: Vec<Withheld>,
}

/// What is not sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Withheld {
    /// A run, or a checkpoint.
    pub what: String,
    pub why: String,
}

impl Timeline {
    /// What there is to send, of one run or of all.
    ///
    /// # Errors
    /// `no-such-run`; those of listing.
    pub fn sending(&mut self, run: Option<&str>, with_secrets: bool) -> Result<Sending> {
        let (leaves, branches) = (self.leaf_prefix(), self.branch_prefix());
        let (all, broken) = self.checkpoints()?;
        // Base captures keep objects alive here, and are nobody's to go back to.
        let wanted = |record: &Record| record.kind != Kind::Turn && run.is_none_or(|run| record.run == run);
        let mut found: Vec<(ObjectId, String, String)> = Vec::new();
        for branch in self.refs(&branches)? {
            let Some(name) = branch.name.strip_prefix(&branches) else { continue };
            // A tip that cannot be read is among the broken ones.
            let Ok(tip) = branch.target else { continue };
            if all.iter().any(|checkpoint| checkpoint.id == tip && wanted(&checkpoint.record)) {
                found.push((tip, format!("refs/heads/piton/{}/{name}", self.workspace.id), format!("run {name}")));
            }
        }
        for leaf in all.iter().filter(|leaf| !leaf.record.kind.is_typed() && wanted(&leaf.record)) {
            if let Some(name) = leaf.name.strip_prefix(&leaves) {
                let what = format!("checkpoint {}", leaf.record.ordinal);
                found.push((leaf.id, format!("refs/piton/{}/{name}", self.workspace.id), what));
            }
        }
        if let Some(run) = run.filter(|_| found.is_empty()) {
            return Err(Error::new(Code::NoSuchRun, format!("no checkpoint of a run `{run}` in this workspace"))
                .hint("`piton git branch --list` shows the runs that have a branch"));
        }
        let mut sending = Sending::default();
        let mut withhold = |what: String, why: String| sending.withheld.push(Withheld { what, why });
        broken.into_iter().for_each(|what| withhold("a ref".to_owned(), what));
        let mut known = HashMap::new();
        for (id, name, what) in found {
            match self.kept_back(id, &mut known) {
                _ if !is_ref_name(&name) => withhold(what, "git takes no ref of this name".to_owned()),
                Some(Back::Unreadable) => withhold(what, "something that it comes from is no checkpoint".to_owned()),
                Some(Back::Secrets(n)) if !with_secrets => withhold(what, format!("checkpoint {n} holds secrets")),
                Some(Back::Secrets(_)) | None => sending.refs.push((id, name)),
            }
        }
        Ok(sending)
    }

    /// Why a commit, or something it comes from, is not to be sent.
    fn kept_back(&self, id: ObjectId, known: &mut HashMap<ObjectId, Option<Back>>) -> Option<Back> {
        let (mut pending, mut seen) = (vec![id], Vec::new());
        let mut back = None;
        while let Some(next) = pending.pop().filter(|_| back.is_none()) {
            if let Some(told) = known.get(&next) {
                back = *told;
                continue;
            }
            if seen.contains(&next) {
                continue;
            }
            seen.push(next);
            // Whatever keeps it from being read keeps it from being sent, and it is named as such.
            let commit = self.store.read_commit(&next).ok();
            match commit.as_ref().and_then(|commit| Record::parse(&commit.message)) {
                Some(record) if record.holds_secrets() => back = Some(Back::Secrets(record.ordinal)),
                Some(_) => pending.extend(commit.map(|commit| commit.parents).unwrap_or_default()),
                None => back = Some(Back::Unreadable),
            }
        }
        known.insert(id, back);
        back
    }
}

#[derive(Clone, Copy)]
enum Back {
    /// By its number.
    Secrets(u64),
    Unreadable,
}
