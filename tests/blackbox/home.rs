//! piton's home as a whole: directories that move, go and come back, histories that are cleared, and the store's place.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::faults::{SIGKILL, full, strace, traced};
use super::support::{Lab, Output, Sidecar, code, git, id_of, not_allowed};

/// The workspace of a directory, as `store list` has it.
fn stored(lab: &Lab, path: &Path) -> Value {
    let list = lab.piton_in(&lab.root(), &["store", "list", "--json"]).json();
    let all = list["workspaces"].as_array().unwrap().clone();
    all.into_iter().find(|one| one["path"] == path.to_str().unwrap()).unwrap_or_else(|| panic!("{list}"))
}

fn standing(lab: &Lab, path: &Path) -> String {
    stored(lab, path)["standing"].as_str().unwrap().to_owned()
}

fn take_in(lab: &Lab, dir: &Path, label: &str) -> Value {
    let output = lab.piton_in(dir, &["checkpoint", label, "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    output.json()["checkpoint"].clone()
}

fn listed(lab: &Lab, dir: &Path) -> Vec<u64> {
    let list = lab.piton_in(dir, &["list", "--json"]).json();
    list["checkpoints"].as_array().unwrap().iter().map(|row| row["n"].as_u64().unwrap()).collect()
}

fn id_at(lab: &Lab, dir: &Path) -> Value {
    lab.piton_in(dir, &["status", "--json"]).json()["workspace"]["id"].clone()
}

fn run(lab: &Lab, args: &[&str]) -> Output {
    lab.piton_in(&lab.root(), args)
}

/// A file system that tells no birth of a directory proves no move.
fn tells_births(lab: &Lab) -> bool {
    let tells = lab.root().metadata().unwrap().created().is_ok();
    if !tells {
        not_allowed("the birth of a directory");
    }
    tells
}

#[test]
fn a_renamed_project_keeps_its_history() {
    let lab = Lab::new();
    if !tells_births(&lab) {
        return;
    }
    lab.write("a", "1");
    assert_eq!(lab.take("first"), 1);
    let new = lab.root().join("renamed");
    // A sidecar that is still open at the old place records nothing there any more.
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"id": 1, "type": "checkpoint.create", "label": "held"}));
    std::fs::rename(&lab.work, &new).unwrap();
    assert_eq!(standing(&lab, &lab.work), "moved");
    assert_eq!(stored(&lab, &lab.work)["moved_to"], new.to_str().unwrap());
    assert!(
        run(&lab, &["store", "status"]).stdout.contains("renamed; to move its history there, run `piton store adopt ")
    );
    std::fs::write(new.join("a"), "2").unwrap();
    assert_eq!(take_in(&lab, &new, "second")["n"], 3);
    assert_eq!(listed(&lab, &new), [3, 2, 1]);
    let status = lab.piton_in(&new, &["status"]);
    assert!(status.stdout.contains("its history moved with it"), "{status:?}");
    assert_eq!((standing(&lab, &new), stored(&lab, &new)["was"].as_str()), ("live".into(), lab.work.to_str()));
    std::fs::create_dir(&lab.work).unwrap();
    let refused = sidecar.ask(json!({"id": 2, "type": "checkpoint.create", "label": "into the wrong history"}));
    assert_eq!(code(&refused), "workspace-gone", "{refused}");
    sidecar.finish();
    // The directory that is at the old place now is another one.
    lab.write("b", "1");
    assert_eq!(lab.take("other"), 1);
    assert_eq!(listed(&lab, &new), [3, 2, 1]);
    let restored = lab.piton_in(&new, &["restore", "1", "--yes"]);
    assert!(restored.code == 0 && std::fs::read_to_string(new.join("a")).unwrap() == "1", "{restored:?}");
}

