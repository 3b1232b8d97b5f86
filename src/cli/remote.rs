//! Remotes as they are typed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::error::{Code, Error, IoContext, Result};

/// Returns a remote as git needs it: a path is made absolute, since git runs in another working directory.
pub(super) fn remote(typed: &OsStr) -> Result<OsString> {
    if typed.is_empty() || typed.to_string_lossy().starts_with('-') {
        return Err(Error::new(Code::BadRequest, "not a valid remote")
            .path(typed)
            .hint("give an address (ssh://…, https://…, host:path) or a path"));
    }
    let path = Path::new(typed);
    if path.exists() {
        return path.canonicalize().map(OsString::from).at("resolving", path);
    }
    Ok(typed.to_owned())
}
