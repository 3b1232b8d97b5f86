//! Interpreters: code on the line is searched for calls that do something; code in files cannot be seen.

use super::dispatch::Invocation;
use super::outputs::Familiarity;
use super::{Stream, Walk};
use crate::classify::code::{Directory, Origin, find_calls};
use crate::classify::context::resolve;
use crate::classify::expand::{Arg, Shell, TextOrigin};
use crate::classify::found::FoundEffect;
use crate::classify::names;
use crate::classify::rules::Interpreter;
use crate::classify::rules::args::parse;
use crate::classify::rules::dialect::CodeLanguage;
use crate::classify::shell::Span;
use crate::model::effect::{Certainty, Class};
use crate::model::words::PLAIN_CALLS;

impl Walk<'_> {
    /// Judges code given to a subcommand of a program that is more than an interpreter (`deno eval`, `rails runner`).
    pub(super) fn embedded_code(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let interpreter = self.rules.interpreters(call.program).next().filter(|found| !found.sub.is_empty())?;
        let used = interpreter.sub.behind_options(call.args, &interpreter.grammar).filter(|used| *used > 0)?;
        let args = &call.args[used..];
        let parsed = parse(args, &interpreter.grammar, false);
        let named = parsed.values(&interpreter.code).next();
        let Some(code) = named.or_else(|| args.iter().find(|arg| !arg.text.starts_with('-'))).cloned() else {
            self.run_input(interpreter, call, shell);
            return Some(Stream::Opaque);
        };
        self.run_code(interpreter, call.program, &code, shell);
        Some(Stream::Opaque)
    }

    /// Judges an interpreter.
    pub(crate) fn interpreter(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let rules = self.rules;
        let interpreter = rules.interpreters(call.program).next()?;
        if !interpreter.sub.is_empty() {
            return self.embedded_code(call, shell);
        }
        let args = call.args;
        let parsed = parse(args, &interpreter.grammar, true);
        if interpreter.unless.holds(&parsed) || parsed.has(&["--version", "--help", "-V"]) {
            return Some(Stream::Opaque);
        }
        let rest = &args[parsed.rest.min(args.len())..];
        if let Some(module) = parsed.value(&["-m"]).filter(|_| interpreter.spec.language == CodeLanguage::Python) {
            let mut inner = vec![module.clone()];
            inner.extend_from_slice(&args[after(args, module)..]);
            return Some(self.dispatch(&inner, call.span, call.input.clone(), shell));
        }
        let is_harmless = |module: &&Arg| {
            let name = module.text.split('=').next().unwrap_or_default().replace("::", ".").replace('/', ".");
            self.rules.is_harmless(interpreter.spec.language, &name)
        };
        if !parsed.values(&interpreter.loads).all(|module| is_harmless(&module)) {
            self.hidden(call.program, None, call.span);
        }
        let mut codes: Vec<Arg> = parsed.values(&interpreter.code).cloned().collect();
        if let ([code], Some(behind)) = (codes.as_mut_slice(), rest.first())
            && code.text == "--"
        {
            *code = behind.clone();
        }
        if !codes.is_empty() || interpreter.spec.operand {
            let more = if interpreter.spec.operand && codes.is_empty() { rest.first().cloned() } else { None };
            let mut output = Stream::Opaque;
            let mut inner = shell.clone();
            if interpreter.spec.language == CodeLanguage::Shell {
                // Behind the code stand the shell's name and its parameters.
                super::function::set_positional(&mut inner, rest.get(1..).unwrap_or_default().to_vec());
            }
            for code in codes.iter().chain(&more) {
                output = self.run_code(interpreter, call.program, code, &mut inner);
            }
            return Some(output);
        }
        match rest.first().filter(|arg| arg.text != "-" && !parsed.has(&["-s"])) {
            Some(script) => {
                self.run_file(interpreter, call, script, rest, shell);
                self.outputs(&Invocation { args: rest, ..call.clone() }, Familiarity::Unknown, shell);
            }
            None => self.run_input(interpreter, call, shell),
        }
        Some(Stream::Opaque)
    }

    /// Judges a piece of code that an interpreter is given.
    pub(super) fn run_code(
        &mut self,
        interpreter: &Interpreter,
        program: &str,
        code: &Arg,
        shell: &mut Shell,
    ) -> Stream {
        if interpreter.spec.within {
            self.hidden(program, None, code.span);
        }
        match code.origin {
            TextOrigin::Remote | TextOrigin::Decoded => self.fetched(program, code.span),
            TextOrigin::Plain | TextOrigin::Temporary | TextOrigin::Setup => {
                if code.is_unseen() {
                    self.hidden(program, None, code.span);
                } else if matches!(interpreter.spec.language, CodeLanguage::Shell | CodeLanguage::Powershell) {
                    // Calls of .NET are no words of a shell.
                    if interpreter.spec.language == CodeLanguage::Powershell && code.text.contains('(') {
                        self.calls(CodeLanguage::Powershell, program, &code.text, code.span, shell);
                    }
                    return self.own_shell(code, shell.clone());
                } else {
                    let outer = std::mem::replace(&mut self.is_within, interpreter.spec.within);
                    self.calls(interpreter.spec.language, program, &code.text, code.span, shell);
                    self.is_within = outer;
                    if interpreter.spec.language == CodeLanguage::Other && !is_plain(&code.text) {
                        self.opaque = true;
                    }
                }
            }
        }
        Stream::Opaque
    }

    fn run_file(
        &mut self,
        interpreter: &Interpreter,
        call: &Invocation<'_>,
        script: &Arg,
        rest: &[Arg],
        shell: &mut Shell,
    ) {
        let name = names::program(&script.text);
        match self.content(script, shell) {
            Stream::Remote | Stream::Decoded => self.fetched(call.program, call.span),
            Stream::Text(text) => {
                let code = Arg::literal(text, call.span);
                self.run_code(interpreter, call.program, &code, shell);
                self.hidden(call.program, None, call.span);
            }
            Stream::Nothing | Stream::Files | Stream::Setup | Stream::Opaque => {
                let command = script.text.contains(' ') || self.rules.knows(&script.text.to_ascii_lowercase());
                if interpreter.spec.language == CodeLanguage::Powershell && command {
                    let code = super::builtin::join_args(rest, call.span);
                    self.run_code(interpreter, call.program, &code, shell);
                } else if self.rules.knows(&name) {
                    self.dispatch(rest, call.span, call.input.clone(), shell);
                    self.in_case(|walk| walk.script_of(interpreter, call.program, rest, shell));
                } else {
                    let is_asked = rest.iter().any(|arg| super::dispatch::ASKS.contains(&arg.text.as_str()));
                    let name = Some(names::script(&script.text)).filter(|_| !is_asked);
                    self.hidden(call.program, name, call.span);
                    self.script_of(interpreter, call.program, rest, shell);
                }
            }
        }
    }

    fn run_input(&mut self, interpreter: &Interpreter, call: &Invocation<'_>, shell: &mut Shell) {
        match (&call.input, interpreter.spec.language) {
            (Stream::Text(text), language) if !matches!(language, CodeLanguage::Shell | CodeLanguage::Powershell) => {
                self.calls(language, call.program, &text.clone(), call.span, shell);
            }
            (input, _) => self.run_stream(call.program, input.clone(), call.span, shell),
        }
    }

    /// Records what the calls in code do.
    pub(crate) fn calls(&mut self, language: CodeLanguage, program: &str, code: &str, span: Span, shell: &mut Shell) {
        let home = self.context.home.as_ref().map(|home| home.to_string_lossy().into_owned());
        let dir = if self.is_script { self.script_dir.clone() } else { Some(".".to_owned()) };
        let origin = Origin { home: home.as_deref(), dir: dir.as_deref(), within: self.is_within };
        for call in find_calls(self.rules, language, code, &origin) {
            let mut there = shell.clone();
            match call.dir {
                Directory::First => {}
                Directory::Moved(dir) => there.cwd = shell.cwd.as_deref().map(|cwd| resolve(cwd, &dir)),
                Directory::Unknown => there.cwd = None,
            }
            match (call.class, call.argument) {
                (None, Some(line)) => {
                    let line = Arg::literal(line, span);
                    self.payload(&line, Stream::Nothing, &mut there);
                }
                (None, None) => self.opaque = true,
                (Some(Class::ExecOpaque), _) => self.hidden(program, None, span),
                (Some(class), argument) => {
                    let target = argument.filter(|_| crate::classify::found::is_file_class(class));
                    let target = target.filter(|text| !text.contains('\n')).map(|text| Arg::literal(text, span));
                    let mut found = FoundEffect::new(class, program, "code", span).certainty(Certainty::Likely);
                    found.severity = call.severity;
                    found.anywhere = target.is_none() && self.mention_within(code, shell);
                    self.report(found, target.as_ref(), &there);
                }
            }
        }
    }
}

/// Returns true for code that certainly only computes and shows: it calls nothing but such functions.
fn is_plain(code: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names =
        code.match_indices('(').map(|(at, _)| code[..at].trim_end().rsplit(|c| !is_name(c)).next().unwrap_or_default());
    let is_known = |name: &str| name.is_empty() || PLAIN_CALLS.contains(&name);
    names.all(is_known)
        && !code.contains(['`', '&', '|', ';', '\n', '[', '{'])
        && code.contains('(')
        && !code.starts_with('(')
}

fn after(args: &[Arg], value: &Arg) -> usize {
    args.iter().position(|arg| arg == value).map_or(args.len(), |at| at + 1)
}
