//! Memory: trees that unfold to more than any memory, large files, and a system that gives no more.

use std::io::Write;
use std::process::Stdio;

use super::support::{Lab, Output, tree};

/// Runs piton with so many kilobytes of address space.
fn limited(lab: &Lab, kilobytes: u64, args: &[&str]) -> Output {
    let script = format!("ulimit -v {kilobytes} && exec \"$@\"");
    let mut command = lab.command("/bin/sh", &lab.work);
    command.args(["-ec", &script, "sh", env!("CARGO_BIN_EXE_piton")]).args(args);
    let output = command.output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Puts an object into the store, as nobody but git would.
fn object(lab: &Lab, kind: &str, content: &[u8]) -> String {
    let mut command = lab.command("git", &lab.work);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").arg("--git-dir").arg(lab.store());
    command.args(["hash-object", "-t", kind, "--literally", "-w", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// An entry of a tree.
fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let raw: Vec<u8> = (0..20).map(|i| u8::from_str_radix(&id[i * 2..i * 2 + 2], 16).unwrap()).collect();
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &raw].concat()
}

/// Ten trees, each naming the next one ten times: ten thousand million paths.
fn shared(lab: &Lab, prefix: &str, leaf: Vec<u8>) -> String {
    let mut tree = object(lab, "tree", &leaf);
    for _ in 0..10 {
        let level: Vec<u8> = (0..10).flat_map(|k| entry("40000", &format!("{prefix}{k}"), &tree)).collect();
        tree = object(lab, "tree", &level);
    }
    tree
}

/// Has checkpoint 2 be a copy of checkpoint 1 with another tree.
fn forged(lab: &Lab, tree: &str) -> Option<()> {
    let first = lab.piton(&["show", "1", "--json"]).json()["id"].as_str().unwrap().to_owned();
    let text = lab.store_git(&["cat-file", "-p", &first])?;
    let (_, rest) = text.split_once('\n').unwrap();
    let text =
        format!("tree {tree}\n{rest}").replace("Ordinal: 1\n", "Ordinal: 2\n").replace("Number: 1\n", "Number: 2\n");
    let commit = object(lab, "commit", text.as_bytes());
    let workspace = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    lab.store_git(&["update-ref", &format!("refs/piton/{workspace}/manual/2"), &commit])?;
    Some(())
}

/// Address space for a piton that reads trees: what is listed is bounded by 192 MB.
const ROOM: u64 = 1_500_000;

#[test]
fn shared_trees_in_the_store_unfold_nowhere() {
    for in_records in [false, true] {
        let lab = Lab::new();
        lab.write("a", "one\n");
        lab.take("first");
        let blob = if lab.store_git(&["version"]).is_some() { object(&lab, "blob", b"x\n") } else { return };
        let tree_id = if in_records {
            let records = shared(&lab, "d-", entry("100644", "meta", &object(&lab, "blob", b"skip special 0 x\n")));
            let own = object(&lab, "tree", &entry("40000", "tree", &records));
            object(&lab, "tree", &[entry("40000", ".piton", &own), entry("100644", "a", &blob)].concat())
        } else {
            shared(&lab, "d", entry("100644", "file", &blob))
        };
        forged(&lab, &tree_id).unwrap();
        let (before, target) = (tree(&lab.work), lab.root().join("exported"));
        let export = ["restore", "2", "--to", target.to_str().unwrap(), "--json"];
        let all: [&[&str]; 5] = [
            &["show", "2", "--json"],
            &["restore", "2", "--preview", "--json"],
            &["restore", "2", "--yes", "--json"],
            &export,
            &["diff", "1", "2", "--json"],
        ];
        for args in all {
            let output = limited(&lab, ROOM, args);
            assert_eq!((output.code, output.error().as_str()), (5, "too-large"), "{args:?}: {output:?}");
            assert!(output.stdout.contains("limits.memory_mb"), "{output:?}");
        }
        assert_eq!(tree(&lab.work), before);
        assert!(!target.exists() || std::fs::read_dir(&target).unwrap().next().is_none());
        // Nothing else stops for it. The changes up to it cannot be listed, so no row may name the path.
        for args in [
            &["list", "--json"][..],
            &["list", "--json", "--", "a"],
            &["find", "a"],
            &["show", "1"],
            &["doctor", "--refs"],
        ] {
            let output = limited(&lab, ROOM, args);
            let is_fine = output.code == 0 || (output.code == 3 && args.contains(&"--"));
            assert!(is_fine, "{args:?}: {output:?}");
        }
        lab.write("a", "two\n");
        let output = limited(&lab, ROOM, &["checkpoint", "goes on"]);
        assert_eq!(output.code, 0, "{output:?}");
        assert_eq!(limited(&lab, ROOM, &["restore", "1", "--yes"]).code, 0);
        assert_eq!(lab.read("a"), "one\n");
    }
}

#[test]
fn one_tree_or_record_of_many_megabytes_is_not_unpacked() {
    let lab = Lab::new();
    lab.write("a", "one\n");
    lab.take("first");
    let Some(_) = lab.store_git(&["version"]) else { return };
    // Seventy megabytes of entries, in some hundred kilobytes.
    let blob = object(&lab, "blob", b"");
    let wide: Vec<u8> = (0..2_000_000).flat_map(|n| entry("100644", &format!("{n:08}"), &blob)).collect();
    forged(&lab, &object(&lab, "tree", &wide)).unwrap();
    let output = limited(&lab, 400_000, &["show", "2", "--json"]);
    assert_eq!((output.code, output.error().as_str()), (5, "too-large"), "{output:?}");
    // As a link's target, and as rules.
    let long = object(&lab, "blob", &vec![b'x'; 300 << 20]);
    forged(&lab, &object(&lab, "tree", &entry("120000", "link", &long))).unwrap();
    let output = limited(&lab, 400_000, &["restore", "2", "--yes", "--json"]);
    assert_eq!((output.code, output.error().as_str()), (2, "bad-path"), "{output:?}");
    forged(&lab, &object(&lab, "tree", &entry("100644", ".gitignore", &long))).unwrap();
    let output = limited(&lab, 400_000, &["restore", "2", "--yes", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(lab.read("a"), "one\n", "without its rules nothing proves that a path was not there");
}

#[test]
fn a_commit_of_many_megabytes_is_not_unpacked() {
    let lab = Lab::new();
    lab.write("a", "one\n");
    lab.take("first");
    let Some(_) = lab.store_git(&["version"]) else { return };
    forged(&lab, &object(&lab, "tree", b"")).unwrap();
    let name = lab.store_git(&["for-each-ref", "--format=%(refname)", "refs/piton/*/manual/2"]).unwrap();
    let commit = lab.store_git(&["cat-file", "-p", name.trim()]).unwrap();
    let long = object(&lab, "commit", &[commit.as_bytes(), &vec![b'x'; 500 << 20]].concat());
    lab.store_git(&["update-ref", name.trim(), &long]).unwrap();
    for (args, code) in [
        // It counts as damaged: what is whole is listed.
        (&["list"][..], 6),
        (&["show", "1"], 0),
        (&["show", "2"], 6),
        (&["restore", "2", "--yes"], 6),
        (&["doctor", "--refs"], 6),
        (&["status"], 6),
    ] {
        let output = limited(&lab, 400_000, args);
        assert_eq!(output.code, code, "{args:?}: {output:?}");
    }
    lab.write("a", "two\n");
    for args in [&["checkpoint", "goes on"][..], &["restore", "1", "--yes"]] {
        let output = limited(&lab, 400_000, args);
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
    }
    assert_eq!(lab.read("a"), "one\n");
}

/// Bytes that do not compress, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..length / 8).flat_map(|_| next()).collect()
}

#[test]
fn a_large_file_is_restored_in_little_memory() {
    const LARGE: usize = 300 << 20;
    let lab = Lab::new();
    lab.set("limits: {file_mb: 1000}\n");
    // Shorter than what deflate looks back: it packs well, and only its content is large.
    let block = noise(1 << 14);
    let content: Vec<u8> = block.iter().copied().cycle().take(LARGE).collect();
    lab.write("large", &content);
    lab.take("large");
    for packed in [false, true] {
        if packed && lab.store_git(&["-c", "core.bigFileThreshold=1m", "repack", "-adq"]).is_none() {
            return;
        }
        lab.write("large", "small\n");
        let output = limited(&lab, 250_000, &["restore", "1", "--yes", "--json"]);
        assert_eq!(output.code, 0, "packed: {packed}: {output:?}");
        assert!(std::fs::read(lab.work.join("large")).unwrap() == content, "packed: {packed}");
        let shown = limited(&lab, 250_000, &["find", "large"]);
        assert_eq!(shown.code, 0, "{shown:?}");
    }
}

#[test]
fn memory_that_is_refused_is_named_and_no_damage() {
    let lab = Lab::new();
    lab.set("limits: {file_mb: 1000}\n");
    let mut content = noise(64 << 20);
    lab.write("large", &content);
    lab.take("one");
    content[..8].copy_from_slice(b"changed!");
    lab.write("large", &content);
    lab.take("two");
    // Somebody's git makes a delta of one of them: only libgit2 can read that, and it holds it whole.
    let Some(_) = lab.store_git(&["-c", "core.bigFileThreshold=1g", "repack", "-adfq", "--window=4", "--depth=4"])
    else {
        return;
    };
    lab.write("large", "small\n");
    let before = tree(&lab.work);
    let outcomes = ["1", "2"].map(|n| {
        let output = limited(&lab, 200_000, &["restore", n, "large", "--yes", "--json"]);
        if output.code != 0 {
            assert_eq!(tree(&lab.work), before, "{output:?}");
        }
        lab.write("large", "small\n");
        output
    });
    let refused: Vec<&Output> = outcomes.iter().filter(|output| output.code != 0).collect();
    assert_eq!(refused.len(), 1, "one is a delta: {outcomes:?}");
    assert_eq!((refused[0].code, refused[0].error().as_str()), (1, "no-memory"), "{refused:?}");
    assert!(refused[0].stdout.contains("ulimit -v"), "{refused:?}");
    for n in ["1", "2"] {
        assert_eq!(lab.piton(&["restore", n, "large", "--yes"]).code, 0);
    }
}
