//! pi: entries of its settings that leave an extension out, and the folders whose own extensions it loads.

use globset::GlobBuilder;
use serde_json::Value;

use super::layers::{SettingsLanguage, layers, unreadable};
use super::question::{Doubt, SettingsFile, TrustQuestion};
use crate::agents::install::Spot;

/// The extension's place below the directory of the settings that name it.
const EXTENSION: &str = "extensions/piton.ts";

/// Returns the settings for which pi does not load the extension. `user` is its own `settings.json`, `folders` its trusted folders.
pub(super) fn doubts(asked: &TrustQuestion<'_>, user: Spot, folders: Spot) -> Vec<Doubt> {
    let project = SettingsFile::project(Spot { env: None, dir: ".pi", path: "settings.json" });
    let user = SettingsFile::user(user);
    let settings = layers(asked, SettingsLanguage::Json, &[user, project]);
    let mut doubts = settings.doubts;
    // Only the settings beside the extension speak of it.
    let beside = (asked.shown)(if asked.project { &project } else { &user });
    if let Some(layer) = settings.layers.iter().find(|layer| layer.shown == beside) {
        doubts.extend(left_out(asked, &layer.shown, &layer.values["extensions"]));
    }
    if asked.project {
        let own = (asked.shown)(&user);
        let layer = settings.layers.iter().find(|layer| layer.shown == own);
        let always = layer.is_some_and(|layer| layer.values["defaultProjectTrust"] == "always");
        doubts.extend(untrusted(asked, folders, always));
    }
    doubts
}

/// Returns the doubt if an entry leaves the extension out: `!` with a pattern, or `-` with its path, which beats `+`.
fn left_out(asked: &TrustQuestion<'_>, shown: &str, entries: &Value) -> Option<Doubt> {
    let entries: Vec<&str> = entries.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let file = asked.file.to_string_lossy();
    let is_it = |path: &str| {
        let path = path.strip_prefix("./").unwrap_or(path);
        path == EXTENSION || path == file
    };
    let fits = |pattern: &str| {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build().map(|glob| glob.compile_matcher());
        // A text that is no pattern here may be one of pi's.
        glob.map_or(true, |glob| [EXTENSION, "piton.ts", &file].iter().any(|path| glob.is_match(path)))
    };
    let named = |sign: char| entries.iter().filter_map(move |entry| entry.strip_prefix(sign));
    let is_in = named('+').any(is_it);
    let entry = named('-').find(|path| is_it(path)).map(|path| format!("-{path}"));
    let entry =
        entry.or_else(|| named('!').find(|pattern| !is_in && fits(pattern)).map(|pattern| format!("!{pattern}")))?;
    Some(Doubt {
        what: format!("`{entry}` in {shown}, under `extensions`, disables piton's extension"),
        step: format!("remove `{entry}` from that file, or enable the extension with `pi config`"),
        is_certain: true,
    })
}

/// Returns the doubt if pi does not trust the folder: then it does not load what lies in it, and without a terminal it does not ask.
fn untrusted(asked: &TrustQuestion<'_>, folders: Spot, always: bool) -> Option<Doubt> {
    let file = SettingsFile::user(folders);
    let read = layers(asked, SettingsLanguage::Json, &[file]);
    if let Some(doubt) = read.doubts.into_iter().next() {
        return Some(doubt);
    }
    let decisions = read.layers.first().map(|layer| &layer.values);
    let decision =
        |dir: &std::path::Path| decisions?.get(dir.to_string_lossy().as_ref()).filter(|told| !told.is_null());
    let told = asked.folder.ancestors().find_map(decision);
    match told.map(Value::as_bool) {
        Some(Some(true)) => None,
        None if always => None,
        Some(None) => Some(unreadable(&(asked.shown)(&file), "a value there is neither true nor false")),
        Some(Some(false)) | None => Some(Doubt {
            what: "pi does not trust this folder and does not load the extension in it".to_owned(),
            step: "start `pi` here and type `/trust`, or run `piton install pi` without `--project`".to_owned(),
            is_certain: true,
        }),
    }
}
