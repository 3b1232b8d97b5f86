//! Everything that begins with `$`, backticks, and process substitution.

/// Longest `${name…}` whose form is looked at, in bytes.
const MAX_CHANGE: usize = 256;

/// Operators of `${name…}`, the longer first.
const OPERATORS: [&str; 12] = [":-", ":=", ":+", ":?", "%%", "##", "-", "=", "+", "?", "%", "#"];

use super::scanner::{OpenConstructs, Scanner, TextPlace, scan};
use super::tree::{Change, Part, Script};
use super::word::push_literal;

/// Returns where a `${` is closed whose inside begins here; `None` if that is far away.
pub(crate) fn closing_brace(inside: &[u8]) -> Option<usize> {
    let (mut depth, mut before) = (0_usize, b' ');
    for (at, byte) in inside.iter().copied().enumerate().take(MAX_CHANGE) {
        match byte {
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            b'{' if before == b'$' => depth += 1,
            _ => {}
        }
        before = byte;
    }
    None
}

impl Scanner<'_, '_> {
    /// Reads what a `$` at the position begins.
    pub(super) fn dollar(&mut self, parts: &mut Vec<Part>, quoted: bool) {
        match self.peek_at(1) {
            Some(b'(') => self.dollar_paren(parts, quoted),
            Some(b'{') => self.parameter(parts, quoted),
            Some(b'[') => {
                self.position += 2;
                self.unknown(parts, quoted, b']');
            }
            Some(b'\'') if !quoted => {
                self.position += 2;
                self.ansi_quoted(parts);
            }
            Some(b'"') if !quoted => {
                self.position += 2;
                self.double_quoted(parts);
            }
            Some(byte) if byte == b'_' || byte.is_ascii_alphabetic() => self.variable(parts, quoted),
            Some(byte) if byte.is_ascii_digit() || b"@*#?$!-".contains(&byte) => {
                let name = char::from(byte).to_string();
                self.position += 2;
                parts.push(Part::Variable { name, quoted });
            }
            _ => {
                self.position += 1;
                push_literal(parts, "$", quoted);
            }
        }
    }

    fn variable(&mut self, parts: &mut Vec<Part>, quoted: bool) {
        self.position += 1;
        let name = self.name();
        parts.push(Part::Variable { name, quoted });
    }

