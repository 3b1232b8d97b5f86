//! Keys that people bring from other tools.

use serde_json::Value;

use super::edit::rendered;
use super::keys::{KEYS, blank_policy};

/// A key of another tool, and ours in its place.
pub(super) struct ForeignKey {
    pub tool: &'static str,
    /// The spelling of that tool, without the name of its section.
    pub name: &'static str,
    pub ours: &'static str,
}

/// Keys that people bring from other tools: the checkpoint settings of Hermes Agent, and Hankweave's of a codon.
pub(super) const FOREIGN: &[ForeignKey] = &[
    ForeignKey { tool: "Hermes", name: "checkpoints", ours: "guard" },
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

/// The sections and prefixes in which people write the keys of Hermes: its own section, the arguments of its agent
/// (`checkpoint_max_snapshots`), and piton's sections.
const SECTIONS: [&str; 4] = ["checkpoints", "checkpoint", "retention", "limits"];

/// Finds a key of another tool, with or without a section or prefix before it.
pub(super) fn foreign(name: &str) -> Option<&'static ForeignKey> {
    let is_in = |section: &str, bare: &str| {
        name.strip_prefix(section).and_then(|rest| rest.strip_prefix(['.', '_'])).is_some_and(|rest| rest == bare)
    };
    FOREIGN.iter().find(|key| match key.name {
        // Alone it could mean anything.
        "enabled" => is_in("checkpoints", "enabled") || is_in("checkpoint", "enabled"),
        "checkpoints" => name == "checkpoints",
        known => name == known || SECTIONS.iter().any(|section| is_in(section, known)),
    })
}

/// Returns the line to write in the place of another tool's key; `None` for a key of no other tool.
pub(super) fn advice(name: &str, value: &Value) -> Option<String> {
    let ours = foreign(name)?.ours;
    let value = match (ours, value) {
        ("guard", Value::Bool(true)) => Value::from("turn"),
        ("guard", Value::Bool(false)) => Value::from("off"),
        (_, other) => other.clone(),
    };
    let key = KEYS.iter().find(|key| key.name == ours)?;
    if (key.apply)(&mut blank_policy(), &value).is_err() {
        return Some(format!("write `{ours}` instead"));
    }
    let value = rendered(&value);
    Some(match ours.split_once('.') {
        Some((section, inner)) => format!("write `{section}: {{{inner}: {value}}}` instead"),
        None => format!("write `{ours}: {value}` instead"),
    })
}
