//! The verbs in view: `--help`, `help`, examples that run, short forms and the names that replace older ones.

use std::process::Stdio;

use crate::support::{Lab, Output};

/// Verbs that `--help` does not list and that work all the same.
const HIDDEN: [&str; 13] = [
    "sidecar",
    "hook",
    "daemon",
    "mcp-proxy",
    "env",
    "runs",
    "turns",
    "recover",
    "prune",
    "adopt",
    "delete",
    "unpin",
    "man",
];

/// Returns the verbs that `--help` lists, in their groups.
fn listed(help: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in help.lines().take_while(|line| *line != "Common options:") {
        if let Some(title) = line.strip_suffix(':').filter(|title| !title.starts_with(' ')) {
            groups.push((title.to_owned(), Vec::new()));
        } else if let (Some(row), Some(group)) = (line.strip_prefix("  "), groups.last_mut()) {
            group.1.push(row.split(' ').next().unwrap().to_owned());
        }
    }
    groups
}

fn lab_with_checkpoints() -> Lab {
    let lab = Lab::new();
    lab.write("src/main.rs", "fn main() {}\n");
    lab.take("first");
    lab.write("src/main.rs", "fn main() { run() }\n");
    lab.write(".env", "KEY=a\n");
    lab.take("second");
    lab
}

#[test]
fn help_lists_the_verbs_in_groups() {
    let lab = Lab::new();
    let help = lab.piton(&["--help"]);
    let groups = listed(&help.stdout);
    let titles: Vec<&str> = groups.iter().map(|group| group.0.as_str()).collect();
    assert_eq!(titles, ["Everyday", "Guard", "Looking closer", "Housekeeping", "Sharing"], "{help:?}");
    let verbs: Vec<&String> = groups.iter().flat_map(|group| &group.1).collect();
    assert!((24..=30).contains(&verbs.len()), "{verbs:?}");
    for verb in HIDDEN {
        assert!(!verbs.iter().any(|listed| *listed == verb), "{verb} is listed");
        assert_eq!(lab.piton(&[verb, "--help"]).code, 0, "{verb}");
    }
    for verb in verbs {
        assert_eq!(lab.piton(&["help", verb]).code, 0, "{verb}");
    }
}

#[test]
fn help_prints_what_the_option_prints() {
    let lab = Lab::new();
    let same = |a: &[&str], b: &[&str]| assert_eq!(lab.piton(a), lab.piton(b));
    same(&["help"], &["--help"]);
    same(&["help", "restore"], &["restore", "--help"]);
    same(&["help", "store", "move"], &["store", "move", "--help"]);
    assert_eq!(lab.piton(&["help", "nothing"]).code, 2);
    let help = lab.piton(&["help", "list"]).stdout;
    let places = ["\nOptions:\n", "--steps", "\nCommon options:\n", "--workspace", "--help", "\nExamples:\n"];
    let places = places.map(|text| help.find(text).unwrap_or_else(|| panic!("no {text}: {help}")));
    assert!(places.is_sorted(), "{help}");
}

#[test]
fn every_example_runs() {
    let lab = lab_with_checkpoints();
    lab.sh("git init -q .");
    let bin = lab.bin();
    for verb in listed(&lab.piton(&["--help"]).stdout).iter().flat_map(|group| &group.1) {
        let help = lab.piton(&["help", verb]).stdout;
        let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{verb}: {help}"));
        assert!(examples.lines().count() > 1, "{verb}: {help}");
        // It runs until it is stopped.
        for example in examples.lines().filter(|_| verb != "watch") {
            assert!(example.contains(&format!("piton {verb}")) || verb == "fetch", "{example}");
            let mut shell = lab.command("/bin/sh", &lab.work);
            let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
            let output = shell.env("PATH", path).args(["-c", example]).stdin(Stdio::null()).output().unwrap();
            assert_ne!(output.status.code(), Some(2), "{example}: {output:?}");
        }
    }
    lab.piton(&["daemon", "stop"]);
}

