//! The runs that go on, and the runs that belong together: an agent and its sub-agents.

use std::path::Path;
use std::time::Duration;

use super::at_work::clients_of;
use super::client::RunClient;
use super::run::Run;
use crate::checkpoint::records::marks::AtWork;

/// The time since its last turn for which a run counts as open whose process nobody knows, and of whose end nobody told.
const FORGOTTEN: Duration = Duration::from_hours(4);

/// The most runs above one that are asked for: records may be damaged.
const DEEPEST: usize = 16;

/// Returns true if a run goes on: its client is there. `quiet` is the time since its last turn.
pub(crate) fn is_live(workspace: &Path, run: &str, quiet: Duration) -> bool {
    let clients = clients_of(workspace, run);
    let client = RunClient::load(workspace, run);
    match (client.and_then(|client| client.is_alive()), clients) {
        (Some(true), _) | (_, AtWork::Now) => true,
        (Some(false), _) | (None, AtWork::Since(_)) => false,
        (None, AtWork::Never) => {
            let state = Run::load(workspace, run).ok().flatten().unwrap_or_default(); // one that cannot be read tells of no end
            state.status.is_none() && quiet < FORGOTTEN
        }
    }
}

/// Returns the run at the top above a run: the agent that began the agents that began it.
pub(crate) fn top_of(workspace: &Path, run: &str, parent: Option<&str>) -> String {
    let mut top = parent.unwrap_or(run).to_owned();
    for _ in 0..DEEPEST {
        let told = RunClient::load(workspace, &top).and_then(|client| client.parent);
        let kept = || Run::load(workspace, &top).ok().flatten().and_then(|state| state.parent); // as above
        match told.or_else(kept).filter(|above| *above != top) {
            Some(above) => top = above,
            None => break,
        }
    }
    top
}
