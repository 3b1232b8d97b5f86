//! `piton show`: a checkpoint, a directory or a file in it.

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::git_undo::SHORT;
use super::named::{NEWEST, split, tell_replaced};
use super::print;
use crate::checkpoint::capture::request::listed_skips;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::catalog::words::is_turn;
use crate::checkpoint::records::repositories::{KeptData, KeptRepository};
use crate::checkpoint::{Checkpoint, Timeline};
use crate::doors::{contents, replies};
use crate::error::{Error, Result};
use crate::model::build::stored_path;
use crate::model::checkpoint::Record;
use crate::model::manifest::ManifestEntry;
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::text::{bytes, count, printable};
use crate::model::tree::Mode;
use crate::protocol::{List, PathItem, RepositoryBlock, ShowDirectoryDocument, ShowDocument, ShowFileDocument};
use crate::sys::clock::{NamedTime, ms_of, now_ms};
use crate::worktree::PrivatePart;

/// The arguments of `piton show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// A checkpoint (12, 12.1, id, label, 10m, 13:20, latest), CHECKPOINT:PATH, or a turn (t-3) [default: the newest checkpoint]
    pub what: Option<String>,
}

/// Shows a checkpoint, a directory or a file.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn show(context: &mut Context, args: &ShowArgs) -> Result<Exit> {
    let mut timeline = context.timeline_to_read()?;
    let what = args.what.as_deref().unwrap_or(NEWEST);
    if is_turn(what) {
        return super::turns::diff(context, &mut timeline, (Some(what), None), (&[], false));
    }
    let (checkpoint, path) = split(context, &mut timeline, what)?;
    if path.is_none() && !context.json {
        name_others(&timeline, what, &checkpoint)?;
    }
    tell_replaced(&timeline, what.split(':').next().unwrap_or_default(), &checkpoint);
    match path {
        None => show_checkpoint(context, &timeline, &checkpoint),
        Some(path) => {
            let shown = show_path(context, &timeline, &checkpoint, &path);
            shown.map_err(|error| timeline.catalog().blamed(error, &[&checkpoint]))
        }
    }
}

/// Names the other checkpoints of a time that is a whole minute or day.
fn name_others(timeline: &Timeline, what: &str, shown: &Checkpoint) -> Result<()> {
    /// The most that are named.
    const MOST: usize = 10;
    let Some(time) = NamedTime::parse(what, now_ms()).filter(|time| time.from < time.until) else { return Ok(()) };
    let is_then = |one: &&Checkpoint| {
        one.id != shown.id
            && one.record.number != Number::NONE
            && ms_of(&one.record.time).is_some_and(|at| time.from <= at && at <= time.until)
    };
    let all = timeline.catalog().all()?;
    let others: Vec<String> = all.checkpoints.iter().filter(is_then).map(|one| one.record.number.to_string()).collect();
    if !others.is_empty() {
        let more = others.len().saturating_sub(MOST);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = others[..others.len().min(MOST)].join(", ");
        print::note(&format!("Other checkpoints from {}: {named}{more}", printable(what)));
    }
    Ok(())
}

fn show_checkpoint(context: &Context, timeline: &Timeline, checkpoint: &Checkpoint) -> Result<Exit> {
    let catalog = timeline.catalog();
    let read = catalog.contents(checkpoint).map_err(|error| catalog.blamed(error, &[checkpoint]));
    let ((manifest, coverage), damage) = (read?, catalog.damage_of(checkpoint)?);
    let exit = if damage.is_some() { Exit::Damaged } else { Exit::Done };
    let facts = contents::shown(timeline, checkpoint, (&manifest, &coverage), damage.as_deref());
    let (skips, private) = (listed_skips(&coverage), catalog.hidden_part(checkpoint)?);
    let record = &checkpoint.record;
    if context.json {
        print::json(&ShowDocument { checkpoint: facts, paths: entries(manifest.iter(), &private) })?;
        return Ok(exit);
    }
    let mut text = print::bold(&format!("Checkpoint {} ({})", record.number, checkpoint.id));
    let effects: Vec<&str> = record.effects.iter().map(|class| class.as_str()).collect();
    add!(
        text,
        "\nkind     {}\ntime     {}\nrun      {}\n",
        record.kind.as_str(),
        print::local_time(&record.time),
        printable(&record.run)
    );
    let from = if catalog.is_foreign(checkpoint) { record.workspace.clone() } else { String::new() };
    for (name, value) in [
        ("of", from),
        ("client", facts.facts.client.clone().unwrap_or_default()),
        ("turn", turn_text(record, facts.prompt.as_deref())),
        ("codon", codon_text(record)),
        ("effects", effects.join(", ")),
        ("flags", facts.facts.flags.join(", ")),
        ("damage", damage.unwrap_or_default()),
    ] {
        if !value.is_empty() {
            add_line!(text, "{name:<8} {}", printable(&value));
        }
    }
    add!(text, "reason   {}\nfiles    {} ({})", printable(&record.reason), record.files, bytes(record.bytes));
    match replies::directories(&manifest) {
        0 => text.push('\n'),
        1 => text.push_str(", and 1 directory\n"),
        many => add_line!(text, ", and {many} directories"),
    }
    let leading = context.leading();
    for action in facts.actions.iter().filter(|action| action.lost.is_none_or(|lost| lost > 0)) {
        let lost = action.lost.map(|lost| format!("  ({})", count(lost as u64, "path"))).unwrap_or_default();
        add_line!(text, "then     {}{lost}", printable(&action.command));
    }
    for (path, why) in &skips {
        add_line!(text, "left out {leading}{}  {why}", path.display());
    }
    match private.files() {
        0 if catalog.is_layer_expired(checkpoint)? => {
            text.push_str("private  its ignored and secret files were saved, but have expired\n");
        }
        0 => {}
        files => add_line!(text, "private  {}, hidden from all git commands", count(files, "file")),
    }
    if let Some(repository) = &facts.repository {
        let name = checkpoint.shown();
        add_line!(text, "git      {}  `piton undo --git --to {name}` restores it", git_text(repository));
    }
    let (root, is_file) = (&catalog.workspace.path, |kept: &KeptRepository| matches!(kept.data, KeptData::File(_)));
    // Each checkpoint contains the `.git` files; only missing and changed ones are worth a line.
    let kept = catalog.repositories_of(checkpoint)?.into_iter();
    for kept in kept.filter(|kept| !(is_file(kept) && kept.is_in_place(root))) {
        let command = catalog.restore_command_at(checkpoint, &kept.path);
        add_line!(text, "kept     {leading}{}  `{command}` restores it if it is missing", kept.path.display());
    }
    text.push('\n');
    for (path, entry) in
        manifest.iter().filter(|(path, entry)| entry.mode() != Mode::Dir || manifest.inside(path).next().is_none())
    {
        let mark = if private.manifest.contains(path) { format!("  ({PRIVATE})") } else { String::new() };
        add_line!(text, "{:04o}  {}{mark}", entry.perm, shown(context, path, entry.mode()));
    }
    print::pages(&text)?;
    Ok(exit)
}

