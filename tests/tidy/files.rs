//! The tracked files.

use std::path::Path;

pub(crate) struct File {
    /// From the repository's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust_in(&self, dir: &str) -> bool {
        self.path.starts_with(dir) && self.path.ends_with(".rs")
    }

    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }
}

/// The tracked text files; outside of a clone, all files but those of a build.
pub(crate) fn tree() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut paths: Vec<String> = match listed {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
        }
        _ => {
            eprintln!("tidy: git does not list the files; taking all of them");
            let mut paths = Vec::new();
            list(root, "", &mut paths);
            paths
        }
    };
    paths.sort();
    let read = |path: String| {
        let text = std::fs::read_to_string(root.join(&path)).ok()?; // deleted, or no text
        Some(File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

fn list(dir: &Path, prefix: &str, paths: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() && !matches!(path.as_str(), "target" | ".git") {
            list(&entry.path(), &format!("{path}/"), paths);
        } else if entry.file_type().unwrap().is_file() {
            paths.push(path);
        }
    }
}
