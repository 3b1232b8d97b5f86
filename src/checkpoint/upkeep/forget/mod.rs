//! Forgets content on purpose: takes it out of every checkpoint, and proves that its bytes are gone.
//!
//! 1. The plan: every checkpoint that holds the content is written anew in memory (`rewrite`). Nothing changes.
//! 2. The new objects are stored, and the note of this forget (`intent`) tells which commits they replace.
//! 3. Each workspace, under its lock: checkpoints that were taken meanwhile are written anew too; the ledger gets the old
//!    ids; the log is flushed; the refs move; journal, state and runs are edited (`records`).
//! 4. The store deletes what nothing reaches any more, with a new epoch, so that no other process trusts what it knows.
//! 5. Derived files are removed, the note too, and everything is read once more (`proof`).
//!
//! Killed or stopped at any point, the note stays, and the next `forget`, `prune` or round of maintenance begins again with what
//! the note says. Each step does nothing where it was done before.
//!
//! Lock order: the lock of forgetting → that of maintenance → workspace → store. While the lock of maintenance is held, no
//! round can delete the new objects, which nothing names yet. *Invariant:* the secret is never written down.

mod intent;
mod pace;
mod proof;
mod records;
mod rewrite;
mod workspace;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::checkpoint::catalog::dropped::{DroppedCheckpoint, FORGET, Ledger};
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::leftovers::sweep_removed;
use crate::checkpoint::records::lock::{LOCK_WAIT, WorkspaceLock};
use crate::checkpoint::records::repositories;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::repository::operations::forget_git;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::meta::unquote;
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::model::sought::SecretPattern;
use crate::store::{Batch, MarkedRoot, Marks, Store, Upkept, log};
use crate::sys::clock::{boot_id, now_ms};
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::interrupt::Flow;

use super::prune::roots;
use super::{layers, refs};
use intent::{ForgetIntent, IntentKind};
use pace::go_on;
use proof::{Trace, prove};
use records::{RecordEdit, flush, holds};
use rewrite::{Rewriter, Victims};

pub(super) use intent::pending;
pub use intent::unfinished;
pub use pace::Pace;
pub use proof::ForgetProof;
pub use rewrite::RewrittenCheckpoint;
pub use workspace::{ForgottenWorkspace, WorkspacePlan};

/// The pause between two tries.
const AGAIN: Duration = Duration::from_millis(100);

/// The content to forget.
pub enum ForgetWish {
    /// Paths of the one workspace, each with all below it.
    Paths(Vec<RelPath>),
    /// All content that holds a secret.
    Secret(SecretPattern),
}

/// The plan of a forget.
pub struct ForgetPlan<'p> {
    /// The one workspace that it is about; `None` for all.
    of: Option<Workspace>,
    rewriter: Rewriter<'p>,
    pace: Pace<'p>,
    /// The checkpoints that change, by workspace and number.
    pub checkpoints: Vec<RewrittenCheckpoint>,
    /// The files that hold the content now, so that the next checkpoint captures it again.
    pub present: Vec<PathBuf>,
    /// The kept repositories that go too: nobody looks into their objects.
    pub repositories: Vec<PathBuf>,
}

/// The result of a forget.
#[derive(Debug)]
pub struct Forgotten {
    /// The checkpoints that were replaced, by old and new id.
    pub replaced: Vec<(ObjectId, ObjectId)>,
    /// The work of the store.
    pub upkept: Upkept,
    /// The proof.
    pub proof: ForgetProof,
}

