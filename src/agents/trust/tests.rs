//! Each setting that switches a client's hooks off, each file in which it may stand, and files that cannot be read.

use std::collections::BTreeMap;

use super::*;
use crate::agents::install::command;

mod codex;

/// A client's settings files: below `~`, below `.` for the project, below `/etc`.
type Files<'a> = &'a [(&'a str, &'a str)];

/// The text of a file that is there and cannot be read.
const LOCKED: &str = "\0";

fn doubts_of(client: Client, files: Files<'_>, project: bool) -> Vec<Doubt> {
    let files: BTreeMap<String, &str> = files.iter().map(|(path, text)| ((*path).to_owned(), *text)).collect();
    let root = |file: &SettingsFile| match file.level {
        Level::User => "~",
        Level::Project => ".",
        Level::System => "/etc",
    };
    let shown = |file: &SettingsFile| file.spot.below(Path::new(root(file)), |_| None).to_string_lossy().into_owned();
    let text = |text: &&str| match *text {
        LOCKED => FileText::Unreadable("permission denied".to_owned()),
        text => FileText::Text(text.to_owned()),
    };
    let read = |file: &SettingsFile| files.get(&shown(file)).map_or(FileText::Missing, text);
    let drop_ins = |file: &SettingsFile| {
        let dir = format!("{}/", shown(file));
        files.iter().filter(|(path, _)| path.starts_with(&dir)).map(|(path, it)| (path.clone(), text(it))).collect()
    };
    let event = client.fixture("", "/", "").unwrap().event;
    client.doubts(&TrustQuestion {
        project,
        folder: Path::new("/work"),
        file: Path::new("/home/hooks.json"),
        commands: &[(event.to_owned(), command("/bin/piton", client, event))],
        read: &read,
        shown: &shown,
        drop_ins: &drop_ins,
        variable: &|_| None,
    })
}

