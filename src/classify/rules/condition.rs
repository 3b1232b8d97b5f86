//! Conditions of a rule over a command line that was taken apart.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use super::args::{Grammar, Parsed, parse};
use super::text::Text;
use crate::classify::expand::Arg;
use crate::model::words::READING_VERBS;

/// One of several options, each perhaps with certain values.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnyOf(Vec<Choice>);

#[derive(Clone, Debug)]
struct Choice {
    name: String,
    values: Option<(bool, Vec<String>)>,
}

impl AnyOf {
    /// Reads `-f --force -X!=GET,HEAD --mode=a,b`.
    pub(crate) fn parse(text: &str) -> AnyOf {
        AnyOf(text.split_whitespace().map(parse_option).collect())
    }

    /// Returns whether there is no condition.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the options.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|option| option.name.as_str())
    }

    /// Returns whether one of the conditions holds.
    pub(crate) fn holds(&self, parsed: &Parsed) -> bool {
        self.0.iter().any(|option| {
            option.name == "--" && parsed.dashes.is_some()
                || parsed.flags.iter().any(|flag| flag.name == option.name && option.accepts(flag.value.as_ref()))
        })
    }
}

fn parse_option(word: &str) -> Choice {
    let list = |values: &str| values.split(',').map(str::to_ascii_lowercase).collect();
    match word.split_once('=') {
        Some((name, values)) if name.ends_with('!') => {
            Choice { name: name.trim_end_matches('!').to_owned(), values: Some((false, list(values))) }
        }
        Some((name, values)) => Choice { name: name.to_owned(), values: Some((true, list(values))) },
        None => Choice { name: word.to_owned(), values: None },
    }
}

impl Choice {
    fn accepts(&self, value: Option<&Arg>) -> bool {
        let Some((wanted, values)) = &self.values else {
            return true;
        };
        let value = value.map(|arg| arg.text.to_ascii_lowercase());
        value.is_some_and(|value| values.contains(&value) == *wanted)
    }
}

/// Alternatives of leading operands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subcommands(Vec<Vec<String>>);

impl Subcommands {
    /// Reads `apply, rollout restart|undo, * delete-*`.
    pub(crate) fn parse(text: &str) -> Subcommands {
        let words = |one: &str| one.split_whitespace().map(str::to_ascii_lowercase).collect::<Vec<_>>();
        Subcommands(text.split(',').map(words).filter(|words| !words.is_empty()).collect())
    }

    /// Returns whether there is no condition.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many operands the longest alternative that holds uses up; `Some(0)` when there is none to hold.
    pub(crate) fn matches(&self, operands: &[Arg]) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        let holds = |words: &&Vec<String>| {
            words.len() <= operands.len() && words.iter().zip(operands).all(|(word, arg)| word_matches(word, arg))
        };
        self.0.iter().filter(holds).map(Vec::len).max()
    }

    /// Returns how many arguments the alternative that holds uses up, with the options before it. A word behind an option that the
    /// grammar does not know may be its value: in `pnpm --loglevel warn exec tsc`, `exec` is the subcommand.
    pub(crate) fn behind_options(&self, args: &[Arg], grammar: &Grammar) -> Option<usize> {
        if self.is_empty() || !args.first()?.text.starts_with('-') {
            return self.matches(args);
        }
        let mut from = 0;
        loop {
            let at = first_operand(args, from, grammar)?;
            if let Some(used) = self.matches(&args[at..]) {
                return Some(at + used);
            }
            from = may_be_value(args, from, at).then_some(at + 1)?;
        }
    }
}

/// Returns the place of the first operand from a place on.
pub(crate) fn first_operand(args: &[Arg], from: usize, grammar: &Grammar) -> Option<usize> {
    let at = from + parse(args.get(from..)?, grammar, true).rest;
    (at < args.len()).then_some(at)
}

/// Returns true where an operand may be the value of an option before it, which stands at `from` or behind.
pub(crate) fn may_be_value(args: &[Arg], from: usize, operand: usize) -> bool {
    let option = args[from..operand].last().map(|arg| arg.text.as_str());
    option.is_some_and(|option| option.starts_with('-') && option != "--" && !option.contains('='))
}

/// Operands among which the verb stands: `compute instances list`, `sql db list`.
const DEPTH: usize = 4;

