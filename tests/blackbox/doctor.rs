//! `piton doctor`: each finding is provoked in a real home; what it says mends it is done, and the finding is gone.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::*;

/// A lab whose daemon ends with it.
struct Clinic {
    lab: Lab,
}

impl Clinic {
    fn new() -> Clinic {
        let lab = Lab::new();
        lab.write("a.txt", "one\n");
        Clinic { lab }
    }

    /// Exit code and rows.
    fn ask(&self) -> (i32, Vec<Value>) {
        let output = self.lab.piton(&["doctor", "--json"]);
        let told = output.json();
        let rows = told["rows"].as_array().unwrap_or_else(|| panic!("{output:?}")).clone();
        assert_eq!(told["well"], !rows.iter().any(|row| row["state"] == "wrong"), "{told}");
        for row in &rows {
            let wrong = row["state"] == "wrong";
            assert_eq!(row["mend"]["command"].is_string() || row["mend"]["step"].is_string(), wrong, "{row}");
        }
        (output.code, rows)
    }

    /// The row about `about` whose text has `part`, if it is told.
    fn row(&self, about: &str, part: &str) -> Option<Value> {
        let rows = self.ask().1;
        rows.into_iter().find(|row| row["about"] == about && row["text"].as_str().unwrap().contains(part))
    }

