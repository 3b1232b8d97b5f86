//! Checkpoints that look only at what changed: nothing is missed, whatever happens beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dice::Dice;
use super::faults::full;
use super::support::{Lab, Sidecar, WAIT, lacking};

/// A guarded workspace.
struct Guarded {
    lab: Lab,
    sidecar: Sidecar,
    turn: u64,
    /// The last reply with a checkpoint.
    last: Value,
}

impl Guarded {
    /// A sidecar that has come to hear of changes.
    fn new(lab: Lab) -> Guarded {
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "hello"}));
        let mut guarded = Guarded { lab, sidecar, turn: 0, last: Value::Null };
        guarded.await_word("warm");
        guarded
    }

    fn status(&mut self) -> Value {
        self.sidecar.ask(json!({"type": "status"}))
    }

    fn await_word(&mut self, word: &str) {
        let until = Instant::now() + WAIT;
        loop {
            let status = self.status();
            if status["watcher"] == word {
                return;
            }
            assert!(Instant::now() < until, "never {word}: {status}");
            std::thread::yield_now();
        }
    }

    /// The id of the checkpoint that protects a turn of its own.
    fn take(&mut self) -> String {
        self.turn += 1;
        let turn = format!("t{}", self.turn);
        // The turn's base capture would be there first.
        self.sidecar.send(json!({"type": "turn.start", "turn": turn}));
        // Some name what rules leave out, which is captured too.
        let commands = ["make", "rm -rf ig", "make", "rm -f h.log a/h.log", "rm -rf a"];
        let command = commands[self.turn as usize % commands.len()];
        let reply = self.sidecar.ask(json!({"type": "shell.before", "command": command}));
        let block = &reply["checkpoint"];
        assert!(matches!(block["status"].as_str(), Some("taken" | "unchanged")), "{reply}");
        let id = block["id"].as_str().unwrap().to_owned();
        self.last = reply;
        id
    }

    /// The trees of a checkpoint: path to mode and id, directories included; piton's own records left out. A file that was ignored once
    /// is in the private one.
    fn tree(&self, id: &str) -> BTreeMap<String, String> {
        let (store, local) = (self.lab.store(), self.lab.home.join("piton/local.git"));
        let mut tree = listing(&self.lab, &store, id);
        let message = read(&self.lab, &store, &["cat-file", "commit", id]);
        if let Some(number) = message.lines().find_map(|line| line.strip_prefix("Local: ")) {
            let refs = read(&self.lab, &local, &["for-each-ref", "--format=%(refname)"]);
            // A checkpoint without private files names no layer.
            let layer = refs.lines().find(|name| name.ends_with(&format!("/local/{number}")));
            for (path, side) in layer.into_iter().flat_map(|layer| listing(&self.lab, &local, layer)) {
                tree.entry(path).or_insert(side);
            }
        }
        tree
    }
}

