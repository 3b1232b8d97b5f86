//! Inline code (`python -c`, `node -e`, here-documents): the calls that do something, and what they do it to.
//!
//! A small reader (`read`) finds each call with the values of its arguments, as far as literals tell them; the rules name the
//! parameter that is the target (`calls: {call, params, target}`). A value that the code alone does not tell is unknown, never a
//! neighbour. Patterns over the code (`calls: {pattern}`) find what the reader does not know; they never give a path.

mod call;
mod expressions;
mod found;
mod imports;
mod lex;
mod patterns;
mod read;
mod statements;
mod text;
mod unsure;
mod value;
mod words;

use std::collections::HashSet;

use self::found::{Call, Import, Known};
pub(super) use self::found::{CodeCall, Directory, Origin};
use self::lex::{Token, TokenKind, tokens};
use self::read::Reader;
use self::value::{HOLE, Value};
use self::words::{CHANGES, LOADS};
use super::rules::dialect::CodeLanguage;
use super::rules::{CallRule, RuleSet};
use crate::model::effect::Class;

/// Stands for a word of a command line that only the run can tell.
const UNKNOWN_WORD: &str = "\"${unknown:?}\"";

/// Stands for a piece of one.
const UNKNOWN_PIECE: &str = "${unknown:?}";

/// Languages that the reader reads.
const READ: [CodeLanguage; 5] =
    [CodeLanguage::Python, CodeLanguage::Javascript, CodeLanguage::Ruby, CodeLanguage::Perl, CodeLanguage::Php];

/// Deepest nesting of code in code.
const MAX_NESTED: usize = 3;

/// Returns the calls of a piece of code that do something, each class once per target. `origin` is where the code stands.
pub(super) fn find_calls(rules: &RuleSet, language: CodeLanguage, code: &str, origin: &Origin<'_>) -> Vec<CodeCall> {
    let mut found = Vec::new();
    find(rules, language, code, origin, (0, &mut found));
    let mut seen = HashSet::new();
    found.retain(|call| seen.insert((call.class, call.argument.clone(), call.dir.clone())));
    found
}

/// Adds the calls of a piece of code. `nested` is how deep it lies in other code.
fn find(
    rules: &RuleSet,
    language: CodeLanguage,
    code: &str,
    origin: &Origin<'_>,
    (nested, found): (usize, &mut Vec<CodeCall>),
) {
    let syntax = if language == CodeLanguage::Other { CodeLanguage::Python } else { language };
    let from = found.len();
    let known = if READ.contains(&syntax) { read(rules, language, code, origin, found) } else { Known::default() };
    patterns::find(rules, syntax, code, (&known, origin.within), found);
    // Code that other code runs is read like it.
    if nested < MAX_NESTED {
        let is_code = |call: &mut CodeCall| call.class == Some(Class::ExecOpaque) && call.argument.is_some();
        let inner: Vec<CodeCall> = found.extract_if(from.., is_code).collect();
        inner.iter().filter_map(|call| call.argument.as_deref()).for_each(|code| {
            find(rules, language, code, origin, (nested + 1, found));
        });
    }
}

