//! Upkeep of the private layers: those that no checkpoint names or that are too old or too large go, and their store deletes what
//! nothing reaches.
//!
//! A layer lives until [`DAYS`] after the last checkpoint that names it. Layers of checkpoints that a person has pinned or
//! labelled, and of those that an undo or an open run needs, live as long as these. Where a workspace has more than
//! `ignored.total_mb`, the oldest go first. The same goes for all workspaces together, where the checkpoints and their layers take more
//! than `retention.total_mb`; an eighth of that is for layers in any case. The newest one always stays.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::retention::budgets;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, IoContext, Result};
use crate::model::checkpoint::Layer;
use crate::model::id::ObjectId;
use crate::model::policy::Policy;
use crate::store::{MarkedRoot, Marks, Store, Upkept, log};
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Interrupt;

/// The days for which a layer is kept after the last checkpoint that names it.
const DAYS: i64 = 7;

/// The milliseconds of a day.
const DAY: i64 = 86_400_000;

/// The owner of layers whose workspace is not known.
const NOBODY: u32 = u32::MAX - 1;

/// The ref of a layer.
struct LayerRef {
    sequence: u64,
    name: String,
    target: ObjectId,
}

impl Catalog {
    /// Returns the layers of this workspace, the oldest first.
    fn layer_refs(&self) -> Result<Vec<LayerRef>> {
        let Some(store) = self.local_if_any()? else { return Ok(Vec::new()) };
        let prefix = self.layer_prefix();
        let mut found: Vec<LayerRef> = store
            .refs(&prefix)?
            .into_iter()
            .filter_map(|entry| {
                let (name, target) = (entry.name.to_string(), entry.target.ok()?);
                Some(LayerRef { sequence: name.strip_prefix(&prefix)?.parse().ok()?, name, target })
            })
            .collect();
        found.sort_by_key(|layer| layer.sequence);
        Ok(found)
    }

    /// Returns the layers, by their sequence, each with true if it stays as long as the checkpoints that name it, and with the time
    /// of the last one.
    fn named_layers(&self) -> Result<BTreeMap<u64, (bool, String)>> {
        let all = self.all()?;
        let reasons = self.kept(true)?.reasons(&all.checkpoints);
        let mut named: BTreeMap<u64, (bool, String)> = BTreeMap::new();
        for (one, reason) in all.checkpoints.iter().zip(reasons) {
            let Some(Layer::Sequence(sequence)) = one.record.layer else { continue };
            let (stays, last) = named.entry(sequence).or_default();
            *stays |= reason.is_some() || one.record.is_labelled();
            if one.record.time > *last {
                last.clone_from(&one.record.time);
            }
        }
        Ok(named)
    }

    /// Returns the layers that no checkpoint names, and those that are too old.
    fn old_layers(&self) -> Result<Vec<LayerRef>> {
        let mut layers = self.layer_refs()?;
        // A checkpoint that cannot be read may name any of them.
        if layers.is_empty() || !self.all()?.broken.is_empty() {
            return Ok(Vec::new());
        }
        let named = self.named_layers()?;
        let since = rfc3339(now_ms() - DAYS * DAY);
        let ages = self.policy.retention.enabled;
        layers.retain(|layer| match named.get(&layer.sequence) {
            None => true,
            Some((stays, last)) => ages && !stays && *last < since,
        });
        Ok(layers)
    }

    /// Returns the layers that go by age, and then the oldest ones, until the rest takes at most `most` bytes. `bytes` has what each
    /// takes.
    fn going_layers(&self, bytes: &HashMap<ObjectId, u64>, most: u64) -> Result<Vec<LayerRef>> {
        let (mut going, mut layers, named) = (self.old_layers()?, self.layer_refs()?, self.named_layers()?);
        layers.retain(|layer| going.iter().all(|gone| gone.sequence != layer.sequence));
        let size = |layer: &LayerRef| bytes.get(&layer.target).copied().unwrap_or(0);
        let mut total = layers.iter().map(size).sum::<u64>();
        layers.pop();
        for layer in layers {
            let stays = named.get(&layer.sequence).is_some_and(|(stays, _)| *stays);
            if total > most && !stays {
                total -= size(&layer);
                going.push(layer);
            }
        }
        Ok(going)
    }
}

impl Locked<'_> {
    /// Drops the layers that no checkpoint names, and those that are too old.
    ///
    /// # Errors
    /// Returns the errors of reading refs and of writing.
    pub(crate) fn drop_old_layers(&self) -> Result<()> {
        self.drop_layers(&self.catalog.old_layers()?)
    }

    fn drop_layers(&self, going: &[LayerRef]) -> Result<()> {
        if !going.is_empty() {
            tracing::info!(layers = going.len(), "dropped private layers");
        }
        let refs: Vec<_> = going.iter().map(|layer| (layer.name.clone(), layer.target)).collect();
        self.catalog.drop_layers(&refs)
    }
}

