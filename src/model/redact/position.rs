//! Finds secrets by where they stand: arguments of known programs and options, here-strings, and what is piped into a program that
//! reads a secret.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::names::{is_secret, is_verb, says_secret};
use super::shape::{Spans, is_dense, is_path, is_reference};
use super::words::{Token, inner, tokens};
use crate::model::words::{HARMLESS_READERS, SECRET_PLACES, SECRET_READERS, SECRET_READING};

/// Subcommands that store what they read: one of the first words, and one behind it.
const STORING: (&[&str], &[&str]) =
    (&["secret", "secrets", "variable", "env"], &["set", "put", "create", "import", "add", "versions", "bulk"]);

/// The rows of each program.
static ROWS: LazyLock<HashMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
    let mut rows: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, (programs, ..)) in SECRET_PLACES.iter().enumerate() {
        programs.split(' ').for_each(|program| rows.entry(program).or_default().push(at));
    }
    rows
});

/// Bounds the nesting of quoted commands.
const DEPTH: usize = 3;

/// Notes the secrets of a text that begins at `base`.
pub(super) fn find(text: &str, depth: usize, spans: &mut Spans) {
    CommandReader { text, base: 0, depth, documents: Cell::new(0), is_source: false }.read(spans);
}

/// One level of a text: the whole, or a command in quotes.
struct CommandReader<'t> {
    text: &'t str,
    /// The position of the text in the whole one.
    base: usize,
    depth: usize,
    /// Up to here documents were read.
    documents: Cell<usize>,
    /// True if it is a command that prints a secret: the value of `--password-command`.
    is_source: bool,
}

/// A simple command.
#[derive(Default)]
struct Simple {
    words: Vec<Range<usize>>,
    /// Words of `words` that stand behind `<<<`.
    here: Option<usize>,
    has_document: bool,
}

