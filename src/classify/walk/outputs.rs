//! Files that options name as output (`--output report.json`), of programs whose rule does not say what they write.

use super::Walk;
use super::dispatch::{Invocation, is_question};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::FoundEffect;
use crate::model::effect::{Certainty, Class};
use crate::model::words::{OUTPUT_OPTIONS, OUTPUT_PATH_OPTIONS};

/// Tells whether a program is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Familiarity {
    /// A table says that it is harmless: its short options mean what they mean.
    Known,
    /// Nothing is known of it: `-o` names its output, as it does for most.
    Unknown,
}

impl Walk<'_> {
    /// Records the files and directories that a program's options name as its output. Outside of the workspace they are only recorded.
    pub(super) fn outputs(&mut self, call: &Invocation<'_>, familiarity: Familiarity, shell: &Shell) {
        if is_question(call) {
            return;
        }
        for (at, arg) in call.args.iter().enumerate() {
            if arg.text == "--" {
                break;
            }
            let (name, attached) = match arg.text.split_once('=') {
                Some((name, _)) => (name, Some(arg.skip(name.len() + 1))),
                None => (arg.text.as_str(), None),
            };
            if !name.starts_with('-') {
                continue;
            }
            let is_path = OUTPUT_PATH_OPTIONS.contains(&name);
            let may_be = OUTPUT_OPTIONS.contains(&name) || name == "-o" && familiarity == Familiarity::Unknown;
            let Some(target) = attached.or_else(|| call.args.get(at + 1).cloned()).filter(|_| is_path || may_be) else {
                continue;
            };
            if target.text.is_empty() || target.text.starts_with('-') || may_be && !is_path && !looks_like_path(&target)
            {
                continue;
            }
            let mut found = FoundEffect::new(Class::FileOverwrite, call.program, "output-named", call.span);
            found.warn = Some(false);
            self.report(found.certainty(Certainty::Likely), Some(&target), shell);
        }
    }
}

/// Returns true for `a/b`, `out.json` and `$DIR/x`, and false for what such options mean besides: `json`, `1.5`, `type=local,dest=x`.
fn looks_like_path(arg: &Arg) -> bool {
    let text = arg.text.as_str();
    if text.contains("://") || text.contains(['=', ',', ' ', '\n']) {
        return false;
    }
    let ending = text.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    let is_ending = |ending: &str| {
        (1..=12).contains(&ending.len())
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    text.contains('/') || ending.is_some_and(is_ending)
}
