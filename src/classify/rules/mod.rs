//! Rules as data: what programs do, read from `config/rules.yaml` and from users' own text.

pub(super) mod args;
mod beginnings;
mod compile;
mod compiled;
pub(super) mod condition;
pub(super) mod dialect;
mod document;
mod embedded;
mod index;
mod sound;
mod table;
mod text;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::error::Result;
use args::{Grammar, parse};
use compiled::asks_only;
use condition::{first_operand, may_be_value, reads};
use dialect::CodeLanguage;
use index::Section;
use table::Table;
use text::Text;

use super::expand::Arg;
pub(super) use compiled::{CallRule, Database, Hit, Interpreter, Remote, Run, Wrapper};
pub use sound::Dropped;
pub(super) use sound::sound;

/// Most options before a subcommand whose values no grammar knows.
const MAX_VALUES: usize = 8;

/// Everything known about programs: tables in order of precedence.
#[derive(Debug)]
pub(super) struct RuleSet {
    tables: Vec<Table>,
    /// The grammar of programs that have none of their own.
    plain: Grammar,
    /// The places of calls by their names: the table, and the call in it.
    names: OnceLock<HashMap<String, Vec<(usize, usize)>>>,
    /// Modules whose calls are harmless.
    modules: OnceLock<HashSet<(CodeLanguage, String)>>,
}

impl RuleSet {
    /// Returns the table that comes with piton.
    pub(super) fn embedded() -> RuleSet {
        RuleSet::of(vec![Table::new(embedded::specs())])
    }

    /// Returns the table that comes with piton, with a user's rules in front of it.
    pub(super) fn with_user(yaml: &str) -> Result<RuleSet> {
        let own = document::document(yaml)?;
        let (ids, disabled) = own.ids();
        let taken: HashSet<Text> = ids.chain(disabled).collect();
        let disabled: HashSet<Text> = own.ids().1.collect();
        let tables = vec![own.without(&disabled), Table::new(embedded::specs()).without(&taken)];
        Ok(RuleSet::of(tables))
    }

    fn of(tables: Vec<Table>) -> RuleSet {
        RuleSet { tables, plain: Grammar::default(), names: OnceLock::new(), modules: OnceLock::new() }
    }

    /// Returns whether anything at all is known about a program.
    pub(super) fn knows(&self, program: &str) -> bool {
        self.tables.iter().any(|table| table.knows(program))
    }

    /// Returns whether rules say what a program does, so that a line for which none holds is not understood.
    pub(super) fn judges(&self, program: &str) -> bool {
        !self.is_quiet(program) && self.tables.iter().any(|table| table.has(program, Section::Rules))
    }

    /// Returns whether a program runs code or queries that it is given, or carries another command.
    pub(super) fn runs_code(&self, program: &str) -> bool {
        let sections = [Section::Interpreters, Section::Databases, Section::Wrappers];
        self.tables.iter().any(|table| sections.into_iter().any(|section| table.has(program, section)))
    }

    /// Returns whether a line for which no rule holds is understood: it has no operands, it reads or only asks, or an option silences a
    /// rule (`terraform fmt -check`).
    pub(super) fn understands(&self, program: &str, args: &[Arg]) -> bool {
        let first = args.first().map(|arg| arg.text.as_str());
        let parsed = parse(args, self.grammar(program, first), false);
        let mut items = Vec::new();
        let mut is_silenced = |table: &Table| {
            items.clear();
            table.rules_of(program, &mut items);
            items.iter().filter_map(|item| table.rule(*item)).any(|rule| rule.is_silenced(&parsed))
        };
        reads(&parsed.operands) || asks_only(args, &parsed) || self.tables.iter().any(&mut is_silenced)
    }

    /// Returns whether a program is listed as harmless whatever its arguments.
    pub(super) fn is_quiet(&self, program: &str) -> bool {
        self.tables.iter().any(|table| table.has(program, Section::Quiet))
    }

    /// Returns the wrappers of a program.
    pub(super) fn wrappers(&self, program: &str) -> impl Iterator<Item = &Wrapper> {
        self.tables.iter().flat_map(move |table| table.wrappers(program))
    }

    /// Returns the remote runners of a program.
    pub(super) fn remotes(&self, program: &str) -> impl Iterator<Item = &Remote> {
        self.tables.iter().flat_map(move |table| table.remotes(program))
    }

