//! `piton config`: show, check, trust; and one key or one file at a time.

mod check;
mod edit;
mod file;
mod key;
mod set;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::text::{padded, printable};
use crate::protocol::{SettingItem, SettingsDocument, TrustDocument};
use crate::settings::{self, WORKSPACE_FILE, Waiting, trust, user_file};

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
    /// Read all settings and report mistakes; list the files that tracked patterns match, and outputs that they miss
    Check {
        /// The run whose patterns are shown [default: the run that recorded the last codon]
        #[arg(long)]
        run: Option<String>,
    },
    /// Trust your settings and this workspace's `.piton.yaml` as they are now
    Trust,
    /// Print the current value of one key
    Get {
        /// A key of `piton config show`, or an entry of `policy`, as `policy.collision`
        key: String,
    },
    /// Set one key in your settings file, or in this workspace's `.piton.yaml`; comments and formatting are kept
    Set {
        /// A key of `piton config show`, or an entry of `policy`, as `policy.cloud`
        key: String,
        /// The value as YAML: action, 25, or a list in brackets
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Change the `.piton.yaml` of this workspace, or of DIR, instead of your own file
        #[arg(long, short = 'w', value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
        workspace: Option<PathBuf>,
    },
    /// Open your settings file in an editor, then report mistakes in it; a new file shows all defaults
    Edit {
        /// Open the `.piton.yaml` of this workspace, or of DIR, instead of your own file
        #[arg(long, short = 'w', value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
        workspace: Option<PathBuf>,
    },
    /// Print the files that settings are read from
    Path,
    /// Describe a key: its meaning, the values that it accepts, its default, and where its value comes from
    Explain {
        /// A key of `piton config show`
        key: String,
    },
}

/// Shows, checks, trusts or changes settings.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn config(context: &mut Context, args: &ConfigArgs) -> Result<Exit> {
    match &args.action {
        ConfigAction::Show => show(context),
        ConfigAction::Check { run } => check::check(context, run.as_deref()),
        ConfigAction::Trust => trust_files(context),
        ConfigAction::Get { key } => key::get(context, key),
        ConfigAction::Set { key, value, workspace } => set::set(context, key, value, workspace.as_deref()),
        ConfigAction::Edit { workspace } => edit::edit(context, workspace.as_deref()),
        ConfigAction::Path => key::path(context),
        ConfigAction::Explain { key } => key::explain(context, key),
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

/// Trusts the workspace's own file and the user's, as far as they are there.
fn trust_files(context: &Context) -> Result<Exit> {
    person::require("only a person can trust settings")?;
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
        return Err(Error::new(Code::NoSuchPath, "there is no settings file, neither yours nor the workspace's"));
    }
    let still = waiting_keys(context)?;
    let keys: Vec<String> = waiting.into_iter().filter(|key| !still.contains(key)).collect();
    if context.json {
        let trusted = trusted.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        print::json(&TrustDocument { trusted, keys })?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    // Where the user's file was deleted, its absence is trusted; nothing is named then unless it is all there is.
    let is_named = |path: &&PathBuf| path.exists() || trusted.len() == 1;
    for path in trusted.iter().filter(is_named) {
        let edit = if Some(path) == user.as_ref() { "a change that guards or keeps less" } else { "an edit" };
        add_line!(text, "Trusted: {}, as it is now. After {edit}, run `piton config trust` again.", print::path(path));
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
