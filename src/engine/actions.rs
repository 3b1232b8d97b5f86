//! The turns and actions of a session, as the workspaces in which they act note them, and the answers that wait for that.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::deadlines::Behind;
use super::decision::Decision;
use super::event::{Action, Doing};
use super::guard::Turns;
use super::job::Answer;
use super::named_paths::{NamedPaths, applies_commits, leaves_work, names_git};
use super::parts::OUTSIDE;
use super::session::{Reply, Session};
use super::steps::Step;
use super::told::{Note, hash_of};
use super::turns::guard_again;
use super::workspace::OpenWorkspace;
use crate::checkpoint::history::actions::NewAction;
use crate::checkpoint::history::collision::{Asker, is_persons_name};
use crate::checkpoint::history::turn_end::{EndedTurn, TurnName};
use crate::checkpoint::records::action_window::EndedCall;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::process_names::own_name;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::repository::{NewGitOperation, RepositoryNow};
use crate::checkpoint::runs::client::run_of;
use crate::checkpoint::{Home, Timeline};
use crate::error::{Error, Result};
use crate::model::door::Door;
use crate::model::effect::{Class, Confidence, Effect, Stance, Verdict};
use crate::model::id::ObjectId;
use crate::model::loss::Loss;
use crate::model::text::{count, printable, shell_word};
use crate::sys::clock::since_boot_ns;
use crate::sys::interrupt::Interrupt;
use crate::sys::processes::above;

/// The longest wait of an answer for the note of an action.
const NOTE_WAIT: Duration = Duration::from_millis(300);

/// The longest wait for the end of a command of which git itself tells.
const GIT_WAIT: Duration = Duration::from_secs(4);

/// The longest wait for the note of a turn, which captures the workspace.
const TURN_WAIT: Duration = Duration::from_secs(2);

/// The most processes above a proxy among which its agent is looked for.
const ABOVE: usize = 16;

/// The deleted paths from which on the end of a turn tells of them.
const MANY_DELETED: usize = 20;

/// The note of an action that begins.
#[derive(Clone)]
pub(super) struct ActionNote {
    /// The open turn, to which the action belongs.
    turn: Option<TurnName>,
    /// The action.
    pub(super) action: NewAction,
    /// The operation of git that it is.
    git: Option<NewGitOperation>,
    /// The moment at which the event came.
    asked: i64,
    /// The step to take first, in case that something changed; `None` where the action only reads, or gets a checkpoint of its own.
    pub(super) step: Option<Step>,
}

impl ActionNote {
    /// Notes the action, on the worker's thread. `is_late` says that the client was answered before. `files` is the checkpoint that
    /// holds the files as they are before it.
    pub(super) fn write(
        mut self,
        timeline: &mut Timeline,
        is_late: bool,
        files: Option<ObjectId>,
        control: Interrupt<'_>,
    ) {
        if is_late {
            (self.action.from, self.action.checkpoint) = (Some(self.asked), None);
        }
        // Files that were captured while the command may have run are not its beginning.
        if let Some(git) = self.git
            && let Err(error) = timeline.begin_git(&git, files.filter(|_| !is_late))
        {
            not_kept(timeline.home(), &error);
        }
        if let Err(error) = timeline.begin_action(self.turn.as_ref(), &self.action, control) {
            tracing::warn!(%error, "could not record an action, so it will be less certain who changed what");
        }
    }
}

impl Session {
    /// Returns the name under which the session's actions are noted: its run, or one of its own where the run is everybody's.
    fn actor(&self) -> String {
        let state = self.state();
        match state.is_named() {
            true => state.run.clone(),
            false => format!("{} {} {}", state.run, own_name(), self.number),
        }
    }