/// Returns what git prints of a store.
fn read(lab: &Lab, store: &Path, args: &[&str]) -> String {
    let mut command = lab.command("git", &lab.work);
    let output = command.env("GIT_CONFIG_NOSYSTEM", "1").arg("--git-dir").arg(store).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn listing(lab: &Lab, store: &Path, id: &str) -> BTreeMap<String, String> {
    let text = read(lab, store, &["ls-tree", "-r", "-t", "-z", id]);
    let entries = text.split('\0').filter_map(|line| line.split_once('\t'));
    // The id of a directory says nothing that its entries do not say.
    let side = |facts: &str| if facts.contains(" tree ") { "tree".to_owned() } else { facts.to_owned() };
    entries
        .filter(|(_, path)| !path.starts_with(".piton"))
        .map(|(facts, path)| (path.to_owned(), side(facts)))
        .collect()
}

fn has_git() -> bool {
    let has = Command::new("git").arg("--version").output().is_ok();
    if !has {
        lacking("git");
    }
    has
}

/// Returns what a scan by somebody who knows nothing finds.
fn scanned(lab: &Lab) -> BTreeMap<String, String> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let home = lab.root().join(format!("fresh-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env("PITON_HOME", &home).args(["checkpoint", "--json"]).output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let found = listing(lab, &home.join("store.git"), reply["checkpoint"]["id"].as_str().unwrap());
    fs::remove_dir_all(home).unwrap();
    found
}

/// Everything that a fresh scan finds is in the checkpoint, and what is there beside (captured before a rule came that
/// would leave it out) is what stands on the disk.
fn is_exact(lab: &Lab, tree: &BTreeMap<String, String>, when: &str) {
    let faults = faults_of(lab, tree);
    assert!(faults.is_empty(), "{when}: {faults:#?}");
}

fn faults_of(lab: &Lab, tree: &BTreeMap<String, String>) -> Vec<String> {
    faults_beside(lab, tree, &scanned(lab))
}

/// The same, with what a fresh scan finds.
fn faults_beside(lab: &Lab, tree: &BTreeMap<String, String>, fresh: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, side) in fresh.iter().filter(|(path, side)| tree.get(*path) != Some(*side)) {
        faults.push(format!("{path} is {side}, and not {:?}", tree.get(path)));
    }
    for (path, side) in tree.iter().filter(|(path, _)| !fresh.contains_key(*path)) {
        let file = lab.work.join(path);
        if side == "tree" {
            if !file.is_dir() || file.is_symlink() {
                faults.push(format!("{path} is no directory"));
            }
            continue;
        }
        let content = match fs::read_link(&file) {
            Ok(target) => Ok(target.into_os_string().into_encoded_bytes()),
            Err(_) => fs::read(&file),
        };
        let content = match content {
            Ok(content) => content,
            Err(error) => {
                faults.push(format!("{path} is {side}, and {error}"));
                continue;
            }
        };
        let mut hash = lab.command("git", &lab.work);
        hash.args(["hash-object", "--no-filters", "--stdin"]).stdin(std::process::Stdio::piped());
        let mut hash = hash.stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut hash.stdin.take().unwrap(), &content).unwrap();
        let id = String::from_utf8(hash.wait_with_output().unwrap().stdout).unwrap();
        if !side.ends_with(id.trim()) {
            faults.push(format!("{path} is {side}, and not {id}"));
        }
    }
    faults
}

/// Directories that the sidecar does not watch, as the kernel tells.
fn unwatched(guarded: &Guarded) -> Vec<PathBuf> {
    let infos = fs::read_dir(format!("/proc/{}/fdinfo", guarded.sidecar.child.id())).unwrap().flatten();
    let texts: String = infos.filter_map(|info| fs::read_to_string(info.path()).ok()).collect();
    let watched: BTreeSet<u64> = texts
        .lines()
        .filter_map(|line| line.strip_prefix("inotify wd:")?.split(" ino:").nth(1)?.split(' ').next())
        .filter_map(|hex| u64::from_str_radix(hex, 16).ok())
        .collect();
    let (mut found, mut pending) = (Vec::new(), vec![guarded.lab.work.clone()]);
    while let Some(dir) = pending.pop() {
        if !watched.contains(&std::os::unix::fs::MetadataExt::ino(&dir.symlink_metadata().unwrap())) {
            found.push(dir.clone());
        }
        let entries = fs::read_dir(&dir).unwrap().flatten();
        pending.extend(entries.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path()));
    }
    found
}

/// Returns what helps to find out where faults come from: how the checkpoint was taken, whether the next ones hold the
/// same, and the files that rule.
fn explain(guarded: &mut Guarded, faults: &[String]) -> String {
    let (cost, blind) = (guarded.status(), unwatched(guarded));
    let mut text = format!("{faults:#?}\ntaken: {}\ncost: {}\n", guarded.last, cost["cost"]);
    for _ in 0..3 {
        let id = guarded.take();
        let (tree, cost) = (guarded.tree(&id), guarded.status()["cost"].clone());
        text += &format!("the next: {:#?}\nfound by {}\n", faults_of(&guarded.lab, &tree), cost);
    }
    text += &format!("without a watch: {blind:#?}\n");
    let show = "find . -name .gitignore -type f -exec grep -H '' {} +; find . -printf '%p %y %i %n %C@ %s\\n' | sort";
    let shown = guarded.lab.command("sh", &guarded.lab.work).args(["-c", show]).output().unwrap();
    text + &String::from_utf8_lossy(&shown.stdout)
}

