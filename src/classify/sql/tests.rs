use super::{changes, writes};
use crate::classify::rules::dialect::SqlDialect;
use SqlDialect::{Clickhouse, Duckdb, Generic, Mssql, Mysql, Postgres, Sqlite};

const ALL: [SqlDialect; 10] = [
    Generic,
    Postgres,
    Mysql,
    Sqlite,
    Duckdb,
    Clickhouse,
    Mssql,
    SqlDialect::Bigquery,
    SqlDialect::Snowflake,
    SqlDialect::Oracle,
];

#[test]
fn statements_that_read() {
    let table = [
        "",
        ";;",
        "SELECT 1",
        "select a, b from t where c = 'drop table x; delete' -- delete from t",
        "SELECT /* DELETE FROM t */ \"update\" FROM t",
        "SELECT * FROM t FOR UPDATE",
        "SELECT id FROM jobs WHERE done IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
        "WITH a AS (SELECT replace(x, 'a', 'b') AS x FROM t) SELECT * FROM a",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) SELECT * FROM r",
        "EXPLAIN DELETE FROM t",
        "EXPLAIN SELECT * FROM t FOR UPDATE",
        "SHOW TABLES",
        "DESCRIBE t",
        "VALUES (1), (2)",
        "BEGIN; SELECT 1; ROLLBACK",
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'x'",
    ];
    for text in table {
        for dialect in ALL {
            assert!(!writes(text, dialect), "{dialect:?}: {text}");
        }
    }
    let own = [
        (Postgres, "TABLE t"),
        (Postgres, "\\d+ users"),
        (Postgres, "SELECT 1 \\gx"),
        (Postgres, "EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM t FOR UPDATE"),
        (Postgres, "COPY (SELECT 1) TO STDOUT"),
        (Postgres, "SELECT E'it\\'s; DROP TABLE t' AS a"),
        (Postgres, "SELECT $$; DROP TABLE t; $$"),
        (Postgres, "/* a /* nested */ ; DROP TABLE t */ SELECT 1"),
        (Postgres, "WITH a (delete, b) AS (SELECT 1, 2) SELECT * FROM a"),
        (Postgres, "SELECT t.update, t.delete FROM log t"),
        (Mysql, "SELECT 'it\\'s; DROP TABLE t' # DELETE"),
        (Mysql, "SELECT REPLACE(a, 'x', 'y') FROM t"),
        (Sqlite, ".schema"),
        (Sqlite, "SELECT [it's; drop] FROM t"),
        (Sqlite, "PRAGMA table_info(t)"),
        (Duckdb, "FROM 'a.parquet' LIMIT 5"),
        (Duckdb, "DESCRIBE SELECT * FROM 'a.csv'"),
        (Mssql, "SELECT TOP 5 [drop] FROM t"),
        (Clickhouse, "SELECT 1 FORMAT JSON"),
    ];
    for (dialect, text) in own {
        assert!(!writes(text, dialect), "{dialect:?}: {text}");
    }
}

#[test]
fn statements_that_write() {
    let table = [
        "DELETE FROM t",
        "insert into t values (1)",
        "SELECT 1; DROP TABLE t",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "WITH a AS (SELECT 1), d AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM a, d",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM a)",
        "SELECT * INTO u FROM t",
        "EXPLAIN ANALYZE DELETE FROM t",
        "SELECT pg_terminate_backend(1)",
        "TRUNCATE t",
        "VACUUM",
        "GRANT ALL ON t TO bob",
        "frobnicate",
        "SELECT (((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))); WITH d AS (DELETE FROM t) SELECT 1",
    ];
    for text in table {
        for dialect in ALL {
            assert!(writes(text, dialect), "{dialect:?}: {text}");
        }
    }
    let own = [
        (Postgres, "EXPLAIN (ANALYZE) DELETE FROM t"),
        (Postgres, "SELECT format('DROP TABLE %I', a) FROM t \\gexec"),
        (Postgres, "\\copy t from 'a.csv'"),
        (Postgres, "\\! rm a"),
        (Postgres, "COPY t FROM STDIN"),
        (Postgres, "SELECT 'a\\'; DROP TABLE t; --'"),
        (Postgres, "SELECT a # b; DROP TABLE t"),
        (Mysql, "SELECT 'a\\''; DROP TABLE t; -- '"),
        (Mysql, "SELECT 5--1; DROP TABLE t"),
        (Mysql, "SELECT 1 /*! ; DROP TABLE t */"),
        (Mysql, "SELECT * FROM t INTO OUTFILE '/tmp/x'"),
        (Sqlite, ".import a.csv t"),
        (Sqlite, "PRAGMA user_version = 3"),
        (Sqlite, "SELECT [a'] FROM t; DROP TABLE t; --'"),
        (Mssql, "SELECT * FROM t; EXEC sp_rename 'a', 'b'"),
        (Generic, "SELECT 'a\\''; DROP TABLE t"),
    ];
    for (dialect, text) in own {
        assert!(writes(text, dialect), "{dialect:?}: {text}");
    }
}

#[test]
fn strings_in_programs() {
    assert!(changes("DELETE FROM t WHERE id = ?") && changes("with d as (delete from t) select 1"));
    assert!(!changes("SELECT * FROM t FOR UPDATE") && !changes("update") && !changes("hello world"));
}

#[test]
fn a_change_is_told_by_its_place() {
    let writes = |text: &str| writes(text, Postgres);
    assert!(!writes("SELECT update FROM t FOR UPDATE"));
    assert!(writes("SELECT * FROM (WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d) x"));
    assert!(writes("SELECT 1 UNION (WITH d AS (UPDATE t SET a = 1 RETURNING a) SELECT a FROM d)"));
    assert!(writes("SELECT * FROM a JOIN (SELECT * INTO u FROM t) b ON true"));
    assert!(writes("EXPLAIN (ANALYZE, BUFFERS) WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d"));
    assert!(
        writes("EXPLAIN ANALYZE VERBOSE UPDATE t SET a = 1") && writes("EXPLAIN ANALYZE CREATE TABLE u AS SELECT 1")
    );
}

#[test]
fn hostile_queries_end_soon() {
    let started = std::time::Instant::now();
    let mut texts = Vec::new();
    for many in [100, 500, 10_000] {
        for unit in [
            "(",
            "((SELECT ",
            "NOT ",
            "- ",
            "CASE WHEN ",
            "EXPLAIN ",
            "INSERT ",
            "BEGIN ",
            "f(",
            "[",
            "{'a':",
            "ARRAY[",
            "1+",
            "1 AND ",
            "SELECT * FROM (",
            "WITH d AS (",
            "1 UNION SELECT ",
            "a JOIN (",
            "CAST(a AS ARRAY<",
            "/*",
            "'",
            "$$",
            "a::",
            "INTERVAL ",
            "x -> ",
            "EXISTS(SELECT ",
            ";SELECT ",
            "é",
        ] {
            texts.push(format!("SELECT delete {}", unit.repeat(many)));
            texts.push(format!("SELECT delete FROM {}", unit.repeat(many)));
            texts.push(format!("WITH {}", unit.repeat(many)));
        }
    }
    for text in &texts {
        for dialect in [Generic, Postgres, Mysql, Mssql, Duckdb] {
            writes(text, dialect);
        }
    }
    let each = started.elapsed() / u32::try_from(texts.len() * 5).expect("few");
    println!("{each:?} each");
    // Nothing blows up; what it costs is counted elsewhere.
    assert!(each < std::time::Duration::from_millis(500), "{each:?}");
}
