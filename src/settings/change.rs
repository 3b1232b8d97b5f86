//! A change of one key in a settings file, as a person types it: checked as a whole before anything is written.

use std::path::Path;

use serde_json::{Map, Value};

use super::edit::{rendered, with_value};
use super::effective::Effective;
use super::keys::blank_policy;
use super::lookup::named_key;
use super::narrowing::narrower;
use super::yaml::{self, Leaf};
use super::{Sources, read, resolve, scalar, user_file, workspace_text};
use crate::error::{Code, Error, Result};

/// The two files in which a person changes settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsScope {
    /// The user's own file.
    User,
    /// The `.piton.yaml` of a workspace.
    Workspace,
}

/// A change of one key that is sound and not written yet.
#[derive(Debug)]
pub struct SettingChange {
    /// The text of the file now; `None` if there is no file.
    pub before: Option<String>,
    /// The text of the file with the change.
    pub after: String,
    /// The value that the file had; `None` if it did not set the key.
    pub old: Option<Value>,
    /// The value that the file gets.
    pub new: Value,
    /// The key that would guard or keep less, if the change has one.
    pub narrows: Option<&'static str>,
    /// The settings that would be in force if the file was trusted.
    pub effective: Effective,
}

/// Prepares the change of a key in the file at `path`. `name` may lead into `policy`: `policy.collision`.
///
/// # Errors
/// `bad-request` for an unknown key, a value that the key does not accept, and a file that is broken; `conflict` for a file in a form that
/// is not edited; I/O errors.
pub fn prepare(path: &Path, scope: SettingsScope, name: &str, typed: &str) -> Result<SettingChange> {
    let (key, inside) = named_key(name)?;
    let before = match scope {
        SettingsScope::User => read(path)?,
        SettingsScope::Workspace => workspace_text(path)?,
    };
    let text = before.clone().unwrap_or_default();
    let leaves = yaml::leaves(&text).map_err(|broken| broken.in_file(path).context("the file cannot be changed"))?;
    let known = leaves.iter().find(|leaf| leaf.key == key.name).map(|leaf| leaf.value.clone());
    let new = scalar(typed);
    let whole = set_inside(known.clone(), &inside, new.clone());
    (key.apply)(&mut blank_policy(), &whole)
        .map_err(|why| Error::new(Code::BadRequest, format!("`{name}` {why}")).field(name))?;
    let names: Vec<&str> = key.name.split('.').chain(inside.iter().copied()).collect();
    let after = with_value(&text, &names, &rendered(&new)).filter(|after| sets_only(after, &leaves, key.name, &whole));
    let Some(after) = after else {
        let text = "piton cannot change that key in a file of this form; the file was not changed";
        return Err(Error::new(Code::Conflict, text).path(path).hint("`piton config edit` opens the file"));
    };
    let effective = trusted(path, scope, after.clone())?;
    let narrows = narrower(&trusted(path, scope, text)?, &effective);
    let old = known.and_then(|known| value_inside(&known, &inside).cloned());
    Ok(SettingChange { before, after, old, new, narrows, effective })
}

/// Resolves the settings with this text of a file, as if it was trusted.
fn trusted(path: &Path, scope: SettingsScope, text: String) -> Result<Effective> {
    let file = Some((path.to_owned(), text));
    match scope {
        SettingsScope::User => resolve(&Sources { user: file, ..Sources::default() }),
        SettingsScope::Workspace => {
            let user = user_file().and_then(|path| Some((path.clone(), read(&path).ok()??))); // its own mistakes are reported elsewhere
            resolve(&Sources { user, workspace: file, workspace_trusted: true, ..Sources::default() })
        }
    }
}

/// Returns true if a text sets what it set before, but for one key.
fn sets_only(text: &str, before: &[Leaf], key: &str, value: &Value) -> bool {
    let Ok(after) = yaml::leaves(text) else { return false };
    let others = |leaves: &[Leaf]| -> Vec<(String, Value)> {
        leaves.iter().filter(|leaf| leaf.key != key).map(|leaf| (leaf.key.clone(), leaf.value.clone())).collect()
    };
    let mut set = after.iter().filter(|leaf| leaf.key == key);
    // A section that was empty was no value of a key.
    let mut expected = others(before);
    let is_section = |name: &str, value: &Value| value.is_null() && key.starts_with(&format!("{name}."));
    expected.retain(|(name, value)| !is_section(name, value));
    set.next().is_some_and(|leaf| leaf.value == *value) && set.next().is_none() && others(&after) == expected
}

/// Returns a map with a value at a path inside of it.
fn set_inside(map: Option<Value>, inside: &[&str], value: Value) -> Value {
    let Some((name, below)) = inside.split_first() else { return value };
    let mut entries = match map {
        Some(Value::Object(entries)) => entries,
        _ => Map::new(),
    };
    let inner = entries.remove(*name);
    entries.insert((*name).to_owned(), set_inside(inner, below, value));
    Value::Object(entries)
}

/// Returns the value at a path inside of a map.
pub(super) fn value_inside<'v>(value: &'v Value, inside: &[&str]) -> Option<&'v Value> {
    inside.iter().try_fold(value, |value, name| value.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_checked_before_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.yaml");
        let change = |text: &str, name: &str, typed: &str| {
            std::fs::write(&file, text).unwrap();
            prepare(&file, SettingsScope::User, name, typed)
        };
        let done = change("# a\nguard: action # b\n", "guard", "off").unwrap();
        assert_eq!((done.after.as_str(), done.narrows), ("# a\nguard: \"off\" # b\n", Some("guard")));
        assert_eq!((done.old, done.new), (Some("action".into()), "off".into()));
        let done = change("policy: {cloud: ask}\n", "policy.collision", "deny").unwrap();
        assert_eq!((done.after.as_str(), done.narrows), ("policy: {cloud: ask, collision: deny}\n", None));
        assert_eq!(change("", "exclude", "['*.bin', a]").unwrap().after, "exclude: [\"*.bin\", a]\n");
        for (text, name, typed, code, told) in [
            ("", "gaurd", "off", Code::BadRequest, "did you mean `guard`?"),
            ("", "guard", "maybe", Code::BadRequest, "`guard` wants `turn` or `action` or `off`"),
            ("", "limits", "1", Code::BadRequest, "`limits.file_mb`"),
            ("", "policy.colision", "deny", Code::BadRequest, "`colision`"),
            ("guard: [\n", "guard", "turn", Code::BadRequest, "config.yaml:"),
            ("guard: |\n  turn\n", "guard", "turn", Code::Conflict, "was not changed"),
            ("a: &x 5\nb: *x\n", "guard.x", "1", Code::BadRequest, "guard"),
        ] {
            let error = change(text, name, typed).unwrap_err();
            assert!(error.code() == code && error.text().contains(told), "{text:?} {name}: {}", error.text());
        }
    }

    #[test]
    fn no_other_key_changes() {
        let before = yaml::leaves("limits:\nguard: turn\n").unwrap();
        let value = Value::from(5);
        assert!(sets_only("limits:\n  files: 5\nguard: turn\n", &before, "limits.files", &value));
        assert!(!sets_only("limits:\n  files: 5\nguard: action\n", &before, "limits.files", &value));
        assert!(!sets_only("limits:\n  files: 6\nguard: turn\n", &before, "limits.files", &value));
        assert!(!sets_only("limits: [\n", &before, "limits.files", &value));
    }
}
