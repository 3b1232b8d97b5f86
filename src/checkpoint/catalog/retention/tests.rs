//! The rules one by one, and what holds for any history.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::age::thinned;
use super::size::shares;
use super::*;
use crate::checkpoint::catalog::checkpoint::tests::checkpoint;
use crate::model::checkpoint::{BY_HAND, CheckpointKind, Layer, Record};
use crate::sys::clock::rfc3339;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// The time of the first checkpoint of made-up histories.
const BEGIN: i64 = 1_767_225_600_000;

fn limits(auto: u32, all: u32) -> Retention {
    Retention {
        enabled: true,
        auto_per_run: auto,
        per_workspace: all,
        labelled: 1000,
        days: None,
        runs_days: None,
        total_bytes: 0,
        orphans: None,
        interval_hours: 24,
    }
}

fn needing(needed: &[ObjectId]) -> Kept {
    Kept { needed: needed.iter().copied().collect(), ..Kept::default() }
}

fn numbers(all: &[Checkpoint], plan: &[(ObjectId, DropReason)]) -> Vec<u64> {
    all.iter().filter(|c| plan.iter().any(|(id, _)| *id == c.id)).map(|c| c.record.ordinal).collect()
}

fn dropped(all: &[Checkpoint], needed: &[ObjectId], limits: &Retention) -> Vec<u64> {
    numbers(all, &plan(all, &needing(needed), limits, None))
}

/// Returns the numbers that ages alone drop at a time.
fn outdated(all: &[Checkpoint], kept: &Kept, limits: &Retention, now: i64) -> Vec<u64> {
    numbers(all, &plan(all, kept, limits, Some(now)))
}

/// Changes the record of a checkpoint.
fn with(mut checkpoint: Checkpoint, change: impl FnOnce(&mut Record)) -> Checkpoint {
    let mut record = Record::clone(&checkpoint.record);
    change(&mut record);
    checkpoint.record = record.into();
    checkpoint
}

/// Makes a checkpoint by hand without a label.
fn by_hand(n: u64) -> Checkpoint {
    with(checkpoint(n, CheckpointKind::Manual, "local"), |record| record.reason = BY_HAND.to_owned())
}

/// Makes a checkpoint of a kind and run, some milliseconds after the begin.
fn at(n: u64, kind: CheckpointKind, run: &str, after: i64) -> Checkpoint {
    let made = if kind == CheckpointKind::Manual { by_hand(n) } else { checkpoint(n, kind, run) };
    with(made, |record| (record.run, record.time) = (run.to_owned(), rfc3339(BEGIN + after)))
}

/// Makes an `auto` checkpoint of a turn of a run.
fn auto(n: u64, run: &str, turn: Option<&str>) -> Checkpoint {
    with(checkpoint(n, CheckpointKind::Auto, run), |record| record.turn = turn.map(str::to_owned))
}

/// Makes an `auto` checkpoint of a turn of run `a`.
fn of_turn(n: u64, turn: &str) -> Checkpoint {
    auto(n, "a", Some(turn))
}

#[test]
fn oldest_turns_of_each_run_go_first() {
    let of = |n: u64| auto(n, if n.is_multiple_of(2) { "a" } else { "b" }, Some(&n.to_string()));
    let all: Vec<_> = (1..=6).map(of).collect();
    assert_eq!(dropped(&all, &[], &limits(2, 50)), [1, 2]);
    assert_eq!(dropped(&all, &[all[0].id], &limits(2, 50)), [2]);
    assert_eq!(dropped(&all, &[], &Retention { enabled: false, ..limits(1, 1) }), Vec::<u64>::new());
}

