//! The verb `shell`, which the scripts of `hooks/shell/` call: a line before it runs, its end, and the end of the shell.
//!
//! A line is judged in this process. Only one that destroys something, or that cannot be seen into, is told to the engine.
//! A person's shell is a run of its own, and each of its lines is a turn.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGQUIT, SIGTSTP};
use signal_hook::iterator::Signals;

use super::announced;
use super::context::{Context, GlobalArgs};
use super::exit::Exit;
use super::judged_line::JudgedLine;
use super::print;
use super::protection::with_causes;
use super::talk::Talk;
use crate::agents::Client;
use crate::checkpoint::Home;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::unguarded::{self, UnguardedCommand};
use crate::error::{Code, Error, Result};
use crate::model::door::Door;
use crate::model::effect::{Confidence, Needs, Verdict};
use crate::model::policy::{OnFailure, Opaque};
use crate::model::text::{cut, printable};

use crate::protocol::{
    After, AfterReply, BeforeReply, Body, ErrorBody, Hello, HelloReply, OtherBlock, RunEnd, RunEndReply, ShellBefore,
    Turn, TurnReply, not_held_sentence,
};
use crate::shell::HookedShell;
use crate::shell::evaluated::evaluated_line;
use crate::sys::terminal;

/// The longest line that is read, in bytes.
const MAX_LINE: u64 = 8 << 20;

/// The longest wait for an answer, beside the time that the settings give a checkpoint.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest part of a line in the name of its turn, in characters.
const MAX_NAME: usize = 48;

/// The line in the name of a turn whose line the shell's history leaves out.
const UNSEEN: &str = "a line that is not in the history";

/// Tells the script that the engine was asked, and wants to know of the line's end.
const ASKED: u8 = 3;

/// Tells the script that the line is not to run.
const DENIED: u8 = 5;

/// The digit for a script that reads one: that the engine was not asked. No digit is no answer.
const NOT_ASKED: &str = "2";

/// The arguments of a call.
#[derive(Debug, Default)]
struct LineCall {
    /// The name of the shell's session; it begins with the name of the shell.
    session: String,
    /// The process id of the shell.
    pid: Option<u64>,
    /// The number of the line in its shell.
    line: u64,
    /// The working directory as the shell knows it.
    cwd: Option<PathBuf>,
    /// The line's exit code.
    exit: Option<i64>,
    /// True if the text may not be the line that runs.
    doubt: bool,
    /// The number of the line before, if nobody told of its end.
    open: Option<u64>,
    /// True if the shell runs the line whatever the answer is.
    cannot_cancel: bool,
    /// True if the answer is a digit on stdout.
    digit: bool,
    /// True for what a shell of an agent's run is told to do: it is a step of the run's own turn, and nobody is asked.
    is_step: bool,
    /// The client in whose terminal a person typed the line. It runs the line by `eval`, behind commands of its own.
    lines_of: Option<Client>,
    /// Definitions of aliases that occur in the line.
    aliases: Vec<String>,
}

/// Answers a script; never fails. The exit code is the answer.
pub(super) fn shell(arguments: &[String]) -> std::process::ExitCode {
    crate::sys::fs::durable::make_private();
    let Some((event, call)) = parsed(arguments) else {
        print::say("piton: only the scripts of `piton init SHELL` call `piton shell` (docs/SHELLS.md)");
        return Exit::Usage.into();
    };
    let done = match event {
        "before" => before(&call),
        "after" => after(&call).map(|()| 0),
        _ => end(&call).map(|()| 0),
    };
    let code = done.unwrap_or_else(|error| {
        print::say(&format!("piton: {}", error.text()));
        note(event, &error);
        0
    });
    answered(&call, code)
}

/// Gives the answer to the script.
fn answered(call: &LineCall, code: u8) -> std::process::ExitCode {
    if !call.digit {
        return code.into();
    }
    // A script that does not get it says so.
    let _ = match code {
        ASKED => print::data("1"),
        DENIED => print::data("5"),
        _ => print::data(NOT_ASKED),
    };
    Exit::Done.into()
}

/// Has a signal of the terminal answer that the line is not to run: whoever presses these keys wants it to stop.
fn stop_on_keys(call: &LineCall) {
    if call.cannot_cancel || !call.may_ask() {
        return;
    }
    let digit = call.digit;
    // Without it, the key ends piton, and the script says so.
    let Ok(mut signals) = Signals::new([SIGINT, SIGQUIT, SIGTSTP]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            if digit {
                // A shell that is gone runs no line.
                let _ = print::data("5");
            }
            std::process::exit(if digit { 0 } else { DENIED.into() });
        }
    });
}

