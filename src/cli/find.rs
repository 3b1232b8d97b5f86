//! `piton find`: the versions of a path in all checkpoints.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::checkpoint::catalog::find::{Presence, Version};
use crate::error::Result;
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
    let found = versions.iter().any(|version| matches!(version.presence, Presence::Held(..)));
    if context.json {
        let versions = versions.iter().map(item).collect();
        print::json(&FindDocument { path: PathItem::new(&path, None), versions })?;
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
        // Relative to the working directory, as it was typed, and as a shell takes it.
        let typed = args.path.as_os_str().as_bytes();
        let back = shell_name(typed);
        let columns = width("restore N ") + width(&back);
        add!(text, "\n  piton {}  print it\n", padded(&format!("show N:{back}"), columns));
        add!(text, "  piton restore N {back}  bring it back\n");
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

fn item(version: &Version) -> VersionItem {
    let (id, presence, why) = match version.presence {
        Presence::Held(_, id) => (Some(id.to_string()), PresenceWord::Held, None),
        Presence::Absent => (None, PresenceWord::Absent, None),
        Presence::NotCaptured(why) => (None, PresenceWord::NotCaptured, Some(why.to_string())),
    };
    let checkpoints = version.checkpoints.iter().map(|checkpoint| checkpoint.record.ordinal).collect();
    VersionItem { id, presence, why, bytes: version.size, checkpoints }
}
