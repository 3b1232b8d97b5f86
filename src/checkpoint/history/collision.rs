//! Collisions: an action is about to destroy uncommitted work that another run or a person made.
//!
//! It looks at the files that the action takes away and that changed since the first turn that is known. The log of actions and the
//! journal tell who changed each (`attribution`), `owner` judges the claims. git is asked at the end, and only about files of others.
//! Uncommitted work from before the first turn that is known is a person's. git lists it, if the asker wants to know.
//! *Invariant:* otherwise, where no one else changed anything, no program is run. *Invariant:* in doubt no one is named.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::attribution::{Judge, JudgedTurn};
use super::journal::TurnEnd;
use super::lost_place::{LostPlace, TakenPaths, Tops, single_files};
use super::older_work::add_older;
use super::operations::History;
use super::owner::{Claim, Claimant, Owner, owner};
use super::turn_clock::TurnClock;
use super::turn_clock::changed_after;
use crate::agents::Client;
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::windows::Windows;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::runs::client::RunClient;
use crate::checkpoint::runs::live::{is_live, top_of};
use crate::error::Result;
use crate::git::uncommitted::uncommitted;
use crate::model::door::Door;
use crate::model::id::ObjectId;
use crate::model::loss::WorkSort;
use crate::model::manifest::EntryKind;
use crate::model::meta::quote;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::tree::Mode;
use crate::model::turn::Attribution;
use crate::shell::HookedShell;
use crate::sys::clock::{ms_of, now_ms, since_boot_ns};
use crate::sys::processes::ProcessId;

/// The most files that are looked up one by one in a checkpoint.
const FEW: usize = 16;

/// The most changed files of one action whose owners are looked for.
pub(super) const MOST: usize = 10_000;

/// The time after a turn's end in which a change of its files counts as the turn's, in milliseconds: clients run formatters then.
const AFTERMATH: i64 = 5_000;

/// The session that asks before an action.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// The name under which its actions are noted.
    pub actor: String,
    /// The id of its run.
    pub run: String,
    /// The run above that.
    pub parent: Option<String>,
    /// The name of its client.
    pub client: Option<String>,
    /// The process of that.
    pub process: Option<ProcessId>,
    /// True for a person: a shell with piton's line, or a git outside of all clients.
    pub is_person: bool,
    /// True if a turn of it is open: then all that it has done is known.
    pub is_in_turn: bool,
    /// True if uncommitted work from before the first known turn counts too.
    pub names_older: bool,
}

/// The owner of work that an action would destroy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkOwner {
    /// A run that goes on.
    Run {
        /// The run's id.
        run: String,
        /// The name of its client.
        client: Option<String>,
        /// The client's name of the turn.
        turn: String,
        /// The journal's name of the turn, if it was written down.
        operation: Option<String>,
    },
    /// A person.
    Person,
}

/// Uncommitted work of one owner that an action would destroy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The owner.
    pub owner: WorkOwner,
    /// The files, in byte order; never none.
    pub paths: Vec<RelPath>,
}

/// A turn that may have a claim.
struct KnownTurn<'t> {
    run: &'t str,
    client: Option<&'t str>,
    is_persons: bool,
    turn: &'t str,
    operation: Option<&'t str>,
    /// The end on the wall clock, in milliseconds; `None` while it is open.
    ended: Option<i64>,
    /// Looked up once it has a claim.
    who: OnceCell<Claimant>,
    state: KnownState<'t>,
}

/// The knowledge of a turn's changes.
enum KnownState<'t> {
    /// It is open: the log tells of it.
    Open { judge: Judge<'t>, base: HashMap<&'t RelPath, Option<ObjectId>> },
    /// It has ended, and the journal has its changes.
    Ended { end: &'t TurnEnd, changes: OnceCell<HashMap<&'t str, usize>> },
}