#[test]
fn a_deleted_project_is_an_orphan_by_proof_alone() {
    let lab = Lab::new();
    let deep = lab.root().join("throwaway/clone");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("a"), "1").unwrap();
    take_in(&lab, &deep, "first");
    let id = id_at(&lab, &deep);
    assert_eq!(standing(&lab, &deep), "live");
    std::fs::remove_dir_all(&deep).unwrap();
    assert_eq!(standing(&lab, &deep), "orphan");
    // The directory above is another one now: it could be another file system, or another machine.
    std::fs::rename(lab.root().join("throwaway"), lab.root().join("away")).unwrap();
    std::fs::create_dir(lab.root().join("throwaway")).unwrap();
    assert_eq!(standing(&lab, &deep), "unknown");
    std::fs::remove_dir(lab.root().join("throwaway")).unwrap();
    assert_eq!(standing(&lab, &deep), "orphan", "with the directory above it");
    // Made anew at its place it is the same workspace; a copy and a worktree are others.
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("a"), "2").unwrap();
    assert_eq!(standing(&lab, &deep), "live");
    assert_eq!((take_in(&lab, &deep, "second")["n"].clone(), id_at(&lab, &deep)), (json!(2), id.clone()));
    let copy = lab.root().join("copy");
    assert!(Command::new("cp").arg("-a").args([&deep, &copy]).status().unwrap().success());
    take_in(&lab, &copy, "copied");
    assert_ne!(id_at(&lab, &copy), id);
    lab.write("a", "1");
    if git(&lab, &["init", "-q"]).is_some() {
        git(&lab, &["add", "a"]);
        git(&lab, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]);
        let worktree = lab.root().join("worktree");
        git(&lab, &["worktree", "add", "-q", worktree.to_str().unwrap()]);
        lab.take("main");
        take_in(&lab, &worktree, "linked");
        assert_ne!(id_at(&lab, &worktree), id_at(&lab, &lab.work));
        std::fs::remove_dir_all(&worktree).unwrap();
        assert_eq!(standing(&lab, &worktree), "orphan");
    }
}

