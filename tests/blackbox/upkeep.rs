//! Maintenance that nobody asks for: rounds in idle time and at the end, caps, directories that are gone.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dice::Dice;
use super::support::{Lab, Output, Sidecar, WAIT, id_of, not_allowed, tree};

const HOUR: i64 = 3_600_000;

fn schedule_file(lab: &Lab) -> PathBuf {
    lab.home.join("piton/upkeep.json")
}

fn schedule(lab: &Lab) -> Value {
    serde_json::from_slice(&std::fs::read(schedule_file(lab)).unwrap()).unwrap()
}

/// Has the home believe that so many hours have passed since maintenance was last looked at.
fn pass(lab: &Lab, hours: i64) {
    let mut state = schedule(lab);
    for clock in ["wall", "since_boot"] {
        state["at"][clock] = json!(state["at"][clock].as_i64().unwrap() - hours * HOUR);
    }
    std::fs::write(schedule_file(lab), state.to_string()).unwrap();
}

/// Waits for the end of a round that is later than `before`.
fn round_after(lab: &Lab, before: &Value) {
    let until = Instant::now() + WAIT;
    while schedule(lab)["last"] == before["last"] {
        assert!(Instant::now() < until, "no round came: {before}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A sidecar that has worked once, and is idle now.
fn idle_sidecar(lab: &Lab, env: &[(&str, &str)]) -> Sidecar {
    let mut sidecar = Sidecar::start_with(lab, &[], env);
    assert_eq!(sidecar.ask(json!({"type": "hello", "client": "test", "workspace": lab.work}))["ok"], true);
    sidecar
}

/// Has a sidecar do a round, and ends it.
fn round(lab: &Lab, env: &[(&str, &str)]) -> Sidecar {
    let before = schedule(lab);
    let sidecar = idle_sidecar(lab, env);
    round_after(lab, &before);
    sidecar
}

fn noise(dice: &mut Dice, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| dice.roll(256) as u8).collect()
}

/// Bytes of all objects.
fn stored(lab: &Lab) -> u64 {
    tree(&lab.store().join("objects")).values().map(|(_, _, content)| content.len() as u64).sum()
}

fn listed(lab: &Lab) -> Vec<u64> {
    let list = lab.piton(&["list", "--json", "-n", "1000"]).json();
    list["checkpoints"].as_array().unwrap().iter().map(|row| row["n"].as_u64().unwrap()).collect()
}

fn sound(lab: &Lab) {
    if let Some(text) = lab.store_git(&["fsck", "--full", "--no-dangling"]) {
        assert!(!text.contains("missing") && !text.contains("error"), "{text}");
    }
    let doctor = lab.piton(&["doctor", "--refs"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
}

fn workspace_id(lab: &Lab) -> String {
    lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_sidecar_does_a_round_by_itself_and_only_one_an_interval() {
    let (lab, mut dice) = (Lab::new(), Dice(7));
    for n in 1..=3 {
        lab.write("big", noise(&mut dice, 300_000));
        lab.take(&format!("state {n}"));
    }
    assert!(lab.piton(&["delete", "1", "2", "--yes"]).code == 0);
    let full = stored(&lab);
    let before = schedule(&lab);
    let mut sidecar = idle_sidecar(&lab, &[]);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(schedule(&lab)["last"], before["last"], "none was due");
    sidecar.finish();
    pass(&lab, 25);
    let mut sidecar = round(&lab, &[]);
    assert!(stored(&lab) < full - 500_000, "{} of {full}", stored(&lab));
    let usage: Value = serde_json::from_slice(&std::fs::read(lab.home.join("piton/usage")).unwrap()).unwrap();
    let own = usage["workspaces"][workspace_id(&lab)]["own"].as_u64().unwrap();
    assert!((300_000..400_000).contains(&own) && usage["stored"] == own, "{usage}");
    // The next is an interval later, whatever the sidecar does.
    let after = schedule(&lab);
    for n in 0..2 {
        lab.write("big", n.to_string());
        sidecar.ask(json!({"type": "checkpoint.create", "label": format!("number {n}")}));
        std::thread::sleep(Duration::from_secs(4));
    }
    assert_eq!(schedule(&lab)["last"], after["last"]);
    // By hand it is done at any time.
    assert_eq!(lab.piton(&["delete", "3", "--yes"]).code, 0);
    let pruned = lab.piton(&["prune", "--yes", "--json"]).json();
    assert!(pruned["freed"].as_u64().unwrap() > 200_000, "{pruned}");
    assert_eq!(sidecar.finish(), 0);
    sound(&lab);
}

#[test]
fn a_short_command_tries_once_an_interval() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    assert_eq!(schedule(&lab)["tried"], Value::Null);
    pass(&lab, 25);
    lab.take("two");
    let tried = schedule(&lab)["tried"].clone();
    assert!(tried.as_i64().unwrap() >= 25 * HOUR, "{tried}");
    lab.take("three");
    assert_eq!(schedule(&lab)["tried"], tried);
    pass(&lab, 25);
    lab.take("four");
    assert_ne!(schedule(&lab)["tried"], tried);
}

#[test]
fn clocks_that_jump_drop_nothing() {
    let lab = Lab::new();
    lab.set("guard: action\n");
    let take = |env: &[(&str, &str)], text: &str| {
        lab.write("a", text);
        let mut sidecar = idle_sidecar(&lab, env);
        let before = sidecar.ask(json!({"type": "shell.before", "command": "rm a"}));
        assert_eq!(before["checkpoint"]["status"], "taken", "{before}");
        sidecar.finish();
    };
    let year = |years: i64| (years * 365 * 24 * 3600).to_string();
    let (past, future, far) = (year(-10), year(10), year(50));
    (1..=3).for_each(|n| take(&[], &n.to_string()));
    // One is dated in the future, and one in the past.
    take(&[("PITON_TEST_CLOCK_OFFSET", &future)], "4");
    take(&[("PITON_TEST_CLOCK_OFFSET", &past)], "5");
    take(&[], "6");
    let all = listed(&lab);
    assert_eq!(all.len(), 6, "{all:?}");
    for jump in [&far, &past, &future, &far] {
        pass(&lab, 25);
        // The clock is wrong for one round.
        round(&lab, &[("PITON_TEST_CLOCK_OFFSET", jump)]).finish();
        assert_eq!(listed(&lab), all, "{jump}");
        pass(&lab, 25);
        round(&lab, &[]).finish();
        assert_eq!(listed(&lab), all, "{jump}, and right again");
    }
    // If two looks find them old, they go, but for the newest.
    for _ in 0..2 {
        pass(&lab, 25);
        round(&lab, &[("PITON_TEST_CLOCK_OFFSET", &far)]).finish();
    }
    assert_eq!(listed(&lab), all[..1]);
    assert!(lab.piton(&["show", &all[2].to_string()]).stderr.contains("retention.days"));
    sound(&lab);
}

#[test]
fn a_cap_that_cannot_be_met_is_said_and_costs_nothing() {
    let (lab, mut dice) = (Lab::new(), Dice(11));
    for n in 1..=3 {
        lab.write("big", noise(&mut dice, 1_000_000));
        assert_eq!(lab.piton(&["checkpoint", &format!("state {n}"), "--pin"]).code, 0);
    }
    assert_eq!(lab.piton(&["status", "--json"]).json()["cap"], Value::Null);
    lab.set("retention: {total_mb: 1}\n");
    pass(&lab, 25);
    let mut sidecar = round(&lab, &[]);
    let after = schedule(&lab);
    let mut slowest = Duration::ZERO;
    for n in 0..20 {
        lab.write("small", n.to_string());
        let from = Instant::now();
        sidecar.ask(json!({"type": "checkpoint.create", "label": format!("number {n}")}));
        slowest = slowest.max(from.elapsed());
    }
    println!("the slowest checkpoint past the cap took {slowest:?}");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(schedule(&lab)["last"], after["last"], "no round is repeated");
    let told = sidecar.notice(|notice| notice["notice"] == "store.cap");
    assert!(told["over"].as_u64().unwrap() > 1_900_000 && told["total"] == 1_000_000, "{told}");
    assert!(told["reason"].as_str().unwrap().contains("`retention.total_mb`"), "{told}");
    assert_eq!(sidecar.finish(), 0);
    assert!(!sidecar.notices.iter().any(|notice| notice["notice"] == "store.cap"), "it is said once");
    let status = lab.piton(&["status", "--json"]);
    let text = status.json()["cap"].as_str().unwrap().to_owned();
    assert!(text.contains("1 workspace take") && status.code == 0, "{text}");
    assert!(lab.piton(&["status"]).stdout.contains("retention.total_mb"));
    assert!(lab.piton(&[]).stdout.contains("retention.total_mb"));
    let doctor = lab.piton(&["doctor"]).stdout;
    assert!(doctor.lines().any(|line| line.contains("FAIL") && line.contains("retention.total_mb")), "{doctor}");
    // Each event of a hook is a process of its own, and the session is told once.
    let hook = |session: &str, event: &str| {
        let payload = json!({ "hook_event_name": event, "session_id": session, "prompt_id": "p", "cwd": lab.work,
            "prompt": "go on", "tool_name": "Bash", "tool_input": { "command": "rm small" }, "tool_use_id": "u" });
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["hook", "claude-code", event, "--no-daemon"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut hook = command.spawn().unwrap();
        hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap()
    };
    for (session, event) in [("one", "UserPromptSubmit"), ("two", "PostToolUse")] {
        let said = hook(session, event);
        assert!(said.contains("retention.total_mb"), "{session}: {said}");
        assert!(!hook(session, event).contains("retention.total_mb"), "{session}");
    }
    // With a higher cap nothing is said.
    lab.set("retention: {total_mb: 100}\n");
    assert!(!hook("three", "UserPromptSubmit").contains("retention.total_mb"));
    assert_eq!(lab.piton(&["status", "--json"]).json()["cap"], Value::Null);
    sound(&lab);
}

/// Runs piton for another directory of the lab.
fn piton_at(lab: &Lab, dir: &Path, args: &[&str]) -> Output {
    lab.piton_in(dir, args)
}

#[test]
fn an_orphan_goes_with_everything_once_it_is_proved() {
    let (lab, mut dice) = (Lab::new(), Dice(13));
    let (other, away) = (lab.root().join("above/other"), lab.root().join("away"));
    let same = noise(&mut dice, 200_000);
    for dir in [&lab.work, &other] {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("same"), &same).unwrap();
        assert_eq!(piton_at(&lab, dir, &["checkpoint", "both"]).code, 0);
    }
    assert!(stored(&lab) < 300_000, "an equal file is stored once");
    std::fs::write(other.join("own"), noise(&mut dice, 400_000)).unwrap();
    assert_eq!(piton_at(&lab, &other, &["checkpoint", "before the end"]).code, 0);
    let id = piton_at(&lab, &other, &["show", "2", "--json"]).json()["id"].as_str().unwrap().to_owned();
    let records = lab.home.join("piton/workspaces");
    let gone = piton_at(&lab, &other, &["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    // Nothing is proved while a directory above is gone too, or is another one.
    std::fs::rename(lab.root().join("above"), &away).unwrap();
    for days in [1, 8] {
        pass(&lab, days * 24);
        round(&lab, &[]).finish();
    }
    assert!(records.join(&gone).is_dir());
    std::fs::rename(&away, lab.root().join("above")).unwrap();
    std::fs::remove_dir_all(&other).unwrap();
    for (days, is_there) in [(1, true), (6, true), (2, false)] {
        pass(&lab, days * 24);
        let shown = lab.piton(&["prune", "--dry-run", "--keep-orphans", "--json"]).json();
        assert_eq!(shown["checkpoints"], json!([]), "{shown}");
        round(&lab, &[]).finish();
        if records.join(&gone).is_dir() && !is_there {
            // The file system of this machine tells nothing that would be a proof.
            return not_allowed("proving that a directory is gone");
        }
        assert_eq!(records.join(&gone).is_dir(), is_there, "{days}");
    }
    assert!(stored(&lab) < 300_000, "{}", stored(&lab));
    let refs = lab.piton(&["show", &id]);
    assert!(refs.code != 0 && refs.stderr.contains("retention.orphans"), "{refs:?}");
    assert_eq!(listed(&lab).len(), 1);
    assert_eq!(lab.piton(&["restore", "1", "--yes"]).code, 3, "it is as it was");
    assert_eq!(std::fs::read(lab.work.join("same")).unwrap(), same);
    sound(&lab);
}

#[test]
fn no_event_waits_for_a_round() {
    let (lab, mut dice) = (Lab::new(), Dice(29));
    for n in 0..3000 {
        lab.write(&format!("d{}/f{n}", n % 60), noise(&mut dice, 1500));
    }
    lab.take("first");
    for n in 0..30 {
        for file in 0..20 {
            lab.write(&format!("d{}/g{file}", n % 60), noise(&mut dice, 3000));
        }
        lab.take(&format!("state {n}"));
    }
    assert_eq!(lab.piton(&["delete", "2", "5", "9", "13", "17", "21", "--yes"]).code, 0);
    pass(&lab, 25);
    let before = schedule(&lab);
    let mut sidecar = idle_sidecar(&lab, &[]);
    let (mut n, mut slowest) = (0, Duration::ZERO);
    // The client pauses until a round has begun, and then comes in the midst of it.
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(3010 + dice.roll(800)));
        for _ in 0..3 {
            n += 1;
            lab.write("a", n.to_string());
            let from = Instant::now();
            let reply = sidecar.ask(json!({"type": "checkpoint.create", "label": format!("within {n}")}));
            slowest = slowest.max(from.elapsed());
            assert_eq!(reply["ok"], true, "{reply}");
        }
    }
    // A round that gave way comes again while nothing else is to do.
    round_after(&lab, &before);
    println!("beside a round, the slowest of {n} checkpoints took {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert_eq!(sidecar.finish(), 0);
    sound(&lab);
}

#[test]
fn after_a_prune_nobody_reads_a_long_history_again() {
    let lab = Lab::new();
    lab.set("retention: {enabled: false}\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    for n in 0..300 {
        lab.write("f", format!("{n}"));
        let taken = sidecar.ask(json!({"type": "shell.before", "command": "rm -rf nothing", "turn": format!("t{n}")}));
        assert_eq!(taken["checkpoint"]["status"], "taken", "{taken}");
    }
    sidecar.child.kill().unwrap();
    sidecar.child.wait().unwrap();
    let kept = lab.home.join("piton/workspaces").join(workspace_id(&lab)).join("commits");
    assert!(!kept.exists(), "only what is packed is kept");
    assert_eq!(lab.piton(&["prune", "--yes"]).code, 0);
    // A frame takes more than 100 bytes.
    let length = std::fs::metadata(&kept).expect("what commits say").len();
    assert!(length > 300 * 100, "{length} bytes");
    assert_eq!(listed(&lab).len(), 300);
}

#[test]
fn the_daemon_does_a_round_by_itself() {
    let (lab, mut dice) = (Lab::new(), Dice(19));
    lab.write("big", noise(&mut dice, 300_000));
    lab.take("one");
    lab.write("big", "small");
    assert_eq!(lab.piton(&["delete", "1", "--yes"]).code, 0);
    let full = stored(&lab);
    pass(&lab, 25);
    let before = schedule(&lab);
    let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "t", "cwd": lab.work,
        "tool_name": "Bash", "tool_input": { "command": "rm big" }, "tool_use_id": "u" });
    let mut hook = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    hook.args(["hook", "claude-code", "PreToolUse"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut hook = hook.spawn().unwrap();
    hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    round_after(&lab, &before);
    assert_eq!(lab.piton(&["daemon", "stop"]).code, 0);
    assert!(stored(&lab) < full - 200_000, "{} of {full}", stored(&lab));
    sound(&lab);
}

#[test]
fn copies_of_a_project_cost_little() {
    let (lab, mut dice) = (Lab::new(), Dice(23));
    for n in 0..600 {
        lab.write(&format!("d{}/f{n}", n % 20), noise(&mut dice, 20_000));
    }
    lab.take("one");
    lab.piton(&["prune", "--yes"]);
    let size = || -> u64 {
        let all = lab.command("du", &lab.work).args(["-s", "--block-size=1"]).arg(lab.home.join("piton")).output();
        String::from_utf8(all.unwrap().stdout).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    };
    let one = size();
    for n in 1..20 {
        lab.sh(&format!("cp -r . ../copy{n}"));
        assert_eq!(lab.piton_in(&lab.root().join(format!("copy{n}")), &["checkpoint", "one"]).code, 0);
    }
    pass(&lab, 25);
    round(&lab, &[]).finish();
    let all = size();
    println!("one project takes {one} bytes, and 20 copies {all}");
    assert!(all < one + one / 20, "{one} {all}");
    lab.write("d0/f0", "new");
    lab.take("two");
    sound(&lab);
}

#[test]
fn a_round_that_is_killed_leaves_a_valid_store() {
    let (lab, mut dice) = (Lab::new(), Dice(17));
    lab.set("retention: {labelled: 6}\n");
    let kills = std::env::var("PITON_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut n = 0;
    for kill in 0..kills {
        for _ in 0..3 {
            n += 1;
            lab.write("big", noise(&mut dice, 60_000));
            lab.write(&format!("dir/f{}", n % 40), noise(&mut dice, 6000));
            lab.take(&format!("state {n}"));
        }
        pass(&lab, 25);
        lab.write("more", n.to_string());
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let args: &[&str] = if kill % 2 == 0 { &["prune", "--yes"] } else { &["checkpoint", "and a round"] };
        let mut child = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(dice.roll(400)));
        child.kill().unwrap();
        child.wait().unwrap();
        let all = listed(&lab);
        assert!(all.len() >= n.min(6), "{all:?}");
        sound(&lab);
        let newest = all[0].to_string();
        assert_eq!(lab.piton(&["show", &newest, "--json"]).code, 0);
        assert!(!id_of(&lab, all[0]).is_empty());
    }
    lab.sh("touch $(ls -d ../home/piton/workspaces/*)/state.json.tmp-1-1");
    pass(&lab, 25);
    round(&lab, &[]).finish();
    sound(&lab);
    let stray: Vec<_> = tree(&lab.home.join("piton")).into_keys().filter(|path| is_stray(path)).collect();
    assert!(stray.is_empty(), "{stray:?}");
}

#[test]
fn a_round_that_fails_is_told_and_the_next_process_does_it() {
    let lab = Lab::new();
    lab.set("retention: {per_workspace: 3}\n");
    for n in 0..5 {
        lab.write("a", n.to_string());
        lab.take("one");
    }
    pass(&lab, 25);
    // As on a full disk: no figures can be written.
    let usage = lab.home.join("piton/usage");
    std::fs::create_dir(&usage).unwrap();
    let (before, all) = (schedule(&lab), listed(&lab));
    let mut sidecar = idle_sidecar(&lab, &[]);
    let until = Instant::now() + WAIT;
    let told = || lab.piton(&["status", "--json"]).json()["mishaps"].to_string();
    while !told().contains("the store could not be maintained") {
        assert!(Instant::now() < until, "{}", told());
    }
    sidecar.finish();
    assert_eq!((&schedule(&lab)["last"], listed(&lab)), (&before["last"], all));
    sound(&lab);
    std::fs::remove_dir(&usage).unwrap();
    round(&lab, &[]).finish();
    assert!(usage.is_file());
    sound(&lab);
}

#[test]
fn a_round_completes_a_killed_forget() {
    let lab = Lab::new();
    for n in 0..2 {
        lab.write("hidden", format!("hidden {n}"));
        lab.write("file", n.to_string());
        lab.take("one");
    }
    let id = lab.piton(&["status", "--json"]).json()["workspace"]["id"].clone();
    let kind = json!({"kind": "paths", "paths": ["hidden"]});
    let note = json!({"at": 1, "kind": kind, "workspace": id, "map": [], "has_moved": false});
    let path = lab.home.join("piton/forget.json");
    std::fs::write(&path, note.to_string()).unwrap();
    assert!(lab.piton(&["status"]).stdout.contains("is not finished"));
    pass(&lab, 25);
    round(&lab, &[]).finish();
    assert!(!path.exists());
    assert_eq!(lab.piton(&["show", "1:file"]).stdout, "0");
    assert_ne!(lab.piton(&["show", "1:hidden"]).code, 0);
    sound(&lab);
}

fn is_stray(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.contains("tmp") || name.starts_with(".removed-")
}
