//! Rollbacks: their targets and refusals, and that no timeline is ever lost.

use serde_json::{Value, json};

use crate::support::{Asking, Lab, Sidecar, code, short, tree};

fn ok(reply: Value) -> Value {
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

fn session(lab: &Lab, run: &str) -> Sidecar {
    let mut sidecar = Sidecar::start(lab, &[]);
    ok(sidecar.ask(json!({"type": "run.start", "run": run})));
    sidecar
}

fn start(sidecar: &mut Sidecar, id: &str, name: &str, patterns: &[&str]) {
    ok(sidecar.ask(json!({"type": "codon.start", "codonId": id, "name": name, "trackedFiles": patterns})));
}

fn end(sidecar: &mut Sidecar, how: &str) -> String {
    ok(sidecar.ask(json!({"type": format!("codon.{how}")})))["checkpoint"]["id"].as_str().unwrap().to_owned()
}

/// Three codons with their outputs: the first two succeed, the third fails. Gives the ids of all checkpoints, by their names.
fn pipeline(lab: &Lab, sidecar: &mut Sidecar) -> Vec<(&'static str, String)> {
    let mut ids = Vec::new();
    start(sidecar, "observe", "Data Observation", &["docs/**"]);
    lab.write("docs/notes.md", "seen\n");
    ids.push(("observe:completed", end(sidecar, "complete")));
    start(sidecar, "schema", "Build Zod Schemas", &["src/**/*.ts"]);
    lab.write("src/types.ts", "rig\n");
    ids.push(("schema:rig-setup", end(sidecar, "rigSetup")));
    lab.write("src/types.ts", "good\n");
    ids.push(("schema:completed", end(sidecar, "complete")));
    start(sidecar, "final", "Final Processing", &["out/**"]);
    ids.push(("final:rig-setup", end(sidecar, "rigSetup")));
    lab.write("src/types.ts", "broken\n");
    lab.write("out/half.txt", "half\n");
    ids.push(("final:error", end(sidecar, "fail")));
    ids
}

fn id<'i>(ids: &'i [(&str, String)], name: &str) -> &'i str {
    &ids.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn the_page_three_codons_an_error_and_three_timelines() {
    let lab = Lab::new();
    lab.write("input.csv", "mine\n");
    let mut sidecar = session(&lab, "20240115-abc");
    let ids = pipeline(&lab, &mut sidecar);
    let rolled = ok(sidecar.ask(json!({"type": "rollback.toLastSuccess"})));
    assert_eq!((&rolled["to"], &rolled["detached"]), (&json!(id(&ids, "schema:completed")), &json!(true)), "{rolled}");
    assert!(rolled["nextBranch"].as_str().unwrap().ends_with("/20240115-abc.2"), "{rolled}");
    assert_eq!((lab.read("src/types.ts"), lab.work.join("out").exists()), ("good\n".to_owned(), false));
    assert_eq!(lab.read("input.csv"), "mine\n", "what no pattern covers stays");
    // The second timeline fails too, and the third goes on from further back.
    start(&mut sidecar, "final", "Final Processing", &["out/**"]);
    lab.write("out/result.txt", "second\n");
    let second = end(&mut sidecar, "fail");
    let to_start = json!({"type": "rollback.toCodon", "codonId": "schema", "checkpointType": "start"});
    assert_eq!(ok(sidecar.ask(to_start))["to"], id(&ids, "schema:rig-setup"));
    start(&mut sidecar, "schema", "Build Zod Schemas", &["src/**/*.ts"]);
    lab.write("src/types.ts", "better\n");
    let third = end(&mut sidecar, "complete");
    assert_eq!(sidecar.finish(), 0);
    let shown = lab.piton(&["runs", "--tree"]).stdout;
    for line in [
        "timeline 20240115-abc: 5 checkpoints",
        "timeline 20240115-abc.2: 1 checkpoint, continues from checkpoint",
        "timeline 20240115-abc.3: 2 checkpoints, continues from",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let Some(graph) = lab.store_git(&["log", "--all", "--graph", "--oneline"]) else { return };
    assert_eq!(graph.matches("[run:20240115-abc] ").count(), graph.matches("[run:").count());
    let heads = lab.store_git(&["log", "--branches", "--oneline", "--no-abbrev-commit"]).unwrap();
    assert_eq!(heads.lines().count(), 8, "{heads}");
    let parent = |of: &str| lab.store_git(&["rev-parse", &format!("{of}^")]).unwrap().trim().to_owned();
    assert_eq!(
        (parent(&second), parent(&third)),
        (id(&ids, "schema:completed").into(), id(&ids, "schema:rig-setup").into())
    );
    // The commands of the page.
    let error = id(&ids, "final:error");
    let diff = lab.store_git(&["diff", id(&ids, "schema:completed"), error, "--", "src/types.ts"]).unwrap();
    assert!(diff.contains("-good\n+broken\n"), "{diff}");
    assert_eq!(lab.store_git(&["show", &format!("{error}:out/half.txt")]).unwrap(), "half\n");
    assert!(lab.store_git(&["ls-tree", "--name-only", error]).unwrap().contains("src\n"));
    let followed = lab.store_git(&["log", "--branches", "--follow", "--format=%s", "--", "src/types.ts"]).unwrap();
    assert!(followed.contains("completed:schema [run:20240115-abc] Build Zod Schemas"), "{followed}");
    assert_eq!(lab.store_git(&["log", "--branches", "--grep=schema", "--format=%h"]).unwrap().lines().count(), 3);
    lab.store_git(&["fsck", "--strict"]).unwrap();
}

#[test]
fn names_of_targets_and_what_they_mean() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let mut ids = pipeline(&lab, &mut sidecar);
    start(&mut sidecar, "loop#2", "Loop", &[]);
    ids.push(("loop#2:skipped", end(&mut sidecar, "skip")));
    let codon = |id: &str, kind: &str| json!({"codonId": id, "checkpointType": kind});
    let prefix = |name: &str| json!({"sha": short(id(&ids, name), 12)});
    let table = [
        (codon("schema", "start"), "schema:rig-setup"),
        (codon("schema", "end"), "schema:completed"),
        (codon("schema", "rig-setup"), "schema:rig-setup"),
        (codon("schema", "completed"), "schema:completed"),
        (codon("observe", "start"), "observe:completed"),
        (codon("final", "end"), "final:error"),
        (codon("final", "error"), "final:error"),
        (codon("loop#2", "end"), "loop#2:skipped"),
        (codon("loop#2", "start"), "loop#2:skipped"),
        (json!({"codonId": "final"}), "final:error"),
        (json!({"lastSuccess": true}), "schema:completed"),
        (json!({"sha": "r-1:schema"}), "schema:completed"),
        (json!({"sha": "r-1:schema:start"}), "schema:rig-setup"),
        (json!({"sha": "r-1:final:error"}), "final:error"),
        (json!({"sha": "r-1:loop#2:end"}), "loop#2:skipped"),
        (prefix("observe:completed"), "observe:completed"),
    ];
    for (fields, expected) in table {
        let mut request = json!({"type": "rollback.preview"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let preview = ok(sidecar.ask(request));
        assert_eq!(preview["target"]["id"], id(&ids, expected), "{fields}");
        let (codon, kind) = expected.rsplit_once(':').unwrap();
        assert_eq!((&preview["target"]["codonId"], &preview["target"]["kind"]), (&json!(codon), &json!(kind)));
    }
    let refused = [
        (json!({"type": "rollback.toCodon", "codonId": "nobody"}), "no-such-codon"),
        (json!({"type": "rollback.toCodon", "codonId": "observe", "checkpointType": "error"}), "no-such-type"),
        (json!({"type": "rollback.toCodon", "codonId": "observe", "checkpointType": "exit"}), "bad-request"),
        (json!({"type": "rollback.toCodon", "codonId": "schema", "run": "nobody"}), "no-such-run"),
        (json!({"type": "rollback.toCheckpoint", "sha": "r-1:nobody"}), "no-such-codon"),
        (json!({"type": "rollback.toCheckpoint", "sha": "r-1:schema:error"}), "no-such-type"),
        (json!({"type": "rollback.toCheckpoint", "sha": "feedfeedfeed"}), "no-such-checkpoint"),
        (json!({"type": "rollback.toCheckpoint", "sha": "9999"}), "no-such-checkpoint"),
        (json!({"type": "rollback.toLastSuccess", "run": "nobody"}), "no-such-run"),
    ];
    let before = tree(&lab.work);
    for (request, expected) in refused {
        let reply = sidecar.ask(request.clone());
        assert_eq!(code(&reply), expected, "{request}: {reply}");
        assert!(expected != "no-such-codon" || reply["error"]["message"].as_str().unwrap().contains("nobody"));
    }
    ok(sidecar.ask(json!({"type": "run.start", "run": "r-empty"})));
    ok(sidecar.ask(json!({"type": "run.end"})));
    let none = sidecar.ask(json!({"type": "rollback.toLastSuccess", "run": "r-empty"}));
    assert_eq!(code(&none), "no-such-checkpoint", "{none}");
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn a_prefix_is_looked_up_over_all_branches_and_ambiguity_is_named() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let ids = pipeline(&lab, &mut sidecar);
    ok(sidecar.ask(json!({"type": "rollback.toLastSuccess"})));
    let old = id(&ids, "final:error").to_owned();
    start(&mut sidecar, "more", "More", &[]);
    lab.write("src/types.ts", "later\n");
    end(&mut sidecar, "complete");
    // The failed one is on an old timeline: it is gone back to like any other.
    let rolled = ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": short(&old, 10)})));
    assert_eq!((&rolled["to"], lab.read("out/half.txt").as_str()), (&json!(old), "half\n"));
    start(&mut sidecar, "mended", "Mended", &[]);
    let mended = end(&mut sidecar, "complete");
    assert_eq!(sidecar.finish(), 0);
    let Some(parent) = lab.store_git(&["rev-parse", &format!("{mended}^")]) else { return };
    assert_eq!(parent.trim(), old);
    // Another commit whose id begins alike, on a branch of its own.
    let text = lab.store_git(&["cat-file", "commit", &old]).unwrap();
    let committer = text.lines().find(|line| line.starts_with("committer ")).unwrap();
    let at: u64 = committer.split(' ').rev().nth(1).unwrap().parse().unwrap();
    let moved = |more: u64| text.replace(committer, &committer.replace(&at.to_string(), &(at + more).to_string()));
    let alike = |twin: &String| {
        use sha1_checked::Digest;
        let hash = sha1_checked::Sha1::digest(format!("commit {}\0{twin}", twin.len()).as_bytes());
        old.starts_with(&format!("{:02x}{:02x}", hash[0], hash[1]))
    };
    let file = lab.home.join("twin");
    std::fs::write(&file, (1..2_000_000).map(moved).find(alike).unwrap()).unwrap();
    let twin = lab.store_git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]).unwrap().trim().to_owned();
    let branch = lab.store_git(&["for-each-ref", "--format=%(refname)", "refs/heads/*/r-1"]).unwrap();
    lab.store_git(&["update-ref", &format!("{}.9", branch.trim()), &twin]).unwrap();
    let refused = lab.piton(&["rollback", &format!("id:{}", &old[..4]), "--yes", "--json"]);
    assert_eq!((refused.code, refused.error().as_str()), (2, "ambiguous-checkpoint"), "{refused:?}");
    let candidates = refused.json()["error"]["candidates"].clone();
    for id in [&old, &twin] {
        assert!(candidates.as_array().unwrap().contains(&json!(id)), "{candidates}");
    }
}

