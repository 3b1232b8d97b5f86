use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

fn sandbox() -> (tempfile::TempDir, Dir) {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(temp.path().join("root/a/b")).unwrap();
    std::fs::create_dir_all(temp.path().join("root/.git/hooks")).unwrap();
    std::fs::create_dir(temp.path().join("outside")).unwrap();
    std::fs::write(temp.path().join("outside/file"), "outside").unwrap();
    symlink("../outside", temp.path().join("root/out")).unwrap();
    let root = Dir::open_root(&temp.path().join("root")).unwrap();
    (temp, root)
}

#[test]
fn no_component_is_followed() {
    let (_temp, root) = sandbox();
    assert!(root.find_dir(Path::new("a/b")).unwrap().is_some());
    assert!(root.find_dir(Path::new("")).unwrap().is_some());
    for rel in ["out", "out/x", "a/missing", "a/b/c"] {
        assert!(root.find_dir(Path::new(rel)).unwrap().is_none(), "{rel}");
        assert_eq!(root.open_dir(Path::new(rel)).unwrap_err().code(), Code::Conflict, "{rel}");
    }
    for rel in ["..", "a/../..", "/", "./a/.."] {
        assert_eq!(root.open_dir(Path::new(rel)).unwrap_err().code(), Code::BadPath, "{rel}");
    }
    assert!(root.open_file(b"out").is_err());
    assert_eq!(root.stat(b"out").unwrap().unwrap().kind, FileKind::Link);
    assert_eq!(root.read_link(b"out").unwrap(), b"../outside");
}

#[test]
fn nothing_is_written_into_git() {
    let (_temp, root) = sandbox();
    let git = root.open_dir(Path::new(".git")).unwrap();
    let hooks = root.open_dir(Path::new(".git/hooks")).unwrap();
    let seen = git.stat(b"hooks").unwrap().unwrap();
    let refused: [Result<()>; 9] = [
        root.create_dir(b".git", 0o755).map(|_| ()),
        root.rmdir(b".git").map(|_| ()),
        root.symlink(b"x", b".git"),
        git.create_temp(b"x").map(|_| ()),
        hooks.create_temp(b"pre-commit").map(|_| ()),
        git.chmod(b"hooks", &seen, 0o700).map(|_| ()),
        hooks.chmod_self(0o700),
        root.rename_new(b"a", &hooks, b"a").map(|_| ()),
        root.exchange(b"a", &root, b".git").map(|_| ()),
    ];
    for (i, outcome) in refused.into_iter().enumerate() {
        assert_eq!(outcome.unwrap_err().code(), Code::Permission, "case {i}");
    }
    assert!(root.create_dir(b".GIT", 0o755).unwrap(), "another name on this file system");
    assert!(root.create_dir(b".gitx", 0o755).unwrap());
}

#[test]
fn names_are_single_components() {
    let (_temp, root) = sandbox();
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
        assert_eq!(root.stat(name).unwrap_err().code(), Code::BadPath);
        assert_eq!(root.create_temp(name).unwrap_err().code(), Code::BadPath);
    }
}

#[test]
fn a_taken_name_survives() {
    let (temp, root) = sandbox();
    let path = temp.path().join("root");
    std::fs::write(path.join("old"), "old").unwrap();
    drop(root.create_temp(b"new").unwrap());
    assert!(root.create_temp(b"new").is_err());
    assert!(!root.rename_new(b"new", &root, b"old").unwrap());
    assert_eq!(std::fs::read(path.join("old")).unwrap(), b"old");
    assert!(!root.link_new(b"new", &root, b"old").unwrap());
    assert!(!root.link_new(b"a", &root, b"old").unwrap(), "directories cannot be linked");
    assert!(root.link_new(b"a", &root, b"dir").unwrap());
    assert!(root.link_new(b"dir", &root, b"a").unwrap());
    assert!(root.link_new(b"out", &root, b"moved").unwrap());
    assert_eq!(root.read_link(b"moved").unwrap(), b"../outside", "the link itself");
    assert!(root.stat(b"out").unwrap().is_none());
    assert!(root.exchange(b"new", &root, b"old").unwrap());
    assert_eq!(std::fs::read(path.join("new")).unwrap(), b"old");
    assert!(!root.create_dir(b"a", 0o755).unwrap());
    assert!(!root.rmdir(b"a").unwrap(), "not empty");
}

#[test]
fn permissions_are_set_on_the_object_that_was_seen() {
    let (temp, root) = sandbox();
    let path = temp.path().join("root/file");
    std::fs::write(&path, "x").unwrap();
    let seen = root.stat(b"file").unwrap().unwrap();
    for perm in [0o4751, 0o000, 0o640] {
        assert!(root.chmod(b"file", &seen, perm).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, u32::from(perm));
    }
    std::fs::rename(&path, temp.path().join("root/moved")).unwrap();
    symlink("../outside/file", &path).unwrap();
    let before = std::fs::metadata(temp.path().join("outside/file")).unwrap().permissions().mode();
    assert!(!root.chmod(b"file", &seen, 0o777).unwrap());
    assert_eq!(std::fs::metadata(temp.path().join("outside/file")).unwrap().permissions().mode(), before);
}
