//! The answers to a git that asks which files have changed (`git.fsmonitor_answers`): `git status` with the door is what it is without.
//!
//! `PITON_ROUNDS=full` takes 10,000 random steps with each mode, otherwise some hundred. A failure names its seed and its last steps.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::support::{Lab, WAIT, lacking};

/// The gits of this machine: the first that a shell finds, and the distribution's.
const GITS: [&str; 2] = ["/usr/local/bin/git", "/usr/bin/git"];

/// A repository whose git asks piton.
struct Asked {
    lab: Lab,
    /// The token of the last question that the test itself has asked.
    token: String,
    /// The questions of the test between its steps, and those that were answered with paths.
    questions: (u64, u64),
    /// The number of wrong answers that git would give without the door too.
    own_faults: u64,
}

impl Asked {
    /// Makes it; `None`, said aloud, where the git is not there.
    fn new(git: &str, mode: &str, untracked_cache: bool) -> Option<Asked> {
        if !Path::new(git).exists() {
            lacking(git);
            return None;
        }
        let lab = Lab::new();
        // Commands that destroy something tell the engine, which is not the subject here.
        lab.set(&format!("guard: off\ngit: {{fsmonitor_answers: {mode}}}\n"));
        fs::create_dir(lab.home.join("bin")).unwrap();
        symlink(git, lab.home.join("bin/git")).unwrap();
        let config = format!(
            "[user]\nname = t\nemail = t@example.org\n[init]\ndefaultBranch = main\n[gc]\nauto = 0\n[core]\nuntrackedCache = {untracked_cache}\n"
        );
        fs::write(lab.home.join(".gitconfig"), config).unwrap();
        let asked = Asked { lab, token: String::new(), questions: (0, 0), own_faults: 0 };
        asked.sh("git init -q; mkdir -p a/b out; echo f > a/b/f; echo g > a/g; echo o > out/o; printf 'out/\\n*.log\\n' > .gitignore; git add .; git add -f out/o; git commit -qm one; git branch other");
        let installed = asked.command(env!("CARGO_BIN_EXE_piton")).args(["install", "git"]).output().unwrap();
        assert!(installed.status.success(), "{installed:?}");
        // Its hooks are not the subject here.
        fs::remove_file(asked.lab.work.join(".git/hooks/reference-transaction")).unwrap();
        Some(asked)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.lab.command(program, &self.lab.work);
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.lab.home.join("bin").display()));
        command
    }

    fn sh(&self, script: &str) -> String {
        let done = self.command("/bin/sh").args(["-ec", script]).output().unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn git(&self, args: &[&str]) -> Output {
        self.command("git").args(args).output().unwrap()
    }

    /// Returns what git says with the door.
    fn status(&self, further: &[&str]) -> String {
        let args = [&["status", "--porcelain=v2", "-z"], further].concat();
        let done = self.git(&args);
        assert!(done.status.success(), "{done:?}");
        printable(&done.stdout)
    }

    /// Keeps a copy of the index.
    fn keep_index(&self) {
        copied(&self.lab.work.join(".git/index"), &self.lab.work.join(".git/kept"));
    }

    /// Returns what git says by the copy of the index without the door, and perhaps without its own cache of untracked files.
    fn alone(&self, has_cache: bool, further: &[&str]) -> String {
        let (kept, copy) = (self.lab.work.join(".git/kept"), self.lab.work.join(".git/copy"));
        copied(&kept, &copy);
        let mut command = self.command("git");
        command.args(["-c", "core.fsmonitor=false"]).env("GIT_INDEX_FILE", copy);
        if !has_cache {
            command.args(["-c", "core.untrackedCache=false"]);
        }
        let done = command.args(["status", "--porcelain=v2", "-z"]).args(further).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        printable(&done.stdout)
    }

    /// Asks the daemon; `None` where there is none.
    fn ask(&self, top: &Path, token: &str) -> Option<Value> {
        let stream = UnixStream::connect(self.lab.home.join("piton/daemon/socket")).ok()?;
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        lines.next()?.ok()?;
        let question = json!({"v": 1, "id": 1, "type": "git.changed", "top": top, "token": token});
        (&stream).write_all(format!("{question}\n").as_bytes()).ok()?;
        serde_json::from_str(&lines.next()?.ok()?).ok()
    }

    /// Asks with the token of the last answer; true if paths were known.
    fn knows(&mut self) -> bool {
        let Some(answer) = self.ask(&self.lab.work.canonicalize().unwrap(), &self.token) else { return false };
        self.token = answer["token"].as_str().unwrap_or_default().to_owned();
        answer["everything"].is_null()
    }

    /// Has the work tree watched; `false` if it cannot be.
    fn watched(&mut self) -> bool {
        let until = Instant::now() + WAIT;
        while !self.knows() {
            if Instant::now() >= until {
                return false;
            }
            // It starts the daemon, but not again and again.
            let _ = fs::remove_file(self.lab.home.join("piton/daemon/summoned"));
            self.status(&[]);
        }
        true
    }

    fn daemon(&self) -> Option<String> {
        let stream = UnixStream::connect(self.lab.home.join("piton/daemon/socket")).ok()?;
        stream.set_read_timeout(Some(WAIT)).unwrap();
        let greeting: Value = serde_json::from_str(&BufReader::new(stream).lines().next()?.ok()?).ok()?;
        Some(greeting["pid"].to_string())
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.command(env!("CARGO_BIN_EXE_piton")).args(["daemon", "stop"]).output();
    }
}

