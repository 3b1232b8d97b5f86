//! `piton git` and `piton env`: an ordinary git on a view of this workspace.

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use super::verbs::{EnvArgs, GitArgs, Shell};
use super::{Context, Exit, print};
use crate::checkpoint::remote::view::{View, variables};
use crate::error::{IoContext, Result};
use crate::git::{self, Reach};
use crate::model::text::printable;

/// Variables of the caller that would lead git elsewhere; those that are set stand in [`variables`].
const ASTRAY: &[&str] = &[
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
];

/// `piton git [--unsafe] …`; comes back only when git does not run.
///
/// # Errors
/// Returns the errors of making the view, and an error when there is no git.
pub fn git(context: &Context, args: &GitArgs) -> Result<ExitCode> {
    let anything = args.rest.first().is_some_and(|first| first == "--unsafe");
    let line = if anything { &args.rest[1..] } else { &args.rest[..] };
    let asked = match git::judge(line) {
        Ok(asked) => Some(asked),
        Err(_) if anything => None,
        Err(refusal) => {
            print::say(&format!("piton: {} is not run on checkpoints: {}.", printable(&refusal.what), refusal.instead));
            print::say("Nothing was changed. `piton git --unsafe …` runs it all the same.");
            return Ok(Exit::Refused.into());
        }
    };
    let view = up_to_date(context)?;
    let sends = asked.as_ref().is_some_and(|asked| asked.sends);
    if sends && !anything && (view.holds_secrets || context.timeline()?.tells_secrets()?) {
        print::say("piton: checkpoints of this workspace hold secrets, and git would send them too.");
        print::say("Nothing was sent. `piton push REMOTE` leaves those out; `piton git --unsafe …` does not.");
        return Ok(Exit::Refused.into());
    }
    if asked.as_ref().is_none_or(|asked| git::needs_index(&asked.verb)) && view.work_tree.is_dir() {
        prepare_index(context, &view)?;
    }
    let far = asked.as_ref().is_some_and(|asked| asked.verb == "push");
    let mut command = view.command(if far { Reach::Server } else { Reach::Here });
    command.args(line);
    Err(git::become_it(command))
}

fn up_to_date(context: &Context) -> Result<View> {
    let view = context.timeline()?.view()?;
    view.faults.iter().for_each(|fault| print::warning(&format!("not shown: {fault}")));
    Ok(view)
}

/// Has the index hold what HEAD holds. git unfolds every path of a tree for it: one that is too large is refused before.
fn prepare_index(context: &Context, view: &View) -> Result<()> {
    if let Some(head) = view.head.as_ref().filter(|_| !view.has_index()) {
        context.timeline()?.check_size(&head.tree)?;
    }
    view.prepare_index()
}

/// `piton env`: what a shell evaluates so that its git works on the view.
///
/// # Errors
/// Returns the errors of making the view, and an error when there is no git.
pub fn env(context: &Context, args: &EnvArgs) -> Result<Exit> {
    let view = up_to_date(context)?;
    if view.work_tree.is_dir() {
        prepare_index(context, &view)?;
    }
    let variables = variables(&view);
    if context.json {
        let map: serde_json::Map<String, serde_json::Value> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string_lossy().into_owned().into()))
            .collect();
        print::json(&map)?;
        return Ok(Exit::Done);
    }
    let mut text = Vec::new();
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    match args.shell {
        Shell::Sh => {
            for (name, value) in &variables {
                line(&mut text, &format!("export {name}="), &git::sh(value));
            }
            line(&mut text, "unset ", ASTRAY.join(" ").as_bytes());
            line(&mut text, "# to leave: unset ", names.join(" ").as_bytes());
        }
        Shell::Fish => {
            for (name, value) in &variables {
                line(&mut text, &format!("set -gx {name} "), &git::fish(value));
            }
            ASTRAY.iter().for_each(|name| line(&mut text, "set -e ", name.as_bytes()));
            line(&mut text, "# to leave: set -e ", names.join(" ").as_bytes());
        }
    }
    match std::io::stdout().write_all(&text) {
        // Whoever read has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        written => written.at("writing", OsStr::new("stdout")).map(|()| Exit::Done),
    }
}

fn line(text: &mut Vec<u8>, start: &str, rest: &[u8]) {
    text.extend_from_slice(start.as_bytes());
    text.extend_from_slice(rest);
    text.push(b'\n');
}