    /// Returns the session as one who asks for the collisions of an action with some losses. `answer` is the policy's.
    pub(super) fn asker(&self, open: &OpenWorkspace, losses: &[Loss], answer: Stance) -> Asker {
        let actor = self.actor();
        // A proxy has no session of its agent's, but the agent has started it.
        let starter = self.door.is(Door::McpProxy).then(|| {
            let above = above(std::process::id(), ABOVE);
            run_of(self.engine.home(), &open.workspace.dir, "", &above)
        });
        let is_agents_turn = {
            let state = self.state();
            !state.is_persons && state.turns.current().is_some()
        };
        let names_older = is_agents_turn && self.asks_for_older(losses, answer);
        let state = self.state();
        Asker {
            actor,
            run: state.run.clone(),
            parent: state.parent.clone().or(starter.flatten()),
            process: self.process.clone(),
            client: self.client.clone().or_else(|| state.client.clone()),
            is_person: state.is_persons,
            is_in_turn: state.turns.current().is_some(),
            names_older,
        }
    }

    /// Returns true if an action with these losses has to be checked for work from before the first turn. That is the first one in the
    /// session, if it takes more than single files. A policy that does more than to warn wants it each time.
    fn asks_for_older(&self, losses: &[Loss], answer: Stance) -> bool {
        if !losses.iter().any(|loss| !matches!(loss, Loss::File(_))) {
            return false;
        }
        let key = hash_of(losses);
        let mut state = self.state();
        let is_new = state.told.look().may_ask(key) && state.told.change(|record| record.note_asked(key));
        is_new || answer > Stance::Warn
    }

    /// Returns the names of the open turn.
    pub(super) fn open_turn(&self) -> Option<TurnName> {
        let actor = self.actor();
        let state = self.state();
        let (turn, key) = (state.turns.current()?.to_owned(), state.turns.key()?.to_owned());
        let client = state.client.clone().or_else(|| self.client.clone());
        let is_agents = !state.is_persons && is_persons_name(client.as_deref());
        let places = state.turns.places().to_vec();
        let prompt = state.turns.prompt().map(str::to_owned);
        // A session without a name ends with its connection.
        let held_by = match state.is_named() {
            true => state.turns.holder().map(|holder| holder.process.clone()),
            false => Some(own_name().to_owned()),
        };
        Some(TurnName { key, run: state.run.clone(), actor, turn, prompt, client, is_agents, places, held_by })
    }

    /// Returns true if a turn begins in a workspace with its first checkpoint of single paths: for files outside every workspace, and
    /// in the session's own, where that is too broad to be captured.
    pub(super) fn turn_begins_in(&mut self, open: &OpenWorkspace) -> bool {
        let record = &open.workspace;
        let is_own = |own: Arc<OpenWorkspace>| own.workspace.id == record.id;
        let is_single = record.scope == Scope::TargetsOnly;
        is_single && (record.path == Path::new(OUTSIDE) || self.workspace().is_ok_and(is_own))
    }

    /// Returns the note of an action in a workspace; `None` where it changes nothing, or nobody guards.
    pub(super) fn note_of(
        &mut self,
        open: &Arc<OpenWorkspace>,
        action: &Action,
        (cwd, verdict): (&Path, &Verdict),
        named: NamedPaths,
    ) -> Option<ActionNote> {
        let is_denied = verdict.denied && verdict.hold.is_some();
        let is_whole = open.workspace.scope == Scope::Tree;
        let is_off = is_denied || open.why_off().is_some();
        if is_off || only_reads(action, verdict) || !(is_whole || self.turn_begins_in(open)) {
            return None;
        }
        self.note_client(open);
        self.note_sub_agent(open);
        self.come_to(&open.workspace.path);
        Some(ActionNote {
            turn: self.open_turn().filter(|_| is_whole),
            action: NewAction {
                actor: self.actor(),
                action: action.id.clone(),
                call: action.call(),
                named: named.below,
                alone: named.alone,
                moves_head: names_git(action),
                and_others: named.and_others,
                by_git: named.by_git,
                only_deletes: named.only_deletes,
                leaves_work: leaves_work(action),
                is_ended_here: self.reports_all_ends(),
                from: None,
                checkpoint: None,
            },
            // Files outside every workspace are in no repository of their own.
            git: (open.workspace.path != Path::new(OUTSIDE))
                .then(|| self.git_operation(action, cwd, verdict))
                .flatten(),
            asked: since_boot_ns(),
            step: None,
        })
    }