    /// Runs a line as a person would type it.
    fn shell(&self, line: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_piton")).parent().unwrap();
        let mut command = self.lab.command("/bin/sh", &self.lab.work);
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", program.display()));
        let output = command.args(["-c", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }

    fn home(&self, path: &str) -> PathBuf {
        self.lab.home.join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.home(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.home(path)).unwrap()
    }

    fn only_entry(&self, dir: &str, suffix: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.home(dir)).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }
}

impl Drop for Clinic {
    fn drop(&mut self) {
        self.lab.piton(&["daemon", "stop"]);
    }
}

fn mode(path: impl AsRef<Path>, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// One finding.
struct Case {
    name: &'static str,
    provoke: fn(&Clinic),
    about: &'static str,
    says: &'static str,
    /// The exit code while it stands.
    code: i32,
    /// The step where no command is told.
    step: Option<fn(&Clinic)>,
}

const fn by_command(
    name: &'static str,
    provoke: fn(&Clinic),
    about: &'static str,
    says: &'static str,
    code: i32,
) -> Case {
    Case { name, provoke, about, says, code, step: None }
}

const fn by_hand(
    name: &'static str,
    provoke: fn(&Clinic),
    about: &'static str,
    says: &'static str,
    step: fn(&Clinic),
) -> Case {
    Case { name, provoke, about, says, code: 1, step: Some(step) }
}

fn check(cases: &[Case]) {
    for case in cases {
        let clinic = Clinic::new();
        (case.provoke)(&clinic);
        let (code, rows) = clinic.ask();
        let found = rows.iter().find(|row| {
            row["about"] == case.about && row["state"] == "wrong" && row["text"].as_str().unwrap().contains(case.says)
        });
        let found = found.unwrap_or_else(|| panic!("{}: {rows:#?}", case.name));
        assert_eq!(code, case.code, "{}: {rows:#?}", case.name);
        match (case.step, found["mend"]["command"].as_str()) {
            (None, Some(command)) => clinic.shell(command),
            (Some(step), None) => step(&clinic),
            (_, told) => panic!("{}: {told:?}", case.name),
        }
        let (code, rows) = clinic.ask();
        let wrong: Vec<&Value> = rows.iter().filter(|row| row["state"] == "wrong").collect();
        assert!(code == 0 && wrong.is_empty(), "{}, mended: {wrong:#?}", case.name);
    }
}

#[test]
fn a_home_without_anything_wrong() {
    let clinic = Clinic::new();
    clinic.put(".claude/settings.json", "{}\n");
    clinic.lab.take("first");
    assert_eq!(clinic.lab.piton(&["install", "claude-code"]).code, 0);
    let (code, rows) = clinic.ask();
    assert_eq!(code, 0, "{rows:#?}");
    let tried = rows.iter().find(|row| row["about"] == "claude-code").unwrap();
    assert!(tried["text"].as_str().unwrap().contains("took a checkpoint"), "{tried}");
    let text = clinic.lab.piton(&["doctor"]);
    assert!(text.code == 0 && text.stdout.contains("\nNothing is wrong. ") && text.stderr.is_empty(), "{text:?}");
    // Trying a hook leaves nothing: no checkpoint, no workspace, no mishap.
    let known = std::fs::read_dir(clinic.home("piton/workspaces")).unwrap().count();
    assert_eq!((known, clinic.lab.piton(&["list", "--json"]).json()["total"].as_u64()), (1, Some(1)));
    assert!(!clinic.home("piton/daemon").exists());
}

#[test]
fn nothing_is_made_by_looking() {
    let clinic = Clinic::new();
    assert_eq!(clinic.ask().0, 0);
    assert_eq!(std::fs::read_dir(clinic.home("piton")).unwrap().count(), 0);
}

#[test]
fn what_everything_stands_on() {
    check(&[
        by_command(
            "an open home",
            |at| {
                at.lab.take("first");
                mode(at.home("piton"), 0o755);
            },
            "home",
            "mode 755",
            1,
        ),
        by_command(
            "an open store",
            |at| {
                at.lab.take("first");
                mode(at.lab.store(), 0o750);
            },
            "store",
            "mode 750",
            1,
        ),
    ]);
}

/// More objects than are kept one by one.
fn packed(at: &Clinic) {
    for i in 0..100 {
        at.lab.write(&format!("f{i}"), format!("{i}\n"));
    }
    at.lab.take("packed");
}

fn a_ref(at: &Clinic, content: &str) {
    let n = at.lab.take("first");
    let workspace = at.only_entry("piton/workspaces", "");
    let workspace = workspace.file_name().unwrap().to_str().unwrap();
    let dir = at.lab.store().join("refs/piton").join(workspace).join("manual");
    assert!(dir.join(n.to_string()).is_file(), "{}", dir.display());
    std::fs::write(dir.join("99"), content).unwrap();
}

#[test]
fn the_store_and_the_records() {
    check(&[
        by_command(
            "a pack without its index",
            |at| {
                packed(at);
                std::fs::remove_file(at.only_entry("piton/store.git/objects/pack", ".idx")).unwrap();
            },
            "store",
            "has no index",
            6,
        ),
        by_command(
            "an index without its pack",
            |at| {
                packed(at);
                let index = at.only_entry("piton/store.git/objects/pack", ".idx");
                std::fs::copy(&index, index.with_file_name(format!("pack-{}.idx", "0".repeat(40)))).unwrap();
            },
            "store",
            "is the index of a missing pack",
            6,
        ),
        by_command("a torn ref", |at| a_ref(at, "4270a8"), "store", "is broken", 6),
        by_command("a ref to nothing", |at| a_ref(at, &format!("{}\n", "1".repeat(40))), "store", "is missing", 6),
        by_command(
            "an interrupted restore",
            |at| {
                let n = at.lab.take("first");
                at.lab.write("a.txt", "two\n");
                at.lab.restore(n, &[]);
                let journal = at.only_entry("piton/workspaces", "").join("journal");
                let bytes = std::fs::read(&journal).unwrap();
                let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
                std::fs::write(&journal, &bytes[..=last]).unwrap();
            },
            "restore",
            "was interrupted",
            1,
        ),
        by_command(
            "a log that a power cut has left",
            |at| {
                let mut sidecar = Sidecar::start(&at.lab, &[]);
                let reply = sidecar.ask(json!({ "type": "checkpoint.create", "label": "x" }));
                assert_eq!(reply["ok"], true, "{reply}");
                drop(sidecar);
                let log = at.only_entry("piton/workspaces", "").join("log");
                assert!(log.metadata().unwrap().len() > 0);
                at.put("piton/boot", "another\n");
            },
            "logs",
            "not applied yet",
            1,
        ),
        by_command(
            "a mishap of a hook",
            |at| assert_eq!(at.lab.piton(&["hook", "nobody", "Nothing"]).code, 0),
            "mishaps",
            "1 error of hooks",
            1,
        ),
        by_hand(
            "a record that cannot be read",
            |at| {
                at.lab.take("first");
                at.put("piton/workspaces/0123/workspace.json", "{");
            },
            "workspaces",
            "cannot read the record",
            |at| std::fs::remove_dir_all(at.home("piton/workspaces/0123")).unwrap(),
        ),
    ]);
    let clinic = Clinic::new();
    clinic.lab.take("first");
    let config = clinic.get("piton/store.git/config");
    // Without the sum that proves this version's own.
    let newer = config.replace("format = 3", "format = 99");
    clinic.put("piton/store.git/config", &newer[..newer.find("# piton: sum").unwrap()]);
    let (code, rows) = clinic.ask();
    let newer = rows.iter().find(|row| row["about"] == "store").unwrap();
    assert!(code == 6 && newer["text"].as_str().unwrap().contains("newer piton"), "{newer}");
}

#[test]
fn settings_and_guards() {
    check(&[
        by_hand(
            "a mistake in the user's file",
            |at| at.lab.set_only("guard: maybe\n"),
            "settings",
            "config.yaml:1",
            |at| at.lab.set_only("guard: action\n"),
        ),
        by_hand(
            "a mistake in the workspace's file",
            |at| at.lab.write(".piton.yaml", "no_such: 1\n"),
            "settings",
            "is not a key",
            |at| at.lab.write(".piton.yaml", ""),
        ),
        by_hand(
            "a rule that cannot be",
            |at| at.lab.set_only("rules: [1]\n"),
            "settings",
            "rules",
            |at| at.lab.set_only(""),
        ),
        by_command(
            "settings nobody trusts yet",
            |at| at.lab.write(".piton.yaml", "exclude: ['*.iso']\n"),
            "settings",
            "config trust",
            1,
        ),
        by_command(
            "a guard that is switched off",
            |at| assert_eq!(at.lab.piton(&["off"]).code, 0),
            "guard",
            "is switched off",
            1,
        ),
        by_hand(
            "a guard that is set off",
            |at| at.lab.set_only("guard: off\n"),
            "guard",
            "`guard: off`",
            |at| at.lab.set_only(""),
        ),
    ]);
}

/// Something that has taken the daemon's place.
fn impostor(at: &Clinic, line: Option<String>) {
    std::fs::create_dir_all(at.home("piton/daemon")).unwrap();
    mode(at.home("piton"), 0o700);
    mode(at.home("piton/daemon"), 0o700);
    let socket = at.home("piton/daemon/socket");
    let listener = UnixListener::bind(&socket).unwrap();
    mode(&socket, 0o600);
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if let Some(line) = &line {
                // A client that hung up wants no more lines.
                let _ = writeln!(stream, "{line}");
            }
            silent.push(stream);
        }
    });
}

