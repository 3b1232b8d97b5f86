//! JSON as clients really send it. A strict reader reads correct JSON; the rest is read with replacement, so that a
//! message that is almost JSON still says what is about to happen.
//!
//! U+FFFD, or the characters as they stand, replace half of a surrogate pair, bytes that are not UTF-8, and unknown escapes. Null
//! replaces `NaN`, `Infinity`, numbers out of range, and values nested too deep. Control characters inside of texts and zero
//! bytes behind the message are passed over. *Invariant:* of two fields of the same name the last one counts, as in the parsers
//! of clients. *Invariant:* bounded in depth, and never panics.

use serde_json::{Map, Value};

/// Deepest nesting that is read; what lies deeper is left out.
const MAX_DEPTH: usize = 120;

/// Holds a document as far as it could be read.
#[derive(Debug, PartialEq)]
pub struct ParsedJson {
    /// As far as it could be read.
    pub value: Value,
    /// True if some of it may have another meaning than the one that was read.
    pub is_doubtful: bool,
    /// False if bytes of it are not UTF-8.
    pub is_utf8: bool,
    /// The reason why it is no JSON.
    pub fault: Option<String>,
}

/// Reads one JSON document.
pub fn read(bytes: &[u8]) -> ParsedJson {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // Bytes that are not UTF-8 are read with replacement below, and `is_utf8` says so.
    let strict = std::str::from_utf8(bytes).ok();
    if let Some(Ok(value)) = strict.map(serde_json::from_str) {
        return ParsedJson { value, is_doubtful: false, is_utf8: true, fault: None };
    }
    let mut reader = LooseReader::of(bytes);
    let value = reader.document();
    let is_utf8 = strict.is_some();
    ParsedJson { value, is_doubtful: reader.is_doubtful || !is_utf8, is_utf8, fault: reader.fault }
}

/// Returns true if the bytes are a whole JSON object, so that nothing more needs to come.
pub fn is_whole(bytes: &[u8]) -> bool {
    let is_object = bytes.trim_ascii_end().ends_with(b"}");
    is_object && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// Returns a number of the outermost object exactly as it is written.
pub fn raw_number(bytes: &[u8], field: &str) -> Option<String> {
    let mut reader = LooseReader { wanted: Some(field), ..LooseReader::of(bytes) };
    reader.document();
    reader.raw
}

struct LooseReader<'t> {
    text: std::borrow::Cow<'t, str>,
    at: usize,
    is_doubtful: bool,
    fault: Option<String>,
    /// The field of the outermost object whose text is wanted, and that text.
    wanted: Option<&'t str>,
    raw: Option<String>,
}