    /// Returns the operation of git that an action is; `None` for one that moves nothing in a repository.
    fn git_operation(&self, action: &Action, cwd: &Path, verdict: &Verdict) -> Option<NewGitOperation> {
        let Doing::Shell { command } = &action.what else { return None };
        let moves = |effect: &Effect| matches!(effect.class, Class::VcsDiscard | Class::VcsHistory | Class::VcsRemote);
        // A script may run any git.
        let hidden = !self.door.is(Door::Git) && !applies_commits(command) && !verdict.effects.iter().any(moves);
        if hidden && verdict.confidence != Confidence::Opaque {
            return None;
        }
        // Read at once: the command waits for its answer, and not for the worker.
        let before = RepositoryNow::around(cwd).unwrap_or_else(|error| {
            not_kept(self.engine.home(), &error);
            None
        })?;
        // A person's commit meanwhile would count as the script's.
        if hidden && before.tells_itself() {
            return None;
        }
        let (run, turn) = self.run_and_turn();
        let (action, command) = (action.id.clone(), command.clone());
        Some(NewGitOperation { before, run, turn, action, command, over: None, is_way_back: false, hidden })
    }

    /// Notes that the open turn acts in a workspace. All of its workspaces know of each other.
    fn come_to(&mut self, root: &Path) {
        let (places, key) = {
            let mut state = self.state();
            if !state.turns.come_to(root) {
                return;
            }
            state.keep();
            (state.turns.places().to_vec(), state.turns.key().map(str::to_owned))
        };
        let (true, Some(key)) = (places.len() > 1, key) else { return };
        // A workspace that is gone has no log to note it in.
        for place in places.iter().filter_map(|place| self.engine.open(place).ok()).collect::<Vec<_>>() {
            let (key, places) = (key.clone(), places.clone());
            self.quietly(&place, move |timeline, _| timeline.note_places(&key, &places));
        }
    }

    /// Notes that the open turn acts in the session's own workspace, where it has just begun.
    pub(super) fn begin_turn_in(&mut self, open: &OpenWorkspace) {
        if open.workspace.scope == Scope::Tree {
            self.come_to(&open.workspace.path);
        }
    }

    /// Gives the worker the note of an action, and the client its answer once that is done, or after `patience`. The work returns the
    /// time for which it scanned a workspace that is not watched.
    fn answer_behind(
        &mut self,
        (open, begins): (&OpenWorkspace, bool),
        (decision, reply): (Decision, Reply<Decision>),
        patience: Duration,
        work: impl FnOnce(&mut Timeline, Interrupt<'_>) -> Duration + Send + 'static,
    ) {
        let ticket = self.deadlines.next_ticket();
        let later = Arc::clone(&self.later);
        let job = move |timeline: &mut Timeline, control: Interrupt<'_>| -> Answer {
            let scanned = work(timeline, control);
            Box::new(move || {
                later(Box::new(move |session| {
                    session.jobs -= 1;
                    session.state().has_scanned(scanned);
                    session.caught_up(ticket, Vec::new());
                }));
            })
        };
        let given = if begins { open.worker.note(Box::new(job)) } else { open.worker.submit(Box::new(job)) };
        if given.is_err() {
            return reply(self, Ok(decision));
        }
        self.jobs += 1;
        self.deadlines.add_behind(Behind { decision, reply, deadline: Instant::now() + patience });
    }

    /// Answers an action once it is noted.
    pub(super) fn answer_noted(
        &mut self,
        open: &OpenWorkspace,
        note: Option<ActionNote>,
        wait: Option<Duration>,
        answer: (Decision, Reply<Decision>),
    ) {
        let Some(note) = note else { return answer.1(self, Ok(answer.0)) };
        let files = match &answer.0 {
            Decision::Action(decision) => decision.protection.held().and_then(|held| held.id.parse().ok()),
            _ => None,
        };
        // The first step in a workspace is a scan.
        let patience = if note.turn.is_some() || note.step.is_some() { TURN_WAIT } else { NOTE_WAIT };
        let patience = wait.map_or(patience, |wait| wait.min(patience));
        let deadline = Instant::now() + patience;
        self.answer_behind((open, true), answer, patience, move |timeline, control| {
            note.step_and_write(timeline, files, deadline, control)
        });
    }

