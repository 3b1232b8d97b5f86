//! The losses among effects: files that go or are written anew as a whole.
//!
//! An edit in place (`sed -i`, a formatter, an edit tool, a patch) is none: the file goes on, with what others wrote in it. The
//! work that verbs of git take away is read from their own lines (`walk/git_losses`).

use std::path::Path;

use super::found::FoundEffect;
use crate::model::effect::{Class, Scope};
use crate::model::loss::Loss;

/// Rules of commands that write a named file anew as a whole.
const REPLACING: [&str; 9] =
    ["code", "cp", "cp-to-directory", "dd", "git-output", "git-replaces-ignored", "redirect", "tee", "truncate"];

/// The rule of `mv`. Its last word is the place of what is moved.
const MOVE: &str = "mv";

/// The most losses of one action that are looked at.
const MOST: usize = 200;

/// Returns the files that effects take away.
pub(super) fn of_files(found: &[FoundEffect]) -> Vec<Loss> {
    let losses = found.iter().enumerate().filter_map(|(at, one)| of_file(one, is_destination(found, at)));
    let mut all: Vec<Loss> = Vec::new();
    for loss in losses {
        if all.len() < MOST && !all.contains(&loss) {
            all.push(loss);
        }
    }
    all
}

fn of_file(found: &FoundEffect, is_destination: bool) -> Option<Loss> {
    if matches!(found.scope, Scope::Temp | Scope::Device | Scope::Remote) {
        return None;
    }
    let path = || found.path.as_deref().map(text);
    match found.class {
        // git refuses to remove a file with changes, unless it is forced.
        Class::FileDelete if found.rule == "git-rm" => None,
        Class::FileDelete => path().map(Loss::Tree).or_else(|| found.pattern.as_deref().map(text).map(Loss::Matches)),
        // Outside of the workspace, maybe in another one; a directory above takes this one along.
        Class::System if found.deletes => path().map(Loss::Tree),
        Class::FileOverwrite | Class::System if is_whole(found) => path().map(Loss::File),
        Class::FileMove if is_destination => path().map(Loss::File),
        _ => None,
    }
}

/// Returns true if the file is written anew as a whole.
fn is_whole(found: &FoundEffect) -> bool {
    found.is_whole || found.replaces || REPLACING.contains(&found.rule.as_str())
}

/// Returns true for the last word of a `mv` with several ones.
fn is_destination(found: &[FoundEffect], at: usize) -> bool {
    let is_like = |one: &FoundEffect| one.rule == MOVE && one.span == found[at].span;
    let is_last = || !found[at + 1..].iter().any(is_like);
    found[at].rule == MOVE && found[..at].iter().any(is_like) && is_last()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, Context, ToolCall};
    use crate::settings;

    fn shown(losses: &[Loss]) -> String {
        let one = |loss: &Loss| match loss {
            Loss::Tree(path) => format!("{path}/**"),
            Loss::File(path) => path.clone(),
            Loss::Matches(pattern) => format!("~{pattern}"),
            Loss::Repository(loss) => format!("{:?} {:?} {}", loss.sorts, loss.pathspecs, loss.dir),
        };
        losses.iter().map(one).collect::<Vec<_>>().join(" ").replace("/w/", "")
    }

    fn context() -> Context {
        Context { cwd: "/w".into(), workspace: "/w".into(), ..Context::default() }
    }

    #[test]
    fn deleting_and_writing_anew_are_losses_and_edits_are_none() {
        let (classifier, policy) =
            (Classifier::embedded(), settings::resolve(&settings::Sources::default()).unwrap().policy);
        for (line, expected) in [
            ("rm -rf dir", "dir/**"),
            ("rm a b", "a/** b/**"),
            ("rm *.log", "~*.log"),
            ("cd sub && rm x", "sub/x/**"),
            ("echo x > a", "a"),
            ("echo x >> a", ""),
            ("cp b a", "a"),
            ("mv b a", "a"),
            ("mv b c dir", "dir"),
            ("tee a", "a"),
            ("truncate -s 0 a", "a"),
            ("dd if=b of=a", "a"),
            ("python3 -c 'open(\"a\", \"w\").write(\"x\")'", "a"),
            ("sh -c 'rm a'", "a/**"),
            ("git rm a", ""),
            ("sed -i s/a/b/ a", ""),
            ("perl -pi -e s/a/b/ a", ""),
            ("prettier --write a", ""),
            ("black a", ""),
            ("chmod 600 a", ""),
            ("git apply a.patch", ""),
            ("make clean", ""),
            ("./script.sh", ""),
            ("rm -rf /etc/x; echo > /etc/y; mv a /etc/z", "/etc/x/** /etc/y"),
            ("ssh host rm a", ""),
        ] {
            assert_eq!(shown(&classifier.shell(line, &context(), &policy).losses), expected, "{line}");
        }
    }

    #[test]
    fn a_tool_that_writes_a_whole_file_takes_it_and_one_that_edits_does_not() {
        let (classifier, policy) =
            (Classifier::embedded(), settings::resolve(&settings::Sources::default()).unwrap().policy);
        for (tool, input, expected) in [
            ("Write", r#"{"file_path":"/w/a","content":"x"}"#, "a"),
            ("write_file", r#"{"path":"a","content":"x"}"#, "a"),
            ("create_file", r#"{"path":"a","file_text":"x"}"#, "a"),
            ("str_replace_based_edit_tool", r#"{"command":"create","path":"/w/a","file_text":"x"}"#, "a"),
            ("str_replace_based_edit_tool", r#"{"command":"str_replace","path":"/w/a","old_str":"x"}"#, ""),
            ("Edit", r#"{"file_path":"/w/a","old_string":"x","new_string":"y"}"#, ""),
            ("MultiEdit", r#"{"file_path":"/w/a","edits":[]}"#, ""),
            ("apply_patch", r#"{"input":"*** Update File: a\n"}"#, ""),
            ("apply_patch", r#"{"input":"*** Add File: a\n+x\n"}"#, "a"),
            ("apply_patch", r#"{"input":"*** Delete File: a\n"}"#, "a/**"),
            ("delete_file", r#"{"path":"a"}"#, "a/**"),
            ("Read", r#"{"file_path":"/w/a"}"#, ""),
            ("Bash", r#"{"command":"rm a"}"#, "a/**"),
        ] {
            let input = serde_json::from_str(input).unwrap();
            let call = ToolCall { tool, input: &input, paths: &[], writes: None, external: None };
            let losses = classifier.tool(&call, &context(), &policy).losses;
            assert_eq!(shown(&losses), expected, "{tool} {input}");
        }
    }
}
