//! The commands of an agent that a hook has announced and whose shell has not started yet: one small file for each.
//!
//! Claude Code runs the lines that a person types in its terminal by the same shell as the commands of its agent, with the same
//! environment, and calls no hook before them. So a shell that starts without an announced command runs a person's line.
//!
//! *Invariant:* while the call of a command is open and its shell has not started, a shell counts as the agent's.

use std::ffi::OsStr;
use std::fs::{File, read, read_dir, remove_dir_all, remove_file, write};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::agents::{Act, Event, EventKind};
use crate::error::{IoContext, Result};
use crate::sys::fs::durable::create_private_dir;

/// The directory of the files, in piton's home. Each session has one in it.
const DIR: &str = "announced";

/// The longest id of a session or of a call.
const MAX_ID: usize = 128;

/// The end of a conversation's file that is read for the results of calls, in bytes.
const TAIL: u64 = 1 << 20;

/// Notes an event of a client whose shells read a line of piton's before each command.
///
/// # Errors
/// I/O errors of the file.
pub(super) fn note(home: &Path, event: &Event) -> Result<()> {
    match &event.kind {
        EventKind::Before { action, act } if runs_command(act) => announce(home, event, action.as_deref()),
        EventKind::After { .. } => {
            withdraw(home, event);
            Ok(())
        }
        EventKind::SessionStart | EventKind::SessionEnd => {
            let dir = event.session.as_deref().and_then(|session| session_dir(home, session));
            match dir.map(|dir| (remove_dir_all(&dir), dir)) {
                Some((Err(error), dir)) if error.kind() != ErrorKind::NotFound => Err(error).at("removing", &dir),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Withdraws the call of an event: it has ended, or does not run.
pub(super) fn withdraw(home: &Path, event: &Event) {
    let action = match &event.kind {
        EventKind::Before { action, .. } | EventKind::After { action, .. } => action.as_deref(),
        _ => None,
    };
    if let Some(file) = file_of(home, event, action) {
        // Its shell has taken it, mostly.
        let _ = remove_file(file);
    }
}

/// Takes an announced command of a session, for a shell that starts; false if there is none, and the shell is a person's.
pub(super) fn take(home: &Path, session: &str) -> bool {
    let listing = session_dir(home, session).and_then(|dir| read_dir(dir).ok()); // nothing was announced yet
    let open = listing.into_iter().flatten().flatten().map(|entry| entry.path());
    open.into_iter().any(|file| {
        // Another shell has taken it.
        let Ok(transcript) = read(&file) else { return false };
        let id = file.file_name().unwrap_or_default();
        let is_over = has_result(Path::new(OsStr::from_bytes(&transcript)), id.as_bytes());
        // A shell in a sandbox cannot remove it. Then it is there until the call ends.
        let is_taken = remove_file(&file).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        !is_over && !is_taken
    })
}

fn announce(home: &Path, event: &Event, action: Option<&str>) -> Result<()> {
    let Some(file) = file_of(home, event, action) else { return Ok(()) };
    let transcript = event.transcript.as_deref().unwrap_or(Path::new("")).as_os_str().as_bytes();
    let written = write(&file, transcript).or_else(|error| match (error.kind(), file.parent()) {
        (ErrorKind::NotFound, Some(dir)) => {
            create_private_dir(dir).map_err(|_| error)?;
            write(&file, transcript)
        }
        _ => Err(error),
    });
    written.at("writing", &file)
}

/// Returns true for a call that starts a shell.
fn runs_command(act: &Act) -> bool {
    match act {
        Act::Shell { .. } => true,
        Act::Tool { input, .. } => input.get("command").is_some_and(serde_json::Value::is_string),
    }
}

/// Returns true if the end of a conversation has the result of a call: the person refused it, or it has ended.
fn has_result(transcript: &Path, id: &[u8]) -> bool {
    let tail = || {
        let mut file = File::open(transcript)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        Ok::<_, std::io::Error>(tail)
    };
    let result = [b"\"tool_use_id\":\"", id, b"\""].concat();
    // Without the file, no call is known to be over.
    tail().is_ok_and(|tail| memchr::memmem::find(&tail, &result).is_some())
}

fn file_of(home: &Path, event: &Event, action: Option<&str>) -> Option<PathBuf> {
    Some(session_dir(home, event.session.as_deref()?)?.join(action.filter(|id| is_name(id))?))
}

fn session_dir(home: &Path, session: &str) -> Option<PathBuf> {
    is_name(session).then(|| home.join(DIR).join(session))
}

/// Returns true for an id that can be the name of a file.
fn is_name(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Client;

    fn event(name: &str, session: &str, id: &str, transcript: &Path) -> Event {
        let payload = format!(
            r#"{{"hook_event_name":"{name}","session_id":"{session}","cwd":"/w","transcript_path":"{}","tool_name":"Bash","tool_input":{{"command":"rm a"}},"tool_use_id":"{id}"}}"#,
            transcript.display()
        );
        Client::ClaudeCode.parse(name, payload.as_bytes()).unwrap()
    }

    #[test]
    fn a_shell_is_the_agents_if_its_command_was_announced() {
        let home = tempfile::tempdir().unwrap();
        let (home, transcript) = (home.path(), home.path().join("t.jsonl"));
        let note = |name: &str, session: &str, id: &str| note(home, &event(name, session, id, &transcript)).unwrap();
        assert!(!take(home, "s"), "nothing was announced");
        note("PreToolUse", "s", "u1");
        assert!(!take(home, "other"));
        assert!(take(home, "s") && !take(home, "s"), "one shell is the agent's, and the next is not");
        // Calls at the same time.
        note("PreToolUse", "s", "u2");
        note("PreToolUse", "s", "u3");
        assert!(take(home, "s") && take(home, "s") && !take(home, "s"));
        // A call that ended without a shell, and one that does not run.
        note("PreToolUse", "s", "u4");
        note("PostToolUse", "s", "u4");
        note("PreToolUse", "s", "u5");
        withdraw(home, &event("PreToolUse", "s", "u5", &transcript));
        assert!(!take(home, "s"));
        // The person refused it: no event reports that, but the conversation has a result.
        note("PreToolUse", "s", "u6");
        write(&transcript, r#"{"content":[{"type":"tool_use","id":"u6","name":"Bash"}]}"#).unwrap();
        assert!(take(home, "s"));
        note("PreToolUse", "s", "u6");
        write(&transcript, r#"{"content":[{"tool_use_id":"u6","type":"tool_result","is_error":true}]}"#).unwrap();
        assert!(!take(home, "s"));
        note("PreToolUse", "s", "u7");
        note("SessionEnd", "s", "u7");
        assert!(!take(home, "s") && !home.join(DIR).join("s").exists());
    }

    #[test]
    fn an_id_is_no_path() {
        let home = tempfile::tempdir().unwrap();
        for (session, id) in [("..", "u"), ("s", "../u"), ("", "u"), ("s", ""), ("a/b", "u")] {
            note(home.path(), &event("PreToolUse", session, id, Path::new("/t"))).unwrap();
            assert!(!take(home.path(), session));
        }
        assert_eq!(read_dir(home.path()).unwrap().count(), 0);
    }
}
