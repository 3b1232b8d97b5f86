//! A scratch directory in which piton shows what it does, and the sidecar that runs there.

use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::print;
use crate::error::{Code, Error, IoContext, Result};
use crate::protocol::ProtocolClient;

/// A private scratch directory, removed at the end unless it is to be kept.
pub(super) struct Scratch {
    dir: PathBuf,
    name: &'static str,
    keep: bool,
}

impl Scratch {
    /// Below a directory, with a workspace of that name in it, which is not made yet.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn create(above: &Path, prefix: &str, name: &'static str, keep: bool) -> Result<Scratch> {
        let unique = crate::sys::fs::durable::unique_suffix();
        let dir = above.join(format!("{prefix}-{unique}-{}", crate::sys::clock::now_ms()));
        std::fs::DirBuilder::new().mode(0o700).create(&dir).at("creating", &dir)?;
        let dir = dir.canonicalize().at("resolving", &dir)?;
        Ok(Scratch { dir, name, keep })
    }

    /// Returns the workspace in it.
    pub(super) fn workspace(&self) -> PathBuf {
        self.dir.join(self.name)
    }

    /// Returns the program itself, in the workspace, with a store and settings of its own.
    ///
    /// # Errors
    /// When the program does not know where it is.
    pub(super) fn command(&self, args: &[&str]) -> Result<Command> {
        self.command_in(&self.workspace(), args)
    }

    /// Returns the same in another directory.
    ///
    /// # Errors
    /// As [`Scratch::command`].
    pub(super) fn command_in(&self, dir: &Path, args: &[&str]) -> Result<Command> {
        let program = std::env::current_exe().at("finding", "the running program")?;
        let mut command = Command::new(program);
        command.args(args).current_dir(dir);
        command.env("PITON_HOME", self.dir.join("piton-home")).env("XDG_CONFIG_HOME", self.dir.join("no-config"));
        Ok(command)
    }

    /// Shows a command, and runs it.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn piton(&self, args: &[&str]) -> Result<()> {
        print::data(&format!("\n$ piton {}\n", args.join(" ")))?;
        let status = self.command(args)?.status().at("running", "piton")?;
        if status.success() {
            return Ok(());
        }
        Err(Error::new(Code::Internal, format!("`piton {}` ended with {status}", args.join(" "))))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.keep {
            print::note(&format!("kept: {}", print::path(&self.dir)));
        } else if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            print::warning(&format!("{} could not be removed: {error}", print::path(&self.dir)));
        }
    }
}

/// A sidecar process and a client of it.
pub(super) struct Sidecar {
    child: Child,
    /// The client.
    pub client: ProtocolClient<Pipes>,
}

/// The pipes of a process.
pub(super) struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
}

impl Read for Pipes {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.stdout.read(buffer)
    }
}

impl Write for Pipes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stdin.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stdin.flush()
    }
}

impl Sidecar {
    /// Starts one.
    ///
    /// # Errors
    /// When that fails.
    pub(super) fn start(mut command: Command) -> Result<Sidecar> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().at("starting", "the sidecar")?;
        let missing = || Error::new(Code::Internal, "the sidecar has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        Ok(Sidecar { child, client: ProtocolClient::new(Pipes { stdin, stdout }) })
    }

    /// Ends its input, and waits until it has ended.
    ///
    /// # Errors
    /// When it failed.
    pub(super) fn finish(self) -> Result<()> {
        let Sidecar { mut child, client } = self;
        drop(client);
        let status = child.wait().at("waiting for", "the sidecar")?;
        if status.success() {
            return Ok(());
        }
        Err(Error::new(Code::Internal, format!("the sidecar ended with {status}")))
    }
}
