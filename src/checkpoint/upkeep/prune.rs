//! A prune: the plan over all workspaces of piton's home, and its execution.
//!
//! The plan is made without a lock, and every line has its reason. Only lines of the plan are carried out, and of those
//! only what may still go. Then the store deletes what no checkpoint reaches.

use std::collections::{HashMap, HashSet};

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::{AllCheckpoints, Catalog};
use crate::checkpoint::catalog::retention::{DropReason, Kept, Ranked, order, over, plan, shares};
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::{Policy, Retention};
use crate::store::{Charges, MarkedRoot, Marks, Store, Upkept, log};
use crate::sys::clock::{boot_id, now_ms};
use crate::sys::interrupt::Interrupt;

/// The owner of what belongs to no workspace, such as fetched checkpoints.
const NOBODY: u32 = u32::MAX - 1;

/// The limits that a person names for one prune, in the place of those in the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneWish {
    /// Days for which untyped checkpoints are kept.
    pub days: Option<u32>,
    /// Bytes that all workspaces may take together.
    pub total_bytes: Option<u64>,
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
    all: Vec<Checkpoint>,
    kept: Kept,
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
    /// Bytes that all checkpoints take now.
    pub stored: u64,
    /// Bytes by which those that stay are over the cap.
    pub over: u64,
    /// Sentences about workspaces of which nothing goes, because something cannot be read.
    pub faults: Vec<String>,
}

/// The result of a prune.
#[derive(Debug)]
pub struct Pruned {
    /// The checkpoints that are gone.
    pub gone: HashSet<ObjectId>,
    /// The work of the store.
    pub upkept: Upkept,
}

impl PrunePlan {
    /// Makes the plan. `policy` gives the settings of a workspace, and `total` the bytes that all may take together.
    ///
    /// # Errors
    /// When workspaces, packs or refs cannot be listed; `shutting-down` when `control` stopped it. A workspace that cannot
    /// be read is named, and nothing of it goes.
    pub fn make(
        home: &Home,
        policy: &dyn Fn(&Workspace) -> Result<Policy>,
        (wish, total): (PruneWish, u64),
        control: Interrupt<'_>,
    ) -> Result<PrunePlan> {
        let mut store = Store::open(home.path())?;
        store.recover(&home.workspaces(), &boot_id())?;
        let mut plan = PrunePlan { workspaces: Vec::new(), lines: Vec::new(), stored: 0, over: 0, faults: Vec::new() };
        for workspace in Workspace::known(home)? {
            let policy = policy(&workspace)?;
            let limits = wish.limits(&policy.retention);
            let catalog = Catalog::over(home, workspace, policy, store);
            let looked = catalog.all().and_then(|all| Ok((all, catalog.kept(true)?)));
            let Catalog { store: reused, workspace, policy, .. } = catalog;
            store = reused;
            let is_sized = policy.retention.enabled || wish.total_bytes.is_some();
            let (all, kept) = (Vec::new(), Kept::default());
            plan.add(PrunedWorkspace { workspace, policy, limits, is_sized, all, kept }, looked);
        }
        plan.weigh(&store, wish.total_bytes.unwrap_or(total), control)?;
        Ok(plan)
    }

    fn add(&mut self, mut of: PrunedWorkspace, looked: Result<(std::sync::Arc<AllCheckpoints>, Kept)>) {
        let name = of.workspace.path.display();
        match looked {
            Err(error) => {
                self.faults.push(format!("{name}: {}", error.text()));
                (of.limits.enabled, of.is_sized) = (false, false);
            }
            Ok((known, kept)) => {
                if let Some(broken) = known.broken.first() {
                    self.faults.push(format!("{name}: {broken}"));
                    (of.limits.enabled, of.is_sized) = (false, false);
                }
                (of.all, of.kept) = (known.checkpoints.clone(), kept);
            }
        }
        self.workspaces.push(of);
    }

