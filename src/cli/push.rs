//! `piton push`: sends checkpoints to another machine, through git.

use std::ffi::OsString;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use super::remote::remote;
use super::stop;
use crate::error::Result;
use crate::git::GitReach;
use crate::git::transfer::transfer;
use crate::model::run::run_id;
use crate::model::text::{count, printable};
use crate::protocol::{PushDocument, WithheldItem};

/// Refs of one `git push`: a command line has an end.
const AT_ONCE: usize = 500;

/// The arguments of `piton push`.
#[derive(Debug, Args)]
pub(super) struct PushArgs {
    /// The address or path of a git repository
    pub remote: OsString,
    /// Send only this run and its checkpoints
    #[arg(long)]
    pub run: Option<String>,
    /// Also send checkpoints that contain secrets
    #[arg(long)]
    pub with_secrets: bool,
    /// Only show what would be sent
    #[arg(long)]
    pub dry_run: bool,
}

/// The result of one push, as git told it.
#[derive(Default)]
struct Sent {
    new: u64,
    known: u64,
    refused: Vec<String>,
    whole: bool,
    /// Refs of which git said nothing: it did not get through to the remote.
    unsent: u64,
}

impl Sent {
    fn told(&self) -> u64 {
        self.new + self.known + self.refused.len() as u64
    }
}

/// `piton push`.
///
/// # Errors
/// `no-such-run`, `bad-request`; when there is no git.
pub(super) fn push(context: &Context, args: &PushArgs) -> Result<Exit> {
    let remote = remote(&args.remote)?;
    let timeline = context.timeline()?;
    let sending = timeline.catalog().sending(args.run.as_deref().map(run_id).as_deref(), args.with_secrets)?;
    let view = timeline.catalog().view()?;
    let mut sent = Sent { whole: true, ..Sent::default() };
    for refs in sending.refs.chunks(AT_ONCE) {
        let mut command = view.command(GitReach::Server);
        command.args(["push", "--porcelain", "--no-verify"]);
        command.arg(if context.progress.read().is_some() { "--progress" } else { "--no-progress" });
        if args.dry_run {
            command.arg("--dry-run");
        }
        command.arg("--").arg(&remote).args(refs.iter().map(|(id, name)| format!("{id}:{name}")));
        let before = sent.told();
        let (text, whole) = transfer(&mut command, &context.progress)?;
        sent.whole &= whole;
        String::from_utf8_lossy(&text).lines().for_each(|line| note(&mut sent, line));
        if stop::is_asked() || (!whole && sent.told() == before) {
            // A remote that does not answer is not asked again for each piece.
            break;
        }
    }
    sent.unsent = (sending.refs.len() as u64).saturating_sub(sent.told());
    say_sent(context, args, &sending.withheld, &sent)?;
    Ok(match () {
        () if !sent.whole => Exit::Failed,
        () if !sending.withheld.is_empty() => Exit::Part,
        () if sending.refs.is_empty() => Exit::Nothing,
        () => Exit::Done,
    })
}

/// A line of `git push --porcelain`: a letter, what was sent where, and a summary.
fn note(sent: &mut Sent, line: &str) {
    let mut fields = line.split('\t');
    match (fields.next(), fields.next(), fields.next()) {
        (Some("="), Some(_), _) => sent.known += 1,
        (Some("!"), Some(name), why) => {
            let name = name.split_once(':').map_or(name, |(_, name)| name);
            sent.refused.push(format!("{name} {}", why.unwrap_or_default()));
        }
        (Some(_), Some(_), Some(_)) => sent.new += 1,
        _ => {}
    }
}

fn say_sent(
    context: &Context,
    args: &PushArgs,
    withheld: &[crate::checkpoint::remote::send::Withheld],
    sent: &Sent,
) -> Result<()> {
    if context.json {
        let withheld = withheld.iter().map(|it| WithheldItem { what: it.what.clone(), why: it.why.clone() });
        return print::json(&PushDocument {
            sent: sent.new,
            known: sent.known,
            refused: sent.refused.clone(),
            withheld: withheld.collect(),
            dry_run: args.dry_run,
            unsent: sent.unsent,
            ok: sent.whole,
        });
    }
    let remote = printable(&args.remote.to_string_lossy());
    let verb = if args.dry_run { "Would send" } else { "Sent" };
    let mut text = match sent.new {
        0 if !sent.whole && args.dry_run => format!("Nothing would be sent to {remote}"),
        0 if !sent.whole => format!("Nothing was sent to {remote}"),
        new => format!("{verb} {}; the remote already has {}", count(new, "ref"), sent.known),
    };
    if sent.unsent > 0 {
        let why = "because git failed (see its message above)";
        add!(text, "; {} not sent, {why}. To send the rest, run `piton push` again", count(sent.unsent, "ref"));
    } else if !sent.whole && sent.new == 0 {
        text.push_str(": the remote accepted nothing (see git's message above)");
    }
    text.push_str(".\n");
    for it in withheld {
        add_line!(text, "  not sent: {}: {}", printable(&it.what), printable(&it.why));
    }
    if withheld.iter().any(|it| it.why.contains("contains secrets")) {
        add_line!(text, "To also send the checkpoints that contain secrets, add `--with-secrets`.");
    }
    sent.refused.iter().for_each(|line| add_line!(text, "  refused by the remote: {}", printable(line)));
    print::data(&text)
}
