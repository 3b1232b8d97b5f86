//! The damage of a workspace's checkpoints and records, as far as it is known without reading all contents.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::checkpoint::Checkpoint;
use super::open::{AllCheckpoints, Catalog};
use crate::checkpoint::records::lock::while_nobody_writes;
use crate::checkpoint::records::validate::{Damage, gone_from, of_listed};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::store::RefEntry;
use crate::sys::fs::durable::replace_cache;

/// The newest checkpoints that a look for damage always includes.
const ALWAYS: usize = 20;

/// The time after which a look for damage includes no further ones.
const LOOKING: Duration = Duration::from_millis(250);

/// The result of a look for damage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageLook {
    /// Sentences about what is damaged; those about checkpoints by their numbers.
    pub found: Vec<String>,
    /// The number of checkpoints that were looked at, the newest ones.
    pub looked: usize,
    /// The number of all checkpoints.
    pub of: usize,
}

impl DamageLook {
    /// Returns the extent of the look, for a person.
    pub fn extent(&self) -> String {
        let trees = match self.looked < self.of {
            true => format!("the directories of the newest {} of {} checkpoints", self.looked, self.of),
            false => "directories".to_owned(),
        };
        format!("refs, {trees} and the ends of packs; to read all contents, run `piton doctor`")
    }
}

/// Tries whether the records of a workspace could be written: a file that is replaced, and those that grow.
fn try_records(dir: &Path) -> Result<()> {
    let path = dir.join("try");
    replace_cache(&path, b"")?;
    std::fs::remove_file(&path).at("removing", &path)?;
    for name in ["log", "journal"] {
        let path = dir.join(name);
        match std::fs::OpenOptions::new().append(true).open(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(error, "writing", &path)),
            _ => {}
        }
    }
    Ok(())
}

