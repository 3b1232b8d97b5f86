//! Workers whose captures and bugs the test controls.

use std::collections::BTreeSet;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::agents::Client;
use crate::checkpoint::capture::request::Selection;
use crate::checkpoint::{Home, Workspace};
use crate::engine::silence::judge::Silence;
use crate::model::change::{Admits, ChangeSource, Changes, Why};
use crate::model::checkpoint::CheckpointKind;
use crate::model::path::RelPath;
use crate::worktree::Target;

/// The longest wait of a test.
const WAIT: Duration = Duration::from_mins(1);

/// A source of changes that reports what the test puts there; `None` stands for a bug.
#[derive(Clone)]
struct Told(Arc<Mutex<Option<Changes>>>);

impl Told {
    fn put(&self, changes: Option<Changes>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = changes;
    }
}

impl ChangeSource for Told {
    fn sync(&mut self, _admits: Admits<'_>) -> Changes {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mem::replace(told.as_mut().expect("a bug of the source"), Changes::none())
    }

    fn watch(&mut self, _dir: &RelPath, _admits: Admits<'_>) {}

    fn place_watches(&mut self, _admits: Admits<'_>) -> bool {
        assert!(self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some(), "a bug of the source");
        false
    }

    fn always_report(&mut self, _paths: &BTreeSet<RelPath>) {}
}

/// A workspace with three files.
struct Lab {
    temp: tempfile::TempDir,
    told: Told,
}

impl Lab {
    fn rounds(&self) -> Arc<Rounds> {
        Arc::new(Rounds::new(self.home(), Vec::new()))
    }

    /// Makes it with a timeline that is live.
    fn live() -> (Lab, Timeline) {
        let temp = tempfile::tempdir().unwrap();
        let work = temp.path().join("work");
        std::fs::create_dir(&work).unwrap();
        ["f", "g", "h"].iter().for_each(|name| std::fs::write(work.join(name), name).unwrap());
        let lab = Lab { temp, told: Told(Arc::new(Mutex::new(Some(Changes::none())))) };
        let (home, work) = (lab.home(), work.canonicalize().unwrap());
        let policy = crate::settings::load(Some(&work), home.path(), &[]).unwrap().policy;
        let workspace = Workspace::open(&home, &work).unwrap();
        let mut timeline = Timeline::open(&home, workspace, policy).unwrap();
        timeline.keep_warm();
        // Files that were written just now are read again until their times prove something.
        while timeline.take(&take(&[]), &|| Flow::Continue).unwrap().cost.hashed > 0 {}
        timeline.set_change_source(Some(Box::new(lab.told.clone())));
        timeline.warm_up(&|| Flow::Continue).unwrap();
        assert!(timeline.is_live());
        (lab, timeline)
    }

    fn home(&self) -> Home {
        Home::at(&self.temp.path().join("home")).unwrap()
    }

    /// Makes a worker without a thread.
    fn worker(&self, timeline: Timeline, ear: Ear) -> WorkerLoop {
        WorkerLoop {
            timeline,
            queue: Arc::default(),
            stop: Arc::default(),
            watcher: SharedStatus::default(),
            idle: Idle::new(self.rounds(), ChangeSignal::new(|| {})),
            ear: Arc::new(ear),
            last: None,
        }
    }

