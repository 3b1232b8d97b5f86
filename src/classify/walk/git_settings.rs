//! Settings of git that run a program: given on the line (`-c`, `--config-env`), by `git config`, or by the environment.

use super::Walk;
use crate::classify::expand::{Arg, Shell, Value};
use crate::classify::found::FoundEffect;
use crate::classify::rules::args::Parsed;
use crate::classify::shell::Span;
use crate::model::effect::Class;

/// Most settings that are read from `GIT_CONFIG_KEY_n`.
const MAX_NUMBERED: usize = 64;

/// Tells what the value of a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingKind {
    /// A command.
    Command,
    /// A command that is given the name of a file to edit.
    Editor,
    /// A command if it begins with `!` or is a path, else the name of a helper.
    Helper,
    /// A file or a directory that says what else is run.
    Place,
}

/// Variables of the environment that name a program, or a place that does.
const VARIABLES: &[(&str, SettingKind)] = &[
    ("EDITOR", SettingKind::Editor),
    ("GIT_ASKPASS", SettingKind::Command),
    ("GIT_CONFIG_GLOBAL", SettingKind::Place),
    ("GIT_CONFIG_PARAMETERS", SettingKind::Place),
    ("GIT_CONFIG_SYSTEM", SettingKind::Place),
    ("GIT_EDITOR", SettingKind::Editor),
    ("GIT_EXEC_PATH", SettingKind::Place),
    ("GIT_EXTERNAL_DIFF", SettingKind::Command),
    ("GIT_PAGER", SettingKind::Command),
    ("GIT_PROXY_COMMAND", SettingKind::Command),
    ("GIT_SEQUENCE_EDITOR", SettingKind::Editor),
    ("GIT_SSH", SettingKind::Command),
    ("GIT_SSH_COMMAND", SettingKind::Command),
    ("GIT_TEMPLATE_DIR", SettingKind::Place),
    ("PAGER", SettingKind::Command),
    ("SSH_ASKPASS", SettingKind::Command),
    ("VISUAL", SettingKind::Editor),
];

/// Returns true if git reads a variable.
pub(super) fn is_of_git(name: &str) -> bool {
    name.starts_with("GIT_") || VARIABLES.iter().any(|(variable, _)| *variable == name)
}

/// Returns the settings that hold for one git: of its own options, and of numbered variables.
pub(super) fn given(options: &Parsed, shell: &Shell) -> Vec<(String, Arg)> {
    let mut settings = Vec::new();
    for flag in &options.flags {
        let Some(value) = &flag.value else { continue };
        let Some((key, rest)) = value.text.split_once('=') else { continue };
        match flag.name.as_str() {
            "-c" => settings.push((key.to_owned(), value.skip(key.len() + 1))),
            "--config-env" => settings.extend(texts(shell, rest, value.span).map(|value| (key.to_owned(), value))),
            _ => {}
        }
    }
    for at in 0..MAX_NUMBERED {
        let Some(key) = texts(shell, &format!("GIT_CONFIG_KEY_{at}"), (0, 0)).next() else { break };
        let span = options.flags.first().and_then(|flag| flag.value.as_ref()).map_or((0, 0), |value| value.span);
        settings.extend(texts(shell, &format!("GIT_CONFIG_VALUE_{at}"), span).map(|value| (key.text.clone(), value)));
    }
    settings
}

