//! `piton config`: show, check, trust.

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
use crate::settings::{Effective, WORKSPACE_FILE, trust, user_file};
use crate::sys::interrupt::Flow;

/// The arguments of `piton config`.
#[derive(Debug, Args)]
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
    /// Trust this workspace's `.piton.yaml` as it is now
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
        ConfigAction::Trust => trust_file(context),
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
    if let [others @ .., last] = effective.mistakes.as_slice() {
        others.iter().for_each(|mistake| print::say(&format!("piton: {}", mistake.error().text())));
        return Err(last.error());
    }
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
        print::json(&CheckedDocument { sources, warnings: effective.warnings.clone(), tracked })?;
    } else {
        effective.warnings.iter().for_each(|warning| print::warning(warning));
        let mut text = String::new();
        if effective.policy.sources.is_empty() {
            let place = user_file().map_or_else(String::new, |path| format!("; yours would be {}", print::path(&path)));
            add_line!(text, "No configuration files: the defaults hold{place}.");
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
                "{what} created in run {run}, covered by no pattern and in no typed checkpoint: {paths}"
            ));
        }
    }
    Ok(if effective.warnings.is_empty() && !missed { Exit::Done } else { Exit::Part })
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

fn trust_file(context: &Context) -> Result<Exit> {
    person::require("only a person may trust settings")?;
    let root = context.workspace()?.path;
    let path = root.join(WORKSPACE_FILE);
    let facts = path.symlink_metadata().map_err(|error| {
        Error::new(Code::NoSuchPath, "this workspace has no configuration of its own").path(&path).caused_by(error)
    })?;
    if !facts.is_file() {
        return Err(Error::new(Code::BadPath, "only a real file can be trusted").path(&path));
    }
    let content = std::fs::read(&path).at("reading", &path)?;
    trust::trust(context.home.path(), &path, &content)?;
    if context.json {
        print::json(&TrustDocument { trusted: path.to_string_lossy().into_owned() })?;
        return Ok(Exit::Done);
    }
    print::data(&format!("Trusted: {} as it is now. After an edit it must be trusted again.\n", print::path(&path)))?;
    Ok(Exit::Done)
}
