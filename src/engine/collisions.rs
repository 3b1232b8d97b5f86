//! Collisions in the answer to an action: which parts of a workspace it takes away, and the words for whoever asks.

use std::path::{Path, PathBuf};

use super::collision_notes::{CODE, CollisionPart, is_losing, is_stash, sentence};
use super::decision::{ActionDecision, Stance};
use super::pathspec::{Pathspec, SpecPaths};
use super::reach::{expanded, resolved};
use super::told::Note;
use crate::checkpoint::history::collision::{Asker, Collision};
use crate::checkpoint::history::lost_place::{LostPaths, LostPlace};
use crate::checkpoint::{Checkpoint, Timeline};
use crate::model::effect::{self, Class, Effect, Needs, Severity, Verdict, Warning};
use crate::model::loss::{FileLoss, Loss, PlacedName, RepositoryLoss};
use crate::model::path::RelPath;
use crate::worktree::repository_state::RepositoryPlace;

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
            tracing::warn!(%error, "cannot determine whose work an action would destroy");
            Vec::new()
        })
    }
}

/// Returns the parts of a workspace that losses are about.
fn places(root: &Path, cwd: &Path, losses: &[Loss]) -> Vec<LostPlace> {
    let inside = |full: &Path| match root.starts_with(full) {
        true => Some(RelPath::root()),
        false => RelPath::from_path(full.strip_prefix(root).ok()?).ok(),
    };
    let at = |path: &str| resolved(&cwd.join(path));
    let mut places = Vec::new();
    for loss in losses {
        match loss {
            Loss::Tree(path) => places.extend(inside(&at(path)).map(LostPlace::Tree)),
            Loss::File(loss) => {
                places
                    .extend(written(&at(&loss.path), loss).iter().filter_map(|file| inside(file)).map(LostPlace::File));
            }
            Loss::Matches(pattern) => {
                let matches = expanded(std::slice::from_ref(pattern));
                let matches = matches.iter().map(|path| resolved(&cwd.join(path)));
                places.extend(matches.filter_map(|path| inside(&path)).map(LostPlace::Tree));
            }
            Loss::Repository(loss) => places.extend(repository(cwd, loss)),
        }
    }
    places
}

/// Returns the files whose contents go where a file is written: those with the given names in a directory, and those to which
/// links lead.
fn written(path: &Path, loss: &FileLoss) -> Vec<PathBuf> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let names = loss.placed.iter().flat_map(|name| match name {
            PlacedName::Name(name) => vec![name.into()],
            PlacedName::Matching(pattern) => {
                let matches = expanded(std::slice::from_ref(pattern)).into_iter();
                matches.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect::<Vec<_>>()
            }
        });
        files = names.map(|name| resolved(&path.join(name))).collect();
    }
    // A writer may follow the link or replace it. One that leads nowhere takes nothing along.
    let real = |file: &PathBuf| file.canonicalize().ok().filter(|real| real.is_file());
    let behind: Vec<PathBuf> =
        files.iter().filter(|file| loss.is_followed && file.is_symlink()).filter_map(real).collect();
    files.extend(behind);
    files
}

/// Returns the place of what a command of git takes; `None` outside of all repositories.
fn repository(cwd: &Path, loss: &RepositoryLoss) -> Option<LostPlace> {
    let dir = cwd.join(&loss.dir);
    let dir = dir.canonicalize().unwrap_or(dir);
    let top = RepositoryPlace::around(&dir)?.top;
    let (mut pathspecs, mut spared, mut is_known) = (Vec::new(), Vec::new(), true);
    for word in &loss.pathspecs {
        match Pathspec::read(word, &dir, &top) {
            Pathspec::Named(paths) => add_paths(&mut pathspecs, &paths, &dir),
            Pathspec::Excluded(paths) => add_paths(&mut spared, &paths, &dir),
            // Magic words that are not read here may stand for anything.
            Pathspec::Any => is_known = false,
            Pathspec::Spared => {}
        }
    }
    // Words that only spare something leave all the rest.
    let is_known = is_known || !pathspecs.is_empty();
    is_known.then(|| LostPlace::Repository { top, pathspecs, spared, sorts: loss.sorts.clone() })
}

/// Adds the paths of a pathspec, and those that its pattern matches.
fn add_paths(list: &mut Vec<LostPaths>, paths: &SpecPaths, dir: &Path) {
    list.extend(paths.matchers(dir).into_iter().map(LostPaths::Matching));
    // A name with a sign of patterns is a name too.
    list.push(LostPaths::Below(paths.path.clone()));
}

