//! The client's side: a connection to the daemon, which is started if there is none, or to a private engine process.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::{HANDSHAKE, STARTING, connect, dir};
use crate::agents::within::SESSION;
use crate::checkpoint::Home;
use crate::error::{Code, Error, IoContext, Result};
use crate::protocol::{Body, ErrorBody, GitChangedQuery, GitChangedReply, Greeting, NoticeLine, ProtocolClient};
use crate::settings::must_mark;
use crate::sys::fs::durable::create_private_dir;
use crate::sys::process;

/// The time between two looks for a daemon that is being started.
const RETRY: Duration = Duration::from_millis(2);

/// The least time for writing.
const LEAST: Duration = Duration::from_millis(1);

/// The time in seconds that a private engine may take for pending work after its client has left.
const BEHIND: &str = "3600";

/// The length from which on a log is begun anew.
const MAX_LOG: u64 = 1 << 20;

/// The process that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// The daemon, with its first line.
    Daemon(Greeting),
    /// A private engine, in a process that stays until nothing is pending.
    Alone,
}

/// The process found at the daemon's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// There is no socket.
    Nobody,
    /// A socket left by a daemon that was killed.
    Dead,
    /// A process that does not greet in time.
    Silent,
    /// Another user.
    Foreign(u32),
    /// A daemon that greets, of this build or of another.
    Daemon(Greeting),
}

/// Looks which process is at the socket. Starts no daemon, and asks none to end.
///
/// # Errors
/// Returns the errors of the system.
pub fn probe(home: &Home) -> Result<Probe> {
    Ok(met(home)?.0)
}

/// Looks which process is at the socket, and keeps the connection to a daemon that takes one more client.
fn met(home: &Home) -> Result<(Probe, Option<Link>)> {
    met_by(home, Instant::now() + HANDSHAKE * 10)
}

fn met_by(home: &Home, until: Instant) -> Result<(Probe, Option<Link>)> {
    let dir = dir(home);
    if dir.join("socket").symlink_metadata().is_err() {
        return Ok((Probe::Nobody, None));
    }
    let stream = match connect(&dir) {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok((Probe::Silent, None)),
        Err(_) => return Ok((Probe::Dead, None)),
    };
    let peer = process::peer(&stream)?;
    if peer != process::user() {
        return Ok((Probe::Foreign(peer), None));
    }
    // A daemon that hangs up counts as silent.
    let mut link = Link::over(stream);
    let greeting = link.greeting(until).ok().flatten();
    let Some(greeting) = greeting else { return Ok((Probe::Silent, None)) };
    link.served = Served::Daemon(greeting.clone());
    let link = greeting.ok.then_some(link);
    Ok((Probe::Daemon(greeting), link))
}

/// A connection that speaks the line protocol.
pub struct Link {
    client: ProtocolClient<Timed>,
    served: Served,
}

/// A stream that is waited for until a deadline, for reading and for writing.
struct Timed {
    stream: UnixStream,
    deadline: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A request that comes too late for an answer is sent all the same, where there is room: a checkpoint comes of it.
        let left = self.deadline.saturating_duration_since(Instant::now()).max(LEAST);
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(bytes).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
            _ => error,
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Link {
    fn over(stream: UnixStream) -> Link {
        let stream = Timed { stream, deadline: Instant::now() };
        Link { client: ProtocolClient::new(stream), served: Served::Alone }
    }

    /// Returns the daemon's first line, if it comes in time and is one.
    fn greeting(&mut self, until: Instant) -> Result<Option<Greeting>> {
        self.client.stream().deadline = until;
        let line = self.client.line()?;
        // Any other line counts as none.
        let greeting = line.and_then(|line| serde_json::from_slice::<Greeting>(&line).ok());
        Ok(greeting.filter(|greeting| greeting.v == 1))
    }

    /// Connects to the daemon, and starts it if there is none. If it does not greet in time, connects to a private
    /// engine.
    ///
    /// # Errors
    /// Returns the errors of starting a process.
    pub fn open(home: &Home) -> Result<Link> {
        match Link::daemon(home, true) {
            Ok(Some(link)) => Ok(link),
            Ok(None) => Link::alone(home),
            Err(error) => {
                tracing::debug!(%error, "no daemon");
                Link::alone(home)
            }
        }
    }

    /// Connects to the daemon that runs, of whichever build; `None` where none greets. Starts no daemon, and asks none to end.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn to_running(home: &Home) -> Result<Option<Link>> {
        Ok(met(home)?.1)
    }

