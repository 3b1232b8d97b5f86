//! A session of an agent may not take saved content away for good, or guard and keep less. A person may, and so may every program
//! that no agent has started.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Lab, Output, not_allowed, tree};

/// Lines that take saved content away for good, or have piton guard or keep less.
const LINES: &[&str] = &[
    "forget a --yes",
    "forget a .piton.yaml -y --workspace DIR",
    "forget --workspace DIR --yes",
    "forget --secret first --yes",
    "--json forget a --yes",
    "delete 1 --yes",
    "delete label --yes --json",
    "store clear --yes",
    "store clear --workspace DIR --yes --json",
    "prune --yes --max-size-mb 1",
    "prune --yes --retention-days 1",
    "git --unsafe gc",
    "git --unsafe update-ref -d refs/heads/x",
    "config trust",
    "checkpoint --set retention.auto_per_run=1",
    "prune --yes --set retention.per_workspace=1",
    "list --set guard=off",
    "checkpoint --set limits.file_mb=1",
    "mcp-proxy --set guard=off -- true",
    "run --set guard=off -- true",
    "unpin label",
    "store move DIR/../moved --yes",
    "adopt DIR DIR/../other --yes",
    "store adopt DIR DIR/../other --yes --json",
    "off --workspace DIR",
    "off --outside",
    "git push --mirror /nowhere",
    "git push /nowhere :refs/heads/x",
];

fn lab() -> Lab {
    let lab = Lab::new();
    std::fs::create_dir(lab.root().join("other")).unwrap();
    lab.write("a", "first");
    lab.write(".piton.yaml", "guard: off\n");
    lab.take("label");
    lab.write("a", "second");
    lab.take("other");
    lab
}

fn words(lab: &Lab, line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace("DIR", lab.work.to_str().unwrap())).collect()
}

