//! Piton's words about a workspace are so: who guards it, what is damaged, what is counted, and how names are written.

use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar};

/// A lab whose daemon ends with it.
struct Guarded(Lab);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.piton(&["daemon", "stop"]);
    }
}

/// The row of `piton status` with this name.
fn row(lab: &Lab, name: &str) -> String {
    let status = lab.piton(&["status"]);
    let line = status.stdout.lines().find(|line| line.split("  ").next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name}: {status:?}"))[13..].to_owned()
}

#[test]
fn status_asks_the_daemon_for_its_watcher() {
    let guarded = Guarded(Lab::new());
    let lab = &guarded.0;
    lab.write("a.txt", "a");
    lab.take("first");
    assert_eq!(
        (row(lab, "watcher").as_str(), &lab.piton(&["status", "--json"]).json()["watcher"]),
        ("none", &json!("none"))
    );
    lab.write(".claude/settings.json", "{}");
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": lab.work, "tool_name": "Bash",
        "tool_input": { "command": "rm a.txt" }, "tool_use_id": "u" });
    lab.write("payload", payload.to_string());
    lab.sh(&format!("{} hook claude-code PreToolUse < payload", env!("CARGO_BIN_EXE_piton")));
    let word = lab.piton(&["status", "--json"]).json()["watcher"].as_str().unwrap().to_owned();
    assert!(["warm", "cold", "scan"].contains(&word.as_str()), "{word}");
    assert!(row(lab, "watcher").ends_with("(the daemon's)"), "{}", row(lab, "watcher"));
    // An event of hooks that nobody has installed protects nothing, though the daemon is at work.
    let alone = lab.piton(&[]);
    let told = ["is not guarded", "The last event came from Claude Code less than a minute ago."];
    assert!(told.iter().all(|text| alone.stdout.contains(text)) && !alone.stdout.contains("is protected"), "{alone:?}");
    lab.piton(&["daemon", "stop"]);
    assert_eq!(row(lab, "watcher"), "none");
}

#[test]
fn a_sidecar_that_cannot_be_asked_is_not_nobody() {
    let lab = Lab::new();
    lab.write("a.txt", "a");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({ "type": "hello", "client": "my harness", "session": "A Session", "workspace": lab.work }));
    sidecar.ask(json!({ "type": "shell.before", "command": "rm a.txt" }));
    assert_eq!(lab.piton(&["status", "--json"]).json()["watcher"], "elsewhere");
    assert!(row(&lab, "watcher").contains("sidecar"));
    for args in [&[][..], &["status"]] {
        let said = lab.piton(args).stdout;
        let guards = "\n  my harness (sidecar)  ok  last event less than a minute ago\n";
        assert!(said.contains(" is protected") && said.contains(guards), "{said}");
    }
    let runs = lab.piton(&["runs", "--json"]).json();
    let run = &runs["runs"][0];
    assert_eq!((&run["client"], &run["named"]), (&json!("my harness"), &json!("A Session")), "{runs}");
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(lab.piton(&["status", "--json"]).json()["watcher"], "none");
    let alone = lab.piton(&[]);
    let told = ["is not guarded", "The last event came from my harness (sidecar) less than a minute ago."];
    assert!(told.iter().all(|text| alone.stdout.contains(text)) && !alone.stdout.contains("is protected"), "{alone:?}");
}

#[test]
fn only_what_is_guarded_is_called_protected() {
    let lab = Lab::new();
    let unknown = lab.piton(&[]);
    assert!(unknown.code == 3 && unknown.stdout.contains("is not guarded"), "{unknown:?}");
    assert!(unknown.stdout.contains("piton install --all"), "{unknown:?}");
    lab.write("a.txt", "a");
    lab.take("by hand");
    let by_hand = lab.piton(&[]);
    assert!(by_hand.stdout.contains("is not guarded") && by_hand.stdout.contains("piton install --all"), "{by_hand:?}");
    std::fs::create_dir_all(lab.home.join(".claude")).unwrap();
    assert_eq!(lab.piton(&["install", "claude-code"]).code, 0);
    let hooked = lab.piton(&[]);
    let waits = "  Claude Code  installed, not used yet\n";
    assert!(hooked.stdout.contains(waits) && !hooked.stdout.contains("is protected"), "{hooked:?}");
    // Hooks that the client does not run guard nothing, and another installation would not mend that.
    let file = lab.home.join(".claude/settings.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen('{', "{\"disableAllHooks\": true,", 1)).unwrap();
    let elsewhere = lab.home.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for idle in [lab.piton(&[]), lab.piton_in(&elsewhere, &[])] {
        let told = idle.stdout.contains("not guarded") && !idle.stdout.contains("piton install");
        assert!(told && idle.stdout.contains("  Claude Code  FAIL  `disableAllHooks` is set in "), "{idle:?}");
        assert!(idle.stdout.contains(file.to_str().unwrap()), "{idle:?}");
    }
    std::fs::write(&file, text).unwrap();
    assert!(lab.piton(&[]).stdout.contains(waits));
    let off = lab.piton(&["off"]);
    assert_eq!(off.code, 0);
    assert!(lab.piton(&[]).stdout.contains("is not guarded"));
    let home = lab.piton_in(&lab.home, &[]);
    assert!(home.stdout.contains("too broad for full checkpoints"), "{home:?}");
}

