use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::*;

/// Runs the real git in `dir`; false when there is none (an error in CI).
fn git(dir: &Path, args: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["-c", "user.name=x", "-c", "user.email=x@y"]).args(args).current_dir(dir);
    command.env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1");
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(_) => {
            assert!(std::env::var_os("CI").is_none(), "git is needed in CI");
            eprintln!("skipped: no git");
            false
        }
    }
}

fn write(dir: &Path, names: &[&str]) {
    for name in names {
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, name).unwrap();
    }
}

fn listed(dir: &Path) -> Vec<String> {
    let paths = tracked(&dir.join(".git")).unwrap();
    paths.iter().map(RelPath::display).collect()
}

/// Stages the files of [`NAMES`] in a new repository; false where there is no git.
fn staged(dir: &Path) -> bool {
    let is_there = git(dir, &["init", "-q"]);
    if is_there {
        write(dir, NAMES);
        git(dir, &["add", "."]);
    }
    is_there
}

const NAMES: &[&str] = &["a", "deep/er/one.txt", "deep/er/two.txt", "deep/x", "with space", "z"];

#[test]
fn versions_two_three_and_four() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    if !git(dir, &["init", "-q"]) {
        return;
    }
    assert!(listed(dir).is_empty());
    write(dir, NAMES);
    git(dir, &["add", "."]);
    assert_eq!(listed(dir), NAMES);
    let version = || std::fs::read(dir.join(".git/index")).unwrap()[7];
    assert_eq!(version(), 2);
    write(dir, &["intended", "long/name/that/crosses/a/few/padding/boundaries/of/eight/bytes"]);
    git(dir, &["add", "-N", "intended"]);
    git(dir, &["update-index", "--skip-worktree", "z"]);
    assert_eq!(version(), 3);
    assert_eq!(listed(dir), ["a", "deep/er/one.txt", "deep/er/two.txt", "deep/x", "intended", "with space", "z"]);
    git(dir, &["add", "."]);
    git(dir, &["update-index", "--index-version", "4"]);
    assert_eq!(version(), 4);
    let mut expected: Vec<&str> = NAMES.to_vec();
    expected.extend(["intended", "long/name/that/crosses/a/few/padding/boundaries/of/eight/bytes"]);
    expected.sort_unstable();
    assert_eq!(listed(dir), expected);
}

#[test]
fn split_index_with_deletions_and_replacements() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    if !staged(dir) {
        return;
    }
    git(dir, &["-c", "splitIndex.maxPercentChange=100", "update-index", "--split-index"]);
    git(dir, &["-c", "splitIndex.maxPercentChange=100", "rm", "-q", "--cached", "deep/x"]);
    write(dir, &["new"]);
    std::fs::write(dir.join("a"), "changed").unwrap();
    git(dir, &["-c", "splitIndex.maxPercentChange=100", "add", "a", "new"]);
    let index = std::fs::read(dir.join(".git/index")).unwrap();
    assert!(index.windows(4).any(|window| window == b"link"), "not split");
    assert_eq!(listed(dir), ["a", "deep/er/one.txt", "deep/er/two.txt", "new", "with space", "z"]);
    for file in std::fs::read_dir(dir.join(".git")).unwrap() {
        let file = file.unwrap().path();
        if file.file_name().unwrap().to_string_lossy().starts_with("sharedindex.") {
            std::fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(tracked(&dir.join(".git")).unwrap_err().code(), Code::Conflict);
}

#[test]
fn sha256_repositories_and_submodules() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    if !git(dir, &["init", "-q", "--object-format=sha256"]) {
        return;
    }
    write(dir, NAMES);
    git(dir, &["add", "."]);
    let link = format!("160000,{},module", "1".repeat(64));
    git(dir, &["update-index", "--add", "--cacheinfo", &link]);
    assert_eq!(listed(dir), NAMES);
}

