//! Resolves a selector to the checkpoint that it means, or says why there is none.

use super::checkpoint::Checkpoint;
use super::dropped::{DroppedCheckpoint, FORGET, Ledger, SoughtCheckpoint};
use super::numbers::number_in;
use super::open::{AllCheckpoints, Catalog};
use super::selector::{Selector, matches, named, shown};
use super::words::{Meaning, explain_word, refuse_ambiguous};
use crate::checkpoint::records::pins::Pins;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record, recorded};
use crate::model::id::ObjectId;
use crate::model::id::ObjectKind;
use crate::sys::clock::local_minute;

/// The most times that a checkpoint is followed from one that it has replaced.
const MOST_REPLACED: usize = 100;

impl Catalog {
    /// Finds the one checkpoint that `selector` names: one of this workspace, or, by its id, a fetched one.
    ///
    /// # Errors
    /// `no-such-checkpoint`, `ambiguous-checkpoint` with candidates, `pruned`, `not-a-checkpoint` (an id of a file or
    /// directory), `other-workspace`, `bad-request` for a malformed selector.
    pub fn resolve(&self, selector: &str) -> Result<Checkpoint> {
        let foreign = match Selector::parse(selector)?.as_id() {
            Some(_) => self.foreign()?.checkpoints,
            None => Vec::new(),
        };
        self.resolve_among(selector, foreign)
    }

    /// As [`Catalog::resolve`], of this workspace alone.
    ///
    /// # Errors
    /// As [`Catalog::resolve`].
    pub fn resolve_own(&self, selector: &str) -> Result<Checkpoint> {
        self.resolve_among(selector, Vec::new())
    }

    fn resolve_among(&self, selector: &str, foreign: Vec<Checkpoint>) -> Result<Checkpoint> {
        let parsed = Selector::parse(selector)?;
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        let mut found = matches(&parsed, all);
        // A fetched one is found by its id alone: its number and label count only where it was recorded.
        found.extend(parsed.as_id().map_or_else(Vec::new, |id| matches(&id, &foreign)));
        if let (Some(word), [] | [_]) = (parsed.label(), found.as_slice()) {
            let mut meanings = self.meanings(word, all)?;
            match found.first() {
                Some(one) => {
                    meanings.retain(|meaning| meaning.checkpoint.id != one.id);
                    let first = Meaning { what: what_of(&parsed, one), checkpoint: Checkpoint::clone(one) };
                    meanings.insert(0, first);
                }
                None => meanings.dedup_by_key(|meaning| meaning.checkpoint.id),
            }
            match (meanings.as_slice(), found.is_empty()) {
                ([one], true) => return Ok(self.with_pin(one.checkpoint.clone())),
                ([_, _, ..], _) => return Err(refuse_ambiguous(selector, &meanings)),
                _ => {}
            }
        }
        match found.as_slice() {
            [one] => match self.lost_after(&parsed, one, &known)? {
                Some(lost) => {
                    let text = format!("a checkpoint newer than {} can no longer be read: {lost}", one.record.number);
                    Err(Error::new(Code::StoreDamaged, text)
                        .hint("give a checkpoint by its number; `piton doctor` reports what is damaged"))
                }
                None => Ok(self.with_pin((*one).clone())),
            },
            [] => match self.replacement(&parsed, all, &foreign) {
                Some(new) => Ok(self.with_pin(new)),
                None => Err(self.explain_missing(&parsed, selector, &known)),
            },
            many => {
                let candidates: Vec<String> = many.iter().map(|checkpoint| checkpoint.id.to_string()).collect();
                let short: Vec<String> =
                    many.iter().take(8).map(|c| format!("{} ({})", c.id.short(), c.record.number)).collect();
                let text = format!("`{}` matches {} checkpoints: {}", shown(selector), many.len(), short.join(", "));
                Err(Error::new(Code::AmbiguousCheckpoint, text)
                    .hint("give more digits, or the number that `piton list` shows")
                    .candidates(candidates))
            }
        }
    }

    /// Returns the checkpoint that has taken the place of the one that an id named, if it is still there.
    pub(crate) fn replacement(
        &self,
        parsed: &Selector,
        all: &[Checkpoint],
        foreign: &[Checkpoint],
    ) -> Option<Checkpoint> {
        let mut next = parsed.as_id()?;
        for _ in 0..MOST_REPLACED {
            let by = self.dropped(&next)?.by?;
            if let Some(new) = all.iter().chain(foreign).find(|one| one.id.to_string() == by) {
                return Some(new.clone());
            }
            next = Selector::Prefix(by);
        }
        None
    }

