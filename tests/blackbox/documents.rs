//! `--json`: one document on stdout, whatever becomes of a verb.

use serde_json::Value;

use crate::support::Lab;

/// Verbs with arguments: those that succeed, those that find nothing, and those that are refused.
const VERBS: &[&[&str]] = &[
    &[],
    &["status"],
    &["checkpoint"],
    &["checkpoint", "a label"],
    &["checkpoint", "abcd"],
    &["checkpoint", "x", "--", "nowhere"],
    &["list"],
    &["list", "--remote"],
    &["list", "--run", "nobody"],
    &["list", "--kind", "nothing"],
    &["list", "--", "nowhere"],
    &["show"],
    &["show", "1"],
    &["show", "1:a"],
    &["show", "1:"],
    &["show", "1:nowhere"],
    &["show", "99"],
    &["show", "run:codon:completed"],
    &["diff", "1"],
    &["diff", "1", "99"],
    &["diff", "1", "--", "nowhere"],
    &["find", "a"],
    &["find", "nowhere"],
    &["find", "../a"],
    &["restore", "1"],
    &["restore", "1", "--preview"],
    &["restore", "1", "--yes"],
    &["restore", "1", "--yes", "nowhere"],
    &["restore", "--continue"],
    &["restore", "--abort"],
    &["rollback", "1"],
    &["rollback", "1", "--yes"],
    &["rollback", "last-success"],
    &["rollback", "codon", "nobody"],
    &["undo"],
    &["undo", "--preview"],
    &["undo", "--yes"],
    &["redo"],
    &["redo", "--yes"],
    &["redo", "--yes"],
    &["runs"],
    &["runs", "--tree"],
    &["pin", "1"],
    &["pin", "nowhere"],
    &["unpin", "1"],
    &["delete", "1"],
    &["delete", "nowhere"],
    &["prune", "--dry-run"],
    &["prune"],
    &["prune", "--plan", "none"],
    &["prune", "--yes"],
    &["classify", "rm a"],
    &["classify"],
    &["config", "show"],
    &["config", "check"],
    &["config", "check", "--run", "nobody"],
    &["config", "trust"],
    &["off", "--for", "1m"],
    &["off", "--for", "long"],
    &["on"],
    &["install"],
    &["install", "nobody"],
    &["install", "claude-code", "--dry-run"],
    &["install", "--all"],
    &["uninstall"],
    &["uninstall", "--all"],
    &["doctor"],
    &["doctor", "--refs"],
    &["push", "/nowhere"],
    &["fetch", "/nowhere"],
    &["env"],
    &["git", "reset", "--hard"],
    &["daemon", "status"],
    &["daemon", "stop"],
    &["daemon", "start"],
    &["daemon", "run"],
    &["daemon", "stop"],
    &["nothing"],
];

fn check(lab: &Lab, before: &[&str], verb: &[&str], after: &[&str]) {
    let args = [before, verb, after].concat();
    let output = lab.piton(&args);
    let read: Result<Value, _> = serde_json::from_str(&output.stdout);
    let document = read.unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"));
    assert!(document.is_object(), "{args:?}: {output:?}");
    assert!(after.is_empty() || (output.code, output.error().as_str()) == (2, "bad-request"), "{args:?}: {output:?}");
}

#[test]
fn every_verb_prints_one_document() {
    let lab = Lab::new();
    for known in [false, true] {
        if known {
            lab.write("a", "one");
            lab.take("the first");
            lab.write("a", "two");
        }
        VERBS.iter().for_each(|verb| check(&lab, &["--json"], verb, &[]));
    }
    // The words of these are another program's: a mistake among them is its own.
    let is_own = |verb: &&&[&str]| !matches!(verb.first(), Some(&("git" | "classify"))) && !verb.contains(&"--");
    VERBS.iter().filter(is_own).for_each(|verb| check(&lab, &[], verb, &["--json", "--no-such"]));
    for verb in VERBS {
        check(&lab, &["--json", "-w", "/nowhere"], verb, &[]);
    }
}

#[test]
fn an_error_before_the_verb_is_a_document_too() {
    let lab = Lab::new();
    std::fs::write(lab.home.join("piton"), "a file in the place of the home").unwrap();
    for verb in VERBS {
        check(&lab, &["--json"], verb, &[]);
    }
}
