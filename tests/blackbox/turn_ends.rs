//! Turns whose end no event reports: a connection that breaks, a process that is killed, a client in a container.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use super::support::*;

/// A daemon that ends with the test.
struct Daemon<'l>(&'l Lab);

impl Daemon<'_> {
    fn start(lab: &Lab) -> Daemon<'_> {
        assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
        Daemon(lab)
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.piton(&["daemon", "stop"]);
    }
}

/// A client on the daemon's socket.
struct SocketClient {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    asked: u64,
}

impl SocketClient {
    fn connect(lab: &Lab) -> SocketClient {
        let stream = UnixStream::connect(lab.home.join("piton/daemon/socket")).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut greeting = String::new();
        lines.read_line(&mut greeting).unwrap();
        assert!(greeting.contains("\"ok\":true"), "{greeting}");
        SocketClient { stream, lines, asked: 0 }
    }

    fn ask(&mut self, mut request: Value) -> Value {
        self.asked += 1;
        request["id"] = self.asked.into();
        writeln!(self.stream, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the daemon has closed the connection");
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["id"] == self.asked {
                return value;
            }
        }
    }
}

fn hello(lab: &Lab, session: &str) -> Value {
    json!({"type": "hello", "session": session, "client": "tester", "workspace": lab.work})
}

/// Opens the session `s` of a client that is this process.
fn hello_of_client(lab: &Lab) -> Value {
    let mut greeting = hello(lab, "s");
    greeting["pid"] = json!(std::process::id());
    greeting
}

fn opaque(action: &str) -> Value {
    json!({"type": "shell.before", "command": "./generate", "action": action})
}

/// Waits until a sidecar's watcher runs.
fn warm(sidecar: &mut Sidecar) {
    sidecar.await_warm();
}

/// Writes a file with a tool that names it.
fn edit(lab: &Lab, sidecar: &mut Sidecar, path: &str, content: &str) {
    let input = json!({"file_path": lab.work.join(path), "content": content});
    sidecar.ask(json!({"type": "tool.before", "tool": "Write", "action": path, "input": input}));
    lab.write(path, content);
    sidecar.ask(json!({"type": "tool.after", "action": path}));
}

fn turns(lab: &Lab) -> Vec<Value> {
    lab.piton(&["turns", "--json"]).json()["turns"].as_array().unwrap().clone()
}

#[test]
fn a_turn_ends_with_the_connection_of_its_client_and_the_next_one_continues_it_in_a_new_turn() {
    let lab = Lab::new();
    ["a", "b"].iter().for_each(|file| lab.write(file, "0\n"));
    for start in [true, false] {
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(hello(&lab, "s"));
        if start {
            warm(&mut sidecar);
            sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
            edit(&lab, &mut sidecar, "a", "1\n");
        } else {
            sidecar.ask(json!({"type": "shell.before", "command": "rm b", "action": "rm"}));
            lab.sh("rm b");
            sidecar.ask(json!({"type": "shell.after", "action": "rm"}));
        }
        assert_eq!(sidecar.finish(), 0);
        let newest = &turns(&lab)[0];
        let facts = [&newest["turn"], &newest["open"], &newest["interrupted"]];
        assert_eq!(facts, [&json!("t1"), &json!(false), &json!(true)], "{newest}");
    }
    assert_eq!(turns(&lab).len(), 2);
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((undone.code, lab.read("a"), lab.read("b")), (0, "1\n".into(), "0\n".into()), "{undone:?}");
    // An end that the client reports is none of a connection.
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(hello(&lab, "s"));
    sidecar.ask(json!({"type": "turn.start", "turn": "t2"}));
    edit(&lab, &mut sidecar, "b", "2\n");
    sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(sidecar.finish(), 0);
    let newest = &turns(&lab)[0];
    assert_eq!((&newest["turn"], newest.get("interrupted")), (&json!("t2"), None), "{newest}");
}

