//! `piton config`: show, check, trust.

use std::io::ErrorKind;
use std::path::Path;

use clap::{Args, Subcommand};

use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use crate::checkpoint::Timeline;
use crate::checkpoint::runs::narrow::TrackedNow;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;
use crate::model::run::run_id;
use crate::model::text::{count, padded, printable};
use crate::protocol::{CheckedDocument, List, SettingItem, SettingsDocument, TrackedBlock, TrustDocument};
use crate::settings::{self, Effective, Mistake, WORKSPACE_FILE, Waiting, trust, user_file};
use crate::sys::interrupt::Flow;

/// The arguments of `piton config`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    pub action: ConfigAction,
}

/// The actions of `piton config`.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Print every value with its origin
    Show,
    /// Read all layers and report mistakes; list what patterns of tracked files match, and outputs that they miss
    Check {
        /// The run whose patterns are shown [default: the one that recorded a codon last]
        #[arg(long)]
        run: Option<String>,
    },
    /// Trust your settings and this workspace's `.piton.yaml` as they are now
    Trust,
}

/// Paths of a list that are shown.
const SHOWN: usize = 20;

/// Shows, checks or trusts settings.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn config(context: &mut Context, args: &ConfigArgs) -> Result<Exit> {
    match &args.action {
        ConfigAction::Show => show(context),
        ConfigAction::Check { run } => check(context, run.as_deref()),
        ConfigAction::Trust => trust_files(context),
    }
}

