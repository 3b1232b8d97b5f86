//! Mistakes in settings: what is wrong where, and what holds instead. A mistake costs the key that it is in and nothing else.

use std::path::Path;

use serde_json::{Map, Value};

use super::effective::{Effective, Setting, SettingOrigin};
use super::keys::{Key, blank_policy};
use super::yaml::{Broken, Leaf};
use crate::error::{Code, Error};
use crate::model::text::{cut, printable};

/// Longest value that a message shows, in characters.
const MAX_SHOWN: usize = 60;

/// Characters by which a mistake that is noted down is known again.
const MAX_NOTED: usize = 300;

/// The condition under which a value counts that is no mistake, but guards or keeps less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// `piton config trust`, typed by a person.
    ForTrust,
    /// It is a variable, which counts only outside of agents' sessions.
    OutsideSessions,
}

/// A mistake in a layer whose word counts: the user's file, the environment, flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The layer; of a file with the line, 0 where the whole file is meant.
    pub origin: SettingOrigin,
    /// 1-based; 0 where no place in a file is meant.
    pub column: u64,
    /// Absent where the whole file is meant.
    pub key: Option<String>,
    /// The key whose value is at stake: `key` itself, or the one that it was probably meant to be.
    pub(super) meant: Option<&'static str>,
    pub(super) why: String,
    /// Names the value that holds instead.
    pub(super) instead: String,
    /// The line of the file, with a mark.
    pub(super) excerpt: String,
    pub(super) hint: Option<String>,
    /// Present if the value is sound, and waits for a person.
    pub waiting: Option<Waiting>,
}

impl Mistake {
    /// Returns a mistake at a place in a file.
    pub(super) fn in_file(path: &Path, text: &str, wrong: Wrong) -> Mistake {
        let Wrong { key, meant, why, line, column, hint } = wrong;
        let excerpt = super::yaml::excerpt(text, line, column);
        let origin = SettingOrigin::File(path.to_owned(), line);
        Mistake { origin, column, key: Some(key), meant, why, instead: String::new(), excerpt, hint, waiting: None }
    }

    /// Returns a file that is no YAML.
    pub(super) fn broken(path: &Path, broken: Broken) -> Mistake {
        let hint = Some(broken.hint().to_owned());
        let Broken { message, line, column, excerpt } = broken;
        let origin = SettingOrigin::File(path.to_owned(), line);
        Mistake {
            origin,
            column,
            key: None,
            meant: None,
            why: message,
            instead: String::new(),
            excerpt,
            hint,
            waiting: None,
        }
    }

    /// Returns a file that cannot be read.
    pub(super) fn unread(path: &Path, why: String) -> Mistake {
        let origin = SettingOrigin::File(path.to_owned(), 0);
        let (instead, excerpt) = (String::new(), String::new());
        Mistake { origin, column: 0, key: None, meant: None, why, instead, excerpt, hint: None, waiting: None }
    }

    /// Returns a value from outside of files.
    pub(super) fn outside(origin: SettingOrigin, wrong: Wrong) -> Mistake {
        let Wrong { key, meant, why, hint, .. } = wrong;
        let (instead, excerpt) = (String::new(), String::new());
        Mistake {
            origin,
            column: 0,
            key: Some(key),
            meant,
            why,
            instead,
            excerpt,
            hint: Some(hint.unwrap_or_else(|| "see docs/CONFIG.md".to_owned())),
            waiting: None,
        }
    }

    /// Returns true if the value of a key in a section may be at stake, because what a person meant is unknown.
    pub fn may_concern(&self, section: &str) -> bool {
        let is_of = |key: &str| key.starts_with(section);
        self.waiting.is_none() && (self.key.as_deref().is_none_or(is_of) || self.meant.is_some_and(is_of))
    }

    /// Returns true if it was typed on the command line.
    pub fn is_typed(&self) -> bool {
        self.origin == SettingOrigin::Flag
    }

