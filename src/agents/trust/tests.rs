//! Each setting that switches a client's hooks off, each file in which it may stand, and files that cannot be read.

use std::collections::BTreeMap;

use super::*;
use crate::agents::install::command;

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
            doubts.iter().any(|doubt| doubt.what.contains("cannot tell")),
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
            (&[("./.claude/settings.local.json", "{\"disableAllHooks\": tru")], Unknown("cannot tell")),
            (&[("./.claude/settings.json", "[]")], Unknown("./.claude/settings.json")),
            (&[("./.claude/settings.json", LOCKED)], Unknown("permission denied")),
            (&[("./.claude/settings.json", r#"{"disableAllHooks": "true"}"#)], Unknown("neither true nor false")),
            (
                &[("/etc/claude-code/managed-settings.json", "no json")],
                Unknown("/etc/claude-code/managed-settings.json"),
            ),
            (&[("/etc/claude-code/managed-settings.json", r#"{"allowManagedHooksOnly": 1}"#)], Unknown("cannot tell")),
            (&[("/etc/claude-code/managed-settings.d/20.json", LOCKED)], Unknown("d/20.json")),
        ],
    );
}

/// The state of a hook that Codex trusts.
const TRUSTED: &str = "[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:1\"\n";

#[test]
fn codex_is_switched_off_in_each_of_its_files() {
    check(
        Client::Codex,
        &[
            (&[("~/.codex/config.toml", TRUSTED)], Run),
            (&[], Off("does not trust the hooks of PreToolUse")),
            (&[("~/.codex/config.toml", "hooks.state = {}\n")], Off("does not trust")),
            (
                &[(
                    "~/.codex/config.toml",
                    "[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"1\"\nenabled = false\n",
                )],
                Off("does not trust"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "allow_managed_hooks_only = true"),
                ],
                Off("`allow_managed_hooks_only` is set in /etc/codex/requirements.toml"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "# none\n\"allow_managed_hooks_only\"=true # yes\n[x]\ny = 1"),
                ],
                Off("allow_managed_hooks_only"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    (
                        "/etc/codex/requirements.toml",
                        "# allow_managed_hooks_only = true\nx = '''\nallow_managed_hooks_only = true'''",
                    ),
                ],
                Run,
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "[t]\nallow_managed_hooks_only = true"),
                ],
                Run,
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("/etc/codex/requirements.toml", "[features]\nhooks = false")],
                Off("/etc/codex/requirements.toml"),
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("/etc/codex/config.toml", "features = { hooks = false }")],
                Off("/etc/codex/config.toml"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/managed_config.toml", "features.codex_hooks = false"),
                ],
                Off("`[features]` of /etc/codex/managed_config.toml"),
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("./.codex/config.toml", "[features]\nhooks = false")],
                Off("./.codex/config.toml"),
            ),
            (
                &[
                    ("/etc/codex/config.toml", "[features]\nhooks = false"),
                    (
                        "~/.codex/config.toml",
                        "features.hooks = true\n[hooks.state.\"/home/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"1\"\n",
                    ),
                ],
                Run,
            ),
            (
                &[(
                    "/etc/codex/requirements.toml",
                    "allow_managed_hooks_only = true\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"/usr/bin/piton hook codex PreToolUse\"\n",
                )],
                Run,
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "allow_managed_hooks_only = yes"),
                ],
                Unknown("it is no TOML"),
            ),
            (
                &[
                    ("~/.codex/config.toml", TRUSTED),
                    ("/etc/codex/requirements.toml", "allow_managed_hooks_only = \"true\""),
                ],
                Unknown("neither true nor false"),
            ),
            (
                &[("~/.codex/config.toml", TRUSTED), ("/etc/codex/requirements.toml", LOCKED)],
                Unknown("permission denied"),
            ),
            (&[("~/.codex/config.toml", "[features")], Unknown("~/.codex/config.toml")),
            (&[("~/.codex/config.toml", TRUSTED), ("./.codex/config.toml", "hooks")], Unknown("./.codex/config.toml")),
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
            (&[("./.gemini/settings.json", LOCKED)], Unknown("cannot tell")),
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

#[test]
fn copilot_and_droid_are_switched_off_in_each_of_their_files() {
    let copilot = r#"{"disableAllHooks": true}"#;
    check(
        Client::CopilotCli,
        &[
            (&[], Run),
            (&[("~/.copilot/config.json", copilot)], Off("~/.copilot/config.json")),
            (&[("~/.copilot/settings.json", copilot)], Off("~/.copilot/settings.json")),
            (&[("./.github/copilot/settings.json", copilot)], Off("./.github/copilot/settings.json")),
            (&[("./.github/copilot/settings.local.json", copilot)], Off("settings.local.json")),
            (&[("./.github/copilot/settings.json", "{")], Unknown("cannot tell")),
        ],
    );
    let droid = r#"{"hooksDisabled": true}"#;
    check(
        Client::Droid,
        &[
            (&[], Run),
            (&[("~/.factory/settings.json", droid)], Off("~/.factory/settings.json")),
            (&[("./.factory/settings.json", droid)], Off("./.factory/settings.json")),
            (&[("./.factory/settings.local.json", droid)], Off("settings.local.json")),
            (&[("/etc/factory/settings.json", droid)], Off("/etc/factory/settings.json")),
            (&[("~/.factory/hooks.json", droid)], Off("~/.factory/hooks.json")),
            (&[("~/.factory/hooks.json", "{}")], Unknown("may take the place")),
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
    with(hook("Stop", "timeout = 0"), Off("is not as Kimi Code wants it"));
    with(hook("Stop", "timeout = 601"), Off("is not as Kimi Code wants it"));
    with(hook("Stop", "type = \"command\""), Off("is not as Kimi Code wants it"));
    with(hook("Stop", "matcher = 1"), Off("is not as Kimi Code wants it"));
    with("hooks = 1\n".to_owned(), Off("is not as Kimi Code wants it"));
    with("[[hooks]]\nevent = \"Stop\"\ncommand = \"\"\n".to_owned(), Off("is not as Kimi Code wants it"));
    with(hook("Newer", ""), Unknown("no event `Newer`"));
    with("a = \n".to_owned(), Unknown("it is no TOML"));
    with(LOCKED.to_owned(), Unknown("permission denied"));
}
