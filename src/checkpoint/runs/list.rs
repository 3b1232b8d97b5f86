//! The runs of a workspace, with their timelines and the origins of these.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::at_work::{Codons, clients_of};
use super::client::{RunClient, client_of_file};
use super::run::{ForkPoint, Run, RunEnding, Running, codon_of, dir};
use crate::checkpoint::catalog::branches::short;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::history::operations::UndoStep;
use crate::checkpoint::records::marks::AtWork;
use crate::error::{IoContext, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::sys::fs::aside::is_aside;

/// One branch of a run.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Without `refs/heads/`.
    pub name: String,
    /// The checkpoint that its first one follows: of the run itself after a rollback, of another after a fork.
    pub from: Option<ForkPoint>,
    /// The run's checkpoints on it, the newest first.
    pub checkpoints: Vec<ObjectId>,
    /// The number of its newest.
    tip: u64,
}

/// One run.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// The run's id.
    pub run: String,
    /// The content of its file; its defaults if there is none.
    pub state: Run,
    /// The way in which it ended. `exit` also where its last client was killed, which the file does not say.
    pub ending: Option<RunEnding>,
    /// The codon that really runs.
    pub running: Option<Running>,
    /// In the order in which they ended.
    pub branches: Vec<Branch>,
    /// The number of its checkpoints in all, without base captures.
    pub checkpoints: u64,
    /// Its newest checkpoint of a codon; `None` if no codon has recorded anything.
    pub last: Option<Checkpoint>,
    /// The time when it began, as far as anything tells.
    pub since: String,
    /// The number of its first checkpoint, for the order of those that began at the same time.
    first: u64,
}

impl ListedRun {
    /// Returns the run above this one: its parent, or the one it was forked from.
    pub fn above(&self) -> Option<&str> {
        let forked = || {
            let from = self.branches.iter().filter_map(|branch| branch.from.as_ref());
            self.state
                .origin
                .as_ref()
                .into_iter()
                .chain(from)
                .map(|origin| origin.run.as_str())
                .find(|run| *run != self.run)
        };
        self.state.parent.as_deref().or_else(forked)
    }
}

/// The number of runs, each a part of the next, that are followed.
const DEEPEST: usize = 8;

impl Catalog {
    /// Returns a run and the runs below it, of those that undo or redo can step over.
    ///
    /// # Errors
    /// When the journal or a run's file cannot be read.
    pub fn runs_below(&self, run: &str) -> Result<BTreeSet<String>> {
        let history = self.history()?;
        let mut below = BTreeSet::from([run.to_owned()]);
        let others: BTreeSet<&str> = history.undo.iter().chain(&history.redo).map(UndoStep::run).collect();
        for other in others.into_iter().filter(|other| *other != run) {
            let mut above = self.parent_of(other)?;
            for _ in 0..DEEPEST {
                match above {
                    Some(parent) if parent == run => {
                        below.insert(other.to_owned());
                        break;
                    }
                    Some(parent) => above = self.parent_of(&parent)?,
                    None => break,
                }
            }
        }
        Ok(below)
    }

    /// Returns the run that a run is a part of.
    fn parent_of(&self, run: &str) -> Result<Option<String>> {
        let told = Run::load(&self.workspace.dir, run)?.and_then(|state| state.parent);
        Ok(told.or_else(|| RunClient::load(&self.workspace.dir, run)?.parent))
    }

    /// Lists all runs, in the order in which they began; and refs that could not be read.
    ///
    /// # Errors
    /// Returns the errors of listing and of reading the runs' files.
    pub(crate) fn runs(&self, codons: &Codons) -> Result<(Vec<ListedRun>, Vec<String>)> {
        let all = self.all()?;
        let mut rows: BTreeMap<&str, ListedRun> = BTreeMap::new();
        let names = self.named_runs()?;
        for name in &names {
            rows.insert(name, self.row(name, codons)?);
        }
        for checkpoint in &all.checkpoints {
            let record = &checkpoint.record;
            if !rows.contains_key(record.run.as_str()) {
                rows.insert(&record.run, self.row(&record.run, codons)?);
            }
            let Some(row) = rows.get_mut(record.run.as_str()) else { continue };
            if row.first == 0 {
                row.first = record.ordinal;
                row.since = row.state.started.clone().unwrap_or_else(|| record.time.clone());
            }
            row.checkpoints += u64::from(record.kind != CheckpointKind::Turn);
            if codon_of(record).is_some() {
                row.last = Some(checkpoint.clone());
            }
        }
        let parents: Vec<String> = rows.values().filter_map(|row| row.state.parent.clone()).collect();
        for parent in &parents {
            if !rows.contains_key(parent.as_str()) && RunClient::load(&self.workspace.dir, parent).is_some() {
                rows.insert(parent, self.row(parent, codons)?);
            }
        }
        for (run, branches) in self.timelines(&all.checkpoints)? {
            if let Some(row) = rows.get_mut(run.as_str()) {
                row.branches = branches;
            }
        }
        let mut rows: Vec<ListedRun> = rows.into_values().collect();
        rows.sort_by(|a, b| (&a.since, a.first).cmp(&(&b.since, b.first)));
        Ok((rows, self.broken(&all)?))
    }

