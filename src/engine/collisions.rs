//! Collisions in the answer to an action: which parts of a workspace it takes away, and the words for whoever asks.

use std::path::{Path, PathBuf};

use super::decision::{ActionDecision, Stance};
use super::pathspec::{Pathspec, matcher};
use super::reach::{expanded, resolved};
use crate::checkpoint::history::collision::{Asker, Collision, WorkOwner};
use crate::checkpoint::history::lost_place::{LostPaths, LostPlace};
use crate::checkpoint::{Checkpoint, Timeline};
use crate::model::effect::{self, Class, Needs, Severity, Verdict, Warning};
use crate::model::loss::{Loss, RepositoryLoss};
use crate::model::path::RelPath;
use crate::model::redact::redact;
use crate::model::text::{cut, printable};
use crate::worktree::repository_state::RepositoryPlace;

/// The code of the warning.
pub const CODE: &str = "collision";

/// The files that a sentence names.
const NAMED: usize = 3;

/// The longest name of a turn in a sentence, in characters.
const MAX_TURN: usize = 40;

/// A question for the collisions of an action in one workspace.
pub(super) struct CollisionQuestion {
    /// The session that asks.
    pub asker: Asker,
    /// The root of the workspace.
    pub root: PathBuf,
    /// The directory in which the action runs, by its real name.
    pub cwd: PathBuf,
    /// The work that the action takes away.
    pub losses: Vec<Loss>,
}

impl CollisionQuestion {
    /// Returns the question; `None` where the action takes nothing away, or nobody wants to know.
    pub(super) fn of(
        answer: effect::Stance,
        root: &Path,
        (verdict, cwd): (&Verdict, &Path),
        asker: impl FnOnce() -> Asker,
    ) -> Option<CollisionQuestion> {
        let is_asked = answer > effect::Stance::Allow && !verdict.losses.is_empty();
        is_asked.then(|| CollisionQuestion {
            asker: asker(),
            root: root.to_owned(),
            cwd: cwd.to_owned(),
            losses: verdict.losses.clone(),
        })
    }

    /// Answers it, on the worker's thread. `present` holds the files as they are before the action.
    pub(super) fn ask(&self, timeline: &Timeline, present: &Checkpoint) -> Vec<Collision> {
        let places = places(&self.root, &self.cwd, &self.losses);
        if places.is_empty() {
            return Vec::new();
        }
        timeline.collisions(&self.asker, &places, present).unwrap_or_else(|error| {
            tracing::warn!(%error, "whose work an action would destroy cannot be told");
            Vec::new()
        })
    }
}

/// Returns the parts of a workspace that losses are about.
fn places(root: &Path, cwd: &Path, losses: &[Loss]) -> Vec<LostPlace> {
    let inside = |path: &str| {
        let full = resolved(&cwd.join(path));
        match root.starts_with(&full) {
            true => Some(RelPath::root()),
            false => RelPath::from_path(full.strip_prefix(root).ok()?).ok(),
        }
    };
    let mut places = Vec::new();
    for loss in losses {
        match loss {
            Loss::Tree(path) => places.extend(inside(path).map(LostPlace::Tree)),
            Loss::File(path) => places.extend(inside(path).map(LostPlace::File)),
            Loss::Matches(pattern) => {
                let matches = expanded(std::slice::from_ref(pattern));
                places.extend(matches.iter().filter_map(|path| inside(path)).map(LostPlace::Tree));
            }
            Loss::Repository(loss) => places.extend(repository(cwd, loss)),
        }
    }
    places
}

/// Returns the place of what a command of git takes; `None` outside of all repositories.
fn repository(cwd: &Path, loss: &RepositoryLoss) -> Option<LostPlace> {
    let dir = cwd.join(&loss.dir);
    let dir = dir.canonicalize().unwrap_or(dir);
    let top = RepositoryPlace::around(&dir)?.top;
    let mut pathspecs = Vec::new();
    for word in &loss.pathspecs {
        // Excluded paths are not told apart: the other words name what goes.
        let Pathspec::Named(place) = Pathspec::read(word, &dir, &top) else { continue };
        pathspecs.extend(matcher(&place, &dir).map(LostPaths::Matching));
        // A name with a sign of patterns is a name too.
        pathspecs.push(LostPaths::Below(place));
    }
    // Magic words that are not read here may stand for anything.
    let is_known = !pathspecs.is_empty() || loss.pathspecs.is_empty();
    is_known.then(|| LostPlace::Repository { top, pathspecs, sorts: loss.sorts.clone() })
}

