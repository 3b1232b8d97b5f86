//! Programs that run the command in their arguments: wrappers from the table, and those with a grammar of their own.

use super::builtin::join_args;
use super::dispatch::Invocation;
use super::outputs::Familiarity;
use super::{Stream, Walk};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell, TextOrigin, Value};
use crate::classify::found::FoundEffect;
use crate::classify::rules::Wrapper;
use crate::classify::rules::args::{Grammar, parse};
use crate::classify::shell::Span;
use crate::model::effect::Class;

/// Tools that `yarn`, `pnpm` and `bun` run by name; names that these managers use themselves are not among them.
const LOCAL_TOOLS: [&str; 32] = [
    "prettier",
    "eslint",
    "stylelint",
    "biome",
    "tsc",
    "prisma",
    "knex",
    "typeorm",
    "sequelize",
    "drizzle-kit",
    "rimraf",
    "del-cli",
    "jest",
    "vitest",
    "playwright",
    "cypress",
    "lerna",
    "changeset",
    "turbo",
    "nx",
    "wrangler",
    "vercel",
    "netlify",
    "cdk",
    "serverless",
    "sls",
    "semantic-release",
    "release-it",
    "jscodeshift",
    "firebase",
    "tsx",
    "ts-node",
];

/// The most words or lines of a known text that become arguments. One argument of unknown text replaces the others.
const MOST_FED: usize = 64;