    /// Says that an id named a checkpoint that another one has replaced; `None` if it names this one.
    pub fn told_replaced(&self, selector: &str, found: &Checkpoint) -> Option<String> {
        let Some(Selector::Prefix(hex)) = Selector::parse(selector).ok()?.as_id() else { return None }; // it was parsed before
        if found.id.to_string().starts_with(&hex) || found.record.number.to_string() == selector {
            return None;
        }
        let gone = self.dropped(&Selector::Prefix(hex)).filter(|gone| gone.by.is_some())?;
        let (n, id, time) = (found.record.number, found.id.short(), local_minute(gone.at));
        Some(format!("`{}` was replaced by {id} ({}, {time}); this is checkpoint {n} now", shown(selector), gone.rule))
    }

    /// Says why nothing matched: pruned, not a checkpoint, of another workspace, or unknown.
    fn explain_missing(&self, parsed: &Selector, selector: &str, known: &AllCheckpoints) -> Error {
        let (word, selector, all) = (parsed.label(), shown(selector), known.checkpoints.as_slice());
        let none =
            |code, text: String| Error::new(code, text).hint("see `piton list` for this workspace's checkpoints");
        if let Some(gone) = self.dropped(parsed) {
            let text = told(&gone);
            return match gone.by {
                Some(by) => Error::new(Code::Pruned, text).hint(format!("`piton show {}` shows it", shown(&by))),
                None => none(Code::Pruned, text),
            };
        }
        // Where the log cannot be read, what is known answers.
        let broken = self.broken(known).unwrap_or_else(|_| known.broken.clone());
        if let Some(lost) = self.lost_with(parsed, known, &broken) {
            let text = format!("checkpoint `{selector}` might be one that can no longer be read: {lost}");
            return Error::new(Code::StoreDamaged, text)
                .hint("`piton doctor` reports what is damaged and how to fix it");
        }
        if let Some(error) = word.and_then(|word| explain_word(word, all)) {
            return error;
        }
        match parsed {
            Selector::Back(_) if all.is_empty() => {
                Error::new(Code::NoSuchCheckpoint, "there is no checkpoint in this workspace yet")
                    .hint("`piton checkpoint` takes one")
            }
            Selector::Number(_) => match parsed.number() {
                Some(n) if n.main == self.next_number(known) && self.unmoved().is_ok_and(|name| name.is_some()) => {
                    let text = format!("piton was killed before checkpoint {n} was finished");
                    Error::new(Code::NoSuchCheckpoint, text).hint("the next checkpoint finishes it")
                }
                Some(n) if n.step == 0 && n.main > 0 && n.main < self.next_number(known) => {
                    none(Code::Pruned, format!("checkpoint {n} is no longer kept (retention)"))
                }
                _ => {
                    let missing = none(Code::NoSuchCheckpoint, format!("no checkpoint `{selector}` in this workspace"));
                    let is_id =
                        selector.len() >= 4 && self.store.resolve_prefix(&selector).is_ok_and(|ids| !ids.is_empty());
                    if is_id {
                        missing.hint(format!("for an id that has only digits, write `id:{selector}`"))
                    } else {
                        missing
                    }
                }
            },
            Selector::Prefix(hex) => self.explain_prefix(hex),
            Selector::Hex(hex) => self.explain_prefix(&hex.to_lowercase()),
            Selector::Codon { run, codon, typed, .. } => {
                let (code, text) = explain_codon(run, codon, typed, all);
                none(code, text)
            }
            _ => none(Code::NoSuchCheckpoint, format!("no checkpoint `{selector}` in this workspace")),
        }
    }

