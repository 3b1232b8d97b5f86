//! Shapes that occur in many replies: paths and lists of them, files and lines, checkpoints, warnings.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::model::number::Number;
use serde::{Deserialize, Serialize};

use super::base64;
use super::words::{Word, is_false};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::{self, Weight};
use crate::model::effect::{Class, Severity, Warning};
use crate::model::line_counts::LineCounts;
use crate::model::path::RelPath;
use crate::model::text::git_quoted;

/// Lists are cut after this many items; `total` says how many there are.
const MAX_ITEMS: usize = 1000;

/// A path, with its bytes when it is not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathItem {
    /// The path, with replacement characters where it is not UTF-8.
    pub path: String,
    /// The exact bytes in base64, where the path is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_b64: Option<String>,
    /// The reason why the path is in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// True for a directory, where that is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dir: bool,
    /// The lines of a file that a plan changes, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineCounts>,
}

impl PathItem {
    /// Returns a path with a reason, if there is one.
    pub fn new(path: &RelPath, why: Option<String>) -> PathItem {
        PathItem::of_bytes(path.as_bytes(), why)
    }

    /// Returns a path of another workspace, absolute.
    pub fn absolute(root: &Path, path: &RelPath, why: Option<String>) -> PathItem {
        PathItem::of_bytes(path.under(root).as_os_str().as_bytes(), why)
    }

    /// Makes a path of the workspace `/` absolute.
    pub fn make_absolute(&mut self) {
        self.path.insert(0, '/');
        let exact = self.path_b64.as_deref().and_then(base64::decode);
        self.path_b64 = exact.map(|exact| base64::encode(&[b"/", exact.as_slice()].concat()));
    }

    fn of_bytes(path: &[u8], why: Option<String>) -> PathItem {
        let text = String::from_utf8_lossy(path).into_owned();
        let exact = std::str::from_utf8(path).is_ok();
        PathItem { path: text, path_b64: (!exact).then(|| base64::encode(path)), why, dir: false, lines: None }
    }

    /// Returns the path for people: quoted as git does, `.` for the root, a directory with a slash.
    pub fn shown(&self) -> String {
        let bytes = self.path_b64.as_deref().and_then(base64::decode);
        let bytes = bytes.unwrap_or_else(|| self.path.clone().into_bytes());
        match bytes.as_slice() {
            b"" => ".".to_owned(),
            bytes if self.dir => git_quoted(&[bytes, b"/"].concat()),
            bytes => git_quoted(bytes),
        }
    }
}

/// For counts that stand only where there is something to count.
fn is_none_of(count: &usize) -> bool {
    *count == 0
}

/// A list that may be cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct List {
    /// The number of paths, those that were cut off among them.
    pub total: usize,
    /// The number of directories among them, where that is known.
    #[serde(skip_serializing_if = "is_none_of")]
    pub directories: usize,
    /// The first paths.
    pub items: Vec<PathItem>,
}

impl List {
    /// Returns true if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Makes all paths absolute, where the workspace is the root of the file system.
    pub fn make_absolute(&mut self) {
        self.items.iter_mut().for_each(PathItem::make_absolute);
    }

    /// Of paths without reasons.
    pub fn of_paths<'a>(paths: impl Iterator<Item = &'a RelPath>) -> List {
        List::of_items(paths.map(|path| PathItem::new(path, None)))
    }

    /// Of paths that are directories or not.
    pub fn of_entries<'a>(entries: impl Iterator<Item = (&'a RelPath, bool)>) -> List {
        List::of_items(entries.map(|(path, dir)| PathItem { dir, ..PathItem::new(path, None) }))
    }

    /// Of paths with reasons.
    pub fn of_reasons<'a>(paths: impl Iterator<Item = (&'a RelPath, String)>) -> List {
        List::of_items(paths.map(|(path, why)| PathItem::new(path, Some(why))))
    }

    /// Returns the first path, if there is one.
    pub fn first(&self) -> Option<&str> {
        self.items.first().map(|item| item.path.as_str())
    }

    /// Returns a list of the first items. All of them are counted.
    pub fn of_items(items: impl Iterator<Item = PathItem>) -> List {
        let mut list = List::default();
        for item in items {
            list.total += 1;
            list.directories += usize::from(item.dir);
            if list.items.len() < MAX_ITEMS {
                list.items.push(item);
            }
        }
        list
    }
}

/// A path that an action names and no checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotHeld {
    /// The path, and the reason.
    #[serde(flatten)]
    pub item: PathItem,
    /// The size of it; `null` where it was not counted.
    pub bytes: Option<u64>,
    /// True if counting ended early: there may be more.
    #[serde(skip_serializing_if = "is_false")]
    pub at_least: bool,
}

impl NotHeld {
    /// Returns the weight of it, where it was counted.
    pub fn weight(&self) -> Option<Weight> {
        self.bytes.map(|bytes| Weight { bytes, is_least: self.at_least })
    }
}

/// Says in one sentence what an answer lists as not saved.
pub fn not_held_sentence(items: &[NotHeld]) -> Option<String> {
    coverage::not_held_sentence(items.iter().map(|gap| (gap.item.shown(), gap.weight())))
}

