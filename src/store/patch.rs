//! Unified diffs of single files, through libgit2.

use git2::{DiffOptions, Patch};

use crate::error::{Code, Error, Result};
use crate::model::line_counts::LineCounts;
use crate::model::text::git_quoted;

/// The differences between two contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// The lines that differ.
    pub lines: LineCounts,
    /// True if git takes one side for binary: the text is a single sentence then.
    pub binary: bool,
    /// A unified diff with git's header; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Returns the patch from `old` to `new` of the file with this name; `None` is an absent file.
///
/// # Errors
/// `internal` when libgit2 cannot compare them.
pub fn between(old: Option<&[u8]>, new: Option<&[u8]>, path: &[u8]) -> Result<FilePatch> {
    let mut options = DiffOptions::new();
    options.context_lines(3);
    // libgit2's own names are not taken: it quotes what a terminal shows well.
    let name = |side: Option<&[u8]>| side.map(|_| std::path::Path::new("f"));
    let mut patch =
        Patch::from_buffers(old.unwrap_or(b""), name(old), new.unwrap_or(b""), name(new), Some(&mut options))
            .map_err(git_error)?;
    let binary = patch.delta().flags().is_binary();
    let (_, plus, minus) = patch.line_stats().map_err(git_error)?;
    let header = patch_header(
        path,
        match (old, new) {
            (None, _) => "new file\n",
            (_, None) => "deleted file\n",
            _ => "",
        },
    );
    let text = if binary {
        format!("{header}Binary files differ\n")
    } else {
        let buffer = patch.to_buf().map_err(git_error)?;
        let hunks = hunks(&String::from_utf8_lossy(&buffer)).to_owned();
        // Nothing stands between the names of an empty file.
        let names = if hunks.is_empty() { String::new() } else { names(path) };
        format!("{header}{names}{hunks}")
    };
    Ok(FilePatch { lines: LineCounts { plus: plus as u64, minus: minus as u64 }, binary, text })
}

fn git_error(error: git2::Error) -> Error {
    Error::new(Code::Internal, format!("comparing texts failed: {}", error.message())).caused_by(error)
}

/// Returns the first lines of a file's patch: its name, and what became of it.
pub fn patch_header(path: &[u8], what: &str) -> String {
    format!("diff --git {} {}\n{what}", side(b"a/", path), side(b"b/", path))
}

fn names(path: &[u8]) -> String {
    format!("--- {}\n+++ {}\n", side(b"a/", path), side(b"b/", path))
}

fn side(side: &[u8], path: &[u8]) -> String {
    git_quoted(&[side, path].concat())
}

/// Returns the patch without libgit2's own header, whose blob ids would name objects that do not exist.
fn hunks(text: &str) -> &str {
    let at = text.find("@@ ").filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
    at.map_or("", |at| &text[at..])
}
