//! The simple commands of a shell line, as lists of words: which programs it names. Nothing is expanded, and nothing is judged.

use super::MAX_LINE;
use super::shell::{Bounds, Part, PipelineStage, Script, Simple, TextPlace, Word, scan};
use crate::model::words::LINE_SHELLS;

/// The deepest line within a line.
const DEEPEST: u32 = 4;

/// Returns the simple commands of a line with those inside of them, in the order of the text. A variable in a word counts as no text.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    read(line, DEEPEST, &mut found);
    found
}

fn read(line: &str, depth: u32, found: &mut Vec<Vec<String>>) {
    if depth == 0 || line.len() > MAX_LINE {
        return;
    }
    script(&scan(line, TextPlace::At(0), &mut Bounds::default()), depth, found);
}

fn script(script: &Script, depth: u32, found: &mut Vec<Vec<String>>) {
    for stage in script.pipelines.iter().flat_map(|pipeline| &pipeline.stages) {
        match stage {
            PipelineStage::Simple(command) => simple(command, depth, found),
            PipelineStage::Compound(compound) => {
                compound.words.iter().for_each(|word| inside(&word.parts, depth, found));
                self::script(&compound.body, depth, found);
            }
        }
    }
}

fn simple(command: &Simple, depth: u32, found: &mut Vec<Vec<String>>) {
    let words: Vec<String> = command.words.iter().map(text).collect();
    let name = words.first().map(|word| word.rsplit('/').next().unwrap_or_default());
    let line =
        words.iter().position(|word| word.starts_with('-') && word.ends_with('c')).and_then(|at| words.get(at + 1));
    match (name, line) {
        (Some(name), Some(line)) if LINE_SHELLS.contains(&name) => read(line, depth - 1, found),
        (Some("eval"), _) => read(&words[1..].join(" "), depth - 1, found),
        _ => {}
    }
    found.extend((!words.is_empty()).then_some(words));
    let values = command.assignments.iter().map(|assignment| &assignment.value);
    command.words.iter().chain(values).for_each(|word| inside(&word.parts, depth, found));
}

/// Reads the commands whose output is a part of a word.
fn inside(parts: &[Part], depth: u32, found: &mut Vec<Vec<String>>) {
    for part in parts {
        match part {
            Part::Command { script, .. } | Part::Process { script } => self::script(script, depth, found),
            Part::Array { words } => words.iter().for_each(|word| inside(&word.parts, depth, found)),
            Part::Unknown { inner, .. } => inside(inner, depth, found),
            Part::Literal { .. } | Part::Variable { .. } | Part::Elements { .. } => {}
        }
    }
}

fn text(word: &Word) -> String {
    let literal = |part: &Part| match part {
        Part::Literal { text, .. } => Some(text.clone()),
        _ => None,
    };
    word.parts.iter().filter_map(literal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_its_words() {
        for (line, expected) in [
            ("git stash pop", &["git stash pop"][..]),
            ("cd x && git -C 'a b' push; make | tee", &["cd x", "git -C a b push", "make", "tee"]),
            ("git commit -m \"git push; git stash\"", &["git commit -m git push; git stash"]),
            ("sh -ec 'git stash; ls'", &["git stash", "ls", "sh -ec git stash; ls"]),
            ("eval \"git push\"", &["git push", "eval git push"]),
            ("if git pull; then (git push) fi", &["git pull", "git push"]),
            ("x=$(git stash) echo \"$(git push)\"", &["echo ", "git push", "git stash"]),
            ("cat <<E\ngit push\nE\n", &["cat"]),
            ("# git push", &[]),
            ("", &[]),
        ] {
            let told: Vec<String> = commands(line).iter().map(|words| words.join(" ")).collect();
            assert_eq!(told, expected, "{line}");
        }
        assert!(!commands(&"sh -c 'sh -c ".repeat(50)).is_empty());
    }
}
