//! One client's session: its workspace, run and turn, and what each line does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::actions::busy;
use super::answers::Answer;
use super::calls::{self, Called};
use super::output::Output;
use super::pending::{Pending, Table};
use super::words::{guard_word, interrupted, recorded, run_id, watcher_word, watching, why_off};
use crate::checkpoint::capture::take::Take;
use crate::checkpoint::history::undo::Direction;
use crate::checkpoint::records::state::State;
use crate::checkpoint::timeline::Timeline;
use crate::engine::state::{SharedTalk, Talk};
use crate::engine::worker::{Asker, Finished};
use crate::engine::{Engine, Place, reach};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::Guard;
use crate::protocol::{Body, ErrorReply, HelloReply, Id, Line, Request, line, parse};
use crate::sys::clock::now_ms;
use crate::sys::interrupt::Interrupt;

/// Sessions that this process has begun.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

/// Faults that are remembered.
const MAX_FAULTS: usize = 20;

/// Which workspace is the session's.
#[derive(Clone, Debug)]
pub enum Root {
    Known(PathBuf),
    /// The one of this directory.
    Around(PathBuf),
    /// `hello` has to say.
    Unknown,
}

impl Root {
    /// As the command line says, or the one of the process's own directory.
    pub fn of_process(named: Option<PathBuf>) -> Root {
        match named {
            Some(root) => Root::Known(root),
            // A directory that is gone is told when it is needed.
            None => std::env::current_dir().map_or(Root::Unknown, Root::Around),
        }
    }
}

/// The session.
pub struct Session {
    pub(super) engine: Arc<Engine<Answer>>,
    pub(super) finished: Finished<Answer>,
    pub(in crate::doors) output: Output,
    pub(super) pending: Table,
    /// By its real name once it was opened.
    root: Root,
    /// The record directory of the session's workspace, when an interrupted restore was found in it.
    interrupted_in: Option<PathBuf>,
    looked: bool,
    pub(super) talk: SharedTalk,
    /// By which this session and the others of the process are told apart.
    pub(super) number: u64,
    /// As it calls itself.
    pub(super) client: Option<String>,
    /// Runs of which this session has begun codons.
    pub(super) codon_runs: BTreeSet<String>,
    /// Whether replies reach the model.
    pub(super) hears: bool,
    /// Whether the client waits for answers before it acts.
    pub(super) waits: bool,
    pub(super) base_ready: bool,
    pub(super) base_running: bool,
    /// What went wrong and was not anybody's reply.
    faults: Vec<String>,
}

impl Session {
    /// A session before its first line.
    pub fn new(engine: Arc<Engine<Answer>>, finished: Finished<Answer>, output: Output, root: Root) -> Session {
        Session {
            engine,
            finished,
            output,
            pending: Table::default(),
            root,
            interrupted_in: None,
            looked: false,
            talk: Arc::new(Mutex::new(Talk::unnamed())),
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            client: None,
            codon_runs: BTreeSet::new(),
            hears: true,
            waits: true,
            base_ready: false,
            base_running: false,
            faults: Vec::new(),
        }
    }

    /// The longest accepted line; read once, before any workspace is known.
    pub fn line_limit(&self) -> usize {
        let settings = crate::settings::load(None, self.engine.home().path(), self.engine.flags());
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
        if let Root::Known(root) = &self.root
            && let Some(place) = self.engine.opened(root)
        {
            self.follow_settings(&place);
        }
        match request.body {
            Body::Hello(hello) => {
                match (hello.workspace, hello.cwd) {
                    (Some(workspace), _) => self.name_workspace(workspace)?,
                    (None, Some(cwd)) if cwd.is_absolute() => self.root = Root::Around(cwd),
                    (None, _) => {}
                }
                self.client = hello.client.as_deref().map(|client| recorded(client, 64)).or(self.client.take());
                self.hears = hello.hears.unwrap_or(true);
                self.waits = hello.waits.unwrap_or(self.waits);
                let known = hello.session.as_deref().is_some_and(|session| self.go_on_with(&run_id(session)));
                // The turn's own checkpoint is to be the first thing that is done for it.
                if !known && self.waits {
                    self.base_capture()?;
                }
                self.hello(id)
            }
            Body::RunStart(start) => self.run_start(id, &start),
            Body::RunEnd(end) => self.run_end(id, &end),
            Body::RunFork(fork) => self.run_fork(id, &fork),
            Body::RunList => self.run_list(id),
            Body::CodonStart(start) => self.codon_start(id, &start),
            Body::CodonRigSetup(end) => self.codon_end(name, id, (CheckpointKind::RigSetup, &end)),
            Body::CodonComplete(end) => self.codon_end(name, id, (CheckpointKind::Completed, &end)),
            Body::CodonFail(end) => self.codon_end(name, id, (CheckpointKind::Error, &end)),
            Body::CodonSkip(end) => self.codon_end(name, id, (CheckpointKind::Skipped, &end)),
            Body::Rollback(rollback) | Body::ToCodon(rollback) | Body::ToLastSuccess(rollback) => {
                self.roll_back(name, id, rollback)
            }
            Body::TurnStart(turn) => self.turn_start(id, &turn),
            Body::TurnEnd(turn) => {
                self.turn_end(id, &turn);
                Ok(())
            }
            Body::ToolBefore(tool) => self.tool(id, tool),
            Body::ShellBefore(shell) => self.shell(id, shell),
            Body::ToolAfter(_) | Body::ShellAfter(_) => {
                let notices = self.notices();
                self.reply(name, id, &if notices.is_empty() { json!({}) } else { json!({ "notices": notices }) });
                Ok(())
            }
            Body::Ping | Body::Shutdown => {
                self.reply(name, id, &json!({}));
                Ok(())
            }
            Body::Classify(classify) => {
                let cwd = self.cwd(classify.cwd.as_deref())?;
                let home = self.engine.home().clone();
                let place = self.place()?;
                let rules = place.in_force();
                let verdict = reach::judged(place.context(&home, &cwd), |context| {
                    rules.classifier.shell(&classify.command, context, &rules.policy)
                });
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
                self.output.notice("config.reloaded", &json!({ "warnings": warnings }));
                Ok(())
            }
            body => self.call(name, id, body),
        }
    }

