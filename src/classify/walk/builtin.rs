//! The shell's own commands.

use super::dispatch::Invocation;
use super::report::unset_variable;
use super::{Stream, Walk};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell, TextOrigin, Value};
use crate::classify::found::{FoundEffect, place};
use crate::classify::rules::args::{Grammar, parse};
use crate::model::effect::Class;

/// Programs that begin in the directory that an option names.
const DIRECTED: [(&[&str], &[&str]); 7] = [
    (&["make", "gmake", "ninja"], &["-C", "--directory"]),
    (&["npm", "pnpm", "npx"], &["--prefix", "-C", "--dir"]),
    (&["yarn", "bun"], &["--cwd"]),
    (&["just", "task"], &["-d", "--working-directory", "--dir"]),
    (&["cargo", "go"], &["-C"]),
    (&["uv", "poetry", "pdm"], &["--directory", "-C"]),
    (&["composer"], &["-d", "--working-dir"]),
];

/// Most directories of one line that are recorded.
const MAX_BLIND: usize = 64;

impl Walk<'_> {
    /// Handles builtins; whether the command was one.
    pub(crate) fn builtin(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> bool {
        match call.program {
            "cd" | "chdir" | "pushd" | "set-location" | "sl" => self.change_directory(call, shell),
            "popd" => shell.cwd = None,
            "eval" | "iex" | "invoke-expression" => self.eval(call, shell),
            "source" | "." => self.source(call, shell),
            "shift" => {
                let by = call.args.first().map_or(Some(1), |arg| arg.exact()?.parse().ok());
                super::function::shift(shell, by.unwrap_or(usize::MAX));
            }
            "set" if call.args.first().is_some_and(|arg| arg.text == "--") => {
                super::function::set_positional(shell, call.args[1..].to_vec());
            }
            "trap" => self.trap(call),
            "alias" => self.define_aliases(call),
            "export" | "declare" | "local" | "readonly" | "typeset" | "let" => assign(call, shell),
            "printf" if call.args.first().is_some_and(|arg| arg.text == "-v") => {
                let name = call.args.get(1).map(|arg| arg.text.clone()).unwrap_or_default();
                shell.set(&name, Value::Unknown(TextOrigin::Plain));
            }
            "mapfile" | "readarray" if call.args.iter().any(|arg| arg.text.starts_with("-C")) => {
                // It runs a command too, which the rules know.
                forget(call, shell);
                return false;
            }
            "read" | "mapfile" | "readarray" => {
                forget(call, shell);
                self.reads_names(call, shell);
            }
            "getopts" | "unset" => forget(call, shell),
            _ => return false,
        }
        true
    }

    fn change_directory(&mut self, call: &Invocation<'_>, shell: &mut Shell) {
        let target = call.args.iter().find(|arg| !arg.text.starts_with('-') || arg.text == "-");
        shell.adrift = target
            .and_then(|arg| unset_variable(arg, shell))
            .filter(|(_, behind)| behind.is_empty())
            .map(|(name, _)| name.to_owned());
        shell.cwd = match target {
            None => self.context.home.clone(),
            Some(arg) if arg.text == "-" => None,
            Some(arg) if self.site.elsewhere => place(arg, shell, &self.site, self.context).path,
            Some(arg) if arg.origin == TextOrigin::Temporary => Some(self.context.temp_dir().join("mktemp")),
            Some(arg) => match (arg.exact(), &shell.cwd) {
                (Some(text), Some(cwd)) => Some(resolve(cwd, text)),
                (Some(text), None) if text.starts_with('/') => Some(resolve(std::path::Path::new("/"), text)),
                _ => None,
            },
        };
    }

    /// Returns the shell of a program that starts in another directory (`make -C DIR`).
    pub(crate) fn directed(&mut self, call: &Invocation<'_>, shell: &Shell) -> Option<Shell> {
        let (_, options) = DIRECTED.iter().find(|(programs, _)| programs.contains(&call.program))?;
        let grammar = Grammar { values: options.iter().map(|name| (*name).to_owned()).collect(), ..Grammar::default() };
        let parsed = parse(call.args, &grammar, false);
        let directory = parsed.value(options)?;
        let cwd = directory.exact().and_then(|text| Some(resolve(shell.cwd.as_deref()?, text)));
        let there = Shell { cwd, ..shell.clone() };
        self.blind_in(&there);
        Some(there)
    }

    /// Records a directory in which something may run that cannot be seen into.
    pub(crate) fn blind_in(&mut self, shell: &Shell) {
        let cwd = shell.cwd.iter().filter(|_| self.blind.len() < MAX_BLIND);
        let new: Vec<_> = cwd.filter(|cwd| !self.blind.contains(cwd)).cloned().collect();
        self.blind.extend(new);
    }

    fn eval(&mut self, call: &Invocation<'_>, shell: &mut Shell) {
        let code = join_args(call.args, call.span);
        if code.text.contains("FromBase64String") {
            self.fetched(call.program, call.span);
            return;
        }
        if call.input.flows() && call.args.is_empty() {
            self.run_stream(call.program, call.input.clone(), call.span, shell);
            return;
        }
        match code.origin {
            TextOrigin::Remote | TextOrigin::Decoded => self.fetched(call.program, call.span),
            TextOrigin::Setup => {}
            TextOrigin::Plain | TextOrigin::Temporary if code.is_unseen() => {
                self.hidden(call.program, None, call.span);
            }
            TextOrigin::Plain | TextOrigin::Temporary => {
                self.payload(&code, Stream::Nothing, shell);
            }
        }
    }

    fn source(&mut self, call: &Invocation<'_>, shell: &mut Shell) {
        let Some(file) = call.args.first() else { return };
        let content = match file.exact() {
            Some("/dev/stdin" | "-") => call.input.clone(),
            _ => self.content(file, shell),
        };
        match content {
            Stream::Remote | Stream::Decoded => self.fetched(call.program, call.span),
            Stream::Text(text) => {
                let code = Arg { text, ..Arg::unknown("", call.span) };
                self.payload(&code, Stream::Nothing, shell);
            }
            Stream::Nothing | Stream::Files | Stream::Setup | Stream::Opaque => {
                self.opaque = true;
                self.own_script(file, call.args.get(1..).unwrap_or_default(), shell);
            }
        }
    }

    fn define_aliases(&mut self, call: &Invocation<'_>) {
        for arg in call.args.iter().filter(|arg| arg.is_exact()) {
            if let Some((name, code)) = arg.text.split_once('=').filter(|_| self.aliases.len() < 64) {
                let code = Arg::literal(code, arg.span);
                self.aliases.insert(name.to_ascii_lowercase(), code);
            }
        }
    }

    fn trap(&mut self, call: &Invocation<'_>) {
        if let [code, _, ..] = call.args
            && !code.text.is_empty()
            && code.text != "-"
        {
            self.traps.push((code.clone(), self.payloads));
        }
    }

    /// Runs what comes in as shell code.
    pub(crate) fn run_stream(&mut self, verb: &str, input: Stream, span: (usize, usize), shell: &mut Shell) {
        match input {
            Stream::Nothing => {}
            Stream::Text(text) => {
                let code = Arg { text, ..Arg::unknown("", span) };
                self.payload(&code, Stream::Nothing, &mut shell.clone());
            }
            Stream::Remote | Stream::Decoded => self.fetched(verb, span),
            Stream::Files | Stream::Setup | Stream::Opaque => {
                self.opaque = true;
                let found = FoundEffect::new(Class::ExecOpaque, verb, "script-from-input", span);
                self.found.push(found);
            }
        }
    }
}

