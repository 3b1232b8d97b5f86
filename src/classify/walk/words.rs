//! Words to arguments, with the shell's variables and what substitutions print.

use std::path::Path;

use super::{Stream, Walk};
use crate::classify::expand::{Arg, Chunk, Shell, TextOrigin, Value, arguments, multiply};
use crate::classify::shell::{Assignment, Change, Part, Script, Word, closing_brace};

/// Most texts of an assigned value among which a default is looked for.
const MAX_CHOICES: usize = 4;

impl Walk<'_> {
    /// Returns the arguments a word becomes.
    pub(crate) fn expand(&mut self, word: &Word, shell: &mut Shell) -> Vec<Arg> {
        let mut args = elements(word, shell).unwrap_or_default();
        let chunks = if args.is_empty() { self.chunks(word, shell) } else { Vec::new() };
        for chunks in chunks {
            arguments(chunks, word.span, &mut args);
        }
        for arg in &args {
            self.produce(arg.text.len());
            self.bounds.word();
        }
        args
    }

    /// Returns a word as one text: of an assignment, a here-document, a redirect's target.
    pub(crate) fn joined(&mut self, word: &Word, shell: &mut Shell) -> Arg {
        let only = self.joined_choices(word, shell, 1);
        only.into_iter().next().unwrap_or_else(|| Arg::literal("", word.span))
    }

    /// Returns the first texts of those that a word may be.
    fn joined_choices(&mut self, word: &Word, shell: &mut Shell, most: usize) -> Vec<Arg> {
        if let Some([arg]) = elements(word, shell).as_deref() {
            self.produce(arg.text.len());
            return vec![arg.clone()];
        }
        let mut args = Vec::new();
        for mut chunks in self.chunks(word, shell).into_iter().take(most) {
            for chunk in &mut chunks {
                chunk.splits = false;
                chunk.quoted = true;
            }
            arguments(chunks, word.span, &mut args);
        }
        args.iter().for_each(|arg| self.produce(arg.text.len()));
        args
    }

    /// Returns what an assignment gives its variable.
    pub(crate) fn value(&mut self, assignment: &Assignment, shell: &mut Shell) -> Value {
        if let Some(Part::Array { words }) = assignment.value.parts.last() {
            let mut args: Vec<Arg> = match shell.variables.get(&assignment.name) {
                Some(Value::List(args)) if assignment.appends => args.clone(),
                _ => Vec::new(),
            };
            args.extend(words.iter().flat_map(|word| self.expand(word, shell)));
            return Value::List(args);
        }
        let choices = self.joined_choices(&assignment.value, shell, MAX_CHOICES);
        match choices.first() {
            _ if assignment.compound => Value::Unknown(TextOrigin::Plain),
            Some(arg) if arg.origin == TextOrigin::Temporary => Value::Temporary,
            Some(arg) if arg.is_exact() => Value::Known(vec![arg.text.clone()]),
            Some(arg) => {
                let mut known = choices[1..].iter().filter_map(Arg::exact);
                let near = known.find(|text| self.names_piton(text));
                near.map_or(Value::Unknown(arg.origin), |text| Value::UnknownOr(text.to_owned()))
            }
            None => Value::Known(vec![String::new()]),
        }
    }

    /// Returns true if a text is an absolute path near piton's own files. Of other texts, a default of a variable is not remembered.
    fn names_piton(&self, text: &str) -> bool {
        text.starts_with('/') && self.near_piton(Path::new(text)).is_some()
    }

    fn chunks(&mut self, word: &Word, shell: &mut Shell) -> Vec<Vec<Chunk>> {
        let mut alternatives = vec![Vec::new()];
        for (index, part) in word.parts.iter().enumerate() {
            let choices = match part {
                Part::Literal { text, quoted } => vec![self.text(text, *quoted, index == 0, shell)],
                Part::Variable { name, quoted } => variable(name, *quoted, shell),
                Part::Command { script, quoted } => vec![self.substituted(script, *quoted, shell)],
                Part::Process { script } => {
                    let made = self.script(script, Stream::Opaque, &mut shell.clone());
                    self.processes += 1;
                    let path = format!("{}{}", super::PROCESS, self.processes);
                    let chunk = Chunk { origin: made.origin(), ..Chunk::text(&path, true) };
                    self.written.insert(path.into(), made);
                    vec![chunk]
                }
                Part::Elements { name, quoted } => variable(name, *quoted, shell),
                Part::Array { words } => {
                    for word in words {
                        self.expand(word, shell);
                    }
                    vec![Chunk::unknown("${}", false, TextOrigin::Plain)]
                }
                Part::Unknown { inner, quoted, change } => {
                    self.inner(inner, shell);
                    let known = |text: &str| Chunk { splits: !quoted, ..Chunk::text(text, *quoted) };
                    let unknown = || Chunk::unknown("${}", *quoted, TextOrigin::Plain);
                    match change.as_ref().map(|change| (changed(change, shell), instead(change, shell))) {
                        Some((Some(text), _)) => vec![known(&text)],
                        Some((None, Some(word))) => {
                            let assigned = change.as_ref().filter(|change| change.operator.ends_with('='));
                            if let Some(change) = assigned.filter(|_| self.names_piton(&word)) {
                                shell.set(&change.name, Value::UnknownOr(word.clone()));
                            }
                            vec![unknown(), known(&word)]
                        }
                        Some((None, None)) | None => vec![unknown()],
                    }
                }
            };
            multiply(&mut alternatives, choices);
        }
        if word.parts.is_empty() {
            return Vec::new();
        }
        alternatives
    }

    fn text(&mut self, text: &str, quoted: bool, first: bool, shell: &Shell) -> Chunk {
        // bash reads `of=~/x` as an assignment.
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let assigned = text.split_once("=~").filter(|(name, _)| is_name(name));
        if let (Some((name, rest)), Some(home), true, false) = (assigned, &self.context.home, first, quoted)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return Chunk::text(&format!("{name}={}{rest}", home.to_string_lossy()), false);
        }
        if quoted || !first || !text.starts_with('~') {
            return Chunk::text(text, quoted);
        }
        let (name, rest) = text[1..].split_at(text[1..].find('/').unwrap_or(text.len() - 1));
        if name == "+"
            && let Some(cwd) = &shell.cwd
        {
            return Chunk::text(&format!("{}{rest}", cwd.to_string_lossy()), false);
        }
        match &self.context.home {
            Some(home) if name.is_empty() => Chunk::text(&format!("{}{rest}", home.to_string_lossy()), false),
            _ => Chunk::unknown(text, false, TextOrigin::Plain),
        }
    }

    fn substituted(&mut self, script: &Script, quoted: bool, shell: &Shell) -> Chunk {
        let mut chunk = match self.script(script, Stream::Nothing, &mut shell.clone()) {
            Stream::Text(text) => Chunk::text(text.trim_end_matches('\n'), quoted),
            Stream::Nothing if script.pipelines.is_empty() => Chunk::text("", quoted),
            other => Chunk::unknown("$()", quoted, other.origin()),
        };
        if makes_temporary(script) {
            chunk = Chunk::unknown("$(mktemp)", quoted, TextOrigin::Temporary);
        } else if chunk.known && !quoted {
            chunk.splits = true;
        }
        chunk
    }

    /// Runs what is inside a text that itself stays unknown.
    fn inner(&mut self, parts: &[Part], shell: &mut Shell) {
        for part in parts {
            match part {
                Part::Command { script, .. } | Part::Process { script } => {
                    self.script(script, Stream::Nothing, &mut shell.clone());
                }
                Part::Unknown { inner, .. } => self.inner(inner, shell),
                Part::Array { words } => words.iter().for_each(|word| self.inner(&word.parts, shell)),
                Part::Literal { .. } | Part::Variable { .. } | Part::Elements { .. } => {}
            }
        }
    }
}

