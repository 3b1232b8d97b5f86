//! Decides whether a checkpoint is due.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::{Confidence, Verdict};
use crate::model::number::Number;
use crate::model::policy::{Guard, Opaque, Policy};
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::unique_suffix;

/// The checkpoint that protects a turn in one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCheckpoint {
    /// 40 hex digits.
    pub id: String,
    /// The checkpoint's number in its workspace.
    #[serde(rename = "ordinal")]
    pub number: Number,
    /// Its kind, which the states of earlier versions lack.
    #[serde(default = "auto")]
    pub kind: CheckpointKind,
}

fn auto() -> CheckpointKind {
    CheckpointKind::Auto
}

/// The connection with which a turn ends: the client keeps it open for as long as it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnHolder {
    /// The process of piton's that has the connection, by its name in the log of actions.
    pub process: String,
    /// The number of the connection's session in that process.
    pub session: u64,
}

/// The turn that is open, if one is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Turns {
    /// The client's name of the open or interrupted turn; `None` outside of turns.
    current: Option<String>,
    /// The connection with which the open turn ends; `None` where each event of the client has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<TurnHolder>,
    /// True if that connection ended within the turn. The client's next action continues it in a new turn of the same name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_interrupted: bool,
    /// A name of the open turn that no other turn has.
    key: String,
    /// The first words of its prompt, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// By workspace id. `late` and `failed` never use a slot up.
    slots: HashMap<String, TurnCheckpoint>,
    /// The roots of the workspaces in which the turn acts, in the order in which it came to them.
    places: Vec<PathBuf>,
    /// The first path outside every workspace that an action of the turn may have destroyed without a checkpoint, and the number of them.
    outside: Option<(PathBuf, usize)>,
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// The action destroys nothing.
    Nothing,
    /// The guard is switched off.
    Off,
    /// The turn has a checkpoint. It protects the action if nothing that the action may reach has changed since.
    Held(TurnCheckpoint),
    /// A checkpoint has to be taken before the action.
    Take,
}

/// Returns a name for a turn, which no other turn of any process has.
fn new_key() -> String {
    format!("{}-{}", now_ms(), unique_suffix())
}

impl Turns {
    /// Opens a turn; the same open turn again changes nothing.
    pub fn start(&mut self, turn: &str) -> bool {
        if self.current() == Some(turn) {
            return false;
        }
        *self = Turns { current: Some(turn.to_owned()), key: new_key(), ..Turns::default() };
        true
    }

    /// Keeps the first words of the open turn's prompt, if none are known; true if that is news.
    pub fn tell_prompt(&mut self, prompt: Option<String>) -> bool {
        let is_news = self.current.is_some() && self.prompt.is_none() && prompt.is_some();
        if is_news {
            self.prompt = prompt;
        }
        is_news
    }

    /// Returns the first words of the open turn's prompt.
    pub fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// Closes a turn.
    pub fn end(&mut self) {
        *self = Turns::default();
    }

    /// Notes the connection with which the open turn ends; true if that is news.
    pub fn hold(&mut self, holder: &TurnHolder) -> bool {
        let is_news = self.current().is_some() && self.holder.as_ref() != Some(holder);
        if is_news {
            self.holder = Some(holder.clone());
        }
        is_news
    }

    /// Returns the connection with which the open turn ends.
    pub fn holder(&self) -> Option<&TurnHolder> {
        self.holder.as_ref()
    }

    /// Interrupts the open turn, and returns it as it was. Its checkpoints still protect what follows.
    #[must_use]
    pub fn interrupt(&mut self) -> Turns {
        (self.holder, self.is_interrupted) = (None, self.current.is_some());
        let ended = self.clone();
        (self.places, self.outside) = (Vec::new(), None);
        ended
    }

    /// Continues an interrupted turn in a new one of the same name; true if there was one.
    pub fn resume(&mut self) -> bool {
        if !std::mem::take(&mut self.is_interrupted) {
            return false;
        }
        self.key = new_key();
        true
    }

    /// Returns true if the turn was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns the client's name of the open or interrupted turn.
    pub fn name(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Returns the name of the open turn that no other turn has.
    pub fn key(&self) -> Option<&str> {
        self.current.as_ref().map(|_| self.key.as_str())
    }

    /// Returns the roots of the workspaces in which the open turn acts.
    pub fn places(&self) -> &[PathBuf] {
        &self.places
    }

    /// Notes that the open turn acts in a workspace; true if that is news.
    pub fn come_to(&mut self, root: &Path) -> bool {
        let is_news = self.current.is_some() && !self.places.iter().any(|place| place == root);
        if is_news {
            self.places.push(root.to_owned());
        }
        is_news
    }

    /// Notes paths outside every workspace that an action of the open turn may destroy, and that no checkpoint of the turn holds.
    pub fn lose_outside(&mut self, first: &Path, number: usize) {
        if self.current.is_some() {
            self.outside.get_or_insert_with(|| (first.to_owned(), 0)).1 += number;
        }
    }

    /// Returns the first path outside every workspace that the open turn may have destroyed without a checkpoint, and the number of them.
    pub fn lost_outside(&self) -> Option<(&Path, usize)> {
        self.outside.as_ref().map(|(first, number)| (first.as_path(), *number))
    }

    /// Returns the open turn.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref().filter(|_| !self.is_interrupted)
    }

