//! Finds secrets in the contents of files: private keys, tokens with a prefix of their own, addresses with a password, and generated
//! values of names that say secret.
//!
//! A file has far more text than a command, and a match keeps a whole checkpoint from being sent. So only forms count that ordinary files
//! hardly have, and every value must look generated.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::forms::{Form, LOOSE, TOKENS};
use super::generated::{VALUE, is_generated, is_random_uuid, is_stand_in};
use super::names;
use super::shape::{Spans, is_reference};

/// The bytes that are searched at once.
const PIECE: usize = 4 << 20;

/// The bytes that two neighbouring pieces share: a longer secret is found by its beginning.
const SHARED: usize = 16 << 10;

/// The most secrets that are named of one content.
const MOST: usize = 16;

/// The least length of a line for which the names in it are not read: no one writes such a line.
const LONG_LINE: usize = 32 << 10;

/// Forms with a structure around the secret: a sign, one of which is in each text that matches, and the pattern. Group 1 is the secret.
const AROUND: &[Form] = &[
    (
        &["private key"],
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\\r|\\n|\s)+(?:[A-Za-z-]+: ?[^\n\\]*(?:\\r|\\n|\s)+){0,4}([A-Za-z0-9+/=]{12,})",
    ),
    (&["b3blbnnzac1rzxktdj"], r"\b(b3BlbnNzaC1rZXktdj[A-Za-z0-9+/=]{12,})"),
    (&["age-secret-key-1"], r"\b(AGE-SECRET-KEY-1[A-Z0-9]{20,})"),
    (&["hooks.slack.com"], r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})"),
    (&["/webhooks/"], r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([A-Za-z0-9_-]{20,})"),
    (&["webhookb2"], r"webhook\.office\.com/webhookb2/([^\s'\x22]{20,})"),
    (&["accountkey=", "sharedaccesskey="], r"\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{20,})"),
    // The key in a file of `kubectl`, and a private key in base64 under any name.
    (&["client-key-data"], r"client-key-data\x22?:\s*\x22?([A-Za-z0-9+/=]{24,})"),
    (
        &["ls0tls1crudjtib"],
        r"(LS0tLS1CRUdJTiB(?:QUklWQVRF|SU0EgUFJJVkFURS|FQyBQUklWQVRF|PUEVOU1NIIFBSSVZB|FTkNSWVBURUQgUFJJVkFUR)[A-Za-z0-9+/=]{12,})",
    ),
    (&["eyj"], r"(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,})"),
];

/// Forms whose secret must look generated, as in [`AROUND`].
const DENSE: &[Form] = &[
    (&["://"], r#"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@'"<>]{0,80}:([^\s/'"@<>]{8,200})@"#),
    (
        &["authorization"],
        r"(?i:authorization)[\x22']?\s*[:=]\s*[\x22']?(?i:bearer|token|basic)\s+([A-Za-z0-9._~+/=-]{16,})",
    ),
    // A constant of PHP, and a setting of .NET.
    (
        &["define("],
        r"define\(\s*[\x22'][A-Za-z0-9_]{0,60}(?:PASSWORD|PASSWD|SECRET|TOKEN|KEY|SALT)[\x22']\s*,\s*[\x22']([^\s\x22']{16,200})[\x22']",
    ),
    (
        &["<add"],
        r"(?i)<add\s+(?:key|name)\s*=\s*\x22[^\x22]{0,80}(?:secret|password|passwd|pwd|token|api[-_]?key|accesskey|privatekey)\x22\s+value\s*=\s*\x22([^\s\x22]{16,200})\x22",
    ),
];

/// Signs of tokens that ordinary contents have too.
const COMMON: &[&str] = &["cio", "oy2", "key-", "-us", "sk", "eyj", "aaaaaaaaa", ".", "8q~", "1//0", "pat"];

/// Parts of names whose generated values are no secrets.
const PLAIN_NAMES: &[&str] =
    &["public", "hash", "cache", "primary", "foreign", "commit", "checksum", "digest", "integrity"];

/// A form that is searched for.
struct ContentForm {
    signs: &'static [&'static str],
    secret: Regex,
    /// True if the secret must look generated.
    is_dense: bool,
}

