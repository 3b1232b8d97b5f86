//! The plan by which a repository goes back: which refs, files and entries of the index go back, and which have moved on since.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::{stashes, without};
use crate::git::ref_moves::RefMove;
use crate::git::user_repository::TreeSwitch;
use crate::model::path::RelPath;
use crate::model::repository::{HEAD, REMOTES, RefValue, RepositoryState, STASH};
use crate::model::text::printable;

/// A part of a repository that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPart {
    /// The part, for people: "branch `x`", "the index".
    pub what: String,
    /// The reason.
    pub why: String,
}

impl KeptPart {
    /// Returns a ref as a part that stays.
    fn of_ref(name: &[u8], why: &str) -> KeptPart {
        KeptPart { what: title(name), why: why.to_owned() }
    }
}

/// The reason of a part that somebody else has changed since.
const MOVED_ON: &str = "changed since";

/// The reason of a part that is younger than the moment to which the rest goes back.
const MADE_SINCE: &str = "made since";

/// The files that are named one by one.
const MOST_NAMED: usize = 10;

/// The index, for people.
pub(super) const INDEX: &str = "the index (what is staged)";

/// The reason of an index that cannot be read.
const UNREADABLE: &str = "git cannot read it as it was";

/// The reason of an index that names content that is gone.
pub(super) const LOST: &str =
    "it refers to content that is no longer in the repository; to stage the files again, use `git add`";

/// The reason of a ref whose name git cannot have beside another one.
const IN_THE_WAY: &str = "another ref is in its way: git cannot have both `a` and `a/b`";

/// The reason of a ref whose objects are gone.
pub(super) const GONE: &str = "its commit is no longer in the repository (`git gc` removes unreferenced commits)";

/// The reason of HEAD, and of the index, whose branch or commit stays as it is.
const WITHOUT_BRANCH: &str = "its branch or commit cannot be restored";

/// The reason of an operation in progress whose index stays as it is.
pub(super) const WITHOUT_INDEX: &str = "the index cannot be restored with it";

/// The reason of a part that stays because another one, which it depends on, stays.
const TOGETHER: &str = "it must match the parts that are not changed";

/// An operation in progress, for people.
const IN_PROGRESS: &str = "a merge, rebase or similar operation in progress";

/// The file with the uncommitted work that a rebase has put aside.
const PUT_ASIDE: &[&str] = &["rebase-merge/autostash", "rebase-apply/autostash"];

/// Refs that belong to an operation in progress.
const OF_OPERATION: &[&[u8]] = &[b"refs/bisect/", b"refs/rewritten/"];

/// The reason of a branch that another work tree works on.
const ELSEWHERE: &str = "another work tree has it checked out";

/// The steps by which a repository goes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryPlan {
    /// Refs that move, in the order of their names.
    pub refs: Vec<RefMove>,
    /// The log that the stash gets.
    pub stash: Option<Vec<u8>>,
    /// True if the index goes back.
    pub index: bool,
    /// The switch that restores the files and the index.
    pub switch: Option<TreeSwitch>,
    /// Files of an operation in progress that are written, or removed.
    pub operation: BTreeMap<RelPath, Option<Vec<u8>>>,
    /// The parts that stay although they were to go back.
    pub kept: Vec<KeptPart>,
    /// The parts that stay because they are younger than the moment to which the rest goes back.
    pub younger: Vec<KeptPart>,
}

/// Returns files that somebody else has changed since as parts that stay.
pub(super) fn moved_on<'p>(paths: impl Iterator<Item = &'p RelPath>) -> Vec<KeptPart> {
    let part = |path: &RelPath| KeptPart { what: format!("`{}`", path.display()), why: MOVED_ON.to_owned() };
    first_named(paths.map(part).collect(), "files", MOVED_ON)
}

/// Cuts a list of parts of one sort: `why` is the reason of those that are only counted.
pub(super) fn first_named(mut parts: Vec<KeptPart>, sort: &str, why: &str) -> Vec<KeptPart> {
    let more = parts.len().saturating_sub(MOST_NAMED);
    parts.truncate(MOST_NAMED);
    let rest = (more > 0).then(|| KeptPart { what: format!("{more} more {sort}"), why: why.to_owned() });
    parts.extend(rest);
    parts
}

