//! `piton run`: an agent without hooks loses nothing, and notices nothing.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Lab, WAIT, lacking};

/// A lab whose daemon ends with it.
struct Runs(Lab);

/// An agent at work, which ends with the test.
struct Started(Child);

impl std::ops::Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.piton(&["daemon", "stop"]);
    }
}

impl Runs {
    fn new() -> Runs {
        let lab = Lab::new();
        lab.write("kept", "from before");
        Runs(lab)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(env!("CARGO_BIN_EXE_piton"), &self.0.work);
        command.arg("run").args(args);
        command
    }

    /// Writes a script of `sh` beside the workspace, and returns its path.
    fn script(&self, text: &str) -> String {
        let path = self.0.root().join("agent");
        std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Starts an agent that says "up" on its output when it is ready.
    fn start(&self, script: &str) -> Started {
        let path = self.script(script);
        let mut child = self.command(&["-q", &path]).stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        assert_eq!(&first, b"up\n");
        Started(child)
    }

    fn run_of(&self, name: &str) -> Value {
        let runs = self.0.piton(&["runs", "--json"]).json();
        let all = runs["runs"].as_array().unwrap();
        all.iter().find(|run| run["run"] == name).unwrap_or_else(|| panic!("{runs}")).clone()
    }

    /// Brings a file back from the newest checkpoint that has it, and returns its content.
    fn recovered(&self, path: &str) -> String {
        let output = self.0.piton(&["recover", path, "--yes"]);
        assert_eq!(output.code, 0, "{output:?}");
        self.0.read(path)
    }
}

fn has(program: &str) -> bool {
    let is_there = ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(program).exists());
    if !is_there {
        lacking(program);
    }
    is_there
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + WAIT;
    while !done() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The letter by which the kernel tells the state of a process.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn each_step_of_bash_and_zsh_is_recoverable_also_of_what_the_run_itself_made() {
    for shell in ["bash", "zsh"] {
        if !has(shell) {
            continue;
        }
        let runs = Runs::new();
        let agent = runs.script(&format!(
            "printf one >made\n{shell} -c 'rm kept made'\nprintf two >made\n{shell} -euc 'echo late >made; echo \"[$-]\"; exit 7'\n\
             test $? = 7 || exit 1\nprintf three >other\nprintf 'rm other\\n' | {shell}\nprintf four >last\n\
             printf 'rm last\\n' >step\n{shell} ./step\nexit 5\n"
        ));
        let output = runs.command(&["--name", "work", "--", &agent]).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("piton: run work: piton takes a checkpoint before commands of bash and zsh"), "{said}");
        assert!(said.contains("of all other work, at most the last 10 s can be lost"), "{said}");
        assert_eq!(runs.recovered("kept"), "from before", "{shell}");
        assert_eq!(runs.recovered("other"), "three", "{shell}");
        assert_eq!(runs.recovered("last"), "four", "{shell}");
        let versions = runs.0.piton(&["find", "made", "--json"]).json();
        let sizes: Vec<&Value> = versions["versions"].as_array().unwrap().iter().map(|one| &one["bytes"]).collect();
        assert_eq!(sizes.iter().filter(|size| ***size == json!(3)).count(), 2, "{shell}: {versions}");
        let run = runs.run_of("work");
        assert_eq!((run["status"].clone(), run["client"].clone()), (json!("error"), json!("agent")), "{run}");
    }
}

#[test]
fn what_sh_and_the_agent_itself_delete_was_saved_some_seconds_before() {
    let runs = Runs::new();
    let mut agent =
        runs.start("printf work >made.new; mv made.new made; echo up; read go; sh -c 'rm kept'; rm made; exit 0\n");
    until("no autosave", || {
        let listed = runs.0.piton(&["list", "--json"]).json();
        listed["checkpoints"].as_array().unwrap().iter().any(|one| one["kind"] == "autosave")
            && runs.0.piton(&["find", "made", "--json"]).code == 0
    });
    agent.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(0));
    assert_eq!((runs.recovered("made"), runs.recovered("kept")), ("work".to_owned(), "from before".to_owned()));
    // The whole run is one turn.
    assert_eq!(runs.0.piton(&["undo", "--yes"]).code, 0);
}

