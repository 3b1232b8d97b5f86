//! A connection of a process that has changes saved as long as it lives.

use std::time::{Duration, Instant};

use crate::checkpoint::Home;
use crate::doors::socket::Link;
use crate::error::{Code, Error, Result};
use crate::protocol::{Body, ErrorBody, Hello, HelloReply};

/// The longest wait for the first answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first pause after a connection that broke, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// A connection, the words with which it began, and what is known of its end.
pub(super) struct SavedLink {
    home: Home,
    hello: Hello,
    pub link: Link,
    /// The time at which the next attempt is made, the pause after it, and the last error.
    broken: Option<(Instant, Duration, String)>,
}

/// The outcome of an attempt to connect again.
pub(super) enum Again {
    /// It is connected, and was not before.
    Connected,
    /// It is not, for a reason that was not told yet.
    Broken(String),
    /// It still is not, for the same reason.
    StillBroken,
}

impl SavedLink {
    /// Connects, and asks that changes be saved.
    ///
    /// # Errors
    /// The refusal; `busy` if no answer came in time.
    pub(super) fn open(home: &Home, hello: Hello) -> Result<(SavedLink, HelloReply)> {
        let hello = Hello { autosave: true, ..hello };
        let (link, reply) = connected(home, &hello)?;
        Ok((SavedLink { home: home.clone(), hello, link, broken: None }, reply))
    }

    /// Returns the reply to a request.
    ///
    /// # Errors
    /// The refusal; `busy` if no answer came in `patience`.
    pub(super) fn ask<T: serde::de::DeserializeOwned>(&mut self, body: &Body, patience: Duration) -> Result<T> {
        ask(&mut self.link, body, patience)
    }

    /// Returns the time before which no attempt to connect again is made; `None` for a connection that stands.
    pub(super) fn pause(&self) -> Option<Duration> {
        let (at, _, _) = self.broken.as_ref()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Connects again: the daemon ended, or another build took its place. Called after [`SavedLink::pause`].
    pub(super) fn again(&mut self) -> Again {
        match connected(&self.home, &self.hello) {
            Ok((link, _)) => {
                (self.link, self.broken) = (link, None);
                Again::Connected
            }
            Err(error) => {
                let (text, known) = (error.text(), self.broken.take());
                let pause = known.as_ref().map_or(PAUSES.0, |(_, pause, _)| (*pause * 2).min(PAUSES.1));
                let is_told = known.is_some_and(|(_, _, told)| told == text);
                self.broken = Some((Instant::now() + pause, pause, text.clone()));
                if is_told { Again::StillBroken } else { Again::Broken(text) }
            }
        }
    }
}

/// Refuses settings of the command line, which the daemon does not see.
///
/// # Errors
/// `bad-request` where there are some.
pub(super) fn refuse_settings(flags: &[(String, String)], verb: &str) -> Result<()> {
    if flags.is_empty() {
        return Ok(());
    }
    let text = format!("`piton {verb}` does not accept --set, because the daemon reads the settings itself");
    Err(Error::new(Code::BadRequest, text).hint("put the setting into .piton.yaml (docs/CONFIG.md)"))
}

fn connected(home: &Home, hello: &Hello) -> Result<(Link, HelloReply)> {
    let mut link = Link::open(home)?;
    let reply = ask(&mut link, &Body::Hello(hello.clone()), PATIENCE)?;
    Ok((link, reply))
}

fn ask<T: serde::de::DeserializeOwned>(link: &mut Link, body: &Body, patience: Duration) -> Result<T> {
    let deadline = Instant::now() + patience;
    let id = link.send(body, deadline)?;
    let reply = link.reply(id, deadline).map_err(|refused: ErrorBody| Error::from(refused))?;
    reply.ok_or_else(|| {
        Error::new(Code::Busy, "piton's daemon did not answer in time").hint("to check the daemon, run `piton doctor`")
    })
}
