//! Paths relative to a workspace: bytes with `/`, never absolute, never with `.`, `..` or empty components.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Code, Error, Result};

/// A path relative to the workspace's root; empty means the root itself. Ordered by bytes. Clones share the bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RelPath(Arc<[u8]>);

/// Paths up to this length are put together without a buffer on the heap.
const SHORT: usize = 256;

impl RelPath {
    /// Returns the workspace's root.
    pub fn root() -> RelPath {
        RelPath::default()
    }

    /// Tells whether one is a clone of the other, without reading them.
    pub fn shares_bytes(&self, other: &RelPath) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Parses a relative path as a person wrote it: `./` and trailing `/` are dropped.
    ///
    /// # Errors
    /// `bad-path` for absolute paths, `..` components and NUL bytes.
    pub fn parse(text: &[u8]) -> Result<RelPath> {
        let refuse = |why: &str| {
            Err(Error::new(Code::BadPath, format!("`{}` {why}", String::from_utf8_lossy(text).escape_debug()))
                .hint("give a path inside the workspace, relative to its root"))
        };
        if text.starts_with(b"/") {
            return refuse("is absolute");
        }
        if text.contains(&0) {
            return refuse("contains a NUL byte");
        }
        let mut plain = true;
        for component in text.split(|byte| *byte == b'/') {
            match component {
                b"" | b"." => plain = false,
                b".." => return refuse("leaves the workspace"),
                _ => {}
            }
        }
        if plain {
            return Ok(RelPath(text.into()));
        }
        let names = text.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        Ok(RelPath(names.collect::<Vec<_>>().join(&b'/').into()))
    }

    /// From an operating-system path that is already relative to the root.
    ///
    /// # Errors
    /// As [`RelPath::parse`].
    pub fn from_path(path: &Path) -> Result<RelPath> {
        RelPath::parse(path.as_os_str().as_bytes())
    }

    /// Returns the path of `name` inside this directory. `name` must be one component.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> RelPath {
        debug_assert!(!name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..");
        if self.is_root() {
            return RelPath(name.into());
        }
        let (dir, total) = (self.0.len(), self.0.len() + 1 + name.len());
        if total > SHORT {
            return RelPath([&self.0, name].join(&b'/').into());
        }
        let mut bytes = [0; SHORT];
        bytes[..dir].copy_from_slice(&self.0);
        bytes[dir] = b'/';
        bytes[dir + 1..total].copy_from_slice(name);
        RelPath(bytes[..total].into())
    }

    /// Returns whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the directory that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<RelPath> {
        if self.is_root() {
            return None;
        }
        let cut = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Some(RelPath(self.0[..cut].into()))
    }

    /// Returns the last component; empty for the root.
    pub fn name(&self) -> &[u8] {
        self.0.iter().rposition(|byte| *byte == b'/').map_or(&self.0[..], |slash| &self.0[slash + 1..])
    }

    /// Returns the components from the root down.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/').filter(|component| !component.is_empty())
    }

    /// Returns whether this path is `ancestor` or lies inside it.
    pub fn starts_with(&self, ancestor: &RelPath) -> bool {
        ancestor.is_root()
            || (self.0.starts_with(&ancestor.0) && matches!(self.0.get(ancestor.0.len()), None | Some(b'/')))
    }

    /// Returns a bound for ordered sets: everything inside this directory is greater, with nothing else in between.
    #[must_use]
    pub fn inside_bound(&self) -> RelPath {
        if self.is_root() {
            return RelPath::root();
        }
        RelPath([&self.0[..], b"/"].concat().into())
    }

    /// As an operating-system path, relative.
    pub fn to_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// As an absolute path below `root`.
    pub fn under(&self, root: &Path) -> PathBuf {
        if self.is_root() { root.to_owned() } else { root.join(self.to_path()) }
    }

    /// For people: quoted as git does where it must be, `.` for the root.
    pub fn display(&self) -> String {
        if self.is_root() {
            return ".".to_owned();
        }
        crate::model::text::git_quoted(&self.0)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_normalises_or_refuses() {
        let good: &[(&str, &str)] = &[("a/b", "a/b"), ("./a//b/", "a/b"), ("", ""), (".", ""), ("a/./b", "a/b")];
        for (text, expected) in good {
            assert_eq!(RelPath::parse(text.as_bytes()).unwrap().as_bytes(), expected.as_bytes());
        }
        for bad in ["/a", "..", "a/../b", "a\0b"] {
            assert_eq!(RelPath::parse(bad.as_bytes()).unwrap_err().code(), Code::BadPath, "{bad:?}");
        }
    }

    #[test]
    fn ancestors_are_whole_components() {
        let path = RelPath::parse(b"src/lib.rs").unwrap();
        for (ancestor, expected) in [("", true), ("src", true), ("sr", false), ("src/lib.rs", true), ("src/lib", false)]
        {
            assert_eq!(path.starts_with(&RelPath::parse(ancestor.as_bytes()).unwrap()), expected, "{ancestor}");
        }
        assert_eq!(path.parent().unwrap().as_bytes(), b"src");
        assert_eq!(path.name(), b"lib.rs");
        assert_eq!(RelPath::root().parent(), None);
    }
}
