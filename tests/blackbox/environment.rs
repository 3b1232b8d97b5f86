//! Hostile surroundings: git's variables, homes, masks, locales, clocks, places to start from, limits; and names that would
//! do harm on a terminal. Protection is the same everywhere, and the user's `.git` is never touched.

use std::io::{BufRead, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use serde_json::{Value, json};

use crate::support::{Lab, Output, Sidecar, git, not_allowed, tree};

fn shell(command: &str) -> Value {
    json!({"type": "shell.before", "command": command})
}

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

/// piton by way of a shell script, `$PITON` being the binary, in the lab's environment changed by `env`.
fn script(lab: &Lab, env: &[(&str, &str)], script: &str) -> Output {
    let mut command = lab.command("/bin/sh", &lab.work);
    command.env("PITON", env!("CARGO_BIN_EXE_piton")).args(["-c", script]);
    for (name, value) in env {
        match *value {
            "-" => command.env_remove(name),
            value => command.env(name, value),
        };
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Takes a checkpoint, destroys files, brings them back, all in the given environment and after `before`.
fn round_trip(lab: &Lab, env: &[(&str, &str)], before: &str) {
    let files = tree(&lab.work);
    let output = script(lab, env, &format!("{before}\n\"$PITON\" checkpoint --json mine"));
    assert_eq!(output.code, 0, "{env:?} {before}: {output:?}");
    let n = output.json()["checkpoint"]["n"].clone();
    lab.sh("find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +; echo rubbish > rubbish");
    let output = script(lab, env, &format!("{before}\n\"$PITON\" restore {n} --yes --json"));
    assert_eq!(output.code, 0, "{env:?} {before}: {output:?}");
    assert_eq!(tree(&lab.work), files, "{env:?} {before}");
}

/// A repository with a tracked, an ignored and an ignored but tracked file; `None` without git.
fn repository() -> Option<Lab> {
    let lab = Lab::new();
    lab.write("tracked", "t\n");
    lab.write("dir/deep", "d\n");
    lab.write("kept.log", "in git although ignored\n");
    lab.write(".gitignore", "*.log\n");
    git(&lab, &["init", "-q"])?;
    git(&lab, &["add", "-f", "."])?;
    git(&lab, &["commit", "-qm", "first"])?;
    lab.write("untracked", "u\n");
    Some(lab)
}

// ---- git

#[test]
fn gits_variables_and_configuration_change_nothing() {
    let Some(lab) = repository() else { return };
    let evil = lab.root().join("evil");
    std::fs::create_dir(&evil).unwrap();
    let marker = evil.join("was-run");
    for name in ["pre-commit", "post-commit", "reference-transaction", "post-index-change", "fsmonitor", "pager"] {
        std::fs::write(evil.join(name), format!("#!/bin/sh\necho {name} >> {}\n", marker.display())).unwrap();
        std::fs::set_permissions(evil.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let text = format!(
        "[core]\n\tbare = true\n\thooksPath = {0}\n\tfsmonitor = {0}/fsmonitor\n\texcludesFile = {0}/all\n\
         \tautocrlf = true\n\tpager = {0}/pager\n\tworktree = /nonexistent\n[filter \"x\"]\n\tclean = {0}/pager\n\
         [extensions]\n\tobjectFormat = sha256\n[gc]\n\tauto = 1\n",
        evil.display()
    );
    std::fs::write(evil.join("all"), "*\n").unwrap();
    std::fs::write(evil.join("config"), &text).unwrap();
    std::fs::write(lab.home.join(".gitconfig"), &text).unwrap();
    std::fs::create_dir_all(lab.home.join("config/git")).unwrap();
    std::fs::write(lab.home.join("config/git/config"), &text).unwrap();
    std::fs::write(lab.home.join("config/git/attributes"), "* filter=x text eol=crlf\n").unwrap();
    let (config, evil) = (evil.join("config"), evil.to_str().unwrap().to_owned());
    let config = config.to_str().unwrap();
    let before = tree(&lab.work.join(".git"));
    let table: [&[(&str, &str)]; 9] = [
        &[("GIT_DIR", "/nonexistent")],
        &[("GIT_DIR", &evil), ("GIT_WORK_TREE", "/")],
        &[("GIT_WORK_TREE", "/nonexistent"), ("GIT_PREFIX", "x/")],
        &[("GIT_INDEX_FILE", "/dev/null"), ("GIT_NAMESPACE", "x")],
        &[("GIT_OBJECT_DIRECTORY", &evil), ("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/nonexistent")],
        &[("GIT_CONFIG_GLOBAL", config), ("GIT_CONFIG_SYSTEM", config), ("GIT_CONFIG", config)],
        &[
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "core.bare"),
            ("GIT_CONFIG_VALUE_0", "true"),
            ("GIT_CONFIG_KEY_1", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_1", &evil),
        ],
        &[("GIT_CONFIG_COUNT", "nonsense"), ("GIT_CONFIG_PARAMETERS", "'core.bare=true")],
        &[("GIT_TEMPLATE_DIR", &evil), ("GIT_DEFAULT_HASH", "sha256"), ("GIT_CEILING_DIRECTORIES", "/")],
    ];
    for env in table {
        round_trip(&lab, env, "");
        assert_eq!(tree(&lab.work.join(".git")), before, "{env:?}");
        assert!(!marker.exists(), "{env:?}: {:?}", std::fs::read_to_string(&marker));
    }
    // The ignored but tracked file was among them: the index was read.
    assert!(lab.piton(&["show", "1"]).stdout.contains("kept.log"));
    let all = lab.store_git(&["fsck", "--full", "--strict"]).unwrap();
    assert!(!all.contains("error"), "{all}");
}

#[test]
fn a_repository_of_another_user() {
    let Some(lab) = repository() else { return };
    if !is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    lab.sh("chown -R 65534:65534 .");
    let before = tree(&lab.work.join(".git"));
    round_trip(&lab, &[], "");
    assert!(lab.piton(&["show", "1"]).stdout.contains("kept.log"), "the index was read whoever owns it");
    assert_eq!(tree(&lab.work.join(".git")), before);
    // So is a store that changed hands.
    let store = lab.home.join("piton");
    assert!(std::process::Command::new("chown").arg("-R").arg("65534").arg(&store).status().unwrap().success());
    assert_eq!(lab.piton(&["list"]).code, 0);
    lab.take("again");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0)
}

#[test]
fn a_linked_worktree_is_a_workspace_of_its_own() {
    let Some(lab) = repository() else { return };
    git(&lab, &["worktree", "add", "-q", "../linked", "-b", "side"]).unwrap();
    git(&lab, &["worktree", "add", "-q", "inner", "-b", "inner"]).unwrap();
    let linked = lab.root().join("linked");
    let before = tree(&lab.work.join(".git"));
    let mut sidecar = Sidecar::start(&lab, &[]);
    let own = sidecar.ask(json!({"type": "hello"}))["workspace"]["id"].clone();
    for dir in [&linked, &lab.work.join("inner")] {
        std::fs::write(dir.join("kept.log"), "other\n").unwrap();
        let mut there = Sidecar::start_in(&lab, dir, &[]);
        let hello = there.ask(json!({"type": "hello"}));
        assert_eq!(hello["workspace"]["path"], json!(dir));
        assert_ne!(hello["workspace"]["id"], own);
        let event = sidecar.ask(json!({"type": "shell.before", "command": "rm tracked kept.log", "cwd": dir}));
        assert_eq!(status(&event), "taken", "{event}");
        let n = event["checkpoint"]["n"].to_string();
        let files = tree(dir);
        std::fs::remove_file(dir.join("tracked")).unwrap();
        std::fs::remove_file(dir.join("kept.log")).unwrap();
        assert_eq!(lab.piton_in(dir, &["restore", &n, "--yes"]).code, 0);
        assert_eq!(tree(dir), files);
    }
    assert_eq!(tree(&lab.work.join(".git")), before);
    assert_eq!(git(&lab, &["status", "--porcelain", "-uno"]).unwrap(), "");
}

// ---- where it is started, and by which name

#[test]
fn by_whatever_name_a_workspace_is_called() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.write("sub/b.txt", "two\n");
    lab.sh("mkdir .git ../links; ln -s ../work ../links/alias; ln -s sub way");
    let alias = lab.root().join("links/alias");
    let name = alias.to_str().unwrap().to_owned();
    let nothing: &[&str] = &[];
    let named: &[&str] = &["-w", &name];
    let root = lab.root();
    let starts: [(&str, &Path, &[&str], Value, Value); 7] = [
        ("started below", &lab.work.join("sub"), nothing, json!({}), json!({"cwd": lab.work})),
        ("started through a link", &alias, nothing, json!({}), json!({})),
        ("started below a link", &alias.join("sub"), nothing, json!({}), json!({"cwd": alias})),
        ("named by a link", &root, named, json!({}), json!({})),
        ("hello by a link", &root, nothing, json!({"workspace": alias}), json!({})),
        ("event through a link", &lab.work, nothing, json!({}), json!({"cwd": alias})),
        ("event below a link", &lab.work, nothing, json!({}), json!({"cwd": alias.join("sub/..")})),
    ];
    for (what, cwd, args, hello, event) in starts {
        // A wrong guess of the place is `nothing` or `warn`, and no checkpoint.
        let mut sidecar = Sidecar::start_in(&lab, cwd, args);
        let ask = |sidecar: &mut Sidecar, mut request: Value, more: &Value| {
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            sidecar.ask(request)
        };
        let greeted = ask(&mut sidecar, json!({"type": "hello"}), &hello);
        assert_eq!(greeted["workspace"]["path"], json!(lab.work), "{what}");
        let commands = [
            "rm a.txt".to_owned(),
            format!("rm {name}/a.txt"),
            format!("cd {name} && rm -rf sub"),
            "rm ./way/b.txt".into(),
        ];
        for (n, command) in commands.iter().enumerate() {
            lab.write("a.txt", format!("{what} {n}"));
            sidecar.ask(json!({"type": "turn.start", "turn": format!("t{n}")}));
            let reply = ask(&mut sidecar, shell(command), &event);
            assert_eq!(
                (status(&reply), &reply["needs"]),
                ("taken", &json!("checkpoint")),
                "{what}: {command}: {reply}"
            );
            assert_eq!(reply["effects"][0]["scope"], "workspace", "{what}: {command}");
        }
        let tool = json!({"type": "tool.before", "tool": "write_file", "input": {"path": alias.join("a.txt")}});
        let reply = ask(&mut sidecar, tool, &event);
        assert_eq!(
            (&reply["needs"], &reply["effects"][0]["scope"]),
            (&json!("checkpoint"), &json!("workspace")),
            "{what}"
        );
        let classified = ask(&mut sidecar, json!({"type": "classify", "command": "rm a.txt"}), &event);
        assert_eq!(classified["needs"], "checkpoint", "{what}");
        assert_eq!(sidecar.finish(), 0);
    }
    let told = script(&lab, &[], &format!("cd {name}; \"$PITON\" classify --json 'rm {name}/a.txt'"));
    assert_eq!(told.json()["needs"], "checkpoint", "{told:?}");
}

#[test]
fn workspaces_that_cannot_be() {
    let lab = Lab::new();
    lab.take("makes the store");
    let store = lab.store();
    for dir in [&store, &lab.home.join("piton"), &store.join("objects")] {
        let output = lab.piton_in(dir, &["checkpoint", "x", "--json"]);
        assert_eq!((output.code, output.error().as_str()), (5, "workspace-refused"), "{dir:?}: {output:?}");
        let mut sidecar = Sidecar::start_in(&lab, dir, &[]);
        assert_eq!(sidecar.ask(json!({"type": "hello"}))["error"]["code"], "workspace-refused");
        assert_eq!(sidecar.ask(shell("rm -rf ."))["error"]["code"], "workspace-refused");
        // It may still be told a better one.
        assert_eq!(sidecar.ask(json!({"type": "hello", "workspace": lab.work}))["ok"], true);
        assert_eq!(sidecar.finish(), 0);
    }
    std::fs::write(lab.root().join("file"), "").unwrap();
    let long = format!("/{}", "x".repeat(5000));
    for (path, code) in [
        (json!("relative"), "workspace-refused"),
        (json!(""), "workspace-refused"),
        (json!("/nonexistent"), "workspace-gone"),
        (json!(lab.root().join("file")), "bad-path"),
        (json!(lab.root().join("file/x")), "bad-path"),
        (json!("/a\u{0}b"), "bad-path"),
        (json!(long), "bad-path"),
    ] {
        let mut sidecar = Sidecar::start(&lab, &[]);
        let reply = sidecar.ask(json!({"type": "hello", "workspace": path}));
        assert_eq!(reply["error"]["code"], code, "{path}: {reply}");
        assert_eq!(sidecar.ask(json!({"type": "ping"}))["ok"], true);
    }
}

#[test]
fn a_working_directory_that_is_gone() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.take("first");
    let gone = "mkdir ../d; cd ../d; rmdir ../d;";
    let output = script(&lab, &[], &format!("{gone} \"$PITON\" list --json"));
    assert_eq!((output.code, output.error().as_str()), (3, "workspace-gone"), "{output:?}");
    let output = script(&lab, &[], &format!("{gone} \"$PITON\" -w {} list", lab.work.display()));
    assert_eq!(output.code, 0, "{output:?}");
    let hello = json!({"id": 2, "type": "hello", "workspace": lab.work});
    let event = json!({"id": 3, "type": "shell.before", "command": "rm a.txt"});
    let lines = format!("{}\n{hello}\n{event}\n", json!({"id": 1, "type": "hello"}));
    std::fs::write(lab.root().join("lines"), lines).unwrap();
    let output = script(&lab, &[], &format!("{gone} \"$PITON\" sidecar < {}", lab.root().join("lines").display()));
    assert_eq!(output.code, 0, "{output:?}");
    let replies: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reply = |id: u64| replies.iter().find(|reply| reply["id"] == id).unwrap();
    assert_eq!(reply(1)["error"]["code"], "workspace-gone");
    assert_eq!((&reply(2)["ok"], status(reply(3))), (&json!(true), "unchanged"), "{replies:?}");
}

// ---- homes, masks, locales, descriptors

#[test]
fn homes_that_are_none() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let piton = lab.home.join("piton").to_str().unwrap().to_owned();
    for env in
        [[("HOME", "-")], [("HOME", "")], [("HOME", "/nonexistent")], [("HOME", "relative")], [("HOME", "/dev/null")]]
    {
        let env: Vec<(&str, &str)> = env
            .into_iter()
            .chain([("XDG_CONFIG_HOME", "-"), ("XDG_DATA_HOME", "-"), ("PITON_HOME", piton.as_str())])
            .collect();
        round_trip(&lab, &env, "");
    }
    std::fs::write(lab.root().join("file"), "").unwrap();
    let below = lab.root().join("file/piton").to_str().unwrap().to_owned();
    for (home, code) in
        [(below.as_str(), "bad-path"), ("relative", "workspace-refused"), ("/dev/null", "bad-path"), ("/proc/x", "")]
    {
        let output = script(&lab, &[("PITON_HOME", home)], "\"$PITON\" checkpoint x --json");
        assert!(output.code != 0 && output.error().starts_with(code), "{home}: {output:?}");
        let said = output.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.contains(home) && !output.stderr.contains("panicked"), "{home}: {output:?}");
        let output = script(&lab, &[("PITON_HOME", home)], "\"$PITON\" sidecar </dev/null");
        assert!(output.code != 0 && output.stderr.contains(home), "{home}: {output:?}");
    }
}

