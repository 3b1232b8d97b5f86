//! A command of git, told to the engine: before it acts, and after it has ended.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::caller::GitCaller;
use super::calls::{self, CallMark, GitCall};
use super::real;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::workspace::known_around;
use crate::checkpoint::repository::undo::OF_GIT;
use crate::checkpoint::runs::client::run_of;
use crate::checkpoint::{Home, Workspace};
use crate::cli::judged_line::JudgedLine;
use crate::cli::print;
use crate::cli::run::RUN;
use crate::cli::shell::agreed;
use crate::cli::talk::Talk;
use crate::error::{Code, Result};
use crate::model::door::Door;
use crate::model::effect::{Class, Confidence, Needs};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::OnFailure;
use crate::model::repository::RefValue;
use crate::model::text::{cut, printable};
use crate::protocol::{
    After, AfterReply, BeforeReply, Body, ErrorBody, Hello, HelloReply, OtherBlock, ShellBefore, Turn, TurnReply, Word,
    not_held_sentence,
};
use crate::shell::HookedShell;
use crate::sys::child::close_stdout;
use crate::sys::clock::now_ms;
use crate::sys::process::{leave_session, own_program};
use crate::sys::processes::ProcessId;
use crate::worktree::repository_state::RepositoryPlace;

/// The longest wait for an answer, beside the time that the settings give a checkpoint.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest time for which the end of a git is waited for.
const LONGEST: Duration = Duration::from_hours(24);

/// The word of the process that waits for the end of a git, once it does.
const WAITS: &str = ".";

/// The longest command in the name of a turn, in characters.
const MAX_NAME: usize = 48;

/// The client's name of what is done with git outside of any other client's run.
const CLIENT: &str = "git";

/// The decision on a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitAnswer {
    /// It goes on.
    GoesOn,
    /// The policy does not let it.
    Refused,
}

/// The session that a command belongs to.
struct GitSession {
    name: String,
    kind: SessionKind,
    /// The process with which the run of an own session ends.
    process: Option<u32>,
    /// The git that has told of its command, of which this one is a part.
    part_of: Option<u32>,
}

impl GitSession {
    /// Returns the session of a command whose client cannot be looked up.
    fn unknown() -> GitSession {
        let kind = if std::env::var_os(RUN).is_some() { SessionKind::Run } else { SessionKind::Own };
        GitSession { name: String::new(), kind, process: None, part_of: None }
    }

    /// Returns true for the session of a person's shell, which asks on the terminal before a line runs.
    fn is_shell(&self) -> bool {
        let client = self.name.split('.').next().unwrap_or_default();
        HookedShell::named(client).is_ok()
    }
}

/// The kind of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionKind {
    /// Of an agent that `piton run` has started.
    Run,
    /// Of a client whose hook, shell or stream tells of its commands too.
    Client,
    /// Of nobody else.
    Own,
}

/// A command of git that is about to act.
pub(super) struct GitCommand {
    caller: GitCaller,
    /// The top of its work tree, on the whole of which git acts.
    top: PathBuf,
    /// The directory from which its paths count.
    place: PathBuf,
}

impl GitCommand {
    /// Makes it of the git that has called, at the top of a work tree.
    pub(super) fn new(caller: GitCaller, top: PathBuf) -> GitCommand {
        // The protocol is text: where a directory is none, the top of the work tree stands for it.
        let place = Some(real(caller.place(&top))).filter(|place| place.to_str().is_some());
        GitCommand { caller, place: place.unwrap_or_else(|| top.clone()), top }
    }

    /// Returns the numbers of its processes, the one that waits for the answer first.
    pub(super) fn pids(&self) -> Vec<i32> {
        let (asks, whole) = (self.caller.asks, self.caller.id.pid);
        let all = std::iter::once(asks).chain((whole != asks).then_some(whole));
        all.filter_map(|pid| i32::try_from(pid).ok()).collect()
    }

