//! Keeps the valid rules of a user's settings: an invalid rule is dropped alone.

use serde_json::{Map, Value};

use super::document::document;
use crate::model::text::cut;

/// Longest reason, in characters: some readers list all words that they would have taken.
const MAX_WHY: usize = 160;

/// A part of a user's rules that is passed over.
#[derive(Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Leads to it: names of sections, indices of lists.
    pub path: Vec<String>,
    /// The reason, as a sentence without a full stop.
    pub why: String,
    /// True if the rule of the same id that was in force takes its place.
    pub stays: bool,
}

/// Returns the sound part of rules, as a document, and what was dropped. `json` is a list of rules or a map of
/// sections; `before` is what was in force.
pub(crate) fn sound(json: &str, before: Option<&str>) -> (String, Vec<Dropped>) {
    let (sections, is_list) = sections(json);
    let whole = text(&sections);
    if document(&whole).is_ok() {
        return (whole, Vec::new());
    }
    let before = before.map(|before| self::sections(before).0).unwrap_or_default();
    let mut kept = Map::new();
    let mut dropped = Vec::new();
    for (section, content) in &sections {
        let known = before.get(section);
        let (content, faults) = sound_section(section, content, known);
        let faults = faults.into_iter().map(|(at, why, stays)| {
            let path = (!is_list).then(|| section.clone()).into_iter().chain(at).collect();
            Dropped { path, why, stays }
        });
        dropped.extend(faults);
        let Some(content) = content else { continue };
        // A rule that is sound alone may not be so beside the others: then it is dropped, and they stay.
        let mut with = kept.clone();
        with.insert(section.clone(), content);
        match document(&text(&with)) {
            Ok(_) => kept = with,
            Err(error) => {
                dropped.push(Dropped { path: vec![section.clone()], why: plain(error.message()), stays: false });
            }
        }
    }
    (text(&kept), dropped)
}

/// A fault of a section: its entry (`None`: the whole section), the reason, and whether the section that was in force stays.
type Fault = (Option<String>, String, bool);

/// Returns the sound part of a section, if there is any, and what is wrong with the rest.
fn sound_section(section: &str, content: &Value, before: Option<&Value>) -> (Option<Value>, Vec<Fault>) {
    let Err(why) = test(section, content.clone()) else { return (Some(content.clone()), Vec::new()) };
    let items = match content {
        // A section that no list can be has no entries of its own.
        Value::Array(items) if test(section, Value::Array(Vec::new())).is_ok() => items,
        _ => return (before.cloned(), vec![(None, why, before.is_some())]),
    };
    let (mut sound, mut faults) = (Vec::new(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        match test(section, Value::Array(vec![item.clone()])) {
            Ok(()) => sound.push(item.clone()),
            Err(why) => {
                let known = before.and_then(|rules| same_id(rules, item));
                faults.push((Some(at.to_string()), why, known.is_some()));
                sound.extend(known.cloned());
            }
        }
    }
    (Some(Value::Array(sound)), faults)
}

fn text(sections: &Map<String, Value>) -> String {
    // JSON is YAML.
    if sections.is_empty() { String::new() } else { Value::Object(sections.clone()).to_string() }
}

/// Returns the sections of a document, and whether it is a list of rules alone.
fn sections(json: &str) -> (Map<String, Value>, bool) {
    match serde_json::from_str(json) {
        Ok(Value::Object(sections)) => (sections, false),
        Ok(list @ Value::Array(_)) => (std::iter::once(("rules".to_owned(), list)).collect(), true),
        Ok(_) | Err(_) => (Map::new(), false),
    }
}

fn test(section: &str, content: Value) -> Result<(), String> {
    let alone = std::iter::once((section.to_owned(), content)).collect();
    document(&text(&alone)).map(drop).map_err(|error| plain(error.message()))
}

/// Returns a message without the place, which is of the JSON that was made of the user's text.
fn plain(message: &str) -> String {
    let said = message.split_once(": ").map_or(message, |(_, rest)| rest);
    let said = said.rsplit_once(" at line ").map_or(said, |(said, _)| said);
    cut(said, MAX_WHY)
}

fn same_id<'r>(rules: &'r Value, item: &Value) -> Option<&'r Value> {
    let id = item.get("id")?;
    rules.as_array()?.iter().find(|rule| rule.get("id") == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_rule_is_dropped_alone() {
        let good = r#"{"id":"own","program":"frob","class":"cloud"}"#;
        let (kept, dropped) = sound(&format!(r#"[1,{good},{{"id":"x","program":"y","klass":"z"}}]"#), None);
        assert_eq!(kept, format!(r#"{{"rules":[{}]}}"#, r#"{"class":"cloud","id":"own","program":"frob"}"#));
        let places: Vec<&str> = dropped.iter().map(|dropped| dropped.path[0].as_str()).collect();
        assert_eq!(places, ["0", "2"]);
        assert!(dropped[1].why.contains("klass") && !dropped[1].why.contains("column"), "{dropped:?}");
        // The one that was in force stays in its place.
        let (kept, dropped) =
            sound(r#"{"rules":[{"id":"own","klass":1}],"disable":"a b"}"#, Some(&format!("[{good}]")));
        assert!(kept.contains("frob") && kept.contains("a b") && dropped[0].stays, "{kept} {dropped:?}");
        assert_eq!(dropped[0].path, ["rules", "0"]);
        let (kept, dropped) = sound(r#"{"nonsense":"a","rules":[]}"#, None);
        assert_eq!((kept.as_str(), dropped[0].path[0].as_str()), (r#"{"rules":[]}"#, "nonsense"));
        assert_eq!(sound("[]", None), (r#"{"rules":[]}"#.to_owned(), vec![]));
    }

    #[test]
    fn a_bad_section_is_dropped_alone() {
        let rules = r#"[{"id":"own","program":"frob","class":"cloud"}]"#;
        for (bad, section) in [
            (r#""disable":["git-push"]"#, "disable"),
            (r#""disable":[]"#, "disable"),
            (r#""quiet":["a","b"]"#, "quiet"),
            (r#""quiet":{"a":1}"#, "quiet"),
            (r#""wrappers":"nice""#, "wrappers"),
            (r#""nonsense":[1,2]"#, "nonsense"),
        ] {
            let (kept, dropped) = sound(&format!(r#"{{{bad},"rules":{rules}}}"#), None);
            assert!(kept.contains("frob") && !kept.contains(section), "{bad}: {kept}");
            assert_eq!(dropped.len(), 1, "{bad}: {dropped:?}");
            assert_eq!(
                (dropped[0].path.as_slice(), dropped[0].stays),
                ([section.to_owned()].as_slice(), false),
                "{bad}"
            );
        }
        // The rule in force stays.
        let before = r#"{"disable":"git-push"}"#;
        let (kept, dropped) = sound(&format!(r#"{{"disable":["x"],"rules":{rules}}}"#), Some(before));
        assert!(kept.contains("frob") && kept.contains("git-push") && dropped[0].stays, "{kept} {dropped:?}");
    }
}
