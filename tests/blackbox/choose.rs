//! Interactive choice: `piton undo -i` and `piton restore N -i`, on a real pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use super::faults::{SIGKILL, strace};
use super::support::{Lab, WAIT, mode, pseudo_terminal, tree};
use super::turns::{Agent, lab_with, redo};

/// A person at a terminal, in front of a command that takes the whole screen.
struct Person {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    sent: Vec<u8>,
}

/// Everything that a terminal shows.
#[derive(Debug, Default)]
struct Shown {
    /// The rows of the whole screen, while a program has it.
    rows: Option<Vec<String>>,
    /// The plain text before and after that.
    text: String,
}

fn piton(lab: &Lab, args: &[&str]) -> Command {
    let mut command = lab.interruptible(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.args(args);
    command
}

impl Person {
    fn at(lab: &Lab, args: &[&str], size: (u16, u16)) -> Person {
        Person::before(piton(lab, args), size)
    }

    /// Starts a command at a terminal of so many columns and rows.
    fn before(mut command: Command, size: (u16, u16)) -> Person {
        let (person, program) = pseudo_terminal();
        let keyboard = File::from(person);
        resize(&keyboard, size);
        let mut output = keyboard.try_clone().unwrap();
        command.env("TERM", "xterm");
        command.stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap()).stderr(program);
        let child = command.spawn().unwrap();
        drop(command);
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end is an error: no process has the other side any more.
            while let Ok(length) = output.read(&mut buffer) {
                if length == 0 || sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Person { child, keyboard, output: receiver, sent: Vec::new() }
    }

    /// Waits until the terminal shows something, and returns all that it shows then.
    fn sees(&mut self, is_it: impl Fn(&Shown) -> bool) -> Shown {
        loop {
            let shown = shown(&self.sent);
            if is_it(&shown) {
                return shown;
            }
            match self.output.recv_timeout(WAIT) {
                Ok(bytes) => self.sent.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended: {shown:#?}"),
                Err(RecvTimeoutError::Timeout) => panic!("nothing came: {shown:#?}"),
            }
        }
    }

    /// Waits for a row of the whole screen.
    fn sees_row(&mut self, row: &str) -> Vec<String> {
        let has_row = |shown: &Shown| shown.rows.iter().flatten().any(|one| one.contains(row));
        self.sees(has_row).rows.unwrap()
    }

    fn presses(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses keys one after another: each is pressed when the row after the last one is on the screen.
    fn goes(&mut self, way: &[(&str, &str)]) {
        for (keys, row) in way {
            self.presses(keys);
            self.sees_row(row);
        }
    }

    /// Accepts the choice, answers the question, and waits for the end.
    fn accepts(mut self, answer: &str) -> (ExitStatus, String) {
        self.presses("\r");
        self.sees(|shown| shown.rows.is_none() && shown.text.contains("[y/N]"));
        self.presses(&format!("{answer}\r"));
        self.ends()
    }

    /// Waits for the end, and returns the text outside of the whole screen. The terminal has to be as it was.
    fn ends(mut self) -> (ExitStatus, String) {
        loop {
            match self.output.recv_timeout(WAIT) {
                Ok(bytes) => self.sent.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {:#?}", shown(&self.sent)),
            }
        }
        let status = self.child.wait().unwrap();
        let shown = shown(&self.sent);
        assert!(shown.rows.is_none(), "the earlier screen is back: {shown:#?}");
        assert!(
            !self.sent.windows(6).any(|one| one == b"\x1b[?25l") || self.sent.windows(6).any(|one| one == b"\x1b[?25h")
        );
        assert!(is_plain(&self.keyboard), "the terminal has its settings again");
        (status, shown.text)
    }
}

fn resize(terminal: &File, (columns, rows): (u16, u16)) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call reads the size, which outlives it.
    assert_eq!(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
}

/// Returns true if a terminal shows what is typed and waits for whole lines.
fn is_plain(terminal: &File) -> bool {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the settings, which outlive it.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings) }, 0);
    let plain = libc::ECHO | libc::ICANON | libc::ISIG;
    settings.c_lflag & plain == plain
}

/// Shows what a program has written, as far as this terminal understands it: the sequences that piton sends.
fn shown(sent: &[u8]) -> Shown {
    let mut shown = Shown::default();
    let (mut row, mut rows): (usize, Vec<String>) = (0, Vec::new());
    let text = String::from_utf8_lossy(sent);
    let mut rest = text.as_ref();
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        if letter != '\x1b' {
            match &mut shown.rows {
                Some(_) => rows[row].push(letter),
                None => shown.text.push(letter),
            }
            continue;
        }
        // The rest of a sequence may not have come yet.
        let Some(end) = rest[1.min(rest.len())..].find(|one: char| one.is_ascii_alphabetic()) else { break };
        let (sequence, after) = rest.split_at(end + 2);
        rest = after;
        match sequence {
            "[?1049h" => (shown.rows, rows) = (Some(Vec::new()), vec![String::new(); 100]),
            "[?1049l" => shown.rows = None,
            "[2J" => rows = vec![String::new(); 100],
            "[J" => rows[row..].iter_mut().for_each(String::clear),
            "[K" => rows[row].clear(),
            _ if sequence.ends_with('H') => {
                let number = sequence.trim_matches(|one: char| !one.is_ascii_digit()).split(';').next();
                row = number.unwrap().parse::<usize>().unwrap() - 1;
            }
            _ => assert!(sequence.ends_with('m') || sequence.starts_with("[?25"), "{sequence:?}"),
        }
    }
    if let Some(shown) = &mut shown.rows {
        let last = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |at| at + 1);
        rows.truncate(last);
        *shown = rows;
    }
    shown
}

