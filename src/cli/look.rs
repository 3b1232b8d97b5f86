//! Verbs that take and look: checkpoint, list, show, diff, find.

use serde_json::json;

use super::report::{self, Words};
use super::verbs::{CheckpointArgs, DiffArgs, FindArgs, ListArgs, ShowArgs};
use super::{Context, Exit, print};
use crate::checkpoint::capture::held::refusal;
use crate::checkpoint::capture::take::{Take, Taken, listed_skips};
use crate::checkpoint::catalog::diff::{MAX_COUNTED_FILES, Stat, is_file_change};
use crate::checkpoint::catalog::find::Presence;
use crate::checkpoint::catalog::listing::Query;
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::doors::stdio::shared::{self, block, list_reply};
use crate::error::{Code, Error, Result};
use crate::model::build::stored_path;
use crate::model::checkpoint::{Kind, Record};
use crate::model::path::RelPath;
use crate::model::redact::redact;
use crate::model::text::{bytes, count, printable};
use crate::model::tree::Mode;
use crate::protocol::{List, PathItem};
use crate::store::COMMAND;
use crate::sys::interrupt::Flow;
use crate::worktree::Target;

pub fn checkpoint(context: &mut Context, args: &CheckpointArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let only = context.paths(timeline.workspace(), &args.paths)?;
    let targets = only.iter().map(|path| Target { path: path.clone(), recursive: true }).collect();
    let label = args.label.as_deref().or(args.message.as_deref());
    let always = args.pin || label.is_some();
    let label = redact(label.unwrap_or("by hand"));
    let take = Take { only, targets, always, pinned: args.pin, ..Take::of(Kind::Manual, "local", &label) };
    let taken = timeline.take(&take, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    // Where no sidecar has idle time, each command does a little.
    print::settled(timeline.recompress(COMMAND, &|| Flow::Continue));
    if context.json {
        print::json(&json!({ "checkpoint": block(&taken) }))?;
    } else {
        print::data(&taken_text(&taken))?;
    }
    Ok(Exit::Done)
}

fn taken_text(taken: &Taken) -> String {
    let record = &taken.checkpoint.record;
    let id = taken.checkpoint.id.short();
    let mut text = if taken.unchanged {
        format!("Nothing changed since checkpoint {} ({id}).\n", record.ordinal)
    } else {
        format!("Checkpoint {} ({id}): {}, {}.\n", record.ordinal, count(record.files, "file"), bytes(record.bytes))
    };
    let skips = listed_skips(&taken.coverage);
    if !skips.is_empty() {
        add_line!(text, "Left out, and listed with it: {}", count(skips.len() as u64, "path"));
        for (path, why) in skips.iter().take(10) {
            add_line!(text, "  {}  {why}", path.display());
        }
        if skips.len() > 10 {
            add_line!(text, "  … and {} more: `piton show {}`", skips.len() - 10, record.ordinal);
        }
    }
    taken.warnings.iter().for_each(|warning| print::warning(warning));
    text
}

pub fn list(context: &mut Context, args: &ListArgs) -> Result<Exit> {
    let kind = match &args.kind {
        None => None,
        Some(text) => Some(Kind::parse(text).ok_or_else(|| {
            let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            Error::new(Code::BadRequest, format!("`{}` is not a kind", printable(text)))
                .hint(format!("the kinds are: {}", kinds.join(", ")))
        })?),
    };
    let mut timeline = context.timeline()?;
    if args.remote {
        return super::remote::list(context, &mut timeline, args, kind);
    }
    let path = args.path.as_ref().map(|path| context.path(timeline.workspace(), path)).transpose()?;
    let query = Query { run: args.run.clone(), kind, path, before: None, limit: args.limit, with_base: args.all };
    let listing = timeline.listing(&query, &|| Flow::Continue)?;
    listing.faults.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    let damaged = !listing.faults.is_empty();
    let empty = listing.rows.is_empty();
    if context.json {
        print::json(&list_reply(listing, timeline.branch_of("local")?))?;
    } else if empty {
        print::data(&format!("No checkpoints for {}\n", print::path(&timeline.workspace().path)))?;
    } else {
        let title = format!("Checkpoints for {}", printable(&timeline.workspace().path.to_string_lossy()));
        let listing = report::read(&list_reply(listing, String::new()))?;
        print::data(&report::list(&title, &listing, &Words::TERMINAL))?;
    }
    Context::leave(timeline);
    Ok(if damaged {
        Exit::Damaged
    } else if empty {
        Exit::Nothing
    } else {
        Exit::Done
    })
}

pub fn stat_text(stat: &Stat) -> String {
    let cut = if stat.cut { format!(" in the first {MAX_COUNTED_FILES}") } else { String::new() };
    format!("{}, +{}/-{}{cut}", count(stat.files, "file"), stat.plus, stat.minus)
}

pub fn show(context: &mut Context, args: &ShowArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let what = args.what.clone().unwrap_or_else(|| "@{0}".to_owned());
    let (checkpoint, path) = split(&mut timeline, &what)?;
    match path {
        None => show_checkpoint(context, &timeline, &checkpoint),
        Some(path) => show_path(context, &timeline, &checkpoint, &path),
    }
}

/// `CHECKPOINT` or `CHECKPOINT:PATH`; a codon selector has colons of its own.
fn split(timeline: &mut Timeline, what: &str) -> Result<(Checkpoint, Option<RelPath>)> {
    let whole = timeline.resolve(what);
    if whole.is_ok() || !what.contains(':') {
        return whole.map(|checkpoint| (checkpoint, None));
    }
    let (prefix, rest) = what.strip_prefix("id:").map_or(("", what), |rest| ("id:", rest));
    let Some((selector, path)) = rest.split_once(':') else { return whole.map(|checkpoint| (checkpoint, None)) };
    let checkpoint = timeline.resolve(&format!("{prefix}{selector}"))?;
    Ok((checkpoint, Some(RelPath::parse(path.as_bytes())?)))
}

fn show_checkpoint(context: &Context, timeline: &Timeline, checkpoint: &Checkpoint) -> Result<Exit> {
    let (manifest, coverage) = timeline.contents(checkpoint)?;
    let skips = listed_skips(&coverage);
    let record = &checkpoint.record;
    if context.json {
        print::json(&json!({
            "n": record.ordinal, "id": checkpoint.id.to_string(), "kind": record.kind.as_str(), "run": record.run,
            "turn": record.turn, "codonId": record.codon_id, "codonName": record.codon_name,
            "durationMs": record.duration_ms, "time": record.time, "reason": record.reason, "files": record.files,
            "bytes": record.bytes, "flags": record.flags, "pinned": record.pinned, "effects": record.effects,
            "skipped": List::of_reasons(skips.iter().map(|(path, why)| (path, why.to_string()))),
            "paths": List::of_paths(manifest.iter().map(|(path, _)| path)),
        }))?;
        return Ok(Exit::Done);
    }
    let mut text = print::bold(&format!("Checkpoint {} ({})", record.ordinal, checkpoint.id));
    let effects: Vec<&str> = record.effects.iter().map(|class| class.as_str()).collect();
    add!(
        text,
        "\nkind     {}\ntime     {}\nrun      {}\n",
        record.kind.as_str(),
        print::local_time(&record.time),
        printable(&record.run)
    );
    let from = if timeline.is_foreign(checkpoint) { record.workspace.clone() } else { String::new() };
    for (name, value) in [
        ("of", from),
        ("turn", record.turn.clone().unwrap_or_default()),
        ("codon", codon_text(record)),
        ("effects", effects.join(", ")),
        ("flags", record.flags.join(", ")),
    ] {
        if !value.is_empty() {
            add_line!(text, "{name:<8} {}", printable(&value));
        }
    }
    add!(text, "reason   {}\nfiles    {} ({})\n", printable(&record.reason), record.files, bytes(record.bytes));
    for (path, why) in &skips {
        add_line!(text, "left out {}  {why}", path.display());
    }
    text.push('\n');
    for (path, entry) in
        manifest.iter().filter(|(path, entry)| entry.mode() != Mode::Dir || manifest.inside(path).next().is_none())
    {
        let slash = if entry.mode() == Mode::Dir { "/" } else { "" };
        add_line!(text, "{:04o}  {}{slash}", entry.perm, path.display());
    }
    print::data(&text)?;
    Ok(Exit::Done)
}

fn codon_text(record: &Record) -> String {
    let Some(id) = &record.codon_id else { return String::new() };
    let name = record.codon_name.as_deref().filter(|name| name != id).unwrap_or_default();
    let took = record.duration_ms.map(|ms| format!(" ({ms} ms)")).unwrap_or_default();
    format!("{id} {name}{took}")
}

fn show_path(context: &Context, timeline: &Timeline, checkpoint: &Checkpoint, path: &RelPath) -> Result<Exit> {
    let Some((mode, id)) = timeline.entry_at(&checkpoint.tree, path)? else {
        return Err(refusal(checkpoint.record.ordinal, path.to_path()));
    };
    if mode == Mode::Dir {
        let (manifest, _) = timeline.contents(checkpoint)?;
        let inside = manifest.inside(path).map(|(path, _)| format!("{}\n", path.display()));
        print::data(&inside.collect::<String>())?;
        return Ok(Exit::Done);
    }
    if context.json {
        let stored = String::from_utf8_lossy(&stored_path(path)).into_owned();
        print::json(
            &json!({ "id": id.to_string(), "stored_path": stored, "bytes": timeline.store().blob_size(&id)? }),
        )?;
        return Ok(Exit::Done);
    }
    match timeline.store().copy_blob(&id, &mut std::io::stdout().lock()) {
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Done),
        other => other.map(|_| Exit::Done),
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe)
}

