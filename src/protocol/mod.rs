//! The line protocol, v1: one JSON object a line (rank 1). `docs/PROTOCOL.md` is its specification.
//!
//! Only translation: bytes to [`Request`], values to lines. Knows no engine and does no I/O but reading lines.

mod base64;
mod codec;
mod reply;
mod request;
mod runs;

pub use codec::{Line, LineReader};
pub use reply::{
    BaselineStatus, BeforeReply, CheckpointBlock, CheckpointStatus, DiffReply, Done, ErrorReply, HelloReply, List,
    ListItem, ListReply, NotHeld, PathItem, PlanLists, PreviewReply, RestoreReply, StatBlock, StepBlock, TargetBlock,
    WatcherWord, line, not_held_sentence,
};
pub use request::{
    After, Body, Classify, Create, Diff, Failure, Hello, Id, ListQuery, Request, ShellBefore, Show, Step, ToolBefore,
    Turn, parse,
};
pub use runs::{CheckpointType, CodonEnd, CodonStart, Rollback, RunEnd, RunFork, RunStart, RunStatus, To};

/// The only version there is.
pub const VERSION: u64 = 1;
