//! Documents of `piton config`, with `--json`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shapes::List;

/// `piton config show`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingsDocument {
    /// All settings.
    pub settings: Vec<SettingItem>,
    /// Mistakes and warnings.
    pub warnings: Vec<String>,
}

/// One setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingItem {
    /// Its name.
    pub key: String,
    /// The value in force.
    pub value: Value,
    /// The place that it comes from.
    pub origin: String,
}

/// `piton config explain`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExplainDocument {
    /// The key.
    pub key: String,
    /// The description.
    pub about: String,
    /// The values that it accepts, in words.
    pub accepts: String,
    /// The value that comes with piton.
    pub default: Value,
    /// The value in force.
    pub value: Value,
    /// The place that the value in force comes from.
    pub origin: String,
    /// The environment variable; `None` for lists and maps.
    pub variable: Option<String>,
    /// The change that guards or keeps more: `more`, `less` or `free`.
    pub direction: String,
}

/// `piton config path`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFilesDocument {
    /// The files that settings are read from, the weakest first.
    pub sources: Vec<String>,
    /// The place of the user's own file; `None` without a home directory.
    pub user: Option<String>,
    /// The place of the workspace's own file.
    pub workspace: String,
}

/// `piton config set`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangedSettingDocument {
    /// The file.
    pub path: String,
    /// The key.
    pub key: String,
    /// The value in the file.
    pub value: Value,
    /// The value in force; `None` for an entry of `policy` that is not in force.
    pub in_force: Option<Value>,
    /// False if the file had that value already.
    pub changed: bool,
    /// True if the value counts only after `piton config trust`.
    pub waits: bool,
}

/// `piton config check`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedDocument {
    /// The files that were read.
    pub sources: Vec<String>,
    /// Warnings of the settings.
    pub warnings: Vec<String>,
    /// The files that patterns match, where there are patterns.
    pub tracked: Option<TrackedBlock>,
}

/// The effect of patterns of tracked files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedBlock {
    /// The run.
    pub run: String,
    /// Its patterns.
    pub patterns: Vec<String>,
    /// Files that typed checkpoints record.
    pub matched: List,
    /// Files that came to be during the run and that no pattern covers.
    pub missed: List,
}

/// `piton config trust`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustDocument {
    /// The files that are trusted now: the workspace's own, and the user's.
    pub trusted: Vec<String>,
    /// The keys that waited for it.
    pub keys: Vec<String>,
}
