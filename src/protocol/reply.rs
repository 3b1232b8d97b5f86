//! Replies and notices, as they stand on the wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::VERSION;
use super::base64;
use super::request::Id;
use crate::error::Error;
use crate::model::coverage::{Weight, not_held};
use crate::model::path::RelPath;

/// Lists are cut after this many items; `total` says how many there are.
const MAX_ITEMS: usize = 1000;

/// A path, with its bytes when it is not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl PathItem {
    /// A path with a reason, if there is one.
    pub fn new(path: &RelPath, why: Option<String>) -> PathItem {
        let text = String::from_utf8_lossy(path.as_bytes()).into_owned();
        let exact = std::str::from_utf8(path.as_bytes()).is_ok();
        PathItem { path: text, path_b64: (!exact).then(|| base64::encode(path.as_bytes())), why }
    }
}

/// A list that may be cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct List {
    pub total: usize,
    pub items: Vec<PathItem>,
}

impl List {
    /// True if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Of paths without reasons.
    pub fn of_paths<'a>(paths: impl Iterator<Item = &'a RelPath>) -> List {
        List::collect(paths.map(|path| (path, None)))
    }

    /// Of paths with reasons.
    pub fn of_reasons<'a>(paths: impl Iterator<Item = (&'a RelPath, String)>) -> List {
        List::collect(paths.map(|(path, why)| (path, Some(why))))
    }

    fn collect<'a>(paths: impl Iterator<Item = (&'a RelPath, Option<String>)>) -> List {
        let mut list = List::default();
        for (path, why) in paths {
            list.total += 1;
            if list.items.len() < MAX_ITEMS {
                list.items.push(PathItem::new(path, why));
            }
        }
        list
    }
}

/// A path that an action names and no checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotHeld {
    #[serde(flatten)]
    pub item: PathItem,
    /// `null` where it was not counted.
    pub bytes: Option<u64>,
    /// True if counting ended early: there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// Says in one sentence what an answer lists as not held.
pub fn not_held_sentence(answer: &Value) -> Option<String> {
    let named = answer["not_held"].as_array()?.iter().map(|item| {
        let path = item["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(".");
        let weight = item["bytes"].as_u64().map(|bytes| Weight { bytes, is_least: item["at_least"] == true });
        (path.to_owned(), weight)
    });
    let sentence = not_held(named)?;
    Some(format!("{sentence}; if this action deletes that, no checkpoint can bring it back"))
}

/// The status of the checkpoint of an event or a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointStatus {
    Taken,
    Unchanged,
    Held,
    Late,
    Failed,
    Off,
    #[default]
    None,
}

/// The state of the capture that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaselineStatus {
    None,
    Running,
    Ready,
}

/// The way in which changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatcherWord {
    /// A checkpoint looks at what changed.
    Warm,
    /// It scans still.
    Cold,
    /// No watcher is possible, or polling is wanted.
    Scan,
    /// None is wanted.
    None,
}

/// The block of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointBlock {
    pub id: Option<String>,
    pub n: Option<u64>,
    pub kind: Option<String>,
    pub status: CheckpointStatus,
    pub flags: Vec<String>,
    pub pending: Option<String>,
    pub reason: Option<String>,
    pub files: Option<u64>,
    pub bytes: Option<u64>,
    pub changed: Option<u64>,
    pub skipped: List,
    pub ms: Option<f64>,
}

/// The answer to `hello`.
#[derive(Clone, Debug, Serialize)]
pub struct HelloReply {
    pub piton: &'static str,
    pub workspace: Value,
    pub run: String,
    pub guard: &'static str,
    pub baseline: BaselineStatus,
    pub watcher: WatcherWord,
    pub limits: Value,
    pub interrupted: Vec<Value>,
    pub faults: Vec<String>,
}

/// The answer to `tool.before` and `shell.before`.
#[derive(Clone, Debug, Serialize)]
pub struct BeforeReply {
    pub proceed: bool,
    pub reason: Option<String>,
    pub action: Option<String>,
    pub turn: Option<String>,
    pub needs: crate::model::effect::Needs,
    pub confidence: crate::model::effect::Confidence,
    pub effects: Vec<crate::model::effect::Effect>,
    pub warnings: Vec<crate::model::effect::Warning>,
    pub checkpoint: CheckpointBlock,
    /// Lists the paths that the action names and no checkpoint holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<NotHeld>,
    /// Sentences for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl BeforeReply {
    /// The reply with one more reason to hold the action; what held it before stays the reason.
    #[must_use]
    pub fn held(mut self, reason: Option<&str>) -> BeforeReply {
        self.proceed &= reason.is_none();
        self.reason = self.reason.or_else(|| reason.map(str::to_owned));
        self
    }
}

/// Files and lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatBlock {
    pub files: u64,
    pub plus: u64,
    pub minus: u64,
    /// True if lines were counted in the first files only.
    #[serde(skip_serializing_if = "is_false")]
    pub cut: bool,
}

/// For fields that stand only where they say something.
fn is_false(value: &bool) -> bool {
    !value
}

/// One checkpoint of a list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListItem {
    pub n: u64,
    pub id: String,
    pub kind: &'static str,
    pub run: String,
    pub turn: Option<String>,
    pub codon_id: Option<String>,
    pub codon_name: Option<String>,
    pub time: String,
    pub reason: String,
    /// The changes after this checkpoint, up to the next one.
    pub stat: StatBlock,
    pub pending: bool,
    pub flags: Vec<String>,
    /// Lists the paths that its action named and it does not hold.
    #[serde(rename = "not_held", skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<NotHeld>,
    pub external: Vec<&'static str>,
    pub pinned: bool,
}

