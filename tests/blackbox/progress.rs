//! Progress on a terminal, and Ctrl-C during long work.
//!
//! `PITON_TEST_PROGRESS` has the line drawn at once and often. `PITON_TEST_STOP_AT` has piton raise SIGINT at a numbered check of its
//! interrupt, as Ctrl-C does at some moment.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{Lab, Output, pseudo_terminal, tree};

/// Enough files for several threads and a pack.
const MANY: usize = 1500;

const SIGINT: i32 = 2;

/// A verb that has run with a terminal as its stderr.
struct OnTerminal {
    signal: Option<i32>,
    code: Option<i32>,
    stdout: String,
    /// Everything that was written to the terminal.
    written: String,
}

impl OnTerminal {
    /// Returns the text that the terminal shows in the end.
    fn left(&self) -> String {
        let (mut lines, mut column) = (vec![Vec::<char>::new()], 0);
        let mut letters = self.written.chars().peekable();
        while let Some(letter) = letters.next() {
            let line = lines.last_mut().unwrap();
            match letter {
                '\r' => column = 0,
                '\n' => {
                    lines.push(Vec::new());
                    column = 0;
                }
                '\x1b' => {
                    assert_eq!(letters.next(), Some('['), "{:?}", self.written);
                    let code: String =
                        std::iter::from_fn(|| letters.next_if(|letter| !letter.is_alphabetic())).collect();
                    match (code.as_str(), letters.next()) {
                        ("2", Some('K')) => line.clear(),
                        ("" | "0", Some('K')) => line.truncate(column),
                        // Of colours nothing is seen here.
                        (_, Some('m')) => {}
                        other => panic!("{other:?} in {:?}", self.written),
                    }
                }
                letter => {
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = letter;
                    column += 1;
                }
            }
        }
        let text: Vec<String> = lines.into_iter().map(|line| line.into_iter().collect()).collect();
        text.join("\n").trim_end().to_owned()
    }
}

