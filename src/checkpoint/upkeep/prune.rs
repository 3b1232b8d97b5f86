//! A prune: the plan over all workspaces of piton's home, and its execution.
//!
//! The plan is made without a lock, and every line has its reason. Only lines of the plan are carried out, and of those
//! only what may still go. Then the store deletes what no checkpoint reaches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::layers::GoingLayers;
use super::schedule::Looks;
use super::usage::{Usage, WorkspaceUsage};
use super::{copies, layers, orphans, refs};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::numbers::Noted;
use crate::checkpoint::catalog::open::{AllCheckpoints, Catalog};
use crate::checkpoint::catalog::retention::{DropReason, Kept, Ranked, budgets, order, over, plan};
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::leftovers::sweep_all;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::{Policy, Retention};
use crate::store::{Charges, MarkedRoot, Marks, Store, Upkept, log};
use crate::sys::clock::{boot_id, now_ms};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::WorkControl;

/// The owner of what belongs to no workspace, such as fetched checkpoints.
const NOBODY: u32 = u32::MAX - 1;

/// The limits that a person names for one prune, in the place of those in the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneWish {
    /// Days for which untyped checkpoints are kept.
    pub days: Option<u32>,
    /// Bytes that all workspaces may take together.
    pub total_bytes: Option<u64>,
    /// True if workspaces stay whose directories are gone.
    pub keep_orphans: bool,
}

impl PruneWish {
    /// Returns the limits of a workspace. Where retention is switched off, only those of the wish count.
    fn limits(self, of: &Retention) -> Retention {
        let unlimited = Retention {
            enabled: self.days.is_some(),
            auto_per_run: u32::MAX,
            per_workspace: u32::MAX,
            labelled: u32::MAX,
            days: None,
            runs_days: None,
            ..*of
        };
        let limits = if of.enabled { *of } else { unlimited };
        Retention { days: self.days.or(limits.days), ..limits }
    }
}

/// A workspace as a plan saw it.
#[derive(Debug)]
pub struct PrunedWorkspace {
    /// The workspace.
    pub workspace: Workspace,
    policy: Policy,
    limits: Retention,
    /// True if its size may drop some of it.
    is_sized: bool,
    /// True if all of it goes, with its records, because its directory is gone.
    goes_whole: bool,
    all: Vec<Checkpoint>,
    kept: Kept,
    /// True if many of its commits were read from the store, which the next process can be spared.
    has_unkept_commits: bool,
}

/// A checkpoint that is to go.
#[derive(Clone, Debug)]
pub struct PruneLine {
    /// The place of its workspace in the plan.
    pub workspace: usize,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The reason.
    pub reason: DropReason,
    /// The stored bytes that no other workspace and no checkpoint that stays has.
    pub bytes: u64,
}

/// The plan of a prune.
#[derive(Debug)]
pub struct PrunePlan {
    /// All workspaces, the oldest first.
    pub workspaces: Vec<PrunedWorkspace>,
    /// The checkpoints that are to go, by workspace and number.
    pub lines: Vec<PruneLine>,
    /// The captures of private files that are to go, though checkpoints that stay may name them.
    pub layers: GoingLayers,
    /// Bytes that all checkpoints take now.
    pub stored: u64,
    /// Bytes that all may take.
    total: u64,
    /// Bytes by which those that stay are over the cap.
    pub over: u64,
    /// The number of workspaces of which nothing more can go, if those that stay are over the cap.
    pub at_floor: u64,
    /// Sentences about workspaces of which nothing goes, because something cannot be read.
    pub faults: Vec<String>,
}

/// The result of a prune.
#[derive(Debug)]
pub struct Pruned {
    /// The checkpoints that are gone.
    pub gone: HashSet<ObjectId>,
    /// The workspaces of which nothing went, because another process was at work there.
    pub busy: u64,
    /// The work of the store.
    pub upkept: Upkept,
}

