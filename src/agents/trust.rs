//! A client's own permission for piton's hooks: its switches, lists and trusted folders. Texts in, doubts out.

mod codex;
mod copilot_cli;
mod droid;
mod kimi_code;
mod layers;
mod pi;
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
            Client::Pi => pi::doubts(asked, below("settings.json"), below("trust.json")),
            // They run what they find, as far as is known.
            Client::Opencode | Client::Cline | Client::Cursor | Client::Crush | Client::Goose => Vec::new(),
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
    doubts.extend(folder(asked, &QWEN_TRUST, &layers, (user, folders)));
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
    doubts.extend(folder(asked, &GEMINI_TRUST, &layers, (user, folders)));
    doubts
}

/// The trust of a client in folders.
struct FolderTrust {
    title: &'static str,
    /// True if it is asked for where no setting speaks of it.
    is_default: bool,
    /// True if a folder without trust gets no hooks at all; else those of the project alone do not run in it.
    takes_all: bool,
}

/// Measured in 0.61.0.
const GEMINI_TRUST: FolderTrust = FolderTrust { title: "Gemini CLI", is_default: true, takes_all: true };
/// From the code of 0.24.4.
const QWEN_TRUST: FolderTrust = FolderTrust { title: "Qwen Code", is_default: false, takes_all: false };

/// Returns the doubt about a folder that the client does not trust. Of one for which there is no rule, the client asks before it works.
fn folder(
    asked: &TrustQuestion<'_>,
    trust: &FolderTrust,
    layers: &[SettingsLayer],
    (user, folders): (Spot, Spot),
) -> Option<Doubt> {
    // A project does not decide on its own trust.
    let project = (asked.shown)(&SettingsFile::project(Spot { env: None, ..user }));
    let told = |layer: &SettingsLayer| layer.values.pointer("/security/folderTrust/enabled").and_then(Value::as_bool);
    let set = layers.iter().rev().filter(|layer| layer.shown != project).find_map(told);
    if !set.unwrap_or(trust.is_default) || !(asked.project || trust.takes_all) {
        return None;
    }
    let rules = parsed(asked, &SettingsFile::user(folders));
    // The rule with the longest path decides; one for a parent is that of the folder above.
    let rule = |(path, rule): (&String, &Value)| {
        let rule = rule.as_str()?;
        let named = Path::new(path);
        let place = if rule == "TRUST_PARENT" { named.parent().unwrap_or(named) } else { named };
        asked.folder.starts_with(place).then(|| (path.len(), rule.to_owned()))
    };
    let decided = rules.as_object().into_iter().flatten().filter_map(rule).max_by_key(|(length, _)| *length);
    let is_trusted = decided.map(|(_, rule)| rule != "DO_NOT_TRUST");
    // Where nobody was asked yet, the hooks of a project are not sure to run, if the person has switched the trust on.
    if is_trusted.unwrap_or(!asked.project || set.is_none()) {
        return None;
    }
    let what = if trust.takes_all { "and runs no hooks in it" } else { "and does not read the hooks in it" };
    let title = trust.title;
    Some(Doubt {
        what: format!("{title} does not trust this folder {what}"),
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
        what: format!("Hermes Agent does not allow the hooks of {} yet", events.join(", ")),
        step: "start `hermes` in a terminal and answer yes, or run `hermes --accept-hooks` once".to_owned(),
        is_certain: true,
    }]
}