/// As root no permission bits bind, so that it is done as somebody else.
#[test]
fn a_home_that_cannot_be_written() {
    let lab = Lab::new();
    let user = script(&lab, &[], "setpriv --reuid=65534 --regid=65534 --clear-groups true");
    if !is_root() || user.code != 0 {
        not_allowed(&format!("becoming somebody else ({user:?})"));
        return;
    }
    lab.write("a.txt", "one\n");
    lab.take("first");
    let binary = lab.root().join("piton");
    // Not by this process: what it has open for writing, a child of another test may hold when it is to be run.
    lab.sh(&format!("cp {} {}", env!("CARGO_BIN_EXE_piton"), binary.display()));
    for dir in [lab.root(), lab.home.clone()] {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    }
    chown(lab.home.join("piton"), Some(0), Some(0)).unwrap();
    let run = "setpriv --reuid=65534 --regid=65534 --clear-groups ../piton";
    for home in ["unreadable", "readable"] {
        let output = script(&lab, &[], &format!("{run} checkpoint x --json"));
        assert_eq!((output.code, output.error().as_str()), (1, "permission"), "{home}: {output:?}");
        let event = json!({"id": 1, "type": "shell.before", "command": "rm a.txt"});
        let input = format!("{event}\n{}\n", json!({"id": 2, "type": "ping"}));
        std::fs::write(lab.root().join("lines"), input).unwrap();
        let output = script(&lab, &[], &format!("{run} sidecar < ../lines"));
        assert!(!output.stderr.contains("panicked"), "{output:?}");
        for reply in output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let refused = reply["error"]["code"] == "permission" || status(&reply) == "failed";
            assert!(refused || reply["type"] == "ping" || reply["type"] == "notice", "{home}: {reply}");
        }
        assert!(output.code == 1 || output.stdout.contains("\"id\":2"), "{home}: the stream goes on: {output:?}");
        lab.sh("chmod -R a+rX ../home/piton");
    }
    assert_eq!(lab.read("a.txt"), "one\n");
}

