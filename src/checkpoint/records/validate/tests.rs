use super::*;
use crate::checkpoint::Take;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::CodonTag;
use crate::sys::interrupt::Flow;

struct Place {
    home: Home,
    timeline: Timeline,
    _scratch: tempfile::TempDir,
}

/// Makes a codon's chain of two with two leaves on top, one of them pinned; everything is flushed.
fn place() -> Place {
    let scratch = tempfile::tempdir().unwrap();
    let home = Home::at(&scratch.path().join("home")).unwrap();
    let project = scratch.path().join("project");
    std::fs::create_dir_all(&project).unwrap();
    let workspace = Workspace::open(&home, &project).unwrap();
    let policy = crate::settings::load(Some(&project), home.path(), &[]).unwrap().policy;
    let mut timeline = Timeline::open(&home, workspace, policy).unwrap();
    for (n, kind) in
        [CheckpointKind::RigSetup, CheckpointKind::Completed, CheckpointKind::Manual, CheckpointKind::Manual]
            .into_iter()
            .enumerate()
    {
        std::fs::write(project.join("file"), format!("{n}\n")).unwrap();
        let codon = || CodonTag { id: format!("codon-{n}"), name: format!("codon-{n}"), since: None };
        let codon = kind.is_typed().then(codon);
        let mut take = Take::of(kind, "run-1", "a reason");
        (take.draft.codon, take.draft.pinned) = (codon, n == 3);
        timeline.take(&take, &|| Flow::Continue).unwrap();
    }
    timeline.settle(&|| Flow::Continue).unwrap();
    timeline.flush().unwrap();
    Place { home, timeline, _scratch: scratch }
}

impl Place {
    fn id(&self) -> &str {
        &self.timeline.workspace().id
    }

    fn look(&self) -> Vec<Finding> {
        let proven = self.timeline.store().read_everything(&|| Flow::Continue).unwrap();
        check(&self.home, self.timeline.store(), &proven).unwrap()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.timeline.store().git_dir().join(name)
    }

