//! The patterns and exceptions of a restore as the journal has them, so that an interrupted one is finished with the same limits.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::filter::{PathLimits, PathPatterns};
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;

/// The patterns and exceptions of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedLimits {
    /// Patterns of the paths that it is about.
    pub patterns: Vec<String>,
    /// Paths that it leaves alone (percent-quoted).
    pub except_paths: Vec<String>,
    /// Patterns of paths that it leaves alone.
    pub except: Vec<String>,
}

impl LoggedLimits {
    /// Returns the record of limits; `None` if there are none.
    pub(super) fn of(limits: &PathLimits) -> Option<LoggedLimits> {
        (!limits.is_none()).then(|| LoggedLimits {
            patterns: limits.patterns.texts().to_vec(),
            except_paths: limits.except_paths.iter().map(|path| quote(path.as_bytes())).collect(),
            except: limits.except.texts().to_vec(),
        })
    }

    /// Returns the limits.
    ///
    /// # Errors
    /// `store-damaged` or `bad-request` for a record that this version would not have made.
    pub(super) fn limits(&self) -> Result<PathLimits> {
        let paths = self.except_paths.iter().map(|text| RelPath::parse(&unquote(text)?));
        Ok(PathLimits {
            patterns: PathPatterns::new(self.patterns.clone())?,
            except_paths: paths.collect::<Result<_>>()?,
            except: PathPatterns::new(self.except.clone())?,
        })
    }

    /// Returns them as lines of a plan's text.
    pub(super) fn lines(&self) -> Vec<String> {
        let named = |word: &str, texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| format!("{word} {}", quote(text.as_bytes()))).collect()
        };
        [named("pattern", &self.patterns), named("except-path", &self.except_paths), named("except", &self.except)]
            .concat()
    }
}
