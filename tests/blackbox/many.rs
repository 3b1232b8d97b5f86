//! Many actions at once: one checkpoint serves them all, and nobody waits for a scan behind which its own paths could be saved.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, WAIT};
use piton::sys::fs::lock::{FileLock, Mode};

fn autos(lab: &Lab) -> Vec<Value> {
    let list = lab.piton(&["list", "--json", "--steps"]);
    let all = if list.code == 3 { Vec::new() } else { list.json()["checkpoints"].as_array().unwrap().clone() };
    all.into_iter().filter(|row| ["auto", "step"].contains(&row["kind"].as_str().unwrap())).collect()
}

/// Starts hooks of Claude Code all at once, and waits for them.
fn hooks(lab: &Lab, turn: &str, calls: &[(&str, Value)]) {
    let started: Vec<_> = calls
        .iter()
        .map(|(tool, input)| {
            let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
            command.args(["hook", "claude-code", "PreToolUse"]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": turn, "cwd": lab.work,
                "tool_name": tool, "tool_input": input, "tool_use_id": "u" });
            // A hook that has seen enough may close its input.
            let _ = child.stdin.take().unwrap().write_all(payload.to_string().as_bytes());
            child
        })
        .collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn hooks_at_once_share_one_checkpoint_of_their_turn() {
    let lab = Lab::new();
    for n in 0..200 {
        lab.write(&format!("d{}/f{n}", n % 20), format!("{n}"));
    }
    let file = |n: usize| format!("d{}/f{n}", n % 20);
    hooks(&lab, "first", &[("Bash", json!({ "command": "rm d0/f0" }))]);
    let before = autos(&lab).len();
    for round in 0..3 {
        lab.write("touched", format!("{round}"));
        let removals = (0..8).map(|n| ("Bash", json!({ "command": format!("rm {}", file(n)) })));
        hooks(&lab, &format!("rm {round}"), &removals.collect::<Vec<_>>());
        lab.write("touched", format!("{round} again"));
        let edits = (8..16).map(|n| {
            let path = lab.work.join(file(n));
            ("Edit", json!({ "file_path": path, "old_string": "1", "new_string": "2" }))
        });
        hooks(&lab, &format!("edit {round}"), &edits.collect::<Vec<_>>());
    }
    let rows = autos(&lab);
    assert_eq!(rows.len(), before + 6, "{rows:?}");
    for row in &rows {
        let flags = row["flags"].as_array().unwrap();
        assert!(!flags.contains(&json!("partial")) && !flags.contains(&json!("paths")), "{row}");
    }
}

