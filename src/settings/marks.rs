//! Marks that show an edit of the settings' files. They hold a few facts from the file system, for a few calls in all.

use std::io::ErrorKind;
use std::path::Path;

use super::{WORKSPACE_FILE, trust, user_file};
use crate::model::stamp::times_prove;
use crate::sys::clock::file_clock;
use crate::sys::fs::mark::FileMark;

/// The files as they were at one time. To be taken before they are read, so that what changes meanwhile is noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsMarks {
    at: i64,
    files: [FoundFile; 3],
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FoundFile {
    No,
    Unreadable(ErrorKind),
    File(FileMark),
}

impl SettingsMarks {
    /// As they are now.
    pub fn of(workspace: &Path, home: &Path) -> SettingsMarks {
        // Before they are looked at: what is written later must not seem older.
        let at = file_clock();
        let files = [user_file().unwrap_or_default(), workspace.join(WORKSPACE_FILE), trust::place(home)];
        SettingsMarks { at, files: files.map(|path| found(&path)) }
    }

    /// Returns whether `now` proves that what was read then would be read now. A file that was written just before it
    /// was read may have been written again without a trace.
    pub fn stand(&self, now: &SettingsMarks) -> bool {
        let proven = |file: &FoundFile| match file {
            FoundFile::File(mark) => times_prove(mark.mtime, mark.ctime, self.at),
            FoundFile::No | FoundFile::Unreadable(_) => true,
        };
        self.files == now.files && self.files.iter().all(proven)
    }
}

/// Behind links, as settings are read; that the workspace's own file may be none does not hide what it leads to.
fn found(path: &Path) -> FoundFile {
    match path.metadata() {
        Ok(facts) => FoundFile::File(FileMark::from(&facts)),
        Err(error) if error.kind() == ErrorKind::NotFound => FoundFile::No,
        Err(error) => FoundFile::Unreadable(error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_noticed_and_a_fresh_file_is_read_once_more() {
        let dir = tempfile::tempdir().unwrap();
        let marks = || SettingsMarks::of(dir.path(), &dir.path().join("home"));
        let none = marks();
        assert!(none.stand(&marks()));
        let file = dir.path().join(WORKSPACE_FILE);
        std::fs::write(&file, "guard: turn\n").unwrap();
        assert!(!none.stand(&marks()), "it came");
        grow_old(&file);
        let known = marks();
        assert!(known.stand(&marks()), "nothing moved since");
        std::fs::write(&file, "guard: on\n\n\n").unwrap();
        let fresh = marks();
        assert!(!known.stand(&fresh), "it was written, with the same length");
        // Written in the very moment in which it was read: not trusted yet.
        assert!(!SettingsMarks { at: fresh.at - 1_000_000_000, ..fresh.clone() }.stand(&marks()));
        std::fs::remove_file(&file).unwrap();
        assert!(!fresh.stand(&marks()), "it went");
    }

    /// Waits until the file is older than its clock's step.
    fn grow_old(file: &Path) {
        loop {
            let FoundFile::File(mark) = found(file) else { panic!("it is gone") };
            if times_prove(mark.mtime, mark.ctime, file_clock()) {
                return;
            }
            std::thread::yield_now();
        }
    }
}
