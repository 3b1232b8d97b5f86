//! Compound commands: groups, subshells, conditions, loops, tests, functions.

use super::scanner::{OpenConstructs, Scanner, is_meta};
use super::tree::{Compound, CompoundKind, Part, PipelineStage, Script, Word};

impl Scanner<'_, '_> {
    /// Reads a compound command, if one begins here.
    pub(super) fn compound(&mut self) -> Option<Compound> {
        match self.peek()? {
            b'(' if self.starts_with("((") => Some(self.double_paren()),
            b'(' => Some(self.subshell()),
            b'{' if self.at_keyword("{") => Some(self.group()),
            b'[' if self.at_keyword("[[") => Some(self.test()),
            b'a'..=b'z' => self.worded(),
            _ => None,
        }
    }

    fn worded(&mut self) -> Option<Compound> {
        if self.eat_keyword("if") || self.eat_keyword("while") || self.eat_keyword("until") {
            return Some(self.blocks(CompoundKind::Group, Vec::new()));
        }
        if self.eat_keyword("for") || self.eat_keyword("select") {
            return Some(self.for_loop());
        }
        if self.eat_keyword("case") {
            return Some(self.case());
        }
        if self.eat_keyword("function") {
            return Some(self.named_function());
        }
        None
    }

    fn double_paren(&mut self) -> Compound {
        let Some(end) = self.arithmetic_end() else {
            return self.subshell();
        };
        let inner = self.arithmetic(end);
        let word = Word { parts: vec![Part::Unknown { inner, quoted: true, change: None }], span: self.span_from(end) };
        plain(CompoundKind::Test, vec![word], Script::default())
    }

    fn subshell(&mut self) -> Compound {
        self.position += 1;
        let body = self.substitution();
        plain(CompoundKind::Subshell, Vec::new(), body)
    }

    fn group(&mut self) -> Compound {
        self.position += 1;
        let body = self.up_to_brace(false);
        plain(CompoundKind::Group, Vec::new(), body)
    }

    /// Returns the commands up to the closing brace; the opening one has been read. `is_value` is true in `${ …; }`.
    pub(super) fn up_to_brace(&mut self, is_value: bool) -> Script {
        let parens = if is_value { 0 } else { self.open.parens };
        let open = OpenConstructs { braces: 1, parens, is_value, ..OpenConstructs::default() };
        let outer = std::mem::replace(&mut self.open, open);
        let body = self.list();
        self.open = outer;
        if !self.eat("}") {
            self.broken();
        }
        body
    }

    /// `[[ … ]]`: words, with every operator a separator.
    fn test(&mut self) -> Compound {
        self.position += 2;
        let mut words = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.broken();
                    break;
                }
                Some(_) if self.eat_keyword("]]") => break,
                Some(b';') => {
                    self.broken();
                    break;
                }
                Some(byte) if is_meta(byte) && !(byte == b'<' && self.peek_at(1) == Some(b'(')) => self.position += 1,
                Some(b'#') => self.position += 1,
                Some(_) => words.push(self.word()),
            }
        }
        plain(CompoundKind::Test, words, Script::default())
    }

    /// Lists joined by `then`, `do`, `else`, `elif`, up to `fi` or `done`.
    fn blocks(&mut self, kind: CompoundKind, words: Vec<Word>) -> Compound {
        let keywords = self.open.keywords + 1;
        let open = OpenConstructs { keywords, cases: 0, ..self.open };
        let outer = std::mem::replace(&mut self.open, open);
        let mut body = Script::default();
        loop {
            body.pipelines.append(&mut self.list().pipelines);
            let joins = ["then", "do", "else", "elif"];
            if !joins.iter().any(|word| self.eat_keyword(word)) {
                break;
            }
        }
        self.open = outer;
        if !self.eat_keyword("fi") && !self.eat_keyword("done") {
            self.broken();
        }
        plain(kind, words, body)
    }

    fn for_loop(&mut self) -> Compound {
        self.blanks();
        if self.starts_with("((")
            && let Some(end) = self.arithmetic_end()
        {
            let inner = self.arithmetic(end);
            let word =
                Word { parts: vec![Part::Unknown { inner, quoted: true, change: None }], span: self.span_from(end) };
            return self.loop_body(CompoundKind::Group, vec![word]);
        }
        let name = self.word().bare().unwrap_or_default().to_owned();
        self.space();
        let mut words = Vec::new();
        if self.eat_keyword("in") {
            self.blanks();
            while self.peek().is_some_and(|byte| !is_meta(byte) && byte != b'#') {
                words.push(self.word());
                self.blanks();
            }
        } else {
            let parts = vec![Part::Variable { name: "@".to_owned(), quoted: true }];
            words.push(Word { parts, span: self.span_from(self.position) });
        }
        self.loop_body(CompoundKind::For(name), words)
    }

    fn loop_body(&mut self, kind: CompoundKind, words: Vec<Word>) -> Compound {
        self.space();
        self.eat(";");
        self.space();
        if self.at_keyword("{") {
            let group = self.group();
            return plain(kind, words, group.body);
        }
        if !self.eat_keyword("do") {
            self.broken();
        }
        self.blocks(kind, words)
    }

    fn case(&mut self) -> Compound {
        self.blanks();
        let words = vec![self.word()];
        self.space();
        if !self.eat_keyword("in") {
            self.broken();
        }
        let (keywords, cases) = (self.open.keywords + 1, 1);
        let open = OpenConstructs { keywords, cases, ..self.open };
        let outer = std::mem::replace(&mut self.open, open);
        let mut body = Script::default();
        loop {
            self.space();
            if self.peek().is_none() || self.at_keyword("esac") || !self.case_pattern() {
                break;
            }
            body.pipelines.append(&mut self.list().pipelines);
            if self.peek() == Some(b';') {
                while matches!(self.peek(), Some(b';' | b'&')) {
                    self.position += 1;
                }
            } else {
                break;
            }
        }
        self.open = outer;
        if !self.eat_keyword("esac") {
            self.broken();
        }
        plain(CompoundKind::Group, words, body)
    }

    /// `(pattern | pattern)`; whether its closing parenthesis was found.
    fn case_pattern(&mut self) -> bool {
        self.eat("(");
        loop {
            self.blanks();
            match self.peek() {
                Some(b')') => {
                    self.position += 1;
                    return true;
                }
                Some(b'|') => self.position += 1,
                Some(byte) if !is_meta(byte) => {
                    self.word();
                }
                _ => return false,
            }
        }
    }

    /// `function NAME [()] body`
    fn named_function(&mut self) -> Compound {
        self.blanks();
        let name = self.word().bare().unwrap_or_default().to_owned();
        self.blanks();
        if self.eat("(") {
            self.blanks();
            self.eat(")");
        }
        match self.function_body(name) {
            PipelineStage::Compound(compound) => compound,
            PipelineStage::Simple(_) => plain(CompoundKind::Group, Vec::new(), Script::default()),
        }
    }
}

fn plain(kind: CompoundKind, words: Vec<Word>, body: Script) -> Compound {
    Compound { kind, words, body, redirects: Vec::new() }
}
