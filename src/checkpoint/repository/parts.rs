//! The parts of a repository that go back one after another: which are back, which are not, and why.

use crate::error::{Error, Result};

/// Parts that go back.
#[derive(Debug, Default)]
pub(super) struct PartsBack {
    back: Vec<&'static str>,
    left: Vec<&'static str>,
    /// The first error.
    error: Option<Error>,
    /// True if no further part may go back.
    is_over: bool,
}

impl PartsBack {
    /// Brings a part back, if it is to go back at all.
    pub(super) fn bring(&mut self, what: &'static str, is_due: bool, act: impl FnOnce() -> Result<()>) {
        if !is_due {
            return;
        }
        if self.is_over {
            self.left.push(what);
            return;
        }
        match act() {
            Ok(()) => self.back.push(what),
            Err(error) => {
                self.left.push(what);
                self.error.get_or_insert(error);
            }
        }
    }

    /// Keeps further parts where they are, if one before could not go back.
    pub(super) fn needs_all_before(&mut self) {
        self.is_over |= self.error.is_some();
    }

    /// Ends the way back over an operation.
    ///
    /// # Errors
    /// Returns the first error, with the parts that are back and those that are not.
    pub(super) fn ended(self, name: &str) -> Result<()> {
        let Some(error) = self.error else { return Ok(()) };
        let rest = format!("`piton undo {name}` tries again");
        let hint = error.hint_text().map_or_else(|| rest.clone(), |hint| format!("{hint}; then {rest}"));
        let left = self.left.join(", ");
        let told = match self.back.as_slice() {
            [] => format!("nothing was restored ({left})"),
            back => format!("restored: {}; not restored: {left}", back.join(", ")),
        };
        Err(error.context(told).hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn failure() -> Error {
        Error::new(Code::DiskFull, "no room").hint("make room")
    }

    #[test]
    fn a_failed_part_is_told_with_those_that_are_back() {
        let mut parts = PartsBack::default();
        parts.bring("refs", true, || Ok(()));
        parts.needs_all_before();
        parts.bring("the index", true, || Ok(()));
        parts.needs_all_before();
        parts.bring("the operation in progress", false, || Err(failure()));
        parts.bring("the stash", true, || Err(failure()));
        parts.bring("files", true, || Ok(()));
        let error = parts.ended("g-7").unwrap_err();
        assert_eq!(error.code(), Code::DiskFull);
        assert_eq!(error.message(), "restored: refs, the index, files; not restored: the stash: no room");
        assert_eq!(error.hint_text(), Some("make room; then `piton undo g-7` tries again"));
    }

    #[test]
    fn nothing_goes_back_behind_refs_that_did_not() {
        let mut parts = PartsBack::default();
        parts.bring("refs", true, || Err(Error::new(Code::Conflict, "locked")));
        parts.needs_all_before();
        parts.bring("the index", true, || panic!("the index belongs to the refs"));
        let error = parts.ended("g-7").unwrap_err();
        assert_eq!(error.message(), "nothing was restored (refs, the index): locked");
        assert_eq!(error.hint_text(), Some("`piton undo g-7` tries again"));
        assert!(PartsBack::default().ended("g-7").is_ok());
    }
}
