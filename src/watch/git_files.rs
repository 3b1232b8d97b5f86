//! The part of a `.git` that is watched: the files that rule what a capture looks at, and nothing else.

use crate::model::path::RelPath;

/// Tells whether a change of `path` matters: everything outside of `.git`, and inside of it the index, `info/exclude`
/// and the directories that hold them.
pub(super) fn concerns(path: &RelPath) -> bool {
    match inside(path) {
        None => true,
        Some(rest) => matches!(rest, b"" | b"index" | b"info" | b"info/exclude"),
    }
}

/// Tells whether the directory `path` is to be watched, whatever the rules say: `Some` for a `.git` and all below it.
pub(super) fn admits(path: &RelPath) -> Option<bool> {
    inside(path).map(|rest| matches!(rest, b"" | b"info"))
}

/// Returns what follows the first `.git` of a path.
fn inside(path: &RelPath) -> Option<&[u8]> {
    let bytes = path.as_bytes();
    let mut at = 0;
    for name in path.components() {
        let end = at + name.len();
        if name == b".git" {
            return Some(bytes.get(end + 1..).unwrap_or_default());
        }
        at = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_of_git_only_rule_files_matter() {
        for (text, concerned, admitted) in [
            ("a/b", true, None),
            ("a/.gitignore", true, None),
            ("a/.git", true, Some(true)),
            (".git/index", true, Some(false)),
            (".git/index.lock", false, Some(false)),
            (".git/info", true, Some(true)),
            (".git/objects/ab", false, Some(false)),
            (".git/info/exclude", true, Some(false)),
            ("x.git/index.lock", true, None),
        ] {
            let path = RelPath::parse(text.as_bytes()).unwrap();
            assert_eq!((concerns(&path), admits(&path)), (concerned, admitted), "{text}");
        }
    }
}
