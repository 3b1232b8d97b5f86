//! Factory droid (0.215.0, tried): a switch among the hooks of each file, and files of hooks alone.

use serde_json::Value;

use super::layers::{SettingsLanguage, SettingsLayer, SettingsLayers, Switch, any_text, layers, managed_only};
use super::question::{Doubt, SettingsFile, TrustQuestion};
use crate::agents::client::Client;
use crate::agents::install::{Spot, ours};

/// The switch in a file of settings, and in a file of hooks alone.
const SWITCHES: [Switch; 2] =
    [Switch { pointer: "/hooks/hooksDisabled", off: true }, Switch { pointer: "/hooksDisabled", off: true }];

/// Returns the settings that keep droid from running the hooks. `place` is its own directory; a project has one of the same name.
pub(super) fn doubts(asked: &TrustQuestion<'_>, place: Spot) -> Vec<Doubt> {
    let at = |project: bool, path| match project {
        true => SettingsFile::project(Spot { path, ..place }),
        false => SettingsFile::user(Spot { path, ..place }),
    };
    let managed = SettingsFile::system(Spot { env: None, dir: "factory", path: "settings.json" });
    let [user, project] = [false, true].map(|project| [at(project, "settings.json"), at(project, "hooks.json")]);
    let SettingsLayers { layers, mut doubts } =
        layers(asked, SettingsLanguage::Json, &[user[0], user[1], project[0], project[1], managed]);
    let alone = [(asked.shown)(&user[1]), (asked.shown)(&project[1])];
    doubts.extend(
        layers
            .iter()
            .rev()
            .find_map(|layer| {
                let switch = &SWITCHES[usize::from(alone.contains(&layer.shown))];
                layer
                    .values
                    .pointer(switch.pointer)
                    .filter(|value| !value.is_null())
                    .map(|_| switch.doubt([layer].into_iter()))
            })
            .flatten(),
    );
    doubts.extend(
        layers.iter().filter(|layer| layer.is_managed).find_map(|layer| managed_only(layer, "allowManagedHooksOnly")),
    );
    let replaces =
        |layer: &&SettingsLayer| layer.shown == alone[usize::from(asked.project)] && has_hooks(&layer.values);
    doubts.extend(layers.iter().find(replaces).map(|layer| Doubt {
        what: format!("{} replaces the hooks before a tool in `settings.json`", layer.shown),
        step: "move the hooks of that file into `settings.json` and remove the file".to_owned(),
        is_certain: true,
    }));
    doubts
}

/// Returns true for a file of hooks alone that has hooks before a tool, and not piton's. Each event counts by itself.
fn has_hooks(values: &Value) -> bool {
    values["PreToolUse"].is_array() && !any_text(&values["PreToolUse"], &ours(Client::Droid))
}
