//! Names of piton's own files, and of the directories around them, that one command prints and another one reads.
//!
//! Only names near piton's own files are followed: of all others the walk knows as much without them.

use std::path::Path;

use super::dispatch::Invocation;
use super::{Stream, Walk};
use crate::classify::expand::{Arg, Shell, Value};
use crate::classify::found::{pattern, place};

/// Most lines that a `read` gives to a variable.
const MAX_LINES: usize = 64;

/// Programs that print lines of their input.
const PASSING: [&str; 9] = ["egrep", "fgrep", "grep", "head", "sort", "tac", "tail", "tr", "uniq"];

impl Walk<'_> {
    /// Returns the names that a command prints, if they are near piton's own files: of `ls`, `dirname`, `realpath` and `readlink`, and of
    /// those that leave lines out or change their order.
    pub(super) fn prints_names(&mut self, call: &Invocation<'_>, shell: &Shell) -> Option<Stream> {
        if let Stream::Text(text) = &call.input
            && PASSING.contains(&call.program)
        {
            let mut words = text.split_ascii_whitespace().take(MAX_LINES);
            return words.any(|word| self.is_near(&Arg::listed(word, call.span), shell)).then(|| call.input.clone());
        }
        if !matches!(call.program, "ls" | "dirname" | "realpath" | "readlink") || self.site.elsewhere {
            return None;
        }
        let operands: Vec<&Arg> = call.args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        let mut lines = Vec::new();
        if call.program != "ls" {
            for arg in operands {
                let Some(text) = arg.exact() else { continue };
                let path = place(arg, shell, &self.site, self.context).path;
                // A link may lead there.
                let led = path.filter(|_| call.program != "dirname").and_then(|path| {
                    self.top_of(&path);
                    self.context.led_to_piton(&path, true)
                });
                match led {
                    Some(led) => lines.push(led.to_string_lossy().into_owned()),
                    None if !self.is_near(arg, shell) => {}
                    None if call.program == "dirname" => lines.push(parent_of(text)),
                    None => lines.push(text.to_owned()),
                }
            }
        } else if operands.is_empty() {
            // The names in the current directory.
            let is_near = self.is_near(&Arg::literal(".", call.span), shell);
            lines.extend(is_near.then(|| "*".to_owned()));
        } else {
            let is_itself = call.args.iter().any(|arg| is_short_with(&arg.text, 'd') || arg.text == "--directory");
            let near = operands.iter().filter(|arg| self.is_near(arg, shell));
            lines.extend(near.map(|arg| if arg.glob || is_itself { arg.text.clone() } else { "*".to_owned() }));
        }
        (!lines.is_empty()).then(|| Stream::Text(lines.join("\n") + "\n"))
    }

    /// Returns the input of a loop behind a `find` that searches near piton's own files: the names below its directories.
    pub(super) fn finds_names(&mut self, input: Stream, shell: &Shell) -> Stream {
        let Some(search) = &self.fed else { return input };
        let is_near = !search.is_apart(self.context) && search.inside.iter().any(|arg| self.is_near(arg, shell));
        let Some(search) = self.fed.take().filter(|_| is_near) else { return input };
        Stream::Text(search.inside.iter().map(|arg| arg.text.clone() + "\n").collect())
    }

    /// Gives the lines that come in to the variables of a `read`, if one of them is near piton's own files.
    pub(super) fn reads_names(&mut self, call: &Invocation<'_>, shell: &mut Shell) {
        let Stream::Text(text) = &call.input else { return };
        let is_line = |line: &&str| !line.is_empty() && !line.contains('$');
        let lines = text.split(['\n', '\0']).map(str::trim).filter(is_line).take(MAX_LINES);
        let mut names: Vec<Arg> = lines.map(|line| Arg::listed(line, call.span)).collect();
        // Inside a longer word the first one counts.
        names.sort_by_cached_key(|arg| !self.is_near(arg, shell));
        if !names.first().is_some_and(|arg| self.is_near(arg, shell)) {
            return;
        }
        for variable in call.args.iter().filter(|arg| !arg.text.starts_with('-')) {
            shell.set(&variable.text, Value::List(names.clone()));
        }
    }

    /// Returns true if a word is a path near piton's own files, or a pattern that may match them.
    pub(super) fn is_near(&self, arg: &Arg, shell: &Shell) -> bool {
        let path = match arg.is_exact() {
            true => place(arg, shell, &self.site, self.context).path,
            false => pattern(arg, shell, &self.site, self.context),
        };
        path.is_some_and(|path| self.near_piton(&path).is_some())
    }
}

/// Returns what `dirname` prints.
fn parent_of(text: &str) -> String {
    let parent = Path::new(text).parent().unwrap_or(Path::new("/"));
    if parent.as_os_str().is_empty() { ".".to_owned() } else { parent.to_string_lossy().into_owned() }
}

/// Returns true for short options with a letter among them.
fn is_short_with(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}