/// Forty lines, some of them changed.
fn lines(changed: &[usize]) -> String {
    (0..40).map(|n| format!("line {n}{}\n", if changed.contains(&n) { " changed" } else { "" })).collect()
}

/// A turn of an agent that changed two places and the permissions of `text`, wrote `a`, made `new/deep/file`, and deleted `b`.
fn after_a_turn() -> (Lab, Agent) {
    let lab = lab_with(&["a", "b"]);
    lab.write("text", lines(&[]));
    mode(&lab, "text", 0o644);
    let mut agent = Agent::new(&lab, "s");
    agent.start("t1");
    agent.shell(&lab, || {
        lab.write("text", lines(&[3, 30]));
        mode(&lab, "text", 0o755);
        lab.write("a", "a 1\n");
        lab.write("new/deep/file", "n\n");
        lab.sh("rm b");
    });
    agent.end();
    (lab, agent)
}

#[test]
fn an_undo_takes_back_the_chosen_files_and_hunks() {
    let (lab, _agent) = after_a_turn();
    let after = tree(&lab.work);
    let mut person = Person::at(&lab, &["undo", "-i"], (80, 24));
    let rows = person.sees_row("row 1 of 4");
    assert_eq!(rows.len(), 24, "{rows:#?}");
    assert!(rows[0].starts_with("Undo turn `t1` (t-1, tester"), "{rows:#?}");
    assert_eq!(
        rows[1..5],
        [
            "> [ ]  changed a  (likely)",
            "  [ ]  deleted b  (likely)",
            "  [ ]  new     new/deep/file  (likely)",
            "  [ ]  changed text  (likely)",
        ]
    );
    assert_eq!(
        rows[22..],
        ["↑↓ move · space choose · a all · → open · ← close · PgUp PgDn text", "enter continue · q quit"]
    );
    person.goes(&[
        ("jj ", "> [x]  new     new/deep/file"),
        ("\x1b[B", "> [ ]+ changed text  (likely, 0 of 3 parts)"),
        ("\x1b[C\x1b[B", ">     [ ] @@ -1,7 +1,7 @@"),
        (" ", ">     [x] @@ -1,7 +1,7 @@"),
    ]);
    let rows = person.sees_row("+line 3 changed");
    assert!(rows.iter().any(|row| row == "-line 3") && !rows.iter().any(|row| row.contains("line 30")), "{rows:#?}");
    assert!(rows.iter().any(|row| row == "      [ ] permissions 0644, now 0755"), "{rows:#?}");
    assert_eq!(tree(&lab.work), after, "choosing changes nothing");
    let (status, text) = person.accepts("y");
    assert_eq!(status.code(), Some(0), "{text}");
    assert_eq!((lab.read("text"), lab.read("a")), (lines(&[30]), "a 1\n".to_owned()), "{text}");
    assert_eq!(std::fs::metadata(lab.work.join("text")).unwrap().mode() & 0o777, 0o755, "{text}");
    assert!(!lab.work.join("new").exists() && !lab.work.join("b").exists(), "{text}");
    redo(&lab);
    assert_eq!(tree(&lab.work), after);
    // The permissions and the other hunk, and the deleted file; then the rest.
    let mut person = Person::at(&lab, &["undo", "-i"], (60, 20));
    person.sees_row("row 1 of 4");
    person.goes(&[
        ("j ", "> [x]  deleted b"),
        ("jjl", "-  changed text".trim_start_matches("-  ")),
        ("G ", ">     [x] permissions 0644, now 0755"),
        ("k ", ">     [x] @@ -28,7 +28,7 @@"),
    ]);
    let (status, text) = person.accepts("y");
    assert_eq!((status.code(), lab.read("text"), lab.read("b")), (Some(0), lines(&[3]), "b 0\n".to_owned()), "{text}");
    assert_eq!(std::fs::metadata(lab.work.join("text")).unwrap().mode() & 0o777, 0o644, "{text}");
    let between = tree(&lab.work);
    redo(&lab);
    assert_eq!(tree(&lab.work), after);
    let again = lab.piton(&["undo", "--yes", "--include=likely", "--turn", "t-1"]);
    assert_eq!((again.code, lab.read("text"), lab.read("a")), (0, lines(&[]), "a 0\n".to_owned()), "{again:?}");
    assert_ne!(tree(&lab.work), between);
    redo(&lab);
    assert_eq!(tree(&lab.work), after);
}

