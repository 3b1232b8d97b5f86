//! The commands of the pages: each command of `piton` in README and docs is one that this binary accepts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::support::Lab;

/// The words that stand for something of the reader's, and something that is there.
const STANDS_FOR: [(&str, &str); 24] = [
    ("N", "1"),
    ("12", "1"),
    ("12.1", "1"),
    ("14", "2"),
    ("7", "1"),
    ("12:PATH", "1:src/main.rs"),
    ("12:src/a.rs", "1:src/main.rs"),
    ("PATH", "src/main.rs"),
    ("FILE", "src/main.rs"),
    ("src/a.rs", "src/main.rs"),
    ("g-N", "g-1"),
    ("DIR", "../dir"),
    ("DIR/.git", "src/.git"),
    ("SUB", "src"),
    ("PARENT", "."),
    ("OLD", "../dir"),
    ("NEW", "."),
    ("CLIENT", "claude-code"),
    ("EVENT", "Stop"),
    ("VERB", "restore"),
    ("AGENT", "true"),
    ("SERVER", "true"),
    ("REMOTE", "nowhere"),
    ("my-agent", "true"),
];

/// Commands that run until they are stopped, one that needs the network, and one that the page calls refused.
const NOT_RUN: [&str; 3] = ["piton watch", "piton mcp-proxy -- npx", "piton restore --yes"];

/// Returns true for a command that is not complete as it is written: the name of a verb, or a choice that needs a terminal.
fn is_incomplete(command: &str) -> bool {
    let is_verb =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-');
    command.split(' ').all(is_verb) || command.ends_with(" -i") || command.ends_with(" --hunk")
}

/// Returns the files of README and of all pages, without the page of verbs, which is made from the grammar.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages = pages.filter(|path| !path.ends_with("CLI.md"));
    ["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)).into_iter().chain(pages).collect()
}

/// Returns the commands of a page: those of its blocks for a shell, and those in the text.
fn commands(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_block = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), in_block) {
            (Some(kind), None) => in_block = Some(kind == "sh"),
            (Some(_), Some(_)) => in_block = None,
            (None, Some(true)) => {
                let command = line.split(" #").next().unwrap_or_default().trim();
                found.extend(command.split(" | ").filter(|part| part.starts_with("piton ")).map(str::to_owned));
            }
            (None, Some(false)) => {}
            (None, None) => {
                let spans = line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("piton "));
                found.extend(spans.map(|span| span.split(" \\|").next().unwrap_or_default().to_owned()));
            }
        }
    }
    found
}

/// Returns a command with the reader's things replaced by those of the test, and without the marks of what may be left out.
fn typed(command: &str) -> String {
    let plain = command.replace(['[', ']', '…'], "");
    let words = plain.split(' ').map(|word| {
        let known = STANDS_FOR.iter().find(|(name, _)| *name == word);
        known.map_or(word, |(_, there)| there)
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_of_the_pages_is_accepted() {
    let mut all: BTreeSet<(String, String)> = BTreeSet::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy();
        all.extend(commands(&text).into_iter().map(|command| (command, name.clone().into_owned())));
    }
    // A message that is quoted is no command.
    all.retain(|(command, _)| command != "piton cannot undo this");
    assert!(all.len() > 100, "{all:?}");
    let lab = Lab::new();
    lab.sh("git init -q .; mkdir ../dir; echo a-long-secret >../secret");
    for content in ["one", "two"] {
        lab.write("src/main.rs", content);
        lab.take(content);
    }
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", lab.bin().display());
    let mut refused = Vec::new();
    for (command, page) in &all {
        if NOT_RUN.iter().any(|not_run| command.starts_with(not_run)) {
            continue;
        }
        // Options that no verb has are refused before the help.
        let help = if is_incomplete(command) { " --help" } else { "" };
        let input = if command.ends_with("--secret -") { "../secret" } else { "/dev/null" };
        let line = format!("{}{help} <{input}", typed(command));
        let output = lab.command("/bin/sh", &lab.work).env("PATH", &path).args(["-c", &line]).output().unwrap();
        // The shell itself ends with 126 and 127.
        if matches!(output.status.code(), None | Some(2 | 126 | 127)) {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            refused.push(format!("{page}: {command}: {:?}: {said}", output.status.code()));
        }
    }
    lab.piton(&["daemon", "stop"]);
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
