//! Editing a person's configuration without touching what is theirs: comments, order, indentation, line ends.
//!
//! What is put in is always one piece of text right after something of theirs, and its form tells what was there before: a list
//! or object that piton made has white space before its closing bracket, one that was there empty has none. So what is taken out is
//! exactly what was put in, without a record of it.

pub mod json;
pub mod scan;
pub mod yaml;