impl RepositoryPlan {
    /// Returns true if it does nothing.
    pub fn is_nothing(&self) -> bool {
        let has_none = self.refs.is_empty() && self.stash.is_none() && self.operation.is_empty();
        has_none && !self.index && self.switch.is_none()
    }

    /// Keeps some refs where they are: the files and the index of another work tree belong to its commit.
    pub(super) fn spare(&mut self, elsewhere: &BTreeSet<Vec<u8>>) {
        let spared = self.refs.extract_if(.., |one| elsewhere.contains(&one.name));
        self.kept.extend(spared.map(|one| KeptPart::of_ref(&one.name, ELSEWHERE)));
    }

    /// Returns true if a part stays because it cannot go back, and not because somebody has changed it since.
    fn cannot_move(&self, what: &str) -> bool {
        self.kept.iter().any(|part| part.what == what && part.why != MOVED_ON)
    }

    /// Keeps HEAD and the index where they are, if the branch or the commit that HEAD has in the state `before` cannot go back. Otherwise
    /// everything would look staged, or two work trees would be on one branch. `elsewhere` has the branches of other work trees.
    pub(super) fn keep_head_without_its_branch(&mut self, before: &RepositoryState, elsewhere: &BTreeSet<Vec<u8>>) {
        let moves_head = self.refs.iter().any(|one| one.name == HEAD);
        let is_bare = match before.refs.get(HEAD) {
            Some(RefValue::Symbolic(branch)) => {
                self.cannot_move(&title(branch)) || (moves_head && elsewhere.contains(branch))
            }
            _ => self.cannot_move(&title(HEAD)),
        };
        if !is_bare {
            return;
        }
        self.refs.retain(|one| one.name != HEAD);
        if moves_head {
            self.kept.push(KeptPart::of_ref(HEAD, WITHOUT_BRANCH));
        }
        if std::mem::take(&mut self.index) {
            self.kept.push(KeptPart { what: INDEX.to_owned(), why: WITHOUT_BRANCH.to_owned() });
        }
        self.keep_operation(WITHOUT_BRANCH);
    }

    /// Keeps HEAD, the branch that it is on at present, the index and an operation in progress as they are, if one of them cannot go back.
    /// Only together they are the state of one moment.
    pub(super) fn keep_together(&mut self, before: &RepositoryState, now: &RepositoryState) {
        let has_operation = !before.operation.is_empty();
        let is_tied = self.cannot_move(INDEX)
            || self.cannot_move(&title(HEAD))
            || (has_operation && self.cannot_move(IN_PROGRESS));
        if !is_tied {
            return;
        }
        if std::mem::take(&mut self.index) {
            self.kept.push(KeptPart { what: INDEX.to_owned(), why: TOGETHER.to_owned() });
        }
        let present = match now.refs.get(HEAD) {
            Some(RefValue::Symbolic(branch)) => Some(branch),
            _ => None,
        };
        let tied = self.refs.extract_if(.., |one| one.name == HEAD || Some(&one.name) == present);
        self.kept.extend(tied.map(|one| KeptPart::of_ref(&one.name, TOGETHER)));
        self.keep_operation(TOGETHER);
    }

    /// Keeps an operation in progress as it is now, if it was to change.
    pub(super) fn keep_operation(&mut self, why: &str) {
        if !self.operation.is_empty() {
            self.operation.clear();
            self.kept.push(KeptPart { what: IN_PROGRESS.to_owned(), why: why.to_owned() });
        }
    }

    /// Tells of uncommitted work that a rebase has put aside, if the file that names it goes. `now` has the files of operations.
    pub(super) fn tell_put_aside(&mut self, now: &BTreeMap<RelPath, Vec<u8>>) {
        let goes = |path: &RelPath| self.operation.get(path).is_some_and(Option::is_none);
        let is_put_aside = |path: &RelPath| PUT_ASIDE.iter().any(|name| name.as_bytes() == path.as_bytes());
        let found = now.iter().find(|(path, _)| is_put_aside(path) && goes(path));
        if let Some((_, text)) = found {
            let id = printable(String::from_utf8_lossy(text).trim());
            let why = format!("no file refers to it afterwards; to make a stash of it, run `git stash store {id}`");
            self.kept.push(KeptPart { what: "work that the rebase has stashed".to_owned(), why });
        }
    }
}

