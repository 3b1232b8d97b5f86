//! The classifier: it turns shell lines and structured tool calls into effects, and into a verdict.
//!
//! Pure: no files, no clock, no environment; everything known of the surroundings is in [`Context`]. Three parts: a scanner
//! (`shell`) that turns a line into a tree, a walk that follows wrappers and payloads through it, and rules as data
//! (`config/rules.yaml`, `docs/CLASSIFY.md`). A line that is not understood calls for one checkpoint, never for a warning.

mod brace;
mod code;
mod commands;
mod context;
mod expand;
mod found;
mod losses;
mod names;
mod rules;
mod shell;
mod sql;
mod tool;
mod verdict;
mod walk;

#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::model::effect::{Class, Verdict};
use crate::model::policy::Policy;

pub use commands::commands;
pub use context::Context;
pub use rules::Dropped;
pub use tool::{ToolCall, patched};

use found::FoundEffect;
use rules::RuleSet;
use verdict::{Understanding, judge};
use walk::Walk;

/// Longest line that is read; what follows counts as unknown.
const MAX_LINE: usize = 256 * 1024;

/// Rules, and the judging of actions by them.
#[derive(Debug)]
pub struct Classifier {
    rules: RuleSet,
}

impl Classifier {
    /// Returns the table that comes with piton. Costs next to nothing: a rule is compiled when its program is first
    /// met.
    pub fn embedded() -> Classifier {
        Classifier { rules: RuleSet::embedded() }
    }

    /// Returns the table that comes with piton, with a user's rules in front of it.
    ///
    /// # Errors
    /// `bad-request` with line and column.
    pub fn with_user_rules(yaml: &str) -> Result<Classifier> {
        Ok(Classifier { rules: RuleSet::with_user(yaml)? })
    }

    /// Returns the table that comes with piton, with what is sound of a user's rules in front of it. `json` is a list
    /// of rules or a map of sections, `before` what was in force. Returns what is in force now too, and what was
    /// dropped.
    pub fn with_sound_rules(json: &str, before: Option<&str>) -> (Classifier, String, Vec<Dropped>) {
        let (sound, dropped) = rules::sound(json, before);
        // It was read once already.
        let classifier = Classifier::with_user_rules(&sound).unwrap_or_else(|_| Classifier::embedded());
        (classifier, sound, dropped)
    }

    /// Judges a shell line.
    pub fn shell(&self, command: &str, context: &Context, policy: &Policy) -> Verdict {
        let (found, understanding) = self.walk(command, context);
        judge(found, understanding, policy)
    }

    /// Judges a structured tool call.
    pub fn tool(&self, call: &ToolCall<'_>, context: &Context, policy: &Policy) -> Verdict {
        let (found, understanding) = tool::effects(self, call, context);
        judge(found, understanding, policy)
    }

    fn walk(&self, command: &str, context: &Context) -> (Vec<FoundEffect>, Understanding) {
        let mut end = command.len().min(MAX_LINE);
        while !command.is_char_boundary(end) {
            end -= 1;
        }
        let mut walk = Walk::new(&self.rules, context);
        walk.line(&command[..end]);
        let unread = end < command.len() || walk.bounds.overflow;
        let broken = walk.bounds.partial || unread;
        if broken {
            let rule = if unread { "limits" } else { "not-understood" };
            walk.found.push(FoundEffect::new(Class::Unknown, "shell", rule, (0, command.len())));
        }
        let Walk {
            found,
            opaque,
            assumed,
            programs,
            blind,
            mentioned,
            tops,
            checkouts,
            scripts,
            losses,
            repositories,
            ..
        } = walk;
        let understanding = Understanding {
            opaque,
            assumed,
            broken,
            programs,
            blind,
            mentioned,
            tops,
            checkouts,
            scripts,
            losses,
            repositories,
        };
        (found, understanding)
    }
}
