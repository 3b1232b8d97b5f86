//! Comparing two values of a key: which one guards or keeps more.

use super::defaults::ValueDirection;
use crate::model::policy::Policy;

/// The way to compare two values of a key.
pub(super) enum Measure {
    /// A number, or the place of a word in the order of words.
    Amount(fn(&Policy) -> u64),
    /// A set of patterns.
    Patterns(fn(&Policy) -> &[String]),
    /// True if going from the first policy to the second guards and keeps at least as much.
    Rule(fn(&Policy, &Policy) -> bool),
}

/// The changes of a key that count in a workspace's own file before a person trusts it.
pub(super) enum WorkspaceRight {
    /// Every change that guards or keeps as much, by the key's direction.
    ByDirection,
    /// None.
    Fixed,
    /// Every change for which the function returns true.
    ByRule(fn(&Policy, &Policy) -> bool),
}

impl Measure {
    /// Returns true if going from the first policy to the second guards and keeps at least as much.
    pub(super) fn keeps(&self, direction: Option<ValueDirection>, old: &Policy, new: &Policy) -> bool {
        match (direction, self) {
            (Some(ValueDirection::Free), _) => true,
            (_, Measure::Rule(keeps)) => keeps(old, new),
            (Some(ValueDirection::More), Measure::Amount(of)) => of(new) >= of(old),
            (Some(ValueDirection::Less), Measure::Amount(of)) => of(new) <= of(old),
            (Some(ValueDirection::More), Measure::Patterns(of)) => has_all(of(new), of(old)),
            (Some(ValueDirection::Less), Measure::Patterns(of)) => has_all(of(old), of(new)),
            // A test shows that every key has one. Without one, every change would wait for a person.
            (None, Measure::Amount(_) | Measure::Patterns(_)) => self.is_same(old, new),
        }
    }

    /// Returns true if two policies have the same value.
    pub(super) fn is_same(&self, old: &Policy, new: &Policy) -> bool {
        match self {
            Measure::Amount(of) => of(old) == of(new),
            Measure::Patterns(of) => of(old) == of(new),
            Measure::Rule(keeps) => keeps(old, new) && keeps(new, old),
        }
    }
}

fn has_all(list: &[String], patterns: &[String]) -> bool {
    patterns.iter().all(|pattern| list.contains(pattern))
}

/// Returns true if a second list excludes no more than the first. In the dialect of `.gitignore`, `!` includes a path again and the order
/// counts: such lists are known to be as good only if they are the same.
pub(super) fn excludes_no_more(old: &Policy, new: &Policy) -> bool {
    let (old, new) = (&old.exclude, &new.exclude);
    let is_plain = |list: &[String]| !list.iter().any(|pattern| pattern.starts_with('!'));
    old == new || new.is_empty() || (is_plain(old) && is_plain(new) && has_all(old, new))
}

/// Returns true if a second list of patterns tracks all that the first one does. No pattern tracks everything.
pub(super) fn tracks_more(old: &Policy, new: &Policy) -> bool {
    let (old, new) = (&old.tracked_files, &new.tracked_files);
    // As the filter reads them: `./!p` subtracts too.
    let subtracts = |pattern: &String| pattern.trim_start_matches("./").starts_with('!');
    let mut added = new.iter().filter(|pattern| !old.contains(pattern));
    let is_added_to = !old.is_empty() && !new.is_empty() && added.all(|pattern| !subtracts(pattern));
    let is_kept = old.iter().all(|pattern| subtracts(pattern) || new.contains(pattern));
    old == new || new.is_empty() || (is_kept && is_added_to)
}
