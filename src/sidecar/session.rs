//! One client's session: its workspace, run and turn, and what each line does.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answers::{Answer, block, no_block};
use super::calls;
use super::output::Output;
use super::pending::{Before, Pending, Table};
use super::{Ended, calls::Called};
use crate::checkpoint::journal::Journal;
use crate::checkpoint::operations::History;
use crate::checkpoint::state::State;
use crate::checkpoint::take::Take;
use crate::checkpoint::timeline::Timeline;
use crate::checkpoint::undo::Direction;
use crate::classify::ToolCall;
use crate::engine::act::{self, Protected};
use crate::engine::guard::{Due, Slot, Turns};
use crate::engine::worker::Control;
use crate::engine::{Engine, Place, place};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Kind;
use crate::model::effect::Verdict;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::{Guard, OnFailure, Policy};
use crate::model::redact::redact;
use crate::model::text::{cut, printable};
use crate::protocol::{
    BeforeReply, Body, ErrorReply, HelloReply, Id, Line, Request, ShellBefore, ToolBefore, line, parse,
};
use crate::sys::clock::{file_clock, now_ms};

/// Longest reason of a checkpoint, in characters.
const MAX_REASON: usize = 160;

/// The session.
pub struct Session {
    pub(super) engine: Engine<Answer>,
    pub(super) output: Output,
    pub(super) pending: Table,
    /// The session's workspace, once it is known.
    root: Option<PathBuf>,
    pub(super) run: String,
    /// A run that `run.start` opened and nothing closed.
    open_run: bool,
    pub(super) turns: Turns,
    base_ready: bool,
    base_running: bool,
    /// What went wrong and was not anybody's reply.
    pub(super) faults: Vec<String>,
    flags: Vec<(String, String)>,
}

impl Session {
    /// A session before its first line.
    pub fn new(engine: Engine<Answer>, output: Output, root: Option<PathBuf>) -> Session {
        Session {
            engine,
            output,
            pending: Table::default(),
            root,
            run: "local".to_owned(),
            open_run: false,
            turns: Turns::default(),
            base_ready: false,
            base_running: false,
            faults: Vec::new(),
            flags: Vec::new(),
        }
    }

    /// The longest accepted line; read once, before any workspace is known.
    pub fn line_limit(&self) -> usize {
        let settings = crate::settings::load(None, self.engine.home().path(), &self.flags);
        settings.map_or(8 << 20, |effective| effective.policy.limits.line_bytes)
    }

    /// Does what a line asks; `true` when it asks for the end.
    pub fn line(&mut self, line: Line) -> bool {
        let request = match line {
            Line::TooLong(bytes, number) => {
                let text = format!("line {number} has {bytes} bytes, more than the limit, and was skipped");
                let error = Error::new(Code::LineTooLong, text).line(number).hint("send less in one line");
                self.output.send(ErrorReply::line(None, &error));
                return false;
            }
            Line::Text(text, number) => match parse(&text, number) {
                Ok(request) => request,
                Err(failure) => {
                    self.output.send(ErrorReply::line(failure.id.as_ref(), &failure.error));
                    return false;
                }
            },
        };
        let shutdown = matches!(request.body, Body::Shutdown);
        let id = request.id.clone();
        if let Err(error) = self.request(request) {
            self.output.send(ErrorReply::line(id.as_ref(), &error));
        }
        shutdown
    }

