//! Printing: data to stdout, talk to stderr, colours on a terminal only.

use std::io::{ErrorKind, IsTerminal, Write, stderr, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use clap::ValueEnum;
use serde::Serialize;
use signal_hook::consts::SIGINT;

use super::progress;
use super::stop::OpenQuestion;
use crate::checkpoint::catalog::diff::MAX_COUNTED_FILES;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::line_counts::LineCounts;
use crate::model::text::{count, git_quoted, printable, printable_lines};
use crate::protocol::{FailedVerb, StatBlock, VerbError};
use crate::sys::terminal::{self, forget_input};

/// Prints data. A closed pipe ends the program quietly, because its reader wants no more.
///
/// # Errors
/// Other I/O errors of stdout.
pub(super) fn data(text: &str) -> Result<()> {
    let _hidden = progress::hide();
    match stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.at("writing", "stdout"),
    }
}

/// Returns a path on one line of talk or text.
pub(super) fn path(path: &Path) -> String {
    git_quoted(path.as_os_str().as_bytes())
}

/// Prints a value as one JSON document, its fields in the order of the alphabet.
///
/// # Errors
/// As [`data`].
pub(super) fn json(value: &impl Serialize) -> Result<()> {
    json_as_declared(&serde_json::to_value(value).map_err(unwritable)?)
}

/// Prints a value as one JSON document, its fields in the order of their declaration.
///
/// # Errors
/// As [`data`].
pub(super) fn json_as_declared(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(unwritable)?;
    data(&format!("{text}\n"))
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// As [`data`].
pub(super) fn line(value: &impl Serialize) -> Result<()> {
    data(&format!("{}\n", serde_json::to_string(value).map_err(unwritable)?))
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(Code::Internal, "the data could not be written as JSON").caused_by(error)
}

/// Prints an error to stderr, or as JSON to stdout when data is asked for as JSON.
pub(super) fn error(error: &Error, as_json: bool) {
    if as_json {
        let (code, message) = (error.code().into(), error.text());
        let error = VerbError { code, message, candidates: error.candidate_list().to_vec() };
        // The exit code shows the failure even without a reader.
        let _ = json(&FailedVerb { error });
        return;
    }
    say(&format!("piton: {}", error.text()));
}

/// Prints a warning to stderr.
pub(super) fn warning(text: &str) {
    say(&format!("piton: warning: {text}"));
}

/// Warns that tidying up failed; what was done stands, and the next command tidies up again.
pub(super) fn settled(outcome: Result<()>) {
    if let Err(error) = outcome {
        warning(&format!("the command succeeded, but the cleanup after it failed: {}", error.text()));
    }
}

/// Prints talk to stderr, harmlessly.
pub(super) fn say(text: &str) {
    let _hidden = progress::hide();
    // If stderr is closed, no reader is left.
    let _ = writeln!(stderr(), "{}", printable_lines(text));
}

/// Prints talk that is neither a result nor a warning, unless `--quiet` was said.
pub(super) fn note(text: &str) {
    if QUIET.get() != Some(&true) {
        say(text);
    }
}

/// The choice of `--quiet`.
static QUIET: OnceLock<bool> = OnceLock::new();

/// Sets whether notes are left out. Only the first call counts.
pub(super) fn use_quiet(is_quiet: bool) {
    // A second call has nothing to add.
    let _ = QUIET.set(is_quiet);
}

/// Chooses when colours are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ColourUse {
    // A doc comment here would make the help of every verb long.
    #[default]
    Auto,
    Always,
    Never,
}

/// The choice on the command line.
static COLOURS: OnceLock<ColourUse> = OnceLock::new();

/// Sets when colours are printed. Only the first call counts.
pub(super) fn use_colours(when: ColourUse) {
    // A second call has nothing to add.
    let _ = COLOURS.set(when);
}

/// Returns true if stdout takes colours.
pub(super) fn coloured() -> bool {
    match COLOURS.get().copied().unwrap_or_default() {
        ColourUse::Auto => is_colour_terminal(),
        ColourUse::Always => true,
        ColourUse::Never => false,
    }
}

