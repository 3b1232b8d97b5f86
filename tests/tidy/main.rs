//! Holds the shape of the source, because a single crate has no compiler to say no: ranks, confined crates, sizes,
//! `unwrap` and `unsafe`, forgotten files, and names that must not be in the repository. No dependencies.

mod files;
mod rust;
mod shape;
mod tables;
mod tracked;

use files::{File, tree};
use rust::{blank_tests, mask};
use shape::{confined, forbidden, notes, ranks, sizes};
use tracked::{forgotten, unnamed};

/// All findings, as `path:line: sentence`.
fn findings(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust_in("src/")) {
        let masked = mask(&file.text);
        let (code, hidden) = blank_tests(&masked, file.is_test());
        let mut report = |at: usize, text: String| {
            let line = 1 + masked[..at].iter().filter(|c| **c == '\n').count();
            found.push(format!("{}:{line}: {text}", file.path));
        };
        ranks(&file.path, &code, &mut report);
        confined(&file.path, &masked, &mut report);
        sizes(&masked, &code, hidden, &mut report);
        forbidden(&file.path, &masked, &code, &file.text, &mut report);
        notes(&file.text, &mut report);
    }
    forgotten(files, &mut found);
    unnamed(files, &mut found);
    found
}

pub type Report<'r> = &'r mut dyn FnMut(usize, String);

#[test]
fn the_tree_is_tidy() {
    let files = tree();
    assert!(files.iter().filter(|file| file.is_rust_in("src/")).count() > 50, "the sources are not there");
    let found = findings(&files);
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

/// Every message type and error code has its place in the specification.
#[test]
fn the_protocol_is_specified() {
    let files = tree();
    let text = |path: &str| &files.iter().find(|file| file.path == path).unwrap().text;
    let (request, error, page) = (text("src/protocol/request.rs"), text("src/error.rs"), text("docs/PROTOCOL.md"));
    let between = |text: &str, from: &str, to: &str| -> Vec<String> {
        let part = text.split_once(from).unwrap().1.split_once(to).unwrap().0;
        part.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut names = between(request, "const TYPES: &[&str] = &[", "];");
    names.extend(between(request, "const LATER: &[&str] = &[", "];"));
    names.extend(between(error, "pub fn as_str", "\n    }"));
    assert!(names.len() > 60, "{names:?}");
    names.retain(|name| !page.contains(&format!("`{name}`")));
    assert_eq!(names, Vec::<String>::new(), "not in docs/PROTOCOL.md");
}

/// What is found in one made-up file.
fn check(path: &str, text: &str) -> Vec<String> {
    let mut files = vec![File::new(path, text)];
    // Everything reaches it.
    let inner = path.trim_end_matches(".rs").trim_end_matches("/mod");
    if let Some((dir, name)) = inner.rsplit_once('/').filter(|_| path.starts_with("src/")) {
        let parent = if dir == "src" { "src/lib.rs".to_owned() } else { format!("{dir}/mod.rs") };
        files.push(File::new(&parent, &format!("mod {name};")));
    }
    let found = findings(&files);
    found.into_iter().filter(|finding| finding.starts_with(path)).collect()
}

pub fn seen(path: &str, text: &str, expected: &[&str]) {
    let found = check(path, text);
    let fits = found.len() == expected.len() && expected.iter().all(|part| found.iter().any(|f| f.contains(part)));
    assert!(fits, "{path}\n{text}\nexpected {expected:?}\nfound {found:?}");
}
