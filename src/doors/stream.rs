//! An agent client's own stream as the input. Its frames become events like those of every other door.
//!
//! A client does not wait for the reader of its stream. So the checkpoint is taken at the start of each turn, and no
//! frame is read until it exists or its deadline is over. No other checkpoint is reported as one before an action.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::aloud;
use super::output::Output;
use super::replies;
use super::stdio::{Ended, Options, attend, teller};
use crate::agents::stream::{FrameFault, StreamReader};
use crate::agents::{Act, Client, Event as ClientEvent, EventKind};
use crate::checkpoint::records::action_window::EndedCall;
use crate::engine::connection::{Connection, Wake};
use crate::engine::decision::Decision;
use crate::engine::event::{Action, Doing, Event, Opening, Tool, TurnStart};
use crate::engine::session::{Reply, Session};
use crate::error::{Code, Error, Result};
use crate::model::door::Door;
use crate::protocol::{ErrorReply, Id, Line, LineReader, NoticeBody, SkippedSort, StreamEnded, reply_line, spelling};
use crate::sys::clock::now_ms;

/// Runs until the stream ends or a signal comes. With `tee`, stdout is the stream, byte for byte, and sentences go to
/// stderr.
///
/// # Errors
/// `bad-request` for a client without a stream; when the signals cannot be watched.
pub fn follow(options: Options, client: Client, tee: bool) -> Result<Ended> {
    let reader = StreamReader::new(client, &now_ms().to_string())?;
    let output = Arc::new(if tee { Output::start(stderr()) } else { Output::to_stdout() });
    let tell = if tee { aloud::teller(&output) } else { teller(&output) };
    let choose = options.workspace.is_none();
    let answers = Answers { output: Arc::clone(&output), aloud: tee };
    let ended: Arc<Mutex<Option<Counts>>> = Arc::default();
    let (last, farewell) = (Arc::clone(&ended), answers.clone());
    let read = move |connection, limit| {
        std::thread::spawn(move || {
            let mut feed =
                Feed { reader, connection, answers, choose, greeted: false, counts: Counts::default(), ended };
            if tee { feed.run(Tee { input: stdin(), copy: Some(stdout()) }, limit) } else { feed.run(stdin(), limit) }
        });
    };
    // The counts are the last notice.
    let end = move || {
        if let Some(counts) = last.lock().unwrap_or_else(PoisonError::into_inner).take() {
            farewell.ended(&counts);
        }
    };
    attend(options, &output, tell, (read, end))
}

/// A reader that copies all bytes before they are looked at.
struct Tee<R, W> {
    input: R,
    /// `None` when the reader of the copy is gone. The guard keeps working.
    copy: Option<W>,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.input.read(buffer)?;
        if let Some(copy) = &mut self.copy
            && let Err(error) = copy.write_all(&buffer[..length]).and_then(|()| copy.flush())
        {
            tracing::warn!(%error, "the stream can no longer be copied; guarding continues");
            self.copy = None;
        }
        Ok(length)
    }
}

/// The counts of a stream.
#[derive(Default)]
struct Counts {
    lines: u64,
    turns: u64,
    actions: u64,
    skipped: BTreeMap<SkippedSort, u64>,
}

impl Counts {
    /// Returns the sentence for a person about the skipped frames, if there are any.
    fn sentence(&self) -> Option<String> {
        let lines = self.lines;
        if self.turns == 0 && self.actions == 0 && lines != 0 {
            return Some(format!(
                "{lines} lines of the stream contained no turn and no action, so nothing was guarded"
            ));
        }
        let skipped: Vec<String> =
            self.skipped.iter().map(|(sort, count)| format!("{count} {}", spelling(sort))).collect();
        (!skipped.is_empty())
            .then(|| format!("some of the {lines} lines of the stream were skipped: {}", skipped.join(", ")))
    }
}

/// Answers the events of a stream: by lines of the protocol, or by sentences.
#[derive(Clone)]
struct Answers {
    output: Arc<Output>,
    aloud: bool,
}

impl Answers {
    /// Returns a closure that answers an event. `answered` is dropped when that is done.
    fn to(&self, name: &'static str, id: Option<String>, answered: Option<Sender<()>>) -> Reply<Decision> {
        let own = self.clone();
        Box::new(move |session: &mut Session, result| {
            own.answer(session, name, id, &result);
            drop(answered);
        })
    }

