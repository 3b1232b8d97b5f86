//! A shell scanner of our own: one pass, linear, bounded in depth, words and bytes, never failing.
//!
//! It reads the shell people and agents really write (POSIX with the bash, zsh and ksh additions that occur in
//! practice) into a small tree: lists of pipelines of simple and compound commands. It steps over text that it cannot
//! read, and sets [`Bounds::partial`]. A line over the limits ends the scan and sets [`Bounds::overflow`].
//!
//! Limits: it expands nothing (see `super::expand`), and it runs no alias. Bad syntax gives a best effort, never an error.

mod command;
mod compound;
mod dollar;
mod heredoc;
mod scanner;
mod tree;
mod word;

#[cfg(test)]
mod tests;

pub(super) use command::assignment;
pub(super) use dollar::closing_brace;
pub(super) use scanner::{Bounds, TextPlace, scan};
pub(super) use tree::{
    Assignment, Change, Compound, CompoundKind, Part, Pipeline, PipelineStage, Redirect, RedirectKind, Script, Simple,
    Span, Word,
};