#[test]
fn masks_neither_open_the_store_nor_change_what_is_restored() {
    for mask in ["000", "002", "022", "077", "777"] {
        let lab = Lab::new();
        for mode in ["644", "600", "755", "666", "777", "400", "4755", "640"] {
            lab.write(&format!("d{mode}/f{mode}"), mode);
            lab.sh(&format!("chmod {mode} d{mode}/f{mode}"));
        }
        lab.sh("chmod 700 d600; chmod 777 d777; chmod 1777 d666; chmod 2755 d644");
        round_trip(&lab, &[], &format!("umask {mask}"));
        for (path, (kind, mode, _)) in tree(&lab.home.join("piton")) {
            assert!(kind == 'l' || mode & 0o077 == 0, "umask {mask}: {path:?} is {mode:o}");
        }
        assert_eq!(std::fs::metadata(lab.home.join("piton")).unwrap().mode() & 0o777, 0o700);
        let to = lab.root().join("elsewhere");
        let output = script(&lab, &[], &format!("umask {mask}; \"$PITON\" restore 1 --to {} --yes", to.display()));
        assert_eq!(output.code, 0, "{mask}: {output:?}");
        assert_eq!(tree(&to), tree(&lab.work), "umask {mask}");
    }
}

#[test]
fn locales_and_odd_variables() {
    let lab = Lab::new();
    lab.write("İstanbul ı", "Türkçe\n");
    lab.write("naïve 日本", "text\n");
    for env in [
        &[("LC_ALL", "tr_TR.UTF-8"), ("LANG", "tr_TR.UTF-8")][..],
        &[("LC_ALL", "C"), ("LANG", "-")],
        &[("LC_ALL", "nonsense"), ("LANG", "\u{1b}[31m"), ("LANGUAGE", "xx")],
        &[("TZ", "nonsense/zone"), ("TERM", "-")],
        &[("TZ", ""), ("COLUMNS", "0"), ("LINES", "-1"), ("TERM", "dumb")],
        &[("TMPDIR", "-")],
        &[("TMPDIR", "/nonexistent")],
        &[("TMPDIR", ""), ("PWD", "/nonexistent"), ("OLDPWD", "x")],
        &[("TMPDIR", "relative"), ("PWD", "relative"), ("SHELL", "/nonexistent")],
        &[("PATH", "-")],
        &[("PATH", "/nonexistent")],
        &[("PITON_LOG", "no such = filter [")],
        &[("PITON_NO_SUCH_KEY", "1"), ("RUST_BACKTRACE", "full"), ("RUST_LOG", "trace")],
    ] {
        let path = env.iter().any(|(name, _)| *name == "PATH");
        let before = if path { "exec 2>&1" } else { "" };
        round_trip(&lab, env, before);
        let listed = script(&lab, env, "\"$PITON\" list");
        assert_eq!((listed.code, listed.stdout.contains("mine")), (0, true), "{env:?}: {listed:?}");
        assert!(listed.stderr.is_empty(), "{env:?}: {listed:?}");
    }
    // A mistake is said, and disarms nothing.
    let bad = script(&lab, &[("PITON_GUARD", "maybe")], "\"$PITON\" list");
    assert_eq!((bad.code, bad.stdout.contains("mine")), (0, true), "{bad:?}");
    assert!(bad.stderr.contains("$PITON_GUARD: `guard` wants"), "{bad:?}");
}

