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
            assert!(refused.stderr.contains("the directory that contained it no longer exists"), "{refused:?}");
            let restored = lab.piton(&["restore", &n, "--yes"]);
            let said = format!("{}{}", restored.stdout, restored.stderr);
            assert!(
                said.contains(&format!("`{git_dir}` was saved; to restore it, run `piton restore {n} {git_dir}`")),
                "{said}"
            );
        }
        assert_eq!(lab.piton(&["restore", &n, &git_dir]).code, 5, "nobody was there to agree");
        let back = lab.piton(&["restore", &n, &git_dir, "--yes"]);
        assert!(back.code == 0 && back.stdout.contains("Restored "), "{back:?}");
        assert_eq!(facts(&lab, at), before, "{command}");
        // It is one that takes new commits, and the copy stays as it was.
        in_dir(&lab, at, &["commit", "-qm", "three"]).unwrap();
        in_dir(&lab, at, &["gc", "-q", "--prune=now"]).unwrap();
        let again = lab.piton(&["restore", &n, &git_dir, "--yes"]);
        assert!(again.stderr.contains("never writes into an existing `.git`"), "{again:?}");
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
    assert!(forgotten.stderr.contains(".git is deleted too"), "{forgotten:?}");
    assert_eq!(lab.piton(&["restore", "2", ".git", "--yes"]).code, 3, "it is gone");
}

/// Answers one command of a turn of its own, and runs it.
fn act(lab: &Lab, turn: &str, command: &str) -> Value {
    let mut sidecar = agent(lab, turn);
    let reply = shell(&mut sidecar, command);
    assert_eq!(sidecar.finish(), 0);
    lab.sh(command);
    reply
}

/// Begins a turn.
fn agent(lab: &Lab, turn: &str) -> Sidecar {
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "hello", "client": "test", "session": "one"}));
    sidecar.ask(json!({"type": "turn.start", "turn": turn}));
    sidecar
}

#[test]
fn each_kept_copy_has_a_number_of_its_own() {
    for (next, second) in [(Some("t2"), "2"), (None, "1.1")] {
        let lab = Lab::new();
        if repository(&lab, "").is_none() {
            return;
        }
        let mut agent = agent(&lab, "t1");
        assert_eq!(number_of(&shell(&mut agent, "rm -rf .git")), "1");
        lab.sh("rm -rf .git");
        assert_eq!(lab.piton(&["restore", "1", ".git", "--yes"]).code, 0);
        in_dir(&lab, "", &["commit", "-q", "--allow-empty", "-m", "newer"]).unwrap();
        let before = facts(&lab, "");
        if let Some(turn) = next {
            agent.ask(json!({"type": "turn.start", "turn": turn}));
        }
        let reply = shell(&mut agent, "rm -rf .git");
        lab.sh("rm -rf .git");
        assert_eq!((&reply["checkpoint"]["status"], number_of(&reply).as_str()), (&json!("taken"), second), "{reply}");
        assert_eq!(lab.piton(&["restore", second, ".git", "--yes"]).code, 0);
        assert_eq!(facts(&lab, ""), before, "{second}");
    }
}

#[test]
fn an_action_that_writes_into_objects_does_not_reach_the_copy() {
    for command in [
        "find .git -type f -exec shred -fu {} +",
        "chmod -R u+w .git && find .git -type f -exec truncate -s 0 {} \\; && rm -rf .git",
        "chmod -R 777 .git; rm -rf .git",
        "chmod -R u+w .git; for f in .git/objects/??/*; do : > $f; done; rm -rf .git",
        "chmod -R u+w .git; echo 'for f in .git/objects/??/*; do : > $f; done; rm -rf .git' > x.sh; sh x.sh; rm -rf .git x.sh",
    ] {
        let lab = Lab::new();
        if repository(&lab, "").is_none() {
            return;
        }
        let before = facts(&lab, "");
        let reply = act(&lab, "t", command);
        assert_eq!((&reply["checkpoint"]["status"], &reply["not_held"]), (&json!("taken"), &Value::Null), "{reply}");
        lab.sh("rm -rf .git");
        let back = lab.piton(&["restore", "1", ".git", "--yes"]);
        assert_eq!((back.code, facts(&lab, "")), (0, before), "{command}: {back:?}");
        let objects = lab.work.join(".git/objects");
        let fan = std::fs::read_dir(&objects).unwrap().flatten().find(|dir| dir.file_name().len() == 2).unwrap();
        let object = std::fs::read_dir(fan.path()).unwrap().next().unwrap().unwrap();
        assert_eq!(object.metadata().unwrap().mode() & 0o777, 0o444, "{command}");
    }
}

