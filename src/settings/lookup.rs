//! Facts about one key: its description and default from `config/default.yaml`, and what it accepts from the very function
//! that applies it. No table repeats them.

use serde_json::Value;

use super::apply::find;
use super::change::value_inside;
use super::defaults::{DEFAULTS, DIRECTIONS, ValueDirection};
use super::effective::{Effective, Setting};
use super::keys::{KEYS, Key, blank_policy};
use crate::error::{Code, Error, Result};

/// The defaults with their comments.
const DEFAULT_TEXT: &str = include_str!("../../config/default.yaml");

/// The head of a new settings file.
const EXAMPLE_HEAD: &str =
    "# piton's settings. Every line shows a default. To change one, remove the `#` at its start, and the one of its
# section. `piton config explain KEY` describes a key, and docs/CONFIG.md all of them.
";

/// The facts about a key that do not depend on a file.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFacts {
    /// The key with its section.
    pub name: &'static str,
    /// The description.
    pub about: String,
    /// The values that it accepts, as in "a whole number from 1 to 100".
    pub accepts: String,
    /// The value that comes with piton.
    pub default: Value,
    /// The environment variable; `None` for lists and maps.
    pub variable: Option<String>,
    /// The change that guards or keeps more: `more`, `less` or `free`.
    pub direction: &'static str,
}

/// Returns the facts about a key. A name inside of `policy` has those of `policy`.
///
/// # Errors
/// `bad-request` for an unknown key, naming the nearest one.
pub fn key_facts(name: &str) -> Result<KeyFacts> {
    let (key, _) = named_key(name)?;
    let default = DEFAULTS.iter().find(|(known, _)| *known == key.name).map_or("null", |(_, value)| value);
    let default = serde_json::from_str(default)
        .map_err(|error| Error::new(Code::Internal, "reading piton's own defaults").caused_by(error))?;
    let direction = DIRECTIONS.iter().find(|known| known.key == key.name).map(|known| known.direction);
    Ok(KeyFacts {
        name: key.name,
        about: about(key.name),
        accepts: accepts(key),
        default,
        variable: key.environment(),
        direction: match direction {
            Some(ValueDirection::More) | None => "more",
            Some(ValueDirection::Less) => "less",
            Some(ValueDirection::Free) => "free",
        },
    })
}

/// Returns the setting in force of a key, or the part of `policy` that a name leads to.
///
/// # Errors
/// `bad-request` for an unknown key; `no-such-path` for a part of `policy` that is not set.
pub fn value_of(effective: &Effective, name: &str) -> Result<Setting> {
    let (key, inside) = named_key(name)?;
    let found = effective.settings.iter().find(|setting| setting.key == key.name);
    let found = found.ok_or_else(|| Error::new(Code::Internal, "a key has no default").field(key.name))?;
    let value = value_inside(&found.value, &inside).cloned().ok_or_else(|| {
        Error::new(Code::NoSuchPath, format!("`{name}` is not set"))
            .field(name)
            .hint(format!("`piton config get {}` shows all of `{}`", key.name, key.name))
    })?;
    Ok(Setting { key: name.to_owned(), value, origin: found.origin.clone() })
}

/// Returns the key of a name, and the names that lead inside of its value: only `policy` has such.
///
/// # Errors
/// `bad-request`, naming the nearest key.
pub(super) fn named_key(name: &str) -> Result<(&'static Key, Vec<&str>)> {
    if let Some(inside) = name.strip_prefix("policy.") {
        return find("policy").map(|key| (key, inside.split('.').collect())).map_err(|(why, _)| unknown(name, &why));
    }
    find(name).map(|key| (key, Vec::new())).map_err(|(why, _)| unknown(name, &why))
}

fn unknown(name: &str, why: &str) -> Error {
    let error = Error::new(Code::BadRequest, format!("`{name}` {why}")).field(name);
    let is_inside = |key: &&Key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let is_last = |key: &&Key| key.name.rsplit('.').next() == Some(name);
    let listed = |keys: Vec<&str>| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let inside: Vec<&str> = KEYS.iter().filter(is_inside).map(|key| key.name).collect();
    let last: Vec<&str> = KEYS.iter().filter(is_last).map(|key| key.name).collect();
    match (inside.is_empty(), last.is_empty()) {
        (false, _) => error.hint(format!("its keys are {}", listed(inside))),
        (true, false) => error.hint(format!("with its section it is {}", listed(last))),
        (true, true) => error.hint("`piton config show` lists all keys"),
    }
}

