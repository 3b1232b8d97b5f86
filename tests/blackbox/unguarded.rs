//! Actions that run without a checkpoint: reported at once, kept until the store can be written, and listed until they are read.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use piton::sys::fs::lock::{FileLock, Mode};
use serde_json::{Value, json};

use super::disks::{CHECK, mounted, passes};
use super::support::{Lab, not_allowed};

/// A payload of Claude Code before a command.
fn payload(lab: &Lab, turn: &str, command: &str) -> String {
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": turn, "cwd": lab.work,
        "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": turn });
    payload.to_string()
}

/// The unguarded actions, as three verbs list them.
fn listed(lab: &Lab) -> Vec<Value> {
    let all = ["status", "list", "turns"].map(|verb| lab.piton(&[verb, "--json"]).json()["unguarded"].clone());
    assert!(all[0] == all[1] && all[1] == all[2], "{all:?}");
    all[0].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_full_disk_is_not_forgotten() {
    let lab = Lab::new();
    lab.write("src/a", "1");
    lab.write("before", payload(&lab, "t", "rm -rf src"));
    lab.write(
        "start",
        json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go",
        "prompt_id": "u", "cwd": lab.work })
        .to_string(),
    );
    passes(mounted(
        &lab,
        &format!(
            r#"{CHECK}
            mkdir "$ROOT/small"; mount -t tmpfs -o size=4m none "$ROOT/small"; export PITON_HOME="$ROOT/small/piton"
            "$PITON" checkpoint one >/dev/null
            for alone in "" --no-daemon; do
                echo "$alone" > src/b
                cat /dev/zero > "$ROOT/small/fill" 2>/dev/null || true
                # The model and the person read it at once.
                "$PITON" hook claude-code PreToolUse $alone < before > said
                grep -q '"additionalContext":"piton: not protected: no checkpoint' said
                grep -q '"systemMessage":"piton: no checkpoint before this action' said
                "$PITON" daemon stop >/dev/null 2>&1 || true
                # Killed or ended, it is not forgotten, with and without space.
                code 1 'rm -rf src' "$PITON" status
                rm "$ROOT/small/fill"
                for verb in status list turns; do code 0 'rm -rf src' "$PITON" $verb; done
                code 0 'Not protected: 1 action ran' "$PITON"
                code 1 'unguarded' "$PITON" doctor
                "$PITON" hook claude-code UserPromptSubmit $alone < start > /dev/null
                "$PITON" daemon stop >/dev/null 2>&1 || true
                [ -z "$(ls "$XDG_RUNTIME_DIR/piton")" ]
                [ "$(grep -c 'rm -rf src' "$PITON_HOME"/workspaces/*/unguarded)" = 1 ]
                # A person who has read it removes the record.
                rm "$PITON_HOME"/workspaces/*/unguarded
                for verb in status list turns; do
                    "$PITON" $verb > said; if grep -q 'rm -rf src:' said; then cat said; exit 1; fi
                done
            done"#
        ),
    ));
}

#[test]
fn a_late_checkpoint_is_kept_before_the_client_is_answered() {
    let lab = Lab::new();
    lab.write("src/a", "1");
    lab.take("first");
    lab.write("src/b", "2");
    let workspace = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap().next().unwrap().unwrap().path();
    let lock = FileLock::acquire(&workspace.join("lock"), Mode::Exclusive, "testing", Duration::ZERO).unwrap();
    let script = format!("'{}' hook claude-code PreToolUse --no-daemon", env!("CARGO_BIN_EXE_piton"));
    lab.set("deadline_ms: 200\n");
    let said = run(&lab, &script, &payload(&lab, "t", "make; rm -rf src"), |_| {});
    assert!(said.contains("no checkpoint before this action"), "{said}");
    // The engine still waits for the lock, and has written it down before it answered.
    let kept = std::fs::read_dir(lab.run().join("piton")).unwrap().flatten().map(|entry| entry.path());
    let kept: Vec<PathBuf> = kept.collect();
    assert!(matches!(&kept[..], [one] if std::fs::read_to_string(one).unwrap().contains("\"late\"")), "{kept:?}");
    drop(lock);
    let listed = listed(&lab);
    assert!(listed.len() == 1 && listed[0]["status"] == "late" && listed[0]["turn"] == "t", "{listed:?}");
}

/// Runs a line of a shell with an input, and returns what it printed.
fn run(lab: &Lab, script: &str, input: &str, change: impl FnOnce(&mut Command)) -> String {
    use std::io::Write;
    let mut command = lab.command("/bin/sh", &lab.work);
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    change(&mut command);
    let mut child = command.spawn().unwrap();
    // A program that cannot be started reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Installs the hooks of Claude Code with a program of its own, and returns the command before a tool.
fn installed(lab: &Lab, program: &Path) -> String {
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::create_dir_all(lab.home.join(".claude")).unwrap();
    // By another process: while this one writes a program, a child of another test may have it open, and it cannot be run.
    lab.sh(&format!("cp '{}' \"{}\"", env!("CARGO_BIN_EXE_piton"), program.display()));
    let done = lab.command(program.to_str().unwrap(), &lab.work).args(["install", "claude-code"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let settings = std::fs::read_to_string(lab.home.join(".claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
}

#[test]
fn a_program_that_is_gone_is_noted_by_the_line_of_its_hook() {
    let lab = Lab::new();
    lab.write("src/a", "1");
    lab.take("first");
    let program = lab.root().join("bin of it's/piton");
    let line = installed(&lab, &program);
    let before = payload(&lab, "t", "rm -rf src");
    std::fs::remove_file(&program).unwrap();
    assert_eq!(run(&lab, &line, &before, |_| {}), "");
    // Two at once, a torn line, bytes of no text, and a line that is too long.
    let both = format!("({line}) & ({line}) & wait");
    run(&lab, &both, &before, |_| {});
    std::fs::write(&program, "").unwrap();
    run(&lab, &line, &before, |_| {});
    let dir = lab.run().join("piton");
    std::fs::write(dir.join("unstarted.1"), "1700000000 7 claude-code PreT\n").unwrap();
    std::fs::write(dir.join("unstarted.2"), [&b"\x1b[2J\xff"[..], &[b'x'; 1 << 20], b"\n"].concat()).unwrap();
    // Links and directories are left alone.
    symlink(lab.home.join("config"), dir.join("unstarted.3")).unwrap();
    std::fs::create_dir(dir.join("unstarted.4")).unwrap();
    let listed = listed(&lab);
    let commands: Vec<&str> = listed.iter().map(|item| item["command"].as_str().unwrap()).collect();
    assert_eq!(commands.iter().filter(|command| **command == "claude-code PreToolUse").count(), 4, "{commands:?}");
    assert_eq!(commands.iter().filter(|command| command.starts_with("unknown: ")).count(), 2, "{commands:?}");
    assert!(commands.iter().all(|command| command.chars().count() < 300 && !command.contains('\x1b')), "{commands:?}");
    assert!(dir.join("unstarted.3").symlink_metadata().is_ok() && dir.join("unstarted.4").is_dir());
    let said = lab.piton(&["status"]).stdout;
    assert!(said.contains("claude-code PreToolUse: piton could not be started") && !said.contains('\x1b'), "{said}");
    // Another workspace has none of it.
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    assert!(lab.piton_in(&other, &["status", "--json"]).json()["unguarded"].is_null());
}

#[test]
fn the_first_event_reports_what_ran_while_the_program_was_gone() {
    let lab = Lab::new();
    lab.write("src/a", "1");
    lab.take("first");
    let program = lab.root().join("bin/piton");
    let line = installed(&lab, &program);
    std::fs::rename(&program, program.with_extension("away")).unwrap();
    run(&lab, &line, &payload(&lab, "t", "rm -rf src"), |_| {});
    std::fs::rename(program.with_extension("away"), &program).unwrap();
    let line = line.replace("PreToolUse ||", "PreToolUse --no-daemon ||");
    let said = run(&lab, &line, &payload(&lab, "u", "ls"), |_| {});
    assert!(said.contains("1 action ran without a checkpoint since"), "{said}");
    let again = run(&lab, &line, &payload(&lab, "u", "ls"), |_| {});
    assert!(!again.contains("without a checkpoint"), "{again}");
    assert_eq!(listed(&lab).len(), 1);
}

#[test]
fn a_runtime_directory_of_another_user_is_not_used() {
    let lab = Lab::new();
    lab.write("src/a", "1");
    lab.take("first");
    let line = installed(&lab, &lab.root().join("bin/piton"));
    std::fs::remove_file(lab.root().join("bin/piton")).unwrap();
    let foreign = lab.root().join("foreign");
    std::fs::create_dir_all(foreign.join("piton")).unwrap();
    std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(foreign.join("piton/unstarted.9"), format!("1700000000 7 a b {}\n", lab.work.display())).unwrap();
    for path in [foreign.join("piton/unstarted.9"), foreign.join("piton"), foreign.clone()] {
        if chown(&path, Some(65534), Some(65534)).is_err() {
            not_allowed("giving files to others");
            return;
        }
    }
    let there = |command: &mut Command| {
        command.env("XDG_RUNTIME_DIR", &foreign);
    };
    run(&lab, &line, &payload(&lab, "t", "rm -rf src"), there);
    let names = std::fs::read_dir(foreign.join("piton")).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["unstarted.9"]);
    // It went to the directory for users without one; a line of another user is not read.
    let mut status = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let said = status.args(["status", "--json"]).env("XDG_RUNTIME_DIR", &foreign).output().unwrap();
    let said: Value = serde_json::from_slice(&said.stdout).unwrap();
    let commands: Vec<&Value> = said["unguarded"].as_array().unwrap().iter().map(|item| &item["command"]).collect();
    assert_eq!(commands, ["claude-code PreToolUse"]);
}

#[test]
fn refused_memory_leaves_a_checkpoint_or_a_record() {
    let lab = Lab::new();
    lab.write("src/a", "1");
    lab.take("first");
    let line = installed(&lab, &lab.root().join("bin/piton")).replace("PreToolUse ||", "PreToolUse --no-daemon ||");
    let count = || lab.piton(&["list", "--json"]).json()["total"].as_u64().unwrap() as usize + listed(&lab).len();
    for (turn, megabytes) in [8, 30, 50, 60, 70, 90, 120, 200, 300, 500].into_iter().enumerate() {
        lab.write("src/b", format!("{turn}"));
        let before = count();
        let script = format!("ulimit -v {}; {line}", megabytes * 1024);
        run(&lab, &script, &payload(&lab, &turn.to_string(), "rm -rf src"), |_| {});
        assert!(count() > before, "{megabytes} MB");
    }
}