#[test]
fn patterns_are_those_of_where_the_run_stands() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let ids = pipeline(&lab, &mut sidecar);
    let all = ["docs/**", "src/**/*.ts", "out/**"];
    // From the first codon to the target's own, whose checkpoints are all recorded at or after its start.
    let table = [
        ("final:error", &all[..]),
        ("final:rig-setup", &all[..]),
        ("schema:completed", &all[..2]),
        ("schema:rig-setup", &all[..2]),
        ("observe:completed", &all[..1]),
    ];
    for (target, expected) in table {
        ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id(&ids, target)})));
        let list = ok(sidecar.ask(json!({"type": "run.list"})));
        let tracked = list["runs"][0]["trackedFiles"].clone();
        assert_eq!(
            tracked.as_array().cloned().unwrap_or_default(),
            json!(expected).as_array().unwrap().clone(),
            "{target}"
        );
    }
    // An undone rollback is undone for the run too.
    ok(sidecar.ask(json!({"type": "undo"})));
    ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id(&ids, "final:rig-setup")})));
    lab.write("src/b.ts", "b");
    lab.write("other/c.ts", "c");
    start(&mut sidecar, "next", "Next", &[]);
    let next = end(&mut sidecar, "complete");
    if let Some(listed) = lab.store_git(&["ls-tree", "-r", "--name-only", &next]) {
        assert_eq!(listed, ".piton/info\ndocs/notes.md\nsrc/b.ts\nsrc/types.ts\n");
    }
}