#[test]
fn a_turn_counts_once_however_many_checkpoints_it_has() {
    // Three turns, the second with 500 checkpoints.
    let mut all = vec![of_turn(1, "t1")];
    all.extend((2..=501).map(|n| of_turn(n, "t2")));
    all.push(of_turn(502, "t3"));
    let gone = dropped(&all, &[], &limits(3, 3));
    assert_eq!(gone, (3..=486).collect::<Vec<_>>(), "the first of each turn stays, and 15 further ones");
    // A turn is dropped with all of its checkpoints, by either limit.
    assert_eq!(dropped(&all, &[], &limits(1, 50)), (1..=501).collect::<Vec<_>>());
    assert_eq!(dropped(&all, &[], &limits(100, 1)), (1..=501).collect::<Vec<_>>());
    assert_eq!(dropped(&all[..4], &[all[1].id], &limits(1, 50)), [1], "what is needed stays");
}

#[test]
fn a_turn_is_what_has_its_name_whatever_came_in_between() {
    // Each word is a turn; `-` means an action without one. The numbers are the dropped checkpoints under limits
    // for the run and the workspace.
    let table: &[(&str, (u32, u32), &[u64])] = &[
        ("a b a b a b", (2, 50), &[]),
        ("x a b a b a b", (2, 50), &[1]),
        ("a b a b c", (2, 50), &[1, 3]),
        // The turn with the latest checkpoint stays, although it began first.
        ("a b c a", (2, 50), &[2]),
        ("a b c a", (50, 2), &[2]),
        // Over the number of further ones, the oldest is dropped first, of any turn.
        ("a b a b a b a b", (1, 50), &[1, 3, 5, 7]),
        ("a b a a a a a a b", (1, 50), &[1, 3, 4, 5, 6, 7, 8]),
        ("a b a a a a b a a a a a b b", (2, 50), &[3, 4]),
        // Without turns: one counts, with five further ones for each turn of the limit.
        ("- - - - - - -", (1, 50), &[2]),
        ("- - - - - - -", (2, 1), &[]),
        ("- - - - - - - - - - - - - -", (2, 50), &[2, 3, 4]),
        // Actions before, between and after turns evict none of them.
        ("- a - - b - -", (3, 50), &[]),
        ("- a - - b - -", (2, 50), &[2]),
        ("- a - - b", (50, 2), &[2]),
        ("- - a b", (2, 50), &[1, 2]),
    ];
    for (turns, (run, workspace), gone) in table {
        let all: Vec<_> =
            turns.split(' ').zip(1..).map(|(turn, n)| auto(n, "a", Some(turn).filter(|turn| *turn != "-"))).collect();
        assert_eq!(dropped(&all, &[], &limits(*run, *workspace)), *gone, "{turns}, {run} and {workspace}");
    }
    // The same name in another run is another turn.
    let all = [auto(1, "r", Some("t")), auto(2, "s", Some("t")), auto(3, "s", Some("u")), auto(4, "s", Some("t"))];
    assert_eq!(dropped(&all, &[], &limits(1, 50)), [3]);
    assert_eq!(dropped(&all, &[], &limits(50, 2)), [1]);
}

#[test]
fn automatic_ones_go_before_those_made_by_hand_and_pinned_stay() {
    let mut all = vec![
        by_hand(1),
        checkpoint(2, CheckpointKind::Auto, "a"),
        checkpoint(3, CheckpointKind::Completed, "a"),
        checkpoint(4, CheckpointKind::PreRestore, "a"),
        by_hand(5),
        checkpoint(6, CheckpointKind::Auto, "a"),
    ];
    all[1] = with(all[1].clone(), |record| record.pinned = true);
    assert_eq!(dropped(&all, &[], &limits(20, 3)), [4]);
    assert_eq!(dropped(&all, &[], &limits(20, 1)), [1, 4, 5]);
}

#[test]
fn only_the_newest_base_capture_stays() {
    let all: Vec<_> = [CheckpointKind::Turn, CheckpointKind::Turn, CheckpointKind::Auto]
        .into_iter()
        .zip(1..)
        .map(|(k, n)| checkpoint(n, k, "a"))
        .collect();
    assert_eq!(dropped(&all, &[], &limits(20, 50)), [1]);
}

