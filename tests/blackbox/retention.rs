//! Retention by hand: pins, deletions, prunes, and the names of what is gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dice::Dice;
use super::support::{Asking, Lab, Output, Sidecar, code, id_of, short, tree};

const DAY: i64 = 24 * 3600;

/// Runs piton as if the clock were so many days from now.
fn on_day(lab: &Lab, day: i64, args: &[&str]) -> Output {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.args(args).env("PITON_TEST_CLOCK_OFFSET", (day * DAY).to_string()).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Content that no compression makes smaller.
fn noise(dice: &mut Dice, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| dice.roll(256) as u8).collect()
}

fn listed(lab: &Lab) -> Vec<u64> {
    let list = lab.piton(&["list", "--json", "-n", "10000"]).json();
    list["checkpoints"].as_array().unwrap().iter().map(|row| row["n"].as_u64().unwrap()).collect()
}

/// The numbers of a document's checkpoints.
fn numbers(document: &Value) -> Vec<u64> {
    let items = document["checkpoints"].as_array().unwrap_or_else(|| panic!("{document}"));
    items.iter().map(|item| item["n"].as_u64().unwrap()).collect()
}

/// Bytes of all objects.
fn stored(lab: &Lab) -> u64 {
    tree(&lab.store().join("objects")).values().map(|(_, _, content)| content.len() as u64).sum()
}

