//! Unified diffs of single files, through libgit2.

use git2::{DiffOptions, Patch};

use crate::error::{Code, Error, Result};

/// The differences between two contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// Lines that only the new content has; 0 for binary files.
    pub plus: u64,
    /// Lines that only the old content has; 0 for binary files.
    pub minus: u64,
    /// True if git takes one side for binary: the text is a single sentence then.
    pub binary: bool,
    /// A unified diff with git's header; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Returns the patch from `old` to `new`; `None` is an absent file.
///
/// # Errors
/// `internal` when libgit2 cannot compare them.
pub fn between(old: Option<&[u8]>, new: Option<&[u8]>, path: &str) -> Result<FilePatch> {
    let mut options = DiffOptions::new();
    options.context_lines(3);
    let name = |side: Option<&[u8]>| side.map(|_| std::path::Path::new(path));
    let mut patch =
        Patch::from_buffers(old.unwrap_or(b""), name(old), new.unwrap_or(b""), name(new), Some(&mut options))
            .map_err(git_error)?;
    let binary = patch.delta().flags().is_binary();
    let (_, plus, minus) = patch.line_stats().map_err(git_error)?;
    let header = match (old, new) {
        (None, _) => format!("diff --git a/{path} b/{path}\nnew file\n"),
        (_, None) => format!("diff --git a/{path} b/{path}\ndeleted file\n"),
        _ => format!("diff --git a/{path} b/{path}\n"),
    };
    let text = if binary {
        format!("{header}Binary files differ\n")
    } else {
        let buffer = patch.to_buf().map_err(git_error)?;
        format!("{header}{}", body(&String::from_utf8_lossy(&buffer)))
    };
    Ok(FilePatch { plus: plus as u64, minus: minus as u64, binary, text })
}

fn git_error(error: git2::Error) -> Error {
    Error::new(Code::Internal, format!("comparing texts failed: {}", error.message())).caused_by(error)
}

/// Returns the patch without libgit2's own header, whose blob ids would name objects that do not exist.
fn body(text: &str) -> &str {
    let at = text.find("--- ").filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
    at.map_or("", |at| &text[at..])
}