    /// Does the same where an answer after `until` is of no use.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn to_running_by(home: &Home, until: Instant) -> Result<Option<Link>> {
        Ok(met_by(home, until)?.1)
    }

    /// Has a daemon start, and does not wait for it.
    ///
    /// # Errors
    /// Returns the errors of starting it.
    pub fn summon(home: &Home) -> Result<()> {
        launch(home).map(drop)
    }

    /// Connects to the daemon; `None` when there is none, or none that greets in time.
    ///
    /// # Errors
    /// Returns the errors of starting it, where `start` asks for that.
    pub fn daemon(home: &Home, start: bool) -> Result<Option<Link>> {
        let dir = dir(home);
        let mut until = Instant::now() + HANDSHAKE;
        let mut started = None;
        loop {
            if let Ok(stream) = connect(&dir) {
                // The socket is private, but a home on a shared directory may have been prepared by another user.
                if process::peer(&stream)? != process::user() {
                    return Err(Error::new(Code::Permission, "the daemon's socket belongs to another user").path(&dir));
                }
                let mut link = Link::over(stream);
                let Some(greeting) = link.greeting(until)?.filter(|greeting| greeting.ok) else {
                    return Ok(None);
                };
                // A newer daemon serves an older client too; else two builds would end each other in turn.
                if greeting.build == process::build() || greeting.built_at > process::built_at() {
                    link.served = Served::Daemon(greeting);
                    return Ok(Some(link));
                }
                // An older piton finishes its work and ends, and the next daemon takes its place.
                drop(link);
                process::ask_to_end(greeting.pid)?;
                if start {
                    launch(home).map(drop)?;
                }
                return Ok(None);
            }
            if start && started.is_none() {
                started = Some(launch(home)?);
                until = Instant::now() + STARTING;
            }
            // One that finds another daemon at its place ends without an error, and that one is waited for.
            let ended = started.as_mut().map(Child::try_wait).and_then(|ended| ended.ok().flatten());
            if !start || ended.is_some_and(|status| !status.success()) || Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Connects to an engine in a process of its own, which ends after this connection, once nothing is pending.
    ///
    /// # Errors
    /// Returns the errors of starting a process.
    pub fn alone(home: &Home) -> Result<Link> {
        let failed = |error: std::io::Error| Error::new(Code::Internal, format!("piton could not be started: {error}"));
        let (stream, theirs) = UnixStream::pair().map_err(failed)?;
        let also = theirs.try_clone().map_err(failed)?;
        let mut command = detached(home, &["sidecar", "--grace", BEHIND, "--detached"])?;
        command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(also));
        command.spawn().map_err(failed)?;
        Ok(Link::over(stream))
    }

    /// Returns who answers.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Sends a request, and returns the id that its reply will carry. After an error the connection is of no more use.
    ///
    /// # Errors
    /// `shutting-down` when the other side is gone, or has not taken all of it by `deadline`.
    pub fn send(&mut self, body: &Body, deadline: Instant) -> Result<u64> {
        self.client.stream().deadline = deadline;
        self.client.send(body)
    }

    /// Waits for notices; empty when none has come by `deadline`.
    ///
    /// # Errors
    /// When the other side is gone.
    pub fn notices(&mut self, deadline: Instant) -> Result<Vec<NoticeLine>> {
        self.client.stream().deadline = deadline;
        let mut notices = self.client.notices();
        while notices.is_empty() && self.client.wait()? {
            notices = self.client.notices();
        }
        Ok(notices)
    }

    /// Returns the stream, to wait for it beside others. [`Link::notices`] has those that have come already.
    pub fn stream(&mut self) -> &UnixStream {
        &self.client.stream().stream
    }

    /// Returns the answer to a git that asks which paths have changed in a work tree since a token was given. It is `None` where none has
    /// come by `deadline`; a daemon of an older piton does not know the question.
    pub fn git_changed(&mut self, top: &Path, token: &str, deadline: Instant) -> Option<GitChangedReply> {
        let query = GitChangedQuery { top: top.to_str()?.to_owned(), token: token.to_owned() };
        // git looks itself where there is no answer.
        let id = self.send(&Body::GitChanged(query), deadline).ok()?;
        self.reply(id, deadline).ok()?
    }

    /// Returns the reply to a request; `None` when it has not come by `deadline`.
    ///
    /// # Errors
    /// When the other side is gone, or refuses.
    pub fn reply<T: DeserializeOwned>(&mut self, id: u64, deadline: Instant) -> Result<Option<T>, ErrorBody> {
        self.client.stream().deadline = deadline;
        self.client.reply(id)
    }
}

/// Starts a daemon. If another process does the same, one of them serves.
fn launch(home: &Home) -> Result<Child> {
    let mut command = detached(home, &["daemon", "run", "--detached"])?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map_err(|error| Error::new(Code::Internal, format!("the daemon could not be started: {error}")))
}

/// Makes a command that runs this program again, outside of the caller's process group, with its own log.
fn detached(home: &Home, args: &[&str]) -> Result<Command> {
    // A daemon without a log is better than none.
    let log = log(home).map_or_else(|_| Stdio::null(), Stdio::from);
    let program = process::own_program()?;
    let mut command = Command::new(program);
    // In `/`, so that it keeps no file system busy; in its own group, so that Ctrl-C in the terminal does not end it.
    command.args(args).env("PITON_HOME", home.path()).current_dir("/").stderr(log).process_group(0);
    if must_mark(home.path()) {
        command.env(SESSION, "1");
    }
    Ok(command)
}

fn log(home: &Home) -> Result<std::fs::File> {
    let dir = dir(home);
    create_private_dir(&dir)?;
    let path = dir.join("log");
    let long = path.metadata().is_ok_and(|facts| facts.len() > MAX_LOG);
    let mut options = std::fs::OpenOptions::new();
    options.create(true).write(true).append(!long).truncate(long).open(&path).at("opening the log", &path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ShellBefore;

    #[test]
    fn a_process_that_does_not_read_is_not_waited_for() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut link = Link::over(ours);
        let command = "x".repeat(4 << 20);
        let large = Body::ShellBefore(ShellBefore { command, ..ShellBefore::default() });
        let began = Instant::now();
        let refused = link.send(&large, began + Duration::from_millis(50)).unwrap_err();
        assert!(refused.code() == Code::ShuttingDown && began.elapsed() < Duration::from_secs(5), "{refused:?}");
        // One that reads slowly gets all of it.
        let (ours, mut reader) = UnixStream::pair().unwrap();
        let slow = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut piece = vec![0; 1 << 20];
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                bytes.extend_from_slice(&piece[..read]);
                std::thread::sleep(Duration::from_millis(1));
            }
            bytes
        });
        Link::over(ours).send(&large, Instant::now() + Duration::from_mins(1)).unwrap();
        assert_eq!(slow.join().unwrap().last(), Some(&b'\n'));
        drop(theirs);
    }
}