fn variable(name: &str, quoted: bool, shell: &Shell) -> Vec<Chunk> {
    let written = format!("${name}");
    match shell.variables.get(name) {
        Some(Value::Known(texts)) if !texts.is_empty() => {
            let chunk = |text: &String| Chunk { splits: !quoted, ..Chunk::text(text, quoted) };
            texts.iter().map(chunk).collect()
        }
        Some(Value::List(args)) => match args.first().filter(|_| args.len() == 1 || !matches!(name, "@" | "*")) {
            Some(first) if first.is_exact() => vec![Chunk { splits: !quoted, ..Chunk::text(&first.text, quoted) }],
            Some(first) => vec![Chunk::unknown(&written, quoted, first.origin)],
            None => vec![Chunk::unknown(&written, quoted, TextOrigin::Plain)],
        },
        Some(Value::Temporary) => vec![Chunk::unknown(&written, quoted, TextOrigin::Temporary)],
        Some(Value::Unknown(origin)) => vec![Chunk::unknown(&written, quoted, *origin)],
        Some(Value::UnknownOr(text)) => {
            let known = Chunk { splits: !quoted, ..Chunk::text(text, quoted) };
            vec![Chunk::unknown(&written, quoted, TextOrigin::Plain), known]
        }
        Some(Value::Known(_)) => vec![Chunk::unknown(&written, quoted, TextOrigin::Plain)],
        None if name == "PWD" => match &shell.cwd {
            Some(cwd) => vec![Chunk::text(&cwd.to_string_lossy(), true)],
            None => vec![Chunk::unknown(&written, quoted, TextOrigin::Plain)],
        },
        None => vec![Chunk::unknown(&written, quoted, TextOrigin::Plain)],
    }
}

/// Returns the text of `${name…}`, if the line itself gives the variable its value.
fn changed(change: &Change, shell: &Shell) -> Option<String> {
    let Some(Value::Known(texts)) = shell.variables.get(&change.name) else { return None };
    let [text] = texts.as_slice() else { return None };
    let word = change.word.as_str();
    let text = text.as_str();
    Some(match change.operator {
        ":-" | ":=" if text.is_empty() => with_values(word, shell)?,
        ":+" if text.is_empty() => String::new(),
        ":+" | "+" => word.to_owned(),
        "%" | "%%" | "#" | "##" => without(text, change.operator, word)?.to_owned(),
        _ => text.to_owned(),
    })
}

