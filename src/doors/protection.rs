//! The protection of a workspace: judged from facts, and put into words. All doors and verbs take both from here.
//!
//! *Invariant:* nothing is called protected that no door guards now, or whose doors have never been seen to work. A setting
//! that cannot be read counts as nothing that works.

use crate::agents::Client;
use crate::checkpoint::records::doors::SeenDoor;
use crate::engine::silence::judge::Silence;
use crate::error::Error;
use crate::model::door::Door;
use crate::protocol::{DoorItem, ProtectionBlock, ProtectionState, ReasonItem, SilentItem};
use crate::shell::HookedShell;
use crate::sys::clock::{ago, ms_of, rfc3339};

/// The reason where nobody guards.
pub const NOBODY: &str = "no agent client has piton's hooks, and no sidecar is running";

/// The reason for which agents are not guarded, where a shell's lines are.
pub const AGENTS: &str = "agents are not guarded: no agent client has piton hooks";

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

/// A shell whose startup file has a line of piton's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetShell {
    /// The shell.
    pub shell: HookedShell,
    /// The reason for which the line does nothing; `None` where nothing is known against it.
    pub fault: Option<HookFault>,
}

/// The git door, which piton has put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetGit {
    /// The reason for which it does nothing, or only a part; `None` where nothing is known against it.
    pub fault: Option<HookFault>,
}

/// All that is installed here and guards by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The clients with hooks.
    pub hooks: Vec<ClientHooks>,
    /// The shells with a line.
    pub shells: Vec<SetShell>,
    /// The git door.
    pub git: Option<SetGit>,
}

/// The name of the git integration, as clients and shells have theirs.
const GIT: &str = "git";

/// The git integration for people.
const COMMANDS_OF_GIT: &str = "commands of git";

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

/// Returns the clients that are at work without events, each with the cause. `hooks` is `None` where the files of clients were not read.
pub fn silent_items(silences: &[Silence], hooks: Option<&[ClientHooks]>) -> Vec<SilentItem> {
    let item = |silence: &Silence| {
        let (name, title) = (silence.client.name(), silence.client.title());
        let own = hooks.map(|hooks| hooks.iter().find(|hooks| hooks.client == silence.client));
        let (cause, mend) = match own {
            None => (String::new(), "`piton doctor` explains why".to_owned()),
            Some(None) => (": it has no piton hooks".to_owned(), format!("piton install {name}")),
            Some(Some(ClientHooks { fault: Some(HookFault { what, step, is_certain: _ }), .. })) => {
                (format!(": {what}"), step.clone())
            }
            Some(Some(_)) => {
                let cause = ": its hooks are installed, but its running session does not call them";
                (cause.to_owned(), format!("end {title} and start it again"))
            }
        };
        let text = format!("{}{cause}", silence.text());
        SilentItem { client: name.to_owned(), since: rfc3339(silence.since), text, mend }
    };
    silences.iter().map(item).collect()
}