/// Returns a loose object of a kept copy.
fn kept_object(lab: &Lab) -> std::path::PathBuf {
    let mut dirs = vec![lab.home.join("piton/workspaces")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let is_loose = entry.file_name().len() == 38 && path.to_string_lossy().contains("/repositories/");
            if is_loose && path.is_file() {
                return path;
            } else if entry.file_type().unwrap().is_dir() {
                dirs.push(path);
            }
        }
    }
    panic!("no object was kept")
}

#[test]
fn a_restore_says_what_of_a_repository_is_missing_or_damaged() {
    let lab = Lab::new();
    if repository(&lab, "").is_none() {
        return;
    }
    lab.sh("mkdir -p .git/shared && chmod 2775 .git/shared && chmod 755 .git");
    act(&lab, "t", "rm -rf .git");
    let object = kept_object(&lab);
    std::fs::remove_file(&object).unwrap();
    std::fs::write(&object, "").unwrap();
    let back = lab.piton(&["restore", "1", ".git", "--yes"]);
    assert!(back.code == 4 && back.stderr.contains("1 file among the objects of .git changed"), "{back:?}");
    let mode = |path: &str| lab.work.join(path).metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode(".git"), mode(".git/shared"), mode(".git/refs")), (0o755, 0o2775, 0o755));
    // Copies beyond the budget.
    std::fs::write(lab.work.join(".git/large"), vec![7; 3_000_000]).unwrap();
    let mut sidecar = Sidecar::start(&lab, &["--set", "limits.git_copy_mb=2"]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t2"}));
    let reply = shell(&mut sidecar, "rm -rf .git");
    assert_eq!(sidecar.finish(), 0);
    lab.sh("rm -rf .git");
    let back = lab.piton(&["restore", &number_of(&reply), ".git", "--yes"]);
    assert!(back.code == 4 && back.stderr.contains("missing from .git: 1 file (3.0 MB)"), "{back:?}");
    assert!(back.stderr.contains(".git/large") && !back.stdout.contains(", as it was"), "{back:?}");
}

#[test]
fn a_kept_copy_is_forgotten_by_its_name_and_told_of_only_where_it_belongs() {
    let lab = Lab::new();
    if repository(&lab, "v").is_none() {
        return;
    }
    lab.write("a", "a\n");
    act(&lab, "t", "rm -rf v");
    let told = |path: &str| {
        let preview = lab.piton(&["restore", "1", path, "--preview"]);
        format!("{}{}", preview.stdout, preview.stderr).contains("`v/.git` was saved")
    };
    lab.write("a", "changed\n");
    assert!(told("v") && !told("a"));
    let nothing = lab.piton(&["forget", "none", "--yes"]);
    assert_eq!((nothing.code, lab.kept_repositories().len()), (3, 1), "{nothing:?}");
    let forgotten = lab.piton(&["forget", "v/.git", "--yes"]);
    assert_eq!((forgotten.code, lab.kept_repositories().len()), (0, 0), "{forgotten:?}");
    // Outside of all workspaces its name is absolute.
    let Some(lab) = Lab::lasting() else { return };
    if repository(&lab, "../p3").is_none() {
        return;
    }
    act(&lab, "t2", "rm -rf ../p3");
    let p3 = lab.work.parent().unwrap().join("p3").display().to_string();
    let said = format!("`piton restore --outside 1 {p3}/.git`");
    let shown = lab.piton(&["show", "--outside", "1"]).stdout;
    let back = lab.piton(&["restore", "--outside", "1", &p3, "--yes"]);
    assert!(shown.contains(&said), "{shown}");
    assert!(format!("{}{}", back.stdout, back.stderr).contains(&said), "{back:?}");
    assert_eq!(lab.piton(&["restore", "--outside", "1", &format!("{p3}/.git"), "--yes"]).code, 0);
}