#[test]
fn without_its_mount_nothing_is_an_orphan() {
    let lab = Lab::new();
    let point = lab.root().join("disk");
    std::fs::create_dir(&point).unwrap();
    let mount = |args: &[&str]| {
        let ran = Command::new("mount").args(args).arg(&point).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    if !mount(&["-t", "tmpfs", "none"]) {
        not_allowed("mounting");
        return;
    }
    let unmount = || assert!(Command::new("umount").arg(&point).status().unwrap().success());
    let (project, inner) = (point.clone(), point.join("project"));
    std::fs::create_dir(&inner).unwrap();
    for dir in [&inner, &project] {
        std::fs::write(dir.join("a"), "1").unwrap();
        take_in(&lab, dir, "first");
        assert_eq!(standing(&lab, dir), "live");
    }
    unmount();
    assert_eq!((standing(&lab, &inner), standing(&lab, &project)), ("unmounted".into(), "unmounted".into()));
    // Another disk at the same place proves nothing of the first one.
    assert!(mount(&["-t", "tmpfs", "other"]));
    let another = standing(&lab, &inner);
    unmount();
    assert_eq!(another, "unknown");
}

#[test]
fn a_copied_project_adopts_the_history_and_keeps_its_own_beside() {
    let lab = Lab::new();
    for n in 1..=2 {
        lab.write("a", n.to_string());
        lab.take(&format!("state {n}"));
    }
    let first = id_of(&lab, 1);
    // As a move to another disk does it.
    let new = lab.root().join("new");
    assert!(Command::new("cp").arg("-a").args([&lab.work, &new]).status().unwrap().success());
    std::fs::remove_dir_all(&lab.work).unwrap();
    let own = take_in(&lab, &new, "own")["id"].as_str().unwrap().to_owned();
    let (old, to) = (lab.work.to_str().unwrap(), new.to_str().unwrap());
    let asked = run(&lab, &["adopt", old, to, "--json"]);
    assert_eq!((asked.code, &asked.json()["done"], &asked.json()["beside"]), (5, &json!(false), &json!(1)));
    assert_eq!(listed(&lab, &new), [1], "nothing is done without a yes");
    let done = run(&lab, &["adopt", old, to, "--yes"]);
    assert!(
        done.code == 0 && done.stdout.contains("(2 checkpoints) moves to") && done.stdout.contains("--undo"),
        "{done:?}"
    );
    assert_eq!(listed(&lab, &new), [2, 1]);
    for id in [&first, &own] {
        let shown = lab.piton_in(&new, &["show", id, "--json"]);
        assert_eq!((shown.code, shown.json()["id"].as_str()), (0, Some(id.as_str())), "{shown:?}");
    }
    std::fs::write(new.join("a"), "lost").unwrap();
    assert_eq!(lab.piton_in(&new, &["restore", &own, "--yes"]).code, 0);
    assert_eq!(std::fs::read_to_string(new.join("a")).unwrap(), "2");
    assert_eq!(lab.piton_in(&new, &["doctor", "--refs"]).code, 0);
    let list = run(&lab, &["store", "list", "--json"]).json();
    assert_eq!(list["workspaces"].as_array().unwrap().len(), 1, "{list}");
    // And back.
    assert_eq!(run(&lab, &["adopt", "--undo", to, "--yes"]).code, 0);
    std::fs::create_dir(&lab.work).unwrap();
    assert_eq!(listed(&lab, &lab.work).len(), 3);
    assert_eq!(run(&lab, &["adopt", lab.home.to_str().unwrap(), to]).code, 3);
}

#[test]
fn a_directory_that_became_a_workspace_by_accident_joins_the_one_above() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.write("sub/package.json", "{}");
    let sub = lab.work.join("sub");
    let own = take_in(&lab, &sub, "by accident")["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.take("whole"), 1);
    let joined = run(&lab, &["adopt", sub.to_str().unwrap(), lab.work.to_str().unwrap(), "--yes", "--json"]);
    assert_eq!((joined.code, &joined.json()["change"]), (0, &json!("joins")));
    std::fs::write(sub.join("b"), "2").unwrap();
    assert_eq!(take_in(&lab, &sub, "from below")["n"], 2);
    assert_eq!(listed(&lab, &lab.work), [2, 1]);
    assert_eq!(stored(&lab, &sub)["part_of"], lab.work.to_str().unwrap());
    let shown = lab.piton(&["--workspace", sub.to_str().unwrap(), "show", &own]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!(run(&lab, &["adopt", "--undo", sub.to_str().unwrap(), "--yes"]).code, 0);
    assert_eq!(listed(&lab, &sub), [1]);
    assert_eq!(run(&lab, &["adopt", "--undo", sub.to_str().unwrap(), "--yes"]).code, 5);
}

#[test]
fn the_store_says_what_it_holds() {
    let lab = Lab::new();
    assert_eq!(run(&lab, &["store", "list"]).code, 3);
    lab.write("a", "1");
    lab.take("first");
    let mut sidecar = Sidecar::start(&lab, &[]);
    sidecar.ask(json!({"id": 1, "type": "run.start", "run": "r1", "client": "tester"}));
    // The worker writes the run's file after the answer.
    let until = Instant::now() + Duration::from_mins(1);
    while stored(&lab, &lab.work)["runs"] == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let one = stored(&lab, &lab.work);
    assert_eq!((&one["guarded"], &one["checkpoints"], &one["standing"]), (&json!(true), &json!(1), &json!("live")));
    assert_eq!((&one["clients"], &one["runs"]), (&json!(["tester"]), &json!(1)));
    let refused = run(&lab, &["store", "clear", "--yes", "--json"]);
    assert_eq!((refused.code, refused.error().as_str()), (5, "conflict"), "{refused:?}");
    let refused = run(&lab, &["store", "move", "elsewhere", "--yes", "--json"]);
    assert_eq!((refused.code, refused.error().as_str()), (5, "conflict"), "{refused:?}");
    sidecar.finish();
    let status = run(&lab, &["store", "status", "--json"]).json();
    assert_eq!((&status["cap"], &status["workspaces"][0]["guarded"]), (&json!(2_048_000_000u64), &json!(false)));
    assert!(status["loose"].as_u64().unwrap() + status["packs"].as_u64().unwrap() > 0, "{status}");
    let text = run(&lab, &["store", "status"]).stdout;
    assert!(text.contains("1 live") && text.contains("2 checkpoints") && text.contains("tester"), "{text}");
}

#[test]
fn cleared_histories_are_gone_and_explained() {
    let lab = Lab::new();
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("b"), "1").unwrap();
    lab.write("a", "1");
    lab.take("first");
    let (first, second) = (id_of(&lab, 1), take_in(&lab, &other, "other")["id"].as_str().unwrap().to_owned());
    let work = lab.work.to_str().unwrap();
    let asked = run(&lab, &["store", "clear", "--workspace", work, "--json"]);
    assert_eq!((asked.code, &asked.json()["workspaces"][0]["cleared"]), (5, &json!(false)));
    assert_eq!(run(&lab, &["store", "clear", "--workspace", "/none", "--yes"]).code, 3);
    let done = run(&lab, &["store", "clear", "--workspace", work, "--yes"]);
    assert!(done.code == 0 && done.stdout.contains("Cleared 1 checkpoint."), "{done:?}");
    assert_eq!(lab.read("a"), "1", "the files stay");
    let gone = lab.piton_in(&other, &["show", &first]);
    assert!(gone.code == 3 && gone.stderr.contains("by `piton store clear`"), "{gone:?}");
    assert_eq!(lab.piton_in(&other, &["show", &second]).code, 0);
    assert_eq!(lab.take("begins anew"), 1);
    let done = run(&lab, &["store", "clear", "--yes", "--json"]);
    assert_eq!((done.code, done.json()["workspaces"].as_array().unwrap().len()), (0, 2), "{done:?}");
    assert_eq!(run(&lab, &["store", "clear", "--yes"]).code, 3);
    assert_eq!(lab.piton_in(&other, &["show", &second]).code, 3);
    if let Some(text) = lab.store_git(&["fsck", "--full", "--no-dangling"]) {
        assert!(!text.contains("missing") && !text.contains("error"), "{text}");
    }
}

#[test]
fn the_store_moves_and_everything_finds_it() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("first");
    // A file outside every workspace is saved too.
    std::fs::write(lab.root().join("outside"), "kept").unwrap();
    let mut sidecar = Sidecar::start(&lab, &[]);
    let line = format!("rm {}", lab.root().join("outside").display());
    assert_eq!(sidecar.ask(json!({"type": "shell.before", "command": line}))["proceed"], true);
    assert_eq!(sidecar.finish(), 0);
    let (old, new) = (lab.home.join("piton"), lab.root().join("big/store"));
    std::fs::create_dir(lab.root().join("big")).unwrap();
    let asked = run(&lab, &["store", "move", new.to_str().unwrap(), "--json"]);
    assert_eq!((asked.code, &asked.json()["moved"]), (5, &json!(false)));
    let started = run(&lab, &["daemon", "start"]);
    assert_eq!(started.code, 0, "{started:?}");
    assert_eq!(run(&lab, &["store", "move", new.to_str().unwrap(), "--yes"]).code, 5, "the daemon runs");
    assert_eq!(run(&lab, &["daemon", "stop"]).code, 0);
    let done = run(&lab, &["store", "move", new.to_str().unwrap(), "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(old.read_link().unwrap(), new);
    assert_eq!(listed(&lab, &lab.work), [1]);
    lab.write("a", "2");
    assert_eq!(lab.take("second"), 2);
    assert!(new.join("store.git").is_dir());
    assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0);
}

#[test]
fn a_tag_keeps_the_store_out_of_backups_unless_told_otherwise() {
    let lab = Lab::new();
    lab.write("a", "1");
    lab.take("first");
    let tag = lab.home.join("piton/CACHEDIR.TAG");
    let text = std::fs::read_to_string(&tag).unwrap();
    assert!(text.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"), "{text}");
    lab.set("backup: include\n");
    assert_eq!(run(&lab, &["store", "status"]).code, 0);
    assert!(!tag.exists());
    lab.set("");
    assert_eq!(run(&lab, &["store", "status"]).code, 0);
    assert!(tag.exists());
    // From the beginning.
    let lab = Lab::new();
    lab.set("backup: include\n");
    lab.write("a", "1");
    lab.take("first");
    assert!(!lab.home.join("piton/CACHEDIR.TAG").exists());
}

#[test]
fn a_directory_that_may_be_a_moved_one_is_told_of() {
    let lab = Lab::new();
    let deep = lab.root().join("above/project");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("a"), "1").unwrap();
    take_in(&lab, &deep, "first");
    // Another directory has taken the place of the one above, so nothing is proved.
    let new = lab.root().join("away/project");
    std::fs::rename(lab.root().join("above"), lab.root().join("away")).unwrap();
    std::fs::create_dir(lab.root().join("above")).unwrap();
    assert_eq!(take_in(&lab, &new, "anew")["n"], 1);
    let status = lab.piton_in(&new, &["status"]).stdout;
    let line = format!("`piton store adopt {} {}`", deep.display(), new.display());
    assert!(status.contains(&line), "{status}");
    assert_eq!(stored(&lab, &deep)["moved_to"], new.to_str().unwrap());
    assert_eq!(run(&lab, &["adopt", deep.to_str().unwrap(), new.to_str().unwrap(), "--yes"]).code, 0);
    assert_eq!(listed(&lab, &new), [1]);
}

/// Runs piton and kills it after a while, if it has not ended by then.
fn killed(lab: &Lab, args: &[&str], after: Duration) {
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.root());
    let mut child = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The moment is the test's subject, not its synchronisation.
    std::thread::sleep(after);
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn killed_clears_and_adoptions_go_on_the_next_time() {
    for round in 0..24u64 {
        let lab = Lab::new();
        let new = lab.root().join("new");
        std::fs::create_dir(&new).unwrap();
        for n in 1..=3 {
            lab.write("a", n.to_string());
            lab.take("old");
        }
        std::fs::write(new.join("a"), "new").unwrap();
        let (old_id, new_id) = (id_of(&lab, 2), take_in(&lab, &new, "own")["id"].as_str().unwrap().to_owned());
        let (old, to) = (lab.work.to_str().unwrap(), new.to_str().unwrap());
        std::fs::remove_dir_all(&lab.work).unwrap();
        let is_clear = round % 2 == 0;
        let args: &[&str] = if is_clear { &["store", "clear", "--yes"] } else { &["adopt", old, to, "--yes"] };
        killed(&lab, args, Duration::from_millis(4 + round * 3));
        let doctor = run(&lab, &["doctor", "--refs"]);
        assert_eq!(doctor.code, 0, "round {round}: {doctor:?}");
        // Done by then, or done now.
        let again = run(&lab, args);
        assert!([0, 3].contains(&again.code), "round {round}: {again:?}");
        std::fs::create_dir_all(&lab.work).unwrap();
        for id in [&old_id, &new_id] {
            let shown = lab.piton_in(&new, &["show", id]);
            let wanted = if is_clear { 3 } else { 0 };
            assert_eq!(shown.code, wanted, "round {round}: {shown:?}");
            assert!(!is_clear || shown.stderr.contains("was pruned on"), "round {round}: {shown:?}");
        }
        let left = std::fs::read_dir(lab.home.join("piton")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(left.filter(|name| name.to_string_lossy().contains("removed-")).count(), 0, "round {round}");
    }
}

#[test]
fn a_killed_move_to_another_disk_leaves_a_whole_store() {
    let shm = Path::new("/dev/shm");
    let device = |path: &Path| path.metadata().ok().map(|facts| facts.dev());
    let Ok(other) = tempfile::tempdir_in(shm) else { return not_allowed("writing to another file system") };
    for round in 0..12u64 {
        let lab = Lab::new();
        if device(shm) == device(&lab.root()) {
            return not_allowed("another file system");
        }
        lab.write("a", "1");
        lab.take("first");
        let new = other.path().join(format!("store{round}"));
        let args = ["store", "move", new.to_str().unwrap(), "--yes"];
        killed(&lab, &args, Duration::from_millis(5 + round * 12));
        assert_eq!(listed(&lab, &lab.work), [1], "round {round}");
        lab.write("a", "2");
        assert_eq!(lab.take("second"), 2);
        if !lab.home.join("piton").is_symlink() {
            let moved = run(&lab, &args);
            assert_eq!(moved.code, 0, "round {round}: {moved:?}");
        }
        assert_eq!(run(&lab, &["store", "status"]).code, 0);
        assert_eq!((listed(&lab, &lab.work), lab.home.join("piton").read_link().unwrap()), (vec![2, 1], new.clone()));
        assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0, "round {round}");
        let left = |dir: &Path| {
            let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.contains("piton-mov")).count()
        };
        assert_eq!((left(other.path()), left(&lab.home)), (0, 0), "round {round}");
    }
}