    fn request(&mut self, request: Request) -> Result<()> {
        let (id, name) = (request.id, request.body.name());
        match request.body {
            Body::Hello(hello) => {
                if let Some(workspace) = hello.workspace {
                    self.root = Some(workspace);
                }
                if let Some(session) = &hello.session {
                    self.run = run_id(session);
                }
                self.hello(id)
            }
            Body::RunStart(start) => {
                self.run = run_id(start.run.as_deref().unwrap_or(&format!("r-{}", now_ms())));
                self.open_run = true;
                self.base_capture()?;
                let workspace = self.place()?.workspace.id.clone();
                let branch = format!("{workspace}/{}", self.run);
                self.reply(name, id, &json!({ "run": self.run, "branch": branch }));
                Ok(())
            }
            Body::RunEnd(_) => {
                self.open_run = false;
                self.turns.end();
                self.reply(name, id, &json!({ "run": self.run }));
                Ok(())
            }
            Body::TurnStart(turn) => {
                if let Some(run) = &turn.run {
                    self.run = run_id(run);
                }
                let id_text = cut(&printable(&turn.turn), 64);
                if self.turns.start(&id_text) {
                    self.base_capture()?;
                }
                self.reply(name, id, &json!({ "turn": turn.turn, "notices": [] }));
                Ok(())
            }
            Body::TurnEnd(turn) => {
                if self.turns.current() == Some(turn.turn.as_str()) {
                    self.turns.end();
                }
                self.reply(name, id, &json!({ "turn": turn.turn }));
                Ok(())
            }
            Body::ToolBefore(tool) => self.tool(id, tool),
            Body::ShellBefore(shell) => self.shell(id, shell),
            Body::ToolAfter(_) | Body::ShellAfter(_) | Body::Ping | Body::Shutdown => {
                self.reply(name, id, &json!({}));
                Ok(())
            }
            Body::Classify(classify) => {
                let cwd = self.cwd(classify.cwd.as_deref())?;
                let home = self.engine.home().clone();
                let place = self.place()?;
                let verdict = place.classifier.shell(&classify.command, &place.context(&home, &cwd), &place.policy);
                self.reply(
                    name,
                    id,
                    &json!({ "needs": verdict.needs, "confidence": verdict.confidence,
                    "effects": verdict.effects, "warnings": verdict.warnings }),
                );
                Ok(())
            }
            Body::Status => self.status(id),
            Body::ConfigReload => {
                let warnings = self.engine.reload()?;
                self.reply(name, id, &json!({ "warnings": warnings }));
                self.output.notice("config.reloaded", &json!({}));
                Ok(())
            }
            body => self.call(name, id, body),
        }
    }

    /// Requests that the worker answers.
    fn call(&mut self, name: &'static str, id: Option<Id>, body: Body) -> Result<()> {
        let run = self.run.clone();
        self.submit_call(name, id, move |timeline, control| match body {
            Body::Create(create) => calls::create(timeline, &create, &run, control),
            Body::List(query) => calls::list(timeline, &query, &run, control),
            Body::Show(show) => calls::show(timeline, &show.sha),
            Body::Diff(diff) => calls::diff(timeline, &diff, control),
            Body::Preview(rollback) => calls::preview(timeline, &rollback, &run, control),
            Body::Restore(rollback) => calls::restore(timeline, &rollback, &run, false, control),
            Body::Rollback(rollback) => calls::restore(timeline, &rollback, &run, true, control),
            Body::Undo(step) => calls::step(timeline, Direction::Undo, &step, &run, control),
            Body::Redo(step) => calls::step(timeline, Direction::Redo, &step, &run, control),
            other => Err(Error::new(Code::Internal, format!("`{}` is not a call", other.name()))),
        })
    }

