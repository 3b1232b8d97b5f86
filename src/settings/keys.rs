//! The keys: what each accepts, what it changes, and what counts as widening.

use std::time::Duration;

use serde_json::Value;

use super::classes::{classes, classes_widen};
use super::defaults::DIRECTIONS;
use super::measure::Measure::{self, Amount, Patterns, Rule};
use super::measure::WorkspaceRight::{self, ByDirection, ByRule, Fixed};
use super::measure::{excludes_no_more, tracks_more};
use crate::model::effect::Stance;
use crate::model::policy::{
    Backup, Durability, GitAnswers, Guard, Limits, OnFailure, Opaque, Policy, Retention, Secrets, Watching,
};

/// One configuration key.
pub(super) struct Key {
    pub name: &'static str,
    /// Applies a value; the error says what is wrong with it.
    pub apply: fn(&mut Policy, &Value) -> Result<(), String>,
    /// The part of a policy by which two values are compared; the direction says which one guards or keeps more.
    pub measure: Measure,
    /// The changes that a workspace's own file may make before a person trusts it.
    pub workspace: WorkspaceRight,
}

/// All keys.
pub(super) const KEYS: &[Key] = &[
    Key { name: "guard", apply: guard, measure: Amount(|policy| rank(policy.guard)), workspace: ByDirection },
    Key {
        name: "on_failure",
        apply: |policy, value| {
            let words = [("proceed", OnFailure::Proceed), ("hold", OnFailure::Hold)];
            word(value, &words).map(|found| policy.on_failure = found)
        },
        measure: Amount(|policy| u64::from(policy.on_failure == OnFailure::Hold)),
        workspace: ByDirection,
    },
    Key {
        name: "opaque",
        apply: |policy, value| {
            policy.opaque = word(value, &[("checkpoint", Opaque::Checkpoint), ("ignore", Opaque::Ignore)])?;
            Ok(())
        },
        measure: Amount(|policy| u64::from(policy.opaque == Opaque::Checkpoint)),
        workspace: ByDirection,
    },
    Key {
        name: "deadline_ms",
        apply: |policy, value| {
            policy.deadline = Duration::from_millis(number(value, 1, 600_000)?);
            Ok(())
        },
        measure: Amount(|policy| policy.deadline.as_millis() as u64),
        workspace: ByDirection,
    },
    Key {
        name: "secrets",
        apply: |policy, value| {
            // `always` is the word of older versions, in which secrets were in the part that git shows.
            let words = [
                ("local", Secrets::Local),
                ("on-target", Secrets::OnTarget),
                ("never", Secrets::Never),
                ("always", Secrets::Local),
            ];
            word(value, &words).map(|found| policy.secrets = found)
        },
        measure: Amount(|policy| match policy.secrets {
            Secrets::Never => 0,
            Secrets::OnTarget => 1,
            Secrets::Local => 2,
        }),
        // Capturing secrets that the user left out is no protection, and losing them is none either.
        workspace: Fixed,
    },
    Key {
        name: "ignored.file_mb",
        apply: |policy, value| {
            policy.limits.ignored.file_bytes = number(value, 1, 1_000_000)? * 1_000_000;
            Ok(())
        },
        measure: Amount(|policy| policy.limits.ignored.file_bytes),
        workspace: ByDirection,
    },
    Key {
        name: "ignored.total_mb",
        apply: |policy, value| {
            policy.limits.ignored.total_bytes = number(value, 0, 1_000_000)? * 1_000_000;
            Ok(())
        },
        measure: Amount(|policy| policy.limits.ignored.total_bytes),
        workspace: ByDirection,
    },
    Key {
        name: "ignored.files",
        apply: |policy, value| {
            policy.limits.ignored.files = number(value, 0, 1_000_000)?;
            Ok(())
        },
        measure: Amount(|policy| policy.limits.ignored.files),
        workspace: ByDirection,
    },
    Key {
        name: "exclude",
        apply: |policy, value| words(value).map(|found| policy.exclude = found),
        measure: Rule(excludes_no_more),
        workspace: ByDirection,
    },
    Key {
        name: "tracked_files",
        apply: |policy, value| {
            policy.tracked_files = globs(value)?;
            Ok(())
        },
        measure: Rule(tracks_more),
        workspace: ByDirection,
    },
    Key {
        name: "tracked_files_override_ignore",
        apply: |policy, value| {
            policy.tracked_override = value.as_bool().ok_or_else(|| wants("true or false", value))?;
            Ok(())
        },
        measure: Amount(|policy| u64::from(policy.tracked_override)),
        workspace: ByDirection,
    },
    Key {
        name: "read_only",
        apply: |policy, value| globs(value).map(|found| policy.read_only = found),
        measure: Patterns(|policy| &policy.read_only),
        workspace: ByDirection,
    },
    Key {
        name: "limits.file_mb",
        apply: |policy, value| {
            policy.limits.file_bytes = number(value, 1, 1_000_000)? * 1_000_000;
            Ok(())
        },
        measure: Amount(|policy| policy.limits.file_bytes),
        workspace: ByRule(|old, new| {
            new.limits.file_bytes <= old.limits.file_bytes && new.limits.file_bytes >= 10_000_000
        }),
    },
    Key {
        name: "limits.files",
        apply: |policy, value| {
            policy.limits.files = number(value, 1, 100_000_000)?;
            Ok(())
        },
        measure: Amount(|policy| policy.limits.files),
        workspace: Fixed,
    },
    Key {
        name: "limits.line_bytes",
        apply: |policy, value| {
            policy.limits.line_bytes = number(value, 1024, 1 << 30)? as usize;
            Ok(())
        },
        measure: Amount(|policy| policy.limits.line_bytes as u64),
        workspace: Fixed,
    },
    Key {
        name: "limits.memory_mb",
        apply: |policy, value| number(value, 32, 1_000_000).map(|mb| policy.limits.memory = mb * 1_000_000),
        measure: Amount(|policy| policy.limits.memory),
        workspace: Fixed,
    },
    Key {
        name: "limits.git_copy_mb",
        apply: |policy, value| number(value, 0, 1_000_000).map(|mb| policy.limits.git_copy = mb * 1_000_000),
        measure: Amount(|policy| policy.limits.git_copy),
        workspace: ByDirection,
    },
    Key {
        name: "limits.told_tokens",
        apply: |policy, value| number(value, 0, 1_000_000).map(|tokens| policy.limits.told_tokens = tokens),
        measure: Amount(|policy| policy.limits.told_tokens),
        workspace: ByDirection,
    },
    Key {
        name: "retention.enabled",
        apply: |policy, value| {
            policy.retention.enabled = value.as_bool().ok_or_else(|| wants("true or false", value))?;
            Ok(())
        },
        measure: Amount(|policy| u64::from(policy.retention.enabled)),
        workspace: ByDirection,
    },
    Key {
        name: "retention.auto_per_run",
        apply: |policy, value| {
            policy.retention.auto_per_run = number(value, 1, 1_000_000)? as u32;
            Ok(())
        },
        measure: Amount(|policy| policy.retention.auto_per_run.into()),
        workspace: ByDirection,
    },
    Key {
        name: "retention.per_workspace",
        apply: |policy, value| {
            policy.retention.per_workspace = number(value, 1, 1_000_000)? as u32;
            Ok(())
        },
        measure: Amount(|policy| policy.retention.per_workspace.into()),
        workspace: ByDirection,
    },
    Key {
        name: "retention.labelled",
        apply: |policy, value| {
            policy.retention.labelled = number(value, 1, 1_000_000)? as u32;
            Ok(())
        },
        measure: Amount(|policy| policy.retention.labelled.into()),
        workspace: ByDirection,
    },
    Key {
        name: "retention.days",
        apply: |policy, value| {
            policy.retention.days = days(value)?;
            Ok(())
        },
        measure: Amount(|policy| span(policy.retention.days)),
        workspace: ByDirection,
    },
    Key {
        name: "retention.runs_days",
        apply: |policy, value| {
            policy.retention.runs_days = days(value)?;
            Ok(())
        },
        measure: Amount(|policy| span(policy.retention.runs_days)),
        workspace: ByDirection,
    },
    Key {
        name: "retention.total_mb",
        apply: |policy, value| {
            policy.retention.total_bytes = number(value, 1, 1_000_000_000)? * 1_000_000;
            Ok(())
        },
        measure: Amount(|policy| policy.retention.total_bytes),
        // All workspaces share the store: one of them does not decide on its size.
        workspace: Fixed,
    },
    Key {
        name: "retention.orphans",
        apply: |policy, value| {
            policy.retention.orphans = days(value)?;
            Ok(())
        },
        measure: Amount(|policy| span(policy.retention.orphans)),
        workspace: ByDirection,
    },
    Key {
        name: "retention.interval_hours",
        apply: |policy, value| {
            policy.retention.interval_hours = number(value, 1, 10_000)? as u32;
            Ok(())
        },
        measure: Amount(|policy| policy.retention.interval_hours.into()),
        // As with `retention.total_mb`.
        workspace: Fixed,
    },
    Key {
        name: "watcher",
        apply: |policy, value| {
            let words = [("recommended", Watching::Recommended), ("poll", Watching::Poll), ("none", Watching::None)];
            word(value, &words).map(|found| policy.watching = found)
        },
        // How changes are noticed never decides what is captured.
        measure: Amount(|policy| policy.watching as u64),
        workspace: ByDirection,
    },
    Key {
        name: "git.fsmonitor_answers",
        apply: |policy, value| {
            let words = [("all", GitAnswers::All), ("paths", GitAnswers::Paths)];
            word(value, &words).map(|found| policy.git_answers = found)
        },
        measure: Amount(|policy| policy.git_answers as u64),
        // It has piton watch the work tree, which a person is to know of.
        workspace: Fixed,
    },
    Key {
        name: "record.prompts",
        apply: prompts,
        // Words of a person are no protection: a workspace may have them left out, and never recorded.
        measure: Amount(|policy| u64::from(policy.records_prompts)),
        workspace: ByDirection,
    },
    Key {
        name: "durability",
        apply: |policy, value| {
            policy.durability = word(value, &[("power", Durability::Power), ("process", Durability::Process)])?;
            Ok(())
        },
        measure: Amount(|policy| u64::from(policy.durability == Durability::Power)),
        workspace: ByDirection,
    },
    Key {
        name: "backup",
        apply: |policy, value| {
            policy.backup = word(value, &[("skip", Backup::Skip), ("include", Backup::Include)])?;
            Ok(())
        },
        measure: Amount(|policy| policy.backup as u64),
        // The store is that of all workspaces.
        workspace: Fixed,
    },
    // A rule may take the place of one that guards more, and so any change counts as one.
    Key {
        name: "rules",
        apply: rules,
        measure: Rule(|old, new| old.rules_yaml == new.rules_yaml),
        workspace: ByDirection,
    },
    Key { name: "policy", apply: classes, measure: Rule(classes_widen), workspace: ByDirection },
];

