//! Holds the shape of the source, because a single crate has no compiler to say no: ranks, confined crates, sizes,
//! `unwrap` and `unsafe`, forgotten files, and names that must not be in the repository. No dependencies.
//!
//! The reader of Rust below is a lexer that blanks comments and literals, not a parser. It is right about everything
//! `rustfmt` writes; macros that make modules or functions are beyond it.

use std::collections::BTreeSet;
use std::path::Path;

/// The modules and their ranks: an arrow points to a lower rank, never to the same.
const RANKS: &[(&str, i8)] = &[
    ("cli", 7), // and main.rs, its door
    ("daemon", 6),
    ("sidecar", 5),
    ("engine", 4),
    ("checkpoint", 3),
    ("agents", 2),
    ("git", 2),
    ("mcp", 2),
    ("store", 2),
    ("watch", 2),
    ("worktree", 2),
    ("classify", 1),
    ("filter", 1),
    ("protocol", 1),
    ("settings", 1),
    ("model", 0),
    ("sys", 0),
    ("error", -1), // below all
];

/// Crates, and the only places that may name them.
const CONFINED: &[(&str, &[&str])] = &[
    ("git2", &["src/store/"]),
    ("libdeflater", &["src/store/"]),
    ("clap", &["src/cli/", "src/main.rs"]),
    ("serde_saphyr", &["src/settings/", "src/classify/", "src/agents/edit/"]),
    ("sqlparser", &["src/classify/sql/"]),
    ("notify", &["src/watch/"]),
    ("tokio", &["src/daemon/", "src/web/"]),
    ("rustix", &["src/sys/", "src/worktree/", "src/error.rs", "src/store/"]),
    ("libc", &["src/sys/", "src/worktree/", "src/error.rs", "src/store/"]),
];

const MAX_FILE: usize = 500;
const MAX_FUNCTION: usize = 80;

/// What no tracked text may name. Written in two halves, because this file is tracked too.
const UNNAMED: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.", "npmjs", ".org"),
    concat!("deb.", "debian", ".org"),
    concat!("/wor", "k/"),
];

struct File {
    /// From the repository's root, with `/`.
    path: String,
    text: String,
}

