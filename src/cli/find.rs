//! `piton find`: the versions of a path in all checkpoints, and the paths that a pattern or a name matches.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use globset::{GlobBuilder, GlobMatcher};

use super::context::Context;
use super::exit::Exit;
use super::path_words::is_pattern;
use super::print;
use super::screen::age;
use crate::checkpoint::catalog::find::{Presence, Version};
use crate::checkpoint::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::number::Number;
use crate::model::text::{bytes, padded, printable, shell_name, width};
use crate::model::tree::Mode;
use crate::protocol::{FindDocument, FoundDocument, FoundItem, PathItem, PresenceWord, VersionItem};
use crate::sys::clock::{NamedTime, ms_of, now_ms};

/// The arguments of `piton find`.
#[derive(Debug, Args)]
pub(super) struct FindArgs {
    /// A file or directory, a pattern (`*.rs`, `src/**/x?`), or a bare name to search for in all directories
    pub path: PathBuf,
    /// Only checkpoints since this time (2026-01-31, 14:30, yesterday) or this long ago (2h, 3 days)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only checkpoints until this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

/// The times between which checkpoints count, in milliseconds since the epoch.
struct Between(i64, i64);

impl Between {
    fn of(args: &FindArgs) -> Result<Between> {
        let since = args.since.as_deref().map(|text| moment(text, "since")).transpose()?;
        let until = args.until.as_deref().map(|text| moment(text, "until")).transpose()?;
        Ok(Between(since.map_or(i64::MIN, |since| since.from), until.map_or(i64::MAX, |until| until.until)))
    }

    fn counts(&self, checkpoint: &Checkpoint) -> bool {
        ms_of(&checkpoint.record.time).is_none_or(|time| self.0 <= time && time <= self.1)
    }
}

/// Finds the versions of a path.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn find(context: &mut Context, args: &FindArgs) -> Result<Exit> {
    let timeline = context.timeline_to_read()?;
    let path = context.path(timeline.workspace(), &args.path)?;
    let between = Between::of(args)?;
    let mut versions = timeline.catalog().versions(&path)?;
    versions.iter_mut().for_each(|version| version.checkpoints.retain(|checkpoint| between.counts(checkpoint)));
    versions.retain(|version| !version.checkpoints.is_empty());
    if versions.is_empty()
        && let Some(pattern) = pattern(context, &timeline, args)?
        && let Some(exit) = matches(context, &timeline, args, (&pattern, &between))?
    {
        return Ok(exit);
    }
    let known = timeline.catalog().all()?;
    let broken = timeline.catalog().broken(&known)?;
    broken.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    let found = versions.iter().any(|version| matches!(version.presence, Presence::Held(..)));
    let is_unsure = versions.iter().any(|version| version.damage.is_some());
    let is_damaged = !broken.is_empty() || is_unsure;
    if context.json {
        let versions = versions.iter().map(item).collect();
        print::json(&FindDocument { path: PathItem::new(&path, None), versions })?;
    } else if found || is_unsure {
        let mut text = format!(
            "{}\n\n",
            print::bold(&format!("Versions of {}{}, newest first", context.leading(), path.display()))
        );
        let ages: Vec<String> = versions
            .iter()
            .map(|version| {
                version.checkpoints.iter().map(|one| &one.record.time).min().map_or_else(String::new, |time| age(time))
            })
            .collect();
        let widest = ages.iter().map(|age| width(age)).max().unwrap_or(0);
        for (version, age) in versions.iter().zip(&ages) {
            let what = match (version.presence, version.size) {
                (Presence::Absent, _) => "absent".to_owned(),
                (Presence::NotCaptured(why), _) => format!("not captured ({why})"),
                (Presence::Unreadable, _) => "damaged".to_owned(),
                (Presence::Held(Mode::Dir, id), _) => format!("{}  directory", id.short()),
                (Presence::Held(_, id), None) => format!("{}  damaged", id.short()),
                (Presence::Held(_, id), Some(size)) => format!("{}  {}", id.short(), bytes(size)),
            };
            let why = version.damage.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let time = print::faint(&padded(age, widest));
            add_line!(text, "  {time}  {what}  in checkpoint {}{why}", names(version).join(", "));
        }
        // Relative to the working directory, as it was typed, and as a shell takes it.
        let typed = args.path.as_os_str().as_bytes();
        let back = shell_name(typed);
        let option = context.option();
        let columns = width("restore N ") + width(&option) + width(&back);
        add!(text, "\n  piton {}  print it\n", padded(&format!("show{option} N:{back}"), columns));
        add!(text, "  piton restore{option} N {back}  restore it\n");
        print::data(&text)?;
    } else {
        let those = if is_damaged { "No checkpoint that can be read" } else { "No checkpoint" };
        let mut text = format!("{those} contains {}{}", context.leading(), path.display());
        // Newest first.
        let mut reasons: Vec<String> = Vec::new();
        for version in &versions {
            if let Presence::NotCaptured(why) = version.presence
                && !reasons.contains(&why.to_string())
            {
                reasons.push(why.to_string());
            }
        }
        if !reasons.is_empty() {
            add!(text, ": {}", reasons.join("; "));
        }
        text.push('\n');
        print::data(&text)?;
    }
    Ok(match (is_damaged, found) {
        (true, _) => Exit::Damaged,
        (false, true) => Exit::Done,
        (false, false) => Exit::Nothing,
    })
}