#[test]
fn a_base_capture_whose_files_changed_since_counts_as_a_quiet_step() {
    let other = ObjectId::of(crate::model::id::ObjectKind::Tree, b"other").unwrap();
    let base = |n: u64, tree: ObjectId| Checkpoint { tree, ..checkpoint(n, CheckpointKind::Turn, "a") };
    let all = [base(1, other), base(2, ObjectId::EMPTY_TREE), base(3, ObjectId::EMPTY_TREE)];
    assert_eq!(dropped(&all, &[], &limits(20, 50)), [2]);
    // Only a private file changed between the last two.
    let layer = |n: u64| with(base(n, other), |record| record.layer = Some(Layer::Sequence(n)));
    assert_eq!(dropped(&[layer(1), layer(2), layer(3)], &[], &limits(20, 50)), Vec::<u64>::new());
    // A limit of one turn keeps fifty of them.
    let many: Vec<_> = (1..=55).map(|n| base(n, if n % 2 == 0 { other } else { ObjectId::EMPTY_TREE })).collect();
    assert_eq!(dropped(&many, &[], &limits(1, 50)), (1..=5).collect::<Vec<u64>>());
}

#[test]
fn labelled_ones_have_a_limit_of_their_own_and_base_captures_none() {
    let labelled = |n: u64| checkpoint(n, CheckpointKind::Manual, "local");
    let all = [labelled(1), by_hand(2), labelled(3), by_hand(4), labelled(5), by_hand(6)];
    assert_eq!(dropped(&all, &[], &limits(20, 2)), [2], "labelled ones count in no other limit");
    let few = Retention { labelled: 1, ..limits(20, 50) };
    assert_eq!(dropped(&all, &[], &few), [1, 3]);
    assert_eq!(dropped(&all, &[all[0].id], &few), [3, 5], "what is needed counts and stays");
    let pinned = with(labelled(1), |record| record.pinned = true);
    assert_eq!(dropped(&[pinned, labelled(2), by_hand(3)], &[], &few), Vec::<u64>::new());
    // A limit of three leaves three, with a base capture among them.
    let all: Vec<_> = [by_hand(1), by_hand(2), checkpoint(3, CheckpointKind::Turn, "a"), by_hand(4), by_hand(5)].into();
    assert_eq!(dropped(&all, &[], &limits(20, 3)), [1]);
    // They do not go for their age either.
    let days = Retention { days: Some(1), ..limits(20, 50) };
    let old = [with(labelled(1), |record| record.time = rfc3339(BEGIN)), at(2, CheckpointKind::Auto, "a", 9 * DAY)];
    assert_eq!(outdated(&old, &Kept::default(), &days, BEGIN + 99 * DAY), Vec::<u64>::new());
}

#[test]
fn untyped_ones_go_with_age_and_a_wrong_clock_makes_nothing_old() {
    let days = Retention { days: Some(7), ..limits(50, 50) };
    let all: Vec<_> = (1..=5).map(|n| at(n, CheckpointKind::Manual, "local", n.cast_signed() * DAY)).collect();
    let gone = |all: &[Checkpoint], now: i64| outdated(all, &Kept::default(), &days, BEGIN + now);
    assert_eq!(gone(&all, 10 * DAY), [1, 2]);
    assert_eq!(gone(&all, 10 * DAY - 1), [1, 2]);
    assert_eq!(gone(&all, 9 * DAY), [1], "not older than seven days");
    assert_eq!(gone(&all, 1000 * DAY), [1, 2, 3, 4], "the newest stays");
    // The clock was in 1970 for a while, or in 2099; or it is now.
    let mut early = all.clone();
    early[3] = with(early[3].clone(), |record| record.time = "1970-01-01T00:00:00.000Z".into());
    assert_eq!(gone(&early, 10 * DAY), [1, 2]);
    let mut late = all.clone();
    late[0] = with(late[0].clone(), |record| record.time = "2099-01-01T00:00:00.000Z".into());
    assert_eq!(gone(&late, 10 * DAY), Vec::<u64>::new());
    assert_eq!(gone(&all, -100 * DAY), Vec::<u64>::new());
    let unread = [with(all[0].clone(), |record| record.time = "never".into()), all[1].clone()];
    assert_eq!(gone(&unread, 100 * DAY), Vec::<u64>::new());
}

