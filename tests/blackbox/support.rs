//! A scratch home and workspace, the binary run in them, and exact pictures of directory trees.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for anything.
pub(crate) const WAIT: Duration = Duration::from_mins(2);

/// A tool that the machine lacks: said aloud, and under `CI`, where `.ci/run` installs it, a failure.
pub(crate) fn lacking(tool: &str) {
    assert!(std::env::var_os("CI").is_none(), "{tool} is needed here");
    println!("skipped: no {tool} on this machine");
}

/// Something that the machine does not let this user do: said aloud.
pub(crate) fn not_allowed(what: &str) {
    println!("skipped: {what} is not allowed on this machine");
}

pub(crate) struct Lab {
    pub home: PathBuf,
    pub work: PathBuf,
    pub scratch: tempfile::TempDir,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The stable code of the error that `--json` printed.
    pub(crate) fn error(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The settings of a lab: a machine that stands still for some seconds makes no checkpoint late that no test wants late.
const PATIENT: &str = "deadline_ms: 60000\n";

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab::at(tempfile::tempdir().unwrap())
    }

    /// Makes a lab whose loss matters to piton: not in a directory of temporary files. `None`, said aloud, where the build
    /// itself is in such a directory.
    pub(crate) fn lasting() -> Option<Lab> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        if dir.starts_with("/tmp") || dir.starts_with("/var/tmp") {
            not_allowed("building outside of a directory of temporary files");
            return None;
        }
        std::fs::create_dir_all(dir).unwrap();
        Some(Lab::at(tempfile::tempdir_in(dir).unwrap()))
    }

    fn at(scratch: tempfile::TempDir) -> Lab {
        let root = scratch.path().canonicalize().unwrap();
        let (home, work) = (root.join("home"), root.join("work"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::create_dir_all(root.join("run")).unwrap();
        // Without it, each interactive fish starts a process that parses all manual pages of the machine, for minutes.
        std::fs::create_dir_all(home.join("data/fish/generated_completions")).unwrap();
        let lab = Lab { home, work, scratch };
        std::fs::create_dir_all(lab.user_file().parent().unwrap()).unwrap();
        std::fs::write(lab.user_file(), PATIENT).unwrap();
        lab
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.scratch.path().canonicalize().unwrap()
    }

    /// Returns a directory in which the built binary is `piton`; it is made at the first call.
    pub(crate) fn bin(&self) -> PathBuf {
        let bin = self.root().join("bin");
        if !bin.exists() {
            std::fs::create_dir(&bin).unwrap();
            // No copy: another test's child could hold it open for writing for a moment, and it could not be run.
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_piton"), bin.join("piton")).unwrap();
        }
        bin
    }

    /// The user's runtime directory.
    pub(crate) fn run(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    /// The directory in which piton looks for the settings of administrators.
    pub(crate) fn etc(&self) -> PathBuf {
        self.scratch.path().join("etc")
    }

    /// The user's settings.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.home.join("config/piton/config.yaml")
    }

    /// Gives the user settings, beside those of every lab.
    pub(crate) fn set(&self, settings: &str) {
        self.set_only(&format!("{PATIENT}{settings}"));
    }

    /// Gives the user these settings and no others.
    pub(crate) fn set_only(&self, settings: &str) {
        std::fs::write(self.user_file(), settings).unwrap();
        self.trust();
    }

    /// Trusts the user's settings as a person does, outside of the workspace: its own file is not trusted. A file that cannot be
    /// read is not trusted, and at first sight none has to be.
    pub(crate) fn trust(&self) {
        if self.home.join("piton/trusted").exists() {
            let mut command = self.command(env!("CARGO_BIN_EXE_piton"), &self.home);
            command.args(["config", "trust"]).output().unwrap();
        }
    }

    /// Returns the paths of the repositories that were kept, each once, in their order.
    pub(crate) fn kept_repositories(&self) -> Vec<String> {
        let listed = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let all = listed(self.home.join("piton/workspaces")).flat_map(|dir| listed(dir.join("repositories")));
        let paths: std::collections::BTreeSet<String> =
            all.filter_map(|kept| std::fs::read_to_string(kept.join("path")).ok()).collect();
        paths.into_iter().collect()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.home.join("piton/store.git")
    }

    /// Any program in the clean environment of the lab.
    pub(crate) fn command(&self, program: &str, cwd: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("PITON_HOME", self.home.join("piton"))
            .env("XDG_CONFIG_HOME", self.home.join("config"))
            .env("XDG_DATA_HOME", self.home.join("data"))
            .env("XDG_CACHE_HOME", self.home.join("cache"))
            .env("XDG_RUNTIME_DIR", self.run())
            .env("TZ", "UTC")
            // The administrator of this machine is none of the lab's.
            .env("PITON_TEST_ETC", self.etc())
            .current_dir(cwd)
            .stdin(Stdio::null());
        command
    }

    /// As [`Lab::command`], and Ctrl-C ends it: a runner in the background of a shell ignores that, and its children inherit it.
    pub(crate) fn interruptible(&self, program: &str, cwd: &Path) -> Command {
        let mut command = self.command(program, cwd);
        let with_default = || {
            // SAFETY: `signal` may be called between fork and exec, and the default needs no handler.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            Ok(())
        };
        // SAFETY: the closure only calls `signal`.
        unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, with_default) };
        command
    }

    pub(crate) fn piton_in(&self, cwd: &Path, args: &[&str]) -> Output {
        let output = self.command(env!("CARGO_BIN_EXE_piton"), cwd).args(args).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn piton(&self, args: &[&str]) -> Output {
        self.piton_in(&self.work, args)
    }

    pub(crate) fn take(&self, label: &str) -> u64 {
        let output = self.piton(&["checkpoint", label, "--json"]);
        assert_eq!(output.code, 0, "{output:?}");
        output.json()["checkpoint"]["n"].as_u64().unwrap()
    }

    pub(crate) fn restore(&self, n: impl ToString, args: &[&str]) -> Value {
        let number = n.to_string();
        let all: Vec<&str> = ["restore", &number].into_iter().chain(args.iter().copied()).collect();
        let all: Vec<&str> = all.into_iter().chain(["--yes", "--json"]).collect();
        let output = self.piton(&all);
        assert!([0, 4].contains(&output.code), "{output:?}");
        output.json()
    }

    pub(crate) fn sh(&self, script: &str) {
        let output = self.command("/bin/sh", &self.work).args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work.join(path)).unwrap_or_else(|error| format!("<{error}>"))
    }
}