fn show(context: &Context) -> Result<Exit> {
    let effective = context.settings()?;
    if context.json {
        let settings = effective.settings.iter().map(|setting| SettingItem {
            key: setting.key.clone(),
            value: setting.value.clone(),
            origin: setting.origin.to_string(),
        });
        print::json(&SettingsDocument { settings: settings.collect(), warnings: effective.faults() })?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for setting in &effective.settings {
        let value = setting.value.as_str().map_or_else(|| setting.value.to_string(), str::to_owned);
        let origin = print::faint(&printable(&setting.origin.to_string()));
        add_line!(text, "{:<26} {} {origin}", setting.key, padded(&printable(&value), 32));
    }
    print::data(&text)?;
    effective.faults().iter().for_each(|fault| print::warning(fault));
    Ok(Exit::Done)
}

fn check(context: &Context, run: Option<&str>) -> Result<Exit> {
    let effective = context.settings()?;
    let (waiting, mistakes): (Vec<&Mistake>, Vec<&Mistake>) =
        effective.mistakes.iter().partition(|mistake| mistake.waiting.is_some());
    if let [others @ .., last] = mistakes.as_slice() {
        others.iter().for_each(|mistake| print::say(&format!("piton: {}", mistake.error().text())));
        return Err(last.error());
    }
    let warnings: Vec<String> =
        waiting.into_iter().map(Mistake::text).chain(effective.warnings.iter().cloned()).collect();
    let tracked = tracked(context, &effective, run)?;
    let missed = tracked.as_ref().is_some_and(|(_, now)| !now.missed.is_empty());
    if context.json {
        let sources: Vec<String> = effective.policy.sources.iter().map(|path| path.display().to_string()).collect();
        let tracked = tracked.map(|(run, now)| TrackedBlock {
            run,
            matched: List::of_paths(now.matched.iter()),
            missed: List::of_paths(now.missed.iter()),
            patterns: now.patterns,
        });
        print::json(&CheckedDocument { sources, warnings: warnings.clone(), tracked })?;
    } else {
        warnings.iter().for_each(|warning| print::warning(warning));
        let mut text = String::new();
        if effective.policy.sources.is_empty() {
            let place = user_file().map_or_else(String::new, |path| format!("; yours would be {}", print::path(&path)));
            add_line!(text, "No configuration files: using defaults{place}.");
        }
        for source in &effective.policy.sources {
            add_line!(text, "read {}", print::path(source));
        }
        if let Some((run, now)) = &tracked {
            add_line!(text, "typed checkpoints of run {run} record {}:", printable(&now.patterns.join("  ")));
            add_line!(text, "  {}", some_of(&now.matched));
        }
        print::data(&text)?;
        if let Some((run, now)) = tracked.filter(|_| missed) {
            let what = count(now.missed.len() as u64, "file");
            let paths = some_of(&now.missed);
            print::warning(&format!(
                "{what} created in run {run}, matched by no pattern and in no typed checkpoint: {paths}"
            ));
        }
    }
    Ok(if warnings.is_empty() && !missed { Exit::Done } else { Exit::Part })
}

/// Returns what patterns come to, where there are any, in a workspace that is known.
fn tracked(context: &Context, effective: &Effective, run: Option<&str>) -> Result<Option<(String, TrackedNow)>> {
    let Some(workspace) = context.known_workspace()? else { return Ok(None) };
    let mut timeline = Timeline::open(&context.home, workspace, effective.policy.clone())?;
    let run = match run {
        Some(run) => run_id(run),
        None => timeline.catalog().newest_run()?.unwrap_or_else(|| "local".to_owned()),
    };
    Ok(timeline.tracked_now(&run, &|| Flow::Continue)?.map(|now| (run, now)))
}

/// Returns the first of some paths, and how many there are.
fn some_of(paths: &[RelPath]) -> String {
    let first: Vec<String> = paths.iter().take(SHOWN).map(RelPath::display).collect();
    let more = if paths.len() > SHOWN { format!(", and {} more", paths.len() - SHOWN) } else { String::new() };
    let none = if paths.is_empty() { "no file" } else { "" };
    format!("{none}{}{more}", first.join(", "))
}

/// Trusts the workspace's own file and the user's, as far as they are there.
fn trust_files(context: &Context) -> Result<Exit> {
    person::require("only a person may trust settings")?;
    let waiting = waiting_keys(context)?;
    let written = settings::as_written()?;
    // Outside of a workspace the user's file is read alone.
    let root = context.root().ok();
    let mut trusted = Vec::new();
    if let Some(path) = root.as_deref().map(|root| root.join(WORKSPACE_FILE))
        && let Some(content) = workspace_content(&path)?
    {
        trust::trust(context.home.path(), &path, &content)?;
        trusted.push(path);
    }
    let user = user_file();
    if let Some(path) = user.as_ref().filter(|path| path.exists() || !waiting.is_empty()) {
        trust::trust_user_file(context.home.path(), path, &written)?;
        trusted.push(path.clone());
    }
    if trusted.is_empty() {
        return Err(Error::new(Code::NoSuchPath, "there is no settings file: neither yours nor the workspace's own"));
    }
    let still = waiting_keys(context)?;
    let keys: Vec<String> = waiting.into_iter().filter(|key| !still.contains(key)).collect();
    if context.json {
        let trusted = trusted.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        print::json(&TrustDocument { trusted, keys })?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for path in &trusted {
        let edit = if Some(path) == user.as_ref() { "a change that guards or keeps less" } else { "an edit" };
        add_line!(text, "Trusted: {} as it is now. After {edit} it must be trusted again.", print::path(path));
    }
    if !keys.is_empty() {
        add_line!(text, "In force now: {}.", keys.join(", "));
    }
    print::data(&text)?;
    Ok(Exit::Done)
}

/// Returns the content of a workspace's own file; `None` if there is none.
fn workspace_content(path: &Path) -> Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("reading the status of", path),
        Ok(facts) if !facts.is_file() => Err(Error::new(Code::BadPath, "only a real file can be trusted").path(path)),
        Ok(_) => std::fs::read(path).at("reading", path).map(Some),
    }
}

/// Returns the keys of both files that wait for a person.
fn waiting_keys(context: &Context) -> Result<Vec<String>> {
    // Outside of a workspace the user's file is read alone.
    let root = context.root().ok();
    let read = settings::load(root.as_deref(), context.home.path(), &[])?;
    let of_user = read.mistakes.iter().filter(|mistake| mistake.waiting == Some(Waiting::ForTrust));
    Ok(of_user.filter_map(|mistake| mistake.key.clone()).chain(read.waiting).collect())
}
