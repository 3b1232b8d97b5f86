//! The daemon's side: accepts clients, greets them and gives each a thread; ends when idle or asked.

use std::collections::HashMap;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

use super::{address, connect, dir};
use crate::checkpoint::Home;
use crate::doors::stdio::{GRACE, converse};
use crate::engine::Engine;
use crate::error::{Code, Error, IoContext, Result};
use crate::protocol::{Greeting, GreetingType};
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::fs::durable::create_private_dir;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::process;

/// The most clients at a time; a further one is greeted with `ok: false`.
const MOST: usize = 256;

/// The time between two looks for the socket.
const LOOK_FOR_SOCKET: Duration = Duration::from_secs(5);

/// The time for which a new daemon waits for one that is leaving.
const HANDOVER: Duration = Duration::from_secs(15);

/// The time between two attempts to take its lock.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The end of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No client was connected for long enough and none is at work, or a signal came.
    Clean,
    /// The grace period cut pending work off.
    Forced,
    /// Another one serves this home.
    Served,
}

/// The open connections.
struct Clients {
    open: Mutex<Connections>,
    build: String,
    built_at: i64,
    since: String,
}

struct Connections {
    next: u64,
    streams: HashMap<u64, UnixStream>,
    /// The time at which the last one left.
    left: Instant,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn greeting(&self, ok: bool, clients: usize) -> Vec<u8> {
        let greeting = Greeting {
            v: 1,
            r#type: GreetingType::Daemon,
            ok,
            build: self.build.clone(),
            built_at: self.built_at,
            pid: std::process::id().cast_signed(),
            since: self.since.clone(),
            clients,
        };
        let mut line = serde_json::to_vec(&greeting).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Serves until no client was connected for `idle` and the processes of all clients whose hooks have called have ended, or SIGTERM or
/// SIGINT comes. Without a client, it also ends once its socket is gone, mostly with all of piton's home: nobody finds it any more.
///
/// # Errors
/// `permission`, `disk-full` when the socket cannot be made.
pub fn run(home: &Home, idle: Duration) -> Result<Ended> {
    let dir = dir(home);
    create_private_dir(&dir)?;
    let Some(_lock) = lock(&dir)? else { return Ok(Ended::Served) };
    let listener = bind(&dir)?;
    let engine: Arc<Engine> = Arc::new(Engine::new(home.clone(), Vec::new()));
    let clients = Arc::new(Clients {
        open: Mutex::new(Connections { next: 0, streams: HashMap::new(), left: Instant::now() }),
        build: process::build(),
        built_at: process::built_at(),
        since: rfc3339(now_ms()),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::new(Code::Internal, format!("the daemon cannot wait for clients: {error}")))?;
    let accepted = runtime.block_on(accept(listener, (&engine, &clients), &dir.join("socket"), idle));
    // A client that connects from now on starts another daemon.
    if let Err(error) = std::fs::remove_file(dir.join("socket"))
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "could not remove the daemon's socket");
    }
    let deadline = Instant::now() + GRACE;
    for stream in clients.lock().streams.values() {
        // A client that is gone has ended already.
        let _ = stream.shutdown(Shutdown::Read);
    }
    while !clients.lock().streams.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    let closed = engine.close(deadline);
    accepted?;
    Ok(if closed { Ended::Clean } else { Ended::Forced })
}

/// Takes the lock of the serving daemon; `None` when another one serves. Waits for a daemon that is ending or just
/// starting.
fn lock(dir: &Path) -> Result<Option<FileLock>> {
    let until = Instant::now() + HANDOVER;
    loop {
        match FileLock::acquire(&dir.join("lock"), Mode::Exclusive, "serving", LOOK_AGAIN) {
            Err(error) if error.code() != Code::StoreLocked || Instant::now() >= until => return Err(error),
            // A locked daemon without a socket is starting or ending: it is waited for.
            Err(_) if is_served(dir) => return Ok(None),
            Err(_) => {}
            Ok(lock) => return Ok(Some(lock)),
        }
    }
}

fn is_served(dir: &Path) -> bool {
    connect(dir).is_ok()
}

/// Makes the socket under another name and renames it over a dead one's, so that no client finds a half-made socket.
fn bind(dir: &Path) -> Result<std::os::unix::net::UnixListener> {
    let aside = dir.join("socket.new");
    match std::fs::remove_file(&aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(error, "removing", &aside));
        }
        _ => {}
    }
    let (_open, path) = address(dir, "socket.new").at("opening", dir)?;
    let listener = std::os::unix::net::UnixListener::bind(path).at("making the socket", &aside)?;
    // Before the socket gets its name: no other user may connect even for a moment.
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o600)).at("protecting", &aside)?;
    listener.set_nonblocking(true).at("making the socket", &aside)?;
    std::fs::rename(&aside, dir.join("socket")).at("renaming", &aside)?;
    Ok(listener)
}

