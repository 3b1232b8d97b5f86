//! Text and lists that are either read at run time or lie in the program since it was built.
//!
//! `build.rs` prints specs with `{:?}` and includes what it printed: the `Debug` of everything here is Rust source.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer};

/// A text of the table.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Text(Cow<'static, str>);

/// A list of the table.
#[derive(Clone)]
pub(crate) struct List<T: Clone + 'static>(Cow<'static, [T]>);

impl Text {
    /// Returns a text of the program itself.
    #[allow(dead_code, reason = "only what build.rs printed calls it, and build.rs reads this file too")]
    pub(crate) const fn of(text: &'static str) -> Text {
        Text(Cow::Borrowed(text))
    }
}

impl<T: Clone> List<T> {
    /// Returns a list of the program itself.
    #[allow(dead_code, reason = "only what build.rs printed calls it, and build.rs reads this file too")]
    pub(crate) const fn of(items: &'static [T]) -> List<T> {
        List(Cow::Borrowed(items))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(Cow::Owned(text))
    }
}

impl<T: Clone> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> List<T> {
        List(Cow::Owned(items))
    }
}

impl<T: Clone> Default for List<T> {
    fn default() -> List<T> {
        List(Cow::Borrowed(&[]))
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<T: Clone> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text::of({:?})", &self.0)
    }
}

impl<T: Clone + fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List::of(&{:?})", &self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        String::deserialize(deserializer).map(Text::from)
    }
}

impl<'de, T: Clone + Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        Vec::deserialize(deserializer).map(List::from)
    }
}
