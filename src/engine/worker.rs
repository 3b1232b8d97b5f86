//! One thread per workspace: it owns the timeline and does one job after another.
//!
//! Actions that wait for a checkpoint at the same time share one. When nothing waits, the worker does the tasks of
//! `engine/idle` in their order, at their times. Then it sleeps until the next job. An idle task that looks at the
//! workspace gives way to a job.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::idle::{self, Idle, IdleTask, IdleWaits};
use super::job::{Answer, Job, bug};
use super::names::guard_in_force;
use super::protect::{self, LastTurn, Protected, Wanted};
use super::queue::{Item, Next, Queue, SaveWish};
use super::saves::{self, Saver, Saves};
use super::silence::ear::Ear;
use super::watcher::{self, SharedStatus, WatcherStatus, note};
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::{Take, Taken};
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::upkeep::rounds::Rounds;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::{Guard, Policy, Watching};
use crate::sys::interrupt::Flow;
use crate::watch::ChangeSignal;

/// A scan that gave way once may run this many times longer before it gives way again.
const BACK_OFF: f64 = 1.5;

/// The longest time for which the beginning of an action waits for the watcher.
const WATCH_WAIT: Duration = Duration::from_secs(1);

/// A worker; dropping it lets its thread end after the jobs that wait.
pub struct Worker {
    /// The things that wait for the thread.
    queue: Arc<Queue>,
    /// True once the work at hand is to end early.
    stop: Arc<AtomicBool>,
    /// The watcher's state, for replies.
    watcher: SharedStatus,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts the thread. In its idle time it does rounds of maintenance.
    ///
    /// # Errors
    /// `internal` where the system has no thread left.
    pub fn start(mut timeline: Timeline, rounds: Arc<Rounds>, ear: Arc<Ear>) -> Result<Worker> {
        let (queue, stop) = (Arc::new(Queue::default()), Arc::new(AtomicBool::new(false)));
        let watcher = SharedStatus::default();
        if timeline.workspace().scope == Scope::Tree {
            timeline.keep_warm();
        }
        let told = Arc::clone(&queue);
        let signal = ChangeSignal::new(move || told.note_change());
        let mut worker = WorkerLoop {
            timeline,
            queue: Arc::clone(&queue),
            stop: Arc::clone(&stop),
            watcher: Arc::clone(&watcher),
            idle: Idle::new(rounds, signal),
            ear,
            last: None,
        };
        let thread = std::thread::Builder::new().spawn(move || {
            while worker.guarded(WorkerLoop::run).is_none() {
                worker.queue.done();
            }
            worker.guarded(|worker| idle::finish(&mut worker.timeline, &worker.idle, worker.queue.rest_until()));
        });
        let failed = |error| Error::new(Code::Internal, format!("the workspace's worker cannot be started: {error}"));
        Ok(Worker { queue, stop, watcher, thread: thread.map_err(failed)? })
    }

    /// Puts a job in the queue.
    ///
    /// # Errors
    /// Gives the job back when there is no room.
    pub fn submit(&self, job: Job) -> Result<(), Job> {
        match self.queue.push(Item::Do(job)) {
            Err(Item::Do(job)) => Err(job),
            _ => Ok(()),
        }
    }

    /// Puts the note of an action in the queue.
    ///
    /// # Errors
    /// Gives the job back when there is no room.
    pub fn note(&self, job: Job) -> Result<(), Job> {
        match self.queue.push(Item::Note(job)) {
            Err(Item::Note(job)) => Err(job),
            _ => Ok(()),
        }
    }

    /// Asks for a checkpoint.
    ///
    /// # Errors
    /// Gives the request back when there is no room.
    pub fn capture(&self, wanted: Wanted) -> Result<(), Box<Wanted>> {
        match self.queue.push(Item::Capture(Box::new(wanted))) {
            Err(Item::Capture(wanted)) => Err(wanted),
            _ => Ok(()),
        }
    }

