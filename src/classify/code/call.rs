//! Calls: a name with its parts, its arguments, and what follows.

use super::imports::canonical;
use super::lex::TokenKind;
use super::read::{Reader, WORDS};
use super::value::{Value, computed, method, path_of};
use crate::classify::rules::dialect::CodeLanguage;

/// Most calls that are noted.
const MAX_CALLS: usize = 1000;

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
    /// The directory that the code has gone to; `None` within if nobody knows.
    pub dir: Option<Option<String>>,
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

/// Functions that change the directory.
pub(super) const CHANGES: [&str; 5] = ["os.chdir", "chdir", "process.chdir", "Dir.chdir", "Deno.chdir"];

/// Names of the program that runs the code.
const OWN_PROGRAMS: [(&str, &str); 5] = [
    ("sys.executable", "python3"),
    ("process.execPath", "node"),
    ("process.argv0", "node"),
    ("RbConfig.ruby", "ruby"),
    ("PHP_BINARY", "php"),
];

/// Names of the directory that the code is in.
const OWN_DIRS: [&str; 4] = ["__dirname", "import.meta.dirname", "__DIR__", "__dir__"];

/// Functions that load a module by its name.
pub(super) const LOADS: [&str; 5] =
    ["require", "import", "__import__", "importlib.import_module", "process.getBuiltinModule"];

/// Methods that call a function for each item.
const EACH: [&str; 5] = ["each", "forEach", "map", "each_with_index", "flatMap"];

