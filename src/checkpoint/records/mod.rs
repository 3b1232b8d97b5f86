//! The records of workspaces: the directory of each history, its files, and checks of them.

mod abandoned;
pub mod action_log;
pub mod action_window;
mod append_lock;
pub mod doors;
pub(crate) mod framed;
pub mod ground;
pub mod health;
pub mod home;
pub(crate) mod identity;
mod interval_line;
pub mod leftovers;
pub(crate) mod lock;
pub mod marks;
pub mod mishaps;
pub mod pins;
pub mod place;
pub mod process_names;
pub(crate) mod read_position;
pub mod repositories;
pub mod state;
pub mod unguarded;
pub mod validate;
pub mod window_log;
pub mod windows;
pub mod workspace;
