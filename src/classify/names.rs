//! Names of scripts and targets that promise more than a build.

const ALARMING: [&str; 22] = [
    "deploy",
    "deployment",
    "undeploy",
    "redeploy",
    "release",
    "publish",
    "reset",
    "clean",
    "cleanup",
    "wipe",
    "drop",
    "purge",
    "destroy",
    "migrate",
    "teardown",
    "nuke",
    "rollback",
    "prune",
    "uninstall",
    "truncate",
    "erase",
    "promote",
];
const CALMING: [&str; 14] = [
    "status", "dry", "check", "plan", "test", "tests", "lint", "help", "show", "list", "preview", "info", "version",
    "notes",
];

/// Returns whether the name of a script says that it does something that is not easily undone.
pub(super) fn alarming(name: &str) -> bool {
    let mut lower = String::with_capacity(name.len() + 4);
    let mut small = false;
    for letter in name.chars() {
        if small && letter.is_ascii_uppercase() {
            lower.push('-');
        }
        small = letter.is_ascii_lowercase();
        lower.push(letter.to_ascii_lowercase());
    }
    let words: Vec<&str> = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    words.iter().any(|word| ALARMING.contains(word)) && !words.iter().any(|word| CALMING.contains(word))
}

/// Returns the program's own name: no directory, no `.exe`, lower case, no version.
pub(super) fn program(text: &str) -> String {
    let base = text.rsplit(['/', '\\']).next().unwrap_or(text);
    let base = if base.is_empty() { text } else { base };
    let lower = base.to_ascii_lowercase();
    let lower = lower.strip_suffix(".exe").unwrap_or(&lower);
    for versioned in ["python", "pip", "ruby", "perl", "php", "node", "psql", "clang-format", "gcc", "lua"] {
        if let Some(rest) = lower.strip_prefix(versioned)
            && !rest.is_empty()
            && rest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
        {
            return versioned.to_owned();
        }
    }
    lower.to_owned()
}

/// Returns the verb shown for a script: its name without directories.
pub(super) fn script(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}
