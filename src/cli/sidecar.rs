//! `piton sidecar`: guards an agent whose events come on stdin.

use std::io::{IsTerminal, stdin};
use std::time::Duration;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::{person, print};
use crate::agents::Client;
use crate::doors::{stdio, stream};
use crate::error::Result;
use crate::sys::process;

/// The arguments of `piton sidecar`.
#[derive(Debug, Args)]
pub(super) struct SidecarArgs {
    /// Seconds to wait for pending work after the input has ended
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub grace: u32,
    /// Detach from the parent process, and keep only its standard streams
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Read this client's own JSON stream instead of the protocol
    #[arg(long, value_name = "CLIENT")]
    pub from: Option<String>,
    /// Copy stdin to stdout unchanged, and print piton's messages on stderr
    #[arg(long, requires = "from")]
    pub tee: bool,
}

/// Serves one client on stdin and stdout.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn sidecar(context: &Context, args: &SidecarArgs) -> Result<Exit> {
    process::raise_descriptor_limit();
    if stdin().is_terminal() {
        print::say(
            "piton: reading events from stdin, one JSON object per line (docs/PROTOCOL.md). Press Ctrl-D to end.\n\
             To guard an agent client, run `piton install` instead.",
        );
    }
    let options = stdio::Options {
        home: context.home.clone(),
        workspace: context.named_workspace(),
        flags: context.flags.clone(),
        grace: Duration::from_secs(u64::from(args.grace)),
        is_agents: person::is_agents(),
    };
    let ended = match &args.from {
        Some(client) => stream::follow(options, Client::named(client)?, args.tee)?,
        None => stdio::run(options)?,
    };
    Ok(match ended {
        stdio::Ended::Clean => Exit::Done,
        stdio::Ended::Forced => Exit::Interrupted,
    })
}
