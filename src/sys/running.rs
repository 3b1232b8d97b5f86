//! The processes of this machine, as far as their users and the system tell of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::processes;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    /// Its number.
    pub pid: u32,
    /// The number of the process that has started it.
    pub parent: Option<u32>,
    /// The time of its start, in milliseconds since the epoch; only whole seconds are known.
    pub started: i64,
    /// The words it was called with.
    pub words: Vec<String>,
    /// The file of its program.
    pub program: Option<PathBuf>,
    /// Its working directory, where that may be seen.
    pub dir: Option<PathBuf>,
}

/// Returns the processes that are `wanted` by their words and the file of their program; threads of the system are not. There may be
/// hundreds: of all but the wanted ones, nothing else is read.
pub fn find(wanted: &dyn Fn(&[String], Option<&Path>) -> bool) -> Vec<RunningProcess> {
    let called = |pid: u32| {
        let words = processes::words(pid);
        let program = if words.is_empty() { None } else { processes::program(pid) };
        (!words.is_empty() && wanted(&words, program.as_deref())).then_some((Pid::from_u32(pid), (words, program)))
    };
    let mut found: BTreeMap<Pid, (Vec<String>, Option<PathBuf>)> = processes::numbers().filter_map(called).collect();
    let Ok(mut system) = System::new() else { return Vec::new() };
    let pids: Vec<Pid> = found.keys().copied().collect();
    let facts = ProcessRefreshKind::nothing().without_tasks().with_cwd(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, facts);
    let running = |pid: &Pid| {
        let ((words, program), process) = (found.remove(pid)?, system.process(*pid)?);
        Some(RunningProcess {
            pid: pid.as_u32(),
            parent: process.parent().map(Pid::as_u32),
            started: i64::try_from(process.start_time()).unwrap_or_default().saturating_mul(1000),
            words,
            program,
            dir: process.cwd().map(Path::to_owned),
        })
    };
    pids.iter().filter_map(running).collect()
}

/// Returns the last part of a path as text; the whole of what is none.
pub fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(OsStr::to_str).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::sys::clock::now_ms;

    #[test]
    fn a_process_is_found_with_its_words_parent_time_and_directory() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().canonicalize().unwrap();
        let began = now_ms();
        let mut command = Command::new("cat");
        command.arg0("a-client").arg("-").current_dir(&here).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Its words are there a moment after the program has begun.
        child.stdin.as_ref().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let wanted = |words: &[String], program: Option<&Path>| {
            program.is_some_and(Path::is_absolute) && words.first().is_some_and(|name| name == "a-client")
        };
        let found = find(&wanted).into_iter().find(|process| process.pid == child.id()).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((found.parent, found.dir), (Some(std::process::id()), Some(here)));
        assert_eq!(found.words, ["a-client", "-"]);
        assert!(found.program.is_some_and(|program| program.is_absolute()));
        // The system counts the start in whole seconds, from a start of its own that is rounded too.
        assert!((began - 3000..=now_ms() + 2000).contains(&found.started), "{} {began}", found.started);
    }
}
