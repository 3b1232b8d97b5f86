//! The processes of this machine, as far as their users and the system tell of them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

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
    /// Its working directory. It is looked up by [`Processes::with_dirs`] alone.
    pub dir: Option<PathBuf>,
}

/// The processes at one moment.
pub struct Processes(System);

impl Processes {
    /// Looks at all processes; `None` where the system tells nothing.
    pub fn now() -> Option<Processes> {
        let mut system = System::new().ok()?;
        let wanted = ProcessRefreshKind::nothing().without_tasks().with_cmd(UpdateKind::Always);
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, wanted.with_exe(UpdateKind::Always));
        Some(Processes(system))
    }

    /// Returns all processes that were called with words; threads of the system are not.
    pub fn all(&self) -> impl Iterator<Item = RunningProcess> {
        let with_words = self.0.processes().values().filter(|process| !process.cmd().is_empty());
        with_words.map(process)
    }

    /// Returns the processes of these numbers, with their working directories where those may be seen.
    pub fn with_dirs(&mut self, pids: &BTreeSet<u32>) -> Vec<RunningProcess> {
        let pids: Vec<Pid> = pids.iter().map(|pid| Pid::from_u32(*pid)).collect();
        let wanted = ProcessRefreshKind::nothing().without_tasks().with_cwd(UpdateKind::Always);
        self.0.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, wanted);
        pids.iter().filter_map(|pid| self.0.process(*pid)).map(process).collect()
    }
}

fn process(process: &sysinfo::Process) -> RunningProcess {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    RunningProcess {
        pid: process.pid().as_u32(),
        parent: process.parent().map(Pid::as_u32),
        started: i64::try_from(process.start_time()).unwrap_or_default().saturating_mul(1000),
        words: process.cmd().iter().map(text).collect(),
        program: process.exe().map(Path::to_owned),
        dir: process.cwd().map(Path::to_owned),
    }
}

impl RunningProcess {
    /// Returns the name by which it was called, without its directory.
    pub fn name(&self) -> &str {
        self.words.first().map(|word| file_name(word)).unwrap_or_default()
    }
}

/// Returns the last part of a path as text; the whole of what is none.
pub fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(OsStr::to_str).unwrap_or(path)
}

#[cfg(test)]
mod tests {
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
        command.arg0("a-client").arg("-").current_dir(&here).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut processes = Processes::now().unwrap();
        assert!(processes.all().any(|process| process.pid == child.id() && process.name() == "a-client"));
        let found = processes.with_dirs(&BTreeSet::from([child.id()])).remove(0);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((found.parent, found.dir), (Some(std::process::id()), Some(here)));
        assert_eq!(found.words, ["a-client", "-"]);
        assert!(found.program.is_some_and(|program| program.is_absolute()));
        // The system counts the start in whole seconds, from a start of its own that is rounded too.
        assert!((began - 3000..=now_ms() + 2000).contains(&found.started), "{} {began}", found.started);
    }
}