#[test]
fn patterns_go_on_accumulating_from_a_checkpoint_inside_a_codon() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    start(&mut sidecar, "one", "One", &["docs/**"]);
    lab.write("docs/a", "a");
    end(&mut sidecar, "complete");
    let label = |sidecar: &mut Sidecar, label: &str| {
        let made = ok(sidecar.ask(json!({"type": "checkpoint.create", "label": label})));
        made["checkpoint"]["id"].as_str().unwrap().to_owned()
    };
    let between = label(&mut sidecar, "between codons");
    // Times of records have milliseconds: the codon begins in another one.
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let began = now();
    while now() <= began + 1 {
        std::thread::yield_now();
    }
    start(&mut sidecar, "two", "Two", &["src/**"]);
    lab.write("src/b", "b");
    let inside = label(&mut sidecar, "inside the second");
    let failed = end(&mut sidecar, "fail");
    let tracked =
        |sidecar: &mut Sidecar| ok(sidecar.ask(json!({"type": "run.list"})))["runs"][0]["trackedFiles"].clone();
    for (target, expected) in [
        (&between, json!(["docs/**"])),
        (&failed, json!(["docs/**", "src/**"])),
        (&inside, json!(["docs/**", "src/**"])),
    ] {
        ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": target})));
        assert_eq!(tracked(&mut sidecar), expected, "{target}");
    }
    let begun = ok(sidecar.ask(json!({"type": "codon.start", "codonId": "three", "trackedFiles": ["out/**"]})));
    assert_eq!(begun["trackedFiles"], json!(["docs/**", "src/**", "out/**"]));
    lab.write("out/c", "c");
    let next = end(&mut sidecar, "complete");
    if let Some(listed) = lab.store_git(&["ls-tree", "-r", "--name-only", &next]) {
        assert_eq!(listed, ".piton/info\ndocs/a\nout/c\nsrc/b\n");
    }
}