fn started(at: &Clinic) {
    assert_eq!(at.lab.piton(&["daemon", "start"]).code, 0);
}

#[test]
fn the_daemon() {
    check(&[
        by_command(
            "an open directory",
            |at| {
                started(at);
                mode(at.home("piton/daemon"), 0o755);
            },
            "daemon",
            "mode 755",
            1,
        ),
        by_command(
            "an open socket",
            |at| {
                started(at);
                mode(at.home("piton/daemon/socket"), 0o666);
            },
            "daemon",
            "mode 666",
            1,
        ),
        by_command(
            "a dead one's socket",
            |at| {
                std::fs::create_dir_all(at.home("piton/daemon")).unwrap();
                mode(at.home("piton"), 0o700);
                mode(at.home("piton/daemon"), 0o700);
                drop(UnixListener::bind(at.home("piton/daemon/socket")).unwrap());
                mode(at.home("piton/daemon/socket"), 0o600);
            },
            "daemon",
            "was killed",
            1,
        ),
        by_command(
            "no room for one",
            |at| {
                at.put("piton/daemon", "not a directory");
                mode(at.home("piton"), 0o700);
            },
            "daemon",
            "is not a directory",
            1,
        ),
        by_hand(
            "somebody who does not greet",
            |at| impostor(at, None),
            "daemon",
            "does not answer",
            |at| std::fs::remove_file(at.home("piton/daemon/socket")).unwrap(),
        ),
    ]);
    let clinic = Clinic::new();
    started(&clinic);
    assert!(clinic.row("daemon", "it is running").is_some());
    assert_eq!(clinic.lab.piton(&["daemon", "stop"]).code, 0);
    assert!(clinic.row("daemon", "none is running").is_some());
    // One of another build is told, and not sent away by looking.
    let mut other = clinic.lab.command("sleep", &clinic.lab.work).arg("60").spawn().unwrap();
    let greeting = json!({ "v": 1, "type": "daemon", "ok": true, "build": "another", "built_at": 0, "pid": other.id(),
        "since": "2026-01-01T00:00:00.000Z", "clients": 1 });
    impostor(&clinic, Some(greeting.to_string()));
    let told = clinic.row("daemon", "a different build").unwrap();
    assert_eq!(told["mend"]["command"], "piton daemon stop");
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}

