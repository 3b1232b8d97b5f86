//! Deletes from the store everything that nothing reaches.

use std::time::{Duration, Instant};

use super::opened;
use super::pace::Pace;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::upkeep::prune::roots;
use crate::checkpoint::upkeep::{layers, refs};
use crate::error::Result;
use crate::store::{Marks, Upkept};

/// The pause between two tries.
const AGAIN: Duration = Duration::from_millis(100);

/// Has the store delete everything that nothing reaches. Waits for other processes at work on it.
pub(super) fn purge(home: &Home, pace: Pace<'_>) -> Result<Upkept> {
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
