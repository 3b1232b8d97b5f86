//! The MCP proxy: between a client played here and real or hostile servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Lab, WAIT, lacking, number};

/// The real server, pinned.
const PACKAGE: &str = "@modelcontextprotocol/server-filesystem";
const VERSION: &str = "2026.8.31";

/// A server with one tool of each kind. It writes down each message; `wipe` removes `a.txt` before it answers.
const SERVER: &str = r#"
import json, os, sys
log = open("../received", "ab", buffering=0)
hints = {"look": {"readOnlyHint": True}, "wipe": {"destructiveHint": True}, "add": {"readOnlyHint": False},
         "post": {"readOnlyHint": False, "openWorldHint": True}, "bare": None}
def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
for line in sys.stdin.buffer:
    log.write(line)
    message = json.loads(line)
    method = message.get("method")
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {}, **({"annotations": hint} if hint else {})} for name, hint in hints.items()]
        send({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}})
    if method == "tools/call":
        if message["params"]["name"] == "wipe":
            os.remove("a.txt")
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}})
        send({"jsonrpc": "2.0", "id": message["id"], "method": "roots/list"})
        send({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
sys.exit(5)
"#;

/// The proxy in the hands of a client.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Client {
    fn start(lab: &Lab, options: &[&str], server: &[&str]) -> Client {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.arg("mcp-proxy").args(options).arg("--").args(server);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Client { child, input, output, sent: Vec::new(), received: Vec::new() }
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.sent.extend(line.bytes());
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).unwrap();
        self.received.extend(&line);
        serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// The answer to a request; what else comes before it is answered or passed over as a client does.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["method"] == "roots/list" {
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}}));
            } else if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        self.answer(id)
    }

    /// Closes the input; the exit code, what came until then, what was said on stderr.
    fn finish(mut self) -> (i32, Vec<u8>, Vec<u8>, String) {
        self.input = None;
        self.output.read_to_end(&mut self.received).unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), self.sent, self.received, said)
    }
}

fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        lacking(tool);
    }
    found
}

fn listed(lab: &Lab) -> Vec<Value> {
    // The calls of one turn after its first are steps.
    let listed = lab.piton(&["list", "--json", "--steps"]);
    if listed.code == 3 { Vec::new() } else { listed.json()["checkpoints"].as_array().unwrap().clone() }
}

/// Waits until there are so many.
fn settles_at(lab: &Lab, count: usize) {
    let began = Instant::now();
    while listed(lab).len() != count {
        assert!(began.elapsed() < WAIT, "{:?}, not {count}", listed(lab));
    }
}

#[test]
fn calls_that_write_wait_for_their_checkpoint_and_others_do_not() {
    if !has("python3") {
        return;
    }
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut client = Client::start(&lab, &[], &["python3", "-c", SERVER]);
    // The call is to find a base capture.
    let until = Instant::now() + WAIT;
    while lab.piton(&["list", "--all"]).code == 3 {
        assert!(Instant::now() < until, "there never was a base capture");
        std::thread::yield_now();
    }
    // Of a tool that nobody has told of yet, the worst is expected.
    client.call(1, "look", json!({"path": "a.txt"}));
    settles_at(&lab, 1);
    client.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    assert_eq!(client.answer(2)["result"]["tools"].as_array().unwrap().len(), 5);
    lab.write("a.txt", "two\n");
    client.call(3, "look", json!({"path": "a.txt"}));
    assert_eq!(listed(&lab).len(), 1, "a reader passes at once");
    client.call(4, "wipe", json!({}));
    let rows = listed(&lab);
    assert_eq!((rows.len(), lab.work.join("a.txt").exists()), (2, false));
    assert_eq!(
        lab.piton(&["show", &format!("{}:a.txt", number(&rows[0]))]).stdout,
        "two\n",
        "taken before the server had it"
    );
    for (id, tool) in [(5, "add"), (6, "bare")] {
        lab.write("a.txt", tool);
        client.call(id, tool, json!({"path": "b"}));
        let rows = listed(&lab);
        assert_eq!((rows.len() as u64, &rows[0]["reason"]), (id - 2, &json!(format!("before {tool} b"))));
    }
    client.call(7, "add", json!({"path": "b"}));
    assert_eq!(listed(&lab).len(), 4, "nothing changed, nothing is recorded");
    client.call(8, "post", json!({"text": "x"}));
    let (code, sent, _, said) = client.finish();
    assert_eq!(code, 5, "{said}");
    assert!(said.contains("`post`"), "the effect outside is warned of: {said}");
    assert!(listed(&lab)[0].to_string().contains("network-write"), "and noted");
    assert!(std::fs::read(lab.root().join("received")).unwrap() == sent, "the server had other bytes");
}

