//! The scanner's result: a tree of lists, pipelines, commands, words.

/// Byte range `[start, end)` in the line that was given to the classifier.
pub(crate) type Span = (usize, usize);

/// A list of pipelines, in order; how they are joined (`;`, `&&`, `||`, `&`) makes no difference to what may happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Script {
    pub pipelines: Vec<Pipeline>,
}

/// Commands whose output feeds the next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pipeline {
    pub stages: Vec<PipelineStage>,
    /// The next pipeline runs only if this one fails.
    pub or: bool,
    /// The first byte of it in the whole line; that of the word around, within a word.
    pub from: usize,
}

/// One stage of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PipelineStage {
    Simple(Simple),
    Compound(Compound),
}

/// Assignments, words and redirects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Simple {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    pub span: Span,
}

/// Something that holds commands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compound {
    pub kind: CompoundKind,
    /// Words that are expanded but are no command: the list of a `for`, the subject of a `case`, the operands of `[[`.
    pub words: Vec<Word>,
    /// Every list inside, in the order of the text; any of them may run.
    pub body: Script,
    pub redirects: Vec<Redirect>,
}

/// The kind of a compound command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompoundKind {
    /// `{ …; }`, and `if`, `while`, `until`, `case`: runs in the shell itself.
    Group,
    /// `( … )`: directory and variables are its own.
    Subshell,
    /// `for NAME in WORDS` and `select`.
    For(String),
    /// `NAME() …`: the body is taken as reachable.
    Function(String),
    /// `[[ … ]]`, `(( … ))`: only expansions inside may run anything.
    Test,
}

/// `NAME=value` in front of a command, or alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    pub name: String,
    /// `+=` or an element: the value is not simply the word.
    pub compound: bool,
    /// `+=`
    pub appends: bool,
    pub value: Word,
}

/// A redirect of a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Redirect {
    pub kind: RedirectKind,
    /// The file, the here-string; for a heredoc the body.
    pub target: Word,
    /// A descriptor other than 0 and 1 is named: what the command prints goes elsewhere.
    pub stderr: bool,
    pub span: Span,
}

/// The effect of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    /// `<`
    Input,
    /// `>`, `>|`, `&>`, `>&file`, `<>`
    Output,
    /// `>>`, `&>>`
    Append,
    /// `>&1`, `<&3`, `2>&-`
    Duplicate,
    /// `<<`; the index into [`super::Bounds::heredocs`].
    Heredoc(usize),
    /// `<<<`
    HereString,
}

/// One word before expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Word {
    pub parts: Vec<Part>,
    pub span: Span,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Literal {
        text: String,
        quoted: bool,
    },
    /// `$name`, `${name}`
    Variable {
        name: String,
        quoted: bool,
    },
    /// `$(…)` and backticks.
    Command {
        script: Script,
        quoted: bool,
    },
    /// `<(…)`, `>(…)`
    Process {
        script: Script,
    },
    /// `${name[@]}`, `${name[*]}`
    Elements {
        name: String,
        quoted: bool,
    },
    /// `name=(words)`: the words are data.
    Array {
        words: Vec<Word>,
    },
    /// `$((…))`, `${name:-word}` and the like: unknown text; the parts inside may still run commands.
    Unknown {
        inner: Vec<Part>,
        quoted: bool,
        /// The form of a `${name…}` with a plain word in it.
        change: Option<Change>,
    },
}

/// A value that depends on a variable: `${name:-word}`, `${name%word}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub name: String,
    /// One of `:-`, `:=`, `:+`, `:?`, the same without `:`, `%`, `%%`, `#` and `##`.
    pub operator: &'static str,
    pub word: String,
}

impl Word {
    /// Returns the text if the word is wholly literal and unquoted: the only form in which keywords and names count.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Literal { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}
