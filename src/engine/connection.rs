//! A session, shared by three kinds of threads: the reader of its events, the workers that end its jobs, and its clock.
//!
//! Each acts on its own thread, under the session's lock. A thread that owns the session would cost two changes of
//! thread for an answer. On an idle processor one such change costs more than the look for changed files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::Engine;
use super::decision::Decision;
use super::event::Event;
use super::session::{Later, Reply, Root, Session, Tell};
use crate::model::door::Door;

/// The most waiting wakes of the clock. Each makes it look at everything, so more are not needed.
const QUEUE: usize = 16;

/// A reason for the clock to wake.
pub enum Wake {
    /// The input has ended or failed, or the client asked for the end.
    End,
    /// The process was told to end, by a signal.
    Signal,
    /// There is an earlier deadline, or a job that was waited for has ended.
    Look,
}

/// The connection of one client.
pub struct Connection {
    /// Held by the thread that gets `live` next, so that a reader with many lines does not keep the others out.
    next: Mutex<()>,
    /// `None` after a bug ended the session.
    live: Mutex<Option<Live>>,
    /// The way to wake the thread that keeps the deadlines.
    wakes: SyncSender<Wake>,
}

struct Live {
    session: Session,
    /// The news that this thread wants to be woken for.
    clock: Clock,
    /// True if events are ignored.
    is_ended: bool,
}

/// The state of the clock's thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// It sleeps until this time; it has to be woken for an earlier deadline.
    Until(Option<Instant>),
    /// It has to be woken for everything.
    Anything,
    /// It was woken and is about to look.
    Told,
}

impl Live {
    fn has_news(&self) -> bool {
        match self.clock {
            Clock::Anything => true,
            Clock::Told => false,
            // The clock sees a later deadline when it looks next.
            Clock::Until(at) => self.session.next_deadline().is_some_and(|next| at.is_none_or(|at| next < at)),
        }
    }
}

impl Connection {
    /// Makes a session before its first event. Returns it with the channel that wakes its clock. `tell` is called with
    /// notices.
    pub fn new(engine: Arc<Engine>, root: Root, tell: Tell) -> (Arc<Connection>, Receiver<Wake>) {
        let (wakes, told) = sync_channel(QUEUE);
        let new = |this: &Weak<Connection>| {
            let session = Session::new(engine, root, later(this), tell);
            let live = Live { session, clock: Clock::Until(None), is_ended: false };
            Connection { next: Mutex::default(), live: Mutex::new(Some(live)), wakes }
        };
        (Arc::new_cyclic(new), told)
    }

    /// Locks the session. A poisoned lock is used all the same: a panic was caught, and the session is dropped then.
    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts without waking the clock.
    fn quietly<T>(place: &mut Option<Live>, act: impl FnOnce(&mut Live) -> T) -> Option<T> {
        let live = place.as_mut()?;
        let done = catch_unwind(AssertUnwindSafe(|| act(live)));
        if done.is_err() {
            tracing::error!("a bug ended the session; please report it");
            *place = None;
        }
        done.ok()
    }

    fn hold<T>(&self, act: impl FnOnce(&mut Live) -> T) -> Option<T> {
        let mut place = self.lock();
        let done = Self::quietly(&mut place, act);
        let has_news = place.as_ref().is_none_or(Live::has_news);
        if let Some(live) = place.as_mut().filter(|_| has_news) {
            live.clock = Clock::Told;
        }
        drop(place);
        if has_news {
            // A full queue means that the clock is about to look.
            let _ = self.wakes.try_send(Wake::Look);
        }
        done
    }

    /// Does something with the session; `None` when a bug has ended it, or it is closed.
    pub fn with<T>(&self, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.hold(|live| act(&mut live.session))
    }

    /// Acts upon a client's request under the current settings; `None` when the session has ended.
    pub fn ask<T>(&self, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.hold(|live| {
            if live.is_ended {
                return None;
            }
            live.session.renew();
            Some(act(&mut live.session))
        })?
    }

    /// Acts upon an event; `false` when no more are wanted.
    pub fn on(&self, event: Event, reply: Reply<Decision>) -> bool {
        self.ask(|session| session.on(event, reply)).is_some()
    }

