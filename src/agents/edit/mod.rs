//! Editing a person's configuration without touching what is theirs: comments, order, indentation, line ends.
//!
//! An edit puts in one piece of text, right after something of theirs. Its form tells what was there before: a list or object
//! that piton made has white space before its closing bracket, and one that was there empty has none. So an edit takes out
//! exactly what was put in, without a record of it.

pub(super) mod json;
pub(super) mod scan;
pub(super) mod toml;
pub(super) mod yaml;
