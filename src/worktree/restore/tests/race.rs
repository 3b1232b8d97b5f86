//! Changes between the plan and each step: they survive and are listed.

use super::*;

const CHANGED: &str = "changed since the preview; not touched";

/// Target: `a` and `z` with content `old`, `d/x`; present: both changed, `d` gone, `new` there.
fn prepared() -> (World, Manifest, Manifest) {
    let world = World::new();
    world.file("a", "old", 0o644);
    world.file("z", "old", 0o644);
    world.file("d/x", "x", 0o644);
    let target = world.capture();
    world.file("a", "now", 0o644);
    world.file("z", "now", 0o644);
    world.remove("d");
    world.file("new", "new", 0o644);
    let present = world.capture();
    (world, target, present)
}

#[test]
fn edits_after_the_plan_survive_and_are_listed() {
    type Edit<'a> = (&'a str, &'a dyn Fn(&World));
    let table: &[Edit<'_>] = &[
        ("a", &|world| world.file("a", "mine", 0o644)),
        ("a", &|world| world.chmod("a", 0o600)),
        ("a", &|world| world.remove("a")),
        ("new", &|world| world.file("new", "mine", 0o644)),
        ("new", &|world| {
            world.remove("new");
            world.link("new", "a");
        }),
        ("d", &|world| world.file("d", "mine", 0o644)),
        ("d/x", &|world| world.file("d/x", "mine", 0o644)),
    ];
    for (i, (name, edit)) in table.iter().enumerate() {
        // Before staging, after staging, and in the middle of the steps.
        for count in [0, 3, 5, 6].into_iter().filter(|count| *name != "d" || *count <= 3) {
            let (world, target, present) = prepared();
            let plan = world.plan(&target, &present, &[]);
            let edited = Cell::new(None);
            let outcome = world
                .apply_meddling(&plan, &present, count, &|| {
                    edit(&world);
                    edited.set(Some(world.capture().get(&path(name)).copied()));
                })
                .unwrap();
            let now = world.capture();
            assert_eq!(now.get(&path("z")), target.get(&path("z")), "the others go on");
            assert_eq!(world.temporaries(), Vec::<String>::new(), "case {i} at {count}");
            let listed = outcome.failed.iter().any(|(at, _)| at == &path(name));
            let done =
                [&outcome.created, &outcome.replaced, &outcome.deleted].iter().any(|list| list.contains(&path(name)));
            // Either it came before the step and is untouched and listed, or after it and is untouched too.
            assert!(listed || done, "case {i} at {count}: {outcome:?}");
            assert_eq!(now.get(&path(name)).copied(), edited.get().unwrap(), "case {i} at {count}: {outcome:?}");
            if count == 0 && *name == "a" {
                assert!(outcome.failed.contains(&(path("a"), CHANGED.to_owned())), "{outcome:?}");
            }
        }
    }
}

#[test]
fn a_directory_replaced_by_a_link_leads_nowhere() {
    for count in [0, 1, 2, 3] {
        let world = World::new();
        world.file("d/a", "old", 0o644);
        world.file("d/b", "old", 0o644);
        let target = world.capture();
        world.file("d/a", "now", 0o644);
        world.remove("d/b");
        world.file("d/new", "new", 0o644);
        let present = world.capture();
        for name in ["a", "new"] {
            std::fs::write(world.outside().join(name), std::fs::read(world.at("d").join(name)).unwrap()).unwrap();
        }
        let outside = world.capture_dir(&world.outside());
        let plan = world.plan(&target, &present, &[]);
        let outcome = world
            .apply_meddling(&plan, &present, count, &|| {
                std::fs::rename(world.at("d"), world.at("moved")).unwrap();
                world.link("d", "../outside");
            })
            .unwrap();
        assert_eq!(world.capture_dir(&world.outside()), outside, "at {count}");
        assert!(!outcome.failed.is_empty(), "at {count}: {outcome:?}");
        assert_eq!(std::fs::read_link(world.at("d")).unwrap(), Path::new("../outside"));
    }
}

#[test]
fn a_create_that_came_by_itself_is_no_failure() {
    let (world, target, present) = prepared();
    let plan = world.plan(&target, &present, &[]);
    world.dir("d", 0o755);
    world.file("d/x", "x", 0o644);
    let outcome = world.apply(&plan, &present).unwrap();
    assert!(outcome.is_complete() && outcome.created.is_empty(), "{outcome:?}");
    assert_eq!(world.capture(), target);
}

#[test]
fn a_restore_can_be_stopped_at_every_step() {
    for count in 0.. {
        let (world, target, present) = prepared();
        let plan = world.plan(&target, &present, &[]);
        let saved = Saved { present: &present, known: &|_| None };
        let asked = Cell::new(0);
        let outcome = apply(
            &world.root,
            &plan,
            &saved,
            &world.blobs,
            WorkControl::unwatched(&|| {
                let stop = asked.replace(asked.get() + 1) >= count;
                if stop { Flow::Stop } else { Flow::Continue }
            }),
        );
        assert_eq!(world.temporaries(), Vec::<String>::new(), "at {count}");
        let outcome = match outcome {
            Err(error) => {
                assert_eq!(error.code(), Code::ShuttingDown);
                assert_eq!(world.capture(), present, "at {count}");
                continue;
            }
            Ok(outcome) => outcome,
        };
        let now = world.capture();
        let changed: std::collections::BTreeSet<&RelPath> =
            now.iter().chain(present.iter()).map(|(at, _)| at).collect();
        let changed: Vec<&RelPath> = changed.into_iter().filter(|at| now.get(at) != present.get(at)).collect();
        let mut told: Vec<&RelPath> =
            [&outcome.created, &outcome.replaced, &outcome.deleted].into_iter().flatten().collect();
        told.sort();
        assert_eq!(told, changed, "the report lists exactly the changes, at {count}");
        if !outcome.stopped {
            assert_eq!(now, target);
            assert!(count > 5);
            return;
        }
        world.restore(&target);
        assert_eq!(world.capture(), target, "finished later, at {count}");
    }
}

#[test]
fn nothing_is_replaced_without_the_saved_manifest() {
    let (world, target, present) = prepared();
    let plan = world.plan(&target, &present, &[]);
    let mut other = present.clone();
    other.insert(path("a"), *target.get(&path("a")).unwrap());
    other.remove(&path("new"));
    let outcome = world.apply(&plan, &other).unwrap();
    assert_eq!(outcome.failed, [(path("a"), CHANGED.to_owned()), (path("new"), CHANGED.to_owned())]);
    assert_eq!(world.capture().get(&path("a")), present.get(&path("a")));
}

#[test]
fn a_trusted_stamp_saves_reading_and_a_moved_one_does_not() {
    let (world, target, present) = prepared();
    let plan = world.plan(&target, &present, &["a"]);
    let root = crate::sys::fs::dir::Dir::open_root(&world.root).unwrap();
    let stamp = crate::model::stamp::Stamp::from(&root.stat(b"a").unwrap().unwrap());
    let id = present.get(&path("a")).unwrap().id;
    let known = |_: &RelPath| Some(crate::model::stamp::KnownFile { stamp, id, proven: true, private: false });
    world.file("a", "mne", 0o644);
    let saved = Saved { present: &present, known: &known };
    let outcome = apply(&world.root, &plan, &saved, &world.blobs, WorkControl::unwatched(&|| Flow::Continue)).unwrap();
    assert_eq!(outcome.failed, [(path("a"), CHANGED.to_owned())]);
    assert_eq!(std::fs::read(world.at("a")).unwrap(), b"mne");
}
