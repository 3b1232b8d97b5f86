//! The lines of a file that differ between two of its versions.

use serde::{Deserialize, Serialize};

/// The lines of one file that differ; a binary file has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineCounts {
    /// Lines that only the new version has.
    pub plus: u64,
    /// Lines that only the old version has.
    pub minus: u64,
}
