//! Events before an action: classified, decided, and answered at once or left to the worker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::collisions::{CollisionAnswer, CollisionQuestion};
use super::deadlines::{Awaited, Outcome, with};
use super::decision::{ActionDecision, Decision, Protection, Stance, TurnDecision};
use super::event::{Action, Doing};
use super::finish::Finish;
use super::guard::Due;
use super::job::{Answer, bug, busy};
use super::links::OpaqueAction;
use super::named_paths::NamedPaths;
use super::names::{named, shown};
use super::parts::{self, Gathering, OtherParts, OtherReach};
use super::protect::{NamedCapture, Protected, Wanted};
use super::reach::{self, ActionReach};
use super::rules::InForce;
use super::scan_time::since_boot;
use super::session::{Reply, Session};
use super::task::{PartAction, Task};
use super::unguarded::{keep_unguarded, keep_unplaced};
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::records::workspace::Scope;
use crate::classify::{Context, ToolCall};
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::{Confidence, Programs, Verdict, Warning};
use crate::model::policy::{Guard, OnFailure, Policy};
use crate::model::redact::redact;
use crate::sys::clock::{file_clock, now_ms};

/// An action that was judged.
struct Judged {
    /// The workspace in which the action runs, which may not be the session's own.
    open: Arc<OpenWorkspace>,
    /// The configuration by which it was judged.
    rules: Arc<InForce>,
    /// The classifier's answer.
    verdict: Verdict,
    /// The paths that it may destroy, after a look at the disk.
    reach: ActionReach,
    /// The guard's decision.
    due: Due,
    /// The parts of it in other workspaces, or why they cannot be told.
    parts: Result<OtherParts>,
    /// The directory in which it runs, by its real name.
    cwd: PathBuf,
    /// The time at which the event came.
    asked: Instant,
    /// The answer, all but the checkpoint.
    decision: Box<ActionDecision>,
}

impl Session {
    /// Classifies an action, decides, and answers at once or leaves it to the worker.
    pub(super) fn before(&mut self, action: Action, reply: Reply<Decision>) {
        self.begin_turn_with(&action);
        let reply: Reply<Decision> = Box::new(|session, decided| {
            let decided = decided.map(|decision| session.with_notices(decision));
            reply(session, decided);
        });
        match self.judge(&action) {
            Ok(judged) => self.decide(&action, judged, reply),
            Err(error) => reply(self, Err(error)),
        }
    }

    /// Classifies a command and does nothing else.
    ///
    /// # Errors
    /// As [`Session::workspace`].
    pub fn classify(&mut self, command: &str, cwd: Option<&Path>) -> Result<Verdict> {
        let open = self.workspace()?;
        let rules = open.in_force();
        let surroundings = open.context(self.engine.home(), &self.directory(&open, cwd));
        Ok(reach::judged_line(surroundings, &rules.classifier, command, &rules.policy))
    }