impl PrunePlan {
    /// Makes the plan. `policy` gives the settings of a workspace, and `total` the bytes that all may take together.
    /// `looks` judges what would go for its age.
    ///
    /// # Errors
    /// When workspaces, packs or refs cannot be listed; `shutting-down` when `control` stopped it. A workspace that cannot
    /// be read is named, and nothing of it goes.
    pub fn make(
        home: &Home,
        policy: &dyn Fn(&Workspace) -> Result<Policy>,
        (wish, total): (PruneWish, u64),
        looks: &mut Looks,
        control: WorkControl<'_>,
    ) -> Result<PrunePlan> {
        let mut store = Store::open(home.path())?;
        store.report_to(control.progress);
        store.recover(&home.workspaces(), &boot_id())?;
        let (workspaces, lines, faults) = (Vec::new(), Vec::new(), Vec::new());
        let mut plan = PrunePlan {
            workspaces,
            lines,
            layers: GoingLayers::default(),
            stored: 0,
            total: wish.total_bytes.unwrap_or(total),
            over: 0,
            at_floor: 0,
            faults,
        };
        let known = Workspace::known(home)?;
        let orphans = orphans::proven(&known);
        for workspace in known.iter().cloned() {
            if control.flow() == Flow::Stop {
                return Err(Error::new(Code::ShuttingDown, "the planning of a prune was stopped"));
            }
            let policy = policy(&workspace)?;
            let limits = wish.limits(&policy.retention);
            let catalog = Catalog::over(home, workspace, policy, store);
            let looked = catalog.all().and_then(|all| Ok((all, catalog.kept(true)?)));
            let has_unkept_commits = catalog.has_unkept_commits();
            let Catalog { store: reused, workspace, policy, .. } = catalog;
            store = reused;
            let is_sized = policy.retention.enabled || wish.total_bytes.is_some();
            let is_orphan = policy.retention.enabled && orphans.contains(workspace.id.as_str());
            let goes_whole = is_orphan && looks.may_go_as_orphan(&workspace.id, policy.retention.orphans);
            let goes_whole = goes_whole && !wish.keep_orphans;
            let (all, kept) = (Vec::new(), Kept::default());
            let of = PrunedWorkspace { workspace, policy, limits, is_sized, goes_whole, all, kept, has_unkept_commits };
            plan.add(of, looked);
        }
        let weighed = layers::weighed(home, &known, control.interrupt)?;
        let private = weighed.as_ref().map_or(0, |weighed| weighed.taken.iter().sum());
        let stay = plan.weigh(&store, private, looks, control.interrupt)?;
        let policies: Vec<_> = plan.workspaces.iter().map(|of| (&of.workspace, &of.policy)).collect();
        let going = |weighed| layers::going(home, weighed, &policies, layers::room(plan.total, stay));
        plan.layers = weighed.as_ref().map(going).unwrap_or_default();
        Ok(plan)
    }

