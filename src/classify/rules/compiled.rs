//! Compiled rules, and whether they hold for a command line.

use super::args::{Grammar, Parsed};
use super::condition::{AnyOf, KnownVerbs, Operands, Pattern, Role, Subcommands};
use super::dialect::{CodeLanguage, DatabaseSpec, InterpreterSpec, RemoteSpec, WrapperSpec};
use super::text::{List, Text};
use crate::classify::expand::Arg;
use crate::model::effect::{Class, Severity, Stance};

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub id: Text,
    pub sub: Subcommands,
    pub when: AnyOf,
    pub also: AnyOf,
    pub unless: AnyOf,
    pub operands: Operands,
    pub root: bool,
    pub input: bool,
    pub always: bool,
    pub class: Option<Class>,
    pub and: List<Class>,
    pub severity: Option<Severity>,
    pub roles: Vec<Role>,
    pub needs_target: bool,
    pub replaces: bool,
    pub address: bool,
    pub opaque: bool,
    pub known: Option<KnownVerbs>,
    pub named: bool,
    pub reversible: Option<bool>,
    pub checkpoint: Option<bool>,
    pub warn: Option<bool>,
    pub answer: Option<Stance>,
    pub say: Option<Text>,
}

/// A program that runs its arguments.
#[derive(Debug)]
pub(crate) struct Wrapper {
    pub spec: WrapperSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub line: Vec<String>,
    pub directory: Vec<String>,
}

/// A program that runs a command elsewhere.
#[derive(Debug)]
pub(crate) struct Remote {
    pub spec: RemoteSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub line: Vec<String>,
    pub mounts: Vec<String>,
}

/// A database client.
#[derive(Debug)]
pub(crate) struct Database {
    pub spec: DatabaseSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub query: Vec<String>,
    pub file: Vec<String>,
}

/// An interpreter.
#[derive(Debug)]
pub(crate) struct Interpreter {
    pub spec: InterpreterSpec,
    pub sub: Subcommands,
    pub grammar: Grammar,
    pub unless: AnyOf,
    pub code: Vec<String>,
    pub loads: Vec<String>,
}

/// A call to look for in code.
#[derive(Debug)]
pub(crate) struct CallRule {
    pub languages: List<CodeLanguage>,
    /// `None` for a call that is known by its names.
    pub pattern: Option<Pattern>,
    pub names: Vec<String>,
    /// Modules whose calls are harmless.
    pub harmless: Vec<String>,
    pub params: Vec<String>,
    pub target: Vec<String>,
    pub mode: Vec<String>,
    pub of_path: bool,
    pub no_query: bool,
    /// The pattern is only looked for in code within an application.
    pub within: bool,
    pub class: Option<Class>,
    pub severity: Option<Severity>,
}

/// The way in which a command is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// Something flows into it.
    pub input: bool,
    /// Behind `sudo`.
    pub root: bool,
}

/// A rule that holds, and what it holds for.
#[derive(Debug)]
pub(crate) struct Hit<'r> {
    pub rule: &'r Rule,
    pub targets: Vec<Arg>,
    /// Operands behind the subcommand.
    pub operands: Vec<Arg>,
    /// The program with its subcommand.
    pub verb: String,
}

impl Hit<'_> {
    /// Returns true where the rule says only that nobody knows this subcommand.
    pub(crate) fn is_unknown(&self) -> bool {
        let is_told = self.rule.class.is_some() || self.rule.named;
        !is_told && (self.rule.opaque || self.rule.known.as_ref().is_some_and(|known| !known.has(&self.operands)))
    }
}

impl Rule {
    /// Returns true where one of the options is given with which the rule does not hold.
    pub(crate) fn is_silenced(&self, parsed: &Parsed) -> bool {
        self.class.is_some() && self.sub.matches(&parsed.operands).is_some() && self.unless.holds(parsed)
    }

    /// Returns the hit, if the rule holds for a command line.
    pub(crate) fn holds<'r>(&'r self, program: &str, parsed: &Parsed) -> Option<Hit<'r>> {
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

/// Returns whether a command line only asks for help, its version, or what it would do.
pub(super) fn asks_only(args: &[Arg], parsed: &Parsed) -> bool {
    if let [only] = args
        && matches!(only.text.as_str(), "-h" | "-V" | "version" | "help" | "--version" | "-version" | "-help")
    {
        return true;
    }
    if args.first().is_some_and(|first| first.text == "help") {
        return true;
    }
    parsed.flags.iter().any(|flag| match flag.name.to_ascii_lowercase().as_str() {
        "--help" | "-help" | "--dryrun" | "--dry_run" | "-whatif" | "--just-print" | "--what-if" => true,
        "--dry-run" => !flag.value.as_ref().is_some_and(|value| matches!(value.text.as_str(), "none" | "false")),
        _ => false,
    })
}
