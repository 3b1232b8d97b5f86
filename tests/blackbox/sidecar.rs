//! The sidecar: a real tool stream goes in, decisions come out, and nothing stops the guard.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar, WAIT, tree};

fn shell(command: &str) -> Value {
    json!({"type": "shell.before", "command": command})
}

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

/// A workspace with a file of each sort, guarded.
fn guarded() -> (Lab, Sidecar) {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.write("dir/f", "f\n");
    let sidecar = Sidecar::start(&lab, &[]);
    (lab, sidecar)
}

#[test]
fn hello_says_what_is_guarded() {
    let lab = Lab::new();
    std::fs::remove_file(lab.user_file()).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let hello =
        sidecar.ask(json!({"v": 1, "type": "hello", "client": "test", "session": "S 1", "workspace": lab.work}));
    assert_eq!((&hello["ok"], &hello["type"], &hello["v"]), (&json!(true), &json!("hello"), &json!(1)));
    assert_eq!(hello["workspace"]["path"], json!(lab.work));
    assert_eq!((&hello["workspace"]["scope"], &hello["guard"]), (&json!("tree"), &json!("turn")));
    assert_eq!(hello["limits"], json!({"line": 8_388_608, "deadline_ms": 3000}));
    assert!(hello["run"].as_str().unwrap().starts_with("s-"));
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn one_checkpoint_a_turn() {
    let (lab, mut sidecar) = guarded();
    let turn = |sidecar: &mut Sidecar, name: &str| sidecar.ask(json!({"type": "turn.start", "turn": name}));
    turn(&mut sidecar, "t1");
    assert_eq!(status(&sidecar.ask(shell("ls -la"))), "none");
    let first = sidecar.ask(shell("git reset --hard"));
    assert_eq!((status(&first), &first["turn"], &first["needs"]), ("taken", &json!("t1"), &json!("checkpoint")));
    let held = sidecar.ask(shell("git checkout -- ."));
    assert_eq!((status(&held), &held["checkpoint"]["id"]), ("held", &first["checkpoint"]["id"]));
    turn(&mut sidecar, "t1");
    assert_eq!(status(&sidecar.ask(shell("git checkout -- ."))), "held");
    turn(&mut sidecar, "t2");
    let same = sidecar.ask(shell("rm -rf dir"));
    assert_eq!((status(&same), &same["checkpoint"]["id"]), ("unchanged", &first["checkpoint"]["id"]), "{same}");
    lab.sh("rm -rf dir");
    turn(&mut sidecar, "t3");
    assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken");
    lab.write("made.txt", "by this turn\n");
    let own = sidecar.ask(shell("rm made.txt"));
    assert_eq!(status(&own), "taken", "a held action that names a changed path gets its own: {own}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn the_guard_by_action_off_and_on() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = Sidecar::start(&lab, &["--set", "guard=action"]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    assert_eq!(status(&sidecar.ask(shell("rm a"))), "taken");
    lab.write("a", "2");
    assert_eq!(status(&sidecar.ask(shell("git reset --hard"))), "taken");
    assert_eq!(lab.piton(&["off", "--for", "1h"]).code, 0);
    let off = sidecar.ask(shell("rm a"));
    assert_eq!((status(&off), &off["proceed"]), ("off", &json!(true)));
    assert_eq!(lab.piton(&["on"]).code, 0);
    lab.write("a", "3");
    assert_eq!(status(&sidecar.ask(shell("rm a"))), "taken");
}

#[test]
fn what_shells_do_is_previewed_and_brought_back() {
    let commands = [
        "rm tracked",
        "rm untracked",
        "mv untracked moved",
        "sed -i s/t/T/ tracked",
        "cat > untracked <<'EOF'\nnew content\nEOF",
        "python3 -c \"open('untracked','w').write('x')\"",
        "find . -name untracked -delete",
        "bash -c 'truncate -s 0 tracked'",
        "chmod 777 tracked",
    ];
    for command in commands {
        let lab = Lab::new();
        lab.write("tracked", "tt\n");
        lab.write("untracked", "u\n");
        lab.sh("chmod 640 untracked");
        let before = tree(&lab.work);
        let mut sidecar = Sidecar::start(&lab, &[]);
        let reply = sidecar.ask(shell(command));
        assert_eq!(status(&reply), "taken", "{command}: {reply}");
        lab.sh(command);
        let after = tree(&lab.work);
        assert_ne!(after, before, "{command} changed nothing");
        let id = reply["checkpoint"]["id"].clone();
        let preview = sidecar.ask(json!({"type": "rollback.preview", "sha": id}));
        let total = |list: &str| preview["plan"][list]["total"].as_u64().unwrap();
        assert!(total("create") + total("replace") + total("delete") > 0, "{command}: {preview}");
        let restored = sidecar.ask(json!({"type": "restore", "sha": id}));
        assert_eq!((&restored["ok"], &restored["done"]["failed"]["total"]), (&json!(true), &json!(0)), "{restored}");
        assert_eq!(tree(&lab.work), before, "{command}");
        sidecar.ask(json!({"type": "undo"}));
        assert_eq!(tree(&lab.work), after, "{command}");
        sidecar.ask(json!({"type": "redo"}));
        assert_eq!(tree(&lab.work), before, "{command}");
        assert_eq!(sidecar.finish(), 0);
    }
}

#[test]
fn structured_tools() {
    let (_lab, mut sidecar) = guarded();
    let tool = |tool: &str, input: Value, paths: &[&str]| json!({"type": "tool.before", "tool": tool, "input": input, "paths": paths});
    assert_eq!(status(&sidecar.ask(tool("read_file", json!({"path": "a.txt"}), &["a.txt"]))), "none");
    assert_eq!(status(&sidecar.ask(tool("write_file", json!({"path": "a.txt"}), &["a.txt"]))), "taken");
    assert_eq!(status(&sidecar.ask(tool("Bash", json!({"command": "ls"}), &[]))), "none");
    let bash = sidecar.ask(tool("Bash", json!({"command": "rm a.txt"}), &[]));
    assert_eq!((status(&bash), &bash["needs"]), ("unchanged", &json!("checkpoint")));
}

#[test]
fn effects_that_files_cannot_undo_are_warned_of() {
    let (_lab, mut sidecar) = guarded();
    let table = [
        ("psql -c 'DROP TABLE t'", "database"),
        ("curl -d @a.txt https://example.org", "network-write"),
        ("docker rm -f x", "container"),
        ("kubectl delete pod x", "cloud"),
        ("terraform apply -auto-approve", "cloud"),
    ];
    for (command, class) in table {
        let reply = sidecar.ask(shell(command));
        assert_eq!(reply["warnings"][0]["class"], class, "{command}: {reply}");
        assert_eq!((&reply["proceed"], &reply["effects"][0]["reversible"]), (&json!(true), &json!(false)));
    }
    for harmless in
        ["psql -c 'SELECT 1'", "curl https://example.org", "docker ps", "echo 'rm -rf /'", "git checkout -b x"]
    {
        let reply = sidecar.ask(shell(harmless));
        assert_eq!((status(&reply), &reply["warnings"]), ("none", &json!([])), "{harmless}: {reply}");
    }
}

#[test]
fn a_late_checkpoint_does_not_stop_the_agent() {
    let lab = Lab::new();
    for i in 0..4000 {
        lab.write(&format!("d{}/f{i}", i % 40), format!("{i}").repeat(300));
    }
    lab.write("victim", "precious");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "hello"}));
    sidecar.send(json!({"id": 2, "type": "turn.start", "turn": "t"}));
    sidecar.send(json!({"id": 3, "type": "shell.before", "command": "rm victim", "deadline_ms": 1}));
    let reply = sidecar.reply(3);
    assert_eq!((status(&reply), &reply["proceed"]), ("late", &json!(true)), "{reply}");
    let pending = reply["checkpoint"]["pending"].clone();
    let settled = sidecar.notice(|notice| notice["notice"] == "checkpoint.settled");
    assert_eq!((&settled["pending"], &settled["checkpoint"]["status"]), (&pending, &json!("taken")));
    let n = settled["checkpoint"]["n"].to_string();
    assert_eq!(lab.piton(&["show", &format!("{n}:victim")]).stdout, "precious");
    assert_eq!(status(&sidecar.ask(shell("rm victim"))), "unchanged", "late does not use the turn's slot up");
    let held = Sidecar::start(&lab, &["--set", "on_failure=hold"]).ask(json!({"type": "ping"}));
    assert_eq!(held["ok"], true);
}

