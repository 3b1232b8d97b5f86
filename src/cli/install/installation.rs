//! An installation at work: hooks of one client after the other put in or taken out, and lines of shells. All files of a client are
//! worked out before the first one is written.

use std::path::Path;

use super::client_file::ClientFile;
use super::notes::{HookedProjects, Made};
use super::place::{InstallScope, Target, program, word};
use super::startup::StartupFiles;
use crate::agents::Client;
use crate::agents::install::HookFile;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, exit_of};
use crate::cli::print;
use crate::error::{Code, Error, Result};
use crate::protocol::{InstallItem, InstallOutcome, spelling};
use crate::shell::HookedShell;
use crate::store::between;

/// The direction of an installation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// One file and what is to become of it.
pub(super) struct FileChange {
    there: ClientFile,
    /// Nothing: it goes.
    after: Option<Vec<u8>>,
    /// The mode of a new file.
    mode: u32,
}

impl FileChange {
    /// Plans a change of a file.
    ///
    /// # Errors
    /// `permission` where it is read-only.
    pub(super) fn of(there: ClientFile, after: Option<Vec<u8>>, mode: u32) -> Result<FileChange> {
        let change = FileChange { there, after, mode };
        if change.changes() {
            change.there.refuse_read_only()?;
        }
        Ok(change)
    }

    fn changes(&self) -> bool {
        self.there.bytes() != self.after.as_deref()
    }

    fn outcome(&self) -> InstallOutcome {
        match (self.there.bytes(), &self.after) {
            _ if !self.changes() => InstallOutcome::Unchanged,
            (None, _) => InstallOutcome::Created,
            (Some(_), Some(_)) => InstallOutcome::Changed,
            (Some(_), None) => InstallOutcome::Removed,
        }
    }
}

/// An installation at work.
pub(crate) struct Installation<'c> {
    pub(super) context: &'c Context,
    pub(super) direction: Direction,
    pub(super) dry_run: bool,
    pub(super) program: String,
    /// The files so far, and clients that failed.
    pub(crate) rows: Vec<InstallItem>,
    failed: Option<Error>,
    pub(super) worked: bool,
}

