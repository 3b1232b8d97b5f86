//! Whether a query only reads: SQL, redis commands, mongo scripts. No parser; when in doubt it writes.

use std::sync::LazyLock;

use regex::Regex;

const READS: [&str; 27] = [
    "select",
    "show",
    "explain",
    "describe",
    "desc",
    "table",
    "values",
    "with",
    "use",
    "set",
    "begin",
    "start",
    "commit",
    "rollback",
    "end",
    "savepoint",
    "release",
    "declare",
    "fetch",
    "close",
    "list",
    "help",
    "pragma",
    "analyze",
    "print",
    "status",
    "from",
];
const DATA_CHANGES: [&str; 10] =
    ["insert", "update", "delete", "merge", "replace", "drop", "truncate", "alter", "create", "call"];

const REDIS_READS: &str = "get mget strlen getrange exists ttl pttl type keys scan hscan sscan zscan hget hgetall hmget hkeys hvals \
    hlen hexists lrange llen lindex smembers scard sismember srandmember zrange zrangebyscore zrevrange zcard zscore zcount zrank \
    info ping echo dbsize memory object monitor time lastsave role command latency slowlog help auth select hello client cluster \
    xrange xlen xread xinfo xrevrange bitcount getbit pfcount geopos geodist geosearch dump subscribe psubscribe pubsub randomkey \
    config acl module debug wait lolwut quit exit readonly touch expiretime sinter sunion sdiff zrevrangebyscore";

static MONGO_WRITES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let calls = "insert\\w*|update\\w*|delete\\w*|remove\\w*|replace\\w*|drop\\w*|save|bulkWrite|findOneAnd\\w+|findAndModify|\
        create\\w+|rename\\w*|mapReduce|shutdownServer|killOp|grant\\w+|revoke\\w+|compact|convertToCapped|setProfilingLevel|\
        fsyncLock|addShard|reconfig|stepDown|initiate";
    Regex::new(&format!(r"\.\s*(?:{calls})\s*\(|\$out|\$merge|\brs\.(?:remove|add)\b|\bload\s*\(")).ok()
});

static DOING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_drop_\w+|setval|nextval|lo_unlink|lo_import|dblink_exec|load_extension|writefile)\s*\(").ok()
});

/// Whether a string in a program is SQL that changes something. Strings that are no SQL are not.
pub fn changing_sql(text: &str) -> bool {
    let first = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let sql = DATA_CHANGES.contains(&first.as_str()) || matches!(first.as_str(), "with" | "grant" | "revoke");
    sql && text.contains(char::is_whitespace) && sql_writes(text)
}

/// Whether SQL, or the client commands that go with it, may change anything.
pub fn sql_writes(text: &str) -> bool {
    let (bare, commands) = strip(text);
    commands.iter().any(|command| client_command_writes(command)) || bare.split(';').any(statement_writes)
}

fn client_command_writes(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    match first.as_str() {
        "\\copy" => line.to_ascii_lowercase().contains(" from "),
        "\\i" | "\\ir" | "\\include" | "\\!" | "\\gexec" | "\\lo_import" | "\\lo_unlink" | "\\password" | "\\."
        | "source" => true,
        ".read" | ".import" | ".restore" | ".clone" | ".load" | ".shell" | ".system" | ".recover" => true,
        _ => false,
    }
}

fn statement_writes(statement: &str) -> bool {
    let lower = statement.to_ascii_lowercase();
    let mut words =
        lower.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    if !READS.contains(&first) {
        return match first {
            "copy" => !lower.contains(" to ") || lower.contains(" from "),
            "vacuum" | "reindex" | "optimize" | "check" => true,
            "exec" | "execute" => true,
            _ => true,
        };
    }
    let rest: Vec<&str> = words.collect();
    let changes = || rest.iter().any(|word| DATA_CHANGES.contains(word));
    match first {
        "explain" => {
            rest.contains(&"analyze")
                && rest.iter().any(|word| matches!(*word, "insert" | "update" | "delete" | "merge"))
        }
        "with" => changes_inside(&lower),
        "select" => rest.contains(&"into") || does(&lower),
        "pragma" => {
            lower.contains('=')
                || rest.iter().any(|word| matches!(*word, "writable_schema" | "wal_checkpoint")) && changes()
        }
        "set" => rest.iter().any(|word| matches!(*word, "global" | "persist" | "password")),
        _ => false,
    }
}

