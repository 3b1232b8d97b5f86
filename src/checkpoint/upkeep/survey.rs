//! A survey of piton's home: all workspaces, with what each takes and how its directory stands. No commit is read, but
//! where a branch of a run has grown since the last count.

use std::time::UNIX_EPOCH;

use super::standing::JudgedStanding;
use super::usage::Usage;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::ground::Ground;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::runs::run;
use crate::error::Result;
use crate::model::policy::Policy;
use crate::store::{Census, RefCounts, Store};
use crate::sys::clock::boot_id;

/// The most runs of a workspace whose clients are looked up.
const MAX_RUNS: usize = 16;

/// All workspaces of a home.
#[derive(Debug)]
pub struct Survey {
    /// Numbers about the store.
    pub census: Census,
    /// The figures of the last round of maintenance.
    pub usage: Option<Usage>,
    /// The workspaces, the one that was touched last first.
    pub workspaces: Vec<SurveyedWorkspace>,
}

/// One workspace.
#[derive(Debug)]
pub struct SurveyedWorkspace {
    /// The workspace.
    pub workspace: Workspace,
    /// The names of clients that have opened runs there.
    pub clients: Vec<String>,
    /// The number of runs that clients have opened, or that have a branch.
    pub runs: u64,
    /// The number of checkpoints, without base captures and fetched ones.
    pub checkpoints: u64,
    /// The number of refs that were fetched.
    pub fetched: u64,
    /// Stored bytes that only it has; `None` if they were never counted.
    pub own: Option<u64>,
    /// Stored bytes that other workspaces have too; `None` if they were never counted.
    pub shared: Option<u64>,
    /// The time of its newest checkpoint, in milliseconds since 1970; `None` if it has none.
    pub touched: Option<i64>,
    /// True if somebody guards it now.
    pub is_guarded: bool,
    /// The state of its directory.
    pub judged: JudgedStanding,
}

impl Survey {
    /// Looks at all workspaces.
    ///
    /// # Errors
    /// When workspaces or packed refs cannot be read.
    pub fn of(home: &Home, policy: &Policy) -> Result<Survey> {
        let mut store = Store::open(home.path())?;
        store.recover(&home.workspaces(), &boot_id())?;
        let (known, usage, mut census) = (Workspace::known(home)?, Usage::read(home), store.census()?);
        let ground = Ground::now(known.iter().map(|one| (one.path.as_path(), one.place.as_ref())));
        let mut workspaces = Vec::new();
        for workspace in known {
            let refs = census.refs.remove(&workspace.id).unwrap_or_default();
            let touched = touched(&workspace);
            let counted = usage.as_ref().filter(|usage| touched.is_none_or(|touched| touched < usage.at));
            let counted = counted.and_then(|usage| usage.workspaces.get(&workspace.id));
            let checkpoints = match counted {
                _ if refs.branches == 0 => refs.leaves,
                Some(counted) => counted.checkpoints,
                None => {
                    let catalog = Catalog::over(home, workspace.clone(), policy.clone(), store);
                    let checkpoints = shown(&catalog).unwrap_or(refs.leaves + refs.branches);
                    store = catalog.store;
                    checkpoints
                }
            };
            let of = usage.as_ref().and_then(|usage| Some((usage, usage.workspaces.get(&workspace.id)?)));
            let (clients, runs) = runs(&workspace, &refs);
            workspaces.push(SurveyedWorkspace {
                clients,
                runs,
                checkpoints,
                fetched: refs.fetched,
                own: of.map(|(usage, _)| usage.own_now(&workspace)),
                shared: of.map(|(_, counted)| counted.shared),
                touched,
                is_guarded: at_work(&guard_mark(&workspace.dir)) == AtWork::Now,
                judged: ground.standing(&workspace.path, workspace.place.as_ref()),
                workspace,
            });
        }
        workspaces.sort_by_key(|one| std::cmp::Reverse(one.touched));
        Ok(Survey { census, usage, workspaces })
    }
}

/// Counts checkpoints by reading them; `None` if they cannot be read.
fn shown(catalog: &Catalog) -> Option<u64> {
    let all = catalog.all().ok()?; // the names of refs are counted instead
    Some(all.checkpoints.iter().filter(|one| one.record.kind().is_listed()).count() as u64)
}

/// Returns the time of the newest checkpoint: it has written the file of numbers.
fn touched(workspace: &Workspace) -> Option<i64> {
    // A workspace without the file has no checkpoint.
    let time = workspace.dir.join("ordinal").metadata().and_then(|facts| facts.modified()).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok() // a time before 1970 is none
}

/// Returns the clients of a workspace's runs, and the number of runs.
fn runs(workspace: &Workspace, refs: &RefCounts) -> (Vec<String>, u64) {
    // Without runs there is no directory of them.
    let listing = std::fs::read_dir(run::dir(&workspace.dir)).into_iter().flatten().flatten();
    let names = listing.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| !name.starts_with('.') && !name.ends_with(".lock")).collect();
    let read = |name: &String| run::Run::load(&workspace.dir, name).ok().flatten()?.client; // a damaged one names nobody
    let mut clients: Vec<String> = names.iter().take(MAX_RUNS).filter_map(read).collect();
    clients.sort();
    clients.dedup();
    (clients, refs.branches.max(names.len() as u64))
}