pub fn diff(context: &mut Context, args: &DiffArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let select = context.paths(timeline.workspace(), &args.paths)?;
    let from = timeline.resolve(&args.from)?;
    let mut changes = match &args.to {
        Some(to) => {
            let to = timeline.resolve(to)?;
            timeline.changes_between(&from, &to)?
        }
        None => {
            let present = timeline.present(&|| Flow::Continue)?;
            timeline.changes_to_present(&from, &present)?
        }
    };
    changes.retain(|change| {
        is_file_change(change) && (select.is_empty() || select.iter().any(|path| change.path.starts_with(path)))
    });
    let stat = timeline.stat(&changes)?;
    if context.json {
        let files = List::of_paths(changes.iter().map(|change| &change.path));
        print::json(&json!({ "stat": shared::stat(&stat), "files": files }))?;
        return Ok(Exit::Done);
    }
    if changes.is_empty() {
        print::data("No differences.\n")?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    let mut patches = String::new();
    let width = changes.iter().map(|change| change.path.display().chars().count()).max().unwrap_or(0).min(60);
    for change in &changes {
        let patch = timeline.patch_of(change)?;
        let how = match (&change.old, &change.new) {
            (None, _) => " (new)",
            (_, None) => " (deleted)",
            _ => "",
        };
        let numbers = if patch.binary { "binary".to_owned() } else { format!("+{}/-{}", patch.plus, patch.minus) };
        add_line!(text, " {:<width$} | {numbers}{how}", change.path.display());
        patches.push_str(&patch.text);
    }
    add_line!(text, " {}", stat_text(&stat));
    if !args.stat {
        text.push('\n');
        text.push_str(&print::patch(&print::harmless(&patches)));
    }
    print::data(&text)?;
    Ok(Exit::Done)
}

/// `find --json`.
#[derive(serde::Serialize)]
struct Found {
    #[serde(flatten)]
    path: PathItem,
    versions: Vec<serde_json::Value>,
}

pub fn find(context: &mut Context, args: &FindArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let path = context.path(timeline.workspace(), &args.path)?;
    let versions = timeline.versions(&path)?;
    let found = versions.iter().any(|version| matches!(version.presence, Presence::Held(..)));
    if context.json {
        let versions = versions
            .iter()
            .map(|version| {
                let (id, presence, why) = match version.presence {
                    Presence::Held(_, id) => (Some(id.to_string()), "held", None),
                    Presence::Absent => (None, "absent", None),
                    Presence::NotCaptured(why) => (None, "not-captured", Some(why.to_string())),
                };
                json!({ "id": id, "presence": presence, "why": why, "bytes": version.size,
                    "checkpoints": version.checkpoints.iter().map(|c| c.record.ordinal).collect::<Vec<_>>() })
            })
            .collect();
        print::json(&Found { path: PathItem::new(&path, None), versions })?;
    } else if found {
        let mut text = format!("{}\n\n", print::bold(&format!("Versions of {}, newest first", path.display())));
        for version in &versions {
            let what = match (version.presence, version.size) {
                (Presence::Absent, _) => "absent".to_owned(),
                (Presence::NotCaptured(why), _) => format!("not captured ({why})"),
                (Presence::Held(Mode::Dir, id), _) => format!("{}  directory", id.short()),
                (Presence::Held(_, id), size) => format!("{}  {}", id.short(), bytes(size.unwrap_or(0))),
            };
            let numbers: Vec<String> = version.checkpoints.iter().map(|c| c.record.ordinal.to_string()).collect();
            add_line!(text, "  {what}  in checkpoint {}", numbers.join(", "));
        }
        add!(text, "\n  piton show N:{0}      print it\n  piton restore N {0}   bring it back\n", path.display());
        print::data(&text)?;
    } else {
        let mut text = format!("No checkpoint holds {}", path.display());
        // The newest one says best why not.
        if let Some(Presence::NotCaptured(why)) = versions.first().map(|version| version.presence) {
            add!(text, ": {why}");
        }
        text.push('\n');
        print::data(&text)?;
    }
    Ok(if found { Exit::Done } else { Exit::Nothing })
}
