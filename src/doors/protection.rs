//! The protection of a workspace: judged from facts, and put into words. All doors and verbs take both from here.
//!
//! *Invariant:* nothing is called protected that no door guards now, or whose doors have never been seen to work. A setting
//! that cannot be read counts as nothing that works.

use crate::agents::Client;
use crate::checkpoint::records::doors::SeenDoor;
use crate::error::Error;
use crate::model::door::Door;
use crate::protocol::{DoorItem, ProtectionBlock, ProtectionState, ReasonItem};
use crate::sys::clock::{ago, ms_of, rfc3339};

/// The reason where nobody guards.
pub const NOBODY: &str = "no agent client has hooks of piton's, and no sidecar is at work";

/// The step where nobody guards.
pub const INSTALL: &str = "piton install --all";

/// The installed hooks of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHooks {
    /// The client.
    pub client: Client,
    /// The reason for which they do not run, or may not; `None` where nothing is known against them.
    pub fault: Option<HookFault>,
}

/// A reason for which hooks do not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFault {
    /// The reason, as a sentence without a full stop.
    pub what: String,
    /// The step that mends it.
    pub step: String,
    /// False if a setting cannot be read, so that the hooks may run all the same.
    pub is_certain: bool,
}

/// Says that no checkpoint can be taken because the store cannot be written.
pub fn unwritable(error: &Error) -> String {
    format!("the store cannot be written: {}", error.text())
}

/// Judges the protection of a workspace. `off` is a reason for which no checkpoint is taken there, whoever guards.
pub fn judge(off: Option<ReasonItem>, hooks: &[ClientHooks], seen: &[SeenDoor]) -> ProtectionBlock {
    let is_of =
        |door: &SeenDoor, client: Client| door.door == Door::Hook && door.client.as_deref() == Some(client.name());
    let works = |door: &SeenDoor| match door.door {
        Door::Hook => hooks.iter().any(|hooks| hooks.fault.is_none() && is_of(door, hooks.client)),
        Door::Sidecar | Door::Stream | Door::McpProxy | Door::Run | Door::Watch => door.is_at_work,
    };
    let item = |door: &SeenDoor| DoorItem {
        door: door.door.into(),
        client: door.client.clone(),
        last: rfc3339(door.last),
        guards: off.is_none() && works(door),
    };
    let doors: Vec<DoorItem> = seen.iter().map(item).collect();
    let working = || hooks.iter().filter(|hooks| hooks.fault.is_none()).map(|hooks| hooks.client);
    let waiting: Vec<Client> = working().filter(|client| !seen.iter().any(|door| is_of(door, *client))).collect();
    let is_uncertain = |hooks: &ClientHooks| hooks.fault.as_ref().is_some_and(|fault| !fault.is_certain);
    let state = match (&off, doors.iter().any(|door| door.guards), waiting.is_empty()) {
        (Some(_), _, _) => ProtectionState::NotGuarded,
        (None, true, _) => ProtectionState::Protected,
        (None, false, false) => ProtectionState::Unseen,
        (None, false, true) if hooks.iter().any(is_uncertain) => ProtectionState::CannotTell,
        (None, false, true) => ProtectionState::NotGuarded,
    };
    let fault = |hooks: &ClientHooks| {
        let HookFault { what, step, is_certain: _ } = hooks.fault.clone()?;
        Some(ReasonItem { client: Some(hooks.client.name().to_owned()), text: what, mend: Some(step) })
    };
    let mut reasons: Vec<ReasonItem> = off.into_iter().chain(hooks.iter().filter_map(fault)).collect();
    if reasons.is_empty() && state == ProtectionState::NotGuarded {
        reasons.push(ReasonItem { client: None, text: NOBODY.to_owned(), mend: Some(INSTALL.to_owned()) });
    }
    let waiting = waiting.into_iter().map(|client| client.name().to_owned()).collect();
    ProtectionBlock { state, doors, waiting, reasons }
}

/// Returns a client's name for people.
pub fn title(name: &str) -> String {
    Client::named(name).map_or_else(|_| name.to_owned(), |client| client.title().to_owned())
}

/// Returns a door for people: the client, and the kind of door where it is no hook.
fn door_title(door: &DoorItem) -> String {
    let client = door.client.as_deref().map_or_else(|| "a client without a name".to_owned(), title);
    match door.door.known() {
        Some(Door::Hook) => client,
        Some(Door::McpProxy) => "the MCP proxy".to_owned(),
        Some(Door::Run) => format!("{client} (piton run)"),
        Some(Door::Watch) => "autosaves (piton watch)".to_owned(),
        Some(Door::Sidecar | Door::Stream) | None => format!("{client} ({})", door.door.text()),
    }
}

fn last_event(door: &DoorItem) -> String {
    ms_of(&door.last).map_or_else(|| door.last.clone(), ago)
}

/// Says which doors guard, and when each was seen last.
pub fn guards(protection: &ProtectionBlock) -> String {
    let guarding = protection.doors.iter().filter(|door| door.guards);
    let told: Vec<String> =
        guarding.map(|door| format!("{}, last event {}", door_title(door), last_event(door))).collect();
    told.join("; ")
}

/// Says through which door the last event came, if one has come.
pub fn last_seen(protection: &ProtectionBlock) -> Option<String> {
    let door = protection.doors.first()?;
    Some(format!("The last event came from {} {}.", door_title(door), last_event(door)))
}

