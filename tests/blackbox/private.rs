//! Private files: those that ignore rules leave out, and secrets. Checkpoints hold them where no git command reaches them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::dice::Dice;
use crate::support::{Lab, Sidecar, git, number_of, tree};

/// Makes a workspace with ignored files and secrets.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write(".gitignore", "data/\n*.key\nlocal.cfg\nnode_modules/\n");
    lab.write("package.json", "{}\n");
    for (path, content) in [
        ("a.txt", "a"),
        ("data/one", "1"),
        ("data/deep/two", "2"),
        (".env", "TOKEN=first"),
        ("priv.key", "k"),
        ("local.cfg", "c"),
        ("node_modules/m/index.js", "made"),
    ] {
        lab.write(path, content);
    }
    lab.sh("mkdir -p data/empty; chmod 600 .env; chmod 700 data");
    lab
}

fn local(lab: &Lab) -> PathBuf {
    lab.home.join("piton/local.git")
}

/// Returns all objects of a repository, inflated, as git reads them.
fn objects(dir: &Path) -> Vec<u8> {
    let list = "git cat-file --batch-all-objects --batch --unordered";
    let output = Command::new("sh").arg("-c").arg(list).env("GIT_DIR", dir).output().unwrap();
    output.stdout
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn one_restore_brings_back_what_no_rule_admits_and_deletes_none() {
    let lab = lab();
    let before = tree(&lab.work);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    // A script that names nothing, then what is named.
    let first = sidecar.ask(json!({"type": "shell.before", "command": "./wipe.sh"}));
    for command in ["rm a.txt", "rm -rf data/", "rm .env priv.key local.cfg"] {
        let reply = sidecar.ask(json!({"type": "shell.before", "command": command}));
        assert!(reply["not_held"].is_null(), "{reply}");
        lab.sh(command);
    }
    lab.write("late.key", "made later");
    assert_eq!(sidecar.finish(), 0);
    lab.restore(number_of(&first), &[]);
    assert_eq!(lab.read("late.key"), "made later", "nothing private is deleted unless it is named");
    std::fs::remove_file(lab.work.join("late.key")).unwrap();
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn a_directory_of_private_files_has_its_permissions_wherever_it_is_held() {
    let lab = lab();
    let n = lab.take("first");
    let before = tree(&lab.work);
    lab.sh("rm -rf data");
    lab.restore(n, &[]);
    assert_eq!(tree(&lab.work), before);
    // The checkpoints of these steps hold the directory among named paths, and its files among the private ones.
    for verb in ["undo", "redo", "undo", "redo"] {
        assert_eq!(lab.piton(&[verb, "--yes"]).code, 0);
        assert_eq!(tree(&lab.work) == before, verb == "redo", "{verb}");
    }
}

#[test]
fn a_directory_of_which_only_a_named_file_is_held_has_its_permissions() {
    for is_warm in [false, true] {
        let lab = lab();
        lab.sh("chmod 700 node_modules; chmod 750 node_modules/m");
        let before = tree(&lab.work);
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "hello"}));
        if is_warm {
            sidecar.ask(json!({"type": "checkpoint.create", "label": "everything is read"}));
        }
        let first = sidecar.ask(json!({"type": "shell.before", "command": "rm node_modules/m/index.js"}));
        // Nothing is named here, and what was named before is held still.
        lab.write("a.txt", "b");
        let second = sidecar.ask(json!({"type": "shell.before", "command": "./wipe.sh"}));
        assert_eq!(sidecar.finish(), 0);
        lab.sh("rm -rf node_modules; printf a > a.txt");
        lab.restore(number_of(&first), &[]);
        assert_eq!(tree(&lab.work), before, "{first}");
        lab.sh("rm -rf node_modules");
        lab.restore(number_of(&second), &[]);
        let dirs = ["node_modules", "node_modules/m"].map(PathBuf::from);
        let now = tree(&lab.work);
        assert!(dirs.iter().all(|dir| now.get(dir).is_none_or(|found| *found == before[dir])), "{second}");
    }
}