#[test]
fn the_end_of_a_codon_is_never_its_rig() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let ids = pipeline(&lab, &mut sidecar);
    let codon = |verb: &str, id: &str, point: &str| json!({"type": format!("rollback.{verb}"), "codonId": id, "checkpointType": point});
    let rolled = ok(sidecar.ask(codon("toCodon", "schema", "start")));
    assert_eq!(rolled["to"], id(&ids, "schema:rig-setup"));
    // `completed` is on the timeline that was left.
    for request in [
        codon("preview", "schema", "end"),
        json!({"type": "rollback.preview", "codonId": "schema"}),
        json!({"type": "rollback.preview", "sha": "r-1:schema:end"}),
    ] {
        let preview = ok(sidecar.ask(request.clone()));
        assert_eq!(preview["target"]["id"], id(&ids, "schema:completed"), "{request}");
    }
    let rolled = ok(sidecar.ask(codon("toCodon", "schema", "end")));
    assert_eq!((&rolled["to"], lab.read("src/types.ts").as_str()), (&json!(id(&ids, "schema:completed")), "good\n"));
    // A codon that has its rig and nothing else has a start and no end.
    start(&mut sidecar, "rigged", "Rigged", &[]);
    let rig = end(&mut sidecar, "rigSetup");
    for request in [codon("preview", "rigged", "end"), json!({"type": "rollback.preview", "sha": "r-1:rigged:end"})] {
        assert_eq!(code(&sidecar.ask(request.clone())), "no-such-type", "{request}");
    }
    assert_eq!(ok(sidecar.ask(codon("preview", "rigged", "start")))["target"]["id"], json!(rig));
    end(&mut sidecar, "fail");
    // Where the run stands nothing was completed: what another timeline completed is named, and not gone to unasked.
    ok(sidecar.ask(json!({"type": "run.start", "run": "r-2"})));
    start(&mut sidecar, "alone", "Alone", &[]);
    end(&mut sidecar, "rigSetup");
    end(&mut sidecar, "complete");
    ok(sidecar.ask(codon("toCodon", "alone", "start")));
    let none = sidecar.ask(json!({"type": "rollback.toLastSuccess"}));
    assert_eq!(code(&none), "no-such-checkpoint", "{none}");
    assert!(none["error"]["message"].as_str().unwrap().contains("completed `alone` on another timeline"), "{none}");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn the_view_stands_where_the_run_stands() {
    let lab = Lab::new();
    lab.write("other", "o");
    let mut sidecar = session(&lab, "r-1");
    let ids = pipeline(&lab, &mut sidecar);
    let head = || {
        let said = lab.piton(&["git", "rev-parse", "HEAD"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout.trim().to_owned()
    };
    if lab.store_git(&["version"]).is_none() {
        return;
    }
    assert_eq!(head(), id(&ids, "final:error"));
    ok(sidecar.ask(json!({"type": "rollback.toLastSuccess"})));
    assert_eq!(head(), id(&ids, "schema:completed"));
    start(&mut sidecar, "again", "Again", &["out/**"]);
    for (round, how) in ["rigSetup", "complete"].into_iter().enumerate() {
        lab.write("out/result", format!("{round}"));
        let recorded = end(&mut sidecar, how);
        assert_eq!(head(), recorded, "{how}");
    }
    assert_eq!(lab.piton(&["git", "diff", "HEAD", "--stat"]).stdout, "");
    ok(sidecar.ask(json!({"type": "rollback.toCodon", "codonId": "again", "checkpointType": "start"})));
    ok(sidecar.ask(json!({"type": "undo"})));
    assert_eq!(lab.piton(&["git", "diff", "HEAD", "--stat"]).stdout, "");
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn an_undone_rollback_leaves_the_run_where_it_was() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let ids = pipeline(&lab, &mut sidecar);
    let before = tree(&lab.work);
    let current = |sidecar: &mut Sidecar| {
        let list = ok(sidecar.ask(json!({"type": "checkpoint.list"})));
        list["currentBranch"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    };
    ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id(&ids, "observe:completed")})));
    assert_eq!(current(&mut sidecar), "r-1.2");
    ok(sidecar.ask(json!({"type": "undo"})));
    assert_eq!((current(&mut sidecar), tree(&lab.work)), ("r-1".to_owned(), before));
    ok(sidecar.ask(json!({"type": "redo"})));
    assert_eq!((current(&mut sidecar), lab.work.join("src").exists()), ("r-1.2".to_owned(), false));
    start(&mut sidecar, "again", "Again", &[]);
    let again = end(&mut sidecar, "complete");
    // Later checkpoints keep their branch after every undo.
    ok(sidecar.ask(json!({"type": "undo"})));
    assert_eq!(current(&mut sidecar), "r-1.2");
    if let Some(parent) = lab.store_git(&["rev-parse", &format!("{again}^")]) {
        assert_eq!(parent.trim(), id(&ids, "observe:completed"));
    }
}

