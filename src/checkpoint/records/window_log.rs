//! The file with the turns and actions that are open in a workspace, and the changes that watchers reported meanwhile.
//!
//! All processes of a workspace append to one file `windows`: a sidecar, the hooks of other clients, the command line. The
//! end of a turn reads from it which actions were running when a path changed. Times are nanoseconds since the start of the machine.
//! The file is not synced: a power cut costs the knowledge of the turns that were open. Each line is one JSON object; a line that
//! cannot be read is passed over.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::action_window::{ActionWindow, EndedCall};
use super::append_lock::locked;
use super::process_names::is_gone;
use super::read_position::ReadPosition;
use super::windows::{Interval, OpenTurn, WindowLine, Windows};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::clock::{boot_id, is_same_boot, since_boot_ns};
use crate::sys::fs::durable::{append_private, replace_cache};

/// The length from which on the file is shortened although turns are open, in bytes.
const LONG: u64 = 4 << 20;

/// The time in nanoseconds after which an open action counts as forgotten, where that is asked.
const FORGOTTEN: i64 = 4 * 3_600_000_000_000;

/// The longest wait for a process that shortens the file.
const PATIENCE: Duration = Duration::from_millis(250);

/// Returns true if an action of a client's sessions is open in the workspace whose records are in `dir`. One that has been so for hours
/// counts as forgotten: not every client tells of each end.
pub fn has_open_action(dir: &Path, client: &str) -> bool {
    let mut log = WindowLog::in_dir(dir);
    let now = since_boot_ns();
    let of_client =
        |window: &&ActionWindow| window.actor.strip_prefix(client).is_some_and(|rest| rest.starts_with('.'));
    let is_open = |window: &ActionWindow| window.is_open() && now.saturating_sub(window.from) < FORGOTTEN;
    log.known_windows().is_ok_and(|windows| windows.actions.iter().filter(of_client).any(is_open))
}

/// The log file of one workspace, as one process has it open.
#[derive(Default)]
pub(crate) struct WindowLog {
    path: PathBuf,
    /// Opened when there is something to append.
    file: Option<File>,
    /// The place up to which the file was read.
    read: ReadPosition,
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

    /// Notes that an action of an actor has ended.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn end(&mut self, actor: &str, ended: &EndedCall, at: i64, seen: &[Interval]) -> Result<()> {
        let (actor, EndedCall { action, call }) = (actor.to_owned(), ended.clone());
        self.append(seen, &[WindowLine::End { actor, action, call, at }])
    }

    /// Notes that no end of an actor's open actions will be reported any more; `is_cut` if its client's process has ended.
    ///
    /// # Errors
    /// As [`WindowLog::begin_turn`].
    pub(crate) fn leave(&mut self, actor: &str, is_cut: bool, at: i64, seen: &[Interval]) -> Result<()> {
        self.append(seen, &[WindowLine::Leave { actor: actor.to_owned(), is_cut, at }])
    }

    /// Returns the log as it is now.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn windows(&mut self) -> Result<&Windows> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (self.read, self.windows) = (ReadPosition::default(), Windows::default());
                return Ok(&self.windows);
            }
            opened => opened.at("opening", &self.path)?,
        };
        let bytes = self.read.unread(&mut file, &self.path)?;
        if self.read.whole() == 0 {
            self.windows = Windows::default();
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let boot = boot_id();
        let (mut is_old, mut is_earlier) = (false, false);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            match serde_json::from_slice::<WindowLine>(line) {
                Ok(WindowLine::Boot { id }) => {
                    let is_same = is_same_boot(&id, &boot);
                    (is_old, is_earlier) = (is_same != Some(true), is_same == Some(false));
                }
                // After a restart of the machine nothing is known of an open turn but its beginning.
                Ok(WindowLine::Turn(turn)) if is_old => {
                    let turn = OpenTurn { since: 0, clock: None, is_of_earlier_boot: is_earlier, ..turn };
                    self.windows.add(WindowLine::Turn(turn));
                }
                Ok(WindowLine::Begin(_) | WindowLine::Seen(_)) if is_old => {}
                Ok(entry) => self.windows.add(entry),
                // A line of a later version, or one that a full disk cut.
                Err(_) => {}
            }
        }
        self.read.pass(&bytes[..whole]);
        Ok(&self.windows)
    }

    /// Returns the log as it is now, without actions at work whose process is gone.
    ///
    /// # Errors
    /// As [`WindowLog::windows`].
    pub(crate) fn known_windows(&mut self) -> Result<&Windows> {
        self.windows()?;
        self.windows.leave_unwatched(&is_gone);
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
                self.know(&mut file, (facts.dev(), facts.ino()), seen, entries, &lines);
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
    fn know(&mut self, file: &mut File, object: (u64, u64), seen: &[Interval], entries: &[WindowLine], lines: &[u8]) {
        let is_next = |end: &u64| self.read.is_at(object, end.saturating_sub(lines.len() as u64));
        if !file.stream_position().is_ok_and(|end| is_next(&end)) {
            return;
        }
        seen.iter().for_each(|interval| self.windows.add(WindowLine::Seen(interval.into())));
        entries.iter().for_each(|entry| self.windows.add(entry.clone()));
        self.read.pass(lines);
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
    use crate::checkpoint::records::windows::sample_turn as turn;
    use crate::model::change::{Changes, Dirty, Reach};
    use crate::model::path::RelPath;

    fn window(action: &str, from: i64) -> ActionWindow {
        let (actor, action) = ("r".into(), Some(action.to_owned()));
        ActionWindow { actor, action, named: vec!["a".into()], from, ..ActionWindow::default() }
    }

    fn ended(action: &str) -> EndedCall {
        EndedCall { action: Some(action.into()), call: None }
    }

    fn seen(from: i64, to: i64, paths: &[&str]) -> Interval {
        let entry = |path: &&str| (RelPath::parse(path.as_bytes()).unwrap(), Reach::Entry);
        let changes = Changes::Paths(Dirty::new(paths.iter().map(entry)));
        Interval { by: "p".into(), since: 0, from, to, changes, head_moved: false }
    }

    #[test]
    fn a_shortened_log_of_the_same_inode_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("windows");
        let mut log = WindowLog::in_dir(dir.path());
        log.begin_turn(&turn("k1", 10), &[]).unwrap();
        assert_eq!(log.windows().unwrap().turns.len(), 1);
        // Written in place, as a new file that has the inode of the old one.
        let text = std::fs::read_to_string(&path).unwrap().replace("k1", "k2");
        let line = text.lines().last().unwrap().replace("k2", "k3");
        std::fs::write(&path, format!("{text}{line}\n")).unwrap();
        let keys: Vec<&str> = log.windows().unwrap().turns.iter().map(|turn| turn.key.as_str()).collect();
        assert_eq!(keys, ["k2", "k3"]);
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
        one.end("r", &ended("a1"), 15, &[seen(11, 15, &["a/b", "\u{e9}"])]).unwrap();
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
        other.leave("r", false, 30, &[]).unwrap();
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
}
