//! The shared bare repository of all workspaces (rank 2). libgit2 lives here and nowhere else: it compares texts, packs
//! objects in memory against each other, and reads the user's own configuration of git. It never touches the store.
//!
//! A valid bare git repository at `$PITON_HOME/store.git`: ordinary git reads it. Objects are written by our own loose and
//! pack writers (`batch`) and read by our own reader (`objects`), refs by compare-and-swap, and refs are listed by our own reader, which
//! reports broken ones. No configuration of git is read, and no `git` binary is run.
//!
//! *Invariant:* an object is durable before a ref names it. *Invariant:* every writer holds the store lock shared from
//! its first "already there" until its ref has moved. A process that deletes objects takes it exclusively and changes
//! the epoch.

mod batch;
mod census;
mod commit;
mod consolidate;
mod copies;
mod damage;
mod debris;
mod deflate;
mod deltas;
mod derive;
mod entry;
pub mod foreign;
pub mod foreign_objects;
mod hash;
mod header;
pub mod health;
mod holes;
mod index;
mod inventory;
mod late;
mod layout;
mod lazy;
mod levels;
pub mod log;
mod loose;
mod mark;
mod newcomers;
mod objects;
mod pack;
mod pack_files;
mod packed_refs;
mod packing;
mod packs;
mod patch;
mod present;
mod quarantine;
mod reader;
mod ready;
mod recompress;
mod recompression;
mod ref_name;
mod refs;
mod repository;
mod stock;
mod upkeep;
mod writable;

pub use batch::{Batch, BatchStats, Landing, NewCommit};
pub use census::{Census, RefCounts};
pub use commit::Commit;
pub use consolidate::{BOUNDS, BRIEF, Bounds};
pub use copies::EachCopy;
pub use holes::Holes;
pub use layout::FSCK_IGNORED;
pub use log::Log;
pub use mark::{Charges, MarkedRoot, Marks};
pub use patch::{FilePatch, between, patch_header};
pub use quarantine::{Arrival, Quarantine};
pub use reader::BlobReader;
pub use recompress::{COMMAND, IDLE, Slice};
pub use ref_name::RefName;
pub use refs::{RefEntry, RefMarks};
pub use repository::Store;
pub use upkeep::Upkept;

#[cfg(test)]
mod tests;
