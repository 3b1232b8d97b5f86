//! The calls that only Linux has. Nothing outside of this directory names its system calls, its `/proc` or its constants.

pub mod beneath;
pub mod clock;
pub mod descriptor;
pub mod dir;
pub mod inotify;
pub mod lease;
pub mod listing;
pub mod memory;
pub mod mount;
pub mod nameless;
pub mod process;
pub mod writeback;