/// Copies an index with its time, by which git knows entries that may have changed behind it.
fn copied(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
    let written = fs::metadata(from).unwrap().modified().unwrap();
    fs::File::options().write(true).open(to).unwrap().set_modified(written).unwrap();
}

fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace('\0', "\n")
}

/// Takes one random step; some cannot be done.
fn step(asked: &Asked, dice: &mut Dice) -> String {
    let place = |dice: &mut Dice| {
        let depth = dice.roll(4);
        let mut names: Vec<&str> = (0..depth).map(|_| dice.of(&["a", "b", "c", "out", "d e"])).collect();
        names.push(dice.of(&["f", "g", "h.log", "a", "b", "c", "out", "ü"]));
        names.join("/")
    };
    let (one, two) = (place(dice), place(dice));
    let root = &asked.lab.work;
    let (first, second) = (root.join(&one), root.join(&two));
    let aside = asked.lab.root().join(format!("aside-{}", dice.roll(3)));
    let what = dice.roll(1000);
    let done = match what {
        0..200 => fs::write(&first, format!("{}\n", dice.roll(1000))),
        200..240 => fs::create_dir_all(&first),
        240..300 => fs::create_dir_all(&first).and_then(|()| fs::write(first.join("at-once"), "x")),
        300..370 => fs::rename(&first, &second),
        370..400 => fs::rename(&first, &aside),
        400..430 => fs::rename(&aside, &first),
        430..480 => fs::remove_file(&first),
        480..510 => fs::remove_dir_all(&first),
        510..530 => symlink(dice.of(&["f", "a", "../a/b", "/"]), &first),
        530..560 => fs::symlink_metadata(&first).and_then(|facts| {
            let mode = if facts.permissions().mode() & 0o100 == 0 { 0o755 } else { 0o644 };
            if facts.is_file() { fs::set_permissions(&first, PermissionsExt::from_mode(mode)) } else { Ok(()) }
        }),
        560..590 => fs::create_dir_all(first.join("x/y")).and_then(|()| fs::write(first.join("x/y/f"), "x")),
        590..630 => fs::write(root.join("new~"), "saved\n").and_then(|()| fs::rename(root.join("new~"), &first)),
        630..640 => {
            fs::write(dirs_of(&first).join(".gitignore"), dice.of(&["*.log\n", "out/\nb/\n", "!h.log\n", "", "c\n"]))
        }
        640..643 => fs::write(root.join(".git/info/exclude"), dice.of(&["", "g\n", "c/\n"])),
        643..648 => fs::hard_link(&first, &second),
        648..655 => many(&dirs_of(&first).join("big")),
        655..660 => fs::rename(root.join("big"), &first),
        660..663 => nested(asked, &first),
        663..666 => kill(asked),
        666..668 => overflow(asked, &first),
        668..720 => fs::File::options().append(true).open(&first).and_then(|mut file| file.write_all(b"y")),
        _ => return git_step(asked, dice, &one, &two),
    };
    format!("{what} {one} {two} {:?}", done.err().map(|error| error.kind()))
}

