//! Verbs do what was agreed to: edits that come between the question and the answer, or between a preview and its request.

use serde_json::{Value, json};

use crate::support::{Asking, Lab, Sidecar, tree};

/// `a`, `b` and `c` changed since the checkpoint, `gone` removed, `new` and `made/x` created.
fn scene() -> (Lab, u64) {
    let lab = Lab::new();
    for name in ["a", "b", "c", "gone", "same"] {
        lab.write(name, format!("{name} as it was"));
    }
    lab.write(".gitignore", "*.log\n");
    let n = lab.take("start");
    lab.sh("for f in a b c; do echo now > $f; done; rm gone; echo new > new; mkdir made; echo x > made/x");
    (lab, n)
}

fn ok(reply: Value) -> Value {
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

#[test]
fn what_was_agreed_to_is_done() {
    let (lab, n) = scene();
    let before = tree(&lab.work);
    let done = Asking::start(&lab, &["restore", &n.to_string()]).answer("y");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(lab.read("a") == "a as it was" && lab.read("gone") == "gone as it was", "{done:?}");
    assert!(!lab.work.join("new").exists() && !lab.work.join("made").exists(), "{done:?}");
    assert_eq!(Asking::start(&lab, &["undo"]).answer("y").code, 0);
    assert_eq!(tree(&lab.work), before);
    let refused = Asking::start(&lab, &["restore", &n.to_string()]).answer("n");
    assert_eq!((refused.code, tree(&lab.work)), (5, before.clone()), "{refused:?}");
    // Keys that were pressed before the question do not answer it.
    let typed = Asking::start_after(&lab, &["restore", &n.to_string()], "y\ny\n").answer("n");
    assert_eq!((typed.code, tree(&lab.work)), (5, before.clone()), "{typed:?}");
    // Nobody to ask: the preview, and nothing else.
    let shown = lab.piton(&["restore", &n.to_string()]);
    assert!(shown.code == 5 && shown.stdout.contains("  restore   "), "{shown:?}");
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn what_came_while_the_question_stood_stays() {
    let (lab, n) = scene();
    let question = Asking::start(&lab, &["restore", &n.to_string()]);
    lab.sh("echo mine > mine; mkdir own; echo o > own/o; echo y > made/y");
    let done = question.answer("y");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        (lab.read("mine").as_str(), lab.read("own/o").as_str(), lab.read("made/y").as_str()),
        ("mine\n", "o\n", "y\n")
    );
    for path in ["mine", "own/o", "made/y"] {
        assert!(done.stdout.contains(path), "{path} is said to stay: {done:?}");
    }
    assert!(!lab.work.join("new").exists() && !lab.work.join("made/x").exists(), "the rest is done: {done:?}");
    assert_eq!(lab.read("a"), "a as it was");
    // The next restore shows it, and has it go.
    let again = lab.restore(n, &[]);
    assert!(!lab.work.join("mine").exists() && !lab.work.join("made").exists(), "{again}");
}

#[test]
fn what_moved_while_the_question_stood_is_a_conflict() {
    let (lab, n) = scene();
    let question = Asking::start(&lab, &["restore", &n.to_string()]);
    lab.sh("echo mine > a; rm b; echo mine > gone; echo mine > new; rm same; printf 'c as it was' > c");
    let done = question.answer("y");
    assert_eq!(done.code, 4, "{done:?}");
    for (path, content) in [("a", "mine\n"), ("gone", "mine\n"), ("new", "mine\n"), ("c", "c as it was")] {
        assert_eq!(lab.read(path), content, "{path}: {done:?}");
    }
    assert!(!lab.work.join("b").exists() && !lab.work.join("same").exists(), "{done:?}");
    assert!(!lab.work.join("made").exists(), "the rest is done: {done:?}");
    for path in ["a", "b", "gone", "new", "same"] {
        assert!(done.stdout.contains(&format!("not changed: {path} ")), "{path}: {done:?}");
    }
    assert!(!done.stdout.contains("not changed: c "), "it is as it was agreed that it becomes: {done:?}");
}

#[test]
fn what_rules_hide_while_the_question_stood_is_a_conflict() {
    // An edit meanwhile, and what it hides although it was agreed to go.
    let table: [(&str, &[&str]); 3] = [
        ("echo '*' > made/.gitignore", &["made/x"]),
        ("printf '*.log\\nnew\\nmade/\\n' > .gitignore", &["new", "made", "made/x"]),
        ("rm new; mkfifo new", &["new"]),
    ];
    for (edit, hidden) in table {
        for verb in ["restore", "rollback"] {
            let (lab, n) = scene();
            let question = Asking::start(&lab, &[verb, &n.to_string()]);
            lab.sh(edit);
            let done = question.answer("y");
            assert_eq!(done.code, 4, "{verb}, {edit}: {done:?}");
            for path in hidden {
                assert!(lab.work.join(path).exists(), "{verb}, {edit}: {path}");
                assert!(done.stdout.contains(&format!("not changed: {path} ")), "{verb}, {edit}: {path}: {done:?}");
            }
            assert_eq!(lab.read("a"), "a as it was", "the rest is done: {done:?}");
        }
    }
    // A path that somebody else deleted is done already, rules or not.
    let (lab, n) = scene();
    let question = Asking::start(&lab, &["restore", &n.to_string()]);
    lab.sh("rm -r made");
    let done = question.answer("y");
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn undo_redo_and_rollback_do_what_was_shown() {
    let (lab, n) = scene();
    let number = n.to_string();
    for (verb, path) in [(&["rollback", &number][..], "c"), (&["undo"], "a"), (&["redo"], "new")] {
        let question = Asking::start(&lab, verb);
        lab.sh(&format!("echo mine > mine; echo mine > {path}"));
        let done = question.answer("y");
        assert_eq!((done.code, lab.read(path), lab.read("mine")), (4, "mine\n".into(), "mine\n".into()), "{done:?}");
        let b = if verb[0] == "undo" { "now\n" } else { "b as it was" };
        assert_eq!(lab.read("b"), b, "{verb:?}: {done:?}");
        lab.sh("rm mine");
    }
    // A rollback for which no file has to change is asked too, and takes nothing along that came meanwhile.
    lab.restore(n, &[]);
    let question = Asking::start(&lab, &["rollback", &number]);
    lab.sh("echo mine > mine");
    let done = question.answer("y");
    assert_eq!((done.code, lab.read("mine").as_str()), (0, "mine\n"), "{done:?}");
}

#[test]
fn a_step_that_somebody_else_took_meanwhile_is_not_taken_twice() {
    let (lab, n) = scene();
    lab.restore(n, &["a"]);
    lab.restore(n, &["b"]);
    for verb in ["undo", "redo"] {
        let question = Asking::start(&lab, &[verb]);
        assert_eq!(lab.piton(&[verb, "--yes"]).code, 0);
        let before = tree(&lab.work);
        let done = question.answer("y");
        assert_eq!((done.code, tree(&lab.work)), (5, before), "{verb}: {done:?}");
        assert!(done.stderr.contains("o-2") && done.stderr.contains("no longer the next one"), "{verb}: {done:?}");
    }
}

#[test]
fn a_plan_that_is_another_one_by_now_is_refused_with_the_fresh_one() {
    let (lab, n) = scene();
    let sha = n.to_string();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let start = json!({"type": "rollback.preview", "sha": sha});
    let digest =
        |reply: &Value| reply["plan"]["digest"].as_str().unwrap_or_else(|| panic!("no digest: {reply}")).to_owned();
    let plan = digest(&ok(sidecar.ask(start.clone())));
    assert_eq!(digest(&ok(sidecar.ask(start.clone()))), plan, "the same question, the same plan");
    for other in [json!({"keep_new": true}), json!({"paths": ["a"]})] {
        let mut other_question = start.clone();
        other_question.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert_ne!(digest(&ok(sidecar.ask(other_question))), plan, "{other}");
    }
    let listed = |sidecar: &mut Sidecar| ok(sidecar.ask(json!({"type": "checkpoint.list"})))["total"].clone();
    let checkpoints = listed(&mut sidecar);
    let table = [
        ("echo mine > mine", "mine"),
        ("echo other > a", "a"),
        ("echo back > gone", "gone"),
        ("rm new", "new"),
        ("echo '*' > made/.gitignore", "made/x"),
    ];
    let mut plan = plan;
    for (edit, path) in table {
        lab.sh(edit);
        let before = tree(&lab.work);
        for kind in ["restore", "rollback.toCheckpoint"] {
            let refused = sidecar.ask(json!({"type": kind, "sha": sha, "plan": plan}));
            let error = &refused["error"];
            assert_eq!(
                (&error["code"], &error["field"], &error["retry"]),
                (&json!("stale-plan"), &json!("plan"), &json!(false)),
                "{path}: {refused}"
            );
            assert_eq!(tree(&lab.work), before, "{path}: nothing is done");
            assert_eq!(error["preview"]["target"]["n"], n, "{refused}");
            let fresh = ok(sidecar.ask(start.clone()));
            assert_eq!(error["preview"]["plan"], fresh["plan"], "{path}: the fresh preview is in the error");
        }
        plan = digest(&ok(sidecar.ask(start.clone())));
    }
    assert_eq!(listed(&mut sidecar), checkpoints, "no checkpoint is left of what was refused");
    // A path that is kept anyway does not change the plan.
    lab.sh("echo line > some.log");
    let done = ok(sidecar.ask(json!({"type": "restore", "sha": sha, "plan": plan, "expect": sha})));
    assert_eq!((lab.read("a").as_str(), lab.work.join("mine").exists()), ("a as it was", false), "{done}");
    for (kind, a) in [("undo", "other\n"), ("redo", "a as it was")] {
        let plan = digest(&ok(sidecar.ask(json!({"type": kind, "preview": true}))));
        lab.sh("echo mine > b");
        let refused = sidecar.ask(json!({"type": kind, "plan": plan}));
        assert_eq!((&refused["error"]["code"], lab.read("b").as_str()), (&json!("stale-plan"), "mine\n"), "{refused}");
        let plan = digest(&refused["error"]["preview"]);
        ok(sidecar.ask(json!({"type": kind, "plan": plan})));
        assert_eq!(lab.read("a"), a, "{kind}");
    }
    assert_eq!(sidecar.finish(), 0);
    // The command line shows the same digest.
    let shown = lab.piton(&["restore", &sha, "--preview", "--json"]).json();
    assert_eq!(digest(&shown).len(), 40);
}