/// Adds collisions to the answer to an action: the warning, and the policy's answer.
pub(super) fn add(
    action: &mut ActionDecision,
    collisions: Vec<Collision>,
    (answer, root): (effect::Stance, Option<&Path>),
) {
    if collisions.is_empty() {
        return;
    }
    let does = if is_stash(action) { "stash away" } else { "destroy" };
    let what = format!("{does} {}", sentence(&collisions, root));
    let stance = stance(answer, &what);
    action.collisions = collisions;
    action.needs = Needs::of(action.needs.checkpoint(), true);
    action.stance = std::mem::replace(&mut action.stance, Stance::Proceed).and(stance.clone());
    // The reason to hold it says the same.
    if stance != Stance::Proceed && action.stance == stance {
        return;
    }
    let class = action.effects.iter().map(|effect| effect.class).find(|class| is_losing(*class));
    action.warnings.push(Warning {
        code: CODE.to_owned(),
        class: class.unwrap_or(Class::FileOverwrite),
        message: format!("this would {what}. {NEXT}"),
        severity: Severity::High,
    });
}

/// Returns true if all that an action takes away goes into a stash.
fn is_stash(action: &ActionDecision) -> bool {
    let mut losing = action.effects.iter().filter(|effect| is_losing(effect.class)).peekable();
    losing.peek().is_some() && losing.all(|effect| effect.verb == "git stash")
}

fn is_losing(class: Class) -> bool {
    matches!(class, Class::VcsDiscard | Class::FileDelete | Class::FileOverwrite | Class::FileMove)
}

/// Returns the stance of the policy on an action that would destroy the work of others.
fn stance(answer: effect::Stance, what: &str) -> Stance {
    let would = format!("an action that would {what}. {NEXT}");
    match answer {
        effect::Stance::Allow | effect::Stance::Warn => Stance::Proceed,
        effect::Stance::Ask => Stance::Ask(format!("the policy asks before {would}")),
        effect::Stance::Deny => Stance::Deny(format!("the policy denies {would}")),
    }
}

/// The next step of whoever is warned.
const NEXT: &str =
    "Commit or stash it first, or leave it alone; `piton turns` lists who changed what (`policy.collision`)";

/// Says whose uncommitted work collisions are about, and names some files; absolute ones below `root`.
pub(super) fn sentence(collisions: &[Collision], root: Option<&Path>) -> String {
    let of_owner = |collision: &Collision| {
        let shown = |path: &RelPath| root.map_or_else(|| path.display(), |root| path.under(root).display().to_string());
        let named = collision.paths.iter().take(NAMED).map(|path| format!("`{}`", printable(&shown(path))));
        let named = named.collect::<Vec<_>>().join(", ");
        let more = collision.paths.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} ({named}{more})", who(&collision.owner))
    };
    let all: Vec<String> = collisions.iter().map(of_owner).collect();
    redact(&format!("uncommitted work of {}", all.join(" and of ")))
}

