//! Plain vocabulary of the whole crate: ids, paths, trees, effects, policies. No I/O, no clock (rank 0).

pub mod binary;
pub mod build;
pub mod change;
pub mod checkpoint;
pub mod cost;
pub mod coverage;
pub mod effect;
pub mod id;
pub mod json;
pub mod manifest;
pub mod meta;
pub mod name;
pub mod number;
pub mod operation;
pub mod path;
pub mod policy;
pub mod redact;
pub mod run;
pub mod sink;
pub mod sought;
pub mod stamp;
pub mod text;
pub mod tree;
pub mod turn;
pub mod weight;
pub mod words;
