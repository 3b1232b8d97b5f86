use super::*;

/// `d:dir`, `l:link`, `f:file`; a digit after the letter gives another content.
fn manifest(text: &str) -> Manifest {
    let mut manifest = Manifest::new();
    for word in text.split_whitespace() {
        let (kind, name) = word.split_once(':').unwrap();
        let content = ObjectId::of(ObjectKind::Blob, &kind.as_bytes()[1..]).unwrap();
        let leaf = |kind, perm| ManifestEntry { kind, perm, id: content, size: 1 };
        let entry = match &kind[..1] {
            "d" => ManifestEntry::dir(0o755),
            "l" => leaf(EntryKind::Link, 0o777),
            "x" => leaf(EntryKind::File, 0o755),
            _ => leaf(EntryKind::File, 0o644),
        };
        manifest.insert(path(name), entry);
        manifest.insert_parents(&path(name), 0o755);
    }
    manifest
}

/// `+create ~replace -delete =keep !conflict`, in byte order of the paths.
fn show(plan: &Plan) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut add =
        |sign: &str, at: &RelPath, why: String| lines.push((at.display(), format!("{sign}{}{why}", at.display())));
    plan.create.iter().for_each(|(at, _)| add("+", at, String::new()));
    plan.replace.iter().for_each(|(at, ..)| add("~", at, String::new()));
    plan.delete.iter().for_each(|(at, _)| add("-", at, String::new()));
    plan.keep.iter().for_each(|(at, why)| add("=", at, format!("({})", why.as_str())));
    plan.conflict.iter().for_each(|(at, why)| add("!", at, format!("({})", why.as_str())));
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct Case<'a> {
    target: &'a str,
    present: &'a str,
    select: &'a [&'a str],
    keep_new: bool,
    uncovered: &'a [&'a str],
    target_skipped: &'a [&'a str],
    /// The state when the plan was agreed to, if it was.
    agreed: Option<&'a str>,
    skipped: &'a [(&'a str, SkipReason)],
}

#[track_caller]
fn check(case: Case<'_>, expected: &str) {
    let agreed = case.agreed.map(|present| plan_of(&case, present, &|_, _, _| Agreement::Given));
    let plan = plan_of(&case, case.present, &|at, from, to| match &agreed {
        Some(agreed) => agreed.agreement(at, from, to),
        None => Agreement::Given,
    });
    assert_eq!(show(&plan), expected);
}

fn plan_of(case: &Case<'_>, present: &str, agreed: &Agree<'_>) -> Plan {
    let (target, present) = (manifest(case.target), manifest(present));
    let select: Vec<RelPath> = case.select.iter().map(|text| path(text)).collect();
    plan(&PlanInput {
        stays: &|_, _| None,
        target: &target,
        present: &present,
        present_skipped: &case.skipped.iter().map(|(at, reason)| (path(at), *reason)).collect(),
        select: &select,
        keep_new: case.keep_new,
        covered: &|at, _| {
            let out = case.uncovered.iter().any(|out| at.starts_with(&path(out)));
            if out { Err("ignored".to_owned()) } else { Ok(()) }
        },
        target_skipped: &|at| case.target_skipped.iter().any(|skipped| at.starts_with(&path(skipped))),
        agreed,
    })
}

#[test]
fn what_was_agreed_to_and_nothing_else() {
    for (target, agreed, present, expected) in [
        // As it was shown.
        ("f:a f:b", "f1:a f:new", "f1:a f:new", "~a +b -new"),
        // Created since: it stays, and so does the directory around it.
        ("f:a", "f1:a", "f1:a f:new", "~a =new(not-agreed)"),
        ("f:a", "f1:a f:d/x", "f1:a f:d/x f:d/y", "~a =d(not-empty) -d/x =d/y(not-agreed)"),
        ("f:d", "f:d/x", "f:d/x f:d/y", "!d(blocked) =d/x(inside-blocked) =d/y(not-agreed)"),
        // Edited, removed or replaced since.
        ("f:a", "f1:a", "f2:a", "!a(moved)"),
        ("f:a", "f:a", "f2:a", "!a(moved)"),
        ("f:a", "f:a", "", "!a(moved)"),
        ("f:a", "f1:a", "", "!a(moved)"),
        ("f:a", "", "f1:a", "!a(moved)"),
        ("f:a", "f1:a", "x1:a", "!a(moved)"),
        ("", "f:new", "f1:new", "!new(moved)"),
        ("", "f:new", "l:new", "!new(moved)"),
        ("", "f:new", "f:new/x", "!new(moved) =new/x(not-agreed)"),
        // So already.
        ("f:a", "f1:a", "f:a", ""),
        ("f:a", "f:new", "f:a", ""),
        ("f:d/x", "", "d:d", "+d/x"),
        // A parent that was to be made, or to stay, is something else now.
        ("f:d/x", "d:d", "", "!d(moved) !d/x(blocked)"),
        ("f:d/x", "", "f:d", "!d(moved) !d/x(blocked)"),
    ] {
        check(Case { target, present, agreed: Some(agreed), ..Case::default() }, expected);
    }
    let case = Case { target: "f:a", present: "f1:a f:new", keep_new: true, ..Case::default() };
    check(Case { agreed: Some("f1:a"), ..case }, "~a =new(keep-new)");
    let case = Case { target: "f:a f:b", present: "f1:a f1:b", select: &["a"], ..Case::default() };
    check(Case { agreed: Some("f1:a"), ..case }, "~a");
}

