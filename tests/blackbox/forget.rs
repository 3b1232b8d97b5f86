//! Forgetting on purpose: content that goes out of every checkpoint, and the proof that its bytes are gone.
//!
//! `PITON_ROUNDS=full` kills 50 times, otherwise 8.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::dice::Dice;
use super::faults::full;
use super::support::{Lab, Output, Sidecar, Tree, git, id_of, short, tree};

/// The secret. A number follows it, which tells the place where it was planted.
const SECRET: &str = "zqSecretQz";

fn secret(place: u32) -> String {
    format!("{SECRET}{place:02}")
}

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

/// Runs piton with a text on its stdin.
fn piton_with(lab: &Lab, input: &[u8], args: &[&str]) -> Output {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn forget_secret(lab: &Lab, more: &[&str]) -> Output {
    piton_with(lab, SECRET.as_bytes(), &[&["forget", "--secret", "-", "--yes"][..], more].concat())
}

/// Every place below piton's home that has the secret: in names, in bytes, and in whatever can be inflated from anywhere.
fn places(lab: &Lab) -> Vec<PathBuf> {
    let home = lab.home.join("piton");
    let mut found = Vec::new();
    for (path, (_, _, content)) in tree(&home) {
        let name = path.as_os_str().as_encoded_bytes();
        if holds(name) || holds(&content) || inflated_holds(&content) {
            found.push(path);
        }
    }
    // Deltas are resolved by an ordinary git.
    let mut command = lab.command("git", &lab.work);
    command.arg("--git-dir").arg(lab.store()).args(["cat-file", "--batch", "--batch-all-objects", "--buffer"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if holds(&output.stdout) {
        found.push("an object".into());
    }
    found
}

fn inflated_holds(content: &[u8]) -> bool {
    let is_zlib = |pair: &[u8]| pair[0] & 0x0f == 8 && u32::from(u16::from_be_bytes([pair[0], pair[1]])) % 31 == 0;
    let starts = content.windows(2).enumerate().filter(|(_, pair)| is_zlib(pair)).map(|(at, _)| at);
    starts.into_iter().any(|at| {
        let mut plain = Vec::new();
        // Other bytes may look like a beginning: what came out before the error counts.
        let _ = flate2::read::ZlibDecoder::new(&content[at..]).take(16 << 20).read_to_end(&mut plain);
        holds(&plain)
    })
}

/// Holds the store against git.
fn whole(lab: &Lab) {
    if let Some(text) = lab.store_git(&["fsck", "--full", "--no-dangling"]) {
        assert!(!text.contains("missing") && !text.contains("error"), "{text}");
    }
}

fn sound(lab: &Lab) {
    whole(lab);
    let doctor = lab.piton(&["doctor", "--refs"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

fn listed(lab: &Lab) -> Vec<Value> {
    let list = lab.piton(&["list", "--json", "-n", "10000"]).json();
    assert!(list["faults"].is_null(), "{list}");
    list["checkpoints"].as_array().unwrap().clone()
}

/// The content of the newest checkpoints, at most so many.
fn contents(lab: &Lab, most: usize) -> BTreeMap<u64, Tree> {
    let rows = listed(lab);
    let each = rows.iter().take(most).map(|row| {
        let n = row["n"].as_u64().unwrap();
        let to = lab.root().join(format!("export-{n}"));
        let output = lab.piton(&["restore", &n.to_string(), "--to", to.to_str().unwrap()]);
        assert_eq!(output.code, 0, "{output:?}");
        let content = tree(&to);
        std::fs::remove_dir_all(&to).unwrap();
        (n, content)
    });
    each.collect()
}

/// The same without the secret.
fn without(content: &Tree) -> Tree {
    let has_none = |(path, (_, _, bytes)): &(&PathBuf, &(char, u32, Vec<u8>))| {
        !holds(path.as_os_str().as_encoded_bytes()) && !holds(bytes)
    };
    content.iter().filter(has_none).map(|(path, entry)| (path.clone(), entry.clone())).collect()
}

fn append(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Plants the secret in files, names, links and rules, and takes a checkpoint.
fn plant_files(lab: &Lab, dice: &mut Dice) {
    lab.write("plain.txt", format!("a\n{}\nb\n", secret(1)));
    lab.write("a/b/c/d/e/deep", secret(2));
    std::os::unix::fs::symlink(format!("/nowhere/{}", secret(3)), lab.work.join("link")).unwrap();
    lab.write(&format!("{}.txt", secret(4)), "named");
    lab.write(&format!("a/b/x-{}-y", secret(5)), "named");
    lab.write(&format!("dir-{}/inner/file", secret(6)), "below a named directory");
    let mut big: Vec<u8> = (0..3_000_000).map(|_| dice.roll(256) as u8).collect();
    big[2_000_000..2_000_000 + 12].copy_from_slice(secret(7).as_bytes());
    lab.write("big.bin", big);
    lab.write(".gitignore", format!("ignored-{}\n", secret(8)));
    lab.write(&format!("huge-{}.bin", secret(9)), vec![b'x'; 11_000_000]);
    lab.write(&format!("private-{}", secret(10)), "mode");
    super::support::mode(lab, &format!("private-{}", secret(10)), 0o600);
    std::fs::create_dir(lab.work.join(format!("empty-{}", secret(11)))).unwrap();
    for n in 0..150 {
        lab.write(&format!("many/{n}"), if n == 77 { secret(12) } else { n.to_string() });
    }
    lab.write("kept.txt", "kept");
    lab.take("the files");
    // Versions that are deltas on each other, once they are packed.
    let text: String = (0..2000).map(|n| format!("line {n}\n")).collect();
    for n in 0..6 {
        lab.write("long.txt", text.replace("line 1000", &format!("line {n} {}", secret(13))));
        lab.take(&format!("version {n}"));
    }
    lab.write("long.txt", text);
    lab.take("the last version");
}

/// Plants it in the texts of a session, and in its files.
fn plant_session(lab: &Lab, dice: &mut Dice) {
    // So much new content is packed without compression by a process that lives long.
    let mut noise: Vec<u8> = (0..6_000_000).map(|_| dice.roll(256) as u8).collect();
    noise[5_000_000..5_000_000 + 12].copy_from_slice(secret(38).as_bytes());
    lab.write("noise.bin", noise);
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "one", "client": "test"}));
    sidecar.ask(json!({"type": "run.start", "goal": format!("find {}", secret(14))}));
    sidecar.ask(json!({"type": "turn.start", "turn": format!("turn {}", secret(15))}));
    lab.write("doomed", secret(16));
    sidecar.ask(json!({"type": "shell.before", "command": format!("rm doomed {}", secret(17)), "cwd": lab.work}));
    std::fs::remove_file(lab.work.join("doomed")).unwrap();
    let external = format!("psql -c 'DROP TABLE {}'", secret(18));
    sidecar.ask(json!({"type": "shell.before", "command": external, "cwd": lab.work}));
    sidecar.ask(json!({"type": "shell.after", "command": external, "exit": 0}));
    sidecar.ask(json!({"type": "codon.start", "codonId": "c1", "name": format!("codon {}", secret(19))}));
    lab.write("typed", secret(20));
    sidecar.ask(json!({"type": "codon.complete", "codonId": "c1"}));
    sidecar.ask(
        json!({"type": "codon.start", "codonId": "c2", "trackedFiles": [format!("out-{}*", secret(21)), "typed"]}),
    );
    lab.write("typed", "harmless");
    sidecar.ask(json!({"type": "codon.complete", "codonId": "c2"}));
    // It is killed with a log that is not flushed.
    lab.write("logged", secret(22));
    sidecar.ask(json!({"type": "checkpoint.create", "label": format!("logged {}", secret(23))}));
}

/// Plants it where piton or others write beside the store.
fn plant_records(lab: &Lab) {
    let home = lab.home.join("piton");
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("copy"), secret(24)).unwrap();
    assert_eq!(lab.piton_in(&other, &["checkpoint"]).code, 0);
    lab.write("kept.txt", secret(25));
    let n = lab.take(&format!("label {}", secret(26)));
    lab.write("kept.txt", "before the restore");
    // The checkpoint before a restore holds a version; the journal names paths.
    lab.write(&format!("new-{}", secret(27)), secret(28));
    lab.restore(n - 1, &[]);
    lab.write("dropped", secret(29));
    let dropped = lab.take(&format!("dropped {}", secret(30)));
    std::fs::remove_file(lab.work.join("dropped")).unwrap();
    assert_eq!(lab.piton(&["delete", &dropped.to_string(), "--yes"]).code, 0);
    let workspace = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    let records = home.join("workspaces").join(workspace);
    append(&home.join("mishaps"), &format!("2026-01-01T00:00:00.000Z went wrong: {}\n", secret(31)));
    append(&home.join("daemon/log"), &format!("log {}\n", secret(32)));
    append(&home.join("backups/now/settings.json"), &format!("{{\"a\": \"{}\"}}", secret(33)));
    append(&home.join("store.git/damaged/thing"), &secret(34));
    append(&records.join("fetch-1.git/objects/x"), &secret(35));
    assert_eq!(lab.piton(&["git", "log", "--all", "--oneline"]).code, 0);
}

/// Takes it out of the files that are there now.
fn clean(lab: &Lab) {
    lab.sh(&format!("find . -depth -name '*{SECRET}*' -exec rm -rf {{}} +"));
    lab.sh("rm -f plain.txt a/b/c/d/e/deep link big.bin .gitignore many/77 logged typed doomed dropped long.txt noise.bin ../other/copy");
}

#[test]
fn no_byte_of_a_secret_is_found_afterwards_and_the_rest_is_exact() {
    let (lab, mut dice) = (Lab::new(), Dice(11));
    plant_files(&lab, &mut dice);
    plant_session(&lab, &mut dice);
    plant_records(&lab);
    clean(&lab);
    assert_eq!(lab.piton(&["checkpoint", "clean"]).code, 0);
    // Some of it is packed densely, some is loose.
    assert!([0, 3].contains(&lab.piton(&["prune", "--yes"]).code));
    lab.write("late", secret(37));
    lab.take("late");
    std::fs::remove_file(lab.work.join("late")).unwrap();
    let before = contents(&lab, usize::MAX);
    let first = id_of(&lab, 1);
    assert!(places(&lab).len() > 10, "{:?}", places(&lab));
    let look = piton_with(&lab, SECRET.as_bytes(), &["forget", "--secret", "-", "--dry-run", "--json"]);
    assert_eq!(look.code, 0, "{look:?}");
    let plan = look.json();
    assert!(plan["versions"].as_u64().unwrap() > 15 && plan["present"] == json!([]), "{plan}");
    assert!(!holds(look.stdout.as_bytes()), "{}", look.stdout);
    // A sidecar works beside it.
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "beside"}));
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["forget", "--secret", SECRET, "--yes", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let work = lab.work.clone();
    let forgetting = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut turn = 0;
    while !forgetting.is_finished() || turn < 5 {
        turn += 1;
        std::fs::write(work.join("beside"), turn.to_string()).unwrap();
        sidecar.ask(json!({"type": "turn.start", "turn": format!("t{turn}")}));
        let reply = sidecar.ask(json!({"type": "shell.before", "command": "rm beside", "cwd": work}));
        assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
    }
    let output = forgetting.join().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said} {}", String::from_utf8_lossy(&output.stderr));
    let done: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&done["proof"]["left"], &done["faults"]), (&json!([]), &json!([])), "{said}");
    let reply = sidecar.ask(json!({"type": "checkpoint.create", "label": "afterwards"}));
    assert!(reply["checkpoint"]["n"].is_u64(), "{reply}");
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(places(&lab), Vec::<PathBuf>::new());
    sound(&lab);
    // Every checkpoint is what it was, without the secret.
    let after = contents(&lab, usize::MAX);
    for (n, content) in &before {
        assert_eq!(after.get(n), Some(&without(content)), "checkpoint {n}");
    }
    // An old id finds the new checkpoint.
    let shown = lab.piton(&["show", &short(&first, 12), "--json"]);
    assert!(shown.code == 0 && shown.json()["n"] == 1 && shown.json()["id"] != first.as_str(), "{shown:?}");
    assert!(shown.stderr.contains("was replaced by"), "{shown:?}");
    // The turns beside it are newer than the restore.
    while lab.read("kept.txt") != "before the restore" {
        let undo = lab.piton(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{undo:?}");
    }
    assert_eq!(lab.piton(&["restore", "1", "--yes"]).code, 0);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    let again = forget_secret(&lab, &["--json"]);
    assert_eq!((again.code, &again.json()["checkpoints"]), (0, &json!([])), "{again:?}");
}