    fn words(&self) -> Vec<&'static str> {
        let mut words: Vec<_> = self.look().iter().map(|finding| finding.damage.word()).collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

/// Each row has a damage to a whole place, the expected findings, and `true` if a repair makes it whole again.
#[test]
fn damages_are_named_and_what_can_be_derived_is_repaired() {
    type Harm = fn(&Place);
    let table: Vec<(&str, Harm, &[&str], bool)> = vec![
        ("nothing", |_| {}, &[], true),
        ("a leaf emptied", |p| std::fs::write(p.path(&leaf_of(p)), "").unwrap(), &["torn-ref"], true),
        ("a leaf of nonsense", |p| std::fs::write(p.path(&leaf_of(p)), "x\n").unwrap(), &["torn-ref"], true),
        (
            "a leaf that names nothing",
            |p| std::fs::write(p.path(&leaf_of(p)), format!("{}\n", "1".repeat(40))).unwrap(),
            &["no-commit"],
            true,
        ),
        ("a branch emptied", |p| std::fs::write(p.path(&branch_of(p)), "").unwrap(), &["torn-ref", "unnamed"], true),
        ("a branch gone", |p| std::fs::remove_file(p.path(&branch_of(p))).unwrap(), &["unnamed"], true),
        (
            "a leaf under another number",
            |p| {
                std::fs::rename(p.path(&leaf_of(p)), p.path(&format!("{}3", leaf_of(p)))).unwrap();
            },
            &["not-as-named"],
            false,
        ),
        (
            "a leaf on a branch",
            |p| _ = std::fs::copy(p.path(&leaf_of(p)), p.path(&format!("refs/heads/{}/odd", p.id()))).unwrap(),
            &["not-as-named"],
            false,
        ),
        (
            "a branch of no workspace",
            |p| _ = std::fs::copy(p.path(&branch_of(p)), p.path("refs/heads/main")).unwrap(),
            &["odd-name"],
            false,
        ),
        (
            "a workspace whose record is gone",
            |p| {
                std::fs::remove_file(p.timeline.workspace().dir.join("workspace.json")).unwrap();
                std::fs::remove_file(p.home.path().join("workspaces.index")).unwrap();
            },
            &["orphans"],
            false,
        ),
        (
            "a state that names nothing",
            |p| detach(p, ObjectId::of(crate::model::id::ObjectKind::Blob, b"none").unwrap()),
            &["lost"],
            false,
        ),
        (
            "a state that names what no ref does",
            |p| {
                let tip = p.timeline.store().refs(&leaf_of(p)).unwrap()[0].target.clone().unwrap();
                detach(p, tip);
                std::fs::remove_file(p.path(&leaf_of(p))).unwrap();
            },
            &["unnamed"],
            true,
        ),
        (
            "a state of nonsense",
            |p| std::fs::write(p.timeline.workspace().dir.join("state.json"), "{").unwrap(),
            &["records"],
            false,
        ),
        (
            "a commit gone",
            |p| {
                let id = p.timeline.store().refs(&leaf_of(p)).unwrap()[0].target.clone().unwrap().to_string();
                std::fs::remove_file(p.path(&format!("objects/{}/{}", &id[..2], &id[2..]))).unwrap();
            },
            &["no-commit"],
            false,
        ),
        (
            "a run's first commit gone",
            |p| {
                let tip = p.timeline.store().refs(&branch_of(p)).unwrap()[0].target.clone().unwrap();
                let id = p.timeline.store().read_commit(&tip).unwrap().parents[0].to_string();
                std::fs::remove_file(p.path(&format!("objects/{}/{}", &id[..2], &id[2..]))).unwrap();
            },
            &["gap"],
            false,
        ),
    ];
    for (name, harm, expected, mends) in table {
        let place = place();
        assert_eq!(place.words(), [""; 0], "{name}: before");
        let before = names(&place);
        harm(&place);
        assert_eq!(place.words(), expected, "{name}: {:?}", place.look());
        let harmed = names(&place);
        for _ in 0..2 {
            for finding in place.look() {
                repair(&place.home, place.timeline.store(), &finding).unwrap();
            }
        }
        assert_eq!(place.words().is_empty(), mends, "{name}: {:?}", place.look());
        assert!(names(&place).len() >= harmed.len(), "{name}: a ref went");
        if mends {
            assert_eq!(names(&place), before, "{name}");
        }
    }
}

fn names(place: &Place) -> Vec<RefEntry> {
    place.timeline.store().refs("refs/").unwrap()
}

fn leaf_of(place: &Place) -> String {
    format!("refs/piton/{}/manual/3", place.id())
}

fn branch_of(place: &Place) -> String {
    format!("refs/heads/{}/run-1", place.id())
}

fn detach(place: &Place, from: ObjectId) {
    let branch = format!("refs/heads/{}/run-1.2", place.id());
    let detached = super::super::state::Detached::new(branch, from);
    let (workspace, policy) = (place.timeline.workspace().clone(), place.timeline.policy().clone());
    let mut timeline = Timeline::open(&place.home, workspace, policy).unwrap();
    timeline.change_state(|state| _ = state.detached.insert("run-1".into(), detached)).unwrap();
}

#[test]
fn checkpoints_of_the_log_are_put_back() {
    let mut place = place();
    let name = format!("refs/piton/{}/manual/5", place.id());
    let take = |place: &mut Place, label: &str| {
        std::fs::write(place.timeline.workspace().path.join("file"), label).unwrap();
        place.timeline.take(&Take::of(CheckpointKind::Manual, "local", label), &|| Flow::Continue).unwrap();
    };
    take(&mut place, "logged");
    for (harm, later, word) in [(None, 0, "unmoved"), (Some(""), 0, "not-from-log"), (None, 1, "not-from-log")] {
        (0..later).for_each(|_| take(&mut place, "a later one"));
        match harm {
            None => std::fs::remove_file(place.path(&name)).unwrap(),
            Some(content) => std::fs::write(place.path(&name), content).unwrap(),
        }
        assert_eq!(place.words(), [word], "{harm:?}, {later} later");
        repair(&place.home, place.timeline.store(), &place.look()[0]).unwrap();
        assert!(place.look().is_empty());
    }
}

#[test]
fn a_ref_that_can_be_read_is_not_touched() {
    let place = place();
    let name = leaf_of(&place);
    std::fs::write(place.path(&name), "").unwrap();
    let finding = place.look().remove(0);
    repair(&place.home, place.timeline.store(), &finding).unwrap();
    let again = repair(&place.home, place.timeline.store(), &finding).unwrap_err();
    assert_eq!(again.code(), Code::Conflict);
}