impl Timeline {
    /// Lists the uncommitted work of others that an action would destroy. `present` holds the files as they are before it.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn collisions(&self, asker: &Asker, places: &[LostPlace], present: &Checkpoint) -> Result<Vec<Collision>> {
        let catalog = self.catalog();
        if catalog.workspace.scope != Scope::Tree {
            // Nobody knows how single paths were before.
            return Ok(Vec::new());
        }
        let history = catalog.history()?;
        let mut log = catalog.windows.borrow_mut();
        let windows = log.known_windows()?;
        let Some(first) = catalog.first_known(&history.turns, windows)? else { return Ok(Vec::new()) };
        let view = AskersView { asker, workspace: catalog.workspace.dir.as_path(), top: OnceCell::new() };
        let own = view.own_judge(windows);
        let turn = windows.turns.iter().find(|turn| turn.actor == asker.actor);
        let clock = TurnClock::since(turn.and_then(|turn| turn.clock));
        let later = |path: &RelPath, since: i64| clock.is_later(&catalog.workspace.path, path, since);
        let is_sure = |own: &Judge<'_>, path: &RelPath| clock.doubted(own.share(path, later).who) == Attribution::Sure;
        let is_own = |path: &RelPath| own.as_ref().is_some_and(|own| is_sure(own, path));
        let mut changed = catalog.changed_in(places, (&first, present), &is_own)?;
        let older = catalog.older_in(asker, places, &first, present, &changed)?;
        if changed.is_empty() && older.is_empty() {
            return Ok(Vec::new());
        }
        let turns = catalog.known_turns(&view, &history.turns, windows, &changed)?;
        let known = KnownWork { turns, strangers: view.strangers(windows), restored: restored(&history) };
        let mut found = catalog.owned(&view, &known, (present, &changed))?;
        drop(log);
        add_older(older, &mut found, &mut changed);
        Ok(catalog.uncommitted_of(places, found, &changed))
    }
}

/// Changed files, with the ids of their present contents.
pub(super) type ChangedFiles = BTreeMap<RelPath, ObjectId>;

/// All that is known of who changed files.
struct KnownWork<'t> {
    turns: Vec<KnownTurn<'t>>,
    /// The actors without a turn while one is open.
    strangers: Vec<Judge<'t>>,
    /// The paths that restores have changed (percent-quoted). Nobody knows whose content came back.
    restored: HashSet<&'t str>,
}

/// Returns the paths that restores and undos have changed.
fn restored(history: &History) -> HashSet<&str> {
    let steps = || history.undo.iter().chain(&history.redo);
    let whole = steps().filter(|step| step.turn.is_none() || step.kind != OperationKind::Turn);
    let changed = whole.flat_map(|step| &step.changed);
    let undone = steps().flat_map(|step| step.undone.iter().chain(step.undone_in_hunks.keys()));
    changed.chain(undone).map(String::as_str).collect()
}

/// Returns true for the name of a client whose turns are a person's: a shell, lines typed in an agent's terminal, or git. An agent may
/// have it too.
pub fn is_persons_name(client: Option<&str>) -> bool {
    let is_lines = |client: &str| HookedShell::named(client).is_ok() || Client::of_lines(client).is_some();
    client.is_some_and(|client| client == Door::Git.as_str() || is_lines(client))
}

fn is_persons(client: Option<&str>, is_agents: bool) -> bool {
    is_persons_name(client) && !is_agents
}

/// The runs as whoever asks sees them.
struct AskersView<'a> {
    asker: &'a Asker,
    workspace: &'a Path,
    /// The run at the top above the asker's, once it was looked up.
    top: OnceCell<String>,
}

