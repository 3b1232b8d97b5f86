//! Whether a checkpoint would have captured a path, had it existed then. Decides what a restore may delete; in doubt the
//! answer is no.

use super::ignore::{Ignored, Matcher, Rules};
use super::makers::is_made_name;
use super::secret::is_secret_name;
use crate::model::coverage::{Coverage, Extent, SkipReason};
use crate::model::manifest::{Entry, EntryKind};
use crate::model::path::RelPath;

/// What the checkpoint itself holds.
pub struct CoverageView<'a> {
    /// The content of the `.gitignore` in a directory, if the checkpoint has one.
    pub gitignore: &'a dyn Fn(&RelPath) -> Option<Vec<u8>>,
    /// Whether the checkpoint holds a path.
    pub exists: &'a dyn Fn(&RelPath) -> bool,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    /// An ignore rule of that time names it.
    Ignored,
    /// A configured exclude of that time, or a default exclude, names it.
    Excluded,
    /// Untracked secrets were left out.
    Secret,
    /// Above that checkpoint's size cap.
    TooLarge,
    /// It, or a directory above it, was skipped.
    Skipped(SkipReason),
    /// The checkpoint looked at other paths only.
    OutsideExtent,
}

impl Verdict {
    /// `Ok` for yes, else the reason for people.
    ///
    /// # Errors
    /// The reason.
    pub fn into_result(self) -> Result<(), String> {
        let reason = match self {
            Verdict::Yes => return Ok(()),
            Verdict::Ignored => "ignored when the checkpoint was taken".to_owned(),
            Verdict::Excluded => "excluded when the checkpoint was taken".to_owned(),
            Verdict::Secret => "looks like a secret; the checkpoint left secrets out".to_owned(),
            Verdict::TooLarge => "larger than the checkpoint's size cap".to_owned(),
            Verdict::Skipped(why) => format!("left out of the checkpoint: {why}"),
            Verdict::OutsideExtent => "the checkpoint looked at other paths only".to_owned(),
        };
        Err(reason)
    }
}

/// Whether a checkpoint with this coverage would have captured `path`.
pub fn would_capture(path: &RelPath, entry: &Entry, coverage: &Coverage, view: &CoverageView<'_>) -> Verdict {
    if let Extent::Paths(paths) = &coverage.extent
        && !paths.iter().any(|ancestor| path.starts_with(ancestor))
    {
        return Verdict::OutsideExtent;
    }
    if let Some(reason) = coverage.skip_of(path) {
        return Verdict::Skipped(reason);
    }
    if let Some(reason) = coverage.skipped.values().find(|reason| **reason == SkipReason::OverCount) {
        // Which files were over the count depends on all the others: nothing absent is proof of absence.
        return Verdict::Skipped(*reason);
    }
    if entry.kind == EntryKind::File && entry.size > coverage.file_cap {
        return Verdict::TooLarge;
    }
    if entry.kind == EntryKind::File && !coverage.secrets && is_secret_name(path.name()) {
        return Verdict::Secret;
    }
    by_rules(path, entry, coverage, view)
}

/// Evaluates the ignore rules of that time on the path and every directory above it.
fn by_rules(path: &RelPath, entry: &Entry, coverage: &Coverage, view: &CoverageView<'_>) -> Verdict {
    let rules = Rules::new(&coverage.configured, &coverage.excludes);
    let mut levels: Vec<Matcher> = Vec::new();
    let mut dir = RelPath::root();
    for component in path.components() {
        levels.extend((view.gitignore)(&dir).and_then(|content| Matcher::new(&dir, &content)));
        let here = dir.join(component);
        let is_dir = here != *path || entry.kind == EntryKind::Dir;
        let above: Vec<&Matcher> = levels.iter().collect();
        match rules.decide(&above, &here, is_dir) {
            Some(Ignored::Configured) => return Verdict::Excluded,
            Some(Ignored::Git) => return Verdict::Ignored,
            None => {}
        }
        if is_dir && is_made_name(component) && !(view.exists)(&here) {
            return Verdict::Excluded;
        }
        dir = here;
    }
    Verdict::Yes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectId;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn in_doubt_no() {
        let file = |size| Entry { kind: EntryKind::File, perm: 0o644, id: ObjectId::EMPTY_TREE, size };
        let gitignore = |dir: &RelPath| dir.is_root().then(|| b"*.log\nout/\n".to_vec());
        let exists = |_: &RelPath| false;
        let view = CoverageView { gitignore: &gitignore, exists: &exists };
        let mut coverage = Coverage { configured: vec!["/data".into()], ..Coverage::default() };
        coverage.skipped.insert(path("locked"), SkipReason::Unreadable);
        let table = [
            ("new.rs", 1, Verdict::Yes),
            ("a.log", 1, Verdict::Ignored),
            ("out/deep/x", 1, Verdict::Ignored),
            ("data/x", 1, Verdict::Excluded),
            ("target/x", 1, Verdict::Excluded),
            (".env", 1, Verdict::Secret),
            ("big", 20_000_000, Verdict::TooLarge),
            ("locked/x", 1, Verdict::Skipped(SkipReason::Unreadable)),
        ];
        for (text, size, expected) in table {
            assert_eq!(would_capture(&path(text), &file(size), &coverage, &view), expected, "{text}");
        }
        coverage.extent = Extent::Paths(vec![path("src")]);
        assert_eq!(would_capture(&path("new.rs"), &file(1), &coverage, &view), Verdict::OutsideExtent);
        assert_eq!(would_capture(&path("src/new.rs"), &file(1), &coverage, &view), Verdict::Yes);
    }
}
