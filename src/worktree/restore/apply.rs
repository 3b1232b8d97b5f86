//! Applying a plan: checks, staging, then the steps in an order that loses least when it is cut short.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use super::access::{Loosened, arrivals, check_contents, is_permissions_only};
use super::commit::Commit;
use super::outcome::{BlobSource, Outcome, Saved};
use super::plan::Plan;
use super::stage::{BULK, Stage, Staging};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::manifest::EntryKind;
use crate::model::path::RelPath;
use crate::sys::dir::{Dir, Kind};

/// Applies a plan below `root`. `control` is asked before every step; `Break` ends the restore there.
///
/// Until every new content is staged and durable, any error leaves the tree as it was. From then on a failing step is
/// listed in the outcome and the others go on. Arrivals come first and deletions later, so that a cut restore has too
/// much rather than too little.
///
/// # Errors
/// `incomplete-checkpoint`, `store-damaged`, `permission`, `disk-full`, `shutting-down`; nothing has changed then.
pub fn apply(
    root: &Path,
    plan: &Plan,
    saved: &Saved<'_>,
    blobs: &dyn BlobSource,
    control: &dyn Fn() -> ControlFlow<()>,
) -> Result<Outcome> {
    let root = Dir::open_root(root)?;
    check_contents(plan, blobs)?;
    let mut loosened = Loosened::prepare(&root, plan)?;
    let files = arrivals(plan).filter(|(_, entry)| entry.kind != EntryKind::Dir).count();
    let mut stage = Stage { root: &root, blobs, bulk: files > BULK, done: BTreeMap::new() };
    let staged = stage_all(plan, &mut stage, control);
    let mut staged_files = stage.done;
    if let Err(error) = staged {
        remove_staged(&root, &mut staged_files);
        loosened.restore(&root);
        return Err(error);
    }
    let mut commit = Commit {
        root: &root,
        saved,
        control,
        plan,
        staged: staged_files,
        loosened,
        made: BTreeSet::new(),
        held: BTreeSet::new(),
        listed: BTreeSet::new(),
        touched: BTreeSet::new(),
        outcome: Outcome::default(),
    };
    commit.run();
    Ok(finish(&root, commit))
}

fn stage_all(plan: &Plan, stage: &mut Stage<'_>, control: &dyn Fn() -> ControlFlow<()>) -> Result<()> {
    let go_on = || match control() {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(Error::new(Code::ShuttingDown, "the restore was stopped before it changed anything"))
        }
    };
    for (path, to) in plan.create.iter().filter(|(_, to)| to.kind != EntryKind::Dir) {
        go_on()?;
        stage.create(path, to)?;
    }
    for (path, from, to) in &plan.replace {
        if to.kind != EntryKind::Dir && !is_permissions_only(from, to) {
            go_on()?;
            stage.replace(path, from, to)?;
        }
    }
    // Contents must be durable before the first old one goes: a crash must not leave empty files.
    if stage.bulk && !stage.root.sync_file_system()? {
        sync_each(stage)?;
    }
    Ok(())
}

fn sync_each(stage: &Stage<'_>) -> Result<()> {
    for staging in stage.done.values() {
        if let Staging::Ready(staged) = staging
            && staged.seen.kind == Kind::File
        {
            let dir = stage.root.open_dir(staged.dir.to_path())?;
            let file = dir.open_file(&staged.name)?;
            file.sync_all().at("syncing", dir.path())?;
        }
    }
    Ok(())
}

/// Removes what is still staged; never anything else that has come under such a name. Returns where that failed.
fn remove_staged(root: &Dir, staged: &mut BTreeMap<RelPath, Staging>) -> Vec<(RelPath, String)> {
    let mut failed = Vec::new();
    while let Some((path, staging)) = staged.pop_first() {
        let Staging::Ready(staged) = staging else {
            continue;
        };
        let outcome = root.find_dir(staged.dir.to_path()).and_then(|dir| {
            let Some(dir) = dir else { return Ok(()) };
            match dir.stat(&staged.name)? {
                Some(there) if there.same_object(&staged.seen) => dir.unlink(&staged.name),
                Some(_) | None => Ok(()),
            }
        });
        if let Err(error) = outcome {
            failed.push((path, format!("a temporary file is left: {error}")));
        }
    }
    failed
}

fn finish(root: &Dir, mut commit: Commit<'_>) -> Outcome {
    let left = remove_staged(root, &mut commit.staged);
    commit.outcome.warnings.extend(left);
    commit.outcome.warnings.extend(commit.loosened.restore(root));
    let unsynced = sync_dirs(root, &commit.touched);
    commit.outcome.warnings.extend(unsynced);
    commit.outcome.sort();
    commit.outcome
}

fn sync_dirs(root: &Dir, touched: &BTreeSet<RelPath>) -> Vec<(RelPath, String)> {
    if touched.len() > BULK && matches!(root.sync_file_system(), Ok(true)) {
        return Vec::new();
    }
    let sync = |path: &RelPath| root.find_dir(path.to_path())?.map_or(Ok(()), |dir| dir.sync());
    let failed = touched.iter().filter_map(|path| Some((path.clone(), sync(path).err()?)));
    failed.map(|(path, error)| (path, format!("not synced: {error}"))).collect()
}
