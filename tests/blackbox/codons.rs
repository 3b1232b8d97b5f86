//! Runs and their codons: typed checkpoints, the patterns that they record by, and what is left when a run is cut off.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar, WAIT, code, id_of, tree};

/// A sidecar in run `r-1`.
fn running(lab: &Lab) -> Sidecar {
    let mut sidecar = Sidecar::start(lab, &[]);
    let run = sidecar.ask(json!({"type": "run.start", "run": "r-1", "goal": "build it", "client": "test"}));
    assert_eq!((&run["ok"], &run["run"]), (&json!(true), &json!("r-1")), "{run}");
    sidecar
}

fn start(sidecar: &mut Sidecar, codon: &str, patterns: &[&str]) -> Value {
    let name = format!("The {codon}");
    ok(sidecar.ask(json!({"type": "codon.start", "codonId": codon, "name": name, "trackedFiles": patterns})))
}

fn ok(reply: Value) -> Value {
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

/// Says what became of a codon; gives the number of the checkpoint.
fn end(sidecar: &mut Sidecar, how: &str, codon: &str) -> u64 {
    let reply = ok(sidecar.ask(json!({"type": format!("codon.{how}"), "codonId": codon})));
    assert_eq!((&reply["checkpoint"]["status"], &reply["codonId"]), (&json!("taken"), &json!(codon)), "{reply}");
    reply["checkpoint"]["n"].as_u64().unwrap()
}

/// A codon from its start to its end.
fn codon(sidecar: &mut Sidecar, how: &str, codon: &str, patterns: &[&str]) -> u64 {
    start(sidecar, codon, patterns);
    end(sidecar, how, codon)
}

/// The files of a checkpoint.
fn files(lab: &Lab, n: u64) -> Vec<String> {
    let shown = lab.piton(&["show", &n.to_string(), "--json"]).json();
    let paths = shown["paths"]["items"].as_array().unwrap().iter().filter(|item| item["why"] != "private");
    let paths: Vec<String> = paths.map(|item| item["path"].as_str().unwrap().to_owned()).collect();
    let is_dir = |path: &String| paths.iter().any(|other| other.starts_with(&format!("{path}/")));
    paths.iter().filter(|path| !is_dir(path)).cloned().collect()
}

#[test]
fn each_type_is_recorded_always_and_says_what_it_is() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = running(&lab);
    start(&mut sidecar, "build#2", &[]);
    // Nothing changes in between: each is recorded all the same.
    let table = [
        ("rig-setup", end(&mut sidecar, "rigSetup", "build#2")),
        ("completed", end(&mut sidecar, "complete", "build#2")),
        ("error", codon(&mut sidecar, "fail", "build#2", &[])),
        ("skipped", codon(&mut sidecar, "skip", "build#2", &[])),
    ];
    let never_begun = ok(sidecar.ask(json!({"type": "codon.skip", "codonId": "later", "name": "Later"})));
    assert_eq!(never_begun["checkpoint"]["kind"], "skipped");
    assert_eq!(sidecar.finish(), 0);
    let mut ids = std::collections::BTreeSet::new();
    for (kind, n) in table {
        let id = id_of(&lab, n);
        let Some(message) = lab.store_git(&["log", "-1", "--format=%B", &id]) else { return };
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines[0], format!("{kind}:build#2 [run:r-1] The build#2"));
        assert_eq!((lines[1], lines[2]), ("", "Codon: The build#2"));
        assert_eq!(lines[3], format!("Status: {kind}"));
        let time = lines[4].strip_prefix("Timestamp: ").unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        let duration = lines[5].strip_prefix("Duration: ").and_then(|text| text.strip_suffix("ms")).unwrap();
        assert!(duration.parse::<u128>().unwrap() < WAIT.as_millis(), "{duration}");
        let trailers = lab.store_git(&["log", "-1", "--format=%(trailers:key=Codon-Id,valueonly)", &id]).unwrap();
        assert_eq!(trailers.trim(), "build#2");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 4);
    // One chain, on the run's own branch.
    let branch = lab.store_git(&["for-each-ref", "--format=%(refname)", "refs/heads"]).unwrap();
    assert!(branch.trim().ends_with("/r-1"), "{branch}");
    let log = lab.store_git(&["log", "--format=%s", branch.trim()]).unwrap();
    let kinds: Vec<&str> = log.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(kinds, ["exit", "skipped", "skipped", "error", "completed", "rig-setup"]);
    assert_eq!(lab.store_git(&["log", "--all", "--grep=build#2", "--format=%h"]).unwrap().lines().count(), 4);
    lab.store_git(&["fsck", "--strict"]).unwrap();
}

