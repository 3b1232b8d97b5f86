//! Judges whose work the present content of a file is, by the claims on it. Pure.

use crate::model::turn::Attribution;

/// Somebody with a claim, as the asker sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimant {
    /// The run that asks, or one of the same agent: its sub-agents, the agent above.
    Own,
    /// Another run that goes on, by its place in a list.
    Live(usize),
    /// A person's shell, or a git outside of all clients.
    Person,
    /// A run that has ended, or actions that belong to no turn.
    Gone,
}

/// A claim: a share in the change that led to the present content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// The one that has it.
    pub who: Claimant,
    /// The share.
    pub share: Attribution,
    /// True if no action of anybody else was at work in its time: then a shared change is a person's too.
    pub is_alone: bool,
}

/// The owner of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A run that goes on, by its place in the list of claimants.
    Run(usize),
    /// A person: no run has made it.
    Person,
}

/// Returns the owner of a change of which no commit is known, from the claims on it; `None` where it is the asker's own, belongs to
/// nobody who is there, or cannot be told.
pub(super) fn owner(claims: &[Claim]) -> Option<Owner> {
    use Attribution::{Likely, Outside, Shared, Sure, Touched, Unknown};
    let of = |who: fn(&Claimant) -> bool| claims.iter().filter(move |claim| who(&claim.who) && claim.share != Outside);
    let own = || of(|who| *who == Claimant::Own);
    // The asker changed it last, and nobody else between.
    if own().any(|claim| matches!(claim.share, Sure | Likely)) {
        return None;
    }
    let is_known = |claim: &&Claim| claim.share != Unknown;
    let live = of(|who| matches!(who, Claimant::Live(_))).find(is_known);
    if let Some(Claim { who: Claimant::Live(at), .. }) = live {
        return Some(Owner::Run(*at));
    }
    if of(|who| *who == Claimant::Person).any(|claim| is_known(&claim)) {
        return Some(Owner::Person);
    }
    // A formatter or a server may have written the asker's file again.
    let is_doubtful = claims.iter().any(|claim| matches!(claim.share, Unknown | Touched));
    let is_others = of(|who| *who == Claimant::Gone).next().is_some();
    let is_person = !is_doubtful && !is_others && own().all(|claim| claim.share == Shared && claim.is_alone);
    is_person.then_some(Owner::Person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Attribution::{Likely, Outside, Shared, Sure, Touched, Unknown};

    #[test]
    fn a_change_belongs_to_those_who_made_it_last() {
        let (own, live, gone, person) = (Claimant::Own, Claimant::Live(7), Claimant::Gone, Claimant::Person);
        let (run, nobody, a_person) = (Some(Owner::Run(7)), None, Some(Owner::Person));
        for (claims, expected, why) in [
            (&[][..], a_person, "no run has a claim"),
            (&[(own, Outside)], a_person, "nobody was at work"),
            (&[(own, Sure)], nobody, "the asker's own"),
            (&[(own, Likely)], nobody, "the asker's own"),
            (&[(own, Touched)], nobody, "a formatter behind the asker"),
            (&[(own, Unknown)], nobody, "nobody watched"),
            (&[(own, Shared)], a_person, "somebody's before the asker's"),
            (&[(own, Shared), (own, Outside)], a_person, "the same while an own sub-agent waits"),
            (&[(live, Sure)], run, "another's"),
            (&[(live, Likely)], run, "another's"),
            (&[(live, Touched)], run, "another's, written again"),
            (&[(live, Unknown)], nobody, "nobody watched"),
            (&[(live, Outside)], a_person, "between the actions of another"),
            (&[(own, Outside), (live, Sure)], run, "another's while the asker's turn was open"),
            (&[(own, Shared), (live, Touched)], run, "another's, and then the asker's"),
            (&[(own, Touched), (live, Sure)], run, "the asker's, and then another's"),
            (&[(own, Unknown), (live, Sure)], run, "nobody watched, and another names it"),
            (&[(own, Sure), (live, Outside)], nobody, "the asker's while another's turn was open"),
            (&[(own, Sure), (live, Likely)], nobody, "the asker named it"),
            (&[(own, Shared), (live, Shared)], run, "both were at work"),
            (&[(gone, Sure)], nobody, "a run that has ended"),
            (&[(gone, Sure), (own, Outside)], nobody, "a run that has ended"),
            (&[(gone, Likely), (live, Sure)], run, "another's since"),
            (&[(own, Shared), (gone, Likely)], nobody, "the asker's and that of one that has ended"),
            (&[(person, Sure)], a_person, "a person's shell"),
            (&[(person, Sure), (own, Outside)], a_person, "a person's shell"),
            (&[(person, Unknown)], nobody, "nobody watched"),
        ] {
            let mut claims: Vec<Claim> =
                claims.iter().map(|(who, share)| Claim { who: *who, share: *share, is_alone: true }).collect();
            assert_eq!(owner(&claims), expected, "{why}: {claims:?}");
            // Where others were at work too, a shared change may be theirs.
            claims.iter_mut().for_each(|claim| claim.is_alone = false);
            let is_shared = claims.iter().any(|claim| claim.share == Shared);
            let expected = expected.filter(|owner| !is_shared || *owner != Owner::Person);
            assert_eq!(owner(&claims), expected, "{why}, not alone: {claims:?}");
        }
    }
}
