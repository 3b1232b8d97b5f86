//! The names that `cp`, `mv`, `ln` and the like give to files, where their last word is a directory.

use std::path::Path;

use super::Walk;
use super::dispatch::Invocation;
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::pattern;
use crate::classify::rules::Hit;
use crate::model::loss::PlacedName;

/// Programs whose last word is a file, or the directory in which their other words get their names.
const PLACING: [&str; 7] = ["cp", "gcp", "ditto", "install", "ln", "mv", "gmv"];

/// Rules that hold for such a program where it places files.
const RULES: [&str; 3] = ["cp", "ln-force", "mv"];

/// The same where an option names the directory.
const RULES_OF_DIRECTORY: [&str; 3] = ["cp-to-directory", "ln-to-directory", "mv-to-directory"];

/// The most names of one command.
const MOST: usize = 200;

impl Walk<'_> {
    /// Returns the names that a command gives to files in its last target, should that be a directory; `None` for a command that
    /// places nothing. Where it never places files in it, there are none.
    pub(super) fn placed(&self, hit: &Hit<'_>, call: &Invocation<'_>, shell: &Shell) -> Option<Vec<PlacedName>> {
        let rule = &*hit.rule.id;
        let (is_last, is_named) = (RULES.contains(&rule), RULES_OF_DIRECTORY.contains(&rule));
        if !PLACING.contains(&call.program) || !(is_last || is_named) {
            return None;
        }
        let sources = if is_named { &hit.operands[..] } else { hit.operands.split_last()?.1 };
        // `ln TARGET` makes a link of that name in the current directory.
        if is_last && sources.is_empty() {
            return None;
        }
        if is_last && replaces_directories(call) {
            return Some(Vec::new());
        }
        let name = |arg: &Arg| match arg.exact() {
            // The content of a directory has no name.
            Some(text) if text.ends_with("/.") => None,
            Some(text) => Some(PlacedName::Name(Path::new(text).file_name()?.to_str()?.to_owned())),
            None => {
                let matching = pattern(arg, shell, &self.site, self.context)?;
                Some(PlacedName::Matching(matching.to_string_lossy().into_owned()))
            }
        };
        Some(sources.iter().filter_map(name).take(MOST).collect())
    }
}

/// Returns true if the last word is taken for a file whatever stands there.
fn replaces_directories(call: &Invocation<'_>) -> bool {
    // `ln -n` takes a link to a directory for a file: an ordinary directory would stay.
    let (letters, long) = match call.program {
        "ln" => ("Tn", ["--no-target-directory", "--no-dereference"]),
        _ => ("T", ["--no-target-directory", "--no-target-directory"]),
    };
    let options = call.args.iter().map(|arg| arg.text.as_str()).take_while(|text| *text != "--");
    let mut options = options.filter(|text| text.starts_with('-'));
    options
        .any(|text| if text.starts_with("--") { long.contains(&text) } else { text.contains(|l| letters.contains(l)) })
}
