//! `piton push` and `piton fetch`: two homes and a bare repository between them, and a remote that means harm.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::git::{id, recorded, run};
use super::support::{Lab, Sidecar, commit_all, git, short, tree};

/// A bare repository, and a server for it where git has one.
struct Remote {
    dir: PathBuf,
    url: String,
    server: Option<Child>,
    _scratch: tempfile::TempDir,
}

impl Drop for Remote {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Starts `git-daemon` over the repositories below `base`; the server and its port.
///
/// `git-daemon` cannot choose a free port itself. Another test may take the port between the moment it was found free and the
/// start of the server, which then ends at once: another port is tried.
fn serve(daemon: &Path, base: &Path) -> (Child, u16) {
    for _ in 0..20 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Not through `git daemon`, which would leave it behind when it is killed.
        let mut server = Command::new(daemon)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .args(["--verbose", "--listen=127.0.0.1", "--export-all", "--enable=receive-pack"])
            .args([format!("--port={port}"), format!("--base-path={}", base.display())])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = Vec::new();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().any(|line| {
            told.push(line.unwrap());
            told.last().unwrap().contains("Ready to rumble")
        });
        if ready {
            // It goes on telling: somebody has to listen.
            std::thread::spawn(move || lines.for_each(drop));
            return (server, port);
        }
        println!("git-daemon ended ({:?}): {told:?}", server.wait());
    }
    panic!("git-daemon did not start on any of 20 ports");
}

impl Remote {
    /// Served by `git daemon` on the loopback, else by its path.
    fn new() -> Remote {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("shared.git");
        let plain = |args: &[&str]| {
            Command::new("git").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").args(args).output().unwrap()
        };
        assert!(plain(&["init", "-q", "--bare", dir.to_str().unwrap()]).status.success());
        let exec_path = String::from_utf8(plain(&["--exec-path"]).stdout).unwrap();
        let url = dir.to_str().unwrap().to_owned();
        let mut remote = Remote { dir, url, server: None, _scratch: scratch };
        let daemon = Path::new(exec_path.trim()).join("git-daemon");
        if daemon.exists() {
            let (server, port) = serve(&daemon, remote.dir.parent().unwrap());
            remote.url = format!("git://127.0.0.1:{port}/shared.git");
            remote.server = Some(server);
        } else {
            println!("skipped: git has no daemon on this machine; the remote is a path");
        }
        remote
    }

    fn git(&self, args: &[&str], input: &[u8]) -> String {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("GIT_DIR", &self.dir).args(args);
        command.args::<[&str; 0], _>([]).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn refs(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)"], b"").lines().map(str::to_owned).collect()
    }

    /// Gives a name to an object, whatever it is.
    fn name(&self, name: &str, id: &str) {
        self.git(&["update-ref", name, id], b"");
    }

    /// An object as somebody makes it who means harm.
    fn object(&self, kind: &str, content: &[u8]) -> String {
        self.git(&["hash-object", "-t", kind, "--literally", "-w", "--stdin"], content)
    }
}

/// An entry of a tree.
fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let raw: Vec<u8> = (0..20).map(|i| u8::from_str_radix(&id[i * 2..i * 2 + 2], 16).unwrap()).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &raw].concat()
}

fn workspace(lab: &Lab) -> String {
    lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned()
}

fn fetched(lab: &Lab) -> Vec<Value> {
    let listed = lab.piton(&["list", "--remote", "--all", "--json"]);
    assert!([0, 3].contains(&listed.code), "{listed:?}");
    listed.json()["checkpoints"].as_array().unwrap().clone()
}