#[test]
fn the_repository_of_a_whole_workspace_is_kept_by_whatever_name_it_goes() {
    for (command, is_known) in [
        ("rm -rf ../p3", true),
        ("find ../p3 -delete", true),
        ("mv ../p3 ../p4 && rm -rf ../p4", true),
        ("rm -rf ../p*", true),
        ("cd .. && rm -rf ./*3/", true),
        ("find .. -name p3 -exec rm -rf {} +", false),
        ("find .. -name p3 | xargs rm -rf", false),
    ] {
        let Some(lab) = Lab::lasting() else { return };
        let p3 = lab.root().join("p3");
        if repository(&lab, "../p3").is_none() {
            return;
        }
        let before = facts(&lab, "../p3");
        let at = p3.to_str().unwrap();
        if is_known {
            lab.piton(&["checkpoint", "one", "-w", at]);
        }
        let reply = act(&lab, "t", command);
        assert!(!p3.exists(), "{command}: {reply}");
        std::fs::create_dir(&p3).unwrap();
        let git_dir = format!("{at}/.git");
        let restored = match is_known {
            true => lab.piton(&["restore", "2", ".git", "-w", at, "--yes"]),
            false => lab.piton(&["restore", "--outside", "1", &git_dir, "--yes"]),
        };
        assert_eq!(restored.code, 0, "{command}: {reply} {restored:?}");
        lab.sh("cp staged ../p3 2>/dev/null || echo staged > ../p3/staged; echo two > ../p3/file");
        assert_eq!(facts(&lab, "../p3"), before, "{command}");
    }
    // The session's own workspace, by a pattern.
    for command in ["rm -rf ../w*", "cd .. && rm -rf ./[w]*/"] {
        let lab = Lab::new();
        lab.write(".git/HEAD", "ref: refs/heads/main\n");
        lab.write("a", "a\n");
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
        let reply = shell(&mut sidecar, command);
        assert_eq!(sidecar.finish(), 0);
        assert!(lab.kept_repositories().contains(&".git".to_owned()), "{command}: {reply}");
    }
}

#[test]
fn a_linked_worktree_comes_back_with_its_index_and_head() {
    for (at, command) in [
        ("wt", "git worktree remove -f wt"),
        ("wt", "rm -rf wt"),
        ("wt", "rm -rf wt && git worktree prune"),
        ("../wt", "git worktree remove --force ../wt"),
    ] {
        let Some(lab) = Lab::lasting() else { return };
        if repository(&lab, "").is_none() || in_dir(&lab, "", &["worktree", "add", "-q", "--detach", at]).is_none() {
            return;
        }
        std::fs::write(lab.work.join(at).join("file"), "alone\n").unwrap();
        in_dir(&lab, at, &["commit", "-qam", "on no branch"]).unwrap();
        std::fs::write(lab.work.join(at).join("more"), "staged\n").unwrap();
        in_dir(&lab, at, &["add", "more"]).unwrap();
        let known = || [&["rev-parse", "HEAD"][..], &["status", "--short"]].map(|args| in_dir(&lab, at, args).unwrap());
        let before = known();
        let reply = act(&lab, "t", command);
        let is_outside = at.starts_with("..");
        let place = lab.work.join(at).components().fold(std::path::PathBuf::new(), |path, part| match part {
            std::path::Component::ParentDir => path.parent().unwrap().to_owned(),
            part => path.join(part),
        });
        assert!(!place.exists(), "{command}: {reply}");
        let outside: &[&str] = if is_outside { &["--outside"] } else { &[] };
        if is_outside {
            let listed = lab.piton(&["list", "-w", place.to_str().unwrap()]);
            assert!(listed.code == 0 && listed.stdout.contains("worktree remove"), "{listed:?}");
        }
        let restore = |path: &std::path::Path| {
            let args = [&["restore"], outside, &["1", path.to_str().unwrap(), "--yes"]].concat();
            lab.piton(&args)
        };
        let files = restore(&place);
        let back = restore(&place.join(".git"));
        assert_eq!(back.code, 0, "{command}: {files:?} {back:?} {reply}");
        assert_eq!(known(), before, "{command}");
    }
}

/// Makes a repository of `api`, `top` and the project `web`, with uncommitted work in each; `None` where there is no git.
fn monorepo(lab: &Lab) -> Option<()> {
    lab.write("web/package.json", "{}\n");
    for path in FILES {
        lab.write(path, "committed\n");
    }
    in_dir(lab, "", &["init", "-q", "-b", "main"])?;
    in_dir(lab, "", &["add", "."]);
    in_dir(lab, "", &["commit", "-qm", "one"]);
    for path in FILES {
        lab.write(path, format!("work in {path}\n"));
    }
    Some(())
}

