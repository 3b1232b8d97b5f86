//! Bad input: on the protocol, on the command line, in configuration. Each mistake has its code, nothing is lost, and the
//! stream goes on.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Lab, Sidecar, code, short, tree};

fn shell(command: &str) -> Value {
    json!({"type": "shell.before", "command": command})
}

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

fn guarded() -> (Lab, Sidecar) {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.write("dir/f", "f\n");
    let sidecar = Sidecar::start(&lab, &[]);
    (lab, sidecar)
}

/// The most memory the process ever used, in bytes.
fn peak(sidecar: &Sidecar) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", sidecar.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

// ---- lines

#[test]
fn lines_that_are_no_requests() {
    let (_lab, mut sidecar) = guarded();
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let table: [(Vec<u8>, &str); 11] = [
        (b"{".to_vec(), "bad-json"),
        (b"{\"type\":\"ping\"} x".to_vec(), "bad-json"),
        (b"{\"type\":\"ping\",}".to_vec(), "bad-json"),
        (b"{'type':'ping'}".to_vec(), "bad-json"),
        (b"null".to_vec(), "bad-json"),
        (b"\"ping\"".to_vec(), "bad-json"),
        (b"\0\0\0".to_vec(), "bad-json"),
        (deep("[", "]").into_bytes(), "bad-json"),
        (deep("{\"a\":", "}").replace('}', "1}").into_bytes(), "bad-json"),
        (b"{\"type\":\"ping\",\"x\":\"\xff\"}".to_vec(), "bad-utf8"),
        (b"{\"type\":\"ping\",\"x\":\"\xed\xa0\x80\"}".to_vec(), "bad-utf8"),
    ];
    for (number, (line, expected)) in table.iter().enumerate() {
        sidecar.send_raw(line);
        sidecar.send_raw(b"\n");
        let error = sidecar.notice(|value| value["type"] == "error");
        assert_eq!(code(&error), *expected, "{:?}: {error}", String::from_utf8_lossy(&line[..line.len().min(60)]));
        assert_eq!(error["error"]["line"], json!(2 * number + 1));
        assert!(error["error"]["message"].as_str().unwrap().len() < 500, "{error}");
        assert_eq!(sidecar.ask(json!({"type": "ping"}))["ok"], true);
    }
    // CRLF, blank lines and odd spaces are no mistakes.
    sidecar.send_raw(b"\r\n\n  \t\n \xc2\xa0\n");
    assert_eq!(code(&sidecar.notice(|value| value["type"] == "error")), "bad-json", "a no-break space is no blank");
    sidecar.send_raw(b"  {\"id\":\"crlf\",\"type\":\"ping\"}  \r\n");
    assert_eq!(sidecar.reply("crlf")["ok"], true);
    assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken");
    assert!(sidecar.notices.iter().all(|notice| notice["type"] != "error"), "{:?}", sidecar.notices);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn fields_of_the_wrong_type_are_named() {
    let (_lab, mut sidecar) = guarded();
    let wrong = [json!(true), json!(-1.5), json!([[]]), json!({"a": {}}), json!("\u{0}")];
    let strings = "hello.client hello.client_version hello.session hello.workspace run.start.run run.start.parent \
        run.start.goal run.end.status turn.start.turn turn.start.run turn.start.prompt turn.end.turn tool.before.tool \
        tool.before.action tool.before.cwd tool.after.action shell.before.command shell.before.shell shell.before.cwd \
        shell.before.action checkpoint.create.label checkpoint.list.run checkpoint.list.kind checkpoint.list.path \
        run.start.client run.fork.sha run.fork.run run.fork.parent run.fork.goal codon.start.codonId codon.start.name \
        codon.start.run codon.complete.codonId codon.fail.reason codon.skip.name codon.rigSetup.run \
        rollback.toCodon.codonId rollback.toCodon.checkpointType rollback.toLastSuccess.run rollback.preview.codonId \
        checkpoint.show.sha checkpoint.diff.from checkpoint.diff.to rollback.preview.sha restore.sha restore.expect \
        rollback.toCheckpoint.sha undo.run undo.turn redo.run classify.command classify.cwd";
    let others = "hello.pid turn.start.for_action tool.before.paths tool.before.writes tool.before.deadline_ms shell.before.deadline_ms \
        tool.after.ok shell.after.exit shell.after.signal checkpoint.create.paths checkpoint.create.pin \
        checkpoint.list.limit codon.start.trackedFiles rollback.toCodon.paths rollback.toLastSuccess.keep_new rollback.preview.lastSuccess \
        rollback.toCodon.autoRestart checkpoint.list.before checkpoint.diff.paths restore.paths restore.keep_new \
        undo.preview undo.paths";
    for (names, is_string) in [(strings, true), (others, false)] {
        for name in names.split_whitespace() {
            let (kind, field) = name.rsplit_once('.').unwrap();
            for value in &wrong {
                let fits = match value {
                    Value::String(_) => is_string || name == "checkpoint.list.before",
                    Value::Bool(_) => matches!(
                        field,
                        "writes" | "ok" | "pin" | "for_action" | "keep_new" | "preview" | "lastSuccess" | "autoRestart"
                    ),
                    _ => false,
                };
                if fits {
                    continue;
                }
                let mut request = json!({"type": kind, "turn": "t", "tool": "x", "command": "ls", "sha": "1",
                    "from": "1", "zz": 1});
                request[field] = value.clone();
                let reply = sidecar.ask(request);
                assert_eq!((code(&reply), &reply["error"]["field"]), ("bad-request", &json!(field)), "{name} {value}");
            }
        }
    }
    for (request, field) in [
        (json!({"type": "turn.start"}), "turn"),
        (json!({"type": "tool.before"}), "tool"),
        (json!({"type": "shell.before", "cwd": "/"}), "command"),
        (json!({"type": "checkpoint.show"}), "sha"),
        (json!({"type": "checkpoint.diff", "to": "1"}), "from"),
        (json!({"type": "restore"}), "sha"),
        (json!({"type": "classify"}), "command"),
    ] {
        let reply = sidecar.ask(request);
        assert_eq!((code(&reply), &reply["error"]["field"]), ("bad-request", &json!(field)), "{reply}");
    }
    for (request, expected) in [
        (json!({"type": 5}), "unknown-type"),
        (json!({}), "unknown-type"),
        (json!({"type": "x".repeat(100_000)}), "unknown-type"),
        (json!({"type": "PING"}), "unknown-type"),
        (json!({"type": "notice"}), "unknown-type"),
        (json!({"type": "ping", "v": 0}), "unsupported-version"),
        (json!({"type": "ping", "v": "1"}), "unsupported-version"),
        (json!({"type": "ping", "v": 1.5}), "unsupported-version"),
        (json!({"type": "ping", "v": u64::MAX}), "unsupported-version"),
    ] {
        let reply = sidecar.ask(request);
        assert_eq!(code(&reply), expected, "{reply}");
        assert!(reply.to_string().len() < 2000);
    }
    for request in [
        json!({"type": "checkpoint.list", "limit": u64::MAX, "before": u64::MAX}),
        json!({"type": "checkpoint.list", "limit": 0, "before": 0}),
        json!({"type": "shell.before", "command": "", "deadline_ms": u64::MAX}),
        json!({"type": "shell.after", "exit": i64::MIN, "signal": i64::MAX}),
        json!({"type": "hello", "pid": u64::MAX, "session": "\u{0}\n../x", "client": "\u{1b}"}),
        json!({"type": "turn.end", "turn": "never begun"}),
        json!({"type": "run.end"}),
    ] {
        assert_eq!(sidecar.ask(request.clone())["ok"], true, "{request}");
    }
    for id in [json!(true), json!([]), json!({}), json!("x".repeat(129))] {
        sidecar.send(json!({"id": id, "type": "ping"}));
        let error = sidecar.notice(|value| value["type"] == "error");
        assert_eq!((code(&error), &error["error"]["field"]), ("bad-request", &json!("id")), "{error}");
    }
    for id in [json!(0), json!(-1), json!(1.5), json!(u64::MAX), json!(""), json!("ä\u{0}\n")] {
        sidecar.send(json!({"id": id, "type": "ping"}));
        assert_eq!(sidecar.reply(id)["ok"], true);
    }
    assert_eq!(sidecar.finish(), 0);
}

/// Finding the field at fault must not cost more than reading the line did.
#[test]
fn a_wrong_field_among_very_many() {
    let (_lab, mut sidecar) = guarded();
    let many: serde_json::Map<String, Value> = (0..200_000).map(|i| (format!("a{i}"), json!(1))).collect();
    let mut request = Value::Object(many);
    request["type"] = "shell.before".into();
    request["command"] = 5.into();
    let reply = sidecar.ask(request);
    assert_eq!((code(&reply), &reply["error"]["field"]), ("bad-request", &json!("command")));
}

#[test]
fn a_line_of_a_hundred_megabytes_costs_no_memory() {
    let (_lab, mut sidecar) = guarded();
    // The memory of the base capture does not count for a line.
    assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken");
    let before = peak(&sidecar);
    sidecar.send_raw(b"{\"id\":1,\"type\":\"ping\",\"x\":\"");
    let part = vec![b'y'; 1 << 20];
    (0..100).for_each(|_| sidecar.send_raw(&part));
    sidecar.send_raw(b"\"}\n");
    let error = sidecar.notice(|value| value["type"] == "error");
    assert_eq!((code(&error), &error["error"]["line"]), ("line-too-long", &json!(2)));
    assert_eq!(sidecar.ask(json!({"type": "ping"}))["ok"], true);
    let grown = peak(&sidecar) - before;
    assert!(grown < 20 << 20, "{grown} bytes more: at most the line limit (8 MiB), doubled while it is gathered");
    // Once the buffer for one line was there, further ones cost nothing.
    let before = peak(&sidecar);
    (0..100).for_each(|_| sidecar.send_raw(&part));
    sidecar.send_raw(b"\n");
    assert_eq!(code(&sidecar.notice(|value| value["type"] == "error")), "line-too-long");
    let grown = peak(&sidecar) - before;
    assert!(grown < 4 << 20, "{grown} bytes more");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn an_input_that_ends_in_mid_line() {
    for (rest, answered) in [("{\"id\":7,\"type\":\"ping\"}", true), ("{\"id\":7,\"type\":\"pi", false)] {
        let (_lab, mut sidecar) = guarded();
        assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken");
        sidecar.send_raw(rest.as_bytes());
        assert_eq!(sidecar.finish(), 0);
        if answered {
            assert_eq!(sidecar.reply(7)["ok"], true, "a last line may lack its newline");
        } else {
            assert_eq!(code(&sidecar.reply(7)), "bad-json", "its id was read");
        }
    }
}

// ---- clients that do not read

#[test]
fn a_hundred_thousand_requests_before_the_first_reply_is_read() {
    const REQUESTS: u64 = 100_000;
    let lab = Lab::new();
    lab.write("a", "1");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let mut child = command.arg("sidecar").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = child.stdout.take().unwrap();
    let mut text = Vec::new();
    for id in 0..REQUESTS {
        // One in a thousand is work for the worker.
        let kind = if id % 1000 == 0 { shell("rm a") } else { json!({"type": "ping"}) };
        let mut request = kind;
        request["id"] = id.into();
        writeln!(text, "{request}").unwrap();
    }
    // Must come to its end although nobody reads: the guard never waits for a reader.
    input.write_all(&text).unwrap();
    drop(input);
    let (mut seen, mut refused) = (vec![0u8; REQUESTS as usize], 0);
    for line in BufReader::new(output).lines() {
        let value: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(id) = value["id"].as_u64() {
            seen[id as usize] += 1;
            refused += u64::from(status(&value) == "failed" || value["ok"] == false);
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(seen.iter().all(|replies| *replies == 1), "every request has exactly one reply");
    assert_eq!(refused, 0);
    assert!(lab.piton(&["list"]).stdout.contains("before rm a"));
}

/// More than the worker's inbox takes: what does not fit is told, and what was promised is there.
#[test]
fn more_destructive_events_at_once_than_can_wait() {
    const EVENTS: u64 = 600;
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = Sidecar::start(&lab, &["--set", "guard=action"]);
    let event = |id| format!("{}\n", json!({"id": id, "type": "shell.before", "command": "rm a"}));
    sidecar.send_raw((0..EVENTS).map(event).collect::<String>().as_bytes());
    let mut promised = Vec::new();
    for id in 0..EVENTS {
        let reply = sidecar.reply(id);
        match status(&reply) {
            "failed" => assert!(reply["checkpoint"]["reason"].as_str().unwrap().contains("too many jobs"), "{reply}"),
            "taken" | "unchanged" | "late" => promised.push(reply["checkpoint"]["n"].clone()),
            _ => panic!("{reply}"),
        }
    }
    assert!(promised.len() >= 256, "{} of {EVENTS} were taken on", promised.len());
    assert!(promised.iter().any(Value::is_u64), "at least the named path is safe: {promised:?}");
    // Its backlog is done within the grace period, or cut off after it.
    assert!([0, 130].contains(&sidecar.finish()));
    assert!(lab.piton(&["list"]).stdout.contains("before rm a"));
    assert_eq!(lab.piton(&["show", "@{0}:a"]).stdout, "1");
}

#[test]
fn replies_that_nobody_reads_are_bounded() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let mut child = command.arg("sidecar").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // Each reply says the turn's whole name again: 200 MB in all.
    let name = "n".repeat(1 << 20);
    for id in 0..200 {
        writeln!(input, "{}", json!({"id": id, "type": "turn.end", "turn": name})).unwrap();
    }
    writeln!(input, "{}", json!({"id": "last", "type": "shell.before", "command": "rm a"})).unwrap();
    // The checkpoint is taken although nobody has read a reply.
    let until = std::time::Instant::now() + crate::support::WAIT;
    while !lab.piton(&["list"]).stdout.contains("before rm a") {
        assert!(std::time::Instant::now() < until, "the guard waits for a reader");
    }
    let facts = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = facts.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB");
    assert!(peak.parse::<u64>().unwrap() < 160 << 10, "{peak} kB: at most 64 MiB of replies wait");
    drop(input);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "only whole lines are left out");
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_agent_that_closed_its_ends_is_guarded_all_the_same() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.arg("sidecar").env("PITON_LOG", "trace");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", json!({"id": 1, "type": "hello"})).unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"ok\":true"), "{first}");
    drop(child.stderr.take());
    for i in 0..100 {
        writeln!(input, "{{\"id\":{i}").unwrap();
    }
    // Something to complain of, and nobody to complain to: looking for another workspace meets a broken record.
    std::fs::create_dir(lab.home.join("piton/workspaces/broken")).unwrap();
    writeln!(input, "{}", json!({"id": 3, "type": "shell.before", "command": "ls", "cwd": lab.root()})).unwrap();
    writeln!(input, "{}", json!({"id": 2, "type": "shell.before", "command": "rm a"})).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(lab.piton(&["list"]).stdout.contains("before rm a"));
}