/// Says which hooks are installed without an event so far.
pub fn waiting(protection: &ProtectionBlock) -> String {
    let clients: Vec<String> = protection.waiting.iter().map(|name| title(name)).collect();
    format!("hooks of {} are installed, and no event has come from here yet", clients.join(", "))
}

/// Returns a reason with the step that mends it, for people.
pub fn reason(reason: &ReasonItem) -> String {
    let client = reason.client.as_deref().map(|name| format!("{}: ", title(name))).unwrap_or_default();
    let mend = reason.mend.as_deref().map(|mend| format!("; {mend}")).unwrap_or_default();
    format!("{client}{}{mend}", reason.text)
}

/// Says in one line whether the workspace is protected.
pub fn summary(protection: &ProtectionBlock) -> String {
    let first = || protection.reasons.first().map(reason).unwrap_or_default();
    match protection.state {
        ProtectionState::Protected => format!("protected by {}", guards(protection)),
        ProtectionState::Unseen => format!("not seen to work yet: {}", waiting(protection)),
        ProtectionState::CannotTell => format!("cannot tell: {}", first()),
        ProtectionState::NotGuarded | ProtectionState::Unknown => format!("not guarded: {}", first()),
    }
}

/// Returns what else is to be said beside [`summary`], a line each: hooks without an event, and further reasons.
pub fn further(protection: &ProtectionBlock) -> Vec<String> {
    let is_told = usize::from(matches!(
        protection.state,
        ProtectionState::CannotTell | ProtectionState::NotGuarded | ProtectionState::Unknown
    ));
    let is_waiting = protection.state != ProtectionState::Unseen && !protection.waiting.is_empty();
    let told = is_waiting.then(|| format!("not seen to work yet: {}", waiting(protection)));
    let reasons = protection.reasons.iter().skip(is_told);
    told.into_iter().chain(reasons.map(|one| format!("not guarded: {}", reason(one)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(client: Client, fault: Option<(&str, bool)>) -> ClientHooks {
        let fault = fault.map(|(what, is_certain)| HookFault { what: what.into(), step: "mend it".into(), is_certain });
        ClientHooks { client, fault }
    }

    fn door(door: Door, client: &str, is_at_work: bool) -> SeenDoor {
        SeenDoor { door, client: Some(client.to_owned()), last: crate::sys::clock::now_ms() - 150_000, is_at_work }
    }

    #[test]
    fn protected_is_what_guards_and_was_seen() {
        use ProtectionState::*;
        let off = Some(("off", true));
        let unsure = Some(("unread", false));
        let claude = |fault| vec![hooks(Client::ClaudeCode, fault)];
        let seen = || door(Door::Hook, "claude-code", false);
        let cases: Vec<(Vec<ClientHooks>, Vec<SeenDoor>, ProtectionState)> = vec![
            (vec![], vec![], NotGuarded),
            (claude(None), vec![], Unseen),
            (claude(None), vec![seen()], Protected),
            (claude(off), vec![seen()], NotGuarded),
            (claude(unsure), vec![seen()], CannotTell),
            // Hooks that are gone guard nothing, though events came.
            (vec![], vec![seen()], NotGuarded),
            // An event of another client, or through another door, says nothing of the hooks.
            (claude(None), vec![door(Door::Hook, "codex", false)], Unseen),
            (claude(None), vec![door(Door::Stream, "claude-code", false)], Unseen),
            (vec![], vec![door(Door::Sidecar, "mine", true)], Protected),
            (vec![], vec![door(Door::Sidecar, "mine", false)], NotGuarded),
            (vec![], vec![door(Door::McpProxy, "mcp-proxy", true)], Protected),
            // A hook is at work for a moment only.
            (vec![], vec![door(Door::Hook, "claude-code", true)], NotGuarded),
            (claude(off), vec![door(Door::Stream, "claude-code", true)], Protected),
        ];
        for (hooks, seen, wanted) in cases {
            let judged = judge(None, &hooks, &seen);
            assert_eq!(judged.state, wanted, "{hooks:?} {seen:?}");
            assert_eq!(summary(&judged).starts_with("protected"), wanted == Protected, "{}", summary(&judged));
            let reason = ReasonItem { text: "the store cannot be written".to_owned(), ..ReasonItem::default() };
            let judged = judge(Some(reason), &hooks, &seen);
            assert_eq!(judged.state, NotGuarded);
            assert!(judged.doors.iter().all(|door| !door.guards));
            assert_eq!(summary(&judged), "not guarded: the store cannot be written");
        }
    }

    #[test]
    fn each_door_is_named_with_its_time() {
        let clients = [
            hooks(Client::ClaudeCode, None),
            hooks(Client::Codex, None),
            hooks(Client::GeminiCli, Some(("off", true))),
        ];
        let seen = [door(Door::Hook, "claude-code", false), door(Door::Sidecar, "my harness", true)];
        let judged = judge(None, &clients, &seen);
        assert_eq!(
            summary(&judged),
            "protected by Claude Code, last event 2 min ago; my harness (sidecar), last event 2 min ago"
        );
        assert_eq!(
            further(&judged),
            [
                "not seen to work yet: hooks of Codex are installed, and no event has come from here yet",
                "not guarded: Gemini CLI: off; mend it"
            ]
        );
        assert_eq!(last_seen(&judged).unwrap(), "The last event came from Claude Code 2 min ago.");
    }
}