impl Installation<'_> {
    /// Begins one.
    ///
    /// # Errors
    /// `bad-path` where hooks cannot call this program.
    pub(crate) fn begin(context: &Context, direction: Direction, dry_run: bool) -> Result<Installation<'_>> {
        let (rows, failed, worked) = (Vec::new(), None, false);
        Ok(Installation { context, direction, dry_run, program: program()?, rows, failed, worked })
    }

    /// Puts one client's hooks in or takes them out, or one shell's line. An error is told, and kept for the end.
    pub(crate) fn apply(&mut self, scope: &InstallScope, target: Target) {
        let done = match target {
            Target::Client(client) => self.client(scope, client),
            Target::Shell(shell) => self.shell(scope, shell),
            Target::Git => self.git(&scope.git),
        };
        match done {
            Ok(()) => self.worked = true,
            Err(error) => self.fail(target.name(), error),
        }
    }

    /// Removes a file that is piton's as a whole.
    pub(super) fn remove(&mut self, name: &str, path: &Path) {
        let done = ClientFile::read_bytes(path).and_then(|there| {
            let change = FileChange::of(there, None, 0o600)?;
            if !self.dry_run {
                change.there.remove_whole(&self.context.home)?;
            }
            self.told(name, &change)
        });
        match done {
            Ok(()) => self.worked = true,
            Err(error) => self.fail(name, error),
        }
    }

    /// Tells an error, and goes on.
    pub(super) fn fail(&mut self, name: &str, error: Error) {
        self.rows.push(InstallItem {
            client: name.to_owned(),
            done: InstallOutcome::Failed,
            path: None,
            code: Some(error.code().into()),
            message: Some(error.text()),
        });
        print::say(&format!("piton: {name}: {}", error.text()));
        self.failed.get_or_insert(error);
    }

    /// Returns the clients and shells of files that became others.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &str> {
        let changed = |row: &&InstallItem| !matches!(row.done, InstallOutcome::Unchanged | InstallOutcome::Failed);
        self.rows.iter().filter(changed).map(|row| row.client.as_str())
    }

    /// Returns the exit code of all of it.
    pub(crate) fn exit(&self) -> Exit {
        match &self.failed {
            None => Exit::Done,
            Some(_) if self.worked => Exit::Part,
            Some(error) => exit_of(error),
        }
    }

    fn client(&mut self, scope: &InstallScope, client: Client) -> Result<()> {
        if client.files(scope.project).is_empty() {
            return Err(Error::new(Code::BadRequest, format!("{} has no hooks for a single project", client.title()))
                .hint("install it for the user, without --project"));
        }
        let planned = scope.files(client).map(|file| self.planned(scope, client, &file)).collect::<Result<Vec<_>>>()?;
        if scope.project && self.direction == Direction::In && !self.dry_run {
            HookedProjects::of(&self.context.home).add(&scope.root)?;
        }
        for change in planned.iter().flatten() {
            self.carry_out(client.name(), change)?;
        }
        if self.direction == Direction::In
            && let Some(advice) = client.advice()
        {
            print::note(&format!("piton: {advice}"));
        }
        Ok(())
    }

    fn planned(&self, scope: &InstallScope, client: Client, file: &HookFile) -> Result<Option<FileChange>> {
        let path = scope.path(file);
        if self.direction == Direction::Out && !ClientFile::read_bytes(&path)?.bytes().is_some_and(names_piton) {
            return Ok(None);
        }
        let there = ClientFile::read(&path)?;
        let after = match (self.direction, there.text()) {
            (Direction::In, text) => Some(file.merge(client, &self.program, text).map_err(|error| error.path(&path))?),
            (Direction::Out, None) => None,
            (Direction::Out, Some(text)) => file.remove(client, text).map_err(|error| error.path(&path))?,
        };
        let after = after.map(String::into_bytes).or_else(|| there.emptied(&self.context.home));
        let mode = match (scope.project, file.executable()) {
            (false, false) => 0o600,
            (false, true) => 0o700,
            (true, false) => 0o644,
            (true, true) => 0o755,
        };
        Ok(Some(FileChange::of(there, after, mode)?))
    }

    fn shell(&mut self, scope: &InstallScope, shell: HookedShell) -> Result<()> {
        if scope.project {
            return Err(Error::new(
                Code::BadRequest,
                format!("{} has no startup file for a single project", shell.name()),
            )
            .hint("leave out --project"));
        }
        let files = StartupFiles::of(shell)?;
        match self.direction {
            Direction::In => self.line_in(&files),
            Direction::Out => self.lines_out(&files),
        }
    }

    fn line_in(&mut self, files: &StartupFiles) -> Result<()> {
        let word = files.quoted(&word()?);
        let by_hand = |error: Error| match error.code() {
            Code::Permission => error.hint(format!("add this line by hand: `{}`", files.line(&word))),
            _ => error,
        };
        let path = files.place().map_err(by_hand)?;
        let there = ClientFile::read_bytes(&path).map_err(by_hand)?;
        let after = files.with_line(&word, there.bytes().unwrap_or_default());
        if there.bytes().is_some_and(|text| !files.has_line(text)) && !self.dry_run {
            // Its owner has put another text in its place, also if piton made it once.
            Made::of(&self.context.home).forget_file(there.real())?;
        }
        let change = FileChange::of(there, Some(after), 0o644).map_err(by_hand)?;
        self.carry_out(files.shell.name(), &change).map_err(by_hand)
    }

    fn lines_out(&mut self, files: &StartupFiles) -> Result<()> {
        let mut left = Vec::new();
        for path in files.all().into_iter().chain(files.unread.clone()) {
            let there = match ClientFile::read_bytes(&path) {
                // A link that leads nowhere, or what is no file, has no line.
                Err(error) if error.code() == Code::BadPath => continue,
                read => read?,
            };
            let Some(text) = there.bytes() else { continue };
            let after = files.without_line(text);
            if after != text {
                let after = if after.is_empty() { self.emptied(&there)? } else { Some(after) };
                let change = FileChange::of(there, after, 0o644)?;
                self.carry_out(files.shell.name(), &change)?;
            }
        }
        for (path, line) in files.lines()?.into_iter().filter(|(_, line)| !line.is_own) {
            left.push(format!("line {} of {}", line.number, print::path(&path)));
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::Conflict,
            format!("{} calls piton in a form that piton did not write", left.join(" and ")),
        )
        .hint("remove it by hand"))
    }

    /// Returns what is to be left of a file that had piton's lines alone. Its owner may have made it, with these lines: only one that
    /// piton made goes.
    pub(super) fn emptied(&self, there: &ClientFile) -> Result<Option<Vec<u8>>> {
        let is_made = Made::of(&self.context.home).has_file(there.real())?;
        Ok(there.emptied(&self.context.home).or((!is_made).then(Vec::new)))
    }

    /// Writes a file, or shows what would be written.
    pub(super) fn carry_out(&mut self, name: &str, change: &FileChange) -> Result<()> {
        if !self.dry_run {
            write(self.context, change, self.direction)?;
        }
        self.told(name, change)
    }

    /// Notes what became of a file, and tells it; in a dry run, shows it.
    fn told(&mut self, name: &str, change: &FileChange) -> Result<()> {
        let path = change.there.path();
        if self.dry_run {
            show(self.context, change)?;
            self.add_row(name, change.outcome(), path);
            return Ok(());
        }
        self.tell(name, change.outcome(), path)
    }

    fn add_row(&mut self, name: &str, done: InstallOutcome, path: &Path) {
        self.rows.push(InstallItem {
            client: name.to_owned(),
            done,
            path: Some(path.to_string_lossy().into_owned()),
            code: None,
            message: None,
        });
    }

    /// Tells what became of a file.
    pub(super) fn tell(&mut self, name: &str, done: InstallOutcome, path: &Path) -> Result<()> {
        let shown = spelling(&done);
        let is_told = done != InstallOutcome::Unchanged || self.direction == Direction::In;
        self.add_row(name, done, path);
        if is_told && !self.context.json {
            let mark = if self.dry_run { "  (dry run: not done)" } else { "" };
            print::data(&format!("{shown:<9} {name:<14} {}{mark}\n", print::path(path)))?;
        }
        Ok(())
    }
}

/// Returns true for a file that may have something of piton's. Any other file need not even be understood.
fn names_piton(text: &[u8]) -> bool {
    text.windows(5).any(|part| part == b"piton")
}

fn show(context: &Context, change: &FileChange) -> Result<()> {
    if context.json || !change.changes() {
        return Ok(());
    }
    let name = change.there.path().to_string_lossy().into_owned();
    let patch = between(change.there.bytes(), change.after.as_deref(), name.trim_start_matches('/').as_bytes())?;
    print::data(&print::patch(&print::harmless(&patch.text)))
}

fn write(context: &Context, change: &FileChange, direction: Direction) -> Result<()> {
    if !change.changes() {
        return Ok(());
    }
    let made = Made::of(&context.home);
    match &change.after {
        Some(content) => change.there.replace(&context.home, &made, content, change.mode)?,
        None => change.there.remove(&context.home, &made)?,
    }
    if direction == Direction::Out { change.there.forget(&context.home, &made) } else { Ok(()) }
}