impl Walk<'_> {
    /// Wrappers of the table.
    pub(crate) fn wrapped(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let rules = self.rules;
        rules.wrappers(call.program).find_map(|wrapper| self.unwrap(wrapper, call, shell))
    }

    fn unwrap(&mut self, wrapper: &Wrapper, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let grammar = self.rules.grammar(call.program, None);
        let used = wrapper.sub.behind_options(call.args, grammar)?;
        let args = &call.args[used..];
        let parsed = parse(args, &wrapper.grammar, !wrapper.spec.beside);
        if wrapper.unless.holds(&parsed) {
            return Some(Stream::Opaque);
        }
        if wrapper.spec.beside {
            // The actions of `tar --checkpoint-action` have a name before the command.
            let lines = parsed.values(&wrapper.line).map(|line| match line.text.split_once('=') {
                Some(("exec", _)) => line.skip("exec=".len()),
                _ => line.clone(),
            });
            lines.for_each(|line| _ = self.payload(&line, Stream::Opaque, &mut shell.clone()));
            return None;
        }
        let own = &args[..parsed.rest.min(args.len())];
        self.outputs(&Invocation { args: own, ..call.clone() }, Familiarity::Unknown, shell);
        if !wrapper.spec.makes.is_empty() && !parsed.has(&["-a", "--append"]) {
            let file = args.get(parsed.rest).cloned().unwrap_or_else(|| Arg::literal(&*wrapper.spec.makes, call.span));
            let made = FoundEffect::new(Class::FileWrite, call.program, "made-beside", call.span);
            self.report(FoundEffect { replaces: true, ..made }, Some(&file), shell);
        }
        let mut inner_shell = shell.clone();
        if let Some(directory) = parsed.values(&wrapper.directory).last() {
            inner_shell.cwd = directory.exact().and_then(|text| Some(resolve(inner_shell.cwd.as_deref()?, text)));
        }
        // `su bob -c LINE`: the line may stand behind the operands.
        let behind = (wrapper.spec.skip > 0).then(|| parse(args, &wrapper.grammar, false));
        // `env -S CODE WORD …`: the words belong to the code.
        if let ("env", Some(line)) = (call.program, parsed.values(&wrapper.line).next()) {
            let mut words = vec![line.clone()];
            words.extend_from_slice(&args[parsed.rest.min(args.len())..]);
            return Some(self.payload(&join_args(&words, call.span), call.input.clone(), &mut inner_shell));
        }
        for line in behind.as_ref().unwrap_or(&parsed).values(&wrapper.line) {
            self.payload(line, call.input.clone(), &mut inner_shell.clone());
        }
        let mut rest = &args[parsed.rest.min(args.len())..];
        if wrapper.spec.dashes
            && let Some(at) = args.iter().position(|arg| arg.text == "--")
        {
            rest = &args[at + 1..];
        } else {
            rest = rest.get(wrapper.spec.skip..).unwrap_or_default();
        }
        while wrapper.spec.assignments
            && let Some((name, value)) = rest.first().and_then(|arg| arg.text.split_once('='))
            && !name.is_empty()
        {
            let value = match rest[0].origin {
                TextOrigin::Plain if rest[0].is_exact() => Value::Known(vec![value.to_owned()]),
                origin => Value::Unknown(origin),
            };
            inner_shell.set(name, value);
            rest = &rest[1..];
        }
        if rest.is_empty() {
            return Some(Stream::Opaque);
        }
        let outer = self.root;
        self.root |= wrapper.spec.privileged;
        let output = self.run_wrapped(wrapper, rest, call, &mut inner_shell);
        self.root = outer;
        Some(output)
    }

    fn run_wrapped(&mut self, wrapper: &Wrapper, rest: &[Arg], call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        if wrapper.spec.each {
            rest.iter().for_each(|line| _ = self.payload(line, Stream::Nothing, &mut shell.clone()));
            return Stream::Opaque;
        }
        if wrapper.spec.joined {
            return self.payload(&join_args(rest, call.span), call.input.clone(), shell);
        }
        if call.program == "uv" && rest[0].text == "-" {
            let python = Arg::literal("python", call.span);
            return self.dispatch(&[python], call.span, call.input.clone(), shell);
        }
        if wrapper.spec.fetches {
            return self.fetched_tool(rest, call, shell);
        }
        self.dispatch(rest, call.span, call.input.clone(), shell)
    }

    /// `npx TOOL`: a tool we know counts as itself, any other one as code from elsewhere.
    fn fetched_tool(&mut self, rest: &[Arg], call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let Some(first) = rest.first() else {
            return Stream::Opaque;
        };
        let name = package_name(&first.text);
        if !first.is_exact() || !self.rules.knows(&name.to_ascii_lowercase()) {
            self.fetched(call.program, call.span);
            return Stream::Opaque;
        }
        let mut args = vec![Arg::literal(name, first.span)];
        args.extend(
            rest[1..].iter().enumerate().filter(|(at, arg)| *at > 0 || arg.text != "--").map(|(_, arg)| arg.clone()),
        );
        self.dispatch(&args, call.span, call.input.clone(), shell)
    }

    /// Programs whose way of carrying a command fits no table.
    pub(crate) fn special(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        match call.program {
            "xargs" => Some(self.xargs(call, shell)),
            "parallel" => Some(self.parallel(call, shell)),
            "find" | "gfind" => Some(self.find(call, shell)),
            "fd" | "fdfind" => Some(self.fd(call, shell)),
            "yarn" | "pnpm" | "bun" => self.local_tool(call, shell),
            "vim" | "nvim" | "vi" | "gvim" | "view" | "ex" | "ed" | "red" => self.editor(call, shell),
            "nix" => self.behind(call, &["-c", "--command"], shell),
            "foreach-object" | "foreach" | "%" | "where-object" => self.block(call, shell),
            _ => None,
        }
    }

    /// `yarn prettier`: a tool of the project, run by its name.
    fn local_tool(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        if let [workspace, _, rest @ ..] = call.args
            && workspace.text == "workspace"
            && !rest.is_empty()
        {
            let mut args = vec![Arg::literal(call.program, call.span)];
            args.extend_from_slice(rest);
            return Some(self.dispatch(&args, call.span, call.input.clone(), shell));
        }
        let first = call.args.first().and_then(Arg::exact).filter(|text| LOCAL_TOOLS.contains(text))?;
        self.rules.knows(first).then(|| self.dispatch(call.args, call.span, call.input.clone(), shell))
    }

    /// `nix develop -c COMMAND …`: what stands behind an option.
    fn behind(&mut self, call: &Invocation<'_>, options: &[&str], shell: &mut Shell) -> Option<Stream> {
        if let [run, package, rest @ ..] = call.args
            && run.text == "run"
            && let Some((_, name)) = package.text.split_once('#').filter(|(_, name)| self.rules.knows(name))
        {
            let mut args = vec![Arg::literal(name, package.span)];
            args.extend(rest.iter().filter(|arg| arg.text != "--").cloned());
            return Some(self.dispatch(&args, call.span, call.input.clone(), shell));
        }
        let at = call.args.iter().position(|arg| options.contains(&arg.text.as_str()))?;
        Some(self.dispatch(&call.args[at + 1..], call.span, call.input.clone(), shell))
    }

    /// `ForEach-Object { COMMAND }`: PowerShell's blocks are words to this scanner.
    fn block(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let from = call.args.iter().position(|arg| arg.text == "{")? + 1;
        let to = call.args.iter().rposition(|arg| arg.text == "}").filter(|to| *to > from)?;
        Some(self.dispatch(&call.args[from..to], call.span, Stream::Opaque, shell))
    }

    fn xargs(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let values = [
            "-I",
            "-n",
            "-P",
            "-L",
            "-s",
            "-d",
            "-a",
            "-E",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
            "-J",
            "-R",
        ];
        let attached = ["-i", "-l", "-e"].map(str::to_owned).into_iter().collect();
        let grammar =
            Grammar { values: values.map(str::to_owned).into_iter().collect(), attached, single: false, fold: false };
        let parsed = parse(call.args, &grammar, true);
        let mut inner = call.args[parsed.rest.min(call.args.len())..].to_vec();
        if inner.is_empty() {
            return Stream::Opaque;
        }
        let placeholder = parsed.value(&["-I", "-J"]).map(|arg| arg.text.clone());
        let (first, words, search) = (self.found.len(), inner.clone(), self.handed(shell));
        let Some(search) = search else {
            let Some(placeholder) = placeholder else {
                inner.extend(fed(&call.input, call.span));
                return self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
            };
            // The command runs once for each line, which is one word with all its spaces.
            let mut output = Stream::Nothing;
            for line in fed_lines(&call.input, call.span) {
                let (mut inner, line) = (words.clone(), [line]);
                replace(&mut inner, &placeholder, (&line, &line));
                output = self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
            }
            return output;
        };
        match placeholder {
            Some(placeholder) => replace(&mut inner, &placeholder, (&search.matched, &search.inside)),
            None => inner.extend(search.matched.iter().cloned()),
        }
        let output = self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
        self.searched(first, &search, &words);
        output
    }

    fn parallel(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let values =
            ["-j", "--jobs", "-P", "-n", "-N", "-I", "-S", "--colsep", "-a", "--timeout", "--delay", "--joblog"];
        let grammar = Grammar { values: values.map(str::to_owned).into_iter().collect(), ..Grammar::default() };
        let parsed = parse(call.args, &grammar, true);
        let rest = &call.args[parsed.rest.min(call.args.len())..];
        let at = rest.iter().position(|arg| arg.text.starts_with(":::")).unwrap_or(rest.len());
        let (command, values) = (&rest[..at], rest.get(at + 1..).unwrap_or_default());
        let search = if values.is_empty() { self.handed(shell) } else { None };
        let (first, words) = (self.found.len(), command.to_vec());
        let given = match &search {
            Some(search) => search.matched.clone(),
            None if values.is_empty() => fed(&call.input, call.span),
            None => values.to_vec(),
        };
        if let [only] = command
            && only.text.contains(' ')
        {
            let mut code = only.clone();
            if let Some(value) = given.first().filter(|_| code.text.contains("{}")) {
                code.text = code.text.replace("{}", &value.text);
            }
            return self.payload(&code, Stream::Nothing, &mut shell.clone());
        }
        let mut inner = command.to_vec();
        if inner.iter().any(|arg| arg.text.contains('{')) {
            replace(&mut inner, "{}", (&given, &given));
        } else {
            inner.extend(given);
        }
        let output = self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
        if let Some(search) = search {
            self.searched(first, &search, &words);
        }
        output
    }

    fn fd(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Stream {
        let at = call.args.iter().position(|arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        if let Some(at) = at {
            let mut inner = call.args[at + 1..].to_vec();
            let matched = [Arg { glob: true, ..Arg::unknown("{}", call.span) }];
            if inner.iter().any(|arg| arg.text.contains("{}")) {
                replace(&mut inner, "{}", (&matched, &matched));
            } else {
                inner.extend(matched);
            }
            self.dispatch(&inner, call.span, Stream::Nothing, &mut shell.clone());
        }
        Stream::Opaque
    }
}

/// Returns the arguments that come in: the words of a known text, else one that is unknown.
fn fed(input: &Stream, span: Span) -> Vec<Arg> {
    // `xargs -0` reads names that end with NUL.
    fed_parts(input, |c| c.is_ascii_whitespace() || c == '\0', span)
}

/// Returns the lines that come in, as [`fed`] returns the words.
fn fed_lines(input: &Stream, span: Span) -> Vec<Arg> {
    fed_parts(input, |c| matches!(c, '\n' | '\0'), span)
}

fn fed_parts(input: &Stream, ends: fn(char) -> bool, span: Span) -> Vec<Arg> {
    let Stream::Text(text) = input else { return vec![Arg::unknown("{}", span)] };
    let mut parts = text.split(ends).map(str::trim).filter(|part| !part.is_empty());
    let mut args: Vec<Arg> = parts.by_ref().take(MOST_FED).map(|part| Arg::listed(part, span)).collect();
    args.extend(parts.next().map(|_| Arg::unknown("{}", span)));
    args
}

/// Puts what is found where the placeholder stands: as a word of its own, or inside a longer one.
pub(super) fn replace(args: &mut Vec<Arg>, placeholder: &str, (found, inside): (&[Arg], &[Arg])) {
    let mut replaced = Vec::with_capacity(args.len());
    for arg in args.drain(..) {
        if arg.text == placeholder {
            replaced.extend_from_slice(found);
        } else if let (Some(at), Some(value)) = (arg.text.find(placeholder), inside.first()) {
            // Inside a longer word, such as the code given to `sh -c`.
            let text = arg.text.replace(placeholder, &value.text);
            replaced.push(Arg { known: at + value.known, glob: value.glob, text, ..arg });
        } else {
            replaced.push(arg);
        }
    }
    *args = replaced;
}

/// `@scope/tool@1.2` is `tool`; a few packages are named otherwise than their program.
fn package_name(text: &str) -> String {
    let unversioned = match text.rfind('@') {
        Some(at) if at > 0 => &text[..at],
        _ => text,
    };
    match unversioned {
        "@biomejs/biome" => "biome".to_owned(),
        "@angular/cli" => "ng".to_owned(),
        "@nestjs/cli" => "nest".to_owned(),
        "aws-cdk" => "cdk".to_owned(),
        "typescript" => "tsc".to_owned(),
        _ => unversioned.rsplit('/').next().unwrap_or(unversioned).to_owned(),
    }
}
