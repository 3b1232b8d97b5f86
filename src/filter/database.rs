//! Files that programs are known to write through mappings, which may move no time: databases.

use crate::model::words::DATABASE_ENDINGS;

/// Tells whether a file's name is a database's. Such a file is read again, whatever its times say, while a process has
/// it open for writing.
pub fn is_database(name: &[u8]) -> bool {
    // Called for every file of a scan: for most names the last few bytes decide.
    let tail = &name[name.len().saturating_sub(LONGEST)..];
    let Some(at) = tail.iter().rposition(|byte| matches!(byte, b'.' | b'-')) else { return false };
    let ending = &tail[at..];
    DATABASE_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns true for the names of files that programs write all the time: databases and logs.
pub fn is_restless(name: &[u8]) -> bool {
    is_database(name) || name.len() > 4 && name[name.len() - 4..].eq_ignore_ascii_case(b".log")
}

/// Bytes of the longest ending.
const LONGEST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_the_ending() {
        for (name, expected) in [
            ("app.db", true),
            ("APP.SQLITE3", true),
            ("data.mdb", true),
            ("app.db-wal", true),
            (".db", true),
            ("db", false),
            ("app.db.rs", false),
            ("dbx", false),
        ] {
            assert_eq!(is_database(name.as_bytes()), expected, "{name}");
            assert_eq!(is_restless(name.as_bytes()), expected, "{name}");
        }
        let logs = [("dev.log", true), ("DEV.LOG", true), ("log", false), (".log", false), ("a.log.rs", false)];
        logs.iter().for_each(|(name, expected)| assert_eq!(is_restless(name.as_bytes()), *expected, "{name}"));
    }
}
