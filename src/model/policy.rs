//! Plain policy values: what the settings say, free of where they came from.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::effect::{Class, Severity, Stance};

/// The time at which the guard takes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Before the first destructive or opaque action of a turn.
    Turn,
    /// Before every destructive or opaque action.
    Action,
    /// Never by itself.
    Off,
}

/// The effect of a failed or late checkpoint on the agent's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The agent continues (`proceed` stays true).
    Proceed,
    /// The reply says `proceed: false`.
    Hold,
}

/// The treatment of opaque actions (scripts, makefiles).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// A checkpoint is taken before them.
    Checkpoint,
    /// They call for no checkpoint.
    Ignore,
}

/// The way in which changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    /// The operating system tells; where it cannot, checkpoints scan.
    Recommended,
    /// Checkpoints scan, and so does idle time.
    Poll,
    /// Checkpoints scan.
    None,
}

/// The answer to a git that asks which files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitAnswers {
    /// All of them may have: git looks at everything itself.
    All,
    /// The paths that have changed since git asked last.
    Paths,
}

/// The failures that a checkpoint survives from its reply on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A power cut.
    Power,
    /// The end of piton; the last second before a power cut may be lost.
    Process,
}

/// The treatment of untracked secret files. None of them is ever in the part of a checkpoint that git shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// In the private layer of every checkpoint.
    Local,
    /// Only when an action is about to destroy them.
    OnTarget,
    /// Not even when an action is about to destroy them.
    Never,
}

/// Bounds of the private files that checkpoints hold without being asked: those that ignore rules leave out, and secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Files above this many bytes are left out.
    pub file_bytes: u64,
    /// Most bytes of one workspace, of all its checkpoints together.
    pub total_bytes: u64,
    /// At most this many files; 0: none.
    pub files: u64,
}

impl Ignored {
    /// No private files at all.
    pub const NONE: Ignored = Ignored { file_bytes: 0, total_bytes: 0, files: 0 };
}

/// Bounds of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files above this many bytes are skipped and listed.
    pub file_bytes: u64,
    /// At most this many files are captured.
    pub files: u64,
    /// Longest accepted protocol line, in bytes.
    pub line_bytes: usize,
    /// Bytes of memory that a capture keeps to, content and all.
    pub memory: u64,
    /// Most bytes that are copied of a repository (`.git`) that an action is about to destroy.
    pub git_copy: u64,
    /// Most tokens of warnings that a model is told in one session.
    pub told_tokens: u64,
    /// Bounds of the private files.
    pub ignored: Ignored,
}

impl Limits {
    /// Nothing at all.
    pub const NONE: Limits = Limits {
        file_bytes: 0,
        files: 0,
        line_bytes: 0,
        memory: 0,
        git_copy: 0,
        told_tokens: 0,
        ignored: Ignored::NONE,
    };
}

/// The checkpoints that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// False keeps every checkpoint, whatever the limits below say.
    pub enabled: bool,
    /// Turns kept per run, by their `auto` checkpoints.
    pub auto_per_run: u32,
    /// Untyped checkpoints kept per workspace, without pinned ones, labelled ones and base captures.
    pub per_workspace: u32,
    /// Labelled checkpoints kept per workspace. They count in no other limit.
    pub labelled: u32,
    /// Days for which untyped checkpoints are kept; `None`: for ever.
    pub days: Option<u32>,
    /// Days for which a run is kept after its newest checkpoint; `None`: for ever.
    pub runs_days: Option<u32>,
    /// Bytes of the store that all workspaces may take together.
    pub total_bytes: u64,
    /// Days for which the history of a deleted directory is kept; `None`: for ever.
    pub orphans: Option<u32>,
    /// Hours between two rounds of maintenance.
    pub interval_hours: u32,
}

/// A user's rule over effect classes: change of severity or of what it calls for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// The class whose effects it changes; at most one rule a class.
    pub class: Class,
    /// The severity of its effects; `None` keeps the rules' own.
    pub severity: Option<Severity>,
    /// True calls for a checkpoint, false for none; `None` keeps what the class calls for.
    pub checkpoint: Option<bool>,
    /// True calls for a warning, false for none; `None` keeps what the class calls for.
    pub warn: Option<bool>,
    /// The wish about its effects; `None` keeps what the class calls for.
    pub answer: Option<Stance>,
}

/// The treatment of the store by programs that make backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// A tag has them leave it out.
    Skip,
    /// There is no tag.
    Include,
}

/// Everything the engine needs to know about one workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time at which checkpoints are taken (key `guard`).
    pub guard: Guard,
    /// The effect of a failed or late checkpoint (key `on_failure`).
    pub on_failure: OnFailure,
    /// The treatment of opaque actions (key `opaque`).
    pub opaque: Opaque,
    /// The way in which changes are noticed (key `watcher`).
    pub watching: Watching,
    /// The answer to a git that asks which files have changed (key `git.fsmonitor_answers`).
    pub git_answers: GitAnswers,
    /// The failures that a checkpoint survives (key `durability`).
    pub durability: Durability,
    /// The treatment of the store by programs that make backups (key `backup`).
    pub backup: Backup,
    /// True if the first words of prompts are recorded (key `record.prompts`).
    pub records_prompts: bool,
    /// Longest wait of an event.
    pub deadline: Duration,
    /// The treatment of untracked secret files (key `secrets`).
    pub secrets: Secrets,
    /// Extra exclude patterns, `.gitignore` dialect, relative to the workspace root.
    pub exclude: Vec<String>,
    /// The files that *typed* checkpoints record; empty means everything.
    pub tracked_files: Vec<String>,
    /// True if patterns of tracked files beat ignore rules.
    pub tracked_override: bool,
    /// Read-only inputs: never part of typed checkpoints.
    pub read_only: Vec<String>,
    /// Bounds of each capture.
    pub limits: Limits,
    /// The checkpoints that are kept.
    pub retention: Retention,
    /// The user's own command rules as YAML text in the dialect of `config/rules.yaml` (empty: none).
    pub rules_yaml: String,
    /// Overrides per effect class.
    pub classes: Vec<ClassRule>,
    /// The answer to an action that would destroy uncommitted work of others (key `policy.collision`).
    pub collision: Stance,
    /// Files the policy was read from, for messages.
    pub sources: Vec<PathBuf>,
}