    /// Returns the database clients of a program.
    pub(super) fn databases(&self, program: &str) -> impl Iterator<Item = &Database> {
        self.tables.iter().flat_map(move |table| table.databases(program))
    }

    /// Returns the interpreters of a program.
    pub(super) fn interpreters(&self, program: &str) -> impl Iterator<Item = &Interpreter> {
        self.tables.iter().flat_map(move |table| table.interpreters(program))
    }

    /// Returns the calls of a language that have this name, in the order of their precedence.
    pub(super) fn signatures(&self, language: CodeLanguage, name: &str) -> Vec<&CallRule> {
        let made = || {
            let mut names: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
            for (table, rules) in self.tables.iter().enumerate() {
                for (at, call) in rules.calls().enumerate() {
                    call.names.iter().for_each(|name| names.entry(name.clone()).or_default().push((table, at)));
                }
            }
            names
        };
        let places = self.names.get_or_init(made).get(name).map(Vec::as_slice).unwrap_or_default();
        let calls = places.iter().filter_map(|(table, at)| self.tables[*table].calls().nth(*at));
        calls.filter(|call| call.languages.contains(&language)).collect()
    }

    /// Returns whether the calls of a module are harmless, but for those that are looked for. `module` has dots between its parts.
    pub(super) fn is_harmless(&self, language: CodeLanguage, module: &str) -> bool {
        let made = || {
            let all = self.tables.iter().flat_map(Table::calls);
            let names = all.flat_map(|call| {
                let languages = call.languages.iter();
                languages.flat_map(|language| call.harmless.iter().map(|name| (*language, name.clone())))
            });
            names.collect()
        };
        let known: &HashSet<(CodeLanguage, String)> = self.modules.get_or_init(made);
        let parts = module.match_indices('.').map(|(at, _)| &module[..at]);
        parts.chain([module]).any(|name| known.contains(&(language, name.to_owned())))
    }

    /// Returns the calls of a language to look for in code.
    pub(super) fn calls(&self, language: CodeLanguage) -> impl Iterator<Item = &CallRule> {
        self.tables.iter().flat_map(Table::calls).filter(move |call| call.languages.contains(&language))
    }

    /// Returns the way in which a program reads its options, or its subcommand `first` where that has its own.
    pub(super) fn grammar(&self, program: &str, first: Option<&str>) -> &Grammar {
        self.tables.iter().find_map(|table| table.grammar(program, first)).unwrap_or(&self.plain)
    }

    /// Returns the first rule that holds, as `find` does. Where the subcommand is not known and stands behind an option, it may be the
    /// option's value: in `pulumi --cwd infra destroy` the word behind it is the subcommand.
    pub(super) fn find_verb(&self, program: &str, args: &[Arg], run: Run) -> Option<Hit<'_>> {
        let first = self.find(program, args, run);
        let carries = || self.interpreters(program).next().is_some();
        if !first.as_ref().is_none_or(Hit::is_unknown) || !self.judges(program) || carries() {
            return first;
        }
        let (mut rest, mut from) = (args.to_vec(), 0);
        let grammar = self.grammar(program, args.first().map(|arg| arg.text.as_str()));
        for _ in 0..MAX_VALUES {
            let at = first_operand(&rest, from, grammar).filter(|at| may_be_value(&rest, from, *at));
            let Some(at) = at else { break };
            rest.remove(at);
            from = at;
            if let Some(hit) = self.find(program, &rest, run).filter(|hit| !hit.is_unknown()) {
                return Some(hit);
            }
        }
        first
    }

    /// Returns the first rule that holds for a command line (arguments without the program).
    pub(super) fn find(&self, program: &str, args: &[Arg], run: Run) -> Option<Hit<'_>> {
        let mut parsed = None;
        let mut items = Vec::new();
        for table in &self.tables {
            items.clear();
            table.rules_of(program, &mut items);
            if items.is_empty() {
                continue;
            }
            let (parsed, harmless) = parsed.get_or_insert_with(|| {
                let first = args.first().map(|arg| arg.text.as_str());
                let parsed = parse(args, self.grammar(program, first), false);
                let harmless = asks_only(args, &parsed);
                (parsed, harmless)
            });
            let hit = items.iter().filter_map(|item| table.rule(*item)).find_map(|rule| {
                if *harmless && !rule.always || rule.input && !run.input || rule.root && !run.root {
                    return None;
                }
                rule.holds(program, parsed)
            });
            if hit.is_some() {
                return hit;
            }
        }
        None
    }
}
