//! One thread per workspace: it owns the timeline and does one job after another.
//!
//! The inbox is bounded: a full one is told, it never grows.
//!
//! When nothing waits, the worker tidies up, in an order and at times that its chores name; then it sleeps until the next
//! job. A chore that looks at the workspace gives way to a job.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::watcher::{self, Hearing, note};
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::take::Take;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Code;
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::{Policy, Watching};
use crate::store::IDLE;
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::memory;

/// Jobs that may wait.
const INBOX: usize = 256;

/// Where answers go, with the ticket of the job; called on the worker's thread, so that it should be quick, and panic never.
/// `None`: the job died (a bug, caught so that guarding goes on).
pub type Finished<A> = Arc<dyn Fn(u64, Option<A>) + Send + Sync>;

/// What a job may ask while it works.
type Work<A> = Box<dyn FnOnce(&mut Timeline, Interrupt<'_>) -> A + Send>;

/// Who is told what a job came to.
pub struct Asker<A> {
    /// The job's number among those of who asks.
    pub ticket: u64,
    pub finished: Finished<A>,
}

enum Job<A> {
    Do(Asker<A>, Work<A>),
    Policy(Policy),
    /// Hear ahead of a job that may follow.
    Listen,
}

/// How often beginning to hear gives way to a job before it does not.
const GIVE_WAY: u32 = 3;

/// What is done when no job waits, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chore {
    /// Begin to hear of changes, or to trust what is heard again. At once.
    Hear,
    /// Make durable what is not yet, sweep, drop what retention drops.
    Settle,
    /// Compress what a large checkpoint had no time to compress.
    Recompress,
    /// Scan where nothing is heard, so that new content is read before an event waits for it (`watcher: poll`).
    Poll,
    /// Write the stamps, look whether anything was missed, and give memory back.
    Audit,
}

impl Chore {
    /// How long after the last job.
    fn after(self) -> Duration {
        Duration::from_millis(match self {
            Chore::Hear => 0,
            Chore::Settle => 100,
            Chore::Recompress => 1000,
            Chore::Poll => 10_000,
            Chore::Audit => 30_000,
        })
    }

    /// What comes next; a poll is repeated for as long as there is no job.
    fn next(self, watching: Watching) -> Option<Chore> {
        match (self, watching) {
            (Chore::Hear, _) => Some(Chore::Settle),
            (Chore::Settle, _) => Some(Chore::Recompress),
            (Chore::Recompress | Chore::Poll, Watching::Poll) => Some(Chore::Poll),
            (Chore::Recompress | Chore::Poll, Watching::Recommended | Watching::None) => Some(Chore::Audit),
            (Chore::Audit, _) => None,
        }
    }
}

/// A worker; dropping it lets its thread end after the jobs that wait.
pub struct Worker<A: Send + 'static> {
    inbox: Mutex<Option<SyncSender<Job<A>>>>,
    stop: Arc<AtomicBool>,
    waiting: Arc<AtomicUsize>,
    hearing: watcher::Shared,
    thread: JoinHandle<()>,
}

