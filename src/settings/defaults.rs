//! The settings that come with piton: `config/default.yaml` as `build.rs` read and printed it, each dotted key with its value as
//! JSON, and the direction of each key from `config/directions.yaml`. No YAML is read when the program starts.

/// The change of a key's value that guards or keeps more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueDirection {
    /// A larger value guards or keeps more.
    More,
    /// A smaller value guards or keeps more.
    Less,
    /// No value guards or keeps more than another one.
    Free,
}

/// A key and its direction.
pub(super) struct KeyDirection {
    pub key: &'static str,
    pub direction: ValueDirection,
}

include!(concat!(env!("OUT_DIR"), "/defaults.rs"));

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::DEFAULTS;

    #[test]
    fn the_defaults_are_those_of_the_file() {
        let read = yaml::leaves(include_str!("../../config/default.yaml")).unwrap();
        let read: Vec<_> = read.into_iter().map(|leaf| (leaf.key, leaf.value)).collect();
        let embedded = DEFAULTS.iter().map(|(key, value)| ((*key).to_owned(), serde_json::from_str(value).unwrap()));
        assert_eq!(embedded.collect::<Vec<_>>(), read);
    }
}
