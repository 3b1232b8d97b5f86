//! Applying a plan: checks, staging, then the steps in an order that loses least when it is cut short.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::access::{Loosened, SharedFiles, check_contents};
use super::commit::Commit;
use super::outcome::{BlobSource, Outcome, Saved};
use super::parallel_swap::Turns;
use super::plan::Plan;
use super::stage::{Arrival, BULK, Staged, Staging, StagingArea};
use super::threads::threads;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::manifest::EntryKind;
use crate::model::path::RelPath;
use crate::sys::fs::deferred::DeferredUnlink;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::FileKind;
use crate::sys::progress::{Amount, Stage, WorkControl};

/// To free a file from this size on takes longer than to begin a thread.
const LARGE: u64 = 16 << 20;

/// Applies a plan below `root`. `control` is checked before every step; `Stop` ends the restore there.
///
/// Until every new content is staged and durable, any error leaves the tree as it was. From then on a failing step is
/// listed in the outcome, and the other steps are still done. Arrivals come first and deletions later, so that a cut
/// restore has too much rather than too little.
///
/// # Errors
/// `incomplete-checkpoint`, `store-damaged`, `permission`, `disk-full`, `shutting-down`; nothing has changed then.
pub fn apply(
    root: &Path,
    plan: &Plan,
    saved: &Saved<'_>,
    blobs: &dyn BlobSource,
    control: WorkControl<'_>,
) -> Result<Outcome> {
    let root = Dir::open_root(root)?;
    let shared = SharedFiles::of(&root, plan)?;
    check_contents(plan, &shared, blobs)?;
    let mut loosened = Loosened::prepare(&root, plan, &shared)?;
    let files = files_of(plan, &shared);
    let stage = StagingArea { root: &root, dev: root.stat_self()?.dev, blobs, bulk: files.len() > BULK };
    let (mut staged, outcome) = stage_all(&stage, &files, control);
    if let Err(error) = outcome {
        remove_staged(&root, &mut staged);
        loosened.restore(&root);
        return Err(error);
    }
    let mut commit = Commit {
        root: &root,
        saved,
        control,
        plan,
        shared: &shared,
        turns: Turns::default(),
        staged,
        loosened,
        deferred: deferred(&root, plan),
        made: BTreeSet::new(),
        held: BTreeSet::new(),
        listed: BTreeSet::new(),
        touched: BTreeSet::new(),
        outcome: Outcome::default(),
    };
    commit.run();
    Ok(finish(&root, commit))
}

/// Returns the deferred removals of a plan: the caller does not wait until the file system has freed many displaced
/// files, or a large one.
fn deferred(root: &Dir, plan: &Plan) -> DeferredUnlink {
    let displaced = || plan.replace.iter().map(|(_, from, _)| from).chain(plan.delete.iter().map(|(_, from)| from));
    match displaced().count() > BULK || displaced().any(|from| from.size >= LARGE) {
        true => DeferredUnlink::beside(root),
        false => DeferredUnlink::none(),
    }
}

/// Returns every file and link that gets new content: what is not there first.
fn files_of<'p>(plan: &'p Plan, shared: &SharedFiles) -> Vec<Arrival<'p>> {
    let created = plan.create.iter().map(|(path, to)| Arrival { path, from: None, to });
    let replaced = plan.replace.iter().filter(|(path, from, to)| !shared.is_in_place(path, from, to));
    let replaced = replaced.map(|(path, from, to)| Arrival { path, from: Some(from), to });
    created.chain(replaced).filter(|arrival| arrival.to.kind != EntryKind::Dir).collect()
}

/// Stages everything and makes it durable; what was staged is given even if that failed.
fn stage_all(
    stage: &StagingArea<'_>,
    files: &[Arrival<'_>],
    control: WorkControl<'_>,
) -> (BTreeMap<RelPath, Staging>, Result<()>) {
    let (progress, bytes) = (control.progress, files.iter().map(|file| file.to.size).sum());
    progress.begin(Stage::Writing, Amount { items: files.len() as u64, bytes });
    let write = |at: usize| stage.stage(&files[at]).inspect(|_| progress.add(1, files[at].to.size));
    let work = threads(files.len()).run(files.len(), &write, &Result::is_err, control.interrupt);
    let (mut staged, mut failed) = (BTreeMap::new(), None);
    for (file, done) in files.iter().zip(work.done) {
        match done {
            Some(Ok(staging)) => drop(staged.insert(file.path.clone(), staging)),
            Some(Err(error)) => failed = failed.or(Some(error)),
            None => {}
        }
    }
    let outcome = match failed {
        Some(error) => Err(error),
        None if work.stopped => {
            Err(Error::new(Code::ShuttingDown, "the restore was stopped before it changed anything"))
        }
        // Contents must be durable before the first old one goes: a crash must not leave empty files.
        None if stage.bulk => {
            progress.begin(Stage::Syncing, Amount::UNKNOWN);
            sync_all(stage.root, &staged)
        }
        None => Ok(()),
    };
    (staged, outcome)
}

fn sync_all(root: &Dir, staged: &BTreeMap<RelPath, Staging>) -> Result<()> {
    if root.sync_file_system()? {
        return Ok(());
    }
    for staging in staged.values() {
        if let Staging::Ready(staged) = staging
            && staged.seen.kind == FileKind::File
        {
            let dir = root.open_dir(staged.dir.to_path())?;
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
            let Some(dir) = dir else { return Err(moved_away(&staged)) };
            match dir.stat(&staged.name)? {
                Some(there) if there.same_object(&staged.seen) => dir.unlink(&staged.name),
                Some(_) | None => Ok(()),
            }
        });
        if let Err(error) = outcome {
            failed.push((path, format!("a temporary file was left behind: {error}")));
        }
    }
    failed
}

fn moved_away(staged: &Staged) -> Error {
    let name = String::from_utf8_lossy(&staged.name);
    Error::new(
        Code::Conflict,
        format!("its directory no longer exists; `{name}` might be left where the directory was moved to"),
    )
    .path(staged.dir.to_path())
}

fn finish(root: &Dir, mut commit: Commit<'_>) -> Outcome {
    commit.control.progress.begin(Stage::Syncing, Amount::UNKNOWN);
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