fn git_step(asked: &Asked, dice: &mut Dice, one: &str, two: &str) -> String {
    let table: &[&[&str]] = &[
        &["add", "-A"],
        &["add", "-A"],
        &["add", "--", one],
        &["add", "-f", "--", one],
        &["commit", "-qam", "more"],
        &["commit", "-qm", "some"],
        &["-c", "core.fsmonitor=false", "add", "-A"],
        &["-c", "core.fsmonitor=false", "status"],
        &["-c", "core.fsmonitor=false", "commit", "-qam", "aside"],
        &["-c", "core.untrackedCache=false", "status"],
        &["--no-optional-locks", "status"],
        &["checkout", "-q", "other"],
        &["checkout", "-q", "main"],
        &["checkout", "-q", "-f", "other"],
        &["checkout", "-q", "-f", "main"],
        &["checkout", "-q", "--", one],
        &["reset", "-q"],
        &["reset", "-q", "--hard"],
        &["reset", "-q", "--hard", "HEAD~1"],
        &["stash", "-q"],
        &["stash", "-q", "-u"],
        &["stash", "pop", "-q"],
        &["clean", "-fdq"],
        &["clean", "-fdxq", "--", one],
        &["rm", "-q", "-r", "--cached", "--", one],
        &["rm", "-q", "-rf", "--", one],
        &["mv", "-f", "--", one, two],
        &["merge", "-q", "-m", "m", "other"],
        &["merge", "--abort"],
        &["update-index", "-q", "--refresh"],
        &["branch", "-q", "-f", "other", "HEAD~1"],
    ];
    let args = table[dice.roll(table.len() as u64) as usize];
    // Some of them are refused.
    let done = asked.git(args);
    format!("git {args:?} {:?}", done.status.code())
}

fn dirs_of(path: &Path) -> PathBuf {
    path.parent().filter(|dir| dir.is_dir()).unwrap_or(Path::new("/dev/null")).to_owned()
}

/// Makes a large directory.
fn many(dir: &Path) -> std::io::Result<()> {
    for n in 0..60 {
        let deep = dir.join(format!("d{}/e{n}", n % 7));
        fs::create_dir_all(&deep)?;
        fs::write(deep.join("f"), "x")?;
    }
    Ok(())
}

/// Makes or removes a repository inside.
fn nested(asked: &Asked, dir: &Path) -> std::io::Result<()> {
    if dir.join(".git").is_dir() {
        return fs::remove_dir_all(dir);
    }
    let done = asked.command("git").args(["init", "-q"]).arg(dir).output()?;
    if done.status.success() {
        fs::write(dir.join("in"), "x")?;
        asked.git(&["-C", &dir.display().to_string(), "status"]);
        fs::remove_dir_all(dir.join(".git"))?;
    }
    Ok(())
}

/// Kills the daemon, which the next question starts again.
fn kill(asked: &Asked) -> std::io::Result<()> {
    let Some(pid) = asked.daemon() else { return Ok(()) };
    asked.sh(&format!("kill -9 {pid} 2>/dev/null || :"));
    fs::remove_file(asked.lab.home.join("piton/daemon/summoned"))
}

/// Makes more events than the system keeps, while the daemon stands still.
fn overflow(asked: &Asked, file: &Path) -> std::io::Result<()> {
    let Some(pid) = asked.daemon() else { return Ok(()) };
    asked.sh(&format!("kill -STOP {pid} 2>/dev/null || :"));
    let most: u64 = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")?.trim().parse().unwrap_or(16384);
    let other = asked.lab.work.join("other~");
    for n in 0..most.min(40_000) / 4 {
        // Equal events in a row count once.
        for path in [file, &other] {
            let _ = fs::write(path, n.to_string());
        }
    }
    let _ = fs::remove_file(&other);
    asked.sh(&format!("kill -CONT {pid} 2>/dev/null || :"));
    Ok(())
}