impl CommandReader<'_> {
    fn read(&self, spans: &mut Spans) {
        let tokens = tokens(self.text);
        // The commands of one pipe.
        let (mut pipe, mut simple) = (Vec::new(), Simple::default());
        for token in tokens {
            match token {
                Token::Word(word) => simple.words.push(word),
                Token::HereString => simple.here = Some(simple.words.len()),
                Token::HereDoc => simple.has_document = true,
                Token::Pipe => pipe.push(std::mem::take(&mut simple)),
                Token::End => {
                    pipe.push(std::mem::take(&mut simple));
                    self.pipe(&pipe, spans);
                    pipe.clear();
                }
            }
        }
        pipe.push(simple);
        self.pipe(&pipe, spans);
    }

    fn word(&self, word: &Range<usize>) -> &str {
        &self.text[inner(self.text, word)]
    }

    fn note(&self, span: Range<usize>, spans: &mut Spans) {
        if !is_reference(&self.text[span.clone()]) {
            spans.push(self.base + span.start..self.base + span.end);
        }
    }

    fn pipe(&self, pipe: &[Simple], spans: &mut Spans) {
        for (at, simple) in pipe.iter().enumerate() {
            if simple.words.is_empty() {
                continue;
            }
            let words: Vec<&str> = simple.words.iter().map(|word| self.word(word)).collect();
            self.programs(simple, &words, spans);
            self.options(simple, &words, spans);
            self.formats(simple, &words, spans);
            if self.is_source {
                self.printed(simple, spans);
            }
            let reads = reads_secret(&words);
            if reads {
                for before in &pipe[..at] {
                    self.printed(before, spans);
                    if let Some(word) = before.here.and_then(|here| before.words.get(here)) {
                        self.note(word.clone(), spans);
                    }
                }
            }
            if let Some(word) = simple.here.and_then(|here| simple.words.get(here)) {
                self.here_string(word, &words, reads, spans);
            }
            if simple.has_document && reads {
                self.document(simple, spans);
            }
            for (at, word) in simple.words.iter().enumerate() {
                let is_source = at > 0 && is_source(words[at - 1]);
                self.nested(word, is_source, spans);
                self.command_of(word, spans);
            }
        }
    }

    /// `--password-command="echo SECRET"`, `BORG_PASSCOMMAND='echo SECRET'`: what the command prints is the secret.
    fn command_of(&self, word: &Range<usize>, spans: &mut Spans) {
        let text = &self.text[word.clone()];
        if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_source(name)) {
            let from = word.start + name.len() + 1;
            self.nested(&(from..from + value.len()), true, spans);
        }
    }

    /// `printf 'PASSWORD=%s' SECRET`: the name stands in the format, its value behind it.
    fn formats(&self, simple: &Simple, words: &[&str], spans: &mut Spans) {
        let Some(at) = words.iter().position(|word| *word == "printf") else { return };
        let mut rest = at + 1..words.len();
        let Some(format) = rest.find(|at| !words[*at].starts_with('-')) else { return };
        let text = words[format].replace("%%", "");
        let mut before = "";
        for (nth, (piece, at)) in text.split('%').zip(rest).enumerate() {
            let piece = piece.trim_end_matches([' ', '"', '\\']).strip_suffix(['=', ':']);
            // `printf '%s=%s' NAME VALUE`: the name is a value itself.
            let name = piece.map(|piece| if nth > 0 && piece.len() == 1 { before } else { last_name(piece) });
            if name.is_some_and(|name| is_secret(name, words[at], false)) {
                self.note(simple.words[at].clone(), spans);
            }
            before = words[at];
        }
    }

    /// A command in quotes is a text of its own.
    fn nested(&self, word: &Range<usize>, is_source: bool, spans: &mut Spans) {
        let quoted = inner(self.text, word);
        if quoted != *word && self.depth < DEPTH && self.text[quoted.clone()].contains([' ', '=', '\n']) {
            let text = &self.text[quoted.clone()];
            let (base, depth) = (self.base + quoted.start, self.depth + 1);
            CommandReader { text, base, depth, documents: Cell::new(0), is_source }.read(spans);
        }
    }

    /// Marks the text that `echo` and `printf` hand to a program that reads a secret.
    fn printed(&self, simple: &Simple, spans: &mut Spans) {
        let words: Vec<&str> = simple.words.iter().map(|word| self.word(word)).collect();
        let Some(at) =
            words.iter().position(|word| matches!(*word, "echo" | "printf" | "print" | "yes" | "Write-Output"))
        else {
            return;
        };
        let is_format = |word: &str| words[at] == "printf" && word.contains('%');
        for (word, text) in simple.words.iter().zip(&words).skip(at + 1) {
            if !text.starts_with('-') && !is_format(text) {
                self.note(word.clone(), spans);
            }
        }
    }

    fn here_string(&self, word: &Range<usize>, words: &[&str], reads: bool, spans: &mut Spans) {
        let harmless = |word: &&str| HARMLESS_READERS.contains(&base_name(word));
        let text = self.word(word);
        let is_one = text.len() >= 4 && !text.contains([' ', '$', '\n']);
        if reads || (is_one && !words.iter().take(3).any(harmless)) {
            self.note(word.clone(), spans);
        }
    }

    /// The lines of a here-document, up to its delimiter.
    fn document(&self, simple: &Simple, spans: &mut Spans) {
        let Some(last) = simple.words.last() else { return };
        if last.end < self.documents.get() {
            return;
        }
        let delimiter = self.word(last).trim_start_matches('\\');
        for line in self.text[last.end..].split_inclusive('\n').skip(1) {
            let start = line.as_ptr() as usize - self.text.as_ptr() as usize;
            let content = line.trim();
            self.documents.set(start + line.len());
            if content == delimiter {
                break;
            }
            let end = start + line.trim_end().len();
            if start < end {
                self.note(start..end, spans);
            }
        }
    }

    /// The places of known programs.
    fn programs(&self, simple: &Simple, words: &[&str], spans: &mut Spans) {
        let mut done = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let name = base_name(word);
            if name.is_empty() || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                continue;
            }
            for row in ROWS.get(name).into_iter().flatten() {
                // The places of a row are looked for once, in all that follows.
                let (_, subs, places) = SECRET_PLACES[*row];
                if !done.contains(row) && (subs.is_empty() || has_sub(&words[at + 1..], subs)) {
                    done.push(*row);
                    for place in places.split(' ') {
                        self.place(simple, words, at, place, spans);
                    }
                }
            }
        }
    }

    fn place(&self, simple: &Simple, words: &[&str], program: usize, place: &str, spans: &mut Spans) {
        let rest = program + 1..words.len();
        if place == "*=" {
            for at in rest {
                self.assigned(&simple.words[at], spans);
            }
        } else if place == ".$" {
            if let [.., host, value] = words
                && is_host(host)
                && !value.starts_with('-')
            {
                self.note(simple.words[words.len() - 1].clone(), spans);
            }
        } else if let Some(option) = place.strip_suffix('$') {
            let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
            let gives = |word: &&str| match letter {
                Some(letter) => word.starts_with('-') && !word.starts_with("--") && word.contains(letter),
                None => word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
            };
            let is_given = option.is_empty() || words[rest].iter().any(gives);
            let last = words.len() - 1;
            // The subcommand itself is no secret, nor is an address: what it may hold has a form.
            let is_free = last > program + 1 && !words[last].starts_with('-') && !words[last].contains("://");
            if is_given && is_free {
                self.note(simple.words[last].clone(), spans);
            }
        } else if let Some(anchor) = place.strip_prefix('@') {
            self.argument(simple, words, program, anchor, spans);
        } else if let Some(option) = place.strip_suffix('#') {
            for at in rest.filter(|at| words[*at].len() > option.len() && words[*at].starts_with(option)) {
                let span = inner(self.text, &simple.words[at]);
                if !words[at].starts_with("--") {
                    self.note(span.start + option.len()..span.end, spans);
                }
            }
        } else {
            self.option(simple, words, program, place, spans);
        }
    }

    /// The first or second argument behind a word.
    fn argument(&self, simple: &Simple, words: &[&str], program: usize, anchor: &str, spans: &mut Spans) {
        let (anchor, nth) = anchor.strip_prefix('@').map_or((anchor, 0), |anchor| (anchor, 1));
        let (anchor, sign) = anchor.strip_suffix('/').map_or((anchor, None), |anchor| (anchor, Some('/')));
        let Some(at) = (program..words.len()).find(|at| base_name(words[*at]) == anchor || words[*at] == anchor) else {
            return;
        };
        let mut free = (at + 1..words.len()).filter(|at| !words[*at].starts_with('-'));
        let Some(at) = free.nth(nth) else { return };
        if words[at].contains('=') && sign.is_none() {
            return;
        }
        match sign {
            None => self.note(simple.words[at].clone(), spans),
            Some(sign) => self.behind(&simple.words[at], sign, spans),
        }
    }

    /// An option that a table names, with its value.
    fn option(&self, simple: &Simple, words: &[&str], program: usize, place: &str, spans: &mut Spans) {
        let sign = place.chars().last().filter(|last| matches!(last, ':' | '%' | ',' | '='));
        let option = place.trim_end_matches([':', '%', ',', '=']);
        let is_short = option.len() == 2 && option.starts_with('-');
        for at in program + 1..words.len() {
            let (word, span) = (words[at], inner(self.text, &simple.words[at]));
            let value = if word == option {
                match simple.words.get(at + 1) {
                    Some(next) if !words[at + 1].starts_with('-') => next.clone(),
                    _ => continue,
                }
            } else if let Some(rest) = word.strip_prefix(option) {
                match rest.strip_prefix(['=', ':']) {
                    // `-storepass:env NAME` says where it is.
                    Some("env" | "file") => continue,
                    Some(rest) if option.len() > 2 || !option.starts_with('-') => span.end - rest.len()..span.end,
                    _ if is_short && !rest.is_empty() && !rest.starts_with('-') => span.start + 2..span.end,
                    _ => continue,
                }
            } else {
                continue;
            };
            // `iwconfig wlan0 key off`
            if matches!(self.word(&value), "on" | "off" | "open" | "restricted") {
                continue;
            }
            match sign {
                Some('=') => self.option_pairs(option, &value, spans),
                Some(sign) => self.behind(&value, sign, spans),
                None => self.note(value, spans),
            }
        }
    }

    /// `--from-literal=name=value`, and cookies: a value that has a name, and is no file.
    fn option_pairs(&self, option: &str, value: &Range<usize>, spans: &mut Spans) {
        let text = self.word(value);
        if option == "--from-literal" {
            let is_open = self.text.contains("configmap");
            let pair = text.split_once('=').filter(|(name, _)| !is_open || says_secret(name));
            if let Some((_, secret)) = pair {
                let end = inner(self.text, value).end;
                self.note(end - secret.len()..end, spans);
            }
        } else if text.contains('=') {
            self.note(value.clone(), spans);
        }
    }

    fn assigned(&self, word: &Range<usize>, spans: &mut Spans) {
        let span = inner(self.text, word);
        let text = &self.text[span.clone()];
        if let Some(at) = text.find('=').filter(|_| !text.starts_with('-')) {
            let value = &text[at + 1..];
            if !is_path(value) {
                self.note(span.start + at + 1..span.end, spans);
            }
        }
    }

    /// Marks the part behind a sign in a word: `user:secret`.
    fn behind(&self, word: &Range<usize>, sign: char, spans: &mut Spans) {
        let span = inner(self.text, word);
        let text = &self.text[span.clone()];
        let Some(at) = text.find(sign) else { return };
        // `pass:x` holds a secret; `env:X`, `file:x` and `fd:3` say where it is.
        let is_elsewhere = matches!(&text[..at], "env" | "file" | "fd" | "stdin" | "prompt" | "http" | "https");
        // `sqlplus /nolog` names nobody.
        let is_nobody = at == 0 && sign == '/';
        if !is_elsewhere && !is_nobody && at + 1 < text.len() {
            self.note(span.start + at + 1..span.end, spans);
        }
    }

    /// Options and settings whose own names say secret, whatever the program.
    fn options(&self, simple: &Simple, words: &[&str], spans: &mut Spans) {
        for (at, word) in words.iter().enumerate() {
            let next = simple.words.get(at + 1);
            let Some(next) = next else { continue };
            let (value, raw) = (self.word(next), &self.text[next.clone()]);
            let before = at.checked_sub(1).map_or("", |at| words[at]);
            let is_option =
                word.starts_with('-') && !word.contains(['=', ':', ' ']) && says_secret(word.trim_start_matches('-'));
            let is_setting =
                matches!(before, "set" | "setx" | "setenv" | "config" | "env:set" | "add" | "--set" | "--arg")
                    || (before == "put" && !value.contains('='))
                    || (before.starts_with("--") && words.contains(&"config"))
                    || base_name(words[0]) == "crudini";
            // `set -gx NAME VALUE`
            let is_exported = before.starts_with('-') && at > 1 && words[at - 2] == "set";
            let is_setting = (is_setting || is_exported) && !word.starts_with('-');
            let is_setting = is_setting && (says_secret(word) || word.ends_with(":_authToken"));
            let is_login =
                word.eq_ignore_ascii_case("password") && at > 1 && words[at - 2].eq_ignore_ascii_case("login");
            let is_quoted = raw.starts_with(['\'', '"']);
            let is_sql = is_quoted
                && (word.eq_ignore_ascii_case("password")
                    || (word.eq_ignore_ascii_case("by") && before.eq_ignore_ascii_case("identified")));
            let is_verb = is_verb(word) || (*word == "--secret" && words.contains(&"pulumi"));
            // `set credentials += …` adds to a setting.
            let is_value = (!value.starts_with('-') || is_dense(value)) && !matches!(value, "=" | "+=" | ":=");
            let is_pin = matches!(*word, "--pin" | "--puk" | "--so-pin")
                && value.len() >= 4
                && value.bytes().all(|byte| byte.is_ascii_digit());
            if is_value
                && !is_verb
                && (is_login || is_sql || is_pin || ((is_option || is_setting) && is_secret(word, value, false)))
            {
                self.note(next.clone(), spans);
            }
        }
    }
}

