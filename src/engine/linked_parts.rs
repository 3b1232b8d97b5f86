//! Protects the places behind the links of a workspace before an opaque action.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Engine;
use super::decision::Decision;
use super::links::{LinkedPlaces, OpaqueAction};
use super::parts::{Gathering, OUTSIDE, OtherReach, bounded};
use super::session::{Reply, Session};
use super::task::PartAction;
use crate::checkpoint::Workspace;
use crate::checkpoint::records::workspace::known_around;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::policy::OnFailure;

/// Returns the parts of an action in the workspaces to which places belong: of a known workspace all that its rules capture, of others
/// the places alone.
fn parts(places: LinkedPlaces, engine: &Engine) -> Result<Vec<OtherReach>> {
    let (known, mut parts) = (Workspace::known(engine.home())?, BTreeMap::new());
    let mut outside = OtherReach::at(Path::new(OUTSIDE));
    for place in places.saved {
        match known_around(&place, &known) {
            Some(root) => {
                parts.entry(root.clone()).or_insert_with(|| OtherReach::at(&root)).reach.is_everything = true;
            }
            None => outside.add(&place, false),
        }
    }
    let below = |place: &PathBuf| place.strip_prefix(OUTSIDE).ok().and_then(|path| RelPath::from_path(path).ok());
    outside.broad.extend(places.left_out.iter().filter_map(below));
    Ok(bounded(std::iter::once(outside).chain(parts.into_values())))
}

impl Session {
    /// Has the places behind the links of a workspace protected too, and answers then.
    pub(super) fn protect_behind(
        &mut self,
        opaque: OpaqueAction,
        places: LinkedPlaces,
        on_failure: OnFailure,
        decision: Decision,
        reply: Reply<Decision>,
    ) {
        let parts = parts(places, &self.engine).unwrap_or_else(|error| vec![OtherReach::unknown(error)]);
        let gathering = Gathering::new(reply, parts.len());
        let OpaqueAction { action, verdict, cwd, asked } = opaque;
        let shared = PartAction { action: &action, verdict, cwd, asked, is_part: true, is_linked: true };
        for part in parts {
            self.decide_gathered(&shared, part, &gathering, on_failure);
        }
        gathering.own()(self, Ok(decision));
    }
}
