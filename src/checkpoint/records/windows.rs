//! The turns and actions that are open in a workspace, and the changes that watchers reported meanwhile, as the lines of the log of
//! actions (`window_log`) add up to. Pure.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::action_window::{ActionWindow, EndedCall};
use super::interval_line::IntervalLine;
use crate::model::change::Changes;
use crate::model::id::ObjectId;

/// The most turns that are known to have ended.
const MOST_ENDED: usize = 32;

/// A turn that was begun in this workspace and has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTurn {
    /// The turn's own name, which no other has; the same in all its workspaces.
    pub key: String,
    /// The id of its run.
    pub run: String,
    /// The name under which its actions are noted.
    pub actor: String,
    /// The client's name of it.
    pub turn: String,
    /// The first words of its prompt, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The name of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// True if the client has a name that belongs to a person's doors, and is an agent all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_agents: bool,
    /// The checkpoint of the workspace as it was when the turn began here.
    pub base: ObjectId,
    /// The moment of that.
    pub since: i64,
    /// The difference between the clock of file times and that of this log at that moment; `None` in a log of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<i64>,
    /// The same on the wall clock: RFC 3339, UTC, milliseconds.
    pub began: String,
    /// The roots of all workspaces in which the turn acts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PathBuf>,
    /// True behind a restore that was made while the turn was open: `base` and `since` are those of its part since then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_later_part: bool,
    /// The paths that this restore has changed (percent-quoted): a watcher may report them behind `since` still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// The journal's name of the turn, once it was written down so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The process that has the connection with which the turn ends, by its name among those that append; `None` where each event of
    /// the client has a connection of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// True if it was open before a restart of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_earlier_boot: bool,
}

/// The changes between two questions to one watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The process of the watcher.
    pub by: String,
    /// The moment since which this watcher knows of all changes: nothing changed from then to `from`.
    pub since: i64,
    /// The moment of the earlier question.
    pub from: i64,
    /// The moment of the later one.
    pub to: i64,
    /// The paths that may have changed in between.
    pub changes: Changes,
    /// True if HEAD moved in between.
    pub head_moved: bool,
}

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum WindowLine {
    /// The start of the machine in which the lines below it were written.
    Boot {
        id: String,
    },
    Turn(OpenTurn),
    /// The turn acts in these workspaces by now.
    Places {
        key: String,
        places: Vec<PathBuf>,
    },
    /// The turn was written down so far.
    Written {
        key: String,
        op: String,
    },
    /// The turn has ended.
    TurnEnd {
        key: String,
    },
    Begin(ActionWindow),
    /// An action has ended: the one with this id, else the oldest open one with this digest, else the oldest open one.
    End {
        actor: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        at: i64,
    },
    /// No end of an actor's open actions will be reported any more.
    Leave {
        actor: String,
        /// True if the client's process has ended.
        is_cut: bool,
        at: i64,
    },
    Seen(IntervalLine),
}

/// The log, added up.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// The turns that are open, in the order in which they began.
    pub turns: Vec<OpenTurn>,
    /// The actions since the oldest open turn began.
    pub actions: Vec<ActionWindow>,
    /// The answers of watchers meanwhile.
    pub seen: Vec<Interval>,
    /// The keys of the last turns that ended. They do not begin any more: a process may be late with the note of a beginning.
    pub ended: Vec<String>,
}

impl Windows {
    /// Adds a line.
    pub(super) fn add(&mut self, entry: WindowLine) {
        match entry {
            WindowLine::Boot { .. } => {}
            WindowLine::Turn(turn) if self.has_ended(&turn.key) => {}
            WindowLine::Turn(turn) => {
                self.turns.retain(|open| open.key != turn.key);
                self.turns.push(turn);
            }
            WindowLine::Places { key, places } => {
                self.turns.iter_mut().filter(|open| open.key == key).for_each(|open| open.places.clone_from(&places));
            }
            WindowLine::Written { key, op } => {
                self.turns.iter_mut().filter(|open| open.key == key).for_each(|open| open.op = Some(op.clone()));
            }
            WindowLine::TurnEnd { key } => {
                self.turns.retain(|open| open.key != key);
                self.forget_old();
                self.ended.retain(|known| *known != key);
                self.ended.push(key);
                let old = self.ended.len().saturating_sub(MOST_ENDED);
                self.ended.drain(..old);
            }
            WindowLine::Begin(window) => self.actions.push(window),
            WindowLine::End { actor, action, call, at } => {
                self.end_call(&actor, &EndedCall { action, call }, at);
                if self.turns.is_empty() {
                    self.forget_old();
                }
            }
            WindowLine::Leave { actor, is_cut, at } => {
                self.leave(&actor, is_cut, at);
                if self.turns.is_empty() {
                    self.forget_old();
                }
            }
            WindowLine::Seen(line) => self.seen.extend(line.read()),
        }
    }