    /// Records the checkpoint that protects this turn; without an open turn every action stands for itself.
    pub fn fill(&mut self, workspace: &str, slot: TurnCheckpoint) {
        if self.current.is_some() {
            self.slots.insert(workspace.to_owned(), slot);
        }
    }

    /// Returns the checkpoint that protects the open turn in a workspace.
    pub fn checkpoint(&self, workspace: &str) -> Option<&TurnCheckpoint> {
        self.slots.get(workspace)
    }

    /// Decides.
    pub fn due(&self, workspace: &str, verdict: &Verdict, policy: &Policy, off: bool) -> Due {
        let opaque = verdict.confidence == Confidence::Opaque && policy.opaque == Opaque::Checkpoint;
        if !verdict.needs.checkpoint() && !opaque {
            return Due::Nothing;
        }
        self.standing(workspace, policy, off)
    }

    /// Decides for an action that destroys something.
    pub fn standing(&self, workspace: &str, policy: &Policy, off: bool) -> Due {
        if off || policy.guard == Guard::Off {
            return Due::Off;
        }
        match self.slots.get(workspace).filter(|_| policy.guard == Guard::Turn) {
            Some(slot) => Due::Held(slot.clone()),
            None => Due::Take,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::effect::Needs;
    use crate::settings;

    fn verdict(needs: Needs, confidence: Confidence) -> Verdict {
        Verdict { needs, confidence, effects: vec![], warnings: vec![], ..Verdict::default() }
    }

    #[test]
    fn an_interrupted_turn_is_continued_by_a_new_one_of_its_name() {
        let [one, other] = [1, 2].map(|session| TurnHolder { process: "p".to_owned(), session });
        let mut turns = Turns::default();
        assert!(!turns.hold(&one) && !turns.resume(), "no turn is open");
        assert!(turns.start("t") && turns.hold(&one) && !turns.hold(&one) && turns.hold(&other));
        turns.fill("w", TurnCheckpoint { id: "a".into(), number: Number::of(1), kind: CheckpointKind::Auto });
        turns.come_to(Path::new("/w"));
        let key = turns.key().unwrap().to_owned();
        let ended = turns.interrupt();
        assert_eq!((ended.key(), ended.places().len(), ended.is_interrupted()), (Some(&*key), 1, true));
        assert_eq!((turns.current(), turns.name(), turns.holder()), (None, Some("t"), None));
        let mut kept: Turns = serde_json::from_str(&serde_json::to_string(&turns).unwrap()).unwrap();
        assert!(kept.resume() && !kept.resume());
        assert_eq!((kept.current(), kept.places().len(), kept.checkpoint("w").is_some()), (Some("t"), 0, true));
        assert_ne!(kept.key(), Some(&*key));
        assert!(turns.start("t") && turns.checkpoint("w").is_none(), "the client has begun it again");
    }

    #[test]
    fn one_checkpoint_a_turn() {
        let mut policy = settings::resolve(&settings::Sources::default()).unwrap().policy;
        let mut turns = Turns::default();
        let slot = || TurnCheckpoint { id: "a".into(), number: Number::of(1), kind: CheckpointKind::Auto };
        let (destroys, harmless) =
            (verdict(Needs::Checkpoint, Confidence::Exact), verdict(Needs::Warn, Confidence::Exact));
        let opaque = verdict(Needs::Nothing, Confidence::Opaque);
        assert_eq!(turns.due("w", &harmless, &policy, false), Due::Nothing);
        assert_eq!(turns.due("w", &destroys, &policy, false), Due::Take);
        turns.fill("w", slot());
        assert_eq!(turns.due("w", &destroys, &policy, false), Due::Take, "no turn is open");
        assert!(turns.start("t1") && !turns.start("t1"));
        assert_eq!(turns.due("w", &opaque, &policy, false), Due::Take);
        turns.fill("w", slot());
        assert_eq!(turns.due("w", &opaque, &policy, false), Due::Held(slot()));
        assert_eq!(turns.due("other", &destroys, &policy, false), Due::Take);
        assert_eq!(turns.due("w", &destroys, &policy, true), Due::Off);
        assert!(turns.start("t2"));
        assert_eq!(turns.due("w", &destroys, &policy, false), Due::Take);
        turns.fill("w", slot());
        policy.guard = Guard::Action;
        assert_eq!(turns.due("w", &destroys, &policy, false), Due::Take);
        policy.opaque = Opaque::Ignore;
        assert_eq!(turns.due("w", &opaque, &policy, false), Due::Nothing);
        policy.guard = Guard::Off;
        assert_eq!(turns.due("w", &destroys, &policy, false), Due::Off);
    }
}
