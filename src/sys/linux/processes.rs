//! Other processes: their parents, their words, and an identity that a later process with the same number does not have.

use std::ffi::{OsStr, OsString};
use std::fs::{read, read_dir, read_link};
use std::ops::RangeInclusive;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

use super::clock::{boot_id, is_same_boot};
use crate::sys::pipe::is_ready;

/// The identity of a process. Numbers are used again, so the moment of its start belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The number of the process.
    pub pid: u32,
    /// The moment at which it started, in ticks since the start of the machine.
    started: u64,
    /// The start of the machine.
    boot: String,
    /// The name of the space in which the number counts: a container has one of its own.
    space: String,
}

/// The text around the number in the kernel's name of a space of process numbers.
const SPACE: (&str, &str) = ("pid:[", "]");

/// The name of the initial PID namespace: `PROC_PID_INIT_INO` of the kernel.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The resolution of process start times in `/proc`, in nanoseconds: 10 ms on every architecture.
const TICK: i64 = 10_000_000;

/// The facts of a process that the kernel lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// The number of its parent; 0 for a process without one.
    pub parent: u32,
    /// The words of its command line; its name alone where it has none.
    pub words: Vec<String>,
}

impl ProcessId {
    /// Returns the identity of the process that has a number now; `None` if there is none, or it has ended.
    pub fn of(pid: u32) -> Option<ProcessId> {
        let stat = KernelLine::of(pid).filter(|stat| !stat.has_ended)?;
        Some(ProcessId { pid, started: stat.started, boot: boot_id(), space: space() })
    }

    /// Returns the range in which the process started, in nanoseconds since boot. The kernel rounds start times down to 10 ms.
    pub fn started_between(&self) -> RangeInclusive<i64> {
        let started = i64::try_from(self.started).unwrap_or(i64::MAX).saturating_mul(TICK);
        started..=started.saturating_add(TICK)
    }

    /// Waits until the process has ended; `false` if it has not after `limit`, or cannot be waited for.
    pub fn await_end(&self, limit: Duration) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // Opened before the look: a process of the same number that comes later is another one.
        let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let until = Instant::now() + limit;
        while self.is_alive() == Some(true) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || handle.as_ref().is_none_or(|handle| is_ready(handle, left).is_err()) {
                return false;
            }
        }
        true
    }

    /// Returns a name that no other process has: of no other container, and of no other start of the machine.
    pub fn key(&self) -> String {
        let space = self.space.trim_start_matches(SPACE.0).trim_end_matches(SPACE.1);
        // The first part of the kernel's id is enough.
        let boot = self.boot.split('-').next().unwrap_or_default();
        format!("{}-{}-{space}-{boot}", self.pid, self.started)
    }

    /// Returns the process of a name that [`ProcessId::key`] made; `None` for any other text.
    pub fn of_key(key: &str) -> Option<ProcessId> {
        let mut parts = key.splitn(4, '-');
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (space, boot) = (parts.next()?, parts.next()?.to_owned());
        let space = if space.is_empty() { String::new() } else { format!("{}{space}{}", SPACE.0, SPACE.1) };
        Some(ProcessId { pid, started, boot, space })
    }

    /// Returns true if the process still runs; `None` where that is unknown, as of a process that may run in another container. Its
    /// number means nothing here.
    pub fn is_alive(&self) -> Option<bool> {
        if is_same_boot(&self.boot, &boot_id()) == Some(false) {
            return Some(false);
        }
        if self.space != space() {
            return self.has_ended_elsewhere();
        }
        match KernelLine::of(self.pid) {
            Some(stat) => Some(stat.started == self.started && !stat.has_ended),
            // A process of another user may be hidden.
            None => (!crate::sys::process::exists(self.pid)).then_some(false),
        }
    }

    /// Returns `Some(false)` if a process of another PID namespace has ended, and `None` if it may run. The processes of a namespace
    /// also have numbers in the namespaces around it, and are listed there; so only the initial one sees that a process is gone.
    fn has_ended_elsewhere(&self) -> Option<bool> {
        // The first process is hidden where others are.
        let is_all_listed = || !namespace_numbers(std::process::id()).is_empty() && KernelLine::of(1).is_some();
        if self.space.is_empty() || space() != INITIAL_PID_NAMESPACE || !is_all_listed() {
            return None;
        }
        let may_be_it = |pid: u32| {
            let numbers = namespace_numbers(pid);
            // A process with only one number is in this namespace.
            let has_number = numbers.len() > 1 && numbers.last() == Some(&self.pid);
            let has_number = has_number && KernelLine::of(pid).is_some_and(|stat| !stat.has_ended);
            // The namespace of another user's process may be hidden.
            has_number && [self.space.as_str(), ""].contains(&space_of(&pid.to_string()).as_str())
        };
        (!numbers().any(may_be_it)).then_some(false)
    }
}

