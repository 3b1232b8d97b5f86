//! Secrets in commands: what reaches checkpoints, logs and other machines.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::support::{Lab, Sidecar};

/// The shapes of `tests/data/secrets.txt`: what they are, and the secrets in them.
fn shapes() -> Vec<(String, Vec<String>)> {
    let table = include_str!("../data/secrets.txt");
    let lines = table.lines().filter_map(|line| line.strip_prefix("! "));
    lines
        .map(|line| {
            let line = line.replace('⏎', "\n");
            let secrets = line.split('«').skip(1).map(|part| part.split('»').next().unwrap());
            let plain = |secret: &str| secret.trim_matches(['\'', '"', '\\', '\n']).to_owned();
            (line.replace(['«', '»'], ""), secrets.map(plain).collect())
        })
        .collect()
}

/// Every file below a directory that holds a text.
fn holding(dir: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, text, found);
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn no_shape_reaches_a_checkpoint_or_a_file() {
    let lab = Lab::new();
    lab.set("guard: action\nretention: {enabled: false}\n");
    lab.write("a", "0\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let hello =
        json!({"type": "hello", "protocol": 1, "client": "TOKEN=hunter2clientq", "session": "PASS=hunter2sessionq"});
    sidecar.ask(hello);
    // A secret of its own each, so that it can be looked for.
    let marked: Vec<(String, String)> = shapes()
        .into_iter()
        .enumerate()
        .filter_map(|(n, (text, secrets))| {
            let word = format!("hunter2{n:04}q");
            let at = secrets.iter().position(|secret| secret == "hunter2")?;
            let _ = at;
            Some((text.replace("hunter2", &word), word))
        })
        .collect();
    assert!(marked.len() > 70, "{} shapes", marked.len());
    for (n, (command, _)) in marked.iter().enumerate() {
        lab.write("a", format!("{n}\n"));
        sidecar.ask(json!({"type": "shell.before", "command": format!("rm a; {command}")}));
    }
    sidecar.ask(json!({"type": "run.start", "run": "r", "goal": "log in with --password hunter2goalq"}));
    sidecar.ask(json!({"type": "codon.start", "codonId": "c", "name": "deploy TOKEN=hunter2codonq"}));
    let ended = sidecar.ask(json!({"type": "codon.complete", "codonId": "c", "reason": "PASS=hunter2endq"}));
    assert_eq!(ended["ok"], true, "{ended}");
    sidecar.ask(json!({"type": "checkpoint.create", "label": "vault login hunter2labelq"}));
    sidecar.ask(json!({"type": "run.start", "run": "PASS=hunter2runq", "parent": "PASS=hunter2parentq"}));
    for (turn, id) in [("TOKEN=hunter2turnq", "PASS=hunter2idq"), ("TOKEN=hunter3turnq", "PASS=hunter3idq")] {
        sidecar.ask(json!({"type": "turn.start", "turn": turn}));
        lab.write("a", &turn[9..12]);
        let taken = sidecar.ask(json!({"type": "shell.before", "command": "rm a; psql -c 'DROP TABLE t'"}));
        assert_eq!(taken["checkpoint"]["status"], "taken", "turns whose names differ by a secret are two: {taken}");
        sidecar.ask(json!({"type": "codon.start", "codonId": id}));
        lab.write("a", &id[8..14]);
        let ended = sidecar.ask(json!({"type": "codon.complete", "codonId": id}));
        assert_eq!(ended["ok"], true, "{ended}");
    }
    assert_eq!(sidecar.finish(), 0);
    lab.piton(&["checkpoint", "zip -P hunter2typedq"]);
    let listed = lab.piton(&["list", "--json", "--all", "-n", "1000"]).stdout;
    assert!(listed.contains("before shell: rm a; "), "{listed}");
    let messages = lab.store_git(&["log", "--all", "--format=%B"]).unwrap_or_default();
    let names = ["client", "session", "run", "parent", "turn", "id", "goal", "codon", "end", "label", "typed"];
    let extra = names.map(|name| format!("hunter2{name}q"));
    for word in marked.into_iter().map(|(_, word)| word).chain(extra) {
        assert!(!listed.contains(&word) && !messages.contains(&word), "{word} is told");
        let mut found = Vec::new();
        holding(&lab.home, &word, &mut found);
        assert!(found.is_empty(), "{word} stands in {found:?}");
    }
}

/// Has a checkpoint's message be that of an older version, which knew fewer secrets.
fn told_by_an_older_version(lab: &Lab, name: &str) -> Option<()> {
    let text = lab.store_git(&["cat-file", "-p", name])?;
    let text = text.replace("harmless", "vault login hunter2old");
    assert!(text.contains("hunter2old"), "{text}");
    let mut command = lab.command("git", &lab.work);
    command.arg("--git-dir").arg(lab.store()).args(["hash-object", "-t", "commit", "-w", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let id = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    lab.store_git(&["update-ref", name, id.trim()])?;
    Some(())
}

#[test]
fn push_withholds_messages_that_hold_secrets() {
    let lab = Lab::new();
    let Some(_) = lab.store_git(&["version"]) else { return };
    lab.write("a", "1\n");
    lab.take("harmless");
    lab.write("a", "2\n");
    lab.take("another");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "protocol": 1, "client": "test"}));
    sidecar.ask(json!({"type": "run.start", "run": "told"}));
    sidecar.ask(json!({"type": "codon.start", "codonId": "c", "name": "harmless"}));
    lab.write("a", "3\n");
    sidecar.ask(json!({"type": "codon.end", "codonId": "c"}));
    assert_eq!(sidecar.finish(), 0);
    let workspace = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    told_by_an_older_version(&lab, &format!("refs/piton/{workspace}/manual/1")).unwrap();
    let branch = format!("refs/heads/{workspace}/told");
    let typed = lab.store_git(&["rev-list", &branch]).unwrap().lines().count();
    assert!(typed >= 1);
    let remote = lab.root().join("remote.git");
    assert!(lab.command("git", &lab.work).args(["init", "-q", "--bare"]).arg(&remote).status().unwrap().success());
    told_by_an_older_version(&lab, &branch).unwrap();
    let sent = lab.piton(&["push", remote.to_str().unwrap(), "--json"]);
    assert_eq!(sent.code, 4, "{sent:?}");
    let withheld = sent.json()["withheld"].as_array().unwrap().clone();
    let what: Vec<&str> = withheld.iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert!(
        what.contains(&"checkpoint 1") && what.contains(&"run told") && !what.contains(&"checkpoint 2"),
        "{sent:?}"
    );
    assert!(withheld.iter().all(|it| it["why"].as_str().unwrap().contains("message")), "{sent:?}");
    let refused = lab.piton(&["git", "push", remote.to_str().unwrap(), "HEAD:refs/heads/x"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    let mut found = Vec::new();
    holding(&remote, "hunter2old", &mut found);
    assert!(found.is_empty());
    let text = lab.piton(&["push", remote.to_str().unwrap()]);
    assert!(text.stdout.contains("--with-secrets"), "{text:?}");
    let all = lab.piton(&["push", remote.to_str().unwrap(), "--with-secrets", "--json"]);
    assert_eq!((all.code, all.json()["withheld"].as_array().map(Vec::len)), (0, Some(0)), "{all:?}");
}
