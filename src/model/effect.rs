//! The effects of an action on the world, how sure the reader is of them, and what they call for.

use serde::{Deserialize, Serialize};

use super::loss::{Loss, RepositoryFiles};

/// The class of an effect (the taxonomy is in `docs/CLASSIFY.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Files that are deleted.
    FileDelete,
    /// Files whose content is replaced or changed.
    FileOverwrite,
    /// Files that are created or appended to.
    FileWrite,
    /// Files that get another name or place.
    FileMove,
    /// Files that get another mode or owner.
    FilePerm,
    /// Uncommitted work that a version control system throws away (`git checkout .`, `git clean`).
    VcsDiscard,
    /// Refs, stashes, commits, or a `.git` itself (`git branch -D`, `git gc`).
    VcsHistory,
    /// Another repository (`git push`).
    VcsRemote,
    /// A query that is not proven to read only.
    Database,
    /// Data sent to another machine (uploads, HTTP requests that write).
    NetworkWrite,
    /// Containers, images, volumes and what orchestrates them.
    Container,
    /// Resources at a cloud provider, also through tools that manage infrastructure.
    Cloud,
    /// A release that others can fetch (`npm publish`, `cargo publish`).
    Publish,
    /// Running programs that are ended or signalled.
    Process,
    /// The machine itself: services, packages, disks, users.
    System,
    /// Commands that run on another machine.
    RemoteShell,
    /// Code that was just fetched or decoded, and is run.
    ExecRemote,
    /// A script, a build or an interpreter's file that cannot be seen into.
    ExecOpaque,
    /// Aimed at piton itself: its store, its daemon, its switch.
    Piton,
    /// The line was not understood, or passed the limits.
    Unknown,
}

impl Class {
    /// All classes.
    pub const ALL: [Class; 20] = [
        Class::FileDelete,
        Class::FileOverwrite,
        Class::FileWrite,
        Class::FileMove,
        Class::FilePerm,
        Class::VcsDiscard,
        Class::VcsHistory,
        Class::VcsRemote,
        Class::Database,
        Class::NetworkWrite,
        Class::Container,
        Class::Cloud,
        Class::Publish,
        Class::Process,
        Class::System,
        Class::RemoteShell,
        Class::ExecRemote,
        Class::ExecOpaque,
        Class::Piton,
        Class::Unknown,
    ];

    /// Returns the kebab-case spelling used in rules, on the protocol and in commit trailers.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::FileDelete => "file-delete",
            Class::FileOverwrite => "file-overwrite",
            Class::FileWrite => "file-write",
            Class::FileMove => "file-move",
            Class::FilePerm => "file-perm",
            Class::VcsDiscard => "vcs-discard",
            Class::VcsHistory => "vcs-history",
            Class::VcsRemote => "vcs-remote",
            Class::Database => "database",
            Class::NetworkWrite => "network-write",
            Class::Container => "container",
            Class::Cloud => "cloud",
            Class::Publish => "publish",
            Class::Process => "process",
            Class::System => "system",
            Class::RemoteShell => "remote-shell",
            Class::ExecRemote => "exec-remote",
            Class::ExecOpaque => "exec-opaque",
            Class::Piton => "piton",
            Class::Unknown => "unknown",
        }
    }

    /// Returns whether effects of this class reach beyond the files of a workspace.
    pub fn is_external(self) -> bool {
        match self {
            Class::FileDelete
            | Class::FileOverwrite
            | Class::FileWrite
            | Class::FileMove
            | Class::FilePerm
            | Class::VcsDiscard
            | Class::VcsHistory
            | Class::ExecOpaque
            | Class::Piton
            | Class::Unknown => false,
            Class::VcsRemote
            | Class::Database
            | Class::NetworkWrite
            | Class::Container
            | Class::Cloud
            | Class::Publish
            | Class::Process
            | Class::System
            | Class::RemoteShell
            | Class::ExecRemote => true,
        }
    }
}

/// The place where an effect lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Inside of the event's workspace.
    Workspace,
    /// Inside of another workspace. Reserved: the classifier knows only the event's own.
    OtherWorkspace,
    /// The user's home directory, outside of any workspace.
    Home,
    /// Other places of this machine.
    System,
    /// A directory for temporary files.
    Temp,
    /// `/dev/null` and its kin: no effect at all.
    Device,
    /// Not on this machine, or not a file at all.
    Remote,
    /// The place cannot be told from the line.
    Unknown,
}

