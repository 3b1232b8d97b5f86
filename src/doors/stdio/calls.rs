//! Requests that the worker answers. Each is a function of the timeline.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::agents::Client;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::catalog::listing::{CheckpointList, ListFilter};
use crate::checkpoint::catalog::selector::Point;
use crate::checkpoint::history::agreed::Agreed;
use crate::checkpoint::history::request::{Restore, RestoreStage, Restored};
use crate::checkpoint::runs::rollback::Aim;
use crate::checkpoint::{Checkpoint, Timeline};
use crate::doors::{contents, replies};
use crate::engine::reach::normalise;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Record;
use crate::model::manifest::EntryKind;
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::run::run_id;
use crate::model::text::{git_quoted, printable};
use crate::protocol::{
    Before, Chosen, ChosenReply, Create, CreateReply, Diff, DiffReply, List, ListItem, ListQuery, ListReply,
    NoticeBody, PreviewReply, RestoreReply, Rollback, RollbackCompleted, RollbackProgress, RollbackStarted,
    RolledBackNotice, RunListReply, ShowReply, To, WarningBlock, spelling,
};
use crate::sys::interrupt::Interrupt;
use crate::worktree::restore::Plan;

/// The number of checkpoints in a list, unless more are asked for.
const DEFAULT_LIMIT: u64 = 50;

/// The result of a request.
pub(super) struct Called<B> {
    /// The body of the reply.
    pub body: B,
    /// Notices that follow it.
    pub notices: Vec<NoticeBody>,
}

impl<B> From<B> for Called<B> {
    fn from(body: B) -> Called<B> {
        Called { body, notices: Vec::new() }
    }
}

/// Returns the paths of a request: relative to the workspace, or absolute and inside it. A request without them names
/// none.
///
/// # Errors
/// `bad-request` for an empty list: it names nothing, and must not mean everything.
pub(super) fn paths(timeline: &Timeline, texts: Option<&[String]>) -> Result<Vec<RelPath>> {
    if texts.is_some_and(<[String]>::is_empty) {
        return Err(Error::new(Code::BadRequest, "`paths` is an empty list")
            .field("paths")
            .hint("to include everything, omit `paths`"));
    }
    texts.unwrap_or_default().iter().map(|text| path_in(timeline, text)).collect()
}

fn path_in(timeline: &Timeline, text: &str) -> Result<RelPath> {
    let (root, path) = (&timeline.workspace().path, Path::new(text));
    if path.is_relative() {
        return RelPath::parse(text.as_bytes());
    }
    inside(root, &normalise(path), path)
}

/// Returns an absolute path without `.` and `..` as one of the workspace; `typed` is what an error names.
///
/// # Errors
/// `bad-path` for one that lies outside.
pub fn inside(root: &Path, full: &Path, typed: &Path) -> Result<RelPath> {
    // The path may run through a link to the workspace itself.
    let relative = full.strip_prefix(root).map(Path::to_owned).or_else(|_| {
        let parent = full.parent().and_then(|parent| parent.canonicalize().ok()).unwrap_or_default();
        parent.join(full.file_name().unwrap_or_default()).strip_prefix(root).map(Path::to_owned)
    });
    match relative {
        Ok(relative) => RelPath::from_path(&relative),
        Err(_) => Err(Error::new(Code::BadPath, "the path is outside the workspace")
            .path(typed)
            .hint(format!("the workspace is {}", git_quoted(root.as_os_str().as_bytes())))),
    }
}

/// Answers `checkpoint.create`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn create(
    timeline: &mut Timeline,
    create: &Create,
    run: &str,
    control: Interrupt<'_>,
) -> Result<CreateReply> {
    let only = paths(timeline, create.paths.as_deref())?;
    let take = Take::by_hand(run, create.label.as_deref(), only, create.pin)?;
    let taken = timeline.take(&take, control)?;
    Ok(CreateReply { checkpoint: replies::block(&taken) })
}

/// Answers `checkpoint.list`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn list(timeline: &mut Timeline, query: &ListQuery, run: &str, control: Interrupt<'_>) -> Result<ListReply> {
    let before = match &query.before {
        None => None,
        Some(Before::Selector(text)) => Some(timeline.catalog().resolve_own(text)?.record.ordinal),
        Some(Before::Number(number)) => timeline.catalog().place_of(Number::of(*number))?,
    };
    let query = ListFilter {
        run: query.run.as_deref().map(run_id),
        kind: query.kind,
        path: query.path.as_deref().map(|path| path_in(timeline, path)).transpose()?,
        before,
        limit: usize::try_from(query.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX),
        with_base: false,
        with_steps: query.steps,
    };
    let listing = timeline.listing(&query, control)?;
    let branch = timeline.catalog().current_branch(run)?;
    Ok(list_reply(timeline, listing, branch))
}

