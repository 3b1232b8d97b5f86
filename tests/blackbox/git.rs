//! `piton git`, `piton env`: an ordinary git on a view of one workspace.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::support::{Lab, Output, Sidecar, git, tree};

/// Two manual checkpoints, and a run with a typed one; `None` where there is no git.
pub(crate) fn recorded() -> Option<Lab> {
    let lab = Lab::new();
    git(&lab, &["version"])?;
    lab.write("src/a", "one\n");
    lab.write("b", "b\n");
    lab.take("first");
    lab.write("src/a", "one\ntwo\n");
    lab.take("second codon");
    run(&lab, "run-1", "work of a run\n");
    Some(lab)
}

/// A run that leaves an `exit` checkpoint on its branch.
pub(crate) fn run(lab: &Lab, name: &str, content: &str) {
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "hello", "protocol": 1, "client": "test"}));
    sidecar.ask(json!({"type": "run.start", "run": name}));
    // Behind the base capture, which finds nothing new then.
    sidecar.ask(json!({"type": "checkpoint.list"}));
    lab.write("of-run", content);
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(lab.piton(&["list", "--kind", "exit", "--run", name]).code, 0);
}

pub(crate) fn id(lab: &Lab, n: u64) -> String {
    lab.piton(&["show", &n.to_string(), "--json"]).json()["id"].as_str().unwrap().to_owned()
}

fn ours(lab: &Lab, args: &[&str]) -> Output {
    lab.piton(&[&["git"], args].concat())
}

/// The same line through an ordinary git, in a shell that evaluated `piton env`.
fn ordinary(lab: &Lab, args: &[&str]) -> Output {
    let piton = env!("CARGO_BIN_EXE_piton");
    let script = format!("eval \"$('{piton}' env)\" && git \"$@\"");
    let output = lab.command("/bin/sh", &lab.work).args(["-ec", &script, "sh"]).args(args).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn what_people_ask_a_repository_is_answered() {
    let Some(lab) = recorded() else { return };
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("secret-of-another"), "x").unwrap();
    assert_eq!(lab.piton_in(&other, &["checkpoint", "of another"]).code, 0);
    let (a, b) = (id(&lab, 1), id(&lab, 2));
    let show = format!("{b}:src/a");
    let table: Vec<(Vec<&str>, &[&str])> = vec![
        (vec!["log", "--oneline", "--all"], &["first", "second codon", "[run:run-1] The agent"]),
        (vec!["log", "--all", "--graph", "--oneline"], &["* ", "first", "second codon"]),
        (vec!["diff", &a, &b, "--", "src/a"], &["+two"]),
        (vec!["show", &show], &["one\ntwo\n"]),
        (vec!["ls-tree", "--name-only", &a], &["b\n", "src\n"]),
        (vec!["log", "--all", "--follow", "--oneline", "--", "src/a"], &["first", "second codon"]),
        (vec!["log", "--all", "--grep=codon", "--format=%s"], &["second codon"]),
        (vec!["branch", "--list"], &["run-1"]),
        (vec!["for-each-ref", "--format=%(refname)"], &["refs/heads/run-1\n", "refs/piton/manual/1\n"]),
        (vec!["grep", "two", &b], &["src/a:two"]),
        (vec!["rev-parse", "HEAD"], &[]),
        (vec!["cat-file", "-t", &a], &["commit"]),
        (vec!["name-rev", &a], &["piton/manual/1"]),
        (vec!["shortlog", "-s", "--all"], &["piton"]),
        (vec!["describe", "--all", &b], &["piton/manual/2"]),
        (vec!["rev-list", "--all", "--count"], &["3"]),
        (vec!["archive", "--format=tar", &b], &["src/a"]),
        (vec!["status", "--porcelain"], &[]),
    ];
    for (args, expected) in table {
        let (mine, theirs) = (ours(&lab, &args), ordinary(&lab, &args));
        assert_eq!(mine.code, 0, "{args:?}: {mine:?}");
        assert_eq!((mine.code, &mine.stdout), (theirs.code, &theirs.stdout), "{args:?}: {theirs:?}");
        for part in expected {
            assert!(mine.stdout.contains(part), "{args:?}: no {part:?} in {}", mine.stdout);
        }
        assert!(!mine.stdout.contains("of another") && !mine.stdout.contains("of-another"), "{args:?}: {mine:?}");
    }
    let there = lab.piton_in(&other, &["git", "log", "--all", "--format=%s"]);
    assert_eq!(there.stdout, "manual:- [run:local] of another\n");
    // The exit code is git's own.
    assert_eq!(ours(&lab, &["rev-parse", "--verify", "-q", "none"]).code, 1);
    assert_eq!(ours(&lab, &["diff", "--quiet", &a, &b]).code, 1);
    assert_eq!(ours(&lab, &["cat-file", "-e", "0000000000000000000000000000000000000001"]).code, 1);
}

