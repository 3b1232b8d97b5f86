//! The net: checkpoints bring back whatever random turns of real actions destroy, and no restore costs anything.
//!
//! The test keeps the truth: before each action it reads the whole tree. A checkpoint that the action got is restored later and
//! compared with that moment. Each restore must have saved all that it changes, and its undo must give the very state before it.
//!
//! `PITON_ROUNDS=full` runs 20 seeds of 60 turns of each kind, otherwise one seed of 12. A failure names its seed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::faults::full;
use crate::support::{Lab, Sidecar, Tree, git, tree};

/// The bytes from which on an ignored file is beyond the budget of private files.
const LARGE: usize = 1_000_000;

/// Settings under which no checkpoint goes.
const SETTINGS: &str = "retention: {auto_per_run: 100000, per_workspace: 100000}\nignored: {file_mb: 1}\n";

/// The ignore rules, as long as no action changes them.
const RULES: &str = "data/\n*.key\nlocal.cfg\nnode_modules/\nvendor/\n*.bak\n";

/// Returns true for a path that the first checkpoint of a turn need not hold: it is beyond the budget of private files, generated,
/// or in an ignored repository. Tests of the moment of a turn (`private`) say which of these come back from later checkpoints.
fn is_beyond_budget(path: &Path, bytes: usize) -> bool {
    let generated =
        path.components().any(|name| ["node_modules", "vendor"].iter().any(|left| name.as_os_str() == *left));
    generated || bytes > LARGE
}

/// Things that agents do: `F` and `G` are files, `D` is a directory, `N` is a number.
const ACTIONS: &[&str] = &[
    "write",
    "write",
    "write",
    "edit",
    "edit",
    "edit",
    "rm -f F",
    "rm -f F G",
    "rm -rf D",
    "rm -rf D F",
    "rm -f .env *.key",
    "rm -rf data",
    "rm -rf own",
    "> F",
    ": > F",
    "echo x > F",
    "echo x >> F",
    "sed -i s/a/A/g F",
    "mv F G",
    "mv F F.bak",
    "mv D src/movedN",
    "cp F G",
    "tee F < README.md",
    "truncate -s 3 F",
    "sh -c 'truncate -s 3 F'",
    "find D -type f -delete",
    "find D -delete",
    "find . -name '*.key' -delete",
    "find src -name '*.py' -newer README.md -delete",
    "echo F | xargs rm -f",
    "git clean -fdx",
    "git clean -fdq",
    "git clean -ffdxq",
    "git checkout -q .",
    "git stash -q -u",
    "git stash -q --all",
    "git reset -q --hard",
    "sh ./wipe.sh",
    "sh ./wipe.sh",
    "./wipe.sh F D",
    "chmod 600 F",
    "chmod 700 D",
    "ln -sfn README.md F",
    "rm -rf D; echo N > D",
    "rm -f F; mkdir F; echo N > F/N",
    "rm -f .gitignore",
    "ls -la src",
    "make -s clean",
];

/// The trouble beside the turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// The sidecar is killed at random moments.
    Kills,
    /// Private layers go.
    Expiry,
}

#[test]
fn whatever_random_turns_destroy_comes_back() {
    run(Trouble::None);
}

#[test]
fn whatever_random_turns_destroy_comes_back_from_a_sidecar_that_is_killed() {
    run(Trouble::Kills);
}

#[test]
fn a_private_layer_that_went_costs_no_file() {
    run(Trouble::Expiry);
}

fn run(trouble: Trouble) {
    let (seeds, turns) = if full() { (20, 60) } else { (1, 12) };
    let (mut restores, mut moments) = (0, 0);
    for seed in seed_of("PITON_SEED").map_or(1..=seeds, |seed| seed..=seed) {
        let lab = Lab::new();
        lab.set(SETTINGS);
        if git(&lab, &["init", "-q"]).is_none() {
            return;
        }
        let sidecar = Sidecar::start(&lab, &[]);
        let mut net = Net {
            lab,
            dice: Dice(0x6e65_7400 + seed * 0x1_0001),
            seed,
            trouble,
            sidecar,
            moments: Vec::new(),
            untold: Vec::new(),
            turn: 0,
            written: 0,
            restores: 0,
            log: Vec::new(),
        };
        net.begin();
        for _ in 0..turns {
            net.turn();
        }
        net.every_moment();
        assert_eq!(net.sidecar.finish(), 0, "seed {seed}");
        restores += net.restores;
        moments += net.moments.len();
    }
    assert!(moments as u64 >= seeds * turns / 4 || seed_of("PITON_SEED").is_some(), "only {moments} checkpoints");
    println!("net: {moments} checkpoints, {restores} restores");
}