    fn answer(&self, session: &Session, name: &str, id: Option<String>, result: &Result<Decision>) {
        if self.aloud {
            let sentences = match result {
                Ok(decision) if id.is_some() => aloud::of_decision(decision),
                Ok(_) => Vec::new(),
                Err(error) => vec![error.text()],
            };
            return aloud::speak(&self.output, sentences);
        }
        let id = id.map(|id| Id::Value(id.into()));
        match (result, &id) {
            (Err(error), id) => self.output.send(ErrorReply::line(id.as_ref(), error)),
            (Ok(_), None) => {}
            (Ok(decision), Some(id)) => {
                let waiting = replies::interrupted(&session.interrupted());
                self.output.send(reply_line(name, id, &replies::decision(decision), &waiting));
            }
        }
    }

    fn ended(&self, counts: &Counts) {
        let Counts { lines, turns, actions, skipped } = counts;
        if self.aloud {
            return aloud::speak(&self.output, counts.sentence().into_iter().collect());
        }
        let (lines, turns, actions) = (*lines, *turns, *actions);
        self.output.notice(NoticeBody::StreamEnded(StreamEnded { lines, turns, actions, skipped: skipped.clone() }));
    }
}

/// The thread that reads a stream.
struct Feed {
    reader: StreamReader,
    connection: Arc<Connection>,
    answers: Answers,
    /// True if the stream may say which workspace it is about.
    choose: bool,
    greeted: bool,
    counts: Counts,
    /// The counts at the end of the stream.
    ended: Arc<Mutex<Option<Counts>>>,
}

/// The session takes no more events, so the reader ends.
struct Gone;

impl Feed {
    fn run(&mut self, input: impl Read, limit: usize) {
        let mut lines = LineReader::new(BufReader::with_capacity(1 << 16, input), limit);
        loop {
            let done = match lines.next_line() {
                Ok(Some(line)) => self.line(line),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the stream can no longer be read");
                    break;
                }
            };
            if done.is_err() {
                return;
            }
        }
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::mem::take(&mut self.counts));
        // If the clock's thread has ended, there is no one to wake.
        let _ = self.connection.wake(Wake::End);
    }

    fn line(&mut self, line: Line) -> Result<(), Gone> {
        self.counts.lines += 1;
        let (text, number) = match line {
            Line::Text(text, number) => (text, number),
            Line::TooLong(bytes, number) => {
                let text = format!("a line of the stream has {bytes} bytes, more than the limit, and was skipped");
                let error = Error::new(Code::LineTooLong, text).hint("to change the limit, set `limits.line_bytes`");
                return self.skip(SkippedSort::TooLong, error, number);
            }
        };
        match self.reader.read(&text) {
            Ok(events) => {
                let mut id = Ids { line: number, count: 0 };
                events.into_iter().try_for_each(|event| self.event(event, &mut id))
            }
            Err((fault, error)) => self.skip(sort_of(fault), error, number),
        }
    }

    /// Counts a skipped frame, and reports the first of each sort.
    fn skip(&mut self, sort: SkippedSort, error: Error, number: u64) -> Result<(), Gone> {
        let count = self.counts.skipped.entry(sort).or_default();
        *count += 1;
        if *count > 1 {
            return Ok(());
        }
        self.connection.with(|session| session.told_fault(error.line(number))).ok_or(Gone)
    }

    fn event(&mut self, event: ClientEvent, id: &mut Ids) -> Result<(), Gone> {
        if !std::mem::replace(&mut self.greeted, true) {
            let hello = Event::Opened(self.opening(&event));
            self.send("hello", hello, Some(id.next()), None)?;
        }
        for event in events(event) {
            match event {
                Event::TurnStarted(_) => {
                    self.counts.turns += 1;
                    // Nothing is sent through this channel: its sender is dropped once the turn has its checkpoint.
                    let (gate, opened) = channel();
                    self.send("turn.start", event, Some(id.next()), Some(gate))?;
                    // The dropped sender is the answer.
                    let _ = opened.recv();
                }
                Event::Before(ref action) => {
                    self.counts.actions += 1;
                    let name = if matches!(action.what, Doing::Shell { .. }) { "shell.before" } else { "tool.before" };
                    self.send(name, event, Some(id.next()), None)?;
                }
                Event::TurnEnded { .. } => self.send("turn.end", event, None, None)?,
                Event::After { .. } | Event::Opened(_) => self.send("tool.after", event, None, None)?,
            }
        }
        Ok(())
    }

    fn opening(&self, event: &ClientEvent) -> Opening {
        Opening {
            client: Some(event.client.name().to_owned()),
            session: event.session.as_deref().map(|session| event.client.session_name(session)),
            // The stream ends with its client, and this process with the stream.
            pid: Some(std::process::id()),
            waits: Some(false),
            door: Some(Door::Stream),
            // The directories of a stream that was recorded elsewhere do not exist here: then the reader's own
            // directory counts.
            cwd: event.cwd.clone().filter(|cwd| self.choose && cwd.is_dir()),
            ..Opening::default()
        }
    }

    fn send(
        &self,
        name: &'static str,
        event: Event,
        id: Option<String>,
        answered: Option<Sender<()>>,
    ) -> Result<(), Gone> {
        if self.connection.on(event, self.answers.to(name, id, answered)) { Ok(()) } else { Err(Gone) }
    }
}