    /// Ends one action of an actor. Other actions of the actor that were asked for before it may have been denied: they count as left,
    /// unless their own end is reported later.
    fn end_call(&mut self, actor: &str, ended: &EndedCall, at: i64) {
        let find = |is_meant: &dyn Fn(&ActionWindow) -> bool| {
            let is_open = |window: &ActionWindow| window.actor == actor && window.to.is_none();
            self.actions.iter().position(|window| is_open(window) && is_meant(window))
        };
        let with_id = || find(&|window| window.action == ended.action);
        let is_call = |window: &ActionWindow| window.action.is_none() && window.call == ended.call;
        // The same call may have been denied before, and left.
        let with_call = || find(&|window| is_call(window) && window.left.is_none()).or_else(|| find(&is_call));
        let found = match (&ended.action, &ended.call) {
            (Some(_), None) => with_id(),
            (Some(_), Some(_)) => with_id().or_else(with_call),
            // The end of a tool that only reads has no window, and must close no other one.
            (None, Some(_)) => with_call(),
            (None, None) => find(&|window| window.left.is_none()).or_else(|| find(&|_| true)),
        };
        let Some(found) = found else { return };
        let (id, from) = (self.actions[found].action.clone(), self.actions[found].from);
        for window in self.actions.iter_mut().filter(|window| window.actor == actor && window.to.is_none()) {
            // A hook may report several commands of one call.
            if window.from == from || (id.is_some() && window.action == id) {
                window.to = Some(at);
            } else if window.from < from && window.left.is_none() {
                window.left = Some(at);
            }
        }
    }

    /// Leaves the open actions of an actor. The last one had begun if the client's process has ended.
    fn leave(&mut self, actor: &str, is_cut: bool, at: i64) {
        let last = self.actions.iter().filter(|window| window.actor == actor).map(|window| window.from).max();
        for window in self.actions.iter_mut().filter(|window| window.actor == actor && window.is_open()) {
            window.left = Some(at);
            window.is_cut = is_cut && Some(window.from) == last;
        }
    }

    /// Leaves the actions whose end nobody can report any more, with the last answer of the process that reported them.
    pub(super) fn leave_unwatched(&mut self, is_gone: &dyn Fn(&str) -> bool) {
        let seen = &self.seen;
        for at in 0..self.actions.len() {
            let window = &self.actions[at];
            let Some(by) = window.by.as_deref().filter(|by| window.is_open() && is_gone(by)) else { continue };
            let last = seen.iter().filter(|interval| interval.by == by).map(|interval| interval.to).max();
            let is_last = self.actions.iter().all(|other| other.actor != window.actor || other.from <= window.from);
            let left = last.unwrap_or(window.from).max(window.from);
            (self.actions[at].left, self.actions[at].is_cut) = (Some(left), is_last);
        }
    }

    /// Forgets what is older than all open turns.
    fn forget_old(&mut self) {
        let oldest = self.turns.iter().map(|turn| turn.since).min().unwrap_or(i64::MAX);
        self.actions.retain(|window| window.to.or(window.left).is_none_or(|to| to >= oldest));
        self.seen.retain(|interval| interval.to >= oldest);
    }

    /// Returns the open turn of a key.
    pub fn turn(&self, key: &str) -> Option<&OpenTurn> {
        self.turns.iter().find(|turn| turn.key == key)
    }

    /// Returns true if the turn of a key is one of the last that ended.
    pub fn has_ended(&self, key: &str) -> bool {
        self.ended.iter().any(|ended| ended == key)
    }