// ---- names of checkpoints and paths

#[test]
fn selectors_that_name_nothing() {
    let (lab, mut sidecar) = guarded();
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("b"), "b").unwrap();
    let foreign = lab.piton_in(&other, &["checkpoint", "theirs", "--json"]).json()["checkpoint"]["id"].clone();
    let ids: Vec<String> = (0..40)
        .map(|i| {
            lab.write("a.txt", format!("{i}\n"));
            sidecar.ask(json!({"type": "checkpoint.create", "label": "same"}))["checkpoint"]["id"]
                .as_str()
                .unwrap()
                .into()
        })
        .collect();
    let shown = sidecar.ask(json!({"type": "checkpoint.show", "sha": ids[0]}))["checkpoint"].clone();
    let mut table = vec![
        (json!("99"), "no-such-checkpoint"),
        (json!("0"), "no-such-checkpoint"),
        (json!("ffffffffffffffffffffffffffffffffffffffff"), "no-such-checkpoint"),
        (json!("abc"), "no-such-checkpoint"),
        (json!("nobody's label"), "no-such-checkpoint"),
        (json!("HEAD"), "no-such-checkpoint"),
        (json!("refs/heads/x"), "no-such-checkpoint"),
        (json!("../../etc/passwd"), "no-such-checkpoint"),
        (json!("@{4000}"), "no-such-checkpoint"),
        (json!("run:codon"), "no-such-checkpoint"),
        (json!("x".repeat(100_000)), "no-such-checkpoint"),
        (json!(""), "bad-request"),
        (json!("  "), "bad-request"),
        (json!("#"), "bad-request"),
        (json!("id:12"), "bad-request"),
        (json!("@{-1}"), "bad-request"),
        (json!("99999999999999999999"), "no-such-checkpoint"),
        (json!("9".repeat(65)), "no-such-checkpoint"),
        (foreign, "other-workspace"),
        (shown["tree"].clone(), "not-a-checkpoint"),
    ];
    if let Some(blob) = lab.store_git(&["rev-parse", &format!("{}:a.txt", ids[0])]) {
        table.push((blob.trim().into(), "not-a-checkpoint"));
    }
    for (sha, expected) in table {
        for kind in ["checkpoint.show", "rollback.preview", "restore", "rollback.toCheckpoint"] {
            let reply = sidecar.ask(json!({"type": kind, "sha": sha}));
            assert_eq!(code(&reply), expected, "{kind} {sha}: {reply}");
            assert!(reply.to_string().len() < 8000, "{kind}: an answer as long as its question");
        }
    }
    // Of equal labels the newest is meant.
    let newest = sidecar.ask(json!({"type": "checkpoint.show", "sha": "same"}));
    assert_eq!(newest["checkpoint"]["id"], *ids.last().unwrap(), "{newest}");
    let prefix = |id: &str| ids.iter().filter(|other| other.starts_with(&id[..4])).count() > 1;
    if let Some(id) = ids.iter().find(|id| prefix(id)) {
        assert_eq!(code(&sidecar.ask(json!({"type": "checkpoint.show", "sha": short(id, 4)}))), "ambiguous-checkpoint");
    }
    assert_eq!(lab.read("a.txt"), "39\n");
}

