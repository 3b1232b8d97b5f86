//! Values of expressions, as far as the code alone tells them.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// A text of which only pieces are known, with [`HOLE`] for each of the others.
    Partial(String),
    /// A path object; `None` if its path is not known.
    Path(Option<String>),
    List(Vec<Value>),
    /// One of these: the variable of a loop.
    Any(Vec<Value>),
    /// Named values: options, a dictionary.
    Map(Vec<(String, Value)>),
    /// A module, or a part of one, by its full name; also a constant, or several joined by `|`.
    Module(String),
    Number,
    Unknown,
}

/// Stands for an unknown piece of a text.
pub(super) const HOLE: char = '\0';

/// Most values that one place may have.
const MAX_VALUES: usize = 64;

/// Longest text that joining makes, in bytes.
const MAX_TEXT: usize = 64 << 10;

impl Value {
    /// Returns the text of a literal or of a known path.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Path(Some(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the texts that it may be, those with unknown pieces too.
    pub(super) fn lines(&self) -> Vec<String> {
        match self {
            Value::List(items) | Value::Any(items) => items.iter().flat_map(Value::lines).take(MAX_VALUES).collect(),
            Value::Partial(text) => vec![text.clone()],
            other => other.text().map(str::to_owned).into_iter().collect(),
        }
    }

    /// Returns the texts that it may be; `None` for each that is not known. A list gives those of its items.
    pub(super) fn texts(&self) -> Vec<Option<String>> {
        match self {
            Value::List(items) | Value::Any(items) => items.iter().flat_map(Value::texts).take(MAX_VALUES).collect(),
            Value::Map(_) | Value::Number => Vec::new(),
            other => vec![other.text().map(str::to_owned)],
        }
    }

    /// Returns true if copies of it cost little.
    pub(super) fn is_small(&self) -> bool {
        match self {
            Value::Text(text) | Value::Partial(text) | Value::Module(text) | Value::Path(Some(text)) => {
                text.len() <= 16 << 10
            }
            Value::List(items) | Value::Any(items) => items.len() <= MAX_VALUES && items.iter().all(Value::is_plain),
            Value::Map(fields) => fields.len() <= MAX_VALUES && fields.iter().all(|(_, value)| value.is_plain()),
            Value::Path(None) | Value::Unknown | Value::Number => true,
        }
    }

    fn is_plain(&self) -> bool {
        !matches!(self, Value::List(_) | Value::Any(_) | Value::Map(_)) && self.is_small()
    }

    /// Returns the named value of a map.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns what two texts give together, behind each other or as parts of a path.
    pub(super) fn joined(&self, other: &Value, as_path: bool) -> Value {
        match (self, other) {
            (Value::Any(items), other) => Value::Any(items.iter().map(|item| item.joined(other, as_path)).collect()),
            (one, Value::Any(items)) => Value::Any(items.iter().map(|item| one.joined(item, as_path)).collect()),
            (one, other) => match (one.text(), other.text()) {
                (Some(one), Some(other)) if one.len() + other.len() <= MAX_TEXT => match as_path {
                    true => Value::Path(Some(path_of(one, other))),
                    false => Value::Text(format!("{one}{other}")),
                },
                _ if as_path => Value::Path(None),
                (one_text, other_text) => {
                    let piece = |value: &Value, text: Option<&str>| match (value, text) {
                        (Value::Partial(text), _) => text.clone(),
                        (_, Some(text)) => text.to_owned(),
                        _ => HOLE.to_string(),
                    };
                    let both = piece(one, one_text) + &piece(other, other_text);
                    let is_known = both.len() <= MAX_TEXT && both.contains(|c| c != HOLE);
                    if is_known { Value::Partial(both) } else { Value::Unknown }
                }
            },
        }
    }
}

/// Returns what is one of several values.
pub(super) fn one_of(values: impl IntoIterator<Item = Value>) -> Value {
    let mut items: Vec<Value> = Vec::new();
    for value in values {
        let each = match value {
            Value::Any(each) => each,
            other => vec![other],
        };
        for item in each {
            if items.len() < MAX_VALUES && !items.contains(&item) {
                items.push(item);
            }
        }
    }
    match items.len() {
        1 => items.remove(0),
        _ => Value::Any(items),
    }
}

/// Joins two paths as the libraries do: an absolute second one stands alone.
pub(super) fn path_of(one: &str, other: &str) -> String {
    match one {
        _ if other.starts_with('/') => other.to_owned(),
        "" => other.to_owned(),
        one if one.ends_with('/') => format!("{one}{other}"),
        one => format!("{one}/{other}"),
    }
}

