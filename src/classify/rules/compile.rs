//! From text to rules, with errors that point at the place.

use std::collections::HashSet;

use regex::{Regex, RegexBuilder};
use serde_saphyr::{Location, Spanned};

use super::args::Grammar;
use super::condition::{AnyOf, Operands, Role, Subcommands};
use super::dialect::{
    CallSpec, CodeLanguage, DatabaseSpec, Document, InterpreterSpec, RemoteSpec, RuleSpec, WrapperSpec,
};
use super::{Call, Database, Interpreter, Remote, Rule, Rules, Wrapper};
use crate::error::{Code, Error, Result};

/// Largest compiled regular expression of a user's rule.
const MAX_REGEX: usize = 1 << 20;

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

/// Compiles documents; what comes first takes precedence.
pub fn compile(documents: Vec<Document>) -> Result<Rules> {
    let mut rules = Rules::default();
    let mut taken: HashSet<String> = HashSet::new();
    for document in documents {
        add(document, &mut rules, &mut taken)?;
    }
    Ok(rules)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn programs(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_ascii_lowercase).collect()
}

fn grammar(values: &str, attached: &str, single: bool) -> Grammar {
    Grammar {
        values: words(values).into_iter().collect(),
        attached: words(attached).into_iter().collect(),
        single,
        fold: false,
    }
}

fn add(document: Document, rules: &mut Rules, taken: &mut HashSet<String>) -> Result<()> {
    rules.quiet.extend(programs(&document.quiet));
    taken.extend(words(&document.disable));
    for spec in document.programs {
        for program in programs(&spec.program) {
            let mut grammar = grammar(&spec.values, &spec.attached, spec.single);
            grammar.fold = spec.fold;
            rules.grammars.entry(program).or_insert(grammar);
        }
    }
    for spec in document.wrappers {
        for program in programs(&spec.program) {
            rules.wrappers.entry(program).or_default().push(wrapper(&spec));
        }
    }
    for spec in document.remotes {
        for program in programs(&spec.program) {
            rules.remotes.entry(program).or_default().push(remote(&spec));
        }
    }
    for spec in document.databases {
        for program in programs(&spec.program) {
            rules.databases.entry(program).or_default().push(database(&spec));
        }
    }
    for spec in document.interpreters {
        for program in programs(&spec.program) {
            rules.interpreters.entry(program).or_default().push(interpreter(&spec));
        }
    }
    for spec in document.calls {
        rules.calls.push(call(spec)?);
    }
    let before = taken.clone();
    for spec in document.rules {
        if before.contains(&spec.value.id) {
            continue;
        }
        taken.insert(spec.value.id.clone());
        let names = programs(&spec.value.program);
        let index = rules.rules.len();
        rules.rules.push(rule(spec)?);
        for name in names {
            match name.strip_suffix('*') {
                Some(prefix) => rules.by_prefix.push((prefix.to_owned(), index)),
                None => rules.by_program.entry(name).or_default().push(index),
            }
        }
    }
    Ok(())
}

fn wrapper(spec: &WrapperSpec) -> Wrapper {
    Wrapper {
        sub: Subcommands::parse(&spec.sub),
        grammar: grammar(
            &[&spec.values, &spec.line, &spec.directory].map(String::as_str).join(" "),
            &spec.attached,
            false,
        ),
        unless: AnyOf::parse(&spec.unless),
        line: words(&spec.line),
        directory: words(&spec.directory),
        spec: spec.clone(),
    }
}

fn remote(spec: &RemoteSpec) -> Remote {
    Remote {
        sub: Subcommands::parse(&spec.sub),
        grammar: grammar(&[&spec.values, &spec.line, &spec.mounts].map(String::as_str).join(" "), "", spec.single),
        unless: AnyOf::parse(&spec.unless),
        line: words(&spec.line),
        mounts: words(&spec.mounts),
        spec: spec.clone(),
    }
}

fn database(spec: &DatabaseSpec) -> Database {
    Database {
        sub: Subcommands::parse(&spec.sub),
        grammar: grammar(&[&spec.values, &spec.query, &spec.file].map(String::as_str).join(" "), "", spec.single),
        unless: AnyOf::parse(&spec.unless),
        query: words(&spec.query),
        file: words(&spec.file),
        spec: spec.clone(),
    }
}

fn interpreter(spec: &InterpreterSpec) -> Interpreter {
    let values = [&spec.values, &spec.code].map(String::as_str).join(" ");
    let fold = spec.language == CodeLanguage::Powershell;
    Interpreter {
        sub: Subcommands::parse(&spec.sub),
        grammar: Grammar { fold, ..grammar(&values, &spec.attached, spec.single) },
        unless: AnyOf::parse(&spec.unless),
        code: words(&spec.code),
        spec: spec.clone(),
    }
}

fn regex(text: &str, location: Location) -> Result<Regex> {
    let built = RegexBuilder::new(text).size_limit(MAX_REGEX).build();
    built.map_err(|error| {
        let message = error.to_string().replace('\n', " ");
        refused(&format!("`{text}` is no regular expression: {message}"), Some(location))
    })
}

fn call(spec: Spanned<CallSpec>) -> Result<Call> {
    let location = spec.referenced;
    let CallSpec { language, pattern, class, severity } = spec.value;
    Ok(Call { languages: language, pattern: regex(&pattern, location)?, class, severity })
}

fn rule(spec: Spanned<RuleSpec>) -> Result<Rule> {
    let location = spec.referenced;
    let spec = spec.value;
    if spec.program.trim().is_empty() {
        return Err(refused(&format!("rule `{}` names no program", spec.id), Some(location)));
    }
    let optional = |text: &Option<String>| text.as_deref().map(|text| regex(text, location)).transpose();
    let (some, none) = (optional(&spec.operand)?, optional(&spec.no_operand)?);
    let (last, value) = (optional(&spec.last)?, optional(&spec.value)?);
    let mut roles = Vec::new();
    for word in spec.target.split_whitespace() {
        let unknown = || refused(&format!("rule `{}`: `{word}` is no target role", spec.id), Some(location));
        roles.push(Role::parse(word).ok_or_else(unknown)?);
    }
    Ok(Rule {
        sub: Subcommands::parse(&spec.sub),
        when: AnyOf::parse(&spec.when),
        also: AnyOf::parse(&spec.also),
        unless: AnyOf::parse(&spec.unless),
        operands: Operands { some, none, last, value, at_least: spec.at_least, at_most: spec.at_most },
        root: spec.root,
        input: spec.input,
        always: spec.always,
        class: spec.class,
        and: spec.and,
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
        say: spec.say,
        id: spec.id,
    })
}
