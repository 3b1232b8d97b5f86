//! Holds the shape of the source, because in a single crate the compiler does not: ranks, confined crates, sizes,
//! `unwrap` and `unsafe`, circles of files, names, sentences, and forgotten files. No dependencies.

mod files;
mod knots;
mod linux;
mod names;
mod prose;
mod rust;
mod shape;
mod tables;
mod tracked;

use std::collections::BTreeMap;

use files::{File, tree};
use rust::{Source, line_of};

/// A place that breaks a rule.
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    text: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, text: String) -> Finding {
        Finding { path: path.to_owned(), line, text }
    }

    /// Returns `path:line: sentence`.
    pub(crate) fn text(&self) -> String {
        format!("{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Takes a position in a source, and a sentence about it.
pub(crate) type Report<'r> = &'r mut dyn FnMut(usize, String);

/// Returns what breaks the rules of shape.
fn findings(files: &[File], sources: &[Source]) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in sources {
        let mut report = |at: usize, text: String| {
            found.push(Finding::new(source.path, line_of(&source.text, at), text));
        };
        shape::ranks(source, &mut report);
        shape::confined(source, &mut report);
        shape::sizes(source, &mut report);
        shape::forbidden(source, &mut report);
        shape::undocumented(source, &mut report);
        shape::notes(source, &mut report);
        linux::linux(source, &mut report);
    }
    tracked::forgotten(files, &mut found);
    tracked::unnamed(files, &mut found);
    found
}

/// Returns what breaks the rules of circles, of names and of language. Files of test data are others' texts.
fn language(files: &[File], sources: &[Source]) -> Vec<Finding> {
    let own = || files.iter().filter(|file| !file.path.starts_with("tests/data/"));
    let mut found = knots::knots(sources);
    found.extend(names::names(sources));
    found.extend(own().filter(|file| file.is_rust_in("")).flat_map(prose::openings));
    found.extend(own().flat_map(prose::sentences_of));
    found.extend(sources.iter().flat_map(prose::long_strings));
    found.extend(sources.iter().flat_map(prose::unplain_strings));
    found.extend(own().filter(|file| is_for_users(file)).flat_map(prose::unplain_pages));
    found
}

/// Returns true for a page for users: how piton is built, and its protocol, are for developers.
fn is_for_users(file: &File) -> bool {
    let is_page = file.path.starts_with("docs/") || !file.path.contains('/');
    is_page && !["docs/ARCHITECTURE.md", "docs/PROTOCOL.md"].contains(&file.path.as_str())
}

fn sources(files: &[File]) -> Vec<Source<'_>> {
    files.iter().filter(|file| file.is_rust_in("src/")).map(Source::new).collect()
}

#[test]
fn the_tree_is_tidy() {
    let files = tree();
    let sources = sources(&files);
    assert!(sources.len() > 50, "the sources are not there");
    let mut found = findings(&files, &sources);
    found.extend(language(&files, &sources));
    let lines: Vec<String> = found.iter().map(Finding::text).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

/// The table of ranks in the docs says what the table here says.
#[test]
fn the_ranks_are_documented() {
    let files = tree();
    let page = &files.iter().find(|file| file.path == "docs/ARCHITECTURE.md").unwrap().text;
    let section = page.split_once("\n## Ranks\n").unwrap().1.split_once("\n## ").unwrap().0;
    let mut documented = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let rank = if cells[1] == "below all" { -1 } else { cells[1].parse::<i8>().unwrap() };
        let modules = cells[2].split('`').skip(1).step_by(2).filter(|module| *module != "main.rs");
        documented.extend(modules.map(|module| (module, rank)));
    }
    let table: BTreeMap<&str, i8> = tables::RANKS.iter().copied().collect();
    assert_eq!(documented, table, "docs/ARCHITECTURE.md differs from tests/tidy/tables.rs");
}

/// The pages for users are short enough to be read.
#[test]
fn the_pages_are_short() {
    let files = tree();
    let is_page = |file: &&File| file.path.ends_with(".md") && is_for_users(file);
    let words: usize = files.iter().filter(is_page).map(|file| file.text.split_whitespace().count()).sum();
    assert!((5_000..=tables::MAX_PAGE_WORDS).contains(&words), "{words} words in the pages for users");
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
    let mut names = between(request, "\nmessages! {", "\n}\n");
    names.extend(between(request, "const LATER: &[&str] = &[", "];"));
    names.extend(between(error, "pub fn as_str", "\n    }"));
    assert!(names.len() > 60, "{names:?}");
    names.retain(|name| !page.contains(&format!("`{name}`")));
    assert_eq!(names, Vec::<String>::new(), "not in docs/PROTOCOL.md");
}

/// Returns what is found in one made-up file.
fn check(path: &str, text: &str) -> Vec<String> {
    let mut files = vec![File::new(path, text)];
    // Everything reaches it.
    let inner = path.trim_end_matches(".rs").trim_end_matches("/mod");
    if let Some((dir, name)) = inner.rsplit_once('/').filter(|_| path.starts_with("src/")) {
        let parent = if dir == "src" { "src/lib.rs".to_owned() } else { format!("{dir}/mod.rs") };
        files.push(File::new(&parent, &format!("mod {name};")));
    }
    let found = findings(&files, &sources(&files));
    found.iter().filter(|finding| finding.path == path).map(Finding::text).collect()
}

pub(crate) fn seen(path: &str, text: &str, expected: &[&str]) {
    let found = check(path, text);
    let fits = found.len() == expected.len() && expected.iter().all(|part| found.iter().any(|f| f.contains(part)));
    assert!(fits, "{path}\n{text}\nexpected {expected:?}\nfound {found:?}");
}
