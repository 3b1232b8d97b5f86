//! Secrets that would leave the machine: no checkpoint with one is sent unless asked for. A name or a content gives it away.

use std::process::Command;

use super::support::{Lab, git};

/// A bare repository that is sent to.
struct Bare {
    url: String,
}

impl Bare {
    fn new(lab: &Lab, name: &str) -> Bare {
        let url = lab.root().join(name).to_str().unwrap().to_owned();
        git(lab, &["init", "-q", "--bare", &url]);
        Bare { url }
    }

    /// Returns all that it contains.
    fn everything(&self) -> Vec<u8> {
        let mut command = Command::new("git");
        command.args(["--git-dir", &self.url, "cat-file", "--batch-all-objects", "--batch"]);
        command.output().unwrap().stdout
    }
}

/// Files of which the content is a secret, with a word that is found in it.
fn secret_contents() -> Vec<(String, String, String)> {
    let mark = |n: usize| format!("PLANTED{n:02}a1b2c3d4e5f6");
    let forms: [fn(&str) -> String; 20] = [
        |mark| format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{mark}AAAAtz\n-----END OPENSSH PRIVATE KEY-----\n"),
        |mark| format!("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{mark}MIIE\n"),
        |mark| format!("key = \"-----BEGIN PRIVATE KEY-----\\n{mark}MIIE\\n\"\n"),
        |mark| format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{mark}lQOY\n"),
        |mark| format!("github = ghp_{mark}0123456789\n"),
        |mark| format!("github = 'github_pat_{mark}0123456789'\n"),
        |mark| format!("gitlab: glpat-{mark}\n"),
        |mark| format!("slack xoxb-{mark}\n"),
        |mark| format!("stripe(\"sk_live_{mark}\")\n"),
        |mark| format!("OpenAI.api_key = 'sk-proj-{mark}0123456789'\n"),
        |mark| format!("anthropic sk-ant-{mark}\n"),
        |mark| format!("hugging = hf_{mark}\n"),
        |mark| format!("//registry/:_authToken=npm_{mark}\n"),
        |mark| format!("google AIza{mark}0123456789\n"),
        |mark| format!("aws AKIA{}\n", mark.to_uppercase()),
        |mark| format!("url: postgres://app:{mark}@db.internal:5432/app\n"),
        |mark| format!("DB_PASSWORD={mark}\n"),
        |mark| format!("  \"client_secret\": \"{mark}\",\n"),
        |mark| format!("headers = {{'Authorization': 'Bearer {mark}'}}\n"),
        |mark| format!("hvs.{mark}\0\u{1}binary\n"),
    ];
    let file = |(n, form): (usize, &fn(&str) -> String)| {
        let content = form(&mark(n));
        let word = if content.contains(&mark(n)) { mark(n) } else { mark(n).to_uppercase() };
        (format!("c{n}/notes{n}.txt"), content, word)
    };
    forms.iter().enumerate().map(file).collect()
}

/// Files with the name of a secret, with a word that is in each.
fn secret_names() -> Vec<(String, String, String)> {
    let names = [
        ".env",
        "prod.env",
        ".env.local",
        "id_rsa",
        "id_ed25519",
        "server.key",
        "deploy_key",
        "credentials.json",
        "service-account.json",
        "secrets.yaml",
        ".npmrc",
        ".netrc",
        ".pgpass",
        "kubeconfig",
        "terraform.tfvars",
        "keystore.jks",
        "cert.p12",
        ".dev.vars",
        "wp-config.php",
        "client_secret.json",
    ];
    let file = |(n, name): (usize, &&str)| {
        (format!("n{n}/{name}"), format!("word-{n:02}-planted\n"), format!("word-{n:02}-planted"))
    };
    names.iter().enumerate().map(file).collect()
}

