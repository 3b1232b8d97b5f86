//! Queries read by a parser of SQL.
//!
//! It is only asked about queries with a word in them that may change something. Its recursion is bounded in most places, not
//! in all, and each level takes up to 20 KiB of stack: it gets short texts only, and a thread of its own to run in.

use std::thread;

use sqlparser::ast::{Query, SetExpr, Statement, TableFactor, TableWithJoins};
use sqlparser::dialect::{
    BigQueryDialect, ClickHouseDialect, Dialect, DuckDbDialect, GenericDialect, MsSqlDialect, MySqlDialect,
    OracleDialect, PostgreSqlDialect, SQLiteDialect, SnowflakeDialect,
};
use sqlparser::parser::Parser;

use crate::classify::rules::dialect::SqlDialect;

/// Most statements of one text that are parsed.
const MAX_STATEMENTS: usize = 16;
/// Longest statement that is parsed.
const MAX_BYTES: usize = 16 * 1024;
/// Most words and signs of a statement that is parsed.
const MAX_TOKENS: usize = 600;
/// Levels of nesting, as the parser counts them.
const MAX_DEPTH: usize = 24;
/// Eight times what the worst of 10,000 made-up texts within these limits took.
const STACK: usize = 8 << 20;

/// Returns whether queries change something; `None` for each that cannot be read.
pub fn queries(texts: &[&str], dialect: SqlDialect) -> Vec<Option<bool>> {
    let short = |text: &str| text.len() <= MAX_BYTES && tokens(text) <= MAX_TOKENS;
    let mut answers: Vec<Option<bool>> = vec![None; texts.len()];
    let texts = &texts[..texts.len().min(MAX_STATEMENTS)];
    if !texts.iter().any(|text| short(text)) {
        return answers;
    }
    let read = |text: &&str| if short(text) { changes(text, dialect) } else { None };
    let parsed = thread::scope(|scope| {
        let parse = || texts.iter().map(read).collect::<Vec<_>>();
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, parse);
        // No thread to be had, or a bug of the parser: nothing was read.
        thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_default()
    });
    answers.iter_mut().zip(parsed).for_each(|(answer, parsed)| *answer = parsed);
    answers
}

/// Words and signs of a text, roughly.
fn tokens(text: &str) -> usize {
    let mut inside_word = false;
    let starts = text.bytes().filter(|byte| {
        let word = byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        let continues = byte.is_ascii_whitespace() || word && inside_word;
        inside_word = word;
        !continues
    });
    starts.count()
}

fn changes(text: &str, dialect: SqlDialect) -> Option<bool> {
    let dialect: &dyn Dialect = match dialect {
        SqlDialect::Generic => &GenericDialect {},
        SqlDialect::Postgres => &PostgreSqlDialect {},
        SqlDialect::Mysql => &MySqlDialect {},
        SqlDialect::Sqlite => &SQLiteDialect {},
        SqlDialect::Duckdb => &DuckDbDialect {},
        SqlDialect::Clickhouse => &ClickHouseDialect {},
        SqlDialect::Mssql => &MsSqlDialect {},
        SqlDialect::Bigquery => &BigQueryDialect {},
        SqlDialect::Snowflake => &SnowflakeDialect {},
        SqlDialect::Oracle => &OracleDialect {},
    };
    let parser = Parser::new(dialect).with_recursion_limit(MAX_DEPTH).try_with_sql(text);
    let statements = parser.and_then(|mut parser| parser.parse_statements()).ok()?;
    Some(statements.iter().any(statement_changes))
}

fn statement_changes(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => query_changes(query),
        Statement::Explain { analyze, options, statement, .. } => {
            let option = |name: &str| name.eq_ignore_ascii_case("analyze");
            let analyzes = *analyze || options.iter().flatten().any(|given| option(&given.name.value));
            analyzes && statement_changes(statement)
        }
        Statement::ExplainTable { .. } => false,
        _ => true,
    }
}

fn query_changes(query: &Query) -> bool {
    let named = query.with.iter().flat_map(|with| &with.cte_tables);
    named.into_iter().any(|table| query_changes(&table.query)) || set_changes(&query.body)
}

fn set_changes(set: &SetExpr) -> bool {
    match set {
        SetExpr::Select(select) => select.into.is_some() || select.from.iter().any(source_changes),
        SetExpr::Query(query) => query_changes(query),
        SetExpr::SetOperation { left, right, .. } => set_changes(left) || set_changes(right),
        SetExpr::Values(_) | SetExpr::Table(_) => false,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => true,
    }
}

fn source_changes(source: &TableWithJoins) -> bool {
    let joined = source.joins.iter().map(|join| &join.relation);
    std::iter::once(&source.relation).chain(joined).any(|table| match table {
        TableFactor::Derived { subquery, .. } => query_changes(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => source_changes(table_with_joins),
        // The others have no statements inside.
        _ => false,
    })
}
