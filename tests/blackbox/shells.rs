//! `piton init SHELL` in real shells on a pseudo-terminal, beside other tools' hooks.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use crate::support::{Lab, WAIT, lacking, pseudo_terminal};

/// An interactive shell, with a person at its terminal.
pub(crate) struct Typist {
    pub lab: Lab,
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// Numbers the lines.
    typed: usize,
}

pub(crate) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The startup file of each shell; `@INIT@` stands for piton's line, between hooks of other tools.
fn startup(shell: &str, init: &str) -> String {
    let template = match shell {
        "bash" => {
            r"
PS1='> '; HISTCONTROL=ignoreboth
PROMPT_COMMAND='before_status=$?'
__taken() { printf ''; }
PS0='${TAKEN:$((TAKEN=1$(__taken),0)):0}'
TAKEN=0
trap 'debugged=1' DEBUG
@INIT@
PROMPT_COMMAND+=$'\nafter_status=$?'
alias gone='rm -rf'
"
        }
        "zsh" => {
            r"
PS1='> '; unsetopt prompt_cr prompt_sp
autoload -Uz add-zsh-hook
other_preexec() { other_line=$1 }
other_precmd() { before_status=$? }
add-zsh-hook preexec other_preexec; add-zsh-hook precmd other_precmd
@INIT@
later_precmd() { after_status=$? }
add-zsh-hook precmd later_precmd
alias gone='rm -rf'
"
        }
        _ => {
            r"
function fish_prompt; echo '> '; end
function other --on-event fish_preexec; set -g other_line $argv; end
@INIT@
function later --on-event fish_postexec; set -g after_status $status; end
alias gone='rm -rf'
"
        }
    };
    template.replace("@INIT@", init)
}

/// The line that a person adds for piton.
fn added(shell: &str, program: &str) -> String {
    match shell {
        "fish" => format!("'{program}' init fish | source"),
        _ => format!("eval \"$('{program}' init {shell})\""),
    }
}

impl Typist {
    /// Starts a shell; `None`, said aloud, where the machine lacks it.
    fn start(shell: &str) -> Option<Typist> {
        Typist::with(shell, Lab::new(), &added(shell, env!("CARGO_BIN_EXE_piton")))
    }

    fn with(shell: &str, lab: Lab, init: &str) -> Option<Typist> {
        // As on a machine where some hook has started it: a line waits for none that is just starting.
        assert_eq!(lab.piton(&["daemon", "start"]).code, 0);
        let text = startup(shell, init);
        let mut command = lab.command(shell, &lab.work);
        match shell {
            "bash" => {
                std::fs::write(lab.home.join("rc"), text).unwrap();
                command.args(["--noprofile", "--rcfile"]).arg(lab.home.join("rc")).arg("-i");
            }
            "zsh" => {
                std::fs::write(lab.home.join(".zshrc"), text).unwrap();
                command.env("ZDOTDIR", &lab.home).args(["-d", "-i"]);
            }
            _ => {
                std::fs::create_dir_all(lab.home.join("config/fish")).unwrap();
                std::fs::write(lab.home.join("config/fish/config.fish"), text).unwrap();
                command.arg("-i");
            }
        }
        let mut typist = Typist::at(shell, lab, command)?;
        typist.run("echo ready");
        Some(typist)
    }

    /// Starts a program on a terminal; `None`, said aloud, where the machine lacks it.
    pub(crate) fn at(name: &str, lab: Lab, mut command: Command) -> Option<Typist> {
        let (person, program) = pseudo_terminal();
        command.env("TERM", "dumb").stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap());
        command.stderr(Stdio::from(program));
        // SAFETY: both are single system calls, which may be made between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() == -1 || libc::ioctl(0, libc::TIOCSCTTY, 0) == -1 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let Ok(child) = command.spawn() else {
            lacking(name);
            return None;
        };
        drop(command);
        let keyboard = File::from(person);
        let mut terminal = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = terminal.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Typist { lab, child, keyboard, screen, typed: 0 })
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text stands on the screen, and returns all that came.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let mut shown = Vec::new();
        loop {
            let all = String::from_utf8_lossy(&shown).into_owned();
            if all.contains(text) {
                return all;
            }
            match self.screen.recv_timeout(WAIT) {
                Ok(bytes) => shown.extend(bytes),
                Err(error) => panic!("`{text}` did not come ({error}): {all}"),
            }
        }
    }

    /// Types a line, and returns what it wrote. The quotes keep the echo of the second line from being taken for its output.
    pub(crate) fn run(&mut self, line: &str) -> String {
        self.typed += 1;
        let typed = self.typed;
        self.press(&format!("{line}\necho do''ne{typed}\n"));
        self.until(&format!("done{typed}"))
    }

    /// The value of an expression in the shell, between marks.
    fn value(&mut self, expression: &str) -> String {
        let shown = self.run(&format!("echo va''lue={expression}=end"));
        let from = shown.find("value=").unwrap_or_else(|| panic!("{shown}")) + "value=".len();
        shown[from..].split("=end").next().unwrap().to_owned()
    }

    fn turns(&self) -> Vec<String> {
        let listed = self.lab.piton(&["turns", "--json"]).json();
        let name = |turn: &serde_json::Value| turn["turn"].as_str().unwrap().to_owned();
        listed["turns"].as_array().unwrap().iter().map(name).collect()
    }

    /// Waits until the turn of a line is written down: on a machine that is busy, the shell goes on before that. There has to be
    /// one of it.
    pub(crate) fn await_turn(&self, line: &str) {
        let until = Instant::now() + WAIT;
        loop {
            let turns = self.turns();
            let found = turns.iter().filter(|turn| turn.ends_with(line)).count();
            if found > 0 || Instant::now() > until {
                assert_eq!(found, 1, "{line}: {turns:?}");
                return;
            }
        }
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.lab.piton(&["daemon", "stop"]);
    }
}