#[test]
fn actions_that_wait_are_answered_from_one_checkpoint() {
    let lab = Lab::new();
    (0..8).for_each(|n| lab.write(&format!("f{n}"), format!("{n}")));
    lab.write(".gitignore", "ignored/\n");
    lab.write("ignored/x", "x");
    lab.take("first");
    let records = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap();
    let record = records.map(|entry| entry.unwrap().path()).find(|dir| dir.join("lock").exists()).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello"}));
    sidecar.ask(json!({"type": "checkpoint.create", "label": "everything is read"}));
    lab.write("f7", "changed");
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    // Nothing is taken as long as somebody else holds the workspace.
    let lock = FileLock::acquire(&record.join("lock"), Mode::Exclusive, "testing", WAIT).unwrap();
    for n in 0..5 {
        sidecar.send(json!({"id": n, "type": "shell.before", "command": format!("rm f{n}")}));
    }
    sidecar.send(json!({"id": 5, "type": "tool.before", "tool": "Write", "input": {"path": "f5", "content": "y"}}));
    sidecar.send(json!({"id": 6, "type": "shell.before", "command": "rm ignored/x"}));
    std::thread::sleep(Duration::from_millis(200));
    drop(lock);
    let replies: Vec<Value> = (0..7).map(|id| sidecar.reply(id)["checkpoint"].clone()).collect();
    let of = |status: &str| replies.iter().filter(|reply| reply["status"] == status).count();
    // The last one names a path that the rules leave out: if it came too late for the first checkpoint, it got one of
    // its own.
    assert!(of("taken") == 1 || (of("taken") == 2 && replies[6]["status"] == "taken"), "{replies:?}");
    assert_eq!(of("taken") + of("held"), 7, "{replies:?}");
    for reply in &replies[..6] {
        assert_eq!(lab.store_git(&["show", &format!("{}:f7", reply["id"].as_str().unwrap())]).unwrap(), "changed");
    }
    let last = replies[6]["id"].as_str().unwrap();
    assert_eq!(lab.piton(&["show", &format!("{last}:ignored/x")]).stdout, "x");
    assert_eq!(autos(&lab).len(), of("taken"));
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn an_action_behind_the_start_of_its_turn_takes_the_only_checkpoint() {
    let lab = Lab::new();
    lab.write("f", "old");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let until = Instant::now() + WAIT;
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    while sidecar.ask(json!({"type": "status"}))["baseline"] != "ready" {
        assert!(Instant::now() < until, "there never was a base capture");
    }
    lab.write("f", "new");
    sidecar.send(json!({"id": 1, "type": "turn.start", "turn": "t"}));
    sidecar.send(json!({"id": 2, "type": "shell.before", "command": "rm f"}));
    let taken = sidecar.reply(2)["checkpoint"].clone();
    assert_eq!(taken["status"], "taken", "{taken}");
    assert_eq!(lab.store_git(&["show", &format!("{}:f", taken["id"].as_str().unwrap())]).unwrap(), "new");
    assert_eq!(sidecar.ask(json!({"type": "shell.before", "command": "rm f"}))["checkpoint"]["status"], "held");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn what_an_action_names_stays_saved_although_the_rest_comes_behind_the_answer() {
    let lab = Lab::new();
    std::fs::write(lab.user_file(), "watcher: none\ndeadline_ms: 3000\n").unwrap();
    let many = 20 * std::thread::available_parallelism().map_or(2, usize::from);
    (0..many).for_each(|n| lab.write(&format!("d{n}/f"), format!("{n}")));
    lab.write("near/f", "precious");
    std::fs::File::create(lab.work.join("near/huge")).unwrap().set_len((64 << 20) + 1).unwrap();
    let slowly = ["-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=getdents64"];
    let slowly = slowly.into_iter().chain(["-e", "inject=getdents64:delay_enter=400000"]);
    let dirs: Vec<String> = (0..many).map(|n| lab.work.join(format!("d{n}")).to_string_lossy().into_owned()).collect();
    let slowly: Vec<&str> = slowly.chain(dirs.iter().flat_map(|dir| ["-P", dir.as_str()])).collect();
    // Nothing was captured before, and no daemon answers.
    let Some(mut sidecar) = Sidecar::start_traced(&lab, &slowly) else { return };
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    let reply = sidecar.ask(json!({"type": "shell.before", "command": "rm near/f near/huge"}));
    assert_eq!(reply["checkpoint"]["status"], "late", "{reply}");
    assert!(
        reply["checkpoint"]["reason"].as_str().unwrap().contains("contains the paths that the action names"),
        "{reply}"
    );
    assert_eq!(
        reply["not_held"].as_array().map(|items| (items.len(), items[0]["path"].clone())),
        Some((1, json!("near/huge"))),
        "{reply}"
    );
    lab.sh("rm near/f near/huge");
    // The scan that ends now finds nothing of it.
    let settled = sidecar.notice(|notice| notice["notice"] == "checkpoint.settled");
    assert_eq!(settled["checkpoint"]["status"], "taken", "{settled}");
    assert_eq!(sidecar.finish(), 0);
    let named = reply["checkpoint"]["n"].as_u64().unwrap();
    lab.restore(named, &["near/f"]);
    assert_eq!(lab.read("near/f"), "precious");
}

#[test]
fn named_paths_are_captured_first_where_a_scan_runs_long() {
    let lab = Lab::new();
    std::fs::write(lab.user_file(), "watcher: none\ndeadline_ms: 10000\n").unwrap();
    // So many that the scan takes longer than the wait, on however many threads.
    let many = 20 * std::thread::available_parallelism().map_or(2, usize::from);
    (0..many).for_each(|n| lab.write(&format!("d{n}/f"), format!("{n}")));
    lab.write("near/f", "7");
    lab.take("so that only looking is slow");
    // Each listing of one of many directories takes long; all else takes no longer for being traced.
    let slowly = ["-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=getdents64"];
    let slowly = slowly.into_iter().chain(["-e", "inject=getdents64:delay_enter=400000"]);
    let dirs: Vec<String> = (0..many).map(|n| lab.work.join(format!("d{n}")).to_string_lossy().into_owned()).collect();
    let slowly: Vec<&str> = slowly.chain(dirs.iter().flat_map(|dir| ["-P", dir.as_str()])).collect();
    let Some(mut sidecar) = Sidecar::start_traced(&lab, &slowly) else { return };
    // Without a turn: its end would have to look at everything once more.
    sidecar.ask(json!({"type": "hello", "session": "s"}));
    sidecar.send(json!({"id": "rm", "type": "shell.before", "command": "rm near/f"}));
    let late = sidecar.reply("rm")["checkpoint"].clone();
    assert_eq!(late["status"], "late", "{late}");
    let named = late["id"].as_str().expect("a capture of the named path");
    assert_eq!(lab.store_git(&["show", &format!("{named}:near/f")]).unwrap(), "7");
    assert_eq!(
        lab.store_git(&["ls-tree", "-r", "--name-only", named])
            .unwrap()
            .lines()
            .filter(|path| path.ends_with('f'))
            .count(),
        1
    );
    // The scan begins again, and comes to its end.
    let settled = sidecar.notice(|notice| notice["notice"] == "checkpoint.settled");
    assert_eq!(
        (&settled["pending"], &settled["checkpoint"]["status"]),
        (&late["pending"], &json!("taken")),
        "{settled}"
    );
    assert_eq!(settled["checkpoint"]["files"], many + 1, "{settled}");
    assert_eq!(autos(&lab).len(), 2);
    assert_eq!(sidecar.finish(), 0);
}
