//! Names of types: what each stands for.

use std::collections::BTreeMap;

use super::Finding;
use super::files::File;
use super::rust::{Source, is_word, item_end, line_of, skip_space, words};
use super::tables::{MAX_MEANINGS, STANDARD_NAMES};

/// Returns the names that stand for too many types, and those that shadow one of the standard library.
pub(crate) fn names(sources: &[Source]) -> Vec<Finding> {
    let mut types: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.starts_with("src/") && !source.is_test) {
        for (name, at) in defined(&source.code) {
            types.entry(name).or_default().push((source.path, line_of(&source.code, at)));
        }
    }
    let mut found = Vec::new();
    for (name, places) in types {
        let text = if STANDARD_NAMES.contains(&name.as_str()) {
            format!("`{name}` is a name of the standard library")
        } else if places.len() > MAX_MEANINGS {
            format!("`{name}` stands for {} types; at most {MAX_MEANINGS}", places.len())
        } else {
            continue;
        };
        found.extend(places.iter().map(|(path, line)| Finding::new(path, *line, text.clone())));
    }
    found
}

/// The types that a file defines. A `type` of a trait or of an implementation belongs to the trait.
fn defined(code: &[char]) -> Vec<(String, usize)> {
    let bodies: Vec<_> =
        ["impl", "trait"].into_iter().flat_map(|word| words(code, word)).map(|at| at..item_end(code, at).1).collect();
    let mut defined = Vec::new();
    for word in ["struct", "enum", "union", "trait", "type"] {
        for at in words(code, word) {
            let from = skip_space(code, at + word.len());
            let name: String = code[from..].iter().take_while(|c| is_word(**c)).collect();
            let associated = word == "type" && bodies.iter().any(|body| body.contains(&at));
            if name.starts_with(char::is_uppercase) && !associated {
                defined.push((name, at));
            }
        }
    }
    defined
}

/// The findings in made-up files.
fn named(texts: &[&str]) -> Vec<String> {
    let files: Vec<File> = (0..).zip(texts).map(|(n, text)| File::new(&format!("src/f{n}.rs"), text)).collect();
    let sources: Vec<Source> = files.iter().map(Source::new).collect();
    names(&sources).iter().map(Finding::text).collect()
}

#[test]
fn names_of_many_types_are_seen() {
    let none = Vec::<String>::new();
    assert_eq!(named(&["struct Kind;", "enum Kind {}"]), none);
    let found = named(&["struct Kind;", "\npub(crate) enum Kind {}", "mod x {\n    type Kind = u8;\n}"]);
    assert_eq!(found.len(), 3);
    assert_eq!(found[1], "src/f1.rs:2: `Kind` stands for 3 types; at most 2");
    let associated = "impl X for Y {\n    type Kind = u8;\n}\ntrait Z {\n    type Kind;\n}";
    assert_eq!(named(&["struct Kind;", "enum Kind {}", associated]), none);
    assert_eq!(named(&["struct Kind;", "enum Kind {}", "#[cfg(test)]\nmod tests {\n    struct Kind;\n}"]), none);
    assert_eq!(named(&["struct Kind;", "enum Kind {}", "// struct Kind;\nconst X: &str = \"struct Kind;\";"]), none);
}

#[test]
fn names_of_the_standard_library_are_seen() {
    assert_eq!(named(&["\nstruct Into;"]), ["src/f0.rs:2: `Into` is a name of the standard library"]);
    assert_eq!(named(&["use std::convert::Into;\nstruct IntoText;"]), Vec::<String>::new());
}