/// Forms that are searched for only where one of their signs is.
struct Forms {
    /// Any of the signs. One pass finds them: most contents have few.
    sign: Regex,
    each: Vec<ContentForm>,
}

impl Forms {
    /// Compiles forms. `lead` is put before each pattern.
    fn compile(lead: &str, forms: impl Iterator<Item = (Form, bool)>) -> Option<Forms> {
        let mut each = Vec::new();
        for ((signs, pattern), is_dense) in forms {
            // A content may be any bytes.
            let whole = if lead.is_empty() { format!("(?-u){pattern}") } else { format!("(?-u){lead}({pattern})") };
            each.push(ContentForm { signs, secret: Regex::new(&whole).ok()?, is_dense });
        }
        let signs: Vec<String> = each.iter().flat_map(|form| form.signs).map(|sign| regex::escape(sign)).collect();
        let sign = Regex::new(&format!("(?i-u){}", signs.join("|"))).ok()?;
        Some(Forms { sign, each })
    }

    /// Returns the forms of which a sign is in the content.
    fn signalled(&self, content: &[u8]) -> Vec<&ContentForm> {
        let (mut found, mut from) = (vec![false; self.each.len()], 0);
        while let Some(at) = self.sign.find_at(content, from).map(|sign| sign.start()) {
            let rest = &content[at..];
            for (form, is_found) in self.each.iter().zip(&mut found) {
                let is_here =
                    |sign: &&str| rest.get(..sign.len()).is_some_and(|text| text.eq_ignore_ascii_case(sign.as_bytes()));
                *is_found = *is_found || form.signs.iter().any(is_here);
            }
            // The next sign may begin within this one.
            from = at + 1;
        }
        self.each.iter().zip(found).filter_map(|(form, is_found)| is_found.then_some(form)).collect()
    }
}

/// The forms of tokens, which begin at the start of a word, and all others. A test compiles them: none is left out.
static FORMS: LazyLock<Vec<Forms>> = LazyLock::new(|| {
    let is_rare = |(signs, _): &&Form| !signs.iter().any(|sign| COMMON.contains(sign));
    let tokens = TOKENS.iter().filter(is_rare).map(|form| (*form, false)).chain(LOOSE.iter().map(|form| (*form, true)));
    let word = "(?:^|[^A-Za-z0-9_])";
    let others = AROUND.iter().map(|form| (*form, false)).chain(DENSE.iter().map(|form| (*form, true)));
    [Forms::compile(word, tokens), Forms::compile("", others)].into_iter().flatten().collect()
});

/// The order of bytes in a text of UTF-16.
#[derive(Clone, Copy)]
enum Utf16 {
    Little,
    Big,
}

impl Utf16 {
    /// Returns the order that the mark at the beginning of a content gives; `None` for other contents.
    fn of(content: &[u8]) -> Option<Utf16> {
        match content {
            [0xff, 0xfe, ..] => Some(Utf16::Little),
            [0xfe, 0xff, ..] => Some(Utf16::Big),
            _ => None,
        }
    }

    /// Returns a text as UTF-8.
    fn decode(self, text: &[u8]) -> Vec<u8> {
        let unit = |pair: &[u8]| match self {
            Utf16::Little => u16::from_le_bytes([pair[0], pair[1]]),
            Utf16::Big => u16::from_be_bytes([pair[0], pair[1]]),
        };
        let units: Vec<u16> = text.chunks_exact(2).map(unit).collect();
        String::from_utf16_lossy(&units).into_bytes()
    }
}

/// Returns a content in the form in which secrets are found in it: a text of UTF-16 with a byte order mark becomes one of UTF-8.
pub fn searched(content: &[u8]) -> Cow<'_, [u8]> {
    Utf16::of(content).map_or(Cow::Borrowed(content), |order| Cow::Owned(order.decode(content)))
}

/// Searches a content that is written to it.
#[derive(Default)]
pub struct ContentSearch {
    pending: Vec<u8>,
    /// The order of bytes, once the first piece was searched, if the content is a text of UTF-16.
    order: Option<Utf16>,
    is_begun: bool,
    found: Vec<Vec<u8>>,
}

impl ContentSearch {
    /// Returns the secrets, each once and at most 16.
    pub fn found(mut self) -> Vec<Vec<u8>> {
        self.search(0);
        self.found
    }

