//! Chooses the checkpoints that `piton push` sends: this workspace's runs and checkpoints, under names by which several
//! machines can share a remote.
//!
//! A run goes to `refs/heads/piton/<workspace>/<run>`, any other checkpoint to
//! `refs/piton/<workspace>/<kind>/<ordinal>`. A workspace's id is random: no two machines have the same. *Invariant:*
//! nothing from which a checkpoint with secrets can be reached is sent unless asked for: secrets in the names or contents of
//! its files, or in its message. Messages are checked again by this version's table of secrets: an older version may have recorded
//! them.

use std::collections::{HashMap, HashSet};

use super::secrets::{SecretFile, SharedSecrets};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::ref_name::is_ref_name;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::model::redact::holds_secret;
use crate::model::weight::Scale;
use crate::store::Commit;

/// The checkpoints to be sent.
#[derive(Debug, Default)]
pub struct Sending {
    /// Commits and the names they get at the remote.
    pub refs: Vec<(ObjectId, String)>,
    /// Runs and checkpoints that were asked for and stay here.
    pub withheld: Vec<Withheld>,
}

/// A run or checkpoint that is not sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Withheld {
    /// A run, or a checkpoint.
    pub what: String,
    /// The reason, as the end of a sentence.
    pub why: String,
}

impl Catalog {
    /// Lists what there is to send, of one run or of all.
    ///
    /// # Errors
    /// `no-such-run`; those of listing.
    pub fn sending(&self, run: Option<&str>, with_secrets: bool) -> Result<Sending> {
        let (leaves, branches) = (self.leaf_prefix(), self.branch_prefix());
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        // Base captures only keep objects alive here; no person goes back to them.
        let wanted = |record: &Record| record.kind != CheckpointKind::Turn && run.is_none_or(|run| record.run == run);
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
                let what = format!("checkpoint {}", leaf.record.number);
                found.push((leaf.id, format!("refs/piton/{}/{name}", self.workspace.id), what));
            }
        }
        if let Some(run) = run.filter(|_| found.is_empty()) {
            return Err(Error::new(Code::NoSuchRun, format!("no checkpoint of a run `{run}` in this workspace"))
                .hint("`piton git branch --list` shows the runs that have a branch"));
        }
        let mut sending = Sending::default();
        let mut withhold = |what: String, why: String| sending.withheld.push(Withheld { what, why });
        known.broken.iter().for_each(|what| withhold("a ref".to_owned(), what.clone()));
        let mut judge = SendReview::default();
        for (id, name, what) in found {
            match self.kept_back(id, &mut judge) {
                _ if !is_ref_name(&name) => withhold(what, "git does not accept this name of a ref".to_owned()),
                Some(WithholdReason::Unreadable) => {
                    withhold(what, "one of its ancestors is not a checkpoint".to_owned());
                }
                Some(WithholdReason::Secrets(n)) if !with_secrets => {
                    let file = judge.files.get(&n).map(|file| format!(": {}", file.text())).unwrap_or_default();
                    withhold(what, format!("checkpoint {n} contains secrets{file}"));
                }
                Some(WithholdReason::Told(n)) if !with_secrets => {
                    withhold(what, format!("checkpoint {n} has a message that contains secrets"));
                }
                Some(WithholdReason::Large(n)) => {
                    withhold(
                        what,
                        format!("the trees of checkpoint {n} take more memory than `limits.memory_mb` allows"),
                    );
                }
                Some(WithholdReason::Secrets(_) | WithholdReason::Told(_)) | None => sending.refs.push((id, name)),
            }
        }
        Ok(sending)
    }

    /// Says why a commit, or something it comes from, is not to be sent.
    fn kept_back(&self, id: ObjectId, judge: &mut SendReview) -> Option<WithholdReason> {
        let (mut pending, mut seen) = (vec![id], HashSet::new());
        let mut back = None;
        while let Some(next) = pending.pop() {
            if !seen.insert(next) {
                continue;
            }
            if let Some(told) = judge.known.get(&next) {
                back = worse(back, *told);
                continue;
            }
            // A commit that cannot be read is not sent, and the answer names it.
            let commit = self.store.read_commit(&next).ok();
            let record = commit.as_ref().and_then(|commit| Record::parse(&commit.message));
            let (Some(commit), Some(record)) = (commit, record) else {
                back = Some(WithholdReason::Unreadable);
                continue;
            };
            back = worse(back, self.own_back(&commit, &record, judge));
            pending.extend(commit.parents);
        }
        judge.known.insert(id, back);
        back
    }

    /// Says why a checkpoint itself is not to be sent.
    fn own_back(&self, commit: &Commit, record: &Record, judge: &mut SendReview) -> Option<WithholdReason> {
        let read = |id: &ObjectId| self.read_tree(id);
        let admitted = judge.scale.admit(&commit.tree, self.memory(), &read);
        // A tree that only a capture can have made is let through.
        match admitted.or_else(|_| self.check_size(&commit.tree)) {
            Err(error) if error.code() == Code::TooLarge => return Some(WithholdReason::Large(record.number)),
            // git reports missing objects itself.
            Err(_) | Ok(()) => {}
        }
        match judge.secrets.first(self, &commit.tree) {
            Ok(None) if !record.holds_secrets() => {}
            // A tree that cannot be read may contain secrets.
            found => {
                let file = found.ok().flatten();
                judge.files.extend(file.map(|file| (record.number, file)));
                return Some(WithholdReason::Secrets(record.number));
            }
        }
        holds_secret(&commit.message).then_some(WithholdReason::Told(record.number))
    }

    /// Returns true if the message of some checkpoint holds a secret.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn tells_secrets(&self) -> Result<bool> {
        let (own, fetched) = (self.all()?, self.foreign()?);
        Ok(own
            .checkpoints
            .iter()
            .chain(&fetched.checkpoints)
            .any(|checkpoint| holds_secret(&checkpoint.record.message())))
    }
}

/// Remembers the verdicts on commits and trees.
#[derive(Default)]
struct SendReview {
    /// The verdict on each commit and tree that was looked at; `None` if it may be sent.
    known: HashMap<ObjectId, Option<WithholdReason>>,
    /// The weights of trees that were met already.
    scale: Scale,
    secrets: SharedSecrets,
    /// The first secret of each withheld checkpoint, by its number.
    files: HashMap<Number, SecretFile>,
}

/// The reasons for not sending something, the lesser reasons first; checkpoints by their numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WithholdReason {
    /// The message of this checkpoint holds a secret.
    Told(Number),
    /// The files of this checkpoint hold secrets.
    Secrets(Number),
    /// Its trees name more paths than there is memory for.
    Large(Number),
    /// Something of it cannot be read.
    Unreadable,
}

impl WithholdReason {
    fn weight(self) -> u8 {
        match self {
            WithholdReason::Told(_) => 0,
            WithholdReason::Secrets(_) => 1,
            WithholdReason::Large(_) => 2,
            WithholdReason::Unreadable => 3,
        }
    }
}

/// Returns the weightier of two reasons, the first of equal ones.
fn worse(one: Option<WithholdReason>, other: Option<WithholdReason>) -> Option<WithholdReason> {
    match (one, other) {
        (Some(one), Some(other)) if other.weight() > one.weight() => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}
