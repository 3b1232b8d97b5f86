//! Ledgers of the checkpoints that were dropped, so that their numbers, ids and labels are explained for ever.
//!
//! Each workspace has one, the file `dropped` of its directory. piton's home has another, `pruned`, for the checkpoints
//! of workspaces whose whole history went. A ledger is one JSON object a line, the oldest first, written before the ref
//! is deleted. A lost or torn line costs an explanation, never a checkpoint, so the file is not synced.
//!
//! A long file becomes a *part*, `<file>.<k>.z`: a head, the ids as bytes, which no compression makes shorter, and the
//! rest of the lines, deflated. Parts are written durably and never change.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::sys::fs::durable::{append_private, replace_file};
use crate::sys::fs::lock::{FileLock, Mode};

/// The size in bytes from which on the file becomes a part.
const MOST_PLAIN: u64 = 256 << 10;

/// The beginning of a part. The number of its ids follows, in four bytes.
const HEAD: &[u8] = b"piton dropped 1\n";

/// Bytes of an id.
const ID: usize = 20;

/// The longest wait for another process that writes in the home's ledger.
const PATIENCE: Duration = Duration::from_secs(10);

/// The rule of checkpoints that `piton forget` replaced or took away.
pub const FORGET: &str = "forget";

/// A checkpoint that was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedCheckpoint {
    /// Its permanent number.
    pub n: Number,
    /// 40 hex digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Its label, for one taken by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The rule by which it was dropped, as a setting or in words.
    pub rule: String,
    /// The id of the checkpoint that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The directory of its workspace, where that has no history any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

impl DroppedCheckpoint {
    /// Returns the note of a checkpoint that is dropped now by a rule.
    pub fn new(checkpoint: &Checkpoint, rule: &str, at: i64) -> DroppedCheckpoint {
        let record = &checkpoint.record;
        DroppedCheckpoint {
            n: record.number,
            id: checkpoint.id.to_string(),
            label: record.by_hand().map(str::to_owned),
            at,
            rule: rule.to_owned(),
            by: None,
            of: None,
        }
    }
}

/// The forms in which a person may name a dropped checkpoint. It is meant if one of them fits.
#[derive(Clone, Debug, Default)]
pub struct SoughtCheckpoint {
    /// Its permanent number.
    pub number: Option<Number>,
    /// The beginning of its id, in lowercase hex digits.
    pub id: Option<String>,
    /// Its label, in each spelling that it may have been recorded with.
    pub labels: Vec<String>,
}

impl SoughtCheckpoint {
    fn fits(&self, one: &DroppedCheckpoint) -> bool {
        self.number == Some(one.n)
            || self.id.as_ref().is_some_and(|id| one.id.starts_with(id.as_str()))
            || one.label.as_ref().is_some_and(|label| self.labels.contains(label))
    }

    /// Returns texts of which a line that fits has one. Most lines have none, and need not be parsed.
    fn needles(&self) -> Vec<String> {
        let label = |label: &String| serde_json::to_string(label).ok(); // a text is always valid JSON
        let number = self.number.and_then(|number| serde_json::to_string(&number).ok()); // as above
        let number = number.map(|number| format!("{{\"n\":{number},"));
        let id = self.id.as_ref().map(|id| format!("\"id\":\"{id}"));
        number.into_iter().chain(id).chain(self.labels.iter().filter_map(label)).collect()
    }

    /// Returns the newest line of a ledger that fits, with its place.
    fn newest_in(&self, text: &str) -> Option<(usize, DroppedCheckpoint)> {
        let needles = self.needles();
        if !needles.iter().any(|needle| text.contains(needle.as_str())) {
            return None;
        }
        let lines: Vec<&str> = text.lines().collect();
        let lines = lines.into_iter().enumerate().rev();
        let likely = lines.filter(|(_, line)| needles.iter().any(|needle| line.contains(needle.as_str())));
        // A torn line explains nothing and is passed over.
        likely.filter_map(|(at, line)| Some((at, serde_json::from_str(line).ok()?))).find(|(_, one)| self.fits(one))
    }
}

