//! A child process, and the standard streams of this one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// Waits until a child has ended, without reaping it: until then no other process can get its id.
///
/// # Errors
/// When it is no child of this process.
pub fn await_end(id: u32) -> io::Result<()> {
    loop {
        match waitid(WaitId::Pid(pid(id)?), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Sends a signal to a child that was not reaped.
///
/// # Errors
/// When it may not be sent.
pub fn signal(id: u32, number: i32) -> io::Result<()> {
    let signal = Signal::from_named_raw(number).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid(id)?, signal)?)
}

fn pid(id: u32) -> io::Result<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Closes stdin, so that its writer notices. The descriptor stays taken, so that no other file gets its number.
///
/// # Errors
/// Returns the errors of opening `/dev/null`.
pub fn close_stdin() -> io::Result<()> {
    Ok(dup2_stdin(File::open("/dev/null")?.as_fd())?)
}

/// Closes stdout, so that its reader sees the end. The descriptor stays taken, as in [`close_stdin`].
///
/// # Errors
/// Returns the errors of opening `/dev/null`.
pub fn close_stdout() -> io::Result<()> {
    Ok(dup2_stdout(File::options().write(true).open("/dev/null")?.as_fd())?)
}
