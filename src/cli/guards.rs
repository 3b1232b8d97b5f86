//! The table of the integrations that guard a workspace: a row for each agent client, shell and git.

use std::path::Path;

use super::print;
use super::screen;
use crate::doors::protection::{AGENTS, NOBODY, last_event, title_of_door, title_of_name};
use crate::model::text::{padded, printable, width, wrapped};
use crate::protocol::{ProtectionBlock, ProtectionState, ReasonItem};

/// The indent of the rows.
const INDENT: usize = 2;

/// The least room for the last column; on a narrower screen its text is not wrapped.
const LEAST_ROOM: usize = 20;

/// A row of the table.
struct GuardRow {
    name: String,
    /// `ok`, `FAIL`, `warn` or `installed, not used yet`.
    state: &'static str,
    /// The time of the last event, or the reason for which it does not guard.
    detail: String,
    /// The step that changes that.
    fix: Option<String>,
}

/// Says in one line whether a workspace is protected.
pub(super) fn headline(root: &Path, protection: &ProtectionBlock) -> String {
    let root = print::bold(&print::path(root));
    match protection.state {
        ProtectionState::Protected => format!("{root} is protected"),
        ProtectionState::Unseen => format!("{root} is set up, but no event has come from here yet"),
        ProtectionState::CannotTell => format!("{root} might be protected; piton cannot tell"),
        ProtectionState::NotGuarded | ProtectionState::Unknown => format!("{root} is not guarded"),
    }
}

/// Renders the table, its columns aligned and its last one wrapped at the screen's width.
pub(super) fn table(protection: &ProtectionBlock) -> String {
    let rows = rows(protection);
    let widest = |of: fn(&GuardRow) -> usize| rows.iter().map(of).max().unwrap_or_default();
    let (names, states) = (widest(|row| width(&row.name)), widest(|row| width(row.state)));
    let indent = INDENT + names + 2 + states + 2;
    let room = screen::columns().map_or(usize::MAX, |columns| columns.saturating_sub(indent));
    let room = if room < LEAST_ROOM { usize::MAX } else { room };
    let mut text = String::new();
    for row in &rows {
        let mut lines = wrapped(&row.detail, room);
        lines.extend(row.fix.iter().flat_map(|fix| wrapped(&format!("fix: {fix}"), room)));
        let head = format!("{:INDENT$}{}  {}", "", padded(&row.name, names), padded(row.state, states));
        let first = lines.first().map(|line| format!("  {line}")).unwrap_or_default();
        add_line!(text, "{}", format!("{head}{first}").trim_end());
        lines.iter().skip(1).for_each(|line| add_line!(text, "{:indent$}{line}", ""));
    }
    text
}

/// Returns the rows: what guards, what is installed without an event so far, then what does not guard.
fn rows(protection: &ProtectionBlock) -> Vec<GuardRow> {
    let guarding = protection.doors.iter().filter(|door| door.guards).map(|door| GuardRow {
        name: printable(&title_of_door(door)),
        state: "ok",
        detail: format!("last event {}", last_event(door)),
        fix: None,
    });
    let waiting = protection.waiting.iter().map(|name| GuardRow {
        name: printable(&title_of_name(name)),
        state: "installed, not used yet",
        detail: String::new(),
        fix: None,
    });
    let silent = protection.silent.iter().map(|item| GuardRow {
        name: printable(&title_of_name(&item.client)),
        state: "FAIL",
        detail: printable(&item.text),
        fix: Some(printable(&item.mend)),
    });
    guarding.chain(waiting).chain(silent).chain(protection.reasons.iter().map(reason)).collect()
}

/// Returns the row of a reason for which something does not guard.
fn reason(reason: &ReasonItem) -> GuardRow {
    let name = match reason.client.as_deref() {
        Some(name) => title_of_name(name),
        None if [NOBODY, AGENTS].contains(&reason.text.as_str()) => "agents".to_owned(),
        None => "piton".to_owned(),
    };
    let state = if reason.text == AGENTS { "warn" } else { "FAIL" };
    let detail = printable(&reason.text);
    GuardRow { name: printable(&name), state, detail, fix: reason.mend.as_deref().map(printable) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::door::Door;
    use crate::protocol::{DoorItem, SilentItem};
    use crate::sys::clock::{now_ms, rfc3339};

    #[test]
    fn a_row_says_what_an_integration_does_and_how_to_fix_it() {
        let last = rfc3339(now_ms() - 150_000);
        let door = |door: Door, client: &str| DoorItem {
            door: door.into(),
            client: Some(client.to_owned()),
            last: last.clone(),
            guards: true,
        };
        let protection = ProtectionBlock {
            state: ProtectionState::Protected,
            doors: vec![door(Door::Hook, "claude-code"), door(Door::Shell, "bash")],
            waiting: vec!["git".to_owned(), "gemini-cli".to_owned()],
            silent: vec![SilentItem {
                client: "hermes".to_owned(),
                since: last.clone(),
                text: "changes without events\u{1b}".to_owned(),
                mend: "start it again".to_owned(),
            }],
            reasons: vec![
                ReasonItem {
                    client: Some("codex".to_owned()),
                    text: "hooks are not trusted".to_owned(),
                    mend: Some("open /hooks".to_owned()),
                },
                ReasonItem { client: None, text: "the guard is off".to_owned(), mend: None },
            ],
        };
        let lines: Vec<String> = table(&protection).lines().map(str::to_owned).collect();
        let expected = [
            "  Claude Code          ok                       last event 2 min ago",
            "  lines typed in bash  ok                       last event 2 min ago",
            "  commands of git      installed, not used yet",
            "  Gemini CLI           installed, not used yet",
            "  Hermes Agent         FAIL                     changes without events\\u{1b}",
            "                                                fix: start it again",
            "  Codex                FAIL                     hooks are not trusted",
            "                                                fix: open /hooks",
            "  piton                FAIL                     the guard is off",
        ];
        assert_eq!(lines, expected);
        assert_eq!(headline(Path::new("/w"), &protection), "/w is protected");
    }
}