/// Returns the word of `${name:-word}`, which a variable that the line does not set may become.
fn instead(change: &Change, shell: &Shell) -> Option<String> {
    let is_default = matches!(change.operator, ":-" | ":=" | "-" | "=");
    let is_it = is_default && !change.word.is_empty() && !shell.variables.contains_key(&change.name);
    if is_it { with_values(&change.word, shell) } else { None }
}

/// Returns a text with the values of the variables in it (`$HOME/x`, `~/x`, `${A:-$HOME}/x`); `None` where one is not known.
fn with_values(text: &str, shell: &Shell) -> Option<String> {
    if let Some(rest) = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        return with_values(&format!("$HOME{rest}"), shell);
    }
    // The directory of another user.
    if text.starts_with('~') {
        return None;
    }
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('$') {
        made.push_str(before);
        if let Some(inside) = behind.strip_prefix('{') {
            let end = closing_brace(inside.as_bytes())?;
            made.push_str(&braced(&inside[..end], shell)?);
            rest = &inside[end + 1..];
        } else {
            let (name, after) = split_name(behind);
            made.push_str(only_value(name, shell)?);
            rest = after;
        }
    }
    made.push_str(rest);
    Some(made)
}

/// Returns the value of `${…}` by its inside: of the variable, or of its default where the line does not set it.
fn braced(inside: &str, shell: &Shell) -> Option<String> {
    let (name, change) = split_name(inside);
    let default = [":-", ":=", "-", "="].iter().find_map(|operator| change.strip_prefix(operator));
    match only_value(name, shell) {
        Some(value) if change.is_empty() || default.is_some() && !value.is_empty() => Some(value.to_owned()),
        None if !shell.variables.contains_key(name) => with_values(default?, shell),
        _ => None,
    }
}

/// Splits a text behind the name of a variable that it begins with.
fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len()))
}

fn only_value<'s>(name: &str, shell: &'s Shell) -> Option<&'s str> {
    match shell.variables.get(name)? {
        Value::Known(values) if values.len() == 1 => values.first().map(String::as_str),
        _ => None,
    }
}

/// Longest text of which a pattern takes something away, in bytes.
const MAX_CUT: usize = 256;

/// Returns a text without what a pattern matches at its end (`%`) or at its beginning (`#`): the shortest piece, or with two signs
/// the longest.
fn without<'t>(text: &'t str, operator: &str, pattern: &str) -> Option<&'t str> {
    if text.len() > MAX_CUT {
        return None;
    }
    let is_end = operator.starts_with('%');
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    // The shortest piece first.
    if is_end != (operator.len() == 2) {
        places.reverse();
    }
    let piece = |at: usize| if is_end { &text[at..] } else { &text[..at] };
    let cut = places.into_iter().find(|at| matches_pattern(piece(*at), pattern));
    Some(match cut {
        Some(at) if is_end => &text[..at],
        Some(at) => &text[at..],
        None => text,
    })
}

/// Matches a whole text with a pattern of the shell that has no more than `*` and `?`.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(one) if *one == '?' || *one == text[at] => {
                at += 1;
                of += 1;
            }
            _ => {
                // The last star takes one more.
                let Some((place, from)) = star else { return false };
                star = Some((place, from + 1));
                (of, at) = (place + 1, from + 1);
            }
        }
    }
    pattern[of..].iter().all(|one| *one == '*')
}

/// Returns the arguments of a word that is a list and nothing else: `"${a[@]}"`, `"$@"`.
fn elements(word: &Word, shell: &Shell) -> Option<Vec<Arg>> {
    // Quotes leave empty literals around it.
    let mut parts = word.parts.iter().filter(|part| !matches!(part, Part::Literal { text, .. } if text.is_empty()));
    let (Some(Part::Elements { name, .. } | Part::Variable { name, .. }), None) = (parts.next(), parts.next()) else {
        return None;
    };
    match shell.variables.get(name)? {
        Value::List(args) => Some(args.iter().map(|arg| Arg { span: word.span, ..arg.clone() }).collect()),
        Value::Known(_) | Value::Unknown(_) | Value::UnknownOr(_) | Value::Temporary => None,
    }
}

/// `$(mktemp -d)`, `$(pwd)` aside: a fresh path of its own.
fn makes_temporary(script: &Script) -> bool {
    let [pipeline] = script.pipelines.as_slice() else {
        return false;
    };
    let [crate::classify::shell::PipelineStage::Simple(simple)] = pipeline.stages.as_slice() else {
        return false;
    };
    let mut words = simple.words.iter().map(Word::bare);
    words.next() == Some(Some("mktemp"))
        && !simple.words.iter().any(|word| word.bare().is_some_and(|text| text.contains("-p")))
}
