//! The losses among effects: files that go or are written anew as a whole.
//!
//! An edit in place (`sed -i`, a formatter, an edit tool, a patch) is none: the file goes on, with what others wrote in it. The
//! work that verbs of git take away is read from their own lines (`walk/git_losses`).

use std::path::Path;

use super::found::FoundEffect;
use crate::model::effect::{Class, Scope};
use crate::model::loss::{FileLoss, Loss};

/// Rules of commands that write a named file anew as a whole.
const REPLACING: [&str; 11] =
    ["code", "cp", "cp-to-directory", "dd", "git-output", GIT, LINK, "ln-to-directory", "redirect", "tee", "truncate"];

/// The rule of `ln -f`.
const LINK: &str = "ln-force";

/// The rule of ignored files that git replaces.
const GIT: &str = "git-replaces-ignored";

/// Programs that make a new file in the place of the old one: a link there goes, and the file to which it leads stays.
const UNLINKING: [&str; 4] = ["install", "ln", "mv", "gmv"];

/// The most losses of one action that are looked at.
const MOST: usize = 200;

/// Returns the files that effects take away.
pub(super) fn of_files(found: &[FoundEffect]) -> Vec<Loss> {
    let mut all: Vec<Loss> = Vec::new();
    for loss in found.iter().filter_map(of_file) {
        if all.len() < MOST && !all.contains(&loss) {
            all.push(loss);
        }
    }
    all
}

fn of_file(found: &FoundEffect) -> Option<Loss> {
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
        // Without a name for the link, it gets that of its target elsewhere.
        Class::FileOverwrite | Class::System if found.rule == LINK && found.placed.is_none() => None,
        Class::FileOverwrite | Class::System if is_whole(found) => written(found),
        // All other words of a `mv` go on under another name.
        Class::FileMove if found.placed.is_some() => written(found),
        _ => None,
    }
}

/// Returns the loss of the file that is written anew.
fn written(found: &FoundEffect) -> Option<Loss> {
    let program = found.verb.split_whitespace().next().unwrap_or_default();
    Some(Loss::File(FileLoss {
        path: found.path.as_deref().map(text)?,
        placed: found.placed.clone().unwrap_or_default(),
        is_followed: found.rule != GIT && !UNLINKING.contains(&program),
    }))
}

/// Returns true if the file is written anew as a whole.
fn is_whole(found: &FoundEffect) -> bool {
    found.is_whole || found.replaces || REPLACING.contains(&found.rule.as_str())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, Context, ToolCall};
    use crate::model::loss::PlacedName;
    use crate::settings;

    fn shown(losses: &[Loss]) -> String {
        let one = |loss: &Loss| match loss {
            Loss::Tree(path) => format!("{path}/**"),
            Loss::File(loss) => {
                let name = |name: &PlacedName| match name {
                    PlacedName::Name(name) => name.clone(),
                    PlacedName::Matching(pattern) => format!("~{pattern}"),
                };
                let names = loss.placed.iter().map(name).collect::<Vec<_>>().join(",");
                let names = if names.is_empty() { names } else { format!("[{names}]") };
                format!("{}{names}{}", if loss.is_followed { "" } else { "=" }, loss.path)
            }
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
            ("cp b a", "[b]a"),
            ("cp sub/b ../c d/. dir", "[b,c]dir"),
            ("cp *.rs dir/", "[~*.rs]dir"),
            ("cp $X $Y/b dir", "dir"),
            ("cp -T b dir", "dir"),
            ("cp -t dir b c", "[b,c]dir"),
            ("cp -n b a", ""),
            ("install -m 755 b a", "=[b]a"),
            ("ln -sf b a", "=[b]a"),
            ("ln -sfn b a", "=a"),
            ("ln -sf ../x/a", ""),
            ("ln -sf -t dir b", "=[b]dir"),
            ("ln -s b a", ""),
            ("mv b a", "=[b]a"),
            ("mv b c dir", "=[b,c]dir"),
            ("mv -t dir b c", "=[b,c]dir"),
            ("rename s/a/b/ a b", ""),
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