#[test]
fn rollbacks_are_undone_one_by_one() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let mut ids = Vec::new();
    for n in 0..4 {
        start(&mut sidecar, &format!("c{n}"), "C", &[&format!("d{n}")]);
        lab.write(&format!("d{n}/f"), "f");
        ids.push(end(&mut sidecar, "complete"));
    }
    let stands = |sidecar: &mut Sidecar| {
        let preview = ok(sidecar.ask(json!({"type": "rollback.preview", "lastSuccess": true})));
        let tracked = ok(sidecar.ask(json!({"type": "run.list"})))["runs"][0]["trackedFiles"].clone();
        (preview["target"]["codonId"].as_str().unwrap().to_owned(), tracked.as_array().unwrap().len())
    };
    for n in [2, 1, 1, 0] {
        ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": ids[n]})));
        assert_eq!(stands(&mut sidecar), (format!("c{n}"), n + 1));
    }
    for n in [1, 1, 2, 3] {
        ok(sidecar.ask(json!({"type": "undo"})));
        assert_eq!(stands(&mut sidecar), (format!("c{n}"), n + 1));
        assert_eq!(lab.work.join("d1").exists(), n >= 1);
    }
    ok(sidecar.ask(json!({"type": "redo"})));
    assert_eq!(stands(&mut sidecar), ("c2".to_owned(), 3));
    // A fork that was moved and moved back still goes on from where it was forked.
    let fork = ok(sidecar.ask(json!({"type": "run.fork", "sha": ids[1], "run": "fork"})));
    assert_eq!(fork["run"], "fork");
    ok(sidecar.ask(json!({"type": "run.start", "run": "fork"})));
    ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": ids[0]})));
    ok(sidecar.ask(json!({"type": "undo"})));
    start(&mut sidecar, "of-fork", "F", &[]);
    let forked = end(&mut sidecar, "complete");
    assert_eq!(sidecar.finish(), 0);
    if let Some(parent) = lab.store_git(&["rev-parse", &format!("{forked}^")]) {
        assert_eq!(parent.trim(), ids[1]);
    }
}

