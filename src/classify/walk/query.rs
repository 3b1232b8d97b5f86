//! Tells whether a redis command or a mongo script only reads. When in doubt it writes.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::words::REDIS_READS;

static MONGO_WRITES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let calls = "insert\\w*|update\\w*|delete\\w*|remove\\w*|replace\\w*|drop\\w*|save|bulkWrite|findOneAnd\\w+|findAndModify|\
        create\\w+|rename\\w*|mapReduce|shutdownServer|killOp|grant\\w+|revoke\\w+|compact|convertToCapped|setProfilingLevel|\
        fsyncLock|addShard|reconfig|stepDown|initiate";
    Regex::new(&format!(r"\.\s*(?:{calls})\s*\(|\$out|\$merge|\brs\.(?:remove|add)\b|\bload\s*\(")).ok()
});

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
    MONGO_WRITES.as_ref().is_none_or(|pattern| pattern.is_match(code))
}
