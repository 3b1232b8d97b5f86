//! The directory in which an administrator keeps the settings of programs.

use std::path::PathBuf;

/// Returns the directory; in tests that of `PITON_TEST_ETC`. Only builds for debugging look at the variable.
pub fn etc() -> PathBuf {
    let named = cfg!(debug_assertions).then(|| std::env::var_os("PITON_TEST_ETC")).flatten();
    named.map_or_else(|| PathBuf::from("/etc"), PathBuf::from)
}