#[test]
fn a_turn_is_as_old_as_its_newest_checkpoint() {
    let days = Retention { days: Some(7), ..limits(50, 50) };
    let of_turn = |n: u64, turn: &str, after: i64| {
        with(at(n, CheckpointKind::Auto, "a", after), |record| record.turn = Some(turn.to_owned()))
    };
    let all = [of_turn(1, "t1", 0), of_turn(2, "t2", DAY), of_turn(3, "t1", 5 * DAY), of_turn(4, "t3", 11 * DAY)];
    assert_eq!(outdated(&all, &Kept::default(), &days, BEGIN + 12 * DAY), [2]);
    assert_eq!(outdated(&all, &Kept::default(), &days, BEGIN + 13 * DAY), [1, 2, 3]);
}

#[test]
fn a_run_goes_as_a_whole_with_those_that_grew_out_of_it() {
    let runs = Retention { runs_days: Some(90), ..limits(50, 50) };
    let typed = |n: u64, run: &str, parent: Option<&Checkpoint>, after: i64| {
        let made = at(n, CheckpointKind::Completed, run, after);
        Checkpoint { parents: parent.iter().map(|parent| parent.id).collect(), ..made }
    };
    let first = typed(1, "a", None, 0);
    let second = typed(2, "a", Some(&first), DAY);
    let forked = typed(3, "b", Some(&first), 30 * DAY);
    let leaf = Checkpoint { parents: vec![second.id], ..at(4, CheckpointKind::Auto, "a", DAY) };
    let newest = at(5, CheckpointKind::Manual, "local", 31 * DAY);
    let all = [first, second, forked, leaf, newest];
    let gone = |all: &[Checkpoint], kept: &Kept, now: i64| outdated(all, kept, &runs, BEGIN + now);
    assert_eq!(gone(&all, &Kept::default(), 119 * DAY), Vec::<u64>::new(), "the fork is young");
    assert_eq!(gone(&all, &Kept::default(), 121 * DAY), [1, 2, 3, 4]);
    assert_eq!(gone(&all, &needing(&[all[1].id]), 121 * DAY), Vec::<u64>::new());
    let open = Kept { open_runs: ["b".to_owned()].into(), ..Kept::default() };
    assert_eq!(gone(&all, &open, 121 * DAY), Vec::<u64>::new());
    // A labelled leaf follows the run's checkpoints, which a look for damage wants to find.
    let mut labelled = all.clone();
    labelled[3] =
        with(labelled[3].clone(), |record| (record.kind, record.reason) = (CheckpointKind::Manual, "x".into()));
    assert_eq!(gone(&labelled, &Kept::default(), 121 * DAY), Vec::<u64>::new());
    // Of a plan that was made before, the typed ones go only if nothing of their family has come since.
    let plan = plan(&all, &Kept::default(), &runs, Some(BEGIN + 121 * DAY));
    assert_eq!(numbers(&all, &still(&all, &Kept::default(), &plan)), [1, 2, 3, 4]);
    let mut later = all.to_vec();
    later.push(Checkpoint { parents: vec![all[1].id], ..at(6, CheckpointKind::Auto, "a", 121 * DAY) });
    assert_eq!(numbers(&later, &still(&later, &Kept::default(), &plan)), [4]);
}