/// Names an owner.
fn who(owner: &WorkOwner) -> String {
    match owner {
        WorkOwner::Person => "a person, changed while no agent was at work".to_owned(),
        WorkOwner::Run { run, client, turn, operation } => {
            let turn = operation.clone().unwrap_or_else(|| cut(&printable(turn), MAX_TURN));
            let turn = if turn.is_empty() { String::new() } else { format!(", turn `{turn}`") };
            match client {
                Some(client) => format!("{}, run `{}`{turn}", printable(client), printable(run)),
                None => format!("run `{}`{turn}", printable(run)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collision(owner: WorkOwner, paths: &[&str]) -> Collision {
        Collision { owner, paths: paths.iter().map(|path| RelPath::parse(path.as_bytes()).unwrap()).collect() }
    }

    fn run(client: Option<&str>, operation: Option<&str>) -> WorkOwner {
        let (client, operation) = (client.map(str::to_owned), operation.map(str::to_owned));
        WorkOwner::Run { run: "codex.b".to_owned(), client, turn: "fix it".to_owned(), operation }
    }

    #[test]
    fn a_sentence_names_the_owner_and_some_files() {
        let many = collision(run(Some("codex"), Some("t-3")), &["a", "b", "c", "d", "e"]);
        for (collisions, expected) in [
            (vec![many.clone()], "codex, run `codex.b`, turn `t-3` (`a`, `b`, `c` and 2 more)"),
            (vec![collision(run(None, None), &["a\u{1b}"])], "run `codex.b`, turn `fix it` (`\"a\\033\"`)"),
            (
                vec![many, collision(WorkOwner::Person, &["x"])],
                "codex, run `codex.b`, turn `t-3` (`a`, `b`, `c` and 2 more) and of a person, changed while no agent was at work (`x`)",
            ),
        ] {
            let said = sentence(&collisions, None);
            assert_eq!(said.strip_prefix("uncommitted work of "), Some(expected));
        }
        assert!(sentence(&[collision(WorkOwner::Person, &["x"])], Some(Path::new("/w"))).ends_with("(`/w/x`)"));
    }

    #[test]
    fn the_policy_decides_and_a_stronger_answer_stays() {
        use effect::Stance as Wish;
        let (ask, deny) = (|text: &str| Stance::Ask(text.to_owned()), |text: &str| Stance::Deny(text.to_owned()));
        for (before, wish, expected) in [
            (Stance::Proceed, Wish::Warn, "proceed"),
            (Stance::Proceed, Wish::Ask, "the policy asks before an action that would destroy uncommitted work of run"),
            (Stance::Proceed, Wish::Deny, "the policy denies an action that would destroy uncommitted work of run"),
            (ask("first"), Wish::Warn, "first"),
            (ask("first"), Wish::Ask, "first"),
            (ask("first"), Wish::Deny, "the policy denies"),
            (deny("first"), Wish::Ask, "first"),
            (deny("first"), Wish::Deny, "first"),
        ] {
            let mut action = ActionDecision { stance: before.clone(), ..ActionDecision::of_part() };
            add(&mut action, vec![collision(run(None, None), &["a"])], (wish, None));
            assert!(
                action.stance.reason().unwrap_or("proceed").starts_with(expected),
                "{before:?} {wish:?}: {action:?}"
            );
            let is_denied = matches!(action.stance, Stance::Deny(_));
            assert_eq!(is_denied, wish == Wish::Deny || matches!(before, Stance::Deny(_)));
            let is_reason = action.stance.reason().is_some_and(|reason| reason.contains("`a`"));
            let is_warned = action.warnings.iter().any(|warning| warning.message.contains("`a`"));
            assert!(is_reason != is_warned && action.needs == Needs::Both, "said once: {action:?}");
        }
        let mut action = ActionDecision::of_part();
        add(&mut action, Vec::new(), (Wish::Deny, None));
        assert!(action.warnings.is_empty() && action.stance == Stance::Proceed);
    }

    #[test]
    fn losses_are_found_in_the_workspace() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/src/.git")).unwrap();
        std::fs::write(root.join("w/src/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for name in ["w/a.log", "w/b.log", "w/src/c.log"] {
            std::fs::write(root.join(name), "x").unwrap();
        }
        let git = |dir: &str, specs: &[&str]| {
            let (dir, pathspecs) = (dir.to_owned(), specs.iter().map(|spec| (*spec).to_owned()).collect());
            Loss::Repository(RepositoryLoss { dir, pathspecs, sorts: Vec::new() })
        };
        let shown = |loss: Loss| {
            let one = |place: LostPlace| match place {
                LostPlace::Tree(path) => format!("{}/**", path.display()),
                LostPlace::File(path) => path.display(),
                LostPlace::Repository { top, pathspecs, .. } => {
                    let spec = |spec: &LostPaths| match spec {
                        LostPaths::Below(path) => path.display().to_string(),
                        LostPaths::Matching(glob) => format!("~{}", glob.glob().glob()),
                    };
                    let words = std::iter::once(top.display().to_string()).chain(pathspecs.iter().map(spec));
                    words.collect::<Vec<_>>().join(" ")
                }
            };
            let found = places(&root.join("w"), &root.join("w"), &[loss]).into_iter().map(one);
            let mut found: Vec<String> = found.collect();
            found.sort();
            found.join(", ").replace(&format!("{}/", root.display()), "")
        };
        let full = |path: &str| root.join(path).to_string_lossy().into_owned();
        for (loss, expected) in [
            (Loss::Tree("a.log".to_owned()), "a.log/**"),
            (Loss::Tree(full("w")), "/**"),
            (Loss::Tree(full("")), "/**"),
            (Loss::Tree(full("beside")), ""),
            (Loss::File("src/../x".to_owned()), "x"),
            (Loss::Matches(full("w/*.log")), "a.log/**, b.log/**"),
            (git("src", &[]), "w/src"),
            (git("src", &["x", ":/y", "*.rs"]), "w/src w/src/x w/src/y ~w/src/*.rs w/src/*.rs"),
            (git("src", &[":!x"]), ""),
            (git("", &[]), ""),
        ] {
            assert_eq!(shown(loss.clone()).replace("./", "/"), expected, "{loss:?}");
        }
    }
}
