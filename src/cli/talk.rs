//! A conversation with the engine that has a deadline: the daemon's, or one of a process of its own.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::checkpoint::Home;
use crate::doors::socket::{Link, Served};
use crate::error::{Code, Error, Result};
use crate::protocol::{Body, ErrorBody};

/// A link, and the time until which its answers count.
pub(super) struct Talk {
    link: Link,
    deadline: Instant,
}

impl Talk {
    /// Connects to the daemon, or to a private engine.
    ///
    /// # Errors
    /// Returns the errors of starting a process.
    pub(super) fn open(home: &Home, deadline: Instant) -> Result<Talk> {
        Ok(Talk { link: Link::open(home)?, deadline })
    }

    /// Connects to a private engine alone.
    ///
    /// # Errors
    /// Returns the errors of starting a process.
    pub(super) fn alone(home: &Home, deadline: Instant) -> Result<Talk> {
        Ok(Talk { link: Link::alone(home)?, deadline })
    }

    /// Leaves a part of the time for a private engine, if the daemon does not answer in the rest.
    pub(super) fn leave_time(mut self) -> Talk {
        if self.is_daemons() {
            self.deadline -= self.left() / 4;
        }
        self
    }

    /// Returns true if the daemon answers.
    pub(super) fn is_daemons(&self) -> bool {
        matches!(self.link.served(), Served::Daemon(_))
    }

    /// Returns the time that is left for answers.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Sends a request, and returns the id of its reply. A daemon that does not read has half of the time that is left: the
    /// rest is for a private engine.
    ///
    /// # Errors
    /// `shutting-down` if the other side is gone, or did not take it in time.
    pub(super) fn send(&mut self, body: &Body) -> Result<u64> {
        let until = match self.is_daemons() {
            true => Instant::now() + self.left() / 2,
            false => self.deadline,
        };
        self.link.send(body, until)
    }

    /// Returns the reply to a request.
    ///
    /// # Errors
    /// The refusal; `busy` if no reply came by the deadline.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, body: &Body) -> Result<T, ErrorBody> {
        let id = self.send(body)?;
        let late = || Error::new(Code::Busy, "piton did not answer in time; it continues in the background");
        self.link.reply(id, self.deadline)?.ok_or_else(|| late().into())
    }
}