#[test]
fn unmerged_paths_count_once() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    if !git(dir, &["init", "-q", "-b", "main"]) {
        return;
    }
    write(dir, &["f", "same"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", "one"]);
    git(dir, &["checkout", "-qb", "other"]);
    std::fs::write(dir.join("f"), "other").unwrap();
    git(dir, &["commit", "-qam", "two"]);
    git(dir, &["checkout", "-q", "main"]);
    std::fs::write(dir.join("f"), "mine").unwrap();
    git(dir, &["commit", "-qam", "three"]);
    let merged = Command::new("git").args(["merge", "-q", "other"]).current_dir(dir).output().unwrap();
    assert!(!merged.status.success());
    assert_eq!(listed(dir), ["f", "same"]);
}

/// Returns a version 2 index with these names, checksum left zero (`index.skipHash`).
fn index_of(names: &[&str]) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend((names.len() as u32).to_be_bytes());
    for name in names {
        let mut entry = vec![0u8; 62];
        entry[24..28].copy_from_slice(&0o100_644u32.to_be_bytes());
        entry[60..62].copy_from_slice(&(name.len() as u16).to_be_bytes());
        entry.extend(name.as_bytes());
        entry.resize((entry.len() + 1).next_multiple_of(8), 0);
        bytes.extend(entry);
    }
    bytes.extend([0; 20]);
    bytes
}

#[test]
fn damage_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| {
        std::fs::write(temp.path().join("index"), bytes).unwrap();
        tracked(temp.path())
    };
    let good = index_of(&["a", "b/c"]);
    assert_eq!(read(&good).unwrap().len(), 2);
    for cut in 0..good.len() {
        assert!(read(&good[..cut]).is_err(), "cut at {cut}");
    }
    for name in ["../x", "/etc/passwd", "a/../../b", ".", "./a", "a//b", "a/"] {
        assert!(read(&index_of(&[name])).is_err(), "{name}");
    }
    let mut version = good.clone();
    version[7] = 9;
    assert!(read(&version).is_err());
    let mut required = good[..good.len() - 20].to_vec();
    required.extend(b"neu!\0\0\0\0");
    required.extend([0; 20]);
    assert!(read(&required).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), version in 2u8..5) {
        let mut index = b"DIRC\0\0\0".to_vec();
        index.push(version);
        index.extend([0, 0, 0, 2]);
        index.extend(&bytes);
        // Only the absence of a panic is of interest for random bytes.
        let _ = decode(&bytes, &mut |_| Ok(bytes.clone()));
        let _ = decode(&index, &mut |_| Ok(bytes.clone()));
    }

    #[test]
    fn changed_bytes_never_panic(at in 0usize..170, byte: u8) {
        let mut index = index_of(&["a", "b/c"]);
        let at = at % index.len();
        index[at] = byte;
        // As above.
        let _ = decode(&index, &mut |_| Err(damaged("has no base"))).and_then(files);
    }
}

#[test]
fn times_on_the_disk_are_no_difference_of_two_indexes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    if !staged(dir) {
        return;
    }
    let read = || std::fs::read(dir.join(".git/index")).unwrap();
    let mut last = read();
    for (args, is_same) in [
        (&["update-index", "--refresh"][..], true),
        (&["update-index", "--index-version", "4"], true),
        (&["update-index", "--force-untracked-cache"], true),
        (&["update-index", "--assume-unchanged", "a"], false),
        (&["update-index", "--skip-worktree", "z"], false),
        (&["update-index", "--chmod=+x", "deep/x"], false),
        (&["rm", "-q", "--cached", "with space"], false),
        (&["add", "-N", "with space"], false),
        (&["update-index", "--split-index"], false),
        (&["add", "with space"], false),
    ] {
        let file = std::fs::File::options().write(true).open(dir.join("a")).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(50)).unwrap();
        git(dir, args);
        let now = read();
        assert_eq!(stage_the_same(&last, &now).unwrap(), is_same, "{args:?}");
        assert!(stage_the_same(&now, &now).unwrap());
        last = now;
    }
    assert!(stage_the_same(&last, b"DIRC").is_err());
}