/// The certainty of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Read from the line word by word.
    Proven,
    /// Behind a variable, a glob or an expansion.
    Likely,
    /// Guessed from the name of a script.
    Named,
}

/// The weight of an unintended effect; ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Hardly worth a word.
    Info,
    /// Easily put right.
    Low,
    /// Takes work to put right.
    Medium,
    /// Cannot be put right, or concerns others.
    High,
}

/// The user's wish about an effect, beside checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stance {
    /// Nothing is said.
    Allow,
    /// A warning.
    Warn,
    /// The action is held until a person agrees.
    Ask,
    /// The action is held.
    Deny,
}

/// The degree to which the line was understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Every command of the line was read.
    #[default]
    Exact,
    /// Some words were unknown at reading time (variables, globs).
    Assumed,
    /// Something in the line cannot be seen into: a script, an interpreter, a broken construct.
    Opaque,
}

/// The checkpoint that an action calls for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Neither a checkpoint nor a warning.
    #[default]
    Nothing,
    /// A checkpoint of the files.
    Checkpoint,
    /// A warning, because no checkpoint undoes it.
    Warn,
    /// A checkpoint and a warning.
    Both,
}

impl Needs {
    /// From the two separate questions.
    pub fn of(checkpoint: bool, warn: bool) -> Needs {
        match (checkpoint, warn) {
            (false, false) => Needs::Nothing,
            (true, false) => Needs::Checkpoint,
            (false, true) => Needs::Warn,
            (true, true) => Needs::Both,
        }
    }

    /// Returns whether a checkpoint is due.
    pub fn checkpoint(self) -> bool {
        matches!(self, Needs::Checkpoint | Needs::Both)
    }

    /// Returns whether a warning is due.
    pub fn warn(self) -> bool {
        matches!(self, Needs::Warn | Needs::Both)
    }
}

/// One thing that an action does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The kind of thing that it does.
    pub class: Class,
    /// The program or construct: `rm`, `sed`, `redirect`, `git reset`.
    pub verb: String,
    /// The object of the action, as written after expansion of what is constant; `None` when unknown.
    pub target: Option<String>,
    /// The place where it lands.
    pub scope: Scope,
    /// The certainty that it happens as read.
    pub certainty: Certainty,
    /// True if bringing files back undoes it.
    pub reversible: bool,
    /// The weight if it was not meant, with the user's overrides.
    pub severity: Severity,
    /// The rule that found it.
    pub rule: String,
    /// Byte range `[start, end)` in the command line.
    pub span: (usize, usize),
}

/// A warning of something that bringing files back does not undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Stable: `external-` followed by the class, or `piton-aimed-at`.
    pub code: String,
    /// The class of the effect that is warned of.
    pub class: Class,
    /// A sentence for people.
    pub message: String,
    /// The effect's weight, with the user's overrides.
    pub severity: Severity,
    /// The sentence instead of `message` if checkpoints contain all files that the action destroys; `None` if the effect is on more than
    /// files, or if they will not contain all of them.
    pub on_files: Option<String>,
}

impl Warning {
    /// Returns the warning as it is where checkpoints contain all files that the action destroys.
    #[must_use]
    pub fn of_saved(self) -> Warning {
        Warning { message: self.on_files.clone().unwrap_or(self.message), ..self }
    }
}

impl Verdict {
    /// Returns true if the action changes nothing, and starts only programs that change nothing.
    pub fn only_reads(&self) -> bool {
        self.effects.is_empty() && self.confidence != Confidence::Opaque && self.programs == Programs::Readers
    }

    /// As it is for an action of which not everything is known: it may reach everything, and a checkpoint is due.
    #[must_use]
    pub fn doubted(mut self) -> Verdict {
        self.reaches_all = true;
        self.programs = Programs::Any;
        self.needs = Needs::of(true, self.needs.warn());
        self.confidence = Confidence::Opaque;
        self.in_place = true;
        self.effects.push(Effect {
            class: Class::Unknown,
            verb: "text".to_owned(),
            target: None,
            scope: Scope::Unknown,
            certainty: Certainty::Likely,
            reversible: true,
            severity: Severity::Low,
            rule: "not-exact".to_owned(),
            span: (0, 0),
        });
        self
    }
}