#[test]
fn closed_descriptors_and_few_of_them() {
    let lab = Lab::new();
    for i in 0..400 {
        lab.write(&format!("d{}/e/f{i}", i % 50), format!("{i}").repeat(50));
    }
    for before in ["exec <&-", "exec 2>&-", "exec <&- 2>&-", "ulimit -n 64", "ulimit -n 24", "ulimit -s 512"] {
        round_trip(&lab, &[], before);
    }
    let closed = script(&lab, &[], "\"$PITON\" list >&-; echo $?; \"$PITON\" sidecar <&- 2>&-; echo $?");
    assert_eq!(closed.stdout, "0\n0\n", "{closed:?}");
    let lines = format!("{}\n{}\n", shell("git reset --hard"), json!({"id": 2, "type": "ping"}));
    std::fs::write(lab.root().join("lines"), lines).unwrap();
    lab.write("new", "n");
    let output = script(&lab, &[], "ulimit -n 32; \"$PITON\" sidecar < ../lines");
    assert_eq!((output.code, output.stdout.contains("\"type\":\"ping\"")), (0, true), "{output:?}");
    assert!(lab.piton(&["list"]).stdout.contains("before git reset --hard"));
    // Too few to work at all: an error that says so, and nothing half done.
    let before = tree(&lab.work);
    let output = script(&lab, &[], "ulimit -n 6; \"$PITON\" checkpoint x --json");
    assert!(output.code == 1 && !output.stderr.contains("panicked"), "{output:?}");
    assert_eq!(tree(&lab.work), before);
    lab.take("afterwards");
}

