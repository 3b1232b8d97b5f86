//! Copilot CLI (1.0.102, tried): its trusted folders, the project's switches, Claude Code's among them, and the administrator's settings.

use serde_json::Value;

use super::layers::{SettingsLanguage, SettingsLayer, SettingsLayers, Switch, any_text, flag, layers, managed_only};
use super::parsed;
use super::question::{Doubt, SettingsFile, TrustQuestion};
use crate::agents::client::Client;
use crate::agents::install::{Spot, ours};

const SWITCH: &str = "disableAllHooks";

/// Returns the settings that keep Copilot CLI from running the hooks. `place` is its own directory.
pub(super) fn doubts(asked: &TrustQuestion<'_>, place: Spot) -> Vec<Doubt> {
    let user = |path| SettingsFile::user(Spot { path, ..place });
    let managed = |path| SettingsFile::system(Spot { env: None, dir: "github-copilot", path });
    let mut found = managed_doubts(asked, managed("managed-settings.json"), managed("policy.d"));
    if is_trusted(asked, &user("config.json")) {
        found.extend(project_doubts(asked));
    } else if asked.project {
        found.push(Doubt {
            what: "Copilot CLI does not trust this folder and does not read the hooks in it".to_owned(),
            step: "start `copilot` here and trust the folder permanently".to_owned(),
            is_certain: true,
        });
    }
    let own = layers(asked, SettingsLanguage::Json, &[user("config.json"), user("settings.json")]);
    found.extend(own.doubts);
    found.extend(own.layers.iter().filter_map(own_doubt));
    found
}

/// The project's files, the weakest first; the strongest that has the switch decides.
fn project_doubts(asked: &TrustQuestion<'_>) -> Vec<Doubt> {
    let at = |dir, path| SettingsFile::project(Spot { env: None, dir, path });
    let files =
        [".claude", ".github/copilot"].map(|dir| [at(dir, "settings.json"), at(dir, "settings.local.json")]).concat();
    let SettingsLayers { layers, mut doubts } = layers(asked, SettingsLanguage::Json, &files);
    doubts.extend(Switch { pointer: "/disableAllHooks", off: true }.doubt(layers.iter()));
    doubts
}

/// The administrator's settings, which matter unless the administrator's own hooks are piton's.
fn managed_doubts(asked: &TrustQuestion<'_>, settings: SettingsFile, policies: SettingsFile) -> Vec<Doubt> {
    let policies = SettingsFile { is_directory: true, ..policies };
    let SettingsLayers { layers, mut doubts } = layers(asked, SettingsLanguage::Json, &[settings, policies]);
    let is_ours = ours(Client::CopilotCli);
    if !layers.iter().any(|layer| any_text(&layer.values["hooks"], &is_ours)) {
        let keys = ["allowManagedHooksOnly", "strictPluginOnlyCustomization"];
        doubts.extend(layers.iter().filter_map(|layer| keys.into_iter().find_map(|key| managed_only(layer, key))));
    }
    doubts
}

/// Returns the doubt about a file of the user's. By its help Copilot CLI runs no hooks with the switch there; it was seen to run them.
/// Single hooks are switched off by a hash of their content.
fn own_doubt(layer: &SettingsLayer) -> Option<Doubt> {
    let list = layer.values.get("disabledHooks").and_then(Value::as_array);
    let name = match flag(layer, &[SWITCH]) {
        Err(doubt) => return Some(doubt),
        Ok(Some(true)) => SWITCH,
        Ok(_) if list.is_some_and(|list| !list.is_empty()) => "disabledHooks",
        Ok(_) => return None,
    };
    Some(Doubt {
        what: format!("piton cannot determine whether hooks run: `{name}` is set in {}", layer.shown),
        step: format!("remove `{name}` from that file"),
        is_certain: false,
    })
}

/// Returns true if the person trusts the folder, or one above it.
fn is_trusted(asked: &TrustQuestion<'_>, config: &SettingsFile) -> bool {
    let config = parsed(asked, config);
    let lists = ["trustedFolders", "trusted_folders"].into_iter().filter_map(|key| config.get(key)?.as_array());
    lists.flatten().filter_map(Value::as_str).any(|folder| asked.folder.starts_with(folder))
}
