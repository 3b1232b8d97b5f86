//! Codex: the switches in its layers of TOML, the administrator's requirements, and its trust of the project and of each hook.

use std::path::Path;

use serde_json::Value;

use super::layers::{SettingsLanguage, SettingsLayer, any_text, flag, layers, managed_only};
use super::question::{Doubt, FileText, SettingsFile, TrustQuestion};
use crate::agents::client::Client;
use crate::agents::install::{Spot, ours};

/// The two names of the switch in `[features]`, the newer one first.
const SWITCHES: [&str; 2] = ["hooks", "codex_hooks"];

/// The setting by which only the administrator's hooks run.
const MANAGED_ONLY: &str = "allow_managed_hooks_only";

/// Returns the settings that keep Codex from running the hooks. `user` is its own `config.toml`.
pub(super) fn doubts(asked: &TrustQuestion<'_>, user: Spot) -> Vec<Doubt> {
    let project = Spot { env: None, dir: ".codex", path: "config.toml" };
    let system = |path| SettingsFile::system(Spot { env: None, dir: "codex", path });
    let files = [
        system("config.toml"),
        SettingsFile::user(user),
        SettingsFile::project(project),
        system("managed_config.toml"),
    ];
    let mut settings = layers(asked, SettingsLanguage::Toml, &files);
    let is_trusted = is_trusted(asked, &settings.layers);
    if !is_trusted {
        let of_project = (asked.shown)(&SettingsFile::project(project));
        settings.layers.retain(|layer| layer.shown != of_project);
        settings.doubts.retain(|doubt| !doubt.what.contains(&of_project));
    }
    let required = layers(asked, SettingsLanguage::Toml, &[system("requirements.toml")]);
    let mut doubts = settings.doubts;
    doubts.extend(required.doubts);
    if asked.project && !is_trusted {
        doubts.push(Doubt {
            what: "Codex does not trust this project and does not read the hooks in it".to_owned(),
            step: "start `codex` here and trust the directory".to_owned(),
            is_certain: true,
        });
    }
    // The requirements beat all else.
    let all: Vec<&SettingsLayer> = settings.layers.iter().chain(&required.layers).collect();
    doubts.extend(switched_off(&all));
    let is_ours = ours(Client::Codex);
    if required.layers.iter().any(|layer| any_text(&layer.values["hooks"], &is_ours)) {
        return doubts;
    }
    doubts.extend(required.layers.iter().filter_map(|layer| managed_only(layer, MANAGED_ONLY)));
    let name = (asked.shown)(&SettingsFile::user(user));
    // A file that cannot be read has its doubt already.
    if !doubts.iter().any(|doubt| !doubt.is_certain && doubt.what.contains(&name)) {
        let own = settings.layers.iter().find(|layer| layer.shown == name);
        doubts.extend(untrusted(asked, own.map(|layer| &layer.values)));
    }
    doubts
}

/// Returns true if Codex reads the project's own files. It asks for its own list of directories: for this one, or for the main
/// checkout of a linked worktree, or, in a directory below a repository's, for the repository's.
fn is_trusted(asked: &TrustQuestion<'_>, layers: &[SettingsLayer]) -> bool {
    let level = |dir: &Path| {
        let listed = |layer: &SettingsLayer| {
            let entry = layer.values.get("projects")?.get(dir.to_string_lossy().as_ref())?;
            Some(entry.get("trust_level")?.as_str()? == "trusted")
        };
        layers.iter().rev().find_map(listed)
    };
    if let Some(is_trusted) = level(asked.folder) {
        return is_trusted;
    }
    match (asked.read)(&SettingsFile::project(Spot { env: None, dir: ".git", path: "" })) {
        FileText::Missing => asked.folder.ancestors().skip(1).find_map(level).unwrap_or(false),
        FileText::Text(text) => {
            let data = text.strip_prefix("gitdir:").map_or("", str::trim);
            let main = data.rsplit_once("/.git/worktrees/").map(|(main, _)| Path::new(main));
            main.and_then(level).unwrap_or(false)
        }
        // A directory: the repository's own.
        FileText::Unreadable(_) => false,
    }
}

/// Returns the doubt if the strongest file that has the switch says that hooks are off.
fn switched_off(layers: &[&SettingsLayer]) -> Option<Doubt> {
    for layer in layers.iter().rev() {
        for switch in SWITCHES {
            match flag(layer, &["features", switch]) {
                Err(doubt) => return Some(doubt),
                Ok(None) => {}
                Ok(Some(true)) => return None,
                Ok(Some(false)) => {
                    let who = if layer.is_managed { "ask the administrator to set" } else { "set" };
                    return Some(Doubt {
                        what: format!("hooks are switched off in `[features]` of {}", layer.shown),
                        step: format!("{who} `{switch} = true` there"),
                        is_certain: true,
                    });
                }
            }
        }
    }
    None
}

/// Returns the doubt about hooks that the person has not trusted. `config.toml` keeps the trust of each hook under the path of
/// its file, its event and its place.
fn untrusted(asked: &TrustQuestion<'_>, config: Option<&Value>) -> Option<Doubt> {
    let state = config.and_then(|config| config.pointer("/hooks/state")).and_then(Value::as_object);
    let is_open = |event: &str| {
        let place = format!("{}:{}:", asked.file.display(), snake(event));
        let is_trusted = |(name, hook): (&String, &Value)| {
            name.starts_with(&place) && !hook["trusted_hash"].is_null() && hook["enabled"] != false
        };
        !state.into_iter().flatten().any(is_trusted)
    };
    let open = asked.commands.iter().filter(|(event, _)| is_open(event));
    let events: Vec<&str> = open.map(|(event, _)| event.as_str()).collect();
    (!events.is_empty()).then(|| Doubt {
        what: match events.len() == asked.commands.len() {
            true => "Codex ignores piton's hooks until you trust them".to_owned(),
            false => format!("Codex ignores piton's hooks of {} until you trust them", events.join(", ")),
        },
        step: "open `/hooks` in Codex and trust piton's hooks".to_owned(),
        is_certain: true,
    })
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
