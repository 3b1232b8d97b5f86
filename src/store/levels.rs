//! Plans which objects are packed anew, so that long-lasting packs stay few, dense and small. Pure.
//!
//! Objects are ordered by the rank of their path. A long-lasting pack holds the objects of one range of ranks, packed
//! against each other; ranges do not overlap. New objects come in young packs and loose files, in any order. A range is
//! written anew, with the new objects that belong to it, once these or its surplus are more than a small part of it.
//! So each object is copied a bounded number of times while the store grows, and no copy takes more room than a range.

use std::collections::BTreeMap;

/// The best copy of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// The rank of its path.
    pub rank: u32,
    /// The bytes that it takes.
    pub bytes: u64,
    /// Its long-lasting pack; `None` if it is young.
    pub long: Option<u32>,
}

/// The sizes that a plan keeps to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The most extra room that a rewrite takes.
    pub extra: u64,
    /// The length from which on a long-lasting pack is finished.
    pub pack: u64,
}

/// The extra room that a small store may take for a rewrite.
const LEAST_EXTRA: u64 = 64 << 20;

/// The part of a range that may be young: a tenth.
const YOUNG: u64 = 10;

/// The part of a range or of a pack that may be surplus: a quarter.
pub(super) const SURPLUS: u64 = 4;

impl Sizes {
    /// Returns the sizes for a store of so many bytes: a tenth of it, or 64 MB if that is more.
    pub(super) fn of(store: u64) -> Sizes {
        let extra = (store / 10).max(LEAST_EXTRA);
        Sizes { extra, pack: extra / 4 }
    }
}

/// A range of ranks.
#[derive(Default)]
struct Span {
    /// The lowest rank in its long-lasting packs.
    first: u32,
    /// The highest rank in them.
    last: u32,
    /// These packs; several if they overlap.
    packs: Vec<u32>,
    /// The places of its items.
    items: Vec<usize>,
    /// Bytes of its items that stand in the packs.
    long: u64,
    /// Bytes of its other items.
    young: u64,
}

/// Returns the groups of items to pack anew, each in the order of ranks, as places in `items`, which ascend by rank.
/// `surplus` has the useless bytes of each long-lasting pack.
pub(super) fn due(items: &[Item], surplus: &BTreeMap<u32, u64>, sizes: Sizes) -> Vec<Vec<usize>> {
    let mut spans = spans(items);
    for (at, item) in items.iter().enumerate() {
        let place = match item.long {
            Some(pack) => spans.iter().position(|span| span.packs.contains(&pack)),
            None => spans.partition_point(|span| span.first <= item.rank).checked_sub(1),
        };
        // What comes before the first range belongs to it.
        let span = &mut spans[place.unwrap_or(0)];
        span.items.push(at);
        let sum = if item.long.is_some() { &mut span.long } else { &mut span.young };
        *sum += item.bytes;
    }
    let mut groups: Vec<(bool, Span)> = Vec::new();
    for span in spans {
        let useless: u64 = span.packs.iter().filter_map(|pack| surplus.get(pack)).sum();
        let is_due =
            span.packs.len() > 1 || span.young > span.long / YOUNG || useless > (span.long + useless) / SURPLUS;
        match groups.last_mut() {
            // Two neighbours that fill less than half a pack become one.
            Some((due, before)) if before.long + before.young + span.long + span.young < sizes.pack / 2 => {
                *due = true;
                before.items.extend(span.items);
                before.items.sort_unstable();
                (before.long, before.young) = (before.long + span.long, before.young + span.young);
            }
            _ => groups.push((is_due, span)),
        }
    }
    groups.into_iter().filter(|(is_due, span)| *is_due && !span.items.is_empty()).map(|(_, span)| span.items).collect()
}