    /// Requests that the worker answers.
    fn call(&mut self, name: &'static str, id: Option<Id>, body: Body) -> Result<()> {
        let (run, _) = self.run_and_turn();
        self.submit_call(name, id, move |timeline, control| match body {
            Body::Create(create) => calls::create(timeline, &create, &run, control),
            Body::List(query) => calls::list(timeline, &query, &run, control),
            Body::Show(show) => calls::show(timeline, &show.sha),
            Body::Diff(diff) => calls::diff(timeline, &diff, control),
            Body::Preview(rollback) => calls::preview(timeline, &rollback, &run, control),
            Body::Restore(rollback) => calls::restore(timeline, &rollback, &run, control),
            Body::Undo(step) => calls::step(timeline, Direction::Undo, &step, &run, control),
            Body::Redo(step) => calls::step(timeline, Direction::Redo, &step, &run, control),
            other => Err(Error::new(Code::Internal, format!("`{}` is not a call", other.name()))),
        })
    }

    pub(super) fn submit_call(
        &mut self,
        name: &'static str,
        id: Option<Id>,
        call: impl FnOnce(&mut Timeline, Interrupt<'_>) -> Called + Send + 'static,
    ) -> Result<()> {
        let ticket = self.pending.ticket();
        let place = self.place()?;
        let accepted =
            place.worker.submit(self.asker(ticket), move |timeline, control| match call(timeline, control) {
                Ok((value, notices)) => Answer::Reply(Ok(value), notices),
                Err(error) => Answer::Reply(Err(error), Vec::new()),
            });
        if !accepted {
            return Err(busy());
        }
        self.pending.put(ticket, Pending::Call(name, id));
        Ok(())
    }

    /// By which a worker tells this session what a job came to.
    pub(super) fn asker(&self, ticket: u64) -> Asker<Answer> {
        Asker { ticket, finished: Arc::clone(&self.finished) }
    }

    /// The session's root, from the option, `hello` or the working directory.
    pub(super) fn root(&mut self) -> Result<PathBuf> {
        let around = match &self.root {
            Root::Known(root) => return Ok(root.clone()),
            Root::Around(dir) => dir.clone(),
            Root::Unknown => {
                return Err(Error::new(
                    Code::WorkspaceGone,
                    "no workspace: the working directory is gone, or was not told",
                )
                .hint("say `hello` with `workspace` or `cwd` first"));
            }
        };
        let root = self.engine.root_around(&around)?;
        self.root = Root::Known(root.clone());
        Ok(root)
    }

    /// The workspace that the client names.
    fn name_workspace(&mut self, path: PathBuf) -> Result<()> {
        if !path.is_absolute() {
            return Err(Error::new(Code::WorkspaceRefused, "`workspace` must be an absolute path").field("workspace"));
        }
        self.root = Root::Known(path);
        Ok(())
    }

    /// The session's workspace, open.
    pub(super) fn place(&mut self) -> Result<Arc<Place<Answer>>> {
        let root = self.root()?;
        let place = self.engine.open(&root)?;
        self.root = Root::Known(place.workspace.path.clone());
        if !std::mem::replace(&mut self.looked, true) {
            if !interrupted(&place.workspace.dir).is_empty() {
                self.interrupted_in = Some(place.workspace.dir.clone());
            }
            // What is wrong from the start is told too.
            if !place.in_force().warnings.is_empty() {
                self.follow_settings(&place);
            }
        }
        Ok(place)
    }

    /// Obeys what was edited since the last event.
    pub(super) fn follow_settings(&mut self, place: &Place<Answer>) {
        let followed = match self.engine.renew(place) {
            Ok(followed) => followed,
            Err(error) => return self.told_fault(&error),
        };
        // They stand among the warnings of `hello` and `status` as long as they are not mended.
        followed.mistakes.iter().for_each(|mistake| self.output.send(ErrorReply::line(None, &mistake.error())));
        let notes = followed.unknown.iter().map(|text| format!("piton: there is a mistake in its settings: {text}"));
        self.keep_notes(notes.collect());
        if let Some(read) = followed.read {
            self.output.notice("config.reloaded", &json!({ "warnings": read.warnings }));
        }
    }

    /// The directory of an event, by its real name. The session's own root is that whatever stands there now.
    pub(super) fn cwd(&mut self, cwd: Option<&Path>) -> Result<PathBuf> {
        let root = self.place()?.workspace.path.clone();
        let cwd = cwd.map_or(root.clone(), |cwd| root.join(cwd));
        if cwd == root { Ok(cwd) } else { Ok(cwd.canonicalize().unwrap_or(cwd)) }
    }

    /// Notes what went wrong and is nobody's reply: each thing once, the newest few of them.
    pub(super) fn fault(&mut self, text: String) {
        self.faults.retain(|known| *known != text);
        self.faults.truncate(MAX_FAULTS - 1);
        self.faults.insert(0, text);
    }

    /// Tells of what went wrong with the input, and remembers it.
    pub fn told_fault(&mut self, error: &Error) {
        self.fault(error.text());
        self.output.send(ErrorReply::line(None, error));
    }

    pub(super) fn reply(&self, name: &str, id: Option<Id>, body: &impl serde::Serialize) {
        let Some(id) = id else { return };
        // As long as a restore waits to be ended, every reply says so.
        let waiting = self.interrupted_in.as_deref().map(interrupted).unwrap_or_default();
        if waiting.is_empty() {
            return self.output.send(line(name, Some(&id), true, body));
        }
        let mut fields = serde_json::to_value(body).unwrap_or_default();
        if let Value::Object(fields) = &mut fields {
            fields.insert("interrupted".into(), waiting.into());
        }
        self.output.send(line(name, Some(&id), true, &fields));
    }

    fn hello(&mut self, id: Option<Id>) -> Result<()> {
        let (running, ready, (run, _)) = (self.base_running, self.base_ready, self.run_and_turn());
        let faults = self.faults.clone();
        let place = self.place()?;
        let rules = place.in_force();
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
            guard: guard_word(&rules.policy, &place.workspace.dir),
            baseline,
            watcher: watcher_word(rules.policy.watching, &place.worker.hearing()),
            limits: json!({ "line": rules.policy.limits.line_bytes, "deadline_ms": rules.policy.deadline.as_millis() as u64 }),
            interrupted: interrupted.clone(),
            faults: faults.into_iter().chain(rules.warnings.clone()).collect(),
        };
        self.reply("hello", id, &reply);
        for operation in interrupted {
            self.output.notice("restore.interrupted", &json!({ "operation": operation }));
        }
        Ok(())
    }

