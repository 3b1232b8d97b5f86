//! Plans which objects are packed anew, so that long-lasting packs stay few, dense and small. Pure.
//!
//! Objects are ordered by the rank of their path. A long-lasting pack holds the objects of neighbouring paths, packed
//! against each other. New objects come in young packs and loose files, in any order. A long-lasting pack is written
//! anew, with the new objects that belong to it, once these or its surplus are more than a small part of it. So each
//! object is copied a bounded number of times while the store grows, and no copy takes more room than a pack.
//!
//! A new object belongs to the pack that has other versions of its path, or the path before it. An object whose path
//! has changed stays with its pack: one renamed file never makes two packs one.

use std::collections::{BTreeMap, HashMap};

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

/// The sizes that a round keeps to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The most extra room that is taken at once.
    pub extra: u64,
    /// The greatest length of a long-lasting pack.
    pub pack: u64,
    /// The greatest length of a pack that a writer makes.
    pub young: u64,
    /// The part of a pack that may be surplus: a quarter, or nothing.
    pub surplus: Option<u64>,
}

/// The extra room that a small store may take for a rewrite.
const LEAST_EXTRA: u64 = 64 << 20;

/// The greatest length of a long-lasting pack in a large store: it has to fit into the extra room of a small one too.
const MOST_PACK: u64 = 64 << 20;

/// The part of a long-lasting pack that its new objects may have: a tenth.
const YOUNG: u64 = 10;

/// The part of a pack that may be surplus: a quarter.
pub(super) const SURPLUS: u64 = 4;

impl Sizes {
    /// Returns the sizes for a store of so many bytes: a tenth of it, or 64 MB if that is more.
    pub(super) fn of(store: u64, young: u64) -> Sizes {
        let extra = (store / 10).max(LEAST_EXTRA);
        Sizes { extra, pack: (extra / 4).min(MOST_PACK), young, surplus: Some(SURPLUS) }
    }

    /// Returns true if a pack of `length` bytes has too many useless ones.
    pub(super) fn is_wasteful(&self, useless: u64, length: u64) -> bool {
        useless > self.surplus.map_or(0, |part| length / part)
    }

    /// Returns the extra room from which on young packs are written anew without what has moved out of them. From
    /// there, one more of them and one more long-lasting pack fit.
    pub(super) fn crowded(&self) -> u64 {
        self.extra.saturating_sub(self.young + self.pack)
    }
}

/// Long-lasting packs of neighbouring paths, with the new objects that belong to them.
#[derive(Default)]
struct PackSpan {
    /// These packs.
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
    let mut groups: Vec<(bool, PackSpan)> = Vec::new();
    for span in spans(items) {
        let useless: u64 = span.packs.iter().filter_map(|pack| surplus.get(pack)).sum();
        let is_due = span.young > span.long / YOUNG || sizes.is_wasteful(useless, span.long + useless);
        match groups.last_mut() {
            // Two neighbours that fill less than half a pack become one.
            Some((due, before)) if before.long + before.young + span.long + span.young < sizes.pack / 2 => {
                *due = true;
                before.items.extend(span.items);
                (before.long, before.young) = (before.long + span.long, before.young + span.young);
            }
            _ => groups.push((is_due, span)),
        }
    }
    let due = groups.into_iter().filter(|(is_due, span)| *is_due && !span.items.is_empty());
    let sorted = due.map(|(_, mut span)| {
        span.items.sort_unstable();
        span.items
    });
    sorted.collect()
}

/// Returns the long-lasting packs by the place of their middle item, each with the new items that belong to it; a single
/// span if there are no packs.
fn spans(items: &[Item]) -> Vec<PackSpan> {
    let mut of: BTreeMap<u32, PackSpan> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let Some(pack) = item.long else { continue };
        let span = of.entry(pack).or_default();
        span.items.push(at);
        span.long += item.bytes;
        span.packs = vec![pack];
    }
    let mut spans: Vec<PackSpan> = of.into_values().collect();
    // The middle, since a few items of other paths do not move it.
    spans.sort_by_key(|span| span.items[span.items.len() / 2]);
    if spans.is_empty() {
        spans.push(PackSpan::default());
    }
    let places: HashMap<u32, usize> =
        spans.iter().enumerate().flat_map(|(at, span)| span.packs.iter().map(move |pack| (*pack, at))).collect();
    let (mut before, mut from) = (0, 0);
    for versions in items.chunk_by(|a, b| a.rank == b.rank) {
        let mut packs = versions.iter().filter_map(|item| item.long).map(|pack| places[&pack]);
        let (first, last) = (packs.next(), packs.next_back());
        let place = first.unwrap_or(before);
        for (at, item) in (from..).zip(versions).filter(|(_, item)| item.long.is_none()) {
            spans[place].items.push(at);
            spans[place].young += item.bytes;
        }
        before = last.unwrap_or(place);
        from += versions.len();
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: Sizes = Sizes { extra: 400, pack: 100, young: 100, surplus: Some(SURPLUS) };

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
            // New objects go to the pack of the path before them, the first ones to the first pack.
            ("1 2:a 3:a 4:a 5:a 6:a 7:b 8:b 9:b 10:b 11:b", [0; 3], "1 2 3 4 5 6"),
            ("2:a 3:a 4:a 5:a 6:a 6 7:b 8:b 9:b 10:b 11:b", [0; 3], "2 3 4 5 6 6"),
            ("2:a 3:a 4:a 5:a 6:a 7:b 8:b 9:b 10:b 11:b 12", [0; 3], "7 8 9 10 11 12"),
            // More than a quarter is surplus.
            ("1:a 2:a 3:a 4:a 5:a 6:a", [20, 0, 0], ""),
            ("1:a 2:a 3:a 4:a 5:a 6:a", [21, 0, 0], "1 2 3 4 5 6"),
            // An object whose path has changed stays where it is, and new ones go where most of the paths beside them are.
            ("1:a 2:a 3:a 4:a 5:a 6:b 7:b 8:b 9:b 9:a 10:b", [0; 3], ""),
            ("1:a 2:a 3:a 4:a 5:a 6:b 7:b 8:b 9:b 9:a 10:b 11", [0; 3], "6 7 8 9 10 11"),
            // New versions go to the pack of the first versions.
            ("1:a 2:a 3:a 3:b 4:b 5:b 6:b 6:b", [0; 3], ""),
            ("1:a 2:a 3 3:a 3:b 4:b 5:b 6:b 6:b", [0; 3], "1 2 3 3"),
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
