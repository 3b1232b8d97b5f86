//! `piton forget`: takes content out of every checkpoint, and proves that its bytes are gone.

use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use super::progress;
use crate::checkpoint::upkeep::forget::{
    ForgetPlan, ForgetProof, ForgetWish, Forgotten, ForgottenWorkspace, Pace, RewrittenCheckpoint, WorkspacePlan,
    complete, unfinished,
};
use crate::checkpoint::{Home, Workspace};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::sought::SecretPattern;
use crate::model::text::{bytes, count, printable};
use crate::protocol::{ForgetDocument, ForgetItem, ProofBlock};
use crate::settings;
use crate::sys::raw_terminal::read_hidden_line;

/// Rows of the preview, and paths of a row, that are shown.
const SHOWN: usize = 20;

/// The arguments of `piton forget`.
#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// The paths to remove from this workspace's checkpoints, with everything below them
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The secret to remove from all checkpoints; `-` reads it from stdin
    #[arg(long, value_name = "SECRET", conflicts_with = "paths", allow_hyphen_values = true)]
    pub secret: Option<std::ffi::OsString>,
    /// Treat the secret as a regular expression on bytes
    #[arg(long, requires = "secret")]
    pub regex: bool,
    /// Search only the checkpoints of this workspace
    #[arg(long = "in", value_name = "DIR", requires = "secret")]
    pub within: Option<PathBuf>,
    /// Finish a forget that was killed
    #[arg(long = "continue", conflicts_with_all = ["paths", "secret", "plan", "dry_run"])]
    pub go_on: bool,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do nothing unless the plan has this digest (--json shows it)
    #[arg(long, value_name = "DIGEST")]
    pub plan: Option<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Forgets.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn forget(context: &mut Context, args: &ForgetArgs) -> Result<Exit> {
    if args.go_on {
        return go_on(context);
    }
    let memory = settings::load(None, context.home.path(), &context.flags)?.policy.limits.memory;
    let (of, wish) = match &args.secret {
        Some(secret) => {
            let of = args.within.as_ref().map(|dir| known(context, dir)).transpose()?;
            (of, ForgetWish::Secret(pattern(secret, args.regex)?))
        }
        None if args.paths.is_empty() => return forget_workspace(context, args),
        None => {
            let workspace = context.workspace()?;
            let paths: Vec<RelPath> =
                args.paths.iter().map(|typed| context.path(&workspace, typed)).collect::<Result<_>>()?;
            if paths.iter().any(RelPath::is_root) {
                return Err(Error::new(Code::BadPath, "this is the whole workspace")
                    .hint("to forget all of it, run `piton forget --workspace DIR`"));
            }
            (Some(workspace), ForgetWish::Paths(paths))
        }
    };
    let is_secret = matches!(wish, ForgetWish::Secret(_));
    let plan = ForgetPlan::make(&context.home, of, wish, memory, Pace::patient(context.work()))?;
    if let Some(digest) = &args.plan {
        plan.require(digest)?;
    }
    plan.faults().for_each(|fault| print::warning(&printable(fault)));
    for path in &plan.repositories {
        print::note(&format!(
            "The saved copy of {} is deleted too, because piton cannot search it.",
            print::path(path)
        ));
    }
    for path in &plan.present {
        let hint =
            "the next checkpoint saves it again, unless you change the file, or `exclude` in the settings matches it";
        print::warning(&format!("{} still contains it: {hint}", print::path(path)));
    }
    let is_nothing = plan.checkpoints.is_empty() && plan.repositories.is_empty();
    if !context.json {
        print::data(&table(&plan, is_secret))?;
    }
    // Records and dropped checkpoints may hold a secret that no checkpoint holds any more.
    let ends = args.dry_run || (is_nothing && !is_secret);
    if ends || (context.json && !args.yes) {
        if context.json {
            print::json_as_declared(&document(&plan, args.dry_run, None)?)?;
        }
        return Ok(match (is_nothing, ends) {
            (true, true) => Exit::Nothing,
            (_, true) => Exit::Done,
            (_, false) => Exit::Refused,
        });
    }
    person::require("forgotten content cannot be restored")?;
    if let Some(exit) = (!args.yes).then(|| agreed("Forget it for good")).flatten() {
        return Ok(exit);
    }
    let mut shown = document(&plan, false, None)?;
    let has_faults = plan.faults().next().is_some();
    let forgotten = plan.carry_out(&context.home)?;
    if context.json {
        fill(&mut shown, &forgotten);
        print::json_as_declared(&shown)?;
    } else {
        print::data(&outcome(&forgotten))?;
    }
    Ok(exit(&forgotten.proof, forgotten.upkept.left.is_some() || has_faults))
}

/// Completes a forget that was killed, before other work on the store, if that work changes anything. A failure is said and
/// stops nothing.
pub(super) fn complete_first(context: &Context, is_due: bool) {
    if is_due && let Err(error) = complete(&context.home, Pace::patient(context.work())) {
        print::warning(&format!("a forget that was killed is not finished yet: {}", error.text()));
    }
}

