//! The share of a turn in a change: by which right an undo of the turn may take it back.

use serde::{Deserialize, Serialize};

/// The share of a turn in the change of one path. The kernel names no process with a change, so most are conclusions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attribution {
    /// An action of the turn named the path, and it changed while that action ran.
    Sure,
    /// It changed while an action of this run was running that may change paths it does not name, and no other run's.
    Likely,
    /// The turn changed it, and something else wrote it again while the turn was open: a formatter, a server, a person.
    Touched,
    /// Actions of several runs were at work, or somebody else changed it before the turn did.
    Shared,
    /// It is not known when it changed, or what was running then.
    Unknown,
    /// It changed while no action of the run was at work, or because somebody else moved HEAD.
    Outside,
}

impl Attribution {
    /// Holds all of them, from the surest to the least.
    pub const ALL: [Attribution; 6] = [
        Attribution::Sure,
        Attribution::Likely,
        Attribution::Touched,
        Attribution::Shared,
        Attribution::Unknown,
        Attribution::Outside,
    ];

    /// Returns the word that lists and the protocol carry.
    pub fn as_str(self) -> &'static str {
        match self {
            Attribution::Sure => "sure",
            Attribution::Likely => "likely",
            Attribution::Touched => "touched",
            Attribution::Shared => "shared",
            Attribution::Unknown => "unknown",
            Attribution::Outside => "outside",
        }
    }

    /// Reads such a word.
    pub fn parse(word: &str) -> Option<Attribution> {
        Attribution::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// Returns true if an undo of the turn takes the change back without being asked for it. Of a `likely` one it only creates again
    /// what is absent.
    pub fn is_own(self) -> bool {
        matches!(self, Attribution::Sure | Attribution::Likely)
    }

    /// Returns true if the turn may have deleted a path that is absent at its end. An undo restores such a path by default, because
    /// creating an absent path overwrites nothing.
    pub fn may_have_deleted(self) -> bool {
        self != Attribution::Outside
    }

    /// Returns the share after two changes of a path, this one and a later one.
    #[must_use]
    pub fn then(self, later: Attribution) -> Attribution {
        use Attribution::{Likely, Outside, Shared, Sure, Touched, Unknown};
        match (self, later) {
            (Unknown, _) | (_, Unknown) => Unknown,
            (Shared, Outside | Touched) => Touched,
            (Shared, _) | (_, Shared) => Shared,
            (Outside, Outside) => Outside,
            // Before the turn's own change it was as somebody else had left it, and no end of the turn holds that.
            (Outside, _) => Shared,
            (_, Outside | Touched) | (Touched, _) => Touched,
            (Likely, _) | (_, Likely) => Likely,
            (Sure, Sure) => Sure,
        }
    }

    /// Returns true if undo keeps such a change and prints the command that undoes it as well. The turn may have written the
    /// current version.
    pub fn is_offered(self) -> bool {
        matches!(self, Attribution::Likely | Attribution::Shared | Attribution::Unknown)
    }

    /// Says why an undo of the turn leaves such a change alone.
    pub fn reason(self) -> &'static str {
        match self {
            Attribution::Sure => "an action of the turn named it",
            Attribution::Likely => "likely: the path changed while the turn ran a command that can change any file",
            Attribution::Touched => "touched: it was written again after the turn's action",
            Attribution::Shared => "shared: another run or person may have changed it too",
            Attribution::Unknown => "unknown: it is not known which action changed it",
            Attribution::Outside => "outside: no action of the turn changed it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_change_never_makes_a_path_surer() {
        use Attribution::{Likely, Outside, Shared, Sure, Touched, Unknown};
        for (first, later, both) in [
            (Sure, Sure, Sure),
            (Sure, Likely, Likely),
            (Likely, Sure, Likely),
            (Sure, Outside, Touched),
            (Likely, Outside, Touched),
            (Touched, Sure, Touched),
            (Outside, Sure, Shared),
            (Outside, Outside, Outside),
            (Sure, Shared, Shared),
            (Outside, Unknown, Unknown),
            (Unknown, Sure, Unknown),
        ] {
            assert_eq!(first.then(later), both, "{first:?} {later:?}");
        }
        for one in Attribution::ALL {
            assert_eq!(Attribution::parse(one.as_str()), Some(one));
            for other in Attribution::ALL {
                assert!(!one.then(other).is_own() || (one.is_own() && other.is_own()), "{one:?} {other:?}");
            }
        }
    }
}
