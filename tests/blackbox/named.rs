//! Paths that an action names are looked at themselves: writes that no watcher tells of, and that move no time.
//!
//! Bind mounts need root; without it the tests say that they were skipped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::dice::Dice;
use super::faults::full;
use super::mapping::Mapping;
use super::support::{Lab, Sidecar, WAIT, not_allowed};

/// A directory that is mounted in the place of another; it goes with the value.
struct Mount(PathBuf);

impl Mount {
    /// `None`, said aloud, where that is not allowed.
    fn over(from: &Path, at: &Path) -> Option<Mount> {
        let mounted = Command::new("mount").arg("--bind").args([from, at]).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Mount(at.to_owned()));
        }
        not_allowed("mounting");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let gone = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(gone.unwrap().success(), "{} stays mounted", self.0.display());
    }
}

/// A guarded workspace, with a place outside of it on the same file system.
struct Guarded {
    lab: Lab,
    outside: PathBuf,
    sidecar: Sidecar,
    turns: u64,
}

impl Guarded {
    fn new(files: &[&str], settings: &str) -> Guarded {
        let lab = Lab::new();
        lab.set(settings);
        files.iter().for_each(|file| lab.write(file, format!("old {file}\n")));
        let outside = lab.root().join("outside");
        fs::create_dir(&outside).unwrap();
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "hello"}));
        let mut guarded = Guarded { lab, outside, sidecar, turns: 0 };
        guarded.prove(files);
        guarded
    }

    fn await_word(&mut self, wanted: &[&str]) {
        let until = Instant::now() + WAIT;
        loop {
            let status = self.sidecar.ask(json!({"type": "status"}));
            if wanted.iter().any(|word| status["watcher"] == *word) {
                return;
            }
            assert!(Instant::now() < until, "{status}");
            std::thread::yield_now();
        }
    }

    /// Has files captured whose times prove what they hold, so that they are not read again by themselves.
    fn prove(&mut self, names: &[&str]) {
        let time = |at: &Path| at.metadata().map(|at| at.ctime() * 1_000_000_000 + at.ctime_nsec()).unwrap();
        let newest = names.iter().map(|name| time(&self.at(name))).max().unwrap();
        let (probe, until) = (self.outside.join("probe"), Instant::now() + WAIT);
        while fs::write(&probe, "x").is_ok() && time(&probe) < newest + 100_000_000 {
            assert!(Instant::now() < until, "the clock of files stands still");
            std::thread::yield_now();
        }
        self.await_word(&["warm", "scan", "none"]);
        // A file that somebody has had open for writing is looked at again.
        names.iter().for_each(|name| drop(File::options().append(true).open(self.at(name)).unwrap()));
        self.sidecar.ask(json!({"type": "checkpoint.create"}));
        self.await_word(&["warm", "scan", "none"]);
        self.sidecar.ask(json!({"type": "checkpoint.create"}));
        let status = self.sidecar.ask(json!({"type": "status"}));
        assert_eq!(status["cost"]["hashed"], 0, "{status}");
    }

    fn at(&self, name: &str) -> PathBuf {
        self.lab.work.join(name)
    }

    /// Begins a turn; the next action takes its checkpoint.
    fn turn(&mut self) {
        self.turns += 1;
        self.sidecar.ask(json!({"type": "turn.start", "turn": format!("t{}", self.turns)}));
    }

    /// Begins a turn, and has it protected.
    fn protected_turn(&mut self) {
        self.turn();
        let reply = self.before("make");
        assert!(reply["checkpoint"]["id"].is_string(), "{reply}");
    }

    fn before(&mut self, command: &str) -> Value {
        self.sidecar.ask(json!({"type": "shell.before", "command": command}))
    }

    /// Brings paths, or everything where none is named, back from the checkpoint that a reply names.
    fn restore(&mut self, reply: &Value, paths: &[&str]) -> Value {
        let mut request = json!({"type": "restore", "sha": reply["checkpoint"]["id"]});
        if !paths.is_empty() {
            request["paths"] = json!(paths);
        }
        let restored = self.sidecar.ask(request);
        assert_eq!((&restored["ok"], &restored["done"]["failed"]["total"]), (&json!(true), &json!(0)), "{restored}");
        restored
    }

    /// Writes to a file of the workspace through a name outside of it, which goes again.
    fn write_elsewhere(&self, name: &str, content: &str) {
        let other = self.outside.join("other");
        fs::hard_link(self.at(name), &other).unwrap();
        fs::write(&other, content).unwrap();
        fs::remove_file(other).unwrap();
    }
}

