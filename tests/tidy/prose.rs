//! Sentences: how they begin, and how long they are, in comments, pages and messages.

use super::Finding;
use super::files::File;
use super::rust::{Source, line_of, literal_end};
use super::tables::{ABBREVIATIONS, MAX_WORDS, OPENINGS, PLAIN, PREPOSITIONS, SUBJECTS};

/// The marks of doc comments, of all comments in Rust, and of comments in YAML. A longer mark comes before its beginning.
const DOCS: &[&str] = &["///", "//!"];
const COMMENTS: &[&str] = &["///", "//!", "//"];
const YAML: &[&str] = &["#"];

/// Returns the doc comments that begin with a question's word instead of a verb or a noun. Neither emphasis nor a
/// preposition before that word makes it another.
pub(crate) fn openings(file: &File) -> Vec<Finding> {
    let banned = blocks(&file.text, DOCS).into_iter().filter_map(|(line, text)| {
        let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let (first, second) = (words.next()?, words.next().unwrap_or_default());
        let is_asked = |word: &str| OPENINGS.iter().any(|opening| opening.eq_ignore_ascii_case(word));
        let banned = OPENINGS.contains(&first) || (PREPOSITIONS.contains(&first) && is_asked(second));
        let finding = || format!("a doc comment begins with `{first}`: {}", start_of(&text));
        banned.then(|| Finding::new(&file.path, line, finding()))
    });
    banned.collect()
}

/// Returns the sentences of a file that are too long, or whose subject is a question's word: in a page, in the comments
/// of Rust and YAML.
pub(crate) fn sentences_of(file: &File) -> Vec<Finding> {
    let blocks = match file.path.rsplit_once('.') {
        Some((_, "md")) => vec![(1, file.text.clone())],
        Some((_, "rs")) => blocks(&file.text, COMMENTS),
        Some((_, "yaml")) => blocks(&file.text, YAML),
        _ => Vec::new(),
    };
    let found = blocks.iter().flat_map(|(line, text)| {
        let mut found = long_in(&file.path, *line, text);
        found.extend(subjects_in(&file.path, *line, text));
        found
    });
    found.collect()
}

/// Returns the long sentences of the strings outside tests.
pub(crate) fn long_strings(source: &Source) -> Vec<Finding> {
    let strings = strings(source).into_iter();
    strings.flat_map(|(at, text)| long_in(source.path, line_of(&source.text, at), &text)).collect()
}

/// Returns the sentences of a page for users that use a word of [`PLAIN`].
pub(crate) fn unplain_pages(file: &File) -> Vec<Finding> {
    if file.path.ends_with(".md") { unplain_in(&file.path, 1, &file.text) } else { Vec::new() }
}

/// Returns the messages outside tests that use a word of [`PLAIN`]. A string without a blank is a name or a pattern.
pub(crate) fn unplain_strings(source: &Source) -> Vec<Finding> {
    let strings = strings(source).into_iter().filter(|(_, text)| text.trim().contains(' '));
    strings.flat_map(|(at, text)| unplain_in(source.path, line_of(&source.text, at), &text)).collect()
}

/// The words of [`PLAIN`] in a text in Markdown that begins at a line of its file.
fn unplain_in(path: &str, first: usize, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            // The place of a value has the value's name.
            let own = sentence.iter().filter(|word| !word.contains('{'));
            let bare = |word: &String| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            let plain = format!(" {} ", own.map(bare).collect::<Vec<_>>().join(" "));
            for (word, instead) in PLAIN.iter().filter(|(word, _)| plain.contains(&format!(" {word} "))) {
                let start = start_of(&sentence.join(" "));
                found.push(Finding::new(path, first + line, format!("`{word}` (write: {instead}): {start}")));
            }
        }
    }
    found
}