#[test]
fn paths_that_are_none_of_the_workspace() {
    let (lab, mut sidecar) = guarded();
    lab.write("*", "a star\n");
    let first = sidecar.ask(json!({"type": "checkpoint.create", "label": "all"}))["checkpoint"]["id"].clone();
    for path in ["..", "../x", "dir/../../x", "/etc/passwd", "/dev/sda", "/dev/null", "a\u{0}b", "dir/../a.txt"] {
        for request in [
            json!({"type": "checkpoint.create", "paths": [path]}),
            json!({"type": "checkpoint.list", "path": path}),
            json!({"type": "checkpoint.diff", "from": "1", "paths": ["a.txt", path]}),
            json!({"type": "rollback.preview", "sha": "1", "paths": [path]}),
            json!({"type": "restore", "sha": "1", "paths": [path]}),
        ] {
            let reply = sidecar.ask(request.clone());
            assert_eq!(code(&reply), "bad-path", "{request}: {reply}");
        }
        // Of an action it is no mistake: agents touch what they like.
        let reply = sidecar.ask(json!({"type": "tool.before", "tool": "write_file", "paths": [path], "writes": true}));
        assert_eq!(reply["ok"], true, "{path:?}: {reply}");
    }
    // Patterns are names here, nothing is expanded.
    lab.write("*", "another star\n");
    lab.write("a.txt", "two\n");
    let restored = sidecar.ask(json!({"type": "restore", "sha": first, "paths": ["*"]}));
    assert_eq!(restored["done"]["replaced"]["items"], json!([{"path": "*"}]), "{restored}");
    assert_eq!((lab.read("*").as_str(), lab.read("a.txt").as_str()), ("a star\n", "two\n"));
    let none = sidecar.ask(json!({"type": "restore", "sha": first, "paths": ["d*"]}));
    assert_eq!((&none["ok"], &none["operation"]), (&json!(true), &Value::Null), "{none}");
    // Very many, and very long ones.
    let many: Vec<String> = (0..50_000).map(|i| format!("no/such/{i}")).collect();
    let reply = sidecar.ask(json!({"type": "tool.before", "tool": "write_file", "paths": many, "writes": true}));
    assert_eq!(reply["ok"], true, "{}", &reply.to_string()[..200]);
    let long = vec!["x".repeat(300); 100].join("/");
    let reply = sidecar.ask(json!({"type": "checkpoint.create", "label": "l", "paths": [long, "a.txt"]}));
    assert_eq!(status(&reply), "taken", "{reply}");
    assert_eq!(sidecar.ask(json!({"type": "restore", "sha": first, "paths": many}))["ok"], true);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn special_files_are_listed_and_never_opened() {
    let (lab, mut sidecar) = guarded();
    lab.sh("mkfifo pipe; ln -s /dev/zero endless; ln -s loop loop");
    let reply = sidecar.ask(shell("rm -rf pipe endless loop"));
    assert_eq!(status(&reply), "taken", "{reply}");
    assert_eq!(reply["checkpoint"]["skipped"]["items"][0]["path"], "pipe", "{reply}");
    lab.sh("rm -rf pipe endless loop");
    let restored = sidecar.ask(json!({"type": "restore", "sha": reply["checkpoint"]["id"]}));
    assert_eq!(restored["done"]["failed"]["total"], 0, "{restored}");
    assert_eq!(std::fs::read_link(lab.work.join("endless")).unwrap().to_str(), Some("/dev/zero"));
}

// ---- a workspace that is not there

#[test]
fn a_workspace_that_vanishes_and_comes_back() {
    let (lab, mut sidecar) = guarded();
    let first = sidecar.ask(shell("rm a.txt"));
    assert_eq!(status(&first), "taken");
    let (aside, elsewhere) = (lab.root().join("aside"), lab.root().join("elsewhere"));
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("a.txt"), "somebody else's").unwrap();
    std::fs::rename(&lab.work, &aside).unwrap();
    let before = tree(&elsewhere);
    for (n, what) in ["gone", "a file", "a link"].iter().enumerate() {
        match n {
            0 => {}
            1 => std::fs::write(&lab.work, "no directory").unwrap(),
            _ => {
                std::fs::remove_file(&lab.work).unwrap();
                symlink(&elsewhere, &lab.work).unwrap();
            }
        }
        assert_eq!(sidecar.ask(json!({"type": "turn.start", "turn": what}))["ok"], true);
        for cwd in [Value::Null, json!(lab.work)] {
            let mut event = shell("rm -rf a.txt dir");
            event["cwd"] = cwd.clone();
            let reply = sidecar.ask(event);
            assert_eq!((status(&reply), &reply["proceed"]), ("failed", &json!(true)), "{what}, {cwd}: {reply}");
            assert!(reply["checkpoint"]["reason"].as_str().unwrap().contains("no longer a directory"), "{reply}");
        }
        for request in [
            json!({"type": "checkpoint.create", "label": "x"}),
            json!({"type": "checkpoint.diff", "from": "1"}),
            json!({"type": "rollback.preview", "sha": "1"}),
            json!({"type": "restore", "sha": "1"}),
            json!({"type": "rollback.toCheckpoint", "sha": first["checkpoint"]["id"]}),
        ] {
            assert_eq!(code(&sidecar.ask(request)), "workspace-gone", "{what}");
        }
        for harmless in ["ping", "status", "checkpoint.list", "config.reload"] {
            assert_eq!(sidecar.ask(json!({"type": harmless}))["ok"], true, "{what}: {harmless}");
        }
        assert_eq!(tree(&elsewhere), before, "{what}");
    }
    std::fs::remove_file(&lab.work).unwrap();
    std::fs::rename(&aside, &lab.work).unwrap();
    lab.write("a.txt", "two\n");
    sidecar.ask(json!({"type": "turn.start", "turn": "back"}));
    let again = sidecar.ask(shell("rm a.txt"));
    assert_eq!(
        (status(&again), again["checkpoint"]["n"].as_u64() > first["checkpoint"]["n"].as_u64()),
        ("taken", true)
    );
    let restored = sidecar.ask(json!({"type": "restore", "sha": first["checkpoint"]["id"]}));
    assert_eq!((&restored["ok"], lab.read("a.txt").as_str()), (&json!(true), "one\n"), "{restored}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn faults_do_not_pile_up() {
    let (lab, mut sidecar) = guarded();
    sidecar.ask(json!({"type": "hello"}));
    std::fs::rename(&lab.work, lab.root().join("aside")).unwrap();
    for _ in 0..300 {
        assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "failed");
    }
    let told = sidecar.ask(json!({"type": "status"}))["faults"].as_array().unwrap().len();
    assert!((1..=3).contains(&told), "{told} faults for one cause");
}