/// Lines that destroy `dir/a`, and what they leave there.
const DESTROYERS: &[&str] =
    &["rm dir/a", "rm -rf dir", "rm dir/*", ": > dir/a", "mv b dir/a", "cp b dir/a", "truncate -s 0 dir/a"];

#[test]
fn a_write_through_another_name_is_seen_by_the_action_that_destroys_it() {
    for settings in ["", "watcher: none\n"] {
        for (n, command) in DESTROYERS.iter().enumerate() {
            let mut guarded = Guarded::new(&["dir/a", "dir/c", "b"], settings);
            // As the turn's first action, and as a later one.
            if n % 2 == 0 {
                guarded.protected_turn();
            } else {
                guarded.turn();
            }
            guarded.write_elsewhere("dir/a", "NEW");
            let reply = guarded.before(command);
            assert_eq!(reply["checkpoint"]["status"], "taken", "{settings}{command}: {reply}");
            guarded.lab.sh(command);
            assert_ne!(guarded.lab.read("dir/a"), "NEW", "{command}");
            guarded.restore(&reply, &["dir"]);
            assert_eq!(guarded.lab.read("dir/a"), "NEW", "{settings}{command}");
        }
    }
}

#[test]
fn tools_that_name_a_file_see_a_write_through_another_name() {
    for tool in ["Write", "Edit"] {
        let mut guarded = Guarded::new(&["dir/a"], "");
        guarded.protected_turn();
        guarded.write_elsewhere("dir/a", "NEW");
        let input = json!({"file_path": guarded.at("dir/a"), "content": "x", "old_string": "N", "new_string": "M"});
        let reply = guarded.sidecar.ask(json!({"type": "tool.before", "tool": tool, "input": input}));
        assert_eq!(reply["checkpoint"]["status"], "taken", "{tool}: {reply}");
        guarded.lab.write("dir/a", "destroyed");
        guarded.restore(&reply, &["dir/a"]);
        assert_eq!(guarded.lab.read("dir/a"), "NEW", "{tool}");
    }
}

#[test]
fn a_store_through_a_mapping_is_seen_by_the_action_that_destroys_it() {
    for settings in ["", "watcher: none\n"] {
        for (command, alive) in [("rm dir/a", true), ("rm -rf dir", true), ("rm dir/a", false), (": > dir/a", false)] {
            let mut guarded = Guarded::new(&["dir/a", "b"], settings);
            let mapping = Mapping::of(&guarded.at("dir/a"));
            // The page is dirty from now on.
            mapping.store(0, b'1');
            guarded.prove(&["dir/a"]);
            guarded.protected_turn();
            let times = |path: PathBuf| path.metadata().map(|at| (at.mtime_nsec(), at.ctime_nsec())).unwrap();
            let before = times(guarded.at("dir/a"));
            mapping.store(1, b'2');
            let mapping = alive.then_some(mapping);
            if times(guarded.at("dir/a")) != before {
                println!("the page was written back meanwhile");
            }
            let reply = guarded.before(command);
            let what = format!("{settings}{command}, mapped: {alive}");
            assert_eq!(reply["checkpoint"]["status"], "taken", "{what}: {reply}");
            drop(mapping);
            guarded.lab.sh(command);
            guarded.restore(&reply, &["dir"]);
            assert_eq!(guarded.lab.read("dir/a"), "12d dir/a\n", "{what}");
        }
    }
}

