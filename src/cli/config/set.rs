//! `piton config set`: one key in a settings file.

use std::path::Path;

use super::super::context::Context;
use super::super::exit::Exit;
use super::super::person;
use super::super::print;
use super::file::SettingsFile;
use super::key::shown;
use crate::engine::rules::classifier;
use crate::error::Result;
use crate::protocol::ChangedSettingDocument;
use crate::settings::change::{SettingChange, SettingsScope, prepare};
use crate::settings::lookup::value_of;
use crate::settings::{Mistake, Waiting};

/// Sets a key. In a session of an agent, a value that guards or keeps less is refused.
///
/// # Errors
/// As [`prepare`]; `needs-person`; those of writing.
pub(super) fn set(context: &mut Context, key: &str, value: &str, workspace: Option<&Path>) -> Result<Exit> {
    let file = SettingsFile::of(context, workspace)?;
    let mut change = prepare(&file.path, file.scope, key, value)?;
    refuse_bad_rules(&mut change, key)?;
    let is_new = change.before.as_ref() != Some(&change.after);
    if let Some(narrowed) = change.narrows.filter(|_| is_new) {
        person::require(&format!("`{narrowed}` would guard or keep less"))?;
    }
    if is_new {
        file.write(change.before.as_deref(), &change.after)?;
    }
    report(context, &file, key, &change)
}

/// Refuses rules that the classifier does not understand: they are in a dialect of their own.
fn refuse_bad_rules(change: &mut SettingChange, key: &str) -> Result<()> {
    if key != "rules" {
        return Ok(());
    }
    classifier(&mut change.effective, None);
    let mistake = change.effective.mistakes.iter().find(|mistake| mistake.key.as_deref() == Some("rules"));
    mistake.map_or(Ok(()), |mistake| Err(mistake.error()))
}

/// Says what changed, and if it is in force.
fn report(context: &Context, file: &SettingsFile, name: &str, change: &SettingChange) -> Result<Exit> {
    let effective = context.settings()?;
    let is_new = change.before.as_ref() != Some(&change.after);
    let top = if name.starts_with("policy.") { "policy" } else { name };
    let is_waiting =
        |mistake: &Mistake| mistake.waiting == Some(Waiting::ForTrust) && mistake.key.as_deref() == Some(top);
    let waits = match file.scope {
        SettingsScope::User => effective.mistakes.iter().any(is_waiting),
        SettingsScope::Workspace => effective.waiting.iter().any(|key| key == top),
    };
    let in_force = value_of(&effective, name).ok(); // a part of `policy` that waits is not set
    if context.json {
        print::json(&ChangedSettingDocument {
            path: file.path.display().to_string(),
            key: name.to_owned(),
            value: change.new.clone(),
            in_force: in_force.as_ref().map(|setting| setting.value.clone()),
            changed: is_new,
            waits,
        })?;
    } else {
        let (path, new) = (print::path(&file.path), shown(&change.new));
        print::data(&match (&change.old, is_new) {
            (_, false) => format!("`{name}` is {new} in {path} already.\n"),
            (Some(old), true) => format!("Changed `{name}` from {} to {new} in {path}.\n", shown(old)),
            (None, true) => format!("Set `{name}` to {new} in {path}.\n"),
        })?;
        if waits {
            print::data("It guards or keeps less, so it applies only after you run `piton config trust`.\n")?;
        }
    }
    if let Some(setting) = in_force.filter(|setting| !waits && !is_part(&change.new, &setting.value)) {
        let (value, origin) = (shown(&setting.value), &setting.origin);
        print::warning(&format!("`{name}` is still {value} ({origin})"));
    }
    Ok(match (is_new, waits) {
        (_, true) => Exit::Part,
        (false, false) => Exit::Nothing,
        (true, false) => Exit::Done,
    })
}

/// Returns true if a value is in force: lists of a workspace are added to those of the user.
fn is_part(new: &serde_json::Value, in_force: &serde_json::Value) -> bool {
    match (new.as_array(), in_force.as_array()) {
        (Some(new), Some(in_force)) => new.iter().all(|item| in_force.contains(item)),
        _ => new == in_force,
    }
}