#[test]
fn what_is_no_codon_is_refused() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = running(&lab);
    let ask = |sidecar: &mut Sidecar, kind: &str, fields: Value| {
        let mut request = json!({ "type": kind });
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let reply = sidecar.ask(request);
        (code(&reply).to_owned(), reply["error"]["field"].as_str().unwrap_or("").to_owned())
    };
    let long = "x".repeat(129);
    let table = [
        ("codon.complete", json!({}), "no-such-codon", "codonId"),
        ("codon.complete", json!({"codonId": "build"}), "no-such-codon", "codonId"),
        ("codon.fail", json!({"codonId": "build"}), "no-such-codon", "codonId"),
        ("codon.rigSetup", json!({"codonId": "build"}), "no-such-codon", "codonId"),
        ("codon.start", json!({"codonId": ""}), "bad-request", "codonId"),
        ("codon.start", json!({"codonId": "a:b"}), "bad-request", "codonId"),
        ("codon.start", json!({"codonId": "a\nb"}), "bad-request", "codonId"),
        ("codon.start", json!({"codonId": " a"}), "bad-request", "codonId"),
        ("codon.start", json!({"codonId": long}), "bad-request", "codonId"),
        ("codon.start", json!({"codonId": 5}), "bad-request", "codonId"),
        ("codon.start", json!({"codonId": "a", "trackedFiles": "src"}), "bad-request", "trackedFiles"),
        ("codon.start", json!({"codonId": "a", "trackedFiles": ["a["]}), "bad-request", "trackedFiles"),
    ];
    for (kind, fields, expected, field) in table {
        let got = ask(&mut sidecar, kind, fields.clone());
        assert_eq!((got.0.as_str(), got.1.as_str()), (expected, field), "{kind} {fields}");
    }
    start(&mut sidecar, "build", &[]);
    assert_eq!(ask(&mut sidecar, "codon.start", json!({"codonId": "test"})).0, "codon-running");
    let other = sidecar.ask(json!({"type": "codon.complete", "codonId": "test"}));
    assert_eq!((code(&other), &other["error"]["candidates"]), ("no-such-codon", &json!(["build"])));
    // Another process is told the same.
    let mut second = running(&lab);
    for kind in ["codon.start", "codon.complete"] {
        assert_eq!(ask(&mut second, kind, json!({"codonId": "build"})).0, "codon-running", "{kind}");
    }
    // Without an id the running one is meant.
    assert_eq!(ok(sidecar.ask(json!({"type": "codon.complete"})))["codonId"], "build");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_codon_that_is_cut_off_leaves_an_exit() {
    // The end of the stream, SIGTERM, and the run's own end.
    for (number, how) in ["end", "signal", "run.end"].into_iter().enumerate() {
        let lab = Lab::new();
        lab.write("a", "1");
        let mut sidecar = running(&lab);
        start(&mut sidecar, "build#2", &[]);
        lab.write("a", "half done");
        match how {
            "signal" => lab.sh(&format!("kill -TERM {}", sidecar.child.id())),
            "run.end" => drop(ok(sidecar.ask(json!({"type": "run.end", "status": "error"})))),
            _ => {}
        }
        let ended = if how == "signal" { sidecar.wait() } else { sidecar.finish() };
        assert_eq!(ended, 0, "{how}");
        let list = lab.piton(&["list", "--json", "--kind", "exit"]).json();
        assert_eq!(list["total"], 1, "{how}: {list}");
        let row = &list["checkpoints"][0];
        assert_eq!((&row["codonId"], &row["codonName"]), (&json!("build#2"), &json!("The build#2")), "{how}");
        assert_eq!(lab.piton(&["show", &format!("{}:a", row["n"])]).stdout, "half done");
        let runs = lab.piton(&["runs", "--json"]).json();
        let expected = ["exit", "exit", "error"][number];
        assert_eq!((&runs["runs"][0]["status"], &runs["runs"][0]["codon"]), (&json!(expected), &Value::Null), "{runs}");
        // Nobody is at it any more: the next one goes on.
        let mut again = running(&lab);
        assert_eq!(codon(&mut again, "complete", "build#2", &[]), row["n"].as_u64().unwrap() + 1);
    }
}