fn sound(lab: &Lab) {
    if let Some(text) = lab.store_git(&["fsck", "--full", "--no-dangling"]) {
        assert!(!text.contains("missing") && !text.contains("error"), "{text}");
    }
    let doctor = lab.piton(&["doctor", "--refs"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

#[test]
fn pinned_ones_stay_until_they_are_unpinned() {
    let lab = Lab::new();
    lab.set("retention: {labelled: 2}\n");
    let take = |n: u64| {
        lab.write("a", n.to_string());
        assert_eq!(lab.take(&format!("state {n}")), n);
    };
    take(1);
    let pinned = lab.piton(&["pin", "1"]);
    assert!(pinned.code == 0 && pinned.stdout.starts_with("Pinned: checkpoint 1 ("), "{pinned:?}");
    assert_eq!(lab.piton(&["pin", "1", "--json"]).json()["checkpoints"][0]["changed"], false);
    (2..=5).for_each(take);
    assert_eq!(listed(&lab), [5, 4, 1], "it counts in no limit");
    let list = lab.piton(&["list"]).stdout;
    let below = list.split("  state 1\n").nth(1).unwrap_or_default();
    assert!(below.lines().next().is_some_and(|facts| facts.contains("pinned")), "{list}");
    assert_eq!(lab.piton(&["show", "1", "--json"]).json()["pinned"], true);
    assert_eq!(lab.piton(&["unpin", "state 1"]).code, 0);
    assert_eq!(lab.piton(&["unpin", "1"]).code, 3);
    take(6);
    assert_eq!(listed(&lab), [6, 5]);
    // A pin that a checkpoint was taken with can be taken back too.
    lab.write("a", "7");
    assert_eq!(lab.piton(&["checkpoint", "state 7", "--pin"]).code, 0);
    assert_eq!(lab.piton(&["unpin", "7"]).code, 0);
    (8..=9).for_each(take);
    assert_eq!(listed(&lab), [9, 8]);
    // Nothing is dropped while the pins cannot be read.
    let workspace = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    std::fs::write(lab.home.join("piton/workspaces").join(workspace).join("pins"), "{").unwrap();
    take(10);
    take(11);
    let list = lab.piton(&["list"]);
    assert!(list.code == 6 && list.stderr.contains("pins"), "{list:?}");
    assert_eq!(listed(&lab), [11, 10, 9, 8]);
}

#[test]
fn what_a_person_deletes_is_gone_and_what_is_needed_is_refused() {
    let lab = Lab::new();
    for n in 1..=4 {
        lab.write("a", n.to_string());
        assert_eq!(lab.take(&format!("state {n}")), n);
    }
    let second = id_of(&lab, 2);
    assert_eq!(lab.piton(&["pin", "3"]).code, 0);
    let output = lab.piton(&["delete", "2", "3", "--yes"]);
    assert!(output.code == 5 && output.stderr.contains("is pinned"), "{output:?}");
    assert_eq!(listed(&lab), [4, 3, 2, 1], "all or none");
    let output = lab.piton(&["delete", "2", "--json"]);
    assert_eq!((output.code, &output.json()["checkpoints"][0]["changed"]), (5, &json!(false)));
    assert_eq!(Asking::start(&lab, &["delete", "2"]).answer("n").code, 5);
    assert_eq!(listed(&lab), [4, 3, 2, 1]);
    let output = Asking::start(&lab, &["delete", "2"]).answer("y");
    assert!(output.code == 0 && output.stdout.contains("Deleted: checkpoint 2 ("), "{output:?}");
    for selector in ["2", "state 2", &second, &short(&second, 4)] {
        let output = lab.piton(&["show", selector]);
        let text = &output.stderr;
        assert!(
            output.code == 3 && text.contains("2 (`state 2`) was pruned on ") && text.contains("by `piton delete`"),
            "{output:?}"
        );
    }
    // The next undo needs the checkpoint from before the restore.
    lab.restore(1, &[]);
    let before = listed(&lab)[0];
    let output = lab.piton(&["delete", &before.to_string(), "--yes", "--json"]);
    assert_eq!((output.code, output.error().as_str()), (5, "conflict"), "{output:?}");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(lab.read("a"), "4");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello"}));
    let reply = sidecar.ask(json!({"type": "checkpoint.unpin", "shas": ["3", "3", "4"]}));
    assert_eq!((numbers(&reply), &reply["checkpoints"][0]["changed"]), (vec![3, 4], &json!(true)), "{reply}");
    assert_eq!(reply["checkpoints"][1]["changed"], false);
    let reply = sidecar.ask(json!({"type": "checkpoint.delete", "shas": ["3", "nowhere"]}));
    assert_eq!(code(&reply), "no-such-checkpoint", "{reply}");
    let reply = sidecar.ask(json!({"type": "checkpoint.delete", "shas": ["3"]}));
    assert_eq!((numbers(&reply), &reply["checkpoints"][0]["changed"]), (vec![3], &json!(true)), "{reply}");
    let reply = sidecar.ask(json!({"type": "checkpoint.show", "sha": "3"}));
    assert_eq!(code(&reply), "pruned", "{reply}");
    assert_eq!(sidecar.finish(), 0);
    sound(&lab);
}

#[test]
fn a_prune_drops_exactly_what_it_showed_and_frees_the_space() {
    let (lab, mut dice) = (Lab::new(), Dice(7));
    for n in 1..=5 {
        lab.write("a", noise(&mut dice, 200_000));
        assert_eq!(on_day(&lab, -20, &["checkpoint", "--json"]).json()["checkpoint"]["n"], n);
    }
    lab.write("a", noise(&mut dice, 200_000));
    assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    let first = id_of(&lab, 1);
    let full = stored(&lab);
    let dry = lab.piton(&["prune", "--dry-run", "--json"]);
    let plan = dry.json();
    assert_eq!((dry.code, numbers(&plan)), (0, vec![1, 2, 3, 4, 5]), "{plan}");
    for item in plan["checkpoints"].as_array().unwrap() {
        assert_eq!(item["rule"], "retention.days");
        assert!(item["bytes"].as_u64().unwrap() > 200_000, "each has content of its own: {item}");
    }
    let table = lab.piton(&["prune", "--dry-run"]).stdout;
    assert!(
        table.contains("20 days") && table.contains("5 checkpoints to delete in 1 workspace: about 1.0 MB of 1.3 MB"),
        "{table}"
    );
    // Nobody can be asked.
    assert_eq!(lab.piton(&["prune"]).code, 5);
    assert_eq!(lab.piton(&["prune", "--json"]).code, 5);
    assert_eq!(listed(&lab).len(), 6);
    // Another plan than the one that was agreed to is not carried out.
    assert_eq!(lab.piton(&["pin", "2"]).code, 0);
    let digest = plan["digest"].as_str().unwrap();
    let stale = lab.piton(&["prune", "--yes", "--json", "--plan", digest]);
    assert_eq!((stale.code, stale.error().as_str()), (5, "stale-plan"));
    // A checkpoint that is needed once the question is answered stays.
    let asking = Asking::start(&lab, &["prune"]);
    assert_eq!(lab.piton(&["pin", "4"]).code, 0);
    let output = asking.answer("y");
    assert!(output.code == 4 && output.stdout.contains("Dropped 3 checkpoints."), "{output:?}");
    assert!(output.stdout.contains("now needed or was already deleted: checkpoint 4 of "), "{output:?}");
    assert_eq!(listed(&lab), [6, 4, 2]);
    assert!(stored(&lab) < full * 6 / 10, "{} of {full}", stored(&lab));
    for selector in ["1", &short(&first, 7)] {
        let output = lab.piton(&["show", selector]);
        assert!(output.code == 3 && output.stderr.contains("by `retention.days`"), "{output:?}");
    }
    assert_eq!(lab.piton(&["restore", "2", "--yes"]).code, 0);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    sound(&lab);
    // Limits of the command line take the place of those of the settings, and of a retention that is off.
    lab.set("retention: {enabled: false}\n");
    assert_eq!(lab.piton(&["unpin", "2", "4"]).code, 0);
    assert_eq!(lab.piton(&["prune", "--dry-run"]).code, 3);
    for limit in [["--retention-days", "19"], ["--max-size-mb", "0"]] {
        let plan = lab.piton(&[&["prune", "--dry-run", "--json"][..], &limit].concat()).json();
        assert_eq!(numbers(&plan)[..2], [2, 4], "{plan}");
    }
}

#[test]
fn each_workspace_has_its_share_of_the_room_and_keeps_its_newest() {
    let (lab, mut dice) = (Lab::new(), Dice(3));
    let small = lab.root().join("small");
    std::fs::create_dir(&small).unwrap();
    std::fs::write(small.join("a"), noise(&mut dice, 100_000)).unwrap();
    assert_eq!(lab.piton_in(&small, &["checkpoint"]).code, 0);
    for _ in 0..6 {
        lab.write("a", noise(&mut dice, 270_000));
        assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    }
    let plan = lab.piton(&["prune", "--dry-run", "--json", "--max-size-mb", "1"]).json();
    assert_eq!(
        (numbers(&plan), &plan["over"]),
        (vec![1, 2, 3], &json!(0)),
        "the busy one takes what the other leaves: {plan}"
    );
    let output = lab.piton(&["prune", "--yes", "--json", "--max-size-mb", "1"]);
    assert_eq!((output.code, &output.json()["dropped"]), (0, &json!(3)), "{output:?}");
    assert!(stored(&lab) < 1_050_000, "{}", stored(&lab));
    assert_eq!(listed(&lab), [6, 5, 4]);
    // A cap that cannot be met is said.
    lab.piton(&["pin", "5"]);
    let plan =
        lab.piton(&["prune", "--dry-run", "--json", "--set", "retention.total_mb=1", "--max-size-mb", "1"]).json();
    assert_eq!(plan["over"], 0, "{plan}");
    std::fs::write(lab.work.join("b"), noise(&mut dice, 500_000)).unwrap();
    assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    let plan = lab.piton(&["prune", "--dry-run", "--json", "--max-size-mb", "1"]).json();
    assert!(plan["over"].as_u64().unwrap() > 100_000, "{plan}");
    sound(&lab);
}

#[test]
fn no_checkpoint_goes_for_room_that_packing_makes() {
    let (lab, mut dice) = (Lab::new(), Dice(5));
    let mut content = noise(&mut dice, 60_000);
    for n in 0..30 {
        content[n] ^= 1;
        lab.write("a", &content);
        assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    }
    assert!(stored(&lab) > 1_500_000, "{}", stored(&lab));
    let looked = lab.piton(&["prune", "--dry-run", "--json", "--max-size-mb", "1"]).json();
    assert!(numbers(&looked).len() > 5, "{looked}");
    assert_eq!(listed(&lab).len(), 30);
    // Packed against each other, all of them take little more than one.
    let output = lab.piton(&["prune", "--yes", "--max-size-mb", "1"]);
    assert!(output.code == 0 && output.stdout.contains("Freed "), "{output:?}");
    assert_eq!(listed(&lab).len(), 30);
    assert!(stored(&lab) < 200_000, "{}", stored(&lab));
    sound(&lab);
}

#[test]
fn an_old_run_goes_as_a_whole() {
    let lab = Lab::new();
    lab.write("a", "0");
    let offset = (-100 * DAY).to_string();
    let mut sidecar = Sidecar::start_with(&lab, &[], &[("PITON_TEST_CLOCK_OFFSET", &offset)]);
    sidecar.ask(json!({"type": "hello", "session": "old"}));
    for codon in ["one", "two"] {
        sidecar.ask(json!({"type": "codon.start", "codonId": codon}));
        lab.write("a", codon);
        sidecar.ask(json!({"type": "codon.complete"}));
    }
    sidecar.ask(json!({"type": "shell.before", "command": "rm a", "cwd": lab.work}));
    sidecar.ask(json!({"type": "run.end"}));
    assert_eq!(sidecar.finish(), 0);
    lab.write("a", "now");
    assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    let typed = lab.piton(&["show", "old:two", "--json"]).json()["n"].as_u64().unwrap();
    assert_eq!(lab.piton(&["delete", &typed.to_string(), "--yes"]).code, 5);
    let keep = lab.piton(&["prune", "--dry-run", "--json", "--set", "retention.runs_days=101"]).json();
    assert!(keep["checkpoints"].as_array().unwrap().iter().all(|item| item["rule"] == "retention.days"), "{keep}");
    let pruned = lab.piton(&["prune", "--yes", "--json"]);
    assert_eq!(pruned.code, 0, "{pruned:?}");
    assert_eq!(listed(&lab).len(), 1);
    let runs = lab.piton(&["runs"]).stdout;
    assert!(!runs.contains("old"), "{runs}");
    let output = lab.piton(&["show", &typed.to_string()]);
    assert!(output.code == 3 && output.stderr.contains("by `retention.runs_days`"), "{output:?}");
    sound(&lab);
}

#[test]
fn dropping_hundreds_holds_no_event_up() {
    let lab = Lab::new();
    lab.set("retention: {enabled: false}\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello"}));
    let create = |sidecar: &mut Sidecar, n: u64| {
        lab.write("a", n.to_string());
        let from = Instant::now();
        let reply = sidecar.ask(json!({"type": "checkpoint.create"}));
        assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
        from.elapsed()
    };
    let before = (1..=700).map(|n| create(&mut sidecar, n)).max().unwrap();
    // The new limit is in force from the next request on.
    lab.set("retention: {per_workspace: 10}\n");
    let meanwhile = (701..=720).map(|n| create(&mut sidecar, n)).max().unwrap();
    println!("the slowest of 700 before took {before:?}, the slowest while hundreds were dropped {meanwhile:?}");
    assert!(meanwhile < before + Duration::from_secs(2), "{meanwhile:?}, and {before:?} before");
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(listed(&lab).len(), 10);
    let output = lab.piton(&["show", "123"]);
    assert!(output.code == 3 && output.stderr.contains("by `retention.per_workspace`"), "{output:?}");
    assert_eq!(lab.piton(&["prune", "--yes"]).code, 0);
    sound(&lab);
}

#[test]
fn a_prune_that_is_killed_loses_nothing_that_is_listed() {
    let (lab, mut dice) = (Lab::new(), Dice(11));
    let mut n = 0;
    for round in 0..6u64 {
        for _ in 0..6 {
            n += 1;
            lab.write("a", noise(&mut dice, 20_000));
            lab.write("n", n.to_string());
            assert_eq!(on_day(&lab, -20, &["checkpoint"]).code, 0);
        }
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let mut child = command.args(["prune", "--yes", "--json"]).stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(8 * round));
        // It may have ended before.
        let _ = child.kill();
        child.wait().unwrap();
        for left in listed(&lab) {
            assert_eq!(lab.piton(&["show", &format!("{left}:n")]).stdout, left.to_string());
        }
        sound(&lab);
    }
    assert!([0, 3].contains(&lab.piton(&["prune", "--yes"]).code));
    assert_eq!(listed(&lab), [n]);
    for gone in 1..n {
        let output = lab.piton(&["show", &gone.to_string()]);
        assert!(output.code == 3 && output.stderr.contains("by `retention.days`"), "{output:?}");
    }
    let left = tree(&lab.store().join("objects"));
    assert!(!left.keys().any(|path| path.to_string_lossy().contains("tmp_")), "{:?}", left.keys());
}

#[test]
fn steps_back_end_where_retention_has_pruned() {
    let lab = Lab::new();
    lab.set("retention: {per_workspace: 6}\n");
    lab.write("a", "1");
    lab.take("A");
    lab.write("a", "2");
    lab.take("B");
    for _ in 0..8 {
        lab.restore("A", &[]);
        lab.restore("B", &[]);
    }
    let undone = (0..16).find(|_| lab.piton(&["undo", "--yes"]).code != 0);
    assert!(undone.is_some_and(|undone| undone > 0), "{undone:?}");
    let ended = lab.piton(&["undo", "--yes"]);
    assert!(ended.code == 3 && ended.stdout.contains("nothing more to undo"), "{ended:?}");
    assert!(ended.stdout.contains("was pruned on"), "{ended:?}");
    for look in [["status", "--json"], ["doctor", "--refs"]] {
        let looked = lab.piton(&look);
        assert!(looked.code == 0 && !looked.stdout.contains("no ref names"), "{looked:?}");
    }
    assert_eq!(lab.piton(&["redo", "--yes"]).code, 0);
}
