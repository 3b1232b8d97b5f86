//! Lines of a client. Each becomes an event or a request, and is answered by a line.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::calls::{self, Called};
use super::steps::{self, StepAsker};
use crate::checkpoint::Timeline;
use crate::checkpoint::history::undo::Direction;
use crate::checkpoint::records::action_window::EndedCall;
use crate::checkpoint::records::doors::seen;
use crate::checkpoint::runs::codon::{CodonMark, NewCodon};
use crate::checkpoint::runs::run::RunEnding;
use crate::doors::output::Output;
use crate::doors::{protection, replies};
use crate::engine::event::{Action, Doing, Event, NewRun, Opening, Tool, TurnStart, call_digest};
use crate::engine::runs::{CodonBegun, CodonMarked, RunBegun, RunEnded};
use crate::engine::session::{Reply, Session};
use crate::engine::workspace::why_off;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::protocol::{
    After, BaselineStatus, Body, Classify, ClassifyReply, CodonEnd, CodonReply, CodonStart, CodonStartReply,
    EmptyReply, ErrorReply, GitChangedQuery, GitChangedReply, Hello, Id, Line, NoticeBody, OpenReply, ReasonItem,
    ReloadReply, Rollback, RunEndReply, RunReply, RunStatus, ShellBefore, StatusFacts, StatusReply, Step, ToolBefore,
    Turn, WatcherWord, parse, reply_line,
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
    fn send<B: Serialize>(&self, session: &Session, result: Result<B>) {
        let body = match result {
            Ok(body) => body,
            Err(error) => return self.output.send(ErrorReply::line(self.id.as_ref(), &error)),
        };
        let Some(id) = &self.id else { return };
        let waiting = replies::interrupted(&session.interrupted());
        self.output.send(reply_line(self.name, id, &body, &waiting));
    }

    /// Returns a closure that answers later with the body that `shape` makes.
    fn later<T: 'static, B: Serialize>(self, shape: impl FnOnce(T) -> B + Send + 'static) -> Reply<T> {
        Box::new(move |session, result: Result<T>| self.send(session, result.map(shape)))
    }

    /// Returns a closure that answers later, and sends the notices that follow.
    fn called<B: Serialize + 'static>(self) -> Reply<Called<B>> {
        Box::new(move |session, result| match result {
            Ok(called) => {
                self.send(session, Ok(called.body));
                called.notices.into_iter().for_each(|notice| self.output.notice(notice));
            }
            Err(error) => self.send::<()>(session, Err(error)),
        })
    }
}

