//! Somebody who wants a restore to write where it should not: by swapping directories while it works, by hard links, and
//! by checkpoints that piton never made.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::ends::Ends;
use super::faults::full;
use super::support::{Lab, lacking, tree};

/// A directory is swapped for a link to `outside` and back, as fast as one thread can, while checkpoints and restores run.
#[test]
fn a_directory_swapped_for_a_link_while_restores_run() {
    // Each lab has a journal of its own, which every restore reads.
    let (labs, rounds) = if full() { (20, 500) } else { (1, 60) };
    let (mut ended, mut swaps) = (0, 0);
    for _ in 0..labs {
        let (whole, swapped) = attacked(rounds);
        ended += whole;
        swaps += swapped;
    }
    println!(
        "attacks: {} restores, {ended} whole, {} refused or in part; {swaps} swaps",
        labs * rounds,
        labs * rounds - ended
    );
}

/// Restores while a directory is swapped; gives how many were whole, and how often it was swapped.
fn attacked(rounds: usize) -> (usize, u64) {
    let lab = Lab::new();
    let outside = lab.root().join("outside");
    lab.sh("mkdir -p ../outside/sub; echo precious > ../outside/a; echo precious > ../outside/sub/b; echo p > ../outside/victim");
    lab.sh(
        "mkdir -p dir/sub; echo 1 > dir/a; echo 1 > dir/sub/b; echo 1 > dir/only-one; ln ../outside/victim dir/linked",
    );
    lab.take("one");
    lab.sh("echo 2 > dir/a; chmod 600 dir/sub/b; rm dir/only-one; echo 2 > dir/only-two; mkdir dir/empty");
    // Not through the link: a new file with the same name.
    lab.sh("rm dir/linked; echo 2 > dir/linked");
    lab.take("two");
    lab.sh("rm dir/linked; ln ../outside/victim dir/linked");
    let before = tree(&outside);
    let (done, swaps) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    let mut ended = 0;
    std::thread::scope(|scope| {
        let _ends = Ends(&done);
        scope.spawn(|| {
            let (dir, aside) = (lab.work.join("dir"), lab.root().join("aside"));
            while !done.load(Ordering::Relaxed) {
                if std::fs::rename(&dir, &aside).is_ok() && symlink(&outside, &dir).is_ok() {
                    std::hint::spin_loop();
                    let _ = std::fs::remove_file(&dir);
                }
                // A restore may have made the directory anew meanwhile; then that one goes on.
                if std::fs::rename(&aside, &dir).is_err() {
                    let _ = std::fs::remove_dir_all(&aside);
                }
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 0..rounds {
            let n = if round % 2 == 0 { "1" } else { "2" };
            let output = lab.piton(&["restore", n, "--yes", "--json"]);
            ended += usize::from(output.code == 0);
            if output.stdout.contains("rollback-in-progress") {
                lab.piton(&["restore", "--abort", "--yes"]);
            }
            if round % 50 == 0 {
                assert_eq!(tree(&outside), before, "round {round}: {output:?}");
            }
        }
    });
    assert_eq!(tree(&outside), before);
    (ended, swaps.into_inner())
}

/// Git objects as an attacker would make them, whatever git thinks of them.
fn object(lab: &Lab, kind: &str, content: &[u8]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(lab.store()).args(["hash-object", "-t", kind, "--literally", "-w", "--stdin"]);
    let child = command.env("GIT_CONFIG_GLOBAL", "/dev/null").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        lacking("git");
        return None;
    };
    child.stdin.take().unwrap().write_all(content).unwrap();
    Some(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned())
}

fn entry(mode: &str, name: &[u8], id: &str) -> Vec<u8> {
    let raw = (0..20).map(|i| u8::from_str_radix(&id[i * 2..i * 2 + 2], 16).unwrap());
    [mode.as_bytes(), b" ", name, b"\0"].concat().into_iter().chain(raw).collect()
}

#[test]
fn checkpoints_that_piton_never_made() {
    let lab = Lab::new();
    lab.sh(
        "mkdir .git sub ../outside; echo config > .git/config; echo 1 > a; echo 1 > sub/b; echo o > ../outside/file",
    );
    lab.take("good");
    let id = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    let Some(blob) = object(&lab, "blob", b"evil\n") else { return };
    let make = |kind: &str, content: &[u8]| object(&lab, kind, content).unwrap();
    let outside = lab.root().join("outside");
    let link = make("blob", outside.to_str().unwrap().as_bytes());
    let inner = make("tree", &entry("100644", b"file", &blob));
    let config = make("tree", &entry("100644", b"config", &blob));
    let shard = |text: &str| {
        let tree = make("tree", &entry("100644", b"meta", &make("blob", text.as_bytes())));
        let piton = make("tree", &entry("40000", b"tree", &tree));
        [entry("40000", b".piton", &piton), entry("100644", b"a", &blob)].concat()
    };
    let table: Vec<(&str, Vec<u8>)> = vec![
        ("a parent", entry("40000", b"..", &make("tree", &entry("40000", b"outside", &inner)))),
        ("itself", entry("40000", b".", &inner)),
        ("a slash", entry("100644", b"../outside/file", &blob)),
        ("an absolute path", entry("100644", outside.join("file").to_str().unwrap().as_bytes(), &blob)),
        ("no name", entry("100644", b"", &blob)),
        ("git's directory", entry("40000", b".git", &config)),
        ("git's directory, below", entry("40000", b"sub", &make("tree", &entry("40000", b".git", &config)))),
        ("git's directory, in capitals", entry("40000", b".GIT", &config)),
        ("git's directory, escaped", entry("40000", b"~piton~.git", &config)),
        ("a parent, escaped", entry("40000", b"~piton~..", &make("tree", &entry("40000", b"outside", &inner)))),
        ("a submodule", entry("160000", b"sub", &inner)),
        ("an unknown mode", entry("100777", b"a", &blob)),
        ("a link and a directory", [entry("120000", b"sub", &link), entry("40000", b"sub", &inner)].concat()),
        ("a link, and a file through it", [entry("120000", b"l", &link), entry("40000", b"l", &inner)].concat()),
        ("a file twice", [entry("100644", b"a", &blob), entry("100644", b"a", &link)].concat()),
        ("a tree that is a blob", entry("40000", b"sub", &blob)),
        ("a blob that is a tree", entry("100644", b"a", &inner)),
        ("a missing blob", entry("100644", b"a", "1234567812345678123456781234567812345678")),
        ("permissions of a parent", shard("mode 4777 ../outside/file\n")),
        ("permissions that are none", shard("mode 99999 a\n")),
        ("a record of nonsense", shard("skip no-such-reason 1 a\nmode\n\u{0}\n")),
        ("a record of something absent", shard("mode 0777 nowhere\n")),
    ];
    let good = lab.store_git(&["cat-file", "-p", &format!("refs/piton/{id}/manual/1")]).unwrap();
    let (git, world) = (tree(&lab.work.join(".git")), tree(&outside));
    for (n, (name, content)) in (10..).zip(table) {
        let root = make("tree", &content);
        let message = good.replace("Ordinal: 1", &format!("Ordinal: {n}"));
        let (_, rest) = message.split_once('\n').unwrap();
        let commit = make("commit", format!("tree {root}\n{rest}").as_bytes());
        std::fs::write(lab.store().join(format!("refs/piton/{id}/manual/{n}")), format!("{commit}\n")).unwrap();
        let to = lab.root().join("to");
        for args in [
            vec!["list".to_owned()],
            vec!["show".into(), n.to_string()],
            vec!["diff".into(), n.to_string()],
            vec!["find".into(), "a".into()],
            vec!["restore".into(), n.to_string(), "--to".into(), to.to_str().unwrap().into(), "--yes".into()],
            vec!["restore".into(), n.to_string(), "--yes".into()],
        ] {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let output = lab.piton(&args);
            assert!((0..=6).contains(&output.code), "{name}: {args:?} died: {output:?}");
            assert!(!output.stderr.contains("panicked"), "{name}: {args:?}: {output:?}");
            assert_eq!(tree(&outside), world, "{name}: {args:?}: {output:?}");
            assert_eq!(tree(&lab.work.join(".git")), git, "{name}: {args:?}: {output:?}");
            assert!(!lab.root().join("file").exists(), "{name}: {args:?}");
            let made = std::fs::read_dir(lab.root()).unwrap().count();
            assert!(made <= 4, "{name}: {args:?}: something new beside the workspace: {output:?}");
        }
        let _ = std::fs::remove_dir_all(&to);
        // After any effect of it, it is undone, and the good one still comes back.
        std::fs::remove_file(lab.store().join(format!("refs/piton/{id}/manual/{n}"))).unwrap();
        let back = lab.piton(&["restore", "1", "--yes", "--json"]);
        assert!([0, 3].contains(&back.code), "{name}: {back:?}");
        assert_eq!((lab.read("a").as_str(), lab.read("sub/b").as_str()), ("1\n", "1\n"), "{name}");
    }
}

#[test]
fn a_workspace_with_a_directory_of_pitons_name_is_a_workspace() {
    let lab = Lab::new();
    lab.sh("mkdir -p .piton/tree .PITON '~piton~x' '.piton~'; printf 'mode 4777 a\\n' > .piton/tree/meta; echo i > .piton/info");
    lab.sh("echo 1 > a; echo 2 > .PITON/x; echo 3 > '~piton~x/y'; echo 4 > '.piton~/z'; chmod 640 a");
    let n = lab.take("odd");
    let before = tree(&lab.work);
    lab.sh("rm -rf .piton .PITON '~piton~x' '.piton~' a");
    lab.restore(n, &[]);
    assert_eq!(tree(&lab.work), before);
}
