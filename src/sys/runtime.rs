//! The user's runtime directory: small files that need not outlive the login, in most systems in memory and so on another
//! file system than the store.
//!
//! The places are `$XDG_RUNTIME_DIR/piton`, `/run/user/UID/piton` and `/tmp/piton-UID/piton`. A reader looks into all of them,
//! because two processes of one user may have different variables. *Invariant:* nothing is read or written in a directory that
//! another user owns or may write to.

use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::process::user;

/// The name of piton's own directory there.
const NAME: &str = "piton";

/// Returns the directory for users of a system without a runtime directory.
fn fallback() -> PathBuf {
    PathBuf::from(format!("/tmp/piton-{}", user()))
}

fn bases() -> Vec<PathBuf> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let usual = PathBuf::from(format!("/run/user/{}", user()));
    let mut bases: Vec<PathBuf> = named.into_iter().chain([usual, fallback()]).collect();
    bases.dedup();
    bases
}

/// Returns true for a directory, and no link to one, that is this user's alone to write in.
fn is_own(dir: &Path) -> bool {
    let is_private = |facts: Metadata| facts.is_dir() && facts.uid() == user() && facts.mode() & 0o022 == 0;
    dir.symlink_metadata().is_ok_and(is_private)
}

/// Returns piton's own directories that exist.
pub fn existing() -> impl Iterator<Item = PathBuf> {
    // The last look needs no second one where there is no directory at all, which is the usual case.
    bases().into_iter().filter_map(|base| {
        let dir = base.join(NAME);
        (is_own(&dir) && is_own(&base)).then_some(dir)
    })
}

/// Returns piton's own directories that can be used, the first choice first; each is made where it is missing.
pub fn usable() -> impl Iterator<Item = PathBuf> {
    bases().into_iter().filter_map(|base| {
        let dir = base.join(NAME);
        let make = |dir: &Path| DirBuilder::new().mode(0o700).create(dir);
        // A directory that cannot be made is not there afterwards, and is passed over.
        if base == fallback() {
            let _ = make(&base); // `is_own` looks next
        }
        if is_own(&base) {
            let _ = make(&dir); // `is_own` looks next
        }
        (is_own(&base) && is_own(&dir)).then_some(dir)
    })
}

/// The text of [`note_for_sh`]. `$(pwd)` and not `$PWD`, since some clients replace variables in their settings by bare text.
const NOTE: &str = "for d in ${XDG_RUNTIME_DIR:+\"$XDG_RUNTIME_DIR\"} /tmp/piton-$(id -u); do \
                    f=\"$d/piton/unstarted.$(pwd | cksum | tr \" \" -)\"; mkdir -m 700 \"$d\" \"$d/piton\"; \
                    [ -O \"$d\" ] && [ ! -L \"$d\" ] && [ -O \"$d/piton\" ] && [ ! -L \"$d/piton\" ] && \
                    { [ $(wc -c <\"$f\" || echo 0) -ge 500000 ] || echo \"$(date +%s) $$ @EVENT@ $(pwd)\" >>\"$f\"; } && break; \
                    done 2>/dev/null";

/// Returns a text for `sh`, without single quotes. It notes an event for which piton could not be started: it appends a line to a file in
/// the user's runtime directory (`checkpoint/records/unguarded`), up to half a megabyte. It does not write into a directory of another
/// user. `event` is the name of the client and that of the event, two plain words.
pub fn note_for_sh(event: &str) -> String {
    NOTE.replace("@EVENT@", event)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_that_others_may_write_to_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let set = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o700);
        assert!(is_own(dir.path()));
        for mode in [0o770, 0o702] {
            set(mode);
            assert!(!is_own(dir.path()), "{mode:o}");
        }
        set(0o700);
        symlink(dir.path(), dir.path().join("link")).unwrap();
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert!(!is_own(&dir.path().join("link")) && !is_own(&dir.path().join("file")));
        assert!(!is_own(&dir.path().join("missing")));
    }
}
