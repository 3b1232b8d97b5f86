//! Running a hook as its client does: the very line that is installed, given what the client would send before it removes a file, in a
//! scratch directory with a home of its own. Nothing is removed; a checkpoint has to be there all the same.

use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agents::Client;
use crate::checkpoint::{Home, records::mishaps};
use crate::doors::socket::{self as daemon, Link, Probe};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::protocol::{Body, Hello, ListQuery, ListReply};
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::process;

/// The time that the scratch daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way in which a hook is called.
pub(super) enum Called {
    /// A line for a shell.
    Line(String),
    /// A script that is the hook.
    Script(PathBuf),
    /// A program that a shim spawns.
    Program(String),
}

/// The scratch directory; it goes, and its daemon ends, with the value.
pub(super) struct Scratch {
    dir: PathBuf,
    home: Home,
    tried: u32,
}

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn create() -> Result<Scratch> {
        let name = format!("piton-doctor-{}-{}", crate::sys::fs::durable::unique_suffix(), crate::sys::clock::now_ms());
        let dir = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new().mode(0o700).create(&dir).at("creating", &dir)?;
        let dir = dir.canonicalize().at("resolving", &dir)?;
        Ok(Scratch { home: Home::at(&dir.join("home"))?, dir, tried: 0 })
    }

    /// Calls the hook; how long it took, if all went as it should.
    ///
    /// # Errors
    /// Returns an error that names the failed step.
    pub(super) fn try_hook(&mut self, client: Client, called: &Called) -> Result<Duration> {
        self.tried += 1;
        let work = self.dir.join(format!("work-{}", self.tried));
        std::fs::create_dir(&work).at("creating", &work)?;
        let file = work.join("a");
        std::fs::write(&file, "kept\n").at("writing", &file)?;
        let session = format!("doctor-{}", self.tried);
        let bad = |why: String| Error::new(Code::Internal, why);
        let fixture = client
            .fixture(&session, &work.to_string_lossy(), "rm a")
            .ok_or_else(|| bad("piton has no test payload for it".to_owned()))?;
        let began = Instant::now();
        let mut command = match called {
            Called::Line(line) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", line]);
                command
            }
            Called::Script(path) => Command::new(path),
            Called::Program(program) => {
                let mut command = Command::new(program);
                command.args(["hook", client.name(), fixture.event]);
                command
            }
        };
        command.current_dir(&work).env("PITON_HOME", self.home.path());
        let said = run(command, fixture.payload.as_bytes(), client.patience(fixture.event))?;
        let took = began.elapsed();
        if !said.trim().is_empty() && serde_json::from_str::<Value>(&said).is_err() {
            return Err(bad(format!("the hook's answer is not JSON: {}", crate::model::text::cut(&said, 80))));
        }
        // Of mistakes in the settings there is a check of its own: they keep no hook from its work.
        let of_hooks = |line: &String| line.split_once(' ').is_some_and(|(_, text)| text.starts_with("hook "));
        if let Some(mishap) = mishaps::newest(&self.home).into_iter().rfind(of_hooks) {
            return Err(bad(format!("the hook could not answer: {mishap}")));
        }
        self.require_checkpoint(client, &session, &work)?;
        Ok(took)
    }

    /// Asks the engine that answered the hook, behind all that it has to do.
    fn require_checkpoint(&self, client: Client, session: &str, work: &Path) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut link = Link::open(&self.home)?;
        let name = client.name();
        let hello = Hello {
            client: Some(name.to_owned()),
            session: Some(format!("{name}.{session}")),
            cwd: Some(work.to_owned()),
            ..Hello::default()
        };
        link.send(&Body::Hello(hello), until)?;
        let kind = Some(CheckpointKind::Auto);
        let id = link.send(&Body::List(ListQuery { kind, ..ListQuery::default() }), until)?;
        let listed: Option<ListReply> = link.reply(id, until)?;
        if listed.is_some_and(|listed| listed.total > 0) {
            return Ok(());
        }
        Err(Error::new(Code::Internal, "the hook answered and reported a loss, but took no checkpoint before it"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Ok(Probe::Daemon(greeting)) = daemon::probe(&self.home)
            && process::ask_to_end(greeting.pid).is_ok()
        {
            let lock = daemon::dir(&self.home).join("lock");
            // Waited for, and not needed: a daemon that does not end in time finds its directory gone.
            let _ = FileLock::acquire(&lock, Mode::Exclusive, "stopping", PATIENCE);
        }
        // A directory that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Runs it to its end; what it printed.
fn run(mut command: Command, input: &[u8], patience: Duration) -> Result<String> {
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|error| Error::new(Code::Internal, format!("cannot run the hook: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A hook that has seen enough may close its input.
        let _ = stdin.write_all(input);
    }
    let (sender, printed) = channel();
    if let Some(mut stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // The output is read to its end; without a receiver, the caller has given the hook up.
            let _ = stdout.read_to_end(&mut text).map(|_| sender.send(text));
        });
    }
    let Ok(text) = printed.recv_timeout(patience) else {
        // It may have ended just now.
        let _ = child.kill();
        // It was killed: its status says nothing more.
        let _ = child.wait();
        return Err(Error::new(Code::Busy, format!("the hook did not end within {} s", patience.as_secs())));
    };
    let status =
        child.wait().map_err(|error| Error::new(Code::Internal, format!("cannot wait for the hook: {error}")))?;
    if !status.success() {
        return Err(Error::new(Code::Internal, format!("the hook ended with {status}, but must always end with 0")));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