/// Runs piton as a command of an agent does, with a variable of its session.
fn marked(lab: &Lab, mark: &str, line: &str) -> Output {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env(mark, "1").args(words(lab, line)).output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// All that the store and the records hold, without what each command notes of itself.
fn stored(lab: &Lab) -> Vec<String> {
    let all = lab.piton(&["list", "--all", "--json"]).json();
    let mut ids: Vec<String> = all["checkpoints"].as_array().unwrap().iter().map(|one| one["id"].to_string()).collect();
    ids.extend(["1", "2"].map(|n| lab.piton(&["show", n, "a"]).stdout));
    ids
}

#[test]
fn an_agents_session_takes_nothing_away_for_good() {
    let lab = lab();
    let before = stored(&lab);
    for line in LINES {
        for mark in ["PITON_SESSION", "CLAUDECODE", "AI_AGENT", "CODEX_THREAD_ID", "PITON_RUN"] {
            let refused = marked(&lab, mark, line);
            let said = format!("{}{}", refused.stdout, refused.stderr);
            assert_eq!(refused.code, 5, "{mark}: {line}: {refused:?}");
            assert!(said.contains("refused in an agent's session") && said.contains("their own terminal"), "{said}");
            assert!(said.contains(" && PITON_HOME=") && said.contains(" piton ") && !said.contains("--yes"), "{said}");
            if line.contains("--json") {
                assert!(said.contains("needs-person"), "{said}");
            }
        }
    }
    let secret = marked(&lab, "PITON_SESSION", "forget --secret first --yes");
    assert!(secret.stderr.contains("piton forget --secret -`"), "{secret:?}");
    assert_eq!(stored(&lab), before);
    // Looking, going back and what the settings ask for are an agent's too.
    for line in [
        "forget a --dry-run",
        "prune --dry-run --max-size-mb 1",
        "prune --yes",
        "list",
        "checkpoint",
        "undo --preview",
        "checkpoint --set guard=action",
        "pin 1",
        "checkpoint --set limits.file_mb=50",
        "prune --yes --max-size-mb 100000",
        "restore 1 a --yes",
    ] {
        let done = marked(&lab, "PITON_SESSION", line);
        assert!(done.code != 5, "{line}: {done:?}");
    }
    // A program that no agent has started: cron, CI, a person.
    for line in
        ["delete 2 --yes", "prune --yes --max-size-mb 1000", "forget a --yes", "config trust", "store clear --yes"]
    {
        let done = lab.piton(&words(&lab, line).iter().map(String::as_str).collect::<Vec<_>>());
        assert!([0, 3, 4].contains(&done.code), "{line}: {done:?}");
    }
}

#[test]
fn a_client_above_the_process_is_enough() {
    let lab = lab();
    let before = stored(&lab);
    let piton = env!("CARGO_BIN_EXE_piton");
    let env = format!("env -i PATH=/usr/bin:/bin HOME={0} PITON_HOME={0}/piton", lab.home.display());
    let line = format!("{env} {piton} forget a --yes >out 2>&1");
    // The client, a shell below it, a process that was left by its parent, and one in a terminal of its own. A `:` keeps the shell
    // from becoming what it runs.
    for script in [
        format!("{line}; :"),
        format!("sh -c \"{line}; :\"; :"),
        format!("sh -c \"nohup {line} & wait\"; :"),
        format!("script -qec \"sh -c '{line}'\" /dev/null; :"),
    ] {
        let _ = std::fs::remove_file(lab.work.join("out"));
        let mut command = lab.command("bash", &lab.work);
        let started = command.args(["-c", "exec -a claude bash -c \"$1\"", "x", &script]).status().unwrap();
        assert!(started.code().is_some(), "{script}");
        assert!(lab.read("out").contains("refused in an agent's session"), "{script}: {}", lab.read("out"));
        // The same line of a shell that no client has started.
        lab.sh(&format!("{env} {piton} forget a --dry-run >out"));
    }
    std::fs::remove_file(lab.work.join("out")).unwrap();
    assert_eq!(stored(&lab), before);
}

#[test]
fn a_sidecar_of_an_agents_session_takes_nothing_away() {
    let lab = lab();
    let before = stored(&lab);
    let lines = "{\"v\":1,\"id\":1,\"type\":\"hello\",\"client\":\"x\"}\n\
                 {\"v\":1,\"id\":2,\"type\":\"checkpoint.delete\",\"shas\":[\"label\"]}\n\
                 {\"v\":1,\"id\":3,\"type\":\"checkpoint.unpin\",\"shas\":[\"label\"]}\n";
    let asked = |mark: &str| {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(["sidecar"]).env(mark, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let refused = asked("PITON_SESSION");
    assert_eq!(refused.matches("needs-person").count(), 2, "{refused}");
    assert_eq!(stored(&lab), before);
    let done = asked("NONE");
    assert!(!done.contains("needs-person"), "{done}");
    assert_ne!(stored(&lab), before);
}

fn hook(lab: &Lab, event: &str, more: Value) -> Value {
    let mut payload = json!({ "hook_event_name": event, "session_id": "s", "cwd": lab.work, "prompt_id": "p" });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(["hook", "claude-code", event, "--no-daemon"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

#[test]
fn an_agent_switches_the_guard_off_for_its_turn_only_and_the_person_sees_it() {
    let lab = Lab::new();
    lab.write("a", "first");
    lab.write("b", "first");
    let remove = |name: &str, id: &str| {
        let call = json!({ "tool_name": "Bash", "tool_input": { "command": format!("rm {name}") }, "tool_use_id": id });
        hook(&lab, "PreToolUse", call.clone());
        std::fs::remove_file(lab.work.join(name)).unwrap();
        hook(&lab, "PostToolUse", call);
    };
    let number = || lab.piton(&["list", "--json"]).json()["checkpoints"].as_array().unwrap().len();
    hook(&lab, "SessionStart", json!({ "source": "startup" }));
    hook(&lab, "UserPromptSubmit", json!({ "prompt": "go" }));
    let off = marked(&lab, "PITON_SESSION", "off --for 8h");
    assert!(off.code == 0 && off.stdout.contains("for the rest of this turn"), "{off:?}");
    let before = number();
    remove("a", "u1");
    assert_eq!(number(), before, "the guard is off");
    let ended = hook(&lab, "Stop", json!({}));
    let notice = ended["systemMessage"].as_str().unwrap_or_default();
    assert!(
        notice.contains("The agent switched the guard of") && notice.contains("piton switched it on again"),
        "{ended}"
    );
    let status = lab.piton(&["status"]).stdout;
    assert!(!status.contains("guard is off"), "{status}");
    // The model reads it once, in words that are true in a later turn.
    let later = hook(&lab, "UserPromptSubmit", json!({ "prompt": "go on", "prompt_id": "q" }));
    let told = later["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(told.contains("switched it on again") && !told.contains("this turn"), "{later}");
    for turn in ["r", "q"] {
        let later = hook(&lab, "UserPromptSubmit", json!({ "prompt": "go on", "prompt_id": turn }));
        assert!(!later.to_string().contains("on again"), "{later}");
    }
    remove("b", "u2");
    assert_eq!(number(), before + 1, "the guard is on");
    // A person's switch stays.
    assert_eq!(lab.piton(&["off"]).code, 0);
    let ended = hook(&lab, "Stop", json!({}));
    assert!(!ended.to_string().contains("on again"), "{ended}");
    assert!(lab.piton(&["status"]).stdout.contains("the guard is off"));
    assert_eq!(tree(&lab.work).len(), 0);
}

#[test]
fn git_writes_nothing_into_pitons_own_files() {
    let lab = lab();
    let before = stored(&lab);
    let store = lab.store();
    std::os::unix::fs::symlink(&store, lab.work.join("link")).unwrap();
    let head = store.join("HEAD");
    let lines = [
        format!("git bundle create {} --all", head.display()),
        "git bundle create link/packed-refs --all".to_owned(),
        format!("git push --mirror {}", store.display()),
        format!("git push file://{} :refs/heads/x", store.display()),
        "git push link --all".to_owned(),
    ];
    for line in lines {
        let refused = lab.piton(&line.split(' ').collect::<Vec<_>>());
        assert!(refused.code == 2 && refused.stderr.contains("piton's own files"), "{line}: {refused:?}");
    }
    assert_eq!(stored(&lab), before);
    let elsewhere = lab.piton(&["git", "bundle", "create", "all.bundle", "--all"]);
    assert!(elsewhere.code == 0 && lab.work.join("all.bundle").exists(), "{elsewhere:?}");
}

#[test]
fn the_link_of_a_moved_store_is_held_too() {
    let lab = lab();
    let old = lab.home.join("piton");
    let new = lab.root().join("moved");
    let moved = lab.piton(&["store", "move", new.to_str().unwrap(), "--yes"]);
    assert_eq!(moved.code, 0, "{moved:?}");
    for target in [old, new] {
        let judged = lab.piton(&["classify", "--json", &format!("rm -rf {}", target.display())]).json();
        assert!(judged["hold"].as_str().is_some_and(|hold| hold.contains("piton store move")), "{judged}");
    }
}

#[test]
fn a_session_whose_leader_is_outside_of_the_container_is_a_persons() {
    let lab = lab();
    for (mark, code) in [("PITON_SESSION", 5), ("NONE", 0)] {
        let mut command = lab.command("unshare", &lab.work);
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
        command.args([env!("CARGO_BIN_EXE_piton"), "delete", "label", "--yes"]).env(mark, "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.starts_with("unshare: ") {
            return not_allowed(&format!("a container ({said})"));
        }
        assert_eq!(output.status.code(), Some(code), "{mark}: {said}");
    }
}