#[test]
fn a_turn_with_a_long_or_odd_name_ends() {
    for name in ["t".repeat(100), "a\u{1b}[31m\nb".to_owned(), "\u{202e}".to_owned()] {
        let (lab, mut sidecar) = guarded();
        sidecar.ask(json!({"type": "turn.start", "turn": name}));
        assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken");
        sidecar.ask(json!({"type": "turn.end", "turn": name}));
        lab.write("a.txt", "two\n");
        let next = sidecar.ask(shell("git reset --hard"));
        assert_eq!((status(&next), &next["turn"]), ("taken", &Value::Null), "{name:?}: {next}");
    }
}

// ---- configuration

struct Mistake {
    text: &'static [u8],
    /// `line:column`, where the mistake has a place.
    place: &'static str,
    says: &'static str,
}

const fn mistake(text: &'static [u8], place: &'static str, says: &'static str) -> Mistake {
    Mistake { text, place, says }
}

const MISTAKES: [Mistake; 27] = [
    mistake(b"gaurd: turn\n", "1:8", "did you mean `guard`"),
    mistake(b"guard: 5\n", "1:8", "wants `turn` or `action` or `off`"),
    mistake(b"\n\nguard: maybe\n", "3:8", "wants `turn` or `action` or `off`"),
    mistake(b"guard: true\n", "1:8", "wants `turn`"),
    mistake(b"deadline_ms: -1\n", "1:14", "from 1 to 600000"),
    mistake(b"deadline_ms: 0\n", "1:14", "from 1 to 600000"),
    mistake(b"deadline_ms: 3s\n", "1:14", "from 1 to 600000"),
    mistake(b"deadline_ms: 1.5\n", "1:14", "from 1 to 600000"),
    mistake(b"deadline_ms: 1e400\n", "1:14", "1e400"),
    mistake(b"deadline_ms: .nan\n", "1:14", ".nan"),
    mistake(b"deadline_ms: 99999999999999999999999\n", "1:14", "from 1 to 600000"),
    mistake(b"limits: {file_mb: \"10MB\"}\n", "1:19", "wants a whole number"),
    mistake(b"limits:\n  file_mb: 0\n", "2:12", "wants a whole number"),
    mistake(b"limits: 5\n", "1:9", "`limits`"),
    mistake(b"guard: turn\nguard: off\n", "2:1", "duplicate"),
    mistake(b"limits:\n\tfile_mb: 5\n", "2:2", "tabs"),
    mistake(b"guard: \"a\n", "", "quoted"),
    mistake(b"- a\n", "1:1", "keys and values"),
    mistake(b"guard: turn\n---\nguard: off\n", "3:1", "multiple YAML documents"),
    mistake(b"exclude: 5\n", "1:10", "list of patterns"),
    mistake(b"exclude: [*.rs]\n", "1:11", "quote patterns"),
    mistake(b"retention: {enabled: no}\n", "1:22", "retention.enabled"),
    mistake(b"retention.days: 0\n", "1:17", "whole number of days"),
    mistake(b"policy: {database: {severity: zz}}\n", "1:31", "policy.database.severity"),
    mistake(b"tracked_files: [\"a[\"]\n", "1:16", "not a pattern"),
    mistake(b"rules: 5\n", "1:8", "list of rules"),
    mistake(b"guard: \xff\n", "", "not UTF-8"),
];