impl<A: Send + 'static> Worker<A> {
    /// Starts the thread.
    pub fn start(mut timeline: Timeline) -> Worker<A> {
        let (sender, receiver) = mpsc::sync_channel(INBOX);
        let stop = Arc::new(AtomicBool::new(false));
        let waiting = Arc::new(AtomicUsize::new(0));
        let hearing = watcher::Shared::default();
        if timeline.workspace().scope == Scope::Tree {
            timeline.keep_warm();
        }
        let mut desk = Desk {
            timeline,
            stop: Arc::clone(&stop),
            waiting: Arc::clone(&waiting),
            hearing: Arc::clone(&hearing),
            refused: false,
            gave_way: 0,
        };
        let thread = std::thread::spawn(move || desk.work(&receiver));
        Worker { inbox: Mutex::new(Some(sender)), stop, waiting, hearing, thread }
    }

    /// Puts a job in the inbox; `false` when it is full.
    pub fn submit(
        &self,
        asker: Asker<A>,
        work: impl FnOnce(&mut Timeline, Interrupt<'_>) -> A + Send + 'static,
    ) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let accepted = self.send(Job::Do(asker, Box::new(work)));
        if !accepted {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        accepted
    }

    /// Has what changed be heard, ahead of a job that will ask for it. Where jobs wait, theirs comes first.
    pub fn listen(&self) {
        if !self.is_busy() {
            // If it is not taken, the job asks for itself.
            let _ = self.send(Job::Listen);
        }
    }

    /// `false` when the inbox is full, or closed.
    fn send(&self, job: Job<A>) -> bool {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.as_ref().is_some_and(|inbox| inbox.try_send(job).is_ok())
    }

    /// How changes are noticed.
    pub fn hearing(&self) -> Hearing {
        watcher::snapshot(&self.hearing)
    }

    /// Whether jobs wait or are at work.
    pub fn is_busy(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Puts another policy in force after the jobs that wait; `false` when the inbox is full, or closed.
    pub fn set_policy(&self, policy: Policy) -> bool {
        self.send(Job::Policy(policy))
    }

    /// Has captures given up at their next look-up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Takes no more jobs; `true` when the thread has ended.
    pub fn close(&self) -> bool {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.thread.is_finished()
    }
}

/// The thread's side.
struct Desk {
    timeline: Timeline,
    stop: Arc<AtomicBool>,
    waiting: Arc<AtomicUsize>,
    hearing: watcher::Shared,
    /// Whether a watcher was refused: asked for once.
    refused: bool,
    /// How often in a row beginning to hear has given way to a job.
    gave_way: u32,
}

impl Desk {
    fn work<A: Send + 'static>(&mut self, inbox: &Receiver<Job<A>>) {
        let mut since = Instant::now();
        let mut chore = None;
        loop {
            match next(inbox, since, chore) {
                // No job of anybody's: the chores go on as if nothing had been.
                Ok(Job::Listen) => self.timeline.sync_ahead(),
                Ok(Job::Policy(policy)) => {
                    self.set_policy(policy);
                    (since, chore) = (Instant::now(), Some(Chore::Hear));
                }
                Ok(Job::Do(asker, work)) => {
                    self.one(&asker, work);
                    (since, chore) = (Instant::now(), Some(Chore::Hear));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let watching = self.timeline.policy().watching;
                    if let Some(now) = chore {
                        self.do_chore(now);
                        chore = now.next(watching);
                        since = if now == Chore::Poll { Instant::now() } else { since };
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.settle();
        self.save();
    }

    fn set_policy(&mut self, policy: Policy) {
        if policy.watching != self.timeline.policy().watching {
            self.refused = false;
            self.timeline.set_change_source(None);
            note(&self.hearing, |hearing| *hearing = Hearing::default());
        }
        self.timeline.set_policy(policy);
    }

    fn do_chore(&mut self, chore: Chore) {
        let waiting = Arc::clone(&self.waiting);
        let give_way = move || if waiting.load(Ordering::SeqCst) > 0 { Flow::Stop } else { Flow::Continue };
        match chore {
            Chore::Hear => self.hear(&give_way),
            Chore::Settle => self.settle(),
            Chore::Recompress => {
                let fault = self.timeline.recompress(IDLE, &give_way).err().map(|error| error.text());
                if let Some(fault) = &fault {
                    tracing::warn!(fault, "packs could not be compressed");
                }
                note(&self.hearing, |hearing| hearing.fault = fault);
            }
            Chore::Poll => {
                let polled = self.timeline.take(&Take::of(CheckpointKind::Turn, "local", "polling"), &give_way);
                if let Err(error) = polled.map(drop) {
                    tracing::debug!(%error, "not polled");
                }
            }
            Chore::Audit => self.audit(&give_way),
        }
    }

    /// Begins to hear of changes, once there is a tree that they can be applied to.
    fn hear(&mut self, give_way: Interrupt<'_>) {
        let wanted = self.timeline.policy().watching == Watching::Recommended;
        if !self.timeline.is_warm() {
            return;
        }
        if wanted && !self.refused && !self.timeline.has_change_source() {
            match watcher::start(&self.timeline, &self.hearing) {
                Ok(ear) => self.timeline.set_change_source(Some(Box::new(ear))),
                Err(refusal) => {
                    self.refused = true;
                    tracing::info!(%refusal, "not watched: every checkpoint scans");
                    note(&self.hearing, |hearing| hearing.refused = Some(refusal.to_string()));
                }
            }
        }
        // A client that always asks must not keep it from ever beginning: then the next job waits for one look.
        let patient = self.gave_way < GIVE_WAY;
        let looked = self.timeline.warm_up(&|| if patient { give_way() } else { Flow::Continue });
        self.gave_way = match looked {
            Err(error) if error.code() == Code::ShuttingDown => self.gave_way + 1,
            Err(error) => {
                tracing::warn!(%error, "the workspace could not be looked at in idle time");
                0
            }
            Ok(()) => 0,
        };
        let warm = self.timeline.is_live();
        note(&self.hearing, |hearing| hearing.warm = warm);
    }

    fn audit(&mut self, give_way: Interrupt<'_>) {
        self.save();
        match self.timeline.audit(give_way) {
            Ok(audit) => note(&self.hearing, |hearing| {
                hearing.audits += 1;
                hearing.divergences += audit.missed as u64;
            }),
            Err(error) => tracing::debug!(%error, "not audited"),
        }
        // Nobody has asked for long: what a large checkpoint needed is not needed now.
        self.timeline.store().close();
        memory::give_back();
    }

    fn one<A>(&mut self, asker: &Asker<A>, work: Work<A>) {
        let stop = Arc::clone(&self.stop);
        let control = move || if stop.load(Ordering::SeqCst) { Flow::Stop } else { Flow::Continue };
        let timeline = &mut self.timeline;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(timeline, &control)));
        let warm = self.timeline.is_live();
        note(&self.hearing, |hearing| hearing.warm = warm);
        // Whoever asked may ask again at once, and is to find nobody at work.
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        (asker.finished)(asker.ticket, caught.ok());
    }

    fn save(&mut self) {
        if let Err(error) = self.timeline.save_known() {
            tracing::warn!(%error, "the stamps could not be written");
        }
    }

    fn settle(&mut self) {
        if let Err(error) = self.timeline.settle() {
            tracing::warn!(%error, "stamps or retention could not be written");
        }
    }
}

/// The next job, or the time of the next chore.
fn next<A>(inbox: &Receiver<Job<A>>, since: Instant, chore: Option<Chore>) -> Result<Job<A>, RecvTimeoutError> {
    match chore {
        None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(chore) => inbox.recv_timeout((since + chore.after()).saturating_duration_since(Instant::now())),
    }
}