fn installed(at: &Clinic, client: &str, dir: &str) {
    std::fs::create_dir_all(at.home(dir)).unwrap();
    let output = at.lab.piton(&["install", client]);
    assert_eq!(output.code, 0, "{output:?}");
}

/// As Codex writes down that a person trusts the hooks of a file.
fn trusted_by_codex(at: &Clinic) {
    let file = at.home(".codex/hooks.json").canonicalize().unwrap();
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
        events.map(|event| format!("[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:00\"\n", file.display()));
    at.put(".codex/config.toml", &format!("model = \"x\"\n\n{}", state.join("\n")));
}

#[test]
fn hooks_of_clients() {
    check(&[
        by_command(
            "a client without hooks",
            |at| at.put(".claude/settings.json", "{}"),
            "claude-code",
            "has no piton hooks",
            1,
        ),
        by_command(
            "hooks of a program that went away",
            |at| {
                let old = at.lab.root().join("old/piton");
                std::fs::create_dir(old.parent().unwrap()).unwrap();
                at.shell(&format!("cp {} {}", env!("CARGO_BIN_EXE_piton"), old.display()));
                std::fs::create_dir(at.home(".claude")).unwrap();
                at.shell(&format!("{} install claude-code", old.display()));
                std::fs::remove_file(old).unwrap();
            },
            "claude-code",
            "old/piton, which does not exist",
            1,
        ),
        by_command(
            "hooks of another piton",
            |at| {
                let other = at.lab.root().join("piton");
                at.shell(&format!("cp {} {}", env!("CARGO_BIN_EXE_piton"), other.display()));
                std::fs::create_dir(at.home(".qwen")).unwrap();
                at.shell(&format!("{} install qwen-code", other.display()));
            },
            "qwen-code",
            "a different build of piton",
            1,
        ),
        by_command(
            "an event that lacks",
            |at| {
                installed(at, "gemini-cli", ".gemini");
                let text =
                    at.get(".gemini/settings.json").replace("hook gemini-cli BeforeTool", "hook gemini-cli Gone");
                at.put(".gemini/settings.json", &text);
            },
            "gemini-cli",
            "some hooks are missing",
            1,
        ),
        by_command(
            "a command that was removed",
            |at| {
                installed(at, "cursor", ".cursor");
                std::fs::remove_file(at.home(".cursor/commands/undo.md")).unwrap();
            },
            "cursor",
            "undo.md differs",
            1,
        ),
        by_command(
            "hooks from before failures were to hold",
            |at| {
                installed(at, "claude-code", ".claude");
                at.lab.set("on_failure: hold\n");
            },
            "claude-code",
            "`on_failure` is `hold`, but",
            1,
        ),
        by_command(
            "hooks that hold after failures, though that is not wanted any more",
            |at| {
                at.lab.set("on_failure: hold\n");
                installed(at, "claude-code", ".claude");
                assert!(at.get(".claude/settings.json").contains("\"onFailure\": \"block\""));
                at.lab.set("");
            },
            "claude-code",
            "blocks actions if piton cannot be run",
            1,
        ),
        by_command(
            "an old shim",
            |at| {
                installed(at, "pi", ".pi");
                let path = ".pi/agent/extensions/piton.ts";
                at.put(path, &format!("{}\n// older\n", at.get(path)));
            },
            "pi",
            "differs from what this piton writes",
            1,
        ),
        by_command(
            "a script that cannot be run",
            |at| {
                installed(at, "cline", ".cline");
                mode(at.home(".cline/hooks/PreToolUse"), 0o600);
            },
            "cline",
            "is not executable",
            1,
        ),
        by_command(
            "hooks of a project",
            |at| {
                at.lab.write(".git/HEAD", "ref: refs/heads/main\n");
                assert_eq!(at.lab.piton(&["install", "--project", "claude-code"]).code, 0);
                std::fs::remove_file(at.lab.work.join(".claude/commands/rollback.md")).unwrap();
            },
            "claude-code (project)",
            "rollback.md differs",
            1,
        ),
        by_hand(
            "settings that cannot be read",
            |at| {
                installed(at, "droid", ".factory");
                let text = at.get(".factory/settings.json");
                at.put(".factory/settings.json", &text[..text.len() - 4]);
            },
            "droid",
            "settings.json",
            |at| {
                std::fs::remove_file(at.home(".factory/settings.json")).unwrap();
                installed(at, "droid", ".factory");
            },
        ),
        by_hand(
            "a link to nowhere",
            |at| {
                std::fs::create_dir(at.home(".claude")).unwrap();
                symlink("nowhere", at.home(".claude/settings.json")).unwrap();
            },
            "claude-code",
            "leads nowhere",
            |at| {
                std::fs::remove_file(at.home(".claude/settings.json")).unwrap();
                installed(at, "claude-code", ".claude");
            },
        ),
    ]);
}

