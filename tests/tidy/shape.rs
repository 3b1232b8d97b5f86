//! Ranks, confined crates, sizes, `unwrap` and `unsafe`, and notes without an issue.

use super::Report;
use super::rust::{Source, is_word, item_end, line_of, positions, read_paths, skip_space, words};
use super::seen;
use super::tables::{CONFINED, MAX_FILE, MAX_FUNCTION, RANKS};

fn rank(module: &str) -> Option<i8> {
    RANKS.iter().find(|(name, _)| *name == module).map(|(_, rank)| *rank)
}

pub(crate) fn ranks(source: &Source, report: Report) {
    let Some(top) = source.module.first() else { return };
    let Some(own_rank) = rank(top) else {
        report(0, format!("`{top}` is not in the table of ranks"));
        return;
    };
    for start in ["crate", "super", "self", "piton"] {
        for at in words(&source.code, start) {
            let behind_colons = at >= 2 && source.code[at - 2..at] == [':', ':'];
            if behind_colons || (start == "piton" && source.path != "src/main.rs") {
                continue;
            }
            let mut paths = Vec::new();
            read_paths(&source.code, at, &[], &mut paths);
            for used in paths.iter().filter(|used| used.len() > 1) {
                let mut place = source.place(at);
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

pub(crate) fn confined(source: &Source, report: Report) {
    let masked = &source.masked;
    for (name, places) in CONFINED {
        if places.iter().any(|place| source.path.starts_with(place)) {
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

pub(crate) fn sizes(source: &Source, report: Report) {
    let code = &source.code;
    let newlines = |code: &[char]| code.iter().filter(|c| **c == '\n').count();
    let length = newlines(&source.masked) - source.hidden;
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

pub(crate) fn forbidden(source: &Source, report: Report) {
    for at in positions(&source.code, ".unwrap()") {
        report(at, "`unwrap` outside tests: return the error, or `expect` with the proof".to_owned());
    }
    let text: String = source.text.iter().collect();
    let lines: Vec<&str> = text.lines().collect();
    for at in words(&source.masked, "unsafe") {
        let line = line_of(&source.masked, at) - 1;
        // Its `SAFETY` comment may stand between.
        let mut before = lines[..line].iter().rev().map(|line| line.trim_start());
        let expected = before.find(|line| !line.starts_with("//"));
        let expected = expected.is_some_and(|line| line.starts_with("#[expect(unsafe_code"));
        if !source.path.starts_with("src/sys/") && !expected {
            report(at, "`unsafe` outside src/sys without `#[expect(unsafe_code, …)]` before it".to_owned());
        }
    }
}

/// Public items without a doc comment. The compiler's lint sees only those that other crates reach.
pub(crate) fn undocumented(source: &Source, report: Report) {
    let text: String = source.text.iter().collect();
    let code: String = source.code.iter().collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    for (number, line) in code.lines().enumerate() {
        if let Some(name) = public_item(line) {
            // Attributes stand between an item and its docs, some of them over several lines.
            let mut before = lines[..number].iter().rev().map(|line| line.trim());
            let mut in_attribute = false;
            let above = before.find(|line| {
                in_attribute = (in_attribute || line.ends_with(")]")) && !line.starts_with("#[");
                !in_attribute && !line.starts_with("#[")
            });
            if !above.is_some_and(|line| line.starts_with("///")) {
                report(at, format!("`{name}` is public and has no doc comment"));
            }
        }
        at += line.chars().count() + 1;
    }
}

/// The name of the item that a line declares as public; modules and imports do not count.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
    let mut words = rest.strip_prefix(' ')?.split_whitespace().skip_while(|word| matches!(*word, "unsafe" | "async"));
    let mut kind = words.next()?;
    let mut name = words.next()?;
    if kind == "const" && name == "fn" {
        (kind, name) = ("fn", words.next()?);
    }
    let counted = matches!(kind, "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union");
    counted.then(|| name.split(|c: char| !is_word(c)).next().unwrap_or_default())
}

pub(crate) fn notes(source: &Source, report: Report) {
    for note in ["TODO", "FIXME"] {
        for at in words(&source.text, note) {
            let rest: String = source.text[at + note.len()..].iter().take(12).collect();
            let number = rest.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
            if !number.is_some_and(|(number, _)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())) {
                report(at, format!("`{note}` without an issue: `{note}(#12)`"));
            }
        }
    }
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
    seen("src/main.rs", "fn main() { piton::cli::run(); piton::doors::x() }\n", &[]);
    seen("src/doors/mod.rs", "use crate::cli::X;\n", &["`cli` (rank 6)"]);
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
fn public_items_without_docs_are_seen() {
    let path = "src/filter/ignore.rs";
    seen(path, "pub fn f() {}\n\npub(super) struct S;\n", &["`f` is public", ":3: `S` is public"]);
    seen(
        path,
        "/// Does.\n#[expect(\n    dead_code\n)]\npub const fn f() {}\n/// A.\n#[derive(Debug)]\npub enum E {}\n",
        &[],
    );
    seen(path, "fn f() {}\npub use super::X;\n#[cfg(test)]\nmod tests {\n    pub fn g() {}\n}\n", &[]);
}
