//! Rules as data: what programs do, read from `config/rules.yaml` and from users' own text.

pub mod args;
mod compile;
pub mod condition;
pub mod dialect;
mod embedded;
mod index;
mod sound;
mod table;
mod text;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use crate::error::Result;
use crate::model::effect::{Class, Severity, Stance};
use args::{Grammar, Parsed, parse};
use condition::{AnyOf, Operands, Pattern, Role, Subcommands};
use dialect::{CodeLanguage, DatabaseSpec, InterpreterSpec, RemoteSpec, WrapperSpec};
use index::Section;
use table::Table;
use text::{List, Text};

use super::expand::Arg;
pub use sound::{Dropped, sound};

/// Everything known about programs: tables in order of precedence.
#[derive(Debug)]
pub struct RuleSet {
    tables: Vec<Table>,
    /// The grammar of programs that have none of their own.
    plain: Grammar,
}

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    pub id: Text,
    sub: Subcommands,
    when: AnyOf,
    also: AnyOf,
    unless: AnyOf,
    operands: Operands,
    root: bool,
    input: bool,
    always: bool,
    pub class: Option<Class>,
    pub and: List<Class>,
    pub severity: Option<Severity>,
    roles: Vec<Role>,
    needs_target: bool,
    pub address: bool,
    pub opaque: bool,
    pub named: bool,
    pub reversible: Option<bool>,
    pub checkpoint: Option<bool>,
    pub warn: Option<bool>,
    pub answer: Option<Stance>,
    pub say: Option<Text>,
}

/// A program that runs its arguments.
#[derive(Debug)]
pub struct Wrapper {
    pub spec: WrapperSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub line: Vec<String>,
    pub directory: Vec<String>,
}

/// A program that runs a command elsewhere.
#[derive(Debug)]
pub struct Remote {
    pub spec: RemoteSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub line: Vec<String>,
    pub mounts: Vec<String>,
}

/// A database client.
#[derive(Debug)]
pub struct Database {
    pub spec: DatabaseSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub query: Vec<String>,
    pub file: Vec<String>,
}

/// An interpreter.
#[derive(Debug)]
pub struct Interpreter {
    pub spec: InterpreterSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub code: Vec<String>,
}

/// A call to look for in code.
#[derive(Debug)]
pub struct CallRule {
    pub languages: List<CodeLanguage>,
    pub pattern: Pattern,
    pub class: Option<Class>,
    pub severity: Option<Severity>,
}

/// How a command is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Something flows into it.
    pub input: bool,
    /// Behind `sudo`.
    pub root: bool,
}

/// A rule that holds, and what it holds for.
#[derive(Debug)]
pub struct Hit<'r> {
    pub rule: &'r Rule,
    pub targets: Vec<Arg>,
    /// Operands behind the subcommand.
    pub operands: Vec<Arg>,
    /// The program with its subcommand.
    pub verb: String,
}

impl RuleSet {
    /// The table that comes with piton.
    pub fn embedded() -> RuleSet {
        RuleSet { tables: vec![Table::new(embedded::specs())], plain: Grammar::default() }
    }

    /// The table that comes with piton, with a user's rules in front of it.
    pub fn with_user(yaml: &str) -> Result<RuleSet> {
        let own = compile::document(yaml)?;
        let (ids, disabled) = own.ids();
        let taken: HashSet<Text> = ids.chain(disabled).collect();
        let disabled: HashSet<Text> = own.ids().1.collect();
        let tables = vec![own.without(&disabled), Table::new(embedded::specs()).without(&taken)];
        Ok(RuleSet { tables, plain: Grammar::default() })
    }

    /// Whether anything at all is known about a program.
    pub fn knows(&self, program: &str) -> bool {
        self.tables.iter().any(|table| table.knows(program))
    }

    /// Whether a program is listed as harmless whatever its arguments.
    pub fn is_quiet(&self, program: &str) -> bool {
        self.tables.iter().any(|table| table.has(program, Section::Quiet))
    }

    pub fn wrappers(&self, program: &str) -> impl Iterator<Item = &Wrapper> {
        self.tables.iter().flat_map(move |table| table.wrappers(program))
    }

    pub fn remotes(&self, program: &str) -> impl Iterator<Item = &Remote> {
        self.tables.iter().flat_map(move |table| table.remotes(program))
    }

    pub fn databases(&self, program: &str) -> impl Iterator<Item = &Database> {
        self.tables.iter().flat_map(move |table| table.databases(program))
    }

    pub fn interpreters(&self, program: &str) -> impl Iterator<Item = &Interpreter> {
        self.tables.iter().flat_map(move |table| table.interpreters(program))
    }

    /// The calls of a language to look for in code.
    pub fn calls(&self, language: CodeLanguage) -> impl Iterator<Item = &CallRule> {
        self.tables.iter().flat_map(Table::calls).filter(move |call| call.languages.contains(&language))
    }

    /// Returns the way in which a program reads its options, or its subcommand `first` where that has its own.
    pub fn grammar(&self, program: &str, first: Option<&str>) -> &Grammar {
        self.tables.iter().find_map(|table| table.grammar(program, first)).unwrap_or(&self.plain)
    }

    /// The first rule that holds for a command line (arguments without the program).
    pub fn find(&self, program: &str, args: &[Arg], run: Run) -> Option<Hit<'_>> {
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

impl Rule {
    fn holds<'r>(&'r self, program: &str, parsed: &Parsed) -> Option<Hit<'r>> {
        let used = self.sub.matches(&parsed.operands)?;
        let operands = &parsed.operands[used..];
        let flags = (self.when.is_empty() || self.when.holds(parsed))
            && (self.also.is_empty() || self.also.holds(parsed))
            && !self.unless.holds(parsed);
        if !flags || !self.operands.hold(operands, parsed) {
            return None;
        }
        let mut targets = Vec::new();
        for role in &self.roles {
            role.collect(parsed, operands, &mut targets);
        }
        targets.retain(|target| !target.text.is_empty());
        if self.needs_target && targets.is_empty() {
            return None;
        }
        let mut verb = program.to_owned();
        for word in parsed.operands[..used].iter().take(3) {
            verb.push(' ');
            verb.push_str(&word.text);
        }
        Some(Hit { rule: self, targets, operands: operands.to_vec(), verb })
    }
}

/// Whether a command line only asks for help, its version, or what it would do.
fn asks_only(args: &[Arg], parsed: &Parsed) -> bool {
    if let [only] = args
        && matches!(only.text.as_str(), "-h" | "-V" | "version" | "help" | "--version" | "-version" | "-help")
    {
        return true;
    }
    if args.first().is_some_and(|first| first.text == "help") {
        return true;
    }
    parsed.flags.iter().any(|flag| match flag.name.to_ascii_lowercase().as_str() {
        "--help" | "--dryrun" | "--dry_run" | "-whatif" | "--just-print" | "--what-if" => true,
        "--dry-run" => !flag.value.as_ref().is_some_and(|value| matches!(value.text.as_str(), "none" | "false")),
        _ => false,
    })
}
