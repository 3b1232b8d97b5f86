//! The names of refs in memory. Thousands of them come from one file, and share its text.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The full name of a ref (`refs/heads/…`): a part of a text that it may share with other names. A copy of it costs no memory.
#[derive(Clone)]
pub struct RefName {
    text: Arc<String>,
    from: u32,
    to: u32,
}

impl RefName {
    /// Returns the name that stands at `from..to` of a text; an empty one if that is no part of it.
    pub(super) fn within(text: &Arc<String>, from: usize, to: usize) -> RefName {
        match (u32::try_from(from), u32::try_from(to)) {
            (Ok(from), Ok(to)) => RefName { text: Arc::clone(text), from, to },
            _ => text.get(from..to).unwrap_or_default().to_owned().into(),
        }
    }
}

impl Deref for RefName {
    type Target = str;

    fn deref(&self) -> &str {
        self.text.get(self.from as usize..self.to as usize).unwrap_or_default()
    }
}

impl<T: Into<String>> From<T> for RefName {
    fn from(name: T) -> RefName {
        let text = name.into();
        // No name comes near this length: the file system allows 4,096 bytes.
        let to = u32::try_from(text.len()).unwrap_or(u32::MAX);
        RefName { from: 0, to, text: Arc::new(text) }
    }
}

impl PartialEq for RefName {
    fn eq(&self, other: &RefName) -> bool {
        **self == **other
    }
}

impl Eq for RefName {}

impl fmt::Debug for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_is_a_name_like_any_other() {
        let text = Arc::new("x refs/heads/a\n".to_owned());
        let name = RefName::within(&text, 2, 14);
        assert_eq!((&*name, name.to_string().as_str()), ("refs/heads/a", "refs/heads/a"));
        assert_eq!(name, RefName::from("refs/heads/a"));
        assert_ne!(name, RefName::within(&text, 2, 13));
        assert_eq!(&*RefName::within(&text, 14, 200), "");
    }
}