/// Acts upon a line; `false` when it asks for the end.
pub(super) fn line(session: &mut Session, output: &Arc<Output>, line: Line) -> bool {
    let parsed = match line {
        Line::TooLong(bytes, number) => {
            let text = format!("line {number} has {bytes} bytes, more than the limit, and was skipped");
            let error = Error::new(Code::LineTooLong, text).line(number).hint("send shorter lines");
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
        Ok(event) => session.on(event, answerer.later(|decision| replies::decision(&decision))),
        Err(body) => act(session, *body, answerer),
    }
    !is_last
}

/// Returns the event that a message tells of; any other message is given back.
fn event(body: Body) -> std::result::Result<Event, Box<Body>> {
    Ok(match body {
        Body::Hello(hello) => Event::Opened(opening(hello)),
        Body::TurnStart(Turn { turn, run, prompt, for_action }) => {
            Event::TurnStarted(TurnStart { turn, run, prompt, for_action })
        }
        Body::TurnEnd(turn) => Event::TurnEnded { turn: turn.turn },
        Body::ToolBefore(tool) => Event::Before(tool_call(tool)),
        Body::ShellBefore(shell) => Event::Before(shell_line(shell)),
        Body::ToolAfter(after) | Body::ShellAfter(after) => {
            let ended = after.ended_ms.and_then(|ended| i64::try_from(ended).ok());
            Event::After { call: ended_call(after), ended }
        }
        other => return Err(Box::new(other)),
    })
}

/// Returns the call that a client reports as ended.
fn ended_call(after: After) -> EndedCall {
    let call = match (&after.command, &after.tool) {
        (Some(command), _) => call_digest("shell", &Value::from(command.as_str())),
        (None, Some(tool)) => call_digest(tool, &after.input),
        (None, None) => None,
    };
    EndedCall { action: after.action, call }
}

fn opening(hello: Hello) -> Opening {
    Opening {
        client: hello.client,
        workspace: hello.workspace,
        cwd: hello.cwd,
        session: hello.session,
        parent: hello.parent,
        shares_turn: hello.shares_turn.unwrap_or_default(),
        goal: hello.goal,
        pid: hello.pid.and_then(|pid| u32::try_from(pid).ok()),
        reaches_model: hello.reaches_model,
        waits: hello.waits,
        door: hello.door.and_then(|door| door.known()),
        autosave: hello.autosave,
        turn_pause: None,
    }
}

fn shell_line(shell: ShellBefore) -> Action {
    Action {
        id: shell.action,
        what: Doing::Shell { command: shell.command },
        cwd: shell.cwd,
        wait: shell.deadline_ms.map(Duration::from_millis),
        doubt: shell.doubt,
        in_background: shell.background,
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
        in_background: false,
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
                |end: RunEnded| RunEndReply { run: end.run, checkpoint: end.taken.as_ref().map(replies::block) };
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
        Body::Watching(query) => {
            let body = if_open(session, Path::new(&query.workspace));
            to.send(session, Ok(body));
        }
        Body::GitChanged(query) => {
            let body = git_changed(session, &query);
            to.send(session, Ok(body));
        }
        Body::ConfigReload => match session.reload() {
            Ok(warnings) => {
                let reloaded = ReloadReply { warnings };
                to.send(session, Ok(&reloaded));
                to.output.notice(NoticeBody::ConfigReloaded(reloaded));
            }
            Err(error) => to.send::<()>(session, Err(error)),
        },
        Body::Ping | Body::Shutdown => to.send(session, Ok(EmptyReply {})),
        other => call(session, other, to),
    }
}

/// Has the worker answer a request that needs only the timeline.
fn call(session: &mut Session, body: Body, to: Answerer) {
    match body {
        Body::Create(create) => {
            ask(session, to, move |timeline, run, control| calls::create(timeline, &create, run, control));
        }
        Body::List(query) => {
            ask(session, to, move |timeline, run, control| calls::list(timeline, &query, run, control));
        }
        Body::Show(show) => ask(session, to, move |timeline, _, _| calls::show(timeline, &show.sha)),
        Body::Pin(chosen) => ask(session, to, move |timeline, _, _| calls::pin(timeline, &chosen, true)),
        Body::Unpin(_) | Body::Delete(_) if session.keeps_content() => {
            let text = "refused in an agent's session: a deleted checkpoint cannot be restored; nothing was changed";
            let hint =
                "to do that, a person runs `piton store delete` or `piton pin --remove` in a terminal of their own";
            to.send::<()>(session, Err(Error::new(Code::NeedsPerson, text).hint(hint)));
        }
        Body::Unpin(chosen) => ask(session, to, move |timeline, _, _| calls::pin(timeline, &chosen, false)),
        Body::Delete(chosen) => {
            ask(session, to, move |timeline, _, control| calls::delete(timeline, &chosen, control));
        }
        Body::Diff(diff) => ask(session, to, move |timeline, _, control| calls::diff(timeline, &diff, control)),
        Body::Preview(rollback) => {
            ask(session, to, move |timeline, run, control| calls::preview(timeline, &rollback, run, control));
        }
        Body::RunList => ask(session, to, |timeline, _, _| calls::runs(timeline)),
        Body::Restore(rollback) => {
            session.ask(move |timeline, run, control| calls::restore(timeline, &rollback, run, control), to.called());
        }
        Body::TurnList(query) => ask(session, to, move |timeline, _, control| steps::turns(timeline, &query, control)),
        Body::TurnDiff(diff) => {
            ask(session, to, move |timeline, _, control| steps::turn_diff(timeline, &diff, control));
        }
        Body::Undo(step) => take_step(session, Direction::Undo, step, to),
        Body::Redo(step) => take_step(session, Direction::Redo, step, to),
        other => {
            to.send::<()>(session, Err(Error::new(Code::Internal, format!("`{}` is not a call", other.name()))));
        }
    }
}

/// Has the worker make the body of an answer.
fn ask<B: Serialize + Send + 'static>(
    session: &mut Session,
    to: Answerer,
    work: impl FnOnce(&mut Timeline, &str, Interrupt<'_>) -> Result<B> + Send + 'static,
) {
    session.ask(work, to.later(|body| body));
}

fn take_step(session: &mut Session, direction: Direction, step: Step, to: Answerer) {
    let is_session = session.has_own_run();
    let work = move |timeline: &mut Timeline, run: &str, control: Interrupt<'_>| {
        steps::step(timeline, direction, &step, StepAsker { run, is_session }, control)
    };
    session.ask(work, to.called());
}

fn run_begun(begun: RunBegun) -> RunReply {
    RunReply { from: begun.from.as_ref().map(replies::origin), run: begun.run, branch: begun.branch }
}

