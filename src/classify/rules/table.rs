//! One document of rules: its specs as they were read, and what was compiled of them so far.
//!
//! A spec is compiled when its program is first met: a process that judges one line never pays for the whole table.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::args::Grammar;
use super::compile;
use super::compiled::{CallRule, Database, Interpreter, Remote, Rule, Wrapper};
use super::dialect::{CallSpec, DatabaseSpec, InterpreterSpec, ProgramSpec, RemoteSpec, RuleSpec, WrapperSpec};
use super::index::{Index, Section};
use super::text::{List, Text};

/// The specs of a document.
#[derive(Debug, Default)]
pub(super) struct Specs {
    pub disable: Text,
    pub programs: List<ProgramSpec>,
    pub wrappers: List<WrapperSpec>,
    pub remotes: List<RemoteSpec>,
    pub databases: List<DatabaseSpec>,
    pub interpreters: List<InterpreterSpec>,
    pub calls: List<CallSpec>,
    pub rules: List<RuleSpec>,
    pub index: Index,
}

/// Values that are made when they are first asked for.
type Lazy<T> = Vec<OnceLock<Box<T>>>;

/// A document and what was compiled of it.
#[derive(Debug)]
pub(super) struct Table {
    specs: Specs,
    grammars: Lazy<Grammar>,
    wrappers: Lazy<Wrapper>,
    remotes: Lazy<Remote>,
    databases: Lazy<Database>,
    interpreters: Lazy<Interpreter>,
    calls: Lazy<CallRule>,
    rules: Lazy<Option<Rule>>,
}

fn lazy<T>(length: usize) -> Lazy<T> {
    std::iter::repeat_with(OnceLock::new).take(length).collect()
}

impl Table {
    /// Returns a table of which nothing is compiled.
    pub(super) fn new(specs: Specs) -> Table {
        Table {
            grammars: lazy(specs.programs.len()),
            wrappers: lazy(specs.wrappers.len()),
            remotes: lazy(specs.remotes.len()),
            databases: lazy(specs.databases.len()),
            interpreters: lazy(specs.interpreters.len()),
            calls: lazy(specs.calls.len()),
            rules: lazy(specs.rules.len()),
            specs,
        }
    }

    /// Forgets rules that a table in front of this one replaces or disables.
    pub(super) fn without(mut self, ids: &HashSet<Text>) -> Table {
        for (spec, rule) in self.specs.rules.iter().zip(&mut self.rules) {
            if ids.contains(&spec.id) {
                *rule = OnceLock::from(Box::new(None));
            }
        }
        self
    }

    /// Returns the ids of its rules, and those that it disables.
    pub(super) fn ids(&self) -> (impl Iterator<Item = Text>, impl Iterator<Item = Text>) {
        let disabled = self.specs.disable.split_whitespace().map(|id| Text::from(id.to_owned()));
        (self.specs.rules.iter().map(|rule| rule.id.clone()), disabled)
    }

    /// Returns whether a program is named in a list.
    pub(super) fn has(&self, program: &str, section: Section) -> bool {
        self.items(program, section).next().is_some()
    }

    /// Returns whether a program is named at all, but for the way in which it reads its options.
    pub(super) fn knows(&self, program: &str) -> bool {
        let tells = |section| !matches!(section, Section::Grammars | Section::Beginnings);
        self.specs.index.find(program).iter().any(|entry| tells(entry.section))
            || self.specs.index.prefixed(program).next().is_some()
    }

