//! Words to arguments: what is constant is expanded, what is not is marked as unknown.

use std::collections::HashMap;
use std::path::PathBuf;

use super::brace;
use super::shell::Span;

/// Longest text that a variable may hold before it counts as unknown.
const MAX_VALUE: usize = 8 * 1024;
/// Most variables remembered.
const MAX_VARIABLES: usize = 256;
/// Most alternatives of one word.
pub(super) const MAX_ALTERNATIVES: usize = 64;

/// The origin of an unknown text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum TextOrigin {
    #[default]
    Plain,
    /// Fetched from the network.
    Remote,
    /// Decoded, decrypted or translated from something unreadable.
    Decoded,
    /// A fresh temporary path.
    Temporary,
    /// The output of a program known to print shell code for its own set-up (`ssh-agent -s`, `direnv hook`).
    Setup,
}

/// One argument after expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Arg {
    pub text: String,
    pub span: Span,
    /// The number of bytes of `text` that are certain: all of them, or those in front of a glob or an unknown piece.
    pub known: usize,
    /// True if a glob follows the known bytes, and not an unknown value.
    pub glob: bool,
    pub origin: TextOrigin,
}

impl Arg {
    /// Returns an argument that is wholly known.
    pub(super) fn literal(text: impl Into<String>, span: Span) -> Arg {
        let text = text.into();
        Arg { known: text.len(), text, span, glob: false, origin: TextOrigin::Plain }
    }

    /// Returns a name of a list that a command printed. With a wildcard, it stands for the names that match.
    pub(super) fn listed(name: &str, span: Span) -> Arg {
        let wild = name.find(['*', '?', '[']);
        Arg { known: wild.unwrap_or(name.len()), glob: wild.is_some(), ..Arg::literal(name, span) }
    }

    /// Returns an argument of which nothing is known.
    pub(super) fn unknown(text: &str, span: Span) -> Arg {
        Arg { text: text.to_owned(), span, known: 0, glob: false, origin: TextOrigin::Plain }
    }

    /// Returns whether every byte is certain.
    pub(super) fn is_exact(&self) -> bool {
        self.known == self.text.len() && !self.glob
    }

    /// Returns the text, if it is certain.
    pub(super) fn exact(&self) -> Option<&str> {
        self.is_exact().then_some(self.text.as_str())
    }

    /// Returns whether this is one unknown value and nothing else: code that cannot be seen.
    pub(super) fn is_unseen(&self) -> bool {
        self.known == 0 && !self.text.is_empty() && !self.text.contains(char::is_whitespace)
    }

    /// Returns the argument without its first bytes (an option's name in front of its value).
    pub(super) fn skip(&self, bytes: usize) -> Arg {
        let mut rest = self.clone();
        rest.text = self.text.get(bytes..).unwrap_or_default().to_owned();
        rest.known = self.known.saturating_sub(bytes).min(rest.text.len());
        rest
    }

    /// Returns the argument with a text at its end.
    pub(super) fn followed_by(&self, text: &str) -> Arg {
        let known = if self.is_exact() { self.known + text.len() } else { self.known };
        Arg { text: format!("{}{text}", self.text), known, ..self.clone() }
    }

    /// Returns the argument without a text at its end; `None` where it ends otherwise.
    pub(super) fn without(&self, ending: &str) -> Option<Arg> {
        let text = self.text.strip_suffix(ending).filter(|text| !text.is_empty() && !text.ends_with('/'))?.to_owned();
        Some(Arg { known: self.known.min(text.len()), text, ..self.clone() })
    }

    /// Returns the name of the backup that `sed -iSUFFIX` makes. A star in the suffix is replaced by the file's name.
    pub(super) fn kept_as(&self, suffix: &str) -> Arg {
        if !suffix.contains('*') {
            return self.followed_by(suffix);
        }
        let (dir, name) = self.text.rsplit_once('/').map_or(("", self.text.as_str()), |(dir, name)| (dir, name));
        let name = suffix.replace('*', name);
        let text = if dir.is_empty() || name.contains('/') { name } else { format!("{dir}/{name}") };
        if self.is_exact() { Arg::literal(text, self.span) } else { Arg { known: 0, text, ..self.clone() } }
    }

    /// Returns the argument with an ending where the name is certain and has none.
    pub(super) fn with_ending(&self, ending: &str) -> Arg {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        let is_bare = self.is_exact() && !name.is_empty() && !name.contains('.');
        if is_bare { Arg::literal(format!("{}{ending}", self.text), self.span) } else { self.clone() }
    }
}