async fn accept(
    listener: std::os::unix::net::UnixListener,
    (engine, clients): (&Arc<Engine>, &Arc<Clients>),
    socket: &Path,
    idle: Duration,
) -> Result<()> {
    let internal = |error: std::io::Error| Error::new(Code::Internal, format!("the daemon cannot serve: {error}"));
    let listener = UnixListener::from_std(listener).map_err(internal)?;
    let mut term = signal(SignalKind::terminate()).map_err(internal)?;
    let mut int = signal(SignalKind::interrupt()).map_err(internal)?;
    let mut hup = signal(SignalKind::hangup()).map_err(internal)?;
    loop {
        let until = clients.lock().left + idle;
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => welcome(stream, engine, clients),
                Err(error) => {
                    tracing::warn!(%error, "could not accept a client");
                    // The process may be out of descriptors: some connections will end.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            _ = term.recv() => return Ok(()),
            _ = int.recv() => return Ok(()),
            _ = hup.recv() => match engine.reload() {
                Ok(warnings) => warnings.iter().for_each(|warning| tracing::warn!("{warning}")),
                Err(error) => tracing::warn!(%error, "the old configuration stays in force"),
            },
            () = tokio::time::sleep(LOOK_FOR_SOCKET) => {
                if clients.lock().streams.is_empty() && !socket.exists() {
                    return Ok(());
                }
            }
            () = tokio::time::sleep_until(until.into()) => {
                let mut open = clients.lock();
                if open.streams.is_empty() && open.left + idle <= Instant::now() && !engine.clients().are_any() {
                    return Ok(());
                }
                // Looks again when the idle time would be over if the last client left now.
                open.left = Instant::now();
            }
        }
    }
}

/// Greets a client of the same user, and gives it a thread.
fn welcome(stream: tokio::net::UnixStream, engine: &Arc<Engine>, clients: &Arc<Clients>) {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == process::user() => {}
        Ok(peer) => return tracing::warn!(uid = peer.uid(), "a client of another user was refused"),
        Err(error) => return tracing::warn!(%error, "a client was refused: its user cannot be determined"),
    }
    let stream = stream.into_std().and_then(|stream| stream.set_nonblocking(false).map(|()| stream));
    let handed = stream.and_then(|mut stream| {
        let kept = stream.try_clone()?;
        let count = clients.lock().streams.len();
        if count >= MOST {
            // So few bytes are written without waiting.
            return stream.write_all(&clients.greeting(false, count));
        }
        stream.write_all(&clients.greeting(true, count + 1))?;
        let output = stream.try_clone()?;
        let number = {
            let mut open = clients.lock();
            open.next += 1;
            let number = open.next;
            open.streams.insert(number, kept);
            number
        };
        // Made before the thread: if it cannot be started, dropping the closure takes the client off the list.
        let (engine, leaving) = (Arc::clone(engine), Leaving(Arc::clone(clients), number));
        std::thread::Builder::new().name("client".to_owned()).spawn(move || {
            let _leaving = leaving;
            converse(engine, stream, output);
        })?;
        Ok(())
    });
    if let Err(error) = handed {
        tracing::warn!(%error, "a client could not be served");
    }
}

/// Takes a client off the list, however its thread ends.
struct Leaving(Arc<Clients>, u64);

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut open = self.0.lock();
        if let Some(stream) = open.streams.remove(&self.1) {
            // After a bug in its session, the thread that reads its lines would keep the connection open, and the client
            // would wait for ever. For a client that is gone already it fails, and is not needed.
            let _ = stream.shutdown(Shutdown::Read);
        }
        open.left = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_client_whose_session_has_ended_is_told_so_although_its_lines_are_still_waited_for() {
        let connections = Connections { next: 0, streams: HashMap::new(), left: Instant::now() };
        let clients = Arc::new(Clients {
            open: Mutex::new(connections),
            build: String::new(),
            built_at: 0,
            since: String::new(),
        });
        let (ours, mut client) = UnixStream::pair().unwrap();
        let mut reader = ours.try_clone().unwrap();
        clients.lock().streams.insert(1, ours);
        let reading = std::thread::spawn(move || reader.read(&mut [0; 8]).unwrap());
        drop(Leaving(Arc::clone(&clients), 1));
        assert_eq!(reading.join().unwrap(), 0);
        client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
        assert!(clients.lock().streams.is_empty());
    }
}