/// Arguments joined by blanks, as `eval` and `ssh` do.
pub(super) fn join_args(args: &[Arg], span: (usize, usize)) -> Arg {
    let mut joined = Arg::literal("", span);
    let mut certain = true;
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            joined.text.push(' ');
        }
        if certain {
            joined.known = joined.text.len() + arg.known.min(arg.text.len());
            certain = arg.is_exact();
        }
        joined.text.push_str(&arg.text);
        if joined.origin == TextOrigin::Plain {
            joined.origin = arg.origin;
        }
    }
    if let (Some(first), Some(last)) = (args.first(), args.last()) {
        joined.span = (first.span.0, last.span.1.max(first.span.1));
    }
    joined
}

fn assign(call: &Invocation<'_>, shell: &mut Shell) {
    // `declare -n r=d`: what is given to `r` from now on is given to `d`.
    let is_reference = call.args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains('n'));
    for arg in call.args {
        if let Some((_, name)) = arg.text.split_once('=').filter(|_| is_reference) {
            shell.set(name, Value::Unknown(TextOrigin::Plain));
        }
        let Some((name, value)) = arg.text.split_once('=') else {
            continue;
        };
        let value = match arg.origin {
            TextOrigin::Temporary => Value::Temporary,
            _ if arg.is_exact() => Value::Known(vec![value.to_owned()]),
            origin => Value::Unknown(origin),
        };
        shell.set(name.trim_end_matches('+'), value);
    }
}

fn forget(call: &Invocation<'_>, shell: &mut Shell) {
    for arg in call.args.iter().filter(|arg| !arg.text.starts_with('-')) {
        shell.set(&arg.text, Value::Unknown(TextOrigin::Plain));
    }
}
