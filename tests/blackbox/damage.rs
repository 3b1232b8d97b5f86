//! A store that disks or people have damaged: nothing crashes, nothing wrong is brought back, and no checkpoint is blocked.
//!
//! `PITON_ROUNDS=full cargo test --test blackbox damage` flips 5,730 bits of pack indexes and 2,000 elsewhere, and cuts 200 files under a
//! warm sidecar; without it a sample.

use std::fs::{File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::dice::Dice;
use super::faults::full;
use super::support::{Lab, Output, Sidecar, Tree, tree};

/// A lab with a checkpoint in a pack and one of loose objects that shares most of it.
struct Scene {
    lab: Lab,
    one: Tree,
    two: Tree,
}

impl Scene {
    fn new() -> Scene {
        let lab = Lab::new();
        lab.sh("mkdir -p many/deep other; for i in $(seq 60); do echo $i > many/$i; echo d$i > many/deep/$i; done; \
                head -c 300000 /dev/zero | tr '\\0' 'z' > other/large; chmod 750 many/7; ln -s many/7 link");
        assert_eq!(lab.take("packed"), 1);
        let one = tree(&lab.work);
        lab.sh("echo changed > many/3; rm many/deep/9; echo new > new");
        assert_eq!(lab.take("loose"), 2);
        let two = tree(&lab.work);
        Scene { lab, one, two }
    }

    fn home(&self) -> PathBuf {
        self.lab.home.join("piton")
    }

    fn packs(&self, kind: &str) -> Vec<PathBuf> {
        let found =
            std::fs::read_dir(self.lab.store().join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<PathBuf> = found.filter(|path| path.extension().is_some_and(|is| is == kind)).collect();
        found.sort();
        found
    }

    /// Keeps piton's home as it is, to go back to.
    fn keep(&self) -> PathBuf {
        let kept = self.lab.root().join("kept");
        self.lab.sh(&format!("cp -a {} {}", self.home().display(), kept.display()));
        kept
    }

    fn go_back(&self, kept: &Path) {
        self.lab.sh(&format!("rm -rf {home} && cp -a {} {home}", kept.display(), home = self.home().display()));
    }

    /// Returns what a checkpoint brings back in an empty place; the reply if it refuses.
    fn brought_back(&self, n: u64) -> Result<Tree, Output> {
        let out = self.lab.root().join("out");
        let _ = std::fs::remove_dir_all(&out);
        let done = self.lab.piton(&["restore", &n.to_string(), "--to", out.to_str().unwrap(), "--yes", "--json"]);
        if done.code == 0 { Ok(tree(&out)) } else { Err(done) }
    }

    /// A checkpoint is whole, or refused with a code that says why.
    fn is_right_or_refused(&self, n: u64, expected: &Tree, round: &str) -> bool {
        match self.brought_back(n) {
            Ok(tree) => assert_eq!(&tree, expected, "{round}: checkpoint {n}"),
            Err(done) => {
                ends(&done, round);
                let known =
                    ["incomplete-checkpoint", "store-damaged", "no-such-checkpoint", "pruned", "not-a-checkpoint"];
                assert!(known.contains(&done.error().as_str()), "{round}: checkpoint {n}: {done:?}");
                return false;
            }
        }
        true
    }

    /// The next checkpoint is taken and is whole.
    fn goes_on(&self, round: &str) -> u64 {
        self.lab.write("after", round);
        let taken = self.lab.piton(&["checkpoint", "--json"]);
        assert_eq!(taken.code, 0, "{round}: {taken:?}");
        let n = taken.json()["checkpoint"]["n"].as_u64().unwrap();
        match self.brought_back(n) {
            Ok(back) => assert_eq!(back, tree(&self.lab.work), "{round}"),
            Err(done) => panic!("{round}: the new checkpoint {n} is not whole: {done:?}"),
        }
        n
    }
}

/// It ended by itself, and not by a signal or a panic.
fn ends(output: &Output, round: &str) {
    assert!((0..=7).contains(&output.code), "{round}: {output:?}");
}

/// Writes a file anew in its place; with `silently` its times stay.
fn overwrite(path: &Path, bytes: &[u8], silently: bool) {
    let facts = path.metadata().unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
    if silently {
        let times = FileTimes::new().set_modified(facts.modified().unwrap()).set_accessed(facts.accessed().unwrap());
        File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }
    std::fs::set_permissions(path, facts.permissions()).unwrap();
}

fn cut(path: &Path, length: u64) {
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}

/// Does something to a pack.
type Harm = fn(&Path);

/// Makes damaged bytes of whole ones.
type Spoil = fn(&[u8]) -> Vec<u8>;

/// Ways in which a pack goes.
const GOES: [(&str, Harm); 4] = [
    ("gone with its index", |pack| {
        std::fs::remove_file(pack).unwrap();
        std::fs::remove_file(pack.with_extension("idx")).unwrap();
    }),
    ("gone", |pack| std::fs::remove_file(pack).unwrap()),
    ("emptied", |pack| cut(pack, 0)),
    ("torn", |pack| cut(pack, pack.metadata().unwrap().len() / 8)),
];

#[test]
fn a_pack_that_goes_stops_nothing_and_everybody_says_so() {
    for (how, goes) in GOES {
        let scene = Scene::new();
        goes(&scene.packs("pack")[0]);
        let listed = scene.lab.piton(&["list", "--json"]);
        assert_eq!(listed.code, 6, "{how}: {listed:?}");
        let listed = listed.json();
        let second = listed["checkpoints"].as_array().unwrap().iter().find(|row| row["n"] == 2);
        let flags = second.map(|row| row["flags"].to_string()).unwrap_or_default();
        assert!(flags.contains("damaged"), "{how}: checkpoint 2 stays listed and is marked: {listed}");
        let broken = scene.lab.piton(&["status", "--json"]);
        assert!(broken.code == 6 && broken.json()["broken"].to_string().contains("checkpoint 2"), "{how}: {broken:?}");
        let doctor = scene.lab.piton(&["doctor", "--json"]);
        assert!(doctor.code == 6 && doctor.stdout.contains("damaged"), "{how}: {doctor:?}");
        let refs = scene.lab.piton(&["doctor", "--refs"]);
        assert!(refs.code == 6 && refs.stdout.contains("checkpoint 2 is damaged"), "{how}: {refs:?}");
        scene.is_right_or_refused(1, &scene.one, how);
        scene.is_right_or_refused(2, &scene.two, how);
        // Nothing has changed since: what is there is stored again all the same.
        let taken = scene.lab.piton(&["checkpoint", "--json"]);
        assert_eq!(taken.code, 0, "{how}: {taken:?}");
        assert_eq!(scene.brought_back(2).as_ref(), Ok(&scene.two), "{how}: {taken:?}");
        scene.goes_on(how);
        scene.is_right_or_refused(1, &scene.one, how);
    }
}

#[test]
fn a_warm_process_does_not_build_on_a_pack_that_is_gone() {
    for (how, goes) in GOES {
        let scene = Scene::new();
        let mut sidecar = Sidecar::start(&scene.lab, &[]);
        let create = || json!({ "type": "checkpoint.create", "label": "warm" });
        for round in 0..2 {
            scene.lab.write("warm", format!("{round}"));
            assert_eq!(sidecar.ask(create())["ok"], true);
        }
        goes(&scene.packs("pack")[0]);
        for round in 0..2 {
            scene.lab.write("later", format!("{round}"));
            let reply = sidecar.ask(create());
            assert_eq!(reply["ok"], true, "{how}: {reply}");
            let n = reply["checkpoint"]["n"].as_u64().unwrap();
            assert_eq!(scene.brought_back(n).as_ref(), Ok(&tree(&scene.lab.work)), "{how}: {reply}");
        }
    }
}

#[test]
fn an_action_is_not_held_by_a_checkpoint_that_went_with_its_pack() {
    // The packs go at once, or after idle tasks have listed them.
    [0, 500].into_iter().for_each(went_with_its_pack);
}

fn went_with_its_pack(after_ms: u64) {
    let lab = Lab::new();
    (0..80).for_each(|n| lab.write(&format!("k{n}"), format!("{n}\n")));
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({ "type": "turn.start", "turn": "t1" }));
    let shell = |command: &str| json!({ "type": "shell.before", "command": command });
    let first = sidecar.ask(shell("rm k1"));
    assert_eq!(first["checkpoint"]["status"], "taken", "{first}");
    std::thread::sleep(Duration::from_millis(after_ms));
    let packs = lab.store().join("objects/pack");
    for entry in std::fs::read_dir(packs).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let expected = tree(&lab.work);
    for command in ["rm k1", "git checkout .", "rm k2"] {
        let reply = sidecar.ask(shell(command));
        // A number, or "1.1" where the answer is a step.
        let n = reply["checkpoint"]["n"].to_string();
        let to = lab.root().join(format!("back of {command}"));
        let restored = lab.piton(&["restore", n.trim_matches('"'), "--to", to.to_str().unwrap()]);
        assert_eq!(restored.code, 0, "{command}: {reply}: {restored:?}");
        assert_eq!(tree(&to), expected, "{command}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_flipped_bit_of_an_index_is_named_and_mended() {
    let scene = Scene::new();
    let kept = scene.keep();
    let index = scene.packs("idx")[0].clone();
    let whole = std::fs::read(&index).unwrap();
    let rounds = if full() { 5730 } else { 12 };
    let mut dice = Dice(0x1d5);
    for round in 0..rounds {
        let bit = dice.roll(whole.len() as u64 * 8) as usize;
        let silently = dice.roll(2) == 0;
        let name = format!("index, round {round}, bit {bit}, silently: {silently}");
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        overwrite(&index, &wrong, silently);
        let doctor = scene.lab.piton(&["doctor", "--json"]);
        ends(&doctor, &name);
        assert!(doctor.stdout.contains("the index") && doctor.stdout.contains("is damaged"), "{name}: {doctor:?}");
        let back = scene.brought_back(1 + round % 2);
        let expected = if round % 2 == 0 { &scene.one } else { &scene.two };
        assert_eq!(back.as_ref(), Ok(expected), "{name}");
        let taken = scene.lab.piton(&["checkpoint", "--json"]);
        assert_eq!(taken.code, 0, "{name}: {taken:?}");
        assert!(std::fs::read(&index).unwrap() == whole, "{name}: the index is written anew");
        if round % 500 == 499 {
            scene.go_back(&kept);
        }
    }
    println!("damage: {rounds} flipped bits of an index, all named and mended");
}

/// Everything that piton keeps of its own, but indexes of packs.
fn kept_files(home: &Path) -> Vec<PathBuf> {
    let (mut files, mut pending) = (Vec::new(), vec![home.join("store.git"), home.join("workspaces")]);
    files.push(home.join("workspaces.index"));
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.metadata().is_ok_and(|facts| facts.len() > 0)
                && path.extension().is_none_or(|is| is != "idx")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_flipped_bit_anywhere_else_is_found_or_harmless() {
    let scene = Scene::new();
    let kept = scene.keep();
    let files = kept_files(&scene.home());
    let rounds = if full() { 2000 } else { 24 };
    let (mut dice, mut refused) = (Dice(0xe15e), 0);
    for round in 0..rounds {
        scene.lab.sh("rm -f after");
        // A pack is one file of many: every third flip is in one.
        let packs = scene.packs("pack");
        let path = if round % 3 == 0 { &packs[0] } else { &files[dice.roll(files.len() as u64) as usize] };
        let mut bytes = std::fs::read(path).unwrap();
        let bit = dice.roll(bytes.len() as u64 * 8) as usize;
        let silently = dice.roll(2) == 0;
        let name = format!("round {round}, {}, bit {bit}, silently: {silently}", path.display());
        bytes[bit / 8] ^= 1 << (bit % 8);
        overwrite(path, &bytes, silently);
        for args in [&["list", "--json"][..], &["status", "--json"]] {
            ends(&scene.lab.piton(args), &name);
        }
        let is_whole =
            [(1, &scene.one), (2, &scene.two)].map(|(n, expected)| scene.is_right_or_refused(n, expected, &name));
        if is_whole.contains(&false) {
            refused += 1;
            let refs = scene.lab.piton(&["doctor", "--refs"]);
            ends(&refs, &name);
        }
        scene.goes_on(&name);
        scene.go_back(&kept);
    }
    println!("damage: {rounds} flipped bits elsewhere, {refused} found when a checkpoint was read, no wrong content");
}

#[test]
fn files_that_are_cut_under_a_warm_sidecar() {
    let scene = Scene::new();
    let mut sidecar = Sidecar::start(&scene.lab, &[]);
    let rounds = if full() { 200 } else { 12 };
    let mut dice = Dice(0xc07);
    for round in 0..rounds {
        if round % 4 == 0 {
            // A further pack.
            scene.lab.sh(&format!("mkdir -p more; for i in $(seq 70); do echo {round}-$i > more/$i; done"));
        }
        scene.lab.write("warm", format!("{round}"));
        let reply = sidecar.ask(json!({ "type": "checkpoint.create", "label": "warm" }));
        assert_eq!(reply["ok"], true, "round {round}: {reply}");
        let n = reply["checkpoint"]["n"].as_u64().unwrap();
        assert_eq!(scene.brought_back(n).as_ref(), Ok(&tree(&scene.lab.work)), "round {round}: {reply}");
        let files = [scene.packs("pack"), scene.packs("idx")].concat();
        let path = &files[dice.roll(files.len() as u64) as usize];
        let length = path.metadata().unwrap().len();
        cut(path, if length == 0 { 0 } else { dice.roll(length) });
        // The warm process reads what was cut.
        let listed = sidecar.ask(json!({ "type": "checkpoint.list" }));
        assert_eq!(listed["ok"], true, "round {round}: {listed}");
        let shown = sidecar.ask(json!({ "type": "checkpoint.show", "checkpoint": "1" }));
        assert!(shown.get("ok").is_some(), "round {round}: {shown}");
    }
    assert_eq!(sidecar.finish(), 0);
    println!("damage: {rounds} files cut under a warm sidecar");
}

#[test]
fn what_is_derived_is_written_anew() {
    let files = ["config", "HEAD", "piton-epoch", "piton-packs", "description"];
    let scene = Scene::new();
    let kept = scene.keep();
    let damages: [(&str, Spoil); 4] = [
        ("emptied", |_| Vec::new()),
        ("torn", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("a bad byte", |bytes| [&b"\xff"[..], &bytes[1..]].concat()),
        ("zeros", |bytes| vec![0; bytes.len()]),
    ];
    for file in files {
        for (how, damage) in damages {
            let name = format!("{file} {how}");
            let path = scene.lab.store().join(file);
            let bytes = std::fs::read(&path).unwrap();
            overwrite(&path, &damage(&bytes), false);
            let listed = scene.lab.piton(&["list", "--json"]);
            assert!(listed.code == 0 && listed.json()["total"] == 2, "{name}: {listed:?}");
            assert_eq!(scene.brought_back(1).as_ref(), Ok(&scene.one), "{name}");
            scene.goes_on(&name);
            scene.lab.sh("rm -f after");
            scene.go_back(&kept);
        }
    }
    // Each flip of the one digit that says the format.
    let path = scene.lab.store().join("config");
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("format = 3\n[fsck]").unwrap() + "format = ".len();
    for bit in 0..8 {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1 << bit;
        overwrite(&path, &bytes, false);
        let listed = scene.lab.piton(&["list", "--json"]);
        assert!(listed.code == 0 && listed.json()["total"] == 2, "bit {bit}: {listed:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

fn id_of(lab: &Lab) -> Value {
    lab.piton(&["status", "--json"]).json()["workspace"]["id"].clone()
}

#[test]
fn a_workspace_finds_its_history_again() {
    let scene = Scene::new();
    let id = id_of(&scene.lab);
    let dir = scene.home().join("workspaces").join(id.as_str().unwrap());
    let record = dir.join("workspace.json");
    let text = std::fs::read_to_string(&record).unwrap();
    let damages: [&dyn Fn(); 5] = [
        &|| std::fs::remove_file(&record).unwrap(),
        &|| std::fs::write(&record, "").unwrap(),
        &|| std::fs::write(&record, &text[..text.len() / 2]).unwrap(),
        &|| std::fs::write(&record, text.replace("work", "wprk")).unwrap(),
        &|| std::fs::remove_dir_all(&dir).unwrap(),
    ];
    for (case, damage) in damages.iter().enumerate() {
        damage();
        let listed = scene.lab.piton(&["list", "--json"]);
        assert!(listed.code == 0 && listed.json()["total"] == 2, "case {case}: {listed:?}");
        assert_eq!(id_of(&scene.lab), id, "case {case}");
        assert_eq!(scene.brought_back(1).as_ref(), Ok(&scene.one), "case {case}");
    }
    // Both copies are gone: the view of an ordinary git still tells, if there is one; else it is said.
    std::fs::remove_file(&record).unwrap();
    std::fs::remove_file(scene.home().join("workspaces.index")).unwrap();
    assert_eq!(scene.lab.piton(&["checkpoint", "a new history", "--json"]).code, 0);
    let status = scene.lab.piton(&["status", "--json"]);
    assert!(status.json()["mishaps"].to_string().contains(id.as_str().unwrap()), "{status:?}");
    let doctor = scene.lab.piton(&["doctor"]);
    assert!(doctor.stdout.contains(id.as_str().unwrap()) && doctor.stdout.contains("workspace.json"), "{doctor:?}");
    let given = json!({ "id": id, "path": scene.lab.work });
    std::fs::write(&record, given.to_string()).unwrap();
    assert_eq!(id_of(&scene.lab), id, "as `doctor` says");
}

#[test]
fn a_record_without_a_checksum_gives_no_history_to_another_directory() {
    let scene = Scene::new();
    let (id, other) = (id_of(&scene.lab), scene.lab.root().join("other"));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("mine"), "mine\n").unwrap();
    let record = scene.home().join("workspaces").join(id.as_str().unwrap()).join("workspace.json");
    std::fs::remove_file(scene.home().join("workspaces.index")).unwrap();
    let mut older: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    older.as_object_mut().unwrap().remove("sum").unwrap();
    let mut wrong = older.clone();
    wrong["path"] = json!(other.canonicalize().unwrap());
    std::fs::write(&record, wrong.to_string()).unwrap();
    let restored = scene.lab.piton(&["restore", "1", "--yes", "--workspace", other.to_str().unwrap()]);
    assert_ne!(restored.code, 0, "{restored:?}");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1, "{restored:?}");
    // As an older build wrote it, it counts, and is written anew with its checksum.
    std::fs::write(&record, older.to_string()).unwrap();
    assert_eq!(id_of(&scene.lab), id);
    assert!(std::fs::read_to_string(&record).unwrap().contains("\"sum\""));
    assert_eq!(scene.brought_back(1).as_ref(), Ok(&scene.one));
}

#[test]
fn a_missing_loose_object_is_stored_anew_once_it_was_missed() {
    // The verbs that find it missing: a restore, a look at all, or a list that has reason to look.
    let finders: [&[&str]; 2] = [&["restore", "2", "--to", "../missed", "--yes"], &["doctor", "--refs"]];
    for finder in finders {
        for name in ["new", "many"] {
            let scene = Scene::new();
            let mut sidecar = Sidecar::start(&scene.lab, &[]);
            let mut create = |round: &str| {
                scene.lab.write("warm", round);
                let reply = sidecar.ask(json!({ "type": "checkpoint.create", "label": "warm" }));
                reply["checkpoint"]["n"].as_u64().unwrap_or_else(|| panic!("{finder:?} {name}: {reply}"))
            };
            create("1");
            let listed = scene.lab.piton(&["list", "--json"]).json();
            let second = listed["checkpoints"].as_array().unwrap().iter().find(|row| row["n"] == 2).unwrap();
            let of = format!("{}:{name}", second["id"].as_str().unwrap());
            let Some(id) = scene.lab.store_git(&["rev-parse", &of]) else { return };
            let (dir, file) = id.trim().split_at(2);
            std::fs::remove_file(scene.lab.store().join("objects").join(dir).join(file)).unwrap();
            let missed = scene.lab.piton(finder);
            assert_eq!(missed.code, 6, "{finder:?} {name}: {missed:?}");
            for round in ["2", "3"] {
                let n = create(round);
                assert_eq!(scene.brought_back(n).as_ref(), Ok(&tree(&scene.lab.work)), "{finder:?} {name}");
            }
            assert_eq!(scene.brought_back(2).as_ref(), Ok(&scene.two), "{finder:?} {name}: the content is there again");
            assert_eq!(scene.lab.piton(&["doctor", "--refs"]).code, 0, "{finder:?} {name}");
            assert_eq!(scene.lab.piton(&["status"]).code, 0, "{finder:?} {name}");
        }
    }
}

#[test]
fn a_store_is_well_again_when_everything_was_stored_anew() {
    let lab = Lab::new();
    lab.sh("mkdir many; for i in $(seq 80); do echo $i > many/$i; done; head -c 300000 /dev/urandom > noise");
    assert_eq!(lab.take("packed"), 1);
    let expected = tree(&lab.work);
    let scene = Scene { lab, one: expected.clone(), two: expected };
    // Its middle is within the noise.
    let pack = scene.packs("pack")[0].clone();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    overwrite(&pack, &bytes, false);
    assert!(!scene.is_right_or_refused(1, &scene.one, "flipped"));
    assert_eq!(scene.lab.piton(&["checkpoint"]).code, 0);
    assert_eq!(scene.brought_back(1).as_ref(), Ok(&scene.one));
    let doctor = scene.lab.piton(&["doctor"]);
    assert!(doctor.code != 6 && !doctor.stdout.contains("damaged"), "{doctor:?}");
    for args in [&["doctor", "--refs"][..], &["status"], &["list"]] {
        let said = scene.lab.piton(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
    }
    assert!(!std::fs::read_to_string(scene.lab.store().join("piton-packs")).unwrap().contains("suspect"));
}

#[test]
fn fetching_again_heals_what_was_fetched() {
    let theirs = Lab::new();
    theirs.sh("mkdir many; for i in $(seq 80); do echo $i > many/$i; done");
    theirs.take("theirs");
    let remote = theirs.root().join("shared.git");
    let remote = remote.to_str().unwrap();
    let listed = theirs.piton(&["list", "--json"]).json();
    let id = listed["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    if super::support::git(&theirs, &["init", "-q", "--bare", remote]).is_none() {
        return;
    }
    let sent = theirs.piton(&["push", remote]);
    assert_eq!(sent.code, 0, "{sent:?}");
    let lab = Lab::new();
    lab.write("mine", "m\n");
    lab.take("mine");
    let ours = Scene { one: tree(&theirs.work), two: tree(&lab.work), lab };
    for round in ["cut", "flipped"] {
        assert_eq!(ours.lab.piton(&["fetch", remote]).code, 0, "{round}");
        assert_eq!(ours.lab.piton(&["doctor", "--refs"]).code, 0, "{round}: all is well before");
        for pack in ours.packs("pack") {
            let mut bytes = std::fs::read(&pack).unwrap();
            match round {
                "cut" => bytes.truncate(bytes.len() / 3),
                _ => (bytes.len() / 3..bytes.len() / 2).for_each(|at| bytes[at] ^= 1),
            }
            overwrite(&pack, &bytes, false);
        }
        let out = ours.lab.root().join(round);
        let restore = || ours.lab.piton(&["restore", &id, "--to", out.to_str().unwrap(), "--yes"]);
        assert_ne!(restore().code, 0, "{round}");
        let again = ours.lab.piton(&["fetch", remote]);
        assert_eq!(again.code, 0, "{round}: {again:?}");
        let restored = restore();
        assert_eq!(restored.code, 0, "{round}: {restored:?}");
        assert_eq!(tree(&out), ours.one, "{round}");
    }
}

/// Killed between the pack and its index, a fetch or a checkpoint leaves a pack that no ref needs.
#[test]
fn a_pack_that_a_killed_writer_left_is_no_damage_and_goes() {
    let (scene, other) = (Scene::new(), Scene::new());
    other.lab.write("foreign", "in no checkpoint of the other store");
    assert_eq!(other.lab.take("another"), 3);
    assert!([0, 3].contains(&other.lab.piton(&["prune", "--yes"]).code));
    let left = scene.lab.store().join("objects/pack/pack-00112233445566778899aabbccddeeff00112233.pack");
    std::fs::copy(&other.packs("pack")[0], &left).unwrap();
    // Before the next writer has looked at it, and behind that.
    for _ in 0..2 {
        let doctor = scene.lab.piton(&["doctor", "--refs"]);
        assert_eq!(doctor.code, 0, "{doctor:?}");
        scene.lab.write("new", "newer");
        scene.lab.take("next");
    }
    // Within its first second it may be another process's.
    let until = std::time::Instant::now() + Duration::from_mins(1);
    while left.exists() {
        assert!(std::time::Instant::now() < until, "it stays");
        assert!([0, 1, 3].contains(&scene.lab.piton(&["prune", "--yes"]).code));
    }
    assert_eq!(scene.packs("pack").len(), scene.packs("idx").len());
    assert_eq!(scene.lab.piton(&["doctor", "--refs"]).code, 0);
    assert_eq!(scene.brought_back(1).unwrap(), scene.one);
    // A pack that is known, and has lost its index, is told of.
    std::fs::remove_file(&scene.packs("idx")[0]).unwrap();
    let doctor = scene.lab.piton(&["doctor"]);
    assert!(doctor.code == 6 && doctor.stdout.contains("has no index"), "{doctor:?}");
}
