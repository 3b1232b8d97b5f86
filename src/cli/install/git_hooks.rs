//! The directory of git's hooks: piton's lines in a hook, or piton's script in its place.

use std::ffi::OsStr;
use std::fs::{Metadata, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::client_file::ClientFile;
use super::git_hook_link::is_link;
use super::installation::{FileChange, Installation};
use super::notes::Made;
use super::place::GIT;
use crate::cli::print;
use crate::error::{Code, Error, IoContext, Result};
use crate::git::door::hooks::{ASIDE, GitHook, is_own, program_of, without_lines};
use crate::protocol::InstallOutcome;
use crate::sys::fs::aside::put_link;
use crate::sys::fs::durable::replace_with_mode;

/// The mode of piton's script.
const MODE: u32 = 0o755;

/// The way up from the directory of hooks that were moved aside.
const UP: &str = "../";

/// Has a hook ask piton. `small` is the hook as a program, to which a link may lead where no other hook has to run.
pub(super) fn hook_in(
    work: &mut Installation<'_>,
    dir: &Path,
    hook: GitHook,
    program: &OsStr,
    small: Option<&Path>,
) -> Result<()> {
    let path = dir.join(hook.name());
    let script = hook.script(program);
    let found = facts(&path)?;
    let is_own = || text(&path).is_some_and(|text| is_own(&text));
    if let Some(small) = small
        && (found.is_none() || is_link(&path) || is_own())
        && facts(&next(dir, hook))?.is_none()
    {
        return work.link_in(&path, small);
    }
    if is_link(&path) {
        if !work.dry_run {
            replace_with_mode(&path, &script, MODE)?;
        }
        return work.tell(GIT, InstallOutcome::Changed, &path);
    }
    let Some(facts) = found else {
        return work.carry_out(GIT, &FileChange::of(ClientFile::read_bytes(&path)?, Some(script), MODE)?);
    };
    if facts.is_symlink() {
        return aside(work, &path, hook, &script);
    }
    if !facts.is_file() {
        return Err(Error::new(Code::BadPath, "this is not a regular file").path(&path).hint("move it away"));
    }
    let there = ClientFile::read_bytes(&path)?;
    let text = there.bytes().unwrap_or_default().to_vec();
    let may_run = facts.permissions().mode() & 0o111 != 0;
    if is_own() {
        work.carry_out(GIT, &FileChange::of(there, Some(script), MODE)?)?;
        if !may_run && !work.dry_run {
            std::fs::set_permissions(&path, Permissions::from_mode(MODE)).at("setting the mode of", &path)?;
        }
        return Ok(());
    }
    // A manager may run the hook that it has moved: nobody is to be asked twice.
    for moved in &named(dir, hook)[1..] {
        file_out(work, dir, hook, moved)?;
    }
    emptied(work, dir)?;
    match hook.with_lines(program, &text).filter(|_| may_run) {
        Some(after) => {
            work.carry_out(GIT, &FileChange::of(there, Some(after), MODE)?)?;
            left_behind(work, dir, hook)
        }
        None => {
            let after = without_lines(&text);
            if after != text && !work.dry_run {
                there.replace(&work.context.home, &Made::of(&work.context.home), &after, MODE)?;
            }
            aside(work, &path, hook, &script)
        }
    }
}

/// Moves a hook aside, and puts piton's script in its place.
fn aside(work: &mut Installation<'_>, path: &Path, hook: GitHook, script: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(path);
    left_behind(work, dir, hook)?;
    if !work.dry_run {
        let next = next(dir, hook);
        if facts(&next)?.is_some() {
            return Err(Error::new(Code::Conflict, "piton already runs a hook that was here before this one")
                .path(&next)
                .hint("to restore that hook, run `piton uninstall git`; then decide which of the two hooks to keep"));
        }
        Made::of(&work.context.home).create(&dir.join(ASIDE), MODE)?;
        // The hook is there all the time, in one form or the other.
        match link_target(path)? {
            Some(target) => symlink(moved(&target, true), &next).at("making the link", &next)?,
            None => std::fs::hard_link(path, &next).at("moving aside", path)?,
        }
        replace_with_mode(path, script, MODE)?;
    }
    work.tell(GIT, InstallOutcome::Changed, path)
}

/// Takes a hook's lines or script out, under whatever name a manager has left them.
pub(super) fn hooks_out(work: &mut Installation<'_>, dir: &Path, hook: GitHook) -> Result<()> {
    for path in named(dir, hook) {
        file_out(work, dir, hook, &path)?;
    }
    left_behind(work, dir, hook)?;
    emptied(work, dir)
}

/// Removes the directory of hooks that were moved aside; with the hook of another kind in it, it stays.
fn emptied(work: &Installation<'_>, dir: &Path) -> Result<()> {
    if work.dry_run {
        return Ok(());
    }
    // It fails where something is left in it, and mostly there is none.
    let _ = std::fs::remove_dir(dir.join(ASIDE));
    Made::of(&work.context.home).remove_empty()
}

/// Takes the lines or the script out of one file of a hook. The hook that was moved aside takes the place of the script.
fn file_out(work: &mut Installation<'_>, dir: &Path, hook: GitHook, path: &Path) -> Result<()> {
    work.unlinked(path)?;
    if is_link(path) {
        return work.link_out(path);
    }
    if facts(path)?.is_none_or(|facts| !facts.is_file()) {
        return Ok(());
    }
    let there = ClientFile::read_bytes(path)?;
    let text = there.bytes().unwrap_or_default();
    if !is_own(text) {
        if program_of(text).is_some() {
            let after = without_lines(text);
            work.carry_out(GIT, &FileChange::of(there, Some(after), MODE)?)?;
        }
        return Ok(());
    }
    let next = next(dir, hook);
    if facts(&next)?.is_none() {
        return work.carry_out(GIT, &FileChange::of(there, None, MODE)?);
    }
    if !work.dry_run {
        back(&next, path)?;
    }
    work.tell(GIT, InstallOutcome::Changed, path)
}

/// Brings a hook back from aside, in place of piton's script.
fn back(next: &Path, path: &Path) -> Result<()> {
    let Some(target) = link_target(next)? else {
        return std::fs::rename(next, path).at("moving back", next);
    };
    put_link(&moved(&target, false), path)?;
    std::fs::remove_file(next).at("removing", next)
}

/// Removes a hook that was moved aside and has no script of piton's any more that runs it: another program has written its own over
/// that. A copy is kept.
fn left_behind(work: &mut Installation<'_>, dir: &Path, hook: GitHook) -> Result<()> {
    let next = next(dir, hook);
    let Some(facts) = facts(&next)? else { return Ok(()) };
    if work.dry_run || named(dir, hook).iter().any(|path| text(path).is_some_and(|text| is_own(&text))) {
        return Ok(());
    }
    if facts.is_file() {
        ClientFile::read_bytes(&next)?.remove_whole(&work.context.home)?;
    } else {
        std::fs::remove_file(&next).at("removing", &next)?;
    }
    let (name, copies) = (hook.name(), work.context.home.path().join("backups"));
    print::say(&format!(
        "piton: {}: another program has replaced {name}. A copy of the earlier hook, which piton ran, is below {}",
        print::path(dir),
        print::path(&copies)
    ));
    Ok(())
}

/// Returns the files of a hook: its own, first, and those to which managers move a hook that they replace.
fn named(dir: &Path, hook: GitHook) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_moved = |name: &[u8]| name.strip_prefix(hook.name().as_bytes()).is_some_and(|rest| rest.starts_with(b"."));
    let is_sample = |name: &[u8]| name.ends_with(b".sample");
    let mut moved: Vec<PathBuf> = entries
        .filter(|entry| is_moved(entry.file_name().as_bytes()) && !is_sample(entry.file_name().as_bytes()))
        .map(|entry| entry.path())
        .collect();
    moved.sort();
    [vec![dir.join(hook.name())], moved].concat()
}

