//! The process of the client that runs a hook: the nearest one above the hook that is no shell with a command of its own.

use crate::sys::processes::ProcessFacts;

/// The shells through which clients run their hooks.
const SHELLS: [&str; 8] = ["sh", "dash", "bash", "zsh", "fish", "ksh", "ash", "busybox"];

/// The processes that take over what others have left: the first process of a system, and those made for a container's first one.
const KEEPERS: [&str; 11] = [
    "init",
    "systemd",
    "tini",
    "tini-static",
    "docker-init",
    "podman-init",
    "catatonit",
    "dumb-init",
    "s6-svscan",
    "runsvdir",
    "supervisord",
];

/// The most processes that are looked at.
const DEEPEST: usize = 16;

/// Options of a shell that a word follows which is no script.
const VALUED: [&str; 6] = ["--rcfile", "--init-file", "--init-command", "-C", "-O", "-o"];

/// Returns the number of the process of the client that has run the process `from`; `None` where it cannot be told. `look` returns
/// the facts of a process.
pub fn client_above(from: u32, look: &dyn Fn(u32) -> Option<ProcessFacts>) -> Option<u32> {
    let mut pid = look(from)?.parent;
    for _ in 0..DEEPEST {
        if pid == 0 {
            return None;
        }
        // In a container the client may be the first process. A keeper of orphans is no client.
        let facts = look(pid)?;
        if KEEPERS.contains(&program(&facts)) {
            return None;
        }
        if !is_carrier(&facts) {
            return Some(pid);
        }
        pid = facts.parent;
    }
    None
}

/// Returns the name of the program that a process runs.
fn program(facts: &ProcessFacts) -> &str {
    let first = facts.words.first().map(String::as_str).unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default()
}

/// Returns true for a shell that runs one command or a script. Any other shell is a person's.
fn is_carrier(facts: &ProcessFacts) -> bool {
    if !SHELLS.contains(&program(facts)) {
        return false;
    }
    let mut words = facts.words.iter().skip(1);
    while let Some(word) = words.next() {
        if VALUED.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') || (!word.starts_with("--") && word.contains('c')) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the client above the last process of a chain that begins with the first process; each is a command line.
    fn check(chain: &[&str], expected: Option<u32>) {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        let look = |pid: u32| {
            let words = chain.get(pid.checked_sub(1)? as usize).map(words)?;
            Some(ProcessFacts { parent: pid - 1, words })
        };
        assert_eq!(client_above(chain.len() as u32, &look), expected, "{chain:?}");
    }

    #[test]
    fn the_client_is_found_behind_shells() {
        let hook = "/bin/piton hook claude-code PreToolUse";
        check(&["init", "-bash", "claude", "/bin/sh -c piton", hook], Some(3));
        check(&["init", "bash", "node /opt/gemini.js", "bash -c piton", "sh -c piton", hook], Some(3));
        check(&["init", "bash", "codex", "bash --norc --noprofile -lc piton", hook], Some(3));
        check(&["init", "bash", "node /opt/cline", "/bin/sh /home/u/.cline/hooks/PreToolUse", hook], Some(3));
        check(&["init", "bash", "opencode", hook], Some(3));
        // A person has typed it, and a person's script has run it.
        check(&["init", "sshd", "-bash", hook], Some(3));
        check(&["init", "sshd", "-zsh", "bash ./work.sh", hook], Some(3));
        check(&["init", "sshd", "bash --login", hook], Some(3));
        check(&["init", "code", "bash --init-file /opt/vscode.sh", hook], Some(3));
    }

    #[test]
    fn the_first_process_of_a_container_may_be_the_client() {
        let hook = "piton hook claude-code PreToolUse";
        check(&["claude", hook], Some(1));
        check(&["node /usr/local/bin/claude", "/bin/sh -c piton", hook], Some(1));
        check(&["bash", hook], Some(1));
        check(&["bash -c claude", "claude", "sh -c piton", hook], Some(2));
        check(&["/usr/bin/tini -- claude", "claude", hook], Some(2));
    }

    #[test]
    fn an_orphan_has_no_client() {
        let hook = "piton hook codex PreToolUse";
        check(&["/sbin/init", "/bin/sh -c piton", hook], None);
        check(&["init", "/usr/lib/systemd/systemd --user", "/bin/sh -c piton", hook], None);
        check(&["/sbin/docker-init -- claude", "/bin/sh -c piton", hook], None);
        check(&["/usr/bin/tini -- claude", hook], None);
        check(&["sh -c piton", hook], None);
        check(&[hook], None);
        let deep: Vec<&str> = std::iter::repeat_n("sh -c x", 40).chain([hook]).collect();
        check(&deep, None);
        assert_eq!(client_above(7, &|_| None), None);
    }
}
