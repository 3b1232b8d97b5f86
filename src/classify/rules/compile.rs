//! From text to rules, with errors that point at the place.

use serde_saphyr::Location;

use super::args::Grammar;
use super::condition::{AnyOf, Operands, Pattern, Role, Subcommands};
use super::dialect::{
    CallSpec, CodeLanguage, DatabaseSpec, Document, InterpreterSpec, ProgramSpec, RemoteSpec, RuleSpec, WrapperSpec,
};
use super::index::Index;
use super::table::{Specs, Table};
use super::text::Text;
use super::{CallRule, Database, Interpreter, Remote, Rule, Wrapper};
use crate::error::{Code, Error, Result};

/// Reads a document of rules.
pub fn read(yaml: &str) -> Result<Document> {
    if yaml.trim().is_empty() {
        return Ok(Document::default());
    }
    serde_saphyr::from_str(yaml).map_err(|error| {
        let location = error.location();
        let message = error.without_snippet().to_string();
        let text = message.lines().next().unwrap_or("not the expected YAML").to_owned();
        refused(&text, location)
    })
}

fn refused(message: &str, location: Option<Location>) -> Error {
    let place = location.filter(|location| location.line() > 0);
    let error = match place {
        Some(place) => {
            let text = format!("rules, line {}, column {}: {message}", place.line(), place.column());
            Error::new(Code::BadRequest, text).line(place.line())
        }
        None => Error::new(Code::BadRequest, format!("rules: {message}")),
    };
    error.field("rules").hint("docs/CLASSIFY.md describes the dialect")
}

/// Reads a user's document; everything in it is compiled, so that its errors are known.
pub fn document(yaml: &str) -> Result<Table> {
    let document = read(yaml)?;
    let most = usize::from(u16::MAX) / 4;
    if yaml.split_whitespace().count() > most * 16 || document.rules.len() > most {
        return Err(refused("too many rules", None));
    }
    let index = Index::new(&document);
    for spec in &document.rules {
        let rule = rule(&spec.value).map_err(|message| refused(&message, Some(spec.referenced)))?;
        rule.operands.patterns().try_for_each(|pattern| check(pattern, spec.referenced))?;
    }
    for spec in &document.calls {
        check(&call(&spec.value).pattern, spec.referenced)?;
    }
    Ok(Table::new(Specs {
        disable: document.disable,
        programs: document.programs.into(),
        wrappers: document.wrappers.into(),
        remotes: document.remotes.into(),
        databases: document.databases.into(),
        interpreters: document.interpreters.into(),
        calls: document.calls.into_iter().map(|spec| spec.value).collect::<Vec<_>>().into(),
        rules: document.rules.into_iter().map(|spec| spec.value).collect::<Vec<_>>().into(),
        index,
    }))
}

fn check(pattern: &Pattern, location: Location) -> Result<()> {
    let Err(error) = pattern.regex() else { return Ok(()) };
    let message = error.to_string().replace('\n', " ");
    Err(refused(&format!("`{}` is no regular expression: {message}", pattern.text()), Some(location)))
}

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

/// The option grammar of programs.
pub fn program(spec: &ProgramSpec) -> Grammar {
    Grammar { fold: spec.fold, ..grammar(&spec.values, &spec.attached, spec.single) }
}

/// From its spec.
pub fn wrapper(spec: &WrapperSpec) -> Wrapper {
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
pub fn remote(spec: &RemoteSpec) -> Remote {
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
pub fn database(spec: &DatabaseSpec) -> Database {
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
pub fn interpreter(spec: &InterpreterSpec) -> Interpreter {
    let values = [&spec.values, &spec.code].map(|text| &**text).join(" ");
    let fold = spec.language == CodeLanguage::Powershell;
    Interpreter {
        sub: Subcommands::parse(&spec.sub),
        grammar: Grammar { fold, ..grammar(&values, &spec.attached, spec.single) },
        unless: AnyOf::parse(&spec.unless),
        code: words(&spec.code),
        spec: spec.clone(),
    }
}

/// A call to look for.
pub fn call(spec: &CallSpec) -> CallRule {
    let CallSpec { language, pattern, class, severity } = spec.clone();
    CallRule { languages: language, pattern: Pattern::new(pattern), class, severity }
}

/// A rule; errors are sentences without a place.
pub fn rule(spec: &RuleSpec) -> std::result::Result<Rule, String> {
    if spec.program.trim().is_empty() {
        return Err(format!("rule `{}` names no program", &*spec.id));
    }
    let mut roles = Vec::new();
    for word in spec.target.split_whitespace() {
        roles.push(Role::parse(word).ok_or_else(|| format!("rule `{}`: `{word}` is no target role", &*spec.id))?);
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
        address: spec.address,
        opaque: spec.opaque,
        named: spec.named,
        reversible: spec.reversible,
        checkpoint: spec.checkpoint,
        warn: spec.warn,
        answer: spec.answer,
        say: spec.say.clone(),
        id: spec.id.clone(),
    })
}
