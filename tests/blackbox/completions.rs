//! Completions, by the calls that the scripts of shells make and in the shells themselves; and the manual pages.

use std::collections::BTreeSet;
use std::path::Path;

use piton::model::id::short_selector;

use crate::support::{Lab, lacking};

/// Returns the completions of the last of `words` for a shell.
fn complete(lab: &Lab, shell: &str, words: &[&str]) -> Vec<String> {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).env("_CLAP_IFS", "\n");
    let output = command.arg("--").args(words).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

fn lab_with_checkpoints() -> Lab {
    let lab = Lab::new();
    lab.write("src/main.rs", "fn main() {}\n");
    lab.write("lost/a file", "a");
    lab.take("plain");
    lab.take("before the move");
    std::fs::remove_dir_all(lab.work.join("lost")).unwrap();
    lab
}

#[test]
fn verbs_options_and_recorded_names_are_completed() {
    let lab = lab_with_checkpoints();
    let fish = |words: &[&str]| complete(&lab, "fish", words);
    let mut verbs = fish(&["piton", "re"]);
    verbs.sort();
    assert_eq!(verbs, ["redo", "restore"], "hidden verbs are not offered");
    assert!(fish(&["piton", "list", "--"]).contains(&"--turns".to_owned()));
    let named = fish(&["piton", "restore", ""]);
    for name in ["2", "1", "plain", "before the move", "src/", "lost/"] {
        assert!(named.iter().any(|found| found == name), "no {name}: {named:?}");
    }
    assert!(named.iter().position(|one| one == "2") < named.iter().position(|one| one == "1"), "{named:?}");
    assert_eq!(fish(&["piton", "restore", "1", "lo"]), ["lost/"]);
    assert_eq!(fish(&["piton", "find", "lost/"]), ["lost/a file"]);
    assert_eq!(fish(&["piton", "store", "delete", "pl"]), ["plain"]);
    let id = short_selector(lab.piton(&["show", "1", "--json"]).json()["id"].as_str().unwrap());
    assert!(fish(&["piton", "show", &id[..3]]).contains(&id));
    // bash would take a name with a space for two words.
    let bash = complete(&lab, "bash", &["piton", "pin", ""]);
    assert!(bash.contains(&"plain".to_owned()) && !bash.contains(&"before the move".to_owned()), "{bash:?}");
}

#[test]
fn nushell_gets_a_list_of_records() {
    let lab = lab_with_checkpoints();
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env("COMPLETE", "nushell").args(["--", "piton", "restore", "be"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found[0]["value"], "before the move", "{output:?}");
    assert!(found[0]["description"].is_string() && found[1].is_null(), "{found}");
    let script = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work).env("COMPLETE", "nu").output().unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    assert!(script.contains("completions.external.completer = {|spans|") && script.contains("piton"), "{script}");
}

#[test]
fn turns_and_runs_are_completed() {
    let lab = lab_with_checkpoints();
    let hook = |event: &str, rest: &str| {
        let payload = format!(
            "{{\"session_id\":\"c\",\"cwd\":\"{}\",\"prompt_id\":\"p\",\"hook_event_name\":\"{event}\"{rest}}}",
            lab.work.display()
        );
        std::fs::write(lab.root().join("payload"), payload).unwrap();
        lab.sh(&format!("{} hook claude-code {event} --no-daemon < ../payload", env!("CARGO_BIN_EXE_piton")));
    };
    hook("SessionStart", ",\"source\":\"startup\"");
    hook("UserPromptSubmit", ",\"prompt\":\"tidy up\"");
    let tool = ",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"rm -r src\"},\"tool_use_id\":\"u\"";
    hook("PreToolUse", tool);
    std::fs::remove_dir_all(lab.work.join("src")).unwrap();
    hook("PostToolUse", &format!("{tool},\"tool_response\":{{}}"));
    hook("Stop", ",\"stop_hook_active\":false");
    assert_eq!(complete(&lab, "zsh", &["piton", "undo", "--turn", ""]).len(), 1);
    assert_eq!(complete(&lab, "fish", &["piton", "undo", "--turn", "t-"]), ["t-1"]);
    let runs = complete(&lab, "fish", &["piton", "undo", "--run", "cl"]);
    assert!(runs.iter().all(|run| run.starts_with("claude-code")) && runs.len() == 1, "{runs:?}");
}