#[test]
fn autosaves_thin_out() {
    let minutes = |age: i64| BEGIN + 40 * DAY - age * 60_000;
    // One every ten minutes for three days.
    let times: Vec<Option<i64>> = (0..3 * 144).rev().map(|n| Some(minutes(n * 10))).collect();
    let places: Vec<usize> = (0..times.len()).collect();
    let now = BEGIN + 40 * DAY;
    let gone = thinned(&places, &times, now);
    let left: Vec<usize> = places.iter().filter(|at| !gone.contains(at)).copied().collect();
    let of_age =
        |from: i64, to: i64| left.iter().filter(|at| (from..to).contains(&(now - times[**at].unwrap()))).count();
    assert_eq!((of_age(0, HOUR), of_age(HOUR, DAY), of_age(DAY, 3 * DAY)), (6, 24, 3));
    assert_eq!(thinned(&left, &times, now), Vec::<usize>::new());
}

#[test]
fn a_person_may_delete_the_newest_but_nothing_that_is_needed() {
    let all = [by_hand(1), by_hand(2), by_hand(3)];
    let wish: Vec<_> = all.iter().map(|one| (one.id, DropReason::Deleted)).collect();
    assert_eq!(numbers(&all, &still(&all, &needing(&[all[0].id]), &wish)), [2, 3]);
}

#[test]
fn what_goes_for_its_size_is_the_least_worthy_and_runs_go_together() {
    let all = [
        at(1, CheckpointKind::Completed, "r", 0),
        at(2, CheckpointKind::Completed, "r", 1),
        at(3, CheckpointKind::Turn, "r", 2),
        at(4, CheckpointKind::Autosave, "r", 3),
        at(5, CheckpointKind::Auto, "s", 4),
        at(6, CheckpointKind::Manual, "local", 5),
        checkpoint(7, CheckpointKind::Manual, "local"),
        at(8, CheckpointKind::Auto, "s", 7),
    ];
    let order = order(&all, &Kept::default());
    let numbers: Vec<u64> = order.iter().map(|one| all[one.at].record.ordinal).collect();
    assert_eq!(numbers, [8, 7, 2, 1, 6, 5, 4, 3]);
    let gone = |budget: u64| -> Vec<u64> {
        over(&order, &[10; 8], budget).into_iter().map(|at| all[at].record.ordinal).collect()
    };
    assert_eq!(gone(80), Vec::<u64>::new());
    assert_eq!(gone(79), [3]);
    assert_eq!(gone(45), [3, 4, 5, 6]);
    assert_eq!(gone(35), [3, 4, 5, 6, 1, 2], "the run goes as a whole");
    assert_eq!(gone(0), [3, 4, 5, 6, 1, 2], "the newest and the labelled one stay");
}

/// Makes a history: of each checkpoint its kind, run, turn, the hours since the one before, and whether it is pinned,
/// labelled, needed.
fn histories() -> impl Strategy<Value = (Vec<Checkpoint>, Kept)> {
    let one =
        (0usize..8, 0u8..3, 0u8..4, -50i64..500, prop::bool::weighted(0.1), any::<bool>(), prop::bool::weighted(0.1));
    (prop::collection::vec(one, 0..40), 0u8..8).prop_map(|(some, open)| {
        let kinds = [
            CheckpointKind::Auto,
            CheckpointKind::Auto,
            CheckpointKind::Turn,
            CheckpointKind::Manual,
            CheckpointKind::Autosave,
            CheckpointKind::PreRestore,
            CheckpointKind::Completed,
            CheckpointKind::RigSetup,
        ];
        let (mut all, mut needed, mut time) = (Vec::<Checkpoint>::new(), Vec::new(), 0);
        let mut tips: BTreeMap<u8, ObjectId> = BTreeMap::new();
        for (n, (kind, run, turn, hours, pinned, labelled, is_needed)) in (1..).zip(some) {
            time += hours * HOUR;
            let made = with(at(n, kinds[kind], &format!("r{run}"), time), |record| {
                record.turn = (turn > 0).then(|| format!("t{turn}"));
                record.pinned = pinned;
                // A narrowed one names the base capture just before it.
                let is_base =
                    |one: &&Checkpoint| one.record.kind == CheckpointKind::Turn && one.record.run == record.run;
                let before = all.last().filter(is_base);
                record.whole = before.filter(|_| record.kind.is_typed()).map(|before| before.record.ordinal());
                if labelled && record.kind == CheckpointKind::Manual {
                    record.reason = "a label".to_owned();
                }
            });
            // The first of run 2 is a fork of run 1.
            let parent = tips.get(&run).or_else(|| tips.get(&1).filter(|_| run == 2)).copied();
            let made = Checkpoint { parents: parent.into_iter().collect(), ..made };
            if made.record.kind.is_typed() {
                tips.insert(run, made.id);
            }
            needed.extend(is_needed.then_some(made.id));
            all.push(made);
        }
        let open_runs = (0..3).filter(|run| open & (1 << run) != 0 && open > 4).map(|run| format!("r{run}")).collect();
        (all, Kept { open_runs, ..needing(&needed) })
    })
}