/// The answer to `checkpoint.list`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListReply {
    pub current_branch: String,
    pub total: usize,
    pub checkpoints: Vec<ListItem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// The target of a restore.
#[derive(Clone, Debug, Serialize)]
pub struct TargetBlock {
    pub id: String,
    pub n: u64,
    pub kind: &'static str,
    pub time: String,
    pub reason: String,
    pub run: String,
    #[serde(rename = "codonId", skip_serializing_if = "Option::is_none")]
    pub codon_id: Option<String>,
    #[serde(rename = "codonName", skip_serializing_if = "Option::is_none")]
    pub codon_name: Option<String>,
}

/// The operation that an undo or redo steps over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepBlock {
    pub operation: String,
    /// `restore`, `rollback`, `undo` or `redo`.
    pub kind: &'static str,
    pub time: String,
    /// The run that moves with it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// The plan of a restore.
#[derive(Clone, Debug, Serialize)]
pub struct PlanLists {
    /// Names this plan: a restore that is given it does this plan or nothing.
    pub digest: String,
    pub create: List,
    pub replace: List,
    pub delete: List,
    pub keep: List,
    pub conflict: List,
}

/// The answer to `rollback.preview`.
#[derive(Clone, Debug, Serialize)]
pub struct PreviewReply {
    pub target: TargetBlock,
    pub plan: PlanLists,
    pub stat: StatBlock,
    pub outside_edits: List,
    pub warnings: Vec<Value>,
    /// Selected paths that neither the target nor the workspace has.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub unheld: List,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<StepBlock>,
}

/// The outcome of a restore.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Done {
    pub created: List,
    pub replaced: List,
    pub deleted: List,
    pub kept: List,
    pub failed: List,
    /// Lists the paths of `kept` that are not in the agreed plan.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub not_agreed: List,
}

/// The answer to `restore`, `rollback.toCheckpoint`, `undo` and `redo`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreReply {
    /// `null`: there was nothing to do.
    pub operation: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub pre_restore: Option<String>,
    pub detached: bool,
    pub next_branch: Option<String>,
    /// The run that was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<StepBlock>,
    pub done: Done,
    pub warnings: Vec<Value>,
    pub state: Vec<String>,
    pub rewind_turn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The answer to `checkpoint.diff`.
#[derive(Clone, Debug, Serialize)]
pub struct DiffReply {
    pub stat: StatBlock,
    pub files: List,
    pub patch: String,
    /// True if the patch was cut.
    pub cut: bool,
}

/// An error, as a reply or (without an id) as a notice-like line.
pub struct ErrorReply;

impl ErrorReply {
    /// The whole line.
    pub fn line(id: Option<&Id>, error: &Error) -> Vec<u8> {
        let mut object = Map::new();
        let mut put = |key: &str, value: Option<Value>| value.map(|value| object.insert(key.to_owned(), value));
        put("code", Some(error.code().as_str().into()));
        put("message", Some(error.text().into()));
        put("line", error.line_number().map(Value::from));
        put("field", error.field_name().map(Value::from));
        let candidates = error.candidate_list();
        put("candidates", (!candidates.is_empty()).then(|| candidates.into()));
        put("preview", error.fresh_preview().cloned());
        put("retry", Some(error.code().retry().into()));
        line("error", id, false, &json!({ "error": object }))
    }
}

/// A line: the fields of every line, and its own.
#[derive(Serialize)]
struct Envelope<'l, B: Serialize> {
    v: u64,
    #[serde(rename = "type")]
    name: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'l Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(flatten)]
    body: &'l B,
}

/// One line: version, type, id, `ok`, and the fields of `body`, none of which bears one of these names.
pub fn line(name: &str, id: Option<&Id>, ok: bool, body: &impl Serialize) -> Vec<u8> {
    let ok = (name != "notice").then_some(ok);
    let (id, raw) = match id {
        Some(Id::Value(value)) => (Some(value), None),
        Some(Id::Number(raw)) => (None, Some(raw)),
        None => (None, None),
    };
    // Every body is a struct or map with string keys: it always serialises to an object.
    let mut bytes = serde_json::to_vec(&Envelope { v: VERSION, name, id, ok, body }).unwrap_or_default();
    if let Some(raw) = raw {
        // Behind the brace: a number that no reader of ours keeps goes out as it came in.
        bytes.splice(1..1, format!("\"id\":{raw},").into_bytes());
    }
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn errors_carry_everything_a_client_needs() {
        let error =
            Error::new(Code::AmbiguousCheckpoint, "two\nmatch").hint("give more").candidates(vec!["a".into()]).line(4);
        let bytes = ErrorReply::line(None, &error);
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["error"]["code"], "ambiguous-checkpoint");
        assert_eq!((&value["ok"], &value["error"]["line"]), (&json!(false), &json!(4)));
        assert_eq!(value["error"]["candidates"], json!(["a"]));
    }

    #[test]
    fn lists_are_cut_and_odd_paths_carry_their_bytes() {
        let odd = RelPath::parse(b"a\xff").unwrap();
        let list = List::of_paths(std::iter::repeat_n(&odd, 2000));
        assert_eq!((list.total, list.items.len()), (2000, 1000));
        assert_eq!(list.items[0].path_b64.as_deref(), Some("Yf8="));
    }
}