#[test]
fn private_files_that_are_there_change_only_by_name() {
    let lab = lab();
    let n = lab.take("first");
    let change = || {
        lab.write(".env", "TOKEN=second");
        lab.write("data/one", "changed");
        lab.write("data/later", "later");
        lab.write("a.txt", "changed");
    };
    change();
    let preview = lab.piton(&["restore", &n.to_string(), "--preview"]).stdout;
    assert!(preview.contains("local"), "{preview}");
    lab.restore(n, &[]);
    let now = || ["a.txt", ".env", "data/one", "data/later"].map(|path| lab.read(path));
    assert_eq!(now(), ["a", "TOKEN=second", "changed", "later"]);
    lab.restore(n, &["data"]);
    assert_eq!((lab.read("data/one").as_str(), lab.work.join("data/later").exists()), ("1", false));
    assert_eq!(lab.read(".env"), "TOKEN=second");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(now(), ["a", "TOKEN=second", "changed", "later"], "undo goes over what the restore did");
    change();
    assert_eq!(lab.piton(&["restore", &n.to_string(), "--local", "--yes"]).code, 0);
    assert_eq!(
        (lab.read("a.txt").as_str(), lab.read(".env").as_str(), lab.read("data/one").as_str()),
        ("a", "TOKEN=first", "1")
    );
    assert!(!lab.work.join("data/later").exists() && lab.work.join("node_modules/m/index.js").exists());
}

#[test]
fn no_git_command_reaches_a_secret() {
    let lab = lab();
    let secrets: Vec<String> = (0..40).map(|n| format!("hunter-{n}-secret")).collect();
    for (n, secret) in secrets.iter().enumerate() {
        let path = match n % 4 {
            0 => format!("d{n}/.env"),
            1 => format!("k{n}.key"),
            2 => format!("data/s{n}"),
            _ => format!("d{n}/.env.local"),
        };
        lab.write(&path, secret.as_str());
    }
    let n = lab.take("all");
    lab.sh("rm -rf data k*.key d*/.env");
    lab.restore(n, &[]);
    assert_eq!(lab.piton(&["checkpoint", "by name", "--", "data", "k1.key", "d0/.env"]).code, 0);
    let (shared, private) = (objects(&lab.store()), objects(&local(&lab)));
    for secret in &secrets {
        assert!(!has(&shared, secret), "{secret} is where git shows it");
        assert!(has(&private, secret), "{secret} is not saved");
    }
    if lab.store_git(&["fsck", "--full"]).is_none() {
        return;
    }
    let bare = lab.root().join("remote.git");
    git(&lab, &["init", "-q", "--bare", bare.to_str().unwrap()]);
    lab.store_git(&["push", "-q", "--mirror", bare.to_str().unwrap()]);
    let bundle = lab.root().join("all.bundle");
    lab.store_git(&["bundle", "create", "-q", bundle.to_str().unwrap(), "--all"]);
    let sent = objects(&bare);
    let bundled = std::fs::read(bundle).unwrap();
    assert!(!sent.is_empty() && secrets.iter().all(|secret| !has(&sent, secret) && !has(&bundled, secret)));
}

#[test]
fn an_unchanged_layer_is_stored_once_and_a_changed_one_is_another_version() {
    let lab = lab();
    let layers = || {
        let refs = Command::new("git").arg("--git-dir").arg(local(&lab)).arg("for-each-ref").output();
        String::from_utf8(refs.unwrap().stdout).unwrap().lines().count()
    };
    lab.take("one");
    lab.write("a.txt", "b");
    lab.take("two");
    assert_eq!(layers(), 1);
    lab.write(".env", "TOKEN=second");
    lab.take("three");
    assert_eq!(layers(), 2);
    let found = lab.piton(&["find", ".env", "--json"]).json();
    let held: Vec<_> = found["versions"].as_array().unwrap().iter().map(|one| one["checkpoints"].clone()).collect();
    assert_eq!(held, [json!([3]), json!([1, 2])]);
    let diff = lab.piton(&["diff", "2", "3"]).stdout;
    assert!(diff.contains("TOKEN=second"), "{diff}");
    let shown = lab.piton(&["show", "3"]).stdout;
    assert!(shown.contains("0600  .env  (private)") && !shown.contains("index.js"), "{shown}");
}