/// Nothing names the file: that its mapping was closed is heard, though no time tells what was stored.
#[test]
fn a_mapping_that_is_closed_is_captured_by_the_next_checkpoint() {
    let mut guarded = Guarded::new(&["dir/a", "b"], "");
    let mapping = Mapping::of(&guarded.at("dir/a"));
    mapping.store(0, b'1');
    guarded.prove(&["dir/a"]);
    guarded.protected_turn();
    mapping.store(1, b'2');
    drop(mapping);
    guarded.turn();
    let reply = guarded.before("make");
    assert_eq!(reply["checkpoint"]["status"], "taken", "{reply}");
    fs::write(guarded.at("dir/a"), "destroyed").unwrap();
    guarded.restore(&reply, &["dir/a"]);
    assert_eq!(guarded.lab.read("dir/a"), "12d dir/a\n");
}

#[test]
fn what_is_mounted_over_a_directory_is_seen_by_the_action_that_empties_it() {
    let table = [("rm -rf dir/*", "dir"), ("rm dir/a", "dir/a"), ("rm -rf dir/sub", "dir/sub"), ("rm -rf dir", "dir")];
    for (command, named) in table {
        let mut guarded = Guarded::new(&["dir/a", "dir/sub/f", "b"], "");
        let other = guarded.outside.join("mounted");
        fs::create_dir_all(other.join("sub")).unwrap();
        fs::write(other.join("a"), "mounted").unwrap();
        fs::write(other.join("sub/g"), "mounted too").unwrap();
        guarded.protected_turn();
        let Some(_mount) = Mount::over(&other, &guarded.at("dir")) else { return };
        for round in ["as mounted", "written through the other path"] {
            let before = contents(&guarded.lab.work, named);
            assert!(!before.contains_key("dir/sub/f"), "the mounted one is in its place");
            let reply = guarded.before(command);
            assert!(
                matches!(reply["checkpoint"]["status"].as_str(), Some("taken" | "unchanged")),
                "{command}: {reply}"
            );
            // The directory on which something is mounted stays.
            guarded.lab.sh(&format!("{command} || true"));
            assert_ne!(contents(&guarded.lab.work, named), before, "{command}");
            guarded.restore(&reply, &[named]);
            assert_eq!(contents(&guarded.lab.work, named), before, "{command}, {round}");
            fs::write(other.join("a"), "written").unwrap();
            fs::write(other.join("sub/g"), "written too").unwrap();
        }
    }
}

#[test]
fn a_checkpoint_of_named_paths_looks_at_them() {
    let mut guarded = Guarded::new(&["dir/a", "b"], "");
    let mapping = Mapping::of(&guarded.at("dir/a"));
    mapping.store(0, b'1');
    guarded.prove(&["dir/a"]);
    mapping.store(1, b'2');
    guarded.write_elsewhere("b", "NEW");
    let reply = guarded.sidecar.ask(json!({"type": "checkpoint.create", "paths": ["dir/a", "b"]}));
    for (name, expected) in [("dir/a", "12d dir/a\n"), ("b", "NEW")] {
        fs::write(guarded.at(name), "destroyed").unwrap();
        guarded.restore(&reply, &[name]);
        assert_eq!(guarded.lab.read(name), expected);
    }
}

