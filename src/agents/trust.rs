//! A client's own permission for piton's hooks: its switches, lists and trusted folders. Texts in, doubts out.

mod codex;
mod copilot_cli;
mod droid;
mod kimi_code;
mod layers;
mod question;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value;

use super::client::Client;
use super::clients;
use super::edit::scan::scan;
use super::install::{Spot, ours};
use layers::{SettingsLanguage, SettingsLayer, SettingsLayers, Switch, any_text, layers, managed_only};
pub use question::{Doubt, FileText, Level, SettingsFile, TrustQuestion};

impl Client {
    /// Returns the settings that keep the client from running the hooks, or that piton cannot read; none for clients without
    /// such settings.
    pub fn doubts(self, asked: &TrustQuestion<'_>) -> Vec<Doubt> {
        let place = clients::profile(self).directory;
        let below = |path: &'static str| Spot { path, ..place };
        match self {
            Client::ClaudeCode => claude_code(asked, below("settings.json")),
            Client::QwenCode => qwen(asked, below("settings.json"), below("trustedFolders.json")),
            Client::GeminiCli => gemini(asked, below("settings.json"), below("trustedFolders.json")),
            Client::Codex => codex::doubts(asked, below("config.toml")),
            Client::HermesAgent => hermes(asked, below("config.yaml"), below("shell-hooks-allowlist.json")),
            Client::CopilotCli => copilot_cli::doubts(asked, place),
            Client::Droid => droid::doubts(asked, place),
            Client::KimiCode => kimi_code::doubts(asked, below("config.toml")),
            // They run what they find, as far as is known.
            Client::Opencode | Client::Cline | Client::Pi | Client::Cursor | Client::Crush | Client::Goose => {
                Vec::new()
            }
        }
    }
}

/// Returns a file as JSON; one that cannot be read says nothing here.
fn parsed(asked: &TrustQuestion<'_>, file: &SettingsFile) -> Value {
    match (asked.read)(file) {
        FileText::Text(text) => scan(&text).map(|parsed| parsed.value()).unwrap_or_default(),
        FileText::Missing | FileText::Unreadable(_) => Value::Null,
    }
}

/// Claude Code: the strongest of its files decides, and the administrator's files beat all of them.
fn claude_code(asked: &TrustQuestion<'_>, user: Spot) -> Vec<Doubt> {
    let project = |path| SettingsFile::project(Spot { env: None, dir: ".claude", path });
    let managed = |path| SettingsFile::system(Spot { env: None, dir: "claude-code", path });
    let files = [
        SettingsFile::user(user),
        project("settings.json"),
        project("settings.local.json"),
        managed("managed-settings.json"),
        SettingsFile { is_directory: true, ..managed("managed-settings.d") },
    ];
    let SettingsLayers { layers, mut doubts } = layers(asked, SettingsLanguage::Json, &files);
    let is_ours = ours(Client::ClaudeCode);
    let has_hooks = |layer: &SettingsLayer| layer.is_managed && any_text(&layer.values["hooks"], &is_ours);
    let switch = Switch { pointer: "/disableAllHooks", off: true };
    if layers.iter().any(has_hooks) {
        // The administrator's own hooks run whatever others set.
        doubts.extend(switch.doubt(layers.iter().filter(|layer| layer.is_managed)));
        return doubts;
    }
    doubts.extend(switch.doubt(layers.iter()));
    for layer in layers.iter().filter(|layer| layer.is_managed) {
        let keys = ["allowManagedHooksOnly", "strictPluginOnlyCustomization"];
        doubts.extend(keys.into_iter().find_map(|key| managed_only(layer, key)));
    }
    doubts
}

/// Returns the settings files of Gemini CLI, or of its fork, the weakest first.
fn gemini_files(user: Spot, variables: [&'static str; 2], system: [&'static str; 2]) -> [SettingsFile; 4] {
    let managed = |at: usize| SettingsFile::system(Spot { env: Some(variables[at]), dir: system[at], path: "" });
    let project = Spot { env: None, ..user };
    [managed(0), SettingsFile::user(user), SettingsFile::project(project), managed(1)]
}

fn qwen(asked: &TrustQuestion<'_>, user: Spot, folders: Spot) -> Vec<Doubt> {
    let files = gemini_files(
        user,
        ["QWEN_CODE_SYSTEM_DEFAULTS_PATH", "QWEN_CODE_SYSTEM_SETTINGS_PATH"],
        ["qwen-code/system-defaults.json", "qwen-code/settings.json"],
    );
    let SettingsLayers { layers, mut doubts } = layers(asked, SettingsLanguage::Json, &files);
    doubts.extend(Switch { pointer: "/disableAllHooks", off: true }.doubt(layers.iter()));
    doubts.extend(folder(asked, "Qwen Code", &layers, folders));
    doubts
}

