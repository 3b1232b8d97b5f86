//! The doors through which clients have told of events in a workspace: for each client and kind of door one small file.
//!
//! The file's time is that of the last event, to the second, so that an event costs one call and waits for no disk. The file
//! is open and its lock shared as long as a client's connection lasts, so others see that the door is at work. A power cut may
//! lose the last time; it is news again with the next event.

use std::fs::{File, FileTimes};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{IoContext, Result};
use crate::model::door::Door;
use crate::model::run::run_id;
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::{create_private_dir, open_private};
use crate::sys::share::{is_shared, share};

/// The directory of the files, among the records of a workspace.
const DIR: &str = "doors";

/// The most files of one workspace. Clients may call themselves by any name.
const MOST: usize = 64;

/// The longest file that is read.
const LONGEST: u64 = 4096;

/// The time in milliseconds within which further events of a connection are not noted.
const SOON: i64 = 1000;

/// A door, as its file names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DoorName {
    door: Door,
    client: Option<String>,
}

/// A door that a connection goes through; it is at work as long as the value lives.
pub struct DoorMark {
    file: File,
    noted: Option<i64>,
}

impl DoorMark {
    /// Opens the mark of a door, among the workspace's records in `dir`.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn open(dir: &Path, door: Door, client: Option<&str>) -> Result<DoorMark> {
        let doors = dir.join(DIR);
        let path = doors.join(format!("{}.{}", door.as_str(), run_id(client.unwrap_or_default())));
        let opened = open_private(&path).or_else(|error| {
            if error.kind() == ErrorKind::NotFound {
                create_private_dir(&doors).map_err(std::io::Error::other)?;
                return open_private(&path);
            }
            Err(error)
        });
        let mut file = opened.at("opening the mark of an integration", &path)?;
        let name = DoorName { door, client: client.map(str::to_owned) };
        if read(&mut file) != Some(name.clone()) {
            make_room(&doors);
            let text = serde_json::to_vec(&name).unwrap_or_default();
            let written = file.rewind().and_then(|()| file.set_len(0)).and_then(|()| file.write_all(&text));
            if written.is_err() {
                // On a full disk an empty file is left, which names no door.
                let _ = std::fs::remove_file(&path);
            }
            written.at("writing the mark of an integration", &path)?;
        }
        share(&file).at("setting the mark of an integration", &path)?;
        Ok(DoorMark { file, noted: None })
    }

    /// Returns true if an event was noted a moment ago.
    pub fn is_fresh(&self) -> bool {
        self.noted.is_some_and(|noted| (0..SOON).contains(&now_ms().saturating_sub(noted)))
    }

    /// Notes an event, now.
    ///
    /// # Errors
    /// `permission`.
    pub fn note(&mut self) -> std::io::Result<()> {
        if self.is_fresh() {
            return Ok(());
        }
        let now = now_ms();
        let time = UNIX_EPOCH + Duration::from_millis(now.unsigned_abs());
        self.file.set_times(FileTimes::new().set_modified(time))?;
        self.noted = Some(now);
        Ok(())
    }
}

/// A door through which events have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDoor {
    /// The kind of door.
    pub door: Door,
    /// The name by which the client calls itself.
    pub client: Option<String>,
    /// The time of its last event, in milliseconds since the epoch.
    pub last: i64,
    /// True if a connection through it is open.
    pub is_at_work: bool,
}

/// Returns the doors through which events have come to the workspace whose records are in `dir`, the last one first. Marks
/// that cannot be read are passed over.
pub fn seen(dir: &Path) -> Vec<SeenDoor> {
    let mut found: Vec<SeenDoor> = listed(&dir.join(DIR)).into_iter().filter_map(|(path, _)| look(&path)).collect();
    found.sort_by(|one, other| other.last.cmp(&one.last).then_with(|| one.client.cmp(&other.client)));
    found
}

fn look(path: &Path) -> Option<SeenDoor> {
    let mut file = File::open(path).ok()?;
    let DoorName { door, client } = read(&mut file)?;
    let last = file.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let is_at_work = is_shared(&file).unwrap_or(false);
    Some(SeenDoor { door, client, last: i64::try_from(last.as_millis()).ok()?, is_at_work })
}

fn read(file: &mut File) -> Option<DoorName> {
    let mut text = Vec::new();
    Read::take(file, LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn listed(doors: &Path) -> Vec<(PathBuf, SystemTime)> {
    let entries = std::fs::read_dir(doors).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.modified().ok()?))).collect()
}

/// Removes the marks of the oldest events where there are too many.
fn make_room(doors: &Path) {
    let mut all = listed(doors);
    all.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    for (path, _) in all.iter().skip(MOST) {
        // Another process may have removed it; a mark too many does no harm.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_of_each_door_is_known() {
        let dir = tempfile::tempdir().unwrap();
        assert!(seen(dir.path()).is_empty());
        let before = now_ms();
        let mut hook = DoorMark::open(dir.path(), Door::Hook, Some("claude-code")).unwrap();
        hook.note().unwrap();
        let mut sidecar = DoorMark::open(dir.path(), Door::Sidecar, Some("My / Harness")).unwrap();
        sidecar.note().unwrap();
        let nameless = DoorMark::open(dir.path(), Door::Sidecar, None).unwrap();
        let all = seen(dir.path());
        let of = |door: Door, client: Option<&str>| {
            all.iter().find(|one| one.door == door && one.client.as_deref() == client).unwrap().clone()
        };
        for (door, client) in
            [(Door::Hook, Some("claude-code")), (Door::Sidecar, Some("My / Harness")), (Door::Sidecar, None)]
        {
            let found = of(door, client);
            assert!(found.is_at_work && (before..=now_ms()).contains(&found.last), "{found:?} since {before}");
        }
        drop((hook, nameless));
        // A process that another test is starting holds a copy of a lock until its `exec`.
        let until = std::time::Instant::now() + Duration::from_mins(1);
        while seen(dir.path()).iter().filter(|one| one.is_at_work).count() > 1 && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let left: Vec<_> = seen(dir.path()).into_iter().filter(|one| one.is_at_work).map(|one| one.client).collect();
        assert_eq!((seen(dir.path()).len(), left), (3, vec![Some("My / Harness".to_owned())]));
    }

    #[test]
    fn an_event_moves_the_time_and_a_damaged_mark_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut hook = DoorMark::open(dir.path(), Door::Hook, Some("codex")).unwrap();
        let old = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(7));
        hook.file.set_times(old).unwrap();
        assert_eq!(seen(dir.path())[0].last, 7000);
        hook.note().unwrap();
        assert!(seen(dir.path())[0].last > 7000);
        // Within a second, it is not noted again.
        hook.file.set_times(old).unwrap();
        hook.note().unwrap();
        assert_eq!(seen(dir.path())[0].last, 7000);
        std::fs::write(dir.path().join(DIR).join("hook.codex"), "{").unwrap();
        assert!(seen(dir.path()).is_empty());
        DoorMark::open(dir.path(), Door::Hook, Some("codex")).unwrap().note().unwrap();
        assert_eq!(seen(dir.path()).len(), 1);
        for n in 0..MOST + 9 {
            DoorMark::open(dir.path(), Door::Sidecar, Some(&format!("c{n}"))).unwrap().note().unwrap();
        }
        assert!(seen(dir.path()).len() <= MOST + 1, "{}", seen(dir.path()).len());
    }
}
