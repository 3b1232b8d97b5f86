//! The labelled sets, hostile lines, tools, and cases that once went wrong.

mod beginnings;
mod cases;
pub(super) mod evaluation;
mod families;
mod field;
mod git;
mod hostile;
mod lines;
mod oracle;
mod piton;
mod scripts;
mod second_parser;
mod tools;

use std::sync::LazyLock;

use super::Classifier;

/// One table for all tests: compiling it takes longer than any line.
pub(super) fn shared() -> &'static Classifier {
    static SHARED: LazyLock<Classifier> = LazyLock::new(Classifier::embedded);
    &SHARED
}
