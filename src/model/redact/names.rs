//! Finds values by the names that they are given: `TOKEN=…`, `password: …`, `"apiKey": "…"`, `?sig=…`.

use super::shape::{Spans, is_dense, is_path, is_reference};
use super::words::closing;
use crate::model::words::{ABOUT_SECRETS, NO_SECRETS, PASSING_WORDS, SECRET_KEYS, SECRET_SIGNS, SECRET_VERBS};

/// The longest name that is looked at.
const NAME: usize = 80;

/// Blanks between a name, its sign and the value.
const GAP: usize = 2;

/// Notes the values of all secret names.
pub(super) fn find(text: &str, spans: &mut Spans) {
    let bytes = text.as_bytes();
    // Where the unquoted run ends in which values were met, and the last secret: no byte is read again and again.
    let (mut run, mut done) = (0..0, 0);
    for (at, sign) in bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'=' | b':')) {
        // `==`, `!=`, `=~` and `::` compare and qualify.
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let before = at.checked_sub(1).map_or(b' ', |at| bytes[at]);
        let is_assignment = *sign == b':' && next == b'=';
        if !is_assignment
            && (matches!(next, b'=' | b'~')
                || (*sign == b':' && next == b':')
                || (*sign == b'=' && matches!(before, b':' | b'=' | b'!' | b'<' | b'>')))
        {
            continue;
        }
        let Some(name) = name_before(bytes, at) else { continue };
        let from = if is_assignment { at + 2 } else { at + 1 };
        let lead = name.start.checked_sub(1).map_or(b' ', |at| bytes[at]);
        let in_query = matches!(lead, b'?' | b'&');
        if at < done || !may_be_secret(&text[name.clone()]) {
            continue;
        }
        // `grep "TOKEN=" src`: the quote that follows ends what the one before the name began.
        let closes = matches!(lead, b'"' | b'\'') && next == lead && name.end == at;
        if closes && bytes.get(from + 1).is_none_or(u8::is_ascii_whitespace) {
            continue;
        }
        let from = from + usize::from(closes);
        let Some(value) = value_after(bytes, from, *sign, &mut run) else { continue };
        // `NAME= command` gives a name nothing.
        if *sign == b'=' && value.start > from && before != b' ' {
            continue;
        }
        // `[ "$TOKEN" = x ]` compares a variable; `$env:TOKEN = x` sets one.
        if lead == b'{' && name.start > 1 && bytes[name.start - 2] == b'$' || lead == b'$' {
            continue;
        }
        let is_quoted = bytes[value.start] == b'"' || bytes[value.start] == b'\'' || bytes[value.start] == b'\\';
        let is_loose = *sign == b':' && value.start == from && !is_quoted;
        let (name, told) = (&text[name], &text[value.clone()]);
        if is_loose
            && !matches!(
                name.to_ascii_lowercase().as_str(),
                "password" | "passwd" | "token" | "secret" | "apikey" | "api_key" | "private-token" | "api-key"
            )
            && !(matches!(lead, b'"' | b'\'') && name.starts_with(['X', 'x']) && name[1..].starts_with('-'))
        {
            continue;
        }
        if (is_quoted || is_literal(told)) && is_secret(name, told, in_query) {
            done = value.end;
            spans.push(value);
        }
    }
}

