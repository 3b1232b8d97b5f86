//! Tokens of inline code: names, texts and signs of Python, JavaScript, Ruby, Perl and PHP.
//!
//! One pass, without looking back further than the token before. A text that is not closed ends with the code.

use super::text::{Piece, Pieces, closed, closer, filled, plain, unescaped};
use crate::classify::rules::dialect::CodeLanguage;

/// A token and its place in the code.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'c> {
    pub kind: TokenKind<'c>,
    pub from: usize,
    pub to: usize,
    /// True if a space or the beginning of a line stands before it.
    pub is_apart: bool,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'c> {
    /// A name, with the sigil that belongs to it (`$x`, `@x`).
    Name(&'c str),
    /// A text.
    Text(Pieces),
    /// A text that a shell runs (`` `…` ``).
    Shell(Pieces),
    /// A list of words (`%w[a b]`, `qw(a b)`).
    Words(Vec<String>),
    Number,
    Sign(&'c str),
    /// The end of a line.
    Line,
}

/// Signs of more than one character, the longest first.
const SIGNS: [&str; 34] = [
    "===", "!==", "**=", "...", "<=>", "||=", "&&=", "??=", "//=", "->", "=>", "::", "==", "!=", "<=", ">=", "=~",
    "!~", "+=", "-=", "*=", "/=", ".=", "|=", "&=", "?.", "&.", "&&", "||", "??", "**", "//", "<<", ":=",
];

/// Returns the tokens of a piece of code.
pub(super) fn tokens(code: &str, language: CodeLanguage) -> Vec<Token<'_>> {
    let mut lexer = Lexer { code, language, at: 0, found: Vec::new(), pending: Vec::new() };
    while lexer.at < code.len() {
        lexer.step();
    }
    lexer.found
}

struct Lexer<'c> {
    code: &'c str,
    language: CodeLanguage,
    at: usize,
    found: Vec<Token<'c>>,
    /// Documents whose text begins in the next line: the token, the word at their end, and whether names in them are filled in.
    pending: Vec<(usize, &'c str, bool)>,
}