fn gemini(asked: &TrustQuestion<'_>, user: Spot, folders: Spot) -> Vec<Doubt> {
    let files = gemini_files(
        user,
        ["GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"],
        ["gemini-cli/system-defaults.json", "gemini-cli/settings.json"],
    );
    let SettingsLayers { layers, mut doubts } = layers(asked, SettingsLanguage::Json, &files);
    doubts.extend(Switch { pointer: "/hooksConfig/enabled", off: false }.doubt(layers.iter()));
    let is_disabled = |name: &Value| asked.commands.iter().any(|(_, command)| name.as_str() == Some(command.as_str()));
    for layer in &layers {
        let disabled = layer.values.pointer("/hooksConfig/disabled").and_then(Value::as_array);
        if disabled.into_iter().flatten().any(is_disabled) {
            doubts.push(Doubt {
                what: format!("piton's hooks are in `hooksConfig.disabled` of {}", layer.shown),
                step: "type `/hooks enable-all` in Gemini CLI".to_owned(),
                is_certain: true,
            });
        }
    }
    doubts.extend(folder(asked, "Gemini CLI", &layers, folders));
    doubts
}

/// Hooks of a project run in trusted folders only, once the person has switched that on.
fn folder(asked: &TrustQuestion<'_>, title: &str, layers: &[SettingsLayer], folders: Spot) -> Option<Doubt> {
    let is_on =
        |layer: &SettingsLayer| layer.values.pointer("/security/folderTrust/enabled") == Some(&Value::Bool(true));
    if !asked.project || !layers.iter().any(is_on) {
        return None;
    }
    let rules = parsed(asked, &SettingsFile::user(folders));
    let said = |dir: &Path| rules.get(dir.to_string_lossy().as_ref()).and_then(Value::as_str).map(str::to_owned);
    let here = |dir: &Path| match said(dir).as_deref() {
        Some("TRUST_FOLDER" | "TRUST_PARENT") => Some(true),
        Some(_) => Some(false),
        None => None,
    };
    // A folder's parent may be trusted by the rule of a sibling.
    let parent = asked.folder.parent();
    let by_sibling = rules.as_object().into_iter().flatten().any(|(dir, rule)| {
        rule.as_str() == Some("TRUST_PARENT")
            && Path::new(dir).parent().is_some_and(|dir| parent.is_some_and(|_| asked.folder.starts_with(dir)))
    });
    if asked.folder.ancestors().find_map(here).unwrap_or(by_sibling) {
        return None;
    }
    Some(Doubt {
        what: format!("{title} does not trust this folder and does not read the hooks in it"),
        step: format!("start {title} here and trust the folder"),
        is_certain: true,
    })
}

/// Finds pairs of event and command that are not accepted. Each is accepted by itself, or all are by a switch.
fn hermes(asked: &TrustQuestion<'_>, config: Spot, list: Spot) -> Vec<Doubt> {
    let text = match (asked.read)(&SettingsFile::user(config)) {
        FileText::Text(text) => text,
        // The file holds the hooks, so there is a finding about it already.
        FileText::Missing | FileText::Unreadable(_) => String::new(),
    };
    let switch = text.lines().find_map(|line| line.strip_prefix("hooks_auto_accept:"));
    let on = |value: &str| matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1");
    let all = switch.is_some_and(|value| on(value.split('#').next().unwrap_or(value)))
        || (asked.variable)("HERMES_ACCEPT_HOOKS").is_some_and(|value| on(&value));
    let accepted = parsed(asked, &SettingsFile::user(list));
    let known = |event: &str, command: &str| {
        let pairs = accepted.pointer("/approvals").and_then(Value::as_array).into_iter().flatten();
        pairs.into_iter().any(|pair| pair["event"] == event && pair["command"] == command)
    };
    let open = asked.commands.iter().filter(|(event, command)| !all && !known(event, command));
    let events: Vec<&str> = open.map(|(event, _)| event.as_str()).collect();
    if events.is_empty() {
        return Vec::new();
    }
    vec![Doubt {
        what: format!("Hermes Agent has not been told that the hooks of {} may run", events.join(", ")),
        step: "start `hermes` in a terminal and say yes, or run `hermes --accept-hooks` once".to_owned(),
        is_certain: true,
    }]
}
