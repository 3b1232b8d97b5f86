//! SQL to statements, with comments and literals taken out, as far as the client's dialect says what these are.

use crate::classify::rules::dialect::SqlDialect;

/// Returns the statements of a text, in lower case and with a blank for each comment and literal, and the client's own
/// commands that stand between them.
pub(super) fn split(text: &str, dialect: SqlDialect) -> (Vec<String>, Vec<&str>) {
    let (mut statements, mut commands) = (Vec::new(), Vec::new());
    let (mut bare, mut at, mut fresh) = (String::new(), 0, true);
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if fresh && matches!(letter, '\\' | '.') || letter == '\\' && dialect == SqlDialect::Postgres {
            let length = rest.find('\n').unwrap_or(rest.len());
            commands.push(&rest[..length]);
            bare.push(' ');
            at += length;
            continue;
        }
        let skipped = literal(rest, &bare, dialect);
        if skipped > 0 {
            bare.push(' ');
            at += skipped;
            fresh = false;
            continue;
        }
        at += letter.len_utf8();
        fresh = letter == '\n' || fresh && letter.is_whitespace();
        if letter == ';' {
            statements.push(std::mem::take(&mut bare));
        } else {
            bare.push(letter.to_ascii_lowercase());
        }
    }
    statements.push(bare);
    (statements, commands)
}

/// Returns the length of a comment or literal at the start of a text, if one begins there.
fn literal(rest: &str, before: &str, dialect: SqlDialect) -> usize {
    use SqlDialect::{Bigquery, Clickhouse, Mssql, Mysql, Postgres, Snowflake, Sqlite};
    let line_end = || rest.find('\n').unwrap_or(rest.len());
    let escapes = matches!(dialect, Mysql | Bigquery | Clickhouse | Snowflake);
    let bytes = rest.as_bytes();
    match bytes.first() {
        // To MySQL two dashes are a comment only in front of a blank.
        Some(b'-') if bytes.get(1) == Some(&b'-') => {
            let comment = dialect != Mysql || bytes.get(2).is_none_or(u8::is_ascii_whitespace);
            if comment { line_end() } else { 0 }
        }
        Some(b'#') if matches!(dialect, Mysql | Bigquery | Clickhouse) => line_end(),
        // MySQL runs the text of these comments.
        Some(b'/') if rest.starts_with("/*!") || rest.starts_with("/*M!") => 0,
        Some(b'/') if bytes.get(1) == Some(&b'*') => block(rest, dialect == Postgres),
        Some(b'\'') => quoted(rest, b'\'', escapes || dialect == Postgres && after_e(before)),
        Some(b'"') => quoted(rest, b'"', escapes),
        Some(b'`') => quoted(rest, b'`', false),
        Some(b'[') if matches!(dialect, Mssql | Sqlite) => rest.find(']').map_or(rest.len(), |at| at + 1),
        Some(b'$') => dollar_quoted(rest),
        _ => 0,
    }
}

/// Returns whether a quote opens an `E'…'`.
fn after_e(before: &str) -> bool {
    let mut letters = before.chars().rev();
    letters.next() == Some('e') && letters.next().is_none_or(|letter| !letter.is_alphanumeric() && letter != '_')
}

fn block(rest: &str, nests: bool) -> usize {
    let bytes = rest.as_bytes();
    let (mut at, mut depth) = (2, 1usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(b"/*") if nests => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

fn quoted(rest: &str, quote: u8, escapes: bool) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if escapes && bytes[at] == b'\\' { 2 } else { 1 };
    }
    let end = (at + 1).min(bytes.len());
    // A backslash in front of the end, or of a letter of several bytes.
    (end..=bytes.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(bytes.len())
}

fn dollar_quoted(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$').map(|at| at + 2) else {
        return 0;
    };
    let tag = &rest[..end];
    if !tag[1..end - 1].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return 0;
    }
    rest[end..].find(tag).map_or(rest.len(), |at| end + at + tag.len())
}
