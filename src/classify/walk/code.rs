//! Interpreters: code on the line is searched for calls that do something; code in files cannot be seen.

use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell, TextOrigin};
use crate::classify::found::FoundEffect;
use crate::classify::names;
use crate::classify::rules::args::parse;
use crate::classify::rules::dialect::CodeLanguage;
use crate::classify::rules::{Interpreter, RuleSet};
use crate::classify::shell::Span;
use crate::model::effect::{Certainty, Class, Severity};

/// Longest string that stays readable when code is blanked: long enough for the mode of `open`.
const SHORT: usize = 6;

/// A call found in code.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CodeCall {
    /// `None`: `argument` is a shell command line.
    pub class: Option<Class>,
    pub severity: Option<Severity>,
    /// The first string behind the call.
    pub argument: Option<String>,
}

impl Walk<'_> {
    /// Judges an interpreter.
    pub(crate) fn interpreter(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let rules = self.rules;
        let interpreter = rules.interpreters(call.program).next()?;
        let mut args = call.args;
        if !interpreter.sub.is_empty() {
            let used = interpreter.sub.matches(args).unwrap_or(0);
            args = &args[used..];
            if used > 0 {
                let code = args.iter().find(|arg| !arg.text.starts_with('-'))?.clone();
                self.run_code(interpreter, call.program, &code, shell);
                return Some(Stream::Opaque);
            }
        }
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
            Some(script) => self.run_file(interpreter, call, script, rest, shell),
            None => self.run_input(interpreter, call, shell),
        }
        Some(Stream::Opaque)
    }

    fn run_code(&mut self, interpreter: &Interpreter, program: &str, code: &Arg, shell: &mut Shell) -> Stream {
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
                    self.calls(interpreter.spec.language, program, &code.text, code.span, shell);
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
                } else {
                    self.hidden(call.program, Some(names::script(&script.text)), call.span);
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
        for call in find_calls(self.rules, language, code) {
            match (call.class, call.argument) {
                (None, Some(line)) => {
                    let line = Arg::literal(line, span);
                    self.payload(&line, Stream::Nothing, &mut shell.clone());
                }
                (None, None) => self.opaque = true,
                (Some(class), argument) => {
                    let target = argument.filter(|_| crate::classify::found::is_file_class(class));
                    let target = target.filter(|text| !text.contains('\n')).map(|text| Arg::literal(text, span));
                    let mut found = FoundEffect::new(class, program, "code", span).certainty(Certainty::Likely);
                    found.severity = call.severity;
                    self.report(found, target.as_ref(), shell);
                }
            }
        }
    }
}

fn after(args: &[Arg], value: &Arg) -> usize {
    args.iter().position(|arg| arg == value).map_or(args.len(), |at| at + 1)
}

/// Returns the calls of a piece of code that do something, each class once per target.
pub(super) fn find_calls(rules: &RuleSet, language: CodeLanguage, code: &str) -> Vec<CodeCall> {
    let blanked = blank(code, language);
    let mut calls: Vec<CodeCall> = Vec::new();
    for call in rules.calls(language) {
        let Some(pattern) = call.pattern.get() else { continue };
        for hit in pattern.find_iter(blanked.as_bytes()).take(16) {
            let from = hit.end().saturating_sub(1);
            let argument = match call.class {
                None => command_at(code, from).or_else(|| command_at(code, hit.start())),
                Some(_) => string_at(code, from).or_else(|| string_at(code, hit.start())),
            };
            if call.class == Some(Class::Database) && !argument.as_deref().is_some_and(crate::classify::sql::changes) {
                continue;
            }
            let made = CodeCall { class: call.class, severity: call.severity, argument };
            if !calls.contains(&made) {
                calls.push(made);
            }
        }
    }
    calls
}