/// Takes random steps, and compares after each. Returns the questions of the test, and those that were answered with paths.
fn soak(mut asked: Asked, seed: u64, steps: u64) -> (u64, u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut story = VecDeque::new();
    let is_watched = fs::read_to_string(asked.lab.user_file()).unwrap().contains("paths");
    assert!(!is_watched || asked.watched(), "the work tree is not watched");
    for number in 0..steps {
        for _ in 0..=dice.roll(3) {
            story.push_back(step(&asked, &mut dice));
        }
        while story.len() > 60 {
            story.pop_front();
        }
        // With ignored files, git has no use for its cache of untracked ones.
        let further: &[&str] = if dice.roll(4) == 0 { &["--ignored"] } else { &[] };
        asked.keep_index();
        let (status, truth) = (asked.status(further), asked.alone(false, further));
        if status != truth && asked.alone(true, further) == status {
            // git's cache knows directories by times in whole seconds. Where the index is written anew without a look at them, it
            // overlooks what came within the second, also without any door.
            asked.own_faults += 1;
            asked.sh("git -c core.fsmonitor=false update-index --no-untracked-cache");
            story.push_back("a fault of git's own".to_owned());
            continue;
        }
        assert!(
            status == truth,
            "seed {seed}, step {number}: git with the door says\n{status}\nand without\n{truth}\nafter {story:#?}"
        );
        story.push_back(format!("status {further:?}"));
        // Else the watcher would be made anew nearly all the time.
        if is_watched && dice.roll(4) == 0 {
            let is_known = asked.knows();
            asked.questions = (asked.questions.0 + 1, asked.questions.1 + u64::from(is_known));
            if !is_known && dice.roll(3) > 0 {
                asked.watched();
            }
        }
    }
    assert!(
        asked.own_faults <= 3 + steps / 100,
        "{} of {steps} steps were wrong by a fault of git's own",
        asked.own_faults
    );
    println!("seed {seed}: {steps} steps, {} of them wrong by a fault of git's own", asked.own_faults);
    asked.questions
}

fn steps() -> u64 {
    let is_full = std::env::var_os("PITON_ROUNDS").is_some_and(|rounds| rounds == "full");
    if is_full { 10_000 } else { 240 }
}

/// Returns the seed of a part of a soak.
fn seed() -> u64 {
    std::env::var("PITON_SEED").map_or(1, |text| text.parse().unwrap())
}

#[test]
fn status_is_right_when_all_may_have_changed() {
    for (part, git) in GITS.into_iter().enumerate() {
        if let Some(asked) = Asked::new(git, "all", part == 0) {
            soak(asked, seed() + part as u64, steps() / 2);
        }
    }
}

#[test]
fn status_is_right_with_paths() {
    let (mut all, mut known) = (0, 0);
    for (part, (git, untracked_cache)) in GITS.into_iter().flat_map(|git| [(git, true), (git, false)]).enumerate() {
        if let Some(asked) = Asked::new(git, "paths", untracked_cache) {
            let found = soak(asked, seed() + part as u64, steps() / 4);
            (all, known) = (all + found.0, known + found.1);
        }
    }
    println!("{known} of {all} questions were answered with paths");
    assert!(known * 2 > all, "{known} of {all} questions were answered with paths");
}