#[test]
fn what_clients_have_against_hooks() {
    check(&[
        by_hand(
            "all hooks off in Claude Code",
            |at| {
                at.put(".claude/settings.json", "{\n  // mine\n  \"disableAllHooks\": true,\n}\n");
                installed(at, "claude-code", ".claude");
            },
            "claude-code",
            "`disableAllHooks`",
            |at| {
                at.put(
                    ".claude/settings.json",
                    &at.get(".claude/settings.json").replace("\"disableAllHooks\": true,", ""),
                );
            },
        ),
        by_hand(
            "hooks that Codex does not trust",
            |at| installed(at, "codex", ".codex"),
            "codex",
            "Codex ignores piton's hooks until you trust them",
            trusted_by_codex,
        ),
        by_hand(
            "one hook that Codex does not trust",
            |at| {
                installed(at, "codex", ".codex");
                trusted_by_codex(at);
                let text = at
                    .get(".codex/config.toml")
                    .replace("pre_tool_use:0:0\"]\n", "pre_tool_use:0:0\"]\nenabled = false\n");
                at.put(".codex/config.toml", &text);
            },
            "codex",
            "Codex ignores piton's hooks of PreToolUse until you trust them",
            trusted_by_codex,
        ),
        by_hand(
            "hooks that are off in Codex",
            |at| {
                installed(at, "codex", ".codex");
                trusted_by_codex(at);
                at.put(
                    ".codex/config.toml",
                    &format!("[features]\nhooks = false # no\n\n{}", at.get(".codex/config.toml")),
                );
            },
            "codex",
            "[features]",
            trusted_by_codex,
        ),
        by_hand(
            "hooks that are off in Gemini CLI",
            |at| {
                at.put(".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}");
                installed(at, "gemini-cli", ".gemini");
            },
            "gemini-cli",
            "`hooksConfig.enabled`",
            |at| at.put(".gemini/settings.json", &at.get(".gemini/settings.json").replace("false", "true")),
        ),
        by_hand(
            "a folder that Gemini CLI does not trust",
            |at| {
                at.lab.write(".git/HEAD", "ref: refs/heads/main\n");
                at.put(".gemini/settings.json", "{\"security\": {\"folderTrust\": {\"enabled\": true}}}");
                installed(at, "gemini-cli", ".gemini");
                assert_eq!(at.lab.piton(&["install", "--project", "gemini-cli"]).code, 0);
            },
            "gemini-cli (project)",
            "does not trust this folder",
            |at| {
                at.put(
                    ".gemini/trustedFolders.json",
                    &json!({ at.lab.work.to_str().unwrap(): "TRUST_FOLDER" }).to_string(),
                );
            },
        ),
        by_hand(
            "hooks that Hermes Agent was not told of",
            |at| installed(at, "hermes-agent", ".hermes"),
            "hermes-agent",
            "does not allow the hooks",
            |at| {
                let events = [
                    "on_session_start",
                    "pre_llm_call",
                    "pre_tool_call",
                    "post_tool_call",
                    "subagent_start",
                    "subagent_stop",
                    "on_session_end",
                    "on_session_finalize",
                ];
                let program = env!("CARGO_BIN_EXE_piton");
                let pair =
                    |event: &str| json!({ "event": event, "command": format!("{program} hook hermes-agent {event}") });
                let list = json!({ "approvals": events.map(pair) });
                at.put(".hermes/shell-hooks-allowlist.json", &list.to_string());
            },
        ),
        by_hand(
            "hooks that Hermes Agent was not told of, all accepted",
            |at| installed(at, "hermes-agent", ".hermes"),
            "hermes-agent",
            "does not allow the hooks",
            |at| {
                at.put(
                    ".hermes/config.yaml",
                    &format!("hooks_auto_accept: true  # all\n{}", at.get(".hermes/config.yaml")),
                );
            },
        ),
    ]);
}