    /// Starts capturing in the background, so that the first destructive action need not wait for it.
    pub(super) fn base_capture(&mut self) -> Result<()> {
        let ticket = self.pending.ticket();
        let (run, turn) = self.run_and_turn();
        let running = self.base_running;
        let place = self.place()?;
        let whole = place.workspace.scope == crate::checkpoint::records::workspace::Scope::Tree;
        if running
            || !whole
            || place.in_force().policy.guard == Guard::Off
            || State::load(&place.workspace.dir).is_off(now_ms())
        {
            return Ok(());
        }
        let take = Take { turn, ..Take::of(CheckpointKind::Turn, &run, "base capture") };
        let accepted = place.worker.submit(self.asker(ticket), move |timeline, control| {
            Answer::Base(timeline.take(&take, control).map(Box::new))
        });
        if accepted {
            self.base_running = true;
            self.pending.put(ticket, Pending::Base);
        }
        Ok(())
    }

    /// Whether the checkpoint of a turn's start is waited for.
    pub fn is_starting(&self) -> bool {
        self.pending.is_starting()
    }

    /// Whether anything is still waited for.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Lets the writer end, at most until `deadline`.
    pub fn close(self, deadline: Instant) {
        self.output.close(deadline.max(Instant::now() + Duration::from_millis(200)));
    }

    fn status(&mut self, id: Option<Id>) -> Result<()> {
        let (mut faults, ready) = (self.faults.clone(), self.base_ready);
        let (run, turn) = self.run_and_turn();
        let place = self.place()?;
        let rules = place.in_force();
        let hearing = place.worker.hearing();
        let word = watcher_word(rules.policy.watching, &hearing);
        faults.extend(hearing.fault.clone().into_iter().chain(rules.warnings.clone()));
        self.submit_call("status", id, move |timeline, _| {
            let mut status = super::answers::status(timeline)?;
            if let Value::Object(fields) = &mut status {
                fields.insert("run".into(), run.into());
                fields.insert("turn".into(), turn.into());
                fields.insert("baseline".into(), if ready { "ready" } else { "none" }.into());
                fields.insert("watcher".into(), word.into());
                fields.insert("watching".into(), watching(&hearing));
                fields.insert("faults".into(), faults.into());
                let why = why_off(&rules.policy, &timeline.workspace().dir, &rules.origin("guard"));
                fields.insert("guardOff".into(), why.into());
                fields.insert("warnings".into(), rules.warnings.clone().into());
            }
            Ok((status, Vec::new()))
        })
    }
}
