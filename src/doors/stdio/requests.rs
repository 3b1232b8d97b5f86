//! Lines of a client. Each becomes an event or a request, and is answered by a line.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{self, Called};
use crate::checkpoint::Timeline;
use crate::checkpoint::history::undo::Direction;
use crate::checkpoint::runs::codon::{CodonMark, NewCodon};
use crate::checkpoint::runs::run::RunEnding;
use crate::doors::output::Output;
use crate::doors::replies;
use crate::engine::event::{Action, Doing, Event, NewRun, Opening, Tool, TurnStart};
use crate::engine::runs::{CodonBegun, CodonMarked, RunBegun, RunEnded};
use crate::engine::session::{Reply, Session};
use crate::engine::workspace::why_off;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::protocol::{
    BaselineStatus, Body, Classify, CodonEnd, CodonStart, ErrorReply, Hello, Id, Line, Rollback, RunStatus,
    ShellBefore, ToolBefore, line as written, parse,
};
use crate::sys::interrupt::Interrupt;

/// Answers one request: by its type, with its id.
#[derive(Clone)]
struct Answerer {
    output: Arc<Output>,
    name: &'static str,
    id: Option<Id>,
}

impl Answerer {
    /// Answers with a body, or with an error. An event is answered by errors only.
    fn send(&self, session: &Session, result: Result<Value>) {
        let body = match result {
            Ok(body) => body,
            Err(error) => return self.output.send(ErrorReply::line(self.id.as_ref(), &error)),
        };
        let Some(id) = &self.id else { return };
        let body = replies::marked(body, session);
        self.output.send(written(self.name, Some(id), true, &body));
    }

    /// Returns a closure that answers later with the body that `shape` makes.
    fn later<T: 'static>(self, shape: impl FnOnce(&T) -> Value + Send + 'static) -> Reply<T> {
        Box::new(move |session, result: Result<T>| self.send(session, result.map(|value| shape(&value))))
    }

    /// Returns a closure that answers later, and sends the notices that follow.
    fn called(self) -> Reply<Called> {
        Box::new(move |session, result| match result {
            Ok(called) => {
                self.send(session, Ok(called.body));
                called.notices.iter().for_each(|(name, body)| self.output.notice(name, body));
            }
            Err(error) => self.send(session, Err(error)),
        })
    }
}

/// Acts upon a line; `false` when it asks for the end.
pub(super) fn line(session: &mut Session, output: &Arc<Output>, line: Line) -> bool {
    let parsed = match line {
        Line::TooLong(bytes, number) => {
            let text = format!("line {number} has {bytes} bytes, more than the limit, and was skipped");
            let error = Error::new(Code::LineTooLong, text).line(number).hint("send less in one line");
            output.send(ErrorReply::line(None, &error));
            return true;
        }
        Line::Text(text, number) => parse(&text, number),
    };
    let request = match parsed {
        Ok(request) => request,
        Err(failure) => {
            output.send(ErrorReply::line(failure.id.as_ref(), &failure.error));
            return true;
        }
    };
    let is_last = matches!(request.body, Body::Shutdown);
    let answerer = Answerer { output: Arc::clone(output), name: request.body.name(), id: request.id };
    match event(request.body) {
        Ok(event) => session.on(event, answerer.later(replies::decision)),
        Err(body) => act(session, *body, answerer),
    }
    !is_last
}

/// Returns the event that a message tells of; any other message is given back.
fn event(body: Body) -> std::result::Result<Event, Box<Body>> {
    Ok(match body {
        Body::Hello(hello) => Event::Opened(opening(hello)),
        Body::TurnStart(turn) => Event::TurnStarted(TurnStart { turn: turn.turn, run: turn.run }),
        Body::TurnEnd(turn) => Event::TurnEnded { turn: turn.turn },
        Body::ToolBefore(tool) => Event::Before(tool_call(tool)),
        Body::ShellBefore(shell) => Event::Before(shell_line(shell)),
        Body::ToolAfter(_) | Body::ShellAfter(_) => Event::After,
        other => return Err(Box::new(other)),
    })
}

fn opening(hello: Hello) -> Opening {
    Opening {
        client: hello.client,
        workspace: hello.workspace,
        cwd: hello.cwd,
        session: hello.session,
        reaches_model: hello.reaches_model,
        waits: hello.waits,
    }
}

fn shell_line(shell: ShellBefore) -> Action {
    Action {
        id: shell.action,
        what: Doing::Shell { command: shell.command },
        cwd: shell.cwd,
        wait: shell.deadline_ms.map(Duration::from_millis),
        doubt: shell.doubt,
    }
}

fn tool_call(tool: ToolBefore) -> Action {
    let call =
        Tool { name: tool.tool, input: tool.input, paths: tool.paths, writes: tool.writes, external: tool.external };
    Action {
        id: tool.action,
        what: Doing::Tool(call),
        cwd: tool.cwd,
        wait: tool.deadline_ms.map(Duration::from_millis),
        doubt: tool.doubt,
    }
}

