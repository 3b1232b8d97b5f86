//! Other machines' checkpoints: fetched by an ordinary git, judged, and kept as read-only timelines.
//!
//! Their refs are `refs/piton-remotes/<workspace>/<theirs>/heads/<run>` and `…/<kind>/<ordinal>`, where `<theirs>` is
//! the id of the workspace in which they were recorded. They are found by id; numbers belong to this workspace's own
//! checkpoints alone. Nothing here is counted, dropped or moved by retention, runs or rollbacks; a run's branch goes
//! forward only.
//!
//! *Invariant:* fetched content is untrusted. Only commits that are checkpoints of the workspace under whose name they
//! came are named, with all that they come from, and only with trees that there is room for. Any other fetched object
//! stays outside of the store.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::process::Command;

use crate::checkpoint::catalog::bounds::tree_bound;
use crate::checkpoint::catalog::foreign::LONGEST;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::ref_name::is_ref_name;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::leftovers::{FETCH, sweep_fetches};
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::error::{Code, Error, Result};
use crate::git::transfer::transfer;
use crate::git::{self, GitReach};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::weight::Scale;
use crate::store::{Arrival, FSCK_IGNORED, Quarantine, Store};
use crate::sys::fs::durable::unique_suffix;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::{Amount, Progress, Stage};

/// The result of a fetch.
#[derive(Debug, Default)]
pub struct Received {
    /// Names that are new or moved forward, below the other workspace's id.
    pub new: Vec<String>,
    /// The number of names that were there already.
    pub known: u64,
    /// Names at the remote that were not taken over, and why.
    pub refused: Vec<(String, String)>,
    /// True if git got through to the end.
    pub whole: bool,
}

/// A fetch that waits to be taken over.
pub(crate) struct Fetched {
    /// The repository aside in which the objects are.
    quarantine: Quarantine,
    /// The refs that were found good, with the commits that they name.
    accepted: Vec<(ArrivedRef, ObjectId)>,
    /// The answer for the user; taking over completes it.
    received: Received,
    /// One fetch at a time.
    _lock: FileLock,
}

/// A ref as it arrived: whose it is, and what it says of itself.
#[derive(Debug, PartialEq, Eq)]
struct ArrivedRef {
    /// The id of the workspace that it belongs to at its origin.
    workspace: String,
    /// `heads/<run>`, or `<kind>/<ordinal>`.
    rest: String,
    /// The kind and ordinal that a leaf's name tells; `None` for a branch.
    leaf: Option<(CheckpointKind, u64)>,
}

impl Catalog {
    /// Fetches other machines' checkpoints from any git server into a quarantine, and judges them.
    ///
    /// # Errors
    /// When there is no git; those of locks and of the store; `shutting-down` when `control` stopped it.
    pub(crate) fn fetch(&self, remote: &OsStr, control: Interrupt<'_>) -> Result<Fetched> {
        // One fetch at a time. The lock comes first in the lock order, so its holder waits without another lock.
        let ours = self.workspace.dir.join("fetch.lock");
        let lock = FileLock::acquire(&ours, Mode::Exclusive, "fetching", LOCK_WAIT)?;
        sweep_fetches(&self.workspace.dir, &lock)?;
        // Each fetch has a directory of its own: the git of a killed piton may still write into an older one.
        let dir = self.workspace.dir.join(format!("{FETCH}{}.git", unique_suffix()));
        let mut quarantine = self.store.quarantine(&dir, &self.known_refs()?)?;
        let progress = self.store.progress();
        let whole = fetch(&quarantine, remote, &self.workspace.id, progress)?;
        unless_stopped(control)?;
        let mut received = Received { whole, ..Received::default() };
        let mut accepted = Vec::new();
        let aside = quarantine.store()?;
        let mut review = ArrivalReview { aside, memory: self.memory(), good: HashSet::new(), scale: Scale::default() };
        let incoming = aside.refs("refs/incoming/")?;
        progress.begin(Stage::Judging, Amount::items(incoming.len() as u64));
        for entry in incoming {
            unless_stopped(control)?;
            progress.add(1, 0);
            let shown = entry.name.trim_start_matches("refs/incoming/").to_owned();
            let judged = parse(&entry.name).and_then(|arrived| {
                let id = entry.target.clone()?;
                let is_own = arrived.workspace == self.workspace.id;
                if is_own { Ok(None) } else { review.vouch(&arrived, id).map(|()| Some((arrived, id))) }
            });
            match judged {
                Ok(Some(good)) => accepted.push(good),
                Ok(None) => {}
                Err(why) => received.refused.push((shown, why)),
            }
        }
        let names = accepted.iter().enumerate().map(|(at, (_, id))| (format!("refs/good/{at}"), *id));
        quarantine.set_refs(&names.collect::<Vec<_>>())?;
        // Whole objects only, as the store's own packs have them. It fails if anything is missing.
        let mut repack = git::command(quarantine.git_dir(), None, GitReach::Here, &[("repack.writeBitmaps", "false")]);
        repack.args(["repack", "-a", "-d", "-f", "-l", "-q", "--depth=0", "--window=0"]);
        progress.begin(Stage::Packing, Amount::UNKNOWN);
        git::printed(&mut repack, None).or_else(|error| unless_stopped(control).and(Err(error)))?;
        Ok(Fetched { quarantine, accepted, received, _lock: lock })
    }