/// Has a person delete a directory and take that back. `false` where the machine was too busy for the watcher to tell in time
/// which of the changes are the line's: then they are kept and listed.
fn is_undone(shell: &str, person: &mut Typist) -> bool {
    person.lab.write("x/a", "a");
    person.lab.write("x/b/c", "c");
    assert!(!person.run("ls").contains("piton"), "{shell}");
    let said = person.run("rm -rf x");
    assert!(!person.lab.work.join("x").exists(), "{shell}: {said}");
    person.await_turn("rm -rf x");
    let undone = person.lab.piton(&["undo", "--yes"]);
    if undone.stdout.contains("(touched: ") {
        return false;
    }
    assert_eq!((undone.code, person.lab.read("x/b/c")), (0, "c".to_owned()), "{shell}: {undone:?}");
    true
}

#[test]
fn the_damage_of_a_line_is_undone() {
    for shell in SHELLS {
        let undone = (0..10).find_map(|_| {
            let mut person = Typist::start(shell)?;
            is_undone(shell, &mut person).then_some(person)
        });
        let Some(mut person) = undone else {
            assert!(Typist::start(shell).is_none(), "{shell}: the damage was not undone in any of 10 attempts");
            continue;
        };
        // The run is the shell's own, and named so.
        let runs = person.lab.piton(&["runs", "--json"]).json();
        assert!(runs["runs"].to_string().contains(&format!("\"client\":\"{shell}\"")), "{shell}: {runs}");
        // Effects that files do not undo are said in one line, before it runs.
        let said = person.run("command -v psql; psql -c 'drop table x' </dev/null 2>/dev/null");
        assert!(said.contains("piton: `psql` might change a database"), "{shell}: {said}");
    }
}

#[test]
fn the_damage_of_a_line_in_the_home_directory_is_undone() {
    for shell in SHELLS {
        let Some(mut person) = Typist::start(shell) else { continue };
        let lost = person.lab.home.join("x/b/c");
        std::fs::create_dir_all(lost.parent().unwrap()).unwrap();
        std::fs::write(&lost, "c").unwrap();
        person.run("cd");
        person.run("rm -rf x");
        assert!(!person.lab.home.join("x").exists(), "{shell}");
        let said = person.run(&format!("'{}' undo --yes", env!("CARGO_BIN_EXE_piton")));
        assert!(said.contains("Undid turn `") && said.contains(": rm -rf x`"), "{shell}: {said}");
        assert_eq!(std::fs::read_to_string(&lost).unwrap(), "c", "{shell}: {said}");
    }
}

#[test]
fn an_alias_is_seen_through() {
    for shell in SHELLS {
        let Some(mut person) = Typist::start(shell) else { continue };
        person.lab.write("x/a", "a");
        person.run("gone x");
        // zsh tells of the line with its aliases expanded.
        person.await_turn(" x");
        assert!(!person.lab.work.join("x").exists(), "{shell}");
    }
}

#[test]
fn a_line_that_the_history_leaves_out_is_guarded() {
    let Some(mut person) = Typist::start("bash") else { return };
    person.lab.write("a", "a");
    person.run("psql -c 'drop table x' </dev/null 2>/dev/null");
    // With HISTCONTROL=ignoreboth bash tells of neither: the second may be the first again.
    let said = person.run(" rm a");
    assert!(!person.lab.work.join("a").exists() && !said.contains("psql"), "{said}");
    // Its checkpoint holds the file.
    assert_eq!(person.lab.piton(&["recover", "a", "--yes"]).code, 0);
    assert_eq!(person.lab.read("a"), "a");
}

