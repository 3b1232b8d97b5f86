//! A user's document of rules, with errors that point at the place.

use serde_saphyr::Location;

use super::compile;
use super::condition::Pattern;
use super::dialect::Document;
use super::index::Index;
use super::table::{Specs, Table};
use crate::error::{Code, Error, Result};

/// Reads a document of rules.
pub(super) fn read(yaml: &str) -> Result<Document> {
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
    error.field("rules").hint("docs/CLASSIFY.md describes the syntax")
}

/// Reads a user's document; everything in it is compiled, so that its errors are known.
pub(super) fn document(yaml: &str) -> Result<Table> {
    let document = read(yaml)?;
    let most = usize::from(u16::MAX) / 4;
    if yaml.split_whitespace().count() > most * 16 || document.rules.len() > most {
        return Err(refused("too many rules", None));
    }
    let index = Index::new(&document);
    for spec in &document.rules {
        let rule = compile::rule(&spec.value).map_err(|message| refused(&message, Some(spec.referenced)))?;
        rule.operands.patterns().try_for_each(|pattern| check(pattern, spec.referenced))?;
    }
    for spec in &document.calls {
        let call = compile::call(&spec.value);
        let forms = [call.pattern.is_some(), !call.names.is_empty(), !call.harmless.is_empty()];
        if forms.iter().filter(|form| **form).count() != 1 {
            return Err(refused("a call has either `pattern`, `call` or `harmless`", Some(spec.referenced)));
        }
        call.pattern.iter().try_for_each(|pattern| check(pattern, spec.referenced))?;
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
    Err(refused(&format!("`{}` is not a regular expression: {message}", pattern.text()), Some(location)))
}