/// Runs a verb with a terminal as its stderr.
fn on_terminal(lab: &Lab, args: &[&str], env: &[(&str, &str)]) -> OnTerminal {
    let (person, program) = pseudo_terminal();
    let mut command = lab.interruptible(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.env("TERM", "xterm").env("PITON_TEST_PROGRESS", "1").envs(env.iter().copied()).args(args);
    let mut child = command.stdout(Stdio::piped()).stderr(program).spawn().unwrap();
    // It has the program's end.
    drop(command);
    let mut data = child.stdout.take().unwrap();
    let stdout = std::thread::spawn(move || {
        let mut text = String::new();
        data.read_to_string(&mut text).unwrap();
        text
    });
    let (mut terminal, mut written, mut piece) = (File::from(person), Vec::new(), [0; 4096]);
    // The end of a terminal is an error.
    while let Ok(length @ 1..) = terminal.read(&mut piece) {
        written.extend_from_slice(&piece[..length]);
    }
    let status = child.wait().unwrap();
    let written = String::from_utf8_lossy(&written).into_owned();
    OnTerminal { signal: status.signal(), code: status.code(), stdout: stdout.join().unwrap(), written }
}

/// Runs a verb that stops itself at a numbered check.
fn stopped_at(lab: &Lab, number: u64, args: &[&str]) -> (Option<i32>, Output) {
    let mut command = lab.interruptible(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.env("PITON_TEST_STOP_AT", number.to_string()).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    (output.status.signal(), Output { code: output.status.code().unwrap_or(-1), stdout, stderr })
}

fn many_files(lab: &Lab) {
    for number in 0..MANY {
        lab.write(&format!("d{}/f{number}", number % 40), format!("{number}\n").repeat(50));
    }
}

#[test]
fn long_work_shows_how_far_it_is_and_leaves_nothing_on_the_terminal() {
    let lab = Lab::new();
    many_files(&lab);
    let taken = on_terminal(&lab, &["checkpoint", "all"], &[]);
    assert_eq!((taken.code, taken.left().as_str()), (Some(0), ""), "{:?}", taken.written);
    for part in ["Looking for files", "Reading files [", &format!("/{MANY} files, "), "%", "Writing the checkpoint"] {
        assert!(taken.written.contains(part), "{part}: {:?}", taken.written);
    }
    assert!(taken.stdout.starts_with("Checkpoint 1 ("), "{}", taken.stdout);

    lab.sh("rm -r d1 d2; for n in 3 4 5 6; do for f in d$n/*; do echo new > $f; done; done");
    let restored = on_terminal(&lab, &["restore", "1", "--yes"], &[]);
    assert_eq!((restored.code, restored.left().as_str()), (Some(0), ""), "{:?}", restored.written);
    for part in ["Writing files [", "Changing files [", " steps"] {
        assert!(restored.written.contains(part), "{part}: {:?}", restored.written);
    }
    let undone = on_terminal(&lab, &["undo", "--yes"], &[]);
    assert_eq!((undone.code, undone.left().as_str()), (Some(0), ""), "{:?}", undone.written);
    assert!(undone.written.contains("Changing files ["), "{:?}", undone.written);

    let checked = on_terminal(&lab, &["doctor", "--refs"], &[]);
    assert_eq!((checked.code, checked.left().as_str()), (Some(0), ""), "{:?}", checked.written);
    assert!(
        checked.written.contains("Checking objects [=") && checked.written.contains("100%"),
        "{:?}",
        checked.written
    );

    let forgotten = on_terminal(&lab, &["forget", "d7/f7", "--yes"], &[]);
    assert_eq!(forgotten.code, Some(0), "{:?}", forgotten.written);
    assert!(forgotten.written.contains("Verifying the removal"), "{:?}", forgotten.written);
    assert!(!forgotten.left().contains("Verifying"), "{}", forgotten.left());

    let pruned = on_terminal(&lab, &["store", "prune", "--yes"], &[]);
    assert_eq!(pruned.left(), "", "{:?}", pruned.written);
    assert!(pruned.written.contains("Looking for objects in use"), "{:?}", pruned.written);
}

#[test]
fn git_s_progress_becomes_piton_s() {
    let lab = Lab::new();
    if crate::support::git(&lab, &["init", "-q", "--bare", "../remote.git"]).is_none() {
        return;
    }
    many_files(&lab);
    lab.take("one");
    let remote = lab.root().join("remote.git").to_string_lossy().into_owned();
    let sent = on_terminal(&lab, &["push", &remote], &[]);
    assert_eq!((sent.code, sent.left().as_str()), (Some(0), ""), "{:?}", sent.written);
    for part in ["Connecting to the remote", " objects"] {
        assert!(sent.written.contains(part), "{part}: {:?}", sent.written);
    }
    assert!(sent.stdout.starts_with("Sent 1 ref"), "{}", sent.stdout);

    let other = Lab::new();
    let fetched = on_terminal(&other, &["fetch", &remote], &[]);
    assert_eq!((fetched.code, fetched.left().as_str()), (Some(0), ""), "{:?}", fetched.written);
    for part in ["Connecting to the remote", "Packing objects"] {
        assert!(fetched.written.contains(part), "{part}: {:?}", fetched.written);
    }
    // Git's message about a failure still reaches the person.
    let failed = on_terminal(&lab, &["push", "/nowhere/at/all"], &[]);
    assert_eq!(failed.code, Some(1));
    assert!(failed.left().contains("/nowhere/at/all"), "{:?}", failed.written);
    for args in [["push", "-q", &remote], ["push", "--json", &remote]] {
        let quiet = on_terminal(&lab, &args, &[]);
        assert_eq!((quiet.code, quiet.written.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn nothing_is_drawn_where_nobody_wants_it() {
    let lab = Lab::new();
    many_files(&lab);
    for (args, env) in [
        (&["checkpoint", "-q"][..], &[][..]),
        (&["--quiet", "checkpoint"], &[]),
        (&["checkpoint", "--json"], &[]),
        (&["checkpoint"], &[("TERM", "dumb")]),
        // A short verb never comes to its first second.
        (&["list"], &[]),
    ] {
        lab.sh("echo more >> d1/f1");
        let shown = on_terminal(&lab, args, env);
        assert_eq!((shown.code, shown.written.as_str()), (Some(0), ""), "{args:?} {env:?}");
        assert!(!shown.stdout.is_empty(), "{args:?}");
    }
    lab.sh("echo more >> d1/f1");
    let mut piped = lab.interruptible(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let piped = piped.env("TERM", "xterm").env("PITON_TEST_PROGRESS", "1").arg("checkpoint").output().unwrap();
    assert!(piped.status.success() && piped.stderr.is_empty(), "{piped:?}");
}

#[test]
fn quiet_leaves_out_notes_and_keeps_errors() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    let recovered = lab.piton(&["recover", "a"]);
    assert!(recovered.code == 3 && recovered.stderr.contains("Nothing to restore"), "{recovered:?}");
    let quiet = lab.piton(&["recover", "a", "-q"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (3, ""));
    let wrong = lab.piton(&["restore", "77", "--yes", "--quiet"]);
    assert!(wrong.code == 3 && wrong.stderr.starts_with("piton: "), "{wrong:?}");
}

#[test]
fn a_stopped_checkpoint_records_nothing() {
    let lab = Lab::new();
    many_files(&lab);
    let (signal, output) = stopped_at(&lab, 3, &["checkpoint", "cut"]);
    assert_eq!((signal, output.stdout.as_str()), (Some(SIGINT), ""), "{output:?}");
    assert_eq!(output.stderr, "piton: interrupted: nothing was recorded\n  to take it, run `piton checkpoint` again\n");
    assert_eq!(lab.piton(&["list", "--json"]).json()["checkpoints"].as_array().map(Vec::len), Some(0));
    // A shell sees the code of an interrupted program, with and without a terminal.
    let line = "PITON_TEST_STOP_AT=3 \"$0\" checkpoint cut; echo $?";
    let shell =
        lab.interruptible("/bin/sh", &lab.work).args(["-c", line, env!("CARGO_BIN_EXE_piton")]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shell.stdout), "130\n");
    let shown = on_terminal(&lab, &["checkpoint", "cut"], &[("PITON_TEST_STOP_AT", "3")]);
    assert_eq!(shown.signal, Some(SIGINT));
    assert!(shown.left().starts_with("piton: interrupted: nothing was recorded"), "{:?}", shown.written);
    assert_eq!(lab.take("whole"), 1);
}

#[test]
fn a_restore_is_stopped_before_it_changes_a_file_or_can_be_ended_either_way() {
    let lab = Lab::new();
    (0..6).for_each(|number| lab.write(&format!("d/f{number}"), "old"));
    lab.take("one");
    let target = tree(&lab.work);
    let (mut untouched, mut open, mut at) = (0, 0, 0);
    loop {
        lab.sh("rm -rf d; mkdir d; echo new > d/f0; echo other > d/new");
        let before = tree(&lab.work);
        let (signal, output) = stopped_at(&lab, at, &["restore", "1", "--yes"]);
        if signal.is_none() {
            assert_eq!((output.code, tree(&lab.work)), (0, target.clone()), "{output:?}");
            break;
        }
        assert_eq!(signal, Some(SIGINT), "{output:?}");
        if output.stderr.starts_with("piton: interrupted: no file was changed\n") {
            assert_eq!(tree(&lab.work), before, "at {at}");
            untouched += 1;
        } else if output.stderr.contains("everything was done already") {
            assert_eq!(tree(&lab.work), target, "at {at}");
        } else {
            assert!(output.stderr.contains("was interrupted: ") && output.stderr.contains("--continue"), "{output:?}");
            open += 1;
            let (word, expected) = if open % 2 == 0 { ("--abort", &before) } else { ("--continue", &target) };
            let ended = lab.piton(&["restore", word]);
            assert_eq!((ended.code, &tree(&lab.work)), (0, expected), "at {at}: {ended:?}");
        }
        at += 1;
    }
    assert!(untouched >= 2 && open >= 2, "{untouched} {open}");
}

#[test]
fn a_stopped_forget_says_if_it_has_begun() {
    let (mut nothing, mut begun, mut at) = (0, 0, 0);
    loop {
        let lab = Lab::new();
        lab.write("secret", "hidden");
        lab.write("a", "1");
        lab.take("one");
        let (signal, output) = stopped_at(&lab, at, &["forget", "secret", "--yes"]);
        if signal.is_none() || output.stderr.contains("everything was done already") {
            break;
        }
        assert_eq!(signal, Some(SIGINT), "{output:?}");
        if output.stderr.contains("interrupted: nothing was forgotten") {
            assert_eq!(lab.piton(&["show", "1:secret"]).stdout, "hidden");
            nothing += 1;
        } else {
            assert!(output.stderr.contains("to finish it, run `piton forget --continue`"), "{output:?}");
            assert_eq!(lab.piton(&["forget", "--continue"]).code, 0);
            assert_eq!(lab.piton(&["show", "1:secret"]).code, 3);
            begun += 1;
        }
        at += 1 + at / 4;
    }
    assert!(nothing >= 1 && begun >= 1, "{nothing} {begun}");
}

#[test]
fn other_stopped_work_says_how_to_go_on() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    for (args, text, next) in [
        (&["store", "prune", "--yes"][..], "some checkpoints were dropped already", "piton store prune"),
        (&["doctor"], "nothing was changed", "piton doctor"),
        (&["doctor", "--refs"], "nothing was changed", "piton doctor"),
    ] {
        let (signal, output) = stopped_at(&lab, 0, args);
        assert_eq!(signal, Some(SIGINT), "{args:?}: {output:?}");
        assert!(output.stderr.contains(text) && output.stderr.contains(next), "{args:?}: {output:?}");
    }
    assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0);
}

#[test]
fn a_question_ends_at_once() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("one");
    lab.write("a", "2");
    let (person, program) = pseudo_terminal();
    let mut command = lab.interruptible(env!("CARGO_BIN_EXE_piton"), &lab.work);
    command.env("TERM", "xterm").args(["restore", "1"]).stdin(program.try_clone().unwrap()).stderr(program);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    drop(command);
    let (mut terminal, mut written, mut piece) = (File::from(person), Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&written).contains("[y/N]") {
        let length = terminal.read(&mut piece).unwrap();
        written.extend_from_slice(&piece[..length]);
    }
    // SAFETY: the child has not been waited for, so its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id().cast_signed(), SIGINT) }, 0);
    assert_eq!(child.wait().unwrap().signal(), Some(SIGINT));
    assert_eq!(lab.read("a"), "2");
}