/// The doubt that is wanted, by a part of its text.
#[derive(Debug)]
enum Wanted<'w> {
    /// Hooks run.
    Run,
    /// They do not run.
    Off(&'w str),
    /// It cannot be told.
    Unknown(&'w str),
}
use Wanted::{Off, Run, Unknown};

fn check(client: Client, table: &[(Files<'_>, Wanted<'_>)]) {
    for (files, wanted) in table {
        let doubts = doubts_of(client, files, false);
        let is = |certain: bool, part: &str| {
            doubts.first().is_some_and(|it| it.is_certain == certain && it.what.contains(part))
        };
        let is_so = match wanted {
            Run => doubts.is_empty(),
            Off(part) => is(true, part),
            Unknown(part) => is(false, part),
        };
        assert!(is_so, "{files:?}: {wanted:?}, found {doubts:?}");
        assert!(doubts.iter().all(|doubt| !doubt.step.is_empty()));
        assert_eq!(
            doubts.iter().any(|doubt| doubt.what.contains("cannot determine")),
            doubts.iter().any(|it| !it.is_certain)
        );
    }
}

#[test]
fn claude_code_is_switched_off_in_each_of_its_files() {
    check(
        Client::ClaudeCode,
        &[
            (&[], Run),
            (&[("~/.claude/settings.json", "{}")], Run),
            (&[("~/.claude/settings.json", r#"{"disableAllHooks": true}"#)], Off("~/.claude/settings.json")),
            (&[("./.claude/settings.json", r#"{"disableAllHooks": true}"#)], Off("./.claude/settings.json")),
            (&[("./.claude/settings.local.json", "{\"disableAllHooks\": true,\n}")], Off("settings.local.json")),
            (&[("/etc/claude-code/managed-settings.json", r#"{"disableAllHooks": true}"#)], Off("no hook runs")),
            (&[("/etc/claude-code/managed-settings.d/20.json", r#"{"disableAllHooks": true}"#)], Off("d/20.json")),
            (
                &[("/etc/claude-code/managed-settings.json", r#"{"allowManagedHooksOnly": true}"#)],
                Off("`allowManagedHooksOnly` is set in /etc/claude-code/managed-settings.json"),
            ),
            (
                &[("/etc/claude-code/managed-settings.d/a.json", r#"{"allowManagedHooksOnly": true}"#)],
                Off("only the administrator's hooks run"),
            ),
            (
                &[("/etc/claude-code/managed-settings.json", r#"{"strictPluginOnlyCustomization": ["hooks"]}"#)],
                Off("strictPluginOnlyCustomization"),
            ),
            (&[("/etc/claude-code/managed-settings.json", r#"{"strictPluginOnlyCustomization": ["skills"]}"#)], Run),
            // In a file that is not the administrator's, it means nothing.
            (&[("./.claude/settings.json", r#"{"allowManagedHooksOnly": true}"#)], Run),
            (&[("/etc/claude-code/managed-settings.json", r#"{"allowManagedHooksOnly": false}"#)], Run),
            // The strongest file decides.
            (
                &[
                    ("./.claude/settings.json", r#"{"disableAllHooks": true}"#),
                    ("./.claude/settings.local.json", r#"{"disableAllHooks": false}"#),
                ],
                Run,
            ),
            (
                &[
                    ("./.claude/settings.local.json", r#"{"disableAllHooks": false}"#),
                    ("/etc/claude-code/managed-settings.json", r#"{"disableAllHooks": true}"#),
                ],
                Off("/etc/claude-code"),
            ),
            // The administrator has piton's hooks.
            (
                &[
                    ("./.claude/settings.json", r#"{"disableAllHooks": true}"#),
                    (
                        "/etc/claude-code/managed-settings.json",
                        r#"{"allowManagedHooksOnly": true, "hooks": {"PreToolUse": [{"hooks": [
                            {"type": "command", "command": "/usr/bin/piton hook claude-code PreToolUse"}]}]}}"#,
                    ),
                ],
                Run,
            ),
            // Files that cannot be read, or say something else.
            (&[("./.claude/settings.local.json", "{\"disableAllHooks\": tru")], Unknown("cannot determine")),
            (&[("./.claude/settings.json", "[]")], Unknown("./.claude/settings.json")),
            (&[("./.claude/settings.json", LOCKED)], Unknown("permission denied")),
            (&[("./.claude/settings.json", r#"{"disableAllHooks": "true"}"#)], Unknown("neither true nor false")),
            (
                &[("/etc/claude-code/managed-settings.json", "no json")],
                Unknown("/etc/claude-code/managed-settings.json"),
            ),
            (
                &[("/etc/claude-code/managed-settings.json", r#"{"allowManagedHooksOnly": 1}"#)],
                Unknown("cannot determine"),
            ),
            (&[("/etc/claude-code/managed-settings.d/20.json", LOCKED)], Unknown("d/20.json")),
        ],
    );
}

#[test]
fn gemini_and_its_fork_are_switched_off_in_each_of_their_files() {
    let gemini = r#"{"hooksConfig": {"enabled": false}}"#;
    check(
        Client::GeminiCli,
        &[
            (&[], Run),
            (&[("~/.gemini/settings.json", r#"{"hooksConfig": {"enabled": true}}"#)], Run),
            (&[("~/.gemini/settings.json", gemini)], Off("~/.gemini/settings.json")),
            (&[("./.gemini/settings.json", gemini)], Off("./.gemini/settings.json")),
            (&[("/etc/gemini-cli/settings.json", gemini)], Off("/etc/gemini-cli/settings.json")),
            (&[("/etc/gemini-cli/system-defaults.json", gemini)], Off("system-defaults.json")),
            (
                &[
                    ("/etc/gemini-cli/system-defaults.json", gemini),
                    ("~/.gemini/settings.json", r#"{"hooksConfig": {"enabled": true}}"#),
                ],
                Run,
            ),
            (
                &[(
                    "./.gemini/settings.json",
                    r#"{"hooksConfig": {"disabled": ["/bin/piton hook gemini-cli BeforeTool"]}}"#,
                )],
                Off("`hooksConfig.disabled` of ./.gemini/settings.json"),
            ),
            (&[("./.gemini/settings.json", r#"{"hooksConfig": {"disabled": ["other"]}}"#)], Run),
            (&[("/etc/gemini-cli/settings.json", "{")], Unknown("/etc/gemini-cli/settings.json")),
            (&[("./.gemini/settings.json", LOCKED)], Unknown("cannot determine")),
        ],
    );
    let qwen = r#"{"disableAllHooks": true}"#;
    check(
        Client::QwenCode,
        &[
            (&[], Run),
            (&[("~/.qwen/settings.json", qwen)], Off("~/.qwen/settings.json")),
            (&[("./.qwen/settings.json", qwen)], Off("./.qwen/settings.json")),
            (&[("/etc/qwen-code/settings.json", qwen)], Off("/etc/qwen-code/settings.json")),
            (&[("/etc/qwen-code/system-defaults.json", qwen)], Off("system-defaults.json")),
            (&[("./.qwen/settings.json", "")], Run),
            (&[("./.qwen/settings.json", "{,}")], Unknown("./.qwen/settings.json")),
        ],
    );
    for (client, own, etc) in [(Client::GeminiCli, ".gemini", "gemini-cli"), (Client::QwenCode, ".qwen", "qwen-code")] {
        let on = r#"{"security": {"folderTrust": {"enabled": true}}}"#;
        for path in [format!("~/{own}/settings.json"), format!("/etc/{etc}/settings.json")] {
            let files = [(path.as_str(), on)];
            assert!(doubts_of(client, &files, false).is_empty());
            assert!(doubts_of(client, &files, true)[0].what.contains("does not trust this folder"));
        }
    }
}

/// Gemini CLI asks for trust where no setting speaks of it, and without trust runs no hook; its fork asks where it is told to, and holds
/// back the project's alone.
#[test]
fn a_folder_without_trust_has_no_hooks() {
    let on = r#"{"security": {"folderTrust": {"enabled": true}}}"#;
    let off = r#"{"security": {"folderTrust": {"enabled": false}}}"#;
    // Rules, and whether the folder `/work` has no trust by them. The longest path decides.
    let rules = [
        ("{}", false),
        (r#"{"/work": "TRUST_FOLDER"}"#, false),
        (r#"{"/work": "DO_NOT_TRUST"}"#, true),
        (r#"{"/": "DO_NOT_TRUST", "/work": "TRUST_FOLDER"}"#, false),
        (r#"{"/": "DO_NOT_TRUST"}"#, true),
        (r#"{"/": "DO_NOT_TRUST", "/other": "TRUST_PARENT"}"#, false),
        (r#"{"/other": "DO_NOT_TRUST"}"#, false),
    ];
    for (rules, is_distrusted) in rules {
        for project in [false, true] {
            let gemini = |settings: &[(&str, &str)]| {
                let files = [settings, &[("~/.gemini/trustedFolders.json", rules)]].concat();
                doubts_of(Client::GeminiCli, &files, project)
            };
            let doubts = gemini(&[]);
            assert_eq!(doubts.len(), usize::from(is_distrusted), "{rules} {project}: {doubts:?}");
            assert!(doubts.iter().all(|doubt| doubt.is_certain && doubt.what.contains("does not trust this folder")));
            assert!(gemini(&[("~/.gemini/settings.json", off)]).is_empty());
            // The project's own word on itself counts for nothing.
            let by_project = gemini(&[("./.gemini/settings.json", off)]);
            assert_eq!(by_project.len(), usize::from(is_distrusted), "{rules} {project}");
            let qwen = |settings: &[(&str, &str)]| {
                let files = [settings, &[("~/.qwen/trustedFolders.json", rules)]].concat();
                doubts_of(Client::QwenCode, &files, project)
            };
            assert!(qwen(&[]).is_empty());
            let is_told = project && (is_distrusted || rules == "{}" || rules.starts_with("{\"/other"));
            assert_eq!(qwen(&[("~/.qwen/settings.json", on)]).len(), usize::from(is_told), "{rules} {project}");
        }
    }
}

#[test]
fn pi_leaves_an_extension_out() {
    let entries = |text: &str| format!(r#"{{"extensions": [{text}]}}"#);
    let with = |text: &str, wanted| {
        check(Client::Pi, &[(&[("~/.pi/agent/settings.json", entries(text).as_str())], wanted)]);
    };
    for text in
        ["", r#""other""#, r#""-extensions/other.ts""#, r#""!extensions/*.js""#, r#""!*", "+extensions/piton.ts""#, "1"]
    {
        with(text, Run);
    }
    for text in [
        r#""-extensions/piton.ts""#,
        r#""-./extensions/piton.ts""#,
        r#""-/home/hooks.json""#,
        r#""+extensions/piton.ts", "-extensions/piton.ts""#,
        r#""!piton.ts""#,
        r#""!extensions/*""#,
        r#""!**/piton.*""#,
    ] {
        with(text, Off("~/.pi/agent/settings.json, under `extensions`, disables piton's extension"));
    }
    check(
        Client::Pi,
        &[
            (&[], Run),
            (&[("~/.pi/agent/settings.json", "{")], Unknown("~/.pi/agent/settings.json")),
            // The settings of a project leave out its own extensions alone.
            (&[("./.pi/settings.json", r#"{"extensions": ["-extensions/piton.ts"]}"#)], Run),
        ],
    );
    let trust = |text: &'static str| ("~/.pi/agent/trust.json", text);
    let ask = |files: Files<'_>| doubts_of(Client::Pi, files, true);
    for files in [
        &[][..],
        &[trust(r#"{"/work": false}"#)],
        &[trust(r#"{"/": true, "/work": false}"#)],
        &[trust(r#"{"/": null}"#)],
    ] {
        assert!(ask(files)[0].what.contains("does not trust this folder"), "{files:?}");
    }
    for files in [
        &[trust(r#"{"/work": true}"#)][..],
        &[trust(r#"{"/": true, "/work": null}"#)],
        &[("~/.pi/agent/settings.json", r#"{"defaultProjectTrust": "always"}"#)],
    ] {
        assert_eq!(ask(files), [], "{files:?}");
    }
    assert!(!ask(&[trust(r#"{"/work": 1}"#)])[0].is_certain);
    let own = ("./.pi/settings.json", r#"{"extensions": ["-extensions/piton.ts"]}"#);
    assert!(ask(&[trust(r#"{"/work": true}"#), own])[0].what.contains("./.pi/settings.json, under `extensions`"));
}

/// Seen in Copilot CLI 1.0.102.
#[test]
fn copilot_is_switched_off_by_the_projects_files_and_the_administrators() {
    let (on, off) = (r#"{"disableAllHooks": false}"#, r#"{"disableAllHooks": true}"#);
    let trusted = ("~/.copilot/config.json", "// Managed.\n{\"trustedFolders\": [\"/work\"]}");
    let managed = "/etc/github-copilot/managed-settings.json";
    check(
        Client::CopilotCli,
        &[
            (&[], Run),
            (&[trusted, ("./.github/copilot/settings.json", off)], Off("./.github/copilot/settings.json")),
            (&[trusted, ("./.github/copilot/settings.local.json", off)], Off("settings.local.json")),
            (&[trusted, ("./.claude/settings.json", off)], Off("./.claude/settings.json")),
            (&[trusted, ("./.claude/settings.local.json", off)], Off("./.claude/settings.local.json")),
            (&[trusted, ("./.claude/settings.local.json", off), ("./.github/copilot/settings.json", on)], Run),
            (&[trusted, ("./.claude/settings.local.json", off), ("./.claude/settings.json", on)], Off(".claude")),
            (&[trusted, ("./.github/copilot/settings.json", "{")], Unknown("cannot determine")),
            // It does not read the files of a folder that it does not trust.
            (&[("./.github/copilot/settings.json", off)], Run),
            (&[("~/.copilot/config.json", r#"{"trusted_folders": ["/"]}"#), ("./.claude/settings.json", off)], Off("")),
            (
                &[("~/.copilot/config.json", r#"{"trustedFolders": ["/workshop"]}"#), ("./.claude/settings.json", off)],
                Run,
            ),
            // It runs hooks all the same, and says that it does not.
            (&[("~/.copilot/config.json", off)], Unknown("`disableAllHooks` is set in ~/.copilot/config.json")),
            (&[("~/.copilot/settings.json", off)], Unknown("~/.copilot/settings.json")),
            (&[("~/.copilot/settings.json", r#"{"disabledHooks": ["a1"]}"#)], Unknown("`disabledHooks`")),
            (&[("~/.copilot/settings.json", r#"{"disabledHooks": []}"#)], Run),
            (&[(managed, r#"{"allowManagedHooksOnly": true}"#)], Off("`allowManagedHooksOnly`")),
            (&[(managed, r#"{"strictPluginOnlyCustomization": ["hooks"]}"#)], Off("only the administrator's hooks")),
            (&[(managed, r#"{"strictPluginOnlyCustomization": ["skills"]}"#)], Run),
            (&[(managed, off)], Run),
            (
                &[
                    (managed, r#"{"allowManagedHooksOnly": true}"#),
                    (
                        "/etc/github-copilot/policy.d/1.json",
                        r#"{"hooks": {"preToolUse": [{"bash": "piton hook copilot-cli preToolUse"}]}}"#,
                    ),
                ],
                Run,
            ),
        ],
    );
    let project = |files: Files<'_>| doubts_of(Client::CopilotCli, files, true);
    assert!(project(&[])[0].what.contains("does not trust this folder"));
    assert_eq!(project(&[trusted]), []);
}

/// Seen in Factory droid 0.215.0.
#[test]
fn droid_is_switched_off_among_the_hooks_of_its_files() {
    let (on, off) = (r#"{"hooks": {"hooksDisabled": false}}"#, r#"{"hooks": {"hooksDisabled": true}}"#);
    let (alone, hooks) = (r#"{"hooksDisabled": true}"#, r#"{"PreToolUse": [{"hooks": [{"command": "x"}]}]}"#);
    check(
        Client::Droid,
        &[
            (&[], Run),
            (&[("~/.factory/settings.json", off)], Off("`hooks.hooksDisabled` is set in ~/.factory/settings.json")),
            (&[("./.factory/settings.json", off)], Off("./.factory/settings.json")),
            (&[("/etc/factory/settings.json", off)], Off("/etc/factory/settings.json")),
            (&[("~/.factory/settings.json", off), ("./.factory/settings.json", on)], Run),
            (&[("~/.factory/settings.json", on), ("./.factory/settings.json", off)], Off("./.factory")),
            (&[("./.factory/settings.json", off), ("/etc/factory/settings.json", on)], Run),
            (&[("~/.factory/settings.json", alone)], Run),
            (&[("./.factory/settings.local.json", off)], Run),
            (&[("~/.factory/hooks.json", alone)], Off("`hooksDisabled` is set in ~/.factory/hooks.json")),
            (&[("./.factory/hooks.json", alone)], Off("./.factory/hooks.json")),
            (&[("~/.factory/hooks.json", hooks)], Off("replaces the hooks")),
            (&[("./.factory/hooks.json", hooks)], Run),
            (&[("~/.factory/hooks.json", r#"{"Stop": [{"hooks": [{"command": "x"}]}]}"#)], Run),
            (&[("~/.factory/hooks.json", "{}")], Run),
            (&[("~/.factory/hooks.json", &format!("{{\"hooks\": {hooks}}}"))], Run),
            (&[("/etc/factory/settings.json", r#"{"allowManagedHooksOnly": true}"#)], Off("`allowManagedHooksOnly`")),
            (&[("/etc/factory/settings.json", "{")], Unknown("/etc/factory/settings.json")),
        ],
    );
}

#[test]
fn kimi_code_passes_over_all_hooks_where_one_does_not_fit() {
    let file = "~/.kimi-code/config.toml";
    let good = "[[hooks]]\nevent = \"Stop\"\ncommand = \"bell\"\nmatcher = \"\"\ntimeout = 600\n";
    let hook = |event: &str, more: &str| format!("{good}[[hooks]]\nevent = \"{event}\"\ncommand = \"x\"\n{more}\n");
    let with = |text: String, wanted| check(Client::KimiCode, &[(&[(file, text.as_str())], wanted)]);
    with(good.to_owned(), Run);
    with("a = 1\n".to_owned(), Run);
    with(hook("SubagentStop", ""), Run);
    with(hook("Stop", "timeout = 0"), Off("does not have the format that Kimi Code expects"));
    with(hook("Stop", "timeout = 601"), Off("does not have the format that Kimi Code expects"));
    with(hook("Stop", "type = \"command\""), Off("does not have the format that Kimi Code expects"));
    with(hook("Stop", "matcher = 1"), Off("does not have the format that Kimi Code expects"));
    with("hooks = 1\n".to_owned(), Off("does not have the format that Kimi Code expects"));
    with(
        "[[hooks]]\nevent = \"Stop\"\ncommand = \"\"\n".to_owned(),
        Off("does not have the format that Kimi Code expects"),
    );
    with(hook("Newer", ""), Unknown("the event `Newer`"));
    with("a = \n".to_owned(), Unknown("it is not TOML"));
    with(LOCKED.to_owned(), Unknown("permission denied"));
}
