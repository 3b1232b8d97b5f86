//! A session, shared by those who have something for it: the reader of its lines, the workers that end its jobs, its clock.
//!
//! Each does what it has on its own thread, under the session's lock. To hand it to one thread that owns the session would
//! cost two changes of thread for an answer; on a processor at rest one such change costs more than looking whether
//! anything changed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::Shared;
use super::answers::Answer;
use super::output::Output;
use super::session::{Root, Session};
use crate::engine::worker::Finished;
use crate::protocol::Line;

/// News for the clock that may wait; each of them makes it look at everything, so that more are not needed.
const QUEUE: usize = 16;

/// What wakes the clock.
pub(in crate::doors) enum News {
    /// Dropped as soon as no checkpoint of a turn's start is waited for: whoever holds the other end may go on.
    Gate(Sender<()>),
    /// The input has ended, or cannot be read any more, or asked for the end.
    End,
    Signal,
    /// There is an earlier deadline, or an end of what was waited for.
    Look,
}

/// The session of one client.
pub(in crate::doors) struct Conversation {
    /// Held by whoever is next, so that a reader with many lines does not keep the others out.
    next: Mutex<()>,
    held: Mutex<Option<Held>>,
    news: SyncSender<News>,
}

struct Held {
    session: Session,
    clock: Clock,
    /// Whether lines are ignored.
    ended: bool,
}

/// What the clock waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// The time at which it looks next; an earlier deadline has to be told.
    Until(Option<Instant>),
    /// Whatever happens has to be told.
    Anything,
    /// It was told, and is about to look.
    Told,
}

impl Held {
    fn has_news(&self) -> bool {
        match self.clock {
            Clock::Anything => true,
            Clock::Told => false,
            // Later ones can wait until it looks: then it sees them.
            Clock::Until(at) => self.session.next_deadline().is_some_and(|next| at.is_none_or(|at| next < at)),
        }
    }
}

impl Conversation {
    /// A session before its first line, and what its clock is told.
    pub(in crate::doors) fn new(engine: Shared, output: Output, root: Root) -> (Arc<Conversation>, Receiver<News>) {
        let (news, told) = sync_channel(QUEUE);
        let new = |this: &Weak<Conversation>| {
            let session = Session::new(engine, finisher(this), output, root);
            let held = Held { session, clock: Clock::Until(None), ended: false };
            Conversation { next: Mutex::default(), held: Mutex::new(Some(held)), news }
        };
        (Arc::new_cyclic(new), told)
    }

    /// A panic inside was caught, and took the session with it.
    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without a word to the clock.
    fn quietly<T>(place: &mut Option<Held>, act: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let held = place.as_mut()?;
        let done = catch_unwind(AssertUnwindSafe(|| act(held)));
        if done.is_err() {
            tracing::error!("a bug ended the session; please report it");
            *place = None;
        }
        done.ok()
    }

    fn hold<T>(&self, act: impl FnOnce(&mut Held) -> T) -> Option<T> {
        let mut place = self.lock();
        let done = Self::quietly(&mut place, act);
        let has_news = place.as_ref().is_none_or(Held::has_news);
        if let Some(held) = place.as_mut().filter(|_| has_news) {
            held.clock = Clock::Told;
        }
        drop(place);
        if has_news {
            // Where the queue is full, the clock is about to look.
            let _ = self.news.try_send(News::Look);
        }
        done
    }

    /// Does something with the session; `None` when a bug has ended it, or it is closed.
    pub(in crate::doors) fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.hold(|held| act(&mut held.session))
    }

    /// Does what a line asks; `false` when no more are wanted.
    pub(in crate::doors) fn line(&self, line: Line) -> bool {
        self.hold(|held| !held.ended && !held.session.line(line)).unwrap_or(false)
    }

    /// Tells the clock; `false` when it is gone.
    pub(in crate::doors) fn tell(&self, news: News) -> bool {
        self.news.send(news).is_ok()
    }

    /// By which others tell the clock.
    pub(in crate::doors) fn news(&self) -> SyncSender<News> {
        self.news.clone()
    }

    /// Ignores all lines from now on, and does what belongs to the end.
    pub(in crate::doors) fn end(&self) {
        self.hold(|held| {
            held.ended = true;
            held.session.end();
        });
    }

    /// For the clock: answers those whose deadlines are over, looks at something, and tells when to look again; before that
    /// it is told of earlier deadlines, or where `attend` says so of whatever happens. `None`: the session is gone.
    pub(in crate::doors) fn look<T>(
        &self,
        attend: impl FnOnce(&mut Session) -> (bool, T),
    ) -> Option<(T, Option<Instant>)> {
        Self::quietly(&mut self.lock(), |held| {
            held.session.deadlines(Instant::now());
            let (all, seen) = attend(&mut held.session);
            let next = held.session.next_deadline();
            held.clock = if all { Clock::Anything } else { Clock::Until(next) };
            (seen, next)
        })
    }

    /// Lets the writer end, at most until `deadline`.
    pub(in crate::doors) fn close(&self, deadline: Instant) {
        let held = self.lock().take();
        if let Some(held) = held {
            held.session.close(deadline);
        }
    }
}

/// What the clock is told, at the latest at a deadline that it is to look again; `None`: nobody can tell it anything.
pub(super) fn hear(told: &Receiver<News>, deadline: Option<Instant>) -> Option<News> {
    let Some(deadline) = deadline else { return told.recv().ok() };
    match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(news) => Some(news),
        Err(RecvTimeoutError::Timeout) => Some(News::Look),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// By which workers tell a session what a job came to. A session that is gone has nothing pending.
fn finisher(conversation: &Weak<Conversation>) -> Finished<Answer> {
    let conversation = Weak::clone(conversation);
    Arc::new(move |ticket, answer| {
        if let Some(conversation) = conversation.upgrade() {
            conversation.with(|session| session.finished(ticket, answer));
        }
    })
}