    pub(super) fn submit_call(
        &mut self,
        name: &'static str,
        id: Option<Id>,
        call: impl FnOnce(&mut Timeline, Control<'_>) -> Called + Send + 'static,
    ) -> Result<()> {
        let ticket = self.pending.ticket();
        let place = self.place()?;
        let accepted = place.worker.submit(ticket, move |timeline, control| match call(timeline, control) {
            Ok((value, notices)) => Answer::Reply(Ok(value), notices),
            Err(error) => Answer::Reply(Err(error), Vec::new()),
        });
        if !accepted {
            return Err(busy());
        }
        self.pending.put(ticket, Pending::Call(name, id));
        Ok(())
    }

    /// The session's root, from the option, `hello` or the working directory.
    fn root(&mut self) -> Result<PathBuf> {
        if let Some(root) = &self.root {
            return Ok(root.clone());
        }
        let cwd = std::env::current_dir()
            .map_err(|error| Error::new(Code::WorkspaceGone, format!("the working directory is gone: {error}")))?;
        let known = crate::checkpoint::Workspace::known(self.engine.home())?;
        let root = crate::checkpoint::workspace::root_for(&cwd, &known);
        self.root = Some(root.clone());
        Ok(root)
    }

    /// The session's workspace, open.
    pub(super) fn place(&mut self) -> Result<&mut Place<Answer>> {
        let root = self.root()?;
        self.engine.open(&root)
    }

    fn cwd(&mut self, cwd: Option<&Path>) -> Result<PathBuf> {
        let root = self.root()?;
        Ok(cwd.map_or(root.clone(), |cwd| root.join(cwd)))
    }

    pub(super) fn reply(&self, name: &str, id: Option<Id>, body: &impl serde::Serialize) {
        if let Some(id) = id {
            self.output.send(line(name, Some(&id), true, body));
        }
    }

    fn hello(&mut self, id: Option<Id>) -> Result<()> {
        self.base_capture()?;
        let (running, ready, run) = (self.base_running, self.base_ready, self.run.clone());
        let faults = self.faults.clone();
        let place = self.place()?;
        let interrupted = interrupted(&place.workspace.dir);
        let baseline = if running {
            "running"
        } else if ready {
            "ready"
        } else {
            "none"
        };
        let reply = HelloReply {
            piton: env!("CARGO_PKG_VERSION"),
            workspace: json!({ "id": place.workspace.id, "path": place.workspace.path.to_string_lossy(),
                "scope": place.workspace.scope.as_str() }),
            run,
            guard: guard_word(&place.policy, &place.workspace.dir),
            baseline,
            watcher: "none",
            limits: json!({ "line": place.policy.limits.line_bytes, "deadline_ms": place.policy.deadline.as_millis() as u64 }),
            interrupted: interrupted.clone(),
            faults: faults.into_iter().chain(place.warnings.clone()).collect(),
        };
        self.reply("hello", id, &reply);
        for operation in interrupted {
            self.output.notice("restore.interrupted", &json!({ "operation": operation }));
        }
        Ok(())
    }

    /// Starts capturing in the background, so that the first destructive action need not wait for it.
    fn base_capture(&mut self) -> Result<()> {
        let ticket = self.pending.ticket();
        let run = self.run.clone();
        let turn = self.turns.current().map(str::to_owned);
        let running = self.base_running;
        let place = self.place()?;
        let whole = place.workspace.scope == crate::checkpoint::workspace::Scope::Tree;
        if running || !whole || place.policy.guard == Guard::Off || State::load(&place.workspace.dir).is_off(now_ms()) {
            return Ok(());
        }
        let take = Take { turn, ..Take::of(Kind::Turn, &run, "base capture") };
        let accepted = place
            .worker
            .submit(ticket, move |timeline, control| Answer::Base(timeline.take(&take, control).map(Box::new)));
        if accepted {
            self.base_running = true;
            self.pending.put(ticket, Pending::Base);
        }
        Ok(())
    }

    fn shell(&mut self, id: Option<Id>, event: ShellBefore) -> Result<()> {
        let cwd = self.cwd(event.cwd.as_deref())?;
        let reason = format!("before shell: {}", event.command);
        let action =
            Action { name: "shell.before", id, action: event.action, deadline_ms: event.deadline_ms, cwd, reason };
        let command = event.command;
        self.before(action, |place, context| place.classifier.shell(&command, context, &place.policy))
    }

    fn tool(&mut self, id: Option<Id>, event: ToolBefore) -> Result<()> {
        let cwd = self.cwd(event.cwd.as_deref())?;
        let named = event.paths.first().map(|path| format!(" {path}")).unwrap_or_default();
        let reason = format!("before {}{named}", event.tool);
        let action =
            Action { name: "tool.before", id, action: event.action, deadline_ms: event.deadline_ms, cwd, reason };
        self.before(action, |place, context| {
            let call = ToolCall { tool: &event.tool, input: &event.input, paths: &event.paths, writes: event.writes };
            place.classifier.tool(&call, context, &place.policy)
        })
    }

    /// Classifies an action, decides, and answers at once or leaves it to the worker.
    fn before(
        &mut self,
        action: Action,
        judge: impl FnOnce(&Place<Answer>, &crate::classify::Context) -> Verdict,
    ) -> Result<()> {
        let session = self.root()?;
        let root = self.engine.root_of(&session, &action.cwd);
        let home = self.engine.home().clone();
        let (run, turn) = (self.run.clone(), self.turns.current().map(str::to_owned));
        let place = self.engine.open(&root)?;
        let verdict = judge(place, &place.context(&home, &action.cwd));
        let targets = place::targets(&place.workspace.path, &action.cwd, &verdict.targets);
        let off = State::load(&place.workspace.dir).is_off(now_ms());
        let due = self.turns.due(&place.workspace.id, &verdict, &place.policy, off);
        let effects = act::classes(&verdict);
        let reply = BeforeReply {
            proceed: true,
            reason: None,
            action: action.action.clone(),
            turn: turn.clone(),
            needs: verdict.needs,
            confidence: verdict.confidence,
            effects: verdict.effects.clone(),
            warnings: verdict.warnings.clone(),
            checkpoint: no_block("none", None),
        };
        let held = match &due {
            Due::Held(slot) => Some(slot.clone()),
            Due::Nothing | Due::Off | Due::Take => None,
        };
        let simple = match (&due, place.workspace.scope) {
            (Due::Nothing, _) => Some(no_block("none", None)),
            (Due::Off, _) => Some(no_block("off", Some("the guard is switched off: `piton on`".to_owned()))),
            (Due::Held(slot), _) if targets.is_empty() => Some(held_block(slot)),
            (_, crate::checkpoint::workspace::Scope::TargetsOnly) if targets.is_empty() => Some(no_block(
                "none",
                Some("this directory is too broad to capture, and the action names no path in it".to_owned()),
            )),
            _ => None,
        };
        if let Some(checkpoint) = simple {
            self.reply(action.name, action.id, &BeforeReply { checkpoint, ..reply });
            return self.note(&root, verdict, run, turn);
        }
        let take = Take {
            turn: turn.clone(),
            effects,
            targets,
            always: verdict.warnings.iter().any(|warning| warning.class.is_external()),
            ..Take::of(Kind::Auto, &run, &cut(&printable(&redact(&action.reason)), MAX_REASON))
        };
        self.protect(&root, action, reply, (take, held, verdict))
    }

    /// Gives the checkpoint to the worker; the answer comes with it, or at the deadline.
    fn protect(
        &mut self,
        root: &Path,
        action: Action,
        reply: BeforeReply,
        (take, held, verdict): (Take, Option<Slot>, Verdict),
    ) -> Result<()> {
        let (ticket, beside_ticket) = (self.pending.ticket(), self.pending.ticket());
        let place = self.engine.open(root)?;
        let wait =
            action.deadline_ms.map_or(place.policy.deadline, |ms| Duration::from_millis(ms).min(place.policy.deadline));
        let before = Before {
            name: action.name,
            id: action.id,
            reply,
            deadline: Instant::now() + wait,
            on_failure: place.policy.on_failure,
            workspace: place.workspace.id.clone(),
            turn: take.turn.clone(),
            late: false,
            beside: None,
        };
        let since = file_clock();
        let held_id = held.as_ref().and_then(|slot| slot.id.parse::<ObjectId>().ok());
        let beside = (place.worker.is_busy() && !take.targets.is_empty()).then(|| take.clone());
        let accepted = place.worker.submit(ticket, move |timeline, control| {
            let protected = act::protect(timeline, &take, held_id, control);
            if let Err(error) = act::note_externals(timeline, &verdict, &take.run, take.turn.as_deref()) {
                tracing::warn!(%error, "an external effect could not be noted");
            }
            Answer::Before(protected, timeline.touched_since(since))
        });
        if !accepted {
            let checkpoint = no_block("failed", Some(busy().text()));
            let proceed = before.on_failure == OnFailure::Proceed;
            let reason = (!proceed).then(|| "no checkpoint could be taken".to_owned());
            self.reply(before.name, before.id, &BeforeReply { checkpoint, proceed, reason, ..before.reply });
            return Ok(());
        }
        if let Some(take) = beside {
            place.worker.submit_urgent(beside_ticket, move |timeline, control| {
                Answer::Beside(act::protect_beside(timeline, &take, control).map(Box::new))
            });
            self.pending.put(beside_ticket, Pending::Beside(ticket));
        }
        self.pending.put(ticket, Pending::Before(Box::new(before)));
        Ok(())
    }

    /// Writes down the external effects of an action that needs no checkpoint.
    fn note(&mut self, root: &Path, verdict: Verdict, run: String, turn: Option<String>) -> Result<()> {
        if !verdict.warnings.iter().any(|warning| warning.class.is_external()) {
            return Ok(());
        }
        let ticket = self.pending.ticket();
        let place = self.engine.open(root)?;
        let accepted = place.worker.submit(ticket, move |timeline, _| {
            Answer::Quiet(act::note_externals(timeline, &verdict, &run, turn.as_deref()))
        });
        if accepted {
            self.pending.put(ticket, Pending::Quiet);
        } else {
            self.faults.push("an external effect could not be noted: the worker is busy".to_owned());
        }
        Ok(())
    }

    /// Takes the answer of a job. `None`: the job died.
    pub fn finished(&mut self, ticket: u64, answer: Option<Answer>) {
        let died = || Error::new(Code::Internal, "the work ended in a bug; piton goes on").hint("please report it");
        match (self.pending.take(ticket), answer) {
            (Some(Pending::Before(before)), Some(Answer::Before(protected, touched))) => {
                self.protected(ticket, *before, protected, &touched);
            }
            (Some(Pending::Before(before)), _) => self.protected(ticket, *before, Err(died()), &[]),
            (Some(Pending::Beside(main)), Some(Answer::Beside(taken))) => {
                match (taken, self.pending.before_mut(main)) {
                    (Ok(taken), Some(before)) => before.beside = Some(taken),
                    (Ok(_), None) => {}
                    (Err(error), _) => tracing::warn!(%error, "the capture of the named paths failed"),
                }
            }
            (Some(Pending::Base), answer) => self.base_finished(answer),
            (Some(Pending::Call(name, id)), Some(Answer::Reply(reply, notices))) => {
                match reply {
                    Ok(value) => self.reply(name, id, &value),
                    Err(error) => self.output.send(ErrorReply::line(id.as_ref(), &error)),
                }
                notices.into_iter().for_each(|(name, body)| self.output.notice(name, &body));
            }
            (Some(Pending::Call(_, id)), _) => self.output.send(ErrorReply::line(id.as_ref(), &died())),
            (Some(Pending::Quiet), Some(Answer::Quiet(Ok(())))) | (None, _) => {}
            (Some(Pending::Quiet | Pending::Beside(_)), answer) => {
                let error = match answer {
                    Some(Answer::Quiet(Err(error))) => error,
                    _ => died(),
                };
                self.faults.push(error.text());
                self.output.notice("checkpoint.failed", &json!({ "reason": error.text() }));
            }
        }
    }

    fn base_finished(&mut self, answer: Option<Answer>) {
        self.base_running = false;
        match answer {
            Some(Answer::Base(Ok(_))) => self.base_ready = true,
            Some(Answer::Base(Err(error))) if error.code() == Code::ShuttingDown => {}
            Some(Answer::Base(Err(error))) => {
                self.faults.push(format!("the base capture failed: {}", error.text()));
                self.output.notice("checkpoint.failed", &json!({ "kind": "turn", "reason": error.text() }));
            }
            _ => self.faults.push("the base capture ended in a bug".to_owned()),
        }
    }

    /// An event's checkpoint is there, or has failed.
    fn protected(
        &mut self,
        ticket: u64,
        before: Before,
        protected: Result<Protected>,
        touched: &[crate::model::path::RelPath],
    ) {
        let failed = protected.is_err();
        let checkpoint = match protected {
            Ok(Protected::Taken(taken)) => {
                if self.turns.current() == before.turn.as_deref() {
                    let record = &taken.checkpoint.record;
                    let slot = Slot { id: taken.checkpoint.id.to_string(), ordinal: record.ordinal };
                    self.turns.fill(&before.workspace, slot);
                }
                block(&taken)
            }
            Ok(Protected::Held) => self.turns_held(&before.workspace),
            Err(error) => {
                let text = error.text();
                self.faults.push(text.clone());
                no_block("failed", Some(text))
            }
        };
        if before.late {
            let dirty = crate::protocol::List::of_paths(touched.iter());
            let notice = if failed { "checkpoint.failed" } else { "checkpoint.settled" };
            self.output.notice(
                notice,
                &json!({ "pending": format!("p{ticket}"), "checkpoint": checkpoint, "dirty": dirty.items }),
            );
            return;
        }
        let proceed = !failed || before.on_failure == OnFailure::Proceed;
        let reason =
            (!proceed).then(|| "no checkpoint could be taken, and the policy holds the action then".to_owned());
        self.reply(before.name, before.id, &BeforeReply { checkpoint, proceed, reason, ..before.reply });
    }

    fn turns_held(&self, workspace: &str) -> crate::protocol::CheckpointBlock {
        self.turns.slot(workspace).map_or_else(|| no_block("held", None), held_block)
    }

    /// The earliest moment at which an event must be answered.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.pending.next_deadline()
    }