fn go_on(context: &Context) -> Result<Exit> {
    if unfinished(&context.home).is_none() {
        return Err(Error::new(Code::NoSuchCheckpoint, "no forget was killed").hint("nothing to do"));
    }
    complete(&context.home, Pace::patient(context.work()))?;
    match unfinished(&context.home) {
        None => {
            print::note("The forget that was killed is finished.");
            Ok(Exit::Done)
        }
        Some(left) => {
            print::warning(&left);
            Ok(Exit::Part)
        }
    }
}

/// Says that a forget which was stopped has begun, and how to finish it; `None` if nothing was changed.
pub(super) fn left() -> Option<String> {
    // Without a home nothing has begun.
    unfinished(&Home::locate().ok()?)
}

/// Returns the known workspace of a directory.
fn known(context: &Context, dir: &std::path::Path) -> Result<Workspace> {
    let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned()); // a directory that is gone is known by its path
    Workspace::known(&context.home)?.into_iter().find(|workspace| workspace.path == path).ok_or_else(|| {
        Error::new(Code::WorkspaceGone, "this directory is not a workspace")
            .path(dir)
            .hint("`piton status` shows the workspace")
    })
}

/// Reads the secret.
fn pattern(typed: &std::ffi::OsStr, is_regex: bool) -> Result<SecretPattern> {
    let mut secret = typed.as_bytes().to_vec();
    if typed == "-" {
        secret.clear();
        let read = match std::io::stdin().is_terminal() {
            true => {
                print::say("Type the secret, then press Enter (it is not shown):");
                let _hidden = progress::hide();
                read_hidden_line().map(|line| secret = line)
            }
            false => std::io::stdin().read_to_end(&mut secret).map(|_| ()),
        };
        read.at("reading", "stdin")?;
        let end = [&b"\r\n"[..], b"\n"].into_iter().find(|end| secret.ends_with(end)).map_or(0, <[u8]>::len);
        secret.truncate(secret.len() - end);
    } else {
        print::warning("the secret might be in your shell's history; use `--secret -` to read it from stdin");
    }
    if !is_regex {
        return SecretPattern::literal(&secret);
    }
    let text = String::from_utf8(secret)
        .map_err(|_| Error::new(Code::BadRequest, "the expression is not UTF-8").hint("write bytes as \\xNN"))?;
    SecretPattern::regex(&text)
}

fn number(one: &RewrittenCheckpoint) -> Number {
    one.record.as_ref().map_or(Number::NONE, |record| record.number)
}

/// Renders the plan.
fn table(plan: &ForgetPlan<'_>, is_secret: bool) -> String {
    let mut text = String::new();
    let own: Vec<&RewrittenCheckpoint> = plan.checkpoints.iter().filter(|one| one.is_own).collect();
    for one in own.iter().take(SHOWN) {
        let mut paths: Vec<String> = one.paths.iter().take(SHOWN).map(|path| printable(path)).collect();
        paths.extend((one.paths.len() > SHOWN).then(|| format!("{} more", one.paths.len() - SHOWN)));
        let shown = if paths.is_empty() { "its texts".to_owned() } else { paths.join(", ") };
        add_line!(text, "  checkpoint {} ({}): {shown}", number(one), one.old.short());
    }
    if own.len() > SHOWN {
        add_line!(text, "  and {} more", count((own.len() - SHOWN) as u64, "checkpoint"));
    }
    let (versions, size) = plan.versions();
    if plan.checkpoints.is_empty() {
        let rest = if is_secret { " Dropped checkpoints and records will still be searched." } else { "" };
        let alone = if plan.repositories.is_empty() { "" } else { " as a file" };
        add_line!(text, "No checkpoint contains it{alone}.{rest}");
    } else {
        let after = plan.checkpoints.len() - own.len();
        let told = match after {
            0 => String::new(),
            after => format!(" {} derived from them will also get new ids.", count(after as u64, "checkpoint")),
        };
        let held = count(own.len() as u64, "checkpoint");
        add_line!(text, "{held} contained it, in {} of files, {}.{told}", count(versions, "version"), bytes(size));
        add_line!(text, "Their numbers and labels are kept. The content cannot be restored.");
    }
    text
}

/// Says what was done.
fn outcome(forgotten: &Forgotten) -> String {
    let mut text = String::new();
    for (old, new) in forgotten.replaced.iter().take(SHOWN) {
        add_line!(text, "  {} is now {}", old.short(), new.short());
    }
    if forgotten.replaced.len() > SHOWN {
        add_line!(text, "  and {} more; the old ids still work", forgotten.replaced.len() - SHOWN);
    }
    let upkept = &forgotten.upkept;
    add_line!(text, "Replaced {}.", count(forgotten.replaced.len() as u64, "checkpoint"));
    if let Some(left) = &upkept.left {
        add_line!(text, "The store cleanup is not finished: {left}.");
    }
    text + &proven(&forgotten.proof)
}

