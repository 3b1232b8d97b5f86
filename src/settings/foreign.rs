//! Keys that people bring from other tools.

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
