//! The settings files of a client, in their order, and the values that are in force.

use serde_json::Value;

use super::{Doubt, FileText, SettingsFile, TrustQuestion};
use crate::agents::edit::scan::scan;
use crate::agents::edit::toml::{TomlScalar, TomlValues};

/// The content of one settings file.
pub(super) struct SettingsLayer<V> {
    /// The file's path, for people.
    pub shown: String,
    /// True if the file is the administrator's.
    pub is_managed: bool,
    /// The values in it.
    pub values: V,
}

/// The settings files of a client that are there and can be read, the weakest first, and a doubt for each of the others.
pub(super) struct SettingsLayers<V> {
    pub layers: Vec<SettingsLayer<V>>,
    pub doubts: Vec<Doubt>,
}

/// Returns the doubt about a file that piton cannot read, though the client may.
fn unreadable(shown: &str, why: &str) -> Doubt {
    Doubt {
        what: format!("piton cannot tell whether hooks run: {shown}: {why}"),
        step: "mend that file, or have it readable".to_owned(),
        is_certain: false,
    }
}

impl<V> SettingsLayers<V> {
    /// Makes an empty list.
    fn new() -> SettingsLayers<V> {
        SettingsLayers { layers: Vec::new(), doubts: Vec::new() }
    }

    fn add(&mut self, shown: String, is_managed: bool, text: FileText, read: fn(&str) -> Result<V, String>) {
        let read = match text {
            FileText::Missing => return,
            FileText::Unreadable(why) => Err(why),
            FileText::Text(text) => read(&text),
        };
        match read {
            Ok(values) => self.layers.push(SettingsLayer { shown, is_managed, values }),
            Err(why) => self.doubts.push(unreadable(&shown, &why)),
        }
    }
}

/// Reads JSON; an empty file is an empty object to all clients.
fn json(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let value = scan(text).map_err(|error| error.text())?.value();
    if value.is_object() { Ok(value) } else { Err("it holds no JSON object".to_owned()) }
}

fn toml(text: &str) -> Result<TomlValues, String> {
    TomlValues::read(text).map_err(|error| error.text())
}

/// Reads settings files of JSON, the weakest first.
pub(super) fn json_layers(asked: &TrustQuestion<'_>, files: &[SettingsFile]) -> SettingsLayers<Value> {
    let mut layers = SettingsLayers::new();
    for file in files {
        if file.is_directory {
            for (shown, text) in (asked.drop_ins)(file) {
                layers.add(shown, file.is_managed(), text, json);
            }
        } else {
            layers.add((asked.shown)(file), file.is_managed(), (asked.read)(file), json);
        }
    }
    layers
}

/// Reads settings files of TOML, the weakest first.
pub(super) fn toml_layers(asked: &TrustQuestion<'_>, files: &[SettingsFile]) -> SettingsLayers<TomlValues> {
    let mut layers = SettingsLayers::new();
    for file in files {
        layers.add((asked.shown)(file), file.is_managed(), (asked.read)(file), toml);
    }
    layers
}

/// Returns the step that takes a setting out of a file.
fn taken_out(name: &str, is_managed: bool) -> String {
    let who = if is_managed { "have the administrator take" } else { "take" };
    format!("{who} `{name}` out of that file")
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
    pub(super) fn doubt<'l>(&self, layers: impl DoubleEndedIterator<Item = &'l SettingsLayer<Value>>) -> Option<Doubt> {
        let found = |layer: &'l SettingsLayer<Value>| {
            let value = layer.values.pointer(self.pointer).filter(|value| !value.is_null())?;
            Some((layer, value))
        };
        let (layer, value) = layers.rev().find_map(found)?;
        self.judged(layer, value)
    }

    fn judged<V>(&self, layer: &SettingsLayer<V>, value: &Value) -> Option<Doubt> {
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
pub(super) fn managed_only(layer: &SettingsLayer<Value>, key: &str) -> Option<Doubt> {
    let value = layer.values.get(key).filter(|value| !value.is_null() && **value != Value::Bool(false))?;
    let names_hooks = value.as_array().is_some_and(|list| list.iter().any(|one| one == "hooks"));
    if value.as_array().is_some() && !names_hooks {
        return None;
    }
    if *value != Value::Bool(true) && !names_hooks {
        return Some(unreadable(&layer.shown, &format!("`{key}` is neither true nor false")));
    }
    Some(only_managed(&layer.shown, key))
}

/// Returns the doubt about hooks of users where only the administrator's run.
pub(super) fn only_managed(shown: &str, key: &str) -> Doubt {
    Doubt {
        what: format!("`{key}` is set in {shown}: only the administrator's hooks run"),
        step: format!("have the administrator add piton's hooks there, or take `{key}` out"),
        is_certain: true,
    }
}

/// Returns a key of a TOML file that is true or false.
pub(super) fn flag(layer: &SettingsLayer<TomlValues>, path: &[&str]) -> Result<Option<bool>, Doubt> {
    match layer.values.get(path) {
        Ok(None) => Ok(None),
        Ok(Some(TomlScalar::Bool(value))) => Ok(Some(*value)),
        Ok(Some(_)) => Err(unreadable(&layer.shown, &format!("`{}` is neither true nor false", path.join(".")))),
        Err(error) => Err(unreadable(&layer.shown, &error.text())),
    }
}
