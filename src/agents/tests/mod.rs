//! The clients: their payloads, the replies to them, and payloads that no client sends.

mod conversations;
mod hostile;
mod installs;
mod replies;

use super::*;

/// Returns an event in one line: session, turn, directory, what happened.
pub(super) fn told(event: &Event) -> String {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let id = |action: &Option<String>| action.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    let kind = match &event.kind {
        EventKind::SessionStart => "session".to_owned(),
        EventKind::SessionEnd => "session over".to_owned(),
        EventKind::AgentEnd => "agent over".to_owned(),
        EventKind::TurnStart { prompt } => format!("turn {:?}", prompt.as_deref().unwrap_or_default()),
        EventKind::Ask(ask) => format!("ask {ask:?}"),
        EventKind::TurnEnd => "turn over".to_owned(),
        EventKind::Before { action, act: Act::Shell { commands, cwd, cwd_told, .. } } => {
            let cwd = cwd.as_ref().map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
            let anywhere = if *cwd_told { "" } else { " somewhere" };
            format!("shell{} {commands:?}{cwd}{anywhere}", id(action))
        }
        EventKind::Before { action, act: Act::Tool { name, paths, writes, .. } } => {
            let writes = if *writes == Some(true) { " writes" } else { "" };
            format!("tool{} {name} {paths:?}{writes}", id(action))
        }
        EventKind::After { action, act: _, outcome } => {
            let exit = outcome.exit.map(|exit| format!(" exit {exit}")).unwrap_or_default();
            let ok = outcome.ok.map_or("over", |ok| if ok { "ok" } else { "failed" });
            format!("{ok}{}{exit}", id(action))
        }
        EventKind::Line { number, command } => format!("line {number} {command:?}"),
        EventKind::LineEnd { number } => format!("line {number} over"),
        EventKind::Unused(_) => "unused".to_owned(),
    };
    let agent = event.agent.as_ref().map(|agent| format!(" by {} {}", agent.id, or(&agent.kind))).unwrap_or_default();
    let cwd = event.cwd.as_ref().map_or("-".to_owned(), |cwd| cwd.display().to_string());
    let above = event.parent.as_ref().map(|parent| format!(" below {parent}")).unwrap_or_default();
    format!("{} {} {cwd}: {kind}{agent}{above}", or(&event.session), or(&event.turn))
}
