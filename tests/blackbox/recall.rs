//! A checkpoint holds what an action destroys, whatever the turn did before.
//!
//! `PITON_ROUNDS=full` runs 20 seeds of 60 turns of random real actions, otherwise one seed of 15.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::support::{Lab, Sidecar, WAIT, git, number_of, tree};

fn status(reply: &Value) -> &str {
    reply["checkpoint"]["status"].as_str().unwrap_or("?")
}

fn id(reply: &Value) -> String {
    reply["checkpoint"]["id"].as_str().unwrap_or_default().to_owned()
}

fn shell(sidecar: &mut Sidecar, command: &str) -> Value {
    sidecar.ask(json!({"type": "shell.before", "command": command}))
}

fn write(sidecar: &mut Sidecar, lab: &Lab, path: &str) -> Value {
    sidecar.ask(json!({"type": "tool.before", "tool": "Write", "input": {"file_path": lab.work.join(path)}}))
}

fn turn(sidecar: &mut Sidecar, name: &str) {
    sidecar.ask(json!({"type": "turn.start", "turn": name}));
}

/// Returns what a checkpoint holds at a path.
fn held(lab: &Lab, checkpoint: &str, path: &str) -> String {
    lab.piton(&["show", &format!("{checkpoint}:{path}")]).stdout
}

#[test]
fn work_of_the_same_turn_is_captured_before_whatever_may_destroy_it() {
    let commands = [
        "git stash -u",
        "git checkout .",
        "git reset --hard",
        "git clean -fd",
        "make clean",
        "python3 wipe.py",
        "./wipe.sh src",
        "rm -rf .",
        "rm -rf ./*",
        "rm -rf $DIR",
        "find . -name '*.txt' -delete",
        "rm -rf ..",
        // A word that names nothing on the disk is a pathspec, a range, or a path that `cd` did not reach.
        "git restore :/",
        "git restore '*.txt'",
        "git -C . rm -rfq -- ':/n*'",
        "rm {m..o}ew.txt",
        "cd build; rm -f new.txt",
        "cd build; sed -i d new.txt",
    ];
    for (n, command) in commands.into_iter().enumerate() {
        let lab = Lab::new();
        lab.write("old.txt", "old\n");
        let mut sidecar = Sidecar::start(&lab, &[]);
        turn(&mut sidecar, "t1");
        assert_eq!(status(&write(&mut sidecar, &lab, "new.txt")), "taken", "{command}");
        // The writing itself comes after the answer, and what it made is in no checkpoint yet.
        let content = format!("work {n} of this turn\n");
        lab.write("new.txt", &content);
        let first = shell(&mut sidecar, command);
        assert_eq!(status(&first), "taken", "{command}: {first}");
        assert_eq!(held(&lab, &id(&first), "new.txt"), content, "{command}");
        // Nothing changed since: that checkpoint holds everything, and none is added.
        let again = shell(&mut sidecar, command);
        assert_eq!((status(&again), id(&again)), ("held", id(&first)), "{command}: {again}");
        lab.write("old.txt", "changed\n");
        let third = shell(&mut sidecar, command);
        assert_eq!(status(&third), "taken", "{command}: {third}");
        assert_eq!(held(&lab, &id(&third), "old.txt"), "changed\n", "{command}");
        assert_eq!(sidecar.finish(), 0);
    }
}