/// Returns the command line a call is given: one string, a list of strings, or a program and a list.
fn command_at(code: &str, from: usize) -> Option<String> {
    let rest = code.get(from..)?.trim_start_matches(['(', ' ', '\n']);
    let first = string_at(rest, 0)?;
    let after =
        rest.find(first.as_str()).map_or("", |at| rest[at + first.len()..].trim_start_matches(['\'', '"', '`', ' ']));
    let list = match after.strip_prefix(',').map(str::trim_start) {
        _ if rest.starts_with('[') => after,
        Some(list) if list.starts_with('[') => list,
        _ => return Some(first),
    };
    let mut line = first;
    for (index, word) in list[..list.find(']').unwrap_or(list.len())].split(['\'', '"', '`']).enumerate() {
        if index % 2 == 1 {
            line.push_str(" '");
            line.push_str(word);
            line.push('\'');
        }
    }
    Some(line)
}

/// Returns the string that begins at or shortly after a place.
fn string_at(code: &str, from: usize) -> Option<String> {
    let rest = code.get(from..)?;
    let opening = rest.find(['\'', '"', '`', ')', ';', '\n'])?;
    let quote = rest[opening..].chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let inside = &rest[opening + 1..];
    let end = inside.find(quote)?;
    let text = inside[..end].trim_start_matches(['>', '<', '+', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the code with comments and the inside of long strings blanked; every other byte stays in its place.
fn blank(code: &str, language: CodeLanguage) -> String {
    let bytes = code.as_bytes();
    let mut blanked = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, keep) = match bytes[at] {
            b';' if language == CodeLanguage::Lisp => (line_end(bytes, at), 0),
            // Quotes begin forms in Lisp, and comments in Vim.
            b'\'' if language == CodeLanguage::Lisp => {
                at += 1;
                continue;
            }
            b'#' if hash_comments(language) && starts_comment(bytes, at) => (line_end(bytes, at), 0),
            b'/' if bytes.get(at + 1) == Some(&b'/')
                && language == CodeLanguage::Javascript
                && starts_comment(bytes, at) =>
            {
                (line_end(bytes, at), 0)
            }
            quote @ (b'\'' | b'"') => string_end(bytes, at, quote),
            b'`' if language == CodeLanguage::Javascript => string_end(bytes, at, b'`'),
            _ => {
                at += 1;
                continue;
            }
        };
        let from = if keep > 0 { at + keep } else { at };
        for byte in blanked.iter_mut().take(end.saturating_sub(usize::from(keep > 0))).skip(from) {
            *byte = b' ';
        }
        at = end.max(at + 1);
    }
    String::from_utf8(blanked).unwrap_or_else(|_| code.to_owned())
}

fn hash_comments(language: CodeLanguage) -> bool {
    !matches!(language, CodeLanguage::Javascript | CodeLanguage::Lisp | CodeLanguage::Vim)
}

fn starts_comment(bytes: &[u8], at: usize) -> bool {
    at == 0 || bytes[at - 1].is_ascii_whitespace() || bytes[at - 1] == b';'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// Returns where a string ends (after its quote), and how many bytes from its start stay readable.
fn string_end(bytes: &[u8], at: usize, quote: u8) -> (usize, usize) {
    let triple = bytes[at..].starts_with(&[quote, quote, quote]);
    let mut end = at + if triple { 3 } else { 1 };
    while end < bytes.len() {
        if bytes[end] == b'\\' {
            end += 2;
            continue;
        }
        if bytes[end] == quote && (!triple || bytes[end..].starts_with(&[quote, quote, quote])) {
            end += if triple { 3 } else { 1 };
            break;
        }
        if bytes[end] == b'\n' && !triple && quote != b'`' {
            break;
        }
        end += 1;
    }
    let end = end.min(bytes.len());
    let length = end.saturating_sub(at + 2);
    let mode = matches!(bytes.get(at + 1), Some(b'>' | b'+' | b'|'));
    let keep = if length <= SHORT {
        end - at
    } else if mode {
        3
    } else {
        1
    };
    (end, keep)
}
