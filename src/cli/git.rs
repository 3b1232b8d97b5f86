//! `piton git`: an ordinary git on a view of this workspace.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use super::view::{prepare_index, up_to_date};
use crate::checkpoint::Timeline;
use crate::checkpoint::records::home::resolved;
use crate::error::{Code, Error, Result};
use crate::git::{self, Asked, GitReach};
use crate::model::text::printable;

/// The arguments of `piton git`.
#[derive(Debug, Args)]
pub(super) struct GitArgs {
    /// A verb of git and its arguments; `--unsafe` before it lets any pass
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "[--unsafe] VERB")]
    pub rest: Vec<OsString>,
}

/// `piton git [--unsafe] …`; comes back only when git does not run.
///
/// # Errors
/// Returns the errors of making the view, and an error when there is no git.
pub(super) fn git(context: &Context, args: &GitArgs) -> Result<ExitCode> {
    let anything = args.rest.first().is_some_and(|first| first == "--unsafe");
    let line = if anything { &args.rest[1..] } else { &args.rest[..] };
    let asked = match git::judge(line) {
        Ok(asked) => Some(asked),
        Err(_) if anything => None,
        Err(refusal) => {
            let what = format!("{} is not run on checkpoints: {}", printable(&refusal.what), refusal.instead);
            return Ok(refused(context, &what, "Nothing was changed. `piton git --unsafe …` runs it all the same."));
        }
    };
    if anything {
        person::require("git may delete checkpoints for good")?;
    }
    if let Some(asked) = asked.as_ref().filter(|asked| WRITING.contains(&asked.verb.as_str())) {
        refuse_own(context, asked, line)?;
    }
    let view = up_to_date(context)?;
    let sends = asked.as_ref().is_some_and(|asked| asked.sends);
    if sends && !anything && is_secretive(&context.timeline()?)? {
        let what = "checkpoints of this workspace hold secrets, and git would send them too";
        let next = "Nothing was sent. `piton push REMOTE` leaves those out; `piton git --unsafe …` does not.";
        return Ok(refused(context, what, next));
    }
    if asked.as_ref().is_none_or(|asked| git::needs_index(&asked.verb)) && view.work_tree.is_dir() {
        prepare_index(context, &view)?;
    }
    let far = asked.as_ref().is_some_and(|asked| asked.verb == "push");
    let mut command = view.command(if far { GitReach::Server } else { GitReach::Here });
    command.args(line);
    Err(git::become_it(command))
}

/// Verbs that write where they are told to.
const WRITING: [&str; 3] = ["archive", "bundle", "push"];

/// Refuses to write into piton's own files. Also refuses, in a session of an agent, to remove refs of a remote.
///
/// # Errors
/// `bad-path`, `needs-person`.
fn refuse_own(context: &Context, asked: &Asked, line: &[OsString]) -> Result<()> {
    for word in line {
        let text = word.to_string_lossy();
        let typed = text.rsplit_once('=').map_or(&*text, |(_, value)| value);
        let path = resolved(Path::new(typed.strip_prefix("file://").unwrap_or(typed)))?;
        if context.home.is_inside(&path)? {
            let text = format!("`git {}` may not write into piton's own files", asked.verb);
            return Err(Error::new(Code::BadPath, text).path(&path));
        }
        let removes = ["--mirror", "--delete", "-d", "--prune", "--force", "-f"].contains(&&*text);
        if asked.verb == "push" && (removes || text.starts_with(['+', ':'])) {
            person::require("git may remove refs of the remote, which piton cannot restore")?;
        }
    }
    Ok(())
}

/// Returns true if a checkpoint of the workspace contains a secret, in its shared files or in its message.
fn is_secretive(timeline: &Timeline) -> Result<bool> {
    Ok(timeline.catalog().shows_secrets()? || timeline.catalog().tells_secrets()?)
}

/// Says why git is not run.
fn refused(context: &Context, what: &str, next: &str) -> ExitCode {
    match context.json {
        true => print::error(&Error::new(Code::BadRequest, what).hint(next), true),
        false => print::say(&format!("piton: {what}.\n{next}")),
    }
    Exit::Refused.into()
}