impl AskersView<'_> {
    /// Says what the run of a turn is to the asker. `at` is its place in the list, and `quiet` the time since its last turn.
    fn claimant(&self, turn: &KnownTurn<'_>, (at, quiet): (usize, Duration)) -> Claimant {
        let (run, client) = (turn.run, turn.client);
        if run == self.asker.run
            || (turn.is_persons && self.asker.is_person)
            || self.is_told_twice(run, client)
            || top_of(self.workspace, run, None) == *self.top()
        {
            return Claimant::Own;
        }
        match () {
            () if turn.is_persons => Claimant::Person,
            () if is_live(self.workspace, run, quiet) => Claimant::Live(at),
            () => Claimant::Gone,
        }
    }

    fn top(&self) -> &String {
        self.top.get_or_init(|| top_of(self.workspace, &self.asker.run, self.asker.parent.as_deref()))
    }

    /// Returns true for the run of another client in the same process: some agents run the hooks of others beside their own.
    fn is_told_twice(&self, run: &str, client: Option<&str>) -> bool {
        let process = || RunClient::load(self.workspace, run).and_then(|client| client.process);
        self.asker.process.is_some() && client != self.asker.client.as_deref() && process() == self.asker.process
    }

    /// Returns the moment at which the action began that is asked for. It has changed nothing yet.
    fn until(&self, windows: &Windows) -> i64 {
        let own = windows.actions.iter().rev().find(|window| window.actor == self.asker.actor && window.is_open());
        own.map_or_else(since_boot_ns, |window| window.from)
    }

    /// Returns a judge for the open turn of the asker; `None` without one.
    fn own_judge<'w>(&self, windows: &'w Windows) -> Option<Judge<'w>> {
        let turn = windows.turns.iter().find(|turn| turn.actor == self.asker.actor)?;
        let restored = turn.restored.iter().cloned().collect();
        Some(Judge::new(&JudgedTurn::open(&turn.actor, turn.since, self.until(windows)), windows, restored))
    }

    /// Returns judges for the others who act without a turn while one is open.
    fn strangers<'w>(&self, windows: &'w Windows) -> Vec<Judge<'w>> {
        let Some(since) = windows.turns.iter().map(|turn| turn.since).min() else { return Vec::new() };
        let is_known = |actor: &str| actor == self.asker.actor || windows.turns.iter().any(|turn| turn.actor == actor);
        let mut actors: Vec<&str> = windows.actions.iter().map(|window| window.actor.as_str()).collect();
        actors.retain(|actor| !is_known(actor));
        actors.sort_unstable();
        actors.dedup();
        let until = self.until(windows);
        let judge = |actor| Judge::new(&JudgedTurn::open(actor, since, until), windows, BTreeSet::new());
        actors.into_iter().map(judge).collect()
    }
}

impl Catalog {
    /// Returns the checkpoint with which the first turn began that is known.
    fn first_known(&self, ended: &[Arc<TurnEnd>], windows: &Windows) -> Result<Option<Checkpoint>> {
        let bases = ended.iter().map(|turn| turn.base).chain(windows.turns.iter().map(|turn| turn.base));
        let bases: Vec<ObjectId> = bases.collect();
        let all = self.all()?;
        Ok(all.checkpoints.iter().find(|one| bases.contains(&one.id)).cloned())
    }

    /// Returns the files in some places that differ between the first known moment and the present one.
    /// Single files that are certainly the asker's own are left out at once.
    fn changed_in(
        &self,
        places: &[LostPlace],
        (first, present): (&Checkpoint, &Checkpoint),
        is_own: &dyn Fn(&RelPath) -> bool,
    ) -> Result<ChangedFiles> {
        let root = &self.workspace.path;
        // The times of a file are looked at first: mostly it is older, and no tree is read. A file that the first moment did not look
        // at may be older too.
        let since = ms_of(&first.record.time).map_or(i64::MAX, |time| time.saturating_mul(1_000_000));
        let is_newer = |path: &RelPath| changed_after(root, path, since);
        let mut found = BTreeMap::new();
        if let Some(named) = single_files(root, places) {
            for path in named.into_iter().filter(|path| is_newer(path) && !is_own(path)) {
                if let Some(now) = self.content_at(present, path)?
                    && self.content_at(first, path)? != Some(now)
                {
                    found.insert(path.clone(), now);
                }
            }
            return Ok(found);
        }
        let (taken, mut tops) = (TakenPaths::of(places), Tops::of(root));
        for (path, before, now) in self.changed_entries(first, present)? {
            let Some(now) = now.filter(|now| now.kind != EntryKind::Dir) else { continue };
            let is_same = before.is_some_and(|before| before.id == now.id);
            if !is_same && found.len() < MOST && taken.holds(&path, None, &mut tops) && is_newer(&path) {
                found.insert(path, now.id);
            }
        }
        Ok(found)
    }

