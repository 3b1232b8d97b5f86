//! Ignore rules per directory, as a list from the nearest directory up.

use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::model::path::RelPath;

/// The rules of one directory, and those of the directories above it.
pub struct Level {
    base: RelPath,
    matcher: Gitignore,
    parent: Option<Arc<Level>>,
}

/// The rules' word on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// No rule matches.
    Unnamed,
    /// A rule leaves it out.
    Ignore,
    /// A `!` rule brings it back.
    Include {
        /// True if the rule's text contains the path's own name, not only wildcards.
        literal: bool,
    },
}

impl Level {
    /// Puts the rules of the directory `base` on top of `parent`; later lines are stronger. Lines that are no valid
    /// pattern are passed over, as git does. Without any pattern the result is `parent` itself.
    pub fn push<'a>(
        parent: Option<Arc<Level>>,
        base: &RelPath,
        lines: impl Iterator<Item = &'a str>,
    ) -> Option<Arc<Level>> {
        let mut builder = GitignoreBuilder::new("");
        for line in lines {
            // An invalid pattern matches nothing in git either.
            let _ = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(matcher) if !matcher.is_empty() => Some(Arc::new(Level { base: base.clone(), matcher, parent })),
            // Patterns too large to compile leave out nothing: to capture too much is the safe side.
            Ok(_) | Err(_) => parent,
        }
    }

    /// Returns what the nearest matching rule says of `path`, which must lie below `base`. Its parents must have been
    /// asked before: below an ignored directory nothing is included again.
    pub fn ruling(level: Option<&Arc<Level>>, path: &RelPath, is_dir: bool) -> Ruling {
        let mut current = level;
        while let Some(level) = current {
            match level.matcher.matched(level.relative(path).to_path(), is_dir) {
                Match::None => current = level.parent.as_ref(),
                Match::Ignore(_) => return Ruling::Ignore,
                Match::Whitelist(glob) => {
                    let name = String::from_utf8_lossy(path.name());
                    return Ruling::Include { literal: glob.original().contains(name.as_ref()) };
                }
            }
        }
        Ruling::Unnamed
    }

    fn relative<'a>(&self, path: &'a RelPath) -> Relative<'a> {
        let skip = if self.base.is_root() { 0 } else { self.base.as_bytes().len() + 1 };
        Relative(path.as_bytes().get(skip..).unwrap_or_default())
    }
}

/// The part of a path below a level's directory.
struct Relative<'a>(&'a [u8]);

impl<'a> Relative<'a> {
    fn to_path(&self) -> &'a std::path::Path {
        use std::os::unix::ffi::OsStrExt;
        std::path::Path::new(std::ffi::OsStr::from_bytes(self.0))
    }
}

/// Returns what is wrong with a pattern, if it is not valid.
pub fn fault(pattern: &str) -> Option<String> {
    let mut builder = GitignoreBuilder::new("");
    match builder.add_line(None, pattern).map(|builder| builder.build()) {
        Ok(Ok(_)) => None,
        Ok(Err(error)) | Err(error) => Some(error.to_string()),
    }
}

/// Returns the effective lines of an ignore file: without byte-order mark, comments, blank lines and carriage returns.
/// Bytes that are not UTF-8 are replaced.
pub fn lines(content: &[u8]) -> Vec<String> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    String::from_utf8_lossy(content)
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn push(parent: Option<Arc<Level>>, base: &str, text: &str) -> Option<Arc<Level>> {
        let lines = lines(text.as_bytes());
        Level::push(parent, &path(base), lines.iter().map(String::as_str))
    }

    #[test]
    fn the_nearest_and_latest_rule_wins() {
        let root = push(None, "", "# comment\n*.log\r\n!keep.log\n/only-here\nbuild/\ndoc/*.txt\n");
        let sub = push(root.clone(), "sub", "!a.log\nkeep.log\n");
        let include = Ruling::Include { literal: true };
        let table = [
            (&root, "x.log", false, Ruling::Ignore),
            (&root, "keep.log", false, include),
            (&root, "deep/x.log", false, Ruling::Ignore),
            (&root, "only-here", false, Ruling::Ignore),
            (&root, "deep/only-here", false, Ruling::Unnamed),
            (&root, "build", true, Ruling::Ignore),
            (&root, "build", false, Ruling::Unnamed),
            (&root, "doc/a.txt", false, Ruling::Ignore),
            (&root, "doc/deep/a.txt", false, Ruling::Unnamed),
            (&sub, "sub/a.log", false, include),
            (&sub, "sub/b.log", false, Ruling::Ignore),
            (&sub, "sub/keep.log", false, Ruling::Ignore),
        ];
        for (level, text, is_dir, expected) in table {
            assert_eq!(Level::ruling(level.as_ref(), &path(text), is_dir), expected, "{text}");
        }
    }

    #[test]
    fn wildcard_includes_are_not_literal() {
        let level = push(None, "", "*\n!*/\n");
        let ruling = Level::ruling(level.as_ref(), &path("node_modules"), true);
        assert_eq!(ruling, Ruling::Include { literal: false });
    }

    #[test]
    fn bad_lines_and_bytes_do_not_disturb_the_others() {
        let text = b"\xef\xbb\xbf*.o\n[z-a]\n\xff\xfe\n   \n*.a\n";
        let lines = lines(text);
        assert_eq!(lines.len(), 4);
        let level = Level::push(None, &RelPath::root(), lines.iter().map(String::as_str));
        for name in ["x.o", "x.a"] {
            assert_eq!(Level::ruling(level.as_ref(), &path(name), false), Ruling::Ignore);
        }
        assert!(Level::push(None, &RelPath::root(), ["# x"].into_iter()).is_none());
        assert!(fault("[z-a]").is_some() && fault("*.a").is_none());
    }
}
