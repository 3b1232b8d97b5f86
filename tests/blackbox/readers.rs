//! Readers of a damaged store: each answers as it would of a whole one, or says that something is damaged, exit 6.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::support::{Lab, Output, Sidecar};

/// A lab with a packed checkpoint and two of loose objects, and a restore that can be undone.
struct Place {
    lab: Lab,
    ids: Vec<String>,
}

impl Place {
    fn new() -> Place {
        let lab = Lab::new();
        lab.sh("mkdir many d; for i in $(seq 80); do echo $i > many/$i; done; echo one > f; echo one > d/x");
        lab.take("one");
        for label in ["two", "three"] {
            lab.sh(&format!("echo {label} > f; echo {label} > d/x"));
            lab.take(label);
        }
        for content in ["some\n", "other\n"] {
            lab.write("many/1", content);
            lab.restore(1, &["many"]);
        }
        let listed = lab.piton(&["list", "--json"]).json();
        let mut ids: Vec<(u64, String)> = Vec::new();
        for row in listed["checkpoints"].as_array().unwrap() {
            ids.push((row["n"].as_u64().unwrap(), row["id"].as_str().unwrap().to_owned()));
        }
        ids.sort();
        Place { ids: ids.into_iter().map(|(_, id)| id).collect(), lab }
    }

    /// The loose file of an object of checkpoint 2.
    fn loose(&self, of: &str) -> Option<PathBuf> {
        let id = self.lab.store_git(&["rev-parse", &format!("{}{of}", self.ids[1])])?;
        let (dir, file) = id.trim().split_at(2);
        Some(self.lab.store().join("objects").join(dir).join(file))
    }

    fn pack(&self, extension: &str) -> PathBuf {
        let packs = std::fs::read_dir(self.lab.store().join("objects/pack")).unwrap();
        packs
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|is| is == extension))
            .unwrap()
    }

    /// A file of the workspace's records.
    fn record(&self, name: &str) -> PathBuf {
        let dirs = std::fs::read_dir(self.lab.home.join("piton/workspaces")).unwrap();
        dirs.map(|entry| entry.unwrap().path()).next().unwrap().join(name)
    }

    fn leaf(&self, n: u64) -> PathBuf {
        let dirs = std::fs::read_dir(self.lab.store().join("refs/piton")).unwrap();
        dirs.map(|entry| entry.unwrap().path()).next().unwrap().join(format!("manual/{n}"))
    }

    /// Forgets what readers have noted, so that the next verb meets the damage itself.
    fn forget_notes(&self) {
        let _ = std::fs::remove_file(self.lab.store().join("piton-damaged"));
        let _ = std::fs::remove_dir_all(self.lab.root().join("out"));
    }

    fn ask(&self, verb: &str) -> Output {
        self.forget_notes();
        let words: Vec<&str> = verb.split(' ').filter(|word| !word.is_empty()).collect();
        self.lab.piton(&words)
    }
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x41;
    put(path, &bytes);
}