/// The id of a checkpoint.
pub(crate) fn id_of(lab: &Lab, n: u64) -> String {
    lab.piton(&["show", &n.to_string(), "--json"]).json()["id"].as_str().unwrap().to_owned()
}

/// The stable code of an error in a reply.
pub(crate) fn code(reply: &Value) -> &str {
    reply["error"]["code"].as_str().unwrap_or("no error")
}

/// Sets the permission bits of a path in the workspace.
pub(crate) fn mode(lab: &Lab, path: &str, mode: u32) {
    std::fs::set_permissions(lab.work.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Real git in the workspace, with no settings but the repository's; `None`, said aloud, where there is none.
pub(crate) fn git(lab: &Lab, args: &[&str]) -> Option<String> {
    let mut command = lab.command("git", &lab.work);
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").args(args);
    run_git(command, args)
}

/// Makes a repository in the workspace, with a commit of everything that is there; `None` without git.
pub(crate) fn commit_all(lab: &Lab) -> Option<()> {
    git(lab, &["init", "-q"])?;
    git(lab, &["add", "."])?;
    git(lab, &["commit", "-qm", "one"])?;
    Some(())
}

fn run_git(mut command: Command, args: &[&str]) -> Option<String> {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            lacking(&format!("git ({error})"));
            return None;
        }
    };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "git {args:?}: {text}");
    Some(text)
}

impl Lab {
    /// Real git on piton's store.
    pub(crate) fn store_git(&self, args: &[&str]) -> Option<String> {
        let mut command = self.command("git", &self.work);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.arg("--git-dir").arg(self.store()).args(args);
        run_git(command, args)
    }
}

/// Kind, permissions and content.
pub(crate) type Tree = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

/// Everything below a directory, `.git` left out.
pub(crate) fn tree(dir: &Path) -> Tree {
    let mut all = Tree::new();
    collect(dir, dir, &mut all);
    all
}

fn collect(root: &Path, dir: &Path, all: &mut Tree) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        let facts = path.symlink_metadata().unwrap();
        let mode = facts.mode() & 0o7777;
        let what = if facts.is_symlink() {
            ('l', 0, std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
        } else if facts.is_dir() {
            collect(root, &path, all);
            ('d', mode, Vec::new())
        } else if facts.is_file() {
            ('f', mode, std::fs::read(&path).unwrap())
        } else {
            ('?', mode, Vec::new())
        };
        all.insert(path.strip_prefix(root).unwrap().to_owned(), what);
    }
}

