//! YAML with places: every leaf value with its key path, line and column.

use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

use crate::error::{Code, Error};

/// Keys whose value is a map of its own, not a section of keys.
const WHOLE: &[&str] = &["policy", "rules"];

/// The place of a value, and the values inside of it (1-based; 0 when it comes from no file).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Spot {
    pub line: u64,
    pub column: u64,
    /// By name in a map, by index in a list.
    inside: Vec<(String, Spot)>,
}

impl Spot {
    fn of(node: &Spanned<YamlNode>) -> Spot {
        let inside = match &node.value {
            YamlNode::Map(entries) => entries.iter().map(|(name, node)| (name.clone(), Spot::of(node))).collect(),
            YamlNode::List(items) => {
                items.iter().enumerate().map(|(at, node)| (at.to_string(), Spot::of(node))).collect()
            }
            YamlNode::Scalar(_) => Vec::new(),
        };
        Spot { line: node.referenced.line(), column: node.referenced.column(), inside }
    }

    /// Returns the place of a value inside, or of the innermost known one around it.
    pub(super) fn at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> &Spot {
        path.into_iter().fold(self, |spot, name| {
            spot.inside.iter().find(|(known, _)| known == name).map_or(spot, |(_, inner)| inner)
        })
    }
}

/// A value with its dotted key and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf {
    pub key: String,
    pub value: Value,
    pub spot: Spot,
}

/// Text that is no YAML, or no map.
#[derive(Debug)]
pub(super) struct Broken {
    pub message: String,
    pub line: u64,
    pub column: u64,
    pub excerpt: String,
}

impl Broken {
    /// Returns what to do about it.
    pub(super) fn hint(&self) -> &'static str {
        if self.message.contains("alias") || self.message.contains("anchor") {
            "quote patterns that begin with `*`: \"*.rs\""
        } else {
            "see docs/CONFIG.md"
        }
    }

    /// As an error that names the file.
    pub(super) fn in_file(self, path: &Path) -> Error {
        let hint = self.hint();
        let message = format!("{}:{}:{}: {}\n{}", path.display(), self.line, self.column, self.message, self.excerpt);
        Error::new(Code::BadRequest, message.trim_end()).line(self.line).hint(hint)
    }
}

enum YamlNode {
    Map(Vec<(String, Spanned<YamlNode>)>),
    List(Vec<Spanned<YamlNode>>),
    Scalar(Value),
}

impl YamlNode {
    fn value(&self) -> Value {
        match self {
            YamlNode::Map(entries) => Value::Object(
                entries.iter().map(|(key, node)| (key.clone(), node.value.value())).collect::<Map<_, _>>(),
            ),
            YamlNode::List(items) => Value::Array(items.iter().map(|item| item.value.value()).collect()),
            YamlNode::Scalar(value) => value.clone(),
        }
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::String(value.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        YamlNode::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlNode::Map(entries))
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlNode, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

fn parse(text: &str) -> Result<Spanned<YamlNode>, Broken> {
    // Only `true` and `false` are booleans: `enabled: no` would be read as a word and refused by its key.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
        // Its first line is the message; what is advice to a programmer goes.
        let whole = error.to_string();
        let first = whole.lines().next().unwrap_or_default();
        let plain = first.split_once(&format!("line {line} column {column}: ")).map_or(first, |(_, rest)| rest);
        let message = plain.split(", set ").flat_map(|part| part.split("; use ")).next().unwrap_or(plain);
        Broken { message: message.to_owned(), line, column, excerpt: excerpt(text, line, column) }
    })
}

/// Returns all leaves in the order of the file. An empty text has none.
pub(super) fn leaves(text: &str) -> Result<Vec<Leaf>, Broken> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    let root = parse(text)?;
    match &root.value {
        YamlNode::Map(entries) => {
            let mut leaves = Vec::new();
            collect("", entries, &mut leaves);
            Ok(leaves)
        }
        YamlNode::Scalar(Value::Null) => Ok(Vec::new()),
        YamlNode::List(_) | YamlNode::Scalar(_) => {
            let message = "the file must contain keys and values, like `guard: turn`".to_owned();
            Err(Broken { message, line: 1, column: 1, excerpt: excerpt(text, 1, 1) })
        }
    }
}

fn collect(prefix: &str, entries: &[(String, Spanned<YamlNode>)], leaves: &mut Vec<Leaf>) {
    for (name, node) in entries {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match &node.value {
            YamlNode::Map(inner) if !WHOLE.contains(&key.as_str()) => collect(&key, inner, leaves),
            other => leaves.push(Leaf { key, value: other.value(), spot: Spot::of(node) }),
        }
    }
}

/// Returns a single value.
pub(super) fn value(text: &str) -> Option<Value> {
    parse(text).ok().map(|node| node.value.value())
}

/// Returns the line with a caret under the column; nothing where that lies too far out to be seen.
pub(super) fn excerpt(text: &str, line: u64, column: u64) -> String {
    let source = text.lines().nth((line as usize).saturating_sub(1));
    let Some(source) = source.filter(|_| column <= 120) else {
        return String::new();
    };
    let number = line.to_string();
    let source = crate::model::text::cut(&crate::model::text::printable(source), 120);
    format!("{number} | {source}\n{}   {}^", " ".repeat(number.len()), " ".repeat((column as usize).saturating_sub(1)))
}