/// Returns the facts of a process; `None` if there is none, or it cannot be looked at.
pub fn facts(pid: u32) -> Option<ProcessFacts> {
    let stat = KernelLine::of(pid)?;
    let mut words = words(pid);
    if words.is_empty() {
        words.push(stat.name);
    }
    Some(ProcessFacts { parent: stat.parent, words })
}

/// Returns the leader of a process's session, which may have ended; `None` if there is no such process, or if the leader is outside of
/// this container and has no number here.
pub fn session_leader(pid: u32) -> Option<u32> {
    KernelLine::of(pid).map(|stat| stat.session).filter(|leader| *leader != 0)
}

/// Returns the numbers of the processes above one, the nearest first and at most `most`. The last may be the first process of a
/// container, which can be a client.
pub fn above(pid: u32, most: usize) -> Vec<u32> {
    let mut pids: Vec<u32> = Vec::new();
    let mut at = pid;
    while pids.len() < most {
        match KernelLine::of(at).map(|line| line.parent).filter(|parent| *parent > 0 && !pids.contains(parent)) {
            Some(parent) => at = parent,
            None => break,
        }
        pids.push(at);
    }
    pids
}

/// Returns the working directory of a process; `None` where it cannot be told.
pub fn directory(pid: u32) -> Option<PathBuf> {
    read_link(place(pid, "cwd")).ok()
}

/// Returns a variable of the environment with which a process was started.
pub fn variable(pid: u32, name: &str) -> Option<OsString> {
    let all = read(place(pid, "environ")).ok()?;
    let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_owned());
    all.split(|byte| *byte == 0).find_map(value).map(OsString::from_vec)
}

/// Returns the numbers of all processes that the system shows to this one.
pub fn numbers() -> impl Iterator<Item = u32> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the words that a process was called with; none for a thread of the system, and where there is no such process.
pub fn words(pid: u32) -> Vec<String> {
    words_of(&read(place(pid, "cmdline")).unwrap_or_default())
}

/// Reads the words of a `cmdline`. Empty ones count (`git -C "" reset`), except at the end: a process that writes a title over its words
/// leaves zeros there.
fn words_of(line: &[u8]) -> Vec<String> {
    let end = line.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    let words = line[..end].split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    if end == 0 { Vec::new() } else { words.collect() }
}

/// Returns the file of a process's program, also of one that was removed or replaced since; `None` where it may not be seen.
pub fn program(pid: u32) -> Option<PathBuf> {
    let path = read_link(place(pid, "exe")).ok()?;
    let known =
        path.as_os_str().as_bytes().strip_suffix(b" (deleted)").map(|path| PathBuf::from(OsStr::from_bytes(path)));
    Some(known.unwrap_or(path))
}

