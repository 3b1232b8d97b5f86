//! Sentences: how a doc comment begins, and how long a sentence of the docs or of a message is.

use super::Finding;
use super::files::File;
use super::rust::{Source, line_of, literal_end};
use super::tables::{ABBREVIATIONS, MAX_WORDS, OPENINGS};

/// Returns the doc comments that begin with a question's word instead of a verb or a noun.
pub(crate) fn openings(file: &File) -> Vec<Finding> {
    let blocks = doc_blocks(&file.text);
    let banned = blocks.into_iter().filter_map(|(line, text)| {
        let first = text.split(|c: char| !c.is_alphanumeric()).next().filter(|first| OPENINGS.contains(first))?;
        Some(Finding::new(&file.path, line, format!("a doc comment begins with `{first}`: {}", start_of(&text))))
    });
    banned.collect()
}

/// Returns the long sentences of a page.
pub(crate) fn long_in_page(file: &File) -> Vec<Finding> {
    long_in(&file.path, 1, &file.text)
}

/// Returns the long sentences of doc comments and of the strings outside tests.
pub(crate) fn long_in_source(source: &Source) -> Vec<Finding> {
    let text: String = source.text.iter().collect();
    let docs = doc_blocks(&text);
    let mut found: Vec<Finding> = docs.iter().flat_map(|(line, text)| long_in(source.path, *line, text)).collect();
    for (at, text) in strings(source) {
        found.extend(long_in(source.path, line_of(&source.text, at), &text));
    }
    found
}

/// Each doc comment: its first line, and its text without the marks.
fn doc_blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let mark = ["///", "//!"].into_iter().find(|mark| line.starts_with(mark)).unwrap_or_default();
        if !mark.is_empty() {
            let words = &line[mark.len()..];
            match blocks.last_mut().filter(|_| mark == before) {
                Some((_, block)) => *block += &format!("\n{}", words.strip_prefix(' ').unwrap_or(words)),
                None => blocks.push((number + 1, words.trim_start().to_owned())),
            }
        }
        before = mark;
    }
    blocks
}

/// The strings outside tests, as a person would read them.
fn strings(source: &Source) -> Vec<(usize, String)> {
    let (text, mut at, mut strings) = (&source.text, 0, Vec::new());
    while at < text.len() {
        let end = literal_end(text, at);
        let literal = &text[at..end];
        let inner = literal.iter().position(|c| *c == '"').filter(|open| *open < 5 && !source.is_hidden(at));
        if let Some(open) = inner.filter(|_| !matches!(literal[0], '/' | '\'')) {
            let raw = literal[..open].contains(&'r');
            let inner: String = literal[open + 1..].iter().collect();
            let inner = inner.trim_end_matches('#').trim_end_matches('"');
            strings.push((at, if raw { inner.to_owned() } else { unescaped(inner) }));
        }
        at = end.max(at + 1);
    }
    strings
}

/// The text of a string without its escapes, as far as words need it.
fn unescaped(inner: &str) -> String {
    let (mut text, mut chars) = (String::new(), inner.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            ('\\', Some('n')) => {
                chars.next();
                text.push('\n');
            }
            ('\\', Some(_)) => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

/// The long sentences of a text in Markdown that begins at a line of its file.
fn long_in(path: &str, first: usize, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            let count = sentence.iter().filter(|word| word.contains(|c: char| c.is_alphanumeric() || c == '{')).count();
            if count > MAX_WORDS {
                let start = start_of(&sentence.join(" "));
                found.push(Finding::new(
                    path,
                    first + line,
                    format!("a sentence of {count} words; at most {MAX_WORDS}: {start}"),
                ));
            }
        }
    }
    found
}

/// Paragraphs, items of lists and cells of tables, each with the line where it begins. Blocks of code are left out.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            (fenced, open) = (!fenced, false);
        } else if fenced || line.is_empty() {
            open = false;
        } else if line.starts_with('|') {
            paragraphs.extend(line.split('|').map(|cell| (number, cell.to_owned())));
            open = false;
        } else {
            let heading = line.starts_with('#');
            match paragraphs.last_mut().filter(|_| open && !heading && !begins_item(line)) {
                Some((_, paragraph)) => *paragraph += &format!(" {line}"),
                None => paragraphs.push((number, line.to_owned())),
            }
            open = !heading;
        }
    }
    paragraphs
}

