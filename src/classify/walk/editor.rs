//! Commands given to line editors: `vim -es -c 'w !sh'`, `ed f <<< 'w'`. Text that a person types into an editor is not
//! on the line.

use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell};
use crate::classify::found::FoundEffect;
use crate::classify::rules::args::{Grammar, parse};
use crate::model::effect::Class;

/// Options of vim and ex that take a value.
const VALUES: [&str; 10] = ["-c", "--cmd", "-u", "-U", "-i", "-S", "-s", "-t", "-T", "-w"];
/// Words in front of a command that change nothing about what it does to files.
const MODIFIERS: [&str; 12] =
    ["silent!", "silent", "sil!", "sil", "argdo", "bufdo", "windo", "tabdo", "noautocmd", "noau", "keepjumps", "exe"];

impl Walk<'_> {
    /// Judges the commands of a line editor; `None` where the rules know better: no commands, or none that can be read.
    pub(crate) fn editor(&mut self, call: &Invocation<'_>, shell: &mut Shell) -> Option<Stream> {
        let values = VALUES.iter().filter(|name| **name != "-s" || call.program != "ed");
        let silent = call.args.iter().any(|arg| matches!(arg.text.as_str(), "-e" | "-es" | "-Es" | "-E" | "-se"));
        // `-s` is an option of its own behind `-e`, and takes a script elsewhere.
        let values = values.filter(|name| **name != "-s" || !(silent || call.program == "ex"));
        let grammar = Grammar { values: values.map(|name| (*name).to_owned()).collect(), ..Grammar::default() };
        let parsed = parse(call.args, &grammar, false);
        if parsed.has(&["-S"]) || parsed.value(&["-s"]).is_some() || parsed.has(&["--version", "--help"]) {
            return None;
        }
        let (typed, files): (Vec<&Arg>, Vec<&Arg>) =
            parsed.operands.iter().partition(|arg| arg.text.starts_with('+') && call.program != "ed");
        let given = ["-c".to_owned(), "--cmd".to_owned()];
        let mut commands: Vec<String> = Vec::new();
        for arg in parsed.values(&given) {
            commands.push(arg.exact()?.to_owned());
        }
        for arg in typed {
            commands.push(arg.exact()?[1..].to_owned());
        }
        if matches!(call.program, "ed" | "ex" | "red") || silent {
            match &call.input {
                Stream::Text(text) => commands.extend(text.lines().map(str::to_owned)),
                Stream::Nothing => {}
                Stream::Files | Stream::Remote | Stream::Decoded | Stream::Setup | Stream::Opaque => return None,
            }
        }
        if commands.is_empty() {
            return None;
        }
        for command in &commands {
            self.editor_command(command, &files, call, shell);
        }
        Some(Stream::Opaque)
    }

    fn editor_command(&mut self, command: &str, files: &[&Arg], call: &Invocation<'_>, shell: &mut Shell) {
        let mut rest = command.trim_start_matches([':', ' ', '\t']);
        while let Some(after) = MODIFIERS.iter().find_map(|word| rest.strip_prefix(word)?.strip_prefix(' ')) {
            rest = after.trim_start_matches([':', ' ', '"', '\'']);
        }
        // Commands of plug-ins begin with a capital letter.
        self.opaque |= rest.starts_with(|letter: char| letter.is_ascii_uppercase());
        let ranged = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || ",%$.+-'<>".contains(letter));
        let (name, tail) = ranged.split_at(ranged.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(ranged.len()));
        let (forced, tail) = match tail.strip_prefix('!') {
            Some(tail) => (true, tail),
            None => (false, tail),
        };
        let runs = match name {
            "" if forced => Some(tail),
            "w" | "write" | "r" | "read" => tail.trim_start().strip_prefix('!').filter(|_| tail.starts_with(' ')),
            "terminal" | "term" | "te" => Some(tail),
            _ => None,
        };
        if let Some(line) = runs {
            self.payload(&Arg::literal(line, call.span), Stream::Opaque, &mut shell.clone());
            return;
        }
        let (own, next) = tail.split_once('|').unwrap_or((tail, ""));
        match name {
            "w" | "write" | "sav" | "saveas" | "W" | "wq" | "x" | "xit" | "exit" | "wa" | "wall" | "wqa" | "wqall"
            | "xa" | "xall" | "up" | "update" => self.editor_writes(own.trim(), files, call, shell),
            "call" | "echo" | "let" | "lua" | "py" | "py3" | "python" | "python3" => {
                let language = crate::classify::rules::dialect::CodeLanguage::Vim;
                self.calls(language, call.program, own, call.span, shell);
            }
            // `g/pattern/command`
            "g" | "global" | "v" if own.matches('/').count() > 1 => {
                let inner = own.rsplit('/').next().unwrap_or_default();
                self.editor_command(inner, files, call, shell);
            }
            _ => {}
        }
        if !next.is_empty() {
            self.editor_command(next, files, call, shell);
        }
    }

    fn editor_writes(&mut self, name: &str, files: &[&Arg], call: &Invocation<'_>, shell: &Shell) {
        let (class, name) = match name.strip_prefix(">>") {
            Some(name) => (Class::FileWrite, name.trim()),
            None => (Class::FileOverwrite, name.trim_start_matches("++p").trim()),
        };
        let found = FoundEffect::new(class, call.program, "editor-command", call.span);
        if !name.is_empty() {
            self.report(found, Some(&Arg::literal(name, call.span)), shell);
        } else if files.is_empty() {
            self.report(found, None, shell);
        } else {
            files.iter().for_each(|file| self.report(found.clone(), Some(file), shell));
        }
    }
}
