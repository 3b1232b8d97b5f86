//! Files that go after the end of a turn, while processes run that the turn has started: a build in the background, a job with `&`.
//!
//! The kernel names no process with a change, so a person may have deleted such a file as well. It is therefore only listed: among
//! the changes that an undo of the turn does not take back, each with the command that restores it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::journal::{LeftProcess, Line, MissedChange, TurnEnd};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::windows::{OpenTurn, Windows};
use crate::checkpoint::runs::client::RunClient;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Result};
use crate::model::id::ObjectId;
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::sys::processes::{self, ProcessId};

/// The most processes above one that are looked at.
const MOST_ABOVE: usize = 64;

/// The first process of a container or a machine, which gets the children of processes that have ended.
const FIRST: u32 = 1;

/// Returns true if a process may still run. One in another container may.
fn may_run(process: &LeftProcess) -> bool {
    ProcessId::of_key(&process.key).is_some_and(|process| process.is_alive() != Some(false))
}

/// Lists the processes that actions of a turn have started and that still run: the descendants of its client, and those in its
/// workspace whose parent has ended.
pub(super) fn left_processes(turn: &OpenTurn, windows: &Windows, catalog: &Catalog) -> Vec<LeftProcess> {
    let own = windows.actions.iter().filter(|action| action.actor == turn.actor && action.from >= turn.since);
    let spans: Vec<(i64, i64)> =
        own.map(|action| (action.from, action.to.or(action.left).unwrap_or(i64::MAX))).collect();
    if spans.is_empty() {
        return Vec::new();
    }
    let client = RunClient::load(&catalog.workspace.dir, &turn.run).and_then(|client| client.process);
    let client = client.filter(|process| process.is_alive() == Some(true)).map(|process| process.pid);
    let own_program = std::env::current_exe().ok();
    let (mut found, mut around_piton) = (Vec::new(), BTreeSet::new());
    for process in processes::numbers().filter_map(ProcessId::of) {
        let started = process.started_between();
        if !spans.iter().any(|(from, to)| *started.end() >= *from && started.start() <= to) {
            continue;
        }
        let above = processes::above(process.pid, MOST_ABOVE);
        if is_of(process.pid, own_program.as_deref()) {
            around_piton.extend(above);
            continue;
        }
        let is_in_root =
            || processes::directory(process.pid).is_some_and(|dir| dir.starts_with(&catalog.workspace.path));
        let is_orphan = || is_orphan(&above, own_program.as_deref()) && is_in_root();
        if client.is_some_and(|client| above.contains(&client)) || is_orphan() {
            found.push(process);
        }
    }
    // A shell that runs a hook of piton's does nothing else.
    let others = found.into_iter().filter(|process| !around_piton.contains(&process.pid));
    others.filter_map(|process| Some(LeftProcess { name: name_of(process.pid)?, key: process.key() })).collect()
}

/// Returns true if a process runs a program.
fn is_of(pid: u32, program: Option<&Path>) -> bool {
    program.is_some() && processes::program(pid).as_deref() == program
}

/// Returns true if the parent of a process has ended: the first process has taken it over, or one that does so in its place.
fn is_orphan(above: &[u32], own_program: Option<&Path>) -> bool {
    let Some(parent) = above.first() else { return true };
    *parent == FIRST || is_of(*parent, own_program) || name_of(*parent).is_some_and(|name| name == "systemd")
}

/// Returns the name of a process's program; `None` if it has ended.
fn name_of(pid: u32) -> Option<String> {
    let words = processes::facts(pid)?.words;
    let first = words.first()?.split_ascii_whitespace().next().unwrap_or_default();
    Some(first.rsplit('/').next().unwrap_or(first).to_owned())
}

impl Timeline {
    /// Looks for files that have gone since turns ended whose processes ran on, and adds them to the lines of these turns.
    ///
    /// # Errors
    /// `store-damaged`; when the journal cannot be written.
    pub(super) fn look_after_ends(&mut self) -> Result<()> {
        let is_due = self.catalog().history()?.turns.iter().any(|turn| !turn.running.is_empty());
        if !is_due {
            return Ok(());
        }
        self.lock("looking after the end of a turn")?.look_after_ends()
    }
}