#[test]
fn a_path_goes_and_no_restore_takes_the_hole_for_a_deletion() {
    let lab = Lab::new();
    for n in 1..=3 {
        lab.write("keys/private", format!("version {n}"));
        lab.write("code", n.to_string());
        assert_eq!(lab.take(&format!("state {n}")), n);
    }
    lab.write("twin", "version 1");
    lab.write("code", "4");
    lab.take("state 4");
    lab.restore(2, &[]);
    let old = id_of(&lab, 2);
    assert_eq!(lab.piton(&["forget"]).code, 2);
    assert_eq!(lab.piton(&["forget", "nowhere", "--yes"]).code, 3);
    assert_eq!(lab.piton(&["forget", "keys"]).code, 5, "nobody can be asked");
    let look = lab.piton(&["forget", "keys", "--dry-run", "--json"]).json();
    assert_eq!(look["present"].as_array().unwrap().len(), 2, "{look}");
    let digest = look["digest"].as_str().unwrap();
    lab.write("code", "5");
    lab.take("state 5");
    assert_eq!(lab.piton(&["forget", "keys", "--yes", "--json", "--plan", digest]).error(), "stale-plan");
    let output = lab.piton(&["forget", "keys", "--yes"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("Nothing of it is left") && output.stderr.contains("saves it again"), "{output:?}");
    sound(&lab);
    let found = lab.piton(&["find", "keys/private"]);
    assert!(!found.stdout.contains("held") && found.stdout.contains("removed by `piton forget`"), "{found:?}");
    // Another path still has one of the versions.
    assert_eq!(lab.piton(&["show", "4:twin"]).stdout, "version 1");
    let show = lab.piton(&["show", "state 2", "--json"]).json();
    assert!(show["n"] == 2 && show["id"] != old.as_str(), "{show}");
    assert_eq!(show["skipped"]["items"][0]["why"], "removed by `piton forget`", "{show}");
    // A restore keeps what is there, and says so; so does an undo of a restore that had changed it.
    let preview = lab.piton(&["restore", "1", "--preview"]).stdout + &lab.piton(&["restore", "1", "--preview"]).stderr;
    assert!(preview.contains("removed by `piton forget`"), "{preview}");
    let undo = lab.piton(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{undo:?}");
    assert_eq!((lab.read("keys/private").as_str(), lab.read("code").as_str()), ("version 2", "4"));
    lab.restore(1, &[]);
    assert_eq!((lab.read("keys/private").as_str(), lab.read("code").as_str()), ("version 2", "1"));
    lab.restore(3, &[]);
    assert_eq!(lab.read("code"), "3");
    assert_eq!(lab.piton(&["diff", &short(&old, 10), "3", "--stat"]).code, 0);
}

#[test]
fn other_workspaces_and_what_was_fetched_are_told_apart() {
    let (theirs, lab) = (Lab::new(), Lab::new());
    let remote = lab.root().join("remote.git");
    lab.sh(&format!("git init -q --bare {}", remote.display()));
    theirs.write("shared", SECRET);
    theirs.take("theirs");
    let push = theirs.piton(&["push", remote.to_str().unwrap()]);
    assert_eq!(push.code, 0, "{push:?}");
    lab.write("mine", SECRET);
    lab.take("mine");
    let fetch = |code: i32| {
        let fetched = lab.piton(&["fetch", remote.to_str().unwrap()]);
        assert_eq!(fetched.code, code, "{fetched:?}");
    };
    fetch(0);
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("copy"), SECRET).unwrap();
    std::fs::write(other.join("own"), format!("own {SECRET}")).unwrap();
    assert_eq!(lab.piton_in(&other, &["checkpoint"]).code, 0);
    // Of one workspace: the other one keeps what it has.
    let output = forget_secret(&lab, &["--in", other.to_str().unwrap(), "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.json()["checkpoints"].as_array().unwrap().len(), 1, "{output:?}");
    assert_eq!(lab.piton(&["show", "1:mine"]).stdout, SECRET);
    assert_eq!(lab.piton_in(&other, &["show", "1:own"]).code, 3);
    let remote_id =
        || lab.piton(&["list", "--remote", "--json"]).json()["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    let before = remote_id();
    let output = forget_secret(&lab, &[]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(places(&lab), Vec::<PathBuf>::new());
    let after = remote_id();
    assert_ne!(before, after);
    assert_eq!(lab.piton(&["show", &after]).code, 0);
    // The remote has it still; it does not come back from there.
    fetch(4);
    assert_eq!((places(&lab), remote_id()), (Vec::<PathBuf>::new(), after));
    sound(&lab);
}

#[test]
fn a_workspace_goes_as_a_whole() {
    let lab = Lab::new();
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("shared"), "shared").unwrap();
    assert_eq!(lab.piton_in(&other, &["checkpoint"]).code, 0);
    lab.write("shared", "shared");
    lab.write("own", SECRET);
    lab.take(&format!("label {SECRET}"));
    lab.write("own", "2");
    lab.take("second");
    lab.restore(1, &[]);
    let first = id_of(&lab, 1);
    let id = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    let work = lab.work.to_str().unwrap();
    assert_eq!(lab.piton_in(&other, &["forget", "--workspace", work]).code, 5);
    // An agent, and a sub-agent of it that has only read.
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "above"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    sidecar.ask(json!({"type": "shell.before", "action": "a", "command": "rm own"}));
    sidecar.ask(json!({"type": "hello", "session": "below", "parent": "above", "shares_turn": true}));
    assert_eq!(sidecar.finish(), 0);
    let below = lab.home.join("piton/sessions/below");
    assert!(below.exists());
    // A session stays at work there.
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    let output = lab.piton_in(&other, &["forget", "--workspace", work, "--yes", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.json()["forgotten"].as_u64().unwrap() >= 3, "{output:?}");
    assert_eq!((places(&lab), below.exists()), (Vec::<PathBuf>::new(), false));
    let reply = sidecar.ask(json!({"type": "checkpoint.create", "label": "anew"}));
    assert!(reply["checkpoint"]["n"].as_u64().unwrap() > 3, "no number is used twice: {reply}");
    assert_eq!(sidecar.finish(), 0);
    sound(&lab);
    let shown = lab.piton(&["show", &first]);
    assert!(shown.code == 3 && shown.stderr.contains("was forgotten on"), "{shown:?}");
    let output = lab.piton_in(&other, &["forget", "--workspace", work, "--yes"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!lab.home.join("piton/workspaces").join(&id).exists());
    assert_eq!(lab.piton_in(&other, &["show", "1:shared"]).stdout, "shared");
    sound(&lab);
}

#[test]
fn a_workspace_with_private_files_goes_as_a_whole() {
    let lab = Lab::new();
    git(&lab, &["init", "-q"]);
    lab.write(".gitignore", ".env\n");
    lab.write(".env", SECRET);
    lab.take("one");
    let output = lab.piton(&["forget", "--workspace", ".", "--yes"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(places(&lab), Vec::<PathBuf>::new());
    sound(&lab);
}

#[test]
fn a_killed_forget_is_finished_by_the_next() {
    let (lab, mut dice) = (Lab::new(), Dice(5));
    let rounds = if full() { 50 } else { 8 };
    for round in 0..rounds {
        for n in 0..4 {
            lab.write("file", format!("{round} {n}"));
            lab.write("hidden", format!("{round} {n} {SECRET}"));
            lab.take(&format!("round {round} {n}"));
        }
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "hello", "session": format!("s{round}")}));
        sidecar.ask(json!({"type": "codon.start", "codonId": "c", "name": format!("codon {SECRET}")}));
        sidecar.ask(json!({"type": "codon.complete", "codonId": "c"}));
        assert_eq!(sidecar.finish(), 0);
        lab.restore(listed(&lab)[2]["n"].as_u64().unwrap(), &[]);
        std::fs::remove_file(lab.work.join("hidden")).unwrap();
        let before = contents(&lab, 8);
        let mut command: Command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["forget", "--secret", SECRET, "--yes"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // The moment is the test's subject, not its synchronisation.
        std::thread::sleep(Duration::from_millis(dice.roll(400)));
        let _ = child.kill();
        child.wait().unwrap();
        whole(&lab);
        let is_open = lab.home.join("piton/forget.json").exists();
        if is_open {
            let note = std::fs::read(lab.home.join("piton/forget.json")).unwrap();
            assert!(!holds(&note));
            let status = lab.piton(&["status"]).stdout;
            assert!(status.contains("piton forget"), "{status}");
            // Every checkpoint is there, whichever id it has by now, and the last restore can be undone.
            assert_eq!(contents(&lab, 8).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
            assert_eq!(lab.piton(&["undo", "--preview"]).code, 0);
        }
        if round % 2 == 0 {
            // Maintenance completes what needs no secret.
            assert!([0, 3, 4].contains(&lab.piton(&["prune", "--yes"]).code));
            sound(&lab);
        }
        let output = forget_secret(&lab, &[]);
        assert_eq!(output.code, 0, "round {round}: {output:?}");
        assert!(!lab.home.join("piton/forget.json").exists());
        assert_eq!(places(&lab), Vec::<PathBuf>::new(), "round {round}, open: {is_open}");
        sound(&lab);
        let after = contents(&lab, 8);
        for (n, content) in before.iter().filter(|(n, _)| after.contains_key(n)) {
            assert_eq!(after[n], without(content), "round {round}, checkpoint {n}");
        }
    }
}
