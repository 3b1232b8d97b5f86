//! Lists, pipelines, simple commands and redirects.

use super::scanner::{Scanner, is_name};
use super::tree::{
    Assignment, CompoundKind, Part, Pipeline, PipelineStage, Redirect, RedirectKind, Script, Simple, Word,
};

/// Words that close or continue a construct.
const CLOSERS: [&str; 8] = ["then", "do", "done", "fi", "else", "elif", "esac", "}"];

/// Longest `<name>` of a manual, in bytes.
const MAX_PLACEHOLDER: usize = 64;

impl Scanner<'_, '_> {
    /// Reads pipelines up to something that closes the construct around them.
    pub(super) fn list(&mut self) -> Script {
        let mut script = Script::default();
        loop {
            self.separators();
            if self.at_close() {
                return script;
            }
            let before = self.position;
            let pipeline = self.pipeline();
            if !pipeline.stages.is_empty() {
                script.pipelines.push(pipeline);
            }
            if self.position == before {
                self.broken();
                self.step();
            }
        }
    }

    fn separators(&mut self) {
        loop {
            self.space();
            match self.peek() {
                Some(b';') if self.open.cases > 0 && matches!(self.peek_at(1), Some(b';' | b'&')) => return,
                Some(b';' | b'&') => self.position += 1,
                _ => return,
            }
        }
    }

    /// Returns whether the list ends here; closers that nothing opened are stepped over.
    fn at_close(&mut self) -> bool {
        loop {
            match self.peek() {
                None => return true,
                Some(b')') if self.open.parens > 0 || self.open.cases > 0 => return true,
                Some(b';') if self.open.cases > 0 => return true,
                Some(b'}') if self.open.is_value => return true,
                Some(b')' | b';') => self.position += 1,
                _ => {
                    let Some(closer) = CLOSERS.iter().find(|word| self.at_keyword(word)) else {
                        return false;
                    };
                    if (*closer == "}" && self.open.braces > 0) || (*closer != "}" && self.open.keywords > 0) {
                        return true;
                    }
                    self.position += closer.len();
                }
            }
            self.broken();
            self.separators();
        }
    }

    /// Returns whether a reserved word stands at the position.
    pub(super) fn at_keyword(&self, word: &str) -> bool {
        self.starts_with(word)
            && self.peek_at(word.len()).is_none_or(|byte| super::scanner::is_meta(byte) || byte == b'\r')
    }

    /// Steps over a reserved word, if it stands here.
    pub(super) fn eat_keyword(&mut self, word: &str) -> bool {
        let found = self.at_keyword(word);
        if found {
            self.position += word.len();
        }
        found
    }

    fn pipeline(&mut self) -> Pipeline {
        let (mut stages, mut or) = (Vec::new(), false);
        let from = self.span_from(self.position).0;
        loop {
            self.negation();
            match self.command() {
                Some(command) => stages.push(command),
                None if stages.is_empty() => break,
                None => self.broken(),
            }
            self.blanks();
            if self.starts_with("||") || !self.eat("|") {
                or = self.eat("||");
                break;
            }
            self.eat("&");
            self.space();
        }
        Pipeline { stages, or, from }
    }

    fn negation(&mut self) {
        loop {
            self.blanks();
            if self.eat_keyword("coproc") {
                self.coprocess_name();
                continue;
            }
            if self.eat_keyword("!") || self.eat_keyword("time") {
                self.blanks();
                if self.at_keyword("-p") {
                    self.position += 2;
                }
                continue;
            }
            return;
        }
    }

    /// `coproc NAME {`: the name is only there in front of a compound command.
    fn coprocess_name(&mut self) {
        self.blanks();
        let rest = &self.bytes[self.position..];
        let length = rest.iter().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let after = &rest[length..];
        let blanks = after.iter().take(64).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if blanks > 0 && matches!(after.get(blanks), Some(b'{' | b'(')) {
            self.position += length;
        }
    }

    /// Reads one command, simple or compound.
    pub(super) fn command(&mut self) -> Option<PipelineStage> {
        if !self.enter() {
            return None;
        }
        let command = match self.compound() {
            Some(mut compound) => {
                self.trailing_redirects(&mut compound.redirects);
                Some(PipelineStage::Compound(compound))
            }
            None => self.simple(),
        };
        self.leave();
        command
    }

    fn trailing_redirects(&mut self, redirects: &mut Vec<Redirect>) {
        loop {
            self.blanks();
            match self.redirect() {
                Some(redirect) => redirects.push(redirect),
                None => return,
            }
        }
    }

    fn simple(&mut self) -> Option<PipelineStage> {
        let start = self.position;
        let mut simple = Simple::default();
        let mut end = start;
        loop {
            self.blanks();
            if let Some(word) = self.placeholder() {
                add_word(&mut simple, word);
            } else if let Some(redirect) = self.redirect() {
                simple.redirects.push(redirect);
            } else if self.peek() == Some(b'(') && self.defines(&simple) {
                let name = simple.words.first().and_then(Word::bare).unwrap_or_default().to_owned();
                return Some(self.function(name));
            } else if self.at_word() {
                let word = self.word();
                add_word(&mut simple, word);
            } else {
                break;
            }
            end = self.position;
        }
        if end == start {
            return None;
        }
        self.position = end;
        simple.span = self.span_from(start);
        Some(PipelineStage::Simple(simple))
    }

    fn defines(&self, simple: &Simple) -> bool {
        simple.words.len() == 1
            && simple.redirects.is_empty()
            && simple.words[0].bare().is_some()
            && self.bytes[self.position + 1..].iter().find(|byte| !matches!(byte, b' ' | b'\t')) == Some(&b')')
    }

