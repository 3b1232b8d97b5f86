//! Git in front of its subcommand: where it works, and aliases given on the line.

use super::dispatch::Call;
use super::{Stream, Walk};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell};
use crate::classify::rules::Run;
use crate::classify::rules::args::{Grammar, parse};

/// Options of git itself that take a value.
const VALUES: [&str; 7] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"];

impl Walk<'_> {
    /// Judges a git command.
    pub fn git(&mut self, call: &Call<'_>, shell: &mut Shell) -> Stream {
        let grammar = Grammar { values: VALUES.map(str::to_owned).into_iter().collect(), ..Grammar::default() };
        let options = parse(call.args, &grammar, true);
        let rest = &call.args[options.rest.min(call.args.len())..];
        let mut shell = shell.clone();
        for flag in &options.flags {
            if let ("-C" | "--work-tree", Some(value)) = (flag.name.as_str(), &flag.value) {
                shell.cwd = value.exact().and_then(|text| Some(resolve(shell.cwd.as_deref()?, text)));
            }
        }
        let Some(sub) = rest.first() else {
            return Stream::Nothing;
        };
        self.configures_alias(rest);
        let configured = self.aliases.get(&format!("git {}", sub.text)).map(|code| code.text.clone());
        let alias = options.flags.iter().filter(|flag| flag.name == "-c").find_map(|flag| {
            let (name, value) = flag.value.as_ref()?.text.split_once('=')?;
            (name.strip_prefix("alias.")? == sub.text).then(|| value.to_owned())
        });
        if let Some(alias) = alias.or(configured) {
            return self.git_alias(&alias, rest, call, &mut shell);
        }
        let inner = Call { program: "git", args: rest, span: call.span, input: call.input.clone() };
        if self.git_carries(&inner, &mut shell) {
            return Stream::Opaque;
        }
        if let Some(hit) = self.rules.find("git", rest, Run { input: inner.input.flows(), root: self.root }) {
            self.hit(&hit, &inner, &shell);
        }
        Stream::Opaque
    }

    /// `git config alias.x '!rm a'`: a later `git x` of the line runs it.
    fn configures_alias(&mut self, rest: &[Arg]) {
        if let [config, .., name, code] = rest
            && config.text == "config"
            && let (Some(name), Some(code)) = (name.text.strip_prefix("alias."), code.exact())
            && self.aliases.len() < 64
        {
            self.aliases.insert(format!("git {name}"), Arg::literal(code, config.span));
        }
    }

    fn git_alias(&mut self, alias: &str, rest: &[Arg], call: &Call<'_>, shell: &mut Shell) -> Stream {
        let text = match alias.strip_prefix('!') {
            Some(command) => command.to_owned(),
            None => format!("git {alias}"),
        };
        let mut code = Arg::literal(text, call.span);
        for arg in &rest[1..] {
            code.text.push(' ');
            code.text.push_str(&arg.text);
        }
        self.payload(&code, call.input.clone(), shell)
    }

    /// `bisect run`, `submodule foreach`, `rebase --exec`: commands inside.
    fn git_carries(&mut self, call: &Call<'_>, shell: &mut Shell) -> bool {
        let words: Vec<&str> = call.args.iter().take(2).map(|arg| arg.text.as_str()).collect();
        let skip = match words.as_slice() {
            ["bisect", "run"] => 2,
            ["submodule", "foreach"] => 2,
            _ => return false,
        };
        let inner: Vec<Arg> = call.args[skip..].iter().skip_while(|arg| arg.text.starts_with('-')).cloned().collect();
        if let [code] = inner.as_slice() {
            self.payload(code, Stream::Nothing, &mut shell.clone());
        } else {
            self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
        }
        true
    }
}
