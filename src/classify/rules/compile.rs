//! From specs to rules.

use super::args::Grammar;
use super::compiled::{CallRule, Database, Interpreter, Remote, Rule, Wrapper};
use super::condition::{AnyOf, KnownVerbs, Operands, Pattern, Role, Subcommands};
use super::dialect::{
    CallSpec, CodeLanguage, DatabaseSpec, InterpreterSpec, ProgramSpec, RemoteSpec, RuleSpec, WrapperSpec,
};
use super::text::Text;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn grammar(values: &str, attached: &str, single: bool) -> Grammar {
    Grammar {
        values: words(values).into_iter().collect(),
        attached: words(attached).into_iter().collect(),
        single,
        fold: false,
    }
}

/// Returns the option grammar of programs.
pub(super) fn program(spec: &ProgramSpec) -> Grammar {
    Grammar { fold: spec.fold, ..grammar(&spec.values, &spec.attached, spec.single) }
}

/// From its spec.
pub(super) fn wrapper(spec: &WrapperSpec) -> Wrapper {
    Wrapper {
        sub: Subcommands::parse(&spec.sub),
        grammar: grammar(
            &[&spec.values, &spec.line, &spec.directory].map(|text| &**text).join(" "),
            &spec.attached,
            false,
        ),
        unless: AnyOf::parse(&spec.unless),
        line: words(&spec.line),
        directory: words(&spec.directory),
        spec: spec.clone(),
    }
}

/// From its spec.
pub(super) fn remote(spec: &RemoteSpec) -> Remote {
    Remote {
        sub: Subcommands::parse(&spec.sub),
        grammar: grammar(&[&spec.values, &spec.line, &spec.mounts].map(|text| &**text).join(" "), "", spec.single),
        unless: AnyOf::parse(&spec.unless),
        line: words(&spec.line),
        mounts: words(&spec.mounts),
        spec: spec.clone(),
    }
}

/// From its spec.
pub(super) fn database(spec: &DatabaseSpec) -> Database {
    Database {
        sub: Subcommands::parse(&spec.sub),
        grammar: grammar(&[&spec.values, &spec.query, &spec.file].map(|text| &**text).join(" "), "", spec.single),
        unless: AnyOf::parse(&spec.unless),
        query: words(&spec.query),
        file: words(&spec.file),
        spec: spec.clone(),
    }
}

/// From its spec.
pub(super) fn interpreter(spec: &InterpreterSpec) -> Interpreter {
    let values = [&spec.values, &spec.code, &spec.loads].map(|text| &**text).join(" ");
    let fold = spec.language == CodeLanguage::Powershell;
    Interpreter {
        sub: Subcommands::parse(&spec.sub),
        grammar: Grammar { fold, ..grammar(&values, &spec.attached, spec.single) },
        unless: AnyOf::parse(&spec.unless),
        code: words(&spec.code),
        loads: words(&spec.loads),
        spec: spec.clone(),
    }
}

/// Returns a call to look for.
pub(super) fn call(spec: &CallSpec) -> CallRule {
    let words = |text: &Text| text.split_whitespace().map(str::to_owned).collect();
    CallRule {
        languages: spec.language.clone(),
        pattern: (!spec.pattern.is_empty()).then(|| Pattern::new(spec.pattern.clone())),
        names: words(&spec.call),
        harmless: words(&spec.harmless),
        params: words(&spec.params),
        target: words(&spec.target),
        mode: words(&spec.mode),
        of_path: spec.of_path,
        no_query: spec.no_query,
        within: spec.within,
        class: spec.class,
        severity: spec.severity,
    }
}

/// Returns a rule; errors are sentences without a place.
pub(super) fn rule(spec: &RuleSpec) -> Result<Rule, String> {
    if spec.program.trim().is_empty() {
        return Err(format!("rule `{}` does not name a program", &*spec.id));
    }
    let mut roles = Vec::new();
    for word in spec.target.split_whitespace() {
        roles.push(Role::parse(word).ok_or_else(|| format!("rule `{}`: `{word}` is not a target role", &*spec.id))?);
    }
    let pattern = |text: &Option<Text>| text.clone().map(Pattern::new);
    Ok(Rule {
        sub: Subcommands::parse(&spec.sub),
        when: AnyOf::parse(&spec.when),
        also: AnyOf::parse(&spec.also),
        unless: AnyOf::parse(&spec.unless),
        operands: Operands {
            some: pattern(&spec.operand),
            none: pattern(&spec.no_operand),
            last: pattern(&spec.last),
            value: pattern(&spec.value),
            at_least: spec.at_least,
            at_most: spec.at_most,
        },
        root: spec.root,
        input: spec.input,
        always: spec.always,
        class: spec.class,
        and: spec.and.clone(),
        severity: spec.severity,
        roles,
        needs_target: spec.needs_target,
        replaces: spec.replaces,
        address: spec.address,
        opaque: spec.opaque,
        known: spec.known.as_deref().map(KnownVerbs::parse),
        named: spec.named,
        reversible: spec.reversible,
        checkpoint: spec.checkpoint,
        warn: spec.warn,
        answer: spec.answer,
        say: spec.say.clone(),
        id: spec.id.clone(),
    })
}