#[test]
fn mistakes_in_the_users_file_have_a_place() {
    let lab = Lab::new();
    let file = lab.user_file();
    for Mistake { text, place, says } in MISTAKES {
        std::fs::write(&file, text).unwrap();
        let shown = String::from_utf8_lossy(text);
        let output = lab.piton(&["config", "check"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{shown}: {output:?}");
        assert!(output.stderr.contains(says), "{shown}: {output:?}");
        assert!(output.stderr.contains(file.to_str().unwrap()), "{shown}: {output:?}");
        let named = format!("{}:{place}:", file.display());
        assert!(place.is_empty() || output.stderr.contains(&named), "{shown}: {place} is not in {output:?}");
        for inner in ["DuplicateKeyPolicy", "from_str", "<input>", "Options"] {
            assert!(!output.stderr.contains(inner), "{shown}: `{inner}` is nothing to a user: {output:?}");
        }
        assert_eq!(lab.piton(&["config", "check", "--json"]).error(), "bad-request", "{shown}");
    }
    for (text, sound) in [(&b""[..], true), (b"\n# only talk\n", true), (b"\xef\xbb\xbfguard: action\r\n", true)] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(lab.piton(&["config", "check"]).code == 0, sound, "{text:?}");
    }
}

#[test]
fn configuration_files_that_are_bombs_or_no_files() {
    let lab = Lab::new();
    let user = lab.user_file();
    let own = lab.work.join(".piton.yaml");
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (before, name) in ('a'..'i').zip('b'..) {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(","));
    }
    let texts = [
        bomb,
        format!("exclude: {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("x: {}1{}", "{a: ".repeat(100_000), "}".repeat(100_000)),
        format!("exclude:\n{}x", "- ".repeat(100_000)),
        "#".repeat(2 << 20),
        "guard: ".to_owned() + &"x".repeat(900_000),
    ];
    for text in &texts {
        let start = &text[..40];
        std::fs::write(&user, text).unwrap();
        let output = lab.piton(&["config", "check"]);
        assert_eq!(output.code, 2, "{start}: {}", output.stderr.len());
        assert!(output.stderr.len() < 3000, "{start}: {} bytes of talk", output.stderr.len());
        std::fs::remove_file(&user).unwrap();
        // The same in the workspace disarms nothing.
        std::fs::write(&own, text).unwrap();
        let output = lab.piton(&["config", "check"]);
        assert_eq!((output.code, output.stderr.contains("ignored")), (4, true), "{start}");
        assert!(output.stderr.len() < 3000, "{start}: {} bytes of talk", output.stderr.len());
        std::fs::remove_file(&own).unwrap();
    }
    for make in ["mkdir F", "mkfifo F", "ln -s /dev/zero F", "ln -s F F"] {
        for (file, expected) in [(&user, [1, 2]), (&own, [4, 4])] {
            lab.sh(&make.replace('F', file.to_str().unwrap()));
            let output = lab.piton(&["config", "check"]);
            assert!(expected.contains(&output.code), "{make} {file:?}: {output:?}");
            assert!(output.stderr.contains(file.to_str().unwrap()), "{make}: {output:?}");
            lab.sh(&format!("rm -rf {}", file.display()));
        }
    }
}

#[test]
fn a_workspace_file_disarms_nothing() {
    let narrowing: [&[u8]; 9] = [
        b"guard: off\n",
        b"deadline_ms: 1\n",
        b"secrets: never\nexclude: [\"*\"]\nopaque: ignore\n",
        b"limits: {file_mb: 1, files: 1, line_bytes: 1024}\n",
        b"retention: {auto_per_run: 1, per_workspace: 1}\n",
        b"rules: [{id: rm, commands: [rm], class: read}]\npolicy: {file-delete: {checkpoint: false}}\n",
        b"tracked_files: [\"a[\"]\nread_only: [\"*\", \"a[\"]\n",
        b"guard: [\n",
        b"\xff\xfe",
    ];
    for text in narrowing {
        let lab = Lab::new();
        let shown = String::from_utf8_lossy(text);
        lab.write("a.txt", "one\n");
        lab.write(".piton.yaml", text);
        let check = lab.piton(&["config", "check"]);
        assert_eq!(check.code, 4, "{shown}: {check:?}");
        let mut sidecar = Sidecar::start(&lab, &[]);
        let hello = sidecar.ask(json!({"type": "hello"}));
        assert_eq!((&hello["guard"], &hello["limits"]["deadline_ms"]), (&json!("turn"), &json!(60_000)), "{shown}");
        assert!(!hello["faults"].as_array().unwrap().is_empty(), "{shown}: it is said: {hello}");
        sidecar.ask(json!({"type": "run.start", "run": "r"}));
        assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken", "{shown}");
        assert_eq!(sidecar.finish(), 0);
        assert_eq!(lab.piton(&["list", "--kind", "exit"]).code, 0, "{shown}: typed checkpoints are taken too");
    }
}

#[test]
fn bad_settings_of_a_running_sidecar() {
    let (lab, mut sidecar) = guarded();
    let file = lab.user_file();
    assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken");
    std::fs::write(&file, "guard: of\n").unwrap();
    let reply = sidecar.ask(json!({"type": "config.reload"}));
    assert_eq!((code(&reply), &reply["error"]["field"]), ("bad-request", &json!("guard")), "{reply}");
    lab.write("a.txt", "two\n");
    sidecar.ask(json!({"type": "turn.start", "turn": "2"}));
    assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "taken", "the old settings stay in force");
    lab.set_only("guard: off\n");
    assert_eq!(sidecar.ask(json!({"type": "config.reload"}))["ok"], true);
    assert_eq!(status(&sidecar.ask(shell("rm a.txt"))), "off");
    // One that starts with the mistake says so, and guards by the default.
    std::fs::write(&file, "guard: of\n").unwrap();
    let mut other = Sidecar::start(&lab, &[]);
    let hello = other.ask(json!({"type": "hello"}));
    assert_eq!(hello["guard"], "turn", "{hello}");
    assert!(hello["faults"].to_string().contains("config.yaml:1:8"), "{hello}");
    let guarded = other.ask(shell("rm -rf dir"));
    assert!(["taken", "unchanged"].contains(&status(&guarded)), "{guarded}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(other.ask(json!({"type": "status"}))["faults"], json!([]), "mended while it runs");
}

// ---- the command line

#[test]
fn mistakes_on_the_command_line() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.take("first");
    let big = "99999999999999999999999";
    let table: [(&[&str], i32); 43] = [
        (&["frob"], 2),
        (&["--frob"], 2),
        (&["sidecar", "x"], 2),
        (&["restore"], 3),
        (&["find"], 2),
        (&["classify"], 2),
        (&["config"], 2),
        (&["config", "zz"], 2),
        (&["show", "zzz"], 3),
        (&["show", "99"], 3),
        (&["show", "0"], 3),
        (&["show", big], 3),
        (&["show", "#"], 2),
        (&["show", ""], 2),
        (&["show", ":"], 2),
        (&["show", "id:"], 2),
        (&["show", "abc"], 3),
        (&["show", "@{99999999999999999999999}"], 2),
        (&["show", "@{1}"], 3),
        (&["show", "-1"], 2),
        (&["show", "1:../x"], 2),
        (&["show", "1:/etc/passwd"], 2),
        (&["show", "1:nothing"], 3),
        (&["list", "-n", big], 2),
        (&["list", "-n", "-1"], 2),
        (&["list", "-n", "0"], 3),
        (&["list", "--kind", "zz"], 2),
        (&["list", "--run", "nobody"], 3),
        (&["list", "--", "../x"], 2),
        (&["find", "/etc/passwd"], 2),
        (&["find", "nothing"], 3),
        (&["off", "--for", big], 2),
        (&["off", "--for=-1h"], 2),
        (&["off", "--for", "soon"], 2),
        (&["--set", "x", "list"], 2),
        (&["--set", "x=1", "list"], 2),
        (&["--set", "guard=maybe", "list"], 2),
        (&["--set", "deadline_ms=[[[[[[[[[[", "list"], 2),
        (&["checkpoint", "x", "--", "../y"], 2),
        (&["restore", "1", "nothing", "--yes"], 3),
        (&["restore", "1", "--abort"], 2),
        (&["-w", "/nonexistent", "list"], 3),
        (&["-w", "/etc/passwd", "list"], 2),
    ];
    for (args, expected) in table {
        let output = lab.piton(args);
        assert_eq!(output.code, expected, "{args:?}: {output:?}");
        assert!(!output.stderr.contains("panicked"), "{args:?}: {output:?}");
        assert!(expected == 3 || output.stdout.is_empty(), "{args:?}: stdout is data: {output:?}");
    }
    for (args, expected) in [
        (&["-w", "/etc/passwd/x", "list", "--json"], "bad-path"),
        (&["-w", "/nonexistent", "list", "--json"], "workspace-gone"),
        (&["restore", "1", "../x", "--json"], "bad-path"),
        (&["show", "id:12", "x", "--json"], ""),
    ] {
        let output = lab.piton(args);
        assert!(expected.is_empty() || output.error() == expected, "{args:?}: {output:?}");
    }
    let deep = "[".repeat(50_000);
    assert_eq!(lab.piton(&["--set", &format!("exclude={deep}"), "list"]).code, 2);
    // After `--` a word is a path, whatever it looks like.
    lab.write("--json", "a file\n");
    lab.write("-n", "another\n");
    let taken = lab.piton(&["checkpoint", "odd", "--", "--json", "-n"]);
    assert_eq!((taken.code, taken.stdout.contains("Checkpoint 2")), (0, true), "{taken:?}");
    assert_eq!(lab.piton(&["show", "2:--json"]).stdout, "a file\n");
    assert_eq!(lab.piton(&["find", "--", "-n"]).code, 0);
    std::fs::remove_file(lab.work.join("-n")).unwrap();
    assert_eq!(lab.piton(&["restore", "2", "--yes", "--", "-n"]).code, 0);
    assert_eq!(lab.read("-n"), "another\n");
}