#[test]
fn the_shell_itself_is_untouched() {
    for shell in SHELLS {
        let Some(mut person) = Typist::start(shell) else { continue };
        let status = if shell == "fish" { "$status" } else { "$?" };
        person.run("rm nothing-here");
        // The status that a person sees, and the one that other tools' hooks see, before and behind piton's.
        person.press("rm nothing-here\n");
        assert_eq!(person.value(status), "1", "{shell}");
        if shell == "bash" {
            assert_eq!(person.value("$debugged"), "1");
            assert!(person.run("trap -p DEBUG").contains("debugged=1"));
            assert!(person.value("$TAKEN").starts_with('1'));
            // A trap of that kind takes `$_` away by itself.
            person.run("trap - DEBUG");
        }
        if shell != "fish" {
            person.press("rm nothing-here\n");
            // In bash the first hook's own assignment is what the last one sees, with piton and without.
            let seen = if shell == "bash" { "1.0" } else { "1.1" };
            assert_eq!(person.value("$before_status.$after_status"), seen, "{shell}");
            person.press("true one two\n");
            assert_eq!(person.value("$_"), "two", "{shell}");
            person.press("rm -f one three\n");
            assert_eq!(person.value("$_"), "three", "{shell}");
            person.run("set -eu");
            person.run("rm -f nothing-here; ! true");
            person.run("ls nothing-here || :");
            assert_eq!(person.value("$-").replace(|c| c != 'e' && c != 'u', "").len(), 2, "{shell}");
        }
        // Evaluated twice, it asks once.
        let again = added(shell, env!("CARGO_BIN_EXE_piton"));
        person.run(&again);
        person.lab.write("y", "y");
        person.run("rm y");
        person.await_turn("rm y");
    }
}

#[test]
fn without_piton_the_shell_says_nothing_and_notes_what_it_ran() {
    for shell in SHELLS {
        let lab = Lab::new();
        let program = lab.home.join("piton here");
        // No copy: another test's child could hold it open for writing for a moment, and it could not be run.
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_piton"), &program).unwrap();
        let Some(mut person) = Typist::with(shell, lab, &added(shell, program.to_str().unwrap())) else { continue };
        person.lab.write("x", "x");
        person.run("rm x");
        person.await_turn("rm x");
        std::fs::remove_file(&program).unwrap();
        person.lab.write("x", "x");
        let said = person.run("rm x");
        assert!(!person.lab.work.join("x").exists(), "{shell}");
        assert!(!said.contains("piton") && !said.contains("not found"), "{shell}: {said}");
        let status = if shell == "fish" { "$status" } else { "$?" };
        assert_eq!(person.value(status), "0", "{shell}: {said}");
        person.run("ls");
        let listed = person.lab.piton(&["status", "--json"]).json();
        let lines: Vec<&str> =
            listed["unguarded"].as_array().unwrap().iter().map(|one| one["command"].as_str().unwrap()).collect();
        // A line that only reads leaves no note; printing a variable is one that may do more.
        assert!(!lines.is_empty() && lines.iter().all(|line| *line == format!("{shell} line")), "{shell}: {lines:?}");
    }
}

#[test]
fn a_denied_line_does_not_run_where_the_shell_allows() {
    for shell in SHELLS {
        let lab = Lab::new();
        lab.set("policy: {file-delete: deny}\n");
        let Some(mut person) = Typist::with(shell, lab, &added(shell, env!("CARGO_BIN_EXE_piton"))) else { continue };
        person.lab.write("x", "x");
        person.press("rm x; echo ra''n\n");
        let said = person.run("true");
        let stays = person.lab.work.join("x").exists();
        assert_eq!((stays, said.contains("ran")), (shell != "fish", shell == "fish"), "{shell}: {said}");
        assert!(said.contains("the policy denies"), "{shell}: {said}");
        // The next line runs as ever.
        assert!(person.run("echo o''k").contains("ok"), "{shell}");
    }
}

#[test]
fn a_line_that_is_asked_about_waits_for_the_answer() {
    for shell in ["bash", "zsh"] {
        let lab = Lab::new();
        lab.set("policy: {file-delete: ask}\n");
        let Some(mut person) = Typist::with(shell, lab, &added(shell, env!("CARGO_BIN_EXE_piton"))) else { continue };
        person.lab.write("x", "x");
        for (answer, stays) in [("n", true), ("y", false)] {
            person.press("rm x\n");
            person.until("[y/N]");
            person.press(&format!("{answer}\n"));
            person.run("true");
            assert_eq!(person.lab.work.join("x").exists(), stays, "{shell} {answer}");
        }
    }
}