impl Key {
    /// Returns true if going from the first policy to the second guards and keeps at least as much, by the key's direction.
    pub(super) fn keeps(&self, old: &Policy, new: &Policy) -> bool {
        let direction = DIRECTIONS.iter().find(|known| known.key == self.name).map(|known| known.direction);
        self.measure.keeps(direction, old, new)
    }

    /// Returns true if a workspace's own file may change the first policy to the second before a person trusts it.
    pub(super) fn is_workspaces(&self, old: &Policy, new: &Policy) -> bool {
        match &self.workspace {
            ByDirection => self.keeps(old, new),
            ByRule(may) => may(old, new),
            Fixed => self.measure.is_same(old, new),
        }
    }

    /// Returns true if a mistake in one part of the value costs that part alone. `tracked_files` is not among them:
    /// fewer patterns would record less than none.
    pub(super) fn in_parts(&self) -> bool {
        matches!(self.name, "rules" | "policy" | "exclude" | "read_only")
    }

    /// Returns the environment variable of a key that has one: lists and maps have none.
    pub(super) fn environment(&self) -> Option<String> {
        let plain = !matches!(self.name, "rules" | "policy" | "exclude" | "tracked_files" | "read_only");
        plain.then(|| format!("PITON_{}", self.name.to_uppercase().replace('.', "_")))
    }