/// Returns the names that a move has left at both of its places.
fn moves_left(lab: &Lab, new: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for dir in [new.parent().unwrap(), &lab.home, &lab.home.join("piton")] {
        let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        left.extend(
            names.filter(|name| name.contains("piton-mov") || ["moving-to", "moved-from"].contains(&name.as_str())),
        );
    }
    left
}

#[test]
fn a_move_to_another_disk_that_is_killed_at_any_call_goes_on() {
    let device = |path: &Path| path.metadata().ok().map(|facts| facts.dev());
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return not_allowed("writing to another file system") };
    if !strace() {
        return;
    }
    let scene = |round: usize| {
        let lab = Lab::new();
        lab.write("a", "1");
        lab.take("first");
        let new = other.path().join(format!("store{round}"));
        (lab, new)
    };
    let (lab, _) = scene(0);
    if device(other.path()) == device(&lab.root()) {
        return not_allowed("another file system");
    }
    let run = |lab: &Lab, new: &Path, (calls, fault): (&str, Option<&str>)| {
        traced(lab, &lab.root(), (calls, fault), &["store", "move", new.to_str().unwrap(), "--yes"])
    };
    // The last calls lie around the step; those of the copy itself are sampled.
    let mut rounds: Vec<(String, usize)> = Vec::new();
    for call in ["rename", "renameat2", "symlink", "fsync", "unlinkat"] {
        let (lab, new) = scene(rounds.len() + 1000);
        let (done, count) = run(&lab, &new, (call, None));
        assert_eq!(done.code, 0, "{done:?}");
        let last = count.saturating_sub(if full() { count } else { 4 });
        rounds.extend((last + 1..=count).map(|n| (call.to_owned(), n)));
    }
    drop(lab);
    let (mut whole, mut killed) = (0, 0);
    for (round, (call, n)) in rounds.iter().enumerate() {
        let (lab, new) = scene(round + 1);
        let round = format!("{call} {n}");
        let fault = format!("inject={call}:{SIGKILL}:when={n}");
        killed += usize::from(run(&lab, &new, (call, Some(&fault))).0.code == -1);
        let is_moved = lab.home.join("piton").is_symlink();
        whole += usize::from(!is_moved && new.join("store.git").is_dir());
        // Written in between, at the old place or at the new one.
        assert_eq!(listed(&lab, &lab.work), [1], "{round}");
        lab.write("a", "2");
        assert_eq!(lab.take("second"), 2, "{round}");
        if !is_moved {
            // Killed once more, somewhere.
            run(&lab, &new, (call, Some(&fault)));
        }
        if !lab.home.join("piton").is_symlink() {
            let (moved, _) = run(&lab, &new, (call, None));
            assert_eq!(moved.code, 0, "{round}: {moved:?}");
        }
        assert_eq!(self::run(&lab, &["store", "status"]).code, 0, "{round}");
        assert_eq!(
            (listed(&lab, &lab.work), lab.home.join("piton").read_link().unwrap()),
            (vec![2, 1], new.clone()),
            "{round}"
        );
        assert_eq!(lab.piton(&["doctor", "--refs"]).code, 0, "{round}");
        assert_eq!(moves_left(&lab, &new), Vec::<String>::new(), "{round}");
        std::fs::remove_dir_all(&new).unwrap();
    }
    println!("move: {} rounds, {killed} killed, {whole} with a whole copy beside the home", rounds.len());
    assert!(killed > 5 && whole > 0, "{killed} killed, {whole} whole");
}