    /// Wakes the clock; `false` when it is gone.
    pub fn wake(&self, wake: Wake) -> bool {
        self.wakes.send(wake).is_ok()
    }

    /// Returns a sender that wakes the clock.
    pub fn waker(&self) -> SyncSender<Wake> {
        self.wakes.clone()
    }

    /// Keeps the deadlines until the end is asked for.
    pub fn serve(&self, wakes: &Receiver<Wake>) {
        while let Some(((), next)) = self.look(|_| (false, ())) {
            match next_wake(wakes, next) {
                Some(Wake::Look) => {}
                Some(Wake::End | Wake::Signal) | None => return,
            }
        }
    }

    /// Ends in order: first the `exit` checkpoint of an open run, then the pending work, until the deadline. A second
    /// signal forces the end. Returns true if all was done.
    pub fn finish(&self, wakes: &Receiver<Wake>, deadline: Instant) -> bool {
        self.hold(|live| {
            live.is_ended = true;
            live.session.end();
        });
        loop {
            match self.look(|session| (true, session.is_pending())) {
                Some((false, _)) => return true,
                Some((true, next)) if Instant::now() < deadline => {
                    let next = next.map_or(deadline, |next| next.min(deadline));
                    if matches!(next_wake(wakes, Some(next)), Some(Wake::Signal) | None) {
                        return false;
                    }
                }
                Some((true, _)) | None => return false,
            }
        }
    }

    /// Answers overdue events, calls `attend`, and returns the time of the next look; `None` if the session is gone.
    /// Until then the clock is woken for earlier deadlines, or for everything if `attend` asks for that.
    fn look<T>(&self, attend: impl FnOnce(&mut Session) -> (bool, T)) -> Option<(T, Option<Instant>)> {
        Self::quietly(&mut self.lock(), |live| {
            live.session.answer_late(Instant::now());
            let (all, seen) = attend(&mut live.session);
            let next = live.session.next_deadline();
            live.clock = if all { Clock::Anything } else { Clock::Until(next) };
            (seen, next)
        })
    }

    /// Drops the session, and with it the answers of pending jobs.
    pub fn close(&self) {
        self.lock().take();
    }
}

/// Waits for the next wake of the clock, at most until `deadline`; `None` if no sender is left.
fn next_wake(wakes: &Receiver<Wake>, deadline: Option<Instant>) -> Option<Wake> {
    let Some(deadline) = deadline else { return wakes.recv().ok() };
    match wakes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(wake) => Some(wake),
        Err(RecvTimeoutError::Timeout) => Some(Wake::Look),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// Returns the closure by which workers reach a session. For a closed session it does nothing.
fn later(connection: &Weak<Connection>) -> Later {
    let connection = Weak::clone(connection);
    Arc::new(move |act| {
        if let Some(connection) = connection.upgrade() {
            connection.with(|session| act(session));
        }
    })
}

impl Session {
    /// Notes that no other process tells of this session's actions: they end with it at the latest.
    pub fn tells_alone(&mut self) {
        self.is_alone = true;
    }

    /// Returns true if the ends of this session's actions can be reported by this process alone. Without a daemon each hook has a process
    /// of its own.
    pub(super) fn reports_all_ends(&self) -> bool {
        self.is_alone && self.keeps_connection()
    }

    /// Has the session refuse requests that take saved content away for good: an agent may send them.
    pub fn keep_content(&mut self) {
        self.keeps_content = true;
    }

    /// Returns true if its requests may not take saved content away for good.
    pub fn keeps_content(&self) -> bool {
        self.keeps_content
    }

    /// Returns true if the client keeps this connection for as long as it works. Hooks, shells, git and the steps of a run connect for
    /// each event, and the turn of a sub-agent is its agent's.
    pub(super) fn keeps_connection(&self) -> bool {
        let is_brief = [Door::Hook, Door::Shell, Door::Git, Door::Run].iter().any(|door| self.door.is(*door));
        !is_brief && self.sub_agent.is_none()
    }
}