    /// Returns what a workspace's list adds to what is in force: lists are joined, everything else replaces.
    pub(super) fn joined(&self, policy: &Policy, value: &Value) -> Value {
        let old = match self.name {
            "exclude" => &policy.exclude,
            "tracked_files" => &policy.tracked_files,
            "read_only" => &policy.read_only,
            _ => return value.clone(),
        };
        let Some(new) = value.as_array() else {
            return value.clone();
        };
        let mut joined: Vec<Value> = old.iter().map(|text| Value::String(text.clone())).collect();
        joined.extend(new.iter().filter(|item| !old.iter().any(|text| item.as_str() == Some(text))).cloned());
        Value::Array(joined)
    }
}

/// Returns a policy before the defaults are applied; every field is set by `config/default.yaml`.
pub(super) fn blank_policy() -> Policy {
    Policy {
        guard: Guard::Turn,
        on_failure: OnFailure::Proceed,
        opaque: Opaque::Checkpoint,
        watching: Watching::Recommended,
        git_answers: GitAnswers::All,
        durability: Durability::Power,
        backup: Backup::Skip,
        records_prompts: true,
        deadline: Duration::ZERO,
        secrets: Secrets::Local,
        exclude: Vec::new(),
        tracked_files: Vec::new(),
        tracked_override: false,
        read_only: Vec::new(),
        limits: Limits::NONE,
        retention: Retention {
            enabled: true,
            auto_per_run: 0,
            per_workspace: 0,
            labelled: 0,
            days: None,
            runs_days: None,
            total_bytes: 0,
            orphans: None,
            interval_hours: 0,
        },
        rules_yaml: String::new(),
        classes: Vec::new(),
        collision: Stance::Warn,
        sources: Vec::new(),
    }
}