#[test]
fn the_last_connection_that_acted_in_a_turn_is_the_one_with_which_it_ends() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let _daemon = Daemon::start(&lab);
    let [mut one, mut other] = [(); 2].map(|()| SocketClient::connect(&lab));
    for client in [&mut one, &mut other] {
        client.ask(hello(&lab, "s"));
    }
    one.ask(json!({"type": "turn.start", "turn": "t1"}));
    one.ask(opaque("1"));
    lab.write("a", "1\n");
    one.ask(json!({"type": "shell.after", "action": "1"}));
    other.ask(opaque("2"));
    lab.write("b", "1\n");
    drop(one);
    other.ask(json!({"type": "shell.after", "action": "2"}));
    let status = other.ask(json!({"type": "status"}));
    assert_eq!(status["turn"], "t1", "the client has connected again before its first connection ended: {status}");
    drop(other);
    let until = Instant::now() + WAIT;
    while turns(&lab)[0]["open"] == true {
        assert!(Instant::now() < until, "{:?}", turns(&lab));
        std::thread::yield_now();
    }
    assert_eq!((turns(&lab).len(), &turns(&lab)[0]["interrupted"]), (1, &json!(true)), "{:?}", turns(&lab));
}

#[test]
fn clients_that_vanish_without_a_word_leave_no_turn_that_may_go_on() {
    let lab = Lab::new();
    ["a", "b"].iter().for_each(|file| lab.write(file, "0\n"));
    let _daemon = Daemon::start(&lab);
    for number in 0..24 {
        let mut client = SocketClient::connect(&lab);
        client.ask(hello(&lab, &format!("s-{number}")));
        client.ask(json!({"type": "turn.start", "turn": "t"}));
        client.ask(opaque("1"));
        lab.write("a", format!("{number}\n"));
        client.ask(json!({"type": "shell.after", "action": "1"}));
    }
    let until = Instant::now() + WAIT;
    loop {
        let preview = lab.piton(&["undo", "--preview", "--include", "unknown"]);
        let said = format!("{}{}", preview.stdout, preview.stderr);
        if !said.contains("is open") {
            assert!(said.contains('a'), "{preview:?}");
            break;
        }
        assert!(Instant::now() < until, "{said}");
    }
}

#[test]
fn the_connection_of_a_hook_ends_no_turn() {
    for alone in [true, false] {
        let lab = Lab::new();
        lab.write("a", "0\n");
        let hook = |event: &str, more: Value| {
            let mut payload = json!({ "hook_event_name": event, "session_id": "s", "prompt_id": "p", "cwd": lab.work });
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
            command.args(["hook", "claude-code", event]).args(alone.then_some("--no-daemon"));
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
            assert!(child.wait_with_output().unwrap().status.success());
        };
        hook("UserPromptSubmit", json!({"prompt": "do it"}));
        let tool = json!({"tool_name": "Bash", "tool_input": {"command": "./generate"}, "tool_use_id": "u"});
        hook("PreToolUse", tool.clone());
        lab.write("new", "1\n");
        hook("PostToolUse", tool);
        let newest = turns(&lab).remove(0);
        assert_eq!((&newest["open"], newest.get("interrupted")), (&json!(true), None), "alone: {alone}, {newest}");
    }
}

#[test]
fn what_is_lost_after_a_sidecar_was_killed_is_the_turns() {
    for (command, session, successor) in [
        ("rm -rf src", Some("s"), "undo"),
        ("./generate", Some("s"), "undo"),
        ("./generate", None, "undo"),
        ("./generate", Some("s"), "sidecar"),
        ("rm -rf src", None, "sidecar"),
        ("./generate", Some("s"), "the same session"),
        ("./generate", Some("s"), "daemon"),
    ] {
        let lab = Lab::new();
        lab.sh("mkdir src; echo a > src/a; echo b > src/b; echo k > kept");
        let mut sidecar = Sidecar::start(&lab, &[]);
        if let Some(session) = session {
            sidecar.ask(hello(&lab, session));
        }
        sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
        let reply = sidecar.ask(json!({"type": "shell.before", "command": command, "action": "1"}));
        assert_eq!(reply["proceed"], true, "{reply}");
        // It is killed without a chance to note anything.
        drop(sidecar);
        lab.sh("rm -rf src");
        let daemon = (successor == "daemon").then(|| Daemon::start(&lab));
        match successor {
            "daemon" => drop(SocketClient::connect(&lab).ask(hello(&lab, "other"))),
            "sidecar" | "the same session" => {
                let mut next = Sidecar::start(&lab, &[]);
                next.ask(hello(&lab, if successor == "sidecar" { "other" } else { "s" }));
                next.ask(json!({"type": "turn.start", "turn": "t2"}));
                next.ask(json!({"type": "turn.end"}));
                assert_eq!(next.finish(), 0);
            }
            _ => {}
        }
        let case = format!("{command} {session:?} {successor}");
        let undone = lab.piton(&["undo", "--yes"]);
        assert!([0, 4].contains(&undone.code), "{case}: {undone:?}");
        assert_eq!(
            [lab.read("src/a"), lab.read("src/b"), lab.read("kept")],
            ["a\n", "b\n", "k\n"],
            "{case}: {undone:?}"
        );
        let newest = turns(&lab).remove(0);
        // Nothing is known of the client, so the action may go on. A client that is there again has ended it.
        let is_open = successor != "the same session";
        assert_eq!(
            (&newest["open"], newest.get("interrupted").is_some()),
            (&json!(is_open), !is_open),
            "{case}: {newest}"
        );
        drop(daemon);
    }
}