/// Returns the name before a sign: quotes and blanks may stand between.
fn name_before(bytes: &[u8], sign: usize) -> Option<std::ops::Range<usize>> {
    let mut end = sign;
    while end > 0 && sign - end < GAP && bytes[end - 1] == b' ' {
        end -= 1;
    }
    if end > 0 && matches!(bytes[end - 1], b'"' | b'\'' | b']') {
        end -= 1;
        if end > 0 && matches!(bytes[end - 1], b'\\' | b'"' | b'\'') {
            end -= 1;
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let start = (end.saturating_sub(NAME)..end).rev().take_while(|at| is_name(bytes[*at])).last()?;
    Some(start..end)
}

/// Returns the value behind a sign, with the quotes around it.
fn value_after(
    bytes: &[u8],
    from: usize,
    sign: u8,
    run: &mut std::ops::Range<usize>,
) -> Option<std::ops::Range<usize>> {
    let start = (from..bytes.len()).take(GAP + 1).find(|at| bytes[*at] != b' ')?;
    let rest = &bytes[start..];
    let end = match rest {
        [b'\\', quote @ (b'"' | b'\''), ..] => {
            let close = rest[2..].windows(2).position(|two| two == [b'\\', *quote]);
            close.map_or(bytes.len(), |close| start + 2 + close + 2)
        }
        // `'Password: ' NAME`: the quote ends the text that the name stands in.
        [b'"' | b'\'', behind, ..] if start > from && behind.is_ascii_whitespace() => return None,
        [b'"' | b'\''] if start > from => return None,
        [quote @ (b'"' | b'\''), ..] => closing(bytes, start + 1, *quote).map_or(bytes.len(), |close| close + 1),
        // A header or a line may continue after a blank; an address is no value.
        [b'/', b'/', ..] if sign == b':' => return None,
        _ => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || b"'\"&;|,<>)}`".contains(byte);
            if !run.contains(&start) {
                *run = start..rest.iter().position(ends).map_or(bytes.len(), |length| start + length);
            }
            run.end
        }
    };
    (start < end).then_some(start..end)
}

/// Returns true for a literal, in code: no call, no subscript, no environment.
fn is_literal(value: &str) -> bool {
    // Text before a command substitution is as literal as any: `PASSWORD=hunter2-$(date)`.
    let head = value.split("$(").next().unwrap_or(value).trim_matches(['\'', '"', '\\']);
    let is_substitution = head.is_empty() && value.contains("$(");
    !is_substitution
        && !head.contains('(')
        && !value.contains('[')
        && !value.starts_with("process.env")
        && !value.starts_with("os.environ")
}

/// Parts of names whose values may be secrets.
fn may_be_secret(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    SECRET_SIGNS.iter().any(|sign| small.contains(sign))
}

/// Returns true if a value of this name is a secret.
pub(super) fn is_secret(name: &str, value: &str, in_query: bool) -> bool {
    if is_reference(value) || is_path(value) {
        return false;
    }
    let plain = value.trim_matches(['\'', '"', '\\']);
    let small = plain.to_ascii_lowercase();
    let is_count = plain.len() <= 2 && plain.bytes().all(|byte| byte.is_ascii_digit());
    if is_count || NO_SECRETS.contains(&small.as_str()) || small == name.to_ascii_lowercase() {
        return false;
    }
    let name = name.trim_start_matches(['-', '.']);
    says_secret(name) && !is_about(name, plain) || says_key(name, plain, in_query)
}

/// Recognises values that only point somewhere: `--secret id=…,src=…`, `PWD=/somewhere`.
fn is_about(name: &str, value: &str) -> bool {
    let small = name.to_ascii_lowercase();
    (small == "secret" && (value.starts_with("id=") || value.starts_with("source=") || value.starts_with("type=")))
        || (small.ends_with("pwd") && (value.starts_with('/') || value.starts_with('.')))
}

/// Names that are secret only with a value that looks it, or in an address.
fn says_key(name: &str, value: &str, in_query: bool) -> bool {
    let small = name.to_ascii_lowercase();
    let last = small.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let in_address =
        ["key", "sig", "signature", "hmac", "hash", "code", "auth", "sas", "jwt", "ticket", "sid", "credential"];
    if in_query && in_address.contains(&last) {
        let least = if matches!(last, "key" | "sig" | "signature" | "auth" | "sas") { 6 } else { 16 };
        return value.len() >= least && value.bytes().any(|byte| !byte.is_ascii_lowercase());
    }
    let is_mixed =
        value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic());
    match last {
        "key" | "keys" => value.len() >= 20 && is_mixed && is_dense(value),
        "cookie" => value.contains('=') || (value.len() >= 16 && is_mixed),
        "sig" | "signature" => value.len() >= 32 && is_mixed && value.contains('%'),
        _ => false,
    }
}

/// Returns true for an option that says what is to be done about a secret, and takes none.
pub(super) fn is_verb(option: &str) -> bool {
    let first = option.trim_start_matches('-').split(['-', '_']).next().unwrap_or_default();
    SECRET_VERBS.contains(&first)
}

/// Returns true for a name that says secret.
pub(super) fn says_secret(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let signs = ["pass", "pwd", "secret", "token", "key", "auth", "cred", "pw", "pat", "jwt", "psk"];
    if !signs.iter().any(|sign| small.contains(sign)) {
        return false;
    }
    let parts = parts(name);
    let joined = parts.concat();
    if SECRET_KEYS.iter().any(|key| joined.ends_with(key)) {
        return true;
    }
    let Some(last) = parts.last() else { return false };
    // `passwordeval`, `passcmd`: a command that prints it.
    let is_command = ["eval", "command", "cmd"].iter().any(|end| last.ends_with(end));
    if is_command || ABOUT_SECRETS.contains(&last.as_str()) || last == "id" {
        // Of Vault's two, one is a secret.
        return small.ends_with("secret_id");
    }
    let ends = |part: &str, word: &str| part == word || part.ends_with(word);
    let anywhere = |part: &String| {
        ["password", "passwd", "passphrase", "passcode", "passwort"].iter().any(|word| part.contains(word))
            || ends(part, "secret")
            || (ends(part, "token") && !part.starts_with("de"))
            || ends(part, "pwd")
            || matches!(part.as_str(), "credential" | "credentials" | "cred" | "creds")
    };
    let at_the_end = match last.as_str() {
        "pw" | "upw" | "opw" | "psk" | "passw" | "auth" | "authorization" | "authorisation" => true,
        "pat" | "jwt" => parts.len() > 1,
        part => part.ends_with("pass") && !PASSING_WORDS.iter().any(|word| part.ends_with(word)),
    };
    at_the_end || parts.iter().any(anywhere)
}

/// Returns true for a name whose UUID opens something: a key of an API, a client's secret, a password.
pub(super) fn may_be_uuid(name: &str) -> bool {
    let parts = parts(name);
    let joined = parts.concat();
    let is_token = ["apitoken", "authtoken", "accesstoken"].iter().any(|token| joined.ends_with(token));
    let ends = ["secret", "password", "passwd"];
    is_token
        || SECRET_KEYS.iter().any(|key| joined.ends_with(key))
        || parts.last().is_some_and(|last| ends.iter().any(|end| last.ends_with(end)))
}

/// Returns the parts of a name, in small letters: `npmAuthToken` and `npm_auth-token` have three.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            before = ' ';
            continue;
        }
        let begins = before == ' ' || (before.is_ascii_lowercase() && c.is_ascii_uppercase());
        if begins {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    parts
}
