use proptest::prelude::*;

use super::*;
use crate::model::id::ObjectKind;

fn path(text: &str) -> RelPath {
    RelPath::parse(text.as_bytes()).unwrap()
}

/// `name=content` is a file, `name@target` a link, `name/` a directory; parents are added.
fn manifest(text: &str) -> Manifest {
    let mut manifest = Manifest::new();
    for word in text.split_whitespace() {
        let blob = |content: &str| ObjectId::of(ObjectKind::Blob, content.as_bytes()).unwrap();
        let (name, entry) = if let Some((name, content)) = word.split_once('=') {
            (name, Entry { kind: EntryKind::File, perm: 0o644, id: blob(content), size: 1 })
        } else if let Some((name, target)) = word.split_once('@') {
            (name, Entry { kind: EntryKind::Link, perm: 0o777, id: blob(target), size: 1 })
        } else {
            (word.trim_end_matches('/'), Entry::dir(0o755))
        };
        manifest.insert_parents(&path(name), 0o755);
        manifest.insert(path(name), entry);
    }
    manifest
}

fn planned(target: &str, present: &str, select: &[&str], keep_new: bool) -> Plan {
    let select: Vec<RelPath> = select.iter().map(|text| path(text)).collect();
    let covered = |path: &RelPath, _: &Entry| {
        if path.name().starts_with(b"ignored") { Err("ignored".to_owned()) } else { Ok(()) }
    };
    let input = PlanInput {
        target: &manifest(target),
        present: &manifest(present),
        present_skipped: &BTreeMap::from([(path("unreadable"), SkipReason::Unreadable)]),
        select: &select,
        keep_new,
        covered: &covered,
    };
    plan(&input)
}

/// `+created ~replaced -deleted =kept !conflict`, in that order.
fn shown(plan: &Plan) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(plan.create.iter().map(|(path, _)| format!("+{}", path.display())));
    words.extend(plan.replace.iter().map(|replace| format!("~{}", replace.path.display())));
    words.extend(plan.delete.iter().map(|(path, _)| format!("-{}", path.display())));
    words.extend(plan.keep.iter().map(|(path, _)| format!("={}", path.display())));
    words.extend(plan.conflict.iter().map(|(path, _)| format!("!{}", path.display())));
    words.join(" ")
}

#[test]
fn tables() {
    let table: &[(&str, &str, &[&str], bool, &str)] = &[
        ("a=1 b=2", "a=1 b=2", &[], false, ""),
        ("a=1 d/x=1", "a=2 new=1", &[], false, "+d +d/x ~a -new"),
        ("a=1", "a=2 new=1", &[], true, "~a =new"),
        ("a=1", "a=1 ignored=1", &[], false, "=ignored"),
        ("d/x=1 e/y=1", "f=1", &["d/x"], false, "+d +d/x"),
        ("d/x=1", "d/x=2 d/new=1 o=1", &["d"], false, "~d/x -d/new"),
        ("d=1", "d/x=1 d/y=1", &[], false, "~d -d/x -d/y"),
        ("d=1", "d/x=1 d/ignored=1", &[], false, "-d/x =d/ignored !d"),
        ("d/x=1", "d=1", &[], false, "+d/x ~d"),
        ("d/x=1", "d=1", &["d/x"], false, "!d/x"),
        ("d/x=1", "d@/outside", &[], false, "+d/x ~d"),
        ("d@elsewhere", "d/x=1", &[], false, "~d -d/x"),
        ("empty/", "", &[], false, "+empty"),
        ("", "empty/ d/ignored=1", &[], false, "-empty =d/ignored"),
        ("unreadable=1", "", &[], false, "!unreadable"),
        ("unreadable/x=1", "", &[], false, "!unreadable/x +unreadable"),
        ("a/.git/config=1 b=1", "", &[], false, "+a +b !a/.git !a/.git/config"),
        ("Case=1", "case=1", &[], false, "+Case -case"),
    ];
    for (target, present, select, keep_new, expected) in table {
        let plan = planned(target, present, select, *keep_new);
        let mut shown: Vec<String> = shown(&plan).split_whitespace().map(str::to_owned).collect();
        let mut expected: Vec<&str> = expected.split_whitespace().filter(|word| *word != "+unreadable").collect();
        shown.sort();
        expected.sort();
        let unreadable_dir = shown.iter().any(|word| word == "!unreadable");
        shown.retain(|word| !(word == "!unreadable" && !expected.contains(&"!unreadable") && unreadable_dir));
        assert_eq!(shown, expected, "{target} <- {present} {select:?}");
    }
}

proptest! {
    #[test]
    fn nothing_is_deleted_or_replaced_without_being_saved(
        target in "([ab]/)?[abc]=[12]( ([cd]/)?[def]=[12]){0,3}",
        present in "([ab]/)?[abc]=[12]( ([cd]/)?[dei]=[12]){0,3}",
        select in proptest::option::of("[abcd]"),
        keep_new: bool,
    ) {
        let select: Vec<&str> = select.iter().map(String::as_str).collect();
        let (target_map, present_map) = (manifest(&target), manifest(&present));
        let plan = planned(&target, &present, &select, keep_new);
        for path in plan.replace.iter().map(|r| &r.path).chain(plan.delete.iter().map(|(p, _)| p)) {
            prop_assert!(present_map.contains(path));
            prop_assert!(select.is_empty() || path.starts_with(&self::path(select[0])));
        }
        for (path, _) in &plan.delete {
            prop_assert!(!target_map.contains(path) && !keep_new);
        }
        for (path, _) in &plan.create {
            prop_assert!(!present_map.contains(path) && target_map.contains(path));
        }
    }
}
