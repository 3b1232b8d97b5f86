//! Ignore rules, read as git reads them.
//!
//! Strongest first: configured excludes, the nearest `.gitignore`, the ones above it, `.git/info/exclude`. The user's
//! global git ignore never applies. Once a directory is ignored nothing below it can be re-included.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::model::coverage::Pattern;
use crate::model::path::RelPath;

/// Why a path is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// By a configured exclude.
    Configured,
    /// By a `.gitignore` or `.git/info/exclude`.
    Git,
}

/// The compiled patterns of one file.
#[derive(Clone, Debug)]
pub struct Matcher {
    base: RelPath,
    patterns: Gitignore,
}

impl Matcher {
    /// Compiles the content of an ignore file that stands in `base`; `None` when it holds no pattern. Lines that are no
    /// valid pattern are passed over, as git does.
    pub fn new(base: &RelPath, content: &[u8]) -> Option<Matcher> {
        let mut builder = GitignoreBuilder::new("");
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        for line in String::from_utf8_lossy(content).lines() {
            if let Err(error) = builder.add_line(None, line) {
                tracing::debug!(%error, base = %base.display(), "an ignore pattern is passed over");
            }
        }
        let patterns = builder.build().ok().filter(|patterns| !patterns.is_empty())?;
        Some(Matcher { base: base.clone(), patterns })
    }

    /// `Some(true)`: ignored; `Some(false)`: re-included; `None`: not spoken of.
    pub fn decide(&self, path: &RelPath, is_dir: bool) -> Option<bool> {
        if !path.starts_with(&self.base) || *path == self.base {
            return None;
        }
        let inside =
            if self.base.is_root() { path.as_bytes() } else { &path.as_bytes()[self.base.as_bytes().len() + 1..] };
        let relative = std::path::Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(inside));
        match self.patterns.matched(relative, is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

/// The patterns of an ignore file that do something: no comments, no blank lines.
pub fn effective_patterns(base: &RelPath, content: &[u8]) -> Vec<Pattern> {
    let text = String::from_utf8_lossy(content).into_owned();
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| Pattern { base: base.clone(), text: line.to_owned() }).collect()
}

/// The rules that hold for a whole capture; `.gitignore` files come on top, directory by directory.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    configured: Option<Matcher>,
    excludes: Vec<Matcher>,
}

impl Rules {
    /// From configured excludes and the patterns of `info/exclude` files.
    pub fn new(configured: &[String], excludes: &[Pattern]) -> Rules {
        let mut rules = Rules {
            configured: Matcher::new(&RelPath::root(), configured.join("\n").as_bytes()),
            excludes: Vec::new(),
        };
        let mut bases: Vec<&RelPath> = excludes.iter().map(|pattern| &pattern.base).collect();
        bases.dedup();
        for base in bases {
            let lines: Vec<&str> =
                excludes.iter().filter(|pattern| pattern.base == *base).map(|pattern| pattern.text.as_str()).collect();
            rules.excludes.extend(Matcher::new(base, lines.join("\n").as_bytes()));
        }
        rules
    }

    /// Adds the patterns of a nested repository's `info/exclude`.
    pub fn add_exclude(&mut self, matcher: Matcher) {
        self.excludes.push(matcher);
    }

    /// Whether a path is ignored, given the `.gitignore` files above it from the root down. Its parent directories are
    /// taken to be not ignored.
    pub fn decide(&self, levels: &[&Matcher], path: &RelPath, is_dir: bool) -> Option<Ignored> {
        if let Some(decision) = self.configured.as_ref().and_then(|matcher| matcher.decide(path, is_dir)) {
            return decision.then_some(Ignored::Configured);
        }
        let nearest = levels.iter().rev().copied().chain(self.excludes.iter().rev());
        let decision = nearest.filter_map(|matcher| matcher.decide(path, is_dir)).next();
        decision.unwrap_or(false).then_some(Ignored::Git)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn nearest_wins_and_configured_is_strongest() {
        let root = Matcher::new(&path(""), b"*.log\n/only-root\nbuild/\n# comment\n").unwrap();
        let sub = Matcher::new(&path("sub"), b"!keep.log\n*.tmp\n").unwrap();
        let rules = Rules::new(
            &["/data".to_owned()],
            &[Pattern { base: path(""), text: "local.txt".into() }, Pattern { base: path(""), text: "*.tmp".into() }],
        );
        let table = [
            ("a.log", false, Some(Ignored::Git)),
            ("sub/keep.log", false, None),
            ("sub/other.log", false, Some(Ignored::Git)),
            ("only-root", false, Some(Ignored::Git)),
            ("sub/only-root", false, None),
            ("build", true, Some(Ignored::Git)),
            ("build", false, None),
            ("local.txt", false, Some(Ignored::Git)),
            ("data", true, Some(Ignored::Configured)),
            ("sub/data", true, None),
        ];
        for (text, is_dir, expected) in table {
            assert_eq!(rules.decide(&[&root, &sub], &path(text), is_dir), expected, "{text}");
        }
    }

    #[test]
    fn comments_and_blanks_are_no_rules() {
        assert!(Matcher::new(&path(""), b"# only\n\n").is_none());
        assert_eq!(effective_patterns(&path(""), b"# c\n\n*.o\n").len(), 1);
    }
}