    fn judge(&mut self, action: &Action) -> Result<Judged> {
        let own = self.workspace()?;
        self.note_client(&own);
        let cwd = self.directory(&own, action.cwd.as_deref());
        let root = self.engine.root_of(&own.workspace, &cwd);
        let open = if root == own.workspace.path { Arc::clone(&own) } else { self.engine.open(&root)? };
        if !Arc::ptr_eq(&own, &open) {
            // The session's own workspace was followed before the event; this one was not.
            self.follow_settings(&open);
        }
        let (rules, record) = (open.in_force(), &open.workspace);
        let asked = Instant::now();
        if self.state().turns.checkpoint(&record.id).is_none() {
            // Started now: the watcher catches up while the action is judged.
            open.worker.sync_ahead();
        }
        let surroundings = open.context(self.engine.home(), &cwd);
        let mut verdict = reach::judged(surroundings, |context| verdict(action, &rules, context));
        let mut reach = reach::reach(&record.path, &cwd, &verdict);
        if let (Doing::Shell { command }, Programs::Any) = (&action.what, verdict.programs) {
            reach::add_named_behind_links(&mut reach, &record.path, &cwd, command);
        }
        if record.scope == Scope::TargetsOnly {
            // Such a directory is too broad to be captured as a whole, whatever the action does.
            reach.targets.retain(|target| !target.path.is_root());
            reach.is_everything = false;
        }
        let parts = parts::others(&self.engine, (&own.workspace, record), (&cwd, &verdict), &mut reach);
        let is_off = WorkspaceState::load(&record.dir).is_off(now_ms());
        let due = self.state().turns.due(&record.id, &verdict, &rules.policy, is_off);
        if due == Due::Off || !parts.as_ref().is_ok_and(|parts| parts.are_all_saved) {
            verdict.warnings.iter_mut().for_each(|warning| warning.on_files = None);
        }
        // If there are other parts, the message depends on their answers.
        let is_saved = parts.as_ref().is_ok_and(|parts| parts.reached.is_empty());
        let warnings = verdict.warnings.iter().map(redacted);
        let warnings = warnings.map(|warning| if is_saved { warning.of_saved() } else { warning }).collect();
        let decision = Box::new(ActionDecision {
            stance: Stance::of(&verdict),
            action: action.id.clone(),
            turn: self.run_and_turn().1,
            needs: verdict.needs,
            confidence: verdict.confidence,
            effects: verdict.effects.clone(),
            warnings,
            protection: Protection::NotNeeded(None),
            not_held: Vec::new(),
            collisions: Vec::new(),
            others: Vec::new(),
            notices: Vec::new(),
            silent: Vec::new(),
        });
        Ok(Judged { open, rules, verdict, reach, due, parts, cwd, asked, decision })
    }

    /// Has each workspace that the action reaches protected. The answer comes when all of them are there, or late.
    fn decide(&mut self, action: &Action, mut judged: Judged, reply: Reply<Decision>) {
        let parts = std::mem::replace(&mut judged.parts, Ok(OtherParts::default()));
        let parts = parts.map_or_else(|error| vec![OtherReach::unknown(error)], |parts| parts.reached);
        if parts.is_empty() {
            return self.decide_own(action, judged, reply);
        }
        let on_failure = judged.rules.policy.on_failure;
        let gathering = Gathering::new(reply, parts.len());
        let shared = PartAction {
            action,
            verdict: Verdict { warnings: Vec::new(), ..judged.verdict.clone() },
            cwd: judged.cwd.clone(),
            asked: judged.asked,
            is_part: true,
            is_linked: false,
        };
        // The other workspaces come first. So the note of the turn in the own one, which the answer waits for, names them: after a kill
        // the turn still knows where its files were saved.
        for part in parts {
            self.decide_gathered(&shared, part, &gathering, on_failure);
        }
        self.decide_own(action, judged, gathering.own());
    }

    /// Has the part of an action in another workspace protected. `gathering` gets its answer.
    pub(super) fn decide_gathered(
        &mut self,
        shared: &PartAction<'_>,
        part: OtherReach,
        gathering: &Arc<Gathering>,
        on_failure: OnFailure,
    ) {
        let root = part.root.clone();
        if let Err(error) = self.decide_part(shared, part, gathering) {
            self.fault(error.text());
            keep_unplaced(named(shared.action), &shared.cwd, &error, on_failure);
            gathering.fail(self, root, error.text(), on_failure);
        }
    }

    /// Notes paths outside every workspace that the open turn may destroy without a checkpoint. Its undo does not restore them.
    pub(super) fn note_lost(&self, paths: &[PathBuf]) {
        if let Some(first) = paths.first() {
            let mut state = self.state();
            state.turns.lose_outside(first, paths.len());
            state.keep();
        }
    }

