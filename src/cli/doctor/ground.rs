//! The ground of everything else: piton's own directories, the disk, the kernel's limits on watchers.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::report::{DoctorReport, Surroundings, quoted_path};
use crate::checkpoint::Timeline;
use crate::model::manifest::EntryKind;
use crate::sys::fs::space::DiskSpace;
use crate::sys::{inotify, mount, process};
use crate::watch::limits::Limits;

/// Looks at directories, disk and limits.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let home = at.context.home.path();
    if private(home, 0o700, "home", report) {
        report.well("home", home.to_string_lossy());
    }
    disk(home, report);
    watches(at, report);
}

/// Returns whether a file or directory of piton's is this user's alone; says so if it is not. A missing one is no
/// finding.
pub(super) fn private(path: &Path, mode: u32, about: &str, report: &mut DoctorReport) -> bool {
    let Ok(facts) = path.symlink_metadata() else { return true };
    if facts.uid() != process::user() {
        let text = format!("{} belongs to the user {}, not to you", path.display(), facts.uid());
        report.open(
            about,
            text,
            "as root, make yourself its owner again (`chown`), or set PITON_HOME to another directory",
        );
        return false;
    }
    let bits = facts.permissions().mode() & 0o777;
    if bits & 0o077 != 0 || bits & mode != mode {
        let text = format!("{} has mode {bits:o}, but must have {mode:o}", path.display());
        report.wrong(about, text, format!("chmod {mode:o} {}", quoted_path(path)));
        return false;
    }
    true
}

fn disk(home: &Path, report: &mut DoctorReport) {
    match DiskSpace::at(home).and_then(|room| room.require_floor(home).map(|()| room)) {
        Ok(room) => report.well("disk", format!("{:.1} GB are free", room.free as f64 / 1e9)),
        Err(error) => report.open("disk", error.text(), "free some disk space; until then piton saves no new content"),
    }
}

fn watches(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let directories = directories(at);
    if let Some(root) = &at.root
        && let Ok(Some(name)) = mount::foreign(root)
    {
        report.note("watcher", format!("piton cannot see every change on {name}, so each checkpoint scans all files"));
        return;
    }
    let short = Limits::read(Path::new(inotify::LIMITS)).short(directories.unwrap_or(0));
    for limit in &short {
        let text = format!("{} is {}: {}", limit.key, limit.is, limit.why);
        let command = format!("sudo sysctl -w {}={}", limit.key, limit.wanted);
        report.wrong("watcher", text, command);
    }
    if short.is_empty() {
        let needs = directories.map_or_else(String::new, |number| {
            format!(
                " for this workspace's {}",
                if number == 1 { "directory".to_owned() } else { format!("{number} directories") }
            )
        });
        report.well("watcher", format!("the kernel allows enough watches{needs}"));
    }
}

/// Directories of the workspace, as the newest checkpoint has them.
fn directories(at: &Surroundings<'_>) -> Option<u64> {
    let context = at.context;
    // Other checks report errors of these.
    let workspace = context.known_workspace().ok()??;
    let policy = context.settings().ok()?.policy;
    if super::store::waits(&context.home) {
        return None;
    }
    let timeline = Timeline::open(&context.home, workspace, policy).ok()?;
    let all = timeline.catalog().all().ok()?;
    let (manifest, _) = timeline.catalog().contents(all.checkpoints.last()?).ok()?;
    Some(1 + manifest.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir).count() as u64)
}