/// A running sidecar.
pub(crate) struct Sidecar {
    pub child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    pub notices: Vec<Value>,
    waiting: Vec<Value>,
}

impl Sidecar {
    pub(crate) fn start(lab: &Lab, args: &[&str]) -> Sidecar {
        Sidecar::start_in(lab, &lab.work, args)
    }

    pub(crate) fn start_in(lab: &Lab, cwd: &Path, args: &[&str]) -> Sidecar {
        Sidecar::spawn(lab, cwd, args, &[])
    }

    /// With further variables in its environment.
    pub(crate) fn start_with(lab: &Lab, args: &[&str], env: &[(&str, &str)]) -> Sidecar {
        Sidecar::spawn(lab, &lab.work, args, env)
    }

    /// Waits until its workspace is watched.
    pub(crate) fn await_warm(&mut self) {
        let until = Instant::now() + WAIT;
        while self.ask(json!({"type": "status"}))["watcher"] != "warm" {
            assert!(Instant::now() < until, "never warm");
            std::thread::yield_now();
        }
    }

    /// Under strace with these options; `None`, said aloud, where that is not possible.
    pub(crate) fn start_traced(lab: &Lab, options: &[&str]) -> Option<Sidecar> {
        match Command::new("strace").args(["-o", "/dev/null", "true"]).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                not_allowed(&format!("tracing ({})", String::from_utf8_lossy(&output.stderr)));
                return None;
            }
            Err(error) => {
                lacking(&format!("strace ({error})"));
                return None;
            }
        }
        let mut command = lab.command("strace", &lab.work);
        command.args(options).args([env!("CARGO_BIN_EXE_piton"), "sidecar"]);
        Some(Sidecar::run(command))
    }

    fn spawn(lab: &Lab, cwd: &Path, args: &[&str], env: &[(&str, &str)]) -> Sidecar {
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), cwd);
        command.envs(env.iter().copied()).arg("sidecar").args(args);
        Sidecar::run(command)
    }

    fn run(mut command: Command) -> Sidecar {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "not json": line }));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Sidecar { child, input, lines, notices: Vec::new(), waiting: Vec::new() }
    }

    pub(crate) fn send(&mut self, value: Value) {
        self.send_raw(format!("{value}\n").as_bytes());
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    fn next(&mut self, until: Instant) -> Option<Value> {
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(value) => Some(value),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came; notices so far: {:?}", self.notices),
        }
    }

    fn keep(&mut self, value: Value) {
        let is_reply = value["type"] != "notice" && value.get("id").is_some();
        if is_reply { self.waiting.push(value) } else { self.notices.push(value) }
    }

    /// The reply to a request; notices and other replies are kept.
    pub(crate) fn reply(&mut self, id: impl Into<Value>) -> Value {
        let (id, until) = (id.into(), Instant::now() + WAIT);
        loop {
            if let Some(at) = self.waiting.iter().position(|value| value["id"] == id) {
                return self.waiting.remove(at);
            }
            let value = self.next(until).unwrap_or_else(|| panic!("the sidecar ended without a reply to {id}"));
            self.keep(value);
        }
    }

    /// The first reply, to whatever request, that `wanted` picks.
    pub(crate) fn answer(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + WAIT;
        loop {
            if let Some(at) = self.waiting.iter().position(&wanted) {
                return self.waiting.remove(at);
            }
            let value = self.next(until).expect("the sidecar goes on");
            self.keep(value);
        }
    }

    /// Sends and waits for the reply.
    pub(crate) fn ask(&mut self, mut value: Value) -> Value {
        let id = format!("ask-{}", ASKED.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        value["id"] = id.clone().into();
        self.send(value);
        self.reply(id)
    }

    /// The first notice, or error without an id, that `wanted` picks.
    pub(crate) fn notice(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + WAIT;
        loop {
            if let Some(at) = self.notices.iter().position(&wanted) {
                return self.notices.remove(at);
            }
            let value = self.next(until).unwrap_or_else(|| panic!("no such notice: {:?}", self.notices));
            self.keep(value);
        }
    }

    /// Closes the input and waits for the end.
    pub(crate) fn finish(&mut self) -> i32 {
        self.input = None;
        self.wait()
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> i32 {
        let until = Instant::now() + WAIT;
        while let Some(value) = self.next(until) {
            self.keep(value);
        }
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

static ASKED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Drop for Sidecar {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A verb that runs on a terminal and asks there. Its stdout is a pipe.
pub(crate) struct Asking {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    data: std::thread::JoinHandle<Vec<u8>>,
}

/// Both ends of a new pseudo-terminal: that of the person, and that of the program.
pub(crate) fn pseudo_terminal() -> (OwnedFd, OwnedFd) {
    let (mut person, mut program) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are written before they are read, and null stands for no name, no modes and no size.
    let made = unsafe { libc::openpty(&raw mut person, &raw mut program, none, none.cast(), none.cast()) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    for end in [person, program] {
        // SAFETY: the descriptor was just opened; no child inherits the wrong end.
        assert_ne!(unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) }, -1);
    }
    // SAFETY: nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(person), OwnedFd::from_raw_fd(program)) }
}

impl Asking {
    /// Starts a verb and waits until it asks.
    pub(crate) fn start(lab: &Lab, args: &[&str]) -> Asking {
        Asking::start_after(lab, args, "")
    }

    /// Starts a verb on a terminal at which something was typed before, and waits until it asks.
    pub(crate) fn start_after(lab: &Lab, args: &[&str], typed: &str) -> Asking {
        let mut asking = Asking::begin(lab, args, typed);
        asking.until("[y/N]");
        asking
    }

    fn begin(lab: &Lab, args: &[&str], typed: &str) -> Asking {
        let (person, program) = pseudo_terminal();
        File::from(person.try_clone().unwrap()).write_all(typed.as_bytes()).unwrap();
        let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        command.args(args).stdin(program.try_clone().unwrap()).stderr(program).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It holds the program's end.
        drop(command);
        let mut out = child.stdout.take().unwrap();
        let data = std::thread::spawn(move || {
            let mut data = Vec::new();
            out.read_to_end(&mut data).unwrap();
            data
        });
        let keyboard = File::from(person);
        let mut terminal = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end is an error: nobody holds the other side any more.
            while let Ok(n) = terminal.read(&mut buffer) {
                if n == 0 || sender.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Asking { child, keyboard, screen, shown: Vec::new(), data }
    }

    /// Starts a verb that asks several questions, and answers each once it stands on the screen; then the last, as
    /// [`Asking::answer`] does.
    pub(crate) fn answer_all(lab: &Lab, args: &[&str], answers: &[(&str, &str)]) -> Output {
        let mut asking = Asking::begin(lab, args, "");
        let (last, others) = answers.split_last().unwrap();
        for (question, answer) in others {
            asking.until(question);
            asking.shown.clear();
            asking.keyboard.write_all(format!("{answer}\n").as_bytes()).unwrap();
        }
        asking.until(last.0);
        asking.answer(last.1)
    }

    /// Waits until a question stands on the screen.
    fn until(&mut self, question: &str) {
        while !String::from_utf8_lossy(&self.shown).contains(question) {
            assert!(self.see(), "did not ask `{question}`: {}", String::from_utf8_lossy(&self.shown));
        }
    }

    /// Waits for something on the screen; `false` at the end.
    fn see(&mut self) -> bool {
        match self.screen.recv_timeout(WAIT) {
            Ok(bytes) => {
                self.shown.extend(bytes);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came: {}", String::from_utf8_lossy(&self.shown)),
        }
    }

    /// Answers, and waits for the end.
    pub(crate) fn answer(mut self, line: &str) -> Output {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
        while self.see() {}
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let data = self.data.join().unwrap();
        Output {
            code,
            stdout: String::from_utf8_lossy(&data).into_owned(),
            stderr: String::from_utf8_lossy(&self.shown).into_owned(),
        }
    }
}

/// Returns the number of a checkpoint as a person types it.
pub(crate) fn number(checkpoint: &Value) -> String {
    checkpoint["n"].as_str().map_or_else(|| checkpoint["n"].to_string(), str::to_owned)
}

/// Returns the number of the checkpoint that an action got, as a person types it.
pub(crate) fn number_of(reply: &Value) -> String {
    number(&reply["checkpoint"])
}

/// Returns the first `digits` digits of a checkpoint's id as a person types them: digits alone would be a number.
pub(crate) fn short(id: &str, digits: usize) -> String {
    let short = &id[..digits];
    if short.bytes().all(|byte| byte.is_ascii_digit()) { format!("id:{short}") } else { short.to_owned() }
}
