//! Documents that only the command line prints, with `--json`. All other verbs print replies of the protocol.

use serde::{Deserialize, Serialize};

use super::checkpoints::ShownCheckpoint;
use super::events::{ClassifyReply, Greeting};
use super::shapes::{List, PathItem};
use super::status::StatusFacts;
use super::words::Word;
use crate::error::Code;
use crate::model::{checkpoint::CheckpointKind, number::Number, policy::Guard};

/// The error that ended a verb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerbError {
    /// The stable code.
    pub code: Word<Code>,
    /// A sentence for people.
    pub message: String,
    /// The checkpoints that an ambiguous name could mean.
    pub candidates: Vec<String>,
}

/// Any verb that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedVerb {
    /// The error.
    pub error: VerbError,
}

/// `piton status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusDocument {
    /// Facts about the workspace.
    #[serde(flatten)]
    pub facts: StatusFacts,
    /// The files that settings were read from.
    pub settings: Vec<String>,
}

/// `piton show N`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShowDocument {
    /// Facts about the checkpoint.
    #[serde(flatten)]
    pub checkpoint: ShownCheckpoint,
    /// The paths that it holds.
    pub paths: List,
}

/// `piton show N:PATH`, of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowDirectoryDocument {
    /// The number of the checkpoint.
    pub n: Number,
    /// The directory.
    pub of: PathItem,
    /// The paths in it.
    pub paths: List,
}

/// `piton show N:PATH`, of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShowFileDocument {
    /// The number of the checkpoint.
    pub n: Number,
    /// The file.
    pub of: PathItem,
    /// The id of its content.
    pub id: String,
    /// The path under which it is stored.
    pub stored_path: String,
    /// The size of it.
    pub bytes: u64,
}

/// `piton restore --to DIR`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportDocument {
    /// The directory.
    pub to: String,
    /// The paths that were written.
    pub created: List,
    /// The paths that could not be written.
    pub failed: List,
}

/// `piton list --remote`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemoteListDocument {
    /// The number of checkpoints, those that were cut off among them.
    pub total: usize,
    /// The newest first.
    pub checkpoints: Vec<RemoteItem>,
    /// Refs that cannot be read.
    pub faults: Vec<String>,
}

/// One fetched checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemoteItem {
    /// The id of its workspace.
    pub workspace: String,
    /// Its id.
    pub id: String,
    /// Its number in that workspace.
    pub n: Number,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The run that it belongs to.
    pub run: String,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// Marks, such as `partial` and `secrets`.
    pub flags: Vec<String>,
    /// True if retention never dropped it there.
    pub pinned: bool,
}

/// `piton push`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushDocument {
    /// The number of refs that were sent.
    pub sent: u64,
    /// The number of refs that were there already.
    pub known: u64,
    /// Refs that the remote refused, with its reasons.
    pub refused: Vec<String>,
    /// Runs and checkpoints that piton kept back.
    pub withheld: Vec<WithheldItem>,
    /// True if it only says what it would send.
    pub dry_run: bool,
    /// The number of refs of which git said nothing.
    pub unsent: u64,
    /// True if git got through.
    pub ok: bool,
}

/// A run or a checkpoint that was not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldItem {
    /// The run or the checkpoint.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// `piton prune`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneDocument {
    /// True if it only says what would go.
    pub dry_run: bool,
    /// The digest of the plan.
    pub digest: String,
    /// The checkpoints of the plan.
    pub checkpoints: Vec<PruneItem>,
    /// The number of those that were dropped.
    pub dropped: u64,
    /// The number of captures of ignored files and secrets that go too.
    pub private_captures: u64,
    /// The stored bytes of these.
    pub private_bytes: u64,
    /// The bytes that all checkpoints took before.
    pub stored: u64,
    /// The bytes by which those that stay are over the cap.
    pub over: u64,
    /// The bytes that became free.
    pub freed: u64,
    /// The reason why the store left something for another time.
    pub left: Option<String>,
    /// Workspaces of which nothing goes, because something cannot be read.
    pub faults: Vec<String>,
}

/// A checkpoint that a prune drops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PruneItem {
    /// The directory of its workspace.
    pub workspace: String,
    /// Its permanent number.
    pub n: Number,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// The stored bytes that nothing else has.
    pub bytes: u64,
    /// The rule by which it goes.
    pub rule: String,
}