    /// `NAME() body`; the position is at the parenthesis.
    fn function(&mut self, name: String) -> PipelineStage {
        while self.peek().is_some_and(|byte| byte != b')') {
            self.position += 1;
        }
        self.eat(")");
        self.function_body(name)
    }

    /// Returns the body of a function, taken as reachable.
    pub(super) fn function_body(&mut self, name: String) -> PipelineStage {
        self.space();
        let from = self.span_from(self.position).0;
        let stages: Vec<PipelineStage> = self.command().into_iter().collect();
        let body = Script { pipelines: vec![Pipeline { stages, or: false, from }] };
        let (words, redirects) = (Vec::new(), Vec::new());
        PipelineStage::Compound(super::tree::Compound { kind: CompoundKind::Function(name), words, body, redirects })
    }

    fn at_word(&self) -> bool {
        match self.peek() {
            None => false,
            Some(b'#') => false,
            Some(b'<' | b'>') => self.peek_at(1) == Some(b'('),
            Some(b'\r') => !matches!(self.peek_at(1), Some(b'\n') | None),
            Some(byte) => !super::scanner::is_meta(byte),
        }
    }

    /// Reads `<name>` as manuals write it, where nothing follows that the second sign could redirect to: no shell runs such a line, so
    /// that it is a word that is not known yet.
    fn placeholder(&mut self) -> Option<Word> {
        let start = self.position;
        let inside = self.source.get(start..)?.strip_prefix('<')?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let length = inside.bytes().take(MAX_PLACEHOLDER).take_while(is_name).count();
        let behind = inside.get(length..)?.strip_prefix('>')?.trim_start_matches([' ', '\t']);
        if length == 0 || !(behind.is_empty() || behind.starts_with(['\n', ';', '|'])) {
            return None;
        }
        self.position = start + length + 2;
        let part = Part::Unknown { inner: Vec::new(), quoted: true, change: None };
        Some(Word { parts: vec![part], span: self.span_from(start) })
    }

    /// Reads a redirect, if one is next.
    pub(super) fn redirect(&mut self) -> Option<Redirect> {
        let start = self.position;
        let operator = self.redirect_start()?;
        self.position = operator;
        if self.eat("<<<") {
            return Some(self.redirect_to(RedirectKind::HereString, start));
        }
        if self.eat("<<") {
            return Some(self.heredoc(start));
        }
        let kind = match () {
            () if self.eat("&>>") || self.eat(">>") => RedirectKind::Append,
            () if self.eat(">&") || self.eat("<&") => RedirectKind::Duplicate,
            () if self.eat("&>") || self.eat(">|") || self.eat(">!") || self.eat("<>") || self.eat(">") => {
                RedirectKind::Output
            }
            () => {
                self.eat("<");
                RedirectKind::Input
            }
        };
        Some(self.redirect_to(kind, start))
    }

    /// Returns where the operator begins, behind `2` or `{fd}`; `None` if this is no redirect.
    fn redirect_start(&self) -> Option<usize> {
        let mut at = self.position;
        if self.peek() == Some(b'{') {
            let length = self.bytes[at..].iter().take(64).position(|byte| *byte == b'}')?;
            if !is_name(&self.source[at + 1..at + length]) {
                return None;
            }
            at += length + 1;
        }
        while self.bytes.get(at).is_some_and(u8::is_ascii_digit) && at - self.position < 8 {
            at += 1;
        }
        let next = self.bytes.get(at + 1).copied();
        match self.bytes.get(at)? {
            b'<' | b'>' if next == Some(b'(') => None,
            b'<' | b'>' => Some(at),
            b'&' if next == Some(b'>') && at == self.position => Some(at),
            _ => None,
        }
    }

    fn redirect_to(&mut self, kind: RedirectKind, start: usize) -> Redirect {
        let is_output = self.bytes[start..self.position].contains(&b'>');
        self.blanks();
        let target = if self.at_word() { self.word() } else { Word::default() };
        if target.parts.is_empty() {
            self.broken();
        }
        let kind = if kind == RedirectKind::Duplicate && is_output && names_file(&target) {
            RedirectKind::Output
        } else {
            kind
        };
        let stderr = !matches!(self.bytes[start], b'<' | b'>' | b'&' | b'0' | b'1');
        Redirect { kind, target, stderr, span: self.span_from(start) }
    }
}

/// `>&file` writes a file, `>&2`, `>&-`, `>&2-` and `>&$fd` do not.
fn names_file(target: &Word) -> bool {
    match target.parts.as_slice() {
        [Part::Literal { text, .. }] => !text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit()),
        [Part::Variable { .. } | Part::Elements { .. } | Part::Unknown { .. }] => false,
        _ => true,
    }
}

/// Puts a word among the assignments or the words of a command.
fn add_word(simple: &mut Simple, word: Word) {
    if simple.words.is_empty()
        && let Some(assignment) = assignment(&word)
    {
        simple.assignments.push(assignment);
    } else {
        simple.words.push(word);
    }
}

/// Reads `NAME=value`, `NAME+=value`, `NAME[i]=value` off a word.
pub(crate) fn assignment(word: &Word) -> Option<Assignment> {
    let Some(Part::Literal { text, quoted: false }) = word.parts.first() else {
        return None;
    };
    let (left, right) = text.split_once('=')?;
    let plain = left.strip_suffix('+').unwrap_or(left);
    let base = plain.split_once('[').map_or(plain, |(base, _)| base);
    if !is_name(base) {
        return None;
    }
    let mut parts = word.parts[1..].to_vec();
    parts.insert(0, Part::Literal { text: right.to_owned(), quoted: false });
    let (compound, appends) = (left != base, left != plain && plain == base);
    Some(Assignment { name: base.to_owned(), compound, appends, value: Word { parts, span: word.span } })
}