/// Every file below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found
}

/// Flips bits in the middle of a file whose times stay as they are.
fn rot(path: &Path) {
    let facts = path.metadata().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
    let times = FileTimes::new().set_modified(facts.modified().unwrap());
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
}

struct Ruin {
    lab: Lab,
    kept: PathBuf,
}

impl Ruin {
    fn new() -> Ruin {
        let lab = Lab::new();
        for n in 0..80 {
            lab.write(&format!("many/{n}"), format!("content of {n}").repeat(20));
        }
        lab.take("packed");
        lab.write("a.txt", "alone");
        lab.take("loose");
        let mut sidecar = Sidecar::start(&lab, &[]);
        for line in [
            json!({ "type": "hello", "workspace": lab.work }),
            json!({ "type": "run.start", "run": "r-1" }),
            json!({ "type": "codon.start", "codonId": "k" }),
            json!({ "type": "codon.complete", "codonId": "k" }),
            json!({ "type": "run.end" }),
        ] {
            assert_eq!(sidecar.ask(line)["ok"], true);
        }
        assert_eq!(sidecar.finish(), 0);
        let kept = lab.root().join("kept");
        lab.sh(&format!("cp -a \"$PITON_HOME\" {}", kept.display()));
        Ruin { lab, kept }
    }

    fn rebuild(&self) {
        self.lab.sh(&format!("rm -rf \"$PITON_HOME\" && cp -a {} \"$PITON_HOME\"", self.kept.display()));
    }

    fn only(&self, below: &str, part: &str) -> PathBuf {
        let found = files(&self.lab.store().join(below));
        let mut found = found.into_iter().filter(|path| path.to_string_lossy().contains(part));
        found.next().unwrap_or_else(|| panic!("no {part} below {below}"))
    }

    fn object(&self, id: &str) -> PathBuf {
        self.lab.store().join("objects").join(&id[..2]).join(&id[2..])
    }

    fn tip(&self) -> PathBuf {
        let id = std::fs::read_to_string(self.only("refs/heads", "r-1")).unwrap();
        self.object(id.trim())
    }

    /// The blob of `alone`.
    fn blob(&self) -> PathBuf {
        let found = self.lab.piton(&["find", "a.txt", "--json"]).json();
        self.object(found["versions"][0]["id"].as_str().unwrap())
    }
}