/// A checkpoint, and after it a change of every kind.
fn after_a_checkpoint() -> (Lab, u64) {
    let lab = lab_with(&["gone/deep/x", "whole", "kind", "run.sh"]);
    lab.write("text", lines(&[]));
    lab.write("binary", [0, 159, 146, 150]);
    symlink("whole", lab.work.join("link")).unwrap();
    let number = lab.take("before");
    lab.write("text", lines(&[3, 20, 36]));
    lab.write("binary", [1, 0, 2]);
    lab.write("whole", "whole 1\n");
    lab.write("made/one", "1\n");
    lab.write("made/two", "2\n");
    mode(&lab, "run.sh", 0o700);
    lab.sh("rm -r gone; rm link; ln -s nowhere link; rm kind; mkdir -p kind/in; echo k > kind/k; mkdir empty");
    (lab, number)
}

#[test]
fn a_restore_brings_back_the_chosen_changes_exactly() {
    let (lab, number) = after_a_checkpoint();
    let before = tree(&lab.work);
    let mut person = Person::at(&lab, &["restore", &number.to_string(), "-i"], (80, 24));
    person.sees_row("row 1 of 10");
    person.goes(&[
        (" ", "> [x]  changed binary"),
        ("jj", "> [ ]  deleted gone/deep/x"),
        (" ", "> [x]  deleted gone/deep/x"),
        ("j ", "> [x]  changed kind  (directory)"),
        ("j ", "> [x]  changed link  (link)"),
        ("jj ", "> [x]  new     made/two"),
        ("j ", "> [x]  changed run.sh"),
        ("jl", "-  changed text".trim_start_matches("-  ")),
        ("jj ", ">     [x] @@ -18,7 +18,7 @@"),
    ]);
    let (status, text) = person.accepts("y");
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(
        text.contains(&format!("Restore checkpoint {number}")),
        "it is named as the plain command names it: {text}"
    );
    let mut expected = before.clone();
    let mut put = |path: &str, state| drop(expected.insert(path.into(), state));
    put("binary", ('f', 0o644, vec![0, 159, 146, 150]));
    put("gone", ('d', 0o755, Vec::new()));
    put("gone/deep", ('d', 0o755, Vec::new()));
    put("gone/deep/x", ('f', 0o644, b"gone/deep/x 0\n".to_vec()));
    put("kind", ('f', 0o644, b"kind 0\n".to_vec()));
    put("link", ('l', 0, b"whole".to_vec()));
    put("run.sh", ('f', 0o644, b"run.sh 0\n".to_vec()));
    put("text", ('f', 0o644, lines(&[3, 36]).into_bytes()));
    ["kind/in", "kind/k", "made/two"].iter().for_each(|path| drop(expected.remove(std::path::Path::new(path))));
    assert_eq!(tree(&lab.work), expected, "{text}");
    for _ in 0..2 {
        assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
        assert_eq!(tree(&lab.work), before);
        assert_eq!(lab.piton(&["redo", "--yes"]).code, 0);
        assert_eq!(tree(&lab.work), expected);
    }
    // A part of that restore is undone with -i too, and the rest by the plain command.
    let mut person = Person::at(&lab, &["undo", "-i"], (80, 24));
    person.sees_row("row 1 of 7");
    person.goes(&[("G", "> [ ]  changed text"), (" ", "> [x]  changed text")]);
    let (status, text) = person.accepts("y");
    assert_eq!(
        (status.code(), lab.read("text"), lab.read("kind")),
        (Some(0), lines(&[3, 20, 36]), "kind 0\n".to_owned()),
        "{text}"
    );
    for _ in 0..2 {
        assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    }
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn the_version_of_a_single_path_is_chosen_from_too() {
    let lab = lab_with(&["other"]);
    lab.write("text", lines(&[]));
    lab.take("before");
    lab.write("text", lines(&[3, 30]));
    lab.write("other", "other 1\n");
    let mut person = Person::at(&lab, &["restore", "text", "-i"], (80, 24));
    person.sees_row("row 1 of 3");
    person.goes(&[("G ", ">     [x] @@ -28,7 +28,7 @@")]);
    let (status, text) = person.accepts("y");
    assert_eq!(
        (status.code(), lab.read("text"), lab.read("other")),
        (Some(0), lines(&[3]), "other 1\n".to_owned()),
        "{text}"
    );
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(lab.read("text"), lines(&[3, 30]));
}

#[test]
fn leaving_changes_nothing_and_restores_the_terminal() {
    let (lab, number) = after_a_checkpoint();
    let before = tree(&lab.work);
    let refs = || lab.store_git(&["for-each-ref"]);
    let (known, number) = (refs(), number.to_string());
    let start = || {
        let mut person = Person::at(&lab, &["restore", &number, "-i"], (80, 24));
        person.sees_row("row 1 of 10");
        assert!(!is_plain(&person.keyboard));
        person.goes(&[("G", "changed whole"), ("kl", "[ ] @@"), ("j ", "[x] @@")]);
        person
    };
    for (keys, code) in [("q", 5), ("\x04", 5), ("\x03", 130)] {
        let mut person = start();
        person.presses(keys);
        let (status, text) = person.ends();
        assert_eq!((status.code(), tree(&lab.work)), (Some(code), before.clone()), "{keys:?}: {text}");
        assert!(text.contains("Nothing was changed."), "{text}");
    }
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        let person = start();
        let id = libc::pid_t::try_from(person.child.id()).unwrap();
        // SAFETY: the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
        let (status, text) = person.ends();
        assert_eq!((status.signal(), tree(&lab.work)), (Some(signal), before.clone()), "{text}");
    }
    // The answer `n` to the question leaves nothing, not even a checkpoint of the chosen hunks.
    let (status, text) = start().accepts("n");
    assert_eq!((status.code(), tree(&lab.work)), (Some(5), before.clone()), "{text}");
    assert_eq!(refs(), known);
    // A signal at the question ends the process, as without -i.
    let mut person = start();
    person.presses("\r");
    person.sees(|shown| shown.text.contains("[y/N]"));
    // SAFETY: the process is a child that was not waited for.
    assert_eq!(unsafe { libc::kill(libc::pid_t::try_from(person.child.id()).unwrap(), libc::SIGINT) }, 0);
    assert_eq!((person.ends().0.signal(), tree(&lab.work)), (Some(libc::SIGINT), before.clone()));
}