/// Returns the value of a function that only computes; `None` for one that is not known here. `home` is the user's.
pub(super) fn computed(name: &str, args: &[Value], home: Option<&str>) -> Option<Value> {
    let home_value = || home.map_or(Value::Unknown, |home| Value::Text(home.to_owned()));
    let all = |is_path: bool| {
        let mut parts = args.iter();
        let first = parts.next().cloned().unwrap_or(Value::Text(".".to_owned()));
        let joined = parts.fold(first, |joined, part| joined.joined(part, true));
        match joined {
            Value::Text(text) if is_path => Value::Path(Some(text)),
            Value::Unknown | Value::Partial(_) | Value::List(_) if is_path => Value::Path(None),
            Value::Path(Some(text)) if !is_path => Value::Text(text),
            Value::Path(None) if !is_path => Value::Unknown,
            other => other,
        }
    };
    let first = || args.first().cloned().unwrap_or(Value::Unknown);
    Some(match name {
        "Path" | "pathlib.Path" | "Bun.file" | "path" | "PurePath" | "pathlib.PurePath" | "PosixPath"
        | "pathlib.PosixPath" | "Pathname" | "Pathname.new" => all(true),
        // These let an absolute part stand behind another one.
        "path.join" | "path.posix.join" | "File.join" => {
            let is_first = |at: usize| at == 0;
            let below = |(at, part): (usize, &Value)| match part.text() {
                Some(text) if !is_first(at) => Value::Text(text.trim_start_matches('/').to_owned()),
                _ => part.clone(),
            };
            let args: Vec<Value> = args.iter().enumerate().map(below).collect();
            return computed("os.path.join", &args, home);
        }
        "URL" | "url.fileURLToPath" | "fileURLToPath" => match first() {
            Value::Text(text) => {
                text.strip_prefix("file://").map_or(Value::Unknown, |path| Value::Text(path.to_owned()))
            }
            other => other,
        },
        "os.path.join" | "path.resolve" | "File.expand_path" | "posixpath.join" | "catfile" | "File.Spec.catfile" => {
            with_home(all(false), home, name == "File.expand_path")
        }
        "os.path.expanduser" => with_home(first(), home, true),
        "Path.home" | "pathlib.Path.home" => match home {
            Some(home) => Value::Path(Some(home.to_owned())),
            None => Value::Path(None),
        },
        "os.homedir" | "Dir.home" => home_value(),
        // Nothing on the disk.
        "io.BytesIO" | "BytesIO" | "io.StringIO" | "StringIO" => Value::Number,
        "tempfile.mkdtemp"
        | "tempfile.gettempdir"
        | "tempfile.mktemp"
        | "mkdtemp"
        | "os.tmpdir"
        | "Dir.tmpdir"
        | "Dir.mktmpdir"
        | "sys_get_temp_dir"
        | "fs.mkdtempSync" => Value::Text("/tmp/tmp".to_owned()),
        "os.getcwd" | "process.cwd" | "Dir.pwd" | "getcwd" | "Path.cwd" | "pathlib.Path.cwd" => {
            Value::Text(".".to_owned())
        }
        "os.getenv" | "os.environ.get" | "getenv" | "ENV.fetch"
            if args.first().and_then(Value::text) == Some("HOME") =>
        {
            home_value()
        }
        "str" | "String" | "os.fspath" | "os.path.abspath" | "os.path.normpath" | "os.path.realpath"
        | "path.normalize" => match first() {
            Value::Path(Some(text)) => Value::Text(text),
            Value::Path(None) => Value::Unknown,
            other => other,
        },
        "glob.glob" | "glob.iglob" | "Dir.glob" => {
            let pattern = args.first().and_then(Value::text).filter(|text| is_at_home(text, home))?;
            Value::List(vec![Value::Text(pattern.to_owned())])
        }
        "os.listdir" | "fs.readdirSync" | "Dir.children" => {
            args.first().and_then(Value::text).filter(|text| is_at_home(text, home))?;
            Value::List(vec![Value::Text("*".to_owned())])
        }
        "text" | "sqlalchemy.text" | "list" | "sorted" | "set" | "tuple" | "Array" => first(),
        _ => return None,
    })
}

/// Returns the value of a method that only computes; `None` for one that is not known here.
pub(super) fn method(of: &Value, name: &str, args: &[Value], home: Option<&str>) -> Option<Value> {
    let text = of.text()?;
    Some(match (of, name) {
        (Value::Text(text), "split") => {
            let by = args.first().and_then(Value::text).filter(|by| !by.is_empty());
            let items: Vec<Value> = match by {
                Some(by) => text.split(by).map(|item| Value::Text(item.to_owned())).take(MAX_VALUES).collect(),
                None => text.split_whitespace().map(|item| Value::Text(item.to_owned())).take(MAX_VALUES).collect(),
            };
            Value::List(items)
        }
        (Value::Path(_), "joinpath" | "join" | "child" | "/") => {
            args.iter().fold(of.clone(), |joined, part| joined.joined(part, true))
        }
        (Value::Path(_), "resolve" | "absolute" | "expand_path") => of.clone(),
        (Value::Path(_), "iterdir" | "glob" | "rglob" | "children") if is_at_home(text, home) => {
            let pattern = args.first().and_then(Value::text).unwrap_or("*");
            let names = if name == "rglob" { format!("**/{pattern}") } else { pattern.to_owned() };
            Value::List(vec![Value::Path(Some(path_of(text, &names)))])
        }
        (Value::Path(_), "as_posix" | "to_s") => Value::Text(text.to_owned()),
        (Value::Path(_), "expanduser") => match with_home(Value::Text(text.to_owned()), home, true) {
            Value::Text(text) => Value::Path(Some(text)),
            _ => Value::Path(None),
        },
        (Value::Text(_), "to_s" | "freeze" | "toString" | "dup") => of.clone(),
        _ => return None,
    })
}

/// Returns true for a path in the home directory. There, a pattern stands for the files that it matches: in a workspace, no name is
/// known instead.
fn is_at_home(text: &str, home: Option<&str>) -> bool {
    home.is_some_and(|home| {
        !home.is_empty() && text.strip_prefix(home).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Puts the home directory in the place of a leading `~`.
fn with_home(value: Value, home: Option<&str>, expands: bool) -> Value {
    let Some(rest) = value.text().and_then(|text| text.strip_prefix('~')).filter(|_| expands) else { return value };
    match home {
        Some(home) if rest.is_empty() || rest.starts_with('/') => Value::Text(format!("{home}{rest}")),
        _ => Value::Unknown,
    }
}
