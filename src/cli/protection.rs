//! The protection of a workspace, with the facts that only the command line looks up: files of clients, a try to write.

use std::io::ErrorKind;
use std::path::Path;

use super::context::Context;
use super::doctor::clients::hooked;
use super::doctor::git::set_git;
use super::doctor::shells::set_shells;
use crate::agents::Client;
use crate::checkpoint::records::doors::seen;
use crate::checkpoint::records::health;
use crate::checkpoint::{Home, Timeline, Workspace};
use crate::doors::protection::{self, Installed, judge, silent_items};
use crate::engine::silence::judge::Silence;
use crate::engine::silence::{Scene, look};
use crate::engine::workspace::why_off;
use crate::error::{Error, IoContext, Result};
use crate::model::policy::Guard;
use crate::protocol::{ProtectionBlock, ReasonItem, SilentItem};
use crate::settings::Effective;
use crate::store::Store;
use crate::sys::clock::ms_of;
use crate::sys::fs::durable::replace_cache;
use crate::sys::process::require_writable;

/// The step where nothing can be stored.
pub(super) const CANNOT_WRITE: &str =
    "free disk space or make the store writable again; until then, piton takes no checkpoints";

/// Judges the protection of a workspace, or of a directory that is none yet. `unwritable` is the error of a try to write.
pub(super) fn protection_of(
    context: &Context,
    (root, workspace): (&Path, Option<&Workspace>),
    settings: &Effective,
    unwritable: Option<&Error>,
) -> ProtectionBlock {
    let origin = settings.origin("guard");
    let switched = match workspace {
        Some(workspace) => why_off(settings.policy.guard, &workspace.dir, &origin),
        None if settings.policy.guard == Guard::Off => why_off(Guard::Off, root, &origin),
        None => None,
    };
    let switched = switched.map(|text| ReasonItem { text, ..ReasonItem::default() });
    let off = switched.or_else(|| {
        let text = protection::unwritable(unwritable?);
        Some(ReasonItem { client: None, text, mend: Some(CANNOT_WRITE.to_owned()) })
    });
    let doors = workspace.map(|workspace| seen(&workspace.dir)).unwrap_or_default();
    let hooks = hooked(context, root);
    // Where nothing is guarded, events may leave no mark either.
    let silences = match &off {
        None => look(&Scene { home: &context.home, root, workspace }),
        Some(_) => Vec::new(),
    };
    let silent = silent_items(&silences, Some(&hooks));
    let git = set_git(context, root);
    judge(off, &Installed { hooks, shells: set_shells(), git }, &doors, silent)
}

/// Returns clients at work without events as the engine has told of them, with the causes that it does not know.
pub(super) fn with_causes(context: &Context, root: &Path, told: &[SilentItem]) -> Vec<SilentItem> {
    let silence =
        |item: &SilentItem| Some(Silence { client: Client::named(&item.client).ok()?, since: ms_of(&item.since)? });
    let silences: Vec<Silence> = told.iter().filter_map(silence).collect();
    silent_items(&silences, Some(&hooked(context, root)))
}

/// Tries whether a checkpoint could be written, where no timeline is open: in a workspace, or in piton's home alone.
pub(super) fn unwritable(context: &Context, workspace: Option<&Workspace>) -> Option<Error> {
    let home = &context.home;
    if !home.path().join("store.git").exists() {
        return try_file(home.path()).err();
    }
    // Logs of before a power cut are applied by the first process that opens a timeline, which mends something.
    let waits = || health::records(home).is_ok_and(|records| !records.unapplied.is_empty());
    if let (Some(workspace), Ok(settings)) = (workspace, context.settings())
        && !waits()
        && let Ok(timeline) = Timeline::open(home, workspace.clone(), settings.policy)
    {
        return timeline.catalog().try_writing().err();
    }
    try_home(home).err()
}

/// Tries to write into the store, and where the records of a new workspace would be made.
fn try_home(home: &Home) -> Result<()> {
    Store::open(home.path())?.try_writing("refs/piton", true)?;
    try_file(home.path())?;
    // A file there would look like a record to others.
    let workspaces = home.workspaces();
    match require_writable(&workspaces) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at("writing to", &workspaces),
        _ => Ok(()),
    }
}

fn try_file(dir: &Path) -> Result<()> {
    let path = dir.join("try");
    replace_cache(&path, b"")?;
    std::fs::remove_file(&path).at("removing", &path)
}