#[test]
fn whole_trees() {
    for (target, present, expected) in [
        ("f:a f:b/c", "f:a f:b/c", ""),
        ("f:a", "", "+a"),
        ("f:a", "f1:a", "~a"),
        ("x:a", "f:a", "~a"),
        ("l:a", "f:a", "~a"),
        ("", "f:a d:b", "-a -b"),
        ("f:d/x/y", "", "+d +d/x +d/x/y"),
        ("f:d/x", "f:d", "~d +d/x"),
        ("f:d/x", "l:d", "~d +d/x"),
        ("f:d", "f:d/x/y f:d/z", "~d -d/x -d/x/y -d/z"),
        ("l:d", "f:d/x", "~d -d/x"),
        ("f:readme", "f:README", "-README +readme"),
        ("d:empty", "", "+empty"),
        ("f:.git/hooks/pre-commit f:a", "", "!.git(git-dir) !.git/hooks(git-dir) !.git/hooks/pre-commit(git-dir) +a"),
        ("", "f:n/.git/HEAD f:n/a", "=n(not-empty) !n/.git(git-dir) !n/.git/HEAD(git-dir) -n/a"),
        ("f:.gitignore f:x.git", "", "+.gitignore +x.git"),
    ] {
        check(Case { target, present, ..Case::default() }, expected);
    }
}

#[test]
fn what_the_target_would_not_have_captured_stays() {
    let uncovered = &["d/log"][..];
    let case = |target, present| Case { target, present, uncovered, ..Case::default() };
    check(case("", "f:d/log f:d/x"), "=d(not-empty) =d/log(not-covered) -d/x");
    check(case("f:d", "f:d/log f:d/x"), "!d(blocked) =d/log(not-covered) =d/x(inside-blocked)");
    check(case("f:d/log", "f1:d/log"), "~d/log");
    let target_skipped = &["big"][..];
    check(Case { present: "f:big f:x", target_skipped, ..Case::default() }, "=big(skipped-in-target) -x");
    let keep_new = true;
    check(Case { target: "f:a", present: "f1:a f:n/x", keep_new, ..Case::default() }, "~a =n(keep-new) =n/x(keep-new)");
    check(Case { target: "f:n", present: "f:n/x", keep_new, ..Case::default() }, "!n(blocked) =n/x(keep-new)");
}

#[test]
fn what_no_checkpoint_holds_is_a_conflict() {
    for (target, present, skipped, expected) in [
        ("f:a", "", ("a", SkipReason::TooLarge(9)), "!a(not-saved)"),
        ("f:a", "f1:a", ("a", SkipReason::Unreadable), "!a(not-saved)"),
        ("f:a", "", ("a", SkipReason::Special), "!a(special)"),
        ("f:a/b", "", ("a", SkipReason::Special), "!a(special) !a/b(blocked)"),
        ("f:a/b", "d:a", ("a", SkipReason::Unreadable), "!a/b(not-saved)"),
        ("f:a/b", "d:a", ("a", SkipReason::OverCount), "+a/b"),
        ("f:a", "", ("a", SkipReason::Vanished), "+a"),
        ("", "d:a", ("a/pipe", SkipReason::Special), "=a(not-empty)"),
        ("f:a", "f:a/x", ("a/pipe", SkipReason::Special), "!a(blocked) =a/x(inside-blocked)"),
        ("", "f:a", ("a", SkipReason::Unreadable), "!a(not-saved)"),
    ] {
        check(Case { target, present, skipped: &[skipped], ..Case::default() }, expected);
    }
}

#[test]
fn a_selection_touches_nothing_else() {
    for (target, present, select, expected) in [
        ("f:a f:b", "f1:a f1:b f:c", &["a"][..], "~a"),
        ("f:d/e/f f:d/g", "f:c", &["d/e/f"], "+d +d/e +d/e/f"),
        ("f:d/e/f", "f:d/x", &["d/e/f"], "+d/e +d/e/f"),
        ("f:d/e/f", "f:d", &["d/e/f"], "!d/e/f(blocked)"),
        ("f:d/e/f", "l:d", &["d/e"], "!d/e(blocked) !d/e/f(blocked)"),
        ("f:d/e/f", "f:d", &["d"], "~d +d/e +d/e/f"),
        ("", "f:d/x f:e/x", &["d/x", "e"], "-d/x -e -e/x"),
        ("f:ab f:a", "f1:ab f1:a", &["a"], "~a"),
        ("f:a", "f1:a f:b", &["nothing"], ""),
        ("f:a", "f1:a f:b", &["", "a"], "~a -b"),
    ] {
        check(Case { target, present, select, ..Case::default() }, expected);
    }
}

#[test]
fn a_damaged_target_does_no_harm() {
    let mut target = manifest("f:d");
    target.insert(path("d/x"), *manifest("f:x").get(&path("x")).unwrap());
    target.insert(path("e/f"), *manifest("f:x").get(&path("x")).unwrap());
    let world = World::new();
    assert_eq!(show(&world.plan(&target, &Manifest::new(), &[])), "+d !d/x(blocked) +e +e/f");
}

#[test]
fn selections_match_entries_and_what_is_below() {
    let manifest = manifest("f:a/b/c f:ab");
    for (select, expected) in [("", true), ("a", true), ("a/b/c", true), ("a/x", false), ("b", false)] {
        assert_eq!(matches(&manifest, &path(select)), expected, "{select}");
    }
}