/// Returns the ranges of the long-lasting packs in their order, those that overlap as one; a single empty one if there
/// are no packs.
fn spans(items: &[Item]) -> Vec<Span> {
    let mut packs: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for item in items {
        if let Some(pack) = item.long {
            let ranks = packs.entry(pack).or_insert((item.rank, item.rank));
            *ranks = (ranks.0.min(item.rank), ranks.1.max(item.rank));
        }
    }
    let mut sorted: Vec<(u32, u32, u32)> = packs.into_iter().map(|(pack, (first, last))| (first, last, pack)).collect();
    sorted.sort_unstable();
    let mut spans: Vec<Span> = Vec::new();
    for (first, last, pack) in sorted {
        match spans.last_mut() {
            // Versions of one path may stand at the end of one pack and at the beginning of the next.
            Some(span) if first < span.last => {
                span.packs.push(pack);
                span.last = span.last.max(last);
            }
            _ => spans.push(Span { first, last, packs: vec![pack], ..Span::default() }),
        }
    }
    if spans.is_empty() {
        spans.push(Span::default());
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: Sizes = Sizes { extra: 400, pack: 100 };

    /// Makes items of ten bytes: a rank each, and a letter for the long-lasting pack.
    fn items(text: &str) -> Vec<Item> {
        let item = |word: &str| {
            let (rank, pack) = word.split_once(':').unwrap_or((word, ""));
            let long = pack.bytes().next().map(|letter| u32::from(letter - b'a'));
            Item { rank: rank.parse().unwrap(), bytes: 10, long }
        };
        text.split(' ').filter(|word| !word.is_empty()).map(item).collect()
    }

    #[test]
    fn what_is_packed_anew() {
        // Items; the useless bytes of packs a, b and c; the groups of ranks.
        let table: &[(&str, [u64; 3], &str)] = &[
            ("", [0; 3], ""),
            ("1 2 3", [0; 3], "1 2 3"),
            ("1:a 2:a 3:a 4:a 5:a 6:a 7:b 8:b 9:b 10:b", [0; 3], ""),
            // A new object among ten, and a second one.
            ("1:a 1:a 1:a 1:a 1:a 1:a 1:a 1:a 1:a 1:a 2", [0; 3], ""),
            ("1:a 1:a 1:a 1:a 1:a 1:a 1:a 1:a 1:a 1:a 2 3", [0; 3], "1 1 1 1 1 1 1 1 1 1 2 3"),
            // New objects go to the range before them, the first ones to the first range.
            ("1 2:a 3:a 4:a 5:a 6:a 7:b 8:b 9:b 10:b 11:b", [0; 3], "1 2 3 4 5 6"),
            ("2:a 3:a 4:a 5:a 6:a 6 7:b 8:b 9:b 10:b 11:b", [0; 3], "2 3 4 5 6 6"),
            ("2:a 3:a 4:a 5:a 6:a 7:b 8:b 9:b 10:b 11:b 12", [0; 3], "7 8 9 10 11 12"),
            // More than a quarter is surplus.
            ("1:a 2:a 3:a 4:a 5:a 6:a", [20, 0, 0], ""),
            ("1:a 2:a 3:a 4:a 5:a 6:a", [21, 0, 0], "1 2 3 4 5 6"),
            // Packs that overlap become one; versions of one path in two packs do not count.
            ("1:a 2:b 3:a 4:b 5:c 6:c 7:c 8:c 9:c 9:c 9:c", [0; 3], "1 2 3 4"),
            ("1:a 2:a 3:a 3:b 4:b 5:b", [0; 3], ""),
            // Neighbours that fill less than half a pack.
            ("1:a 2:a 3:b 4:b", [0; 3], "1 2 3 4"),
        ];
        for (given, useless, expected) in table {
            let items = items(given);
            let surplus = (0..).zip(*useless).collect();
            let groups = due(&items, &surplus, SIZES);
            let text: Vec<String> = groups
                .iter()
                .map(|group| group.iter().map(|at| items[*at].rank.to_string()).collect::<Vec<_>>().join(" "))
                .collect();
            assert_eq!(text.join(" | "), *expected, "{given}");
        }
    }

    proptest! {
        #[test]
        fn every_item_is_in_one_group_at_most_and_a_second_plan_is_empty(
            given in proptest::collection::vec((0u32..60, 1u64..200, proptest::option::of(0u32..5)), 0..80),
        ) {
            let mut items: Vec<Item> = given.iter().map(|(rank, bytes, long)| Item { rank: *rank, bytes: *bytes, long: *long }).collect();
            items.sort_by_key(|item| item.rank);
            let groups = due(&items, &BTreeMap::new(), SIZES);
            let mut places: Vec<usize> = groups.iter().flatten().copied().collect();
            let count = places.len();
            places.sort_unstable();
            places.dedup();
            prop_assert_eq!(places.len(), count);
            prop_assert!(groups.iter().all(|group| group.is_sorted()));
            // Written as it says, one pack for each group, nothing overlaps any more and nothing is due.
            for (at, group) in groups.iter().enumerate() {
                group.iter().for_each(|place| items[*place].long = Some(100 + at as u32));
            }
            let again = due(&items, &BTreeMap::new(), Sizes { pack: 0, ..SIZES });
            prop_assert!(again.is_empty(), "{:?}", again);
        }
    }
}