/// A ledger of dropped checkpoints.
#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// Returns the ledger of the workspace whose records stand in `dir`.
    pub fn of_workspace(dir: &Path) -> Ledger {
        Ledger { path: dir.join("dropped") }
    }

    /// Returns the ledger of workspaces that have no history any more.
    pub fn of_home(home: &Path) -> Ledger {
        Ledger { path: home.join("pruned") }
    }

    /// Notes checkpoints of a workspace that are about to be dropped.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn note(&self, dropped: &[DroppedCheckpoint], _lock: &WorkspaceLock) -> Result<()> {
        self.append(dropped)
    }

    fn append(&self, dropped: &[DroppedCheckpoint]) -> Result<()> {
        if dropped.is_empty() {
            return Ok(());
        }
        let path = &self.path;
        if path.metadata().is_ok_and(|facts| facts.len() > MOST_PLAIN) {
            self.make_part()?;
        }
        let mut file = append_private(path).at("recording what was dropped", path)?;
        let mut text = String::new();
        // A torn line must not take the next one with it.
        if !ends_with_newline(path) {
            text.push('\n');
        }
        for one in dropped {
            text.extend(serde_json::to_string(one).ok()); // texts and numbers are always valid JSON
            text.push('\n');
        }
        // One call, so that a killed process leaves whole lines, but for the last.
        file.write_all(text.as_bytes()).at("recording what was dropped", path)
    }

    /// Moves the lines of the file into a new part.
    fn make_part(&self) -> Result<()> {
        let text = std::fs::read(&self.path).at("reading what was dropped", &self.path)?;
        let (mut ids, mut rest) = (Vec::new(), String::new());
        for mut one in whole_lines(&text) {
            let Ok(id) = one.id.parse::<ObjectId>() else { continue };
            one.id = String::new();
            let Ok(line) = serde_json::to_string(&one) else { continue };
            ids.extend_from_slice(id.as_bytes());
            rest.push_str(&line);
            rest.push('\n');
        }
        let part = part_of(&ids, rest.as_bytes()).at("packing", &self.path)?;
        let next = self.parts().count() + 1;
        replace_file(&self.part(next), &part)?;
        // If this process dies before, the lines are there twice, which harms nobody.
        std::fs::remove_file(&self.path).at("removing", &self.path)
    }

    /// Changes the labels that `edit` has another text for.
    ///
    /// # Errors
    /// `disk-full`, `permission`; a file is as it was or as it should be.
    pub(crate) fn edit_labels(&self, edit: &dyn Fn(&str) -> Option<String>) -> Result<()> {
        let line = |line: &str| {
            let mut one: DroppedCheckpoint = serde_json::from_str(line).ok()?; // a torn line is looked at as bytes
            one.label = Some(edit(one.label.as_deref()?)?);
            serde_json::to_string(&one).ok() // texts and numbers are always valid JSON
        };
        let edited = |text: &str| {
            let lines: Vec<Option<String>> = text.lines().map(line).collect();
            let is_news = lines.iter().any(Option::is_some);
            let whole = || text.lines().zip(lines).map(|(old, new)| new.unwrap_or_else(|| old.to_owned()) + "\n");
            is_news.then(|| whole().collect::<String>())
        };
        for path in self.parts() {
            if let Some(part) = Part::read(&path)
                && let Some(lines) = edited(&part.lines)
            {
                replace_file(&path, &part_of(&part.ids, lines.as_bytes()).at("packing", &path)?)?;
            }
        }
        let text = std::fs::read(&self.path).unwrap_or_default(); // without a file there is no line
        match edited(&String::from_utf8_lossy(&text)) {
            Some(lines) => replace_file(&self.path, lines.as_bytes()),
            None => Ok(()),
        }
    }

    /// Returns the lines of all parts, inflated.
    pub(crate) fn packed_lines(&self) -> impl Iterator<Item = (PathBuf, String)> {
        self.parts().filter_map(|path| Some((path.clone(), Part::read(&path)?.lines)))
    }

    fn part(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}.z"));
        PathBuf::from(name)
    }

    /// Returns the paths of the parts, the oldest first.
    fn parts(&self) -> impl Iterator<Item = PathBuf> {
        (1..).map(|number| self.part(number)).take_while(|path| path.exists())
    }

    /// Returns what is noted of a checkpoint that was pruned, and not replaced by another.
    pub fn pruned(&self, id: &ObjectId) -> Option<DroppedCheckpoint> {
        let sought = SoughtCheckpoint { id: Some(id.to_string()), ..SoughtCheckpoint::default() };
        self.find(&sought).filter(|gone| gone.by.is_none())
    }

    /// Returns the newest checkpoint that is meant; `None` also where the ledger cannot be read.
    pub fn find(&self, sought: &SoughtCheckpoint) -> Option<DroppedCheckpoint> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let found = sought.newest_in(&String::from_utf8_lossy(&text)).map(|(_, found)| found);
        let parts: Vec<PathBuf> = self.parts().collect();
        // A damaged part explains nothing and is passed over.
        found.or_else(|| parts.iter().rev().find_map(|path| Part::read(path)?.find(sought)))
    }

    /// Returns all checkpoints of the ledger, the oldest first.
    fn all(&self) -> Vec<DroppedCheckpoint> {
        let parts = self.parts().filter_map(|path| Part::read(&path)).flat_map(|part| part.all());
        let mut all: Vec<DroppedCheckpoint> = parts.collect();
        all.extend(whole_lines(&std::fs::read(&self.path).unwrap_or_default()));
        all
    }
}

