//! Words of enumerations that other modules own, as a reader of replies takes them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A word of an enumeration. One of a later version is kept as it stands, and breaks no reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word<T> {
    /// A word of this version.
    Known(T),
    /// A word that this version does not have.
    Later(String),
}

impl<T> Default for Word<T> {
    fn default() -> Word<T> {
        Word::Later(String::new())
    }
}

impl<T> From<T> for Word<T> {
    fn from(known: T) -> Word<T> {
        Word::Known(known)
    }
}

impl<T: Copy> Word<T> {
    /// Returns the word, if this version has it.
    pub fn known(&self) -> Option<T> {
        match self {
            Word::Known(word) => Some(*word),
            Word::Later(_) => None,
        }
    }
}

impl<T: Serialize> Word<T> {
    /// Returns the spelling.
    pub fn text(&self) -> String {
        match self {
            Word::Known(word) => spelling(word),
            Word::Later(text) => text.clone(),
        }
    }
}

/// Returns the spelling of a word of an enumeration; nothing, of what is no word.
pub fn spelling(word: &impl Serialize) -> String {
    match serde_json::to_value(word) {
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => String::new(),
    }
}

/// Reads a list, without the items that only a later version understands.
pub(super) fn readable<'de, D: Deserializer<'de>, T: DeserializeOwned>(list: D) -> Result<Vec<T>, D::Error> {
    let items = Vec::<Value>::deserialize(list)?;
    // An item of a later version says nothing here, and must not hide the rest.
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

/// For fields that stand only where they say something.
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::model::checkpoint::CheckpointKind;
    use crate::model::effect::Class;
    use crate::protocol::CheckpointType;

    #[test]
    fn words_are_spelled_in_one_way() {
        for kind in CheckpointKind::ALL {
            assert_eq!(spelling(&kind), kind.as_str());
        }
        for (kind, word) in [(CheckpointType::Start, "start"), (CheckpointType::RigSetup, "rig-setup")] {
            assert_eq!(spelling(&kind), word);
        }
        for code in [Code::BadUtf8, Code::NotACheckpoint, Code::NoMemory, Code::PreRestoreFailed, Code::StalePlan] {
            assert_eq!(spelling(&code), code.as_str());
        }
        for class in [Class::FileDelete, Class::VcsRemote, Class::ExecOpaque, Class::Unknown] {
            assert_eq!(spelling(&class), class.as_str());
        }
        assert_eq!(spelling(&1), "");
    }

    #[test]
    fn a_list_lacks_only_the_items_of_a_later_version() {
        #[derive(Deserialize)]
        struct Classes(#[serde(deserialize_with = "readable")] Vec<Class>);
        let read: Classes = serde_json::from_str(r#"["database","moon",{"x":1},"system"]"#).unwrap();
        assert_eq!(read.0, [Class::Database, Class::System]);
    }
}
