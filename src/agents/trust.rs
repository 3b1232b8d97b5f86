//! A client's own permission for piton's hooks: its switches, lists and trusted folders. Texts in, doubts out.

use std::path::Path;

use serde_json::Value;

use super::client::Client;
use super::clients;
use super::edit::scan::scan;
use super::install::Spot;

/// A reason for which a client may not run the installed hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The reason, as a sentence without a full stop.
    pub what: String,
    /// The step that the person has to take.
    pub step: String,
}

/// The installation in question.
pub struct TrustQuestion<'a> {
    /// True if the hooks are those of one project.
    pub project: bool,
    /// The directory in which the client would run.
    pub folder: &'a Path,
    /// The file that holds the hooks, by its real name.
    pub file: &'a Path,
    /// Each event with the command that is installed for it.
    pub commands: &'a [(String, String)],
    /// The text of a file of the client's, if it is there.
    pub read: &'a dyn Fn(&Spot) -> Option<String>,
    /// The full path of such a file, for people.
    pub shown: &'a dyn Fn(&Spot) -> String,
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Client {
    /// Returns the settings that keep the client from running the hooks; none for clients without such settings.
    pub fn doubts(self, asked: &TrustQuestion<'_>) -> Vec<Doubt> {
        let place = clients::profile(self).directory;
        let below = |path: &'static str| Spot { path, ..place };
        match self {
            Client::ClaudeCode => switches(asked, &[below("settings.json")], "/disableAllHooks"),
            Client::QwenCode => {
                let mut doubts = switches(asked, &[below("settings.json")], "/disableAllHooks");
                doubts.extend(folder(asked, "Qwen Code", &below("settings.json"), &below("trustedFolders.json")));
                doubts
            }
            Client::GeminiCli => gemini(asked, &below("settings.json"), &below("trustedFolders.json")),
            Client::Codex => codex(asked, &below("config.toml")),
            Client::HermesAgent => hermes(asked, &below("config.yaml"), &below("shell-hooks-allowlist.json")),
            // They run what they find, as far as is known.
            Client::Opencode
            | Client::CopilotCli
            | Client::Cline
            | Client::Pi
            | Client::Droid
            | Client::Cursor
            | Client::Crush
            | Client::Goose => Vec::new(),
        }
    }
}

fn parsed(asked: &TrustQuestion<'_>, spot: &Spot) -> Value {
    // A file that is no JSON says nothing here; a damaged hooks' file is reported elsewhere.
    (asked.read)(spot).and_then(|text| Some(scan(&text).ok()?.value())).unwrap_or_default()
}

/// Returns a switch that turns all hooks off.
fn switches(asked: &TrustQuestion<'_>, spots: &[Spot], pointer: &str) -> Vec<Doubt> {
    let name = pointer.trim_start_matches('/').replace('/', ".");
    let off = spots.iter().filter(|spot| parsed(asked, spot).pointer(pointer) == Some(&Value::Bool(true)));
    off.map(|spot| Doubt {
        what: format!("`{name}` is set in {}: no hook runs", (asked.shown)(spot)),
        step: format!("take `{name}` out of that file"),
    })
    .collect()
}

fn gemini(asked: &TrustQuestion<'_>, settings: &Spot, folders: &Spot) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let value = parsed(asked, settings);
    if value.pointer("/hooksConfig/enabled") == Some(&Value::Bool(false)) {
        doubts.push(Doubt {
            what: format!("`hooksConfig.enabled` is false in {}: no hook runs", (asked.shown)(settings)),
            step: "type `/hooks enable-all` in Gemini CLI, or set it to true".to_owned(),
        });
    }
    let disabled = value.pointer("/hooksConfig/disabled").and_then(Value::as_array);
    let is_disabled = |name: &Value| asked.commands.iter().any(|(_, command)| name.as_str() == Some(command.as_str()));
    if disabled.into_iter().flatten().any(is_disabled) {
        doubts.push(Doubt {
            what: format!("piton's hooks are in `hooksConfig.disabled` of {}", (asked.shown)(settings)),
            step: "type `/hooks enable-all` in Gemini CLI".to_owned(),
        });
    }
    doubts.extend(folder(asked, "Gemini CLI", settings, folders));
    doubts
}

/// Hooks of a project run in trusted folders only, once the person has switched that on.
fn folder(asked: &TrustQuestion<'_>, title: &str, settings: &Spot, folders: &Spot) -> Option<Doubt> {
    let on = parsed(asked, settings).pointer("/security/folderTrust/enabled") == Some(&Value::Bool(true));
    if !(asked.project && on) {
        return None;
    }
    let rules = parsed(asked, folders);
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
    })
}

/// `config.toml` keeps the trust of each hook under the path of its file, its event and its place.
fn codex(asked: &TrustQuestion<'_>, config: &Spot) -> Vec<Doubt> {
    let text = (asked.read)(config).unwrap_or_default();
    let mut doubts = Vec::new();
    let off = |key: &str| toml(&text, "features").any(|(name, value)| name == key && value == "false");
    if off("hooks") || off("codex_hooks") {
        doubts.push(Doubt {
            what: format!("hooks are switched off in `[features]` of {}", (asked.shown)(config)),
            step: "set `hooks = true` there".to_owned(),
        });
    }
    let open = asked.commands.iter().filter(|(event, _)| {
        let place = format!("{}:{}:", asked.file.display(), snake(event));
        let mut state = text.lines().map(str::trim).filter_map(|line| {
            let name = line.strip_prefix("[hooks.state.\"")?.strip_suffix("\"]")?;
            name.starts_with(&place).then_some(name)
        });
        !state.any(|name| {
            let table = format!("hooks.state.\"{name}\"");
            let is = |key: &str, wanted: &dyn Fn(&str) -> bool| {
                toml(&text, &table).any(|(name, value)| name == key && wanted(value))
            };
            is("trusted_hash", &|_| true) && !is("enabled", &|value| value == "false")
        })
    });
    let events: Vec<&str> = open.map(|(event, _)| event.as_str()).collect();
    if !events.is_empty() {
        doubts.push(Doubt {
            what: format!("Codex does not trust the hooks of {} and runs none of them, silently", events.join(", ")),
            step: "open `/hooks` in Codex and trust piton's".to_owned(),
        });
    }
    doubts
}

/// Returns the keys of one table, a line each, as Codex writes them.
fn toml<'t>(text: &'t str, table: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let head = format!("[{table}]");
    let lines = text.lines().map(str::trim).skip_while(move |line| *line != head).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim(), value.split('#').next().unwrap_or(value).trim()))
}

fn snake(event: &str) -> String {
    let mut out = String::new();
    for letter in event.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// Finds pairs of event and command that are not accepted. Each is accepted by itself, or all are by a switch.
fn hermes(asked: &TrustQuestion<'_>, config: &Spot, list: &Spot) -> Vec<Doubt> {
    let text = (asked.read)(config).unwrap_or_default();
    let switch = text.lines().find_map(|line| line.strip_prefix("hooks_auto_accept:"));
    let on = |value: &str| matches!(value.trim().to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1");
    let all = switch.is_some_and(|value| on(value.split('#').next().unwrap_or(value)))
        || (asked.variable)("HERMES_ACCEPT_HOOKS").is_some_and(|value| on(&value));
    let accepted = parsed(asked, list);
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
    }]
}