/// Returns true where one of the first operands is a verb of reading, or there is none.
pub(crate) fn reads(operands: &[Arg]) -> bool {
    let is_verb = |arg: &Arg| READING_VERBS.iter().any(|word| names(word, arg));
    operands.is_empty() || operands.iter().take(DEPTH).any(is_verb)
}

fn names(word: &str, arg: &Arg) -> bool {
    arg.known > 0 && glob(word.as_bytes(), arg.text.as_bytes())
}

/// Subcommands of a program that change nothing, beside those that read in most programs.
#[derive(Debug)]
pub(crate) struct KnownVerbs(Vec<String>);

impl KnownVerbs {
    /// Reads words; a word may have a `*`.
    pub(crate) fn parse(text: &str) -> KnownVerbs {
        KnownVerbs(text.split_whitespace().map(str::to_owned).collect())
    }

    /// Returns whether the first operand is known, or one of the first is a verb of reading. Without operands there is no verb.
    pub(crate) fn has(&self, operands: &[Arg]) -> bool {
        reads(operands) || operands.first().is_some_and(|first| self.0.iter().any(|word| names(word, first)))
    }
}

/// Thousands of comparisons are made for a line of a program with many rules: nothing is copied for one.
fn word_matches(pattern: &str, arg: &Arg) -> bool {
    let holds = |pattern: &[u8]| glob(pattern, arg.text.as_bytes());
    pattern == "*" || arg.known > 0 && pattern.as_bytes().split(|byte| *byte == b'|').any(holds)
}

/// Letters are alike in both cases; `*` matches any text: one star at most at each end or in the middle.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else {
        return pattern.eq_ignore_ascii_case(text);
    };
    let (head, tail) = (&pattern[..star], &pattern[star + 1..]);
    let Some((front, rest)) = text.split_at_checked(head.len()) else {
        return false;
    };
    front.eq_ignore_ascii_case(head)
        && match tail.strip_suffix(b"*") {
            Some([]) => true,
            Some(middle) => rest.windows(middle.len()).any(|part| part.eq_ignore_ascii_case(middle)),
            None => rest.len() >= tail.len() && rest[rest.len() - tail.len()..].eq_ignore_ascii_case(tail),
        }
}

/// A regular expression that is compiled when it is first asked.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Text,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Largest compiled form.
    const MAX_SIZE: usize = 1 << 20;

    /// Makes a pattern that is compiled when it is first asked.
    pub(crate) fn new(text: Text) -> Pattern {
        Pattern { text, compiled: OnceLock::new() }
    }

    /// Returns the pattern as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Compiles the text. Letters are those of ASCII (`\w` of all scripts takes milliseconds to compile), unless the text names
    /// others in a class.
    ///
    /// # Errors
    /// When it is no regular expression, or one too large.
    pub(crate) fn regex(&self) -> Result<Regex, regex::Error> {
        let build = |unicode| RegexBuilder::new(&self.text).size_limit(Self::MAX_SIZE).unicode(unicode).build();
        build(false).or_else(|_| build(true))
    }

    /// Returns the compiled expression; tests and the reader of users' rules see to it that there is one.
    pub(crate) fn get(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| self.regex().ok()).as_ref()
    }

    /// Returns whether a text fits.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.get().is_some_and(|regex| regex.is_match(text.as_bytes()))
    }
}

/// A condition over operands.
#[derive(Debug, Default)]
pub(crate) struct Operands {
    pub some: Option<Pattern>,
    pub none: Option<Pattern>,
    pub last: Option<Pattern>,
    /// Over the values of options and the operands.
    pub value: Option<Pattern>,
    pub at_least: usize,
    pub at_most: Option<usize>,
}

impl Operands {
    /// Its regular expressions.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        [&self.some, &self.none, &self.last, &self.value].into_iter().flatten()
    }

    /// Returns whether the operands fit.
    pub(crate) fn hold(&self, operands: &[Arg], parsed: &Parsed) -> bool {
        let any = |pattern: &Pattern| operands.iter().any(|arg| pattern.is_match(&arg.text));
        operands.len() >= self.at_least
            && self.at_most.is_none_or(|most| operands.len() <= most)
            && self.some.as_ref().is_none_or(any)
            && !self.none.as_ref().is_some_and(any)
            && self.last.as_ref().is_none_or(|pattern| operands.last().is_some_and(|arg| pattern.is_match(&arg.text)))
            && self.value.as_ref().is_none_or(|pattern| any(pattern) || any_value(pattern, parsed))
    }
}

