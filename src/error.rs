//! The one error type at every public border: a stable code, what happened to what, and what to do next.
//!
//! Codes are those of the line protocol (`docs/PROTOCOL.md`); they never change meaning. A *fault* that is only reported
//! (a skipped file, a late checkpoint) is data of the result it belongs to, never an `Error`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The result of everything fallible in piton.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A stable error code, spelled on the protocol in kebab case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The line is not a JSON object; of a request that restores, not exactly one.
    BadJson,
    /// The line is not UTF-8.
    BadUtf8,
    /// A line is longer than `limits.line_bytes` and was skipped to its newline, or a hook's payload is too long.
    LineTooLong,
    /// A field, argument or option is missing, of the wrong type or out of range.
    BadRequest,
    /// This version has no message of that `type`.
    UnknownType,
    /// The protocol version `v` of a request is not 1.
    UnsupportedVersion,
    /// The directory cannot be a workspace: piton's own store, or no absolute path.
    WorkspaceRefused,
    /// The workspace's directory does not exist any more.
    WorkspaceGone,
    /// Nothing matches the selector.
    NoSuchCheckpoint,
    /// Several checkpoints match the selector; [`Error::candidate_list`] names them.
    AmbiguousCheckpoint,
    /// The id is that of some other object in the store.
    NotACheckpoint,
    /// The checkpoint belongs to another workspace, or was fetched and a rollback cannot go to it.
    OtherWorkspace,
    /// Retention dropped the checkpoint.
    Pruned,
    /// The checkpoint, or the workspace, has nothing at that path.
    NoSuchPath,
    /// No run has that id.
    NoSuchRun,
    /// No turn of that name has changed files, or it is too old to be known.
    NoSuchTurn,
    /// The run has no codon of that id.
    NoSuchCodon,
    /// The codon has no checkpoint of that type.
    NoSuchType,
    /// No path within the workspace, no directory where one is needed, or a path that no file can have.
    BadPath,
    /// A restore of the workspace is running, or was interrupted and waits to be ended.
    RollbackInProgress,
    /// A codon of the run is running, and has to end first.
    CodonRunning,
    /// The checkpoint before a restore could not be taken; nothing was touched.
    PreRestoreFailed,
    /// The target lacks objects or content that the request needs.
    IncompleteCheckpoint,
    /// Something changed between check and write; it was left alone.
    Conflict,
    /// Something newer was recorded than the request knew.
    StaleSelection,
    /// Files changed since the preview that the request agrees to; [`Error::fresh_preview`] has the present one.
    StalePlan,
    /// A session of an agent asks for what nothing could undo; a person may do it.
    NeedsPerson,
    /// Another process holds a lock for too long.
    StoreLocked,
    /// The store has missing or broken objects or refs.
    StoreDamaged,
    /// Trees or an object would take more memory than `limits.memory_mb`.
    TooLarge,
    /// The system refused memory that the work needs.
    NoMemory,
    /// No space, over the quota or the limit of a file's size, or less free than piton leaves to others.
    DiskFull,
    /// Access refused, or a read-only file system.
    Permission,
    /// Too many requests wait already.
    Busy,
    /// The process is ending, and begins no more work.
    ShuttingDown,
    /// A bug, or a failure of the operating system without a code of its own.
    Internal,
}

impl Code {
    /// Returns the spelling on the protocol and in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::BadJson => "bad-json",
            Code::BadUtf8 => "bad-utf8",
            Code::LineTooLong => "line-too-long",
            Code::BadRequest => "bad-request",
            Code::UnknownType => "unknown-type",
            Code::UnsupportedVersion => "unsupported-version",
            Code::WorkspaceRefused => "workspace-refused",
            Code::WorkspaceGone => "workspace-gone",
            Code::NoSuchCheckpoint => "no-such-checkpoint",
            Code::AmbiguousCheckpoint => "ambiguous-checkpoint",
            Code::NotACheckpoint => "not-a-checkpoint",
            Code::OtherWorkspace => "other-workspace",
            Code::Pruned => "pruned",
            Code::NoSuchPath => "no-such-path",
            Code::NoSuchRun => "no-such-run",
            Code::NoSuchTurn => "no-such-turn",
            Code::NoSuchCodon => "no-such-codon",
            Code::NoSuchType => "no-such-type",
            Code::BadPath => "bad-path",
            Code::RollbackInProgress => "rollback-in-progress",
            Code::CodonRunning => "codon-running",
            Code::PreRestoreFailed => "pre-restore-failed",
            Code::IncompleteCheckpoint => "incomplete-checkpoint",
            Code::Conflict => "conflict",
            Code::StaleSelection => "stale-selection",
            Code::StalePlan => "stale-plan",
            Code::NeedsPerson => "needs-person",
            Code::StoreLocked => "store-locked",
            Code::StoreDamaged => "store-damaged",
            Code::TooLarge => "too-large",
            Code::NoMemory => "no-memory",
            Code::DiskFull => "disk-full",
            Code::Permission => "permission",
            Code::Busy => "busy",
            Code::ShuttingDown => "shutting-down",
            Code::Internal => "internal",
        }
    }

    /// Returns whether the same request may succeed later without anything being mended.
    pub fn retry(self) -> bool {
        matches!(self, Code::StoreLocked | Code::Busy | Code::RollbackInProgress)
    }
}