    /// Searches what is pending, and keeps its last bytes.
    fn search(&mut self, kept: usize) {
        if !self.is_begun {
            (self.order, self.is_begun) = (Utf16::of(&self.pending), true);
        }
        let decoded = self.order.map(|order| order.decode(&self.pending));
        for secret in secrets(decoded.as_deref().unwrap_or(&self.pending)) {
            if self.found.len() < MOST && !self.found.contains(&secret) {
                self.found.push(secret);
            }
        }
        let done = self.pending.len().saturating_sub(kept);
        // The next piece begins with a whole unit of UTF-16.
        self.pending.drain(..if self.order.is_some() { done & !1 } else { done });
    }
}

impl Write for ContentSearch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE {
            self.search(SHARED);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn secrets(content: &[u8]) -> Vec<Vec<u8>> {
    let mut secrets = Vec::new();
    for form in FORMS.iter().flat_map(|forms| forms.signalled(content)) {
        let found = form.secret.captures_iter(content).filter_map(|found| found.get(1));
        let is_one =
            |secret: &str| !is_reference(secret) && !is_stand_in(secret) && (!form.is_dense || is_generated(secret));
        secrets.extend(found.map(|found| found.as_bytes()).filter(|found| is_text(found, is_one)).map(<[u8]>::to_vec));
    }
    // A program has no names that a person gave.
    if !content.iter().take(8000).any(|byte| *byte == 0) {
        let lines = content.split(|byte| *byte == b'\n').filter(|line| line.len() < LONG_LINE && may_name(line));
        secrets.extend(lines.flat_map(named));
    }
    secrets
}

/// Returns true if a line may give a generated value to a name. Few lines do, and reading the names takes long.
fn may_name(line: &[u8]) -> bool {
    let is_value = |run: &[u8]| {
        let has = |is_one: fn(&u8) -> bool| run.iter().any(is_one);
        let is_hex = || run.iter().filter(|byte| byte.is_ascii_digit()).count() >= 3;
        run.len() >= VALUE && (is_hex() || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase))
    };
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    line.iter().any(|byte| matches!(byte, b'=' | b':')) && line.split(is_end).any(is_value)
}

fn is_text(bytes: &[u8], holds: impl Fn(&str) -> bool) -> bool {
    std::str::from_utf8(bytes).is_ok_and(holds)
}

/// Returns the generated values that a line gives to names that say secret.
fn named(line: &[u8]) -> Vec<Vec<u8>> {
    let line = String::from_utf8_lossy(line);
    let mut spans = Spans::new();
    names::find(&line, &mut spans);
    let value = |span: Range<usize>| {
        let (name, value) = (name_at_end(&line[..span.start]), line[span].trim_matches(['\'', '"', '\\']));
        let is_secret = is_generated(value) || is_random_uuid(value) && names::may_be_uuid(name);
        (value.len() >= VALUE && is_secret && !is_stand_in(value) && !is_plain_name(name)).then(|| value.to_owned())
    };
    spans.into_iter().filter_map(value).map(String::into_bytes).collect()
}

/// Returns the name at the end of the text before a value.
fn name_at_end(before: &str) -> &str {
    let end = before.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    end.rsplit(|c: char| !is_part(c)).next().unwrap_or_default()
}

/// Returns true for a name whose generated values are no secrets.
fn is_plain_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // `"src/token.rs": "9f86…"` is the hash of a file.
    FILE_ENDINGS.iter().any(|end| name.ends_with(end)) || PLAIN_NAMES.iter().any(|part| name.contains(part))
}