/// Says what the proof has found.
fn proven(proof: &ForgetProof) -> String {
    let mut text = String::new();
    let read = count(proof.objects, "object");
    let files = count(proof.files, "other file");
    add_line!(text, "Searched {read} and {files} ({} decompressed).", bytes(proof.bytes));
    match proof.left.is_empty() {
        true => add_line!(text, "Nothing of it is left in piton's home directory."),
        false => {
            add_line!(text, "It is still in:");
            proof.left.iter().for_each(|place| add_line!(text, "  {}", printable(place)));
        }
    }
    add_line!(
        text,
        "Copies elsewhere are not removed: what was pushed to other machines, backups, and freed disk blocks."
    );
    text
}

fn exit(proof: &ForgetProof, is_part: bool) -> Exit {
    match (proof.left.is_empty(), is_part) {
        (false, _) => Exit::Failed,
        (true, true) => Exit::Part,
        (true, false) => Exit::Done,
    }
}

fn block(proof: &ForgetProof) -> ProofBlock {
    let ForgetProof { objects, files, bytes, left } = proof.clone();
    ProofBlock { objects, files, bytes, left }
}

fn document(plan: &ForgetPlan<'_>, dry_run: bool, proof: Option<ProofBlock>) -> Result<ForgetDocument> {
    let item = |one: &RewrittenCheckpoint| ForgetItem {
        workspace: one.record.as_ref().map_or_else(String::new, |record| record.workspace.clone()),
        n: number(one),
        id: one.old.to_string(),
        by: Some(one.new.to_string()),
        paths: one.paths.clone(),
    };
    let (versions, size) = plan.versions();
    Ok(ForgetDocument {
        dry_run,
        digest: plan.digest()?,
        checkpoints: plan.checkpoints.iter().map(item).collect(),
        versions,
        bytes: size,
        present: plan.present.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        forgotten: 0,
        freed: 0,
        proof,
        faults: plan.faults().map(str::to_owned).collect(),
    })
}

fn fill(document: &mut ForgetDocument, forgotten: &Forgotten) {
    document.forgotten = forgotten.replaced.len() as u64;
    document.freed = forgotten.upkept.freed.saturating_sub(forgotten.upkept.written);
    document.proof = Some(block(&forgotten.proof));
}

/// Forgets a whole workspace, which has to be named.
fn forget_workspace(context: &Context, args: &ForgetArgs) -> Result<Exit> {
    let Some(dir) = context.named_workspace() else {
        return Err(Error::new(Code::BadRequest, "you did not say what to forget")
            .hint("give a PATH, `--secret -`, or a whole workspace with `--workspace DIR`"));
    };
    let workspace = known(context, &dir)?;
    let policy = settings::load(None, context.home.path(), &context.flags)?.policy;
    let plan = WorkspacePlan::make(&context.home, workspace, policy, Pace::patient(context.work()))?;
    if let Some(digest) = &args.plan {
        plan.require(digest)?;
    }
    let number = plan.checkpoints.len() as u64;
    let mut shown = workspace_document(&plan, args.dry_run)?;
    if !context.json {
        let path = print::path(&plan.workspace.path);
        print::data(&format!(
            "This deletes all that piton saved of {path}: {}, and its records.\n",
            count(number, "checkpoint")
        ))?;
    }
    if args.dry_run || (context.json && !args.yes) {
        if context.json {
            print::json_as_declared(&shown)?;
        }
        return Ok(if args.dry_run { Exit::Done } else { Exit::Refused });
    }
    person::require("forgotten content cannot be restored")?;
    if let Some(exit) = (!args.yes).then(|| agreed("Forget all of it for good")).flatten() {
        return Ok(exit);
    }
    let ForgottenWorkspace { is_open, upkept, proof } = plan.carry_out(&context.home, Pace::patient(context.work()))?;
    if context.json {
        shown.forgotten = number;
        shown.freed = upkept.freed.saturating_sub(upkept.written);
        shown.proof = Some(block(&proof));
        print::json_as_declared(&shown)?;
    } else {
        let stays = "An agent is active there, so the directory is still a workspace and its next checkpoint saves \
                     everything again.\n";
        let stays = if is_open { stays } else { "" };
        print::data(&format!("Forgot {}.\n{stays}{}", count(number, "checkpoint"), proven(&proof)))?;
    }
    Ok(exit(&proof, upkept.left.is_some()))
}

fn workspace_document(plan: &WorkspacePlan, dry_run: bool) -> Result<ForgetDocument> {
    let item = |one: &crate::checkpoint::Checkpoint| ForgetItem {
        workspace: plan.workspace.id.clone(),
        n: one.record.number,
        id: one.id.to_string(),
        by: None,
        paths: Vec::new(),
    };
    let checkpoints = plan.checkpoints.iter().map(item).collect();
    Ok(ForgetDocument { dry_run, digest: plan.digest()?, checkpoints, ..ForgetDocument::default() })
}
