//! Open turns that nothing will end.

use super::action_window::ActionWindow;
use super::process_names::{has_ended, is_gone};
use super::windows::{OpenTurn, Windows};
use crate::sys::clock::since_boot_ns;

/// The time in nanoseconds after which an open turn without events counts as forgotten.
const FORGOTTEN: i64 = 24 * 3_600_000_000_000;

/// The same for an action within which piton was killed, where nothing is known of the client's process.
const CUT: i64 = 60_000_000_000;

impl Windows {
    /// Returns true if nothing will end an open turn: the machine was restarted, or the process that had its connection has ended, and
    /// the client too. A client that works on may be within an action of the turn, and may start piton again. If nothing is known of
    /// the client, an action without an end keeps the turn open for some time. A turn without events for a day is abandoned too,
    /// but not that of a client that is known to run and needs no connection.
    ///
    /// `is_client_alive` returns `None` where nothing is known of the client's process. It is called if the answer depends on that.
    pub fn is_abandoned(&self, turn: &OpenTurn, is_client_alive: impl FnOnce() -> Option<bool>) -> bool {
        let holder = turn.held_by.as_deref();
        if turn.is_of_earlier_boot {
            return true;
        }
        if holder.is_some_and(|name| !is_gone(name)) {
            return false;
        }
        let own = || self.actions.iter().filter(|window| window.actor == turn.actor);
        let last = own().map(|window| window.to.or(window.left).unwrap_or(window.from)).fold(turn.since, i64::max);
        let rest = since_boot_ns().saturating_sub(last);
        let has_ended = holder.is_some_and(has_ended);
        if !has_ended && rest <= FORGOTTEN {
            return false;
        }
        match is_client_alive() {
            Some(true) => has_ended && rest > FORGOTTEN,
            Some(false) => true,
            None => !has_ended || rest > CUT || !own().any(ActionWindow::may_run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::records::process_names::own_name;
    use crate::checkpoint::records::windows::sample_turn;

    #[test]
    fn a_turn_is_abandoned_with_its_connection_and_its_client_or_after_a_day() {
        let own = own_name().to_owned();
        let parts: Vec<&str> = own.split('-').collect();
        let [pid, _, space, boot] = parts[..] else { panic!("{own}") };
        let (now, old) = (since_boot_ns(), since_boot_ns() - 2 * FORGOTTEN);
        let (ended, unseen) = (format!("{pid}-1-{space}-{boot}"), format!("{pid}-1--{boot}"));
        for (held_by, since, is_client_alive, expected, why) in [
            (Some(own.clone()), old, Some(false), false, "its connection is open"),
            (Some(ended.clone()), now, Some(false), true, "its process and the client have ended"),
            (Some(ended.clone()), now, None, true, "its process has ended, and no action was begun"),
            (Some(ended.clone()), now, Some(true), false, "the client works on"),
            (Some(ended), old, Some(true), true, "the client has been silent for a day"),
            (Some(unseen.clone()), now, None, false, "one that cannot be seen may run"),
            (Some(unseen), old, None, true, "for a day nothing came from there"),
            (None, now, None, false, "hooks call when something happens"),
            (None, old, Some(true), false, "the client waits for its person"),
            (None, old, None, true, "nothing is known of the client"),
        ] {
            let windows = Windows::default();
            let turn = OpenTurn { held_by, ..sample_turn("k", since) };
            assert_eq!(windows.is_abandoned(&turn, || is_client_alive), expected, "{why}");
            let earlier = OpenTurn { is_of_earlier_boot: true, ..turn.clone() };
            assert!(windows.is_abandoned(&earlier, || Some(true)), "{why}");
        }
    }

    #[test]
    fn an_action_whose_end_was_not_reported_keeps_its_turn_open_for_some_time() {
        let own = own_name().to_owned();
        let parts: Vec<&str> = own.split('-').collect();
        let [pid, _, space, boot] = parts[..] else { panic!("{own}") };
        let (now, earlier) = (since_boot_ns(), since_boot_ns() - 2 * CUT);
        let ended = format!("{pid}-1-{space}-{boot}");
        for (from, to, is_client_alive, expected, why) in [
            (now, None, None, false, "it may be running"),
            (earlier, None, None, true, "it began long ago"),
            (now, Some(now), None, true, "it has ended"),
            (now, None, Some(false), true, "its client has ended"),
            (earlier, Some(earlier), Some(true), false, "its client works on"),
        ] {
            let mut windows = Windows::default();
            let turn = OpenTurn { held_by: Some(ended.clone()), ..sample_turn("k", earlier) };
            windows.actions.push(ActionWindow { actor: turn.actor.clone(), from, to, ..ActionWindow::default() });
            assert_eq!(windows.is_abandoned(&turn, || is_client_alive), expected, "{why}");
        }
    }
}
