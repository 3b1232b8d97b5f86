//! Calls, constants and paths that only Linux has stand in one folder.

use super::Report;
use super::rust::{Source, positions, words};
use super::seen;
use super::tables::{LINUX_ROOM, LINUX_WORDS, PROC_AS_TEXT};

pub(crate) fn linux(source: &Source, report: Report) {
    if source.path.starts_with(LINUX_ROOM) {
        return;
    }
    for name in LINUX_WORDS {
        for at in words(&source.code, name) {
            report(at, format!("`{name}` belongs into {LINUX_ROOM} only"));
        }
    }
    for at in positions(&source.code, "OFlags::PATH") {
        report(at, format!("`OFlags::PATH` belongs into {LINUX_ROOM} only"));
    }
    if source.is_test || PROC_AS_TEXT.iter().any(|place| source.path.starts_with(place)) {
        return;
    }
    for at in positions(&source.text, "\"/proc/") {
        let line: String = source.text[..at].iter().rev().take_while(|c| **c != '\n').collect();
        let is_comment = line.chars().rev().collect::<String>().trim_start().starts_with("//");
        if !is_comment && !source.is_hidden(at) {
            report(at, format!("`/proc/` belongs into {LINUX_ROOM} only"));
        }
    }
}

#[test]
fn what_only_linux_has_is_seen() {
    let code = "#[cfg(target_os = \"linux\")]\nfn f() { open(\"/proc/self/fd\", OFlags::PATH); openat2(); }\n";
    seen("src/store/x.rs", code, &["`target_os`", "`/proc/`", "`OFlags::PATH`", "`openat2`"]);
    seen("src/sys/linux/x.rs", code, &[]);
    seen("src/store/x.rs", "// \"/proc/self\" and `openat2`\nfn f() {}\n", &[]);
    seen("src/classify/x.rs", "fn f() { word(\"/proc/self/fd\"); }\n", &[]);
    seen("src/store/x.rs", "#[cfg(test)]\nmod tests {\n    fn f() { open(\"/proc/self/fd\"); }\n}\n", &[]);
}
