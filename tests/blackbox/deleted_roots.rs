//! Workspaces whose directory was deleted, and repositories that a turn took along: undo restores both, from anywhere.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Lab, Output, Sidecar, git, lacking, tree};

/// Acts as an agent whose only turn has one command, with a warm watcher. The command really runs.
fn turn(lab: &Lab, command: &str) -> Value {
    let mut sidecar = Sidecar::start(lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "one", "client": "tester", "workspace": lab.work}));
    sidecar.await_warm();
    sidecar.ask(json!({"type": "turn.start", "turn": "wreck"}));
    let reply = sidecar.ask(json!({"type": "shell.before", "command": command, "action": "a"}));
    assert_eq!(reply["proceed"], true, "{reply}");
    lab.sh(command);
    sidecar.ask(json!({"type": "shell.after", "action": "a"}));
    sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(sidecar.finish(), 0);
    reply
}

/// Makes a project without a repository, with permissions of its own.
fn project() -> Option<Lab> {
    let lab = Lab::lasting()?;
    lab.write("src/a.py", "a\n");
    lab.write("src/deep/b.py", "b\n");
    lab.write("run.sh", "#!/bin/sh\n");
    lab.write("pyproject.toml", "[project]\n");
    for (path, mode) in [("run.sh", 0o750), ("src/deep", 0o700), (".", 0o750)] {
        std::fs::set_permissions(lab.work.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    Some(lab)
}

fn root_mode(lab: &Lab) -> u32 {
    lab.work.metadata().unwrap().permissions().mode() & 0o7777
}

fn said(output: &Output) -> String {
    format!("{}{}", output.stdout, output.stderr)
}

#[test]
fn a_deleted_workspace_is_offered_above_it_and_comes_back_with_one_command() {
    for command in ["cd .. && rm -rf work", "rm -rf ../work", "find ../work -delete", "rm -rf \"$PWD\""] {
        let Some(lab) = project() else { return };
        let before = tree(&lab.work);
        turn(&lab, command);
        assert!(!lab.work.exists(), "{command}");
        let (root, at) = (lab.root(), lab.work.to_str().unwrap().to_owned());
        let offer = format!("piton undo --workspace {at}");
        for args in [&["undo"][..], &["list"]] {
            let offered = lab.piton_in(&root, args);
            assert!(said(&offered).contains(&offer), "{command}: {args:?} {offered:?}");
        }
        for args in
            [&["list"][..], &["status"], &["turns"], &["diff", "1"], &["diff", "--turn", "t-1"], &["undo", "--preview"]]
        {
            let args = [args, &["-w", &at]].concat();
            let output = lab.piton_in(&root, &args);
            assert_eq!(output.code, 0, "{command}: {args:?} {output:?}");
        }
        assert!(!lab.work.exists(), "{command}: looking makes nothing");
        let undone = lab.piton_in(&root, &["undo", "-w", &at, "--yes"]);
        assert_eq!(
            (undone.code, tree(&lab.work), root_mode(&lab)),
            (0, before.clone(), 0o750),
            "{command}: {undone:?}"
        );
        let redone = lab.piton_in(&root, &["redo", "-w", &at, "--yes"]);
        assert!(
            redone.code == 0 && said(&redone).contains("the directory of the workspace was not deleted"),
            "{redone:?}"
        );
        assert_eq!(std::fs::read_dir(&lab.work).unwrap().count(), 0, "{command}");
        assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
        assert_eq!(tree(&lab.work), before, "{command}, once more");
    }
}

#[test]
fn a_bare_undo_above_a_deleted_workspace_undoes_its_turn() {
    let Some(lab) = project() else { return };
    let before = tree(&lab.work);
    turn(&lab, "cd .. && rm -rf work");
    let preview = lab.piton_in(&lab.root(), &["undo", "--preview"]);
    assert!(preview.code == 0 && said(&preview).contains("src/a.py") && !lab.work.exists(), "{preview:?}");
    let undone = lab.piton_in(&lab.root(), &["undo", "--yes"]);
    assert_eq!((undone.code, tree(&lab.work), root_mode(&lab)), (0, before, 0o750), "{undone:?}");
    let back = format!("To reverse this: `piton redo --workspace {}`", lab.work.display());
    assert!(undone.stdout.contains(&back), "{undone:?}");
    assert_eq!(lab.piton_in(&lab.root(), &["undo", "--yes"]).code, 3, "it is not deleted any more");

    // Nothing of it is done in a workspace that is named.
    let Some(lab) = project() else { return };
    turn(&lab, "cd .. && rm -rf work");
    std::fs::create_dir(lab.root().join("named")).unwrap();
    let undone = lab.piton_in(&lab.root(), &["undo", "--yes", "--workspace", "named"]);
    assert!(undone.code == 3 && !lab.work.exists(), "{undone:?}");

    // A deletion by a person is no turn's, also where an older turn has deleted a file.
    let Some(lab) = project() else { return };
    turn(&lab, "rm run.sh");
    std::fs::remove_dir_all(&lab.work).unwrap();
    let undone = lab.piton_in(&lab.root(), &["undo", "--yes"]);
    assert!(undone.code == 3 && !lab.work.exists(), "{undone:?}");
}

#[test]
fn a_deleted_workspace_comes_back_in_the_deleted_directory_itself() {
    let Some(lab) = project() else { return };
    let before = tree(&lab.work);
    let piton = env!("CARGO_BIN_EXE_piton");
    let inside = |dir: &Path, script: &str| {
        let output = lab.command("/bin/sh", dir).args(["-c", script]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Output { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    };
    // A person deletes it, so that no turn has: the newest checkpoint is the one to restore.
    assert_eq!(lab.piton(&["checkpoint", "whole"]).code, 0);
    let script = format!("rm -rf ../../work; {piton} list && {piton} undo; {piton} restore --yes");
    let output = inside(&lab.work.join("src"), &script);
    assert_eq!((output.code, tree(&lab.work)), (0, before.clone()), "{output:?}");
    // The offer in the directory above names that command too.
    std::fs::remove_dir_all(&lab.work).unwrap();
    let offered = lab.piton_in(&lab.root(), &["list"]);
    assert!(said(&offered).contains(&format!("piton restore --workspace {}", lab.work.display())), "{offered:?}");
    let with_parent = lab.root().join("home");
    let restored = lab.piton_in(&with_parent, &["restore", "-w", "../work", "--yes"]);
    assert_eq!((restored.code, tree(&lab.work)), (0, before), "{restored:?}");
}

#[test]
fn a_moved_workspace_is_not_made_again_at_its_old_place() {
    let Some(lab) = project() else { return };
    assert_eq!(lab.piton(&["checkpoint", "whole"]).code, 0);
    let away = lab.root().join("away");
    std::fs::rename(&lab.work, &away).unwrap();
    let at = lab.work.to_str().unwrap();
    let refused = lab.piton_in(&lab.root(), &["restore", "-w", at, "--yes"]);
    assert_eq!((refused.code, lab.work.exists()), (3, false), "{refused:?}");
    assert!(!said(&lab.piton_in(&lab.root(), &["list"])).contains("was deleted"));
}

/// Returns what a person would miss of the repository at a path.
fn facts(lab: &Lab, at: &str) -> Vec<String> {
    let dir = lab.work.join(at);
    let run = |args: &[&str]| git(lab, &[&["-C", dir.to_str().unwrap()], args].concat()).unwrap();
    [&["fsck", "--full"][..], &["log", "--format=%H %s", "--all"], &["stash", "list"], &["rev-parse", "HEAD"]]
        .map(run)
        .to_vec()
}

/// Makes a workspace with a repository at a path; `None` without a git.
fn repository(at: &str) -> Option<Lab> {
    let lab = Lab::lasting()?;
    lab.write(&format!("{at}/src/a.py"), "a\n");
    lab.write("other.txt", "other\n");
    let dir = lab.work.join(at);
    let run = |args: &[&str]| git(&lab, &[&["-C", dir.to_str().unwrap()], args].concat());
    run(&["init", "-q", "-b", "main"])?;
    run(&["add", "."]);
    run(&["commit", "-qm", "one"]);
    lab.write(&format!("{at}/src/a.py"), "stashed\n");
    run(&["stash", "-q"]);
    Some(lab)
}

#[test]
fn a_turn_that_deletes_a_repository_is_a_turn_and_its_undo_restores_it() {
    for (at, command) in
        [(".", "rm -rf .git"), ("vendor/nested", "rm -rf vendor"), ("vendor/nested", "rm -rf vendor/nested/.git")]
    {
        let Some(lab) = repository(at) else { return };
        let (before, files) = (facts(&lab, at), tree(&lab.work));
        turn(&lab, command);
        let git_dir = lab.work.join(at).join(".git");
        assert!(!git_dir.exists(), "{command}");
        let shown = lab.piton(&["diff", "--turn", "t-1"]);
        assert!(shown.stdout.contains(".git"), "{command}: {shown:?}");
        let undone = lab.piton(&["undo", "--yes"]);
        assert_eq!((undone.code, facts(&lab, at)), (0, before), "{command}: {undone:?}");
        assert_eq!(tree(&lab.work), files, "{command}: {undone:?}");
        assert_eq!(lab.piton(&["undo", "--yes"]).code, 3, "{command}: nothing more to undo");
        let redone = lab.piton(&["redo", "--yes"]);
        assert!(
            said(&redone).contains(".git` was not deleted: piton never deletes a repository"),
            "{command}: {redone:?}"
        );
    }
}

#[test]
fn a_repository_with_another_in_its_place_is_named_with_its_command() {
    let Some(lab) = repository(".") else { return };
    let before = facts(&lab, ".");
    turn(&lab, "rm -rf .git && git init -q");
    let undone = lab.piton(&["undo", "--yes"]);
    let command = "piton restore 1 .git";
    assert!(undone.code == 4 && said(&undone).contains(command), "{undone:?}");
    lab.sh("mv .git new.git");
    assert_eq!(lab.piton(&["restore", "1", ".git", "--yes"]).code, 0);
    assert_eq!(facts(&lab, "."), before);
}

#[test]
fn the_git_file_of_a_submodule_comes_back_with_the_undo() {
    let Some(lab) = repository("vendor/nested") else { return };
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./vendor/nested", "sub"];
    for args in [&["init", "-q", "-b", "main"][..], &["add", "other.txt"], &["commit", "-qm", "top"], &add] {
        git(&lab, args).unwrap();
    }
    let pointer = lab.work.join("sub/.git");
    let (content, before) = (std::fs::read(&pointer).unwrap(), facts(&lab, "sub"));
    turn(&lab, "rm -rf sub");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!((undone.code, std::fs::read(&pointer).ok()), (0, Some(content)), "{undone:?}");
    assert_eq!(facts(&lab, "sub"), before);
}

#[test]
fn repositories_that_a_program_deletes_are_restored_or_listed() {
    let Some(lab) = repository("vendor/nested") else { return };
    if Command::new("python3").args(["-c", ""]).status().is_err() {
        return lacking("python3");
    }
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./vendor/nested", "sub"];
    for args in [&["init", "-q", "-b", "main"][..], &["add", "other.txt"], &["commit", "-qm", "top"], &add] {
        git(&lab, args).unwrap();
    }
    lab.write(
        "wreck.py",
        "import os, shutil\n[shutil.rmtree(name) for name in os.listdir() if name in ('su' + 'b', 'vend' + 'or')]\n",
    );
    let pointer = lab.work.join("sub/.git");
    let (content, before) = (std::fs::read(&pointer).unwrap(), facts(&lab, "sub"));
    turn(&lab, "python3 wreck.py");
    assert!(!pointer.exists() && !lab.work.join("vendor").exists());
    let listed = lab.piton(&["diff", "--turn", "t-1"]);
    let unsaved = "vendor/nested/.git  (the repository no longer exists and was not saved)";
    assert!(listed.stdout.contains(unsaved), "{listed:?}");
    let command =
        listed.stdout.split('`').find(|part| part.ends_with(" sub/.git")).unwrap_or_else(|| panic!("{listed:?}"));
    let undone = lab.piton(&["undo", "--yes"]);
    assert!(undone.code == 4 && said(&undone).contains("vendor/nested/.git"), "{undone:?}");
    assert_eq!(std::fs::read(&pointer).ok().as_ref(), Some(&content), "{undone:?}");
    assert_eq!(facts(&lab, "sub"), before);
    // The checkpoint alone contains it, too.
    std::fs::remove_file(&pointer).unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    let restored = lab.piton(&words);
    assert_eq!((restored.code, std::fs::read(&pointer).ok()), (0, Some(content)), "{command}: {restored:?}");
}
