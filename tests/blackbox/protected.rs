//! "Protected" is said only of what guards now and was seen to work; each way to switch it off is said by `piton`, `piton status` and
//! `piton doctor`, with the reason and the mend.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::support::{Lab, Output, Sidecar, lacking, not_allowed};

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A lab whose daemon ends with it.
struct Guarded(Lab);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.piton(&["daemon", "stop"]);
    }
}

/// The line of a client that guards, and the words of the doctor for it.
const GUARDS: &str = "  Claude Code  ok    last event less than a minute ago\n";
const PROTECTED: &str = "protected by Claude Code, last event less than a minute ago";

/// Returns a table without the blanks that align its columns: two blanks separate two columns, four the state and the rest.
fn without_width(table: &str) -> String {
    let line = |line: &str| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        match cells.as_slice() {
            [name, "ok", rest] => format!("  {name}  ok    {rest}\n"),
            _ => format!("{line}\n"),
        }
    };
    table.lines().map(line).collect()
}

impl Guarded {
    /// A project with Claude Code's hooks, through which no event has come.
    fn installed() -> Guarded {
        let guarded = Guarded(Lab::new());
        let lab = &guarded.0;
        lab.write(".git/HEAD", "ref: refs/heads/main\n");
        lab.write("a.txt", "a");
        lab.take("first");
        std::fs::create_dir_all(lab.home.join(".claude")).unwrap();
        assert_eq!(lab.piton(&["install", "claude-code"]).code, 0);
        guarded
    }

    /// Has the installed hook called as the client does.
    fn event(&self) {
        let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": self.0.work,
            "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "u" });
        std::fs::write(self.0.root().join("payload"), payload.to_string()).unwrap();
        self.0.sh(&format!("{} hook claude-code PreToolUse < ../payload", env!("CARGO_BIN_EXE_piton")));
    }

    /// The three places that say it.
    fn said(&self) -> [Output; 3] {
        [&[][..], &["status"], &["doctor"]].map(|args| self.0.piton(args))
    }

    fn assert_protected(&self, when: &str) {
        for said in self.said() {
            let is_said = said.stdout.contains(PROTECTED)
                || (said.stdout.contains(" is protected") && without_width(&said.stdout).contains(GUARDS));
            assert!(said.code == 0 && is_said, "{when}: {said:?}");
            assert!(!said.stdout.contains("not guarded"), "{when}: {said:?}");
        }
        assert_eq!(self.state(), "protected", "{when}");
    }

    /// All three say `word` and the reason, nobody says "protected", and the doctor ends with 1.
    fn assert_not(&self, when: &str, word: &str, reason: &str, state: &str) {
        let [alone, status, doctor] = self.said();
        for said in [&alone, &status, &doctor] {
            assert!(said.stdout.contains(word) && said.stdout.contains(reason), "{when}: {said:?}");
            assert!(!said.stdout.contains("protected by") && !said.stdout.contains("is protected"), "{when}: {said:?}");
        }
        assert_eq!(doctor.code, 1, "{when}: {doctor:?}");
        assert!(doctor.stdout.contains("fix:") || doctor.stdout.contains("to do:"), "{when}: {doctor:?}");
        assert_eq!(self.state(), state, "{when}");
    }

    fn protection(&self) -> Value {
        self.0.piton(&["status", "--json"]).json()["protection"].clone()
    }

    fn state(&self) -> String {
        self.protection()["state"].as_str().unwrap().to_owned()
    }
}

