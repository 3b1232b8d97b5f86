//! A command line reaches the same whatever it calls the place; content that no checkpoint holds is named.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, number_of};

fn shell(sidecar: &mut Sidecar, command: &str) -> Value {
    sidecar.ask(json!({"type": "shell.before", "command": command}))
}

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

/// Returns the content that the checkpoint of a reply holds at a path.
fn held(lab: &Lab, reply: &Value, path: &str) -> String {
    let id = reply["checkpoint"]["id"].as_str().unwrap_or_default();
    lab.piton(&["show", &format!("{id}:{path}")]).stdout
}

fn not_held(reply: &Value) -> Vec<&str> {
    let items = reply["not_held"].as_array().into_iter().flatten();
    items.map(|item| item["path"].as_str().unwrap_or("?")).collect()
}

/// A sidecar in whose turn a checkpoint protects what stood there before.
fn guarded(lab: &Lab) -> Sidecar {
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
    assert_eq!(status(&shell(&mut sidecar, "make")), "taken");
    sidecar
}

#[test]
fn links_from_outside_lead_into_the_workspace_whatever_the_line_does_there() {
    for (n, command) in [
        "cd ../alias && rm -rf *",
        "cd ../alias; rm -rf ./*",
        "(cd ../alias && rm -f new.txt)",
        "pushd ../alias; rm n*",
        "rm -rf ../alias/*",
        "rm -rf ../al*/*",
        "rm -f ../inner/../alias/n*",
        "rm -rf ROOT/alias/n*",
        "D=../alias; rm -rf $D/*",
        "sh -c 'cd ../alias && rm *.txt'",
        "cd ..; rm -rf alias/*",
        "find ../alias/ -delete",
        "find ../alias/ -name '*.txt' -exec rm {} +",
        "sed -i d ../alias/*.txt",
        "mv ../alias/* ../x/",
        "git -C ../alias reset --hard",
        "cd ../alias && git stash",
        "rsync -r --delete ../x/ ../alias/",
        "> ../alias/new.txt",
    ]
    .into_iter()
    .enumerate()
    {
        let lab = Lab::new();
        lab.write("old.txt", "old\n");
        symlink("work", lab.root().join("alias")).unwrap();
        std::fs::create_dir(lab.root().join("inner")).unwrap();
        let mut sidecar = guarded(&lab);
        let content = format!("work {n} of this turn\n");
        lab.write("new.txt", &content);
        let reply = shell(&mut sidecar, &command.replace("ROOT", &lab.root().to_string_lossy()));
        assert_eq!((status(&reply), held(&lab, &reply, "new.txt")), ("taken", content), "{command}: {reply}");
        assert_eq!(sidecar.finish(), 0);
    }
    // A path outside stays outside, although a link beside it leads in.
    let lab = Lab::new();
    lab.write("a", "a\n");
    symlink("work", lab.root().join("alias")).unwrap();
    std::fs::create_dir(lab.root().join("x")).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    for command in ["cd ../x && rm -rf *", "find ../x -delete", "rm -rf ../x/*"] {
        assert_eq!(status(&shell(&mut sidecar, command)), "none", "{command}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn every_name_of_the_workspace_reaches_all_that_is_in_it() {
    for command in [
        "find . -delete",
        "find -delete",
        "find \"$PWD\" -delete",
        "find WORK -delete",
        "find $(pwd) -type f -exec rm {} +",
        "rm -rf \"$PWD\"",
        "rm -rf WORK/",
        "rm -rf \"$(git rev-parse --show-toplevel)\"",
        "find \"$(git rev-parse --show-toplevel 2>/dev/null || pwd)\" -delete",
        "cd sub && cd `git rev-parse --show-toplevel` && find . -delete",
        "T=$(git rev-parse --show-toplevel); rm -rf $T",
        "tar --remove-files -cf ../x.tar .",
        "tar -czf ../x.tgz --remove-files sub .env cache a.txt",
        "zip -qrm ../x.zip .",
        "git worktree remove --force .",
    ] {
        let lab = Lab::new();
        lab.write(".git/HEAD", "ref: refs/heads/main\n");
        lab.write(".gitignore", ".env\ncache/\n");
        lab.write("sub/b.txt", "b\n");
        let mut sidecar = guarded(&lab);
        for (path, content) in [("a.txt", "a\n"), (".env", "KEY=1\n"), ("cache/deep/x", "x\n")] {
            lab.write(path, content);
        }
        let reply = shell(&mut sidecar, &command.replace("WORK", &lab.work.to_string_lossy()));
        assert_eq!(status(&reply), "taken", "{command}: {reply}");
        lab.sh("rm -rf a.txt .env cache sub");
        assert_eq!(sidecar.finish(), 0);
        lab.restore(number_of(&reply), &[]);
        let found = ["a.txt", ".env", "cache/deep/x", "sub/b.txt"].map(|path| lab.read(path));
        assert_eq!(found, ["a\n", "KEY=1\n", "x\n", "b\n"], "{command}");
    }
}

#[test]
fn a_git_directory_that_goes_is_kept_where_it_is_named_and_only_there() {
    let table: &[(&str, &[&str])] = &[
        ("rm -rf .git", &[".git"]),
        ("rm -rf \"$PWD/.git\"", &[".git"]),
        ("mv .git ../x", &[".git"]),
        ("rm -rf v/.git", &["v/.git"]),
        ("cd v && rm -rf .git", &["v/.git"]),
        ("rm -rf */.git", &["v/.git"]),
        ("rm -rf v/.g*", &["v/.git"]),
        ("rm -rf .git/refs", &[".git/refs"]),
        ("cd .git && rm -rf r*", &[".git/refs"]),
        (": > .git/HEAD", &[".git/HEAD"]),
        ("rm -f .git/hooks/pre-commit", &[".git/hooks/pre-commit"]),
        ("find . -name .git -delete", &[".git", "v/.git"]),
        ("find . -name .git -type d -prune -exec rm -rf {} +", &[".git", "v/.git"]),
        ("find v -name .git -exec rm -rf {} \\;", &["v/.git"]),
        ("find . -name .git -print0 | xargs -0 rm -rf", &[".git", "v/.git"]),
        ("find . -type f -delete", &[".git", "v/.git"]),
        ("git clean -ffdx", &["v/.git"]),
        ("git clean -ffd", &["v/.git"]),
        ("git clean -f -f -dx v", &["v/.git"]),
        // A command that spares it is answered without a word of it.
        ("git clean -fdx", &[]),
        ("git checkout .", &[]),
        ("find . -name v -exec rm -rf {} +", &["v/.git"]),
        ("find . -name 'v*' | xargs rm -rf", &["v/.git"]),
        ("find . -type f | xargs rm", &[".git", "v/.git"]),
        ("find . -name '*.pyc' -delete", &[]),
        ("find . -name '*.pyc' | xargs rm", &[]),
        ("find . -type f -not -path './.git/*' -delete", &[]),
        ("find . -name .git -prune -o -type f -exec rm {} +", &[]),
        ("rm -f .git/index.lock", &[]),
        ("rm -rf .git/none", &[]),
        ("rm a", &[]),
    ];
    for (command, expected) in table {
        let lab = Lab::new();
        for path in
            ["a", ".git/HEAD", ".git/refs/heads/main", ".git/hooks/pre-commit", ".git/index.lock", "v/.git/HEAD"]
        {
            lab.write(path, "x\n");
        }
        lab.write("v/lib.c", "int x;\n");
        let mut sidecar = guarded(&lab);
        for again in [false, true] {
            let reply = shell(&mut sidecar, command);
            assert_eq!(not_held(&reply), Vec::<&str>::new(), "{command} (again: {again}): {reply}");
            assert_eq!(lab.kept_repositories(), *expected, "{command} (again: {again}): {reply}");
        }
        assert_eq!(sidecar.finish(), 0);
    }
    // The restore of the files says it too.
    let lab = Lab::new();
    lab.write("v/.git/HEAD", "x\n");
    lab.write("a", "a\n");
    let mut sidecar = guarded(&lab);
    let n = number_of(&shell(&mut sidecar, "rm -rf v/.git"));
    assert_eq!(sidecar.finish(), 0);
    lab.sh("rm -rf v/.git");
    let preview = lab.piton(&["restore", &n, "--preview"]);
    let said = format!("{}{}", preview.stdout, preview.stderr);
    assert!(said.contains(&format!("`v/.git` was saved; to restore it, run `piton restore {n} v/.git`")), "{said}");
}

#[test]
fn a_repository_of_its_own_that_is_left_out_is_said() {
    let lab = Lab::new();
    lab.write(".git/worktrees/wt/commondir", "../..\n");
    lab.write("trees/wt/.git", format!("gitdir: {}/.git/worktrees/wt\n", lab.work.display()));
    lab.write(".gitignore", "vendor/\nbuild/\n");
    for path in ["trees/wt/mine.txt", "vendor/v.c", "own/o.c", "build/o.o", "src/a.c"] {
        lab.write(path, format!("{path}\n"));
    }
    for path in ["vendor/.git/HEAD", "own/.git/HEAD"] {
        lab.write(path, "ref: refs/heads/main\n");
    }
    let table: &[(&str, &[&str])] = &[
        ("cd trees/wt && make clean", &["trees/wt"]),
        ("make -C trees/wt clean", &["trees/wt"]),
        ("git -C trees/wt reset --hard", &["trees/wt"]),
        ("bash -c 'cd trees/wt && python3 wipe.py'", &["trees/wt"]),
        ("cd vendor && make clean", &[]),
        // The answer does not name paths that the checkpoint holds, or that are no repository.
        ("cd own && make clean", &[]),
        ("cd src && make clean", &[]),
        ("cd build && make clean", &[]),
        ("make clean", &[]),
        ("cd trees/wt && ls && cd ../.. && make clean", &[]),
    ];
    let mut sidecar = guarded(&lab);
    for (command, expected) in table {
        let reply = shell(&mut sidecar, command);
        assert_eq!(not_held(&reply), *expected, "{command}: {reply}");
    }
    // A path named there is captured, and comes back.
    for command in ["cd trees/wt && rm -rf *", "rm trees/wt/mine.txt"] {
        let reply = shell(&mut sidecar, command);
        assert_eq!(not_held(&reply), Vec::<&str>::new(), "{command}: {reply}");
        assert_eq!(held(&lab, &reply, "trees/wt/mine.txt"), "trees/wt/mine.txt\n", "{command}");
        lab.sh("rm trees/wt/mine.txt");
        lab.restore(number_of(&reply), &[]);
        assert_eq!(lab.read("trees/wt/mine.txt"), "trees/wt/mine.txt\n", "{command}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_search_by_name_reaches_what_has_the_name_and_nothing_else() {
    for command in [
        "find . -name '*.env' -delete",
        "find . -name .env -exec rm {} +",
        "find . -iname '.ENV' | xargs rm",
        "find . -type f \\( -name .env -o -name none \\) -print0 | sort -z | xargs -0 rm",
        "find ROOT/alias/ -name .env -delete",
        "find ROOT/into/../../work -name .env -delete",
        "cd ROOT/into && rm ../.env ../cache/.env",
        "rm ROOT/into/../.env ROOT/into/../cache/.env",
    ] {
        let lab = Lab::new();
        symlink("work", lab.root().join("alias")).unwrap();
        symlink("work/sub", lab.root().join("into")).unwrap();
        lab.write("sub/b", "b\n");
        lab.write(".gitignore", ".env\ncache/\nnode_modules/\n");
        lab.write("package.json", "{}\n");
        lab.write("node_modules/.package-lock.json", "{}\n");
        lab.write("node_modules/m/index.js", "1\n");
        let mut sidecar = guarded(&lab);
        for (path, content) in [("a.txt", "a\n"), (".env", "KEY=1\n"), ("cache/.env", "KEY=2\n"), ("cache/x", "x\n")] {
            lab.write(path, content);
        }
        let command = command.replace("ROOT", &lab.root().to_string_lossy());
        let reply = shell(&mut sidecar, &command);
        assert_eq!((status(&reply), not_held(&reply)), ("taken", vec![]), "{command}: {reply}");
        lab.sh(&command);
        assert!(!lab.work.join(".env").exists() && !lab.work.join("cache/.env").exists(), "{command}");
        assert_eq!(sidecar.finish(), 0);
        let n = number_of(&reply);
        lab.restore(&n, &[]);
        assert_eq!([".env", "cache/.env"].map(|path| lab.read(path)), ["KEY=1\n", "KEY=2\n"], "{command}");
        let shown = lab.piton(&["show", &n, "--json"]).stdout;
        assert!(!shown.contains("index.js"), "{command}: {shown}");
    }
}
