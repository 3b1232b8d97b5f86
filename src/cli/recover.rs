//! `piton recover`: the newest version of a path that is not the one on the disk.

use std::path::PathBuf;

use clap::Args;

use super::choose;
use super::confirm::{ask_first, finished};
use super::context::Context;
use super::exit::Exit;
use super::named::unknown_path;
use super::print;
use super::report::RESTORED;
use super::stop;
use crate::checkpoint::history::request::Restore;
use crate::error::Result;
use crate::protocol::NoStep;

/// The arguments of `piton recover`.
#[derive(Debug, Args)]
pub(super) struct RecoverArgs {
    /// A file or a directory; in a directory, missing and changed files are restored
    pub path: PathBuf,
    /// Choose files and hunks interactively in the terminal
    #[arg(long, short = 'i', conflicts_with_all = ["yes", "json", "preview"])]
    pub interactive: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

/// Brings back the newest version of a path that differs from the disk. Nothing that is new on the disk goes.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn recover(context: &mut Context, args: &RecoverArgs) -> Result<Exit> {
    if args.interactive {
        choose::require_screen("`piton restore PATH` restores the whole path")?;
    }
    let mut timeline = context.timeline_to_read()?;
    let path = context.path(timeline.workspace(), &args.path)?;
    timeline.catalog().refuse_interrupted()?;
    let newest = timeline.catalog().all()?.checkpoints.last().cloned();
    let present = timeline.present(newest.as_ref(), &stop::flow)?;
    let Some(found) = timeline.catalog().newest_other(&path, &present)? else {
        if timeline.catalog().versions(&path)?.is_empty() {
            return Err(unknown_path(&path, "no checkpoint contains that path"));
        }
        let message = "Nothing to restore: no checkpoint contains a different version.".to_owned();
        match context.json {
            true => print::json(&NoStep { operation: None, message })?,
            false => print::note(&message),
        }
        return Ok(Exit::Nothing);
    };
    let restore = Restore::to(found.id, "local", vec![path], true);
    let preview = timeline.preview(&restore, &stop::flow)?;
    if args.interactive {
        return choose::restore(context, &mut timeline, restore, &preview);
    }
    if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), "Recover")? {
        return Ok(exit);
    }
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let restored = timeline.restore(&restore, &stop::flow)?;
    print::settled(timeline.leave());
    finished(context, &restored, (RESTORED, None), Some(&preview))
}