/// Makes a listing as replies and `--json` carry it.
pub fn list_reply(timeline: &Timeline, listing: CheckpointList, current_branch: Option<String>) -> ListReply {
    let mut clients: HashMap<String, Option<String>> = HashMap::new();
    let items = listing.rows.into_iter().map(|row| {
        let record = Record::clone(&row.checkpoint.record);
        let stat = row.stat.unwrap_or_default();
        let client =
            clients.entry(record.run.clone()).or_insert_with_key(|run| replies::client_of(timeline, run)).clone();
        // A list is shown without the prompts that cannot be read.
        let prompt = timeline.catalog().prompt_of(&row.checkpoint).unwrap_or_default();
        ListItem {
            n: record.number,
            id: row.checkpoint.id.to_string(),
            kind: record.kind.into(),
            run: record.run,
            client,
            turn: record.turn,
            prompt,
            codon_id: record.codon_id,
            codon_name: record.codon_name,
            time: record.time,
            reason: record.reason,
            stat: replies::stat(&stat),
            pending: false,
            flags: record.flags.into_iter().chain(row.damaged.map(|_| "damaged".to_owned())).collect(),
            not_held: replies::not_held(&row.gaps),
            external: row.external.into_iter().map(Into::into).collect(),
            pinned: row.is_pinned,
            steps: row.steps,
            actions: replies::actions(timeline, row.actions).unwrap_or_default(),
        }
    });
    let checkpoints = items.collect();
    // Lists are shown without it where it cannot be read.
    let unguarded = replies::unguarded(timeline).unwrap_or_default();
    ListReply { current_branch, total: listing.total, checkpoints, faults: listing.faults, unguarded }
}

/// Lists the runs.
pub(super) fn runs(timeline: &mut Timeline) -> Result<RunListReply> {
    let (rows, faults) = timeline.runs()?;
    Ok(replies::runs(&rows, faults, timeline.home()))
}

/// Answers `checkpoint.pin` and `checkpoint.unpin`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn pin(timeline: &mut Timeline, chosen: &Chosen, pinned: bool) -> Result<ChosenReply> {
    let named = timeline.catalog().chosen(&chosen.shas)?;
    let news = timeline.pin(&named, pinned)?;
    Ok(replies::chosen(&named, &|id| news.contains(id)))
}

/// Answers `checkpoint.delete`: all that are named go, or none.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn delete(timeline: &mut Timeline, chosen: &Chosen, control: Interrupt<'_>) -> Result<ChosenReply> {
    let named = timeline.catalog().deletable(&chosen.shas)?;
    let gone = timeline.delete(&named, control)?;
    Ok(replies::chosen(&named, &|id| gone.contains(id)))
}

/// Answers `checkpoint.show`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn show(timeline: &mut Timeline, sha: &str) -> Result<ShowReply> {
    let checkpoint = timeline.catalog().resolve(sha)?;
    let catalog = timeline.catalog();
    let contents = catalog.contents(&checkpoint).map_err(|error| catalog.blamed(error, &[&checkpoint]));
    let ((manifest, coverage), damage) = (contents?, catalog.damage_of(&checkpoint)?);
    let files = manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir);
    Ok(ShowReply {
        checkpoint: contents::shown(timeline, &checkpoint, (&manifest, &coverage), damage.as_deref()),
        paths: List::of_paths(files.map(|(path, _)| path)),
    })
}

/// Answers `checkpoint.diff`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn diff(timeline: &mut Timeline, diff: &Diff, control: Interrupt<'_>) -> Result<DiffReply> {
    let select = paths(timeline, diff.paths.as_deref())?;
    let from = timeline.catalog().resolve(&diff.from)?;
    let to = diff.to.as_deref().map(|to| timeline.catalog().resolve(to)).transpose()?;
    let present = if to.is_none() { Some(timeline.present(Some(&from), control)?) } else { None };
    let catalog = timeline.catalog();
    let changes = match (&to, &present) {
        (Some(to), _) => catalog.changes_between(&from, to),
        (None, Some(present)) => catalog.changes_to_present(&from, present),
        (None, None) => Ok(Vec::new()),
    };
    let compared = changes.and_then(|mut changes| {
        changes.retain(|change| select.is_empty() || select.iter().any(|path| change.path.starts_with(path)));
        contents::diff(timeline, &from, to.as_ref(), &changes)
    });
    compared.map_err(|error| catalog.blamed(error, &contents::ends(&from, to.as_ref())))
}