/// Files and lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatBlock {
    /// The number of files that differ.
    pub files: u64,
    /// Lines that were added.
    pub plus: u64,
    /// Lines that were removed.
    pub minus: u64,
    /// True if lines were counted in the first files only.
    #[serde(skip_serializing_if = "is_false")]
    pub cut: bool,
}

/// The status of the checkpoint of an event or a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointStatus {
    /// It was taken before the action.
    Taken,
    /// Nothing differs from an earlier one.
    Unchanged,
    /// The turn's checkpoint holds everything that the action may destroy.
    Held,
    /// It was not finished by the deadline, and goes on.
    Late,
    /// It could not be taken.
    Failed,
    /// It was due, and the guard is off.
    Off,
    /// It was not called for.
    #[default]
    None,
    /// A status of a later version.
    #[serde(other)]
    Unknown,
}

impl CheckpointStatus {
    /// Returns the word for a checkpoint that is not there before the action.
    pub fn fault(self) -> Option<&'static str> {
        match self {
            CheckpointStatus::Late => Some("late"),
            CheckpointStatus::Failed => Some("failed"),
            CheckpointStatus::Taken
            | CheckpointStatus::Unchanged
            | CheckpointStatus::Held
            | CheckpointStatus::Off
            | CheckpointStatus::None
            | CheckpointStatus::Unknown => None,
        }
    }
}

/// The block of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointBlock {
    /// Its id, where there is one. Of one that is late: that of a checkpoint of just the named paths.
    pub id: Option<String>,
    /// Its permanent number.
    pub n: Option<Number>,
    /// Its kind.
    pub kind: Option<Word<CheckpointKind>>,
    /// The outcome.
    pub status: CheckpointStatus,
    /// Marks, such as `partial` and `secrets`.
    pub flags: Vec<String>,
    /// The name of a checkpoint that is late, by which the notice tells of it.
    pub pending: Option<String>,
    /// The reason for the outcome, where it needs one.
    pub reason: Option<String>,
    /// The number of files that it holds.
    pub files: Option<u64>,
    /// The bytes that it holds.
    pub bytes: Option<u64>,
    /// The number of paths that differ from the run's previous checkpoint.
    pub changed: Option<u64>,
    /// The paths that were left out.
    pub skipped: List,
    /// The time that it took.
    pub ms: Option<f64>,
}

/// A warning. Of an effect after a checkpoint, `past` tells more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarningBlock {
    /// A stable word: `external-` and the class of an effect, `piton-aimed-at`, `incomplete`, `other-machine`.
    pub code: String,
    /// The class of the effect that is warned of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Word<Class>>,
    /// A sentence for people.
    pub message: String,
    /// The weight of it.
    pub severity: Word<Severity>,
    /// The action that had the effect.
    #[serde(flatten)]
    pub past: Option<PastEffect>,
}

/// The origin of an effect that happened after a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastEffect {
    /// The action that had it, if that was recorded.
    pub action: Option<String>,
    /// The time when it happened.
    pub time: String,
}

impl WarningBlock {
    /// Returns a warning that something is not as a person would expect.
    pub fn plain(code: &str, message: String) -> WarningBlock {
        WarningBlock { code: code.to_owned(), class: None, message, severity: Severity::Medium.into(), past: None }
    }
}

impl From<&Warning> for WarningBlock {
    fn from(warning: &Warning) -> WarningBlock {
        WarningBlock {
            code: warning.code.clone(),
            class: Some(warning.class.into()),
            message: warning.message.clone(),
            severity: warning.severity.into(),
            past: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_and_odd_paths_carry_their_bytes() {
        let odd = RelPath::parse(b"a\xff").unwrap();
        let list = List::of_paths(std::iter::repeat_n(&odd, 2000));
        assert_eq!((list.total, list.items.len()), (2000, 1000));
        assert_eq!(list.items[0].path_b64.as_deref(), Some("Yf8="));
    }

    #[test]
    fn words_of_a_later_version_break_no_reader() {
        let text = r#"{"id":null,"kind":"frozen","status":"thawing","flags":["new"]}"#;
        let block: CheckpointBlock = serde_json::from_str(text).unwrap();
        assert_eq!(
            (block.status, block.kind.map(|kind| kind.text())),
            (CheckpointStatus::Unknown, Some("frozen".into()))
        );
        let text =
            r#"{"code":"external-moon","class":"moon","message":"m","severity":"dire","action":null,"time":"t"}"#;
        let warning: WarningBlock = serde_json::from_str(text).unwrap();
        assert_eq!(warning.class.as_ref().and_then(Word::known), None);
        assert_eq!(warning.past.as_ref().map(|past| past.time.as_str()), Some("t"));
        assert_eq!(serde_json::to_string(&warning).unwrap(), text);
        let text = r#"{"code":"incomplete","message":"m","severity":"medium"}"#;
        let warning: WarningBlock = serde_json::from_str(text).unwrap();
        assert_eq!(warning, WarningBlock::plain("incomplete", "m".into()));
        assert_eq!(serde_json::to_string(&warning).unwrap(), text);
    }
}