/// Opens the store of private files, if there is one; its logs are applied with those of the other one.
///
/// # Errors
/// As [`Store::open_local`].
pub(super) fn opened(home: &Home) -> Result<Option<Store>> {
    if Store::has_local(home.path()) { Store::open_local(home.path()).map(Some) } else { Ok(None) }
}

/// Returns the layers that must stay, the newest first, with the places of their workspaces among `owners`.
///
/// # Errors
/// When refs or logs cannot be read.
pub(super) fn roots(home: &Home, store: &Store, owners: &[String]) -> Result<Vec<MarkedRoot>> {
    let numbers: HashMap<&str, u32> = owners.iter().map(String::as_str).zip(0..).collect();
    let sequence = |name: &str| name.rsplit('/').next().and_then(|last| last.parse::<u64>().ok()).unwrap_or(0);
    let mut refs = store.refs("refs/")?;
    refs.sort_by_key(|entry| std::cmp::Reverse(sequence(&entry.name)));
    let owner = |name: &str| name.split('/').nth(2).and_then(|id| numbers.get(id)).copied().unwrap_or(NOBODY);
    let of_ref = refs.into_iter().filter_map(|entry| {
        let owner = owner(&entry.name);
        Some(MarkedRoot { commit: entry.target.ok()?, owner })
    });
    let mut roots: Vec<MarkedRoot> = of_ref.collect();
    for (owner, id) in (0..).zip(owners) {
        let logged = logged(store, &home.workspaces().join(id))?.into_iter();
        roots.extend(logged.filter(|id| store.has(id).is_ok_and(|has| has)).map(|commit| MarkedRoot { commit, owner }));
    }
    Ok(roots)
}

/// Returns the commits of layers that refs and logs name, of one workspace or of all.
///
/// # Errors
/// When refs or logs cannot be read.
pub(super) fn roots_of(home: &Home, store: Option<&Store>, of: Option<&Workspace>) -> Result<Vec<ObjectId>> {
    let Some(store) = store else { return Ok(Vec::new()) };
    let prefix = of.map_or_else(|| "refs/".to_owned(), |of| format!("refs/piton/{}/", of.id));
    let mut roots: Vec<ObjectId> = store.refs(&prefix)?.into_iter().filter_map(|entry| entry.target.ok()).collect();
    let workspaces = of.map_or_else(|| Workspace::known(home), |of| Ok(vec![of.clone()]))?;
    for workspace in workspaces {
        roots.extend(logged(store, &workspace.dir)?.into_iter().filter(|id| store.has(id).is_ok_and(|has| has)));
    }
    Ok(roots)
}

/// Returns the commits that a workspace's log of private layers names.
fn logged(store: &Store, dir: &std::path::Path) -> Result<Vec<ObjectId>> {
    let path = dir.join(store.log_name());
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.at("reading", &path)?,
    };
    Ok(log::decode(&bytes).0.into_iter().flat_map(|record| record.old.into_iter().chain([record.new])).collect())
}