/// The directory below 30 others of 200 letters.
fn deepest(root: &Path, make: bool) -> OwnedFd {
    let name = "x".repeat(200);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let mut dir = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..30 {
        if make {
            rustix::fs::mkdirat(&dir, &name, Mode::from_raw_mode(0o755)).unwrap();
        }
        dir = rustix::fs::openat(&dir, &name, flags, Mode::empty()).unwrap();
    }
    dir
}

#[test]
fn paths_beyond_the_systems_longest() {
    let lab = Lab::new();
    // 30 directories of 200 letters: 6,000 bytes, which no system call takes at once.
    let bottom = deepest(&lab.work, true);
    let file =
        rustix::fs::openat(&bottom, "bottom", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o640)).unwrap();
    std::fs::File::from(file).write_all(b"deep\n").unwrap();
    rustix::fs::symlinkat("bottom", &bottom, "link").unwrap();
    rustix::fs::mkdirat(&bottom, "empty", Mode::from_raw_mode(0o750)).unwrap();
    let first = lab.take("deep");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let reply = sidecar.ask(shell("rm -rf x*"));
    assert!(["taken", "unchanged"].contains(&status(&reply)), "{reply}");
    lab.sh("rm -rf x*");
    let restored = lab.restore(first, &[]);
    assert_eq!(restored["done"]["failed"]["total"], 0, "{restored}");
    let bottom = deepest(&lab.work, false);
    let mut text = String::new();
    let file = rustix::fs::openat(&bottom, "link", OFlags::RDONLY, Mode::empty()).unwrap();
    std::fs::File::from(file).read_to_string(&mut text).unwrap();
    assert_eq!(text, "deep\n");
    assert_eq!(rustix::fs::statat(&bottom, "empty", AtFlags::empty()).unwrap().st_mode & 0o7777, 0o750);
    assert_eq!(lab.piton(&["diff", &first.to_string(), "--json"]).json()["stat"]["files"], 0);
    let far = format!("{}{}", lab.work.display(), "/x".repeat(4000));
    assert_eq!(sidecar.ask(json!({"type": "shell.before", "command": "rm bottom", "cwd": far}))["ok"], true);
    // A workspace whose own path is nearly the longest one.
    let mut root = lab.root().join("root");
    while root.as_os_str().len() < 3800 {
        root.push("y".repeat(200));
    }
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("a"), "a").unwrap();
    std::fs::create_dir(root.join("z".repeat(250))).unwrap();
    script(&lab, &[], &format!("cd {} && cd z* && mkdir {} && echo b > {1}/b", root.display(), "w".repeat(250)));
    let taken = lab.piton_in(&root, &["checkpoint", "x", "--json"]);
    assert_eq!((taken.code, &taken.json()["checkpoint"]["files"]), (0, &json!(2)), "{taken:?}");
    script(&lab, &[], &format!("cd {} && rm -rf *", root.display()));
    let restored = lab.piton_in(&root, &["restore", "1", "--yes", "--json"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    let read = script(&lab, &[], &format!("cd {} && cd z* && cat w*/b", root.display()));
    assert_eq!(read.stdout, "b\n", "{read:?}");
}

// ---- clocks

#[test]
fn a_clock_that_jumps() {
    if !cfg!(debug_assertions) {
        println!("skipped: only builds for debugging let the clock be set");
        return;
    }
    let lab = Lab::new();
    let (day, year) = ("-86400", "31536000");
    let mut numbers = Vec::new();
    for (i, offset) in ["0", day, year, "0", day, "-99999999999999999", "99999999999999999", "0"].iter().enumerate() {
        lab.write("a", format!("{i}\n"));
        let output = script(&lab, &[("PITON_TEST_CLOCK_OFFSET", offset)], "\"$PITON\" checkpoint --json");
        assert_eq!(output.code, 0, "{offset}: {output:?}");
        assert_eq!(output.json()["checkpoint"]["status"], "taken", "{offset}");
        numbers.push(output.json()["checkpoint"]["n"].as_u64().unwrap());
        let listed = script(&lab, &[("PITON_TEST_CLOCK_OFFSET", offset)], "\"$PITON\" list --json").json();
        assert_eq!(listed["checkpoints"][0]["n"], numbers[i], "the newest is the last one taken");
        assert_eq!(script(&lab, &[("PITON_TEST_CLOCK_OFFSET", offset)], "\"$PITON\" list").code, 0);
    }
    assert!(numbers.is_sorted() && numbers.len() == 8, "{numbers:?}");
    // Retention goes by number: what was taken last stays, whatever its time says.
    for offset in [year, "0", day] {
        lab.write("a", offset);
        let keep = "\"$PITON\" --set retention.per_workspace=2 checkpoint --json";
        let output = script(&lab, &[("PITON_TEST_CLOCK_OFFSET", offset)], keep).json();
        numbers.push(output["checkpoint"]["n"].as_u64().unwrap());
        let n = numbers.last().unwrap();
        assert_eq!(lab.piton(&["show", &format!("{n}:a")]).stdout, offset);
    }
    lab.restore(numbers[numbers.len() - 2], &[]);
    assert_eq!(lab.read("a"), "0");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(lab.read("a"), day);
    // An hour off by a clock that was a year ahead is no year.
    let off = script(&lab, &[("PITON_TEST_CLOCK_OFFSET", year)], "\"$PITON\" off --for 1h");
    assert_eq!(off.code, 0, "{off:?}");
    assert_eq!(lab.piton(&["status", "--json"]).json()["guard"], "turn");
    let still = script(&lab, &[("PITON_TEST_CLOCK_OFFSET", "31537000")], "\"$PITON\" status --json");
    assert_eq!(still.json()["guard"], "off");
    assert_eq!(lab.piton(&["off"]).code, 0);
    for offset in [day, "0", year] {
        let status = script(&lab, &[("PITON_TEST_CLOCK_OFFSET", offset)], "\"$PITON\" status --json");
        assert_eq!(status.json()["guard"], "off", "until `piton on` is until `piton on`");
    }
}

#[test]
fn files_whose_times_lie() {
    let lab = Lab::new();
    for (i, when) in ["now + 1 day", "now - 1 year", "@0", "2100-01-01", "@-1000000"].iter().enumerate() {
        let set = format!("touch -d '{when}' a");
        lab.write("a", "same size 1");
        lab.sh(&set);
        let first = lab.take(&format!("{i}a"));
        lab.write("a", "same size 2");
        lab.sh(&set);
        let second = lab.take(&format!("{i}b"));
        for (n, content) in [(first, "same size 1"), (second, "same size 2")] {
            assert_eq!(lab.piton(&["show", &format!("{n}:a")]).stdout, content, "{when}");
        }
    }
}

// ---- names that would do harm on a terminal

/// Escape sequences, C1 controls, a title, bidirectional overrides, a line and paragraph separator, a newline.
const ODD: [&str; 9] = [
    "\u{1b}[31mred",
    "\u{1b}]0;title\u{7}",
    "c1\u{9b}31m",
    "over\u{202e}txt.exe",
    "iso\u{2066}late",
    "new\nline",
    "carriage\rreturn",
    "sep\u{2028}ara\u{2029}tor",
    "mark\u{61c}del\u{7f}",
];

fn harmless(text: &str) -> bool {
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.chars().any(odd)
}

#[test]
fn odd_names_are_printed_harmlessly_and_told_exactly() {
    let mut lab = Lab::new();
    let odd_root = lab.root().join("w\u{1b}[31m\u{202e}");
    std::fs::rename(&lab.work, &odd_root).unwrap();
    lab.work = odd_root;
    for name in ODD {
        lab.write(&format!("dir{name}/{name}"), "one\n");
    }
    std::fs::write(lab.work.join(std::ffi::OsStr::from_bytes(b"raw\xff\x1b\x9b")), "raw").unwrap();
    assert!(harmless(&lab.piton(&[]).stdout));
    assert!(harmless(&lab.piton(&["list"]).stdout), "an empty list names the workspace");
    assert_eq!(lab.take("first"), 1);
    let mut sidecar = Sidecar::start(&lab, &[]);
    for (n, name) in ODD.iter().enumerate() {
        sidecar.ask(json!({"type": "turn.start", "turn": name, "run": name}));
        lab.write("plain", format!("{n}"));
        let reply = sidecar.ask(shell(&format!("rm -rf plain 'dir{name}' # {name}")));
        assert_eq!(status(&reply), "taken", "{reply}");
        lab.write("plain", format!("{n} again"));
        let tool = json!({"type": "tool.before", "tool": format!("write{name}"), "paths": [name], "writes": true});
        assert_eq!(sidecar.ask(tool)["ok"], true);
        let labelled = sidecar.ask(json!({"type": "checkpoint.create", "label": name}));
        match name.chars().any(char::is_control) {
            true => assert_eq!(labelled["error"]["field"], "label", "{labelled}"),
            false => assert_eq!(status(&labelled), "taken", "{labelled}"),
        }
    }
    assert_eq!(sidecar.finish(), 0);
    let first = "1";
    for name in ODD {
        lab.write(&format!("dir{name}/{name}"), "two\n");
        lab.write(&format!("new{name}"), "new\n");
    }
    let odd_path = format!("dir{0}/{0}", ODD[0]);
    let of_file = format!("1:{odd_path}");
    let of_dir = format!("1:dir{}", ODD[0]);
    for args in [
        &["list", "--all"][..],
        &["show", first],
        &["show", &of_dir],
        &["show", &format!("{of_file}/none")],
        &["show", ODD[0]],
        &["diff", first],
        &["diff", first, "--stat"],
        &["find", &odd_path],
        &["find", ODD[3]],
        &["status"],
        &[],
        &["restore", first, "--preview"],
        &["restore", first],
        &["restore", first, ODD[1]],
        &["restore", ODD[2]],
        &["list", "--kind", ODD[0]],
        &["list", "--run", ODD[0]],
        &["--set", ODD[0], "list"],
        &["--set", "guard=\u{1b}[31m", "list"],
        &["-w", ODD[3], "list"],
        &["off", "--for", ODD[0]],
        &["off"],
        &["on"],
        &["config", "show"],
        &["config", "check"],
        &["checkpoint", ODD[0]],
        &["classify", &format!("rm '{}'", ODD[0])],
        &[ODD[3]],
        &["list", "-n", ODD[3]],
        &["list", ODD[2]],
        &[&format!("--{}", ODD[7])],
        &["undo", "--preview"],
        &["restore", first, "--yes"],
        &["undo", "--yes"],
    ] {
        let output = lab.piton(args);
        assert!(harmless(&output.stdout), "{args:?} on stdout: {:?}", output.stdout);
        assert!(harmless(&output.stderr), "{args:?} on stderr: {:?}", output.stderr);
        assert!(!output.stderr.contains("panicked"), "{args:?}: {output:?}");
    }
    // As data they are exact.
    let shown = lab.piton(&["show", first, "--json"]).json();
    let items = shown["paths"]["items"].as_array().unwrap();
    for name in ODD {
        assert!(items.iter().any(|item| item["path"] == format!("dir{name}/{name}")), "{name:?}: {shown}");
    }
    assert!(items.iter().any(|item| item["path_b64"] == "cmF3/xub"), "{shown}");
    let found = lab.piton(&["find", &odd_path, "--json"]).json();
    assert_eq!(found["path"], odd_path);
    let listed = lab.piton(&["list", "--json", "-n", "100"]).json();
    assert!(listed["checkpoints"].as_array().unwrap().iter().all(|row| harmless(row["reason"].as_str().unwrap())));
    assert_eq!(lab.piton(&["status", "--json"]).json()["workspace"]["path"], json!(lab.work));
    let preview = lab.piton(&["restore", first, "--preview", "--json"]).json();
    assert!(preview["plan"]["replace"]["items"].to_string().contains("\\u001b[31mred"), "{preview}");
    if let Some(log) = lab.store_git(&["log", "--all", "--format=%B"]) {
        assert!(harmless(&log), "{log:?}");
    }
}

#[test]
fn odd_text_in_settings_and_in_logs_is_harmless() {
    let lab = Lab::new();
    lab.write(".piton.yaml", "\"\u{202e}key\": \"\\e[31m\"\nguard: \"\\e]0;x\\a\\x9b\"\n");
    lab.write("a", "1");
    for args in [&["config", "check"][..], &["config", "show"], &["list"], &["checkpoint"]] {
        let output = script(&lab, &[("PITON_LOG", "trace")], &format!("\"$PITON\" {}", args.join(" ")));
        assert!(harmless(&output.stdout) && harmless(&output.stderr), "{args:?}: {output:?}");
    }
    let user = lab.user_file();
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    for text in
        ["guard: \"\\e[31m\"\n", "\"\\e[31m\": 1\n", "guard: [\u{9b}\n", "x: \u{202e}\n", "rules: [\"\\e[31m\"]\n"]
    {
        std::fs::write(&user, text).unwrap();
        let output = lab.piton(&["config", "check"]);
        assert!(output.code == 2 && harmless(&output.stderr), "{text:?}: {output:?}");
    }
}

// ---- secrets

#[test]
fn secrets_in_commands_are_nowhere() {
    let secret = "hunter2zebra";
    let aws = "AKIAIOSFODNN7EXAMPLE";
    let commands = [
        format!("PGPASSWORD={secret} psql -c 'DROP TABLE t'"),
        format!("PGPASSWORD='{secret} with spaces {secret}' psql -c 'DROP TABLE t'"),
        format!("export DB_PASSWORD=\"{secret}\"; rm a"),
        format!("tool --password={secret} && rm a"),
        format!("tool --password '{secret}' && rm a"),
        format!("tool --api-key {secret} && rm a"),
        format!("curl -X POST -H 'Authorization: Bearer {secret}' https://example.org; rm a"),
        format!("curl -X POST -H \"X-Api-Key: {secret}\" https://example.org; rm a"),
        format!("curl -X DELETE -u me:{secret} https://example.org; rm a"),
        format!("curl -X DELETE --user 'me:{secret}' https://example.org; rm a"),
        format!("git push https://me:{secret}@example.org/x.git; rm a"),
        format!("git push https://{secret}@example.org/x.git; rm a"),
        format!("psql postgres://me:{secret}@db/x -c 'DROP TABLE t'; rm a"),
        format!("mysql -u root -p{secret} -e 'DROP TABLE t'; rm a"),
        format!("mysql -u root '-p{secret}' -e 'DROP TABLE t'; rm a"),
        format!("redis-cli -a {secret} FLUSHALL; rm a"),
        format!("sshpass -p {secret} ssh host rm x; rm a"),
        format!("AWS_SECRET_ACCESS_KEY={secret} AWS_ACCESS_KEY_ID={aws} aws s3 rm s3://x --recursive; rm a"),
        format!("aws configure set aws_secret_access_key {secret}; rm a"),
        format!("docker login -u me -p {secret}; docker rm -f x; rm a"),
        format!("rm a # {aws}"),
        format!("echo ghp_{secret}abcdefghijkl > a"),
        format!("rm a; echo '{{\"password\": \"{secret}\"}}'"),
        format!("rm a; TOKEN={secret}\n"),
    ];
    let lab = Lab::new();
    let mut told = String::new();
    let log = lab.root().join("log");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.arg("sidecar").env("PITON_LOG", "trace").stderr(std::fs::File::create(&log).unwrap());
    let mut child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut replies = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    for (n, command) in commands.iter().enumerate() {
        lab.write("a", format!("{n}"));
        let requests = [
            json!({"type": "turn.start", "turn": format!("t{n}")}),
            shell(command),
            json!({"type": "tool.before", "tool": "Bash", "input": {"command": command}}),
            json!({"type": "tool.before", "tool": "write_file", "paths": [format!("x?token={secret}")], "writes": true}),
            json!({"type": "checkpoint.create", "label": command}),
            json!({"type": "classify", "command": command}),
        ];
        for (i, mut request) in requests.into_iter().enumerate() {
            let id = json!(n * 10 + i);
            request["id"] = id.clone();
            writeln!(input, "{request}").unwrap();
            let reply = replies.by_ref().map(Result::unwrap).find(|line| {
                // The name of a file stands in the reply as it is: the client has to recognise it.
                if i != 3 {
                    told.push_str(line);
                    told.push('\n');
                }
                serde_json::from_str::<Value>(line).unwrap()["id"] == id
            });
            // A label that reads as a codon is refused, and the refusal repeats no secret either.
            let reply = reply.unwrap();
            assert!(reply.contains("\"ok\":true") || (i == 4 && reply.contains("codon of a run")), "{request}");
        }
    }
    drop(input);
    told.extend(replies.map(Result::unwrap));
    assert!(child.wait().unwrap().success());
    let clean = |what: &str, text: &str| {
        for word in [secret, aws] {
            let lines: Vec<&str> = text.lines().filter(|line| line.contains(word)).collect();
            assert!(lines.is_empty(), "{word} in {what}: {lines:#?}");
        }
    };
    clean("the log", &std::fs::read_to_string(&log).unwrap());
    for args in [
        "list --all -n 1000",
        "list --all --json -n 1000",
        "show",
        "show --json",
        "status",
        "status --json",
        "",
        "restore 1 --preview",
        "restore 1 --preview --json",
    ] {
        let output = lab.piton(&args.split_whitespace().collect::<Vec<_>>());
        clean(args, &(output.stdout + &output.stderr));
    }
    // Objects hold the names and bytes of the user's files as they are, compressed only where that makes them smaller.
    let of_piton = tree(&lab.home.join("piton")).into_iter().filter(|(path, _)| !path.starts_with("store.git/objects"));
    for (path, (_, _, bytes)) in of_piton {
        clean(&path.to_string_lossy(), &String::from_utf8_lossy(&bytes));
    }
    // Piton's texts are in the commits: git reads every one.
    if let Some(all) = lab.store_git(&["cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"])
    {
        let commits: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("commit ")).collect();
        assert!(commits.len() > 20, "{}", commits.len());
        for id in commits {
            clean("a commit", &lab.store_git(&["cat-file", "-p", id]).unwrap());
        }
    }
    clean("replies", &told);
}