/// Returns a seed to run alone, to look for the cause of a failure.
fn seed_of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// One workspace, and the truth about its past.
struct Net {
    lab: Lab,
    dice: Dice,
    seed: u64,
    trouble: Trouble,
    sidecar: Sidecar,
    /// The trees at the moments of checkpoints, by their ids, in the order in which the test learned of them.
    moments: Vec<(String, Tree)>,
    /// The actions whose checkpoints no answer named, and the trees of then: the sidecar was killed during them, and a later writer may
    /// complete a checkpoint, or they got a step.
    untold: Vec<(String, Tree)>,
    turn: u64,
    written: u64,
    restores: u64,
    /// The actions and restores, for the text of a failure.
    log: Vec<String>,
}

impl Net {
    fn begin(&mut self) {
        for n in 0..12 {
            self.fill(&format!("src/m{}/f{n}.py", n % 3));
        }
        for path in [
            "README.md",
            ".env",
            "src/m0/.env",
            "site.key",
            "certs/a.key",
            "local.cfg",
            "data/one.csv",
            "data/deep/two.csv",
            "node_modules/m/index.js",
            "own/lib.c",
            "own/in/b.c",
            "vendor/v.c",
        ] {
            self.fill(path);
        }
        self.lab.write("package.json", "{}\n");
        self.lab.write(".gitignore", RULES);
        self.lab.write("wipe.sh", "rm -rf -- \"$@\" $(cat ../victims)\n");
        self.lab.write("Makefile", "clean:\n\tsh ./wipe.sh\n");
        self.lab.sh("chmod 755 wipe.sh; chmod 600 .env; chmod 700 data; mkdir -p data/empty docs; ln -s m0 src/link");
        self.lab.sh("head -c 1200000 /dev/zero > data/large");
        for repository in ["own", "vendor"] {
            git(&self.lab, &["init", "-q", repository]);
        }
        git(&self.lab, &["add", "README.md", "src", "package.json", ".gitignore", "wipe.sh", "Makefile"]);
        git(&self.lab, &["commit", "-qm", "one"]);
        self.greet();
    }

    fn greet(&mut self) {
        let hello = self.sidecar.ask(json!({"type": "hello", "session": "s"}));
        assert_eq!(hello["ok"], true, "{hello}");
    }

    /// Writes content that is nowhere else.
    fn fill(&mut self, path: &str) {
        self.written += 1;
        let length = self.dice.roll(300);
        let noise: String = (0..length).map(|_| b"abcdefgh \n"[self.dice.roll(10) as usize] as char).collect();
        let path = self.lab.work.join(path);
        // Where a directory or a file is in the way, nothing is written.
        let _ = std::fs::create_dir_all(path.parent().unwrap());
        let _ = std::fs::write(path, format!("{} {noise}\n", self.written));
    }

    fn now(&self) -> Tree {
        tree(&self.lab.work)
    }

    /// Picks a path of one kind at random.
    fn pick(&mut self, kind: char) -> String {
        let now = self.now();
        let plain = |path: &&PathBuf| path.to_str().is_some_and(|path| !path.contains(' '));
        let all: Vec<&PathBuf> =
            now.iter().filter(|(_, entry)| entry.0 == kind).map(|(path, _)| path).filter(plain).collect();
        match all.len() {
            0 => "README.md".to_owned(),
            many => all[self.dice.roll(many as u64) as usize].to_str().unwrap().to_owned(),
        }
    }

    fn fail(&self, what: &str) -> ! {
        let from = self.log.len().saturating_sub(16);
        panic!("seed {}: {what}\n  lately:\n    {}", self.seed, self.log[from..].join("\n    "))
    }

