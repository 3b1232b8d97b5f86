//! Files with several names.

use super::*;

fn inode(world: &World, name: &str) -> u64 {
    world.at(name).symlink_metadata().unwrap().ino()
}

fn perm(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

#[test]
fn permissions_are_set_in_place_only_where_there_is_one_name() {
    let world = World::new();
    for name in ["a", "b", "c", "alone"] {
        world.file(name, "bytes", 0o644);
    }
    world.chmod("a", 0o600);
    let target = world.capture();
    let outside = world.outside().join("name");
    std::fs::remove_file(world.at("a")).unwrap();
    std::fs::hard_link(world.at("b"), world.at("a")).unwrap();
    std::fs::hard_link(world.at("c"), &outside).unwrap();
    world.chmod("c", 0o755);
    world.chmod("alone", 0o640);
    let (shared, alone) = (inode(&world, "b"), inode(&world, "alone"));
    world.restore(&target);
    assert_eq!(world.capture(), target);
    assert_eq!((inode(&world, "b"), inode(&world, "alone")), (shared, alone));
    assert_eq!(perm(&outside), 0o755, "a name outside is as it was");
}

#[test]
fn a_name_that_comes_after_the_plan_is_not_changed_either() {
    let world = World::new();
    world.file("a", "bytes", 0o644);
    let target = world.capture();
    world.chmod("a", 0o600);
    let present = world.capture();
    let plan = world.plan(&target, &present, &[]);
    let outside = world.outside().join("name");
    let link = || std::fs::hard_link(world.at("a"), &outside).unwrap();
    let outcome = world.apply_meddling(&plan, &present, 0, &link).unwrap();
    assert_eq!(names(&outcome.failed.iter().map(|(at, _)| at.clone()).collect::<Vec<_>>()), ["a"], "{outcome:?}");
    assert_eq!((perm(&outside), world.capture()), (0o600, present));
}

#[test]
fn a_directory_that_cannot_be_written_is_loosened_for_a_shared_file() {
    let world = World::new();
    world.file("d/a", "bytes", 0o644);
    world.chmod("d", 0o555);
    let target = world.capture();
    world.chmod("d/a", 0o600);
    std::fs::hard_link(world.at("d/a"), world.outside().join("name")).unwrap();
    world.restore(&target);
    assert_eq!((world.capture(), perm(&world.outside().join("name"))), (target, 0o600));
    world.chmod("d", 0o755);
}

#[test]
fn the_threads_of_a_restore_do_not_disturb_each_other() {
    let world = World::new();
    for i in 0..300 {
        world.file(&format!("d{}/f{i}", i % 7), &format!("own {i}"), 0o644);
    }
    let target = world.capture();
    for round in 0..5 {
        let outside = world.outside().join(round.to_string());
        std::fs::write(&outside, vec![b'x'; 100_000]).unwrap();
        for i in 0..300 {
            let at = world.at(&format!("d{}/f{i}", i % 7));
            std::fs::remove_file(&at).unwrap();
            std::fs::hard_link(&outside, &at).unwrap();
        }
        world.restore(&target);
        assert_eq!(world.capture(), target);
        assert_eq!(std::fs::metadata(&outside).unwrap().nlink(), 1);
    }
}
