//! `piton demo`: its three acts end with the files as they were.

use super::support::Lab;

/// Runs the demo with a directory of temporary files of its own, and returns what it prints. It must succeed, and leave nothing there.
fn demo(lab: &Lab, args: &[&str]) -> String {
    let scratch = lab.root().join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let output = command.arg("demo").args(args).env("TMPDIR", &scratch).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_demo_tells_a_story_and_checks_it() {
    let lab = Lab::new();
    let story = demo(&lab, &[]);
    let parts = [
        "1. An agent works",
        "  agent  $ rm -rf migrations",
        "piton saved ",
        "piton warns: `psql`",
        "2. Files are missing",
        "$ piton list\n",
        "3. One command restores them",
        "$ piton undo --yes\n",
        "After the undo the workspace is as it was",
    ];
    let mut at = 0;
    for part in parts {
        let found = story[at..].find(part);
        at += found.unwrap_or_else(|| panic!("no `{part}` where it belongs: {story}"));
    }
    assert_eq!(story.matches(": byte for byte, permissions included.\n").count(), 3, "{story}");
    assert!(!story.contains("\n> "), "{story}");
    let protocol = demo(&lab, &["--protocol"]);
    assert!(protocol.contains("\n> shell.before  rm -rf migrations"), "{protocol}");
}