impl<'p> ForgetPlan<'p> {
    /// Makes the plan for one workspace, or for all. No list of a stored tree's paths takes more than `memory` bytes.
    /// Completes a forget of before first.
    ///
    /// # Errors
    /// When workspaces, refs or records cannot be read; `too-large`.
    pub fn make(
        home: &Home,
        of: Option<Workspace>,
        wish: ForgetWish,
        memory: u64,
        pace: Pace<'p>,
    ) -> Result<ForgetPlan<'p>> {
        complete(home, pace)?;
        let store = opened(home, pace)?;
        let victims = match wish {
            ForgetWish::Paths(paths) => Victims::Paths(paths),
            ForgetWish::Secret(pattern) => Victims::Secret(pattern),
        };
        let rewriter = Rewriter::new(store, victims, memory, pace.control);
        let mut rewriter = rewriter.with_local(layers::opened(home)?);
        let roots = roots_of(home, &rewriter.store, of.as_ref())?;
        rewriter.rewrite(roots, &mut |_, _, _| Ok(()))?;
        let roots = layers::roots_of(home, rewriter.local.as_ref(), of.as_ref())?;
        rewriter.rewrite_local(roots, &mut |_, _, _| Ok(()))?;
        let mut checkpoints = rewriter.changed.clone();
        checkpoints.sort_by_cached_key(|one| one.record.as_ref().map(|it| (it.workspace.clone(), it.ordinal)));
        let mut plan = ForgetPlan { of, rewriter, pace, checkpoints, present: Vec::new(), repositories: Vec::new() };
        plan.present = plan.files_now(home)?;
        for workspace in scope(home, plan.of.as_ref())? {
            let kept = repositories::of(&workspace.dir).into_iter();
            let (kind, is_nothing) = (IntentKind::of(&plan.rewriter), plan.checkpoints.is_empty());
            let kept = kept.filter(|kept| kind.takes(&kept.path, is_nothing));
            plan.repositories.extend(kept.map(|kept| kept.path.under(&workspace.path)));
        }
        Ok(plan)
    }

    /// Returns the number of versions of files that go, and their bytes.
    pub fn versions(&self) -> (u64, u64) {
        (self.rewriter.gone.len() as u64, self.rewriter.gone.values().sum())
    }

    /// Lists what could not be read, or cannot be taken out.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.rewriter.faults.iter().map(String::as_str)
    }

    /// Returns the files in the workspaces that hold the content now.
    fn files_now(&self, home: &Home) -> Result<Vec<PathBuf>> {
        let mut present = Vec::new();
        for workspace in scope(home, self.of.as_ref())? {
            for path in &self.rewriter.paths {
                let path = path.under(&workspace.path);
                let Ok(facts) = path.symlink_metadata() else { continue }; // it is not there
                let holds = match self.rewriter.pattern() {
                    None => true,
                    Some(pattern) if facts.is_file() => holds(&path, pattern),
                    Some(pattern) => std::fs::read_link(&path)
                        .is_ok_and(|target| pattern.is_in(std::os::unix::ffi::OsStrExt::as_bytes(target.as_os_str()))),
                };
                present.extend(holds.then_some(path));
            }
        }
        Ok(present)
    }

    /// Returns the digest of the plan: of the checkpoints and those that take their place.
    ///
    /// # Errors
    /// When it cannot be computed.
    pub fn digest(&self) -> Result<String> {
        let checkpoints = self.checkpoints.iter().map(|one| format!("{} {}\n", one.old, one.new));
        let text: String =
            checkpoints.chain(self.repositories.iter().map(|path| format!("{}\n", path.display()))).collect();
        Ok(ObjectId::of(ObjectKind::Blob, format!("piton forget 1\n{text}").as_bytes())?.to_string())
    }

    /// Refuses if a person has agreed to another plan.
    ///
    /// # Errors
    /// `stale-plan`.
    pub fn require(&self, digest: &str) -> Result<()> {
        if self.digest()? == digest {
            return Ok(());
        }
        Err(Error::new(Code::StalePlan, "the plan has changed since it was shown; nothing was removed")
            .hint("check it with `piton forget … --dry-run` and give the digest of that plan"))
    }

    /// Carries the plan out, and proves it. Checkpoints that were taken since it was made are written anew too.
    ///
    /// # Errors
    /// Returns the errors of locks and of writing. The next `forget`, `prune` or round of maintenance completes the rest.
    pub fn carry_out(mut self, home: &Home) -> Result<Forgotten> {
        let pace = self.pace;
        let _one = lock(home, "forget.lock", pace)?;
        let (kind, at) = (IntentKind::of(&self.rewriter), now_ms());
        let workspace = self.of.as_ref().map(|of| of.id.clone());
        let mut intent = ForgetIntent { at, kind, workspace, map: Vec::new(), has_moved: false };
        self.rewriter.restart([]);
        move_all(home, self.of.as_ref(), &mut self.rewriter, &mut intent, pace)?;
        let replaced = self.rewriter.replaced();
        let upkept = finish(home, self.of.as_ref(), &intent, true, pace)?;
        let proof = self.proven(home)?;
        Ok(Forgotten { replaced, upkept, proof })
    }

    /// Proves that the content is gone, as far as no other path or workspace has it.
    fn proven(&self, home: &Home) -> Result<ForgetProof> {
        let (store, progress) = (opened(home, self.pace)?, self.pace.progress);
        let local = layers::opened(home)?;
        let private = layers::roots_of(home, local.as_ref(), None)?;
        let marks = |roots: Vec<ObjectId>| {
            let of = |roots: &[ObjectId]| roots.iter().map(|commit| MarkedRoot { commit: *commit, owner: 0 }).collect();
            let mut marks = Marks::of(&store, of(&roots), &|| Flow::Continue)?;
            if let Some(local) = &local {
                marks.add(local, of(&private), &|| Flow::Continue)?;
            }
            Ok::<Marks, Error>(marks)
        };
        match (self.rewriter.pattern(), &self.of) {
            (Some(pattern), None) => prove(home, &Trace::Secret { pattern, spared: None }, progress),
            (Some(pattern), Some(of)) => {
                let others = Workspace::known(home)?.into_iter().filter(|other| other.id != of.id).map(|it| it.dir);
                let spared = (marks(roots_of(home, &store, None)?)?, others.collect());
                prove(home, &Trace::Secret { pattern, spared: Some(&spared) }, progress)
            }
            (None, _) => {
                let still = marks(roots_of(home, &store, None)?)?;
                let gone: HashSet<ObjectId> =
                    self.rewriter.gone.keys().filter(|id| !still.contains(id)).copied().collect();
                prove(home, &Trace::Contents(&gone), progress)
            }
        }
    }
}

