//! The operating system: locks, durable files, directories opened component by component, clocks (rank 0).

pub mod child;
pub mod clock;
pub mod dir;
pub mod durable;
pub mod lease;
pub mod lock;
pub mod memory;
pub mod mount;
pub mod pipe;
pub mod process;
pub mod remains;
pub mod room;
