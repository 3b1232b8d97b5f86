//! The process of the client that has called this one, and the question if it is still there.
//!
//! Clients call a hook by a shell (`sh -c …`, or a script), which is passed over. A number alone does not name a process, since the
//! system gives it away again, so a mark has the time of the start too.

use std::path::Path;

use super::linux::process::{ProcessFacts, facts};

/// The most shells that are passed over.
const MOST: usize = 8;

/// The shells by which clients call hooks.
const SHELLS: &[&str] = &["ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"];

/// The first processes of a system and of a user. They take over the children of a client that has ended.
const FIRST: &[&str] = &["init", "launchd", "systemd", "tini"];

/// A process, told apart from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessMark {
    /// The number of the process.
    pub pid: u32,
    /// The time of its start, in the system's own unit since the system started.
    pub started: u64,
}

impl ProcessMark {
    /// Returns the mark of the process that has a number now, if there is one.
    pub fn of(pid: u32) -> Option<ProcessMark> {
        let facts = facts(pid).filter(|facts| !facts.has_ended)?;
        Some(ProcessMark { pid, started: facts.started })
    }
}

/// Returns the client that has called this process: the nearest one above it that is no shell with a command or script. `None` if the
/// client has ended.
pub fn client_process() -> Option<ProcessMark> {
    client_from(std::os::unix::process::parent_id())
}

/// Returns the first process from `pid` upwards that is no shell with a command or script.
fn client_from(mut pid: u32) -> Option<ProcessMark> {
    for _ in 0..MOST {
        let facts = facts(pid).filter(|facts| !facts.has_ended)?;
        if pid <= 1 || FIRST.contains(&name(&facts)) {
            return None;
        }
        if !runs_a_command(&facts) {
            return Some(ProcessMark { pid, started: facts.started });
        }
        pid = facts.parent;
    }
    None
}

/// Returns true if the process of a mark is still there.
pub fn is_alive(mark: &ProcessMark) -> bool {
    ProcessMark::of(mark.pid).as_ref() == Some(mark)
}

/// Returns the name by which a process was called, without its directory and without the mark of a login shell.
fn name(facts: &ProcessFacts) -> &str {
    let called = facts.arguments.first().map(String::as_str).unwrap_or_default();
    let file = Path::new(called).file_name().and_then(|file| file.to_str()).unwrap_or(called);
    file.strip_prefix('-').unwrap_or(file)
}

/// Returns true for a shell that runs a command or a script, and no prompt.
fn runs_a_command(facts: &ProcessFacts) -> bool {
    let mut rest = facts.arguments.iter().skip(1);
    let is_given = |word: &String| !word.starts_with('-') || (!word.starts_with("--") && word.contains('c'));
    SHELLS.contains(&name(facts)) && rest.any(is_given)
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::process::{Command, Stdio};

    use super::*;

    fn called(words: &[&str]) -> ProcessFacts {
        let arguments = words.iter().map(|word| (*word).to_owned()).collect();
        ProcessFacts { parent: 1, started: 0, has_ended: false, arguments }
    }

    #[test]
    fn a_shell_with_a_command_is_passed_over_and_a_prompt_is_not() {
        for words in
            [&["sh", "-c", "piton hook"][..], &["/bin/bash", "-lc", "x"], &["bash", "/tmp/hook"], &["zsh", "-fc"]]
        {
            assert!(runs_a_command(&called(words)), "{words:?}");
        }
        for words in
            [&["sh"][..], &["-bash"], &["bash", "--noprofile", "-i"], &["claude", "-c"], &["node", "cli.js"], &[]]
        {
            assert!(!runs_a_command(&called(words)), "{words:?}");
        }
        assert_eq!(name(&called(&["-/bin/zsh"])), "zsh");
        assert_eq!(name(&called(&["/lib/systemd/systemd", "--user"])), "systemd");
    }

    #[test]
    fn a_process_is_alive_until_it_has_ended_and_a_later_one_is_another() {
        let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mark = ProcessMark::of(process.id()).unwrap();
        assert!(is_alive(&mark));
        assert!(!is_alive(&ProcessMark { started: mark.started + 1, ..mark }));
        // It has ended, and nobody has waited for it yet.
        process.kill().unwrap();
        rustix::process::waitid(
            rustix::process::WaitId::Pid(rustix::process::Pid::from_child(&process)),
            rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert!(!is_alive(&mark));
        process.wait().unwrap();
        assert!(!is_alive(&mark));
    }

    #[test]
    fn the_client_is_found_above_the_shells_of_its_hook() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sh -c 'echo $PPID; echo $$; read word; :'; :"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = std::io::BufReader::new(shell.stdout.take().unwrap()).lines();
        let shells: Vec<u32> = lines.take(2).map(|line| line.unwrap().parse().unwrap()).collect();
        let own = ProcessMark::of(std::process::id());
        assert_eq!(shells.iter().map(|pid| client_from(*pid)).collect::<Vec<_>>(), [own, own]);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(client_from(1), None);
    }
}