    /// Asks for a capture of everything once nothing else waits, so that the first action need not wait for it; `false`
    /// when the worker ends.
    pub fn capture_base(&self, wanted: Wanted) -> bool {
        self.queue.push_base(wanted)
    }

    /// Asks the watcher ahead of an action that is being judged. Where jobs wait, theirs comes first.
    pub fn sync_ahead(&self) {
        if !self.queue.is_busy() {
            // If there is no room, the action asks by itself.
            let _ = self.queue.push(Item::SyncAhead);
        }
    }

    /// Saves changes from now on, for as long as the answer lives.
    pub(super) fn autosave(&self, saver: Saver) -> SaveWish {
        SaveWish::new(&self.queue, saver)
    }

    /// Returns how changes are noticed.
    pub fn watcher(&self) -> WatcherStatus {
        watcher::snapshot(&self.watcher)
    }

    /// Puts another policy in force after the jobs that wait; `false` when there is no room.
    pub fn set_policy(&self, policy: Policy) -> bool {
        self.queue.push(Item::Policy(Box::new(policy))).is_ok()
    }

    /// Interrupts captures at their next check of the interrupt.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Takes no more jobs; `true` when the thread has ended. Until `rest_until` it drops what retention does not keep.
    pub fn close(&self, rest_until: Instant) -> bool {
        self.queue.close(Some(rest_until));
        self.thread.is_finished()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.close(None);
    }
}

/// The thread's side.
struct WorkerLoop {
    timeline: Timeline,
    queue: Arc<Queue>,
    stop: Arc<AtomicBool>,
    watcher: SharedStatus,
    idle: Idle,
    /// Hears of clients that are at work without events.
    ear: Arc<Ear>,
    /// The last checkpoint of a turn: actions that came before its answer are judged by it.
    last: Option<LastTurn>,
}

impl WorkerLoop {
    /// Does jobs and idle tasks until the queue is closed and empty.
    fn run(&mut self) {
        let (mut since, mut task) = (Instant::now(), None);
        loop {
            let idle_at = task.map(|task: IdleTask| since + task.after());
            match self.queue.next(idle_at, self.timeline.is_live()) {
                // This is no job, so the idle time is not counted anew.
                Next::Item(Item::SyncAhead) => {
                    self.guarded(|worker| worker.timeline.sync_ahead());
                    continue;
                }
                Next::Idle => {
                    if let Some(now) = task {
                        self.guarded(|worker| worker.idle(now));
                        task = now.next(self.timeline.policy().watching);
                        // Idle times count from the last job, but a repeated poll counts from the last poll.
                        since = if now == IdleTask::Poll { Instant::now() } else { since };
                    }
                    continue;
                }
                Next::Item(Item::Policy(policy)) => {
                    self.idle.set_policy(*policy, &mut self.timeline, &self.watcher);
                    self.queue.done();
                }
                Next::Item(Item::Do(job)) => self.job(job),
                Next::Item(Item::Note(job)) => {
                    self.guarded(|worker| worker.watch_now(Instant::now() + WATCH_WAIT));
                    self.job(job);
                }
                Next::Item(Item::Capture(wanted)) => self.capture(*wanted),
                Next::Bases(bases) => self.bases(bases),
                Next::Save => {
                    if !self.save() {
                        // A look that found nothing new leaves the idle times as they were.
                        continue;
                    }
                }
                Next::Closed => break,
            }
            (since, task) = (Instant::now(), Some(IdleTask::Watch));
        }
    }