#[test]
fn the_work_tree_is_compared_with_where_the_workspace_stands() {
    let Some(lab) = recorded() else { return };
    git(&lab, &["init", "-q"]);
    git(&lab, &["add", "b"]);
    // Conversions that the store does not know, a mode and a name that git has no room for.
    lab.sh("printf '* text=auto eol=crlf ident\\n' > .gitattributes; printf 'x\\r\\n$Id$\\n' > crlf; chmod 600 b; echo g > .GITIGNORE~1");
    lab.take("third");
    let own = tree_of_git(&lab);
    assert_eq!(ours(&lab, &["status", "--porcelain"]).stdout, "");
    assert_eq!(ours(&lab, &["diff", "HEAD"]).stdout, "");
    lab.write("src/a", "changed\n");
    lab.write("new", "n");
    let status = " M src/a\n?? new\n";
    assert_eq!(ours(&lab, &["status", "--porcelain"]).stdout, status);
    assert_eq!(ordinary(&lab, &["status", "--porcelain"]).stdout, status);
    assert!(ours(&lab, &["diff"]).stdout.contains("+changed"));
    // From below the root, and by a link to it.
    let below = lab.piton_in(&lab.work.join("src"), &["git", "diff", "--name-only", "--", "a"]);
    assert_eq!(below.stdout, "src/a\n");
    assert_eq!(ours(&lab, &["rev-parse", "HEAD"]).stdout.trim(), id(&lab, 4));
    lab.restore(1, &[]);
    assert_eq!(ours(&lab, &["rev-parse", "HEAD"]).stdout.trim(), id(&lab, 1), "after a restore");
    assert_eq!(ours(&lab, &["status", "--porcelain", "-uno"]).stdout, "");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(ours(&lab, &["diff", "HEAD", "--stat"]).stdout, "", "after an undo");
    // An undo of a step that others have followed goes back in some paths only.
    lab.restore(1, &["src/a"]);
    lab.write("b", "written after the restore\n");
    lab.take("between");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(ours(&lab, &["diff", "HEAD", "--name-only"]).stdout, "src/a\n", "after an undo of an older step");
    lab.take("fourth");
    assert!(ours(&lab, &["log", "-1", "--format=%s"]).stdout.contains("fourth"));
    lab.write("src/a", "five\n");
    lab.take("fifth");
    lab.write("src/a", "six\n");
    let status = ours(&lab, &["status", "--porcelain"]);
    assert_eq!((status.stdout.as_str(), status.stderr.as_str()), (" M src/a\n", ""), "the index moves quietly");
    assert_eq!(tree_of_git(&lab), own, "the user's own repository");
}