    fn items<'t>(&'t self, program: &str, section: Section) -> impl Iterator<Item = usize> + use<'t> {
        let entries = self.specs.index.find(program).iter();
        entries.filter(move |entry| entry.section == section).map(|entry| usize::from(entry.item))
    }

    /// Returns the grammar of a program's options, of the subcommand `first` where that has its own.
    pub(super) fn grammar(&self, program: &str, first: Option<&str>) -> Option<&Grammar> {
        let fits = |item: &usize| {
            let sub = &self.specs.programs[*item].sub;
            sub.is_empty() || first.is_some_and(|first| sub.split_whitespace().any(|word| word == first))
        };
        let item = self.items(program, Section::Grammars).find(fits)?;
        Some(self.grammars[item].get_or_init(|| Box::new(compile::program(&self.specs.programs[item]))))
    }

    /// Returns whether the grammar of a program is one for verbs that read their options differently.
    pub(super) fn shares_grammar(&self, program: &str, first: Option<&str>) -> bool {
        let subs = || self.items(program, Section::Grammars).map(|item| &self.specs.programs[item].sub);
        let is_named = |sub: &Text| first.is_some_and(|first| sub.split_whitespace().any(|word| word == first));
        subs().any(|sub| !sub.is_empty()) && !subs().any(is_named)
    }

    /// Returns the wrappers of a program.
    pub(super) fn wrappers(&self, program: &str) -> impl Iterator<Item = &Wrapper> {
        let made =
            |item: usize| self.wrappers[item].get_or_init(|| Box::new(compile::wrapper(&self.specs.wrappers[item])));
        self.items(program, Section::Wrappers).map(made).map(Box::as_ref)
    }

    /// Returns the remote runners of a program.
    pub(super) fn remotes(&self, program: &str) -> impl Iterator<Item = &Remote> {
        let made =
            |item: usize| self.remotes[item].get_or_init(|| Box::new(compile::remote(&self.specs.remotes[item])));
        self.items(program, Section::Remotes).map(made).map(Box::as_ref)
    }

    /// Returns the database clients of a program.
    pub(super) fn databases(&self, program: &str) -> impl Iterator<Item = &Database> {
        let made =
            |item: usize| self.databases[item].get_or_init(|| Box::new(compile::database(&self.specs.databases[item])));
        self.items(program, Section::Databases).map(made).map(Box::as_ref)
    }

    /// Returns the interpreters of a program.
    pub(super) fn interpreters(&self, program: &str) -> impl Iterator<Item = &Interpreter> {
        let made = |item: usize| {
            self.interpreters[item].get_or_init(|| Box::new(compile::interpreter(&self.specs.interpreters[item])))
        };
        self.items(program, Section::Interpreters).map(made).map(Box::as_ref)
    }

    /// Returns the calls to look for.
    pub(super) fn calls(&self) -> impl Iterator<Item = &CallRule> {
        let made = |(spec, call)| {
            let call: &OnceLock<Box<CallRule>> = call;
            call.get_or_init(|| Box::new(compile::call(spec)))
        };
        self.specs.calls.iter().zip(&self.calls).map(made).map(Box::as_ref)
    }

    /// Pushes the positions of a program's rules, in order of precedence, to a list that is empty for most programs.
    pub(super) fn rules_of(&self, program: &str, found: &mut Vec<usize>) {
        found.extend(self.items(program, Section::Rules));
        found.extend(self.specs.index.prefixed(program).map(usize::from));
        found.sort_unstable();
    }

    /// Returns true if a spec of a program may name an option that begins with `name` and is longer. Their texts are searched, and
    /// nothing is compiled.
    pub(super) fn may_lengthen(&self, program: &str, name: &str) -> bool {
        let is_longer =
            |word: &str| word.strip_prefix(name).is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['=', '!']));
        let names_longer = |texts: &[&Text]| texts.iter().any(|text| text.split_whitespace().any(is_longer));
        let specs = &self.specs;
        let mut rules = Vec::new();
        self.rules_of(program, &mut rules);
        rules
            .into_iter()
            .map(|item| &specs.rules[item])
            .any(|rule| names_longer(&[&rule.when, &rule.also, &rule.unless, &rule.target]))
            || self
                .items(program, Section::Grammars)
                .map(|item| &specs.programs[item])
                .any(|grammar| names_longer(&[&grammar.values, &grammar.attached]))
            || self.items(program, Section::Wrappers).map(|item| &specs.wrappers[item]).any(|wrapper| {
                names_longer(&[&wrapper.values, &wrapper.attached, &wrapper.line, &wrapper.directory, &wrapper.unless])
            })
            || self
                .items(program, Section::Databases)
                .map(|item| &specs.databases[item])
                .any(|database| names_longer(&[&database.values, &database.query, &database.file, &database.unless]))
    }

    /// Returns a rule; `None` if it was disabled.
    pub(super) fn rule(&self, item: usize) -> Option<&Rule> {
        let made = || Box::new(compile::rule(&self.specs.rules[item]).ok());
        self.rules[item].get_or_init(made).as_ref().as_ref()
    }
}
