//! `piton fetch`: brings checkpoints of another machine in, through git.

use std::ffi::OsString;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use super::remote::remote;
use super::stop;
use crate::error::Result;
use crate::model::text::{count, printable};
use crate::protocol::{FetchDocument, RefusedRef};

/// The arguments of `piton fetch`.
#[derive(Debug, Args)]
pub(super) struct FetchArgs {
    /// The address or path of a git repository
    pub remote: OsString,
}

/// `piton fetch`.
///
/// # Errors
/// `bad-request`; when there is no git; those of the store.
pub(super) fn fetch(context: &Context, args: &FetchArgs) -> Result<Exit> {
    let remote = remote(&args.remote)?;
    let received = context.timeline()?.receive(&remote, &stop::flow)?;
    got_through(received.whole);
    if context.json {
        let refused = received.refused.iter().map(|(name, why)| RefusedRef { name: name.clone(), why: why.clone() });
        let (new, known, ok) = (received.new.clone(), received.known, received.whole);
        print::json(&FetchDocument { new, known, refused: refused.collect(), ok })?;
    } else {
        let new = received.new.len() as u64;
        let mut text = format!("Fetched {}; {} already here.\n", count(new, "ref"), received.known);
        for (name, why) in &received.refused {
            add_line!(text, "  not accepted: {}: {}", printable(name), printable(why));
        }
        if new > 0 {
            add_line!(
                text,
                "`piton list --remote` lists them. Show and restore them by ID, like your own checkpoints."
            );
        }
        print::data(&text)?;
    }
    Ok(match () {
        () if !received.whole => Exit::Failed,
        () if !received.refused.is_empty() => Exit::Part,
        () if received.new.is_empty() && received.known == 0 => Exit::Nothing,
        () => Exit::Done,
    })
}

fn got_through(whole: bool) {
    if !whole {
        print::say("piton: git failed before it had fetched everything; its message is above.");
    }
}