#[test]
fn another_client_does_not_end_the_turn_of_a_killed_sidecar() {
    for greeting in [hello_of_client, |lab: &Lab| hello(lab, "s")] {
        let lab = Lab::new();
        lab.sh("mkdir src; echo a > src/a; echo k > kept");
        let mut killed = Sidecar::start(&lab, &[]);
        let run = killed.ask(greeting(&lab))["run"].as_str().unwrap().to_owned();
        killed.ask(json!({"type": "turn.start", "turn": "t1"}));
        killed.ask(opaque("1"));
        drop(killed);
        let mut other = Sidecar::start(&lab, &[]);
        other.ask(hello(&lab, "other"));
        edit(&lab, &mut other, "theirs", "1\n");
        assert_eq!(other.finish(), 0);
        // The client lives, and its action begins only now.
        lab.sh("rm -rf src; echo 1 > kept");
        let undone = lab.piton(&["undo", "--yes", "--run", &run, "--include", "likely"]);
        assert_eq!([lab.read("src/a"), lab.read("kept")], ["a\n", "k\n"], "{undone:?}");
        assert_eq!(lab.read("theirs"), "1\n");
    }
}

#[test]
fn a_turn_goes_on_where_the_client_starts_its_killed_sidecar_again() {
    for (again, ending) in [
        (None, "turn.end"),
        (Some("t1"), "turn.end"),
        (None, "another action"),
        (None, "the end of input"),
        (None, "another turn"),
    ] {
        let lab = Lab::new();
        lab.sh("mkdir src; echo a > src/a; echo b > src/b; echo k > kept");
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(hello_of_client(&lab));
        sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
        sidecar.ask(opaque("1"));
        drop(sidecar);
        let mut next = Sidecar::start(&lab, &[]);
        next.ask(hello_of_client(&lab));
        if let Some(turn) = again {
            next.ask(json!({"type": "turn.start", "turn": turn}));
        }
        // The look of a person ends nothing.
        assert_eq!(lab.piton(&["status"]).code, 0);
        if ending == "another action" {
            next.ask(json!({"type": "shell.before", "command": "rm kept", "action": "2"}));
        }
        lab.sh("rm -rf src");
        next.ask(json!({"type": "shell.after", "action": "1"}));
        match ending {
            "turn.end" | "another action" => drop(next.ask(json!({"type": "turn.end", "turn": "t1"}))),
            "another turn" => drop(next.ask(json!({"type": "turn.start", "turn": "t2"}))),
            _ => {}
        }
        assert_eq!(next.finish(), 0);
        let undone = lab.piton(&["undo", "--yes"]);
        let restored = [lab.read("src/a"), lab.read("src/b"), lab.read("kept")];
        assert_eq!(restored, ["a\n", "b\n", "k\n"], "{again:?} {ending}: {undone:?}");
        assert_eq!(turns(&lab).len(), 1, "{again:?} {ending}");
    }
}

