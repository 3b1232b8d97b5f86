//! Tells whether SQL only reads.
//!
//! Statements are told by their first word (`split` takes literals and comments out first). One that begins as a query and has
//! no word that changes anything, wherever it stands, reads. Where there is such a word, a parser of SQL in the client's own
//! dialect says whether it is a column, a lock or a statement (`WITH d AS (DELETE …)`). The places where a statement can begin
//! decide what the parser cannot read. In doubt it writes.

mod parse;
mod split;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;

use super::rules::dialect::SqlDialect;
use split::{Statement, split};

/// First words of statements that read, or that change no more than the session.
const READS: &str = "select show explain describe desc table values with use set begin start commit rollback end savepoint \
    release declare fetch close list help pragma analyze print status from";
/// First words behind which a parser is asked.
const QUERIES: [&str; 6] = ["select", "with", "explain", "table", "values", "from"];
/// Words that change data or tables; as a column's name they do not.
const CHANGES: [&str; 10] =
    ["insert", "update", "delete", "merge", "replace", "drop", "truncate", "alter", "create", "call"];

static DOING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_drop_[a-z_]+|pg_promote|pg_switch_wal|setval|nextval|\
        lo_unlink|lo_import|lo_export|dblink_exec|load_extension|writefile|xp_cmdshell|sys_exec|sys_eval|query_to_xml";
    Regex::new(&format!(r"(?i-u)\b(?:{names})\s*\(")).ok()
});

/// Returns whether a string in a program is SQL that changes something. Strings that are no SQL are not.
pub fn changes(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let sql = CHANGES.contains(&first.as_str()) || matches!(first.as_str(), "with" | "grant" | "revoke");
    sql && text.contains(char::is_whitespace) && writes(text, SqlDialect::Generic)
}

/// Returns whether SQL, or the client commands that go with it, may change anything.
pub fn writes(text: &str, dialect: SqlDialect) -> bool {
    // To some a backslash escapes a quote, to others it does not; what follows may be a literal or a statement.
    let otherwise = dialect == SqlDialect::Generic && text.contains('\\');
    writes_in(text, dialect) || otherwise && writes_in(text, SqlDialect::Mysql)
}

fn writes_in(text: &str, dialect: SqlDialect) -> bool {
    let (statements, commands) = split(text, dialect);
    if commands.iter().any(|command| command_writes(command)) {
        return true;
    }
    let mut doubtful = Vec::new();
    for statement in &statements {
        match judged(statement) {
            Judged::Reads => {}
            Judged::Writes => return true,
            Judged::Doubtful => doubtful.push(statement),
        }
    }
    let texts: Vec<&str> = doubtful.iter().map(|statement| statement.text).collect();
    let parsed = parse::queries(&texts, dialect);
    doubtful.iter().zip(parsed).any(|(statement, parsed)| match parsed {
        // Which client reads it is not known: both readings must agree that it reads.
        Some(writes) => writes || dialect == SqlDialect::Generic && may_change(&statement.bare),
        None => may_change(&statement.bare),
    })
}

/// Commands of the clients themselves.
fn command_writes(line: &str) -> bool {
    let first = line.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    match first.as_str() {
        "\\copy" => line.to_ascii_lowercase().contains(" from "),
        "\\i" | "\\ir" | "\\include" | "\\include_relative" | "\\!" | "\\gexec" | "\\lo_import" | "\\lo_unlink"
        | "\\password" | "\\." | "\\o" | "\\w" | "\\e" | "\\ef" | "source" => true,
        ".read" | ".import" | ".restore" | ".clone" | ".load" | ".shell" | ".system" | ".recover" | ".output"
        | ".once" | ".backup" | ".save" | ".archive" | ".ar" => true,
        _ => false,
    }
}

enum Judged {
    Reads,
    Writes,
    Doubtful,
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

fn judged(statement: &Statement<'_>) -> Judged {
    let bare = statement.bare.as_str();
    let said = |writes| if writes { Judged::Writes } else { Judged::Reads };
    let Some(first) = words(bare).next() else { return Judged::Reads };
    let mut rest = words(bare).skip(1);
    match first {
        _ if DOING.as_ref().is_some_and(|pattern| pattern.is_match(bare)) => Judged::Writes,
        "copy" => said(!bare.contains(" to ") || bare.contains(" from ")),
        "pragma" => said(bare.contains('=') || rest.any(|word| matches!(word, "writable_schema" | "wal_checkpoint"))),
        "set" => said(rest.any(|word| matches!(word, "global" | "persist" | "password"))),
        _ if QUERIES.contains(&first) => {
            if rest.any(|word| CHANGES.contains(&word) || word == "into") {
                Judged::Doubtful
            } else {
                Judged::Reads
            }
        }
        _ => said(!words(READS).any(|read| read == first)),
    }
}

/// Returns what a query that no parser reads may do, by the places of its words.
fn may_change(bare: &str) -> bool {
    let mut rest = words(bare).skip(1);
    match words(bare).next().unwrap_or_default() {
        "explain" => rest.any(|word| word == "analyze") && (changes_inside(bare) || rest.any(is_data_change)),
        "with" => changes_inside(bare) || rest.any(|word| word == "into"),
        _ => rest.any(|word| word == "into") || changes_inside(bare),
    }
}

fn is_data_change(word: &str) -> bool {
    matches!(word, "insert" | "update" | "delete" | "merge" | "replace")
}

/// Returns whether a changing statement stands in parentheses or behind them: `WITH d AS (DELETE …)`, `WITH d AS (…) DELETE …`,
/// but not `… FOR UPDATE` or a column of that name.
fn changes_inside(statement: &str) -> bool {
    statement.split(['(', ')']).skip(1).any(|piece| {
        let mut words = words(piece);
        words.next().is_some_and(is_data_change) && words.next().is_some()
    })
}