    /// Has the part of an action in another workspace protected.
    fn decide_part(&mut self, shared: &PartAction<'_>, part: OtherReach, gathering: &Arc<Gathering>) -> Result<()> {
        let beyond = part.gaps();
        let OtherReach { root, mut reach, broad, refused } = part;
        if root == Path::new(parts::OUTSIDE) {
            self.note_lost(&broad.iter().map(|path| path.under(&root)).collect::<Vec<_>>());
        }
        if let Some(error) = refused {
            return Err(error);
        }
        let open = self.engine.open(&root)?;
        self.follow_settings(&open);
        let (rules, record) = (open.in_force(), &open.workspace);
        if record.scope == Scope::TargetsOnly {
            reach.targets.retain(|target| !target.path.is_root());
            reach.is_everything = false;
        }
        let is_off = WorkspaceState::load(&record.dir).is_off(now_ms());
        let due = self.state().turns.standing(&record.id, &rules.policy, is_off);
        let reply = Session::noting_loss(&root, &reach, gathering.part(root.clone()));
        let paths = match shared.is_linked {
            true => NamedPaths { and_others: true, ..NamedPaths::default() },
            false => NamedPaths::of(&record.path, &shared.cwd, shared.action, &shared.verdict, &reach),
        };
        let note = self.note_of(&open, shared.action, (&shared.cwd, &shared.verdict), paths);
        let record = self.record_of(shared.action, &shared.verdict, &reach, &due);
        if let Some(protection) = at_once(&open, &due, &reach) {
            self.record_quietly(&open, record, &protection);
            let decision = ActionDecision { protection, not_held: beyond, ..ActionDecision::of_part() };
            let answer = (Decision::Action(Box::new(decision)), reply);
            self.answer_noted(&open, note, shared.action.wait, answer);
            return Ok(());
        }
        let take = self.take_for(&shown(&format!("{}{}", self.when(), named(shared.action))));
        let begins = if self.turn_begins_in(&open) { self.open_turn() } else { None };
        let task = Task { beyond, note, record, begins, ..Task::of(&open, take, reach, due, shared) };
        self.protect(&open, &rules, Decision::Action(Box::new(ActionDecision::of_part())), task, reply);
        Ok(())
    }

    /// Returns the reply for a part that also notes what may be lost outside every workspace. That is all of it without a checkpoint in
    /// time, else what the checkpoint does not contain.
    fn noting_loss(root: &Path, reach: &ActionReach, reply: Reply<Decision>) -> Reply<Decision> {
        if root != Path::new(parts::OUTSIDE) {
            return reply;
        }
        let paths: Vec<PathBuf> = reach.targets.iter().map(|target| target.path.under(root)).collect();
        let root = root.to_owned();
        Box::new(move |session, decided| {
            let lost = match &decided {
                Ok(Decision::Action(action)) => match action.protection {
                    Protection::Late { .. } | Protection::Failed(_) => paths,
                    Protection::NotNeeded(_) | Protection::Off(_) | Protection::Taken(_) | Protection::Held(_) => {
                        // Paths that are too broad for a checkpoint are noted already.
                        let left_out = action.not_held.iter().map(|gap| gap.path.under(&root));
                        left_out.filter(|path| paths.iter().any(|target| path.starts_with(target))).collect()
                    }
                },
                Ok(_) => Vec::new(),
                Err(_) => paths,
            };
            session.note_lost(&lost);
            reply(session, decided);
        })
    }

    /// Has the action protected in its own workspace.
    fn decide_own(&mut self, action: &Action, judged: Judged, reply: Reply<Decision>) {
        let Judged { open, rules, verdict, reach, due, parts: _, cwd, asked, decision } = judged;
        let reason = shown(&format!("{}{}", self.when(), named(action)));
        let take = self.take_for(&reason);
        let paths = NamedPaths::of(&open.workspace.path, &cwd, action, &verdict, &reach);
        let mut note = self.note_of(&open, action, (&cwd, &verdict), paths);
        let record = self.record_of(action, &verdict, &reach, &due);
        if let Some(protection) = at_once(&open, &due, &reach) {
            let left_out = match (&due, note.as_mut()) {
                (Due::Nothing, Some(note)) => self.add_step(note, &open, &verdict, &reason),
                (Due::Held(_), note) => {
                    self.add_extra_step(note, &open, &verdict, &reason);
                    None
                }
                _ => None,
            };
            let protection = left_out.unwrap_or(protection);
            self.record_quietly(&open, record, &protection);
            let decision = Decision::Action(Box::new(ActionDecision { protection, ..*decision }));
            return self.answer_noted(&open, note, action.wait, (decision, reply));
        }
        self.add_extra_step(note.as_mut(), &open, &verdict, &reason);
        let is_opaque = verdict.confidence == Confidence::Opaque && open.workspace.scope == Scope::Tree;
        let opaque = is_opaque.then(|| {
            let (action, verdict) = (action.clone(), Verdict { warnings: Vec::new(), ..verdict.clone() });
            Box::new(OpaqueAction { action, verdict, cwd: cwd.clone(), asked })
        });
        let shared = PartAction { action, verdict, cwd, asked, is_part: false, is_linked: false };
        let begins = if self.turn_begins_in(&open) { self.open_turn() } else { None };
        let task = Task { note, record, begins, opaque, ..Task::of(&open, take, reach, due, &shared) };
        self.protect(&open, &rules, Decision::Action(decision), task, reply);
    }

