//! Applies single values to a policy, and finds the key that a name means.

use serde_json::Value;

use super::defaults::DEFAULTS;
use super::effective::{Effective, Setting, SettingOrigin};
use super::keys::{KEYS, Key, blank_policy};
use super::mistake::{self, Mistake, Wrong};
use super::yaml::{Leaf, Spot};
use super::{foreign, trust};
use crate::error::{Code, Error, Result};

/// Returns the settings that come with piton.
///
/// # Errors
/// `bad-request` when they are broken.
pub(super) fn defaults_in_force() -> Result<Effective> {
    let mut effective = Effective {
        policy: blank_policy(),
        settings: Vec::new(),
        warnings: Vec::new(),
        mistakes: Vec::new(),
        waiting: Vec::new(),
        waiting_rules: None,
        by_user: trust::NOTHING.to_owned(),
        is_sound: true,
        rules: Spot::default(),
        is_running: false,
    };
    for (key, value) in DEFAULTS {
        let value = serde_json::from_str(value)
            .map_err(|error| Error::new(Code::Internal, "reading piton's own defaults").caused_by(error))?;
        let leaf = Leaf { key: (*key).to_owned(), value, spot: Spot::default() };
        if let Some(wrong) = apply(&mut effective, &leaf, &SettingOrigin::Default, None).into_iter().next() {
            return Err(Mistake::outside(SettingOrigin::Default, wrong).error());
        }
    }
    Ok(effective)
}

/// Applies one value as far as it is sound; returns what is wrong with the rest. `before` is the layer's value that was in force.
pub(super) fn apply(
    effective: &mut Effective,
    leaf: &Leaf,
    origin: &SettingOrigin,
    before: Option<&Value>,
) -> Vec<Wrong> {
    let key = match find(&leaf.key) {
        Ok(key) => key,
        Err((why, meant)) => {
            let hint = foreign::advice(&leaf.key, &leaf.value);
            return vec![Wrong { hint, ..Wrong::at(leaf, &[], leaf.key.clone(), meant, why) }];
        }
    };
    if key.name == "rules" {
        effective.rules = leaf.spot.clone();
    }
    let Err(why) = set(effective, key, &leaf.value, origin) else { return Vec::new() };
    if key.in_parts() {
        let (value, wrong) = mistake::sound(key, leaf, before);
        if !wrong.is_empty() && set(effective, key, &value, origin).is_ok() {
            return wrong;
        }
    }
    vec![Wrong::at(leaf, &[], leaf.key.clone(), Some(key.name), why)]
}

/// Sets one value; the error says what is wrong with it, and nothing has changed then.
pub(super) fn set(effective: &mut Effective, key: &Key, value: &Value, origin: &SettingOrigin) -> Result<(), String> {
    (key.apply)(&mut effective.policy, value)?;
    let setting = Setting { key: key.name.to_owned(), value: value.clone(), origin: origin.clone() };
    match effective.settings.iter_mut().find(|known| known.key == key.name) {
        Some(known) => *known = setting,
        None => effective.settings.push(setting),
    }
    Ok(())
}

/// Returns the key of that name, or what is wrong with the name and which key may be meant.
pub(super) fn find(name: &str) -> Result<&'static Key, (String, Option<&'static str>)> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    if KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))) {
        return Err(("is a section and has no value itself".to_owned(), None));
    }
    if let Some(foreign) = foreign::foreign(name) {
        let (tool, ours) = (foreign.tool, foreign.ours);
        return Err((format!("is a key of {tool}; piton's key is `{ours}`"), Some(ours)));
    }
    match nearest(name, KEYS.iter().map(|key| key.name)) {
        Some(near) => Err((format!("is not a key; did you mean `{near}`?"), Some(near))),
        None => Err(("is not a key".to_owned(), None)),
    }
}

/// Returns a variable whose name is almost one of piton's; others may belong to other programs.
pub(super) fn misspelt(name: &str) -> Option<Mistake> {
    let names = || KEYS.iter().filter_map(|key| Some((key, key.environment()?)));
    if names().any(|(_, known)| known == name) {
        return None;
    }
    // All of them begin alike: what is misspelt is what follows.
    let rest = name.strip_prefix("PITON_")?;
    let known: Vec<(&str, String)> =
        names().filter_map(|(key, known)| Some((key.name, known.strip_prefix("PITON_")?.to_owned()))).collect();
    let near = nearest(rest, known.iter().map(|(_, known)| known.as_str()))?;
    let key = known.iter().find(|(_, known)| known == near).map(|(key, _)| *key);
    let why = format!("is not read; did you mean `PITON_{near}`?");
    let wrong = Wrong { key: name.to_owned(), meant: key, why, line: 0, column: 0, hint: None };
    Some(Mistake::outside(SettingOrigin::Environment(name.to_owned()), wrong))
}

/// Returns the word that is probably meant: few of its letters differ, measured by its length.
pub(super) fn nearest<'w>(name: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let most = |word: &str| ((word.len().max(name.len()) + 2) / 4).min(3);
    // Words are at least as many edits apart as their lengths differ.
    let near =
        words.filter(|word| word.len().abs_diff(name.len()) <= most(word)).map(|word| (distance(word, name), word));
    near.filter(|(distance, word)| *distance <= most(word)).min().map(|(_, word)| word)
}

/// Edit distance of two short words; two letters that changed places are one edit.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // The row before the last one, the last one, and the one that is made.
    let (mut older, mut last) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(older[j - 2] + 1);
            }
            row.push(least);
        }
        older = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