#[test]
fn what_is_beyond_the_budget_is_said_before_it_goes() {
    let lab = lab();
    lab.write("data/big", vec![7; 30_000_000]);
    let mut sidecar = Sidecar::start(&lab, &[]);
    let reply = sidecar.ask(json!({"type": "shell.before", "command": "./wipe.sh"}));
    assert_eq!(reply["not_held"][0]["path"], "data/big", "{reply}");
    // Named files have a budget of their own.
    let named = sidecar.ask(json!({"type": "shell.before", "command": "rm data/big"}));
    assert!(named["not_held"].is_null(), "{named}");
    assert_eq!(sidecar.finish(), 0);
    lab.sh("rm data/big");
    lab.restore(number_of(&named), &[]);
    assert_eq!(lab.work.join("data/big").metadata().unwrap().len(), 30_000_000);
    for (setting, held) in [("ignored.files=0", false), ("ignored.files=3", true), ("secrets=on-target", false)] {
        let lab = self::lab();
        assert_eq!(lab.piton(&["checkpoint", "x", "--set", setting]).code, 0);
        let shown = lab.piton(&["show", "1"]).stdout;
        assert_eq!(shown.contains(" .env  (private)"), held, "{setting}: {shown}");
    }
}

#[test]
fn a_step_serves_the_moment_of_its_turn_as_long_as_nothing_had_changed() {
    let lab = lab();
    lab.set("ignored: {file_mb: 1}\n");
    for name in ["big", "moved", "last"] {
        lab.write(&format!("data/{name}"), vec![7; 2_000_000]);
    }
    let before = tree(&lab.work);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let mut act = |command: &str| {
        let reply = sidecar.ask(json!({"type": "shell.before", "command": command}));
        assert!(reply["not_held"].is_null(), "{command}: {reply}");
        lab.sh(command);
        reply["checkpoint"]["n"].clone()
    };
    assert_eq!(act("rm a.txt"), 1);
    assert_eq!(act("rm data/big"), "1.1");
    lab.write("data/moved", vec![8; 2_000_000]);
    lab.write("data/new", vec![9; 2_000_000]);
    assert_eq!(act("rm data/moved data/new"), "1.2");
    assert_eq!(act("rm data/last node_modules/m/index.js"), "1.3");
    assert_eq!(sidecar.finish(), 0);
    let preview = lab.piton(&["restore", "1", "--preview"]).stdout;
    for said in [
        "`data/big` from 1.1",
        "`node_modules/m/index.js` from 1.3",
        "did not check `data/moved`, which 1.2 has as it was later",
        // Nothing proves that it was in this very directory: files of that have come and gone.
        "did not check `data/last`, which 1.3 has as it was later",
    ] {
        assert!(preview.contains(said), "{said}: {preview}");
    }
    let found = lab.piton(&["find", "data/big"]).stdout;
    assert!(found.contains("2.0 MB"), "{found}");
    lab.restore(1, &[]);
    assert!(!lab.work.join("data/new").exists(), "it was not there");
    assert!(!lab.work.join("data/moved").exists(), "nobody knows how it was");
    assert_eq!(lab.piton(&["restore", "1.2", "data/moved", "--yes"]).code, 0);
    assert_eq!(lab.piton(&["restore", "1.3", "data/last", "--yes"]).code, 0);
    lab.write("data/moved", vec![7; 2_000_000]);
    assert_eq!(tree(&lab.work), before);
    // The diff between the two ends of a turn names none of them: both moments hold them.
    let diff = lab.piton(&["diff", "1", "1.1", "--stat"]).stdout;
    assert!(diff.contains("a.txt") && !diff.contains("data/big"), "{diff}");
    assert_eq!(lab.piton(&["delete", "1.1", "--yes"]).code, 0);
    std::fs::remove_file(lab.work.join("data/big")).unwrap();
    assert_eq!(lab.piton(&["restore", "1", "--yes"]).code, 3, "its step is gone");
    assert!(!lab.work.join("data/big").exists());
}

