//! piton, the checkpoint sidecar for coding agents.
//!
//! It stands beside an agent, takes a checkpoint into a shadow git store before anything is destroyed, warns of what no
//! checkpoint can undo, and brings back exactly what is wanted back. Modules are ranked; `docs/ARCHITECTURE.md` has the
//! table and `tests/tidy` holds it.

#![deny(unsafe_code)]

pub mod agents;
pub mod checkpoint;
pub mod classify;
pub mod cli;
pub mod doors;
pub mod engine;
pub mod error;
pub mod filter;
pub mod git;
pub mod mcp;
pub mod model;
pub mod protocol;
pub mod settings;
pub mod shell;
pub mod store;
pub mod sys;
pub mod watch;
pub mod worktree;

/// Numbers for edits at random.
#[cfg(test)]
#[path = "../tests/blackbox/dice.rs"]
mod dice;

/// Files that are written through a mapping.
#[cfg(test)]
#[expect(unsafe_code, reason = "no safe library maps files for writing")]
#[path = "../tests/blackbox/mapping.rs"]
mod mapping;
