//! Other machines and other tools: sends and receives checkpoints, and makes a view for an ordinary git.

pub mod receive;
mod secrets;
pub mod send;
pub mod view;
