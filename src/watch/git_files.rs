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

/// Returns the directory whose whole content a changed rule file may show or hide. A changed index shows single paths,
/// and only a reader of it can tell which.
pub(super) fn ruled_by(path: &RelPath) -> Option<RelPath> {
    if path.name() == b".gitignore" {
        return path.parent();
    }
    let exclude = inside(path) == Some(b"info/exclude");
    exclude.then(|| path.parent()?.parent()?.parent()).flatten()
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
        for (text, concerned, admitted, ruled) in [
            ("a/b", true, None, None),
            ("a/.gitignore", true, None, Some("a")),
            (".gitignore", true, None, Some(".")),
            ("a/.git", true, Some(true), None),
            (".git/index", true, Some(false), None),
            (".git/index.lock", false, Some(false), None),
            (".git/info", true, Some(true), None),
            (".git/objects/ab", false, Some(false), None),
            (".git/info/exclude", true, Some(false), Some(".")),
            ("s/t/.git/info/exclude", true, Some(false), Some("s/t")),
            ("x.git/index.lock", true, None, None),
        ] {
            let path = RelPath::parse(text.as_bytes()).unwrap();
            let found = (concerns(&path), admits(&path), ruled_by(&path).map(|dir| dir.display()));
            assert_eq!(found, (concerned, admitted, ruled.map(str::to_owned)), "{text}");
        }
    }
}