fn is_colour_terminal() -> bool {
    stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Bold text, on a terminal.
pub(super) fn bold(text: &str) -> String {
    if coloured() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// Faint text, on a terminal.
pub(super) fn faint(text: &str) -> String {
    if coloured() { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
}

/// Returns a diff's lines in colours, on a terminal.
pub(super) fn patch(text: &str) -> String {
    if !coloured() {
        return text.to_owned();
    }
    let colour = |line: &str| match line.as_bytes().first() {
        Some(b'+') if !line.starts_with("+++") => format!("\x1b[32m{line}\x1b[0m\n"),
        Some(b'-') if !line.starts_with("---") => format!("\x1b[31m{line}\x1b[0m\n"),
        Some(b'@') => format!("\x1b[36m{line}\x1b[0m\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(colour).collect()
}

/// Returns a bar of added and removed lines after a blank, at most `room` columns wide; nothing without room or lines.
pub(super) fn bar(lines: LineCounts, room: usize) -> String {
    let LineCounts { plus, minus } = lines;
    let total = plus.saturating_add(minus);
    let columns = (room as u64).min(total);
    if columns == 0 {
        return String::new();
    }
    // Each side that is there is seen.
    let share = (u128::from(plus) * u128::from(columns) / u128::from(total)) as u64;
    let least = u64::from(plus > 0 && columns > 1);
    let most = columns - u64::from(minus > 0 && columns > 1);
    let added = share.clamp(least, most.max(least));
    let signs = |sign: &str, number: u64| sign.repeat(usize::try_from(number).unwrap_or_default());
    let (added, removed) = (signs("+", added), signs("-", columns - added));
    if coloured() { format!(" \x1b[32m{added}\x1b[31m{removed}\x1b[0m") } else { format!(" {added}{removed}") }
}

/// Prints data that may be longer than the screen: on a terminal by the person's pager, `PAGER` or `less`.
///
/// # Errors
/// As [`data`].
pub(super) fn pages(text: &str) -> Result<()> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let is_off = pager.trim().is_empty() || pager.trim() == "cat";
    if is_off || is_dumb || !stdout().is_terminal() || !is_longer_than_screen(text) {
        return data(text);
    }
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("exec {pager}")]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    // Ctrl-C is the pager's. Without a handler, it would end this program and leave a pager that no shell waits for.
    let _ = signal_hook::flag::register(SIGINT, Arc::default());
    let Ok(mut child) = command.spawn() else { return data(text) };
    if let Some(mut input) = child.stdin.take() {
        // The person may have seen enough.
        let _ = input.write_all(text.as_bytes());
    }
    match child.wait() {
        // The shell has no such program.
        Ok(status) if status.code() == Some(NO_PROGRAM) => data(text),
        _ => Ok(()),
    }
}

/// The exit code of a shell that does not find a program.
const NO_PROGRAM: i32 = 127;

fn is_longer_than_screen(text: &str) -> bool {
    terminal::rows(&stdout()).is_none_or(|rows| text.lines().count() >= rows)
}

/// Text of a file or patch as a terminal may show it: its control characters but tabs and newlines escaped. Into a pipe
/// or file it goes as it is.
pub(super) fn harmless(text: &str) -> String {
    if !stdout().is_terminal() {
        return text.to_owned();
    }
    printable_lines(text)
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    Yes,
    No,
    /// There is no person to ask.
    Nobody,
}

/// Returns true if there is a person to ask.
pub(super) fn has_person() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks on the terminal, and returns the answer; `None` where the person ends the input.
pub(super) fn answer(question: &str) -> Option<String> {
    let (_hidden, _question) = (progress::hide(), OpenQuestion::open());
    // If stderr is closed, no person can be asked.
    write!(stderr(), "{question}").ok()?;
    let mut line = String::new();
    let read = stdin().read_line(&mut line);
    read.is_ok_and(|length| length > 0).then(|| line.trim().to_owned())
}

/// The answer to a question about a part or all of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartConsent {
    Part,
    All,
    No,
    /// There is no person to ask.
    Nobody,
}

/// Asks on the terminal; no is the default.
pub(super) fn ask(question: &str) -> Consent {
    match answer_of_person(&format!("{question} [y/N] ")).as_deref() {
        None => Consent::Nobody,
        Some("y" | "yes") => Consent::Yes,
        Some(_) => Consent::No,
    }
}

/// Asks on the terminal whether to do a part (`y`), all (`a`) or nothing; nothing is the default.
pub(super) fn ask_part(question: &str) -> PartConsent {
    match answer_of_person(question).as_deref() {
        None => PartConsent::Nobody,
        Some("y" | "yes") => PartConsent::Part,
        Some("a" | "all") => PartConsent::All,
        Some(_) => PartConsent::No,
    }
}

/// Returns a person's answer in lower case, empty where the input ends; `None` if there is no person to ask. Keys that
/// were pressed before the question do not answer it.
fn answer_of_person(question: &str) -> Option<String> {
    let ask = || match forget_input(stdin().as_fd()) {
        Ok(()) => answer(question).unwrap_or_default().to_lowercase(),
        Err(_) => String::new(), // the terminal is gone
    };
    has_person().then(ask)
}

/// Returns a time for people, in the local zone, to the minute.
pub(super) fn local_time(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        // The time comes from a record that may be foreign, so it is made printable.
        Err(_) => printable(rfc3339),
    }
}

/// A line of the record of mishaps, which begins with its time.
pub(super) fn mishap(line: &str) -> String {
    match line.split_once(' ') {
        Some((time, text)) => format!("{} {}", local_time(time), printable(text)),
        None => printable(line),
    }
}

/// Renders files and lines.
pub(super) fn stat_text(stat: &StatBlock) -> String {
    let cut = if stat.cut { format!(" in the first {MAX_COUNTED_FILES}") } else { String::new() };
    format!("{}, +{}/-{}{cut}", count(stat.files, "file"), stat.plus, stat.minus)
}
