//! `piton git`: an ordinary git on a view of this workspace.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use super::view::{prepare_index, up_to_date};
use crate::checkpoint::Timeline;
use crate::checkpoint::records::home::resolved;
use crate::checkpoint::remote::view::View;
use crate::error::{Code, Error, Result};
use crate::git::{self, Asked, GitReach};
use crate::model::id::ObjectId;
use crate::model::text::printable;

/// The arguments of `piton git`.
#[derive(Debug, Args)]
pub(super) struct GitArgs {
    /// A git command and its arguments; put `--unsafe` first to allow any git command
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
            let what = format!("cannot run {} on checkpoints: {}", printable(&refusal.what), refusal.instead);
            return Ok(refused(context, &what, "Nothing was changed. To run it anyway, use `piton git --unsafe …`."));
        }
    };
    if anything {
        person::require("git might delete checkpoints permanently")?;
    }
    if let Some(asked) = asked.as_ref().filter(|asked| WRITING.contains(&asked.verb.as_str())) {
        refuse_own(context, asked, line)?;
    }
    let view = up_to_date(context)?;
    if let Some(asked) = asked.as_ref().filter(|asked| asked.sends && !anything)
        && let Some(secret) = secret_sent(&context.timeline()?, &view, asked, line)?
    {
        let what = format!("{secret}, and git would send them too");
        let next = "Nothing was sent. `piton push REMOTE` skips such checkpoints; `piton git --unsafe …` sends them.";
        return Ok(refused(context, &what, next));
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
            let text = format!("`git {}` must not write into piton's own files", asked.verb);
            return Err(Error::new(Code::BadPath, text).path(&path));
        }
        let removes = ["--mirror", "--delete", "-d", "--prune", "--force", "-f"].contains(&&*text);
        if asked.verb == "push" && (removes || text.starts_with(['+', ':'])) {
            person::require("git might remove refs of the remote, which piton cannot restore")?;
        }
    }
    Ok(())
}

/// Returns the secret that a line would send, as a sentence. An archive has the tree that is named; all else can send every checkpoint.
fn secret_sent(timeline: &Timeline, view: &View, asked: &Asked, line: &[OsString]) -> Result<Option<String>> {
    let catalog = timeline.catalog();
    if asked.verb == "archive" {
        let trees = named_trees(view, line);
        for tree in &trees {
            if let Some(file) = catalog.secret_of_tree(tree)? {
                return Ok(Some(format!("the tree {tree} contains secrets: {}", printable(&file.text()))));
            }
        }
        if !trees.is_empty() {
            return Ok(None);
        }
    }
    if let Some(secret) = catalog.shown_secret()? {
        let file = secret.file.map(|file| format!(": {}", printable(&file.text()))).unwrap_or_default();
        return Ok(Some(format!("checkpoint {} of this workspace contains secrets{file}", secret.number)));
    }
    let is_told = catalog.tells_secrets()?;
    Ok(is_told.then(|| "messages of checkpoints of this workspace contain secrets".to_owned()))
}

/// Returns the trees that words of a line name.
fn named_trees(view: &View, line: &[OsString]) -> Vec<ObjectId> {
    let words = line.iter().skip(1).filter_map(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let tree = |word: &str| {
        let mut command = view.command(GitReach::Here);
        command.args(["rev-parse", "--quiet", "--verify", "--end-of-options", &format!("{word}^{{tree}}")]);
        command.stderr(Stdio::null());
        // A word that is no tree-ish is a path or the value of an option.
        let (text, is_tree) = git::run(&mut command, None).ok()?;
        String::from_utf8_lossy(&text).trim().parse().ok().filter(|_| is_tree)
    };
    words.filter_map(tree).collect()
}

/// Says why git is not run.
fn refused(context: &Context, what: &str, next: &str) -> ExitCode {
    match context.json {
        true => print::error(&Error::new(Code::BadRequest, what).hint(next), true),
        false => print::say(&format!("piton: {what}.\n{next}")),
    }
    Exit::Refused.into()
}
