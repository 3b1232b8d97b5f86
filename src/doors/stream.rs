//! An agent client's own stream as the input: its frames become lines of the protocol, so that there is one path.
//!
//! Nobody waits for whoever reads a stream. So the checkpoint is taken at the start of each turn, no frame is read until it is
//! there (or its deadline is over), and no other checkpoint is told as if it had been before an action.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write, stderr, stdin, stdout};
use std::sync::Arc;
use std::sync::mpsc::channel;

use serde_json::{Map, Value, json};

use super::aloud::Aloud;
use super::stdio::conversation::{Conversation, News};
use super::stdio::output::Output;
use super::stdio::{Ended, Options, guard};
use crate::agents::stream::StreamReader;
use crate::agents::{Act, Client, Event, EventKind};
use crate::error::{Code, Error, Result};
use crate::protocol::{Line, LineReader};
use crate::sys::clock::now_ms;

/// Runs until the stream ends or a signal comes. With `tee`, stdout is the stream, byte for byte, and what there is to be said
/// is said on stderr.
///
/// # Errors
/// `bad-request` for a client without a stream; when the signals cannot be watched.
pub fn follow(options: Options, client: Client, tee: bool) -> Result<Ended> {
    let reader = StreamReader::new(client, &now_ms().to_string())?;
    let output = if tee { Output::start(Aloud::new(stderr())) } else { Output::to_stdout() };
    let choose = options.workspace.is_none();
    guard(options, output, move |conversation, limit| {
        std::thread::spawn(move || {
            let mut feed = Feed { reader, conversation, choose, greeted: false, counts: Counts::default() };
            if tee { feed.run(Tee { input: stdin(), copy: Some(stdout()) }, limit) } else { feed.run(stdin(), limit) }
        });
    })
}

/// Copies what is read, before it is looked at.
struct Tee<R, W> {
    input: R,
    /// `None` when nobody reads the copy any more. The guard goes on.
    copy: Option<W>,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.input.read(buffer)?;
        if let Some(copy) = &mut self.copy
            && let Err(error) = copy.write_all(&buffer[..length]).and_then(|()| copy.flush())
        {
            tracing::warn!(%error, "the stream cannot be passed on any more; guarding goes on");
            self.copy = None;
        }
        Ok(length)
    }
}

/// What a stream came to.
#[derive(Default)]
struct Counts {
    lines: u64,
    turns: u64,
    actions: u64,
    skipped: BTreeMap<&'static str, u64>,
}

/// The thread that reads a stream.
struct Feed {
    reader: StreamReader,
    conversation: Arc<Conversation>,
    /// Whether the stream may say which workspace it is about.
    choose: bool,
    greeted: bool,
    counts: Counts,
}

/// The session takes no more: nothing is left to be done.
struct Gone;