/// Notes in piton's home that the history of a workspace is about to go as a whole: its checkpoints, and those that were
/// dropped before. So its ids are still explained, from anywhere.
///
/// # Errors
/// `disk-full`, `permission`, `store-locked`.
pub fn note_history(
    home: &Home,
    workspace: &Workspace,
    checkpoints: &[Checkpoint],
    (rule, at): (&str, i64),
) -> Result<()> {
    let _lock = FileLock::acquire(&home_lock(home), Mode::Exclusive, "recording what was dropped", PATIENCE)?;
    let mut all: BTreeMap<String, DroppedCheckpoint> = BTreeMap::new();
    let now = checkpoints.iter().map(|checkpoint| DroppedCheckpoint::new(checkpoint, rule, at));
    for one in Ledger::of_workspace(&workspace.dir).all().into_iter().chain(now) {
        all.insert(one.id.clone(), one);
    }
    let of = Some(workspace.path.to_string_lossy().into_owned());
    let mut all: Vec<DroppedCheckpoint> =
        all.into_values().map(|one| DroppedCheckpoint { of: of.clone(), ..one }).collect();
    all.sort_by_key(|one| one.n);
    Ledger::of_home(home.path()).append(&all)
}

/// Returns a part: its head, its ids, and its lines, deflated.
fn part_of(ids: &[u8], lines: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut rest = ZlibEncoder::new(Vec::new(), Compression::new(9));
    rest.write_all(lines)?;
    let count = (ids.len() / ID) as u32;
    Ok([HEAD, &count.to_le_bytes(), ids, &rest.finish()?].concat())
}

/// Notes in piton's home that a workspace was forgotten: the ids of its checkpoints, and nothing else of them.
///
/// # Errors
/// `disk-full`, `permission`, `store-locked`.
pub(crate) fn note_forgotten(home: &Home, workspace: &Workspace, checkpoints: &[Checkpoint], at: i64) -> Result<()> {
    let _lock = FileLock::acquire(&home_lock(home), Mode::Exclusive, "recording what was forgotten", PATIENCE)?;
    let bare = |n: Number, id: String| {
        (id.clone(), DroppedCheckpoint { n, id, at, rule: FORGET.into(), ..Default::default() })
    };
    let before = Ledger::of_workspace(&workspace.dir).all().into_iter().map(|one| bare(one.n, one.id));
    let now = checkpoints.iter().map(|one| bare(one.record.number, one.id.to_string()));
    let all: BTreeMap<String, DroppedCheckpoint> = before.chain(now).collect();
    Ledger::of_home(home.path()).append(&all.into_values().collect::<Vec<_>>())
}

fn home_lock(home: &Home) -> PathBuf {
    home.path().join("pruned.lock")
}

/// The lines of a part, read from its file.
struct Part {
    /// The ids of its lines, one after the other.
    ids: Vec<u8>,
    /// The lines without their ids.
    lines: String,
}

