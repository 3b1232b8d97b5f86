use proptest::prelude::*;

use super::*;

/// Returns a shape as the table writes it: what it is, and what becomes of it.
fn shape(line: &str) -> (String, String) {
    let text = line.replace('⏎', "\n");
    let (mut expected, mut inside) = (String::new(), false);
    for c in text.chars() {
        match c {
            '«' => {
                inside = true;
                expected.push_str(MASK);
            }
            '»' => inside = false,
            c if !inside => expected.push(c),
            _ => {}
        }
    }
    (text.replace(['«', '»'], ""), expected)
}

#[test]
fn secrets_go_and_their_harmless_twins_stay() {
    let table = include_str!("../../../tests/data/secrets.txt");
    let (mut shapes, mut twins, mut wrong) = (0, 0, Vec::new());
    for line in table.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or_default();
        let (text, expected) = match kind {
            "!" => shape(rest),
            "=" => (rest.replace('⏎', "\n"), rest.replace('⏎', "\n")),
            _ => continue,
        };
        (shapes, twins) = if kind == "!" { (shapes + 1, twins) } else { (shapes, twins + 1) };
        let told = redact(&text);
        if told != expected || redact(&told) != told || holds_secret(&text) != (kind == "!") {
            wrong.push(format!("{line}\n  became {told}"));
        }
    }
    assert!(shapes >= 120 && twins >= shapes, "{shapes} shapes, {twins} twins");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_long_text_is_cut_and_a_cut_secret_goes_too() {
    let long = format!("{}PASSWORD=hunter2{}", "x ".repeat(LONGEST / 2 - 12), "y".repeat(2 * LONGEST));
    let told = redact(&long);
    assert!(told.len() < LONGEST && told.ends_with("PASSWORD=***…"), "{}", &told[told.len() - 40..]);
    let key = format!("echo '-----BEGIN PRIVATE KEY-----{}", "abcd\n".repeat(LONGEST));
    assert!(!redact(&key).contains("abcd"));
    // No letter is cut in two.
    assert!(redact(&"ä".repeat(LONGEST)).ends_with("ä…"));
}

proptest! {
    #[test]
    fn a_secret_goes_whatever_stands_around_it(words in proptest::collection::vec(0..WORDS.len(), 0..12), glue in "[ =:'\"|;\n-]{1,2}") {
        let text = words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(&glue);
        let once = redact(&text);
        prop_assert!(!once.contains("PASSWORD=hunter2hunter2"), "{}", text);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,80}") {
        redact(&text);
    }
}

const WORDS: &[&str] = &[
    "PASSWORD=hunter2hunter2",
    "Authorization:",
    "x",
    "--password",
    "\"token\"",
    "http://me",
    "hunter2@host",
    "mysql",
    "-p",
    "<<<",
    "<<EOF",
    "sudo -S",
    "echo",
    "'",
    "\"",
    "\\",
    "$(",
    ")",
    "***",
    "sk-",
    "ghp_",
    "0123456789abcdefghij",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    "ä",
    "…",
    "zip -P",
    "vault login",
    "kv put",
    "htpasswd -b",
    "set",
    "token",
    "@",
    "%",
    "&",
    "?key",
];