/// A shell with settings, in which a person has typed the first lines; a file `a` is there.
fn prepared(shell: &str, settings: &str, first: &[&str]) -> Option<Typist> {
    let lab = Lab::new();
    lab.set(settings);
    let mut person = Typist::with(shell, lab, &added(shell, env!("CARGO_BIN_EXE_piton")))?;
    for line in first {
        person.run(line);
    }
    person.lab.write("a", "a");
    Some(person)
}

#[test]
fn a_line_whose_text_says_too_little_is_guarded() {
    // The shell, the lines before, and the line that removes the file.
    let table: [(&str, &[&str], &str); 15] = [
        ("bash", &["HISTSIZE=0"], "rm a"),
        ("bash", &["enable -n history"], "rm a"),
        ("bash", &["PROMPT_COMMAND=true"], " rm a"),
        ("bash", &["PROMPT_COMMAND=true", "HISTIGNORE='rm *'"], "rm a"),
        ("bash", &["shopt -u cmdhist"], "rm a \\\nls"),
        ("bash", &["hash -p /bin/rm cat"], "cat a"),
        (
            "bash",
            &["export GIT_PAGER=cat; git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x"],
            "git log \"--output=a\"",
        ),
        ("bash", &["readonly LC_ALL IFS"], "rm a"),
        ("bash", &["ls() { command rm a; }"], "ls"),
        ("zsh", &["ls() { command rm a }"], "ls"),
        ("fish", &["function ls; command rm a; end"], "ls"),
        ("fish", &["function contains; true; end", "function math; end", "function string; end"], "rm a"),
        ("fish", &[], "echo rm a | source"),
        ("zsh", &["TMPPREFIX=/proc/none"], "rm a"),
        ("zsh", &["rm -f a", "cp /dev/null a"], "r rm"),
    ];
    for (shell, first, line) in table {
        let Some(mut person) = prepared(shell, "", first) else { continue };
        let said = person.run(line);
        assert_ne!(std::fs::read(person.lab.work.join("a")).ok().as_deref(), Some(&b"a"[..]), "{shell} {line}: {said}");
        let got = person.lab.piton(&["recover", "a", "--yes"]);
        assert_eq!((got.code, person.lab.read("a")), (0, "a".to_owned()), "{shell} {first:?} {line}: {said} {got:?}");
    }
}

#[test]
fn no_trap_lets_a_denied_line_run() {
    let table: [(&str, &[&str]); 8] = [
        ("bash", &["trap true INT"]),
        ("bash", &["trap '' INT"]),
        ("bash", &["set -euE; trap 'echo oops' ERR; set -T"]),
        ("bash", &["HISTTIMEFORMAT='%F %T '; readonly HISTTIMEFORMAT"]),
        ("zsh", &["trap true INT"]),
        ("zsh", &["trap '' INT"]),
        ("zsh", &["TRAPINT() { return 0 }"]),
        ("zsh", &["alias kill='kill -9'; kill() { true }"]),
    ];
    for (shell, first) in table {
        let Some(mut person) = prepared(shell, "policy: {file-delete: deny}\n", first) else { continue };
        person.press("rm a; echo ra''n\n");
        let said = person.run("true");
        assert!(person.lab.work.join("a").exists() && !said.contains("ran"), "{shell} {first:?}: {said}");
        assert!(said.contains("the line was not run"), "{shell} {first:?}: {said}");
        // The trap is the person's still.
        let kept = person.run("trap; echo en''d");
        let has = if first[0].contains("TRAPINT") { "" } else { first[0].split(['\'', ' ']).next().unwrap() };
        assert!(has != "trap" || kept.contains("INT"), "{shell} {first:?}: {kept}");
    }
}

#[test]
fn a_denied_line_does_not_run_where_piton_cannot_work() {
    for shell in ["bash", "zsh"] {
        let Some(mut person) = prepared(shell, "policy: {file-delete: deny}\n", &["mkdir q; cd q"]) else { continue };
        std::fs::remove_dir(person.lab.work.join("q")).unwrap();
        let said = person.run("rm ../a");
        assert!(person.lab.work.join("a").exists() && said.contains("the line was not run"), "{shell}: {said}");
        person.run(&format!("cd '{}'; export PITON_HOME=/dev/null", person.lab.work.display()));
        let said = person.run("rm a");
        assert!(person.lab.work.join("a").exists() && said.contains("the line was not run"), "{shell}: {said}");
    }
}

