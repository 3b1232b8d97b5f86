//! Restores and undos of what patterns match, and of all but some paths.

use serde_json::{Value, json};

use crate::support::{Lab, Output, tree};
use crate::turns::Agent;

/// The paths of one list of a reply.
fn paths(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap_or_else(|| panic!("not a list: {list}"));
    items.iter().map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}

/// A lab with a checkpoint, after which everything changed.
fn changed_lab() -> (Lab, String) {
    let lab = Lab::new();
    for path in ["src/a.rs", "src/deep/b.rs", "src/deep/b.txt", "docs/c.md", "config/d.yaml", "a[1].txt", "a1.txt"] {
        lab.write(path, "old\n");
    }
    let number = lab.take("all").to_string();
    for path in ["src/a.rs", "src/deep/b.rs", "src/deep/b.txt", "docs/c.md", "config/d.yaml", "a[1].txt", "a1.txt"] {
        lab.write(path, "new\n");
    }
    lab.write("src/created.rs", "new\n");
    lab.write("src/fresh/created.txt", "new\n");
    (lab, number)
}

/// Returns the paths that have the old content, and those that were deleted, marked by `-`.
fn restored(lab: &Lab) -> Vec<String> {
    let all = ["a1.txt", "a[1].txt", "config/d.yaml", "docs/c.md", "src/a.rs", "src/deep/b.rs", "src/deep/b.txt"];
    let mut found: Vec<String> =
        all.iter().filter(|path| lab.read(path) == "old\n").map(|path| (*path).to_owned()).collect();
    let created = ["src/created.rs", "src/fresh/created.txt", "src/fresh"];
    found.extend(created.iter().filter(|path| !lab.work.join(path).exists()).map(|path| format!("-{path}")));
    found
}

fn refused(output: &Output, code: i32, told: &str) {
    assert!(output.code == code && output.stderr.contains(told) && output.stdout.is_empty(), "{told}: {output:?}");
}

#[test]
fn a_pattern_restores_what_it_matches_and_the_undo_takes_it_back() {
    let (lab, number) = changed_lab();
    let before = tree(&lab.work);
    let preview = lab.piton(&["restore", &number, "src/**/*.rs", "--preview", "--json"]).json();
    assert_eq!(paths(&preview["plan"]["replace"]), ["src/a.rs", "src/deep/b.rs"]);
    assert_eq!(paths(&preview["plan"]["delete"]), ["src/created.rs"]);
    assert_eq!(tree(&lab.work), before);
    let shown = lab.piton(&["restore", &number, "src/**/*.rs", "--preview"]);
    assert!(shown.stdout.contains("To keep them, use `--keep-new`"), "{shown:?}");
    let done = lab.restore(&number, &["src/**/*.rs"]);
    assert_eq!(paths(&done["done"]["deleted"]), ["src/created.rs"]);
    assert_eq!(restored(&lab), ["src/a.rs", "src/deep/b.rs", "-src/created.rs"]);
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(tree(&lab.work), before);
    assert_eq!(lab.piton(&["redo", "--yes"]).code, 0);
    assert_eq!(restored(&lab), ["src/a.rs", "src/deep/b.rs", "-src/created.rs"]);
}

#[test]
fn patterns_and_exceptions_choose_together() {
    for (args, expected) in [
        (&["*.rs"][..], &["src/a.rs", "src/deep/b.rs", "-src/created.rs"][..]),
        (&["src/*.rs", "--keep-new"], &["src/a.rs"]),
        (&["src/d*"], &["src/deep/b.rs", "src/deep/b.txt"]),
        (&["docs", "*.yaml"], &["config/d.yaml", "docs/c.md"]),
        (&["{docs,config}/*", "--except", "config"], &["docs/c.md"]),
        (
            &["--except", "config", "--except", "**/*.txt"],
            &["docs/c.md", "src/a.rs", "src/deep/b.rs", "-src/created.rs"],
        ),
        (&["src", "--except", "src/deep"], &["src/a.rs", "-src/created.rs", "-src/fresh/created.txt", "-src/fresh"]),
        (
            &["src", "--except", "src/fresh/created.txt"],
            &["src/a.rs", "src/deep/b.rs", "src/deep/b.txt", "-src/created.rs"],
        ),
        (&["src", "--except", "*.rs"], &["src/deep/b.txt", "-src/fresh/created.txt", "-src/fresh"]),
    ] {
        let (lab, number) = changed_lab();
        let before = tree(&lab.work);
        lab.restore(&number, args);
        assert_eq!(restored(&lab), expected, "{args:?}");
        assert_eq!(lab.piton(&["undo", "--yes"]).code, 0, "{args:?}");
        assert_eq!(tree(&lab.work), before, "{args:?}");
    }
}

#[test]
fn what_is_left_alone_is_listed() {
    let (lab, number) = changed_lab();
    let preview = lab.piton(&["restore", &number, "--except", "src/fresh/created.txt", "--preview"]);
    let line = "src/fresh/created.txt  (excluded by --except)";
    assert!(preview.code == 0 && preview.stdout.contains(line), "{preview:?}");
    let preview = lab.piton(&["restore", &number, "docs", "--except", "config", "--preview"]);
    assert!(!preview.stdout.contains("config/d.yaml"), "it was not named: {preview:?}");
}