    fn note(&mut self, what: String) {
        self.log.push(what);
    }

    /// Somebody works beside the agent.
    fn edit(&mut self) {
        let places =
            ["src/m1/new", "data/new", "docs/new", ".env", "site.key", "local.cfg", "data/deep/two.csv", "own/lib.c"];
        for _ in 0..=self.dice.roll(4) {
            let place = self.dice.of(&places);
            let path = if place.ends_with("new") { format!("{place}{}", self.dice.roll(9)) } else { place.to_owned() };
            self.fill(&path);
        }
        for (path, text) in
            [("wipe.sh", "rm -rf -- \"$@\" $(cat ../victims)\n"), (".gitignore", RULES), ("README.md", "again\n")]
        {
            if self.dice.roll(3) == 0 && !self.lab.work.join(path).exists() {
                self.lab.write(path, text);
            }
        }
    }

    fn turn(&mut self) {
        self.turn += 1;
        self.edit();
        let turn = format!("t{}", self.turn);
        self.sidecar.ask(json!({"type": "turn.start", "turn": turn}));
        self.note(format!("-- turn {}", self.turn));
        for _ in 0..=self.dice.roll(5) {
            self.act();
        }
        if self.trouble == Trouble::Expiry && self.dice.roll(3) == 0 {
            self.expire();
        }
        let chosen = self.any_moment();
        if let Some(id) = chosen {
            match self.trouble == Trouble::Kills && self.dice.roll(3) == 0 {
                true => self.killed_restore(&id),
                false => self.restore(&id),
            }
        }
    }

    fn any_moment(&mut self) -> Option<String> {
        let many = self.moments.len() as u64;
        (many > 0).then(|| self.moments[self.dice.roll(many) as usize].0.clone())
    }

