//! The values in force, with their origins and with everything that is reported of them.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::mistake::{Mistake, Wrong};
use super::yaml::Spot;
use crate::model::policy::Policy;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The defaults that come with piton (`config/default.yaml`).
    Default,
    /// A file and the 1-based line.
    File(PathBuf, u64),
    /// The user's file before a change that waits for a person.
    Recorded,
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::File(path, line) => write!(f, "{}:{line}", path.display()),
            SettingOrigin::Recorded => f.write_str("in force before"),
            SettingOrigin::Environment(name) => write!(f, "${name}"),
            SettingOrigin::Flag => f.write_str("flag"),
        }
    }
}

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key with its sections: `limits.file_mb`.
    pub key: String,
    /// The value as JSON, in the form that the file would have it.
    pub value: Value,
    /// The layer that the value was taken from.
    pub origin: SettingOrigin,
}

/// The result: values in force, where they came from, and what was left aside.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The values that are in force.
    pub policy: Policy,
    /// The values one by one with their origins; each key at most once.
    pub settings: Vec<Setting>,
    /// Lists the settings of the workspace's file that were left aside, and those that take the effect of another one away.
    pub warnings: Vec<String>,
    /// The mistakes in the user's file, the environment and flags.
    pub mistakes: Vec<Mistake>,
    /// Keys of the workspace's file that are left aside until a person trusts it.
    pub waiting: Vec<String>,
    /// The record of what is in force by the user's file.
    pub(super) by_user: String,
    /// True if the user's file has no mistake.
    pub(super) is_sound: bool,
    /// Rules of the user's file that wait for a person.
    pub(super) waiting_rules: Option<WaitingRules>,
    /// The place of the user's rules.
    pub(super) rules: Spot,
    pub(super) is_running: bool,
}

/// Rules that are not in force yet.
#[derive(Clone, Debug)]
pub(super) struct WaitingRules {
    pub yaml: String,
    pub origin: SettingOrigin,
    pub spot: Spot,
}

impl Effective {
    /// Returns the rules that are in force only once a person trusts them, to look for mistakes in them.
    pub fn waiting_rules(&self) -> Option<&str> {
        self.waiting_rules.as_ref().map(|rules| rules.yaml.as_str())
    }

    /// Reports the waiting rules no longer: without their mistakes, they are the ones in force.
    pub fn drop_waiting_rules(&mut self) {
        self.mistakes.retain(|mistake| mistake.waiting.is_none() || mistake.key.as_deref() != Some("rules"));
    }

    /// Returns where the value of a key came from.
    pub fn origin(&self, key: &str) -> String {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map_or_else(|| key.to_owned(), |setting| setting.origin.to_string())
    }

    /// Returns all that is wrong, as sentences.
    pub fn faults(&self) -> Vec<String> {
        self.mistakes.iter().map(Mistake::text).chain(self.warnings.iter().cloned()).collect()
    }

    /// Notes that a part of the user's rules cannot be, and says if the previous rule stays in force. `path` leads to it.
    pub fn drop_rule(&mut self, path: &[String], why: String, stays: bool) {
        let setting = self.settings.iter().find(|setting| setting.key == "rules");
        let in_force = setting.map_or(SettingOrigin::Default, |setting| setting.origin.clone());
        let (origin, rules) = match &self.waiting_rules {
            Some(waiting) => (waiting.origin.clone(), &waiting.spot),
            None => (in_force, &self.rules),
        };
        let spot = rules.at(path.iter().map(String::as_str));
        let origin = match origin {
            SettingOrigin::File(path, line) => SettingOrigin::File(path, if spot.line > 0 { spot.line } else { line }),
            other => other,
        };
        let wrong =
            Wrong { key: "rules".to_owned(), meant: None, why, line: spot.line, column: spot.column, hint: None };
        let mut mistake = Mistake { column: spot.column, ..Mistake::outside(origin, wrong) };
        mistake.hint = Some("docs/CLASSIFY.md describes the syntax".to_owned());
        mistake.instead = if stays { "the previous rule stays in force" } else { "it is ignored" }.to_owned();
        self.mistakes.push(mistake);
    }

    /// Takes what is sound of the user's rules for what was set.
    pub fn keep_rules(&mut self, sound: String) {
        if let Some(setting) = self.settings.iter_mut().find(|setting| setting.key == "rules") {
            setting.value = serde_json::from_str(&sound).unwrap_or_default();
        }
        self.policy.rules_yaml = sound;
    }
}