/// Ids of the requests that one line of a stream makes: its number, then its number and a count.
struct Ids {
    line: u64,
    count: u64,
}

impl Ids {
    fn next(&mut self) -> String {
        self.count += 1;
        if self.count == 1 { self.line.to_string() } else { format!("{}.{}", self.line, self.count) }
    }
}

/// Returns the sort of a frame that is skipped.
fn sort_of(fault: FrameFault) -> SkippedSort {
    match fault {
        FrameFault::Malformed => SkippedSort::Malformed,
        FrameFault::UnknownType => SkippedSort::UnknownType,
        FrameFault::Foreign => SkippedSort::Foreign,
    }
}

/// Returns the engine's events that tell of a client's.
fn events(event: ClientEvent) -> Vec<Event> {
    let ClientEvent { client, session, turn, cwd, doubt, kind, .. } = event;
    let run = session.map(|session| client.session_name(&session));
    let action = |id, what, cwd| Event::Before(Action { id, what, cwd, wait: None, doubt, in_background: false });
    match kind {
        EventKind::TurnStart { prompt } => {
            vec![Event::TurnStarted(TurnStart { turn: turn.unwrap_or_default(), run, prompt, for_action: false })]
        }
        EventKind::TurnEnd => vec![Event::TurnEnded { turn: turn.unwrap_or_default() }],
        EventKind::Before { action: id, act: Act::Shell { commands, cwd: own, .. } } => {
            let cwd = directory(cwd, own.as_deref());
            let each = |command| action(id.clone(), Doing::Shell { command }, cwd.clone());
            commands.into_iter().map(each).collect()
        }
        EventKind::Before { action: id, act: Act::Tool { name, input, paths, writes } } => {
            let tool = Tool { name, input, paths, writes, external: None };
            vec![action(id, Doing::Tool(tool), directory(cwd, None))]
        }
        EventKind::After { action, .. } => vec![Event::After { call: EndedCall { action, call: None }, ended: None }],
        EventKind::SessionStart
        | EventKind::SessionEnd
        | EventKind::AgentEnd
        | EventKind::Ask(_)
        | EventKind::Line { .. }
        | EventKind::LineEnd { .. }
        | EventKind::Unused(_) => Vec::new(),
    }
}

/// Returns the directory in which an action runs, if the frame names one that exists.
fn directory(cwd: Option<PathBuf>, own: Option<&Path>) -> Option<PathBuf> {
    let told = match (cwd, own) {
        (Some(cwd), Some(own)) => Some(cwd.join(own)),
        (Some(cwd), None) => Some(cwd),
        (None, own) => own.map(ToOwned::to_owned),
    };
    // A relative one is below the session's; an absolute one of another machine does not exist here.
    told.filter(|cwd| cwd.is_relative() || cwd.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_said_where_it_matters() {
        let counts = |lines, turns, foreign: u64| Counts {
            lines,
            turns,
            actions: 0,
            skipped: (foreign > 0).then_some((SkippedSort::Foreign, foreign)).into_iter().collect(),
        };
        assert_eq!(counts(3, 1, 0).sentence(), None);
        assert_eq!(counts(0, 0, 0).sentence(), None);
        let passed_over = counts(3, 1, 2).sentence();
        assert_eq!(passed_over.as_deref(), Some("some of the 3 lines of the stream were skipped: 2 foreign"));
        let nothing = counts(3, 0, 0).sentence();
        assert_eq!(
            nothing.as_deref(),
            Some("3 lines of the stream contained no turn and no action, so nothing was guarded")
        );
    }
}