impl Part {
    fn read(path: &Path) -> Option<Part> {
        let bytes = std::fs::read(path).ok()?;
        let (count, rest) = bytes.strip_prefix(HEAD)?.split_first_chunk::<4>()?;
        let (ids, deflated) = rest.split_at_checked(u32::from_le_bytes(*count) as usize * ID)?;
        let mut lines = String::new();
        ZlibDecoder::new(deflated).read_to_string(&mut lines).ok()?;
        Some(Part { ids: ids.to_vec(), lines })
    }

    fn with_id(&self, at: usize, mut one: DroppedCheckpoint) -> DroppedCheckpoint {
        let id = self.ids.chunks_exact(ID).nth(at).and_then(|bytes| bytes.try_into().ok());
        one.id = id.map_or_else(String::new, |id| ObjectId::from_bytes(id).to_string());
        one
    }

    fn find(&self, sought: &SoughtCheckpoint) -> Option<DroppedCheckpoint> {
        if let Some((at, found)) = (SoughtCheckpoint { id: None, ..sought.clone() }).newest_in(&self.lines) {
            return Some(self.with_id(at, found));
        }
        let start = sought.id.as_ref()?;
        let id = |bytes: &[u8]| bytes.try_into().map(|bytes| ObjectId::from_bytes(bytes).to_string());
        // The bytes of whole digits decide for almost all; an odd last digit needs the text.
        let whole: Vec<u8> =
            (0..start.len() / 2).filter_map(|at| u8::from_str_radix(start.get(2 * at..2 * at + 2)?, 16).ok()).collect();
        let fits = |bytes: &[u8]| bytes.starts_with(&whole) && id(bytes).is_ok_and(|id| id.starts_with(start.as_str()));
        let at = self.ids.chunks_exact(ID).rposition(fits)?;
        let line = self.lines.lines().nth(at)?;
        serde_json::from_str(line).ok().map(|one| self.with_id(at, one)) // a torn line explains nothing
    }

    fn all(&self) -> Vec<DroppedCheckpoint> {
        let lines = self.lines.lines().enumerate();
        lines.filter_map(|(at, line)| serde_json::from_str(line).ok().map(|one| self.with_id(at, one))).collect()
    }
}