#[test]
fn a_run_that_is_called_like_a_timeline_of_another_keeps_apart() {
    let lab = Lab::new();
    lab.write("a", "1");
    let mut sidecar = session(&lab, "r");
    start(&mut sidecar, "one", "One", &[]);
    let first = end(&mut sidecar, "complete");
    ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": first})));
    let named = ok(sidecar.ask(json!({"type": "run.start", "run": "r.2"})));
    assert!(named["branch"].as_str().unwrap().ends_with("/r.2.2"), "r.2 is promised: {named}");
    start(&mut sidecar, "other", "Other", &[]);
    end(&mut sidecar, "complete");
    ok(sidecar.ask(json!({"type": "run.start", "run": "r"})));
    start(&mut sidecar, "two", "Two", &[]);
    end(&mut sidecar, "complete");
    let list = ok(sidecar.ask(json!({"type": "run.list"})));
    let branches = |run: &str| {
        let row = list["runs"].as_array().unwrap().iter().find(|row| row["run"] == run).unwrap();
        let names = row["branches"].as_array().unwrap().iter();
        names
            .map(|branch| branch["branch"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!((branches("r"), branches("r.2")), (vec!["r".into(), "r.2".into()], vec!["r.2.2".into()]), "{list}");
}

#[test]
fn refused_while_something_runs_and_where_nothing_could_be_saved() {
    let lab = Lab::new();
    lab.write("big", "1");
    let mut sidecar = session(&lab, "r-1");
    start(&mut sidecar, "one", "One", &[]);
    let id = end(&mut sidecar, "complete");
    start(&mut sidecar, "two", "Two", &[]);
    lab.write("big", "2");
    let before = tree(&lab.work);
    for request in [
        json!({"type": "rollback.toCheckpoint", "sha": id}),
        json!({"type": "rollback.toCodon", "codonId": "one"}),
        json!({"type": "rollback.toLastSuccess"}),
    ] {
        let reply = sidecar.ask(request);
        assert_eq!(code(&reply), "codon-running", "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains("`two`"), "{reply}");
    }
    ok(sidecar.ask(json!({"type": "rollback.preview", "sha": id})));
    assert_eq!(lab.piton(&["rollback", "last-success", "--yes", "--json"]).error(), "codon-running");
    end(&mut sidecar, "fail");
    assert_eq!(sidecar.finish(), 0);
    // Somebody else restores.
    let lock = lab.piton(&["status", "--json"]).json()["workspace"]["id"].as_str().unwrap().to_owned();
    let lock = lab.home.join("piton/workspaces").join(lock).join("lock");
    let file = std::fs::OpenOptions::new().write(true).open(&lock).unwrap();
    file.lock().unwrap();
    let text = std::fs::read(&lock).unwrap();
    std::fs::write(&lock, "pid 1 since then doing restoring (lock 0)\n").unwrap();
    let output = lab.piton(&["rollback", "last-success", "--run", "r-1", "--yes", "--json"]);
    assert_eq!((output.code, output.error().as_str()), (5, "rollback-in-progress"), "{output:?}");
    std::fs::write(&lock, text).unwrap();
    drop(file);
    // The present files cannot be saved: nothing is touched, and the run stays at its place.
    let noise: Vec<u8> = (0..400_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    lab.write("big", noise);
    let with_noise = tree(&lab.work);
    let script = "ulimit -f 100; exec \"$PITON_BIN\" rollback last-success --yes --json > ../said || true";
    let mut command = lab.command("/bin/sh", &lab.work);
    command.env("PITON_BIN", env!("CARGO_BIN_EXE_piton")).args(["-c", script]);
    command.status().unwrap();
    let said = std::fs::read_to_string(lab.root().join("said")).unwrap();
    assert!(said.contains("pre-restore-failed"), "{said}");
    assert_eq!(tree(&lab.work), with_noise);
    assert!(lab.piton(&["runs", "--json"]).json()["runs"][0]["branches"].as_array().unwrap().len() == 1);
    assert_ne!(before, with_noise);
}

#[test]
fn notices_tell_how_far_it_has_come() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    start(&mut sidecar, "one", "One", &[]);
    let id = end(&mut sidecar, "complete");
    lab.write("a", "small");
    let small = ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id})));
    assert_eq!(small["done"]["deleted"]["total"], 1);
    let ended = sidecar.notice(|notice| notice["notice"] == "rollback.completed");
    assert_eq!((&ended["codonId"], &ended["checkpointType"]), (&json!("one"), &json!("completed")), "{ended}");
    assert!(sidecar.notices.iter().all(|notice| notice["notice"] != "rollback.progress"));
    sidecar.notices.clear();
    for n in 0..1200 {
        lab.write(&format!("d{}/f{n}", n % 7), "x");
    }
    let large = ok(sidecar.ask(json!({"type": "rollback.toLastSuccess", "autoRestart": true})));
    assert_eq!(large["done"]["deleted"]["total"], 1207);
    let ended = sidecar.notice(|notice| notice["notice"] == "rollback.completed");
    assert_eq!((&ended["autoRestart"], &ended["to"], &ended["run"]), (&json!(true), &json!(id), &json!("r-1")));
    let told: Vec<(&str, u64)> = sidecar
        .notices
        .iter()
        .filter_map(|notice| {
            let name = notice["notice"].as_str()?.strip_prefix("rollback.")?;
            Some((name, notice["currentStep"].as_u64().or(notice["paths"].as_u64()).unwrap_or(0)))
        })
        .collect();
    assert_eq!(told, [("started", 1207), ("progress", 1), ("progress", 2)]);
    assert_eq!(sidecar.finish(), 0);
}