    fn name(&mut self) -> String {
        let start = self.position;
        while self.peek().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            self.position += 1;
        }
        self.source[start..self.position].to_owned()
    }

    fn dollar_paren(&mut self, parts: &mut Vec<Part>, quoted: bool) {
        self.position += 1;
        if self.starts_with("((")
            && let Some(end) = self.arithmetic_end()
        {
            let inner = self.arithmetic(end);
            parts.push(Part::Unknown { inner, quoted, change: None });
            return;
        }
        self.position += 1;
        let script = self.substitution();
        parts.push(Part::Command { script, quoted });
    }

    /// Returns the commands up to the closing parenthesis; the opening one has been read.
    pub(super) fn substitution(&mut self) -> Script {
        if !self.enter() {
            return Script::default();
        }
        let outer = std::mem::replace(&mut self.open, OpenConstructs { parens: 1, ..OpenConstructs::default() });
        let script = self.list();
        self.open = outer;
        if !self.eat(")") {
            self.broken();
        }
        self.leave();
        script
    }

    /// Reads `((…))` up to `end`, keeping only what may run commands.
    pub(super) fn arithmetic(&mut self, end: usize) -> Vec<Part> {
        let mut inner = Vec::new();
        if self.enter() {
            while self.position < end {
                match self.peek() {
                    Some(b'$') => self.dollar(&mut inner, true),
                    Some(b'`') => self.backtick(&mut inner, true),
                    _ => self.step(),
                }
            }
            self.leave();
        }
        inner.retain(|part| !matches!(part, Part::Literal { .. }));
        inner
    }

    /// `${…}`
    fn parameter(&mut self, parts: &mut Vec<Part>, quoted: bool) {
        let opening = self.position;
        self.position += 2;
        // `${ commands; }` and `${| commands; }` of ksh and bash 5.3.
        if self.peek().is_some_and(|byte| b" \t\n|".contains(&byte)) && self.enter() {
            self.eat("|");
            let script = self.up_to_brace(true);
            self.leave();
            parts.push(Part::Command { script, quoted });
            return;
        }
        let name = self.name();
        if !name.is_empty() && self.eat("@P}") {
            // The value is expanded as a prompt is, with the commands in it.
            let script = scan(&format!("eval \"${name}\""), TextPlace::Within(self.span_from(opening)), self.bounds);
            parts.push(Part::Command { script, quoted });
            return;
        }
        if !name.is_empty() && self.eat("}") {
            parts.push(Part::Variable { name, quoted });
            return;
        }
        if !name.is_empty() && (self.eat("[@]}") || self.eat("[*]}")) {
            parts.push(Part::Elements { name, quoted });
            return;
        }
        if name.is_empty()
            && let Some(byte) = self.peek().filter(|byte| byte.is_ascii_digit() || matches!(byte, b'@' | b'*'))
            && self.peek_at(1) == Some(b'}')
        {
            self.position += 2;
            parts.push(Part::Variable { name: char::from(byte).to_string(), quoted });
            return;
        }
        let change = self.change(name);
        self.unknown(parts, quoted, b'}');
        if let (Some(Part::Unknown { change: form, .. }), true) = (parts.last_mut(), change.is_some()) {
            *form = change;
        }
    }

    /// Looks ahead at the rest of `${name…}`; `None` if there is more in it than a plain word, or variables in a default.
    fn change(&self, name: String) -> Option<Change> {
        let rest = self.source.get(self.position..)?;
        let inside = &rest[..closing_brace(rest.as_bytes())?];
        let operator = OPERATORS.into_iter().find(|operator| inside.starts_with(operator))?;
        let word = &inside[operator.len()..];
        let is_default = matches!(operator, ":-" | ":=" | "-" | "=");
        let unquoted = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
        let word = unquoted.filter(|_| is_default).unwrap_or(word);
        let is_pattern = operator.starts_with(['%', '#']);
        let is_plain = |c: char| {
            let is_special = is_pattern && "*?".contains(c) || is_default && "$~{}".contains(c);
            c.is_alphanumeric() || "_./-+,=@:".contains(c) || is_special
        };
        let is_asked = operator.ends_with('?');
        let is_known = !name.is_empty() && (is_asked || word.chars().all(is_plain));
        is_known.then(|| Change { name, operator, word: word.to_owned() })
    }

    /// Reads to an unquoted closer, keeping what may run commands.
    fn unknown(&mut self, parts: &mut Vec<Part>, quoted: bool, closer: u8) {
        let mut inner = Vec::new();
        if self.enter() {
            self.unknown_inside(&mut inner, quoted, closer);
            self.leave();
        }
        if self.peek() == Some(closer) {
            self.position += 1;
        } else {
            self.broken();
        }
        parts.push(Part::Unknown { inner, quoted, change: None });
    }

    fn unknown_inside(&mut self, inner: &mut Vec<Part>, quoted: bool, closer: u8) {
        while let Some(byte) = self.peek() {
            match byte {
                _ if byte == closer => return,
                b'\\' => {
                    self.position += 1;
                    self.step();
                    self.position = self.position.min(self.bytes.len());
                }
                b'\'' if !quoted => {
                    self.position += 1;
                    while self.peek().is_some_and(|byte| byte != b'\'') {
                        self.position += 1;
                    }
                    self.position = (self.position + 1).min(self.bytes.len());
                }
                b'"' => {
                    self.position += 1;
                    self.double_quoted(inner);
                }
                b'$' => self.dollar(inner, true),
                b'`' => self.backtick(inner, true),
                _ => self.step(),
            }
        }
    }

    /// `` `…` ``: the text is unescaped and scanned on its own.
    pub(super) fn backtick(&mut self, parts: &mut Vec<Part>, quoted: bool) {
        let opening = self.position;
        self.position += 1;
        let mut text = String::new();
        let mut start = self.position;
        while let Some(byte) = self.peek().filter(|byte| *byte != b'`') {
            if byte == b'\\' && self.peek_at(1).is_some_and(|next| b"`\\$".contains(&next)) {
                text.push_str(&self.source[start..self.position]);
                start = self.position + 1;
                self.position += 2;
            } else {
                self.position += 1;
            }
        }
        text.push_str(&self.source[start..self.position]);
        if !self.eat("`") {
            self.broken();
        }
        let mut script = Script::default();
        if self.enter() {
            let within = TextPlace::Within(self.span_from(opening));
            script = scan(&text, within, self.bounds);
            self.leave();
        }
        parts.push(Part::Command { script, quoted });
    }

    /// `<(…)` and `>(…)`
    pub(super) fn process(&mut self, parts: &mut Vec<Part>) {
        self.position += 2;
        let script = self.substitution();
        parts.push(Part::Process { script });
    }

    /// `$'…'`; the opening quote has been read. A byte that is not valid UTF-8 becomes the pattern `?`.
    fn ansi_quoted(&mut self, parts: &mut Vec<Part>) {
        let mut text = Vec::new();
        let mut start = self.position;
        while let Some(byte) = self.peek().filter(|byte| *byte != b'\'') {
            if byte == b'\\' {
                text.extend_from_slice(&self.source.as_bytes()[start..self.position]);
                self.position += 1;
                self.ansi_escape(&mut text);
                start = self.position;
            } else {
                self.position += 1;
            }
        }
        text.extend_from_slice(&self.source.as_bytes()[start..self.position]);
        if !self.eat("'") {
            self.broken();
        }
        push_literal(parts, "", true);
        for chunk in text.utf8_chunks() {
            push_literal(parts, chunk.valid(), true);
            push_literal(parts, &"?".repeat(chunk.invalid().len()), false);
        }
    }

    fn ansi_escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        let start = self.position;
        self.step();
        match byte {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'a' => text.push(7),
            b'b' => text.push(8),
            b'e' | b'E' => text.push(0x1b),
            b'x' => {
                let byte = self.ansi_number(16, 2);
                text.push(byte as u8);
            }
            b'u' | b'U' => {
                let number = self.ansi_number(16, if byte == b'u' { 4 } else { 8 });
                let one = char::from_u32(number).unwrap_or('\u{fffd}');
                text.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes());
            }
            b'0'..=b'7' => {
                self.position = start;
                // Bash takes the low eight bits.
                let byte = self.ansi_number(8, 3) & 0xff;
                text.push(byte as u8);
            }
            _ => text.extend_from_slice(&self.source.as_bytes()[start..self.position]),
        }
    }

    fn ansi_number(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix)) else {
                break;
            };
            value = value.saturating_mul(radix).saturating_add(digit);
            self.position += 1;
        }
        value
    }
}
