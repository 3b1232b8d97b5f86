//! The JSON streams that clients print. A frame becomes the same [`Event`]s that hooks give. Pure: bytes in, values
//! out.
//!
//! A client does not wait for the reader of its stream, so an [`EventKind::Before`] read here may be of an action that
//! has run already.
//!
//! Invariant: any bytes are read without a panic, and a frame that is not understood is a [`FrameFault`] that ends nothing.

mod clients;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde_json::Value;

use crate::agents::client::Client;
use crate::agents::event::{Act, ActionOutcome, Event, EventKind};
use crate::agents::payload::Payload;
use crate::agents::shape::Shape;
use crate::error::{Code, Error, Result};
use crate::model::json;
use crate::model::text::{cut, printable};

/// Actions of one frame that are read. A model asks for a few at once.
const MAX_PARTS: usize = 1000;

/// Longest id of a client that is taken for one.
const MAX_ID: usize = 200;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameMeaning {
    /// Tells of the session, by its ids alone.
    Session,
    /// A turn begins.
    Turn,
    /// Something of a turn: of the open one, or of one that begins here.
    InTurn,
    TurnEnd,
    Before,
    After,
    /// An action that the stream names only when it is over.
    Done,
    /// Holds several frames, in the array at this place.
    Parts(&'static str),
    Unused,
}

/// The places of a client's stream.
struct StreamFormat {
    /// The places whose texts, joined by dots, are the name of a frame's type.
    name: &'static [&'static str],
    /// The meanings of the types. The first that fits counts; `a.b` fits `a.b.c` too, and a part of `a` is called `a/b`.
    frames: &'static [(&'static str, FrameMeaning)],
    /// Its steps are of no use here.
    shape: Shape,
    /// The place where an action lists the paths that it touches: an array, and the field of its items.
    paths: &'static [(&'static str, &'static str)],
}

impl StreamFormat {
    fn means(&self, name: &str) -> Option<FrameMeaning> {
        let fits = |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.frames.iter().find(|(known, _)| fits(known)).map(|(_, means)| *means)
    }

    /// Returns the name of a frame's type; empty when it has none.
    fn name(&self, frame: &Payload) -> String {
        let words = self.name.iter().map(|place| frame.at(&[place]).and_then(Value::as_str));
        // The first place that is empty ends the name.
        words.map_while(|word| word).collect::<Vec<_>>().join(".")
    }
}

/// A reason to pass over a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameFault {
    /// No JSON object, or not UTF-8.
    Malformed,
    /// Of a type that is not known here: newer than piton, or another client's.
    UnknownType,
    /// Of a known type, without what that type has.
    Foreign,
}

impl FrameFault {
    /// Returns the name in counts.
    pub fn as_str(self) -> &'static str {
        match self {
            FrameFault::Malformed => "malformed",
            FrameFault::UnknownType => "unknown-type",
            FrameFault::Foreign => "foreign",
        }
    }
}

/// The state of one stream.
pub struct StreamReader {
    client: Client,
    stream: &'static StreamFormat,
    /// Makes the names of turns that the client does not name its own.
    seed: String,
    session: Option<String>,
    cwd: Option<PathBuf>,
    turn: Option<String>,
    turns: u64,
    /// True if the line at hand is not known exactly.
    doubt: bool,
}

impl StreamReader {
    /// Returns a reader of the stream of one client. `seed` begins the names of turns, and is to be another one for
    /// every stream.
    ///
    /// # Errors
    /// `bad-request` for a client whose stream is not known, with those that are.
    pub fn new(client: Client, seed: &str) -> Result<StreamReader> {
        let Some(stream) = clients::stream(client) else {
            let message = format!("piton does not know a JSON stream of {}", client.title());
            return Err(Error::new(Code::BadRequest, message)
                .field("from")
                .hint(format!("the clients with streams are: {}", StreamReader::names().join(", "))));
        };
        Ok(StreamReader {
            client,
            stream,
            seed: seed.to_owned(),
            session: None,
            cwd: None,
            turn: None,
            turns: 0,
            doubt: false,
        })
    }

