//! A reader of Rust: a lexer that blanks comments and literals, not a parser. It is right about everything `rustfmt`
//! writes; macros that make modules or functions are beyond it.

use std::ops::Range;

use super::files::File;

/// A file of Rust, read once.
pub(crate) struct Source<'f> {
    pub(crate) path: &'f str,
    pub(crate) is_test: bool,
    /// The module that the file is.
    pub(crate) module: Vec<String>,
    pub(crate) text: Vec<char>,
    /// The text with comments and literals blanked.
    pub(crate) masked: Vec<char>,
    /// The masked text with the tests blanked too.
    pub(crate) code: Vec<char>,
    /// The number of lines that belong to tests.
    pub(crate) hidden: usize,
    tests: Vec<bool>,
    inline: Vec<(Range<usize>, String)>,
}

impl<'f> Source<'f> {
    pub(crate) fn new(file: &'f File) -> Source<'f> {
        let text: Vec<char> = file.text.chars().collect();
        let masked = mask(&text);
        let (code, tests) = blank_tests(&masked, file.is_test());
        let hidden = code.iter().zip(&tests).filter(|(c, test)| **test && **c == '\n').count();
        let (module, inline) = (module_path(&file.path), inline_modules(&code));
        Source { path: &file.path, is_test: file.is_test(), module, text, masked, code, hidden, tests, inline }
    }

    /// Returns whether a position belongs to a test.
    pub(crate) fn is_hidden(&self, at: usize) -> bool {
        self.tests[at]
    }

    /// The module around a position.
    pub(crate) fn place(&self, at: usize) -> Vec<String> {
        let inline = self.inline.iter().filter(|(body, _)| body.contains(&at)).map(|(_, name)| name.clone());
        self.module.iter().cloned().chain(inline).collect()
    }
}

/// The line of a position, from 1.
pub(crate) fn line_of(text: &[char], at: usize) -> usize {
    1 + text[..at].iter().filter(|c| **c == '\n').count()
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The source with comments, strings and characters blanked; lines and positions stay.
pub(crate) fn mask(source: &[char]) -> Vec<char> {
    let mut out = source.to_vec();
    let mut at = 0;
    while at < source.len() {
        let end = literal_end(source, at);
        for c in &mut out[at..end] {
            if *c != '\n' {
                *c = ' ';
            }
        }
        at = end.max(at + 1);
    }
    out
}

/// Returns where the comment or literal that begins at `at` ends; `at` itself when none does.
pub(crate) fn literal_end(source: &[char], at: usize) -> usize {
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

/// Masked source without its items under `#[cfg(test)]` (or without anything), and which positions that hid.
fn blank_tests(masked: &[char], whole: bool) -> (Vec<char>, Vec<bool>) {
    let (mut code, mut hidden) = (masked.to_vec(), vec![whole; masked.len()]);
    for attribute in ["#[cfg(test)]", "#[cfg(all(test,", "#[test]"] {
        for start in positions(masked, attribute) {
            let end = item_end(masked, start).1;
            hidden[start..end].fill(true);
        }
    }
    for (c, _) in code.iter_mut().zip(&hidden).filter(|(c, hidden)| **hidden && **c != '\n') {
        *c = ' ';
    }
    (code, hidden)
}

pub(crate) fn positions(code: &[char], what: &str) -> Vec<usize> {
    let what: Vec<char> = what.chars().collect();
    let begins = code.iter().enumerate().filter(|(_, c)| **c == what[0]).map(|(at, _)| at);
    begins.filter(|at| code[*at..].starts_with(&what)).collect()
}

/// Positions of a whole word.
pub(crate) fn words(code: &[char], what: &str) -> Vec<usize> {
    let mut at = positions(code, what);
    at.retain(|at| {
        let after = code.get(at + what.len()).copied().unwrap_or(' ');
        (*at == 0 || !is_word(code[at - 1])) && !is_word(after)
    });
    at
}

/// Positions of words that begin a path.
pub(crate) fn words_before_colons(code: &[char]) -> Vec<usize> {
    let begins = |at: &usize| is_word(code[*at]) && (*at == 0 || !is_word(code[at - 1]));
    let mut at: Vec<usize> = (0..code.len()).filter(begins).collect();
    at.retain(|at| {
        let end = at + code[*at..].iter().take_while(|c| is_word(**c)).count();
        code[end..].starts_with(&[':', ':']) && !code[..*at].ends_with(&[':', ':'])
    });
    at
}

/// Returns where the body of the item that begins at `start` opens (if it has one), and where the item ends.
pub(crate) fn item_end(masked: &[char], start: usize) -> (Option<usize>, usize) {
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

pub(crate) fn skip_space(code: &[char], mut at: usize) -> usize {
    while code.get(at).is_some_and(|c| c.is_whitespace()) {
        at += 1;
    }
    at
}

/// All paths of the use tree (or plain path) at `at`, and where it ends.
pub(crate) fn read_paths(code: &[char], at: usize, prefix: &[String], out: &mut Vec<Vec<String>>) -> usize {
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

/// The bodies of inline modules, outer ones first.
fn inline_modules(code: &[char]) -> Vec<(Range<usize>, String)> {
    let body = |start| match item_end(code, start) {
        (Some(open), end) => Some((open..end, code[start + 3..open].iter().filter(|c| is_word(**c)).collect())),
        (None, _) => None,
    };
    words(code, "mod").into_iter().filter_map(body).collect()
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
        let masked: String = mask(&text.chars().collect::<Vec<_>>()).into_iter().collect();
        assert!(masked.starts_with(expected), "{text}: {masked:?}");
        assert_eq!(masked.chars().count(), text.chars().count());
    }
}
