//! Words of the wire: the guard, interrupted restores, run ids.

use std::path::Path;

use serde_json::{Value, json};

use crate::checkpoint::records::state::State;
use crate::engine::watcher::Hearing;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::{Guard, Policy, Watching};
use crate::model::redact::{holds_secret, redact};
use crate::model::text::{cut, printable};
use crate::sys::clock::{local_minute, now_ms};

/// Longest name of a turn, in characters.
const MAX_TURN: usize = 64;

/// The guard's word on the wire.
pub fn guard_word(policy: &Policy, dir: &Path) -> &'static str {
    match policy.guard {
        _ if State::load(dir).is_off(now_ms()) => "off",
        Guard::Turn => "turn",
        Guard::Action => "action",
        Guard::Off => "off",
    }
}

/// Returns why the guard is off, until when, and what switches it on; nothing where it is on. `set` is where the settings say
/// what the guard is.
pub fn why_off(policy: &Policy, dir: &Path, set: &str) -> Option<String> {
    if policy.guard == Guard::Off {
        return Some(format!("the guard is off by the settings (`guard: off`, {set}): change that to switch it on"));
    }
    let (state, now) = (State::load(dir), now_ms());
    let until = state.off_until.filter(|_| state.is_off(now))?;
    Some(match until {
        i64::MAX => "the guard is switched off until somebody switches it on: `piton on`".to_owned(),
        until => format!("the guard is switched off until {}; `piton on` switches it on before", local_minute(until)),
    })
}

/// Interrupted restores of a workspace, as replies carry them.
pub fn interrupted(dir: &Path) -> Vec<Value> {
    let begun = crate::checkpoint::history::interrupted::interrupted(dir).unwrap_or_else(|error| {
        tracing::warn!(%error, "whether a restore was interrupted cannot be told");
        None
    });
    begun
        .into_iter()
        .map(|begin| {
            json!({ "operation": begin.op, "target": begin.target.to_string(), "preRestore": begin.pre_restore.to_string(),
                "next": "piton restore --continue, or piton restore --abort" })
        })
        .collect()
}

/// A client's free text as it is recorded and told: one line, without secrets, of at most so many characters.
pub fn recorded(text: &str, most: usize) -> String {
    cut(&printable(&redact(text)), most)
}

/// A turn's name as it is recorded. Two turns stay two: a few digits take the place of the secret in a name, too few to find it by.
pub fn turn_name(text: &str) -> String {
    if !holds_secret(text) {
        return cut(&printable(text), MAX_TURN);
    }
    let digest = ObjectId::of(ObjectKind::Blob, text.as_bytes()).map(|id| id.to_string()).unwrap_or_default();
    format!("{} {}", recorded(text, MAX_TURN - 6), digest.get(..4).unwrap_or_default())
}

/// A client's id of a run as one of ours: as it is when it fits and is no secret, else hashed.
pub fn run_id(text: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = text.len() <= 64
        && text.starts_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
        && !text.contains("..")
        && !text.ends_with('.')
        && !text.ends_with(".lock")
        && !holds_secret(text);
    if fits {
        return text.to_owned();
    }
    let id = ObjectId::of(ObjectKind::Blob, text.as_bytes());
    id.map_or_else(|_| "s-unnamed".to_owned(), |id| format!("s-{}", &id.to_string()[..16]))
}

/// How changes are noticed, in a word of the protocol.
pub fn watcher_word(wanted: Watching, hearing: &Hearing) -> &'static str {
    match wanted {
        _ if hearing.warm => "warm",
        Watching::Recommended if hearing.refused.is_none() => "cold",
        Watching::Recommended | Watching::Poll => "scan",
        Watching::None => "none",
    }
}

/// What a watcher has and has seen, as `status` tells.
pub fn watching(hearing: &Hearing) -> Value {
    let unwatched = hearing.unwatched.iter().map(|(path, why)| json!({ "path": path.display(), "reason": why }));
    json!({
        "directories": hearing.watches,
        "unwatched": { "count": hearing.unwatched_count, "items": unwatched.collect::<Vec<_>>() },
        "refused": hearing.refused,
        "events": hearing.events,
        "overflows": hearing.overflows,
        "audits": hearing.audits,
        "divergences": hearing.divergences,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_secrets_and_stay_apart() {
        assert_eq!(turn_name("turn 1"), "turn 1");
        let (one, other) = (turn_name("TOKEN=hunter2abc"), turn_name("TOKEN=hunter3abc"));
        assert!(one.starts_with("TOKEN=*** ") && other.starts_with("TOKEN=*** ") && one != other, "{one} {other}");
        assert!(turn_name(&format!("{}TOKEN=hunter2abc", "x ".repeat(80))).chars().count() <= MAX_TURN);
        assert!(run_id("glpat-abcdefghijklmnop").starts_with("s-"));
    }

    #[test]
    fn foreign_run_ids_become_ours() {
        for plain in ["r-1", "20260101-abc", "a.b_c"] {
            assert_eq!(run_id(plain), plain);
        }
        for odd in ["R-1", "", "-x", "a..b", "a.lock", "../x", &"a".repeat(65), "späť"] {
            let id = run_id(odd);
            assert!(id.starts_with("s-") && id.len() == 18 && run_id(&id) == id, "{odd} became {id}");
        }
    }
}
