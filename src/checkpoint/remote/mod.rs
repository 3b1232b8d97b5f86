//! Other machines and other tools: sends and receives checkpoints, and makes a view for an ordinary git.

pub mod receive;
pub mod send;
pub mod view;
