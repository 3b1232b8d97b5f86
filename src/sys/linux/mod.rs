//! The calls that only Linux has. No file outside of this directory names its system calls, its `/proc` or its
//! constants.

pub mod beneath;
pub(super) mod clock;
pub mod descriptor;
pub(super) mod dir;
pub mod holders;
pub mod inotify;
pub mod lease;
pub mod listing;
pub(super) mod memory;
pub mod mount;
pub mod nameless;
pub(super) mod process;
pub mod processes;
pub mod share;
pub mod writeback;