    /// Returns the contents that some files have in a checkpoint.
    fn contents_at<'t>(
        &self,
        checkpoint: &Checkpoint,
        files: &'t ChangedFiles,
    ) -> Result<HashMap<&'t RelPath, Option<ObjectId>>> {
        if files.len() <= FEW {
            return files.keys().map(|path| Ok((path, self.content_at(checkpoint, path)?))).collect();
        }
        let mut held = self.entries_at(checkpoint, files.keys())?;
        Ok(files.keys().map(|path| (path, held.remove(path).flatten().map(|entry| entry.id))).collect())
    }

    /// Returns the id of a file's content in a checkpoint; `None` where it holds none.
    fn content_at(&self, checkpoint: &Checkpoint, path: &RelPath) -> Result<Option<ObjectId>> {
        if let Some(private) = self.private_part(checkpoint)?.manifest.get(path) {
            return Ok((private.kind != EntryKind::Dir).then_some(private.id));
        }
        let shared = self.entry_at(&checkpoint.tree, path)?;
        Ok(shared.filter(|(mode, _)| *mode != Mode::Dir).map(|(_, id)| id))
    }

    /// Returns the turns that may have a claim on some files, the newest first, and those that are open before all others.
    fn known_turns<'t>(
        &self,
        view: &AskersView<'_>,
        ended: &'t [Arc<TurnEnd>],
        windows: &'t Windows,
        changed: &'t ChangedFiles,
    ) -> Result<Vec<KnownTurn<'t>>> {
        let mut turns = Vec::new();
        for turn in windows.turns.iter().rev() {
            let restored = turn.restored.iter().cloned().collect();
            let judged = JudgedTurn::open(&turn.actor, turn.since, view.until(windows));
            let judge = Judge::new(&judged, windows, restored);
            // One whose beginning is not kept tells nothing.
            let Ok(base) = self.checkpoint_of(turn.base) else { continue };
            let (run, client) = (turn.run.as_str(), turn.client.as_deref());
            let state = KnownState::Open { judge, base: self.contents_at(&base, changed)? };
            let (operation, who) = (turn.op.as_deref(), OnceCell::new());
            let is_persons = is_persons(client, turn.is_agents);
            turns.push(KnownTurn { run, client, is_persons, turn: &turn.turn, operation, ended: None, who, state });
        }
        for end in ended.iter().rev() {
            // The line of an open turn so far says less than the log.
            if windows.turn(&end.key).is_some() && !end.is_later_part {
                continue;
            }
            let (run, client) = (end.run.as_str(), end.client.as_deref());
            let state = KnownState::Ended { end, changes: OnceCell::new() };
            let (operation, ended, who) = (Some(end.op.as_str()), ms_of(&end.time), OnceCell::new());
            let is_persons = is_persons(client, end.is_agents);
            turns.push(KnownTurn { run, client, is_persons, turn: &end.turn, operation, ended, who, state });
        }
        Ok(turns)
    }

    /// Returns a function that tells if a file changed after a moment of the log of actions.
    fn later(&self) -> impl Fn(&RelPath, i64) -> bool {
        let clock = TurnClock::since(None);
        move |path, since| clock.is_later(&self.workspace.path, path, since)
    }

    /// Returns the changed files that others own.
    fn owned(
        &self,
        view: &AskersView<'_>,
        known: &KnownWork<'_>,
        (present, changed): (&Checkpoint, &ChangedFiles),
    ) -> Result<BTreeMap<WorkOwner, Vec<RelPath>>> {
        let root = &self.workspace.path;
        let later = self.later();
        let mut found: BTreeMap<WorkOwner, Vec<RelPath>> = BTreeMap::new();
        let mut persons: Vec<&RelPath> = Vec::new();
        for (path, now) in changed {
            let turns = known.turns.iter().enumerate();
            let claim = |(at, turn): (usize, &KnownTurn<'_>)| {
                let (share, is_alone) = turn.share(root, path, *now, &later)?;
                // Nothing is to be known of a turn without a share.
                (share != Attribution::Outside).then(|| Claim { who: turn.who(view, at), share, is_alone })
            };
            let mut claims: Vec<Claim> = turns.filter_map(claim).collect();
            let is_in_open = known.turns.iter().any(|turn| turn.has_changed(path, *now));
            let shares = known.strangers.iter().filter(|_| is_in_open).map(|judge| judge.share(path, &later).who);
            let is_restored = known.restored.contains(quote(path.as_bytes()).as_str());
            let shares = shares.chain(is_restored.then_some(Attribution::Unknown));
            claims.extend(shares.map(|share| Claim { who: Claimant::Gone, share, is_alone: false }));
            match owner(&claims) {
                Some(Owner::Run(at)) => found.entry(known.turns[at].owner()).or_default().push(path.clone()),
                // All that a person did is the person's own, and only a turn tells of what an agent did.
                Some(Owner::Person) if view.asker.is_in_turn && !view.asker.is_person => {
                    persons.push(path);
                }
                Some(Owner::Person) | None => {}
            }
        }
        if !persons.is_empty() {
            // Files that ignore rules leave out are what tools make, mostly.
            let above = |path: &&RelPath| std::iter::successors(Some((*path).clone()), RelPath::parent);
            let wanted: HashSet<RelPath> = persons.iter().flat_map(above).collect();
            let shared = self.load(&present.tree, &|path| wanted.contains(path))?.0;
            let seen: Vec<RelPath> = persons.into_iter().filter(|path| shared.get(path).is_some()).cloned().collect();
            if !seen.is_empty() {
                found.insert(WorkOwner::Person, seen);
            }
        }
        Ok(found)
    }

    /// Leaves out the files whose content a commit has, or that the action would not take.
    fn uncommitted_of(
        &self,
        places: &[LostPlace],
        found: BTreeMap<WorkOwner, Vec<RelPath>>,
        changed: &ChangedFiles,
    ) -> Vec<Collision> {
        let (taken, mut tops) = (TakenPaths::of(places), Tops::of(&self.workspace.path));
        let mut of_top: BTreeMap<PathBuf, BTreeMap<Vec<u8>, ObjectId>> = BTreeMap::new();
        for path in found.values().flatten() {
            if let (Some((top, below)), Some(now)) = (tops.around(path), changed.get(path)) {
                of_top.entry(top).or_default().insert(below, *now);
            }
        }
        let mut work = BTreeMap::new();
        for (top, files) in of_top {
            let found = uncommitted(&top, &files).unwrap_or_else(|error| {
                // Then git cannot tell that any of it is committed.
                tracing::warn!(%error, "the uncommitted work of a repository cannot be determined");
                files.keys().map(|path| (path.clone(), WorkSort::ALL.to_vec())).collect()
            });
            work.insert(top, found);
        }
        let none = Vec::new();
        let mut is_lost = |path: &RelPath| {
            let Some((top, below)) = tops.around(path) else { return true };
            let sorts = work.get(&top).and_then(|work| work.get(&below)).unwrap_or(&none);
            !sorts.is_empty() && taken.holds(path, Some(sorts), &mut tops)
        };
        let of_owner = found.into_iter().map(|(owner, mut paths)| {
            paths.retain(&mut is_lost);
            Collision { owner, paths }
        });
        of_owner.filter(|collision| !collision.paths.is_empty()).collect()
    }
}