/// Returns the name at the end of a text.
fn last_name(text: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.rfind(|c| !is_name(c)).map_or(text, |at| text[at..].trim_start_matches(|c| !is_name(c)))
}

/// Returns true for a name whose value is a command that prints a secret.
fn is_source(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let says = ["pass", "secret", "token"].iter().any(|sign| small.contains(sign));
    says && ["command", "cmd", "eval", "askpass"].iter().any(|end| small.ends_with(end))
}

/// Returns true for the name of a server, or its address.
fn is_host(word: &str) -> bool {
    let is_setting = ["build.", "mirror.", "local.", "-"].iter().any(|start| word.starts_with(start));
    !is_setting && word.contains('.') && word.chars().any(|c| c.is_ascii_alphabetic())
}

fn base_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Returns true if one of the subcommands is the first word that is no option; what an option takes may stand before
/// it.
fn has_sub(words: &[&str], subs: &str) -> bool {
    let mut before = "";
    for word in words {
        if !word.starts_with('-') {
            if subs.split(' ').any(|sub| sub == *word) {
                return true;
            }
            if !before.starts_with('-') {
                return false;
            }
        }
        before = word;
    }
    false
}

/// Returns true for a command that reads a secret from its standard input.
fn reads_secret(words: &[&str]) -> bool {
    let has = |word: &str| words.contains(&word);
    let is_reader = |word: &&str| SECRET_READERS.contains(&base_name(word));
    let stores = words.iter().take(4).any(|word| STORING.0.contains(word))
        && words.iter().take(5).any(|word| STORING.1.contains(word));
    let sudo = words.iter().position(|word| *word == "sudo");
    // `read -s` does not show what is typed.
    let hides = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('s');
    let reads_hidden = words[0] == "read" && words[1..].iter().any(hides);
    reads_hidden
        || words.iter().take(3).any(is_reader)
        || words.iter().any(|word| SECRET_READING.contains(word))
        || sudo
            .is_some_and(|at| words[at + 1..].iter().take(4).any(|word| matches!(*word, "-S" | "-kS" | "-Sk" | "-nS")))
        || stores
        || ((has("vault") || has("bao")) && has("login") && has("-"))
        || (has("su") && words.len() <= 4)
}