    /// Lists the runs that have files.
    fn named_runs(&self) -> Result<Vec<String>> {
        let path = dir(&self.workspace.dir);
        let entries = match std::fs::read_dir(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.at("listing", &path)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.at("listing", &path)?.file_name().to_string_lossy().into_owned();
            // A sub-agent that has acted is a run, also where its agent's checkpoint has protected it.
            if let Some(run) = client_of_file(&name)
                && RunClient::load(&self.workspace.dir, run).is_some_and(|client| client.parent.is_some())
            {
                names.push(run.to_owned());
            }
            // Marks, locks and leftovers of killed processes are no runs.
            if !name.starts_with('.') && !name.ends_with(".lock") && !is_aside(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn row(&self, run: &str, codons: &Codons) -> Result<ListedRun> {
        let mut state = Run::load(&self.workspace.dir, run)?.unwrap_or_default();
        let running = if state.running.is_some() { codons.running(&self.workspace.dir, run)? } else { None };
        let client = RunClient::load(&self.workspace.dir, run);
        client.iter().for_each(|client| client.fill(&mut state));
        let clients = clients_of(&self.workspace.dir, run);
        let ending = match (client.and_then(|client| client.is_alive()), state.status) {
            // It has gone on since the end that the file tells of.
            (Some(true), _) => None,
            (Some(false), _) if clients != AtWork::Now => Some(RunEnding::Exit),
            // A run that no client ever opened stays open: a fork, or a session whose process is not known.
            (_, None) if matches!(clients, AtWork::Since(_)) => Some(RunEnding::Exit),
            (_, ending) => ending,
        };
        let since = state.started.clone().unwrap_or_default();
        let (branches, last) = (Vec::new(), None);
        Ok(ListedRun { run: run.to_owned(), state, ending, running, branches, checkpoints: 0, last, since, first: 0 })
    }

    /// Lists the branches of each run, with the checkpoints that are the run's own on each.
    fn timelines(&self, all: &[Checkpoint]) -> Result<BTreeMap<String, Vec<Branch>>> {
        let known: HashMap<ObjectId, &Checkpoint> = all.iter().map(|checkpoint| (checkpoint.id, checkpoint)).collect();
        let mut runs: BTreeMap<String, Vec<Branch>> = BTreeMap::new();
        let mut tips: Vec<(&Checkpoint, String)> = Vec::new();
        for entry in self.refs(&self.branch_prefix())? {
            // A broken one is in the list of all checkpoints.
            let tip = entry.target.ok().and_then(|id| known.get(&id).copied());
            tips.extend(tip.map(|tip| (tip, short(&entry.name).to_owned())));
        }
        tips.sort_by_key(|(tip, _)| tip.record.ordinal);
        let mut claimed = HashSet::new();
        for (tip, name) in tips {
            let run = &tip.record.run;
            let mut branch = Branch { name, from: None, checkpoints: Vec::new(), tip: tip.record.ordinal };
            let mut next = Some(tip.id);
            while let Some(id) = next {
                let here = known.get(&id).copied();
                let own = here.filter(|here| here.record.kind.is_typed() && here.record.run == *run);
                let Some(own) = own.filter(|_| claimed.insert(id)) else {
                    branch.from = self.origin_of(id, here);
                    break;
                };
                branch.checkpoints.push(id);
                next = own.parents.first().copied();
            }
            runs.entry(run.clone()).or_default().push(branch);
        }
        runs.values_mut().for_each(|branches| branches.sort_by_key(|branch| branch.tip));
        Ok(runs)
    }

    /// Returns the checkpoint that a branch's first one follows. Even if it was dropped, it is still in the branch's
    /// own history.
    fn origin_of(&self, id: ObjectId, known: Option<&Checkpoint>) -> Option<ForkPoint> {
        let read = known.cloned().map_or_else(|| self.read(id, &"".into()), Ok).ok()?;
        Some(ForkPoint { run: read.record.run.clone(), checkpoint: id, number: read.record.number })
    }
}
