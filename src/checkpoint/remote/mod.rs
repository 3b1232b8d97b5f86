//! Other machines and other tools: sending checkpoints, receiving them, and a view for an ordinary git.

pub mod receive;
pub mod send;
pub mod view;