/// The `.git` directories that go with the targets of an action; ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takes {
    /// Nobody's: git's own verbs leave it alone.
    #[default]
    Nothing,
    /// The `.git` directories of repositories inside another one.
    Nested,
    /// Every one.
    Repositories,
}

/// The programs that an action can start; ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Programs {
    /// Only programs of the closed list of readers, which only read and start no other program.
    #[default]
    Readers,
    /// Also programs that write nothing but what they name, and start no other program.
    Writers,
    /// Other programs too. They may write files that the action does not name, and start programs that it does not name.
    Any,
}

/// The whole answer of the classifier for one action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The checkpoint and the warning that all its effects together call for.
    pub needs: Needs,
    /// The degree to which the whole line was understood.
    pub confidence: Confidence,
    /// Each effect once, in the order in which they were found; at most 1,000. Empty if nothing is changed.
    pub effects: Vec<Effect>,
    /// Warnings of effects that files do not undo: one for each class and sentence.
    pub warnings: Vec<Warning>,
    /// Paths about to be destroyed that are known literally: absolute, or relative to the event's working directory.
    /// They may lie anywhere; the engine decides what it captures.
    #[serde(skip)]
    pub targets: Vec<String>,
    /// The same as patterns (`*`, `?`, `[…]`): whoever may look at the disk can tell what they match.
    #[serde(skip)]
    pub patterns: Vec<String>,
    /// True if the action may destroy files that `targets` does not name: an effect without a path that is known word by word, a
    /// pattern, or something that cannot be seen into.
    #[serde(skip)]
    pub reaches_all: bool,
    /// Of `targets`, those of which everything goes, whatever ignore rules say (`rm -rf .`, `git clean -x`).
    #[serde(skip)]
    pub wiped: Vec<String>,
    /// Of `targets`, those into which the action writes: through a link there, too. A slash behind one says that a link to
    /// a directory is followed.
    #[serde(skip)]
    pub through: Vec<String>,
    /// Paths at which the action makes a file, and replaces one that stands there.
    #[serde(skip)]
    pub made: Vec<String>,
    /// Paths that the action creates or appends to, without anything below them.
    #[serde(skip)]
    pub written: Vec<String>,
    /// True if the action may change files whose paths are not known word by word: the line is opaque, or an effect on files has
    /// no known target.
    #[serde(skip)]
    pub writes_unnamed: bool,
    /// Of `patterns`, those of which everything goes.
    #[serde(skip)]
    pub wiped_patterns: Vec<String>,
    /// Files of the workspace that the action runs, as absolute paths: their texts would say more.
    #[serde(skip)]
    pub scripts: Vec<String>,
    /// The reason to hold the action: the user's policy asks first, or denies it.
    #[serde(skip)]
    pub hold: Option<String>,
    /// True if `hold` denies the action, false if it asks first.
    #[serde(skip)]
    pub denied: bool,
    /// Places of effects that seem to lie outside of the workspace, the first of them: paths, the directories of patterns, and
    /// those in which something without a target happens.
    #[serde(skip)]
    pub outside: Vec<String>,
    /// Directories in which an action destroys files that cannot be named in advance.
    #[serde(skip)]
    pub dirs: Vec<String>,
    /// Directories outside of the workspace in which an action destroys files that it does not name, and files there to which its
    /// words point.
    #[serde(skip)]
    pub abroad: Vec<String>,
    /// The files of repositories that commands of git replace or remove, wherever the workspace begins.
    #[serde(skip)]
    pub repositories: Vec<RepositoryFiles>,
    /// Directories from which git is asked for the top of its repository.
    #[serde(skip)]
    pub tops: Vec<String>,
    /// Directories in which git checks out a commit, with the name of that.
    #[serde(skip)]
    pub checkouts: Vec<(String, String)>,
    /// The `.git` directories that go with the targets.
    #[serde(skip)]
    pub takes: Takes,
    /// True if the action may change files of a `.git` in place, beside removing and moving them.
    #[serde(skip)]
    pub in_place: bool,
    /// The programs that it can start.
    #[serde(skip)]
    pub programs: Programs,
    /// The work that it takes away, as far as that can be named.
    #[serde(skip)]
    pub losses: Vec<Loss>,
}