impl<'c> Reader<'c, '_> {
    /// Reads a name with its parts, its arguments, and what follows.
    pub(super) fn named(&mut self, from: usize) -> Value {
        let Some(first) = self.name_at(0) else { return Value::Unknown };
        self.at += 1;
        let value = match self.variables.get(first) {
            Some(Value::Module(module)) => Value::Module(module.clone()),
            Some(value) => {
                let value = value.clone();
                return self.suffixes(value, from);
            }
            None => Value::Module(first.to_owned()),
        };
        self.suffixes(value, from)
    }

    /// Returns true if a part of the value follows, and passes over its sign.
    pub(super) fn dot(&mut self) -> bool {
        let is_dot = match self.kind(0) {
            Some(TokenKind::Sign("::" | "->" | "?." | "&.")) => true,
            Some(TokenKind::Sign(".")) => !self.is(&[CodeLanguage::Perl, CodeLanguage::Php]),
            _ => false,
        };
        // A chain goes on in the next line.
        let mut ahead = 0;
        while matches!(self.kind(ahead), Some(TokenKind::Line)) {
            ahead += 1;
        }
        let goes_on = ahead > 0 && self.is_sign(ahead, ".") && self.is(&[CodeLanguage::Javascript, CodeLanguage::Ruby]);
        if goes_on {
            self.at += ahead + 1;
        }
        self.at += usize::from(is_dot);
        is_dot || goes_on
    }

    /// Reads `.name`, `(…)` and `[…]` behind a value.
    pub(super) fn suffixes(&mut self, mut value: Value, from: usize) -> Value {
        // The last part, as long as it was not called.
        let mut part: Option<(Value, &'c str)> = None;
        for _ in 0..MAX_CALLS {
            if let Some(name) =
                (!self.is_sign(0, "(")).then(|| self.dot()).filter(|is| *is).and_then(|_| self.name_at(0))
            {
                self.at += 1;
                let whole = match &value {
                    Value::Module(module) => Value::Module(format!("{module}.{name}")),
                    Value::Path(_) if name == "parent" => Value::Path(None),
                    Value::Map(_) => value.field(name).cloned().unwrap_or(Value::Unknown),
                    _ => Value::Unknown,
                };
                part = Some((std::mem::replace(&mut value, whole), name));
                continue;
            }
            let is_close =
                self.tokens.get(self.at).is_some_and(|token| !token.is_apart || !self.is(&[CodeLanguage::Ruby]));
            if self.is_sign(0, "(") && is_close {
                let (args, named) = self.loop_args(part.as_ref().map(|(of, _)| of));
                value = self.called(&value, part.take(), (args, named), from);
                continue;
            }
            if self.is_sign(0, "[") && is_close {
                let (keys, _) = self.list("]");
                let is_home = keys.first().and_then(Value::text) == Some("HOME");
                let is_environment = matches!(&value, Value::Module(name) if ["os.environ", "ENV", "process.env", "$_ENV", "$_SERVER"].contains(&name.as_str()));
                let part_of = |module: &str, key: &Value| Some(Value::Module(format!("{module}.{}", key.text()?)));
                value = match (&value, self.origin.home.filter(|_| is_home && is_environment), keys.first()) {
                    (_, Some(home), _) => Value::Text(home.to_owned()),
                    (Value::Module(module), _, Some(key)) if self.is(&[CodeLanguage::Javascript]) => {
                        part_of(module, key).unwrap_or(Value::Unknown)
                    }
                    _ => Value::Unknown,
                };
                part = None;
                continue;
            }
            if self.is_sign(0, "{")
                && self.is(&[CodeLanguage::Perl])
                && matches!(&value, Value::Module(name) if name == "$ENV")
            {
                let is_home = self.name_at(1) == Some("HOME") && self.is_sign(2, "}");
                self.at += if is_home { 3 } else { 1 };
                value =
                    self.origin.home.filter(|_| is_home).map_or(Value::Unknown, |home| Value::Text(home.to_owned()));
                continue;
            }
            if let Some((of, name)) = &part
                && EACH.contains(name)
            {
                let of = of.clone();
                self.block_parameter(&of);
                return Value::Unknown;
            }
            break;
        }
        match (&value, &part) {
            (Value::Module(name), _) if name == "process.env.HOME" => {
                self.origin.home.map_or(Value::Unknown, |home| Value::Text(home.to_owned()))
            }
            (Value::Module(name), None | Some((Value::Module(_), _))) if self.begins_arguments(name) => {
                let args = self.bare_arguments();
                let part = part.clone();
                self.called(&value, part, args, from)
            }
            (Value::Module(name), None)
                if self.is(&[CodeLanguage::Perl])
                    && matches!(self.name_at(0), Some("for" | "foreach"))
                    && (self.is_command)(name) =>
            {
                // `unlink for qw(a b)`: each of them.
                let name = name.clone();
                self.at += 1;
                let each = match self.expression() {
                    Value::List(items) => Value::Any(items),
                    _ => Value::Unknown,
                };
                self.note(name, None, (vec![each], Vec::new()), from);
                Value::Unknown
            }
            (Value::Module(name), _)
                if ["os.sep", "path.sep", "File.SEPARATOR", "DIRECTORY_SEPARATOR"].contains(&name.as_str()) =>
            {
                Value::Text("/".to_owned())
            }
            (Value::Module(name), _) if OWN_PROGRAMS.iter().any(|(known, _)| known == name) => {
                let program = OWN_PROGRAMS.iter().find(|(known, _)| known == name).map_or("", |(_, program)| program);
                Value::Text(program.to_owned())
            }
            (Value::Module(name), _) if OWN_DIRS.contains(&name.as_str()) => {
                let is_sure = |dir: &&str| self.dir.is_none() || dir.starts_with('/');
                self.origin.dir.filter(is_sure).map_or(Value::Unknown, |dir| Value::Text(dir.to_owned()))
            }
            (Value::Module(_), None) => value,
            (Value::Module(name), Some((_, last)))
                if self.is(&[CodeLanguage::Ruby]) && last.starts_with(|c: char| c.is_ascii_lowercase()) =>
            {
                let name = name.clone();
                self.note(name.clone(), None, (Vec::new(), Vec::new()), from);
                computed(&name, &[], self.origin.home).unwrap_or(value)
            }
            (_, Some((of, name))) if !matches!(of, Value::Module(_)) => {
                let of = of.clone();
                // These call methods without brackets.
                if self.is(&[CodeLanguage::Ruby, CodeLanguage::Perl]) {
                    self.note(format!(".{name}"), Some(of.clone()), (Vec::new(), Vec::new()), from);
                }
                method(&of, name, &[], self.origin.home).unwrap_or(value)
            }
            (Value::Module(name), _) => computed(name, &[], self.origin.home).unwrap_or(value),
            _ => value,
        }
    }

    /// Reads arguments in brackets. A function among them that is called for each item gets the items.
    pub(super) fn loop_args(&mut self, of: Option<&Value>) -> (Vec<Value>, Vec<(String, Value)>) {
        if let Some(of) = of {
            let ahead = 1 + usize::from(self.is_sign(1, "("));
            let is_function = self.is_sign(ahead + 1, "=>")
                || (ahead == 2 && matches!(self.kind(3), Some(TokenKind::Sign(")" | ","))));
            if is_function && self.is(&[CodeLanguage::Javascript]) {
                let of = of.clone();
                self.bind(ahead, &of);
            }
        }
        self.list(")")
    }

    /// `{ |f| …`, `do |f| …`.
    pub(super) fn block_parameter(&mut self, of: &Value) {
        let is_block = self.is_sign(0, "{") || self.name_at(0) == Some("do");
        if is_block && self.is_sign(1, "|") {
            self.bind(2, of);
            self.at += 3;
            while self.kind(0).is_some() && !self.takes("|") {
                self.at += 1;
            }
        }
    }

    /// Returns true if what follows a name are its arguments, though no bracket opens them.
    pub(super) fn begins_arguments(&self, name: &str) -> bool {
        let Some(token) = self.tokens.get(self.at) else { return false };
        let is_language = self.is(&[CodeLanguage::Ruby, CodeLanguage::Perl]) || name == "$";
        let begins = match &token.kind {
            TokenKind::Text(_) | TokenKind::Words(_) | TokenKind::Number => true,
            TokenKind::Sign("[" | "(") => self.is(&[CodeLanguage::Ruby]),
            TokenKind::Sign("\\" | "<" | "*") => self.is(&[CodeLanguage::Perl, CodeLanguage::Ruby]),
            TokenKind::Name(word) => {
                !WORDS.contains(word) && !["if", "unless", "for", "foreach", "x", "eq"].contains(word)
            }
            TokenKind::Shell(_) => name == "$",
            _ => false,
        };
        (token.is_apart || name == "$") && is_language && begins && (self.is_command)(name)
    }

    /// Reads arguments up to the end of the statement.
    pub(super) fn bare_arguments(&mut self) -> (Vec<Value>, Vec<(String, Value)>) {
        let (mut items, mut named) = (Vec::new(), Vec::new());
        loop {
            let before = self.at;
            self.item(&mut items, &mut named);
            if self.at == before || !self.takes(",") {
                return (items, named);
            }
            self.pass_lines();
        }
    }

    /// Notes a call, and returns its value.
    pub(super) fn called(
        &mut self,
        value: &Value,
        part: Option<(Value, &'c str)>,
        (args, named): (Vec<Value>, Vec<(String, Value)>),
        from: usize,
    ) -> Value {
        let (name, receiver) = match (value, part) {
            (Value::Module(name), _) => (name.clone(), None),
            (_, Some((of, name))) => (format!(".{name}"), Some(of)),
            _ => return Value::Unknown,
        };
        if self.is(&[CodeLanguage::Php]) {
            match (name.as_str(), args.first().and_then(Value::text)) {
                ("array", _) => {
                    return Value::List(args.into_iter().chain(named.into_iter().map(|(_, value)| value)).collect());
                }
                ("define", Some(constant)) => {
                    let value = args.get(1).cloned().unwrap_or(Value::Unknown);
                    self.variables.insert(constant.to_owned(), value);
                }
                ("array_map" | "array_walk" | "call_user_func", Some(function)) => {
                    let function = function.to_owned();
                    let each = args.get(1).cloned().unwrap_or(Value::Unknown);
                    self.note(function, None, (vec![each], Vec::new()), from);
                }
                _ => {}
            }
        }
        if LOADS.contains(&name.as_str()) {
            let module = match args.first() {
                Some(Value::Module(module)) if self.is(&[CodeLanguage::Perl]) => Some(module.clone()),
                first => first.and_then(Value::text).map(canonical),
            };
            self.note_import(module.clone(), None);
            self.note(name, None, (args, named), from);
            return module.map_or(Value::Unknown, Value::Module);
        }
        if name == "getattr"
            && let Some(Value::Module(module)) = args.first()
        {
            // A part of a module by its name; nobody knows which one if it is no literal.
            if let Some(part) = args.get(1).and_then(Value::text) {
                return Value::Module(format!("{module}.{part}"));
            }
            self.note("eval".to_owned(), None, (vec![Value::Unknown], Vec::new()), from);
        }
        let made = match &receiver {
            None => computed(&name, &args, self.origin.home),
            Some(of) => method(of, name.trim_start_matches('.'), &args, self.origin.home),
        };
        if let Some(of) = &receiver
            && EACH.contains(&name.trim_start_matches('.'))
        {
            self.block_parameter(of);
        }
        let before = self.dir.clone();
        let is_block = name == "Dir.chdir" && (self.is_sign(0, "{") || self.name_at(0) == Some("do"));
        self.note(name, receiver, (args, named), from);
        if is_block && self.is_sign(0, "{") {
            self.braces();
            self.dir = before;
        } else if is_block {
            // Nobody sees where it ends.
            self.dir = Some(None);
        }
        made.unwrap_or(Value::Unknown)
    }

    pub(super) fn note(
        &mut self,
        name: String,
        receiver: Option<Value>,
        (args, named): (Vec<Value>, Vec<(String, Value)>),
        from: usize,
    ) {
        if ["contextlib.chdir", "os.fchdir"].contains(&name.as_str()) {
            self.dir = Some(None);
        }
        if CHANGES.contains(&name.as_str()) {
            let to = args.first().and_then(Value::text);
            self.dir = Some(match (&self.dir, to) {
                (None, Some(to)) => Some(to.to_owned()),
                (Some(Some(dir)), Some(to)) => Some(path_of(dir, to)),
                _ => None,
            });
        }
        let to = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(from, |token| token.to);
        if self.calls.len() < MAX_CALLS {
            self.calls.push(Call { name, receiver, args, named, dir: self.dir.clone(), from, to });
        }
    }
}
