//! Files that are deleted after the end of a turn while processes of the turn are still running, such as a background build.
//!
//! The kernel does not report which process changed a file, so a person may have deleted it too. Such files are only listed, as
//! missed changes of the turn with the command that restores them.

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

/// The maximum number of ancestors that are checked for a process.
const MOST_ABOVE: usize = 64;

/// The first process of a machine or a container. It adopts orphans.
const FIRST: u32 = 1;

/// Returns true if a process may still be running; also if it is in another container and cannot be checked.
fn may_run(process: &LeftProcess) -> bool {
    ProcessId::of_key(&process.key).is_some_and(|process| process.is_alive() != Some(false))
}

/// Lists the running processes that actions of a turn started: descendants of its client, and orphans whose working directory is in
/// the workspace.
pub(super) fn left_processes(turn: &OpenTurn, windows: &Windows, catalog: &Catalog) -> Vec<LeftProcess> {
    let own = windows.actions.iter().filter(|action| action.actor == turn.actor && action.from >= turn.since);
    let spans: Vec<(i64, i64)> =
        own.map(|action| (action.from, action.to.or(action.left).unwrap_or(i64::MAX))).collect();
    if spans.is_empty() {
        return Vec::new();
    }
    let client = RunClient::load(&catalog.workspace.dir, &turn.run).and_then(|client| client.process);
    let client = client.filter(|process| process.is_alive() == Some(true)).map(|process| process.pid);
    // Without it, piton's own processes are listed too, which only adds names to a message.
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
    // The shell that runs one of piton's hooks is not work of the agent.
    let others = found.into_iter().filter(|process| !around_piton.contains(&process.pid));
    others.filter_map(|process| Some(LeftProcess { name: name_of(process.pid)?, key: process.key() })).collect()
}

/// Returns true if a process runs a program.
fn is_of(pid: u32, program: Option<&Path>) -> bool {
    program.is_some() && processes::program(pid).as_deref() == program
}

/// Returns true if the parent of a process has ended, and another process has adopted it.
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
    /// Adds files that were deleted after the end of a turn to the turn's line, if processes of the turn were still running.
    ///
    /// # Errors
    /// `store-damaged`; when the journal cannot be written.
    pub(super) fn list_late_deletions(&mut self) -> Result<()> {
        let is_due = self.catalog().history()?.turns.iter().any(|turn| !turn.running.is_empty());
        if !is_due {
            return Ok(());
        }
        self.lock("listing late deletions")?.list_late_deletions()
    }
}

impl Locked<'_> {
    fn list_late_deletions(&self) -> Result<()> {
        let history = self.catalog.history()?;
        let open = self.catalog.windows.borrow_mut().windows()?.turns.clone();
        let known = history.turns.iter().map(|turn| turn.began.clone());
        let newest = known.chain(open.into_iter().map(|turn| turn.began)).max().unwrap_or_default();
        for turn in history.turns.iter().filter(|turn| !turn.running.is_empty()) {
            let others = history.turns.iter().filter(|other| other.op != turn.op && other.time >= turn.time);
            let deleted = others.flat_map(|other| &other.changes).filter(|change| change.after.is_none());
            let theirs: BTreeSet<&str> = deleted.map(|change| change.path.as_str()).collect();
            let may_still_run = turn.running.iter().any(may_run);
            // Deletions during a later turn are found at the end of that turn.
            let gone = if newest >= turn.time { BTreeSet::new() } else { self.deleted_since(turn)? };
            let gone = gone.into_iter().filter(|path| !theirs.contains(quote(path.as_bytes()).as_str()));
            let found: Vec<(RelPath, ObjectId)> = gone.map(|path| (path, turn.end)).collect();
            self.add_late_deletions(turn, &found, may_still_run)?;
        }
        Ok(())
    }

    /// Adds paths that were deleted during a turn, and not by it, to the newest earlier turn that had left processes running when this
    /// one began; they may have ended since. `saved` is the checkpoint with their contents.
    pub(super) fn add_to_earlier_turn(&self, during: &OpenTurn, gone: &[RelPath], saved: ObjectId) -> Result<()> {
        let history = self.catalog.history()?;
        let is_earlier =
            |turn: &&Arc<TurnEnd>| turn.time <= during.began && turn.key != during.key && !turn.running.is_empty();
        let Some(turn) = history.turns.iter().rev().find(is_earlier) else { return Ok(()) };
        let found: Vec<(RelPath, ObjectId)> = gone.iter().map(|path| (path.clone(), saved)).collect();
        self.add_late_deletions(turn, &found, turn.running.iter().any(may_run))
    }

    /// Rewrites the line of a turn with paths that were deleted after its end, each with the checkpoint that saved it.
    fn add_late_deletions(&self, turn: &TurnEnd, found: &[(RelPath, ObjectId)], may_still_run: bool) -> Result<()> {
        let names: BTreeSet<&str> = turn.running.iter().map(|process| process.name.as_str()).collect();
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        let why =
            format!("deleted after the end of the turn, while {} from the turn was still running", names.join(", "));
        let mut missed = turn.missed.clone();
        for (path, saved) in found {
            let quoted = quote(path.as_bytes());
            if missed.iter().all(|known| known.path != quoted) {
                let (why, who) = (why.clone(), Attribution::Likely);
                missed.push(MissedChange { path: quoted, why, who, saved: Some(*saved) });
            }
        }
        let is_news = missed.len() > turn.missed.len();
        if !is_news && may_still_run {
            return Ok(());
        }
        let running = if may_still_run { turn.running.clone() } else { Vec::new() };
        let is_passed = turn.is_passed && !is_news;
        self.append(&[Line::Turn(Box::new(TurnEnd { missed, is_passed, running, ..turn.clone() }))])
    }

    /// Lists paths that are in the checkpoint of a turn's end and no longer exist. A deleted directory is listed without its contents.
    fn deleted_since(&self, turn: &TurnEnd) -> Result<BTreeSet<RelPath>> {
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
