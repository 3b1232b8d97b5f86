//! Long options by the beginnings of their names, as git and the programs of GNU take them.
//!
//! A program refuses a beginning that several of its options have. Another version of it may have fewer of them, so such a
//! beginning stands for the gravest that is known: the names are in that order.

use std::borrow::Cow;

use super::RuleSet;
use super::args::{Grammar, parse};
use super::compiled::Rule;
use super::condition::Role;
use super::index::Section;
use crate::classify::expand::Arg;

/// Fewest bytes of a beginning: the dashes and a letter.
const SHORTEST: usize = 3;

impl RuleSet {
    /// Returns the arguments of a program with the long options that rules and grammars name under their whole names. `graver` are
    /// further names, before all others.
    pub(in crate::classify) fn spelled_out<'a>(
        &self,
        program: &str,
        args: &'a [Arg],
        graver: &[&'static str],
    ) -> Cow<'a, [Arg]> {
        let takes_beginnings = || self.tables.iter().any(|table| table.has(program, Section::Beginnings));
        // Mostly, options are whole: then no rule need be compiled for their names.
        let may_grow = |arg: &Arg| {
            let name = name_of(arg);
            let is_longer = |whole: &str| whole.len() > name.len() && whole.starts_with(name);
            is_long(name)
                && (graver.iter().any(|whole| is_longer(whole))
                    || self.tables.iter().any(|table| table.may_lengthen(program, name)))
        };
        if !args.iter().any(|arg| is_long(name_of(arg))) || !takes_beginnings() || !args.iter().any(may_grow) {
            return Cow::Borrowed(args);
        }
        let names = self.long_names(program, args, graver);
        let mut args = Cow::Borrowed(args);
        let mut at = 0;
        while at < self.end_of_options(program, &args) {
            if args[at].text == "--" {
                break;
            }
            if let Some(whole) = whole(&args[at], &names) {
                args.to_mut()[at] = whole;
            }
            at += 1;
        }
        args
    }

    /// Returns the place behind the options of a program: what a program carries has its own.
    fn end_of_options(&self, program: &str, args: &[Arg]) -> usize {
        let carriers = self.wrappers(program).filter(|wrapper| !wrapper.spec.beside && wrapper.sub.is_empty());
        carriers.map(|wrapper| parse(args, &wrapper.grammar, true).rest).max().unwrap_or(args.len()).min(args.len())
    }

    /// Returns the long options that are known of a program with these operands, the gravest first.
    fn long_names<'r>(&'r self, program: &str, args: &[Arg], graver: &[&'static str]) -> Vec<&'r str> {
        let first = args.first().map(|arg| arg.text.as_str());
        let grammar = self.grammar(program, first);
        let operands = parse(args, grammar, false).operands;
        let mut rules = Vec::new();
        for table in &self.tables {
            let mut items = Vec::new();
            table.rules_of(program, &mut items);
            let all = items.into_iter().filter_map(|item| table.rule(item));
            rules.extend(all.filter(|rule| rule.sub.matches(&operands).is_some()));
        }
        let (grave, harmless): (Vec<&Rule>, Vec<&Rule>) = rules.into_iter().partition(|rule| rule.is_grave());
        let mut names: Vec<&str> = graver.to_vec();
        grave.iter().for_each(|rule| names.extend(rule.asked().chain(rule.targets())));
        for wrapper in self.wrappers(program) {
            names.extend(wrapper.line.iter().chain(&wrapper.directory).map(String::as_str));
        }
        for database in self.databases(program) {
            names.extend(database.query.iter().chain(&database.file).map(String::as_str));
        }
        let grammars = self.wrappers(program).map(|wrapper| &wrapper.grammar);
        let grammars = grammars.chain(self.databases(program).map(|database| &database.grammar));
        // With one verb an option has a value whose beginning is that of another option with the next: `git log --fo`, `git rm --fo`.
        let own = Some(grammar).filter(|_| !self.tables.iter().any(|table| table.shares_grammar(program, first)));
        let grammars = grammars.chain(own);
        grammars.for_each(|grammar| names.extend(valued(grammar)));
        harmless.iter().for_each(|rule| names.extend(rule.asked()));
        grave.iter().chain(&harmless).for_each(|rule| names.extend(rule.unless.names()));
        self.wrappers(program).for_each(|wrapper| names.extend(wrapper.unless.names()));
        self.databases(program).for_each(|database| names.extend(database.unless.names()));
        names.retain(|name| name.len() > SHORTEST && name.starts_with("--"));
        names
    }
}

fn name_of(arg: &Arg) -> &str {
    arg.text.split('=').next().unwrap_or_default()
}

fn is_long(name: &str) -> bool {
    name.len() >= SHORTEST && name.starts_with("--")
}

/// Returns the options that have values, in an order that does not change.
fn valued(grammar: &Grammar) -> Vec<&str> {
    let mut names: Vec<&str> = grammar.values.iter().chain(&grammar.attached).map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Returns an option under its whole name, if it has only the beginning of one.
fn whole(arg: &Arg, names: &[&str]) -> Option<Arg> {
    let name = name_of(arg);
    if !is_long(name) || arg.known < name.len() || names.contains(&name) {
        return None;
    }
    let whole = names.iter().find(|whole| whole.starts_with(name))?;
    let grown = whole.len() - name.len();
    Some(Arg { text: format!("{whole}{}", &arg.text[name.len()..]), known: arg.known + grown, ..arg.clone() })
}

impl Rule {
    /// Returns true if it says more than that the line is understood.
    fn is_grave(&self) -> bool {
        self.class.is_some() || self.opaque || self.named || !self.and.is_empty()
    }

    /// Returns the names of the options that it asks for.
    fn asked(&self) -> impl Iterator<Item = &str> {
        self.when.names().chain(self.also.names())
    }

    /// Returns the names of the options whose values are its targets.
    fn targets(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().filter_map(|role| match role {
            Role::Value(name) => Some(name.as_str()),
            _ => None,
        })
    }
}
