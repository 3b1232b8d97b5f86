//! Documents of `piton store` and `piton adopt`, which only the command line prints.

use serde::{Deserialize, Serialize};

/// `piton store status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreDocument {
    /// The directory of piton's home.
    pub home: String,
    /// Bytes of all checkpoints, each object once; `null` if they were never counted.
    pub stored: Option<u64>,
    /// Bytes of objects that several workspaces have; `null` likewise.
    pub shared: Option<u64>,
    /// The time of that count, RFC 3339; `null` likewise.
    pub counted: Option<String>,
    /// The most bytes that all workspaces may take together.
    pub cap: u64,
    /// Bytes by which those checkpoints that stay in any case are over the cap.
    pub over: u64,
    /// The number of packs.
    pub packs: u64,
    /// Bytes of packs and of what belongs to them.
    pub pack_bytes: u64,
    /// The number of loose objects.
    pub loose: u64,
    /// Bytes of these.
    pub loose_bytes: u64,
    /// All workspaces, the one that was touched last first.
    pub workspaces: Vec<StoredWorkspace>,
}

/// `piton store list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreListDocument {
    /// All workspaces, the one that was touched last first.
    pub workspaces: Vec<StoredWorkspace>,
}

/// One workspace of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWorkspace {
    /// Its id.
    pub id: String,
    /// Its directory.
    pub path: String,
    /// The time when it was first seen, RFC 3339.
    pub since: String,
    /// The clients that have opened runs there.
    pub clients: Vec<String>,
    /// The number of runs.
    pub runs: u64,
    /// The number of checkpoints.
    pub checkpoints: u64,
    /// The number of refs that were fetched or adopted.
    pub fetched: u64,
    /// Stored bytes that only it has; `null` if they were never counted.
    pub own: Option<u64>,
    /// Stored bytes that other workspaces have too; `null` likewise.
    pub shared: Option<u64>,
    /// The time of its newest checkpoint, RFC 3339; `null` if it has none.
    pub touched: Option<String>,
    /// True if somebody guards it now.
    pub guarded: bool,
    /// `live`, `orphan`, `unmounted`, `moved` or `unknown`.
    pub standing: String,
    /// The reason for that.
    pub reason: String,
    /// The directory that it is now, if it was moved and found.
    pub moved_to: Option<String>,
    /// The directory that its history belonged to before the last adoption.
    pub was: Option<String>,
    /// The directory of the workspace that it is a part of.
    pub part_of: Option<String>,
}

/// `piton store clear`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearDocument {
    /// The workspaces whose histories go.
    pub workspaces: Vec<ClearItem>,
    /// Bytes that became free.
    pub freed: u64,
    /// The reason why the store left something for another time.
    pub left: Option<String>,
}

/// One workspace of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearItem {
    /// Its directory.
    pub path: String,
    /// The number of its checkpoints.
    pub checkpoints: u64,
    /// Stored bytes that only it has; `null` if they were never counted.
    pub own: Option<u64>,
    /// True if the history is gone.
    pub cleared: bool,
}

/// `piton store move`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveDocument {
    /// The directory that the home was in.
    pub from: String,
    /// The directory that it goes to.
    pub to: String,
    /// Bytes of all its files.
    pub bytes: u64,
    /// True if they have to be copied to another file system.
    pub copy: bool,
    /// True if it was moved.
    pub moved: bool,
}

/// `piton adopt`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptDocument {
    /// The directory that the history belonged to.
    pub from: String,
    /// The directory that it goes to, or becomes a part of.
    pub to: String,
    /// `moves`, `joins`, `goes-back` or `leaves`.
    pub change: String,
    /// The number of its checkpoints.
    pub checkpoints: u64,
    /// The number of checkpoints that were taken in the new directory, and stay beside the history.
    pub beside: u64,
    /// True if it was done.
    pub done: bool,
}
