//! Kimi Code: it has no switch for hooks, but passes over all of them where one is not as it wants.

use serde_json::Value;

use super::layers::{SettingsLanguage, SettingsLayer, layers, unreadable};
use super::question::{Doubt, SettingsFile, TrustQuestion};
use crate::agents::client::Client;
use crate::agents::clients;
use crate::agents::install::Spot;

/// Returns the doubt about a hook for which the client would ignore all hooks.
pub(super) fn doubts(asked: &TrustQuestion<'_>, config: Spot) -> Vec<Doubt> {
    let settings = layers(asked, SettingsLanguage::Toml, &[SettingsFile::user(config)]);
    let mut doubts = settings.doubts;
    doubts.extend(settings.layers.iter().filter_map(odd));
    doubts
}

/// Returns the doubt about the first hook that is not as the client wants it.
fn odd(layer: &SettingsLayer) -> Option<Doubt> {
    let hooks = layer.values.get("hooks")?;
    let listed = hooks.as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = &layer.shown;
    if !hooks.is_array() || listed.iter().any(|hook| !fits(hook)) {
        return Some(Doubt {
            what: format!("a hook in {shown} does not have the format that Kimi Code expects, so no hook runs"),
            step: "fix the `[[hooks]]` there: `event`, `command`, `timeout` of 1 to 600, `matcher`, and nothing else"
                .to_owned(),
            is_certain: true,
        });
    }
    let is_known = |event: &str| clients::profile(Client::KimiCode).shape.step(event).is_some();
    let mut events = listed.iter().filter_map(|hook| hook["event"].as_str());
    let event = events.find(|event| !is_known(event))?;
    Some(unreadable(shown, &format!("Kimi Code 2.1 does not know the event `{event}` and would ignore all hooks")))
}

fn fits(hook: &Value) -> bool {
    let Some(fields) = hook.as_object() else { return false };
    let is_text = |name: &str| hook[name].as_str().is_some_and(|text| !text.is_empty());
    let fits = |(name, value): (&String, &Value)| match name.as_str() {
        "event" | "command" => true,
        "matcher" => value.is_string(),
        "timeout" => value.as_u64().is_some_and(|seconds| (1..=600).contains(&seconds)),
        _ => false,
    };
    is_text("event") && is_text("command") && fields.iter().all(fits)
}
