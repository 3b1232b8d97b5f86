//! Open turns that nothing will end.

use super::process_names::{has_ended, is_gone};
use super::windows::{OpenTurn, Windows};
use crate::sys::clock::since_boot_ns;

/// The time in nanoseconds after which an open turn without events counts as forgotten, where nothing is known of its client.
const FORGOTTEN: i64 = 24 * 3_600_000_000_000;

impl Windows {
    /// Returns true if nothing will end an open turn. The process that had its connection has ended, or the machine was restarted;
    /// or it has had no event for a day, and nothing is known of that process or of the client's. `is_client_alive` is called in
    /// the last case.
    pub fn is_abandoned(&self, turn: &OpenTurn, is_client_alive: impl FnOnce() -> bool) -> bool {
        let holder = turn.held_by.as_deref();
        if turn.is_of_earlier_boot || holder.is_some_and(has_ended) {
            return true;
        }
        if holder.is_some_and(|name| !is_gone(name)) {
            return false;
        }
        let own = self.actions.iter().filter(|window| window.actor == turn.actor);
        let last = own.map(|window| window.to.or(window.left).unwrap_or(window.from)).fold(turn.since, i64::max);
        since_boot_ns().saturating_sub(last) > FORGOTTEN && !is_client_alive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::records::action_window::ActionWindow;
    use crate::checkpoint::records::process_names::own_name;
    use crate::checkpoint::records::windows::sample_turn;

    #[test]
    fn a_turn_is_abandoned_with_the_process_of_its_connection_or_after_a_day() {
        let own = own_name().to_owned();
        let parts: Vec<&str> = own.split('-').collect();
        let [pid, _, space, boot] = parts[..] else { panic!("{own}") };
        let (now, old) = (since_boot_ns(), since_boot_ns() - 2 * FORGOTTEN);
        let (ended, unseen) = (format!("{pid}-1-{space}-{boot}"), format!("{pid}-1--{boot}"));
        for (held_by, since, is_client_alive, expected, why) in [
            (Some(own.clone()), old, false, false, "its connection is open"),
            (Some(ended), now, true, true, "its process has ended"),
            (Some(unseen.clone()), now, false, false, "one that cannot be seen may run"),
            (Some(unseen), old, false, true, "for a day nothing came from there"),
            (None, now, false, false, "hooks call when something happens"),
            (None, old, true, false, "the client waits for its person"),
            (None, old, false, true, "nothing is known of the client"),
        ] {
            let mut windows = Windows::default();
            let turn = OpenTurn { held_by, ..sample_turn("k", since) };
            assert_eq!(windows.is_abandoned(&turn, || is_client_alive), expected, "{why}");
            let earlier = OpenTurn { is_of_earlier_boot: true, ..turn.clone() };
            assert!(windows.is_abandoned(&earlier, || true), "{why}");
            windows.actions.push(ActionWindow { actor: "r".into(), from: now, ..ActionWindow::default() });
            let is_certain = expected && since == now;
            assert_eq!(windows.is_abandoned(&turn, || false), is_certain, "it has acted just now: {why}");
        }
    }
}
