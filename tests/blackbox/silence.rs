//! A client that is at work without events is told of: by `piton`, `piton status` and `piton doctor`, with the cause and the mend. One
//! that waits, reads, or works with its hooks is not.
//!
//! The clock of the program is moved, and a shell stands for the client's process: its name, its directory and its session's file
//! are those of a client.

use std::fs::{File, FileTimes};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::support::{Lab, Output, Sidecar};

/// The time in seconds before the acts of a client at which its last event came.
const BEFORE: i64 = -600;

/// The time behind its acts at which is asked, in seconds.
const BEHIND: i64 = 60;

struct Silenced {
    lab: Lab,
    clients: Vec<Child>,
}

impl Drop for Silenced {
    fn drop(&mut self) {
        for client in &mut self.clients {
            drop(client.stdin.take());
            client.wait().unwrap();
        }
        self.lab.piton(&["daemon", "stop"]);
    }
}

fn moved(path: &Path, seconds: i64) {
    let time = SystemTime::now();
    let length = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 { time - length } else { time + length };
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

impl Silenced {
    /// A project with the hooks of Claude Code, through which an event has come ten minutes ago.
    fn after_an_event() -> Silenced {
        let silenced = Silenced { lab: Lab::new(), clients: Vec::new() };
        let lab = &silenced.lab;
        lab.write(".git/HEAD", "ref: refs/heads/main\n");
        lab.write("src/a.txt", "a");
        lab.write("doc/b.txt", "b");
        std::fs::create_dir_all(lab.home.join(".claude")).unwrap();
        assert_eq!(lab.piton(&["install", "claude-code"]).code, 0);
        assert_eq!(silenced.at(BEFORE, &["checkpoint", "first"]).code, 0);
        silenced.event(BEFORE);
        silenced.settings_are_old();
        silenced
    }

    fn at(&self, offset: i64, args: &[&str]) -> Output {
        let mut command = self.lab.command(env!("CARGO_BIN_EXE_piton"), &self.lab.work);
        let output = command.args(args).env("PITON_TEST_CLOCK_OFFSET", offset.to_string()).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Has the installed hook called as the client does.
    fn event(&self, offset: i64) {
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": self.lab.work,
            "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "u" });
        let mut command = self.lab.command(env!("CARGO_BIN_EXE_piton"), &self.lab.work);
        command.args(["hook", "claude-code", "PreToolUse", "--no-daemon"]).stdin(Stdio::piped());
        let mut hook = command.env("PITON_TEST_CLOCK_OFFSET", offset.to_string()).spawn().unwrap();
        std::io::Write::write_all(&mut hook.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
        assert!(hook.wait().unwrap().success());
    }

    /// The client's settings were not written just now.
    fn settings_are_old(&self) {
        for place in [self.lab.home.join(".claude"), self.lab.work.join(".claude")] {
            for file in ["settings.json", "commands/rollback.md", "settings.local.json"] {
                let file = place.join(file);
                if file.exists() {
                    moved(&file, BEFORE);
                }
            }
        }
    }

    /// The client's model edits a file and runs a command, as its session's file tells.
    fn works(&self, cwd: &Path) {
        let act = |name: &str| {
            json!({ "type": "assistant", "cwd": cwd, "timestamp": now(), "message": { "role": "assistant",
                "content": [{ "type": "tool_use", "id": "t", "name": name, "input": {} }] } })
            .to_string()
        };
        let lines = format!("{}\n{}\n", act("Edit"), act("Bash"));
        let path = self.session();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, lines).unwrap();
        self.lab.write("src/a.txt", "changed");
    }

    fn session(&self) -> PathBuf {
        let text = self.lab.work.canonicalize().unwrap().to_string_lossy().into_owned();
        let project: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        self.lab.home.join(".claude/projects").join(project).join("s.jsonl")
    }

    /// A process that looks like a client's.
    fn open(&mut self, name: &str) {
        let mut command = Command::new("cat");
        command.arg0(name).current_dir(&self.lab.work).stdin(Stdio::piped()).stdout(Stdio::null());
        self.clients.push(command.spawn().unwrap());
    }

    fn silent(&self) -> Value {
        self.at(BEHIND, &["status", "--json"]).json()["protection"]["silent"].clone()
    }

    /// All three say the sentence with the cause, nobody says "protected", and the doctor ends with 1.
    fn assert_silent(&self, client: &str, cause: &str, mend: &str) {
        for args in [&[][..], &["status"], &["doctor"]] {
            let said = self.at(BEHIND, args);
            let wanted = [format!("changes without events from {client} since "), cause.to_owned(), mend.to_owned()];
            assert!(wanted.iter().all(|wanted| said.stdout.contains(wanted)), "{args:?}: {said:?}");
            assert!(
                !said.stdout.contains("protected by") && !said.stdout.contains("is protected"),
                "{args:?}: {said:?}"
            );
            assert_eq!(said.code, i32::from(args == ["doctor"]), "{args:?}: {said:?}");
            let times = said.stdout.matches("changes without events").count();
            assert_eq!(times, 1, "once: {said:?}");
        }
    }

    fn assert_protected(&self, when: &str) {
        for args in [&[][..], &["status"], &["doctor"]] {
            let said = self.at(BEHIND, args);
            let is_said = ["protected by Claude Code", " is protected"].iter().any(|text| said.stdout.contains(text));
            assert!(is_said && said.code == 0, "{when}: {said:?}");
            assert!(!said.stdout.contains("without events"), "{when}: {said:?}");
        }
        assert_eq!(self.silent(), json!([]), "{when}");
    }
}

/// The time now, as clients write it.
fn now() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.000Z"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn hooks_that_are_gone_in_the_middle_of_a_session_are_told_of_within_the_turn() {
    let silenced = Silenced::after_an_event();
    silenced.assert_protected("before");
    assert_eq!(silenced.lab.piton(&["uninstall", "claude-code"]).code, 0);
    silenced.settings_are_old();
    silenced.works(&silenced.lab.work);
    silenced.assert_silent("Claude Code", "it has no piton hooks", "piton install claude-code");
    let silent = silenced.silent();
    assert_eq!((silent.as_array().unwrap().len(), &silent[0]["client"]), (1, &json!("claude-code")), "{silent}");
    assert_eq!(silenced.at(BEHIND, &["status", "--json"]).json()["protection"]["state"], "not-guarded");
}

#[test]
fn hooks_that_a_setting_switches_off_are_told_of_with_that_setting() {
    let silenced = Silenced::after_an_event();
    silenced.lab.write(".claude/settings.local.json", "{\"disableAllHooks\": true}");
    silenced.settings_are_old();
    silenced.works(&silenced.lab.work.join("src"));
    silenced.assert_silent("Claude Code", "`disableAllHooks` is set in ", "settings.local.json");
}

#[test]
fn hooks_that_do_not_run_though_nothing_is_known_against_them_are_told_of() {
    let silenced = Silenced::after_an_event();
    silenced.works(&silenced.lab.work);
    silenced.assert_silent("Claude Code", "does not call them", "end Claude Code and start it again");
    // Where nothing is guarded at all, that is the reason.
    assert_eq!(silenced.lab.piton(&["off", "--for", "1h"]).code, 0);
    assert_eq!(silenced.silent(), json!([]));
    assert_eq!(silenced.lab.piton(&["on"]).code, 0);
    // The next event ends the story.
    silenced.event(BEHIND);
    silenced.assert_protected("after an event");
}

#[test]
fn a_client_that_waits_while_a_person_works_is_no_silence() {
    let mut silenced = Silenced::after_an_event();
    silenced.open("claude");
    silenced.open("crush");
    silenced.works(&silenced.lab.work);
    // Its acts had their events.
    silenced.event(0);
    for n in 0..5 {
        silenced.lab.write("src/a.txt", format!("saved {n}"));
        silenced.lab.write(&format!("doc/{n}.txt"), "new");
    }
    silenced.assert_protected("both wait");
    // Acts of a neighbour's session are the neighbour's.
    silenced.works(&silenced.lab.root().join("elsewhere"));
    moved(&silenced.session(), 30);
    silenced.assert_protected("a neighbour works");
}

#[test]
fn a_client_whose_files_grow_while_files_change_is_told_of_without_hooks() {
    let mut silenced = Silenced::after_an_event();
    silenced.open("hermes");
    let grows = silenced.lab.home.join(".hermes/state.db-wal");
    std::fs::create_dir_all(grows.parent().unwrap()).unwrap();
    std::fs::write(&grows, "x").unwrap();
    let (behind, dirs) = (400, [silenced.lab.work.join("src"), silenced.lab.work.join("doc")]);
    let says =
        |silenced: &Silenced| silenced.at(behind, &["status"]).stdout.contains("without events from Hermes Agent");
    moved(&dirs[0], 320);
    moved(&dirs[1], 360);
    // Its files grew when it began, and not since: somebody else has changed them.
    assert!(!says(&silenced));
    moved(&grows, 370);
    assert!(says(&silenced), "{:?}", silenced.at(behind, &["status"]));
    // With another one at work elsewhere, nobody knows whose file it is.
    let mut other = Command::new("cat");
    other.arg0("hermes").current_dir(silenced.lab.root()).stdin(Stdio::piped()).stdout(Stdio::null());
    silenced.clients.push(other.spawn().unwrap());
    assert!(!says(&silenced));
}

/// The longest wait for something that is done beside the work.
const WAIT: Duration = Duration::from_mins(3);

#[test]
fn other_sessions_and_shells_are_told_once() {
    let silenced = Silenced::after_an_event();
    assert_eq!(silenced.lab.piton(&["uninstall", "claude-code"]).code, 0);
    silenced.settings_are_old();
    silenced.works(&silenced.lab.work);
    let offset = BEHIND.to_string();
    let mut other = Sidecar::start_with(&silenced.lab, &[], &[("PITON_TEST_CLOCK_OFFSET", &offset)]);
    other.ask(json!({ "type": "hello", "client": "mine", "session": "m" }));
    let mut told = Vec::new();
    let began = Instant::now();
    // The look is made beside the answers.
    for n in 0.. {
        let reply = other.ask(json!({ "type": "shell.before", "command": "rm doc/b.txt", "action": n.to_string() }));
        let is_over = reply["silent"].is_array();
        told.push(reply);
        if is_over {
            break;
        }
        assert!(began.elapsed() < WAIT, "{told:?}");
    }
    let last = told.last().unwrap();
    assert_eq!(last["silent"][0]["client"], "claude-code", "{last}");
    let notices = last["notices"].to_string();
    assert!(
        notices.contains("changes without events from Claude Code since ") && notices.contains("piton doctor"),
        "{last}"
    );
    let again = other.ask(json!({ "type": "shell.before", "command": "rm doc/b.txt", "action": "again" }));
    assert!(again.get("silent").is_none() && !again["notices"].to_string().contains("without events"), "{again}");
    // The state of the session tells it as long as it lasts.
    let status = other.ask(json!({ "type": "status" }));
    assert_eq!(status["protection"]["silent"][0]["client"], "claude-code", "{status}");
    drop(other);

    let line = |n: u32| {
        let mut command = silenced.lab.command(env!("CARGO_BIN_EXE_piton"), &silenced.lab.work);
        command.args(["shell", "before", "--session", "bash.1.x", "--line", &n.to_string(), "--cannot-cancel"]);
        command.env("PITON_TEST_CLOCK_OFFSET", &offset).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        std::io::Write::write_all(&mut shell.stdin.take().unwrap(), b"rm doc/b.txt").unwrap();
        String::from_utf8_lossy(&shell.wait_with_output().unwrap().stderr).into_owned()
    };
    let began = Instant::now();
    let said = (1..).map(line).inspect(|said| assert!(began.elapsed() < WAIT, "{said}"));
    let said = said.skip_while(String::is_empty).take(2).collect::<Vec<_>>();
    assert!(said[0].starts_with("piton: changes without events from Claude Code since "), "{said:?}");
    assert!(said[0].contains("it has no piton hooks; piton install claude-code"), "{said:?}");
    assert_eq!((said[0].lines().count(), said[1].as_str()), (1, ""), "{said:?}");
}

#[test]
fn a_daemon_stays_as_long_as_the_client_whose_hook_has_called() {
    let lab = Lab::new();
    lab.write(".git/HEAD", "ref: refs/heads/main\n");
    let payload = json!({ "hook_event_name": "SessionStart", "session_id": "s", "cwd": lab.work, "source": "startup" });
    std::fs::write(lab.root().join("payload"), payload.to_string()).unwrap();
    let mut daemon = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let mut daemon = daemon.args(["daemon", "run", "--idle", "1"]).spawn().unwrap();
    let is_up = |lab: &Lab| lab.home.join("piton/daemon/socket").exists();
    let began = Instant::now();
    while !is_up(&lab) {
        assert!(began.elapsed() < WAIT);
    }
    // A shell that reads its lines stands for the client, which calls its hook by another shell.
    let mut client = lab.command("/bin/bash", &lab.work);
    let mut client = client.arg0("claude").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let hook = format!("sh -c '{} hook claude-code SessionStart < ../payload || :'\n", env!("CARGO_BIN_EXE_piton"));
    let mut input = client.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{hook}echo called\n").as_bytes()).unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(client.stdout.as_mut().unwrap()), &mut said).unwrap();
    assert_eq!(said, "called\n");
    // Three times as long as it stays without anybody.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        assert!(daemon.try_wait().unwrap().is_none(), "it has ended after {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(input);
    client.wait().unwrap();
    // It ends by itself.
    assert!(daemon.wait().unwrap().success() && !is_up(&lab));
}
