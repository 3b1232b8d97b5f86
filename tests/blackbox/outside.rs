//! The net holds files that an action destroys outside of its workspace: of no workspace, of other ones, and of projects below
//! the home directory.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::support::{Lab, Sidecar, git, id_of, lacking, number, tree};

fn shell(sidecar: &mut Sidecar, command: &str) -> Value {
    sidecar.ask(json!({"type": "shell.before", "command": command}))
}

fn turn(sidecar: &mut Sidecar, name: &str) {
    sidecar.ask(json!({"type": "turn.start", "turn": name}));
}

/// Returns the checkpoint that another workspace got, and asserts that it is the only other one.
fn other<'r>(reply: &'r Value, root: &Path) -> &'r Value {
    let others = reply["others"].as_array().unwrap_or_else(|| panic!("no others: {reply}"));
    assert_eq!(others.len(), 1, "{reply}");
    assert_eq!(others[0]["workspace"], root.to_string_lossy().as_ref(), "{reply}");
    &others[0]["checkpoint"]
}

fn outside(reply: &Value) -> &Value {
    other(reply, Path::new("/"))
}

fn not_held(reply: &Value) -> Vec<&str> {
    let items = reply["not_held"].as_array().into_iter().flatten();
    items.map(|item| item["path"].as_str().unwrap_or("?")).collect()
}

