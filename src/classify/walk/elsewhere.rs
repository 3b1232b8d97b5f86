//! Commands that run on another machine or in a container.

use std::path::{Path, PathBuf};

use super::builtin::join_args;
use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::{FoundEffect, Site, is_file_class, settle};
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
        let with_entry = self.behind_entry(remote, &parsed, args, rest);
        let rest = with_entry.as_deref().unwrap_or(rest);
        let site = site_of(remote, &parsed, shell);
        let lasting = Lasting { volumes: kept(remote, &parsed), bound: bound(remote, &parsed, &site) };
        let mut inner_shell = Shell { cwd: directory_there(&parsed, &site), ..Shell::default() };
        let outer_site = std::mem::replace(&mut self.site, site);
        let outer_found = std::mem::take(&mut self.found);
        let outer_opaque = self.opaque;
        self.run_there(remote, &parsed, rest, call, &mut inner_shell);
        let inner = std::mem::replace(&mut self.found, outer_found);
        self.site = outer_site;
        if remote.spec.fresh && lasting.bound.is_empty() {
            self.opaque = outer_opaque;
        }
        self.adopt((remote, &lasting), inner, call);
        Some(Stream::Opaque)
    }

    /// Returns the command of a fresh container with the program that its image, or an option, puts in front of it.
    fn behind_entry(&self, remote: &Remote, parsed: &Parsed, args: &[Arg], rest: &[Arg]) -> Option<Vec<Arg>> {
        if !remote.spec.fresh || remote.spec.skip == 0 {
            return None;
        }
        let image = args.get(parsed.rest)?;
        let entry = parsed.value(&["--entrypoint"]).map(|entry| entry.text.clone());
        let first = rest.first().map_or("", |first| first.text.as_str());
        let named = program_of_image(&image.text);
        let is_option = first.starts_with('-');
        let is_program = first.contains('/') || self.rules.knows(&crate::classify::names::program(first));
        let is_command = first.is_empty() || is_program && !is_option;
        let program = match entry {
            Some(entry) => entry,
            None if !is_command && self.rules.knows(named) => named.to_owned(),
            None => return None,
        };
        let mut command = vec![Arg::literal(program, image.span)];
        command.extend_from_slice(rest);
        Some(command)
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
    fn adopt(&mut self, (remote, lasting): (&Remote, &Lasting), inner: Vec<FoundEffect>, call: &Invocation<'_>) {
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
            let local = placed && (found.near.is_some() || found.path.is_some() || somewhere);
            let bound = lasting.bound.iter().find(|(_, there)| !local && may_reach(&found, there));
            if let Some((here, _)) = bound {
                let whereabouts = self.context.whereabouts(here);
                let found = FoundEffect { path: None, pattern: None, near: Some(here.clone()), ..found };
                self.found.extend(settle(found, whereabouts));
            } else if local || outward && remote.spec.class != Class::RemoteShell {
                self.found.push(found);
            } else if (!remote.spec.fresh || stays(&found, &lasting.volumes)) && counts(&found) {
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

/// Everything that outlives a fresh container.
struct Lasting {
    /// Mount points of named volumes.
    volumes: Vec<String>,
    /// Directories of this machine that it may write to, with their places there.
    bound: Vec<(PathBuf, PathBuf)>,
}

/// Returns the directories of this machine that a fresh container may write to.
fn bound(remote: &Remote, parsed: &Parsed, site: &Site) -> Vec<(PathBuf, PathBuf)> {
    let is_read_only =
        |mount: &Arg| mount.text.ends_with(":ro") || mount.text.contains("readonly") || mount.text.contains(",ro");
    if !remote.spec.fresh || parsed.values(&remote.mounts).all(is_read_only) {
        return Vec::new();
    }
    site.mounts.clone()
}

/// Returns true for an effect on files that may lie in a mounted directory, though no word says which: a pattern, a variable, or none.
fn may_reach(found: &FoundEffect, there: &Path) -> bool {
    let Some(target) = found.target.as_deref().filter(|_| is_file_class(found.class)) else {
        return is_file_class(found.class);
    };
    let Some(wild) = target.find(['*', '?', '[', '$']) else { return false };
    let certain = Path::new(&target[..target[..wild].rfind('/').unwrap_or(0)]);
    !target.starts_with('/') || certain.starts_with(there) || there.starts_with(certain)
}

/// Options that give a container the machine itself, or another container's data.
const REACHING: [&str; 4] = ["--privileged", "--pid", "--ipc", "--volumes-from"];

/// Returns the places in a fresh container whose content stays: the mount points of named volumes; `/` where it reaches beyond itself.
fn kept(remote: &Remote, parsed: &Parsed) -> Vec<String> {
    if parsed.has(&REACHING) {
        return vec!["/".to_owned()];
    }
    let volume = |mount: &Arg| {
        let text = mount.text.as_str();
        if text.contains("docker.sock") {
            return Some("/".to_owned());
        }
        if let Some((name, rest)) = text.split_once(':').filter(|_| !text.contains('=')) {
            let is_name = !name.is_empty() && !name.starts_with(['/', '.', '~', '$']);
            return is_name.then(|| rest.split(':').next().unwrap_or(rest).to_owned());
        }
        let field = |names: [&str; 3]| {
            text.split(',')
                .find_map(|pair| pair.split_once('=').filter(|(name, _)| names.contains(name)).map(|(_, value)| value))
        };
        let is_volume =
            field(["type", "", ""]).is_none_or(|kind| kind == "volume") && field(["source", "src", ""]).is_some();
        field(["target", "dst", "destination"]).filter(|_| is_volume).map(str::to_owned)
    };
    parsed.values(&remote.mounts).filter_map(volume).collect()
}

/// Returns true for an effect on what a container keeps. A path that is not known may be there.
fn stays(found: &FoundEffect, kept: &[String]) -> bool {
    let is_below = |place: &String| match found.target.as_deref() {
        Some(target) if target.starts_with('/') => {
            Path::new(target).starts_with(place) || Path::new(place).starts_with(target)
        }
        _ => true,
    };
    kept.iter().any(is_below)
}

/// Returns the program that an image runs where its command names none: `amazon/aws-cli` runs `aws`.
fn program_of_image(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    let name = name.split([':', '@']).next().unwrap_or(name);
    match name {
        "azure-cli" => "az",
        "docker" | "cli" => "docker",
        name => name.strip_suffix("-cli").unwrap_or(name),
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