#[test]
fn what_the_policy_denies_is_answered_and_not_passed_on() {
    if !has("python3") {
        return;
    }
    for (answer, passes) in [("deny", false), ("ask", true)] {
        let lab = Lab::new();
        lab.write("a.txt", "one\n");
        lab.write(".piton.yaml", format!("policy: {{file-overwrite: {answer}}}\n"));
        let mut client = Client::start(&lab, &[], &["python3", "-c", SERVER]);
        let reply = client.call(1, "wipe", json!({"path": "a.txt"}));
        assert_eq!(
            (reply["result"]["isError"] == true, lab.work.join("a.txt").exists()),
            (!passes, !passes),
            "{reply}"
        );
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text.starts_with("piton: the policy denies"), !passes, "{reply}");
        let (_, _, _, said) = client.finish();
        assert_eq!(said.contains("runs, because no person"), passes, "{said}");
        let received = std::fs::read_to_string(lab.root().join("received")).unwrap_or_default();
        assert_eq!(received.contains("tools/call"), passes);
    }
}

#[test]
fn a_late_checkpoint_does_not_stop_the_call() {
    if !has("python3") {
        return;
    }
    let lab = Lab::new();
    for i in 0..3000 {
        lab.write(&format!("d{}/f{i}", i % 40), format!("{i}").repeat(300));
    }
    lab.write("a.txt", "one\n");
    let mut client = Client::start(&lab, &["--set", "deadline_ms=1"], &["python3", "-c", SERVER]);
    let reply = client.call(1, "wipe", json!({"path": "a.txt"}));
    assert!(reply["result"].is_object() && !lab.work.join("a.txt").exists(), "{reply}");
    let (code, _, _, said) = client.finish();
    assert!(code == 5 && said.contains("deadline"), "{said}");
    assert!(!listed(&lab).is_empty(), "what is late is finished");
}

#[test]
fn whatever_bytes_pass_unchanged() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let mut bytes = b"\n\r\nno json\r\n\0\xff\xfe\n{\"id\":1,\"method\":\"tools/ca\n[1,2]\nnull\n".to_vec();
    bytes.extend(br#"{"jsonrpc" : "2.0","id":1.0e0,"method":"tools\/call","params":{"name":"x\u0061","arguments":{"b":1,"a":2}}}"#);
    bytes.extend(b"\n[");
    bytes.extend(std::iter::repeat_n(b'y', (8 << 20) - 2));
    bytes.extend(b"\n");
    bytes.extend(std::iter::repeat_n(b'z', 20 << 20));
    bytes.extend(b"\n{\"cut");
    let mut client = Client::start(&lab, &[], &["cat"]);
    let mut input = client.input.take().unwrap();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let mut received = Vec::new();
    client.output.read_to_end(&mut received).unwrap();
    writer.join().unwrap().unwrap();
    assert!(received == bytes, "{} bytes became {}", bytes.len(), received.len());
    assert_eq!(client.finish().0, 0);
    // The call with its escapes, and the message too long to be read.
    settles_at(&lab, 1);
}

#[test]
fn neither_side_is_held_up_by_the_other_and_memory_is_bounded() {
    let lab = Lab::new();
    // It never reads, and writes much.
    let mut client = Client::start(&lab, &[], &["sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' 'x'; exit 3"]);
    let mut input = client.input.take().unwrap();
    let writer = std::thread::spawn(move || {
        let line = format!("{{\"id\":1,\"x\":\"{}\"}}\n", "y".repeat(1000));
        // Until the server is gone; more than any pipe holds.
        (0..20_000).all(|_| input.write_all(line.as_bytes()).is_ok())
    });
    let mut some = vec![0; 49_000_000];
    client.output.read_exact(&mut some).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    assert!(peak.is_none_or(|kilobytes| kilobytes < 100_000), "{peak:?} kB");
    client.output.read_to_end(&mut some).unwrap();
    assert_eq!(some.len(), 50_000_000);
    assert!(!writer.join().unwrap(), "the client is told that nobody reads");
    assert_eq!(client.child.wait().unwrap().code(), Some(3));
}