/// The state that writers and the one who takes checkpoints share.
struct Scene {
    root: PathBuf,
    outside: PathBuf,
    /// Writers hold it shared for each edit.
    gate: RwLock<()>,
    end: AtomicBool,
    /// The paths that were touched since the last barrier.
    touched: Mutex<BTreeSet<String>>,
    edits: AtomicU64,
}

impl Scene {
    /// One random edit; what cannot be done is no matter.
    fn edit(&self, dice: &mut Dice) {
        let place = |dice: &mut Dice| {
            let depth = dice.roll(4);
            let mut names: Vec<&str> = (0..depth).map(|_| dice.of(&["a", "b", "c", "d", "ig"])).collect();
            names.push(dice.of(&["f", "g", "h.log", "k.c", "a", "b", ".gitignore", "package.json"]));
            names.join("/")
        };
        let (one, two) = (place(dice), place(dice));
        let aside = self.outside.join(format!("o{}", dice.roll(6)));
        let _gate = self.gate.read().unwrap();
        {
            let mut touched = self.touched.lock().unwrap();
            for path in [&one, &two] {
                // A rule file counts as everything around it.
                let rules = path.ends_with(".gitignore") || path.ends_with("package.json");
                let around = path.rsplit_once('/').map_or("", |(dir, _)| dir);
                touched.insert(if rules { around.to_owned() } else { path.clone() });
                // Symbolic links lead to the `f` beside them: what is written by their name is written there.
                touched.insert("f".to_owned());
                touched.extend(path.match_indices('/').map(|(at, _)| format!("{}/f", &path[..at])));
            }
        }
        let (first, second) = (self.root.join(&one), self.root.join(&two));
        let rules = |path: &Path| path.ends_with(".gitignore");
        let text = format!("{}\n", dice.roll(1000));
        let _ = match dice.roll(16) {
            0..=4 if rules(&first) => fs::write(&first, dice.of(&["*.log\n", "ig/\n", "!f\n", "", "g\n"])),
            0..=4 => fs::write(&first, text),
            5 => fs::create_dir_all(&first),
            6 => fs::create_dir_all(&first).and_then(|()| fs::write(first.join("at-once"), text)),
            7 if !rules(&first) && !rules(&second) => fs::rename(&first, &second),
            8 if !rules(&first) => fs::rename(&first, &aside),
            9 if !rules(&first) => fs::rename(&aside, &first),
            10 => fs::remove_file(&first),
            11 if dice.roll(3) == 0 => fs::remove_dir_all(&first),
            12 if !rules(&first) => symlink("f", &first),
            13 if first.is_file() => {
                fs::set_permissions(&first, PermissionsExt::from_mode(0o600 + 0o11 * dice.roll(8) as u32))
            }
            14 if !rules(&first) && !rules(&second) => fs::hard_link(&first, &second),
            15 => fs::create_dir_all(first.join("x/y/z")).and_then(|()| fs::write(first.join("x/y/z/f"), text)),
            _ => fs::File::options()
                .append(true)
                .open(&first)
                .and_then(|mut file| std::io::Write::write_all(&mut file, b"y")),
        };
        self.edits.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether nobody touched a path, what is below it or a directory above it.
    fn is_untouched(touched: &BTreeSet<String>, path: &str) -> bool {
        let below = |path: &str, dir: &str| {
            dir.is_empty() || path == dir || path.strip_prefix(dir).is_some_and(|r| r.starts_with('/'))
        };
        touched.iter().all(|other| !below(path, other) && !below(other, path))
    }
}

/// Nothing is dropped, and a machine that is busy with other things makes no checkpoint late.
const SETTINGS: &str = "retention: {enabled: false}\ndeadline_ms: 60000\n";

#[test]
fn four_writers_and_a_checkpoint_every_50_milliseconds() {
    if !has_git() {
        return;
    }
    let (barriers, pace) = if full() { (200, Duration::from_millis(50)) } else { (8, Duration::from_millis(20)) };
    let lab = Lab::new();
    fs::write(lab.user_file(), SETTINGS).unwrap();
    for path in ["a/b/c/f", "b/c/f", "c/f", "d/f", "f", "ig/f"] {
        lab.write(path, path);
    }
    lab.write(".gitignore", "*.log\n");
    let outside = lab.root().join("outside");
    fs::create_dir(&outside).unwrap();
    let scene = Scene {
        root: lab.work.clone(),
        outside,
        gate: RwLock::new(()),
        end: AtomicBool::new(false),
        touched: Mutex::default(),
        edits: AtomicU64::new(0),
    };
    let mut guarded = Guarded::new(lab);
    let (mut taken, mut dice) = (0, Dice(0x00C0_FFEE));
    std::thread::scope(|scope| {
        for writer in 1..=4u64 {
            let scene = &scene;
            scope.spawn(move || {
                let mut dice = Dice(writer.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                while !scene.end.load(Ordering::Relaxed) {
                    scene.edit(&mut dice);
                    std::thread::sleep(Duration::from_millis(dice.roll(40)));
                }
            });
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut calm: Option<BTreeMap<String, String>> = None;
            for barrier in 0..barriers {
                let mut between = Vec::new();
                for _ in 0..=dice.roll(12) {
                    std::thread::sleep(pace);
                    between.push(guarded.take());
                }
                if barrier % 25 == 3 {
                    overflow(&guarded, "d");
                    scene.touched.lock().unwrap().extend(FLOODED.map(|name| format!("d/{name}")));
                }
                let stopped = scene.gate.write().unwrap();
                taken += between.len() + 1;
                let touched = std::mem::take(&mut *scene.touched.lock().unwrap());
                let when = format!("barrier {barrier}");
                if let Some(calm) = &calm {
                    for id in between {
                        let tree = guarded.tree(&id);
                        for (path, side) in calm.iter().filter(|(path, _)| Scene::is_untouched(&touched, path)) {
                            assert_eq!(tree.get(path), Some(side), "{when}, {id}: {path}");
                        }
                    }
                }
                let tree = {
                    let id = guarded.take();
                    guarded.tree(&id)
                };
                let fresh = scanned(&guarded.lab);
                let faults = faults_beside(&guarded.lab, &tree, &fresh);
                assert!(faults.is_empty(), "{when}: {}", explain(&mut guarded, &faults));
                // A file that is captured only because a command named it is in that one checkpoint. A file with
                // another name may be written through that one.
                let alone = |path: &str| {
                    let meta = guarded.lab.work.join(path).symlink_metadata();
                    meta.is_ok_and(|meta| meta.is_dir() || std::os::unix::fs::MetadataExt::nlink(&meta) == 1)
                };
                calm = Some(tree.into_iter().filter(|(path, _)| fresh.contains_key(path) && alone(path)).collect());
                drop(stopped);
            }
        }));
        scene.end.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    // Fails by itself when anything is missing or broken.
    guarded.lab.store_git(&["fsck", "--full", "--strict", "--no-dangling"]);
    let mut status = guarded.status();
    while full() && status["watching"]["audits"] == 0 {
        // Asking is a job too, and the audit waits for half a minute without any.
        std::thread::sleep(Duration::from_secs(40));
        status = guarded.status();
    }
    assert_eq!(status["watching"]["divergences"], 0, "{status}");
    assert!(status["watching"]["overflows"].as_u64().unwrap() > 0, "{status}");
    println!(
        "{taken} checkpoints, {} edits, {barriers} barriers; watching {}",
        scene.edits.load(Ordering::Relaxed),
        status["watching"]
    );
}

/// Something that is done to the workspace.
type Edit = Box<dyn Fn()>;

#[test]
fn what_the_system_may_not_tell_is_captured_all_the_same() {
    if !has_git() {
        return;
    }
    let lab = Lab::new();
    for path in ["src/a", "src/b", "linked", "mapped", "gone/x/y", "ig/kept"] {
        lab.write(path, "before");
    }
    let aside = lab.root().join("aside");
    fs::create_dir(&aside).unwrap();
    fs::hard_link(lab.work.join("linked"), aside.join("other-name")).unwrap();
    let mut guarded = Guarded::new(lab);
    let root = guarded.lab.work.clone();
    guarded.take();
    guarded.await_word("warm");
    let edits: Vec<(&str, Edit)> = vec![
        ("a new directory, written into at once", {
            let dir = root.join("new/deep/er");
            Box::new(move || {
                fs::create_dir_all(&dir).unwrap();
                (0..50).for_each(|n| fs::write(dir.join(format!("f{n}")), "x").unwrap());
            })
        }),
        ("a directory renamed in, and written into", {
            let (from, to) = (aside.join("came"), root.join("came"));
            Box::new(move || {
                fs::create_dir_all(from.join("in")).unwrap();
                fs::write(from.join("in/f"), "x").unwrap();
                fs::rename(&from, &to).unwrap();
                fs::write(to.join("in/g"), "y").unwrap();
            })
        }),
        ("a directory renamed inside", {
            let (from, to) = (root.join("came"), root.join("src/went"));
            Box::new(move || {
                fs::rename(&from, &to).unwrap();
                fs::write(to.join("in/f"), "changed").unwrap();
            })
        }),
        ("a write through another name", {
            let other = aside.join("other-name");
            Box::new(move || fs::write(&other, "after!").unwrap())
        }),
        ("a second name of a file, and a write through it", {
            let (file, name) = (root.join("src/b"), root.join("second/name"));
            Box::new(move || {
                fs::create_dir(name.parent().unwrap()).unwrap();
                fs::hard_link(&file, &name).unwrap();
                fs::write(&name, "through the second name").unwrap();
            })
        }),
        ("a later write through it", {
            let name = root.join("second/name");
            Box::new(move || fs::write(&name, "once more").unwrap())
        }),
        ("a directory that vanished", {
            let gone = root.join("gone");
            Box::new(move || fs::remove_dir_all(&gone).unwrap())
        }),
        ("a directory in place of a file, and a file in place of a directory", {
            let (file, dir) = (root.join("src/a"), root.join("src/went"));
            Box::new(move || {
                fs::remove_file(&file).unwrap();
                fs::create_dir(&file).unwrap();
                fs::write(file.join("f"), "x").unwrap();
                fs::remove_dir_all(&dir).unwrap();
                fs::write(&dir, "file").unwrap();
            })
        }),
        ("rules that show what was hidden, and it changes later", {
            let rules = root.join(".gitignore");
            Box::new(move || fs::write(&rules, "hidden/\n").unwrap())
        }),
        ("a hidden directory", {
            let hidden = root.join("hidden");
            Box::new(move || {
                fs::create_dir(&hidden).unwrap();
                fs::write(hidden.join("f"), "x").unwrap();
            })
        }),
        ("shown", {
            let rules = root.join(".gitignore");
            Box::new(move || fs::write(&rules, "").unwrap())
        }),
        ("changed after it was shown", {
            let file = root.join("hidden/f");
            Box::new(move || fs::write(&file, "later").unwrap())
        }),
        ("in a directory that was hidden", {
            let dir = root.join("hidden/sub");
            Box::new(move || {
                fs::create_dir(&dir).unwrap();
                fs::write(dir.join("g"), "x").unwrap();
            })
        }),
    ];
    for (what, edit) in &edits {
        edit();
        let id = guarded.take();
        is_exact(&guarded.lab, &guarded.tree(&id), what);
    }
    let status = guarded.status();
    assert_eq!(status["watching"]["divergences"], 0, "{status}");
}

/// The names of the files that [`overflow`] writes.
const FLOODED: [&str; 3] = ["flood-1", "flood-2", "last"];

/// Has more happen below a directory, while the sidecar stands still, than the kernel keeps events.
fn overflow(guarded: &Guarded, dir: &str) {
    let signal = |name: &str| {
        let id = guarded.sidecar.child.id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), id]).status().unwrap().success());
    };
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let dir = guarded.lab.work.join(dir);
    // A writer may have taken it away.
    fs::create_dir_all(&dir).unwrap();
    signal("STOP");
    let files = [FLOODED[0], FLOODED[1]].map(|name| fs::File::create(dir.join(name)).unwrap());
    for _ in 0..limit {
        // By turns: the kernel drops an event that equals the last one.
        files.iter().for_each(|file| std::os::unix::fs::FileExt::write_all_at(file, b"x", 0).unwrap());
    }
    fs::write(dir.join(FLOODED[2]), "x").unwrap();
    signal("CONT");
}