/// An error: `message` says what happened to what, `hint` what to do next.
#[derive(Debug)]
pub struct Error {
    code: Code,
    message: String,
    hint: Option<String>,
    path: Option<PathBuf>,
    field: Option<String>,
    line: Option<u64>,
    candidates: Vec<String>,
    preview: Option<Box<serde_json::Value>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error with a code and a sentence; further facts by the builder methods below.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            hint: None,
            path: None,
            field: None,
            line: None,
            candidates: Vec::new(),
            preview: None,
            source: None,
        }
    }

    /// Returns a failed system call: `doing` is a participle ("reading", "renaming"), `path` what it was done to.
    ///
    /// Full disks and quotas become `disk-full`, refused memory `no-memory`, refused access and read-only file systems `permission`, paths
    /// that no file can have `bad-path`.
    pub fn io(source: std::io::Error, doing: &str, path: &Path) -> Error {
        // The standard library says so without the system's number.
        let refused = (source.kind() == std::io::ErrorKind::OutOfMemory).then_some(libc::ENOMEM);
        let (code, hint) = match source.raw_os_error().or(refused) {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => (
                Code::DiskFull,
                Some("free some space (or raise the quota) and try again; nothing existing was changed"),
            ),
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
                (Code::Permission, Some("check the owner and permissions of that path"))
            }
            Some(libc::ENOTDIR | libc::ENAMETOOLONG | libc::ELOOP) => (Code::BadPath, Some("check that path")),
            Some(libc::ENOMEM) => {
                (Code::NoMemory, Some("free some memory, or raise the limit (ulimit -v); nothing existing was changed"))
            }
            Some(libc::EMFILE | libc::ENFILE) => (Code::Internal, Some("raise the open-file limit (ulimit -n)")),
            _ => (Code::Internal, None),
        };
        let mut error = Error::new(code, format!("{doing} failed: {source}")).path(path).caused_by(source);
        error.hint = hint.map(str::to_owned);
        error
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the path concerned.
    #[must_use]
    pub fn path(mut self, path: impl AsRef<Path>) -> Error {
        self.path = Some(path.as_ref().to_owned());
        self
    }

    /// Adds the request field or configuration key concerned.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Error {
        self.field = Some(field.into());
        self
    }

    /// Adds the 1-based input line concerned.
    #[must_use]
    pub fn line(mut self, line: u64) -> Error {
        self.line = Some(line);
        self
    }

    /// Adds the candidates of an ambiguous choice.
    #[must_use]
    pub fn candidates(mut self, candidates: Vec<String>) -> Error {
        self.candidates = candidates;
        self
    }

    /// Adds what a restore would do now, as replies carry it.
    #[must_use]
    pub fn preview(mut self, preview: serde_json::Value) -> Error {
        self.preview = Some(Box::new(preview));
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// Puts a sentence in front of the message, keeping code and facts.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Error {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Returns the stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns what happened, without path and hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the whole text for a person: message, path and hint.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.fact()),
            None => self.fact(),
        }
    }

    /// Returns message and path for a person, without the hint.
    #[expect(clippy::unnecessary_debug_formatting, reason = "it quotes and escapes")]
    pub fn fact(&self) -> String {
        let mut text = self.message.clone();
        if let Some(path) = &self.path {
            let shown = path.to_string_lossy();
            // Quoted, and once, where it holds what ends a quotation or a line.
            let is_odd =
                path.to_str().is_none() || shown.chars().any(|c| c.is_control() || matches!(c, '"' | '\\' | '`'));
            text.push_str(&if is_odd { format!(": {path:?}") } else { format!(": `{shown}`") });
        }
        text
    }

    /// Returns what to do next, if known.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the field concerned, if any.
    #[must_use]
    pub fn field_name(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Returns the 1-based input line concerned, if any.
    #[must_use]
    pub fn line_number(&self) -> Option<u64> {
        self.line
    }

    /// Candidates of an ambiguous choice, empty otherwise.
    pub fn candidate_list(&self) -> &[String] {
        &self.candidates
    }

    /// Holds the fresh preview, if the agreed plan is stale.
    pub fn fresh_preview(&self) -> Option<&serde_json::Value> {
        self.preview.as_deref()
    }

    /// Returns the path concerned, if any.
    #[must_use]
    pub fn path_ref(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn std::error::Error + 'static))
    }
}

/// Puts a path and a verb on plain I/O results.
pub trait IoContext<T> {
    /// Turns an I/O error into [`Error::io`].
    ///
    /// # Errors
    /// The same failure, with a code, the verb and the path.
    fn at(self, doing: &str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> IoContext<T> for std::io::Result<T> {
    fn at(self, doing: &str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| Error::io(error, doing, path.as_ref()))
    }
}

impl<T> IoContext<T> for std::result::Result<T, rustix::io::Errno> {
    fn at(self, doing: &str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|errno| Error::io(std::io::Error::from(errno), doing, path.as_ref()))
    }
}