#[test]
fn a_terminal_that_hangs_up_ends_the_choice() {
    let (lab, number) = after_a_checkpoint();
    let before = tree(&lab.work);
    let (person, program) = pseudo_terminal();
    let mut command = piton(&lab, &["restore", &number.to_string(), "-i"]);
    command.env("TERM", "xterm");
    command.stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap()).stderr(program);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut screen, mut sent, mut buffer) = (File::from(person), Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&sent).contains("row 1 of 10") {
        let length = screen.read(&mut buffer).unwrap();
        sent.extend_from_slice(&buffer[..length]);
    }
    // It is not the terminal that controls the process, so no signal comes with its end.
    drop(screen);
    let until = Instant::now() + WAIT;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(Instant::now() < until, "it does not end"),
        }
        std::thread::yield_now();
    };
    assert_eq!((status.code(), tree(&lab.work)), (Some(5), before));
}

#[test]
fn without_a_screen_the_plain_command_is_named() {
    let (lab, number) = after_a_checkpoint();
    let before = tree(&lab.work);
    let number = number.to_string();
    for (args, plain) in [
        (vec!["restore", &number, "-i"], format!("`piton restore {number}`")),
        (vec!["undo", "-i"], "`piton undo -- PATH`".to_owned()),
        (vec!["undo", "--interactive", "text"], "`piton undo`".to_owned()),
        (vec!["restore", "text", "-i"], "`piton restore text`".to_owned()),
    ] {
        let refused = lab.piton(&args);
        assert!(refused.code == 2 && refused.stderr.contains(&plain), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains("-i needs a terminal to choose on, and there is none"), "{refused:?}");
    }
    for flag in ["--yes", "--json", "--preview"] {
        assert_eq!(lab.piton(&["restore", &number, "-i", flag]).code, 2, "{flag}");
    }
    let mut command = piton(&lab, &["restore", &number, "-i"]);
    command.env("TERM", "dumb");
    let (person, program) = pseudo_terminal();
    command.stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap()).stderr(program);
    assert_eq!(command.status().unwrap().code(), Some(2));
    drop(person);
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn names_that_play_tricks_are_shown_quoted() {
    let lab = lab_with(&["plain"]);
    let names = ["\u{1b}[31mred", "two\nlines", "right\u{202e}txt.exe", "tab\there", "quote\"d"];
    lab.take("before");
    names.iter().for_each(|name| lab.write(name, "n\n"));
    std::fs::write(lab.work.join(std::ffi::OsStr::from_bytes(b"bytes\xff")), "n\n").unwrap();
    lab.write("plain", "plain\u{1b}]0;title\u{7} \u{202e}0\n");
    let mut person = Person::at(&lab, &["restore", "latest", "-i"], (80, 24));
    let rows = person.sees_row("row 1 of 7");
    for quoted in [
        r#""\033[31mred""#,
        r#""two\nlines""#,
        r#""right\342\200\256txt.exe""#,
        r#""tab\there""#,
        r#""quote\"d""#,
        r#""bytes\377""#,
    ] {
        assert!(rows.iter().any(|row| row.ends_with(&format!(" {quoted}"))), "{quoted}: {rows:#?}");
    }
    person.goes(&[("a", "Chosen: 7 of 7"), ("j", "row 2 of 7"), ("j", "row 3 of 7"), ("j", "row 4 of 7")]);
    person.goes(&[("/j", "row 5 of 7"), ("j", "row 6 of 7"), ("j", "row 7 of 7")]);
    let sent = String::from_utf8_lossy(&person.sent).into_owned();
    for trick in ["\u{1b}[31mred", "\u{202e}", "\u{1b}]0", "\u{7}"] {
        assert!(!sent.contains(trick), "{trick:?}: {sent:?}");
    }
    let (status, text) = person.accepts("y");
    assert_eq!((status.code(), lab.read("plain")), (Some(0), "plain 0\n".to_owned()), "{text}");
    assert_eq!(tree(&lab.work).len(), 1, "{text}");
}

