//! A child process that this process stands in for: signals go on to it, and this process stops and ends as it does.
//!
//! The child is in the same process group, so that a terminal sends it the signals of its keys by itself. This process only
//! hands on signals that somebody sent to it alone.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getppid, waitid};
use signal_hook::consts::{SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use super::child;
use super::process::{end_by, ignore, ignored_signals};
use super::processes::session_leader;

/// The signals that are handed on.
const HANDED: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT];

/// The time after which a child that is stopped is taken for one that stays so: a signal to a group reaches one process first.
const STEADY: Duration = Duration::from_millis(20);

/// The exit code of a program that is not there.
const MISSING: u8 = 127;

/// The exit code of a program that cannot be run.
const REFUSED: u8 = 126;

/// The child.
pub struct StandIn {
    id: u32,
    child: Arc<Mutex<Child>>,
    ended: UnixStream,
}

impl StandIn {
    /// Starts a command, which should begin with [`become_agent`], and hands signals on to it from now on.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn start(command: &mut Command) -> io::Result<StandIn> {
        let ignored = ignored_signals();
        if ignored.contains(&SIGCHLD) {
            // The end of a child is not told to a process that ignores it.
            signal_hook::flag::register(SIGCHLD, Arc::default())?;
        }
        let handed: Vec<i32> = HANDED.into_iter().filter(|signal| !ignored.contains(signal)).collect();
        // Before the child is there, so that no signal between ends this process alone.
        let mut signals = SignalsInfo::<WithOrigin>::new(handed)?;
        let (ours, theirs) = UnixStream::pair()?;
        let child = command.spawn()?;
        let id = child.id();
        let child = Arc::new(Mutex::new(child));
        let handed_to = Arc::clone(&child);
        std::thread::spawn(move || {
            for origin in signals.forever() {
                if is_for_us(&origin) {
                    hand_on(&handed_to, origin.signal);
                }
            }
        });
        std::thread::spawn(move || follow(id, theirs));
        Ok(StandIn { id, child, ended: ours })
    }

    /// Returns the child's process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns a stream that ends when the child has ended.
    pub fn ended(&self) -> &UnixStream {
        &self.ended
    }

    /// Returns the way in which the child ended; waits for that.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        child::await_end(self.id)?;
        self.child.lock().unwrap_or_else(PoisonError::into_inner).wait()
    }
}

/// Returns true for a signal that the child did not get too, as it does those of the terminal's keys. The end of a terminal is told to
/// the leader of its session alone.
fn is_for_us(origin: &Origin) -> bool {
    let leads = || session_leader(std::process::id()) == Some(std::process::id());
    match (origin.signal, origin.cause) {
        (SIGCONT, _) => true,
        (SIGHUP, Cause::Kernel) => leads(),
        (_, cause) => !matches!(cause, Cause::Kernel),
    }
}

fn hand_on(child: &Mutex<Child>, number: i32) {
    let child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // It is reaped under the lock, and not here: its end is the exit of this process. Until then its id is its own.
    if is_there(child.id())
        && let Err(error) = child::signal(child.id(), number)
    {
        tracing::warn!(%error, "cannot forward a signal");
    }
}

/// Returns true for a child that has not ended.
fn is_there(id: u32) -> bool {
    let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return false };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), options), Ok(None))
}

/// Stops this process whenever the child is stopped, until the child has ended.
fn follow(id: u32, mut ended: UnixStream) {
    let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return };
    let is_stopped = |options: WaitIdOptions| {
        let looked = waitid(WaitId::Pid(pid), options | WaitIdOptions::STOPPED);
        looked.map(|status| status.is_some_and(|status| status.stopped()))
    };
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        match is_stopped(options) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(true) => {
                std::thread::sleep(STEADY);
                if is_stopped(WaitIdOptions::NOHANG) == Ok(true) {
                    // The shell that started this process sees that it stops.
                    let _ = child::signal(std::process::id(), libc::SIGSTOP);
                }
            }
            Ok(false) | Err(_) => break,
        }
    }
    // The reader may be gone.
    let _ = ended.write_all(b".");
}

/// Ends this process as a child has ended: with its exit code, or by its signal.
pub fn end_as(status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal() {
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        // The child's core file is the one that matters. Where the limit cannot be set, there is a second one, and nothing is lost.
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        // Where both come back, the code tells of the signal, as a shell's does.
        if signal_hook::low_level::emulate_default_handler(signal).is_err() {
            // It knows no real-time signals.
            end_by(signal);
        }
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The stand-in, as the process that it starts is told of it: a number, and a sign behind it if the end of children is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedBy {
    pid: u32,
    /// True if SIGCHLD was ignored when the stand-in itself was started: it has to handle that signal, which the program inherits as
    /// one that is not ignored.
    ignores_children: bool,
}

/// The sign behind the number.
const IGNORING: char = '-';

impl StartedBy {
    /// Returns this process, before it starts a child as a stand-in.
    pub fn this() -> StartedBy {
        StartedBy { pid: std::process::id(), ignores_children: ignored_signals().contains(&SIGCHLD) }
    }

    /// Returns the word for it.
    pub fn word(self) -> String {
        let sign = if self.ignores_children { IGNORING.to_string() } else { String::new() };
        format!("{}{sign}", self.pid)
    }

    /// Reads the word; `None` if it is none.
    pub fn of(word: &str) -> Option<StartedBy> {
        let number = word.strip_suffix(IGNORING);
        Some(StartedBy { pid: number.unwrap_or(word).parse().ok()?, ignores_children: number.is_some() })
    }
}

/// Becomes the program, in the process that [`StandIn::start`] has made. The program ends when its stand-in is killed.
/// Returns an error, and the exit code that a shell gives it, if the program cannot be run.
pub fn become_agent(by: StartedBy, words: &[OsString]) -> (io::Error, u8) {
    let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let is_orphan = getppid().is_none_or(|found| found.as_raw_nonzero().get().cast_unsigned() != by.pid);
    let Some((program, arguments)) = words.split_first().filter(|_| !is_orphan) else {
        return (io::ErrorKind::InvalidInput.into(), 1);
    };
    if let Err(errno) = tied {
        return (errno.into(), 1);
    }
    if by.ignores_children {
        ignore(SIGCHLD);
    }
    let error = Command::new(program).args(arguments).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { MISSING } else { REFUSED };
    (error, code)
}
