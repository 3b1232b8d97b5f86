//! The line protocol, v1: one JSON object a line (rank 1). `docs/PROTOCOL.md` is its specification.
//!
//! Each message is declared here once, for the doors that answer and for everybody who asks or reads: bytes to [`Request`], replies
//! and notices to lines, and [`ProtocolClient`] for the other side. Knows no engine, and reads and writes only what it is given.

mod base64;
mod checkpoints;
mod client;
mod codec;
mod config;
mod events;
mod fault;
mod finds;
mod forget;
mod git;
mod line;
mod notices;
mod request;
mod restores;
mod runs;
mod shapes;
mod status;
mod stores;
mod turns;
mod verbs;
mod words;

pub use checkpoints::{
    Before, CheckpointFacts, Chosen, ChosenItem, ChosenReply, Create, CreateReply, Diff, DiffReply, ListItem,
    ListQuery, ListReply, RepositoryBlock, Show, ShowReply, ShownCheckpoint,
};
pub use client::ProtocolClient;
pub use codec::{Line, LineReader};
pub use config::{
    ChangedSettingDocument, CheckedDocument, ExplainDocument, SettingFilesDocument, SettingItem, SettingsDocument,
    TrackedBlock, TrustDocument,
};
pub use events::{
    After, AfterReply, BaselineStatus, BeforeReply, Classify, ClassifyReply, CollisionItem, EmptyReply, EventReply,
    Greeting, GreetingType, Hello, HelloReply, HoldAnswer, Interrupted, LimitsBlock, OtherBlock, ScopeWord,
    ShellBefore, ToolBefore, Turn, TurnEndReply, TurnReply, WatcherWord, WorkMaker, WorkspaceBlock,
};
pub use fault::{ErrorBody, ErrorReply};
pub use finds::{FindDocument, FoundDocument, FoundItem, PresenceWord, VersionItem};
pub use forget::{ForgetDocument, ForgetItem, ProofBlock};
pub use git::{
    GitChangedQuery, GitChangedReply, GitOperationItem, GitOperationsDocument, GitUndoDocument, KeptItem, RefMoveItem,
};
pub use line::{notice_line, reply_line, request_line};
pub use notices::{
    AutosavedNotice, DegradedNotice, FailedNotice, InterruptedNotice, LowDiskNotice, NoticeBody, NoticeLine,
    RollbackCompleted, RollbackProgress, RollbackStarted, RolledBackNotice, SettledNotice, SkippedSort, StoreCapNotice,
    StreamEnded, WatchLine,
};
pub use request::{Body, Failure, Id, Request, VERSION, parse};
pub use restores::{
    ChangedLists, CheckpointType, LeftChange, LeftChanges, NoStep, OtherDone, OtherPreview, PlanLists, PreviewReply,
    RestoreReply, Rollback, Step, StepBlock, StepFault, StepReply, TargetBlock, To, TurnBlock,
};
pub use runs::{
    BranchItem, BranchOrigin, BranchType, CodonEnd, CodonReply, CodonStart, CodonStartReply, OriginBlock, RunEnd,
    RunEndReply, RunFork, RunItem, RunLast, RunListReply, RunReply, RunStart, RunState, RunStatus,
};
pub use shapes::{
    CheckpointBlock, CheckpointStatus, List, NotHeld, PastEffect, PathItem, StatBlock, WarningBlock, not_held_sentence,
};
pub use status::{
    DoorItem, OpenReply, ProtectionBlock, ProtectionState, ReasonItem, ReloadReply, SilentItem, StatusFacts,
    StatusLast, StatusReply, UnwatchedBlock, UnwatchedItem, WatchingBlock, WatchingQuery,
};
pub use stores::{
    AdoptDocument, ClearDocument, ClearItem, MoveDocument, StoreDocument, StoreListDocument, StoredWorkspace,
};
pub use turns::{ActionItem, ShareCounts, TurnDiff, TurnDiffReply, TurnItem, TurnListReply, TurnQuery};
pub use verbs::{
    ClassifyDocument, ClientItem, ClientsDocument, DaemonDocument, DoctorDocument, DoctorRow, ExportDocument,
    FailedVerb, FetchDocument, InitDocument, InstallDocument, InstallItem, InstallOutcome, MendBlock, OffDocument,
    OnDocument, PruneDocument, PruneItem, PushDocument, RefFinding, RefsDocument, RefusedRef, RemoteItem,
    RemoteListDocument, RowState, ShowDirectoryDocument, ShowDocument, ShowFileDocument, StatusDocument, StopDocument,
    VerbError, WithheldItem,
};
pub use words::{Word, spelling};

pub use crate::model::operation::OperationKind;