    /// Answers `late` to events whose deadline is over; their checkpoints go on.
    pub fn deadlines(&mut self, now: Instant) {
        for ticket in self.pending.overdue(now) {
            let Some(before) = self.pending.before_mut(ticket) else {
                continue;
            };
            before.late = true;
            let mut checkpoint = before.beside.as_ref().map_or_else(|| no_block("late", None), |taken| block(taken));
            checkpoint.status = "late";
            checkpoint.pending = Some(format!("p{ticket}"));
            checkpoint.reason = Some("the checkpoint was not finished by the deadline and goes on behind".to_owned());
            let proceed = before.on_failure == OnFailure::Proceed;
            let reason = (!proceed).then(|| "the checkpoint is late, and the policy holds the action then".to_owned());
            let reply = BeforeReply { checkpoint, proceed, reason, ..before.reply.clone() };
            let (name, id) = (before.name, before.id.clone());
            self.reply(name, id, &reply);
        }
    }

    /// Begins the end: the `exit` checkpoint of an open run.
    pub fn end(&mut self) {
        if !std::mem::take(&mut self.open_run) {
            return;
        }
        let ticket = self.pending.ticket();
        let take = Take {
            codon_id: Some("session".to_owned()),
            codon_name: Some("The agent's stream ended".to_owned()),
            turn: self.turns.current().map(str::to_owned),
            ..Take::of(Kind::Exit, &self.run, "the agent's stream ended while the run was open")
        };
        let submitted = self.place().map(|place| {
            place.worker.submit(ticket, move |timeline, control| Answer::Quiet(timeline.take(&take, control).map(drop)))
        });
        match submitted {
            Ok(true) => self.pending.put(ticket, Pending::Quiet),
            Ok(false) => tracing::error!("no exit checkpoint: the worker is busy"),
            Err(error) => tracing::error!(%error, "no exit checkpoint"),
        }
    }

