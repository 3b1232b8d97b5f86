//! Piton's own files in the text of a line whose effects cannot be seen: in code of a language that is not read, in names that another
//! program prints, in a substitution.
//!
//! The rule reads text alone, so it may hold a harmless line. It needs both in one pipeline: the name of piton's files, and an effect on
//! unknown files.

use super::Walk;
use crate::classify::context::Context;
use crate::classify::found::FoundEffect;
use crate::classify::shell::{Pipeline, PipelineStage, Script, Span};
use crate::model::effect::Class;

/// Builtins that keep a value or a directory for the commands after them.
const KEEPING: [&str; 8] = ["cd", "declare", "export", "local", "mapfile", "printf", "pushd", "read"];

impl Walk<'_> {
    /// Reports a line that names piton's own files and does something that cannot be seen. `script` is the line's tree.
    pub(super) fn hides_near_piton(&mut self, line: &str, script: &Script) {
        let names_any = line.contains("iton") || line.contains("PITON");
        if !names_any || self.found.iter().any(|found| found.near_piton.is_some()) {
            return;
        }
        // The text of a heredoc follows the line that begins it, and precedes the next pipeline.
        let ends = script.pipelines.iter().skip(1).map(|next| next.from).chain([line.len()]);
        let text = |from: usize, to: usize| line.get(from..to).unwrap_or_default();
        let naming: Vec<(&Pipeline, usize)> = script
            .pipelines
            .iter()
            .zip(ends)
            .filter(|(pipeline, end)| names_own_files(self.context, text(pipeline.from, *end)))
            .collect();
        let is_kept = naming.iter().any(|(pipeline, _)| keeps_value(pipeline));
        let is_near = |found: &FoundEffect| {
            let is_in = |(pipeline, end): &(&Pipeline, usize)| (pipeline.from..*end).contains(&found.span.0);
            is_kept || naming.iter().any(is_in)
        };
        let unseen = self.found.iter().find(|found| is_unseen(found) && is_near(found));
        if let Some((verb, span)) = unseen.map(|found| (found.verb.clone(), found.span)) {
            self.reaches_own_files(&verb, span);
        }
    }

    /// Reports code in a file that names piton's own files and does something that cannot be seen. The effects of the code are those from
    /// `first` on.
    pub(super) fn code_hides_near_piton(&mut self, text: &str, program: &str, first: usize, span: Span) {
        let is_near = self.found.iter().any(|found| found.near_piton.is_some());
        if !is_near && names_own_files(self.context, text) && self.found[first..].iter().any(is_unseen_loss) {
            self.reaches_own_files(program, span);
        }
    }
}

/// Returns true if a pipeline keeps a value or a directory that any later one may use.
fn keeps_value(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().any(|stage| match stage {
        PipelineStage::Simple(simple) => match simple.words.first() {
            Some(program) => program.bare().is_some_and(|program| KEEPING.contains(&program)),
            None => !simple.assignments.is_empty(),
        },
        PipelineStage::Compound(_) => false,
    })
}

/// Programs that replace the content of the files they name, and read no others: a copy of piton's files is made by another one.
const REPLACING: [&str; 4] = ["dd", "shred", "truncate", "wipe"];

/// Returns true for a loss, or for code, whose files are not known.
fn is_unseen(found: &FoundEffect) -> bool {
    let is_unknown = found.path.is_none() && found.pattern.is_none();
    is_unseen_loss(found) || is_unknown && matches!(found.class, Class::ExecOpaque | Class::Unknown)
}

/// Returns true for a loss whose files are not known.
fn is_unseen_loss(found: &FoundEffect) -> bool {
    let replaces = found.class == Class::FileOverwrite && REPLACING.contains(&found.program());
    let is_loss =
        replaces || matches!(found.class, Class::FileDelete | Class::FileMove | Class::FilePerm | Class::FileWrite);
    is_loss && found.path.is_none() && found.pattern.is_none()
}

/// Returns the last two names of a path: `.local/share`.
fn last_two(path: &str) -> &str {
    path.rmatch_indices('/').nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

/// Returns true if a text has a name in quotes, as a word of its own, or as a part of a path.
fn names_word(text: &str, name: &str) -> bool {
    let is_end =
        |letter: Option<char>| letter.is_none_or(|letter| !(letter.is_alphanumeric() || "-_.".contains(letter)));
    text.match_indices(name)
        .any(|(at, _)| is_end(text[..at].chars().next_back()) && is_end(text[at + name.len()..].chars().next()))
}

/// Returns true if a text names a directory of piton's: by its path, by the end of it, by the variable for it, or by asking piton.
fn names_own_files(context: &Context, text: &str) -> bool {
    let named = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let next = text[at + name.len()..].chars().next();
            next.is_none_or(|next| !(next.is_alphanumeric() || matches!(next, '-' | '_' | '.' | '=')))
        })
    };
    let is_own = context.piton.iter().any(|own| {
        let mut names = own.components().rev().map(|name| name.as_os_str().to_string_lossy());
        let (last, above) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        let data_dir = own.parent().filter(|dir| dir.components().count() > 2).map(|dir| dir.to_string_lossy());
        let place = [data_dir.as_deref().map(last_two), Some("XDG_DATA_HOME")].into_iter().flatten().any(named);
        named(&own.to_string_lossy()) || named(&format!("{above}/{last}")) || place && names_word(text, &last)
    });
    let asks = |verb: &str| {
        text.match_indices("piton ").any(|(at, call)| text[at + call.len()..].trim_start().starts_with(verb))
    };
    is_own || named("PITON_HOME") || ["status", "store", "config", "env", "doctor"].into_iter().any(asks)
}
