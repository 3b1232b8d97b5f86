//! The keys: what each accepts, what it changes, and what counts as widening.

use std::time::Duration;

use serde_json::Value;

use super::classes::{classes, classes_widen};
use crate::model::effect::Stance;
use crate::model::policy::{
    Backup, Durability, GitAnswers, Guard, Limits, OnFailure, Opaque, Policy, Retention, Secrets, Watching,
};

/// One configuration key.
pub(super) struct Key {
    pub name: &'static str,
    /// Applies a value; the error says what is wrong with it.
    pub apply: fn(&mut Policy, &Value) -> Result<(), String>,
    /// True if going from the first policy to the second protects at least as much.
    pub widens: fn(&Policy, &Policy) -> bool,
}

/// A key of another tool, and ours in its place.
pub(super) struct ForeignKey {
    pub tool: &'static str,
    /// The spelling of that tool, without the name of its section.
    pub name: &'static str,
    pub ours: &'static str,
}

/// Keys that people bring from other tools: the checkpoint settings of Hermes Agent, and Hankweave's of a codon.
pub(super) const FOREIGN: &[ForeignKey] = &[
    ForeignKey { tool: "Hermes", name: "enabled", ours: "guard" },
    ForeignKey { tool: "Hermes", name: "max_snapshots", ours: "retention.per_workspace" },
    ForeignKey { tool: "Hermes", name: "max_total_size_mb", ours: "retention.total_mb" },
    ForeignKey { tool: "Hermes", name: "max_file_size_mb", ours: "limits.file_mb" },
    ForeignKey { tool: "Hermes", name: "auto_prune", ours: "retention.enabled" },
    ForeignKey { tool: "Hermes", name: "retention_days", ours: "retention.days" },
    ForeignKey { tool: "Hermes", name: "delete_orphans", ours: "retention.orphans" },
    ForeignKey { tool: "Hermes", name: "min_interval_hours", ours: "retention.interval_hours" },
    ForeignKey { tool: "Hankweave", name: "trackedFiles", ours: "tracked_files" },
    ForeignKey { tool: "Hankweave", name: "checkpointedFiles", ours: "tracked_files" },
    ForeignKey { tool: "Hankweave", name: "read_only_data_source", ours: "read_only" },
];

/// Finds a key of another tool, with or without the section `checkpoints` that Hermes has around it.
pub(super) fn foreign(name: &str) -> Option<&'static ForeignKey> {
    let (bare, in_section) = name.strip_prefix("checkpoints.").map_or((name, false), |bare| (bare, true));
    // `enabled` alone could mean anything.
    FOREIGN.iter().find(|key| key.name == bare && (in_section || key.name != "enabled"))
}