    /// Tells the engine of the command, if it may destroy something, and returns the decision. Only the first call of one git
    /// process tells.
    ///
    /// # Errors
    /// When the engine does not answer. git goes on then, unless the policy holds.
    pub(super) fn told(&self) -> Result<GitAnswer> {
        let (line, command) = (&self.caller.line, self.caller.command());
        // Where it cannot be judged here, the engine says why.
        let judged = JudgedLine::in_dir(self.place.clone(), &command).ok();
        // An unknown verb is one of git's own helpers, or may do anything.
        let is_seen = |confidence| confidence != Confidence::Opaque || line.verb.contains("--");
        let is_harmless = judged.as_ref().is_some_and(|judged| {
            let verdict = &judged.verdict;
            verdict.needs == Needs::Nothing && verdict.hold.is_none() && is_seen(verdict.confidence)
        });
        // A quiet one is here because it moves refs by the configuration.
        if is_harmless && !line.is_quiet() && !line.rewrites() && !self.leaves_commits() {
            return Ok(GitAnswer::GoesOn);
        }
        let marked = Home::locate().and_then(|home| Ok((CallMark::set(&home, &self.caller.id)?, home)));
        let (mark, home) = match marked {
            Ok((Some(mark), home)) => (mark, home),
            Ok((None, _)) => return Ok(GitAnswer::GoesOn),
            // Nothing can be kept; the settings say whether git goes on then.
            Err(error) => return GitCommand::decided(&GitSession::unknown(), judged.as_ref(), Err(error)),
        };
        let session = self.session(&home);
        // A git that another one has started is a part of that.
        let outer =
            self.caller.above().into_iter().filter_map(ProcessId::of).find(|id| CallMark::of(home.path(), id).is_set());
        let session = GitSession { part_of: outer.map(|id| id.pid), ..session };
        let reply = self.before(&home, &session, &command, judged.as_ref(), is_harmless);
        let decided = GitCommand::decided(&session, judged.as_ref(), reply);
        match decided {
            // The next hook of this git is refused as well.
            Ok(GitAnswer::Refused) => mark.remove(),
            _ => self.wait_behind(&mark, &session),
        }
        decided
    }

    /// Returns true for a command that leaves a commit that perhaps no branch has.
    fn leaves_commits(&self) -> bool {
        let is_detached = || {
            let head = RepositoryPlace::around(&self.top).and_then(|place| std::fs::read(place.dir.join("HEAD")).ok());
            head.is_some_and(|head| matches!(RefValue::parse(&head), Some(RefValue::Object(_))))
        };
        matches!(self.caller.line.verb.as_str(), "checkout" | "switch") && is_detached()
    }

    /// Tells the engine of a push that rewrites or deletes something.
    ///
    /// # Errors
    /// As [`GitCommand::told`].
    pub(super) fn told_of_push(&self, remote: &str, forced: &[String]) -> Result<GitAnswer> {
        let names = forced.iter().map(|name| format!("`{}`", printable(name))).collect::<Vec<_>>().join(", ");
        print::say(&format!(
            "piton: this push rewrites or deletes {names} on {}; piton cannot undo that",
            printable(remote)
        ));
        let command = self.caller.command();
        // Where it cannot be judged here, the engine says why.
        let judged = JudgedLine::in_dir(self.place.clone(), &command).ok();
        let (home, session) = (Home::locate()?, self.session(&Home::locate()?));
        if session.kind != SessionKind::Own {
            // The client's own door has told of the command.
            return Ok(GitAnswer::GoesOn);
        }
        let reply = self.before(&home, &session, &command, judged.as_ref(), false);
        let decided = GitCommand::decided(&session, judged.as_ref(), reply);
        if let Some(mark) = CallMark::set(&home, &self.caller.id)? {
            self.wait_behind(&mark, &session);
        }
        decided
    }

    fn session(&self, home: &Home) -> GitSession {
        if let Some(name) = std::env::var(RUN).ok().filter(|name| !name.is_empty()) {
            return GitSession { name, kind: SessionKind::Run, process: None, part_of: None };
        }
        let known = Workspace::known(home).unwrap_or_default();
        let root = known_around(&self.top, &known);
        let workspace = known.iter().find(|workspace| Some(&workspace.path) == root.as_ref());
        if let Some(name) = workspace.and_then(|workspace| run_of(home, &workspace.dir, CLIENT, &self.caller.above())) {
            return GitSession { name, kind: SessionKind::Client, process: None, part_of: None };
        }
        let place = root.as_deref().unwrap_or(&self.top).as_os_str().as_encoded_bytes();
        let id = ObjectId::of(ObjectKind::Blob, place).map(|id| id.to_string()).unwrap_or_default();
        let name = format!("{CLIENT}.{}", id.get(..8).unwrap_or_default());
        GitSession { name, kind: SessionKind::Own, process: self.caller.above().first().copied(), part_of: None }
    }

    fn action(&self, session: &GitSession) -> String {
        format!("{OF_GIT}{}", session.part_of.unwrap_or(self.caller.id.pid))
    }

