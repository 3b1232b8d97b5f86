//! Circles of files that use one another.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::files::File;
use super::rust::{Source, read_paths, words_before_colons};
use super::tables::{CIRCLE, MAX_CIRCLE};

/// The files that each file uses.
type Arrows<'s> = BTreeMap<&'s str, BTreeSet<&'s str>>;

/// Returns the files of circles that are too large. A circle counts within one top folder: ranks hold the folders
/// apart.
pub(crate) fn knots(sources: &[Source]) -> Vec<Finding> {
    let arrows = arrows(sources);
    let tops: BTreeSet<&str> = arrows.keys().filter_map(|path| top(path)).collect();
    let mut found = Vec::new();
    for folder in tops {
        for circle in circles(folder, &arrows) {
            let excepted = circle.iter().all(|path| path.starts_with(CIRCLE));
            if circle.len() > MAX_CIRCLE && !excepted {
                found.extend(circle.iter().map(|path| finding(path, folder, &circle, &arrows[path])));
            }
        }
    }
    found
}

/// Tells what a file of a circle uses of it.
fn finding(path: &str, folder: &str, circle: &[&str], uses: &BTreeSet<&str>) -> Finding {
    let inside = circle.iter().filter(|other| uses.contains(*other));
    let names: Vec<&str> = inside.map(|other| &other["src/".len() + folder.len() + 1..]).collect();
    let text = format!(
        "one of {} files that use one another in a circle (at most {MAX_CIRCLE}): it uses {}",
        circle.len(),
        names.join(" ")
    );
    Finding::new(path, 1, text)
}

/// The top folder of a file below one.
fn top(path: &str) -> Option<&str> {
    path.strip_prefix("src/")?.split_once('/').map(|(top, _)| top)
}

/// Reads `use` trees, qualified paths, and children by their bare name. Tests do not count.
fn arrows<'s>(sources: &'s [Source]) -> Arrows<'s> {
    let counted = |source: &&Source| !source.is_test && top(source.path).is_some();
    let modules: BTreeMap<Vec<String>, &str> =
        sources.iter().filter(counted).map(|source| (source.module.clone(), source.path)).collect();
    let mut arrows = Arrows::new();
    for source in sources.iter().filter(counted) {
        let uses = arrows.entry(source.path).or_default();
        let mut read_to = 0;
        for at in words_before_colons(&source.code) {
            // A word inside a `use` tree belongs to the tree.
            if at < read_to {
                continue;
            }
            let mut paths = Vec::new();
            let end = read_paths(&source.code, at, &[], &mut paths);
            let place = source.place(at);
            for path in paths {
                let Some(target) = target(&place, &path, &modules) else { continue };
                read_to = end;
                if target != source.path {
                    uses.insert(target);
                }
            }
        }
    }
    arrows
}

/// The file that holds what a path names, seen from a module.
fn target<'s>(place: &[String], path: &[String], modules: &BTreeMap<Vec<String>, &'s str>) -> Option<&'s str> {
    let (first, rest) = path.split_first()?;
    let mut target = match first.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => place.to_vec(),
        child => {
            let child = [place, &[child.to_owned()]].concat();
            modules.get(&child)?;
            child
        }
    };
    if first == "super" {
        target.pop();
    }
    for word in rest {
        match word.as_str() {
            "self" => {}
            "super" => drop(target.pop()),
            other => target.push(other.to_owned()),
        }
    }
    // Behind the deepest module stand the names of its items.
    (1..=target.len()).rev().find_map(|length| modules.get(&target[..length])).copied()
}