#[test]
fn hooks_are_protection_once_an_event_has_come() {
    let guarded = Guarded::installed();
    let waits = "  Claude Code  installed, not used yet\n";
    let doctor = "hooks of Claude Code are installed, but no event has come from here yet";
    for said in guarded.said() {
        assert!(said.code == 0 && (said.stdout.contains(waits) || said.stdout.contains(doctor)), "{said:?}");
        assert!(!said.stdout.contains("protected by") && !said.stdout.contains("is protected"), "{said:?}");
    }
    assert_eq!((guarded.state().as_str(), &guarded.protection()["waiting"]), ("unseen", &json!(["claude-code"])));
    guarded.event();
    guarded.assert_protected("after an event");
    let door = guarded.protection()["doors"][0].clone();
    assert_eq!(
        (&door["door"], &door["client"], &door["guards"]),
        (&json!("hook"), &json!("claude-code"), &json!(true)),
        "{door}"
    );
    // An event in one workspace says nothing of another.
    let other = guarded.0.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("Makefile"), "").unwrap();
    assert_eq!(guarded.0.piton_in(&other, &["checkpoint"]).code, 0);
    assert!(guarded.0.piton_in(&other, &[]).stdout.contains(waits));
    // The time is that of the last event.
    let later = |lab: &Lab| {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let output = command.env("PITON_TEST_CLOCK_OFFSET", "630").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let told = later(&guarded.0);
    assert!(told.contains("is protected") && told.contains("last event 10 min ago"), "{told}");
    // Without the hooks, the event is history.
    assert_eq!(guarded.0.piton(&["uninstall", "claude-code"]).code, 0);
    let [alone, status, doctor] = guarded.said();
    assert!(alone.stdout.contains("The last event came from Claude Code less than a minute ago."), "{alone:?}");
    assert!(alone.stdout.contains("not guarded") && status.stdout.contains("not guarded"), "{alone:?} {status:?}");
    assert!(doctor.code == 1 && doctor.stdout.contains("it is not guarded"), "{doctor:?}");
}

#[test]
fn every_way_to_switch_hooks_off_is_said() {
    let guarded = Guarded::installed();
    guarded.event();
    guarded.assert_protected("at first");
    let (lab, off) = (&guarded.0, "{\"disableAllHooks\": true}");
    let (project, etc) = (lab.work.join(".claude"), lab.etc().join("claude-code"));
    let files = [
        (project.join("settings.json"), off, "`disableAllHooks` is set in ", "not-guarded"),
        (project.join("settings.local.json"), off, "settings.local.json: no hook runs", "not-guarded"),
        (etc.join("managed-settings.json"), off, "managed-settings.json: no hook runs", "not-guarded"),
        (
            etc.join("managed-settings.json"),
            "{\"allowManagedHooksOnly\": true}",
            "`allowManagedHooksOnly` is set in ",
            "not-guarded",
        ),
        (etc.join("managed-settings.d/10.json"), off, "10.json: no hook runs", "not-guarded"),
        (project.join("settings.json"), "{\"disableAllHooks\": ", "cannot determine whether hooks run", "cannot-tell"),
        (etc.join("managed-settings.json"), "hooks: off", "cannot determine whether hooks run", "cannot-tell"),
    ];
    for (path, text, reason, state) in files {
        let when = format!("{}: {text}", path.display());
        put(&path, text);
        let word = if state == "cannot-tell" { "cannot tell" } else { "not guarded" };
        guarded.assert_not(&when, word, reason, state);
        std::fs::remove_file(&path).unwrap();
        guarded.assert_protected(&when);
    }
}