#[test]
fn forty_secrets_leave_by_no_door() {
    let lab = Lab::new();
    lab.write("a", "a\n");
    if git(&lab, &["init", "-q"]).is_none() {
        return;
    }
    let secrets: Vec<_> = secret_contents().into_iter().chain(secret_names()).collect();
    assert_eq!(secrets.len(), 40);
    git(&lab, &["add", "."]);
    git(&lab, &["commit", "-qm", "clean"]);
    lab.take("clean");
    let remote = Bare::new(&lab, "remote.git");
    let has = |text: &[u8], word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
    let mut kept = Vec::new();
    // Committed for a while, so that git shows them.
    for (path, content, _) in &secrets {
        lab.write(path, content);
        git(&lab, &["add", "-f", path]);
        git(&lab, &["commit", "-qm", "with a secret"]);
        let n = lab.take("with a secret");
        git(&lab, &["rm", "-q", path]);
        git(&lab, &["commit", "-qm", "without it"]);
        kept.push((n, path));
    }
    let sent = lab.piton(&["push", &remote.url]);
    assert_eq!(sent.code, 4, "{sent:?}");
    for (n, path) in kept {
        let place = if path.starts_with('c') { "in the content of " } else { "" };
        let line = format!("checkpoint {n} contains secrets: {place}`{path}`");
        assert!(sent.stdout.contains(&line), "{line}: {}", sent.stdout);
        let id = lab.piton(&["show", &n.to_string(), "--json"]).json()["id"].as_str().unwrap().to_owned();
        let refused = lab.piton(&["git", "archive", &id]);
        assert_eq!((refused.code, refused.stdout.as_str()), (5, ""), "{path}: {refused:?}");
        assert!(refused.stderr.contains(&format!("contains secrets: {place}`{path}`")), "{refused:?}");
    }
    for line in [&["git", "push", &remote.url, "--all"][..], &["git", "bundle", "create", "out.bundle", "--all"]] {
        let refused = lab.piton(line);
        assert!(refused.code == 5 && refused.stderr.contains("contains secrets: "), "{line:?}: {refused:?}");
    }
    let there = remote.everything();
    secrets.iter().for_each(|(path, _, word)| assert!(!has(&there, word), "{path} was sent"));
    assert!(!lab.work.join("out.bundle").exists() && has(&there, "clean"));
    // A clean tree is archived, though an old checkpoint has a secret.
    let clean = lab.piton(&["show", "1", "--json"]).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.piton(&["git", "archive", &clean]).code, 0);
    assert_eq!(lab.piton(&["push", &remote.url, "--with-secrets"]).code, 0);
    let there = remote.everything();
    secrets.iter().for_each(|(path, _, word)| assert!(has(&there, word), "{path} was not sent"));
    // Forgotten content withholds nothing.
    let paths: Vec<&str> = secrets.iter().map(|(path, ..)| path.as_str()).collect();
    let forgotten = lab.piton(&[&["forget", "--yes"][..], &paths].concat());
    assert!([0, 4].contains(&forgotten.code), "{forgotten:?}");
    let other = Bare::new(&lab, "other.git");
    let rest = lab.piton(&["push", &other.url]);
    assert_eq!(rest.code, 0, "{rest:?}");
}

#[test]
fn a_secret_that_every_clone_has_keeps_nothing_here() {
    let lab = Lab::new();
    let fixture = "token = 'ghp_0123456789abcdefghij0123456789'\n";
    lab.write("tests/fixture.py", fixture);
    if git(&lab, &["init", "-q"]).is_none() {
        return;
    }
    git(&lab, &["add", "."]);
    git(&lab, &["commit", "-qm", "one"]);
    let remote = Bare::new(&lab, "remote.git");
    lab.write("tests/fixture.py", format!("{fixture}more = 1\n"));
    lab.take("the same text");
    assert_eq!(lab.piton(&["push", &remote.url]).code, 0);
    lab.write("tests/fixture.py", format!("{fixture}mine = 'ghp_abcdefghij0123456789ABCDEFGHIJ'\n"));
    lab.take("another one");
    let sent = lab.piton(&["push", &remote.url]);
    assert!(sent.code == 4 && sent.stdout.contains("in the content of `tests/fixture.py`"), "{sent:?}");
}