#[test]
fn the_copy_of_a_killed_move_is_taken_away_only_where_it_is_surely_that() {
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return not_allowed("writing to another file system") };
    if !strace() {
        return;
    }
    let killed = |name: &str| {
        let lab = Lab::new();
        if other.path().metadata().unwrap().dev() == lab.root().metadata().unwrap().dev() {
            return None;
        }
        lab.write("a", "1");
        lab.take("first");
        let new = other.path().join(name);
        // The link for the old place is made right behind the copy.
        let fault = format!("inject=symlink,symlinkat:{SIGKILL}:when=1");
        let args = ["store", "move", new.to_str().unwrap(), "--yes"];
        let (cut, _) = traced(&lab, &lab.root(), ("symlink,symlinkat", Some(&fault)), &args);
        assert!(cut.code == -1 && new.join("store.git").is_dir() && !lab.home.join("piton").is_symlink(), "{cut:?}");
        Some((lab, new))
    };
    let Some((lab, new)) = killed("used") else { return not_allowed("another file system") };
    let again = |lab: &Lab, to: &Path| run(lab, &["store", "move", to.to_str().unwrap(), "--yes"]);
    // A checkpoint that only the copy has.
    let mut command = lab.command(env!("CARGO_BIN_EXE_piton"), &lab.work);
    let used = command.env("PITON_HOME", &new).args(["checkpoint", "in the copy"]).output().unwrap();
    assert!(used.status.success(), "{used:?}");
    let refused = again(&lab, &new);
    assert!(refused.code == 5 && refused.stderr.contains("something is already there"), "{refused:?}");
    assert!(new.join("store.git").is_dir());
    // Nor does a move to another place take it along.
    assert_eq!(again(&lab, &other.path().join("third")).code, 0);
    assert!(new.join("store.git").is_dir() && listed(&lab, &lab.work) == [1]);
    // The copy of another home, and a directory that only looks like one.
    let (lab, new) = killed("mine").unwrap();
    let (stranger, _) = killed("theirs").unwrap();
    let refused = again(&stranger, &new);
    assert!(refused.code == 5 && new.join("store.git").is_dir(), "{refused:?}");
    let copied = std::fs::read(new.join("moving-to")).unwrap();
    std::fs::write(new.join("moving-to"), copied).unwrap();
    assert_eq!(again(&lab, &new).code, 5, "written since");
    // A copy that nobody touched goes, wherever the store goes then.
    let (lab, new) = killed("left").unwrap();
    let fourth = other.path().join("fourth");
    assert_eq!(again(&lab, &fourth).code, 0);
    assert!(!new.exists() && listed(&lab, &lab.work) == [1]);
    assert_eq!(moves_left(&lab, &fourth), Vec::<String>::new());
}