/// Completes a forget that was killed, as far as that is possible without the secret. Does nothing while one is at work.
///
/// # Errors
/// Returns the errors of locks and of writing; `shutting-down` when it was stopped. The next one goes on.
pub fn complete(home: &Home, pace: Pace<'_>) -> Result<()> {
    let is_due = |intent: &ForgetIntent| !intent.has_moved;
    if !ForgetIntent::load(home)?.is_some_and(|intent| is_due(&intent)) {
        return Ok(());
    }
    let Ok(_one) = FileLock::acquire(&home.path().join("forget.lock"), Mode::Exclusive, "forgetting", Duration::ZERO)
    else {
        return Ok(()); // another process forgets now
    };
    // Another process may have finished it before the lock was free.
    let Some(mut intent) = ForgetIntent::load(home)?.filter(is_due) else { return Ok(()) };
    let known = Workspace::known(home)?;
    let of = known.into_iter().find(|workspace| Some(&workspace.id) == intent.workspace.as_ref());
    if of.is_none() && intent.workspace.is_some() && intent.kind != IntentKind::Workspace {
        // That workspace is gone as a whole, and no other one is meant.
        return finish(home, None, &intent, true, pace).map(drop);
    }
    let victims = match &intent.kind {
        IntentKind::Workspace => return workspace::complete(home, of, pace),
        IntentKind::Secret { contents } => Victims::Contents(contents.iter().copied().collect()),
        IntentKind::Paths { paths } => {
            Victims::Paths(paths.iter().map(|path| RelPath::parse(&unquote(path)?)).collect::<Result<_>>()?)
        }
    };
    let policy = crate::settings::load(None, home.path(), &[])?.policy;
    let rewriter = Rewriter::new(opened(home, pace)?, victims, policy.limits.memory, pace.control);
    let mut rewriter = rewriter.with_local(layers::opened(home)?);
    // Only what is there may take another's place.
    intent.map.retain(|(_, new)| rewriter.has(new));
    let same = intent.map.iter().map(|(_, new)| (*new, *new));
    rewriter.restart(intent.map.iter().copied().chain(same).collect::<Vec<_>>());
    rewriter.note_numbers();
    move_all(home, of.as_ref(), &mut rewriter, &mut intent, pace)?;
    // Without the secret nobody can tell which texts hold it.
    let is_whole = !matches!(intent.kind, IntentKind::Secret { .. });
    finish(home, of.as_ref(), &intent, is_whole, pace).map(drop)
}

/// Stores the new checkpoints, and moves everything that names old ones.
fn move_all(
    home: &Home,
    of: Option<&Workspace>,
    rewriter: &mut Rewriter<'_>,
    intent: &mut ForgetIntent,
    pace: Pace<'_>,
) -> Result<()> {
    let _maintenance = lock(home, "consolidate.lock", pace)?;
    for workspace in scope(home, of)? {
        let lock = WorkspaceLock::acquire(&workspace.dir, "forgetting", pace.workspace)?;
        // Nobody looks into what git noted of an operation in progress.
        forget_git(rewriter.local.as_ref(), &workspace, &lock)?;
    }
    let roots = roots_of(home, &rewriter.store, of)?;
    store_new(home, rewriter, roots)?;
    let private = layers::roots_of(home, rewriter.local.as_ref(), of)?;
    store_new_layers(home, rewriter, private)?;
    keep(home, rewriter, intent)?;
    for workspace in scope(home, of)? {
        go_on(pace.control)?;
        let lock = WorkspaceLock::acquire(&workspace.dir, "forgetting", pace.workspace)?;
        rewriter.store.complete(&workspace.dir.join("log"))?;
        if let Some(local) = &rewriter.local {
            local.complete(&workspace.dir.join(local.log_name()))?;
        }
        let roots = roots_of(home, &rewriter.store, Some(&workspace))?;
        let before = rewriter.changed.len();
        store_new(home, rewriter, roots)?;
        let private = layers::roots_of(home, rewriter.local.as_ref(), Some(&workspace))?;
        store_new_layers(home, rewriter, private)?;
        if rewriter.changed.len() > before {
            keep(home, rewriter, intent)?;
        }
        move_workspace(&workspace, rewriter, &lock)?;
    }
    if of.is_none() {
        // Refs of histories whose workspace is not known any more.
        move_refs(&rewriter.store, &rewriter.commits, "refs/")?;
        rewriter.local.as_ref().map_or(Ok(()), |local| move_refs(local, &rewriter.commits, "refs/"))?;
    }
    let edit = RecordEdit { map: rewriter.replaced().into_iter().collect(), pattern: rewriter.pattern() };
    edit.home(home)
}