/// Whether a changing statement stands in parentheses or behind them: `WITH d AS (DELETE …)`, `WITH d AS (…) DELETE …`,
/// but not `… FOR UPDATE` or a column of that name.
fn changes_inside(statement: &str) -> bool {
    let after = statement.split(['(', ')']).skip(1);
    after.map(|piece| piece.split(|letter: char| !letter.is_alphanumeric() && letter != '_')).any(|mut words| {
        let first = words.find(|word| !word.is_empty());
        first.is_some_and(|word| matches!(word, "insert" | "update" | "delete" | "merge" | "replace"))
            && words.any(|word| !word.is_empty())
    })
}

fn does(statement: &str) -> bool {
    DOING.as_ref().is_some_and(|pattern| pattern.is_match(statement))
}

/// The text without comments and literals, and the client commands that stood on lines of their own.
fn strip(text: &str) -> (String, Vec<String>) {
    let bytes = text.as_bytes();
    let (mut bare, mut commands) = (String::with_capacity(text.len()), Vec::new());
    let mut at = 0;
    let mut line_is_fresh = true;
    while at < bytes.len() {
        let rest = &text[at..];
        if line_is_fresh && rest.starts_with(['\\', '.']) {
            let length = rest.find('\n').unwrap_or(rest.len());
            commands.push(rest[..length].to_owned());
            at += length;
            continue;
        }
        let skipped = skip_literal(rest);
        if skipped > 0 {
            bare.push(' ');
            at += skipped;
            line_is_fresh = false;
            continue;
        }
        let letter = rest.chars().next().unwrap_or(' ');
        line_is_fresh = letter == '\n' || line_is_fresh && letter.is_whitespace();
        bare.push(letter);
        at += letter.len_utf8();
    }
    (bare, commands)
}

/// The length of a comment or literal at the start of a text.
fn skip_literal(rest: &str) -> usize {
    let until = |from: usize, closer: &str| rest[from..].find(closer).map_or(rest.len(), |at| from + at + closer.len());
    if rest.starts_with("--") || rest.starts_with('#') {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*!") {
        return 0;
    }
    if rest.starts_with("/*") {
        return until(2, "*/");
    }
    match rest.as_bytes().first() {
        Some(b'\'') => until(1, "'"),
        Some(b'"') => until(1, "\""),
        Some(b'`') => until(1, "`"),
        Some(b'$') => dollar_quote(rest),
        _ => 0,
    }
}

fn dollar_quote(rest: &str) -> usize {
    let Some(end) = rest[1..].find('$').map(|at| at + 2) else {
        return 0;
    };
    let tag = &rest[..end];
    if !tag[1..end - 1].bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return 0;
    }
    rest[end..].find(tag).map_or(rest.len(), |at| end + at + tag.len())
}

/// Whether a redis command (its words) may change anything.
pub fn redis_writes(words: &[&str]) -> bool {
    let Some(command) = words.first() else { return false };
    let command = command.to_ascii_lowercase();
    let sub = words.get(1).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    match command.as_str() {
        "config" => !matches!(sub.as_str(), "get" | "help"),
        "acl" => !matches!(sub.as_str(), "list" | "whoami" | "users" | "getuser" | "cat" | "log" | "help"),
        "client" => matches!(sub.as_str(), "kill" | "pause" | "unblock"),
        "cluster" => !matches!(
            sub.as_str(),
            "info" | "nodes" | "slots" | "shards" | "keyslot" | "myid" | "countkeysinslot" | "help"
        ),
        "script" => !matches!(sub.as_str(), "exists" | "help"),
        "module" => sub != "list",
        "slowlog" | "latency" => sub == "reset",
        "memory" => sub == "purge",
        "debug" | "xgroup" => true,
        "sort" => words.iter().any(|word| word.eq_ignore_ascii_case("store")),
        command => !REDIS_READS.split_ascii_whitespace().any(|read| read == command),
    }
}

/// Whether a mongo script may change anything.
pub fn mongo_writes(code: &str) -> bool {
    MONGO_WRITES.as_ref().is_none_or(|pattern| pattern.is_match(code))
}