/// Returns true if a hook in a directory asks piton.
pub(super) fn are_in(dir: &Path) -> bool {
    let mut files = GitHook::ALL.into_iter().flat_map(|hook| named(dir, hook));
    files.any(|path| is_link(&path) || text(&path).is_some_and(|text| program_of(&text).is_some()))
}

/// Returns the place of a hook that was moved aside.
pub(crate) fn next(dir: &Path, hook: GitHook) -> PathBuf {
    dir.join(ASIDE).join(hook.name())
}

/// Returns the text of a hook; `None` for what is no file: reading a pipe would wait.
pub(crate) fn text(path: &Path) -> Option<Vec<u8>> {
    let is_file = path.metadata().is_ok_and(|facts| facts.is_file());
    // A hook that cannot be read is none of piton's.
    if is_file { std::fs::read(path).ok() } else { None }
}

fn facts(path: &Path) -> Result<Option<Metadata>> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Ok(facts) => Ok(Some(facts)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => Err(error).at("checking", path),
    }
}

fn link_target(path: &Path) -> Result<Option<PathBuf>> {
    let is_link = facts(path)?.is_some_and(|facts| facts.is_symlink());
    if is_link { std::fs::read_link(path).at("reading the link", path).map(Some) } else { Ok(None) }
}

/// Returns the target of a link one directory further down, or the one that it had further up.
fn moved(target: &Path, is_down: bool) -> PathBuf {
    let text = target.as_os_str().as_bytes();
    match is_down {
        _ if target.is_absolute() => target.to_owned(),
        true => PathBuf::from(OsStr::from_bytes(&[UP.as_bytes(), text].concat())),
        false => PathBuf::from(OsStr::from_bytes(text.strip_prefix(UP.as_bytes()).unwrap_or(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_back_whatever_lies_beside_it() {
        for left in [&[][..], &["pre-push.link"], &["pre-push.link", "other.link"]] {
            let dir = tempfile::tempdir().unwrap();
            let (path, next) =
                (dir.path().join("pre-push"), next(dir.path(), GitHook::named(OsStr::new("pre-push")).unwrap()));
            std::fs::create_dir(dir.path().join(ASIDE)).unwrap();
            std::fs::write(&path, "piton's").unwrap();
            symlink("../../of/the/user", &next).unwrap();
            left.iter().for_each(|name| symlink("nowhere", next.with_file_name(name)).unwrap());
            back(&next, &path).unwrap();
            assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("../of/the/user"));
            let there = std::fs::read_dir(dir.path().join(ASIDE)).unwrap().count();
            assert_eq!(there, left.len(), "what is not known stays");
        }
    }
}
