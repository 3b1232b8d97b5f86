//! What the configuration of a workspace says, and following its edits: before each event a few calls tell whether a file changed.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::classifier;
use crate::checkpoint::Home;
use crate::classify::Classifier;
use crate::error::Result;
use crate::model::policy::Policy;
use crate::settings::marks::Marks;
use crate::settings::{self, Setting};

/// What the configuration says.
pub struct InForce {
    pub policy: Policy,
    pub classifier: Classifier,
    /// What the configuration's reading left aside.
    pub warnings: Vec<String>,
    settings: Vec<Setting>,
}

/// The configuration in force, and by which its files are known.
pub(super) struct Rules(Mutex<Current>);

struct Current {
    in_force: Arc<InForce>,
    marks: Marks,
    /// Whether the worker has been given the policy.
    delivered: bool,
    /// The mistake that was told last, until it is mended.
    mistake: Option<String>,
}

impl InForce {
    fn load(root: &Path, home: &Home, flags: &[(String, String)]) -> Result<InForce> {
        let effective = settings::load(Some(root), home.path(), flags)?;
        let classifier = classifier(&effective)?;
        let settings::Effective { policy, settings, warnings } = effective;
        Ok(InForce { policy, classifier, warnings, settings })
    }

    /// Whether another reading came to the same.
    fn says_the_same(&self, other: &InForce) -> bool {
        self.settings == other.settings && self.warnings == other.warnings
    }
}

impl Rules {
    /// Reads them.
    ///
    /// # Errors
    /// Mistakes of the user's configuration and rules.
    pub(super) fn load(root: &Path, home: &Home, flags: &[(String, String)]) -> Result<Rules> {
        let marks = Marks::of(root, home.path());
        let in_force = Arc::new(InForce::load(root, home, flags)?);
        Ok(Rules(Mutex::new(Current { in_force, marks, delivered: true, mistake: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As it is now.
    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.lock().in_force)
    }

    /// Reads them again, if a file changed or it is `asked` for, and delivers the policy; what is in force then, if it was read
    /// and is something else, or was asked for. A mistake that nobody asked for is told once, and what was in force stays.
    ///
    /// # Errors
    /// As [`Rules::load`].
    pub(super) fn follow(
        &self,
        asked: bool,
        (root, home, flags): (&Path, &Home, &[(String, String)]),
        deliver: impl Fn(Policy) -> bool,
    ) -> Result<Option<Arc<InForce>>> {
        let mut current = self.lock();
        if !current.delivered {
            current.delivered = deliver(current.in_force.policy.clone());
        }
        let marks = Marks::of(root, home.path());
        if !asked && current.marks.stand(&marks) {
            return Ok(None);
        }
        current.marks = marks;
        let read = match InForce::load(root, home, flags) {
            Ok(read) => Arc::new(read),
            Err(error) => {
                let text = error.text();
                let known = current.mistake.replace(text.clone()).is_some_and(|known| known == text);
                return if known && !asked { Ok(None) } else { Err(error) };
            }
        };
        let mended = current.mistake.take().is_some();
        if !asked && !mended && read.says_the_same(&current.in_force) {
            return Ok(None);
        }
        current.in_force = Arc::clone(&read);
        current.delivered = deliver(read.policy.clone());
        Ok(Some(read))
    }
}