    /// Restores each moment once.
    fn every_moment(&mut self) {
        for id in self.moments.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.restore(&id);
        }
    }

    fn moment(&self, id: &str) -> Option<&Tree> {
        self.moments.iter().find(|(known, _)| known == id).map(|(_, moment)| moment)
    }

    /// Learns of a checkpoint, if it is news.
    fn know(&mut self, id: &str, moment: &Tree) {
        if self.moment(id).is_none() {
            self.moments.push((id.to_owned(), moment.clone()));
        }
    }

    /// Does something at random.
    fn act(&mut self) {
        let action = self.dice.of(ACTIONS);
        let (file, other, dir) = (self.pick('f'), self.pick('f'), self.pick('d'));
        let victims = format!("{} {} {}", self.pick('f'), self.pick('f'), self.pick('d'));
        std::fs::write(self.lab.root().join("victims"), victims).unwrap();
        self.written += 1;
        let (event, command) = match action {
            "write" | "edit" => {
                let path =
                    if action == "edit" { file } else { format!("src/m{}/n{}.py", self.dice.roll(4), self.written) };
                let input = json!({"file_path": self.lab.work.join(&path)});
                (json!({"type": "tool.before", "tool": "Write", "input": input}), format!("write {path}"))
            }
            shell => {
                let number = self.written.to_string();
                let word = |word: &str| match word {
                    "F" | "F;" | "F'" => word.replace('F', &file),
                    "F.bak" | "F/N" => word.replacen('F', &file, 1).replace("/N", &format!("/{number}")),
                    "G" => other.clone(),
                    "D" | "D;" => word.replace('D', &dir),
                    "N" => number.clone(),
                    "src/movedN" => format!("src/moved{number}"),
                    plain => plain.to_owned(),
                };
                let command = shell.split(' ').map(word).collect::<Vec<_>>().join(" ");
                (json!({"type": "shell.before", "command": command}), command)
            }
        };
        let before = self.now();
        if self.trouble == Trouble::Kills && self.dice.roll(6) == 0 {
            self.kill_during(event);
            self.note(format!("killed before `{command}`"));
            self.untold.push((command, before));
            self.learn();
            return;
        }
        let reply = self.sidecar.ask(event);
        let checkpoint = &reply["checkpoint"];
        let status = checkpoint["status"].as_str().unwrap_or("?").to_owned();
        let id = checkpoint["id"].as_str().unwrap_or_default().to_owned();
        self.note(format!("{status} {} {}: {command}", checkpoint["n"], id.get(..7).unwrap_or("")));
        match status.as_str() {
            // Unchanged: a checkpoint of the run has the very tree.
            "taken" | "unchanged" => self.know(&id, &before),
            // A checkpoint that a killed sidecar took is news. A step that the answer does not name may have been taken, too.
            "held" | "none" => {
                self.untold.push((command.clone(), before.clone()));
                self.learn();
            }
            _ => self.fail(&format!("{reply}")),
        }
        self.carry_out(&command);
        if !command.contains(">> ") {
            self.is_held(&before, &id, &reply);
        }
    }

    fn carry_out(&mut self, command: &str) {
        if let Some(path) = command.strip_prefix("write ") {
            return self.fill(path);
        }
        let mut run = self.lab.command("/bin/sh", &self.lab.work);
        let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
        run.envs(identity.map(|name| (name, "t@example.org"))).env("GIT_CONFIG_NOSYSTEM", "1");
        // Many of them fail, which is part of it.
        run.args(["-c", command]).output().unwrap();
    }

    /// Each content that an action has just destroyed is in the checkpoint that its answer named.
    fn is_held(&self, before: &Tree, id: &str, reply: &Value) {
        let after = self.now();
        let contents: BTreeSet<&[u8]> = after.values().map(|entry| entry.2.as_slice()).collect();
        let mut held = None;
        for (path, entry) in before.iter().filter(|(_, entry)| entry.0 == 'f') {
            let stays = after.get(path).is_some_and(|now| now.2 == entry.2) || contents.contains(entry.2.as_slice());
            if stays || is_beyond_budget(path, entry.2.len()) {
                continue;
            }
            // It may be the checkpoint before a restore, which is no moment of this test.
            let held = held.get_or_insert_with(|| match self.moment(id) {
                Some(moment) => Cow::Borrowed(moment),
                None => Cow::Owned(self.exported(id)),
            });
            if held.get(path).is_none_or(|held| held.2 != entry.2) {
                self.fail(&format!(
                    "{} went, and the checkpoint of the answer does not hold it: {reply}",
                    path.display()
                ));
            }
        }
    }

    /// Sends a request to the sidecar, and kills it while that is at work.
    fn kill_during(&mut self, event: Value) {
        let mut event = event;
        event["id"] = json!("killed");
        self.sidecar.send(event);
        // Reading takes about as long as the machine's work does; where the kill falls is the machine's business.
        for _ in 0..self.dice.roll(400) {
            // Its files come and go just then.
            let _ = std::fs::read_dir(&self.lab.work).map(Iterator::count);
        }
        self.sidecar.child.kill().unwrap();
        self.sidecar.child.wait().unwrap();
        self.sidecar = Sidecar::start(&self.lab, &[]);
        self.greet();
        self.sidecar.ask(json!({"type": "turn.start", "turn": format!("t{}", self.turn)}));
    }

    /// Notes the checkpoints that nobody was told of. Their reasons tell which action each was for.
    fn learn(&mut self) {
        let listed = self.lab.piton(&["list", "--steps", "--limit", "100000", "--json"]).json();
        for entry in listed["checkpoints"].as_array().unwrap() {
            let [kind, id, reason] = ["kind", "id", "reason"].map(|key| entry[key].as_str().unwrap_or_default());
            if !matches!(kind, "auto" | "step") || self.moment(id).is_some() {
                continue;
            }
            let is_of = |command: &str| reason.ends_with(command.trim_start_matches("write "));
            match self.untold.iter().rev().find(|(command, _)| is_of(command)) {
                Some((_, tree)) => self.know(id, &tree.clone()),
                None => self.fail(&format!("nothing was done before which {id} was taken: {reason}")),
            }
        }
    }

    fn interrupted(&self) -> bool {
        let status = self.lab.piton(&["status", "--json"]).json();
        status["interrupted"].as_array().is_some_and(|list| !list.is_empty())
    }

    /// Restores through the sidecar, which is killed meanwhile; the restore is then ended.
    fn killed_restore(&mut self, id: &str) {
        let before = self.now();
        let event = json!({"type": "restore", "sha": id, "local": true});
        self.kill_during(event);
        let way = self.dice.of(&["--continue", "--abort"]);
        let ended = self.interrupted();
        self.note(format!("killed restore {id}: {}", if ended { way } else { "not interrupted" }));
        if ended {
            let done = self.lab.piton(&["restore", way, "--yes", "--json"]);
            assert_eq!(done.code, 0, "seed {}: {done:?}", self.seed);
        }
        let now = self.now();
        if (ended && way == "--abort") || now == before {
            self.same(&before, &now, "an aborted restore");
        } else {
            self.came_back(id, &now, &Value::Null);
        }
    }

    /// Restores, compares, and mostly takes it back.
    fn restore(&mut self, id: &str) {
        let before = self.now();
        let local = self.dice.roll(3) > 0;
        let mut args = vec!["restore", id, "--yes", "--json"];
        args.extend(local.then_some("--local"));
        let done = self.lab.piton(&args);
        // 3: there was nothing to do, and the answer is the preview.
        if !matches!(done.code, 0 | 3 | 4) {
            self.fail(&format!("{done:?}"));
        }
        let done = done.json();
        // Asked only now: the log of a workspace may complete a layer once more.
        let expired = self.is_expired(id);
        self.note(format!("restore {} local: {local} expired: {expired}", &id[..7]));
        self.restores += 1;
        let after = self.now();
        if local && !expired {
            self.came_back(id, &after, &done);
        } else {
            self.private_stays(id, (&before, &after), (local, expired), &done);
        }
        let Some(saved) = done["preRestore"].as_str() else {
            self.same(&before, &after, "a restore that had nothing to do");
            return;
        };
        self.all_saved(saved, &before, &after);
        if before == after {
            // Everything failed or was kept: `undo` would take back the restore before this one.
            let changed = ["created", "replaced", "deleted"].map(|list| done["done"][list]["total"].as_u64().unwrap());
            if changed != [0; 3] {
                self.fail(&format!("nothing changed: {done}"));
            }
            return;
        }
        if self.dice.roll(4) == 0 {
            return;
        }
        self.step("undo", &before);
        if self.dice.roll(3) == 0 {
            self.step("redo", &after);
        }
    }

    fn step(&mut self, verb: &str, expected: &Tree) {
        let done = self.lab.piton(&[verb, "--yes", "--json"]);
        self.note(format!("{verb}: {}", done.code));
        if done.code != 0 {
            self.fail(&format!("{verb}: {done:?}"));
        }
        self.same(expected, &self.now(), &format!("{verb}: {}", done.stdout));
    }

    fn same(&self, expected: &Tree, now: &Tree, what: &str) {
        if let Some(path) = different(expected, now).into_iter().next() {
            let shown =
                |tree: &Tree| tree.get(&path).map(|(kind, mode, bytes)| format!("{kind} {mode:o}, {} B", bytes.len()));
            self.fail(&format!("{what}: {} was {:?} and is {:?}", path.display(), shown(expected), shown(now)));
        }
    }

    /// The tree is as it was at a moment, but for paths beyond the budget. A file of which the checkpoint does not know that it was
    /// absent may stay, if the answer names it.
    fn came_back(&self, id: &str, now: &Tree, done: &Value) {
        let (kept, failed) = left(done);
        // Only something that stays is in the way of anything: what the answer keeps, or what no checkpoint could hold.
        let holds_beyond = |failed: &Path| {
            let mut inside = now.iter().filter(|(path, _)| path.starts_with(failed));
            inside.any(|(path, entry)| is_beyond_budget(path, entry.2.len()))
        };
        let is_beyond = |failed: &Path| is_beyond_budget(failed, 0) || holds_beyond(failed);
        let is_free = |failed: &&PathBuf| !is_beyond(failed) && !kept.iter().any(|kept| kept.starts_with(failed));
        if let Some(failed) = failed.iter().find(is_free) {
            self.fail(&format!("{} failed: {done}", failed.display()));
        }
        let moment = self.moment(id).unwrap();
        let beyond = |path: &PathBuf| {
            let bytes = |tree: &Tree| tree.get(path).map_or(0, |entry| entry.2.len());
            is_beyond_budget(path, bytes(moment).max(bytes(now)))
        };
        let is_blocked = |path: &Path| failed.iter().any(|failed| path.starts_with(failed));
        for path in different(moment, now).into_iter().filter(|path| !beyond(path) && !is_blocked(path)) {
            // A directory stays where something is in it that stays.
            let is_needed = || {
                let dir = self.lab.work.join(&path);
                dir.join(".git").exists() || now.keys().any(|inside| inside.starts_with(&path) && beyond(inside))
            };
            let is_named = done.is_null() || kept.contains(&path);
            let stays = !moment.contains_key(&path) && (is_named || (now[&path].0 == 'd' && is_needed()));
            if !stays {
                self.same(
                    &moment
                        .iter()
                        .filter(|(at, _)| **at == path)
                        .map(|(at, entry)| (at.clone(), entry.clone()))
                        .collect(),
                    &now.iter().filter(|(at, _)| **at == path).map(|(at, entry)| (at.clone(), entry.clone())).collect(),
                    &format!("restore of {id}"),
                );
            }
        }
    }

    /// Private files that are there stay, the others come back if they are held; what git shows is as it was. The files of a layer
    /// that is gone stay even where everything may go back.
    fn private_stays(&self, id: &str, (before, after): (&Tree, &Tree), (local, expired): (bool, bool), done: &Value) {
        let moment = self.moment(id).unwrap();
        let (then, saved) = (self.shared(id), done["preRestore"].as_str().map(|saved| self.shared(saved)));
        let is_file = |tree: &Tree, path: &Path| tree.get(path).is_some_and(|entry| entry.0 != 'd');
        let (kept, failed) = left(done);
        for path in moment.keys().chain(before.keys()).collect::<BTreeSet<_>>() {
            let bytes = |tree: &Tree| tree.get(path).map_or(0, |entry| entry.2.len());
            if is_beyond_budget(path, bytes(moment).max(bytes(before)))
                || (!is_file(moment, path) && !is_file(before, path))
            {
                continue;
            }
            if failed.iter().any(|failed| path.starts_with(failed)) {
                continue;
            }
            let was_private = moment.contains_key(path) && !then.contains(path);
            // Where nothing was done, no checkpoint tells which of the present files are private: their rules do.
            let looks_private = || was_private || is_secret(path) || is_ignored(before, path);
            let is_private =
                before.contains_key(path) && saved.as_ref().map_or_else(looks_private, |saved| !saved.contains(path));
            // A file that git shows, where the moment has a private directory, is deleted or replaced as other such files are.
            let is_in_the_way =
                is_file(before, path) && moment.get(path).is_some_and(|then| then.0 == 'd') && !is_private;
            let was_private = was_private && !is_in_the_way;
            let stays = match local {
                // Where its rules would have shown the path to git, the checkpoint knows that it was absent.
                true => was_private || (is_private && !moment.contains_key(path) && was_hidden(moment, path)),
                false => (was_private || is_private) && (before.contains_key(path) || expired),
            };
            // The directory was in the layer that is gone.
            let is_unknown = is_in_the_way && expired && !then.contains(path);
            let expected = match stays || ((!moment.contains_key(path) || is_unknown) && kept.contains(path)) {
                true => before.get(path),
                false => moment.get(path).filter(|_| !is_unknown),
            };
            if after.get(path) != expected {
                let shown = |entry: Option<&(char, u32, Vec<u8>)>| entry.map(|entry| (entry.0, entry.1, entry.2.len()));
                let (now, expected) = (shown(after.get(path)), shown(expected));
                self.fail(&format!("{} is {now:?} and not {expected:?}: {done}", path.display()));
            }
        }
    }

    /// Lists the paths that a checkpoint has where git shows them.
    fn shared(&self, id: &str) -> BTreeSet<PathBuf> {
        let listed = self.lab.store_git(&["ls-tree", "-r", "-t", "--name-only", "-z", id]).unwrap();
        listed.split('\0').map(PathBuf::from).collect()
    }

    /// Returns the tree of a checkpoint.
    fn exported(&self, id: &str) -> Tree {
        let out = self.lab.root().join("saved");
        // It may be there from before.
        let _ = std::fs::remove_dir_all(&out);
        let done = self.lab.piton(&["restore", id, "--to", out.to_str().unwrap(), "--yes", "--json"]);
        assert_eq!(done.code, 0, "seed {}: {done:?}", self.seed);
        tree(&out)
    }

    /// Each path that a restore changed is in the checkpoint before it.
    fn all_saved(&self, saved: &str, before: &Tree, after: &Tree) {
        let saved = self.exported(saved);
        for path in different(before, after) {
            if before.contains_key(&path) && saved.get(&path) != before.get(&path) {
                self.fail(&format!("{} changed, and the checkpoint before the restore lacks it", path.display()));
            }
        }
    }

    fn local_git(&self, args: &[&str]) -> String {
        let mut command = self.lab.command("git", &self.lab.work);
        command.arg("--git-dir").arg(self.lab.home.join("piton/local.git")).args(args);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    fn layers(&self) -> Vec<String> {
        self.local_git(&["for-each-ref", "--format=%(refname)"]).lines().map(str::to_owned).collect()
    }

    /// Returns true if the private layer of a checkpoint is gone.
    fn is_expired(&self, id: &str) -> bool {
        if self.trouble != Trouble::Expiry {
            return false;
        }
        let message = self.lab.store_git(&["cat-file", "commit", id]).unwrap();
        let layer = message.lines().find_map(|line| line.split_once("Local: ")).map(|(_, layer)| layer.to_owned());
        layer
            .filter(|layer| layer != "none")
            .is_some_and(|layer| !self.layers().iter().any(|name| name.ends_with(&format!("/local/{layer}"))))
    }

    /// A private layer goes.
    fn expire(&mut self) {
        assert_eq!(self.sidecar.finish(), 0);
        let layers = self.layers();
        if !layers.is_empty() {
            let name = &layers[self.dice.roll(layers.len() as u64) as usize];
            self.local_git(&["update-ref", "-d", name]);
            let left = self.layers().len();
            self.note(format!("{name} goes, {left} of {} are left", layers.len()));
        }
        if self.dice.roll(2) == 0 {
            let pruned = self.lab.piton(&["prune", "--yes"]);
            self.note(format!("prune: {}", pruned.code));
        }
        self.sidecar = Sidecar::start(&self.lab, &[]);
        self.greet();
        self.sidecar.ask(json!({"type": "turn.start", "turn": format!("t{}", self.turn)}));
    }
}