fn place(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// Returns the name of the space of this process's number; empty where the kernel does not tell.
fn space() -> String {
    space_of("self")
}

/// Returns the name of the space of the number of a process in `/proc`; empty where it may not be seen.
fn space_of(process: &str) -> String {
    read_link(format!("/proc/{process}/ns/pid")).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the numbers that a process has in this PID namespace and in those inside it that it is in, the innermost last; none if the
/// kernel does not report them.
fn namespace_numbers(pid: u32) -> Vec<u32> {
    let status = read(place(pid, "status")).unwrap_or_default();
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"));
    let words = line.and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default().split_ascii_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The fields of `/proc/PID/stat` that matter.
#[derive(Debug, PartialEq, Eq)]
struct KernelLine {
    name: String,
    has_ended: bool,
    parent: u32,
    session: u32,
    started: u64,
}

impl KernelLine {
    fn of(pid: u32) -> Option<KernelLine> {
        KernelLine::parse(&String::from_utf8_lossy(&read(place(pid, "stat")).ok()?))
    }

    /// Reads the line. The name stands in brackets, and may hold blanks and brackets of its own.
    fn parse(line: &str) -> Option<KernelLine> {
        let (head, rest) = line.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let mut fields = rest.split_ascii_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        // The 6th and the 22nd field of the line; the next one here is the fifth.
        let session = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(KernelLine { name, has_ended, parent, session, started })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn empty_words_count_but_for_those_at_the_end() {
        for (line, expected) in [
            ("git\0-C\0\0reset\0--hard\0", &["git", "-C", "", "reset", "--hard"][..]),
            ("node title\0\0\0\0", &["node title"]),
            ("", &[]),
            ("\0\0", &[]),
        ] {
            assert_eq!(words_of(line.as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let tail = "7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 10 20";
        for (name, state, has_ended) in [("sh", 'S', false), ("a) Z (b", 'R', false), ("node", 'Z', true)] {
            let stat = KernelLine::parse(&format!("42 ({name}) {state} 41 {tail}")).unwrap();
            assert_eq!(stat, KernelLine { name: name.to_owned(), has_ended, parent: 41, session: 7, started: 98765 });
        }
        for odd in ["", "42 (sh", "42 (sh) S", "42 (sh) S x", "42 (sh) S 41 7 7"] {
            assert_eq!(KernelLine::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_process_is_alive_until_it_ends_and_no_other_one_is_taken_for_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        assert_eq!(id.is_alive(), Some(true));
        let facts = facts(child.id()).unwrap();
        assert_eq!(facts.parent, std::process::id());
        let other = ProcessId { started: id.started + 1, ..id.clone() };
        assert_eq!(other.is_alive(), Some(false), "the number was used again");
        assert_eq!(ProcessId { boot: "another one".to_owned(), ..id.clone() }.is_alive(), Some(false));
        let unseen = (space() == INITIAL_PID_NAMESPACE).then_some(false);
        assert_eq!(
            ProcessId { space: "x".to_owned(), ..id.clone() }.is_alive(),
            unseen,
            "only the initial namespace sees all"
        );
        assert_eq!(ProcessId { space: String::new(), ..id.clone() }.is_alive(), None, "the space is unknown");
        assert_eq!(ProcessId { boot: String::new(), ..id.clone() }.is_alive(), Some(true), "the start is the same");
        let named = ProcessId::of_key(&id.key()).unwrap();
        assert_eq!((named.is_alive(), named.key()), (Some(true), id.key()));
        let elsewhere = ProcessId { space: "pid:[7]".to_owned(), ..id.clone() };
        assert_eq!(ProcessId::of_key(&elsewhere.key()).unwrap().is_alive(), unseen, "another container");
        let earlier = ProcessId { boot: "00000000-0000".to_owned(), ..id.clone() };
        assert_eq!(ProcessId::of_key(&earlier.key()).unwrap().is_alive(), Some(false), "before a restart");
        assert!(["", "12", "12-3", "12-3-4", "x-3-4-5"].iter().all(|text| ProcessId::of_key(text).is_none()));
        child.kill().unwrap();
        // It becomes a zombie: nobody has waited for it yet.
        let until = Instant::now() + Duration::from_mins(1);
        while id.is_alive() == Some(true) && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(id.is_alive(), Some(false));
        child.wait().unwrap();
        assert_eq!(id.is_alive(), Some(false));
        assert_eq!(ProcessId::of(id.pid).filter(|now| *now == id), None);
    }

    #[test]
    fn the_end_of_a_process_in_another_namespace_is_seen_from_the_initial_one() {
        // The first process of a namespace prints its identity as it is there, and ends with its input.
        let script = r#"set -- $(cat /proc/$$/stat); echo "$$ ${22} $(readlink /proc/self/ns/pid)"; read -r _"#;
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", script]);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = spawned else {
            assert!(std::env::var_os("CI").is_none(), "unshare is missing");
            eprintln!("SKIPPED: unshare is missing");
            return;
        };
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [pid, started, space] = words[..] else {
            eprintln!("SKIPPED: this user cannot make a PID namespace");
            return;
        };
        let (pid, started) = (pid.parse().unwrap(), started.parse().unwrap());
        let id = ProcessId { pid, started, boot: boot_id(), space: space.to_owned() };
        assert_eq!((id.pid, id.is_alive()), (1, None), "it may run, and its number means nothing here");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(id.is_alive(), (self::space() == INITIAL_PID_NAMESPACE).then_some(false));
    }
}
