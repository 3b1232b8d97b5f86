//! Events before an action: classified, decided, and answered at once or left to the worker.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::answers::{Answer, no_block};
use super::pending::{Before, Pending, Told};
use super::session::Session;
use super::settled::held_block;
use super::words::why_off;
use crate::checkpoint::capture::take::Take;
use crate::checkpoint::records::state::State;
use crate::checkpoint::records::workspace::Scope;
use crate::classify::ToolCall;
use crate::engine::guard::Due;
use crate::engine::protect::{self, Standing};
use crate::engine::{InForce, Place, reach};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::{Verdict, Warning};
use crate::model::policy::OnFailure;
use crate::model::redact::redact;
use crate::model::text::{cut, printable};
use crate::protocol::{BeforeReply, Id, ShellBefore, ToolBefore};
use crate::sys::clock::{file_clock, now_ms};

/// Longest reason of a checkpoint, in characters.
const MAX_REASON: usize = 160;

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

impl Session {
    pub(super) fn shell(&mut self, id: Option<Id>, event: ShellBefore) -> Result<()> {
        let cwd = self.cwd(event.cwd.as_deref())?;
        let reason = format!("{}shell: {}", self.when(), event.command);
        let (name, deadline_ms) = ("shell.before", event.deadline_ms);
        let action = Action { name, id, action: event.action, deadline_ms, cwd, reason };
        let (command, doubt) = (event.command, event.doubt);
        self.before(action, |rules, context| {
            let verdict = rules.classifier.shell(&command, context, &rules.policy);
            if doubt { verdict.doubted() } else { verdict }
        })
    }

    pub(super) fn tool(&mut self, id: Option<Id>, event: ToolBefore) -> Result<()> {
        let cwd = self.cwd(event.cwd.as_deref())?;
        let told = event.paths.first().map(String::as_str);
        let in_input = || ["path", "file_path", "source"].iter().find_map(|field| event.input.get(field)?.as_str());
        let named = told.or_else(in_input).map(|path| format!(" {path}")).unwrap_or_default();
        let reason = format!("{}{}{named}", self.when(), event.tool);
        let (name, deadline_ms) = ("tool.before", event.deadline_ms);
        let action = Action { name, id, action: event.action.clone(), deadline_ms, cwd, reason };
        self.before(action, |rules, context| {
            let ToolBefore { tool, input, paths, writes, external, doubt, .. } = &event;
            let call = ToolCall { tool, input, paths, writes: *writes, external: *external };
            let verdict = rules.classifier.tool(&call, context, &rules.policy);
            if *doubt { verdict.doubted() } else { verdict }
        })
    }

