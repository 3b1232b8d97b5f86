//! Calls: a name with its parts, its arguments, and what follows.

use super::found::{Call, Directory};
use super::imports::canonical;
use super::lex::TokenKind;
use super::read::Reader;
use super::value::{Value, computed, method, path_of};
use super::words::{ABOUT_VALUES, CHANGES, EACH, LOADS, OWN_DIRS, OWN_PROGRAMS, WORDS};
use crate::classify::rules::dialect::CodeLanguage;

/// Most calls that are noted.
const MAX_CALLS: usize = 1000;

impl<'c> Reader<'c, '_> {
    /// Reads a name with its parts, its arguments, and what follows.
    pub(super) fn named(&mut self, from: usize) -> Value {
        let Some(first) = self.name_at(0) else { return Value::Unknown };
        self.at += 1;
        let value = match self.variables.get(first) {
            Some(Value::Module(module)) => Value::Module(module.clone()),
            Some(value) => {
                let value = value.clone();
                self.changed_list(first, &value);
                return self.suffixes(value, from);
            }
            None => Value::Module(first.to_owned()),
        };
        self.suffixes(value, from)
    }

    /// A list that the code changes: `args.append(x)`, `args[0] = x`.
    fn changed_list(&mut self, name: &str, value: &Value) {
        let Value::List(items) = value else { return };
        let method = self.name_at(1).filter(|_| self.is_sign(0, "."));
        let is_set = self.is_sign(0, "[") && self.is_sign(2, "]") && self.is_sign(3, "=");
        let changed = match method {
            Some("append" | "extend" | "push" | "concat") if items.len() < 64 => {
                Value::List(items.iter().cloned().chain([Value::Unknown]).collect())
            }
            Some("append" | "extend" | "push" | "concat" | "insert" | "unshift" | "prepend") => Value::Unknown,
            _ if is_set => Value::Unknown,
            _ => return,
        };
        self.variables.insert(name.to_owned(), changed);
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
                value = self.indexed(&value);
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
        self.ended(value, part, from)
    }

    /// Reads `[key]`: an environment variable, or a part of a module.
    fn indexed(&mut self, value: &Value) -> Value {
        let (keys, _) = self.list("]");
        let Value::Module(module) = value else { return Value::Unknown };
        let is_table = module == "sys.modules" || module.ends_with("__dict__");
        if is_table && (self.is_sign(0, "(") || self.is_sign(0, ".")) {
            // A function by its name: nobody tells which one.
            self.note("eval".to_owned(), None, (vec![Value::Unknown], Vec::new()), usize::MAX);
        }
        let is_environment = ["os.environ", "ENV", "process.env", "$_ENV", "$_SERVER"].contains(&module.as_str());
        match keys.first().and_then(Value::text) {
            Some("HOME") if is_environment => {
                self.origin.home.map_or(Value::Unknown, |home| Value::Text(home.to_owned()))
            }
            Some(key) if self.is(&[CodeLanguage::Javascript]) => Value::Module(format!("{module}.{key}")),
            _ => Value::Unknown,
        }
    }

    /// Reads the end of a value behind which neither a part nor a bracket follows: a call without brackets, or a name that stands for
    /// a known value. `part` is its last part and the value before it.
    fn ended(&mut self, value: Value, part: Option<(Value, &'c str)>, from: usize) -> Value {
        let Value::Module(name) = &value else {
            let Some((of, name)) = part.filter(|(of, _)| !matches!(of, Value::Module(_))) else { return value };
            // These call methods without brackets.
            if self.is(&[CodeLanguage::Ruby, CodeLanguage::Perl]) {
                self.note(format!(".{name}"), Some(of.clone()), (Vec::new(), Vec::new()), from);
            } else if self.is(&[CodeLanguage::Python]) && name.starts_with("execute") {
                self.note(format!(".{name}"), Some(of.clone()), (vec![Value::Unknown], Vec::new()), from);
            } else if let Value::Path(_) = of {
                self.mention(format!(".{name}"), Some(of.clone()), from);
            }
            return method(&of, name, &[], self.origin.home).unwrap_or(value);
        };
        let is_call = matches!(part, None | Some((Value::Module(_), _))) && self.begins_arguments(name);
        if is_call {
            let args = self.bare_arguments();
            return self.called(&value, part, args, from);
        }
        let is_each = self.is(&[CodeLanguage::Perl]) && matches!(self.name_at(0), Some("for" | "foreach"));
        if part.is_none() && is_each && (self.is_command)(name) {
            // `unlink for qw(a b)`: each of them.
            let name = name.clone();
            self.at += 1;
            let each = match self.expression() {
                Value::List(items) => Value::Any(items),
                _ => Value::Unknown,
            };
            self.note(name, None, (vec![each], Vec::new()), from);
            return Value::Unknown;
        }
        if let Some(known) = self.constant(name) {
            return known;
        }
        let Some((_, last)) = part else {
            // `const {rmSync} = require('fs')`, `from os import remove`: a name without a dot in the code.
            let is_builtin = self.is(&[CodeLanguage::Python]) && ["open", "exec", "eval"].contains(&name.as_str());
            if name.contains('.') || is_builtin {
                self.mention(name.clone(), None, from);
            }
            return value;
        };
        if self.is(&[CodeLanguage::Python, CodeLanguage::Javascript, CodeLanguage::Php]) {
            self.mention(name.clone(), None, from);
        }
        if self.is(&[CodeLanguage::Ruby]) && last.starts_with(|c: char| c.is_ascii_lowercase()) {
            self.note(name.clone(), None, (Vec::new(), Vec::new()), from);
        }
        computed(name, &[], self.origin.home).unwrap_or(value)
    }

    /// Returns the value of a name that every run gives the same one.
    fn constant(&self, name: &str) -> Option<Value> {
        let text = |text: Option<&str>| text.map_or(Value::Unknown, |text| Value::Text(text.to_owned()));
        let program = OWN_PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, program)| *program);
        match name {
            "process.env.HOME" => Some(text(self.origin.home)),
            "os.sep" | "path.sep" | "File.SEPARATOR" | "DIRECTORY_SEPARATOR" => Some(text(Some("/"))),
            _ if program.is_some() => Some(text(program)),
            _ if OWN_DIRS.contains(&name) => {
                // A path from the first directory says nothing in another one.
                let is_sure = |dir: &&str| self.dir == Directory::First || dir.starts_with('/');
                Some(text(self.origin.dir.filter(is_sure)))
            }
            _ => None,
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
        // JavaScript's `$`, `sql` and their likes before a template.
        let is_tag = self.is(&[CodeLanguage::Javascript])
            && matches!(name.rsplit('.').next(), Some("$" | "sql"))
            && matches!(token.kind, TokenKind::Text(_) | TokenKind::Shell(_));
        let is_language = self.is(&[CodeLanguage::Ruby, CodeLanguage::Perl]) || is_tag;
        let begins = match &token.kind {
            TokenKind::Text(_) | TokenKind::Words(_) | TokenKind::Number => true,
            TokenKind::Sign("[" | "(") => self.is(&[CodeLanguage::Ruby]),
            TokenKind::Sign("\\" | "<" | "*") => self.is(&[CodeLanguage::Perl, CodeLanguage::Ruby]),
            TokenKind::Name(word) => {
                !WORDS.contains(word) && !["if", "unless", "for", "foreach", "x", "eq"].contains(word)
            }
            TokenKind::Shell(_) => is_tag,
            _ => false,
        };
        (token.is_apart || is_tag) && is_language && begins && (self.is_command)(name)
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
        self.named_functions(&name, &args, from);
        if name == "getattr"
            && let Some(Value::Module(module)) = args.first()
        {
            // A part of a module by its name; nobody knows which one if it is no literal.
            if let Some(part) = args.get(1).and_then(Value::text) {
                return Value::Module(format!("{module}.{part}"));
            }
            self.note("eval".to_owned(), None, (vec![Value::Unknown], Vec::new()), from);
        }
        if receiver.is_none()
            && let Some((function, given)) = self.handed_on(&name, &args)
            && (self.is_command)(&function)
        {
            match given {
                Some(args) => self.note(function, None, (args, named), from),
                None if self.is(&[CodeLanguage::Ruby]) => self.mention(function, None, from),
                None => return Value::Module(function),
            }
            return Value::Unknown;
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
            self.dir = Directory::Unknown;
        }
        made.unwrap_or(Value::Unknown)
    }

    /// Functions that are named in the arguments of a call: those that it only tells something about, and methods by their names.
    fn named_functions(&mut self, name: &str, args: &[Value], from: usize) {
        if ABOUT_VALUES.contains(&name) || name.starts_with("inspect.") {
            let functions = args.iter().filter_map(|arg| if let Value::Module(name) = arg { Some(name) } else { None });
            functions.for_each(|function| self.forget_mention(function));
        }
        let method_of = match name {
            "getattr" => args.get(1).and_then(Value::text),
            "operator.methodcaller" | "methodcaller" => args.first().and_then(Value::text),
            _ => None,
        };
        if let Some(method) = method_of.filter(|_| !matches!(args.first(), Some(Value::Module(_)))) {
            self.mention(format!(".{method}"), Some(Value::Path(None)), from);
        }
    }

    /// Notes a call, and where it leads the code.
    pub(super) fn note(
        &mut self,
        name: String,
        receiver: Option<Value>,
        (args, named): (Vec<Value>, Vec<(String, Value)>),
        from: usize,
    ) {
        if ["contextlib.chdir", "os.fchdir"].contains(&name.as_str()) {
            self.dir = Directory::Unknown;
        }
        if CHANGES.contains(&name.as_str()) {
            let to = args.first().and_then(Value::text);
            self.dir = match (&self.dir, to) {
                (Directory::First, Some(to)) => Directory::Moved(to.to_owned()),
                (Directory::Moved(dir), Some(to)) => Directory::Moved(path_of(dir, to)),
                _ => Directory::Unknown,
            };
        }
        let to = self.end_of_last(from);
        if self.calls.len() < MAX_CALLS {
            self.calls.push(Call { name, receiver, args, named, dir: self.dir.clone(), is_mention: false, from, to });
        }
    }

    fn end_of_last(&self, from: usize) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(from, |token| token.to)
    }

    /// Notes a function that is named as a value (`map(os.remove, files)`): somebody may call it.
    fn mention(&mut self, name: String, receiver: Option<Value>, from: usize) {
        // `fs.rmSync = x`: it is given another value.
        if self.calls.len() >= MAX_CALLS || self.is_sign(0, "=") || !(self.is_command)(&name) {
            return;
        }
        let (args, named, to) = (Vec::new(), Vec::new(), self.end_of_last(from));
        self.calls.push(Call { name, receiver, args, named, dir: self.dir.clone(), is_mention: true, from, to });
    }

    /// Forgets that a function was named: what it is named for is read.
    fn forget_mention(&mut self, name: &str) {
        if let Some(at) = self.calls.iter().rposition(|call| call.is_mention && call.name == name) {
            self.calls.remove(at);
        }
    }

    /// Reads what hands a function on: `f.call(this, …)`, `f.apply(this, […])`, `f.bind(this)`, `promisify(f)`, `Class.send(:f, …)`.
    /// Returns the function and its arguments; without arguments where it is not called yet.
    fn handed_on(&mut self, name: &str, args: &[Value]) -> Option<(String, Option<Vec<Value>>)> {
        if self.is(&[CodeLanguage::Javascript]) {
            if name.rsplit('.').next() == Some("promisify")
                && let Some(Value::Module(function)) = args.first()
            {
                self.forget_mention(function);
                return Some((function.clone(), None));
            }
            let (function, how) = name.rsplit_once('.')?;
            let rest = || args.get(1..).unwrap_or_default().to_vec();
            return match how {
                "call" => Some((function.to_owned(), Some(rest()))),
                "apply" => match args.get(1) {
                    Some(Value::List(items)) => Some((function.to_owned(), Some(items.clone()))),
                    _ => Some((function.to_owned(), Some(vec![Value::Unknown]))),
                },
                // Arguments that are bound already stay unknown: the mention stands for the call.
                "bind" if args.len() > 1 => {
                    self.mention(function.to_owned(), None, usize::MAX);
                    Some((function.to_owned(), None))
                }
                "bind" => Some((function.to_owned(), None)),
                _ => None,
            };
        }
        if self.is(&[CodeLanguage::Ruby]) {
            let (class, how) = name.rsplit_once('.')?;
            let function = match args.first() {
                Some(Value::Module(symbol)) => symbol.strip_prefix(':'),
                first => first.and_then(Value::text),
            };
            return match (how, function) {
                ("send" | "public_send" | "__send__", Some(function)) => {
                    Some((format!("{class}.{function}"), Some(args[1..].to_vec())))
                }
                ("method" | "public_method", Some(function)) => Some((format!("{class}.{function}"), None)),
                _ => None,
            };
        }
        None
    }
}