#[test]
fn those_who_look_at_a_damaged_store_agree() {
    type Harm = fn(&Ruin);
    let ruin = Ruin::new();
    let table: [(&str, Harm); 8] = [
        ("pack removed", |at| std::fs::remove_file(at.only("objects/pack", ".pack")).unwrap()),
        ("index removed", |at| std::fs::remove_file(at.only("objects/pack", ".idx")).unwrap()),
        ("pack cut", |at| {
            let pack = at.only("objects/pack", ".pack");
            let bytes = std::fs::read(&pack).unwrap();
            std::fs::remove_file(&pack).unwrap();
            std::fs::write(&pack, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("pack rotten", |at| rot(&at.only("objects/pack", ".pack"))),
        ("blob removed", |at| std::fs::remove_file(at.blob()).unwrap()),
        ("blob rotten", |at| rot(&at.blob())),
        ("tip rotten", |at| rot(&at.tip())),
        ("tip removed", |at| std::fs::remove_file(at.tip()).unwrap()),
    ];
    let lab = &ruin.lab;
    for (name, harm) in table {
        ruin.rebuild();
        let well = lab.piton(&["doctor", "--all"]);
        assert!(
            well.code == 0 && well.stdout.contains("Nothing is wrong") && well.stdout.contains("read and intact"),
            "{well:?}"
        );
        harm(&ruin);
        // The contents of objects are read by the doctor alone; what it finds others say too.
        let doctor = lab.piton(&["doctor"]);
        assert!(doctor.code == 6 && !doctor.stdout.contains("Nothing is wrong"), "{name}: {doctor:?}");
        assert_eq!(lab.piton(&["doctor", "--refs"]).code, 6, "{name}");
        let status = lab.piton(&["status"]);
        assert!(status.code == 6 || name.ends_with("rotten"), "{name}: {status:?}");
        assert_eq!(lab.piton(&["status", "--json"]).code, status.code, "{name}");
        assert_eq!(lab.piton(&[]).code, status.code, "{name}");
    }
    for selector in ["r-1:k", "3", "@{9}"] {
        let lost = lab.piton(&["show", selector, "--json"]);
        assert_eq!((lost.error().as_str(), lost.code), ("store-damaged", 6), "{selector}: {lost:?}");
    }
    let never = lab.piton(&["show", "4711", "--json"]);
    assert_eq!(never.error(), "no-such-checkpoint", "a number that nobody ever had");
}

#[test]
fn a_store_that_cannot_be_written_is_not_well() {
    let lab = Lab::new();
    lab.write("a.txt", "a");
    lab.take("first");
    let mut command = lab.command("/bin/sh", &lab.work);
    command.args(["-c", &format!("ulimit -f 0; {} doctor --json | cat", env!("CARGO_BIN_EXE_piton"))]);
    let told: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let rows = told["rows"].as_array().unwrap();
    let says = |row: &&Value| row["about"] == "store" && row["text"].as_str().unwrap().contains("cannot be written");
    assert!(told["well"] == false && rows.iter().any(|row| says(&row)), "{told}");
}

#[test]
fn files_are_counted_and_directories_are_said_apart() {
    let lab = Lab::new();
    lab.sh("mkdir -p d/e empty; echo 1 > d/e/f; echo a > a");
    let taken = lab.piton(&["checkpoint", "first"]);
    assert!(taken.stdout.contains(": 2 files, "), "{taken:?}");
    let shown = lab.piton(&["show", "1"]);
    assert!(shown.stdout.contains("files    2 (4 B), and 3 directories\n"), "{shown:?}");
    let shown = lab.piton(&["show", "1", "--json"]).json();
    assert_eq!(
        (&shown["files"], &shown["directories"], &shown["paths"]["directories"]),
        (&json!(2), &json!(3), &json!(3))
    );
    assert!(shown["tree"].is_string() && shown["parents"].is_array(), "{shown}");
    let below = lab.piton(&["show", "1:d", "--json"]).json();
    assert_eq!((&below["of"]["path"], &below["paths"]["total"]), (&json!("d"), &json!(2)));
    lab.sh("rm -r d; mkdir new");
    let diff = lab.piton(&["diff", "1"]);
    assert!(diff.stdout.contains(" new   | directory (new)\n 1 file, +0/-1, 1 directory\n"), "{diff:?}");
    let diff = lab.piton(&["diff", "1", "--json"]).json();
    assert_eq!((&diff["files"]["total"], &diff["directories"]["items"][0]["path"]), (&json!(1), &json!("new")));
    assert_eq!(
        (&diff["from"]["n"], &diff["to"], &diff["files"]["items"][0]["why"]),
        (&json!(1), &Value::Null, &json!("deleted"))
    );
    assert!(diff["patch"].as_str().unwrap().contains("deleted file"), "{diff}");
    let preview = lab.piton(&["restore", "1", "--preview"]);
    assert!(preview.stdout.contains("  restore   d/\n  restore   d/e/\n  restore   d/e/f  +1\n"), "{preview:?}");
    let preview = lab.piton(&["restore", "1", "--preview", "--json"]).json();
    assert_eq!(
        (&preview["plan"]["create"]["total"], &preview["plan"]["create"]["directories"]),
        (&json!(3), &json!(2))
    );
    let done = lab.piton(&["restore", "1", "--yes"]);
    assert!(done.stdout.contains("restored 1 file and 2 directories, deleted 1 directory"), "{done:?}");
}

#[test]
fn names_are_quoted_once_and_columns_are_those_of_a_terminal() {
    let lab = Lab::new();
    for name in ["a b", "日本語", "q\"u", "n\nl", "it's"] {
        lab.write(name, "x\n");
    }
    lab.take("first");
    for name in ["a b", "日本語", "q\"u", "n\nl", "it's"] {
        lab.write(name, "y\n");
    }
    let diff = lab.piton(&["diff"]).stdout;
    for line in [
        " a b    | +1/-1\n",
        " it's   | +1/-1\n",
        " \"n\\nl\" | +1/-1\n",
        " \"q\\\"u\" | +1/-1\n",
        " 日本語 | +1/-1\n",
        "diff --git \"a/n\\nl\" \"b/n\\nl\"\n--- \"a/n\\nl\"\n+++ \"b/n\\nl\"\n",
        "diff --git a/日本語 b/日本語\n--- a/日本語\n+++ b/日本語\n",
    ] {
        assert!(diff.contains(line), "{line}: {diff}");
    }
    for name in ["a b", "日本語", "q\"u", "n\nl", "it's"] {
        let found = lab.piton(&["find", name]).stdout;
        let line = found.lines().find_map(|line| line.trim().strip_prefix("piton restore N ")).unwrap();
        let word = line.strip_suffix("  restore it").unwrap().trim_end();
        lab.sh(&format!("bash -c {}", shell_quoted(&format!("test -e {word}"))));
    }
    let refused = lab.piton(&["rollback", "1", "a b"]);
    assert!(refused.stderr.contains("`piton restore 1 'a b'`"), "{refused:?}");
    let missing = lab.piton(&["restore", "1", "no\npe"]);
    assert!(missing.stderr.contains("\"no\\npe\""), "{missing:?}");
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn errors_under_json_are_json() {
    let lab = Lab::new();
    let table: &[(&[&str], &str, i32)] = &[
        (&["status", "--nope"], "bad-request", 2),
        (&["list", "--limit", "x"], "bad-request", 2),
        (&["nonsense"], "bad-request", 2),
        (&["restore"], "no-such-checkpoint", 3),
        (&["show"], "no-such-checkpoint", 3),
        (&["off", "--for", "never"], "bad-request", 2),
        (&["--set", "nope", "list"], "bad-request", 2),
        (&["hook-that-is-none"], "bad-request", 2),
    ];
    for (args, code, exit) in table {
        let all: Vec<&str> = ["--json"].into_iter().chain(args.iter().copied()).collect();
        let output = lab.piton(&all);
        assert_eq!((output.error().as_str(), output.code), (*code, *exit), "{args:?}: {output:?}");
        assert!(!output.json()["error"]["message"].as_str().unwrap().is_empty());
    }
    assert!(lab.piton(&["show"]).stderr.contains("there is no checkpoint in this workspace yet"));
}

#[test]
fn the_branch_that_a_list_names_is_there() {
    let lab = Lab::new();
    lab.write("a.txt", "a");
    lab.take("first");
    assert_eq!(lab.piton(&["list", "--json"]).json()["currentBranch"], Value::Null);
    let mut sidecar = Sidecar::start(&lab, &[]);
    for line in [
        json!({ "type": "hello", "workspace": lab.work }),
        json!({ "type": "run.start", "run": "r-1" }),
        json!({ "type": "codon.start", "codonId": "k" }),
        json!({ "type": "codon.complete", "codonId": "k" }),
    ] {
        assert_eq!(sidecar.ask(line)["ok"], true);
    }
    let branch = lab.piton(&["list", "--json"]).json()["currentBranch"].as_str().unwrap().to_owned();
    assert!(branch.ends_with("/r-1") && lab.store().join("refs/heads").join(&branch).exists(), "{branch}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn what_a_restore_does_not_undo_is_said_once_with_the_command() {
    let lab = Lab::new();
    lab.write("a.txt", "one");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({ "type": "hello", "workspace": lab.work }));
    sidecar.ask(json!({ "type": "turn.start", "turn": "t" }));
    sidecar.ask(json!({ "type": "shell.before", "command": "rm a.txt; git push origin main" }));
    assert_eq!(sidecar.finish(), 0);
    lab.write("a.txt", "two");
    let done = lab.piton(&["restore", "1", "--yes"]);
    let said: Vec<&str> = done.stdout.lines().filter(|line| line.contains("piton cannot undo")).collect();
    assert!(!said.is_empty() && said.iter().all(|line| line.contains("git push origin main")), "{done:?}");
    let mut once = said.clone();
    once.dedup();
    assert_eq!(once, said, "{done:?}");
    assert_eq!(done.stdout.matches("Restored checkpoint 1: ").count(), 1);
}

#[test]
fn times_are_local() {
    let lab = Lab::new();
    lab.write("a.txt", "a");
    lab.take("first");
    let payload = lab.work.join("none");
    std::fs::write(&payload, "{}").unwrap();
    lab.sh(&format!("{} hook nobody Stop < none", env!("CARGO_BIN_EXE_piton")));
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env("TZ", "Etc/GMT-11").arg("status").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let listed = lab.piton(&["list", "--json"]).json()["checkpoints"][0]["time"].as_str().unwrap().to_owned();
    let hour: u32 = listed[11..13].parse().unwrap();
    let local = format!("{:02}:", (hour + 11) % 24);
    for name in ["since", "last", "mishap"] {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(line.contains(&format!(" {local}")) && !line.contains('Z'), "{line}");
    }
}