/// The content of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// One of these texts (a loop's variable has several).
    Known(Vec<String>),
    /// These arguments, all of them: an array, the parameters of a function.
    List(Vec<Arg>),
    Unknown(TextOrigin),
    /// Not known, or this text: the default of a variable.
    UnknownOr(String),
    /// Below a temporary directory.
    Temporary,
}

/// The memory of a shell.
#[derive(Clone, Debug, Default)]
pub(super) struct Shell {
    pub variables: HashMap<String, Value>,
    /// `None` when the line moved somewhere unknown.
    pub cwd: Option<PathBuf>,
    /// The variable that the line moved to and does not set: if it is empty, the shell stays, or goes to the user's directory.
    pub adrift: Option<String>,
}

impl Shell {
    /// Sets a variable, within the limits.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let too_long = match &value {
            Value::Known(texts) => texts.iter().any(|text| text.len() > MAX_VALUE),
            Value::List(args) => {
                args.len() > MAX_ALTERNATIVES || args.iter().map(|arg| arg.text.len()).sum::<usize>() > MAX_VALUE
            }
            Value::UnknownOr(text) => text.len() > MAX_VALUE,
            Value::Unknown(_) | Value::Temporary => false,
        };
        if self.variables.len() < MAX_VARIABLES || self.variables.contains_key(name) {
            let value = if too_long { Value::Unknown(TextOrigin::Plain) } else { value };
            self.variables.insert(name.to_owned(), value);
        }
    }
}

/// A piece of a word whose expansion is done but for braces, splitting and globs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chunk {
    pub text: String,
    pub quoted: bool,
    /// Came from an unquoted expansion: is split at blanks, and its braces are text.
    pub splits: bool,
    pub known: bool,
    pub origin: TextOrigin,
}

impl Chunk {
    /// Text as written.
    pub(super) fn text(text: &str, quoted: bool) -> Chunk {
        Chunk { text: text.to_owned(), quoted, splits: false, known: true, origin: TextOrigin::Plain }
    }

    /// Something that cannot be known.
    pub(super) fn unknown(text: &str, quoted: bool, origin: TextOrigin) -> Chunk {
        Chunk { text: text.to_owned(), quoted, splits: false, known: false, origin }
    }
}

/// Adds the alternatives of one part to all alternatives so far.
pub(super) fn multiply(alternatives: &mut Vec<Vec<Chunk>>, choices: Vec<Chunk>) {
    if choices.len() == 1 || alternatives.len() * choices.len() > MAX_ALTERNATIVES {
        let Some(choice) = choices.into_iter().next() else {
            return;
        };
        for chunks in alternatives.iter_mut() {
            chunks.push(choice.clone());
        }
        return;
    }
    let before = std::mem::take(alternatives);
    for chunks in before {
        for choice in &choices {
            let mut chunks = chunks.clone();
            chunks.push(choice.clone());
            alternatives.push(chunks);
        }
    }
}

/// Braces, splitting, globs: one word's chunks to arguments.
pub(super) fn arguments(chunks: Vec<Chunk>, span: Span, arguments: &mut Vec<Arg>) {
    for chunks in brace::expand(chunks) {
        split(&chunks, span, arguments);
    }
}

fn split(chunks: &[Chunk], span: Span, arguments: &mut Vec<Arg>) {
    let mut current: Option<Arg> = None;
    for chunk in chunks {
        if !chunk.splits {
            append(current.get_or_insert_with(|| Arg::literal("", span)), chunk, &chunk.text);
            continue;
        }
        if chunk.text.starts_with(|letter: char| letter.is_ascii_whitespace()) {
            arguments.extend(current.take());
        }
        let mut words = chunk.text.split_ascii_whitespace().peekable();
        while let Some(word) = words.next() {
            append(current.get_or_insert_with(|| Arg::literal("", span)), chunk, word);
            if words.peek().is_some() || chunk.text.ends_with(|letter: char| letter.is_ascii_whitespace()) {
                arguments.extend(current.take());
            }
        }
    }
    arguments.extend(current);
}

fn append(arg: &mut Arg, chunk: &Chunk, text: &str) {
    let certain = arg.is_exact();
    let start = arg.text.len();
    arg.text.push_str(text);
    if arg.origin == TextOrigin::Plain {
        arg.origin = chunk.origin;
    }
    if !certain {
        return;
    }
    if !chunk.known {
        arg.known = start;
        return;
    }
    let glob = if chunk.quoted { None } else { text.find(['*', '?', '[', '\u{1}']) };
    let extended =
        if chunk.quoted { None } else { text.find("!(").or_else(|| text.find("@(")).or_else(|| text.find("+(")) };
    match glob.into_iter().chain(extended).min() {
        Some(at) if text != "[" && text != "[[" => {
            arg.known = start + at;
            arg.glob = true;
        }
        _ => arg.known = arg.text.len(),
    }
}