#[test]
fn files_that_change_meanwhile_are_refused_or_stay() {
    // Before the choice is accepted: nothing is done.
    for (path, content) in [("text", lines(&[3, 20, 36, 39])), ("whole", "edited\n".to_owned())] {
        let (lab, number) = after_a_checkpoint();
        let mut person = Person::at(&lab, &["restore", &number.to_string(), "-i"], (80, 24));
        person.sees_row("row 1 of 10");
        person.goes(&[
            ("G ", "> [x]  changed whole"),
            ("kl", "+1,7 @@".trim_start_matches('+')),
            ("j ", ">     [x] @@ -1,7"),
        ]);
        lab.write(path, content);
        let before = tree(&lab.work);
        person.presses("\r");
        let (status, text) = person.ends();
        assert_eq!((status.code(), tree(&lab.work)), (Some(5), before), "{path}: {text}");
        assert!(text.contains("the files have changed since they were shown; nothing was done"), "{path}: {text}");
    }
    // While the question is asked: the path stays, as with the plain command, and the others are restored.
    let (lab, number) = after_a_checkpoint();
    let mut person = Person::at(&lab, &["restore", &number.to_string(), "-i"], (80, 24));
    person.sees_row("row 1 of 10");
    person.goes(&[("G ", "> [x]  changed whole"), ("kl", "1,7 @@"), ("j ", ">     [x] @@ -1,7")]);
    person.presses("\r");
    person.sees(|shown| shown.text.contains("[y/N]"));
    lab.write("text", lines(&[3, 20, 36, 39]));
    person.presses("y\r");
    let (status, text) = person.ends();
    let found = (status.code(), lab.read("text"), lab.read("whole"));
    assert_eq!(found, (Some(4), lines(&[3, 20, 36, 39]), "whole 0\n".to_owned()), "{text}");
    // An undo of a turn is refused in the same way.
    let (lab, _agent) = after_a_turn();
    let mut person = Person::at(&lab, &["undo", "-i"], (80, 24));
    person.sees_row("row 1 of 4");
    person.goes(&[(" ", "> [x]  changed a"), ("G", "0 of 3 parts"), ("lj ", ">     [x] @@ -1,7")]);
    lab.write("text", lines(&[3, 30, 39]));
    let before = tree(&lab.work);
    person.presses("\r");
    let (status, text) = person.ends();
    assert_eq!((status.code(), tree(&lab.work)), (Some(5), before), "{text}");
}

