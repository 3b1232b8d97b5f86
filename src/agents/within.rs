//! The session of an agent in which a process was started: such a session may not do what it could not undo.

use std::path::{Path, PathBuf};

use super::Client;
use super::clients::profile;

/// The environment variable that piton sets in the commands of a session, if the client's hooks can set variables.
pub const SESSION: &str = "PITON_SESSION";

/// The environment variable in which several agents put their name for the programs that they run.
const COMMON: &str = "AI_AGENT";

/// A process as the system lists it.
#[derive(Clone, Debug, Default)]
pub struct ListedProcess {
    /// The words that it was called with.
    pub words: Vec<String>,
    /// The file of its program; `None` where it may not be seen.
    pub program: Option<PathBuf>,
}

/// Returns true if a process was started in the session of an agent. `is_set` says whether it has a variable that is not empty.
/// `around` are the processes above it, and the leader of its session.
///
/// A process with an empty environment, outside of the client's process tree and session, is not recognized.
pub fn is_in_session(is_set: &dyn Fn(&str) -> bool, mut around: impl Iterator<Item = ListedProcess>) -> bool {
    let marks = || Client::ALL.iter().flat_map(|client| profile(*client).marks);
    let is_client = |process: &ListedProcess| {
        let runs = |client: &Client| client.runs_as(&process.words, process.program.as_deref());
        !is_editor(process) && Client::ALL.iter().any(runs)
    };
    is_set(SESSION) || is_set(COMMON) || marks().any(|mark| is_set(mark)) || around.any(|process| is_client(&process))
}

/// Returns true for the editor of Cursor: a person's terminal is in it too.
fn is_editor(process: &ListedProcess) -> bool {
    let name = |path: &Path| path.file_name().is_some_and(|name| name == "cursor" || name == "Cursor");
    process.words.first().is_some_and(|first| name(Path::new(first))) || process.program.as_deref().is_some_and(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(line: &str) -> ListedProcess {
        ListedProcess { words: line.split(' ').map(str::to_owned).collect(), program: None }
    }

    #[test]
    fn an_agents_session_shows_by_a_variable_or_by_a_process() {
        let none = |_: &str| false;
        let around = |lines: &[&str]| lines.iter().map(|line| listed(line)).collect::<Vec<_>>().into_iter();
        for mark in
            ["PITON_SESSION", "AI_AGENT", "CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "CURSOR_AGENT", "CRUSH"]
        {
            assert!(is_in_session(&|name| name == mark, around(&[])), "{mark}");
        }
        for line in [
            "claude",
            "/usr/bin/claude --resume",
            "node /usr/local/bin/gemini",
            "node /x/bin/qwen -p x",
            "codex exec x",
        ] {
            assert!(is_in_session(&none, around(&["bash -c ls", line, "bash"])), "{line}");
        }
        // A person's own tools, also those that only name a client.
        let others = [
            "bash",
            "tmux new",
            "node server.js",
            "vim claude.md",
            "ssh host",
            "python3 tests.py",
            "cron",
            "/usr/share/cursor/cursor",
        ];
        for line in others {
            assert!(!is_in_session(&none, around(&[line])), "{line}");
        }
        assert!(!is_in_session(&|name| name == "CLAUDE_PROJECT_DIR", around(&[])));
    }
}