/// Stores what takes the place of the checkpoints that `roots` reach.
fn store_new(home: &Home, rewriter: &mut Rewriter<'_>, roots: Vec<ObjectId>) -> Result<()> {
    let store = Store::open(home.path())?;
    let _shared = store.lock_shared("forgetting", LOCK_WAIT)?;
    let batch: Batch<'_> = store.batch()?;
    rewriter.rewrite(roots, &mut |kind, id, content| match batch.contains(&id)? {
        true => Ok(()),
        false => batch.write(kind, id, content),
    })?;
    batch.finish().map(drop)
}

/// Stores what takes the place of private layers.
fn store_new_layers(home: &Home, rewriter: &mut Rewriter<'_>, roots: Vec<ObjectId>) -> Result<()> {
    let Some(store) = layers::opened(home)?.filter(|_| !roots.is_empty()) else { return Ok(()) };
    let _shared = store.lock_shared("forgetting", LOCK_WAIT)?;
    let batch: Batch<'_> = store.batch()?;
    rewriter.rewrite_local(roots, &mut |kind, id, content| match batch.contains(&id)? {
        true => Ok(()),
        false => batch.write(kind, id, content),
    })?;
    batch.finish().map(drop)
}

/// Notes which commits take the place of which.
fn keep(home: &Home, rewriter: &Rewriter<'_>, intent: &mut ForgetIntent) -> Result<()> {
    intent.map = rewriter.replaced();
    if let IntentKind::Secret { contents } = &mut intent.kind {
        let known: BTreeSet<ObjectId> = contents.drain(..).chain(rewriter.gone.keys().copied()).collect();
        contents.extend(known);
    }
    intent.save(home)
}

/// Moves the refs of a workspace, notes the old ids, and edits its records.
fn move_workspace(workspace: &Workspace, rewriter: &Rewriter<'_>, lock: &WorkspaceLock) -> Result<()> {
    let store = &rewriter.store;
    let map: HashMap<ObjectId, ObjectId> = rewriter.replaced().into_iter().collect();
    let now = now_ms();
    let note = |(old, new): (&ObjectId, &ObjectId)| {
        let (of, n) = rewriter.numbers.get(new)?;
        (*of == workspace.id).then(|| DroppedCheckpoint {
            n: *n,
            id: old.to_string(),
            at: now,
            rule: FORGET.into(),
            by: Some(new.to_string()),
            ..DroppedCheckpoint::default()
        })
    };
    let mut notes: Vec<DroppedCheckpoint> = map.iter().filter_map(note).collect();
    notes.sort_by_key(|one| one.n);
    Ledger::of_workspace(&workspace.dir).note(&notes, lock)?;
    let shared = store.lock_shared("forgetting", LOCK_WAIT)?;
    // A record of the log would bring an old object back.
    flush(store, &workspace.dir)?;
    for prefix in prefixes(workspace) {
        move_refs(store, &rewriter.commits, &prefix)?;
    }
    if let Some(local) = &rewriter.local {
        flush(local, &workspace.dir)?;
        move_refs(local, &rewriter.commits, &prefixes(workspace)[1])?;
    }
    drop(shared);
    RecordEdit { map, pattern: rewriter.pattern() }.workspace(&workspace.dir, lock)
}

fn move_refs(store: &Store, commits: &HashMap<ObjectId, ObjectId>, prefix: &str) -> Result<()> {
    let mut moves = Vec::new();
    for entry in store.refs(prefix)? {
        if let Ok(old) = entry.target
            && let Some(new) = commits.get(&old).filter(|new| **new != old)
        {
            moves.push((entry.name.to_string(), old, *new));
        }
    }
    if moves.is_empty() { Ok(()) } else { store.move_refs(&moves) }
}