/// The same by processes of their own, which know the stamps that the last one has written.
#[test]
fn a_process_of_its_own_looks_at_what_is_named() {
    let lab = Lab::new();
    lab.write("dir/a", "old dir/a\n");
    let mapping = Mapping::of(&lab.work.join("dir/a"));
    mapping.store(0, b'1');
    let time = |at: &Path| at.metadata().map(|at| at.ctime() * 1_000_000_000 + at.ctime_nsec()).unwrap();
    let probe = lab.root().join("probe");
    while fs::write(&probe, "x").is_ok() && time(&probe) < time(&lab.work.join("dir/a")) + 100_000_000 {}
    lab.take("proven");
    mapping.store(1, b'2');
    let taken = lab.piton(&["checkpoint", "--json", "--", "dir/a"]).json();
    fs::write(lab.work.join("dir/a"), "destroyed").unwrap();
    lab.restore(taken["checkpoint"]["n"].as_u64().unwrap(), &["dir/a"]);
    assert_eq!(lab.read("dir/a"), "12d dir/a\n");
}

/// A restore's replaced content can be had back, although nothing told that it had changed.
#[test]
fn a_restore_saves_what_it_replaces_whatever_was_told() {
    for settings in ["", "watcher: none\n"] {
        let mut guarded = Guarded::new(&["a", "b", "c"], settings);
        guarded.turn();
        let old = guarded.before("make; rm a");
        let mapping = Mapping::of(&guarded.at("a"));
        mapping.store(0, b'1');
        fs::write(guarded.at("b"), "second").unwrap();
        guarded.prove(&["a", "b"]);
        mapping.store(1, b'2');
        guarded.write_elsewhere("b", "NEW");
        let preview = guarded.sidecar.ask(json!({"type": "rollback.preview", "sha": old["checkpoint"]["id"]}));
        assert_eq!(preview["plan"]["replace"]["total"], 2, "{preview}");
        guarded.restore(&old, &[]);
        assert_eq!((guarded.lab.read("a"), guarded.lab.read("b")), ("old a\n".into(), "old b\n".into()));
        guarded.sidecar.ask(json!({"type": "undo"}));
        assert_eq!((guarded.lab.read("a"), guarded.lab.read("b")), ("12d a\n".into(), "NEW".into()), "{settings}");
    }
}

/// A path that a restore is asked for is compared, even if all that is known says that it is as it was.
#[test]
fn a_restore_of_a_named_path_looks_at_it() {
    for settings in ["", "watcher: none\n"] {
        let mut guarded = Guarded::new(&["dir/a", "b"], settings);
        guarded.turn();
        let mapping = Mapping::of(&guarded.at("b"));
        mapping.store(0, b'1');
        guarded.prove(&["b"]);
        let old = guarded.before("make; rm b");
        mapping.store(0, b'2');
        guarded.write_elsewhere("dir/a", "NEW");
        guarded.restore(&old, &["dir", "b"]);
        assert_eq!((guarded.lab.read("dir/a"), guarded.lab.read("b")), ("old dir/a\n".into(), "1ld b\n".into()));
    }
}

/// Files at and below a path of the workspace, by their paths; links as their targets.
fn contents(work: &Path, top: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![work.join(top)];
    while let Some(path) = pending.pop() {
        let Ok(facts) = path.symlink_metadata() else { continue };
        if facts.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let content = if facts.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        found.insert(path.strip_prefix(work).unwrap().to_str().unwrap().to_owned(), content);
    }
    found
}

/// Random edits, of which the watcher tells only some.
struct Soak {
    guarded: Guarded,
    dice: Dice,
    mappings: Vec<Mapping>,
    mount: Option<Mount>,
    mounts: bool,
    /// Actions that destroyed something, and how their checkpoints came to be.
    actions: u64,
    held: u64,
    unchanged: u64,
}

const DIRS: &[&str] = &["", "a/", "a/b/", "c/", "c/d/", "ig/", "m/", "m/s/"];
const NAMES: &[&str] = &["f", "g", "h", "x.db", "k.log"];

