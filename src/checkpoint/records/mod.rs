//! The records of workspaces: whose history is whose, where it lies, and checks of it.

pub mod health;
pub mod home;
mod identity;
pub(crate) mod lock;
pub mod mishaps;
pub mod state;
pub mod validate;
pub mod workspace;