#[test]
fn arguments_and_paths_that_are_not_utf8() {
    let lab = Lab::new();
    let odd = OsStr::from_bytes(b"\xff\xfe");
    std::fs::write(lab.work.join(odd), "odd").unwrap();
    let run = |args: &[&OsStr]| lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work).args(args).output().unwrap();
    let word = OsStr::new;
    assert_eq!(run(&[word("checkpoint"), odd]).status.code(), Some(2), "a label is text");
    assert_eq!(run(&[word("show"), odd]).status.code(), Some(2));
    assert_eq!(run(&[odd]).status.code(), Some(2));
    assert_eq!(run(&[word("-w"), odd, word("list")]).status.code(), Some(2), "it is a file");
    assert_eq!(run(&[word("checkpoint"), word("x"), word("--"), odd]).status.code(), Some(0));
    assert_eq!(run(&[word("find"), odd]).status.code(), Some(0));
    std::fs::remove_file(lab.work.join(odd)).unwrap();
    assert_eq!(run(&[word("restore"), word("1"), odd, word("--yes")]).status.code(), Some(0));
    assert_eq!(std::fs::read(lab.work.join(odd)).unwrap(), b"odd");
    let shown = lab.piton(&["show", "1", "--json"]).json();
    assert_eq!(shown["paths"]["items"][0]["path_b64"], "//4=", "{shown}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let lab = Lab::new();
    lab.write("long", "line\n".repeat(200_000));
    for i in 0..300 {
        lab.write(&format!("f{i}"), "x");
    }
    lab.take("first");
    lab.write("long", "other\n".repeat(200_000));
    for args in [
        "list",
        "list --json",
        "show",
        "show --json",
        "show 1:long",
        "diff 1",
        "find long",
        "status",
        "--help",
        "",
        "config show",
        "restore 1 --preview",
        "classify 'rm -rf /'",
    ] {
        // `true` reads nothing and is gone at once; `head` reads one line.
        for reader in ["true", "head -n1 >/dev/null"] {
            let script = format!("set -o pipefail; {} {args} | {reader}", env!("CARGO_BIN_EXE_piton"));
            let mut command: Command = lab.command("/bin/bash", &lab.work);
            let output = command.args(["-c", &script]).output().unwrap();
            let talk = String::from_utf8_lossy(&output.stderr);
            assert!(!talk.contains("panicked") && !talk.contains("roken pipe"), "{args} | {reader}: {talk}");
            assert_eq!(output.status.code(), Some(0), "{args} | {reader}: {talk}");
        }
    }
    // Nobody reads stderr either.
    let script = format!(
        "{} show zzz 2>&1 >/dev/null | true; {} frob 2>&1 | true",
        env!("CARGO_BIN_EXE_piton"),
        env!("CARGO_BIN_EXE_piton")
    );
    assert!(lab.command("/bin/bash", &lab.work).args(["-c", &script]).status().unwrap().success());
}