impl Catalog {
    /// Names the first missing or damaged path of a checkpoint; `None` if no damage is known. Contents are not read.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn damage_of(&self, checkpoint: &Checkpoint) -> Result<Option<String>> {
        self.store.holes_soon().below(checkpoint.tree)
    }

    /// Puts in front of an error of the store which of these checkpoints are damaged.
    pub fn blamed(&self, error: Error, read: &[&Checkpoint]) -> Error {
        if !matches!(error.code(), Code::StoreDamaged | Code::NoSuchCheckpoint) {
            return error;
        }
        let mut holes = self.store.holes_soon();
        // One whose directories cannot be looked at is not known to be damaged.
        let mut is_damaged =
            |one: &Checkpoint| read.len() == 1 || holes.below(one.tree).is_ok_and(|hole| hole.is_some());
        let damaged = read.iter().filter(|one| is_damaged(one)).map(|one| one.record.number.to_string());
        let damaged: Vec<String> = damaged.collect();
        match damaged.as_slice() {
            [] => error,
            [one] => error.context(format!("checkpoint {one} is damaged")),
            many => error.context(format!("checkpoints {} are damaged", many.join(" and "))),
        }
    }

    /// Tries whether a checkpoint could be written: objects and refs of both stores, the workspace's records, and the locks of
    /// workspace and store. Nothing is left behind.
    ///
    /// # Errors
    /// `disk-full`, `permission`: then no checkpoint can be taken.
    pub fn try_writing(&self) -> Result<()> {
        let below = |kind: &str| format!("refs/piton/{}/{kind}", self.workspace.id);
        self.store.try_writing(&below(CheckpointKind::Auto.as_str()), true)?;
        if let Some(local) = self.local_if_any()? {
            // The first one has waited for the disk, which is the same one.
            local.try_writing(&below("local"), false)?;
        }
        if !self.workspace.dir.exists() {
            // Nothing is recorded of this directory yet.
            return try_records(self.home.path());
        }
        try_records(&self.workspace.dir)?;
        let locks = [
            while_nobody_writes(&self.workspace.dir, || Ok(())).map(drop),
            self.store.lock_shared("looking", Duration::ZERO).map(drop),
        ];
        // A lock that another process holds can be written.
        locks
            .into_iter()
            .find(|lock| lock.as_ref().is_err_and(|error| error.code() != Code::StoreLocked))
            .unwrap_or(Ok(()))
    }

    /// Lists the refs that cannot be read, one sentence each, and those that the log has moved and that are not there.
    ///
    /// # Errors
    /// When the log cannot be read or refs cannot be listed.
    pub fn broken(&self, known: &AllCheckpoints) -> Result<Vec<String>> {
        let mut broken = known.broken.clone();
        let is_named = |broken: &[String], name: &str| broken.iter().any(|line| line.starts_with(&format!("{name}: ")));
        for (name, id) in self.gone_refs()? {
            if !is_named(&broken, &name) {
                broken.push(format!("{name}: the ref is missing; the log has it at {}", id.short()));
            }
        }
        Ok(broken)
    }

    /// Returns the ref that the last writer did not move, because it was killed. The next writer moves it.
    ///
    /// # Errors
    /// As [`Catalog::broken`].
    pub(super) fn unmoved(&self) -> Result<Option<String>> {
        let gone = gone_from(&self.workspace.id, &self.workspace.dir, &|prefix| self.refs(prefix))?;
        Ok(gone.into_iter().find_map(|(name, _, is_last)| is_last.then_some(name)))
    }

    /// Returns the refs that the log has moved and that are not there, while no process writes.
    fn gone_refs(&self) -> Result<Vec<(String, ObjectId)>> {
        // The last one of the log is no damage: its writer may have been killed, or is at work.
        let look = |refs: &dyn Fn(&str) -> Result<Vec<RefEntry>>| {
            let gone = gone_from(&self.workspace.id, &self.workspace.dir, refs)?;
            Ok(gone.into_iter().filter_map(|(name, id, is_last)| (!is_last).then_some((name, id))).collect::<Vec<_>>())
        };
        let found = look(&|prefix| self.refs(prefix))?;
        if found.is_empty() {
            return Ok(found);
        }
        // A writer appends to the log before it moves the ref, so the look counts only beside none.
        match while_nobody_writes(&self.workspace.dir, || look(&|prefix| self.store.refs(prefix))) {
            Ok(found) => Ok(found.unwrap_or_default()),
            // Without a lock nobody can write either.
            Err(_) => Ok(found),
        }
    }

    /// Describes the damage of log, state file and journal, and of refs that do not fit their checkpoints.
    fn record_damages(&self) -> Result<Vec<String>> {
        let look = || {
            let (known, foreign) = (self.all()?, self.foreign()?);
            let listed: Vec<Checkpoint> = known.checkpoints.iter().chain(&foreign.checkpoints).cloned().collect();
            of_listed(&self.store, &self.workspace.id, &self.workspace.dir, &listed)
        };
        let mut found = look()?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        match while_nobody_writes(&self.workspace.dir, look) {
            Ok(Some(again)) => found = again,
            // Beside a writer only files that cannot be read are certain.
            Ok(None) => found.retain(|damage| matches!(damage, Damage::Records { .. })),
            // Without a lock nobody can write either.
            Err(_) => {}
        }
        // A ref that is gone is among the broken ones already.
        found.retain(|damage| !matches!(damage, Damage::NotFromLog { .. }));
        Ok(found.iter().map(ToString::to_string).collect())
    }

    /// Describes the known damage of this workspace's checkpoints and of the store's packs, in sentences. Costs nothing
    /// as long as no loss and no damage was noticed.
    ///
    /// # Errors
    /// When the store cannot be listed.
    pub fn damages(&self) -> Result<Vec<String>> {
        if self.store.is_suspect() { Ok(self.look_for_damages()?.found) } else { Ok(Vec::new()) }
    }

    /// As [`Catalog::damages`], whatever is known: looks at the ends of packs, at the commits of refs, at the records, and for everything that the
    /// newest checkpoints name. Contents are not read. Wide directories and many checkpoints would take seconds: after `ALWAYS`
    /// checkpoints it ends with `LOOKING`.
    ///
    /// # Errors
    /// When refs or packs cannot be listed.
    pub fn look_for_damages(&self) -> Result<DamageLook> {
        let began = Instant::now();
        let mut found: Vec<String> = self.store.pack_ailments()?.iter().map(ToString::to_string).collect();
        for prefix in [self.leaf_prefix(), self.branch_prefix()] {
            for RefEntry { name, target } in self.refs(&prefix)? {
                // One that is not there at all is told where refs are read. The cache of commits may know this one although it is damaged.
                let Some(id) = target.ok().filter(|id| self.store.has(id).unwrap_or(false)) else { continue };
                found.extend(self.store.read_commit(&id).err().map(|error| format!("{name}: {}", error.fact())));
            }
        }
        let (mut holes, known) = (self.store.holes_soon(), self.all()?);
        let (mut looked, mut damaged) = (0, Vec::new());
        for checkpoint in known.checkpoints.iter().rev() {
            if looked >= ALWAYS && began.elapsed() >= LOOKING {
                break;
            }
            let what = holes.below(checkpoint.tree)?;
            damaged.extend(what.map(|what| format!("checkpoint {} is damaged: {what}", checkpoint.record.number)));
            looked += 1;
        }
        found.extend(damaged.into_iter().rev());
        found.extend(self.record_damages()?);
        Ok(DamageLook { found, looked, of: known.checkpoints.len() })
    }
}