/// Acts upon a request that is no event.
fn act(session: &mut Session, body: Body, to: Answerer) {
    match body {
        Body::RunStart(start) => {
            let start = NewRun { run: start.run, parent: start.parent, goal: start.goal, client: start.client };
            session.start_run(&start, to.later(run_begun));
        }
        Body::RunEnd(end) => {
            let status = match end.status {
                Some(RunStatus::Error) => RunEnding::Error,
                Some(RunStatus::Completed) | None => RunEnding::Completed,
            };
            let ended =
                |end: &RunEnded| json!({ "run": end.run, "checkpoint": end.taken.as_ref().map(replies::block) });
            session.end_run(status, to.later(ended));
        }
        Body::RunFork(fork) => {
            let start = NewRun { run: fork.run, parent: fork.parent, goal: fork.goal, client: None };
            session.fork_run(fork.sha, &start, to.later(run_begun));
        }
        Body::CodonStart(start) => codon_start(session, start, to),
        Body::CodonRigSetup(end) => codon_end(session, CheckpointKind::RigSetup, end, to),
        Body::CodonComplete(end) => codon_end(session, CheckpointKind::Completed, end, to),
        Body::CodonFail(end) => codon_end(session, CheckpointKind::Error, end, to),
        Body::CodonSkip(end) => codon_end(session, CheckpointKind::Skipped, end, to),
        Body::Rollback(rollback) | Body::ToCodon(rollback) | Body::ToLastSuccess(rollback) => {
            roll_back(session, rollback, to);
        }
        Body::Classify(classify) => {
            let verdict = classified(session, &classify);
            to.send(session, verdict);
        }
        Body::Status => status(session, to),
        Body::ConfigReload => match session.reload() {
            Ok(warnings) => {
                to.send(session, Ok(json!({ "warnings": warnings })));
                to.output.notice("config.reloaded", &json!({ "warnings": warnings }));
            }
            Err(error) => to.send(session, Err(error)),
        },
        Body::Ping | Body::Shutdown => to.send(session, Ok(json!({}))),
        other => call(session, other, to),
    }
}

/// Has the worker answer a request that needs only the timeline.
fn call(session: &mut Session, body: Body, to: Answerer) {
    let work = move |timeline: &mut Timeline, run: &str, control: Interrupt<'_>| match body {
        Body::Create(create) => calls::create(timeline, &create, run, control),
        Body::List(query) => calls::list(timeline, &query, run, control),
        Body::Show(show) => calls::show(timeline, &show.sha),
        Body::Diff(diff) => calls::diff(timeline, &diff, control),
        Body::Preview(rollback) => calls::preview(timeline, &rollback, run, control),
        Body::Restore(rollback) => calls::restore(timeline, &rollback, run, control),
        Body::Undo(step) => calls::step(timeline, Direction::Undo, &step, run, control),
        Body::Redo(step) => calls::step(timeline, Direction::Redo, &step, run, control),
        Body::RunList => calls::runs(timeline),
        other => Err(Error::new(Code::Internal, format!("`{}` is not a call", other.name()))),
    };
    session.ask(work, to.called());
}

fn run_begun(begun: &RunBegun) -> Value {
    let mut body = json!({ "run": begun.run, "branch": begun.branch });
    if let Some(from) = &begun.from {
        body["from"] = replies::origin(from);
    }
    body
}

fn codon_start(session: &mut Session, start: CodonStart, to: Answerer) {
    let tracked = start.tracked_files.unwrap_or_default();
    let codon = NewCodon { id: start.codon_id, name: start.name, tracked, client: 0 };
    let reply = to
        .later(|begun: &CodonBegun| json!({ "run": begun.run, "codonId": begun.codon, "trackedFiles": begun.tracked }));
    session.start_codon(start.run.as_deref(), codon, reply);
}

fn codon_end(session: &mut Session, kind: CheckpointKind, end: CodonEnd, to: Answerer) {
    let mark = CodonMark { kind, id: end.codon_id, name: end.name, reason: end.reason, turn: None };
    let reply = to.later(|marked: &CodonMarked| {
        let (taken, run) = (&marked.taken, &marked.run);
        let codon = &taken.checkpoint.record.codon_id;
        json!({ "run": run, "codonId": codon, "checkpoint": replies::block(taken) })
    });
    session.mark_codon(end.run.as_deref(), mark, reply);
}

/// Rolls back, and sends its notices while it is done.
fn roll_back(session: &mut Session, rollback: Rollback, to: Answerer) {
    let output = Arc::clone(&to.output);
    let tell = move |name, body: Value| output.notice(name, &body);
    let work = move |timeline: &mut Timeline, run: &str, control: Interrupt<'_>| {
        calls::rollback(timeline, &rollback, run, &tell, control)
    };
    session.ask(work, to.called());
}

fn classified(session: &mut Session, classify: &Classify) -> Result<Value> {
    let verdict = session.classify(&classify.command, classify.cwd.as_deref())?;
    Ok(json!({ "needs": verdict.needs, "confidence": verdict.confidence,
        "effects": verdict.effects, "warnings": verdict.warnings }))
}

fn status(session: &mut Session, to: Answerer) {
    let open = match session.workspace() {
        Ok(open) => open,
        Err(error) => return to.send(session, Err(error)),
    };
    let (mut faults, (run, turn)) = (session.faults().to_vec(), session.run_and_turn());
    let base = if session.has_base() { BaselineStatus::Ready } else { BaselineStatus::None };
    let (rules, watcher) = (open.in_force(), open.worker.watcher());
    faults.extend(watcher.fault.clone().into_iter().chain(rules.warnings.clone()));
    let work = move |timeline: &mut Timeline, _: Interrupt<'_>| {
        let mut status = replies::status(timeline)?;
        if let Value::Object(fields) = &mut status {
            fields.insert("run".into(), run.into());
            fields.insert("turn".into(), turn.into());
            fields.insert("baseline".into(), json!(base));
            fields.insert("watcher".into(), json!(replies::watcher_word(rules.policy.watching, &watcher)));
            fields.insert("watching".into(), replies::watching(&watcher));
            fields.insert("faults".into(), faults.into());
            let why = why_off(rules.policy.guard, &timeline.workspace().dir, &rules.origin("guard"));
            fields.insert("guardOff".into(), why.into());
            fields.insert("warnings".into(), rules.warnings.clone().into());
        }
        Ok(status)
    };
    session.queue(&open, work, move |session, done| to.send(session, done));
}
