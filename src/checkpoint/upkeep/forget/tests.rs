//! A killed forget, completed by work that gives way.

use std::cell::Cell;

use super::*;
use crate::checkpoint::Take;
use crate::checkpoint::timeline::Timeline;
use crate::model::checkpoint::CheckpointKind;

#[test]
fn completing_that_gives_way_at_any_moment_goes_on_the_next_time() {
    let scratch = tempfile::tempdir().unwrap();
    let (home, root) = (Home::at(&scratch.path().join("home")).unwrap(), scratch.path().join("work"));
    std::fs::create_dir(&root).unwrap();
    let workspace = Workspace::open(&home, &root).unwrap();
    let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
    let mut timeline = Timeline::open(&home, workspace.clone(), policy).unwrap();
    let mut hidden = Vec::new();
    for n in 0..3 {
        let text = format!("hidden {n}");
        hidden.push(ObjectId::of(ObjectKind::Blob, text.as_bytes()).unwrap());
        std::fs::write(root.join("hidden"), text).unwrap();
        std::fs::write(root.join("file"), n.to_string()).unwrap();
        timeline.take(&Take::of(CheckpointKind::Manual, "local", "one"), &|| Flow::Continue).unwrap();
    }
    drop(timeline);
    // As a forget leaves it that is killed at its beginning.
    let kind = IntentKind::Paths { paths: vec!["hidden".into()] };
    let of = Some(workspace.id.clone());
    ForgetIntent { at: 1, kind, workspace: of, map: Vec::new(), has_moved: false }.save(&home).unwrap();
    // One that is at work in the workspace is not waited for.
    let lock = WorkspaceLock::acquire(&workspace.dir, "testing", LOCK_WAIT).unwrap();
    let locked = complete(&home, Pace::giving_way(&|| Flow::Continue));
    assert_eq!(locked.unwrap_err().code(), Code::StoreLocked);
    drop(lock);
    let mut most = 0_u32;
    while let Some(intent) = ForgetIntent::load(&home).unwrap() {
        assert!(!intent.has_moved, "nothing would complete it, after {most} steps");
        let left = Cell::new(most);
        let in_time = || if left.replace(left.get().saturating_sub(1)) > 0 { Flow::Continue } else { Flow::Stop };
        match complete(&home, Pace::giving_way(&in_time)) {
            Err(error) if [Code::ShuttingDown, Code::StoreLocked].contains(&error.code()) => {}
            completed => completed.unwrap(),
        }
        most += 1;
        assert!(most < 10_000, "it never ends");
    }
    assert!(most > 3, "{most}");
    let store = opened(&home, Pace::giving_way(&|| Flow::Continue)).unwrap();
    assert!(hidden.iter().all(|id| !store.has(id).unwrap()));
    assert_eq!(store.refs(&prefixes(&workspace)[1]).unwrap().len(), 3);
}