/// The answer to the collisions of an action.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollisionAnswer {
    /// The policy's wish.
    pub wish: effect::Stance,
    /// True if all that the action takes away is put into a stash.
    pub is_stash: bool,
}

impl CollisionAnswer {
    /// Returns the answer of a policy to an action with these effects.
    pub(super) fn of(wish: effect::Stance, effects: &[Effect]) -> CollisionAnswer {
        CollisionAnswer { wish, is_stash: is_stash(effects) }
    }

    /// Says what happens to the work of others; absolute paths below `root`.
    fn what(self, collisions: &[Collision], root: Option<&Path>) -> String {
        let does = if self.is_stash { "stash away" } else { "destroy" };
        format!("{does} {}", sentence(collisions, root))
    }

    /// Returns the note of collisions that were found when the action had been answered already; `None` without any.
    pub(super) fn late(self, part: &CollisionPart<'_>) -> Option<Note> {
        (!part.collisions.is_empty()).then(|| part.note("the last action", self.is_stash))
    }
}

/// Adds collisions to the answer to an action: the warning, and the policy's answer.
pub(super) fn add(action: &mut ActionDecision, part: &CollisionPart<'_>, answer: CollisionAnswer) {
    if part.collisions.is_empty() {
        return;
    }
    let what = answer.what(part.collisions, part.root);
    let stance = stance(answer.wish, &what);
    action.collisions = part.collisions.to_vec();
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
        message: format!(
            "this would {what}{}. {NEXT}",
            part.saved().map(|saved| format!("; {saved}")).unwrap_or_default()
        ),
        severity: Severity::High,
        on_files: None,
    });
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
    "Commit or stash it first, or do not touch it; `piton list --turns` shows who changed what (`policy.collision`)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::history::collision::WorkOwner;
    use crate::engine::decision::Protection;
    use crate::engine::guard::TurnCheckpoint;
    use crate::model::checkpoint::CheckpointKind;
    use crate::model::number::Number;

    fn collision(owner: WorkOwner, paths: &[&str]) -> Collision {
        Collision { owner, paths: paths.iter().map(|path| RelPath::parse(path.as_bytes()).unwrap()).collect() }
    }

    fn part<'a>(collisions: &'a [Collision], root: Option<&'a Path>, protection: &'a Protection) -> CollisionPart<'a> {
        CollisionPart { root, collisions, protection }
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
                "codex, run `codex.b`, turn `t-3` (`a`, `b`, `c` and 2 more) and of a person, changed while no agent was active (`x`)",
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
            let found = [collision(run(None, None), &["a"])];
            let none = Protection::NotNeeded(None);
            let part = CollisionPart { root: None, collisions: &found, protection: &none };
            add(&mut action, &part, CollisionAnswer::of(wish, &[]));
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
        let part = CollisionPart { root: None, collisions: &[], protection: &Protection::NotNeeded(None) };
        add(&mut action, &part, CollisionAnswer::of(Wish::Deny, &[]));
        assert!(action.warnings.is_empty() && action.stance == Stance::Proceed);
    }

    #[test]
    fn a_part_and_a_late_note_say_what_the_line_does() {
        let classifier = crate::classify::Classifier::embedded();
        let policy = crate::settings::resolve(&crate::settings::Sources::default()).unwrap().policy;
        let context = crate::classify::Context { cwd: "/w".into(), workspace: "/w".into(), ..Default::default() };
        let held =
            TurnCheckpoint { id: String::new(), number: Number { main: 12, step: 1 }, kind: CheckpointKind::Step };
        let (held, failed) = (Protection::Held(held), Protection::Failed("no".to_owned()));
        for (line, does, did) in [
            ("git stash", "stash away", "stashed away"),
            ("cd sub && git stash -u", "stash away", "stashed away"),
            ("git stash; rm a", "destroy", "destroyed"),
            ("git reset --hard", "destroy", "destroyed"),
        ] {
            let answer = CollisionAnswer::of(effect::Stance::Warn, &classifier.shell(line, &context, &policy).effects);
            let found = [collision(run(None, None), &["a b", "c"])];
            let mut action = ActionDecision::of_part();
            add(&mut action, &part(&found, Some(Path::new("/other")), &held), answer);
            let work = "uncommitted work of run `codex.b`, turn `fix it` (`/other/a b`, `/other/c`)";
            let saved = "saved in 12.1: `piton restore --workspace /other 12.1 'a b' c`";
            let said = &action.warnings[0].message;
            assert!(said.starts_with(&format!("this would {does} {work}; {saved}. Commit")), "{line}: {said}");
            let late = |path, protection| {
                let found = [collision(run(None, None), &[path])];
                format!("{:?}", answer.late(&part(&found, None, protection)).unwrap())
            };
            let said = format!("piton: the last action {did} uncommitted work of run `codex.b`, turn `fix it` (`a`); ");
            assert!(late("a", &held).contains(&format!("{said}saved in 12.1: `piton restore 12.1 a`")), "{line}");
            assert!(late("a", &failed).contains(&format!("{said}it is in no checkpoint")), "{line}");
            // The kind names the owner and the files, and not the checkpoint.
            let kind = |path, protection| late(path, protection).split("text:").next().unwrap_or_default().to_owned();
            assert!(kind("a", &held).contains("(`a`)") && kind("b", &held).contains("(`b`)"), "{line}");
            assert_eq!(kind("a", &held), kind("a", &failed));
            assert!(answer.late(&part(&[], None, &held)).is_none());
        }
    }

    #[test]
    fn losses_are_found_in_the_workspace() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/src/.git")).unwrap();
        std::fs::write(root.join("w/src/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for name in ["w/a.log", "w/b.log", "w/src/c.log", "beside"] {
            std::fs::write(root.join(name), "x").unwrap();
        }
        for (link, to) in
            [("near", "src/c.log"), ("far", "../beside"), ("hop", "near"), ("gone", "none"), ("dir", "src")]
        {
            std::os::unix::fs::symlink(to, root.join("w").join(link)).unwrap();
        }
        std::os::unix::fs::symlink("../a.log", root.join("w/src/x")).unwrap();
        let file = |path: &str, names: &[&str], is_followed: bool| {
            let name = |name: &&str| match name.starts_with('/') {
                true => PlacedName::Matching((*name).to_owned()),
                false => PlacedName::Name((*name).to_owned()),
            };
            Loss::File(FileLoss { path: path.to_owned(), placed: names.iter().map(name).collect(), is_followed })
        };
        let git = |dir: &str, specs: &[&str]| {
            let (dir, pathspecs) = (dir.to_owned(), specs.iter().map(|spec| (*spec).to_owned()).collect());
            Loss::Repository(RepositoryLoss { dir, pathspecs, sorts: Vec::new() })
        };
        let shown = |loss: Loss| {
            let one = |place: LostPlace| match place {
                LostPlace::Tree(path) => format!("{}/**", path.display()),
                LostPlace::File(path) => path.display(),
                LostPlace::Repository { top, pathspecs, spared, .. } => {
                    let spec = |spec: &LostPaths| match spec {
                        LostPaths::Below(path) => path.display().to_string(),
                        LostPaths::Matching(glob) => format!("~{}", glob.glob().glob()),
                    };
                    let words = std::iter::once(top.display().to_string()).chain(pathspecs.iter().map(spec));
                    let words = words.chain(spared.iter().map(|one| format!("!{}", spec(one))));
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
            (file("src/../x", &["y"], true), "x"),
            (file("src", &["y", "c.log"], false), "src/c.log, src/y"),
            (file("dir", &["c.log"], true), "src/c.log"),
            (file("src", &[&full("w/*.log")], true), "src/a.log, src/b.log"),
            (file("src", &["x"], true), "a.log, src/x"),
            (file("src", &[], true), ""),
            (file("near", &[], true), "near, src/c.log"),
            (file("near", &[], false), "near"),
            (file("hop", &[], true), "hop, src/c.log"),
            (file("far", &[], true), "far"),
            (file("gone", &[], true), "gone"),
            (Loss::Matches(full("w/*.log")), "a.log/**, b.log/**"),
            (git("src", &[]), "w/src"),
            (git("src", &["x", ":/y", "*.rs"]), "w/src w/src/x w/src/y ~w/src/*.rs w/src/*.rs"),
            (git("src", &[":!x"]), "w/src !w/src/x"),
            (git("src", &[".", ":^x", ":(exclude)*.rs"]), "w/src w/src !w/src/x !~w/src/*.rs !w/src/*.rs"),
            (git("src", &["x", ":(exclude,attr:y)x"]), "w/src w/src/x"),
            (git("src", &[":(attr:y)x"]), ""),
            (git("", &[]), ""),
        ] {
            assert_eq!(shown(loss.clone()).replace("./", "/"), expected, "{loss:?}");
        }
    }
}