fn codon_start(session: &mut Session, start: CodonStart, to: Answerer) {
    let tracked = start.tracked_files.unwrap_or_default();
    let codon = NewCodon { id: start.codon_id, name: start.name, tracked, client: 0 };
    let reply = to.later(|begun: CodonBegun| CodonStartReply {
        run: begun.run,
        codon_id: begun.codon,
        tracked_files: begun.tracked,
    });
    session.start_codon(start.run.as_deref(), codon, reply);
}

fn codon_end(session: &mut Session, kind: CheckpointKind, end: CodonEnd, to: Answerer) {
    let mark = CodonMark { kind, id: end.codon_id, name: end.name, reason: end.reason, turn: None };
    let reply = to.later(|marked: CodonMarked| CodonReply {
        run: marked.run,
        codon_id: marked.taken.checkpoint.record.codon_id.clone(),
        checkpoint: replies::block(&marked.taken),
    });
    session.mark_codon(end.run.as_deref(), mark, reply);
}

/// Rolls back, and sends its notices while it is done.
fn roll_back(session: &mut Session, rollback: Rollback, to: Answerer) {
    let output = Arc::clone(&to.output);
    let tell = move |notice| output.notice(notice);
    let work = move |timeline: &mut Timeline, run: &str, control: Interrupt<'_>| {
        calls::rollback(timeline, &rollback, run, &tell, control)
    };
    session.ask(work, to.called());
}

fn classified(session: &mut Session, classify: &Classify) -> Result<ClassifyReply> {
    let verdict = session.classify(&classify.command, classify.cwd.as_deref())?;
    Ok(replies::classified(&verdict))
}

/// Tells how the changes of a workspace are noticed, if it is open.
fn if_open(session: &Session, root: &Path) -> OpenReply {
    let Some(open) = session.opened(root) else {
        return OpenReply { open: false, watcher: WatcherWord::None, degraded: None };
    };
    let status = open.worker.watcher();
    let watcher = replies::watcher_word(open.in_force().policy.watching, &status);
    OpenReply { open: true, watcher, degraded: status.degraded.or(status.refused) }
}

/// Tells git which paths have changed.
fn git_changed(session: &Session, query: &GitChangedQuery) -> GitChangedReply {
    let answer = session.git_changed(Path::new(&query.top), &query.token);
    let texts = answer.paths.and_then(|paths| {
        let texts: std::result::Result<Vec<String>, _> = paths.into_iter().map(String::from_utf8).collect();
        texts.map_err(|_| "the name of a changed path is not text".to_owned())
    });
    let (everything, paths) = match texts {
        Ok(paths) => (None, paths),
        Err(why) => (Some(why), Vec::new()),
    };
    GitChangedReply { token: answer.token, everything, paths }
}

fn status(session: &mut Session, to: Answerer) {
    let open = match session.workspace() {
        Ok(open) => open,
        Err(error) => return to.send::<()>(session, Err(error)),
    };
    let (mut faults, (run, turn)) = (session.faults().to_vec(), session.run_and_turn());
    let baseline = if session.has_base() { BaselineStatus::Ready } else { BaselineStatus::None };
    let (rules, watcher, ear) = (open.in_force(), open.worker.watcher(), Arc::clone(&open.ear));
    faults.extend(watcher.fault.clone().into_iter().chain(rules.warnings.clone()));
    let work = move |timeline: &mut Timeline, _: Interrupt<'_>| {
        let damages = timeline.catalog().damages()?;
        let dir = timeline.workspace().dir.clone();
        let guard_off = why_off(rules.policy.guard, &dir, &rules.origin("guard"))
            .or_else(|| timeline.catalog().try_writing().err().map(|error| protection::unwritable(&error)));
        let off = guard_off.clone().map(|text| ReasonItem { text, ..ReasonItem::default() });
        let silences = match &off {
            None => ear.listen(timeline.home(), timeline.workspace()),
            Some(_) => Vec::new(),
        };
        let silent = protection::silent_items(&silences, None);
        let facts = StatusFacts {
            // The files of clients are not read here: who asks comes through a door that is at work.
            protection: protection::judge(off, &protection::Installed::default(), &seen(&dir), silent),
            guard_off,
            watcher: replies::watcher_word(rules.policy.watching, &watcher),
            degraded: watcher.degraded.clone(),
            warnings: rules.warnings.clone(),
            ..replies::status(timeline, damages)?
        };
        Ok(StatusReply { facts, run, turn, baseline, watching: replies::watching(&watcher), faults })
    };
    session.queue(&open, work, move |session, done| to.send(session, done));
}
