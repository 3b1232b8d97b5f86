//! A reader of Rust: a lexer that blanks comments and literals, not a parser. It is right about everything `rustfmt`
//! writes; macros that make modules or functions are beyond it.

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The source with comments, strings and characters blanked; lines and positions stay.
pub fn mask(text: &str) -> Vec<char> {
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
pub fn literal_end(source: &[char], at: usize) -> usize {
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

pub fn block_comment_end(source: &[char], start: usize) -> usize {
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

pub fn string_end(source: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < source.len() && source[at] != '"' {
        at += if source[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(source.len())
}

/// `at` stands behind the `r`.
pub fn raw_string_end(source: &[char], at: usize) -> Option<usize> {
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
pub fn blank_tests(masked: &[char], whole: bool) -> (Vec<char>, usize) {
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

pub fn positions(code: &[char], what: &str) -> Vec<usize> {
    let what: Vec<char> = what.chars().collect();
    let windows = code.windows(what.len()).enumerate();
    windows.filter(|(_, window)| *window == what).map(|(at, _)| at).collect()
}

/// Positions of a whole word.
pub fn words(code: &[char], what: &str) -> Vec<usize> {
    let mut at = positions(code, what);
    at.retain(|at| {
        let after = code.get(at + what.len()).copied().unwrap_or(' ');
        (*at == 0 || !is_word(code[at - 1])) && !is_word(after)
    });
    at
}

/// Where the body of the item that begins at `start` opens (if it has one), and where the item ends.
pub fn item_end(masked: &[char], start: usize) -> (Option<usize>, usize) {
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

pub fn skip_space(code: &[char], mut at: usize) -> usize {
    while code.get(at).is_some_and(|c| c.is_whitespace()) {
        at += 1;
    }
    at
}

/// All paths of the use tree (or plain path) at `at`, and where it ends.
pub fn read_paths(code: &[char], at: usize, prefix: &[String], out: &mut Vec<Vec<String>>) -> usize {
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
pub fn module_path(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    match inner {
        "lib" => Vec::new(),
        "main" => vec!["cli".to_owned()],
        _ => inner.trim_end_matches("/mod").split('/').map(str::to_owned).collect(),
    }
}

/// The inline modules around a position.
pub fn inline_modules(code: &[char], at: usize) -> Vec<String> {
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
