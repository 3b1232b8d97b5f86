//! Commands that run on another machine or in a container.

use std::collections::HashMap;
use std::path::PathBuf;

use super::builtin::join_args;
use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::{FoundEffect, Site, is_file_class};
use crate::classify::rules::Remote;
use crate::classify::rules::args::{Parsed, parse};
use crate::model::effect::{Certainty, Class, Scope};

impl Walk<'_> {
    /// Carriers of the table of remotes.
    pub(crate) fn remote(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let rules = self.rules;
        rules.remotes(call.program).find_map(|remote| self.run_elsewhere(remote, call, shell))
    }

    fn run_elsewhere(&mut self, remote: &Remote, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let at = subcommand(remote, call.args)?;
        let args = &call.args[at..];
        let parsed = parse(args, &remote.grammar, true);
        if remote.unless.holds(&parsed) {
            return None;
        }
        let rest = match args.iter().position(|arg| arg.text == "--") {
            Some(at) if remote.spec.dashes => &args[at + 1..],
            _ if remote.spec.dashes && remote.spec.skip == 0 => &[],
            _ => args.get(parsed.rest.min(args.len()) + remote.spec.skip..).unwrap_or_default(),
        };
        let rest = if rest.first().is_some_and(|arg| arg.text == "--") { &rest[1..] } else { rest };
        let site = site_of(remote, &parsed, shell);
        let mut inner_shell = Shell { variables: HashMap::new(), cwd: directory_there(&parsed, &site) };
        let outer_site = std::mem::replace(&mut self.site, site);
        let outer_found = std::mem::take(&mut self.found);
        let outer_opaque = self.opaque;
        self.run_there(remote, &parsed, rest, call, &mut inner_shell);
        let inner = std::mem::replace(&mut self.found, outer_found);
        self.site = outer_site;
        if remote.spec.fresh {
            self.opaque = outer_opaque;
        }
        self.adopt(remote, inner, call);
        Some(Stream::Opaque)
    }

    fn run_there(&mut self, remote: &Remote, parsed: &Parsed, rest: &[Arg], call: &Invocation<'_>, shell: &mut Shell) {
        let mut ran = false;
        // With a grammar that knows no more, the command line may stand behind the operands (`gcloud … host --command=X`).
        let full = parse(call.args, &remote.grammar, false);
        let lines: Vec<Arg> = parsed.values(&remote.line).chain(full.values(&remote.line)).take(1).cloned().collect();
        for line in &lines {
            ran = true;
            self.payload(line, call.input.clone(), shell);
        }
        if ran {
            return;
        }
        if rest.is_empty() {
            if !remote.spec.fresh && remote.spec.joined {
                self.run_stream(call.program, call.input.clone(), call.span, shell);
            }
        } else if remote.spec.joined {
            self.payload(&join_args(rest, call.span), call.input.clone(), shell);
        } else {
            self.dispatch(rest, call.span, call.input.clone(), shell);
        }
    }

    /// Takes over effects from over there, with their meaning here.
    fn adopt(&mut self, remote: &Remote, inner: Vec<FoundEffect>, call: &Invocation<'_>) {
        let mut over_there: Option<FoundEffect> = None;
        for found in inner {
            let outward = matches!(
                found.class,
                Class::Database
                    | Class::NetworkWrite
                    | Class::VcsRemote
                    | Class::Cloud
                    | Class::Publish
                    | Class::ExecRemote
            );
            let somewhere = is_file_class(found.class) && found.target.is_none();
            let placed = matches!(found.scope, Scope::Workspace | Scope::Home | Scope::System);
            let local = placed && (found.path.is_some() || somewhere);
            if local || outward && remote.spec.class != Class::RemoteShell {
                self.found.push(found);
            } else if !remote.spec.fresh && counts(&found) {
                let likely = found.certainty;
                let seen = over_there.get_or_insert_with(|| {
                    let verb = format!("{}: {}", call.program, found.verb);
                    FoundEffect {
                        target: found.target.clone(),
                        ..FoundEffect::new(remote.spec.class, verb, "elsewhere", call.span)
                    }
                });
                seen.certainty = seen.certainty.min(likely);
            }
        }
        self.found.extend(over_there);
    }
}

/// Returns whether an effect over there is worth a warning.
fn counts(found: &FoundEffect) -> bool {
    match found.class {
        Class::FileWrite => false,
        Class::ExecOpaque => found.certainty == Certainty::Named || found.rule == "script-from-input",
        _ => found.severity != Some(crate::model::effect::Severity::Info),
    }
}

/// Returns where a command elsewhere runs, with the mounts that make its paths local again.
fn site_of(remote: &Remote, parsed: &Parsed, shell: &Shell) -> Site {
    let mut mounts = Vec::new();
    for mount in parsed.values(&remote.mounts) {
        if let Some((local, there)) = mount_pair(mount)
            && let Some(cwd) = &shell.cwd
        {
            mounts.push((resolve(cwd, &local), PathBuf::from(there)));
        }
    }
    Site { elsewhere: true, mounts }
}

/// Returns the directory here of the one in which a command there starts, where a mount tells it.
fn directory_there(parsed: &Parsed, site: &Site) -> Option<PathBuf> {
    let there = parsed.value(&["-w", "--workdir"])?.text.clone();
    site.mounts.iter().find_map(|(local, inner)| Some(local.join(PathBuf::from(&there).strip_prefix(inner).ok()?)))
}

/// Returns where the arguments behind the subcommand begin; options may stand in front of it.
fn subcommand(remote: &Remote, args: &[Arg]) -> Option<usize> {
    let at = parse(args, &remote.grammar, true).rest;
    let known = args.get(at..).filter(|rest| !rest.is_empty() && !remote.sub.is_empty());
    let known = known.and_then(|rest| Some(at + remote.sub.matches(rest)?));
    known.or_else(|| remote.sub.behind_options(args, &remote.grammar))
}

/// `LOCAL:THERE[:options]`, or `type=bind,source=LOCAL,target=THERE`.
fn mount_pair(mount: &Arg) -> Option<(String, String)> {
    if mount.known == 0 {
        return None;
    }
    if mount.text.contains("type=bind") {
        let field = |names: [&str; 3]| {
            mount.text.split(',').find_map(|pair| {
                let (name, value) = pair.split_once('=')?;
                names.contains(&name).then(|| value.to_owned())
            })
        };
        return Some((field(["source", "src", ""])?, field(["target", "dst", "destination"])?));
    }
    let (local, rest) = mount.text.split_once(':')?;
    let there = rest.split(':').next()?;
    (local.starts_with(['/', '.', '~'])).then(|| (local.to_owned(), there.to_owned()))
}
