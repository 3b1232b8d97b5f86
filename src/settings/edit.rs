//! Changing one value in the text of a settings file. Comments, order, indentation and line ends of the rest stay as they are.
//!
//! The text is edited by its lines and brackets, which takes no second parser of YAML. *Invariant:* the caller
//! ([`super::change`]) reads the result again, and writes it only if the one key has changed and nothing else.

use std::ops::Range;

use serde_json::Value;

/// Words that some readers of YAML take for a boolean or for nothing.
const RESERVED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Columns by which a new section's keys are indented.
const INDENT: usize = 2;

/// Returns a value as YAML on one line.
pub(super) fn rendered(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        Value::Array(items) => format!("[{}]", items.iter().map(rendered).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| format!("{}: {}", word(name), rendered(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Returns a text as it is where every reader of YAML takes it for that text, else in quotes.
fn word(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./".contains(letter))
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// Returns the text with a value at a path of names, which may be new; `None` for a form that is not edited.
pub(super) fn with_value(text: &str, path: &[&str], value: &str) -> Option<String> {
    let file = YamlText::read(text);
    let depth = file.lines.iter().map(|line| &text[line.clone()]).find(|line| tells(line)).map_or(0, indent);
    let all = 0..file.lines.len();
    let dotted = path.join(".");
    // A section may be written into the name: `limits.file_mb: 20`.
    let edit = match file.find(all.clone(), depth, &dotted) {
        Some(_) => file.edit(all, depth, &[&dotted], value),
        None => file.edit(all, depth, path, value),
    }?;
    let mut changed = text.to_owned();
    changed.replace_range(edit.at, &edit.with);
    Some(changed)
}

/// The replacement of a part of a text.
struct TextEdit {
    at: Range<usize>,
    with: String,
}

/// A text with the places of its lines.
struct YamlText<'t> {
    text: &'t str,
    /// Without their ends.
    lines: Vec<Range<usize>>,
    newline: &'static str,
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Returns true for a line that is neither blank nor a comment.
fn tells(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    line == "-" || line.starts_with("- ")
}

/// Returns the offset after the colon of `name:` in a line of this indentation.
fn after_key(line: &str, depth: usize, name: &str) -> Option<usize> {
    let rest = line.get(depth..).filter(|_| indent(line) == depth)?;
    let quoted = [name.to_owned(), format!("\"{name}\""), format!("'{name}'")];
    let rest = quoted.iter().find_map(|name| rest.strip_prefix(name.as_str()))?.trim_start_matches(' ');
    let value = rest.strip_prefix(':')?;
    (value.is_empty() || value.starts_with([' ', '\t'])).then_some(line.len() - value.len())
}

impl<'t> YamlText<'t> {
    fn read(text: &'t str) -> YamlText<'t> {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let plain = line.trim_end_matches(['\n', '\r']);
            lines.push(start..start + plain.len());
            start += line.len();
        }
        YamlText { text, lines, newline: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }

    fn line(&self, at: usize) -> &'t str {
        &self.text[self.lines[at].clone()]
    }

    /// Returns the line of `name` at an indentation within a range of lines.
    fn find(&self, mut within: Range<usize>, depth: usize, name: &str) -> Option<usize> {
        within.find(|at| after_key(self.line(*at), depth, name).is_some())
    }

    /// Returns the end of the block below a line: comments and blank lines at its end belong to what follows. A list may have the
    /// indentation of its name.
    fn block_end(&self, at: usize) -> usize {
        let depth = indent(self.line(at));
        let is_inside = |line: &str| !tells(line) || indent(line) > depth || indent(line) == depth && is_item(line);
        let end = (at + 1..self.lines.len()).find(|at| !is_inside(self.line(*at))).unwrap_or(self.lines.len());
        (at + 1..end).rev().find(|at| tells(self.line(*at))).map_or(at + 1, |last| last + 1)
    }

    /// Returns the edit that sets a value at a path below the lines of a block.
    fn edit(&self, within: Range<usize>, depth: usize, path: &[&str], value: &str) -> Option<TextEdit> {
        let (name, below) = path.split_first()?;
        let Some(at) = self.find(within.clone(), depth, name) else {
            return Some(self.insertion(within.end, &self.new_lines(depth, path, value)));
        };
        let start = self.lines[at].start + after_key(self.line(at), depth, name)?;
        let rest = &self.text[start..self.lines[at].end];
        let body = rest.trim_start();
        let is_block = body.is_empty() || body.starts_with('#');
        let body_start = start + rest.len() - body.len();
        match (below.is_empty(), is_block) {
            // The lines of the old value go, and a comment after the colon stays.
            (true, true) => {
                let end = self.lines[self.block_end(at) - 1].end;
                Some(TextEdit { at: start..end, with: format!(" {value}{rest}") })
            }
            (true, false) => {
                let end = value_end(self.text, body_start, false)?;
                Some(TextEdit { at: body_start..end, with: value.to_owned() })
            }
            (false, true) => {
                let block = at + 1..self.block_end(at);
                let inner = block.clone().map(|at| self.line(at)).find(|line| tells(line)).map(indent);
                match inner {
                    Some(inner) if inner > depth => self.edit(block, inner, below, value),
                    Some(_) => None,
                    None => Some(self.insertion(at + 1, &self.new_lines(depth + INDENT, below, value))),
                }
            }
            (false, false) if body.starts_with('{') => flow_edit(self.text, body_start, below, value),
            (false, false) => None,
        }
    }

    /// Returns the lines of a new key, with its sections.
    fn new_lines(&self, depth: usize, path: &[&str], value: &str) -> String {
        let mut text = String::new();
        for (at, name) in path.iter().enumerate() {
            let value = if at + 1 == path.len() { format!(" {value}") } else { String::new() };
            text.push_str(&format!("{}{name}:{value}{}", " ".repeat(depth + at * INDENT), self.newline));
        }
        text
    }

    /// Inserts whole lines before a line, or at the end of the text.
    fn insertion(&self, before: usize, lines: &str) -> TextEdit {
        match self.lines.get(before) {
            Some(line) => TextEdit { at: line.start..line.start, with: lines.to_owned() },
            None => {
                let end = self.text.len();
                let is_open = !self.text.is_empty() && !self.text.ends_with('\n');
                let with = if is_open { format!("{}{lines}", self.newline) } else { lines.to_owned() };
                TextEdit { at: end..end, with }
            }
        }
    }
}

/// Returns the edit that sets a value at a path in a map in brackets, which begins at `open`.
fn flow_edit(text: &str, open: usize, path: &[&str], value: &str) -> Option<TextEdit> {
    let (name, below) = path.split_first()?;
    let mut last = None;
    let mut at = open + 1;
    loop {
        at = space_end(text, at);
        match text.as_bytes().get(at)? {
            b'}' => break,
            b',' => at += 1,
            _ => {
                let key_end = key_end(text, at)?;
                let key = text[at..key_end].trim_matches(['"', '\'']);
                let colon = space_end(text, key_end);
                if text.as_bytes().get(colon) != Some(&b':') {
                    return None;
                }
                let start = space_end(text, colon + 1);
                let end = value_end(text, start, true)?;
                if key == *name {
                    return match below.is_empty() {
                        true => Some(TextEdit { at: start..end, with: value.to_owned() }),
                        false if text[start..].starts_with('{') => flow_edit(text, start, below, value),
                        false => None,
                    };
                }
                (last, at) = (Some(end), end);
            }
        }
    }
    let entry = new_entry(path, value);
    Some(match last {
        Some(end) => TextEdit { at: end..end, with: format!(", {entry}") },
        None => TextEdit { at: open + 1..open + 1, with: entry },
    })
}

/// Returns `a: {b: value}` for the path `a`, `b`.
fn new_entry(path: &[&str], value: &str) -> String {
    match path {
        [] => value.to_owned(),
        [name] => format!("{name}: {value}"),
        [name, below @ ..] => format!("{name}: {{{}}}", new_entry(below, value)),
    }
}

/// Passes white space and comments.
fn space_end(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        at += rest.len() - rest.trim_start().len();
        match text[at..].starts_with('#') {
            true => at = text[at..].find('\n').map_or(text.len(), |end| at + end),
            false => return at,
        }
    }
}

/// Returns the end of a name in a map in brackets.
fn key_end(text: &str, start: usize) -> Option<usize> {
    match text.as_bytes().get(start)? {
        b'"' | b'\'' => quote_end(text, start),
        _ => text[start..].find([':', ',', '}', '\n']).map(|end| start + text[start..start + end].trim_end().len()),
    }
}

/// Returns the end of a value that begins at `start`; `None` for a form that is not edited.
fn value_end(text: &str, start: usize, is_in_brackets: bool) -> Option<usize> {
    match text.as_bytes().get(start)? {
        b'"' | b'\'' => quote_end(text, start),
        b'{' | b'[' => bracket_end(text, start),
        // A text of several lines.
        b'|' | b'>' => None,
        _ => {
            let line = text[start..].lines().next().unwrap_or_default();
            let line = line.split(" #").next().unwrap_or(line);
            let ends = |letter: char| is_in_brackets && ",}]".contains(letter);
            Some(start + line.split(ends).next().unwrap_or(line).trim_end().len())
        }
    }
}

/// Returns the end of a text in quotes.
fn quote_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = *bytes.get(start)?;
    let mut at = start + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Returns the end of a list or map in brackets.
fn bracket_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0usize);
    loop {
        match *bytes.get(at)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            // An apostrophe inside of a word is no quote.
            b'"' | b'\'' if !bytes[at - 1].is_ascii_alphanumeric() => {
                at = quote_end(text, at)?;
                continue;
            }
            b'#' if bytes[at - 1].is_ascii_whitespace() => {
                at = text[at..].find('\n').map(|end| at + end)?;
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_changes_and_the_rest_stays() {
        for (text, key, value, expected) in [
            ("", "guard", "action", "guard: action\n"),
            ("# mine", "limits.file_mb", "5", "# mine\nlimits:\n  file_mb: 5\n"),
            ("guard: turn # why\nopaque: ignore\n", "guard", "action", "guard: action # why\nopaque: ignore\n"),
            ("guard:   'turn'\r\nb: 1\r\n", "guard", "action", "guard:   action\r\nb: 1\r\n"),
            ("guard: turn", "deadline_ms", "5", "guard: turn\ndeadline_ms: 5\n"),
            (
                "limits:\n    # large\n    file_mb: 1   # small\n\n# next\nguard: turn\n",
                "limits.files",
                "7",
                "limits:\n    # large\n    file_mb: 1   # small\n    files: 7\n\n# next\nguard: turn\n",
            ),
            ("limits: {file_mb: 1, files: 2} # x\n", "limits.file_mb", "9", "limits: {file_mb: 9, files: 2} # x\n"),
            ("limits: {file_mb: 1}\n", "limits.files", "9", "limits: {file_mb: 1, files: 9}\n"),
            ("limits: {}\n", "limits.files", "9", "limits: {files: 9}\n"),
            ("limits:\nguard: turn\n", "limits.files", "9", "limits:\n  files: 9\nguard: turn\n"),
            ("limits.files: 1\n", "limits.files", "9", "limits.files: 9\n"),
            ("exclude: # list\n- a # one\n- b\nguard: turn\n", "exclude", "[c]", "exclude: [c] # list\nguard: turn\n"),
            ("exclude:\n  - a\n\n# last\n", "exclude", "[]", "exclude: []\n\n# last\n"),
            ("exclude: [a,\n  'it''s', # }\n  b]\nx: 1\n", "exclude", "[c]", "exclude: [c]\nx: 1\n"),
            (
                "policy:\n  cloud: ask\n  database: {severity: high}\n",
                "policy.database.answer",
                "deny",
                "policy:\n  cloud: ask\n  database: {severity: high, answer: deny}\n",
            ),
            ("\"guard\": \"a \\\" # b\" # c\n", "guard", "turn", "\"guard\": turn # c\n"),
        ] {
            let path: Vec<&str> = key.split('.').collect();
            assert_eq!(with_value(text, &path, value).as_deref(), Some(expected), "{text:?} {key}");
        }
        for (text, key) in [("limits: 5\n", "limits.files"), ("guard: |\n  turn\n", "guard"), ("x: [a\n", "x")] {
            let path: Vec<&str> = key.split('.').collect();
            assert_eq!(with_value(text, &path, "1"), None, "{text:?} {key}");
        }
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let values = [
            serde_json::json!("turn"),
            serde_json::json!("off"),
            serde_json::json!("*.bin"),
            serde_json::json!("a: b # c"),
            serde_json::json!("12"),
            serde_json::json!(12),
            serde_json::json!(true),
            serde_json::json!(["a", "!b", "it's", "x\"y", "tab\there"]),
            serde_json::json!({ "cloud": "ask", "database": { "severity": "high", "warn": false } }),
        ];
        for value in values {
            assert_eq!(super::super::yaml::value(&rendered(&value)), Some(value.clone()), "{}", rendered(&value));
        }
        assert_eq!(rendered(&serde_json::json!("turn")), "turn");
        assert_eq!(rendered(&serde_json::json!("off")), "\"off\"");
    }
}
