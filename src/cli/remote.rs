//! `piton push` and `piton fetch`: the way to other machines, through git; and the list of what was fetched.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::json;

use super::verbs::{FetchArgs, ListArgs, PushArgs};
use super::{Context, Exit, print};
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Error, IoContext, Result};
use crate::git::{self, Reach};
use crate::model::checkpoint::Kind;
use crate::model::text::{count, printable};

/// Refs of one `git push`: a command line has an end.
const AT_ONCE: usize = 500;

/// A remote as git is to be told of it: a path is made absolute, since git has a working directory of its own.
fn remote(typed: &OsStr) -> Result<OsString> {
    if typed.is_empty() || typed.to_string_lossy().starts_with('-') {
        return Err(Error::new(Code::BadRequest, "this is not a remote")
            .path(typed)
            .hint("name an address (ssh://…, https://…, host:path) or a path"));
    }
    let path = Path::new(typed);
    if path.exists() {
        return path.canonicalize().map(OsString::from).at("resolving", path);
    }
    Ok(typed.to_owned())
}

fn got_through(whole: bool) {
    if !whole {
        print::say("piton: git did not get through; what it said stands above.");
    }
}

/// What git said of one push.
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
pub fn push(context: &Context, args: &PushArgs) -> Result<Exit> {
    let remote = remote(&args.remote)?;
    let mut timeline = context.timeline()?;
    let sending = timeline.sending(args.run.as_deref(), args.with_secrets)?;
    let view = timeline.view()?;
    let mut sent = Sent { whole: true, ..Sent::default() };
    for refs in sending.refs.chunks(AT_ONCE) {
        let mut command = view.command(Reach::Server);
        command.args(["push", "--porcelain", "--no-verify"]);
        if args.dry_run {
            command.arg("--dry-run");
        }
        command.arg("--").arg(&remote).args(refs.iter().map(|(id, name)| format!("{id}:{name}")));
        let before = sent.told();
        let (text, whole) = git::run(&mut command, None)?;
        sent.whole &= whole;
        String::from_utf8_lossy(&text).lines().for_each(|line| note(&mut sent, line));
        if !whole && sent.told() == before {
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
        let withheld: Vec<_> = withheld.iter().map(|it| json!({ "what": it.what, "why": it.why })).collect();
        return print::json(&json!({ "sent": sent.new, "known": sent.known, "refused": sent.refused,
            "withheld": withheld, "dry_run": args.dry_run, "unsent": sent.unsent, "ok": sent.whole }));
    }
    let remote = printable(&args.remote.to_string_lossy());
    let verb = if args.dry_run { "Would send" } else { "Sent" };
    let mut text = match sent.new {
        0 if !sent.whole && args.dry_run => format!("Nothing would be sent to {remote}"),
        0 if !sent.whole => format!("Nothing was sent to {remote}"),
        new => format!("{verb} {}; {} there already", count(new, "ref"), sent.known),
    };
    if sent.unsent > 0 {
        let why = "git did not get through, what it said stands above";
        add!(text, ": {} not sent, {why}. `piton push` again sends what is missing", count(sent.unsent, "ref"));
    } else if !sent.whole && sent.new == 0 {
        text.push_str(": the remote took nothing, what git said stands above");
    }
    text.push_str(".\n");
    for it in withheld {
        add_line!(text, "  not sent: {}: {}", printable(&it.what), printable(&it.why));
    }
    if withheld.iter().any(|it| it.why.ends_with("holds secrets")) {
        add_line!(text, "`--with-secrets` sends those that hold secrets too.");
    }
    sent.refused.iter().for_each(|line| add_line!(text, "  refused there: {}", printable(line)));
    print::data(&text)
}

/// `piton fetch`.
///
/// # Errors
/// `bad-request`; when there is no git; those of the store.
pub fn fetch(context: &Context, args: &FetchArgs) -> Result<Exit> {
    let remote = remote(&args.remote)?;
    let received = context.timeline()?.receive(&remote)?;
    got_through(received.whole);
    if context.json {
        let refused: Vec<_> = received.refused.iter().map(|(name, why)| json!({ "name": name, "why": why })).collect();
        print::json(
            &json!({ "new": received.new, "known": received.known, "refused": refused, "ok": received.whole }),
        )?;
    } else {
        let new = received.new.len() as u64;
        let mut text = format!("Fetched {}; {} there already.\n", count(new, "ref"), received.known);
        for (name, why) in &received.refused {
            add_line!(text, "  not taken: {}: {}", printable(name), printable(why));
        }
        if new > 0 {
            add_line!(
                text,
                "`piton list --remote` lists them; by their ids they are shown and restored like your own."
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

/// `piton list --remote`.
///
/// # Errors
/// When refs cannot be listed.
pub fn list(context: &Context, timeline: &mut Timeline, args: &ListArgs, kind: Option<Kind>) -> Result<Exit> {
    let (all, broken) = timeline.foreign()?;
    broken.iter().for_each(|fault| print::warning(&format!("a checkpoint cannot be read: {fault}")));
    let wanted = |checkpoint: &&Checkpoint| {
        let record = &checkpoint.record;
        args.run.as_ref().is_none_or(|run| record.run == *run)
            && kind.is_none_or(|kind| record.kind == kind)
            && (args.all || kind == Some(Kind::Turn) || record.kind != Kind::Turn)
    };
    let mut found: Vec<&Checkpoint> = all.iter().filter(wanted).collect();
    // Newest first; times of other machines' clocks are all that numbers of different workspaces have in common.
    found.sort_by(|a, b| (&b.record.time, b.record.ordinal).cmp(&(&a.record.time, a.record.ordinal)));
    let (total, empty) = (found.len(), found.is_empty());
    found.truncate(args.limit);
    if context.json {
        let items: Vec<_> = found
            .iter()
            .map(|checkpoint| {
                let record = &checkpoint.record;
                json!({ "workspace": record.workspace, "id": checkpoint.id.to_string(), "n": record.ordinal,
                    "kind": record.kind.as_str(), "run": record.run, "time": record.time, "reason": record.reason,
                    "flags": record.flags, "pinned": record.pinned })
            })
            .collect();
        print::json(&json!({ "total": total, "checkpoints": items, "faults": broken }))?;
    } else if empty {
        print::data("No checkpoints of other machines: `piton fetch REMOTE` brings them in.\n")?;
    } else {
        let mut text = String::new();
        for checkpoint in found {
            let record = &checkpoint.record;
            let (when, what) = (print::faint(&print::local_time(&record.time)), printable(&record.reason));
            let (of, n, id) = (&record.workspace, record.ordinal, checkpoint.id.short());
            add_line!(text, "  {of} {n:>4}  {id}  {when}  [{}] {what}", printable(&record.run));
        }
        print::data(&text)?;
    }
    Ok(match () {
        () if !broken.is_empty() => Exit::Damaged,
        () if empty => Exit::Nothing,
        () => Exit::Done,
    })
}