#[test]
fn a_completion_makes_nothing_and_never_fails() {
    let lab = Lab::new();
    for words in [&["piton", "restore", ""][..], &["piton", "nothing", "x", ""], &["piton", "undo", "--turn", ""]] {
        for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
            complete(&lab, shell, words);
        }
    }
    complete(&lab, "no-such-shell", &["piton", "restore", ""]);
    assert!(!lab.home.join("piton").exists(), "a completion made a home");
    let known = lab_with_checkpoints();
    let elsewhere = known.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = known.command(env!("CARGO_BIN_EXE_piton"), &elsewhere);
    command.env("COMPLETE", "fish").args(["--", "piton", "restore", ""]).output().unwrap();
    let workspaces = known.piton(&["store", "list", "--json"]).json();
    assert_eq!(workspaces["workspaces"].as_array().unwrap().len(), 1, "{workspaces}");
    // The variable changes nothing in a call of a verb.
    let output = known.command(env!("CARGO_BIN_EXE_piton"), &known.work).env("COMPLETE", "bash").arg("list").output();
    assert!(String::from_utf8_lossy(&output.unwrap().stdout).starts_with("Checkpoints for "));
}

/// Runs a line of a shell that completes, with the built binary as `piton`; `None`, said aloud, where the shell is missing.
fn in_shell(lab: &Lab, shell: &str, options: &[&str], line: &str) -> Option<String> {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", lab.bin().display());
    match lab.command(shell, &lab.work).env("PATH", path).args(options).args(["-c", line]).output() {
        Ok(output) => {
            assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            lacking(&format!("{shell} ({error})"));
            None
        }
    }
}

#[test]
fn bash_completes() {
    let lab = lab_with_checkpoints();
    let line = "source <(COMPLETE=bash piton)
        COMP_WORDS=(piton restore pl); COMP_CWORD=2; COMP_TYPE=9
        _clap_complete_piton piton pl restore; printf '%s\\n' \"${COMPREPLY[@]}\"; complete -p piton";
    let Some(text) = in_shell(&lab, "bash", &["--norc"], line) else { return };
    assert!(text.starts_with("plain\n") && text.contains("-F _clap_complete_piton piton"), "{text}");
}

#[test]
fn zsh_takes_the_script() {
    let lab = lab_with_checkpoints();
    let line = "autoload -U compinit; compinit -D; source <(COMPLETE=zsh piton); print ${_comps[piton]}";
    let Some(text) = in_shell(&lab, "zsh", &["-f"], line) else { return };
    assert!(text.contains("_clap_dynamic_completer_piton"), "{text}");
}

#[test]
fn fish_completes() {
    let lab = lab_with_checkpoints();
    let line = "COMPLETE=fish piton | source; complete -C 'piton restore pl'; complete -C 'piton store del'";
    let Some(text) = in_shell(&lab, "fish", &["--no-config"], line) else { return };
    let words: Vec<&str> = text.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["plain", "delete"], "{text}");
}

#[test]
fn the_page_of_all_verbs_is_that_of_the_grammar() {
    let lab = Lab::new();
    let page = lab.piton(&["man", "--page"]);
    assert_eq!(page.code, 0, "{page:?}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/CLI.md");
    if std::env::var_os("PITON_RECORD").is_some() {
        std::fs::write(&file, page.stdout).unwrap();
        return;
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page.stdout, "PITON_RECORD=1 writes it again");
}

#[test]
fn manual_pages_are_written() {
    let lab = Lab::new();
    let dir = lab.root().join("man");
    let output = lab.piton(&["man", dir.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{output:?}");
    let pages = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> = pages.collect();
    for page in ["piton.1", "piton-restore.1", "piton-store-prune.1", "piton-git.1"] {
        assert!(pages.contains(page), "no {page}: {pages:?}");
    }
    assert!(!pages.contains("piton-hook.1") && !pages.contains("piton-recover.1"), "{pages:?}");
    let page = std::fs::read_to_string(dir.join("piton-restore.1")).unwrap();
    assert!(page.contains(".SH OPTIONS") && page.contains("piton restore 1"), "{page}");
    lint(&lab, &dir, &pages);
}

fn lint(lab: &Lab, dir: &Path, pages: &BTreeSet<String>) {
    let mut command = lab.command("mandoc", dir);
    match command.args(["-T", "lint", "-W", "warning"]).args(pages).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => lacking(&format!("mandoc ({error})")),
    }
}