/// Judges the protection of a workspace. `off` is a reason for which no checkpoint is taken there, whoever guards.
pub fn judge(
    off: Option<ReasonItem>,
    installed: &Installed,
    seen: &[SeenDoor],
    silent: Vec<SilentItem>,
) -> ProtectionBlock {
    let is_silent = |client: Client| silent.iter().any(|item| item.client == client.name());
    let Installed { hooks, shells, git } = installed;
    // Commands of git come from whoever runs them.
    let is_of = |door: &SeenDoor, kind: Door, name: &str| {
        door.door == kind && (kind == Door::Git || door.client.as_deref() == Some(name))
    };
    // The hooks of a client guard the lines too that a person types there.
    let has_lines = |door: &SeenDoor, kind: Door, name: &str| {
        let client = door.client.as_deref().filter(|_| door.door == Door::Shell).and_then(Client::of_lines);
        kind == Door::Hook && client.is_some_and(|client| client.name() == name)
    };
    let sound = hooks.iter().filter(|hooks| hooks.fault.is_none() && !is_silent(hooks.client));
    let working = sound.map(|hooks| (Door::Hook, hooks.client.name()));
    let lines = shells.iter().filter(|set| set.fault.is_none()).map(|set| (Door::Shell, set.shell.name()));
    let commands = git.iter().filter(|set| set.fault.is_none()).map(|_| (Door::Git, GIT));
    let expected: Vec<(Door, &str)> = working.chain(lines).chain(commands).collect();
    let works = |door: &SeenDoor| match door.door {
        Door::Hook | Door::Shell | Door::Git => {
            expected.iter().any(|(kind, name)| is_of(door, *kind, name) || has_lines(door, *kind, name))
        }
        Door::Sidecar | Door::Stream | Door::McpProxy | Door::Run | Door::Watch => door.is_at_work,
    };
    let item = |door: &SeenDoor| DoorItem {
        door: door.door.into(),
        client: door.client.clone(),
        last: rfc3339(door.last),
        guards: off.is_none() && works(door),
    };
    let doors: Vec<DoorItem> = seen.iter().map(item).collect();
    let is_seen = |(kind, name): &(Door, &str)| seen.iter().any(|door| is_of(door, *kind, name));
    let waiting: Vec<String> =
        expected.iter().filter(|one| !is_seen(one)).map(|(_, name)| (*name).to_owned()).collect();
    let is_uncertain = |hooks: &ClientHooks| hooks.fault.as_ref().is_some_and(|fault| !fault.is_certain);
    let state = match (&off, doors.iter().any(|door| door.guards), waiting.is_empty()) {
        (Some(_), _, _) => ProtectionState::NotGuarded,
        (None, true, _) => ProtectionState::Protected,
        (None, false, false) => ProtectionState::Unseen,
        (None, false, true) if hooks.iter().any(is_uncertain) => ProtectionState::CannotTell,
        (None, false, true) => ProtectionState::NotGuarded,
    };
    // The cause of a silence is told with it.
    let fault = |hooks: &ClientHooks| {
        if is_silent(hooks.client) {
            return None;
        }
        let HookFault { what, step, is_certain: _ } = hooks.fault.clone()?;
        Some(ReasonItem { client: Some(hooks.client.name().to_owned()), text: what, mend: Some(step) })
    };
    let told = |name: &str, fault: &Option<HookFault>| {
        let HookFault { what, step, is_certain: _ } = fault.clone()?;
        Some(ReasonItem { client: Some(name.to_owned()), text: what, mend: Some(step) })
    };
    let narrow = shells.iter().filter_map(|set| told(set.shell.name(), &set.fault));
    let narrow = narrow.chain(git.iter().filter_map(|set| told(GIT, &set.fault)));
    let faults = hooks.iter().filter_map(fault).chain(narrow);
    let mut reasons: Vec<ReasonItem> = off.into_iter().chain(faults).collect();
    if reasons.is_empty() && silent.is_empty() && state == ProtectionState::NotGuarded {
        reasons.push(ReasonItem { client: None, text: NOBODY.to_owned(), mend: Some(INSTALL.to_owned()) });
    }
    let guards_agents = doors.iter().any(|door| door.guards && !is_narrow(door));
    let is_shells_alone = matches!(state, ProtectionState::Protected | ProtectionState::Unseen) && !guards_agents;
    if is_shells_alone && hooks.is_empty() && silent.is_empty() {
        reasons.push(ReasonItem { client: None, text: AGENTS.to_owned(), mend: Some(INSTALL.to_owned()) });
    }
    ProtectionBlock { state, doors, waiting, reasons, silent }
}

/// Returns true for a door through which only some of what happens in a workspace comes.
fn is_narrow(door: &DoorItem) -> bool {
    matches!(door.door.known(), Some(Door::Shell | Door::Git))
}

/// Returns the name of an installed integration for people: a client, `lines typed in bash`, `commands of git`.
pub fn title_of_name(name: &str) -> String {
    match name {
        GIT => COMMANDS_OF_GIT.to_owned(),
        shell if HookedShell::named(shell).is_ok() => format!("lines typed in {shell}"),
        client => title(client),
    }
}

/// Returns a client's name for people.
pub fn title(name: &str) -> String {
    let client = Client::of_lines(name).map_or_else(|| Client::named(name), Ok);
    client.map_or_else(|_| name.to_owned(), |client| client.title().to_owned())
}