/// Answers `rollback.preview`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn preview(
    timeline: &mut Timeline,
    rollback: &Rollback,
    run: &str,
    control: Interrupt<'_>,
) -> Result<PreviewReply> {
    let run = run_of(timeline, rollback, run)?;
    let restore = wanted(timeline, rollback, &run)?;
    let preview = timeline.preview(&restore, control)?;
    let unheld = List::of_paths(timeline.catalog().unheld(&preview.target, &preview.plan, &restore.paths)?.into_iter());
    let mut reply = PreviewReply { unheld, ..replies::preview(&preview) };
    if let Some(message) = foreign(timeline, &preview.target) {
        reply.warnings.insert(0, WarningBlock::plain("other-machine", message));
    }
    Ok(reply)
}

/// Says that a checkpoint was fetched, if it was: its number counts elsewhere.
pub fn foreign(timeline: &Timeline, checkpoint: &Checkpoint) -> Option<String> {
    let (id, of) = (checkpoint.id.short(), &checkpoint.record.workspace);
    let text = format!("Checkpoint {id} was fetched from another machine (workspace {of}, its own number).");
    timeline.catalog().is_foreign(checkpoint).then_some(text)
}

/// Answers `restore`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn restore(
    timeline: &mut Timeline,
    rollback: &Rollback,
    run: &str,
    control: Interrupt<'_>,
) -> Result<Called<RestoreReply>> {
    let restore = wanted(timeline, rollback, run)?;
    if let Some(expect) = &rollback.expect {
        timeline.catalog().require_newest(expect)?;
    }
    let restored = timeline.restore(&restore, control);
    let restored = restored.map_err(|error| with_preview(timeline, &restore, error, control))?;
    let mut reply = replies::restored(&restored);
    let kept = |path: &RelPath| restored.outcome.kept.iter().any(|(kept, _)| kept.starts_with(path));
    for path in restore.paths.iter().filter(|path| restored.operation.is_none() && !path.is_root() && !kept(path)) {
        if !timeline.catalog().is_held(&restored.target, path)? {
            let n = restored.target.record.number;
            reply.message = Some(format!("nothing to do: {}", refusal(n, path.to_path()).text()));
        }
    }
    let rewind = rewound(timeline, &restored, rollback.rewind)?;
    let notices = rolled_back(&restored, &rewind);
    Ok(Called { body: rewind.in_reply(reply), notices })
}

/// Gives a refusal of a stale plan the preview of the fresh one.
fn with_preview(timeline: &mut Timeline, restore: &Restore, error: Error, control: Interrupt<'_>) -> Error {
    with_fresh(error, || timeline.preview(restore, control).map(|preview| replies::preview(&preview)))
}

/// Gives a refusal of a stale plan the preview that `look` makes.
pub(super) fn with_fresh(error: Error, look: impl FnOnce() -> Result<PreviewReply>) -> Error {
    if error.code() != Code::StalePlan {
        return error;
    }
    let fresh = look().and_then(|preview| {
        serde_json::to_value(preview)
            .map_err(|error| Error::new(Code::Internal, "a reply could not be written").caused_by(error))
    });
    match fresh {
        Ok(preview) => error.preview(preview),
        Err(why) => {
            tracing::warn!(%why, "could not make a new preview of an outdated plan");
            error
        }
    }
}

/// Answers `rollback`: a restore that also moves a run. `tell` sends notices while it is done.
pub(super) fn rollback(
    timeline: &mut Timeline,
    rollback: &Rollback,
    run: &str,
    tell: &dyn Fn(NoticeBody),
    control: Interrupt<'_>,
) -> Result<Called<RestoreReply>> {
    let run = run_of(timeline, rollback, run)?;
    let restore = wanted(timeline, rollback, &run)?;
    if let Some(expect) = &rollback.expect {
        timeline.catalog().require_newest(expect)?;
    }
    let from = timeline.catalog().branch_of(&run)?;
    let staged = |stage: RestoreStage<'_>| told(stage, (&run, &from), tell);
    let rolled = timeline.rollback(&restore, &staged, control);
    let rolled = rolled.map_err(|error| with_preview(timeline, &restore, error, control))?;
    let record = &rolled.restored.target.record;
    let completed = RollbackCompleted {
        run: rolled.run.clone(),
        from_branch: from,
        next_branch: rolled.next_branch.clone(),
        to: rolled.restored.target.id.to_string(),
        codon_id: record.codon_id.clone(),
        codon_name: record.codon_name.clone(),
        checkpoint_type: record.kind.into(),
        operation: rolled.restored.operation.clone(),
        auto_restart: rollback.auto_restart,
    };
    let rewind = rewound(timeline, &rolled.restored, rollback.rewind)?;
    let mut notices = rolled_back(&rolled.restored, &rewind);
    notices.push(NoticeBody::RollbackCompleted(Box::new(completed)));
    Ok(Called { body: rewind.in_reply(replies::rolled_back(&rolled)), notices })
}

/// The number of paths from which on a rollback reports its progress.
const MANY: usize = 1000;