impl Feed {
    fn run(&mut self, input: impl Read, limit: usize) {
        let mut lines = LineReader::new(BufReader::with_capacity(1 << 16, input), limit);
        loop {
            let done = match lines.next_line() {
                Ok(Some(line)) => self.line(line),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the stream cannot be read any more");
                    break;
                }
            };
            if done.is_err() {
                return;
            }
        }
        let Counts { lines, turns, actions, skipped } = &self.counts;
        let ended = json!({ "lines": lines, "turns": turns, "actions": actions, "skipped": skipped });
        self.conversation.with(|session| session.output.at_the_end("stream.ended", ended));
        // A clock that is gone needs no end.
        let _ = self.conversation.tell(News::End);
    }

    fn line(&mut self, line: Line) -> Result<(), Gone> {
        self.counts.lines += 1;
        let (text, number) = match line {
            Line::Text(text, number) => (text, number),
            Line::TooLong(bytes, number) => {
                let text = format!("a line of the stream has {bytes} bytes, more than the limit, and was passed over");
                let error = Error::new(Code::LineTooLong, text).hint("`limits.line_bytes` sets the limit");
                return self.skip("too-long", error, number);
            }
        };
        match self.reader.read(&text) {
            Ok(events) => {
                let mut id = Ids { line: number, count: 0 };
                events.into_iter().try_for_each(|event| self.event(event, &mut id))
            }
            Err((fault, error)) => self.skip(fault.as_str(), error, number),
        }
    }

    /// Counts what is passed over, and tells of the first of each sort.
    fn skip(&mut self, sort: &'static str, error: Error, number: u64) -> Result<(), Gone> {
        let count = self.counts.skipped.entry(sort).or_default();
        *count += 1;
        if *count > 1 {
            return Ok(());
        }
        self.conversation.with(|session| session.told_fault(&error.line(number))).ok_or(Gone)
    }

    fn event(&mut self, event: Event, id: &mut Ids) -> Result<(), Gone> {
        if !std::mem::replace(&mut self.greeted, true) {
            self.hello(&event, id)?;
        }
        let starts = matches!(event.kind, EventKind::TurnStart { .. });
        for (name, body) in requests(&event) {
            match name {
                "turn.start" => self.counts.turns += 1,
                "tool.before" | "shell.before" => self.counts.actions += 1,
                _ => {}
            }
            self.request(name, body, id)?;
        }
        if starts {
            // Nothing is ever sent through it: it is dropped once the turn has its checkpoint.
            let (gate, opened) = channel();
            if !self.conversation.tell(News::Gate(gate)) {
                return Err(Gone);
            }
            // That it was dropped is the answer.
            let _ = opened.recv();
        }
        Ok(())
    }

    fn hello(&mut self, event: &Event, id: &mut Ids) -> Result<(), Gone> {
        let mut body = Map::new();
        body.insert("client".into(), event.client.name().into());
        body.insert("session".into(), event.session.clone().into());
        body.insert("waits".into(), false.into());
        // A stream that was recorded elsewhere is about the directory in which it is read.
        if let Some(cwd) = event.cwd.as_ref().filter(|cwd| self.choose && cwd.is_dir()) {
            body.insert("cwd".into(), cwd.to_string_lossy().into());
        }
        self.request("hello", body, id)
    }

    fn request(&mut self, name: &str, mut body: Map<String, Value>, id: &mut Ids) -> Result<(), Gone> {
        body.insert("type".into(), name.into());
        if !matches!(name, "turn.end" | "tool.after" | "shell.after") {
            body.insert("id".into(), id.next().into());
        }
        let line = Line::Text(Value::Object(body).to_string().into_bytes(), id.line);
        if self.conversation.line(line) { Ok(()) } else { Err(Gone) }
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

/// The requests of the protocol that tell of an event.
fn requests(event: &Event) -> Vec<(&'static str, Map<String, Value>)> {
    let object = |value: Value| match value {
        Value::Object(mut map) => {
            map.retain(|_, value| !value.is_null());
            if event.doubt {
                map.insert("doubt".into(), true.into());
            }
            map
        }
        _ => Map::new(),
    };
    let one = |name, value| vec![(name, object(value))];
    match &event.kind {
        EventKind::TurnStart { .. } => one("turn.start", json!({ "turn": event.turn, "run": event.session })),
        EventKind::TurnEnd => one("turn.end", json!({ "turn": event.turn, "run": event.session })),
        EventKind::Before { action, act: Act::Shell { commands, cwd, .. } } => {
            let cwd = directory(event, cwd.as_deref());
            let each = |command: &String| {
                ("shell.before", object(json!({ "action": action, "command": command, "cwd": cwd })))
            };
            commands.iter().map(each).collect()
        }
        EventKind::Before { action, act: Act::Tool { name, input, paths, writes } } => {
            let cwd = directory(event, None);
            let body =
                json!({ "action": action, "tool": name, "input": input, "paths": paths, "writes": writes, "cwd": cwd });
            one("tool.before", body)
        }
        EventKind::After { action, outcome } => {
            one("tool.after", json!({ "action": action, "ok": outcome.ok, "exit": outcome.exit }))
        }
        EventKind::SessionStart | EventKind::SessionEnd | EventKind::Ask(_) | EventKind::Unused(_) => Vec::new(),
    }
}

/// Where an action runs, if that is told and is there.
fn directory(event: &Event, own: Option<&std::path::Path>) -> Option<String> {
    let told = match (&event.cwd, own) {
        (Some(cwd), Some(own)) => Some(cwd.join(own)),
        (Some(cwd), None) => Some(cwd.clone()),
        (None, own) => own.map(ToOwned::to_owned),
    };
    // Relative ones are the session's; of another machine's there is nothing to be seen here.
    told.filter(|cwd| cwd.is_relative() || cwd.is_dir()).map(|cwd| cwd.to_string_lossy().into_owned())
}