#[test]
fn private_files_are_chosen_as_a_whole() {
    let lab = lab_with(&["plain"]);
    lab.write(".gitignore", "log\n");
    lab.write("log", lines(&[]));
    let number = lab.take("before").to_string();
    lab.write("log", lines(&[3, 30]));
    lab.write("plain", "plain 1\n");
    let mut person = Person::at(&lab, &["restore", &number, "--local", "-i"], (80, 24));
    person.sees_row("row 1 of 2");
    person.presses("l");
    let rows = person.sees_row("This change can only be chosen as a whole.");
    assert!(rows[1].starts_with("> [ ]  changed log"), "{rows:#?}");
    person.goes(&[(" ", "> [x]  changed log")]);
    let (status, text) = person.accepts("y");
    assert_eq!(
        (status.code(), lab.read("log"), lab.read("plain")),
        (Some(0), lines(&[]), "plain 1\n".to_owned()),
        "{text}"
    );
}

#[test]
fn the_picture_follows_the_size_of_the_terminal() {
    let (lab, number) = after_a_checkpoint();
    let mut person = Person::at(&lab, &["restore", &number.to_string(), "-i"], (60, 20));
    let rows = person.sees_row("row 1 of 10");
    assert_eq!((rows.len(), rows[18].as_str()), (20, "↑↓ move · space choose · a all · → open · ← close"));
    for (size, row) in
        [((30, 20), "Too small (30x20); q quits."), ((100, 30), "PgUp PgDn text · enter continue · q quit")]
    {
        resize(&person.keyboard, size);
        // The terminal is not the one that controls the process, so the kernel sends no signal.
        // SAFETY: the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(libc::pid_t::try_from(person.child.id()).unwrap(), libc::SIGWINCH) }, 0);
        person.sees_row(row);
    }
    person.presses("q");
    assert_eq!(person.ends().0.code(), Some(5));
}

#[test]
fn a_killed_restore_of_chosen_hunks_is_finished_or_given_up() {
    if !strace() {
        return;
    }
    let mut interrupted = 0;
    for (round, end) in (1..=8).flat_map(|round| [(round, "--continue"), (round, "--abort")]) {
        let (lab, number) = after_a_checkpoint();
        let before = tree(&lab.work);
        let mut command = lab.command("strace", &lab.work);
        let fault = format!("inject=renameat2,unlinkat:{SIGKILL}:when={round}");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &fault]);
        command.arg(env!("CARGO_BIN_EXE_piton")).args(["restore", &number.to_string(), "-i"]);
        let mut person = Person::before(command, (80, 24));
        person.sees_row("row 1 of 10");
        person.goes(&[("G ", "> [x]  changed whole"), ("kl", "1,7 @@"), ("j ", ">     [x] @@ -1,7")]);
        person.presses("\r");
        let is_over = |shown: &Shown| shown.text.contains("[y/N]");
        person.sees(is_over);
        person.presses("y\r");
        person.child.wait().unwrap();
        let ended = lab.piton(&["restore", end]);
        if ended.code == 3 {
            continue;
        }
        interrupted += 1;
        assert_eq!(ended.code, 0, "{round} {end}: {ended:?}");
        let mut done = before.clone();
        done.insert("text".into(), ('f', 0o644, lines(&[20, 36]).into_bytes()));
        done.insert("whole".into(), ('f', 0o644, b"whole 0\n".to_vec()));
        assert_eq!(tree(&lab.work), if end == "--abort" { before } else { done }, "{round} {end}: {ended:?}");
    }
    assert!(interrupted > 0, "no round hit a restore");
}