    /// Returns the bugs that were written down.
    fn bugs(&self) -> Vec<String> {
        let is_bug = |entry: &String| entry.contains("a bug ended some work on");
        mishaps::newest(&self.home()).into_iter().filter(is_bug).collect()
    }
}

/// A request for everything, which names these paths.
fn take(named: &[&str]) -> Take {
    let target = |name: &&str| Target { path: RelPath::parse(name.as_bytes()).unwrap(), recursive: false };
    let mut take = Take::of(CheckpointKind::Auto, "r", "test");
    take.draft.turn = Some("t".to_owned());
    Take { selection: Selection::with(named.iter().map(target).collect()), ..take }
}

/// An action of a turn whose deadline comes near.
fn action(named: &[&str], done: protect::Done) -> Wanted {
    let now = Instant::now();
    let mut wanted = Wanted::base(take(named), done);
    (wanted.is_of_turn, wanted.waits, wanted.press_at) = (true, true, Some(now));
    wanted
}

/// A continuation that sends the result's word.
fn told(to: &Sender<&'static str>, word: &'static str) -> protect::Done {
    let to = to.clone();
    Box::new(move |_, result| Box::new(move || to.send(if result.is_ok() { word } else { "failed" }).unwrap()))
}

/// Has the worker do a job that says so.
fn next_job(worker: &Worker, to: &Sender<&'static str>, told: &Receiver<&'static str>) {
    let to = to.clone();
    let job: Job = Box::new(move |_, _| Box::new(move || to.send("next").unwrap()));
    assert!(worker.submit(job).is_ok());
    assert_eq!(told.recv_timeout(WAIT), Ok("next"));
}

#[test]
fn a_capture_gives_way_if_it_has_to_scan_although_its_tree_was_live() {
    for (changes, gives_way) in [(Changes::none(), false), (Changes::Everything(Why::Overflow), true)] {
        let (lab, timeline) = Lab::live();
        let mut worker = lab.worker(timeline, Ear::default());
        std::fs::write(lab.temp.path().join("work/f"), "changed").unwrap();
        lab.told.put(Some(changes));
        let waiting = action(&["f"], Box::new(|_, _| Box::new(|| ())));
        let taken = worker.take(&take(&[]), &[&waiting]).unwrap();
        assert!(taken.checkpoint.record.is_whole());
        let named = waiting.named.tell();
        assert_eq!(named.is_some(), gives_way);
        assert!(named.is_none_or(|named| named.checkpoint.record.ordinal < taken.checkpoint.record.ordinal));
    }
}

#[test]
fn a_capture_of_named_paths_stays_if_the_checkpoint_of_everything_came_behind_the_deadline() {
    for (wait, stays) in [(WAIT, false), (Duration::ZERO, true)] {
        let (lab, timeline) = Lab::live();
        let mut worker = lab.worker(timeline, Ear::default());
        std::fs::write(lab.temp.path().join("work/f"), "changed").unwrap();
        lab.told.put(Some(Changes::Everything(Why::Overflow)));
        let mut waiting = action(&["f"], Box::new(|_, _| Box::new(|| ())));
        waiting.deadline = Some(Instant::now() + wait);
        worker.capture(waiting);
        let all = worker.timeline.catalog().all().unwrap();
        let named: Vec<_> = all.checkpoints.iter().filter(|one| !one.record.is_whole()).collect();
        assert_eq!(named.len(), usize::from(stays), "no answer named it, and the action may have begun");
        assert!(
            all.newest_whole()
                .is_some_and(|whole| named.iter().all(|named| named.record.ordinal() < whole.record.ordinal()))
        );
    }
}

#[test]
fn a_look_that_gives_way_to_no_job_gives_way_to_named_paths() {
    let (lab, mut timeline) = Lab::live();
    // The watches have to be placed anew, and so everything is checked.
    timeline.set_change_source(Some(Box::new(lab.told.clone())));
    let mut worker = lab.worker(timeline, Ear::default());
    let waiting = action(&["f"], Box::new(|_, _| Box::new(|| ())));
    let named = waiting.named.clone();
    assert!(worker.queue.push(Item::Capture(Box::new(waiting))).is_ok());
    // It gives way to the job a few times first.
    for _ in 0..8 {
        worker.idle(IdleTask::Watch);
    }
    assert!(named.tell().is_some_and(|taken| !taken.checkpoint.record.is_whole()));
    assert!(worker.timeline.is_live(), "the look came to its end");
}

#[test]
fn a_bug_in_one_continuation_costs_no_other_client_its_answer() {
    let (lab, timeline) = Lab::live();
    let worker = Worker::start(timeline, lab.rounds(), Arc::default()).unwrap();
    let ((to, answers), (go, gone)) = (channel(), channel::<()>());
    // Until all wait, so that one checkpoint serves them.
    let first: Job = Box::new(move |_, _| {
        gone.recv().unwrap();
        Box::new(|| ())
    });
    assert!(worker.submit(first).is_ok());
    let bug = || -> protect::Done { Box::new(|_, _| panic!("a bug of the first")) };
    assert!(worker.capture(action(&["f"], bug())).is_ok());
    assert!(worker.capture(action(&["g"], told(&to, "second"))).is_ok());
    assert!(worker.capture(action(&["h"], Box::new(|_, _| Box::new(|| panic!("a bug of the third"))))).is_ok());
    assert!(worker.capture(action(&["h"], told(&to, "fourth"))).is_ok());
    assert!(worker.capture_base(Wanted::base(take(&[]), bug())));
    assert!(worker.capture_base(Wanted::base(take(&[]), told(&to, "base"))));
    go.send(()).unwrap();
    let mut words: Vec<_> = (0..3).map(|_| answers.recv_timeout(WAIT).unwrap()).collect();
    words.sort_unstable();
    assert_eq!(words, ["base", "fourth", "second"]);
    next_job(&worker, &to, &answers);
    assert!(worker.submit(Box::new(|_, _| panic!("a bug of a job"))).is_ok());
    next_job(&worker, &to, &answers);
    let bugs = lab.bugs();
    assert!(bugs.len() == 3 && bugs.iter().filter(|bug| bug.contains("a bug of the first")).count() == 1, "{bugs:?}");
}

#[test]
fn a_bug_in_idle_time_is_written_down_once_and_the_next_job_is_done() {
    let (lab, mut timeline) = Lab::live();
    // The watches have to be placed anew, in the idle task after each job.
    timeline.set_change_source(Some(Box::new(lab.told.clone())));
    lab.told.put(None);
    let worker = Worker::start(timeline, lab.rounds(), Arc::default()).unwrap();
    let (to, answers) = channel();
    (0..3).for_each(|_| next_job(&worker, &to, &answers));
    let until = Instant::now() + WAIT;
    while lab.bugs().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    lab.told.put(Some(Changes::none()));
    next_job(&worker, &to, &answers);
    while !worker.watcher().warm && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let bugs = lab.bugs();
    assert!(bugs.len() == 1 && bugs[0].contains("a bug of the source"), "{bugs:?}");
    assert!(worker.watcher().warm);
}

#[test]
fn changes_that_a_bug_between_jobs_has_lost_are_found_by_a_scan() {
    let (lab, timeline) = Lab::live();
    let worker = Worker::start(timeline, lab.rounds(), Arc::default()).unwrap();
    let (to, answers) = channel();
    next_job(&worker, &to, &answers);
    std::fs::write(lab.temp.path().join("work/f"), "changed").unwrap();
    lab.told.put(None);
    worker.sync_ahead();
    let until = Instant::now() + WAIT;
    while lab.bugs().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    lab.told.put(Some(Changes::none()));
    let to_here = to.clone();
    let taken = Box::new(move |_: &mut Timeline, result: Result<Protected>| -> Answer {
        let changed = matches!(result, Ok(Protected::Taken(taken)) if taken.changed == Some(1));
        Box::new(move || to_here.send(if changed { "changed" } else { "lost" }).unwrap())
    });
    assert!(worker.capture(action(&[], taken)).is_ok());
    assert_eq!(answers.recv_timeout(WAIT), Ok("changed"));
    assert_eq!(lab.bugs().len(), 1);
}

#[test]
fn a_worker_that_ends_takes_nothing_more() {
    let (lab, timeline) = Lab::live();
    let worker = Worker::start(timeline, lab.rounds(), Arc::default()).unwrap();
    let (to, answers) = channel();
    assert!(worker.capture_base(Wanted::base(take(&[]), told(&to, "base"))));
    worker.close(Instant::now());
    assert!(!worker.capture_base(Wanted::base(take(&[]), told(&to, "late"))));
    assert!(worker.capture(action(&["f"], told(&to, "late"))).is_err());
    assert!(worker.submit(Box::new(|_, _| Box::new(|| ()))).is_err());
    // Those that were taken before are done.
    assert_eq!(answers.recv_timeout(WAIT), Ok("base"));
    let until = Instant::now() + WAIT;
    while !worker.close(Instant::now()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(worker.close(Instant::now()));
}

#[test]
fn a_changed_tree_is_saved_unasked_only_where_a_client_is_silent() {
    let silence = Silence { client: Client::ClaudeCode, since: 1 };
    for (found, is_saved) in [(vec![], false), (vec![silence], true)] {
        let (lab, timeline) = Lab::live();
        let mut worker = lab.worker(timeline, Ear::with(found));
        std::fs::write(lab.temp.path().join("work/f"), "changed").unwrap();
        lab.told.put(Some(Changes::Everything(Why::Overflow)));
        assert_eq!(worker.save(), is_saved);
        let all = worker.timeline.catalog().all().unwrap();
        let saves = all.checkpoints.iter().filter(|one| one.record.kind == CheckpointKind::Autosave).count();
        assert_eq!(saves, usize::from(is_saved));
        lab.told.put(Some(Changes::none()));
        assert!(!worker.save(), "nothing changed since");
    }
}
