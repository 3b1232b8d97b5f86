//! The log of the turns and actions at work in a workspace, and of the changes that watchers reported meanwhile.
//!
//! All processes of a workspace append to one file `windows`: a sidecar, the hooks of other clients, the command line. The
//! end of a turn reads from it who was at work when a path changed. Times are nanoseconds since the start of the machine. The
//! file is not synced: a power cut costs the knowledge of the turns that were open. Each line is one JSON object; a line that
//! cannot be read is passed over.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::append_lock::locked;
use super::interval_line::IntervalLine;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::change::Changes;
use crate::model::id::ObjectId;
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::sys::clock::{boot_id, since_boot_ns};
use crate::sys::fs::durable::{append_private, replace_cache, unique_suffix};

/// The length from which on the file is shortened although turns are open, in bytes.
const LONG: u64 = 4 << 20;

/// The most turns that are known to have ended.
const MOST_ENDED: usize = 32;

/// The time in nanoseconds after which an open action counts as forgotten, where that is asked.
const FORGOTTEN: i64 = 4 * 3_600_000_000_000;

/// The longest wait for a process that shortens the file.
const PATIENCE: Duration = Duration::from_millis(250);

/// A turn that was begun in this workspace and has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// The turn's own name, which no other has; the same in all its workspaces.
    pub key: String,
    /// The id of its run.
    pub run: String,
    /// The name under which its actions are noted.
    pub actor: String,
    /// The client's name of it.
    pub turn: String,
    /// The first words of its prompt, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The name of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// True if the client has a name that belongs to a person's doors, and is an agent all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_agents: bool,
    /// The checkpoint of the workspace as it was when the turn began here.
    pub base: ObjectId,
    /// The moment of that.
    pub since: i64,
    /// The same on the wall clock: RFC 3339, UTC, milliseconds.
    pub began: String,
    /// The roots of all workspaces in which the turn acts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PathBuf>,
    /// True behind a restore that was made while the turn was open: `base` and `since` are those of its part since then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_later_part: bool,
    /// The paths that this restore has changed (percent-quoted): a watcher may report them behind `since` still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// The journal's name of the turn, once it was written down so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
}

/// The time in which one action was at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionWindow {
    /// The name of whoever acts: of a run, or of a session whose run is everybody's.
    pub actor: String,
    /// The client's id of the action, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The paths that it names, with all below them (percent-quoted).
    pub named: Vec<String>,
    /// True if it may move HEAD: it names git.
    pub moves_head: bool,
    /// True if nobody knows what it does, so that it may move HEAD too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_opaque: bool,
    /// The process that alone could tell of its end, by its name among those that append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The moment at which it began.
    pub from: i64,
    /// The moment at which it ended; `None` while it is at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
}

impl ActionWindow {
    /// Returns true if the action names a path, a directory above it, or something in it: directories are made for named files.
    pub fn names(&self, path: &RelPath) -> bool {
        let quoted = quote(path.as_bytes());
        let is_within = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.named.iter().any(|named| is_within(named, &quoted) || is_within(&quoted, named))
    }
}

/// The changes between two questions to one watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The process of the watcher.
    pub by: String,
    /// The moment since which this watcher knows of all changes: nothing changed from then to `from`.
    pub since: i64,
    /// The moment of the earlier question.
    pub from: i64,
    /// The moment of the later one.
    pub to: i64,
    /// The paths that may have changed in between.
    pub changes: Changes,
    /// True if HEAD moved in between.
    pub head_moved: bool,
}

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum WindowLine {
    /// The start of the machine in which the lines below it were written.
    Boot {
        id: String,
    },
    Turn(OpenTurn),
    /// The turn acts in these workspaces by now.
    Places {
        key: String,
        places: Vec<PathBuf>,
    },
    /// The turn was written down so far.
    Written {
        key: String,
        op: String,
    },
    /// The turn has ended.
    TurnEnd {
        key: String,
    },
    Begin(ActionWindow),
    /// An action has ended, or all of an actor.
    End {
        actor: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        at: i64,
    },
    Seen(IntervalLine),
}

/// The log, added up.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// The turns that are open, in the order in which they began.
    pub turns: Vec<OpenTurn>,
    /// The actions since the oldest open turn began.
    pub actions: Vec<ActionWindow>,
    /// The answers of watchers meanwhile.
    pub seen: Vec<Interval>,
    /// The keys of the last turns that ended. They do not begin any more: a process may be late with the note of a beginning.
    pub ended: Vec<String>,
}