    /// Returns the names of the clients whose streams are known.
    pub fn names() -> Vec<&'static str> {
        Client::ALL.into_iter().filter(|client| clients::stream(*client).is_some()).map(Client::name).collect()
    }

    /// Returns what one line of the stream tells, in its order.
    ///
    /// # Errors
    /// Why it tells nothing, with a sentence.
    pub fn read(&mut self, line: &[u8]) -> Result<Vec<Event>, (FrameFault, Error)> {
        let title = self.client.title();
        let frame = object(line).map_err(|error| (FrameFault::Malformed, error))?;
        self.doubt = frame.is_doubtful();
        let name = self.stream.name(&frame);
        let Some(means) = self.stream.means(&name) else {
            let shown = cut(&printable(&name), 60);
            let message = format!("the stream of {title} has no frame of the type `{shown}` that piton knows");
            let hint = "if piton understands no other frame either, the stream is from another client; see `--from`";
            return Err((FrameFault::UnknownType, Error::new(Code::UnknownType, message).field("type").hint(hint)));
        };
        self.events(&frame, &name, means).map_err(|error| {
            let lacks = error.field_name().unwrap_or("what it should have").to_owned();
            let message =
                format!("a frame `{name}` in the stream of {title} does not have this client's format: see `{lacks}`");
            let hint =
                "the frame was skipped; if this happens often, the client's format has changed or `--from` is wrong";
            (FrameFault::Foreign, Error::new(Code::BadRequest, message).field(lacks).hint(hint))
        })
    }

    fn events(&mut self, frame: &Payload, name: &str, means: FrameMeaning) -> Result<Vec<Event>> {
        if matches!(means, FrameMeaning::Session | FrameMeaning::Turn | FrameMeaning::InTurn) {
            self.learn(frame);
        }
        let FrameMeaning::Parts(place) = means else {
            return self.event(frame, means);
        };
        let mut events = Vec::new();
        for part in frame.at(&[place]).and_then(Value::as_array).into_iter().flatten().take(MAX_PARTS) {
            let part = Payload::of(part.clone());
            let inner = format!("{name}/{}", self.stream.name(&part));
            match self.stream.means(&inner) {
                // Frames are nested once, in every client's stream.
                Some(FrameMeaning::Parts(_)) | None => {}
                Some(means) => events.extend(self.event(&part, means)?),
            }
        }
        Ok(events)
    }

    /// The ids that a frame tells; what is no id is passed over.
    fn learn(&mut self, frame: &Payload) {
        let shape = &self.stream.shape;
        let text = |places| frame.at(places).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(session) = text(shape.session).filter(|id| id.len() <= MAX_ID) {
            self.session = Some(session.to_owned());
        }
        if let Some(cwd) = text(shape.cwd).map(PathBuf::from).filter(|cwd| cwd.is_absolute()) {
            self.cwd = Some(cwd);
        }
    }

    fn event(&mut self, frame: &Payload, means: FrameMeaning) -> Result<Vec<Event>> {
        let shape = &self.stream.shape;
        let action = || frame.text(shape.action).map(|text| text.map(str::to_owned));
        let kinds = match means {
            FrameMeaning::Unused | FrameMeaning::Parts(_) => Vec::new(),
            FrameMeaning::Session => vec![EventKind::SessionStart],
            FrameMeaning::InTurn if self.turn.is_some() => Vec::new(),
            FrameMeaning::Turn | FrameMeaning::InTurn => {
                let told =
                    frame.at(shape.turn).and_then(Value::as_str).filter(|id| !id.is_empty() && id.len() <= MAX_ID);
                self.turns += 1;
                // An id may come again in a continued session: each start of a turn is a turn.
                self.turn = Some(format!(
                    "{}-{}{}",
                    self.seed,
                    self.turns,
                    told.map(|id| format!("-{id}")).unwrap_or_default()
                ));
                // A prompt in another form is not recorded, and the turn begins all the same.
                let prompt = shape.prompt(frame).ok().flatten().filter(|_| means == FrameMeaning::Turn);
                vec![EventKind::TurnStart { prompt: prompt.filter(|prompt| !prompt.trim().is_empty()) }]
            }
            FrameMeaning::TurnEnd => return Ok(self.turn_end()),
            FrameMeaning::Before => vec![EventKind::Before { action: action()?, act: self.act(frame)? }],
            FrameMeaning::After => {
                vec![EventKind::After { action: action()?, act: None, outcome: (shape.outcome)(frame) }]
            }
            FrameMeaning::Done => vec![
                EventKind::Before { action: action()?, act: self.act(frame)? },
                EventKind::After { action: action()?, act: None, outcome: (shape.outcome)(frame) },
            ],
        };
        Ok(kinds.into_iter().map(|kind| self.told(kind)).collect())
    }

    /// Returns the end of the open turn; a client may tell of it twice.
    fn turn_end(&mut self) -> Vec<Event> {
        if self.turn.is_none() {
            return Vec::new();
        }
        let event = self.told(EventKind::TurnEnd);
        self.turn = None;
        vec![event]
    }

    fn act(&self, frame: &Payload) -> Result<Act> {
        let mut act = self.stream.shape.act(frame)?;
        if let Act::Tool { paths, .. } = &mut act {
            for (list, field) in self.stream.paths {
                let items = frame.at(&[list]).and_then(Value::as_array).into_iter().flatten();
                paths.extend(items.filter_map(|item| item.get(field)?.as_str()).map(str::to_owned));
            }
        }
        Ok(act)
    }

    fn told(&self, kind: EventKind) -> Event {
        let (session, turn) = (self.session.clone(), self.turn.clone());
        let (cwd, doubt) = (self.cwd.clone(), self.doubt);
        Event {
            client: self.client,
            session,
            parent: None,
            agent: None,
            turn,
            cwd,
            doubt,
            transcript: None,
            is_background: false,
            kind,
        }
    }
}

fn object(line: &[u8]) -> Result<Payload> {
    let hint = "the stream might have been cut, or another program prints into it";
    Payload::read(line).map_err(|_| match json::read(line) {
        read if !read.is_utf8 => Error::new(Code::BadUtf8, "a line of the stream is not UTF-8").hint(hint),
        json::ParsedJson { fault: Some(fault), .. } => {
            Error::new(Code::BadJson, format!("a line of the stream is not JSON: {fault}")).hint(hint)
        }
        _ => Error::new(Code::BadJson, "a line of the stream is not a JSON object").hint(hint),
    })
}

/// Returns how a part of Claude Code's envelope says that an action went wrong.
fn told_error(frame: &Payload) -> ActionOutcome {
    let failed = frame.at(&["/is_error", "/isError"]).and_then(Value::as_bool).unwrap_or(false);
    ActionOutcome { ok: Some(!failed), exit: None }
}
