//! The daemon: its directory, its socket, who answers there.

use std::path::Path;

use super::ground::private;
use super::report::{DoctorReport, Surroundings, quoted_path};
use crate::doors::socket::{Probe, dir, probe};
use crate::sys::fs::lock::holder;
use crate::sys::process;

/// Looks at the daemon.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let home = &at.context.home;
    let dir = dir(home);
    match dir.symlink_metadata() {
        Err(_) => return report.note("daemon", "none has been started yet; the first hook starts one"),
        Ok(facts) if !facts.is_dir() => {
            let text = format!("{} is not a directory, so no daemon can run and hooks are slower", dir.display());
            return report.wrong("daemon", text, format!("rm {}", quoted_path(&dir)));
        }
        Ok(_) => {}
    }
    if !private(&dir, 0o700, "daemon", report) || !private(&dir.join("socket"), 0o600, "daemon", report) {
        return;
    }
    match probe(home) {
        Err(error) => report.open("daemon", error.text(), "fix what the message reports"),
        Ok(Probe::Nobody) => report.note("daemon", "none is running; the next hook starts one"),
        Ok(Probe::Dead) => {
            report.wrong("daemon", "it was killed and left its socket file", "piton daemon start");
        }
        Ok(Probe::Silent) => silent(&dir, report),
        Ok(Probe::Foreign(user)) => {
            let text = format!("a process of user {user} answers at your daemon's socket, so hooks do not use it");
            report.wrong("daemon", text, format!("rm {}", quoted_path(&dir.join("socket"))));
        }
        Ok(Probe::Daemon(greeting)) if greeting.build != process::build() => {
            let text = format!("the daemon (pid {}) is a different build of piton than this program", greeting.pid);
            report.wrong("daemon", text, "piton daemon stop");
        }
        Ok(Probe::Daemon(greeting)) => report.well("daemon", format!("it is running (pid {})", greeting.pid)),
    }
}

fn silent(dir: &Path, report: &mut DoctorReport) {
    let by = holder(&dir.join("lock"));
    let by = if by.is_empty() { "no known process".to_owned() } else { by };
    let text = format!(
        "the process at the daemon's socket does not answer ({by}), so hooks run without a daemon and are slower"
    );
    report.open("daemon", text, "end that process; the next hook starts a new daemon");
}