impl<'t> LooseReader<'t> {
    fn of(bytes: &'t [u8]) -> LooseReader<'t> {
        let text = String::from_utf8_lossy(bytes);
        LooseReader { text, at: 0, is_doubtful: false, fault: None, wanted: None, raw: None }
    }

    fn document(&mut self) -> Value {
        let value = self.value(0);
        self.blanks();
        while self.peek() == Some(0) {
            self.at += 1;
        }
        self.blanks();
        if self.at < self.text.len() {
            self.fail("trailing characters");
        }
        value
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Ends the reading; what was read so far stays.
    fn fail(&mut self, why: &str) {
        if self.fault.is_none() {
            self.fault = Some(format!("{why} at byte {}", self.at + 1));
        }
        self.at = self.text.len();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blanks();
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn value(&mut self, depth: usize) -> Value {
        self.blanks();
        if depth > MAX_DEPTH && matches!(self.peek(), Some(b'{' | b'[')) {
            self.skip();
            return Value::Null;
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Value::String(self.string()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.word(),
            None => {
                self.fail("the end of the message instead of a value");
                Value::Null
            }
        }
    }

    fn object(&mut self, depth: usize) -> Value {
        let mut map = Map::new();
        self.at += 1;
        if self.take(b'}') {
            return Value::Object(map);
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                self.fail("expected the name of a field");
                return Value::Object(map);
            }
            let name = self.string();
            if !self.take(b':') {
                self.fail("no `:` after the name of a field");
                return Value::Object(map);
            }
            self.blanks();
            let start = self.at;
            let value = self.value(depth + 1);
            if depth == 0 && self.wanted == Some(name.as_str()) {
                let raw = self.text[start..self.at].trim_ascii_end();
                self.raw = is_number(raw).then(|| raw.to_owned());
            }
            map.insert(name, value);
            if self.take(b'}') {
                return Value::Object(map);
            }
            if !self.take(b',') {
                self.fail("neither `,` nor `}` after a field");
                return Value::Object(map);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Value {
        let mut items = Vec::new();
        self.at += 1;
        if self.take(b']') {
            return Value::Array(items);
        }
        loop {
            items.push(self.value(depth + 1));
            if self.take(b']') {
                return Value::Array(items);
            }
            if !self.take(b',') {
                self.fail("neither `,` nor `]` after a value");
                return Value::Array(items);
            }
        }
    }

    /// Passes over what is nested too deep, without going down into it.
    fn skip(&mut self) {
        self.is_doubtful = true;
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
        self.fail("the end of the message inside of a value");
    }

    fn string(&mut self) -> String {
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find(['"', '\\']) else {
                out.push_str(rest);
                self.fail("the message ends inside a string");
                return out;
            };
            out.push_str(&rest[..end]);
            let is_end = rest.as_bytes()[end] == b'"';
            self.at += end + 1;
            if is_end {
                return out;
            }
            self.escape(&mut out);
        }
    }

    fn escape(&mut self, out: &mut String) {
        let Some(letter) = self.text[self.at..].chars().next() else { return };
        self.at += letter.len_utf8();
        let plain = match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode(),
            other => {
                // Mostly it comes from a path that was not escaped.
                self.is_doubtful = true;
                out.push('\\');
                other
            }
        };
        out.push(plain);
    }

    /// Returns the character behind `\u`, or U+FFFD for half of a pair.
    fn unicode(&mut self) -> char {
        let Some(first) = self.hex() else {
            self.is_doubtful = true;
            return char::REPLACEMENT_CHARACTER;
        };
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            let back = self.at;
            self.at += 2;
            if let Some(second @ 0xdc00..0xe000) = self.hex() {
                let whole = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(whole).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            self.at = back;
        }
        char::from_u32(first).unwrap_or_else(|| {
            self.is_doubtful = true;
            char::REPLACEMENT_CHARACTER
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(number)
    }

    fn number(&mut self) -> Value {
        let rest = &self.text[self.at..];
        if rest.starts_with("-Infinity") {
            self.at += "-Infinity".len();
            return Value::Null;
        }
        let end = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let text = rest[..end].to_owned();
        if !is_number(&text) {
            self.fail("no number");
            return Value::Null;
        }
        self.at += end;
        // Out of range, and no reader here computes with it.
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    fn word(&mut self) -> Value {
        let words = [
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("null", Value::Null),
            ("NaN", Value::Null),
            ("Infinity", Value::Null),
        ];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return value;
            }
        }
        self.fail("no value");
        Value::Null
    }
}

/// Returns true if the text is a number by the grammar of JSON, of any size.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, part) = match mantissa.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && part.is_none_or(digits)
        && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_clients_send_is_read() {
        let table: &[(&[u8], Value, bool)] = &[
            (br#"{"a":"\ud83d\ude00"}"#, json!({"a": "\u{1f600}"}), false),
            (br#"{"a":"x\ud83d"}"#, json!({"a": "x\u{fffd}"}), true),
            (br#"{"a":"\ude00\ud83dy"}"#, json!({"a": "\u{fffd}\u{fffd}y"}), true),
            (br#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}\u{1f600}"}), true),
            (br#"{"a":"\ud83d\n"}"#, json!({"a": "\u{fffd}\n"}), true),
            (b"{\"a\":\"\xff\"}", json!({"a": "\u{fffd}"}), true),
            (b"\xef\xbb\xbf{\"a\":1}", json!({"a": 1}), false),
            (b"{\"a\":1}\0\0 ", json!({"a": 1}), false),
            (b"{\"a\":\"\t\x01\"}", json!({"a": "\t\u{1}"}), false),
            (
                br#"{"a":NaN,"b":[Infinity,-Infinity],"c":1e400}"#,
                json!({"a": null, "b": [null, null], "c": null}),
                false,
            ),
            (br#"{"a":"C:\dir"}"#, json!({"a": "C:\\dir"}), true),
            (br#"{"a":"\ud83d","a":2}"#, json!({"a": 2}), true),
            (br#"{"a":1,"a":2}"#, json!({"a": 2}), false),
        ];
        for (bytes, value, is_doubtful) in table {
            let read = read(bytes);
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!((&read.value, read.is_doubtful, &read.fault), (value, *is_doubtful, &None), "{shown}");
        }
        let deep = format!(r#"{{"a":{}1{},"b":2}}"#, "[".repeat(5000), "]".repeat(5000));
        let read = read(deep.as_bytes());
        assert_eq!((&read.value["b"], read.is_doubtful, read.fault), (&json!(2), true, None));
    }

    #[test]
    fn what_is_no_json_says_so_and_keeps_what_was_read() {
        for (text, value) in [
            (
                r#"{"id":7,"type":"shell.before","command":"rm "#,
                json!({"id": 7, "type": "shell.before", "command": "rm "}),
            ),
            (r#"{"id":7,"#, json!({"id": 7})),
            (r#"{"id":7} x"#, json!({"id": 7})),
            (r#"{"a":1,}"#, json!({"a": 1})),
            ("{'a':1}", json!({})),
            ("", json!(null)),
            ("[1", json!([1])),
            ("01", json!(null)),
        ] {
            let read = read(text.as_bytes());
            assert!(read.fault.is_some(), "{text}");
            assert_eq!(read.value, value, "{text}");
        }
        assert!(read(&b"[".repeat(100_000)).fault.is_some());
        assert!(!is_whole(b"{\"a\":") && !is_whole(b"[1]") && is_whole(b" {\"a\":[]}\n"));
    }

    #[test]
    fn numbers_are_told_as_they_are_written() {
        let raw = |text: &str| raw_number(text.as_bytes(), "id");
        assert_eq!(raw(r#"{"x":{"id":2},"id" : 1e400 ,"y":1}"#).as_deref(), Some("1e400"));
        assert_eq!(raw(r#"{"id":99999999999999999999999}"#).as_deref(), Some("99999999999999999999999"));
        assert_eq!(raw(r#"{"id":"7"}"#), None);
        assert_eq!(raw(r#"{"id":NaN}"#), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_strict_reader(text in "[\\[\\]{}\",:\\\\u0-9a-fd8enlrt. -]{0,40}", bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                let mut reader = LooseReader::of(text.as_bytes());
                prop_assert_eq!(reader.document(), value);
                prop_assert!(reader.fault.is_none() && !reader.is_doubtful);
            }
            // Only the absence of a panic is of interest.
            let _ = read(&bytes);
        }
    }
}