/// Deletes the layers of workspaces that have no records any more: nobody could name them.
fn drop_of_nobody(home: &Home, store: &Store) -> Result<()> {
    let is_gone = |name: &str| {
        let id = name.split('/').nth(2).unwrap_or_default();
        home.workspaces().join(id).symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let refs = store.refs("refs/piton/")?.into_iter().filter(|entry| is_gone(&entry.name));
    let refs: Vec<_> = refs.filter_map(|entry| Some((entry.name.to_string(), entry.target.ok()?))).collect();
    if refs.is_empty() { Ok(()) } else { store.delete_refs(&refs).map(drop) }
}

/// Adds what was done with the store of private files.
pub(super) fn add(done: &mut Upkept, more: Upkept) {
    done.deleted += more.deleted;
    done.freed += more.freed;
    done.written += more.written;
    done.extra = done.extra.max(more.extra);
    done.left = done.left.take().or(more.left);
    done.is_interrupted |= more.is_interrupted;
}

/// The weight of all layers.
pub(super) struct Weighed {
    marks: Marks,
    /// Bytes of each layer that no newer one has, by its commit.
    bytes: HashMap<ObjectId, u64>,
    /// Bytes of each workspace, in the order of the owners.
    pub taken: Vec<u64>,
}

fn weigh(home: &Home, store: &Store, owners: &[String], control: Interrupt<'_>) -> Result<Weighed> {
    let found = roots(home, store, owners)?;
    let marks = Marks::of(store, found.clone(), control)?;
    let charges = store.charges(&marks)?.of;
    let bytes = found.iter().map(|root| root.commit).zip(charges.iter().copied()).collect();
    let mut taken = vec![0; owners.len()];
    for (root, bytes) in found.iter().zip(&charges) {
        if let Some(taken) = taken.get_mut(root.owner as usize) {
            *taken += bytes;
        }
    }
    Ok(Weighed { marks, bytes, taken })
}

/// The layers that are to go, as far as that can be told before.
#[derive(Clone, Debug, Default)]
pub struct GoingLayers {
    /// Their refs.
    pub names: Vec<String>,
    /// The stored bytes that no other layer has.
    pub bytes: u64,
}

/// Returns the layers that [`keep_up`] would drop now, of workspaces that were weighed in this order; all together get at most
/// `room` bytes.
pub(super) fn going(home: &Home, weighed: &Weighed, policies: &[(&Workspace, &Policy)], room: u64) -> GoingLayers {
    let mut found = GoingLayers::default();
    let shares = budgets(&weighed.taken, &vec![0; weighed.taken.len()], room);
    for ((workspace, policy), share) in policies.iter().zip(shares) {
        let most = policy.limits.ignored.total_bytes.min(share);
        let catalog = Catalog::open(home, (*workspace).clone(), (*policy).clone());
        // Of a workspace that cannot be read nothing goes; it is named elsewhere.
        let Ok(layers) = catalog.and_then(|catalog| catalog.going_layers(&weighed.bytes, most)) else { continue };
        found.bytes += layers.iter().filter_map(|layer| weighed.bytes.get(&layer.target)).sum::<u64>();
        found.names.extend(layers.into_iter().map(|layer| layer.name));
    }
    found
}

/// Weighs the layers of workspaces; `None` where there are none.
///
/// # Errors
/// When refs, logs or layers cannot be read.
pub(super) fn weighed(home: &Home, workspaces: &[Workspace], control: Interrupt<'_>) -> Result<Option<Weighed>> {
    let owners: Vec<String> = workspaces.iter().map(|workspace| workspace.id.clone()).collect();
    opened(home)?.map(|store| weigh(home, &store, &owners, control)).transpose()
}

/// Returns the part of the bytes of all checkpoints that layers may take in any case.
pub(super) fn sure_room(total: u64) -> u64 {
    total / 8
}

/// Returns the bytes that layers may take, where the checkpoints take `stored` of all.
pub(super) fn room(total: u64, stored: u64) -> u64 {
    sure_room(total).max(total.saturating_sub(stored))
}

/// Has layers that are too large dropped, and the store of private files delete what nothing reaches. `policies` are the workspaces
/// whose settings are known. All layers together get at most `room` bytes, a fair share for each workspace. Where another process is
/// at work in one, that is left for another time.
///
/// # Errors
/// As [`Store::keep_up`].
pub(super) fn keep_up(
    home: &Home,
    workspaces: &[Workspace],
    (policies, room): (&[(&Workspace, &Policy)], u64),
    control: Interrupt<'_>,
) -> Result<Upkept> {
    if !Store::has_local(home.path()) {
        return Ok(Upkept::default());
    }
    let owners: Vec<String> = workspaces.iter().map(|workspace| workspace.id.clone()).collect();
    let mut store = Store::open_local(home.path())?;
    drop_of_nobody(home, &store)?;
    let Weighed { marks, bytes, taken } = weigh(home, &store, &owners, control)?;
    let shares = budgets(&taken, &vec![0; taken.len()], room);
    let mut is_dropped = false;
    for (workspace, policy) in policies {
        let Some(owner) = owners.iter().position(|id| *id == workspace.id) else { continue };
        let most = policy.limits.ignored.total_bytes.min(shares[owner]);
        let mut timeline = Timeline::open(home, (*workspace).clone(), (*policy).clone())?;
        match timeline.drop_layers(&bytes, most) {
            Err(error) if error.code() == Code::StoreLocked => {}
            dropped => {
                dropped?;
                is_dropped = true;
            }
        }
    }
    let mut marks = if is_dropped { Marks::of(&store, roots(home, &store, &owners)?, control)? } else { marks };
    store.keep_up(&mut marks, control)
}

impl Timeline {
    fn drop_layers(&mut self, bytes: &HashMap<ObjectId, u64>, most: u64) -> Result<()> {
        let locked = self.lock_within("dropping private layers", Duration::ZERO)?;
        locked.drop_layers(&locked.catalog.going_layers(bytes, most)?)
    }
}
