//! Functions of the line. They are walked when they are called, with the arguments of the call, and at the end if no
//! call was found.

use std::rc::Rc;

use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell, TextOrigin, Value};
use crate::classify::shell::{PipelineStage, Script};

/// Calls that a line's functions are walked for; past them a body was seen often enough.
const MAX_CALLS: usize = 64;
/// Names of positional parameters.
const DIGITS: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// A function that the line defines.
#[derive(Debug)]
pub(super) struct Function {
    pub name: String,
    body: Rc<Script>,
    called: bool,
    /// Being walked: a function that calls itself does nothing new.
    running: bool,
}

impl Walk<'_> {
    /// Remembers a function; a later one of the same name hides it.
    pub(crate) fn define(&mut self, name: &str, body: &Script) {
        let name = name.to_ascii_lowercase();
        self.functions.push(Function { name, body: Rc::new(body.clone()), called: false, running: false });
    }

    /// Runs a function of the line; `None` if there is none of that name.
    pub(crate) fn invoke(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let at = self.functions.iter().rposition(|function| function.name == call.program)?;
        let function = &mut self.functions[at];
        if function.running || function.called && self.calls >= MAX_CALLS {
            return Some(Stream::Opaque);
        }
        (function.called, function.running) = (true, true);
        let body = Rc::clone(&function.body);
        self.calls += 1;
        let outer = replace_positional(shell, call.args.to_vec());
        let output = self.script(&body, call.input.clone(), shell);
        restore_positional(shell, outer);
        self.functions[at].running = false;
        Some(output)
    }

    /// Walks the functions defined since there were so many and not called: a later line may call them.
    pub(crate) fn uncalled(&mut self, since: usize, shell: &Shell) {
        let mut at = since;
        while let Some(function) = self.functions.get_mut(at) {
            at += 1;
            if function.called {
                continue;
            }
            function.called = true;
            let body = Rc::clone(&function.body);
            let mut shell = shell.clone();
            forget_positional(&mut shell);
            self.script(&body, Stream::Opaque, &mut shell);
        }
    }
}

type Positional = Vec<(&'static str, Option<Value>)>;

fn take_positional(shell: &mut Shell) -> Positional {
    DIGITS.iter().chain(&["@", "*"]).map(|name| (*name, shell.variables.remove(*name))).collect()
}

fn forget_positional(shell: &mut Shell) {
    drop(take_positional(shell));
}

fn restore_positional(shell: &mut Shell, values: Positional) {
    for (name, value) in values {
        match value {
            Some(value) => shell.set(name, value),
            None => drop(shell.variables.remove(name)),
        }
    }
}

/// Gives a shell other parameters; what they were.
fn replace_positional(shell: &mut Shell, args: Vec<Arg>) -> Positional {
    let outer = take_positional(shell);
    set_positional(shell, args);
    outer
}

/// Gives a shell its parameters: `$1`, `$2`, `$@`.
pub(super) fn set_positional(shell: &mut Shell, args: Vec<Arg>) {
    forget_positional(shell);
    for (name, arg) in DIGITS.iter().zip(&args) {
        shell.set(name, of_arg(arg));
    }
    // A word that stands for several makes every place behind it unknown.
    shell.set("@", Value::List(args.clone()));
    shell.set("*", Value::List(args));
}

/// `shift`: the parameters move up.
pub(super) fn shift(shell: &mut Shell, by: usize) {
    match shell.variables.get("@") {
        Some(Value::List(args)) => {
            let rest = args.get(by..).unwrap_or_default().to_vec();
            set_positional(shell, rest);
        }
        _ => forget_positional(shell),
    }
}

fn of_arg(arg: &Arg) -> Value {
    match arg.origin {
        TextOrigin::Temporary => Value::Temporary,
        _ if arg.is_exact() => Value::Known(vec![arg.text.clone()]),
        _ => Value::List(vec![arg.clone()]),
    }
}

/// Returns whether a function pipes itself into itself.
pub(super) fn breeds(name: &str, body: &Script) -> bool {
    let calls = |command: &PipelineStage| match command {
        PipelineStage::Simple(simple) => simple.words.first().and_then(|word| word.bare()) == Some(name),
        PipelineStage::Compound(_) => false,
    };
    body.pipelines.iter().any(|pipeline| {
        let own = pipeline.stages.iter().filter(|stage| calls(stage)).count();
        let inside =
            |stage: &PipelineStage| matches!(stage, PipelineStage::Compound(compound) if breeds(name, &compound.body));
        own > 1 || pipeline.stages.iter().any(inside)
    })
}