#[test]
fn the_command_line_previews_asks_and_rolls_back() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    let ids = pipeline(&lab, &mut sidecar);
    assert_eq!(sidecar.finish(), 0);
    let before = tree(&lab.work);
    let exit = |args: &[&str]| {
        let all: Vec<&str> = ["rollback"].iter().chain(args).copied().collect();
        lab.piton(&all).code
    };
    let table: &[(&[&str], i32)] = &[
        (&["last-success"], 5),
        (&["last-success", "--preview"], 0),
        (&["last-success", "--json"], 5),
        (&["codon", "schema", "start", "--preview"], 0),
        (&["codon", "schema", "what"], 2),
        (&["codon", "nobody"], 3),
        (&["codon", "observe", "error"], 3),
        (&["r-1:nobody"], 3),
        (&["last-success", "--run", "nobody"], 3),
        (&["codon"], 3),
        (&["a", "b", "c"], 2),
        (&[], 5),
    ];
    for (args, expected) in table {
        assert_eq!(exit(args), *expected, "{args:?}");
        assert_eq!(tree(&lab.work), before, "{args:?}");
    }
    let preview = lab.piton(&["rollback", "codon", "schema", "end", "--preview", "--json"]).json();
    assert_eq!(
        (&preview["target"]["id"], &preview["plan"]["delete"]["total"]),
        (&json!(id(&ids, "schema:completed")), &json!(2))
    );
    let rolled = lab.piton(&["rollback", "codon", "schema", "--yes", "--json"]);
    assert_eq!(
        (rolled.code, &rolled.json()["run"], &rolled.json()["detached"]),
        (0, &json!("r-1"), &json!(true)),
        "{rolled:?}"
    );
    assert_eq!(lab.read("src/types.ts"), "good\n");
    // Where no file has to change the run moves all the same.
    assert_eq!(exit(&["r-1:schema:end"]), 5);
    let again = lab.piton(&["rollback", "r-1:schema:end", "--yes"]);
    assert!(again.code == 0 && again.stdout.contains("r-1.2"), "{again:?}");
    // It is undone for itself, then the one before it.
    assert!([0, 3].contains(&lab.piton(&["undo", "--yes"]).code));
    assert_eq!(lab.read("src/types.ts"), "good\n");
    assert_eq!(lab.piton(&["undo", "--yes"]).code, 0);
    assert_eq!(tree(&lab.work), before);
}