#[test]
fn a_killed_codon_does_not_run_for_ever() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = running(&lab);
    let done = codon(&mut sidecar, "complete", "plan", &[]);
    start(&mut sidecar, "build", &[]);
    let seen = lab.piton(&["runs", "--json"]).json();
    assert_eq!((&seen["runs"][0]["status"], &seen["runs"][0]["codon"]), (&json!("running"), &json!("build")));
    assert_eq!(lab.piton(&["rollback", "last-success", "--yes", "--json"]).error(), "codon-running");
    sidecar.child.kill().unwrap();
    sidecar.child.wait().unwrap();
    assert_eq!(lab.piton(&["runs", "--json"]).json()["runs"][0]["status"], "exit");
    let rolled = lab.piton(&["rollback", "last-success", "--yes", "--json"]);
    assert_eq!((rolled.code, &rolled.json()["to"]), (0, &json!(id_of(&lab, done))), "{rolled:?}");
}

/// The state of a run, and whether the list knows its end.
fn state(lab: &Lab, run: &str) -> (String, bool) {
    let list = lab.piton(&["runs", "--json"]).json();
    let row = list["runs"].as_array().unwrap().iter().find(|row| row["run"] == run).unwrap_or_else(|| panic!("{list}"));
    (row["status"].as_str().unwrap().to_owned(), row["ended"].is_string())
}

#[test]
fn a_run_is_open_as_long_as_a_client_has_it_open() {
    let lab = Lab::new();
    lab.write("a", "1");
    let (open, gone, killed) = (("open".to_owned(), false), ("exit".to_owned(), true), ("exit".to_owned(), false));
    let mut sidecar = running(&lab);
    ok(sidecar.ask(json!({"type": "run.list"})));
    assert_eq!(state(&lab, "r-1"), open);
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(state(&lab, "r-1"), gone);
    // It continues with `run.start`, and two clients may have it open.
    let (mut one, mut other) = (running(&lab), running(&lab));
    ok(one.ask(json!({"type": "run.list"})));
    ok(other.ask(json!({"type": "run.list"})));
    assert_eq!(state(&lab, "r-1"), open);
    let exits = || lab.piton(&["list", "--kind", "exit", "--json"]).json()["total"].clone();
    let before = exits();
    assert_eq!(one.finish(), 0);
    assert_eq!((state(&lab, "r-1"), exits()), (open.clone(), before), "the other one is there");
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    assert_eq!(state(&lab, "r-1"), killed, "nobody has written of its end");
    // A run that was begun by its codon alone, and continues with another one.
    let mut sidecar = Sidecar::start(&lab, &[]);
    ok(sidecar.ask(json!({"type": "codon.start", "codonId": "plan", "run": "r-2"})));
    assert_eq!(state(&lab, "r-2").0, "running");
    ok(sidecar.ask(json!({"type": "codon.complete", "codonId": "plan", "run": "r-2"})));
    assert_eq!(state(&lab, "r-2"), open);
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(state(&lab, "r-2"), gone);
    // A fork that nobody has opened yet is open.
    let mut sidecar = Sidecar::start(&lab, &[]);
    ok(sidecar.ask(json!({"type": "run.fork", "sha": "r-2:plan", "run": "fork-1"})));
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(state(&lab, "fork-1"), open);
    // An end that a client tells stays, whoever leaves later.
    let (mut one, mut other) = (running(&lab), running(&lab));
    ok(other.ask(json!({"type": "run.list"})));
    ok(one.ask(json!({"type": "run.end", "status": "error"})));
    assert_eq!((other.finish(), one.finish()), (0, 0));
    assert_eq!(state(&lab, "r-1").0, "error");
}