impl Locked<'_> {
    fn look_after_ends(&self) -> Result<()> {
        let history = self.catalog.history()?;
        let open = self.catalog.windows.borrow_mut().windows()?.turns.clone();
        let known = history.turns.iter().map(|turn| turn.began.clone());
        let newest = known.chain(open.into_iter().map(|turn| turn.began)).max().unwrap_or_default();
        for turn in history.turns.iter().filter(|turn| !turn.running.is_empty()) {
            let others = history.turns.iter().filter(|other| other.op != turn.op && other.time >= turn.time);
            let deleted = others.flat_map(|other| &other.changes).filter(|change| change.after.is_none());
            let theirs: BTreeSet<&str> = deleted.map(|change| change.path.as_str()).collect();
            let may_go_on = turn.running.iter().any(may_run);
            // The end of a later turn finds the files that go during it.
            let gone = if newest >= turn.time { BTreeSet::new() } else { self.gone_since(turn)? };
            let gone = gone.into_iter().filter(|path| !theirs.contains(quote(path.as_bytes()).as_str()));
            let found: Vec<(RelPath, ObjectId)> = gone.map(|path| (path, turn.end)).collect();
            self.add_gone(turn, &found, may_go_on)?;
        }
        Ok(())
    }

    /// Adds paths to the line of the newest turn that ended before another one began and left processes running. They went during that
    /// other turn, which cannot have deleted them. `saved` has their contents.
    pub(super) fn add_to_earlier(&self, during: &OpenTurn, gone: &[RelPath], saved: ObjectId) -> Result<()> {
        let history = self.catalog.history()?;
        let is_earlier = |turn: &&Arc<TurnEnd>| {
            turn.time <= during.began && turn.key != during.key && turn.running.iter().any(may_run)
        };
        let Some(turn) = history.turns.iter().rev().find(is_earlier) else { return Ok(()) };
        let found: Vec<(RelPath, ObjectId)> = gone.iter().map(|path| (path.clone(), saved)).collect();
        self.add_gone(turn, &found, true)
    }

    /// Writes the line of a turn anew, with the paths that went after its end and the checkpoints that have saved them.
    fn add_gone(&self, turn: &TurnEnd, found: &[(RelPath, ObjectId)], may_go_on: bool) -> Result<()> {
        let names: BTreeSet<&str> = turn.running.iter().map(|process| process.name.as_str()).collect();
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        let why = format!("deleted after the end of the turn, which had left {} running", names.join(", "));
        let mut missed = turn.missed.clone();
        for (path, saved) in found {
            let quoted = quote(path.as_bytes());
            if missed.iter().all(|known| known.path != quoted) {
                let (why, who) = (why.clone(), Attribution::Likely);
                missed.push(MissedChange { path: quoted, why, who, saved: Some(*saved) });
            }
        }
        let is_news = missed.len() > turn.missed.len();
        if !is_news && may_go_on {
            return Ok(());
        }
        let running = if may_go_on { turn.running.clone() } else { Vec::new() };
        let is_passed = turn.is_passed && !is_news;
        self.append(&[Line::Turn(Box::new(TurnEnd { missed, is_passed, running, ..turn.clone() }))])
    }

    /// Lists the paths that the checkpoint of a turn's end has and that are gone; of a directory, that one alone.
    fn gone_since(&self, turn: &TurnEnd) -> Result<BTreeSet<RelPath>> {
        let end = match self.catalog.checkpoint_of(turn.end) {
            Err(error) if error.code() == Code::NoSuchCheckpoint => return Ok(BTreeSet::new()), // pruned since
            end => end?,
        };
        let (manifest, _) = self.catalog.contents(&end)?;
        let mut gone: BTreeSet<RelPath> = BTreeSet::new();
        for (path, _) in manifest.iter() {
            if std::iter::successors(path.parent(), RelPath::parent).any(|above| gone.contains(&above)) {
                continue;
            }
            if self.catalog.is_gone(path) {
                let above = std::iter::successors(path.parent(), RelPath::parent).filter(|dir| !dir.is_root());
                let top = above.take_while(|dir| self.catalog.is_gone(dir)).last();
                gone.insert(top.unwrap_or_else(|| path.clone()));
            }
        }
        Ok(gone)
    }
}
