//! Silence: clients that are at work in a workspace without events, because their hooks are gone, switched off, or do not run.
//!
//! The facts come from the files of clients' sessions, from processes, from the marks of doors and from the times of the workspace's
//! files. The judge (`judge`) knows nothing else. A look costs some milliseconds where all is well: files of sessions are read
//! only if they are newer than their client's last event, and those of the workspace only upon a suspicion.

pub mod ear;
pub mod judge;
mod processes;
mod sessions;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use judge::{ClientClues, HISTORY, SLACK, Silence, suspicion};
use processes::AtWork;
use sessions::{Place, written};

use crate::agents::Client;
use crate::checkpoint::capture::changed::changed_since;
use crate::checkpoint::records::doors::{SeenDoor, seen};
use crate::checkpoint::records::window_log::has_open_action;
use crate::checkpoint::records::workspace::root_for;
use crate::checkpoint::{Home, Workspace};
use crate::sys::clock::{ago, local_minute, ms_of, now_ms};

/// The workspace that is looked at.
#[derive(Clone, Copy)]
pub struct Scene<'s> {
    /// Piton's own directory.
    pub home: &'s Home,
    /// The root of the workspace.
    pub root: &'s Path,
    /// Its records, if it is known.
    pub workspace: Option<&'s Workspace>,
}

/// Finds the clients that are at work in a workspace without events.
pub fn look(scene: &Scene<'_>) -> Vec<Silence> {
    let Some(home) = std::env::home_dir().filter(|home| home.is_absolute()) else { return Vec::new() };
    look_with(scene, &home, &variable)
}

fn look_with(scene: &Scene<'_>, home: &Path, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Silence> {
    let now = now_ms();
    let belongs = |dir: &Path| belongs(scene, dir);
    let place = Place { home, root: scene.root, belongs: &belongs, variable };
    let doors = scene.workspace.map(|workspace| seen(&workspace.dir)).unwrap_or_default();
    let at_work = AtWork::find(&belongs);
    let found = |client: Client| {
        let heard = heard(scene, client, &doors, &place);
        let after = heard.map_or(i64::MIN, |heard| heard.saturating_add(SLACK)).max(now - HISTORY);
        let clues = ClientClues {
            heard,
            began: at_work.began(client),
            acts: place.acts(client, after),
            grown: place.grown(client, at_work.is_alone(client)),
            commands: at_work.commands(client),
            ..ClientClues::none(client)
        };
        let suspicion = suspicion(&clues, now)?;
        let is_open = suspicion.is_weak && scene.workspace.is_some_and(|one| has_open_action(&one.dir, client.name()));
        let records = scene.workspace.map(|workspace| workspace.dir.as_path());
        let changes = changed_since(records, scene.root, suspicion.changed.0).unwrap_or_else(|error| {
            tracing::debug!(%error, "cannot check for changes without events");
            Vec::new()
        });
        suspicion.verdict(client, &changes, is_open)
    };
    Client::ALL.into_iter().filter_map(found).collect()
}

/// Returns the time up to which nothing of a client is missed: of its last event, or of what begins its story anew. That is the day on
/// which the workspace became known, and each change of the files that hold its hooks.
fn heard(scene: &Scene<'_>, client: Client, doors: &[SeenDoor], place: &Place<'_>) -> Option<i64> {
    let own = doors.iter().filter(|door| door.client.as_deref() == Some(client.name())).map(|door| door.last);
    let known = scene.workspace.and_then(|workspace| ms_of(&workspace.since));
    let user = client.files(false).iter().map(|file| file.spot.below(place.home, place.variable));
    let project = client.files(true).iter().map(|file| file.spot.below(scene.root, |_| None));
    let hooks = user.chain(project).filter_map(|file| Some(written(&file.metadata().ok()?)));
    own.chain(known).chain(hooks).max()
}

/// Returns true if events of a client in this directory are events of the workspace.
fn belongs(scene: &Scene<'_>, dir: &Path) -> bool {
    if dir == scene.root {
        return true;
    }
    if !dir.starts_with(scene.root) {
        return false;
    }
    // A project within the workspace may be one of its own.
    let known = Workspace::known(scene.home).unwrap_or_default();
    root_for(dir, &known) == scene.root
}

/// Returns a path from a variable of the environment.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Silence {
    /// Says it to people; without a full stop.
    pub fn text(&self) -> String {
        let Silence { client, since } = self;
        format!("changes without events from {} since {} ({})", client.title(), local_minute(*since), ago(*since))
    }
}