#[test]
fn a_renamed_directory_does_not_pass_its_files_off_as_others() {
    let lab = lab();
    lab.set("ignored: {file_mb: 1}\n");
    lab.write("data/p/f", vec![b'A'; 2_000_000]);
    lab.write("data/q/f", vec![b'B'; 2_000_000]);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    sidecar.ask(json!({"type": "shell.before", "command": "rm a.txt"}));
    lab.sh("rm a.txt; mv data/p data/old; mv data/q data/p");
    let step = sidecar.ask(json!({"type": "shell.before", "command": "rm -rf data"}));
    assert_eq!(number_of(&step), "1.1", "{step}");
    lab.sh("rm -rf data");
    assert_eq!(sidecar.finish(), 0);
    let restored = lab.piton(&["restore", "1", "--yes"]);
    assert!(!lab.work.join("data/p/f").exists(), "that one was `data/q/f` then: {restored:?}");
    assert!(restored.stdout.contains("did not check `data/p/f`, which 1.1 has as it was later"), "{restored:?}");
    assert!(!lab.work.join("data/old").exists(), "{restored:?}");
    assert_eq!(lab.piton(&["restore", "1.1", "data", "--yes"]).code, 0);
    assert_eq!(std::fs::read(lab.work.join("data/p/f")).unwrap(), vec![b'B'; 2_000_000]);
}

#[test]
fn absent_and_not_captured_are_two_things_for_private_files() {
    let lab = lab();
    let says = |args: &[&str]| lab.piton(args).stdout;
    lab.take("one");
    lab.write("data/late", "2");
    lab.take("two");
    assert!(says(&["find", "data/late"]).contains("absent  in checkpoint 1"), "the layer looked there");
    assert!(says(&["diff", "1", "2", "--stat"]).contains("data/late"));
    assert!(says(&["restore", "1", "data/late", "--preview"]).contains("delete"));
    // Nobody looks into what a tool made; what made it goes later.
    std::fs::remove_file(lab.work.join("package.json")).unwrap();
    lab.take("three");
    let found = says(&["find", "node_modules/m/index.js"]);
    assert!(found.contains("not captured (ignored when the checkpoint was taken)  in checkpoint 1, 2"), "{found}");
    assert!(!says(&["diff", "1", "3", "--stat"]).contains("node_modules"));
    lab.restore(1, &["--local"]);
    assert!(lab.work.join("node_modules/m/index.js").exists());
    // A secret that the commit of HEAD has by now is as public as any file.
    lab.sh("rm .env");
    lab.take("without");
    lab.write(".env", "K=1");
    lab.sh("git init -q; git add -f .env; git -c user.name=t -c user.email=t@example.org commit -qm one");
    lab.restore("without", &[]);
    assert!(!lab.work.join(".env").exists());
}

