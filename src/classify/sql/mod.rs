//! Tells whether SQL only reads.
//!
//! Statements are told by their first word (`split` takes literals and comments out first). One that begins as a query and has
//! no word that changes anything, wherever it stands, reads. Where there is such a word, its place tells a column or a lock
//! (`… FOR UPDATE`) from a statement (`WITH d AS (DELETE …)`). In doubt it writes.

mod split;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use regex::Regex;

use super::rules::dialect::SqlDialect;
use split::split;

/// First words of statements that read, or that change no more than the session.
const READS: &str = "select show explain describe desc table values with use set begin start commit rollback end savepoint \
    release declare fetch close list help pragma analyze print status from summarize pivot unpivot";
/// First words behind which the places of words are looked at.
const QUERIES: [&str; 6] = ["select", "with", "explain", "table", "values", "from"];
/// Words that change data or tables; as a column's name they do not.
const CHANGES: [&str; 10] =
    ["insert", "update", "delete", "merge", "replace", "drop", "truncate", "alter", "create", "call"];

static DOING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = "pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_drop_[a-z_]+|pg_promote|pg_switch_wal|setval|nextval|\
        lo_unlink|lo_import|lo_export|dblink_exec|load_extension|writefile|pg_write_file|pg_file_[a-z]+|cron[.][a-z_]+|drop_chunks|lo_put|lowrite|lo_from_bytea|\
        http_(?:post|put|delete|patch)|net[.]http_[a-z]+|pg_rotate_logfile|pg_logical_emit_message|pg_create_[a-z_]+|xp_cmdshell|sys_exec|sys_eval|query_to_xml";
    Regex::new(&format!(r"(?i-u)\b(?:{names})\s*\(")).ok()
});

/// Returns whether a string in a program is SQL that changes something. Strings that are no SQL are not.
pub(super) fn changes(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let sql = CHANGES.contains(&first.as_str()) || matches!(first.as_str(), "with" | "grant" | "revoke");
    sql && text.contains(char::is_whitespace) && writes(text, SqlDialect::Generic)
}

/// Returns whether SQL, or the client commands that go with it, may change anything.
pub(super) fn writes(text: &str, dialect: SqlDialect) -> bool {
    // To some a backslash escapes a quote, to others it does not; what follows may be a literal or a statement.
    let otherwise = dialect == SqlDialect::Generic && text.contains('\\');
    writes_in(text, dialect) || otherwise && writes_in(text, SqlDialect::Mysql)
}

fn writes_in(text: &str, dialect: SqlDialect) -> bool {
    let (statements, commands) = split(text, dialect);
    if commands.iter().any(|command| command_writes(command)) {
        return true;
    }
    // The server writes the file, or runs the program; duckdb is no server.
    let copies_out = |bare: &String| {
        dialect != SqlDialect::Duckdb && bare.starts_with("copy") && bare.contains(" to ") && !bare.contains("stdout")
    };
    statements.iter().any(|bare| copies_out(bare) || statement_writes(bare))
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

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// Returns whether a statement may change anything; it comes in lower case, without comments and literals.
fn statement_writes(bare: &str) -> bool {
    let Some(first) = words(bare).next() else { return false };
    let mut rest = words(bare).skip(1);
    match first {
        _ if DOING.as_ref().is_some_and(|pattern| pattern.is_match(bare)) => true,
        "copy" => !bare.contains(" to ") || bare.contains(" from "),
        "pragma" => bare.contains('=') || rest.any(|word| matches!(word, "writable_schema" | "wal_checkpoint")),
        "set" => rest.any(|word| matches!(word, "global" | "persist" | "password")),
        _ if QUERIES.contains(&first) => query_writes(bare),
        _ => !words(READS).any(|read| read == first),
    }
}

/// Returns whether a query may change anything, by the places of its words.
fn query_writes(bare: &str) -> bool {
    if words(bare).next() == Some("explain") {
        // Only with ANALYZE it runs.
        return words(bare).any(|word| word == "analyze") && explained(bare).is_none_or(inner_writes);
    }
    words(bare).any(|word| word == "into") || changes_inside(bare)
}

fn inner_writes(statement: &str) -> bool {
    words(statement).next().is_some_and(|first| CHANGES.contains(&first)) || query_writes(statement)
}

/// Returns the statement behind EXPLAIN and its options.
fn explained(bare: &str) -> Option<&str> {
    let mut rest = bare;
    while let Some(word) = words(rest).next() {
        let at = rest.find(word)?;
        if word != "explain" && (QUERIES.contains(&word) || CHANGES.contains(&word)) {
            return Some(&rest[at..]);
        }
        rest = &rest[at + word.len()..];
    }
    None
}

fn is_data_change(word: &str) -> bool {
    matches!(word, "insert" | "update" | "delete" | "merge" | "replace")
}

/// Returns whether a changing statement stands in parentheses or behind them: `WITH d AS (DELETE …)`,
/// `WITH d AS (…) DELETE …`, but not `… FOR UPDATE` or a column of that name.
fn changes_inside(statement: &str) -> bool {
    statement.split(['(', ')']).skip(1).any(|piece| {
        let Some(word) = words(piece).next().filter(|word| is_data_change(word)) else { return false };
        let behind = piece.split_once(word).map_or("", |(_, behind)| behind.trim_start());
        // Behind a column's name stands a comma, or nothing.
        behind.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    })
}
