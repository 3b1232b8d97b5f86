//! The things that the reader finds in code, and where code stands.

use std::collections::HashSet;

use super::lex::{Token, TokenKind};
use super::value::Value;
use crate::model::effect::{Class, Severity};

/// The place of code.
#[derive(Clone, Copy, Debug)]
pub(in crate::classify) struct Origin<'o> {
    /// The user's directory.
    pub home: Option<&'o str>,
    /// The directory of the file that the code is in: of a code on the line, the current one.
    pub dir: Option<&'o str>,
    /// It runs within an application (`rails runner`).
    pub within: bool,
}

/// The directory that code works in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::classify) enum Directory {
    /// The one in which it began.
    #[default]
    First,
    /// Another one, by its path from the first.
    Moved(String),
    Unknown,
}

/// A call that does something.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::classify) struct CodeCall {
    /// `None`: `argument` is a shell command line.
    pub class: Option<Class>,
    pub severity: Option<Severity>,
    /// The path, the query or the command line; `None` where the code does not tell it.
    pub argument: Option<String>,
    /// The directory that the code has gone to before.
    pub dir: Directory,
}

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The full name, as imports and aliases tell it (`os.path.join`); of a method on a value only its own (`.unlink`).
    pub name: String,
    /// The value that a method is called on.
    pub receiver: Option<Value>,
    /// Values by position.
    pub args: Vec<Value>,
    /// Values by name.
    pub named: Vec<(String, Value)>,
    /// The directory that the code has gone to.
    pub dir: Directory,
    /// The function is only named, as a value: whoever gets it may call it.
    pub is_mention: bool,
    /// The place of the call in the code.
    pub from: usize,
    pub to: usize,
}

impl Call {
    /// Returns a value by its name or its position.
    pub(super) fn value(&self, at: usize, name: &str) -> Option<&Value> {
        let named = self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        named.or_else(|| self.args.get(at))
    }

    /// Returns the value of an option: by name, or in a map.
    pub(super) fn option(&self, name: &str) -> Option<&Value> {
        let named = self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        named.or_else(|| self.args.iter().find_map(|arg| arg.field(name)))
    }
}

/// A module that code imports.
#[derive(Clone, Debug)]
pub(super) struct Import<'c> {
    /// The full name, with dots between its parts; `None` where the code does not tell it.
    pub module: Option<String>,
    /// The name that the code knows it by; `None` for one that is used at once, or by parts of it.
    pub known_as: Option<&'c str>,
    /// The index of the first token behind it.
    pub end: usize,
}

/// Parts of a module that only say something about it.
const ABOUT: [&str; 9] =
    ["__version__", "__file__", "__path__", "__name__", "__doc__", "__all__", "VERSION", "version", "__spec__"];

/// Functions that only say something about a module.
const ASKS: [&str; 8] = ["print", "dir", "help", "type", "hasattr", "repr", "vars", "id"];

impl Import<'_> {
    /// Returns true if the code only asks which version there is, or where.
    pub(super) fn is_asked_about(&self, tokens: &[Token<'_>]) -> bool {
        let Some(name) = self.known_as else { return false };
        if ABOUT.contains(&name) {
            return true;
        }
        let sign = |at: usize, wanted: &str| matches!(tokens.get(at).map(|token| &token.kind), Some(TokenKind::Sign(sign)) if *sign == wanted);
        let word = |at: usize| match tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Name(word)) => *word,
            _ => "",
        };
        let mut uses =
            (self.end..tokens.len()).filter(|at| word(*at) == name && !(*at > 0 && sign(at - 1, "."))).peekable();
        let asks = |at: usize| {
            let is_part = sign(at + 1, ".") && ABOUT.contains(&word(at + 2)) && !sign(at + 3, "(");
            let is_asked =
                at > 1 && sign(at - 1, "(") && ASKS.contains(&word(at - 2)) && !sign(at + 1, ".") && !sign(at + 1, "(");
            is_part || is_asked
        };
        uses.peek().is_some() && uses.all(asks)
    }
}

/// The calls that the reader knows.
#[derive(Default)]
pub(super) struct Known {
    /// Their places in the code.
    pub places: Vec<(usize, usize)>,
    /// The classes of their effects.
    pub classes: HashSet<Option<Class>>,
    /// The places of names, in their order; `None` for a language that the reader does not read.
    pub code: Option<Vec<(usize, usize)>>,
    /// The beginnings of texts.
    pub texts: HashSet<usize>,
}

impl Known {
    /// Returns true if a hit lies in a text or a comment.
    pub(super) fn is_no_code(&self, from: usize, to: usize) -> bool {
        let Some(code) = &self.code else { return false };
        let next = code.partition_point(|(_, end)| *end <= from);
        !self.texts.contains(&from) && code.get(next).is_none_or(|(start, _)| *start >= to)
    }
}