    /// Does some work; `None` if a bug ended it, which is written down. The thread goes on, because later actions still
    /// need their checkpoints.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut WorkerLoop) -> T) -> Option<T> {
        let panic = match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(done) => return Some(done),
            Err(panic) => panic,
        };
        let root = self.timeline.workspace().path.display();
        let text = format!("a bug ended some work on {root} ({}); please report it", words(&*panic));
        tracing::error!("{text}");
        if let Err(error) = mishaps::note_once(self.timeline.home(), &text) {
            tracing::warn!(%error, "could not record the bug");
        }
        None
    }

    /// Does an idle task, which gives way to a job. One that does not gives way to the capture of named paths, and then begins again.
    fn idle(&mut self, task: IdleTask) {
        loop {
            let (queue, gave_way) = (&self.queue, Cell::new(false));
            let give_way = || if queue.is_awaited() { Flow::Stop } else { Flow::Continue };
            let press = || {
                gave_way.set(gave_way.get() || queue.is_pressed(Instant::now()));
                if gave_way.get() { Flow::Stop } else { Flow::Continue }
            };
            let waits = IdleWaits { give_way: &give_way, press: &press };
            self.idle.run(task, &mut self.timeline, &self.watcher, &waits);
            if !gave_way.get() {
                return;
            }
            self.capture_named(&[]);
        }
    }

    /// Has the workspace watched before an action begins, so that what it changes is known. A workspace that is too large for
    /// that in the time until `until` is watched in idle time.
    fn watch_now(&mut self, until: Instant) {
        let can_watch = self.timeline.policy().watching == Watching::Recommended && !self.idle.is_refused();
        if self.timeline.is_live() || !can_watch || self.timeline.workspace().scope != Scope::Tree {
            return;
        }
        let (stop, queue) = (Arc::clone(&self.stop), Arc::clone(&self.queue));
        // An action that waits for the capture of its named paths comes first.
        let control = move || {
            let now = Instant::now();
            let is_over = stop.load(Ordering::SeqCst) || now >= until || queue.is_pressed(now);
            if is_over { Flow::Stop } else { Flow::Continue }
        };
        if !self.timeline.is_warm() {
            let base = Take::of(CheckpointKind::Turn, "local", "base capture");
            if let Err(error) = self.timeline.take(&base, &control) {
                tracing::debug!(%error, "not watched in time");
                return;
            }
        }
        let waits = IdleWaits { give_way: &control, press: &control };
        self.idle.run(IdleTask::Watch, &mut self.timeline, &self.watcher, &waits);
    }

    /// Notes that the work is done, and then delivers the answers.
    fn done(&mut self, answers: Vec<Answer>) {
        let warm = self.timeline.is_live();
        note(&self.watcher, |status| status.warm = warm);
        self.queue.done();
        for answer in answers {
            self.guarded(|_| answer());
        }
        self.guarded(|worker| worker.timeline.keep_repository());
    }

    /// Finishes a request. A bug in it costs no other request its answer.
    fn finish(&mut self, wanted: Wanted, result: Result<Protected>) -> Option<Answer> {
        self.guarded(|worker| (wanted.done)(&mut worker.timeline, result))
    }

    fn job(&mut self, job: Job) {
        let stop = Arc::clone(&self.stop);
        let control = move || if stop.load(Ordering::SeqCst) { Flow::Stop } else { Flow::Continue };
        let answer = self.guarded(|worker| job(&mut worker.timeline, &control));
        self.done(answer.into_iter().collect());
    }

    /// Answers an action, and those behind it that one checkpoint serves as well.
    fn capture(&mut self, first: Wanted) {
        let mut group = vec![first];
        let joining = self.queue.joining(&group[0]);
        group.extend(joining);
        let is_live = self.timeline.is_live();
        for wanted in &mut group {
            wanted.reaches_all |= wanted.starts_others && (is_live || wanted.may_scan);
        }
        let results = self.guarded(|worker| worker.protect(&group));
        let results = results.unwrap_or_else(|| group.iter().map(|_| Err(bug())).collect());
        let captured = Instant::now();
        let whole = results.iter().flatten().find_map(|protected| match protected {
            Protected::Taken(taken) if self.timeline.workspace().scope == Scope::Tree => Some(taken.checkpoint.clone()),
            _ => None,
        });
        // A checkpoint of the whole workspace serves the waiting base captures too.
        let bases = if whole.is_some() { self.queue.take_bases() } else { Vec::new() };
        if let Some(until) = group.iter().filter(|wanted| wanted.is_noted).filter_map(|wanted| wanted.deadline).min() {
            self.guarded(|worker| worker.watch_now(until.min(Instant::now() + WATCH_WAIT)));
        }
        // Before `done` takes the requests. A capture that a late answer has named stays.
        let came = results.iter().all(Result::is_ok);
        self.guarded(|worker| worker.forget_named(&group, came.then_some(captured)));
        let mut answers = Vec::new();
        for (wanted, result) in group.into_iter().zip(results) {
            answers.extend(self.finish(wanted, result));
        }
        for base in bases {
            let held = whole.clone().map(Protected::Held).ok_or_else(bug);
            answers.extend(self.finish(base, held));
        }
        self.done(answers);
    }

    /// Takes the base captures of sessions, one for all of them.
    fn bases(&mut self, bases: Vec<Wanted>) {
        let Some(take) = bases.first().map(|base| base.take.clone()) else { return self.queue.done() };
        let taken = self.guarded(|worker| worker.take(&take, &[])).unwrap_or_else(|| Err(bug()));
        let mut answers = Vec::new();
        for base in bases {
            let result = taken.as_ref().map(|taken| Protected::Held(taken.checkpoint.clone())).map_err(again);
            answers.extend(self.finish(base, result));
        }
        self.done(answers);
    }

    /// Saves the tree if it changed, for the sessions that want that, or where a client is silent; true if it did.
    fn save(&mut self) -> bool {
        let wanted = self.queue.with_saves(Saves::begin);
        let is_silent = |worker: &mut WorkerLoop| {
            let timeline = &worker.timeline;
            !worker.ear.listen(timeline.home(), timeline.workspace()).is_empty()
        };
        let run = match wanted {
            Some(run) => run,
            // Nobody asked for it: a client is at work whose events do not come.
            None if self.guarded(is_silent) == Some(true) => "local".to_owned(),
            None => {
                self.queue.done();
                return false;
            }
        };
        let began = Instant::now();
        let is_covered = watcher::snapshot(&self.watcher).covers_all();
        if guard_in_force(self.timeline.policy(), &self.timeline.workspace().dir) == Guard::Off {
            self.queue.done();
            let told = self.queue.with_saves(|saves| saves.put_off(Instant::now()));
            told.into_iter().for_each(|told| _ = self.guarded(|_| told(None)));
            return false;
        }
        let taken = self.guarded(|worker| worker.take(&saves::take_for(&run), &[])).unwrap_or_else(|| Err(bug()));
        let saved = taken.map(Arc::new);
        let is_new = saved.as_ref().is_ok_and(|taken| !taken.unchanged);
        self.queue.done();
        let now = Instant::now();
        let told = self.queue.with_saves(|saves| saves.end(&saved, is_covered, (now, now - began)));
        told.into_iter().for_each(|told| _ = self.guarded(|_| told(Some(&saved))));
        self.guarded(|worker| worker.timeline.keep_repository());
        is_new
    }

    fn protect(&mut self, group: &[Wanted]) -> Vec<Result<Protected>> {
        let stop = Arc::clone(&self.stop);
        let control = move || if stop.load(Ordering::SeqCst) { Flow::Stop } else { Flow::Continue };
        let last = self.last.take();
        let mut results: Vec<Option<Result<Protected>>> = Vec::new();
        for wanted in group {
            results.push(protect::held(&mut self.timeline, wanted, last.as_ref(), &control).transpose());
        }
        self.last = last;
        let open: Vec<&Wanted> =
            group.iter().zip(&results).filter(|(_, result)| result.is_none()).map(|(w, _)| w).collect();
        let Some(take) = protect::joined(&open, self.last.as_ref()) else {
            return results.into_iter().flatten().collect();
        };
        let taken = self.take(&take, &open);
        let mut first = true;
        let mut all = Vec::new();
        for (wanted, result) in group.iter().zip(results) {
            all.push(result.unwrap_or_else(|| {
                let taken = taken.as_ref().map_err(again)?;
                let is_first = std::mem::take(&mut first);
                Ok(protect::answered(wanted, taken, (is_first, self.last.as_ref())))
            }));
        }
        if let Ok(taken) = &taken {
            let now = Instant::now();
            let in_time = open.iter().find(|wanted| wanted.is_of_turn && wanted.deadline.is_none_or(|at| now < at));
            self.last = in_time.map(|wanted| LastTurn::of(&wanted.take, &taken.checkpoint)).or(self.last.take());
        }
        all
    }

    /// Takes a checkpoint. If an action has waited for long, the paths that waiting actions name are captured first,
    /// and the scan begins again. Each time it may run longer before that, so that it comes to its end.
    fn take(&mut self, take: &Take, open: &[&Wanted]) -> Result<Taken> {
        let mut patience = Duration::ZERO;
        // Asked again and again: a capture that begins with the changes alone may find that it has to scan.
        let is_scanning = self.timeline.scanning();
        loop {
            let (began, gave_way) = (Instant::now(), Cell::new(false));
            let (stop, queue) = (Arc::clone(&self.stop), Arc::clone(&self.queue));
            let control = || {
                let is_pressed = || {
                    let now = Instant::now();
                    now >= began + patience
                        && (open.iter().any(|wanted| wanted.is_pressing(now)) || queue.is_pressed(now))
                };
                if stop.load(Ordering::SeqCst) {
                    return Flow::Stop;
                }
                // A capture that looks only at changes is not begun again: that would cost a scan.
                gave_way.set(gave_way.get() || (is_scanning.load(Ordering::SeqCst) && is_pressed()));
                if gave_way.get() { Flow::Stop } else { Flow::Continue }
            };
            match self.timeline.take(take, &control) {
                Err(error) if gave_way.get() && error.code() == Code::ShuttingDown => {
                    self.capture_named(open);
                    patience = began.elapsed().mul_f64(BACK_OFF);
                }
                taken => return taken,
            }
        }
    }

    /// Captures just the paths that waiting actions name.
    fn capture_named(&mut self, open: &[&Wanted]) {
        let now = Instant::now();
        let mut named: Vec<_> = open.iter().filter_map(|wanted| wanted.pressing(now)).collect();
        named.extend(self.queue.pressing(now));
        let Some(take) = protect::only_named(&named) else { return };
        let stop = Arc::clone(&self.stop);
        let control = move || if stop.load(Ordering::SeqCst) { Flow::Stop } else { Flow::Continue };
        match self.timeline.take(&take, &control) {
            Ok(taken) => protect::hand_out(named, taken),
            Err(error) => {
                tracing::warn!(%error, "the capture of the named paths failed");
                protect::give_up(named);
            }
        }
    }

    /// Drops captures of named paths that no client was answered with, where the checkpoint of everything came in time. Behind the
    /// deadline the action may have begun, and then no other checkpoint has these paths as they were.
    fn forget_named(&mut self, group: &[Wanted], came: Option<Instant>) {
        let is_in_time =
            |wanted: &&Wanted| came.is_some_and(|came| wanted.deadline.is_none_or(|deadline| came < deadline));
        for leaf in group.iter().filter(is_in_time).filter_map(|wanted| wanted.named.forget()) {
            if let Err(error) = self.timeline.forget(&leaf) {
                tracing::warn!(%error, "could not remove a capture of named paths");
            }
        }
    }
}

/// Returns the words of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

/// Makes an error for each of those who share its cause.
fn again(error: &Error) -> Error {
    Error::new(error.code(), error.text())
}

#[cfg(test)]
mod tests;
