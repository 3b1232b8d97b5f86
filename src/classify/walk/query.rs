//! Tells whether a redis command or a mongo script only reads. When in doubt it writes.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::words::REDIS_READS;

static MONGO_WRITES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let calls = "insert\\w*|update\\w*|delete\\w*|remove\\w*|replace\\w*|drop\\w*|save|bulkWrite|findOneAnd\\w+|findAndModify|\
        create\\w+|rename\\w*|mapReduce|shutdownServer|killOp|grant\\w+|revoke\\w+|compact|convertToCapped|setProfilingLevel|\
        fsyncLock|addShard|reconfig|stepDown|initiate";
    // Unicode word classes take milliseconds to compile, and these calls are ASCII. Unicode spaces are allowed.
    Regex::new(&format!(
        r"(?-u)\.(?u:\s)*(?:{calls})(?u:\s)*\(|\$out|\$merge|\brs\.(?:remove|add)\b|\bload(?u:\s)*\(|\bdb(?:\.(?u:[^\[(.]+))*\[(?u:[^\]]*)\](?u:\s)*\("
    ))
    .ok()
});

/// The name of the command in `runCommand({NAME: …})`.
static MONGO_COMMAND: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?-u)\b(?:runCommand|adminCommand)(?u:\s)*\((?u:\s)*\{?(?u:\s)*["']?(\w*)"#).ok());

/// Commands of a mongo server that only read.
const MONGO_READS: [&str; 31] = [
    "find",
    "count",
    "distinct",
    "aggregate",
    "explain",
    "ping",
    "hello",
    "isMaster",
    "ismaster",
    "buildInfo",
    "serverStatus",
    "dbStats",
    "dbstats",
    "collStats",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "getParameter",
    "connPoolStats",
    "connectionStatus",
    "currentOp",
    "top",
    "hostInfo",
    "replSetGetStatus",
    "replSetGetConfig",
    "usersInfo",
    "rolesInfo",
    "getLog",
    "validate",
    "dataSize",
    "whatsmyuri",
];

/// Returns whether a redis command (its words) may change anything.
pub(super) fn redis_writes(words: &[&str]) -> bool {
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
        command => !REDIS_READS.contains(&command),
    }
}

/// Returns whether a mongo script may change anything.
pub(super) fn mongo_writes(code: &str) -> bool {
    let commands = MONGO_COMMAND.as_ref().into_iter().flat_map(|pattern| pattern.captures_iter(code));
    commands.into_iter().any(|command| !MONGO_READS.contains(&&command[1]))
        || MONGO_WRITES.as_ref().is_none_or(|pattern| pattern.is_match(code))
}
