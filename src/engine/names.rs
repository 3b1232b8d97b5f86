//! Texts of clients as they are recorded: names of turns, free text.

use std::path::Path;

use super::event::{Action, Doing};
use crate::checkpoint::records::state::WorkspaceState;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::{Guard, Policy};
use crate::model::redact::{holds_secret, redact};
use crate::model::text::{cut, printable};
use crate::sys::clock::now_ms;

/// Longest name of a turn, in characters.
const MAX_TURN: usize = 64;

/// Longest part of a prompt that is recorded, in characters.
const MAX_PROMPT: usize = 80;

/// The longest reason of a checkpoint, in characters.
const MAX_REASON: usize = 160;

/// Returns the guard in force: off where a person switched it off.
pub fn guard_in_force(policy: &Policy, dir: &Path) -> Guard {
    if WorkspaceState::load(dir).is_off(now_ms()) { Guard::Off } else { policy.guard }
}

/// Returns a client's free text as it is recorded and told: one line, without secrets, of at most so many characters.
pub fn recorded(text: &str, most: usize) -> String {
    cut(&printable(&redact(text)), most)
}

/// Returns an action's words in the reason of its checkpoint, not yet redacted.
pub(super) fn named(action: &Action) -> String {
    match &action.what {
        Doing::Shell { command } => format!("shell: {command}"),
        Doing::Tool(tool) => {
            let told = tool.paths.first().map(String::as_str);
            let in_input = || ["path", "file_path", "source"].iter().find_map(|field| tool.input.get(field)?.as_str());
            let path = told.or_else(in_input).map(|path| format!(" {path}")).unwrap_or_default();
            format!("{}{path}", tool.name)
        }
    }
}

/// Returns an action's reason as it is recorded: one line, redacted and cut.
pub(super) fn shown(reason: &str) -> String {
    cut(&printable(&redact(reason)), MAX_REASON)
}

/// Returns the first words of a prompt as they are recorded: one line, without secrets; `None` for a prompt without words.
pub fn prompt_words(text: &str) -> Option<String> {
    let words = redact(text).split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| cut(&printable(&words), MAX_PROMPT))
}

/// Returns a turn's name as it is recorded. A few digits of a hash replace a secret in it, so that two turns keep two
/// names. They are too few to find the secret.
pub fn turn_name(text: &str) -> String {
    if !holds_secret(text) {
        return cut(&printable(text), MAX_TURN);
    }
    let digest = ObjectId::of(ObjectKind::Blob, text.as_bytes()).map(|id| id.to_string()).unwrap_or_default();
    format!("{} {}", recorded(text, MAX_TURN - 6), digest.get(..4).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_recorded_as_its_first_words() {
        assert_eq!(prompt_words("  Fix the\n\ttests,\u{1b}please "), Some("Fix the tests,\\u{1b}please".to_owned()));
        assert_eq!(prompt_words(" \n"), None);
        let told = prompt_words("Log in with TOKEN=hunter2abc and go on").unwrap_or_default();
        assert_eq!(told, "Log in with TOKEN=*** and go on");
        let cut = prompt_words(&"word ".repeat(100)).unwrap_or_default();
        assert!(cut.chars().count() == MAX_PROMPT + 1 && cut.ends_with('…'), "{cut}");
    }

    #[test]
    fn names_lose_their_secrets_and_stay_apart() {
        assert_eq!(turn_name("turn 1"), "turn 1");
        let (one, other) = (turn_name("TOKEN=hunter2abc"), turn_name("TOKEN=hunter3abc"));
        assert!(one.starts_with("TOKEN=*** ") && other.starts_with("TOKEN=*** ") && one != other, "{one} {other}");
        assert!(turn_name(&format!("{}TOKEN=hunter2abc", "x ".repeat(80))).chars().count() <= MAX_TURN);
    }
}