fn told(stage: RestoreStage<'_>, (run, branch): (&str, &str), tell: &dyn Fn(NoticeBody)) {
    let progress = |plan: &Plan, current_step: u64, message: &str| {
        if plan.changes() >= MANY {
            let paths = crate::model::text::count(plan.changes() as u64, "path");
            let message = format!("{message}: {paths}");
            tell(NoticeBody::RollbackProgress(RollbackProgress { current_step, total_steps: 2, message }));
        }
    };
    match stage {
        RestoreStage::Planned(plan, target) => {
            let record = &target.record;
            tell(NoticeBody::RollbackStarted(Box::new(RollbackStarted {
                run: run.to_owned(),
                from_branch: branch.to_owned(),
                to: target.id.to_string(),
                codon_id: record.codon_id.clone(),
                codon_name: record.codon_name.clone(),
                checkpoint_type: record.kind.into(),
                paths: plan.changes(),
            })));
            progress(plan, 1, "the present files are saved; restoring files");
        }
        RestoreStage::Applied(plan) => progress(plan, 2, "files are back"),
    }
}

/// Returns the run that a rollback means: the named one, else the client's own. If the client's run has no codons, it
/// is the run that recorded a codon last.
fn run_of(timeline: &mut Timeline, rollback: &Rollback, own: &str) -> Result<String> {
    if let Some(named) = &rollback.run {
        return known_run(timeline, named);
    }
    let is_free = matches!(rollback.to, To::Checkpoint(_)) || timeline.catalog().has_codons(own)?;
    let newest = if is_free { None } else { timeline.catalog().newest_run()? };
    Ok(newest.unwrap_or_else(|| own.to_owned()))
}

/// Returns a run by the client's name of it.
fn known_run(timeline: &mut Timeline, named: &str) -> Result<String> {
    let run = run_id(named);
    if timeline.catalog().has_run(&run)? {
        return Ok(run);
    }
    let text = format!("there is no run `{}` in this workspace", printable(named));
    Err(Error::new(Code::NoSuchRun, text).field("run").hint("`run.list` and `piton list --runs` list the runs"))
}

/// Returns the notice of files that changed under the agent; none if none did.
pub(super) fn rolled_back(restored: &Restored, rewind: &Rewind) -> Vec<NoticeBody> {
    if restored.operation.is_none() {
        return Vec::new();
    }
    let n = restored.target.record.number;
    let files = List::of_paths(restored.outcome.changed());
    let text = format!(
        "Files were rolled back to checkpoint {n}: {} changed. Read files again before you edit them.",
        crate::model::text::count(files.total as u64, "path")
    );
    let to = restored.target.id.to_string();
    let Rewind { turn: rewind_turn, how: rewind_how } = rewind.clone();
    vec![NoticeBody::RolledBack(RolledBackNotice { to, files, rewind_turn, rewind_how, text })]
}

/// The place to which a conversation should go back with the files, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Rewind {
    /// The turn before whose beginning that is.
    turn: Option<String>,
    /// The way to do that in the client of that turn.
    how: Option<String>,
}

impl Rewind {
    /// Returns the place before the beginning of a turn.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub(super) fn before(timeline: &Timeline, turn: Option<String>) -> Result<Rewind> {
        let history = timeline.catalog().history()?;
        let known = history.turns.iter().rev().find(|known| Some(&known.turn) == turn.as_ref());
        let client = known.and_then(|known| Client::named(known.client.as_deref()?).ok());
        Ok(Rewind { turn, how: client.and_then(Client::how_to_rewind) })
    }

    /// Names it in a reply.
    pub(super) fn in_reply(self, reply: RestoreReply) -> RestoreReply {
        RestoreReply { rewind_turn: self.turn, rewind_how: self.how, ..reply }
    }
}

/// Returns the turn before whose beginning the conversation should go back, if that was asked for and files went back.
fn rewound(timeline: &Timeline, restored: &Restored, is_asked: bool) -> Result<Rewind> {
    match is_asked && restored.operation.is_some() {
        true => Rewind::before(timeline, timeline.catalog().turn_from(&restored.target)?),
        false => Ok(Rewind::default()),
    }
}

fn wanted(timeline: &mut Timeline, rollback: &Rollback, run: &str) -> Result<Restore> {
    let paths = paths(timeline, rollback.paths.as_deref())?;
    let aim = match &rollback.to {
        To::Checkpoint(selector) => Aim::Checkpoint(selector.clone()),
        To::LastSuccess => Aim::LastSuccess,
        To::Codon(id, kind) => {
            let point = Point::parse(&spelling(kind)).unwrap_or(Point::End);
            Aim::Codon { id: id.clone(), point }
        }
    };
    let target = timeline.catalog().aim(&aim, run)?;
    let agreed = Agreed::by_digest(rollback.plan.as_deref());
    Ok(Restore { agreed, local: rollback.local, ..Restore::to(target.id, run, paths, rollback.keep_new) })
}