fn parsed(arguments: &[String]) -> Option<(&str, LineCall)> {
    let (event, rest) = arguments.split_first()?;
    let mut call = LineCall::default();
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--doubt" => call.doubt = true,
            "--cannot-cancel" => call.cannot_cancel = true,
            "--digit" => call.digit = true,
            "--step" => call.is_step = true,
            valued => {
                let value = rest.next()?;
                match valued {
                    "--session" => call.session.clone_from(value),
                    "--pid" => call.pid = value.parse().ok(),
                    "--line" => call.line = value.parse().ok()?,
                    "--cwd" => call.cwd = Some(PathBuf::from(value)).filter(|path| path.is_absolute()),
                    "--open" => call.open = value.parse().ok(),
                    "--exit" => call.exit = value.parse().ok(),
                    "--alias" => call.aliases.push(value.clone()),
                    "--lines-of" => call.lines_of = Some(Client::named(value).ok()?), // another one is no call of a script
                    _ => return None,
                }
            }
        }
    }
    let is_known = matches!(event.as_str(), "before" | "after" | "end") && !call.session.is_empty();
    is_known.then_some((event.as_str(), call))
}

/// Keeps what went wrong for `piton status`.
fn note(event: &str, error: &Error) {
    let kept = Home::locate().and_then(|home| mishaps::note_once(&home, &format!("shell {event}: {}", error.text())));
    if let Err(error) = kept {
        tracing::warn!(%error, "could not record a mishap");
    }
}

impl LineCall {
    /// Returns the client's name: the shell's, or none for a step of a run, which knows its own.
    fn client(&self) -> Option<String> {
        (!self.is_step).then(|| self.lines_of.map_or_else(|| self.shell(), Client::lines_name))
    }

    /// Returns the name of the shell. Those of clients know the words of bash.
    fn shell(&self) -> String {
        match self.lines_of {
            Some(_) => HookedShell::Bash.name().to_owned(),
            None => self.session.split('.').next().unwrap_or_default().to_owned(),
        }
    }

    /// Returns the name of the session.
    fn session_name(&self) -> String {
        self.lines_of.map_or_else(|| self.session.clone(), |client| client.lines_session(&self.session))
    }

    /// Returns true if a person can be asked on the terminal. That of a client is its own.
    fn may_ask(&self) -> bool {
        !self.is_step && self.lines_of.is_none()
    }

    /// Returns the working directory; for one that is gone, the path that the shell had for it.
    fn place(&self) -> Option<PathBuf> {
        std::env::current_dir().ok().or_else(|| self.cwd.clone())
    }

    /// Returns the id of the line as an action.
    fn action(&self) -> String {
        action_name(self.line)
    }

    fn hello(&self) -> Body {
        Body::Hello(Hello {
            client: self.client(),
            session: Some(self.session_name()),
            pid: self.pid,
            door: Some(if self.is_step { Door::Run } else { Door::Shell }.into()),
            cwd: self.place().map(existing),
            ..Hello::default()
        })
    }

    /// Returns the line that was typed, in the text that the script gives.
    fn typed<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match self.lines_of {
            Some(_) => evaluated_line(&text).unwrap_or_default().into(),
            None => text,
        }
    }

    /// Returns the line with the definitions of its aliases, as the classifier reads it.
    fn with_aliases(&self, line: &str) -> String {
        let defined = self.aliases.iter().filter_map(|alias| {
            let (name, value) = alias.split_once('=')?;
            Some(format!("alias {name}='{}'\n", value.replace('\'', "'\\''")))
        });
        defined.chain([line.to_owned()]).collect()
    }
}

/// A conversation about one line; one that the daemon cut off is had again with a private engine.
fn conversation<T>(call: &LineCall, patience: Duration, have: impl Fn(&mut Talk) -> Result<T, ErrorBody>) -> Result<T> {
    let home = Home::locate()?;
    let greeted = |mut talk: Talk| -> Result<T, ErrorBody> {
        let _: HelloReply = talk.ask(&call.hello())?;
        have(&mut talk)
    };
    let talk = Talk::open(&home, Instant::now() + patience)?;
    let is_daemons = talk.is_daemons();
    match greeted(talk) {
        Err(error) if is_daemons && (error.is(Code::ShuttingDown) || error.is(Code::Busy)) => {
            Ok(greeted(Talk::alone(&home, Instant::now() + patience)?)?)
        }
        had => Ok(had?),
    }
}

/// Keeps a line that runs without a checkpoint because no engine answered.
fn keep_unguarded(call: &LineCall, line: &str, error: &Error) {
    let cwd = call.place().or_else(|| std::env::current_dir().ok()); // a directory that is gone is in no workspace
    let command = UnguardedCommand { cwd, command: format!("shell: {line}"), why: error.text(), is_told: false };
    if let Err(error) = unguarded::keep_unplaced(command) {
        tracing::warn!(%error, "an unguarded line could not be kept");
    }
}