/// Reads code, and adds the calls that rules know by their names, and modules that nobody knows.
fn read(rules: &RuleSet, language: CodeLanguage, code: &str, origin: &Origin<'_>, found: &mut Vec<CodeCall>) -> Known {
    let syntax = if language == CodeLanguage::Other { CodeLanguage::Python } else { language };
    let tokens = tokens(code, syntax);
    let is_code = |token: &&Token<'_>| matches!(token.kind, TokenKind::Name(_) | TokenKind::Shell(_));
    let is_text = |token: &&Token<'_>| matches!(token.kind, TokenKind::Text(_));
    let mut known = Known {
        code: Some(tokens.iter().filter(is_code).map(|token| (token.from, token.to)).collect()),
        texts: tokens.iter().filter(is_text).map(|token| token.from).collect(),
        ..Known::default()
    };
    let is_command = |name: &str| {
        CHANGES.contains(&name) || LOADS.contains(&name) || rules_of(rules, syntax, name, false).next().is_some()
    };
    let (calls, imports) = Reader::new(&tokens, syntax, *origin, &is_command).read();
    let (before, files) = (found.len(), database_files(&calls));
    for call in calls {
        for rule in rules_of(rules, syntax, &call.name, call.receiver.is_some()) {
            // A row about code, the network or a path does not say what else a method of this name does.
            if !rule.of_path && !matches!(rule.class, Some(Class::ExecOpaque | Class::NetworkWrite)) {
                known.places.push((call.from, call.to));
            }
            if call.is_mention {
                let is_of_other = rule.of_path && !matches!(call.receiver, Some(Value::Path(_)));
                if rule.class == Some(Class::FileWrite) || is_of_other {
                    continue;
                }
                let (class, severity) = (rule.class, rule.severity);
                found.push(CodeCall { class, severity, argument: None, dir: Directory::Unknown });
                break;
            }
            if applies(rule, &call) {
                if rule.class == Some(Class::NetworkWrite) && stays_here(&call) {
                    known.places.push((call.from, call.to));
                    break;
                }
                if rule.class != Some(Class::ExecOpaque) {
                    known.places.push((call.from, call.to));
                }
                known.classes.insert(rule.class);
                effects(rule, &call, found);
                break;
            }
        }
    }
    settle_databases(&files, found, before);
    let is_harmless = |module: &str| match module.strip_prefix('.') {
        // A file beside the code: only data is harmless.
        Some(file) => file.ends_with(".json"),
        None => module.ends_with(".json") || rules.is_harmless(language, module),
    };
    let is_unknown =
        |import: &&Import<'_>| !import.module.as_deref().is_some_and(is_harmless) && !import.is_asked_about(&tokens);
    if language != CodeLanguage::Other && imports.iter().any(|import| is_unknown(&import)) {
        found.push(CodeCall { class: Some(Class::ExecOpaque), severity: None, argument: None, dir: Directory::First });
    }
    known
}

/// Calls that open a database that is a file, which their first argument names.
const FILE_DATABASES: [&str; 7] = [
    "sqlite3.connect",
    "sqlite3.dbapi2.connect",
    "better-sqlite3",
    "sqlite.DatabaseSync",
    "DatabaseSync",
    "SQLite3.Database.new",
    "duckdb.connect",
];

/// Returns the files of the databases that calls open; `None` for one that the code does not tell.
fn database_files(calls: &[Call]) -> Vec<Option<String>> {
    let opened = calls.iter().filter(|call| FILE_DATABASES.contains(&call.name.as_str()));
    opened.map(|call| call.args.first().and_then(Value::text).map(str::to_owned)).collect()
}

/// Gives the changes of databases that are files a target. One in memory goes with the program.
fn settle_databases(files: &[Option<String>], found: &mut Vec<CodeCall>, from: usize) {
    let is_change = |call: &CodeCall| call.class == Some(Class::Database);
    if files.is_empty() || !found[from..].iter().any(is_change) {
        return;
    }
    if files.iter().all(|file| file.as_deref() == Some(":memory:")) {
        found.extract_if(from.., |call| is_change(call)).for_each(drop);
        return;
    }
    for file in files.iter().flatten().filter(|file| *file != ":memory:") {
        let path = file.strip_prefix("file:").unwrap_or(file);
        let path = path.split('?').next().unwrap_or(path).to_owned();
        let (class, severity, dir) = (Some(Class::FileOverwrite), None, Directory::First);
        found.push(CodeCall { class, severity, argument: Some(path), dir });
    }
}

/// Returns the rules for a call of this name, in their order. A name may be that of a variable or of a module: both are tried.
fn rules_of<'r>(
    rules: &'r RuleSet,
    language: CodeLanguage,
    name: &str,
    is_method: bool,
) -> impl Iterator<Item = &'r CallRule> + use<'r> {
    // PHP's names are the same in upper and lower case.
    let lower = (language == CodeLanguage::Php).then(|| name.to_ascii_lowercase());
    let name = lower.as_deref().unwrap_or(name);
    // `shutil.os.remove` is `os.remove`.
    let name = name.find(".os.").map_or(name, |at| &name[at + 1..]);
    let last = name.rsplit('.').next().unwrap_or(name);
    let whole = (!is_method).then(|| rules.signatures(language, name));
    let of_method = (name.contains('.')).then(|| rules.signatures(language, &format!(".{last}")));
    let anywhere = rules.signatures(language, &format!("*{last}"));
    let first = [whole, of_method, Some(anywhere)].into_iter().flatten().find(|rules| !rules.is_empty());
    first.unwrap_or_default().into_iter()
}

/// Returns the value of a parameter: by its place among `params`, or by its name.
fn value<'v>(rule: &CallRule, call: &'v Call, name: &str) -> Option<&'v Value> {
    let at = rule.params.iter().position(|param| param == name).unwrap_or(usize::MAX);
    call.value(at, name).filter(|value| !matches!(value, Value::Map(_))).or_else(|| call.option(name))
}

