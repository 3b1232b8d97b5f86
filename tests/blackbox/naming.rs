//! Names of checkpoints: numbers, ids, labels and `@{n}`, as people type them.

use serde_json::json;

use crate::support::{Lab, Sidecar, code, id_of, short};
use crate::turns::Agent;

/// The number of the checkpoint that a selector names.
fn named(lab: &Lab, selector: &str) -> u64 {
    lab.piton(&["show", selector, "--json"]).json()["n"].as_u64().unwrap_or_else(|| panic!("{selector} names nothing"))
}

#[test]
fn a_word_of_digits_alone_is_always_a_number() {
    let lab = Lab::new();
    // About one id in seven begins with four digits.
    let (n, id) = (0..400)
        .find_map(|round| {
            lab.write("a.txt", format!("{round}"));
            let n = lab.take(&format!("round {round}"));
            let id = id_of(&lab, n);
            id[..4].bytes().all(|byte| byte.is_ascii_digit()).then_some((n, id))
        })
        .expect("no id of 400 begins with four digits");
    let number: u64 = id[..4].parse().unwrap();
    if number > n {
        let output = lab.piton(&["show", &id[..4]]);
        assert!(output.code == 3 && output.stderr.contains(&format!("`id:{}`", &id[..4])), "{id}: {output:?}");
    }
    assert_eq!(named(&lab, &format!("id:{}", &id[..4])), n);
    assert_eq!(named(&lab, "1"), 1);
}

#[test]
fn labels_are_found_or_refused_when_they_are_made() {
    let lab = Lab::new();
    lab.write("a.txt", "one");
    let first = lab.take("café");
    assert_eq!(named(&lab, "café"), first);
    lab.write("a.txt", "two");
    let second = lab.take("café");
    assert_eq!(named(&lab, "café"), second, "of equal labels the newest");
    for good in ["fix: the parser", " blanks ", &"long ".repeat(100), "TOKEN=hunter2abc", "👩\u{200d}🔬 done"] {
        let n = lab.take(good);
        assert_eq!(named(&lab, good), n, "{good}");
    }
    let last = named(&lab, "@{0}");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let forms =
        ["12", "#7", "@{3}", "id:abcd", "1234567", "run:codon:completed", "run:codon", "cafe", "DEADBEEF", "12ab"];
    let words = ["t-3", "o-1", "g-7", "latest", "yesterday", "10m", "13:20", "2026-01-31"];
    for bad in forms.into_iter().chain(words).chain(["", " ", "n\nl", "\u{1b}[31m"]) {
        for args in [["--json", "checkpoint", bad].as_slice(), &["--json", "checkpoint", "-m", bad]] {
            let output = lab.piton(args);
            assert_eq!((output.error().as_str(), output.code), ("bad-request", 2), "{bad:?}: {output:?}");
        }
        let reply = sidecar.ask(json!({"type": "checkpoint.create", "label": bad}));
        assert_eq!((code(&reply), &reply["error"]["field"]), ("bad-request", &json!("label")), "{bad:?}: {reply}");
    }
    assert_eq!(sidecar.finish(), 0);
    assert_eq!(named(&lab, "@{0}"), last, "a refused label takes nothing");
}