/// Writes a file below the lab, beside its workspace.
fn beside(lab: &Lab, path: &str, content: &str) -> PathBuf {
    let path = lab.root().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_word_that_leads_outside_through_a_link_is_saved_before_programs_of_no_list() {
    for line in [
        "ssh-agent rm link/a",
        "gcc -MM -MF link/a b.c",
        "iconv -olink/a b.c",
        "perl -e 'unlink @ARGV' link/a",
        "printf '%s\\0' link/a | xargs -0 rm -f",
        "files=(link/a); rm \"${files[0]}\"",
        "ssh-agent rm name",
    ] {
        let Some(lab) = Lab::lasting() else { return };
        beside(&lab, "out/a", "mine\n");
        lab.write("b.c", "int b;\n");
        lab.sh("ln -s ../out link; ln -s ../out/a name");
        let mut sidecar = Sidecar::start(&lab, &[]);
        turn(&mut sidecar, "t1");
        let reply = shell(&mut sidecar, line);
        assert_eq!(outside(&reply)["status"], "taken", "{line}: {reply}");
    }
}

/// The words name a path of the workspace, so that no warning about the machine comes from them.
#[test]
fn a_file_of_the_system_behind_a_link_is_named_as_not_saved() {
    let Some(lab) = Lab::lasting() else { return };
    lab.sh("ln -s /etc sys; ln -s /dev/null sink; ln -s /etc/passwd one");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    for (line, is_named) in [
        ("rm -f sys/passwd", true),
        ("rm -rf sys/pass*", true),
        ("cd sys && rm passwd", true),
        ("echo x >one", true),
        ("cat sys/passwd one", false),
        ("echo x >sink", false),
        ("rm one", false),
    ] {
        let reply = shell(&mut sidecar, line);
        assert_eq!(not_held(&reply).contains(&"/etc/passwd"), is_named, "{line}: {reply}");
    }
}

#[test]
fn what_a_turn_destroyed_outside_is_offered_after_its_sidecar_was_killed() {
    let Some(lab) = Lab::lasting() else { return };
    let notes = beside(&lab, "notes.txt", "mine\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"type": "hello", "session": "s", "client": "tester"}));
    turn(&mut sidecar, "t1");
    shell(&mut sidecar, "rm ../notes.txt");
    // It is killed without a chance to note anything.
    drop(sidecar);
    std::fs::remove_file(&notes).unwrap();
    // Another session ends the turn in its own workspace.
    let mut other = Sidecar::start(&lab, &[]);
    other.ask(json!({"type": "hello", "session": "other", "client": "tester"}));
    assert_eq!(other.finish(), 0);
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!(std::fs::read_to_string(&notes).unwrap_or_default(), "mine\n", "{undone:?}");
}

/// The undo of the turn restores the files that were saved, so only the others are named.
#[test]
fn the_end_of_a_turn_names_what_was_not_saved_outside() {
    let Some(lab) = Lab::lasting() else { return };
    let (notes, more) = (beside(&lab, "notes.txt", "mine\n"), beside(&lab, "more.txt", "mine\n"));
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    shell(&mut sidecar, "rm ../notes.txt ../more.txt");
    [&notes, &more].into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(sidecar.ask(json!({"type": "turn.end"}))["notices"], Value::Null);
    turn(&mut sidecar, "t2");
    shell(&mut sidecar, "rm -rf /");
    let ended = sidecar.ask(json!({"type": "turn.end"}));
    let told = ended["notices"][0].as_str().unwrap_or_else(|| panic!("{ended}"));
    assert!(told.contains("turn `t2`") && told.contains("`piton undo` cannot restore: `/`"), "{told}");
    turn(&mut sidecar, "t3");
    assert_eq!(sidecar.ask(json!({"type": "turn.end"}))["notices"], Value::Null);
    // A client that tells of no end is told with what comes next.
    turn(&mut sidecar, "t4");
    shell(&mut sidecar, "rm -rf /");
    let begun = sidecar.ask(json!({"type": "turn.start", "turn": "t5"}));
    let notices = begun["notices"].to_string();
    assert!(notices.contains("turn `t4`"), "{notices}");
}

#[test]
fn a_file_outside_of_all_workspaces_comes_back_by_its_name() {
    let Some(lab) = Lab::lasting() else { return };
    let notes = beside(&lab, "notes.txt", "mine\n");
    let home = beside(&lab, "home/letter.txt", "dear\n");
    lab.write("own.txt", "own\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    for (file, command) in [(&notes, "rm ../notes.txt"), (&home, "rm ~/letter.txt")] {
        let content = std::fs::read_to_string(file).unwrap();
        let reply = shell(&mut sidecar, command);
        let checkpoint = outside(&reply).clone();
        assert_eq!((&checkpoint["status"], not_held(&reply)), (&json!("taken"), vec![]), "{reply}");
        assert_eq!(reply["checkpoint"]["status"], "none", "the own workspace is not reached: {reply}");
        lab.sh(command);
        let named = file.to_string_lossy().into_owned();
        let n = number(&checkpoint);
        let shown = lab.piton(&["show", "--outside", &n]);
        assert!(shown.stdout.contains(&named), "{shown:?}");
        let print = lab.piton(&["show", "--outside", &format!("{n}:{named}")]);
        assert_eq!(print.stdout, content, "{print:?}");
        // Never without a name.
        let unnamed = lab.piton(&["restore", "--outside", &n, "--yes"]);
        assert_eq!(unnamed.code, 2, "{unnamed:?}");
        assert!(unnamed.stderr.contains("you must give their paths"), "{unnamed:?}");
        assert!(!file.exists());
        let back = lab.piton(&["restore", "--outside", &n, &named, "--yes"]);
        assert_eq!(back.code, 0, "{back:?}");
        assert!(back.stdout.contains(&named) && back.stdout.contains("piton undo --outside"), "{back:?}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), content);
    }
    assert_eq!(sidecar.finish(), 0);
    let listed = lab.piton(&["list", "--outside"]);
    assert!(listed.stdout.contains("before rm ../notes.txt"), "{listed:?}");
    let rows = lab.piton(&["list", "--outside", "--json", "--kind", "auto"]).json();
    assert_eq!((&rows["checkpoints"][0]["run"], &rows["total"]), (&json!(rows["checkpoints"][0]["run"]), &json!(1)));
    std::fs::remove_file(&notes).unwrap();
    let differs = lab.piton(&["diff", "--outside", "1", "--stat"]);
    assert!(differs.stdout.contains(&format!(" {} | ", notes.display())), "{differs:?}");
    let found = lab.piton(&["find", "--outside", &notes.to_string_lossy()]);
    assert!(found.stdout.contains(&*notes.to_string_lossy()), "{found:?}");
}

/// A person reverted the change in the workspace by hand, so undo restores only the file outside.
#[test]
fn a_turn_of_which_only_the_outside_is_left_is_undone_once() {
    let Some(lab) = Lab::lasting() else { return };
    let notes = beside(&lab, "notes.txt", "mine\n");
    lab.write("a", "before\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    for (action, command, line) in [("1", "rm ../notes.txt", "rm ../notes.txt"), ("2", "cp ../b a", "echo after > a")] {
        sidecar.ask(json!({"type": "shell.before", "command": command, "action": action}));
        lab.sh(line);
        sidecar.ask(json!({"type": "shell.after", "action": action, "exit_code": 0}));
    }
    sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(sidecar.finish(), 0);
    lab.write("a", "before\n");
    let undone = lab.piton(&["undo", "--yes"]);
    assert_eq!(std::fs::read_to_string(&notes).unwrap_or_default(), "mine\n", "{undone:?}");
    let nothing = lab.piton(&["undo", "--yes"]);
    assert!(nothing.code == 3 && nothing.stdout.contains("nothing"), "{nothing:?}");
    assert!(!nothing.stdout.contains("t-1"), "it stops at the turn again: {nothing:?}");
}

#[test]
fn a_file_outside_that_an_undo_restores_is_not_called_lost() {
    let Some(lab) = Lab::lasting() else { return };
    let files = [beside(&lab, "notes.txt", "mine\n"), beside(&lab, "home/.bashrc", "alias\n")];
    lab.write("own.txt", "own\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let lost = "restoring files does not undo that";
    let warnings = |reply: &Value| reply["warnings"].to_string();
    // Nothing restores a file of the system, or one that does not exist yet.
    for command in ["rm ../notes.txt /etc/passwd", "cp own.txt ~/.new"] {
        let reply = shell(&mut sidecar, command);
        assert!(warnings(&reply).contains(lost), "{reply}");
        sidecar.ask(json!({"type": "shell.after", "command": command, "exit_code": 1}));
    }
    sidecar.ask(json!({"type": "turn.end"}));
    turn(&mut sidecar, "t2");
    for command in ["rm ../notes.txt", "rm ~/.bashrc own.txt"] {
        let reply = shell(&mut sidecar, command);
        let message = warnings(&reply);
        assert!(message.contains("`rm` changes files outside the workspace") && !message.contains(lost), "{reply}");
        lab.sh(command);
        sidecar.ask(json!({"type": "shell.after", "command": command, "exit_code": 0}));
    }
    let ended = sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(ended["ok"], true, "{ended}");
    assert_eq!(sidecar.finish(), 0);
    let listed = lab.piton(&["list"]);
    assert!(!listed.stdout.contains("restoring files does not undo"), "{listed:?}");
    for flag in ["--preview", "--yes"] {
        let undone = lab.piton(&["undo", flag]);
        assert!(undone.code == 0 && !undone.stdout.contains("piton cannot undo"), "{undone:?}");
        // The directory of a deleted file still exists.
        assert!(!undone.stdout.contains("/home/\n"), "{undone:?}");
    }
    assert!(files.iter().all(|file| file.exists()) && lab.work.join("own.txt").exists());
    // A restore of the workspace does not change them, and lists all effects since the checkpoint.
    let restored = lab.piton(&["restore", "1", "--yes"]);
    assert!(restored.stdout.contains("piton cannot undo: `rm` changes files outside the workspace"), "{restored:?}");
}

#[test]
fn a_directory_outside_comes_back_whole() {
    let Some(lab) = Lab::lasting() else { return };
    for (path, content) in [
        ("p2/src/a.rs", "a\n"),
        ("p2/.gitignore", "out/\n.env\n"),
        ("p2/out/x", "made\n"),
        ("p2/.env", "KEY=1\n"),
        ("p2/deep/er/b", "b\n"),
    ] {
        beside(&lab, path, content);
    }
    let dir = lab.root().join("p2");
    std::os::unix::fs::symlink("src/a.rs", dir.join("link")).unwrap();
    std::fs::create_dir(dir.join("empty")).unwrap();
    let before = tree(&dir);
    let mut sidecar = Sidecar::start(&lab, &[]);
    let reply = shell(&mut sidecar, "rm -rf ../p2");
    assert_eq!((&outside(&reply)["status"], not_held(&reply)), (&json!("taken"), vec![]), "{reply}");
    let n = number(outside(&reply));
    assert_eq!(sidecar.finish(), 0);
    lab.sh("rm -rf ../p2");
    let back = lab.piton(&["restore", "--outside", &n, "../p2", "--yes"]);
    assert_eq!(back.code, 0, "{back:?}");
    let above = format!("    {}/\n", lab.root().display());
    assert!(!back.stdout.contains(&above), "a directory that is there does not come back: {back:?}");
    assert_eq!(tree(&dir), before);
    let undone = lab.piton(&["undo", "--outside", "--yes"]);
    assert_eq!((undone.code, dir.exists()), (0, false), "{undone:?}");
}

#[test]
fn whatever_replaces_a_file_outside_is_captured_first() {
    for command in [
        "echo new > ../b",
        "mv a ../b",
        "cp a ../b",
        "cp a ../",
        "sed -i s/o/n/ ../b",
        "cd .. && rm b",
        "rm ../*",
        "cd ..; for f in *; do rm -f $f; done",
        "for f in ../*; do rm -f \"$f\"; done",
        "find .. -maxdepth 1 -name b -delete",
        "truncate -s 0 ../b",
        "rm into/b",
    ] {
        let Some(lab) = Lab::lasting() else { return };
        lab.write("a", "new\n");
        beside(&lab, "b", "old\n");
        std::os::unix::fs::symlink("..", lab.work.join("into")).unwrap();
        let command = if command == "cp a ../" {
            beside(&lab, "a", "older\n");
            command
        } else {
            command
        };
        let mut sidecar = Sidecar::start(&lab, &[]);
        let reply = shell(&mut sidecar, command);
        let checkpoint = outside(&reply);
        assert_eq!(checkpoint["status"], "taken", "{command}: {reply}");
        let name = if command == "cp a ../" { "a" } else { "b" };
        let held = format!("{}:{}", number(checkpoint), lab.root().join(name).display());
        let content = lab.piton(&["show", "--outside", &held]).stdout;
        assert!(["old\n", "older\n"].contains(&content.as_str()), "{command}: {content}: {reply}");
        assert_eq!(sidecar.finish(), 0);
    }
    // New paths, those of the system, and temporary ones cost nothing.
    let Some(lab) = Lab::lasting() else { return };
    let mut sidecar = Sidecar::start(&lab, &[]);
    for command in ["echo new > ../c", "rm -f ../none", "rm -f /etc/hostname", "rm -rf /tmp/none", "cat ../b", "ls .."]
    {
        let reply = shell(&mut sidecar, command);
        assert!(reply.get("others").is_none(), "{command}: {reply}");
    }
    let all = shell(&mut sidecar, "rm -rf /");
    assert_eq!((&outside(&all)["status"], not_held(&all)), (&json!("none"), vec!["/"]), "{all}");
    if Path::new("/opt").is_dir() {
        let wide = shell(&mut sidecar, "chmod -R go-w /opt");
        assert_eq!((&outside(&wide)["status"], not_held(&wide)), (&json!("none"), vec!["/opt"]), "{wide}");
    }
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn a_path_of_another_workspace_belongs_to_it_under_the_same_turn() {
    let Some(lab) = Lab::lasting() else { return };
    lab.write("own.txt", "own\n");
    beside(&lab, "p2/a.txt", "a\n");
    beside(&lab, "p2/sub/b.txt", "b\n");
    let p2 = lab.root().join("p2");
    // Otherwise git would be about the repository in which this test was built.
    if git(&lab, &["init", "-q", "../p2"]).is_none() {
        return;
    }
    assert_eq!(lab.piton_in(&p2, &["checkpoint", "before"]).code, 0);
    beside(&lab, "p2/new.txt", "new\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let reply = shell(&mut sidecar, "rm own.txt ../p2/a.txt");
    let first = other(&reply, &p2).clone();
    assert_eq!((&first["kind"], &first["status"]), (&json!("auto"), &json!("taken")), "{reply}");
    assert_eq!(reply["checkpoint"]["status"], "taken");
    let show = |cwd: &Path, n: &str| lab.piton_in(cwd, &["show", n, "--json"]).json();
    let (here, there) = (show(&lab.work, &number(&reply["checkpoint"])), show(&p2, &number(&first)));
    assert_eq!((&here["run"], &here["turn"]), (&there["run"], &there["turn"]));
    assert_eq!(there["turn"], "t1");
    assert_eq!(there["reason"], "before shell: rm own.txt ../p2/a.txt");
    // The turn has its checkpoint there too.
    let again = shell(&mut sidecar, "rm ../p2/sub/b.txt");
    let held = other(&again, &p2);
    assert_eq!((&held["status"], &held["id"]), (&json!("held"), &first["id"]), "{again}");
    beside(&lab, "p2/sub/b.txt", "work of the turn\n");
    let step = shell(&mut sidecar, "rm -r ../p2/sub");
    let step = other(&step, &p2);
    assert_eq!((&step["status"], &step["kind"]), (&json!("taken"), &json!("step")), "{step}");
    assert_eq!(number(step), format!("{}.1", number(&first)));
    turn(&mut sidecar, "t2");
    let next = shell(&mut sidecar, "cd ../p2 && make clean");
    assert_eq!(other(&next, &p2)["status"], "unchanged", "nobody changed anything since: {next}");
    for command in ["git -C ../p2 reset --hard", "cd ../p2 && git stash", "git -C ../p2 clean -fdx"] {
        beside(&lab, "p2/later.txt", command);
        let discards = shell(&mut sidecar, command);
        assert_eq!(other(&discards, &p2)["status"], "taken", "{command}: {discards}");
    }
    assert_eq!(sidecar.finish(), 0);
    std::fs::remove_dir_all(p2.join("sub")).unwrap();
    assert_eq!(lab.piton_in(&p2, &["restore", &number(step), "--yes"]).code, 0);
    assert_eq!(std::fs::read_to_string(p2.join("sub/b.txt")).unwrap(), "work of the turn\n");
    assert!(lab.piton(&["list", "--outside"]).code == 3, "nothing is outside");
    assert!(id_of(&lab, 1).len() == 40);
}

#[test]
fn a_session_in_the_home_directory_finds_the_projects_below_it() {
    let table: &[(&str, Value)] = &[
        ("tool path", json!({"type": "tool.before", "tool": "Write", "input": {"file_path": "HOME/proj/src/a.rs"}})),
        (
            "relative tool path",
            json!({"type": "tool.before", "tool": "Write", "input": {"file_path": "proj/src/a.rs"}}),
        ),
        ("cd", json!({"type": "shell.before", "command": "cd proj && rm -rf src"})),
        ("path", json!({"type": "shell.before", "command": "rm -rf proj/src"})),
        ("pattern", json!({"type": "shell.before", "command": "rm proj/src/*"})),
        ("opaque behind cd", json!({"type": "shell.before", "command": "cd proj && make clean"})),
        ("opaque by option", json!({"type": "shell.before", "command": "make -C proj clean"})),
        ("reset", json!({"type": "shell.before", "command": "cd proj && git reset --hard"})),
    ];
    for (what, event) in table {
        let Some(lab) = Lab::lasting() else { return };
        let project = lab.home.join("proj");
        beside(&lab, "home/proj/Cargo.toml", "[package]\n");
        beside(&lab, "home/proj/src/a.rs", "a\n");
        beside(&lab, "home/loose.txt", "loose\n");
        if *what == "reset" && git(&lab, &["init", "-q", "../home/proj"]).is_none() {
            return;
        }
        let mut sidecar = Sidecar::start_in(&lab, &lab.home, &[]);
        assert_eq!(sidecar.ask(json!({"type": "hello"}))["workspace"]["scope"], "targets-only");
        turn(&mut sidecar, "t1");
        let event = event.to_string().replace("HOME", &lab.home.to_string_lossy());
        let reply = sidecar.ask(serde_json::from_str(&event).unwrap());
        let checkpoint = other(&reply, &project);
        assert_eq!((&checkpoint["status"], &checkpoint["kind"]), (&json!("taken"), &json!("auto")), "{what}: {reply}");
        let held = format!("{}:src/a.rs", number(checkpoint));
        assert_eq!(lab.piton_in(&project, &["show", &held]).stdout, "a\n", "{what}");
        let whole = format!("{}:Cargo.toml", number(checkpoint));
        assert_eq!(lab.piton_in(&project, &["show", &whole]).stdout, "[package]\n", "{what}");
        // A path in no project stays with the home directory, as before.
        let loose = shell(&mut sidecar, "rm loose.txt");
        assert!(loose.get("others").is_none() && loose["checkpoint"]["status"] == "taken", "{what}: {loose}");
        assert_eq!(sidecar.finish(), 0);
    }
    // An event that runs in the project is the project's own.
    let Some(lab) = Lab::lasting() else { return };
    beside(&lab, "home/proj/Cargo.toml", "[package]\n");
    let project = lab.home.join("proj");
    let mut sidecar = Sidecar::start_in(&lab, &lab.home, &[]);
    let reply = sidecar.ask(json!({"type": "shell.before", "command": "make clean", "cwd": project}));
    assert_eq!((&reply["checkpoint"]["status"], reply.get("others")), (&json!("taken"), None), "{reply}");
    let id = reply["checkpoint"]["id"].as_str().unwrap();
    assert_eq!(lab.piton_in(&project, &["show", &format!("{id}:Cargo.toml")]).code, 0);
    // Nothing is captured as a whole where no project is.
    assert_eq!(shell(&mut sidecar, "make clean")["checkpoint"]["status"], "none");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn relative_paths_count_from_the_clients_directory() {
    let lab = Lab::new();
    let own = |sidecar: &mut Sidecar, event: Value| sidecar.ask(event);
    lab.write("sub/a.txt", "deep\n");
    lab.write("a.txt", "top\n");
    let sub = lab.work.join("sub");
    // By the event, by `hello`, by the process: in this order.
    for (n, hello, cwd, expected) in [
        (0, json!({"type": "hello", "workspace": lab.work}), Some(&sub), "sub/a.txt"),
        (1, json!({"type": "hello", "workspace": lab.work, "cwd": sub}), None, "sub/a.txt"),
        (2, json!({"type": "hello", "workspace": lab.work, "cwd": sub}), Some(&lab.work), "a.txt"),
        (3, json!({"type": "hello", "workspace": lab.work}), None, "a.txt"),
    ] {
        lab.write(".gitignore", "a.txt\n");
        let mut sidecar = Sidecar::start(&lab, &["--set", "ignored.files=0"]);
        own(&mut sidecar, hello);
        let event = json!({"type": "tool.before", "tool": "Write", "paths": ["a.txt"], "writes": true, "cwd": cwd});
        let reply = own(&mut sidecar, event);
        let id = reply["checkpoint"]["id"].as_str().unwrap_or_default();
        let shown = lab.piton(&["show", id, "--json"]).json();
        let paths = shown["paths"]["items"].to_string();
        assert!(paths.contains(&format!("\"{expected}\"")), "{n}: {reply}: {shown}");
        assert_eq!(paths.contains("\"sub/a.txt\""), expected == "sub/a.txt", "{n}: {shown}");
        assert_eq!(sidecar.finish(), 0);
        lab.write(expected, format!("{n}\n"));
    }
}

#[test]
fn what_is_beyond_the_budget_is_named_before_the_action_runs() {
    let Some(lab) = Lab::lasting() else { return };
    let huge = beside(&lab, "p2/huge", "");
    std::fs::File::options().write(true).open(&huge).unwrap().set_len(65 << 20).unwrap();
    beside(&lab, "p2/small", "small\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let dir = lab.root().join("p2");
    for _ in 0..2 {
        let reply = shell(&mut sidecar, "rm -rf ../p2");
        assert_eq!(not_held(&reply), [dir.to_string_lossy()], "{reply}");
        assert_eq!(reply["not_held"][0]["bytes"], 65 << 20, "{reply}");
        let held = format!("{}:{}", number(outside(&reply)), dir.join("small").display());
        assert_eq!(lab.piton(&["show", "--outside", &held]).stdout, "small\n");
    }
    assert_eq!(sidecar.finish(), 0);
    let listed = lab.piton(&["list", "--outside"]).stdout;
    assert!(listed.contains(&format!("not saved: {}", dir.display())), "{listed}");
}

/// Holds the lock of a workspace's records until it is dropped.
struct Locked(Child);

impl Locked {
    fn new(lab: &Lab, id: &str) -> Option<Locked> {
        let lock = lab.home.join("piton/workspaces").join(id).join("lock");
        let mut command = lab.command("flock", &lab.work);
        command.arg(lock).args(["sh", "-c", "echo locked; cat > /dev/null"]);
        let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            lacking("flock");
            return None;
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "locked\n");
        Some(Locked(child))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_part_that_is_late_or_fails_is_said_and_holds_the_action_where_the_policy_wants_that() {
    let Some(lab) = Lab::lasting() else { return };
    lab.set("on_failure: hold\n");
    lab.write("own.txt", "own\n");
    beside(&lab, "notes.txt", "mine\n");
    beside(&lab, "p2/a.txt", "a\n");
    let p2 = lab.root().join("p2");
    assert_eq!(lab.piton_in(&p2, &["checkpoint", "before"]).code, 0);
    let id = lab.piton_in(&p2, &["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    beside(&lab, "p2/a.txt", "newer\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    assert_eq!(shell(&mut sidecar, "rm own.txt")["proceed"], true);
    if let Some(locked) = Locked::new(&lab, &id) {
        let event = json!({"type": "shell.before", "command": "rm own.txt ../p2/a.txt", "deadline_ms": 300});
        let reply = sidecar.ask(event);
        let late = other(&reply, &p2);
        assert_eq!((&late["status"], &reply["proceed"]), (&json!("late"), &json!(false)), "{reply}");
        assert_eq!(reply["checkpoint"]["status"], "held", "{reply}");
        drop(locked);
        let pending = late["pending"].clone();
        let notice = sidecar.notice(|notice| notice["pending"] == pending);
        assert_eq!(notice["workspace"], p2.to_string_lossy().as_ref(), "{notice}");
        assert_eq!(notice["checkpoint"]["status"], "taken", "{notice}");
    }
    // No further workspace can be added.
    let adding = lab.home.join("piton/workspaces.lock");
    std::fs::remove_file(&adding).unwrap();
    std::fs::create_dir(&adding).unwrap();
    let reply = shell(&mut sidecar, "rm own.txt ../notes.txt");
    assert_eq!((&outside(&reply)["status"], &reply["proceed"]), (&json!("failed"), &json!(false)), "{reply}");
    assert_eq!(reply["checkpoint"]["status"], "held", "{reply}");
    assert!(outside(&reply)["reason"].as_str().is_some_and(|why| !why.is_empty()), "{reply}");
    std::fs::remove_dir(&adding).unwrap();
    assert_eq!(outside(&shell(&mut sidecar, "rm ../notes.txt"))["status"], "taken");
    // The switch of a workspace is its own.
    assert_eq!(lab.piton_in(&p2, &["off"]).code, 0);
    assert_eq!(other(&shell(&mut sidecar, "rm ../p2/a.txt"), &p2)["status"], "off");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn hooks_without_a_daemon_guard_what_is_outside_too() {
    let Some(lab) = Lab::lasting() else { return };
    let notes = beside(&lab, "notes.txt", "mine\n");
    let huge = beside(&lab, "p2/huge", "");
    std::fs::File::options().write(true).open(&huge).unwrap().set_len(65 << 20).unwrap();
    let hook = |command: &str| {
        let payload = json!({"hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "t", "cwd": lab.work,
            "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "u"});
        let mut hook = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
        hook.args(["hook", "claude-code", "PreToolUse", "--no-daemon"]);
        let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    hook("rm ../notes.txt");
    let said = hook("rm -rf ../p2");
    assert!(said.contains(&format!("not saved: {}", lab.root().join("p2").display())), "{said}");
    std::fs::remove_file(&notes).unwrap();
    let rows = lab.piton(&["list", "--outside", "--json", "--steps"]).json();
    let rows: Vec<String> = rows["checkpoints"].as_array().unwrap().iter().map(number).collect();
    assert_eq!(rows, ["1.1", "1"], "the second is a step of the turn's");
    assert_eq!(lab.piton(&["restore", "--outside", "1", "../notes.txt", "--yes"]).code, 0);
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "mine\n");
}

#[test]
fn what_is_written_through_a_link_is_held_where_it_lies() {
    for (command, loses) in [
        ("echo x > l", true),
        ("cp own.txt l", true),
        ("echo x | tee l", true),
        ("truncate -s0 l", true),
        ("truncate -s0 *", true),
        ("rm l", false),
        ("mv own.txt l", false),
    ] {
        let Some(lab) = Lab::lasting() else { return };
        let file = beside(&lab, "precious", "mine\n");
        lab.write("own.txt", "own\n");
        std::os::unix::fs::symlink("../precious", lab.work.join("l")).unwrap();
        let mut sidecar = Sidecar::start(&lab, &[]);
        turn(&mut sidecar, "t1");
        let reply = shell(&mut sidecar, command);
        assert_eq!(sidecar.finish(), 0);
        lab.sh(command);
        assert_eq!(
            (reply["others"].is_array(), reply["checkpoint"]["status"].as_str()),
            (loses, Some("taken")),
            "{reply}"
        );
        if loses {
            assert_ne!(std::fs::read_to_string(&file).unwrap(), "mine\n", "{command}");
            let n = number(outside(&reply));
            assert_eq!(lab.piton(&["restore", "--outside", &n, file.to_str().unwrap(), "--yes"]).code, 0);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n", "{command}");
        let own = lab.piton(&["restore", "1", "--yes"]);
        assert!(lab.work.join("l").is_symlink(), "{command}: {own:?}");
    }
    // A tool that writes follows it too.
    let Some(lab) = Lab::lasting() else { return };
    beside(&lab, "precious", "mine\n");
    std::os::unix::fs::symlink("../precious", lab.work.join("l")).unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let path = lab.work.join("l");
    let reply =
        sidecar.ask(json!({"type": "tool.before", "tool": "Write", "input": {"file_path": path, "content": "x"}}));
    assert_eq!(outside(&reply)["status"], "taken", "{reply}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn uncommitted_work_in_a_repository_that_nobody_has_opened_is_held() {
    for command in [
        "git -C ../other reset -q --hard",
        "cd ../other && git reset -q --hard",
        "cd ../other && git checkout -q -- f",
        "git -C ../other stash -q",
        "git --git-dir=../other/.git --work-tree=../other checkout -q -f",
    ] {
        let Some(lab) = Lab::lasting() else { return };
        let file = beside(&lab, "other/f", "one\n");
        let other_dir = file.parent().unwrap().to_str().unwrap().to_owned();
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
            if git(&lab, &[&["-C", &other_dir], args].concat()).is_none() {
                return;
            }
        }
        beside(&lab, "other/f", "in progress\n");
        let mut sidecar = Sidecar::start(&lab, &[]);
        turn(&mut sidecar, "t1");
        let reply = shell(&mut sidecar, command);
        assert_eq!(sidecar.finish(), 0);
        let n = number(other(&reply, Path::new(&other_dir)));
        lab.sh(command);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n", "{command}");
        let restored = lab.piton_in(Path::new(&other_dir), &["restore", &n, "f", "--yes"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "in progress\n", "{command}: {restored:?}");
    }
}

#[test]
fn what_lies_behind_links_is_saved_before_an_opaque_action() {
    let Some(lab) = Lab::lasting() else { return };
    let (app, letter) = (beside(&lab, "apps/deep/app", "app\n"), beside(&lab, "letter", "dear\n"));
    std::fs::File::create(lab.root().join("apps/huge")).unwrap().set_len(6_000_000).unwrap();
    let mine = beside(&lab, "other/f", "work\n");
    assert_eq!(lab.piton_in(mine.parent().unwrap(), &["checkpoint", "known"]).code, 0);
    beside(&lab, "other/f", "newer work\n");
    lab.write("pack.py", "");
    lab.sh("mkdir staging; ln -s ../../apps staging/apps; ln -s ../letter letter; ln -s ../other/f work; ln -s \"$HOME\" mine");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let mut checkpoints = Vec::new();
    for _ in 0..2 {
        let reply = shell(&mut sidecar, "python3 pack.py");
        let others = reply["others"].as_array().unwrap_or_else(|| panic!("no others: {reply}"));
        let roots: Vec<&str> = others.iter().filter_map(|other| other["workspace"].as_str()).collect();
        assert_eq!(roots, ["/", lab.root().join("other").to_str().unwrap()], "{reply}");
        let listed = [lab.home.clone(), lab.root().join("apps")].map(|path| path.to_string_lossy().into_owned());
        let mut left_out = not_held(&reply);
        left_out.sort_unstable();
        assert_eq!(left_out, [&listed[1], &listed[0]], "{reply}");
        checkpoints.push(others.iter().map(|other| number(&other["checkpoint"])).collect::<Vec<_>>());
    }
    assert_eq!(checkpoints[0], checkpoints[1], "nothing has changed meanwhile");
    let show = |at: &Path, args: &[&str]| lab.piton_in(at, args).stdout;
    for (file, content) in [(&app, "app\n"), (&letter, "dear\n")] {
        let held = format!("{}:{}", checkpoints[0][0], file.display());
        assert_eq!(show(&lab.work, &["show", "--outside", &held]), content);
    }
    assert_eq!(show(mine.parent().unwrap(), &["show", &format!("{}:f", checkpoints[0][1])]), "newer work\n");
    // A reader changes nothing behind a link.
    assert_eq!(shell(&mut sidecar, "cat letter")["others"], Value::Null);
    lab.sh("rm ../apps/deep/app ../letter ../other/f");
    sidecar.ask(json!({"type": "shell.after", "command": "python3 pack.py", "exit_code": 0}));
    sidecar.ask(json!({"type": "turn.end"}));
    assert_eq!(sidecar.finish(), 0);
    let undone = lab.piton(&["undo", "--yes"]);
    for (file, content) in [(&app, "app\n"), (&letter, "dear\n"), (&mine, "newer work\n")] {
        assert_eq!(std::fs::read_to_string(file).ok().as_deref(), Some(content), "{undone:?}");
    }
}

#[test]
fn a_directory_of_nobody_is_held_before_an_opaque_action_in_it() {
    let Some(lab) = Lab::lasting() else { return };
    let file = beside(&lab, "notes/deep/f", "mine\n");
    let mut sidecar = Sidecar::start(&lab, &[]);
    turn(&mut sidecar, "t1");
    let n = number(outside(&shell(&mut sidecar, "cd ../notes && make clean")));
    assert_eq!(sidecar.finish(), 0);
    std::fs::remove_dir_all(lab.root().join("notes/deep")).unwrap();
    let restored = lab.piton(&["restore", "--outside", &n, file.to_str().unwrap(), "--yes"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n", "{restored:?}");
}