/// Returns true if the rule is about this call: the mode is one of its modes, the target is given, the receiver is a path.
fn applies(rule: &CallRule, call: &Call) -> bool {
    if rule.of_path && !matches!(call.receiver, Some(Value::Path(_))) {
        return false;
    }
    if let Some((name, modes)) = rule.mode.split_first() {
        let (name, is_told) = name.strip_prefix('=').map_or((name.as_str(), false), |name| (name, true));
        match value(rule, call, name) {
            None => return false,
            Some(Value::Text(text) | Value::Module(text)) if modes.is_empty() => {
                return !matches!(text.as_str(), "False" | "false" | "0" | "");
            }
            // A flag that is a number is hardly ever 0; a mode is no number.
            Some(Value::Number) => return modes.is_empty(),
            Some(value @ (Value::Text(text) | Value::Module(text))) => {
                // A mode is a short word; nobody knows what a longer text is. Names of flags may be many.
                let most = if matches!(value, Value::Text(_)) && !is_told { 32 } else { 400 };
                let is_mode = text.len() <= most && modes.iter().any(|mode| text.contains(mode.as_str()));
                if !is_mode {
                    return false;
                }
            }
            Some(value) if is_told => {
                return value.lines().iter().any(|text| modes.iter().any(|mode| text.contains(mode.as_str())));
            }
            // Of a mode that is not told, the worst is assumed: a later rule says it.
            Some(_) if rule.class == Some(Class::FileWrite) && !modes.is_empty() => return false,
            Some(_) => {}
        }
    }
    let is_given = |target: &String| match target.as_str() {
        "self" => true,
        "*" => !call.args.is_empty(),
        target => {
            let name = target.split(['+', '/']).next().unwrap_or(target);
            target.contains('=') || is_rest(target).is_some() || value(rule, call, name).is_some()
        }
    };
    rule.target.is_empty() || rule.target.iter().any(is_given)
}

/// Reads `*1`: all values from the second on.
fn is_rest(target: &str) -> Option<usize> {
    target.strip_prefix('*')?.parse().ok()
}

/// Returns the values of a rule's targets.
fn targets(rule: &CallRule, call: &Call) -> Vec<Value> {
    let mut values = Vec::new();
    for target in &rule.target {
        match (target.as_str(), is_rest(target), target.split_once('=')) {
            ("self", ..) => values.push(call.receiver.clone().unwrap_or(Value::Unknown)),
            ("*", ..) => values.extend(call.args.iter().filter(|value| !matches!(value, Value::Map(_))).cloned()),
            (_, Some(from), _) => values.extend(call.args.iter().skip(from).cloned()),
            (_, _, Some((name, other))) => {
                values.push(value(rule, call, name).cloned().unwrap_or(Value::Text(other.to_owned())));
            }
            (name, ..) => values.extend(named_target(rule, call, name)),
        }
    }
    values
}

/// Returns the value of a target `name`, `name+.ending` (the call adds the ending), or `to/from` (what is copied into a
/// directory keeps its name).
fn named_target(rule: &CallRule, call: &Call, target: &str) -> Option<Value> {
    if let Some((name, ending)) = target.split_once('+') {
        let given = value(rule, call, name)?;
        let has_ending = given.text().is_some_and(|text| text.ends_with(ending));
        return Some(if has_ending { given.clone() } else { given.joined(&Value::Text(ending.to_owned()), false) });
    }
    let Some((to, from)) = target.split_once('/') else { return value(rule, call, target).cloned() };
    let (to, from) = (value(rule, call, to)?, value(rule, call, from));
    let is_directory = matches!(from, Some(Value::List(_))) || to.text().is_some_and(|text| text.ends_with('/'));
    match from {
        Some(from) if is_directory => {
            Some(Value::List(from.texts().into_iter().map(|text| inside(to, text)).collect()))
        }
        _ => Some(to.clone()),
    }
}

/// Returns the path of a file with the name of another one in a directory.
fn inside(dir: &Value, file: Option<String>) -> Value {
    let name = file.as_deref().and_then(|file| file.trim_end_matches('/').rsplit('/').next());
    let name = name.map_or(Value::Unknown, |name| Value::Text(name.to_owned()));
    dir.joined(&name, true)
}

