//! The other end of the daemon's socket: another user, another version, somebody who asks too much; and a runtime directory
//! that takes no socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use piton::sys::fs::lock::{FileLock, Mode};
use serde_json::{Value, json};

use super::support::*;

/// A user without rights of their own anywhere.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0)
}

/// The other user's program; `None`, said aloud, where there is no perl or no right to become somebody else.
fn perl(lab: &Lab, user: u32, script: &str) -> Option<Child> {
    if !is_root() {
        not_allowed("becoming somebody else");
        return None;
    }
    let mut command = lab.command("perl", Path::new("/"));
    command.args(["-MIO::Socket::UNIX", "-e", script]).uid(user).stdout(Stdio::piped());
    match command.spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            lacking(&format!("perl ({error})"));
            None
        }
    }
}

fn mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A lab with something to lose, whose daemon ends with it.
struct Place {
    lab: Lab,
}

impl Place {
    fn new() -> Place {
        let lab = Lab::new();
        lab.write("a", "old");
        Place { lab }
    }

    fn dir(&self) -> PathBuf {
        self.lab.home.join("piton/daemon")
    }

    fn socket(&self) -> PathBuf {
        self.dir().join("socket")
    }

    fn started(&self) {
        let output = self.lab.piton(&["daemon", "start"]);
        assert_eq!(output.code, 0, "{output:?}");
    }

    fn pid(&self, program: &Path) -> Option<i64> {
        let mut command = self.lab.command(program.to_str().unwrap(), &self.lab.work);
        let output = command.args(["daemon", "status", "--json"]).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told["daemon"]["pid"].as_i64()
    }

    /// A hook of Claude Code before `rm a`; what it printed.
    fn hook(&self, turn: &str, change: impl FnOnce(&mut Command)) -> String {
        self.hook_of(Path::new(env!("CARGO_BIN_EXE_piton")), turn, change)
    }

    fn hook_of(&self, program: &Path, turn: &str, change: impl FnOnce(&mut Command)) -> String {
        self.hook_before(program, (turn, "rm a"), change)
    }