/// Has the store delete what nothing reaches, removes derived files, and removes the note if nothing is left to do. Until
/// then the note says that all of it is to be done: a killed one is begun again.
fn finish(
    home: &Home,
    of: Option<&Workspace>,
    intent: &ForgetIntent,
    is_whole: bool,
    pace: Pace<'_>,
) -> Result<Upkept> {
    let upkept = purge(home, pace)?;
    sweep_removed(home.path())?;
    for workspace in scope(home, of)? {
        // A running process may have written facts of old checkpoints since.
        let lock = WorkspaceLock::acquire(&workspace.dir, "forgetting", pace.workspace)?;
        records::remove_derived(&workspace.dir, &lock)?;
        // Nobody looks into the objects of kept repositories.
        let goes = |path: &RelPath| intent.kind.takes(path, intent.map.is_empty());
        repositories::clear(&workspace.dir, &goes, &lock)?;
    }
    match (upkept.left.is_none(), is_whole) {
        (true, true) => ForgetIntent::remove(home)?,
        (true, false) => ForgetIntent { has_moved: true, ..intent.clone() }.save(home)?,
        // Maintenance does the rest.
        (false, _) => {}
    }
    Ok(upkept)
}

/// Has the store delete everything that nothing reaches. Waits for other processes at work on it.
fn purge(home: &Home, pace: Pace<'_>) -> Result<Upkept> {
    let (until, mut done) = (Instant::now() + pace.others, Upkept::default());
    loop {
        let mut store = opened(home, pace)?;
        if let Some(left) = refs::lost(home, &store)? {
            return Ok(Upkept { left: Some(left), ..done });
        }
        let owners: Vec<String> = Workspace::known(home)?.into_iter().map(|workspace| workspace.id).collect();
        let mut marks = Marks::of(&store, roots(home, &store, &owners)?, pace.control)?;
        let mut upkept = store.purge(&mut marks, pace.control)?;
        drop(store);
        if let Some(mut local) = layers::opened(home)?.filter(|_| upkept.left.is_none()) {
            let mut marks = Marks::of(&local, layers::roots(home, &local, &owners)?, pace.control)?;
            layers::add(&mut upkept, local.purge(&mut marks, pace.control)?);
        }
        done.left = None;
        layers::add(&mut done, upkept);
        if done.left.is_none() || Instant::now() > until {
            return Ok(done);
        }
        std::thread::sleep(AGAIN);
    }
}

/// Opens the store, with all logs applied.
fn opened(home: &Home, pace: Pace<'_>) -> Result<Store> {
    let mut store = Store::open(home.path())?;
    store.report_to(pace.progress);
    store.recover(&home.workspaces(), &boot_id())?;
    Ok(store)
}

fn lock(home: &Home, name: &str, pace: Pace<'_>) -> Result<FileLock> {
    FileLock::acquire(&home.path().join(name), Mode::Exclusive, "forgetting", pace.others)
}

fn scope(home: &Home, of: Option<&Workspace>) -> Result<Vec<Workspace>> {
    of.map_or_else(|| Workspace::known(home), |of| Ok(vec![of.clone()]))
}

/// Returns the prefixes of the refs of a workspace: its runs, its other checkpoints, and fetched ones.
fn prefixes(workspace: &Workspace) -> [String; 3] {
    ["heads", "piton", "piton-remotes"].map(|kind| format!("refs/{kind}/{}/", workspace.id))
}

/// Returns the commits that refs, logs and records name, of one workspace or of all.
fn roots_of(home: &Home, store: &Store, of: Option<&Workspace>) -> Result<Vec<ObjectId>> {
    let prefixes = of.map_or_else(|| vec!["refs/".to_owned()], |of| prefixes(of).to_vec());
    let mut roots = Vec::new();
    for prefix in prefixes {
        roots.extend(store.refs(&prefix)?.into_iter().filter_map(|entry| entry.target.ok()));
    }
    let mut named = Vec::new();
    for workspace in scope(home, of)? {
        let path = workspace.dir.join("log");
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.at("reading", &path)?,
        };
        named.extend(log::decode(&bytes).0.into_iter().flat_map(|record| record.old.into_iter().chain([record.new])));
        named.extend(super::drops::named(&workspace.dir)?);
    }
    roots.extend(named.into_iter().filter(|id| store.has(id).is_ok_and(|has| has)));
    Ok(roots)
}

#[cfg(test)]
mod tests;
