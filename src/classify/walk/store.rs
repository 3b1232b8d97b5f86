//! Database clients: which text they are given, and whether it only reads.

use super::dispatch::Invocation;
use super::query::{mongo_writes, redis_writes};
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::FoundEffect;
use crate::classify::rules::Database;
use crate::classify::rules::args::{Parsed, parse};

use crate::classify::rules::dialect::{CodeLanguage, QueryLanguage};
use crate::classify::sql;
use crate::model::effect::{Certainty, Class};

/// The text that a client is given to run.
enum Given {
    Nothing,
    Known(Vec<String>),
    /// A file, a pipe, a variable.
    Unseen,
}

impl Walk<'_> {
    /// Judges a database client.
    pub(crate) fn database(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let rules = self.rules;
        let (client, parsed) = rules.databases(call.program).find_map(|client| {
            let mut parsed = parse(call.args, &client.grammar, false);
            if let Some(used) = client.sub.matches(&parsed.operands) {
                parsed.operands.drain(..used);
                return Some((client, parsed));
            }
            let at = client.sub.behind_options(call.args, &client.grammar)?;
            Some((client, parse(&call.args[at..], &client.grammar, false)))
        })?;
        if asks(&parsed) {
            return Some(Stream::Opaque);
        }
        let given = given(client, &parsed, &call.input);
        if let Given::Known(texts) = &given {
            match client.spec.language {
                QueryLanguage::Sql => self.client_files(call, client.spec.dialect, (&parsed, texts), shell),
                QueryLanguage::Mongo => texts.iter().for_each(|code| {
                    self.calls(CodeLanguage::Javascript, call.program, code, call.span, &mut shell.clone());
                }),
                QueryLanguage::Redis => {}
            }
        } else if client.spec.language == QueryLanguage::Sql {
            self.client_files(call, client.spec.dialect, (&parsed, &[]), shell);
        }
        if client.unless.holds(&parsed) {
            return Some(Stream::Opaque);
        }
        let certainty = match given {
            Given::Nothing => return Some(Stream::Opaque),
            Given::Known(queries) => {
                if !queries.iter().any(|query| writes(client, query)) {
                    return Some(Stream::Opaque);
                }
                Certainty::Proven
            }
            Given::Unseen => Certainty::Likely,
        };
        let mut found = FoundEffect::new(Class::Database, call.program, "database", call.span).certainty(certainty);
        let file = client.spec.local.and_then(|index| parsed.operands.get(index));
        if file.is_some_and(|arg| arg.text == ":memory:") {
            return Some(Stream::Opaque);
        }
        if let Some(file) = file {
            found.target = Some(file.text.clone());
            let placed = super::place(file, shell, &self.site, self.context);
            (found.path, found.near) = (placed.path, placed.near);
            if let crate::classify::context::Whereabouts::Plain(scope) = placed.whereabouts {
                found.scope = scope;
            }
        }
        self.found.push(found);
        Some(Stream::Opaque)
    }
}

fn asks(parsed: &Parsed) -> bool {
    parsed.has(&["--help", "--version", "-V", "-?"])
}

fn given(client: &Database, parsed: &Parsed, input: &Stream) -> Given {
    let mut queries: Vec<&Arg> = parsed.values(&client.query).collect();
    let mut scripts = parsed.values(&client.file).any(|file| file.text != "-");
    if let Some(first) = client.spec.operand {
        let rest = parsed.operands.get(first..).unwrap_or_default();
        let ends: Vec<&str> = client.spec.scripts.split_whitespace().collect();
        for arg in rest {
            if ends.iter().any(|end| arg.text.ends_with(end)) {
                scripts = true;
            } else if ends.is_empty() {
                queries.push(arg);
            }
        }
    }
    if queries.iter().any(|arg| arg.known == 0 && !arg.text.contains(' ')) || scripts {
        return Given::Unseen;
    }
    if !queries.is_empty() {
        let texts: Vec<String> = queries.into_iter().map(|arg| arg.text.clone()).collect();
        return Given::Known(if client.spec.language == QueryLanguage::Redis { vec![texts.join(" ")] } else { texts });
    }
    match input {
        Stream::Nothing => Given::Nothing,
        Stream::Text(text) => Given::Known(vec![text.clone()]),
        Stream::Files | Stream::Remote | Stream::Decoded | Stream::Setup | Stream::Opaque => Given::Unseen,
    }
}

fn writes(client: &Database, query: &str) -> bool {
    match client.spec.language {
        QueryLanguage::Sql => sql::writes(query, client.spec.dialect),
        QueryLanguage::Mongo => mongo_writes(query),
        QueryLanguage::Redis => {
            query.lines().any(|line| redis_writes(&line.split_ascii_whitespace().collect::<Vec<_>>()))
        }
    }
}