    fn before(
        &self,
        home: &Home,
        session: &GitSession,
        command: &str,
        judged: Option<&JudgedLine>,
        is_harmless: bool,
    ) -> Result<BeforeReply> {
        let patience = PATIENCE + judged.map(|judged| judged.deadline).unwrap_or_default();
        let turn = self.turn();
        conversation(home, session, &self.top, patience, |talk| {
            if session.kind == SessionKind::Own && session.part_of.is_none() {
                let _: TurnReply = talk.ask(&Body::TurnStart(Turn { turn: turn.clone(), ..Turn::default() }))?;
            }
            talk.ask(&Body::ShellBefore(ShellBefore {
                action: Some(self.action(session)),
                command: command.to_owned(),
                shell: None,
                cwd: Some(self.place.clone()),
                deadline_ms: None,
                // It rewrites files, though the classifier knows that nothing is lost.
                doubt: is_harmless,
                background: false,
            }))
        })
    }

    fn decided(session: &GitSession, judged: Option<&JudgedLine>, reply: Result<BeforeReply>) -> Result<GitAnswer> {
        if let Ok(reply) = &reply {
            said(reply).iter().for_each(|text| print::say(text));
        }
        let hold = match &reply {
            Ok(reply) if reply.proceed => None,
            Ok(reply) => Some(reply.reason.clone().unwrap_or_else(|| "the policy says no".to_owned())),
            Err(error) => judged.and_then(|judged| {
                let failed = || (judged.on_failure == OnFailure::Hold).then(|| error.text());
                judged.verdict.hold.clone().or_else(failed)
            }),
        };
        let Some(reason) = hold else {
            return match reply {
                Err(error) if error.code() != Code::Busy => Err(error),
                Err(error) => {
                    print::say(&format!("piton: {}", error.text()));
                    Ok(GitAnswer::GoesOn)
                }
                Ok(_) => Ok(GitAnswer::GoesOn),
            };
        };
        let is_judged_denied = judged.is_some_and(|judged| judged.verdict.denied && judged.verdict.hold.is_some());
        let is_denied = is_judged_denied || reply.as_ref().is_ok_and(BeforeReply::is_denied);
        // An agent's own door does not let such a command run, so that this one was hidden from it.
        let is_unseen = reply.as_ref().is_ok_and(|reply| !reply.collisions.is_empty()) && !session.is_shell();
        let may_run = match (is_denied, session.kind) {
            (true, _) | (false, SessionKind::Run) => false,
            // Its own door has asked already.
            (false, SessionKind::Client) => !is_unseen,
            (false, SessionKind::Own) => {
                print::say(&format!("piton: {}", printable(&reason)));
                agreed()
            }
        };
        if may_run {
            return Ok(GitAnswer::GoesOn);
        }
        let is_said = !is_denied && session.kind == SessionKind::Own;
        let why = if is_said { String::new() } else { format!(": {}", printable(&reason)) };
        print::say(&format!("piton: git was stopped{why}"));
        Ok(GitAnswer::Refused)
    }

    /// Returns the name of the turn that a command outside of all other sessions is.
    fn turn(&self) -> String {
        format!("{}: git {}", self.caller.id.pid, cut(&printable(&self.caller.line.shown()), MAX_NAME))
    }

    /// Has a process of its own wait for the end of the git, which waits for no hook that tells of it.
    fn wait_behind(&self, mark: &CallMark, session: &GitSession) {
        if session.part_of.is_none() {
            mark.fill(&GitCall {
                session: session.name.clone(),
                action: self.action(session),
                turn: (session.kind == SessionKind::Own).then(|| self.turn()),
                place: self.top.clone(),
            });
        }
        let started = own_program().map_err(std::io::Error::other).and_then(|program| {
            let mut command = Command::new(program);
            command.args(["git-door", "behind", &self.caller.id.key()]).current_dir("/");
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
        });
        // Once it waits, it knows the very moment of the end.
        let waits = started.and_then(|mut child| match child.stdout.take() {
            Some(mut says) => says.read(&mut [0]).map(drop),
            None => Ok(()),
        });
        if let Err(error) = waits {
            tracing::warn!(%error, "the end of a git command will be known late");
        }
    }
}

/// Waits for the end of a git, and tells the engine of it.
pub(super) fn wait(words: &[&str]) {
    let ([key], Ok(home)) = (words, Home::locate()) else { return };
    leave_session();
    // The hook waits for this. One that is gone has been killed.
    let _ = print::data(WAITS);
    // Where that fails, the hook's shell waits until this process ends, and git with it.
    let _ = close_stdout();
    // A git that has ended before this process began to look is none.
    let id = ProcessId::of_key(key).filter(|id| id.is_alive() == Some(true));
    if id.is_some_and(|id| !id.await_end(LONGEST)) {
        return;
    }
    let ended = now_ms();
    if let Some(claimed) = CallMark::of_key(home.path(), key).claim() {
        end(&home, &claimed.call, Some(ended));
        claimed.told();
    }
}