    /// Returns what a new file has to hold to be read as this.
    pub(super) fn entries(&self) -> impl Iterator<Item = WindowLine> {
        let turns = self.turns.iter().cloned().map(WindowLine::Turn);
        let actions = self.actions.iter().cloned().map(WindowLine::Begin);
        let ended = self.ended.iter().map(|key| WindowLine::TurnEnd { key: key.clone() });
        ended.chain(turns).chain(actions).chain(self.seen.iter().map(|seen| WindowLine::Seen(seen.into())))
    }
}

/// An open turn of the run `r`, for tests.
#[cfg(test)]
pub(super) fn sample_turn(key: &str, since: i64) -> OpenTurn {
    OpenTurn {
        key: key.into(),
        run: "r".into(),
        actor: "r".into(),
        turn: "t".into(),
        prompt: None,
        client: None,
        is_agents: false,
        base: ObjectId::of(crate::model::id::ObjectKind::Blob, b"x").unwrap(),
        since,
        clock: None,
        began: String::new(),
        places: Vec::new(),
        is_later_part: false,
        restored: Vec::new(),
        op: None,
        held_by: None,
        is_of_earlier_boot: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(action: &str, from: i64) -> ActionWindow {
        let (actor, action) = ("r".into(), Some(action.to_owned()));
        ActionWindow { actor, action, named: vec!["a".into()], from, ..ActionWindow::default() }
    }

    /// A turn that began before all actions: without one they are forgotten when they end.
    fn with_turn() -> Windows {
        let base = "0".repeat(40);
        let turn = serde_json::json!({"key": "k", "run": "r", "actor": "r", "turn": "t", "base": base, "since": 0, "began": ""});
        Windows { turns: vec![serde_json::from_value(turn).unwrap()], ..Windows::default() }
    }

    #[test]
    fn an_end_without_an_id_closes_one_action() {
        let without =
            |call: &str, from: i64| ActionWindow { action: None, call: Some(call.into()), ..window("", from) };
        let ends = |ended: &[(Option<&str>, Option<&str>, i64)]| {
            let mut windows = with_turn();
            let named = window("id", 4);
            for one in [without("x", 1), without("y", 2), without("x", 3), named] {
                windows.add(WindowLine::Begin(one));
            }
            for (action, call, at) in ended {
                let [action, call] = [action, call].map(|text| text.map(str::to_owned));
                windows.add(WindowLine::End { actor: "r".into(), action, call, at: *at });
            }
            windows.actions.iter().map(|window| (window.to, window.left)).collect::<Vec<_>>()
        };
        let (x, y, id) = (Some("x"), Some("y"), Some("id"));
        for (ended, expected) in [
            (&[(None, x, 9)][..], [(Some(9), None), (None, None), (None, None), (None, None)]),
            (&[(None, y, 9)], [(None, Some(9)), (Some(9), None), (None, None), (None, None)]),
            (&[(None, None, 9)], [(Some(9), None), (None, None), (None, None), (None, None)]),
            (&[(None, Some("none"), 9)], [(None, None), (None, None), (None, None), (None, None)]),
            (&[(id, None, 9)], [(None, Some(9)), (None, Some(9)), (None, Some(9)), (Some(9), None)]),
            (&[(Some("other"), None, 9)], [(None, None), (None, None), (None, None), (None, None)]),
            (&[(None, y, 8), (None, x, 9)], [(None, Some(8)), (Some(8), None), (Some(9), None), (None, None)]),
            (&[(None, x, 8), (None, x, 9)], [(Some(8), None), (None, Some(9)), (Some(9), None), (None, None)]),
        ] {
            assert_eq!(ends(ended), expected, "{ended:?}");
        }
    }

    #[test]
    fn the_last_action_of_a_client_that_is_gone_had_begun() {
        let mut windows = with_turn();
        for one in [window("a", 1), window("b", 2), window("c", 3)] {
            windows.add(WindowLine::Begin(one));
        }
        windows.add(WindowLine::End { actor: "r".into(), action: Some("b".into()), call: None, at: 4 });
        windows.add(WindowLine::Leave { actor: "r".into(), is_cut: true, at: 9 });
        let left: Vec<_> = windows.actions.iter().map(|one| (one.to, one.left, one.is_cut)).collect();
        assert_eq!(left, [(None, Some(4), false), (Some(4), None, false), (None, Some(9), true)]);
    }
}