/// The figures of what workspaces take, as they were counted last.
fn counted(lab: &Lab) -> Value {
    serde_json::from_slice(&std::fs::read(lab.home.join("piton/usage")).unwrap()).unwrap()
}

#[test]
fn the_workspaces_that_a_clear_leaves_are_counted_anew() {
    let lab = Lab::new();
    let other = lab.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let text: String = (0..20_000).map(|n| format!("{}\n", n * 7919 % 10_007)).collect();
    for dir in [&lab.work, &other] {
        std::fs::write(dir.join("common"), &text).unwrap();
        assert_eq!(lab.piton_in(dir, &["checkpoint", "one"]).code, 0);
    }
    assert!([0, 1, 3].contains(&lab.piton(&["prune", "--yes"]).code));
    let before = counted(&lab);
    assert!(
        before["workspaces"].as_object().unwrap().len() == 2 && before["shared"].as_u64() > Some(10_000),
        "{before}"
    );
    let cleared = lab.piton(&["store", "clear", "--workspace", other.to_str().unwrap(), "--yes"]);
    assert_eq!(cleared.code, 0, "{cleared:?}");
    let after = counted(&lab);
    let (_, own) = after["workspaces"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(
        (after["workspaces"].as_object().unwrap().len(), &after["shared"], &own["shared"]),
        (1, &json!(0), &json!(0))
    );
    assert!(own["own"].as_u64() > Some(10_000), "{after}");
    assert_eq!(lab.piton(&["store", "clear", "--yes"]).code, 0);
    assert_eq!(counted(&lab)["stored"], 0);
}

#[test]
fn verbs_that_read_make_no_workspace() {
    let lab = Lab::new();
    lab.write("a.txt", "one\n");
    let table: [(&[&str], i32); 13] = [
        (&[], 3),
        (&["status"], 0),
        (&["list"], 3),
        (&["list", "--turns"], 0),
        (&["list", "--runs"], 3),
        (&["show"], 3),
        (&["diff"], 3),
        (&["find", "a.txt"], 3),
        (&["undo", "--yes"], 3),
        (&["redo", "--yes"], 3),
        (&["restore", "1", "--yes"], 3),
        (&["restore", "a.txt", "--yes"], 3),
        (&["classify", "ls"], 0),
    ];
    let workspaces = || std::fs::read_dir(lab.home.join("piton/workspaces")).map_or(0, Iterator::count);
    for (args, code) in table {
        let output = lab.piton(args);
        assert_eq!((output.code, workspaces()), (code, 0), "{args:?}: {output:?}");
        assert!(!output.stdout.contains("cannot be written"), "{args:?}: {output:?}");
    }
    assert_eq!(lab.piton(&["checkpoint"]).code, 0);
    assert_eq!((lab.piton(&["list"]).code, workspaces()), (0, 1));
}

#[test]
fn a_list_names_the_workspaces_below() {
    let lab = Lab::new();
    let above = lab.root();
    for dir in ["one", "two", "three", "four", "never used"] {
        std::fs::create_dir_all(lab.work.join(dir)).unwrap();
    }
    for dir in ["one", "two", "three", "four"] {
        let dir = lab.work.join(dir);
        assert_eq!(lab.piton_in(&dir, &["checkpoint", "-w", "."]).code, 0);
    }
    let listed = lab.piton_in(&above, &["list", "-w", above.to_str().unwrap()]);
    let command = format!("`piton list -w {}`", lab.work.join("four").display());
    assert!(listed.code == 3 && listed.stdout.contains(&command), "{listed:?}");
    assert!(listed.stdout.contains("… and 1 more below") && !listed.stdout.contains("never used"), "{listed:?}");
}