    /// Chooses what goes by counts and ages, and then by size.
    fn weigh(&mut self, store: &Store, total: u64, control: Interrupt<'_>) -> Result<()> {
        let now = now_ms();
        let mut going: Vec<HashMap<ObjectId, DropReason>> = Vec::new();
        let mut staying: Vec<Vec<Ranked>> = Vec::new();
        for of in &self.workspaces {
            let gone: HashMap<_, _> = plan(&of.all, &of.kept, &of.limits, Some(now)).into_iter().collect();
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
        self.stored = charges.iter().sum::<u64>() + shared;
        let mut rest = &charges[..stay];
        let mut parts: Vec<&[u64]> = Vec::new();
        for ranked in &staying {
            let (own, after) = rest.split_at(ranked.len());
            parts.push(own);
            rest = after;
        }
        // Workspaces of which nothing goes leave less for the others.
        let is_bound = |at: usize| !self.workspaces[at].is_sized;
        let own = |at: usize| parts[at].iter().sum::<u64>();
        let fixed: u64 = (0..parts.len()).filter(|at| is_bound(*at)).map(own).sum();
        let fixed = fixed + shared + charges[stay..others].iter().sum::<u64>();
        let free: Vec<usize> = (0..parts.len()).filter(|at| !is_bound(*at)).collect();
        let owns: Vec<u64> = free.iter().map(|at| own(*at)).collect();
        let mut left: u64 = fixed + owns.iter().sum::<u64>();
        for (at, share) in free.iter().zip(shares(&owns, total.saturating_sub(fixed))) {
            let of = &self.workspaces[*at];
            let charged: HashMap<usize, u64> =
                staying[*at].iter().map(|one| one.at).zip(parts[*at].iter().copied()).collect();
            for place in over(&staying[*at], parts[*at], share) {
                let id = of.all[place].id;
                left -= charged[&place];
                bytes.insert(id, charged[&place]);
                going[*at].insert(id, DropReason::TotalMb);
            }
        }
        self.over = left.saturating_sub(total);
        for ((workspace, of), gone) in self.workspaces.iter().enumerate().zip(&going) {
            for checkpoint in &of.all {
                let Some(reason) = gone.get(&checkpoint.id).copied() else { continue };
                let bytes = bytes.get(&checkpoint.id).copied().unwrap_or_default();
                self.lines.push(PruneLine { workspace, checkpoint: checkpoint.clone(), reason, bytes });
            }
        }
        Ok(())
    }

    /// Returns the digest of the plan: of the checkpoints that are to go.
    ///
    /// # Errors
    /// When it cannot be computed.
    pub fn digest(&self) -> Result<String> {
        let line =
            |line: &PruneLine| format!("{} {}\n", self.workspaces[line.workspace].workspace.id, line.checkpoint.id);
        let text: String = self.lines.iter().map(line).collect();
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
        Err(Error::new(Code::StalePlan, "the plan is another one by now; nothing was dropped")
            .hint("look at it with `piton prune --dry-run`, and give the digest of that"))
    }

    /// Drops the checkpoints of the plan that may still go, and has the store delete what nothing reaches.
    ///
    /// # Errors
    /// Those of locks and of writing; what was dropped by then is gone.
    pub fn carry_out(&self, home: &Home, control: Interrupt<'_>) -> Result<Pruned> {
        let mut gone = HashSet::new();
        for (at, of) in self.workspaces.iter().enumerate() {
            let lines = self.lines.iter().filter(|line| line.workspace == at);
            let going: Vec<(ObjectId, DropReason)> = lines.map(|line| (line.checkpoint.id, line.reason)).collect();
            if !going.is_empty() {
                let mut timeline = Timeline::open(home, of.workspace.clone(), of.policy.clone())?;
                gone.extend(timeline.drop_all(&going, control)?);
            }
        }
        Ok(Pruned { gone, upkept: keep_up(home, control)? })
    }
}

/// Has the store delete what nothing reaches, and pack the rest densely.
///
/// # Errors
/// As [`Store::keep_up`].
pub fn keep_up(home: &Home, control: Interrupt<'_>) -> Result<Upkept> {
    let mut store = Store::open(home.path())?;
    store.recover(&home.workspaces(), &boot_id())?;
    let roots = roots(home, &store)?;
    let mut marks = Marks::of(&store, roots, control)?;
    store.keep_up(&mut marks, control)
}

/// Returns everything that must stay: the objects of refs, those that a log moves refs to, and those that the records of
/// workspaces name, as far as they are there.
fn roots(home: &Home, store: &Store) -> Result<Vec<MarkedRoot>> {
    let mut ids: Vec<ObjectId> = store.refs("refs/")?.into_iter().filter_map(|entry| entry.target.ok()).collect();
    ids.reverse();
    let mut named = Vec::new();
    for workspace in Workspace::known(home)? {
        let path = workspace.dir.join("log");
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.at("reading", &path)?,
        };
        named.extend(log::decode(&bytes).0.into_iter().flat_map(|record| record.old.into_iter().chain([record.new])));
        named.extend(super::drops::named(&workspace.dir)?);
    }
    for id in named {
        // One that is lost holds nothing, and must not keep all else from being deleted.
        ids.extend(Some(id).filter(|_| store.has(&id).is_ok_and(|has| has)));
    }
    Ok(ids.into_iter().map(|commit| MarkedRoot { commit, owner: 0 }).collect())
}