/// Adds what a call does.
fn effects(rule: &CallRule, call: &Call, found: &mut Vec<CodeCall>) {
    let (class, severity) = (rule.class, rule.severity);
    let values = targets(rule, call);
    let dir = match call.option("cwd").or_else(|| call.option("chdir")) {
        Some(dir) if class.is_none() => dir.text().map_or(Directory::Unknown, |dir| Directory::Moved(dir.to_owned())),
        _ => call.dir.clone(),
    };
    // A program that is given what it reads: nobody knows what that is.
    let is_fed = call.option("input").is_some()
        || matches!(call.option("stdin"), Some(Value::Module(name)) if name.ends_with("PIPE"));
    if class.is_none() && is_fed {
        found.push(CodeCall { class, severity, argument: None, dir: dir.clone() });
    }
    let mut add = |argument: Option<String>| found.push(CodeCall { class, severity, argument, dir: dir.clone() });
    match (class, values.as_slice()) {
        // One of several lines.
        (None, [Value::Any(lines)]) => {
            lines.iter().for_each(|line| add(command_line(std::slice::from_ref(line))));
        }
        (None, [Value::Any(programs), rest @ ..]) => programs.iter().for_each(|program| {
            let words: Vec<Value> = std::iter::once(program).chain(rest).cloned().collect();
            add(command_line(&words));
        }),
        (None, _) => add(command_line(&values)),
        (Some(_), _) if rule.target.is_empty() => add(None),
        (Some(Class::Database), _) => {
            // The name of a table may stand for an unknown piece.
            // `query({text: "…"})`.
            let fields = call.args.iter().filter_map(|arg| arg.field("text").or_else(|| arg.field("sql")));
            let queries = values.iter().chain(fields).flat_map(Value::lines).map(|query| query.replace(HOLE, "x"));
            queries.filter(|query| super::sql::changes(query)).for_each(|query| add(Some(query)));
            if !rule.no_query && asks_database(&call.name) && values.iter().any(is_unseen) {
                found.push(CodeCall { class: Some(Class::ExecOpaque), severity: None, argument: None, dir });
            }
        }
        (Some(_), _) => {
            let trimmed = |text: String| match rule.mode.first() {
                // Perl's `open F, ">f"` has its mode before the path.
                Some(mode) if rule.target.iter().any(|target| target == mode) => {
                    text.trim_start_matches(['>', '<', '+', ' ']).to_owned()
                }
                _ => text,
            };
            values
                .iter()
                .flat_map(Value::texts)
                .filter(|text| !text.as_deref().is_some_and(is_stream))
                .for_each(|text| add(text.map(trimmed).filter(|text| !text.is_empty())));
        }
    }
}

/// Returns true for what PHP calls its own streams: no files.
fn is_stream(text: &str) -> bool {
    text.starts_with("php://")
}

/// Returns true for a request to this machine.
fn stays_here(call: &Call) -> bool {
    let near = ["://localhost", "://127.", "://[::1]", "://0.0.0.0"];
    let texts = call.args.iter().chain(call.named.iter().map(|(_, value)| value)).flat_map(Value::lines);
    texts.into_iter().any(|text| near.iter().any(|host| text.contains(host)))
}

/// Returns true for calls that certainly take a query; `exec` and `run` are also methods of much else.
fn asks_database(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    last.starts_with("execute") || last.ends_with("query")
}

/// Returns true for a query that the code does not tell.
fn is_unseen(query: &Value) -> bool {
    match query {
        Value::Any(items) => items.iter().any(is_unseen),
        Value::Unknown | Value::Module(_) => true,
        Value::Partial(text) => text.trim_start().starts_with(HOLE),
        _ => false,
    }
}

/// Returns the command line that a list of words is, or a single text.
fn command_line(values: &[Value]) -> Option<String> {
    match values {
        // Perl's `open P, "|rm x"`.
        [Value::Text(line)] => Some(line.trim().trim_start_matches('|').trim_end_matches('|').to_owned()),
        [Value::Partial(line)] if !line.trim_start().starts_with(HOLE) => Some(line.replace(HOLE, UNKNOWN_PIECE)),
        [] | [Value::Unknown | Value::Any(_) | Value::Number | Value::Path(None) | Value::Module(_)] => None,
        // Nobody knows the program.
        values if values.iter().flat_map(Value::texts).next().flatten().is_none() => None,
        values => {
            let words = values.iter().flat_map(Value::texts).map(|word| match word {
                Some(word) => format!("'{}'", word.replace('\'', r"'\''")),
                None => UNKNOWN_WORD.to_owned(),
            });
            Some(words.collect::<Vec<_>>().join(" "))
        }
    }
}

#[cfg(test)]
mod tests;