const FILES: [&str; 4] = ["api/s", "top", "web/deep/d", "web/w"];

#[test]
fn git_takes_files_of_the_whole_work_tree_and_each_of_its_workspaces_is_protected() {
    // Each with the files of the table above that go, and that a checkpoint of the top must hold.
    for (command, expected) in [
        ("git reset --hard", "api/s top"),
        ("git stash", "api/s top"),
        ("git stash -u", "api/s top"),
        ("git checkout -f", "api/s top"),
        ("git checkout -f main", "api/s top"),
        ("git read-tree -u --reset HEAD", "api/s top"),
        ("git restore :/", "api/s top"),
        ("git checkout -- ..", "api/s top"),
        ("git checkout ../top", "top"),
        ("git checkout :/top", "top"),
        ("git checkout -- '../a*'", "api/s"),
        ("git restore ../api", "api/s"),
        ("F=../top; git restore $F", "top"),
        ("git restore $(cat names)", "api/s top"),
        ("git -C .. reset --hard", "api/s top"),
        ("cd .. && git checkout -- api", "api/s"),
        ("git -C ../api reset --hard", "api/s top"),
        ("sh -c 'git reset --hard'", "api/s top"),
        ("git -c alias.wipe='reset --hard' wipe", "api/s top"),
        ("git clean -fd :/", "new"),
        ("git clean -fd ..", "new"),
    ] {
        let lab = Lab::new();
        if monorepo(&lab).is_none() {
            return;
        }
        lab.write("new", "untracked\n");
        lab.write("web/names", "..\n");
        let web = lab.work.join("web");
        let mut sidecar = Sidecar::start_in(&lab, &web, &[]);
        sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
        let reply = shell(&mut sidecar, command);
        let top = &reply["others"][0];
        assert_eq!(top["workspace"], lab.work.to_str().unwrap(), "{command}: {reply}");
        assert_eq!(top["checkpoint"]["status"], "taken", "{command}: {reply}");
        assert_eq!(reply["others"].as_array().unwrap().len(), 1, "{command}: {reply}");
        let id = top["checkpoint"]["id"].as_str().unwrap();
        for path in expected.split(' ') {
            let held = lab.piton_in(&lab.work, &["show", &format!("{id}:{path}")]).stdout;
            assert_eq!(held, lab.read(path), "{command}: {path}");
        }
        // The second one of the turn too.
        lab.write("top", "later work\n");
        let reply = shell(&mut sidecar, command);
        let id = reply["others"][0]["checkpoint"]["id"].as_str().unwrap();
        if expected.contains("top") {
            let held = lab.piton_in(&lab.work, &["show", &format!("{id}:top")]).stdout;
            assert_eq!(held, "later work\n", "{command}: {reply}");
        }
        assert_eq!(sidecar.finish(), 0);
    }
}