/// Each comment with one of the marks: its first line, and its text without the marks.
fn blocks(text: &str, marks: &[&'static str]) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let mark = marks.iter().copied().find(|mark| line.starts_with(mark)).unwrap_or_default();
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

/// The sentences of a text in Markdown that say "what does so" or "whoever does so" instead of a noun. A question may, and
/// so may a phrase without a full stop, as in a heading or in the cell of a table.
fn subjects_in(path: &str, first: usize, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        for sentence in sentences(&paragraph) {
            let mut words = sentence.iter().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
            let subject = words.find(|word| !matches!(*word, "" | "Invariant"));
            let is_banned = |word: &&str| SUBJECTS.iter().any(|subject| subject.eq_ignore_ascii_case(word));
            let ends = sentence.last().is_some_and(|last| last.contains('.'));
            if let Some(subject) = subject.filter(is_banned).filter(|_| ends) {
                let start = start_of(&sentence.join(" "));
                found.push(Finding::new(path, first + line, format!("`{subject}` is a subject: {start}")));
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
        assert_eq!(openings(&format!("/// By {} it goes.\n", word.to_lowercase())).len(), 1, "{word}");
        assert_eq!(openings(&format!("/// *{word}* is held.\n")).len(), 1, "{word}");
    }
    assert_eq!(openings("/// What is held.\n"), ["src/a.rs:1: a doc comment begins with `What`: What is held."]);
    assert_eq!(openings("/// Holds x.\n/// What else?\n// What\nfn f() {}\n/// Whatsoever.\n"), Vec::<String>::new());
}

/// The lines of the sentences that are found in a page, and in a source.
fn long_lines(path: &str, text: &str) -> Vec<usize> {
    let file = File::new(path, text);
    let mut found = sentences_of(&file);
    if path.ends_with(".rs") {
        found.extend(long_strings(&Source::new(&file)));
    }
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
    assert_eq!(lines(&format!("fn f() {{\n    // {long}\n}}\n")), [2]);
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

#[test]
fn words_that_are_not_plain_are_seen() {
    let page = |text: &str| unplain_pages(&File::new("docs/X.md", text)).iter().map(Finding::text).collect::<Vec<_>>();
    for (word, _) in PLAIN {
        assert!(!page(&format!("A file\n({word}) is.\n")).is_empty(), "{word}");
        let source = format!("fn f() {{ say(\"it {word} there\"); }}\n");
        let file = File::new("src/a.rs", &source);
        assert!(!unplain_strings(&Source::new(&file)).is_empty(), "{word}");
    }
    assert_eq!(page("A mendicant `holds` what\n```\nholds\n```\nis withheld.\n"), Vec::<String>::new());
    assert_eq!(page("x\n\nIt holds.\n"), ["docs/X.md:3: `holds` (write: contains): It holds."]);
    let file = File::new(
        "src/a.rs",
        "// It holds.\nconst A: &str = \"holds\";\n#[cfg(test)]\nmod t { const B: &str = \"it holds\"; }\n",
    );
    assert!(unplain_strings(&Source::new(&file)).is_empty());
}

#[test]
fn subjects_are_seen() {
    let found = |path: &str, text: &str| {
        let found = sentences_of(&File::new(path, text));
        found.iter().map(Finding::text).collect::<Vec<_>>().join("\n")
    };
    for subject in SUBJECTS {
        for text in ["Holds x. {} waits.", "*Invariant:* {} waits.", "- {} waits."] {
            let sentence = text.replace("{}", subject);
            for (path, mark) in [("src/a.rs", "///"), ("src/a.rs", "    //"), ("docs/X.md", ""), ("config/x.yaml", "#")]
            {
                let found = found(path, &format!("\n{mark} {sentence}\n"));
                assert!(found.contains(&format!("{path}:2: `{subject}` is a subject")), "{path} {sentence}: {found}");
            }
        }
    }
    assert_eq!(
        found("docs/X.md", "- Holds what waits.\n- What waits?\n- `what` waits.\n- Whatsoever.\n| what |\n"),
        ""
    );
    assert_eq!(found("src/a.rs", "const A: &str = \"What waits.\";\n"), "");
}
