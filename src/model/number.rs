//! The permanent number by which people name a checkpoint.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of a checkpoint in its workspace: `12`, or `12.1` for the first step of the turn that 12 protects. Written as a number,
/// as a text (`"12.1"`), or as `null` for [`Number::NONE`]. No number is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// Counts the listed checkpoints, from 1.
    pub main: u64,
    /// Counts the steps of a turn, from 1; 0 for a checkpoint that is no step.
    pub step: u32,
}

impl Number {
    /// Stands for a base capture, which has no number.
    pub const NONE: Number = Number { main: 0, step: 0 };

    /// Returns the number of a checkpoint that is no step.
    pub const fn of(main: u64) -> Number {
        Number { main, step: 0 }
    }

    /// Returns true for a base capture's.
    pub fn is_none(self) -> bool {
        self == Number::NONE
    }

    /// Reads `12` or `12.1`; `None` for anything else, for 0 and for what is out of range.
    pub fn parse(text: &str) -> Option<Number> {
        let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (main, step) = match text.split_once('.') {
            Some((main, step)) if is_plain(step) && !step.starts_with('0') => (main, step.parse().ok()?),
            Some(_) => return None,
            None => (text, 0),
        };
        let main = Some(main).filter(|main| is_plain(main))?.parse().ok()?;
        (main > 0).then_some(Number { main, step })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number { main: 0, .. } => f.pad("(base capture)"),
            Number { main, step: 0 } => f.pad(&main.to_string()),
            Number { main, step } => f.pad(&format!("{main}.{step}")),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number { main: 0, .. } => serializer.serialize_unit(),
            Number { main, step: 0 } => serializer.serialize_u64(*main),
            Number { .. } => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number of a checkpoint")
    }

    fn visit_u64<E: Error>(self, main: u64) -> Result<Number, E> {
        Ok(Number::of(main))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        Number::parse(text).ok_or_else(|| E::custom("not the number of a checkpoint"))
    }

    fn visit_unit<E: Error>(self) -> Result<Number, E> {
        Ok(Number::NONE)
    }

    fn visit_none<E: Error>(self) -> Result<Number, E> {
        Ok(Number::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read() {
        let table = [
            ("12", Some(Number::of(12)), "12"),
            ("12.1", Some(Number { main: 12, step: 1 }), "\"12.1\""),
            ("12.10", Some(Number { main: 12, step: 10 }), "\"12.10\""),
            ("0", None, ""),
            ("12.", None, ""),
            (".1", None, ""),
            ("12.01", None, ""),
            ("12.0", None, ""),
            ("1.2.3", None, ""),
            ("+1", None, ""),
            ("99999999999999999999", None, ""),
        ];
        for (text, number, json) in table {
            assert_eq!(Number::parse(text), number, "{text}");
            let Some(number) = number else { continue };
            assert_eq!(number.to_string(), text);
            assert_eq!(serde_json::to_string(&number).unwrap(), json);
            assert_eq!(serde_json::from_str::<Number>(json).unwrap(), number);
        }
        assert_eq!(serde_json::to_string(&Number::NONE).unwrap(), "null");
        assert_eq!(serde_json::from_str::<Number>("null").unwrap(), Number::NONE);
        assert_eq!(format!("{:>5}|{:5}|", Number::of(7), Number { main: 7, step: 2 }), "    7|7.2  |");
    }

    #[test]
    fn steps_stand_behind_their_checkpoint() {
        let mut numbers = ["2", "1.10", "1.2", "1"].map(|text| Number::parse(text).unwrap());
        numbers.sort();
        assert_eq!(numbers.map(|number| number.to_string()), ["1", "1.2", "1.10", "2"]);
    }
}