impl KnownTurn<'_> {
    fn owner(&self) -> WorkOwner {
        WorkOwner::Run {
            run: self.run.to_owned(),
            client: self.client.map(str::to_owned),
            turn: self.turn.to_owned(),
            operation: self.operation.map(str::to_owned),
        }
    }

    /// Returns true if it is open, and a file changed since it began.
    fn has_changed(&self, path: &RelPath, now: ObjectId) -> bool {
        match &self.state {
            KnownState::Open { base, .. } => base.get(path).copied().flatten() != Some(now),
            KnownState::Ended { .. } => false,
        }
    }

    /// Says what its run is to the asker. `at` is its place in the list.
    fn who(&self, view: &AskersView<'_>, at: usize) -> Claimant {
        let quiet = self.ended.map_or(0, |time| now_ms().saturating_sub(time)).max(0).unsigned_abs();
        *self.who.get_or_init(|| view.claimant(self, (at, Duration::from_millis(quiet))))
    }

    /// Returns its share in the present content of a file, and true if nobody else was at work in its time; `None` if it has not
    /// changed that.
    fn share(
        &self,
        root: &Path,
        path: &RelPath,
        now: ObjectId,
        later: &dyn Fn(&RelPath, i64) -> bool,
    ) -> Option<(Attribution, bool)> {
        match &self.state {
            KnownState::Open { judge, .. } => {
                self.has_changed(path, now).then(|| (judge.share(path, later).who, judge.is_alone()))
            }
            KnownState::Ended { end, changes } => {
                let changes = changes.get_or_init(|| {
                    let all = end.changes.iter().enumerate();
                    all.map(|(at, change)| (change.path.as_str(), at)).collect()
                });
                let change = &end.changes[*changes.get(quote(path.as_bytes()).as_str())?];
                let is_as_left = change.after.is_some_and(|after| after.0.id == now);
                let is_aftermath = || {
                    let until = self.ended.map(|time| time.saturating_add(AFTERMATH).saturating_mul(1_000_000));
                    until.is_some_and(|until| !changed_after(root, path, until))
                };
                let share = if is_as_left { Some(change.who) } else { is_aftermath().then_some(Attribution::Touched) };
                share.map(|share| (share, false))
            }
        }
    }
}