#[test]
fn another_machine_gets_runs_and_restores_them() {
    let Some(lab) = recorded() else { return };
    let remote = Remote::new();
    lab.sh("mkdir -p deep/er empty; chmod 750 deep; printf '\\000\\377' > deep/er/bytes; chmod 4755 deep/er/bytes; ln -s ../nowhere deep/link");
    lab.sh("echo x > .GIT; chmod 600 b; printf 'broken [' > .gitmodules; printf 'x\\r\\n' > crlf; echo '* text' > .gitattributes");
    let number = lab.take("everything");
    let (everything, theirs) = (tree(&lab.work), workspace(&lab));
    let dry = lab.piton(&["push", &remote.url, "--dry-run", "--json"]);
    assert_eq!((dry.code, dry.json()["sent"].as_u64()), (0, Some(4)), "{dry:?}");
    assert!(remote.refs().is_empty());
    let sent = lab.piton(&["push", &remote.url, "--run", "run-1", "--json"]);
    assert_eq!((sent.code, sent.json()["sent"].as_u64()), (0, Some(1)), "{sent:?}");
    assert_eq!(remote.refs(), [format!("refs/heads/piton/{theirs}/run-1")]);
    let sent = lab.piton(&["push", &remote.url, "--json"]);
    assert_eq!((sent.json()["sent"].as_u64(), sent.json()["known"].as_u64()), (Some(3), Some(1)), "{sent:?}");
    assert_eq!(lab.piton(&["push", &remote.url, "--run", "none"]).code, 3);
    assert_eq!(lab.piton(&["push", "/nonexistent/x.git"]).code, 1);
    assert_eq!(lab.piton(&["push", "--upload-pack=touch"]).code, 2);

    let other = Lab::new();
    other.write("mine", "m\n");
    other.take("mine");
    let sent = other.piton(&["push", &remote.url]);
    assert_eq!(sent.code, 0, "several machines share a remote: {sent:?}");
    let got = other.piton(&["fetch", &remote.url, "--json"]);
    assert_eq!((got.code, got.json()["new"].as_array().map(Vec::len)), (0, Some(4)), "{got:?}");
    let again = other.piton(&["fetch", &remote.url, "--json"]);
    assert_eq!((again.code, again.json()["known"].as_u64()), (0, Some(4)), "{again:?}");
    assert_eq!(fetched(&other).len(), 4);
    let shown = other.piton(&["git", "for-each-ref", "--format=%(refname)"]).stdout;
    assert!(shown.contains(&format!("refs/remotes/{theirs}/run-1\n")), "{shown}");
    // Numbers are one's own; ids are anybody's.
    assert_eq!(other.piton(&["list", "--json"]).json()["total"], 1);
    let third = id(&lab, number);
    assert_eq!(other.piton(&["show", &number.to_string()]).code, 3);
    assert!(other.piton(&["show", &third]).stdout.contains(&theirs));
    assert_eq!(other.piton(&["show", &format!("{third}:crlf")]).stdout, "x\r\n");
    assert!(other.piton(&["diff", &id(&lab, 1), &short(&third, 12)]).stdout.contains("+two"));
    let before = tree(&other.work);
    let mut sidecar = Sidecar::start(&other, &[]);
    sidecar.ask(json!({"type": "hello", "protocol": 1, "client": "test"}));
    let refused = sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": third}));
    assert_eq!(refused["error"]["code"], "other-workspace", "{refused}");
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(tree(&other.work), before);
    let restored = other.piton(&["restore", &short(&third, 12), "--yes", "--json"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert_eq!(tree(&other.work), everything);
    assert_eq!(other.piton(&["git", "rev-parse", "HEAD"]).stdout.trim(), third);
    assert_eq!(other.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(tree(&other.work), before);
    // Retention counts and drops one's own alone.
    for n in 0..4 {
        other.write("mine", format!("{n}\n"));
        let output = other.piton(&["checkpoint", &format!("n{n}"), "--set", "retention.labelled=1"]);
        assert_eq!(output.code, 0, "{output:?}");
    }
    assert_eq!(fetched(&other).len(), 4);
    // New checkpoints come with the next fetch; a run moves forward.
    run(&lab, "run-1", "more of it\n");
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    let got = other.piton(&["fetch", &remote.url, "--json"]);
    assert_eq!(got.json()["new"], json!([format!("{theirs}/heads/run-1")]), "{got:?}");
    assert_eq!(fetched(&other).len(), 5);
    let records = std::fs::read_dir(other.home.join("piton/workspaces").join(workspace(&other))).unwrap();
    assert!(!records.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("fetch-")));
    other.store_git(&["fsck", "--full"]);
    let doctor = other.piton(&["doctor", "--refs"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

/// Has checkpoints say that git shows secrets in them. They are one leaf, or a chain from its beginning.
fn mark_secret(lab: &Lab, chain: &[&str]) {
    let mut parent: Option<String> = None;
    for (at, id) in chain.iter().enumerate() {
        let text = lab.store_git(&["cat-file", "commit", id]).unwrap();
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let (tree, message) = (line("tree ").unwrap(), text.split_once("\n\n").unwrap().1);
        let message = if at == 0 { format!("{message}Flags: secrets\nSecrets: yes\n") } else { message.to_owned() };
        let mut args = vec!["-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", &tree, "-m", &message];
        let above = if at == 0 { line("parent ") } else { parent.clone() };
        args.extend(above.as_deref().into_iter().flat_map(|above| ["-p", above]));
        parent = Some(lab.store_git(&args).unwrap().trim().to_owned());
    }
    let (last, new) = (chain.last().unwrap(), parent.unwrap());
    let refs = lab.store_git(&["for-each-ref", "--points-at", last, "--format=%(refname)"]).unwrap();
    refs.lines().for_each(|name| drop(lab.store_git(&["update-ref", name, &new]).unwrap()));
}

#[test]
fn secrets_stay_here_until_they_are_asked_for() {
    let Some(lab) = recorded() else { return };
    let remote = Remote::new();
    lab.write(".env", "TOKEN=1\n");
    let kept = lab.piton(&["checkpoint", "with secrets", "--json"]);
    assert_eq!(kept.code, 0, "{kept:?}");
    let secret = format!("checkpoint {}", kept.json()["checkpoint"]["n"]);
    run(&lab, "leaky", "1\n");
    run(&lab, "leaky", "2\n");
    // Older versions held secrets where git shows them, and said so.
    let id = kept.json()["checkpoint"]["id"].as_str().unwrap().to_owned();
    mark_secret(&lab, &[&id]);
    let all = lab.store_git(&["for-each-ref", "--format=%(refname)", "refs/heads"]).unwrap();
    let leaky = all.lines().find(|name| name.contains("/leaky")).unwrap().to_owned();
    let chain = lab.store_git(&["rev-list", "--reverse", &leaky]).unwrap();
    mark_secret(&lab, &chain.lines().collect::<Vec<_>>());
    let sent = lab.piton(&["push", &remote.url, "--json"]);
    assert_eq!(sent.code, 4, "{sent:?}");
    let withheld: Vec<Value> =
        sent.json()["withheld"].as_array().unwrap().iter().map(|it| it["what"].clone()).collect();
    assert_eq!(withheld, [json!("run leaky"), json!(secret)], "{sent:?}");
    assert_eq!(remote.refs().len(), 3, "{:?}", remote.refs());
    let everything = remote.git(&["rev-list", "--all", "--objects"], b"");
    assert!(!everything.contains(".env"), "{everything}");
    assert!(lab.piton(&["push", &remote.url]).stdout.contains(&format!("{secret} contains secrets")));
    // git itself would not ask.
    for line in ["push --all", "bundle create ../x.bundle --all"] {
        let args: Vec<&str> = ["git"].into_iter().chain(line.split(' ')).chain([remote.url.as_str()]).collect();
        let args = if line.starts_with("push") { &args[..] } else { &args[..args.len() - 1] };
        assert_eq!(lab.piton(args).code, 5, "{line}");
    }
    assert_eq!(lab.piton(&["push", &remote.url, "--with-secrets"]).code, 0);
    assert_eq!(remote.refs().len(), 5);
}

/// Makes a repository with a commit of these files, and an empty remote; `None` without git.
fn committed(files: &[(&str, &str)]) -> Option<(Lab, Remote)> {
    let lab = Lab::new();
    for (path, content) in files {
        lab.write(path, content);
    }
    commit_all(&lab)?;
    Some((lab, Remote::new()))
}

#[test]
fn a_secret_is_sent_only_while_the_commit_of_head_has_it() {
    let Some((lab, remote)) = committed(&[("a", "a\n"), (".env.shared", "SHARED=1\n")]) else { return };
    let everything = || remote.git(&["rev-list", "--all", "--objects"], b"");
    // Staged by mistake, while a checkpoint is taken.
    lab.write("prod.env", "TOKEN=1\n");
    git(&lab, &["add", "-f", "prod.env"]);
    lab.take("staged");
    git(&lab, &["reset", "-q"]);
    let sent = lab.piton(&["push", &remote.url]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(everything().contains(".env.shared") && !everything().contains("prod.env"), "{}", everything());
    // Committed, and taken out again by the next commit: the old checkpoint stays here.
    git(&lab, &["add", "-f", "prod.env"]);
    git(&lab, &["commit", "-qm", "two"]);
    lab.take("committed");
    assert_eq!(lab.piton(&["push", &remote.url, "--dry-run"]).code, 0, "others have it too");
    git(&lab, &["rm", "-q", "--cached", "prod.env"]);
    git(&lab, &["commit", "-qm", "three"]);
    let kept = lab.piton(&["push", &remote.url]);
    assert!(kept.code == 4 && kept.stdout.contains("contains secrets: `prod.env`"), "{kept:?}");
    assert!(!everything().contains("prod.env"));
    assert_eq!(lab.piton(&["git", "push", &remote.url, "--all"]).code, 5);
    assert_eq!(lab.piton(&["push", &remote.url, "--with-secrets"]).code, 0);
    assert!(everything().contains("prod.env"));
}

#[test]
fn an_ignored_file_is_sent_only_once_the_commit_of_head_has_it() {
    let Some((lab, remote)) = committed(&[(".gitignore", "*.csv\n")]) else { return };
    let everything = || remote.git(&["rev-list", "--all", "--objects"], b"");
    // Staged by mistake, while a checkpoint is taken.
    lab.write("c.csv", "customers\n");
    git(&lab, &["add", "-f", "c.csv"]);
    lab.take("staged");
    git(&lab, &["reset", "-q"]);
    lab.take("not staged");
    // Private before it was staged.
    lab.write("d.csv", "customers\n");
    lab.take("private");
    git(&lab, &["add", "-f", "d.csv"]);
    lab.take("staged later");
    // No rule ignores it any more.
    lab.write(".gitignore", "c.csv\n");
    lab.take("not ignored");
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    assert!(!everything().contains(".csv"), "{}", everything());
    std::fs::remove_file(lab.work.join("c.csv")).unwrap();
    std::fs::remove_file(lab.work.join("d.csv")).unwrap();
    lab.restore("staged", &["--local"]);
    assert_eq!(lab.read("c.csv"), "customers\n");
    lab.restore("staged later", &["--local"]);
    assert_eq!(lab.read("d.csv"), "customers\n");
    git(&lab, &["commit", "-qm", "two"]);
    lab.take("committed");
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    assert!(everything().contains("d.csv") && !everything().contains("c.csv"), "{}", everything());
}

#[test]
fn a_secret_in_a_name_or_in_the_target_of_a_link_is_not_sent() {
    let lab = Lab::new();
    lab.write("a", "a\n");
    if git(&lab, &["init", "-q"]).is_none() {
        return;
    }
    let remote = Remote::new();
    let token = format!("ghp_{}", "a1B2c3".repeat(6));
    symlink("https://user:q8Zr4Lw0Xc7Nv2Bt@example.org/x", lab.work.join("link")).unwrap();
    lab.take("a link");
    std::fs::remove_file(lab.work.join("link")).unwrap();
    lab.write(&format!("{token}.txt"), "b\n");
    lab.take("a name");
    std::fs::rename(lab.work.join(format!("{token}.txt")), lab.work.join("b")).unwrap();
    lab.write(&format!("{token}/c"), "c\n");
    lab.take("a directory");
    let sent = lab.piton(&["push", &remote.url]);
    assert_eq!(sent.code, 4, "{sent:?}");
    for place in ["in the content of `link`", "`***.txt`", "`***`"] {
        assert!(sent.stdout.contains(&format!("contains secrets: {place}")), "{place}: {sent:?}");
    }
    let everything = remote.git(&["rev-list", "--all", "--objects"], b"");
    assert!(!everything.contains("ghp_") && !everything.contains("link"), "{everything}");
}

#[test]
fn a_remote_that_means_harm_does_none() {
    let Some(lab) = recorded() else { return };
    let remote = Remote::new();
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    let theirs = workspace(&lab);
    let good = remote.git(&["cat-file", "-p", &format!("refs/piton/{theirs}/manual/1")], b"");
    let (_, rest) = good.split_once('\n').unwrap();
    let blob = remote.object("blob", b"evil\n");
    let shard = |text: &str| {
        let meta = remote.object("blob", text.as_bytes());
        let tree = remote.object("tree", &entry("100644", "meta", &meta));
        let piton = remote.object("tree", &entry("40000", "tree", &tree));
        remote.object("tree", &[entry("40000", ".piton", &piton), entry("100644", "a", &blob)].concat())
    };
    let plain = remote.object("tree", &entry("100644", "a", &blob));
    let commit = |tree: &str, n: u64, text: &str| {
        remote.object(
            "commit",
            format!("tree {tree}\n{text}\n").replace("Ordinal: 1\n", &format!("Ordinal: {n}\n")).as_bytes(),
        )
    };
    let stranger = remote.object(
        "commit",
        format!("tree {plain}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nno checkpoint\n").as_bytes(),
    );
    let forged = commit(&shard("mode 4777 ../outside\nskip no-such-reason 1 a\n"), 70, rest);
    remote.name(&format!("refs/piton/{theirs}/manual/70"), &forged);
    let grafted = commit(&plain, 75, &format!("parent {stranger}\n{rest}"));
    for (name, id) in [
        (format!("refs/heads/piton/{theirs}/plain"), &stranger),
        (format!("refs/piton/{theirs}/manual/71"), &commit(&plain, 72, rest)),
        (format!("refs/piton/{theirs}/auto/73"), &commit(&plain, 73, rest)),
        (format!("refs/piton/{theirs}/manual/74"), &blob),
        (format!("refs/piton/{theirs}/manual/75"), &grafted),
        (format!("refs/piton/{theirs}/manual/076"), &commit(&plain, 76, rest)),
        (format!("refs/piton/{theirs}/exit/77"), &commit(&plain, 77, rest)),
        (format!("refs/heads/piton/{theirs}/leaf"), &commit(&plain, 78, rest)),
        ("refs/piton/0000000000000000/manual/1".to_owned(), &commit(&plain, 1, rest)),
        ("refs/piton/UPPER/manual/1".to_owned(), &forged),
        ("refs/heads/piton/x/y/z/$(touch-evil)`".to_owned(), &forged),
        ("refs/heads/unrelated".to_owned(), &stranger),
    ] {
        remote.name(&name, id);
    }
    let other = Lab::new();
    other.write("a", "mine\n");
    other.take("mine");
    // Somebody gives names of ours to what is theirs.
    remote.name(&format!("refs/piton/{}/manual/9", workspace(&other)), &forged);
    let world = tree(&other.root().join("work"));
    let beside = || std::fs::read_dir(other.root()).unwrap().count();
    let before = beside();
    let got = other.piton(&["fetch", &remote.url, "--json"]);
    assert_eq!(got.code, 4, "{got:?}");
    assert_eq!(got.json()["refused"].as_array().unwrap().len(), 11, "{got:?}");
    assert_eq!(fetched(&other).len(), 4, "the three good ones, and the forged record in a checkpoint's shape");
    let listed = other.piton(&["list", "--json"]).json();
    assert_eq!(listed["total"], 1, "{listed}");
    // The refused objects did not come into the store.
    for id in [&stranger, &grafted] {
        let mut command = other.command("git", &other.work);
        let there =
            command.arg("--git-dir").arg(other.store()).args(["cat-file", "-e", id]).stderr(Stdio::null()).status();
        assert!(!there.unwrap().success(), "{id}");
    }
    assert_eq!(tree(&other.work), world);
    for args in [vec!["show", &forged], vec!["diff", &forged], vec!["restore", &forged, "--yes"]] {
        let output = other.piton(&args);
        assert!((0..=6).contains(&output.code) && !output.stderr.contains("panicked"), "{args:?}: {output:?}");
        assert!(!other.root().join("outside").exists());
        assert_eq!(beside(), before, "{args:?}");
    }
    // A run that goes back, and a checkpoint that became another.
    let run = format!("refs/heads/piton/{theirs}/run-1");
    let typed = remote.git(&["cat-file", "-p", &run], b"");
    let (_, rest) = typed.split_once('\n').unwrap();
    remote.name(&run, &remote.object("commit", format!("tree {plain}\n{rest}\n").as_bytes()));
    remote.name(&format!("refs/piton/{theirs}/manual/70"), &commit(&plain, 70, good.split_once('\n').unwrap().1));
    let before = fetched(&other);
    let got = other.piton(&["fetch", &remote.url, "--json"]);
    assert_eq!((got.code, got.json()["new"].as_array().map(Vec::len)), (4, Some(0)), "{got:?}");
    assert_eq!(fetched(&other), before);
    other.store_git(&["fsck", "--full"]);
    let doctor = other.piton(&["doctor", "--refs"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

#[test]
fn the_users_way_to_a_server_is_taken_and_their_hooks_are_not() {
    let Some(lab) = recorded() else { return };
    let remote = Remote::new();
    let hooks = lab.root().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    lab.sh("for hook in pre-push reference-transaction post-merge; do printf '#!/bin/sh\\nexit 1\\n' > ../hooks/$hook; chmod +x ../hooks/$hook; done");
    let config = format!(
        "[url \"{}\"]\n\tinsteadOf = short:\n[core]\n\thooksPath = {}\n[push]\n\tgpgSign = true\n[fetch]\n\tprune = true\n",
        remote.url,
        hooks.display()
    );
    std::fs::write(lab.home.join(".gitconfig"), &config).unwrap();
    let sent = lab.piton(&["push", "short:"]);
    assert_eq!((sent.code, remote.refs().len()), (0, 3), "{sent:?}");
    let other = Lab::new();
    other.write("a", "a");
    other.take("a");
    // Where the user keeps it is the user's to say.
    std::fs::write(other.root().join("elsewhere"), &config).unwrap();
    let mut command = other.command(env!("CARGO_BIN_EXE_piton"), &other.work);
    command.env("GIT_CONFIG_GLOBAL", other.root().join("elsewhere")).env("GIT_DIR", "/nonexistent");
    let output = command.args(["fetch", "short:"]).output().unwrap();
    assert_eq!((output.status.code(), fetched(&other).len()), (Some(0), 3), "{output:?}");
    assert_eq!(lab.piton(&["git", "push", "short:", "HEAD:refs/heads/by-hand"]).code, 0);
    assert!(remote.refs().contains(&"refs/heads/by-hand".to_owned()));
}

#[test]
fn a_fetch_that_is_killed_leaves_nothing_half_done() {
    let Some(lab) = recorded() else { return };
    let remote = Remote::new();
    lab.sh("seq 1 20000 > many; for n in $(seq 300); do echo $n > f$n; done");
    lab.take("more");
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    let other = Lab::new();
    other.write("a", "a");
    other.take("a");
    for round in 0..12_u64 {
        let mut command = other.command(env!("CARGO_BIN_EXE_piton"), &other.work);
        let mut child =
            command.args(["fetch", &remote.url]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A little further each time, by work that takes about as long.
        for _ in 0..round {
            other.piton(&["status"]);
        }
        // It may have ended by itself.
        let _ = child.kill();
        child.wait().unwrap();
        let doctor = other.piton(&["doctor", "--refs"]);
        assert_eq!(doctor.code, 0, "round {round}: {doctor:?}");
    }
    let got = other.piton(&["fetch", &remote.url]);
    assert_eq!((got.code, fetched(&other).len()), (0, 4), "{got:?}");
    other.store_git(&["fsck", "--full"]);
    assert_eq!(other.piton(&["list", "--json"]).json()["total"], 1);
}

#[test]
fn trees_that_lead_elsewhere_do_not_come_in() {
    let Some(lab) = recorded() else { return };
    let (remote, other) = (Remote::new(), Lab::new());
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    other.write("a", "a");
    other.take("a");
    assert_eq!(other.piton(&["fetch", &remote.url]).code, 0);
    let (before, theirs) = (fetched(&other), workspace(&lab));
    let good = remote.git(&["cat-file", "-p", &format!("refs/piton/{theirs}/manual/1")], b"");
    let (_, rest) = good.split_once('\n').unwrap();
    let blob = remote.object("blob", b"evil\n");
    let inner = remote.object("tree", &entry("100644", "file", &blob));
    let table = [
        ("a parent", entry("40000", "..", &inner)),
        ("git's directory", entry("40000", ".git", &inner)),
        ("git's directory by another name", entry("40000", "GIT~1", &inner)),
        ("a path", entry("100644", "../outside", &blob)),
        ("no name", entry("100644", "", &blob)),
        ("a file twice", [entry("100644", "a", &blob), entry("100644", "a", &blob)].concat()),
        ("something missing", entry("100644", "a", "1234567812345678123456781234567812345678")),
    ];
    for (n, (name, content)) in (50..).zip(table) {
        let tree = remote.object("tree", &content);
        let text = format!("tree {tree}\n{rest}\n").replace("Ordinal: 1\n", &format!("Ordinal: {n}\n"));
        let commit = remote.object("commit", text.as_bytes());
        let leaf = format!("refs/piton/{theirs}/manual/{n}");
        remote.name(&leaf, &commit);
        let got = other.piton(&["fetch", &remote.url]);
        assert_eq!(got.code, 1, "{name}: {got:?}");
        assert!(got.stderr.contains("git failed before it had fetched everything"), "{name}: {got:?}");
        assert_eq!(fetched(&other), before, "{name}");
        assert_eq!(other.piton(&["restore", &commit, "--yes"]).code, 3, "{name}");
        remote.git(&["update-ref", "-d", &leaf], b"");
    }
    assert_eq!(other.piton(&["fetch", &remote.url]).code, 0);
    other.store_git(&["fsck", "--full"]);
}

#[test]
fn a_push_that_fails_says_what_was_sent() {
    let Some(lab) = recorded() else { return };
    // Nobody listens there any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = lab.root().join("no/such.git").to_str().unwrap().to_owned();
    for dead in [format!("git://127.0.0.1:{port}/shared.git"), nowhere] {
        let pushed = lab.piton(&["push", &dead]);
        assert_eq!(pushed.code, 1, "{pushed:?}");
        let said = format!("Nothing was sent to {dead}; 3 refs not sent");
        assert!(pushed.stdout.starts_with(&said) && !pushed.stdout.contains("Sent 0"), "{pushed:?}");
        let told = lab.piton(&["push", &dead, "--json"]).json();
        assert_eq!((&told["sent"], &told["unsent"], &told["ok"]), (&json!(0), &json!(3), &json!(false)), "{told}");
    }
    // A remote that takes the one and refuses the other.
    let remote = Remote::new();
    let hook = remote.dir.join("hooks/update");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\ncase $1 in refs/heads/*) exit 1 ;; esac\n").unwrap();
    let mut mode = std::fs::metadata(&hook).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    let pushed = lab.piton(&["push", &remote.url]);
    assert_eq!(pushed.code, 1, "{pushed:?}");
    assert!(pushed.stdout.starts_with("Sent 2 refs; the remote already has 0"), "{pushed:?}");
    assert!(pushed.stdout.contains("refused by the remote: refs/heads/"), "{pushed:?}");
    std::fs::remove_file(&hook).unwrap();
    let again = lab.piton(&["push", &remote.url]);
    assert!(again.code == 0 && again.stdout.starts_with("Sent 1 ref; the remote already has 2"), "{again:?}");
}

#[test]
fn shared_trees_are_refused_by_name_and_the_rest_comes_in() {
    let Some(lab) = recorded() else { return };
    let (remote, other) = (Remote::new(), Lab::new());
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    other.write("a", "a");
    other.take("a");
    let theirs = workspace(&lab);
    let good = remote.git(&["cat-file", "-p", &format!("refs/piton/{theirs}/manual/1")], b"");
    let (_, rest) = good.split_once('\n').unwrap();
    let blob = remote.object("blob", b"x\n");
    let mut tree = remote.object("tree", &entry("100644", "file", &blob));
    for _ in 0..10 {
        let level: Vec<u8> = (0..10).flat_map(|k| entry("40000", &format!("d{k}"), &tree)).collect();
        tree = remote.object("tree", &level);
    }
    let text = format!("tree {tree}\n{rest}\n").replace("Ordinal: 1\n", "Ordinal: 80\n");
    remote.name(&format!("refs/piton/{theirs}/manual/80"), &remote.object("commit", text.as_bytes()));
    let got = other.piton(&["fetch", &remote.url, "--json"]);
    let refused = got.json()["refused"].clone();
    assert_eq!((got.code, got.json()["new"].as_array().map(Vec::len)), (4, Some(3)), "{got:?}");
    assert_eq!(refused.as_array().map(Vec::len), Some(1), "{refused}");
    let (name, why) = (refused[0]["name"].as_str().unwrap(), refused[0]["why"].as_str().unwrap());
    assert!(
        name.ends_with("manual/80") && why.contains("21111111110 paths") && why.contains("limits.memory_mb"),
        "{refused}"
    );
    assert_eq!(fetched(&other).len(), 3);
    other.store_git(&["fsck", "--full"]);
    // The names of a workspace of the usual limits find room.
    let many: Vec<u8> = (0..300_000).flat_map(|n| entry("100644", &format!("file-{n:06}.txt"), &blob)).collect();
    let tree = remote.object("tree", &many);
    let text = format!("tree {tree}\n{rest}\n").replace("Ordinal: 1\n", "Ordinal: 81\n");
    remote.name(&format!("refs/piton/{theirs}/manual/81"), &remote.object("commit", text.as_bytes()));
    let got = other.piton(&["fetch", &remote.url, "--json"]);
    assert_eq!(got.json()["new"].as_array().map(Vec::len), Some(1), "{got:?}");
}