#[test]
fn git_in_a_workspace_below_the_top_leaves_the_rest_alone_where_it_takes_nothing_there() {
    let lab = Lab::new();
    if monorepo(&lab).is_none() {
        return;
    }
    let mut sidecar = Sidecar::start_in(&lab, &lab.work.join("web"), &[]);
    for command in [
        "git status",
        "git checkout -- w",
        "git checkout .",
        "git checkout -- 'd*'",
        "git restore :/web/w",
        "git clean -fd",
        "git clean -fdx",
        "git clean -nd ..",
        "git reset",
        "git restore --staged ..",
        "git commit -qam x",
        "git branch -D none",
        "git rm w",
        "rm -rf deep",
    ] {
        let reply = shell(&mut sidecar, command);
        assert!(reply["others"].is_null(), "{command}: {reply}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_reset_in_a_workspace_below_the_top_is_noted_at_the_top_and_taken_back_there() {
    let lab = Lab::new();
    if monorepo(&lab).is_none() {
        return;
    }
    let web = lab.work.join("web");
    let mut sidecar = Sidecar::start_in(&lab, &web, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let reply = sidecar.ask(json!({"type": "shell.before", "command": "git reset --hard", "action": "a"}));
    assert_eq!(reply["others"][0]["checkpoint"]["status"], "taken", "{reply}");
    in_dir(&lab, "web", &["reset", "-q", "--hard"]);
    assert_eq!(FILES.map(|path| lab.read(path)), ["committed\n"; 4]);
    sidecar.ask(json!({"type": "shell.after", "action": "a", "exit": 0}));
    sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(sidecar.finish(), 0);
    let listed = lab.piton_in(&lab.work, &["git-undo", "--list"]);
    assert!(listed.stdout.contains("git reset --hard"), "{listed:?}");
    let undone = lab.piton_in(&lab.work, &["git-undo", "--yes"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(FILES.map(|path| lab.read(path)), FILES.map(|path| format!("work in {path}\n")), "{undone:?}");
}

#[test]
fn a_checkpoint_of_the_top_holds_a_workspace_below_it() {
    let lab = Lab::new();
    if monorepo(&lab).is_none() {
        return;
    }
    let web = lab.work.join("web");
    assert_eq!(lab.piton_in(&web, &["checkpoint", "first"]).code, 0);
    lab.write("web/w", "later work in web\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    for command in ["git reset --hard", "git -C web reset --hard", "git -C web checkout -- w", "git stash"] {
        let reply = shell(&mut sidecar, command);
        let id = reply["checkpoint"]["id"].as_str().unwrap_or_else(|| panic!("{command}: {reply}"));
        for path in FILES {
            assert_eq!(lab.piton(&["show", &format!("{id}:{path}")]).stdout, lab.read(path), "{command}: {reply}");
        }
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_home_directory_that_is_a_repository_has_its_changed_files_saved() {
    for (command, expected) in [
        ("git checkout -- .rc", ".rc"),
        ("git checkout .rc", ".rc"),
        ("git restore .rc", ".rc"),
        ("git restore .", ".rc .vim/v staged"),
        ("git restore .vim", ".vim/v"),
        ("git reset --hard", ".rc .vim/v staged"),
        ("git stash", ".rc .vim/v staged"),
        ("git checkout -f main", ".rc .vim/v staged"),
        ("cd .vim && git reset --hard", ".rc .vim/v staged"),
        ("git clean -f loose", "loose"),
        // All that is untracked in a home directory is too much for a checkpoint, and the answer says so.
        ("git stash -u", ".rc .vim/v staged !"),
        ("git clean -fd", "!"),
    ] {
        let Some(lab) = Lab::lasting() else { return };
        let home = lab.home.clone();
        let run = |args: &[&str]| git(&lab, &[&["-C", home.to_str().unwrap()], args].concat());
        let write = |path: &str, content: &str| {
            std::fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
            std::fs::write(home.join(path), content).unwrap();
        };
        if run(&["init", "-q", "-b", "main"]).is_none() {
            return;
        }
        let tracked = [".rc", ".vim/v", "same"];
        tracked.iter().for_each(|path| write(path, "committed\n"));
        run(&[&["add", "-f"][..], &tracked].concat());
        run(&["commit", "-qm", "one"]);
        for path in [".rc", ".vim/v", "staged", "loose"] {
            write(path, &format!("work in {path}\n"));
        }
        run(&["add", "staged"]);
        let mut sidecar = Sidecar::start_in(&lab, &home, &[]);
        sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
        let reply = shell(&mut sidecar, command);
        assert_eq!(sidecar.finish(), 0);
        let not_held = reply["not_held"]
            .as_array()
            .is_some_and(|gaps| gaps.iter().any(|gap| gap["path"] == home.to_str().unwrap()));
        assert_eq!(not_held, expected.ends_with('!'), "{command}: {reply}");
        let files: Vec<&str> = expected.split(' ').filter(|path| *path != "!").collect();
        if files.is_empty() {
            continue;
        }
        assert_eq!(reply["checkpoint"]["status"], "taken", "{command}: {reply}");
        let id = reply["checkpoint"]["id"].as_str().unwrap();
        for path in ["same", ".rc", ".vim/v", "staged", "loose"] {
            let held = lab.piton_in(&home, &["show", &format!("{id}:{path}")]);
            assert_eq!(held.code == 0, files.contains(&path), "{command}: {path} {held:?}");
            assert!(held.code != 0 || held.stdout == format!("work in {path}\n"), "{command}: {path} {held:?}");
        }
    }
}