#[test]
fn hooks_that_call_no_program_or_another_one_guard_nothing() {
    let guarded = Guarded::installed();
    guarded.event();
    let file = guarded.0.home.join(".claude/settings.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let elsewhere = guarded.0.root().join("piton");
    let piton = env!("CARGO_BIN_EXE_piton");
    std::fs::write(&file, text.replace(piton, elsewhere.to_str().unwrap())).unwrap();
    let missing = "which does not exist or cannot be run";
    guarded.assert_not("moved away", "not guarded", missing, "not-guarded");
    std::fs::write(&elsewhere, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&elsewhere, PermissionsExt::from_mode(0o600)).unwrap();
    guarded.assert_not("not executable", "not guarded", missing, "not-guarded");
    std::fs::set_permissions(&elsewhere, PermissionsExt::from_mode(0o700)).unwrap();
    guarded.assert_not("another build", "not guarded", "a different build of piton", "not-guarded");
    std::fs::write(&file, &text).unwrap();
    guarded.assert_protected("put right");
}

#[test]
fn codex_and_its_administrator() {
    let guarded = Guarded::installed();
    let lab = &guarded.0;
    assert_eq!(lab.piton(&["uninstall", "claude-code"]).code, 0);
    std::fs::remove_dir_all(lab.home.join(".claude")).unwrap();
    std::fs::create_dir_all(lab.home.join(".codex")).unwrap();
    assert_eq!(lab.piton(&["install", "codex"]).code, 0);
    let hooks = lab.home.join(".codex/hooks.json").canonicalize().unwrap();
    let events = [
        "session_start",
        "user_prompt_submit",
        "pre_tool_use",
        "post_tool_use",
        "subagent_stop",
        "stop",
        "session_end",
    ];
    let state =
        events.map(|event| format!("[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"x\"\n", hooks.display()));
    put(&lab.home.join(".codex/config.toml"), &state.concat());
    let waits = || lab.piton(&[]).stdout.contains("  Codex  installed, not used yet\n");
    assert!(waits(), "{:?}", lab.piton(&[]));
    let required = lab.etc().join("codex/requirements.toml");
    for (text, word, reason, state) in [
        ("# all\nallow_managed_hooks_only = true\n", "not guarded", "`allow_managed_hooks_only` is set", "not-guarded"),
        ("[features]\nhooks = false\n", "not guarded", "switched off in `[features]`", "not-guarded"),
        ("allow_managed_hooks_only = maybe\n", "cannot tell", "it is not TOML", "cannot-tell"),
    ] {
        put(&required, text);
        guarded.assert_not(text, word, reason, state);
    }
    put(&required, "allow_managed_hooks_only = false # \"true\"\n");
    assert!(waits(), "{:?}", lab.piton(&[]));
}

#[test]
fn a_store_that_cannot_be_written_guards_nothing() {
    let guarded = Guarded::installed();
    guarded.event();
    let home = guarded.0.home.join("piton");
    let workspace = std::fs::read_dir(home.join("workspaces")).unwrap().next().unwrap().unwrap().path();
    let refs = home.join("store.git/refs/piton").join(workspace.file_name().unwrap());
    let chattr = |flag: &str, path: &Path| {
        let done = Command::new("chattr").args(["-R", flag]).arg(path).output();
        done.map(|done| done.status.success())
    };
    guarded.0.piton(&["daemon", "stop"]);
    for path in [&home, &home.join("store.git/objects"), &refs, &home.join("local.git"), &workspace] {
        match chattr("+i", path) {
            Ok(true) => {}
            Ok(false) => return not_allowed("making files immutable"),
            Err(error) => return lacking(&format!("chattr ({error})")),
        }
        let told = std::panic::catch_unwind(|| {
            let when = path.display().to_string();
            guarded.assert_not(&when, "not guarded", "the store cannot be written", "not-guarded");
            let [alone, status, _] = guarded.said();
            assert_eq!((alone.code, status.code), (1, 1), "{when}");
            // A directory that is not known yet.
            let other = guarded.0.root().join("other");
            std::fs::create_dir_all(&other).unwrap();
            guarded.0.piton_in(&other, &[])
        });
        chattr("-i", path).unwrap();
        let other = told.unwrap();
        let is_common = path == &home || path.ends_with("objects");
        assert_eq!(other.code, if is_common { 1 } else { 3 }, "{}: {other:?}", path.display());
        guarded.assert_protected("writable again");
    }
    // The tries leave nothing behind.
    let left = Command::new("find").arg(&home).args(["-name", "*try*"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn a_sidecar_protects_as_long_as_it_is_connected() {
    let guarded = Guarded(Lab::new());
    let lab = &guarded.0;
    lab.write("a.txt", "a");
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({ "type": "hello", "client": "my harness", "workspace": lab.work }));
    let status = sidecar.ask(json!({ "type": "status" }));
    let door = &status["protection"]["doors"][0];
    assert_eq!((&status["protection"]["state"], &door["door"]), (&json!("protected"), &json!("sidecar")), "{status}");
    let alone = lab.piton(&[]);
    assert!(
        alone.stdout.contains("is protected")
            && alone.stdout.contains("  my harness (sidecar)  ok  last event less than"),
        "{alone:?}"
    );
    assert_eq!(lab.piton(&["off"]).code, 0);
    assert_eq!(sidecar.ask(json!({ "type": "status" }))["protection"]["state"], "not-guarded");
    let off = lab.piton(&["status"]).stdout;
    assert!(off.contains("is not guarded") && off.contains("FAIL  the guard is off until a person"), "{off}");
    assert_eq!(lab.piton(&["doctor"]).code, 1);
    assert_eq!(lab.piton(&["on"]).code, 0);
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(guarded.state(), "not-guarded");
}