#[test]
fn new_forms_answer_as_the_old_ones() {
    let lab = lab_with_checkpoints();
    let same = |old: &[&str], new: &[&str]| {
        let (old, new): (Output, Output) = (lab.piton(old), lab.piton(new));
        assert_eq!(old, new);
    };
    same(&["list"], &["ls"]);
    same(&["list", "-n", "1"], &["log", "-n", "1"]);
    same(&["status"], &["st"]);
    same(&["runs", "--tree", "--json"], &["list", "--runs", "--tree", "--json"]);
    same(&["turns", "-n", "3"], &["list", "--turns", "-n", "3"]);
    same(&["prune", "--dry-run"], &["store", "prune", "--dry-run"]);
    same(&["delete", "1"], &["store", "delete", "1"]);
    same(&["adopt", "nowhere", "."], &["store", "adopt", "nowhere", "."]);
    assert_eq!(lab.piton(&["pin", "1"]).code, 0);
    assert_eq!(lab.piton(&["pin", "--remove", "1"]).code, 0);
    same(&["unpin", "1"], &["pin", "--remove", "1"]);
    same(&["recover", ".env", "--preview"], &["restore", ".env", "--preview"]);
}

#[test]
fn a_patch_goes_to_the_pager_of_a_terminal_and_else_to_the_output() {
    let lab = lab_with_checkpoints();
    lab.write("src/main.rs", "changed\n");
    let plain = lab.piton(&["diff", "1"]).stdout;
    assert!(plain.contains("+changed\n"), "{plain}");
    let paged = |pager: &str| {
        let line = format!("{} diff 1 --color never", env!("CARGO_BIN_EXE_piton"));
        let mut command = lab.command("script", &lab.work);
        let done = command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("PAGER", pager).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{pager}: {done:?}");
        String::from_utf8_lossy(&done.stdout).replace('\r', "")
    };
    for (pager, says) in
        [("sed s/^/paged:/", "paged:+changed\n"), ("cat", "\n+changed\n"), ("no-such-pager", "\n+changed\n")]
    {
        let said = paged(pager);
        assert!(said.contains(says), "{pager}: {said}");
    }
}

#[test]
fn lists_fit_the_screen_with_and_without_colours() {
    let lab = lab_with_checkpoints();
    lab.take(&"a label that is longer than most screens ".repeat(4));
    lab.write("src/main.rs", "changed\n");
    for columns in [60, 80, 120] {
        for args in [
            &["list", "--color", "never"][..],
            &["list", "--color", "always"],
            &["diff", "1", "--stat", "--color", "always"],
        ] {
            let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
            let done = command.args(args).env("COLUMNS", columns.to_string()).output().unwrap();
            let text = String::from_utf8(done.stdout).unwrap();
            assert_eq!(text.contains("\x1b["), args.contains(&"always"), "{text}");
            let plain: String = text
                .split("\x1b[")
                .map(|part| {
                    part.split_once('m')
                        .filter(|(codes, _)| codes.bytes().all(|byte| byte.is_ascii_digit()))
                        .map_or(part, |(_, rest)| rest)
                })
                .collect();
            let title = plain.lines().next().unwrap_or_default();
            let widest = plain.lines().filter(|line| *line != title).map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= columns), "{columns}: {plain}");
        }
    }
}

#[test]
fn a_path_alone_is_restored_unless_it_may_be_a_checkpoint() {
    let lab = lab_with_checkpoints();
    std::fs::remove_file(lab.work.join("src/main.rs")).unwrap();
    assert_eq!(lab.piton(&["restore", "src/main.rs"]).code, 5, "there is no terminal to ask on");
    let back = lab.piton(&["restore", "src/main.rs", "--yes"]);
    assert_eq!((back.code, lab.read("src/main.rs").as_str()), (0, "fn main() { run() }\n"), "{back:?}");
    // A number is a checkpoint's. A word that is a path, too, is refused.
    lab.write("first", "a file with the name of a label");
    lab.write("7", "a file with a number for a name");
    assert_eq!(lab.piton(&["restore", "first", "--preview", "--json"]).error(), "ambiguous-checkpoint");
    for unknown in ["7", "nowhere", "../elsewhere"] {
        let output = lab.piton(&["restore", unknown, "--json"]);
        assert_eq!((output.code, output.error().as_str()), (3, "no-such-checkpoint"), "{unknown}: {output:?}");
    }
}

#[test]
fn colours_are_chosen_on_the_command_line() {
    let lab = lab_with_checkpoints();
    let is_coloured = |args: &[&str]| lab.piton(args).stdout.contains('\u{1b}');
    assert!(is_coloured(&["list", "--color", "always"]) && is_coloured(&["--color=always", "diff", "1"]));
    assert!(!is_coloured(&["list"]) && !is_coloured(&["list", "--color", "never"]));
    assert!(!is_coloured(&["list", "--color", "always", "--json"]));
    assert_eq!(lab.piton(&["list", "--color", "blue"]).code, 2);
}
