//! Changes that guard or keep less. Those in the user's file and, in a session of an agent, those of the environment wait for a person.
//!
//! The record of what is in force by the user's file is JSON, one entry for each key that the file sets. A change that guards or
//! keeps as much is recorded as soon as it is read. So a later change is compared with what was in force, and not with the defaults.

use std::path::Path;

use serde_json::{Map, Value};

use super::apply::{apply, defaults_in_force, set};
use super::effective::{Effective, Setting, SettingOrigin, WaitingRules};
use super::keys::{KEYS, Key};
use super::mistake::{Mistake, Waiting, Wrong};
use super::yaml::{Leaf, Spot};
use crate::error::Result;

/// Returns the first key by which the second of two settings guards or keeps less than the first.
pub fn narrower(kept: &Effective, other: &Effective) -> Option<&'static str> {
    KEYS.iter().find(|key| !key.keeps(&kept.policy, &other.policy)).map(|key| key.name)
}

/// Keeps the recorded value of each key that the user's file would have guard or keep less, and reports it.
///
/// # Errors
/// `bad-request` when the embedded defaults are broken.
pub(super) fn keep_recorded(effective: &mut Effective, path: &Path, recorded: &str) -> Result<()> {
    if recorded == record(&effective.settings, path) {
        return Ok(());
    }
    // A record that cannot be read is none: the defaults are compared with then.
    let values: Map<String, Value> = serde_json::from_str(recorded).unwrap_or_default();
    let mut recorded = defaults_in_force()?;
    for (key, value) in values {
        // A key that this version does not know has no meaning here.
        let leaf = Leaf { key, value, spot: Spot::default() };
        apply(&mut recorded, &leaf, &SettingOrigin::Recorded, None);
    }
    for key in KEYS {
        if !key.keeps(&recorded.policy, &effective.policy) {
            keep_key(effective, &recorded, key, path);
        }
    }
    Ok(())
}

fn keep_key(effective: &mut Effective, recorded: &Effective, key: &Key, path: &Path) {
    let is_mistaken = effective.mistakes.iter().any(|mistake| mistake.may_concern(key.name));
    let of = |effective: &Effective| effective.settings.iter().find(|setting| setting.key == key.name).cloned();
    if let (Some(now), Some(before)) = (of(effective), of(recorded)) {
        // The map is applied on top of the classes that are there: those that only the new one has must not stay.
        if key.name == "policy" {
            effective.policy.classes.clone_from(&recorded.policy.classes);
            effective.policy.collision = recorded.policy.collision;
        }
        // It was applied before, and still can be.
        let _ = set(effective, key, &before.value, &before.origin);
        if key.name == "rules" {
            let (yaml, origin) = (now.value.to_string(), now.origin.clone());
            effective.waiting_rules = Some(WaitingRules { yaml, origin, spot: std::mem::take(&mut effective.rules) });
        }
        // The mistake is reported, and names the value in force.
        if !is_mistaken {
            let (origin, why) = match now.origin {
                SettingOrigin::File(..) => (now.origin, "would guard or keep less"),
                _ => (SettingOrigin::File(path.to_owned(), 0), "is no longer set, which would guard or keep less"),
            };
            effective.mistakes.push(waiting(origin, key, why, Waiting::ForTrust));
        }
    }
}

/// Returns the report of a value that waits for a person.
pub(super) fn waiting(origin: SettingOrigin, key: &Key, why: &str, waiting: Waiting) -> Mistake {
    let wrong =
        Wrong { key: key.name.to_owned(), meant: Some(key.name), why: why.to_owned(), line: 0, column: 0, hint: None };
    Mistake { waiting: Some(waiting), hint: None, ..Mistake::outside(origin, wrong) }
}

/// Returns the record of the settings that are in force by the user's file.
pub(super) fn record(settings: &[Setting], path: &Path) -> String {
    let is_users = |origin: &SettingOrigin| match origin {
        SettingOrigin::File(known, _) => known == path,
        SettingOrigin::Recorded => true,
        SettingOrigin::Default | SettingOrigin::Environment(_) | SettingOrigin::Flag => false,
    };
    let users = settings.iter().filter(|setting| is_users(&setting.origin));
    Value::Object(users.map(|setting| (setting.key.clone(), setting.value.clone())).collect()).to_string()
}
