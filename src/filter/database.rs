//! Files that programs are known to write through mappings, which may move no time: databases.

/// Endings of names.
const ENDINGS: &[&str] = &[
    ".db",
    ".db3",
    ".sqlite",
    ".sqlite3",
    ".sqlitedb",
    ".s3db",
    ".mdb",
    ".lmdb",
    ".ldb",
    ".fdb",
    ".realm",
    ".mmkv",
    ".bdb",
    ".kch",
    ".kct",
    ".tdb",
    ".gdbm",
    ".dbm",
    ".duckdb",
    ".nedb",
    ".h2.db",
    "-wal",
    "-shm",
];

/// Whether a file's name is a database's. Such a file is read again, whatever its times say, as long as somebody has it open
/// for writing.
pub fn is_database(name: &[u8]) -> bool {
    let ends = |ending: &&str| {
        let at = name.len().checked_sub(ending.len());
        at.is_some_and(|at| name[at..].eq_ignore_ascii_case(ending.as_bytes()))
    };
    ENDINGS.iter().any(ends)
}

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
        }
    }
}
