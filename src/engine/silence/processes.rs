//! The processes of clients that are at work in a workspace.

use std::collections::BTreeMap;
use std::path::Path;

use crate::agents::Client;
use crate::sys::running::{self, RunningProcess, file_name};

/// The shells by which clients run commands.
const SHELLS: &[&str] = &["bash", "dash", "fish", "ksh", "sh", "zsh"];

/// The processes of one client.
#[derive(Default)]
struct ClientProcesses {
    /// The ones in the workspace.
    here: Vec<RunningProcess>,
    /// True if there is one elsewhere, or one whose directory cannot be seen.
    is_elsewhere: bool,
    /// The starts of the commands that those in the workspace have at work.
    commands: Vec<i64>,
}

/// The clients that are at work.
pub(super) struct AtWork(BTreeMap<&'static str, ClientProcesses>);

impl AtWork {
    /// Looks for the processes of all clients. `belongs` tells whether a directory belongs to the workspace.
    pub(super) fn find(belongs: &dyn Fn(&Path) -> bool) -> AtWork {
        let client_of = |words: &[String], program: Option<&Path>| {
            Client::ALL.into_iter().find(|client| client.runs_as(words, program))
        };
        let (mut found, mut commands): (BTreeMap<&'static str, ClientProcesses>, _) = (BTreeMap::new(), Vec::new());
        let wanted =
            |words: &[String], program: Option<&Path>| is_command(words) || client_of(words, program).is_some();
        for process in running::find(&wanted) {
            if is_command(&process.words) {
                commands.push((process.parent, process.started));
            }
            let Some(client) = client_of(&process.words, process.program.as_deref()) else { continue };
            let of_client = found.entry(client.name()).or_default();
            match process.dir.as_deref().is_some_and(belongs) {
                true => of_client.here.push(process),
                false => of_client.is_elsewhere = true,
            }
        }
        for of_client in found.values_mut() {
            let is_own = |parent: Option<u32>| of_client.here.iter().any(|client| parent == Some(client.pid));
            let own = commands.iter().filter(|(parent, _)| is_own(*parent));
            of_client.commands = own.map(|(_, started)| *started).collect();
        }
        AtWork(found)
    }

    /// Returns the start of a client's oldest process here. One that another has started is the younger of both, and counts once.
    pub(super) fn began(&self, client: Client) -> Option<i64> {
        self.0.get(client.name())?.here.iter().map(|process| process.started).min()
    }

    /// Returns true if no process of a client is elsewhere.
    pub(super) fn is_alone(&self, client: Client) -> bool {
        self.0.get(client.name()).is_some_and(|found| !found.is_elsewhere)
    }

    /// Returns the starts of a client's commands.
    pub(super) fn commands(&self, client: Client) -> Vec<i64> {
        self.0.get(client.name()).map(|found| found.commands.clone()).unwrap_or_default()
    }
}

/// Returns true for a shell that runs a command, and no hook of piton's.
fn is_command(words: &[String]) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    let has_command = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let is_own = |word: &String| word.contains("piton");
    SHELLS.contains(&file_name(name).trim_start_matches('-'))
        && rest.iter().any(has_command)
        && !rest.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_command_is_a_shell_with_a_line_to_run_that_is_no_hook() {
        let is = |line: &[&str]| is_command(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(is(&["/bin/bash", "-lc", "make"]) && is(&["sh", "-c", "rm a"]));
        assert!(!is(&["bash"]) && !is(&["bash", "--rcfile", "x"]) && !is(&["node", "-c", "x"]));
        assert!(!is(&["sh", "-c", "'/usr/bin/piton' hook claude-code PreToolUse || :"]));
    }

    #[test]
    fn a_client_is_found_where_it_works_with_the_command_that_it_runs() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().canonicalize().unwrap();
        // A shell that reads its lines has the name of a client.
        let mut command = Command::new("bash");
        command.arg0("crush").current_dir(&here).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = command.spawn().unwrap();
        let mut input = client.stdin.take().unwrap();
        let mut output = BufReader::new(client.stdout.take().unwrap());
        let mut say = |line: &str| {
            input.write_all(line.as_bytes()).unwrap();
            let mut said = String::new();
            output.read_line(&mut said).unwrap();
            said
        };
        let belongs = |dir: &Path| dir == here;
        assert_eq!(say("mkfifo end; echo ready\n"), "ready\n");
        let found = AtWork::find(&belongs);
        assert!(found.began(Client::Crush).is_some() && found.commands(Client::Crush).is_empty());
        assert_eq!(AtWork::find(&|_| false).began(Client::Crush), None);
        assert!(!AtWork::find(&|_| false).is_alone(Client::Crush));
        assert_eq!(say("sh -c 'echo runs; read word < end; :'\n"), "runs\n");
        let found = AtWork::find(&belongs);
        let commands = found.commands(Client::Crush);
        assert_eq!(commands.len(), 1, "{commands:?}");
        assert!(commands[0] >= found.began(Client::Crush).unwrap());
        std::fs::write(here.join("end"), "\n").unwrap();
        drop(input);
        client.wait().unwrap();
    }
}