/// Sets of files below a top folder, each of which reaches all others of its set.
fn circles<'s>(folder: &str, arrows: &Arrows<'s>) -> Vec<Vec<&'s str>> {
    let inside = |path: &&&str| top(path) == Some(folder);
    let reached = |start: &'s str| {
        let (mut reached, mut pending) = (BTreeSet::new(), vec![start]);
        while let Some(path) = pending.pop() {
            let next = arrows.get(path).into_iter().flatten().filter(inside);
            pending.extend(next.filter(|next| reached.insert(**next)));
        }
        reached
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().filter(inside).map(|path| (*path, reached(path))).collect();
    let mut circles = BTreeSet::new();
    for (path, reached) in &reach {
        let circle = reached.iter().copied().filter(|other| reach[other].contains(path));
        circles.insert(circle.collect::<Vec<_>>());
    }
    circles.into_iter().filter(|circle| circle.len() > 1).collect()
}

/// The circles in made-up files, without the limit of size.
fn circles_in(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
    let sources: Vec<Source> = files.iter().map(Source::new).collect();
    let arrows = arrows(&sources);
    circles("a", &arrows).iter().map(|circle| circle.join(" ")).collect()
}

#[test]
fn circles_are_seen() {
    let b_and_c = ["src/a/b.rs src/a/c.rs"];
    assert_eq!(circles_in(&[("src/a/b.rs", "use super::c::X;"), ("src/a/c.rs", "use crate::a::b::Y;")]), b_and_c);
    assert_eq!(
        circles_in(&[("src/a/b.rs", "use super::{c::{self, X}, d};"), ("src/a/c.rs", "use super::b;")]),
        b_and_c
    );
    assert_eq!(circles_in(&[("src/a/b.rs", "fn f() { super::c::f() }"), ("src/a/c.rs", "use super::b::f;")]), b_and_c);
    let child = [("src/a/mod.rs", "mod b;\nfn f() { b::f() }"), ("src/a/b.rs", "use super::X;")];
    assert_eq!(circles_in(&child), ["src/a/b.rs src/a/mod.rs"]);
    let inline = [("src/a/b.rs", "mod x { use super::super::c::X; }"), ("src/a/c.rs", "use super::b::Y;")];
    assert_eq!(circles_in(&inline), b_and_c);
    let three = [("src/a/b.rs", "use super::c;"), ("src/a/c.rs", "use super::d;"), ("src/a/d.rs", "use super::b;")];
    assert_eq!(circles_in(&three), ["src/a/b.rs src/a/c.rs src/a/d.rs"]);
}

#[test]
fn arrows_without_a_circle_pass() {
    let none = Vec::<String>::new();
    assert_eq!(circles_in(&[("src/a/b.rs", "use super::c::X;"), ("src/a/c.rs", "use super::d::Y;")]), none);
    assert_eq!(
        circles_in(&[("src/a/b.rs", "use super::c;"), ("src/a/c.rs", "// super::b\nconst X: &str = \"super::b\";")]),
        none
    );
    let tests = "#[cfg(test)]\nmod tests { use super::super::b::X; }";
    assert_eq!(circles_in(&[("src/a/b.rs", "use super::c;"), ("src/a/c.rs", tests)]), none);
    assert_eq!(circles_in(&[("src/a/b.rs", "use super::c;"), ("src/a/c/tests.rs", "use crate::a::b;")]), none);
    // Another folder between them: the ranks forbid one of both arrows.
    assert_eq!(circles_in(&[("src/a/b.rs", "use crate::z::c;"), ("src/z/c.rs", "use crate::a::b;")]), none);
}

#[test]
fn only_large_circles_are_findings() {
    let ring = |folder: &str, size: usize| -> Vec<File> {
        let file = |n: usize| File::new(&format!("{folder}/f{n}.rs"), &format!("use super::f{}::X;", (n + 1) % size));
        (0..size).map(file).collect()
    };
    let found = |files: &[File]| knots(&files.iter().map(Source::new).collect::<Vec<_>>());
    assert!(found(&ring("src/a", 3)).is_empty());
    let four = found(&ring("src/a", 4));
    assert_eq!(four.len(), 4);
    let expected = "src/a/f3.rs:1: one of 4 files that use one another in a circle (at most 3): it uses f0.rs";
    assert_eq!(four[3].text(), expected);
    assert!(found(&ring(CIRCLE.trim_end_matches('/'), 9)).is_empty());
}