    /// Returns the beginning of the reason of an action's checkpoint. It says "before" only if the client waits for it.
    fn when(&self) -> &'static str {
        if self.waits { "before " } else { "possibly too late for " }
    }

    /// Returns a request for the checkpoint of an action, for the open turn of the session's run.
    fn take_for(&self, reason: &str) -> Take {
        let (run, turn) = self.recording();
        let mut take = Take::of(CheckpointKind::Auto, &run, reason);
        take.draft.turn = turn;
        take
    }

    /// Takes the checkpoint of a turn that begins, for a client that waits for no answer before it acts.
    pub(super) fn protect_turn(&mut self, open: &Arc<OpenWorkspace>, decision: TurnDecision, reply: Reply<Decision>) {
        let without = if let Some(why) = open.why_off() {
            Some(Protection::Off(Some(why)))
        } else if open.workspace.scope == Scope::TargetsOnly {
            Some(Protection::NotNeeded(Some("this directory is too broad to capture".to_owned())))
        } else {
            None
        };
        let decision = Decision::Turn(decision);
        if let Some(protection) = without {
            return reply(self, Ok(with(decision, protection, None)));
        }
        let take = self.take_for("skipped at the start of a turn, because no client reads this stream then");
        let task = Task {
            take,
            turn: None,
            reaches_all: false,
            starts_others: false,
            wait: None,
            is_part: false,
            beyond: Vec::new(),
            judged: None,
            note: None,
            record: None,
            begins: self.open_turn(),
            opaque: None,
        };
        self.protect(open, &open.in_force(), decision, task, reply);
    }

    /// Asks the worker for the checkpoint. The answer comes with it, or at the deadline.
    fn protect(
        &mut self,
        open: &Arc<OpenWorkspace>,
        rules: &InForce,
        decision: Decision,
        mut task: Task,
        reply: Reply<Decision>,
    ) {
        let longest = rules.policy.deadline;
        let wait = task.wait.map_or(longest, |wait| wait.min(longest));
        // Two clocks: deadlines need a steady one, and files carry the file system's.
        let (now, since) = (Instant::now(), file_clock());
        let deadline = now + wait;
        task.take.draft.answer_by = Some(deadline);
        let question = self.question(open, &task, &rules.policy);
        let (named, follows_links) = (NamedCapture::default(), task.opaque.is_some());
        let effects = task.judged.as_ref().map_or(&[][..], |(verdict, _)| &verdict.effects);
        let awaited = Awaited {
            is_turns: self.waits || matches!(decision, Decision::Turn(_)),
            decision,
            reply: Some(reply),
            deadline,
            on_failure: rules.policy.on_failure,
            collision: CollisionAnswer::of(rules.policy.collision, effects),
            root: task.is_part.then(|| open.workspace.path.clone()),
            workspace: open.workspace.id.clone(),
            turn: task.take.draft.turn.clone(),
            named: named.clone(),
            unguarded: task.record.as_ref().map(|record| record.unguarded(open)),
            opaque: task.opaque,
        };
        // Only looked up for the closure: `add` gives the ticket below, once the job is queued.
        let ticket = self.deadlines.next_ticket();
        let (reaches_all, is_noted, later) = (task.reaches_all, task.note.is_some(), Arc::clone(&self.later));
        let may_scan = task.starts_others && !reaches_all && self.state().scans.allows(since_boot());
        let finish = Finish {
            take: task.take.clone(),
            reaches_all,
            beyond: task.beyond,
            judged: task.judged,
            tree: (open.workspace.scope == Scope::Tree).then(|| open.workspace.path.clone()),
            note: task.note,
            record: task.record,
            begins: task.begins,
            question,
            deadline,
            since,
            follows_links,
        };
        let done = move |timeline: &mut Timeline, protected: Result<Protected>| -> Answer {
            let finished = catch_unwind(AssertUnwindSafe(|| finish.outcome(timeline, protected)));
            let outcome = finished.unwrap_or_else(|_| Outcome::failed(bug()));
            // With the time in the queue: rather too few scans than too many.
            let scanned = if may_scan && !timeline.is_live() { now.elapsed() } else { outcome.scanned };
            let answer = move |session: &mut Session| {
                session.state().has_scanned(scanned);
                session.protected(ticket, outcome);
            };
            Box::new(move || later(Box::new(answer)))
        };
        let wanted = Wanted {
            is_of_turn: rules.policy.guard == Guard::Turn && task.take.draft.turn.is_some(),
            take: task.take,
            turn: task.turn,
            reaches_all,
            starts_others: task.starts_others,
            may_scan,
            is_noted,
            waits: self.waits,
            deadline: Some(deadline),
            press_at: Some(Wanted::press_at(now, wait)),
            named,
            done: Box::new(done),
        };
        if open.worker.capture(wanted).is_ok() {
            self.deadlines.add(awaited);
            return;
        }
        self.answer_busy(awaited);
    }

    /// Returns what has to be asked about the work of others that an action may destroy.
    fn question(&self, open: &OpenWorkspace, task: &Task, policy: &Policy) -> Option<CollisionQuestion> {
        let ((verdict, cwd), answer) = (task.judged.as_ref()?, policy.collision);
        let asker = || self.asker(open, &verdict.losses, answer);
        CollisionQuestion::of(answer, &open.workspace.path, (verdict, cwd.as_path()), asker)
    }

    /// Answers an action for which the worker has no room.
    fn answer_busy(&mut self, awaited: Awaited) {
        let hold = (awaited.on_failure == OnFailure::Hold).then_some("no checkpoint could be taken");
        let decision = with(awaited.decision, Protection::Failed(busy().text()), hold);
        keep_unguarded(awaited.unguarded, &decision);
        if let Some(reply) = awaited.reply {
            reply(self, Ok(decision));
        }
    }
}

