use super::*;
use crate::classify::{Classifier, Context};
use crate::model::effect::{Confidence, Needs};

#[test]
fn lines_that_the_scripts_answer_for_are_harmless() {
    let policy = crate::settings::load(None, std::path::Path::new("/nowhere"), &[]).unwrap().policy;
    let classifier = Classifier::embedded();
    let context = Context { cwd: "/w".into(), workspace: "/w".into(), ..Context::default() };
    // Each letter, because an option may write; `--o…` and its like never come here.
    let letters = ('a'..='z').chain('A'..='Z').map(|letter| format!("-{letter} x"));
    let long = ["", "x", "$x ..", "'a b' *.txt", "--all", "-rn x y", "--force x", "--ext-diff", "-c x=y", "{a,b}"];
    let arguments: Vec<String> = letters.chain(long.iter().map(ToString::to_string)).collect();
    let mut judged_otherwise = Vec::new();
    for word in READS {
        for argument in &arguments {
            // An option of these may run a program; with one, the line goes to piton.
            if ["man", "jobs"].contains(word) && argument.starts_with('-') {
                continue;
            }
            let line = format!("{} {argument}", word.replacen("git-", "git ", 1));
            let verdict = classifier.shell(&line, &context, &policy);
            let is_seen = verdict.hold.is_none() && verdict.confidence != Confidence::Opaque;
            if verdict.needs != Needs::Nothing || !is_seen {
                judged_otherwise.push(line);
            }
        }
    }
    assert!(judged_otherwise.is_empty(), "{judged_otherwise:?}");
}

#[test]
fn scripts_hold_what_they_are_given() {
    for shell in HookedShell::ALL {
        let text = shell.script("'/a @READS@ @STAMP@/piton'", "7f", &["ls", "git-log"]);
        assert!(text.contains("'/a @READS@ @STAMP@/piton'") && text.contains(".7f") && text.contains("ls git-log"));
        assert!(!text.contains("'@PROGRAM@'"), "{}", shell.name());
    }
    for shell in HookedShell::ALL {
        assert_eq!(HookedShell::named(shell.name()).unwrap(), shell);
    }
    assert!(HookedShell::named("sh").is_err());
}