#[test]
fn keys_that_are_no_answer_keep_a_line_from_running() {
    for (shell, key) in [("bash", "\x1c"), ("bash", "\x1a"), ("zsh", "\x1a"), ("zsh", "\x03")] {
        let Some(mut person) = prepared(shell, "policy: {file-delete: ask}\n", &["trap true INT"]) else { continue };
        person.press("rm a\n");
        person.until("[y/N]");
        person.press(key);
        // Keys that come before the next prompt may be forgotten.
        person.until("> ");
        let said = person.run("jobs");
        assert!(person.lab.work.join("a").exists() && !said.contains("shell before"), "{shell} {key:?}: {said}");
    }
}

#[test]
fn traps_and_traces_do_not_see_piton() {
    let Some(mut person) = prepared("bash", "", &["trap 'echo fa''iled' ERR"]) else { return };
    person.press("false\n");
    let said = person.run("true");
    assert_eq!(said.matches("failed").count(), 1, "{said}");
    // The other tool's part of it reads what a trap writes as a number; the next prompt adds piton's part again.
    person.run("PS0=''");
    person.run("set -ET; trap 'echo de''bug' DEBUG; trap 'echo re''turned' RETURN");
    let said = person.run("rm a");
    assert!(!person.lab.work.join("a").exists() && !said.contains("returned"), "{said}");
    person.await_turn("rm a");
    person.run("trap - DEBUG RETURN ERR; set -x");
    let said = person.run("true");
    assert!(said.contains("+ true") && !said.contains("__piton"), "{said}");
    person.run("set +x");
    // A shell that only inherits the variables says nothing.
    person.run("export PROMPT_COMMAND PS0");
    let said = person.run("echo true | bash --norc -i");
    assert!(!said.contains("__piton"), "{said}");

    let Some(mut person) = prepared("zsh", "", &["TRAPZERR() { echo fa''iled }"]) else { return };
    let said = person.run("rm a");
    assert!(!said.contains("failed"), "{said}");
    person.await_turn("rm a");
    assert!(person.run("functions TRAPZERR").contains("iled"));
}

/// Has a line judged as a script does, without a terminal to ask on.
fn judge(lab: &Lab, line: &str, options: &[&str]) -> (i32, String) {
    let mut command = lab.command("setsid", &lab.work);
    command.args(["--wait", env!("CARGO_BIN_EXE_piton"), "shell", "before", "--session", "bash.1.x", "--line", "1"]);
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_line_without_a_checkpoint_is_held_where_the_settings_want_it() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.home.join("piton")).unwrap();
    std::fs::write(lab.store(), "no directory").unwrap();
    // The setting, options of the script, and its exit code: 5 is a line that is not to run.
    let table: [(&str, &[&str], i32); 3] = [("hold", &[], 5), ("hold", &["--cannot-cancel"], 0), ("proceed", &[], 0)];
    for (setting, options, code) in table {
        lab.set(&format!("on_failure: {setting}\n"));
        let (given, said) = judge(&lab, "rm a", options);
        // The cause is said once.
        assert_eq!((given, said.matches("store.git").count()), (code, 1), "{setting} {options:?}: {said}");
        assert_eq!(judge(&lab, "mkdir b", options), (0, String::new()), "{setting}");
    }
    lab.piton(&["daemon", "stop"]);
}

#[test]
fn the_scripts_are_clean() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/shell");
    let named = |ending: &str| -> Vec<std::path::PathBuf> {
        let all = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let found: Vec<_> = all.filter(|path| path.extension().is_some_and(|own| own == ending)).collect();
        assert!(!found.is_empty(), "{ending}");
        found
    };
    let of_runs = || {
        let all = std::fs::read_dir(dir.join("run-zsh")).unwrap().map(|entry| entry.unwrap().path());
        all.collect::<Vec<_>>()
    };
    let checks: [(&[&str], &str); 4] = [
        (&["shellcheck"], "bash"),
        (&["shfmt", "-i", "4", "-ci", "-d"], "bash"),
        (&["zsh", "-n"], "zsh"),
        (&["fish", "--no-execute"], "fish"),
    ];
    for (check, ending) in checks {
        let scripts = if ending == "zsh" { [named(ending), of_runs()].concat() } else { named(ending) };
        for script in scripts {
            let mut command = Command::new(check[0]);
            let Ok(output) = command.args(&check[1..]).arg(&script).output() else {
                lacking(check[0]);
                continue;
            };
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success() && said.is_empty(), "{check:?}: {said}");
        }
    }
}