    /// Returns the ref that cannot be read and may have kept what a selector names.
    fn lost_with<'b>(&self, parsed: &Selector, known: &AllCheckpoints, broken: &'b [String]) -> Option<&'b str> {
        let branches = self.branch_prefix();
        broken.iter().map(String::as_str).find(|line| {
            let name = line.split(": ").next().unwrap_or_default();
            // A leaf says its place in the sequence in its name; a branch is of a run, and holds whatever that recorded.
            let run = name.strip_prefix(&branches);
            match parsed {
                // No number is higher than the place in the sequence.
                Selector::Number(_) => match parsed.number() {
                    Some(n) if n.main < self.next_number(known) => run.is_some() || number_in(name) >= Some(n.main),
                    _ => false,
                },
                Selector::Codon { run: wanted, .. } => {
                    let later = run.and_then(|run| run.strip_prefix(wanted.as_str()));
                    later.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                }
                Selector::Prefix(hex) => line.contains(&format!(" {}", hex.to_lowercase())),
                Selector::Hex(_) | Selector::Label(_) | Selector::Back(_) => true,
            }
        })
    }

    /// Returns the ref that cannot be read and may have kept a newer checkpoint than the one that so many steps back leads to.
    fn lost_after(&self, parsed: &Selector, found: &Checkpoint, known: &AllCheckpoints) -> Result<Option<String>> {
        let Selector::Back(_) = parsed else { return Ok(None) };
        let passed_over = [CheckpointKind::PreRestore, CheckpointKind::Turn, CheckpointKind::Step];
        let prefixes = passed_over.map(|kind| format!("{}{}/", self.leaf_prefix(), kind.as_str()));
        Ok(self.broken(known)?.into_iter().find(|line| {
            let name = line.split(": ").next().unwrap_or_default();
            let counts = !prefixes.iter().any(|prefix| name.starts_with(prefix));
            // A branch holds whatever its run recorded.
            counts && (name.starts_with(&self.branch_prefix()) || number_in(name) > Some(found.record.ordinal))
        }))
    }

    /// Returns the checkpoint that a selector would name if it had not been dropped. An id is explained from anywhere, also
    /// one of a workspace that has no history any more.
    fn dropped(&self, parsed: &Selector) -> Option<DroppedCheckpoint> {
        let labels = parsed.label().map_or_else(Vec::new, |label| vec![label.to_owned(), recorded(label)]);
        let number = parsed.number().filter(|number| !number.is_none());
        let id = match parsed.as_id() {
            Some(Selector::Prefix(hex)) if number.is_none() => Some(hex),
            _ => None,
        };
        let elsewhere = SoughtCheckpoint { id: id.clone(), ..SoughtCheckpoint::default() };
        let found = Ledger::of_workspace(&self.workspace.dir).find(&SoughtCheckpoint { number, id, labels });
        found.or_else(|| Ledger::of_home(self.home.path()).find(&elsewhere).filter(|_| elsewhere.id.is_some()))
    }

    /// Says when and by which rule a checkpoint was pruned; `None` for one that is there, and for one that was not pruned.
    pub(crate) fn told_pruned(&self, id: &ObjectId) -> Option<String> {
        if self.all().ok()?.checkpoints.iter().any(|one| one.id == *id) {
            return None;
        }
        Ledger::of_workspace(&self.workspace.dir).pruned(id).map(|gone| told(&gone))
    }

    /// Returns a checkpoint with its pin as it is now.
    fn with_pin(&self, mut checkpoint: Checkpoint) -> Checkpoint {
        // Where the pins cannot be read, the record's own is shown; nothing is dropped then.
        let pins = Pins::load(&self.workspace.dir).unwrap_or_default();
        let pinned = pins.holds(&checkpoint.record);
        if pinned != checkpoint.record.pinned {
            checkpoint.record = Record { pinned, ..Record::clone(&checkpoint.record) }.into();
        }
        checkpoint
    }

    fn explain_prefix(&self, hex: &str) -> Error {
        let hint = "see `piton list` for this workspace's checkpoints";
        for id in self.store.resolve_prefix(hex).unwrap_or_default() {
            match self.store.kind_of(&id) {
                Ok(Some(ObjectKind::Commit)) => {
                    let record = self.store.read_commit(&id).ok().and_then(|commit| Record::parse(&commit.message));
                    return match record {
                        Some(record) if record.workspace != self.workspace.id => {
                            Error::new(Code::OtherWorkspace, format!("`{hex}` is a checkpoint of another workspace"))
                                .hint("run the command in that workspace, or give it with `--workspace`")
                        }
                        Some(_) => Error::new(Code::Pruned, format!("checkpoint `{hex}` is no longer kept")).hint(hint),
                        None => Error::new(Code::NotACheckpoint, format!("`{hex}` is not a checkpoint")).hint(hint),
                    };
                }
                Ok(Some(kind)) => {
                    return Error::new(
                        Code::NotACheckpoint,
                        format!("`{hex}` is a {}, not a checkpoint", kind.as_str()),
                    )
                    .hint(hint);
                }
                Ok(None) | Err(_) => {}
            }
        }
        Error::new(Code::NoSuchCheckpoint, format!("no checkpoint `{hex}` in this workspace")).hint(hint)
    }

    /// Refuses when the newest checkpoint is not the one the client has seen.
    ///
    /// # Errors
    /// `stale-selection` naming the newest one.
    pub fn require_newest(&self, seen: &str) -> Result<()> {
        let seen = self.resolve_own(seen)?;
        match self.all()?.checkpoints.last().filter(|newest| newest.record.ordinal > seen.record.ordinal) {
            None => Ok(()),
            Some(newest) => {
                let text = format!("checkpoint {} was recorded since", newest.record.number);
                Err(Error::new(Code::StaleSelection, text)
                    .hint("list the checkpoints again, then repeat the request")
                    .candidates(vec![newest.id.to_string()]))
            }
        }
    }
}