fn verdict(action: &Action, rules: &InForce, context: &Context) -> Verdict {
    let verdict = match &action.what {
        Doing::Shell { command } => rules.classifier.shell(command, context, &rules.policy),
        Doing::Tool(tool) => {
            let (name, input, paths) = (&tool.name, &tool.input, &tool.paths);
            let call = ToolCall { tool: name, input, paths, writes: tool.writes, external: tool.external };
            rules.classifier.tool(&call, context, &rules.policy)
        }
    };
    if action.doubt { verdict.doubted() } else { verdict }
}

/// Returns the answer to an action that needs no look at its files.
fn at_once(open: &OpenWorkspace, due: &Due, reach: &ActionReach) -> Option<Protection> {
    match (due, open.workspace.scope) {
        (Due::Nothing, _) => Some(Protection::NotNeeded(None)),
        (Due::Off, _) => Some(Protection::Off(open.why_off())),
        (_, Scope::TargetsOnly) if reach.targets.is_empty() => {
            let why = "this directory is too broad to capture, and the action names no path in it";
            Some(Protection::NotNeeded(Some(why.to_owned())))
        }
        // All its targets are outside of the workspace.
        (Due::Held(turn), _) if reach.is_nothing() => Some(Protection::Held(turn.clone())),
        _ => None,
    }
}

/// Returns a warning without the secrets of its command, to be shown and logged.
fn redacted(warning: &Warning) -> Warning {
    let on_files = warning.on_files.as_deref().map(redact);
    Warning { message: redact(&warning.message), on_files, ..warning.clone() }
}