    /// Returns file, line and column, the variable, or the flag.
    fn place(&self) -> String {
        match &self.origin {
            SettingOrigin::File(path, 0) => path.display().to_string(),
            SettingOrigin::File(path, line) if self.column == 0 => format!("{}:{line}", path.display()),
            SettingOrigin::File(path, line) => format!("{}:{line}:{}", path.display(), self.column),
            SettingOrigin::Default | SettingOrigin::Recorded | SettingOrigin::Environment(_) | SettingOrigin::Flag => {
                self.origin.to_string()
            }
        }
    }

    /// Returns place, key and what is wrong, on one line. It is the same in every process.
    pub fn head(&self) -> String {
        let key = self.key.as_ref().map_or_else(String::new, |key| format!("`{key}` "));
        format!("{}: {key}{}", self.place(), self.why)
    }

    /// Returns what it begins with where it is noted down, on one line and cut.
    pub fn noted(&self) -> String {
        printable(&format!("settings: {}", self.head())).chars().take(MAX_NOTED).collect()
    }

    /// Returns the sentence for a model.
    pub fn note(&self) -> String {
        match self.waiting {
            Some(_) => format!("piton: settings that guard or keep less are not in force: {}", self.text()),
            None => format!("piton: there is a mistake in piton's settings: {}", self.text()),
        }
    }

    /// Returns the head and what holds instead, on one line.
    pub fn text(&self) -> String {
        format!("{}; {}", self.head(), self.instead)
    }

    /// As an error, with the line of the file below it.
    pub fn error(&self) -> Error {
        let text = format!("{}\n{}", self.text(), self.excerpt);
        let mut error = Error::new(Code::BadRequest, text.trim_end());
        if let Some(key) = &self.key {
            error = error.field(key.clone());
        }
        if let SettingOrigin::File(_, line @ 1..) = self.origin {
            error = error.line(line);
        }
        match &self.hint {
            Some(hint) => error.hint(hint.clone()),
            None => error,
        }
    }

    /// Says what holds instead, once all layers are read.
    pub(super) fn settle(&mut self, effective: &Effective, is_running: bool) {
        let stays = if is_running { "the previous settings stay in force" } else { "" };
        let found = self.meant.and_then(|key| effective.settings.iter().find(|setting| setting.key == key));
        let value = found.map(|setting| {
            let value = setting.value.as_str().map_or_else(|| setting.value.to_string(), str::to_owned);
            (setting, cut(&value, MAX_SHOWN))
        });
        if let (Some(waiting), Some((setting, value))) = (self.waiting, &value) {
            let when = match waiting {
                Waiting::ForTrust => "it takes effect after a person runs `piton config trust`",
                Waiting::OutsideSessions => "it has no effect in an agent's session",
            };
            self.instead = format!("{when}; `{}` is `{value}` ({})", setting.key, setting.origin);
            return;
        }
        self.instead = match (value, &self.key) {
            (_, None) if is_running => format!("the whole file is ignored, {stays}"),
            (_, None) => "the whole file is ignored, using defaults".to_owned(),
            (Some((setting, _)), Some(key)) if *key != setting.key && key.starts_with(&format!("{}.", setting.key)) => {
                let part =
                    if is_running { "the previous value of this part stays in force" } else { "this part is ignored" };
                format!("{part}, the rest of `{}` is in force", setting.key)
            }
            (Some((setting, value)), Some(key)) if *key == setting.key && is_running => {
                format!("{stays}: `{value}` ({})", setting.origin)
            }
            (Some((setting, value)), Some(_)) => format!("`{}` is `{value}` ({})", setting.key, setting.origin),
            (None, Some(_)) => "it is ignored".to_owned(),
        };
    }
}