/// Tells the engine of the ends of gits that have ended, before another one goes on.
pub(super) fn settle() {
    let Ok(place) = Home::place() else { return };
    calls::settle(&place, |call| {
        if let Ok(home) = Home::locate() {
            end(&home, call, None);
        }
    });
}

/// Tells the engine of an end.
fn end(home: &Home, call: &GitCall, ended: Option<i64>) {
    let kind = if call.turn.is_some() { SessionKind::Own } else { SessionKind::Client };
    let session = GitSession { name: call.session.clone(), kind, process: None, part_of: None };
    let told = conversation(home, &session, &call.place, PATIENCE, |talk| {
        let ended_ms = ended.and_then(|ended| u64::try_from(ended).ok());
        let after = After { action: Some(call.action.clone()), ended_ms, ..After::default() };
        let _: AfterReply = talk.ask(&Body::ShellAfter(after))?;
        if let Some(turn) = call.turn.clone() {
            let _: AfterReply = talk.ask(&Body::TurnEnd(Turn { turn, ..Turn::default() }))?;
        }
        Ok(())
    });
    if let Err(error) = told {
        // Nobody reads what this process prints.
        let text = format!("git end: {}", error.text());
        mishaps::note_once(home, &text).unwrap_or_else(|error| tracing::warn!(%error, "could not record a mishap"));
    }
}

/// A conversation about one command; one that the daemon cut off is had again with a private engine.
fn conversation<T>(
    home: &Home,
    session: &GitSession,
    place: &Path,
    patience: Duration,
    have: impl Fn(&mut Talk) -> Result<T, ErrorBody>,
) -> Result<T> {
    let own = session.kind == SessionKind::Own;
    let hello = Body::Hello(Hello {
        client: own.then(|| CLIENT.to_owned()),
        session: Some(session.name.clone()),
        pid: session.process.map(u64::from),
        door: Some(Door::Git.into()),
        cwd: Some(place.to_owned()),
        // The model reads of it only if its client shows what git prints.
        reaches_model: Some(false),
        ..Hello::default()
    });
    let greeted = |mut talk: Talk| -> Result<T, ErrorBody> {
        let _: HelloReply = talk.ask(&hello)?;
        have(&mut talk)
    };
    let talk = Talk::open(home, Instant::now() + patience)?;
    let is_daemons = talk.is_daemons();
    match greeted(talk) {
        Err(error) if is_daemons && (error.is(Code::ShuttingDown) || error.is(Code::Busy)) => {
            Ok(greeted(Talk::alone(home, Instant::now() + patience)?)?)
        }
        had => Ok(had?),
    }
}

/// Returns the lines for whoever reads what git prints. A loss that `piton git-undo` takes back is no reason to warn, and of a push it is
/// said already what it rewrites.
fn said(reply: &BeforeReply) -> Vec<String> {
    let is_told =
        |class: Option<Class>| class.is_none_or(|class| !matches!(class, Class::VcsHistory | Class::VcsRemote));
    let warnings = reply.warnings.iter().filter(|warning| is_told(warning.class.as_ref().and_then(Word::known)));
    let mut said: Vec<String> = warnings.map(|warning| warning.message.clone()).collect();
    said.extend(not_held_sentence(&reply.not_held));
    if let Some(status) = reply.checkpoint.status.fault() {
        let why = reply.checkpoint.reason.as_deref().unwrap_or("no reason is known");
        said.push(format!("no checkpoint before this command ({status}): {why}"));
    }
    said.extend(reply.others.iter().filter_map(OtherBlock::fault));
    said.iter().map(|text| format!("piton: {}", printable(text))).collect()
}

/// Returns the refs of the other side that a push rewrites or deletes. A line of `input` has the names and ids of both sides.
pub(super) fn forced(input: &str) -> Vec<String> {
    let is_none = |id: &str| id.bytes().all(|byte| byte == b'0');
    let is_forced = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_local, new, name, old] = words.as_slice() else { return None };
        let rewrites = || !is_none(old) && (is_none(new) || !is_ancestor(old, new));
        (!is_none(old) && rewrites()).then(|| (*name).to_owned())
    };
    input.lines().filter_map(is_forced).collect()
}

/// Returns true if one commit is certainly an ancestor of another one.
fn is_ancestor(old: &str, new: &str) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "core.fsmonitor=false", "merge-base", "--is-ancestor", old, new]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