/// `piton fetch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchDocument {
    /// The refs that are new or went forward.
    pub new: Vec<String>,
    /// The number of refs that were there already.
    pub known: u64,
    /// Refs that were not taken.
    pub refused: Vec<RefusedRef>,
    /// True if git got through.
    pub ok: bool,
}

/// A ref of a remote that was not taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRef {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// `piton classify`; with `--stdin` one a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassifyDocument {
    /// The command line.
    pub command: String,
    /// The judgement.
    #[serde(flatten)]
    pub verdict: ClassifyReply,
    /// The reason why the policy holds it.
    pub hold: Option<String>,
}

/// `piton on`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnDocument {
    /// The directory of the workspace.
    pub workspace: String,
    /// The guard in force.
    pub guard: Word<Guard>,
    /// The reason why it is off all the same.
    pub guard_off: Option<String>,
}

/// `piton off`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffDocument {
    /// The directory of the workspace.
    pub workspace: String,
    /// The guard in force: `off`.
    pub guard: Word<Guard>,
    /// The time until when; `null`: until `piton on`.
    pub until: Option<String>,
}

/// `piton daemon start` and `piton daemon status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonDocument {
    /// The greeting of the daemon that runs.
    pub daemon: Option<Greeting>,
}

/// `piton daemon stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopDocument {
    /// The process that has ended; `null` if none ran.
    pub stopped: Option<i32>,
}

/// `piton install` and `piton uninstall`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallDocument {
    /// True if it only says what it would change.
    pub dry_run: bool,
    /// The files of the clients and shells.
    pub files: Vec<InstallItem>,
    /// The store, which stays where all else was taken out; absent else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

/// `piton init` without a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitDocument {
    /// The files of the clients and shells that were chosen.
    pub files: Vec<InstallItem>,
    /// The findings of `piton doctor`.
    pub doctor: DoctorDocument,
    /// The number of the newest checkpoint; `null` where none could be taken.
    pub n: Option<Number>,
    /// A command that brings a file back from it.
    pub back: Option<String>,
}

/// One file of a client or shell, or one that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallItem {
    /// The client or shell.
    pub client: String,
    /// The outcome.
    pub done: InstallOutcome,
    /// The file; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The stable code of the error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Word<Code>>,
    /// The error in a sentence, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The outcome of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstallOutcome {
    /// It is as it was.
    Unchanged,
    /// It is new.
    Created,
    /// Its content changed.
    Changed,
    /// It is gone.
    Removed,
    /// Nothing was done.
    Failed,
    /// An outcome of a later version.
    #[serde(other)]
    Unknown,
}

/// `piton install` and `piton uninstall` without a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientsDocument {
    /// The clients that piton knows.
    pub clients: Vec<ClientItem>,
}

/// One client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientItem {
    /// Its name.
    pub client: String,
    /// True if it is on this machine.
    pub found: bool,
    /// True if it has hooks of piton's.
    pub hooks: bool,
}

/// `piton doctor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorDocument {
    /// True if nothing is wrong.
    pub well: bool,
    /// The build of piton.
    pub build: String,
    /// The findings.
    pub rows: Vec<DoctorRow>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorRow {
    /// The check that found it.
    pub check: String,
    /// The subject.
    pub about: String,
    /// The state of it.
    pub state: RowState,
    /// A sentence for people.
    pub text: String,
    /// The way to put it right.
    pub mend: Option<MendBlock>,
}

/// The state of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowState {
    /// Nothing is wrong.
    Well,
    /// Worth knowing.
    Note,
    /// Something needs a fix.
    Wrong,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// The way to put something right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MendBlock {
    /// One line for a shell.
    Command(String),
    /// A step for a person.
    Step(String),
}

/// `piton doctor --refs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefsDocument {
    /// The findings that are left.
    pub findings: Vec<RefFinding>,
    /// The refs that were put back.
    pub repaired: Vec<String>,
}

/// A ref that is not as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefFinding {
    /// The id of the workspace; empty where it is none's.
    pub workspace: String,
    /// The sort of damage.
    pub kind: String,
    /// The damage, for people.
    pub what: String,
    /// True if something is lost.
    pub harm: bool,
    /// The repair that is possible.
    pub repair: Option<String>,
}