#[test]
fn a_queue_that_overflows_is_got_over() {
    if !has_git() {
        return;
    }
    let lab = Lab::new();
    lab.write("a/f", "x");
    let mut guarded = Guarded::new(lab);
    guarded.take();
    guarded.await_word("warm");
    overflow(&guarded, "a");
    let id = guarded.take();
    is_exact(&guarded.lab, &guarded.tree(&id), "after the overflow");
    guarded.await_word("warm");
    let status = guarded.status();
    assert!(status["watching"]["overflows"].as_u64().unwrap() > 0, "{status}");
    fs::write(guarded.lab.work.join("a/f"), "later").unwrap();
    let id = guarded.take();
    is_exact(&guarded.lab, &guarded.tree(&id), "after it was got over");
}

#[test]
fn without_a_watcher_everything_is_looked_at() {
    if !has_git() {
        return;
    }
    for (setting, word) in [("none", "none"), ("poll", "scan")] {
        let lab = Lab::new();
        lab.write("a/f", "x");
        lab.set(&format!("watcher: {setting}\n"));
        let mut sidecar = Sidecar::start(&lab, &[]);
        assert_eq!(sidecar.ask(json!({"type": "hello"}))["watcher"], word);
        let mut guarded = Guarded { lab, sidecar, turn: 0, last: Value::Null };
        for content in ["1", "22", "333"] {
            fs::write(guarded.lab.work.join("a/f"), content).unwrap();
            let id = guarded.take();
            is_exact(&guarded.lab, &guarded.tree(&id), setting);
        }
        let status = guarded.status();
        assert_eq!((&status["watcher"], &status["watching"]["directories"]), (&json!(word), &json!(0)));
        assert!(status["cost"]["dirty"].is_null(), "{status}");
    }
}

#[test]
fn a_watcher_that_loses_its_root_is_told_of_in_sessions_and_in_status() {
    let lab = Lab::new();
    lab.write("a/f", "one");
    let mut guarded = Guarded::new(lab);
    guarded.take();
    let (work, away) = (guarded.lab.work.clone(), guarded.lab.root().join("away"));
    // Another directory with the same files in its place.
    fs::rename(&work, &away).unwrap();
    guarded.lab.command("cp", &away).arg("-r").arg(&away).arg(&work).status().unwrap();
    guarded.lab.write("a/f", "two");
    let id = guarded.take();
    assert!(guarded.tree(&id).contains_key("a/f"));
    guarded.status();
    let told = guarded.sidecar.notice(|notice| notice["notice"] == "watcher.degraded");
    assert!(told["reason"].as_str().unwrap().contains("the root was moved or deleted"), "{told}");
    // It watches again, and tells that it does.
    guarded.await_word("warm");
    let until = Instant::now() + WAIT;
    while guarded.status()["degraded"].is_string() {
        assert!(Instant::now() < until);
        guarded.take();
    }
    guarded.sidecar.finish();
    assert!(!guarded.sidecar.notices.iter().any(|notice| notice["notice"] == "watcher.degraded"), "told once");
}