/// Says what a selector is that found a checkpoint.
fn what_of(parsed: &Selector, found: &Checkpoint) -> &'static str {
    match parsed {
        Selector::Codon { codon, .. } if found.record.codon_id.as_deref() == Some(codon) => "a codon",
        Selector::Hex(hex) if found.id.to_string().starts_with(&hex.to_lowercase()) => "an id",
        _ => "a label",
    }
}

/// Says of a dropped checkpoint when it was dropped, and by which rule.
fn told(gone: &DroppedCheckpoint) -> String {
    let label = gone.label.as_deref().map(|label| format!(" (`{}`)", shown(label))).unwrap_or_default();
    let of = gone.of.as_deref().map(|of| format!(" of {}", shown(of))).unwrap_or_default();
    let by = gone.by.as_deref().map(|by| format!("; {} has taken its place", shown(by))).unwrap_or_default();
    let time = local_minute(gone.at);
    match gone.rule == FORGET {
        true => format!("checkpoint {}{label}{of} was forgotten on {time}{by}", gone.n),
        false => format!("checkpoint {}{label}{of} was pruned on {time} by `{}`{by}", gone.n, gone.rule),
    }
}

/// Says why `typed`, which reads as a codon of a run, names no checkpoint.
fn explain_codon(run: &str, codon: &str, typed: &str, all: &[Checkpoint]) -> (Code, String) {
    let is_run = all.iter().any(|checkpoint| checkpoint.record.run == run);
    let is_codon = |run: &str, codon: &str| {
        let mut of_run = all.iter().filter(|checkpoint| checkpoint.record.run == run);
        of_run.any(|checkpoint| checkpoint.record.codon_id.as_deref() == Some(codon))
    };
    let (before, word) = typed.rsplit_once(':').unwrap_or_default();
    // The last word may be no type at all.
    let is_other_type = matches!(named(before), Selector::Codon { run, codon, .. } if is_codon(&run, &codon));
    let selector = shown(typed);
    if is_other_type || is_codon(run, codon) {
        return (Code::NoSuchType, format!("`{selector}`: that codon has no `{}` checkpoint", shown(word)));
    }
    match is_run {
        true => (Code::NoSuchCodon, format!("`{selector}`: that run has no such codon")),
        false => (Code::NoSuchCheckpoint, format!("no checkpoint `{selector}` in this workspace")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::capture::request::Take;
    use crate::checkpoint::{Home, Timeline, Workspace};
    use crate::sys::interrupt::Flow;

    #[test]
    fn labels_that_are_refused_today_are_still_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let home = Home::at(&dir.path().join("home")).unwrap();
        let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
        let mut timeline = Timeline::open(&home, Workspace::open(&home, &root).unwrap(), policy).unwrap();
        for label in ["cafe", "12AB", "a:b", "a:b:c", "local:codon:completed", "n\nl", "\u{1b}[31m"] {
            let mut take = Take::of(CheckpointKind::Manual, "local", label);
            take.draft.always = true;
            let taken = timeline.take(&take, &|| Flow::Continue).unwrap();
            let found = timeline.catalog().resolve(label).unwrap_or_else(|error| panic!("{label:?}: {}", error.text()));
            assert_eq!(found.id, taken.checkpoint.id, "{label:?}");
            assert_eq!(Take::by_hand("local", Some(label), Vec::new(), false).unwrap_err().code(), Code::BadRequest);
        }
    }
}