/// Returns an integration for people: the client, and the kind of integration where it is no hook.
pub fn title_of_door(door: &DoorItem) -> String {
    let client = door.client.as_deref().map_or_else(|| "a client without a name".to_owned(), title);
    match door.door.known() {
        Some(Door::Hook) => client,
        Some(Door::Shell) => format!("lines typed in {client}"),
        Some(Door::McpProxy) => "the MCP proxy".to_owned(),
        Some(Door::Run) => format!("{client} (piton run)"),
        Some(Door::Git) => COMMANDS_OF_GIT.to_owned(),
        Some(Door::Watch) => "autosaves (piton watch)".to_owned(),
        Some(Door::Sidecar | Door::Stream) | None => format!("{client} ({})", door.door.text()),
    }
}

/// Says how long ago the last event of an integration was.
pub fn last_event(door: &DoorItem) -> String {
    ms_of(&door.last).map_or_else(|| door.last.clone(), ago)
}

/// Says by which doors the workspace is protected, and when each was seen last. Shells alone protect only lines that are typed there.
pub fn guards(protection: &ProtectionBlock) -> String {
    let guarding: Vec<&DoorItem> = protection.doors.iter().filter(|door| door.guards).collect();
    let is_all = guarding.iter().any(|door| !is_narrow(door));
    let told: Vec<String> =
        guarding.iter().map(|door| format!("{}, last event {}", title_of_door(door), last_event(door))).collect();
    format!("{} {}", if is_all { "by" } else { "for" }, told.join("; "))
}

/// Says through which door the last event came, if one has come.
pub fn last_seen(protection: &ProtectionBlock) -> Option<String> {
    let door = protection.doors.first()?;
    Some(format!("The last event came from {} {}.", title_of_door(door), last_event(door)))
}

/// Says which hooks, lines of shells and the git door are installed without an event so far. Of a shell and of git, events are only
/// commands that may destroy something.
pub fn waiting(protection: &ProtectionBlock) -> String {
    let (narrow, clients): (Vec<&String>, Vec<&String>) =
        protection.waiting.iter().partition(|name| is_of_commands(name));
    let (git, shells): (Vec<&String>, Vec<&String>) = narrow.into_iter().partition(|name| *name == GIT);
    let clients: Vec<String> = clients.into_iter().map(|name| title(name)).collect();
    let shells: Vec<&str> = shells.into_iter().map(String::as_str).collect();
    let hooks = (!clients.is_empty())
        .then(|| format!("hooks of {} are installed, but no event has come from here yet", clients.join(", ")));
    let is_told = hooks.is_none() || protection.state == ProtectionState::Unseen;
    let commands = (is_told && !git.is_empty())
        .then(|| "git calls piton, but no potentially destructive git command has been run here".to_owned());
    let lines = (is_told && !shells.is_empty()).then(|| {
        let call = if shells.len() == 1 { "calls" } else { "call" };
        let shells = shells.join(" and ");
        format!("{shells} {call} piton, but no potentially destructive command has been typed here")
    });
    hooks.into_iter().chain(lines).chain(commands).collect::<Vec<_>>().join("; ")
}

/// Returns true for the name of a shell, and of git.
fn is_of_commands(name: &str) -> bool {
    name == GIT || HookedShell::named(name).is_ok()
}

/// Returns true if hooks of a client are among those without an event.
fn has_waiting_client(protection: &ProtectionBlock) -> bool {
    protection.waiting.iter().any(|name| !is_of_commands(name))
}

/// Returns a reason with the step that mends it, for people.
pub fn reason(reason: &ReasonItem) -> String {
    let client = reason.client.as_deref().map(|name| format!("{}: ", title(name))).unwrap_or_default();
    let mend = reason.mend.as_deref().map(|mend| format!("; {mend}")).unwrap_or_default();
    format!("{client}{}{mend}", reason.text)
}

/// Returns each client at work without events, and each reason for which something does not guard, with the step that mends it.
pub fn faults(protection: &ProtectionBlock) -> Vec<String> {
    let silent = protection.silent.iter().map(|item| format!("{}; {}", item.text, item.mend));
    silent.chain(protection.reasons.iter().map(reason)).collect()
}