    /// Answers whoever waits behind a note, if that was not done yet.
    pub(super) fn caught_up(&mut self, ticket: u64, more: Vec<String>) {
        let Some(Behind { mut decision, reply, .. }) = self.deadlines.remove_behind(ticket) else { return };
        if let Decision::TurnEnded { notices, .. } = &mut decision {
            notices.extend(more);
        }
        reply(self, Ok(decision));
    }

    /// Notes the end of an action in all workspaces of its turn, and answers with `decision`.
    pub(super) fn end_action(
        &mut self,
        ended_call: EndedCall,
        ended: Option<i64>,
        decision: Decision,
        reply: Reply<Decision>,
    ) {
        let places = self.state().turns.places().to_vec();
        let (actor, run) = (self.actor(), self.run_and_turn().0);
        let own = self.workspace().ok().filter(|open| open.workspace.scope == Scope::Tree);
        let others = places.iter().filter(|place| own.as_ref().is_none_or(|own| own.workspace.path != **place));
        for place in others.filter_map(|place| self.engine.open(place).ok()).collect::<Vec<_>>() {
            let (actor, ended_call, run) = (actor.clone(), ended_call.clone(), run.clone());
            self.quietly(&place, move |timeline, control| {
                timeline.end_action(&actor, &ended_call)?;
                timeline.end_git(&run, (ended_call.action.as_deref(), ended), control)
            });
        }
        // Without a daemon each hook is a process: there the workspace is opened only where something is to be noted.
        let Some(own) = own else { return reply(self, Ok(decision)) };
        // The next git waits for the end of this one, so that nothing of its own counts as this one's.
        let patience = if self.door.is(Door::Git) { GIT_WAIT } else { NOTE_WAIT };
        self.answer_behind((&own, false), (decision, reply), patience, move |timeline, control| {
            if let Err(error) = timeline.end_action(&actor, &ended_call) {
                tracing::warn!(%error, "could not record the end of an action");
            }
            if let Err(error) = timeline.end_git(&run, (ended_call.action.as_deref(), ended), control) {
                tracing::warn!(%error, "could not record the end of a git command");
            }
            Duration::ZERO
        });
    }

    /// Notes that no action of a named session is known to be at work: whoever tells of them has gone away. Its turn goes on.
    pub(super) fn end_actions(&mut self) {
        let (actor, places) = (self.actor(), self.state().turns.places().to_vec());
        for place in places.iter().filter_map(|place| self.engine.opened(place)).collect::<Vec<_>>() {
            let actor = actor.clone();
            self.quietly(&place, move |timeline, _| timeline.leave_actions(&actor, true));
        }
    }

    /// Writes down what a turn has changed in each of its workspaces, and answers with sentences on that.
    pub(super) fn close_turn(&mut self, turns: &Turns, answer: Option<(Decision, Reply<Decision>)>) {
        let key = turns.key().map(str::to_owned);
        let opened = |session: &Session, root: &PathBuf| session.engine.open(root).ok(); // what is gone has no end
        let places: Vec<Arc<OpenWorkspace>> = turns.places().iter().filter_map(|root| opened(self, root)).collect();
        let name = turns.name().unwrap_or_default();
        let outside = turns.lost_outside().map(|(first, number)| sentence_lost(name, first, number));
        let Some(key) = key.filter(|_| !places.is_empty()) else {
            match answer {
                Some((mut decision, reply)) => {
                    if let Decision::TurnEnded { notices, .. } = &mut decision {
                        notices.extend(outside);
                    }
                    reply(self, Ok(decision));
                }
                None => self.keep_notes(Note::others(outside)),
            }
            return;
        };
        let (run, is_interrupted) = (self.run_and_turn().0, turns.is_interrupted());
        let own = self.workspace().ok().map(|own| own.workspace.path.clone());
        let roots = turns.places().to_vec();
        let ticket = answer.map(|(decision, reply)| {
            let deadline = Instant::now() + TURN_WAIT;
            self.deadlines.add_behind(Behind { decision, reply, deadline })
        });
        // Known at once: without an answer that waits for the rest, the next event has it.
        let outside = match ticket {
            Some(_) => outside,
            None => {
                self.keep_notes(Note::others(outside));
                None
            }
        };
        let told = Arc::new(Mutex::new(outside.into_iter().collect::<Vec<String>>()));
        let left = Arc::new(AtomicUsize::new(places.len()));
        for place in places {
            let (key, told, left) = (key.clone(), Arc::clone(&told), Arc::clone(&left));
            let (run, roots) = (run.clone(), roots.clone());
            let option = option_of(&place.workspace.path, own.as_deref());
            let again = Arc::clone(&told);
            let work = move |timeline: &mut Timeline, control: Interrupt<'_>| {
                again.lock().unwrap_or_else(PoisonError::into_inner).extend(guard_again(timeline));
                if let Err(error) = timeline.end_git(&run, (None, None), control) {
                    tracing::warn!(%error, "could not record the end of a git command");
                }
                if roots.len() > 1 {
                    timeline.note_places(&key, &roots)?;
                }
                if is_interrupted {
                    return timeline.interrupt_turn(&key, control);
                }
                timeline.end_turn(&key, control)
            };
            self.queue(&place, work, move |session, ended: Result<Option<EndedTurn>>| {
                match ended {
                    Ok(ended) => {
                        let sentence = ended.as_ref().and_then(|ended| sentence(ended, &option));
                        told.lock().unwrap_or_else(PoisonError::into_inner).extend(sentence);
                    }
                    Err(error) => session.fault(format!("could not record the end of a turn: {}", error.text())),
                }
                if left.fetch_sub(1, Ordering::AcqRel) > 1 {
                    return;
                }
                let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
                match ticket {
                    Some(ticket) => session.caught_up(ticket, told),
                    // The client tells of no end: the next event that reaches its model tells of this.
                    None => session.keep_notes(Note::others(told)),
                }
            });
        }
    }
}