    fn hook_before(&self, program: &Path, (turn, line): (&str, &str), change: impl FnOnce(&mut Command)) -> String {
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": turn, "cwd": self.lab.work,
            "tool_name": "Bash", "tool_input": { "command": line }, "tool_use_id": "u" });
        let mut command = self.lab.command(program.to_str().unwrap(), &self.lab.work);
        command.args(["hook", "claude-code", "PreToolUse"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns whether the session's turn is held by a checkpoint that has this content.
    fn held(&self, content: &str) -> bool {
        let kept = std::fs::read(self.lab.home.join("piton/sessions/claude-code.s")).unwrap();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        let Some(slot) = kept["turns"]["slots"].as_object().unwrap().values().next() else { return false };
        self.lab.piton(&["show", &format!("{}:a", slot["id"].as_str().unwrap())]).stdout == content
    }

    fn mishaps(&self) -> Value {
        self.lab.piton(&["status", "--json"]).json()["mishaps"].clone()
    }

    /// The program under another path, as it was built at another time.
    fn copy(&self, name: &str, built: SystemTime) -> PathBuf {
        let path = self.lab.root().join(name).join("piton");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        // Not by this process: what it has open for writing, a child of another test may hold when it is to be run.
        self.lab.sh(&format!("cp {} {}", env!("CARGO_BIN_EXE_piton"), path.display()));
        std::fs::File::open(&path).unwrap().set_modified(built).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lab.piton(&["daemon", "stop"]);
    }
}

#[test]
fn a_client_of_another_user_is_turned_away() {
    let place = Place::new();
    place.started();
    // The permissions keep them out in the first place.
    for (path, bits) in [(place.dir(), 0o700), (place.socket(), 0o600), (place.lab.home.join("piton"), 0o700)] {
        assert_eq!(path.metadata().unwrap().mode() & 0o777, bits, "{path:?}");
    }
    for path in [place.lab.root(), place.lab.home.clone(), place.lab.home.join("piton"), place.dir()] {
        mode(path, 0o755);
    }
    mode(place.socket(), 0o666);
    let script = format!(
        "my $s = IO::Socket::UNIX->new(Peer => '{}') or die 'no way in'; my $line = <$s>; print defined $line ? $line : 'nothing';",
        place.socket().display()
    );
    let asked = |user| perl(&place.lab, user, &script).map(|child| child.wait_with_output().unwrap());
    let Some(own) = asked(0) else { return };
    let own: Value = serde_json::from_slice(&own.stdout).unwrap();
    assert_eq!(own["type"], "daemon");
    let other = asked(NOBODY).unwrap();
    assert!(other.status.success(), "{other:?}");
    assert_eq!(String::from_utf8_lossy(&other.stdout), "nothing");
    // And the daemon goes on.
    assert_eq!(place.hook("t", |_| {}), "");
    assert!(place.held("old"));
    mode(place.lab.home.join("piton"), 0o700);
}

#[test]
fn a_socket_of_another_user_is_not_spoken_to() {
    let place = Place::new();
    place.lab.take("first");
    let dir = place.dir();
    std::fs::create_dir(&dir).unwrap();
    for path in [place.lab.root(), place.lab.home.clone(), place.lab.home.join("piton")] {
        mode(path, 0o755);
    }
    // A greeting as good as any, and whatever is said to it is repeated.
    let greeting = json!({ "v": 1, "type": "daemon", "ok": true, "build": "another", "built_at": i64::MAX, "pid": 1,
        "since": "2026-01-01T00:00:00.000Z", "clients": 1 });
    let script = format!(
        "$| = 1; $SIG{{PIPE}} = 'IGNORE'; my $l = IO::Socket::UNIX->new(Local => '{}', Listen => 5) or die 'no socket'; print \"ready\\n\"; \
         while (my $c = $l->accept) {{ print $c '{greeting}', \"\\n\"; $c->flush; while (my $heard = <$c>) {{ print \"heard $heard\" }} print \"left\\n\" }}",
        place.socket().display()
    );
    chown(&dir, Some(NOBODY), None).unwrap_or_else(|error| assert!(!is_root(), "{error}"));
    let Some(mut other) = perl(&place.lab, NOBODY, &script) else { return };
    let mut said = BufReader::new(other.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().as_deref(), Some("ready"));
    // Even where directory and name look like one's own.
    chown(&dir, Some(0), None).unwrap();
    chown(place.socket(), Some(0), None).unwrap();
    for path in [place.lab.home.join("piton"), dir] {
        mode(path, 0o700);
    }
    mode(place.socket(), 0o600);
    assert_eq!(place.hook("t", |_| {}), "", "{}", place.mishaps());
    assert!(place.held("old"), "an engine of its own answers");
    assert_eq!(said.next().as_deref(), Some("left"), "nothing was said to the other user");
    let told = place.lab.piton(&["daemon", "status"]);
    assert!(told.code == 1 && told.stderr.contains("another user"), "{told:?}");
    assert_eq!(said.next().as_deref(), Some("left"));
    let doctor = place.lab.piton(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(&format!("a process of user {NOBODY} answers")), "{doctor:?}");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_hook_whose_daemon_ends_meanwhile_gets_an_engine_of_its_own() {
    let place = Place::new();
    place.lab.take("first");
    std::fs::create_dir(place.dir()).unwrap();
    // A daemon that greets and then ends: at once, or after so many lines.
    for lines in 0..3 {
        let content = format!("content {lines}");
        place.lab.write("a", &content);
        let daemon = UnixListener::bind(place.socket()).unwrap();
        let ending = std::thread::spawn(move || {
            let (mut client, _) = daemon.accept().unwrap();
            writeln!(client, "{}", greeting()).unwrap();
            let mut said = BufReader::new(client).lines();
            (0..lines).for_each(|_| assert!(said.next().unwrap().unwrap().contains("type")));
        });
        assert_eq!(place.hook(&format!("t{lines}"), |_| {}), "", "{}", place.mishaps());
        ending.join().unwrap();
        assert!(place.held(&content), "after {lines} lines");
        std::fs::remove_file(place.socket()).unwrap();
    }
    assert_eq!(place.mishaps(), json!([]));
}

/// Returns the first line of a daemon of another build.
fn greeting() -> Value {
    json!({ "v": 1, "type": "daemon", "ok": true, "build": "another", "built_at": i64::MAX,
        "pid": i32::MAX, "since": "2026-01-01T00:00:00.000Z", "clients": 1 })
}

#[test]
fn a_hook_whose_daemon_does_not_read_gets_an_engine_of_its_own() {
    let place = Place::new();
    place.lab.take("first");
    std::fs::create_dir(place.dir()).unwrap();
    place.lab.write("a", "to be held");
    let daemon = UnixListener::bind(place.socket()).unwrap();
    let greeting = greeting();
    let stopped = std::thread::spawn(move || {
        let (mut client, _) = daemon.accept().unwrap();
        writeln!(client, "{greeting}").unwrap();
        (daemon, client)
    });
    // More than the socket takes.
    let line = format!("rm a # {}", "x".repeat(1 << 20));
    let began = Instant::now();
    let said = place.hook_before(Path::new(env!("CARGO_BIN_EXE_piton")), ("t", &line), |_| {});
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(place.held("to be held"), "{said} {}", place.mishaps());
    let (daemon, _client) = stopped.join().unwrap();
    std::fs::remove_file(place.socket()).unwrap();
    drop(daemon);
}

#[test]
fn a_hook_whose_daemon_is_busy_gets_an_engine_of_its_own() {
    let place = Place::new();
    place.lab.take("first");
    std::fs::create_dir(place.dir()).unwrap();
    place.lab.write("a", "to be held");
    let daemon = UnixListener::bind(place.socket()).unwrap();
    let greeting = greeting();
    // It greets and reads, and answers nothing.
    let busy = std::thread::spawn(move || {
        let (mut client, _) = daemon.accept().unwrap();
        writeln!(client, "{greeting}").unwrap();
        let heard = BufReader::new(client).lines().map_while(Result::ok).count();
        (daemon, heard)
    });
    let began = Instant::now();
    let said = place.hook("t", |_| {});
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(place.held("to be held") && !said.contains("not protected"), "{said} {}", place.mishaps());
    std::fs::remove_file(place.socket()).unwrap();
    let (_daemon, heard) = busy.join().unwrap();
    assert!(heard > 1);
}

#[test]
fn a_late_checkpoint_is_answered_before_the_hook_gives_up() {
    let place = Place::new();
    place.lab.set("on_failure: hold\n");
    place.lab.take("first");
    let workspace = std::fs::read_dir(place.lab.home.join("piton/workspaces")).unwrap().next().unwrap().unwrap();
    let lock = FileLock::acquire(&workspace.path().join("lock"), Mode::Exclusive, "testing", Duration::ZERO).unwrap();
    // The settings would wait longer than the client does.
    let alone = |command: &mut Command| {
        command.arg("--no-daemon");
    };
    let said = place.hook("t", alone);
    assert!(said.contains("the policy blocks the action"), "{said} {}", place.mishaps());
    // A denial stands, although another command of the action finds no time left.
    place.lab.set("policy:\n  cloud: deny\n");
    let program = Path::new(env!("CARGO_BIN_EXE_piton"));
    let said = place.hook_before(program, ("u", r#"["terraform destroy", "rm a"]"#), alone);
    drop(lock);
    assert!(said.contains("\"deny\""), "{said} {}", place.mishaps());
}

#[test]
fn a_daemon_of_another_version_makes_room_for_the_newer_one() {
    let place = Place::new();
    let day = Duration::from_hours(24);
    let old = place.copy("old", SystemTime::now() - day);
    let new = place.copy("new", SystemTime::now() + day);
    let mut command = place.lab.command(old.to_str().unwrap(), &place.lab.work);
    assert!(command.args(["daemon", "start"]).stdout(Stdio::null()).status().unwrap().success());
    let first = place.pid(&old).unwrap();
    assert_eq!(place.hook_of(&old, "t1", |_| {}), "");
    assert!(place.held("old") && place.pid(&old) == Some(first), "its own daemon serves it");
    // A newer client sends it away, and is answered all the same.
    place.lab.write("a", "newer");
    assert_eq!(place.hook_of(&new, "t2", |_| {}), "");
    let began = Instant::now();
    let second = loop {
        // Asking ends the old one if it is still there, and starts none.
        match place.pid(&new) {
            Some(pid) => break pid,
            None => assert!(began.elapsed() < WAIT, "no daemon of the newer build"),
        }
    };
    assert_ne!(second, first);
    // An older client is served by the newer daemon, and leaves it alone.
    place.lab.write("a", "newest");
    assert_eq!(place.hook_of(&old, "t3", |_| {}), "");
    assert_eq!((place.pid(&old), place.pid(&new)), (Some(second), Some(second)));
    assert_eq!(place.mishaps(), json!([]));
    let mut command = place.lab.command(new.to_str().unwrap(), &place.lab.work);
    assert!(command.args(["daemon", "stop"]).stdout(Stdio::null()).status().unwrap().success());
    assert!(place.held("newest"));
}

#[test]
fn a_full_inbox_is_told_and_never_grows() {
    let place = Place::new();
    place.lab.take("first");
    place.started();
    let entries = std::fs::read_dir(place.lab.home.join("piton/workspaces")).unwrap();
    let workspace = entries.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap()).lines().map(|line| {
        let line = line.unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    });
    let mut reply = |wanted: &dyn Fn(&Value) -> bool| replies.find(|value| wanted(value)).unwrap();
    let mut send = |value: Value| stream.write_all(format!("{value}\n").as_bytes()).unwrap();
    send(json!({ "id": "hello", "type": "hello", "workspace": place.lab.work, "waits": false }));
    reply(&|value| value["id"] == "hello");
    // Nothing can be done as long as somebody holds the workspace.
    let lock = FileLock::acquire(&workspace.join("lock"), Mode::Exclusive, "testing", WAIT).unwrap();
    let asked = 400;
    for n in 0..asked {
        send(json!({ "id": n, "type": "checkpoint.create", "label": format!("l{n}") }));
    }
    // A client that finds it full is told at once in every case.
    let mut refused = 0;
    while refused < asked - 257 - 1 {
        let told = reply(&|value| value["id"].is_number());
        assert_eq!(told["error"]["code"], "busy", "{told}");
        refused += 1;
    }
    // So is an action: it goes on, and nobody is told that it is protected.
    send(json!({ "id": "rm", "type": "shell.before", "command": "rm a", "deadline_ms": 20_000 }));
    let told = loop {
        match reply(&|value| value["id"] == "rm" || value["error"]["code"] == "busy") {
            told if told["id"] == "rm" => break told,
            _ => refused += 1,
        }
    };
    assert_eq!((&told["proceed"], &told["checkpoint"]["status"]), (&json!(true), &json!("failed")), "{told}");
    assert!(told["checkpoint"]["reason"].as_str().unwrap().contains("too many jobs"), "{told}");
    let said = place.hook("t", |_| {});
    assert!(said.contains("too many jobs"), "the person is told: {said}");
    // Then all that was accepted is done.
    drop(lock);
    let mut done = 0;
    while refused + done < asked {
        let told = reply(&|value| value["id"].is_number());
        match told["error"]["code"].as_str() {
            None => done += 1,
            Some(code) => {
                assert_eq!(code, "busy", "{told}");
                refused += 1;
            }
        }
    }
    assert!(done >= 256, "{done}");
    assert_eq!(place.hook("t2", |_| {}), "");
    assert!(place.held("old"));
}

/// As root no permission bits bind, so that it is done as somebody else.
#[test]
fn a_runtime_directory_that_takes_no_socket_is_no_hindrance() {
    let place = Place::new();
    let piton = place.copy("bin", SystemTime::now());
    place.lab.take("first");
    std::fs::create_dir(place.dir()).unwrap();
    mode(place.dir(), 0o555);
    if is_root() {
        let (work, home) = (place.lab.work.clone(), place.lab.home.clone());
        place.lab.sh(&format!("chown -R {NOBODY}:{NOBODY} {} {}", work.display(), home.display()));
        chown(place.dir(), Some(0), None).unwrap();
        mode(place.lab.root(), 0o755);
    }
    let said = place.hook_of(&piton, "t", |command| {
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    });
    assert_eq!(said, "", "{}", place.mishaps());
    assert!(!place.socket().exists());
    if is_root() {
        // A process that the hook left is still at work in the store: it may remove a file that chown has listed already.
        let (work, home) = (place.lab.work.display(), place.lab.home.display());
        place.lab.sh(&format!("n=0; until chown -R 0:0 {work} {home}; do n=$((n + 1)); [ $n -lt 100 ]; done"));
    }
    assert!(place.held("old"), "an engine of its own answers");
    mode(place.dir(), 0o755);
}