    /// Returns true if nothing goes.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.layers.names.is_empty()
    }

    fn add(&mut self, mut of: PrunedWorkspace, looked: Result<(std::sync::Arc<AllCheckpoints>, Kept)>) {
        let name = of.workspace.path.display();
        match looked {
            Err(error) => {
                self.faults.push(format!("{name}: {}", error.text()));
                (of.limits.enabled, of.is_sized, of.goes_whole) = (false, false, false);
            }
            Ok((known, kept)) => {
                if let Some(broken) = known.broken.first() {
                    self.faults.push(format!("{name}: {broken}"));
                    (of.limits.enabled, of.is_sized, of.goes_whole) = (false, false, false);
                }
                // A person has said that one is to stay.
                of.goes_whole &= !known.checkpoints.iter().any(|one| kept.pins.holds(&one.record));
                (of.all, of.kept) = (known.checkpoints.clone(), kept);
            }
        }
        self.workspaces.push(of);
    }

    /// Chooses what goes by counts and ages, and then by size. `private` has the bytes of all private layers. Returns the bytes
    /// that the checkpoints which stay take without them.
    fn weigh(&mut self, store: &Store, private: u64, looks: &mut Looks, control: Interrupt<'_>) -> Result<u64> {
        let now = now_ms();
        // Layers that take more are dropped for themselves.
        let total = self.total.saturating_sub(private.min(layers::sure_room(self.total)));
        let mut going: Vec<HashMap<ObjectId, DropReason>> = Vec::new();
        let mut staying: Vec<Vec<Ranked>> = Vec::new();
        for of in &self.workspaces {
            let gone: HashMap<_, _> = match of.goes_whole {
                true => of.all.iter().map(|one| (one.id, DropReason::Orphans)).collect(),
                false => {
                    let planned = plan(&of.all, &of.kept, &of.limits, Some(now)).into_iter();
                    planned.filter(|(id, reason)| !reason.is_by_age() || looks.may_go(id)).collect()
                }
            };
            let mut ranked = order(&of.all, &of.kept);
            ranked.retain(|one| !gone.contains_key(&of.all[one.at].id));
            staying.push(ranked);
            going.push(gone);
        }
        let mut roots = Vec::new();
        for ((owner, of), ranked) in (0..).zip(&self.workspaces).zip(&staying) {
            roots.extend(ranked.iter().map(|one| MarkedRoot { commit: of.all[one.at].id, owner }));
        }
        let stay = roots.len();
        let known: HashSet<ObjectId> = self.workspaces.iter().flat_map(|of| of.all.iter().map(|one| one.id)).collect();
        let refs = store.refs("refs/")?.into_iter().filter_map(|entry| entry.target.ok());
        roots.extend(refs.filter(|id| !known.contains(id)).map(|commit| MarkedRoot { commit, owner: NOBODY }));
        let others = roots.len();
        for ((owner, of), gone) in (0..).zip(&self.workspaces).zip(&going) {
            roots.extend(
                of.all.iter().filter(|one| gone.contains_key(&one.id)).map(|one| MarkedRoot { commit: one.id, owner }),
            );
        }
        let marks = Marks::of(store, roots.clone(), control)?;
        let Charges { of: charges, shared } = store.charges(&marks)?;
        let mut bytes: HashMap<ObjectId, u64> =
            roots[others..].iter().map(|root| root.commit).zip(charges[others..].iter().copied()).collect();
        self.stored = charges.iter().sum::<u64>() + shared + private;
        let mut rest = &charges[..stay];
        let mut parts: Vec<&[u64]> = Vec::new();
        for ranked in &staying {
            let (own, after) = rest.split_at(ranked.len());
            parts.push(own);
            rest = after;
        }
        let fixed = shared + charges[stay..others].iter().sum::<u64>();
        let owns: Vec<u64> = parts.iter().map(|part| part.iter().sum()).collect();
        let staying_of = |at: usize| staying[at].iter().zip(parts[at]).filter(|(one, _)| one.stays);
        let floor = |at: usize| match self.workspaces[at].is_sized {
            true => staying_of(at).map(|(_, bytes)| bytes).sum(),
            false => owns[at],
        };
        let floors: Vec<u64> = (0..owns.len()).map(floor).collect();
        let budgets = budgets(&owns, &floors, total.saturating_sub(fixed));
        let mut left: u64 = fixed + owns.iter().sum::<u64>();
        for (at, (ranked, part)) in staying.iter().zip(&parts).enumerate() {
            let charged: HashMap<usize, u64> = ranked.iter().map(|one| one.at).zip(part.iter().copied()).collect();
            for place in over(ranked, part, budgets[at]) {
                let id = self.workspaces[at].all[place].id;
                left -= charged[&place];
                bytes.insert(id, charged[&place]);
                going[at].insert(id, DropReason::TotalMb);
            }
        }
        self.over = left.saturating_sub(total);
        if self.over > 0 {
            self.at_floor =
                floors.iter().zip(&budgets).filter(|(floor, budget)| **floor > 0 && floor >= budget).count() as u64;
        }
        for ((workspace, of), gone) in self.workspaces.iter().enumerate().zip(&going) {
            for checkpoint in &of.all {
                let Some(reason) = gone.get(&checkpoint.id).copied() else { continue };
                let bytes = bytes.get(&checkpoint.id).copied().unwrap_or_default();
                self.lines.push(PruneLine { workspace, checkpoint: checkpoint.clone(), reason, bytes });
            }
        }
        Ok(left)
    }

    /// Returns the digest of the plan: of the checkpoints and the captures of private files that are to go.
    ///
    /// # Errors
    /// When it cannot be computed.
    pub fn digest(&self) -> Result<String> {
        let line =
            |line: &PruneLine| format!("{} {}\n", self.workspaces[line.workspace].workspace.id, line.checkpoint.id);
        let layers = self.layers.names.iter().map(|name| format!("{name}\n"));
        let text: String = self.lines.iter().map(line).chain(layers).collect();
        Ok(ObjectId::of(ObjectKind::Blob, format!("piton prune 1\n{text}").as_bytes())?.to_string())
    }

    /// Refuses if a person has agreed to another plan.
    ///
    /// # Errors
    /// `stale-plan`.
    pub fn require(&self, digest: &str) -> Result<()> {
        if self.digest()? == digest {
            return Ok(());
        }
        Err(Error::new(Code::StalePlan, "the plan has changed since it was shown; nothing was dropped")
            .hint("check it with `piton store prune --dry-run` and give the digest of that plan"))
    }

    /// Drops the checkpoints of the plan that may still go, and has the store delete what nothing reaches. A workspace in
    /// which another process is at work for longer than `patience` is left for another time.
    ///
    /// # Errors
    /// Returns the errors of locks and of writing; what was dropped by then is gone.
    pub fn carry_out(&self, home: &Home, patience: Duration, control: WorkControl<'_>) -> Result<Pruned> {
        let (mut gone, mut busy) = (HashSet::new(), 0);
        for (at, of) in self.workspaces.iter().enumerate() {
            let lines = self.lines.iter().filter(|line| line.workspace == at);
            let going: Vec<(ObjectId, DropReason)> = lines.map(|line| (line.checkpoint.id, line.reason)).collect();
            if control.flow() == Flow::Stop || (going.is_empty() && !of.goes_whole) {
                continue;
            }
            // A directory that is there again is no orphan.
            if of.goes_whole && orphans::proven(std::slice::from_ref(&of.workspace)).is_empty() {
                continue;
            }
            let dropped = match of.goes_whole {
                true => orphans::remove(home, &of.workspace, &of.policy, (DropReason::Orphans.rule(), patience)),
                false => Timeline::open(home, of.workspace.clone(), of.policy.clone())
                    .and_then(|mut timeline| timeline.drop_all(&going, patience, control.interrupt)),
            };
            match dropped {
                Err(error) if error.code() == Code::StoreLocked => busy += 1,
                dropped => gone.extend(dropped?),
            }
        }
        let upkept = keep_up(home, Some((self, &gone)), control)?;
        Ok(Pruned { gone, busy, upkept })
    }

    /// Returns what the workspaces take, by the bytes that each owner was charged with.
    fn usage(&self, gone: &HashSet<ObjectId>, charged: &Charged) -> Usage {
        let mut workspaces = BTreeMap::new();
        for of in &self.workspaces {
            let stays = of.all.iter().filter(|one| !gone.contains(&one.id) && one.record.kind().is_listed());
            let (own, shared) = charged.of.get(&of.workspace.id).copied().unwrap_or_default();
            let (checkpoints, by_then) = (stays.count() as u64, Noted::read(&of.workspace.dir).stored);
            workspaces.insert(of.workspace.id.clone(), WorkspaceUsage { own, shared, checkpoints, by_then });
        }
        let waiting = self.lines.iter().filter(|line| !gone.contains(&line.checkpoint.id)).map(|line| line.bytes);
        let floor = if self.over > 0 { charged.stored.saturating_sub(waiting.sum()) } else { 0 };
        let (stored, shared) = (charged.stored, charged.shared);
        Usage { at: now_ms(), stored, shared, floor, at_floor: self.at_floor, workspaces }
    }
}