#[test]
fn a_run_at_the_daemon_ends_with_its_connection() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.write("package.json", "{}");
    assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
    let connect = || {
        let stream = UnixStream::connect(lab.home.join("piton/daemon/socket")).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        lines.next().unwrap().unwrap();
        (stream, lines)
    };
    let (mut stream, mut lines) = connect();
    for request in [
        json!({"id": 1, "type": "hello", "cwd": lab.work}),
        json!({"id": 2, "type": "run.start", "run": "r-1"}),
        json!({"id": 3, "type": "run.list"}),
    ] {
        writeln!(stream, "{request}").unwrap();
    }
    lines.find(|line| line.as_ref().unwrap().contains("\"id\":3")).unwrap().unwrap();
    assert_eq!(state(&lab, "r-1"), ("open".to_owned(), false));
    drop((stream, lines));
    let until = Instant::now() + WAIT;
    while state(&lab, "r-1") != ("exit".to_owned(), true) {
        assert!(Instant::now() < until, "{:?}", state(&lab, "r-1"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(lab.piton(&["daemon", "stop"]).code, 0);
}

#[test]
fn patterns_accumulate_and_what_was_recorded_stays() {
    let lab = Lab::new();
    for path in
        ["src/a.ts", "src/.dot.ts", "src/gen/x.ts", "src/a.js", "docs/b.md", "read_only_data_source/in.csv", "out"]
    {
        lab.write(path, path);
    }
    let mut sidecar = running(&lab);
    let first = codon(&mut sidecar, "complete", "one", &["./src/**/*.ts", "!src/gen"]);
    assert_eq!(files(&lab, first), ["src/.dot.ts", "src/a.ts"], "dot files match, `!` subtracts, `./` is nothing");
    let begun = start(&mut sidecar, "two", &["docs", "read_only_data_source", "!src/a.ts"]);
    assert_eq!(
        begun["trackedFiles"],
        json!(["./src/**/*.ts", "!src/gen", "docs", "read_only_data_source", "!src/a.ts"])
    );
    let second = end(&mut sidecar, "complete", "two");
    assert_eq!(files(&lab, second), ["docs/b.md", "src/.dot.ts", "src/a.ts"], "what was recorded stays recorded");
    // A rule that comes later ignores nothing that was recorded; what is gone is gone.
    lab.write(".gitignore", "*.md\n");
    lab.sh("rm src/.dot.ts; echo new > docs/new.md; echo c > docs/c.txt");
    let third = codon(&mut sidecar, "complete", "three", &[]);
    assert_eq!(files(&lab, third), ["docs/b.md", "docs/c.txt", "src/a.ts"], "ignore rules beat patterns");
    // Any checkpoint that is not typed sees everything.
    let manual = sidecar.ask(json!({"type": "checkpoint.create", "label": "all"}))["checkpoint"]["n"].as_u64().unwrap();
    for path in ["out", "src/a.js", "src/gen/x.ts", "read_only_data_source/in.csv", "src/a.ts"] {
        assert!(files(&lab, manual).iter().any(|file| file == path), "{path}");
    }
    assert_eq!(sidecar.finish(), 0);
    // The state of the run is found again from its checkpoints.
    let run =
        std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap().next().unwrap().unwrap().path().join("runs/r-1");
    std::fs::remove_file(&run).unwrap();
    let mut again = Sidecar::start(&lab, &[]);
    again.ask(json!({"type": "hello", "session": "r-1"}));
    let begun = start(&mut again, "four", &["out"]);
    assert_eq!(begun["trackedFiles"].as_array().unwrap().len(), 6, "{begun}");
    assert_eq!(files(&lab, end(&mut again, "complete", "four")), ["docs/b.md", "docs/c.txt", "out", "src/a.ts"]);
    // A list without positives matches nothing; a run without codons goes by the configuration.
    let mut other = Sidecar::start(&lab, &["--set", "tracked_files=[\"docs\"]"]);
    other.ask(json!({"type": "run.start", "run": "r-2"}));
    assert_eq!(files(&lab, codon(&mut other, "complete", "none", &["!src"])), Vec::<String>::new());
    other.ask(json!({"type": "run.start", "run": "r-3"}));
    assert_eq!(other.finish(), 0);
    let exit = lab.piton(&["list", "--json", "--run", "r-3", "--kind", "exit"]).json();
    assert_eq!(
        files(&lab, exit["checkpoints"][0]["n"].as_u64().unwrap()),
        ["docs/b.md", "docs/c.txt", "docs/new.md"][..2]
    );
}

#[test]
fn patterns_of_the_configuration_hold_for_codons_without_their_own() {
    let lab = Lab::new();
    for path in ["docs/a.md", "docs/draft/b.md", "src/a.ts", "src/draft/b.ts", "out/x"] {
        lab.write(path, path);
    }
    lab.set("tracked_files: [docs, '!**/draft']\n");
    let mut sidecar = running(&lab);
    let begun = start(&mut sidecar, "plan", &[]);
    assert_eq!(begun["trackedFiles"], json!(["docs", "!**/draft"]));
    assert_eq!(files(&lab, end(&mut sidecar, "complete", "plan")), ["docs/a.md"]);
    // A codon's own patterns are added, and what the configuration subtracts stays subtracted.
    assert_eq!(files(&lab, codon(&mut sidecar, "complete", "build", &["src"])), ["docs/a.md", "src/a.ts"]);
    // In a run whose codons bring their own, only what is subtracted counts.
    ok(sidecar.ask(json!({"type": "run.start", "run": "r-2"})));
    let begun = start(&mut sidecar, "build", &["src"]);
    assert_eq!(begun["trackedFiles"], json!(["src", "!**/draft"]));
    let built = end(&mut sidecar, "complete", "build");
    assert_eq!(files(&lab, built), ["src/a.ts"]);
    // The same after a rollback, and until a codon without its own comes.
    ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id_of(&lab, built)})));
    lab.write("src/c.ts", "c");
    assert_eq!(files(&lab, codon(&mut sidecar, "complete", "more", &["out"])), ["out/x", "src/a.ts", "src/c.ts"]);
    let all = ["docs/a.md", "out/x", "src/a.ts", "src/c.ts"];
    assert_eq!(files(&lab, codon(&mut sidecar, "complete", "last", &[])), all);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn the_end_of_a_run_is_recorded_as_the_configuration_says() {
    let lab = Lab::new();
    for path in ["docs/a.md", "src/a.ts", "out/x"] {
        lab.write(path, path);
    }
    lab.set("tracked_files: [docs]\n");
    let mut sidecar = running(&lab);
    let close = |sidecar: &mut Sidecar, status: &str| {
        ok(sidecar.ask(json!({"type": "run.end", "status": status})))["checkpoint"].clone()
    };
    // A run without codons, one with a codon's own patterns, and a failed one.
    let bare = close(&mut sidecar, "completed");
    assert_eq!((&bare["status"], &bare["kind"]), (&json!("taken"), &json!("completed")), "{bare}");
    assert_eq!(files(&lab, bare["n"].as_u64().unwrap()), ["docs/a.md"]);
    assert_eq!(close(&mut sidecar, "completed"), Value::Null, "it has ended already");
    ok(sidecar.ask(json!({"type": "run.start", "run": "r-2"})));
    codon(&mut sidecar, "complete", "build", &["src"]);
    lab.write("src/late.ts", "written after the last codon");
    let failed = close(&mut sidecar, "error");
    assert_eq!(failed["kind"], "error");
    assert_eq!(files(&lab, failed["n"].as_u64().unwrap()), ["docs/a.md", "src/a.ts", "src/late.ts"]);
    // It is no codon's: nothing goes back to it as one.
    let rolled = ok(sidecar.ask(json!({"type": "rollback.preview", "lastSuccess": true, "run": "r-2"})));
    assert_eq!(rolled["target"]["codonId"], "build");
    let none = sidecar.ask(json!({"type": "rollback.preview", "lastSuccess": true, "run": "r-1"}));
    assert_eq!(code(&none), "no-such-checkpoint", "{none}");
    // Where nothing changed since the last typed checkpoint there is nothing to record; without patterns it is everything.
    lab.set("");
    ok(sidecar.ask(json!({"type": "config.reload"})));
    ok(sidecar.ask(json!({"type": "run.start", "run": "r-3"})));
    let done = codon(&mut sidecar, "complete", "all", &[]);
    let same = close(&mut sidecar, "completed");
    assert_eq!((&same["status"], &same["n"]), (&json!("unchanged"), &json!(done)), "{same}");
    ok(sidecar.ask(json!({"type": "run.start", "run": "r-4"})));
    let whole = close(&mut sidecar, "completed");
    assert_eq!(files(&lab, whole["n"].as_u64().unwrap()).len(), 4);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn typed_checkpoints_are_counted_and_found_by_their_paths() {
    let lab = Lab::new();
    lab.write("src/a.ts", "1\n");
    lab.write("notes", "1\n");
    let mut sidecar = running(&lab);
    let first = codon(&mut sidecar, "complete", "one", &["src/**"]);
    lab.write("src/a.ts", "2\n2\n");
    lab.write("notes", "2\n");
    let second = codon(&mut sidecar, "complete", "two", &[]);
    lab.write("src/b.ts", "new\n");
    lab.write("more", "new\n");
    let list = |args: &[&str]| {
        let said = lab.piton(&[&["list", "--json"], args].concat());
        if said.code == 3 { json!({"total": 0, "checkpoints": []}) } else { said.json() }
    };
    let stat = |n: u64| {
        let rows = list(&[]);
        let rows = rows["checkpoints"].as_array().unwrap();
        rows.iter().find(|row| row["n"] == n).unwrap_or_else(|| panic!("{n}"))["stat"].clone()
    };
    // Only what its patterns cover is counted: of other paths it says nothing.
    assert_eq!(stat(first), json!({"files": 1, "plus": 2, "minus": 1}));
    assert_eq!(stat(second), json!({"files": 1, "plus": 1, "minus": 0}));
    let mut numbers = |path: &str| {
        let asked = ok(sidecar.ask(json!({"type": "checkpoint.list", "path": path})));
        let rows = asked["checkpoints"].as_array().unwrap().iter();
        let told: Vec<u64> = rows.map(|row| row["n"].as_u64().unwrap()).collect();
        let listed = list(&["--", path]);
        let also: Vec<u64> =
            listed["checkpoints"].as_array().unwrap().iter().map(|row| row["n"].as_u64().unwrap()).collect();
        assert_eq!(told, also, "{path}");
        told
    };
    assert_eq!(numbers("src/a.ts"), [first]);
    assert_eq!(numbers("src"), [second, first]);
    assert_eq!(numbers("src/b.ts"), [second]);
    assert_eq!(numbers("notes"), Vec::<u64>::new());
    assert_eq!(sidecar.finish(), 0);
    // A whole one is counted to the next whole one, and a narrowed one is not said to lack what it did not look for.
    let whole = lab.take("whole");
    lab.write("src/a.ts", "3\n");
    let mut sidecar = running(&lab);
    codon(&mut sidecar, "complete", "three", &[]);
    lab.write("more", "changed\n");
    assert_eq!(stat(whole), json!({"files": 2, "plus": 2, "minus": 3}));
    let found = lab.piton(&["find", "notes", "--json"]).json();
    let versions = found["versions"].as_array().unwrap();
    assert!(versions.iter().all(|version| version["id"].is_string()), "{found}");
    assert!(versions[0]["checkpoints"].as_array().unwrap().contains(&json!(whole)), "{found}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn patterns_are_the_same_whether_scanned_or_heard() {
    let lab = Lab::new();
    for n in 0..30 {
        lab.write(&format!("src/d{}/f{n}.ts", n % 3), format!("{n}"));
        lab.write(&format!("junk/{n}"), "j");
    }
    let mut sidecar = running(&lab);
    start(&mut sidecar, "one", &["src/**"]);
    // Warm from here on, or scanning: both must see the same, and leave the tree that others use as it is.
    for round in 0..6 {
        lab.write("src/d1/f1.ts", format!("round {round}"));
        lab.write("junk/1", format!("round {round}"));
        let typed = ok(sidecar.ask(json!({"type": "codon.rigSetup"})))["checkpoint"].clone();
        let whole =
            sidecar.ask(json!({"type": "checkpoint.create", "label": format!("round {round}")}))["checkpoint"].clone();
        assert_eq!((&typed["files"], &whole["files"]), (&json!(30), &json!(60)), "{round}");
        assert_eq!(typed["flags"], json!(["tracked"]));
        let show = |of: &Value, path: &str| lab.piton(&["show", &format!("{}:{path}", of["n"])]).stdout;
        let now = format!("round {round}");
        assert_eq!((show(&typed, "src/d1/f1.ts"), show(&whole, "src/d1/f1.ts")), (now.clone(), now.clone()));
        assert_eq!(show(&whole, "junk/1"), now);
        let mut status = sidecar.ask(json!({"type": "status"}));
        while round == 0 && status["watcher"] == "cold" {
            status = sidecar.ask(json!({"type": "status"}));
        }
    }
    lab.store_git(&["fsck", "--strict"]);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn ignored_outputs_are_recorded_when_the_settings_say_so() {
    let lab = Lab::new();
    lab.write(".gitignore", "dist/\n.env\nnode_modules/\n");
    for path in ["dist/app.js", "dist/.env", "dist/package.json", "dist/node_modules/x.js", "src/a.js", "other/x"] {
        lab.write(path, path);
    }
    for (setting, expected) in
        [("false", &["src/a.js"][..]), ("true", &["dist/app.js", "dist/package.json", "src/a.js"])]
    {
        let set = format!("tracked_files_override_ignore={setting}");
        let mut sidecar = Sidecar::start(&lab, &["--set", &set]);
        sidecar.ask(json!({"type": "run.start", "run": format!("r-{setting}")}));
        assert_eq!(files(&lab, codon(&mut sidecar, "complete", "build", &["dist/**", "src"])), expected, "{setting}");
    }
    // A workspace may switch it on: it records more.
    lab.write(".piton.yaml", "tracked_files_override_ignore: true\n");
    assert_eq!(lab.piton(&["config", "check"]).code, 0);
}

#[test]
fn outputs_that_no_pattern_covers_are_named() {
    let lab = Lab::new();
    lab.write("src/a.ts", "1");
    lab.write("notes", "from before");
    let mut sidecar = running(&lab);
    ok(sidecar.ask(json!({"type": "checkpoint.create", "label": "as it began"})));
    start(&mut sidecar, "one", &["src/**"]);
    lab.write("src/b.ts", "1");
    assert_eq!(lab.piton(&["config", "check"]).code, 0);
    lab.write("report.html", "out");
    let check = lab.piton(&["config", "check", "--run", "r-1", "--json"]);
    let tracked = &check.json()["tracked"];
    assert_eq!((check.code, &tracked["run"], &tracked["patterns"]), (4, &json!("r-1"), &json!(["src/**"])));
    assert_eq!(tracked["matched"]["total"], 2);
    assert_eq!(tracked["missed"], json!({"total": 1, "items": [{"path": "report.html"}]}), "{check:?}");
    end(&mut sidecar, "complete", "one");
    let said = lab.piton(&["config", "check"]);
    assert!(said.code == 4 && said.stderr.contains("report.html") && !said.stderr.contains("notes"), "{said:?}");
}

#[test]
fn outputs_are_new_beside_what_stood_before_the_run() {
    let lab = Lab::new();
    lab.write("src/a.ts", "1");
    lab.take("before");
    // Older than the run, and in no checkpoint.
    lab.write("notes", "from before");
    let mut sidecar = running(&lab);
    // No checkpoint of the run sees more than its patterns.
    start(&mut sidecar, "one", &["src/**"]);
    lab.write("report.html", "out");
    end(&mut sidecar, "complete", "one");
    let check = lab.piton(&["config", "check", "--run", "r-1", "--json"]);
    let missed = &check.json()["tracked"]["missed"];
    assert_eq!(*missed, json!({"total": 1, "items": [{"path": "report.html"}]}), "{check:?}");
}

#[test]
fn runs_keep_their_lineage() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "client": "claude-code"}));
    let made = ok(sidecar.ask(json!({"type": "run.start", "goal": "sort the mail"})));
    let parent = made["run"].as_str().unwrap().to_owned();
    assert_eq!(made["branch"].as_str().unwrap().rsplit('/').next(), Some(parent.as_str()));
    let point = codon(&mut sidecar, "complete", "plan", &["a"]);
    ok(sidecar.ask(json!({"type": "run.start", "run": "Sub Agent", "parent": parent})));
    codon(&mut sidecar, "complete", "look", &[]);
    ok(sidecar.ask(json!({"type": "run.end", "status": "completed"})));
    let fork = ok(sidecar.ask(json!({"type": "run.fork", "sha": id_of(&lab, point), "run": "fork-1"})));
    assert_eq!((&fork["from"]["run"], &fork["from"]["n"]), (&json!(parent), &json!(point)), "{fork}");
    assert_eq!(code(&sidecar.ask(json!({"type": "run.fork", "sha": id_of(&lab, point), "run": "fork-1"}))), "conflict");
    assert_eq!(code(&sidecar.ask(json!({"type": "run.fork", "sha": "9999"}))), "no-such-checkpoint");
    ok(sidecar.ask(json!({"type": "run.start", "run": "fork-1"})));
    let forked = codon(&mut sidecar, "complete", "again", &["b"]);
    let next = ok(sidecar.ask(json!({"type": "run.start", "run": "r-9"})))["run"].clone();
    assert!(json!(parent).as_str() < next.as_str() || next == "r-9", "made ids sort by time");
    let list = ok(sidecar.ask(json!({"type": "run.list"})));
    let row = |name: &str| {
        let rows = list["runs"].as_array().unwrap();
        rows.iter().find(|row| row["run"] == name || row["named"] == name).unwrap_or_else(|| panic!("{name}: {list}"))
    };
    assert_eq!((&row(&parent)["client"], &row(&parent)["goal"]), (&json!("claude-code"), &json!("sort the mail")));
    assert_eq!((&row("Sub Agent")["parent"], &row("Sub Agent")["status"]), (&json!(parent), &json!("completed")));
    let fork = row("fork-1");
    assert_eq!((&fork["from"]["run"], &fork["branches"][0]["from"]["type"]), (&json!(parent), &json!("fork")));
    assert_eq!((&fork["trackedFiles"], &fork["last"]["n"]), (&json!(["a", "b"]), &json!(forked)), "{fork}");
    assert_eq!(row(&parent)["branches"][0]["from"], Value::Null);
    assert_eq!(sidecar.finish(), 0);
    if let Some(parents) = lab.store_git(&["rev-parse", &format!("{}^", id_of(&lab, forked))]) {
        assert_eq!(parents.trim(), id_of(&lab, point));
    }
    let tree = lab.piton(&["runs", "--tree"]);
    let lines: Vec<&str> = tree.stdout.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{tree:?}"));
    assert!(lines[at("  s-")].starts_with("  s-") && lines[at("fork-1")].starts_with("  fork-1"), "{tree:?}");
    assert!(at(&parent) < at("  s-") && lines[at("fork-1")].contains("forked from"), "{tree:?}");
    // Lost files of runs are found again as far as checkpoints tell.
    lab.sh("rm -r \"$PITON_HOME\"/workspaces/*/runs");
    let list = lab.piton(&["runs", "--json"]).json();
    let fork = list["runs"].as_array().unwrap().iter().find(|row| row["run"] == "fork-1").unwrap().clone();
    assert_eq!((&fork["branches"][0]["from"]["run"], &fork["goal"]), (&json!(parent), &Value::Null), "{fork}");
}

