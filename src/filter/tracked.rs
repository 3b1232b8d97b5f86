//! Tracked-file patterns: what typed checkpoints record. Hankweave's dialect.
//!
//! Globs where `*` stops at `/` and dot files match; `p` implies `p/**`; a leading `./` is dropped; `!p` subtracts
//! whatever the order; a list without any positive pattern matches nothing. An empty list tracks everything.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;

/// Compiled patterns.
#[derive(Clone, Debug)]
pub struct Tracked {
    /// `None`: everything.
    positive: Option<GlobSet>,
    negative: GlobSet,
}

impl Tracked {
    /// Compiles patterns; `read_only` inputs are always subtracted.
    ///
    /// # Errors
    /// `bad-request` naming the pattern that is not a glob.
    pub fn new(patterns: &[String], read_only: &[String]) -> Result<Tracked> {
        let (mut positive, mut negative) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let plain = strip(pattern);
            match plain.strip_prefix('!') {
                Some(subtracted) => add(&mut negative, strip(subtracted))?,
                None => add(&mut positive, plain)?,
            }
        }
        for pattern in read_only {
            add(&mut negative, strip(pattern))?;
        }
        let positive = if patterns.is_empty() { None } else { Some(set(&positive)?) };
        Ok(Tracked { positive, negative: set(&negative)? })
    }

    /// Returns what matches nothing.
    pub fn nothing() -> Tracked {
        Tracked { positive: Some(GlobSet::empty()), negative: GlobSet::empty() }
    }

    /// Returns whether nothing is narrowed.
    pub fn is_everything(&self) -> bool {
        self.positive.is_none() && self.negative.is_empty()
    }

    /// Returns whether only read-only inputs are left out.
    pub fn is_all_but_inputs(&self) -> bool {
        self.positive.is_none()
    }

    /// Returns whether a file is tracked.
    pub fn matches(&self, path: &RelPath) -> bool {
        let wanted = self.positive.as_ref().is_none_or(|set| set.is_match(path.to_path()));
        wanted && !self.negative.is_match(path.to_path())
    }
}

/// Returns true if a pattern subtracts: `!p`, `./!p`.
pub fn subtracts(pattern: &str) -> bool {
    strip(pattern).starts_with('!')
}

/// Returns the directories (or files) that contain everything that the positive ones of `patterns` can match: their
/// parts before the first special character. That is the root, an empty text, if a pattern begins with one.
pub fn literal_roots(patterns: &[String]) -> Vec<String> {
    let positive = patterns.iter().map(|pattern| strip(pattern)).filter(|pattern| !pattern.starts_with('!'));
    let literal = |component: &&str| !component.contains(['*', '?', '[', '{', '\\']);
    let root = |pattern: &str| {
        pattern.split('/').take_while(literal).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    };
    positive.map(root).collect()
}

fn strip(pattern: &str) -> &str {
    pattern.strip_prefix("./").unwrap_or(pattern)
}

/// Adds `pattern` and what lies below it.
fn add(set: &mut GlobSetBuilder, pattern: &str) -> Result<()> {
    let base = pattern.trim_end_matches('/');
    for text in [base.to_owned(), format!("{base}/**")] {
        let glob = GlobBuilder::new(&text).literal_separator(true).backslash_escape(true).build();
        set.add(glob.map_err(|error| bad(pattern, &error.kind().to_string()))?);
    }
    Ok(())
}

fn set(builder: &GlobSetBuilder) -> Result<GlobSet> {
    builder.build().map_err(|error| bad("tracked_files", &error.to_string()))
}

fn bad(pattern: &str, why: &str) -> Error {
    Error::new(Code::BadRequest, format!("`{pattern}` is not a pattern: {why}"))
        .field("tracked_files")
        .hint("see the pattern dialect in docs/CONFIG.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(patterns: &[&str], read_only: &[&str], path: &str) -> bool {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let tracked = Tracked::new(&owned(patterns), &owned(read_only)).unwrap();
        tracked.matches(&RelPath::parse(path.as_bytes()).unwrap())
    }

    #[test]
    fn the_dialect() {
        let table: &[(&[&str], &str, bool)] = &[
            (&[], "any/thing", true),
            (&["src/**/*.ts"], "src/a/b.ts", true),
            (&["src/**/*.ts"], "src/b.ts", true),
            (&["src/*.ts"], "src/a/b.ts", false),
            (&["*.ts"], "src/b.ts", false),
            (&["*"], ".hidden", true),
            (&["src"], "src/deep/file", true),
            (&["./src/"], "src/deep/file", true),
            (&["!src/gen", "src"], "src/gen/x", false),
            (&["src", "!src/gen"], "src/x", true),
            (&["!src/gen"], "src/x", false),
        ];
        for (patterns, path, expected) in table {
            assert_eq!(matching(patterns, &[], path), *expected, "{patterns:?} {path}");
        }
        for (pattern, expected) in [("!a", true), ("./!a", true), ("a!", false), ("./a", false)] {
            assert_eq!(subtracts(pattern), expected, "{pattern}");
        }
        let roots = literal_roots(&["./src/**/*.ts".into(), "!a".into(), "*.md".into(), "out/log.txt".into()]);
        assert_eq!(roots, ["src", "", "out/log.txt"]);
        assert!(!matching(&[], &["read_only_data_source/"], "read_only_data_source/x"));
        assert!(Tracked::new(&["a[".to_owned()], &[]).is_err());
    }
}
