//! Takes secrets out of commands before they are recorded or shown.
//!
//! Patterns for the usual shapes: `KEY=value` and `--password value` whose name says secret, credentials in URLs,
//! `Authorization` headers, `-pPASSWORD` of the MySQL clients, and token formats that carry their own prefix. What is not
//! recognised stays: redaction lowers the risk, it does not remove it.

use std::sync::LazyLock;

use regex::Regex;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let value = r#"("[^"]*"|'[^']*'|[^\s'"&;|]+)"#;
    let name = r"[A-Za-z0-9_-]*(?:passw(?:or)?d|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth)[A-Za-z0-9_-]*";
    let table = [
        (r"(?i)(authorization:\s*)(?:[a-z]+\s+)?[^\s'\x22]+".to_owned(), "$1***"),
        (format!(r#"(?i)\b({name}['"]?\s*[=:]\s*){value}"#), "$1***"),
        (format!(r"(?i)((?:--?|\bset\s+){name}\s+){value}"), "$1***"),
        (r"(?i)\b(bearer\s+)[a-z0-9._~+/=-]{8,}".to_owned(), "$1***"),
        (r"([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@'\x22]*):[^\s/@'\x22]+@".to_owned(), "$1:***@"),
        (r"(?i)(https?://)[^\s/:@'\x22]+@".to_owned(), "$1***@"),
        (r"\b((?:mysql|mysqldump|mysqladmin|mariadb)\b.*?\s['\x22]?-p['\x22]?)[^\s'\x22]+".to_owned(), "$1***"),
        (format!(r"\b((?:redis-cli\b.*?\s-a|sshpass\s+-p|docker\s+login\b.*?\s-p)\s*){value}"), "$1***"),
        (r"(?i)(\s(?:-u|--user)[\s=]*['\x22]?[^\s:'\x22]+):[^\s'\x22]+".to_owned(), "$1:***"),
        (
            r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{8,}|AKIA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{8,})".to_owned(),
            "***",
        ),
    ];
    let compiled = table.into_iter().filter_map(|(pattern, with)| Regex::new(&pattern).ok().map(|regex| (regex, with)));
    compiled.collect()
});

/// Each pattern matches only what holds one of these, in small letters.
const SIGNS: &[&str] = &[
    "auth",
    "passw",
    "pwd",
    "secret",
    "token",
    "api",
    "access",
    "private",
    "credential",
    "bearer",
    "://",
    "mysql",
    "mariadb",
    "redis-cli",
    "sshpass",
    "docker",
    "-u",
    "sk-",
    "gh",
    "glpat-",
    "xox",
    "akia",
    "aiza",
    "eyj",
];

/// Whether no pattern has a chance, as with most commands: asking all of them, let alone compiling them, costs more than a
/// small checkpoint.
fn is_plain(text: &str) -> bool {
    // Other alphabets have letters that count as these.
    let small = text.to_ascii_lowercase();
    text.is_ascii() && !SIGNS.iter().any(|sign| small.contains(sign))
}

/// The text without its secrets.
pub fn redact(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { replaced(text) }
}

fn replaced(text: &str) -> String {
    let mut out = text.to_owned();
    for (pattern, with) in PATTERNS.iter() {
        if let std::borrow::Cow::Owned(replaced) = pattern.replace_all(&out, *with) {
            out = replaced;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: &[&str] = &[
        "Authorization:",
        "authorization",
        "x",
        "abcdefghijklmnopqrstuv",
        "PGPASSWORD=",
        "--passwd",
        "passwd",
        "pwd",
        "Secret",
        "toKen",
        "to\u{212a}en",
        "api-key",
        "access_key",
        "PRIVATEKEY",
        "credential",
        "Bearer",
        "http://",
        "me",
        "hunter2@host",
        ":",
        "@",
        "mysql",
        "mariadb",
        "mysqldump ",
        " -p",
        "redis-cli",
        " -a",
        "sshpass -p",
        "docker login",
        "set ",
        " -u",
        " --user ",
        "sk-",
        "ghp_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "AKIA",
        "ABCDEFGHIJKLMNOP",
        "AIza",
        "eyJ",
        "abcdefgh.abcdefgh",
    ];

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), 10);
    }

    proptest! {
        #[test]
        fn what_is_plain_is_not_replaced(words in proptest::collection::vec(0..WORDS.len(), 0..9), glue in "[ =:'\"-]{1,2}") {
            let text = words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(&glue);
            prop_assert_eq!(redact(&text), replaced(&text), "{}", text);
        }
    }

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let table = [
            ("PGPASSWORD=hunter2 psql -c 'DELETE FROM t'", "PGPASSWORD=*** psql -c 'DELETE FROM t'"),
            ("psql postgres://me:hunter2@db/x", "psql postgres://me:***@db/x"),
            ("curl -H 'Authorization: Bearer abc.def.ghi' x", "curl -H 'Authorization: ***' x"),
            ("tool --password hunter2 --verbose", "tool --password *** --verbose"),
            ("mysql -u root -phunter2 db", "mysql -u root -p*** db"),
            ("curl -u me:hunter2 https://x", "curl -u me:*** https://x"),
            ("export OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwx", "export OPENAI_API_KEY=***"),
            ("gh auth login --with-token ghp_abcdefghijklmnopqrstuv", "gh auth login --with-token ***"),
            ("mysql '-phunter2' db", "mysql '-p***' db"),
            ("redis-cli -h x -a hunter2 FLUSHALL", "redis-cli -h x -a *** FLUSHALL"),
            ("sshpass -p 'hunter 2' ssh x", "sshpass -p *** ssh x"),
            ("docker login -u me -p hunter2", "docker login -u me -p ***"),
            ("aws configure set aws_secret_access_key hunter2", "aws configure set aws_secret_access_key ***"),
            ("echo '{\"password\": \"hunter2\"}'", "echo '{\"password\": ***}'"),
            ("curl --user 'me:hunter2' x", "curl --user 'me:***' x"),
            ("git push https://hunter2@host/x", "git push https://***@host/x"),
            ("git push git@host:x && mkdir -p a/b", "git push git@host:x && mkdir -p a/b"),
            ("the bearer abcdefghij", "the bearer ***"),
            ("git config set password hunter", "git config set password ***"),
            ("rm -rf build && echo done", "rm -rf build && echo done"),
        ];
        for (text, expected) in table {
            assert_eq!(redact(text), expected);
        }
    }
}