/// The step that one part takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartStep {
    Stays,
    GoesBack,
    HasMovedOn,
}

/// Decides on one part. Without a known end of the operation, all that differs goes back.
fn step<T: PartialEq>(before: &T, after: Option<&T>, now: &T) -> PartStep {
    match after {
        _ if now == before => PartStep::Stays,
        Some(after) if after == before => PartStep::Stays,
        Some(after) if after != now => PartStep::HasMovedOn,
        _ => PartStep::GoesBack,
    }
}

/// The entries of the index at the three moments.
pub struct IndexEntries {
    /// Before the operation.
    pub before: Vec<u8>,
    /// Behind it, if its end is known.
    pub after: Option<Vec<u8>>,
    /// At present.
    pub now: Vec<u8>,
}

/// Plans the way back from `now`; `after` is the state that the operation has left, if that is known.
pub(super) fn plan(
    before: &RepositoryState,
    after: Option<&RepositoryState>,
    now: &RepositoryState,
    index: Option<&IndexEntries>,
) -> RepositoryPlan {
    let (mut plan, remote) = plan_but_remote(before, after, now, index);
    // Where a command has moved more than what is known of another repository, it has fetched that: this is no loss.
    if plan.is_nothing() {
        plan.refs = remote;
    }
    plan
}

