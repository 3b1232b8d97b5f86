//! Forgotten files, and names that must not be in the repository.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::files::File;
use super::rust::{mask, words};
use super::seen;
use super::tables::UNNAMED;

/// Files that no `mod` reaches, and test data that no test names.
pub(crate) fn forgotten(files: &[File], found: &mut Vec<Finding>) {
    let declared: BTreeMap<&str, BTreeSet<String>> =
        files.iter().filter(|file| file.is_rust_in("")).map(|file| (&*file.path, declared(&file.text))).collect();
    for file in files.iter().filter(|file| file.is_rust_in("src/") || file.is_rust_in("tests/")) {
        let inner = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
        let Some((dir, name)) = inner.rsplit_once('/') else {
            continue;
        };
        let root = matches!(dir, "src" | "tests") && (dir == "tests" && !file.path.ends_with("/mod.rs"));
        if root || matches!(name, "main" | "lib") {
            continue;
        }
        let mut parents = vec![format!("{dir}.rs")];
        parents.extend(["mod", "main", "lib"].map(|parent| format!("{dir}/{parent}.rs")));
        let declares = |parent: &File| declared.get(&*parent.path).is_some_and(|names| names.contains(name));
        let is_parent = |other: &File| parents.contains(&other.path) || (dir == "tests" && other.is_rust_in("tests/"));
        // `#[path = "dir/file.rs"]` reaches a file under another name than its own.
        let by_path = |other: &File| {
            other
                .text
                .lines()
                .filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"))
                .any(|relative| file.path.ends_with(&format!("/{relative}")))
        };
        if !files.iter().any(|other| (is_parent(other) && declares(other)) || by_path(other)) {
            found.push(Finding::new(&file.path, 1, format!("no `mod {name}` reaches this file")));
        }
    }
    let data: BTreeSet<&str> =
        files.iter().filter_map(|file| file.path.strip_prefix("tests/data/")?.split('/').next()).collect();
    for name in data {
        if !files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(name)) {
            found.push(Finding::new(&format!("tests/data/{name}"), 1, "no test names this".to_owned()));
        }
    }
}

/// The modules that a file declares.
fn declared(text: &str) -> BTreeSet<String> {
    let masked = mask(&text.chars().collect::<Vec<_>>());
    let name = |at: usize| masked[at + 3..].iter().take_while(|c| !matches!(c, ';' | '{')).collect::<String>();
    words(&masked, "mod").into_iter().map(|at| name(at).trim().to_owned()).collect()
}

pub(crate) fn unnamed(files: &[File], found: &mut Vec<Finding>) {
    // Cargo writes its registry into the lock files.
    for file in files.iter().filter(|file| !matches!(file.path.as_str(), "Cargo.lock" | "fuzz/Cargo.lock")) {
        for (number, line) in file.text.lines().enumerate() {
            for name in UNNAMED.iter().filter(|name| line.contains(**name)) {
                found.push(Finding::new(&file.path, number + 1, format!("`{name}` must not be named")));
            }
        }
    }
}

#[test]
fn forgotten_files_are_seen() {
    let forgotten_in = |files: &[(&str, &str)]| {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut found = Vec::new();
        forgotten(&files, &mut found);
        found.iter().map(Finding::text).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        forgotten_in(&[("src/a/tests.rs", ""), ("src/a/mod.rs", "mod tests;"), ("src/lib.rs", "pub mod a;")]),
        ""
    );
    assert!(forgotten_in(&[("src/a/tests.rs", ""), ("src/a.rs", "// mod tests;")]).contains("src/a/tests.rs"));
    assert!(forgotten_in(&[("src/a.rs", ""), ("src/lib.rs", "mod ab;")]).contains("src/a.rs"));
    assert!(forgotten_in(&[("tests/suite/x.rs", ""), ("tests/suite/main.rs", "mod y;")]).contains("tests/suite/x.rs"));
    assert!(forgotten_in(&[("tests/common/mod.rs", ""), ("tests/a.rs", "")]).contains("tests/common"));
    assert_eq!(forgotten_in(&[("tests/common/mod.rs", ""), ("tests/a.rs", "mod common;")]), "");
    assert!(forgotten_in(&[("tests/data/x.txt", ""), ("tests/a.rs", "")]).contains("tests/data/x.txt"));
    assert_eq!(forgotten_in(&[("tests/data/x.txt", ""), ("tests/a.rs", "include_str!(\"data/x.txt\")")]), "");
}

#[test]
fn names_are_seen() {
    for name in UNNAMED {
        seen("docs/X.md", &format!("a\nsee {name}x\n"), &[":2: "]);
        seen("Cargo.lock", name, &[]);
    }
}