fn begins_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "> "].iter().any(|mark| line.starts_with(mark)) || (numbered != line && numbered.starts_with(". "))
}

/// The words of each sentence. Code between backticks is one word.
fn sentences(paragraph: &str) -> Vec<Vec<String>> {
    let mut plain = String::new();
    for (n, part) in paragraph.split('`').enumerate() {
        plain += if n % 2 == 0 { part } else { "code" };
    }
    let mut sentences = vec![Vec::new()];
    for word in plain.split_whitespace() {
        let bare = word.trim_end_matches([')', ']', '"', '\'', '*', '_', '”']);
        let ends = bare.ends_with(['.', '!', '?']) && !ABBREVIATIONS.contains(&bare.trim_start_matches('('));
        sentences.last_mut().expect("there is always one").push(word.to_owned());
        if ends {
            sentences.push(Vec::new());
        }
    }
    sentences
}

fn start_of(text: &str) -> String {
    text.split_whitespace().take(8).collect::<Vec<_>>().join(" ")
}

#[test]
fn openings_are_seen() {
    let openings = |text: &str| openings(&File::new("src/a.rs", text)).iter().map(Finding::text).collect::<Vec<_>>();
    for word in OPENINGS {
        assert_eq!(openings(&format!("\n    /// {word} is held.\nfn f() {{}}\n")).len(), 1, "{word}");
        assert_eq!(openings(&format!("//! {word}: x.\n")).len(), 1, "{word}");
    }
    assert_eq!(openings("/// What is held.\n"), ["src/a.rs:1: a doc comment begins with `What`: What is held."]);
    assert_eq!(openings("/// Holds x.\n/// What else?\n// What\nfn f() {}\n/// Whatsoever.\n"), Vec::<String>::new());
}

/// The lines of the sentences that are found in a page, and in a source.
fn long_lines(path: &str, text: &str) -> Vec<usize> {
    let file = File::new(path, text);
    let found = if path.ends_with(".rs") { long_in_source(&Source::new(&file)) } else { long_in_page(&file) };
    found.iter().map(|finding| finding.line).collect()
}

#[test]
fn long_sentences_of_pages_are_seen() {
    let sentence = |words: usize| "word ".repeat(words - 1) + "end.";
    let (short, long) = (sentence(MAX_WORDS), sentence(MAX_WORDS + 1));
    let lines = |text: &str| long_lines("docs/X.md", text);
    assert_eq!(lines(&format!("{short} {short}\n\n{short}\n")), Vec::<usize>::new());
    assert_eq!(lines(&format!("# Title\n{}\n", long.replace("word word", "word\nword"))), [2]);
    assert_eq!(lines(&format!("- {short}\n- {long}\n")), [2]);
    assert_eq!(lines(&format!("| {short} | {short} |\n|---|---|\n| a | {long} |\n")), [3]);
    assert_eq!(lines(&format!("```\n{long}\n```\n{short}\n")), Vec::<usize>::new());
    // An abbreviation ends no sentence, and code is one word.
    assert_eq!(lines(&long.replacen("word", "(e.g.", 1)), [1]);
    assert_eq!(lines(&short.replacen("word", "`a long command. with words`", 1)), Vec::<usize>::new());
}

#[test]
fn long_sentences_of_sources_are_seen() {
    let long = "word ".repeat(MAX_WORDS) + "end.";
    let lines = |text: &str| long_lines("src/a.rs", text);
    assert_eq!(lines(&format!("fn f() {{}}\n/// {}\n", long.replace("word word", "word\n/// word"))), [2]);
    assert_eq!(lines(&format!("// {long}\nfn f() {{}}\n")), Vec::<usize>::new());
    assert_eq!(lines(&format!("fn f() {{}}\nconst A: &str = \"{long}\";\n")), [2]);
    assert_eq!(lines(&format!("const A: &str = \"{}\";\n", long.replace("word word", "word \\\n    word"))), [1]);
    assert_eq!(lines(&format!("const A: &str = r#\"{long}\"#;\n")), [1]);
    assert_eq!(
        lines(&format!("const A: &str = \"{}\";\n", long.replace("word word", "word.\\nword"))),
        Vec::<usize>::new()
    );
    assert_eq!(
        lines(&format!("#[cfg(test)]\nmod tests {{\n    const A: &str = \"{long}\";\n}}\n")),
        Vec::<usize>::new()
    );
}