/// Parses a time, which may be a whole minute or day.
fn moment(text: &str, field: &str) -> Result<NamedTime> {
    NamedTime::parse(text, now_ms()).ok_or_else(|| {
        Error::new(Code::BadRequest, format!("`{}` is not a time", printable(text)))
            .field(field)
            .hint("for example 2026-01-31, \"2026-01-31 14:30\", 14:30, yesterday, 2h, 3 days")
    })
}

/// Returns the matcher of what was typed, if it is a pattern or a bare name. A pattern without a slash is one of names.
fn pattern(context: &Context, timeline: &Timeline, args: &FindArgs) -> Result<Option<GlobMatcher>> {
    let Some(typed) = args.path.to_str() else { return Ok(None) };
    let has_signs = is_pattern(typed);
    let text = match typed.contains('/') {
        false if has_signs => format!("**/{typed}"),
        false => format!("**/{}", globset::escape(typed)),
        true if has_signs => {
            let here = context.path(timeline.workspace(), Path::new("."))?;
            let here = if here.is_root() { String::new() } else { format!("{}/", globset::escape(&here.display())) };
            if typed.starts_with('/') { typed.trim_start_matches('/').to_owned() } else { format!("{here}{typed}") }
        }
        true => return Ok(None),
    };
    let glob = GlobBuilder::new(&text).literal_separator(true).build();
    let glob = glob.map_err(|error| {
        Error::new(Code::BadRequest, format!("`{}` is not a pattern: {error}", printable(typed))).field("path")
    })?;
    Ok(Some(glob.compile_matcher()))
}

/// Lists the files that a pattern matches; `None` for a bare name that matches none.
fn matches(
    context: &Context,
    timeline: &Timeline,
    args: &FindArgs,
    (pattern, between): (&GlobMatcher, &Between),
) -> Result<Option<Exit>> {
    let held = timeline.catalog().held_files(&|checkpoint| between.counts(checkpoint))?;
    let root = &timeline.workspace().path;
    let found: Vec<FoundItem> = held
        .iter()
        .filter(|(path, _)| pattern.is_match(path.to_path()))
        .map(|(path, newest)| FoundItem {
            path: PathItem::new(path, None),
            n: newest.record.number,
            time: newest.record.time.clone(),
            present: path.under(root).symlink_metadata().is_ok(),
        })
        .collect();
    let has_signs = is_pattern(&args.path.to_string_lossy());
    if found.is_empty() && !has_signs {
        return Ok(None);
    }
    let exit = Some(if found.is_empty() { Exit::Nothing } else { Exit::Done });
    if context.json {
        print::json(&FoundDocument { pattern: args.path.to_string_lossy().into_owned(), matches: found })?;
        return Ok(exit);
    }
    let typed = print::path(&args.path);
    if found.is_empty() {
        print::data(&format!("No checkpoint contains a file that {typed} matches\n"))?;
        return Ok(exit);
    }
    let mut text = format!("{}\n\n", print::bold(&format!("Files that {typed} matches")));
    for item in &found {
        let gone = if item.present { "" } else { "  not on disk now" };
        let name = format!("{}{}", context.leading(), item.path.shown());
        add_line!(text, "  {name}  newest in checkpoint {} ({}){gone}", item.n, print::local_time(&item.time));
    }
    add!(text, "\n  piton find PATH       list the versions of one file\n");
    add!(text, "  piton restore PATH    restore the newest version that differs\n");
    print::data(&text)?;
    Ok(exit)
}

fn item(version: &Version) -> VersionItem {
    let (id, presence, why) = match version.presence {
        Presence::Held(_, id) if version.damage.is_some() => (Some(id.to_string()), PresenceWord::Damaged, None),
        Presence::Held(_, id) => (Some(id.to_string()), PresenceWord::Held, None),
        Presence::Absent => (None, PresenceWord::Absent, None),
        Presence::NotCaptured(why) => (None, PresenceWord::NotCaptured, Some(why.to_string())),
        Presence::Unreadable => (None, PresenceWord::Damaged, None),
    };
    let why = why.or_else(|| version.damage.clone());
    VersionItem { id, presence, why, bytes: version.size, checkpoints: numbers(version) }
}

/// Returns the names of the checkpoints with a version, as `restore` takes them. A base capture has an id and no number; the newest is
/// named if no other checkpoint has the version.
fn names(version: &Version) -> Vec<String> {
    let (numbered, bases): (Vec<&Checkpoint>, Vec<&Checkpoint>) =
        version.checkpoints.iter().partition(|checkpoint| !checkpoint.record.number.is_none());
    let named = if numbered.is_empty() { bases.into_iter().rev().take(1).collect() } else { numbered };
    named.into_iter().map(Checkpoint::shown).collect()
}

/// Returns the numbers of the checkpoints with a version. A base capture is only named where it is the only one.
fn numbers(version: &Version) -> Vec<Number> {
    let all = version.checkpoints.iter().map(|checkpoint| checkpoint.record.number);
    let named: Vec<Number> = all.filter(|number| !number.is_none()).collect();
    if named.is_empty() { vec![Number::NONE] } else { named }
}
