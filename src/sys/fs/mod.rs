//! Files and directories: opened component by component, replaced whole, locked, removed.

pub mod aside;
pub mod deferred;
pub mod dir;
pub mod durable;
pub mod lock;
pub mod mark;
pub mod space;
pub mod stat;