#[test]
fn permissions_that_changed_since_are_not_held() {
    let lab = Lab::new();
    for path in ["key", "d/k", "other"] {
        lab.write(path, "1\n");
    }
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    assert_eq!(status(&shell(&mut sidecar, "rm key")), "taken");
    for (change, command, path, mode) in
        [("chmod 600 key", "rm key", "key", 0o600), ("chmod 640 d/k; chmod 700 d", "rm -rf d", "d/k", 0o640)]
    {
        lab.sh(change);
        let reply = shell(&mut sidecar, command);
        assert_eq!(status(&reply), "taken", "{change}: {reply}");
        assert_eq!(status(&shell(&mut sidecar, command)), "held", "{change}");
        lab.sh(command);
        lab.restore(number_of(&reply), &[]);
        let facts = std::fs::metadata(lab.work.join(path)).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&facts.permissions()) & 0o777, mode, "{change}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn what_a_later_checkpoint_of_the_turn_holds_is_held() {
    let lab = Lab::new();
    lab.write("a", "1\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let first = shell(&mut sidecar, "rm a");
    lab.write("b", "2\n");
    let second = shell(&mut sidecar, "make");
    assert_eq!((status(&first), status(&second)), ("taken", "taken"));
    let named = shell(&mut sidecar, "rm b");
    assert_eq!((status(&named), id(&named)), ("held", id(&second)), "{named}");
    // A person brings an older state back. A checkpoint has to hold the files that are there then.
    let n = number_of(&first);
    lab.restore(n, &[]);
    assert_eq!(lab.read("b").get(..1), Some("<"));
    let back = shell(&mut sidecar, "make");
    assert!(["held", "taken"].contains(&status(&back)), "{back}");
    assert_eq!((held(&lab, &id(&back), "a"), held(&lab, &id(&back), "b")), ("1\n".to_owned(), String::new()), "{back}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn what_a_line_says_will_go_is_captured_although_rules_leave_it_out() {
    for command in ["git clean -fdx", "git clean -ffdX .", "git stash --all", "rm -rf .", "rm -rf ./* ./.[a-z]*"] {
        let lab = Lab::new();
        lab.write(".gitignore", ".env\ncache/\n");
        lab.write("a", "a\n");
        let mut sidecar = Sidecar::start(&lab, &[]);
        turn(&mut sidecar, "t1");
        shell(&mut sidecar, "rm a");
        lab.write(".env", "KEY=1\n");
        lab.write("cache/deep/x", "x\n");
        let reply = shell(&mut sidecar, command);
        assert_eq!(status(&reply), "taken", "{command}: {reply}");
        assert_eq!(reply["not_held"], Value::Null, "{command}");
        lab.sh("rm -rf .env cache");
        let n = number_of(&reply);
        assert_eq!(sidecar.finish(), 0);
        lab.restore(n, &[]);
        assert_eq!((lab.read(".env"), lab.read("cache/deep/x")), ("KEY=1\n".into(), "x\n".into()), "{command}");
    }
    // A command that only replaces tracked files, or spares ignored ones, does not cost the weight of all ignored
    // files beyond the budget of private ones.
    let lab = Lab::new();
    std::fs::write(lab.user_file(), "ignored: {files: 0}\n").unwrap();
    lab.write(".gitignore", "cache/\n");
    lab.write("cache/x", "x\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    for (n, command) in ["git checkout .", "git clean -fd", "make"].into_iter().enumerate() {
        lab.write("a", format!("{n}"));
        let reply = shell(&mut sidecar, command);
        assert_eq!((status(&reply), held(&lab, &id(&reply), "cache/x")), ("taken", String::new()), "{command}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn what_no_checkpoint_holds_is_said_by_the_answer_the_list_and_the_restore() {
    let lab = Lab::new();
    lab.write("a", "a\n");
    lab.write("vendor/lib.c", "int x;\n");
    lab.write("vendor/.git/HEAD", "ref: refs/heads/main\n");
    lab.write("vendor/.git/objects/pack", vec![b'x'; 5000]);
    lab.write("app/package.json", "{}\n");
    lab.write("app/node_modules/m/index.js", "m\n");
    lab.write("app/main.js", "x\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let paths = |reply: &Value| -> Vec<(String, u64)> {
        let items = reply["not_held"].as_array().into_iter().flatten();
        items.map(|item| (item["path"].as_str().unwrap().into(), item["bytes"].as_u64().unwrap())).collect()
    };
    let opaque = shell(&mut sidecar, "make");
    assert_eq!((status(&opaque), paths(&opaque)), ("taken", vec![]));
    // A repository's own data is kept beside the checkpoint.
    let reply = shell(&mut sidecar, "rm -rf vendor");
    assert_eq!((paths(&reply), lab.kept_repositories()), (vec![], vec!["vendor/.git".to_owned()]), "{reply}");
    assert_eq!(held(&lab, &id(&reply), "vendor/lib.c"), "int x;\n");
    let again = shell(&mut sidecar, "rm -rf vendor");
    assert_eq!((status(&again), paths(&again)), ("taken", vec![]), "a copy has a number of its own: {again}");
    lab.sh("rm -rf vendor");
    let modules = vec![("app/node_modules".to_owned(), 2)];
    let made = shell(&mut sidecar, "rm -rf app");
    assert_eq!((status(&made), paths(&made)), ("taken", modules.clone()), "{made}");
    assert_eq!(paths(&shell(&mut sidecar, "rm -rf app/node_modules")), modules);
    assert_eq!(sidecar.finish(), 0);
    lab.sh("rm -rf app");
    let listed = lab.piton(&["list", "--steps"]);
    assert!(listed.stdout.contains(" · not saved: app/node_modules (2 B)\n"), "{}", listed.stdout);
    let folded = lab.piton(&["list"]).stdout;
    assert!(folded.contains(" steps · not saved: app/node_modules (2 B)\n"), "{folded}");
    let n = number_of(&made);
    let said = |args: &[&str]| {
        let output = lab.piton(args);
        format!("{}{}", output.stdout, output.stderr)
    };
    assert!(said(&["show", &n]).contains("left out app/node_modules"), "{}", said(&["show", &n]));
    let word = "not saved: app/node_modules (2 B): this checkpoint cannot restore that";
    assert!(said(&["restore", &n, "--preview"]).contains(word), "{}", said(&["restore", &n, "--preview"]));
    assert!(said(&["restore", &n, "--yes"]).contains(word));
    // Nothing is left to do, and it is said all the same.
    let nothing = said(&["restore", &n, "--yes"]);
    assert!(nothing.contains(word) && nothing.contains("Nothing to do"), "{nothing}");
    // A path that exists is not reported as missing.
    lab.sh("mkdir app/node_modules");
    assert!(!said(&["restore", &n, "--preview"]).contains("not saved"));
}

#[test]
fn a_hook_says_what_no_checkpoint_holds() {
    let lab = Lab::new();
    lab.write("app/package.json", "{}\n");
    lab.write("app/node_modules/m/index.js", "m\n");
    let payload = json!({"session_id": "s", "cwd": lab.work, "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "rm -rf app"}});
    let mut hook = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    hook.args(["hook", "claude-code", "PreToolUse", "--no-daemon"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut hook = hook.spawn().unwrap();
    hook.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let said = String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("piton: not saved: app/node_modules (2 B); if this action deletes that"), "{said}");
}

#[test]
fn two_runs_in_one_workspace_lose_nothing_of_each_other() {
    let lab = Lab::new();
    lab.write("a", "1\n");
    let mut runs = ["one", "two"].map(|name| {
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "hello", "session": name}));
        turn(&mut sidecar, "t");
        sidecar
    });
    for round in 0..4 {
        for (n, sidecar) in runs.iter_mut().enumerate() {
            let (path, content) = (format!("made-{round}-{n}"), format!("{round} {n}\n"));
            lab.write(&path, &content);
            let reply = shell(sidecar, "make clean");
            assert_eq!(held(&lab, &id(&reply), &path), content, "{reply}");
            let again = shell(sidecar, "make clean");
            assert_eq!((status(&again), id(&again)), ("held", id(&reply)), "{again}");
        }
    }
    for sidecar in &mut runs {
        assert_eq!(sidecar.finish(), 0);
    }
}

#[test]
fn a_busy_turn_evicts_no_other_and_does_not_grow_without_end() {
    let lab = Lab::new();
    lab.set("retention: {auto_per_run: 3, per_workspace: 50}\n");
    lab.write("a", "0\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    let mut firsts = Vec::new();
    for (name, actions) in [("t1", 1), ("t2", 40), ("t3", 1)] {
        turn(&mut sidecar, name);
        for action in 0..actions {
            lab.write("a", format!("{name} {action}\n"));
            let reply = shell(&mut sidecar, "make");
            assert_eq!(status(&reply), "taken", "{reply}");
            if action == 0 {
                firsts.push((id(&reply), format!("{name} 0\n")));
            }
        }
    }
    let total = |kind: &str| lab.piton(&["list", "--kind", kind, "--json"]).json()["total"].clone();
    // The sidecar drops surplus steps in idle time, a few at a time.
    let until = Instant::now() + WAIT;
    while total("step") != json!(15) {
        assert!(Instant::now() < until, "{} steps stay", total("step"));
    }
    assert_eq!(sidecar.finish(), 0);
    for (first, content) in &firsts {
        assert_eq!(held(&lab, first, "a"), *content, "the first checkpoint of each turn stays");
    }
    assert_eq!((total("auto"), total("step")), (json!(3), json!(15)));
    assert_eq!(held(&lab, "2.39", "a"), "t2 39\n", "the newest of them stay");
}

#[test]
fn turns_that_alternate_and_actions_without_a_turn_evict_no_turn() {
    // A turn a word, an action each; `-` has none. How many checkpoints stay with three turns a run.
    let table: [(&str, usize); 3] = [
        ("first a b a b a b a b a b", 11),
        // The first one, and five further ones for each of three turns.
        ("- - - - - - - - - - - - - - - - - - - -", 1 + 15),
        ("first - - - - - - last", 8),
    ];
    for (turns, kept) in table {
        let lab = Lab::new();
        lab.set("retention: {auto_per_run: 3, per_workspace: 50}\n");
        let mut sidecar = Sidecar::start(&lab, &[]);
        sidecar.ask(json!({"type": "hello"}));
        let mut begun: BTreeMap<&str, (String, String)> = BTreeMap::new();
        for (action, name) in turns.split(' ').enumerate() {
            match name {
                "-" => _ = sidecar.ask(json!({"type": "turn.end", "turn": ""})),
                name => turn(&mut sidecar, name),
            }
            let content = format!("{action}\n");
            lab.write("a", &content);
            let reply = shell(&mut sidecar, "make");
            assert_eq!(status(&reply), "taken", "{turns}: {reply}");
            begun.entry(name).or_insert((id(&reply), content));
        }
        assert_eq!(sidecar.finish(), 0);
        for (name, (first, content)) in &begun {
            assert_eq!(held(&lab, first, "a"), *content, "{turns}: the first checkpoint of `{name}` stays");
        }
        let listed = lab.piton(&["list", "--kind", "auto", "--json"]).json();
        assert_eq!(listed["total"], json!(kept), "{turns}: {listed}");
    }
}

#[test]
fn what_is_taken_beside_another_job_waits_for_the_lock_of_the_workspace() {
    let lab = Lab::new();
    lab.write("victim", "x");
    let n = lab.take("first");
    let workspaces = std::fs::read_dir(lab.home.join("piton/workspaces")).unwrap();
    let records: Vec<PathBuf> = workspaces.map(|entry| entry.unwrap().path()).collect();
    let record = records.iter().find(|dir| dir.join("lock").exists()).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let hello = sidecar.ask(json!({"type": "hello"}));
    assert_eq!(hello["ok"], true);
    sidecar.ask(json!({"type": "checkpoint.create", "label": "everything is read"}));
    // Much that was never read, so that comparing with it takes its time. That job needs no lock.
    for n in 0..40 {
        let file = std::fs::File::create(lab.work.join(format!("big{n}"))).unwrap();
        file.set_len(9_000_000).unwrap();
        (&file).write_all(format!("{n}").as_bytes()).unwrap();
    }
    lab.write("victim", "changed");
    let lock = std::fs::File::options().read(true).write(true).open(record.join("lock")).unwrap();
    lock.lock().unwrap();
    let written = || (files(&lab.store().join("refs")), std::fs::read(record.join("log")).unwrap_or_default());
    let before = written();
    let diff = json!({"type": "checkpoint.diff", "id": "diff", "from": n.to_string()});
    let action = json!({"type": "shell.before", "id": "action", "command": "rm victim", "deadline_ms": 2500});
    sidecar.send_raw(format!("{diff}\n{action}\n").as_bytes());
    let late = sidecar.reply("action");
    let after = written();
    lock.unlock().unwrap();
    assert_eq!((status(&late), &late["checkpoint"]["id"]), ("late", &Value::Null), "{late}");
    assert!(before == after, "nothing was written while somebody else held the lock");
    let settled = sidecar.notice(|notice| notice["notice"] == "checkpoint.settled");
    let taken = settled["checkpoint"]["id"].as_str().unwrap().to_owned();
    assert_eq!(held(&lab, &taken, "victim"), "changed");
    let compared = sidecar.reply("diff");
    assert_eq!(compared["ok"], true, "{compared}");
    assert_eq!(sidecar.finish(), 0);
}

/// All files below a directory, with what they hold.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    tree(dir).into_iter().filter(|(_, (kind, ..))| *kind == 'f').map(|(path, (.., bytes))| (path, bytes)).collect()
}

/// The contents of a workspace that rules admit.
fn contents(lab: &Lab) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = files(&lab.work);
    all.retain(|path, _| !path.starts_with("data") && path.as_os_str() != ".env");
    all
}

/// Things that agents do: `F` and `G` are files, `D` is a directory.
const ACTIONS: [&str; 24] = [
    "write",
    "write",
    "write",
    "edit",
    "edit",
    "edit",
    "rm F",
    "rm -rf D",
    "sed -i s/a/A/g F",
    "mv F F.bak",
    ": > F",
    "cp F G",
    "git checkout -q .",
    "git stash -q -u",
    "git reset -q --hard",
    "git clean -fdq",
    "git clean -fdxq",
    "sh ./wipe.sh F D",
    "find src -name '*.py' -newer README.md -delete",
    "echo F | xargs rm -f",
    "tee F < README.md",
    "ls -la src",
    "echo x >> F",
    "sh -c 'truncate -s 3 F'",
];

#[test]
fn random_turns_lose_nothing_that_rules_admit() {
    let full = std::env::var_os("PITON_ROUNDS").is_some_and(|rounds| rounds == "full");
    let (seeds, turns) = if full { (20, 60) } else { (1, 15) };
    for seed in 1..=seeds {
        let lab = Lab::new();
        lab.set("retention: {auto_per_run: 100000, per_workspace: 100000}\n");
        if git(&lab, &["init", "-q"]).is_none() {
            return;
        }
        let mut round = Round { lab, dice: Dice(0x9e37_79b9 + seed), written: 0 };
        round.begin();
        round.turns(turns, seed);
    }
}

struct Round {
    lab: Lab,
    dice: Dice,
    written: u64,
}

impl Round {
    fn begin(&mut self) {
        for n in 0..20 {
            self.write(&format!("src/m{}/f{n}.py", n % 4));
        }
        for path in ["README.md", "notes/todo.md", ".env", "data/d.csv"] {
            self.write(path);
        }
        self.lab.write(".gitignore", ".env\ndata/\n");
        self.lab.write("wipe.sh", "rm -rf -- \"$@\"\n");
        git(&self.lab, &["add", "."]);
        git(&self.lab, &["commit", "-qm", "one"]);
    }

    /// Content that is nowhere else.
    fn write(&mut self, path: &str) {
        self.written += 1;
        let noise: String =
            (0..self.dice.roll(300)).map(|_| b"abcdefgh \n"[self.dice.roll(10) as usize] as char).collect();
        self.lab.write(path, format!("{} {noise}\n", self.written));
    }

    fn pick(&mut self) -> String {
        let all: Vec<String> = contents(&self.lab)
            .into_keys()
            .map(|path| path.to_string_lossy().into_owned())
            .filter(|path| path.starts_with("src"))
            .collect();
        match all.len() {
            0 => "README.md".to_owned(),
            many => all[self.dice.roll(many as u64) as usize].clone(),
        }
    }

    fn turns(&mut self, turns: u64, seed: u64) {
        let mut sidecar = Sidecar::start(&self.lab, &[]);
        sidecar.ask(json!({"type": "hello", "session": "s"}));
        let mut gone: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        for turn_number in 0..turns {
            turn(&mut sidecar, &format!("t{turn_number}"));
            for _ in 0..=self.dice.roll(6) {
                let before = contents(&self.lab);
                let action = self.act(&mut sidecar);
                let after: BTreeSet<Vec<u8>> = contents(&self.lab).into_values().collect();
                // A file that was only appended to still has its old content.
                let lost = |bytes: &&Vec<u8>| !after.contains(*bytes) && !action.starts_with("echo x");
                gone.extend(before.values().filter(lost).map(|bytes| (bytes.clone(), action.clone())));
            }
            // Sometimes the sidecar has time to begin to hear, or to settle.
            std::thread::sleep(Duration::from_millis([0, 0, 150][self.dice.roll(3) as usize]));
        }
        assert_eq!(sidecar.finish(), 0);
        let Some(listed) = self.lab.store_git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"])
        else {
            return;
        };
        let stored: BTreeSet<&str> = listed.lines().collect();
        let is_held = |bytes: &Vec<u8>| {
            let id = piton::model::id::ObjectId::of(piton::model::id::ObjectKind::Blob, bytes).unwrap();
            stored.contains(id.to_string().as_str())
        };
        let missed: Vec<&String> = gone.iter().filter(|(bytes, _)| !is_held(bytes)).map(|(_, action)| action).collect();
        assert!(gone.len() as u64 > turns, "seed {seed}: only {} contents were destroyed", gone.len());
        assert!(
            missed.is_empty(),
            "seed {seed}: {} of {} contents are in no checkpoint: {missed:?}",
            missed.len(),
            gone.len()
        );
    }

    /// Does something at random; what it was.
    fn act(&mut self, sidecar: &mut Sidecar) -> String {
        let action = self.dice.of(&ACTIONS);
        let (file, other) = (self.pick(), self.pick());
        if let "write" | "edit" = action {
            let path = if action == "edit" { file } else { format!("src/m{}/n{}.py", self.dice.roll(6), self.written) };
            write(sidecar, &self.lab, &path);
            self.write(&path);
            return format!("{action} {path}");
        }
        let dir = Path::new(&file).parent().map_or("src".into(), |dir| dir.to_string_lossy().into_owned());
        let words = action.split(' ').map(|word| match word {
            "F" | "F'" => word.replace('F', &file),
            "F.bak" => format!("{file}.bak"),
            "G" => other.clone(),
            "D" if dir.is_empty() => "src".to_owned(),
            "D" => dir.clone(),
            other => other.to_owned(),
        });
        let command = words.collect::<Vec<_>>().join(" ");
        shell(sidecar, &command);
        let mut run = self.lab.command("/bin/sh", &self.lab.work);
        let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        run.envs(identity.map(|name| (name, "t@example.org")));
        // Many of them fail, which is part of it.
        run.args(["-c", &command]).output().unwrap();
        command
    }
}
