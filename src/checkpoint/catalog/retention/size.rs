//! Sizes: the checkpoints that go so that the rest fits, and the fair share of each workspace.

use super::worth::Ranked;

/// Returns the places of the checkpoints that go so that the others take at most `budget` bytes, the least worthy first.
/// `charges` has the bytes of each, in the same order: those of the objects that no more worthy one reaches.
pub fn over(order: &[Ranked], charges: &[u64], budget: u64) -> Vec<usize> {
    let mut taken: u64 = charges.iter().sum();
    let (mut going, mut rest) = (Vec::new(), order.len());
    while taken > budget && rest > 0 {
        let last = order[rest - 1];
        // Those that stay come first in the order: nothing else is left.
        if last.stays {
            break;
        }
        // The typed ones of a run go together.
        let from = match last.family {
            None => rest - 1,
            family => order[..rest].iter().rposition(|one| one.family != family || one.stays).map_or(0, |at| at + 1),
        };
        for at in (from..rest).rev() {
            taken -= charges[at];
            going.push(order[at].at);
        }
        rest = from;
    }
    going
}

/// Shares `budget` bytes among workspaces that take `own` bytes. One that takes less than a fair share leaves the rest to
/// the others. One of which more stays in any case (`floors`) gets just that, and leaves less to the others.
pub fn budgets(own: &[u64], floors: &[u64], mut budget: u64) -> Vec<u64> {
    let mut budgets = floors.to_vec();
    let mut free: Vec<usize> = (0..own.len()).collect();
    loop {
        let owns: Vec<u64> = free.iter().map(|at| own[*at]).collect();
        let shared: Vec<(usize, u64)> = free.iter().copied().zip(shares(&owns, budget)).collect();
        let (low, rest): (Vec<_>, Vec<_>) = shared.into_iter().partition(|(at, share)| floors[*at] > *share);
        if low.is_empty() {
            rest.into_iter().for_each(|(at, share)| budgets[at] = share);
            return budgets;
        }
        budget = low.into_iter().fold(budget, |left, (at, _)| left.saturating_sub(floors[at]));
        free = rest.into_iter().map(|(at, _)| at).collect();
    }
}

/// Shares `budget` bytes among workspaces that take `own` bytes.
pub(super) fn shares(own: &[u64], budget: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..own.len()).collect();
    order.sort_by_key(|at| own[*at]);
    let (mut shares, mut left) = (vec![0; own.len()], budget);
    for (place, at) in order.into_iter().enumerate() {
        let fair = left / (own.len() - place) as u64;
        shares[at] = own[at].min(fair);
        left -= shares[at];
    }
    shares
}
