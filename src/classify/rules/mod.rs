//! Rules as data: what programs do, read from `config/rules.yaml` and from users' own text.

pub mod args;
mod compile;
pub mod condition;
pub mod dialect;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use regex::Regex;

use crate::model::effect::{Class, Severity, Stance};
use args::{Grammar, Parsed, parse};
use condition::{AnyOf, Operands, Role, Subcommands};
use dialect::{CodeLanguage, DatabaseSpec, InterpreterSpec, RemoteSpec, WrapperSpec};

use super::expand::Arg;

pub use compile::{compile, read};

/// Everything known about programs.
#[derive(Debug, Default)]
pub struct Rules {
    quiet: HashSet<String>,
    grammars: HashMap<String, Grammar>,
    /// The grammar of programs that have none of their own.
    plain: Grammar,
    /// Indices into `rules`, in order of precedence.
    by_program: HashMap<String, Vec<usize>>,
    /// Programs named with a trailing `*`.
    by_prefix: Vec<(String, usize)>,
    rules: Vec<Rule>,
    wrappers: HashMap<String, Vec<Wrapper>>,
    remotes: HashMap<String, Vec<Remote>>,
    databases: HashMap<String, Vec<Database>>,
    interpreters: HashMap<String, Vec<Interpreter>>,
    pub calls: Vec<Call>,
}

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    pub id: String,
    sub: Subcommands,
    when: AnyOf,
    also: AnyOf,
    unless: AnyOf,
    operands: Operands,
    root: bool,
    input: bool,
    always: bool,
    pub class: Option<Class>,
    pub and: Vec<Class>,
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
    pub say: Option<String>,
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
pub struct Call {
    pub languages: Vec<CodeLanguage>,
    pub pattern: Regex,
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

impl Rules {
    /// Whether anything at all is known about a program.
    pub fn knows(&self, program: &str) -> bool {
        self.quiet.contains(program)
            || self.by_program.contains_key(program)
            || self.by_prefix.iter().any(|(prefix, _)| program.starts_with(prefix.as_str()))
            || self.wrappers.contains_key(program)
            || self.remotes.contains_key(program)
            || self.databases.contains_key(program)
            || self.interpreters.contains_key(program)
    }

    /// Whether a program is listed as harmless whatever its arguments.
    pub fn is_quiet(&self, program: &str) -> bool {
        self.quiet.contains(program)
    }

    pub fn wrappers(&self, program: &str) -> &[Wrapper] {
        self.wrappers.get(program).map_or(&[], Vec::as_slice)
    }

    pub fn remotes(&self, program: &str) -> &[Remote] {
        self.remotes.get(program).map_or(&[], Vec::as_slice)
    }

    pub fn databases(&self, program: &str) -> &[Database] {
        self.databases.get(program).map_or(&[], Vec::as_slice)
    }

    pub fn interpreters(&self, program: &str) -> &[Interpreter] {
        self.interpreters.get(program).map_or(&[], Vec::as_slice)
    }

    /// The first rule that holds for a command line (arguments without the program).
    pub fn find(&self, program: &str, args: &[Arg], run: Run) -> Option<Hit<'_>> {
        let named = self.by_program.get(program).into_iter().flatten().copied();
        let prefixed = self.by_prefix.iter().filter(|(prefix, _)| program.starts_with(prefix.as_str()));
        let mut indices: Vec<usize> = named.chain(prefixed.map(|(_, index)| *index)).collect();
        if indices.is_empty() {
            return None;
        }
        indices.sort_unstable();
        let parsed = parse(args, self.grammars.get(program).unwrap_or(&self.plain), false);
        let harmless = asks_only(args, &parsed);
        indices.into_iter().map(|index| &self.rules[index]).find_map(|rule| {
            if harmless && !rule.always || rule.input && !run.input || rule.root && !run.root {
                return None;
            }
            rule.holds(program, &parsed)
        })
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