#[test]
fn a_hook_that_does_not_do_its_work_is_found_by_trying_it() {
    let clinic = Clinic::new();
    installed(&clinic, "claude-code", ".claude");
    installed(&clinic, "pi", ".pi");
    clinic.put("config/piton/config.yaml", "guard: off\n");
    for client in ["claude-code", "pi"] {
        let told = clinic.row(client, "took no checkpoint").unwrap();
        assert_eq!(told["state"], "wrong");
    }
    // Settings that nobody can read are said, and keep no hook from its work.
    clinic.put("config/piton/config.yaml", "guard: [\n");
    assert!(clinic.row("claude-code", "could not answer").is_none(), "{:#?}", clinic.ask());
    assert!(clinic.row("claude-code", "took no checkpoint").is_none(), "{:#?}", clinic.ask());
    assert_eq!(clinic.row("settings", "config.yaml:1").unwrap()["state"], "wrong");
    let settings = clinic.ask().1.iter().filter(|row| row["about"] == "settings").count();
    assert_eq!(settings, 1, "not wrong and well at once");
}

#[test]
fn who_has_gits_fsmonitor_is_told() {
    let clinic = Clinic::new();
    if git(&clinic.lab, &["init", "-q"]).is_none() {
        return;
    }
    assert_eq!(clinic.row("git", "`piton install git`").unwrap()["state"], "note");
    for (value, says) in [("/usr/bin/watcher hook", "another program (/usr/bin/watcher hook)"), ("true", "git's own")] {
        git(&clinic.lab, &["config", "core.fsmonitor", value]);
        assert_eq!(clinic.row("git", says).unwrap()["state"], "note");
    }
    git(&clinic.lab, &["config", "core.fsmonitor", "false"]);
    clinic.put(".gitconfig", "[core]\n\tfsmonitor = mine\n");
    assert_eq!(clinic.row("git", "`piton install git`").unwrap()["state"], "note");
    git(&clinic.lab, &["config", "--unset", "core.fsmonitor"]);
    assert_eq!(clinic.row("git", "another program (mine)").unwrap()["state"], "note");
}

#[test]
fn a_working_directory_that_is_gone_is_told() {
    let clinic = Clinic::new();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" doctor --json";
    let mut command = clinic.lab.command("/bin/sh", &clinic.lab.work);
    let output = command.args(["-c", script, env!("CARGO_BIN_EXE_piton")]).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let row = told["rows"].as_array().unwrap().iter().find(|row| row["about"] == "workspace").unwrap();
    assert_eq!((row["state"].as_str(), output.status.code()), (Some("wrong"), Some(1)), "{row}");
    assert!(row["text"].as_str().unwrap().contains("no workspace was checked"), "{row}");
}