fn guard(policy: &mut Policy, value: &Value) -> Result<(), String> {
    // YAML readers differ on whether a bare `off` is a word; both readings mean the same here.
    if *value == Value::Bool(false) {
        policy.guard = Guard::Off;
        return Ok(());
    }
    policy.guard = word(value, &[("turn", Guard::Turn), ("action", Guard::Action), ("off", Guard::Off)])?;
    Ok(())
}

fn prompts(policy: &mut Policy, value: &Value) -> Result<(), String> {
    // As with `guard`, YAML readers differ on `on` and `off`.
    policy.records_prompts = match value {
        Value::Bool(is_on) => *is_on,
        _ => word(value, &[("on", true), ("off", false)])?,
    };
    Ok(())
}

fn rank(guard: Guard) -> u64 {
    match guard {
        Guard::Off => 0,
        Guard::Turn => 1,
        Guard::Action => 2,
    }
}

fn rules(policy: &mut Policy, value: &Value) -> Result<(), String> {
    let is_empty = match value {
        Value::Array(rules) => rules.is_empty(),
        Value::Object(sections) => sections.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(wants("a list of rules, or a map of sections", value));
        }
    };
    // JSON is YAML: the classifier reads it in its own dialect.
    policy.rules_yaml = if is_empty { String::new() } else { value.to_string() };
    Ok(())
}

/// Reads one of some words.
pub(super) fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Result<T, String> {
    let found = value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        wants(&list.join(" or "), value)
    })
}

fn number(value: &Value, min: u64, max: u64) -> Result<u64, String> {
    let found = value.as_u64().filter(|number| (min..=max).contains(number));
    found.ok_or_else(|| wants(&format!("a whole number from {min} to {max}"), value))
}

/// Reads a number of days; `None` for the word `never`.
fn days(value: &Value) -> Result<Option<u32>, String> {
    let found = value.as_u64().filter(|days| (1..=100_000).contains(days)).map(|days| Some(days as u32));
    let found = found.or_else(|| (value.as_str() == Some("never")).then_some(None));
    found.ok_or_else(|| wants("a whole number of days from 1 to 100000, or `never`", value))
}

/// Returns a number of days as an amount: nothing is longer than for ever.
fn span(days: Option<u32>) -> u64 {
    days.map_or(u64::MAX, u64::from)
}

fn words(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or_else(|| wants("a list of patterns", value))?;
    list.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wants("a list of patterns", item))).collect()
}

/// Patterns of the dialect of `tracked_files`.
fn globs(value: &Value) -> Result<Vec<String>, String> {
    let patterns = words(value)?;
    for pattern in &patterns {
        globset::Glob::new(pattern)
            .map_err(|error| format!("has `{pattern}`, which is not a pattern: {}", error.kind()))?;
    }
    Ok(patterns)
}

/// Says what a key wants instead of a value.
pub(super) fn wants(what: &str, got: &Value) -> String {
    format!("wants {what}, not {}", crate::model::text::cut(&got.to_string(), 60))
}