impl Windows {
    fn add(&mut self, entry: WindowLine) {
        match entry {
            WindowLine::Boot { .. } => {}
            WindowLine::Turn(turn) if self.has_ended(&turn.key) => {}
            WindowLine::Turn(turn) => {
                self.turns.retain(|open| open.key != turn.key);
                self.turns.push(turn);
            }
            WindowLine::Places { key, places } => {
                self.turns.iter_mut().filter(|open| open.key == key).for_each(|open| open.places.clone_from(&places));
            }
            WindowLine::Written { key, op } => {
                self.turns.iter_mut().filter(|open| open.key == key).for_each(|open| open.op = Some(op.clone()));
            }
            WindowLine::TurnEnd { key } => {
                self.turns.retain(|open| open.key != key);
                self.forget_old();
                self.ended.retain(|known| *known != key);
                self.ended.push(key);
                let old = self.ended.len().saturating_sub(MOST_ENDED);
                self.ended.drain(..old);
            }
            WindowLine::Begin(window) => {
                if window.action.is_none() {
                    // A client without ids of actions tells of one after the other, and perhaps of no end.
                    let earlier = |known: &&mut ActionWindow| {
                        known.to.is_none() && known.action.is_none() && known.actor == window.actor
                    };
                    self.actions.iter_mut().filter(earlier).for_each(|known| known.to = Some(window.from));
                }
                self.actions.push(window);
            }
            WindowLine::End { actor, action, at } => {
                let is_meant = |window: &&mut ActionWindow| {
                    window.to.is_none() && window.actor == actor && (action.is_none() || window.action == action)
                };
                self.actions.iter_mut().filter(is_meant).for_each(|window| window.to = Some(at));
                if self.turns.is_empty() {
                    self.forget_old();
                }
            }
            WindowLine::Seen(line) => self.seen.extend(line.read()),
        }
    }

    /// Ends the actions of which nobody can tell the end any more, with the last answer of the process that told of them.
    fn end_unwatched(&mut self, is_alive: &dyn Fn(u32) -> bool) {
        let seen = &self.seen;
        let is_gone = |name: &str| !name.split('-').next().and_then(|id| id.parse().ok()).is_some_and(is_alive);
        for window in self.actions.iter_mut().filter(|window| window.to.is_none()) {
            if let Some(by) = window.by.as_deref().filter(|by| is_gone(by)) {
                let last = seen.iter().filter(|interval| interval.by == by).map(|interval| interval.to).max();
                window.to = Some(last.unwrap_or(window.from).max(window.from));
            }
        }
    }

    /// Forgets what is older than all open turns.
    fn forget_old(&mut self) {
        let oldest = self.turns.iter().map(|turn| turn.since).min().unwrap_or(i64::MAX);
        self.actions.retain(|window| window.to.is_none_or(|to| to >= oldest));
        self.seen.retain(|interval| interval.to >= oldest);
    }

    /// Returns the open turn of a key.
    pub fn turn(&self, key: &str) -> Option<&OpenTurn> {
        self.turns.iter().find(|turn| turn.key == key)
    }

    /// Returns true if the turn of a key is one of the last that ended.
    pub fn has_ended(&self, key: &str) -> bool {
        self.ended.iter().any(|ended| ended == key)
    }

    /// Returns what a new file has to hold to be read as this.
    fn entries(&self) -> impl Iterator<Item = WindowLine> {
        let turns = self.turns.iter().cloned().map(WindowLine::Turn);
        let actions = self.actions.iter().cloned().map(WindowLine::Begin);
        let ended = self.ended.iter().map(|key| WindowLine::TurnEnd { key: key.clone() });
        ended.chain(turns).chain(actions).chain(self.seen.iter().map(|seen| WindowLine::Seen(seen.into())))
    }
}

/// Returns the name of this process among those that append.
pub fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(unique_suffix)
}

/// Returns true if an action of a client's sessions is open in the workspace whose records are in `dir`. One that has been so for hours
/// counts as forgotten: not every client tells of each end.
pub fn has_open_action(dir: &Path, client: &str) -> bool {
    let mut log = WindowLog::in_dir(dir);
    let now = since_boot_ns();
    let of_client =
        |window: &&ActionWindow| window.actor.strip_prefix(client).is_some_and(|rest| rest.starts_with('.'));
    let is_open = |window: &ActionWindow| window.to.is_none() && now.saturating_sub(window.from) < FORGOTTEN;
    log.known_windows().is_ok_and(|windows| windows.actions.iter().filter(of_client).any(is_open))
}