/// The endings of names of files, of which lists give hashes.
const FILE_ENDINGS: &[&str] = &[
    ".rs", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".css", ".py", ".go", ".c", ".h", ".java", ".rb", ".php",
    ".json", ".html", ".svg", ".png", ".md", ".map", ".toml", ".yml", ".yaml",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &[u8]) -> Vec<String> {
        let mut search = ContentSearch::default();
        search.write_all(content).unwrap();
        search.found().iter().map(|secret| String::from_utf8_lossy(secret).into_owned()).collect()
    }

    #[test]
    fn secrets_are_found_in_contents_and_their_twins_are_not() {
        for (content, secret) in [
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb64PLANTED0123456789\n-----END", "b64PLANTED0123456789"),
            ("k = \"-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA\\n\"", "MIIEpAIBAAKCAQEA"),
            ("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMHcCAQEEIAAAAAA", "MHcCAQEEIAAAAAA"),
            ("aws = 'AKIAIOSFODNN7EXAMPLE'", "AKIAIOSFODNN7EXAMPLE"),
            ("stripe(\"sk_live_a1b2c3d4e5f6\")", "sk_live_a1b2c3d4e5f6"),
            ("do = dop_v1_9f86d081884c7d659a2feaa0c55ad015", "dop_v1_9f86d081884c7d659a2feaa0c55ad015"),
            ("t = abcdefghij1234.atlasv1.abcdefghijklmnopqrst", "abcdefghij1234.atlasv1.abcdefghijklmnopqrst"),
            ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
            ("url: postgres://app:Zk3v9QpL2mX8@db:5432/x", "Zk3v9QpL2mX8"),
            ("API_TOKEN=9f86d081884c7d659a2feaa0c55ad015", "9f86d081884c7d659a2feaa0c55ad015"),
            ("  \"client_secret\": \"GOCSPX-a1b2c3d4e5f6g7h8\",", "GOCSPX-a1b2c3d4e5f6g7h8"),
            ("export DB_PASSWORD=\"q8Zr4Lw0Xc7Nv2Bt\"", "q8Zr4Lw0Xc7Nv2Bt"),
            ("postgres://app:hTqWvbXsKd4mRzPc@db/x", "hTqWvbXsKd4mRzPc"),
            ("DB_PASSWORD=hTqWvbXsKd4mRzPc", "hTqWvbXsKd4mRzPc"),
            ("const apiKey = \"hTqWvbXsKd4mRzPcLfYn\";", "hTqWvbXsKd4mRzPcLfYn"),
            ("HEROKU_API_KEY=9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"),
            ("\"client_secret\": \"9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d\",", "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d"),
            ("DB_PASSWORD='q8!Zr$4Lw%0Xc7Nv'", "q8!Zr$4Lw%0Xc7Nv"),
            ("define('DB_PASSWORD', 'q8!Zr$4Lw%0Xc7Nv');", "q8!Zr$4Lw%0Xc7Nv"),
            ("<add key=\"ApiSecret\" value=\"q8Zr4Lw0Xc7Nv2Bt\" />", "q8Zr4Lw0Xc7Nv2Bt"),
            (
                "    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo",
                "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo",
            ),
            ("  tls.key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUV2"),
            ("Authorization: FlyV1 fm2_lJPECAAAAAAACqKjxBDQ4f9Zr0Xc7Nv2Bt", "fm2_lJPECAAAAAAACqKjxBDQ4f9Zr0Xc7Nv2Bt"),
            (
                "ops_eyJzaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSJ9",
                "ops_eyJzaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSJ9",
            ),
            (
                "EZAK0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijAB",
                "EZAK0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijAB",
            ),
            ("fb = EAACEdEose0cBA0123456789abcdefghij", "EAACEdEose0cBA0123456789abcdefghij"),
            ("dp.pt.a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8i9j0", "dp.pt.a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8i9j0"),
            ("fo1_a1b2c3d4e5f6g7h8i9j0", "fo1_a1b2c3d4e5f6g7h8i9j0"),
        ] {
            assert_eq!(found(content.as_bytes()), [secret], "{content}");
            let binary = [b"\0\xff".as_slice(), content.as_bytes()].concat();
            assert!(
                ["PASSWORD", "API_TOKEN", "_API_KEY", "apiKey", "client_secret"]
                    .iter()
                    .any(|name| content.contains(name))
                    || !found(&binary).is_empty(),
                "{content}"
            );
        }
        for twin in [
            "if text.startswith('-----BEGIN RSA PRIVATE KEY-----'):",
            "header = \"-----BEGIN PRIVATE KEY-----\\n\" + body",
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC",
            "-----BEGIN CERTIFICATE-----\nMIIDXTCCAkWgAwIBAgIJAJC1",
            "postgres://user:password@localhost/db",
            "token = os.environ['GITHUB_TOKEN']",
            "password: correct-horse-battery-staple",
            "API_TOKEN=${API_TOKEN:-none}",
            "\"integrity\": \"sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
            "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "secret = get_secret('projects/1234567890/secrets/x')",
            "AKIA is the prefix of a key",
            "SLACK_TOKEN=xoxb-your-bot-token",
            "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "AWS_ACCESS_KEY_ID=AKIAXXXXXXXXXXXXXXXX",
            "key: sk-ant-your-api-key-here",
            "int sbp_management_agent_register(void);",
            "{\"files\":{\"src/token.rs\":\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}}",
            "\"partition_token\": \"9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d\"",
            "content-hash = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
            "    \"content-hash\": \"9f86d081884c7d659a2feaa0c55ad015\",",
            "checksum = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
            "  checksum: 10c0/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "    resolution: {integrity: sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c1==}",
            "FROM node:20@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "      sha256: \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
            "public_key = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
            "cache_key: 9f86d081884c7d659a2feaa0c55ad015",
            "primary_key = user_2024_account_0001",
            "const token = tokens[index1234567890abc];",
            "token_endpoint: https://login.example.org/oauth2/v2.0/token123",
            "  \"etag\": \"9f86d081884c7d659a2feaa0c55ad015\"",
            "git_commit_hash: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "author: 1234567890abcdef1234 <a@example.org>",
            "<script src=\"a.js?v=9f86d081884c7d659a2f\" integrity=\"sha384-9f86d081884c7d659a2feaa0c55ad015\">",
            "password_hash_rounds = 1000000000000001",
            "keyboard = layout_2024_compact_0001",
            "password: changeme",
            "DB_PASSWORD=${DB_PASSWORD}",
            "postgres://app:${DB_PASSWORD_V2}@db:5432/x",
            "request_id: 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d",
            "API_KEY=00000000-0000-0000-0000-000000000000",
            "API_KEY=YourApiKeyGoesHereX7Zq9",
            "accessToken: OAuth2TokenResponse,",
            "const secret = AwsS3SecretProvider.forBucket1;",
            "\"password\": \"^[A-Za-z0-9!@#$%]{8,64}$\"",
            "define('DB_PASSWORD', 'password_here_please');",
            "define('AUTH_KEY', 'put your unique phrase here');",
            "<add key=\"SecretProvider\" value=\"q8Zr4Lw0Xc7Nv2Bt\" />",
            "<add key=\"ApiSecret\" value=\"#{ApiSecret1OfOctopus}\" />",
            "    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
            "fm2_short ops_eyJ EZAK EAACEdEose0cBA dp.pt. fo1_",
            "dp.sa.foo_bar_baz_qux_quux_corge",
        ] {
            assert_eq!(found(twin.as_bytes()), Vec::<String>::new(), "{twin}");
        }
    }

    #[test]
    fn texts_of_utf16_are_searched() {
        let text = format!("\u{feff}x = 1\r\n{}DB_PASSWORD=q8Zr4Lw0Xc7Nv2Bt\r\n", "a line\r\n".repeat(PIECE / 16));
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for content in [little, big] {
            assert_eq!(found(&content), ["q8Zr4Lw0Xc7Nv2Bt"]);
            // In pieces of an odd length.
            let mut search = ContentSearch::default();
            content.chunks(PIECE - 7).for_each(|piece| search.write_all(piece).unwrap());
            assert_eq!(search.found(), [b"q8Zr4Lw0Xc7Nv2Bt"]);
            assert!(searched(&content).ends_with(b"DB_PASSWORD=q8Zr4Lw0Xc7Nv2Bt\r\n"));
        }
    }

    #[test]
    fn every_form_compiles() {
        let rare = TOKENS.iter().filter(|(signs, _)| !signs.iter().any(|sign| COMMON.contains(sign))).count();
        let forms: Vec<usize> = FORMS.iter().map(|forms| forms.each.len()).collect();
        assert_eq!(forms, [rare + LOOSE.len(), AROUND.len() + DENSE.len()]);
        assert!(rare > 40, "{rare}");
    }

    #[test]
    fn a_secret_between_two_pieces_is_found_once() {
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let mut search = ContentSearch::default();
        let filler = vec![b'.'; PIECE - 10];
        search.write_all(&filler).unwrap();
        token.bytes().for_each(|byte| search.write_all(&[byte]).unwrap());
        search.write_all(&filler).unwrap();
        assert_eq!(search.found(), [token.as_bytes()]);
    }
}