impl Soak {
    fn new(seed: u64) -> Soak {
        let files = ["f", "a/f", "a/g", "a/b/f", "c/f", "c/x.db", "c/d/g", "m/f", "m/s/g"];
        let guarded = Guarded::new(&files, "retention: {enabled: false}\n");
        guarded.lab.write(".gitignore", "ig/\n*.log\n");
        let shared = guarded.outside.join("shared");
        fs::create_dir_all(shared.join("s")).unwrap();
        fs::write(shared.join("f"), "on another path").unwrap();
        let mounts = Mount::over(&shared, &guarded.at("m")).is_some();
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Soak { guarded, dice, mappings: Vec::new(), mount: None, mounts, actions: 0, held: 0, unchanged: 0 }
    }

    fn name(&mut self) -> String {
        let dir = self.dice.of(DIRS);
        format!("{dir}{}", self.dice.of(NAMES))
    }

    /// A file that is there.
    fn file(&mut self) -> Option<String> {
        let all: Vec<String> =
            contents(&self.guarded.lab.work, "").into_keys().filter(|name| name != ".gitignore").collect();
        (!all.is_empty()).then(|| all[self.dice.roll(all.len() as u64) as usize].clone())
    }

    fn text(&mut self) -> String {
        format!("{:04}{}", self.dice.roll(10_000), "-".repeat(self.dice.roll(60) as usize))
    }

    /// One edit; what cannot be done is no matter.
    fn edit(&mut self) {
        let (one, two) = (self.name(), self.name());
        let (first, second) = (self.guarded.at(&one), self.guarded.at(&two));
        let aside = self.guarded.outside.join(format!("o{}", self.dice.roll(4)));
        let there = self.file().map(|name| self.guarded.at(&name));
        let text = self.text();
        let _ = match self.dice.roll(19) {
            0..=2 => fs::create_dir_all(first.parent().unwrap()).and_then(|()| write_whole(&first, &text)),
            3 => fs::rename(&first, &second),
            4 => fs::remove_file(&first),
            5 => fs::hard_link(&first, &second),
            6 | 7 => fs::remove_file(&aside).or(Ok(())).and_then(|()| fs::hard_link(there.unwrap_or(first), &aside)),
            8 | 9 => write_whole(&aside, &text),
            10 => fs::remove_file(&aside),
            11 | 12 => {
                self.map(&there.unwrap_or(first));
                Ok(())
            }
            13..=15 => {
                self.store();
                Ok(())
            }
            16 => {
                if !self.mappings.is_empty() {
                    let at = self.dice.roll(self.mappings.len() as u64) as usize;
                    drop(self.mappings.swap_remove(at));
                }
                Ok(())
            }
            17 => {
                self.mount_or_unmount();
                Ok(())
            }
            _ => write_whole(&self.guarded.outside.join("shared").join(self.dice.of(&["f", "s/g", "g", "s/h"])), &text),
        };
    }