/// The log file of one workspace, as one process has it open.
#[derive(Default)]
pub(crate) struct WindowLog {
    path: PathBuf,
    /// Opened when there is something to append.
    file: Option<File>,
    /// The file that was read, and the bytes of whole lines of it that were.
    read: ((u64, u64), u64),
    windows: Windows,
}

impl WindowLog {
    /// Returns the log in a workspace's record directory; nothing is opened yet.
    pub(crate) fn in_dir(dir: &Path) -> WindowLog {
        WindowLog { path: dir.join("windows"), ..WindowLog::default() }
    }

    /// Notes that a turn begins here.
    ///
    /// # Errors
    /// `store-locked`, `disk-full`, `permission`: the turn will not be known.
    pub(crate) fn begin_turn(&mut self, turn: &OpenTurn, seen: &[Interval]) -> Result<()> {
        self.append(seen, &[WindowLine::Turn(turn.clone())])
    }

    /// Notes in which workspaces an open turn acts by now.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn note_places(&mut self, key: &str, places: &[PathBuf]) -> Result<()> {
        self.append(&[], &[WindowLine::Places { key: key.to_owned(), places: places.to_vec() }])
    }

    /// Notes that an open turn was written into the journal so far.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn note_written(&mut self, key: &str, op: &str) -> Result<()> {
        self.append(&[], &[WindowLine::Written { key: key.to_owned(), op: op.to_owned() }])
    }

    /// Notes what watchers have answered.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn note_seen(&mut self, seen: &[Interval]) -> Result<()> {
        if seen.is_empty() { Ok(()) } else { self.append(seen, &[]) }
    }

    /// Notes that a turn has ended, and shortens the file.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn end_turn(&mut self, key: &str) -> Result<()> {
        self.append(&[], &[WindowLine::TurnEnd { key: key.to_owned() }])?;
        self.shorten()
    }

    /// Notes that an action begins.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn begin(&mut self, window: ActionWindow, seen: &[Interval]) -> Result<()> {
        self.append(seen, &[WindowLine::Begin(window)])
    }

    /// Notes that an action of an actor has ended; without a name, all of them.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn end(&mut self, actor: &str, action: Option<&str>, at: i64, seen: &[Interval]) -> Result<()> {
        self.append(seen, &[WindowLine::End { actor: actor.to_owned(), action: action.map(str::to_owned), at }])
    }

    /// Returns the log as it is now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn windows(&mut self) -> Result<&Windows> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (self.read, self.windows) = (Default::default(), Windows::default());
                return Ok(&self.windows);
            }
            opened => opened.at("opening", &self.path)?,
        };
        let facts = file.metadata().at("examining", &self.path)?;
        let object = (facts.dev(), facts.ino());
        if self.read.0 != object || facts.len() < self.read.1 {
            (self.read, self.windows) = ((object, 0), Windows::default());
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.read.1)).at("seeking in", &self.path)?;
        file.read_to_end(&mut bytes).at("reading", &self.path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let boot = boot_id();
        let mut is_old = false;
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<WindowLine>(line) {
                Ok(WindowLine::Boot { id }) => is_old = id != boot,
                // After a restart of the machine nothing is known of an open turn but its beginning.
                Ok(WindowLine::Turn(turn)) if is_old => {
                    self.windows.add(WindowLine::Turn(OpenTurn { since: 0, ..turn }));
                }
                Ok(WindowLine::Begin(_) | WindowLine::Seen(_)) if is_old => {}
                Ok(entry) => self.windows.add(entry),
                // A line of a later version, or one that a full disk cut.
                Err(_) => {}
            }
        }
        self.read.1 += whole as u64;
        Ok(&self.windows)
    }

    /// Returns the log as it is now, without actions at work whose process is gone.
    ///
    /// # Errors
    /// As [`WindowLog::windows`].
    pub(crate) fn known_windows(&mut self) -> Result<&Windows> {
        self.windows()?;
        self.windows.end_unwatched(&crate::sys::process::exists);
        Ok(&self.windows)
    }

    fn append(&mut self, seen: &[Interval], entries: &[WindowLine]) -> Result<()> {
        let mut text = Vec::new();
        seen.iter().try_for_each(|interval| write_line(&mut text, &WindowLine::Seen(interval.into())))?;
        entries.iter().try_for_each(|entry| write_line(&mut text, entry))?;
        let until = Instant::now() + PATIENCE;
        loop {
            let (mut file, is_new) = match self.file.take() {
                Some(file) => (file, false),
                None => (append_private(&self.path).at("opening", &self.path)?, true),
            };
            locked(&file, &self.path, until, File::try_lock_shared)?;
            let facts = file.metadata().at("examining", &self.path)?;
            // Another process has shortened the file: this one is gone.
            if facts.nlink() == 0 {
                continue;
            }
            let mut lines = Vec::new();
            if is_new {
                // The file may be from before a restart of the machine.
                write_line(&mut lines, &WindowLine::Boot { id: boot_id() })?;
            }
            lines.extend(&text);
            let written = file.write_all(&lines).at("appending to", &self.path);
            if written.is_ok() && !is_new {
                self.know(&mut file, (facts.dev(), facts.ino()), seen, entries, lines.len() as u64);
            }
            let unlocked = file.unlock().at("unlocking", &self.path);
            if written.is_err() && file.metadata().is_ok_and(|facts| facts.len() == 0) {
                // No room for its first line: nothing is left behind, and whoever has it open opens it anew.
                let _ = std::fs::remove_file(&self.path);
            }
            self.file = Some(file);
            written.and(unlocked)?;
            return if facts.len() < LONG { Ok(()) } else { self.shorten() };
        }
    }

    /// Adds up what was just appended, if nothing that was not read stands before it: then it need not be read back.
    fn know(&mut self, file: &mut File, object: (u64, u64), seen: &[Interval], entries: &[WindowLine], length: u64) {
        let is_next = |end: u64| self.read == (object, end - length);
        let Some(end) = file.stream_position().ok().filter(|end| is_next(*end)) else { return };
        seen.iter().for_each(|interval| self.windows.add(WindowLine::Seen(interval.into())));
        entries.iter().for_each(|entry| self.windows.add(entry.clone()));
        self.read.1 = end;
    }

    /// Makes a new file of what is still of use, where that is worth it.
    fn shorten(&mut self) -> Result<()> {
        let file = File::open(&self.path).at("opening", &self.path)?;
        if locked(&file, &self.path, Instant::now(), File::try_lock).is_err() {
            // Somebody appends just now; the end of another turn shortens it.
            return Ok(());
        }
        let length = file.metadata().at("examining", &self.path)?.len();
        let windows = self.windows()?;
        if !windows.turns.is_empty() && length < LONG {
            return Ok(());
        }
        let mut text = Vec::new();
        write_line(&mut text, &WindowLine::Boot { id: boot_id() })?;
        windows.entries().try_for_each(|entry| write_line(&mut text, &entry))?;
        if text.len() as u64 >= LONG {
            // So many changes in one turn: who made them will be unknown.
            text.clear();
            write_line(&mut text, &WindowLine::Boot { id: boot_id() })?;
            windows.turns.iter().try_for_each(|turn| write_line(&mut text, &WindowLine::Turn(turn.clone())))?;
        }
        replace_cache(&self.path, &text)
    }
}