/// Returns the lines of a ledger that are whole.
fn whole_lines(text: &[u8]) -> Vec<DroppedCheckpoint> {
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Returns true if a file is empty or missing, or ends with a whole line.
fn ends_with_newline(path: &Path) -> bool {
    let last = |mut file: std::fs::File| {
        let mut last = [0];
        file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map(|()| last[0] == b'\n')
    };
    // An empty file has no last byte.
    std::fs::File::open(path).and_then(last).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::time::Instant;

    use super::*;

    fn one(n: u64, label: Option<&str>) -> DroppedCheckpoint {
        // As random as ids are.
        let id = ObjectId::of(crate::model::id::ObjectKind::Blob, &n.to_le_bytes()).unwrap().to_string();
        let label = label.map(str::to_owned);
        DroppedCheckpoint {
            n: Number::of(n),
            id,
            label,
            at: 1_767_225_600_000 + n.cast_signed() * 61_000,
            rule: "retention.days".into(),
            ..Default::default()
        }
    }

    fn number(n: u64) -> SoughtCheckpoint {
        SoughtCheckpoint { number: Some(Number::of(n)), ..SoughtCheckpoint::default() }
    }

    fn id(id: &str) -> SoughtCheckpoint {
        SoughtCheckpoint { id: Some(id.to_owned()), ..SoughtCheckpoint::default() }
    }

    fn label(label: &str) -> SoughtCheckpoint {
        SoughtCheckpoint { labels: vec![label.to_owned()], ..SoughtCheckpoint::default() }
    }

    fn ledger() -> (tempfile::TempDir, Ledger, WorkspaceLock) {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", Duration::ZERO).unwrap();
        let ledger = Ledger::of_workspace(dir.path());
        (dir, ledger, lock)
    }

    #[test]
    fn the_newest_is_found_and_torn_lines_are_passed_over() {
        let (_dir, ledger, lock) = ledger();
        assert_eq!(ledger.find(&number(1)), None);
        ledger.note(&[one(1, Some("a \"b\"\\")), one(2, Some("a \"b\"\\"))], &lock).unwrap();
        let mut file = OpenOptions::new().append(true).open(&ledger.path).unwrap();
        file.write_all(b"{\"n\": 3, \"id\"").unwrap();
        ledger.note(&[one(4, None)], &lock).unwrap();
        assert_eq!(ledger.find(&label("a \"b\"\\")).unwrap().n, Number::of(2));
        assert_eq!(ledger.find(&number(4)), Some(one(4, None)));
        assert_eq!((ledger.find(&number(3)), ledger.find(&label("a"))), (None, None));
        assert_eq!(ledger.find(&id(&one(1, None).id[..7])).unwrap().n, Number::of(1));
    }

    #[test]
    fn nothing_is_ever_forgotten_and_the_files_stay_small() {
        let (dir, ledger, lock) = ledger();
        let name = |n: u64| n.is_multiple_of(50).then(|| format!("before step {n}"));
        for thousand in 0..50 {
            let some: Vec<_> = (0..1000).map(|n| thousand * 1000 + n).map(|n| one(n, name(n).as_deref())).collect();
            ledger.note(&some, &lock).unwrap();
        }
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
        let bytes: u64 = files.sum();
        let mut slowest = Duration::ZERO;
        for n in [0, 1, 50, 4711, 25_000, 49_950, 49_999] {
            let all = one(n, name(n).as_deref());
            let sought = [Some(number(n)), Some(id(&all.id[..9])), Some(id(&all.id)), name(n).as_deref().map(label)];
            for sought in sought.into_iter().flatten() {
                let from = Instant::now();
                assert_eq!(ledger.find(&sought), Some(all.clone()), "{sought:?}");
                slowest = slowest.max(from.elapsed());
            }
        }
        let from = Instant::now();
        assert_eq!(ledger.find(&number(50_000)), None);
        slowest = slowest.max(from.elapsed());
        println!("50,000 dropped checkpoints take {bytes} bytes; the slowest search took {slowest:?}");
        assert!(bytes < 2 << 20, "{bytes}");
        assert_eq!(ledger.all().len(), 50_000);
    }

    #[test]
    fn labels_are_edited_in_parts_too() {
        let (_dir, ledger, lock) = ledger();
        let all: Vec<_> = (0..4000).map(|n| one(n, Some(if n % 1000 == 0 { "a secret" } else { "plain" }))).collect();
        all.chunks(1000).for_each(|some| ledger.note(some, &lock).unwrap());
        assert!(ledger.parts().count() > 0);
        ledger.edit_labels(&|label| label.contains("secret").then(|| "***".to_owned())).unwrap();
        let edited = |one: &DroppedCheckpoint| DroppedCheckpoint {
            label: Some(if one.n.main.is_multiple_of(1000) { "***" } else { "plain" }.to_owned()),
            ..one.clone()
        };
        assert_eq!(ledger.all(), all.iter().map(edited).collect::<Vec<_>>());
        assert!(ledger.packed_lines().all(|(_, lines)| !lines.contains("secret")));
    }

    #[test]
    fn a_history_that_went_is_explained_from_the_home() {
        use crate::checkpoint::catalog::checkpoint::tests::checkpoint;
        use crate::model::checkpoint::CheckpointKind;
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let root = scratch.path().join("work");
        std::fs::create_dir(&root).unwrap();
        let workspace = Workspace::open(&home, &root).unwrap();
        let lock = WorkspaceLock::acquire(&workspace.dir, "test", Duration::ZERO).unwrap();
        Ledger::of_workspace(&workspace.dir).note(&[one(1, None)], &lock).unwrap();
        let last = checkpoint(2, CheckpointKind::Manual, "local");
        note_history(&home, &workspace, std::slice::from_ref(&last), ("retention.orphans", 5)).unwrap();
        let ledger = Ledger::of_home(home.path());
        let found = ledger.find(&id(&last.id.to_string()[..6])).unwrap();
        assert_eq!((found.n, found.rule.as_str(), found.at), (Number::of(2), "retention.orphans", 5));
        assert!(found.of.unwrap().ends_with("/work"));
        assert_eq!(ledger.find(&id(&one(1, None).id)).unwrap().rule, "retention.days");
    }
}