/// Returns all ancestors of checkpoints, themselves included.
fn reached(all: &[Checkpoint], from: impl Iterator<Item = ObjectId>) -> HashSet<ObjectId> {
    let parents: HashMap<ObjectId, &[ObjectId]> = all.iter().map(|one| (one.id, one.parents.as_slice())).collect();
    let (mut open, mut found): (Vec<ObjectId>, HashSet<ObjectId>) = (from.collect(), HashSet::new());
    while let Some(id) = open.pop() {
        if found.insert(id) {
            open.extend(parents.get(&id).copied().unwrap_or_default());
        }
    }
    found
}

proptest! {
    #[test]
    fn what_stays_stays_and_nothing_is_left_without_what_it_follows(
        (all, kept) in histories(),
        (auto, most, labelled) in (1u32..5, 1u32..9, 1u32..4),
        (days, runs_days) in (prop::option::of(1u32..40), prop::option::of(1u32..200)),
        now in prop::option::of(-1000i64..20_000),
    ) {
        let limits = Retention { labelled, days, runs_days, ..limits(auto, most) };
        let now = now.map(|hours| BEGIN + hours * HOUR);
        let plan = plan(&all, &kept, &limits, now);
        let gone: HashSet<ObjectId> = plan.iter().map(|(id, _)| *id).collect();
        prop_assert_eq!(gone.len(), plan.len());
        for (one, why) in all.iter().zip(kept.reasons(&all)) {
            prop_assert!(why.is_none() || !gone.contains(&one.id), "{}: {:?}", one.record.ordinal, why);
        }
        // Nothing that stays follows a typed one that goes: its ref would be gone.
        let left = reached(&all, all.iter().map(|one| one.id).filter(|id| !gone.contains(id)));
        for one in all.iter().filter(|one| one.record.kind.is_typed()) {
            prop_assert!(!(gone.contains(&one.id) && left.contains(&one.id)), "{}", one.record.ordinal);
        }
        prop_assert_eq!(&still(&all, &kept, &plan), &plan, "nothing has changed meanwhile");
    }

    #[test]
    fn a_limit_leaves_as_many_as_it_says((all, kept) in histories(), (most, labelled) in (1u32..9, 1u32..4)) {
        let plan = plan(&all, &kept, &Retention { labelled, ..limits(1000, most) }, None);
        let gone: HashSet<ObjectId> = plan.iter().map(|(id, _)| *id).collect();
        let is_left = |one: &&Checkpoint| !gone.contains(&one.id);
        let named = |one: &&Checkpoint| one.record.is_labelled() && !one.record.pinned;
        let (before, after) = (all.iter().filter(named).count(), all.iter().filter(named).filter(is_left).count());
        prop_assert!(after >= before.min(labelled as usize));
        let counted = |one: &&Checkpoint| {
            let record = &one.record;
            !record.kind.is_typed() && !record.pinned && !record.is_labelled() && record.kind != CheckpointKind::Turn
        };
        let unit = |one: &Checkpoint| match one.record.kind {
            CheckpointKind::Auto => (one.record.run.clone(), one.record.turn.clone(), 0),
            _ => (String::new(), None, one.record.ordinal),
        };
        let units: BTreeSet<_> = all.iter().filter(counted).map(unit).collect();
        prop_assert!(all.iter().filter(counted).filter(is_left).count() >= units.len().min(most as usize));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_go((all, kept) in histories(), days in 1u32..40) {
        let limits = Retention { days: Some(days), runs_days: Some(days), ..limits(1000, 1000) };
        let counts = plan(&all, &kept, &limits, None);
        prop_assert_eq!(plan(&all, &kept, &limits, Some(BEGIN - 3000 * DAY)), counts);
    }

    #[test]
    fn the_order_is_whole_and_what_is_over_goes_from_its_end(
        (all, kept) in histories(),
        sizes in prop::collection::vec(0u64..1000, 40),
        budget in 0u64..20_000,
    ) {
        let order = order(&all, &kept);
        let mut places: Vec<usize> = order.iter().map(|one| one.at).collect();
        let charges = &sizes[..places.len()];
        let going = over(&order, charges, budget);
        // The end of the order goes, and no more of it than is needed.
        let rest = places.len() - going.len();
        prop_assert_eq!(&going, &places[rest..].iter().rev().copied().collect::<Vec<_>>());
        let left: u64 = charges[..rest].iter().sum();
        prop_assert!(left <= budget || rest == 0 || order[rest - 1].stays);
        prop_assert!(going.iter().all(|at| order.iter().any(|one| one.at == *at && !one.stays)));
        let reasons = kept.reasons(&all);
        prop_assert!(going.iter().all(|at| reasons[*at].is_none()));
        let left = reached(&all, places[..rest].iter().map(|at| all[*at].id));
        for at in &going {
            prop_assert!(!(all[*at].record.kind.is_typed() && left.contains(&all[*at].id)));
        }
        for (whole, namers) in floor::named(&all) {
            prop_assert!(!going.contains(&whole) || namers.iter().all(|namer| going.contains(namer)));
        }
        places.sort_unstable();
        prop_assert_eq!(places, (0..all.len()).collect::<Vec<_>>());
    }

    #[test]
    fn shares_are_fair(own in prop::collection::vec(0u64..10_000, 0..20), budget in 0u64..50_000) {
        let shares = shares(&own, budget);
        let sum = shares.iter().sum::<u64>();
        prop_assert!(sum <= budget && shares.iter().zip(&own).all(|(share, own)| share <= own));
        let short: Vec<u64> = shares.iter().zip(&own).filter(|(share, own)| share < own).map(|(share, _)| *share).collect();
        let most = shares.iter().copied().max().unwrap_or(0);
        // One that gets less than it takes gets as much as any other, but for a rest of the division.
        prop_assert!(short.iter().all(|share| share + own.len() as u64 >= most), "{shares:?} of {own:?}");
        prop_assert!(short.is_empty() || budget - sum < own.len() as u64);
    }

    #[test]
    fn budgets_meet_the_cap_if_floors_let_them(
        all in prop::collection::vec((0u64..10_000, 0u64..10_000), 0..20), budget in 0u64..50_000
    ) {
        let own: Vec<u64> = all.iter().map(|(a, b)| *a.max(b)).collect();
        let floors: Vec<u64> = all.iter().map(|(a, b)| *a.min(b)).collect();
        let budgets = budgets(&own, &floors, budget);
        let (sum, least) = (budgets.iter().sum::<u64>(), floors.iter().sum::<u64>());
        prop_assert!(sum <= budget.max(least), "{budgets:?}");
        prop_assert!(budgets.iter().zip(&floors).all(|(budget, floor)| budget >= floor));
        prop_assert!(budgets.iter().zip(&own).all(|(budget, own)| budget <= own));
    }
}
