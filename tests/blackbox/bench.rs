//! `piton bench` measures a copy.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::{Lab, lacking};

/// What a directory holds: inode, times and content by path.
fn facts(root: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
    let (mut all, mut pending) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if meta.is_dir() {
                pending.push(path.clone());
            }
            all.insert(path, (meta.ino(), meta.mtime_nsec(), meta.ctime_nsec(), content));
        }
    }
    all
}

#[test]
fn a_tree_is_measured_beside_git_and_left_as_it_is() {
    if !std::process::Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return lacking("git");
    }
    let lab = Lab::new();
    for n in 0..20 {
        lab.write(&format!("src/f{n}"), "line\n".repeat(n + 1));
    }
    lab.write(".env", "SECRET=1");
    let aside = lab.root().join("aside");
    fs::create_dir(&aside).unwrap();
    let before = facts(&lab.work);
    let dir = aside.to_str().unwrap();
    let ran = lab.piton(&["bench", "--reps", "2", "--changes", "1,10,21", "--dir", dir, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("21 files cannot be changed, there are only 20"), "{}", ran.stderr);
    let told = ran.json();
    assert_eq!(
        (told["files"].as_u64(), told["left_out"].as_u64(), told["reps"].as_u64()),
        (Some(20), Some(1), Some(2))
    );
    let steps: Vec<&str> = told["rows"].as_array().unwrap().iter().map(|row| row["step"].as_str().unwrap()).collect();
    let expected =
        ["first checkpoint", "nothing changed", "1 file changed", "10 files changed", "a later action of the turn"];
    assert_eq!(steps, expected);
    for (at, row) in told["rows"].as_array().unwrap().iter().enumerate() {
        let sides = ["git_ms", "process_ms", "sidecar_ms"].map(|side| row[side].as_f64().is_some_and(|ms| ms > 0.0));
        assert_eq!(sides, [at < 4, at < 4, at > 0], "{row}");
    }
    assert_eq!(facts(&lab.work), before, "nothing was touched");
    assert_eq!(fs::read_dir(&aside).unwrap().count(), 0, "the copy is gone");
    assert_eq!(lab.piton(&["list", "--all"]).code, 3, "and its checkpoints are nobody's");
    let shown = lab.piton(&["bench", "--reps", "1", "--changes", "1", "--dir", dir]);
    assert!(shown.stdout.contains("20 files"), "{}", shown.stdout);
    assert!(shown.stdout.contains("1 paths that a checkpoint leaves out"), "{}", shown.stdout);
}

#[test]
fn what_cannot_be_measured_is_said() {
    let lab = Lab::new();
    let empty = lab.piton(&["bench"]);
    assert_eq!((empty.code, empty.stderr.contains("no file to be edited")), (2, true), "{}", empty.stderr);
    assert_eq!(lab.piton(&["bench", "--reps", "0"]).code, 2);
}