/// The bytes that workspaces take.
struct Charged {
    /// Own bytes and shared ones, by the id of a workspace.
    of: HashMap<String, (u64, u64)>,
    stored: u64,
    shared: u64,
}

/// The commits of checkpoints that are gone.
pub type DroppedIds = HashSet<ObjectId>;

/// Has the store delete what nothing reaches, and pack the rest densely. After the drops of a plan, it is written down what
/// the workspaces take now.
///
/// # Errors
/// As [`Store::keep_up`].
pub fn keep_up(home: &Home, dropped: Option<(&PrunePlan, &DroppedIds)>, control: WorkControl<'_>) -> Result<Upkept> {
    let mut store = Store::open(home.path())?;
    store.report_to(control.progress);
    let control = control.interrupt;
    store.recover(&home.workspaces(), &boot_id())?;
    sweep_all(home)?;
    if let Some(left) = refs::lost(home, &store)? {
        return Ok(Upkept { left: Some(left), ..Upkept::default() });
    }
    let workspaces = Workspace::known(home)?;
    refs::pack(&store, &workspaces.iter().collect::<Vec<_>>(), refs::FEW, control)?;
    let owners: Vec<String> = workspaces.iter().map(|workspace| workspace.id.clone()).collect();
    let roots = roots(home, &store, &owners)?;
    let mut marks = Marks::of(&store, roots.clone(), control)?;
    let mut upkept = store.keep_up(&mut marks, control)?;
    let policies: Vec<(&Workspace, &Policy)> = match dropped {
        Some((plan, _)) => plan.workspaces.iter().map(|of| (&of.workspace, &of.policy)).collect(),
        None => Vec::new(),
    };
    let known: Vec<&str> = owners.iter().map(String::as_str).collect();
    let policies: Vec<_> = policies.into_iter().filter(|(of, _)| known.contains(&of.id.as_str())).collect();
    let Some((plan, gone)) = dropped else {
        layers::add(&mut upkept, layers::keep_up(home, &workspaces, (&policies, u64::MAX), control)?);
        return Ok(upkept);
    };
    let (Charges { of: charges, shared }, shares) = store.charges_and_shares(&marks)?;
    let stored = charges.iter().sum::<u64>() + shared;
    let room = (&policies[..], layers::room(plan.total, stored));
    layers::add(&mut upkept, layers::keep_up(home, &workspaces, room, control)?);
    let share = |(owner, id): (u32, &String)| (id.clone(), (0, shares.get(&owner).copied().unwrap_or(0)));
    let mut of: HashMap<String, (u64, u64)> = (0..).zip(&owners).map(share).collect();
    for (root, bytes) in roots.iter().zip(&charges) {
        if let Some(id) = owners.get(root.owner as usize) {
            of.entry(id.clone()).or_default().0 += bytes;
        }
    }
    let private = layers::weighed(home, &workspaces, control)?.map_or_else(Vec::new, |weighed| weighed.taken);
    for (id, bytes) in owners.iter().zip(&private) {
        of.entry(id.clone()).or_default().0 += bytes;
    }
    let charged = Charged { of, stored: stored + private.iter().sum::<u64>(), shared };
    let usage = plan.usage(gone, &charged);
    usage.write(home)?;
    copies::shrink(&store, &workspaces, &usage, control)?;
    keep_commits(home, plan);
    Ok(upkept)
}