fn shown(context: &Context, path: &RelPath, mode: Mode) -> String {
    let mut item = PathItem { dir: mode == Mode::Dir, ..PathItem::new(path, None) };
    if context.is_outside() {
        item.make_absolute();
    }
    item.shown()
}

/// Returns the turn of a checkpoint: the client's name of it, and the first words of its prompt.
fn turn_text(record: &Record, prompt: Option<&str>) -> String {
    let name = record.turn.as_deref().unwrap_or_default();
    prompt.map_or_else(|| name.to_owned(), |prompt| format!("\"{prompt}\" ({name})"))
}

/// The mark of a path in the private layer.
const PRIVATE: &str = "private";

fn entries<'m>(entries: impl Iterator<Item = (&'m RelPath, &'m ManifestEntry)>, private: &PrivatePart) -> List {
    let why = |path: &RelPath| private.manifest.contains(path).then(|| PRIVATE.to_owned());
    let dir = |entry: &ManifestEntry| entry.mode() == Mode::Dir;
    List::of_items(entries.map(|(path, entry)| PathItem { dir: dir(entry), ..PathItem::new(path, why(path)) }))
}

/// Returns a repository for people.
fn git_text(repository: &RepositoryBlock) -> String {
    let commit = repository.commit.as_deref().map(|id| id.get(..SHORT).unwrap_or(id));
    let place = match (&repository.branch, commit) {
        (Some(branch), Some(commit)) => format!("branch `{}` at {commit}", printable(branch)),
        (Some(branch), None) => format!("branch `{}` without a commit", printable(branch)),
        (None, Some(commit)) => format!("no branch, at {commit}"),
        (None, None) => "no branch and no commit".to_owned(),
    };
    let stashes = match repository.stashes {
        0 => String::new(),
        1 => ", 1 stash".to_owned(),
        many => format!(", {many} stashes"),
    };
    let progress = repository.in_progress.as_deref().map(|verb| format!(", `git {verb}` in progress"));
    format!("{place}{stashes}{}", progress.unwrap_or_default())
}

fn codon_text(record: &Record) -> String {
    let Some(id) = &record.codon_id else { return String::new() };
    let name = record.codon_name.as_deref().filter(|name| name != id).unwrap_or_default();
    let took = record.duration_ms.map(|ms| format!(" ({ms} ms)")).unwrap_or_default();
    format!("{id} {name}{took}")
}

fn show_path(context: &Context, timeline: &Timeline, checkpoint: &Checkpoint, path: &RelPath) -> Result<Exit> {
    let Some((mode, id)) = timeline.catalog().entry_at(&timeline.catalog().whole(checkpoint)?, path)? else {
        return Err(refusal(checkpoint.record.number, &context.place(path)));
    };
    if mode == Mode::Dir {
        let (manifest, _) = timeline.catalog().contents(checkpoint)?;
        let private = timeline.catalog().hidden_part(checkpoint)?;
        if context.json {
            let of = PathItem { dir: true, ..PathItem::new(path, None) };
            let n = checkpoint.record.number;
            print::json(&ShowDirectoryDocument { n, of, paths: entries(manifest.inside(path), &private) })?;
        } else {
            let inside = manifest.inside(path).map(|(path, entry)| format!("{}\n", shown(context, path, entry.mode())));
            print::data(&inside.collect::<String>())?;
        }
        return Ok(Exit::Done);
    }
    if context.json {
        let stored = String::from_utf8_lossy(&stored_path(path)).into_owned();
        let bytes = timeline.catalog().blob_size(&id)?;
        let (n, of) = (checkpoint.record.number, PathItem::new(path, None));
        print::json(&ShowFileDocument { n, of, id: id.to_string(), stored_path: stored, bytes })?;
        return Ok(Exit::Done);
    }
    match timeline.catalog().copy_blob(&id, &mut std::io::stdout().lock()) {
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Done),
        other => other.map(|_| Exit::Done),
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe)
}