/// A line is about to run.
fn before(call: &LineCall) -> Result<u8> {
    if let Some(line) = call.open {
        let before = LineCall { session: call.session.clone(), pid: call.pid, line, ..LineCall::default() };
        if let Err(error) = after(&before) {
            // The next turn ends that one all the same.
            note("after", &error);
        }
    }
    let mut bytes = Vec::new();
    let read = stdin().take(MAX_LINE).read_to_end(&mut bytes);
    if call.lines_of.is_some() && announced::take(&Home::place()?, &call.session) {
        return Ok(0);
    }
    let text = call.typed(String::from_utf8_lossy(&bytes));
    let line = text.strip_suffix('\n').unwrap_or(&text);
    // No shell runs an empty line: it could not be read.
    let is_unread =
        read.is_err() || bytes.len() as u64 == MAX_LINE || line.trim().is_empty() || text.contains('\u{fffd}');
    let doubt = call.doubt || is_unread || runs_other_text(line, &call.shell());
    let command = call.with_aliases(line);
    // Where it cannot be judged here, the engine says why.
    let judged = JudgedLine::of(call.place(), &command).ok();
    if !doubt && judged.as_ref().is_some_and(|judged| is_harmless(line, &judged.verdict)) {
        return Ok(0);
    }
    // The turn of a run is long: what an earlier checkpoint of it holds may be much older than what is lost.
    let is_opaque =
        |judged: &JudgedLine| judged.opaque == Opaque::Checkpoint && judged.verdict.confidence == Confidence::Opaque;
    let doubt = doubt || (call.is_step && judged.as_ref().is_some_and(is_opaque));
    let patience = PATIENCE + judged.as_ref().map(|judged| judged.deadline).unwrap_or_default();
    stop_on_keys(call);
    let turn = turn_name(call.line, line);
    let asked = ShellBefore {
        action: Some(call.action()),
        command,
        shell: (!call.is_step).then(|| call.shell()),
        cwd: call.place(),
        deadline_ms: None,
        doubt,
        background: false,
    };
    let reply = conversation(call, patience, |talk| {
        if !call.is_step {
            let _: TurnReply = talk.ask(&Body::TurnStart(Turn { turn: turn.clone(), ..Turn::default() }))?;
        }
        talk.ask::<BeforeReply>(&Body::ShellBefore(asked.clone()))
    });
    if let Ok(reply) = &reply {
        told(reply).iter().for_each(|text| print::say(text));
        silent(reply).iter().for_each(|text| print::say(text));
    }
    let hold = hold_of(&reply, judged.as_ref());
    let is_judged_denied = judged.is_some_and(|judged| judged.verdict.denied && judged.verdict.hold.is_some());
    let is_denied = is_judged_denied || reply.as_ref().is_ok_and(BeforeReply::is_denied);
    if let Some(reason) = &hold
        && !may_run(call, reason, is_denied)
    {
        return Ok(DENIED);
    }
    if let Err(error) = &reply {
        keep_unguarded(call, &shown(line), error);
    }
    match reply {
        Ok(_) => Ok(ASKED),
        // The engine is still at work on it, and has to know of the line's end.
        Err(error) if error.code() == Code::Busy => {
            print::say(&format!("piton: {}", error.text()));
            Ok(ASKED)
        }
        Err(error) if hold == Some(error.text()) => {
            // It was said as the reason.
            note("before", &error);
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

/// Returns the reason to hold a line. The policy holds it also where no engine answers.
fn hold_of(reply: &Result<BeforeReply>, judged: Option<&JudgedLine>) -> Option<String> {
    match reply {
        Ok(reply) if reply.proceed => None,
        Ok(reply) => Some(reply.reason.clone().unwrap_or_else(|| "the policy says no".to_owned())),
        Err(error) => judged.and_then(|judged| {
            let failed = || (judged.on_failure == OnFailure::Hold).then(|| error.text());
            judged.verdict.hold.clone().or_else(failed)
        }),
    }
}

/// Returns the name of the turn that a line is.
pub(super) fn turn_name(number: u64, line: &str) -> String {
    format!("{number}: {}", cut(&printable(&shown(line)), MAX_NAME))
}

/// Returns a line as one line of text.
fn shown(line: &str) -> String {
    if line.trim().is_empty() { UNSEEN.to_owned() } else { line.lines().collect::<Vec<_>>().join("; ") }
}

/// Returns the id of a line as an action.
pub(super) fn action_name(number: u64) -> String {
    format!("line-{number}")
}

/// Returns true for a line that destroys nothing, and that can be seen into. Piton's own verbs take their own checkpoints.
pub(super) fn is_harmless(line: &str, verdict: &Verdict) -> bool {
    let program = line.split_whitespace().next().unwrap_or_default();
    let is_own = program.rsplit('/').next() == Some("piton") && !line.contains(|c: char| ";&|<>()`\n".contains(c));
    let is_seen = is_own || verdict.confidence != Confidence::Opaque;
    verdict.needs == Needs::Nothing && verdict.hold.is_none() && is_seen
}

/// Returns true for a line whose words say nothing of what runs: a command of the history again, or a job that goes on, or
/// commands from a pipe.
pub(super) fn runs_other_text(line: &str, shell: &str) -> bool {
    line.split([';', '&', '|', '(', ')', '{', '}', '`', '\n']).any(|part| {
        let mut words = part.split_whitespace();
        let Some(first) = words.next() else { return false };
        let rest: Vec<&str> = words.collect();
        match first.trim_start_matches('\\') {
            "fg" | "bg" => true,
            "r" => shell == "zsh",
            "fc" => !rest.first().is_some_and(|option| option.starts_with('-') && option.contains('l')),
            "source" | "." => rest.is_empty() || rest.first() == Some(&"-"),
            word => word.starts_with('%'),
        }
    })
}

/// Returns the nearest directory on a path that exists.
fn existing(path: PathBuf) -> PathBuf {
    path.ancestors().find(|dir| dir.is_dir()).map(ToOwned::to_owned).unwrap_or(path)
}

/// Returns the line for the person.
pub(super) fn told(reply: &BeforeReply) -> Option<String> {
    let mut said: Vec<String> = reply.warnings.iter().map(|warning| warning.message.clone()).collect();
    said.extend(not_held_sentence(&reply.not_held));
    if let Some(status) = reply.checkpoint.status.fault() {
        let why = reply.checkpoint.reason.as_deref().unwrap_or("no reason is known");
        said.push(format!("no checkpoint before this command ({status}): {why}"));
    }
    said.extend(reply.others.iter().filter_map(OtherBlock::fault));
    // Its notices are for a model that knows files from before.
    (!said.is_empty()).then(|| format!("piton: {}", printable(&said.join("; "))))
}

/// Returns a line for each client that is at work here without events. The engine tells of it once in a shell's session.
fn silent(reply: &BeforeReply) -> Vec<String> {
    if reply.silent.is_empty() {
        return Vec::new();
    }
    let known = Context::new(&GlobalArgs::default()).and_then(|context| Ok((context.root()?, context)));
    let told =
        known.map_or_else(|_| reply.silent.clone(), |(root, context)| with_causes(&context, &root, &reply.silent));
    told.iter().map(|item| format!("piton: {}; {}", printable(&item.text), printable(&item.mend))).collect()
}

/// Returns true if a line that the policy holds runs all the same: the person agrees, or the shell cannot cancel it.
fn may_run(call: &LineCall, reason: &str, is_denied: bool) -> bool {
    let reason = printable(reason);
    if call.cannot_cancel {
        print::say(&format!("piton: {reason}; {} cannot cancel a command, so the command runs now", call.shell()));
        return true;
    }
    let says = if is_denied || !call.may_ask() { "the line was not run: " } else { "" };
    print::say(&format!("piton: {says}{reason}"));
    !is_denied && call.may_ask() && agreed()
}

/// Asks on the terminal itself: stdin has the line. Without a terminal the answer is no.
pub(super) fn agreed() -> bool {
    let Ok(mut terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else { return false };
    // An answer that was typed before the question is none.
    if terminal::forget_input(terminal.as_fd()).is_err() || terminal.write_all(b"piton: run it? [y/N] ").is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = BufReader::new(terminal).read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// The line has ended, and with it its turn.
fn after(call: &LineCall) -> Result<()> {
    let notices = conversation(call, PATIENCE, |talk| {
        let ended = After { action: Some(call.action()), exit: call.exit, ..After::default() };
        talk.send(&Body::ShellAfter(ended))?;
        // An end without a name is the open turn's.
        talk.ask::<AfterReply>(&Body::TurnEnd(Turn::default()))
    })?;
    notices.notices.iter().for_each(|notice| print::say(&printable(notice)));
    Ok(())
}

/// The shell has ended, and with it its run.
fn end(call: &LineCall) -> Result<()> {
    conversation(call, PATIENCE, |talk| talk.ask::<RunEndReply>(&Body::RunEnd(RunEnd::default())).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_run_other_text_are_known() {
        let yes = ["fg", "sleep 1; %2", "bg %1", "fc", "fc -s rm", "echo rm | source", "true && . -", "\\fc -e vi"];
        let no = ["fc -l", "ls fg", "source a.sh", "echo %1", "git log --grep=fc"];
        for (lines, told) in [(&yes[..], true), (&no[..], false)] {
            for line in lines {
                assert_eq!(runs_other_text(line, "bash"), told, "{line}");
            }
        }
        assert!(runs_other_text("r rm", "zsh") && !runs_other_text("r rm", "bash"));
    }
}
