//! `piton find`: the versions of a path in all checkpoints.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::checkpoint::catalog::find::{Presence, Version};
use crate::error::Result;
use crate::model::number::Number;
use crate::model::text::{bytes, padded, shell_name, width};
use crate::model::tree::Mode;
use crate::protocol::{FindDocument, PathItem, PresenceWord, VersionItem};

/// The arguments of `piton find`.
#[derive(Debug, Args)]
pub(super) struct FindArgs {
    /// A file or directory
    pub path: PathBuf,
}

/// Finds the versions of a path.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn find(context: &mut Context, args: &FindArgs) -> Result<Exit> {
    let timeline = context.timeline()?;
    let path = context.path(timeline.workspace(), &args.path)?;
    let versions = timeline.catalog().versions(&path)?;
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
        for version in &versions {
            let what = match (version.presence, version.size) {
                (Presence::Absent, _) => "absent".to_owned(),
                (Presence::NotCaptured(why), _) => format!("not captured ({why})"),
                (Presence::Unreadable, _) => "damaged".to_owned(),
                (Presence::Held(Mode::Dir, id), _) => format!("{}  directory", id.short()),
                (Presence::Held(_, id), None) => format!("{}  damaged", id.short()),
                (Presence::Held(_, id), Some(size)) => format!("{}  {}", id.short(), bytes(size)),
            };
            let why = version.damage.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let numbers: Vec<String> = numbers(version).iter().map(Number::to_string).collect();
            add_line!(text, "  {what}  in checkpoint {}{why}", numbers.join(", "));
        }
        // Relative to the working directory, as it was typed, and as a shell takes it.
        let typed = args.path.as_os_str().as_bytes();
        let back = shell_name(typed);
        let option = if context.is_outside() { " --outside" } else { "" };
        let columns = width("restore N ") + width(option) + width(&back);
        add!(text, "\n  piton {}  print it\n", padded(&format!("show{option} N:{back}"), columns));
        add!(text, "  piton restore{option} N {back}  bring it back\n");
        print::data(&text)?;
    } else {
        let those = if is_damaged { "No checkpoint that can be read" } else { "No checkpoint" };
        let mut text = format!("{those} holds {}{}", context.leading(), path.display());
        // The newest one says best why not.
        if let Some(Presence::NotCaptured(why)) = versions.first().map(|version| version.presence) {
            add!(text, ": {why}");
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

/// Returns the numbers of the checkpoints with a version. A base capture is only named where it is the only one.
fn numbers(version: &Version) -> Vec<Number> {
    let all = version.checkpoints.iter().map(|checkpoint| checkpoint.record.number);
    let named: Vec<Number> = all.filter(|number| !number.is_none()).collect();
    if named.is_empty() { vec![Number::NONE] } else { named }
}