/// One thing that is wrong with a value.
#[derive(Debug)]
pub(super) struct Wrong {
    pub key: String,
    pub meant: Option<&'static str>,
    pub why: String,
    pub line: u64,
    pub column: u64,
    /// Advice, where there is more to say than which page describes it.
    pub hint: Option<String>,
}

impl Wrong {
    /// Something wrong with a part of a leaf, or with all of it.
    pub(super) fn at(leaf: &Leaf, path: &[&str], key: String, meant: Option<&'static str>, why: String) -> Wrong {
        let spot = leaf.spot.at(path.iter().copied());
        Wrong { key, meant, why, line: spot.line, column: spot.column, hint: None }
    }
}

/// Returns what is sound of a list or map, and what is wrong with the rest. `before` was in force for the same layer:
/// parts of it stay in the place of those that are wrong now.
pub(super) fn sound(key: &'static Key, leaf: &Leaf, before: Option<&Value>) -> (Value, Vec<Wrong>) {
    let mut wrong = Vec::new();
    let value = match &leaf.value {
        Value::Array(items) => {
            let fits = |(at, item): &(usize, &Value)| match test(key, Value::Array(vec![(*item).clone()])) {
                Ok(()) => true,
                Err(why) => {
                    let place = at.to_string();
                    wrong.push(Wrong::at(leaf, &[&place], format!("{}.{at}", key.name), Some(key.name), why));
                    false
                }
            };
            Value::Array(items.iter().enumerate().filter(fits).map(|(_, item)| item.clone()).collect())
        }
        Value::Object(entries) => {
            let mut kept = Map::new();
            for (name, entry) in entries {
                let (entry, faults) = sound_entry(key, leaf, (name, entry), before.and_then(|before| before.get(name)));
                wrong.extend(faults);
                kept.extend(entry.map(|entry| (name.clone(), entry)));
            }
            Value::Object(kept)
        }
        other => other.clone(),
    };
    (value, wrong)
}

fn test(key: &Key, value: Value) -> Result<(), String> {
    (key.apply)(&mut blank_policy(), &value)
}

fn single(name: &str, value: Value) -> Value {
    Value::Object(std::iter::once((name.to_owned(), value)).collect())
}

/// One entry of a map: as it is, or its sound fields.
fn sound_entry(
    key: &'static Key,
    leaf: &Leaf,
    (name, entry): (&str, &Value),
    before: Option<&Value>,
) -> (Option<Value>, Vec<Wrong>) {
    let Err(why) = test(key, single(name, entry.clone())) else {
        return (Some(entry.clone()), Vec::new());
    };
    let fields = match entry {
        Value::Object(fields) if test(key, single(name, Value::Object(Map::new()))).is_ok() => fields,
        _ => {
            let wrong = Wrong::at(leaf, &[name], format!("{}.{name}", key.name), Some(key.name), why);
            return (before.cloned(), vec![wrong]);
        }
    };
    // A word alone is the answer.
    let before = before.map(|before| match before {
        Value::String(_) => single("answer", before.clone()),
        other => other.clone(),
    });
    let (mut kept, mut wrong) = (Map::new(), Vec::new());
    for (field, value) in fields {
        match test(key, single(name, single(field, value.clone()))) {
            Ok(()) => kept.extend([(field.clone(), value.clone())]),
            Err(why) => {
                let path = format!("{}.{name}.{field}", key.name);
                wrong.push(Wrong::at(leaf, &[name, field], path, Some(key.name), why));
                let before = before.as_ref().and_then(|before| before.get(field));
                kept.extend(before.map(|value| (field.clone(), value.clone())));
            }
        }
    }
    ((!kept.is_empty()).then_some(Value::Object(kept)), wrong)
}

/// Returns the value that a key has by a layer that was in force.
pub(super) fn in_force<'s>(settings: &'s [Setting], key: &str, path: &Path) -> Option<&'s Setting> {
    settings
        .iter()
        .find(|setting| setting.key == key && matches!(&setting.origin, SettingOrigin::File(known, _) if known == path))
}