fn any_value(pattern: &Pattern, parsed: &Parsed) -> bool {
    parsed.flags.iter().filter_map(|flag| flag.value.as_ref()).any(|value| pattern.is_match(&value.text))
}

/// The arguments of an action that are its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Operands,
    First,
    /// The first, with this ending where its name has none.
    FirstWith(String),
    Last,
    Rest,
    Init,
    /// The directory in which the action starts.
    Here,
    /// A file of this name in the current directory.
    Named(String),
    /// The value of an option.
    Value(String),
    /// The value of `name=value` among the operands (`dd of=x`).
    Pair(String),
    /// Each operand with this ending, and without it where it has it: the other file of `gzip`.
    OtherName(String),
    /// The copies of files as they were: those of a role, each with this text at its end. A text with a dash names an option,
    /// and its value is the end.
    Kept(Box<Role>, String),
}

impl Role {
    /// Reads one word of a `target` list.
    pub(crate) fn parse(word: &str) -> Option<Role> {
        Some(match word {
            "operands" => Role::Operands,
            "first" => Role::First,
            _ if word.starts_with("first.") => Role::FirstWith(word["first".len()..].to_owned()),
            "last" => Role::Last,
            "rest" => Role::Rest,
            "init" => Role::Init,
            "here" => Role::Here,
            _ if word.starts_with("operands^.") => Role::OtherName(word["operands^".len()..].to_owned()),
            _ if word.contains('+') => {
                let (role, suffix) = word.split_once('+')?;
                Role::Kept(Box::new(Role::parse(role)?), suffix.to_owned())
            }
            _ if word.starts_with('=') && word.len() > 1 => Role::Named(word[1..].to_owned()),
            _ if word.starts_with('-') => Role::Value(word.to_owned()),
            _ => Role::Pair(word.strip_suffix('=')?.to_owned()),
        })
    }

    /// Collects the arguments in this role.
    pub(crate) fn collect(&self, parsed: &Parsed, operands: &[Arg], into: &mut Vec<Arg>) {
        match self {
            Role::Operands => into.extend_from_slice(operands),
            Role::First => into.extend(operands.first().cloned()),
            Role::FirstWith(ending) => into.extend(operands.first().map(|arg| arg.with_ending(ending))),
            Role::Last => into.extend(operands.last().cloned()),
            Role::Rest => into.extend(operands.iter().skip(1).cloned()),
            Role::Init => into.extend_from_slice(&operands[..operands.len().saturating_sub(1)]),
            Role::Here => into.push(Arg::literal(".", (0, 0))),
            Role::Named(name) => into.push(Arg::literal(name.as_str(), (0, 0))),
            Role::Value(name) => {
                let values = parsed.flags.iter().filter(|flag| flag.name == *name);
                into.extend(values.filter_map(|flag| flag.value.clone()));
            }
            Role::OtherName(ending) => {
                let other = |arg: &Arg| arg.without(ending).unwrap_or_else(|| arg.followed_by(ending));
                into.extend(operands.iter().map(other));
            }
            Role::Kept(role, suffix) => {
                let mut files = Vec::new();
                role.collect(parsed, operands, &mut files);
                let mut suffixes = Vec::new();
                match suffix.starts_with('-') {
                    true => Role::Value(suffix.clone()).collect(parsed, operands, &mut suffixes),
                    false => suffixes.push(Arg::literal(suffix.as_str(), (0, 0))),
                }
                let texts = suffixes.iter().filter(|suffix| suffix.is_exact() && !suffix.text.is_empty());
                into.extend(texts.flat_map(|suffix| files.iter().map(|file| file.kept_as(&suffix.text))));
            }
            Role::Pair(name) => {
                let value = |arg: &Arg| {
                    let rest = arg.text.strip_prefix(name.as_str())?.strip_prefix('=')?;
                    Some(arg.skip(arg.text.len() - rest.len()))
                };
                into.extend(operands.iter().filter_map(value));
            }
        }
    }
}