/// All keys.
pub(super) const KEYS: &[Key] = &[
    Key { name: "guard", apply: guard, widens: |old, new| rank(new.guard) >= rank(old.guard) },
    Key {
        name: "on_failure",
        apply: |policy, value| {
            let words = [("proceed", OnFailure::Proceed), ("hold", OnFailure::Hold)];
            word(value, &words).map(|found| policy.on_failure = found)
        },
        widens: |old, new| new.on_failure == OnFailure::Hold || old.on_failure == new.on_failure,
    },
    Key {
        name: "opaque",
        apply: |policy, value| {
            policy.opaque = word(value, &[("checkpoint", Opaque::Checkpoint), ("ignore", Opaque::Ignore)])?;
            Ok(())
        },
        widens: |old, new| new.opaque == Opaque::Checkpoint || old.opaque == new.opaque,
    },
    Key {
        name: "deadline_ms",
        apply: |policy, value| {
            policy.deadline = Duration::from_millis(number(value, 1, 600_000)?);
            Ok(())
        },
        widens: |old, new| new.deadline >= old.deadline,
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
        // Capturing secrets that the user left out is no protection, and losing them is none either.
        widens: |old, new| old.secrets == new.secrets,
    },
    Key {
        name: "ignored.file_mb",
        apply: |policy, value| {
            policy.limits.ignored.file_bytes = number(value, 1, 1_000_000)? * 1_000_000;
            Ok(())
        },
        widens: |old, new| new.limits.ignored.file_bytes >= old.limits.ignored.file_bytes,
    },
    Key {
        name: "ignored.total_mb",
        apply: |policy, value| {
            policy.limits.ignored.total_bytes = number(value, 0, 1_000_000)? * 1_000_000;
            Ok(())
        },
        widens: |old, new| new.limits.ignored.total_bytes >= old.limits.ignored.total_bytes,
    },
    Key {
        name: "ignored.files",
        apply: |policy, value| {
            policy.limits.ignored.files = number(value, 0, 1_000_000)?;
            Ok(())
        },
        widens: |old, new| new.limits.ignored.files >= old.limits.ignored.files,
    },
    Key {
        name: "exclude",
        apply: |policy, value| words(value).map(|found| policy.exclude = found),
        widens: |old, new| new.exclude.iter().all(|pattern| old.exclude.contains(pattern)),
    },
    Key {
        name: "tracked_files",
        apply: |policy, value| {
            policy.tracked_files = globs(value)?;
            Ok(())
        },
        // No pattern tracks everything: a first one would narrow it.
        widens: |old, new| {
            let more = old.tracked_files.iter().all(|pattern| new.tracked_files.contains(pattern));
            let mut added = new.tracked_files.iter().filter(|pattern| !old.tracked_files.contains(pattern));
            let widened = !old.tracked_files.is_empty() && added.all(|pattern| !pattern.starts_with('!'));
            old.tracked_files == new.tracked_files || (more && widened)
        },
    },
    Key {
        name: "tracked_files_override_ignore",
        apply: |policy, value| {
            policy.tracked_override = value.as_bool().ok_or_else(|| wants("true or false", value))?;
            Ok(())
        },
        widens: |old, new| new.tracked_override || !old.tracked_override,
    },
    Key {
        name: "read_only",
        apply: |policy, value| globs(value).map(|found| policy.read_only = found),
        widens: |old, new| new.read_only.iter().all(|pattern| old.read_only.contains(pattern)),
    },
    Key {
        name: "limits.file_mb",
        apply: |policy, value| {
            policy.limits.file_bytes = number(value, 1, 1_000_000)? * 1_000_000;
            Ok(())
        },
        widens: |old, new| new.limits.file_bytes <= old.limits.file_bytes && new.limits.file_bytes >= 10_000_000,
    },
    Key {
        name: "limits.files",
        apply: |policy, value| {
            policy.limits.files = number(value, 1, 100_000_000)?;
            Ok(())
        },
        widens: |old, new| new.limits.files == old.limits.files,
    },
    Key {
        name: "limits.line_bytes",
        apply: |policy, value| {
            policy.limits.line_bytes = number(value, 1024, 1 << 30)? as usize;
            Ok(())
        },
        widens: |old, new| new.limits.line_bytes == old.limits.line_bytes,
    },
    Key {
        name: "limits.memory_mb",
        apply: |policy, value| number(value, 32, 1_000_000).map(|mb| policy.limits.memory = mb * 1_000_000),
        widens: |old, new| new.limits.memory == old.limits.memory,
    },
    Key {
        name: "limits.git_copy_mb",
        apply: |policy, value| number(value, 0, 1_000_000).map(|mb| policy.limits.git_copy = mb * 1_000_000),
        widens: |old, new| new.limits.git_copy >= old.limits.git_copy,
    },
    Key {
        name: "limits.told_tokens",
        apply: |policy, value| number(value, 0, 1_000_000).map(|tokens| policy.limits.told_tokens = tokens),
        widens: |old, new| new.limits.told_tokens >= old.limits.told_tokens,
    },
    Key {
        name: "retention.enabled",
        apply: |policy, value| {
            policy.retention.enabled = value.as_bool().ok_or_else(|| wants("true or false", value))?;
            Ok(())
        },
        widens: |old, new| old.retention.enabled || !new.retention.enabled,
    },
    Key {
        name: "retention.auto_per_run",
        apply: |policy, value| {
            policy.retention.auto_per_run = number(value, 1, 1_000_000)? as u32;
            Ok(())
        },
        widens: |old, new| new.retention.auto_per_run >= old.retention.auto_per_run,
    },
    Key {
        name: "retention.per_workspace",
        apply: |policy, value| {
            policy.retention.per_workspace = number(value, 1, 1_000_000)? as u32;
            Ok(())
        },
        widens: |old, new| new.retention.per_workspace >= old.retention.per_workspace,
    },
    Key {
        name: "retention.labelled",
        apply: |policy, value| {
            policy.retention.labelled = number(value, 1, 1_000_000)? as u32;
            Ok(())
        },
        widens: |old, new| new.retention.labelled >= old.retention.labelled,
    },
    Key {
        name: "retention.days",
        apply: |policy, value| {
            policy.retention.days = days(value)?;
            Ok(())
        },
        widens: |old, new| keeps_longer(old.retention.days, new.retention.days),
    },
    Key {
        name: "retention.runs_days",
        apply: |policy, value| {
            policy.retention.runs_days = days(value)?;
            Ok(())
        },
        widens: |old, new| keeps_longer(old.retention.runs_days, new.retention.runs_days),
    },
    Key {
        name: "retention.total_mb",
        apply: |policy, value| {
            policy.retention.total_bytes = number(value, 1, 1_000_000_000)? * 1_000_000;
            Ok(())
        },
        // All workspaces share the store: one of them does not decide on its size.
        widens: |old, new| new.retention.total_bytes == old.retention.total_bytes,
    },
    Key {
        name: "retention.orphans",
        apply: |policy, value| {
            policy.retention.orphans = days(value)?;
            Ok(())
        },
        widens: |old, new| keeps_longer(old.retention.orphans, new.retention.orphans),
    },
    Key {
        name: "retention.interval_hours",
        apply: |policy, value| {
            policy.retention.interval_hours = number(value, 1, 10_000)? as u32;
            Ok(())
        },
        // As with `retention.total_mb`.
        widens: |old, new| new.retention.interval_hours == old.retention.interval_hours,
    },
    Key {
        name: "watcher",
        apply: |policy, value| {
            let words = [("recommended", Watching::Recommended), ("poll", Watching::Poll), ("none", Watching::None)];
            word(value, &words).map(|found| policy.watching = found)
        },
        // How changes are noticed never decides what is captured.
        widens: |_, _| true,
    },
    Key {
        name: "git.fsmonitor_answers",
        apply: |policy, value| {
            let words = [("all", GitAnswers::All), ("paths", GitAnswers::Paths)];
            word(value, &words).map(|found| policy.git_answers = found)
        },
        // It has piton watch the work tree, which a person is to know of.
        widens: |old, new| old.git_answers == new.git_answers,
    },
    Key {
        name: "record.prompts",
        apply: prompts,
        // Words of a person are no protection: a workspace may have them left out, and never recorded.
        widens: |old, new| old.records_prompts || !new.records_prompts,
    },
    Key {
        name: "durability",
        apply: |policy, value| {
            policy.durability = word(value, &[("power", Durability::Power), ("process", Durability::Process)])?;
            Ok(())
        },
        widens: |old, new| new.durability == Durability::Power || old.durability == new.durability,
    },
    Key {
        name: "backup",
        apply: |policy, value| {
            policy.backup = word(value, &[("skip", Backup::Skip), ("include", Backup::Include)])?;
            Ok(())
        },
        // The store is that of all workspaces.
        widens: |old, new| new.backup == old.backup,
    },
    Key { name: "rules", apply: rules, widens: |old, new| old.rules_yaml == new.rules_yaml },
    Key { name: "policy", apply: classes, widens: classes_widen },
];

impl Key {
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

fn rank(guard: Guard) -> u8 {
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

/// Returns true if the second number of days keeps what the first one keeps.
fn keeps_longer(old: Option<u32>, new: Option<u32>) -> bool {
    new.is_none_or(|new| old.is_some_and(|old| new >= old))
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