/// Returns the settings that a verb takes: `git config KEY VALUE`, `git clone -c KEY=VALUE`.
pub(super) fn on_the_line(args: &[Arg]) -> Vec<(String, Arg)> {
    let pair = |arg: &Arg| arg.text.split_once('=').map(|(key, _)| (key.to_owned(), arg.skip(key.len() + 1)));
    match args {
        [config, .., key, value] if config.text == "config" => vec![(key.text.clone(), value.clone())],
        [clone, rest @ ..] if clone.text == "clone" => {
            let behind = rest.windows(2).filter(|pair| matches!(pair[0].text.as_str(), "-c" | "--config"));
            let attached = rest.iter().filter_map(|arg| {
                let name = ["--config=", "-c"].into_iter().find(|name| arg.text.starts_with(name))?;
                pair(&arg.skip(name.len()))
            });
            behind.filter_map(|words| pair(&words[1])).chain(attached).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the option of a verb that a setting stands for: `clean.requireForce=false` lets `git clean` delete without
/// `-f`.
pub(super) fn option_of(verb: &str, key: &str, value: &Arg) -> Option<&'static str> {
    let is_off = matches!(value.text.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0" | "");
    match (verb, key.to_ascii_lowercase().as_str()) {
        ("clean", "clean.requireforce") if is_off => Some("-f"),
        ("pull", "pull.rebase") if !is_off => Some("--rebase"),
        ("gc", "gc.pruneexpire") if value.text != "never" => Some("--prune=now"),
        _ => None,
    }
}

impl Walk<'_> {
    /// Judges a setting of git.
    pub(crate) fn git_setting(&mut self, key: &str, value: &Arg, shell: &Shell) {
        if let Some(kind) = kind(key) {
            self.git_value(kind, value, shell);
        }
    }

    /// Judges what the environment says to git, and works where it says.
    pub(crate) fn git_environment(&mut self, options: &Parsed, span: Span, shell: &mut Shell) {
        for (variable, kind) in VARIABLES {
            for value in texts(shell, variable, span).collect::<Vec<_>>() {
                self.git_value(*kind, &value, shell);
            }
        }
        let traces: Vec<String> =
            shell.variables.keys().filter(|name| name.starts_with("GIT_TRACE")).cloned().collect();
        for value in traces.iter().flat_map(|name| texts(shell, name, span)).collect::<Vec<_>>() {
            if value.text.starts_with('/') {
                self.report(FoundEffect::new(Class::FileWrite, "git", "git-trace", span), Some(&value), shell);
            }
        }
        for flag in options.flags.iter().filter(|flag| flag.name == "--exec-path") {
            if let Some(value) = &flag.value {
                self.git_value(SettingKind::Place, value, shell);
            }
        }
        if let Some(tree) = texts(shell, "GIT_WORK_TREE", span).last() {
            shell.cwd =
                tree.exact().and_then(|text| Some(crate::classify::context::resolve(shell.cwd.as_deref()?, text)));
        }
    }

    fn git_value(&mut self, kind: SettingKind, value: &Arg, shell: &Shell) {
        if matches!(value.text.as_str(), "" | "/dev/null") {
            return;
        }
        match kind {
            SettingKind::Command => self.git_command(value, shell),
            SettingKind::Editor => {
                let exact = value.is_exact();
                let text = format!("{} /dev/null", value.text);
                let known = if exact { text.len() } else { value.known };
                self.git_command(&Arg { text, known, ..value.clone() }, shell);
            }
            SettingKind::Helper => {
                if let Some(command) = value.text.strip_prefix('!') {
                    self.git_command(&value.skip(value.text.len() - command.len()), shell);
                } else if value.text.starts_with('/') {
                    self.git_command(value, shell);
                }
            }
            SettingKind::Place => self.hidden("git", Some(crate::classify::names::script(&value.text)), value.span),
        }
    }
}

/// Returns the kind of a setting's value, if git runs something by it. Case does not count in sections and names.
fn kind(key: &str) -> Option<SettingKind> {
    let key = key.to_ascii_lowercase();
    let (section, rest) = key.split_once('.')?;
    let name = rest.rsplit('.').next().unwrap_or(rest);
    let kind = match (section, name) {
        ("core" | "sequence", "editor") => SettingKind::Editor,
        ("core", "pager" | "sshcommand" | "askpass" | "gitproxy" | "fsmonitor" | "alternaterefscommand")
        | ("pager", _)
        | ("diff", "external" | "command" | "textconv")
        | ("difftool" | "mergetool" | "guitool" | "browser" | "man", "cmd" | "path")
        | ("merge", "driver")
        | ("filter", "clean" | "smudge" | "process")
        | ("gpg", "program" | "defaultkeycommand")
        | ("interactive", "difffilter")
        | ("tar" | "trailer" | "hook", "command")
        | ("trailer", "cmd")
        | ("sendemail", "sendmailcmd" | "tocmd" | "cccmd" | "headercmd")
        | ("uploadpack", "packobjectshook")
        | ("gc", "recentobjectshook")
        | ("remote", "uploadpack" | "receivepack") => SettingKind::Command,
        ("credential", "helper") | ("submodule", "update") => SettingKind::Helper,
        ("core", "hookspath") | ("init", "templatedir") | ("include" | "includeif", "path") => SettingKind::Place,
        _ => return None,
    };
    Some(kind)
}

/// Returns the values that a variable may hold, as arguments.
pub(super) fn texts(shell: &Shell, name: &str, span: Span) -> impl Iterator<Item = Arg> {
    let values = match shell.variables.get(name) {
        Some(Value::Known(texts)) => texts.iter().map(|text| Arg::literal(text.clone(), span)).collect(),
        Some(Value::Unknown(origin)) => vec![Arg { origin: *origin, ..Arg::unknown("$", span) }],
        Some(Value::UnknownOr(text)) => vec![Arg::unknown("$", span), Arg::literal(text.clone(), span)],
        Some(Value::List(_) | Value::Temporary) | None => Vec::new(),
    };
    values.into_iter()
}
