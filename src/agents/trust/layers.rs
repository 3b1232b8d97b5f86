//! The settings files of a client, in their order, and the values that are in force.

use serde_json::Value;

use super::question::{Doubt, FileText, SettingsFile, TrustQuestion};
use crate::agents::edit::scan::scan;

/// The content of one settings file.
pub(super) struct SettingsLayer {
    /// The file's path, for people.
    pub shown: String,
    /// True if the file is the administrator's.
    pub is_managed: bool,
    /// The values in it.
    pub values: Value,
}

/// The settings files of a client that are there and can be read, the weakest first, and a doubt for each of the others.
pub(super) struct SettingsLayers {
    pub layers: Vec<SettingsLayer>,
    pub doubts: Vec<Doubt>,
}

/// Returns the doubt about a file that piton cannot read, though the client may.
pub(super) fn unreadable(shown: &str, why: &str) -> Doubt {
    Doubt {
        what: format!("piton cannot determine whether hooks run: {shown}: {why}"),
        step: "fix that file or make it readable".to_owned(),
        is_certain: false,
    }
}

impl SettingsLayers {
    fn add(&mut self, shown: String, is_managed: bool, text: FileText, form: SettingsLanguage) {
        let read = match text {
            FileText::Missing => return,
            FileText::Unreadable(why) => Err(why),
            FileText::Text(text) => form.read(&text),
        };
        match read {
            Ok(values) => self.layers.push(SettingsLayer { shown, is_managed, values }),
            Err(why) => self.doubts.push(unreadable(&shown, &why)),
        }
    }
}

/// The language of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsLanguage {
    /// JSON with comments; an empty file is an empty object to all clients.
    Json,
    /// TOML.
    Toml,
}

impl SettingsLanguage {
    /// Returns the values in a text, or why there are none.
    fn read(self, text: &str) -> Result<Value, String> {
        match self {
            SettingsLanguage::Json if text.trim().is_empty() => Ok(Value::Null),
            SettingsLanguage::Json => {
                let value = scan(text).map_err(|error| error.text())?.value();
                if value.is_object() { Ok(value) } else { Err("it does not contain a JSON object".to_owned()) }
            }
            SettingsLanguage::Toml => toml_edit::de::from_str(text).map_err(|error| {
                // Further lines show the place, which the path and the first line name already.
                let text = error.to_string();
                format!("it is not TOML: {}", text.lines().next().unwrap_or_default())
            }),
        }
    }
}

/// Reads settings files, the weakest first.
pub(super) fn layers(asked: &TrustQuestion<'_>, form: SettingsLanguage, files: &[SettingsFile]) -> SettingsLayers {
    let mut layers = SettingsLayers { layers: Vec::new(), doubts: Vec::new() };
    for file in files {
        if file.is_directory {
            for (shown, text) in (asked.drop_ins)(file) {
                layers.add(shown, file.is_managed(), text, form);
            }
        } else {
            layers.add((asked.shown)(file), file.is_managed(), (asked.read)(file), form);
        }
    }
    layers
}

/// Returns the step that takes a setting out of a file.
fn taken_out(name: &str, is_managed: bool) -> String {
    let who = if is_managed { "ask the administrator to remove" } else { "remove" };
    format!("{who} `{name}` from that file")
}

/// The value that switches hooks off.
pub(super) struct Switch {
    /// The key, as a JSON pointer.
    pub pointer: &'static str,
    /// The value at which no hook runs.
    pub off: bool,
}

impl Switch {
    fn name(&self) -> String {
        self.pointer.trim_start_matches('/').replace('/', ".")
    }

    /// Returns the doubt if the switch is off where it is set last; the strongest file counts.
    pub(super) fn doubt<'l>(&self, layers: impl DoubleEndedIterator<Item = &'l SettingsLayer>) -> Option<Doubt> {
        let found = |layer: &'l SettingsLayer| {
            let value = layer.values.pointer(self.pointer).filter(|value| !value.is_null())?;
            Some((layer, value))
        };
        let (layer, value) = layers.rev().find_map(found)?;
        self.judged(layer, value)
    }

    fn judged(&self, layer: &SettingsLayer, value: &Value) -> Option<Doubt> {
        let (name, shown) = (self.name(), &layer.shown);
        match value.as_bool() {
            None => Some(unreadable(shown, &format!("`{name}` is neither true nor false"))),
            Some(value) if value != self.off => None,
            Some(_) => {
                let is = if self.off { "is set" } else { "is false" };
                Some(Doubt {
                    what: format!("`{name}` {is} in {shown}: no hook runs"),
                    step: taken_out(&name, layer.is_managed),
                    is_certain: true,
                })
            }
        }
    }
}

/// Returns the doubt if a setting in the administrator's files lets no hooks run but the administrator's own.
pub(super) fn managed_only(layer: &SettingsLayer, key: &str) -> Option<Doubt> {
    let value = layer.values.get(key).filter(|value| !value.is_null() && **value != Value::Bool(false))?;
    let names_hooks = value.as_array().is_some_and(|list| list.iter().any(|one| one == "hooks"));
    if value.as_array().is_some() && !names_hooks {
        return None;
    }
    if *value != Value::Bool(true) && !names_hooks {
        return Some(unreadable(&layer.shown, &format!("`{key}` is neither true nor false")));
    }
    Some(Doubt {
        what: format!("`{key}` is set in {}: only the administrator's hooks run", layer.shown),
        step: format!("ask the administrator to add piton's hooks there, or to remove `{key}`"),
        is_certain: true,
    })
}

/// Returns a setting of a file that is true or false. `path` names its tables and its key.
pub(super) fn flag(layer: &SettingsLayer, path: &[&str]) -> Result<Option<bool>, Doubt> {
    let value = path.iter().try_fold(&layer.values, |values, key| values.get(key));
    let odd = || unreadable(&layer.shown, &format!("`{}` is neither true nor false", path.join(".")));
    value.map(|value| value.as_bool().ok_or_else(odd)).transpose()
}

/// Returns whether a text in a value, or in what it holds, is as asked for.
pub(super) fn any_text(value: &Value, is_wanted: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_wanted(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, is_wanted)),
        Value::Object(fields) => fields.values().any(|field| any_text(field, is_wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
