//! Random pairs of trees: the plan keeps its promises, and applying it gives exactly the target where it may.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 4] = ["a", "b", "a.b", "ab"];

#[derive(Clone, Debug)]
enum Node {
    File(u8, u16),
    Link(u8),
    Dir(u16, BTreeMap<&'static str, Node>),
}

fn node() -> impl Strategy<Value = Node> {
    let file = (0..3u8, prop::sample::select(vec![0o644u16, 0o600, 0o755, 0o4755]));
    let leaf = prop_oneof![4 => file.prop_map(|(content, perm)| Node::File(content, perm)), 1 => (0..2u8).prop_map(Node::Link)];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let perm = prop::sample::select(vec![0o755u16, 0o700, 0o1777]);
        (perm, children(inner)).prop_map(|(perm, children)| Node::Dir(perm, children))
    })
}

fn children(inner: impl Strategy<Value = Node>) -> impl Strategy<Value = BTreeMap<&'static str, Node>> {
    prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), inner, 0..4)
}

fn build(world: &World, dir: &str, nodes: &BTreeMap<&'static str, Node>) {
    for (name, node) in nodes {
        let at = if dir.is_empty() { (*name).to_owned() } else { format!("{dir}/{name}") };
        match node {
            Node::File(content, perm) => world.file(&at, &content.to_string().repeat(3), u32::from(*perm)),
            Node::Link(target) => world.link(&at, ["a", "../outside"][usize::from(*target)]),
            Node::Dir(perm, inside) => {
                world.dir(&at, 0o755);
                build(world, &at, inside);
                world.chmod(&at, u32::from(*perm));
            }
        }
    }
}

/// Returns a choice by path that needs no generator: stable, and different for each seed.
fn chance(seed: u8, at: &RelPath, percent: u8) -> bool {
    let id = ObjectId::of(ObjectKind::Blob, &[&[seed], at.as_bytes()].concat()).unwrap();
    id.as_bytes()[0] % 100 < percent
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn a_restore_is_exact_and_loses_nothing(
        before in children(node()),
        after in children(node()),
        seed in 0..=255u8,
        keep_new in prop::bool::weighted(0.2),
        select in prop::collection::vec(prop::sample::select(vec!["a", "b", "a/b", "a/a", "ab", "b/a/b"]), 0..3),
    ) {
        let world = World::new();
        std::fs::write(world.outside().join("a"), "outside").unwrap();
        build(&world, "", &before);
        let target = world.capture();
        NAMES.iter().filter(|name| world.at(name).symlink_metadata().is_ok()).for_each(|name| world.remove(name));
        build(&world, "", &after);
        let full = world.capture();
        // A few files are in no checkpoint at all; a few would not have been captured by the target.
        let hidden = |at: &RelPath, entry: &ManifestEntry| entry.kind != EntryKind::Dir && chance(seed, at, 15);
        let present: Manifest =
            full.iter().filter(|(at, entry)| !hidden(at, entry)).map(|(at, entry)| (at.clone(), *entry)).collect();
        let covered = |at: &RelPath, _: &ManifestEntry| if chance(seed ^ 0x55, at, 15) { Err("rule".to_owned()) } else { Ok(()) };
        let selection: Vec<RelPath> = select.iter().map(|text| path(text)).collect();
        let plan = plan(&PlanInput {
            target: &target,
            present: &present,
            present_skipped: &BTreeMap::new(),
            select: &selection,
            keep_new,
            covered: &covered,
            target_skipped: &|_| false,
            stays: &|_, _| None,
            agreed: &|_, _, _| Agreement::Given,
        });
        let selected = |at: &RelPath| selection.is_empty() || selection.iter().any(|select| at.starts_with(select));

        for (at, from) in plan.replace.iter().map(|(at, from, _)| (at, from)).chain(plan.delete.iter().map(|(at, from)| (at, from))) {
            prop_assert_eq!(present.get(at), Some(from));
            prop_assert!(selected(at));
        }
        for (at, entry) in &plan.create {
            prop_assert!(!present.contains(at));
            let is_parent = entry.kind == EntryKind::Dir && selection.iter().any(|select| select.starts_with(at));
            prop_assert!(selected(at) || is_parent);
        }

        let outcome = world.apply(&plan, &present).unwrap();
        prop_assert_eq!(world.temporaries(), Vec::<String>::new());
        let now = world.capture();
        let told = |at: &RelPath| {
            outcome.failed.iter().chain(&outcome.kept).any(|(listed, _)| listed == at)
                || plan.conflict.iter().any(|(listed, _)| listed == at)
                || plan.keep.iter().any(|(listed, _)| listed == at)
        };
        let planned: Vec<&RelPath> = plan.create.iter().map(|(at, _)| at).chain(plan.replace.iter().map(|(at, ..)| at)).collect();
        for (at, entry) in target.iter().filter(|(at, _)| selected(at) && !told(at)) {
            prop_assert_eq!(now.get(at), Some(entry), "{:?} should be as in the target", at);
        }
        for (at, entry) in &full.iter().collect::<Vec<_>>() {
            if !present.contains(at) || !selected(at) || told(at) {
                prop_assert_eq!(now.get(at), Some(*entry), "{:?} should be untouched", at);
            } else if !target.contains(at) {
                prop_assert!(!now.contains(at) || planned.contains(at), "{:?} should be gone", at);
            }
        }
        for (at, _) in now.iter() {
            prop_assert!(full.contains(at) || planned.contains(&at), "{:?} came from nowhere", at);
        }
        prop_assert_eq!(std::fs::read(world.outside().join("a")).unwrap(), b"outside");
        prop_assert_eq!(std::fs::read_dir(world.outside()).unwrap().count(), 1);
    }
}