/// A format may ask for a signature, which git has a program look at.
#[test]
fn a_signature_runs_no_program() {
    let Some(lab) = recorded() else { return };
    let text = lab.store_git(&["cat-file", "commit", &id(&lab, 1)]).unwrap();
    let signature = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n";
    let mut command = lab.command("git", &lab.work);
    command.arg("--git-dir").arg(lab.store()).args(["hash-object", "-t", "commit", "-w", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.replacen("\n\n", signature, 1).as_bytes()).unwrap();
    let signed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let (bin, ran) = (lab.root().join("bin"), lab.root().join("ran"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("gpg"), format!("#!/bin/sh\ntouch '{}'\n", ran.display())).unwrap();
    std::fs::set_permissions(bin.join("gpg"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let look = |mut command: std::process::Command| {
        command.args(["log", "-1", "--format=%G?", signed.trim()]).env("PATH", &path);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        std::fs::remove_file(&ran).is_ok()
    };
    let mut plain = lab.command("git", &lab.work);
    plain.arg("--git-dir").arg(lab.store());
    assert!(look(plain), "an ordinary git runs it");
    let mut piton = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    piton.arg("git");
    assert!(!look(piton), "piton's does not");
}

fn tree_of_git(lab: &Lab) -> super::support::Tree {
    tree(&lab.work.join(".git"))
}

#[test]
fn what_writes_is_refused_and_says_what_to_use_instead() {
    let Some(lab) = recorded() else { return };
    let evil = lab.root().join("evil");
    let touch = format!("touch {}", evil.display());
    let (alias, output, pager) =
        (format!("alias.log=!{touch}"), format!("--output={}", evil.display()), format!("-O{touch}"));
    let before = (tree(&lab.store()), tree(&lab.work));
    let clustered = format!("-l{pager}").replace("-l-", "-l");
    let table: Vec<(Vec<&str>, &str)> = vec![
        // An option that takes a value takes `--` too.
        (vec!["grep", "-e", "--", &pager, "HEAD"], "open the output"),
        (vec!["grep", "-e", "--", &clustered, "HEAD"], "open the output"),
        (vec!["grep", "--max-depth", "--", &pager, "one", "HEAD"], "open the output"),
        (vec!["diff", "--no-index", "-S", "--", &output, "b", "src/a"], "not checkpoints"),
        (vec!["diff", "-S", "--", &output, "HEAD"], "`>`"),
        (vec!["log", "--author", "-S", &output], "`>`"),
        (vec!["log", "--since", "--", &output], "`>`"),
        (vec!["archive", "--prefix", "--", &output, "HEAD"], "`>`"),
        (vec!["branch", "--", "new"], "a run of this workspace"),
        (vec!["branch", "--format", "--", "new"], "a run of this workspace"),
        (vec!["bundle", "--", "unbundle", "x"], "git clone"),
        (vec!["gc"], "cleans up its store"),
        (vec!["prune"], "cleans up its store"),
        (vec!["repack", "-ad"], "cleans up its store"),
        (vec!["update-ref", "-d", "refs/heads/run-1"], "--pin"),
        (vec!["reflog"], "piton list"),
        (vec!["commit", "-am", "x"], "piton checkpoint"),
        (vec!["checkout", "HEAD~1"], "piton restore"),
        (vec!["reset", "--hard"], "piton restore"),
        (vec!["clean", "-fdx"], "piton restore"),
        (vec!["branch", "-D", "run-1"], "a run of this workspace"),
        (vec!["branch", "new"], "a run of this workspace"),
        (vec!["tag", "x"], "--pin"),
        (vec!["fetch", "x"], "piton fetch"),
        (vec!["config", "user.name", "x"], "piton config"),
        (vec!["worktree", "add", "x"], "--to DIR"),
        (vec!["difftool"], "git diff"),
        (vec!["-c", &alias, "log"], "run programs"),
        (vec!["--exec-path=/x", "log"], "run programs"),
        (vec!["log", &output], "`>`"),
        (vec!["grep", &pager, "one", "HEAD"], "open the output"),
        (vec!["bundle", "unbundle", "x"], "git clone"),
        (vec!["fsck"], "piton doctor"),
        (vec!["cat-file", "--batch-check", "--batch-all-objects"], "rev-list"),
        (vec!["frobnicate"], "only commands that read"),
        (vec!["blame", &output, "b"], "`>`"),
        (vec!["shortlog", &output, "HEAD"], "`>`"),
        (vec!["rev-list", &output, "HEAD"], "`>`"),
        (vec!["stash", "show", &output], "piton checkpoint"),
        (vec!["reflog", &output], "piton list"),
        (vec!["fast-export", "--export-marks=x", "HEAD"], "never changes"),
        (vec!["interpret-trailers", "--in-place", "b"], "only commands that read"),
        (vec!["ls-remote", "--upload-pack", &touch, "."], "only commands that read"),
        (vec!["fetch", "--upload-pack", &touch, "."], "piton fetch"),
        (vec!["clone", "-u", &touch, ".", "x"], "--to DIR"),
        (vec!["rebase", "-x", &touch, "HEAD"], "piton restore"),
        (vec!["log", "--show-signature"], "no signatures"),
        (vec!["push", "--receive-pack", &touch, "."], "piton push"),
        (vec!["push", "ext::touch"], "piton push"),
    ];
    for (args, instead) in table {
        let output = ours(&lab, &args);
        assert_eq!((output.code, output.stdout.as_str()), (5, ""), "{args:?}: {output:?}");
        assert!(output.stderr.contains(instead) && output.stderr.contains("--unsafe"), "{args:?}: {output:?}");
    }
    assert!(!evil.exists());
    assert_eq!((tree(&lab.store()), tree(&lab.work)), before);
    // A word that only looks like such an option is a plain word.
    for args in [
        vec!["grep", "-e", "-Ofast", "HEAD"],
        vec!["grep", "-n", "-e", "one", "HEAD", "--", "src/a"],
        vec!["log", "-S", &output],
        vec!["log", "--oneline", "--", &output],
        vec!["diff", "HEAD~0", "--", &output],
    ] {
        let output = ours(&lab, &args);
        assert!([0, 1].contains(&output.code), "{args:?}: {output:?}");
    }
    // Programs that a tree's attributes name are configured nowhere.
    lab.write(".gitattributes", "* diff=evil\n");
    lab.take("with attributes");
    for args in
        [vec!["show", "--textconv", "HEAD"], vec!["cat-file", "--textconv", "HEAD:b"], vec!["log", "-p", "--all"]]
    {
        ours(&lab, &args);
    }
    std::fs::remove_file(lab.work.join(".gitattributes")).unwrap();
    assert!(!evil.exists());
    let before = (tree(&lab.store()), before.1);
    // With `--unsafe` they run, on the view: the store keeps what it has.
    for args in [vec!["gc", "--prune=now"], vec!["update-ref", "-d", "refs/piton/manual/1"], vec!["prune"]] {
        let output = ours(&lab, &[&["--unsafe"], args.as_slice()].concat());
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
    }
    let objects = |tree: &super::support::Tree| tree.keys().filter(|path| !path.ends_with("boot")).count();
    assert_eq!(objects(&tree(&lab.store())), objects(&before.0));
    assert_eq!(ours(&lab, &["rev-list", "--all", "--count"]).stdout, "4\n");
    assert_eq!(ours(&lab, &[]).code, 2);
}

#[test]
fn nothing_of_the_callers_git_comes_in() {
    let Some(lab) = recorded() else { return };
    let evil = lab.root().join("evil");
    let touch = format!("touch {}", evil.display());
    let hooks = lab.root().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    std::fs::write(
        lab.home.join(".gitconfig"),
        format!("[alias]\n\tlog = !{touch}\n[core]\n\thooksPath = {}\n[diff]\n\texternal = {touch}\n[diff \"x\"]\n\ttextconv = {touch}\n[log]\n\tshowSignature = true\n", hooks.display()),
    )
    .unwrap();
    lab.write(".gitattributes", "* diff=x filter=x\n");
    lab.take("attributes");
    lab.write("src/a", "other\n");
    for line in ["log -p --all --oneline", "diff", "status --porcelain", "show HEAD"] {
        let args: Vec<&str> = line.split(' ').collect();
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        for (name, value) in [
            ("GIT_DIR", "/nonexistent"),
            ("GIT_WORK_TREE", "/"),
            ("GIT_INDEX_FILE", "/nonexistent"),
            ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
            ("GIT_EXTERNAL_DIFF", &touch),
            ("GIT_CONFIG_PARAMETERS", "'diff.external=touch evil'"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "diff.external"),
            ("GIT_CONFIG_VALUE_0", &touch),
            ("GIT_NAMESPACE", "x"),
            ("GIT_TRACE", evil.to_str().unwrap()),
        ] {
            command.env(name, value);
        }
        let output = command.arg("git").args(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        assert!(!evil.exists(), "{line}");
    }
    // No git at all.
    let empty = lab.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env("PATH", &empty).args(["git", "log"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("install git"), "{output:?}");
}

#[test]
fn a_view_is_made_anew_whatever_became_of_it() {
    let Some(lab) = recorded() else { return };
    let count = || ours(&lab, &["rev-list", "--all", "--count"]).stdout;
    assert_eq!(count(), "3\n");
    let workspace = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap().next().unwrap().unwrap().path();
    let view = workspace.join("view.git");
    ours(&lab, &["status"]);
    for name in ["HEAD", "config", "packed-refs", "objects/info/alternates", "info/attributes", "index", "index-of"] {
        let path = view.join(name);
        for content in [None, Some(&b""[..]), Some(b"nonsense\n")] {
            match content {
                None => std::fs::remove_file(&path).unwrap(),
                // The configuration is the user's to add to; what has our first line stays.
                Some(_) if name == "index" => continue,
                Some(content) => std::fs::write(&path, content).unwrap(),
            }
            assert_eq!(count(), "3\n", "{name}: {content:?}");
            assert_eq!(
                ours(&lab, &["status", "--porcelain"]),
                Output { code: 0, stdout: String::new(), stderr: String::new() },
                "{name}"
            );
        }
    }
    std::fs::write(view.join("packed-refs.tmp-1-1"), "torn").unwrap();
    // As a git leaves them that was killed while it made an index.
    std::fs::write(view.join("index.piton-new.lock"), "").unwrap();
    std::fs::write(view.join("index.piton-1-1.lock"), "").unwrap();
    std::fs::remove_dir_all(view.join("refs")).unwrap();
    assert_eq!(count(), "3\n");
    assert!(!view.join("packed-refs.tmp-1-1").exists());
    // Killed anywhere, and many at once beside checkpoints.
    for n in 0..20 {
        lab.write("src/a", format!("{n}\n"));
        lab.take(&format!("n{n}"));
        let mut child = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let mut child = child.args(["git", "status"]).stdout(Stdio::null()).spawn().unwrap();
        if n % 4 != 0 {
            std::fs::read_dir(&view).unwrap().for_each(drop);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(count(), "23\n");
    // The killed ones may have finished it.
    let _ = std::fs::remove_file(view.join("index-of"));
    let status = ours(&lab, &["status", "--porcelain"]);
    assert_eq!((status.code, &*status.stdout), (0, ""), "{status:?}");
    let names = std::fs::read_dir(&view).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("index.piton-")).count(), 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 23;
                for _ in 0..6 {
                    let now: u64 = count().trim().parse().unwrap();
                    assert!(now >= last, "{now} after {last}");
                    last = now;
                }
            });
        }
        for n in 0..6 {
            lab.write("src/a", format!("more {n}\n"));
            lab.take(&format!("m{n}"));
        }
    });
    assert_eq!(count(), "29\n");
    lab.store_git(&["fsck", "--full"]);
}

#[test]
fn what_is_printed_for_shells_is_quoted() {
    let Some(lab) = recorded() else { return };
    let odd = lab.root().join("a 'quoted' $(touch evil)\n\"dir\\");
    std::fs::rename(&lab.work, &odd).unwrap();
    let lab = Lab { work: odd, ..lab };
    lab.take("odd");
    assert_eq!(
        ordinary(&lab, &["status", "--porcelain"]),
        Output { code: 0, stdout: String::new(), stderr: String::new() }
    );
    assert_eq!(ordinary(&lab, &["log", "--format=%s"]).stdout, "manual:- [run:local] odd\n");
    let text = lab.piton(&["env"]).stdout;
    let leave = text.lines().find_map(|line| line.strip_prefix("# to leave: ")).unwrap().to_owned();
    let script = format!("eval \"$('{}' env)\"; {leave}; env | grep ^GIT_ || true", env!("CARGO_BIN_EXE_piton"));
    let output = lab.command("/bin/sh", &lab.work).args(["-ec", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(lab.piton(&["env", "--shell", "fish"]).stdout.contains("set -gx GIT_DIR '"));
    let view = lab.piton(&["env", "--json"]).json()["GIT_DIR"].as_str().unwrap().to_owned();
    assert!(Path::new(&view).join("HEAD").is_file());
}

#[test]
fn the_doctor_names_lost_refs_and_puts_back_what_can_be_derived() {
    let Some(lab) = recorded() else { return };
    let doctor = |args: &[&str]| lab.piton(&[&["doctor", "--refs"], args].concat());
    assert_eq!(doctor(&[]).code, 0, "{:?}", doctor(&[]));
    let workspace = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    let (leaf, lost) = (format!("refs/piton/{workspace}/manual/1"), format!("refs/piton/{workspace}/manual/99"));
    let before = lab.piton(&["list", "--json"]).json()["checkpoints"].clone();
    std::fs::write(lab.store().join(&leaf), "").unwrap();
    std::fs::write(lab.store().join(&lost), "0123456789012345678901234567890123456789\n").unwrap();
    let found = doctor(&[]);
    assert_eq!(found.code, 6, "{found:?}");
    assert!(found.stdout.contains(&format!("`--repair` would put `{leaf}` at ")), "{found:?}");
    assert_eq!(std::fs::read(lab.store().join(&leaf)).unwrap(), b"", "nothing is changed by looking");
    let kinds: Vec<_> =
        doctor(&["--json"]).json()["findings"].as_array().unwrap().iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, ["torn-ref", "no-commit"]);
    let repaired = doctor(&["--repair"]);
    assert_eq!(repaired.code, 4, "one cannot be derived: {repaired:?}");
    assert!(repaired.stderr.contains(&format!("repairing: put `{leaf}` at ")), "{repaired:?}");
    assert!(lab.store().join(&lost).is_file(), "nothing is deleted");
    assert_eq!(lab.piton(&["list", "--json"]).json()["checkpoints"], before);
    std::fs::remove_file(lab.store().join(&lost)).unwrap();
    assert_eq!(doctor(&["--repair"]).code, 0);
    assert_eq!(lab.piton(&["doctor", "--repair"]).code, 2);
}