/// Says in one line whether the workspace is protected.
pub fn summary(protection: &ProtectionBlock) -> String {
    let first = || faults(protection).into_iter().next().unwrap_or_default();
    match protection.state {
        ProtectionState::Protected => format!("protected {}", guards(protection)),
        ProtectionState::Unseen => format!("installed, not used yet: {}", waiting(protection)),
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
    // Of a shell, events come only now and then: they are missed where nothing else works.
    let is_waiting = protection.state != ProtectionState::Unseen && has_waiting_client(protection);
    let unused = is_waiting.then(|| format!("installed, not used yet: {}", waiting(protection)));
    let silent = protection.silent.iter().map(|item| format!("not guarded: {}; {}", item.text, item.mend));
    let say = |one: &ReasonItem| match one.text == AGENTS {
        true => reason(one),
        false => format!("not guarded: {}", reason(one)),
    };
    let faults = silent.chain(protection.reasons.iter().map(say)).skip(is_told);
    unused.into_iter().chain(faults).collect()
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

    fn shell(shell: HookedShell, fault: Option<&str>) -> SetShell {
        let fault = fault.map(|what| HookFault { what: what.into(), step: "mend it".into(), is_certain: true });
        SetShell { shell, fault }
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
            // Lines of a shell are none of a client's events, and the other way round.
            (claude(None), vec![door(Door::Shell, "claude-code", false)], Unseen),
            (vec![], vec![door(Door::Shell, "zsh", true)], NotGuarded),
        ];
        for (hooks, seen, wanted) in cases {
            let installed = Installed { hooks, ..Installed::default() };
            let judged = judge(None, &installed, &seen, Vec::new());
            assert_eq!(judged.state, wanted, "{installed:?} {seen:?}");
            assert_eq!(summary(&judged).starts_with("protected"), wanted == Protected, "{}", summary(&judged));
            let reason = ReasonItem { text: "the store cannot be written".to_owned(), ..ReasonItem::default() };
            let judged = judge(Some(reason), &installed, &seen, Vec::new());
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
        let installed = Installed { hooks: clients.to_vec(), shells: vec![shell(HookedShell::Zsh, None)], git: None };
        let judged = judge(None, &installed, &seen, Vec::new());
        assert_eq!(
            summary(&judged),
            "protected by Claude Code, last event 2 min ago; my harness (sidecar), last event 2 min ago"
        );
        assert_eq!(
            further(&judged),
            [
                "installed, not used yet: hooks of Codex are installed, but no event has come from here yet",
                "not guarded: Gemini CLI: off; mend it"
            ]
        );
        assert_eq!(last_seen(&judged).unwrap(), "The last event came from Claude Code 2 min ago.");
    }
    #[test]
    fn a_shell_guards_the_lines_that_are_typed_in_it() {
        use ProtectionState::*;
        let zsh = |fault| Installed { shells: vec![shell(HookedShell::Zsh, fault)], ..Installed::default() };
        let typed = || door(Door::Shell, "zsh", false);
        let judged = judge(None, &zsh(None), &[typed()], Vec::new());
        assert_eq!(summary(&judged), "protected for lines typed in zsh, last event 2 min ago");
        let agents = format!("{AGENTS}; {INSTALL}");
        assert_eq!(further(&judged), std::slice::from_ref(&agents));
        assert_eq!(last_seen(&judged).unwrap(), "The last event came from lines typed in zsh 2 min ago.");
        let judged = judge(None, &zsh(None), &[], Vec::new());
        assert_eq!(judged.state, Unseen);
        assert_eq!(
            summary(&judged),
            "installed, not used yet: zsh calls piton, but no potentially destructive command has been typed here"
        );
        assert_eq!(further(&judged), [agents]);
        // An event of another shell says nothing of this one, and a line that does nothing is no door.
        assert_eq!(judge(None, &zsh(None), &[door(Door::Shell, "bash", false)], Vec::new()).state, Unseen);
        let judged = judge(None, &zsh(Some("it calls a program that is not there")), &[typed()], Vec::new());
        assert_eq!(summary(&judged), "not guarded: zsh: it calls a program that is not there; mend it");
        // Beside an agent's door, a shell's is one more.
        let both = Installed { hooks: vec![hooks(Client::Codex, None)], ..zsh(None) };
        let judged = judge(None, &both, &[door(Door::Hook, "codex", false), typed()], Vec::new());
        assert_eq!(
            summary(&judged),
            "protected by Codex, last event 2 min ago; lines typed in zsh, last event 2 min ago"
        );
        assert!(further(&judged).is_empty(), "{:?}", further(&judged));
        // Hooks without an event are said, though a shell's lines are guarded.
        let judged = judge(None, &both, &[typed()], Vec::new());
        assert_eq!(
            further(&judged),
            ["installed, not used yet: hooks of Codex are installed, but no event has come from here yet"]
        );
    }

    #[test]
    fn the_git_door_guards_commands_of_git() {
        use ProtectionState::*;
        let git = |fault: Option<HookFault>| Installed { git: Some(SetGit { fault }), ..Installed::default() };
        let judged = judge(None, &git(None), &[], Vec::new());
        assert_eq!(judged.state, Unseen);
        let waits = "git calls piton, but no potentially destructive git command has been run here";
        assert_eq!(summary(&judged), format!("installed, not used yet: {waits}"));
        // Its events come from whoever runs a command.
        for client in ["git", "claude-code"] {
            let judged = judge(None, &git(None), &[door(Door::Git, client, false)], Vec::new());
            assert_eq!(summary(&judged), "protected for commands of git, last event 2 min ago");
            assert_eq!(further(&judged), [format!("{AGENTS}; {INSTALL}")]);
        }
        let fault = HookFault { what: "its hook is gone".into(), step: "mend it".into(), is_certain: true };
        let judged = judge(None, &git(Some(fault)), &[door(Door::Git, "git", false)], Vec::new());
        assert_eq!(summary(&judged), "not guarded: git: its hook is gone; mend it");
        // Beside hooks of a client, it is one more door.
        let both = Installed { hooks: vec![hooks(Client::Codex, None)], ..git(None) };
        let judged = judge(None, &both, &[door(Door::Hook, "codex", false)], Vec::new());
        assert_eq!(summary(&judged), "protected by Codex, last event 2 min ago");
        assert!(further(&judged).is_empty(), "{:?}", further(&judged));
    }

    #[test]
    fn a_silent_client_guards_nothing_and_its_cause_is_told_once() {
        let since = crate::sys::clock::now_ms() - 150_000;
        let silences = [Silence { client: Client::ClaudeCode, since }];
        let sentence = silences[0].text();
        assert!(
            sentence.starts_with("changes without events from Claude Code since ") && sentence.ends_with("(2 min ago)")
        );
        let seen = [door(Door::Hook, "claude-code", false)];
        let says = |hooks: &[ClientHooks], seen: &[SeenDoor]| {
            let installed = Installed { hooks: hooks.to_vec(), ..Installed::default() };
            let judged = judge(None, &installed, seen, silent_items(&silences, Some(hooks)));
            (judged.state, summary(&judged), further(&judged))
        };
        let off = || hooks(Client::ClaudeCode, Some(("off", true)));
        let told = |rest: &str| (ProtectionState::NotGuarded, format!("not guarded: {sentence}{rest}"), Vec::new());
        assert_eq!(says(&[], &seen), told(": it has no piton hooks; piton install claude-code"));
        assert_eq!(says(&[off()], &seen), told(": off; mend it"));
        let anew =
            ": its hooks are installed, but its running session does not call them; end Claude Code and start it again";
        assert_eq!(says(&[hooks(Client::ClaudeCode, None)], &seen), told(anew));
        // Before the first event too.
        assert_eq!(says(&[hooks(Client::ClaudeCode, None)], &[]), told(anew));
        // Another door guards on.
        let both = [seen[0].clone(), door(Door::Hook, "codex", false)];
        let (state, said, more) = says(&[off(), hooks(Client::Codex, None)], &both);
        assert_eq!((state, said.as_str()), (ProtectionState::Protected, "protected by Codex, last event 2 min ago"));
        assert_eq!(more, [format!("not guarded: {sentence}: off; mend it")]);
        assert_eq!(silent_items(&silences, None)[0].mend, "`piton doctor` explains why");
    }
}