#[test]
fn ends_and_signals_are_handed_on() {
    let lab = Lab::new();
    for (script, code) in [("exit 7", 7), ("kill -KILL $$", 137), ("cat >/dev/null; exit 4", 4)] {
        let client = Client::start(&lab, &[], &["sh", "-c", script]);
        assert_eq!(client.finish().0, code, "{script}");
    }
    for (signal, code) in [("TERM", 91), ("INT", 92), ("HUP", 93)] {
        let traps = "trap 'exit 91' TERM; trap 'exit 92' INT; trap 'exit 93' HUP; echo ready; \
            while :; do sleep 1 >/dev/null 2>&1 <&- & wait $!; done";
        let mut client = Client::start(&lab, &[], &["sh", "-c", traps]);
        let mut line = String::new();
        client.output.read_line(&mut line).unwrap();
        lab.sh(&format!("kill -{signal} {}", client.child.id()));
        assert_eq!((line.as_str(), client.finish().0), ("ready\n", code), "{signal}");
    }
    let missing = lab.piton(&["mcp-proxy", "--", "/no/such/server"]);
    assert!(missing.code == 1 && missing.stderr.contains("/no/such/server"), "{missing:?}");
    assert_eq!(lab.piton(&["mcp-proxy"]).code, 2);
}

#[test]
fn a_server_that_closes_its_output_and_goes_on_is_seen() {
    let lab = Lab::new();
    let mut client = Client::start(&lab, &[], &["sh", "-c", "echo last; exec >&-; cat >/dev/null; exit 6"]);
    let mut all = String::new();
    client.output.read_to_string(&mut all).unwrap();
    assert_eq!(all, "last\n");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}));
    assert_eq!(client.finish().0, 6);
}

#[test]
fn the_workspace_of_a_call_is_that_of_its_paths() {
    if !has("python3") {
        return;
    }
    let lab = Lab::new();
    let other = lab.root().join("other");
    std::fs::create_dir_all(other.join(".git")).unwrap();
    std::fs::write(other.join("b"), "b").unwrap();
    lab.write("a.txt", "one\n");
    let mut client = Client::start(&lab, &[], &["python3", "-c", SERVER]);
    client.call(1, "write_file", json!({"content": "/x", "path": other.join("b")}));
    client.finish();
    let there = lab.piton_in(&other, &["list", "--json"]).json();
    assert_eq!((&there["total"], listed(&lab).len()), (&json!(1), 0), "{there}");
}

/// A server that says that it logs, or that it does not.
const LOGGING: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"capabilities": json.loads(sys.argv[1])}}), flush=True)
    if message["method"] == "tools/call":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}), flush=True)
"#;

#[test]
fn a_client_that_does_not_read_what_is_said_is_answered_all_the_same() {
    if !has("python3") {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.home.join("piton"), "not a directory").unwrap();
    let mut client = Client::start(&lab, &[], &["python3", "-c", LOGGING, "{}"]);
    // Of each call one sentence: more in all than the pipe takes.
    let tool = "w".repeat(2000);
    (0..200).for_each(|id| assert!(client.call(id, &tool, json!({}))["result"].is_object()));
    let (_, _, _, said) = client.finish();
    assert!(said.contains("NOT GUARDED") && said.len() > 60_000, "{}", said.len());
}

#[test]
fn without_a_home_messages_pass_unguarded_and_aloud() {
    if !has("python3") {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.home.join("piton"), "not a directory").unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    for (capabilities, told) in [(r#"{"logging": {}}"#, true), ("{}", false)] {
        let mut client = Client::start(&lab, &[], &["python3", "-c", LOGGING, capabilities]);
        client.send(&initialize);
        assert!(client.answer(1)["result"].is_object());
        if told {
            let notice = client.receive();
            assert_eq!((&notice["method"], notice.get("id")), (&json!("notifications/message"), None));
            assert!(notice["params"]["data"].as_str().unwrap().contains("NOT GUARDED"), "{notice}");
        }
        assert!(client.call(2, "wipe", json!({}))["result"].is_object());
        let (code, _, received, said) = client.finish();
        assert_eq!((code, String::from_utf8_lossy(&received).matches("NOT GUARDED").count()), (0, usize::from(told)));
        assert!(said.contains("NOT GUARDED") && said.contains("must be a directory"), "{said}");
        assert!(said.contains("`wipe` runs without a checkpoint"), "{said}");
    }
    // Where the policy lets nothing pass unguarded, the server does not start.
    for (file, text, why) in [
        (lab.user_file(), "on_failure: hold\n", "on_failure"),
        (lab.user_file(), "policy:\n  file-delete: {answer: deny}\n", "policy"),
        (lab.work.join(".piton.yaml"), "on_failure: hold\n", "on_failure"),
    ] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        let output = lab.piton(&["mcp-proxy", "--", "sh", "-c", "touch started"]);
        assert!(
            output.code != 0 && output.stderr.contains(&format!("the setting `{why}` does not allow unguarded calls")),
            "{output:?}"
        );
        assert!(!lab.work.join("started").exists());
        std::fs::remove_file(file).unwrap();
    }
    let output = lab.piton(&["--set", "on_failure=hold", "mcp-proxy", "--", "true"]);
    assert!(output.code != 0 && output.stderr.contains("`on_failure`"), "{output:?}");
}