#[test]
fn a_rollback_that_was_cut_off_moves_the_run_or_moves_it_back() {
    for (verb, branch, patterns) in [("--continue", "r-1.2", 1), ("--abort", "r-1", 3)] {
        let lab = Lab::new();
        let mut sidecar = session(&lab, "r-1");
        let ids = pipeline(&lab, &mut sidecar);
        let before = tree(&lab.work);
        ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": id(&ids, "observe:completed")})));
        ok(sidecar.ask(json!({"type": "run.end"})));
        assert_eq!(sidecar.finish(), 0);
        let after = tree(&lab.work);
        // As a crash leaves it before the last line: files and run are moved, and nobody knows.
        lab.sh("cd \"$PITON_HOME\"/workspaces/*/ && sed -i '$d' journal");
        let refused = lab.piton(&["rollback", "last-success", "--yes", "--json"]);
        assert_eq!((refused.code, refused.error().as_str()), (5, "rollback-in-progress"), "{refused:?}");
        let ended = lab.piton(&["restore", verb]);
        assert_eq!((ended.code, tree(&lab.work)), (0, if verb == "--abort" { before } else { after }), "{ended:?}");
        let mut again = session(&lab, "r-1");
        let list = ok(again.ask(json!({"type": "checkpoint.list"})));
        assert_eq!(list["currentBranch"].as_str().unwrap().rsplit('/').next(), Some(branch), "{verb}");
        let runs = ok(again.ask(json!({"type": "run.list"})));
        assert_eq!(runs["runs"][0]["trackedFiles"].as_array().map_or(0, Vec::len), patterns, "{verb}: {runs}");
    }
}

#[test]
fn a_fork_keeps_the_checkpoint_that_it_goes_on_from() {
    let lab = Lab::new();
    lab.write("a", "0");
    let leaf = lab.take("to be gone on from");
    let leaf = lab.piton(&["show", &leaf.to_string(), "--json"]).json()["id"].as_str().unwrap().to_owned();
    let mut sidecar = session(&lab, "r-1");
    ok(sidecar.ask(json!({"type": "run.fork", "sha": leaf, "run": "r-2"})));
    assert_eq!(sidecar.finish(), 0);
    for n in 1..5 {
        lab.write("a", n.to_string());
        assert_eq!(lab.piton(&["checkpoint", &format!("n{n}"), "--set", "retention.labelled=2"]).code, 0);
    }
    let mut sidecar = session(&lab, "r-2");
    start(&mut sidecar, "one", "One", &[]);
    let first = end(&mut sidecar, "complete");
    assert_eq!(ok(sidecar.ask(json!({"type": "rollback.toCheckpoint", "sha": leaf})))["to"], json!(leaf));
    assert_eq!(lab.read("a"), "0");
    if let Some(parent) = lab.store_git(&["rev-parse", &format!("{first}^")]) {
        assert_eq!(parent.trim(), leaf);
    }
}

#[test]
fn a_plan_of_codons_is_agreed_to_by_its_digest() {
    let lab = Lab::new();
    let mut sidecar = session(&lab, "r-1");
    pipeline(&lab, &mut sidecar);
    let digest = |preview: &Value| preview["plan"]["digest"].as_str().unwrap_or_else(|| panic!("{preview}")).to_owned();
    for (kind, aim) in [
        ("rollback.toCodon", json!({"codonId": "schema", "checkpointType": "rig-setup"})),
        ("rollback.toCodon", json!({"codonId": "schema", "checkpointType": "end"})),
        ("rollback.toLastSuccess", json!({"lastSuccess": true})),
    ] {
        let request = |kind: &str, more: Value| {
            let mut request = json!({"type": kind});
            let fields = request.as_object_mut().unwrap();
            fields.extend(aim.as_object().unwrap().clone());
            fields.extend(more.as_object().unwrap().clone());
            request
        };
        let plan = digest(&ok(sidecar.ask(request("rollback.preview", json!({})))));
        lab.write("src/types.ts", format!("edited before {kind}"));
        let refused = sidecar.ask(request(kind, json!({ "plan": plan })));
        assert_eq!(code(&refused), "stale-plan", "{refused}");
        let plan = digest(&refused["error"]["preview"]);
        let rolled = ok(sidecar.ask(request(kind, json!({ "plan": plan }))));
        assert!(rolled["detached"] == true && !lab.read("src/types.ts").starts_with("edited"), "{rolled}");
        // As it is now, only the run moves: that is a plan too.
        let plan = digest(&ok(sidecar.ask(request("rollback.preview", json!({})))));
        ok(sidecar.ask(request(kind, json!({ "plan": plan }))));
    }
    assert_eq!(sidecar.finish(), 0);
    // The last one changed no file: its undo moves the run, and asks.
    assert_eq!(lab.piton(&["undo"]).code, 5, "there is nobody to ask");
    let refused = Asking::start(&lab, &["undo"]).answer("n");
    assert!(refused.code == 5 && refused.stdout.contains("this also moves run r-1"), "{refused:?}");
    let done = Asking::start(&lab, &["undo"]).answer("y");
    assert!([0, 3].contains(&done.code), "{done:?}");
}