/// Returns true for a path that the rules of a moment leave to the private layer.
fn was_hidden(moment: &Tree, path: &Path) -> bool {
    is_secret(path) || moment.get(Path::new(".gitignore")).is_some_and(|entry| entry.2 == RULES.as_bytes())
}

/// Returns true for a file that the ignore rules name, where they are in force; those beyond the budget are left out.
fn is_ignored(tree: &Tree, path: &Path) -> bool {
    let rules = tree.get(Path::new(".gitignore"));
    let in_data = || path.parent().is_some_and(|dir| dir.components().any(|part| part.as_os_str() == "data"));
    let by_name =
        || path.file_name().is_some_and(|name| name == "local.cfg") || path.extension().is_some_and(|end| end == "bak");
    rules.is_some_and(|entry| entry.2 == RULES.as_bytes()) && (in_data() || by_name())
}

/// Returns true for a file that is private by its name.
fn is_secret(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".env") || path.extension().is_some_and(|end| end == "key")
}

/// Returns the paths that an answer kept, and those that failed. The answer is a preview where there was nothing to do.
fn left(done: &Value) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    match done["plan"].is_null() {
        true => (paths(&done["done"]["kept"]), paths(&done["done"]["failed"])),
        false => (paths(&done["plan"]["keep"]), paths(&done["plan"]["conflict"])),
    }
}

/// Returns the paths of a list in an answer.
fn paths(list: &Value) -> BTreeSet<PathBuf> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["path"].as_str()).map(|path| PathBuf::from(path.trim_end_matches('/'))).collect()
}

/// Lists the paths at which two trees differ.
fn different(one: &Tree, other: &Tree) -> BTreeSet<PathBuf> {
    let all = one.keys().chain(other.keys()).collect::<BTreeSet<_>>();
    all.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}