/// The real filesystem server, installed once into a cache; `None`, said aloud, where that is not possible.
fn real_server() -> Option<PathBuf> {
    if !has("npm") || !has("node") {
        return None;
    }
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-filesystem-{VERSION}"));
    let script = cache.join("node_modules").join(PACKAGE).join("dist/index.js");
    if !script.exists() {
        // Made beside, so that an installation that was cut short is not taken for one.
        let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let package = format!("{PACKAGE}@{VERSION}");
        let arguments = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
        // A registry that does not answer must not stop the whole run.
        let mut npm = Command::new("timeout");
        let installed = npm.args(["180", "npm"]).args(arguments).arg(made.path()).arg(package).output().unwrap();
        if !installed.status.success() {
            lacking(&format!("npm registry ({})", String::from_utf8_lossy(&installed.stderr)));
            return None;
        }
        // Another process may have been first; then its own is as good.
        let _ = std::fs::rename(made.path(), &cache);
    }
    Some(script)
}

#[test]
fn the_real_filesystem_server() {
    let Some(script) = real_server() else { return };
    let lab = Lab::new();
    lab.write("keep.txt", "keep\n");
    lab.write("a.txt", "one\n");
    // Everything is written down between the proxy and the server.
    let recorded = "tee ../to-server | node \"$0\" \"$1\" | tee ../from-server";
    let (script, work) = (script.to_str().unwrap().to_owned(), lab.work.to_str().unwrap().to_owned());
    let mut client = Client::start(&lab, &[], &["sh", "-c", recorded, &script, &work]);
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"roots": {"listChanged": true}}, "clientInfo": {"name": "test", "version": "1"}}}));
    assert!(client.answer(0)["result"]["serverInfo"].is_object());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    // The server asks in turn; its id is one of the client's too.
    let asked = client.receive();
    assert_eq!((&asked["method"], &asked["id"]), (&json!("roots/list"), &json!(0)), "{asked}");
    let roots = json!([{"uri": format!("file://{work}"), "name": "work"}]);
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "result": {"roots": roots}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let tools = client.answer(1)["result"]["tools"].clone();
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools}");
    let path = |name: &str| lab.work.join(name);
    let read = client.call(2, "read_text_file", json!({"path": path("a.txt")}));
    assert!(read["result"]["content"][0]["text"].as_str().unwrap().contains("one"), "{read}");
    assert_eq!(listed(&lab).len(), 0, "a reader passes");
    let edits = json!([{"oldText": "two", "newText": "three"}]);
    // Each with what `a.txt` held, and holds, before and after it.
    let steps = [
        ("write_file", json!({"path": path("a.txt"), "content": "two\n"}), "one\n", Some("two\n")),
        ("edit_file", json!({"path": path("a.txt"), "edits": edits}), "two\n", Some("three\n")),
        ("move_file", json!({"source": path("a.txt"), "destination": path("b.txt")}), "three\n", None),
    ];
    for ((tool, arguments, before, after), count) in steps.into_iter().zip(1..) {
        let reply = client.call(10 + count, tool, arguments);
        assert_ne!(reply["result"]["isError"], true, "{reply}");
        assert_eq!(std::fs::read_to_string(path("a.txt")).ok().as_deref(), after, "{tool}");
        let rows = listed(&lab);
        assert_eq!(rows.len() as u64, count, "{tool}: {rows:?}");
        assert_eq!(lab.piton(&["show", &format!("{}:a.txt", number(&rows[0]))]).stdout, before, "{tool}");
    }
    lab.restore(1, &[]);
    assert_eq!((lab.read("a.txt").as_str(), path("b.txt").exists()), ("one\n", false));
    let (_, sent, received, said) = client.finish();
    let there = |name: &str| std::fs::read(lab.root().join(name)).unwrap();
    assert!(there("to-server") == sent, "the server had other bytes; {said}");
    assert!(there("from-server") == received, "the client had other bytes; {said}");
}