/// As [`plan`], with the refs of other repositories apart.
fn plan_but_remote(
    before: &RepositoryState,
    after: Option<&RepositoryState>,
    now: &RepositoryState,
    index: Option<&IndexEntries>,
) -> (RepositoryPlan, Vec<RefMove>) {
    let mut plan = RepositoryPlan::default();
    if index.is_none() {
        plan.kept.push(KeptPart { what: INDEX.to_owned(), why: UNREADABLE.to_owned() });
    }
    let mut keep = |what: String| plan.kept.push(KeptPart { what, why: MOVED_ON.to_owned() });
    let names: BTreeSet<&Vec<u8>> = before.refs.keys().chain(now.refs.keys()).collect();
    let (mut refs, mut remote, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for name in names.into_iter().filter(|name| name.as_slice() != STASH) {
        let value = |state: &RepositoryState| state.refs.get(name).cloned();
        let (to, from) = (value(before), value(now));
        match step(&to, after.map(value).as_ref(), &from) {
            PartStep::Stays => {}
            PartStep::HasMovedOn => keep(title(name)),
            PartStep::GoesBack if to.is_some() && is_in_the_way(&now.refs, name) => {
                kept.push(KeptPart::of_ref(name, IN_THE_WAY));
            }
            PartStep::GoesBack if name.starts_with(REMOTES) => remote.push(RefMove { name: name.clone(), from, to }),
            PartStep::GoesBack => refs.push(RefMove { name: name.clone(), from, to }),
        }
    }
    let stash = |state: &RepositoryState| (state.refs.get(STASH).cloned(), state.stash.clone());
    let (old, new) = (stash(before), stash(now));
    match step(&old, after.map(stash).as_ref(), &new) {
        PartStep::Stays => {}
        PartStep::HasMovedOn => keep("the stash".to_owned()),
        PartStep::GoesBack => {
            refs.extend((old.0 != new.0).then(|| RefMove { name: STASH.to_vec(), from: new.0, to: old.0 }));
            plan.stash = Some(old.1);
        }
    }
    match index.map_or(PartStep::Stays, |index| step(&index.before, index.after.as_ref(), &index.now)) {
        PartStep::Stays => {}
        PartStep::HasMovedOn => keep(INDEX.to_owned()),
        PartStep::GoesBack => plan.index = true,
    }
    let operation = step(&before.operation, after.map(|after| &after.operation), &now.operation);
    let is_half = after.is_some_and(|after| is_half_back(&before.operation, &after.operation, &now.operation));
    match if is_half { PartStep::GoesBack } else { operation } {
        PartStep::Stays => {}
        PartStep::HasMovedOn => keep(IN_PROGRESS.to_owned()),
        PartStep::GoesBack => {
            let gone = now.operation.keys().filter(|path| !before.operation.contains_key(path));
            plan.operation.extend(gone.map(|path| (path.clone(), None)));
            let back = before.operation.iter().filter(|(path, bytes)| now.operation.get(path) != Some(bytes));
            plan.operation.extend(back.map(|(path, bytes)| (path.clone(), Some(bytes.clone()))));
        }
    }
    plan.refs = refs;
    plan.kept.extend(kept);
    (plan, remote)
}

/// Plans the way from `now` to the state of an earlier moment. Refs that were made since stay, and so does a stash that has only grown.
pub(super) fn plan_to(before: &RepositoryState, now: &RepositoryState, index: Option<&IndexEntries>) -> RepositoryPlan {
    let (mut plan, remote) = plan_but_remote(before, None, now, index);
    // More is known of another repository now, which is no loss. One that is not known any more comes back.
    plan.refs.extend(remote.into_iter().filter(|one| one.from.is_none()));
    // A branch that had no commit yet loses what it has now, as everything else that goes back.
    let unborn = match before.refs.get(HEAD) {
        Some(RefValue::Symbolic(branch)) if !before.refs.contains_key(branch) => Some(branch),
        _ => None,
    };
    let is_younger = |one: &RefMove| {
        let is_of_operation = OF_OPERATION.iter().any(|prefix| one.name.starts_with(prefix));
        one.to.is_none() && one.name != STASH && Some(&one.name) != unborn && !is_of_operation
    };
    let younger = plan.refs.extract_if(.., |one| is_younger(one));
    plan.younger =
        first_named(younger.map(|one| KeptPart::of_ref(&one.name, MADE_SINCE)).collect(), "refs", MADE_SINCE);
    let all = |state: &RepositoryState| -> BTreeSet<String> { stashes(&state.stash).collect() };
    let (old, new) = (all(before), all(now));
    if plan.stash.is_some() && !new.is_subset(&old) {
        let is_grown = old.is_subset(&new);
        let (parts, why) = if is_grown { (&mut plan.younger, MADE_SINCE) } else { (&mut plan.kept, MOVED_ON) };
        parts.push(KeptPart { what: "the stash".to_owned(), why: why.to_owned() });
        plan.refs.retain(|one| one.name != STASH);
        plan.stash = None;
    }
    plan
}

/// Returns true if each file is as one of two moments had it, some as the first: a try before this one has stopped on its way.
fn is_half_back(
    before: &BTreeMap<RelPath, Vec<u8>>,
    after: &BTreeMap<RelPath, Vec<u8>>,
    now: &BTreeMap<RelPath, Vec<u8>>,
) -> bool {
    let names: BTreeSet<&RelPath> = before.keys().chain(after.keys()).chain(now.keys()).collect();
    let is_known = |path: &&RelPath| now.get(path) == before.get(path) || now.get(path) == after.get(path);
    now != before && after != before && names.iter().all(is_known)
}

/// Returns true if a ref is there without which `name` cannot be made: git keeps them like files and directories.
fn is_in_the_way(refs: &BTreeMap<Vec<u8>, RefValue>, name: &[u8]) -> bool {
    let below = [name, b"/"].concat();
    let is_above = |other: &[u8]| name.strip_prefix(other).is_some_and(|rest| rest.starts_with(b"/"));
    refs.keys().any(|other| other.starts_with(&below) || is_above(other))
}

/// Returns a ref for people.
pub fn title(name: &[u8]) -> String {
    let text = printable(&String::from_utf8_lossy(name));
    for (prefix, kind) in [("refs/heads/", "branch"), ("refs/tags/", "tag"), ("refs/remotes/", "remote branch")] {
        if let Some(short) = text.strip_prefix(prefix) {
            return format!("{kind} `{short}`");
        }
    }
    if name == STASH { "the newest stash".to_owned() } else { format!("`{text}`") }
}

/// Returns the object to which a ref moves.
pub(super) fn object(one: &RefMove) -> Option<String> {
    match &one.to {
        Some(RefValue::Object(id)) => Some(id.clone()),
        _ => None,
    }
}

/// Keeps refs where they are whose objects are gone.
pub(super) fn keep_without_objects(plan: &mut RepositoryPlan, gone: &[String]) {
    let is_gone = |one: &RefMove| object(one).is_some_and(|id| gone.contains(&id));
    let lost: Vec<RefMove> = plan.refs.iter().filter(|one| is_gone(one)).cloned().collect();
    plan.kept.extend(lost.iter().map(|one| KeptPart::of_ref(&one.name, GONE)));
    plan.refs.retain(|one| !is_gone(one));
    if lost.iter().any(|one| one.name == STASH) {
        plan.stash = None;
    } else if let Some(log) = plan.stash.as_mut().filter(|log| stashes(log).any(|id| gone.contains(&id))) {
        *log = without(log, gone);
        plan.kept.push(KeptPart { what: "a part of the stash".to_owned(), why: GONE.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(refs: &[(&str, char)]) -> RepositoryState {
        let value = |digit: char| RefValue::Object(digit.to_string().repeat(40));
        let refs = refs.iter().map(|(name, digit)| (name.as_bytes().to_vec(), value(*digit))).collect();
        RepositoryState { refs, ..RepositoryState::default() }
    }

    fn index(before: &str, after: Option<&str>, now: &str) -> IndexEntries {
        let bytes = |text: &str| text.as_bytes().to_vec();
        IndexEntries { before: bytes(before), after: after.map(bytes), now: bytes(now) }
    }

    /// Returns the refs that move and the parts that stay.
    fn planned(
        before: &RepositoryState,
        after: Option<&RepositoryState>,
        now: &RepositoryState,
    ) -> (Vec<String>, Vec<String>) {
        let plan = plan(before, after, now, Some(&index("", None, "")));
        let moves = plan.refs.iter().map(|one| String::from_utf8_lossy(&one.name).into_owned()).collect();
        (moves, plan.kept.into_iter().map(|part| part.what).collect())
    }

    #[test]
    fn what_the_operation_moved_goes_back_and_what_has_moved_on_stays() {
        let main = "refs/heads/main";
        let (a, b, c) = (state(&[(main, 'a')]), state(&[(main, 'b')]), state(&[(main, 'c')]));
        let none = state(&[]);
        let moved = || (vec![main.to_owned()], vec![]);
        let nothing = || (vec![], vec![]);
        let stays = || (vec![], vec!["branch `main`".to_owned()]);
        for (before, after, now, expected) in [
            (&a, Some(&b), &b, moved()),
            (&a, Some(&b), &c, stays()),
            (&a, Some(&b), &a, nothing()),
            (&a, Some(&a), &b, nothing()),
            (&a, None, &b, moved()),
            (&a, Some(&none), &none, moved()),
            (&none, Some(&a), &a, moved()),
            (&a, Some(&none), &b, stays()),
        ] {
            assert_eq!(planned(before, after, now), expected, "{before:?} {after:?} {now:?}");
        }
    }

    #[test]
    fn what_another_work_tree_has_checked_out_stays() {
        let (main, other) = ("refs/heads/main", "refs/heads/other");
        let (before, after) = (state(&[(main, 'a')]), state(&[(main, 'b'), (other, 'b')]));
        let mut plan = plan(&before, Some(&after), &after, None);
        plan.spare(&[other.as_bytes().to_vec()].into());
        assert_eq!(plan.refs.iter().map(|one| one.name.as_slice()).collect::<Vec<_>>(), [main.as_bytes()]);
        assert!(plan.kept.iter().any(|part| part.what == "branch `other`" && part.why == ELSEWHERE));
    }

    #[test]
    fn what_was_fetched_is_no_loss_but_where_nothing_else_moved() {
        let (main, remote) = ("refs/heads/main", "refs/remotes/origin/main");
        let before = state(&[(main, 'a'), (remote, 'a')]);
        let (pulled, pushed) = (state(&[(main, 'b'), (remote, 'b')]), state(&[(main, 'a'), (remote, 'b')]));
        assert_eq!(planned(&before, Some(&pulled), &pulled).0, [main]);
        assert_eq!(planned(&before, Some(&pushed), &pushed).0, [remote]);
    }

    #[test]
    fn the_stash_goes_back_with_its_log() {
        let mut before = state(&[("refs/stash", 'a')]);
        before.stash = b"one\ntwo\n".to_vec();
        let mut after = before.clone();
        after.stash = b"two\n".to_vec();
        let none = index("", None, "");
        let back = plan(&before, Some(&after), &after, Some(&none));
        assert_eq!((back.refs, back.stash), (vec![], Some(b"one\ntwo\n".to_vec())));
        let gone = state(&[]);
        let back = plan(&before, Some(&gone), &gone, Some(&none));
        assert_eq!((back.refs.len(), back.stash.is_some()), (1, true));
        after.stash = b"two\nthree\n".to_vec();
        let stays = plan(&before, Some(&gone), &after, Some(&none));
        assert_eq!((stays.refs.len(), stays.kept.len()), (0, 1));
    }

    #[test]
    fn to_a_moment_only_what_was_there_goes_back() {
        let (main, new, remote) = ("refs/heads/main", "refs/heads/new", "refs/remotes/origin/main");
        let before = state(&[(main, 'a'), (remote, 'a')]);
        let log = |ids: &str| -> Vec<u8> {
            ids.chars().flat_map(|id| format!("0 {} x\n", id.to_string().repeat(40)).into_bytes()).collect()
        };
        for (now, moves, kept) in [
            (state(&[(main, 'b'), (remote, 'b')]), vec![main], vec![]),
            (state(&[(main, 'a'), (remote, 'b')]), vec![], vec![]),
            (state(&[(main, 'b'), (new, 'c'), (remote, 'a')]), vec![main], vec!["branch `new`"]),
            (state(&[(new, 'c'), (remote, 'a')]), vec![main], vec!["branch `new`"]),
        ] {
            let plan = plan_to(&before, &now, Some(&index("", None, "")));
            let names: Vec<String> =
                plan.refs.iter().map(|one| String::from_utf8_lossy(&one.name).into_owned()).collect();
            let stays: Vec<&str> = plan.younger.iter().map(|part| part.what.as_str()).collect();
            assert_eq!((names, stays), (moves.iter().map(ToString::to_string).collect(), kept), "{now:?}");
            assert_eq!(plan.kept, [], "{now:?}");
        }
        for (old, now, goes_back, is_wanted) in
            [("ab", "a", true, false), ("ab", "", true, false), ("a", "ab", false, false), ("ab", "bc", false, true)]
        {
            let stashed = |ids: &str| RepositoryState { stash: log(ids), ..before.clone() };
            let plan = plan_to(&stashed(old), &stashed(now), Some(&index("", None, "")));
            assert_eq!(plan.stash.is_some(), goes_back, "{old} {now}");
            assert_eq!(!plan.kept.is_empty(), is_wanted, "{old} {now}: {:?}", plan.kept);
        }
    }

    #[test]
    fn the_index_and_an_operation_in_progress_go_back_as_a_whole() {
        let mut before = state(&[("HEAD", 'a')]);
        let (path, other) = (RelPath::parse(b"MERGE_HEAD").unwrap(), RelPath::parse(b"rebase-merge/done").unwrap());
        before.operation.insert(path.clone(), b"x".to_vec());
        let mut now = before.clone();
        now.operation = BTreeMap::from([(other.clone(), b"y".to_vec())]);
        let back = plan(&before, Some(&now), &now, Some(&index("a", Some("b"), "b")));
        assert!(back.index && !back.is_nothing());
        assert_eq!(back.operation, BTreeMap::from([(path, Some(b"x".to_vec())), (other, None)]));
        // A try before this one has removed a file, and has written none.
        let half = RepositoryState { operation: BTreeMap::new(), ..before.clone() };
        assert_eq!(plan(&before, Some(&now), &half, Some(&index("", None, ""))).operation.len(), 1);
        let stays = plan(&before, Some(&before), &now, Some(&index("a", Some("b"), "c")));
        assert!(!stays.index && stays.operation.is_empty());
        assert_eq!(stays.kept.len(), 1, "{:?}", stays.kept);
        assert_eq!(title(HEAD), "`HEAD`");
    }
}