fn write_line(text: &mut Vec<u8>, entry: &WindowLine) -> Result<()> {
    serde_json::to_writer(&mut *text, entry)
        .map_err(|error| Error::new(Code::Internal, "writing a line of the log of actions").caused_by(error))?;
    text.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::change::{Dirty, Reach};
    use crate::model::id::ObjectKind;

    fn turn(key: &str, since: i64) -> OpenTurn {
        OpenTurn {
            key: key.into(),
            run: "r".into(),
            actor: "r".into(),
            turn: "t".into(),
            prompt: None,
            client: None,
            is_agents: false,
            base: ObjectId::of(ObjectKind::Blob, b"x").unwrap(),
            since,
            began: String::new(),
            places: Vec::new(),
            is_later_part: false,
            restored: Vec::new(),
            op: None,
        }
    }

    fn window(action: &str, from: i64) -> ActionWindow {
        let (actor, action) = ("r".into(), Some(action.to_owned()));
        ActionWindow {
            actor,
            action,
            named: vec!["a".into()],
            moves_head: false,
            is_opaque: false,
            by: None,
            from,
            to: None,
        }
    }

    fn seen(from: i64, to: i64, paths: &[&str]) -> Interval {
        let entry = |path: &&str| (RelPath::parse(path.as_bytes()).unwrap(), Reach::Entry);
        let changes = Changes::Paths(Dirty::new(paths.iter().map(entry)));
        Interval { by: "p".into(), since: 0, from, to, changes, head_moved: false }
    }

    #[test]
    fn processes_share_one_log_and_old_lines_go_with_their_turns() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (WindowLog::in_dir(dir.path()), WindowLog::in_dir(dir.path()));
        assert!(one.windows().unwrap().turns.is_empty());
        one.begin_turn(&turn("k1", 10), &[]).unwrap();
        other.begin_turn(&turn("k2", 20), &[]).unwrap();
        one.begin(window("a1", 11), &[seen(10, 11, &["x y"])]).unwrap();
        other.begin(window("a2", 21), &[]).unwrap();
        one.end("r", Some("a1"), 15, &[seen(11, 15, &["a/b", "\u{e9}"])]).unwrap();
        for log in [&mut one, &mut other] {
            let windows = log.windows().unwrap();
            assert_eq!(windows.turns.iter().map(|turn| turn.key.as_str()).collect::<Vec<_>>(), ["k1", "k2"]);
            assert_eq!(windows.actions.iter().map(|window| window.to).collect::<Vec<_>>(), [Some(15), None]);
            assert_eq!(windows.seen, [seen(10, 11, &["x y"]), seen(11, 15, &["a/b", "\u{e9}"])]);
        }
        one.note_written("k1", "t-1").unwrap();
        one.note_places("k1", &[PathBuf::from("/w"), PathBuf::from("/v")]).unwrap();
        let open = other.windows().unwrap().turn("k1").cloned().unwrap();
        assert_eq!((open.op.as_deref(), open.places.len()), (Some("t-1"), 2));
        one.end_turn("k1").unwrap();
        let windows = other.windows().unwrap();
        assert_eq!((windows.turns.len(), windows.actions.len(), windows.seen.len()), (1, 1, 0));
        other.end("r", None, 30, &[]).unwrap();
        other.end_turn("k2").unwrap();
        one.begin_turn(&turn("k3", 40), &[]).unwrap();
        let windows = other.windows().unwrap();
        assert_eq!((windows.turns.len(), windows.actions.len()), (1, 0), "{windows:?}");
        assert!(std::fs::metadata(dir.path().join("windows")).unwrap().len() < 500);
    }

    #[test]
    fn what_has_ended_does_not_begin_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, mut late) = (WindowLog::in_dir(dir.path()), WindowLog::in_dir(dir.path()));
        one.end_turn("k1").unwrap();
        late.begin_turn(&turn("k1", 10), &[]).unwrap();
        one.begin_turn(&turn("k2", 20), &[]).unwrap();
        one.end_turn("k2").unwrap();
        late.begin_turn(&turn("k2", 20), &[]).unwrap();
        assert!([&mut one, &mut late].into_iter().all(|log| log.windows().unwrap().turns.is_empty()));
        assert!(late.windows().unwrap().has_ended("k2") && !late.windows().unwrap().has_ended("k3"));
        for n in 0..100 {
            one.end_turn(&format!("k-{n}")).unwrap();
        }
        assert!(std::fs::metadata(dir.path().join("windows")).unwrap().len() < 3000);
        late.begin_turn(&turn("k-99", 30), &[]).unwrap();
        assert!(late.windows().unwrap().turns.is_empty());
    }

    #[test]
    fn a_restart_of_the_machine_leaves_the_beginnings_of_open_turns() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = WindowLog::in_dir(dir.path());
        log.begin_turn(&turn("k", 10), &[]).unwrap();
        log.begin(window("a", 11), &[seen(10, 11, &["x"])]).unwrap();
        let path = dir.path().join("windows");
        let text = std::fs::read_to_string(&path).unwrap().replace(&boot_id(), "another");
        std::fs::write(&path, text + "no line\n{\"event\":\"of a later version\"}\n{\"torn").unwrap();
        let mut log = WindowLog::in_dir(dir.path());
        let windows = log.windows().unwrap();
        assert_eq!((windows.turns.len(), windows.turns[0].since, windows.actions.len()), (1, 0, 0));
        assert!(windows.seen.is_empty());
    }

    #[test]
    fn a_window_names_paths_and_what_is_below_them() {
        let window = ActionWindow { named: vec!["a".into(), "x%20y/z".into()], ..window("a", 1) };
        for (path, is_named) in
            [("a", true), ("a/b", true), ("ab", false), ("x y/z/q", true), ("x y", true), ("x", false)]
        {
            assert_eq!(window.names(&RelPath::parse(path.as_bytes()).unwrap()), is_named, "{path}");
        }
    }
}