#[test]
fn whatever_may_reach_anything_is_told_what_is_not_held() {
    let lab = lab();
    lab.set("ignored: {file_mb: 1}\nlimits: {file_mb: 3}\n");
    lab.write("data/big", vec![7; 2_000_000]);
    lab.write("public", vec![7; 4_000_000]);
    let mut sidecar = Sidecar::start(&lab, &[]);
    // The base capture is what later ones build on.
    sidecar.ask(json!({"type": "hello"}));
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let status = sidecar.ask(json!({"type": "status"}));
        if status["baseline"] == "ready" && status["watcher"] != "cold" {
            break;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    for command in ["python3 x.py", "git stash -u", "rm a.txt; ./x.sh", "python3 x.py"] {
        let reply = sidecar.ask(json!({"type": "shell.before", "command": command}));
        let mut paths: Vec<&str> =
            reply["not_held"].as_array().unwrap().iter().map(|gap| gap["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["data/big", "public"], "{command}: {reply}");
    }
    lab.sh("rm public");
    let preview = lab.piton(&["restore", "1", "--preview"]).stdout;
    assert!(preview.contains("not saved: public (4.0 MB)"), "{preview}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_turn_that_begins_with_an_old_checkpoint_is_in_its_moment() {
    let lab = lab();
    lab.set("ignored: {file_mb: 1}\n");
    lab.write("data/big", vec![7; 2_000_000]);
    let before = tree(&lab.work);
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t1"}));
    let first = sidecar.ask(json!({"type": "shell.before", "command": "rm -f nothing"}));
    sidecar.ask(json!({"type": "turn.start", "turn": "t2"}));
    let again = sidecar.ask(json!({"type": "shell.before", "command": "rm a.txt"}));
    assert_eq!((number_of(&first), number_of(&again)), ("1".to_owned(), "1".to_owned()), "{again}");
    lab.sh("rm a.txt");
    let step = sidecar.ask(json!({"type": "shell.before", "command": "rm data/big"}));
    assert_eq!(step["checkpoint"]["n"], 2, "another turn has a number of its own: {step}");
    lab.sh("rm data/big");
    assert_eq!(sidecar.finish(), 0);
    lab.restore(1, &[]);
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn forget_takes_private_content_out_and_proves_it() {
    let lab = lab();
    lab.take("one");
    lab.write(".env", "TOKEN=second");
    lab.take("two");
    std::fs::remove_file(lab.work.join(".env")).unwrap();
    let forgotten = lab.piton(&["forget", ".env", "--yes"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    let left = objects(&local(&lab));
    assert!(!has(&left, "TOKEN=") && has(&left, "data"), "{forgotten:?}");
    lab.sh("rm -rf data a.txt");
    lab.restore(1, &[]);
    assert_eq!((lab.read("data/one").as_str(), lab.work.join(".env").exists()), ("1", false));
}

#[test]
fn a_layer_that_is_gone_counts_as_not_looked_at() {
    let lab = lab();
    let n = lab.take("one");
    std::fs::remove_dir_all(local(&lab)).unwrap();
    lab.sh("rm -rf data .env a.txt; mkdir data; echo new > data/new");
    lab.restore(n, &[]);
    assert_eq!((lab.read("a.txt").as_str(), lab.read("data/new").as_str()), ("a", "new\n"));
    // Not even by name: its absence proves nothing.
    assert_eq!(lab.piton(&["restore", &n.to_string(), "data", "--yes"]).code, 3);
    assert_eq!(lab.read("data/new"), "new\n");
    let shown = lab.piton(&["show", &n.to_string()]).stdout;
    assert!(shown.contains("have expired"), "{shown}");
    assert_eq!(lab.take("two"), n + 2);
    let shown = lab.piton(&["show", &(n + 2).to_string()]).stdout;
    assert!(shown.contains("data/new  (private)"), "{shown}");
}

#[test]
fn layers_go_with_the_checkpoints_that_name_them() {
    let lab = lab();
    for n in 0..12 {
        lab.write(".env", format!("TOKEN={n}-of-twelve"));
        lab.write("a.txt", format!("{n}"));
        assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    }
    assert_eq!(lab.piton(&["checkpoint", "--set", "retention.per_workspace=3"]).code, 0);
    let prune = lab.piton(&["prune", "--yes", "--set", "retention.per_workspace=3"]);
    assert!(matches!(prune.code, 0 | 3), "3: no checkpoint went: {prune:?}");
    let left = objects(&local(&lab));
    let held: BTreeSet<u32> = (0..12).filter(|n| has(&left, &format!("TOKEN={n}-of-twelve"))).collect();
    assert!(held.contains(&11) && held.len() <= 4, "{held:?}: {prune:?}");
    // In a small room the oldest go first, and the newest stays.
    let (mut dice, large) = (Dice(7), 1_500_000);
    for n in 0..4 {
        let noise: Vec<u8> = (0..large).map(|_| dice.roll(256) as u8).collect();
        lab.write("data/one", noise);
        assert_eq!(lab.piton(&["checkpoint"]).code, 0, "{n}");
    }
    let size = || {
        let counted = Command::new("git").arg("--git-dir").arg(local(&lab)).args(["count-objects", "-v"]).output();
        let text = String::from_utf8(counted.unwrap().stdout).unwrap();
        let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok()).unwrap();
        (of("size:") + of("size-pack:")) * 1024
    };
    assert!(size() > 4 * large, "{}", size());
    assert!(matches!(lab.piton(&["prune", "--yes", "--set", "ignored.total_mb=4"]).code, 0 | 3));
    assert!(size() < 3 * large, "{}", size());
    let newest = std::fs::read(lab.work.join("data/one")).unwrap();
    lab.sh("rm -rf data");
    let n = lab.piton(&["list", "--json"]).json()["checkpoints"][0]["n"].clone();
    lab.restore(n.as_u64().unwrap(), &[]);
    assert_eq!(std::fs::read(lab.work.join("data/one")).unwrap(), newest);
}

#[test]
fn layers_count_in_the_bytes_of_all_workspaces() {
    let lab = lab();
    let mut dice = Dice(17);
    for n in 0..12 {
        let content: Vec<u8> = (0..400_000).map(|_| dice.roll(256) as u8).collect();
        lab.write("data/one", content);
        assert_eq!(lab.piton(&["checkpoint"]).code, 0, "{n}");
    }
    let status = || lab.piton(&["store", "status", "--json"]).json();
    assert!(matches!(lab.piton(&["prune", "--yes"]).code, 0 | 3), "there is room");
    let all = status();
    assert!(all["stored"].as_u64().unwrap() > 4_800_000 && all["workspaces"][0]["own"] == all["stored"], "{all}");
    lab.piton(&["prune", "--max-size-mb", "2", "--yes"]);
    let left = status();
    assert!(left["stored"].as_u64().unwrap() < 2_000_000, "{left}");
    assert!(lab.piton(&["show", "1"]).stdout.contains("have expired"));
    assert!(lab.piton(&["show", "12"]).stdout.contains("data/one  (private)"));
}

#[test]
fn a_workspace_that_is_removed_leaves_no_private_content() {
    let lab = lab();
    lab.take("one");
    assert!(has(&objects(&local(&lab)), "TOKEN=first"));
    let cleared = lab.piton(&["store", "clear", "--yes"]);
    assert_eq!(cleared.code, 0, "{cleared:?}");
    assert!(!has(&objects(&local(&lab)), "TOKEN=first"), "{cleared:?}");
    assert_eq!(lab.take("again"), 1);
}

#[test]
fn the_watcher_sees_private_files_too() {
    let lab = lab();
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello"}));
    for round in 0..6 {
        sidecar.ask(json!({"type": "turn.start", "turn": format!("t{round}")}));
        lab.write("data/deep/two", format!("{round}"));
        lab.write(&format!("data/new{round}/f"), format!("n{round}"));
        lab.write(".env", format!("TOKEN={round}"));
        let before = tree(&lab.work);
        let reply = sidecar.ask(json!({"type": "shell.before", "command": "make clean"}));
        assert_eq!(reply["ok"], true, "{reply}");
        lab.sh("rm -rf data .env");
        lab.restore(number_of(&reply), &[]);
        assert_eq!(tree(&lab.work), before, "round {round}: {reply}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_file_stays_private_when_a_restore_takes_the_rule_away() {
    let lab = Lab::new();
    let bare = lab.root().join("bare.git");
    lab.sh(&format!("git init -q --bare {}", bare.display()));
    lab.write("a", "1");
    lab.take("before the rule");
    lab.write(".gitignore", "customers/\n");
    lab.write("customers/list.csv", "name,iban-of-somebody");
    std::os::unix::fs::symlink("iban-of-somebody", lab.work.join("customers/link")).unwrap();
    lab.take("with the rule");
    let go_back = || {
        let restored = lab.piton(&["restore", "1", "--yes"]);
        assert!([0, 3].contains(&restored.code), "{restored:?}");
        assert!(!lab.work.join(".gitignore").exists());
        let newest = lab.take("after");
        let sent = lab.piton(&["push", bare.to_str().unwrap()]);
        assert_eq!(sent.code, 0, "{sent:?}");
        let objects = || [objects(&lab.store()), objects(&bare)].concat();
        assert!(!has(&objects(), "iban-of-somebody"));
        newest
    };
    go_back();
    // A change of it is saved all the same.
    lab.write("customers/list.csv", "name,another iban-of-somebody");
    let newest = go_back();
    let before = tree(&lab.work);
    lab.sh("rm -r customers");
    lab.restore(newest, &["--local"]);
    assert_eq!(tree(&lab.work), before);
    // A file that the settings include is shared: somebody has decided that.
    lab.set("exclude: [\"!customers/*.csv\"]\n");
    lab.take("included");
    assert!(has(&objects(&lab.store()), "another iban-of-somebody"));
}

#[test]
fn private_files_stay_so_when_the_stamps_are_lost() {
    let lab = customers();
    lab.sh(&format!("find {} -name stamps -delete; rm .gitignore", lab.home.display()));
    assert_private(&lab);
}

#[test]
fn a_private_file_that_was_gone_is_still_private_when_it_is_restored() {
    let lab = customers();
    lab.sh("rm -r customers .gitignore");
    lab.take("without it");
    lab.restore(1, &["customers"]);
    assert_eq!(lab.read("customers/list.csv"), "name,iban-of-somebody");
    assert_private(&lab);
}

#[test]
fn private_files_stay_so_when_the_daemon_is_killed_before_it_has_written_what_it_knows() {
    let lab = Lab::new();
    lab.write(".gitignore", "");
    lab.write("a", "1");
    lab.take("before the rule");
    lab.write(".gitignore", "customers/\n");
    lab.write("customers/list.csv", "name,iban-of-somebody");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "turn.start", "turn": "t"}));
    let reply = sidecar.ask(json!({"type": "shell.before", "command": "./make"}));
    assert_eq!(reply["ok"], true, "{reply}");
    sidecar.child.kill().unwrap();
    sidecar.child.wait().unwrap();
    lab.write(".gitignore", "");
    assert_private(&lab);
}

#[test]
fn private_files_stay_so_when_the_store_has_lost_an_object() {
    let lab = customers();
    let id = git(&lab, &["hash-object", "a"]).unwrap();
    let (dir, name) = id.trim().split_at(2);
    let object = lab.store().join("objects").join(dir).join(name);
    for round in 0.. {
        std::fs::remove_file(&object).unwrap();
        lab.write("b", round.to_string());
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        let output = command.env("PITON_LOG", "warn").arg("checkpoint").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!has(&objects(&lab.store()), "iban-of-somebody"));
        // Until the times of the file prove that it is unchanged, it is read again, and its loss is not noticed.
        if String::from_utf8_lossy(&output.stderr).contains("the store lost objects") {
            return assert_private(&lab);
        }
    }
}

fn customers() -> Lab {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.write(".gitignore", "customers/\n");
    lab.write("customers/list.csv", "name,iban-of-somebody");
    lab.take("first");
    lab
}

/// A checkpoint saves the private file, and nothing of it is in the store that git shows.
fn assert_private(lab: &Lab) {
    let n = lab.take("another");
    assert!(!has(&objects(&lab.store()), "iban-of-somebody"));
    let before = tree(&lab.work);
    lab.sh("rm -r a customers");
    lab.restore(n, &[]);
    assert_eq!(tree(&lab.work), before);
}
