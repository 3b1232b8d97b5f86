//! Recorded transcripts of the protocol and of every verb: a reshape of the code that changes an answer shows it here.
//!
//! A transcript (`tests/data/golden/*.txt`) has four sorts of steps, and what each was answered in the lines below it, which
//! begin with two spaces:
//!
//! - `! SCRIPT` runs a script in the workspace. Its output does not count.
//! - `> JSON` sends a request to a sidecar of the workspace, once the sidecar is at rest; its reply. A line that is no JSON is
//!   sent as it stands; the error that comes without an `id`.
//! - `% CLIENT EVENT PAYLOAD` answers a client's hook without a daemon; `{W}` in the payload is the workspace.
//! - `$ COMMAND` runs a shell command in the workspace, in which `piton` is the built binary; its exit code, if not 0, and its
//!   output.
//!
//! Ids, numbers of checkpoints, times, durations, sizes of the store, and directories are replaced by names. `PITON_RECORD=1` writes the files anew: the
//! difference that git shows then is the list of the answers that a change has changed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::support::{Lab, Output, Sidecar, WAIT};

/// Replaces what differs between two runs.
struct Names {
    places: Vec<(String, &'static str)>,
    ids: BTreeSet<String>,
    patterns: Vec<(Regex, &'static str)>,
    hex: Regex,
}

impl Names {
    fn new(lab: &Lab) -> Names {
        let place = |path: &Path, name| (path.display().to_string(), name);
        let pattern = |text: &str, name| (Regex::new(text).unwrap(), name);
        Names {
            places: vec![
                place(Path::new(program()), "/PITON"),
                place(&lab.work, "/W"),
                place(&lab.home, "/H"),
                place(&lab.root(), "/L"),
            ],
            ids: BTreeSet::new(),
            patterns: vec![
                pattern(r"Looked: \d+", "Looked: TIME"),
                pattern(r"\bt1\d{12}\b", "TURN"),
                pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "TIME"),
                pattern(r"\d{8}[T-]?\d{6}-[0-9a-z]+", "MADE"),
                pattern(r"\b\d\d:\d\d(:\d\d)?\b", "TIME"),
                pattern(r"\b(just now|\d+ (s|seconds?|min|minutes?) ago)\b", "AGO"),
                pattern(r"\b\d+(\.\d+)? (ms|µs|s)\b", "SPAN"),
                pattern(r#""(n|line|ms|pid|events|[a-z]+_us)":( ?)[0-9.]+"#, r#""$1":${2}0"#),
                pattern(r"\bpid \d+", "pid PID"),
                // The watcher warms up while the base capture runs: which of them comes first hangs on the clock.
                pattern(r#"("baseline":"running".*"watcher":)"(cold|warm)""#, r#"$1"cold""#),
                pattern(r"(?i)\b(checkpoint|restore|rollback)( --yes)? #?\d+\b", "$1$2 N"),
                pattern(r"(?m)(^|\\n) +\d+  ([0-9a-f]{7,})", "$1 N  $2"),
                pattern(r"(?m)(^|\\n) +\d+  AGO +", "$1 N  AGO  "),
                // There is no small program of git's door on each machine.
                pattern(r#"\[ -x '[^']*' \] && exec '[^']*/piton-git-hook-[^']*' git-door fsmonitor \\"\$@\\"; "#, ""),
            ],
            hex: Regex::new(r"\b[0-9a-f]{7,64}\b").unwrap(),
        }
    }

    /// Notes the whole ids of `text`, by which short ones are known.
    fn learn(&mut self, text: &str) {
        for found in self.hex.find_iter(text).filter(|found| found.len() >= 32) {
            self.ids.insert(found.as_str().to_owned());
        }
    }

    fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (place, name) in &self.places {
            text = text.replace(place, name);
        }
        for (pattern, name) in &self.patterns {
            text = pattern.replace_all(&text, *name).into_owned();
        }
        // Names count within one answer: a checkpoint more, or one that no answer shows, changes nothing in the next.
        let mut shown: Vec<String> = Vec::new();
        let named = |found: &Captures| {
            let hex = &found[0];
            match self.ids.range(hex.to_owned()..).next() {
                Some(id) if id.starts_with(hex) => {
                    let at = shown.iter().position(|other| other == id).unwrap_or_else(|| {
                        shown.push(id.clone());
                        shown.len() - 1
                    });
                    format!("ID{}{}", at + 1, if id == hex { "" } else { "~" })
                }
                _ if hex.bytes().all(|byte| byte.is_ascii_digit()) => hex.to_owned(),
                _ => "HEX".to_owned(),
            }
        };
        // A short id of digits alone is printed with `id:`.
        self.hex.replace_all(&text, named).replace("id:ID", "ID")
    }
}

/// A client process that runs the hooks, so that the programs of other tests do not count as its actions.
struct HookRunner {
    shell: Child,
    done: BufReader<ChildStdout>,
}

impl HookRunner {
    fn start(lab: &Lab) -> HookRunner {
        // A shell that was given no command is a client for piton.
        let mut shell = lab.command("/bin/sh", &lab.work);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let done = BufReader::new(shell.stdout.take().unwrap());
        HookRunner { shell, done }
    }

    /// Runs a hook with a payload, and waits for its end.
    fn run(&mut self, lab: &Lab, hook: &str, payload: &str) -> Output {
        let file = |name: &str| lab.root().join(format!("hook-{name}"));
        std::fs::write(file("in"), payload).unwrap();
        let [input, out, err] = ["in", "out", "err"].map(|name| file(name).display().to_string());
        let line = format!("{} hook {hook} --no-daemon <'{input}' >'{out}' 2>'{err}'\necho $?\n", program());
        self.shell.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let mut code = String::new();
        self.done.read_line(&mut code).unwrap();
        let read = |file: String| std::fs::read_to_string(file).unwrap();
        Output { code: code.trim().parse().unwrap(), stdout: read(out), stderr: read(err) }
    }
}

impl Drop for HookRunner {
    fn drop(&mut self) {
        // The shell ends with its input. A failure here would hide the one that the test reports.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_piton")
}

/// A workspace in which a transcript is played.
struct Stage {
    hooks: HookRunner,
    lab: Lab,
    bin: PathBuf,
    names: Names,
    sidecar: Option<Sidecar>,
}

impl Stage {
    fn new() -> Stage {
        let lab = Lab::new();
        let bin = lab.bin();
        let names = Names::new(&lab);
        Stage { hooks: HookRunner::start(&lab), lab, bin, names, sidecar: None }
    }

    /// Waits until the sidecar's base capture is there, and its watcher: what it answers then does not hang
    /// on the clock.
    fn rest(&mut self) -> &mut Sidecar {
        let sidecar = self.sidecar.get_or_insert_with(|| Sidecar::start(&self.lab, &[]));
        let until = Instant::now() + WAIT;
        loop {
            let status = sidecar.ask(json!({"type": "status"}));
            let watches = status["watcher"] != "cold" || status["workspace"]["scope"] != "tree";
            if status["baseline"] == "none" || status["baseline"] == "ready" && watches {
                return sidecar;
            }
            assert!(Instant::now() < until, "the sidecar is never at rest: {status}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn request(&mut self, line: &str) -> String {
        let sidecar = self.rest();
        let answer = match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() && value.get("id").is_none() => {
                let mut reply = sidecar.ask(value);
                reply.as_object_mut().unwrap().remove("id");
                reply
            }
            _ => {
                sidecar.send_raw(format!("{line}\n").as_bytes());
                sidecar.notice(|value| value["type"] == "error")
            }
        };
        if line.contains("\"shutdown\"") {
            self.sidecar.take().unwrap().wait();
        }
        let text = answer.to_string();
        self.names.learn(&text);
        self.names.apply(&text)
    }

    fn run(&mut self, command: &str) -> String {
        let mut shell = self.lab.command("/bin/sh", &self.lab.work);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin.display());
        let output = shell.env("PATH", path).args(["-c", command]).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.told(Output {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    fn hook(&mut self, line: &str) -> String {
        let (client, rest) = line.split_once(' ').unwrap();
        let (event, payload) = rest.split_once(' ').unwrap();
        let payload = payload.replace("{W}", self.lab.work.to_str().unwrap());
        let output = self.hooks.run(&self.lab, &format!("{client} {event}"), &payload);
        self.told(output)
    }

    /// The exit code, if it is not 0, and the output of a command.
    fn told(&mut self, output: Output) -> String {
        let mut text = String::new();
        if output.code != 0 {
            text = format!("exit {}\n", output.code);
        }
        text.push_str(&output.stdout);
        for line in output.stderr.lines() {
            text.push_str(&format!("stderr: {line}\n"));
        }
        // Texts have short ids: the whole ones are learned first.
        let all = self.lab.piton(&["list", "--all", "--json"]);
        self.names.learn(&all.stdout);
        self.names.learn(&text);
        self.names.apply(&text)
    }

    /// The transcript as it is played now.
    fn play(&mut self, transcript: &str) -> String {
        let mut played = String::new();
        for line in transcript.lines().filter(|line| !line.starts_with("  ")) {
            played.push_str(&format!("{line}\n"));
            let answer = match line.split_at_checked(2) {
                Some(("! ", script)) => {
                    if self.sidecar.is_some() {
                        // The worker runs this request after the end of a turn, so the script changes nothing in that turn.
                        self.rest().ask(json!({"type": "checkpoint.diff", "from": "latest"}));
                    }
                    self.lab.sh(script);
                    continue;
                }
                Some(("> ", request)) => self.request(request),
                Some(("% ", hook)) => self.hook(hook),
                Some(("$ ", command)) => self.run(command),
                _ => continue,
            };
            for line in answer.lines() {
                played.push_str(&format!("  {line}\n"));
            }
        }
        played
    }
}

fn golden(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden").join(name);
    let recorded = std::fs::read_to_string(&file).unwrap();
    if std::env::var_os("PITON_RECORD").is_some() {
        std::fs::write(&file, Stage::new().play(&recorded)).unwrap();
        return;
    }
    let played = Stage::new().play(&recorded);
    let mut others = Vec::new();
    let (mut step, mut at) = (String::new(), 0);
    let (recorded, played): (Vec<&str>, Vec<&str>) = (recorded.lines().collect(), played.lines().collect());
    while at < recorded.len().max(played.len()) && others.len() < 20 {
        let (was, is) = (recorded.get(at).copied().unwrap_or(""), played.get(at).copied().unwrap_or(""));
        if !was.starts_with("  ") {
            step = was.to_owned();
        }
        if was != is {
            others.push(format!("{}: {step}\n   was {was}\n   is  {is}", at + 1));
        }
        at += 1;
    }
    assert!(others.is_empty(), "{name}: answers differ; PITON_RECORD=1 records them anew:\n{}", others.join("\n"));
}

#[test]
fn the_protocol_answers_as_recorded() {
    golden("protocol.txt");
}

#[test]
fn actions_are_answered_as_recorded() {
    golden("actions.txt");
}

#[test]
fn verbs_answer_as_recorded() {
    golden("verbs.txt");
}

#[test]
fn hooks_answer_as_recorded() {
    golden("hooks.txt");
}