/// Has what commits say kept for the workspaces of which much was read: only now are these commits in packs.
fn keep_commits(home: &Home, plan: &PrunePlan) {
    for of in plan.workspaces.iter().filter(|of| of.has_unkept_commits) {
        let kept =
            Catalog::open(home, of.workspace.clone(), of.policy.clone()).and_then(|catalog| catalog.all().map(drop));
        if let Err(error) = kept {
            tracing::debug!(%error, "the commits' data was not cached");
        }
    }
}

/// Returns everything that must stay, with the place of its workspace among `owners`. These are the objects of refs, those that
/// a log moves refs to, and those that the records of workspaces name, as far as they are there.
pub(super) fn roots(home: &Home, store: &Store, owners: &[String]) -> Result<Vec<MarkedRoot>> {
    let numbers: HashMap<&str, u32> = owners.iter().map(String::as_str).zip(0..).collect();
    let of_ref = |name: &str| name.split('/').nth(2).and_then(|id| numbers.get(id)).copied().unwrap_or(NOBODY);
    let refs = store.refs("refs/")?.into_iter();
    let mut roots: Vec<MarkedRoot> =
        refs.filter_map(|entry| Some(MarkedRoot { commit: entry.target.ok()?, owner: of_ref(&entry.name) })).collect();
    roots.reverse();
    for (owner, id) in (0..).zip(owners) {
        let dir = home.workspaces().join(id);
        let path = dir.join("log");
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.at("reading", &path)?,
        };
        let logged = log::decode(&bytes).0.into_iter().flat_map(|record| record.old.into_iter().chain([record.new]));
        let named: Vec<ObjectId> = logged.chain(super::drops::named(&dir)?).collect();
        // One that is lost holds nothing, and must not keep all else from being deleted.
        let held = named.into_iter().filter(|id| store.has(id).is_ok_and(|has| has));
        roots.extend(held.map(|commit| MarkedRoot { commit, owner }));
    }
    let forgetting = super::forget::pending(home)?.into_iter().filter(|id| store.has(id).is_ok_and(|has| has));
    roots.extend(forgetting.map(|commit| MarkedRoot { commit, owner: NOBODY }));
    Ok(roots)
}
