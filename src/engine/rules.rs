//! The configuration of a workspace, and following its edits: before each event a few calls tell whether a file changed.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::checkpoint::Home;
use crate::classify::Classifier;
use crate::error::Result;
use crate::model::policy::Policy;
use crate::settings::marks::SettingsMarks;
use crate::settings::{self, Effective, Mistake, Setting};

/// The configuration as it was read.
pub struct InForce {
    /// The values in force.
    pub policy: Policy,
    /// The rules by which actions are judged, the user's own among them.
    pub classifier: Classifier,
    /// Describes the mistakes of the configuration and the settings that were left aside, as sentences.
    pub warnings: Vec<String>,
    /// Lists the settings that were left aside without being mistakes.
    left_aside: Vec<String>,
    /// The mistakes of the user's own layers.
    mistakes: Vec<Mistake>,
    /// The values with their origins, by which the next reading keeps what a mistake would lose.
    settings: Vec<Setting>,
}

/// Reports the result of reading the configuration again.
#[derive(Default)]
pub struct Followed {
    /// Holds the configuration in force, if it changed or was asked for.
    pub read: Option<Arc<InForce>>,
    /// Mistakes that were not reported yet.
    pub mistakes: Vec<Mistake>,
    /// Lists the mistakes that no process of this home has reported yet.
    pub unknown: Vec<Mistake>,
}

/// The configuration in force, and the marks by which its files are known.
pub struct FollowedSettings(Mutex<Current>);

struct Current {
    in_force: Arc<InForce>,
    /// The marks of the settings files when they were read.
    marks: SettingsMarks,
    /// True if the worker has been given the policy.
    delivered: bool,
    /// The reported mistakes, by their heads, until they are corrected.
    told: Vec<String>,
}

impl InForce {
    fn load(root: &Path, home: &Home, flags: &[(String, String)], before: Option<&InForce>) -> Result<InForce> {
        let settings = before.map_or(&[][..], |before| &before.settings);
        let mut effective = settings::load_over(Some(root), home.path(), flags, settings)?;
        let classifier = classifier(&mut effective, before.map(|before| before.policy.rules_yaml.as_str()));
        let warnings = effective.faults();
        let Effective { policy, settings, mistakes, warnings: left_aside, .. } = effective;
        Ok(InForce { policy, classifier, warnings, left_aside, mistakes, settings })
    }

    /// Returns where the value of a key came from.
    pub fn origin(&self, key: &str) -> String {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map_or_else(|| key.to_owned(), |setting| setting.origin.to_string())
    }

    /// Returns true if another reading gave the same configuration.
    fn says_the_same(&self, other: &InForce) -> bool {
        // Only the heads are compared: a running process words the value in force differently, but the mistake is the
        // same.
        let heads = |in_force: &InForce| in_force.mistakes.iter().map(Mistake::head).collect::<Vec<_>>();
        self.settings == other.settings && self.left_aside == other.left_aside && heads(self) == heads(other)
    }
}

impl Current {
    /// Returns the mistakes that were not reported yet.
    fn untold(&mut self) -> Vec<Mistake> {
        let mistakes = &self.in_force.mistakes;
        if mistakes.is_empty() && self.told.is_empty() {
            return Vec::new();
        }
        let untold = mistakes.iter().filter(|mistake| !self.told.contains(&mistake.head())).cloned().collect();
        self.told = mistakes.iter().map(Mistake::head).collect();
        untold
    }
}

impl FollowedSettings {
    /// Reads the settings. Mistakes are reported when [`FollowedSettings::follow`] is first called.
    ///
    /// # Errors
    /// Returns the errors of [`settings::load`].
    pub(super) fn load(root: &Path, home: &Home, flags: &[(String, String)]) -> Result<FollowedSettings> {
        let marks = SettingsMarks::of(root, home.path());
        let in_force = Arc::new(InForce::load(root, home, flags, None)?);
        Ok(FollowedSettings(Mutex::new(Current { in_force, marks, delivered: true, told: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns it as it is now.
    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.lock().in_force)
    }

    /// Reads the settings again if a file changed or a client `asked`, and delivers the policy. A mistake is reported
    /// once, or when a client asks. The value in force before stays in its place.
    ///
    /// # Errors
    /// As [`FollowedSettings::load`].
    pub(super) fn follow(
        &self,
        asked: bool,
        (root, home, flags): (&Path, &Home, &[(String, String)]),
        deliver: impl Fn(Policy) -> bool,
    ) -> Result<Followed> {
        let mut current = self.lock();
        // The worker's queue was full the last time.
        if !current.delivered {
            current.delivered = deliver(current.in_force.policy.clone());
        }
        let marks = SettingsMarks::of(root, home.path());
        if !asked && current.marks.stand(&marks) {
            return Ok(Followed { mistakes: current.untold(), ..Followed::default() });
        }
        let read = Arc::new(InForce::load(root, home, flags, Some(&current.in_force))?);
        // The marks from before the reading: a file that changes during it is read again at the next event.
        current.marks = marks;
        if asked {
            current.told.clear();
        } else if read.says_the_same(&current.in_force) {
            return Ok(Followed { mistakes: current.untold(), ..Followed::default() });
        }
        current.in_force = Arc::clone(&read);
        current.delivered = deliver(read.policy.clone());
        Ok(Followed { read: Some(read), mistakes: current.untold(), unknown: Vec::new() })
    }
}

/// Returns the rules in force. A rule that cannot be is a mistake of the settings; the one of its id in `before` takes
/// its place.
pub fn classifier(effective: &mut Effective, before: Option<&str>) -> Classifier {
    if let Some(waiting) = effective.waiting_rules().map(str::to_owned) {
        // Mistakes are reported for the rules as they are written, and not for those in force.
        let (_, sound, dropped) = Classifier::with_sound_rules(&waiting, before);
        dropped.into_iter().for_each(|part| effective.drop_rule(&part.path, part.why, part.stays));
        let (classifier, in_force, _) = Classifier::with_sound_rules(&effective.policy.rules_yaml, before);
        if sound == in_force {
            effective.drop_waiting_rules();
        }
        effective.keep_rules(in_force);
        return classifier;
    }
    if effective.policy.rules_yaml.is_empty() {
        return Classifier::embedded();
    }
    let (classifier, sound, dropped) = Classifier::with_sound_rules(&effective.policy.rules_yaml, before);
    for part in dropped {
        effective.drop_rule(&part.path, part.why, part.stays);
    }
    effective.keep_rules(sound);
    classifier
}