#[test]
fn the_doctor_says_what_git_is_told() {
    let Some(mut asked) = Asked::new(GITS[0], "paths", false) else { return };
    // A whole door, with the hooks.
    let installed = asked.command(env!("CARGO_BIN_EXE_piton")).args(["install", "git"]).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let doctor = |asked: &Asked| {
        let done = asked.command(env!("CARGO_BIN_EXE_piton")).args(["doctor", "--all"]).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let before = doctor(&asked);
    // Its own trial of the door has the daemon start, which may watch already.
    assert!(
        before.contains("piton reports to git that any file might have changed")
            || before.contains("piton lists the changed paths"),
        "{before}"
    );
    assert!(before.contains("`git config core.untrackedCache true`"), "{before}");
    assert!(asked.watched());
    let until = Instant::now() + WAIT;
    loop {
        let watched = doctor(&asked);
        if watched.contains("piton lists the changed paths for git") {
            break;
        }
        // A watcher that is late says so, and is asked again.
        assert!(Instant::now() < until, "{watched}");
    }
    asked.sh("git config core.ignorecase true; git config core.untrackedCache true");
    let doubtful = doctor(&asked);
    assert!(doubtful.contains("any file might have changed: ") && !doubtful.contains("no daemon"), "{doubtful}");
    assert!(!doubtful.contains("untrackedCache"), "{doubtful}");
}

#[test]
fn only_the_setting_has_a_daemon_watch() {
    let Some(asked) = Asked::new(GITS[0], "all", true) else { return };
    asked.sh("echo x > a/new; git status; git add -A; git commit -qm two");
    assert!(!asked.lab.home.join("piton/daemon/socket").exists());
    assert!(asked.git(&["ls-files", "-f"]).stdout.starts_with(b"H "), "the answer says nothing of single files");
    // A workspace that nobody trusts does not decide on it.
    asked.lab.write(".piton.yaml", "git: {fsmonitor_answers: paths}\n");
    asked.sh("git status");
    assert!(!asked.lab.home.join("piton/daemon/socket").exists());
}

#[test]
fn work_trees_are_told_apart_and_doubts_are_everything() {
    let Some(mut asked) = Asked::new(GITS[0], "paths", true) else { return };
    asked.sh("git worktree add -q ../linked -b linked; mkdir a/out; echo p > a/out/p");
    assert!(asked.watched());
    let (top, linked) = (asked.lab.work.canonicalize().unwrap(), asked.lab.root().join("linked"));
    let token = asked.token.clone();
    let until = Instant::now() + WAIT;
    let other = loop {
        let answer = asked.ask(&linked, "").unwrap();
        if let Some(other) = answer["token"].as_str() {
            break other.to_owned();
        }
        assert!(Instant::now() < until, "{answer}");
        std::thread::yield_now();
    };
    asked.sh("echo x >> a/g; echo y > ../linked/y; mkdir -p c/d; ln -s a c/link");
    let told = |answer: Option<Value>| answer.unwrap()["paths"].clone();
    assert_eq!(told(asked.ask(&linked, &other)), json!(["y"]));
    let paths = told(asked.ask(&top, &token));
    assert_eq!(
        paths,
        json!(["a/g", "a/out/", "c", "c/", "c/-", "c/d/", "c/d/-"]),
        "each directory is named in what is new"
    );
    for (top, token) in [(&top, other.as_str()), (&linked, &token), (&top, "piton"), (&top, "")] {
        let answer = asked.ask(top, token).unwrap();
        assert!(answer["everything"].is_string() && answer["paths"] == json!([]), "{answer}");
    }
    asked.sh("git -C ../linked status; git -C ../linked status; touch ../linked/z");
    let trace = asked.lab.root().join("trace");
    asked.sh(&format!("GIT_TRACE_FSMONITOR={} git -C ../linked status", trace.display()));
    assert!(fs::read_to_string(&trace).unwrap().contains("callback 'z'"), "git in a linked work tree is told too");
    assert!(asked.watched());
    asked.sh("printf x > \"$(printf 'no\\377text')\"");
    assert_eq!(asked.ask(&top, &asked.token).unwrap()["everything"], "the name of a changed path is not text");
    assert!(asked.watched());
    for (script, why) in [
        ("ln a/g h", "h has a second name"),
        ("echo '*.o' > a/.gitignore", "a/.gitignore has changed"),
        ("git config include.path ../../included", "changed"),
        ("printf '[core]\\nignorecase = false\\n' > ../included", "git's configuration or excludes have changed"),
        ("git init -q a/inner", "a/inner"),
    ] {
        asked.sh(script);
        let answer = asked.ask(&top, &asked.token).unwrap();
        assert!(answer["everything"].as_str().is_some_and(|text| text.contains(why)), "{script}: {answer}");
        if why != "a/inner" {
            assert!(asked.watched(), "{script}");
        }
    }
}