#[test]
fn a_narrowed_checkpoint_knows_what_was_there_beside_its_files() {
    for with_watcher in [true, false] {
        let lab = Lab::new();
        lab.write(".gitignore", "cache/\n");
        for (path, content) in [("src/a", "1"), ("notes/precious.md", "p"), ("notes/draft", "d"), ("cache/c", "c")] {
            lab.write(path, content);
        }
        lab.sh("mkdir -p empty/deep");
        let before = tree(&lab.work);
        let mut sidecar =
            Sidecar::start(&lab, &["--set", if with_watcher { "watcher=recommended" } else { "watcher=none" }]);
        ok(sidecar.ask(json!({"type": "run.start", "run": "r-1"})));
        let first = codon(&mut sidecar, "complete", "one", &["src"]);
        lab.write("src/a", "2");
        lab.write("src/b", "2");
        lab.write("later", "a person's");
        lab.sh("rm -r notes/precious.md empty");
        lab.write("notes/draft", "changed");
        let second = codon(&mut sidecar, "complete", "two", &["notes", "src"]);
        assert_eq!(
            (files(&lab, first), files(&lab, second)),
            (vec!["src/a".into()], vec!["notes/draft".into(), "src/a".into(), "src/b".into()])
        );
        ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id_of(&lab, first)})));
        assert_eq!(sidecar.finish(), 0);
        assert_eq!((lab.read("notes/draft").as_str(), lab.read("later").as_str()), ("changed", "a person's"));
        std::fs::remove_file(lab.work.join("later")).unwrap();
        lab.write("notes/draft", "d");
        assert_eq!(tree(&lab.work), before, "with a watcher: {with_watcher}");
        // Base captures beside narrowed checkpoints stay as long as these, and go with them.
        assert_eq!(lab.piton(&["prune", "--retention-days", "0", "--yes"]).code, 0);
        lab.sh("rm notes/draft");
        assert_eq!(lab.piton(&["restore", &first.to_string(), "notes/draft", "--yes"]).code, 0);
        assert_eq!(lab.read("notes/draft"), "d");
    }
}