#[test]
fn the_exit_the_streams_the_umask_and_the_environment_are_as_without_it() {
    let runs = Runs::new();
    let mut cat = runs.command(&["-q", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    cat.stdin.take().unwrap().write_all(b"\0through\xff").unwrap();
    assert_eq!(cat.wait_with_output().unwrap().stdout, b"\0through\xff");
    let agent = runs.script("umask; echo \"$1|$2|$PITON_RUN\"\n");
    let output = runs.command(&["-q", "--name", "one", &agent, "--json", "a b"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.ends_with("--json|a b|one\n") && told.starts_with("0022"), "{output:?}");
    assert_eq!(output.stderr, b"", "{output:?}");
    let killed = runs.command(&["-q", "sh", "-c", "kill -9 $$"]).status().unwrap();
    assert_eq!(killed.signal(), Some(9));
    // Real-time signals, too.
    for signal in [34, 40, 64] {
        let killed = runs.command(&["-q", "sh", "-c", &format!("kill -{signal} $$")]).status().unwrap();
        assert_eq!(killed.signal(), Some(signal), "{killed:?}");
    }
    let missing = runs.command(&["-q", "no-such-agent"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
    let refused = runs.command(&["-q", "/etc"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(126), "{refused:?}");
}

#[test]
fn signals_reach_the_agent_and_its_stops_are_seen() {
    use rustix::process::Signal;
    let runs = Runs::new();
    let mut agent =
        runs.start("trap 'echo usr1' USR1; trap 'echo term; exit 3' TERM; echo up; while :; do sleep 0.1; done\n");
    // An engine may be a child of the same process.
    let found = |pid: u32| {
        let of = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let line = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut all = of.split_whitespace().map(|pid| pid.parse::<u32>().unwrap());
        all.find(|pid| ["/agent", "sleep"].iter().any(|word| line(pid).contains(word)))
    };
    // The list may lack one while another comes or goes.
    let child = |pid: u32| {
        until("no agent is there", || found(pid).is_some());
        found(pid).or_else(|| found(pid)).unwrap()
    };
    let (piton, inner) = (agent.id(), child(agent.id()));
    send(inner, Signal::STOP);
    until("it is not stopped", || state(piton) == Some('T'));
    send(piton, Signal::CONT);
    until("it does not go on", || state(piton) != Some('T') && state(inner) != Some('T'));
    send(piton, Signal::TERM);
    drop(agent.stdin.take());
    assert_eq!(agent.wait().unwrap().code(), Some(3));
    // Signals that come with the agent's end do not cost its exit code.
    for _ in 0..8 {
        let mut agent = runs.start("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done\n");
        let inner = child(agent.id());
        send(inner, Signal::TERM);
        for _ in 0..50 {
            send(agent.id(), Signal::TERM);
        }
        assert_eq!(agent.wait().unwrap().code(), Some(7));
    }
    // Each signal that was ignored stays so, and no other is.
    let by_hand = "grep SigIgn /proc/self/status".to_owned();
    let through = format!("{} run -q {by_hand}", env!("CARGO_BIN_EXE_piton"));
    for ignored in ["", "HUP", "CHLD", "HUP CHLD USR2"] {
        let [wanted, told] = [&by_hand, &through].map(|line| {
            let line = format!("trap '' {ignored}; exec {line}");
            let mut shell = runs.0.command("/bin/sh", &runs.0.work);
            String::from_utf8(shell.args(["-c", &line]).output().unwrap().stdout).unwrap()
        });
        assert!(told == wanted && told.starts_with("SigIgn:"), "{ignored}: {told}{wanted}");
    }
    // The agent does not outlive its stand-in.
    let agent = runs.start("echo up; exec sleep 1000\n");
    let inner = child(agent.id());
    send(agent.id(), Signal::KILL);
    until("the agent lives", || matches!(state(inner), None | Some('Z')));
    let mut agent = agent;
    agent.wait().unwrap();
}

#[test]
fn the_users_own_startup_files_are_read_as_without_it() {
    let runs = Runs::new();
    let lab = &runs.0;
    if has("bash") {
        std::fs::write(lab.home.join("env.sh"), "mine=\"from $HOME\"\n").unwrap();
        let script = "bash -c 'echo \"$mine\"; bash -c \"echo again \\$mine\"'";
        let told = |own: bool, env: &str| {
            let mut command = if own { lab.command("sh", &lab.work) } else { runs.command(&["-q", "sh"]) };
            let output = command.args(["-c", script]).env("BASH_ENV", env).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
        };
        for env in ["$HOME/env.sh", "~/env.sh", "", "none", "a\"b", "\\\""] {
            assert_eq!(told(true, env), told(false, env), "{env}");
        }
        let traced = |own: bool| {
            let mut command = if own { lab.command("bash", &lab.work) } else { runs.command(&["-q", "bash"]) };
            command.args(["-xc", "echo hi"]).output().unwrap()
        };
        assert_eq!(traced(true), traced(false));
    }
    if has("zsh") {
        let dir = lab.home.join("zsh dir");
        std::fs::create_dir(&dir).unwrap();
        for (name, at) in
            [(".zshenv", &lab.home), (".zshenv", &dir), (".zprofile", &dir), (".zshrc", &dir), (".zlogin", &dir)]
        {
            let text = format!("seen+=\" {name} of ${{ZDOTDIR-none}}\"\n");
            std::fs::write(at.join(name), text).unwrap();
        }
        let add = |text: &str| {
            let mut file = std::fs::OpenOptions::new().append(true).open(lab.home.join(".zshenv")).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let told = |own: bool, zdotdir: Option<&Path>, script: &str| {
            let mut command = if own { lab.command("sh", &lab.work) } else { runs.command(&["-q", "sh"]) };
            command.args(["-c", script]);
            if let Some(dir) = zdotdir {
                command.env("ZDOTDIR", dir);
            }
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr)
        };
        let scripts = [
            "zsh -c 'echo \"$seen\"'",
            "zsh -lc 'echo \"$seen\"; zsh -c \"echo in \\$seen\"'",
            "zsh -c 'zsh -c \"echo \\$seen\"'",
        ];
        let check = |when: &str| {
            for script in scripts {
                for zdotdir in [None, Some(dir.as_path())] {
                    assert_eq!(
                        told(true, zdotdir, script),
                        told(false, zdotdir, script),
                        "{when}: {script}, {zdotdir:?}"
                    );
                }
            }
        };
        check("as it is");
        add(&format!("ZDOTDIR='{}'\n", dir.display()));
        check("set and not exported");
        add("export ZDOTDIR\n");
        check("exported");
    }
}

#[test]
fn the_policy_holds_steps_of_the_agent() {
    if !has("bash") {
        return;
    }
    let runs = Runs::new();
    runs.0.set("policy: {file-delete: deny}\n");
    let agent = runs.script("bash -c 'rm kept'; echo \"code $?\"; cat kept\n");
    let output = runs.command(&["-q", &agent]).output().unwrap();
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("code 126\nfrom before"), "{output:?}");
    assert!(said.contains("the line was not run"), "{said}");
}

#[test]
fn a_denied_step_of_zsh_stays_so_where_no_file_can_be_made() {
    if !has("zsh") {
        return;
    }
    let runs = Runs::new();
    runs.0.set("policy: {file-delete: deny}\n");
    let step = ["-q", "zsh", "-c", "rm kept"];
    let output = runs.command(&step).env("TMPPREFIX", "/nonexistent/z").output().unwrap();
    assert_eq!((output.status.code(), runs.0.read("kept").as_str()), (Some(126), "from before"), "{output:?}");
}

#[test]
fn where_the_guard_is_off_nothing_is_promised() {
    let runs = Runs::new();
    let refused = runs.command(&["--set", "guard=off", "true"]).output().unwrap();
    assert!(
        !refused.status.success() && refused.stderr.starts_with(b"piton: `piton run` does not accept --set"),
        "{refused:?}"
    );
    runs.0.set("guard: off\n");
    let output = runs.command(&["true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("NOT GUARDED: the guard is off") && !said.contains("piton undo"), "{said}");
}

#[test]
fn a_daemon_that_ends_meanwhile_costs_no_step_and_no_end_of_the_run() {
    if !has("bash") {
        return;
    }
    let runs = Runs::new();
    assert_eq!(runs.0.piton(&["daemon", "start"]).code, 0);
    let mut agent = runs.start("echo up; read go; printf x >made; bash -c 'rm kept made'; exit 0\n");
    // One that was too busy to greet in time was not asked.
    runs.0.piton(&["daemon", "stop"]);
    agent.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(0));
    assert_eq!((runs.recovered("kept"), runs.recovered("made")), ("from before".to_owned(), "x".to_owned()));
    let runs_now = runs.0.piton(&["runs", "--json"]).json();
    assert_eq!(runs_now["runs"][0]["status"], json!("completed"), "{runs_now}");
}

#[test]
fn without_a_place_for_checkpoints_the_agent_runs_unless_the_settings_hold_it() {
    let runs = Runs::new();
    std::fs::write(runs.0.root().join("file"), "").unwrap();
    let run = |runs: &Runs| {
        let mut command = runs.command(&["echo", "ran"]);
        command.env("PITON_HOME", runs.0.root().join("file/none")).output().unwrap()
    };
    let output = run(&runs);
    assert!(output.status.success() && output.stdout == b"ran\n", "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("NOT GUARDED"), "{output:?}");
    runs.0.set("on_failure: hold\n");
    let output = run(&runs);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn a_run_within_a_run_knows_its_parent() {
    let runs = Runs::new();
    let piton = env!("CARGO_BIN_EXE_piton");
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": runs.0.work, "tool_name": "Bash",
        "tool_input": { "command": "rm kept" }, "tool_use_id": "u" });
    std::fs::write(runs.0.root().join("payload"), payload.to_string()).unwrap();
    let hook = format!("{piton} hook claude-code PreToolUse <../payload >/dev/null");
    let agent = runs.script(&format!("{piton} run -q --name inner true\n{hook}\n"));
    assert!(runs.command(&["-q", "--name", "outer", &agent]).status().unwrap().success());
    assert_eq!(runs.run_of("inner")["parent"], json!("outer"));
    assert_eq!(runs.run_of("claude-code.s")["parent"], json!("outer"));
    assert_eq!(runs.run_of("outer")["status"], json!("completed"));
}

#[test]
fn the_end_of_a_run_says_how_to_undo_it() {
    let runs = Runs::new();
    let agent = runs.script("rm kept\n");
    let output = runs.command(&["--name", "work", "--", &agent]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("to undo its changes, run `piton undo --run work --include likely`"), "{said}");
    let turns = runs.0.piton(&["turns", "--run", "work", "--json"]).json();
    assert_eq!((&turns["turns"][0]["run"], &turns["turns"][0]["open"]), (&"work".into(), &false.into()), "{turns}");
    let diff = runs.0.piton(&["diff", "--turn", "--run", "work", "--stat"]);
    assert!(diff.code == 0 && diff.stdout.contains("kept  (deleted"), "{diff:?}");
    let undone = runs.0.piton(&["undo", "--run", "work", "--include", "likely", "--yes"]);
    assert_eq!((undone.code, runs.0.read("kept").as_str()), (0, "from before"), "{undone:?}");
}