impl File {
    fn new(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn is_rust_in(&self, dir: &str) -> bool {
        self.path.starts_with(dir) && self.path.ends_with(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }
}

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

type Report<'r> = &'r mut dyn FnMut(usize, String);

// ---- reading Rust

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The source with comments, strings and characters blanked; lines and positions stay.
fn mask(text: &str) -> Vec<char> {
    let source: Vec<char> = text.chars().collect();
    let mut out = source.clone();
    let mut at = 0;
    while at < source.len() {
        let end = literal_end(&source, at);
        for c in &mut out[at..end] {
            if *c != '\n' {
                *c = ' ';
            }
        }
        at = end.max(at + 1);
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `at` itself when none does.
fn literal_end(source: &[char], at: usize) -> usize {
    let get = |i: usize| source.get(i).copied().unwrap_or('\0');
    let starts_word = at == 0 || !is_word(get(at - 1));
    match (get(at), get(at + 1)) {
        ('/', '/') => (at..source.len()).find(|i| get(*i) == '\n').unwrap_or(source.len()),
        ('/', '*') => block_comment_end(source, at),
        ('"', _) => string_end(source, at),
        ('\'', '\\') => (at + 3..source.len()).find(|i| get(*i) == '\'').map_or(source.len(), |i| i + 1),
        ('\'', _) if get(at + 2) == '\'' => at + 3,
        ('r', '"' | '#') if starts_word => raw_string_end(source, at + 1).unwrap_or(at),
        ('b' | 'c', 'r') if starts_word => raw_string_end(source, at + 2).unwrap_or(at),
        _ => at,
    }
}

fn block_comment_end(source: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < source.len() {
        match source.get(at..at + 2) {
            Some(['/', '*']) => (depth, at) = (depth + 1, at + 2),
            Some(['*', '/']) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn string_end(source: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < source.len() && source[at] != '"' {
        at += if source[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(source.len())
}

/// `at` stands behind the `r`.
fn raw_string_end(source: &[char], at: usize) -> Option<usize> {
    let hashes = source[at..].iter().take_while(|c| **c == '#').count();
    if source.get(at + hashes) != Some(&'"') {
        return None; // r#type
    }
    let mut close = vec!['"'];
    close.extend(std::iter::repeat_n('#', hashes));
    let from = at + hashes + 1;
    let length = source[from..].windows(close.len()).position(|window| window == close);
    Some(length.map_or(source.len(), |length| from + length + close.len()))
}

/// Masked source without its items under `#[cfg(test)]` (or without anything), and how many lines that hid.
fn blank_tests(masked: &[char], whole: bool) -> (Vec<char>, usize) {
    let (mut code, mut hidden) = (masked.to_vec(), vec![whole; masked.len()]);
    for attribute in ["#[cfg(test)]", "#[cfg(all(test,", "#[test]"] {
        for start in positions(masked, attribute) {
            let end = item_end(masked, start).1;
            hidden[start..end].fill(true);
        }
    }
    let mut lines = 0;
    for (c, _) in code.iter_mut().zip(&hidden).filter(|(_, hidden)| **hidden) {
        match c {
            '\n' => lines += 1,
            _ => *c = ' ',
        }
    }
    (code, lines)
}

fn positions(code: &[char], what: &str) -> Vec<usize> {
    let what: Vec<char> = what.chars().collect();
    let windows = code.windows(what.len()).enumerate();
    windows.filter(|(_, window)| *window == what).map(|(at, _)| at).collect()
}

/// Positions of a whole word.
fn words(code: &[char], what: &str) -> Vec<usize> {
    let mut at = positions(code, what);
    at.retain(|at| {
        let after = code.get(at + what.len()).copied().unwrap_or(' ');
        (*at == 0 || !is_word(code[at - 1])) && !is_word(after)
    });
    at
}

/// Where the body of the item that begins at `start` opens (if it has one), and where the item ends.
fn item_end(masked: &[char], start: usize) -> (Option<usize>, usize) {
    let (mut round, mut braces, mut open) = (0i32, 0i32, None);
    for (at, c) in masked.iter().enumerate().skip(start) {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            '{' if round == 0 || braces > 0 => {
                open = open.or(Some(at));
                braces += 1;
            }
            '}' if braces > 0 => {
                braces -= 1;
                if braces == 0 {
                    return (open, at + 1);
                }
            }
            ';' if round == 0 && braces == 0 => return (None, at + 1),
            _ => {}
        }
    }
    (open, masked.len())
}

fn skip_space(code: &[char], mut at: usize) -> usize {
    while code.get(at).is_some_and(|c| c.is_whitespace()) {
        at += 1;
    }
    at
}

/// All paths of the use tree (or plain path) at `at`, and where it ends.
fn read_paths(code: &[char], at: usize, prefix: &[String], out: &mut Vec<Vec<String>>) -> usize {
    let mut at = skip_space(code, at);
    let mut path = prefix.to_vec();
    loop {
        let word: String = code[at.min(code.len())..].iter().take_while(|c| is_word(**c)).collect();
        at += word.chars().count();
        if word.is_empty() && code.get(at) == Some(&'*') {
            path.push("*".to_owned());
            at += 1;
        } else if word.is_empty() && code.get(at) == Some(&'{') {
            at += 1;
            while at < code.len() && code[at] != '}' {
                let next = read_paths(code, at, &path, out);
                at = skip_space(code, next);
                // `as name`, commas, and whatever else is not understood.
                while at < code.len() && !matches!(code[at], ',' | '}') {
                    at += 1;
                }
                at += usize::from(code.get(at) == Some(&','));
                at = skip_space(code, at);
            }
            return at + 1;
        } else if !word.is_empty() {
            path.push(word);
        }
        let colons = skip_space(code, at);
        if code.get(colons..colons + 2) != Some(&[':', ':']) {
            break;
        }
        at = skip_space(code, colons + 2);
        if code.get(at) == Some(&'<') {
            break;
        }
    }
    out.push(path);
    at
}

/// The module a file is: `src/a/b.rs` is `a`, `b`. The crate's roots are none.
fn module_path(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    match inner {
        "lib" => Vec::new(),
        "main" => vec!["cli".to_owned()],
        _ => inner.trim_end_matches("/mod").split('/').map(str::to_owned).collect(),
    }
}

/// The inline modules around a position.
fn inline_modules(code: &[char], at: usize) -> Vec<String> {
    let mut names = Vec::new();
    for start in words(&code[..at], "mod") {
        if let (Some(open), end) = item_end(code, start)
            && open < at
            && at < end
        {
            names.push(code[start + 3..open].iter().filter(|c| is_word(**c)).collect());
        }
    }
    names
}

// ---- rules

fn rank(module: &str) -> Option<i8> {
    RANKS.iter().find(|(name, _)| *name == module).map(|(_, rank)| *rank)
}

fn ranks(path: &str, code: &[char], report: Report) {
    let own = module_path(path);
    let Some(top) = own.first() else { return };
    let Some(own_rank) = rank(top) else {
        report(0, format!("`{top}` is not in the table of ranks"));
        return;
    };
    for start in ["crate", "super", "self", "piton"] {
        for at in words(code, start) {
            let behind_colons = at >= 2 && code[at - 2..at] == [':', ':'];
            if behind_colons || (start == "piton" && path != "src/main.rs") {
                continue;
            }
            let mut paths = Vec::new();
            read_paths(code, at, &[], &mut paths);
            for used in paths.iter().filter(|used| used.len() > 1) {
                let mut place = own.clone();
                place.extend(inline_modules(code, at));
                for segment in used {
                    match segment.as_str() {
                        "crate" | "piton" => place.clear(),
                        "self" => {}
                        "super" => drop(place.pop()),
                        other => place.push(other.to_owned()),
                    }
                }
                arrow(top, own_rank, place.first(), &used.join("::"), &mut |text| report(at, text));
            }
        }
    }
}

fn arrow(top: &str, own_rank: i8, target: Option<&String>, used: &str, report: &mut dyn FnMut(String)) {
    let Some(target) = target.filter(|target| *target != top) else {
        return;
    };
    match rank(target) {
        Some(rank) if rank < own_rank => {}
        Some(rank) => report(format!("`{used}`: `{top}` (rank {own_rank}) may not use `{target}` (rank {rank})")),
        None => report(format!("`{used}`: `{target}` is not in the table of ranks")),
    }
}

fn confined(path: &str, masked: &[char], report: Report) {
    for (name, places) in CONFINED {
        if places.iter().any(|place| path.starts_with(place)) {
            continue;
        }
        for at in words(masked, name) {
            let before: String = masked[at.saturating_sub(10)..at].iter().collect();
            let follows: String = masked[at + name.len()..].iter().take(2).collect();
            let used = before.trim_end().ends_with("use") || before.trim_end().ends_with("extern crate");
            if (follows == "::" && !before.ends_with("::")) || used {
                report(at, format!("`{name}` belongs into {} only", places.join(", ")));
            }
        }
    }
}

fn sizes(masked: &[char], code: &[char], hidden: usize, report: Report) {
    let newlines = |code: &[char]| code.iter().filter(|c| **c == '\n').count();
    let length = newlines(masked) - hidden;
    if length > MAX_FILE {
        report(0, format!("{length} lines outside tests; at most {MAX_FILE}"));
    }
    for at in words(code, "fn") {
        let name: String = code[skip_space(code, at + 2)..].iter().take_while(|c| is_word(**c)).collect();
        if let (Some(_), end) = item_end(code, at)
            && !name.is_empty()
        {
            let length = 1 + newlines(&code[at..end]);
            if length > MAX_FUNCTION {
                report(at, format!("`{name}` has {length} lines; at most {MAX_FUNCTION}"));
            }
        }
    }
}

fn forbidden(path: &str, masked: &[char], code: &[char], text: &str, report: Report) {
    for at in positions(code, ".unwrap()") {
        report(at, "`unwrap` outside tests: return the error, or `expect` with the proof".to_owned());
    }
    let lines: Vec<&str> = text.lines().collect();
    for at in words(masked, "unsafe") {
        let line = masked[..at].iter().filter(|c| **c == '\n').count();
        // Its `SAFETY` comment may stand between.
        let mut before = lines[..line].iter().rev().map(|line| line.trim_start());
        let expected = before.find(|line| !line.starts_with("//"));
        let expected = expected.is_some_and(|line| line.starts_with("#[expect(unsafe_code"));
        if !path.starts_with("src/sys/") && !expected {
            report(at, "`unsafe` outside src/sys without `#[expect(unsafe_code, …)]` before it".to_owned());
        }
    }
}

fn notes(text: &str, report: Report) {
    let source: Vec<char> = text.chars().collect();
    for note in ["TODO", "FIXME"] {
        for at in words(&source, note) {
            let rest: String = source[at + note.len()..].iter().take(12).collect();
            let number = rest.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
            if !number.is_some_and(|(number, _)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())) {
                report(at, format!("`{note}` without an issue: `{note}(#12)`"));
            }
        }
    }
}

/// Files that no `mod` reaches, and test data that no test names.
fn forgotten(files: &[File], found: &mut Vec<String>) {
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
        let declares = |parent: &File| {
            let masked = mask(&parent.text);
            words(&masked, "mod").into_iter().any(|at| {
                let rest: String = masked[at + 3..].iter().take_while(|c| !matches!(c, ';' | '{')).collect();
                rest.trim() == name
            })
        };
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
            found.push(format!("{}:1: no `mod {name}` reaches this file", file.path));
        }
    }
    let data: BTreeSet<&str> =
        files.iter().filter_map(|file| file.path.strip_prefix("tests/data/")?.split('/').next()).collect();
    for name in data {
        if !files.iter().any(|file| file.path.ends_with(".rs") && file.text.contains(name)) {
            found.push(format!("tests/data/{name}:1: no test names this"));
        }
    }
}

fn unnamed(files: &[File], found: &mut Vec<String>) {
    // Cargo writes its registry into the lock files.
    for file in files.iter().filter(|file| !matches!(file.path.as_str(), "Cargo.lock" | "fuzz/Cargo.lock")) {
        for (number, line) in file.text.lines().enumerate() {
            for name in UNNAMED.iter().filter(|name| line.contains(**name)) {
                found.push(format!("{}:{}: `{name}` must not be named", file.path, number + 1));
            }
        }
    }
}

// ---- the tree, and the checker itself

/// The tracked text files; outside of a clone, all files but those of a build.
fn tree() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths: Vec<String> = match listed {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
        }
        _ => {
            eprintln!("tidy: git does not list the files; taking all of them");
            let mut paths = Vec::new();
            list(root, "", &mut paths);
            paths
        }
    };
    paths.sort();
    let read = |path: String| {
        let text = std::fs::read_to_string(root.join(&path)).ok()?; // deleted, or no text
        Some(File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn list(dir: &Path, prefix: &str, paths: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() && !matches!(path.as_str(), "target" | ".git") {
            list(&entry.path(), &format!("{path}/"), paths);
        } else if entry.file_type().unwrap().is_file() {
            paths.push(path);
        }
    }
}

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

fn seen(path: &str, text: &str, expected: &[&str]) {
    let found = check(path, text);
    let fits = found.len() == expected.len() && expected.iter().all(|part| found.iter().any(|f| f.contains(part)));
    assert!(fits, "{path}\n{text}\nexpected {expected:?}\nfound {found:?}");
}

#[test]
fn ranks_are_seen() {
    let store = "src/store/refs.rs";
    seen(store, "use crate::model::id::ObjectId;\nuse super::Store;\nuse crate::store::x;\n", &[]);
    seen(
        store,
        "\nuse crate::checkpoint::take;\n",
        &[":2: `crate::checkpoint::take`: `store` (rank 2) may not use `checkpoint` (rank 3)"],
    );
    seen(store, "use crate::worktree::walk;\n", &["`worktree` (rank 2)"]);
    seen(
        store,
        "use crate::{model::id, worktree::{a, b}, engine};\n",
        &["worktree::a", "worktree::b", "crate::engine"],
    );
    seen(store, "fn f() -> crate::cli::X {}\n", &["crate::cli::X"]);
    seen(store, "use super::super::engine::X;\n", &["super::super::engine::X"]);
    seen("src/store/mod.rs", "use super::engine::X;\nuse self::refs::Y;\n", &["super::engine::X"]);
    seen(
        store,
        "mod a {\n use super::super::Store;\n use super::super::super::engine::X;\n}\n",
        &["super::super::super::engine::X"],
    );
    seen(store, "use crate::helpers::X;\n", &["`helpers` is not in the table"]);
    seen("src/helpers.rs", "fn f() {}\n", &["`helpers` is not in the table"]);
    seen("src/error.rs", "use crate::model::id;\n", &["`error` (rank -1)"]);
    seen("src/main.rs", "fn main() { piton::cli::run(); piton::sidecar::x() }\n", &[]);
    seen("src/sidecar/mod.rs", "use crate::cli::X;\n", &["`cli` (rank 7)"]);
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::cli::X;\n}\n";
    seen(store, tests, &[]);
    seen("src/store/tests.rs", "use crate::cli::X;\n", &[]);
    seen(store, &format!("{tests}use crate::cli::Y;\n"), &[":6: `crate::cli::Y`"]);
    seen(
        store,
        "// crate::cli::X\n/* crate::cli /* crate::cli::X */ crate::cli::X */ const A: &str = \"crate::cli::X\";\n",
        &[],
    );
}

#[test]
fn confined_crates_are_seen() {
    seen("src/store/mod.rs", "use git2::Repository;\n", &[]);
    for (name, _) in CONFINED {
        seen("src/filter/ignore.rs", &format!("use {name}::X;\n"), &[&format!("`{name}` belongs into")]);
        seen("src/filter/ignore.rs", &format!("fn f() {{ {name}::x() }}\n"), &["belongs into"]);
        seen("src/filter/ignore.rs", &format!("use {name} as y;\n"), &["belongs into"]);
        seen("src/filter/ignore.rs", &format!("use super::{name}::X; // {name}::x\n"), &[]);
    }
}

#[test]
fn sizes_are_seen() {
    let path = "src/filter/ignore.rs";
    seen(path, &"const A: u8 = 1;\n".repeat(500), &[]);
    seen(path, &"const A: u8 = 1;\n".repeat(501), &["501 lines outside tests"]);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// x\n".repeat(900));
    seen(path, &tests, &[]);
    seen(path, &format!("#[cfg(test)]\nmod tests;\n{}", "// x\n".repeat(600)), &["lines outside tests"]);
    seen("src/filter/tests/ignore.rs", &"// x\n".repeat(900), &[]);
    let function = |lines: usize| {
        format!("fn f(a: [u8; 3]) -> u8 {{\n{}}}\n", "    g('{', '\\'', \"{\\\"\", r#\"{\"\"#);\n".repeat(lines - 2))
    };
    seen(path, &function(80), &[]);
    seen(path, &format!("fn h<'a>(x: &'a u8) {{}}\n{}", function(81)), &[":2: `f` has 81 lines"]);
    seen(path, &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(100)), &[]);
}

#[test]
fn unwrap_unsafe_and_notes_are_seen() {
    let path = "src/filter/ignore.rs";
    seen(path, "fn f() { x().unwrap() }\n", &["`unwrap`"]);
    seen(path, "/// x.unwrap()\nfn f() { x.unwrap_or(1) }\n#[test]\nfn t() { x().unwrap() }\n", &[]);
    seen(path, "fn f() { unsafe { x() } }\n", &["`unsafe`"]);
    seen(
        path,
        "#![deny(unsafe_code)]\n#[expect(unsafe_code, reason = \"x\")]\n// SAFETY: x\nlet x = unsafe { x() };\n",
        &[],
    );
    seen("src/sys/x.rs", "fn f() { unsafe { x() } }\n", &[]);
    seen(path, "// TODO: later\n// FIXME(#x)\n", &["`TODO`", "`FIXME`"]);
    seen(path, "// TODO(#12): later\nconst TODOS: u8 = 1;\n", &[]);
}

#[test]
fn forgotten_files_are_seen() {
    let forgotten_in = |files: &[(&str, &str)]| {
        let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        let mut found = Vec::new();
        forgotten(&files, &mut found);
        found.join("\n")
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

#[test]
fn literals_and_comments_are_blanked() {
    let table = [
        ("a/*b/*c*/d*/e", "a           e"),
        ("'a' '\\'' '\\u{1F}' 'x", "    "),
        ("\"a\\\"b\"c", "      c"),
        ("r#\"a\"b\"#c br\"\\\"d", "        c      d"),
        ("b'a' r#type", "b    r#type"),
    ];
    for (text, expected) in table {
        let masked: String = mask(&text.chars().collect::<String>()).into_iter().collect();
        assert!(masked.starts_with(expected), "{text}: {masked:?}");
        assert_eq!(masked.chars().count(), text.chars().count());
    }
}