#[test]
fn the_git_of_an_action_does_not_end_a_turn_that_was_taken_over() {
    let lab = Lab::new();
    lab.write("a", "before\n");
    if commit_all(&lab).is_none() {
        return;
    }
    lab.write("draft", "draft\n");
    let installed = lab.piton(&["install", "git", "--yes"]);
    assert_eq!(installed.code, 0, "{installed:?}");
    let mut killed = Sidecar::start(&lab, &[]);
    killed.ask(hello_of_client(&lab));
    killed.ask(json!({"type": "turn.start", "turn": "t1"}));
    killed.ask(json!({"type": "shell.before", "command": "git clean -fdq", "action": "1"}));
    drop(killed);
    let mut next = Sidecar::start(&lab, &[]);
    next.ask(hello_of_client(&lab));
    // git asks piton, which finds the session by the client's process.
    git(&lab, &["clean", "-fdq"]);
    next.ask(json!({"type": "shell.after", "action": "1"}));
    edit(&lab, &mut next, "a", "after\n");
    next.ask(json!({"type": "turn.end", "turn": "t1"}));
    assert_eq!(next.finish(), 0);
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!([lab.read("a"), lab.read("draft")], ["before\n", "draft\n"], "{undone:?}");
    assert_eq!(turns(&lab).len(), 1);
}

#[test]
fn a_client_that_is_the_first_process_of_a_container_is_the_client() {
    let lab = Lab::new();
    lab.write("a", "0\n");
    let mut command = lab.command("unshare", &lab.work);
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "bash", "--norc", "--noprofile"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return lacking(&format!("unshare ({error})")),
    };
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "cwd": lab.work,
        "tool_name": "Bash", "tool_input": {"command": "rm a"}, "tool_use_id": "u" });
    let program = env!("CARGO_BIN_EXE_piton");
    let script =
        format!("echo \"first $$\"\n{program} hook claude-code PreToolUse --no-daemon <<'END'\n{payload}\nEND\n");
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if !String::from_utf8_lossy(&output.stdout).starts_with("first 1\n") {
        return not_allowed(&format!("a container ({})", String::from_utf8_lossy(&output.stderr)));
    }
    let workspaces = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap();
    let mut notes = workspaces.map(|dir| dir.unwrap().path().join("runs/.claude-code.s.client"));
    let note = notes.find(|note| note.exists()).expect("the client is noted");
    let noted: Value = serde_json::from_slice(&std::fs::read(note).unwrap()).unwrap();
    assert_eq!(noted["process"]["pid"], 1, "{noted}");
}

#[test]
fn a_change_of_the_wall_clock_within_a_turn_makes_its_changes_doubtful() {
    for is_set in [false, true] {
        let lab = Lab::new();
        lab.write("a", "0\n");
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(hello(&lab, "s"));
        warm(&mut sidecar);
        sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
        edit(&lab, &mut sidecar, "a", "1\n");
        if is_set {
            // As if the clock had been an hour behind when the turn began.
            lab.sh(
                r#"cd "$HOME"/piton/workspaces/*/ && perl -pi -e 's/"clock":(-?\d+)/q("clock":) . ($1 - 3600000000000)/e' windows"#,
            );
        }
        // While the turn is open, another process has no watcher and compares file times with the sidecar's last answer.
        let shares = &turns(&lab)[0]["shares"];
        let expected = if is_set { "likely" } else { "sure" };
        assert_eq!(shares[expected], 1, "{is_set}: {shares}");
    }
}

#[test]
fn a_path_that_is_too_long_to_be_watched_is_of_the_only_turn() {
    let lab = Lab::new();
    // Each step is relative: together they are longer than any path that the system takes.
    let write_deep = |text: &str| {
        lab.sh(&format!(
            r#"perl -e '$n = "0" x 250; for (1..17) {{ mkdir $n; chdir $n or die }} open F, ">deep"; print F "{text}"'"#
        ));
    };
    write_deep("0");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(hello(&lab, "s"));
    warm(&mut sidecar);
    sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
    for (action, text) in [("1", "1"), ("2", "2")] {
        sidecar.ask(opaque(action));
        write_deep(text);
        sidecar.ask(json!({"type": "shell.after", "action": action}));
    }
    sidecar.ask(json!({"type": "turn.end"}));
    let shares = &turns(&lab)[0]["shares"];
    assert_eq!((&shares["likely"], &shares["shared"]), (&json!(1), &json!(0)), "{shares}");
}