impl<'c> Lexer<'c> {
    fn rest(&self) -> &'c str {
        &self.code[self.at..]
    }

    fn is(&self, languages: &[CodeLanguage]) -> bool {
        languages.contains(&self.language)
    }

    fn push(&mut self, kind: TokenKind<'c>, length: usize) {
        let before = self.code[..self.at].chars().next_back();
        let is_apart = before.is_none_or(char::is_whitespace);
        let to = (self.at + length).min(self.code.len());
        self.found.push(Token { kind, from: self.at, to, is_apart });
        self.at = to;
    }

    fn step(&mut self) {
        use CodeLanguage::{Javascript, Perl, Php, Python, Ruby};
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return };
        let is_comment = match first {
            '#' => !(self.is(&[Javascript]) || self.is(&[Php]) && rest.starts_with("#[")),
            '/' => self.is(&[Javascript, Php]) && (rest.starts_with("//") || rest.starts_with("/*")),
            _ => false,
        };
        match first {
            '\n' => {
                self.push(TokenKind::Line, 1);
                self.documents();
            }
            '\\' if rest.starts_with("\\\n") => self.at += 2,
            _ if first.is_whitespace() => self.at += first.len_utf8(),
            _ if is_comment && rest.starts_with("/*") => {
                self.at += rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
            }
            _ if is_comment => self.at += rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => self.quoted(first, ""),
            '`' if self.is(&[Javascript]) => self.quoted('`', ""),
            '`' if !self.is(&[Python]) => self.shell(),
            '/' if self.is(&[Javascript, Ruby, Perl]) && self.expects_value() => self.pattern(),
            '%' if self.is(&[Ruby]) && (self.expects_value() || self.begins_words()) && self.words_of_ruby() => {}
            '<' if self.is(&[Ruby, Perl, Php]) && self.opens_document() => {}
            _ if first.is_ascii_digit() => {
                let length =
                    rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
                self.push(TokenKind::Number, length.max(1));
            }
            _ if is_name_start(first, self.language) => self.name(),
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let length = sign.map_or(first.len_utf8(), |sign| sign.len());
                // In these languages `//` between values is an operator, and in Python a comment nowhere.
                self.push(TokenKind::Sign(&rest[..length]), length);
            }
        }
    }

    /// Returns true if a value comes next: behind a sign or at the beginning, but not behind a value.
    fn expects_value(&self) -> bool {
        match self.found.last().map(|token| &token.kind) {
            None | Some(TokenKind::Line) => true,
            Some(TokenKind::Sign(sign)) => !matches!(*sign, ")" | "]" | "}"),
            Some(TokenKind::Name(name)) => {
                matches!(
                    *name,
                    "return"
                        | "typeof"
                        | "case"
                        | "in"
                        | "of"
                        | "and"
                        | "or"
                        | "not"
                        | "if"
                        | "unless"
                        | "split"
                        | "grep"
                )
            }
            Some(_) => false,
        }
    }

    /// Returns true if `%w[` stands behind a name and a space: the argument of a call without brackets.
    fn begins_words(&self) -> bool {
        let mut chars = self.rest()[1..].chars();
        let is_list = chars.next().is_some_and(|kind| "wWiIqQ".contains(kind))
            && chars.next().is_some_and(|open| "([{<|".contains(open));
        is_list
            && self.code[..self.at].ends_with(' ')
            && matches!(self.found.last().map(|token| &token.kind), Some(TokenKind::Name(_)))
    }

    fn name(&mut self) {
        let rest = self.rest();
        let sigil = rest.len() - rest.trim_start_matches(['$', '@', '%', '&']).len();
        let body = &rest[sigil..];
        let length = body.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(body.len());
        let mut name = &rest[..sigil + length];
        // Ruby's names may end with these.
        if self.language == CodeLanguage::Ruby
            && rest[name.len()..].starts_with(['!', '?'])
            && !rest[name.len() + 1..].starts_with('=')
        {
            name = &rest[..=name.len()];
        }
        let next = rest[name.len()..].chars().next();
        if self.language == CodeLanguage::Python
            && let Some(quote @ ('\'' | '"')) = next
            && name.len() <= 2
            && name.bytes().all(|byte| b"rbfuRBFU".contains(&byte))
        {
            return self.quoted(quote, name);
        }
        let is_key =
            self.found.last().is_some_and(|token| matches!(token.kind, TokenKind::Sign("->" | "{" | "&" | ".")))
                && next.is_some_and(|c| c == '}' || c == '(' || c == ')');
        if self.language == CodeLanguage::Perl && !is_key && self.quote_of_perl(name) {
            return;
        }
        self.push(TokenKind::Name(name), name.len());
    }

    /// Reads `q(…)`, `qq{…}`, `qw[…]`, `m/…/`, `s/…/…/` and their likes.
    fn quote_of_perl(&mut self, name: &'c str) -> bool {
        let parts = match name {
            "q" | "qq" | "qw" | "qx" | "m" | "qr" => 1,
            "s" | "tr" | "y" => 2,
            _ => return false,
        };
        let behind = &self.rest()[name.len()..];
        let gap = behind.len() - behind.trim_start_matches(' ').len();
        let Some(open) = behind[gap..].chars().next() else { return false };
        let is_open = matches!(open, '/' | '{' | '(' | '[' | '<' | '|' | '!' | '~' | '^' | '\'' | '"')
            || (open == '#' && gap == 0);
        if !is_open || behind[gap..].starts_with("=>") {
            return false;
        }
        let (mut length, mut body) = (name.len() + gap, "");
        for part in 0..parts {
            let rest = &self.rest()[length..];
            let rest_open = rest.chars().next().filter(|_| part == 0 || closer(open) != open).unwrap_or(open);
            let skip = if part > 0 && closer(open) == open { 0 } else { rest_open.len_utf8() };
            let end = closed(&rest[skip.min(rest.len())..], rest_open);
            if part == 0 {
                body = &rest[skip..skip + end];
            }
            length += (skip + end + closer(rest_open).len_utf8()).min(rest.len());
        }
        let kind = match name {
            "q" => TokenKind::Text(plain(body)),
            "qq" => TokenKind::Text(filled(body, CodeLanguage::Perl)),
            "qx" => TokenKind::Shell(filled(body, CodeLanguage::Perl)),
            "qw" => TokenKind::Words(body.split_whitespace().map(str::to_owned).collect()),
            _ => TokenKind::Number,
        };
        self.push(kind, length);
        true
    }

    /// Reads `%w[…]`, `%q(…)` and their likes.
    fn words_of_ruby(&mut self) -> bool {
        let rest = self.rest();
        let kind = rest[1..].chars().next().filter(|kind| "wWiIqQx".contains(*kind));
        let skip = 1 + kind.map_or(0, char::len_utf8);
        let Some(open) = rest[skip..].chars().next().filter(|open| "([{<|!/".contains(*open)) else { return false };
        let inside = &rest[skip + open.len_utf8()..];
        let end = closed(inside, open);
        let body = &inside[..end];
        let token = match kind {
            Some('w' | 'i') => TokenKind::Words(body.split_whitespace().map(str::to_owned).collect()),
            Some('W' | 'I') if !body.contains("#{") => {
                TokenKind::Words(body.split_whitespace().map(str::to_owned).collect())
            }
            Some('W' | 'I') => TokenKind::Text(vec![Piece::Filled(None)]),
            Some('q') => TokenKind::Text(plain(body)),
            Some('x') => TokenKind::Shell(filled(body, CodeLanguage::Ruby)),
            _ => TokenKind::Text(filled(body, CodeLanguage::Ruby)),
        };
        self.push(token, skip + open.len_utf8() + end + 1);
        true
    }

    fn shell(&mut self) {
        let inside = &self.rest()[1..];
        let end = closed(inside, '`');
        self.push(TokenKind::Shell(filled(&inside[..end], self.language)), end + 2);
    }

    fn quoted(&mut self, quote: char, prefix: &str) {
        let rest = self.rest();
        let start = prefix.len();
        let triple = [quote; 3].iter().collect::<String>();
        let is_triple = self.language == CodeLanguage::Python && rest[start..].starts_with(&triple);
        let from = start + if is_triple { 3 } else { 1 };
        let inside = &rest[from..];
        let (mut end, mut skips) = (inside.len(), false);
        for (at, one) in inside.char_indices() {
            if std::mem::take(&mut skips) {
                continue;
            }
            let is_end = one == quote && (!is_triple || inside[at..].starts_with(&triple));
            // A text of one line ends with it where it is not closed.
            let is_torn = one == '\n'
                && !is_triple
                && matches!(self.language, CodeLanguage::Python | CodeLanguage::Javascript)
                && quote != '`';
            if is_end || is_torn {
                end = at;
                break;
            }
            skips = one == '\\';
        }
        let body = &inside[..end];
        let (is_raw, is_filled) = (prefix.contains(['r', 'R']), prefix.contains(['f', 'F']));
        let text = match (self.language, quote) {
            (CodeLanguage::Python, _) if is_filled => filled(body, CodeLanguage::Python),
            (CodeLanguage::Python, _) if is_raw => plain(body),
            (CodeLanguage::Javascript, '`') => filled(body, CodeLanguage::Javascript),
            (CodeLanguage::Ruby | CodeLanguage::Perl | CodeLanguage::Php, '\'') => {
                plain(body.replace("\\'", "'").replace("\\\\", "\\"))
            }
            (CodeLanguage::Ruby | CodeLanguage::Perl | CodeLanguage::Php, _) => filled(body, self.language),
            _ => plain(unescaped(body)),
        };
        self.push(TokenKind::Text(text), from + end + if is_triple { 3 } else { 1 });
    }

    /// Passes over a regular expression.
    fn pattern(&mut self) {
        let inside = &self.rest()[1..];
        let (mut skips, mut in_class) = (false, false);
        for (at, one) in inside.char_indices() {
            match one {
                _ if std::mem::take(&mut skips) => {}
                '\\' => skips = true,
                '\n' => break,
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => {
                    let flags =
                        inside[at + 1..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(inside.len() - at - 1);
                    return self.push(TokenKind::Number, at + 2 + flags);
                }
                _ => {}
            }
        }
        self.push(TokenKind::Sign("/"), 1);
    }

    /// Notes a document (`<<~EOS`), whose text stands in the lines below.
    fn opens_document(&mut self) -> bool {
        let rest = self.rest();
        let head = if self.language == CodeLanguage::Php { "<<<" } else { "<<" };
        let Some(behind) = rest.strip_prefix(head) else { return false };
        let mark = behind.trim_start_matches(['~', '-']);
        let quote = mark.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        let word = &mark[quote.map_or(0, char::len_utf8)..];
        let length = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(word.len());
        let word = &word[..length];
        if !word.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') || !self.expects_value() {
            return false;
        }
        let to = rest.len() - mark.len() + length + 2 * quote.map_or(0, char::len_utf8);
        self.pending.push((self.found.len(), word, quote != Some('\'')));
        self.push(TokenKind::Text(Vec::new()), to);
        true
    }

    /// Reads the documents that the line before has opened.
    fn documents(&mut self) {
        for (token, word, is_filled) in std::mem::take(&mut self.pending) {
            let from = self.at;
            let mut to = self.code.len();
            while self.at < self.code.len() {
                let line = self.rest().split('\n').next().unwrap_or_default();
                let start = self.at;
                self.at = (self.at + line.len() + 1).min(self.code.len());
                if line.trim().trim_end_matches([';', ',', ')']) == word {
                    to = start;
                    break;
                }
            }
            let body = &self.code[from..to.max(from)];
            let text = if is_filled { filled(body, self.language) } else { plain(body) };
            self.found[token].kind = TokenKind::Text(text);
        }
    }
}

fn is_name_start(first: char, language: CodeLanguage) -> bool {
    let is_sigil = match language {
        CodeLanguage::Php | CodeLanguage::Javascript => first == '$',
        CodeLanguage::Perl => matches!(first, '$' | '@'),
        CodeLanguage::Ruby => matches!(first, '$' | '@'),
        _ => false,
    };
    first.is_alphabetic() || first == '_' || is_sigil
}
