//! Transfers between repositories by an ordinary git, with its progress read from what it prints.
//!
//! Where a person watches, git's stderr is a pipe. Progress lines become counts; every other line is passed on to the terminal. Git
//! and ssh ask for passwords on the terminal itself, so questions still reach the person.

use std::io::{Read, Write, stderr};
use std::process::{Command, Stdio};

use super::missing;
use crate::error::{IoContext, Result};
use crate::sys::progress::{Amount, Progress, Stage};

/// The names of git's counts, and the stages that they belong to.
const COUNTED: [(&str, Stage); 8] = [
    ("Enumerating objects", Stage::Preparing),
    ("Counting objects", Stage::Preparing),
    ("Compressing objects", Stage::Preparing),
    ("Writing objects", Stage::Transferring),
    ("Receiving objects", Stage::Transferring),
    ("Resolving deltas", Stage::Verifying),
    ("Checking connectivity", Stage::Verifying),
    ("Checking objects", Stage::Verifying),
];

/// Lines about the transfer that are of no use to a person who sees the progress.
const DROPPED: [&str; 2] = ["Delta compression using", "Total "];

/// Runs a `git fetch` or `git push`, and reports its progress. Returns what it printed, and whether it succeeded. Where `progress`
/// has no counters, git shows no progress, and its messages go to stderr.
///
/// # Errors
/// When there is no git.
pub fn transfer(command: &mut Command, progress: &Progress) -> Result<(Vec<u8>, bool)> {
    if progress.read().is_none() {
        return super::run(command, None);
    }
    progress.begin(Stage::Connecting, Amount::UNKNOWN);
    command.env("GIT_PROGRESS_DELAY", "0").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(missing)?;
    let talk = child.stderr.take();
    let output = std::thread::scope(|scope| {
        if let Some(talk) = talk {
            scope.spawn(move || follow(talk, progress));
        }
        child.wait_with_output()
    });
    let output = output.at("waiting for", "git")?;
    Ok((output.stdout, output.status.success()))
}

/// Reads git's stderr to its end.
fn follow(mut talk: impl Read, progress: &Progress) {
    let (mut line, mut piece) = (Vec::new(), [0; 4096]);
    // A pipe that cannot be read has no more to say; git's exit code shows a failure.
    while let Ok(length @ 1..) = talk.read(&mut piece) {
        for byte in &piece[..length] {
            match byte {
                b'\r' | b'\n' => take(&std::mem::take(&mut line), progress),
                byte => line.push(*byte),
            }
        }
    }
    take(&line, progress);
}

/// Counts a line of progress, or passes another line on.
fn take(line: &[u8], progress: &Progress) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if let Some((stage, done, total)) = counted(text) {
        progress.begin(stage, Amount::items(total));
        progress.add(done, 0);
    } else if !text.is_empty() && !DROPPED.iter().any(|start| without_origin(text).starts_with(start)) {
        let shown = crate::model::text::printable(text);
        // If stderr is closed, no reader is left. The line of progress is on this line of the terminal.
        let _ = writeln!(stderr(), "\r\x1b[K{shown}");
    }
}

/// Returns a line without the mark of one that the other side has sent.
fn without_origin(line: &str) -> &str {
    line.strip_prefix("remote: ").unwrap_or(line).trim_start()
}

/// Parses a line of progress: its stage, what is done, and the total, which is 0 where git does not know it.
fn counted(line: &str) -> Option<(Stage, u64, u64)> {
    let (name, counts) = without_origin(line).split_once(": ")?;
    let (_, stage) = COUNTED.into_iter().find(|(known, _)| *known == name)?;
    let number = |text: &str| {
        let digits = text.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    match counts.split_once('(').and_then(|(_, fraction)| fraction.split_once('/')) {
        Some((done, total)) => Some((stage, number(done)?, number(total)?)),
        None => Some((stage, number(counts)?, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_of_git_is_counted_and_other_lines_are_not() {
        for (line, expected) in [
            ("Receiving objects:  45% (450/1000), 1.21 MiB | 300.00 KiB/s", Some((Stage::Transferring, 450, 1000))),
            ("Writing objects: 100% (11/11), 2.0 KiB | 2.0 MiB/s, done.", Some((Stage::Transferring, 11, 11))),
            ("remote: Counting objects:   9% (1/11)", Some((Stage::Preparing, 1, 11))),
            ("Enumerating objects: 11, done.", Some((Stage::Preparing, 11, 0))),
            ("Resolving deltas:   0% (0/5)", Some((Stage::Verifying, 0, 5))),
            ("remote: Permission denied", None),
            ("fatal: could not read Username for 'https://example.com': terminal prompts disabled", None),
            ("Receiving objects: none", None),
            ("", None),
        ] {
            assert_eq!(counted(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_end_at_returns_and_newlines() {
        let progress = Progress::counted();
        follow(
            &b"Counting objects: 50% (1/2)\rWriting objects:  10% (1/10)\rWriting objects:  70% (7/10)"[..],
            &progress,
        );
        let reading = progress.read().unwrap();
        assert_eq!(
            (reading.stage, reading.done, reading.total),
            (Stage::Transferring, Amount::items(7), Amount::items(10))
        );
    }
}