fn put(path: &Path, bytes: &[u8]) {
    // Objects are read-only.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

/// Every verb that reads. `doctor` and `status` are asked apart, since they look at more.
const VERBS: &[&str] = &[
    "list",
    "list --json",
    "list f",
    "list -n 1",
    "show 1",
    "show 2",
    "show 2 --json",
    "show 2:f",
    "show 2:f --json",
    "show 2:d",
    "show 2:d/x",
    "show two",
    "find f",
    "find f --json",
    "find d/x",
    "find nowhere",
    "diff 2",
    "diff 1 2",
    "diff 2 3 --stat",
    "diff 2 3 --json",
    "diff 2 f",
    "restore 2 --preview",
    "restore 2 f --preview --json",
    "restore 2 --to ../out --yes",
    "restore 2 f --to ../out --yes",
    "rollback 2 --preview",
    "undo --preview",
    "undo --preview --json",
    "redo --preview",
    "runs",
    "runs --json",
];

/// The looks at everything, which have to agree.
const LOOKS: &[&str] = &["", "status", "status --json", "doctor", "doctor --refs", "doctor --refs --json"];

/// One harm: its name, its act, verbs that must tell of it, and whether `status` sees it before its content was read.
type Harm = (&'static str, fn(&Place) -> Option<()>, &'static [&'static str], bool);

const OF_TWO: &[&str] =
    &["list", "show 2", "show two", "show 2:f", "diff 2", "restore 2 --preview", "find f", "rollback 2 --preview"];

const HARMS: &[Harm] = &[
    ("bad commit", |at| at.loose("").map(|path| flip(&path)), OF_TWO, true),
    ("missing commit", |at| at.loose("").map(|path| std::fs::remove_file(path).unwrap()), OF_TWO, true),
    ("bad tree", |at| at.loose("^{tree}").map(|path| flip(&path)), OF_TWO, true),
    ("missing tree", |at| at.loose("^{tree}").map(|path| std::fs::remove_file(path).unwrap()), OF_TWO, true),
    ("bad directory", |at| at.loose(":d").map(|path| flip(&path)), &["list", "show 2", "find d/x", "diff 2"], true),
    (
        "missing directory",
        |at| at.loose(":d").map(|path| std::fs::remove_file(path).unwrap()),
        &["list", "show 2", "find d/x", "diff 2"],
        true,
    ),
    ("bad blob", |at| at.loose(":f").map(|path| flip(&path)), &["list", "show 2:f", "find f", "diff 2"], false),
    (
        "cut blob",
        |at| at.loose(":f").map(|path| put(&path, b"x\x9c")),
        &["list", "show 2:f", "find f", "diff 2"],
        false,
    ),
    ("missing blob", |at| at.loose(":f").map(|path| std::fs::remove_file(path).unwrap()), OF_TWO, true),
    (
        "bad index",
        |at| {
            flip(&at.pack("idx"));
            Some(())
        },
        &[],
        true,
    ),
    (
        "missing index",
        |at| {
            std::fs::remove_file(at.pack("idx")).unwrap();
            Some(())
        },
        &[],
        true,
    ),
    (
        "missing pack",
        |at| {
            std::fs::remove_file(at.pack("pack")).unwrap();
            Some(())
        },
        &["list", "show 1", "diff 1 2"],
        true,
    ),
    (
        "garbage for the state",
        |at| {
            put(&at.record("state.json"), b"garbage");
            Some(())
        },
        &[],
        true,
    ),
    (
        "garbage for the journal",
        |at| {
            put(&at.record("journal"), b"garbage\n");
            Some(())
        },
        &["undo --preview"],
        true,
    ),
    (
        "no line in the journal",
        |at| {
            put(&at.record("journal"), b"garbage");
            Some(())
        },
        &["undo --preview"],
        true,
    ),
    (
        "a bad line in the journal",
        |at| {
            bad_last_line(at);
            Some(())
        },
        &["undo --preview", "undo --preview --json"],
        true,
    ),
    (
        "garbage for a ref",
        |at| {
            put(&at.leaf(2), b"garbage\n");
            Some(())
        },
        OF_TWO,
        true,
    ),
    (
        "a removed ref",
        |at| {
            std::fs::remove_file(at.leaf(2)).unwrap();
            Some(())
        },
        OF_TWO,
        true,
    ),
];

/// Flips a bit of the line that says that the last restore has ended, and of the one that says that it began.
fn bad_last_line(at: &Place) {
    let path = at.record("journal");
    let mut bytes = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
    for end in &ends[ends.len() - 2..] {
        bytes[end - 3] ^= 1;
    }
    put(&path, &bytes);
}

/// Of damage something is said, in the data or beside them.
fn says_so(said: &Output) -> bool {
    let text = format!("{} {}", said.stdout, said.stderr);
    ["damage", "missing", "not there", "cannot be read", "broken", "lost", "is gone", "has no index", "is not a commit"]
        .iter()
        .any(|word| text.contains(word))
}

/// Returns the lines of a list without the ages in them, which grow while the test runs.
fn without_ages(list: &str) -> String {
    let line = |line: &str| {
        let cells = line.split("  ").filter(|cell| !cell.ends_with(" ago") && *cell != "just now");
        cells.collect::<Vec<_>>().join("  ")
    };
    list.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn no_reader_takes_damage_for_an_answer() {
    let place = Place::new();
    let kept = place.lab.root().join("kept");
    let home = place.lab.home.join("piton");
    place.lab.sh(&format!("cp -a {} {}", home.display(), kept.display()));
    let whole: Vec<Output> = VERBS.iter().map(|verb| place.ask(verb)).collect();
    for look in LOOKS {
        assert_ne!(place.ask(look).code, 6, "{look}");
    }
    for (name, harm, telling, is_seen) in HARMS {
        place.lab.sh(&format!("rm -rf {home} && cp -a {} {home}", kept.display(), home = home.display()));
        if harm(&place).is_none() {
            // There is no git to find the object with, which was said aloud.
            continue;
        }
        for (verb, before) in VERBS.iter().zip(&whole) {
            let said = place.ask(verb);
            let is_same = without_ages(&said.stdout) == without_ages(&before.stdout);
            let is_as_before = said.code == before.code && is_same && !telling.contains(verb);
            assert!(
                is_as_before || (said.code == 6 && says_so(&said)),
                "{name}: piton {verb}: {said:?}\nbefore: {before:?}"
            );
        }
        for look in LOOKS {
            let said = place.ask(look);
            let is_doctor = look.starts_with("doctor");
            let is_told = said.code == 6 && says_so(&said);
            assert!(is_told || (!is_seen && !is_doctor && said.code != 6), "{name}: piton {look}: {said:?}");
            assert!(!said.stdout.contains("`piton doctor --refs` says which"), "{name}: piton {look}: {said:?}");
        }
    }
}

#[test]
fn a_list_names_the_damaged_checkpoint_and_no_other() {
    for of in [":f", ":d", "^{tree}"] {
        for is_missing in [false, true] {
            let place = Place::new();
            let Some(path) = place.loose(of) else { return };
            if is_missing {
                std::fs::remove_file(&path).unwrap();
            } else {
                flip(&path);
            }
            for round in 0..2 {
                let listed = place.lab.piton(&["list", "--json"]);
                assert_eq!(listed.code, 6, "{of} {round}: {listed:?}");
                let listed = listed.json();
                let rows = listed["checkpoints"].as_array().unwrap().iter();
                let marked = rows.filter(|row| row["flags"].to_string().contains("damaged"));
                let marked = marked.map(|row| row["n"].clone());
                assert_eq!(marked.collect::<Vec<_>>(), [json!(2)], "{of} {round}: {listed}");
            }
            // A list that ends before it names it too, if it compared with it.
            let one = place.lab.piton(&["list", "-n", "1", "--kind", "manual", "--json"]);
            assert!(!one.stdout.contains("checkpoint 1"), "{one:?}");
            let shown = place.lab.piton(&["show", "2", "--json"]);
            assert_eq!(shown.code, 6, "{of}: {shown:?}");
            match of {
                ":f" => {
                    let shown = shown.json();
                    let is_told = shown["flags"].to_string().contains("damaged") && shown["faults"][0].is_string();
                    assert!(is_told, "{shown}");
                    let text = place.lab.piton(&["show", "2"]);
                    assert!(text.stdout.contains("flags    damaged\ndamage   `f`: object "), "{text:?}");
                }
                _ => {
                    assert_eq!(shown.error(), "store-damaged");
                    assert!(shown.stdout.contains("checkpoint 2 is damaged"), "{shown:?}");
                }
            }
            let mut sidecar = Sidecar::start(&place.lab, &[]);
            let told = sidecar.ask(json!({ "type": "checkpoint.show", "sha": "2" })).to_string();
            assert!(told.contains("\"damaged\"") || told.contains("checkpoint 2 is damaged"), "{of}: {told}");
        }
    }
}

#[test]
fn find_lists_the_other_versions() {
    for of in [":f", "^{tree}", ""] {
        let place = Place::new();
        let Some(path) = place.loose(of) else { return };
        std::fs::remove_file(&path).unwrap();
        let found = place.ask("find f --json");
        assert_eq!(found.code, 6, "{of}: {found:?}");
        let versions = found.json()["versions"].clone();
        let of_checkpoint = |n: u64| {
            let has = |version: &&serde_json::Value| version["checkpoints"].as_array().unwrap().contains(&json!(n));
            versions.as_array().unwrap().iter().find(has).map(|version| version["presence"].clone())
        };
        assert_eq!(
            (of_checkpoint(1), of_checkpoint(3)),
            (Some(json!("held")), Some(json!("held"))),
            "{of}: {versions}"
        );
        // Without its commit it is no checkpoint, and a warning names its ref.
        let expected = if of.is_empty() { None } else { Some(json!("damaged")) };
        assert_eq!(of_checkpoint(2), expected, "{of}: {versions}");
        let text = place.ask("find f");
        let is_told = text.stdout.contains("damaged  in checkpoint 2 (") || text.stderr.contains("manual/2");
        assert!(text.code == 6 && is_told && text.stdout.contains("in checkpoint 3"), "{of}: {text:?}");
    }
}

#[test]
fn a_damaged_journal_does_not_lead_an_undo_astray() {
    let place = Place::new();
    let before = place.lab.piton(&["undo", "--preview", "--json"]);
    assert_eq!(before.code, 0, "{before:?}");
    bad_last_line(&place);
    for verb in ["undo", "redo"] {
        let refused = place.lab.piton(&[verb, "--yes", "--json"]);
        assert_eq!((refused.error().as_str(), refused.code), ("store-damaged", 6), "{verb}: {refused:?}");
        let refused = refused.json();
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("2 damaged lines") && message.contains("piton restore N"), "{verb}: {message}");
        let ids = refused["error"]["candidates"].as_array().unwrap();
        assert!(ids.contains(&json!(place.ids[4])) && message.contains(&place.ids[4][..7]), "{verb}: {refused}");
    }
    // The newest checkpoint from before a restore brings back what the undo would have.
    assert_eq!(place.lab.piton(&["restore", "5", "many/1", "--yes"]).code, 0);
    assert_eq!(place.lab.read("many/1"), "other\n");
    // That restore is known, and can be undone; the one before it cannot.
    assert_eq!(place.lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(place.lab.read("many/1"), "1\n");
    assert_eq!(place.lab.piton(&["undo", "--yes"]).code, 6);
    assert_eq!(place.lab.piton(&["redo", "--yes"]).code, 0);
}

#[test]
fn one_damaged_line_is_one() {
    let place = Place::new();
    put(&place.record("journal"), b"garbage\n");
    for look in ["status", "doctor", "doctor --refs"] {
        let said = place.ask(look);
        assert!(said.code == 6 && said.stdout.contains("has 1 damaged line\n"), "{look}: {said:?}");
    }
}
