//! Options and operands of a command line, read by a program's grammar.

use std::collections::HashSet;

use crate::classify::expand::Arg;

/// The way in which a program reads its options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grammar {
    /// Options that take the next argument as their value.
    pub values: HashSet<String>,
    /// Options whose value may be attached but is never the next argument (`sed -i.bak`).
    pub attached: HashSet<String>,
    /// `-name` is one option, not a bundle of letters.
    pub single: bool,
    /// Upper and lower case are the same.
    pub fold: bool,
}

/// An option as given.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    pub name: String,
    pub value: Option<Arg>,
}

/// A command line taken apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parsed {
    pub flags: Vec<Flag>,
    pub operands: Vec<Arg>,
    /// The number of operands in front of `--`; `None` without one.
    pub dashes: Option<usize>,
    /// The position where reading stopped (after the options, when it stops at the first operand).
    pub rest: usize,
}

impl Parsed {
    /// Returns the value of the last of some options.
    pub(crate) fn value(&self, names: &[&str]) -> Option<&Arg> {
        self.flags.iter().rev().find(|flag| names.contains(&flag.name.as_str())).and_then(|flag| flag.value.as_ref())
    }

    /// Returns all values of some options.
    pub(crate) fn values<'p>(&'p self, names: &'p [String]) -> impl Iterator<Item = &'p Arg> {
        self.flags.iter().filter(|flag| names.contains(&flag.name)).filter_map(|flag| flag.value.as_ref())
    }

    /// Returns whether one of some options is given.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| names.contains(&flag.name.as_str()))
    }
}

/// Takes arguments (without the program) apart; with `stop`, up to the first operand.
pub(crate) fn parse(args: &[Arg], grammar: &Grammar, stop: bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut index = 0;
    while index < args.len() {
        let arg = &args[index];
        let text = arg.text.as_str();
        if parsed.dashes.is_some() || !text.starts_with('-') || text == "-" || arg.known == 0 {
            if stop {
                break;
            }
            parsed.operands.push(arg.clone());
        } else if text == "--" {
            parsed.dashes = Some(parsed.operands.len());
            index += 1;
            if stop {
                break;
            }
            continue;
        } else {
            index += option(arg, args.get(index + 1), grammar, &mut parsed);
        }
        index += 1;
    }
    parsed.rest = index;
    parsed
}

/// Reads one option; how many further arguments it took.
fn option(arg: &Arg, next: Option<&Arg>, grammar: &Grammar, parsed: &mut Parsed) -> usize {
    let folded = if grammar.fold { arg.text.to_ascii_lowercase() } else { String::new() };
    let text = if grammar.fold { folded.as_str() } else { arg.text.as_str() };
    if text.starts_with("--") || grammar.single {
        if let Some((name, _)) = text.split_once('=') {
            let value = Some(arg.skip(name.len() + 1));
            parsed.flags.push(Flag { name: name.to_owned(), value });
            return 0;
        }
        let value = next.filter(|_| grammar.values.contains(text)).cloned();
        let taken = usize::from(value.is_some());
        parsed.flags.push(Flag { name: text.to_owned(), value });
        return taken;
    }
    bundle(arg, next, grammar, parsed)
}

fn bundle(arg: &Arg, next: Option<&Arg>, grammar: &Grammar, parsed: &mut Parsed) -> usize {
    let text = arg.text.as_str();
    if text.chars().count() > 2 {
        let (name, value) = match text.split_once('=') {
            Some((name, _)) => (name, Some(arg.skip(name.len() + 1))),
            None => (text, next.filter(|_| grammar.values.contains(text)).cloned()),
        };
        let taken = usize::from(value.is_some() && !text.contains('='));
        parsed.flags.push(Flag { name: name.to_owned(), value });
        if taken == 1 {
            return 1;
        }
    }
    for (at, letter) in text.char_indices().skip(1) {
        let name = format!("-{letter}");
        let after = at + letter.len_utf8();
        let rest = (after < text.len()).then(|| arg.skip(after));
        if grammar.values.contains(&name) {
            let taken = usize::from(rest.is_none() && next.is_some());
            parsed.flags.push(Flag { name, value: rest.or_else(|| next.cloned()) });
            return taken;
        }
        let attached = grammar.attached.contains(&name);
        parsed.flags.push(Flag { name, value: rest.filter(|_| attached) });
        if attached {
            return 0;
        }
    }
    0
}