    fn map(&mut self, path: &Path) {
        let fits = path.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.len() > 0);
        if fits && self.mappings.len() < 4 {
            self.mappings.push(Mapping::of(path));
        }
    }

    /// Stores something in what is mapped. Without having it written back only where that is found for sure: a file with
    /// several names is told of each time, so that its end says nothing.
    fn store(&mut self) {
        if self.mappings.is_empty() {
            return;
        }
        let at = self.dice.roll(self.mappings.len() as u64) as usize;
        let (offset, byte, sync) = (self.dice.roll(4), b'A' + self.dice.roll(26) as u8, self.dice.roll(2) == 0);
        let mapping = &self.mappings[at];
        let facts = mapping.facts();
        if facts.len() <= offset {
            return;
        }
        let alone = facts.nlink() < 2;
        mapping.store(offset as usize, byte);
        if sync || !alone {
            mapping.sync();
        }
    }

    fn mount_or_unmount(&mut self) {
        if self.mount.take().is_some() || !self.mounts || !self.guarded.at("m").is_dir() {
            return;
        }
        self.mount = Mount::over(&self.guarded.outside.join("shared"), &self.guarded.at("m"));
    }

    /// An action that destroys what it names, and which paths these are.
    fn action(&mut self) -> Option<(String, Vec<String>)> {
        let file = self.file()?;
        let dir = file.rsplit_once('/').map(|(dir, _)| dir.to_owned());
        let other = self.file()?;
        Some(match (self.dice.roll(9), dir) {
            (0 | 1, Some(dir)) => (format!("rm -rf {dir}"), vec![dir]),
            (2, Some(dir)) => {
                // A pattern names what it stands for, and not the directory.
                let names = fs::read_dir(self.guarded.at(&dir)).unwrap().map(|entry| entry.unwrap().file_name());
                let shown = names.map(|name| format!("{dir}/{}", name.to_str().unwrap()));
                (format!("rm -f {dir}/*"), shown.collect())
            }
            (3, _) => (format!(": > {file}"), vec![file]),
            (4, _) if file != other => (format!("mv {file} {other}"), vec![file, other]),
            (5, _) if file != other => (format!("cp {file} {other}"), vec![other]),
            (6, _) => (format!("truncate -s 0 {file}"), vec![file]),
            (7, _) if file != other => (format!("rm {file} {other}"), vec![file, other]),
            _ => (format!("rm {file}"), vec![file]),
        })
    }

    /// Lets an action through, and brings back what it destroyed.
    fn act(&mut self, when: &str) {
        let Some((command, named)) = self.action() else { return };
        if self.dice.roll(3) == 0 {
            self.guarded.turn();
        }
        let stood = |soak: &Soak| -> BTreeMap<String, Vec<u8>> {
            named.iter().flat_map(|name| contents(&soak.guarded.lab.work, name)).collect()
        };
        let before = stood(self);
        let reply = self.guarded.before(&command);
        let status = reply["checkpoint"]["status"].as_str().unwrap_or_default().to_owned();
        assert!(matches!(status.as_str(), "taken" | "unchanged" | "held"), "{when}, {command}: {reply}");
        self.actions += 1;
        self.held += u64::from(status == "held");
        self.unchanged += u64::from(status == "unchanged");
        // Failures do not matter: a mount point cannot be removed, and `mv` and `cp` see that two names are one file.
        let _ = self.guarded.lab.command("/bin/sh", &self.guarded.lab.work).args(["-c", &command]).output().unwrap();
        let paths: Vec<&str> = named.iter().map(String::as_str).collect();
        let restored =
            self.guarded.sidecar.ask(json!({"type": "restore", "sha": reply["checkpoint"]["id"], "paths": paths}));
        let done = (&restored["ok"], &restored["done"]["failed"]["total"]);
        assert_eq!(done, (&json!(true), &json!(0)), "{when}, {command}, {status}: {restored}");
        let mut after = stood(self);
        if status == "held" {
            // The turn's checkpoint holds all that stood, and what had gone since.
            after.retain(|name, _| before.contains_key(name));
        }
        assert_eq!(after, before, "{when}, {command}, {status}: {reply}");
        // A file without a name belongs to no path any more.
        self.mappings.retain(|mapping| mapping.facts().nlink() > 0);
    }
}

/// Writes in place, as through any other name of the file; an empty file could not be mapped.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    std::os::unix::fs::FileExt::write_all_at(&file, text.as_bytes(), 0)
}

#[test]
fn whatever_an_action_names_can_be_had_back() {
    let (seeds, steps) = if full() { (40, 250) } else { (3, 60) };
    for seed in 1..=seeds {
        let mut soak = Soak::new(seed);
        for step in 0..steps {
            if soak.dice.roll(4) == 0 {
                soak.act(&format!("seed {seed}, step {step}"));
            } else {
                soak.edit();
            }
        }
        let status = soak.guarded.sidecar.ask(json!({"type": "status"}));
        assert!(soak.actions > 0);
        println!(
            "seed {seed}: {} actions, {} held, {} unchanged; {}",
            soak.actions, soak.held, soak.unchanged, status["watching"]
        );
    }
}