    /// Lists the refs that need not be sent: earlier fetched ones and this workspace's own.
    fn known_refs(&self) -> Result<Vec<(String, ObjectId)>> {
        let mut known = Vec::new();
        for prefix in [self.foreign_prefix(), self.branch_prefix(), self.leaf_prefix()] {
            for entry in self.refs(&prefix)? {
                if let (Ok(id), true) = (entry.target, is_ref_name(&entry.name))
                    && self.store.has(&id)?
                {
                    known.push((format!("refs/known/{}", entry.name), id));
                }
            }
        }
        Ok(known)
    }
}

impl Locked<'_> {
    /// Brings over the refs that were judged to be good, and nothing else. Those brought over before an error stay.
    pub(crate) fn take_over(&mut self, fetched: Fetched) -> Result<Received> {
        let Fetched { quarantine, accepted, mut received, _lock } = fetched;
        let (catalog, store) = (&*self.catalog, &self.catalog.store);
        let _shared = store.lock_shared("fetching", LOCK_WAIT)?;
        let prefix = catalog.foreign_prefix();
        let stand: BTreeMap<String, _> =
            store.refs(&prefix)?.into_iter().map(|entry| (entry.name.to_string(), entry.target)).collect();
        let mut arrivals = Vec::new();
        for (arrived, new) in accepted {
            let shown = format!("{}/{}", arrived.workspace, arrived.rest);
            let name = format!("{prefix}{shown}");
            match stand.get(&name) {
                Some(Ok(old)) if *old == new => received.known += 1,
                Some(Ok(old)) if arrived.leaf.is_some() || !comes_from(&quarantine, new, *old)? => {
                    let why = format!("it is not a descendant of the earlier one, {}, which is kept", old.short());
                    received.refused.push((shown, why));
                }
                Some(Err(why)) => {
                    received.refused.push((shown, format!("an earlier fetched checkpoint is damaged: {why}")));
                }
                old => {
                    let old = old.and_then(|old| old.as_ref().ok().copied());
                    arrivals.push(Arrival { name, old, new });
                    received.new.push(shown);
                }
            }
        }
        // Objects that no ref would name are not brought over: they may be what was forgotten here. Those of refs that stand
        // may be whole there and damaged here.
        if received.known > 0 || !arrivals.is_empty() {
            store.adopt(&quarantine, &arrivals)?;
            self.catalog.store.renew()?;
        }
        Ok(received)
    }
}

/// Fails if the fetch is to stop. Nothing was taken over by then.
fn unless_stopped(control: Interrupt<'_>) -> Result<()> {
    match control() {
        Flow::Continue => Ok(()),
        Flow::Stop => Err(Error::new(Code::ShuttingDown, "the fetch was stopped before anything was changed")),
    }
}

/// Has git fetch every run and checkpoint of other workspaces. Returns true if it got through.
fn fetch(quarantine: &Quarantine, remote: &OsStr, own: &str, progress: &Progress) -> Result<bool> {
    let ignored: Vec<String> = FSCK_IGNORED.iter().map(|name| format!("fetch.fsck.{name}")).collect();
    let mut settings = vec![
        ("fetch.fsckObjects", "true"),
        ("fetch.unpackLimit", "1"),
        // The server does not learn of this store's other workspaces.
        ("core.alternateRefsPrefixes", "refs/none/"),
    ];
    settings.extend(ignored.iter().map(|name| (name.as_str(), "ignore")));
    let mut command: Command = git::command(quarantine.git_dir(), None, GitReach::Server, &settings);
    command.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--refmap="]);
    if progress.read().is_some() {
        command.arg("--progress");
    }
    command.arg("--").arg(remote);
    command.args(["+refs/heads/piton/*:refs/incoming/heads/*", "+refs/piton/*:refs/incoming/leaves/*"]);
    command.args([format!("^refs/heads/piton/{own}/*"), format!("^refs/piton/{own}/*")]);
    Ok(transfer(&mut command, progress)?.1)
}

