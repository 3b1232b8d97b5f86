//! Random manifests, also such as no capture would give: what a plan never does.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 5] = ["a", "b", "a.b", "a0", ".git"];

type Shape = BTreeMap<(Vec<&'static str>, u8), ManifestEntry>;

fn entry() -> impl Strategy<Value = ManifestEntry> {
    let content = |n: u8| ObjectId::of(ObjectKind::Blob, &[n]).unwrap();
    let file = (0..3u8, prop::sample::select(vec![0o644u16, 0o600, 0o755]));
    prop_oneof![
        3 => file.prop_map(move |(n, perm)| ManifestEntry { kind: EntryKind::File, perm, id: content(n), size: 1 }),
        1 => (0..2u8).prop_map(move |n| ManifestEntry { kind: EntryKind::Link, perm: 0o777, id: content(n), size: 1 }),
        2 => prop::sample::select(vec![0o755u16, 0o700]).prop_map(ManifestEntry::dir),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let names = prop::collection::vec(prop::sample::select(NAMES.to_vec()), 1..4);
    prop::collection::btree_map((names, 0..4u8), entry(), 0..14)
}

/// Returns the entries of a shape whose parents are directories, and those parents.
fn manifest_of(shape: &Shape) -> Manifest {
    let mut manifest = Manifest::new();
    for ((names, _), entry) in shape {
        let at = path(&names.join("/"));
        let above = std::iter::successors(at.parent(), RelPath::parent);
        let fits = above.filter_map(|dir| manifest.get(&dir)).all(|entry| entry.kind == EntryKind::Dir);
        if fits && manifest.inside(&at).next().is_none() {
            manifest.insert_parents(&at, 0o755);
            manifest.insert(at, *entry);
        }
    }
    manifest
}

const SKIPS: [SkipReason; 6] = [
    SkipReason::Special,
    SkipReason::TooLarge(9),
    SkipReason::Unreadable,
    SkipReason::OverCount,
    SkipReason::Secret,
    SkipReason::Vanished,
];

fn places() -> impl Strategy<Value = Vec<RelPath>> {
    let names = prop::collection::vec(prop::sample::select(NAMES.to_vec()), 1..3);
    prop::collection::vec(names.prop_map(|names| path(&names.join("/"))), 0..3)
}

/// Returns what was there before some edits: without a few entries that came since, and with one that is another now.
fn before(shape: &Shape, (gone, other): &(Vec<usize>, Option<(usize, ManifestEntry)>)) -> Manifest {
    let mut before = shape.clone();
    if let Some((at, entry)) = other
        && let Some(there) = before.values_mut().nth(*at)
    {
        *there = *entry;
    }
    for at in gone {
        let key = before.keys().nth(*at).cloned();
        key.map(|key| before.remove(&key));
    }
    manifest_of(&before)
}

/// Returns a plan without its reasons: what would have gone and was held is not agreed to when it is planned again.
fn outline(mut plan: Plan) -> (Plan, Vec<RelPath>, Vec<RelPath>) {
    let kept = std::mem::take(&mut plan.keep).into_iter().map(|(at, _)| at).collect();
    let conflicts = std::mem::take(&mut plan.conflict).into_iter().map(|(at, _)| at).collect();
    (plan, kept, conflicts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_goes_without_being_saved(
        (target, shape) in (shape(), shape()),
        earlier in prop::option::of((prop::collection::vec(0..14usize, 0..3), prop::option::of((0..14usize, entry())))),
        skipped in prop::collection::vec((places(), prop::sample::select(SKIPS.to_vec())), 0..3),
        (select, uncovered, target_skipped) in (places(), places(), places()),
        keep_new in prop::bool::weighted(0.2),
    ) {
        let (target, present) = (manifest_of(&target), manifest_of(&shape));
        let skipped: BTreeMap<RelPath, SkipReason> =
            skipped.into_iter().flat_map(|(places, reason)| places.into_iter().map(move |at| (at, reason))).collect();
        let below = |at: &RelPath, places: &[RelPath]| places.iter().any(|place| at.starts_with(place));
        let covered = |at: &RelPath, _: &ManifestEntry| if below(at, &uncovered) { Err("rule".to_owned()) } else { Ok(()) };
        let input = PlanInput {
            target: &target,
            present: &present,
            present_skipped: &skipped,
            select: &select,
            keep_new,
            covered: &covered,
            target_skipped: &|at| below(at, &target_skipped),
            stays: &|_, _| None,
            agreed: &|_, _, _| Agreement::Given,
        };
        // The plan that was agreed to a few edits ago, or right now.
        let agreed = earlier.as_ref().map(|earlier| plan(&PlanInput { present: &before(&shape, earlier), ..input }));
        let given = |at: &RelPath, from: Option<&ManifestEntry>, to: Option<&ManifestEntry>| match &agreed {
            Some(agreed) => agreed.agreement(at, from, to),
            None => Agreement::Given,
        };
        if matches!(&earlier, Some((gone, None)) if gone.is_empty()) {
            prop_assert_eq!(outline(plan(&PlanInput { agreed: &given, ..input })), outline(plan(&input)), "nothing moved");
        }
        let plan = plan(&PlanInput { agreed: &given, ..input });
        let creates = plan.create.iter().map(|(at, to)| (at, None, Some(to)));
        let replaces = plan.replace.iter().map(|(at, from, to)| (at, Some(from), Some(to)));
        for (at, from, to) in creates.chain(replaces).chain(plan.delete.iter().map(|(at, from)| (at, Some(from), None))) {
            prop_assert_eq!(given(at, from, to), Agreement::Given, "{:?} was not agreed to", at);
        }
        let selected = |at: &RelPath| select.is_empty() || below(at, &select);
        let deleted: BTreeMap<&RelPath, &ManifestEntry> = plan.delete.iter().map(|(at, from)| (at, from)).collect();

        // A removed path is in the pre-restore checkpoint with the same kind, permissions and content, and so is all
        // below it.
        let going = plan.replace.iter().map(|(at, from, _)| (at, from)).chain(deleted.iter().map(|(at, from)| (*at, *from)));
        for (at, from) in going {
            prop_assert_eq!(present.get(at), Some(from));
            prop_assert!(selected(at), "{:?} was not asked for", at);
            prop_assert!(!at.components().any(|name| name == b".git"), "{:?}", at);
            let gap = skipped.get(at).filter(|reason| **reason != SkipReason::Vanished);
            prop_assert!(from.kind == EntryKind::Dir || gap.is_none(), "{:?} is not what was saved: {:?}", at, gap);
            let stays = plan.replace.iter().any(|(replaced, _, to)| replaced == at && to.kind == EntryKind::Dir);
            if from.kind == EntryKind::Dir && !stays {
                for (inside, entry) in present.inside(at) {
                    prop_assert_eq!(deleted.get(inside), Some(&entry), "{:?} goes, {:?} does not", at, inside);
                }
                let hidden = skipped.iter().find(|(hidden, reason)| {
                    hidden.starts_with(at) && *hidden != at && **reason != SkipReason::Vanished
                });
                prop_assert_eq!(hidden, None, "{:?} goes with something unsaved in it", at);
            }
        }
        for at in deleted.keys() {
            prop_assert!(!target.contains(at) && !keep_new && !below(at, &uncovered) && !below(at, &target_skipped));
        }
        // A created path has a free name, as far as is known, and a directory to be in.
        let made: BTreeMap<&RelPath, &ManifestEntry> = plan.create.iter().map(|(at, to)| (at, to)).chain(plan.replace.iter().map(|(at, _, to)| (at, to))).collect();
        for (at, _) in &plan.create {
            prop_assert!(!present.contains(at) && skipped.get(at).is_none_or(|reason| *reason == SkipReason::Vanished));
            prop_assert!(!at.components().any(|name| name == b".git"));
        }
        for at in made.keys() {
            let parent = at.parent().unwrap();
            let dir = made.get(&parent).copied().or_else(|| present.get(&parent));
            prop_assert!(parent.is_root() || dir.is_some_and(|dir| dir.kind == EntryKind::Dir), "{:?} has no parent", at);
        }
        // Nothing is passed over in silence, and nothing is said twice.
        let mut said: Vec<&RelPath> = plan.touched().collect();
        said.extend(plan.keep.iter().map(|(at, _)| at).chain(plan.conflict.iter().map(|(at, _)| at)));
        let once: BTreeSet<&RelPath> = said.iter().copied().collect();
        prop_assert_eq!(said.len(), once.len(), "{:?}", said);
        for (at, entry) in target.iter().chain(present.iter()).filter(|(at, _)| selected(at)) {
            let unchanged = present.get(at).zip(target.get(at)).is_some_and(|(is, to)| is.same(to));
            prop_assert!(unchanged || once.contains(at), "{:?} {:?} is in no list", at, entry);
        }
    }
}