    /// Whether anything is still waited for.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Lets workers and writer end, at most until `deadline`.
    pub fn close(self, deadline: Instant) -> Ended {
        let mut workers = self.engine.close();
        let mut ended = Ended::Clean;
        while !workers.iter_mut().all(crate::engine::worker::Worker::close) {
            if Instant::now() >= deadline {
                workers.iter().for_each(crate::engine::worker::Worker::stop);
                ended = Ended::Forced;
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.output.close(deadline.max(Instant::now() + Duration::from_millis(200)));
        ended
    }

    fn status(&mut self, id: Option<Id>) -> Result<()> {
        let (faults, ready) = (self.faults.clone(), self.base_ready);
        let (run, turn) = (self.run.clone(), self.turns.current().map(str::to_owned));
        let warnings = self.place()?.warnings.clone();
        self.submit_call("status", id, move |timeline, _| {
            let mut status = super::answers::status(timeline)?;
            if let Value::Object(fields) = &mut status {
                fields.insert("run".into(), run.into());
                fields.insert("turn".into(), turn.into());
                fields.insert("baseline".into(), if ready { "ready" } else { "none" }.into());
                fields.insert("faults".into(), faults.into());
                fields.insert("warnings".into(), warnings.into());
            }
            Ok((status, Vec::new()))
        })
    }
}

/// What an event carries beside its own content.
struct Action {
    name: &'static str,
    id: Option<Id>,
    action: Option<String>,
    deadline_ms: Option<u64>,
    cwd: PathBuf,
    /// Not yet redacted.
    reason: String,
}

fn busy() -> Error {
    Error::new(Code::Busy, "the workspace's worker has too many jobs waiting").hint("try again in a moment")
}

fn held_block(slot: &Slot) -> crate::protocol::CheckpointBlock {
    crate::protocol::CheckpointBlock {
        id: Some(slot.id.clone()),
        n: Some(slot.ordinal),
        kind: Some(Kind::Auto.as_str()),
        ..no_block("held", None)
    }
}

/// The guard's word on the wire.
pub fn guard_word(policy: &Policy, dir: &Path) -> &'static str {
    match policy.guard {
        _ if State::load(dir).is_off(now_ms()) => "off",
        Guard::Turn => "turn",
        Guard::Action => "action",
        Guard::Off => "off",
    }
}

/// Interrupted restores of a workspace, as replies carry them.
pub fn interrupted(dir: &Path) -> Vec<Value> {
    let history = Journal::in_dir(dir).read().map(|contents| History::of(contents.lines));
    let begun = history.ok().and_then(|history| history.interrupted);
    begun
        .into_iter()
        .map(|begin| {
            json!({ "operation": begin.op, "target": begin.target.to_string(), "preRestore": begin.pre_restore.to_string(),
                "next": "piton restore --continue, or piton restore --abort" })
        })
        .collect()
}

/// A client's id of a run as one of ours: as it is when it fits, else hashed.
fn run_id(text: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = text.len() <= 64
        && text.starts_with(plain)
        && text.chars().all(|c| plain(c) || matches!(c, '.' | '_' | '-'))
        && !text.contains("..")
        && !text.ends_with('.')
        && !text.ends_with(".lock");
    if fits {
        return text.to_owned();
    }
    let id = ObjectId::of(ObjectKind::Blob, text.as_bytes());
    id.map_or_else(|_| "s-unnamed".to_owned(), |id| format!("s-{}", &id.to_string()[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_run_ids_become_ours() {
        for plain in ["r-1", "20260101-abc", "a.b_c"] {
            assert_eq!(run_id(plain), plain);
        }
        for odd in ["R-1", "", "-x", "a..b", "a.lock", "../x", &"a".repeat(65), "späť"] {
            let id = run_id(odd);
            assert!(id.starts_with("s-") && id.len() == 18 && run_id(&id) == id, "{odd} became {id}");
        }
    }
}