/// Reads a name as `piton push` makes them.
fn parse(name: &str) -> Result<ArrivedRef, String> {
    let odd = || "`piton push` does not create such a name".to_owned();
    let is_id = |id: &str| id.len() == 16 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<&str> = name.split('/').skip(2).collect();
    match parts.as_slice() {
        ["heads", workspace, run] if is_id(workspace) && is_run(run) => {
            Ok(ArrivedRef { workspace: (*workspace).to_owned(), rest: format!("heads/{run}"), leaf: None })
        }
        ["leaves", workspace, kind, number] if is_id(workspace) => {
            let kind = CheckpointKind::parse(kind).filter(|kind| !kind.is_typed()).ok_or_else(odd)?;
            let ordinal: u64 = number.parse().map_err(|_| odd())?;
            let rest = format!("{}/{ordinal}", kind.as_str());
            // `+1` and `01` parse as numbers, but are no names that piton writes.
            if !name.ends_with(&rest) {
                return Err(odd());
            }
            Ok(ArrivedRef { workspace: (*workspace).to_owned(), rest, leaf: Some((kind, ordinal)) })
        }
        _ => Err(odd()),
    }
}

fn is_run(run: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    run.len() <= 80 && run.bytes().all(plain) && !run.ends_with(".lock")
}

/// The judge of arrived refs.
struct ArrivalReview<'s> {
    /// The quarantine as a store.
    aside: &'s Store,
    /// Limits the memory that the paths of one tree may take.
    memory: u64,
    /// Typed checkpoints that were found good.
    good: HashSet<ObjectId>,
    /// The weights of trees that were met already.
    scale: Scale,
}

impl ArrivalReview<'_> {
    /// Passes a commit if it and all its ancestors are checkpoints of the workspace in its name, with trees that fit
    /// into memory.
    fn vouch(&mut self, named: &ArrivedRef, tip: ObjectId) -> Result<(), String> {
        let mut next = Some(tip);
        let mut passed = Vec::new();
        while let Some(id) = next.filter(|id| !self.good.contains(id)) {
            let commit = self.aside.read_commit(&id).map_err(|error| error.text())?;
            let record = Record::parse(&commit.message).ok_or_else(|| format!("{} is no checkpoint", id.short()))?;
            if record.workspace != named.workspace {
                return Err(format!("{} does not belong to the workspace in its name", id.short()));
            }
            let leaf = Some((record.kind, record.ordinal)).filter(|(kind, _)| !kind.is_typed());
            if leaf != named.leaf.filter(|_| id == tip) || commit.parents.len() > 1 {
                return Err(format!("{} is not the checkpoint in its name", id.short()));
            }
            if passed.len() >= LONGEST {
                return Err(format!("more than {LONGEST} checkpoints long"));
            }
            let most = tree_bound(self.memory);
            let read = |id: &ObjectId| self.aside.read_tree_within(id, most);
            self.scale.admit(&commit.tree, self.memory, &read).map_err(|error| error.text())?;
            // A typed checkpoint may be met again below another name; a leaf has one name.
            passed.push((id, leaf.is_none()));
            next = commit.parents.first().copied();
        }
        self.good.extend(passed.into_iter().filter(|(_, typed)| *typed).map(|(id, _)| id));
        Ok(())
    }
}

/// Returns true if `old` is an ancestor of `new`.
fn comes_from(quarantine: &Quarantine, new: ObjectId, old: ObjectId) -> Result<bool> {
    let mut merge_base = git::command(quarantine.git_dir(), None, GitReach::Here, &[]);
    merge_base.args(["merge-base", "--is-ancestor", &old.to_string(), &new.to_string()]);
    Ok(git::run(&mut merge_base, None)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_push() {
        let named = |rest: &str, leaf| ArrivedRef { workspace: "0123456789abcdef".into(), rest: rest.into(), leaf };
        let at = |rest: &str| parse(&format!("refs/incoming/{rest}"));
        assert_eq!(at("heads/0123456789abcdef/run-1.2"), Ok(named("heads/run-1.2", None)));
        let leaf = Some((CheckpointKind::PreRestore, 12));
        assert_eq!(at("leaves/0123456789abcdef/pre-restore/12"), Ok(named("pre-restore/12", leaf)));
        for odd in [
            "heads/0123456789abcdef/Run",
            "heads/0123456789abcdef/a/b",
            "heads/0123456789abcdef/a.lock",
            "heads/short/a",
            "heads/../../x",
            "leaves/0123456789abcdef/exit/1",
            "leaves/0123456789abcdef/manual/+1",
            "leaves/0123456789abcdef/manual/01",
            "leaves/0123456789ABCDEF/manual/1",
            "leaves/0123456789abcdef/manual",
            "other/0123456789abcdef/x",
        ] {
            assert!(at(odd).is_err(), "{odd}");
        }
    }
}