/// Notes for `piton status` that the state of a repository was not kept.
fn not_kept(home: &Home, error: &Error) {
    note_mishap(home, &format!("`piton git-undo` will not list a git command: {}", error.text()));
}

/// Notes a mishap for `piton status`.
pub(super) fn note_mishap(home: &Home, text: &str) {
    if let Err(error) = mishaps::note_once(home, text) {
        tracing::warn!(%error, "could not record a mishap");
    }
}

/// Returns the option with which a command is about a workspace of a turn, after a space; none for the session's `own`.
fn option_of(root: &Path, own: Option<&Path>) -> String {
    if own == Some(root) {
        String::new()
    } else if root == Path::new(OUTSIDE) {
        " --outside".to_owned()
    } else {
        format!(" --workspace {}", shell_word(&root.to_string_lossy()))
    }
}

/// Says what of a turn a person should look at; `None` where that is nothing. `option` is the one of [`option_of`].
fn sentence(ended: &EndedTurn, option: &str) -> Option<String> {
    let mut facts = Vec::new();
    if ended.deleted >= MANY_DELETED {
        facts.push(format!("{} gone", count(ended.deleted as u64, "path")));
    }
    if let Some((first, number)) = &ended.secrets {
        let more = if *number > 1 { format!(" and {} more", number - 1) } else { String::new() };
        facts.push(format!("`{}`{more} changed and looks like a secret", first.display()));
    }
    let what = facts.join("; ");
    (!facts.is_empty()).then(|| {
        let op = &ended.end.op;
        format!(
            "piton: turn {op}: {what}. To see it, run `piton diff{option} --turn {op}`; to undo it, run `piton undo{option} --turn {op}`"
        )
    })
}

/// Says what a turn may have destroyed outside every workspace without a checkpoint.
fn sentence_lost(turn: &str, first: &Path, number: usize) -> String {
    let more = if number > 1 { format!(" and {} more", number - 1) } else { String::new() };
    format!(
        "piton: turn `{}` might have changed files that were not saved and that `piton undo` cannot restore: `{}`{more}",
        printable(turn),
        printable(&first.to_string_lossy())
    )
}

/// Returns true for a tool that is known to change nothing. A command may always write.
fn only_reads(action: &Action, verdict: &Verdict) -> bool {
    match &action.what {
        Doing::Shell { .. } => false,
        Doing::Tool(tool) => {
            let is_harmless = verdict.effects.is_empty() && verdict.confidence == Confidence::Exact;
            tool.writes == Some(false) || (tool.writes.is_none() && is_harmless)
        }
    }
}