#[test]
fn a_path_that_exists_is_no_pattern() {
    let (lab, number) = changed_lab();
    lab.restore(&number, &["a[1].txt"]);
    assert_eq!(restored(&lab), ["a[1].txt"]);
    // Without the file on the disk the checkpoint decides, and without both it is a pattern.
    lab.write("a[1].txt", "new\n");
    std::fs::remove_file(lab.work.join("a[1].txt")).unwrap();
    lab.restore(&number, &["a[1].txt"]);
    assert_eq!(restored(&lab), ["a[1].txt"]);
    lab.restore(&number, &["a[0-9].txt"]);
    assert_eq!(restored(&lab), ["a1.txt", "a[1].txt"]);
    // A file of that name that only the disk has.
    lab.write("[ab]1.txt", "mine\n");
    let done = lab.restore(&number, &["[ab]1.txt"]);
    assert_eq!(paths(&done["done"]["deleted"]), ["[ab]1.txt"]);
}

#[test]
fn patterns_that_match_nothing_or_are_none_are_refused() {
    let (lab, number) = changed_lab();
    let before = tree(&lab.work);
    let restore = |args: &[&str]| lab.piton(&[&["restore", &number, "--yes"], args].concat());
    refused(&restore(&["src/*.py"]), 3, "`src/*.py` matches no path");
    refused(&restore(&["src/*.rs", "*.py"]), 3, "`**/*.py` matches no path");
    refused(&restore(&["--except", "*.py"]), 3, "`**/*.py` matches no path");
    refused(&restore(&["--except", "nowhere"]), 3, "nowhere");
    refused(&restore(&["--except", "."]), 2, "there is nothing left to do");
    refused(&restore(&["/etc/*"]), 2, "is absolute");
    refused(&restore(&["--except", "/etc/*"]), 2, "is absolute");
    refused(&restore(&["../*.rs"]), 2, "leaves the workspace");
    refused(&restore(&["src/*/../../../x"]), 2, "leaves the workspace");
    refused(&restore(&["src/[z"]), 2, "is not a pattern");
    refused(&restore(&["src/{a"]), 2, "is not a pattern");
    refused(&restore(&[&"*a".repeat(3000)]), 2, "is not a pattern");
    refused(&lab.piton(&["restore", "*.rs", "--yes"]), 2, "needs a checkpoint");
    let code = |args: &[&str]| lab.piton(&[&["restore", &number, "--yes", "--json"], args].concat()).error();
    assert_eq!(code(&["*.py"]), code(&["missing"]));
    assert_eq!(code(&["*.py"]), "no-such-path");
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn patterns_count_from_the_working_directory_and_from_links_nothing_is_followed() {
    let (lab, number) = changed_lab();
    let deep = lab.work.join("src/deep");
    let done = lab.piton_in(&deep, &["restore", &number, "*.rs", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(restored(&lab), ["src/deep/b.rs"]);
    let done = lab.piton_in(&deep, &["restore", &number, "../*.rs", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(restored(&lab), ["src/a.rs", "src/deep/b.rs", "-src/created.rs"]);
}

#[test]
fn private_files_that_are_there_change_only_by_patterns_that_name_them() {
    let lab = Lab::new();
    lab.write(".env", "KEY=old\n");
    lab.write("a.txt", "old\n");
    let number = lab.take("all").to_string();
    lab.write(".env", "KEY=new\n");
    lab.write("a.txt", "new\n");
    lab.restore(&number, &["**/*"]);
    assert_eq!((lab.read("a.txt").as_str(), lab.read(".env").as_str()), ("old\n", "KEY=new\n"));
    lab.restore(&number, &["*.env"]);
    assert_eq!(lab.read(".env"), "KEY=old\n");
}

#[test]
fn an_export_takes_patterns_too() {
    let (lab, number) = changed_lab();
    let out = lab.root().join("out");
    let done = lab.piton(&["restore", &number, "src", "--except", "*.txt", "--to", out.to_str().unwrap()]);
    assert_eq!(done.code, 0, "{done:?}");
    let written: Vec<String> = tree(&out).keys().map(|path| path.display().to_string()).collect();
    assert_eq!(written, ["src", "src/a.rs", "src/deep", "src/deep/b.rs"]);
    refused(&lab.piton(&["restore", &number, "*.py", "--to", "other"]), 3, "matches no path");
}

#[test]
fn an_undo_takes_patterns_and_exceptions() {
    let lab = Lab::new();
    for path in ["src/a.rs", "src/b.rs", "docs/c.md"] {
        lab.write(path, "old\n");
    }
    let mut agent = Agent::new(&lab, "s");
    agent.start("t");
    for path in ["src/a.rs", "src/b.rs", "docs/c.md"] {
        let input = json!({ "file_path": lab.work.join(path), "content": "new\n" });
        let reply = agent.ask(json!({ "type": "tool.before", "tool": "Write", "input": input, "action": path }));
        assert_eq!(reply["proceed"], true, "{reply}");
        lab.write(path, "new\n");
        agent.ask(json!({ "type": "tool.after", "action": path }));
    }
    agent.end();
    let all = || [lab.read("src/a.rs"), lab.read("src/b.rs"), lab.read("docs/c.md")].map(|text| text.trim().to_owned());
    refused(&lab.piton(&["undo", "*.py", "--yes"]), 3, "`**/*.py`");
    refused(&lab.piton(&["undo", "--except", "*.py", "--yes"]), 3, "`**/*.py`");
    let undone = lab.piton(&["undo", "src/*.rs", "--except", "src/b.rs", "--yes"]);
    assert_eq!((undone.code, all()), (0, ["old", "new", "new"].map(str::to_owned)), "{undone:?}");
    let undone = lab.piton(&["undo", "--except", "docs/**", "--yes"]);
    assert_eq!((undone.code, all()), (0, ["old", "old", "new"].map(str::to_owned)), "{undone:?}");
    let rest = lab.piton(&["undo", "--yes"]);
    assert_eq!((rest.code, all()), (0, ["old", "old", "old"].map(str::to_owned)), "{rest:?}");
}