#[test]
fn a_late_checkpoint_says_what_it_does_not_hold() {
    let lab = Lab::new();
    for i in 0..4000 {
        lab.write(&format!("d{}/f{i}", i % 40), format!("{i}").repeat(300));
    }
    lab.write("vendor/lib.c", "int x;\n");
    lab.write("vendor/package.json", "{}\n");
    lab.write("vendor/node_modules/m/index.js", "m\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.send(json!({"id": 1, "type": "hello"}));
    sidecar.send(json!({"id": 2, "type": "shell.before", "command": "rm -rf vendor", "deadline_ms": 1}));
    let reply = sidecar.reply(2);
    assert_eq!(status(&reply), "late", "{reply}");
    let settled = sidecar.notice(|notice| notice["notice"] == "checkpoint.settled");
    assert_eq!(settled["not_held"][0]["path"], "vendor/node_modules", "{settled}");
}

#[test]
fn a_policy_that_asks_or_denies_holds_the_action() {
    let lab = Lab::new();
    lab.write(".piton.yaml", "policy: {database: ask, file-delete: deny}\n");
    lab.write("a.txt", "one\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let denied = sidecar.ask(shell("rm a.txt"));
    assert_eq!((&denied["proceed"], status(&denied)), (&json!(false), "taken"), "{denied}");
    assert!(denied["reason"].as_str().is_some_and(|reason| reason.starts_with("the policy denies")), "{denied}");
    let asked = sidecar.ask(shell("psql -c 'DELETE FROM t'"));
    assert_eq!(asked["proceed"], false);
    assert!(asked["reason"].as_str().is_some_and(|reason| reason.starts_with("the policy asks")), "{asked}");
    assert_eq!(sidecar.ask(shell("ls"))["proceed"], true);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn classify_answers_many_commands_in_order() {
    let lab = Lab::new();
    lab.write("commands", "rm a\n\"cat <<E\\nrm x\\nE\"\n\ngit push\n");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let commands = std::fs::File::open(lab.work.join("commands")).unwrap();
    let output = command.args(["classify", "--stdin"]).stdin(commands).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let needs: Vec<&Value> = answers.iter().map(|answer| &answer["needs"]).collect();
    assert_eq!(needs, ["checkpoint", "nothing", "nothing", "warn"], "{answers:?}");
    assert_eq!(answers[1]["command"], "cat <<E\nrm x\nE");
}

#[test]
fn bad_lines_get_codes_and_the_stream_goes_on() {
    let (_lab, mut sidecar) = guarded();
    let long = format!("{{\"id\":9,\"type\":\"ping\",\"x\":\"{}\"}}\n", "y".repeat(9 << 20));
    let lines: [(&[u8], &str); 8] = [
        (b"{\n", "bad-json"),
        (b"[]\n", "bad-json"),
        (b"\xff\xfe\n", "bad-utf8"),
        (b"{\"type\":\"pong\"}\r\n", "unknown-type"),
        (b"{\"v\":7,\"type\":\"ping\"}\n", "unsupported-version"),
        (b"{\"type\":\"shell.before\"}\n", "bad-request"),
        (b"{\"type\":\"state.put\"}\n", "unknown-type"),
        (long.as_bytes(), "line-too-long"),
    ];
    for (line, code) in lines {
        sidecar.send_raw(line);
        let error = sidecar.notice(|value| value["type"] == "error");
        assert_eq!((error["error"]["code"].as_str(), &error["ok"]), (Some(code), &json!(false)), "{error}");
        assert_eq!(sidecar.ask(json!({"type": "ping"}))["ok"], true);
    }
    for (request, code) in [
        (json!({"type": "checkpoint.show", "sha": "ffffffff"}), "no-such-checkpoint"),
        (json!({"type": "restore", "sha": "99"}), "no-such-checkpoint"),
        (json!({"type": "checkpoint.list", "path": "../x"}), "bad-path"),
        (json!({"type": "checkpoint.create", "paths": ["/etc/passwd"]}), "bad-path"),
    ] {
        let reply = sidecar.ask(request);
        assert_eq!(reply["error"]["code"], code, "{reply}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn every_end_of_the_stream_records_an_exit_of_an_open_run() {
    for signal in [None, Some("TERM"), Some("INT"), Some("HUP")] {
        let (lab, mut sidecar) = guarded();
        sidecar.ask(json!({"type": "run.start", "run": "r-1"}));
        lab.write("later", "work that nobody saved\n");
        let code = match signal {
            None => sidecar.finish(),
            Some(signal) => {
                lab.sh(&format!("kill -{signal} {}", sidecar.child.id()));
                sidecar.wait()
            }
        };
        assert_eq!(code, 0, "{signal:?}");
        let listed = lab.piton(&["list", "--kind", "exit", "--json"]).json();
        assert_eq!(
            (&listed["total"], &listed["checkpoints"][0]["run"]),
            (&json!(1), &json!("r-1")),
            "{signal:?}: {listed}"
        );
        let n = listed["checkpoints"][0]["n"].to_string();
        assert_eq!(lab.piton(&["show", &format!("{n}:later")]).stdout, "work that nobody saved\n");
        if let Some(branches) = lab.store_git(&["for-each-ref", "--format=%(refname) %(subject)", "refs/heads"]) {
            assert!(branches.contains("/r-1 exit:session [run:r-1]"), "{branches}");
        }
    }
}

#[test]
fn an_ended_run_records_none() {
    let (lab, mut sidecar) = guarded();
    sidecar.ask(json!({"type": "run.start", "run": "r-1"}));
    sidecar.ask(json!({"type": "run.end", "status": "completed"}));
    assert_eq!(sidecar.ask(json!({"type": "shutdown"}))["ok"], true);
    assert_eq!(sidecar.wait(), 0);
    assert_eq!(lab.piton(&["list", "--kind", "exit"]).code, 3);
}

#[test]
fn a_closed_stdout_does_not_stop_the_guard() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let mut child = command.arg("sidecar").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    for i in 0..50 {
        writeln!(input, "{}", json!({"id": i, "type": "ping"})).unwrap();
    }
    writeln!(input, "{}", json!({"id": 99, "type": "shell.before", "command": "rm a"})).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(lab.piton(&["list"]).stdout.contains("before rm a"));
}

#[test]
fn every_request_has_its_answer() {
    let (lab, mut sidecar) = guarded();
    let made = sidecar.ask(json!({"type": "checkpoint.create", "label": "mine", "pin": true}));
    let id = made["checkpoint"]["id"].clone();
    assert_eq!((status(&made), &made["checkpoint"]["kind"]), ("taken", &json!("manual")));
    lab.write("a.txt", "two\n");
    lab.write("new", "n\n");
    let list = sidecar.ask(json!({"type": "checkpoint.list"}));
    let row = &list["checkpoints"][0];
    assert_eq!((&row["reason"], &row["pinned"], &list["total"]), (&json!("mine"), &json!(true), &json!(1)));
    assert_eq!(row["stat"], json!({"files": 2, "plus": 2, "minus": 1}));
    assert_eq!(sidecar.ask(json!({"type": "checkpoint.show", "sha": id}))["paths"]["total"], 2);
    let diff = sidecar.ask(json!({"type": "checkpoint.diff", "from": id, "paths": ["a.txt"]}));
    assert_eq!((&diff["stat"]["files"], diff["patch"].as_str().unwrap().contains("+two")), (&json!(1), true));
    let preview = sidecar.ask(json!({"type": "rollback.preview", "sha": id, "paths": ["a.txt"]}));
    assert_eq!((&preview["plan"]["replace"]["total"], &preview["plan"]["delete"]["total"]), (&json!(1), &json!(0)));
    assert_eq!(lab.read("a.txt"), "two\n");
    let stale = sidecar.ask(json!({"type": "checkpoint.create", "label": "newer"}));
    assert_eq!(status(&stale), "taken");
    let refused = sidecar.ask(json!({"type": "restore", "sha": id, "expect": id}));
    assert_eq!(refused["error"]["code"], "stale-selection");
    let rolled = sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id}));
    assert_eq!((&rolled["detached"], rolled["nextBranch"].is_string(), &rolled["to"]), (&json!(true), true, &id));
    assert!(rolled["preRestore"].is_string() && rolled["operation"] == "o-1", "{rolled}");
    let notice = sidecar.notice(|notice| notice["notice"] == "rolled-back");
    assert!(notice["text"].as_str().unwrap().contains("rolled back"), "{notice}");
    assert_eq!((lab.read("a.txt").as_str(), lab.work.join("new").exists()), ("one\n", false));
    assert_eq!(sidecar.ask(json!({"type": "undo"}))["operation"], "o-2");
    assert_eq!(lab.read("a.txt"), "two\n");
    assert_eq!(sidecar.ask(json!({"type": "redo"}))["operation"], "o-3");
    assert_eq!(sidecar.ask(json!({"type": "redo"}))["operation"], Value::Null);
    let classified = sidecar.ask(json!({"type": "classify", "command": "rm -rf dir"}));
    assert_eq!(
        (&classified["needs"], &classified["effects"][0]["class"]),
        (&json!("checkpoint"), &json!("file-delete"))
    );
    assert_eq!(sidecar.ask(json!({"type": "status"}))["workspace"]["path"], json!(lab.work));
    assert_eq!(sidecar.ask(json!({"type": "config.reload"}))["ok"], true);
    assert_eq!(sidecar.ask(json!({"type": "shell.after", "action": "none", "exit": 0}))["ok"], true);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_rolled_back_run_goes_on_upon_a_branch_of_its_own() {
    let (lab, mut sidecar) = guarded();
    sidecar.ask(json!({"type": "run.start", "run": "r-1"}));
    let first = sidecar.ask(json!({"type": "checkpoint.create", "label": "start"}))["checkpoint"]["id"].clone();
    lab.write("a.txt", "wrong\n");
    assert_eq!(sidecar.finish(), 0);
    let mut again = Sidecar::start(&lab, &[]);
    again.ask(json!({"type": "run.start", "run": "r-1"}));
    let rolled = again.ask(json!({"type": "rollback.toCheckpoint", "sha": first}));
    let next = rolled["nextBranch"].as_str().unwrap().to_owned();
    assert!(next.ends_with("/r-1.2"), "{rolled}");
    assert_eq!(again.finish(), 0);
    if let Some(refs) = lab.store_git(&["for-each-ref", "--format=%(refname)", "refs/heads"]) {
        assert_eq!(refs.lines().count(), 2, "the old branch stays: {refs}");
        let parent = lab.store_git(&["rev-parse", &format!("refs/heads/{next}^")]).unwrap();
        assert_eq!(json!(parent.trim()), first);
    }
}

#[test]
fn the_workspace_is_found_from_below_and_through_links() {
    let (lab, mut sidecar) = guarded();
    lab.sh("mkdir -p .git sub/deep; ln -s work ../alias");
    let id = sidecar.ask(json!({"type": "hello"}))["workspace"]["id"].clone();
    for dir in [lab.work.join("sub/deep"), lab.root().join("alias"), lab.root().join("alias/sub")] {
        let hello = Sidecar::start_in(&lab, &dir, &[]).ask(json!({"type": "hello"}));
        assert_eq!((&hello["workspace"]["id"], &hello["workspace"]["path"]), (&id, &json!(lab.work)), "{dir:?}");
    }
}

#[test]
fn broad_directories_are_guarded_by_targets_and_the_store_not_at_all() {
    let lab = Lab::new();
    std::fs::write(lab.home.join("notes.txt"), "mine").unwrap();
    std::fs::write(lab.home.join("other.txt"), "not named").unwrap();
    let mut sidecar = Sidecar::start(&lab, &["--workspace", lab.home.to_str().unwrap()]);
    assert_eq!(sidecar.ask(json!({"type": "hello"}))["workspace"]["scope"], "targets-only");
    assert_eq!(status(&sidecar.ask(shell("git reset --hard"))), "none");
    let reply = sidecar.ask(shell("rm notes.txt"));
    assert_eq!((status(&reply), &reply["checkpoint"]["files"]), ("taken", &json!(1)), "{reply}");
    let inside = lab.home.join("piton").to_str().unwrap().to_owned();
    let refused = Sidecar::start(&lab, &["--workspace", &inside]).ask(json!({"type": "hello"}));
    assert_eq!(refused["error"]["code"], "workspace-refused", "{refused}");
}

#[test]
fn two_sessions_on_two_workspaces() {
    let (lab, mut one) = guarded();
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("b"), "b").unwrap();
    let mut two = Sidecar::start_in(&lab, &other, &[]);
    let (first, second) = (one.ask(shell("rm a.txt")), two.ask(shell("rm b")));
    assert_eq!((status(&first), status(&second)), ("taken", "taken"));
    let foreign = one.ask(json!({"type": "restore", "sha": second["checkpoint"]["id"]}));
    assert_eq!(foreign["error"]["code"], "other-workspace", "{foreign}");
    assert!(WAIT.as_secs() > 3);
}

#[test]
fn secrets_in_commands_are_not_recorded() {
    let (lab, mut sidecar) = guarded();
    sidecar.ask(shell("PGPASSWORD=hunter2 rm a.txt"));
    assert_eq!(sidecar.finish(), 0);
    let shown = lab.piton(&["list"]).stdout + &lab.piton(&["show", "--json"]).stdout;
    assert!(shown.contains("PGPASSWORD=***") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn what_a_pattern_is_about_to_destroy_is_captured_though_rules_leave_it_out() {
    let lab = Lab::new();
    lab.write(".gitignore", "*.log\nout/\n");
    for path in ["a.log", "b.log", "deep/c.log", "out/x.o", "out/y.txt", "kept"] {
        lab.write(path, path);
    }
    let mut sidecar = Sidecar::start(&lab, &["--set", "guard=action"]);
    for (command, lost) in
        [("rm *.log", &["a.log", "b.log"][..]), ("rm -f out/*.o deep/?.log", &["out/x.o", "deep/c.log"])]
    {
        let reply = sidecar.ask(json!({"type": "shell.before", "command": command}));
        let n = reply["checkpoint"]["n"].as_u64().unwrap_or_else(|| panic!("{reply}"));
        lab.sh(command);
        assert!(lost.iter().all(|path| !lab.work.join(path).exists()));
        lab.restore(n, lost);
        assert!(lost.iter().all(|path| lab.read(path) == *path), "{command}");
    }
}
