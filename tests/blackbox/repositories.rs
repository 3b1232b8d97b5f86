//! A repository's own data (`.git`) that an action destroys is kept, and brought back where it is gone.

use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar, git, number_of};

/// Runs git in a directory of the workspace; `None` where there is no git.
fn in_dir(lab: &Lab, at: &str, args: &[&str]) -> Option<String> {
    let dir = lab.work.join(at);
    git(lab, &[&["-C", dir.to_str().unwrap()], args].concat())
}

/// Makes a repository with a packed commit, a loose one that no remote has, a stash and a staged file.
fn repository(lab: &Lab, at: &str) -> Option<()> {
    let dir = lab.work.join(at);
    std::fs::create_dir_all(&dir).unwrap();
    let run = |args: &[&str]| in_dir(lab, at, args);
    run(&["init", "-q", "-b", "main"])?;
    std::fs::write(dir.join("file"), "one\n").unwrap();
    run(&["add", "."]);
    run(&["commit", "-qm", "one"]);
    run(&["gc", "-q"]);
    std::fs::write(dir.join("file"), "two\n").unwrap();
    run(&["commit", "-qam", "two"]);
    std::fs::write(dir.join("file"), "stashed\n").unwrap();
    run(&["stash", "-q"]);
    std::fs::write(dir.join("staged"), "staged\n").unwrap();
    run(&["add", "staged"]).map(drop)
}

/// Returns what a person would miss of a repository.
fn facts(lab: &Lab, at: &str) -> Vec<String> {
    [
        &["fsck", "--full"][..],
        &["log", "--format=%H %s", "--all"],
        &["stash", "list"],
        &["show", "stash@{0}:file"],
        &["status", "--short"],
        &["reflog", "--format=%H"],
    ]
    .into_iter()
    .map(|args| in_dir(lab, at, args).unwrap())
    .collect()
}

fn shell(sidecar: &mut Sidecar, command: &str) -> Value {
    sidecar.ask(json!({"type": "shell.before", "command": command}))
}

#[test]
fn a_repository_that_goes_comes_back_and_works() {
    for (at, command, whole) in [
        ("", "rm -rf .git", false),
        ("vendor/nested", "rm -rf vendor/nested", true),
        ("a/b", "rm -rf a", true),
        ("sub", "find sub -delete", true),
    ] {
        let lab = Lab::new();
        if repository(&lab, at).is_none() {
            return;
        }
        let before = facts(&lab, at);
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
        let reply = shell(&mut sidecar, command);
        assert_eq!((&reply["checkpoint"]["status"], &reply["not_held"]), (&json!("taken"), &Value::Null), "{reply}");
        assert_eq!(sidecar.finish(), 0);
        lab.sh(command);
        let (n, git_dir) = (number_of(&reply), if at.is_empty() { ".git".to_owned() } else { format!("{at}/.git") });
        assert!(!lab.work.join(&git_dir).exists(), "{command}");
        if whole {
            let refused = lab.piton(&["restore", &n, &git_dir, "--yes"]);
            assert!(refused.stderr.contains("the directory around it is gone"), "{refused:?}");
            let restored = lab.piton(&["restore", &n, "--yes"]);
            let said = format!("{}{}", restored.stdout, restored.stderr);
            assert!(said.contains(&format!("`{git_dir}` was kept: `piton restore {n} {git_dir}`")), "{said}");
        }
        assert_eq!(lab.piton(&["restore", &n, &git_dir]).code, 5, "nobody was there to agree");
        let back = lab.piton(&["restore", &n, &git_dir, "--yes"]);
        assert!(back.code == 0 && back.stdout.contains("Brought back"), "{back:?}");
        assert_eq!(facts(&lab, at), before, "{command}");
        // It is one that takes new commits, and the copy stays as it was.
        in_dir(&lab, at, &["commit", "-qm", "three"]).unwrap();
        in_dir(&lab, at, &["gc", "-q", "--prune=now"]).unwrap();
        let again = lab.piton(&["restore", &n, &git_dir, "--yes"]);
        assert!(again.stderr.contains("writes into no `.git` that is there"), "{again:?}");
        std::fs::remove_dir_all(lab.work.join(&git_dir)).unwrap();
        assert_eq!(lab.piton(&["restore", &n, &git_dir, "--yes"]).code, 0);
        assert_eq!(facts(&lab, at), before, "{command}, once more");
    }
}

#[test]
fn objects_get_a_second_name_and_what_changes_is_copied() {
    let lab = Lab::new();
    if repository(&lab, "").is_none() {
        return;
    }
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let reply = shell(&mut sidecar, "rm -rf .git");
    assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
    let links = |path: &std::path::Path| path.metadata().unwrap().nlink();
    let pack = std::fs::read_dir(lab.work.join(".git/objects/pack")).unwrap();
    let packs: Vec<_> = pack.map(|entry| entry.unwrap().path()).collect();
    assert!(packs.iter().any(|path| path.extension().is_some_and(|kind| kind == "pack")));
    assert!(packs.iter().all(|path| links(path) == 2), "{packs:?}");
    assert_eq!(links(&lab.work.join(".git/index")), 1);
    assert_eq!(sidecar.finish(), 0);
    let shown = lab.piton(&["show", &number_of(&reply)]).stdout;
    assert!(shown.contains("kept     .git"), "{shown}");
    // It goes with its checkpoint, and with what is forgotten.
    lab.write("b", "b");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t2"}));
    let second = shell(&mut sidecar, "rm -rf .git");
    assert_eq!(sidecar.finish(), 0);
    let workspaces = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap();
    let records = workspaces.map(|entry| entry.unwrap().path()).find(|dir| dir.join("repositories").exists()).unwrap();
    let kept = || std::fs::read_dir(records.join("repositories")).unwrap().count();
    assert_eq!(kept(), 2);
    assert_eq!(lab.piton(&["delete", &number_of(&reply), "--yes"]).code, 0);
    lab.take("sweeps");
    assert_eq!((kept(), number_of(&second).as_str()), (1, "2"));
    lab.write("secret.txt", "hunter2-and-more\n");
    lab.take("holds it");
    let forgotten = lab.piton(&["forget", "--secret", "hunter2-and-more", "--yes"]);
    assert_eq!((forgotten.code, kept()), (0, 0), "{forgotten:?}");
    assert!(forgotten.stderr.contains(".git goes too"), "{forgotten:?}");
    assert_eq!(lab.piton(&["restore", "2", ".git", "--yes"]).code, 3, "it is gone");
}