#[test]
fn runs_have_the_names_of_their_clients_in_selectors_too() {
    let lab = Lab::new();
    lab.write("a.txt", "one");
    let mut sidecar = Sidecar::start(&lab, &[]);
    for run in ["Big Run", "urn:x", "plain"] {
        sidecar.ask(json!({"type": "run.start", "run": run}));
        sidecar.ask(json!({"type": "codon.start", "codonId": "build"}));
        let reply = sidecar.ask(json!({"type": "codon.fail"}));
        let n = reply["checkpoint"]["n"].as_u64().unwrap();
        let id = sidecar.ask(json!({"type": "run.list"}))["runs"].as_array().unwrap().last().unwrap()["run"].clone();
        for name in [run, id.as_str().unwrap()] {
            for selector in ["build", "build:error", "build:end"].map(|rest| format!("{name}:{rest}")) {
                assert_eq!(named(&lab, &selector), n, "{selector}");
                let shown = sidecar.ask(json!({"type": "checkpoint.show", "sha": selector}));
                assert_eq!(shown["checkpoint"]["n"], n, "{selector}: {shown}");
            }
            let listed = sidecar.ask(json!({"type": "checkpoint.list", "run": name}));
            assert_eq!(listed["checkpoints"][0]["n"], n, "{name}: {listed}");
            assert_eq!(lab.piton(&["list", "--run", name, "--json"]).json()["checkpoints"][0]["n"], n);
            // A path of a codon's checkpoint, and the cause where there is none.
            assert_eq!(lab.piton(&["show", &format!("{name}:build:a.txt")]).stdout, "one");
            let table = [
                (format!("{name}:build:completed"), "no-such-type"),
                (format!("{name}:build:nowhere"), "no-such-path"),
                (format!("{name}:test"), "no-such-codon"),
                (format!("no {name}:build"), "no-such-checkpoint"),
            ];
            for (selector, expected) in table {
                assert_eq!(lab.piton(&["show", &selector, "--json"]).error(), expected, "{selector}");
            }
            for word in ["completed", "bogus"] {
                let output = lab.piton(&["restore", &format!("{name}:build:{word}"), "--preview", "--json"]);
                assert_eq!(output.error(), "no-such-type", "{name} {word}: {output:?}");
            }
        }
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_label_that_retention_dropped_says_when_and_by_which_rule() {
    let lab = Lab::new();
    lab.set("retention: {labelled: 1}\n");
    let mut ids = Vec::new();
    for label in ["first try", "second try", "third try"] {
        lab.write("a.txt", label);
        ids.push(id_of(&lab, lab.take(label)));
    }
    for selector in ["first try", "1", "#1", &ids[0], &short(&ids[0], 12)] {
        let output = lab.piton(&["show", selector]);
        let text = &output.stderr;
        assert!(
            output.code == 3 && text.contains("checkpoint 1 (`first try`) was pruned on "),
            "{selector}: {output:?}"
        );
        assert!(text.contains("by `retention.labelled`"), "{output:?}");
    }
    assert_eq!(named(&lab, "third try"), 3);
}

#[test]
fn the_newest_is_the_newest_that_somebody_took() {
    let lab = Lab::new();
    for content in ["one", "two"] {
        lab.write("a.txt", content);
        lab.take(content);
    }
    lab.write("a.txt", "three");
    lab.restore(1, &[]);
    assert_eq!(lab.read("a.txt"), "one");
    assert_eq!((named(&lab, "@{0}"), named(&lab, "@{1}")), (2, 1), "what the restore saved first is for undo");
    let shown = lab.piton(&["show", "--json"]).json();
    assert_eq!(shown["n"], 2);
}

#[test]
fn find_tells_absent_from_not_captured() {
    let lab = Lab::new();
    lab.write("a.txt", "a");
    lab.write(".env", "TOKEN=1");
    lab.write("src/m.rs", "m");
    lab.take("first");
    lab.write(".gitignore", "*.log\n");
    lab.write("x.log", "log");
    lab.write("late.txt", "late");
    lab.take("second");
    lab.write("a.txt", "b");
    assert_eq!(lab.piton(&["checkpoint", "third", "--", "a.txt"]).code, 0);
    let presences = |path: &str| -> Vec<(String, u64)> {
        let found = lab.piton(&["find", path, "--json"]).json();
        let versions = found["versions"].as_array().unwrap().clone();
        let number = |version: &serde_json::Value| version["checkpoints"][0].as_u64().unwrap();
        versions.iter().map(|one| (one["presence"].as_str().unwrap().to_owned(), number(one))).collect()
    };
    let list = |items: &[(&str, u64)]| items.iter().map(|(word, n)| ((*word).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(presences("late.txt"), list(&[("held", 2), ("absent", 1)]), "a partial checkpoint says nothing of it");
    assert_eq!(presences(".env"), list(&[("held", 1)]));
    assert_eq!(presences("x.log"), list(&[("held", 2), ("absent", 1)]));
    lab.set("secrets: on-target\n");
    lab.write("key.pem", "k");
    lab.take("without secrets");
    assert_eq!(presences("key.pem")[0].0, "not-captured");
    assert_eq!(presences("nowhere"), list(&[]));
    let why = lab.piton(&["find", "key.pem"]);
    assert_eq!((why.code, why.stdout.contains("secret")), (3, true), "{why:?}");
    let why = lab.piton(&["find", "late.txt"]);
    assert!(why.code == 0 && why.stdout.contains("absent  in checkpoint 1"), "{why:?}");
}

#[test]
fn a_checkpoint_of_some_paths_is_not_compared_beyond_them() {
    let lab = Lab::new();
    for path in ["a", "c", "d/b"] {
        lab.write(path, path);
    }
    lab.take("whole");
    assert_eq!(lab.piton(&["checkpoint", "part", "--", "d"]).code, 0);
    lab.write("d/b", "changed");
    lab.write("n", "new");
    let files = |args: &[&str]| {
        let all: Vec<&str> = ["diff"].into_iter().chain(args.iter().copied()).chain(["--json"]).collect();
        let items = lab.piton(&all).json()["files"]["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(files(&["2"]), ["d/b"]);
    assert_eq!(files(&["1", "2"]), [""; 0]);
    lab.take("later");
    assert_eq!(files(&["2", "3"]), ["d/b"]);
    assert_eq!(files(&["3", "2"]), ["d/b"]);
    assert_eq!(files(&["1", "3"]), ["d/b", "n"]);
}

#[test]
fn verbs_without_an_argument_mean_the_newest() {
    let lab = Lab::new();
    lab.write("a.txt", "one");
    lab.take("first");
    lab.write("a.txt", "two");
    lab.take("second");
    lab.write("a.txt", "three");
    let diff = lab.piton(&["diff"]);
    assert!(diff.code == 0 && diff.stdout.contains("-two") && diff.stdout.contains("+three"), "{diff:?}");
    let preview = lab.piton(&["restore", "--preview", "--json"]).json();
    assert_eq!(preview["target"]["n"], 2);
    let preview = lab.piton(&["rollback", "--preview", "--json"]).json();
    assert_eq!(preview["target"]["n"], 2);
    let unnamed = lab.piton(&["restore", "--yes"]);
    assert!(unnamed.code == 2 && unnamed.stderr.contains("`piton restore latest --yes`"), "{unnamed:?}");
    assert_eq!(lab.piton(&["restore", "latest", "--yes"]).code, 0);
    assert_eq!(lab.read("a.txt"), "two");
    let preview = lab.piton(&["restore", "--preview", "--json"]).json();
    assert_eq!(preview["target"]["n"], 1, "the newest is on the disk already");
    let refused = lab.piton(&["rollback", "1", "a.txt"]);
    assert!(refused.code == 2 && refused.stderr.contains("`piton restore 1 a.txt`"), "{refused:?}");
}

#[test]
fn moments_are_named_by_what_happened_then() {
    let lab = Lab::new();
    let mut agent = Agent::new(&lab, "s");
    lab.write("a.txt", "one\n");
    let first = lab.take("first");
    agent.start("fix the parser");
    let before = agent.ask(json!({"type": "shell.before", "command": "rm a.txt", "action": "1"}));
    std::fs::remove_file(lab.work.join("a.txt")).unwrap();
    agent.ask(json!({"type": "shell.after", "action": "1"}));
    agent.end();
    let run = lab.piton(&["list", "--turns", "--json"]).json()["turns"][0]["run"].as_str().unwrap().to_owned();
    assert_eq!(named(&lab, "latest"), named(&lab, "@{0}"), "{before}");
    assert_eq!(named(&lab, "0.001s"), named(&lab, "latest"));
    // The turn began with the files of the first checkpoint.
    for word in ["t-1", "latest"] {
        let diff = lab.piton(&["restore", word, "--preview", "--json"]).json();
        assert_eq!(diff["plan"]["create"]["items"][0]["path"], "a.txt", "{word}: {diff}");
    }
    assert!(lab.piton(&["show", &run, "--json"]).json()["run"] == run.as_str());
    for verb in [["diff", "t-1"], ["show", "t-1"]] {
        let shown = lab.piton(&verb);
        assert!(shown.code == 0 && shown.stdout.contains("-one") && shown.stdout.contains("a.txt"), "{shown:?}");
    }
    // By its turn, then by its path, then by the client's name of the turn.
    for word in ["t-1", "a.txt", "fix the parser"] {
        assert_eq!(lab.piton(&["undo", word, "--yes"]).code, 0, "{word}");
        assert_eq!(lab.read("a.txt"), "one\n", "{word}");
        assert_eq!(lab.piton(&["redo", "--yes"]).code, 0, "{word}");
        assert!(!lab.work.join("a.txt").exists(), "{word}");
    }
    // An operation: what was there before it.
    lab.write("a.txt", "two\n");
    assert_eq!(lab.piton(&["restore", &first.to_string(), "--yes"]).code, 0);
    let operation =
        lab.piton(&["undo", "--preview", "--json"]).json()["over"]["operation"].as_str().unwrap().to_owned();
    let shown = lab.piton(&["show", &format!("{operation}:a.txt")]);
    assert_eq!(shown.stdout, "two\n", "{shown:?}");
    assert_eq!(lab.piton(&["undo", &operation, "--yes"]).code, 0);
    assert_eq!(lab.read("a.txt"), "two\n");
    let stale = lab.piton(&["undo", &operation, "--yes", "--json"]);
    assert_eq!(stale.error(), "stale-selection", "{stale:?}");
    // A label of the same spelling makes the name of the run ambiguous.
    let labelled = lab.take(&run);
    let both = lab.piton(&["show", &run]);
    assert!(both.code == 2 && both.stderr.contains(&format!("a label (checkpoint {labelled}) and a run")), "{both:?}");
}

#[test]
fn a_word_that_names_nothing_or_two_things_is_refused_with_the_commands() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    lab.write("release", "a file\n");
    let n = lab.take("release");
    lab.write("a.txt", "two\n");
    let table: [(&[&str], &str, i32, &str); 10] = [
        (
            &["restore", "release", "--yes"],
            "ambiguous-checkpoint",
            2,
            "for the checkpoint, run `piton restore 1`; for the path, run `piton restore -- release`",
        ),
        (&["diff", "release"], "ambiguous-checkpoint", 2, "`piton diff -- release`"),
        (&["undo", "1"], "bad-request", 2, "`piton restore 1`"),
        (&["undo", "nothing-here"], "no-such-turn", 3, "`piton list --turns`"),
        (&["undo", "t-9"], "no-such-turn", 3, "`piton list --turns`"),
        (&["undo", "o-9"], "stale-selection", 5, "nothing left to undo"),
        (&["show", "o-9"], "no-such-checkpoint", 3, "`piton list`"),
        (&["show", "g-9"], "no-such-checkpoint", 3, "`piton list --git`"),
        (&["restore", "t-9", "--yes"], "no-such-checkpoint", 3, "`piton list --turns`"),
        (&["restore", "2020-01-31", "--yes"], "no-such-checkpoint", 3, "`piton list`"),
    ];
    for (args, code, exit, hint) in table {
        let all = [args, &["--json"]].concat();
        let output = lab.piton(&all);
        assert_eq!((output.error().as_str(), output.code), (code, exit), "{args:?}: {output:?}");
        assert!(lab.piton(args).stderr.contains(hint), "{args:?}: {:?}", lab.piton(args));
    }
    assert_eq!(lab.read("a.txt"), "two\n");
    lab.write("release", "changed\n");
    assert_eq!(lab.piton(&["restore", "--yes", "--", "release", "a.txt"]).code, 0);
    assert_eq!((lab.read("release").as_str(), lab.read("a.txt").as_str()), ("a file\n", "one\n"));
    assert_eq!(named(&lab, "release"), n);
}

#[test]
fn paths_count_from_the_working_directory() {
    let lab = Lab::new();
    lab.write("src/m.rs", "one");
    lab.write("m.rs", "root");
    lab.write("top.txt", "top");
    lab.take("first");
    lab.write("src/m.rs", "two");
    lab.write("m.rs", "changed");
    let src = lab.work.join("src");
    let shown = |what: &str| lab.piton_in(&src, &["show", what]).stdout;
    assert_eq!((shown("1:m.rs"), shown("1:../m.rs")), ("one".to_owned(), "root".to_owned()));
    assert_eq!((shown("1:top.txt"), shown("1:src/m.rs")), ("top".to_owned(), "one".to_owned()), "else from the root");
    let diff = lab.piton_in(&src, &["diff", "1", "m.rs", "--json"]).json();
    assert_eq!(diff["files"]["items"][0]["path"], "src/m.rs");
    assert_eq!(diff["files"]["total"], 1);
    let diff = lab.piton_in(&src, &["diff", "m.rs", "--json"]).json();
    assert_eq!(diff["files"]["total"], 1, "without a checkpoint the newest is meant");
    let listed = lab.piton_in(&src, &["list", "m.rs", "--json"]).json();
    assert_eq!(listed["checkpoints"].as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn what_does_not_exist_is_said() {
    let lab = Lab::new();
    lab.write("a.txt", "a");
    lab.take("first");
    let table: &[(&[&str], &str, i32)] = &[
        (&["list", "--run", "bogus"], "no-such-run", 3),
        (&["list", "nope"], "no-such-path", 3),
        (&["checkpoint", "--", "nope"], "no-such-path", 3),
        (&["diff", "1", "--", "nope"], "no-such-path", 3),
        (&["diff", "nope"], "no-such-checkpoint", 3),
        (&["show", "1:nope"], "no-such-path", 3),
        (&["restore", "1", "nope", "--yes"], "no-such-path", 3),
        (&["-w", "/nonexistent/x", "list"], "workspace-gone", 3),
    ];
    for (args, code, exit) in table {
        let all: Vec<&str> = ["--json"].into_iter().chain(args.iter().copied()).collect();
        let output = lab.piton(&all);
        assert_eq!((output.error().as_str(), output.code), (*code, *exit), "{args:?}: {output:?}");
    }
    let mut trust = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let fresh = lab.root().join("fresh");
    let said =
        trust.args(["config", "trust"]).env("PITON_HOME", &fresh).env("XDG_CONFIG_HOME", &fresh).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.code() == Some(3) && text.contains("there is no settings file"), "{text}");
    std::fs::remove_file(lab.work.join("a.txt")).unwrap();
    assert_eq!(lab.piton(&["checkpoint", "gone", "--", "a.txt"]).code, 0, "a path that a checkpoint holds may be gone");
    lab.write("b.txt", "b");
    let none = lab.piton(&["list", "--kind", "exit"]);
    assert!(none.code == 3 && none.stdout.contains("of kind exit"), "{none:?}");
}

#[test]
fn a_person_who_asks_the_hook_for_help_gets_it() {
    let lab = Lab::new();
    let help = lab.piton(&["hook", "--help"]);
    assert!(help.code == 0 && help.stdout.contains("Usage: piton hook"), "{help:?}");
    assert_eq!(lab.piton(&["status", "--json"]).json()["mishaps"], serde_json::json!([]));
    let off = lab.piton(&["off", "--for", "1h", "--json"]).json();
    assert!(off["guard"] == "off" && off["until"].is_string(), "{off}");
    let on = lab.piton(&["on", "--json"]).json();
    assert!(on["guard"] == "turn" && on["guardOff"].is_null(), "{on}");
}