/// Returns what a key accepts. Each key says so when it refuses a value, and none accepts nothing.
fn accepts(key: &Key) -> String {
    let why = (key.apply)(&mut blank_policy(), &Value::Null).err().unwrap_or_default();
    let wanted = why.strip_prefix("wants ").unwrap_or(&why);
    wanted.strip_suffix(", not null").unwrap_or(wanted).to_owned()
}

/// Returns the comment above a key in the defaults, in one line.
fn about(name: &str) -> String {
    let (mut section, mut comment) = ("", Vec::new());
    for line in DEFAULT_TEXT.lines() {
        let text = line.trim();
        if let Some(part) = text.strip_prefix('#') {
            comment.push(part.trim());
            continue;
        }
        let Some((key, value)) = text.split_once(':') else {
            comment.clear();
            continue;
        };
        let is_inside = line.starts_with(' ');
        let is_it = match name.split_once('.') {
            Some((of, inner)) => is_inside && section == of && key == inner,
            None => !is_inside && key == name,
        };
        if is_it {
            return comment.join(" ");
        }
        if !is_inside {
            section = if value.is_empty() { key } else { "" };
        }
        comment.clear();
    }
    String::new()
}

/// Returns the text of a new settings file: the defaults, all of them commented out.
pub fn example() -> String {
    let settings = DEFAULT_TEXT.split_once("\n\n").map_or(DEFAULT_TEXT, |(_, settings)| settings);
    let line = |line: &str| match line.trim_start() {
        "" => "\n".to_owned(),
        text if text.starts_with('#') => format!("{line}\n"),
        _ => format!("#{line}\n"),
    };
    format!("{EXAMPLE_HEAD}\n{}", settings.lines().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    #[test]
    fn every_key_is_described() {
        for key in KEYS {
            let facts = key_facts(key.name).unwrap();
            assert!(!facts.about.is_empty() && !facts.accepts.is_empty(), "{facts:?}");
            assert!(!facts.accepts.starts_with("wants") && !facts.accepts.contains("null"), "{facts:?}");
            assert_ne!(facts.default, Value::Null, "{facts:?}");
        }
        let days = key_facts("retention.days").unwrap();
        assert_eq!(days.accepts, "a whole number of days from 1 to 100000, or `never`");
        assert!(days.about.starts_with("Days to keep checkpoints"), "{}", days.about);
        assert_eq!((days.default, days.direction), (Value::from(7), "more"));
    }

    #[test]
    fn the_example_sets_nothing_and_shows_the_defaults() {
        let example = example();
        assert_eq!(yaml::leaves(&example).unwrap(), Vec::new());
        // A comment has one space, and a setting none, or those of its section.
        let is_setting =
            |line: &&str| line.strip_prefix('#').is_some_and(|rest| !rest.starts_with(' ') || rest.starts_with("  "));
        let text: String = example.lines().filter(is_setting).map(|line| format!("{}\n", &line[1..])).collect();
        let shown: Vec<_> = yaml::leaves(&text).unwrap().into_iter().map(|leaf| (leaf.key, leaf.value)).collect();
        let defaults = DEFAULTS.iter().map(|(key, value)| ((*key).to_owned(), serde_json::from_str(value).unwrap()));
        assert_eq!(shown, defaults.collect::<Vec<(String, Value)>>());
    }

    #[test]
    fn an_unknown_key_names_the_one_that_is_meant() {
        for (name, told) in [
            ("gaurd", "did you mean `guard`?"),
            ("days", "with its section it is `retention.days`"),
            ("limits", "`limits.files`"),
            ("max_snapshots", "is a key of Hermes; piton's key is `retention.per_workspace`"),
            ("nothing_like_it", "`piton config show` lists all keys"),
        ] {
            let error = key_facts(name).unwrap_err();
            assert!(error.text().contains(told), "{name}: {}", error.text());
        }
    }
}