    /// How the reason of an action's checkpoint begins. One that nobody waits for is never told as if it were before.
    fn when(&self) -> &'static str {
        if self.waits { "before " } else { "maybe too late for " }
    }

    /// Takes the checkpoint of a turn that begins, for a client that waits for no answer before it acts.
    pub(super) fn protect_turn(&mut self, id: Option<Id>, turn: String) -> Result<()> {
        let place = self.place()?;
        let (name, told, root) = ("turn.start", Told::Turn(turn), place.workspace.path.clone());
        let without = if let Some(why) = off_reason(&place) {
            Some(no_block("off", Some(why)))
        } else if place.workspace.scope == Scope::TargetsOnly {
            Some(no_block("none", Some("this directory is too broad to capture".to_owned())))
        } else {
            None
        };
        if let Some(checkpoint) = without {
            self.reply(name, id, &told.with(checkpoint, None));
            return Ok(());
        }
        let (run, turn) = self.run_and_turn();
        let reason = "at the start of a turn: nobody waits for this stream".to_owned();
        let take = Take { turn, ..Take::of(CheckpointKind::Auto, &run, &reason) };
        let action = Action { name, id, action: None, deadline_ms: None, cwd: root.clone(), reason };
        self.protect(&root, action, told, (take, None, None))
    }

    /// Classifies an action, decides, and answers at once or leaves it to the worker.
    fn before(&mut self, action: Action, judge: impl Fn(&InForce, &crate::classify::Context) -> Verdict) -> Result<()> {
        let session = self.place()?.workspace.path.clone();
        let root = self.engine.root_of(&session, &action.cwd);
        let home = self.engine.home().clone();
        let (run, turn) = self.run_and_turn();
        let place = self.engine.open(&root)?;
        if root != session {
            self.follow_settings(&place);
        }
        let rules = place.in_force();
        let asked = Instant::now();
        if self.talk().turns.slot(&place.workspace.id).is_none() {
            // The action is judged meanwhile.
            place.worker.listen();
        }
        let verdict = reach::judged(place.context(&home, &action.cwd), |context| judge(&rules, context));
        let mut reach = reach::reach(&place.workspace.path, &action.cwd, &verdict);
        if place.workspace.scope == Scope::TargetsOnly {
            // Such a directory is too broad to be captured as a whole, whatever the action does.
            reach.targets.retain(|target| !target.path.is_root());
            reach.is_everything = false;
        }
        let off = State::load(&place.workspace.dir).is_off(now_ms());
        let due = self.talk().turns.due(&place.workspace.id, &verdict, &rules.policy, off);
        let effects = protect::classes(&verdict);
        if !self.hears {
            self.keep_notes(verdict.warnings.iter().map(|warning| warning.message.clone()).collect());
        }
        let reply = BeforeReply {
            proceed: verdict.hold.is_none(),
            reason: verdict.hold.clone(),
            action: action.action.clone(),
            turn: turn.clone(),
            needs: verdict.needs,
            confidence: verdict.confidence,
            effects: verdict.effects.clone(),
            warnings: verdict.warnings.iter().map(told).collect(),
            checkpoint: no_block("none", None),
            not_held: Vec::new(),
            notices: self.notices(),
        };
        let standing = match &due {
            Due::Held(slot) => {
                Some(Standing { slot: slot.clone(), reaches_all: reach.is_everything, waits: self.waits })
            }
            Due::Nothing | Due::Off | Due::Take => None,
        };
        let simple = match (&due, place.workspace.scope) {
            (Due::Nothing, _) => Some(no_block("none", None)),
            (Due::Off, _) => Some(no_block("off", off_reason(&place))),
            (_, Scope::TargetsOnly) if reach.targets.is_empty() => Some(no_block(
                "none",
                Some("this directory is too broad to capture, and the action names no path in it".to_owned()),
            )),
            // All that it names lies elsewhere.
            (Due::Held(slot), _) if reach.is_nothing() => Some(held_block(slot)),
            _ => None,
        };
        if let Some(checkpoint) = simple {
            self.reply(action.name, action.id, &BeforeReply { checkpoint, ..reply });
            return self.note(&root, verdict, (run, turn), shown(&action.reason));
        }
        let take = Take {
            turn: turn.clone(),
            effects,
            targets: reach.targets,
            takes: verdict.takes,
            asked: Some(asked),
            always: verdict.warnings.iter().any(|warning| warning.class.is_external()),
            ..Take::of(CheckpointKind::Auto, &run, &shown(&action.reason))
        };
        self.protect(&root, action, Told::Action(Box::new(reply)), (take, standing, Some(verdict)))
    }

    /// Gives the checkpoint to the worker; the answer comes with it, or at the deadline.
    fn protect(
        &mut self,
        root: &Path,
        action: Action,
        told: Told,
        (take, standing, verdict): (Take, Option<Standing>, Option<Verdict>),
    ) -> Result<()> {
        let nested = |verdict: &Verdict| reach::repositories(root, &action.cwd, verdict);
        let repositories = verdict.as_ref().map(nested).unwrap_or_default();
        let ticket = self.pending.ticket();
        let place = self.engine.open(root)?;
        let rules = place.in_force();
        let longest = rules.policy.deadline;
        let wait = action.deadline_ms.map_or(longest, |ms| Duration::from_millis(ms).min(longest));
        let before = Before {
            name: action.name,
            id: action.id,
            fills: self.waits || matches!(told, Told::Turn(_)),
            told,
            deadline: Instant::now() + wait,
            on_failure: rules.policy.on_failure,
            workspace: place.workspace.id.clone(),
            turn: take.turn.clone(),
            late: false,
        };
        let (since, deadline) = (file_clock(), before.deadline);
        let accepted = place.worker.submit(self.asker(ticket), move |timeline, control| {
            let protected = protect::protect(timeline, &take, standing.as_ref(), control);
            let noted = verdict.map(|verdict| {
                protect::note_externals(timeline, &verdict, (&take.run, take.turn.as_deref()), &take.reason)
            });
            if let Some(Err(error)) = noted {
                tracing::warn!(%error, "an external effect could not be noted");
            }
            // Only who was answered `late` is told what changed meanwhile.
            let touched = if Instant::now() > deadline { timeline.touched_since(since) } else { Vec::new() };
            let not_held = protected
                .as_ref()
                .map_or_else(|_| Vec::new(), |done| protect::not_held(timeline, done, &take, &repositories));
            Answer::Before(protected, touched, not_held)
        });
        if !accepted {
            let checkpoint = no_block("failed", Some(busy().text()));
            let hold = (before.on_failure == OnFailure::Hold).then_some("no checkpoint could be taken");
            self.reply(before.name, before.id, &before.told.with(checkpoint, hold));
            return Ok(());
        }
        self.pending.put(ticket, Pending::Before(Box::new(before)));
        Ok(())
    }

    /// Writes down the external effects of an action that needs no checkpoint.
    fn note(
        &mut self,
        root: &Path,
        verdict: Verdict,
        (run, turn): (String, Option<String>),
        reason: String,
    ) -> Result<()> {
        if !verdict.warnings.iter().any(|warning| warning.class.is_external()) {
            return Ok(());
        }
        let ticket = self.pending.ticket();
        let place = self.engine.open(root)?;
        let accepted = place.worker.submit(self.asker(ticket), move |timeline, _| {
            Answer::Quiet(protect::note_externals(timeline, &verdict, (&run, turn.as_deref()), &reason))
        });
        if accepted {
            self.pending.put(ticket, Pending::Quiet);
        } else {
            self.fault("an external effect could not be noted: the worker is busy".to_owned());
        }
        Ok(())
    }
}

/// Returns an action's reason as it is recorded: one line, redacted and cut.
fn shown(reason: &str) -> String {
    cut(&printable(&redact(reason)), MAX_REASON)
}

/// Returns why the guard of a workspace is off, if it is.
fn off_reason(place: &Place<Answer>) -> Option<String> {
    let rules = place.in_force();
    why_off(&rules.policy, &place.workspace.dir, &rules.origin("guard"))
}

/// The worker has too many jobs waiting.
pub(super) fn busy() -> Error {
    Error::new(Code::Busy, "the workspace's worker has too many jobs waiting").hint("try again in a moment")
}

/// A warning as it is told and logged: without the secrets of the command that it is about.
fn told(warning: &Warning) -> Warning {
    Warning { message: redact(&warning.message), ..warning.clone() }
}
